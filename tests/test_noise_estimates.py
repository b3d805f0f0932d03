"""Noise of items: plain loops, dense matrices, closed forms, simulation, small panels."""

from __future__ import annotations

from dataclasses import replace
from math import comb, isnan, nan, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from benchwright.choices import DEFAULT_PRICES, EligibilityChoices, EstimateChoices
from benchwright.errors import UsageError
from benchwright.estimating import _noise as kernel
from benchwright.estimating.measure import Measurements, measure
from benchwright.estimating.noise import NoiseEstimate, estimate_noise, seed_covariance, seed_grids
from benchwright.panel.ingest import read_logs
from benchwright.simulate import PanelSimulation, SimulatedGrid, SimulatedPanel, draw_panel, to_frame
from noise_twins import plain_dependence, plain_residuals, plain_share, plain_traces, rho_of

relaxed = settings(deadline=None, max_examples=40)
seeds = st.integers(0, 2**32 - 1)
LAYOUTS = {
    "balanced": [0, 1, 2] * 3,
    "unbalanced": [0, 0, 0, 0, 1, 1, 2, 3, 3],
    "one run": [0],
    "no pair": [0, 1, 2, 3],
}
SIMULATED = PanelSimulation(
    n_items=14,
    n_tasks=2,
    n_seeds=4,
    doses=(1e9, 2e9, 3e9, 5e9),
    n_models=2,
    level=0.4,
    slope_mean=3e-11,
    slope_sd=3e-11,
    persistent=0.5,
)


def measured(folder: Path, drawn: SimulatedPanel | SimulatedGrid | pl.DataFrame) -> Measurements:
    """The values of a simulated panel after its logs were written and read."""
    (folder / "logs").mkdir(parents=True)
    (drawn if isinstance(drawn, pl.DataFrame) else to_frame(drawn)).write_csv(folder / "logs" / "runs.csv")
    read_logs(folder / "logs", folder / "panel")
    return measure(folder / "panel", choices=EstimateChoices(), prices=DEFAULT_PRICES)


def noise_of(panel: Measurements, **chosen: Any) -> NoiseEstimate | None:
    fixed: Any = {"limits": EligibilityChoices(), "level": 0.95, "top_share": 0.1, "rng": np.random.default_rng(3)}
    return estimate_noise(panel, **{"source": "auto", "replicates": 39, **fixed, **chosen})


def known_noise(panel: Measurements, **chosen: Any) -> NoiseEstimate:
    noise = noise_of(panel, **chosen)
    assert noise is not None
    return noise


def changed(drawn: SimulatedPanel, *gaps: tuple[Any, ...]) -> SimulatedPanel:
    """The panel without the cells at these places (item, model, seed, checkpoint)."""
    values = drawn.values.copy()
    for place in gaps:
        values[place] = nan
    return replace(drawn, values=values)


def grid_of(n_seeds: int, length: int) -> kernel.SeedGrid:
    """Runs in the order seed 0 at all checkpoints, seed 1, ..."""
    return kernel.SeedGrid(np.arange(n_seeds * length).reshape(n_seeds, length))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("share", [0.0, 0.4])
def test_residuals_and_pooled_variance_in_plain_loops(layout: str, share: float) -> None:
    rng, checkpoint = np.random.default_rng(1), np.array(LAYOUTS[layout])
    values = rng.random((40, len(checkpoint)))
    values[rng.random(values.shape) < share] = nan
    residual = kernel.residuals(values, checkpoint)
    sigma2, df = kernel.pooled_variance(residual, checkpoint)
    for i, row in enumerate(values.tolist()):
        np.testing.assert_allclose(residual[i], plain_residuals(row, checkpoint.tolist()), rtol=0, atol=1e-14)
        groups = [[v for v, c in zip(row, checkpoint, strict=True) if c == t and not isnan(v)] for t in range(4)]
        several = [group for group in groups if len(group) > 1]
        assert df[i] == sum(len(group) - 1 for group in several)
        squares = sum(float(np.var(group)) * len(group) for group in several)
        assert sigma2[i] == pytest.approx(squares / df[i] if df[i] else nan, abs=1e-13, nan_ok=True)
    assert np.isnan(sigma2).all() == (layout in ("one run", "no pair"))


