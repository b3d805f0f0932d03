"""Lists of resolved items (SWE-bench style): which items a system solved, scored on a list of all items.

A list of solved items says nothing of the items that nobody solved, so the items come from an item list
(``instances.json`` in the same folder or one above it) or from a report that lists every item of its own total.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from benchwright.logs.format import Format
from benchwright.logs.log_file import Head, LogFile, parse_json
from benchwright.logs.record import MemorySink, Run, Sink, Unit, text_hash
from benchwright.logs.score_values import text_or_none, whole_or_none

RESOLVED = ("resolved", "resolved_ids")
NOT_RESOLVED = (
    "unresolved", "unresolved_ids", "no_generation", "empty_patch", "empty_patch_ids", "no_apply", "test_timeout",
)  # fmt: skip
FAILED = (
    "error", "error_ids", "no_logs", "infra_failure_ids", "ambiguous_failure_ids", "install_fail", "reset_failed",
    "test_errored",
)  # fmt: skip
NOT_RUN = ("incomplete_ids",)
EXPLICIT = ("unresolved", "unresolved_ids")  # where these are there, an item in no list was not run
ITEM_LISTS = ("instances", "instance_ids", "items", "item_ids", "ids", "all_ids", "tasks")
_RESULT = re.compile(rb'"resolved(_ids)?"\s*:\s*\[')
_STRINGS = re.compile(rb'\s*\[\s*["\]]')
_SUFFIX = re.compile(r"\.jsonl?(\.gz|\.zst)?$")
_NAME = re.compile(r"^ {0,4}name:\s*(.+?)\s*$", re.MULTILINE)
PARENTS = 3
SHOWN = 5


@dataclass(frozen=True, slots=True)
class _Items:
    """The items of a benchmark: id to hash of its text, where the list has one; and what the list belongs to."""

    hashes: dict[str, str | None]
    task: str


def sniff(head: Head) -> bool:
    """Whether a file is a list of solved items or a list of all items."""
    return _kind(head) != ""


def read(unit: Unit, sink: Sink) -> None:
    """Put the results of one folder into the sink."""
    kinds = [(file, _kind(Head(file.name, file.head()))) for file in unit.files]
    lists = [file for file, kind in kinds if kind == "items"]
    results = [file for file, kind in kinds if kind == "result"]
    items: _Items | None = None
    for file in lists:
        items = items or _read_items(file, sink)
        if items is not None and not results:
            sink.note(f"{file.name}: a list of {len(items.hashes):,} items, which results below it are scored on")
    if items is None and results:
        items = _items_above(results[0], sink)
    for file in results:
        _read_result(file, items, len(results), sink)


def _kind(head: Head) -> str:
    if head.is_object and _RESULT.search(head.content):
        return "result"
    if _stem(head.name) not in ITEM_LISTS or not (head.is_object or head.is_array):
        return ""
    keys = head.keys()
    return "items" if "instance_id" in keys or _STRINGS.match(head.content) is not None else ""


def _read_result(file: LogFile, items: _Items | None, results: int, sink: Sink) -> None:
    try:
        document = file.document()
    except ValueError as error:
        sink.fault(file.name, f"{error}; bring the file again")
        return
    if not isinstance(document, dict):
        sink.fault(file.name, "is no JSON object")
        return
    lists = {name: _ids(document, name, file, sink) for name in (*RESOLVED, *NOT_RESOLVED, *FAILED, *NOT_RUN)}
    found = {name: ids for name, ids in lists.items() if ids is not None}
    if not any(name in found for name in RESOLVED):
        sink.fault(file.name, "has no list of resolved items")
        return
    named: dict[str, str | None] = {one: None for ids in found.values() for one in ids}
    for extra in ("submitted_ids", "completed_ids", "generated", "with_logs", "applied"):
        named |= dict.fromkeys(_ids(document, extra, file, sink) or ())
    if items is None:
        total = whole_or_none(document.get("total_instances"))
        if total is None or total != len(named):
            sink.fault(
                file.name,
                f"names {len(named)} items and nothing says what all items are, so no share solved can be known; "
                "put instances.json (a list of all item ids) into this folder or the one above",
            )
            return
        items = _Items(named, _task(file))
    unknown = [one for one in named if one not in items.hashes]
    if unknown:
        shown = ", ".join(unknown[:SHOWN]) + (", ..." if len(unknown) > SHOWN else "")
        sink.fault(file.name, f"names {len(unknown)} items that are not in the item list and are not used: {shown}")
    _put(file, items, found, _run(file, document, results), sink)


def _put(file: LogFile, items: _Items, found: dict[str, list[str]], run: Run, sink: Sink) -> None:
    groups = [_union(found, names) for names in (RESOLVED, NOT_RESOLVED, FAILED, NOT_RUN)]
    resolved, unresolved, failed, not_run = groups
    is_explicit = any(name in found for name in EXPLICIT)
    values: list[float | None] = []
    statuses: list[str] = []
    absent = 0
    for one in items.hashes:
        value, status = 0.0, "scored"
        if one in resolved and (one in unresolved or one in failed or one in not_run):
            sink.fault(file.name, f"item {one} is both resolved and not; it has no value", column="resolved")
            status = "unreadable"
        elif one in resolved:
            value = 1.0
        elif one in failed:
            status = "error"
        elif one in not_run or (is_explicit and one not in unresolved):
            status, absent = "unscored", absent + 1
        values.append(value if status == "scored" else None)
        statuses.append(status)
    if absent:
        sink.note(f"{file.name}: {absent} of {len(values)} items were not run; they have no value")
    if not values:
        sink.fault(file.name, "the item list is empty")
        return
    sink.rows(
        run,
        {
            "task": items.task,
            "doc_id": list(items.hashes),
            "item_hash": list(items.hashes.values()),
            "metric": "resolved",
            "value": values,
            "status": statuses,
            "higher_is_better": True,
            "file": file.name,
        },
    )


def _union(found: dict[str, list[str]], names: Iterable[str]) -> set[str]:
    return {one for name in names for one in found.get(name, ())}


def _ids(document: dict[str, Any], name: str, file: LogFile, sink: Sink) -> list[str] | None:
    """Return a list of ids; None where there is none; what is no id is a fault."""
    raw = document.get(name)
    if not isinstance(raw, list):
        return None
    ids = []
    for position, one in enumerate(raw, start=1):
        text = text_or_none(one)
        if text is None:
            sink.fault(file.name, f"entry {position} is no item id", column=name)
        else:
            ids.append(text)
    return ids


def _read_items(file: LogFile, sink: Sink) -> _Items | None:
    """Read a list of ids, or of records with an instance_id, as one JSON document or one record a line."""
    records: Iterable[Any]
    try:
        if _SUFFIX.sub("", file.path.name) != file.path.name and ".jsonl" in file.path.name:
            faults = lambda line, reason: sink.fault(file.name, reason, line=line)  # noqa: E731
            records = [parse_json(line) for _, line in file.lines(sink.options.max_line, faults)]
        else:
            records = file.document()
    except ValueError as error:
        sink.fault(file.name, f"{error}; bring the file again")
        return None
    if not isinstance(records, list):
        sink.fault(file.name, "is no list of item ids")
        return None
    hashes: dict[str, str | None] = {}
    for position, record in enumerate(records, start=1):
        raw = record.get("instance_id") if isinstance(record, dict) else record
        one = text_or_none(raw)
        if one is None:
            sink.fault(file.name, "is no item id", line=position, column="instance_id")
        elif one in hashes:
            sink.fault(file.name, f"item {one} stands there twice and counts once", line=position)
        else:
            text = record.get("problem_statement") if isinstance(record, dict) else None
            hashes[one] = text_hash(text) if isinstance(text, str) else None
    return _Items(hashes, _folder_name(file.path.absolute().parent)) if hashes else None


def _items_above(file: LogFile, sink: Sink) -> _Items | None:
    """Look for an item list in the folder of a result and in those above it."""
    folder = file.path.absolute().parent
    name = PurePosixPath(file.name).parent
    for up in range(min(PARENTS, len(name.parts) + 1) + 1):
        for stem in ITEM_LISTS[:4]:
            for suffix in (".json", ".jsonl"):
                path = folder / f"{stem}{suffix}"
                if not path.is_file():
                    continue
                found = LogFile(path, "/".join([".."] * up + [path.name]))
                if _kind(Head(path.name, found.head())) != "items":
                    continue
                is_unit = up <= len(name.parts)  # then its own faults are reported where it is read itself
                items = _read_items(found, MemorySink(sink.options) if is_unit else sink)
                if items is not None:
                    return items
        folder = folder.parent
    return None


def _run(file: LogFile, document: dict[str, Any], results: int) -> Run:
    """Name the model: in the file, else metadata.yaml beside it, else the file's own name or that of its folder."""
    stem = _stem(file.name)
    folder = _model_folder(file)
    named = next((text_or_none(document.get(key)) for key in ("model_name_or_path", "model") if key in document), None)
    if named is None and results == 1:
        named = _metadata_name(folder)
    if named is not None:
        return Run(model=named, run=file.name)
    if stem in ("results", "result", "report") and results == 1:
        return Run(model=_folder_name(folder), run=file.name)
    model, dot, run = stem.rpartition(".")
    is_report = "total_instances" in document or "submitted_ids" in document
    return Run(model=model, run=run) if dot and is_report else Run(model=stem, run=file.name)


def _metadata_name(folder: Path) -> str | None:
    try:
        with (folder / "metadata.yaml").open(encoding="utf-8", errors="replace") as file:
            match = _NAME.search(file.read(64 * 1024))
    except OSError:
        return None
    return text_or_none(match[1].strip("\"'")) if match else None


def _model_folder(file: LogFile) -> Path:
    folder = file.path.absolute().parent
    return folder.parent if folder.name == "results" else folder


def _task(file: LogFile) -> str:
    is_own = _stem(file.name) in ("results", "result", "report")
    folder = _model_folder(file)
    return _folder_name(folder.parent if is_own else folder)


def _folder_name(folder: Path) -> str:
    return text_or_none(folder.name) or "resolved"


def _stem(name: str) -> str:
    return _SUFFIX.sub("", PurePosixPath(name).name)


FORMAT = Format("resolved lists", sniff, read, together=True, looks_around=True)
