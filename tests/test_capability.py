"""The order of capability from fitted curves: its rules, its ties, and how sure it is."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import kendalltau

from benchwright.errors import UsageError
from benchwright.ranking_game.capability import capability_order, draw_orders

NAMES = ("a", "b", "c")
FITTED = {
    "alpha": np.array([0.0, 1.0, -1.0]),
    "beta": np.array([0.5, 0.5, 0.5]),
    "lower": np.zeros(3),
    "upper": np.array([0.9, 0.6, 0.8]),
}


def test_the_limit_and_the_tuned_score_order_each_their_way() -> None:
    by_limit = capability_order(FITTED, names=NAMES, effort=1.0)
    assert (by_limit.order.tolist(), by_limit.rule) == ([0, 2, 1], "limit")
    assert by_limit.capability.tolist() == [3.0, 1.0, 2.0]
    tuned = capability_order(FITTED, names=NAMES, rule="tuned", effort=1.0)
    assert tuned.order.tolist() == [0, 1, 2]
    assert tuned.value == pytest.approx(FITTED["upper"] / (1 + np.exp(-FITTED["alpha"] - 0.5 * np.log(2))))


def test_where_limits_agree_the_tuned_score_orders_and_the_result_says_so() -> None:
    shared = capability_order(FITTED | {"upper": np.full(3, 0.9)}, names=NAMES, effort=1.0)
    assert (shared.order.tolist(), shared.rule) == ([1, 0, 2], "tuned")
    assert "all fitted limits are 0.9" in shared.notes[0]
    two = capability_order(FITTED | {"upper": np.array([1.0, 1 - 1e-9, 0.5])}, names=NAMES, effort=1.0)
    assert (two.order.tolist(), two.rule) == ([1, 0, 2], "limit")
    assert two.notes == ("limits agree of a, b at 1: ordered by the score at effort 1",)


def test_draws_say_how_sure_the_order_is() -> None:
    rng = np.random.default_rng(0)
    draws = {name: np.tile(value, (400, 1)) for name, value in FITTED.items()}
    draws["upper"] = np.clip(FITTED["upper"] + rng.normal(0, 0.08, (400, 3)), 0.1, 1.0)
    found = capability_order(FITTED, names=NAMES, effort=1.0, draws=draws)
    upper = draws["upper"]
    assert found.above == pytest.approx(
        [(upper[:, 0] > upper[:, 2]).mean(), (upper[:, 2] > upper[:, 1]).mean()], abs=0.02
    )
    reference = [kendalltau([3, 1, 2], row).statistic for row in upper.round(6)]
    assert found.kendall_tau == pytest.approx(np.mean(reference), abs=0.02)  # limits cut at 1 tie and go by the score
    assert found.whole <= found.above.min()
    assert found.draws == 400
    assert "same order in" in str(found)
    assert found.to_frame()["developer"].to_list() == ["a", "c", "b"]
    assert found.to_dict()["above_next"] == found.above.tolist()


def test_a_given_order_is_taken_as_known() -> None:
    found = capability_order(FITTED, names=NAMES, rule=["c", "b", "a"], effort=1.0, draws=None)
    assert (found.order.tolist(), found.rule) == ([2, 1, 0], "given")
    assert np.isnan(found.above).all()
    assert found.to_dict()["effort"] is None


def test_bad_input() -> None:
    with pytest.raises(UsageError, match="`capability` must be limit, tuned or a list"):
        capability_order(FITTED, names=NAMES, rule="size", effort=1.0)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="must list all developers, best first; c missing"):
        capability_order(FITTED, names=NAMES, rule=["a", "b"], effort=1.0)
    with pytest.raises(UsageError, match="names no developer: d"):
        capability_order(FITTED, names=NAMES, rule=["a", "b", "c", "d"], effort=1.0)
    with pytest.raises(UsageError, match="names a twice"):
        capability_order(FITTED, names=NAMES, rule=["a", "b", "c", "a"], effort=1.0)


def test_fits_that_tie_stand_as_listed_and_are_named() -> None:
    twins = {name: value[[1, 0, 0]] for name, value in FITTED.items()}
    found = capability_order(twins, names=NAMES, effort=3.0)
    assert (found.order.tolist(), found.tied) == ([1, 2, 0], (("b", "c"),))
    assert found.notes[-1].startswith("NOT KNOWN who is more capable of b and c: the same score")
    assert found.to_dict()["tied"] == [["b", "c"]]
    rng = np.random.default_rng(3)
    draws = {name: np.tile(value, (400, 1)) for name, value in twins.items()}
    draws["upper"] = draws["upper"] + rng.normal(0, 0.01, (400, 3))
    assert found.over(draws).above[0] == pytest.approx(0.5, abs=0.08)


def test_developers_that_tie_in_a_draw_stand_as_in_the_fit_and_count_as_half() -> None:
    draws = {name: np.tile(value, (4, 1)) for name, value in FITTED.items()}
    for value in draws.values():
        value[0, 2] = value[0, 0]  # a and c, neighbours of the fit
        value[1, :] = value[1, 0]  # all three
    found = capability_order(FITTED, names=NAMES, effort=1.0, draws=draws)
    assert found.order.tolist() == [0, 2, 1]
    assert draw_orders(draws, found)[0].tolist() == [[0, 2, 1]] * 4
    assert found.above == pytest.approx([0.75, 0.875])
    assert (found.whole, found.draws, found.tied) == (0.5, 4, ())
    assert found.notes == ("in 2 of 4 draws capabilities tie: those developers stand there as in the fit",)
    assert found.kendall_tau == pytest.approx((2 / 3 + 0 + 1 + 1) / 4)
