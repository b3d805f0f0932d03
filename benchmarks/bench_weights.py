"""Optimal weights against A.T @ A, one BLAS thread: ``python benchmarks/bench_weights.py``.

Targets: ``optimal_weights`` with all its diagnostics takes at most ten times A.T @ A at m = 1e6, n = 3, and its time
grows linearly from 1e4 to 1e6 items (a million costs at most 2 * 100 times ten thousand); with n = 10 axes and q = 70
columns of noise a million items take at most 2 s. Exit status 1 where one is missed. The kernel is timed beside it.
"""

# ruff: noqa: E402  (the threads are set before numpy loads)
from __future__ import annotations

import os

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"):
    os.environ[variable] = "1"

import sys
from collections.abc import Callable

import numpy as np

from benchwright.mechanism import _weights as kernel
from benchwright.mechanism.aggregation import ItemAggregation, optimal_weights, risk_sweep
from stopwatch import seconds

LIMIT = 10.0
LINEAR_SLACK = 2.0
SIZES = (10_000, 100_000, 1_000_000)
AXES = 3
WIDE_AXES, WIDE_NOISE, WIDE_LIMIT = 10, 70, 2.0


def tasks(m: int, rng: np.random.Generator) -> list[Callable[[], object]]:
    """What is timed on one random game of ``m`` items."""
    A, d, w = rng.normal(1e-7, 1e-7, (m, AXES)), rng.uniform(0.005, 0.25, m), rng.normal(1.0, 2.0, m)
    x = kernel.Factors(A, np.zeros((m, 0)), d, w, kernel.inverse_root(1e-9, AXES))
    model = ItemAggregation(A, w, risk_aversion=10.0, noise_variance=d, curvature=1e-9)
    return [
        lambda: A.T @ A,
        lambda: kernel.solve(x, 10.0),
        lambda: optimal_weights(model),
        lambda: risk_sweep(model, np.logspace(-3, 3, 13), {"uniform": np.ones(m)}),
    ]


def main() -> int:
    """Print a table of medians and say which targets are met."""
    rng = np.random.default_rng(20260730)
    columns = ("A.T @ A", "kernel", "optimal_weights", "sweep of 13")
    print(f"{'m':>9}", *(f"{name:>16}" for name in columns), "  milliseconds")
    times = []
    for m in SIZES:
        times.append([1e3 * seconds(task) for task in tasks(m, rng)])
        print(f"{m:>9}", *(f"{time:>16.3f}" for time in times[-1]))
    gram, solve, public, _ = times[-1]
    ratio, growth = public / gram, public / times[0][2]
    allowed = LINEAR_SLACK * SIZES[-1] / SIZES[0]
    print(f"optimal_weights / A.T @ A at m = {SIZES[-1]}: {ratio:.2f} (at most {LIMIT:g})")
    print(f"its kernel alone / A.T @ A: {solve / gram:.2f}")
    print(f"optimal_weights, m = {SIZES[-1]} over m = {SIZES[0]}: {growth:.0f} (at most {allowed:g})")
    m = SIZES[-1]
    A, F = rng.normal(0.3, 1.0, (m, WIDE_AXES)), rng.normal(0.0, 0.1, (m, WIDE_NOISE))
    d, w = rng.uniform(0.005, 0.25, m), rng.normal(1.0, 2.0, m)
    model = ItemAggregation(A, w, risk_aversion=1.0, noise_variance=d, noise_factor=F)
    wide = seconds(lambda: optimal_weights(model))
    print(f"optimal_weights, m = {m}, n = {WIDE_AXES}, q = {WIDE_NOISE}: {wide:.2f} s (at most {WIDE_LIMIT:g})")
    return 0 if ratio <= LIMIT and growth <= allowed and wide <= WIDE_LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
