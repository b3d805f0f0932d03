"""Numbers of score curves and costs: what double precision can tell, as brackets that hold the true value.

A bracket ``(low, high)`` allows a few roundings for each operation that made it. Arrays of one call broadcast.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchwright._check import FloatArray

EPS = float(np.finfo(np.float64).eps)
ROUNDINGS = 8.0  # roundings, in units of EPS, that a closed form is allowed
LONGEST = 2.0**100  # no search goes beyond this effort
GROWTH = 16.0
HALVINGS = 58

Curve = Callable[[FloatArray, FloatArray], FloatArray]


def sigmoid(z: FloatArray) -> FloatArray:
    """Return 1 / (1 + exp(-z)), without overflow."""
    tail = np.exp(-np.abs(z))
    value: FloatArray = np.where(z >= 0, 1.0, tail) / (1.0 + tail)
    return value


def first_above(
    curve: Callable[[FloatArray, np.ndarray], FloatArray], target: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return brackets of the least x >= 0 beyond which non-decreasing functions exceed their targets.

    Parameters
    ----------
    curve
        ``curve(x, which)``: values (k,) at x (k,) of the functions ``which`` (k,) int.
    target : (P,)

    Returns
    -------
    low, high : (P,)
        The function is at most the target at ``low`` (both are 0 where it exceeds it at 0) and above it at ``high``,
        which is inf where it is not above it at 2^100.
    """
    low, high = np.zeros(target.size), np.full(target.size, np.inf)
    which = np.arange(target.size)
    above = curve(low, which) > target
    high[above] = 0.0
    which, top = which[~above], 1.0
    while which.size and top <= LONGEST:
        above = curve(np.full(which.size, top), which) > target[which]
        high[which[above]], low[which[~above]] = top, top
        which, top = which[~above], top * GROWTH
    which = np.flatnonzero(np.isfinite(high) & (high > 0))
    if not which.size:
        return low, high
    a, b, wanted = low[which], high[which], target[which]
    for _ in range(HALVINGS):
        middle = (a + b) / 2
        above = curve(middle, which) > wanted
        b, a = np.where(above, middle, b), np.where(above, a, middle)
    low[which], high[which] = a, b
    return low, high


def power_law(z: FloatArray, lower: FloatArray, upper: FloatArray) -> FloatArray:
    """Return L + (U - L) sigmoid(z)."""
    return lower + (upper - lower) * sigmoid(z)


def power_law_level(
    z: FloatArray, lower: FloatArray, upper: FloatArray, own_lower: FloatArray, own_upper: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return brackets of the z at which a curve between ``own_lower`` and ``own_upper`` has another curve's score.

    The other stands at z between ``lower`` and ``upper``. +inf where its score is not below ``own_upper``, -inf where
    it is not above ``own_lower``; equal where both bounds agree.
    """
    z, lower, upper, own_lower, own_upper = np.broadcast_arrays(z, lower, upper, own_lower, own_upper)
    span, tail, grow = upper - lower, 1.0 + np.abs(z), ROUNDINGS * EPS
    rise, fall = span * sigmoid(z), span * sigmoid(-z)
    above, below = (lower - own_lower) + rise, (own_upper - upper) + fall  # score - own L, own U - score
    slack_above = grow * (tail * rise + np.where(lower == own_lower, 0.0, np.abs(lower) + np.abs(own_lower)))
    slack_below = grow * (tail * fall + np.where(upper == own_upper, 0.0, np.abs(upper) + np.abs(own_upper)))
    with np.errstate(divide="ignore", invalid="ignore"):
        low = np.log(np.maximum(above - slack_above, 0.0)) - np.log(np.maximum(below + slack_below, 0.0))
        high = np.log(np.maximum(above + slack_above, 0.0)) - np.log(np.maximum(below - slack_below, 0.0))
    low = np.where(below + slack_below <= 0, np.inf, low)
    high = np.where(below - slack_below <= 0, np.inf, high)
    same = (lower == own_lower) & (upper == own_upper)
    return np.where(same, z, low), np.where(same, z, high)


def power_law_slope(
    alpha: FloatArray, beta: FloatArray, span: FloatArray, low: FloatArray, high: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return bounds of the slope of L + span sigmoid(alpha + beta log x) for x between ``low`` and ``high``."""
    z = alpha + beta * np.log(low), alpha + beta * np.log(high)
    ends = [sigmoid(part) * sigmoid(-part) for part in z]
    most = np.where((z[0] < 0) & (z[1] > 0), 0.25, np.maximum(*ends))
    slack = ROUNDINGS * EPS * (1.0 + np.abs(z[0]) + np.abs(z[1]))
    return span * beta * np.minimum(*ends) / high * (1 - slack), span * beta * most / low * (1 + slack)
