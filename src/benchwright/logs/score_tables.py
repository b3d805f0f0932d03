"""Published scores in JSON: task-score tables, trajectories of fine-tuning, and tables that are refused by name.

* Score table: ``{condition: {task: {model: value}}}``, or models and tasks the other way round, with a standard
  error under ``<condition>_stderr``. Models are the level whose names hold a ``/`` (organisation/name). Metrics are
  not named there; the few that a task's name tells are (:data:`METRICS_OF_TASKS`), the others are ``score``.
* Fine-tuning trajectory: ``{"run_info", "train_info": {"metrics": [...]}}``, one record per evaluation. The
  accuracies of validation and test are two metrics; the record of the test set is no repeat of its step.
"""

from __future__ import annotations

import re
from typing import Any

from benchwright.logs.format import Format
from benchwright.logs.log_file import Head, LogFile
from benchwright.logs.record import Run, Sink, Unit
from benchwright.logs.table_cells import as_number, as_text
from benchwright.logs.table_columns import higher_is_better, layout
from benchwright.logs.table_file import sniff_table
from benchwright.logs.table_rows import REFUSALS, Faults
from benchwright.logs.tabular import shown

# Condition of a tune-before-test table -> what the run is called, and its dose where that is certain.
CONDITIONS: dict[str, float | None] = {"direct_eval": 0.0, "train_before_test": None}
# Task names that tell their metric for certain.
METRICS_OF_TASKS = {"cola": "mcc", "glue_cola": "mcc"}
_CORPUS = re.compile(r"(arxiv|wiki|wikipedia|stackexchange)_\d{4}")  # text newer than the models: bits per byte
_TABLE = re.compile(
    rb'\s*\{\s*"([^"]{1,200})"\s*:\s*\{\s*"[^"]{1,300}"\s*:\s*\{\s*"[^"]{1,300}"\s*:\s*(-?\d|"N/A"|null|NaN)'
)
_NOT_CONDITIONS = (b"results", b"groups", b"configs", b"config", b"versions", b"metrics", b"scores", b"n-shot")
_ACCURACY = re.compile(r"(valid|validation|test|eval)[ _]accuracy")


def sniff_scores(head: Head) -> bool:
    """Whether a head shows numbers three levels deep, under no key of an evaluation log."""
    found = _TABLE.match(head.content)
    return found is not None and found[1] not in _NOT_CONDITIONS


def read_scores(unit: Unit, sink: Sink) -> None:
    """Read score tables."""
    for file in unit.files:
        faults = Faults(sink, file.name)
        content = _document(file, faults)
        if content is not None:
            _read_conditions(file, content, sink, faults)
        faults.close()


def _document(file: LogFile, faults: Faults) -> dict[str, Any] | None:
    try:
        content = file.document()
    except ValueError as error:
        faults.add(None, None, str(error))
        return None
    if not isinstance(content, dict):
        faults.add(None, None, "is no JSON object")
        return None
    return content


def _read_conditions(file: LogFile, content: dict[str, Any], sink: Sink, faults: Faults) -> None:
    for condition, table in content.items():
        if condition.endswith("_stderr") and condition.removesuffix("_stderr") in content:
            continue
        if not isinstance(table, dict):
            faults.add(None, condition, "holds no scores")
            continue
        inner = dict.fromkeys(name for cells in table.values() if isinstance(cells, dict) for name in cells)
        outside, inside = _share_of_models(table), _share_of_models(inner)
        if (outside > 0.5) == (inside > 0.5):
            reason = "cannot tell models from tasks; write models as organisation/name, or make it a table"
            faults.add(None, condition, reason)
            continue
        stderrs = content.get(f"{condition}_stderr")
        stderrs = stderrs if isinstance(stderrs, dict) else {}
        by_model: dict[str, dict[str, tuple[Any, Any]]] = {name: {} for name in (table if outside > 0.5 else inner)}
        for outer, cells in table.items():
            if not isinstance(cells, dict):
                faults.add(None, condition, f"`{shown(outer)}` holds no scores")
                continue
            spread = stderrs.get(outer)
            spread = spread if isinstance(spread, dict) else {}
            for name, value in cells.items():
                model, task = (outer, name) if outside > 0.5 else (name, outer)
                by_model[model][task] = (value, spread.get(name))
        tasks = dict.fromkeys(task for cells in by_model.values() for task in cells)
        missing = sum(_push(file, condition, model, cells, sink, faults) for model, cells in by_model.items())
        missing += len(by_model) * len(tasks) - sum(map(len, by_model.values()))
        if missing:
            of = len(by_model) * len(tasks)
            sink.note(f"{file.name}: {shown(condition)}: {missing:,} of {of:,} cells are missing, not 0")
    sink.note(f"{file.name}: metrics are not named; `mcc` for CoLA, `bits_per_byte` for corpora, else `score`")


def _share_of_models(names: Any) -> float:
    return sum("/" in name for name in names) / max(1, len(names))


