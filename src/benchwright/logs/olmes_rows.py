"""Columns of OLMES predictions, gathered over a block: what is alike in all lines is handled once a block."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import polars as pl

from benchwright.logs.log_file import LogFile
from benchwright.logs.olmes_lines import Prediction
from benchwright.logs.record import Run, Sink
from benchwright.logs.score_values import direction, excerpt, score_of, text_or_none, whole_or_none

NO_SCORE = re.compile(r"^(predicted_index|correct_choice|num_|index_|extracted_|model_answer|answer_format|doc_id)")
LENGTHS = ("chars", "bytes", "tokens")


class Block:
    """Item rows and choices of one predictions file, until they are put into the sink.

    Parameters
    ----------
    file, hashes
        The predictions, and the hash of each item's text by doc_id.
    primary
        The metric that the primary score stands for, where the task says so.
    """

    def __init__(self, file: LogFile, hashes: dict[str, str], primary: str | None, sink: Sink) -> None:
        self._file, self._hashes, self._primary, self._sink = file, hashes, primary, sink
        self._plans: dict[tuple[str, ...], tuple[list[str], list[int], bool]] = {}
        self._names: dict[str, int] = {}
        self.left_out: set[str] = set()
        self._start()

    def _start(self) -> None:
        self._doc_ids: list[str] = []
        self._lines: list[int] = []
        self._counts: list[int] = []
        self._codes: list[int] = []
        self._values: list[float | None] = []
        self._statuses: dict[int, str] = {}  # of the rows that are not scored
        self._choice_items: list[int] = []
        self._choice_counts: list[int] = []
        self._gold: list[int] = []
        self._logprob: list[Any] = []
        self._lengths: dict[str, list[Any]] = {name: [] for name in LENGTHS}

    def __len__(self) -> int:
        return len(self._values)

    def add(self, prediction: Prediction, line: int) -> None:
        """Add one item; what it lacks is a fault."""
        raw_id = prediction.doc_id
        doc_id = str(raw_id) if type(raw_id) is int and -(2**62) < raw_id < 2**62 else text_or_none(raw_id)
        if doc_id is None:
            doc_id = text_or_none(prediction.native_id)
        if doc_id is None:
            self._sink.fault(self._file.name, "has neither doc_id nor native_id", line=line, column="doc_id")
            return
        metrics = prediction.metrics
        if not isinstance(metrics, dict):
            self._sink.fault(self._file.name, "has no metrics of the item", line=line, column="metrics")
            return
        keys = tuple(metrics)
        kept, codes, is_choice = self._plans.get(keys) or self._plan(keys)
        for key in kept:
            raw = metrics[key]
            kind = type(raw)
            if kind is float or (kind is int and -(2**62) < raw < 2**62):
                self._values.append(raw)  # a decoder gives finite floats only
            else:
                self._odd(raw, key, line)
        self._codes += codes
        self._counts.append(len(kept))
        self._doc_ids.append(doc_id)
        self._lines.append(line)
        outputs = prediction.model_output
        if is_choice and len(outputs) > 1:
            gold: Any = prediction.label
            if type(gold) is not int:
                gold = whole_or_none(metrics.get("correct_choice", gold))
            if gold is not None and 0 <= gold < len(outputs):
                self._choice_items.append(len(self._doc_ids) - 1)
                self._choice_counts.append(len(outputs))
                self._gold.append(gold)
                self._logprob += [output.sum_logits for output in outputs]
                self._lengths["chars"] += [output.num_chars for output in outputs]
                self._lengths["bytes"] += [output.num_bytes for output in outputs]
                self._lengths["tokens"] += [output.num_tokens for output in outputs]

    def put(self, run: Run, shared: dict[str, Any]) -> None:
        """Put what was gathered into the sink and start again."""
        if self._values:
            items = pl.Series(np.repeat(np.arange(len(self._counts)), self._counts))
            codes = pl.Series(self._codes, dtype=pl.UInt32)
            status = np.full(len(self._values), "scored", dtype=object)
            for row, text in self._statuses.items():
                status[row] = text
            hashes = [self._hashes.get(doc_id) for doc_id in self._doc_ids]
            rows = {
                "doc_id": pl.Series(self._doc_ids, dtype=pl.String).gather(items),
                "item_hash": pl.Series(hashes, dtype=pl.String).gather(items),
                "line": pl.Series(self._lines, dtype=pl.Int64).gather(items),
                "metric": pl.Series(list(self._names), dtype=pl.String).gather(codes),
                "higher_is_better": pl.Series(map(self._direction, self._names), dtype=pl.Boolean).gather(codes),
                "value": pl.Series(self._values, dtype=pl.Float64, strict=False),
                "status": pl.Series(status, dtype=pl.String) if self._statuses else "scored",
            }
            self._sink.rows(run, shared | rows)
        if self._choice_items:
            self._put_choices(run, shared["task"])
        self._start()

    def _put_choices(self, run: Run, task: str) -> None:
        if not _are_numbers(self._logprob):
            self._logprob = [score_of(raw)[0] for raw in self._logprob]
        flat = [pl.Series("logprob", self._logprob, dtype=pl.Float64, strict=False)]
        for name, raw in self._lengths.items():
            if set(map(type, raw)) != {int} or max(raw) >= 2**53:
                raw = [whole_or_none(one) for one in raw]
            flat.append(pl.Series(name, raw, dtype=pl.Int64, strict=False))
        flat.append(pl.Series("item", np.repeat(np.arange(len(self._choice_counts)), self._choice_counts)))
        kinds = ("logprob", *LENGTHS)
        lists = pl.DataFrame(flat).group_by("item", maintain_order=True).agg(pl.col(*kinds))
        known = [pl.col(name).list.drop_nulls().list.len() == pl.col(name).list.len() for name in kinds]
        lists = lists.with_columns(
            pl.when(is_known).then(pl.col(name)).alias(name) for name, is_known in zip(kinds, known, strict=True)
        ).with_columns(
            doc_id=pl.Series(self._doc_ids, dtype=pl.String).gather(self._choice_items),
            line=pl.Series(self._lines, dtype=pl.Int64).gather(self._choice_items),
            gold=pl.Series(self._gold, dtype=pl.Int64),
        )
        for line in lists.filter(pl.col("logprob").is_null())["line"]:
            reason = "has choices without a log-likelihood"
            self._sink.fault(self._file.name, reason, line=line, column="sum_logits")
        lists = lists.filter(pl.col("logprob").is_not_null())
        if lists.height:
            self._sink.choices(run, {"task": task} | {name: lists[name] for name in ("doc_id", "gold", *kinds)})

    def _plan(self, keys: tuple[str, ...]) -> tuple[list[str], list[int], bool]:
        """Return which metrics of such a line are scores, their numbers, and whether it is of multiple choice."""
        kept, codes = [], []
        for key in keys:
            name = text_or_none(key)
            if name is None:
                continue
            if NO_SCORE.search(name):
                self.left_out.add(name)
                continue
            kept.append(key)
            codes.append(self._names.setdefault(name, len(self._names)))
        is_choice = any(key.startswith(("predicted_index", "correct_choice", "acc_")) for key in keys)
        if len(self._plans) < 10_000:
            self._plans[keys] = (kept, codes, is_choice)
        return kept, codes, is_choice

    def _odd(self, raw: Any, key: str, line: int) -> None:
        value, status = score_of(raw)
        if status == "unreadable":
            self._sink.fault(self._file.name, f"{excerpt(raw)} is no number", line=line, column=text_or_none(key))
        if status != "scored":
            self._statuses[len(self._values)] = status
        self._values.append(value)

    def _direction(self, metric: str) -> bool | None:
        return metric_direction(metric, self._primary)


def metric_direction(metric: str, primary: str | None) -> bool | None:
    """Direction of a metric; the primary score has that of the metric it stands for."""
    return direction(primary) if metric.startswith("primary_score") and primary is not None else direction(metric)


def _are_numbers(values: list[Any]) -> bool:
    """Whether all are finite numbers of machine size."""
    kinds = set(map(type, values))
    return kinds == {float} or (kinds <= {float, int} and max(map(abs, values)) < 2**62)
