"""The numbers of a leaderboard: models on items, or on tasks where only task scores are known."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from benchwright._check import FloatArray
from benchwright._shown import Shown
from benchwright._words import count
from benchwright.errors import DataError, UsageError
from benchwright.logs.score_values import direction
from benchwright.panel.derived import LOWER_IS_BETTER, is_derived
from benchwright.panel.item_values import (
    Errors,
    IntArray,
    choose_metrics,
    cluster_numbers,
    collect_values,
    entry_name,
    measure_name,
)
from benchwright.panel.names import listed, matching, shown
from benchwright.panel.panel import Panel, Repeated
from benchwright.panel.scores import version_notes

Level = Literal["item", "task"]
LevelChoice = Literal["auto", "item", "task"]


@dataclass(frozen=True, slots=True, eq=False)
class BoardValues(Shown):
    """Values of n models on m items, or on m tasks (``level`` "task").

    Parameters
    ----------
    models
        Names, all different.
    items
        task and doc_id (both text), shape (m,), no row twice; doc_id is null where a row is a whole task.
    values
        Shape (m, n), as the logs have them; NaN where a model lacks an item. Never infinite.
    level
        What a row is.
    clusters
        Shape (m,), numbers: items of one number were drawn together. None: each item is drawn on its own.
    metrics, higher
        Per task: the metric, and whether more is better (None where that is not known).
    sizes
        Shape (m,), level "task": how many items are behind a task, NaN where no log says so.
    standard_errors
        Shape (m, n), level "task": as the logs state them, NaN where they do not. None: nothing is stated.
    notes
        What a reader should know of how the values came about.

    Raises
    ------
    UsageError
        Shapes that do not fit, a name or an item twice, an infinite value.
    """

    models: tuple[str, ...]
    items: pl.DataFrame
    values: FloatArray
    level: Level = "item"
    clusters: IntArray | None = None
    metrics: dict[str, str] | None = None
    higher: dict[str, bool | None] | None = None
    sizes: FloatArray | None = None
    standard_errors: FloatArray | None = None
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        shape = (self.items.height, len(self.models))
        beside: dict[str, tuple[NDArray[Any] | None, tuple[int, ...]]] = {
            "values": (self.values, shape),
            "clusters": (self.clusters, shape[:1]),
            "sizes": (self.sizes, shape[:1]),
            "standard_errors": (self.standard_errors, shape),
        }
        for name, (array, wanted) in beside.items():
            if array is not None and array.shape != wanted:
                raise UsageError(f"`{name}` must have shape {wanted}, got {array.shape}")
        if np.isinf(self.values).any():
            raise UsageError("`values` must be finite, or NaN where a model lacks an item")
        if len({*self.models}) < len(self.models):
            name = next(name for name in self.models if self.models.count(name) > 1)
            raise UsageError(f"`models` must differ, got `{shown(name)}` twice")
        if (twice := self.items.select("task", "doc_id").is_duplicated()).any():
            raise UsageError(f"`items` must differ, got {self.items.filter(twice).row(0)} twice")

    @classmethod
    def from_frame(cls, frame: pl.DataFrame) -> BoardValues:
        """Return the values of a long table: one row per model and item, or per model and task.

        Columns model, task and value; doc_id where rows are items; where there are such columns, cluster (of an item,
        within its task), stderr (of a task score), higher_is_better and metric (of a task).

        Examples
        --------
        >>> import polars as pl
        >>> table = pl.DataFrame({"model": ["x", "y"], "task": "a", "doc_id": [1, 1], "value": [1.0, 0.0]})
        >>> BoardValues.from_frame(table).values.tolist()
        [[1.0, 0.0]]
        """
        if missing := {"model", "task", "value"} - {*frame.columns}:
            raise UsageError(f"`frame` must have model, task and value; {', '.join(sorted(missing))} is missing")
        by_item = "doc_id" in frame.columns
        doc_id = pl.col("doc_id") if by_item else pl.lit(None)
        table = frame.with_columns(pl.col("model", "task").cast(pl.String), doc_id=doc_id.cast(pl.String))
        key = ["model", "task", "doc_id"] if by_item else ["model", "task"]
        if table.select(key).null_count().sum_horizontal().item():
            raise UsageError(f"`frame` must hold {', '.join(key)} in every row")
        if (twice := table.select(key).is_duplicated()).any():
            named = listed(table.filter(twice).select(key).row(0))
            raise UsageError(f"`frame` must hold a value once, got ({named}) twice", hint="average repeats first")
        models = table["model"].unique().sort()
        items = table.select("task", "doc_id").unique().sort("task", "doc_id")
        at = (
            table.select("task", "doc_id")
            .join(items.with_row_index("row"), on=["task", "doc_id"], nulls_equal=True, maintain_order="left")["row"]
            .to_numpy(),
            table["model"].replace_strict(models, range(len(models)), return_dtype=pl.Int64).to_numpy(),
        )

        def filled(name: str) -> FloatArray:
            array = np.full((items.height, len(models)), np.nan)
            array[at] = table[name].cast(pl.Float64).fill_null(np.nan).to_numpy()
            return array

        def per_task(name: str) -> dict[str, Any]:
            return dict(table.group_by("task").agg(pl.col(name).drop_nulls().first()).sort("task").iter_rows())

        clusters = None
        if by_item and "cluster" in table.columns:
            known = table.select("task", "doc_id", pl.col("cluster").cast(pl.String)).drop_nulls("cluster").unique()
            clusters = cluster_numbers(items.with_row_index("item"), known)
        return cls(
            tuple(models),
            items,
            filled("value"),
            level="item" if by_item else "task",
            clusters=clusters,
            metrics=per_task("metric") if "metric" in table.columns else None,
            higher=per_task("higher_is_better") if "higher_is_better" in table.columns else None,
            standard_errors=filled("stderr") if not by_item and "stderr" in table.columns else None,
        )

    @property
    def tasks(self) -> tuple[str, ...]:
        """Return the names of the tasks, sorted."""
        return tuple(self.items["task"].unique().sort())

    @property
    def codes(self) -> IntArray:
        """Return each row's place in ``tasks``, shape (m,)."""
        return self.items["task"].rank("dense").to_numpy().astype(np.int64) - 1

    def select(self, rows: NDArray[Any] | None = None, models: Sequence[int] | None = None) -> BoardValues:
        """Return the values of some rows (places or flags) and of some models (places)."""
        if models is None and (rows is None or (rows.dtype == bool and rows.all())):
            return self
        at: Any = slice(None) if rows is None else rows
        columns: Any = slice(None) if models is None else np.asarray(models, dtype=np.int64)
        of = np.arange(self.items.height)[at]

        def cut(array: NDArray[Any] | None) -> Any:
            return None if array is None else array[at]

        errors = self.standard_errors
        return replace(
            self,
            models=self.models if models is None else tuple(self.models[place] for place in models),
            items=self.items[of],
            values=self.values[at][:, columns],
            clusters=cut(self.clusters),
            sizes=cut(self.sizes),
            standard_errors=None if errors is None else errors[at][:, columns],
        )


