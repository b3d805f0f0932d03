"""Constrained weights against enumeration, linear programmes, finite differences and their invariances."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import null_space
from scipy.optimize import linprog

from benchwright._check import FloatArray
from benchwright.errors import UsageError
from benchwright.mechanism import _constrained as numbers
from benchwright.mechanism import _weights as kernel
from benchwright.mechanism.aggregation import ItemAggregation, optimal_weights
from benchwright.mechanism.constrained import constrained_weights, price_of

KINDS = ("random", "half noiseless", "noiseless", "graded noise", "copies", "harmful")
RULES = ("non_negative", "max_share", "equal_within", "fixed_shares")
games = given(
    seed=st.integers(0, 2**32 - 1),
    kind=st.sampled_from(KINDS),
    m=st.integers(1, 60),
    n=st.integers(1, 4),
    q=st.integers(0, 5),
    r=st.sampled_from([0.0, 0.1, 1.0, 20.0]),
)
relaxed = settings(derandomize=True, deadline=None, max_examples=60)


def game(seed: int, kind: str, m: int, n: int, q: int) -> dict[str, Any]:
    """A random game; ``kind`` says what is special about it."""
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    A, F = rng.normal(size=(m, n)), 0.5 * rng.normal(size=(m, q))
    d, w = rng.uniform(0.01, 0.5, m), rng.normal(0.5, 1.0, m)
    if kind == "half noiseless":
        d[rng.random(m) < 0.5] = 0
    elif kind == "noiseless":
        d[:] = 0
    elif kind == "graded noise":
        d = 10.0 ** rng.uniform(-8, 0, m)
    elif kind == "copies":
        half = m // 2
        A[m - half :], F[m - half :] = A[:half], F[:half]
        d[rng.random(m) < 0.5] = 0
    elif kind == "harmful":
        A, w = np.abs(A), -np.abs(w) + 0.5
    root = rng.normal(size=(n, n))
    return {
        "technology": A,
        "welfare": w,
        "noise_variance": d,
        "noise_factor": F,
        "curvature": root @ root.T + np.eye(n),
    }


def constraints(seed: int, m: int) -> dict[str, Any]:
    """A random feasible set of constraints."""
    rng = np.random.default_rng([seed, 99])
    which = rng.random(4) < (0.8, 0.5, 0.3, 0.3)
    asked: dict[str, Any] = {"non_negative": bool(which[0])}
    codes = np.arange(m)
    if which[2]:
        asked["equal_within"] = codes = rng.integers(0, max(m // 2, 1), m)
    if which[1]:
        caps = rng.uniform(1.0, 4.0, m) / m
        lowest = np.full(m, np.inf)
        np.minimum.at(lowest, codes, caps)
        asked["max_share"] = 1.0001 * caps / min(float(lowest[codes].sum()), 1.0)
    if which[3] and m > 2 and (which[0] or which[1]):
        item = int(rng.integers(m))
        size = int((codes == codes[item]).sum())
        if size < m:
            asked["fixed_shares"] = {item: 0.3 / size}
            if "max_share" in asked:
                asked["max_share"] = np.maximum(asked["max_share"], max(0.3 / size, 0.9 / (m - size)))
    return asked


def model_of(data: dict[str, Any], r: float) -> ItemAggregation:
    return ItemAggregation(**data, risk_aversion=r)


def matrices(data: dict[str, Any], r: float) -> tuple[FloatArray, FloatArray]:
    """M w and H = M + r Sigma, dense."""
    A, F = data["technology"], data["noise_factor"]
    M = A @ np.linalg.solve(data["curvature"], A.T)
    return M @ data["welfare"], M + r * (np.diag(data["noise_variance"]) + F @ F.T)


def bounds(m: int, asked: dict[str, Any]) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Bounds on the share of each item, and its group."""
    lower = np.zeros(m) if asked.get("non_negative", True) else np.full(m, -np.inf)
    upper = np.broadcast_to(np.asarray(asked.get("max_share", np.inf), dtype=float), m).copy()
    codes = np.unique(asked.get("equal_within", np.arange(m)), return_inverse=True)[1]
    for item, share in asked.get("fixed_shares", {}).items():
        same = codes == codes[item]
        lower[same] = upper[same] = share
    return lower, upper, codes


