"""The least margin over tuning: how far the jump that comes closest to paying is from paying, by level Delta.

Where no jump pays from free effort that profile is a pure equilibrium, whatever the order of its scores; where one pays
there is none, under the criterion's conditions (docs/explanation/ranking-game.md).

The least margin of a draw is the least of many noisy ones, so draws lie low: their band and their share of pure
equilibria err on the side of caution (see ``threshold_draws``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from benchwright._check import FloatArray
from benchwright._shown import Headline, Shown, ShownPart, ShownTable
from benchwright._words import percent
from benchwright.errors import UsageError
from benchwright.ranking_game import _tuning as numbers
from benchwright.ranking_game.forms import IntArray
from benchwright.ranking_game.game import RankingGame
from benchwright.ranking_game.tuning import LEVEL, jumps_at, known, level_of, levels_of, orders

if TYPE_CHECKING:
    import polars as pl

PAIRS_AT_ONCE = 1 << 20


@dataclass(frozen=True, slots=True, eq=False)
class MarginOverTuning(Shown):
    """The least margin, cost less reward gap, over all pairs with a reward gap, at D levels of tuning.

    Below 0 no pure equilibrium exists at that level. ``developer`` and ``over`` are the pair that attains it, ``cost``
    and ``gap`` its terms. ``exists`` is 1 where surely no jump pays, 0 where one surely does, NaN where neither is
    known.
    ``band`` (D, 2) is the percentile band over draws, ``share_exists`` (D,) the share of draws with a pure equilibrium.
    """

    game: RankingGame
    deltas: FloatArray
    margin: FloatArray
    developer: IntArray
    over: IntArray
    cost: FloatArray
    gap: FloatArray
    exists: FloatArray
    band: FloatArray
    share_exists: FloatArray
    level: float
    draws: int

    def _told(self) -> Iterable[ShownPart]:
        name = self.game.name
        yield Headline("Least margin over pairs (cost less reward gap), by level of common tuning")
        heads = ["level", "margin", "developer", "over"] + (["pure equilibrium in draws"] if self.draws else [])
        rows = [
            (
                f"{delta:g}",
                f"{self.margin[d]:.4g}",
                name(int(self.developer[d])),
                name(int(self.over[d])),
                *([percent(float(self.share_exists[d]))] if self.draws else []),
            )
            for d, delta in enumerate(self.deltas)
        ]
        yield ShownTable(heads, rows)

    def to_frame(self) -> pl.DataFrame:
        """One row a level: delta, margin, developer, over, cost, gap, exists, low, high, share_exists."""
        import polars as pl

        columns = {
            "delta": self.deltas,
            "margin": self.margin,
            "developer": [self.game.name(int(i)) for i in self.developer],
            "over": [self.game.name(int(i)) for i in self.over],
            "cost": self.cost,
            "gap": self.gap,
            "exists": [None if np.isnan(value) else bool(value) for value in self.exists],
            "low": self.band[:, 0],
            "high": self.band[:, 1],
            "share_exists": self.share_exists,
        }
        return pl.DataFrame({key: known(value) for key, value in columns.items()})

    def to_dict(self) -> dict[str, Any]:
        """The rows of ``to_frame`` under "levels", in types that JSON knows."""
        return {"levels": self.to_frame().to_dicts(), "level": self.level, "draws": self.draws}


def margin_over_tuning(
    game: RankingGame, deltas: Any, *, draws: Sequence[RankingGame] = (), level: float = LEVEL
) -> MarginOverTuning:
    """Return the least margin over all pairs with a reward gap, in the order of scores, at each level of tuning.

    A grid may miss what happens between its levels: ``threshold`` does not.

    Examples
    --------
    >>> from benchwright.ranking_game.forms import PowerLawCurves
    >>> game = RankingGame(PowerLawCurves([0.6931471805599453, 0.0]), [2.0, 0.0], names=("a", "b"))
    >>> margin_over_tuning(game, [0.0, 3.0]).margin.round(9)
    array([-1.,  2.])
    """
    levels, share = levels_of(deltas), level_of(level)
    margin, exists, pair, cost, gap = _margins(game, levels)
    band, share_exists = np.full((levels.size, 2), np.nan), np.full(levels.size, np.nan)
    if draws:
        found = [_margins(one, levels)[:2] for one in draws]
        band = numbers.band(np.stack([one[0] for one in found]), share)
        share_exists = np.mean([one[1] == 1 for one in found], axis=0)
    return MarginOverTuning(
        game, levels, margin, pair[:, 0], pair[:, 1], cost, gap, exists, band, share_exists, share, len(draws)
    )


def _margins(game: RankingGame, deltas: FloatArray) -> tuple[FloatArray, FloatArray, IntArray, FloatArray, FloatArray]:
    """Least margin, whether no jump pays (1, 0, NaN), the pair (D, 2), its cost and gap, at each level."""
    lower, upper = np.tril_indices(game.n, -1)
    gap = game.rewards[upper] - game.rewards[lower]
    lower, upper, gap = lower[gap > 0], upper[gap > 0], gap[gap > 0]
    if not gap.size:
        raise UsageError("`rewards` are all equal: nothing is to be gained at any rank")
    order, parts = orders(game, deltas), []
    rows = max(1, PAIRS_AT_ONCE // gap.size)
    for first in range(0, deltas.size, rows):
        block, ranked = deltas[first : first + rows], order[first : first + rows]
        who, other = ranked[:, lower], ranked[:, upper]
        found = jumps_at(game, who, other, block[:, None], gap)
        margin = np.where(np.isnan(found.cost), found.cost_low, found.cost) - gap
        k, each = margin.argmin(axis=1), np.arange(block.size)
        exists = np.where(found.pays.any(axis=1), 0.0, np.where(found.safe.all(axis=1), 1.0, np.nan))
        parts.append((margin[each, k], exists, who[each, k], other[each, k], found.cost[each, k], gap[k]))
    least, exists, who, other, cost, lost = (np.concatenate(part) for part in zip(*parts, strict=True))
    return least, exists, np.stack([who, other], axis=1), cost, lost
