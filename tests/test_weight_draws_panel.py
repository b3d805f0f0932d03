"""Draws of a panel's slopes, variances and covariance over seeds, and what they do to weights."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from benchwright.config import Config
from benchwright.errors import DataError
from benchwright.estimating._resampling import SeedVariances
from benchwright.estimating.noise import seed_covariance, variance_draws
from benchwright.logs.item_layer import read_item_layer
from benchwright.mechanism.draws import CHUNK, covariance_draws, rows_of
from benchwright.mechanism.item_weights import ItemWeights, weigh_items
from benchwright.mechanism.moved_slopes import shrinkage_notes, shrunk_draws
from benchwright.pipeline import audit
from benchwright.report.build import write_report
from benchwright.report.contents import AuditReport
from benchwright.simulate import simulate_item_tables
from test_audit_panel import grids, ingested, seeds

FAST = {"resampling.replicates": 100, "published.draws": 79}


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> AuditReport:
    folder = tmp_path_factory.mktemp("panel")
    welfare = folder / "welfare"
    welfare.mkdir()
    items = grids().select("task", "doc_id").unique().sort("task", "doc_id")
    rng = np.random.default_rng(6)
    drawn = {name: rng.uniform(2.5, 11.0, items.height) for name in ("w_auto", "w_aug")}
    items.with_columns(**drawn).write_csv(welfare / "welfare.csv")
    chosen = Config().replace(FAST, source="test")
    return audit(ingested(folder / "logs", grids(), seeds(3)), welfare=welfare, config=chosen)


def weigh(report: AuditReport, **choices: object) -> ItemWeights:
    config = Config().replace(FAST | {name.replace("__", "."): value for name, value in choices.items()}, source="test")
    return weigh_items(report.audit, config, estimates=report.estimates)


@pytest.mark.parametrize("kind", ["diagonal", "full"])
def test_weights_of_a_panel_have_intervals_around_them(report: AuditReport, kind: str) -> None:
    result = weigh(report, estimates__covariance=kind)
    assert result.uncertainty is not None
    assert any(note.startswith("Intervals of weights: 79 draws of slopes and noise; welfare") for note in result.notes)
    items = result.items
    inside = (items["weight_lo"] <= items["weight"]) & (items["weight"] <= items["weight_hi"])
    assert inside.mean() > 0.8
    assert items["weight_positive"].is_between(0, 1).all()


def test_a_drawn_covariance_has_the_variances_of_the_same_draw(report: AuditReport) -> None:
    assert report.estimates is not None
    assert report.estimates.noise is not None
    assert report.weights is not None
    rows = rows_of(report.estimates, report.weights.items)
    found = seed_covariance(report.estimates.noise, report.estimates.measured, rows)
    assert found is not None
    of_noise = variance_draws(
        report.estimates.noise, report.estimates.measured, rows, whole=True, rng=np.random.default_rng(1)
    )
    assert isinstance(of_noise, SeedVariances)
    draw = covariance_draws(of_noise, found.shrinkage)
    drawn = [draw() for _ in range(4000)]
    variance = np.mean([d + np.square(F).sum(axis=1) for d, F in drawn], axis=0)
    expected = np.mean(np.concatenate([of_noise().T for _ in range(125)]), axis=0)
    np.testing.assert_allclose(variance, expected, rtol=0.1)
    stated = found.factor @ found.factor.T
    mean = np.mean([F @ F.T for _, F in drawn], axis=0)
    size = np.sqrt(np.outer(stated.diagonal(), stated.diagonal()))
    assert np.abs((mean - stated) / size).max() < 0.15
    for d, F in drawn[:5]:
        np.testing.assert_allclose(d * (1 - found.shrinkage), found.shrinkage * np.square(F).sum(axis=1), atol=1e-12)


def test_a_covariance_with_absent_cells_is_drawn_from_those_there_are() -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=(5, 12)) + rng.normal(size=12)
    groups = [np.array([0, 1, 2, 3, 4]), np.array([12, 5, 6, 7, 8]), np.array([9, 12, 10, 12, 11])]
    for at in groups:
        runs = at[at < 12]
        values[:, runs] -= values[:, runs].mean(axis=1, keepdims=True)
    residual = np.hstack([values, np.full((5, 1), np.nan)])
    of_noise = SeedVariances(residual, groups, rng, [0, 0, 0])
    draw = covariance_draws(of_noise, 0.25)
    variance = np.array([d + np.square(F).sum(axis=1) for d, F in (draw() for _ in range(4000))])
    expected = np.concatenate([of_noise().T for _ in range(125)])
    np.testing.assert_allclose(variance.mean(axis=0), expected.mean(axis=0), rtol=0.06)
    np.testing.assert_allclose(variance.std(axis=0), expected.std(axis=0), rtol=0.1)


def test_a_staggered_grid_of_seeds_has_intervals_under_its_covariance(tmp_path: Path) -> None:
    drawn = seeds(1)
    first = (pl.col("step") == drawn["step"].unique().sort()[1]) & (pl.col("seed") == drawn["seed"].min())
    items = drawn.select("task", "doc_id").unique().sort("task", "doc_id")
    (tmp_path / "welfare").mkdir()
    items.with_columns(w_auto=pl.lit(4.0), w_aug=pl.lit(4.0)).write_csv(tmp_path / "welfare" / "welfare.csv")
    panel = ingested(tmp_path / "logs", grids(), drawn.filter(~first))
    chosen = Config().replace(FAST | {"estimates.covariance": "full"}, source="test")
    weights = audit(panel, welfare=tmp_path / "welfare", config=chosen).weights
    assert weights is not None
    assert any(note.startswith("The covariance over seeds is shrunk") for note in weights.notes)
    assert weights.items["weight_lo"].is_finite().all()


def test_the_covariance_counts_in_budget_balance_and_neutral_points(report: AuditReport) -> None:
    choices = {"estimates__covariance": "full", "lab__risk_aversion": 1000.0}
    result = weigh(report, **choices)
    model, w = result.model, result.model.welfare
    assert np.asarray(model.noise_factor).any()
    spent = result.effort.filter(scheme="uniform")["usd"].sum()
    assert result.calibration.rule == "uniform"
    assert spent == pytest.approx(Config().lab.budget)
    F = np.asarray(model.noise_factor)
    gain = np.square(w @ model.technology).sum() / float(np.asarray(model.curvature))
    risk = np.asarray(model.noise_variance) @ w**2 + np.square(w @ F).sum()
    assert result.balanced_risk == pytest.approx(gain / risk)
    here = result.neutral_sweep.filter(pl.col("framing") == "in force", (pl.col("neutral") - 3).abs() < 1e-9)
    assert here["efficiency"].item() == pytest.approx(result.schemes["uniform"].efficiency)


def test_empirical_bayes_draws_have_the_spread_of_the_posterior() -> None:
    rng = np.random.default_rng(0)
    groups = np.repeat([0, 1, 2], [40, 20, 1])
    m, error, shared = groups.size, rng.uniform(0.5, 1.5, groups.size), 0.7
    slope, best = rng.normal(size=m), rng.normal(size=m)
    share = np.where(groups < 2, 0.09 / (0.09 + np.square(error)), 1.0)

    def estimates() -> np.ndarray:
        return slope[:, None] + shared * rng.normal(size=CHUNK) + error[:, None] * rng.normal(size=(m, CHUNK))

    draw = shrunk_draws(estimates, slope, best, share, error, groups)
    drawn = np.hstack([draw() for _ in range(400)])
    weight = 1 / (0.09 + np.square(error))
    of_mean = np.array(
        [np.sum((weight * error)[groups == g] ** 2) / np.sum(weight[groups == g]) ** 2 for g in range(3)]
    )
    expected = shared**2 + of_mean[groups] + share * np.square(error)  # less what the mean takes out of the rest
    np.testing.assert_allclose(drawn.mean(axis=1), best, atol=0.06)
    np.testing.assert_allclose(drawn[:60].var(axis=1), expected[:60], rtol=0.12)
    np.testing.assert_allclose(drawn[60].var(), shared**2 + error[60] ** 2, rtol=0.05)
    together = np.cov(drawn[:40])
    assert together[np.triu_indices(40, 1)].mean() == pytest.approx(shared**2, rel=0.1)


def test_a_panels_layer_says_the_level_of_its_ranks(report: AuditReport, tmp_path: Path) -> None:
    told = replace(report, config=report.config.replace({"resampling.level": 0.8}, source="test"))
    folder = write_report(told, tmp_path / "out", page=False, figures=False)
    assert read_item_layer(folder / "items.parquet", axes=("PT", "SFT", "RL")).rank_level == 0.8


def test_how_far_slopes_were_shrunk_is_said(report: AuditReport) -> None:
    result = weigh(report, estimates__slopes="empirical-bayes")
    share = 1 - np.square(result.items["slope_pt_eb_sd"] / result.items["slope_pt_se"]).mean()  # type: ignore[operator]
    note = next(note for note in result.notes if note.startswith("Slopes are shrunk"))
    assert f"PT {share:.1%}" in note
    corrected = weigh(report, estimates__slopes="noise-corrected")
    kept = (corrected.items["slope_rl_corrected"] / corrected.items["slope_rl"]).mean()
    note = next(note for note in corrected.notes if note.startswith("Slopes are scaled"))
    assert f"RL {1 - kept:.1%}" in note  # type: ignore[operator]
    assert shrinkage_notes(pl.DataFrame(), ("PT",), "ols") == []


def test_too_few_replicates_of_the_panel_leave_no_intervals(report: AuditReport) -> None:
    result = weigh(report, estimates__replicates=38)
    assert result.uncertainty is None
    assert any("38 draws of" in note for note in result.notes)


def test_published_tables_have_no_noise_corrected_slopes(tmp_path: Path) -> None:
    config = Config().replace({"estimates.slopes": "noise-corrected"}, source="test")
    with pytest.raises(DataError, match="needs standard errors of slopes, which item tables lack"):
        audit(simulate_item_tables(), config=config)
