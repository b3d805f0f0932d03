"""Results in a notebook: every public one shows itself as HTML, from the same sentences and tables as its text."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import benchwright as bw
from benchwright._shown import NO_MATHS, ROWS, Folded, Headline, Shown, ShownPart, ShownTable, frame_table
from benchwright.ranking_game.arms_race import arms_race
from benchwright.ranking_game.forms import TranslationCurves

HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>$x$\n- a line of its own\x1b[2J"
NAMES = (HOSTILE, "</table></details>", "=1+1")
TAGS = {"div", "strong", "table", "thead", "tbody", "tr", "th", "td", "details", "summary"}
STYLES = {"text-align", "white-space", "overflow-x", "margin", "margin-top", "padding-left"}


class Page(HTMLParser):
    """Tags in balance, only those that are written on purpose; ``cells`` are the cells of tables."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.cells: list[str] = []
        self.said = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in TAGS
        for name, value in attrs:
            assert value is not None
            assert name in {"style", "class"}
            if name == "class":
                assert value == NO_MATHS
            else:
                assert {part.split(":")[0].strip() for part in value.split(";")} <= STYLES
        self.open.append(tag)
        if tag in {"td", "th"}:
            self.cells.append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.said += data
        if self.open[-1] in {"td", "th"}:
            self.cells[-1] += data


def page(result: Any) -> Page:
    return Page(result._repr_html_())


def game() -> bw.RankingGame:
    return bw.RankingGame(TranslationCurves([1.0, 0.8, 0.5], "exponential"), [2.0, 1.0, 0.0], names=NAMES)


def board_values() -> bw.BoardValues:
    rows = [
        {"model": model, "task": task, "doc_id": str(item), "value": float((item * (place + 2)) % 3 > 0)}
        for place, model in enumerate(("a", HOSTILE, "</table>"))
        for task in ("t", "<b>u</b>")
        for item in range(8)
    ]
    return bw.BoardValues.from_frame(pl.DataFrame(rows))


def weights() -> bw.OptimalWeights:
    model = bw.ItemAggregation(
        [[2.0], [1.0]], [1.0, 1.0], risk_aversion=1.0, noise_variance=[1.0, 1.0], names=NAMES[:2]
    )
    return bw.optimal_weights(model)


def results() -> dict[str, Any]:
    values = board_values()
    board = bw.rescore(values)
    return {
        "game": game(),
        "solution": bw.solve(game()),
        "threshold": bw.threshold(game()),
        "race": arms_race(game()),
        "board": board,
        "values": values,
        "scheme": board.scheme,
        "rules": bw.aggregate(values),
        "weights": weights(),
        "config": bw.Config(),
        "constraints": bw.Constraints(max_share=0.1),
        "simulation": bw.PanelSimulation(),
        "drawn": bw.draw_panel(bw.PanelSimulation(n_items=3)),
    }


RESULTS = (
    "board",
    "config",
    "constraints",
    "drawn",
    "game",
    "race",
    "rules",
    "scheme",
    "simulation",
    "solution",
    "threshold",
    "values",
    "weights",
)


@pytest.fixture(scope="module")
def made() -> dict[str, Any]:
    return results()


def names_of_the_package() -> dict[str, Any]:
    """Every class and alias of the package by its name, where two share one the public one."""
    found: dict[str, Any] = {}
    for module in pkgutil.walk_packages(bw.__path__, "benchwright."):
        if module.name.startswith(("benchwright.cli", "benchwright.app")) or module.name.endswith("__main__"):
            continue
        space = vars(importlib.import_module(module.name))
        found |= {name: value for name, value in space.items() if inspect.isclass(value) or isinstance(value, str)}
    return found | {name: getattr(bw, name) for name in bw.__all__}


def classes_in(annotation: Any, known: dict[str, Any]) -> Iterator[type]:
    """Yield the package's classes that an annotation names, through aliases."""
    for name in re.findall(r"\w+", str(annotation)):
        value = known.get(name)
        if isinstance(value, str) and value != name and "|" in value:
            yield from classes_in(value, known)
        elif inspect.isclass(value) and value.__module__.startswith("benchwright"):
            yield value


def test_every_public_result_shows_itself() -> None:
    known = names_of_the_package()
    public = [getattr(bw, name) for name in bw.__all__]
    wanted = {value for value in public if inspect.isclass(value) and not issubclass(value, Exception)}
    for function in filter(inspect.isfunction, public):
        wanted |= set(classes_in(function.__annotations__["return"], known))
    assert {"AuditReport", "GameAnswer", "ProtocolComparison", "VariantReport", "Ingested", "Threshold"} <= {
        kind.__name__ for kind in wanted
    }
    assert sorted(kind.__name__ for kind in wanted if not issubclass(kind, Shown)) == []


