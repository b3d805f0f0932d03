"""How much common tuning makes a ranking stable: the levels Delta at which no jump pays, and the least that suffices.

With b_ij the greatest effort that costs developer i at most the reward gap R_j - R_i > 0, level Delta is stable exactly
if

    v_j(Delta + e0) - v_i(Delta + b_ij) >= 0    for all pairs j < i,

the criterion of ``equilibrium`` with the cost inverted in place of the curve: then there is a pure equilibrium, and it
publishes the order of capability. (Where i scores above j for free, the left side is below 0.) Each pair's range of
Delta is cut into cells until bounds settle the sign on each, so no interval is missed between points of a grid: curves
do not fall, and for named forms the sign of the slope is known on small cells. Ends are found to a relative 1e-10.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from benchwright._check import FloatArray, non_negative
from benchwright._json import json_safe
from benchwright.errors import UsageError
from benchwright.ranking_game import _intervals as intervals
from benchwright.ranking_game.costs import PowerCosts
from benchwright.ranking_game.forms import IntArray, PowerLawCurves, TranslationCurves
from benchwright.ranking_game.game import RankingGame
from benchwright.ranking_game.jumps import scan

if TYPE_CHECKING:
    import polars as pl

Status = Literal["stable_everywhere", "found", "none_proved", "none_up_to_max", "undecided"]
END = 1e-10  # width, relative to 1 + Delta, at which a cell is the end of an interval
CELLS_AT_ONCE = 1 << 18  # beyond this many open cells the rest is not decided
CELLS_OF_BOUND = 1 << 12
CELL_EDGES = 40  # of the first cells of a pair
ROUNDING = 1e-14  # of a budget, relative
BOUND_HALVINGS = 30
STABLE, UNSTABLE, OPEN = 1, -1, 0


@dataclass(frozen=True, slots=True)
class Threshold:
    """The stable levels on [0, delta_max] and the threshold Delta*.

    Attributes
    ----------
    status : str
        "stable_everywhere": all of [0, delta_max]. "found": Delta* = inf{D : stable on [D, delta_max]} is ``delta``.
        "none_proved": no level at all is stable, beyond delta_max either. "none_up_to_max": delta_max is not stable.
        "undecided": what decides it could not be settled, see ``undecided_intervals`` and ``reason``.
    delta : float, effort
        Delta*; 0 where stable everywhere, NaN where there is none.
    stable_intervals, undecided_intervals : tuple of (low, high)
        What is neither is unstable.
    crossed_intervals : tuple of (low, high)
        Where scores at free effort do not surely follow the order of capability: what C1 rules out.
    binding_pair : (developer, over) or None
        Positions of the pair whose jump pays just below Delta*, or at delta_max where that is not stable.
    interval_ends : tuple of (delta, developer, over)
        The pair that turns at each end of a stable interval inside the range.
    margin_bound : float, reward
        Where nothing is stable: the least margin c - gap over all pairs is at most this, at every level searched.
    growth_exponent : float
        beta_j / beta_i of the binding pair of power-law curves with the same bounds: its required effort grows like
        Delta to this power. NaN elsewhere.
    growth_law_level : float, effort
        Sufficient level by the growth law, for a linear cost and such curves in one order of alpha and beta; else NaN.
    """

    game: RankingGame
    status: Status
    delta: float
    stable_intervals: tuple[tuple[float, float], ...]
    undecided_intervals: tuple[tuple[float, float], ...]
    crossed_intervals: tuple[tuple[float, float], ...]
    binding_pair: tuple[int, int] | None
    interval_ends: tuple[tuple[float, int, int], ...]
    margin_bound: float
    growth_exponent: float
    growth_law_level: float
    delta_max: float
    reason: str

    def __str__(self) -> str:
        spans = ", ".join(f"[{low:.6g}, {high:.6g}]" for low, high in self.stable_intervals) or "none"
        found = f"Delta* = {self.delta:.6g}" if np.isfinite(self.delta) else "no Delta*"
        lines = [f"Tune-before-test threshold on [0, {self.delta_max:g}]: {self.status}, {found}: {self.reason}"]
        lines.append(f"  stable: {spans}")
        if self.undecided_intervals:
            spans = ", ".join(f"[{low:.6g}, {high:.6g}]" for low, high in self.undecided_intervals)
            lines.append(f"  not decided: {spans}")
        if self.crossed_intervals:
            spans = ", ".join(f"[{low:.6g}, {high:.6g}]" for low, high in self.crossed_intervals)
            lines.append(f"  scores do not follow capability, against C1: {spans}")
        return "\n".join(lines)

    def to_frame(self) -> pl.DataFrame:
        """One row a stable or undecided interval: low, high, stable (null where not decided)."""
        import polars as pl

        rows = [(*span, True) for span in self.stable_intervals] + [(*span, None) for span in self.undecided_intervals]
        return pl.DataFrame(rows, schema={"low": pl.Float64, "high": pl.Float64, "stable": pl.Boolean}, orient="row")

    def to_dict(self) -> dict[str, Any]:
        """All fields, in types that JSON knows; null where there is none."""
        name, pair = self.game.name, self.binding_pair
        record = {
            "status": self.status,
            "delta": self.delta,
            "stable_intervals": self.stable_intervals,
            "binding_pair": None if pair is None else {"developer": name(pair[0]), "over": name(pair[1])},
            "margin_bound": self.margin_bound,
            "undecided_intervals": self.undecided_intervals,
            "crossed_intervals": self.crossed_intervals,
            "interval_ends": [{"delta": at, "developer": name(i), "over": name(j)} for at, i, j in self.interval_ends],
            "growth_exponent": self.growth_exponent,
            "growth_law_level": self.growth_law_level,
            "delta_max": self.delta_max,
            "reason": self.reason,
        }
        return {key: json_safe(value) for key, value in record.items()}


def threshold(game: RankingGame, *, delta_max: float = 1e5, bound: bool = True) -> Threshold:
    """Return the stable levels of tune-before-test on [0, delta_max] and the threshold Delta*.

    ``game.tune_before_test`` is not used. Needs one free effort for all developers. Without ``bound``, ``margin_bound``
    is NaN: where nothing is stable, it takes most of the time.

    Examples
    --------
    >>> from benchwright.ranking_game.forms import PowerLawCurves
    >>> game = RankingGame(PowerLawCurves([0.6931471805599453, 0.0]), [2.0, 0.0], names=("a", "b"))
    >>> print(threshold(game, delta_max=100.0))
    Tune-before-test threshold on [0, 100]: found, Delta* = 1: below it b overtakes a with profit
      stable: [1, 100]
    """
    top = non_negative("delta_max", delta_max)
    if top == 0:
        raise UsageError("`delta_max` must be > 0, got 0")
    pairs = _pairs(game)
    free = game.costs.free
    if np.ptp(free) > 0:
        return _nothing(game, top, "not decided by the criterion: free effort differs between developers")
    if game.ties == "shared" and not game.curves.strict:
        return _nothing(
            game, top, "not decided by the criterion: shared ties, and curves not known to increase strictly"
        )
    if not pairs.who.size:
        return _everywhere(game, top, "no two ranks differ in reward")
    low, high, verdict, which = _cells(game, pairs, top)
    crossed = _crossings(game, top)
    unstable = intervals.merged(low[verdict == UNSTABLE], high[verdict == UNSTABLE])
    still_open = intervals.without(intervals.merged(low[verdict == OPEN], high[verdict == OPEN]), unstable)
    ends, wide = intervals.split_ends(still_open, unstable, 100 * END)
    stable = intervals.without(intervals.without(np.array([[0.0, top]]), unstable), intervals.union(ends, wide))
    stable = intervals.grown(stable, ends)
    spans = tuple((float(a), float(b)) for a, b in stable)
    undecided = tuple((float(a), float(b)) for a, b in wide)
    common = {"game": game, "stable_intervals": spans, "undecided_intervals": undecided, "delta_max": top}
    common["crossed_intervals"] = tuple((float(a), float(b)) for a, b in crossed)
    common |= {"margin_bound": np.nan, "growth_law_level": _growth_law(game, pairs)}
    marks = tuple((x, *_turning(pairs, low, high, verdict, which, x)) for span in spans for x in span if 0 < x < top)
    common["interval_ends"] = marks
    if any(b >= top for _, b in undecided):
        reason = "bounds or double precision leave the end of the range open"
        return _result(common, "undecided", np.nan, None, reason)
    if spans and spans[-1][1] >= top:
        start = spans[-1][0]
        if start == 0:
            proved = " and, by the form, at every level" if isinstance(game.curves, TranslationCurves) else ""
            return _result(common, "stable_everywhere", 0.0, None, f"no jump pays at any level searched{proved}")
        if any(abs(b - start) <= 2 * END * (1 + start) for _, b in undecided):
            reason = f"stable from {start:g} on, but the levels just below are not decided"
            return _result(common, "undecided", np.nan, None, reason)
        pair = _turning(pairs, low, high, verdict, which, start)
        reason = f"below it {game.name(pair[0])} overtakes {game.name(pair[1])} with profit"
        return _result(common, "found", start, pair, reason)
    pair = _turning(pairs, low, high, verdict, which, top)
    whole = not spans and not undecided
    if whole and bound:
        common["margin_bound"] = _margin_bound(game, pairs, top)
    told = f"{game.name(pair[0])} overtakes {game.name(pair[1])} with profit"
    if whole and isinstance(game.curves, TranslationCurves):
        return _result(common, "none_proved", np.nan, pair, f"{told} at every level, however large")
    return _result(common, "none_up_to_max", np.nan, pair, f"{told} at {top:g}")


@dataclass(frozen=True, slots=True, eq=False)
class _Pairs:
    """Pairs with a reward gap: the weaker developer, the stronger, the gap (k,)."""

    who: IntArray
    other: IntArray
    gap: FloatArray


def _pairs(game: RankingGame) -> _Pairs:
    lower, upper = np.tril_indices(game.n, -1)
    gap = game.rewards[upper] - game.rewards[lower]
    kept, order = gap > 0, game.order
    return _Pairs(order[lower[kept]], order[upper[kept]], gap[kept])


@dataclass(frozen=True, slots=True, eq=False)
class _CellsOf:
    """One cell of Delta for each of several pairs."""

    game: RankingGame
    who: IntArray
    other: IntArray
    its: FloatArray
    low: FloatArray
    high: FloatArray

    def lead(self, own: FloatArray, *, least: bool) -> FloatArray:
        """A lower or an upper bound, on the cell, of a quantity with the sign of v_other(D + its) - v_who(D + own).

        Where it only rises or only falls it is that at one end; else the two curves stand at opposite ends.
        """
        curves = self.game.curves
        drift = curves.drift(self.who, own, self.other, self.its, self.low, self.high)
        first, last = (self.low, self.high) if least else (self.high, self.low)
        its_delta = np.where(drift < 0, last, first)
        own_delta = np.where(drift == 0, last, its_delta)
        delta = np.minimum(its_delta, own_delta)
        return curves.lead(self.other, self.its + (its_delta - delta), self.who, own + (own_delta - delta), delta)[
            0 if least else 1
        ]


def _cells(
    game: RankingGame, pairs: _Pairs, top: float, *, raised: float = 0.0, limit: int = CELLS_AT_ONCE
) -> tuple[FloatArray, FloatArray, IntArray, IntArray]:
    """Cut [0, top] of each pair until the sign is known: low, high, verdict and pair of each cell that is not stable.

    ``raised`` is added to all gaps: a level is then stable where the margin is at least that.
    """
    amount = pairs.gap + raised
    budget = game.costs.budget(pairs.who, amount)
    least, most = budget * (1 - ROUNDING), budget * (1 + ROUNDING)
    free = game.costs.free[pairs.other]
    return _settle(game, pairs.who, least, most, pairs.other, free, top, limit)


def _settle(
    game: RankingGame,
    who: IntArray,
    least: FloatArray,
    most: FloatArray,
    other: IntArray,
    its: FloatArray,
    top: float,
    limit: int = CELLS_AT_ONCE,
) -> tuple[FloatArray, FloatArray, IntArray, IntArray]:
    """Cells on which v_other(Delta + its) - v_who(Delta + b) is not surely positive, b from ``least`` to ``most``."""
    edges = np.concatenate([[0.0], np.geomspace(min(1e-2, top / 2), top, CELL_EDGES)])
    which = np.repeat(np.arange(who.size), edges.size - 1)
    low, high = np.tile(edges[:-1], who.size), np.tile(edges[1:], who.size)
    kept: list[tuple[FloatArray, FloatArray, IntArray, IntArray]] = []
    while which.size:
        cells = _CellsOf(game, who[which], other[which], its[which], low, high)
        positive = cells.lead(most[which], least=True) >= 0
        negative = cells.lead(least[which], least=False) < 0
        small = high - low <= END * (1 + high)
        done = ~positive & (negative | small)
        verdict = np.where(negative, UNSTABLE, OPEN)
        if which.size > limit + CELL_EDGES * who.size:  # too many to go on: what is left is not decided
            done = ~positive
        kept.append((low[done], high[done], verdict[done], which[done]))
        cut = ~positive & ~done
        which, a, b = which[cut], low[cut], high[cut]
        middle = np.where(a > 0, np.sqrt(np.maximum(a, 1e-300)) * np.sqrt(b), b / 2)
        middle = np.where((b < 2 * a) | (middle <= a) | (middle >= b), (a + b) / 2, middle)
        low, high = np.concatenate([a, middle]), np.concatenate([middle, b])
        which = np.concatenate([which, which])
    joined = [np.concatenate(parts) for parts in zip(*kept, strict=True)]
    return joined[0], joined[1], joined[2], joined[3]


def _crossings(game: RankingGame, top: float) -> FloatArray:
    """Where neighbours' scores at free effort do not surely follow the order of capability (k, 2)."""
    if not isinstance(game.curves, PowerLawCurves):
        return np.empty((0, 2))
    order, free = game.order, game.costs.free
    who, other = order[1:], order[:-1]
    low, high, _, _ = _settle(game, who, free[who], free[who], other, free[other], top)
    return intervals.merged(low, high)


