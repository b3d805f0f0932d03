"""Inspect AI logs, ``.eval`` archives and ``.json`` documents, without inspect-ai.

A row is a sample x epoch x scorer; a scorer whose value is a dictionary gives one row per key (``scorer.key``). An
archive is read sample by sample and only the fields needed are decoded; summaries are compared, not trusted. Grades
count as in Inspect (C 1, I 0, P 0.5, N 0); null and NaN are unscored, not 0. Logs of one task id are retries of one
run: they share :attr:`Run.run` and differ in :attr:`Run.created` and :attr:`Run.finished`.

What a log states for a scorer's accuracy (or mean) goes under the scorer's own name, so that it can be compared with
the rows; every other aggregate is called ``scorer/aggregate``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from benchwright.logs.format import Format
from benchwright.logs.inspect_decode import (
    Log,
    Sample,
    content_of,
    decode_log,
    decode_sample,
    decode_summaries,
    is_listing,
    listed,
)
from benchwright.logs.inspect_rows import Facts, SampleRows
from benchwright.logs.inspect_values import clean, count, grade, number, text
from benchwright.logs.inspect_zip import Archive, ArchiveError, open_archive, shown
from benchwright.logs.log_file import Head, LogFile
from benchwright.logs.record import Run, Sink, Unit

KNOWN_VERSION = 3
ZIP = b"PK\x03\x04"
EMPTY_ZIP = b"PK\x05\x06"
_EVAL_OBJECT = re.compile(rb'"eval"\s*:\s*\{')
_SAMPLE_NAME = re.compile(r"samples/(.+)_epoch_(\d{1,9})\.json", re.DOTALL)
_MEANS = ("accuracy", "mean")


def sniff(head: Head) -> bool:
    """Whether this is an Inspect log: an archive with its members, or a JSON document with its keys in any order."""
    content = head.content
    if content.startswith(ZIP):
        return b"_journal/" in content or b"_epoch_" in content or b"header.json" in content or _named_eval(head)
    if head.is_object:
        keys = head.keys()
        if _EVAL_OBJECT.search(content) and ("status" in keys or "version" in keys):
            return bool(keys & {"task", "model", "task_id", "run_id", "plan", "samples"})
        return {"samples", "epoch", "input", "target"} <= keys and bool(keys & {"scores", "score", "messages"})
    return _named_eval(head) and not head.is_array


def _named_eval(head: Head) -> bool:
    return head.name.lower().removesuffix(".gz").removesuffix(".zst").endswith(".eval")


def read(unit: Unit, sink: Sink) -> None:
    """Read every log of the unit; what cannot be read is a fault, and the rest goes on."""
    for file in unit.files:
        start = file.head()[:64].lstrip()
        if start.startswith(b"{"):
            _read_document(file, sink)
        else:
            try:
                with open_archive(file) as archive:
                    _read_archive(archive, file, sink)
            except ArchiveError as error:
                sink.fault(file.name, str(error))


def _read_document(file: LogFile, sink: Sink) -> None:
    try:
        content = content_of(file)
        log = decode_log(content)
    except ValueError as error:
        sink.fault(file.name, str(error))
        return
    if log.eval is None and is_listing(content):
        sink.note(f"{file.name}: a list of other logs, passed over")
        return
    facts = _facts(log, file, sink)
    if facts is None:
        return
    samples = listed(log.samples)
    if samples is None:
        sink.fault(file.name, "`samples` is no list", column="samples")
    rows = SampleRows(facts, file.name, sink)
    for position, entry in enumerate(samples or (), 1):
        try:
            sample = decode_sample(entry)
        except ValueError as error:
            sink.fault(file.name, f"sample {position} {error}", line=position, column="samples")
            continue
        rows.add(sample.id, sample.epoch, sample, position)
    rows.finish()
    _task_scores(log, facts, rows, file, sink)


def _read_archive(archive: Archive, file: LogFile, sink: Sink) -> None:
    for reason in archive.faults:
        sink.fault(file.name, reason)
    log = _archive_header(archive, file, sink)
    facts = None if log is None else _facts(log, file, sink)
    if log is None or facts is None:
        return
    rows = SampleRows(facts, file.name, sink)
    summaries = _Summaries(archive, file, sink)
    members = [name for name in archive.names if name.startswith("samples/") and name.endswith(".json")]
    for position, name in enumerate(members, 1):
        try:
            sample = decode_sample(archive.read(name))
        except ValueError as error:
            sink.fault(file.name, f"member {shown(name)} {error}", line=position)
            continue
        named = _SAMPLE_NAME.fullmatch(name)
        if named and sample.id is None:
            sample.id = named[1]
        if named and sample.epoch is None:
            sample.epoch = int(named[2])
        summaries.compare(sample)
        rows.add(sample.id, sample.epoch, sample, position)
    summaries.finish()
    rows.finish()
    _task_scores(log, facts, rows, file, sink)


def _archive_header(archive: Archive, file: LogFile, sink: Sink) -> Log | None:
    """Return the header, or for a run that has only started (or whose header is damaged) what it started with."""
    names = [name for name in ("header.json", "_journal/start.json") if name in archive]
    if not names:
        sink.fault(file.name, "holds neither header.json nor _journal/start.json: no Inspect log")
    for name in names:
        try:
            log = decode_log(archive.read(name))
        except ValueError as error:
            sink.fault(file.name, f"member `{name}` {error}")
            continue
        if name != "header.json":
            log.status = "started"
        return log
    return None


def _facts(log: Log, file: LogFile, sink: Sink) -> Facts | None:
    """Return what the header says, None (and a fault) where it cannot be used."""
    version = grade(log.version)[0] if log.version is not None else 1.0
    if version is None:
        sink.fault(file.name, "the log's format version is no number", column="version")
        return None
    if version > KNOWN_VERSION:
        reason = f"the log format ({version:.15g}) is newer than supported ({KNOWN_VERSION}): update benchwright"
        sink.fault(file.name, reason, column="version")
        return None
    spec = log.eval
    if not isinstance(spec, dict):
        sink.fault(file.name, "has no `eval` object: no Inspect log, or one without its header", column="eval")
        return None
    model, task = text(spec.get("model")), text(spec.get("task"))
    for value, name in ((model, "model"), (task, "task")):
        if value is None:
            sink.fault(file.name, f"the log names no {name}", column=f"eval.{name}")
    if model is None or task is None:
        return None
    config, dataset, results = (_dict(part) for part in (spec.get("config"), spec.get("dataset"), log.results))
    status = text(log.status) or "unknown"
    arguments = _dict(spec.get("model_args"))
    ids = [spec.get(name) for name in ("task_id", "run_id", "eval_id", "created")]
    run = Run(
        model=model,
        run=next((value for name in ids if (value := text(name))), clean(file.name)),
        revision=text(arguments.get("revision")),
        created=text(spec.get("created")),
        finished=status == "success",
        limit=config.get("limit") is not None or config.get("sample_id") is not None,
    )
    _notes(log, status, file, sink)
    epochs = count(config.get("epochs")) or 1
    names = dataset.get("sample_ids")
    promised = count(results.get("total_samples")) or (len(names) * epochs if isinstance(names, list) else None)
    return Facts(
        run=run,
        task=task,
        benchmark=text(dataset.get("name")),
        version=_task_version(spec),
        items=count(dataset.get("samples")),
        epochs=epochs,
        promised=promised,
        scorers=_scorer_names(spec, results),
    )


def _notes(log: Log, status: str, file: LogFile, sink: Sink) -> None:
    if status != "success":
        message = text(_dict(log.error).get("message")) or ""
        reason = " ".join(message[:300].split())[:160]
        sink.note(f"{file.name}: status {clean(status)}, the run did not finish{': ' if reason else ''}{reason}")
    if log.invalidated is True:
        sink.note(f"{file.name}: the log is marked as invalidated")


def _task_version(spec: dict[str, Any]) -> str | None:
    """Return the task's version and the arguments it was called with: other arguments are another version."""
    version = text(spec.get("task_version"))
    passed = spec.get("task_args_passed")
    arguments = passed if isinstance(passed, dict) else _dict(spec.get("task_args"))
    if not arguments:
        return version
    told = ", ".join(f"{name}={value!r}"[:200] for name, value in sorted(arguments.items()))
    return clean(f"{version or ''} ({told[:1000]})".strip())


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _scores_of(results: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the scores of a results section, also of format 1 with its single scorer."""
    scorer = results.get("scorer")
    if isinstance(scorer, dict) and "scores" not in results:
        return [{**scorer, "metrics": results.get("metrics")}]
    scores = results.get("scores")
    return [score for score in scores if isinstance(score, dict)] if isinstance(scores, list) else []


def _metric_name(score: dict[str, Any]) -> str | None:
    name, scorer = text(score.get("name")), text(score.get("scorer"))
    return name if name is None or scorer is None or scorer == name else f"{scorer}.{name}"


def _scorer_names(spec: dict[str, Any], results: dict[str, Any]) -> tuple[str, ...]:
    names = [_metric_name(score) for score in _scores_of(results)]
    if not any(names):
        scorers = spec.get("scorers")
        names = [text(_dict(scorer).get("name")) for scorer in scorers] if isinstance(scorers, list) else []
    return tuple(dict.fromkeys(name for name in names if name))


def _task_scores(log: Log, facts: Facts, rows: SampleRows, file: LogFile, sink: Sink) -> None:
    """Put the scores that the results section states into the sink."""
    results = _dict(log.results)
    completed = count(results.get("completed_samples"))
    items = completed // facts.epochs if completed is not None and completed % facts.epochs == 0 else None
    stated: dict[str, tuple[float | None, float | None, int | None, bool | None]] = {}
    for score in _scores_of(results):
        name, reducer = _metric_name(score), text(score.get("reducer"))
        values = _metric_values(score.get("metrics"), file, sink)
        if name is None:
            sink.fault(file.name, "a score without a name: passed over", column="results.scores")
            continue
        plain = reducer in (None, "mean")
        main = next((mean for mean in _MEANS if mean in values), None)
        scored = count(score.get("scored_samples"))
        for metric, value in values.items():
            if metric == "stderr" and main is not None:
                continue
            is_mean = metric in _MEANS
            direction = rows.direction(name) if is_mean else None
            stderr = values.get("stderr") if is_mean else None
            called = name if plain and metric == main else f"{name}/{metric}" + ("" if plain else f"[{reducer}]")
            stated.setdefault(called, (value, stderr, items if scored is None else scored, direction))
    if stated:
        columns: dict[str, Any] = {"metric": list(stated)}
        for position, column in enumerate(("value", "stderr", "n", "higher_is_better")):
            columns[column] = [row[position] for row in stated.values()]
        sink.scores(facts.run, columns | facts.constants(file.name) | {"of": facts.items})


def _metric_values(metrics: Any, file: LogFile, sink: Sink) -> dict[str, float | None]:
    values: dict[str, float | None] = {}
    for key, metric in _dict(metrics).items():
        value = metric.get("value") if isinstance(metric, dict) else metric
        values[clean(key)] = number(value)
        if value is not None and (isinstance(value, bool) or not isinstance(value, (int, float))):
            sink.fault(file.name, f"the value of metric {shown(key)} is no number", column="results.scores")
    return values


@dataclass(slots=True, init=False)
class _Summaries:
    """The summaries of an archive, to be compared with its samples; the samples count."""

    file: LogFile
    sink: Sink
    listed: dict[tuple[str | None, int | None], dict[str, Any]] | None
    different: list[str]
    unlisted: int

    def __init__(self, archive: Archive, file: LogFile, sink: Sink) -> None:
        self.file, self.sink, self.listed = file, sink, None
        self.different, self.unlisted = [], 0
        if "summaries.json" not in archive:
            return
        try:
            summaries = decode_summaries(archive.read("summaries.json"))
        except ValueError as error:
            sink.fault(file.name, f"member `summaries.json` {error}; the samples are read without it")
            return
        self.listed = {(text(entry.id), count(entry.epoch)): _dict(entry.scores) for entry in summaries}

    def compare(self, sample: Sample) -> None:
        """Compare a sample with its summary, where there is one."""
        if self.listed is None:
            return
        key = text(sample.id), count(sample.epoch)
        scores = self.listed.pop(key, None)
        if scores is None:
            self.unlisted += 1
            return
        own = _dict(sample.scores)
        for name in scores.keys() & own.keys():
            said, is_ = (_dict(part).get("value") for part in (scores[name], own[name]))
            if grade(said)[:2] != grade(is_)[:2]:
                self.different.append(f"sample {shown(str(key[0]))} epoch {key[1]}, scorer {shown(name)}")

    def finish(self) -> None:
        """Report where summaries and samples disagree."""
        if self.different:
            reason = f"summaries.json gives other scores than {len(self.different)} samples, whose own scores count"
            self.sink.fault(self.file.name, f"{reason}: first {self.different[0]}")
        if self.listed:
            name, epoch = next(iter(self.listed))
            first = f"first sample {shown(str(name))} epoch {epoch}"
            self.sink.fault(
                self.file.name, f"summaries.json lists {len(self.listed)} samples that could not be read: {first}"
            )
        if self.unlisted:
            self.sink.note(f"{self.file.name}: {self.unlisted} samples are read that summaries.json does not list")


FORMAT = Format("inspect", sniff, read)
