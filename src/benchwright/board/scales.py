"""One scale for all tasks of a board: more is better, and a unit means the same everywhere by a stated rule.

Every rule is x -> (x - low) / (high - low) with a low and a high for each task, low > high where less is better:

    none      0 and 1; 1 and 0 where less is better. Values must lie within [0, 1]
    minmax    least and greatest task mean of the board's models
    zscore    mean of the models' task means, and that mean plus their standard deviation (divisor n - 1)
    bounds    as a file says; a task without a row as under none
    chance    the score of a guess, 1 / number of choices, and 1. Task scores below chance count as 0 where clipped

Under minmax and zscore a score depends on who is on the board. Standard errors take lows and highs as given.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import polars as pl
from numpy.typing import NDArray

from benchwright._check import FloatArray
from benchwright._json import json_safe
from benchwright._words import count
from benchwright.board.values import BoardValues
from benchwright.errors import DataError, Fault, UsageError
from benchwright.logs.tabular import Column
from benchwright.logs.user_weights import read_side_table
from benchwright.panel.item_values import IntArray
from benchwright.panel.names import listed, shown

ScaleRule = Literal["none", "minmax", "zscore", "bounds", "chance"]
CHOICES = "choose --scale minmax or zscore, give --bounds FILE (task,low,high), or name other tasks with --task"
ROUNDING = 1e-12
LARGEST = 1e100  # of a value: far beyond it sums and squares overflow


@dataclass(frozen=True, slots=True, eq=False)
class Scale:
    """A low and a high for each task (``bounds``: task, low, high), the rule they follow, and what to know of them.

    ``clip``: a task score below 0 counts as 0.
    """

    bounds: pl.DataFrame
    rule: ScaleRule = "bounds"
    clip: bool = False
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.rule not in get_args(ScaleRule):
            raise UsageError(f"`rule` must be one of {', '.join(get_args(ScaleRule))}, got {self.rule!r}")
        flat = self.bounds.filter(pl.col("low") == pl.col("high"))["task"].to_list()
        if flat:
            raise UsageError(f"`bounds` must have a low that is not the high, got {listed(flat)}")

    def ends(self, tasks: tuple[str, ...]) -> tuple[FloatArray, FloatArray]:
        """Return low and high of these tasks."""
        table = pl.DataFrame({"task": tasks}, schema={"task": pl.String}).join(
            self.bounds, on="task", how="left", maintain_order="left"
        )
        if lacking := table.filter(pl.col("low").is_null() | pl.col("high").is_null())["task"].to_list():
            raise DataError(
                f"the scale has no entry for {listed(lacking)}",
                hint="add a row for each task, or name other tasks with --task",
            )
        return table["low"].to_numpy(), table["high"].to_numpy()

    def scaled(self, values: BoardValues) -> tuple[FloatArray, FloatArray | None]:
        """Return values and stated standard errors on the scale."""
        low, high = self.ends(values.tasks)
        codes = values.codes
        reach = (high - low)[codes, None]
        x = (values.values - low[codes, None]) / reach
        errors = values.standard_errors
        return x, None if errors is None else errors / np.abs(reach)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON-safe values."""
        record: dict[str, Any] = json_safe(
            {"rule": self.rule, "clip": self.clip, "bounds": self.bounds.to_dicts(), "notes": list(self.notes)}
        )
        return record


