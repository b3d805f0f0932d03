"""Estimators of raw panels, one BLAS thread: ``python benchmarks/bench_estimates.py``.

Each task runs in processes of its own; seconds are medians of three, memory is the largest peak. Targets:

* seed bootstrap of noise ranks, 20,000 items x 8 seeds x 10 checkpoints, 1,000 replicates, double precision: at least 8
  times as fast as one replicate at a time with numpy (timed on 25 of them, scaled up), at most 1.5 GB;
* residual bootstrap of cost ranks, 15,000 items x 21 models on 3 axes, 1,000 replicates, one draw of models for all
  items: at most 8 s, and memory that hardly grows with four times the replicates (at most 1.15);
* slopes of 10^6 items over 27 models with 5 % of cells missing: at most 1 s;
* time that grows linearly from 10^3 to 10^6 items: at most 2,000 times.

Exit status 1 where a target is missed.
"""

# ruff: noqa: E402  (the threads are set before numpy loads)
from __future__ import annotations

import os

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"):
    os.environ[variable] = "1"

import argparse
import json
import sys
from collections.abc import Callable
from statistics import median
from time import perf_counter

import numpy as np

from benchwright.estimating import _noise as noise
from benchwright.estimating import _resampling as resampling
from benchwright.estimating import _slopes as slopes
from child_process import measure, peak_bytes

REPEATS = 3
SEEDS, CHECKPOINTS, REPLICATES, LEVEL = 8, 10, 1000, 0.95
LOOP_REPLICATES = 25
RATIO, MEMORY = 8.0, 1.5e9
COST_SECONDS, GROWTH, LINE_SECONDS, LINEAR = 8.0, 1.15, 1.0, 2000.0


def scores(items: int, runs: int) -> np.ndarray:
    """Scores in [0, 1], (items, runs)."""
    return np.random.default_rng(1).random((items, runs))


def seed_bootstrap(items: int, replicates: int = REPLICATES) -> Callable[[], object]:
    """Intervals of noise ranks."""
    checkpoint = np.repeat(np.arange(CHECKPOINTS), SEEDS)
    values = scores(items, SEEDS * CHECKPOINTS)

    def task() -> object:
        residual = noise.residuals(values, checkpoint)
        groups = [np.flatnonzero(checkpoint == t) for t in range(CHECKPOINTS)]
        draw = resampling.SeedVariances(residual, groups, np.random.default_rng(1))
        return resampling.rank_replicates(draw, items, replicates=replicates, level=LEVEL, top=items // 10)

    return task


def seed_loop(items: int, replicates: int = LOOP_REPLICATES) -> Callable[[], object]:
    """The same, one replicate at a time."""
    values = scores(items, SEEDS * CHECKPOINTS).reshape(items, CHECKPOINTS, SEEDS)

    def task() -> object:
        rng = np.random.default_rng(1)
        ranks = np.empty((replicates, items), dtype=np.int32)
        for b in range(replicates):
            drawn = rng.integers(SEEDS, size=(CHECKPOINTS, SEEDS))
            again = np.take_along_axis(values, drawn[None], axis=2)
            sigma2 = np.square(again - again.mean(axis=2, keepdims=True)).sum(axis=(1, 2))
            ranks[b, np.argsort(sigma2)] = np.arange(items)
        return np.quantile(ranks, [0.025, 0.975], axis=0)

    return task


def cost_bootstrap(items: int, replicates: int = REPLICATES) -> Callable[[], object]:
    """Intervals of cost ranks over three axes of seven models."""
    grids = [scores(items, 7) for _ in range(3)]
    x = np.arange(7.0)

    def task() -> object:
        rng = np.random.default_rng(1)
        draws = []
        for y in grids:
            fits = slopes.fit_lines(y, x)
            draws.append(resampling.SlopeReplicates(fits.slope, slopes.fitted_residuals(y, x, fits), x, rng))
        return resampling.rank_replicates(
            lambda: resampling.cheapest([draw() for draw in draws], [82.0, 0.2, 0.5]),
            items,
            replicates=replicates,
            level=LEVEL,
            top=items // 10,
        )

    return task


def lines(items: int, _: int = 0) -> Callable[[], object]:
    """Slopes and their errors."""
    y, x = scores(items, 27), np.repeat(np.arange(9.0), 3)
    y[np.random.default_rng(2).random(y.shape) < 0.05] = np.nan
    return lambda: slopes.fit_lines(y, x)


TASKS = {"seeds": seed_bootstrap, "loop": seed_loop, "cost": cost_bootstrap, "lines": lines}


def child(name: str, items: int, replicates: int) -> None:
    """Prepare a task, then print its seconds and the peak memory of the process."""
    task = TASKS[name](items, replicates)
    start = perf_counter()
    task()
    print(json.dumps([perf_counter() - start, peak_bytes()]))


def medians(name: str, items: int, replicates: int) -> tuple[float, float]:
    """Return the median seconds and the largest peak of child processes."""
    results = [measure(__file__, name, str(items), str(replicates)) for _ in range(REPEATS)]
    return median(seconds for seconds, _ in results), max(peak for _, peak in results)


def main() -> int:
    """Print every figure beside its target, and say whether all are met."""
    parser = argparse.ArgumentParser(description="Time the estimators of raw panels.")
    parser.add_argument("--child", nargs=3, metavar=("TASK", "ITEMS", "REPLICATES"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        child(given.child[0], *map(int, given.child[1:]))
        return 0
    met = []

    def say(text: str, value: float, limit: float, *, least: bool = False) -> None:
        met.append(value >= limit if least else value <= limit)
        print(f"{text}: {value:.3g} ({'at least' if least else 'at most'} {limit:g}){'' if met[-1] else '  MISSED'}")

    fast, peak = medians("seeds", 20_000, REPLICATES)
    loop, _ = medians("loop", 20_000, LOOP_REPLICATES)
    print(f"seed bootstrap, 20,000 items: {fast:.2f} s; loop, scaled: {loop * REPLICATES / LOOP_REPLICATES:.1f} s")
    say("  ratio", loop * REPLICATES / LOOP_REPLICATES / fast, RATIO, least=True)
    say("  memory, GB", peak / 1e9, MEMORY / 1e9)
    cost, peak = medians("cost", 15_000, REPLICATES)
    say("residual bootstrap, 15,000 items on 3 axes, s", cost, COST_SECONDS)
    more, larger = medians("cost", 15_000, 4 * REPLICATES)
    say(f"  memory with 4,000 over 1,000 replicates ({peak / 1e9:.2f} GB; {more:.1f} s)", larger / peak, GROWTH)
    line, _ = medians("lines", 1_000_000, 0)
    say("slopes of 1,000,000 items over 27 models, s", line, LINE_SECONDS)
    for name, replicates in (("seeds", 100), ("cost", 100), ("lines", 0)):
        times = {items: medians(name, items, replicates)[0] for items in (1_000, 10_000, 100_000, 1_000_000)}
        print(f"{name}, {replicates} replicates: " + ", ".join(f"{m:,}: {s:.3g} s" for m, s in times.items()))
        say("  time at 10^6 over 10^3 items", times[1_000_000] / times[1_000], LINEAR)
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
