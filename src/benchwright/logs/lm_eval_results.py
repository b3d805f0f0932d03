"""Results files of lm-evaluation-harness v0.3 and v0.4: who was run, and which scores the file states.

v0.4 keys are ``metric,filter`` and ``metric_stderr,filter``; v0.3 keys are ``metric`` and ``metric_stderr``. A standard
error is never a score, "N/A" and ``[]`` are missing, an alias or a blank key is no score, and a group without a score
of its own gets none. The filter called "none" is stored as null; so is the revision "main", the harness's default.

The model is what ``config.model_args`` loads (text or mapping), then ``model_name``, then the folder. A path into a hub
cache (``.../models--org--name/snapshots/<commit>``) is read as org/name @ commit.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from math import isfinite
from pathlib import PurePosixPath
from typing import Any

from benchwright.logs.log_file import LogFile, parse_json
from benchwright.logs.record import Run, Sink
from benchwright.logs.source_file import utf8

STAMP = re.compile(r"_(\d{4}-\d{2}-\d{2}T\d{2}[-:]\d{2}[-:]\d{2}(?:\.\d+)?)$")
MISSING = {"", "n/a", "na", "none", "null"}
LOGLIKELIHOOD = {"perplexity", "ppl", "word_perplexity", "byte_perplexity", "bits_per_byte"}
_LOWER = LOGLIKELIHOOD | {"brier_score", "brier", "loss", "nll", "wer", "cer", "ter", "mse", "rmse", "mae"}
_HIGHER = {
    *("acc", "acc_norm", "acc_bytes", "acc_all", "acc_mutual_info", "accuracy", "exact_match", "em", "f1", "macro_f1"),
    *("mcc", "mc1", "mc2", "bleu", "chrf", "rouge1", "rouge2", "rougeL", "rougeLsum", "loglikelihood", "likelihood"),
}
_MODEL_ARGS = ("pretrained", "model", "model_name", "model_path", "path", "engine")
_OTHER_MODEL = ("peft", "delta", "lora_local_path", "gguf_file", "load_in_4bit", "load_in_8bit")
_HUB_CACHE = re.compile(r"(?:^|/)models--([^/]+)/snapshots/([0-9a-fA-F]{7,64})/?$")
_STEP = re.compile(r"(?:^|[-_/.])(?:global_?)?(?:step|checkpoint|ckpt)[-_]?(\d{1,15})(?=$|[-_/.])", re.IGNORECASE)
_SIZE = re.compile(r"(?<![0-9.a-z])\d+(?:\.\d+)?[mb](?![a-z0-9])", re.IGNORECASE)
_UNSAFE = re.compile(r"[\"<>:/|\\?*\[\]]+")
_SUFFIXES = re.compile(r"(\.(jsonl|json|gz|zst|zstd))+$", re.IGNORECASE)


def direction_of(metric: str) -> bool | None:
    """Return whether more is better for a metric with a known name, None where that is not certain.

    >>> [direction_of(metric) for metric in ("acc_norm", "word_perplexity", "pass@1", "pct_stereotype")]
    [True, False, True, None]
    """
    if metric in _LOWER:
        return False
    return True if metric in _HIGHER or metric.startswith("pass@") else None


def number(value: Any) -> tuple[float | None, str]:
    """Return a logged score and its status: text of a number or truth value is one, NaN and null are unscored.

    >>> number("-4.5"), number("True"), number("NaN"), number("('good', 'bad')")
    ((-4.5, 'scored'), (1.0, 'scored'), (None, 'unscored'), (None, 'unreadable'))
    """
    if value.__class__ is float:
        return (value, "scored") if isfinite(value) else (None, "unscored")
    if value is None:
        return None, "unscored"
    if isinstance(value, str):
        text = value.strip().lower()
        if text in MISSING:
            return None, "unscored"
        if text in {"true", "false"}:
            return float(text == "true"), "scored"
        if "_" in text or len(text) > 400:
            return None, "unreadable"
        value = text
    elif not isinstance(value, (bool, int, float)):
        return None, "unreadable"
    try:
        found = float(value)
    except (ValueError, OverflowError):
        return None, "unreadable"
    return (found, "scored") if isfinite(found) else (None, "unscored")


def name_parts(name: str) -> tuple[str, str | None]:
    """Split a file name into what stands before its last time stamp, and the time stamp.

    >>> name_parts("a/samples_toy_cot_2024-06_2025-01-02T03-04-05.jsonl")
    ('samples_toy_cot_2024-06', '2025-01-02T03-04-05')
    """
    stem = _SUFFIXES.sub("", PurePosixPath(name).name)
    found = STAMP.search(stem)
    return (stem[: found.start()], found.group(1)) if found else (stem, None)


def iso_time(stamp: str | None) -> str | None:
    """Turn the time stamp of a file name into ISO 8601."""
    if stamp is None:
        return None
    day, clock = stamp.split("T", 1)
    return f"{day}T{clock.replace('-', ':')}"


def folder_name(file: LogFile) -> str:
    """Return the name of the folder that holds a file; its real one where the given name has none."""
    parent = PurePosixPath(file.name).parent.name
    if not parent:
        try:
            parent = utf8(file.path.resolve().parent.name)
        except (OSError, RuntimeError):
            parent = ""
    return parent or "unknown"


def folder_model(file: LogFile) -> tuple[str, str | None]:
    """Return model and revision as the harness names a results folder: the last resort."""
    folder = folder_name(file)
    if folder.startswith("__"):  # a path
        return hub_name(folder.replace("__", "/"))
    return folder.replace("__", "/", 1), None


def hub_name(path: str) -> tuple[str, str | None]:
    """Turn a path into a hub cache into name and commit; leave every other name as it is.

    >>> hub_name("/c/models--org--name-7B/snapshots/0123abc"), hub_name("/ckpts/run3/step2000")
    (('org/name-7B', '0123abc'), ('/ckpts/run3/step2000', None))
    """
    found = _HUB_CACHE.search(path.replace("\\", "/"))
    return (found.group(1).replace("--", "/", 1), found.group(2)) if found else (path, None)


def arguments_of(value: Any) -> dict[str, str]:
    """Read ``model_args``, a mapping or text "key=value,key=value", where a value may itself hold commas."""
    if isinstance(value, Mapping):
        return {str(key): str(entry) for key, entry in value.items() if entry is not None}
    found: dict[str, str] = {}
    last = ""
    for part in value.split(",") if isinstance(value, str) else ():
        key, equals, entry = part.partition("=")
        if equals:
            last = key.strip()
            found[last] = entry.strip()
        elif last:
            found[last] += f",{part}"
    return found


def whole_document(file: LogFile) -> Any:
    """Return a file as JSON whose text can be written: half a surrogate pair becomes a question mark.

    Raises
    ------
    ValueError
        It is no JSON, is cut off, is not UTF-8, is nested too deeply, or is too large.
    """
    document = file.document()
    try:
        text = json.dumps(document, ensure_ascii=False)
        text.encode("utf-8")
    except UnicodeEncodeError:
        return parse_json(text.encode("utf-8", "replace"))
    except RecursionError:
        raise ValueError("is nested too deeply") from None
    return document


def mapping(value: Any) -> dict[str, Any]:
    """Return a JSON object, an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def step_of(*texts: str | None) -> int | None:
    """Return the training step that the first of the texts names."""
    for text in texts:
        if text is not None and (found := _STEP.search(text)):
            return int(found.group(1))
    return None


