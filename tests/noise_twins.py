"""Plain loops that the tests hold the noise kernels against."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan, nan, sqrt

import numpy as np

from benchwright.estimating import _noise as kernel


def rho_of(residual: np.ndarray, grid: kernel.SeedGrid) -> float:
    return kernel.dependence(residual, grid)[0]


def plain_dependence(residual: np.ndarray, grid: kernel.SeedGrid) -> tuple[float, float]:
    """(tr S)^2 over tr S^2, and the root mean square of tr S, a pair of checkpoints at a time, over the seeds known at
    both."""
    squared, square, inverse, items = 0.0, 0.0, [], 0
    for row in residual:
        cells = row[grid.runs]
        length = cells.shape[1]
        spare = [[sum(~np.isnan(cells[:, t] * cells[:, u])) - 1 for u in range(length)] for t in range(length)]
        if min(map(min, spare)) < 1:
            continue
        away = cells - np.nanmean(cells, axis=0)
        S = np.array([[np.nansum(away[:, t] * away[:, u]) / spare[t][u] for u in range(length)] for t in range(length)])
        squared, square = squared + (S**2).sum(), square + np.trace(S) ** 2
        inverse += [1 / n for pairs in spare for n in pairs]
        items += 1
    if square == 0:
        return nan, nan
    h, rho = float(np.mean(inverse)), 1.0
    if 1 + h - 2 * h**2 > 1e-9:
        unbiased = (squared - h * square) / (1 + h - 2 * h**2)
        rho = min(max((square - 2 * h * unbiased) / unbiased, 1.0), length) if unbiased > 0 else float(length)
    return rho, sqrt(square / items / (1 + 2 * h / rho))


def plain_share(residual: np.ndarray, grids: list[kernel.SeedGrid]) -> float:
    """Satterthwaite's df of a sum of independent mean squares, over the nominal df."""
    parts = [(grid.seeds - 1, *plain_dependence(residual, grid), grid.checkpoints) for grid in grids]
    total = sum(nu * size for nu, _, size, _ in parts)
    return total**2 / sum(nu * size**2 / rho for nu, rho, size, _ in parts) / sum(nu * k for nu, _, _, k in parts)


def plain_residuals(row: Sequence[float], checkpoint: Sequence[int]) -> list[float]:
    out = []
    for value, own in zip(row, checkpoint, strict=True):
        peers = [other for other, its in zip(row, checkpoint, strict=True) if its == own and not isnan(other)]
        out.append(value - sum(peers) / len(peers) if len(peers) > 1 and not isnan(value) else nan)
    return out


def plain_traces(block: np.ndarray, grid: kernel.SeedGrid) -> list[tuple[float, float]]:
    """Unbiased tr S^2 and (tr S)^2 of each whole item, from its dense covariance."""
    nu, out = grid.seeds - 1, []
    for row in block:
        cells = row[grid.runs]
        if not np.isnan(cells).any():
            S = sum(np.outer(one, one) for one in cells) / nu
            a, b = np.trace(S @ S), np.trace(S) ** 2
            squared = (a - b / nu) / (1 + 1 / nu - 2 / nu**2)
            out.append((float(squared), float(b - 2 * squared / nu)))
    return out
