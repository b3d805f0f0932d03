"""Seconds of a task in this process, for the benchmarks beside it."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from time import perf_counter

REPEATS = 5


def seconds(task: Callable[[], object]) -> float:
    """Median of ``REPEATS`` runs after one that warms up."""
    task()
    times = []
    for _ in range(REPEATS):
        start = perf_counter()
        task()
        times.append(perf_counter() - start)
    return median(times)