def _turning(
    pairs: _Pairs, low: FloatArray, high: FloatArray, verdict: IntArray, which: IntArray, at: float
) -> tuple[int, int]:
    """The pair that is unstable nearest to a level."""
    bad = np.flatnonzero(verdict == UNSTABLE)
    away = np.maximum(np.maximum(low[bad] - at, at - high[bad]), 0.0)
    k = which[bad[int(away.argmin())]]
    return int(pairs.who[k]), int(pairs.other[k])


def _margin_bound(game: RankingGame, pairs: _Pairs, top: float) -> float:
    """A bound of the least margin at every level, where none is stable: the least one that can be shown, by halving."""
    if isinstance(game.curves, TranslationCurves):  # the margin does not depend on the level
        return scan(game, game.order, game.costs.free).binding.margin
    least, most = -float(pairs.gap.min()), 0.0
    low, high, verdict, which = _cells(game, pairs, top)
    bad = verdict == UNSTABLE
    alone = [k for k in np.unique(which) if _covers(low, high, bad & (which == k), top)]
    if alone:  # one pair that pays at all levels bounds the margin, and is quicker
        k = max(alone, key=lambda pair: float(pairs.gap[pair]))
        pairs = _Pairs(pairs.who[[k]], pairs.other[[k]], pairs.gap[[k]])
        least = -float(pairs.gap[0])
    for _ in range(BOUND_HALVINGS):
        middle = (least + most) / 2
        low, high, verdict, _ = _cells(game, pairs, top, raised=middle, limit=CELLS_OF_BOUND)
        if _covers(low, high, verdict == UNSTABLE, top):
            most = middle
        else:
            least = middle
    return most


