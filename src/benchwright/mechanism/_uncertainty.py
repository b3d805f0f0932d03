"""Order statistics of many draws of weights, kept a chunk at a time: memory is that of the tails, not of the draws."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from benchwright._check import FloatArray

CHUNK = 32  # draws that wait before the tails are sorted again
ITEM_BLOCK = 2048  # items at a time, so that a block stays in the processor's cache
ROUNDING = 1e-14  # relative to the greatest weight: below it there is none
SAME = 1e-9  # relative: weights, or shares, that are closer than this are the same
BoolArray = NDArray[np.bool_]


class Tails:
    """The k smallest and the k largest of many values of m items; NaN takes no part.

    >>> tails = Tails(1, 2)
    >>> tails.add(np.array([[5.0, 1.0, 4.0, 2.0, 3.0]]))
    >>> tails.ends()
    (array([2.]), array([4.]))
    """

    def __init__(self, m: int, k: int) -> None:
        self.low, self.high = np.full((m, k), np.inf), np.full((m, k), -np.inf)

    def add(self, drawn: FloatArray) -> None:
        """Take in values (m, b)."""
        k = self.low.shape[1]
        for start in range(0, len(drawn), ITEM_BLOCK):
            rows = slice(start, start + ITEM_BLOCK)
            unknown = np.isnan(drawn[rows])
            low = np.hstack([self.low[rows], np.where(unknown, np.inf, drawn[rows])])
            high = np.hstack([self.high[rows], np.where(unknown, -np.inf, drawn[rows])])
            self.low[rows] = np.partition(low, k - 1, axis=1)[:, :k]
            self.high[rows] = np.partition(high, high.shape[1] - k, axis=1)[:, -k:]

    def ends(self, k: int | None = None) -> tuple[FloatArray, FloatArray]:
        """Return the k-th smallest and the k-th largest value of each item, NaN where there are fewer than k.

        ``k`` may lie below that of the tails, which is taken by default; NaN at 0.
        """
        kept = self.low.shape[1]
        k = kept if k is None else k
        if k < 1:
            return np.full(len(self.low), np.nan), np.full(len(self.low), np.nan)
        low = np.partition(self.low, k - 1, axis=1)[:, k - 1]
        high = np.partition(self.high, kept - k, axis=1)[:, kept - k]
        return np.where(np.isfinite(low), low, np.nan), np.where(np.isfinite(high), high, np.nan)


class Spread:
    """What draws of one kind of weights say of their point estimate (m,)."""

    def __init__(self, point: FloatArray, k: int, top: int) -> None:
        m = point.size
        self.weight, self.share = Tails(m, k), Tails(m, k)
        self.waiting = np.empty((2, m, CHUNK))  # weights and shares
        self.held = 0
        self.positive, self.kept, self.heavy, self.in_top = (np.zeros(m) for _ in range(4))
        self.dropped = ~carries(point)
        self.top = min(top, int(np.count_nonzero(point > 0)))
        self.first = among_heaviest(point, self.top)
        self.overlap = self.same_dropped = 0.0
        self.n_dropped = 0  # draws that, or whose point estimate, drop an item
        self.n = self.idle = 0

    def add(self, weights: FloatArray, shares: FloatArray) -> None:
        """Take in one draw (m,); shares are NaN where all weights are 0."""
        self.waiting[:, :, self.held] = weights, shares
        self.heavy += against_uniform(shares) > 0
        self.held += 1
        self.n += 1
        kept = carries(weights)
        self.positive += kept & (weights > 0)
        self.kept += kept
        self.idle += int(not kept.any())
        dropped = ~kept
        either = int(np.count_nonzero(dropped | self.dropped))
        if either:
            self.n_dropped += 1
            self.same_dropped += np.count_nonzero(dropped & self.dropped) / either
        if self.top:
            first = among_heaviest(weights, self.top)
            self.in_top += first
            self.overlap += float(np.minimum(first, self.first).sum()) / self.top
        if self.held == CHUNK:
            self.flush()

    def flush(self) -> None:
        """Sort what waits into the tails."""
        for tails, drawn in zip((self.weight, self.share), self.waiting, strict=True):
            tails.add(drawn[:, : self.held])
        self.held = 0


def carries(weights: FloatArray) -> BoolArray:
    """Return which weights differ from 0 beyond rounding."""
    kept: BoolArray = np.abs(weights) > ROUNDING * float(np.abs(weights).max())
    return kept


def against_uniform(shares: FloatArray) -> FloatArray:
    """Return 1 where a share exceeds 1 / m beyond rounding, -1 where it lies below, else 0; the last axis is items."""
    excess = shares * shares.shape[-1] - 1
    sign: FloatArray = np.where(np.abs(excess) > SAME, np.sign(excess), 0.0)
    return sign


def among_heaviest(weights: FloatArray, top: int) -> FloatArray:
    """Return 1 for the ``top`` heaviest weights that are positive, 0 for the others, (m,).

    Weights that tie for the last places share them in equal parts.

    >>> among_heaviest(np.array([3.0, 2.0, 2.0, 0.0, 2.0]), 2)
    array([1.        , 0.33333333, 0.33333333, 0.        , 0.33333333])
    """
    if top == 0:
        return np.zeros(weights.size)
    last = float(np.partition(weights, weights.size - top)[weights.size - top])
    if last <= 0:
        return (weights > 0).astype(np.float64)
    above, tied = weights > last * (1 + SAME), np.abs(weights - last) <= SAME * last
    left = (top - np.count_nonzero(above)) / np.count_nonzero(tied)
    return np.where(above, 1.0, np.where(tied, left, 0.0))


def tail_ends(values: FloatArray, k: int) -> tuple[float, float, float]:
    """Return the k-th smallest, the median and the k-th largest of values (B,); NaN where k is 0.

    >>> tail_ends(np.array([3.0, 1.0, 2.0, 5.0, 4.0]), 1)
    (1.0, 3.0, 5.0)
    """
    if k < 1:
        return np.nan, np.nan, np.nan
    ordered = np.sort(values)
    return float(ordered[k - 1]), float(np.median(ordered)), float(ordered[-k])
