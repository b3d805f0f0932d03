"""The items that a judge is shown: from a table file, a data frame, a panel that kept texts, or lm-eval's tasks.

An item whose text cannot be judged (empty, no text, too long) stays in the list and carries the reason; the run
records it as failed. A row without task or doc_id is a fault of the file: nothing is judged until it is mended.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from benchwright.errors import DataError, Fault, UsageError
from benchwright.judge.lm_eval_tasks import PREFIX, task_items
from benchwright.logs.log_file import LogFile
from benchwright.logs.source_file import utf8
from benchwright.logs.table_cells import as_text
from benchwright.logs.table_file import open_table
from benchwright.logs.tabular import id_values
from benchwright.panel.panel import Panel

TASK, DOC_ID, TEXT, CHOICES = ("task", "lm_eval_task"), ("doc_id",), ("text", "question"), ("choices", "options")
HINT = "give task, doc_id, question (or text) and, where there are any, choices: CSV, Parquet, or a JSON object a line"
NO_TEXT = "the text is a list or an object"
MAX_LINE = 64 * 2**20
MAX_ODD = 0.05  # share of characters that no text has
_ODD = re.compile("[\x01-\x08\x0e-\x1f\x7f\ufffd]")
_NEVER = re.compile("[\x00\ud800-\udfff]")

Row = tuple[int | None, Any, Any, Any, Any]  # line, task, doc_id, text, choices


@dataclass(frozen=True, slots=True)
class JudgeItem:
    """One item: its key, its text with the choices below, and why it cannot be judged (None where it can)."""

    task: str
    doc_id: str
    text: str
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class JudgeItems:
    """Items in the order of their source, and what a reader of the result should know of how they were read."""

    source: str
    items: tuple[JudgeItem, ...]
    notes: tuple[str, ...] = ()


def read_items(source: str | Path | pl.DataFrame, *, max_characters: int) -> JudgeItems:
    """Read the items of a source.

    Parameters
    ----------
    source
        A CSV, TSV, JSON or Parquet file (also compressed by gzip or zstd) or a polars frame with the columns task,
        doc_id, question or text, and optionally choices or options; a panel that was read with ``keep_text``; or
        ``lm-eval:TASK,TASK``.
    max_characters
        A longer item is not judged.

    Raises
    ------
    UsageError
        There is no such source, or lm-eval is asked for and not installed.
    DataError
        The file is no table, lacks a column, has rows without task or doc_id, one item twice with two texts, or ids of
        two kinds.
    """
    faults: list[Fault] = []
    notes: list[str] = []
    name, rows = _rows(source, faults, notes)
    items = _items(name, rows, max_characters, faults, notes)
    if faults:
        raise DataError(f"{name}: {len(faults)} fault(s) in the items", faults=faults, hint=HINT)
    if not items:
        raise DataError(f"{name} holds no items", hint=HINT)
    return JudgeItems(name, tuple(items), tuple(notes))


def _rows(source: str | Path | pl.DataFrame, faults: list[Fault], notes: list[str]) -> tuple[str, Iterable[Row]]:
    """Return the name of a source and its rows."""
    if isinstance(source, pl.DataFrame):
        columns = _columns("frame", source.columns, faults, notes)
        return "frame", _pick(enumerate(source.iter_rows(), start=1), source.columns, columns)
    if str(source).startswith(PREFIX):
        return str(source), task_items(str(source).removeprefix(PREFIX))
    path = Path(source)
    name = utf8(path.name)
    if path.is_dir():
        return name, _of_panel(path, notes)
    if not path.is_file():
        raise UsageError(
            f"ITEMS {path} does not exist",
            hint="give a file with task, doc_id and text or question, a panel folder, or lm-eval:TASK",
        )
    table = open_table(LogFile(path, name), MAX_LINE, lambda line, why: faults.append(Fault(name, why, line)))
    if table is None:
        return name, ()
    columns = _columns(name, table.names, faults, notes)
    if None in columns[:3]:
        return name, ()
    found = [column for column in columns if column is not None]
    records = table.records(found, lambda line, why: faults.append(Fault(name, why, line)))
    return name, _pick(records, found, columns)


def _columns(name: str, names: Sequence[str], faults: list[Fault], notes: list[str]) -> list[str | None]:
    """Return the columns that hold task, doc_id, text and choices; the last may be None."""
    columns = [next((one for one in known if one in names), None) for known in (TASK, DOC_ID, TEXT, CHOICES)]
    for known, column in zip((TASK, DOC_ID, TEXT), columns, strict=False):
        if column is None:
            listed = ", ".join(names) if names else "no header"
            faults.append(Fault(name, f"missing; the file has {listed}", column=" or ".join(known)))
    unused = [one for one in names if one not in columns]
    if unused:
        notes.append(f"{name}: not shown to the judge: {', '.join(unused)}.")
    return columns


def _pick(
    records: Iterable[tuple[int, Sequence[Any]]], names: Sequence[str], columns: Sequence[str | None]
) -> Iterator[Row]:
    """Yield line, task, doc_id, text and choices of each record."""
    places = [None if column is None else list(names).index(column) for column in columns]
    for line, cells in records:
        task, doc_id, text, choices = (None if place is None else cells[place] for place in places)
        yield line, task, doc_id, text, choices


def _of_panel(path: Path, notes: list[str]) -> Iterator[Row]:
    """Yield the texts of a panel; of several versions of an item the first."""
    texts = Panel.open(path).items().select("task", "doc_id", "text").collect()
    if texts.height == 0:
        raise DataError(f"{path} holds no item texts", hint="read the logs again: benchwright ingest LOGS --keep-text")
    first = texts.unique(("task", "doc_id"), keep="first", maintain_order=True)
    if first.height < texts.height:
        notes.append(f"{path.name}: {texts.height - first.height} further versions of items are not judged.")
    return ((None, task, doc_id, text, None) for task, doc_id, text in first.iter_rows())


def _items(
    name: str, rows: Iterable[Row], max_characters: int, faults: list[Fault], notes: list[str]
) -> list[JudgeItem]:
    found: dict[tuple[str, str], JudgeItem] = {}
    lines: list[int] = []
    with_choices = repeated = 0
    for line, task, doc_id, question, choices in rows:
        key = as_text(task).strip(), as_text(doc_id).strip()
        for column, cell in zip(("task", "doc_id"), key, strict=True):
            if not cell:
                faults.append(Fault(name, "empty", line, column))
        if not all(key):
            continue
        try:
            text, listed = item_text(question, choices)
            no_text = isinstance(question, dict | list | pl.Series)
            item = JudgeItem(*key, text, NO_TEXT if no_text else problem_of(text, max_characters))
        except UnicodeDecodeError:
            listed, item = False, JudgeItem(*key, "", "the text is binary")
        earlier = found.setdefault(key, item)
        if earlier is item:
            lines.append(0 if line is None else line)
        else:
            repeated += 1
            if earlier.text != item.text:
                faults.append(Fault(name, f"({key[0]}, {key[1]}) was there before with another text", line, "doc_id"))
        with_choices += listed
    id_values(pl.Series("doc_id", [doc_id for _, doc_id in found], pl.String), name, lines, faults)
    if repeated:
        notes.append(f"{name}: {repeated} rows repeat an item and are read once.")
    if 0 < with_choices < len(found):
        notes.append(f"{name}: {len(found) - with_choices} of {len(found)} items have no choices.")
    return list(found.values())


def item_text(question: Any, choices: Any) -> tuple[str, bool]:
    """Return the question with its lettered choices below, and whether it has any.

    >>> print(item_text("Which is prime?", ["4", "7"])[0])
    Which is prime?
    A. 4
    B. 7
    """
    text = question.decode() if isinstance(question, bytes) else "" if question is None else str(question)
    listed = _choices(choices)
    letters = [chr(ord("A") + place) if place < 26 else str(place + 1) for place in range(len(listed))]
    return "\n".join([text, *(f"{letter}. {choice}" for letter, choice in zip(letters, listed, strict=True))]), bool(
        listed
    )


def _choices(cell: Any) -> list[str]:
    """Return a cell's choices: a list, ``{"text": [...]}``, JSON of either, or lines of text."""
    if isinstance(cell, str):
        try:
            return _choices(json.loads(cell)) if cell.lstrip()[:1] in ("[", "{") else cell.splitlines()
        except ValueError:
            return cell.splitlines()
    if isinstance(cell, dict):
        cell = cell.get("text")
    return [as_text(choice) for choice in cell] if isinstance(cell, list | tuple | pl.Series) else []


def problem_of(text: str, max_characters: int) -> str | None:
    """Return why a text cannot be judged, None where it can."""
    if not text.strip():
        return "the text is empty"
    if _NEVER.search(text) or len(_ODD.findall(text)) > MAX_ODD * len(text):
        return "the text is binary"
    if len(text) > max_characters:
        return f"the text has {len(text):,} characters, more than max_characters = {max_characters:,}"
    return None
