"""Scores from a panel: means with their own standard errors, rank intervals, paired comparisons.

With x_ij the value of entry i on item j of task t, n_t items a task, N items in all and T tasks,

    micro mean   sum_t (n_t / N) mean_t      standard error   sqrt(sum_t (n_t / N)^2 se_t^2)
    macro mean   sum_t mean_t / T            standard error   sqrt(sum_t se_t^2) / T

with se_t^2 = var_t / n_t (divisor n_t - 1). Where logs name clusters of items (that share a passage, say), G_t of
them in a task, deviations are summed within each before they are squared:

    se_t^2 = G_t / (G_t - 1) * sum_g (sum_{j in g} x_ij - mean_t)^2 / n_t^2

which is var_t / n_t again if every item is a cluster of its own. Two entries are compared on the items that both
have: the difference of means with the standard error of the *differences*, far smaller than the two apart. A rank
interval counts the entries that are better, and worse, beyond doubt: paired z-tests over all pairs, Bonferroni.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import polars as pl
from scipy import stats

from benchwright._check import FloatArray
from benchwright._json import json_safe
from benchwright._shown import Shown, ShownPart, frame_table
from benchwright.errors import DataError, UsageError
from benchwright.panel.item_values import Errors, IntArray, collect_values
from benchwright.panel.panel import Panel, Repeated

FEW_CLUSTERS = 30
Missing = Literal["intersect", "renormalise", "refuse"]
Mean = Literal["micro", "macro"]


@dataclass(frozen=True, slots=True, eq=False)
class ScoreTable(Shown):
    """Entries with their scores.

    ``frame``: entry, n_items, n_tasks, coverage, n_error, n_unscored, micro, micro_se, macro, macro_se, rank,
    rank_lo, rank_hi, tie_group. ``metrics`` names the metric used per task; ``policy`` says how errors,
    missing items and repeats were treated, the same for all entries.
    """

    frame: pl.DataFrame
    metrics: dict[str, str]
    policy: dict[str, Any]
    notes: tuple[str, ...]

    def _told(self) -> Iterable[ShownPart]:
        yield frame_table(self.frame)
        yield "metric: " + ", ".join(sorted({*self.metrics.values()}))
        yield "policy: " + ", ".join(f"{key} {value}" for key, value in self.policy.items())
        yield from self.notes

    def to_frame(self) -> pl.DataFrame:
        """Return the table."""
        return self.frame

    def to_dict(self) -> dict[str, Any]:
        """Return the table, metrics and policy as JSON-safe values."""
        record: dict[str, Any] = json_safe(
            {
                "scores": self.frame.to_dicts(),
                "metrics": self.metrics,
                "policy": self.policy,
                "notes": list(self.notes),
            }
        )
        return record


@dataclass(frozen=True, slots=True)
class Comparison(Shown):
    """First entry minus second on the items that both have.

    ``mcnemar_p`` is NaN unless all values are 0 or 1 and no two items share a cluster.
    """

    first: str
    second: str
    n_items: int
    first_mean: float
    second_mean: float
    difference: float
    standard_error: float
    p: float
    mcnemar_p: float

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON-safe values."""
        record: dict[str, Any] = json_safe({name: getattr(self, name) for name in self.__slots__})
        return record


