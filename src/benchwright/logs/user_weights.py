"""Weights that a user gives: a CSV or Parquet file of task,doc_id,weight, as ``weights.csv`` of a report has them."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from benchwright.errors import DataError, Fault, UsageError
from benchwright.logs.item_tables import ITEM
from benchwright.logs.source_file import SourceFile, read_source
from benchwright.logs.tabular import Column, Table, header, parse_table

USER_WEIGHTS = Table(
    (Column("task", "text"), Column("doc_id", "id"), Column("weight", "number")), ITEM, neutralised=True
)
WEIGHT_COLUMNS = ("published_weight", "weight")  # of a report's weights.csv: the one to publish comes first


@dataclass(frozen=True, slots=True, eq=False)
class WeightTable:
    """Weights of items (``frame``: task, doc_id, weight) or of tasks (task, weight); ids are text.

    ``column`` is the column of the file that the weights come from.
    """

    frame: pl.DataFrame
    column: str
    source: SourceFile


def read_user_weights(path: str | Path) -> tuple[pl.DataFrame, SourceFile]:
    """Return task, doc_id, weight of a file, and what a report says of the file.

    Raises
    ------
    UsageError
        There is no such file.
    DataError
        It has faults; all of them are listed.
    """
    return _parsed(Path(path), _content(Path(path)), USER_WEIGHTS)


def read_weight_table(path: str | Path, *, column: str | None = None) -> WeightTable:
    """Return the weights of items, or of tasks where the file has no column ``doc_id``.

    Parameters
    ----------
    column
        The column to take; by default ``published_weight`` where there is one, else ``weight``.

    Raises
    ------
    UsageError
        There is no such file.
    DataError
        It has faults; all of them are listed.
    """
    path = Path(path)
    content = _content(path)
    names = _names(path, content[0])
    wanted = column if column is not None else next((name for name in WEIGHT_COLUMNS if name in names), "weight")
    key = ITEM if "doc_id" in names else ("task",)
    columns = (*(Column(name, "text") for name in key), Column(wanted, "number"))
    frame, source = _parsed(path, content, Table(columns, key, neutralised=True))
    return WeightTable(frame.rename({wanted: "weight"}), wanted, source)


def read_side_table(path: str | Path, what: str, columns: Sequence[Column], *, optional: bool = False) -> pl.DataFrame:
    """Return the columns of a small table that goes with a board: flags, clusters, bounds; what it lacks is left out
    with ``optional``.

    Raises
    ------
    UsageError
        There is no such file.
    DataError
        It has faults; all of them are listed.
    """
    path = Path(path)
    content = _content(path, what)
    names = _names(path, content[0])
    found = tuple(column for column in columns if not optional or column.required or column.name in names)
    return _parsed(path, content, Table(found, (), neutralised=True), what)[0]


def _content(path: Path, what: str = "weights") -> tuple[bytes, SourceFile]:
    if not path.is_file():
        wrong = "is no regular file" if path.exists() else "does not exist"
        hint = "a CSV file with the columns task,doc_id,weight" if what == "weights" else None
        raise UsageError(f"{what} file {path} {wrong}", hint=hint)
    faults: list[Fault] = []
    source = read_source(path, faults)
    if source is None:
        raise DataError(f"{path}: the {what} cannot be used", faults=faults)
    return source


def _parsed(
    path: Path, content: tuple[bytes, SourceFile], table: Table, what: str = "weights"
) -> tuple[pl.DataFrame, SourceFile]:
    faults: list[Fault] = []
    frame = parse_table(path.name, content[0], table, faults)
    if frame is None:
        raise DataError(f"{path}: the {what} cannot be used", faults=faults)
    return frame, content[1]


def _names(path: Path, content: bytes) -> list[str]:
    """Return the names of the file's columns; none where it cannot be read, which its reader then says."""
    try:
        if path.suffix.lower() == ".parquet":
            return list(pl.read_parquet_schema(io.BytesIO(content)))
        return header(content)
    except (UnicodeDecodeError, OSError, pl.exceptions.PolarsError):
        return []
