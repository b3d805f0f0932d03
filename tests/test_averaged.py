"""Weights that are best on average over draws of slopes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from benchwright.errors import UsageError
from benchwright.mechanism.aggregation import ItemAggregation, optimal_weights, risk_sweep
from benchwright.mechanism.averaged import COLUMNS, DRAWS, averaged_game
from benchwright.mechanism.constraints import Constraints


def game(technology: np.ndarray, welfare: np.ndarray) -> ItemAggregation:
    m = welfare.size
    noise = np.linspace(0.01, 0.05, m)
    return ItemAggregation(technology, welfare, risk_aversion=1.0, noise_variance=noise, curvature=2.0)


def redrawn(model: ItemAggregation, spread: float, rng: np.random.Generator) -> Iterator[ItemAggregation]:
    while True:
        yield game(model.technology + rng.normal(0, spread, model.technology.shape), model.welfare)


def surplus(model: ItemAggregation, v: np.ndarray) -> float:
    M = model.technology @ model.technology.T / float(model.curvature)
    noise = float(np.asarray(model.noise_variance) @ v**2)
    return float(model.welfare @ M @ v - v @ M @ v / 2 - model.risk_aversion * noise / 2)


def test_its_surplus_is_the_mean_one() -> None:
    rng = np.random.default_rng(1)
    model = game(rng.normal(1, 0.5, (6, 3)), rng.normal(0.2, 1, 6))
    found = averaged_game(model, redrawn(model, 0.4, np.random.default_rng(2)))
    assert found is not None
    draws = redrawn(model, 0.4, np.random.default_rng(2))
    taken = [next(draws) for _ in range(DRAWS)]
    for _ in range(5):
        v = rng.normal(0, 1, 6)
        assert surplus(found, v) == pytest.approx(np.mean([surplus(one, v) for one in taken]), rel=1e-10)


def test_without_spread_it_is_the_estimate() -> None:
    rng = np.random.default_rng(3)
    model = game(rng.normal(1, 0.5, (8, 2)), rng.normal(0.2, 1, 8))
    found = averaged_game(model, redrawn(model, 0.0, rng))
    assert found is not None
    for rule in (None, Constraints()):
        np.testing.assert_allclose(
            optimal_weights(found, rule).weights, optimal_weights(model, rule).weights, atol=1e-8
        )


def test_in_new_draws_it_keeps_more_than_the_best_weights_of_the_estimate() -> None:
    rng = np.random.default_rng(4)
    better = 0
    for _ in range(10):
        model = game(rng.normal(0.3, 0.3, (30, 3)), rng.normal(0.3, 1, 30))
        found = averaged_game(model, redrawn(model, 0.3, rng))
        assert found is not None
        schemes = {"mean": optimal_weights(found).weights, "estimate": optimal_weights(model).weights}
        draws = redrawn(model, 0.3, rng)
        kept = dict.fromkeys(schemes, 0.0)
        for _ in range(100):
            judged = risk_sweep(next(draws), [1.0], schemes)
            for name in kept:
                kept[name] += float(judged.efficiency[name][0])
        better += kept["mean"] > kept["estimate"]
    assert better == 10


def test_many_axes_leave_room_for_fewer_draws_and_too_few_are_none() -> None:
    rng = np.random.default_rng(5)
    model = game(rng.normal(1, 0.5, (4, 8)), np.ones(4))
    found = averaged_game(model, redrawn(model, 0.1, rng))
    assert found is not None
    assert found.technology.shape == (4, COLUMNS)
    wide = game(rng.normal(1, 0.5, (4, 20)), np.ones(4))
    assert averaged_game(wide, redrawn(wide, 0.1, rng)) is None


def test_a_matrix_of_curvature_is_refused() -> None:
    model = ItemAggregation([[1.0, 0.0]], [1.0], risk_aversion=1.0, curvature=np.eye(2))
    with pytest.raises(UsageError, match="one number for its curvature"):
        averaged_game(model, iter([model] * DRAWS))
