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

from dataclasses import asdict, dataclass
from math import isfinite
from typing import Any

import numpy as np
from scipy import stats

from benchwright.auditing import _kernels as kernels
from benchwright.auditing._kernels import BoolArray, FloatArray, IntArray


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
    """Second family minus first on one value per item, in the value's unit."""

    first: FamilySummary
    second: FamilySummary
    difference: float
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
        """Return the fields as JSON-safe values; an interval that does not exist is [None, None]."""
        record = asdict(self)
        record["interval"] = [end if isfinite(end) else None for end in self.interval]
        if not isfinite(self.dominance.violation_p):
            record["dominance"]["violation_p"] = None
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
    drawn = _bootstrap(table, second_task, replicates, rng)
    shuffled = _permute(table, second_task, replicates, rng)
    tail = (1 - level) / 2
    low, high = (float(q) for q in np.quantile(drawn[:, 0], [tail, 1 - tail]))
    first, second = values[~is_second], values[is_second]
    violation, advantage = kernels.largest_gaps(first, second)
    violation_p = kernels.permutation_p((drawn[:, 1:] - rise).max(axis=1), rise.max()) if violation else 1.0
    if min(second_task.sum(), (~second_task).sum()) < 2:
        low = high = violation_p = float("nan")  # one task alone says nothing of how tasks differ
    sign = 1.0 if difference >= 0 else -1.0
    smaller_first = "less" if difference >= 0 else "greater"
    ks = stats.ks_2samp(first, second)
    return Contrast(
        first=_summary(names[0], first, int((~second_task).sum())),
        second=_summary(names[1], second, int(second_task.sum())),
        difference=difference,
        interval=(low, high),
        level=level,
        permutation_p=kernels.permutation_p(np.abs(shuffled[:, 0]), abs(difference)),
        permutation_p_one_sided=kernels.permutation_p(sign * shuffled[:, 0], abs(difference)),
        dominance=Dominance(
            violation=violation,
            violation_p=violation_p,
            advantage=advantage,
            advantage_p=kernels.permutation_p((-shuffled[:, 1:]).max(axis=1), (-rise).max()),
        ),
        ks_statistic=float(ks.statistic),
        ks_p=float(ks.pvalue),
        mann_whitney_p=float(stats.mannwhitneyu(first, second).pvalue),
        mann_whitney_p_one_sided=float(stats.mannwhitneyu(first, second, alternative=smaller_first).pvalue),
        replicates=replicates,
    )


def _means(chosen: BoolArray, table: FloatArray) -> FloatArray:
    counts = chosen.astype(np.float64)[None]
    means: FloatArray = kernels.cluster_means(counts, np.delete(table, 1, axis=1), table[:, 1])[0]
    return means


def _bootstrap(table: FloatArray, second: BoolArray, replicates: int, rng: np.random.Generator) -> FloatArray:
    """Return second minus first under tasks drawn within each family, shape (B, 1 + G)."""
    sums = np.delete(table, 1, axis=1)
    sides = []
    for chosen in (~second, second):
        blocks = kernels.bootstrap_counts(int(chosen.sum()), replicates, rng)
        sides.append(np.vstack([kernels.cluster_means(block, sums[chosen], table[chosen, 1]) for block in blocks]))
    return sides[1] - sides[0]


def _permute(table: FloatArray, second: BoolArray, replicates: int, rng: np.random.Generator) -> FloatArray:
    """Return second minus first under family labels permuted over tasks, shape (B, 1 + G)."""
    sums, sizes = np.delete(table, 1, axis=1), table[:, 1]
    gaps = []
    for labels in kernels.permuted_labels(int(second.sum()), len(second), replicates, rng):
        gaps.append(kernels.cluster_means(labels, sums, sizes) - kernels.cluster_means(1 - labels, sums, sizes))
    return np.vstack(gaps)


def _summary(name: str, values: FloatArray, n_tasks: int) -> FamilySummary:
    return FamilySummary(name, len(values), n_tasks, float(values.mean()), float(np.median(values)))
