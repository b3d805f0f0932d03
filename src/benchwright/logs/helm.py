"""HELM run folders: run_spec.json, per_instance_stats.json and stats.json complete each other.

HELM writes several entries for one instance and trial, one for each group of metrics; they are put together.
A statistic of one instance is a sum over ``count`` values, so its value is sum / count. Times, token counts and
other bookkeeping are among the statistics; they are no scores and are named in one note.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from benchwright.logs.format import Format
from benchwright.logs.item_texts import ItemTexts
from benchwright.logs.json_array import array_items
from benchwright.logs.log_file import Head, LogFile
from benchwright.logs.record import Run, Sink, Unit, text_hash
from benchwright.logs.score_values import direction, score_of, text_or_none, whole_or_none

BLOCK = 20_000
NO_SCORE = re.compile(
    r"^(num_|inference_|training_|finish_reason_|batch_size$|prompt_truncated$|predicted_index$|estimated_|.*_runtime$)"
)
# Arguments of a run name that say how the model was run, not what it was asked.
SETTINGS = {
    "chain_of_thought", "data_augmentation", "eval_split", "global_prefix", "groups", "increase_max_tokens",
    "increase_temperature", "instructions", "max_tokens", "max_train_instances", "method", "num_output_tokens",
    "num_outputs", "num_prompt_tokens", "num_threads", "num_train_trials", "num_trials", "output_format_instructions",
    "process_output", "prompt", "reasoning_effort", "stop", "temperature", "tokenizer", "use_chain_of_thought",
}  # fmt: skip
MODEL = {"model", "model_deployment"}
TOLERANCE = 1e-12

Label = tuple[str | None, str | None, str | None]  # split, sub-split, perturbation


def sniff(head: Head) -> bool:
    """Whether a file is one that HELM writes into a run folder."""
    return _kind(head) != ""


def read(unit: Unit, sink: Sink) -> None:
    """Put one run folder into the sink."""
    documents: dict[str, tuple[LogFile, Any]] = {}
    for file in unit.files:
        kind = _kind(Head(file.name, file.head()))
        if kind in ("", "other"):
            continue
        if kind in documents:
            sink.fault(file.name, f"is a second {kind} file of this run folder and is not read; keep one")
            continue
        try:
            documents[kind] = (file, None if kind == "instances" else file.document())
        except ValueError as error:
            sink.fault(file.name, f"{error}; bring the file again")
    if not documents.keys() & {"instances", "stats"}:
        if "spec" in documents:
            sink.fault(documents["spec"][0].name, "has no per_instance_stats.json or stats.json beside it: no scores")
        return
    folder = _Folder(unit, sink, documents)
    folder.read_spec()
    entries = folder.entries()
    means = folder.means()
    folder.put(entries, means)


@dataclass(slots=True)
class _Stat:
    """One statistic of one instance and trial, or of the task."""

    value: float | None
    status: str
    count: int
    line: int


@dataclass(slots=True)
class _Folder:
    unit: Unit
    sink: Sink
    documents: dict[str, tuple[LogFile, Any]]
    task: str = ""
    benchmark: str | None = None
    run: Run = field(default_factory=lambda: Run("", ""))
    most: int | None = None
    no_scores: set[str] = field(default_factory=set)

    def read_spec(self) -> None:
        """Find model, task and settings: in run_spec.json, else in the name of the folder."""
        folder = PurePosixPath(self.unit.folder or self.unit.files[0].path.absolute().parent.as_posix()).name
        file, spec = self.documents.get("spec", (None, None))
        spec = spec if isinstance(spec, dict) else {}
        adapter = spec.get("adapter_spec")
        adapter = adapter if isinstance(adapter, dict) else {}
        name = text_or_none(spec.get("name")) or folder
        scenario, arguments = split_name(name)
        model = text_or_none(adapter.get("model")) or text_or_none(adapter.get("model_deployment"))
        if model is None:
            model = dict(arguments).get("model") or dict(arguments).get("model_deployment") or folder
            where = self.unit.files[0].name if file is None else file.name
            self.sink.fault(where, f"no run_spec.json names the model; {model!r} is taken from the run's name")
        asked = spec.get("scenario_spec")
        asked = asked.get("args") if isinstance(asked, dict) else None
        asked = asked if isinstance(asked, dict) else {}
        kept: list[str] = []
        settings: list[str] = []
        for key, value in arguments:
            if key in MODEL:
                continue
            is_setting = key not in asked and (key in SETTINGS or key in adapter)
            (settings if is_setting else kept).append(f"{key}={value}" if value is not None else key)
        self.task = scenario + (":" + ",".join(kept) if kept else "")
        groups = spec.get("groups")
        if isinstance(groups, list) and groups:
            self.benchmark = text_or_none(groups[0])
        self.most = whole_or_none(adapter.get("max_eval_instances"))
        self.run = Run(model=model, run=name, setting=",".join(settings) or None)

    def entries(self) -> dict[tuple[str, int, Label, str], _Stat]:
        """Return the statistics of all instances, those of several entries put together."""
        found: dict[tuple[str, int, Label, str], _Stat] = {}
        if "instances" not in self.documents:
            return found
        file = self.documents["instances"][0]
        try:
            for line, entry in enumerate(array_items(file), start=1):
                self._add_entry(found, file, line, entry)
        except ValueError as error:
            self.sink.fault(file.name, f"{error}; none of it is used, bring the file again")
            return {}
        return found

    def _add_entry(self, found: dict[tuple[str, int, Label, str], _Stat], file: LogFile, line: int, entry: Any) -> None:
        doc_id = text_or_none(entry.get("instance_id")) if isinstance(entry, dict) else None
        if doc_id is None:
            self.sink.fault(file.name, "has no instance_id, so its scores belong to no item", line=line)
            return
        trial = whole_or_none(entry.get("train_trial_index", 0))
        stats = entry.get("stats")
        if trial is None or not isinstance(stats, list):
            column = "stats" if trial is not None else "train_trial_index"
            self.sink.fault(file.name, "is not what HELM writes there", line=line, column=column)
            return
        for metric, label, stat in self._stats(file, stats, line, entry.get("perturbation")):
            key = (doc_id, trial, label, metric)
            before = found.setdefault(key, stat)
            if before is not stat and not _same(before, stat):
                reason = f"instance {doc_id} has two values, {_shown(before)} and {_shown(stat)}; neither is used"
                self.sink.fault(file.name, reason, line=line, column=metric)
                found[key] = _Stat(None, "unreadable", 1, before.line)

    def means(self) -> dict[tuple[Label, str], _Stat]:
        """Return what stats.json states for the whole task."""
        found: dict[tuple[Label, str], _Stat] = {}
        if "stats" not in self.documents:
            return found
        file, document = self.documents["stats"]
        if not isinstance(document, list):
            self.sink.fault(file.name, "is no list of statistics")
            return found
        for line, item in enumerate(document, start=1):
            for metric, label, stat in self._stats(file, [item], line, None, keep="num_instances"):
                before = found.setdefault((label, metric), stat)
                if before is not stat and not _same(before, stat):
                    self.sink.fault(file.name, f"stands there twice, {_shown(before)} first", line=line, column=metric)
        return found

    def _stats(
        self, file: LogFile, stats: list[Any], line: int, perturbation: Any, keep: str = ""
    ) -> Iterator[tuple[str, Label, _Stat]]:
        for item in stats:
            name = item.get("name") if isinstance(item, dict) else None
            name = name if isinstance(name, dict) else {}
            metric = text_or_none(name.get("name"))
            if metric is None:
                self.sink.fault(file.name, "a statistic has no name", line=line, column="stats")
                continue
            if NO_SCORE.search(metric) and metric != keep:
                self.no_scores.add(metric)
                continue
            label = (
                text_or_none(name.get("split")),
                text_or_none(name.get("sub_split")),
                _perturbation(name.get("perturbation") or perturbation),
            )
            count = whole_or_none(item.get("count", 1))
            if count == 0:
                yield metric, label, _Stat(None, "unscored", 0, line)
                continue
            raw = item.get("mean")
            if raw is None and count is not None and count > 0:
                total, _ = score_of(item.get("sum"))
                raw = None if total is None else total / count
            value, status = score_of(raw)
            if count is None or count < 0:
                value, status = None, "unreadable"
            if status == "unreadable":
                self.sink.fault(file.name, "has a value that is no number", line=line, column=metric)
            yield metric, label, _Stat(value, status, count or 0, line)

    def put(self, entries: dict[tuple[str, int, Label, str], _Stat], means: dict[tuple[Label, str], _Stat]) -> None:
        """Put rows and scores into the sink; a split is part of the filter only where there are several."""
        labels = {key[2] for key in entries} | {key[0] for key in means}
        several = len({label[0] for label in labels}) > 1
        shared = {"task": self.task, "benchmark": self.benchmark}
        hashes = self._item_hashes() if entries else {}
        if entries:
            file = self.documents["instances"][0].name
            ordered = list(entries.items())
            for start in range(0, len(ordered), BLOCK):
                block = ordered[start : start + BLOCK]
                self.sink.rows(
                    self.run,
                    shared
                    | {
                        "doc_id": [key[0] for key, _ in block],
                        "item_hash": [hashes.get(key[0]) if key[2][2] is None else None for key, _ in block],
                        "repeat": [key[1] for key, _ in block],
                        "filter": [_filter(key[2], several) for key, _ in block],
                        "metric": [key[3] for key, _ in block],
                        "higher_is_better": [direction(key[3]) for key, _ in block],
                        "value": [stat.value for _, stat in block],
                        "status": [stat.status for _, stat in block],
                        "trials": [max(stat.count, 1) for _, stat in block],
                        "line": [stat.line for _, stat in block],
                        "file": file,
                    },
                )
        sizes = {key[0]: stat.value for key, stat in means.items() if key[1] == "num_instances"}
        scores = [item for item in means.items() if item[0][1] != "num_instances"]
        if scores:
            self.sink.scores(
                self.run,
                shared
                | {
                    "metric": [metric for (_, metric), _ in scores],
                    "filter": [_filter(label, several) for (label, _), _ in scores],
                    "value": [stat.value for _, stat in scores],
                    "n": [_size(sizes, label) for (label, _), _ in scores],
                    "higher_is_better": [direction(metric) for (_, metric), _ in scores],
                    "line": [stat.line for _, stat in scores],
                    "file": self.documents["stats"][0].name,
                },
            )
        self._notes(len({key[0] for key in entries}))

    def _notes(self, instances: int) -> None:
        if self.no_scores:
            named = ", ".join(sorted(self.no_scores))
            self.sink.note(f"HELM: times, counts and other bookkeeping are no scores and are left out: {named}")
        if self.most is not None and 0 < instances == self.most:
            self.sink.note(
                f"{self.run.run}: {instances} instances, the most it was allowed (max_eval_instances); "
                "the scenario may have more, compare its coverage with that of other models"
            )

    def _item_hashes(self) -> dict[str, str]:
        """Return the hash of each instance's text, where instances.json is there; put the texts where they are kept."""
        _, document = self.documents.get("texts", (None, None))
        hashes: dict[str, str] = {}
        texts = ItemTexts(self.run, self.task, self.sink)
        for item in document if isinstance(document, list) else ():
            if not isinstance(item, dict) or item.get("perturbation") is not None:
                continue
            doc_id, text = text_or_none(item.get("id")), _text(item)
            if doc_id is not None and text is not None:
                references = item.get("references")
                answers = [_text(one, "output") or "" for one in references] if isinstance(references, list) else []
                hashes[doc_id] = text_hash(text, *answers)
                texts.add(doc_id, hashes[doc_id], (text, *answers))
        texts.put()
        return hashes


