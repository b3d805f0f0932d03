"""What the readers of tables share: cells as times, steps and doses, faults that do not flood, duplicates."""

from __future__ import annotations

import re
from collections import Counter
from datetime import UTC, datetime
from typing import Any

from benchwright.logs.record import Sink
from benchwright.logs.table_cells import as_number, as_text
from benchwright.logs.tabular import shown

MAX_FAULTS = 1_000  # of one column of one file
MAX_KEYS = 300_000  # rows among which copies are looked for
_TOKENS = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([kmbt]?)\s*", re.I)
_UNITS = {"": 1.0, "k": 1e3, "m": 1e6, "b": 1e9, "t": 1e12}
REFUSALS = {
    "pairs": "compares pairs of models: a summary of records, not a log; ingest the records that it was made from",
    "predictions": "holds predictions and no scores; score them against the gold answers first",
    "statistics": "holds fitted parameters (ability, difficulty, ...), not results",
    "metadata": "describes models (size, family, ...) and holds no results",
}


class Faults:
    """The faults of one file: the first thousand of a column one by one, then how many more; none without a sink."""

    def __init__(self, sink: Sink | None, file: str) -> None:
        self._sink, self._file = sink, file
        self._counts: Counter[str | None] = Counter()

    def add(self, line: int | None, column: str | None, reason: str) -> None:
        """Report one thing that cannot be used."""
        self._counts[column] += 1
        if self._counts[column] <= MAX_FAULTS and self._sink is not None:
            name = None if column is None else shown(column)
            self._sink.fault(self._file, reason, line=line, column=name)

    def line(self, line: int | None, reason: str) -> None:
        """Report a line that cannot be used."""
        self.add(line, None, reason)

    def close(self) -> None:
        """Report how many faults were not reported one by one."""
        for column, count in self._counts.items():
            if count > MAX_FAULTS and self._sink is not None:
                name = None if column is None else shown(column)
                self._sink.fault(self._file, f"and {count - MAX_FAULTS:,} more faults of this column", column=name)


class Duplicates:
    """Counts rows of one key that say the same (copies) or something else (conflicts)."""

    def __init__(self) -> None:
        self._seen: dict[int, tuple[float | None, int]] = {}
        self._copies = self._conflicts = 0
        self._first = ""
        self._full = False

    def see(self, key: tuple[Any, ...], value: float | None, line: int) -> tuple[float | None, int] | None:
        """Take a row into account; return value and line of the first of its key if it is the first conflict."""
        before = self._seen.setdefault(hash(key), (value, line)) if not self._full else self._seen.get(hash(key))
        if before is None:
            return None
        if before[1] == line and before[0] is value:
            self._full = len(self._seen) >= MAX_KEYS
            return None
        if before[0] == value:
            self._copies += 1
            return None
        self._conflicts += 1
        return None if self._first else before

    def tell(self, before: tuple[float | None, int], names: tuple[Any, ...], value: float | None, line: int) -> None:
        """Keep what the first conflict was."""
        was, now = ("empty" if number is None else f"{number:g}" for number in (before[0], value))
        listed = ", ".join(shown(name) for name in names)
        self._first = f" (first: {listed}: {was} on line {before[1]}, {now} on line {line})"

    def text(self) -> str:
        """Return what was found, "" where nothing was."""
        if not self._copies and not self._conflicts:
            return ""
        beyond = f"; only the first {MAX_KEYS:,} keys were compared" if self._full else ""
        conflicts = f"{self._conflicts:,} conflicting pair{'' if self._conflicts == 1 else 's'}{self._first}"
        copies = f"{self._copies:,} exact cop{'y' if self._copies == 1 else 'ies'}"
        return f"the same model, task, item and metric again: {conflicts}, {copies}{beyond}"


def whole(cell: Any, line: int, column: str | None, faults: Faults) -> int | None:
    """Return a cell as a whole number of at most 53 bits, None where it is missing; report any other."""
    try:
        value = as_number(cell)
    except ValueError:
        value = 0.5
    if value is None:
        return None
    if not value.is_integer() or abs(value) >= 2**53:
        faults.add(line, column, f"`{shown(as_text(cell))}` is no whole number")
        return None
    return int(value)


def seconds_of(cell: Any, line: int, column: str, faults: Faults) -> float | None:
    """Return a time as seconds since 1970: numbers of seconds or milliseconds, ISO 8601 (without a zone: UTC)."""
    if isinstance(cell, datetime):
        cell = cell.isoformat()
    try:
        value = as_number(cell)
    except ValueError:
        text = as_text(cell).strip()
        try:
            moment = datetime.fromisoformat(text)
            return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
        except (ValueError, OverflowError):
            faults.add(line, column, f"`{shown(text)}` is no time; write it as 2026-01-31T12:00:00")
            return None
    if value is None:
        return None
    return value / 1000 if abs(value) > 1e11 else value


def stamp_of(seconds: float) -> str | None:
    """Return seconds since 1970 as ISO 8601, None where they are no date."""
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat()
    except (ValueError, OverflowError, OSError):
        return None


def dose_of_tokens(text: str) -> float | None:
    """Return a number of tokens, ``9B`` as 9e9.

    >>> dose_of_tokens("9B"), dose_of_tokens("some")
    (9000000000.0, None)
    """
    found = _TOKENS.fullmatch(text)
    return None if found is None else float(found[1]) * _UNITS[found[2].lower()]


def step_of(cell: str) -> int | None:
    """Return the step in ``1000``, ``step1000``, ``step-1000`` or ``checkpoint-1000``, else None."""
    text = cell.strip().lower()
    digits = text.removeprefix("global").lstrip("_").removeprefix("step").removeprefix("checkpoint")
    if digits != text:  # a hyphen after a word is no sign
        digits = digits.lstrip("-_ ")
    digits = digits.removesuffix(".0")
    return int(digits) if digits.isdecimal() and digits.isascii() and len(digits) < 16 else None
