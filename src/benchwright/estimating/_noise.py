"""Numbers behind seed noise: arrays in, arrays out. Scores are (m, R), items by runs, NaN where a cell is missing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from benchwright._check import FloatArray

IntArray = NDArray[np.int64]
BLOCK_ITEMS = 8192


def residuals(values: FloatArray, checkpoint: IntArray) -> FloatArray:
    """Return scores less their item's mean over the runs of the same checkpoint, shape (m, R).

    NaN where the cell is missing or alone in its checkpoint: one run says nothing of how runs differ. Exactly 0 where
    all runs of the checkpoint agree.
    """
    out = np.full(values.shape, np.nan)
    for t in np.unique(checkpoint):
        at = np.flatnonzero(checkpoint == t)
        block = values[:, at]
        known = ~np.isnan(block)
        n = known.sum(axis=1, keepdims=True)
        total = np.where(known, block, 0.0).sum(axis=1, keepdims=True)
        mean = np.divide(total, n, out=np.full(total.shape, np.nan), where=n > 1)
        with np.errstate(invalid="ignore"):
            low = np.where(known, block, np.inf).min(axis=1, keepdims=True)
            same = low == np.where(known, block, -np.inf).max(axis=1, keepdims=True)
        out[:, at] = block - np.where(same & (n > 1), low, mean)
    return out


def known_mean(block: FloatArray) -> FloatArray:
    """Return the mean of each row over its known cells, NaN where there is none."""
    known = ~np.isnan(block)
    n = known.sum(axis=1)
    total = np.where(known, block, 0.0).sum(axis=1)
    mean: FloatArray = np.divide(total, n, out=np.full(len(block), np.nan), where=n > 0)
    return mean


def pooled_variance(residual: FloatArray, checkpoint: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return sigma2 (m,) = sum_t SS_t / sum_t (n_t - 1), NaN without a pair of runs, and its divisor (m,)."""
    df, squares = np.zeros(len(residual)), np.zeros(len(residual))
    for t in np.unique(checkpoint):
        block = residual[:, checkpoint == t]
        known = ~np.isnan(block)
        df += np.maximum(known.sum(axis=1) - 1, 0)
        squares += np.square(np.where(known, block, 0.0)).sum(axis=1)
    return np.divide(squares, df, out=np.full(df.shape, np.nan), where=df > 0), df


@dataclass(frozen=True, slots=True, eq=False)
class SeedGrid:
    """Runs of one model that form a whole grid: ``runs`` (S, K) are columns of the scores, seeds by checkpoints."""

    runs: IntArray

    @property
    def seeds(self) -> int:
        """How many seeds."""
        return len(self.runs)

    @property
    def checkpoints(self) -> int:
        """How many checkpoints."""
        return int(self.runs.shape[1])


def dependence(residual: FloatArray, grid: SeedGrid) -> tuple[float, float]:
    """Return rho = (tr S)^2 / tr S^2 of the seeds' covariance S (K, K) over checkpoints, and tr S, root mean square
    over items.

    K where checkpoints of one seed are independent and equally noisy, 1 where a seed that starts high stays high. With
    S_tt' the sum of products over the seeds known at both checkpoints, over their number less 1 (nu, and h the mean of
    1 / nu), both traces are unbiased under normality and whole grids: E tr Shat^2 = (1 + h) tr S^2 + h (tr S)^2 and
    E (tr Shat)^2 = (tr S)^2 + 2 h tr S^2. NaN without an item with noise and two seeds at every pair of checkpoints.
    Where nu is 1 the two cannot be told apart: 1, the cautious end.
    """
    length = grid.checkpoints
    squares = traces = inverse = n_pairs = 0.0
    for start in range(0, len(residual), BLOCK_ITEMS):
        block = residual[start : start + BLOCK_ITEMS, grid.runs.ravel()].reshape(-1, grid.seeds, length)
        known = (~np.isnan(block)).astype(np.float64)
        spare = np.matmul(known.transpose(0, 2, 1), known) - 1
        enough = (spare >= 1).all(axis=(1, 2))
        filled, n = np.where(known > 0, block, 0.0), known.sum(axis=1, keepdims=True)
        mean = np.divide(filled.sum(axis=1, keepdims=True), n, out=np.zeros_like(n), where=n > 0)
        block, spare = (known * (filled - mean))[enough], spare[enough]  # a checkpoint may have runs beside the grid
        covariance = np.matmul(block.transpose(0, 2, 1), block) / spare
        squares += float(np.square(covariance).sum())
        traces += float(np.square(np.trace(covariance, axis1=1, axis2=2)).sum())
        inverse, n_pairs = inverse + float((1 / spare).sum()), n_pairs + spare.size
    if traces == 0:
        return np.nan, np.nan
    h = inverse / n_pairs
    scale, rho = 1 + h - 2 * h**2, 1.0
    if scale > 1e-9:
        tr_s2 = (squares - traces * h) / scale
        rho = float(np.clip((traces - 2 * tr_s2 * h) / tr_s2, 1.0, length)) if tr_s2 > 0 else float(length)
    return rho, float(np.sqrt(traces * length**2 / n_pairs / (1 + 2 * h / rho)))


