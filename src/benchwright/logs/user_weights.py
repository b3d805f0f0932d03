"""Weights that a user gives: a CSV file of task,doc_id,weight, as ``weights.csv`` of a report has them."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from benchwright.errors import DataError, Fault, UsageError
from benchwright.logs.item_tables import ITEM
from benchwright.logs.source_file import SourceFile, read_source
from benchwright.logs.tabular import Column, Table, parse_table

USER_WEIGHTS = Table(
    (Column("task", "text"), Column("doc_id", "id"), Column("weight", "number")), ITEM, neutralised=True
)


def read_user_weights(path: str | Path) -> tuple[pl.DataFrame, SourceFile]:
    """Return task, doc_id, weight of a file, and what a report says of the file.

    Raises
    ------
    UsageError
        There is no such file.
    DataError
        It has faults; all of them are listed.
    """
    path = Path(path)
    if not path.is_file():
        what = "is no regular file" if path.exists() else "does not exist"
        raise UsageError(f"weights file {path} {what}", hint="a CSV file with the columns task,doc_id,weight")
    faults: list[Fault] = []
    source = read_source(path, faults)
    frame = None if source is None else parse_table(path.name, source[0], USER_WEIGHTS, faults)
    if source is None or frame is None:
        raise DataError(f"{path}: the weights cannot be used", faults=faults)
    return frame, source[1]
