"""The search for mixed play of a ranking contest on slots of score: an interior-point method.

Developer i plays slot s with probability p_is, and lam_i is its payoff in equilibrium, so that

    p_is >= 0,   z_is = lam_i - u_is(p) >= 0,   p_is z_is = 0,   sum_s p_is = 1.

Newton's method is applied to p_is z_is = mu while mu falls to 0, as in interior-point methods for linear programmes,
from even play. u_is depends on the chances of rivals to stand above slot s and in it, so that with the chances above
as unknowns the system of a step is banded: it takes O(S n^3) operations. Where the path turns back, which it may for
rewards that are not linear in the rank, steps become short, and one is taken along the line all the same, cut off
where a probability would fall below 0.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import solve_banded

from benchwright._check import FloatArray
from benchwright.ranking_game._arms_race import BoolArray, Slots, nodes

NODES_OF_SEARCH = 2  # of a cell: exact for up to three rivals in it at once, and more rarely matter
CENTRING, RECENTRING = 0.2, 0.9  # aim at this part of the mean of p z, after a long step and after short ones
LONG, SHORT = 0.3, 0.02
SHORT_STEPS = 4  # so many in a row, and the path is left
KEPT = 0.95  # of the way to where a probability would be 0
CUT = 0.1  # of a value that remains where the path is left
STEPS = 100  # of one path
ATTEMPTS = 6
RESTART = 1e-3  # of the top reward: a greater gain is worth another attempt
WEIGHTS = (0.2, 2.0)
START = 0.1  # of the top reward: payoff above the best reply to even play


def payoffs_and_slopes(
    strategy: FloatArray, slots: Slots, rewards: FloatArray, x: FloatArray, w: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return mean payoffs of slots, and how they change with the rivals' chances above a slot and in it.

    The number of rivals above has the characteristic function prod_j (1 - q_j + q_j omega), q_j the chance of rival j.
    An odd number of points omega on the unit circle, so that no factor is 0, gives expected rewards; a rival is left
    out by dividing by its factor.

    Returns
    -------
    payoff : (n, S)
    above, inside : (S, n, n)
        Change of i's payoff (row) with j's chance (column) to stand above the slot, and to play it.
    """
    n, S = strategy.shape
    points = n + 1 - n % 2
    omega = np.exp(2j * np.pi * np.arange(points) / points)
    weight = np.array([(rewards * point ** -np.arange(n)).sum() for point in omega]) / points
    over = (np.cumsum(strategy[:, ::-1], axis=1)[:, ::-1] - strategy).T
    payoff = -np.where(slots.allowed, slots.cost, 0.0)
    above, inside = np.zeros((2, S, n, n))
    for place, share in zip(x, w, strict=True):
        level = np.where(slots.is_cell, 1.0 - place, 0.0)[:, None]
        inverse = 1.0 / (1.0 + (over + strategy.T * level)[:, :, None] * (omega - 1.0))
        product = weight / inverse.prod(axis=1)
        payoff += share * np.einsum("sm,sjm->js", product, inverse).real
        slope = ((inverse * (product * (omega - 1.0))[:, None]) @ inverse.transpose(0, 2, 1)).real
        slope[:, np.arange(n), np.arange(n)] = 0.0
        above += share * slope
        inside += share * level[:, :, None] * slope
    return np.where(slots.allowed, payoff, 0.0), above, inside


def equilibrium(slots: Slots, rewards: FloatArray, *, target: float) -> tuple[FloatArray, int]:
    """Return a strategy (n, S) and the number of steps; stops where no developer gains more than ``target``.

    Where the gain remains above ``RESTART``, the search is repeated for p_is z_is = mu times other weights, drawn from
    a fixed seed; the best of all attempts comes back.
    """
    rng, least, done = np.random.default_rng(0), np.inf, 0
    weights = np.ones(slots.allowed.shape)
    best = weights
    for _ in range(ATTEMPTS):
        strategy, gain, steps = _follow(slots, rewards, weights, target)
        done += steps
        if gain < least:
            best, least = strategy, gain
        if least <= max(RESTART, target):
            break
        weights = rng.uniform(*WEIGHTS, slots.allowed.shape)
    return best, done


