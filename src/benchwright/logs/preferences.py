"""Pairwise preferences (battles, judge verdicts on two answers): recognised, and refused by name."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

from benchwright.logs.format import Format
from benchwright.logs.log_file import Head
from benchwright.logs.record import Sink, Unit

REASON = (
    "holds pairwise preferences (which of two answers was liked better), no score of an item. Fit a rating first "
    "(Bradley-Terry or Elo, one number per model) and give that as a score table"
)
SHAPES: tuple[frozenset[str], ...] = (
    frozenset({"model_a", "model_b", "winner"}),
    frozenset({"model_a", "model_b", "winner_model_a"}),
    frozenset({"model_1", "model_2", "g1_winner"}),
    frozenset({"model_1", "model_2", "winner"}),
    frozenset({"generator_1", "generator_2", "preference"}),
    frozenset({"chosen", "rejected"}),
)


def sniff(head: Head) -> bool:
    """Whether the records of a file are verdicts on two answers."""
    if head.content[:4] == b"PAR1":  # column names stand at the end: seen here only in small files
        return any(all(name.encode() in head.content for name in shape) for shape in SHAPES if "chosen" not in shape)
    names = _names(head)
    return any(shape <= names for shape in SHAPES)


def read(unit: Unit, sink: Sink) -> None:
    """Refuse every file."""
    for file in unit.files:
        sink.fault(file.name, REASON)


def _names(head: Head) -> set[str]:
    """Return the names of the first record's fields, or of the columns of a table."""
    if head.is_object or head.is_array:
        text = head.content.decode("utf-8", "replace").lstrip().removeprefix("[").lstrip()
        try:
            record: Any = json.JSONDecoder().raw_decode(text)[0]
        except (ValueError, RecursionError):
            return head.keys()  # longer than the head
        return set(record) if isinstance(record, dict) else set()
    line = head.content.lstrip().split(b"\n", 1)[0].decode("utf-8", "replace")
    try:
        return {name.strip() for name in next(csv.reader(io.StringIO(line), delimiter="\t" if "\t" in line else ","))}
    except (csv.Error, StopIteration):
        return set()


FORMAT = Format("pairwise preferences", sniff, read, refused=REASON)
