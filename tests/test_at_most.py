"""Weights on at most k items against all sets of k items enumerated, and the bound on what others may gain."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchwright._check import FloatArray
from benchwright.errors import UsageError
from benchwright.mechanism import _at_most as sets
from benchwright.mechanism.aggregation import ItemAggregation, optimal_weights
from benchwright.mechanism.constraints import Constraints
from benchwright.mechanism.sensitivity import price_of
from constrained_games import KINDS, game, matrices, model_of, solved


def best_of_all_sets(data: dict[str, Any], r: float, k: int, *, non_negative: bool) -> float:
    """The greatest surplus on any k items, each set solved densely; non-negative ones through their supports."""
    goal, H = matrices(data, r)
    best = 0.0
    for size in range(1, k + 1) if non_negative else [k]:
        for items in map(list, combinations(range(goal.size), size)):
            v = np.linalg.pinv(H[np.ix_(items, items)], rcond=1e-12, hermitian=True) @ goal[items]
            if not non_negative or v.min() >= -1e-9 * np.abs(v).max():
                best = max(best, float(goal[items] @ v) / 2)
    return best


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("non_negative", [True, False])
def test_the_best_set_of_all_is_found_and_proved(seed: int, non_negative: bool) -> None:
    rng = np.random.default_rng(seed)
    m, n, q = int(rng.integers(2, 10)), int(rng.integers(1, 4)), int(rng.integers(0, 3))
    k, r = int(rng.integers(1, m)), (0.1, 1.0, 10.0)[seed % 3]
    data = game(seed, ("random", "harmful")[seed % 2], m, n, q)
    result = solved(model_of(data, r), at_most=k, non_negative=non_negative)
    best = best_of_all_sets(data, r, k, non_negative=non_negative)
    assert result.surplus == pytest.approx(best, rel=1e-8, abs=1e-10 * result.first_best)
    assert np.count_nonzero(result.weights) <= k
    assert result.status == ("optimal" if best > 0 else "no positive score helps")
    assert result.gap_bound <= 1e-9 * result.surplus
    assert result.residual <= 1e-8


@settings(derandomize=True, deadline=None, max_examples=40)
@given(
    seed=st.integers(0, 2**32 - 1),
    kind=st.sampled_from(KINDS),
    m=st.integers(2, 8),
    r=st.sampled_from([0.0, 0.1, 5.0]),
    non_negative=st.booleans(),
)
def test_the_bound_holds_whatever_the_noise(seed: int, kind: str, m: int, r: float, non_negative: bool) -> None:
    data, k = game(seed, kind, m, 2, 1), 1 + seed % (m - 1)
    result = solved(model_of(data, r), at_most=k, non_negative=non_negative)
    best = best_of_all_sets(data, r, k, non_negative=non_negative)
    slack = 1e-7 * (1 + result.first_best)
    assert result.surplus <= best + slack
    assert best <= result.surplus + result.gap_bound + slack
    if result.status == "within bound":
        assert any("other items may do better" in text for text in result.warnings)


def search(seed: int, m: int, K: int) -> tuple[sets.Search, FloatArray]:
    rng = np.random.default_rng(seed)
    return sets.Search(rng.normal(0.3, 1.0, (m, K)), rng.normal(size=K), bool(seed % 2)), rng.normal(size=K)


@pytest.mark.parametrize("seed", range(6))
def test_any_dual_point_bounds_every_set(seed: int) -> None:
    game, p = search(seed, 8, 3)
    top = np.sort(game.phi(p, np.arange(8)))[::-1]
    for items in combinations(range(8), 3):
        assert game.on(np.array(items), p).bound <= float(np.square(p - game.h).sum()) / 2 + top[:3].sum() + 1e-12


def test_a_budget_of_one_node_leaves_an_honest_gap() -> None:
    game, _ = search(1, 60, 12)
    short, full = sets.choose(game, 4, nodes=1), sets.choose(game, 4, nodes=20_000)
    assert short.nodes == 1
    assert short.bound > short.surplus * (1 + 1e-6)
    assert short.surplus <= full.surplus * (1 + 1e-12)
    assert full.surplus <= short.bound
    assert full.bound <= full.surplus * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(60))
def test_the_capped_simplex_has_the_nearest_point(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, total = rng.normal(0.5, 1.0, 9), int(rng.integers(1, 9))
    z, binds = sets.capped(a, total)
    assert z.min() >= 0
    assert z.max() <= 1
    assert z.sum() <= total + 1e-12
    assert binds == (np.clip(a, 0, 1).sum() > total)
    inside = (z > 1e-12) & (z < 1 - 1e-12)
    if binds:
        assert z.sum() == pytest.approx(total)
        assert np.ptp((a - z)[inside]) <= 1e-12 if inside.any() else True
    else:
        np.testing.assert_allclose(z, np.clip(a, 0, 1))


def test_more_items_never_lower_the_surplus_and_all_items_change_nothing() -> None:
    model = model_of(game(4, "random", 30, 3, 2), 1.0)
    surpluses = [solved(model, at_most=k).surplus for k in (1, 2, 3, 5, 8, 13, 30)]
    assert (np.diff(surpluses) >= 0).all()
    whole = solved(model)
    same = solved(model, at_most=30)
    np.testing.assert_array_equal(same.weights, whole.weights)
    assert same.gap_bound == 0
    assert not same.binding["at_most"].any()
    costs = price_of(model, Constraints(at_most=3))
    assert costs["at_most"] == pytest.approx(whole.surplus - surpluses[2], rel=1e-9)


@pytest.mark.parametrize("non_negative", [True, False])
def test_units_of_money_and_value_change_no_choice(non_negative: bool) -> None:
    data = game(6, "random", 40, 3, 2)
    result = solved(model_of(data, 1.0), at_most=5, non_negative=non_negative)
    assert result.status == "optimal"
    cents = data | {"technology": data["technology"] / 100, "curvature": data["curvature"] / 100**2}
    for other, factor in ((cents, 1.0), (data | {"welfare": 1e-9 * data["welfare"]}, 1e-9)):
        twin = solved(model_of(other, 1.0), at_most=5, non_negative=non_negative)
        np.testing.assert_allclose(twin.weights, factor * result.weights, rtol=1e-7)
        assert twin.gap_bound <= 1e-9 * twin.surplus


def test_what_is_left_out_is_said() -> None:
    model = model_of(game(5, "random", 12, 3, 2), 1.0)
    result = solved(model, at_most=2)
    assert result.binding["at_most"].sum() == 10
    assert not result.weights[result.binding["at_most"]].any()
    assert result.method == "branch and bound" or result.iterations == 1
    assert "at_most on 10" in str(result)
    names = ItemAggregation([[1.0], [2.0]], [1.0, 1.0], risk_aversion=1, noise_variance=[1.0, 0.1], names=("a", "b"))
    assert optimal_weights(names, Constraints(at_most=1)).shares.tolist() == [0.0, 1.0]


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"at_most": 0}, "whole number >= 1"),
        ({"at_most": 2.0}, "whole number >= 1"),
        ({"at_most": True}, "whole number >= 1"),
        ({"at_most": 2, "max_share": 0.6}, "`at_most` goes with `non_negative` alone, got `max_share`"),
        ({"at_most": 2, "equal_within": [0, 1]}, "got `equal_within`"),
    ],
)
def test_what_at_most_cannot_do_is_refused(asked: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        Constraints(**asked)
