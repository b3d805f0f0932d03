"""The audit's kernels against references written plainly, pair by pair and item by item."""

from __future__ import annotations

from fractions import Fraction
from math import isnan, nan

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchwright.auditing import _kernels as kernels

relaxed = settings(deadline=None, max_examples=150)
# Few distinct values, so that ties on one or both coordinates and exact duplicates are common.
coordinates = st.sampled_from([-1.0, 0.0, 0.5, 1.0, 2.0, 2.5])
points = st.lists(st.tuples(coordinates, coordinates), min_size=1, max_size=25)
finite = st.floats(-1e6, 1e6)


def dominates(p: tuple[float, float], q: tuple[float, float]) -> bool:
    return p[0] >= q[0] and p[1] >= q[1] and p != q


def columns(pairs: list[tuple[float, float]]) -> tuple[np.ndarray, np.ndarray]:
    x, y = np.array(pairs, dtype=float).T
    return x.copy(), y.copy()


@relaxed
@given(points=st.one_of(points, st.lists(st.tuples(finite, finite), min_size=1, max_size=25)))
def test_the_frontier_is_what_nothing_dominates(points: list[tuple[float, float]]) -> None:
    expected = [not any(dominates(q, p) for q in points) for p in points]
    assert kernels.pareto_frontier(*columns(points)).tolist() == expected


@relaxed
@given(mine=points, others=points)
def test_dominators_are_counted_as_pair_by_pair(
    mine: list[tuple[float, float]], others: list[tuple[float, float]]
) -> None:
    expected = [sum(dominates(q, p) for q in others) for p in mine]
    assert kernels.dominator_counts(*columns(mine), *columns(others)).tolist() == expected


@pytest.mark.parametrize("n", [1, 2, 3, 4, 7, 8, 15, 16, 17, 255, 256, 257])
def test_dominators_at_sizes_around_powers_of_two(n: int) -> None:
    rng = np.random.default_rng(n)
    mine, others = rng.integers(0, 12, (40, 2)).astype(float), rng.integers(0, 12, (n, 2)).astype(float)
    pairs = [[dominates(tuple(q), tuple(p)) for q in others] for p in mine]
    counted = kernels.dominator_counts(mine[:, 0], mine[:, 1], others[:, 0], others[:, 1])
    assert counted.tolist() == [sum(row) for row in pairs]


@relaxed
@given(points=points, seed=st.integers(0, 2**32 - 1))
def test_order_of_items_and_monotone_scales_change_no_dominance(points: list[tuple[float, float]], seed: int) -> None:
    x, y = columns(points)
    order = np.random.default_rng(seed).permutation(len(x))
    frontier, counts = kernels.pareto_frontier(x, y), kernels.dominator_counts(x, y, x, y)
    assert np.array_equal(kernels.pareto_frontier(x[order], y[order]), frontier[order])
    assert np.array_equal(kernels.pareto_frontier(np.exp(x), 3 * y - 7), frontier)
    assert np.array_equal(kernels.pareto_frontier(y, x), frontier)
    assert np.array_equal(counts == 0, frontier)


@relaxed
@given(
    lists=st.lists(st.lists(st.integers(0, 5), max_size=5, unique=True), min_size=1, max_size=8),
    dropped=st.sets(st.integers(0, 5)),
    reciprocal=st.booleans(),
)
def test_rank_weighted_sums_in_a_plain_loop(lists: list[list[int]], dropped: set[int], reciprocal: bool) -> None:
    values = [nan if code in dropped else 1.0 + 0.7 * code for code in range(6)]
    weights = [1 / (k + 1) if reciprocal else 0.2 for k in range(5)]
    codes = np.full((len(lists), 5), -1)
    for row, ranked in enumerate(lists):
        codes[row, : len(ranked)] = ranked
    got = kernels.rank_weighted_sum(codes, np.array(values), np.array(weights))
    for ranked, sum_ in zip(lists, got.tolist(), strict=True):
        kept = [(rank, code) for rank, code in enumerate(ranked) if code not in dropped]
        if kept:
            assert sum_ == pytest.approx(sum(weights[rank] * values[code] for rank, code in kept), rel=1e-14)
        else:
            assert isnan(sum_)


@relaxed
@given(n=st.integers(1, 100_000), quantile=st.sampled_from(["0.01", "0.1", "0.5", "0.9", "0.99", "0", "1"]))
def test_quantile_positions_round_half_to_even(n: int, quantile: str) -> None:
    exact = Fraction(float(quantile) * (n - 1))
    below = exact.numerator // exact.denominator
    rest = exact - below
    up = rest > Fraction(1, 2) or (rest == Fraction(1, 2) and below % 2 == 1)
    position = kernels.quantile_position(float(quantile), n)
    assert position == below + up + 1
    assert 1 <= position <= n


