"""Values of activities from raw ratings: ``python benchmarks/bench_activity_scores.py FOLDER``.

FOLDER holds WORKBank's files (``docs/how-to/welfare.md``). Target: from the files to the values, with 1,000 draws of
workers and tasks, at most 1 s. Exit status 1 where it is missed.
"""

# ruff: noqa: E402  (the threads are set before numpy loads)
from __future__ import annotations

import os

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"):
    os.environ[variable] = "1"

import sys

import numpy as np

from benchwright.judge.activity_scores import activity_scores
from benchwright.judge.workbank import LEVELS
from stopwatch import seconds

LIMIT = 1.0


def main(folder: str) -> int:
    """Print medians per level, without draws and with, and say whether the target is met."""
    slowest = 0.0
    for level in LEVELS:
        plain = seconds(lambda level=level: activity_scores(folder, level=level))
        drawn = seconds(lambda level=level: activity_scores(folder, level=level, rng=np.random.default_rng(0)))
        slowest = max(slowest, drawn)
        print(f"{level}: {plain:.2f} s, with 1,000 draws {drawn:.2f} s")
    print(f"slowest with draws: {slowest:.2f} s (at most {LIMIT:g})")
    return 0 if slowest <= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
