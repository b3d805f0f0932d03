"""Numbers behind slopes: one regression of score on dose per item, many items at once, gaps allowed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchwright._check import FloatArray

IntArray = NDArray[np.int64]
BLOCK_ITEMS = 8192
NEWTON_STEPS = 40
NEWTON_TOLERANCE = 1e-10
LEVERAGE_ROOM = 1e-9
ROUNDING = 1e-12  # of the largest score: what a line leaves of scores that lie on it
MAX_STEP = 2.0  # of standardised coefficients: a longer Newton step is cut


@dataclass(frozen=True, slots=True, eq=False)
class Fits:
    """One line a row: (m,) arrays; NaN where an item has no two doses (slope) or no degree of freedom left (errors).

    ``df`` belongs to ``standard_error``; ``residual_variance`` has divisor n - 2.
    """

    slope: FloatArray
    intercept: FloatArray
    standard_error: FloatArray
    df: FloatArray
    residual_variance: FloatArray
    n: IntArray
    n_doses: IntArray


def fit_lines(y: FloatArray, x: FloatArray, *, errors: str = "ols", cluster: IntArray | None = None) -> Fits:
    """Fit y_ij = a_i + b_i x_j + e_ij by least squares for every row of ``y`` (m, R) over its known cells.

    ``errors``: "ols" (equal variances, n - 2 degrees of freedom), "hc3" (MacKinnon and White 1985, robust to unequal
    ones), "seed" (clusters of runs: sums of scores by cluster with G / (G - 1), G - 1 degrees of freedom; in a grid
    that all seeds share, the spread of the seeds' own slopes). Blocks of rows, so memory stays flat.
    """
    parts = [_fit_block(y[rows], x, errors, cluster) for rows in blocks(len(y))]
    names = Fits.__dataclass_fields__
    return Fits(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in names})


def blocks(n: int) -> Iterator[slice]:
    """Yield slices of at most ``BLOCK_ITEMS`` rows; one empty slice where there are none."""
    for start in range(0, max(n, 1), BLOCK_ITEMS):
        yield slice(start, start + BLOCK_ITEMS)


def _fit_block(y: FloatArray, x: FloatArray, errors: str, cluster: IntArray | None) -> Fits:
    known = ~np.isnan(y)
    whole = bool(known.all())
    n = known.sum(axis=1)
    u = x - (x.mean() if len(x) else 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        if whole:
            mean_u, mean_y = np.full(len(y), u.mean() if len(u) else np.nan), y.mean(axis=1)
            deviation = np.broadcast_to(u - u.mean() if len(u) else u, y.shape)
            centred = y - mean_y[:, None]
        else:
            mean_u, mean_y = known @ u / n, np.where(known, y, 0.0).sum(axis=1) / n
            deviation = np.where(known, u - mean_u[:, None], 0.0)
            deviation = np.where(known, deviation - (deviation.sum(axis=1) / n)[:, None], 0.0)  # far doses cost digits
            centred = np.where(known, y - mean_y[:, None], 0.0)
        n_doses = _distinct_doses(known, x)
        sxx = np.where(n_doses > 1, np.einsum("ij,ij->i", deviation, deviation), np.nan)
        floor = ROUNDING * np.fmax(np.fmax.reduce(y, axis=1), -np.fmin.reduce(y, axis=1))
        rounding = floor * np.abs(deviation).sum(axis=1)
        product = np.einsum("ij,ij->i", deviation, centred)
        slope = np.where(np.abs(product) <= rounding, 0.0, product) / sxx  # gains and losses that cancel are no rise
        error = centred - slope[:, None] * deviation
        squares, left = np.einsum("ij,ij->i", error, error), n - 2.0
        squares = np.where(squares <= n * floor**2, 0.0, squares)  # on the line, up to rounding
        variance = np.where(left > 0, squares / left, np.nan)
        if errors == "ols":
            se, df = np.sqrt(variance / sxx), left
        elif errors == "hc3":
            hat = (1.0 / n)[:, None] + deviation**2 / sxx[:, None]
            hat = np.where(known & (hat > 1 - LEVERAGE_ROOM), np.nan, hat)  # a lone dose is fitted exactly
            se, df = np.sqrt(np.square(deviation * error / (1 - hat)).sum(axis=1)) / sxx, left
        elif errors == "seed":
            groups = np.arange(y.shape[1]) if cluster is None else cluster
            se, df = _cluster_errors(deviation * error, known, x, sxx, groups, rounding)
        else:
            raise ValueError(f"errors must be ols, hc3 or seed, got {errors}")
    judged = np.isfinite(se) & (left > 0) & (df > 0)
    return Fits(
        slope=slope,
        intercept=mean_y - slope * (mean_u + (x.mean() if len(x) else 0.0)),
        standard_error=np.where(judged, se, np.nan),
        df=np.where(judged, df, np.nan),
        residual_variance=variance,
        n=n.astype(np.int64),
        n_doses=n_doses,
    )


def _distinct_doses(known: NDArray[np.bool_], x: FloatArray) -> IntArray:
    """Return how many different doses each row has."""
    count = np.zeros(len(known), dtype=np.int64)
    for dose in np.unique(x):
        count += known[:, x == dose].any(axis=1)
    return count


def _cluster_errors(
    scores: FloatArray, known: NDArray[np.bool_], x: FloatArray, sxx: FloatArray, groups: IntArray, floor: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return errors from sums of scores by cluster; NaN where no cluster has two doses: they say nothing then.

    Sums of no more than ``floor`` (m,) are rounding, and 0.
    """
    total, present = np.zeros(len(scores)), np.zeros(len(scores))
    several = np.zeros(len(scores), dtype=np.bool_)
    for group in np.unique(groups):
        at = groups == group
        own = scores[:, at].sum(axis=1)
        total += np.where(np.abs(own) > floor, own, 0.0) ** 2
        present += known[:, at].any(axis=1)
        several |= _distinct_doses(known[:, at], x[at]) > 1
    correction = np.divide(present, present - 1, out=np.full(present.shape, np.nan), where=present > 1)
    return np.where(several, np.sqrt(total * correction) / sxx, np.nan), present - 1


def fitted_residuals(y: FloatArray, x: FloatArray, fits: Fits) -> FloatArray:
    """Return y - a - b x, scaled by sqrt(n / (n - 2)) so that their mean square is the residual variance."""
    scale = np.sqrt(np.divide(fits.n, fits.n - 2, out=np.full(len(y), np.nan), where=fits.n > 2))
    residual: FloatArray = (y - fits.intercept[:, None] - fits.slope[:, None] * x) * scale[:, None]
    return residual


def seed_scores(y: FloatArray, x: FloatArray, fits: Fits, cluster: IntArray) -> FloatArray:
    """Return u_is = sqrt(S_i / (S_i - 1)) sum_j (x_j - mean) e_ij / Sxx over the runs j of seed s, (m, S).

    Levers and the number S_i of seeds are those of the runs that an item has; NaN with fewer than two seeds.
    """
    seeds = np.unique(cluster)
    out = np.empty((len(y), len(seeds)))
    for rows in blocks(len(y)):
        known = ~np.isnan(y[rows])
        n = known.sum(axis=1, keepdims=True)
        with np.errstate(invalid="ignore", divide="ignore"):
            lever = np.where(known, x - (known @ x)[:, None] / n, 0.0)
            error = np.where(known, y[rows] - fits.intercept[rows, None] - fits.slope[rows, None] * x, 0.0)
            parts = lever * error / np.square(lever).sum(axis=1, keepdims=True)
            present = np.zeros(len(known))
            for place, seed in enumerate(seeds):
                at = cluster == seed
                out[rows, place] = parts[:, at].sum(axis=1)
                present += known[:, at].any(axis=1)
            out[rows] *= np.where(present > 1, np.sqrt(present / (present - 1)), np.nan)[:, None]
    return out


def logit_slopes(y: FloatArray, x: FloatArray) -> FloatArray:
    """Return the mean slope in score of a logistic curve fitted to proportions y (m, R), NaN for rows outside [0, 1].

    Fractional logit (Papke and Wooldridge 1996) with Firth's (1993) penalty, which keeps it finite where all cells are
    0 or 1; Newton's method on all items at once. The slope is the average of b p_j (1 - p_j) over the item's own cells.
    The penalty counts each cell as one draw of 0 or 1, so it pulls slopes of a few graded scores towards 0.
    """
    return np.concatenate([_logit_block(y[rows], x) for rows in blocks(len(y))])


def _logit_block(y: FloatArray, x: FloatArray) -> FloatArray:
    known = ~np.isnan(y)
    scale = float(x.std()) if len(x) and x.std() > 0 else 1.0
    u = (x - x.mean()) / scale if len(x) else x
    valid = (_distinct_doses(known, x) > 1) & ~((y < 0) | (y > 1)).any(axis=1)
    out = np.full(len(y), np.nan)
    if not valid.any():
        return out
    weight = known[valid].astype(np.float64)
    target = np.where(known[valid], y[valid], 0.0)
    a, b = np.zeros(len(target)), np.zeros(len(target))
    for _ in range(NEWTON_STEPS):
        p = 1.0 / (1.0 + np.exp(-np.clip(a[:, None] + b[:, None] * u, -500, 500)))
        w = weight * p * (1 - p)
        i00, i01, i11 = w.sum(axis=1), w @ u, w @ (u * u)
        det = np.maximum(i00 * i11 - i01**2, 1e-300)
        hat = w * (i11[:, None] - 2 * i01[:, None] * u + i00[:, None] * u**2) / det[:, None]
        score = weight * (target - p) + hat * (0.5 - p)
        g0, g1 = score.sum(axis=1), score @ u
        w = w * (1 + hat)  # what the penalty adds to the curvature: without it steps are up to twice too long
        i00, i01, i11 = w.sum(axis=1), w @ u, w @ (u * u)
        det = np.maximum(i00 * i11 - i01**2, 1e-300)
        step_a, step_b = (i11 * g0 - i01 * g1) / det, (i00 * g1 - i01 * g0) / det
        cut = np.minimum(1.0, MAX_STEP / np.maximum(np.maximum(np.abs(step_a), np.abs(step_b)), 1e-300))
        a, b = a + cut * step_a, b + cut * step_b
        if max(np.abs(step_a).max(), np.abs(step_b).max()) < NEWTON_TOLERANCE:
            break
    p = 1.0 / (1.0 + np.exp(-np.clip(a[:, None] + b[:, None] * u, -500, 500)))
    out[valid] = b / scale * (weight * p * (1 - p)).sum(axis=1) / weight.sum(axis=1)
    return out


def shrunk_slopes(slope: FloatArray, error: FloatArray, group: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return empirical-Bayes slopes and their posterior standard deviations, (m,) each.

    Within a group, true slopes are taken as normal around the group's mean with variance tau^2, estimates as normal
    around them with the given standard errors; mean and tau^2 by Paule and Mandel's (1982) moment equation, solved by
    bisection. A slope with a standard error of 0 stays; one without stays NaN.
    """
    best, spread = np.full(slope.shape, np.nan), np.full(slope.shape, np.nan)
    known = np.isfinite(slope) & np.isfinite(error)
    for code in np.unique(group[known]):
        at = np.flatnonzero(known & (group == code))
        b, v = slope[at], np.square(error[at])
        if len(at) == 1:  # no others to shrink towards
            best[at], spread[at] = b, error[at]
            continue
        mean, tau2 = _paule_mandel(b, v)
        share = np.divide(tau2, tau2 + v, out=np.ones_like(v), where=tau2 + v > 0)
        best[at] = mean + share * (b - mean)
        spread[at] = np.sqrt(share * v)
    return best, spread


def _paule_mandel(b: FloatArray, v: FloatArray) -> tuple[float, float]:
    """Return mean and tau^2 with sum (b - mean)^2 / (v + tau^2) = len(b) - 1, tau^2 = 0 where it is below for all."""

    def at(tau2: float) -> tuple[float, float]:
        weight = 1.0 / np.maximum(v + tau2, 1e-300)
        mean = float(weight @ b / weight.sum())
        return mean, float(weight @ (b - mean) ** 2) - (len(b) - 1)

    if len(b) < 2 or at(0.0)[1] <= 0:
        return at(0.0)[0], 0.0
    low, high = 0.0, float(b.var(ddof=1)) + float(v.max())
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if at(middle)[1] > 0 else (low, middle)
        if high - low <= 1e-12 * high:
            break
    return at(high)[0], high


def corrected_scale(slope: FloatArray, error: FloatArray) -> float:
    """Return sqrt(1 - sum se^2 / sum b^2), 0 where noise explains all: the factor that makes sum b^2 of these slopes
    unbiased where it is not clipped."""
    known = np.isfinite(slope) & np.isfinite(error)
    total = float(np.square(slope[known]).sum())
    if total == 0:
        return np.nan
    return float(np.sqrt(max(0.0, 1.0 - float(np.square(error[known]).sum()) / total)))
