"""Cells of tables as numbers and as text."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "-", "--", "missing"})
WORDS = {"true": 1.0, "false": 0.0, "yes": 1.0, "no": 0.0, "correct": 1.0, "incorrect": 0.0, "right": 1.0, "wrong": 0.0}
WORDS |= {"pass": 1.0, "fail": 0.0, "passed": 1.0, "failed": 0.0}


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
