"""The arms race of two developers in closed form.

Call the one ahead at free effort s and the other w. Let G be the reward gap, k(x) the effort with which w just
overtakes s at effort x, and xbar the effort with c_w(k(xbar)) = G. Where costs strictly increase from 0, curves
strictly increase on the range used, c_w(k(0)) < G and c_s(xbar) <= G, the equilibrium is unique and mixed:

    s:  F(x) = c_w(k(x)) / G on [0, xbar], with an atom at 0
    w:  0 with probability 1 - c_s(xbar)/G, else F(k(x)) = 1 - (c_s(xbar) - c_s(x)) / G.

Where the curve of w reaches its maximum before that, xbar is the effort with which s has that score, and F has a
further atom 1 - c_w(k(xbar-))/G there. Where that is the maximum of s too, s wins the tie if it is the more capable.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchwright._check import FloatArray
from benchwright.ranking_game.costs import FunctionCosts
from benchwright.ranking_game.forms import SCORE_SLACK, IntArray
from benchwright.ranking_game.game import RankingGame

QUADRATURE = 200
CHECKED = 1001  # efforts at which callables are checked
NEAR = 1e-6  # part of an effort by which a curve that reaches its maximum is below it before
SATURATED = 1e-6  # an atom at the maximum below this is rounding


@dataclass(frozen=True, slots=True, eq=False)
class RaceOfTwo:
    """Closed form; fields (2,) with the developer ahead at free effort first, ``order``.

    ``overtaken`` is the probability that the other one is first; ``conditions`` what the form rests on.
    """

    order: tuple[int, int]
    spend: FloatArray
    payoff: FloatArray
    stays: FloatArray
    overtaken: float
    conditions: tuple[str, ...]


def race_of_two(game: RankingGame) -> RaceOfTwo | str:
    """Return the closed form, or the condition that does not hold."""
    costs, curves, delta = game.costs, game.curves, game.tune_before_test
    s, w, zero = game.order[:1], game.order[1:], np.zeros(1)
    if costs.free.any():
        return "some effort is free"
    if curves.lead(s, zero, w, zero, delta)[1][0] < 0:
        s, w = w, s
    if not curves.lead(s, zero, w, zero, delta)[0][0] > 0:
        return "scores at free effort are too close for double precision to order"
    gap = float(game.rewards[0] - game.rewards[1])

    def price(x: FloatArray) -> FloatArray:
        low, high = curves.overtake(w, s, x, delta)
        return np.minimum(costs.cost(w, np.where(np.isfinite(high), (low + high) / 2, low)), gap)

    limit = costs.budget(w, np.array([gap]))
    low, high = curves.overtake(s, w, limit, delta)
    level = not np.isfinite(high[0]) and _levels(game, s, low, w, limit)
    if not (price(zero)[0] < gap and (level or np.isfinite(high[0]))):
        return "overtaking does not pay, or one developer cannot answer the other"
    xbar = low if level else (low + high) / 2
    reach, atom = float(costs.cost(s, xbar)[0]), 1 - float(price(low)[0]) / gap
    if not reach <= gap:
        return "the developer ahead would have to spend more than the reward gap"
    saturated = not curves.strict and atom > SATURATED
    if saturated and (s[0] != game.order[0] or game.ties == "shared"):
        return "the developer ahead would not win a tie with the other at its maximum"
    conditions = ["costs strictly increase from 0"]
    if curves.strict:
        conditions.append("curves strictly increase")
    else:
        top = float(curves.overtake(w, s, low, delta)[0][0]) if saturated else float(limit[0])
        first = float(curves.overtake(w, s, zero, delta)[1][0])
        for who, start, end in ((s, 0.0, float(low[0])), (w, first, top)):
            at = np.linspace(start, end, CHECKED)
            if (np.diff(curves.score(np.broadcast_to(who, at.shape), delta + at)) <= 0).any():
                return (
                    f"the score of {game.name(int(who[0]))} does not strictly increase from effort {start:g} to {end:g}"
                )
        conditions.append(f"curves strictly increase at {CHECKED} efforts on the range used; callables, as given")
    if isinstance(costs, FunctionCosts):
        conditions.append("costs are callables, as given")
    if saturated:
        conditions.append(
            f"{game.name(int(w[0]))} is at its maximum: {game.name(int(s[0]))} goes there with chance {atom:.4g}"
        )
    x, weight = np.polynomial.legendre.leggauss(QUADRATURE)
    spent, weight = reach * (x + 1) / 2, reach * weight / 2  # over what the developer ahead spends
    part = price(costs.budget(s, spent)) / gap
    overtaken = float(part @ weight) / gap
    return RaceOfTwo(
        order=(int(s[0]), int(w[0])),
        spend=np.array([(1 - part) @ weight, gap * overtaken]),
        payoff=np.array([game.rewards[0] - reach, game.rewards[1]]),
        stays=np.array([price(zero)[0] / gap, 1 - reach / gap]),
        overtaken=overtaken,
        conditions=tuple(conditions),
    )


def _levels(game: RankingGame, s: IntArray, effort: FloatArray, w: IntArray, limit: FloatArray) -> bool:
    """Whether ``s`` reaches its maximum at ``effort``, and not in the limit, and w has that score at ``limit``."""
    curves, delta = game.curves, game.tune_before_test
    if curves.strict or curves.lead(s, effort * (1 - NEAR), w, limit, delta)[1][0] >= -2 * SCORE_SLACK:
        return False
    return bool(curves.key(s, delta + 2 * effort + 1)[0] == curves.key(w, delta + limit)[0])