def score_table(
    panel: Panel,
    *,
    metric: str | None = None,
    tasks: Sequence[str] | None = None,
    errors: Errors = "drop",
    missing: Missing = "intersect",
    repeated: Repeated = "latest",
    pool_versions: bool = False,
    by: Mean = "micro",
    level: float = 0.95,
) -> ScoreTable:
    """Score every model of a panel on the same items.

    Parameters
    ----------
    metric
        One metric for all tasks; by default, per task the one that most models have (then the first of a
        fixed order), and the table says which.
    tasks
        Only these tasks.
    errors
        Failed and refused samples are wrong (0), dropped, or missing (then ``missing`` decides).
    missing
        Only items that all entries have (intersect), each entry on its own items (renormalise), or no score for
        an entry that lacks any (refuse).
    pool_versions
        Take different versions of a task for one task; without it they are an error.
    by
        Mean that the ranks follow.
    level
        Level at which ranks are told apart, after Bonferroni's correction for all pairs.
    """
    values, chosen, counts, lacking = collect_values(panel, metric, tasks, errors, repeated)
    notes = version_notes(panel, list(chosen), pool=pool_versions)
    if lacking:
        more = f" and {len(lacking) - 10} more" if len(lacking) > 10 else ""
        notes.append(f"left out for want of this metric: {', '.join(lacking[:10])}{more}; --metric names another")
    entries = counts["entry"].to_list()
    matrix, codes = values.matrix(range(len(entries)))
    clusters = values.clusters
    del values
    complete = np.asarray(np.isfinite(matrix).all(axis=1))
    if missing == "intersect":
        used = complete
        if not used.any():
            raise DataError(
                "no item has a value for every entry",
                hint="choose --missing renormalise, or fewer models or tasks",
            )
        if not complete.all():
            notes.append(f"{int((~complete).sum())} of {len(complete)} items are not common to all and are left out.")
    else:
        used = np.full(complete.shape, True)
    matrix, codes, clusters = matrix[used], codes[used], None if clusters is None else clusters[used]
    if clusters is not None:
        notes += _cluster_notes(list(chosen), codes, clusters)
    summary = [_summary(matrix[:, place], codes, clusters) for place in range(len(entries))]
    frame = counts.with_columns(
        n_items=pl.Series([s["n_items"] for s in summary], dtype=pl.Int64),
        n_tasks=pl.Series([s["n_tasks"] for s in summary], dtype=pl.Int64),
        **{name: pl.Series([s[name] for s in summary]) for name in ("micro", "micro_se", "macro", "macro_se")},
    ).with_columns(coverage=pl.col("n_items") / len(complete))
    if missing == "refuse":
        partial = pl.col("n_items") < len(complete)
        means = ("micro", "micro_se", "macro", "macro_se")
        frame = frame.with_columns(pl.when(~partial).then(pl.col(name)).alias(name) for name in means)
    ranks = _ranks(matrix, codes, clusters, frame[by].fill_null(np.nan).to_numpy(), by, level)
    frame = frame.with_columns(**ranks).with_columns(pl.col(pl.Float64).fill_nan(None))
    order = ["entry", "n_items", "n_tasks", "coverage", "n_error", "n_unscored"]
    order += ["micro", "micro_se", "macro", "macro_se", "rank", "rank_lo", "rank_hi", "tie_group"]
    policy = {
        "errors": errors,
        "missing": missing,
        "repeated": repeated,
        "versions": "pooled" if pool_versions else "one a task",
        "standard errors": "for independent items" if clusters is None else "clustered",
        "ranked by": by,
        "ranks told apart at": f"{level:g} over all pairs (Bonferroni)",
    }
    table = frame.select(order).sort("rank", "entry", nulls_last=True)
    return ScoreTable(table, chosen, policy, tuple(notes))


def compare_models(
    panel: Panel,
    first: str,
    second: str,
    *,
    metric: str | None = None,
    errors: Errors = "drop",
    pool_versions: bool = False,
) -> Comparison:
    """Compare two entries (``model`` or ``model@revision``) on the items that both have.

    Raises
    ------
    UsageError
        An entry is not in the panel.
    DataError
        They have fewer than two items in common.
    """
    values, chosen, counts, _ = collect_values(panel, metric, None, errors, "latest")
    version_notes(panel, list(chosen), pool=pool_versions)
    entries = counts["entry"].to_list()
    for name in (first, second):
        if name not in entries:
            raise UsageError(f"no entry `{name}` in the panel", hint=f"entries: {', '.join(entries[:10])}")
    matrix, codes = values.matrix([entries.index(first), entries.index(second)])
    both = ~np.isnan(matrix).any(axis=1)
    if both.sum() < 2:
        raise DataError(f"{first} and {second} have {int(both.sum())} items in common, too few to compare")
    x, y = matrix[both].T
    clusters = None if values.clusters is None else values.clusters[both]
    gap = _summary(x - y, codes[both], clusters)
    se = gap["micro_se"]
    p = float(2 * stats.norm.sf(abs(gap["micro"]) / se)) if se > 0 else np.nan
    alone = clusters is None or np.unique(clusters).size == len(clusters)
    binary = alone and bool(np.isin(matrix[both], (0.0, 1.0)).all())
    only_first, only_second = int(((x == 1) & (y == 0)).sum()), int(((x == 0) & (y == 1)).sum())
    mcnemar = np.nan
    if binary:
        n = only_first + only_second
        mcnemar = float(stats.binomtest(only_first, n).pvalue) if n else 1.0
    return Comparison(first, second, len(x), float(x.mean()), float(y.mean()), gap["micro"], se, p, mcnemar)


def version_notes(panel: Panel, tasks: list[str], *, pool: bool) -> list[str]:
    """Refuse, or say, that a task is there in several versions."""
    cells = panel.cells().filter("active", pl.col("task").is_in(tasks), pl.col("version").is_not_null())
    versions = cells.group_by("task").agg(pl.col("version").unique().sort()).filter(pl.col("version").list.len() > 1)
    mixed = [f"{task} ({', '.join(named)})" for task, named in versions.sort("task").iter_rows()]
    if mixed and not pool:
        raise DataError(
            f"tasks in more than one version: {'; '.join(mixed[:5])}",
            hint="name other tasks, or take the versions for one task with --pool-versions",
        )
    return [f"versions taken for one task: {text}" for text in mixed]


