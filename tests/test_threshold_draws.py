"""Thresholds of draws: intervals that know "none", shares by level, the same answers as one threshold at a time."""

from __future__ import annotations

import numpy as np
import pytest

from benchwright.errors import UsageError
from benchwright.ranking_game.costs import PowerCosts
from benchwright.ranking_game.forms import FunctionCurves, PowerLawCurves
from benchwright.ranking_game.game import RankingGame
from benchwright.ranking_game.threshold import threshold
from benchwright.ranking_game.threshold_draws import threshold_draws


def two(lead: float) -> RankingGame:
    """Required effort (exp(lead) - 1) (1 + Delta) for a gap of 2: Delta* = max(0, 2 / expm1(lead) - 1)."""
    return RankingGame(PowerLawCurves([lead, 0.0]), [2.0, 0.0])


def test_the_interval_is_that_of_the_closed_form() -> None:
    leads = np.random.default_rng(0).uniform(0.05, 1.5, 40)
    found = threshold_draws([two(lead) for lead in leads], delta_max=1000.0, deltas=[0.0, 1.0, 20.0])
    truth = np.maximum(2 / np.expm1(leads) - 1, 0)
    assert found.delta == pytest.approx(truth, abs=1e-7)
    assert found.interval == pytest.approx(np.sort(truth)[[0, 38]], abs=1e-7)
    assert found.stable == pytest.approx([(truth <= level).mean() for level in (0, 1, 20)])
    assert found.median == pytest.approx(np.sort(truth)[19], abs=1e-7)
    assert found.shares["stable_everywhere"] == (truth == 0).mean()
    assert sum(found.shares.values()) == pytest.approx(1)
    assert not found.undecided.any()
    record = found.to_dict()
    assert record["levels"][2]["stable"] == found.stable[2]
    assert (record["upper"], record["upper_share"]) == (found.interval[1], 0.975)
    assert record["note"].startswith("no confidence interval")
    assert "interval from" not in str(found)


def test_none_counts_as_infinite_and_undecided_as_anything() -> None:
    rising = PowerLawCurves([-np.log(2), 0.0], 1.0, [0.5, 0.0], 1.0)  # no level is stable
    none = RankingGame(rising, [2.0, 0.0])
    open_game = RankingGame(rising, [2.0, 0.0], costs=PowerCosts(1.0, 1.0, [0.0, 1.0]))
    found = threshold_draws([two(0.5), two(0.6), none, none], delta_max=50.0)
    assert found.interval[1] == np.inf
    assert found.median == pytest.approx(threshold(two(0.5)).delta)
    assert found.to_dict()["high"] is None
    assert found.to_dict()["upper"] is None
    assert "to none up to 50 in the middle 95 %" in str(found)
    assert str(threshold_draws([none, none], delta_max=50.0)).startswith(
        "Delta* in 2 draws: none up to 50 in all of them"
    )
    assert "no level is stable in any draw" in str(threshold_draws([none], delta_max=50.0))
    left = threshold_draws([two(0.5), two(0.6), open_game, open_game], delta_max=50.0)
    assert left.interval.tolist() == [0.0, np.inf]
    assert np.isnan(left.median)
    assert left.shares["undecided"] == 0.5
    assert (left.undecided == 0.5).all()
    assert "median open" in str(left)


@pytest.mark.parametrize("own", [True, False])
def test_draws_together_are_draws_one_by_one(own: bool) -> None:
    rng = np.random.default_rng(5)
    games = []
    for _ in range(12):
        n = 5
        upper = rng.uniform(0.6, 1.0, n) if own else 0.9
        curves = PowerLawCurves(rng.normal(0, 1, n), rng.uniform(0.3, 1.2, n), 0.05, upper, rng.permutation(n))
        games.append(RankingGame(curves, np.sort(rng.uniform(0, 30, n))[::-1], costs=PowerCosts(rng.uniform(0.1, 2))))
    said: list[str] = []
    found = threshold_draws(games, delta_max=2000.0, deltas=[0.0, 5.0, 50.0, 500.0, 2000.0], progress=said.append)
    alone = [threshold(game, delta_max=2000.0) for game in games]
    assert found.status == tuple(one.status for one in alone)
    assert np.nan_to_num(found.delta, posinf=0) == pytest.approx(np.nan_to_num([one.delta for one in alone]))
    for k, level in enumerate(found.deltas):
        inside = [any(low <= level <= high for low, high in one.stable_intervals) for one in alone]
        crossed = [any(low <= level <= high for low, high in one.crossed_intervals) for one in alone]
        assert (found.stable[k], found.crossed[k]) == (np.mean(inside), np.mean(crossed))
    assert said[-1] == "threshold: 12 of 12 draws"


def test_callables() -> None:
    form = PowerLawCurves([1.0, 0.0])
    game = RankingGame(FunctionCurves(lambda theta, e: form.score((1 - theta).astype(int), e), [1.0, 0.0]), [3.0, 0.0])
    found = threshold_draws([game], delta_max=50.0)
    assert found.delta[0] == pytest.approx(3 / np.expm1(1.0) - 1, rel=1e-6)


def test_bad_input() -> None:
    with pytest.raises(UsageError, match="`draws` must hold at least one game"):
        threshold_draws([])
    with pytest.raises(UsageError, match=r"`deltas` must lie in \[0, 10\]"):
        threshold_draws([two(1.0)], delta_max=10.0, deltas=[11.0])
    with pytest.raises(UsageError, match="`delta_max` must be > 0"):
        threshold_draws([two(1.0)], delta_max=0.0)
    with pytest.raises(UsageError, match="`level` must lie between"):
        threshold_draws([two(1.0)], level=1.5)
