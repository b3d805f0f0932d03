"""Values of work activities as files have them: tables by rule, and values drawn again."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from benchwright.errors import DataError, Fault, UsageError
from benchwright.logs.tabular import Column, Table, read_table

VALUES = {"share": "gwa_welfare_scores.csv", "mean": "gwa_welfare_scores_mean.csv"}  # by rule
DRAWS_FILE = "activity_draws.parquet"
ACTIVITIES = Table(
    (
        Column("concept_id", "text"),
        Column("gwa", "text", required=False, empty=True),
        Column("n_tasks_wb", "integer", required=False, empty=True, low=0),
        Column("p_auto", "number", required=False, empty=True),
        Column("p_aug", "number", required=False, empty=True),
        Column("dropped", "flag"),
        Column("p_auto_15", "number", empty_where="dropped", low=1, high=5),
        Column("p_aug_15", "number", empty_where="dropped", low=1, high=5),
    ),
    key=("concept_id",),
)
DRAWS = Table(
    (
        Column("rule", "text"),
        Column("replicate", "integer", low=1),
        Column("activity", "text"),
        Column("auto", "number"),
        Column("aug", "number"),
    ),
    key=("rule", "replicate", "activity"),
)


def activity_folder(path: str | Path) -> Path:
    """Return a folder of activity values, or raise where it is none."""
    folder = Path(path)
    if not (folder / VALUES["share"]).is_file():
        raise UsageError(f"activities {folder}: no {VALUES['share']} there", hint="make it: benchwright activities RAW")
    return folder


def read_activities(folder: str | Path) -> pl.DataFrame:
    """Return the values of activities that a folder holds: activity, label, n_tasks, shares, dropped, auto, aug.

    Raises
    ------
    UsageError
        No gwa_welfare_scores.csv there.
    DataError
        The file has faults; all of them are listed.
    """
    file = activity_folder(folder) / VALUES["share"]
    faults: list[Fault] = []
    frame = read_table(file, ACTIVITIES, faults)
    kept = None if frame is None else kept_activities(frame, file.name, faults)
    if kept is None or faults:
        raise DataError(f"{folder}: {file.name} cannot be used", faults=faults)
    return kept


def kept_activities(frame: pl.DataFrame, file: str, faults: list[Fault]) -> pl.DataFrame:
    """Check the activities that count and return them under our own column names."""
    if frame["dropped"].all():
        faults.append(Fault(file, "every activity is dropped, so no item has a welfare value", column="dropped"))
    label = pl.col("gwa").fill_null(pl.col("concept_id")) if "gwa" in frame.columns else pl.col("concept_id")
    n_tasks = pl.col("n_tasks_wb") if "n_tasks_wb" in frame.columns else pl.lit(None, dtype=pl.Int64)
    shares = {
        f"share_{name}": pl.col(f"p_{name}") if f"p_{name}" in frame.columns else pl.lit(None, dtype=pl.Float64)
        for name in ("auto", "aug")
    }
    return frame.select(
        activity="concept_id",
        label=label,
        n_tasks=n_tasks,
        **shares,
        dropped="dropped",
        auto="p_auto_15",
        aug="p_aug_15",
    )
