"""From a panel to matrices: the value of every item in every run, chosen by one stated rule.

Rows become cells (one value per run and item, the mean of its trials) in the engine of the user's choice; the
statistics of :mod:`benchwright.estimating.cells` are computed there too. The matrices serve what needs all values at
once: intervals, bootstraps, covariances.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import polars as pl
from numpy.typing import NDArray

from benchwright._check import FloatArray
from benchwright._shown import Shown
from benchwright._words import count
from benchwright.choices import EstimateChoices, Price
from benchwright.errors import DataError, UsageError
from benchwright.estimating import cells as statistics
from benchwright.estimating.engines import Engine, open_engine
from benchwright.estimating.runs import RUN, Runs, describe_runs, number_repeats
from benchwright.panel.derived import is_derived
from benchwright.panel.ingest import MANIFEST
from benchwright.panel.item_values import choose_metrics, cluster_numbers, measure_name
from benchwright.panel.panel import IDENTITY, Panel
from benchwright.panel.scores import version_notes

IntArray = NDArray[np.int64]
WHOLE_TASK = "(task)"  # doc_id where a task stands for itself
CANONICAL = r"^(0|-?[1-9]\d{0,17})$"
ITEM = ("task", "doc_id")
MOST_NAMED = 5


@dataclass(frozen=True, slots=True, eq=False)
class Measurements(Shown):
    """Values of items in runs, with what the engine computed from them.

    Attributes
    ----------
    name
        What the source is called.
    level
        ``item``, or ``task`` where stated task scores are audited.
    items
        task, doc_id, sorted; ids are integers where all of them are.
    runs
        See :class:`~benchwright.estimating.runs.Runs`; column j of the matrices is the run with ``run_no`` j.
    value, trials, trial_variance, stderr : (m, R)
        Mean of a cell's trials, their number (0 where missing), the variance of one trial, and the standard error that
        a log states for a task; NaN where missing or unknown. Larger is better: scores for which smaller is better come
        with their sign turned.
    noise, trial_noise, slopes
        Statistics from :mod:`benchwright.estimating.cells`; ``slopes`` are per ``Price.units`` of dose.
    metrics
        Metric used, by task.
    bounded : (m,)
        Whether all values of the item's task lie in [0, 1].
    clusters : (m,), or None
        Number of what an item shares with others (a passage), where logs name it.
    engine
        What computed the statistics.
    has_manifest
        Whether the source is a panel's folder, whose manifest names the logs; exported rows have none.
    """

    name: str
    level: str
    items: pl.DataFrame
    runs: Runs
    value: FloatArray
    trials: IntArray
    trial_variance: FloatArray
    stderr: FloatArray
    noise: pl.DataFrame
    trial_noise: pl.DataFrame
    slopes: pl.DataFrame
    grid: pl.DataFrame
    metrics: Mapping[str, str]
    bounded: NDArray[np.bool_]
    clusters: IntArray | None
    engine: str
    has_manifest: bool
    notes: tuple[str, ...]

    @property
    def checkpoint(self) -> IntArray:
        """Number of each run's checkpoint, (R,)."""
        return self.runs.frame["checkpoint"].to_numpy()