def test_equal_scores_differ_by_nothing() -> None:
    values = np.repeat(np.random.default_rng(2).random((500, 1)), 11, axis=1)
    values[::3, 4] = nan
    residual = kernel.residuals(values, np.zeros(11, dtype=int))
    assert (residual[~np.isnan(values)] == 0).all()
    assert np.isnan(residual[np.isnan(values)]).all()


@relaxed
@given(seed=seeds, n_seeds=st.integers(3, 6), length=st.integers(1, 8), share=st.sampled_from([0.0, 0.05]))
def test_dependence_from_dense_covariances(seed: int, n_seeds: int, length: int, share: float) -> None:
    rng = np.random.default_rng(seed)
    persistent = rng.random()
    cells = sqrt(persistent) * rng.normal(size=(30, n_seeds, 1)) + rng.normal(size=(30, n_seeds, length))
    values, grid = cells.reshape(30, -1), grid_of(n_seeds, length)
    values[rng.random(values.shape) < share] = nan
    residual = kernel.residuals(values, np.tile(np.arange(length), n_seeds))
    rho, size = kernel.dependence(residual, grid)
    assert (rho, size) == pytest.approx(plain_dependence(residual, grid), rel=1e-9, nan_ok=True)
    if isnan(rho):
        return
    assert 1 <= rho <= length
    assert kernel.dependence(residual[::-1] * 7, grid) == pytest.approx((rho, 49 * size), rel=1e-9)


def test_both_traces_are_unbiased_and_their_ratio_is_found() -> None:
    rng, n_seeds, length = np.random.default_rng(3), 4, 5
    root = rng.normal(size=(length, length)) + 2.0
    S = root @ root.T
    values = (rng.normal(size=(9_000, n_seeds, length)) @ root.T).reshape(9_000, -1)
    residual = kernel.residuals(values, np.tile(np.arange(length), n_seeds))
    traces = np.array(plain_traces(residual, grid_of(n_seeds, length)))
    error = traces.std(axis=0, ddof=1) / sqrt(len(traces))
    truth = np.array([np.trace(S @ S), np.trace(S) ** 2])
    assert (np.abs(traces.mean(axis=0) - truth) / error).max() < 4
    found = rho_of(residual, grid_of(n_seeds, length))  # more than one block of items
    assert found == pytest.approx(traces[:, 1].sum() / traces[:, 0].sum(), rel=1e-9)
    assert found == pytest.approx(truth[1] / truth[0], rel=0.05)


def test_dependence_where_the_answer_is_known() -> None:
    rng, checkpoint = np.random.default_rng(4), np.tile(np.arange(6), 5)
    seed, fresh = np.repeat(rng.normal(size=(20_000, 5)), 6, axis=1), rng.normal(size=(20_000, 30))
    grid, own = grid_of(5, 6), kernel.residuals
    assert rho_of(own(fresh, checkpoint), grid) == pytest.approx(6, rel=0.03)
    assert rho_of(own(seed, checkpoint), grid) == pytest.approx(1, rel=1e-12)
    # unit variances and correlation 1/2: (tr S)^2 / tr S^2 = 36 / (6 + 30 / 4)
    assert rho_of(own(seed + fresh, checkpoint), grid) == pytest.approx(36 / 13.5, rel=0.03)
    assert isnan(rho_of(own(0 * seed, checkpoint), grid))
    assert isnan(rho_of(fresh, grid_of(1, 6)))
    assert rho_of(fresh, grid_of(2, 6)) == 1, "two seeds do not tell: the cautious end"
    gaps = np.where(rng.random((20_000, 30)) < 0.1, nan, seed + fresh)
    assert 0.8 < rho_of(own(gaps, checkpoint), grid) / (36 / 13.5) < 1.02, "gaps err on the cautious side"
    gone = np.where(np.isin(np.arange(30), [0, 6, 12, 18]), nan, seed + fresh)  # one seed is left at a checkpoint
    assert isnan(rho_of(own(gone, checkpoint), grid))


