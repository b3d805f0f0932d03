"""Bounds on the shares of groups against a modelling tool, finite differences and the dual method."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from benchwright._check import FloatArray
from benchwright.errors import UsageError
from benchwright.mechanism.aggregation import ItemAggregation, optimal_weights
from benchwright.mechanism.constraints import Constraints, GroupShares
from benchwright.mechanism.sensitivity import price_of
from constrained_games import game, matrices, model_of, solved


def random_rules(seed: int, m: int) -> dict[str, Any]:
    """Feasible bounds on three groups, with caps, equal weights or fixed shares beside some of them."""
    rng = np.random.default_rng([seed, 7])
    codes = np.concatenate([[0, 1, 2], rng.integers(0, 3, m - 3)])
    low, high = rng.uniform(0.05, 0.2, 3), rng.uniform(0.35, 0.6, 3)
    asked: dict[str, Any] = {
        "share_within": GroupShares(codes, low={0: low[0], 2: low[2]}, high={1: high[1], 2: high[2]}),
        "non_negative": seed % 4 != 3,
    }
    if seed % 4 in (1, 3):
        asked["max_share"] = 0.5
    if seed % 4 == 2:
        asked["equal_within"] = rng.integers(0, m // 2, m)
    return asked


def stated(data: dict[str, Any], r: float, asked: dict[str, Any]) -> tuple[float, FloatArray]:
    """The greatest surplus and its weights, by cvxpy."""
    import cvxpy as cp

    goal, H = matrices(data, r)
    size, m, groups = float(np.abs(goal).max()), goal.size, asked["share_within"]
    v = cp.Variable(m)
    t = cp.sum(v)
    conditions = [t >= 0]
    for g, name in enumerate(groups.names):
        held = (groups.codes == g).astype(float) @ v
        conditions += [held >= groups.low[name] * t] if name in groups.low else []
        conditions += [held <= groups.high[name] * t] if name in groups.high else []
    if asked["non_negative"]:
        conditions.append(v >= 0)
    if "max_share" in asked:
        conditions.append(v <= asked["max_share"] * t)
    if "equal_within" in asked:
        same = asked["equal_within"]
        conditions += [v[i] == v[int(np.flatnonzero(same == same[i])[0])] for i in range(m)]
    value = cp.Problem(cp.Maximize((goal / size) @ v - cp.quad_form(v, cp.psd_wrap(H)) / 2), conditions).solve(
        solver=cp.CLARABEL, tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12
    )
    return float(value) * size**2, np.asarray(v.value) * size


@pytest.mark.libraries
@pytest.mark.parametrize("seed", range(60))
def test_an_independent_modelling_tool_agrees(seed: int) -> None:
    rng = np.random.default_rng(seed)
    m, n, q = int(rng.integers(6, 25)), int(rng.integers(1, 5)), int(rng.integers(0, 5))
    data, r = game(seed, "random", m, n, q), (0.1, 1.0, 5.0)[seed % 3]
    asked = random_rules(seed, m)
    result = solved(model_of(data, r), **asked)
    best, v = stated(data, r, asked)
    assert result.status in ("optimal", "no positive score helps")
    assert result.surplus == pytest.approx(best, rel=1e-6, abs=1e-6 * result.first_best)
    np.testing.assert_allclose(result.weights, v, atol=1e-6 * max(float(np.abs(v).max()), 1.0), rtol=1e-6)
    assert result.residual <= 1e-8
    if result.status == "optimal":
        groups = asked["share_within"]
        shares = np.bincount(groups.codes, result.shares, 3)
        assert all(shares[g] >= low - 1e-8 for g, low in groups.low.items())
        assert all(shares[g] <= high + 1e-8 for g, high in groups.high.items())


@pytest.mark.libraries
@pytest.mark.parametrize("kind", ["random", "half noiseless", "noiseless"])
def test_loose_bounds_change_nothing(kind: str) -> None:
    model, codes = model_of(game(3, kind, 30, 3, 2), 1.0), np.arange(30) % 3
    for asked in ({}, {"max_share": 0.2}, {"equal_within": np.arange(30) // 2}, {"fixed_shares": {4: 0.1}}):
        plain = solved(model, **asked)
        loose = solved(model, **asked, share_within=GroupShares(codes, low={0: 0.0}, high={1: 1.0}))
        assert loose.status == "optimal"
        assert loose.method == "clarabel"
        assert loose.surplus == pytest.approx(plain.surplus, rel=1e-7)
        for name, prices in plain.prices.items():
            if kind == "random":
                size = float(np.abs(prices).max())
                np.testing.assert_allclose(
                    loose.prices[name], prices, rtol=1e-4, atol=1e-4 * size + 1e-6 * plain.surplus
                )
                np.testing.assert_array_equal(loose.binding[name], plain.binding[name])
        assert np.abs(loose.prices["share_within"]).max() <= 1e-6 * plain.surplus


@pytest.mark.libraries
def test_prices_of_groups_are_derivatives_of_the_surplus() -> None:
    data, codes = game(5, "random", 12, 3, 2), np.array(list("abc"))[np.arange(12) % 3]
    data["technology"], data["welfare"] = np.abs(data["technology"]) + 0.2, np.abs(data["welfare"])
    model = model_of(data, 1.0)
    plain = solved(model).shares
    held = {name: float(plain[codes == name].sum()) for name in "abc"}

    def surplus(x: float, y: float) -> float:
        groups = GroupShares(codes, low={"a": held["a"] + 0.1 + x}, high={"b": held["b"] - 0.08 + y})
        return solved(model, share_within=groups).surplus

    result = solved(model, share_within=GroupShares(codes, low={"a": held["a"] + 0.1}, high={"b": held["b"] - 0.08}))
    prices, step = result.prices["share_within"], 1e-4
    low = (surplus(step, 0) - surplus(-step, 0)) / (2 * step)
    high = (surplus(0, step) - surplus(0, -step)) / (2 * step)
    np.testing.assert_allclose(prices[codes == "a"], low, rtol=1e-3)
    np.testing.assert_allclose(prices[codes == "b"], high, rtol=1e-3)
    assert low < 0 < high
    assert not prices[codes == "c"].any()
    assert result.binding["share_within"].tolist() == (codes != "c").tolist()
    costs = price_of(model, Constraints(share_within=GroupShares(codes, low={"a": held["a"] + 0.1})))
    assert costs["share_within"] > 0


@pytest.mark.libraries
def test_cases_without_value_say_so() -> None:
    harmful = ItemAggregation([[1.0], [2.0]], [-1.0, -1.0], risk_aversion=1, noise_variance=[1.0, 1.0])
    groups = GroupShares(["a", "b"], low={"a": 0.4})
    result = solved(harmful, share_within=groups)
    assert result.status == "no positive score helps"
    assert not result.weights.any()
    assert np.isnan(result.prices["share_within"]).all()
    assert not result.binding["share_within"].any()
    idle = ItemAggregation([[1.0], [1.0]], [1.0, -1.0], risk_aversion=1, noise_variance=[1.0, 1.0])
    assert solved(idle, share_within=groups).status == "no incentive has value"


@pytest.mark.libraries
def test_copies_without_noise_are_named_as_undetermined() -> None:
    data = game(2, "random", 6, 2, 0)
    data["technology"], data["welfare"] = np.abs(data["technology"]), np.ones(6)
    data["technology"][1] = data["technology"][0] = 3.0
    data["noise_variance"][:2] = 0
    together = GroupShares([0, 0, 1, 1, 1, 1], low={1: 0.2})
    apart = GroupShares([0, 2, 1, 1, 1, 1], low={1: 0.2, 0: 0.3})
    assert solved(model_of(data, 1.0), share_within=together).undetermined == (0, 1)
    assert set(solved(model_of(data, 1.0), share_within=apart).undetermined) <= {0, 1}
    data["noise_variance"][:2] = 0.1
    assert solved(model_of(data, 1.0), share_within=together).undetermined == ()


THREE = {"technology": [[1.0], [2.0], [3.0]], "welfare": [1.0, 1.0, 1.0], "noise_variance": [1.0, 1.0, 1.0]}


@pytest.mark.libraries
@pytest.mark.parametrize(
    ("groups", "beside", "words"),
    [
        ({"low": {"a": 0.7, "b": 0.4}}, {}, "`share_within` and `non_negative` clash|and shares that sum to 1 clash"),
        ({"high": {"a": 0.5, "b": 0.4}}, {}, "`share_within` and shares that sum to 1 clash"),
        ({"low": {"b": 0.7}}, {"max_share": 0.5}, "`share_within` and `max_share` clash"),
        ({"high": {"a": 0.2}}, {"fixed_shares": {0: 0.3}}, "`share_within` and .*`fixed_shares` clash"),
        ({"low": {"a": 0.8}}, {"equal_within": [0, 0, 0]}, "`share_within` and .*`equal_within` clash"),
        ({"low": {"a": 1.2}}, {}, "`share_within` and `non_negative` clash"),
    ],
)
def test_bounds_that_no_shares_meet_are_refused(groups: dict[str, Any], beside: dict[str, Any], words: str) -> None:
    model = ItemAggregation(**THREE, risk_aversion=1)
    with pytest.raises(UsageError, match=words):
        solved(model, share_within=GroupShares(["a", "a", "b"], **groups), **beside)


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        ({"low": {"a": 0.6}, "high": {"a": 0.5}}, "clashes at 'a'"),
        ({"low": {"x": 0.1}}, "'x', which is no group"),
        ({"high": {"a": np.nan}}, "finite bounds"),
    ],
)
def test_group_bounds_are_checked(groups: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        GroupShares(["a", "a", "b"], **groups)


def test_what_group_bounds_cannot_do_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    model = ItemAggregation(**THREE, risk_aversion=1)
    with pytest.raises(UsageError, match="must be GroupShares"):
        Constraints(share_within={"a": 0.5})  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="got `share_within`"):
        Constraints(at_most=2, share_within=GroupShares([0, 0, 1]))

    def missing(name: str) -> None:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr("benchwright.mechanism.group_shares.import_module", missing)
    with pytest.raises(UsageError, match=r"pip install 'benchwright\[qp\]'"):
        solved(model, share_within=GroupShares([0, 0, 1]))
    monkeypatch.setattr("benchwright.mechanism.group_shares.import_module", lambda name: name)
    monkeypatch.setattr("benchwright.mechanism.group_shares.MOST_ITEMS", 2)
    with pytest.raises(UsageError, match="at most 2 items, got 3"):
        optimal_weights(model, Constraints(share_within=GroupShares([0, 0, 1])))
    monkeypatch.setattr("benchwright.mechanism.group_shares.MOST_ITEMS", 3)
    with pytest.raises(UsageError, match="3 group codes"):
        solved(model, share_within=GroupShares([0, 0]))


def test_constraints_have_a_record() -> None:
    asked = Constraints(
        max_share=[0.5, 0.6, 0.7],
        equal_within=["x", "y", "x"],
        share_within=GroupShares(["b", "a", "b"], low={"a": 0.1}),
    )
    record = json.loads(json.dumps(asked.to_dict(), allow_nan=False))
    assert record["equal_within"] == [0, 1, 0]
    assert record["share_within"] == {"groups": ["b", "a", "b"], "low": {"a": 0.1}, "high": {}}
