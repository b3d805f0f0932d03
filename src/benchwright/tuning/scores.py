"""Scores of an experiment: items of every run as rows, single runs by point, and means over seeds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from benchwright.errors import DataError
from benchwright.tuning._seeds import mean_over_seeds
from benchwright.tuning.folder import read_json
from benchwright.tuning.jobs import RunEnd

METRICS = ("acc", "acc_norm", "p_gold", "p_gold_char", "margin", "margin_char")
DECIMALS = 4
UNIT = {"steps": "step", "examples": "example", "tokens": "token"}
SECONDS = ("tuning_seconds", "cpu_seconds", "scoring_seconds")  # on the clock; of the processor; on the clock
POINT = ("steps", "examples", "tokens", "effort", "score", "validation", "loss", *SECONDS)


def points_table(ends: Iterable[RunEnd]) -> pl.DataFrame:
    """One row a run and point: model, task, seed, place of the point, what was reached, score, loss, seconds."""
    rows = []
    for end in ends:
        if end.done is None:
            continue
        for step in end.done["points"]:
            record = read_json(end.folder / f"eval-{step:09d}.json")
            if record is None:
                raise DataError(f"{end.folder}: the scores at step {step} are gone", hint="start anew with --overwrite")
            row = {"task": end.job.benchmark.name, "model": end.job.model.name, "seed": end.job.seed}
            rows.append(row | {"run": end.job.name} | {name: record.get(name) for name in POINT})
    kinds: dict[str, Any] = {"task": pl.String, "model": pl.String, "seed": pl.Int64, "run": pl.String}
    numbers: dict[str, Any] = {name: pl.Int64 if name in POINT[:3] else pl.Float64 for name in POINT}
    table = pl.DataFrame(rows, schema=kinds | numbers, orient="row")
    order = {end.job.model.name: place for place, end in reversed([*enumerate(ends)])} if rows else {}
    table = table.with_columns(_order=pl.col("model").replace_strict(order, return_dtype=pl.Int64)) if rows else table
    if rows:
        table = table.sort("task", "_order", "seed", "steps", maintain_order=True).drop("_order")
    return table.with_columns(place=pl.int_range(pl.len()).over("task", "model", "seed"))


def item_rows(ends: Sequence[RunEnd], unit: str) -> pl.DataFrame:
    """One row a model, seed, step, item and metric, with the columns of a long table as ``ingest`` reads it."""
    parts = []
    for end in ends:
        for step, record, items in _evaluations(end):
            facts = {
                "model": end.job.model.name,
                "seed": end.job.seed,
                "step": step,
                "axis": end.job.settings.axis,
                "dose": float(record["effort"]),
                "dose_unit": UNIT[unit],
                "task": end.job.benchmark.name,
            }
            table = items.select("doc_id", "cluster", *METRICS).unpivot(
                METRICS, index=["doc_id", "cluster"], variable_name="metric", value_name="score"
            )
            said = [pl.lit(value).alias(name) for name, value in facts.items()]
            parts.append(
                table.drop_nulls("score").select(*said, "doc_id", "cluster", "metric", pl.col("score").round(DECIMALS))
            )
    if not parts:
        return pl.DataFrame()
    table = pl.concat(parts)
    table = table if table["cluster"].null_count() < table.height else table.drop("cluster")
    return table.with_columns(higher_is_better=pl.lit(value=True))


def mean_scores(ends: Sequence[RunEnd], points: pl.DataFrame, score: str) -> pl.DataFrame:
    """One row a task, model and point: mean over the seeds' items with its standard error, see ``_seeds``.

    Where tokens are counted, points of seeds differ a little in effort; theirs is the mean.
    """
    items = {(end.job.name, step): table for end in ends for step, _, table in _evaluations(end)}
    rows = []
    for (task, model, _), group in points.group_by(("task", "model", "place"), maintain_order=True):
        tables = [items[row["run"], row["steps"]] for row in group.iter_rows(named=True)]
        scored, cluster = _matrix(tables, score)
        mean, error = mean_over_seeds(scored, cluster)
        rows.append(
            {
                "task": task,
                "model": model,
                "metric": score,
                "step": int(group["steps"].max()),  # type: ignore[arg-type]
                "dose": float(group["effort"].mean()),  # type: ignore[arg-type]
                "score": mean,
                "stderr": error,
                "seeds": len(tables),
                "item_count": scored.shape[1],
                "lowest": float(scored.mean(axis=1).min()),
                "highest": float(scored.mean(axis=1).max()),
            }
        )
    return pl.DataFrame(rows)


def before_after(points: pl.DataFrame, *, best: bool) -> pl.DataFrame:
    """One row a model: each task's score untuned and tuned (at the end, or where validation is best), over seeds."""
    last = pl.col("place") == pl.col("place").max()
    if best:
        found = pl.col("validation").fill_null(-1.0)
        last = pl.col("place") == pl.col("place").sort_by(found, -pl.col("place")).last()
    keys = ["task", "model", "seed"]
    chosen = points.with_columns(_last=last.over(keys))
    table = chosen.group_by("task", "model", maintain_order=True).agg(
        before=pl.col("score").filter(pl.col("place") == 0).mean(), after=pl.col("score").filter("_last").mean()
    )
    wide = table.select("model").unique(maintain_order=True)
    for (task,), rows in table.group_by(("task",), maintain_order=True):
        named = {"before": f"{task}_before", "after": f"{task}_after"}
        wide = wide.join(rows.select("model", *named).rename(named), on="model", how="left", maintain_order="left")
    return wide


def _evaluations(end: RunEnd) -> Iterable[tuple[int, Mapping[str, Any], pl.DataFrame]]:
    if end.done is None:
        return
    for step in end.done["points"]:
        path = end.folder / f"eval-{step:09d}.parquet"
        record = read_json(path.with_suffix(".json"))
        if record is None:
            raise DataError(f"{end.folder}: the scores at step {step} are gone", hint="start anew with --overwrite")
        yield step, record, pl.read_parquet(path)


def _matrix(tables: Sequence[pl.DataFrame], score: str) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Scores (S, n) of the items that have one in all tables, and their clusters (n,)."""
    base = tables[0].select("doc_id", "cluster", pl.col(score).alias("s0"))
    for place, table in enumerate(tables[1:], start=1):
        base = base.join(table.select("doc_id", pl.col(score).alias(f"s{place}")), on="doc_id", maintain_order="left")
    names = [f"s{place}" for place in range(len(tables))]
    base = base.drop_nulls(names)
    key = pl.coalesce(pl.col("cluster"), pl.col("doc_id"))
    cluster = base.select(key.rank("dense") - 1).to_series().cast(pl.Int64).to_numpy()
    return base.select(names).to_numpy().T, cluster
