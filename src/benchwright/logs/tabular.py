"""Tables from CSV and Parquet files, checked cell by cell.

A :class:`Table` says which columns a file must have and of what kind. :func:`read_table` returns the typed
frame and collects every fault with its file, line and column; it never guesses a type from the values and
never turns a missing number into 0.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import polars as pl

from benchwright.errors import Fault

Kind = Literal["text", "number", "integer", "flag", "id"]
MISSING = ("", "nan", "NaN", "NA", "null", "None")
FLAGS = {"true": True, "True": True, "1": True, "false": False, "False": False, "0": False}


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: its name, kind, whether it must exist and whether a cell may be empty."""

    name: str
    kind: Kind
    required: bool = True
    empty: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """What a file must hold: its columns and the columns that name a row."""

    columns: tuple[Column, ...]
    key: tuple[str, ...]


def read_table(path: Path, table: Table, faults: list[Fault]) -> pl.DataFrame | None:
    """Read one CSV or Parquet file; append what is wrong to ``faults`` and return None if anything is.

    An id column (kind ``id``) is integer where most of its ids are integers, else text; in an integer
    column a text id is a fault. Other columns of the file are ignored.
    """
    before = len(faults)
    raw = _read_raw(path, faults)
    if raw is None:
        return None
    first_line = 2 if path.suffix == ".csv" else 1
    if raw.height == 0:
        faults.append(Fault(path.name, "the table has no rows"))
        return None
    wanted = []
    for column in table.columns:
        if column.name in raw.columns:
            wanted.append(column)
        elif column.required:
            faults.append(Fault(path.name, f"missing; the file has {', '.join(raw.columns)}", column=column.name))
    typed = [_typed(raw[column.name], column, path.name, first_line, faults) for column in wanted]
    if len(faults) > before:
        return None
    frame = pl.DataFrame(typed)
    _find_duplicates(frame, table.key, path.name, first_line, faults)
    return None if len(faults) > before else frame


def id_values(ids: pl.Series, file: str, lines: Sequence[int], faults: list[Fault]) -> pl.Series:
    """Return text ids as integers where most of them are, appending a fault for each that is not."""
    numbers = ids.cast(pl.Int64, strict=False)
    text = numbers.is_null()
    if not text.any():
        return numbers
    if text.sum() * 2 >= len(ids):
        return ids
    for row in text.arg_true():
        reason = f"`{ids[row]}` is text, but most ids here are integers; number the item, or make all ids text"
        faults.append(Fault(file, reason, line=lines[row], column=ids.name))
    return numbers


def _read_raw(path: Path, faults: list[Fault]) -> pl.DataFrame | None:
    try:
        if path.suffix == ".parquet":
            return pl.read_parquet(path)
        return pl.read_csv(path, infer_schema=False, encoding="utf8")
    except pl.exceptions.NoDataError:
        faults.append(Fault(path.name, "the file is empty"))
    except (pl.exceptions.PolarsError, OSError) as error:
        line = None if path.suffix == ".parquet" else _ragged_line(path)
        reason = str(error).splitlines()[0] if line is None else "has more cells than the header"
        faults.append(Fault(path.name, f"cannot be read: {reason}" if line is None else reason, line=line))
    return None


def _ragged_line(path: Path) -> int | None:
    """Return the first line of a CSV file that has more cells than its header, if it can be told."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = csv.reader(file)
            width = len(next(rows))
            return next((rows.line_num for row in rows if len(row) > width), None)
    except (OSError, UnicodeDecodeError, csv.Error, StopIteration):
        return None


def _typed(values: pl.Series, column: Column, file: str, first_line: int, faults: list[Fault]) -> pl.Series:
    """Return one column in its type, and a fault for each cell that has no such value."""
    if values.dtype == pl.String:
        values = values.str.strip_chars()
        words = ("",) if column.kind in ("text", "id") else MISSING
        values = values.set(values.is_in(words), None)
    missing = values.is_null()
    if column.kind == "number":
        result = values.cast(pl.Float64, strict=False)
        missing = missing | result.is_nan().fill_null(False)
        result = result.fill_nan(None)
        bad = result.is_infinite().fill_null(False) | (result.is_null() & ~missing)
        expected = "a finite number"
    elif column.kind == "flag":
        result = (
            values
            if values.dtype == pl.Boolean
            else values.replace_strict(FLAGS, default=None, return_dtype=pl.Boolean)
        )
        bad = result.is_null() & ~missing
        expected = "true or false"
    elif column.kind == "integer":
        result = values.cast(pl.Float64, strict=False).cast(pl.Int64, strict=False)
        bad = (result.is_null() | (result != values.cast(pl.Float64, strict=False))).fill_null(True) & ~missing
        expected = "a whole number"
    else:
        result = values.cast(pl.String)
        bad = pl.repeat(False, len(values), eager=True)
        expected = "text"
    if not column.empty:
        bad = bad | missing
    for row in bad.arg_true():
        got = "an empty cell" if missing[row] else f"`{values[row]}`"
        faults.append(Fault(file, f"must be {expected}, got {got}", line=row + first_line, column=column.name))
    if column.kind == "id" and not missing.any():
        result = id_values(result, file, range(first_line, first_line + len(result)), faults)
    return result.rename(column.name)


def _find_duplicates(
    frame: pl.DataFrame, key: tuple[str, ...], file: str, first_line: int, faults: list[Fault]
) -> None:
    if not key:
        return
    lines = frame.select(*key).with_row_index("line", offset=first_line)
    repeated = lines.filter(pl.struct(key).is_duplicated())
    for group in repeated.group_by(*key, maintain_order=True).agg("line").iter_rows(named=True):
        name = ", ".join(str(group[part]) for part in key)
        listed = ", ".join(str(line) for line in group["line"][:5])
        faults.append(
            Fault(
                file,
                f"({name}) appears {len(group['line'])} times, lines {listed}",
                line=group["line"][1],
                column=", ".join(key),
            )
        )
