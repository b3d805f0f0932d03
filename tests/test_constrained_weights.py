"""Constrained weights against enumeration, linear programmes and their invariances."""

from __future__ import annotations

import numpy as np
import pytest

from benchwright.mechanism.aggregation import optimal_weights
from constrained_games import (
    KINDS,
    best_gain,
    bounds,
    constraints,
    enumerated,
    game,
    games,
    matrices,
    model_of,
    relaxed,
    solved,
)


@pytest.mark.slow
@relaxed
@games
def test_no_feasible_direction_gains(seed: int, kind: str, m: int, n: int, q: int, r: float) -> None:
    data, asked = game(seed, kind, m, n, q), constraints(seed, m)
    result = solved(model_of(data, r), **asked)
    goal, H = matrices(data, r)
    v = result.weights
    rest, size = goal - H @ v, float(np.abs(goal).max())
    assert result.residual <= 1e-8
    assert result.status in ("optimal", "no positive score helps")
    assert result.surplus == pytest.approx(float(goal @ v - v @ H @ v / 2), abs=1e-9 * (1 + result.first_best))
    assert abs(rest @ v) <= 1e-7 * abs(goal @ v) + 1e-12 * size
    lower, upper, codes = bounds(m, asked)
    coupled, t, slack = bool(np.isfinite(upper).any()), float(v.sum()), 1e-8 * float(np.abs(v).max())
    for g in range(codes.max() + 1):
        assert np.ptp(v[codes == g]) <= slack
    if coupled or asked["non_negative"]:
        assert best_gain(rest, asked) <= 1e-7 * size
        assert t >= 0
        floored, capped = np.isfinite(lower), np.isfinite(upper)
        assert (v[floored] >= lower[floored] * t - slack).all()
        assert (v[capped] <= upper[capped] * t + slack).all()
    else:
        assert np.abs(np.bincount(codes, rest)).max() <= 1e-7 * size * m


@pytest.mark.parametrize("seed", range(200))
def test_surplus_is_that_of_all_patterns_enumerated(seed: int) -> None:
    rng = np.random.default_rng(seed)
    kind, m, n, q = KINDS[seed % len(KINDS)], int(rng.integers(1, 6)), int(rng.integers(1, 4)), int(rng.integers(0, 3))
    r = (0.0, 0.3, 3.0)[seed % 3]
    data, asked = game(seed, kind, m, n, q), constraints(seed, m)
    if kind == "graded noise":
        data["noise_variance"] = np.sqrt(data["noise_variance"])  # dense pseudo-inverses lose the rest
    result = solved(model_of(data, r), **asked)
    best = enumerated(data, r, asked)
    assert result.surplus == pytest.approx(best, rel=1e-7, abs=1e-10 * result.first_best)
    assert result.residual <= 1e-8


@relaxed
@games
def test_a_feasible_optimum_is_returned_as_it_is(seed: int, kind: str, m: int, n: int, q: int, r: float) -> None:
    data = game(seed, kind, m, n, q)
    model = model_of(data, r)
    optimum = optimal_weights(model)
    same = solved(model, non_negative=False, optimum=optimum)
    np.testing.assert_array_equal(same.weights, optimum.weights)
    assert same.method == "unconstrained"
    assert same.efficiency == 1
    result = solved(model, optimum=optimum)
    if optimum.weights.min() >= 0:
        np.testing.assert_array_equal(result.weights, optimum.weights)
    assert result.surplus <= optimum.surplus * (1 + 1e-9)


@pytest.mark.slow
@relaxed
@games
def test_units_scale_and_order_move_weights_as_they_must(
    seed: int, kind: str, m: int, n: int, q: int, r: float
) -> None:
    data, asked = game(seed, kind, m, n, q), constraints(seed, m)
    result = solved(model_of(data, r), **asked)
    cents = data | {"technology": data["technology"] / 100, "curvature": data["curvature"] / 100**2}
    richer = data | {"welfare": 3 * data["welfare"]}
    order = np.random.default_rng(seed).permutation(m)
    mixed = data | {key: data[key][order] for key in data if key != "curvature"}
    moved = dict(asked)
    for key in ("max_share", "equal_within"):
        if key in asked:
            moved[key] = asked[key][order]
    if "fixed_shares" in asked:
        moved["fixed_shares"] = {int(np.flatnonzero(order == i)[0]): f for i, f in asked["fixed_shares"].items()}
    cases = ((cents, asked, 1.0, np.arange(m)), (richer, asked, 3.0, np.arange(m)), (mixed, moved, 1.0, order))
    unique = r > 0 and data["noise_variance"].min() > 1e-3
    for other, rules, factor, places in cases:
        twin = solved(model_of(other, r), **rules)
        slack = 1e-8 * result.first_best * factor**2
        assert twin.surplus == pytest.approx(factor**2 * result.surplus, rel=1e-6, abs=slack)
        if unique:
            close = {"rtol": 1e-6, "atol": 1e-7 * float(np.abs(result.weights).max())}
            np.testing.assert_allclose(twin.weights, factor * result.weights[places], **close)


@relaxed
@games
def test_loose_constraints_change_nothing(seed: int, kind: str, m: int, n: int, q: int, r: float) -> None:
    data = game(seed, kind, m, n, q)
    plain = solved(model_of(data, r))
    loose = solved(model_of(data, r), max_share=1.0, equal_within=np.arange(m)[::-1])
    assert loose.surplus == pytest.approx(plain.surplus, rel=1e-9, abs=1e-9 * plain.first_best)
    if r > 0 and data["noise_variance"].min() > 1e-3:  # the weights are unique
        close = {"rtol": 1e-9, "atol": 1e-9 * float(np.abs(plain.weights).max())}
        np.testing.assert_allclose(loose.weights, plain.weights, **close)
