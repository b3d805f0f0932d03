"""The tune-before-test threshold against golden cases, verdicts at single levels, and the growth law."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchwright.errors import UsageError
from benchwright.ranking_game.costs import PowerCosts
from benchwright.ranking_game.equilibrium import solve
from benchwright.ranking_game.forms import FunctionCurves, PowerLawCurves, TranslationCurves
from benchwright.ranking_game.game import RankingGame
from benchwright.ranking_game.threshold import threshold

relaxed = settings(derandomize=True, deadline=None, max_examples=40)


def test_g5_the_threshold_is_one() -> None:
    found = threshold(RankingGame(PowerLawCurves([np.log(2), 0.0]), [2.0, 0.0], names=("a", "b")))
    assert found.status == "found"
    assert found.delta == pytest.approx(1.0, abs=1e-9)
    assert found.growth_exponent == 1
    assert found.growth_law_level == pytest.approx(1.0)
    record = found.to_dict()
    assert record["binding_pair"] == {"developer": "b", "over": "a"}
    assert record["stable_intervals"] == [[pytest.approx(1.0), 1e5]]
    assert found.to_frame().rows() == [(pytest.approx(1.0), 1e5, True)]


def test_g4_no_level_is_stable_and_the_margin_is_bounded() -> None:
    found = threshold(RankingGame(TranslationCurves([1.0, 0.0], "hyperbolic"), [2.0, 0.0]))
    assert (found.status, found.margin_bound, found.stable_intervals) == ("none_proved", -1.0, ())
    assert np.isnan(found.delta)
    same = threshold(RankingGame(PowerLawCurves([-np.log(2), 0.0], 1.0, [0.5, 0.0], 1.0), [2.0, 0.0]))
    assert (same.status, same.binding_pair) == ("none_up_to_max", (1, 0))
    assert same.margin_bound == pytest.approx(-1.0, abs=1e-6)


def test_g1_forms_that_translate_are_stable_at_all_levels_or_at_none() -> None:
    curves = TranslationCurves([1.0, 0.5], "exponential")
    assert threshold(RankingGame(curves, [1.0, 0.0])).status == "none_proved"
    everywhere = threshold(RankingGame(curves, [0.25, 0.0]))
    assert (everywhere.status, everywhere.delta, everywhere.stable_intervals) == ("stable_everywhere", 0, ((0.0, 1e5),))
    assert threshold(RankingGame(curves, [1.0, 1.0])).status == "stable_everywhere"


def test_an_interval_between_the_points_of_a_grid_is_found() -> None:
    """The weaker curve jumps on a short stretch: unstable on some 2e-4 of effort out of 100."""
    at, width = 37.123, 1e-4

    def score(theta: Any, e: Any) -> Any:
        stronger = 0.5 + 0.1 * np.clip((e - at) / width, 0, 1)
        weaker = 0.4 + 0.199 * np.clip((e - at - 1 + width) / width, 0, 1)
        return np.where(theta == 1, stronger, weaker)

    game = RankingGame(FunctionCurves(score, [1.0, 0.0]), [1.0, 0.0])
    found = threshold(game, delta_max=100.0)
    assert len(found.stable_intervals) == 2
    (_, end), (start, _) = found.stable_intervals
    assert at - 2 * width < end < start < at + width
    assert solve(game.at((end + start) / 2)).pure_equilibrium == "none"
    assert solve(game.at(end - width)).pure_equilibrium == "exists"
    assert found.delta == pytest.approx(start)


def power_law_game(rng: np.random.Generator, kind: str) -> RankingGame:
    n = int(rng.integers(2, 6))
    alpha = np.sort(rng.normal(0, 1, n))[::-1]
    beta: Any = float(rng.uniform(0.3, 1.2))
    lower: Any = 0.1
    upper: Any = 0.9
    if kind == "own slopes":
        beta = np.sort(rng.uniform(0.3, 1.2, n))[::-1]
    elif kind == "own bounds":
        lower, upper = np.sort(rng.uniform(0, 0.2, n))[::-1], np.sort(rng.uniform(0.8, 1.0, n))[::-1]
    elif kind == "crossing":
        beta, upper = rng.uniform(0.3, 1.2, n), rng.uniform(0.7, 1.0, n)
    rewards = np.sort(rng.uniform(0, 10, n))[::-1]
    return RankingGame(
        PowerLawCurves(alpha, beta, lower, upper), rewards, costs=PowerCosts(rng.uniform(0.1, 2.0), rng.uniform(1, 2))
    )


@relaxed
@given(seed=st.integers(0, 2**32 - 1), kind=st.sampled_from(["one slope", "own slopes", "own bounds", "crossing"]))
def test_levels_are_stable_exactly_where_an_equilibrium_exists(seed: int, kind: str) -> None:
    rng = np.random.default_rng(seed)
    game = power_law_game(rng, kind)
    found = threshold(game, delta_max=1000.0)
    for delta in np.concatenate([[0.0, 1000.0], 1000.0 * rng.random(10) ** 4]):
        stable = any(low <= delta <= high for low, high in found.stable_intervals)
        still_open = any(low <= delta <= high for low, high in found.undecided_intervals)
        at = solve(game.at(float(delta)))
        in_order = at.published_order == tuple(range(game.n))
        assert still_open or stable == (at.pure_equilibrium == "exists" and in_order), (delta, found)
        if any(low < delta < high for low, high in found.crossed_intervals):
            assert not in_order
    for delta, developer, over in found.interval_ends:
        at = solve(game.at(delta))
        if at.published_order == tuple(range(game.n)):
            assert abs(at.binding.margin) < 1e-6 * (1 + at.binding.cost)
            assert (at.binding.developer, at.binding.over) == (developer, over)
    if kind == "one slope":  # diminishing returns and a common cost: once stable, stable for good
        assert len(found.stable_intervals) <= 1
    if found.status == "found":
        assert not found.growth_law_level < found.delta - 1e-6


@relaxed
@given(seed=st.integers(0, 2**32 - 1))
def test_the_growth_law_suffices(seed: int) -> None:
    game = power_law_game(np.random.default_rng(seed), "own slopes")
    linear = RankingGame(game.curves, game.rewards, costs=PowerCosts(0.7))
    level = threshold(linear).growth_law_level
    assert np.isfinite(level)
    assert solve(linear.at(level * (1 + 1e-9) + 1e-9)).pure_equilibrium == "exists"


def test_what_cannot_be_decided_is_not() -> None:
    unlike = PowerCosts(1.0, 1.0, [0.0, 2.0])
    curves = TranslationCurves([1.0, 0.5], "exponential")
    found = threshold(RankingGame(curves, [1.0, 0.0], costs=unlike))
    assert (found.status, found.undecided_intervals) == ("undecided", ((0.0, 1e5),))
    with pytest.raises(UsageError, match="`delta_max` must be > 0"):
        threshold(RankingGame(curves, [1.0, 0.0]), delta_max=0.0)


def test_levels_at_which_scores_do_not_follow_capability_are_not_stable() -> None:
    curves = PowerLawCurves([np.log(2), 0.0], [0.9, 1.0])
    crossing = threshold(RankingGame(curves, [200.0, 0.0]))
    assert (crossing.status, crossing.stable_intervals) == ("none_up_to_max", ())
    assert crossing.crossed_intervals[0] == (pytest.approx(2.0**10 - 1), 1e5)  # 2 (1 + D)^0.9 = 1 + D
    assert "scores do not follow capability, against C1: [1023, 100000]" in str(crossing)
    named_late = PowerLawCurves([np.log(2), 0.0], [0.9, 1.0], capability=[1.0, 2.0])  # the second, by the limit
    late = threshold(RankingGame(named_late, [200.0, 0.0]))
    assert late.crossed_intervals[0] == (0.0, pytest.approx(2.0**10 - 1))
    assert late.status == "found"
    assert late.delta > 2.0**10 - 1
    assert solve(RankingGame(named_late, [200.0, 0.0]).at(late.delta * 1.001)).pure_equilibrium == "exists"


def test_the_margin_is_bounded_by_the_pair_that_bounds_it_most() -> None:
    # at 1e5 the third overtakes the first with a margin of -0.1; over the second, whom it leads throughout, it has -0.4
    game = RankingGame(
        PowerLawCurves([np.log(2), 0.0, 0.1]),
        [4.0, 0.4, 0.0],
        costs=PowerCosts([1.0, 3.5e-5, 3.9e-5 / (2 / np.exp(0.1) - 1)]),
    )
    assert threshold(game).margin_bound == pytest.approx(-0.4, abs=1e-6)


def test_equal_rewards_may_be_out_of_order_at_a_stable_level() -> None:
    game = RankingGame(PowerLawCurves([np.log(2), 0.0, -0.5], [0.9, 1.0, 1.0]), [1.0, 1.0, 0.0])
    found = threshold(game)
    assert found.status == "found"
    assert found.crossed_intervals[0] == (pytest.approx(2.0**10 - 1), 1e5)
    late = solve(game.at(5000.0))
    assert (late.pure_equilibrium, late.published_order) == ("exists", (1, 0, 2))