def test_runs_beside_the_grid_do_not_move_its_dependence() -> None:
    """Residuals are about the mean of all runs of a checkpoint, the grid has but some of them."""
    rng = np.random.default_rng(5)
    values = np.repeat(rng.normal(size=(400, 9)), 4, axis=1) + rng.normal(size=(400, 36))
    checkpoint, grid = np.tile(np.arange(4), 9), grid_of(3, 4)
    alone = rho_of(kernel.residuals(values[:, :12], checkpoint[:12]), grid)
    assert rho_of(kernel.residuals(values, checkpoint), grid) == pytest.approx(alone, rel=1e-9)


def test_effective_share_is_satterthwaites_and_gives_the_variance_of_pooled_variances() -> None:
    rng, m = np.random.default_rng(6), 40_000
    shapes, parts = [(4, 5, 0.8), (6, 3, 0.2), (3, 1, 0.0), (1, 4, 0.5)], []
    for n_seeds, length, share in shapes:
        own, fresh = rng.normal(size=(m, n_seeds, 1)), rng.normal(size=(m, n_seeds, length))
        parts.append((sqrt(share) * own + sqrt(1 - share) * fresh).reshape(m, -1))
    ends = np.cumsum([0] + [part.shape[1] for part in parts])
    checkpoint = np.concatenate([10 * g + np.tile(np.arange(k), s) for g, (s, k, _) in enumerate(shapes)])
    grids = [kernel.SeedGrid(a + np.arange(s * k).reshape(s, k)) for a, (s, k, _) in zip(ends, shapes, strict=False)]
    residual = kernel.residuals(np.hstack(parts), checkpoint)
    share = kernel.effective_share(residual, grids)
    assert share == pytest.approx(plain_share(residual[:3_000], grids[:3]), rel=0.02)
    sigma2, df = kernel.pooled_variance(residual, checkpoint)
    assert sigma2.var() == pytest.approx(2 / (share * df[0]), rel=0.03)
    assert isnan(kernel.effective_share(residual, grids[3:]))
    assert isnan(kernel.effective_share(residual, []))
    fresh = kernel.residuals(rng.normal(size=(m, 20)), checkpoint[:20])
    assert kernel.effective_share(fresh, grids[:1]) == pytest.approx(1, rel=0.03)
    locked = kernel.residuals(np.repeat(rng.normal(size=(m, 4)), 5, axis=1), checkpoint[:20])
    assert kernel.effective_share(locked, grids[:1]) == pytest.approx(1 / 5, rel=1e-9)


def test_interval_of_a_variance_leaves_the_tails_outside() -> None:
    sigma2, df = np.array([2.0, 0.5, 1.0, nan, 1.0]), np.array([3.0, 7.5, 0.0, 4.0, nan])
    low, high = kernel.variance_interval(sigma2, df, 0.9)
    for i in range(2):
        assert stats.gamma.cdf(df[i] * sigma2[i] / low[i] / 2, df[i] / 2) == pytest.approx(0.95, abs=1e-12)
        assert stats.gamma.cdf(df[i] * sigma2[i] / high[i] / 2, df[i] / 2) == pytest.approx(0.05, abs=1e-12)
    assert np.isnan([low[2:], high[2:]]).all()


