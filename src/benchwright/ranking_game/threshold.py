"""How much common tuning makes a ranking stable: the levels Delta at which no jump pays, and the least that suffices.

With b_ij the greatest effort that costs developer i at most the reward gap R_j - R_i > 0, level Delta is stable exactly
if

    v_j(Delta + e0) - v_i(Delta + b_ij) >= 0    for all pairs j < i,

the criterion of ``equilibrium`` with the cost inverted in place of the curve: then there is a pure equilibrium, and it
publishes the order of capability, up to ranks of equal reward. (Where i scores above j for free, the left side is below
0.) Each pair's range of Delta is cut into cells until bounds settle the sign on each (``cells``), so no interval is
missed between points of a grid. Ends are found to a relative 1e-10.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from benchwright._check import FloatArray, non_negative
from benchwright._json import json_safe
from benchwright._shown import Headline, Shown, ShownPart
from benchwright.errors import UsageError
from benchwright.ranking_game import _intervals as intervals
from benchwright.ranking_game.cells import (
    CELL_EDGES,
    END,
    OPEN,
    UNSTABLE,
    Cells,
    Leads,
    settle,
    settle_together,
)
from benchwright.ranking_game.costs import PowerCosts
from benchwright.ranking_game.forms import IntArray, PowerLawCurves, TranslationCurves
from benchwright.ranking_game.game import RankingGame
from benchwright.ranking_game.jumps import scan

if TYPE_CHECKING:
    import polars as pl

Status = Literal["stable_everywhere", "found", "none_proved", "none_up_to_max", "undecided"]
CELLS_OF_BOUND = 1 << 12
CELLS_TOGETHER = 1 << 17  # first cells of several games that are cut in one go
ROUNDING = 1e-14  # of a budget, relative
LEVELS_OF_BOUND = 40
BOUND_WIDTH = 1e-6  # of a bound, relative to its first guess


@dataclass(frozen=True, slots=True)
class Threshold(Shown):
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
        Where scores at free effort do not surely follow the order of capability: what C1 rules out. Such levels are
        not stable, unless only ranks of equal reward are out of order.
    binding_pair : (developer, over) or None
        Positions of the pair whose jump pays just below Delta*, or at delta_max where that is not stable.
    interval_ends : tuple of (delta, developer, over)
        The pair that turns at each end of a stable interval inside the range.
    margin_bound : float, reward
        Where nothing is stable: the least margin c - gap over all pairs is at most this, at every level searched.
        NaN where it was not searched, as by ``benchwright game`` with more than 100 models.
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

    def _told(self) -> Iterable[ShownPart]:
        found = f"Delta* = {self.delta:.6g}" if np.isfinite(self.delta) else "no Delta*"
        yield Headline(f"Tune-before-test threshold on [0, {self.delta_max:g}]: {self.status}, {found}: {self.reason}")
        yield f"  stable: {_spans(self.stable_intervals) or 'none'}"
        if self.undecided_intervals:
            yield f"  not decided: {_spans(self.undecided_intervals)}"
        if self.crossed_intervals:
            yield f"  scores do not follow capability, against C1: {_spans(self.crossed_intervals)}"

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
    return next(thresholds([game], delta_max=delta_max, bound=bound))


def thresholds(games: Sequence[RankingGame], *, delta_max: float = 1e5, bound: bool = True) -> Iterator[Threshold]:
    """Yield the threshold of each game; games of power-law curves are searched together, which is faster."""
    top = non_negative("delta_max", delta_max)
    if top == 0:
        raise UsageError("`delta_max` must be > 0, got 0")
    done = 0
    while done < len(games):
        pairs = _pairs(games[done])
        last = done + 1
        if all(isinstance(game.curves, PowerLawCurves) for game in games):
            last = min(len(games), done + max(1, CELLS_TOGETHER // (CELL_EDGES * max(1, pairs.who.size))))
        yield from _block(games[done:last], top, bound)
        done = last


def _block(games: Sequence[RankingGame], top: float, bound: bool) -> list[Threshold]:
    """The thresholds of games whose cells are cut together."""
    plain = [_without_search(game, top) for game in games]
    left = [game for game, found in zip(games, plain, strict=True) if found is None]
    asked = [part for game in left for part in (_jumps_asked(game, _pairs(game)), _order_asked(game))]
    curves = [game.curves for game in left for _ in range(2)]
    law = [one for one in curves if isinstance(one, PowerLawCurves)]
    if left and len(law) == len(curves):
        cells = settle_together(law, asked, top)
    else:
        cells = [settle(one, part, top) for one, part in zip(curves, asked, strict=True)]
    searched = iter([_judged(game, top, *cells[2 * k : 2 * k + 2], bound=bound) for k, game in enumerate(left)])
    return [next(searched) if found is None else found for found in plain]


def _without_search(game: RankingGame, top: float) -> Threshold | None:
    """The answer where no level needs to be looked at."""
    if np.ptp(game.costs.free) > 0:
        return _nothing(game, top, "not decided by the criterion: free effort differs between developers")
    if game.ties == "shared" and not game.curves.strict:
        return _nothing(
            game, top, "not decided by the criterion: shared ties, and curves not known to increase strictly"
        )
    if game.rewards[0] == game.rewards[-1]:
        return _everywhere(game, top, "no two ranks differ in reward")
    return None


def _judged(game: RankingGame, top: float, cells: Cells, disorder: Cells, *, bound: bool) -> Threshold:
    """The threshold from the cells on which some jump pays, or scores leave the order of capability."""
    pairs = _pairs(game)
    low, high, verdict = cells.low, cells.high, cells.verdict
    crossed = intervals.merged(disorder.low, disorder.high)
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
    marks = tuple((x, *_turning(pairs, cells, x)) for span in spans for x in span if 0 < x < top)
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
        pair = _turning(pairs, cells, start)
        reason = f"below it {game.name(pair[0])} overtakes {game.name(pair[1])} with profit"
        return _result(common, "found", start, pair, reason)
    pair = _turning(pairs, cells, top)
    whole = not spans and not undecided
    if whole and bound:
        common["margin_bound"] = _margin_bound(game, pairs, cells, top)
    told = f"{game.name(pair[0])} overtakes {game.name(pair[1])} with profit"
    if whole and isinstance(game.curves, TranslationCurves):
        return _result(common, "none_proved", np.nan, pair, f"{told} at every level, however large")
    return _result(common, "none_up_to_max", np.nan, pair, f"{told} at {top:g}")


def _spans(spans: Sequence[tuple[float, float]]) -> str:
    return ", ".join(f"[{low:.6g}, {high:.6g}]" for low, high in spans)


@dataclass(frozen=True, slots=True, eq=False)
class _Pairs:
    """Pairs with a reward gap: the weaker developer, the stronger, the gap (k,)."""

    who: IntArray
    other: IntArray
    gap: FloatArray

    def only(self, some: Any) -> _Pairs:
        return _Pairs(self.who[some], self.other[some], self.gap[some])


def _pairs(game: RankingGame) -> _Pairs:
    lower, upper = np.tril_indices(game.n, -1)
    gap = game.rewards[upper] - game.rewards[lower]
    kept, order = gap > 0, game.order
    return _Pairs(order[lower[kept]], order[upper[kept]], gap[kept])


def _jumps_asked(game: RankingGame, pairs: _Pairs, *, raised: float = 0.0) -> Leads:
    """Whether jumps do not pay; with ``raised``, added to all gaps, whether the margin is at least that."""
    budget = game.costs.budget(pairs.who, pairs.gap + raised)
    least, most = budget * (1 - ROUNDING), budget * (1 + ROUNDING)
    return Leads(pairs.who, least, most, pairs.other, game.costs.free[pairs.other])


def _order_asked(game: RankingGame) -> Leads:
    """Whether neighbours' scores at free effort follow the order of capability; asked of power laws only."""
    order = game.order if isinstance(game.curves, PowerLawCurves) else game.order[:0]
    free, who, other = game.costs.free, order[1:], order[:-1]
    return Leads(who, free[who], free[who], other, free[other])


