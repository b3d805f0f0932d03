"""What common tuning does to a ranking: the effort to overtake, by level Delta, and the designer's bill.

At Delta developers are ordered by score at Delta + free effort. Of all jumps of one developer that over its neighbour
above is the cheapest, so the least required effort over neighbours is the least over all pairs.

Intervals come from draws of the curves, each a possible world with an order of its own. The least of many noisy
efforts is smaller than the least in truth, and the least within each draw smaller again: with ten alike developers the
percentiles of the draws' minimum lay below the truth in all of 60 simulated tables. So the interval of the least effort
is put together from the intervals of pairs (``_tuning.least_interval``). Of nominal 95 % it held the truth in 92 to 100
% of 60 tables each at levels 0, 10, 100, 1,000 and 4,000, for four apart, six like Pythia on GSM8K and ten alike
developers (13 steps, 1,319 items, 200 draws).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from benchwright._check import FloatArray, finite_array, non_negative
from benchwright._json import json_safe
from benchwright._shown import Headline, Shown, ShownPart, ShownTable
from benchwright._words import percent
from benchwright.errors import UsageError
from benchwright.ranking_game import _tuning as numbers
from benchwright.ranking_game.forms import IntArray, PowerLawCurves
from benchwright.ranking_game.game import RankingGame
from benchwright.ranking_game.jumps import Jump, Jumps, jump_of

if TYPE_CHECKING:
    import polars as pl

LEVEL = 0.95
ENTRIES_AT_ONCE = 1 << 23
EVEN = 1e-8  # relative margin within which an overtake breaks even: thresholds are found to 1e-10 of the level


@dataclass(frozen=True, slots=True, eq=False)
class RequiredEffort(Shown):
    """The least effort that overtakes somebody, at D levels of tuning.

    Attributes
    ----------
    deltas : (D,) effort
    effort : (D,) effort
        Least required effort over neighbours; inf where nobody is in reach, NaN where double precision cannot tell.
    developer, over : (D,) positions
        The pair that attains it.
    median : (D,) effort
        Median over neighbours.
    order : (D, n) positions
        By score at Delta + free effort, best first.
    required : (D, n - 1) effort
        Of the developer at places 2..n to overtake its neighbour above.
    growth : float
        Slope of log effort over log(1 + Delta), by least squares; ``growth_band`` over draws.
    slopes_ratio : float
        beta_over / beta_developer of the pair at the highest level: the slope that its required effort tends to under
        common bounds. NaN for other curves or bounds.
    band : (D, 2) effort
        Interval of the least effort in truth, whichever pair attains it.
    pair_band : (D, 2) effort
        Percentile interval of the effort with which ``developer`` overtakes ``over``; 0 where it is ahead in the draw.
    share_below : (D,) share of draws
        In which the least effort is below ``effort``: above one half, noise makes pairs look closer than they are.
    level : float
    draws : int
    """

    game: RankingGame
    deltas: FloatArray
    effort: FloatArray
    developer: IntArray
    over: IntArray
    median: FloatArray
    order: IntArray
    required: FloatArray
    growth: float
    growth_band: FloatArray
    slopes_ratio: float
    band: FloatArray
    pair_band: FloatArray
    share_below: FloatArray
    level: float
    draws: int

    def _told(self) -> Iterable[ShownPart]:
        name = self.game.name
        yield Headline("Least effort to overtake anybody, by level of common tuning")
        heads = ["level", "effort", "developer", "over", "median over neighbours"]
        rows = [
            [
                f"{delta:g}",
                f"{self.effort[d]:.4g}",
                name(int(self.developer[d])),
                name(int(self.over[d])),
                f"{self.median[d]:.4g}",
                *([self._span(self.band[d]), self._span(self.pair_band[d])] if self.draws else []),
            ]
            for d, delta in enumerate(self.deltas)
        ]
        yield ShownTable([*heads, *(["least in draws", "this pair"] if self.draws else [])], rows)
        grows = f"  grows like (1 + Delta)^{self.growth:.3g}"
        if self.draws:
            grows += f" ({self._span(self.growth_band)} in draws)"
        if np.isfinite(self.slopes_ratio):
            grows += f"; ratio of slopes of the pair at the highest level {self.slopes_ratio:.3g}"
        yield grows
        if self.draws:
            yield f"  intervals of {percent(self.level)} from {self.draws} draws"

    @staticmethod
    def _span(ends: FloatArray) -> str:
        return f"{ends[0]:.4g} to {ends[1]:.4g}"

    def to_frame(self) -> pl.DataFrame:
        """One row a level; null where out of reach or not known."""
        import polars as pl

        columns = {
            "delta": self.deltas,
            "required_effort": self.effort,
            "developer": [self.game.name(int(i)) for i in self.developer],
            "over": [self.game.name(int(i)) for i in self.over],
            "median": self.median,
            "low": self.band[:, 0],
            "high": self.band[:, 1],
            "pair_low": self.pair_band[:, 0],
            "pair_high": self.pair_band[:, 1],
            "share_below": self.share_below,
        }
        return pl.DataFrame({key: known(value) for key, value in columns.items()})

    def neighbours(self) -> pl.DataFrame:
        """One row a level and place from 2: delta, rank, developer, over, required_effort."""
        import polars as pl

        n = self.order.shape[1]
        return pl.DataFrame(
            {
                "delta": np.repeat(self.deltas, n - 1),
                "rank": np.tile(np.arange(2, n + 1), self.deltas.size),
                "developer": [self.game.name(int(i)) for i in self.order[:, 1:].ravel()],
                "over": [self.game.name(int(i)) for i in self.order[:, :-1].ravel()],
                "required_effort": known(self.required.ravel()),
            }
        )

    def to_dict(self) -> dict[str, Any]:
        """The rows of ``to_frame`` under "levels", and growth, in types that JSON knows; null where out of reach."""
        record: dict[str, Any] = {"levels": self.to_frame().to_dicts(), "growth": self.growth}
        record |= {"growth_band": self.growth_band, "slopes_ratio": self.slopes_ratio}
        safe: dict[str, Any] = json_safe(record | {"level": self.level, "draws": self.draws})
        return safe


@dataclass(frozen=True, slots=True, eq=False)
class DesignerCost(Shown):
    """The designer's bill for tuning every model by ``delta``, beside the cheapest overtake.

    ``bill`` is models x delta x price, NaN without a price. ``untuned`` and ``tuned`` are the cheapest overtakes at
    level 0 and at ``delta``, whether they pay or not; cost inf where nobody is in reach.
    """

    game: RankingGame
    delta: float
    price: float
    bill: float
    untuned: Jump
    tuned: Jump

    def _told(self) -> Iterable[ShownPart]:
        n, name = self.game.n, self.game.name
        if np.isnan(self.bill):
            yield f"Tuning {n} models by {self.delta:g} takes {n * self.delta:g} of effort; no price is given"
        else:
            yield f"Tuning {n} models by {self.delta:g} at {self.price:g} costs {self.bill:g}"
        for jump, at in ((self.untuned, 0.0), (self.tuned, self.delta)):
            pays = {True: "pays", False: "does not pay", None: "breaks even, as far as can be told"}[jump.pays]
            yield (
                f"  cheapest overtake at {at:g}: {name(jump.developer)} over {name(jump.over)}, effort"
                f" {jump.required_effort:.4g}, cost {jump.cost:.4g} for a reward gap of {jump.reward_gap:g}: {pays}"
            )

    def to_dict(self) -> dict[str, Any]:
        """All fields, in types that JSON knows; null where there is none."""
        record = {"models": self.game.n, "delta": self.delta, "price": self.price, "bill": self.bill}
        jumps = {"untuned": self.untuned.to_dict(self.game), "tuned": self.tuned.to_dict(self.game)}
        return {key: json_safe(value) for key, value in record.items()} | jumps


def required_effort(
    game: RankingGame, deltas: Any, *, draws: Sequence[RankingGame] = (), level: float = LEVEL
) -> RequiredEffort:
    """Return the least effort with which anybody overtakes anybody, at each level of tuning.

    Parameters
    ----------
    game : RankingGame
        ``tune_before_test`` is not used.
    deltas : (D,) levels >= 0
    draws : sequence of RankingGame
        The game in bootstrap draws of its curves.
    level : float in (0, 1)
        Of the bands.

    Examples
    --------
    >>> from benchwright.ranking_game.forms import PowerLawCurves
    >>> game = RankingGame(PowerLawCurves([0.6931471805599453, 0.0]), [2.0, 0.0], names=("a", "b"))
    >>> print(required_effort(game, [0.0, 9.0, 99.0]))
    Least effort to overtake anybody, by level of common tuning
      level  effort  developer  over  median over neighbours
          0       1  b          a                          1
          9      10  b          a                         10
         99     100  b          a                        100
      grows like (1 + Delta)^1; ratio of slopes of the pair at the highest level 1
    """
    levels, share = levels_of(deltas), level_of(level)
    order = orders(game, levels)
    required = _neighbours(game, order, levels)
    at, effort = _least(required)
    rows = np.arange(levels.size)
    developer, over = order[rows, at + 1], order[rows, at]
    nothing = np.full((levels.size, 2), np.nan)
    band, pair_band, share_below = nothing, nothing, nothing[:, 0]
    growth_band = np.full(2, np.nan)
    if draws:
        least, fixed, band = _drawn(draws, levels, developer, over, share)
        pair_band = numbers.band(fixed, share)
        share_below = (least < effort).mean(axis=0)
        growths = numbers.growth(levels, least)
        if not np.isnan(growths).any():
            growth_band = numbers.band(growths, share)
    return RequiredEffort(
        game=game,
        deltas=levels,
        effort=effort,
        developer=developer,
        over=over,
        median=np.median(required, axis=1),
        order=order,
        required=required,
        growth=float(numbers.growth(levels, effort)),
        growth_band=growth_band,
        slopes_ratio=_slopes_ratio(game, int(developer[-1]), int(over[-1])),
        band=band,
        pair_band=pair_band,
        share_below=share_below,
        level=share,
        draws=len(draws),
    )


def designer_cost(game: RankingGame, delta: float, *, price: float | None = None) -> DesignerCost:
    """Return the bill for tuning all models by ``delta`` and the cheapest overtakes at 0 and at ``delta``.

    Parameters
    ----------
    game : RankingGame
    delta : float >= 0
        The threshold, or the level in force.
    price : float >= 0, optional
        Of a unit of effort on one model, in the unit of rewards.

    Examples
    --------
    >>> from benchwright.ranking_game.forms import PowerLawCurves
    >>> game = RankingGame(PowerLawCurves([0.6931471805599453, 0.0]), [2.0, 0.0], names=("a", "b"))
    >>> print(designer_cost(game, 3.0, price=0.5))
    Tuning 2 models by 3 at 0.5 costs 3
      cheapest overtake at 0: b over a, effort 1, cost 1 for a reward gap of 2: pays
      cheapest overtake at 3: b over a, effort 4, cost 4 for a reward gap of 2: does not pay
    """
    at = non_negative("delta", delta)
    each = np.nan if price is None else non_negative("price", price)
    return DesignerCost(game, at, each, game.n * at * each, _cheapest(game, 0.0), _cheapest(game, at))


def orders(game: RankingGame, deltas: FloatArray) -> IntArray:
    """Positions (D, n) by score at Delta + free effort, best first; the more capable first among equals."""
    key = game.curves.key(np.arange(game.n), deltas[:, None] + game.costs.free)
    return np.lexsort((np.broadcast_to(-game.curves.capability, key.shape), -key), axis=-1)


def jumps_at(game: RankingGame, who: IntArray, other: IntArray, deltas: Any, gap: Any = 0.0) -> Jumps:
    """Jumps of ``who`` over ``other``, who spends its free effort, at levels ``deltas``; all broadcast."""
    low, high = game.curves.overtake(who, other, game.costs.free[other], deltas)
    return Jumps(low, high, game.costs.cost(who, low), game.costs.cost(who, high), np.broadcast_to(gap, low.shape))


def _drawn(
    draws: Sequence[RankingGame], deltas: FloatArray, developer: IntArray, over: IntArray, level: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Least effort and that of the given pairs in each draw, both (B, D), and the interval (D, 2) of the least."""
    n = draws[0].n
    first, second = np.triu_indices(n, 1)
    place = np.zeros((n, n), dtype=np.intp)
    place[first, second] = place[second, first] = np.arange(first.size)
    sign = np.where(developer > over, 1.0, -1.0)
    least, fixed = np.empty((len(draws), deltas.size)), np.empty((len(draws), deltas.size))
    interval = np.empty((deltas.size, 2))
    rows = max(1, ENTRIES_AT_ONCE // (len(draws) * first.size))
    for start in range(0, deltas.size, rows):
        some = slice(start, start + rows)
        gaps = np.stack([_signed(game, first, second, deltas[some]) for game in draws])
        least[:, some] = np.abs(gaps).min(axis=2)
        at = place[developer[some], over[some]]
        fixed[:, some] = np.maximum(sign[some] * gaps[:, np.arange(at.size), at], 0.0)
        interval[some] = [numbers.least_interval(gaps[:, k], level) for k in range(at.size)]
    return least, fixed, interval


def _signed(game: RankingGame, first: IntArray, second: IntArray, deltas: FloatArray) -> FloatArray:
    """Effort (D, P) with which ``second`` overtakes ``first``, or less that of ``first`` where ``second`` is ahead."""
    there, back = (jumps_at(game, *pair, deltas[:, None]).required for pair in ((second, first), (first, second)))
    there = np.where(np.isnan(there), np.inf, there)
    return np.where(there > 0, there, -np.where(np.isnan(back), np.inf, back))


def _neighbours(game: RankingGame, order: IntArray, deltas: FloatArray) -> FloatArray:
    """Required efforts (D, n - 1) of neighbours."""
    return jumps_at(game, order[:, 1:], order[:, :-1], deltas[:, None]).required


def _least(required: FloatArray) -> tuple[IntArray, FloatArray]:
    """Where each row (D, k) is least, and the least value: NaN where any entry is NaN and none is 0."""
    at = np.where(np.isnan(required), np.inf, required).argmin(axis=1)
    least = required[np.arange(at.size), at]
    return at, np.where(np.isnan(required).any(axis=1) & (least > 0), np.nan, least)


def _cheapest(game: RankingGame, delta: float) -> Jump:
    """The overtake that costs least, of a neighbour; within rounding of a threshold it neither pays nor does not."""
    order, lower = orders(game, np.array([delta]))[0], np.arange(1, game.n)
    found = jumps_at(game, order[1:], order[:-1], delta, -np.diff(game.rewards))
    cost = np.where(np.isnan(found.cost), found.cost_low, found.cost)
    cheapest = jump_of(order, found, lower, lower - 1, int(cost.argmin()))
    even = abs(cheapest.margin) <= EVEN * cheapest.reward_gap
    return replace(cheapest, pays=None) if even and cheapest.reward_gap else cheapest


def _slopes_ratio(game: RankingGame, developer: int, over: int) -> float:
    curves, who = game.curves, [developer, over]
    if not isinstance(curves, PowerLawCurves) or np.ptp(curves.lower[who]) or np.ptp(curves.upper[who]):
        return np.nan
    return float(curves.beta[over] / curves.beta[developer])


def levels_of(deltas: Any) -> FloatArray:
    levels = finite_array("deltas", deltas, ndim=1)
    if not levels.size or levels.min() < 0:
        raise UsageError(f"`deltas` must hold levels >= 0, at least one, got {levels.tolist()}")
    return levels


def level_of(level: float) -> float:
    if not 0 < level < 1:
        raise UsageError(f"`level` must lie between 0 and 1, got {level!r}")
    return float(level)


def known(values: Any) -> Any:
    """A column without NaN and infinities: None in their place."""
    if isinstance(values, np.ndarray) and values.dtype.kind == "f":
        return [float(value) if np.isfinite(value) else None for value in values]
    return values
