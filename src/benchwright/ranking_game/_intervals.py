"""Disjoint closed intervals in order, as arrays (k, 2)."""

from __future__ import annotations

import numpy as np

from benchwright._check import FloatArray


def merged(low: FloatArray, high: FloatArray) -> FloatArray:
    """Union of closed intervals, as disjoint ones in order (k, 2)."""
    if not low.size:
        return np.empty((0, 2))
    order = np.argsort(low, kind="stable")
    low, reach = low[order], np.maximum.accumulate(high[order])
    first = np.concatenate([[True], low[1:] > reach[:-1]])
    last = np.concatenate([first[1:], [True]])
    return np.stack([low[first], reach[last]], axis=1)


def union(a: FloatArray, b: FloatArray) -> FloatArray:
    both = np.concatenate([a, b])
    return merged(both[:, 0], both[:, 1])


def without(a: FloatArray, b: FloatArray) -> FloatArray:
    """Parts of the intervals ``a`` outside ``b``; both disjoint and in order."""
    parts = []
    for low, high in a:
        at = low
        for start, stop in b:
            if stop <= at or start >= high:
                continue
            if start > at:
                parts.append((at, start))
            at = max(at, stop)
        if at < high:
            parts.append((at, high))
    return np.array(parts).reshape(-1, 2)


def split_ends(still_open: FloatArray, unstable: FloatArray, width: float) -> tuple[FloatArray, FloatArray]:
    """Open intervals that are no more than the end of an unstable one, and those that are more.

    An end is narrow, at most ``width`` relative to 1 + its place, and touches an unstable interval.
    """
    touches = np.array(
        [bool((np.abs(unstable - low) == 0).any() or (np.abs(unstable - high) == 0).any()) for low, high in still_open],
        dtype=bool,
    )
    narrow = still_open[:, 1] - still_open[:, 0] <= width * (1 + still_open[:, 1])
    end = touches & narrow
    return still_open[end], still_open[~end]


def grown(stable: FloatArray, ends: FloatArray) -> FloatArray:
    """Stable intervals with their ends moved to the middle of the cells that hold them."""
    grown = stable.copy()
    for low, high in ends:
        grown[:, 0] = np.where(grown[:, 0] == high, (low + high) / 2, grown[:, 0])
        grown[:, 1] = np.where(grown[:, 1] == low, (low + high) / 2, grown[:, 1])
    return grown
