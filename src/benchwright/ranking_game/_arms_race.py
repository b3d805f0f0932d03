"""Mixed play of a ranking contest on slots of score: payoffs, exploitability, and what the board then shows.

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

from benchwright._check import FloatArray

BoolArray = NDArray[np.bool_]
NODES_AT_MOST = 8  # exact for up to 15 rivals in one cell at once


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


def nodes(n: int, most: int = NODES_AT_MOST) -> tuple[FloatArray, FloatArray]:
    """Return positions in [0, 1] and weights that average what n developers in one cell make of it."""
    x, w = leggauss(min(max(2, (n + 1) // 2), most))
    return (x + 1) / 2, w / 2


def expected_rewards(strategy: FloatArray, slots: Slots, rewards: FloatArray, places: FloatArray) -> FloatArray:
    """Return the expected reward (n, S, len(places)) of each developer at each position of each slot."""
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
    """Return the mean payoff (n, S) of each slot; 0 where it is not allowed."""
    value = expected_rewards(strategy, slots, rewards, x) @ w - np.where(slots.allowed, slots.cost, 0.0)
    return np.where(slots.allowed, value, 0.0)


def exploitability(strategy: FloatArray, slots: Slots, rewards: FloatArray) -> tuple[float, float]:
    """Return the largest gain of a developer from another slot, and from any position tried within slots, in reward."""
    x, w = nodes(strategy.shape[0])
    value = payoffs(strategy, slots, rewards, x, w)
    now = (value * strategy).sum(axis=1)
    tried = expected_rewards(strategy, slots, rewards, slots.places) - slots.cost_at
    best = np.where(slots.allowed, value, -np.inf).max(axis=1)
    return max(float((best - now).max()), 0.0), max(float((tried.max(axis=(1, 2)) - now).max()), 0.0)


def pairwise_above(strategy: FloatArray, slots: Slots) -> FloatArray:
    """Return P(row's developer scores above the column's), (n, n); the diagonal is meaningless."""
    above = np.cumsum(strategy[:, ::-1], axis=1)[:, ::-1] - strategy + np.where(slots.is_cell, 0.5, 0.0) * strategy
    chance: FloatArray = above @ strategy.T
    return chance


def top_chance(strategy: FloatArray, slots: Slots) -> float:
    """Return P(the first developer scores highest)."""
    x, w = nodes(strategy.shape[0])
    first = np.zeros(strategy.shape[0])
    first[0] = 1.0
    return float((expected_rewards(strategy, slots, first, x)[0] @ w) @ strategy[0])


def order_chance(strategy: FloatArray) -> float:
    """Return P(scores follow the order of the rows); within a cell all orders are alike.

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
