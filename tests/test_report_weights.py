"""What a report says of the weights that a board can publish, how sure they are, and the board under them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import benchwright as bw
from benchwright.board.scheme import read_scheme
from benchwright.config import Config
from benchwright.mechanism.item_weights import ItemWeights
from benchwright.mechanism.uncertainty import AS_GOOD, RIGHT, UNSETTLED, WORSE, WRONG, WeightUncertainty
from benchwright.report.contents import AuditReport
from benchwright.report.figures import figures
from benchwright.report.findings import findings
from benchwright.report.tables import ReportTable, tables
from test_audit_panel import grids, ingested, seeds

FEW = {"resampling.replicates": 100, "estimates.replicates": 100, "published.draws": 80, "published.top": 10}
OF_WEIGHTS = {"published-shares", "task-weights", "efficiency-over-risk", "welfare-mixture"}


@pytest.fixture(scope="module")
def report() -> AuditReport:
    return bw.audit(
        bw.simulate_item_tables(), config=Config().replace(FEW | {"published.max_share": 0.02}, source="test")
    )


@pytest.fixture(scope="module")
def of_panel(tmp_path_factory: pytest.TempPathFactory) -> AuditReport:
    folder = tmp_path_factory.mktemp("board")
    panel = ingested(folder, grids(), seeds(4))
    items = grids().select("task", "doc_id").unique().sort("task", "doc_id")
    drawn = np.random.default_rng(6).uniform(2.5, 11.0, (items.height, 2))
    items.with_columns(w_auto=drawn[:, 0], w_aug=drawn[:, 1]).write_csv(folder / "welfare.csv")
    return bw.audit(panel, welfare=folder, config=Config().replace(FEW | {"welfare.neutral": 2.0}, source="test"))


def known(report: AuditReport) -> tuple[ItemWeights, WeightUncertainty]:
    assert report.weights is not None
    assert report.weights.uncertainty is not None
    return report.weights, report.weights.uncertainty


def table(report: AuditReport, name: str) -> ReportTable:
    return next(one for one in tables(report) if one.name == name)


def told(report: AuditReport, section: str = "weights") -> dict[str, str]:
    return {one.title: one.text for one in findings(report) if one.section == section}


def verdict(report: AuditReport, **said: Any) -> AuditReport:
    """The same report, had the draws said something else of the plain average."""
    weights, uncertainty = known(report)
    schemes = tuple(replace(one, **said) if one.name == "uniform" else one for one in uncertainty.schemes)
    return replace(report, weights=replace(weights, uncertainty=replace(uncertainty, schemes=schemes)))


def test_figures_and_tables_of_published_weights(report: AuditReport) -> None:
    assert {figure.name for figure in figures(report) if figure.section == "weights"} >= OF_WEIGHTS
    weights, uncertainty = known(report)
    costs = dict(table(report, "constraint-prices").frame.select("constraint", "price").iter_rows())
    assert costs.pop("all of them") == pytest.approx(weights.optimum.surplus - weights.published.surplus)
    assert list(costs.values()) == list(weights.prices.values())
    sure = table(report, "scheme-certainty").frame
    assert sure.height == len(uncertainty.names)
    assert sure["verdict"].to_list() == [uncertainty.scheme(name).verdict for name in uncertainty.names]
    for name, frame in (("task-weights", weights.by_task), ("family-weights", weights.by_family)):
        shown = table(report, name).frame
        assert shown["share"].sum() == pytest.approx(1)
        assert shown.sort("name")["share"].to_list() == frame.sort("name")["share"].to_list()
    ends = table(report, "weights-ends").frame
    assert ends["times_share"].to_list() == sorted(ends["times_share"], reverse=True)
    assert ends["times_share"].max() == pytest.approx(0.02 * weights.items.height)
    assert set(ends["standing"]) <= {"heavy", "light", "depends"}


def test_without_draws_there_are_no_intervals_and_it_is_said(report: AuditReport) -> None:
    weights, _ = known(report)
    drawn = [name for name in weights.items.columns if name.endswith(("_lo", "_hi", "_kept", "_positive"))]
    bare = replace(report, weights=replace(weights, uncertainty=None, items=weights.items.drop(drawn)))
    assert {figure.name for figure in figures(bare)} & OF_WEIGHTS == {
        "published-shares",
        "task-weights",
        "welfare-mixture",
    }
    assert not any("interval" in one.caption for one in figures(bare) if one.name == "published-shares")
    assert "scheme-certainty" not in {one.name for one in tables(bare)}
    assert not any("draw" in text for text in told(bare).values())


@pytest.mark.parametrize(
    ("said", "title"),
    [
        ({"sign": RIGHT, "standing": AS_GOOD}, "The plain average is about as good as any weights"),
        ({"sign": RIGHT, "standing": WORSE}, "The plain average keeps > 99 % of what the best weights would bring"),
        ({"sign": UNSETTLED, "standing": AS_GOOD}, "Whether the plain average helps is not settled"),
    ],
)
def test_the_headline_is_no_stronger_than_the_draws(report: AuditReport, said: dict[str, str], title: str) -> None:
    weights, _ = known(report)
    turning = {name: replace(one, interval=(4.0, 4.5)) for name, one in weights.break_even.items()}
    uniform = replace(weights.schemes["uniform"], efficiency=0.9999)
    settled = replace(weights, break_even=turning, schemes={**weights.schemes, "uniform": uniform})
    assert title in told(verdict(replace(report, weights=settled), **said))


def test_the_wrong_way_is_a_headline_where_all_agree(report: AuditReport) -> None:
    weights, _ = known(report)
    turning = {name: replace(one, interval=(1.0, 1.5)) for name, one in weights.break_even.items()}
    wrong = replace(weights.schemes["uniform"], efficiency=0.0, alignment=-1)
    harmful = replace(weights, break_even=turning, schemes={**weights.schemes, "uniform": wrong})
    found = told(verdict(replace(report, weights=harmful), sign=WRONG, aligned=0.01))
    assert "helps in 1 %" in found["The plain average points the wrong way"]


def test_one_weight_a_task_may_help_nowhere(report: AuditReport) -> None:
    weights, _ = known(report)
    none = replace(weights, by_task=weights.by_task.with_columns(share=pl.lit(None, dtype=pl.Float64)))
    assert "lowers welfare" in told(replace(report, weights=none))["No score with one weight a task helps"]


def test_published_weights_and_tasks_are_told_with_their_figures(report: AuditReport) -> None:
    weights, uncertainty = known(report)
    title, text = next((title, text) for title, text in told(report).items() if "can publish" in title)
    assert "non-negative weights keep" in title
    assert f"{int((weights.published.weights == 0).sum())} of {weights.items.height:,} items carry no weight" in text
    assert f"of the {uncertainty.spreads['published'].top} heaviest" in text
    up = weights.by_task.filter(pl.col("lo") > pl.col("uniform_share")).height
    down = weights.by_task.filter(pl.col("hi") < pl.col("uniform_share")).height
    (settled,) = [title for title in told(report) if "one weight a task" in title]
    assert settled == f"Settled with one weight a task: more weight for {up} tasks and less weight for {down} tasks"
    flat = replace(weights, by_task=weights.by_task.with_columns(lo=pl.lit(0.0), hi=pl.lit(1.0)))
    assert "No task is settled to deserve another weight" in told(replace(report, weights=flat))


def test_where_nothing_publishable_helps_no_scheme_is_written(report: AuditReport, tmp_path: Path) -> None:
    weights, _ = known(report)
    zero = replace(weights.published, weights=np.zeros(weights.items.height), status="no positive score helps")
    hopeless = replace(report, weights=replace(weights, published=zero))
    assert "No weights that a board can publish help" in told(hopeless)
    written = bw.write_report(hopeless, tmp_path / "out", page=False, figures=False)
    assert not (written / "scheme.json").exists()


def test_the_folder_holds_the_scheme_and_it_reads_back(report: AuditReport, tmp_path: Path) -> None:
    weights, _ = known(report)
    out = bw.write_report(report, tmp_path / "out", page=False, figures=False)
    scheme = read_scheme(out)
    assert scheme.assumptions["published.max_share"] == 0.02
    joined = weights.items.with_columns(pl.col("doc_id").cast(pl.String)).join(scheme.weights, on=["task", "doc_id"])
    assert joined["weight_right"].to_list() == joined["published_share"].to_list()
    columns = pl.read_csv(out / "weights.csv").columns
    assert columns[:6] == ["task", "doc_id", "weight", "weight_share", "uniform_share", "weight_undetermined"]
    assert {"published_share", "published_lo", "published_hi", "published_kept", "weight_lo"} < set(columns)
    summary = json.loads((out / "summary.json").read_text(encoding="utf-8"))["weights"]
    assert summary["published"]["efficiency"] == weights.published.efficiency
    assert set(summary["published"]["prices"]) == {"non_negative", "max_share"}
    assert {one["name"] for one in summary["uncertainty"]["schemes"]} >= {"uniform", "optimum", "published"}


def test_a_panel_is_scored_again_under_the_published_weights(of_panel: AuditReport, tmp_path: Path) -> None:
    board = of_panel.board
    assert board is not None
    weights, _ = known(of_panel)
    assert of_panel.estimates is not None
    ranked = of_panel.estimates.models
    assert ranked is not None
    assert set(board.frame["model"]) == set(ranked.frame["name"])
    uniform = dict(board.frame.select("model", "uniform_score").iter_rows())
    means = dict(ranked.frame.select("name", "score").iter_rows())
    if weights.items.height == of_panel.estimates.measured.items.height:
        assert uniform == pytest.approx(means)
    out = bw.write_report(of_panel, tmp_path / "out", page=False, figures=False)
    assert pl.read_csv(out / "rescored.csv").height == board.frame.height
    assert "rescored-ranks" in {figure.name for figure in figures(of_panel)}
    (title,) = [title for title in told(of_panel, "models") if title.startswith("Under the published weights")]
    assert f"of {board.frame.height} models change places" in title


def test_item_tables_have_no_board(report: AuditReport) -> None:
    assert report.board is None
    assert "rescored-ranks" not in {figure.name for figure in figures(report)}
    assert not any("published weights" in title for title in told(report, "models"))