def _covers(low: FloatArray, high: FloatArray, chosen: NDArray[np.bool_], top: float) -> bool:
    """Whether the chosen cells leave nothing of [0, top] out."""
    union = intervals.merged(low[chosen], high[chosen])
    return union.shape == (1, 2) and float(union[0, 0]) <= 0 and float(union[0, 1]) >= top


def _growth_law(game: RankingGame, pairs: _Pairs) -> float:
    """max(0, lambda^gamma - 1), the greatest over pairs, where the growth law's conditions hold for all; else NaN."""
    curves, costs = game.curves, game.costs
    if not isinstance(curves, PowerLawCurves) or not isinstance(costs, PowerCosts):
        return np.nan
    alike = np.ptp(curves.lower) == 0 and np.ptp(curves.upper) == 0
    linear = bool((costs.exponent == 1).all() and (costs.free == 0).all())
    i, j = pairs.who, pairs.other
    if not alike or not linear or (curves.alpha[j] <= curves.alpha[i]).any() or (curves.beta[j] < curves.beta[i]).any():
        return np.nan
    required = np.expm1((curves.alpha[j] - curves.alpha[i]) / curves.beta[i])
    ratio = pairs.gap / (costs.kappa[i] * required)
    return float(np.maximum(ratio ** (curves.beta[i] / curves.beta[j]) - 1, 0.0).max())