def best_gain(e: FloatArray, asked: dict[str, Any]) -> float:
    """max e's over share vectors s that meet the constraints, by a linear programme."""
    lower, upper, codes = bounds(e.size, asked)
    G = np.eye(codes.max() + 1)[codes]
    low, high = np.full(G.shape[1], -np.inf), np.full(G.shape[1], np.inf)
    np.maximum.at(low, codes, lower)
    np.minimum.at(high, codes, upper)
    sides = [(None if np.isinf(a) else a, None if np.isinf(b) else b) for a, b in zip(low, high, strict=True)]
    answer = linprog(-G.T @ e, A_eq=G.sum(axis=0)[None], b_eq=[1.0], bounds=sides)
    return -float(answer.fun) if answer.status == 0 else np.inf


def enumerated(data: dict[str, Any], r: float, asked: dict[str, Any]) -> float:
    """The greatest surplus, over all patterns of groups at their bounds, each solved as a dense linear system."""
    goal, H = matrices(data, r)
    lower, upper, codes = bounds(goal.size, asked)
    coupled = bool(np.isfinite(upper).any())
    count, best = codes.max() + 1, 0.0
    G = np.eye(count)[codes]
    sums = G.sum(axis=0)
    low = np.array([lower[codes == g].max() for g in range(count)])
    high = np.array([upper[codes == g].min() for g in range(count)])
    choices = [{np.nan, a, b} - {np.inf, -np.inf} if a < b else {a} for a, b in zip(low, high, strict=True)]
    for pattern in product(*choices):
        rows = [np.eye(count)[g] - s * sums for g, s in enumerate(pattern) if not np.isnan(s)]
        basis = null_space(np.array(rows)) if rows else np.eye(count)
        T = G @ basis
        if T.shape[1] == 0:
            continue
        v = T @ (np.linalg.pinv(T.T @ H @ T, rcond=1e-11, hermitian=True) @ (T.T @ goal))
        t, slack = float(v.sum()), 1e-9 * float(np.abs(v).max(initial=0.0))
        with np.errstate(invalid="ignore"):
            over = np.where(np.isinf(upper), -np.inf, v - upper * t).max()
            under = np.where(np.isinf(lower), -np.inf, lower * t - v).max()
        if max(over, under, -t if coupled else -np.inf) <= slack:
            best = max(best, float(goal @ v - v @ H @ v / 2))
    return best


@relaxed
@games
def test_no_feasible_direction_gains(seed: int, kind: str, m: int, n: int, q: int, r: float) -> None:
    data, asked = game(seed, kind, m, n, q), constraints(seed, m)
    result = constrained_weights(model_of(data, r), **asked)
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
    result = constrained_weights(model_of(data, r), **asked)
    best = enumerated(data, r, asked)
    assert result.surplus == pytest.approx(best, rel=1e-7, abs=1e-10 * result.first_best)
    assert result.residual <= 1e-8


@relaxed
@games
def test_a_feasible_optimum_is_returned_as_it_is(seed: int, kind: str, m: int, n: int, q: int, r: float) -> None:
    data = game(seed, kind, m, n, q)
    model = model_of(data, r)
    optimum = optimal_weights(model)
    same = constrained_weights(model, non_negative=False, optimum=optimum)
    np.testing.assert_array_equal(same.weights, optimum.weights)
    assert same.method == "unconstrained"
    assert same.efficiency == 1
    result = constrained_weights(model, optimum=optimum)
    if optimum.weights.min() >= 0:
        np.testing.assert_array_equal(result.weights, optimum.weights)
    assert result.surplus <= optimum.surplus * (1 + 1e-9)