def board_values(
    panel: Panel,
    *,
    level: LevelChoice = "auto",
    metric: str | None = None,
    models: Sequence[str] | None = None,
    tasks: Sequence[str] | None = None,
    setting: str | None = None,
    errors: Errors = "drop",
    repeated: Repeated = "latest",
    pool_versions: bool = False,
) -> BoardValues:
    """Return the values of a panel's entries: item rows where it has any, else the task scores that logs state.

    Parameters
    ----------
    level
        Item rows, task scores, or ("auto") item rows if there are any.
    metric, errors, repeated, pool_versions
        As for :func:`benchwright.score_table`; the last three are about item rows.
    models, tasks
        Names to keep, with ``*`` for any text, or after a ``!`` to leave out; entries are named as ``benchwright panel
        show`` names them.
    setting
        Keep the entries of one setting, such as ``direct_eval``.

    Raises
    ------
    UsageError
        No entry, task or metric is so named.
    DataError
        The panel has nothing of the level.
    """
    chosen: Level = level if level != "auto" else "item" if panel.manifest["counts"]["rows"] else "task"
    cells = panel.cells().filter("active", pl.col("kind") == ("rows" if chosen == "item" else "scores"))
    if cells.height == 0:
        other = "task" if chosen == "item" else "item"
        hint = f"choose --level {other}, or read logs that have them"
        raise DataError(f"the panel has no {'item rows' if chosen == 'item' else 'task scores'}", hint=hint)
    names = cells["task"].unique().sort().to_list()
    kept = names if tasks is None else matching("task", names, tasks)
    table = _item_level(panel, metric, kept, errors, repeated) if chosen == "item" else _task_level(panel, metric, kept)
    picked = picked_models(table, models=models, setting=setting)
    picked = picked.select(np.asarray(np.isfinite(picked.values).any(axis=1)))
    notes = [*picked.notes, *version_notes(panel, list(picked.tasks), pool=pool_versions)]
    settings = {*re.findall(r" \[(?!axis |dose |step )([^\]]*)\]", "\n".join(picked.models))}
    if len(settings) > 1:
        notes.append(f"models under {len(settings)} settings are entries of their own; --setting keeps one")
    return replace(picked, notes=tuple(notes))