def by_hand(y: np.ndarray) -> tuple[float, float]:
    """Two-way analysis of y (seeds, checkpoints) without repeats: variances of seeds and of the rest."""
    n_seeds, length = y.shape
    grand = sum(sum(row) for row in y) / y.size
    of_seed = [sum(row) / length for row in y]
    of_checkpoint = [sum(column) / n_seeds for column in y.T]
    ms_seed = length * sum((one - grand) ** 2 for one in of_seed) / (n_seeds - 1)
    rest = sum((y[s, t] - of_seed[s] - of_checkpoint[t] + grand) ** 2 for s in range(n_seeds) for t in range(length))
    ms_rest = rest / ((n_seeds - 1) * (length - 1)) if length > 1 else nan
    return (ms_seed - ms_rest) / length, ms_rest


@relaxed
@given(seed=seeds, n_seeds=st.integers(2, 6), length=st.integers(2, 6))
def test_components_by_hand(seed: int, n_seeds: int, length: int) -> None:
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(5, n_seeds * length + 2)) + 3
    grid = kernel.SeedGrid(rng.permutation(n_seeds * length + 2)[: n_seeds * length].reshape(n_seeds, length))
    values[4, grid.runs[0, 1]] = nan
    split = kernel.components(values, grid)
    want = np.array([by_hand(row[grid.runs]) for row in values[:4]])
    np.testing.assert_allclose(np.stack([split.seed, split.remainder], axis=1)[:4], want, rtol=1e-9, atol=1e-12)
    assert np.isnan([split.seed[4], split.remainder[4]]).all()
    of_runs = kernel.components(np.nanmean(values[:4], axis=0, keepdims=True), grid)
    assert (of_runs.seed[0], of_runs.remainder[0]) == pytest.approx(by_hand(values[:4].mean(axis=0)[grid.runs]))


@relaxed
@given(
    seed=seeds, m=st.integers(1, 6), n=st.integers(2, 8), common=st.sampled_from([0.0, 0.5, 3.0]), K=st.integers(1, 3)
)
def test_shrunk_and_average_covariance_against_dense_matrices(seed: int, m: int, n: int, common: float, K: int) -> None:
    rng = np.random.default_rng(seed)
    cells = rng.normal(size=(m, n, K)) + common * rng.normal(size=(n, K))
    residual = (cells - cells.mean(axis=1, keepdims=True)).reshape(m, n * K)
    df, training = (n - 1.0) * K, np.repeat(rng.permutation(n), K)
    found = kernel.shrunk_covariance(residual, df, training)
    S = sum(np.outer(column, column) for column in residual.T) / df
    top = bottom = 0.0
    for i in range(m):
        for j in range(m):
            if i != j:  # Var(s_ij) = n / (n - 1) sum_s (w_s - mean w)^2, w_s the sum of products of one training
                w = (residual[i] * residual[j]).reshape(n, K).sum(axis=1) / df
                top += n / (n - 1) * sum((one - sum(w) / n) ** 2 for one in w)
                bottom += S[i, j] ** 2
    dense = np.diag(found.variance) + found.factor @ found.factor.T
    if m > 1:
        shrinkage = min(1.0, top / bottom)
        assert found.shrinkage == pytest.approx(shrinkage, rel=1e-9)
        want = (1 - shrinkage) * S + shrinkage * np.diag(np.diag(S))
        np.testing.assert_allclose(dense, want, rtol=1e-9, atol=1e-12)
    assert 0 <= found.shrinkage <= 1
    np.testing.assert_allclose(np.diag(dense), (residual**2).sum(axis=1) / df, rtol=1e-12)
    assert np.linalg.eigvalsh(dense).min() > -1e-12
    v, c = kernel.average_covariance(residual, df)
    others = [S[i, j] for i in range(m) for j in range(m) if i != j]
    assert v == pytest.approx(np.mean(np.diag(S)), rel=1e-9)
    assert c == pytest.approx(np.mean(others) if others else nan, rel=1e-9, abs=1e-12, nan_ok=True)
    if m > 1:
        assert v / m + (1 - 1 / m) * c == pytest.approx((residual.mean(axis=0) ** 2).sum() / df, rel=1e-9, abs=1e-12)