@dataclass(frozen=True, slots=True)
class Results:
    """What one results file says; ``tasks`` are its results as they stand."""

    file: LogFile
    stamp: str | None
    run: Run
    from_folder: bool  # the model's name is not in the file
    document: dict[str, Any]
    tasks: dict[str, Any]
    parents: dict[str, str] = field(default_factory=dict)

    def direction(self, task: str, metric: str) -> bool | None:
        """Return whether more is better: as stated, else as known by the metric's name."""
        stated = mapping(mapping(self.document.get("higher_is_better")).get(task)).get(metric)
        if isinstance(stated, bool):
            return stated
        listed = self.config(task).get("metric_list")
        for entry in listed if isinstance(listed, list) else ():
            if isinstance(entry, dict) and entry.get("metric") == metric:
                stated = entry.get("higher_is_better")
                if isinstance(stated, bool):
                    return stated
        return direction_of(metric)

    def config(self, task: str) -> dict[str, Any]:
        """Return the configuration of a task."""
        return mapping(mapping(self.document.get("configs")).get(task))

    def version(self, task: str) -> str | None:
        """Return the version of a task as text."""
        version = mapping(self.document.get("versions")).get(task)
        return str(version) if isinstance(version, (str, int, float)) else None

    def counts(self, task: str) -> tuple[int | None, int | None]:
        """Return how many items were run, and how many the task has."""
        stated = mapping(mapping(self.document.get("n-samples")).get(task))
        run = stated.get("effective", mapping(self.tasks.get(task)).get("sample_len"))
        return _count(run), _count(stated.get("original"))

    def filters(self, task: str) -> list[str]:
        """Return the filters of a task in the order of the file."""
        keys = [key.rpartition(",")[2] for key in mapping(self.tasks.get(task)) if "," in key]
        return list(dict.fromkeys(keys))

    def mean(self, task: str, metric: str, filter_: str) -> float | None:
        """Return the score that the file states, None where it states none."""
        return number(mapping(self.tasks.get(task)).get(f"{metric},{filter_}"))[0]

    def benchmark(self, task: str) -> str | None:
        """Return the topmost group that holds a task."""
        seen = {task}
        top = None
        while (above := self.parents.get(top if top is not None else task)) is not None and above not in seen:
            top = above
            seen.add(above)
        return top

    def is_group(self, task: str) -> bool:
        """Return whether a name is an aggregate over other tasks."""
        below = mapping(self.document.get("group_subtasks")).get(task)
        return bool(below) or task in mapping(self.document.get("groups"))


