"""The greatest reward gap a rank at which a ranking is stable, against the verdict itself."""

from __future__ import annotations

import numpy as np
import pytest

from benchwright.ranking_game.costs import FunctionCosts, PowerCosts
from benchwright.ranking_game.equilibrium import solve
from benchwright.ranking_game.forms import FunctionCurves, PowerLawCurves, TranslationCurves
from benchwright.ranking_game.game import RankingGame
from benchwright.ranking_game.safe_gap import safe_gap

NEAR = 1e-6


def random_game(rng: np.random.Generator) -> RankingGame:
    n = int(rng.integers(2, 8))
    curves = PowerLawCurves(
        rng.normal(size=n), rng.uniform(0.2, 2, n), rng.uniform(0, 0.2, n), rng.uniform(0.7, 1, n), rng.permutation(n)
    )
    costs = PowerCosts(rng.uniform(0.5, 2, n), rng.uniform(0.7, 2, n), float(rng.choice([0.0, 0.3])))
    return RankingGame(curves, np.arange(n)[::-1] * 1.0, costs=costs, tune_before_test=float(rng.exponential(20)))


def test_it_parts_stable_rewards_from_others() -> None:
    rng, bounded = np.random.default_rng(0), 0
    for _ in range(300):
        game = random_game(rng)
        found = safe_gap(game)
        gaps = {"exists": 1e9, "none": None} if np.isinf(found.gap) else {}
        gaps = gaps or {"exists": found.gap * (1 - NEAR), "none": found.gap * (1 + NEAR)}
        bounded += np.isfinite(found.gap)
        for verdict, gap in gaps.items():
            if gap is not None:
                rewards = gap * np.arange(game.n)[::-1]
                same = RankingGame(game.curves, rewards, costs=game.costs, tune_before_test=game.tune_before_test)
                assert solve(same).pure_equilibrium == verdict
    assert bounded > 200


def test_known_games() -> None:
    """Translation by h: overtaking a neighbour takes h, k ranks k h; the growing cost e^2 makes neighbours bind."""
    curves = TranslationCurves([2.0, 1.5, 1.0], "exponential")
    assert safe_gap(RankingGame(curves, [1.0, 0.5, 0.0])).gap == pytest.approx(0.5)
    square = safe_gap(RankingGame(curves, [1.0, 0.5, 0.0], costs=PowerCosts(1.0, 2.0)))
    assert (square.gap, square.ranks) == (pytest.approx(0.25), 1)
    root = safe_gap(RankingGame(curves, [1.0, 0.5, 0.0], costs=PowerCosts(1.0, 0.5)))
    assert (root.gap, root.ranks, root.developer, root.over) == (pytest.approx(0.5), 2, 2, 0)
    assert root.to_dict()["developer"] == "developer 3"


def test_callables_give_the_same() -> None:
    named = RankingGame(TranslationCurves([1.0, 0.5], "exponential"), [1.0, 0.0])
    curves = FunctionCurves(lambda theta, effort: -np.expm1(-(theta + effort)), np.array([1.0, 0.5]))
    own = RankingGame(curves, [1.0, 0.0], costs=FunctionCosts(lambda effort: effort))
    assert safe_gap(own).gap == pytest.approx(safe_gap(named).gap)


def test_what_is_not_decided_or_has_no_bound() -> None:
    curves = PowerLawCurves([0.0, 0.0], lower=[0.5, 0.0], upper=[0.9, 0.4])
    free = safe_gap(RankingGame(curves, [1.0, 0.0]))
    assert np.isinf(free.gap)
    assert str(free).endswith("no developer can overtake another")
    assert free.to_dict()["gap"] is None
    apart = safe_gap(RankingGame(curves, [1.0, 0.0], costs=PowerCosts(free=[0.0, 1.0])))
    assert np.isnan(apart.gap)
    assert "free effort differs" in str(apart)
    close = TranslationCurves([50.0, 50.0 - 1e-14], "exponential")
    assert "too close to tell" in str(safe_gap(RankingGame(close, [1.0, 0.0])))