def board_scale(
    values: BoardValues,
    rule: ScaleRule = "none",
    *,
    table: pl.DataFrame | None = None,
    clip: bool = True,
) -> Scale:
    """Return the scale of a board.

    Parameters
    ----------
    values
        Only what scores are made of: items left out do not move the ends of minmax and zscore.
    rule
        See the head of this module; "bounds" and "chance" need ``table``.
    table
        task, low, high ("bounds") or task, chance ("chance"), as :func:`read_bounds` and :func:`read_chance` give them.
    clip
        Under "chance": task scores below chance count as 0.

    Raises
    ------
    UsageError
        An unknown rule, or no table for one that needs it.
    DataError
        A task's values do not fit the rule; all such tasks are listed.
    """
    tasks, notes = values.tasks, _direction_notes(values)
    more = np.array([_more_is_better(values, task) for task in tasks], dtype=bool)
    if rule in ("bounds", "chance"):
        if table is None:
            raise UsageError(f'`table` must be given for the rule "{rule}"')
        if rule == "bounds":
            return _of_file(table, values, more)
        _must_fit(values, np.flatnonzero(~more), "less is better", "chance needs scores where more is better")
        within_unit(values)
        if clip:
            notes.append("task scores below chance count as 0: below chance, getting better earns nothing")
        bounds = table.select("task", low="chance", high=pl.lit(1.0))
        return Scale(bounds, rule, clip=clip, notes=tuple(notes))
    if rule == "none":
        within_unit(values)
        low, high = np.where(more, 0.0, 1.0), np.where(more, 1.0, 0.0)
        if (~more).any():
            notes.append(f"less is better in {_listed(tasks, ~more)}: x counts as 1 - x")
    elif rule in ("minmax", "zscore"):
        low, high = _spread(values, rule)
        if rule == "minmax":
            low, high = np.where(more, low, high), np.where(more, high, low)
            notes.append("a task's worst model has 0 and its best 1")
        else:
            high = np.where(more, high, 2 * low - high)
            notes.append("a task's average model has 0, one standard deviation of the models is 1")
        if (~more).any():
            notes.append(f"less is better in {_listed(tasks, ~more)}: turned round")
        notes.append("scores depend on who is on the board")
    else:
        raise UsageError(f"`rule` must be one of {', '.join(get_args(ScaleRule))}, got {rule!r}")
    return Scale(pl.DataFrame({"task": tasks, "low": low, "high": high}), rule, notes=tuple(notes))


def read_bounds(path: str | Path) -> pl.DataFrame:
    """Read task,low,high: scores on which a task counts 0 and 1; low > high where less is better."""
    columns = (Column("task", "text"), Column("low", "number"), Column("high", "number"))
    table = read_side_table(path, "bounds", columns)
    name = Path(path).name
    faults = _twice(table, name)
    flat = table.filter(pl.col("low") == pl.col("high"))["task"]
    faults += [Fault(name, f"task {shown(task)}: low and high are the same") for task in flat]
    if faults:
        raise DataError(f"{path}: the bounds cannot be used", faults=faults)
    return table


def read_chance(path: str | Path) -> pl.DataFrame:
    """Read task with ``chance`` or ``n_choices`` (0: an open question, chance 0); return task, chance."""
    named = [Column(name, "integer", required=False, low=0) for name in ("n_choices", "num_choices")]
    columns = [Column("task", "text"), Column("chance", "number", required=False, low=0.0, high=1.0), *named]
    table = read_side_table(path, "chance levels", columns, optional=True)
    given = next((name for name in ("chance", "n_choices", "num_choices") if name in table.columns), None)
    name = Path(path).name
    faults = _twice(table, name)
    if given is None:
        faults.append(Fault(name, "has neither a column `chance` nor `n_choices`"))
    else:
        guess = pl.when(pl.col(given) > 0).then(1 / pl.col(given)).otherwise(0.0)
        table = table.select("task", chance=pl.col(given) if given == "chance" else guess)
        full = table.filter(pl.col("chance") >= 1)["task"]
        faults += [Fault(name, f"task {shown(task)}: a guess is always right") for task in full]
    if faults:
        raise DataError(f"{path}: the chance levels cannot be used", faults=faults)
    return table


def _twice(table: pl.DataFrame, file: str) -> list[Fault]:
    repeated = table.filter(table["task"].is_duplicated())["task"].unique().sort()
    return [Fault(file, f"task {shown(task)} appears more than once") for task in repeated]


def _spread(values: BoardValues, rule: ScaleRule) -> tuple[FloatArray, FloatArray]:
    """Return least and greatest task mean of the models, or their mean and mean plus standard deviation."""
    large = np.unique(values.codes[(np.abs(values.values) > LARGEST).any(axis=1)])
    _must_fit(values, large, f"beyond {LARGEST:g}", "values are too large to be averaged")
    means = task_means(values.values, values.codes)
    known = np.isfinite(means)
    size = known.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        if rule == "minmax":
            low = np.where(known, means, np.inf).min(axis=1)
            high = np.where(known, means, -np.inf).max(axis=1)
        else:
            low = np.where(known, means, 0.0).sum(axis=1) / size
            squares = np.where(known, np.square(means - low[:, None]), 0.0).sum(axis=1)
            high = low + np.sqrt(squares / (size - 1))
    flat = ~(high - low > ROUNDING * np.maximum(np.abs(low), np.abs(high)))
    if flat.any():
        raise DataError(
            f"{rule} needs models that differ; they do not in {_listed(values.tasks, flat)}",
            hint="name other tasks with --task, or give --bounds FILE (task,low,high)",
        )
    return low, high


