"""Tables from CSV and Parquet files, checked cell by cell.

A :class:`Table` says which columns a file must have and of what kind. :func:`parse_table` returns the typed
frame and collects every fault with its file, line and column; it never guesses a type from the values and
never turns a missing number into 0.
"""

from __future__ import annotations

import ast
import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import polars as pl

from benchwright.errors import Fault
from benchwright.logs.source_file import read_source

Kind = Literal["text", "number", "integer", "flag", "id", "texts"]
MISSING = ("", "nan", "NaN", "NA", "null", "None")
FLAGS = {"true": True, "1": True, "false": False, "0": False}
NEUTRALISED = r"^'(\s*[=+\-@\t\r])"  # an apostrophe that keeps a spreadsheet from running a cell
SHOWN = 60  # characters of a cell that a message repeats


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: its name, kind, whether it must exist, whether a cell may be empty, its range.

    ``empty_where`` names a flag column; where that is true, a cell may be empty. ``texts`` is a list of texts, written
    as Python or JSON writes one: ``['a', "b's"]``.
    """

    name: str
    kind: Kind
    required: bool = True
    empty: bool = False
    empty_where: str | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """What a file must hold: its columns and the columns that name a row.

    ``neutralised``: benchwright may have written it, so an apostrophe that it put before text that a spreadsheet
    would run is taken off again.
    """

    columns: tuple[Column, ...]
    key: tuple[str, ...]
    neutralised: bool = False


@dataclass(frozen=True, slots=True)
class _Raw:
    """A file as it stands: all column names, the wanted columns, and the line of each row."""

    names: list[str]
    frame: pl.DataFrame
    lines: Sequence[int]


def read_table(path: Path, table: Table, faults: list[Fault]) -> pl.DataFrame | None:
    """Read one CSV or Parquet file; append what is wrong to ``faults`` and return None if anything is."""
    source = read_source(path, faults)
    return None if source is None else parse_table(path.name, source[0], table, faults)


def parse_table(file: str, content: bytes, table: Table, faults: list[Fault]) -> pl.DataFrame | None:
    """Return the table that a file holds; append what is wrong to ``faults`` and return None if anything is.

    An id column (kind ``id``) is integer where most of its ids are integers, else text; in an integer
    column a text id is a fault. Other columns of the file are ignored, and so are blank lines.
    """
    before = len(faults)
    wanted = [column.name for column in table.columns]
    read = _read_parquet if file.lower().endswith(".parquet") else _read_csv
    raw = read(file, content, wanted, faults)
    if raw is None:
        return None
    if raw.frame.height == 0 and not set(wanted).isdisjoint(raw.names):
        faults.append(Fault(file, "the table has no rows"))
        return None
    found = []
    for column in table.columns:
        if column.name in raw.names:
            found.append(column)
        elif column.required:
            listed = ", ".join(shown(name) for name in raw.names)
            semicolons = len(raw.names) == 1 and ";" in raw.names[0]
            hint = "; cells are separated by semicolons, save the file with commas" if semicolons else ""
            faults.append(Fault(file, f"missing; the file has {listed}{hint}", column=column.name))
    cells = raw.frame
    if table.neutralised:
        cells = cells.with_columns(pl.col(pl.String).str.replace(NEUTRALISED, "$1"))
    typed = [_typed(cells[column.name], column, file, raw.lines, faults) for column in found]
    if len(faults) > before:
        return None
    frame = pl.DataFrame(typed)
    for column in found:
        if column.empty_where is not None:
            for row in (frame[column.name].is_null() & ~frame[column.empty_where]).arg_true():
                reason = f"empty, but `{column.empty_where}` is not true"
                faults.append(Fault(file, reason, line=raw.lines[row], column=column.name))
    _find_duplicates(frame, table.key, file, raw.lines, faults)
    return None if len(faults) > before else frame


def header(content: bytes) -> list[str]:
    """Return the column names of a CSV file that :func:`parse_table` could read."""
    text = io.StringIO(content.decode("utf-8-sig"), newline="")
    return [name.strip() for name in next((row for row in csv.reader(text) if row), [])]


def shown(value: object) -> str:
    """Return a value as a message repeats it: in one line, cut, without characters that act on a screen.

    >>> shown("a\\nb"), shown("x" * 100) == "x" * 57 + "..."
    ('a\\\\nb', True)
    """
    text = str(value)
    text = text if len(text) <= SHOWN else text[: SHOWN - 3] + "..."
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def id_values(ids: pl.Series, file: str, lines: Sequence[int], faults: list[Fault]) -> pl.Series:
    """Return text ids as integers where most of them are, appending a fault for each that is not.

    A number that would come out otherwise than it was written (007, +7) is text, and one padded with zeros
    makes all ids of its column text.
    """
    numbers = ids.cast(pl.Int64, strict=False)
    text = (numbers.cast(pl.String) != ids).fill_null(True)
    if not text.any():
        return numbers
    if text.sum() * 2 >= len(ids) or ids.str.contains(r"^0\d+$").any():
        return ids
    for row in text.arg_true():
        kind = "beyond 64 bits" if ids[row].removeprefix("-").isdecimal() else "text"
        reason = f"`{shown(ids[row])}` is {kind}, but most ids here are integers; number the item, or make all ids text"
        faults.append(Fault(file, reason, line=lines[row], column=ids.name))
    return numbers


def _read_csv(file: str, content: bytes, wanted: Sequence[str], faults: list[Fault]) -> _Raw | None:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        byte = error.object[error.start]
        faults.append(Fault(file, f"byte 0x{byte:02x} is not UTF-8 text; save the file as UTF-8", line=line))
        return None
    before = len(faults)
    names: list[str] = []
    rows: list[list[str]] = []
    lines: list[int] = []
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    last = 0
    try:
        for row in reader:
            line, last = last + 1, reader.line_num
            if not row:
                continue
            if not names:
                names = [name.strip() for name in row]
                continue
            if len(row) != len(names):
                reason = f"has {len(row)} cells, the header has {len(names)}; put a cell with a comma into quotes"
                faults.append(Fault(file, reason, line=line))
            rows.append(row)
            lines.append(line)
    except csv.Error as error:
        faults.append(Fault(file, f"is no CSV from here on: {error}", line=last + 1))
        return None
    if not names:
        faults.append(Fault(file, "the file is empty"))
    faults += [Fault(file, "appears twice in the header", column=name) for name in wanted if names.count(name) > 1]
    if len(faults) > before:
        return None
    places = {name: place for place, name in enumerate(names) if name in wanted}
    columns = [pl.Series(name, [row[place] for row in rows], dtype=pl.String) for name, place in places.items()]
    return _Raw(names, pl.DataFrame(columns), lines)


def _read_parquet(file: str, content: bytes, wanted: Sequence[str], faults: list[Fault]) -> _Raw | None:
    try:
        frame = pl.read_parquet(io.BytesIO(content))
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        faults.append(Fault(file, f"is no Parquet file that can be read: {shown(reason)}"))
        return None
    names = frame.columns
    return _Raw(names, frame.select(name for name in names if name in wanted), range(1, frame.height + 1))


def _typed(values: pl.Series, column: Column, file: str, lines: Sequence[int], faults: list[Fault]) -> pl.Series:
    """Return one column in its type, and a fault for each cell that has no such value."""
    if not _fits(values.dtype, column.kind):
        reason = f"holds {values.dtype}, which is no {'number' if column.kind == 'integer' else column.kind}"
        faults.append(Fault(file, reason, column=column.name))
        return values
    if column.kind in ("text", "id", "flag", "texts"):
        values = values.cast(pl.String)
    stated = values
    if values.dtype == pl.String:
        values = values.str.strip_chars()
        words = ("",) if column.kind in ("text", "id", "texts") else MISSING
        values = values.set(values.is_in(words), None)
    missing = values.is_null()
    if column.kind == "number":
        result = values.cast(pl.Float64, strict=False)
        missing = missing | result.is_nan().fill_null(False)
        result = result.fill_nan(None)
        bad = result.is_infinite().fill_null(False) | (result.is_null() & ~missing)
        expected = "a finite number"
    elif column.kind == "flag":
        result = values.str.to_lowercase().replace_strict(FLAGS, default=None, return_dtype=pl.Boolean)
        bad = result.is_null() & ~missing
        expected = "true or false"
    elif column.kind == "integer":
        number = values.cast(pl.Float64, strict=False)
        result = number.cast(pl.Int64, strict=False)
        bad = (result.is_null() | (result != number)).fill_null(True) & ~missing
        expected = "a whole number"
    elif column.kind == "texts":
        lists = {cell: _texts(cell) for cell in values.unique().drop_nulls()}
        result = values.replace_strict(lists, default=None, return_dtype=pl.List(pl.String))
        bad = result.is_null() & ~missing
        expected = "a list of texts, as in ['one', 'two']"
    else:
        result = values
        bad = pl.repeat(False, len(values), eager=True)
        expected = "text"
    if not column.empty and column.empty_where is None:
        bad = bad | missing
    outside = _outside(result, column) & ~bad
    for row in (bad | outside).arg_true():
        got = f"`{shown(stated[row])}`" if stated[row] not in (None, "") else "an empty cell"
        rule = f"must be {expected}" if bad[row] else f"must lie in {_bounds(column)}"
        faults.append(Fault(file, f"{rule}, got {got}", line=lines[row], column=column.name))
    if column.kind == "id" and not missing.any():
        result = id_values(result, file, lines, faults)
    return result.rename(column.name)


def _texts(cell: str) -> list[str] | None:
    """Return the texts that a cell lists, None where it is no such list; only literals are read, nothing is run."""
    try:
        value = ast.literal_eval(cell)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    return value if isinstance(value, list) and all(isinstance(entry, str) for entry in value) else None


def _fits(kind: pl.DataType, wanted: Kind) -> bool:
    """Return whether a column of a Parquet file can hold such values; all that CSV has is text."""
    if kind in (pl.String, pl.Null):
        return True
    if wanted == "flag":
        return kind == pl.Boolean or kind.is_integer()
    if wanted in ("number", "integer"):
        return kind.is_numeric()
    return kind in (pl.Categorical, pl.Enum) or kind.is_integer()


def _outside(values: pl.Series, column: Column) -> pl.Series:
    outside = pl.repeat(False, len(values), eager=True)
    if column.low is not None:
        outside = outside | (values < column.low).fill_null(False)
    if column.high is not None:
        outside = outside | (values > column.high).fill_null(False)
    return outside


def _bounds(column: Column) -> str:
    low = "-inf" if column.low is None else f"{column.low:g}"
    return f"{low} .. {'inf' if column.high is None else f'{column.high:g}'}"


def _find_duplicates(
    frame: pl.DataFrame, key: tuple[str, ...], file: str, lines: Sequence[int], faults: list[Fault]
) -> None:
    if not key:
        return
    numbered = frame.select(*key, line=pl.Series(lines, dtype=pl.Int64))
    repeated = numbered.filter(pl.struct(key).is_duplicated())
    for group in repeated.group_by(*key, maintain_order=True).agg("line").iter_rows(named=True):
        name = ", ".join(shown(group[part]) for part in key)
        listed = ", ".join(str(line) for line in group["line"][:5])
        faults.append(
            Fault(
                file,
                f"({name}) appears {len(group['line'])} times, lines {listed}; keep one",
                line=group["line"][1],
                column=", ".join(key),
            )
        )
