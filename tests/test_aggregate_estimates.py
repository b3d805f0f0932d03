"""The noise of the benchmark's own score, against analyses by hand."""

from __future__ import annotations

from dataclasses import replace
from math import nan, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats

from benchwright.estimating.aggregate import ALL, AggregateEstimate, estimate_aggregate
from benchwright.estimating.measure import Measurements
from benchwright.estimating.noise import seed_covariance
from benchwright.simulate import draw_panel, to_frame
from test_noise_estimates import SIMULATED, by_hand, changed, known_noise, measured, noise_of

Array = np.ndarray


def aggregate_of(panel: Measurements, step: float = 0.01) -> AggregateEstimate:
    return estimate_aggregate(panel, noise_of(panel), score_step=step)


def check_components(found: pl.DataFrame, values: Array, rows: dict[str, Any], trials: int | None = None) -> None:
    """Against analyses by hand of values (m, J, S, K), averaged over models by seeds less one."""
    assert found["scope"].to_list() == list(rows)
    for row in found.iter_rows(named=True):
        parts, shapes, sizes = [], [], []
        for model in range(values.shape[1]):
            block = values[rows[row["scope"]], model]
            block = block[:, ~np.isnan(block).all(axis=(0, 2))]
            whole = block[~np.isnan(block).any(axis=(1, 2))]
            if not whole.size:
                continue
            m, y = len(whole), whole.mean(axis=0)
            seed, rest = by_hand(y) if y.shape[1] > 1 else (float(y.var(ddof=1)), nan)
            one = nan if trials is None else (whole * (1 - whole) / (trials - 1)).mean(axis=(1, 2)).sum() / m**2
            of_seeds = whole.mean(axis=2)  # the mean over seeds varies by their variance over how many there are
            items = of_seeds.mean(axis=1).var(ddof=1) - of_seeds.var(axis=1, ddof=1).mean() / len(y)
            parts.append([seed, rest if trials is None else rest - one, one, items / m])
            shapes.append(y.shape)
            sizes.append(m)
        want = np.average(parts, axis=0, weights=[n_seeds - 1 for n_seeds, _ in shapes])
        mine = [nan if row[n] is None else row[n] for n in ("seed", "checkpoint_seed", "trials", "items")]
        np.testing.assert_allclose(mine, want, rtol=1e-9, atol=1e-15)
        assert row["n_items"] == min(sizes)
        assert (row["n_models"], row["n_seeds"], row["n_checkpoints"]) == (len(parts), *np.sum(shapes, axis=0))


LAST = "last 4 checkpoints"
SCOPES = {ALL: np.arange(14), "task-1": np.arange(7), "task-2": np.arange(7, 14)}


def test_components_of_the_score(tmp_path: Path) -> None:
    uneven = changed(draw_panel(SIMULATED), (2, 0, 1, 1), (slice(None), 1, 3))  # model 2 lacks a seed
    check_components(aggregate_of(measured(tmp_path / "uneven", uneven)).components, uneven.values, SCOPES)
    one = draw_panel(replace(SIMULATED, doses=(1e9,)))
    check_components(aggregate_of(measured(tmp_path / "one", one)).components, one.values, SCOPES)
    coins = draw_panel(replace(SIMULATED, trials=5, slope_mean=0.0, slope_sd=0.0, noise_sd=0.5))
    read = measured(tmp_path / "coins", to_frame(coins).with_columns(n_trials=5))
    check_components(aggregate_of(read).components, coins.values, SCOPES, trials=5)


def test_components_count_the_runs_that_they_are_of(tmp_path: Path) -> None:
    """Model 2 was never given task 2: its seeds are no part of that row."""
    drawn = changed(draw_panel(SIMULATED), (slice(7, 14), 1))
    check_components(aggregate_of(measured(tmp_path, drawn)).components, drawn.values, SCOPES)


def test_seeds_that_settle_a_difference(tmp_path: Path) -> None:
    drawn = draw_panel(SIMULATED)
    found = aggregate_of(measured(tmp_path / "some", drawn), 0.02)
    deviation = drawn.values - drawn.values.mean(axis=2, keepdims=True)
    S = np.einsum("ijst,kjst->ik", deviation, deviation) / 24  # 2 models, 4 checkpoints, 3 seeds to spare
    v, c = np.trace(S) / 14, (S.sum() - np.trace(S)) / (14 * 13)
    assert (found.mean_variance, found.mean_covariance) == pytest.approx((v, c), rel=1e-9)

    def reach(n_seeds: float) -> float:
        return float(stats.t.ppf(0.975, 2 * n_seeds - 2) + stats.t.ppf(0.8, 2 * n_seeds - 2))

    enough = [n for n in range(2, 1000) if n >= 2 * reach(n) ** 2 * S.mean() / 0.02**2]
    assert found.seeds_needed == enough[0] > 2
    few = aggregate_of(measured(tmp_path / "few", drawn), 0.9)
    assert few.seeds_needed == 2, "one training each leaves no variance to compare with"
    assert set(found.reliability["n_items"]) == {1, 4, 7, 14, 28, 56}
    for n_seeds, n_items, error, least, _ in found.reliability.fill_null(nan).iter_rows():
        assert error == pytest.approx(sqrt((v / n_items + (1 - 1 / n_items) * c) / n_seeds), rel=1e-9)
        want = reach(n_seeds) * sqrt(2) * error if n_seeds > 1 else nan
        assert least == pytest.approx(want, rel=1e-9, nan_ok=True)