@relaxed
@games
def test_units_scale_and_order_move_weights_as_they_must(
    seed: int, kind: str, m: int, n: int, q: int, r: float
) -> None:
    data, asked = game(seed, kind, m, n, q), constraints(seed, m)
    result = constrained_weights(model_of(data, r), **asked)
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
        twin = constrained_weights(model_of(other, r), **rules)
        slack = 1e-8 * result.first_best * factor**2
        assert twin.surplus == pytest.approx(factor**2 * result.surplus, rel=1e-6, abs=slack)
        if unique:
            close = {"rtol": 1e-6, "atol": 1e-7 * float(np.abs(result.weights).max())}
            np.testing.assert_allclose(twin.weights, factor * result.weights[places], **close)


@relaxed
@games
def test_loose_constraints_change_nothing(seed: int, kind: str, m: int, n: int, q: int, r: float) -> None:
    model = model_of(game(seed, kind, m, n, q), r)
    plain = constrained_weights(model)
    loose = constrained_weights(model, max_share=1.0, equal_within=np.arange(m)[::-1])
    np.testing.assert_allclose(loose.weights, plain.weights, rtol=1e-9, atol=1e-9 * float(np.abs(plain.weights).max()))


@relaxed
@games
def test_surplus_falls_as_constraints_are_added(seed: int, kind: str, m: int, n: int, q: int, r: float) -> None:
    model = model_of(game(seed, kind, m, n, q), r)
    optimum = optimal_weights(model)
    codes = np.arange(m) // 2
    steps: list[dict[str, Any]] = [
        {"non_negative": False},
        {},
        {"max_share": max(1.0 / m, 0.9)},
        {"max_share": max(1.5 / m, 0.5)},
        {"max_share": max(1.5 / m, 0.5), "equal_within": codes},
    ]
    if m > 4:
        steps.append(steps[-1] | {"fixed_shares": {0: 0.1}})
    values = [constrained_weights(model, **step, optimum=optimum).surplus for step in steps]
    assert values[0] <= optimum.surplus * (1 + 1e-9)
    assert (np.diff(values) <= 1e-8 * optimum.surplus).all()


@relaxed
@games
def test_own_noise_alone_never_raises_an_unconstrained_weight(
    seed: int, kind: str, m: int, n: int, q: int, r: float
) -> None:
    data = game(seed, "random" if kind in ("graded noise", "noiseless") else kind, m, n, q)
    data["noise_variance"] = np.maximum(data["noise_variance"], 0.01)
    noisier = data | {"noise_variance": data["noise_variance"] + np.eye(m)[0]}
    before = constrained_weights(model_of(data, r), non_negative=False).weights
    after = constrained_weights(model_of(noisier, r), non_negative=False).weights
    if r > 0:
        assert abs(after[0]) <= abs(before[0]) * (1 + 1e-8) + 1e-12


def derivative(model: ItemAggregation, change: Any, step: float = 1e-5) -> float:
    """Central difference of the surplus along a one-parameter family of constraints."""
    high, low = (constrained_weights(model, **change(x)).surplus for x in (step, -step))
    return (high - low) / (2 * step)


