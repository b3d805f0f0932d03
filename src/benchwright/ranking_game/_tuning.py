"""Numbers over levels of tuning: order statistics that know infinity, and the slope of a growth."""

from __future__ import annotations

import numpy as np

from benchwright._check import FloatArray


def band(values: FloatArray, level: float) -> FloatArray:
    """Return the percentile band (..., 2) of draws (B, ...): order statistics, so that inf may be an end.

    Draws that are NaN may be anything: they count as 0 at the lower end and as inf at the upper.
    """
    tail = (1.0 - level) / 2.0
    low = quantile(np.where(np.isnan(values), 0.0, values), tail)
    high = quantile(np.where(np.isnan(values), np.inf, values), 1.0 - tail)
    return np.stack([low, high], axis=-1)


def quantile(values: FloatArray, at: float) -> FloatArray:
    """Return the least value (...) that at least a share ``at`` of draws (B, ...) do not exceed; no NaN among them."""
    size = values.shape[0]
    rank = min(max(int(np.ceil(at * size - 1e-9)), 1), size)
    result: FloatArray = np.sort(values, axis=0)[rank - 1]
    return result


def least_interval(draws: FloatArray, level: float) -> FloatArray:
    """Return an interval (2,) of the least size over pairs in truth, from draws (B, P) of signed quantities.

    The lower end is the least over pairs of what each pair's own percentile interval leaves of its size, 0 where its
    sign is open: the truth's least pair is one of them. The upper end is the least over pairs of each pair's upper
    percentile. As that picks the pair that noise made small, its tail is divided by the number of pairs whose
    intervals reach down to it (Bonferroni).
    """
    tail = (1.0 - level) / 2.0
    size = np.abs(draws)
    low = np.maximum(np.maximum(quantile(draws, tail), -quantile(draws, 1.0 - tail)), 0.0)
    rivals = low <= quantile(size, 1.0 - tail).min()
    high = quantile(size[:, rivals], 1.0 - tail / max(int(rivals.sum()), 1))
    return np.array([low.min(), high.min()])


def growth(deltas: FloatArray, effort: FloatArray) -> FloatArray:
    """Return the slopes (...) of log effort (..., D) over log(1 + Delta) (D,), by least squares.

    Efforts that are not finite and positive are left aside; NaN where fewer than two levels remain.
    """
    used = np.isfinite(effort) & (effort > 0)
    x = np.broadcast_to(np.log1p(deltas), effort.shape)
    y = np.log(np.where(used, effort, 1.0))
    n = used.sum(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        x = np.where(used, x - (x * used).sum(axis=-1, keepdims=True) / n[..., None], 0.0)
        slope: FloatArray = (x * y).sum(axis=-1) / (x * x).sum(axis=-1)
    return np.where(n >= 2, slope, np.nan)
