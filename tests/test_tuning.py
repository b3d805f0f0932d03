"""What tuning does: required effort, margins and the designer's bill, against brute force and `solve`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchwright.errors import UsageError
from benchwright.ranking_game import _tuning as numbers
from benchwright.ranking_game.costs import PowerCosts
from benchwright.ranking_game.equilibrium import solve
from benchwright.ranking_game.forms import FunctionCurves, PowerLawCurves, TranslationCurves
from benchwright.ranking_game.game import RankingGame
from benchwright.ranking_game.margins import margin_over_tuning
from benchwright.ranking_game.tuning import designer_cost, required_effort

DELTAS = np.array([0.0, 1.0, 10.0, 100.0])
relaxed = settings(derandomize=True, deadline=None, max_examples=30)


def random_game(rng: np.random.Generator) -> RankingGame:
    n = int(rng.integers(2, 7))
    curves = PowerLawCurves(
        rng.normal(-1, 1, n),
        rng.uniform(0.2, 1.2, n),
        rng.uniform(0, 0.1, n),
        rng.uniform(0.5, 1.0, n),
        rng.permutation(n),
    )
    costs = PowerCosts(rng.uniform(0.5, 2.0), rng.uniform(0.7, 2.0), rng.choice([0.0, 1.5]))
    return RankingGame(curves, np.sort(rng.uniform(0, 20, n))[::-1], costs=costs)


@relaxed
@given(seed=st.integers(0, 2**32 - 1))
def test_the_least_over_neighbours_is_the_least_over_all_pairs(seed: int) -> None:
    game = random_game(np.random.default_rng(seed))
    found = required_effort(game, DELTAS)
    for d, delta in enumerate(DELTAS):
        scores = game.at(delta).scores(game.costs.free)
        pairs = [(i, j) for i in range(game.n) for j in range(game.n) if scores[i] < scores[j]]
        needs = {
            (i, j): float(
                np.mean(game.curves.overtake(np.array([i]), np.array([j]), game.costs.free[[j]], float(delta)))
            )
            for i, j in pairs
        }
        assert found.effort[d] == pytest.approx(min(needs.values()))
        assert needs[int(found.developer[d]), int(found.over[d])] == pytest.approx(found.effort[d])
        assert (np.diff(scores[found.order[d]]) <= 0).all()
    table = found.neighbours()
    assert table.height == DELTAS.size * (game.n - 1)
    finite = [value for value in table.filter(delta=0.0)["required_effort"] if value is not None]
    assert min(finite, default=np.inf) == pytest.approx(found.effort[0])


@relaxed
@given(seed=st.integers(0, 2**32 - 1))
def test_the_sign_of_the_margin_is_the_verdict(seed: int) -> None:
    game = random_game(np.random.default_rng(seed))
    found = margin_over_tuning(game, DELTAS, draws=[game, game])
    for d, delta in enumerate(DELTAS):
        at = solve(game.at(delta))
        assert {"exists": 1.0, "none": 0.0}[at.pure_equilibrium] == found.exists[d]
        assert (found.margin[d] >= 0) == (at.pure_equilibrium == "exists")
        if at.binding.reward_gap > 0 and np.isfinite(at.binding.margin):
            assert found.margin[d] == pytest.approx(at.binding.margin)
            assert found.cost[d] - found.gap[d] == pytest.approx(found.margin[d])
    assert found.share_exists.tolist() == found.exists.tolist()
    assert (found.band[:, 0] == found.margin).all()


def test_growth_is_that_of_the_closed_form() -> None:
    """Common bounds: ereq + 1 + Delta = c (1 + Delta)^(beta_j / beta_i)."""
    game = RankingGame(PowerLawCurves([3.0, 0.0], [0.6, 0.5]), [1.0, 0.0])
    found = required_effort(game, np.geomspace(1e4, 1e8, 9))
    assert found.slopes_ratio == pytest.approx(1.2)
    assert found.growth == pytest.approx(1.2, abs=0.01)
    translated = required_effort(RankingGame(TranslationCurves([1.0, 0.5], "exponential"), [1.0, 0.0]), DELTAS)
    assert translated.effort == pytest.approx([0.5] * 4)
    assert translated.growth == pytest.approx(0.0, abs=1e-9)
    assert np.isnan(translated.slopes_ratio)
    assert np.isnan(numbers.growth(DELTAS, np.array([1.0, np.inf, np.nan, 0.0])))


def test_bands_of_the_minimum_and_of_one_pair() -> None:
    rng = np.random.default_rng(0)
    alpha = np.arange(6.0)[::-1] * 0.2

    def game(shift: Any) -> RankingGame:
        return RankingGame(PowerLawCurves(alpha + shift, 0.5), np.arange(6.0)[::-1])

    draws = [game(rng.normal(0, 0.1, 6)) for _ in range(200)]
    found = required_effort(game(0.0), [10.0], draws=draws)
    minima = [required_effort(draw, [10.0]).effort[0] for draw in draws]
    assert found.share_below[0] == pytest.approx(np.mean(np.array(minima) < found.effort[0]))
    assert found.share_below[0] > 0.9  # the least of five noisy efforts lies low
    assert found.band[0, 0] == 0  # some pair's order is open
    assert found.effort[0] < found.band[0, 1] < np.inf
    i, j = int(found.developer[0]), int(found.over[0])
    lead = np.array([draw.curves.alpha[j] - draw.curves.alpha[i] for draw in draws])
    pair = np.maximum(11 * np.expm1(lead / 0.5), 0)
    assert found.pair_band[0] == pytest.approx([np.sort(pair)[4], np.sort(pair)[194]])
    told = str(found)
    assert "intervals of 95 % from 200 draws" in told
    record = found.to_dict()
    assert record["levels"][0]["pair_low"] == pytest.approx(found.pair_band[0, 0])
    assert record["draws"] == 200


def test_the_interval_of_the_least_against_its_definition() -> None:
    rng = np.random.default_rng(1)
    draws = rng.normal([5.0, -6.0, 0.5, 40.0], 1.0, (1000, 4))
    ends = np.quantile(draws, [0.025, 0.975], axis=0, method="inverted_cdf")
    low, high = numbers.least_interval(draws, 0.95)
    assert low == 0  # of the third, whose sign is open
    assert high == np.sort(np.abs(draws[:, 2]))[974]  # no other pair can be the least
    low, high = numbers.least_interval(draws[:, [0, 1, 3]], 0.95)
    assert low == min(ends[0, 0], -ends[1, 1])
    assert high == min(np.sort(np.abs(draws[:, k]))[987] for k in (0, 1))  # two rivals: half the tail each


def test_out_of_reach_is_inf_here_and_null_there() -> None:
    game = RankingGame(PowerLawCurves([0.0, 0.0], 1.0, [0.5, 0.0], [1.0, 0.4]), [1.0, 0.0], names=("a", "b"))
    found = required_effort(game, [0.0], draws=[game])
    assert (found.effort[0], found.band[0].tolist()) == (np.inf, [np.inf, np.inf])
    assert found.to_dict()["levels"][0]["required_effort"] is None
    cost = designer_cost(game, 5.0)
    assert cost.to_dict()["untuned"]["cost"] is None
    assert cost.to_dict()["bill"] is None
    assert "no price is given" in str(cost)
    margin = margin_over_tuning(game, [0.0])
    assert (margin.margin[0], margin.exists[0]) == (np.inf, 1.0)


def test_undecided_draws_open_a_band_to_both_sides() -> None:
    values = np.array([1.0, 2.0, np.nan, 3.0, np.inf])[:, None]
    assert numbers.band(values, 0.5).tolist() == [[1.0, np.inf]]
    assert numbers.band(np.full((3, 1), np.nan), 0.9).tolist() == [[0.0, np.inf]]


def test_the_bill_and_the_cheapest_overtake() -> None:
    curves = PowerLawCurves([2.0, 1.0, 0.9])
    cost = designer_cost(RankingGame(curves, [9.0, 1.0, 0.0], costs=PowerCosts([1.0, 1.0, 50.0])), 10.0, price=2.0)
    assert cost.bill == 3 * 10 * 2
    assert (cost.untuned.developer, cost.untuned.over) == (1, 0)  # farther, but cheaper
    assert cost.untuned.cost == pytest.approx(np.expm1(1.0))
    assert cost.tuned.cost == pytest.approx(11 * np.expm1(1.0))
    assert (cost.untuned.pays, cost.tuned.pays) == (True, False)


def test_callables_give_what_the_form_gives() -> None:
    form = PowerLawCurves([1.0, 0.5, 0.0], 0.8)
    called = FunctionCurves(lambda theta, e: form.score((2 - theta).astype(int), e), [2.0, 1.0, 0.0])
    rewards = [3.0, 1.0, 0.0]
    one, other = (required_effort(RankingGame(curves, rewards), [0.0, 50.0]) for curves in (form, called))
    assert one.effort == pytest.approx(other.effort, rel=1e-9)
    one, other = (margin_over_tuning(RankingGame(curves, rewards), [0.0, 50.0]) for curves in (form, called))
    assert one.margin == pytest.approx(other.margin, rel=1e-9)


def test_bad_input() -> None:
    game = RankingGame(PowerLawCurves([1.0, 0.0]), [1.0, 0.0])
    with pytest.raises(UsageError, match="`deltas` must hold levels >= 0"):
        required_effort(game, [-1.0])
    with pytest.raises(UsageError, match="`deltas` must hold levels >= 0"):
        margin_over_tuning(game, [])
    with pytest.raises(UsageError, match="`level` must lie between 0 and 1"):
        required_effort(game, [1.0], level=95)
    with pytest.raises(UsageError, match="`price` must be a finite number >= 0"):
        designer_cost(game, 1.0, price=-1.0)
    with pytest.raises(UsageError, match="`rewards` are all equal"):
        margin_over_tuning(RankingGame(game.curves, [1.0, 1.0]), [1.0])
