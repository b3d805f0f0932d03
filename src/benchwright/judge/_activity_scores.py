"""Numbers behind activity scores: from ratings to values of activities, once and in replicates.

Tasks T, workers U, ratings r, framings F = 2 (automation, augmentation), activities G. A task's mean rating is that of
its workers, each with a weight; it counts where the mean reaches a threshold. An activity's value is the share of its
rated tasks that count, or the mean of their means.

A replicate draws workers with replacement, with all their ratings, and tasks by a Bayesian bootstrap: weights
g_t ~ Exp(1), and for shares two halves of a task more, one that counts and one that does not (Gamma(1/2) each). With
workers fixed a share of k of n is then Jeffreys' Beta(k + 1/2, n - k + 1/2), which knows that 0 of 5 is no certainty.
A task keeps its weight in both framings and in all its activities. Sources: Rubin (1981), Ann. Stat. 9; Owen (2007),
Ann. Appl. Stat. 1, for drawing two crossed factors.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from benchwright._check import FloatArray
from benchwright.estimating._resampling import multiplicities

IntArray = NDArray[np.int64]
ROUNDING = 1e-12  # relative: a mean this close to the threshold reaches it
BLOCK = 128  # replicates at a time


@dataclass(frozen=True, slots=True, eq=False)
class Ratings:
    """Ratings r of tasks by workers: places (r,), weights (r,), values (F, r) with NaN for none."""

    task: IntArray
    worker: IntArray
    weight: FloatArray
    value: FloatArray
    tasks: int
    workers: int

    def by_worker(self, values: FloatArray) -> sparse.csr_array:
        """Return (T, U) with ``values`` (r,) at each rating."""
        return sparse.csr_array((values, (self.task, self.worker)), shape=(self.tasks, self.workers))


def activity_values(ratings: Ratings, member: sparse.csr_array, threshold: float | None) -> tuple[FloatArray, IntArray]:
    """Return values (F, G) and the number of rated tasks (F, G); ``member`` (G, T) is 1 where a task counts.

    ``threshold``: the value is the share of tasks whose mean reaches it; None: the mean of means. NaN without tasks.
    """
    each = np.ones((1, ratings.workers))
    values, counts = [], []
    for rated in ratings.value:
        worth, known = _of_tasks(*_sums(ratings, rated), each, threshold)
        counts.append((member @ known[0]).astype(np.int64))
        values.append(_divided(member @ worth[0], counts[-1].astype(float)))
    return np.stack(values), np.stack(counts)


def activity_draws(
    ratings: Ratings,
    member: sparse.csr_array,
    threshold: float | None,
    *,
    replicates: int,
    rng: np.random.Generator,
) -> FloatArray:
    """Return values in replicates, (B, F, G): workers and tasks drawn again; NaN where no task has a rating."""
    rated = np.unique(ratings.task)
    member = member[:, rated]
    sums = [[part[rated] for part in _sums(ratings, value)] for value in ratings.value]
    out = np.empty((replicates, len(sums), member.shape[0]))
    for start in range(0, replicates, BLOCK):
        rows = slice(start, min(start + BLOCK, replicates))
        b = rows.stop - start
        picked = rng.integers(ratings.workers, size=(b, ratings.workers))
        workers = multiplicities(picked, ratings.workers).T
        weight = rng.exponential(size=(b, rated.size))
        for f, (total, number) in enumerate(sums):
            worth, known = _of_tasks(total, number, workers, threshold)
            over, under = (member @ (weight * worth).T).T, (member @ (weight * known).T).T
            if threshold is not None:
                half = rng.gamma(0.5, size=(2, b, member.shape[0]))
                over, under = over + half[0], under + half.sum(axis=0)
            out[rows, f] = _divided(over, under)
    return out


def rescaled(values: FloatArray, kept: NDArray[np.bool_]) -> tuple[FloatArray, FloatArray]:
    """Return slope and start of the lines (F,) that take each framing's range over ``kept`` (G,) to [1, 5].

    NaN where that range is empty or a point.
    """
    within = values[:, kept]
    if not within.size:
        return np.full(len(values), np.nan), np.full(len(values), np.nan)
    low, high = within.min(axis=1), within.max(axis=1)
    slope = _divided(np.full(len(low), 4.0), high - low)
    return slope, 1 - slope * low


def _sums(ratings: Ratings, rated: FloatArray) -> tuple[sparse.csr_array, sparse.csr_array]:
    """Return sums of weight times rating and of weight, by task and worker, (T, U) each."""
    known = ~np.isnan(rated)
    weight = np.where(known, ratings.weight, 0.0)
    return ratings.by_worker(weight * np.where(known, rated, 0.0)), ratings.by_worker(weight)


def _of_tasks(
    total: sparse.csr_array, number: sparse.csr_array, workers: FloatArray, threshold: float | None
) -> tuple[FloatArray, FloatArray]:
    """Return what each task adds (b, T) and whether it has ratings, for multiplicities of workers (b, U)."""
    over, under = (total @ workers.T).T, (number @ workers.T).T
    known = under > 0
    if threshold is None:
        worth = np.where(known, _divided(over, under), 0.0)
    else:
        worth = (known & (over >= threshold * under * (1 - ROUNDING))).astype(float)
    return worth, known.astype(float)


def _divided(over: FloatArray, under: FloatArray) -> FloatArray:
    """Return over / under, NaN where under is 0."""
    quotient: FloatArray = np.divide(over, under, out=np.full(np.shape(over), np.nan), where=under > 0)
    return quotient