def task_means(values: FloatArray, codes: IntArray) -> FloatArray:
    """Return the plain mean of each model's items of each task, (T, n); NaN where it has none."""
    known = ~np.isnan(values)
    order = np.argsort(codes, kind="stable")
    starts = np.searchsorted(codes[order], np.arange(int(codes.max()) + 1))
    total = np.add.reduceat(np.where(known, values, 0.0)[order], starts, axis=0)
    size = np.add.reduceat(known[order].astype(np.float64), starts, axis=0)
    means: FloatArray = np.divide(total, size, out=np.full(total.shape, np.nan), where=size > 0)
    return means


def _more_is_better(values: BoardValues, task: str) -> bool:
    return (values.higher or {}).get(task) is not False


def _of_file(table: pl.DataFrame, values: BoardValues, more: NDArray[np.bool_]) -> Scale:
    """Return the scale of a file of bounds, with 0 and 1 for tasks that it does not name."""
    bare = np.array([task not in set(table["task"]) for task in values.tasks], dtype=bool)
    notes = _bounds_notes(table, values.tasks, more)
    rows = table.select("task", "low", "high")
    if bare.any():
        left = values.select(bare[values.codes])
        within_unit(left)
        ends = np.where(more[bare], 0.0, 1.0), np.where(more[bare], 1.0, 0.0)
        rows = pl.concat([rows, pl.DataFrame({"task": left.tasks, "low": ends[0], "high": ends[1]})])
        notes.append(f"{count(int(bare.sum()), 'task')} without bounds: 0 and 1, as their values lie within them")
    return Scale(rows, "bounds", notes=tuple(notes))


def within_unit(values: BoardValues) -> None:
    """Raise where values do not lie within [0, 1]."""
    finite = np.where(np.isnan(values.values), 0.5, values.values)
    outside = np.unique(values.codes[(finite < 0).any(axis=1) | (finite > 1).any(axis=1)])
    _must_fit(values, outside, "outside [0, 1]", "values must lie within [0, 1] without a scale")


def _must_fit(values: BoardValues, wrong: IntArray, how: str, rule: str) -> None:
    if not len(wrong):
        return
    faults = []
    for code in wrong:
        task = values.tasks[code]
        mine = values.values[values.codes == code]
        metric = (values.metrics or {}).get(task, "score")
        faults.append(Fault(shown(task), f"{shown(metric)}: {how}, {np.nanmin(mine):.4g} to {np.nanmax(mine):.4g}"))
    verb = "does" if len(wrong) == 1 else "do"
    raise DataError(f"{rule}; {count(len(wrong), 'task')} {verb} not fit", faults=faults, hint=CHOICES)


def _direction_notes(values: BoardValues) -> list[str]:
    unsure = {(values.metrics or {}).get(task, "score") for task in values.tasks if not _is_known(values, task)}
    if not unsure:
        return []
    return [f"more of `{'`, `'.join(map(shown, sorted(unsure)))}` is taken to be better: no log says"]


def _is_known(values: BoardValues, task: str) -> bool:
    return (values.higher or {}).get(task) is not None


def _bounds_notes(table: pl.DataFrame, tasks: tuple[str, ...], more: np.ndarray[Any, Any]) -> list[str]:
    """Say where a file and the logs disagree on which way is better: the file counts."""
    rising = dict(table.select("task", pl.col("high") > pl.col("low")).iter_rows())
    turned = np.array([task in rising and rising[task] != up for task, up in zip(tasks, more, strict=True)], dtype=bool)
    return [f"bounds turn {_listed(tasks, turned)} round against what its metric says"] if turned.any() else []


def _listed(tasks: tuple[str, ...], which: np.ndarray[Any, Any]) -> str:
    return listed(task for task, flag in zip(tasks, which, strict=True) if flag)