def _exponent(game: RankingGame, pair: tuple[int, int] | None) -> float:
    curves = game.curves
    if pair is None or not isinstance(curves, PowerLawCurves):
        return np.nan
    i, j = pair
    alike = curves.lower[i] == curves.lower[j] and curves.upper[i] == curves.upper[j]
    return float(curves.beta[j] / curves.beta[i]) if alike else np.nan


def _result(
    common: dict[str, Any], status: Status, delta: float, pair: tuple[int, int] | None, reason: str
) -> Threshold:
    exponent = _exponent(common["game"], pair)
    return Threshold(status=status, delta=delta, binding_pair=pair, growth_exponent=exponent, reason=reason, **common)


def _empty(game: RankingGame, top: float) -> dict[str, Any]:
    numbers = {"margin_bound": np.nan, "growth_law_level": np.nan, "delta_max": top}
    names = ("stable_intervals", "undecided_intervals", "crossed_intervals", "interval_ends")
    return {"game": game} | dict.fromkeys(names, ()) | numbers


def _nothing(game: RankingGame, top: float, reason: str) -> Threshold:
    return _result(_empty(game, top) | {"undecided_intervals": ((0.0, top),)}, "undecided", np.nan, None, reason)


def _everywhere(game: RankingGame, top: float, reason: str) -> Threshold:
    return _result(_empty(game, top) | {"stable_intervals": ((0.0, top),)}, "stable_everywhere", 0.0, None, reason)
