"""Slopes of items: least squares with explicit sandwiches, penalised likelihood, moment equations, small panels."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from math import isnan, nan, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from benchwright.choices import DEFAULT_PRICES, EligibilityChoices, EstimateChoices
from benchwright.estimating import _slopes as kernel
from benchwright.estimating.measure import Measurements
from benchwright.estimating.slopes import SlopeEstimate, estimate_slopes
from benchwright.simulate import PanelSimulation, SimulatedAxis, draw_grid, draw_panel, to_frame
from slope_twins import NAMES, penalised, plain_fit, plain_shrunk
from test_noise_estimates import measured

relaxed = settings(deadline=None, max_examples=40)
seeds = st.integers(0, 2**32 - 1)
ERRORS = ("ols", "hc3", "seed")


def agree(
    found: kernel.Fits, y: np.ndarray, x: np.ndarray, errors: str, cluster: np.ndarray, tol: float = 1e-9
) -> None:
    for i, row in enumerate(y):
        want = plain_fit(row, x, errors, cluster)
        for name in NAMES if not isnan(want["standard_error"]) else NAMES.keys() - {"df"}:
            assert getattr(found, name)[i] == pytest.approx(want[name], rel=tol, abs=tol / 100, nan_ok=True), (i, name)


@pytest.mark.parametrize("errors", ERRORS)
@relaxed
@given(seed=seeds, share=st.sampled_from([0.0, 0.25]), origin=st.sampled_from([0.0, 1e6]), n_seeds=st.integers(2, 4))
def test_lines_by_lstsq_and_sandwiches(seed: int, errors: str, share: float, origin: float, n_seeds: int) -> None:
    rng = np.random.default_rng(seed)
    near = np.tile([0.0, 1.0, 1.5, 4.0, 6.0], n_seeds)
    cluster = np.repeat(rng.permutation(n_seeds), 5)
    y = near * rng.normal(size=(12, 1)) + rng.normal(size=(12, len(near)))
    gaps = rng.random(y.shape) < share
    gaps[:, [0, 1, 2, 5, 6, 7]] = False  # two seeds keep three doses; less is another test
    y[gaps] = nan
    agree(kernel.fit_lines(y, origin + near, errors=errors, cluster=cluster), y, origin + near, errors, cluster)


@pytest.mark.parametrize("errors", ERRORS)
def test_an_item_with_few_cells(errors: str) -> None:
    """No run, one, two at one dose, two doses, a lone dose; without a degree of freedom there is no error."""
    x, cluster = np.array([1.0, 1.0, 1.0, 3.0, 3.0]), np.array([0, 1, 2, 0, 1])
    y = np.full((4, 5), nan)
    y[1, 0], y[2, :2], y[3, [0, 3]] = 0.3, [0.3, 0.8], [0.2, 0.9]
    found = kernel.fit_lines(y, x, errors=errors, cluster=cluster)
    agree(found, y, x, errors, cluster)
    assert found.n.tolist() == [0, 1, 2, 2]
    assert found.n_doses.tolist() == [0, 1, 1, 2]
    whole = kernel.fit_lines(np.random.default_rng(1).random((3, 4)), np.ones(4), errors=errors)
    assert np.isnan([whole.slope, whole.intercept, whole.standard_error, whole.residual_variance]).all()
    assert kernel.fit_lines(np.empty((0, 5)), x, errors=errors).slope.shape == (0,)


def test_two_cells_of_two_seeds_have_no_error() -> None:
    """A line through two points leaves nothing to judge it by, whoever made them."""
    y = np.array([[0.1, nan, nan, 0.7], [nan, 0.2, 0.4, nan]])
    found = kernel.fit_lines(y, np.tile([0.0, 1.0], 2), errors="seed", cluster=np.array([0, 0, 1, 1]))
    np.testing.assert_allclose(found.slope, [0.6, -0.2])
    assert np.isnan(found.standard_error).all()


def test_seeds_at_one_dose_each_have_no_error_clustered_by_seed() -> None:
    """Residuals at each dose sum to 0, so clusters that are the doses show no spread, whatever it is."""
    y, dose = np.random.default_rng(2).random((20, 6)), np.repeat([0.0, 1.0], 3)
    found = kernel.fit_lines(y, dose, errors="seed", cluster=dose.astype(int))
    assert np.isnan(found.standard_error).all()


def test_hc3_has_no_error_where_a_dose_stands_alone() -> None:
    """The line goes through the only run at the other dose, whose leverage is 1: 0 / 0."""
    rng = np.random.default_rng(3)
    for _ in range(30):
        x = np.r_[np.full(3, rng.random()), 1 + rng.random()]
        assert np.isnan(kernel.fit_lines(rng.random((5, 4)), x, errors="hc3").standard_error).all()


def test_clustered_errors_are_the_t_interval_of_the_seeds_own_slopes() -> None:
    rng, x = np.random.default_rng(4), np.array([0.0, 1.0, 2.0, 5.0])
    y = rng.normal(size=(30, 5, 1)) + rng.normal(size=(30, 5, 1)) * x + rng.normal(size=(30, 5, 4))
    found = kernel.fit_lines(y.reshape(30, -1), np.tile(x, 5), errors="seed", cluster=np.repeat(np.arange(5), 4))
    assert set(found.df) == {4}
    half = stats.t.isf(0.025, 4) * found.standard_error
    for i in range(30):
        own = np.array([stats.linregress(x, scores).slope for scores in y[i]])
        low, high = stats.t.interval(0.95, 4, loc=own.mean(), scale=stats.sem(own))
        assert (found.slope[i] - half[i], found.slope[i] + half[i]) == pytest.approx((low, high), rel=1e-9)


def test_copied_seeds_have_no_error_by_seed() -> None:
    """Sums over seeds that cancel but for rounding are 0: copies say nothing of training again."""
    x = np.tile([0.0, 1.0, 2.0, 5.0], 3)
    y = np.tile([0.5, 0.9, 0.1, 0.52], 3) + np.arange(6.0)[:, None] / 7
    found = kernel.fit_lines(y, x, errors="seed", cluster=np.repeat(np.arange(3), 4))
    assert (found.standard_error == 0).all()
    assert (found.residual_variance > 0).all()


def test_gains_and_losses_that_cancel_are_no_rise(tmp_path: Path) -> None:
    """Three seeds rise by 1, by 0 and fall by 1: the slope is 0, not the 1e-17 that sums leave and that has a price."""
    doses, scores = (40.0, 80.0, 160.0), {"up": (0.0, 1.0, 1.0), "flat": (1.0, 1.0, 1.0), "down": (1.0, 0.0, 0.0)}
    y = np.array([np.concatenate([scores[name] for name in order]) for order in permutations(scores)])
    x, cluster = np.tile(doses, 3) / 100, np.repeat(np.arange(3), 3)
    centred = x - x.mean()
    assert (y @ centred != 0).any()  # rounding is there
    found = kernel.fit_lines(y, x, errors="seed", cluster=cluster)
    assert (found.slope == 0).all()
    assert (found.standard_error > 0.1).all()
    rows = [
        {"model": "org/m", "seed": seed, "axis": "SFT", "dose": dose, "task": "t", "item_id": item, "score": score}
        for item, order in enumerate(permutations(scores))
        for seed, name in enumerate(order)
        for dose, score in zip(doses, scores[name], strict=True)
    ]
    assert known_slopes(measured(tmp_path, pl.DataFrame(rows))).items["slope_sft"].to_list() == [0.0] * 6


def test_seeds_of_two_models_are_two_whatever_they_are_called(tmp_path: Path) -> None:
    drawn = to_frame(draw_panel(PanelSimulation(n_items=5, n_models=2, n_seeds=3, doses=(0.0, 1e9, 2e9))))
    seed = pl.when(pl.col("model") == "model-2").then(pl.col("seed") + 10).otherwise("seed")
    same, other = (
        known_slopes(measured(tmp_path / name, frame))
        for name, frame in (("same", drawn), ("other", drawn.with_columns(seed=seed)))
    )
    assert same.items.equals(other.items)
    assert set(same.fits["PT"].fits.df) == {5.0}


@pytest.mark.parametrize("errors", ERRORS)
def test_doses_that_are_large_and_close(errors: str) -> None:
    rng, near = np.random.default_rng(5), np.tile(np.arange(4.0), 3)
    y, cluster = rng.random((8, 12)), np.repeat(np.arange(3), 4)
    y[4:, 2] = nan
    found = kernel.fit_lines(y, 1e12 + near, errors=errors, cluster=cluster)
    want = kernel.fit_lines(y, near, errors=errors, cluster=cluster)
    for name in ("slope", "standard_error", "residual_variance", "df", "n_doses"):
        np.testing.assert_allclose(getattr(found, name), getattr(want, name), rtol=1e-9)


def test_doses_far_from_those_of_an_item_do_not_blur_its_line() -> None:
    near, rng = np.array([0.0, 1.0, 2.0, 3.0]), np.random.default_rng(6)
    y = np.c_[np.full(5, nan), rng.random((5, 4))]
    want = kernel.fit_lines(y[:, 1:], near)
    for far in (1e3, 1e6, 1e12):
        found = kernel.fit_lines(y, np.r_[0.0, far + near])
        np.testing.assert_allclose(found.slope, want.slope, rtol=1e-9)
        np.testing.assert_allclose(found.standard_error, want.standard_error, rtol=1e-9)


def test_blocks_of_items_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(7)
    x, cluster = np.tile([0.0, 1.0, 3.0], 3), np.repeat(np.arange(3), 3)
    y = rng.random((kernel.BLOCK_ITEMS + 3, 9))
    y[rng.random(y.shape) < 0.1] = nan
    for errors in ERRORS:
        whole = kernel.fit_lines(y, x, errors=errors, cluster=cluster)
        ends = kernel.fit_lines(y[-5:], x, errors=errors, cluster=cluster)
        for name in NAMES:
            np.testing.assert_allclose(getattr(whole, name)[-5:], getattr(ends, name), rtol=1e-9, atol=1e-14)
    curve = kernel.logit_slopes(y[:100], x)
    monkeypatch.setattr(kernel, "BLOCK_ITEMS", 7)
    assert [rows.stop - rows.start for rows in kernel.blocks(15)] == [7, 7, 7]
    np.testing.assert_allclose(kernel.logit_slopes(y[:100], x), curve, rtol=1e-9, atol=1e-12)
    agree(kernel.fit_lines(y[:100], x), y[:100], x, "ols", cluster)


def test_residuals_have_the_residual_variance() -> None:
    rng, x = np.random.default_rng(8), np.array([0.0, 1.0, 1.0, 2.0, 7.0])
    y = rng.random((30, 5))
    y[rng.random(y.shape) < 0.3] = nan
    fits = kernel.fit_lines(y, x)
    residual = kernel.fitted_residuals(y, x, fits)
    for i in range(30):
        want = plain_fit(y[i], x, "ols", x)
        if want["n"] < 3 or want["n_doses"] < 2:
            assert np.isnan(residual[i]).all()
            continue
        e = (y[i] - want["intercept"] - want["slope"] * x) * sqrt(want["n"] / (want["n"] - 2))
        np.testing.assert_allclose(residual[i], e, rtol=0, atol=1e-12)
        assert np.nanmean(residual[i] ** 2) == pytest.approx(want["residual_variance"], rel=1e-9)


@pytest.mark.parametrize("doses", [[0, 1, 2, 5, 9], [0, 1, 2], [0, 1], [0, 0, 1], [0, 1, 2, 3, 4, 5, 100]])
def test_logistic_curves_maximise_the_penalised_likelihood(doses: Sequence[float]) -> None:
    rng, x = np.random.default_rng(9), np.array(doses, dtype=float)
    y = np.vstack([rng.random((10, len(x))), (rng.random((10, len(x))) < 0.5), x > x.mean(), x < 1, 0 * x, 0 * x + 1])
    want = [penalised(row, x) for row in y]
    np.testing.assert_allclose(kernel.logit_slopes(y, x), want, rtol=1e-9, atol=1e-10)
    wide = np.insert(y, 1, nan, axis=1)  # a run that no item has, at a dose far away
    np.testing.assert_allclose(kernel.logit_slopes(wide, np.insert(x, 1, 20.0)), want, rtol=1e-9, atol=1e-10)


def test_logistic_curves_at_their_limits() -> None:
    x = np.arange(5.0)
    extremes = kernel.logit_slopes(np.array([[0.0] * 5, [1.0] * 5]), x)
    np.testing.assert_allclose(extremes, 0, atol=1e-9)
    steps = kernel.logit_slopes(np.array([[0, 0, 0, 1, 1], [1, 1, 1, 0, 0]]) * 1.0, x)
    assert 0.1 < steps[0] == pytest.approx(-steps[1], rel=1e-9)
    many = np.linspace(-1, 1, 4001)
    line = 0.5 + np.array([[0.001], [0.05]]) * many
    np.testing.assert_allclose(kernel.logit_slopes(line, many), [0.001, 0.05], rtol=3e-3)
    outside = np.array([[0, 0.2, 0.4, 0.6, 1.1], [-0.1, 0, 0, 0, 0], [0.2, nan, nan, nan, nan], [nan] * 5])
    assert np.isnan(kernel.logit_slopes(outside, x)).all()


@relaxed
@given(seed=seeds, n=st.integers(2, 12), spread=st.sampled_from([0.0, 0.3, 3.0]), unit=st.sampled_from([1.0, 1e-9]))
def test_shrunk_slopes_solve_the_moment_equation(seed: int, n: int, spread: float, unit: float) -> None:
    rng = np.random.default_rng(seed)
    se = rng.uniform(0.1, 1, size=3 * n)
    b, group = spread * rng.normal(size=3 * n) + se * rng.normal(size=3 * n), np.tile([4, 0, 7], n)
    best, sd = kernel.shrunk_slopes(unit * b, unit * se, group)
    for code in (0, 4, 7):
        at = group == code
        want, error = plain_shrunk(b[at], se[at])
        np.testing.assert_allclose(best[at] / unit, want, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(sd[at] ** 2 / unit**2, error**2, rtol=1e-9, atol=1e-9)
    order = rng.permutation(3 * n)
    moved = kernel.shrunk_slopes(unit * b[order], unit * se[order], group[order])
    np.testing.assert_allclose(moved, np.array([best, sd])[:, order], rtol=1e-9, atol=1e-12 * unit)


def test_shrunk_slopes_at_their_limits() -> None:
    b, one = np.array([0.1, 0.5, -0.3, 0.9]), np.zeros(4, dtype=int)
    best, sd = kernel.shrunk_slopes(b, np.zeros(4), one)
    np.testing.assert_allclose([best, sd], [b, np.zeros(4)], rtol=1e-12)  # a slope without error stays
    best, sd = kernel.shrunk_slopes(b, np.array([0.0, 1e3, 1e3, 0.0]), one)
    np.testing.assert_allclose(best[[0, 3]], [0.1, 0.9], rtol=1e-12)
    best, _ = kernel.shrunk_slopes(b, np.full(4, 1e3), one)
    np.testing.assert_allclose(best, b.mean(), rtol=1e-12)
    best, sd = kernel.shrunk_slopes(np.r_[b, nan, 0.2], np.r_[np.full(4, 0.1), 0.1, nan], np.zeros(6, dtype=int))
    assert np.isnan([best[4:], sd[4:]]).all()
    np.testing.assert_allclose(best[:4], kernel.shrunk_slopes(b, np.full(4, 0.1), one)[0], rtol=1e-12)


def test_a_slope_alone_in_its_group_keeps_its_error() -> None:
    """There is no one to learn from: nothing is gained, above all not certainty."""
    best, sd = kernel.shrunk_slopes(np.array([0.3, 0.1, 0.2]), np.array([0.1, 0.05, 0.07]), np.array([1, 0, 0]))
    assert best[0] == 0.3
    assert sd[0] == pytest.approx(0.1)


def test_corrected_slopes_have_the_true_sum_of_squares() -> None:
    rng, m = np.random.default_rng(10), 40
    beta, sigma = rng.normal(size=m), rng.uniform(0.2, 0.8, size=m)
    sums = []
    for _ in range(4000):
        b, se = beta + sigma * rng.normal(size=m), sigma * np.sqrt(rng.chisquare(4, size=m) / 4)
        scale = kernel.corrected_scale(b, se)
        assert scale == pytest.approx(sqrt(1 - sum(se**2) / sum(b**2)), rel=1e-12)
        sums.append(scale**2 * float(sum(b**2)))
    error = np.std(sums) / sqrt(len(sums))
    assert abs(np.mean(sums) - float(sum(beta**2))) < 4 * error
    assert kernel.corrected_scale(np.array([0.1, nan, 5.0]), np.array([0.2, 1.0, nan])) == 0
    assert isnan(kernel.corrected_scale(np.array([0.0, nan]), np.array([0.2, 1.0])))


def slopes_of(panel: Measurements, *, replicates: int = 39, **chosen: Any) -> SlopeEstimate | None:
    choices, limits, rng = (
        EstimateChoices(replicates=replicates, **chosen),
        EligibilityChoices(),
        np.random.default_rng(3),
    )
    return estimate_slopes(panel, prices=DEFAULT_PRICES, choices=choices, limits=limits, level=0.95, rng=rng)


def known_slopes(panel: Measurements, **chosen: Any) -> SlopeEstimate:
    found = slopes_of(panel, **chosen)
    assert found is not None
    return found


@pytest.fixture(scope="module")
def grid(tmp_path_factory: pytest.TempPathFactory) -> Measurements:
    """Three axes, three seeds; tasks of 15 and of 1 to 4 items; a run, a dose, a cell lack; task c leaves [0, 1]."""
    axes = SimulatedAxis("PT", (0, 1e9, 3e9), 4e-11, 4e-11), SimulatedAxis("RL", (0, 1e3, 2e3, 5e3), 1e-5, 2e-5)
    drawn = draw_grid(PanelSimulation(n_items=24, n_seeds=3, level_sd=0.2), (*axes, SimulatedAxis("SFT", (7.0,))))
    doc, on_rl = pl.col("doc_id").cast(pl.Int64), pl.col("axis") == "RL"
    lacking = on_rl & ((doc == 0) | ((doc == 1) & (pl.col("dose") > 0)))
    task = pl.when(doc < 15).then(pl.lit("large")).when(doc < 19).then(pl.lit("a")).when(doc < 23).then(pl.lit("b"))
    scaled = pl.when(doc < 23).then(pl.col("score").clip(0.0, 1.0)).otherwise(pl.col("score") + 1)
    frame = to_frame(drawn).with_columns(task=task.otherwise(pl.lit("c")), score=scaled)
    gap = (doc == 2) & (pl.col("model") == "PT-2") & (pl.col("seed") == 1)
    return measured(tmp_path_factory.mktemp("slopes"), frame.filter(~lacking, ~gap))


def test_slopes_of_items_in_a_panel(grid: Measurements) -> None:
    found = known_slopes(grid)
    assert found.axes == ("PT", "RL")
    assert any(note == "Axis SFT: a single dose, so no slope is estimable." for note in found.notes)
    assert any("smallest dose of each axis (6 runs)" in note for note in found.notes)
    runs = grid.runs.frame
    least = np.flatnonzero((runs["dose"] == 0).to_numpy())
    np.testing.assert_allclose(found.items["anchor"].to_numpy(), np.nanmean(grid.value[:, least], axis=1), rtol=1e-12)
    groups = np.where((grid.items["task"] == "large").to_numpy(), 1, 0)
    slopes = {}
    for axis, units in (("PT", 1e9), ("RL", 1e3)):
        at, name = np.flatnonzero((runs["axis"] == axis).to_numpy()), f"slope_{axis.lower()}"
        x, seed = runs["dose"].to_numpy()[at] / units, runs["seed"].to_numpy()[at]
        fits = [plain_fit(row, x, "seed", seed) for row in grid.value[:, at]]
        b, se, df = (np.array([fit[key] for fit in fits]) for key in ("slope", "standard_error", "df"))
        half = stats.t.isf(0.025, df) * se
        known = ~np.isnan(se)
        inside = (grid.items["task"] != "c").to_numpy()
        logit = np.where(known & inside, kernel.logit_slopes(grid.value[:, at], x), nan)
        best, sd = np.full(24, nan), np.full(24, nan)
        for group in (0, 1):
            mine = known & (groups == group)
            best[mine], sd[mine] = plain_shrunk(b[mine], se[mine])
        corrected = b * sqrt(1 - np.nansum(se**2) / np.nansum(b**2))
        want = {"": b, "_se": se, "_lo": b - half, "_hi": b + half, "_logit": logit, "_corrected": corrected}
        for suffix, values in (want | {"_eb": best, "_eb_sd": sd}).items():
            mine = found.items[name + suffix].fill_null(nan).to_numpy()
            np.testing.assert_allclose(mine, values, rtol=1e-9, atol=1e-10, err_msg=name + suffix)
        assert found.items[name + "_n"].to_list() == [fit["n"] for fit in fits]
        assert found.fits[axis].errors == "seed"
        slopes[axis] = b
    reasons = {0: "no run", 1: "a single dose"}
    assert found.items["rl_why"].to_list() == [reasons.get(doc) for doc in grid.items["doc_id"]]
    assert found.items["pt_why"].null_count() == 24
    with np.errstate(divide="ignore", invalid="ignore"):
        costs = [np.where(slopes[axis] > 0, DEFAULT_PRICES[axis].usd / slopes[axis], np.inf) for axis in slopes]
    cost = np.minimum(*costs)
    limited = [0.05 <= a <= 0.95 or task == "c" for task, a in found.items.select("task", "anchor").iter_rows()]
    inside = [np.isfinite(c) and within for c, within in zip(cost, limited, strict=True)]
    order = sorted((i for i in range(24) if inside[i]), key=lambda i: cost[i])
    assert found.items["rank"].to_list() == [order.index(i) + 1 if inside[i] else None for i in range(24)]
    assert 5 < len(order) < 24


def test_errors_are_chosen_and_seeds_found(grid: Measurements, tmp_path: Path) -> None:
    fits = known_slopes(grid).fits
    for axis in ("PT", "RL"):
        runs, seeds = grid.runs.frame[fits[axis].columns.tolist()], fits[axis].seeds
        assert seeds is not None
        assert (fits[axis].errors, runs["seed"].rank("dense").to_list()) == ("seed", (seeds + 1).tolist())
    for errors in ("ols", "hc3"):
        fit = known_slopes(grid, slope_errors=errors).fits["PT"]
        want = [plain_fit(row, fit.x, errors, fit.x)["standard_error"] for row in grid.value[:, fit.columns]]
        np.testing.assert_allclose(fit.fits.standard_error, want, rtol=1e-9)
    small = PanelSimulation(n_items=6, n_seeds=1, doses=(0.0, 1e12, 2e12), axis="FLOP", slope_mean=1e-13, slope_sd=0)
    single = known_slopes(measured(tmp_path / "single", draw_panel(small)))
    assert (single.fits["FLOP"].errors, single.fits["FLOP"].seeds, single.top) == ("ols", None, 0)
    assert single.items["rank"].null_count() == 6
    assert any("no price, so no costs" in note for note in single.notes)
    flat = draw_panel(PanelSimulation(n_items=4, n_seeds=2, doses=(1e9,)))
    assert slopes_of(measured(tmp_path / "flat", flat)) is None
