"""The neutral point at which rewarding the plain average turns from help to harm, and how sure it is.

With M = A A' / c0 and uniform u, u'M(w - t 1) is linear in the neutral point t, so it turns sign at

    t* = u'Mw / u'M1 = (1'A)(A'w) / |A'1|^2,

whatever the curvature and the risk aversion. Below t* the plain average helps, above it harms. Its interval
resamples whole tasks; the slopes' own sampling error is not in it and would widen it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchwright._check import FloatArray
from benchwright.auditing import _kernels as kernels
from benchwright.auditing._kernels import IntArray


@dataclass(frozen=True, slots=True)
class BreakEven:
    """One framing's break-even neutral point on [1,5], with a percentile interval over resampled tasks.

    NaN where the plain average moves nothing; the interval is NaN with fewer than two tasks.
    """

    point: float
    interval: tuple[float, float]
    level: float

    def settles(self, neutral: float) -> bool:
        """Whether the interval leaves no doubt on which side of the break-even ``neutral`` lies."""
        low, high = self.interval
        return neutral < low or neutral > high


def break_even(
    technology: FloatArray,
    welfare: FloatArray,
    tasks: IntArray,
    *,
    replicates: int,
    level: float,
    rng: np.random.Generator,
) -> BreakEven:
    """Return the break-even neutral point of the plain average.

    Parameters
    ----------
    technology
        A (m, n), score per dollar.
    welfare
        Welfare on [1,5] before the neutral point is taken off, shape (m,).
    tasks
        Task of each item as codes 0..c-1, shape (m,).
    replicates, level, rng
        Task bootstraps, level of the interval, source of randomness.
    """
    n_tasks, n = int(tasks.max()) + 1, technology.shape[1]
    sums = kernels.cluster_sums(np.hstack([technology, technology * welfare[:, None]]), tasks, n_tasks)
    point = float(_turning(sums.sum(axis=0)[None], n)[0])
    if n_tasks < 2 or not np.isfinite(point):
        return BreakEven(point, (np.nan, np.nan), level)
    drawn = np.concatenate(
        [
            _turning(kernels.bootstrap_counts(n_tasks, size, rng) @ sums, n)
            for size in kernels.blocks(replicates, n_tasks)
        ]
    )
    tail = (1 - level) / 2
    low, high = np.nanquantile(drawn, [tail, 1 - tail])
    return BreakEven(point, (float(low), float(high)), level)


def _turning(totals: FloatArray, n: int) -> FloatArray:
    """Return (1'A)(A'w) / |A'1|^2 from rows of [A'1, A'w], shape (b, 2 n)."""
    pull = totals[:, :n]
    size = np.einsum("ij,ij->i", pull, pull)
    turning: FloatArray = np.full(len(totals), np.nan)
    np.divide(np.einsum("ij,ij->i", pull, totals[:, n:]), size, out=turning, where=size > 0)
    return turning
