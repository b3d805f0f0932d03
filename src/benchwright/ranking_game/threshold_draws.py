"""How sure the tune-before-test threshold is: the threshold in each bootstrap draw of the curves.

A draw is a possible world with its own curves and order of capability. A level is stable in it if no jump pays there
and the world's own order is published.

Delta* is the largest level that any pair needs, and the largest of noisy levels lies high: noise brings some pair
closer than it is. In 60 simulated tables each (200 draws) the range of the middle 95 % of draws held the truth in 97 %
for six developers like Pythia on GSM8K, in 77 % for four others and never for ten alike ones; every miss lay above the
truth. With flat or saturated curves misses lay below it: a rise that the noise hides leaves no trace in the draws. So
the range is no confidence interval. Its upper end is the safe one where all curves rise, its lower end is no bound.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from benchwright._check import FloatArray, finite_array, non_negative
from benchwright._json import json_safe
from benchwright._shown import Headline, Shown, ShownPart
from benchwright._words import percent
from benchwright.errors import UsageError
from benchwright.ranking_game import _tuning as numbers
from benchwright.ranking_game.game import RankingGame
from benchwright.ranking_game.threshold import Status, thresholds
from benchwright.ranking_game.tuning import level_of

if TYPE_CHECKING:
    import polars as pl

GRID = 60  # levels at which the share of stable draws is told
DRAWS_BETWEEN_WORDS = 20
NOTE = 'no confidence interval: noise moves draws up; where a curve is flat, "no rise seen" is not "cannot rise"'


@dataclass(frozen=True, slots=True, eq=False)
class ThresholdDraws(Shown):
    """Thresholds of B draws.

    Attributes
    ----------
    delta : (B,) effort
        Delta* of each draw; inf where delta_max is not stable, NaN where the draw is undecided.
    status : tuple of B str
        See ``Threshold``.
    interval : (2,) effort
        Range of the middle share ``level`` of draws, no confidence interval; inf where that end is "none up to
        delta_max". An undecided draw counts as 0 at the lower end and as inf at the upper.
    median : float
        inf where at least half of the draws have none; NaN where undecided draws leave it open.
    shares : dict
        Status -> share of draws.
    deltas : (G,) effort
    stable : (G,) share of draws
        In which the level is surely stable: the probability that the level is stable.
    undecided : (G,) share of draws
        In which it is not known.
    crossed : (G,) share of draws
        In which scores at the level do not follow that draw's order of capability; such levels are not stable, unless
        only ranks of equal reward are out of order.
    level : float
    delta_max : float
    """

    delta: FloatArray
    status: tuple[Status, ...]
    interval: FloatArray
    median: float
    shares: dict[str, float]
    deltas: FloatArray
    stable: FloatArray
    undecided: FloatArray
    crossed: FloatArray
    level: float
    delta_max: float

    @property
    def draws(self) -> int:
        return self.delta.size

    def _told(self) -> Iterable[ShownPart]:
        low, high = (self._words(end) for end in self.interval)
        best = int(self.stable.argmax())
        often = float(self.stable[best])
        surest = f"surest level: {_short(self.deltas[best])}, stable in {percent(often)} of draws"
        yield Headline(f"Delta* in {self.draws} draws: {self._range(low, high)}")
        yield f"  {NOTE}"
        yield f"  {', '.join(f'{status} {percent(share)}' for status, share in self.shares.items() if share)}"
        yield f"  {'no level is stable in any draw' if often == 0 else surest}"

    @property
    def upper_share(self) -> float:
        """The share of draws whose threshold is at most ``interval[1]``."""
        return (1 + self.level) / 2

    def _range(self, low: str, high: str) -> str:
        if bool((self.delta == np.inf).all()):
            return f"{high} in all of them"
        most = "" if np.isinf(self.interval[1]) else f"at most {high} in {percent(self.upper_share)}, "
        return f"{most}{low} to {high} in the middle {percent(self.level)}, median {self._words(self.median)}"

    def _words(self, delta: float) -> str:
        return (
            "open" if np.isnan(delta) else f"none up to {_short(self.delta_max)}" if np.isinf(delta) else _short(delta)
        )

    def to_frame(self) -> pl.DataFrame:
        """One row a level of the grid: delta, stable, undecided, crossed (shares of draws)."""
        import polars as pl

        columns = ("stable", "undecided", "crossed")
        return pl.DataFrame({"delta": self.deltas} | {name: getattr(self, name) for name in columns})

    def to_dict(self) -> dict[str, Any]:
        """Range, shares and the rows of ``to_frame``, in types that JSON knows; null where there is no level."""
        record: dict[str, Any] = {"low": self.interval[0], "high": self.interval[1], "median": self.median}
        record |= {"upper": self.interval[1], "upper_share": self.upper_share, "note": NOTE}
        record |= {"level": self.level, "draws": self.draws, "delta_max": self.delta_max, "shares": self.shares}
        safe: dict[str, Any] = json_safe(record)
        return safe | {"levels": self.to_frame().to_dicts()}


def threshold_draws(
    draws: Sequence[RankingGame],
    *,
    delta_max: float = 1e5,
    deltas: Any = None,
    level: float = 0.95,
    progress: Callable[[str], None] | None = None,
) -> ThresholdDraws:
    """Search the threshold in each draw.

    Parameters
    ----------
    draws : sequence of RankingGame
        At least one; see ``fitted_game``.
    delta_max : float > 0
    deltas : (G,) levels in [0, delta_max], optional
        Where shares are told; by default 0 and 59 levels up to ``delta_max``, evenly spaced in log(1 + level).
    level : float in (0, 1)
    progress : callable, optional
        Told how many draws are done.

    Examples
    --------
    >>> from benchwright.ranking_game.forms import PowerLawCurves
    >>> worlds = [RankingGame(PowerLawCurves([lead, 0.0]), [2.0, 0.0]) for lead in (0.2, 0.5, 0.7, 1.0, 1.2)]
    >>> print(threshold_draws(worlds, delta_max=100.0, deltas=[0.0, 2.0, 10.0]))
    Delta* in 5 draws: at most 8.033 in 97.5 %, 0 to 8.033 in the middle 95 %, median 0.9729
      no confidence interval: noise moves draws up; where a curve is flat, "no rise seen" is not "cannot rise"
      stable_everywhere 20 %, found 80 %
      surest level: 10, stable in 100 % of draws
    """
    if not draws:
        raise UsageError("`draws` must hold at least one game")
    top, share = non_negative("delta_max", delta_max), level_of(level)
    grid = np.expm1(np.linspace(0, np.log1p(top), GRID)) if deltas is None else finite_array("deltas", deltas, ndim=1)
    if not grid.size or grid.min() < 0 or grid.max() > top * (1 + 1e-12):
        raise UsageError(f"`deltas` must lie in [0, {top:g}], got {grid.tolist()}")
    grid = np.minimum(grid, top)
    found, inside = [], np.zeros((3, grid.size))
    for done, one in enumerate(thresholds(draws, delta_max=top, bound=False), start=1):
        found.append((one.status, one.delta))
        for k, spans in enumerate((one.stable_intervals, one.undecided_intervals, one.crossed_intervals)):
            inside[k] += _within(grid, spans)
        if progress is not None and (done % DRAWS_BETWEEN_WORDS == 0 or done == len(draws)):
            progress(f"threshold: {done} of {len(draws)} draws")
    status = tuple(one[0] for one in found)
    delta = np.array([at if name == "undecided" or np.isfinite(at) else np.inf for name, at in found])
    middle = [float(numbers.quantile(np.where(np.isnan(delta), end, delta), 0.5)) for end in (0.0, np.inf)]
    count, size = Counter(status), len(draws)
    return ThresholdDraws(
        delta=delta,
        status=status,
        interval=numbers.band(delta, share),
        median=middle[0] if middle[0] == middle[1] else np.nan,
        shares={name: count[name] / size for name in get_args(Status)},
        deltas=grid,
        stable=inside[0] / size,
        undecided=inside[1] / size,
        crossed=inside[2] / size,
        level=share,
        delta_max=top,
    )


def _within(grid: FloatArray, spans: Sequence[tuple[float, float]]) -> FloatArray:
    """1 for levels (G,) in one of the intervals, else 0."""
    hits = [(low <= grid) & (grid <= high) for low, high in spans]
    return np.any(hits, axis=0).astype(np.float64) if hits else np.zeros(grid.size)


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"