def effective_share(residual: FloatArray, grids: list[SeedGrid]) -> float:
    """Return effective over nominal degrees of freedom of pooled variances (Satterthwaite 1946), in (0, 1].

    With nu_g = S_g - 1 seeds to spare, K_g checkpoints, tr_g the trace of model g's covariance and rho_g its
    dependence, df = (sum nu_g tr_g)^2 / sum (nu_g tr_g^2 / rho_g), over sum nu_g K_g. NaN where no grid tells.
    """
    nominal = total = spread = 0.0
    for grid in grids:
        rho, size = dependence(residual, grid)
        if np.isnan(rho):
            continue
        nu = grid.seeds - 1
        nominal, total, spread = nominal + nu * grid.checkpoints, total + nu * size, spread + nu * size**2 / rho
    return min(1.0, total**2 / spread / nominal) if spread > 0 else np.nan


def variance_interval(sigma2: FloatArray, df: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
    """Return df sigma2 / chi-square quantiles, NaN where df is 0 or unknown."""
    with np.errstate(invalid="ignore", divide="ignore"):
        tail = (1 - level) / 2
        low = df * sigma2 / stats.chi2.isf(tail, df)
        high = df * sigma2 / stats.chi2.ppf(tail, df)
    return np.where(df > 0, low, np.nan), np.where(df > 0, high, np.nan)


@dataclass(frozen=True, slots=True, eq=False)
class Components:
    """Variance of scores over seeds, (m,) or (1,): between seeds, and seed x checkpoint with all that remains.

    Estimates are unbiased and may be negative where the truth is near 0.
    """

    seed: FloatArray
    remainder: FloatArray


def components(values: FloatArray, grid: SeedGrid) -> Components:
    """Split the variance over seeds by a two-way analysis (seeds x checkpoints) for items with the whole grid."""
    seeds, length = grid.seeds, grid.checkpoints
    cells = values[:, grid.runs.ravel()].reshape(-1, seeds, length)
    centred = cells - cells.mean(axis=1, keepdims=True)
    of_seed = centred.mean(axis=2)
    with np.errstate(invalid="ignore", divide="ignore"):
        between = length * np.square(of_seed).sum(axis=1) / (seeds - 1)
        rest = np.square(centred - of_seed[:, :, None]).sum(axis=(1, 2)) / ((seeds - 1) * (length - 1))
        return Components(seed=(between - rest) / length, remainder=rest)


@dataclass(frozen=True, slots=True, eq=False)
class NoiseFactor:
    """Seed covariance as diag(variance) + factor factor', (m,) and (m, q), and the weight of its diagonal target."""

    variance: FloatArray
    factor: FloatArray
    shrinkage: float


def shrunk_covariance(residual: FloatArray, df: float, seed: IntArray) -> NoiseFactor:
    """Shrink the seed covariance of items E E' / df towards its diagonal (Schaefer and Strimmer 2005).

    ``residual`` (m, N) has no gaps; ``seed`` (N,) says which columns are of one training: those are no independent
    draws, so their products are summed first. With u = r / sqrt(df), w_ijs = sum_{n in s} u_in u_jn and s_ij = sum_s
    w_ijs over G trainings, the intensity is sum_{i != j} Var(s_ij) / sum_{i != j} s_ij^2, clipped to [0, 1], with
    Var(s_ij) = G / (G - 1) (sum_s w_ijs^2 - s_ij^2 / G); all sums come from N x N products. Returns (1 - lambda) E E'
    / df + lambda diag(s_ii); m x m matrices are never formed.
    """
    unit = residual / np.sqrt(df)
    squares = np.square(unit)
    variances = squares.sum(axis=1)
    gram = np.square(unit.T @ unit)
    off = float(gram.sum() - np.square(variances).sum())
    seeds = np.unique(seed)
    count = len(seeds)
    together = 0.0
    for one in seeds:
        at = seed == one
        together += float(gram[np.ix_(at, at)].sum() - np.square(squares[:, at].sum(axis=1)).sum())
    shrinkage = 1.0
    if count > 1 and off > 0:
        spread = max(together - off / count, 0.0) * count / (count - 1)
        shrinkage = float(np.clip(spread / off, 0.0, 1.0))
    return NoiseFactor(
        variance=shrinkage * variances,
        factor=np.ascontiguousarray(np.sqrt(1 - shrinkage) * unit),
        shrinkage=shrinkage,
    )


def average_covariance(residual: FloatArray, df: float) -> tuple[float, float]:
    """Return the mean variance and the mean covariance of two items over runs of one checkpoint.

    With m items, mean variance v and mean covariance c, the mean of any m' of them varies by v / m' + (1 - 1 / m') c.
    """
    m = len(residual)
    v = float(np.square(residual).sum()) / df / m
    together = float(np.square(residual.sum(axis=0)).sum()) / df
    return v, (together - m * v) / (m * (m - 1)) if m > 1 else np.nan


def t_ends(estimate: FloatArray, error: FloatArray, df: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
    """Return the ends of t intervals; NaN where an error is."""
    with np.errstate(invalid="ignore"):
        half = stats.t.isf((1 - level) / 2, df) * error
    return estimate - half, estimate + half
