"""Two families compared on one value per item, when items of a task are alike.

Items of one task share its subject and its judge's habits, so the task is the unit of resampling:

* interval of the difference of means: tasks drawn with replacement within each family, item-weighted means;
* test of the difference: family labels permuted over tasks, p = (count + 1) / (B + 1), two-sided first;
* first-order stochastic dominance of the second family over the first, F_b(x) <= F_a(x) for all x: the
  largest violation sup (F_b - F_a), with the p-value of a recentred task bootstrap (Barrett and Donald 2003)
  under the null of dominance; and sup (F_a - F_b) with its permutation p-value under the null of no
  difference. A small first p speaks against dominance, a small second one against equality.

Tests that take items for independent (Kolmogorov-Smirnov, Mann-Whitney) come after and are named as such:
they reject far too easily here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy import stats

from benchwright._check import FloatArray
from benchwright._json import json_safe
from benchwright.auditing import _kernels as kernels
from benchwright.auditing._kernels import BoolArray, IntArray


@dataclass(frozen=True, slots=True)
class FamilySummary:
    """One family's values: number of items and tasks, mean and median."""

    name: str
    n_items: int
    n_tasks: int
    mean: float
    median: float


@dataclass(frozen=True, slots=True)
class Dominance:
    """First-order stochastic dominance of the second family over the first.

    ``violation`` is sup (F_b - F_a)+ in the sample (0: dominance holds at every value), ``violation_p``
    its p-value under dominance, NaN where a family has one task; ``advantage`` is sup (F_a - F_b)+,
    ``advantage_p`` its p-value under no difference. Both suprema run over every value; their p-values over
    at most ``GRID_POINTS`` of them.
    """

    violation: float
    violation_p: float
    advantage: float
    advantage_p: float

    @property
    def holds_in_sample(self) -> bool:
        """Whether the second family's distribution function lies nowhere above the first's."""
        return self.violation <= 1e-12


