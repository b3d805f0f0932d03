"""Findings, figures and the page on sources where something is missing, equal, zero or undecided."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from benchwright import __version__
from benchwright.auditing.item_audit import audit_items
from benchwright.config import Config
from benchwright.errors import NoWeightsError
from benchwright.logs.item_tables import ItemTables
from benchwright.mechanism.item_weights import weigh_items
from benchwright.report.build import write_report
from benchwright.report.contents import AuditReport
from benchwright.report.figures import figures
from benchwright.report.findings import findings
from benchwright.report.html import render_page
from benchwright.report.page_audit import audit_page
from benchwright.report.summary import summary_text
from benchwright.report.tables import tables
from benchwright.simulate import Simulation, simulate_item_tables


def simulated(items_per_task: int = 6) -> ItemTables:
    return simulate_item_tables(Simulation(items_per_task=items_per_task, replicates=20))


def reported(source: ItemTables, user: pl.DataFrame | None = None, **choices: Any) -> AuditReport:
    values = {"resampling.replicates": 200} | {name.replace("__", "."): value for name, value in choices.items()}
    config = Config().replace(values, source="test")
    audit = audit_items(source, config)
    try:
        weights, why = weigh_items(audit, config, user_weights=user), None
    except NoWeightsError as error:
        weights, why = None, error.message
    return AuditReport(source, audit, weights, why, config, __version__)


def texts(report: AuditReport) -> dict[str, str]:
    """Findings by title; every number in them is a number."""
    found = {finding.title: finding.text for finding in findings(report)}
    for text in (*found, *found.values()):
        assert "nan" not in text.lower().split()
        assert "None" not in text
        assert "  " not in text
    return found


def drawn(report: AuditReport) -> set[str]:
    """Names of the figures; each specification and the whole page can be made."""
    all_figures = figures(report)
    for figure in all_figures:
        json.loads(figure.for_page())
    page = render_page(audit_page(report), all_figures, "")
    assert page.count("<figure") == len(all_figures)
    json.loads(summary_text(report))
    for table in tables(report):
        assert len(list(table.rows())) == table.frame.height
        assert table.latex().count(r"\\") == table.frame.height + 1
    return {figure.name for figure in all_figures}


def test_the_example_has_every_finding_and_figure() -> None:
    report = reported(simulated(12))
    names = drawn(report)
    assert {"activity-map-automation", "activity-map-augmentation", "welfare-scatter", "cost-quantiles"} <= names
    assert {"noise-quantiles", "noise-families", "weights-against-uniform", "value-over-risk"} <= names
    assert {finding.section for finding in findings(report)} == {"weights", "welfare", "improvability", "noise"}


def test_a_sign_that_another_sample_of_tasks_could_turn_is_not_called_settled() -> None:
    source = simulated(12)
    turning = reported(source).weights.break_even["in force"]  # type: ignore[union-attr]
    low, high = turning.interval
    for neutral, settled in ((low - 0.2, True), (turning.point + 0.01, False), (high + 0.2, True)):
        found = texts(reported(source, welfare__neutral=float(neutral)))
        assert ("Whether the plain average helps is not settled" in found) is not settled
    assert "The plain average points the wrong way" in found
    assert f"{low:.2f} to {high:.2f}" in found["The plain average points the wrong way"]


def test_the_break_even_told_is_that_of_the_framing_in_force() -> None:
    source = simulated(12)
    for share in (0.0, 0.5, 1.0):
        report = reported(source, welfare__automation_share=share)
        assert report.weights is not None
        point = report.weights.break_even["in force"].point
        assert any(f"below {point:.2f}" in text for text in texts(report).values())


def test_a_scheme_that_points_the_other_way_and_the_users_own_are_told() -> None:
    source = simulated(8)
    report = reported(source)
    assert report.weights is not None
    assert "Other simple schemes do not all agree" not in texts(report)
    own = report.weights.items.select("task", "doc_id", weight=-pl.lit(1.0))
    told = texts(reported(source, own))["Other simple schemes do not all agree"]
    assert "rewarding your weights lowers welfare" in told


def test_no_noise_is_no_crash_and_no_chart_over_risk() -> None:
    source = simulated()
    assert source.noise is not None
    quiet = replace(source, noise=source.noise.with_columns(noise_sigma2=pl.lit(0.0)))
    report = reported(quiet, eligibility__min_sigma2=0.0)
    assert "value-over-risk" not in drawn(report)
    found = texts(report)
    assert "Some weights are not determined" in found
    assert "The best weights are not all positive" not in found


def test_no_incentive_has_value() -> None:
    keys = {"task": ["t", "u"], "doc_id": [0, 0]}
    h5 = 1 + 1 / 2 + 1 / 3 + 1 / 4 + 1 / 5
    source = ItemTables(
        name="twins of opposite value",
        welfare=pl.DataFrame(keys | {"w_auto": [2 * h5, 4 * h5], "w_aug": [3 * h5, 3 * h5]}),
        cost=pl.DataFrame(keys | {"anchor_phat": 0.5, "beta_pt": 0.25}),
        noise=pl.DataFrame(keys | {"noise_sigma2": 0.01, "noise_mean_phat": 0.5}),
        axes=("PT",),
    )
    without = reported(source)
    assert without.weights is None
    assert "A'w = 0" in str(without.no_weights)
    drawn(without)
    report = reported(source, lab__curvature=1e-9)
    assert set(texts(report)) >= {"No incentive has value"}
    assert "loss-decomposition" not in drawn(report)
    assert "Some items are far cheaper to inflate than others" not in texts(report)


def test_one_item() -> None:
    source = simulated()
    only = pl.col("task") == "sim_advice", pl.col("doc_id") == 0
    one = replace(
        source,
        loadings={"default": source.loadings["default"].filter(*only)},
        cost=source.cost.filter(*only),  # type: ignore[union-attr]
        noise=source.noise.filter(*only),  # type: ignore[union-attr]
        margins=source.margins.filter(*only),  # type: ignore[union-attr]
    )
    wide = {"eligibility__anchor_low": 0.0, "eligibility__anchor_high": 1.0}
    wide |= {"eligibility__noise_low": 0.0, "eligibility__noise_high": 1.0}
    report = reported(one, **wide)
    assert report.weights is not None
    drawn(report)
    assert "Some items are far cheaper to inflate than others" not in texts(report)
    assert "with one task there is no interval" in str(texts(report))


def test_without_margins_or_rank_intervals() -> None:
    source = simulated()
    ranks = ("rank_headline", "rank_lo", "rank_hi")
    bare = replace(
        source,
        margins=None,
        cost=source.cost.drop(ranks),  # type: ignore[union-attr]
        noise=source.noise.drop(ranks),  # type: ignore[union-attr]
    )
    report = reported(bare)
    assert "noise-margins" not in drawn(report)
    assert not any("interval" in text and "rank" in text for text in texts(report).values())


@pytest.mark.parametrize("section", ["welfare", "cost", "noise"])
def test_a_missing_section_is_told_and_nothing_else_breaks(section: str) -> None:
    source = simulated()
    without = (
        replace(source, loadings={}, activities={}) if section == "welfare" else replace(source, **{section: None})
    )
    report = reported(without)
    drawn(report)
    assert report.weights is None
    assert any(note.startswith("No weights: weights need") for note in report.notes)


@pytest.mark.slow
def test_pictures_are_written_for_a_source_without_noise_spread(tmp_path: Path) -> None:
    source = simulated(3)
    flat = replace(source, noise=source.noise.with_columns(noise_sigma2=pl.lit(0.01)))  # type: ignore[union-attr]
    out = write_report(reported(flat), tmp_path / "out")
    pictures = sorted(path.stem for path in (out / "figures").glob("*.svg"))
    assert pictures == sorted(path.stem for path in (out / "figures").glob("*.png"))
    assert len(pictures) >= 12


def test_many_items_are_thinned_in_the_scatter_but_not_their_frontier() -> None:
    report = reported(simulated(400))
    scatter = next(figure for figure in figures(report) if figure.name == "welfare-scatter")
    assert report.audit.welfare is not None
    drawn_points = max(len(rows) for rows in scatter.spec["datasets"].values())
    frontier = int(report.audit.welfare.items["on_frontier"].sum())
    assert 1000 < drawn_points <= 2000 + frontier