@pytest.mark.parametrize("name", RESULTS)
def test_html_is_well_formed_and_inert(name: str, made: dict[str, Any]) -> None:
    html = made[name]._repr_html_()
    found = Page(html)
    assert found.said.strip()
    assert "http" not in html
    assert "\n" not in html


@pytest.mark.parametrize("name", ["solution", "race", "board", "rules", "weights", "scheme", "game"])
def test_hostile_names_are_shown_as_they_are_on_one_line(name: str, made: dict[str, Any]) -> None:
    told = HOSTILE.replace("\n", "\\n").replace("\x1b", "\\x1b")
    if name in {"board", "rules", "scheme", "game"}:
        told = told[:40]  # of cells that are cut
    assert ("<b>u</b>" if name == "scheme" else told) in page(made[name]).said
    assert not any(line.startswith("- a line of its own") for line in str(made[name]).splitlines())


@pytest.mark.parametrize("name", RESULTS)
def test_text_and_html_have_the_same_tables(name: str, made: dict[str, Any]) -> None:
    text = str(made[name])
    cells = page(made[name]).cells
    missing = [cell for cell in cells if cell not in text]
    assert missing == []
    assert bool(cells) == (name != "threshold")


def test_nan_is_shown_as_in_the_text() -> None:
    table = frame_table(pl.DataFrame({"name": ["a", None], "value": [float("nan"), None], "none": [None, None]}))
    assert table.rows == [["a", "NaN"], ["–", "–"]]
    assert list(table.lines()) == ["  name  value", "  a       NaN", "  –         –"]
    assert Page(table.html()).cells == ["name", "value", "a", "NaN", "–", "–"]


def test_long_tables_say_what_is_left_out() -> None:
    frame = pl.DataFrame({"row": range(ROWS + 7)})
    assert Page(frame_table(frame).html()).cells == ["row", *map(str, range(ROWS))]
    assert "and 7 more rows" in frame_table(frame).html()
    assert "more row" not in "".join(frame_table(frame).lines())
    cut = frame_table(frame, rows=ROWS + 2)
    assert "and 7 more rows" in cut.html()
    assert list(cut.lines())[-1] == "  and 5 more rows"


def test_folded_parts_are_for_notebooks_alone() -> None:
    class Result(Shown):
        def _told(self) -> Iterator[ShownPart]:
            yield Headline("head", "of a text")
            yield "  indented & escaped"
            yield Folded("more", [ShownTable(("a",), [("1",)])])
            yield weights()

    text, html = str(Result()), Result()._repr_html_()
    assert text.splitlines()[:2] == ["- head: of a text", "  indented & escaped"]
    assert text.endswith(str(weights()))
    assert "more" not in text
    assert "<summary>more</summary>" in html
    assert "indented &amp; escaped" in html
    assert "indented & escaped" in unescape(html)
    Page(html)


def test_a_result_without_words_of_its_own_shows_its_fields() -> None:
    @dataclasses.dataclass(frozen=True, slots=True)
    class Result(Shown):
        array: Any
        names: tuple[str, ...]
        none: None = None
        share: float = float("nan")

    result = Result(np.zeros((2, 3)), tuple("abcdefg"))
    lines = [line.split(maxsplit=1) for line in str(result).splitlines()]
    assert lines[:2] == [["Result"], ["field", "value"]]
    assert lines[2:] == [["array", "ndarray of 2 x 3"], ["names", "a, b, c, d, e, and 2 more"], ["share", "NaN"]]
    assert "and 2 more" in page(result).said


def test_the_audit_and_a_panel_show_themselves(tmp_path: Path) -> None:
    rows = [{"model": m, "task": "t", "item_id": i, "score": i % 2} for m in ("a", "<i>b</i>") for i in range(4)]
    pl.DataFrame(rows).write_csv(tmp_path / "scores.csv")
    ingested = bw.read_logs(tmp_path / "scores.csv", tmp_path / "panel")
    panel = bw.Panel.open(tmp_path / "panel")
    assert "models 2" in page(ingested).said
    assert "<i>b</i>" in page(panel).cells
    assert "<i>b</i>" in page(bw.score_table(panel)).cells
    assert "standard_error" in page(bw.compare_models(panel, "a", "<i>b</i>")).cells
    assert "Estimates from 4 items" in page(bw.estimate_panel(tmp_path / "panel")).said


@pytest.mark.slow
def test_the_report_shows_findings_and_folds_the_report_s_tables() -> None:
    from benchwright.report.findings import findings
    from benchwright.report.tables import tables

    report = bw.audit()
    html = report._repr_html_()
    said = page(report)
    assert all(finding.title in said.said for finding in findings(report))
    assert html.count("<details>") == len(tables(report)) > 3
    assert all(table.title in said.said for table in tables(report))
    assert page(report.weights).cells[:2] == ["field", "value"]
    assert page(report.audit).cells