def check_snr(found: pl.DataFrame, values: Array, rows: dict[str, Any], *, over: str | None) -> None:
    assert found["scope"].to_list() == list(rows)
    for row in found.iter_rows(named=True):
        y = values[rows[row["scope"]]].mean(axis=0)  # (J, S, K)
        path = y.mean(axis=1)
        signal, last = np.ptp(path[:, -1]) / abs(path[:, -1].mean()), y[:, :, -5:]
        by_seed = y[:, :, -1].std(axis=1, ddof=1) / path[:, -1] if y.shape[1] > 1 else nan
        by_run = np.nanmean(last.std(axis=2, ddof=1), axis=1) / np.nanmean(last.mean(axis=2), axis=1)
        noise = np.mean(by_run if path.shape[1] > 2 else by_seed)
        want = signal, noise, signal / noise
        mine = [nan if row[name] is None else row[name] for name in ("signal", "noise", "snr")]
        assert mine == pytest.approx(want, rel=1e-9, nan_ok=True)
        assert row["noise_over"] == over


@pytest.mark.parametrize(
    ("length", "n_seeds", "over"), [(4, 3, LAST), (7, 1, "last 5 checkpoints"), (2, 3, "seeds"), (2, 1, None)]
)
def test_signal_to_noise(length: int, n_seeds: int, over: str | None, tmp_path: Path) -> None:
    doses = tuple(1e9 * (k + 1) for k in range(length))
    drawn = draw_panel(replace(SIMULATED, doses=doses, n_seeds=n_seeds, n_models=3))
    check_snr(aggregate_of(measured(tmp_path, drawn)).snr, drawn.values, SCOPES, over=over)


def test_models_are_compared_on_the_items_that_all_have(tmp_path: Path) -> None:
    """A cell is missing of each model, of another item: means over different items would be no signal."""
    drawn = changed(draw_panel(SIMULATED), (0, 0, 0, 0), (1, 1, 2, 1))
    common = SCOPES | {ALL: np.arange(2, 14), "task-1": np.arange(2, 7)}
    check_snr(aggregate_of(measured(tmp_path, drawn)).snr, drawn.values, common, over=LAST)


def test_nothing_repeated_and_nothing_different(tmp_path: Path) -> None:
    single = draw_panel(replace(SIMULATED, n_seeds=1))
    found = aggregate_of(measured(tmp_path / "single", single))
    assert found.components.height == found.reliability.height == 0
    assert np.isnan([found.mean_variance, found.mean_covariance, found.seeds_needed]).all()
    check_snr(found.snr, single.values, SCOPES, over=LAST)
    noise = known_noise(measured(tmp_path / "same", draw_panel(replace(SIMULATED, noise_sd=0.0, n_seeds=6))))
    assert noise.notes[0].startswith("All runs of a checkpoint are identical")
    assert noise.items["sigma2"].to_list() == [0.0] * 14
    assert noise.items.select("sigma2_lo", "sigma2_hi", "rank", "rank_lo", "rank_hi").null_count().row(0) == (14,) * 5
    gaps = [(i, model, seed, i % 3) for i in range(14) for model in range(2) for seed in range(3)]  # one seed is left
    holed = known_noise(measured(tmp_path / "gaps", changed(draw_panel(SIMULATED), *gaps)))
    assert "take checkpoints for independent" in holed.notes[0]


def test_reliability_of_a_ranking(tmp_path: Path) -> None:
    """Against a two-way analysis by hand, and the stated spread of forty models."""
    drawn = draw_panel(replace(SIMULATED, n_items=30, n_tasks=1, n_models=40, n_seeds=3, doses=(1e9,), model_sd=0.1))
    found = aggregate_of(measured(tmp_path, drawn))
    scores, v, c = drawn.values[:, :, :, 0].mean(axis=2), found.mean_variance, found.mean_covariance
    m, J = scores.shape
    of_models = m * ((scores.mean(axis=0) - scores.mean()) ** 2).sum() / (J - 1)
    rest = scores - scores.mean(axis=1)[:, None] - scores.mean(axis=0) + scores.mean()
    of_rest = (rest**2).sum() / ((m - 1) * (J - 1))
    T, item = (of_models - of_rest) / m - c / 3, max(of_rest - (v - c) / 3, 0.0)
    for row in found.reliability.iter_rows(named=True):
        n, S = row["n_items"], row["n_seeds"]
        want = T / (T + item / n + (v / n + (1 - 1 / n) * c) / S)
        assert row["reliability"] == pytest.approx(want, rel=1e-9)
    assert pytest.approx(drawn.benchmark_mean.var(ddof=1), rel=0.15) == T
    alone = aggregate_of(measured(tmp_path / "alone", draw_panel(replace(SIMULATED, n_models=1))))
    assert alone.reliability["reliability"].null_count() == alone.reliability.height > 0


def test_items_without_noise_have_no_covariance(tmp_path: Path) -> None:
    same = measured(tmp_path, draw_panel(replace(SIMULATED, noise_sd=0.0, n_models=1)))
    assert seed_covariance(known_noise(same), same, np.arange(14)) is None
    assert aggregate_of(same).components.height == 0


def test_seeds_are_not_counted_where_items_cancel(tmp_path: Path) -> None:
    """Two items that move against each other leave the mean where it is: no standard error of 0, and no count."""
    frame = pl.DataFrame({"seed": [1, 1, 2, 2, 3, 3], "doc_id": [0, 1] * 3, "score": [0.1, 0.9, 0.5, 0.5, 0.8, 0.2]})
    found = aggregate_of(measured(tmp_path, frame.with_columns(model=pl.lit("a"), task=pl.lit("t"))))
    assert found.mean_variance > 0
    assert found.mean_variance / 2 + found.mean_covariance / 2 == pytest.approx(0, abs=1e-12)
    here = found.reliability.filter(pl.col("n_items") == 2)
    assert np.isnan(found.seeds_needed) or found.seeds_needed == 2
    assert (here["standard_error"].fill_null(1.0) > 0).all()
