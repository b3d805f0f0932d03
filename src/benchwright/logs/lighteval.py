"""lighteval: results_<time>.json with task scores, details_<task>_<time>.parquet with one sample a row.

Results lie in ``results/<model>/``, details in ``details/<model>/<time>/``; the results file of the same time
names the model of the details.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from benchwright.logs.format import Format
from benchwright.logs.lighteval_details import read_details
from benchwright.logs.log_file import Head, LogFile
from benchwright.logs.record import Run, Sink, Unit
from benchwright.logs.score_values import direction, excerpt, score_of, text_or_none, whole_or_none

TIME = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d)[-:](\d\d)[-:](\d\d(?:\.\d+)?)")
PARENTS = 4


def sniff(head: Head) -> bool:
    """Whether a file is a results file, or by its name a Parquet file of details (their columns stand at the end)."""
    if head.content[:4] == b"PAR1":
        return PurePosixPath(head.name).name.startswith("details_")
    keys = head.keys() if head.is_object else set()
    return "config_general" in keys


def read(unit: Unit, sink: Sink) -> None:
    """Put the results or details of one folder into the sink."""
    details = [file for file in unit.files if file.head()[:4] == b"PAR1"]
    for file in unit.files:
        if file not in details:
            _read_results(file, sink)
    shots: dict[str, set[str | None]] = {}
    for file in details:
        name, shot = split_task(_details_task(file))
        shots.setdefault(name, set()).add(shot)
    runs: dict[str, Run] = {}
    for file in details:
        name, shot = split_task(_details_task(file))
        time = _time(file.name)
        if time not in runs:
            runs[time] = _details_run(file, time, sink)
        read_details(file, name, benchmark_of(name), _with_shots(runs[time], shots[name], shot), sink)


def split_task(key: str) -> tuple[str, str | None]:
    """Return task and number of shots of a key like suite|task|shots|truncate.

    >>> split_task("leaderboard|mmlu:law|5|0"), split_task("gsm8k|0"), split_task("all")
    (('mmlu:law', '5'), ('gsm8k', '0'), ('all', None))
    """
    parts = key.split("|")
    if len(parts) == 1:
        return key, None
    if len(parts) == 2:
        return (parts[0], parts[1]) if parts[1].isdecimal() else (parts[1], None)
    return parts[1], parts[2]


def benchmark_of(task: str) -> str | None:
    """Return what a task is a part of, None where it stands alone."""
    head, colon, _ = task.partition(":")
    return head if colon else None


def _read_results(file: LogFile, sink: Sink) -> None:
    try:
        document = file.document()
    except ValueError as error:
        sink.fault(file.name, f"{error}; bring the file again")
        return
    results = document.get("results") if isinstance(document, dict) else None
    if not isinstance(results, dict):
        sink.fault(file.name, "has no results", column="results")
        return
    run = _run(document, file, _time(file.name))
    if run is None:
        sink.fault(file.name, "names no model; add config_general.model_name", column="config_general.model_name")
        return
    shots: dict[str, set[str | None]] = {}
    for key in results:
        name, shot = split_task(text_or_none(key) or "?")
        shots.setdefault(name, set()).add(shot)
    for key, metrics in results.items():
        name, shot = split_task(text_or_none(key) or "?")
        if not isinstance(metrics, dict):
            sink.fault(file.name, "is no set of scores", column=f"results.{name}")
            continue
        rows = list(_task_scores(file, name, metrics, sink))
        config = _task_config(document, key)
        directions = _directions(config)
        if rows:
            versions = document.get("versions")
            sink.scores(
                _with_shots(run, shots[name], shot),
                {
                    "task": name,
                    "benchmark": benchmark_of(name),
                    "version": text_or_none(versions.get(key)) if isinstance(versions, dict) else None,
                    "metric": [metric for metric, _, _ in rows],
                    "value": [value for _, value, _ in rows],
                    "stderr": [error for _, _, error in rows],
                    "n": whole_or_none(config.get("effective_num_docs")),
                    "of": whole_or_none(config.get("original_num_docs")),
                    "higher_is_better": [directions.get(metric, direction(metric)) for metric, _, _ in rows],
                    "is_group": name == "all" or name.endswith(":_average"),
                    "file": file.name,
                },
            )


def _task_scores(
    file: LogFile, task: str, metrics: dict[str, Any], sink: Sink
) -> Iterator[tuple[str, float | None, float | None]]:
    for raw_name, raw in metrics.items():
        name = text_or_none(raw_name)
        if name is None or (raw_name.endswith("_stderr") and raw_name.removesuffix("_stderr") in metrics):
            continue
        value, status = score_of(raw)
        if status == "unreadable":
            sink.fault(file.name, f"{excerpt(raw)} is no number", column=f"{task}.{name}")
        yield name, value, score_of(metrics.get(f"{raw_name}_stderr"))[0]


def _task_config(document: dict[str, Any], key: str) -> dict[str, Any]:
    """Return the configuration of a task; it is kept under the key without the shots."""
    configs = document.get("config_tasks")
    if not isinstance(configs, dict):
        return {}
    parts = key.split("|")
    for candidate in (key, "|".join(parts[:2]), "|".join(parts[:3]), parts[0]):
        if isinstance(configs.get(candidate), dict):
            config: dict[str, Any] = configs[candidate]
            return config
    return {}


def _directions(config: dict[str, Any]) -> dict[str, bool | None]:
    metrics = config.get("metric", config.get("metrics"))
    found: dict[str, bool | None] = {}
    for metric in metrics if isinstance(metrics, list) else ():
        if not isinstance(metric, dict):
            continue
        name, higher = metric.get("metric_name"), metric.get("higher_is_better")
        if isinstance(name, str) and isinstance(higher, bool):
            found[name] = higher
        if isinstance(higher, dict):
            found |= {one: is_higher for one, is_higher in higher.items() if isinstance(is_higher, bool)}
    return found


def _run(document: dict[str, Any], file: LogFile, time: str) -> Run | None:
    general = document.get("config_general")
    general = general if isinstance(general, dict) else {}
    config = general.get("model_config")
    config = config if isinstance(config, dict) else {}
    model = text_or_none(general.get("model_name")) or text_or_none(config.get("model_name"))
    if model is None:
        return None
    limit = whole_or_none(general.get("max_samples"))
    return Run(
        model=model,
        run=time or file.name,
        revision=text_or_none(general.get("model_sha")) or text_or_none(config.get("revision")),
        created=_iso(time),
        limit=limit is not None and limit > 0,
    )


def _details_run(file: LogFile, time: str, sink: Sink) -> Run:
    """Return the run of a details file: from the results file of the same time, else from its folders."""
    folder = file.path.absolute().parent
    beside = "" if not time else f"results_{_file_time(file.name)}.json"
    for results in _results_of(folder, beside):
        found = LogFile(results, results.name)
        try:
            document = found.document()
        except ValueError:
            continue
        run = _run(document, found, time) if isinstance(document, dict) else None
        if run is not None:
            return run
    parts = list(folder.parts)
    if parts and TIME.fullmatch(parts[-1]):
        parts.pop()
    parts = parts[len(parts) - parts[::-1].index("details") :] if "details" in parts else parts[-1:]
    model = text_or_none("/".join(parts).removeprefix("details_").replace("__", "/", 1)) or file.name
    sink.note(f"{file.name}: no {beside or 'results file'} names the model; it is called {model!r} after its folder")
    return Run(model=model, run=time or file.name, created=_iso(time))


def _results_of(folder: Path, beside: str) -> Iterator[Path]:
    """Yield where the results file of a details folder may be: under results/ in place of details/, or above."""
    if not beside:
        return
    parts = folder.parts
    if "details" in parts:
        at = len(parts) - 1 - parts[::-1].index("details")
        inside = parts[at + 1 : -1] if TIME.fullmatch(parts[-1]) else parts[at + 1 :]
        candidate = Path(*parts[:at], "results", *inside, beside)
        if candidate.is_file():
            yield candidate
    for _ in range(PARENTS):
        if (folder / beside).is_file():
            yield folder / beside
        folder = folder.parent


def _with_shots(run: Run, shots: set[str | None], shot: str | None) -> Run:
    """Tell runs apart by their shots where one task was run with several."""
    if len(shots) < 2 or shot is None:
        return run
    return Run(run.model, run.run, revision=run.revision, created=run.created, limit=run.limit, setting=f"{shot}-shot")


def _details_task(file: LogFile) -> str:
    name = PurePosixPath(file.name).name.removeprefix("details_")
    name = re.sub(r"\.parquet.*$", "", name)
    return TIME.sub("", name).strip("_") or name


def _file_time(name: str) -> str:
    match = TIME.search(PurePosixPath(name).name) or TIME.search(name)
    return match[0] if match else ""


def _time(name: str) -> str:
    return _file_time(name).replace(":", "-")


def _iso(time: str) -> str | None:
    match = TIME.fullmatch(time)
    return f"{match[1]}T{match[2]}:{match[3]}:{match[4]}" if match else None


FORMAT = Format("lighteval", sniff, read, together=True, looks_around=True)
