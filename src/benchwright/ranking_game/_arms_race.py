"""Mixed play of a ranking contest on slots of score: payoffs, equilibrium search, and what the board then shows.

Slots are in order of score. A cell is a short range of scores, in which a developer's score is uniform; a point is
where one developer stands at free effort. A strategy (n, S) gives each developer's probabilities over slots. Positions
within a cell are at u in [0, 1]; against position u of its own cell a rival is above with probability 1 - u. Ranks
follow from the Poisson-binomial distribution of the number of rivals above, by recursion over rivals.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import factorial

import numpy as np
from numpy.polynomial.legendre import leggauss
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse import csr_array

from benchwright._check import FloatArray

BoolArray = NDArray[np.bool_]
AVERAGING = 4.0  # iterate t counts t^4 in the average
CHECK_EVERY = 250
NODES_OF_SEARCH = 2  # of a cell: exact for up to three rivals in it at once, and more rarely matter


@dataclass(frozen=True, slots=True, eq=False)
class Slots:
    """What each developer may do: ``allowed`` (n, S), mean ``cost`` (n, S) in a slot, which slots are cells (S,).

    ``places`` (E,) are positions in a cell at which deviations are tried, ``cost_at`` (n, S, E) what they cost.
    """

    allowed: BoolArray
    cost: FloatArray
    is_cell: BoolArray
    places: FloatArray
    cost_at: FloatArray


def nodes(n: int, most: int = 99) -> tuple[FloatArray, FloatArray]:
    """Positions in [0, 1] and weights that average exactly what n developers in one cell make of it."""
    x, w = leggauss(min(max(2, (n + 1) // 2), most))
    return (x + 1) / 2, w / 2


def expected_rewards(strategy: FloatArray, slots: Slots, rewards: FloatArray, places: FloatArray) -> FloatArray:
    """Expected reward (n, S, len(places)) of each developer at each position of each slot."""
    n = strategy.shape[0]
    above = np.cumsum(strategy[:, ::-1], axis=1)[:, ::-1] - strategy
    chance = above[:, :, None] + strategy[:, :, None] * np.where(slots.is_cell[:, None], 1 - places, 0.0)
    flat = chance.reshape(n, -1)
    value = np.append(rewards, 0.0)[:, None, None]  # by number above so far; n above has no chance, as own is never
    for j in range(n):
        up = np.broadcast_to(flat[j], (n, flat.shape[1])).copy()
        up[j] = 0.0
        gain = (value[1:] - value[:-1]) * up
        gain += value[:-1]
        value = gain
    expected: FloatArray = value[0].reshape(chance.shape)
    return expected


def payoffs(strategy: FloatArray, slots: Slots, rewards: FloatArray, x: FloatArray, w: FloatArray) -> FloatArray:
    """Mean payoff (n, S) of each slot; 0 where it is not allowed."""
    value = expected_rewards(strategy, slots, rewards, x) @ w - np.where(slots.allowed, slots.cost, 0.0)
    return np.where(slots.allowed, value, 0.0)


def exploitability(strategy: FloatArray, slots: Slots, rewards: FloatArray) -> tuple[float, float]:
    """Largest gain of a developer from another slot, and from any position tried within slots, in reward."""
    x, w = nodes(strategy.shape[0])
    value = payoffs(strategy, slots, rewards, x, w)
    now = (value * strategy).sum(axis=1)
    tried = expected_rewards(strategy, slots, rewards, slots.places) - slots.cost_at
    best = np.where(slots.allowed, value, -np.inf).max(axis=1)
    return max(float((best - now).max()), 0.0), max(float((tried.max(axis=(1, 2)) - now).max()), 0.0)


def iterate(slots: Slots, rewards: FloatArray, *, steps: int, target: float) -> tuple[FloatArray, int]:
    """Average of predictive regret matching (Farina, Kroer and Sandholm 2021); stops at ``target``.

    It converges where rewards are linear in the rank, as the game is then a sum of two-player contests; elsewhere the
    exploitability of what comes back is the measure.
    """
    x, w = nodes(slots.allowed.shape[0], NODES_OF_SEARCH)
    even = slots.allowed / slots.allowed.sum(axis=1, keepdims=True)
    strategy, average, regrets = even, np.zeros(even.shape), np.zeros(even.shape)
    best, gain, step = even, np.inf, 0
    for step in range(1, steps + 1):
        value = payoffs(strategy, slots, rewards, x, w)
        missed = np.where(slots.allowed, value - (value * strategy).sum(axis=1, keepdims=True), 0.0)
        regrets = np.maximum(regrets + missed, 0.0)
        average = average * ((step - 1) / step) ** AVERAGING + strategy
        strategy = _shares(np.maximum(regrets + missed, 0.0), even)
        if step % CHECK_EVERY == 0 or step == steps:
            mean = average / average.sum(axis=1, keepdims=True)
            found = exploitability(mean, slots, rewards)[0]
            if found < gain:
                best, gain = mean, found
            if gain <= target:
                break
    return best, step


def _shares(weights: FloatArray, even: FloatArray) -> FloatArray:
    total = weights.sum(axis=1, keepdims=True)
    return np.where(total > 0, weights / np.where(total > 0, total, 1.0), even)


def two_players(slots: Slots, gap: float) -> FloatArray:
    """Equilibrium of two developers by a linear programme: with costs of the other added, the game is zero-sum."""
    s, t = (np.flatnonzero(row) for row in slots.allowed)
    win = (s[:, None] > t) + 0.5 * ((s[:, None] == t) & slots.is_cell[s][:, None])
    worth = gap * win - slots.cost[0, s][:, None] + slots.cost[1, t]
    objective = np.concatenate([np.zeros(s.size), [-1.0]])
    bounds = [(0, None)] * s.size + [(None, None)]
    rows = csr_array(np.hstack([-worth.T, np.ones((t.size, 1))]))
    total = csr_array(np.concatenate([np.ones(s.size), [0.0]])[None])
    found = linprog(objective, A_ub=rows, b_ub=np.zeros(t.size), A_eq=total, b_eq=[1.0], bounds=bounds, method="highs")
    strategy = np.zeros(slots.allowed.shape)
    if found.x is None:
        return np.full(strategy.shape, np.nan)
    for i, (place, share) in enumerate(((s, found.x[:-1]), (t, -found.ineqlin.marginals))):
        strategy[i, place] = np.maximum(share, 0.0) / np.maximum(share, 0.0).sum()
    return strategy


def pairwise_above(strategy: FloatArray, slots: Slots) -> FloatArray:
    """P(row's developer scores above the column's), (n, n); the diagonal is meaningless."""
    above = np.cumsum(strategy[:, ::-1], axis=1)[:, ::-1] - strategy + np.where(slots.is_cell, 0.5, 0.0) * strategy
    chance: FloatArray = above @ strategy.T
    return chance


def top_chance(strategy: FloatArray, slots: Slots) -> float:
    """P(the first developer scores highest)."""
    x, w = nodes(strategy.shape[0])
    first = np.zeros(strategy.shape[0])
    first[0] = 1.0
    return float((expected_rewards(strategy, slots, first, x)[0] @ w) @ strategy[0])


def order_chance(strategy: FloatArray) -> float:
    """P(scores follow the order of the rows); within a cell all orders are alike.

    reached[i] is the probability that the first i rows stand in the slots gone through, from the top, in order.
    """
    n = strategy.shape[0]
    reached = np.zeros(n + 1)
    reached[0] = 1.0
    for here in strategy.T[::-1]:
        before = reached.copy()
        for i in range(n):
            run = 1.0
            for k in range(1, n - i + 1):
                run *= here[i + k - 1]
                if run == 0:
                    break
                reached[i + k] += before[i] * run / factorial(k)
    return float(reached[n])
