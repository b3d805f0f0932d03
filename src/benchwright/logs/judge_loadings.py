"""A judge's loadings: per item and framing the activities it resembles, ranked, one JSON object a line."""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from benchwright.errors import DataError, Fault, UsageError
from benchwright.logs.source_file import read_source
from benchwright.logs.tabular import id_values, shown

PERSPECTIVES = ("automation", "augmentation")
BOTH = "both"  # one list for either framing
PATTERN = "judge_loadings*.jsonl"


def read_loadings(path: str | Path, activities: Iterable[str] | None = None) -> pl.DataFrame:
    """Read one judge's loadings: task, doc_id, perspective, activities (ranked ids).

    Parameters
    ----------
    path
        The file, or a folder with one ``judge_loadings*.jsonl``.
    activities
        Ids that may be named; any where None.

    Raises
    ------
    UsageError
        No such file, or a folder with none or several.
    DataError
        The file has faults; all of them are listed.
    """
    faults: list[Fault] = []
    files = loadings_files(path)
    if len(files) > 1:
        names = ", ".join(file.name for file in files)
        raise UsageError(f"loadings {path}: several judges, {names}", hint="name one of the files")
    file = files[0]
    source = read_source(file, faults)
    if source is not None:
        known = None if activities is None else frozenset(activities)
        frame = parse_loadings(file.name, source[0], known, faults, [])
        if not faults:
            return frame
    raise DataError(f"{file}: {len(faults)} fault(s) in a judge's loadings", faults=faults)


def loadings_files(path: str | Path) -> tuple[Path, ...]:
    """Return the files that name judges' loadings: the path itself, or all ``judge_loadings*.jsonl`` of the folder."""
    file = Path(path)
    found = tuple(sorted(file.glob(PATTERN))) if file.is_dir() else (file,)
    if not found or not found[0].is_file():
        what = f"the folder holds no {PATTERN}" if file.is_dir() else "there is no such file"
        raise UsageError(f"loadings {file}: {what}", hint="name the file that a judge wrote, one JSON object a line")
    return found


def parse_loadings(
    file: str, content: bytes, known: frozenset[str] | None, faults: list[Fault], notes: list[str]
) -> pl.DataFrame:
    """Return one judge's ranked activities from a file that holds one JSON object a line.

    Returns task, doc_id, perspective, activities (ranked ids, all of them ``known`` where that is not None).
    Appends what is wrong to ``faults``, and to ``notes`` how many rows the judge itself marked as failed.
    """
    rows: list[tuple[str, str, str, list[str]]] = []
    lines: list[int] = []
    failed = 0
    for number, line in enumerate(content.removeprefix(codecs.BOM_UTF8).split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            record = json_object(line)
            if record.get("ok") is False:
                failed += 1
                continue
            task, doc_id, perspective, ranked = loading(record, known)
            for framing in PERSPECTIVES if perspective == BOTH else (perspective,):
                rows.append((task, doc_id, framing, ranked))
                lines.append(number)
        except LoadingError as error:
            faults.append(Fault(file, str(error), line=number, column=error.column))
        except RecursionError:
            faults.append(Fault(file, "is nested too deeply", line=number))
    if failed:
        notes.append(f"{file}: {failed} rows are marked as failed by the judge and are not used.")
    schema: dict[str, Any] = {
        "task": pl.String,
        "doc_id": pl.String,
        "perspective": pl.String,
        "activities": pl.List(pl.String),
    }
    frame = pl.DataFrame(rows, schema=schema, orient="row")
    if frame.height == 0:
        faults.append(Fault(file, "holds no usable row"))
        return frame
    seen: dict[tuple[str, ...], int] = {}
    for key, line_number in zip(frame.select("task", "doc_id", "perspective").iter_rows(), lines, strict=True):
        if key in seen:
            faults.append(
                Fault(
                    file,
                    f"({', '.join(map(shown, key))}) was already judged on line {seen[key]}; keep one",
                    line=line_number,
                    column="doc_id",
                )
            )
        seen.setdefault(key, line_number)
    return frame.with_columns(id_values(frame["doc_id"], file, lines, faults))


class LoadingError(ValueError):
    """A judge's row that cannot be used, and the field at fault."""

    def __init__(self, column: str | None, reason: str) -> None:
        self.column = column
        super().__init__(reason)


def json_object(line: bytes) -> dict[str, Any]:
    """Return the object that a line holds, or raise what is wrong with it."""
    try:
        record = json.loads(line.decode())
    except UnicodeDecodeError as error:
        raise LoadingError(None, f"byte 0x{line[error.start]:02x} is not UTF-8 text") from None
    except json.JSONDecodeError as error:
        raise LoadingError(None, f"is not JSON: {error.msg} at character {error.pos + 1}") from None
    except ValueError as error:  # a number of thousands of digits
        raise LoadingError(None, f"is not JSON that can be read: {error}") from None
    if not isinstance(record, dict):
        raise LoadingError(None, f"must be a JSON object {{...}}, got {shown(record)}")
    return record


def loading(record: Mapping[str, Any], known: frozenset[str] | None) -> tuple[str, str, str, list[str]]:
    """Return task, doc_id, perspective and ranked ids of a judge's record, or raise what is wrong with it."""
    field_name = "task" if "task" in record else "lm_eval_task"
    task = record.get(field_name)
    if not isinstance(task, str) or not task.strip():
        raise LoadingError(field_name, f"must be the task's name, got {shown(repr(task))}")
    doc_id = record.get("doc_id")
    if not isinstance(doc_id, (str, int)) or isinstance(doc_id, bool) or not str(doc_id).strip():
        raise LoadingError("doc_id", f"must be a whole number or text, got {shown(repr(doc_id))}")
    perspective = record.get("perspective")
    if perspective not in (*PERSPECTIVES, BOTH):
        allowed = ", ".join((*PERSPECTIVES, BOTH))
        raise LoadingError("perspective", f"must be one of {allowed}, got {shown(repr(perspective))}")
    ranked = record.get("ranked_gwa_ids")
    if not isinstance(ranked, list) or not all(isinstance(name, str) for name in ranked):
        raise LoadingError("ranked_gwa_ids", f"must be a list of activity ids, got {shown(repr(ranked))}")
    for name in ranked:
        if known is not None and name not in known:
            raise LoadingError("ranked_gwa_ids", f"`{shown(name)}` is no activity of the table of values")
    if len(set(ranked)) < len(ranked):
        raise LoadingError("ranked_gwa_ids", "an activity is ranked twice")
    for column, value in ((field_name, task), ("doc_id", str(doc_id))):
        if any("\ud800" <= char <= "\udfff" for char in value):
            raise LoadingError(column, f"holds half a character (a lone surrogate): {shown(repr(value))}")
    return task.strip(), str(doc_id).strip(), perspective, ranked
