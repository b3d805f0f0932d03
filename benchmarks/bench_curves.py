"""Effort curves on one BLAS thread: ``python benchmarks/bench_curves.py``.

Target: generalised power laws with all parameters each model's own, fitted to 55 models at 10 to 17 efforts and to 200
tables drawn from the fits, in at most 30 s. The ratio is to scipy's L-BFGS-B, one fit at a time from one start, at the
median of ``SUBSET`` of those fits. Exit status 1 where the target is missed, or where scipy gains more than 0.1 in
log-likelihood on ours.
"""

# ruff: noqa: E402  (the threads are set before numpy loads)
from __future__ import annotations

import os

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"):
    os.environ[variable] = "1"

import sys
from statistics import median
from time import perf_counter

import numpy as np
from scipy import special
from scipy.optimize import minimize

from benchwright._check import FloatArray
from benchwright.curves.bootstrap import bootstrap_curves
from benchwright.curves.fit import fit_curves
from benchwright.curves.results import CurveFits
from benchwright.curves.scores import EffortScores
from stopwatch import seconds

LIMIT, MODELS, REPLICATES, ITEMS, SUBSET = 30.0, 55, 200, 1319, 40
STEPS = np.array(
    [0, 10, 30, 100, 250, 500, 1000, 2500, 5000, 7500, 10_000, 12_500, 15_000, 17_500, 20_000, 22_500, 25_000]
)


def table(rng: np.random.Generator) -> EffortScores:
    """Scores like those of models tuned on grade-school mathematics, each at 10 to 17 efforts."""
    lower, rise = rng.uniform(0.01, 0.5, MODELS), rng.uniform(0.05, 0.4, MODELS)
    beta, half = rng.uniform(0.5, 1.5, MODELS), rng.uniform(5.0, 9.0, MODELS)
    columns: list[list[FloatArray]] = [[], [], []]
    for i in range(MODELS):
        effort = np.sort(rng.choice(STEPS, rng.integers(10, STEPS.size + 1), replace=False)).astype(float)
        curve = lower[i] + rise[i] * special.expit(beta[i] * (np.log1p(effort) - half[i]))
        for column, values in zip(
            columns, (np.full(effort.size, i), effort, rng.binomial(ITEMS, curve) / ITEMS), strict=True
        ):
            column.append(values)
    model, effort, score = map(np.concatenate, columns)
    return EffortScores(
        tuple(f"model-{i}" for i in range(MODELS)), model.astype(int), effort, score, items=np.full(score.size, ITEMS)
    )


def one_by_one(fits: CurveFits) -> tuple[float, float]:
    """Median seconds of one fit in scipy, and the largest gain in log-likelihood over ours."""
    times, gains = [], []
    for i in np.flatnonzero(~fits.flat)[:SUBSET]:
        has = fits.observations.present[i]
        x, y = np.log1p(fits.observations.effort[i, has]), fits.observations.score[i, has]

        def lost(p: FloatArray, x: FloatArray = x, y: FloatArray = y) -> float:
            low = special.expit(p[2])
            v = np.clip(
                low + (1 - low) * special.expit(p[3]) * special.expit(p[0] + np.exp(p[1]) * x), 1e-12, 1 - 1e-12
            )
            return float(ITEMS * (special.rel_entr(y, v) + special.rel_entr(1 - y, 1 - v)).sum())

        low, high = max(y.min(), 1e-3), y.max()
        begin = [-6.0, 0.0, special.logit(low), special.logit(max((high - low) / (1 - low), 1e-3))]
        start = perf_counter()
        found = minimize(lost, begin, method="L-BFGS-B", bounds=[(-150, 150), (-9, 2.3), (-14, 14), (-14, 14)])
        times.append(perf_counter() - start)
        gains.append(fits.deviance[i] / 2 - found.fun)
    return median(times), max(gains)


def main() -> int:
    """Print times and say whether the target is met."""
    scores = table(np.random.default_rng(20261130))
    fits = fit_curves(scores)

    def task() -> object:
        return bootstrap_curves(fit_curves(scores), rng=np.random.default_rng(1), replicates=REPLICATES)

    took = seconds(task)
    single, gain = one_by_one(fits)
    alone = single * MODELS * (REPLICATES + 1)
    met = took <= LIMIT and gain <= 0.1
    print(
        f"{MODELS} curves and {REPLICATES} tables drawn from them: {took:.2f} s, at most {LIMIT:g} s; one at a time in "
        f"scipy {alone:.0f} s ({1000 * single:.0f} ms a fit), a ratio of {alone / took:.0f}; "
        f"best gain of scipy in log-likelihood {gain:.2g}: {'met' if met else 'MISSED'}"
    )
    return int(not met)


if __name__ == "__main__":
    sys.exit(main())