def _count(value: Any) -> int | None:
    found = number(value)[0]
    return int(found) if found is not None and 0 <= found < 2**53 and found == int(found) else None


def read_results(file: LogFile, sink: Sink, say: Callable[[str], None]) -> Results | None:
    """Read a results file, None (and a fault) where it cannot be used at all; ``say`` takes notes."""
    try:
        document = whole_document(file)
    except ValueError as error:
        sink.fault(file.name, f"{error}; no score of the file is used: run it again or bring the whole file")
        return None
    tasks = document.get("results") if isinstance(document, dict) else None
    if not isinstance(tasks, dict):
        sink.fault(file.name, "has no `results` by task, which a results file of lm-eval must have", column="results")
        return None
    parents: dict[str, str] = {}
    for group, below in mapping(document.get("group_subtasks")).items():
        for task in below if isinstance(below, list) else ():
            if isinstance(task, str) and task != group:
                parents.setdefault(task, group)
    groups = {name: scores for name, scores in mapping(document.get("groups")).items() if name not in tasks}
    stem, stamp = name_parts(file.name)
    model, revision, from_folder = _model(document, file, say)
    run = Run(
        model=model,
        run="/".join(part for part in (_parent(file), stamp if stamp is not None else stem) if part),
        revision=revision,
        step=_step(revision, model, stem, file, say),
        created=_created(document, stamp),
        limit=_limited(document),
        setting=_setting(document, file, say),
    )
    return Results(file, stamp, run, from_folder, document, tasks | groups, parents)


def _parent(file: LogFile) -> str:
    parent = PurePosixPath(file.name).parent.as_posix()
    return "" if parent == "." else parent


def _model(document: dict[str, Any], file: LogFile, say: Callable[[str], None]) -> tuple[str, str | None, bool]:
    config = mapping(document.get("config"))
    args = arguments_of(config.get("model_args"))
    stated = next((args[key] for key in _MODEL_ARGS if args.get(key)), None)
    if stated is None:
        name = document.get("model_name")
        stated = name if isinstance(name, str) and name else None
    if stated is None:
        model, revision = folder_model(file)
        say(f"folder {_parent(file)!r}: its results do not name their model; it is called {model} after the folder")
        return model, revision, True
    model, commit = hub_name(stated)
    revision = args.get("revision")
    if revision is None and isinstance(config.get("model_revision"), str):
        revision = config["model_revision"]
    revision = commit if revision in {None, "", "main"} else revision
    for key in _OTHER_MODEL:  # an adapter or a quantisation makes another model
        if key in args and args[key].lower() not in {"", "false", "none"}:
            model += f"+{key}={args[key]}"
    folder = folder_name(file)
    sizes = {size.lower() for size in _SIZE.findall(folder)}
    ours = {size.lower() for size in _SIZE.findall(stated)}
    if ("__" in folder and _UNSAFE.sub("__", stated) != folder) or (sizes and ours and not sizes & ours):
        say(f"folder {_parent(file)!r}: its results name another model than the folder, {stated}; the file is right")
    return model, revision, False