@dataclass(frozen=True, slots=True)
class Contrast:
    """Second family minus first on one value per item, in the value's unit.

    ``standard_error`` and ``interval`` resample whole tasks ``replicates`` times, as the p-values do.
    """

    first: FamilySummary
    second: FamilySummary
    difference: float
    standard_error: float
    interval: tuple[float, float]
    level: float
    permutation_p: float
    permutation_p_one_sided: float
    dominance: Dominance
    ks_statistic: float
    ks_p: float
    mann_whitney_p: float
    mann_whitney_p_one_sided: float
    replicates: int

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON-safe values; what does not exist is None."""
        record: dict[str, Any] = json_safe(asdict(self))
        return record


def contrast_families(
    values: FloatArray,
    tasks: IntArray,
    is_second: BoolArray,
    *,
    names: tuple[str, str],
    replicates: int,
    level: float,
    rng: np.random.Generator,
) -> Contrast:
    """Compare two families of items.

    Parameters
    ----------
    values
        One finite value per item, shape (m,).
    tasks
        Task of each item as codes 0..c-1, shape (m,). A task lies wholly in one family.
    is_second
        Whether an item belongs to the second family, shape (m,); both families occur.
    names
        Names of the first and the second family.
    replicates, level, rng
        Draws of bootstrap and permutation, level of the interval, source of randomness.

    References
    ----------
    Barrett and Donald (2003), "Consistent tests for stochastic dominance", Econometrica 71.
    """
    n_tasks = int(tasks.max()) + 1
    second_task = np.zeros(n_tasks, dtype=bool)
    second_task[tasks[is_second]] = True
    grid = kernels.value_grid(values)
    # Columns: the value's sum, the number of items, then the counts at or below each grid value.
    table = np.hstack(
        [
            kernels.cluster_sums(np.stack([values, np.ones_like(values)], axis=1), tasks, n_tasks),
            kernels.counts_at_most(values, tasks, n_tasks, grid),
        ]
    )
    first_means, second_means = _means(~second_task, table), _means(second_task, table)
    gap = second_means - first_means
    difference, rise = float(gap[0]), gap[1:]
    # Of each draw two numbers are kept: the difference of means, and the largest gap of distribution functions.
    drawn = _reduced(_bootstrap(table, second_task, replicates, rng), lambda gaps: gaps - rise)
    shuffled = _reduced(_permute(table, second_task, replicates, rng), np.negative)
    tail = (1 - level) / 2
    low, high = (float(q) for q in np.quantile(drawn[:, 0], [tail, 1 - tail]))
    standard_error = float(drawn[:, 0].std(ddof=1))
    first, second = values[~is_second], values[is_second]
    violation, advantage = kernels.largest_gaps(first, second)
    violation_p = kernels.permutation_p(drawn[:, 1], rise.max()) if violation else 1.0
    if min(second_task.sum(), (~second_task).sum()) < 2:
        low = high = standard_error = violation_p = float("nan")  # one task alone says nothing of how tasks differ
    sign = 1.0 if difference >= 0 else -1.0
    smaller_first = "less" if difference >= 0 else "greater"
    ks = stats.ks_2samp(first, second)
    return Contrast(
        first=_summary(names[0], first, int((~second_task).sum())),
        second=_summary(names[1], second, int(second_task.sum())),
        difference=difference,
        standard_error=standard_error,
        interval=(low, high),
        level=level,
        permutation_p=kernels.permutation_p(np.abs(shuffled[:, 0]), abs(difference)),
        permutation_p_one_sided=kernels.permutation_p(sign * shuffled[:, 0], abs(difference)),
        dominance=Dominance(
            violation=violation,
            violation_p=violation_p,
            advantage=advantage,
            advantage_p=kernels.permutation_p(shuffled[:, 1], (-rise).max()),
        ),
        ks_statistic=float(ks.statistic),
        ks_p=float(ks.pvalue),
        mann_whitney_p=_mann_whitney(first, second, "two-sided"),
        mann_whitney_p_one_sided=_mann_whitney(first, second, smaller_first),
        replicates=replicates,
    )


def _means(chosen: BoolArray, table: FloatArray) -> FloatArray:
    counts = chosen.astype(np.float64)[None]
    means: FloatArray = kernels.cluster_means(counts, np.delete(table, 1, axis=1), table[:, 1])[0]
    return means


def _bootstrap(table: FloatArray, second: BoolArray, replicates: int, rng: np.random.Generator) -> Iterator[FloatArray]:
    """Yield blocks of second minus first under tasks drawn within each family, shape (b, 1 + G)."""
    sums = np.delete(table, 1, axis=1)
    for size in kernels.blocks(replicates, len(second)):
        sides = []
        for chosen in (~second, second):
            counts = kernels.bootstrap_counts(int(chosen.sum()), size, rng)
            sides.append(kernels.cluster_means(counts, sums[chosen], table[chosen, 1]))
        yield sides[1] - sides[0]


def _permute(table: FloatArray, second: BoolArray, replicates: int, rng: np.random.Generator) -> Iterator[FloatArray]:
    """Yield blocks of second minus first under family labels permuted over tasks, shape (b, 1 + G)."""
    sums, sizes = np.delete(table, 1, axis=1), table[:, 1]
    for size in kernels.blocks(replicates, len(second)):
        labels = kernels.permuted_labels(int(second.sum()), len(second), size, rng)
        yield kernels.cluster_means(labels, sums, sizes) - kernels.cluster_means(1 - labels, sums, sizes)


def _reduced(gaps: Iterator[FloatArray], turn: Callable[[FloatArray], FloatArray]) -> FloatArray:
    """Return per draw the difference of means and the largest turned gap, shape (B, 2)."""
    return np.vstack([np.stack([block[:, 0], turn(block[:, 1:]).max(axis=1)], axis=1) for block in gaps])


def _mann_whitney(first: FloatArray, second: FloatArray, alternative: str) -> float:
    """Return the p-value; 1 where all values are equal, which some versions of scipy answer with NaN."""
    if min(first.min(), second.min()) == max(first.max(), second.max()):
        return 1.0
    return float(stats.mannwhitneyu(first, second, alternative=alternative).pvalue)


def _summary(name: str, values: FloatArray, n_tasks: int) -> FamilySummary:
    return FamilySummary(name, len(values), n_tasks, float(values.mean()), float(np.median(values)))
