"""The cells of a table file: CSV, TSV, JSON lines, a JSON array of records, or Parquet, record by record.

Nothing is typed here: a cell of a text file is text, one of JSON or Parquet is what the file holds. Every record
comes with its line (its number from 1 in JSON arrays and Parquet), and what cannot be read is one fault.
"""

from __future__ import annotations

import csv
import json
import math
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import islice
from typing import Any, Literal

import msgspec
import polars as pl

from benchwright.logs.log_file import HEAD_BYTES, Head, LogFile, parse_json

PARQUET = b"PAR1"
SAMPLE = 50  # records that a layout is told from
BATCH = 20_000
MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "-", "--", "missing"})
WORDS = {"true": 1.0, "false": 0.0, "yes": 1.0, "no": 0.0, "correct": 1.0, "incorrect": 0.0, "right": 1.0, "wrong": 0.0}
WORDS |= {"pass": 1.0, "fail": 0.0, "passed": 1.0, "failed": 0.0}

OnFault = Callable[[int | None, str], None]
Kind = Literal["delimited", "lines", "array", "parquet"]


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a text table separates its cells; ``quoted`` is False where a quotation mark is plain text."""

    delimiter: str
    quoted: bool


@dataclass(frozen=True, slots=True)
class TableFile:
    """A table that can be gone through: its column names ([] without a header) and its first records."""

    file: LogFile
    kind: Kind
    names: list[str]
    sample: list[Sequence[Any]]
    dialect: Dialect | None = None
    max_line: int = 64 * 2**20

    def records(self, names: Sequence[str], on_fault: OnFault) -> Iterator[tuple[int, Sequence[Any]]]:
        """Yield (line, cells of the named columns) of every record that can be read."""
        if self.kind == "delimited":
            places = [self.names.index(name) for name in names]
            if len(places) == 1:
                place = places[0]
                return ((line, (cells[place],)) for line, cells in self.rows(on_fault))
            pick = operator.itemgetter(*places)
            return ((line, pick(cells)) for line, cells in self.rows(on_fault))
        if self.kind == "lines":
            return _json_lines(self.file, names, self.max_line, on_fault)
        if self.kind == "array":
            return _json_array(self.file, names, on_fault)
        return _parquet_records(self.file, names, on_fault)

    def rows(self, on_fault: OnFault) -> Iterator[tuple[int, Sequence[Any]]]:
        """Yield (line, all cells); of a text table only rows as wide as its first row."""
        if self.dialect is None:
            yield from self.records(self.names, on_fault)
            return
        width = len(self.names)
        header = bool(self.names)
        for line, cells in _delimited(self.file, self.dialect, self.max_line, on_fault):
            if header:
                header = False
                continue
            if not any(cell.strip() for cell in cells):
                continue
            width = width or len(cells)
            if len(cells) != width:
                first = "the header" if self.names else "the first row"
                on_fault(line, f"has {len(cells)} cells, {first} has {width}; put a cell with a separator into quotes")
                continue
            yield line, cells


def as_number(cell: Any) -> float | None:
    """Return a cell as a finite number, None where it is missing, NaN or infinite.

    Raises
    ------
    ValueError
        It is no number.
    """
    if isinstance(cell, str):
        try:
            value = float(cell)
        except ValueError:
            word = cell.strip().lower()
            if word in MISSING:
                return None
            if word in WORDS:
                return WORDS[word]
            raise ValueError("is no number") from None
        if "_" in cell:
            raise ValueError("is no number")
        return value if math.isfinite(value) else None
    if cell is None:
        return None
    if isinstance(cell, (bool, int, float, Decimal)):
        try:
            value = float(cell)
        except OverflowError:
            return None
        return value if math.isfinite(value) else None
    raise ValueError("is no number")


def number_or(cell: Any, otherwise: Any) -> Any:
    """Return a cell as a number, something else where it is none."""
    try:
        value = as_number(cell)
    except ValueError:
        return otherwise
    return otherwise if value is None else value


def as_text(cell: Any) -> str:
    """Return a cell as text that can be stored: whole floats of JSON and Parquet without ".0"."""
    if isinstance(cell, str):
        return cell if cell.isascii() else cell.encode("utf-8", "backslashreplace").decode()
    if cell is None:
        return ""
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 2**53:
        return str(int(cell))
    try:
        return as_text(str(cell))
    except (ValueError, RecursionError):  # more digits, or deeper, than Python writes
        return ""


def sniff_table(head: Head) -> tuple[Kind, list[str], list[Sequence[Any]]] | None:
    """Return kind, column names and first records that a head shows, None where it shows no table.

    Of Parquet the head shows only that it is Parquet.
    """
    if head.content.startswith(PARQUET):
        return "parquet", [], []
    if head.is_object:
        record = head.first_record()
        return None if record is None else ("lines", *_columns([record]))
    if head.is_array:
        records = _first_of_array(head.content)
        return ("array", *_columns(records)) if records else None
    found = _sniff_delimited(head.content)
    return None if found is None else ("delimited", found[1], found[2])


def open_table(file: LogFile, max_line: int, on_fault: OnFault) -> TableFile | None:
    """Open a table file; report why it is none and return None."""
    head = Head(file.name, file.head())
    if head.content.startswith(PARQUET):
        try:
            frame = pl.scan_parquet(file.path).head(SAMPLE).collect()
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
            on_fault(None, f"is no Parquet file that can be read: {_first_line(error)}")
            return None
        return TableFile(file, "parquet", frame.columns, list(frame.rows()))
    if head.is_object:
        records = [record for _, record in islice(_objects(file, max_line, lambda _line, _reason: None), SAMPLE)]
        names, sample = _columns(records)
        if not names:
            on_fault(None, "holds no JSON record that can be read")
            return None
        return TableFile(file, "lines", names, sample, max_line=max_line)
    if head.is_array:
        try:
            content = file.document()
        except ValueError as error:
            on_fault(None, str(error))
            return None
        records = [record for record in content[:SAMPLE] if isinstance(record, dict)] if content else []
        names, sample = _columns(records)
        return TableFile(file, "array", names, sample)
    if head.content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        on_fault(None, "is UTF-16 text; save the file as UTF-8")
        return None
    found = _sniff_delimited(head.content)
    if found is None:
        on_fault(None, "is no table: its lines have no separator in common")
        return None
    return TableFile(file, "delimited", found[1], found[2], dialect=found[0], max_line=max_line)


def _columns(records: Sequence[dict[str, Any]]) -> tuple[list[str], list[Sequence[Any]]]:
    """Return the names of records, those in a dictionary ``metadata`` as ``metadata.name``, and their cells."""
    names: dict[str, None] = {}
    for record in records:
        names |= dict.fromkeys(record)
        inner = record.get("metadata")
        if isinstance(inner, dict):
            names |= dict.fromkeys(f"metadata.{key}" for key in inner)
    return list(names), [[_cell(record, name) for name in names] for record in records]


def _cell(record: dict[str, Any], name: str) -> Any:
    if name not in record and name.startswith("metadata."):
        inner = record.get("metadata")
        return inner.get(name.removeprefix("metadata.")) if isinstance(inner, dict) else None
    return record.get(name)


def _first_of_array(content: bytes) -> list[dict[str, Any]]:
    """Return the first record of a JSON array, also where the head cuts the array off."""
    text = content.decode("utf-8", "replace").lstrip()[1:].lstrip()
    try:
        record, _ = json.JSONDecoder(parse_constant=lambda _: None).raw_decode(text)
    except (ValueError, RecursionError):
        return []
    return [record] if isinstance(record, dict) else []


def _sniff_delimited(content: bytes) -> tuple[Dialect, list[str], list[Sequence[Any]]] | None:
    """Return dialect, header ([] where the first row holds numbers only) and first rows of a text table."""
    if b"\x00" in content[:4096]:
        return None
    lines = content.decode("utf-8", "replace").replace("\r\n", "\n").split("\n")
    cut = len(content) >= HEAD_BYTES - 3
    if cut and len(lines) > 1:
        lines.pop()
    lines = [line for line in lines if line.strip()]
    best: tuple[int, Dialect, list[list[str]]] | None = None
    for delimiter in ("\t", ",", ";"):
        if not lines or delimiter not in lines[0]:
            continue
        for quoted in (False, True) if delimiter == "\t" else (True,):
            rows = _rows_of(lines, delimiter, quoted)
            width = len(rows[0]) if rows else 0
            even = sum(len(row) == width for row in rows)
            if width >= 2 and even >= 0.8 * len(rows) and (best is None or width > best[0]):
                best = (width, Dialect(delimiter, quoted), rows)
    if best is None:
        return None
    _, dialect, rows = best
    names = [name.strip() for name in rows[0]]
    if not is_header(names):
        return dialect, [], list(rows)
    return dialect, names, [row for row in rows[1:] if len(row) == len(names) and any(row)]


def is_header(names: Sequence[str]) -> bool:
    """Return whether a first row is a header: not one of numbers, nor of numbers after a name of its own."""
    from benchwright.logs.table_columns import is_label

    rest = [name for name in names[1:] if name]
    return not rest or not all(_is_number(name) for name in rest) or is_label(names[0])


def _is_number(cell: str) -> bool:
    try:
        as_number(cell)
    except ValueError:
        return False
    return True


def _rows_of(lines: list[str], delimiter: str, quoted: bool) -> list[list[str]]:
    try:
        if not quoted:
            return [line.split(delimiter) for line in lines[: SAMPLE + 1]]
        return list(islice(csv.reader((line + "\n" for line in lines), delimiter=delimiter), SAMPLE + 1))
    except csv.Error:
        return []


def _delimited(file: LogFile, dialect: Dialect, max_line: int, on_fault: OnFault) -> Iterator[tuple[int, list[str]]]:
    """Yield (first line, cells) of each record; a quoted cell may go over several lines."""
    delimiter, quoted = dialect.delimiter, dialect.quoted
    start, pending = 0, ""
    for number, content in file.lines(max_line, on_fault):
        try:
            line = content.decode("utf-8")
        except UnicodeDecodeError as error:
            byte = error.object[error.start]
            on_fault(number, f"byte 0x{byte:02x} is not UTF-8 text; save the file as UTF-8")
            continue
        if not pending and (not quoted or '"' not in line):
            yield number, line.split(delimiter)
            continue
        start = start if pending else number
        pending = f"{pending}\n{line}" if pending else line
        if pending.count('"') % 2:
            if len(pending) > max_line:
                on_fault(start, f"opens a quotation mark that is not closed within {max_line:,} characters")
                pending = ""
            continue
        try:
            cells = _split(pending, delimiter)
        except csv.Error as error:
            on_fault(start, f"is no row of a table: {error}")
        else:
            yield start, cells
        pending = ""
    if pending:
        on_fault(start, "opens a quotation mark that is never closed; the rest of the file is not read")


def _split(text: str, delimiter: str) -> list[str]:
    limit = csv.field_size_limit()
    if len(text) <= limit:
        return next(csv.reader([text], delimiter=delimiter))
    csv.field_size_limit(len(text))
    try:
        return next(csv.reader([text], delimiter=delimiter))
    finally:
        csv.field_size_limit(limit)


def _objects(file: LogFile, max_line: int, on_fault: OnFault) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (line, record) of JSON lines, whole."""
    for number, line in file.lines(max_line, on_fault):
        try:
            record = parse_json(line)
        except ValueError as error:
            on_fault(number, str(error))
            continue
        if isinstance(record, dict):
            yield number, record
        else:
            on_fault(number, "is no JSON object")


