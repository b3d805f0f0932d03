"""Numbers behind the audit: arrays in, arrays out, numpy only."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from benchwright._check import FloatArray

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

BLOCK_CELLS = 4_000_000  # doubles held at once while resampling: 32 MB
GRID_POINTS = 256  # at most this many values at which resampled distribution functions are compared


def rank_weighted_sum(codes: IntArray, values: FloatArray, rank_weights: FloatArray) -> FloatArray:
    """Return w_i = sum_k weight_k * values[codes_ik], shape (m,).

    ``codes`` (m, k) are positions in ``values``, -1 for no activity at that rank. A dropped activity has
    value NaN: it uses up its rank and adds 0. An item without any kept activity is NaN. Summed rank by
    rank, so that equal lists give equal doubles on every machine.
    """
    padded = np.append(values, np.nan)
    total, kept_any = np.zeros(len(codes)), np.zeros(len(codes), dtype=bool)
    for column, weight in zip(codes.T, rank_weights, strict=True):
        ranked = padded[column]
        kept = ~np.isnan(ranked)
        total += np.where(kept, weight * ranked, 0.0)
        kept_any |= kept
    return np.where(kept_any, total, np.nan)


def pareto_frontier(x: FloatArray, y: FloatArray) -> BoolArray:
    """Return which points no other point dominates (at least as large on both, larger on one)."""
    order = np.lexsort((-y, -x))
    sorted_x, sorted_y = x[order], y[order]
    starts = np.flatnonzero(np.r_[True, sorted_x[1:] != sorted_x[:-1]])  # groups of equal x, y falling
    best_before = np.maximum.accumulate(sorted_y[starts])
    group = np.cumsum(np.r_[True, sorted_x[1:] != sorted_x[:-1]]) - 1
    larger_x = np.r_[-np.inf, best_before][group]
    on_frontier = np.empty(len(x), dtype=bool)
    on_frontier[order] = (sorted_y > larger_x) & (sorted_y == sorted_y[starts][group])
    return on_frontier


def dominator_counts(x: FloatArray, y: FloatArray, by_x: FloatArray, by_y: FloatArray) -> IntArray:
    """Return for each point (x, y) how many points (by_x, by_y) dominate it, shape (len(x),).

    Time O((m + n) log n) by counting bit by bit over the ranks of ``by_y`` (a wavelet matrix), so that
    hundreds of thousands of items are no trouble.
    """
    by_falling_x = np.argsort(-by_x, kind="stable")
    falling_x, rising_y = -by_x[by_falling_x], np.sort(by_y)
    ranks = np.empty(len(by_y), dtype=np.int64)
    ranks[np.argsort(by_y, kind="stable")] = np.arange(len(by_y))
    at_least_x = np.searchsorted(falling_x, -x, side="right")
    above_x = np.searchsorted(falling_x, -x, side="left")
    below_y = np.searchsorted(rising_y, y, side="left")
    up_to_y = np.searchsorted(rising_y, y, side="right")
    prefix = np.concatenate([at_least_x, above_x, at_least_x, above_x])
    limit = np.concatenate([below_y, below_y, up_to_y, up_to_y])
    counts = prefix - _count_below(ranks[by_falling_x], prefix, limit)
    weakly, x_above, y_above, both_above = counts.reshape(4, -1)
    equal = weakly - x_above - y_above + both_above
    return weakly - equal


def _count_below(ranks: IntArray, prefix: IntArray, limit: IntArray) -> IntArray:
    """Return for each query how many of the first ``prefix`` ranks are below ``limit``."""
    start, stop = np.zeros_like(prefix), prefix.copy()
    total = np.zeros_like(prefix)
    for bit in range(len(ranks).bit_length() - 1, -1, -1):
        is_one = (ranks >> bit) & 1 == 1
        zeros = np.concatenate([[0], np.cumsum(~is_one)])
        zero_start, zero_stop = zeros[start], zeros[stop]
        takes_ones = (limit >> bit) & 1 == 1
        total += np.where(takes_ones, zero_stop - zero_start, 0)
        start = np.where(takes_ones, zeros[-1] + start - zero_start, zero_start)
        stop = np.where(takes_ones, zeros[-1] + stop - zero_stop, zero_stop)
        ranks = np.concatenate([ranks[~is_one], ranks[is_one]])
    return total


def quantile_position(quantile: float, n: int) -> int:
    """Return the 1-based position of a quantile among n sorted items: round_half_even(q (n - 1)) + 1."""
    return round(quantile * (n - 1)) + 1


def cluster_sums(values: FloatArray, cluster: IntArray, n_clusters: int) -> FloatArray:
    """Return per-cluster sums of the columns of ``values`` (m, p), shape (n_clusters, p)."""
    return np.stack([np.bincount(cluster, column, minlength=n_clusters) for column in values.T], axis=1)


def bootstrap_counts(n_clusters: int, size: int, rng: np.random.Generator) -> FloatArray:
    """Return how often each cluster is drawn, with replacement, shape (size, n_clusters)."""
    drawn = rng.integers(n_clusters, size=(size, n_clusters))
    drawn += np.arange(size)[:, None] * n_clusters
    counts = np.bincount(drawn.ravel(), minlength=size * n_clusters)
    return counts.reshape(size, n_clusters).astype(np.float64)


def permuted_labels(n_first: int, n_clusters: int, size: int, rng: np.random.Generator) -> FloatArray:
    """Return 0/1 labels, n_first ones a row, in random order, shape (size, n_clusters)."""
    row = np.zeros(n_clusters)
    row[:n_first] = 1.0
    return rng.permuted(np.broadcast_to(row, (size, n_clusters)), axis=1)


def blocks(replicates: int, width: int) -> Iterator[int]:
    """Yield how many replicates to hold at once, so that memory does not grow with their number."""
    size = max(1, BLOCK_CELLS // max(width, GRID_POINTS))
    for start in range(0, replicates, size):
        yield min(size, replicates - start)


def cluster_means(counts: FloatArray, sums: FloatArray, sizes: FloatArray) -> FloatArray:
    """Return item-weighted means under cluster multiplicities: (b, c), (c, p), (c,) -> (b, p)."""
    weight = counts @ sizes
    means: FloatArray = (counts @ sums) / weight[:, None]
    return means


def permutation_p(drawn: FloatArray, observed: float) -> float:
    """Return (count + 1) / (B + 1), counting draws at least as large as ``observed`` up to rounding."""
    slack = 1e-12 * max(1.0, abs(observed))
    return (int(np.count_nonzero(drawn >= observed - slack)) + 1) / (len(drawn) + 1)


def value_grid(values: FloatArray) -> FloatArray:
    """Return the distinct values, thinned to quantiles where there are more than ``GRID_POINTS``."""
    distinct = np.unique(values)
    if len(distinct) <= GRID_POINTS:
        return distinct
    return distinct[np.linspace(0, len(distinct) - 1, GRID_POINTS).round().astype(np.int64)]


def largest_gaps(first: FloatArray, second: FloatArray) -> tuple[float, float]:
    """Return sup (F_second - F_first) and sup (F_first - F_second) of two samples, each at least 0."""
    points = np.concatenate([first, second])
    share_second = np.searchsorted(np.sort(second), points, side="right") / len(second)
    share_first = np.searchsorted(np.sort(first), points, side="right") / len(first)
    rise = share_second - share_first
    return max(0.0, float(rise.max())), max(0.0, float((-rise).max()))


def counts_at_most(values: FloatArray, cluster: IntArray, n_clusters: int, grid: FloatArray) -> FloatArray:
    """Return how many items of each cluster lie at or below each grid value, shape (n_clusters, G)."""
    cell = np.searchsorted(grid, values, side="left")
    table = np.bincount(cluster * (len(grid) + 1) + cell, minlength=n_clusters * (len(grid) + 1))
    counts: FloatArray = table.reshape(n_clusters, -1)[:, :-1].cumsum(axis=1).astype(np.float64)
    return counts
