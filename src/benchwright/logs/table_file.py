"""The cells of a table file: CSV, TSV, JSON lines, a JSON array of records, or Parquet, record by record.

Nothing is typed here: a cell of a text file is text, one of JSON or Parquet is what the file holds. Every record
comes with its line (its number from 1 in JSON arrays and Parquet), and what cannot be read is one fault.
"""

from __future__ import annotations

import csv
import json
import operator
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal

import msgspec
import polars as pl

from benchwright.logs.log_file import HEAD_BYTES, Head, LogFile, parse_json
from benchwright.logs.table_cells import as_number

PARQUET = b"PAR1"
UTF16 = (b"\xff\xfe", b"\xfe\xff")
SAMPLE = 50  # records that a layout is told from
BATCH = 20_000
_COMMA = re.compile(r"\s*-?\d+,\d+\s*")
_SPACE, _COLON = re.compile(r"\s*"), re.compile(r"\s*:\s*")

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
            yield line, [_point(cell) for cell in cells] if self.dialect.delimiter == ";" else cells


def sniff_table(head: Head) -> tuple[Kind, list[str], list[Sequence[Any]]] | None:
    """Return kind, column names and first records that a head shows, None where it shows no table.

    Of Parquet the head shows only that it is Parquet.
    """
    if head.content.startswith(PARQUET):
        return "parquet", [], []
    if head.is_object:
        record = head.first_record()
        if record is None and b"\n" not in head.content.strip():
            record = _start_of_record(head.content)  # a first line longer than the head
        return ("lines", *_columns([record])) if record else None
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
            frame = pl.scan_parquet(file.path, glob=False).head(SAMPLE).collect()
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
    if head.content[:2] in UTF16:
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


def _start_of_record(content: bytes) -> dict[str, Any]:
    """Return the fields of a JSON object that stand whole before the head cuts it off."""
    text = content.decode("utf-8", "replace").strip()
    decoder = json.JSONDecoder(parse_constant=lambda _: None)
    record: dict[str, Any] = {}
    place = 1
    try:
        while True:
            place = _SPACE.match(text, place).end()  # type: ignore[union-attr]
            key, place = decoder.raw_decode(text, place)
            place = _COLON.match(text, place).end()  # type: ignore[union-attr]
            record[str(key)], place = decoder.raw_decode(text, place)
            place = _SPACE.match(text, place).end()  # type: ignore[union-attr]
            if text[place : place + 1] != ",":
                return record
            place += 1
    except (ValueError, AttributeError, RecursionError):
        return record


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
    if content[:2] in UTF16:
        content = content[: len(content) // 2 * 2].decode("utf-16", "replace").encode()
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
            if width >= 2 and even >= 0.5 * len(rows) and (best is None or width > best[0]):
                best = (width, Dialect(delimiter, quoted), rows)
    if best is None:
        return None
    _, dialect, rows = best
    if dialect.delimiter == ";":
        rows = [[_point(cell) for cell in row] for row in rows]
    names = [name.strip() for name in rows[0]]
    if not is_header(names):
        return dialect, [], list(rows)
    return dialect, names, [row for row in rows[1:] if len(row) == len(names) and any(row)]


def is_header(names: Sequence[str]) -> bool:
    """Return whether a first row is a header: not one of numbers, nor of numbers after a name of its own."""
    from benchwright.logs.table_columns import is_label

    rest = [name for name in names[1:] if name]
    return not rest or not all(_is_number(name) for name in rest) or is_label(names[0])


def _point(cell: str) -> str:
    """Return a number with a decimal comma, as spreadsheets write it between semicolons, with a point."""
    return cell.replace(",", ".") if _COMMA.fullmatch(cell) else cell


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
    lines = _Lines(file, max_line, on_fault)
    if not dialect.quoted:
        for line in lines:
            yield lines.number, line[:-1].split(dialect.delimiter)
        return
    reader = csv.reader(lines, delimiter=dialect.delimiter)
    limit = csv.field_size_limit()
    while True:
        lines.start = 0
        csv.field_size_limit(max(limit, min(max_line, 2**31 - 1)))
        try:
            cells = next(reader, None)
        except csv.Error as error:
            on_fault(lines.start or None, f"is no row of a table: {error}")
            continue
        finally:
            csv.field_size_limit(limit)
        if cells is None:
            return
        if lines.ended:  # the reader asked for more inside a record
            over = f"; lines {lines.start} to {lines.number} are not read" if lines.number > lines.start else ""
            on_fault(lines.start, f"opens a quotation mark that is never closed{over}")
            return
        yield lines.start, cells


class _Lines:
    """The decoded lines of a text table for :mod:`csv`, and where it is in them."""

    def __init__(self, file: LogFile, max_line: int, on_fault: OnFault) -> None:
        self._lines = file.lines(max_line, on_fault)
        self._on_fault = on_fault
        self.start = self.number = 0  # the first line of the record at hand, the last line read
        self.ended = False

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        for number, content in self._lines:
            try:
                line = content.decode("utf-8")
            except UnicodeDecodeError as error:
                byte = error.object[error.start]
                self._on_fault(number, f"byte 0x{byte:02x} is not UTF-8 text; save the file as UTF-8")
                continue
            self.number = number
            self.start = self.start or number
            return line + "\n"
        self.ended = True
        raise StopIteration


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
            rows = pl.scan_parquet(file.path, glob=False).select(names).slice(offset, BATCH).collect().rows()
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
            on_fault(offset + 1, f"cannot be read from here on: {_first_line(error)}")
            return
        yield from enumerate(rows, start=offset + 1)
        if len(rows) < BATCH:
            return
        offset += BATCH


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
