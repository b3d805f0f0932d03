"""Derivatives of the weights against finite differences."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from benchwright._check import FloatArray
from benchwright.errors import UsageError
from benchwright.mechanism.aggregation import ItemAggregation, optimal_weights
from benchwright.mechanism.constraints import Constraints
from benchwright.mechanism.sensitivity import weight_sensitivity
from constrained_games import game, model_of

STEP = 1e-5
Change = Callable[[dict[str, Any], float], dict[str, Any]]


def difference(data: dict[str, Any], r: float, change: Change) -> tuple[FloatArray, FloatArray]:
    """Central differences of the weights and of the shares along ``change``; its key ``r`` is the risk aversion."""
    ends = []
    for x in (STEP, -STEP):
        moved = data | change(data, x)
        ends.append(optimal_weights(model_of({k: moved[k] for k in data}, moved.get("r", r))))
    high, low = ends
    return (high.weights - low.weights) / (2 * STEP), (high.shares - low.shares) / (2 * STEP)


def price(k: int) -> Change:
    def change(data: dict[str, Any], x: float) -> dict[str, Any]:
        technology = data["technology"].copy()
        technology[:, k] *= np.exp(-x)
        return {"technology": technology}

    return change


def at(key: str, i: int, *, log: bool) -> Change:
    """One entry of ``key`` moved by x, or its log."""

    def change(data: dict[str, Any], x: float) -> dict[str, Any]:
        values = data[key].copy()
        values[i] = values[i] * np.exp(x) if log else values[i] + x
        return {key: values}

    return change


def positive_sum(seed: int, kind: str, *, positive: bool) -> dict[str, Any]:
    data = game(seed, kind, 7, 3, 2)
    v = optimal_weights(model_of(data, 0.8)).weights
    return data if (v.sum() > 0) == positive else data | {"welfare": -data["welfare"]}


@pytest.mark.parametrize("kind", ["random", "half noiseless", "noiseless", "copies"])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("positive", [True, False])
def test_derivatives_are_those_of_finite_differences(kind: str, seed: int, positive: bool) -> None:
    data, r = positive_sum(seed, kind, positive=positive), 0.8
    answers = weight_sensitivity(model_of(data, r))
    assert answers.residual < 1e-9 or kind == "noiseless"
    whole: dict[str, Change] = {
        "neutral": lambda data, x: {"welfare": data["welfare"] - x},
        "risk": lambda data, x: {"r": r * np.exp(x)},
    }
    whole |= {f"price {k}": price(k) for k in range(3)}
    found = {name: difference(data, r, change) for name, change in whole.items()}
    sigma = difference(
        data,
        r,
        lambda data, x: {
            "noise_variance": data["noise_variance"] * np.exp(x),
            "noise_factor": data["noise_factor"] * np.exp(x / 2),
        },
    )
    for name, key, log in (("own_welfare", "welfare", False), ("own_noise", "noise_variance", True)):
        each = [difference(data, r, at(key, i, log=log)) for i in range(7)]
        weights, shares = (np.array([one[side][i] for i, one in enumerate(each)]) for side in (0, 1))
        found[name] = weights, shares
    assert set(found) == set(answers.of_weights) == set(answers.of_shares)
    found["of sigma"] = sigma
    for name, (weights, shares) in found.items():
        key = "risk" if name == "of sigma" else name
        size, spread = float(np.abs(answers.weights).max()), float(np.abs(answers.shares).max())
        np.testing.assert_allclose(answers.of_weights[key], weights, rtol=1e-5, atol=1e-6 * size, err_msg=name)
        np.testing.assert_allclose(answers.of_shares[key], shares, rtol=1e-5, atol=1e-6 * spread, err_msg=name)


def test_blocks_zero_risk_and_undefined_shares(monkeypatch: pytest.MonkeyPatch) -> None:
    data = game(3, "half noiseless", 50, 3, 2)
    whole = weight_sensitivity(model_of(data, 1.0))
    monkeypatch.setattr("benchwright.mechanism._weights.BLOCK_ROWS", 7)
    parts = weight_sensitivity(model_of(data, 1.0))
    for name, moved in whole.of_weights.items():
        np.testing.assert_allclose(parts.of_weights[name], moved, rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(parts.of_shares[name], whole.of_shares[name], rtol=1e-8, atol=1e-10)
    free = weight_sensitivity(model_of(data, 0.0))
    assert not free.of_weights["risk"].any()
    assert not free.of_weights["own_noise"].any()
    idle = ItemAggregation([[1.0], [1.0]], [1.0, -1.0], risk_aversion=1, noise_variance=[1.0, 1.0])
    answers = weight_sensitivity(idle)
    assert answers.of_weights["own_welfare"] == pytest.approx([1 / 3, 1 / 3])
    assert np.isnan(answers.of_shares["own_welfare"]).all()


def test_the_result_prints_tabulates_and_serialises() -> None:
    data = game(1, "random", 4, 2, 1)
    model = ItemAggregation(**data, risk_aversion=1.0, names=("a", "b", "c", "d"), axes=("PT", "RL"))
    answers = weight_sensitivity(model)
    frame = answers.to_frame()
    assert frame.height == 4
    assert {"item", "weight", "share", "weight_price RL", "share_own_noise"} <= set(frame.columns)
    record = json.loads(json.dumps(answers.to_dict(), allow_nan=False))
    assert record["of_weights"]["neutral"] == answers.of_weights["neutral"].tolist()
    assert "own_noise" in str(answers)


def test_weights_that_are_not_the_optimum_are_refused() -> None:
    model = model_of(game(1, "random", 4, 2, 1), 1.0)
    with pytest.raises(UsageError, match="without constraints"):
        weight_sensitivity(model, optimum=optimal_weights(model, Constraints()))
    with pytest.raises(UsageError, match="without constraints"):
        weight_sensitivity(model, optimum=optimal_weights(model.with_risk_aversion(2.0)))
