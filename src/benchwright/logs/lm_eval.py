"""Logs of lm-evaluation-harness v0.3 and v0.4: the samples and results files of one folder.

A samples file belongs to the results file with its time stamp; the task is the one that the record or the results
file names, and only then what the file name says. Samples without a results file are read all the same. A results
document may hold the samples itself (``samples`` by task).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import msgspec

from benchwright.logs.format import Format
from benchwright.logs.lm_eval_results import (
    Results,
    folder_model,
    iso_time,
    mapping,
    name_parts,
    push_scores,
    read_results,
    step_of,
    whole_document,
)
from benchwright.logs.lm_eval_samples import SampleReader
from benchwright.logs.log_file import Head, LogFile, parse_json
from benchwright.logs.record import Run, Sink, Unit

_TOKEN = re.compile(rb'"((?:[^"\\]|\\.)*)"(\s*:)?|[{}\[\]]')
_RESULTS_KEYS = {"versions", "configs", "config", "n-shot", "n-samples", "higher_is_better", "group_subtasks", "groups"}
_OTHERS = {"config_general", "eval", "plan", "status", "mteb_version", "run_spec"}
_FIRST_RECORDS = 5


def top_keys(content: bytes) -> set[str]:
    """Return the keys of the outermost object that the first bytes show; in a list, of its first object.

    >>> sorted(top_keys(b'{"a": {"b": [1, "c"]}, "d": "e", "f"')), top_keys(b'[{"a": {"b": 1}}, {"c": 1}]')
    (['a', 'd'], {'a'})
    """
    content = content.lstrip().removeprefix(b"[")
    depth = 0
    keys = set()
    for token in _TOKEN.finditer(content):
        first = token.group()[:1]
        if first in b"{[":
            depth += 1
        elif first in b"}]":
            depth -= 1
            if depth <= 0:
                break
        elif depth == 1 and token.group(2) is not None:
            keys.add(token.group(1).decode("utf-8", "replace"))
    return keys


def is_samples(head: Head) -> bool:
    """Whether a file starts with a sample record: an item's number and the model's answers to it."""
    if not (head.is_object or head.is_array):
        return False
    keys = top_keys(head.content)
    if "doc_id" not in keys or "native_id" in keys:
        return False
    if "filtered_resps" in keys or "resps" in keys:
        return True
    cut = head.is_object and b"\n" not in head.content.strip()  # the first record is longer than what is seen of it
    return cut and "doc" in keys


def is_results(head: Head) -> bool:
    """Whether a file is a results file: scores by task, with versions or a configuration."""
    if not head.is_object:
        return False
    keys = top_keys(head.content)
    if "results" not in keys or keys & _OTHERS:
        return False
    scores = b"_stderr" in head.content or b',none"' in head.content
    return bool(keys & _RESULTS_KEYS) or (keys == {"results"} and scores)


def sniff(head: Head) -> bool:
    """Whether a file is one of either kind."""
    return is_samples(head) or is_results(head)


def read(unit: Unit, sink: Sink) -> None:
    """Read all samples and results files of one folder."""
    said: set[str] = set()

    def say(text: str) -> None:
        if text not in said:
            said.add(text)
            sink.note(text)

    results: list[Results] = []
    samples: list[LogFile] = []
    for file in unit.files:
        head = Head(file.name, file.head())
        if is_samples(head):
            samples.append(file)
        elif (found := read_results(file, sink, say)) is not None:
            results.append(found)
            push_scores(found, sink)
            _read_embedded(found, sink)
    for file in samples:
        _read_samples(file, results, sink, say)


def _read_embedded(results: Results, sink: Sink) -> None:
    """Read samples that stand in the results document; their "line" is their place in the task's list, from 1."""
    for task, listed in mapping(results.document.pop("samples", None)).items():
        if isinstance(listed, list):
            SampleReader(results.file, partial(_listed, listed), results.run, task, results, sink).read()
        else:
            sink.fault(results.file.name, f"has no list of samples for task {task}", column="samples")


