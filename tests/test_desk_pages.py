"""The pages of the desk without a browser: each page and lever, the address, hostile names, two browsers, files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from benchwright.app import serving
from benchwright.app.desk import Desk
from benchwright.app.levers import levers_of
from benchwright.app.words import inert
from benchwright.config import load_config
from benchwright.report.inputs import AuditInputs
from desks import few, of_panel, of_tables

pytestmark = pytest.mark.app

HOSTILE = "`m` $x$ <script>alert(1)</script> [a](javascript:b) :fire: =1+1"
PAGES = ("weights", "leaderboard", "game", "audit", "items", "assumptions")
MOVES = {"welfare.automation_share": 0.4, "welfare.neutral": 2.4, "lab.risk_aversion": 1e4, "lab.budget": 50.0}
MOVES |= {"prices.PT": 8.0, "published.max_share": 0.2, "published.equal_within": "task"}


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    return Desk(of_panel(tmp_path_factory.mktemp("pages"), hostile=HOSTILE), few())


@pytest.fixture(autouse=True)
def opened(desk: Desk) -> Iterator[None]:
    serving.set_desk(desk)
    yield
    serving.set_desk(desk)


def app(page: str = "weights", query: dict[str, str] | None = None) -> Any:
    """One browser on a page."""
    testing = pytest.importorskip("streamlit.testing.v1")
    made = testing.AppTest.from_file(str(serving.SCRIPT), default_timeout=120)
    for key, value in (query or {}).items():
        made.query_params[key] = value
    made.run()
    if page != "weights":
        made = on(made, page)
    sound(made)
    return made


def on(made: Any, page: str) -> Any:
    """The same browser on another page."""
    (made._page_hash,) = [one for one, about in made._registered_pages.items() if about["url_pathname"] == page]
    return made.run()


def sound(made: Any) -> None:
    assert [one.value for one in made.exception] == []


def metrics(made: Any) -> list[str]:
    return [one.value for one in made.metric]


def shown(made: Any) -> tuple[list[str], list[str], list[str]]:
    """Figures, words and tables of a page."""
    tables = [one.value.to_csv(index=False) for one in made.dataframe]
    return metrics(made), [one.value for one in made.markdown], tables


def texts(made: Any) -> str:
    return "\n".join(str(one.value) for kind in (made.markdown, made.caption, made.info, made.warning) for one in kind)


@pytest.mark.parametrize("page", PAGES)
def test_each_page_shows_and_keeps_hostile_names_inert(page: str) -> None:
    made = app(page)
    titles = {"game": "Ranking game"}
    assert [one.value for one in made.title] == [titles.get(page, page.capitalize())]
    assert not made.error
    said = texts(made)
    assert "<script>" not in said
    assert "](javascript" not in said
    assert " $x$" not in said
    if page == "leaderboard":
        assert inert(HOSTILE) in said or "model" in said
        (board, *_) = [one.value for one in made.dataframe]
        assert HOSTILE in board["model"].to_list()


@pytest.mark.parametrize("key", MOVES)
def test_each_lever_moves_what_is_shown_and_the_address(desk: Desk, key: str) -> None:
    made = app()
    before, kinds = shown(made), {lever.key: lever.kind for lever in levers_of(desk)}
    widgets = {"slider": made.slider, "flag": made.toggle, "choice": made.selectbox}
    widget = widgets.get(kinds[key], made.number_input)(key=key)
    (widget.set_value if kinds[key] != "choice" else widget.select)(MOVES[key]).run()
    sound(made)
    assert key in made.query_params
    assert shown(made) != before
    made.button(key="reset").click().run()
    assert shown(made) == before
    assert not dict(made.query_params)


def test_the_levers_of_a_game(desk: Desk) -> None:
    made = app("game")
    before = texts(made)
    made.text_input(key="game.rewards").set_value("5,0").run()
    sound(made)
    assert texts(made) != before
    made.text_input(key="game.rewards").set_value("fairy").run()
    assert "not a form of rewards" in made.error[0].value.replace("\\", "")
    made.text_input(key="game.rewards").set_value("").run()
    assert not made.error
    made.number_input(key="game.tune_before_test").set_value(3.0).run()
    assert made.query_params["game.tune_before_test"] == "3.0"


def test_levers_that_clash_say_so(desk: Desk) -> None:
    made = app()
    made.number_input(key="published.at_most").set_value(3).run()
    assert metrics(made)[2] in ("1", "2", "3")
    made.toggle(key="published.non_negative").set_value(False).run()
    sound(made)
    assert "does not go with" in made.error[0].value.replace("\\", "")


def test_an_address_opens_the_setting_that_was_shared_and_names_what_is_wrong() -> None:
    moved = app()
    moved.slider(key="welfare.neutral").set_value(2.4).run()
    shared = dict(moved.query_params)
    other = app(query=shared | {"lab.budget": "<b>", "prices.XX": "1"})
    assert metrics(other) == metrics(moved)
    told = [one.value.replace("\\", "") for one in other.warning]
    assert len(told) == 2
    assert any("lab.budget" in one for one in told)
    assert any("prices.XX is no lever" in one for one in told)
    assert dict(other.query_params) == shared


def test_two_browsers_have_their_own_levers() -> None:
    one, two = app(), app()
    start = metrics(two)
    one.slider(key="welfare.neutral").set_value(2.4).run()
    two.run()
    assert metrics(two) == start
    assert metrics(one) != start


def test_intervals_come_on_demand(desk: Desk) -> None:
    made = app(query={"welfare.neutral": "2.2"})
    assert "without intervals" in texts(made)
    made.button(key="intervals").click().run()
    sound(made)
    assert "without intervals" not in texts(made)
    assert "interval" in texts(made)


def test_the_item_browser_finds_an_item_and_says_why() -> None:
    made = app("items")
    made.selectbox(key="items-task").select("task-2").run()
    made.text_input(key="items-text").set_value("9").run()
    sound(made)
    assert "Slopes\\:" in texts(made) or "carries no weight" in texts(made)
    made.text_input(key="items-text").set_value("no such item").run()
    assert [one.value for one in made.info] == ["No item fits."]


def test_settings_are_written_and_the_report_is_built(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    fresh = Desk(desk.inputs, few(), settings_file=tmp_path / "benchwright.toml")
    serving.set_desk(fresh)
    made = app("assumptions", {"welfare.neutral": "2.5"})
    assert made.button(key="build").disabled
    made.button(key="settings-write").click().run()
    sound(made)
    assert load_config(tmp_path / "benchwright.toml").welfare.neutral == 2.5
    made.slider(key="welfare.neutral").set_value(2.6).run()
    assert made.button(key="settings-write").disabled
    made.checkbox(key="settings-sure").check().run()
    made.button(key="settings-write").click().run()
    assert load_config(tmp_path / "benchwright.toml").welfare.neutral == 2.6
    made.text_input(key="build-out").set_value(str(tmp_path / "out")).run()
    made.button(key="build").click().run()
    sound(made)
    assert (tmp_path / "out" / "report.html").is_file()
    made.button(key="build").click().run()
    assert "already holds a report" in made.error[0].value.replace("\\", "")


def test_pages_say_what_a_source_lacks_and_how_to_get_it(tmp_path: Path) -> None:
    serving.set_desk(Desk(of_tables(tmp_path, game=None), few(), notes=("Only <b>items</b>.",)))
    for page, told in (("leaderboard", "no scores per model"), ("game", "--game FILE")):
        said = texts(app(page)).replace("\\", "")
        assert told in said
        assert "Only <b>items</b>." in said
    serving.set_desk(Desk(AuditInputs(of_tables(tmp_path / "b").source, without=("welfare",)), few()))
    assert "missing: welfare" in texts(app()).replace("\\", "")
    assert "levers" in texts(app("audit"))


def test_the_data_of_a_chart_is_its_rows(desk: Desk) -> None:
    from benchwright.app.pages.shown import data_of
    from benchwright.report.figures import figures_at_once

    made = figures_at_once(desk.start.weights, desk.start.board, desk.config)
    for one in made:
        assert data_of(one.spec).height > 1, one.name
    ranks = next(one for one in made if one.name == "rescored-ranks")
    assert data_of(ranks.spec)["name"].is_in([HOSTILE]).any()
    assert data_of({"datasets": {"a": [{"x": 1}]}}).equals(pl.DataFrame({"x": [1]}))


def test_an_address_opens_the_item_that_was_shared(desk: Desk) -> None:
    made = app("items")
    task, doc_id = desk.items(desk.config).select("task", "doc_id").rows()[-1]
    made.selectbox(key="items-item").select((task, doc_id)).run()
    sound(made)
    shared = dict(made.query_params)
    assert shared == {"task": task, "doc_id": str(doc_id)}
    title = made.subheader[0].value
    other = app("weights", query=shared)
    assert not other.warning
    other = on(other, "items")
    sound(other)
    assert other.subheader[0].value == title
    other.slider(key="welfare.neutral").set_value(2.4).run()
    assert dict(other.query_params) == shared | {"welfare.neutral": "2.4"}
    lost = on(app("weights", query={"task": task, "doc_id": "no such item"}), "items")
    sound(lost)
    assert lost.subheader


def test_the_audit_page_follows_prices(desk: Desk) -> None:
    made = app("audit")
    before = texts(made)
    made.slider(key="welfare.neutral").set_value(2.4).run()
    assert texts(made) == before
    made.number_input(key="prices.PT").set_value(80.0).run()
    sound(made)
    assert texts(made) != before
    assert "ranks by cost have no intervals" in texts(made)
    made.button(key="reset").click().run()
    assert texts(made) == before
