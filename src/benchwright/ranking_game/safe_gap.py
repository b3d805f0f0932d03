"""How much a better rank may be worth before gaming pays: a figure that needs no rewards.

Let rewards fall by the same G at every rank. By the criterion of ``equilibrium`` the ranking is stable exactly if
c_i(ereq_ij) >= G (i - j) for all ranks j < i, so for every G up to

    min over pairs j < i of c_i(ereq_ij) / (i - j)

in the order of scores at free effort, and for none above.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchwright._json import json_safe
from benchwright._shown import Shown, ShownPart
from benchwright.ranking_game.game import RankingGame
from benchwright.ranking_game.jumps import jumps

PAIRS_AT_ONCE = 1 << 18
ALIKE = 1e-9  # relative width of the bracket beyond which double precision cannot tell


@dataclass(frozen=True, slots=True)
class SafeGap(Shown):
    """The greatest reward gap a rank at which a ranking is stable, and the pair that bounds it.

    Attributes
    ----------
    gap : float, reward
        inf where nobody can be overtaken, NaN where it is not decided (``reason``).
    developer, over : int or None
        Positions of the pair.
    required_effort, cost : float
        Of overtaking; ``ranks`` is how many ranks it gains.
    """

    gap: float
    developer: int | None
    over: int | None
    ranks: int
    required_effort: float
    cost: float
    reason: str
    game: RankingGame

    def _told(self) -> Iterable[ShownPart]:
        if self.developer is None or self.over is None:
            yield f"Safe reward gap a rank: {self.reason}"
            return
        pair = f"{self.game.name(self.developer)} over {self.game.name(self.over)}"
        yield f"Safe reward gap a rank: up to {self.gap:.6g}, bounded by {pair} ({self.reason})"

    def to_dict(self) -> dict[str, Any]:
        """All fields but the game, with names, in types that JSON knows; null where there is none."""
        record = {name: json_safe(getattr(self, name)) for name in self.__dataclass_fields__ if name != "game"}
        for name in ("developer", "over"):
            record[name] = None if record[name] is None else self.game.name(record[name])
        return record


def safe_gap(game: RankingGame) -> SafeGap:
    """Return the greatest G at which rewards that fall by G a rank leave the ranking stable.

    The game's own rewards are not used.

    Examples
    --------
    >>> from benchwright.ranking_game.forms import PowerLawCurves
    >>> game = RankingGame(PowerLawCurves([0.6931471805599453, 0.0]), [2.0, 0.0], names=("a", "b"))
    >>> print(safe_gap(game.at(3.0)))
    Safe reward gap a rank: up to 4, bounded by b over a (1 rank for effort 4)
    """
    free = game.costs.free
    if np.ptp(free) > 0:
        return SafeGap(np.nan, None, None, 0, np.nan, np.nan, "not decided: free effort differs", game)
    order = game.published_order(free)
    best, at_most, first = (np.inf, 0, 0, np.inf, np.inf), np.inf, 1
    while first < game.n:
        last = min(game.n, first + max(1, PAIRS_AT_ONCE // first))
        lower = np.repeat(np.arange(first, last), np.arange(first, last))
        upper = np.concatenate([np.arange(rank) for rank in range(first, last)])
        found = jumps(game, order, free, lower, upper)
        ratio = found.cost_low / (lower - upper)
        at_most = min(at_most, float((found.cost_high / (lower - upper)).min()))
        k = int(ratio.argmin())
        if ratio[k] < best[0]:
            best = (float(ratio[k]), int(lower[k]), int(upper[k]), float(found.required[k]), float(found.cost[k]))
        first = last
    gap, low, high, effort, cost = best
    if at_most - gap > ALIKE * at_most:
        return SafeGap(np.nan, None, None, 0, np.nan, np.nan, "not decided: scores too close to tell", game)
    if not np.isfinite(gap):
        return SafeGap(np.inf, None, None, 0, np.inf, np.inf, "no bound: no developer can overtake another", game)
    ranks = low - high
    reason = f"{ranks} rank{'s' * (ranks > 1)} for effort {effort:.6g}"
    return SafeGap(gap, int(order[low]), int(order[high]), ranks, effort, cost, reason, game)
