"""Where one curve stays above another over levels of tuning: cells of the range, cut until the sign is known on each.

Bounds on a cell need only that curves do not fall; for named forms the sign of the slope, known on small cells, makes
them exact at an end. So no stretch between points of a grid is missed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchwright._check import FloatArray
from benchwright.ranking_game.forms import Curves, IntArray, PowerLawCurves

END = 1e-10  # width, relative to 1 + Delta, at which a cell is the end of an interval
CELLS_AT_ONCE = 1 << 18  # beyond this many open cells the rest is not decided
CELL_EDGES = 40  # of the first cells of a pair
UNSTABLE, OPEN = -1, 0


@dataclass(frozen=True, slots=True, eq=False)
class Leads:
    """k questions about level D: is v_other(D + its) >= v_who(D + own), for own between ``least`` and ``most``?"""

    who: IntArray
    least: FloatArray
    most: FloatArray
    other: IntArray
    its: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """Cells (m,) of D on which the answer to ``which`` is not surely yes: ``verdict`` is UNSTABLE (no) or OPEN."""

    low: FloatArray
    high: FloatArray
    verdict: IntArray
    which: IntArray


def settle(curves: Curves, asked: Leads, top: float, *, limit: int = CELLS_AT_ONCE) -> Cells:
    """Return the cells of [0, top] on which the answer is no, or open once ``limit`` cells are."""
    edges = np.concatenate([[0.0], np.geomspace(min(1e-2, top / 2), top, CELL_EDGES)])
    which = np.repeat(np.arange(asked.who.size), edges.size - 1)
    low, high = np.tile(edges[:-1], asked.who.size), np.tile(edges[1:], asked.who.size)
    kept = [(low[:0], low[:0], which[:0], which[:0])]
    while which.size:
        positive = _bound(curves, asked, which, asked.most, low, high, least=True) >= 0
        negative = _bound(curves, asked, which, asked.least, low, high, least=False) < 0
        small = high - low <= END * (1 + high)
        done = ~positive & (negative | small)
        verdict = np.where(negative, UNSTABLE, OPEN)
        if which.size > limit + CELL_EDGES * asked.who.size:  # too many to go on: what is left is not decided
            done = ~positive
        kept.append((low[done], high[done], verdict[done], which[done]))
        cut = ~positive & ~done
        which, a, b = which[cut], low[cut], high[cut]
        middle = np.where(a > 0, np.sqrt(np.maximum(a, 1e-300)) * np.sqrt(b), b / 2)
        middle = np.where((b < 2 * a) | (middle <= a) | (middle >= b), (a + b) / 2, middle)
        low, high = np.concatenate([a, middle]), np.concatenate([middle, b])
        which = np.concatenate([which, which])
    return Cells(*(np.concatenate(parts) for parts in zip(*kept, strict=True)))


def settle_together(curves: Sequence[PowerLawCurves], asked: Sequence[Leads], top: float) -> list[Cells]:
    """Return what ``settle`` finds for each of several games' curves, in one go."""
    sizes, counts = [one.alpha.size for one in curves], [one.who.size for one in asked]
    first = np.repeat(np.cumsum([0, *sizes[:-1]]), counts)
    pool = PowerLawCurves(
        *(np.concatenate([getattr(one, name) for one in curves]) for name in ("alpha", "beta", "lower", "upper"))
    )
    who, least, most, other, its = (
        np.concatenate([getattr(one, name) for one in asked]) for name in ("who", "least", "most", "other", "its")
    )
    cells = settle(pool, Leads(who + first, least, most, other + first, its), top)
    cuts = np.cumsum([0, *counts])
    game = np.searchsorted(cuts, cells.which, side="right") - 1
    order = np.argsort(game, kind="stable")
    ends = np.searchsorted(game[order], np.arange(len(curves) + 1))
    found = []
    for k, start in enumerate(cuts[:-1]):
        mine = order[ends[k] : ends[k + 1]]
        found.append(Cells(cells.low[mine], cells.high[mine], cells.verdict[mine], cells.which[mine] - start))
    return found


def _bound(
    curves: Curves,
    asked: Leads,
    which: IntArray,
    efforts: FloatArray,
    low: FloatArray,
    high: FloatArray,
    *,
    least: bool,
) -> FloatArray:
    """A lower or an upper bound, on each cell, of a quantity with the sign of v_other(D + its) - v_who(D + own).

    Where it only rises or only falls it is that at one end; else the two curves stand at opposite ends.
    """
    who, other, its, own = asked.who[which], asked.other[which], asked.its[which], efforts[which]
    drift = curves.drift(who, own, other, its, low, high)
    first, last = (low, high) if least else (high, low)
    its_delta = np.where(drift < 0, last, first)
    own_delta = np.where(drift == 0, last, its_delta)
    delta = np.minimum(its_delta, own_delta)
    bracket = curves.lead(other, its + (its_delta - delta), who, own + (own_delta - delta), delta)
    return bracket[0 if least else 1]
