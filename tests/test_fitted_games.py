"""Games from fitted curves, and from draws of their parameters."""

from __future__ import annotations

import numpy as np
import pytest

from benchwright.errors import UsageError
from benchwright.ranking_game.costs import PowerCosts
from benchwright.ranking_game.fitted import fitted_game

NAMES = ("a", "b", "c")
FITTED = {
    "alpha": np.array([0.0, 1.0, -1.0]),
    "beta": np.array([0.5, 0.6, 0.5]),
    "lower": np.zeros(3),
    "upper": np.array([0.9, 0.6, 0.8]),
}


def draws(size: int = 5) -> dict[str, np.ndarray]:
    return {name: np.tile(value, (size, 1)) for name, value in FITTED.items()}


def test_the_game_of_the_fit_and_of_each_draw() -> None:
    worlds = draws()
    worlds["upper"][1] = [0.5, 0.6, 0.8]
    made = fitted_game(
        FITTED,
        [2.0, 1.0, 0.0],
        names=NAMES,
        effort=10.0,
        costs=PowerCosts([1.0, 2.0, 3.0]),
        tune_before_test=4.0,
        draws=worlds,
    )
    assert made.game.order.tolist() == [0, 2, 1]
    assert made.game.names == NAMES
    assert made.game.costs.cost(np.arange(3), np.ones(3)).tolist() == [1, 2, 3]
    assert made.game.tune_before_test == 4
    assert [game.order.tolist() for game in made.draws] == [[0, 2, 1], [2, 1, 0], [0, 2, 1], [0, 2, 1], [0, 2, 1]]
    assert made.capability.whole == pytest.approx(0.8)
    assert (made.left_out, made.notes) == ({}, ())


def test_draws_that_make_no_game_are_counted_and_told() -> None:
    worlds = draws(6)
    worlds["beta"][0, 1] = 0.0
    worlds["alpha"][1, 2] = np.nan
    worlds["lower"][2, 0] = 0.9
    for value in worlds.values():
        value[3, 2] = value[3, 0]
    made = fitted_game(FITTED, [2.0, 1.0, 0.0], names=NAMES, effort=10.0, draws=worlds)
    assert len(made.draws) == 3
    assert made.draws[0].order.tolist() == [0, 2, 1]  # a and c tie: a stands above, as in the fit
    assert made.left_out == {
        "a parameter is not finite": 1,
        "beta is not above 0": 1,
        "bounds are not 0 <= L < U <= 1": 1,
    }
    assert made.notes[1] == "1 of 6 draws make no game and are left out: beta is not above 0"
    none = fitted_game(FITTED, [2.0, 1.0, 0.0], names=NAMES, effort=10.0, draws=draws() | {"beta": np.zeros((5, 3))})
    assert (none.draws, none.capability.draws) == ((), 0)


def test_bad_input() -> None:
    with pytest.raises(UsageError, match="beta is missing"):
        fitted_game({"alpha": [1.0]}, [1.0, 0.0], names=["a"], effort=1.0)
    with pytest.raises(UsageError, match=r"`draws` must hold arrays \(B, 3\)"):
        fitted_game(FITTED, [2.0, 1.0, 0.0], names=NAMES, effort=1.0, draws=FITTED)