@pytest.mark.parametrize("seed", range(8))
def test_prices_are_derivatives_of_the_surplus(seed: int) -> None:
    m = 8
    data = game(seed, "random", m, 3, 2)
    data["welfare"] = np.abs(data["welfare"])
    data["technology"] = np.abs(data["technology"]) + 0.2
    model = model_of(data, 1.0)
    caps, unit, codes = np.full(m, 0.2), np.eye(m), np.array([0, 0, 1, 1, 2, 3, 4, 5])
    result = constrained_weights(model, max_share=caps, fixed_shares={0: 0.05})
    scale = result.surplus
    held = np.flatnonzero(result.binding["max_share"])
    assert held.size
    for i in held:
        found = derivative(model, lambda x, i=i: {"max_share": caps + x * unit[i], "fixed_shares": {0: 0.05}})
        assert result.prices["max_share"][i] == pytest.approx(found, rel=1e-3, abs=1e-4 * scale)
    found = derivative(model, lambda x: {"max_share": caps, "fixed_shares": {0: 0.05 + x}})
    assert result.prices["fixed_shares"][0] == pytest.approx(found, rel=1e-3, abs=1e-4 * scale)
    tied = constrained_weights(model, equal_within=codes, max_share=caps)
    assert tied.prices["equal_within"].any()
    assert abs(np.bincount(codes, tied.prices["equal_within"])).max() <= 1e-7 * scale
    for g in np.unique(codes[tied.binding["max_share"]]):
        same = (codes == g).astype(float)
        found = derivative(model, lambda x, same=same: {"equal_within": codes, "max_share": caps + x * same})
        assert tied.prices["max_share"][codes == g].sum() == pytest.approx(found, rel=1e-3, abs=1e-4 * scale)


def test_price_of_a_floor_and_of_equality_are_derivatives() -> None:
    data = game(3, "random", 7, 2, 1)
    goal, H = matrices(data, 1.0)
    m, unit, ones = 7, np.eye(7), np.ones(7)
    result = constrained_weights(model_of(data, 1.0))
    held = np.flatnonzero(result.binding["non_negative"])
    free = np.setdiff1d(np.arange(m), held)
    assert held.size
    assert free.size
    codes = np.array([0, 0, 0, 1, 1, 2, 3])
    tied = constrained_weights(model_of(data, 1.0), non_negative=False, equal_within=codes)

    def face(columns: FloatArray, i: int, x: float) -> float:
        """Surplus over v = columns z with x of the total more on item i."""
        T = np.linalg.solve(np.eye(m) - x * np.outer(unit[i], ones), columns)
        return float(goal @ T @ np.linalg.solve(T.T @ H @ T, T.T @ goal)) / 2

    for i in held:
        found = (face(unit[:, free], i, -1e-5) - face(unit[:, free], i, 1e-5)) / 2e-5
        assert result.prices["non_negative"][i] == pytest.approx(found, rel=1e-4)
    for i in range(m):
        G = np.eye(4)[codes]
        found = (face(G, i, 1e-5) - face(G, i, -1e-5)) / 2e-5
        assert tied.prices["equal_within"][i] == pytest.approx(found, rel=1e-4, abs=1e-8)


def test_price_of_is_what_dropping_a_constraint_gains() -> None:
    model = model_of(game(5, "random", 12, 3, 2), 1.0)
    asked: dict[str, Any] = {
        "max_share": 0.2,
        "equal_within": np.arange(12) // 2,
        "fixed_shares": {0: 0.1},
    }
    costs = price_of(model, **asked)
    assert set(costs) == set(RULES)
    bound = constrained_weights(model, **asked).surplus
    for name in RULES:
        rest = {key: value for key, value in asked.items() if key != name}
        rest["non_negative"] = name != "non_negative"
        assert costs[name] == pytest.approx(constrained_weights(model, **rest).surplus - bound, abs=1e-9)
        assert costs[name] >= 0
    assert list(price_of(model, non_negative=False, max_share=0.5)) == ["max_share"]
    assert np.isnan(price_of(model, fixed_shares={0: 0.1})["non_negative"])


def test_cases_without_value_say_so() -> None:
    idle = constrained_weights(ItemAggregation([[1.0], [1.0]], [1.0, -1.0], risk_aversion=1, noise_variance=[1.0, 1.0]))
    assert idle.status == "no incentive has value"
    assert not idle.weights.any()
    assert np.isnan(idle.efficiency)
    harmful = ItemAggregation([[1.0], [2.0]], [-1.0, -1.0], risk_aversion=1, noise_variance=[1.0, 1.0])
    result = constrained_weights(harmful, max_share=0.7)
    assert result.status == "no positive score helps"
    assert not result.weights.any()
    assert result.efficiency == 0
    assert result.residual == 0
    assert np.isnan(result.shares).all()
    assert np.isnan(result.prices["non_negative"]).all()
    assert np.isnan(result.prices["max_share"]).all()
    assert "no positive score helps" in str(result)


