"""The slots of an arms race: cells of score that effort worth its cost can reach, and where free effort stands.

A cell costs a developer the mean, over the cell, of the least effort that brings it to each score there. Where a curve
is at its maximum at finite effort, rivals who can go higher have one more cell just above, as narrow as doubles allow.
"""

from __future__ import annotations

import numpy as np

from benchwright._check import FloatArray
from benchwright.errors import UsageError
from benchwright.ranking_game import _arms_race as numbers
from benchwright.ranking_game._curves import first_above
from benchwright.ranking_game.forms import SCORE_SLACK, IntArray
from benchwright.ranking_game.game import RankingGame

PLACES = np.linspace(0.0, 1.0, 5)  # positions in a cell at which deviations are tried
CROWN = 1e-9  # of the range of scores: width of the cell above a maximum


def slots_of(game: RankingGame, cells: int) -> numbers.Slots:
    """Return slots in order of score, developers in order of capability.

    Each developer gives as many edges of cells, closer where it spends little: there play is densest.
    """
    n, order, delta = game.n, game.order, game.tune_before_test
    start = game.curves.key(order, delta + game.costs.free[order])
    if np.unique(start).size < n:
        raise UsageError("scores at free effort are too close for double precision to order")
    amounts = float(game.rewards[0] - game.rewards[-1]) * np.linspace(0.0, 1.0, cells + 1) ** 2
    who = np.repeat(order, cells + 1)
    reach = game.curves.key(who, delta + game.costs.budget(who, np.tile(amounts, n))).reshape(n, -1)
    limit = np.sort(reach[:, -1])[-2]  # above the second highest nobody needs to go
    pooled = np.sort(reach[reach <= limit])
    inner = np.quantile(pooled, np.linspace(0, 1, max(cells - n, 1) + 1))
    edges = np.unique(np.concatenate([inner, start[start <= limit], [limit]]))
    if not game.curves.strict:
        edges = np.append(edges, limit + CROWN * (limit - edges[0]))
    kinds = [(edge, i) for i, edge in enumerate(start)] + [(edge, n) for edge in edges[:-1]]
    kinds.sort(key=lambda entry: (entry[0], entry[1] == n))
    owner = np.array([kind for _, kind in kinds])
    is_cell = owner == n
    low = np.array([edge for edge, _ in kinds])
    high = low.copy()
    high[is_cell] = edges[1:]
    x, w = numbers.nodes(n)
    places = np.concatenate([x, PLACES])
    at = low[:, None] + (high - low)[:, None] * places
    cost = np.stack([_cost_of(game, int(i), at.ravel()).reshape(at.shape) for i in order])
    allowed = np.where(is_cell, (low >= start[:, None]) & np.isfinite(cost[:, :, -1]), owner == np.arange(n)[:, None])
    inside = allowed & is_cell
    mean = np.where(inside, np.where(inside[:, :, None], cost[:, :, : x.size], 0.0) @ w, 0.0)
    tried = np.where(allowed[:, :, None], np.where(is_cell[:, None], cost[:, :, x.size :], 0.0), np.inf)
    return numbers.Slots(allowed, mean, is_cell, PLACES, tried)


def _cost_of(game: RankingGame, developer: int, keys: FloatArray) -> FloatArray:
    """Cost of the effort that brings a developer to the scores ``keys``; 0 where free effort does, inf out of reach."""

    def curve(effort: FloatArray, which: IntArray) -> FloatArray:
        return game.curves.key(np.full(effort.size, developer), game.tune_before_test + effort)

    low, high = first_above(curve, keys if game.curves.strict else keys - SCORE_SLACK)
    effort = np.where(np.isfinite(high), (low + high) / 2, np.inf)
    return game.costs.cost(np.full(keys.size, developer), effort)
