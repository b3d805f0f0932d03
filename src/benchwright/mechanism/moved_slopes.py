"""Slopes that are not taken as estimated: how far they are moved, and how they are drawn.

The slope behind the weights is a + c (b - a), b the one that is estimated: a = 0 and c = 1 for least squares; a = 0 and
c the axis's scale where noise-corrected; for empirical Bayes a the mean of the task, c = tau^2 / (tau^2 + se^2). Draws
of the first two are c times the bootstrap's. Of the third c times the change would lack the posterior's spread: it is
drawn about the posterior mean with the posterior standard deviation sqrt(c) se, and what all errors of a task have in
common, which no shrinkage takes away, is kept in full. Scale and tau^2 are not drawn.
"""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import sparse

from benchwright._check import FloatArray
from benchwright.estimating import _resampling as resampling


def behind_the_weights(items: pl.DataFrame, axis: str, slopes: str) -> tuple[FloatArray, FloatArray]:
    """Return a and c (m, 1) with a + c (b - a) the slope behind the weights where b is the one that is estimated."""
    name = f"slope_{axis.lower()}"
    b = items[name].to_numpy()[:, None]
    if slopes == "noise-corrected":
        scale = np.divide(items[f"{name}_corrected"].to_numpy()[:, None], b, out=np.ones_like(b), where=b != 0)
        return np.zeros_like(b), scale
    if slopes == "empirical-bayes":
        share = np.square(items[f"{name}_eb_sd"].to_numpy() / items[f"{name}_se"].to_numpy())[:, None]
        apart = np.where(share < 1, 1 - share, 1.0)
        mean = np.where(share < 1, (items[f"{name}_eb"].to_numpy()[:, None] - share * b) / apart, b)
        return mean, share
    return np.zeros_like(b), np.ones_like(b)


def shrinkage_notes(items: pl.DataFrame, axes: tuple[str, ...], slopes: str) -> list[str]:
    """Say how far the slopes behind the weights were moved, axis by axis."""
    if slopes == "ols":
        return []
    shares = {axis: float(np.mean(1 - behind_the_weights(items, axis, slopes)[1])) for axis in axes}
    listed = ", ".join(f"{axis} {share:.1%}" for axis, share in shares.items())
    if slopes == "noise-corrected":
        return [f"Slopes are scaled so that noise does not inflate M, on average down by: {listed}."]
    return [f"Slopes are shrunk towards their task's mean; mean share of that mean in the slope: {listed}."]


def behind_draws(
    draw: resampling.Draw, items: pl.DataFrame, axis: str, kind: str, groups: NDArray[np.int64]
) -> resampling.Draw:
    """Return draws of the slopes behind the weights from those of the estimated ones."""
    _, share = behind_the_weights(items, axis, kind)
    if kind != "empirical-bayes":
        return lambda: share * draw()
    name = f"slope_{axis.lower()}"
    slope, best, error = (items[name + end].to_numpy() for end in ("", "_eb", "_se"))
    return shrunk_draws(draw, slope, best, share[:, 0], error, groups)


def shrunk_draws(
    draw: resampling.Draw,
    slope: FloatArray,
    best: FloatArray,
    share: FloatArray,
    error: FloatArray,
    groups: NDArray[np.int64],
) -> resampling.Draw:
    """Return draws of empirical-Bayes slopes, (m, CHUNK).

    With c = b* - b the change of an estimated ``slope`` and c_g its mean over the group, weighted as that of the slopes
    is: best + c_g + sqrt(share) (c - c_g). ``share`` is tau^2 / (tau^2 + error^2), the posterior variance over error^2.
    """
    codes = np.unique(groups, return_inverse=True)[1].ravel()
    weight = (1 - share) / np.square(error)  # 1 / (tau^2 + error^2)
    weight = np.where(np.bincount(codes, weight)[codes] > 0, weight, 1.0)
    part = weight / np.bincount(codes, weight)[codes]
    means = sparse.csr_array((part, (codes, np.arange(codes.size))))
    root = np.sqrt(share)[:, None]

    def drawn() -> FloatArray:
        change = draw() - slope[:, None]
        common = (means @ change)[codes]
        shrunk: FloatArray = best[:, None] + common + root * (change - common)
        return shrunk

    return drawn