def _cluster_notes(tasks: list[str], codes: IntArray, clusters: IntArray) -> list[str]:
    """Say how many clusters each task has; refuse one whose items are all in one."""
    notes = []
    for code, task in enumerate(tasks):
        mine = clusters[codes == code]
        groups = np.unique(mine).size
        if groups == len(mine):
            continue
        if groups == 1:
            raise DataError(
                f"task {task}: all {len(mine)} items are in one cluster, which leaves no standard error",
                hint="name other tasks, or clusters that tell its items apart",
            )
        few = "; too few to trust the standard errors, which are rather too small" if groups < FEW_CLUSTERS else ""
        notes.append(f"task {task}: {len(mine)} items in {groups} clusters{few}")
    return notes


def _cluster_sums(deviations: FloatArray, clusters: IntArray) -> FloatArray:
    """Return the sums of deviations (items x entries) over each cluster."""
    numbers, at = np.unique(clusters, return_inverse=True)
    sums = np.zeros((numbers.size, deviations.shape[1]))
    np.add.at(sums, at, deviations)
    return sums


def _summary(values: FloatArray, codes: IntArray, clusters: IntArray | None) -> dict[str, Any]:
    """Return micro and macro means with their standard errors; a task of one item has no standard error."""
    known = ~np.isnan(values)
    x, t = values[known], codes[known]
    n_tasks = int(codes.max()) + 1 if len(codes) else 0
    n = np.bincount(t, minlength=n_tasks).astype(float)
    have = n > 0
    if not have.any():
        return {"n_items": 0, "n_tasks": 0, "micro": np.nan, "micro_se": np.nan, "macro": np.nan, "macro_se": np.nan}
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.bincount(t, x, minlength=n_tasks) / n
        independent, of, deviation = n, t, x - mean[t]
        if clusters is not None:
            first, at = np.unique(clusters[known], return_index=True, return_inverse=True)[1:]
            of, deviation = t[first], np.bincount(at, deviation)
            independent = np.bincount(of, minlength=n_tasks)
        squares = np.bincount(of, deviation**2, minlength=n_tasks)
        variance = squares / n**2 * independent / (independent - 1)
    share = n[have] / n.sum()
    return {
        "n_items": int(n.sum()),
        "n_tasks": int(have.sum()),
        "micro": float(share @ mean[have]),
        "micro_se": float(np.sqrt(share**2 @ variance[have])),
        "macro": float(mean[have].mean()),
        "macro_se": float(np.sqrt(variance[have].sum()) / have.sum()),
    }


def _ranks(
    matrix: FloatArray, codes: IntArray, clusters: IntArray | None, means: FloatArray, by: Mean, level: float
) -> dict[str, pl.Series]:
    """Return rank, rank interval and tie group; null for an entry without a score."""
    scored = np.isfinite(means)
    size = len(means)
    complete = ~np.isnan(matrix[:, scored]).any(axis=1)
    x, t = matrix[complete][:, scored], codes[complete]
    n_tasks = int(codes.max()) + 1
    n = np.bincount(t, minlength=n_tasks).astype(float)
    have = n > 1
    covariance = np.zeros((x.shape[1], x.shape[1]))
    average = np.zeros(x.shape[1])
    for task in np.flatnonzero(n > 0):
        mine = x[t == task]
        weight = n[task] / n.sum() if by == "micro" else 1.0 / (n > 0).sum()
        average += weight * mine.mean(axis=0)
        if have[task]:
            centred = mine - mine.mean(axis=0)
            if clusters is not None:
                centred = _cluster_sums(centred, clusters[complete][t == task])
            apart = len(centred)  # one alone leaves everything open
            share = apart / (apart - 1) if apart > 1 else np.nan
            covariance += (weight / n[task]) ** 2 * share * centred.T @ centred
    spread = np.sqrt(np.maximum(covariance.diagonal()[:, None] + covariance.diagonal() - 2 * covariance, 0.0))
    gap = average[:, None] - average
    pairs = max(1, x.shape[1] * (x.shape[1] - 1) // 2)
    critical = float(stats.norm.isf((1 - level) / 2 / pairs))
    better = gap < -critical * spread - 1e-15  # column is better than row, beyond doubt
    enough = complete.sum() >= 2
    low = 1 + better.sum(axis=1) if enough else np.ones(x.shape[1])
    high = x.shape[1] - better.sum(axis=0) if enough else np.full(x.shape[1], x.shape[1])
    rank = 1 + (means[scored][None, :] > means[scored][:, None] + 1e-12).sum(axis=1)
    groups, leader, group = np.zeros(x.shape[1], dtype=np.int64), -1, 0
    for place in np.argsort(-means[scored], kind="stable"):
        if leader < 0 or better[place, leader]:
            leader, group = place, group + 1
        groups[place] = group
    columns = {"rank": rank, "rank_lo": low, "rank_hi": high, "tie_group": groups}
    filled = {}
    for name, column in columns.items():
        full = np.full(size, np.nan)
        full[scored] = column
        filled[name] = pl.Series(full).fill_nan(None).cast(pl.Int64)
    return filled
