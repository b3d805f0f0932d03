"""Do intervals over draws hold the truth? Tables simulated from known curves, fitted and drawn again."""

from __future__ import annotations

import numpy as np
import pytest

from benchwright.curves.bootstrap import bootstrap_curves
from benchwright.curves.fit import fit_curves
from benchwright.curves.scores import EffortScores
from benchwright.ranking_game.fitted import FittedGame, fitted_game
from benchwright.ranking_game.threshold import threshold
from benchwright.ranking_game.threshold_draws import threshold_draws
from benchwright.ranking_game.tuning import jumps_at, required_effort

STEPS = np.array([0.0, 10, 30, 100, 300, 1000, 3000, 10_000, 20_000])
ITEMS = 2000
DELTAS = np.array([100.0, 1000.0, 4000.0])
TABLES, DRAWS, TOP = 40, 60, 20_000.0
TRUTH = {
    "alpha": np.array([-5.0, -5.4, -5.8, -6.2]),
    "beta": np.array([0.80, 0.80, 0.80, 0.80]),
    "lower": np.full(4, 0.02),
    "upper": np.array([0.75, 0.62, 0.50, 0.38]),
}
NAMES = ("a", "b", "c", "d")


def game_of(parameters: dict[str, np.ndarray], draws: dict[str, np.ndarray] | None = None) -> FittedGame:
    rewards = np.array([3000.0, 2000.0, 1000.0, 0.0])
    return fitted_game(parameters, rewards, names=NAMES, effort=TOP, capability="tuned", draws=draws)


@pytest.mark.slow
def test_intervals_of_effort_and_the_upper_end_of_the_threshold_hold_the_truth() -> None:
    rng = np.random.default_rng(0)
    truth = game_of(TRUTH).game
    needs, level = required_effort(truth, DELTAS).effort, threshold(truth, delta_max=1e5).delta
    assert np.isfinite(level)
    who, effort = np.repeat(np.arange(4), STEPS.size), np.tile(STEPS, 4)
    score = truth.curves.score(who, effort)
    held = {"minimum": 0.0, "pair": 0.0, "threshold": 0.0}
    for _ in range(TABLES):
        counts = rng.binomial(ITEMS, score) / ITEMS
        table = EffortScores(NAMES, who, effort, counts, items=np.full(who.size, float(ITEMS)))
        fits = fit_curves(table)
        assert fits.models == NAMES
        made = game_of(fits.parameters, bootstrap_curves(fits, rng=rng, replicates=DRAWS).parameters)
        found = required_effort(made.game, DELTAS, draws=made.draws)
        held["minimum"] += np.mean((found.band[:, 0] <= needs) & (needs <= found.band[:, 1]))
        pair = jumps_at(truth, found.developer, found.over, DELTAS).required
        held["pair"] += np.mean((found.pair_band[:, 0] <= pair) & (pair <= found.pair_band[:, 1]))
        held["threshold"] += level <= threshold_draws(made.draws, delta_max=1e5).interval[1]
    assert min(held.values()) >= 0.85 * TABLES, held