def _follow(slots: Slots, rewards: FloatArray, weights: FloatArray, target: float) -> tuple[FloatArray, float, int]:
    """Return the strategy with the least gain along one path, that gain, and the number of steps."""
    allowed = slots.allowed
    x, w = nodes(allowed.shape[0], NODES_OF_SEARCH)
    p = allowed / allowed.sum(axis=1, keepdims=True)
    u, above, inside = payoffs_and_slopes(p, slots, rewards, x, w)
    lam = np.where(allowed, u, -np.inf).max(axis=1) + START
    z = np.where(allowed, lam[:, None] - u, 1.0)
    best, least, centring, short, steps = p, np.inf, CENTRING, 0, 0
    while steps < STEPS and least > target:
        steps += 1
        product = p * z
        aim = centring * product.mean(where=allowed) * weights
        residual = lam[:, None] - u - z
        wanted = np.where(allowed, aim - product - p * residual, 0.0)
        try:
            dp, dlam = _newton(p, z, above, inside, wanted, allowed)
        except np.linalg.LinAlgError:  # singular: the best so far stands
            break
        dz = np.where(allowed, aim - product - z * dp, 0.0) / np.where(allowed, p, 1.0)
        length = min(_longest(p, dp), _longest(z, dz))
        centring = CENTRING if length > LONG else RECENTRING
        short = short + 1 if length < SHORT else 0
        if short == SHORT_STEPS:
            short, length = 0, 0.5
            p, z = np.maximum(p + length * dp, CUT * p), np.maximum(z + length * dz, CUT * z)
            p /= p.sum(axis=1, keepdims=True)
        else:
            p, z = p + length * dp, z + length * dz
        lam = lam + length * dlam
        u, above, inside = payoffs_and_slopes(p, slots, rewards, x, w)
        gain = float((np.where(allowed, u, -np.inf).max(axis=1) - (u * p).sum(axis=1)).max())
        if gain < least:
            best, least = p, gain
    return best / best.sum(axis=1, keepdims=True), least, steps


def _longest(value: FloatArray, change: FloatArray) -> float:
    """Return the longest step, at most 1, that leaves all values positive."""
    falls = change < 0
    return min(1.0, KEPT * float((-value[falls] / change[falls]).min(initial=np.inf)))


def _newton(
    p: FloatArray, z: FloatArray, above: FloatArray, inside: FloatArray, wanted: FloatArray, allowed: BoolArray
) -> tuple[FloatArray, FloatArray]:
    """Return the changes (n, S) of p and (n,) of lam with  z dp - p du + p dlam = wanted  and  sum_s dp = 0.

    With y_s the changes of chances above slot s, dp_s = y_(s-1) - y_s. Unknowns go slot by slot, (lam, y_s), with one
    copy of lam a slot; equations go the same way: the slot's n, then n that make its copy of lam that of the next slot.
    """
    n, S = p.shape
    scale = 1.0 / (p + z)
    own, share = np.where(allowed, z * scale, 1.0).T, (p * scale).T
    diagonal = own[:, :, None] * np.eye(n)
    at_previous = diagonal - share[:, :, None] * inside
    at_own = -diagonal - share[:, :, None] * (above - inside)
    width, block = 2 * n - 1, 2 * n * np.arange(S)[:, None]
    system = np.zeros((2 * width + 1, 2 * n * S))

    def put(row: np.ndarray, column: np.ndarray, values: FloatArray | float) -> None:
        system[width + row - column, column] = values

    i = np.arange(n)
    row, column = block[:, :, None] + i[:, None], block[:, :, None] + i
    put(row[1:], column[1:] - n, at_previous[1:])
    put(row[:-1], column[:-1] + n, at_own[:-1])
    put(block + i, block + i, share)
    put(block[1:] - n + i, block[1:] + i, 1.0)
    put(block[1:] - n + i, block[:-1] + i, -1.0)
    put(block[-1:] + n + i, block[-1:] + n + i, 1.0)  # nobody stands above the last slot
    right = np.zeros((S, 2 * n))
    right[:, :n] = (wanted * scale).T
    found = solve_banded((width, width), system, right.ravel(), overwrite_ab=True, overwrite_b=True, check_finite=False)
    y = found.reshape(S, 2 * n)[:, n:]
    change = np.diff(np.vstack([np.zeros((1, n)), y]), axis=0).T
    return np.where(allowed, -change, 0.0), found[:n].copy()
