"""Numbers of the aggregation rules against plain twins, model by model and unit by unit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from benchwright._check import FloatArray
from benchwright.board import _aggregations as kernels


def cells(seed: int, *, n_units: int = 9, n_models: int = 5, levels: int = 4) -> tuple[FloatArray, FloatArray]:
    """Scores with ties and gaps, and weights."""
    rng = np.random.default_rng(seed)
    values = rng.integers(levels, size=(n_units, n_models)) / levels
    values[rng.random(values.shape) < 0.25] = np.nan
    return values, rng.integers(1, 5, size=n_units).astype(float)


def slow_ranks(values: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    n_units, n_models = values.shape
    out = np.zeros((3, n_models))
    for model in range(n_models):
        ranks, held, everyone, those = [], [], 0.0, 0.0
        for unit in range(n_units):
            mine = values[unit, model]
            if np.isnan(mine):
                continue
            there = values[unit][~np.isnan(values[unit])]
            rank = 1 + float((there > mine).sum()) + (float((there == mine).sum()) - 1) / 2
            weight = weights[unit] / weights.mean()
            ranks.append(rank * weight)
            held.append(weight)
            everyone += weight * (n_models - rank)
            those += weight * (len(there) - rank)
        out[:, model] = (sum(ranks) / sum(held), everyone, those) if held else np.nan
    return out[0], out[1], out[2]


def slow_pairs(values: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    n_models = values.shape[1]
    wins, ties = np.zeros((2, n_models, n_models))
    for i in range(n_models):
        for j in range(n_models):
            wins[i, j] = weights[values[:, i] > values[:, j]].sum()
            ties[i, j] = weights[values[:, i] == values[:, j]].sum() if i != j else 0.0
    return wins, ties


@given(st.integers(0, 10_000))
@settings(max_examples=40, deadline=None, derandomize=True)
def test_rank_sums_are_those_counted_one_by_one(seed: int) -> None:
    values, weights = cells(seed)
    for fast, slow in zip(kernels.rank_sums(values, weights), slow_ranks(values, weights), strict=True):
        np.testing.assert_allclose(fast, slow, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("levels", [2, 5, 1000])  # by products of matrices, and model by model
@pytest.mark.parametrize("seed", range(5))
def test_pairs_are_those_counted_one_by_one(seed: int, levels: int) -> None:
    values, weights = cells(seed, n_units=40, levels=levels)
    for fast, slow in zip(kernels.pair_counts(values, weights), slow_pairs(values, weights), strict=True):
        np.testing.assert_allclose(fast, slow, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("levels", [2, 1000])
def test_blocks_of_units_do_not_change_the_counts(levels: int, monkeypatch: pytest.MonkeyPatch) -> None:
    values, weights = cells(1, n_units=50, levels=levels)
    whole = (*kernels.rank_sums(values, weights), *kernels.pair_counts(values, weights))
    monkeypatch.setattr(kernels, "ROWS", 7)
    for one, other in zip(
        whole, (*kernels.rank_sums(values, weights), *kernels.pair_counts(values, weights)), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


def test_weights_that_do_not_add_up_in_binary_make_no_ties() -> None:
    values = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    _, ties = kernels.pair_counts(values, np.array([0.1, 0.2, 0.3]))
    assert not ties.any()


def test_a_model_without_units_has_no_score() -> None:
    values = np.array([[0.5, np.nan, 0.2], [0.1, np.nan, 0.9]])
    weights = np.ones(2)
    wins, ties = kernels.pair_counts(values, weights)
    scores = (
        kernels.present_mean(values, weights),
        kernels.median(values),
        *kernels.rank_sums(values, weights),
        kernels.win_rate(wins, ties),
    )
    for mine in scores:
        assert np.isnan(mine[1])
        assert np.isfinite(mine[[0, 2]]).all()


def test_group_means_leave_gaps_out() -> None:
    values = np.array([[1.0, np.nan], [0.0, 0.5], [0.2, np.nan]])
    found = kernels.group_means(values, np.array([3.0, 1.0, 2.0]), np.array([1, 1, 0]))
    np.testing.assert_allclose(found, [[0.2, np.nan], [0.75, 0.5]])


def test_win_rate_is_a_mean_over_opponents_met() -> None:
    values = np.array([[1.0, 0.0, np.nan, np.nan], [0.5, 0.5, np.nan, np.nan], [1.0, np.nan, 0.0, np.nan]])
    rate = kernels.win_rate(*kernels.pair_counts(values, np.ones(3)))
    np.testing.assert_allclose(rate, [(0.75 + 1.0) / 2, 0.25, 0.0, np.nan])


def test_ranks_share_ties_and_skip_missing() -> None:
    np.testing.assert_array_equal(kernels.ranks_of(np.array([0.5, np.nan, 0.9, 0.5, 0.1])), [2, np.nan, 1, 2, 4])
    np.testing.assert_array_equal(kernels.ranks_of(np.array([0.1 + 0.2, 0.3])), [1, 1])  # rounding is no lead


def test_tau_b_needs_two_ranks_on_each_side() -> None:
    ranks = np.array([1.0, 2.0, 3.0])
    assert kernels.tau_b(ranks, ranks) == pytest.approx(1)
    assert kernels.tau_b(ranks, 4 - ranks) == pytest.approx(-1)
    assert np.isnan(kernels.tau_b(ranks, np.ones(3)))
    assert kernels.tau_b(ranks, np.array([1.0, np.nan, 2.0])) == pytest.approx(1)


def test_groups_of_the_comparison_graph() -> None:
    wins, none = np.zeros((3, 3)), np.zeros((3, 3))
    wins[0, 1] = wins[1, 2] = 1.0  # a chain: 0 is never beaten
    unbeaten, met = kernels.unbeaten_groups(wins, none)
    assert met
    assert [group.tolist() for group in unbeaten] == [[0]]
    wins[2, 0] = 1.0
    assert [group.tolist() for group in kernels.unbeaten_groups(wins, none)[0]] == [[0, 1, 2]]
    apart = np.zeros((3, 3))
    apart[0, 1] = apart[1, 0] = 1.0
    unbeaten, met = kernels.unbeaten_groups(apart, none)
    assert not met
    assert [group.tolist() for group in unbeaten] == [[0, 1], [2]]


def test_the_residual_of_strengths_is_zero_at_the_maximum_alone() -> None:
    wins = np.array([[0.0, 3.0], [1.0, 0.0]])
    none = np.zeros((2, 2))
    assert kernels.strength_residual(wins, none, np.array([3.0, 1.0])) == pytest.approx(0, abs=1e-15)
    assert kernels.strength_residual(wins, none, np.array([2.0, 1.0])) > 0.1


def test_battles_are_drawn_by_weight_among_models_that_have_the_unit() -> None:
    values = np.array([[0.0, 1.0, np.nan], [np.nan, 0.2, 0.2], [np.nan, np.nan, 1.0]])
    drawn = kernels.draw_battles(values, np.array([3.0, 1.0, 9.0]), 8000, np.random.default_rng(3))
    assert drawn is not None
    first, second, lead = drawn
    on_first = (first + second) == 1  # models 0 and 1
    others = np.sort(np.stack([first, second]), axis=0)[:, ~on_first]
    np.testing.assert_array_equal(np.unique(others, axis=1), [[1], [2]])
    assert on_first.mean() == pytest.approx(0.75, abs=0.02)
    np.testing.assert_array_equal(lead[on_first], np.where(first[on_first] == 1, 1.0, -1.0))
    assert not lead[~on_first].any()
    assert kernels.draw_battles(values[2:], np.ones(1), 5, np.random.default_rng(0)) is None


def test_paired_differences_follow_the_plain_formula() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.random(30), rng.random(30)
    x[3] = np.nan
    one = np.ones(30)
    n, gap, error, p = kernels.paired_difference(x, y, one, one, None)
    d = np.delete(x - y, 3)
    assert (n, gap) == (29, pytest.approx(d.mean()))
    assert error == pytest.approx(d.std(ddof=1) / np.sqrt(29))
    assert p == pytest.approx(2 * stats.norm.sf(abs(gap) / error))
    assert kernels.paired_difference(x, y, 7 * one, 7 * one, np.arange(30))[1:] == pytest.approx((gap, error, p))


def test_clusters_and_copies_give_the_same_standard_error() -> None:
    """Each item twice, the copies in one cluster, says no more than each item once."""
    rng = np.random.default_rng(1)
    x, y, w = rng.random(12), rng.random(12), rng.random(12)
    once = kernels.paired_difference(x, y, w, w, None)
    twice = kernels.paired_difference(*(np.repeat(part, 2) for part in (x, y, w, w)), np.repeat(np.arange(12), 2))
    assert twice[1:] == pytest.approx(once[1:])


def test_too_few_units_leave_no_standard_error() -> None:
    one = np.ones(2)
    assert np.isnan(kernels.paired_difference(np.array([1.0, np.nan]), one, one, one, None)[2])
    assert np.isnan(kernels.paired_difference(one, np.zeros(2), one, one, np.zeros(2, dtype=np.int64))[2])
    assert kernels.paired_difference(np.array([0.5, 0.75]), np.array([0.25, 0.5]), one, one, None)[1] == 0.25
    assert np.isnan(kernels.paired_difference(np.array([0.5, 0.75]), np.array([0.25, 0.5]), one, one, None)[3])
    assert np.isnan(kernels.paired_difference(np.full(2, np.nan), one, one, one, None)[1])
