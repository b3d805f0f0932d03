"""A small table file as it stands: named columns of cells, typed only when asked for, with the line of each fault."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchwright._check import FloatArray
from benchwright.errors import DataError, Fault, UsageError
from benchwright.logs.log_file import LogFile
from benchwright.logs.record import ReadOptions
from benchwright.logs.table_cells import as_number, as_text
from benchwright.logs.table_columns import plain
from benchwright.logs.table_file import TableFile, open_table
from benchwright.panel.names import listed


@dataclass(frozen=True, slots=True)
class CellTable:
    """A table file: ``names`` of its columns, its ``rows`` of cells and their ``lines``."""

    file: str
    names: tuple[str, ...]
    rows: tuple[Sequence[Any], ...]
    lines: tuple[int, ...]

    def column(self, name: str) -> str | None:
        """The column of a name, compared without case, spaces and hyphens as ``_``."""
        return next((own for own in self.names if plain(own) == name), None)

    def texts(self, name: str) -> list[str]:
        """The cells of a column as text.

        Raises
        ------
        DataError
            A cell is empty; names file, line and column.
        """
        found = [as_text(cell).strip() for cell in self._cells(name)]
        self._refuse(name, [(k, "is empty") for k, text in enumerate(found) if not text])
        return found

    def numbers(self, name: str, *, gaps: bool = False) -> FloatArray:
        """The cells of a column as numbers, NaN where empty.

        Raises
        ------
        DataError
            A cell is no number, or empty where ``gaps`` are not allowed.
        """
        values, faults = np.full(len(self.rows), np.nan), []
        for k, cell in enumerate(self._cells(name)):
            try:
                number = as_number(cell)
            except ValueError:
                faults.append((k, f"`{as_text(cell)}` is no number"))
                continue
            if number is not None:
                values[k] = number
            elif not gaps:
                faults.append((k, "is empty"))
        self._refuse(name, faults)
        return values

    def _cells(self, name: str) -> list[Any]:
        place = self.names.index(str(self.column(name)))
        return [row[place] for row in self.rows]

    def _refuse(self, name: str, faults: list[tuple[int, str]]) -> None:
        if faults:
            told = [Fault(self.file, reason, line=self.lines[k], column=self.column(name)) for k, reason in faults]
            raise DataError(f"{len(faults)} cell(s) of {self.file} cannot be used", faults=told)


def open_cells(path: Path) -> TableFile | None:
    """Return a file as a table that is not yet read, None where it is none."""
    return open_table(LogFile(path, path.name), ReadOptions().max_line, lambda line, reason: None)


def read_cells(path: Path) -> CellTable:
    """Read a table file whole: CSV, TSV, JSON lines, a JSON array of records, or Parquet.

    Raises
    ------
    UsageError
        The file is no table, or has no rows.
    DataError
        A row cannot be read.
    """
    faults: list[Fault] = []

    def fault(line: int | None, reason: str) -> None:
        faults.append(Fault(path.name, reason, line=line))

    table = open_table(LogFile(path, path.name), ReadOptions().max_line, fault)
    if table is None:
        raise UsageError(f"{path.name} is no table: {listed(fault.reason for fault in faults)}")
    read = list(table.records(list(dict.fromkeys(table.names)), fault))
    if faults:
        raise DataError(f"{len(faults)} row(s) of {path.name} cannot be read", faults=faults)
    if not read:
        raise UsageError(f"{path.name} has columns and no rows")
    lines, rows = zip(*read, strict=True)
    return CellTable(path.name, tuple(dict.fromkeys(table.names)), rows, lines)
