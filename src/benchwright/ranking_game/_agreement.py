"""Agreement of rankings: Kendall's tau-b of many tasks at once, with gaps, ties and weights of models.

Scores (T, n), T tasks and n models, higher better, NaN where missing. Pairs of models are P = n(n-1)/2.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from benchwright._check import FloatArray

IntArray = NDArray[np.intp]


def pair_signs(scores: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return which of two models is ahead, (T, P) in {-1, 0, 1}, and whether both have a score, (T, P) in {0, 1}."""
    i, j = np.triu_indices(scores.shape[1], 1)
    difference = scores[:, i] - scores[:, j]
    seen = np.isfinite(difference)
    return np.where(seen, np.sign(np.where(seen, difference, 0.0)), 0.0), seen.astype(np.float64)


def tau_matrix(signs: FloatArray, seen: FloatArray, weights: FloatArray) -> FloatArray:
    """Return tau-b (T, T) of all pairs of tasks over pairs of models that both have, weighted by (P,) >= 0.

    NaN where one task ties all such models, or there is none.
    """
    weighted = signs * weights
    agreement = weighted @ signs.T
    untied = (np.abs(weighted)) @ seen.T  # weight of pairs not tied in the row's task, and seen in the column's
    with np.errstate(divide="ignore", invalid="ignore"):
        tau: FloatArray = agreement / np.sqrt(untied * untied.T)
    return np.where((untied > 0) & (untied.T > 0), tau, np.nan)


def mean_off_diagonal(tau: FloatArray) -> float:
    """Mean over pairs of different tasks; undefined ones are left out. NaN where all are."""
    values = tau[np.triu_indices(tau.shape[0], 1)]
    defined = values[np.isfinite(values)]
    return float(defined.mean()) if defined.size else np.nan


def component_shares(scores: FloatArray) -> FloatArray:
    """Shares of variance of the principal components of standardised scores (T, n) without gaps, largest first.

    Tasks on which all models tie are left out.
    """
    varied = scores[scores.std(axis=1) > 0]
    if varied.shape[0] < 1 or varied.shape[1] < 2:
        return np.full(1, np.nan)
    standard = (varied - varied.mean(axis=1, keepdims=True)) / varied.std(axis=1, keepdims=True)
    variance = np.linalg.svd(standard, compute_uv=False) ** 2
    shares: FloatArray = variance / variance.sum()
    return shares