def split_name(name: str) -> tuple[str, list[tuple[str, str | None]]]:
    """Split a run name into its scenario and its arguments; a comma without '=' belongs to the value before it.

    >>> split_name("mmlu:subject=law,model=a_b:free")
    ('mmlu', [('subject', 'law'), ('model', 'a_b:free')])
    """
    scenario, _, rest = name.partition(":")
    arguments: list[tuple[str, str | None]] = []
    for part in rest.split(",") if rest else ():
        key, equals, value = part.partition("=")
        if equals:
            arguments.append((key, value))
        elif arguments and arguments[-1][1] is not None:
            arguments[-1] = (arguments[-1][0], f"{arguments[-1][1]},{part}")
        else:
            arguments.append((part, None))
    return scenario, arguments


def _kind(head: Head) -> str:
    """Return which file of a run folder this is: spec, instances, stats, texts, other; "" for none."""
    keys = head.keys()
    if head.is_object:
        if {"adapter_spec", "scenario_spec"} <= keys:
            return "spec"
        if {"adapter_spec", "request_states"} <= keys:
            return "other"
        return "other" if {"name", "description", "tags", "definition_path"} <= keys else ""
    if not head.is_array:
        return ""
    if {"instance_id", "train_trial_index"} <= keys:
        return "other" if keys & {"predicted_text", "request"} or "stats" not in keys else "instances"
    if {"name", "count", "sum", "sum_squared"} <= keys:
        return "stats"
    return "texts" if {"input", "references", "split", "id"} <= keys else ""


