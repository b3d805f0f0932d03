"""Constrained weights: undefined cases, clashes, records, and the kernels' own paths."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from benchwright.errors import UsageError
from benchwright.mechanism import _cone
from benchwright.mechanism import _constrained as numbers
from benchwright.mechanism import _weights as kernel
from benchwright.mechanism._cone import Cone, optimality_residual
from benchwright.mechanism.aggregation import ItemAggregation, evaluate_scheme, optimal_weights
from benchwright.mechanism.constraints import Constraints
from constrained_games import KINDS, game, matrices, model_of, solved


def test_cases_without_value_say_so() -> None:
    idle = solved(ItemAggregation([[1.0], [1.0]], [1.0, -1.0], risk_aversion=1, noise_variance=[1.0, 1.0]))
    assert idle.status == "no incentive has value"
    assert not idle.weights.any()
    assert np.isnan(idle.efficiency)
    harmful = ItemAggregation([[1.0], [2.0]], [-1.0, -1.0], risk_aversion=1, noise_variance=[1.0, 1.0])
    result = solved(harmful, max_share=0.7)
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
    result = solved(model_of(data, 2.0), equal_within=np.array(list("abcd"))[codes], non_negative=False)
    totals = np.linalg.solve(G.T @ H @ G, G.T @ goal)
    np.testing.assert_allclose(result.weights, G @ totals, rtol=1e-9)
    assert result.residual <= 1e-12


def test_copies_without_noise_are_named_as_undetermined() -> None:
    data = game(2, "random", 6, 2, 0)
    data["technology"] = np.abs(data["technology"])
    data["welfare"] = np.ones(6)
    data["technology"][1] = data["technology"][0] = 3.0
    data["noise_variance"][:2] = 0
    result = solved(model_of(data, 1.0), max_share=0.6)
    assert result.undetermined == (0, 1)
    assert result.weights[0] == pytest.approx(result.weights[1], rel=1e-9)
    data["noise_variance"][:2] = 0.1
    assert solved(model_of(data, 1.0), max_share=0.6).undetermined == ()


def test_caps_that_sum_to_one_leave_one_share_vector() -> None:
    data = game(4, "random", 5, 2, 1)
    data["welfare"] = np.abs(data["welfare"])
    data["technology"] = np.abs(data["technology"])
    model = model_of(data, 1.0)
    result = solved(model, max_share=0.2)
    np.testing.assert_allclose(result.shares, 0.2, rtol=1e-12)
    assert result.status == "optimal"
    i = int(np.argmax(result.prices["max_share"]))
    raised = solved(model, max_share=0.2 + 1e-5 * np.eye(5)[i]).surplus
    assert result.prices["max_share"][i] == pytest.approx((raised - result.surplus) / 1e-5, rel=1e-3)
    fixed = solved(model, fixed_shares={0: 0.5, 2: 0.5})
    np.testing.assert_allclose(fixed.shares, [0.5, 0, 0.5, 0, 0], atol=1e-12)


def test_nested_searches_agree_with_the_joint_one(monkeypatch: pytest.MonkeyPatch) -> None:
    model = model_of(game(6, "half noiseless", 40, 3, 2), 1.0)
    asked: dict[str, Any] = {"max_share": 0.06, "fixed_shares": {3: 0.05}}
    joint = solved(model, **asked)
    monkeypatch.setattr(_cone, "PATTERNS", 0)
    nested = solved(model, **asked)
    assert nested.surplus == pytest.approx(joint.surplus, rel=1e-9)
    assert nested.residual <= 1e-8


def test_blocks_do_not_change_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    model = model_of(game(7, "random", 101, 3, 2), 1.0)
    whole = solved(model, max_share=0.03).weights
    monkeypatch.setattr(numbers, "BLOCK_ROWS", 7)
    np.testing.assert_allclose(solved(model, max_share=0.03).weights, whole, rtol=1e-8, atol=1e-12)


def test_residual_sees_weights_that_are_not_optimal() -> None:
    data = game(8, "random", 10, 2, 1)
    model = model_of(data, 1.0)
    goal, H = matrices(data, 1.0)
    v = solved(model, max_share=0.3).weights
    cone = Cone.of(np.zeros(10), np.full(10, 0.3))
    assert optimality_residual(goal - H @ v, goal, v, cone) <= 1e-9
    top = int(np.argmax(v))
    for worse in (1.01 * v, v + 0.01 * v.max() * np.eye(10)[top], np.roll(v, 1), 0 * v):
        assert optimality_residual(goal - H @ worse, goal, worse, cone) > 1e-4


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
        ({"non_negative": 2}, ("non_negative", "True or False")),
    ],
)
def test_what_cannot_be_met_is_refused_by_name(asked: dict[str, Any], words: tuple[str, ...]) -> None:
    model = ItemAggregation([[1.0], [2.0], [3.0]], [1.0, 1.0, 1.0], risk_aversion=1, noise_variance=[1.0, 1.0, 1.0])
    with pytest.raises(UsageError) as error:
        solved(model, **asked)
    for word in words:
        assert word in str(error.value)


def test_an_optimum_of_another_game_is_refused() -> None:
    model = ItemAggregation([[1.0], [2.0]], [1.0, 1.0], risk_aversion=1, noise_variance=[1.0, 1.0])
    with pytest.raises(UsageError, match="must belong to"):
        solved(model, optimum=optimal_weights(model.with_risk_aversion(2.0)))
    for use in (solved, lambda model, optimum: evaluate_scheme(model, [1.0, 1.0], optimum=optimum)):
        with pytest.raises(UsageError, match=r"without constraints, got one with \['non_negative'\]"):
            use(model, optimum=solved(model))


@pytest.mark.parametrize("name", ["tolerance", "rank_tolerance"])
def test_tolerances_out_of_range_are_refused(name: str) -> None:
    model = ItemAggregation([[1.0], [2.0]], [1.0, 1.0], risk_aversion=1, noise_variance=[1.0, 1.0])
    with pytest.raises(UsageError, match=f"`{name}` must lie between 0 and 1"):
        optimal_weights(model, Constraints(), **{name: 0.0})


def test_names_serve_as_keys_and_the_record_is_complete() -> None:
    model = ItemAggregation(
        [[1.0], [1.0], [1.0]], [1.0, 1.0, 1.0], risk_aversion=1, noise_variance=[1.0, 2.0, 4.0], names=("a", "b", "c")
    )
    result = solved(model, fixed_shares={"b": 0.5})
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
