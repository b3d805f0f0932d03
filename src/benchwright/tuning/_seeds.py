"""The mean of item scores over seeds, and its standard error."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


def mean_over_seeds(scores: FloatArray, cluster: NDArray[np.int64]) -> tuple[float, float]:
    """Mean of scores (S, n) of S seeds on the same n items, and the standard error of it.

    The error is robust to items of a cluster moving together and to a seed moving all items: the variance of the mean
    by clusters, plus that by seeds, less what both hold (Cameron, Gelbach and Miller 2011), and never below the first.
    Seeds are few, so their part is rough. A mean of nothing but 0 or 1 gets the error of half an item.

    >>> mean, error = mean_over_seeds(np.array([[0.0, 1.0, 1.0, 0.0], [0.0, 1.0, 1.0, 1.0]]), np.arange(4))
    >>> round(mean, 3), round(error, 3)
    (0.625, 0.239)
    """
    seeds, n = scores.shape
    mean = float(scores.mean())
    off = scores - mean
    groups = int(cluster.max()) + 1
    by_cell: FloatArray = np.stack([np.bincount(cluster, row, groups).astype(np.float64) for row in off])
    items = _variance(by_cell.sum(axis=0), scores.size)
    variance = items
    if seeds > 1:
        variance = max(
            items, items + _variance(by_cell.sum(axis=1), scores.size) - _variance(by_cell.ravel(), scores.size)
        )
    if groups < 2 or variance == 0:
        inside = min(max(mean, 0.5 / n), 1 - 0.5 / n)
        return mean, float(np.sqrt(inside * (1 - inside) / n))
    return mean, float(np.sqrt(variance))


def _variance(sums: FloatArray, size: int) -> float:
    """Of a mean of ``size`` values from sums of deviations by group."""
    groups = sums.size
    return float((sums**2).sum()) / size**2 * groups / (groups - 1)