def test_groups_are_the_game_of_their_means() -> None:
    data, codes = game(1, "random", 20, 3, 4), np.arange(20) % 4
    G = np.eye(4)[codes] / 5
    goal, H = matrices(data, 2.0)
    result = constrained_weights(model_of(data, 2.0), equal_within=np.array(list("abcd"))[codes], non_negative=False)
    totals = np.linalg.solve(G.T @ H @ G, G.T @ goal)
    np.testing.assert_allclose(result.weights, G @ totals, rtol=1e-9)
    assert result.residual <= 1e-12


def test_copies_without_noise_are_named_as_undetermined() -> None:
    data = game(2, "random", 6, 2, 0)
    data["technology"] = np.abs(data["technology"])
    data["welfare"] = np.ones(6)
    data["technology"][1] = data["technology"][0] = 3.0
    data["noise_variance"][:2] = 0
    result = constrained_weights(model_of(data, 1.0), max_share=0.6)
    assert result.undetermined == (0, 1)
    assert result.weights[0] == pytest.approx(result.weights[1], rel=1e-9)
    data["noise_variance"][:2] = 0.1
    assert constrained_weights(model_of(data, 1.0), max_share=0.6).undetermined == ()


def test_caps_that_sum_to_one_leave_one_share_vector() -> None:
    data = game(4, "random", 5, 2, 1)
    data["welfare"] = np.abs(data["welfare"])
    data["technology"] = np.abs(data["technology"])
    model = model_of(data, 1.0)
    result = constrained_weights(model, max_share=0.2)
    np.testing.assert_allclose(result.shares, 0.2, rtol=1e-12)
    assert result.status == "optimal"
    i = int(np.argmax(result.prices["max_share"]))
    raised = constrained_weights(model, max_share=0.2 + 1e-5 * np.eye(5)[i]).surplus
    assert result.prices["max_share"][i] == pytest.approx((raised - result.surplus) / 1e-5, rel=1e-3)
    fixed = constrained_weights(model, fixed_shares={0: 0.5, 2: 0.5})
    np.testing.assert_allclose(fixed.shares, [0.5, 0, 0.5, 0, 0], atol=1e-12)


def test_nested_searches_agree_with_the_joint_one(monkeypatch: pytest.MonkeyPatch) -> None:
    model = model_of(game(6, "half noiseless", 40, 3, 2), 1.0)
    asked: dict[str, Any] = {"max_share": 0.06, "fixed_shares": {3: 0.05}}
    joint = constrained_weights(model, **asked)
    monkeypatch.setattr(numbers, "PATTERNS", 0)
    nested = constrained_weights(model, **asked)
    assert nested.surplus == pytest.approx(joint.surplus, rel=1e-9)
    assert nested.residual <= 1e-8


def test_blocks_do_not_change_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    model = model_of(game(7, "random", 101, 3, 2), 1.0)
    whole = constrained_weights(model, max_share=0.03).weights
    monkeypatch.setattr(numbers, "BLOCK_ROWS", 7)
    np.testing.assert_allclose(constrained_weights(model, max_share=0.03).weights, whole, rtol=1e-8, atol=1e-12)