def measure(
    source: str | Path,
    *,
    choices: EstimateChoices,
    prices: Mapping[str, Price],
    facts: pl.DataFrame | None = None,
    engine: str = "polars",
    progress: Callable[[str], None] | None = None,
) -> Measurements:
    """Read the values of a panel.

    Parameters
    ----------
    source
        A panel's folder, or Parquet files that ``benchwright panel export --table rows`` (or ``derived``, for a metric
        that follows from choices) wrote: path, folder, pattern or URI.
    choices
        Metric, models, anchor.
    prices
        Their ``units`` say how many native units of dose make a slope unit.
    facts
        A table of runs.
    engine
        ``polars``, ``duckdb`` or ``spark``.

    Raises
    ------
    UsageError, DataError
        No such source, metric or model; no values.
    """
    say = (lambda _: None) if progress is None else progress
    panel = Panel.open(source) if (Path(source) / MANIFEST).is_file() else None
    with open_engine(engine) as at_work:
        say("metrics")
        rows, level = _rows(source, panel, at_work, choices)
        used, chosen, left = _chosen(at_work.collect(statistics.offered(rows)), choices.metric, level)
        runs = describe_runs(used, facts=facts, choices=choices)
        used = used.join(runs.identity, on=list(RUN), nulls_equal=True)
        grid, notes = _scaled(runs.grid, prices)
        notes += left
        say("cells")
        selection = at_work.table(used.select(*statistics.KEYS, "run_no"))
        cells = at_work.keep(statistics.cell_values(_oriented(rows), selection))
        of_runs = at_work.table(runs.frame.select("run_no", "checkpoint"))
        say("statistics")
        collected = _Collected(
            values=at_work.collect(cells),
            noise=at_work.collect(statistics.noise_statistics(cells, of_runs)),
            trial_noise=at_work.collect(statistics.trial_statistics(cells, of_runs)),
            slopes=at_work.collect(statistics.slope_statistics(cells, at_work.table(grid))),
            stderr=_stated_errors(panel, used) if level == "task" and panel is not None else None,
            clusters=_named_clusters(rows, at_work),
        )
    if collected.values.height == 0:
        raise DataError("no run has a value of these metrics", hint="see `benchwright panel describe`")
    present = set(collected.values["task"].unique())
    chosen = {task: measure for task, measure in chosen.items() if task in present}
    lower = used.filter(~pl.col("higher_is_better"))["measure"].unique().sort()
    if len(lower):
        notes.append(f"Smaller is better for {', '.join(lower)}: the sign is turned, so that larger is better.")
    of_metric = sorted({*chosen.values()})
    if len(of_metric) > 1:
        notes.append(
            f"Tasks differ in their metric ({', '.join(of_metric)}), so means over tasks mix them; --metric names one."
        )
    if panel is not None:
        notes += _repeat_notes(panel, level)
        notes += [f"{text[0].upper()}{text[1:]}." for text in version_notes(panel, list(chosen), pool=True)]
    return _matrices(
        collected,
        runs,
        grid,
        notes,
        name=_name_of(source),
        level=level,
        metrics=chosen,
        engine=engine,
        has_manifest=panel is not None,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Collected:
    """What the engine computed, with text ids."""

    values: pl.DataFrame
    noise: pl.DataFrame
    trial_noise: pl.DataFrame
    slopes: pl.DataFrame
    stderr: pl.DataFrame | None
    clusters: pl.DataFrame | None


def _chosen(offered: pl.DataFrame, metric: str | None, level: str) -> tuple[pl.DataFrame, dict[str, str], list[str]]:
    """Return the rows on offer that are used, runs numbered within their task, the metric of each task, and notes on
    models that lack it."""
    scored = offered.filter(pl.col("n_scored") > 0)
    if scored.height == 0:
        what = "stated task scores" if level == "task" else "scored rows"
        raise DataError(f"the panel has no {what}", hint="see `benchwright panel describe`")
    scored = scored.with_columns(measure=measure_name(), entry=pl.struct(IDENTITY).rank("dense"))
    counted = scored.group_by("task", "measure").agg(entries=pl.col("entry").n_unique())
    chosen = choose_metrics(counted, metric)
    table = pl.DataFrame({"task": list(chosen), "measure": list(chosen.values())})
    used = scored.join(table, on=["task", "measure"])
    asked = offered.with_columns(measure=measure_name()).join(table, on=["task", "measure"])
    failed = int((asked["n_rows"] - asked["n_scored"]).sum())
    lacking = scored.join(used, on=["model", "task"], how="anti", nulls_equal=True)
    notes = [f"{count(failed, 'row')} without a score (failed, empty or not finite): missing."] if failed else []
    if metric is None and lacking.height:
        models, measures = (lacking[name].unique().sort().to_list() for name in ("model", "measure"))
        notes.append(
            f"{count(len(models), 'model')} ({_some(models)}) left out of tasks that are scored by another metric: "
            f"theirs is {_some(measures)}; --metric names one."
        )
    return number_repeats(used), chosen, notes


def _some(names: list[str]) -> str:
    return ", ".join(names[:MOST_NAMED]) + (", ..." if len(names) > MOST_NAMED else "")


def _rows(source: str | Path, panel: Panel | None, engine: Engine, choices: EstimateChoices) -> tuple[Any, str]:
    """Return the rows to choose from, and whether they are of items or of tasks."""
    if panel is None:
        if choices.level_of == "task":
            raise UsageError("exported rows hold no stated task scores", hint="audit the panel's folder")
        rows = engine.parquet_rows(str(source))
        if is_derived(choices.metric):
            rows = rows.filter(nw.col("metric") == choices.metric)
            if engine.collect(rows.select("metric").head(1)).height == 0:
                hint = "write them with `benchwright panel export PANEL -o FILE.parquet --table derived`, or audit the "
                raise UsageError(f"the exported rows hold no {choices.metric}", hint=f"{hint}panel's folder")
        return rows, "item"
    counts = panel.manifest["counts"]
    by_task = choices.level_of == "task" or (choices.level_of == "auto" and not counts["rows"])
    if not by_task and not is_derived(choices.metric):
        return engine.panel_rows(panel), "item"
    if engine.name != "polars":
        what = "stated task scores" if by_task else f"{choices.metric}, which follows from choices,"
        raise UsageError(f"the engine {engine.name} reads item rows only, not {what}", hint="use --engine polars")
    if by_task:
        # a task stands for itself: one value a run
        whole = panel.scores().filter(~pl.col("is_group").fill_null(False))
        status = pl.when(pl.col("value").is_finite()).then(pl.lit("scored")).otherwise(pl.lit("unscored"))
        table = whole.with_columns(doc_id=pl.lit(WHOLE_TASK), status=status, trials=pl.lit(1, dtype=pl.Int64))
        return nw.from_native(table), "task"
    return nw.from_native(panel.derived([str(choices.metric)])), "item"


def _repeat_notes(panel: Panel, level: str) -> list[str]:
    """Say how many rows repeat others of their run."""
    cells = panel.cells().filter("active", pl.col("kind") == ("rows" if level == "item" else "scores"))
    again = int(cells["n_repeated"].sum())
    kept = "the latest of an item counts" if level == "item" else "the mean of a task counts"
    return [f"{count(again, 'row')} of a run that it had given before; {kept}."] if again else []


def _named_clusters(rows: Any, engine: Engine) -> pl.DataFrame | None:
    """Return task, doc_id and cluster of the items whose cluster a log names."""
    if "cluster" not in rows.collect_schema().names():
        return None
    named = rows.filter(~nw.col("cluster").is_null()).group_by(*ITEM, "cluster").agg(n=nw.len())
    found = engine.collect(named).select(*ITEM, "cluster").cast(pl.String)
    return found if found.height else None


def _oriented(rows: Any) -> Any:
    """Turn the sign of values for which smaller is better, so that larger always is."""
    value = nw.col("value")
    falls = (nw.col("higher_is_better") == False).fill_null(False)  # noqa: E712 an expression
    return rows.with_columns(value=nw.when(falls).then(-value).otherwise(value))


def _scaled(grid: pl.DataFrame, prices: Mapping[str, Price]) -> tuple[pl.DataFrame, list[str]]:
    """Return run_no, axis and x, the dose in slope units, and say what was taken for granted."""
    notes, parts = [], []
    for (axis,), mine in grid.group_by("axis", maintain_order=True):
        price = prices.get(str(axis))
        stated = next(iter(mine["unit"].drop_nulls()), None)
        if price is not None and price.unit is not None:
            if stated is not None and stated != price.unit.lower().removesuffix("s"):
                raise DataError(
                    f"axis {axis}: doses are in {stated}s, its price is for {price.units:g} "
                    f"{price.unit}{'' if price.units == 1 else 's'}",
                    hint=f"set prices.{axis} with the unit and units of the panel's doses",
                )
            if stated is None:
                notes.append(
                    f"Axis {axis}: no log says what a dose counts; taken as {price.unit}s, the unit of its price."
                )
        units = 1.0 if price is None else price.units
        parts.append(mine.select("run_no", "axis", x=pl.col("dose") / units))
    schema = {"run_no": pl.Int64, "axis": pl.String, "x": pl.Float64}
    return (pl.concat(parts) if parts else pl.DataFrame(schema=schema)), notes


def _stated_errors(panel: Panel, used: pl.DataFrame) -> pl.DataFrame:
    """Return run_no, task, doc_id and the standard error that a log states for the task."""
    stated = panel.scores().select(*statistics.KEYS, "stderr").collect()
    joined = stated.join(used.select("run_no", *statistics.KEYS), on=list(statistics.KEYS), nulls_equal=True)
    once = joined.drop_nulls("stderr").unique(("run_no", "task"), keep="last", maintain_order=True)
    return once.select("run_no", "task", "stderr", doc_id=pl.lit(WHOLE_TASK))


def _matrices(
    collected: _Collected,
    runs: Runs,
    grid: pl.DataFrame,
    notes: list[str],
    *,
    name: str,
    level: str,
    metrics: Mapping[str, str],
    engine: str,
    has_manifest: bool,
) -> Measurements:
    kind = pl.Int64 if collected.values["doc_id"].str.contains(CANONICAL).all() else pl.String
    items = collected.values.select(ITEM).unique().cast({"doc_id": kind}).sort(ITEM).with_row_index("item")
    column = {run: place for place, run in enumerate(runs.frame["run_no"])}
    shape = items.height, len(column)

    def matrix(table: pl.DataFrame, source: str, empty: float) -> Any:
        filled = np.full(shape, empty)
        placed = table.cast({"doc_id": kind}).join(items, on=ITEM)
        filled[placed["item"].to_numpy(), placed["run_no"].replace_strict(column).to_numpy()] = placed[source]
        return filled

    def by_item(table: pl.DataFrame) -> pl.DataFrame:
        return items.join(table.cast({"doc_id": kind}), on=ITEM, how="left", maintain_order="left").drop("item")

    value = matrix(collected.values, "value", np.nan)
    with np.errstate(invalid="ignore"):
        outside = ((value < 0) | (value > 1)).any(axis=1)
    judged = items.select("task", outside=pl.Series(outside)).with_columns(pl.col("outside").any().over("task"))
    bounded = ~judged["outside"].to_numpy()  # a task has one scale: 0.7 among scores of 50 is no proportion
    if not bounded.all():
        tasks = judged.filter("outside")["task"].unique(maintain_order=True).to_list()
        notes.append(
            f"Scores leave [0, 1] in {count(int(outside.sum()), 'item')}, so no Z, no limits on the mean score and no "
            f"logit slope in {count(len(tasks), 'task')}: {_some(tasks)}. Scores in per cent are best divided by 100."
        )
    notes += _gap_notes(value, items["task"].rank("dense").to_numpy())
    stderr = np.full(shape, np.nan)
    if collected.stderr is not None:
        stderr = matrix(collected.stderr, "stderr", np.nan)
    clusters = None
    if collected.clusters is not None:
        clusters = cluster_numbers(items.cast({"doc_id": pl.String}), collected.clusters)
    return Measurements(
        name=name,
        level=level,
        items=items.drop("item"),
        runs=runs,
        value=value,
        trials=matrix(collected.values, "trials", 0).astype(np.int64),
        trial_variance=matrix(collected.values.drop_nulls("trial_variance"), "trial_variance", np.nan),
        stderr=stderr,
        noise=by_item(collected.noise),
        trial_noise=by_item(collected.trial_noise),
        slopes=collected.slopes.cast({"doc_id": kind}).sort("axis", *ITEM),
        grid=grid.with_columns(run=pl.col("run_no").replace_strict(column, return_dtype=pl.Int64)),
        metrics=metrics,
        bounded=bounded,
        clusters=clusters,
        engine=engine,
        has_manifest=has_manifest,
        notes=(*runs.notes, *notes),
    )


def _gap_notes(value: FloatArray, tasks: NDArray[Any]) -> list[str]:
    """Say how many cells are missing of the tasks that a run has at all."""
    missing = total = 0
    for task in np.unique(tasks):
        known = ~np.isnan(value[tasks == task])
        known = known[:, known.any(axis=0)]
        missing, total = missing + int((~known).sum()), total + known.size
    if not missing:
        return []
    return [f"Missing: {count(missing, 'cell')} of {total:,}; each item is judged on the cells that it has."]


def _name_of(source: str | Path) -> str:
    text = str(source)
    return text if "://" in text else Path(source).resolve().name