def test_ends_of_t_intervals() -> None:
    values = np.random.default_rng(8).normal(size=7)
    mean, error = values.mean(keepdims=True), np.array([stats.sem(values)])
    found = kernel.t_ends(mean, error, np.array([6.0]), 0.9)
    assert np.ravel(found) == pytest.approx(stats.t.interval(0.9, 6, loc=mean[0], scale=error[0]), rel=1e-12)
    assert np.isnan(kernel.t_ends(mean, np.array([nan]), np.array([6.0]), 0.9)).all()
    assert kernel.known_mean(np.array([[1.0, nan, 2.0], [nan, nan, nan]])) == pytest.approx([1.5, nan], nan_ok=True)


@pytest.fixture(scope="module")
def panel(tmp_path_factory: pytest.TempPathFactory) -> tuple[SimulatedPanel, Measurements]:
    """Two models, four seeds, four checkpoints, two tasks; an item with gaps, one with a single run, one constant."""
    drawn = draw_panel(SIMULATED)
    drawn.values[2] = 0.1 + 0.2
    drawn = changed(drawn, (0, 0, 1, 2), (0, 1, slice(1, 4), 0), (1, slice(None), slice(1, 4)), (1, 1), (1, 0, 0, 1))
    return drawn, measured(tmp_path_factory.mktemp("noise"), drawn)


def test_seeds_by_checkpoints_form_grids(panel: tuple[SimulatedPanel, Measurements]) -> None:
    frame = panel[1].runs.frame
    grids = seed_grids(frame)
    assert [grid.runs.shape for grid in grids] == [(4, 4), (4, 4)]
    for place, grid in enumerate(grids):
        rows = frame[grid.runs.ravel().tolist()]
        assert rows["seed"].to_list() == np.repeat(range(4), 4).tolist()
        assert rows["step"].to_list() == [1, 2, 3, 4] * 4
        assert set(rows["model"]) == {f"model-{place + 1}"}
    model, step, seed = (pl.col(name) for name in ("model", "step", "seed"))
    left = frame.filter(~((model == "model-1") & (seed == 2) & (step == 3)), (model == "model-1") | (step == 1))
    assert [grid.runs.tolist() for grid in seed_grids(left)] == [
        [[0, 1, 3], [4, 5, 7], [8, 9, 10], [11, 12, 14]],  # (4 - 1) x 3 against (3 - 1) x 4
        [[15], [16], [17], [18]],
    ]
    nameless = left.with_columns(seed=pl.lit(None, dtype=pl.Int64), replicate=-1 - pl.int_range(pl.len()))
    assert [grid.runs.tolist() for grid in seed_grids(nameless)] == [[[18], [17], [16], [15]]]
    assert seed_grids(frame.filter(seed == 0)) == []