def test_quantile_positions_of_small_rankings() -> None:
    # q (n - 1) = 0.5, 1.5, 2.5: to 0, 2, 2
    assert [kernels.quantile_position(0.5, n) for n in (2, 4, 6)] == [1, 3, 3]
    assert [kernels.quantile_position(0.99, n) for n in (1, 100, 101)] == [1, 99, 100]


@pytest.mark.parametrize(("replicates", "clusters"), [(1, 1), (7, 3), (20_000, 300)])
def test_bootstrap_draws_as_many_clusters_as_there_are(replicates: int, clusters: int) -> None:
    blocks = list(kernels.bootstrap_counts(clusters, replicates, np.random.default_rng(1)))
    counts = np.vstack(blocks)
    assert counts.shape == (replicates, clusters)
    assert (counts.sum(axis=1) == clusters).all()
    if replicates > 1000:
        assert len(blocks) > 1
        # Multiplicities are binomial(c, 1/c): mean 1, variance 1 - 1/c, six million of them here.
        assert counts.mean(axis=0) == pytest.approx(np.ones(clusters), abs=0.05)
        assert counts.var() == pytest.approx(1 - 1 / clusters, abs=0.005)


@pytest.mark.parametrize(("replicates", "clusters", "first"), [(1, 2, 1), (30_000, 6, 2), (20_000, 300, 40)])
def test_permuted_labels_keep_their_number_and_favour_no_place(replicates: int, clusters: int, first: int) -> None:
    labels = np.vstack(list(kernels.permuted_labels(first, clusters, replicates, np.random.default_rng(2))))
    assert labels.shape == (replicates, clusters)
    assert set(np.unique(labels)) <= {0.0, 1.0}
    assert (labels.sum(axis=1) == first).all()
    if replicates > 1000:
        error = np.sqrt(first / clusters * (1 - first / clusters) / replicates)
        assert labels.mean(axis=0) == pytest.approx(np.full(clusters, first / clusters), abs=5 * error)


@relaxed
@given(
    items=st.lists(st.tuples(coordinates, st.integers(0, 3)), min_size=1, max_size=20),
    counts=st.lists(st.integers(0, 3), min_size=4, max_size=4),
)
def test_cluster_means_are_means_of_the_repeated_items(items: list[tuple[float, int]], counts: list[int]) -> None:
    repeated = [value for value, cluster in items for _ in range(counts[cluster])]
    if not repeated:
        return
    values = np.array([[value, 1.0] for value, _ in items])
    table = kernels.cluster_sums(values, np.array([cluster for _, cluster in items]), 4)
    got = kernels.cluster_means(np.array([counts], dtype=float), table, table[:, 1])
    assert got[0] == pytest.approx([sum(repeated) / len(repeated), 1.0])


@relaxed
@given(items=st.lists(st.tuples(coordinates, st.integers(0, 2)), min_size=1, max_size=20))
def test_counts_at_most_each_grid_value(items: list[tuple[float, int]]) -> None:
    values, clusters = np.array([v for v, _ in items]), np.array([c for _, c in items])
    grid = kernels.value_grid(values)
    assert grid.tolist() == sorted({v for v, _ in items})
    expected = [[sum(v <= at and c == cluster for v, c in items) for at in grid] for cluster in range(3)]
    assert kernels.counts_at_most(values, clusters, 3, grid).tolist() == expected


def test_a_long_grid_is_thinned_and_keeps_both_ends() -> None:
    values = np.random.default_rng(3).normal(size=5000)
    grid = kernels.value_grid(values)
    assert len(grid) == kernels.GRID_POINTS
    assert (grid[0], grid[-1]) == (values.min(), values.max())
    assert np.isin(grid, values).all()
    assert (np.diff(grid) > 0).all()


@relaxed
@given(first=st.lists(coordinates, min_size=1, max_size=12), second=st.lists(coordinates, min_size=1, max_size=12))
def test_largest_gaps_of_two_distribution_functions(first: list[float], second: list[float]) -> None:
    def share(values: list[float], at: float) -> float:
        return sum(value <= at for value in values) / len(values)

    gaps = [share(second, at) - share(first, at) for at in first + second]
    got = kernels.largest_gaps(np.array(first), np.array(second))
    assert got == pytest.approx((max(0.0, max(gaps)), max(0.0, -min(gaps))), abs=1e-14)


def test_permutation_p_counts_the_observed_draw_itself() -> None:
    drawn = np.array([0.1, 0.3, 0.3, 0.7])
    assert kernels.permutation_p(drawn, 0.3) == 4 / 5
    assert kernels.permutation_p(drawn, 0.3 + 1e-15) == 4 / 5, "equal up to rounding counts as equal"
    assert kernels.permutation_p(drawn, 0.8) == 1 / 5
    assert kernels.permutation_p(drawn, 0.0) == 1.0