def _push(
    file: LogFile, condition: str, model: str, cells: dict[str, tuple[Any, Any]], sink: Sink, faults: Faults
) -> int:
    """Put the scores of one model under one condition into the sink; return how many are missing."""
    tasks, metrics, values, stderrs = [], [], [], []
    missing = 0
    for task, (stated, spread) in cells.items():
        try:
            value = as_number(stated)
        except ValueError:
            faults.add(None, condition, f"{shown(task)}, {shown(model)}: `{shown(as_text(stated))}` is no number")
            continue
        if value is None:
            missing += 1
            continue
        try:
            error = as_number(spread)
        except ValueError:
            faults.add(None, f"{condition}_stderr", f"{shown(task)}, {shown(model)}: is no number")
            error = None
        tasks.append(as_text(task))
        metrics.append(_metric(task))
        values.append(value)
        stderrs.append(error)
    known = condition in CONDITIONS
    said = as_text(condition)
    run = Run(as_text(model), said, axis="TbT" if known else None, dose=CONDITIONS.get(condition), setting=said)
    columns = {
        "task": tasks,
        "metric": metrics,
        "value": values,
        "stderr": stderrs,
        "higher_is_better": [higher_is_better(metric) for metric in metrics],
        "file": file.name,
    }
    if tasks:
        sink.scores(run, columns)
    return missing


def _metric(task: str) -> str:
    name = task.casefold()
    return "bits_per_byte" if _CORPUS.fullmatch(name) else METRICS_OF_TASKS.get(name, "score")


def sniff_trajectory(head: Head) -> bool:
    """Whether a head shows a fine-tuning result with its evaluations."""
    return head.is_object and {"run_info", "experiment_name", "train_config"} <= head.keys()


def read_trajectories(unit: Unit, sink: Sink) -> None:
    """Read fine-tuning results: one run per step, named after its experiment."""
    for file in unit.files:
        faults = Faults(sink, file.name)
        content = _document(file, faults)
        if content is not None:
            _read_trajectory(file, content, sink, faults)
        faults.close()


def _read_trajectory(file: LogFile, content: dict[str, Any], sink: Sink, faults: Faults) -> None:
    info, training = _inner(content, "run_info"), _inner(content, "train_info")
    config, sets = _inner(info, "train_config"), _inner(_inner(content, "meta_info"), "dataset_info")
    model, records = as_text(info.get("experiment_name")), training.get("metrics")
    if not model:
        faults.add(None, "run_info.experiment_name", "names no experiment")
        return
    if not isinstance(records, list) or not records:
        faults.add(None, "train_info.metrics", "holds no evaluations")
        return
    finished = training.get("status", "success") == "success"
    task = "gsm8k" if "gsm8k" in sets or not sets else "+".join(map(as_text, sets))
    version = as_text(_inner(sets, task).get("sha")) or None
    created = info.get("created_at")
    for number, record in enumerate(records, start=1):
        found = (
            {key: value for key, value in record.items() if _ACCURACY.fullmatch(key)}
            if isinstance(record, dict)
            else {}
        )
        if not found:
            faults.add(number, "train_info.metrics", "the record holds no accuracy")
            continue
        step, dose, seed = (
            _number(cell) for cell in (record.get("step"), record.get("train samples"), config.get("seed"))
        )
        run = Run(
            model,
            as_text(config.get("model_id")) or model,
            seed=None if seed is None else int(seed),
            step=None if step is None else int(step),
            axis=None if dose is None else "SFT",
            dose=dose,
            dose_unit=None if dose is None else "example",
            created=as_text(created) if isinstance(created, str) else None,
            finished=finished,
        )
        for metric, cell in found.items():
            value = _number(cell)
            if value is None:
                faults.add(number, metric, f"`{shown(as_text(cell))}` is no score")
                continue
            columns = {"task": task, "version": version, "metric": metric, "value": [value], "higher_is_better": True}
            sink.scores(run, columns | {"line": number, "file": file.name})


def _inner(content: dict[str, Any], key: str) -> dict[str, Any]:
    found = content.get(key)
    return found if isinstance(found, dict) else {}


def _number(cell: Any) -> float | None:
    try:
        value = as_number(cell)
    except ValueError:
        return None
    return value if value is None or abs(value) < 2**53 else None


def _sniffs(kind: str) -> Any:
    def sniff(head: Head) -> bool:
        found = sniff_table(head)
        return found is not None and found[0] == "delimited" and layout(found[1], found[2]) == kind

    return sniff


def _read_described(unit: Unit, sink: Sink) -> None:
    """Pass over tables that describe models or items."""
    for file in unit.files:
        found = sniff_table(Head(file.name, file.head()))
        kind = None if found is None else layout(found[1], found[2])
        sink.note(f"{file.name}: {REFUSALS.get(kind or '', 'holds no results')}; passed over")


def _read_refused(kind: str) -> Any:
    def read(unit: Unit, sink: Sink) -> None:
        for file in unit.files:
            sink.fault(file.name, REFUSALS[kind])

    return read


FORMATS = (
    Format("score table", sniff_scores, read_scores),
    Format("fine-tuning trajectory", sniff_trajectory, read_trajectories),
    Format("paired summary", _sniffs("pairs"), _read_refused("pairs"), refused=REFUSALS["pairs"]),
    Format("predictions", _sniffs("predictions"), _read_refused("predictions"), refused=REFUSALS["predictions"]),
    Format("model metadata", _sniffs("metadata"), _read_described),
    Format("fitted parameters", _sniffs("statistics"), _read_described),
)