def test_noise_of_items_in_a_panel(panel: tuple[SimulatedPanel, Measurements]) -> None:
    drawn, read = panel
    noise = known_noise(read)
    assert noise.source == "seeds"
    share = plain_share(noise.residual, noise.grids)
    assert noise.effective_share == pytest.approx(share, rel=1e-9)
    tail = [0.025, 0.975]
    for row in noise.items.iter_rows(named=True):
        cells = [list(group[~np.isnan(group)]) for model in drawn.values[row["doc_id"]] for group in model.T]
        known, several = [v for group in cells for v in group], [group for group in cells if len(group) > 1]
        assert row["mean_score"] == pytest.approx(np.mean(known), rel=1e-9)
        assert (row["n_values"], row["n_checkpoints"]) == (len(known), len(several))
        df = sum(len(group) - 1 for group in several)
        if not df:
            assert row["noise_why"] == "no two runs at one checkpoint"
            assert [row[name] for name in ("sigma2", "sigma2_lo", "sigma2_hi", "sigma2_df", "rank")] == [None] * 5
            continue
        sigma2 = sum(float(np.var(group)) * len(group) for group in several) / df
        assert row["noise_why"] is None
        assert row["sigma2"] == pytest.approx(sigma2, rel=1e-9, abs=1e-20)
        assert row["sigma2_df"] == pytest.approx(df * share, rel=1e-9)
        if row["doc_id"] == 2:
            assert (row["sigma2"], row["sigma2_lo"], row["sigma2_hi"], row["rank"]) == (0, None, None, None)
            continue
        high, low = df * share * sigma2 / stats.chi2.ppf(tail, df * share)
        assert (row["sigma2_lo"], row["sigma2_hi"]) == pytest.approx((low, high), rel=1e-9)
    assert any("2 models" in note for note in noise.notes)
    assert noise.notes[-1] == "Noise of 1 item is not estimable: no two runs at one checkpoint."
    whole = np.arange(3, 14)
    covariance = seed_covariance(noise, read, whole)
    assert covariance is not None
    dense = covariance.variance + (covariance.factor**2).sum(axis=1)
    np.testing.assert_allclose(dense, noise.items["sigma2"].to_numpy()[whole], rtol=1e-9)
    assert seed_covariance(noise, read, np.array([0, 3])) is None


def spread_of_variance(sigma2: float, n: int) -> float:
    """Variance of the sample variance of n draws of 0 or 1, by enumeration, over that of normal ones; inverted."""
    v = min(sigma2, 0.25)
    p = 0.5 + sqrt(0.25 - v)
    chance = [comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)]
    found = [k * (n - k) / n / (n - 1) for k in range(n + 1)]
    spread = sum(c * f**2 for c, f in zip(chance, found, strict=True)) - v**2
    return (2 * v**2 / (n - 1)) / spread


def test_right_or_wrong_scores_correct_their_degrees_of_freedom(tmp_path: Path) -> None:
    drawn = draw_panel(replace(SIMULATED, n_models=1, trials=1, level=0.2, level_sd=1, slope_mean=0, slope_sd=0))
    noise = known_noise(measured(tmp_path, drawn))
    checked = 0
    for row in noise.items.filter(pl.col("sigma2") > 0).iter_rows(named=True):
        share = spread_of_variance(row["sigma2"], 4)
        assert row["sigma2_df"] == pytest.approx(12 * noise.effective_share * share, rel=1e-9)
        checked += 1
    assert checked > 5


def test_noise_of_single_trials_where_no_seeds_are_repeated(tmp_path: Path) -> None:
    drawn = draw_panel(replace(SIMULATED, n_models=1, n_seeds=1, trials=5, level_sd=1, slope_mean=0, slope_sd=0))
    panel = measured(tmp_path / "trials", to_frame(drawn).with_columns(n_trials=5))
    noise = known_noise(panel)
    assert (noise.source, noise.grids, noise.residual.shape) == ("trials", [], (14, 0))
    assert "single trials" in noise.notes[0]
    for row in noise.items.iter_rows(named=True):
        p = drawn.values[row["doc_id"], 0, 0]
        sigma2 = float(np.mean(5 * p * (1 - p) / 4))
        assert row["sigma2"] == pytest.approx(sigma2, rel=1e-9)
        share = spread_of_variance(sigma2, 5) if sigma2 else 1
        assert row["sigma2_df"] == pytest.approx(16 * share, rel=1e-9)
        assert (row["n_values"], row["n_checkpoints"]) == (4, 4)
    assert noise_of(panel, source="seeds") is None
    single = measured(tmp_path / "single", draw_panel(replace(SIMULATED, n_seeds=1)))
    assert noise_of(single) is noise_of(single, source="trials") is None


def test_too_few_replicates_for_the_level(panel: tuple[SimulatedPanel, Measurements]) -> None:
    with pytest.raises(UsageError, match=r"at least 39 for intervals of level 0\.95, got 38"):
        noise_of(panel[1], replicates=38)
