"""Mixed play against closed forms, enumeration and simulation."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from benchwright._check import FloatArray
from benchwright.errors import UsageError
from benchwright.ranking_game import _arms_race as numbers
from benchwright.ranking_game import _central_path as search
from benchwright.ranking_game.arms_race import arms_race
from benchwright.ranking_game.costs import FunctionCosts, PowerCosts
from benchwright.ranking_game.forms import FunctionCurves, PowerLawCurves, TranslationCurves
from benchwright.ranking_game.game import RankingGame

TWO = {
    "same cost": RankingGame(TranslationCurves([1.0, 0.5], "exponential"), [1.0, 0.0]),
    "costs of their own": RankingGame(
        PowerLawCurves([np.log(2), 0.0], [1.2, 1.0]), [5.0, 1.0], costs=PowerCosts([1.0, 0.7], [1.5, 1.0])
    ),
    "own bounds": RankingGame(PowerLawCurves([0.5, 0.0], 1.0, 0.1, [0.9, 0.8]), [4.0, 0.0], costs=PowerCosts(1.0, 2.0)),
    "less capable ahead": RankingGame(PowerLawCurves([0.0, 0.5], 1.0, 0.0, [1.0, 0.9]), [0.8, 0.0]),
    "callables": RankingGame(FunctionCurves(lambda theta, e: 1 - np.exp(-(theta + e)), [1.0, 0.5]), [1.0, 0.0]),
    "a curve at its maximum": RankingGame(
        FunctionCurves([lambda e: 0.5 + 0.4 * e / (1 + e), lambda e: np.minimum(0.3 + 0.3 * e, 0.6)], [2.0, 1.0]),
        [2.0, 0.0],
    ),
    "both at their maxima": RankingGame(
        FunctionCurves(
            [lambda e: np.minimum(0.5 + 0.1 * e, 0.9), lambda e: np.minimum(0.3 + 0.3 * e, 0.6)], [2.0, 1.0]
        ),
        [4.0, 0.0],
        costs=FunctionCosts(lambda e: e + e**2),
    ),
}


@pytest.mark.parametrize(("h", "gap"), [(0.5, 1.0), (0.2, 3.0), (0.9, 1.0)])
def test_translation_has_its_known_answer(h: float, gap: float) -> None:
    found = arms_race(
        RankingGame(TranslationCurves([1.0 - h, 1.0], "hyperbolic"), [gap, 0.0])
    )  # the second is stronger
    assert found.method == "closed form"
    assert found.wrong_order == pytest.approx((1 - (h / gap) ** 2) / 2)
    assert found.spend.tolist() == pytest.approx([(gap**2 - h**2) / (2 * gap), (gap - h) ** 2 / (2 * gap)])
    assert found.payoff.tolist() == pytest.approx([0.0, h])
    assert found.stays.tolist() == pytest.approx([h / gap, h / gap])


@pytest.mark.parametrize("name", TWO)
def test_closed_form_and_cells_agree(name: str) -> None:
    closed = arms_race(TWO[name])
    cells = arms_race(TWO[name], closed_form=False)
    assert (closed.method, cells.method) == ("closed form", "interior point")
    scale = float(np.ptp(TWO[name].rewards))
    assert cells.exploitability <= 2e-5 * scale
    for field in ("wrong_order", "wrong_top", "kendall_tau"):
        assert getattr(cells, field) == pytest.approx(getattr(closed, field), abs=1e-3)
    for field in ("spend", "payoff"):
        assert getattr(cells, field) / scale == pytest.approx(getattr(closed, field) / scale, abs=1e-3)


def test_a_curve_at_its_maximum_has_its_known_answer() -> None:
    # k(x) = (v_S(x) - 0.3) / 0.3, x_sat = 1/3 where v_S = 0.6; by hand: F_S = k(x)/2, F_W = 1 - (1/3 - x)/2
    found = arms_race(TWO["a curve at its maximum"])
    x, weight = np.polynomial.legendre.leggauss(50)
    x, weight = (x + 1) / 6, weight / 6
    below = (0.2 + 0.4 * x / (1 + x)) / 0.3 / 2
    assert found.wrong_order == pytest.approx(below @ weight / 2)
    assert found.spend == pytest.approx([(1 - below) @ weight, below @ weight])
    assert found.stays == pytest.approx([1 / 3, 5 / 6])
    assert found.payoff == pytest.approx([5 / 3, 0.0])
    assert any("at its maximum" in note for note in found.notes)


def test_a_maximum_that_both_share_goes_to_the_more_capable() -> None:
    # k(x) = 1 + x up to x_sat = 3, gap 10. By hand: F_S = (1 + x)/10, an atom of 0.6 at 3; F_W = 1 - (3 - x)/10
    both = [lambda e: np.minimum(0.6, 0.3 + 0.1 * e), lambda e: np.minimum(0.6, 0.2 + 0.1 * e)]
    found = arms_race(RankingGame(FunctionCurves(both, [2.0, 1.0]), [10.0, 0.0]))
    assert found.method == "closed form"
    assert found.wrong_order == pytest.approx(0.075)
    assert found.spend == pytest.approx([2.25, 0.75])
    assert found.payoff == pytest.approx([7.0, 0.0])
    third = [*both, lambda e: np.minimum(0.6, 0.1 + 0.1 * e)]
    shared = RankingGame(FunctionCurves(both, [2.0, 1.0]), [10.0, 0.0], ties="shared")
    between = [
        lambda e: np.interp(e, [0, 1, 8, 20], [0.3, 0.5, 0.5, 0.9]),
        lambda e: np.interp(e, [0, 2, 9, 21], [0.2, 0.5, 0.5, 0.88]),
    ]
    for game in (
        RankingGame(FunctionCurves(third, [3.0, 2.0, 1.0]), [10.0, 0.0, 0.0]),
        RankingGame(FunctionCurves(between, [2.0, 1.0]), [15.0, 0.0]),
        shared,
    ):
        with pytest.raises(UsageError, match="no mixed play found") as refused:
            arms_race(game)
        assert "ties decide" in str(refused.value.hint)


@pytest.mark.parametrize(
    ("game", "reason"),
    [
        (RankingGame(TWO["same cost"].curves, [1.0, 0.0], costs=PowerCosts([3.0, 1.0])), "more than the reward gap"),
        (RankingGame(TWO["same cost"].curves, [1.0, 0.0], costs=PowerCosts(1.0, 2.0, 0.4)), "some effort is free"),
        (RankingGame(TWO["same cost"].curves, [0.4, 0.0]), "overtaking does not pay"),
        (RankingGame(TWO["a curve at its maximum"].curves, [2.0, 0.0], ties="shared"), "would not win a tie"),
        (
            RankingGame(
                FunctionCurves(
                    [lambda e: 0.5 + 0.4 * e / (1 + e), lambda e: np.interp(e, [0, 1, 2, 3], [0.3, 0.6, 0.6, 0.9])],
                    [2.0, 1.0],
                ),
                [2.5, 0.0],
            ),
            "does not strictly increase",
        ),
    ],
)
def test_without_its_conditions_the_closed_form_gives_way_to_cells(game: RankingGame, reason: str) -> None:
    found = arms_race(game)
    assert found.method == "interior point"
    assert reason in found.notes[0]
    assert found.exploitability <= 2e-5 * np.ptp(game.rewards)
    assert found.off_grid <= 1e-2 * np.ptp(game.rewards)


def test_a_developer_who_cannot_afford_the_race_leaves_it() -> None:
    # c_S = 3x, c_W = x, lead 1/2, gap 1. S spends at most 1, at x = 1/3, so W is sure of first at 5/6 and earns 1/6
    found = arms_race(RankingGame(TWO["same cost"].curves, [1.0, 0.0], costs=PowerCosts([3.0, 1.0])))
    assert found.payoff == pytest.approx([0.0, 1 / 6], abs=1e-3)
    assert found.stays == pytest.approx([2 / 3, 0.0], abs=1e-2)  # some chance lies in the first cell instead
    assert found.wrong_order == pytest.approx(5 / 6, abs=1e-3)


def test_prizes_that_differ_more_than_efforts_are_raced_for() -> None:
    game = RankingGame(TranslationCurves([0.6, 0.4, 0.2, 0.0], "exponential"), [3.0, 2.0, 1.0, 0.0])
    found = arms_race(game, cells=60)
    assert found.method == "interior point"
    assert found.exploitability <= 3e-5
    assert 0 < found.wrong_top < found.wrong_order < 1
    assert (np.diff(found.payoff) < 0).all()
    calm = arms_race(RankingGame(game.curves, [0.3, 0.2, 0.1, 0.0]), cells=60)  # no jump pays: everybody stays
    assert calm.stays == pytest.approx(np.ones(4), abs=0.02)
    assert calm.kendall_tau == pytest.approx(1.0, abs=0.02)


@pytest.mark.parametrize("seed", range(12))
def test_random_games_reach_the_target(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 9))
    theta = np.sort(rng.uniform(0, rng.choice([0.3, 1.0, 3.0]), n))[::-1]
    curves: Any = (
        TranslationCurves(theta, "exponential"),
        PowerLawCurves(theta, rng.uniform(0.4, 1.0, n), 0.1, rng.uniform(0.7, 1.0, n)),  # cross
        FunctionCurves(lambda t, e: 1 - np.exp(-(t + e)), theta),
    )[seed % 3]
    rewards = rng.choice([1.0, 5.0]) * (0.6 ** np.arange(n) if seed % 2 else np.linspace(1, 0, n))
    costs = PowerCosts(rng.uniform(0.5, 2.0, n), rng.choice([1.0, 2.0]))
    found = arms_race(RankingGame(curves, rewards, costs=costs, tune_before_test=float(seed % 4)), cells=100)
    assert found.exploitability <= 1e-4 * np.ptp(rewards)
    assert found.spend.min() >= 0
    assert found.payoff.sum() + found.spend.sum() == pytest.approx(rewards.sum())  # all rewards are paid out


def test_developers_may_be_permuted() -> None:
    theta, order = np.array([0.6, 0.4, 0.2]), [2, 0, 1]
    straight = arms_race(RankingGame(TranslationCurves(theta, "exponential"), [3.0, 1.0, 0.0]), cells=40)
    turned = arms_race(RankingGame(TranslationCurves(theta[order], "exponential"), [3.0, 1.0, 0.0]), cells=40)
    assert turned.spend == pytest.approx(straight.spend[order])
    assert turned.wrong_order == pytest.approx(straight.wrong_order)


@pytest.mark.parametrize("seed", range(3))
def test_slopes_are_those_of_payoffs(seed: int) -> None:
    strategy, slots = random_play(seed)
    rewards, (x, w), tiny = np.array([2.0, 0.7, 0.1]), numbers.nodes(3), 1e-6
    found, above, inside = search.payoffs_and_slopes(strategy, slots, rewards, x, w)
    assert found == pytest.approx(numbers.payoffs(strategy, slots, rewards, x, w))
    for j, t in zip(*np.nonzero(slots.allowed), strict=True):
        moved = strategy.copy()
        moved[j, t] += tiny
        change = (numbers.payoffs(moved, slots, rewards, x, w) - found) / tiny
        expected = np.where(np.arange(6) < t, above[:, :, j].T, 0.0)
        expected[:, t] = inside[t, :, j]
        assert change == pytest.approx(np.where(slots.allowed, expected, 0.0), abs=1e-5)


def random_play(seed: int) -> tuple[FloatArray, numbers.Slots]:
    rng = np.random.default_rng(seed)
    is_cell = np.array([False, True, False, True, False, True])
    allowed = np.array([[0, 0, 0, 0, 1, 1], [0, 0, 1, 1, 0, 1], [1, 1, 0, 1, 0, 1]], dtype=bool)
    strategy = np.where(allowed, rng.random((3, 6)), 0.0)
    strategy /= strategy.sum(axis=1, keepdims=True)
    cost = rng.random((3, 6))
    places = np.linspace(0, 1, 5)
    return strategy, numbers.Slots(
        allowed, cost, is_cell, places, np.where(allowed, cost, np.inf)[:, :, None] + 0 * places
    )


@pytest.mark.parametrize("seed", range(5))
def test_recursions_agree_with_enumeration_and_simulation(seed: int) -> None:
    strategy, slots = random_play(seed)
    rewards = np.array([2.0, 0.7, 0.1])
    x, w = numbers.nodes(3)
    found = numbers.payoffs(strategy, slots, rewards, x, w)
    for i, s in zip(*np.nonzero(slots.allowed), strict=True):
        others = [j for j in range(3) if j != i]
        plain = 0.0
        for a, b in product(range(6), repeat=2):  # slots of the two others
            chance = strategy[others[0], a] * strategy[others[1], b]
            level, ahead = int(a == s) + int(b == s), int(a > s) + int(b > s)
            plain += chance * rewards[ahead : ahead + level + 1].mean()  # in one cell all orders are alike
        assert found[i, s] == pytest.approx(plain - slots.cost[i, s])
    rng, draws = np.random.default_rng(seed), 200_000
    score = np.stack([rng.choice(6, draws, p=row) for row in strategy]) + 0.5 * rng.random((3, draws))
    above = numbers.pairwise_above(strategy, slots)
    for i, j in ((0, 1), (0, 2), (1, 2)):
        assert above[i, j] == pytest.approx((score[i] > score[j]).mean(), abs=0.006)
    assert numbers.top_chance(strategy, slots) == pytest.approx((score.argmax(axis=0) == 0).mean(), abs=0.006)
    in_order = (score[0] > score[1]) & (score[1] > score[2])
    assert numbers.order_chance(strategy) == pytest.approx(in_order.mean(), abs=0.006)


@pytest.mark.parametrize(
    ("game", "options", "text"),
    [
        (TWO["same cost"], {"target": 0.0}, "`target` must be > 0"),
        (TWO["same cost"], {"cells": 2}, "`cells` must be at least 3"),
        (RankingGame(TranslationCurves([1.0, 0.5], "exponential"), [1.0, 1.0]), {}, "needs rewards that differ"),
    ],
)
def test_bad_input(game: RankingGame, options: dict[str, Any], text: str) -> None:
    with pytest.raises(UsageError, match=text):
        arms_race(game, **options)


def test_results_print_and_tabulate() -> None:
    found = arms_race(TWO["same cost"])
    assert "closed form" in str(found)
    assert found.to_frame().height == 2
    assert found.to_dict()["spend"] == pytest.approx([0.125, 0.375])
