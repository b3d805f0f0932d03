"""Samples of lm-evaluation-harness v0.4: one JSON record per item and filter.

What becomes of a metric's value:

* a number, truth value, or text of one is the item's value; null and NaN are unscored;
* a list of truth values (several checks of one answer) is their mean, with their number as ``trials``;
* under ``perplexity`` the harness stores the item's log-likelihood: it is put as metric ``loglikelihood``, higher is
  better, so that perplexity = exp(-mean loglikelihood);
* under ``word_perplexity``, ``byte_perplexity`` and ``bits_per_byte`` it stores a pair (log-likelihood, length): they
  are put as metrics ``loglikelihood`` and ``words`` or ``bytes``, so that word perplexity =
  exp(-sum loglikelihood / sum words); the ratio is never averaged over items;
* any other pair or list (F1, MCC, BLEU: material for the task's score) has no value for one item: unreadable.

The lengths of a choice are those that ``acc_norm`` and ``acc_bytes`` of the harness divide by: the choice's own text,
without the delimiter before it. Where all choices end a sentence alike (Winogrande) they cannot be known: null.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from math import isfinite
from typing import Any

import msgspec

from benchwright.logs.item_texts import ItemTexts
from benchwright.logs.lm_eval_choices import USUAL_ANSWERS, USUAL_ARGUMENTS, ChoiceBlock
from benchwright.logs.lm_eval_results import LOGLIKELIHOOD, Results, direction_of, number
from benchwright.logs.log_file import LogFile, parse_json
from benchwright.logs.record import Run, Sink

BLOCK_ROWS = 20_000
MAX_METRIC_SETS = 100
CORE = ("doc_id", "filter", "metrics", "doc", "target", "arguments", "filtered_resps", "resps")
OTHER = {"doc_hash", "prompt_hash", "target_hash", "task_name", "schema_version", "fewshot_hash"}
WEIGHTS = {"word_perplexity": "words", "byte_perplexity": "bytes", "bits_per_byte": "bytes"}
_RAW = {"doc", "target", "arguments", "filtered_resps", "resps"}
_TOP = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ANY = msgspec.json.Decoder()
_CANONICAL = msgspec.json.Encoder(order="deterministic")

Records = Callable[[Callable[[int, str], None]], Iterator[tuple[int, bytes]]]


@dataclass(slots=True)
class SampleReader:
    """Reads the samples of one task from one file into the sink.

    ``records`` yields (line number, JSON text of a record) each time it is called, and reports lines that it cannot
    give.
    """

    file: LogFile
    records: Records
    run: Run
    task: str
    results: Results | None
    sink: Sink
    _decoders: dict[tuple[bool, tuple[str, ...]], Any] = field(default_factory=dict)
    _rows: list[tuple[Any, ...]] = field(default_factory=list)
    _usual: Any = None  # decoder of multiple-choice records like the last one
    _last: Any = None  # decoder of the last record
    _without_value: dict[str, tuple[int, int, str]] = field(default_factory=dict)
    _directions: dict[str, bool | None] = field(default_factory=dict)
    _without_metric: tuple[int, int] = (0, 0)  # how many records, the first one's line
    _choices: ChoiceBlock | None = None
    _choice_filter: Any = None
    _texts: ItemTexts = field(init=False)

    def __post_init__(self) -> None:
        self._texts = ItemTexts(self.run, self.task, self.sink)

    def read(self) -> None:
        """Read everything; what is wrong with a record is a fault, and the next one is read."""
        filters: list[str | None] | None = None
        if self._lacks_filter():
            filters = self._rebuilt_filters()
            if filters is None:
                return
        delimiter = self.results.config(self.task).get("target_delimiter") if self.results is not None else None
        self._choices = ChoiceBlock(delimiter if isinstance(delimiter, str) else " ")
        seen: dict[str, int] = {}
        first = True
        for line, text in self.records(self._fault):
            record = self._decode(line, text, self._fault)
            if record is None:
                continue
            doc_id = self._doc_id(record, line, self._fault)
            if doc_id is None:
                continue
            filter_ = record.filter
            if filters is not None:
                place = seen.get(doc_id, 0)
                seen[doc_id] = place + 1
                filter_ = filters[min(place, len(filters) - 1)]
            elif not isinstance(filter_, str):
                self._fault(line, "`filter` must be text; the record is left out", "filter")
                continue
            if first:
                first, self._choice_filter = False, filter_
            self._record(record, line, doc_id, filter_)
            if len(self._rows) >= BLOCK_ROWS:
                self._flush()
        self._flush()
        for metric, (count, line, value) in self._without_value.items():
            reason = (
                f"{count:,} record(s) from here on hold {value} under this metric, which is no number for one item; "
                "use another metric of the task for items"
            )
            self.sink.fault(self.file.name, reason, line=line, column=metric)
        if self._without_metric[0]:
            count, line = self._without_metric
            self._fault(line, f"{count:,} record(s) from here on have no metric, so no score", "metrics")
        if self._choices.disagreements:
            self.sink.fault(
                self.file.name,
                f"{self._choices.disagreements:,} item(s) have an `acc` that does not follow from `target` and the "
                "log-likelihoods of the choices: no score is derived from their choices",
                column="target",
            )

    # records

    def _decode(self, line: int, text: bytes, fault: Callable[..., None]) -> Any:
        """Return a record with its metrics, None (and a fault) where it is none."""
        try:
            return self._typed(text)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            pass
        try:  # NaN tokens, numbers out of range, half a surrogate pair
            loose = parse_json(text)
            if not isinstance(loose, dict):
                raise ValueError("is no JSON object")
            try:
                text = msgspec.json.encode(loose)
            except (ValueError, OverflowError, TypeError):
                text = json.dumps(loose, ensure_ascii=False).encode("utf-8", "replace")
            return self._typed(text)
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            fault(line, f"{error or 'is nested too deeply'}; the record is left out, is the file cut off here?")
            return None

    def _typed(self, text: bytes) -> Any:
        if self._usual is not None:
            try:
                record = self._usual.decode(text)
                if record.metrics == record.listed and record.filtered_resps is not msgspec.UNSET:
                    return record
            except msgspec.ValidationError:
                pass
        elif self._last is not None:
            record = self._last.decode(text)
            if record.metrics == record.listed:
                return record
        top = _TOP.decode(text)
        listed = _ANY.decode(top["metrics"]) if "metrics" in top else None
        if isinstance(listed, list) and listed and all(isinstance(name, str) for name in listed):
            names = [name for name in listed if name not in CORE]
        else:
            names = [name for name in top if name not in CORE and name not in OTHER]
        self._last = self._decoder(tuple(dict.fromkeys(names)), listed, usual=False)
        return self._last.decode(text)

    def _decoder(self, names: tuple[str, ...], listed: Any, *, usual: bool) -> Any:
        if (usual, names) not in self._decoders:
            if len(self._decoders) >= 2 * MAX_METRIC_SETS:
                raise ValueError(f"names more than {MAX_METRIC_SETS} sets of metrics in one file")
            kinds: dict[str, Any] = dict.fromkeys(CORE, Any) | dict.fromkeys(_RAW, msgspec.Raw)
            if usual:
                kinds |= {"target": Any, "arguments": USUAL_ARGUMENTS, "filtered_resps": USUAL_ANSWERS}
                del kinds["resps"]
            fields: list[Any] = [(name, kind | msgspec.UnsetType, msgspec.UNSET) for name, kind in kinds.items()]
            fields += [(f"m{i}", Any, msgspec.UNSET) for i in range(len(names))]
            rename = {f"m{i}": name for i, name in enumerate(names)}
            space = {
                "listed": [] if listed is None else listed,
                "names": tuple((f"m{i}", name) for i, name in enumerate(names)),
            }
            kind = msgspec.defstruct("Sample", fields, namespace=space, rename=rename, gc=False)
            self._decoders[usual, names] = msgspec.json.Decoder(kind, strict=not usual)  # text of a number is one
        return self._decoders[usual, names]

    def _doc_id(self, record: Any, line: int, fault: Callable[..., None]) -> str | None:
        doc_id = record.doc_id
        if isinstance(doc_id, str) and doc_id:
            return doc_id
        if isinstance(doc_id, int) and not isinstance(doc_id, bool) and abs(doc_id) < 2**63:
            return str(doc_id)
        if isinstance(doc_id, float) and doc_id.is_integer() and abs(doc_id) < 2**53:
            return str(int(doc_id))
        fault(line, f"`doc_id` must be a number or text, got {str(doc_id)[:40]!r}; the record is left out", "doc_id")
        return None

    def _fault(self, line: int, reason: str, column: str | None = None) -> None:
        self.sink.fault(self.file.name, reason, line=line, column=column)

    # old logs without the key `filter`

    def _lacks_filter(self) -> bool:
        for line, text in self.records(_ignore):
            record = self._decode(line, text, _ignore)
            if record is not None:
                return record.filter is msgspec.UNSET
        return False

    def _rebuilt_filters(self) -> list[str | None] | None:
        """Return the filter of the first, second, ... record of every item; None (and a fault) where that is unsafe."""
        counts: dict[str, int] = {}
        sums: dict[tuple[int, str], list[float]] = {}
        for line, text in self.records(_ignore):
            record = self._decode(line, text, _ignore)
            doc_id = None if record is None else self._doc_id(record, line, _ignore)
            if doc_id is None:
                continue
            place = counts.get(doc_id, 0)
            counts[doc_id] = place + 1
            for attribute, metric in record.names:
                value = number(getattr(record, attribute))[0]
                if value is not None:
                    sums.setdefault((place, metric), []).append(value)
        known = self.results.filters(self.task) if self.results is not None else []
        repeats = max(counts.values(), default=0)
        if repeats <= 1:
            return [known[0] if len(known) == 1 else None]
        repeated = [doc_id for doc_id, count in counts.items() if count > 1]
        names = ", ".join(repeated[:5]) + (", ..." if len(repeated) > 5 else "")
        why = ""
        if len(known) != repeats or len(repeated) < len(counts) or min(counts.values()) != repeats:
            why = f"the results file names {len(known)} filter(s)"
        elif self.results is not None:
            for (place, metric), values in sums.items():
                stated = self.results.mean(self.task, metric, known[place])
                if stated is not None and metric not in LOGLIKELIHOOD:
                    mean = sum(values) / len(values)
                    if abs(mean - stated) > 1e-9 * max(1.0, abs(stated)):
                        why = f"{metric} of block {place + 1} has the mean {mean}, not {stated} of {known[place]}"
        if why:
            reason = f"items occur up to {repeats} times (doc_id {names}) and no record says by which filter; {why}"
            self.sink.fault(self.file.name, f"{reason}: bring the results file of the run", column="filter")
            return None
        return list(known)

    # rows

    def _record(self, record: Any, line: int, doc_id: str, filter_: str | None) -> None:
        item_hash = None
        if record.doc is not msgspec.UNSET:
            try:  # as text_hash of the item in a form that does not depend on spaces and the order of keys
                content: bytes | None = _CANONICAL.encode(_ANY.decode(record.doc))
            except (msgspec.MsgspecError, ValueError, RecursionError, OverflowError, TypeError):
                content = self._loose_content(bytes(record.doc), line)
            if content is not None:
                item_hash = sha256(content + b"\x00").hexdigest()
                if self._texts.kept and record.names:
                    self._texts.add(doc_id, item_hash, (content.decode("utf-8"),))
        start = (doc_id, item_hash, None if filter_ == "none" else filter_, line)
        acc: float | None = None
        if not record.names:
            count, before = self._without_metric
            self._without_metric = (count + 1, before if count else line)
        for attribute, metric in record.names:
            value = getattr(record, attribute)
            if value.__class__ is float and metric not in LOGLIKELIHOOD and isfinite(value) and metric != "bypass":
                self._rows.append((*start, metric, value, "scored", 1))
            else:
                self._other(start, metric, None if value is msgspec.UNSET else value)
            if metric == "acc":
                acc = number(value)[0] if value is not msgspec.UNSET else None
        if self._choices is not None and filter_ == self._choice_filter:
            usual = self._choices.add(doc_id, record, acc)
            if usual and self._usual is None:
                self._usual = self._decoder(tuple(name for _, name in record.names), record.listed, usual=True)

    def _loose_content(self, doc: bytes, line: int) -> bytes | None:
        """Return the item in that form where it has a text with half a surrogate pair or numbers out of range."""
        try:
            text = json.dumps(parse_json(doc), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        except (ValueError, RecursionError):
            self._fault(line, "the item's text cannot be decoded; its score is kept", "doc")
            return None
        return text.encode("utf-8", "replace")

    def _other(self, start: tuple[Any, ...], metric: str, value: Any) -> None:
        """Put what is not simply a number."""
        if metric in {"perplexity", "ppl"} and not isinstance(value, list):
            self._put_once(start, "loglikelihood", value)
        elif metric in WEIGHTS and isinstance(value, list) and len(value) == 2:
            self._put_once(start, "loglikelihood", value[0])
            self._put_once(start, WEIGHTS[metric], value[1])
        elif metric == "bypass":
            self._rows.append((*start, metric, None, "unscored", 1))
        elif isinstance(value, list) and value and all(isinstance(entry, bool) for entry in value):
            self._rows.append((*start, metric, sum(value) / len(value), "scored", len(value)))
        else:
            found, status = number(value)
            if status == "unreadable":
                count, first, example = self._without_value.get(metric, (0, start[3], _example(value)))
                self._without_value[metric] = (count + 1, first, example)
            self._rows.append((*start, metric, found, status, 1))

    def _put_once(self, start: tuple[Any, ...], metric: str, value: Any) -> None:
        """Put a row unless the same record has given it already: three metrics store the same log-likelihood."""
        found, status = number(value)
        for row in reversed(self._rows):
            if row[:4] != start:
                break
            if row[4] == metric:
                if row[5] != found:
                    self._fault(start[3], f"two metrics differ in {metric}: {row[5]} is used, not {found}", metric)
                return
        if status == "unreadable":
            self._fault(start[3], "a log-likelihood and its length must be numbers", metric)
        self._rows.append((*start, metric, found, status, 1))

    def _direction(self, metric: str) -> bool | None:
        if metric not in self._directions:
            stated = metric not in {"loglikelihood", "words", "bytes"} and self.results is not None
            found = self.results.direction(self.task, metric) if stated and self.results else direction_of(metric)
            self._directions[metric] = found
        return self._directions[metric]

    def _flush(self) -> None:
        if self._rows:
            names = ("doc_id", "item_hash", "filter", "line", "metric", "value", "status", "trials")
            columns: dict[str, Any] = dict(zip(names, map(list, zip(*self._rows, strict=True)), strict=True))
            columns |= {"task": self.task, "file": self.file.name}
            columns["higher_is_better"] = [self._direction(metric) for metric in columns["metric"]]
            if self.results is not None:
                columns |= {"benchmark": self.results.benchmark(self.task), "version": self.results.version(self.task)}
            self.sink.rows(self.run, columns)
            self._rows = []
        self._texts.put()
        if self._choices is not None and (taken := self._choices.take()) is not None:
            self.sink.choices(self.run, {"task": self.task, **taken})


def _example(value: Any) -> str:
    text = str(value)
    return repr(text if len(text) <= 40 else text[:40] + "...")


def _ignore(line: int, reason: str, column: str | None = None) -> None:
    """Say nothing: a later pass over the same records does."""
