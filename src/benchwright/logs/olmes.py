"""OLMES (oe-eval) output folders: predictions, metrics, requests and recorded inputs of each task.

``task-000-<name>-metrics.json`` names model and task, ``-predictions.jsonl`` has one item a line,
``-requests.jsonl`` the texts (one line a choice; unconditional requests repeat the items with ids raised by
1,000,000 and are no items). They belong together by their hashes of task and model, else by their file names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from benchwright.logs.format import Format
from benchwright.logs.log_file import Head, LogFile, parse_json
from benchwright.logs.olmes_lines import (
    PREDICTION,
    UNCONDITIONAL,
    Prediction,
    decoded,
    item_hashes,
    on_fault,
    put_texts,
)
from benchwright.logs.olmes_rows import NO_SCORE, Block, metric_direction
from benchwright.logs.record import Run, Sink, Unit
from benchwright.logs.score_values import excerpt, score_of, text_or_none, whole_or_none

BLOCK = 20_000
_PART = re.compile(r"(^|-)(predictions|metrics|requests|recorded-inputs)\.jsonl?(\.gz|\.zst)?$")


@dataclass(slots=True)
class _Task:
    """What a metrics or configuration file says of one task and its run."""

    name: str
    file: str
    line: int | None
    stem: str
    document: dict[str, Any]
    run: Run | None
    benchmark: str | None
    version: str | None
    alias: str | None
    primary: str | None

    @property
    def hashes(self) -> tuple[str | None, str | None]:
        return text_or_none(self.document.get("task_hash")), text_or_none(self.document.get("model_hash"))


def sniff(head: Head) -> bool:
    """Whether a file is one of those that oe-eval writes."""
    return _kind(head) != ""


def read(unit: Unit, sink: Sink) -> None:
    """Put one output folder into the sink."""
    files: dict[str, list[LogFile]] = {}
    for file in unit.files:
        files.setdefault(_kind(Head(file.name, file.head())), []).append(file)
    tasks = list(_tasks(files, sink))
    tasks = _told_apart(tasks)
    for task in tasks:
        _put_scores(task, sink)
    hashes: dict[str, dict[str, str]] = {}
    requests = files.get("requests", []) + files.get("recorded", [])
    for file in requests:
        hashes.setdefault(_stem(file), {}).update(item_hashes(file, sink))
    read_for: set[str] = set()
    for file in files.get("predictions", []):
        stem = _stem(file)
        read_for.add(stem)
        read_as = _read_predictions(file, tasks, hashes.get(stem, {}), unit, sink)
        for request in requests:
            if read_as is not None and _stem(request) == stem:
                put_texts(request, hashes[stem], *read_as, sink)
    for stem, found in hashes.items():
        if stem not in read_for and found:
            where = f"{stem}: " if stem else f"{unit.folder}: " if unit.folder else ""
            sink.note(f"{where}item texts of {len(found):,} items, no model outputs")


def _tasks(files: dict[str, list[LogFile]], sink: Sink) -> Iterator[_Task]:
    seen: set[tuple[Any, ...]] = set()
    for file in files.get("metrics", []) + files.get("config", []):
        try:
            document = file.document()
        except ValueError as error:
            sink.fault(file.name, f"{error}; bring the file again")
            continue
        if isinstance(document, dict):
            task = _task(document, file, None)
            seen.add((task.name, *task.hashes))
            yield task
        else:
            sink.fault(file.name, "is no JSON object")
    for file in files.get("all", []):
        for line, content in file.lines(sink.options.max_line, on_fault(sink, file)):
            try:
                document = parse_json(content)
            except ValueError as error:
                sink.fault(file.name, str(error), line=line)
                continue
            if not isinstance(document, dict):
                sink.fault(file.name, "is no JSON object", line=line)
                continue
            task = _task(document, file, line)
            if (task.name, *task.hashes) not in seen:
                yield task


def _task(document: dict[str, Any], file: LogFile, line: int | None) -> _Task:
    config = document.get("task_config")
    config = config if isinstance(config, dict) else {}
    metadata = config.get("metadata")
    stem = _stem(file) if line is None else ""
    name = text_or_none(document.get("task_name")) or text_or_none(config.get("task_name"))
    core = text_or_none(config.get("task_core"))
    name = name or re.sub(r"^task-\d+-", "", stem) or core or file.name
    model = document.get("model_config")
    model = model if isinstance(model, dict) else {}
    run = None
    named = text_or_none(model.get("model")) or text_or_none(model.get("model_path"))
    count = whole_or_none(document.get("num_instances"))
    if named is not None:
        run = Run(
            model=named,
            run=text_or_none(document.get("current_date")) or text_or_none(document.get("model_hash")) or file.name,
            revision=text_or_none(model.get("revision")),
            created=_iso(text_or_none(document.get("current_date"))),
            limit=_is_limited(config.get("limit"), count),
        )
    return _Task(
        name=name,
        file=file.name,
        line=line,
        stem=stem,
        document=document,
        run=run,
        benchmark=core if core != name else None,
        version=text_or_none(config.get("version")),
        alias=text_or_none(metadata.get("alias")) if isinstance(metadata, dict) else None,
        primary=text_or_none(config.get("primary_metric")),
    )


def _is_limited(raw: Any, count: int | None) -> bool:
    """Whether a limit (a number of items below that of "no limit", or a share of them) was reached."""
    limit, _ = score_of(raw)
    return limit is not None and (0 < limit < 1 or (limit < UNCONDITIONAL and limit == count))


def _told_apart(tasks: list[_Task]) -> list[_Task]:
    """Where one folder has a task name with several configurations, call each by its alias."""
    hashes: dict[str, set[str | None]] = {}
    for task in tasks:
        hashes.setdefault(task.name, set()).add(task.hashes[0])
    for task in tasks:
        if len(hashes[task.name]) > 1:
            task.benchmark = task.benchmark or task.name
            task.name = task.alias or f"{task.name}#{task.hashes[0]}"
    return tasks


def _put_scores(task: _Task, sink: Sink) -> None:
    metrics = task.document.get("metrics")
    if metrics is None and task.run is None:
        return  # a configuration beside requests
    if task.run is None:
        reason = "has no model_config.model, so its scores belong to no model; add it"
        sink.fault(task.file, reason, line=task.line, column="model_config")
        return
    if not isinstance(metrics, dict):
        sink.fault(task.file, "has no task metrics", line=task.line, column="metrics")
        return
    names, values = [], []
    for raw_name, raw in metrics.items():
        name = text_or_none(raw_name)
        if name is None or NO_SCORE.search(name) or isinstance(raw, (dict, list)):
            continue
        value, status = score_of(raw)
        if status == "unreadable":
            sink.fault(task.file, f"{excerpt(raw)} is no number", line=task.line, column=name)
        names.append(name)
        values.append(value)
    if names:
        is_group = any(name.endswith(("_macro", "_micro")) for name in names)
        sink.scores(
            task.run,
            {
                "task": task.name,
                "benchmark": task.benchmark,
                "version": task.version,
                "metric": names,
                "value": values,
                "n": whole_or_none(task.document.get("num_instances")),
                "higher_is_better": [metric_direction(name, task.primary) for name in names],
                "is_group": is_group,
                "line": task.line,
                "file": task.file,
            },
        )


def _read_predictions(
    file: LogFile, tasks: list[_Task], hashes: dict[str, str], unit: Unit, sink: Sink
) -> tuple[Run, str] | None:
    """Put the predictions of one file into the sink; return the run and the task that they are of."""
    task: _Task | None = None
    run: Run | None = None
    block: Block | None = None
    shared: dict[str, Any] = {"task": "", "file": file.name}
    for line, content in file.lines(sink.options.max_line, on_fault(sink, file)):
        prediction = decoded(content, PREDICTION, Prediction, file, line, sink)
        if prediction is None:
            continue
        if run is None or block is None:
            task = _task_of(prediction, file, tasks)
            run = task.run if task is not None else None
            run = run or _unnamed(prediction, file, unit, sink)
            block = Block(file, hashes, task.primary if task is not None else None, sink)
            shared |= {
                "task": task.name if task is not None else re.sub(r"^task-\d+-", "", _stem(file)) or file.name,
                "benchmark": task.benchmark if task is not None else None,
                "version": task.version if task is not None else None,
            }
        block.add(prediction, line)
        if len(block) >= BLOCK:
            block.put(run, shared)
    if run is not None and block is not None:
        block.put(run, shared)
        if block.left_out:
            sink.note(f"{file.name}: no scores and left out: {', '.join(sorted(block.left_out))}")
    return None if run is None else (run, shared["task"])


def _task_of(prediction: Prediction, file: LogFile, tasks: list[_Task]) -> _Task | None:
    """Return the metrics file that a predictions file belongs to: by its hashes, else by its name."""
    hashes = text_or_none(prediction.task_hash), text_or_none(prediction.model_hash)
    if hashes[0] is not None:
        same = [task for task in tasks if task.hashes == hashes]
        if same:
            return next((task for task in same if task.stem == _stem(file)), same[0])
    return next((task for task in tasks if task.stem == _stem(file) and task.run is not None), None)


def _unnamed(prediction: Prediction, file: LogFile, unit: Unit, sink: Sink) -> Run:
    model = PurePosixPath(unit.folder).name or text_or_none(prediction.model_hash) or _stem(file) or file.name
    reason = f"no metrics file beside it names the model; it is called {model!r}. Put its -metrics.json beside it"
    sink.fault(file.name, reason, column="model_config")
    return Run(model=model, run=text_or_none(prediction.model_hash) or file.name)


def _stem(file: LogFile) -> str:
    """Return what the files of one task share in their names: task-000-<name>."""
    return _PART.sub("", PurePosixPath(file.name).name)


def _iso(date: str | None) -> str | None:
    match = re.fullmatch(r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)( UTC|Z)?", date or "")
    return f"{match[1]}T{match[2]}{'Z' if match[3] else ''}" if match else None


def _kind(head: Head) -> str:
    """Return which of the files this is: metrics, predictions, requests, recorded, config, all, other; "" for none."""
    if not head.is_object:
        return ""
    keys = head.keys()
    if {"doc_id", "metrics", "model_output"} <= keys:
        return "predictions"
    if {"request_type", "doc", "request", "doc_id", "idx"} <= keys:
        return "recorded" if "requests" in keys else "requests"
    if {"task_name", "task_config", "task_hash"} <= keys:
        if "metrics" not in keys:
            return "config"
        return "all" if ".jsonl" in PurePosixPath(head.name).name else "metrics"
    return "other" if "all_primary_scores" in keys else ""


FORMAT = Format("OLMES output", sniff, read, together=True)
