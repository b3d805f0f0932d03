"""Numbers behind agreement of judges: rank-biased overlap of lists, Krippendorff's alpha of sets, per item.

Lists are rows of activity codes in rank order, (m, K), filled with -1 at the end; a code appears once in a row.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from benchwright._check import FloatArray

IntArray = NDArray[np.int64]


def rank_biased_overlap(first: IntArray, second: IntArray, p: float) -> FloatArray:
    """Return the extrapolated rank-biased overlap of each row's two lists, (m,); NaN where one is empty.

    Lists of s <= l entries, X_d of them shared at depth d:
    (1 - p) / p [sum_{d <= l} p^d X_d / d + sum_{s < d <= l} p^d X_s (d - s) / (s d)] + p^l [(X_l - X_s) / l + X_s / s].
    Source: Webber, Moffat and Zobel (2010), ACM TOIS 28(4), equation 32.
    """
    depth = np.arange(1, first.shape[1] + 1)
    same = (first[:, :, None] == second[:, None, :]) & (first[:, :, None] >= 0)
    shared = np.einsum("mdd->md", same.cumsum(axis=1).cumsum(axis=2)).astype(float)
    sizes = np.stack([(first >= 0).sum(axis=1), (second >= 0).sum(axis=1)])
    short, long = sizes.min(axis=0)[:, None], sizes.max(axis=0)[:, None]
    rows = np.arange(len(first))[:, None]
    at_short, at_long = (shared[rows, np.maximum(end, 1) - 1] for end in (short, long))
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(depth <= long, shared / depth, 0.0)
        terms += np.where((depth > short) & (depth <= long), at_short * (depth - short) / (short * depth), 0.0)
        beyond = (at_long - at_short) / long + at_short / short
    overlap = (1 - p) / p * (terms * p**depth).sum(axis=1, keepdims=True) + beyond * p**long
    return np.where(short[:, 0] > 0, overlap[:, 0], np.nan)


def disagreement(members: NDArray[np.bool_], known: NDArray[np.bool_]) -> FloatArray:
    """Return per item what :func:`alpha` adds up, (m, 3): observed disagreement, values 1, values in all.

    ``members`` (J, m, G): whether judge j lists activity g for item i; ``known`` (J, m): whether j judged i. A unit is
    an item and an activity; items of fewer than two judges take no part.
    """
    judges = known.sum(axis=0)
    paired = judges >= 2
    ones = (members & known[:, :, None]).sum(axis=0)
    pairs = 2 * ones * (judges[:, None] - ones)
    observed = pairs.sum(axis=1) / np.maximum(judges - 1, 1)
    return np.where(paired, [observed, ones.sum(axis=1), judges * members.shape[2]], 0.0).T


def alpha(sums: FloatArray) -> FloatArray:
    """Return Krippendorff's alpha (nominal, two values) from sums over items (..., 3); NaN where all values are alike.

    alpha = 1 - D_o / D_e, D_o = observed / n, D_e = 2 n_1 n_0 / (n (n - 1)). Source: Krippendorff (2011), Computing
    Krippendorff's Alpha-Reliability.
    """
    observed, ones, n = np.moveaxis(sums, -1, 0)
    expected = 2 * ones * (n - ones)
    ratio = np.divide(observed * (n - 1), expected, out=np.full(np.shape(expected), np.nan), where=expected > 0)
    value: FloatArray = 1 - ratio
    return value
