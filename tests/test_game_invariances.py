"""The golden facts of the aggregation game, as properties of random games."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchwright.mechanism.aggregation import ItemAggregation, evaluate_scheme, optimal_weights, risk_sweep
from constrained_games import KINDS, constraints, game, matrices, model_of, solved

seeds = st.integers(0, 2**32 - 1)
kinds = st.sampled_from([kind for kind in KINDS if kind != "graded noise"])
sizes = {"m": st.integers(1, 15), "n": st.integers(1, 4), "q": st.integers(0, 4)}
aversions = st.sampled_from([0.0, 0.3, 1.0, 5.0])
magnitudes = st.just(0.0) | st.floats(1e-6, 1e3)
games = given(seed=seeds, kind=kinds, r=aversions, **sizes)
relaxed = settings(derandomize=True, deadline=None, max_examples=60)


def close(v: Any) -> dict[str, float]:
    """Tolerances for weights near ``v``."""
    return {"rtol": 1e-6, "atol": 1e-7 * float(np.abs(v).max(initial=0.0)) + 1e-12}


@relaxed
@given(value=magnitudes | magnitudes.map(lambda x: -x), s=magnitudes, r=magnitudes)
def test_one_item_on_one_axis_shrinks_by_its_noise(value: float, s: float, r: float) -> None:
    model = ItemAggregation([[1.0]], [value], risk_aversion=r, noise_variance=[s])
    v = optimal_weights(model).weights[0]
    assert v == pytest.approx(value / (1 + r * s), rel=1e-11)
    assert solved(model).weights[0] == pytest.approx(max(v, 0.0), rel=1e-9)


@relaxed
@given(seed=seeds, m=st.integers(1, 6), q=st.integers(0, 3))
def test_without_risk_an_invertible_technology_pays_each_item_its_value(seed: int, m: int, q: int) -> None:
    data = game(seed, "random", m, m, q)
    result = optimal_weights(model_of(data, 0.0))
    if result.condition_bound < 1e6:
        np.testing.assert_allclose(result.weights, data["welfare"], rtol=1e-6, atol=1e-8)
    assert result.surplus == pytest.approx(result.first_best, rel=1e-9)


@relaxed
@given(seed=seeds, noiseless=st.booleans(), m=st.integers(1, 12), r=st.sampled_from([0.0, 2.0]))
def test_one_axis_without_priced_noise_makes_directions_efficient_or_harmful(
    seed: int, noiseless: bool, m: int, r: float
) -> None:
    data = game(seed, "noiseless" if noiseless else "random", m, 1, 0)
    model = model_of(data, r if noiseless else 0.0)
    goal, _ = matrices(data, 0.0)
    for u in np.random.default_rng(seed).normal(size=(5, m)):
        gain = float(goal @ u)
        if abs(gain) > 1e-9 * np.linalg.norm(goal) * np.linalg.norm(u):
            result = evaluate_scheme(model, u)
            assert result.efficiency == pytest.approx(float(gain > 0), abs=1e-9)
            assert result.lowers_welfare == (gain < 0)


@relaxed
@games
def test_cents_for_dollars_leave_the_weights(seed: int, kind: str, m: int, n: int, q: int, r: float) -> None:
    data = game(seed, kind, m, n, q)
    v = optimal_weights(model_of(data, r)).weights
    cents = data | {"technology": data["technology"] / 100, "curvature": data["curvature"] / 100**2}
    np.testing.assert_allclose(optimal_weights(model_of(cents, r)).weights, v, **close(v))


@relaxed
@games
def test_weights_follow_the_unit_of_value(seed: int, kind: str, m: int, n: int, q: int, r: float) -> None:
    data = game(seed, kind, m, n, q)
    v = optimal_weights(model_of(data, r)).weights
    for factor in (3.0, -1.0, 1e-6):
        scaled = optimal_weights(model_of(data | {"welfare": factor * data["welfare"]}, r)).weights
        np.testing.assert_allclose(scaled, factor * v, rtol=1e-6, atol=abs(factor) * close(v)["atol"])


@relaxed
@games
def test_weights_follow_the_order_of_items_and_of_axes(seed: int, kind: str, m: int, n: int, q: int, r: float) -> None:
    data, rng = game(seed, kind, m, n, q), np.random.default_rng(seed)
    v = optimal_weights(model_of(data, r)).weights
    order, axes = rng.permutation(m), rng.permutation(n)
    mixed = {key: data[key][order] for key in data if key != "curvature"}
    mixed["technology"] = mixed["technology"][:, axes]
    mixed["curvature"] = data["curvature"][np.ix_(axes, axes)]
    np.testing.assert_allclose(optimal_weights(model_of(mixed, r)).weights, v[order], **close(v))


@relaxed
@games
def test_two_copies_of_half_the_value_change_no_surplus(seed: int, kind: str, m: int, n: int, q: int, r: float) -> None:
    data = game(seed, kind, m, n, q)
    own = np.zeros((m, 1))  # the item's own noise moves into a factor that both copies share
    own[0] = np.sqrt(data["noise_variance"][0])
    shared = data | {"noise_factor": np.hstack([data["noise_factor"], own])}
    shared["noise_variance"] = np.r_[0, data["noise_variance"][1:]]
    double = {key: np.concatenate([shared[key][:1], shared[key]]) for key in shared if key != "curvature"}
    double["welfare"][:2] /= 2
    double["curvature"] = data["curvature"]
    one, two = (optimal_weights(model_of(case, r)) for case in (data, double))
    assert two.surplus == pytest.approx(one.surplus, rel=1e-7, abs=1e-10 * (1 + one.first_best))
    assert {0, 1} <= set(two.undetermined)
    wide = solved(model_of(double, r)).surplus
    assert wide == pytest.approx(solved(model_of(data, r)).surplus, rel=1e-6, abs=1e-8 * (1 + one.first_best))


@relaxed
@given(seed=seeds, m=st.integers(1, 8), rank=st.integers(1, 8), r=st.sampled_from([0.1, 1.0, 30.0]))
def test_own_noise_shrinks_a_weight_for_any_two_matrices(seed: int, m: int, rank: int, r: float) -> None:
    rng = np.random.default_rng(seed)
    half, other = rng.normal(size=(m, min(rank, m))), rng.normal(size=(m, m))
    M, Sigma, w = half @ half.T, other @ other.T + 0.01 * np.eye(m), rng.normal(size=m)
    before = optimal_weights(ItemAggregation.from_matrices(M, Sigma, w, risk_aversion=r)).weights
    i, more = int(rng.integers(m)), float(rng.exponential())
    raised = Sigma + more * np.outer(np.eye(m)[i], np.eye(m)[i])
    after = optimal_weights(ItemAggregation.from_matrices(M, raised, w, risk_aversion=r)).weights
    leverage = float(np.linalg.inv(M + r * Sigma)[i, i])
    assert after[i] == pytest.approx(before[i] / (1 + r * more * leverage), rel=1e-6, abs=1e-9)
    assert abs(after[i]) <= abs(before[i]) * (1 + 1e-9) + 1e-12


@relaxed
@games
def test_own_noise_never_raises_a_weight_under_any_constraints(
    seed: int, kind: str, m: int, n: int, q: int, r: float
) -> None:
    data, asked = game(seed, kind, m, n, q), constraints(seed, m)
    i = int(np.random.default_rng(seed).integers(m))
    noisier = data | {"noise_variance": data["noise_variance"] + np.eye(m)[i]}
    for rules in (None, asked):
        before, after = (
            optimal_weights(model_of(one, r)) if rules is None else solved(model_of(one, r), **rules)
            for one in (data, noisier)
        )
        if r == 0 or (rules is None and i in before.undetermined):
            continue
        slack = 1e-7 * (1 + before.first_best) / r  # S tells two weights apart up to here
        assert after.weights[i] ** 2 <= before.weights[i] ** 2 + slack


@relaxed
@games
def test_hedges_are_flagged_and_not_merely_clipped(seed: int, kind: str, m: int, n: int, q: int, r: float) -> None:
    data = game(seed, kind, m, n, q)
    model = model_of(data, r)
    optimum = optimal_weights(model)
    hedges = np.flatnonzero(optimum.weights < -1e-12 * np.abs(optimum.weights).max())
    assert np.array_equal(np.flatnonzero(optimum.negative), hedges)
    assert any("negative weight on" in text for text in optimum.warnings) == (hedges.size > 0)
    clipped = evaluate_scheme(model, optimum.weights.clip(min=0), optimum=optimum)
    best = solved(model, optimum=optimum)
    assert not best.negative.any()
    assert best.surplus >= clipped.surplus - 1e-8 * (1 + optimum.first_best)


@relaxed
@games
def test_more_risk_aversion_never_raises_the_surplus(seed: int, kind: str, m: int, n: int, q: int, r: float) -> None:
    sweep = risk_sweep(model_of(game(seed, kind, m, n, q), r), [0.0, 0.1, 1.0, 10.0], {})
    assert (np.diff(sweep.surplus) <= 1e-9 * (1 + sweep.first_best)).all()
    assert (sweep.surplus <= sweep.first_best * (1 + 1e-9)).all()
