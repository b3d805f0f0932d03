"""Samples of lighteval's details: one Parquet row each, with structs, or with texts that hold them."""

from __future__ import annotations

import ast
import re
from typing import Any

import polars as pl

from benchwright.logs.item_texts import ItemTexts
from benchwright.logs.log_file import LogFile, parse_json
from benchwright.logs.record import Run, Sink, text_hash
from benchwright.logs.score_values import direction, excerpt, score_of, text_or_none, whole_or_none

BLOCK = 5_000
METRICS = ("metric", "metrics", "__metric__")
ITEMS = ("doc", "__doc__")
RESPONSES = ("model_response", "__model_response__")
OLD = ("example", "choices", "gold_index", "pred_logits")
MAX_TEXT = 2_000_000
_NO_NUMBER = re.compile(r"(?<=[\[(,:])(\s*)-?(nan|inf)(?=\s*[,\])}])")


def read_details(file: LogFile, task: str, benchmark: str | None, run: Run, sink: Sink) -> None:
    """Put the samples of one details file into the sink."""
    try:
        lazy = pl.scan_parquet(file.path, glob=False)
        names = lazy.collect_schema().names()
        metrics = next((name for name in METRICS if name in names), None)
        if metrics is None:
            sink.fault(file.name, f"has no column of metrics ({', '.join(METRICS)})", column="metrics")
            return
        wanted = [name for name in (metrics, *ITEMS, *RESPONSES, *OLD) if name in names]
        height = lazy.select(pl.len()).collect().item()
        left_out: set[str] = set()
        for start in range(0, height, BLOCK):
            samples = lazy.select(wanted).slice(start, BLOCK).collect().to_dicts()
            _put(file, samples, start, metrics, {"task": task, "benchmark": benchmark}, run, left_out, sink)
    except (pl.exceptions.PolarsError, OSError, pl.exceptions.PanicException) as error:
        sink.fault(file.name, f"cannot be read as Parquet: {str(error).splitlines()[0] if str(error) else error!r}")
        return
    if left_out:
        named = ", ".join(sorted(left_out))
        sink.note(f"{file.name}: what a metric of the whole task is made of is no item score and is left out: {named}")


def _put(
    file: LogFile,
    samples: list[dict[str, Any]],
    start: int,
    metrics: str,
    shared: dict[str, Any],
    run: Run,
    left_out: set[str],
    sink: Sink,
) -> None:
    rows: list[tuple[Any, ...]] = []
    choices: list[tuple[Any, ...]] = []
    texts = ItemTexts(run, shared["task"], sink)
    for position, sample in enumerate(samples, start=start):
        values = _struct(sample.get(metrics))
        if not isinstance(values, dict):
            sink.fault(file.name, f"{excerpt(sample.get(metrics))} is no set of metrics", line=position + 1)
            continue
        doc = next((found for name in ITEMS if isinstance(found := _struct(sample.get(name)), dict)), None)
        doc_id = (text_or_none(doc.get("id")) if doc is not None else None) or str(position)
        digest, text, options = _item(sample, doc)
        if text is not None:
            texts.add(doc_id, digest, (text, *options))
        for raw_name, raw in values.items():
            name = text_or_none(raw_name)
            if name is None:
                continue
            if isinstance(raw, (list, dict)):
                left_out.add(name)
                continue
            value, status = score_of(raw)
            if status == "unreadable":
                sink.fault(file.name, f"{excerpt(raw)} is no number", line=position + 1, column=name)
            rows.append((doc_id, digest, name, value, status, direction(name), position + 1))
        choice = _choice(sample, doc, options)
        if choice is not None:
            choices.append((doc_id, *choice))
    if rows:
        names = ("doc_id", "item_hash", "metric", "value", "status", "higher_is_better", "line")
        sink.rows(run, shared | {"file": file.name} | _columns(names, rows))
    if choices:
        columns = _columns(("doc_id", "gold", "logprob", "chars", "bytes"), choices)
        sink.choices(run, {"task": shared["task"]} | columns)
    texts.put()


def _item(sample: dict[str, Any], doc: dict[str, Any] | None) -> tuple[str | None, str | None, list[str]]:
    """Return the hash of the item's text and choices, the text and the choices."""
    text = doc.get("query") if doc is not None else sample.get("example")
    options = _struct(doc.get("choices") if doc is not None else sample.get("choices"))
    texts = [one for one in options if isinstance(one, str)] if isinstance(options, list) else []
    return (text_hash(text, *texts), text, texts) if isinstance(text, str) else (None, None, texts)


def _choice(
    sample: dict[str, Any], doc: dict[str, Any] | None, options: list[str]
) -> tuple[int, list[float], list[int], list[int]] | None:
    """Return gold position, log-likelihoods and lengths of a multiple-choice sample."""
    gold = _struct(doc.get("gold_index") if doc is not None else sample.get("gold_index"))
    if isinstance(gold, list):
        gold = gold[0] if len(gold) == 1 else None
    position = whole_or_none(gold)
    response = next((found for name in RESPONSES if isinstance(found := _struct(sample.get(name)), dict)), None)
    raw = response.get("logprobs") if response is not None else _struct(sample.get("pred_logits"))
    if not isinstance(raw, list) or len(raw) != len(options) or len(raw) < 2:
        return None
    logprobs = [value for one in raw if (value := score_of(one)[0]) is not None]
    if position is None or not 0 <= position < len(raw) or len(logprobs) != len(raw):
        return None
    lengths = [len(one.encode("utf-8", "replace")) for one in options]
    return position, logprobs, [len(one) for one in options], lengths


def _struct(raw: Any) -> Any:
    """Return a struct as it is, or read it out of a text that holds JSON or a Python literal."""
    if not isinstance(raw, str) or raw[:1] not in ("{", "[") or len(raw) > MAX_TEXT:
        return raw
    try:
        return parse_json(raw.encode("utf-8", "replace"))
    except ValueError:
        pass
    try:
        return ast.literal_eval(_NO_NUMBER.sub(r"\1None", raw))
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return raw


def _columns(names: tuple[str, ...], rows: list[tuple[Any, ...]]) -> dict[str, list[Any]]:
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
