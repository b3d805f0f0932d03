"""The desk without its page: what a lever makes is what the command line finds, and nothing else is computed again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from benchwright import pipeline
from benchwright.app.building import build_report, command_of
from benchwright.app.desk import Desk
from benchwright.app.levers import config_under, from_query, levers_of, to_query
from benchwright.app.opening import served
from benchwright.app.settings_file import plan_settings, write_settings
from benchwright.app.words import board_lines, inert, item_lines, movers, weights_lines
from benchwright.config import Config, load_config
from benchwright.errors import BenchwrightError, ConfigError, UsageError
from benchwright.mechanism.reasons import weight_reasons
from benchwright.report.build import write_report
from benchwright.report.inputs import RECORD, AuditInputs, read_record
from desks import FEW, GAME, few, of_panel, of_tables
from tables import run, write_tables

MOVED = {"welfare.neutral": 2.4, "lab.risk_aversion": 30.0, "prices.RL": 0.9, "published.max_share": 0.2}


@pytest.fixture(scope="module")
def panel(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    return Desk(of_panel(tmp_path_factory.mktemp("desk")), few())


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    return Desk(of_tables(tmp_path_factory.mktemp("desk")), few())


def audited(inputs: AuditInputs, config: Config) -> Any:
    given = {name: getattr(inputs, name) for name in ("source", "welfare", "runs", "game")}
    return pipeline.audit(**given, config=config)


def test_levers_give_what_the_main_job_finds(panel: Desk) -> None:
    config = config_under(panel, MOVED)
    view, whole = panel.view(config), audited(panel.inputs, config)
    assert view.weights is not None
    assert whole.weights is not None
    names = ["task", "doc_id", "weight", "published_share", "welfare", "cost_usd"]
    assert view.weights.items.select(names).equals(whole.weights.items.select(names))
    assert view.board is not None
    assert whole.board is not None
    assert view.board.frame.equals(whole.board.frame)
    assert view.board.scheme.sha256 == whole.board.scheme.sha256
    on_demand = panel.report(config).weights
    assert on_demand is not None
    assert on_demand.items.equals(whole.weights.items.select(on_demand.items.columns))
    assert panel.game(config) is not None
    assert whole.game is not None
    assert panel.game(config).to_dict() == whole.game.to_dict()  # type: ignore[union-attr]


def test_a_lever_moves_weights_and_its_own_stages_only(panel: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object, **__: object) -> None:
        raise AssertionError("computed again")

    monkeypatch.setattr(pipeline, "read_inputs", never)
    monkeypatch.setattr("benchwright.app.desk.audit_items", never)
    monkeypatch.setattr("benchwright.mechanism.published.uncertainty_of", never)
    config = config_under(panel, {"welfare.neutral": 2.9})
    view = panel.view(config)
    assert panel.view(config_under(panel, {"welfare.neutral": 2.9})) is view
    assert view.audit is panel.start.audit
    assert not movers(view, panel.start)["gain"].is_close(0.0).all()
    assert panel.at_start(panel.config)
    assert not panel.at_start(config)
    game = panel.game(config)
    monkeypatch.setattr("benchwright.game_answers.opened.answer_game", never)
    assert panel.game(config) is game
    with pytest.raises(AssertionError, match="computed again"):
        panel.game(config_under(panel, {"game.kappa": 3.0}))


def test_prices_move_dollars_and_leave_ranks_without_their_intervals(panel: Desk) -> None:
    dear = panel.view(config_under(panel, {"prices.PT": 8200.0})).audit.improvability
    plain = panel.start.audit.improvability
    assert dear is not None
    assert plain is not None
    np.testing.assert_allclose(
        dear.items["cost_pt_usd"].drop_nulls(), 100 * plain.items["cost_pt_usd"].drop_nulls(), rtol=1e-12
    )
    assert dear.items["cost_rank_lo"].null_count() == dear.items.height


def test_the_game_on_curves_is_fitted_once_and_says_what_the_command_says(tmp_path: Path) -> None:
    desk = Desk(of_tables(tmp_path, game=GAME), few())
    opened = desk.opened
    assert opened is not None
    assert opened.n == 6
    settings = {"game.rewards": "geometric:4000:0.5", "game.kappa": 2.0, "game.tune_before_test": 100.0}
    config = config_under(desk, settings)
    answer, whole = desk.game(config), audited(desk.inputs, config).game
    assert answer is not None
    assert answer.to_dict() == whole.to_dict()
    bare = desk.game(config, intervals=False)
    assert bare is not None
    assert bare.to_dict()["threshold"] == answer.to_dict()["threshold"]
    assert bare.to_dict()["threshold_interval"] is None
    with pytest.raises(UsageError, match="`fairy` is not a form of rewards"):
        config_under(desk, {"game.rewards": "fairy:3"})


@pytest.mark.slow
def test_settings_and_the_report_are_those_of_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    inputs = of_panel(tmp_path)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "benchwright.toml").write_text(
        "# ours\n[welfare]\nneutral = 3.5  # settled in May\n\n[published]\nmax_share = 0.5\n", encoding="utf-8"
    )
    desk = Desk(inputs, load_config().replace(FEW, source="--set"))
    config = config_under(desk, MOVED | {"published.max_share": None, "game.kappa": 2.0})
    plan = plan_settings(desk.settings_file, config)
    changed = {one.key: (one.old, one.new) for one in plan.changes}
    assert changed["welfare.neutral"] == (3.5, 2.4)
    assert changed["published.max_share"] == (0.5, None)
    assert changed["published.draws"] == (200, 39)
    assert not plan.anew
    write_settings(plan)
    text = (tmp_path / "benchwright.toml").read_text(encoding="utf-8")
    assert text.startswith("# ours\n")
    assert "# max_share = 0.5" in text
    assert plan_settings(desk.settings_file, config).changes == ()
    build_report(desk, tmp_path / "desk")
    line = command_of(inputs, tmp_path / "line", settings_file=desk.settings_file)
    ran = run(monkeypatch, capsys, *line.split()[1:])
    assert ran.code == 0, ran.err
    names = sorted(path.relative_to(tmp_path / "line") for path in (tmp_path / "line").rglob("*") if path.is_file())
    assert len(names) > 20
    for name in names:
        assert (tmp_path / "desk" / name).read_bytes() == (tmp_path / "line" / name).read_bytes(), name
    summary = json.loads((tmp_path / "desk" / "summary.json").read_text(encoding="utf-8"))
    board = desk.view(config).board
    assert board is not None
    assert [row["model"] for row in summary["rescored"]["leaderboard"]] == board.frame["model"].to_list()
    assert {row["key"]: row["value"] for row in summary["assumptions"]}["game.kappa"] == 2.0


def test_a_report_leads_back_to_its_source_and_choices(tmp_path: Path) -> None:
    source = write_tables(tmp_path / "here" / "tables")
    config = few().replace(
        {"prices.GPU": {"usd": 2.0, "per": "an hour"}, "welfare.thresholds": (3.0, 4.0)}, source="benchwright.toml"
    )
    out = write_report(pipeline.audit(source, config=config), tmp_path / "here" / "out", page=False, figures=False)
    (tmp_path / "here").rename(tmp_path / "moved")
    out = tmp_path / "moved" / "out"
    assert str(tmp_path) not in (out / RECORD).read_text(encoding="utf-8")
    found = served(AuditInputs(out))
    assert found.notes == ()
    assert found.config is not None
    assert found.config.prices == config.prices
    assert found.config.sources == config.sources
    desk = Desk(found.inputs, found.config)
    again = write_report(pipeline.audit(found.inputs.source, config=found.config), out, overwrite=True, page=False)
    assert desk.start.weights is not None
    written = pl.read_csv(again / "weights.csv")["weight"]
    np.testing.assert_allclose(desk.start.weights.items["weight"], written, rtol=1e-12)


def test_a_report_without_its_source_still_has_its_items(tmp_path: Path) -> None:
    source = write_tables(tmp_path / "tables")
    out = write_report(pipeline.audit(source, config=few()), tmp_path / "out", page=False, figures=False)
    source.rename(tmp_path / "elsewhere")
    found = served(AuditInputs(out))
    assert "not there any more" in found.notes[0]
    desk = Desk(found.inputs, found.config, notes=found.notes)
    assert desk.start.weights is not None
    assert desk.start.board is None
    (out / RECORD).unlink()
    assert "older version" in served(AuditInputs(out)).notes[0]
    (out / RECORD).write_text('{"inputs": 3}', encoding="utf-8")
    assert "is damaged" in served(AuditInputs(out)).notes[0]
    with pytest.raises(BenchwrightError, match="is damaged"):
        read_record(out)
    (out / "items.parquet").unlink()
    with pytest.raises(UsageError, match="without an item layer"):
        served(AuditInputs(out))


def test_an_address_holds_levers_and_says_what_of_it_is_wrong(tables: Desk) -> None:
    settings = {"welfare.neutral": 2.5, "published.max_share": 0.1, "published.equal_within": "task"}
    query = to_query(tables, settings | {"lab.budget": tables.config.lab.budget})
    assert query == {"welfare.neutral": "2.5", "published.max_share": "0.1", "published.equal_within": "task"}
    assert from_query(tables, query) == (settings, ())
    hostile = {
        "welfare.neutral": "nan",
        "lab.budget": "-1",
        "families.welfare": "/etc/passwd",
        "published.equal_within": "/etc/passwd",
        "published.at_most": "2.5",
        "prices.PT": "1\nx = 2",
        "published.non_negative": "<script>",
        "published.max_share": "9" * 500,
        "x" * 500: "1",
        "welfare.automation_share": "unset",
        "game.rewards": "1,2,3",
    }
    found, faults = from_query(tables, hostile)
    assert found == {"game.rewards": "1,2,3"}  # may be wrong for the game, which says so itself
    assert len(faults) == len(hostile) - 1
    assert all(len(fault) < 250 for fault in faults)


def test_every_lever_can_be_moved_and_back(tables: Desk) -> None:
    start = {lever.key: lever for lever in levers_of(tables)}
    assert {"welfare.neutral", "prices.RL", "published.at_most", "game.tune_before_test"} <= start.keys()
    other = {
        "slider": 0.5, "number": 0.4, "whole": 3, "flag": False, "choice": "task", "text": "per-rank:2",
    }  # fmt: skip
    for key, lever in start.items():
        value = 2.0 if key == "welfare.neutral" else other[lever.kind]
        config = config_under(tables, {key: value})
        view = tables.view(config)
        assert view.weights is not None
        if not key.startswith("game."):
            assert not tables.at_start(config), key
        assert config.sources[key] == "benchwright.toml"
    with pytest.raises(ConfigError, match=r"published\.max_share must lie in"):
        config_under(tables, {"published.max_share": 2.0})
    with pytest.raises(UsageError, match="does not go with"):
        tables.view(config_under(tables, {"published.at_most": 3, "published.non_negative": False}))


def item_lines_of(desk: Desk, settings: dict[str, Any], place: int) -> list[str]:
    weights = desk.view(config_under(desk, settings)).weights
    assert weights is not None
    return list(item_lines(weights, place))


def test_words_say_why_an_item_weighs_what_it_weighs(tables: Desk) -> None:
    assert " ".join(item_lines_of(tables, {}, 0)).startswith("No item has a weight to publish here")
    view = tables.view(config_under(tables, {"welfare.neutral": 1.0}))
    assert view.weights is not None
    weights = view.weights
    found = weight_reasons(weights.model, weights.optimum.weights)
    np.testing.assert_allclose(found.gain / found.own_noise, weights.optimum.weights, rtol=1e-6)
    assert found.voice.sum() == pytest.approx(1.0)
    place = int(weights.items["published_share"].arg_max() or 0)
    text = " ".join(item_lines(weights, place))
    assert all(word in text for word in ("Slopes:", "Noise:", "Welfare:", "times an equal one"))
    cap = {"welfare.neutral": 1.0, "published.max_share": 0.07}
    capped = tables.view(config_under(tables, cap)).weights
    assert capped is not None
    held = int(np.flatnonzero(capped.published.binding["max_share"])[0])
    assert "held at the largest share" in " ".join(item_lines_of(tables, cap, held))
    assert list(weights_lines(view))
    assert list(board_lines(view, view)) == []


def test_settings_are_never_silently_lost(tmp_path: Path) -> None:
    path = tmp_path / "benchwright.toml"
    config = Config().replace({"welfare.neutral": 2.5, "prices.RL": 0.9}, source="x")
    write_settings(plan_settings(path, config))
    assert load_config(path).welfare.neutral == 2.5
    assert load_config(path).prices == config.prices
    plan = plan_settings(path, config.replace({"welfare.neutral": 2.0}, source="x"))
    path.write_text(path.read_text(encoding="utf-8") + "# a colleague's word\n", encoding="utf-8")
    with pytest.raises(UsageError, match="has changed meanwhile"):
        write_settings(plan)
    odd = 'welfare = { neutral = 4.0, top_k = 4 }\n[published]\nequal_within = """task"""\n'
    path.write_text(odd, encoding="utf-8")
    plan = plan_settings(path, config)
    assert plan.anew
    write_settings(plan)
    assert plan.backup.read_text(encoding="utf-8") == odd
    now = load_config(path)
    assert (now.welfare, now.published) == (config.welfare, config.published)
    path.write_text("[welfare]\nneutral = \n", encoding="utf-8")
    with pytest.raises(ConfigError, match="not a TOML file"):
        plan_settings(path, config)


def test_texts_are_read_where_the_panel_keeps_them(panel: Desk, tables: Desk) -> None:
    assert panel.text("task-1", "0")[1].startswith("the panel was read without item texts")
    assert tables.text("alpha", 0)[1].startswith("the source is no panel")


@pytest.mark.parametrize(
    "text", ["`a`", "$x^2$", "<script>x</script>", "[a](javascript:b)", ":fire:", ":red[x]", "http://x.example", "a\nb"]
)
def test_markdown_of_data_is_inert(text: str) -> None:
    shown = inert(text)
    bare = shown.replace("\\\\", "")
    for place, char in enumerate(bare):
        if char in "`$<>[]():*_#":
            assert bare[place - 1] == "\\"
    assert "\n" not in shown