def _perturbation(raw: Any) -> str | None:
    """Return a perturbation's name; with what it was computed on and its own arguments where it has such."""
    if not isinstance(raw, dict):
        return text_or_none(raw)
    name = text_or_none(raw.get("name")) or "perturbation"
    extra = []
    for key in sorted(key for key in raw if isinstance(key, str)):
        value = raw[key]
        is_default = key == "computed_on" and value in ("perturbed", None)
        if key in ("name", "robustness", "fairness") or is_default:
            continue
        shown = text_or_none(value)
        if shown is not None:
            extra.append(shown if key == "computed_on" else f"{text_or_none(key)}={shown}")
    return f"{name} ({', '.join(extra)})" if extra else name


def _filter(label: Label, several: bool) -> str | None:
    split, sub_split, perturbation = label
    parts = [split if several else None, sub_split, perturbation]
    return ", ".join(part for part in parts if part) or None


def _size(sizes: dict[Label, float | None], label: Label) -> int | None:
    size = sizes.get(label, sizes.get((label[0], label[1], None)))
    return whole_or_none(size)


def _same(a: _Stat, b: _Stat) -> bool:
    if a.value is None or b.value is None:
        return a.value is b.value and a.count == b.count
    return abs(a.value - b.value) <= TOLERANCE * max(1.0, abs(a.value)) and a.count == b.count


def _shown(stat: _Stat) -> str:
    return "none" if stat.value is None else f"{stat.value:g}"


def _text(item: Any, key: str = "input") -> str | None:
    inner = item.get(key) if isinstance(item, dict) else None
    text = inner.get("text") if isinstance(inner, dict) else inner
    return text if isinstance(text, str) else None


FORMAT = Format("HELM run folder", sniff, read, together=True)
