"""Values of activities as files have them: tables by rule, values drawn again, and a table of one's own.

A table of one's own is a CSV file with the columns ``activity`` and ``value``, or ``auto`` and ``aug`` where the two
framings differ, on [1, 5], and perhaps ``name``; further columns are ignored.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from benchwright.errors import DataError, Fault, UsageError
from benchwright.logs.source_file import read_source
from benchwright.logs.tabular import Column, Table, parse_table

VALUES = {"share": "gwa_welfare_scores.csv", "mean": "gwa_welfare_scores_mean.csv"}  # by rule
DRAWS_FILE = "activity_draws.parquet"
MAKE_VALUES = "benchwright activities RAW -o activities/, or a CSV file of activity,value"
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
OWN = Table(
    (
        Column("activity", "text"),
        Column("name", "text", required=False, empty=True),
        *(Column(name, "number", required=False, low=1, high=5) for name in ("value", "auto", "aug")),
    ),
    key=("activity",),
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


def activity_files(path: str | Path) -> dict[str, Path]:
    """Return the tables of values by rule that a folder holds, or the table of one's own that a file is.

    Raises
    ------
    UsageError
        Neither a file nor a folder with gwa_welfare_scores.csv.
    """
    place = Path(path)
    if place.is_file():
        return {"share": place}
    found = {rule: place / name for rule, name in VALUES.items() if (place / name).is_file()}
    if "share" not in found:
        raise UsageError(
            f"activities {place}: no {VALUES['share']} there",
            hint=f"make it: {MAKE_VALUES}",
        )
    return found


def read_activities(path: str | Path) -> pl.DataFrame:
    """Return the values of activities in a folder, or in a file of one's own.

    Returns
    -------
    pl.DataFrame
        activity, label, n_tasks, share_auto, share_aug, dropped, auto, aug (on [1, 5]).

    Raises
    ------
    UsageError
        Neither a file nor a folder with gwa_welfare_scores.csv.
    DataError
        The file has faults; all of them are listed.
    """
    file = activity_files(path)["share"]
    faults: list[Fault] = []
    source = read_source(file, faults)
    values = None if source is None else parse_activities(file.name, source[0], faults)
    if values is None or faults:
        raise DataError(f"{file} cannot be used", faults=faults)
    return values


def parse_activities(file: str, content: bytes, faults: list[Fault]) -> pl.DataFrame | None:
    """Return the values that a table holds, published or one's own; None and faults where it cannot be used."""
    if file in VALUES.values():
        frame = parse_table(file, content, ACTIVITIES, faults)
        return None if frame is None else kept_activities(frame, file, faults)
    frame = parse_table(file, content, OWN, faults)
    if frame is None:
        return None
    ends = {name: name if name in frame.columns else "value" for name in ("auto", "aug")}
    if lacking := sorted(set(ends.values()) - set(frame.columns)):
        faults.append(Fault(file, "missing; give one value, or auto and aug", column=lacking[0]))
        return None
    return frame.select(
        "activity",
        label=pl.col("name").fill_null(pl.col("activity")) if "name" in frame.columns else pl.col("activity"),
        n_tasks=pl.lit(None, dtype=pl.Int64),
        share_auto=pl.lit(None, dtype=pl.Float64),
        share_aug=pl.lit(None, dtype=pl.Float64),
        dropped=pl.lit(False),
        auto=ends["auto"],
        aug=ends["aug"],
    )


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