def picked_models(
    values: BoardValues, *, models: Sequence[str] | None = None, setting: str | None = None
) -> BoardValues:
    """Return the values of the models that match, see :func:`board_values`."""
    entries = list(values.models)
    if setting is not None:
        entries = [name for name in entries if f" [{setting}]" in name]
        if not entries:
            raise UsageError(f"no entry has the setting `{setting}`", hint=f"entries: {listed(values.models, 10)}")
    if models is not None:
        entries = matching("entry", entries, models)
    return values.select(models=[values.models.index(name) for name in entries])


def picked_tasks(values: BoardValues, tasks: Sequence[str]) -> BoardValues:
    """Return the values of the tasks that match, see :func:`board_values`."""
    kept = matching("task", list(values.tasks), tasks)
    return values.select(values.items["task"].is_in(kept).to_numpy())


def _item_level(panel: Panel, metric: str | None, tasks: list[str], errors: Errors, repeated: Repeated) -> BoardValues:
    found, metrics, counts, lacking = collect_values(panel, metric, tasks, errors, repeated)
    entries = counts["entry"].to_list()
    matrix, _ = found.matrix(range(len(entries)))
    if is_derived(metric):
        higher: dict[str, bool | None] = dict.fromkeys(metrics, metric not in LOWER_IS_BETTER)
    else:
        higher = _directions(panel.rows(repeated=repeated), metrics)
    failed = counts.select(pl.col("n_error").sum()).item()
    notes = [f"{count(failed, 'failed or refused sample')}: {_TREATED[errors]}, for all models alike"] if failed else []
    if unscored := counts.select(pl.col("n_unscored").sum()).item():
        notes.append(f"{count(unscored, 'sample')} without a finite score: missing")
    if lacking:
        notes.append(_left_out(lacking))
    if panel.manifest["counts"]["scores"] and (stated := _stated_only(panel, entries, tasks)):
        notes.append(f"{count(len(stated), 'model')} without item rows left out; --level task takes stated task scores")
    return BoardValues(
        tuple(entries),
        found.items,
        np.ascontiguousarray(matrix),
        clusters=found.clusters,
        metrics=metrics,
        higher=higher,
        notes=tuple(notes),
    )


_TREATED = {"wrong": "wrong (0)", "drop": "dropped", "missing": "missing"}