def test_residual_sees_weights_that_are_not_optimal() -> None:
    data = game(8, "random", 10, 2, 1)
    model = model_of(data, 1.0)
    goal, H = matrices(data, 1.0)
    v = constrained_weights(model, max_share=0.3).weights
    cone = numbers.Cone.of(np.zeros(10), np.full(10, 0.3))
    assert numbers.optimality_residual(goal - H @ v, goal, v, cone) <= 1e-9
    top = int(np.argmax(v))
    for worse in (1.01 * v, v + 0.01 * v.max() * np.eye(10)[top], np.roll(v, 1), 0 * v):
        assert numbers.optimality_residual(goal - H @ worse, goal, worse, cone) > 1e-4


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"max_share": 0.2}, ("max_share", "sum to 1")),
        ({"max_share": 0.4, "fixed_shares": {0: 0.1}}, ("max_share", "fixed_shares")),
        ({"max_share": [0.1, 1, 1], "equal_within": [0, 0, 0]}, ("max_share", "equal_within")),
        ({"fixed_shares": {0: 0.7, 1: 0.5}}, ("fixed_shares", "non_negative")),
        ({"fixed_shares": {0: -0.1}}, ("fixed_shares", "non_negative")),
        ({"fixed_shares": {0: 0.5}, "max_share": 0.4}, ("fixed_shares", "max_share")),
        ({"fixed_shares": {0: 0.2, 1: 0.3}, "equal_within": [5, 5, 7]}, ("fixed_shares", "equal_within")),
        ({"fixed_shares": {0: 0.2, 1: 0.2, 2: 0.2}}, ("fixed_shares", "sum to 1")),
        ({"fixed_shares": {"x": 0.2}}, ("fixed_shares", "'x'")),
        ({"fixed_shares": {3: 0.2}}, ("fixed_shares", "3")),
        ({"fixed_shares": {0: np.nan}}, ("fixed_shares", "finite")),
        ({"fixed_shares": {0: 0.1}, "non_negative": False}, ("fixed_shares", "non_negative=False")),
        ({"max_share": -0.1}, ("max_share", ">= 0")),
        ({"max_share": [1.0, 1.0]}, ("max_share", "3 rows")),
        ({"equal_within": [0, 1]}, ("equal_within", "3 group codes")),
        ({"equal_within": [0, 1, np.nan]}, ("equal_within", "finite")),
        ({"tolerance": 0}, ("tolerance", "between 0 and 1")),
    ],
)
def test_what_cannot_be_met_is_refused_by_name(asked: dict[str, Any], words: tuple[str, ...]) -> None:
    model = ItemAggregation([[1.0], [2.0], [3.0]], [1.0, 1.0, 1.0], risk_aversion=1, noise_variance=[1.0, 1.0, 1.0])
    with pytest.raises(UsageError) as error:
        constrained_weights(model, **asked)
    for word in words:
        assert word in str(error.value)


def test_an_optimum_of_another_game_is_refused() -> None:
    model = ItemAggregation([[1.0], [2.0]], [1.0, 1.0], risk_aversion=1, noise_variance=[1.0, 1.0])
    with pytest.raises(UsageError, match="must belong to"):
        constrained_weights(model, optimum=optimal_weights(model.with_risk_aversion(2.0)))


def test_names_serve_as_keys_and_the_record_is_complete() -> None:
    model = ItemAggregation(
        [[1.0], [1.0], [1.0]], [1.0, 1.0, 1.0], risk_aversion=1, noise_variance=[1.0, 2.0, 4.0], names=("a", "b", "c")
    )
    result = constrained_weights(model, fixed_shares={"b": 0.5})
    assert result.shares[1] == pytest.approx(0.5, abs=1e-12)
    record = result.to_dict()
    assert record["names"] == ["a", "b", "c"]
    assert record["status"] == "optimal"
    assert set(record["prices"]) == {"non_negative", "fixed_shares"}
    assert "fixed_shares on 1" in str(result)


def test_unconstrained_weights_equal_the_kernels() -> None:
    for kind in KINDS:
        data = game(11, kind, 30, 3, 2)
        x = kernel.Factors(
            data["technology"],
            data["noise_factor"],
            data["noise_variance"],
            data["welfare"],
            kernel.inverse_root(data["curvature"], 3),
        )
        expected = kernel.solve(x, 0.7).weights
        found = numbers.unconstrained(x, 0.7, numbers.goal(x), 1e-9)
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9 * np.abs(expected).max())
