"""MTEB results: one JSON file a task with scores per split and language subset, model_meta.json beside them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from benchwright.logs.format import Format
from benchwright.logs.log_file import Head, LogFile
from benchwright.logs.record import Run, Sink, Unit
from benchwright.logs.score_values import direction, excerpt, score_of, text_or_none

META = {"loader", "n_parameters", "open_weights", "release_date", "similarity_fn_name", "embed_dim", "framework"}
NO_SCORE = {"hf_subset", "languages", "evaluation_time", "kg_co2_emissions"}
HISTORIC = {"dataset_revision", "mteb_dataset_name", "mteb_version", "task_name", "evaluation_time", "kg_co2_emissions"}
_REVISION = re.compile(r"[0-9a-f]{7,40}|no_revision_available|external|main|v?\d+(\.\d+)*")
_SUBSET = re.compile(r"default|[a-z]{2,3}([-_][A-Za-z-]+)?")
_NESTED = {"dot", "max", "min", "map", "mrr", "ndcg", "cos_sim", "euclidean", "manhattan", "ap", "f1"}

Scores = Iterator[tuple[str, str, str, float | None]]  # split, subset, metric, value


def sniff(head: Head) -> bool:
    """Whether a file is one task's results or the description of the model."""
    return _kind(head) != ""


def read(unit: Unit, sink: Sink) -> None:
    """Put the task scores of one folder into the sink."""
    results: list[tuple[LogFile, dict[str, Any]]] = []
    meta: dict[str, Any] = {}
    for file in unit.files:
        kind = _kind(Head(file.name, file.head()))
        try:
            document = file.document()
        except ValueError as error:
            sink.fault(file.name, f"{error}; bring the file again")
            continue
        if not isinstance(document, dict):
            sink.fault(file.name, "is no JSON object")
        elif kind == "meta":
            meta = document
        else:
            results.append((file, document))
    if not results:
        return
    run = _run(results[0][0], meta, sink)
    if run is None:
        return
    versions = {text_or_none(document.get("mteb_version")) for _, document in results} - {None}
    if len(versions) > 1:
        named = ", ".join(sorted(str(version) for version in versions))
        sink.note(f"{unit.folder or run.model}: results of several MTEB versions ({named}) need not be comparable")
    for file, document in results:
        _put(file, document, run, sink)


def _kind(head: Head) -> str:
    if not head.is_object:
        return ""
    keys = head.keys()
    if {"mteb_version", "dataset_revision"} <= keys and keys & {"scores", "mteb_dataset_name"}:
        return "result"
    if {"task_name", "dataset_revision", "scores", "main_score"} <= keys:
        return "result"
    return "meta" if {"name", "revision"} <= keys and len(META & keys) >= 2 else ""


def _run(file: LogFile, meta: dict[str, Any], sink: Sink) -> Run | None:
    """Name model and revision: model_meta.json, else the folders <model>/<revision>."""
    *_, above, folder = ("", "", *file.path.absolute().parent.parts)
    is_revision = _REVISION.fullmatch(folder) is not None
    model = text_or_none(meta.get("name"))
    revision = text_or_none(meta.get("revision")) or (text_or_none(folder) if is_revision else None)
    if model is None:
        model = text_or_none((above if is_revision else folder).replace("__", "/", 1))
        if model is None:
            sink.fault(file.name, "no model_meta.json and no folder names the model; put model_meta.json beside it")
            return None
        sink.note(f"{file.name}: no model_meta.json beside it; the model is called {model!r} after its folder")
    revision = None if revision == "no_revision_available" else revision
    return Run(model=model, run=file.name.rpartition("/")[0] or model, revision=revision)


def _put(file: LogFile, document: dict[str, Any], run: Run, sink: Sink) -> None:
    task = text_or_none(document.get("task_name")) or text_or_none(document.get("mteb_dataset_name"))
    if task is None:
        sink.fault(file.name, "has no task_name", column="task_name")
        return
    scores = list(_scores(file, document, sink) if "scores" in document else _historic(file, document, sink))
    if not scores:
        sink.fault(file.name, "has no scores", column="scores")
        return
    sink.scores(
        run,
        {
            "task": task,
            "version": text_or_none(document.get("dataset_revision")),
            "metric": [metric for _, _, metric, _ in scores],
            "filter": [split if subset == "default" else f"{split}/{subset}" for split, subset, _, _ in scores],
            "value": [value for _, _, _, value in scores],
            "higher_is_better": [direction(metric) for _, _, metric, _ in scores],
            "file": file.name,
        },
    )


def _scores(file: LogFile, document: dict[str, Any], sink: Sink) -> Scores:
    splits = document["scores"]
    for raw_split, subsets in splits.items() if isinstance(splits, dict) else ():
        split = text_or_none(raw_split) or "?"
        if not isinstance(subsets, list):
            sink.fault(file.name, "is no list of subsets", column=f"scores.{split}")
            continue
        for position, entry in enumerate(subsets):
            if not isinstance(entry, dict):
                sink.fault(file.name, "is no set of scores", column=f"scores.{split}[{position}]")
                continue
            subset = text_or_none(entry.get("hf_subset")) or "default"
            yield from _metrics(file, entry, split, subset, "", sink)


def _historic(file: LogFile, document: dict[str, Any], sink: Sink) -> Scores:
    """Results of MTEB before 1.11: splits at the top, then subsets or metrics."""
    for raw_split, entry in document.items():
        split = text_or_none(raw_split)
        if split is None or raw_split in HISTORIC or not isinstance(entry, dict):
            continue
        subsets = {
            key: value
            for key, value in entry.items()
            if isinstance(value, dict) and _SUBSET.fullmatch(key) and key not in _NESTED
        }
        for key, value in subsets.items():
            yield from _metrics(file, value, split, text_or_none(key) or "?", "", sink)
        own = {key: value for key, value in entry.items() if key not in subsets}
        yield from _metrics(file, own, split, "default", "", sink)


def _metrics(
    file: LogFile, entry: dict[str, Any], split: str, subset: str, prefix: str, sink: Sink, depth: int = 0
) -> Scores:
    for raw_name, raw in entry.items():
        name = text_or_none(raw_name)
        if name is None or raw_name in NO_SCORE or isinstance(raw, list):
            continue  # lists hold what a score is a mean of (scores_per_experiment)
        if isinstance(raw, dict):
            if depth < 3:
                yield from _metrics(file, raw, split, subset, f"{prefix}{name}_", sink, depth + 1)
            continue
        value, status = score_of(raw)
        if status == "unreadable":
            sink.fault(file.name, f"{excerpt(raw)} is no number", column=f"{split}/{subset}/{prefix}{name}")
            continue
        yield split, subset, f"{prefix}{name}", value


FORMAT = Format("MTEB results", sniff, read, together=True, looks_around=True)