def _turning(pairs: _Pairs, cells: Cells, at: float) -> tuple[int, int]:
    """The pair that is unstable nearest to a level."""
    bad = np.flatnonzero(cells.verdict == UNSTABLE)
    away = np.maximum(np.maximum(cells.low[bad] - at, at - cells.high[bad]), 0.0)
    k = cells.which[bad[int(away.argmin())]]
    return int(pairs.who[k]), int(pairs.other[k])


def _margin_bound(game: RankingGame, pairs: _Pairs, cells: Cells, top: float) -> float:
    """A bound of the least margin at every level, where none is stable: the least one that can be shown.

    At some level the least margin is the greatest found on a few levels; from there the bound is closed in by halving.
    """
    if isinstance(game.curves, TranslationCurves):  # the margin does not depend on the level
        return scan(game, game.order, game.costs.free).binding.margin
    levels = np.concatenate([[0.0], np.geomspace(min(1e-2, top / 2), top, LEVELS_OF_BOUND)])[:, None]
    needed, _ = game.curves.overtake(pairs.who, pairs.other, game.costs.free[pairs.other], levels)
    margin = game.costs.cost(pairs.who, needed) - pairs.gap
    bad = cells.verdict == UNSTABLE
    alone = [k for k in np.unique(cells.which) if _covers(cells, bad & (cells.which == k), top)]
    if alone:  # one pair that pays at all levels bounds the margin, and is quicker
        k = min(alone, key=lambda pair: float(margin[:, pair].max()))
        pairs, margin = pairs.only([k]), margin[:, [k]]
    least, most = float(margin.min(axis=1).max()), 0.0
    width = BOUND_WIDTH * abs(least)
    tried = least + width
    while most - least > width:
        some = pairs.only(pairs.gap + tried > 0)  # the others' margins are never below
        found = settle(game.curves, _jumps_asked(game, some, raised=tried), top, limit=CELLS_OF_BOUND)
        if _covers(found, found.verdict == UNSTABLE, top):
            most = tried
        else:
            least = tried
        tried = (least + most) / 2
    return most


def _covers(cells: Cells, chosen: NDArray[np.bool_], top: float) -> bool:
    """Whether the chosen cells leave nothing of [0, top] out."""
    union = intervals.merged(cells.low[chosen], cells.high[chosen])
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
