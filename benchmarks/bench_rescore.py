"""A board re-scored on one BLAS thread: ``python benchmarks/bench_rescore.py``.

500 models on 20,000 items of 20 tasks in clusters of about three, a tenth of the cells missing, one weight an item:
scores, standard errors, 1,000 bootstrap draws with their intervals, simultaneous rank intervals and tie groups of
``score_board``, each model on its own items. Target: 3 s. The loop beside it makes one bootstrap replicate at a time
(draw clusters within tasks, count them, a weighted mean over the items that each model has), fewer of them, scaled up;
it makes no rank intervals. Exit status 1 where the target is missed.
"""

# ruff: noqa: E402  (the threads are set before numpy loads)
from __future__ import annotations

import os

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"):
    os.environ[variable] = "1"

import sys
from dataclasses import replace

import numpy as np
import polars as pl

from benchwright.board.rules import ScoringRules
from benchwright.board.scheme import WeightScheme
from benchwright.board.scoring import score_board
from benchwright.board.values import BoardValues
from stopwatch import seconds

LIMIT_SECONDS = 3.0
MODELS, ITEMS, TASKS, CLUSTERS = 500, 20_000, 20, 350  # clusters a task
REPLICATES, LOOP_REPLICATES = 1000, 10
RULES = ScoringRules(missing="renormalise", replicates=REPLICATES)


def simulated() -> tuple[BoardValues, WeightScheme]:
    """A board of answers right or wrong, and weights."""
    rng = np.random.default_rng(20260731)
    task = np.sort(rng.integers(0, TASKS, ITEMS))
    ability, difficulty = rng.normal(size=MODELS), rng.normal(size=(ITEMS, 1))
    values = (rng.logistic(size=(ITEMS, MODELS)) < ability - difficulty).astype(np.float64)
    values[rng.random(values.shape) < 0.1] = np.nan
    items = pl.DataFrame({"task": [f"task{code:02d}" for code in task], "doc_id": [f"{i:05d}" for i in range(ITEMS)]})
    clusters = task * CLUSTERS + rng.integers(0, CLUSTERS, ITEMS)
    names = tuple(f"model{place:03d}" for place in range(MODELS))
    board = BoardValues(names, items, values, clusters=clusters)
    return board, WeightScheme(items.with_columns(weight=rng.exponential(size=ITEMS)), rule="simulated")


def loop(board: BoardValues, weights: np.ndarray) -> np.ndarray:
    """Standard errors from a few replicates, one at a time."""
    rng, draws = np.random.default_rng(1), []
    clusters, tasks = board.clusters, board.codes
    mine = [np.unique(clusters[tasks == task]) for task in range(TASKS)]
    known = ~np.isnan(board.values)
    filled = np.where(known, board.values, 0.0)
    for _ in range(LOOP_REPLICATES):
        drawn = np.concatenate([rng.choice(numbers, len(numbers)) for numbers in mine])
        counts = np.bincount(drawn, minlength=TASKS * CLUSTERS)[clusters] * weights
        draws.append((counts @ filled) / (counts @ known))
    return np.std(draws, axis=0)


def main() -> int:
    """Print times and say whether the target is met."""
    board, scheme = simulated()
    alone = replace(board, clusters=None)
    ours = seconds(lambda: score_board(board, scheme, rules=RULES))
    apart = seconds(lambda: score_board(alone, scheme, rules=RULES))
    plain = seconds(lambda: loop(board, scheme.weights["weight"].to_numpy())) * REPLICATES / LOOP_REPLICATES
    size = f"{MODELS} models x {ITEMS:,} items, {REPLICATES:,} bootstraps"
    print(f"{size}, clusters and missing cells: {ours:.2f} s (at most {LIMIT_SECONDS:g})")
    print(f"one replicate at a time, no rank intervals: {plain:.1f} s, a ratio of {plain / ours:.1f}")
    print(f"each item its own cluster: {apart:.2f} s (no target)")
    return 0 if ours <= LIMIT_SECONDS else 1


if __name__ == "__main__":
    sys.exit(main())