def _task_level(panel: Panel, metric: str | None, tasks: list[str]) -> BoardValues:
    scores = panel.scores().filter(pl.col("task").is_in(tasks), ~pl.col("is_group")).collect()
    table = scores.drop_nulls("value").with_columns(entry=entry_name(), measure=measure_name())
    if table.height == 0:
        raise DataError("the panel has no task scores with a value", hint="see `benchwright panel describe`")
    metrics = choose_metrics(table.group_by("task", "measure").agg(entries=pl.col("entry").n_unique()), metric)
    used = table.filter(pl.col("measure") == pl.col("task").replace_strict(metrics, default=None))
    lacking = sorted({*table["entry"]} - {*used["entry"]})
    below = int((used["stderr"] < 0).sum())
    used = used.with_columns(stderr=pl.when(pl.col("stderr") >= 0).then("stderr"))
    cells = used.group_by("entry", "task").agg(
        pl.col("value").mean(),
        error=pl.when(pl.col("stderr").count() == pl.len()).then((pl.col("stderr") ** 2).sum().sqrt() / pl.len()),
        n=pl.col("n").max(),
        times=pl.len(),
    )
    entries = cells["entry"].unique().sort()
    rows = pl.DataFrame({"task": list(metrics)}).sort("task")
    place = cells.join(rows.with_row_index("row"), on="task").join(
        pl.DataFrame({"entry": entries}).with_row_index("column"), on="entry"
    )
    at = place["row"].to_numpy(), place["column"].to_numpy()
    values, errors = (np.full((rows.height, len(entries)), np.nan) for _ in range(2))
    values[at], errors[at] = place["value"].to_numpy(), place["error"].fill_null(np.nan).to_numpy()
    sizes = rows.join(cells.group_by("task").agg(pl.col("n").max()), on="task", maintain_order="left")["n"]
    notes = ["task scores as the logs state them"]
    if unscored := scores["value"].null_count():
        notes.append(f"{count(unscored, 'task score')} without a finite value: missing")
    if below:
        notes.append(f"{count(below, 'stated standard error')} below 0: not taken for stated")
    if (times := int(cells["times"].to_numpy().max())) > 1:
        notes.append(f"up to {times} scores of one entry and task (several runs) are averaged")
    if lacking:
        notes.append(_left_out(lacking))
    return BoardValues(
        tuple(entries),
        rows.with_columns(doc_id=pl.lit(None, dtype=pl.String)),
        values,
        level="task",
        metrics=metrics,
        higher=_directions(used.lazy(), metrics),
        sizes=sizes.cast(pl.Float64).fill_null(np.nan).to_numpy() if sizes.count() else None,
        standard_errors=errors if np.isfinite(errors).any() else None,
        notes=tuple(notes),
    )


def _directions(rows: pl.LazyFrame, metrics: dict[str, str]) -> dict[str, bool | None]:
    """Return whether more is better, per task: as the logs say, else as is well known of the metric."""
    flags = rows.group_by("task", measure=measure_name()).agg(pl.col("higher_is_better").drop_nulls().unique())
    said = {(task, measure): stated for task, measure, stated in flags.collect().iter_rows()}
    split = [task for task, name in metrics.items() if len(said.get((task, name), ())) > 1]
    if split:
        raise DataError(
            f"logs disagree on whether more of the metric is better: {listed(split)}",
            hint="name other tasks with --task, or another --metric",
        )
    return {
        task: said[task, name][0] if said.get((task, name)) else direction(name.split("[")[0])
        for task, name in metrics.items()
    }


def _stated_only(panel: Panel, entries: list[str], tasks: list[str]) -> list[str]:
    stated = panel.scores().filter(pl.col("task").is_in(tasks)).collect().select(entry_name().unique())
    return sorted({*stated.to_series()} - {*entries})


def _left_out(lacking: list[str]) -> str:
    return f"without this metric, and left out: {listed(lacking, 10)}; --metric names another"
