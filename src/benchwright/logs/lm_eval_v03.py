"""Per-item write-outs of lm-evaluation-harness v0.3: ``<task>_write_out_info.json``, a list with a record per item.

Every score is text. Scores that hold a pair (F1, MCC: prediction and truth) have no value for one item. The file names
no model: it is the folder's name, or that of the folder above where the folder is named after the task.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Any

from benchwright.logs.format import Format
from benchwright.logs.item_texts import ItemTexts
from benchwright.logs.lm_eval_results import direction_of, folder_name, number, step_of, whole_document
from benchwright.logs.log_file import Head, LogFile
from benchwright.logs.record import Run, Sink, Unit, text_hash
from benchwright.logs.source_file import utf8

BLOCK_ROWS = 20_000
_PART = re.compile(r"^(prompt|logit)_\d+$")
_START = re.compile(rb"^\s*\[\s*\{")
_TASK = re.compile(r"_write_out_info$|_writeout_info$")


def sniff(head: Head) -> bool:
    """Whether a file is a list of records with prompts, answers and the truth."""
    keys = head.keys()
    return bool(_START.match(head.content)) and {"doc_id", "prompt_0"} <= keys and bool({"logit_0", "truth"} & keys)


def read(unit: Unit, sink: Sink) -> None:
    """Read write-out files, one after the other."""
    for file in unit.files:
        _read_file(file, sink)


def _read_file(file: LogFile, sink: Sink) -> None:
    try:
        records = whole_document(file)
    except ValueError as error:
        sink.fault(file.name, f"{error}; no item of the file is used")
        return
    if not isinstance(records, list):
        sink.fault(file.name, "must hold a list of items")
        return
    stem = re.sub(r"(\.(json|gz|zst|zstd))+$", "", PurePosixPath(file.name).name, flags=re.IGNORECASE)
    task = _TASK.sub("", stem)
    model = _model(file, task)
    parent = PurePosixPath(file.name).parent.as_posix()
    run = Run(model=model, run=stem if parent == "." else parent, step=step_of(model))
    sink.note(f"{file.name} does not name its model; it is called {model} after its folder")
    block = _Block(file, run, task, sink)
    for place, record in enumerate(records, 1):
        block.add(place, record)
    block.finish()


def _model(file: LogFile, task: str) -> str:
    folder = folder_name(file)
    if folder == task:
        above = PurePosixPath(file.name).parent.parent.name
        folder = above if above else utf8(file.path.absolute().parent.parent.name) or folder
    return folder.replace("__", "/", 1)


class _Block:
    """Collects the rows of a file; "line" is the place in its list, from 1."""

    def __init__(self, file: LogFile, run: Run, task: str, sink: Sink) -> None:
        self._file, self._run, self._task, self._sink = file, run, task, sink
        self._without_value: dict[str, tuple[int, int, str]] = {}
        self._texts = ItemTexts(run, task, sink)
        self._start()

    def _start(self) -> None:
        names = ("doc_id", "item_hash", "metric", "value", "higher_is_better", "status", "line")
        self._rows: dict[str, list[Any]] = {name: [] for name in names}
        self._choices: dict[str, list[Any]] = {"doc_id": [], "gold": [], "logprob": []}

    def add(self, place: int, record: Any) -> None:
        """Add the scores of one item."""
        doc_id = record.get("doc_id") if isinstance(record, dict) else None
        if isinstance(doc_id, bool) or not isinstance(doc_id, (int, str)) or doc_id == "":
            reason = f"record {place} is no item with a `doc_id`; it is left out"
            self._sink.fault(self._file.name, reason, line=place, column="doc_id")
            return
        prompts = [text for name, text in record.items() if name.startswith("prompt_") and isinstance(text, str)]
        item_hash = text_hash(*prompts) if prompts else None
        for metric, value in record.items():
            if metric in {"doc_id", "truth"} or _PART.match(metric):
                continue
            found, status = number(value)
            if status == "unreadable":
                count, first, example = self._without_value.get(metric, (0, place, str(value)[:40]))
                self._without_value[metric] = (count + 1, first, example)
            row = (str(doc_id)[:400], item_hash, metric, found, direction_of(metric), status, place)
            for column, entry in zip(self._rows.values(), row, strict=True):
                column.append(entry)
        self._texts.add(str(doc_id)[:400], item_hash, prompts)
        self._add_choices(str(doc_id)[:400], record, prompts)
        if len(self._rows["line"]) >= BLOCK_ROWS:
            self._flush()

    def _add_choices(self, doc_id: str, record: dict[str, Any], prompts: list[str]) -> None:
        logits = [value for name, value in record.items() if name.startswith("logit_")]
        found = [number(value)[0] for value in logits]
        if len(found) < 2 or len(found) != len(prompts) or None in found:
            return
        truth = record.get("truth")
        ends = [i for i, text in enumerate(prompts) if isinstance(truth, str) and truth and text.endswith(truth)]
        self._choices["doc_id"].append(doc_id)
        self._choices["gold"].append(ends[0] if len(ends) == 1 else None)
        self._choices["logprob"].append(found)

    def _flush(self) -> None:
        if self._rows["line"]:
            self._sink.rows(self._run, {"task": self._task, "file": self._file.name, **self._rows})
        if self._choices["doc_id"]:
            self._sink.choices(self._run, {"task": self._task, **self._choices})
        self._texts.put()
        self._start()

    def finish(self) -> None:
        """Hand over what is left, and report the metrics without a value for one item."""
        self._flush()
        for metric, (count, first, example) in self._without_value.items():
            reason = (
                f"{count:,} record(s) from here on hold {example!r} under this metric, which is no number for one "
                "item; use another metric of the task for items"
            )
            self._sink.fault(self._file.name, reason, line=first, column=metric)


FORMAT = Format("lm-eval v0.3 write-out", sniff, read)