def _step(revision: str | None, model: str, stem: str, file: LogFile, say: Callable[[str], None]) -> int | None:
    stated, named = step_of(revision, model), step_of(stem)
    if stated is not None and named is not None and stated != named:
        say(f"{file.name}: the name says step {named}, the file itself step {stated}: the file is right")
    return stated if stated is not None else named


def _created(document: dict[str, Any], stamp: str | None) -> str | None:
    date = document.get("date")
    if isinstance(date, (int, float)) and not isinstance(date, bool) and 0 < date < 1e11:
        return datetime.fromtimestamp(date, UTC).isoformat()
    return date if isinstance(date, str) and re.match(r"\d{4}-\d{2}-\d{2}", date) else iso_time(stamp)


def _limited(document: dict[str, Any]) -> bool:
    counted = [mapping(entry) for entry in mapping(document.get("n-samples")).values()]
    pairs = [(_count(entry.get("effective")), _count(entry.get("original"))) for entry in counted]
    if any(run is not None and of is not None and run < of for run, of in pairs):
        return True
    whole = bool(pairs) and all(run is not None and run == of for run, of in pairs)
    return not whole and number(mapping(document.get("config")).get("limit"))[0] is not None


def _setting(document: dict[str, Any], file: LogFile, say: Callable[[str], None]) -> str | None:
    shots = {_count(shot) for shot in mapping(document.get("n-shot")).values()}
    if not shots:
        shots = {_count(mapping(document.get("config")).get("num_fewshot"))}
    named = re.search(r"(\d{1,3})[-_]?shot", PurePosixPath(file.name).name)
    if named and len(shots) == 1 and int(named.group(1)) not in shots:
        say(f"{file.name}: the name says {named.group()}, the file itself {next(iter(shots))}-shot: the file is right")
    parts = [f"{shot}-shot" for shot in shots if shot is not None] if len(shots) == 1 else []
    parts += [name.replace("_", " ") for name in ("chat_template", "system_instruction") if document.get(name)]
    return ", ".join(parts) if parts else None


def push_scores(results: Results, sink: Sink) -> None:
    """Put the scores of a results file into the sink."""
    names = ("task", "benchmark", "version", "metric", "filter", "value", "stderr", "n", "of", "higher_is_better")
    columns: dict[str, list[Any]] = {name: [] for name in (*names, "is_group")}
    file = results.file.name
    for task, scores in results.tasks.items():
        if not isinstance(scores, dict):
            sink.fault(file, f"has no scores for task {task} but {type(scores).__name__}", column=task)
            continue
        n, of = results.counts(task)
        for metric, filter_, value, stderr in _scores(scores):
            if metric == "bypass":
                sink.note(f"{file}: task {task} was run without a metric (`bypass`)")
                continue
            found, status = number(value)
            if status == "unreadable":
                sink.fault(file, f"a score must be a number, got {str(value)[:60]!r}", column=f"{task}: {metric}")
            row = (task, results.benchmark(task), results.version(task), metric, filter_, found, number(stderr)[0])
            rest = (n, of, results.direction(task, metric), results.is_group(task))
            for name, entry in zip(columns, (*row, *rest), strict=True):
                columns[name].append(entry)
    if columns["task"]:
        sink.scores(results.run, {**columns, "file": file})


def _scores(scores: dict[str, Any]) -> list[tuple[str, str | None, Any, Any]]:
    """List (metric, filter, value, standard error) of one task."""
    if any("," in key for key in scores):  # v0.4; a key without a filter is an alias, a name, a length
        found = []
        for key, value in scores.items():
            metric, comma, filter_ = key.rpartition(",")
            if comma and metric.strip() and not _is_stderr(metric, scores, f",{filter_}"):
                stderr = scores.get(f"{metric}_stderr,{filter_}")
                found.append((metric, None if filter_ == "none" else filter_, value, stderr))
        return found
    return [
        (key, None, value, scores.get(f"{key}_stderr"))
        for key, value in scores.items()
        if key.strip() and key not in {"alias", "name", "sample_len"} and not _is_stderr(key, scores, "")
    ]


def _is_stderr(metric: str, scores: dict[str, Any], end: str) -> bool:
    return metric.endswith("_stderr") and f"{metric.removesuffix('_stderr')}{end}" in scores
