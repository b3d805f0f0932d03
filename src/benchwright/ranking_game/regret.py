"""The largest gain that one developer has from leaving a profile: the check of a verdict, by code of its own.

The search inverts score curves and looks at costs. This inverts costs and looks at scores: a deviation gains more than
g where the effort that costs R_r - u_i - g is enough to outscore all but r - 1 of the others, for some rank r. The
largest such g is found by halving.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchwright._check import FloatArray
from benchwright.ranking_game.forms import IntArray
from benchwright.ranking_game.game import RankingGame

TOLERANCE = 1e-12  # gains up to this part of the greatest reward or cost count as none
HALVINGS = 60
ENTRIES_AT_ONCE = 1 << 18


def max_regret(game: RankingGame, efforts: Any) -> float:
    """Return the supremum of any developer's gain from changing its effort alone, in reward.

    0 where no gain exceeds 1e-12 times the greatest reward or cost. Scores that double precision cannot tell apart
    count as equal. A tie on a plateau counts where the more capable wins it; what a shared one is worth does not, so
    that with shared ties and curves not known to increase strictly the figure is a lower bound.

    Parameters
    ----------
    game : RankingGame
    efforts : (n,) efforts >= 0

    Examples
    --------
    >>> from benchwright.ranking_game.costs import PowerCosts
    >>> from benchwright.ranking_game.forms import TranslationCurves
    >>> curves = TranslationCurves([1.0, 0.5], "exponential")
    >>> round(max_regret(RankingGame(curves, [1.0, 0.0]), [0.0, 0.0]), 9)
    0.5
    >>> max_regret(RankingGame(curves, [1.0, 1.0], costs=PowerCosts(1.0, 2.0, 1.0)), [0.0, 0.75])
    0.0
    """
    profile = game.profile(efforts)
    payoff, order = game.payoffs(profile), game.published_order(profile)
    scale = float(np.abs(game.rewards).max() + np.abs(payoff).max())
    low, high = TOLERANCE * scale, float(game.rewards[0] - payoff.min())
    if high <= low:
        return 0.0
    place = np.empty(game.n, dtype=np.intp)
    place[order] = np.arange(game.n)
    who, rank = [], []
    rows = max(1, ENTRIES_AT_ONCE // game.n)
    for first in range(0, game.n, rows):
        i = np.repeat(np.arange(first, min(first + rows, game.n)), game.n)
        r = np.tile(np.arange(game.n), i.size // game.n)
        gains = _gains_more(game, profile, payoff, order, place, i, r, low)
        who.append(i[gains])
        rank.append(r[gains])
    i, r = np.concatenate(who), np.concatenate(rank)
    if not i.size:
        return 0.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        gains = _gains_more(game, profile, payoff, order, place, i, r, middle)
        if gains.any():
            low, i, r = middle, i[gains], r[gains]
        else:
            high = middle
    return (low + high) / 2


def _gains_more(
    game: RankingGame,
    efforts: FloatArray,
    payoff: FloatArray,
    order: IntArray,
    place: IntArray,
    i: IntArray,
    r: IntArray,
    gain: float,
) -> np.ndarray:
    """Whether developer i (k,) can hold rank r (k,), from 0, and earn more than ``gain`` above its payoff."""
    amount = game.rewards[r] - payoff[i] - gain
    able = np.flatnonzero(amount > 0)
    result = np.zeros(i.size, dtype=bool)
    effort = game.costs.budget(i[able], amount[able])
    rank = r[able]
    rival = order[np.minimum(rank + (rank >= place[i[able]]), game.n - 1)]  # the r-th best of the others
    least, most = game.curves.lead(i[able], effort, rival, efforts[rival], game.tune_before_test)
    beaten = least > 0
    if game.ties == "capability" and not game.curves.strict:  # a tie on a plateau may be cheaper than a lead
        capability = game.curves.capability
        near = np.flatnonzero(~beaten & (most >= 0) & (capability[i[able]] > capability[rival]))
        mine = game.curves.key(i[able][near], game.tune_before_test + effort[near])
        beaten[near] = mine == game.curves.key(rival[near], game.tune_before_test + efforts[rival[near]])
    result[able] = (rank == game.n - 1) | beaten
    return result
