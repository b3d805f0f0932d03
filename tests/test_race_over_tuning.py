"""The arms race over tuning: nobody pays where no jump pays, closed forms elsewhere, and what is undecided says so."""

from __future__ import annotations

import json

import numpy as np
import pytest

from benchwright.errors import UsageError
from benchwright.ranking_game.arms_race import arms_race
from benchwright.ranking_game.costs import PowerCosts
from benchwright.ranking_game.forms import FunctionCurves, PowerLawCurves, TranslationCurves
from benchwright.ranking_game.game import RankingGame
from benchwright.ranking_game.race_over_tuning import race_over_tuning

FITTED = RankingGame(  # curves with bounds and slopes of their own; the second and third cross at effort 1.5
    PowerLawCurves([0.5, 0.0, 0.2], [0.6, 0.5, 0.3], 0.1, [0.9, 0.85, 0.8], [3.0, 2.0, 1.0]),
    [3.0, 1.0, 0.0],
    costs=PowerCosts(0.5),
    names=("a", "b", "c"),
)


def test_two_developers_follow_the_known_answer_up_to_the_threshold() -> None:
    game = RankingGame(PowerLawCurves([np.log(2), 0.0]), [2.0, 0.0])  # k(x) = 2 (1 + Delta + x) - (1 + Delta)
    levels = np.array([0.0, 0.25, 0.75, 1.5, 5.0])
    found = race_over_tuning(game, levels)
    xbar = np.maximum((1 - levels) / 2, 0)  # 2 - h - 2 x = 0 with h = 1 + Delta
    wrong = ((1 + levels) * xbar + xbar**2) / 4  # integral of k(x)/G over the costs spent, by G
    assert found.wrong_order == pytest.approx(wrong)
    assert found.spend[:, 0] == pytest.approx(xbar - 2 * wrong)
    assert found.kendall_tau == pytest.approx(1 - 2 * wrong)
    assert found.verdict == ("none", "none", "none", "exists", "exists")
    assert found.method[2:4] == ("closed form", "pure equilibrium")


def test_curves_that_cross_can_rest_in_a_wrong_order() -> None:
    levels = [0.0, 0.5, 10_000.0]
    found = race_over_tuning(FITTED, levels)
    assert found.verdict == ("none", "none", "exists")
    for k, level in enumerate(levels[:2]):
        alone = arms_race(FITTED.at(level))
        assert found.spend[k] == pytest.approx(alone.spend)
        assert found.wrong_order[k] == pytest.approx(alone.wrong_order)
        assert found.exploitability[k] <= 3e-5
    assert (found.wrong_order[2], found.wrong_top[2], found.kendall_tau[2]) == (0.0, 0.0, 1.0)
    turned = RankingGame(FITTED.curves, [0.02, 0.01, 0.0])  # at level 0 the third scores above the second; nobody pays
    rest = race_over_tuning(turned, [0.0])
    assert rest.verdict == ("exists",)
    assert (rest.wrong_order[0], rest.wrong_top[0], rest.kendall_tau[0]) == (1.0, 0.0, pytest.approx(1 / 3))


def test_what_is_undecided_says_so() -> None:
    free = RankingGame(TranslationCurves([1.0, 0.5], "exponential"), [1.0, 0.0], costs=PowerCosts(1.0, 1.0, [0.0, 0.2]))
    found = race_over_tuning(free, [0.0])
    assert (found.verdict, found.method) == (("undecided",), ("undecided",))
    assert np.isnan(found.spend).all()
    assert "free effort differs" in str(found)
    alike = RankingGame(TranslationCurves([1.0, 0.5], "exponential"), [1.0, 1.0, 0.0][1:], costs=PowerCosts(1, 2, 1.0))
    assert race_over_tuning(alike, [0.0]).method != ("undecided",)
    tied = RankingGame(
        TranslationCurves([9.0, 1.0, 0.5], "exponential"), [1.0, 0.0, 0.0], costs=PowerCosts(1.0, 2.0, 1.0)
    )
    silent = race_over_tuning(tied, [0.0])  # b and c earn the same, and effort up to 1 is free: either may be second
    assert (silent.verdict, silent.method) == (("exists",), ("undecided",))
    assert silent.to_frame()["wrong_order"].to_list() == [None]


def test_results_tabulate_and_tell_their_progress() -> None:
    told: list[str] = []
    found = race_over_tuning(FITTED, [0.0, 10_000.0], cells=40, progress=told.append)
    assert told == ["arms race at level 0 (1 of 2)", "arms race at level 10000 (2 of 2)"]
    assert found.to_frame().columns[:4] == ["delta", "verdict", "method", "spend"]
    record = json.loads(json.dumps(found.to_dict()))["levels"]
    assert [row["method"] for row in record] == ["interior point", "pure equilibrium"]
    assert sum(record[0]["spend_by_developer"].values()) == pytest.approx(record[0]["spend"])
    with pytest.raises(UsageError, match="`deltas` must hold levels >= 0"):
        race_over_tuning(FITTED, [-1.0])
    with pytest.raises(UsageError, match="rewards that differ"):
        race_over_tuning(RankingGame(FITTED.curves, [1.0, 1.0, 1.0]), [0.0])


def test_an_equilibrium_outside_the_criterion_leaves_the_order_open() -> None:
    lines = [lambda e: np.interp(e, [0, 9], [0.3, 0.6]), lambda e: np.interp(e, [0, 1], [0.2, 0.5])]
    unlike = RankingGame(FunctionCurves(lines, [2.0, 1.0]), [1.0, 0.0], costs=PowerCosts(1.0, 1.0, [0.0, 1.0]))
    found = race_over_tuning(unlike, [0.0])
    assert (found.verdict, found.method) == (("exists",), ("undecided",))
    assert "may publish different orders" in found.reasons[0]