def _listed(listed: list[Any], on_fault: Callable[[int, str], None]) -> Iterator[tuple[int, bytes]]:
    for place, record in enumerate(listed):
        try:
            yield place + 1, msgspec.json.encode(record)
        except (ValueError, OverflowError, TypeError, RecursionError) as error:
            on_fault(place + 1, f"cannot be read as a sample: {error}")


def _lines(file: LogFile, max_line: int, on_fault: Callable[[int, str], None]) -> Iterator[tuple[int, bytes]]:
    return file.lines(max_line, on_fault)


def _read_samples(file: LogFile, results: list[Results], sink: Sink, say: Callable[[str], None]) -> None:
    records = partial(_lines, file, sink.options.max_line)
    if Head(file.name, file.head()).is_array:  # v0.4.0 wrote a list, whatever the file is called
        try:
            records = partial(_listed, whole_document(file))
        except ValueError as error:
            sink.fault(file.name, f"{error}; no sample of the file is used: run it again or bring the whole file")
            return
    stem, stamp = name_parts(file.name)
    own, run = _run(file, stem, stamp, results, say)
    task = _task(_task_name(records), stem, own)
    if stem.startswith("samples_") and task != stem.removeprefix("samples_"):
        say(f"{file.name} holds samples of {task}, as its records or its results file say")
    SampleReader(file, records, run, task, own, sink).read()


def _run(
    file: LogFile, stem: str, stamp: str | None, results: list[Results], say: Callable[[str], None]
) -> tuple[Results | None, Run]:
    """Return the results file that a samples file belongs to, and its run."""
    same = [found for found in results if found.stamp == stamp]
    if stamp is None and not same and len(results) == 1:
        same = results
    if len(same) == 1:
        return same[0], same[0].run
    parent = file.name.rpartition("/")[0]
    folder = f"folder {parent!r}" if parent else "the folder of the logs"
    named = {(found.run.model, found.run.revision, found.run.step) for found in results}
    if len(named) == 1 and not any(found.from_folder for found in results):
        model, revision, step = next(iter(named))
        say(f"{folder}: samples without a results file get the model of the folder's others, {model}")
    else:
        model, revision = folder_model(file)
        step = step_of(revision, model, stem)
        say(f"{folder}: samples have no results file; their model is called {model} after the folder")
    name = "/".join(part for part in (parent, stamp if stamp is not None else stem) if part)
    return None, Run(model=model, run=name, revision=revision, step=step, created=iso_time(stamp))


def _task_name(records: Callable[[Callable[[int, str], None]], Iterator[tuple[int, bytes]]]) -> str | None:
    """Return the task that the first records name themselves."""
    for count, (_, text) in enumerate(records(lambda line, reason: None)):
        try:
            record = parse_json(text)
        except ValueError:
            record = None
        if isinstance(record, dict) and isinstance(record.get("task_name"), str) and record["task_name"]:
            return str(record["task_name"])
        if count + 1 >= _FIRST_RECORDS:
            break
    return None


def _task(recorded: str | None, stem: str, own: Results | None) -> str:
    named = stem.removeprefix("samples_") if stem != "samples_" else stem
    known = [] if own is None else list({**mapping(own.document.get("configs")), **own.tasks})
    known = [task for task in known if own is not None and not own.is_group(task)]
    if recorded is not None:
        return recorded
    if named in known:
        return named
    ending = [task for task in known if stem.endswith(f"_{task}") or _safe(task) == named]
    if ending:
        return max(ending, key=len)
    if len(known) == 1 and not stem.startswith("samples_"):
        return known[0]
    return named


def _safe(task: str) -> str:
    return re.sub(r'["<>:/|\\?*\[\]]+', "_", task)


FORMATS = (Format("lm-eval samples and results", sniff, read, together=True),)
