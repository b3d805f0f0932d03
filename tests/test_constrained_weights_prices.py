"""Prices of constraints against finite differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from benchwright._check import FloatArray
from benchwright.mechanism.aggregation import ItemAggregation, optimal_weights
from benchwright.mechanism.constraints import Constraints
from benchwright.mechanism.sensitivity import price_of
from constrained_games import RULES, game, games, matrices, model_of, relaxed, solved


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
    values = [solved(model, **step, optimum=optimum).surplus for step in steps]
    assert values[0] <= optimum.surplus * (1 + 1e-9)
    assert (np.diff(values) <= 1e-8 * optimum.surplus).all()


def derivative(model: ItemAggregation, change: Any, step: float = 1e-5) -> float:
    """Central difference of the surplus along a one-parameter family of constraints."""
    high, low = (solved(model, **change(x)).surplus for x in (step, -step))
    return (high - low) / (2 * step)


@pytest.mark.parametrize("seed", range(8))
def test_prices_are_derivatives_of_the_surplus(seed: int) -> None:
    m = 8
    data = game(seed, "random", m, 3, 2)
    data["welfare"] = np.abs(data["welfare"])
    data["technology"] = np.abs(data["technology"]) + 0.2
    model = model_of(data, 1.0)
    caps, unit, codes = np.full(m, 0.2), np.eye(m), np.array([0, 0, 1, 1, 2, 3, 4, 5])
    result = solved(model, max_share=caps, fixed_shares={0: 0.05})
    scale = result.surplus
    held = np.flatnonzero(result.binding["max_share"])
    assert held.size
    for i in held:
        found = derivative(model, lambda x, i=i: {"max_share": caps + x * unit[i], "fixed_shares": {0: 0.05}})
        assert result.prices["max_share"][i] == pytest.approx(found, rel=1e-3, abs=1e-4 * scale)
    found = derivative(model, lambda x: {"max_share": caps, "fixed_shares": {0: 0.05 + x}})
    assert result.prices["fixed_shares"][0] == pytest.approx(found, rel=1e-3, abs=1e-4 * scale)
    tied = solved(model, equal_within=codes, max_share=caps)
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
    result = solved(model_of(data, 1.0))
    held = np.flatnonzero(result.binding["non_negative"])
    free = np.setdiff1d(np.arange(m), held)
    assert held.size
    assert free.size
    codes = np.array([0, 0, 0, 1, 1, 2, 3])
    tied = solved(model_of(data, 1.0), non_negative=False, equal_within=codes)

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
    costs = price_of(model, Constraints(**asked))
    assert set(costs) == set(RULES)
    bound = solved(model, **asked).surplus
    for name in RULES:
        rest = {key: value for key, value in asked.items() if key != name}
        rest["non_negative"] = name != "non_negative"
        assert costs[name] == pytest.approx(solved(model, **rest).surplus - bound, abs=1e-9)
        assert costs[name] >= 0
    assert list(price_of(model, Constraints(non_negative=False, max_share=0.5))) == ["max_share"]
    assert np.isnan(price_of(model, Constraints(fixed_shares={0: 0.1}))["non_negative"])
