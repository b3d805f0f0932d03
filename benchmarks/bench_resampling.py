"""Resampled contrast against a plain loop, one BLAS thread: ``python benchmarks/bench_resampling.py``.

10,000 cluster bootstraps and 10,000 permutations on both welfare framings, with the dominance tests that use
the same draws, at the size of the published set: 317 items of 53 tasks, 10 of them in the first family. The
values are simulated. The loop does one replicate at a time with numpy, fewer of them, scaled up.

Target: 0.3 s for both framings together. Exit status 1 where it is missed.
"""

# ruff: noqa: E402  (the threads are set before numpy loads)
from __future__ import annotations

import os

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"):
    os.environ[variable] = "1"

import sys
from dataclasses import replace

import numpy as np

from benchwright.auditing.contrast import Contrast, contrast_families
from benchwright.auditing.welfare import item_welfare
from benchwright.simulate import TASKS, Simulation, simulate_item_tables
from stopwatch import seconds

LIMIT_SECONDS = 0.3
REPLICATES, LOOP_REPLICATES = 10_000, 200
ITEMS, FIRST_TASKS, ALL_TASKS = 317, 10, 53


def simulated_items() -> tuple[np.ndarray, np.ndarray]:
    """Welfare (items, 2) on both framings, and each item's task as a code (items,)."""
    tasks = tuple(replace(TASKS[k % len(TASKS)], name=f"task{k:02d}") for k in range(ALL_TASKS))
    tables = simulate_item_tables(Simulation(tasks=tasks, items_per_task=-(-ITEMS // ALL_TASKS), replicates=2))
    items = item_welfare(tables.loadings["default"], tables.activities["share"]).head(ITEMS)
    codes = items["task"].str.strip_prefix("task").cast(int).to_numpy()
    return items.select("w_auto", "w_aug").to_numpy(), codes


def contrasts(welfare: np.ndarray, tasks: np.ndarray) -> list[Contrast]:
    """What the audit computes."""
    return [
        contrast_families(
            np.ascontiguousarray(values),
            tasks,
            tasks >= FIRST_TASKS,
            names=("first", "second"),
            replicates=REPLICATES,
            level=0.95,
            rng=np.random.default_rng([1, stream]),
        )
        for stream, values in enumerate(welfare.T)
    ]


def loop(welfare: np.ndarray, tasks: np.ndarray) -> list[tuple[float, float, float]]:
    """Interval and p of the difference from the same draws, one replicate at a time, with largest gaps."""
    rng, answers = np.random.default_rng(1), []
    for values in welfare.T:
        items = [values[tasks == task] for task in range(ALL_TASKS)]
        grid = np.unique(values)

        def gaps(first: list[np.ndarray], second: list[np.ndarray], grid: np.ndarray = grid) -> tuple[float, float]:
            a, b = np.sort(np.concatenate(first)), np.sort(np.concatenate(second))
            rise = np.searchsorted(b, grid, "right") / b.size - np.searchsorted(a, grid, "right") / a.size
            return float(b.mean() - a.mean()), float(rise.max())

        boot, shuffled = [], []
        for _ in range(LOOP_REPLICATES):
            drawn = [rng.integers(low, high, high - low) for low, high in ((0, FIRST_TASKS), (FIRST_TASKS, ALL_TASKS))]
            boot.append(gaps(*([items[task] for task in side] for side in drawn)))
            order = rng.permutation(ALL_TASKS)
            sides = (order[:FIRST_TASKS], order[FIRST_TASKS:])
            shuffled.append(gaps(*([items[task] for task in side] for side in sides)))
        observed = values[tasks >= FIRST_TASKS].mean() - values[tasks < FIRST_TASKS].mean()
        low, high = np.quantile([gap for gap, _ in boot], [0.025, 0.975])
        beyond = sum(abs(gap) >= abs(observed) - 1e-12 for gap, _ in shuffled)
        answers.append((float(low), float(high), (beyond + 1) / (LOOP_REPLICATES + 1)))
    return answers


def main() -> int:
    """Print both ways' answers and times, and say whether the target is met."""
    welfare, tasks = simulated_items()
    for fast, (low, high, p) in zip(contrasts(welfare, tasks), loop(welfare, tasks), strict=True):
        print(f"resampled: {fast.interval[0]:.3f} .. {fast.interval[1]:.3f}, p = {fast.permutation_p:.4f};", end=" ")
        print(f"loop of {LOOP_REPLICATES}: {low:.3f} .. {high:.3f}, p = {p:.4f}")
    taken = seconds(lambda: contrasts(welfare, tasks))
    plain = seconds(lambda: loop(welfare, tasks)) * REPLICATES / LOOP_REPLICATES
    print(f"{len(tasks)} items of {len(np.unique(tasks))} tasks, {REPLICATES} bootstraps and permutations, 2 framings")
    print(f"loop, scaled from {LOOP_REPLICATES}: {plain:.2f} s; ratio {plain / taken:.0f}")
    print(f"contrast: {taken:.3f} s (at most {LIMIT_SECONDS:g})")
    return 0 if taken <= LIMIT_SECONDS else 1


if __name__ == "__main__":
    sys.exit(main())