def _json_lines(
    file: LogFile, names: Sequence[str], max_line: int, on_fault: OnFault
) -> Iterator[tuple[int, Sequence[Any]]]:
    """Yield (line, cells) of JSON lines, decoding only the named fields."""
    tops = list(dict.fromkeys(name.split(".")[0] if name.startswith("metadata.") else name for name in names))
    nested = tops != list(names)
    fields = [(f"f{place}", Any, None) for place in range(len(tops))]
    rename = {f"f{place}": name for place, name in enumerate(tops)}
    kind = msgspec.defstruct("Record", fields, rename=rename, gc=False)
    decode = msgspec.json.Decoder(kind).decode
    for number, line in file.lines(max_line, on_fault):
        try:
            cells: Sequence[Any] = msgspec.structs.astuple(decode(line))
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
            try:
                record = parse_json(line)
            except ValueError as error:
                on_fault(number, str(error))
                continue
            if not isinstance(record, dict):
                on_fault(number, "is no JSON object")
                continue
            cells = [record.get(name) for name in tops]
        if nested:
            found = dict(zip(tops, cells, strict=True))
            cells = [_cell(found, name) for name in names]
        yield number, cells


def _json_array(file: LogFile, names: Sequence[str], on_fault: OnFault) -> Iterator[tuple[int, Sequence[Any]]]:
    for number, record in enumerate(file.document(), start=1):
        if isinstance(record, dict):
            yield number, [_cell(record, name) for name in names]
        else:
            on_fault(number, "is no JSON object")


def _parquet_records(file: LogFile, names: Sequence[str], on_fault: OnFault) -> Iterator[tuple[int, Sequence[Any]]]:
    offset = 0
    while True:
        try:
            rows = pl.scan_parquet(file.path).select(names).slice(offset, BATCH).collect().rows()
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
            on_fault(offset + 1, f"cannot be read from here on: {_first_line(error)}")
            return
        yield from enumerate(rows, start=offset + 1)
        if len(rows) < BATCH:
            return
        offset += BATCH


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
