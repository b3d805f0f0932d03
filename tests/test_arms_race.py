"""Mixed play against closed forms, enumeration and simulation."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from benchwright._check import FloatArray
from benchwright.errors import UsageError
from benchwright.ranking_game import _arms_race as numbers
from benchwright.ranking_game.arms_race import arms_race
from benchwright.ranking_game.costs import PowerCosts
from benchwright.ranking_game.forms import FunctionCurves, PowerLawCurves, TranslationCurves
from benchwright.ranking_game.game import RankingGame

TWO = {
    "same cost": RankingGame(TranslationCurves([1.0, 0.5], "exponential"), [1.0, 0.0]),
    "costs of their own": RankingGame(
        PowerLawCurves([np.log(2), 0.0], [1.2, 1.0]), [5.0, 1.0], costs=PowerCosts([1.0, 0.7], [1.5, 1.0])
    ),
    "own bounds": RankingGame(PowerLawCurves([0.5, 0.0], 1.0, 0.1, [0.9, 0.8]), [4.0, 0.0], costs=PowerCosts(1.0, 2.0)),
}
CALLED = FunctionCurves(lambda theta, e: 1 - np.exp(-(theta + e)), [1.0, 0.5])


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
    assert (closed.method, cells.method) == ("closed form", "linear programme")
    assert cells.exploitability < 1e-9
    scale = float(np.ptp(TWO[name].rewards))
    for field in ("wrong_order", "wrong_top", "kendall_tau"):
        assert getattr(cells, field) == pytest.approx(getattr(closed, field), abs=1e-3)
    for field in ("spend", "payoff"):
        assert getattr(cells, field) / scale == pytest.approx(getattr(closed, field) / scale, abs=1e-3)


def test_linear_rewards_reach_a_small_exploitability() -> None:
    game = RankingGame(TranslationCurves([0.6, 0.4, 0.2, 0.0], "exponential"), [3.0, 2.0, 1.0, 0.0])
    found = arms_race(game, cells=60, target=1e-3)
    assert found.method == "regret matching"
    assert found.exploitability <= 3e-3
    assert 0 < found.wrong_top < found.wrong_order < 1
    assert (np.diff(found.payoff) < 0).all()
    calm = arms_race(RankingGame(game.curves, [0.3, 0.2, 0.1, 0.0]), cells=60)  # no jump pays: everybody stays
    assert calm.stays == pytest.approx(np.ones(4), abs=0.02)
    assert calm.kendall_tau == pytest.approx(1.0, abs=0.02)


def test_developers_may_be_permuted() -> None:
    theta, order = np.array([0.6, 0.4, 0.2]), [2, 0, 1]
    straight = arms_race(RankingGame(TranslationCurves(theta, "exponential"), [3.0, 1.0, 0.0]), cells=40, steps=500)
    turned = arms_race(
        RankingGame(TranslationCurves(theta[order], "exponential"), [3.0, 1.0, 0.0]), cells=40, steps=500
    )
    assert turned.spend == pytest.approx(straight.spend[order])
    assert turned.wrong_order == pytest.approx(straight.wrong_order)


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
        (
            RankingGame(FunctionCurves(lambda t, e: 1 - np.exp(-(t + e)), [1.0, 0.5]), [1.0, 0.0]),
            {},
            "strictly increase",
        ),
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
