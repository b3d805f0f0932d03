"""Re-rankings, one replicate at a time, against those in chunks; and the noise of the benchmark's own score."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import isinf, isnan, nan, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from benchwright.estimating import _resampling as kernel
from benchwright.estimating._slopes import fit_lines, seed_scores
from benchwright.estimating.slopes import slope_draws
from benchwright.simulate import draw_panel
from test_noise_estimates import SIMULATED, changed, known_noise, measured
from test_slope_estimates import known_slopes

relaxed = settings(deadline=None, max_examples=40)
seeds = st.integers(0, 2**32 - 1)
Array = np.ndarray
B, NAMES = kernel.CHUNK, ("low", "high", "first", "last")


def same_stream(seed: int) -> tuple[np.random.Generator, np.random.Generator]:
    return np.random.default_rng(seed), np.random.default_rng(seed)


def widened(row: Array, at: Array) -> Array:
    """A row times sqrt(n / (n - 1)) of the n seeds that it has of a group, 0 where it has but one."""
    n = int((~np.isnan(row[at])).sum())
    return row * (sqrt(n / (n - 1)) if n > 1 else 0.0)


def plain_variances(residual: Array, groups: Sequence[Array], rng: np.random.Generator) -> Array:
    """A chunk of pooled variances of seeds drawn again, a replicate and an item at a time."""
    drawn = [rng.integers(len(at), size=(B, len(at))) for at in groups]
    out = np.full((len(residual), B), nan)
    for i, row in enumerate(residual):
        for b in range(B):
            squares = df = 0.0
            for at, draw in zip(groups, drawn, strict=True):
                wide = widened(row, at)
                picked = [wide[at[place]] for place in draw[b] if not isnan(row[at[place]])]
                squares += sum((value - sum(picked) / len(picked)) ** 2 for value in picked)
                df += max(len(picked) - 1, 0)
            out[i, b] = squares / df if df else nan
    return out


def levers(x: Array) -> Array:
    """Weights of the scores in a slope."""
    return (x - x.mean()) / ((x - x.mean()) ** 2).sum()


def plain_slopes(slope: Array, residual: Array, x: Array, rng: np.random.Generator) -> Array:
    """A chunk of slopes, one draw of models for all items."""
    uniform, out = rng.random((B, len(x))), np.repeat(slope[:, None], B, axis=1)
    for i, row in enumerate(residual):
        own = np.flatnonzero(~np.isnan(row))
        for b in range(B if len(own) and not isnan(slope[i]) else 0):
            picked = [row[own[int(uniform[b, j] * len(own))]] for j in own]
            out[i, b] = slope[i] + sum(a * e for a, e in zip(levers(x[own]), picked, strict=True))
    return out


def plain_independent(slope: Array, residual: Array, x: Array, rng: np.random.Generator) -> Array:
    """A chunk of slopes, a draw for each item: items of one pattern together, patterns in order of their bits."""
    out, patterns = np.repeat(slope[:, None], B, axis=1), {}
    for i, row in enumerate(residual):
        if not np.isnan(row).all() and not isnan(slope[i]):
            patterns.setdefault(tuple((~np.isnan(row)).tolist()), []).append(i)
    for pattern, rows in sorted(patterns.items()):
        own = np.flatnonzero(pattern)
        for start in range(0, len(rows), kernel.ITEM_BLOCK):
            block = rows[start : start + kernel.ITEM_BLOCK]
            drawn = rng.integers(len(own), size=(len(block), B * len(own))).reshape(len(block), B, len(own))
            for i, mine in zip(block, drawn, strict=True):
                out[i] += [sum(levers(x[own]) * residual[i, own[places]]) for places in mine]
    return out


def plain_by_seed(y: Array, x: Array, seed: Array, rng: np.random.Generator) -> Array:
    """A chunk of slopes, seeds drawn again with all the runs that an item has of them."""
    names = np.unique(seed)
    drawn, out = rng.integers(len(names), size=(B, len(names))), np.empty((len(y), B))
    for i, row in enumerate(y):
        own = ~np.isnan(row)
        slope, intercept = np.polyfit(x[own], row[own], 1)
        parts = levers(x[own]) * (row[own] - intercept - slope * x[own])
        of_seed = [sum(parts[seed[own] == name]) for name in names]
        there = len(np.unique(seed[own]))
        out[i] = [slope + sqrt(there / (there - 1)) * sum(of_seed[s] for s in places) for places in drawn]
    return out


def plain_ranks(values: Array) -> tuple[Array, Array]:
    """First and last places (m, b) that items may have: finite values first, then infinite ones, then NaN."""
    low, high = np.empty(values.shape, dtype=int), np.empty(values.shape, dtype=int)
    for b, column in enumerate(values.T.tolist()):
        key = [(2, 0.0) if isnan(v) else (1, 0.0) if isinf(v) else (0, v) for v in column]
        for i, mine in enumerate(key):
            low[i, b] = 1 + sum(other < mine for other in key)
            high[i, b] = sum(other <= mine for other in key)
    return low, high


def plain_tails(values: Array, level: float, top: int) -> tuple[Array, ...]:
    """Low, high, first and last from all replicates (m, B) at once; a tie has equal shares in all its places."""
    (low, high), m = plain_ranks(values), len(values)
    k = round((values.shape[1] + 1) * (1 - level) / 2 * 1e6) // 10**6
    places = np.arange(1, m + 1)
    held = (places >= low[..., None]) & (places <= high[..., None])
    share = held / held.sum(axis=2, keepdims=True)
    first, last = share[..., :top].sum(axis=2).mean(axis=1), share[..., m - top :].sum(axis=2).mean(axis=1)
    return np.sort(low, axis=1)[:, k - 1], np.sort(high, axis=1)[:, -k], first, last


def chunks_of(values: Array) -> kernel.Draw:
    """A draw that hands out stored replicates (m, B); what is left of the last chunk is not to be used."""
    parts: Iterator[Array] = (values[:, start : start + B] for start in range(0, values.shape[1], B))
    return lambda: np.pad(part := next(parts), ((0, 0), (0, B - part.shape[1])), constant_values=-1e9)


@relaxed
@example(seed=16504, share=0.3, sizes=[2, 2])  # no variance, and squares that differ from 0 by rounding
@given(seed=seeds, share=st.sampled_from([0.0, 0.3, 0.7]), sizes=st.lists(st.integers(2, 5), min_size=1, max_size=4))
def test_seed_variances_one_at_a_time(seed: int, share: float, sizes: list[int]) -> None:
    first, second = same_stream(seed)
    rng = np.random.default_rng(seed + 1)
    n = sum(sizes) + 2
    groups = np.split(rng.permutation(n)[: sum(sizes)], np.cumsum(sizes)[:-1])
    residual = rng.normal(size=(7, n))
    residual[rng.random(residual.shape) < share] = nan
    residual[6] = 0.0
    draw = kernel.SeedVariances(residual, groups, first)
    for _ in range(2):
        np.testing.assert_allclose(draw(), plain_variances(residual, groups, second), rtol=1e-9, atol=1e-14)


@relaxed
@given(seed=seeds, share=st.sampled_from([0.0, 0.3]), shared=st.booleans())
def test_slope_replicates_one_at_a_time(seed: int, share: float, shared: bool) -> None:
    first, second = same_stream(seed)
    rng = np.random.default_rng(seed + 1)
    x, slope, residual = np.array([0.0, 1, 1, 3, 4, 4, 8, 9, 9, 11]), rng.normal(size=9), rng.normal(size=(9, 10))
    residual[rng.random(residual.shape) < share] = nan
    residual[:, [0, 3]] = rng.normal(size=(9, 2))
    residual[7], residual[8], slope[8] = nan, nan, nan
    draw = kernel.SlopeReplicates(slope, residual, x, first, shared=shared)
    plain = plain_slopes if shared else plain_independent
    for _ in range(2):
        found = draw()
        np.testing.assert_allclose(found, plain(slope, residual, x, second), rtol=1e-9, atol=1e-12)
        assert (found[7] == slope[7]).all(), "an item without residuals keeps its slope"
    assert kernel.SlopeReplicates(slope, np.full((9, 10), nan), x, first, shared=shared)().shape == (9, B)


def test_slope_replicates_by_seed_one_at_a_time() -> None:
    first, second = same_stream(1)
    rng = np.random.default_rng(2)
    seed, x, y = rng.permutation(np.repeat([3, 5, 8, 9], 3)), rng.random(12), rng.normal(size=(6, 12))
    y[0, 4], y[1, [0, 7]], y[2, seed == 5] = nan, nan, nan
    fits = fit_lines(y, x, errors="seed", cluster=seed)
    draw = kernel.SeedSlopeReplicates(fits.slope, seed_scores(y, x, fits, seed), first)
    for _ in range(3):
        np.testing.assert_allclose(draw(), plain_by_seed(y, x, seed, second), rtol=1e-9, atol=1e-12)
    assert np.isnan(seed_scores(y[:1, :3], x[:3], fit_lines(y[:1, :3], x[:3]), np.zeros(3, dtype=int))).all()


def test_an_item_with_a_gap_in_a_grid_of_seeds_still_varies() -> None:
    """One missing cell is no certainty: its replicates spread about as they would with the cell."""
    rng = np.random.default_rng(3)
    seed, x, y = np.repeat(np.arange(4), 5), np.tile(np.arange(5.0), 4), rng.normal(size=(8, 20))
    holed = y.copy()
    holed[::2, 3] = nan
    one, other = (
        kernel.SeedSlopeReplicates(
            np.zeros(8), seed_scores(scores, x, fit_lines(scores, x), seed), np.random.default_rng(4)
        )().std(axis=1)
        for scores in (y, holed)
    )
    np.testing.assert_allclose(other[1::2], one[1::2], rtol=1e-12)
    assert (other[::2] > one[::2] / 3).all()


def test_whole_seeds_share_a_draw() -> None:
    """Groups with one number have one draw, groups in an order of their own another."""
    residual = np.random.default_rng(5).normal(size=(4, 9))
    groups = [np.array([0, 1, 2]), np.array([3, 4, 5]), np.array([6, 7, 8])]
    draw = kernel.SeedVariances(residual, groups, np.random.default_rng(6), alike=[0, 0, 1])
    rng = np.random.default_rng(6)
    one, other = (rng.integers(3, size=(B, 3)) for _ in range(2))
    plain = np.empty((4, B))
    for i, row in enumerate(residual):
        for b in range(B):
            drawn = zip(groups, (one[b], one[b], other[b]), strict=True)
            picked = [widened(row, at)[at][places] for at, places in drawn]
            plain[i, b] = sum(((p - p.mean()) ** 2).sum() for p in picked) / 6
    np.testing.assert_allclose(draw(), plain, rtol=1e-9, atol=1e-12)
    assert draw.empty_share == pytest.approx(3.0**-4)


def test_blocks_of_items_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    residual = np.random.default_rng(5).normal(size=(11, 6))
    residual[::3, 1] = nan

    def all_of_it() -> list[Array]:
        groups = [np.array([0, 1, 2]), np.array([3, 4, 5])]
        slopes = kernel.SlopeReplicates(np.arange(11.0), residual, np.arange(6.0), np.random.default_rng(6))()
        kept = kernel.rank_replicates(chunks_of(slopes), 11, replicates=B, level=0.9, top=2)
        return [kernel.SeedVariances(residual, groups, np.random.default_rng(6))(), slopes, kept.low, kept.high]

    whole = all_of_it()
    monkeypatch.setattr(kernel, "ITEM_BLOCK", 4)
    np.testing.assert_allclose(np.column_stack(whole), np.column_stack(all_of_it()), rtol=1e-12, atol=1e-15)


def test_chi_square_variances_have_their_moments() -> None:
    sigma2, df = np.array([1.0, 0.2, 3.0]), np.array([3.0, 10.0, 2.5])
    draw = kernel.ChiSquareVariances(sigma2, df, np.random.default_rng(7))
    values = np.hstack([draw() for _ in range(1500)])
    n, spread = values.shape[1], sigma2 * np.sqrt(2 / df)
    assert (np.abs(values.mean(axis=1) - sigma2) < 4 * spread / sqrt(n)).all()
    np.testing.assert_allclose(values.var(axis=1), spread**2, rtol=0.06)
    assert np.abs(np.corrcoef(values) - np.eye(3)).max() < 4 / sqrt(n)


def test_cheapest_in_a_plain_loop() -> None:
    rng = np.random.default_rng(8)
    slopes = [rng.choice([-1.0, 0.0, 0.5, 2.0, nan], size=(30, 4)) for _ in range(3)]
    found = kernel.cheapest(slopes, [8.0, 0.5, 1.0])
    for place in np.ndindex(30, 4):
        pairs = zip(slopes, (8.0, 0.5, 1.0), strict=True)
        assert found[place] == min((price / one[place] for one, price in pairs if one[place] > 0), default=np.inf)


@relaxed
@given(seeds, st.integers(1, 9), st.integers(39, 150), st.sampled_from([0.95, 0.9, 0.5]), st.sampled_from([1, 2, 8]))
def test_tails_of_ranks_against_all_ranks(seed: int, m: int, replicates: int, level: float, held: int) -> None:
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 4, size=(m, replicates)) * 1.0 if seed % 2 else rng.normal(size=(m, replicates))
    odd = rng.random(values.shape)
    values[odd < 0.2], values[odd < 0.1] = np.inf, nan
    top = int(rng.integers(1, m + 1))
    of_all: Any = {"replicates": replicates, "level": level, "top": top}
    found = kernel.rank_replicates(chunks_of(values), m, held=held, **of_all)
    np.testing.assert_allclose([getattr(found, name) for name in NAMES], plain_tails(values, level, top), rtol=1e-12)
    assert found.first.sum() == pytest.approx(top) == found.last.sum()
    clean, order = rng.normal(size=(m, replicates)), rng.permutation(m)
    one, other = (kernel.rank_replicates(chunks_of(v), m, **of_all) for v in (clean, clean[order]))
    assert all((getattr(one, name)[order] == getattr(other, name)).all() for name in NAMES)


def test_the_least_number_of_replicates() -> None:
    assert [kernel.tail_count(n, 0.95) for n in (38, 39, 78, 79, 999)] == [0, 1, 1, 2, 25]
    assert [kernel.tail_count(n, level) for n, level in ((19, 0.9), (18, 0.9), (999, 0.5))] == [1, 0, 250]
    values = np.random.default_rng(9).normal(size=(4, 39))
    found = kernel.rank_replicates(chunks_of(values), 4, replicates=39, level=0.95, top=1)
    low, high = plain_ranks(values)
    np.testing.assert_array_equal(low, high)
    np.testing.assert_array_equal([found.low, found.high], [low.min(axis=1), high.max(axis=1)])


def test_the_quietest_item_is_no_candidate_for_the_noisiest_because_it_comes_last(tmp_path: Path) -> None:
    """Of two seeds half of the draws are twice the same: all variances 0, and no rank of any."""
    drawn = draw_panel(replace(SIMULATED, n_items=20, n_models=1, n_seeds=2, doses=(1e9,)))
    drawn.values[:, 0, :, 0] = 0.5 + np.outer(np.arange(20, 0, -1), [-0.01, 0.01])
    items = known_noise(measured(tmp_path, drawn)).items
    assert items["rank"].to_list() == list(range(20, 0, -1))
    assert items["noisiest_probability"][-1] is None or items["noisiest_probability"][-1] < 0.25


def test_rank_columns_of_noise_in_a_panel(tmp_path: Path) -> None:
    panel = measured(tmp_path, changed(draw_panel(SIMULATED), (5, 0, 1, 1), (9, 1, slice(0, 3), 2)))
    noise = known_noise(panel, replicates=79, whole_seeds=False)
    groups = [np.flatnonzero(panel.checkpoint == t) for t in np.unique(panel.checkpoint)]
    at = np.flatnonzero(noise.items["mean_score"].is_between(0.1, 0.9).to_numpy())
    parts = [plain_variances(noise.residual[at], groups, rng) for rng in [np.random.default_rng(3)] for _ in range(3)]
    low, high, _, last = plain_tails(np.hstack(parts)[:, :79], 0.95, max(1, round(0.1 * len(at))))
    ranked = noise.items[at.tolist()]
    assert ranked["rank"].to_list() == ranked["sigma2"].rank("ordinal").to_list()
    assert (ranked["rank_lo"].to_list(), ranked["rank_hi"].to_list()) == (low.tolist(), high.tolist())
    np.testing.assert_allclose(ranked["noisiest_probability"], last, rtol=1e-12)
    assert noise.items["rank"].null_count() == 14 - len(at)


@pytest.mark.parametrize("draws", ["shared", "independent"])
@pytest.mark.parametrize("n_seeds", [1, 3])
def test_rank_columns_of_costs_in_a_panel(draws: str, n_seeds: int, tmp_path: Path) -> None:
    panel = measured(tmp_path, draw_panel(replace(SIMULATED, n_seeds=n_seeds, n_models=1)))
    found = known_slopes(panel, replicates=79, residual_draws=draws)
    fit, at = found.fits["PT"], np.flatnonzero(found.items["rank"].is_not_null().to_numpy())
    one, other = same_stream(3)
    draw = slope_draws(panel, fit, at, shared=draws == "shared", rng=one)
    ranked = found.items[at.tolist()]
    if draws == "shared" and n_seeds == 3:
        assert isinstance(draw, kernel.SeedSlopeReplicates)
        drawn = [plain_by_seed(panel.value[np.ix_(at, fit.columns)], fit.x, fit.seeds, other) for _ in range(3)]
    else:
        assert isinstance(draw, kernel.SlopeReplicates)
        plain: Any = plain_independent if draws == "independent" else plain_slopes
        drawn = [plain(draw.slope, draw.residual, fit.x, other) for _ in range(3)]
    np.testing.assert_allclose(np.hstack([draw() for _ in range(3)]), np.hstack(drawn), rtol=1e-9, atol=1e-12)
    replicates = np.hstack(drawn)[:, :79]
    values = np.divide(82.0, replicates, out=np.full(replicates.shape, np.inf), where=replicates > 0)
    low, high, first, _ = plain_tails(values, 0.95, max(1, round(0.1 * len(at))))
    assert (ranked["rank_lo"].to_list(), ranked["rank_hi"].to_list()) == (low.tolist(), high.tolist())
    np.testing.assert_allclose(ranked["cheapest_probability"], first, rtol=1e-12)


@pytest.mark.parametrize("n_seeds", [1, 3])
def test_replicates_of_slopes_spread_as_their_standard_errors_say(n_seeds: int, tmp_path: Path) -> None:
    """The variance over all equally likely draws, of runs or of seeds, is that of the least-squares slope."""
    panel = measured(tmp_path, draw_panel(replace(SIMULATED, n_seeds=n_seeds, n_models=1)))
    fit = known_slopes(panel).fits["PT"]
    draw = slope_draws(panel, fit, np.arange(14), shared=True, rng=np.random.default_rng(1))
    if isinstance(draw, kernel.SeedSlopeReplicates):
        spread = (draw.scores**2).sum(axis=1)
    else:
        spread = (draw.residual**2).mean(axis=1) * (levers(fit.x) ** 2).sum()
    np.testing.assert_allclose(np.sqrt(spread), fit.fits.standard_error, rtol=1e-9)
