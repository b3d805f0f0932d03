"""What results of the ranking game ask of costs: strictly increasing, unbounded, convex, ordered, at least linear.

Powers c(e) = kappa max(e - free, 0)^exponent are judged by their parameters; callables on a grid of efforts.
"""

from __future__ import annotations

import numpy as np

from benchwright._check import FloatArray
from benchwright.ranking_game import _assumptions as numbers
from benchwright.ranking_game._curves import EPS, ROUNDINGS
from benchwright.ranking_game.costs import PowerCosts
from benchwright.ranking_game.curve_assumptions import Check, Proof, Violation, judged
from benchwright.ranking_game.forms import IntArray
from benchwright.ranking_game.game import RankingGame

SLACK = ROUNDINGS * EPS


def check_costs(game: RankingGame, grid: FloatArray) -> list[Check]:
    """The checks of the costs, for efforts ``grid`` (G,) from 0."""
    costs, n, top = game.costs, game.n, float(grid[-1])
    cost = costs.cost(np.arange(n)[:, None], np.broadcast_to(grid, (n, grid.size)))
    free = [
        Violation((int(i),), ((0.0, float(costs.free[i])),), 0.0, float(costs.free[i]))
        for i in np.flatnonzero(costs.free)
    ]
    if isinstance(costs, PowerCosts):
        proof: Proof = "closed form"
        bent = np.flatnonzero(costs.exponent < 1)
        unbounded = Check("cost unbounded", "holds", proof, 0, n, (), "a power of effort")
        convex_words = "exponents of at least 1"
        least = np.where(costs.exponent <= 1, costs.kappa * top ** (costs.exponent - 1), 0.0)
    else:
        proof = "grid"
        slack = SLACK * np.maximum(cost[:, 2:], 1.0)
        bent = np.flatnonzero(numbers.convex_steps(grid, -cost, slack).any(axis=1))
        reached = "a callable is unbounded as given: no grid can show it"
        unbounded = Check("cost unbounded", "undecided", proof, 0, n, (), reached)
        convex_words = "no step of the grid falls short of the one before"
        least = (cost[:, 1:] / grid[1:]).min(axis=1)
    least = np.where(costs.free > 0, 0.0, least)
    kappa = float(least.min())
    flat = [Violation((int(i),), ((0.0, top),), top, 0.0) for i in np.flatnonzero(least <= 0)]
    where = f" on [{grid[1]:.3g}, {top:g}]" if proof == "grid" else f" on [0, {top:g}]" if _bends(game) else ""
    return [
        judged("cost increasing", free, n, proof, "from zero effort on", "developers have free effort"),
        unbounded,
        judged("cost convex", _whole(bent, top), n, proof, convex_words, "developers' costs are not convex"),
        _order_check(game, grid, cost),
        judged("cost linear", flat, n, proof, f"c(e) >= {kappa:.4g} e{where}", "developers' costs start flat"),
    ]


def _bends(game: RankingGame) -> bool:
    return isinstance(game.costs, PowerCosts) and bool((game.costs.exponent < 1).any())


def _order_check(game: RankingGame, grid: FloatArray, cost: FloatArray) -> Check:
    """Whether no developer's cost is below that of a more capable one."""
    costs, order = game.costs, game.order
    pairs = game.n * (game.n - 1) // 2
    if isinstance(costs, PowerCosts) and all(np.ptp(part) == 0 for part in (costs.kappa, costs.exponent, costs.free)):
        return Check("cost order", "holds", "closed form", 0, pairs, (), "one cost for all")
    ranked = cost[order]
    dearest = np.maximum.accumulate(ranked, axis=0)[:-1]
    below = dearest - ranked[1:] > SLACK * np.maximum(dearest, 1.0)
    found = []
    for k in np.flatnonzero(below.any(axis=1)):
        at = int((dearest[k] - ranked[k + 1]).argmax())
        above = int(order[ranked[: k + 1, at].argmax()])
        _, first, last = numbers.runs(below[[k]])
        spans = tuple((float(grid[x]), float(grid[y])) for x, y in zip(first, last, strict=True))
        size = float(dearest[k, at] - ranked[k + 1, at])
        found.append(Violation((int(order[k + 1]), above), spans, float(grid[at]), size))
    good = "no less capable developer has a lower cost"
    return judged("cost order", found, game.n, "grid", good, "developers have a lower cost than a more capable one")


def _whole(who: IntArray, top: float) -> list[Violation]:
    return [Violation((int(i),), ((0.0, top),), top, np.nan) for i in who]
