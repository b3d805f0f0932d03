"""Values of work activities from raw worker ratings: how much workers want a model to take over, or to help with, each.

A task's mean rating is that of the workers who rated it; an activity's value is the share of its rated tasks whose mean
reaches a threshold, automation desire for one framing and desired human involvement for the other (Haupt et al., arXiv
2605.30916, on WORKBank, Shao et al., arXiv 2506.06576). A task counts for the first activity that it lists, or for all.
Activities with too few rated tasks are dropped; each framing's shares are taken to [1, 5] by their own least and
greatest over the kept. Means of ratings stand on [1, 5] as they are.

How sure: workers and tasks are drawn again (``_activity_scores``). A threshold makes noise in means add to shares, in
the estimate and again in every replicate, so replicates are moved to have the estimate as their mean; ``shift`` says by
how much they had left it. The line to [1, 5] stays that of the estimate, so values drawn may leave [1, 5]; ends of
intervals stay where a share from 0 to 1 can put them.

Breadth, in the published table only: over occupations, employment times the mean importance of the tasks that count for
the activity, rated or not; its logarithm taken to [1, 5] over the kept. P_auto and P_aug are breadth times value, both
taken to [1, 5] by the least and greatest of the two together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import sparse

from benchwright import __version__
from benchwright._check import FloatArray
from benchwright._json import json_safe
from benchwright._shown import Headline, Shown, ShownPart
from benchwright._words import count as counted
from benchwright.errors import DataError, UsageError
from benchwright.estimating._resampling import tail_count
from benchwright.judge import _activity_scores as kernel
from benchwright.judge.activity_groups import group_tasks
from benchwright.judge.workbank import FRAMINGS, LEVELS, Level, WorkBank, read_workbank

Count = Literal["first", "all"]
Value = Literal["share", "mean"]
DIGITS = 4  # of the published tables
SPREAD = ("se", "lo", "hi", "shift")


@dataclass(frozen=True, slots=True)
class ActivityRule:
    """How ratings become values. The defaults are the paper's.

    Parameters
    ----------
    count
        A task counts for the ``first`` activity that it lists, or for ``all``.
    workers
        Weight of a worker's ratings by self-reported expertise, e.g. {"Expert": 1, "Average": 1, "Novice": 0}; None:
        all weigh the same.
    threshold
        Mean rating, on 1 to 5, from which a task counts.
    level
        Activities: generalized (``gwa``), intermediate (``iwa``) or detailed (``dwa``).
    value
        ``share`` of tasks that count, or ``mean`` of the tasks' means.
    least_tasks
        Activities with fewer rated tasks are dropped.
    """

    count: Count = "first"
    workers: Mapping[str, float] | None = None
    threshold: float = 3.5
    level: Level = "gwa"
    value: Value = "share"
    least_tasks: int = 5

    def __post_init__(self) -> None:
        for name, allowed in (("count", ("first", "all")), ("level", LEVELS), ("value", ("share", "mean"))):
            if getattr(self, name) not in allowed:
                raise UsageError(f"`{name}` must be one of {', '.join(allowed)}, got {getattr(self, name)!r}")
        if not 1 <= self.threshold <= 5:
            raise UsageError(f"`threshold` must lie in 1 .. 5, as ratings do, got {self.threshold!r}")
        if self.least_tasks < 1:
            raise UsageError(f"`least_tasks` must be at least 1, got {self.least_tasks!r}")
        weights = () if self.workers is None else self.workers.values()
        if self.workers is not None and not (
            all(np.isfinite(weight) and weight >= 0 for weight in weights) and any(weights)
        ):
            raise UsageError(
                f"`workers` must give weights of at least 0, and one above 0, got {dict(self.workers)!r}",
                hint='e.g. {"Expert": 1, "Average": 1, "Novice": 0}',
            )


@dataclass(frozen=True, slots=True, eq=False)
class ActivityScores(Shown):
    """Values of activities, and how sure they are.

    Attributes
    ----------
    table
        activity (id), label, element (O*NET id), n_tasks (rated), dropped, share_auto, share_aug, mean_auto, mean_aug,
        auto, aug (values on [1, 5], null where dropped), auto_se, auto_lo, auto_hi, auto_shift and the same of aug
        (null without draws; ``shift``: mean of the replicates less the estimate, on the same line), breadth_raw,
        log_breadth, breadth, P_auto, P_aug (null at other levels than gwa). Sorted by element.
    draws
        replicate, activity, auto, aug of the kept activities; None without ``rng``.
    rule
        The choices.
    replicates, confidence
        Number of draws (0: none), level of their intervals.
    notes
        What was left out, and why.
    version
        Of benchwright.
    """

    table: pl.DataFrame
    draws: pl.DataFrame | None
    rule: ActivityRule
    replicates: int
    confidence: float
    notes: tuple[str, ...] = ()
    version: str = __version__

    def _told(self) -> Iterable[ShownPart]:
        kept = self.table.filter(~pl.col("dropped"))
        what = "share of tasks" if self.rule.value == "share" else "mean rating"
        yield Headline(
            f"{kept.height} of {self.table.height} activities kept, by {what}, on [1, 5]"
            + (f"; intervals of level {self.confidence:g}" if self.replicates else "")
        )
        for row in kept.sort("auto", descending=True).iter_rows(named=True):
            ends = {
                name: f" ({row[f'{name}_lo']:.2f} to {row[f'{name}_hi']:.2f})" if self.replicates else ""
                for name in FRAMINGS
            }
            values = ", ".join(f"{name} {row[name]:.2f}{ends[name]}" for name in FRAMINGS)
            yield f"  {row['activity']}: {values}, {counted(row['n_tasks'], 'task')}"

    def to_frame(self) -> pl.DataFrame:
        """Return the table in the columns of ``gwa_welfare_scores.csv``, or of ``gwa_welfare_scores_mean.csv``.

        An item-table folder takes it as it is. Figures are rounded to the 4 digits of the published tables, far below
        what a share of 136 tasks can tell.
        """
        names = {"gwa": "label", "concept_id": "activity", "n_tasks_wb": "n_tasks"}
        by_share = self.rule.value == "share"
        if by_share:
            names |= {"p_auto": "share_auto", "p_aug": "share_aug", "breadth_raw": "breadth_raw"}
            names |= {"log_breadth": "log_breadth", "dropped": "dropped", "breadth": "breadth"}
        else:
            names |= {"p_auto_mean": "mean_auto", "p_aug_mean": "mean_aug", "dropped": "dropped"}
        names |= {f"p_{name}_15": name if by_share else f"mean_{name}" for name in FRAMINGS}
        names |= {f"P_{name}": f"P_{name}" for name in FRAMINGS if by_share}
        frame = self.table.select(pl.col(own).alias(name) for name, own in names.items())
        return frame.with_columns(pl.col(pl.Float64).round(DIGITS))

    def to_dict(self) -> dict[str, Any]:
        """Return all fields but the draws, in types that JSON knows."""
        record = {name: getattr(self, name) for name in ("replicates", "confidence", "notes", "version")}
        return dict(json_safe({"rule": asdict(self.rule), "activities": self.table.to_dicts(), **record}))


def activity_scores(
    source: str | Path | WorkBank,
    *,
    count: Count = "first",
    workers: Mapping[str, float] | None = None,
    threshold: float = 3.5,
    level: Level = "gwa",
    value: Value = "share",
    least_tasks: int = 5,
    rng: np.random.Generator | None = None,
    replicates: int = 1000,
    confidence: float = 0.95,
) -> ActivityScores:
    """Return the value of each cognitive work activity from raw worker ratings.

    Parameters
    ----------
    source
        Folder with the raw files (``judge.workbank``), or what ``read_workbank`` made of it.
    count, workers, threshold, level, value, least_tasks
        How ratings become values: :class:`ActivityRule`. The defaults give the published table.
    rng
        Of the draws of workers and tasks; None: no draws and no intervals.
    replicates, confidence
        Number of draws, level of their intervals.

    Raises
    ------
    UsageError, DataError
        A choice out of range; files that are missing or have faults; no activity with enough rated tasks.

    Examples
    --------
    >>> frame = pl.DataFrame({"task": ["a", "b"], "worker": ["1", "1"], "expertise": ["Expert"] * 2,
    ...                       "auto": [5.0, 2.0], "aug": [1.0, 4.0]})
    >>> tasks = pl.DataFrame({"task": ["a", "b"], "occupation": ["o", "o"], "importance": [4.0, 3.0],
    ...                       "employment": [10.0, 10.0], "activities": [["4.A.1.a.1"], ["4.A.2.a.4"]]})
    >>> names = {"4.A.1.a.1": "Getting Information", "4.A.2.a.4": "Analyzing Data or Information"}
    >>> print(activity_scores(WorkBank(frame, tasks, names), least_tasks=1))
    2 of 27 activities kept, by share of tasks, on [1, 5]
      getting_information: auto 5.00, aug 1.00, 1 task
      analyzing_data: auto 1.00, aug 5.00, 1 task
    """
    rule = ActivityRule(count, workers, threshold, level, value, least_tasks)
    k = tail_count(replicates, confidence) if 0 < confidence < 1 else 0
    if rng is not None and k < 1:
        raise UsageError(f"`replicates` must be enough for intervals of level {confidence!r}, got {replicates!r}")
    bank = source if isinstance(source, WorkBank) else read_workbank(source, level=level)
    if bank.level != level:
        raise UsageError(f"`level` must be that of the tables, {bank.level}, got {level!r}")
    grouped = group_tasks(bank, rule.count)
    ratings, unweighted = _weighted(bank, rule)
    cut = rule.threshold if rule.value == "share" else None
    shares, counts = kernel.activity_values(ratings, grouped.member, rule.threshold)
    means, _ = kernel.activity_values(ratings, grouped.member, None)
    kept = counts.min(axis=0) >= rule.least_tasks
    if not kept.any():
        raise DataError(
            f"no activity has {counted(rule.least_tasks, 'rated task')}",
            hint="lower `least_tasks`, or have more tasks rated",
        )
    chosen = means if cut is None else shares
    slope, start = (np.ones(2), np.zeros(2)) if cut is None else kernel.rescaled(shares, kept)
    values = np.where(kept, start[:, None] + slope[:, None] * chosen, np.nan)
    columns = {
        f"{what}_{name}": one[f]
        for f, name in enumerate(FRAMINGS)
        for what, one in (("share", shares), ("mean", means))
    }
    columns |= dict(zip(FRAMINGS, values, strict=True))
    drawn = None
    spread = np.full((len(SPREAD), 2, len(kept)), np.nan)
    if rng is not None:
        raw = kernel.activity_draws(ratings, grouped.member[kept], cut, replicates=replicates, rng=rng)
        centre = raw.mean(axis=0)
        drawn = values[:, kept] + slope[:, None] * (raw - centre)
        ordered = np.sort(drawn, axis=0)
        least, most = (start + slope * end for end in ((1.0, 5.0) if cut is None else (0.0, 1.0)))
        ends = np.maximum(ordered[k - 1], least[:, None]), np.minimum(ordered[-k], most[:, None])
        shift = slope[:, None] * (centre - chosen[:, kept])
        spread[:, :, kept] = drawn.std(axis=0, ddof=1), *ends, shift
    columns |= {f"{name}_{what}": spread[i, f] for f, name in enumerate(FRAMINGS) for i, what in enumerate(SPREAD)}
    columns |= _breadth(bank, grouped.member, values, kept)
    table = grouped.names.with_columns(
        pl.Series("n_tasks", counts.min(axis=0)),
        pl.Series("dropped", ~kept),
        *(pl.Series(name, one).fill_nan(None) for name, one in columns.items()),
    )
    return ActivityScores(
        table=table,
        draws=None if drawn is None else _long(drawn, table.filter(~pl.col("dropped"))["activity"]),
        rule=rule,
        replicates=0 if rng is None else replicates,
        confidence=confidence,
        notes=(*bank.notes, *grouped.notes, *unweighted, *_said(table, rule, slope, drawn)),
    )


def _weighted(bank: WorkBank, rule: ActivityRule) -> tuple[kernel.Ratings, list[str]]:
    """Return the ratings with the weights of their workers, and who is left out by a weight of 0."""
    ratings, notes = bank.ratings, list[str]()
    weight = pl.lit(1.0)
    if rule.workers is not None:
        told = set(ratings["expertise"].unique())
        if unknown := sorted(str(name) for name in told - rule.workers.keys()):
            raise UsageError(
                f"`workers` must weigh each expertise that the ratings have, and lacks {', '.join(unknown)}",
                hint=f"workers say: {', '.join(sorted(map(str, told)))}",
            )
        weight = pl.col("expertise").replace_strict(dict(rule.workers), return_dtype=pl.Float64)
        if out := ratings.filter(weight == 0).height:
            notes.append(f"{counted(out, 'rating')} are of workers whose expertise weighs 0.")
    place = bank.tasks.select("task").with_row_index("place")
    placed = ratings.join(place, on="task", maintain_order="left")
    worker = placed["worker"].rank("dense").to_numpy().astype(np.int64) - 1
    return kernel.Ratings(
        task=placed["place"].to_numpy().astype(np.int64),
        worker=worker,
        weight=placed.select(weight.alias("weight")).to_series().to_numpy() * np.ones(placed.height),
        value=placed.select(pl.col(*FRAMINGS).cast(pl.Float64).fill_null(np.nan)).to_numpy().T,
        tasks=bank.tasks.height,
        workers=int(worker.max(initial=-1)) + 1,
    ), notes


def _breadth(
    bank: WorkBank, member: sparse.csr_array, values: FloatArray, kept: NDArray[np.bool_]
) -> dict[str, FloatArray]:
    """Return the columns of breadth; NaN at levels other than gwa, and without employment."""
    names = ("breadth_raw", "log_breadth", "breadth", "P_auto", "P_aug")
    unknown = {name: np.full(len(kept), np.nan) for name in names}
    if bank.level != "gwa":
        return unknown
    pairs = sparse.coo_array(member)
    of_task = bank.tasks.select("occupation", "importance", "employment")[pairs.col.astype(np.int64)]
    by_occupation = (
        of_task.with_columns(activity=pl.Series(pairs.row.astype(np.int64)))
        .group_by("activity", "occupation", maintain_order=True)
        .agg(pl.col("employment").first() * pl.col("importance").mean())
        .group_by("activity", maintain_order=True)
        .agg(pl.col("employment").sum())
        .filter(pl.col("employment") > 0)
    )
    raw = unknown["breadth_raw"]
    raw[by_occupation["activity"].to_numpy()] = by_occupation["employment"].to_numpy()
    log = np.log(raw)
    sure = kept & np.isfinite(log)
    slope, start = kernel.rescaled(log[None], sure)
    breadth = np.where(kept, start + slope * log, np.nan)
    both = breadth * values
    slope, start = kernel.rescaled(both.reshape(1, -1), np.isfinite(both).ravel())
    return dict(zip(names, (raw, log, breadth, *(start + slope * both)), strict=True))


def _said(table: pl.DataFrame, rule: ActivityRule, slope: FloatArray, drawn: FloatArray | None) -> list[str]:
    """Return what a reader of the table should know of values that are missing."""
    notes = []
    if dropped := table.filter("dropped")["activity"].to_list():
        listed = ", ".join(dropped[:5]) + (", ..." if len(dropped) > 5 else "")
        notes.append(f"Dropped for fewer than {counted(rule.least_tasks, 'rated task')}: {len(dropped)} ({listed}).")
    for name, one in zip(FRAMINGS, slope, strict=True):
        if not np.isfinite(one):
            notes.append(f"All kept activities have the same share of tasks, so {name} has no value on [1, 5].")
    if drawn is not None and np.isfinite(slope).all() and np.isnan(drawn).any():
        notes.append("In some draws an activity has no rating at all; it has no interval.")
    return notes


def _long(drawn: FloatArray, activities: pl.Series) -> pl.DataFrame:
    """Return draws (B, F, G) as replicate, activity and the framings, without activities that lack one."""
    b, _, g = drawn.shape
    frame = pl.DataFrame(
        {
            "replicate": np.repeat(np.arange(1, b + 1), g),
            "activity": pl.concat([activities] * b),
            **{name: drawn[:, f].ravel() for f, name in enumerate(FRAMINGS)},
        }
    )
    sure = activities.filter(pl.Series(np.isfinite(drawn).all(axis=(0, 1))))
    return frame.filter(pl.col("activity").is_in(sure.to_list()))
