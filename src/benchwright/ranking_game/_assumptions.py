"""Numbers of the checks of assumptions: runs on a grid, their ends, gaps to a concave envelope, falls."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from benchwright._check import FloatArray

BoolArray = NDArray[np.bool_]
IndexArray = NDArray[np.intp]
HALVINGS = 50


def log_grid(top: float, points: int) -> FloatArray:
    """Return ``points`` efforts from 0 to ``top``, evenly spaced in log(1 + effort)."""
    grid = np.expm1(np.linspace(0.0, np.log1p(top), points))
    grid[-1] = top
    return grid


def runs(marked: BoolArray) -> tuple[IndexArray, IndexArray, IndexArray]:
    """Return row, first and last column of each stretch of marked entries, rows in order."""
    edge = np.zeros((marked.shape[0], 1), dtype=np.int8)
    change = np.diff(marked.astype(np.int8), axis=1, prepend=edge, append=edge)
    row, first = np.nonzero(change == 1)
    return row, first, np.nonzero(change == -1)[1] - 1


def boundary(inside: FloatArray, outside: FloatArray, test: Callable[[FloatArray], BoolArray]) -> FloatArray:
    """Return where a test (k,) turns from true at ``inside`` to false at ``outside``, by halving."""
    a, b = inside.copy(), outside.copy()
    for _ in range(HALVINGS):
        middle = (a + b) / 2
        holds = test(middle)
        a, b = np.where(holds, middle, a), np.where(holds, b, middle)
    return a


def concave_gap(x: FloatArray, y: FloatArray) -> FloatArray:
    """Return the least concave function above the points (x, y) less y (G,); x strictly increases."""
    hull = [0]
    for k in range(1, x.size):
        while len(hull) > 1:
            i, j = hull[-2], hull[-1]
            if (y[j] - y[i]) * (x[k] - x[i]) > (y[k] - y[i]) * (x[j] - x[i]):
                break
            hull.pop()
        hull.append(k)
    gap: FloatArray = np.interp(x, x[hull], y[hull]) - y
    return gap


def convex_steps(x: FloatArray, y: FloatArray, rounding: FloatArray | np.float64) -> BoolArray:
    """Return which inner points (n, G - 2) of curves (n, G) lie below their neighbours' chord, beyond rounding."""
    share = (x[1:-1] - x[:-2]) / (x[2:] - x[:-2])
    with np.errstate(invalid="ignore"):  # a cost may be too large for a number
        chord = y[:, :-2] + share * (y[:, 2:] - y[:, :-2])
        below: BoolArray = chord - y[:, 1:-1] > rounding
    return below


def falls(low: FloatArray, high: FloatArray) -> tuple[FloatArray, IndexArray]:
    """Return the largest sure fall (P,) along brackets (P, G), and the column of its end; at most 0 is no fall.

    A fall is sure where the high end is below an earlier low end.
    """
    with np.errstate(invalid="ignore"):
        fall = np.maximum.accumulate(low, axis=1) - high
    fall = np.where(np.isnan(fall), -np.inf, fall)
    return fall.max(axis=1), fall.argmax(axis=1)
