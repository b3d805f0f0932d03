"""From the samples of an Inspect log to item rows: one per sample, epoch and scorer."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, Protocol

from benchwright.logs.inspect_values import GRADES, clean, grade, item_hash, item_texts, known_direction, text
from benchwright.logs.inspect_zip import shown
from benchwright.logs.item_texts import ItemTexts
from benchwright.logs.record import Run, Sink

BLOCK = 20_000
MAX_SAME_FAULTS = 20  # faults of one kind and scorer that are listed one by one
MAX_EPOCH = 2**31


class SampleFields(Protocol):
    """What is used of a sample besides its id and epoch."""

    input: Any
    choices: Any
    scores: Any
    score: Any
    error: Any
    invalidation: Any


@dataclass(frozen=True, slots=True)
class Facts:
    """What the header of a log says, the same for all its rows."""

    run: Run
    task: str
    benchmark: str | None
    version: str | None
    items: int | None
    epochs: int
    promised: int | None
    scorers: tuple[str, ...]

    def constants(self, file: str) -> dict[str, str | None]:
        """Return the columns that are the same for rows and scores."""
        return {"task": self.task, "benchmark": self.benchmark, "version": self.version, "file": clean(file)}


@dataclass(frozen=True, slots=True)
class _Item:
    doc_id: str
    item_hash: str | None
    repeat: int
    line: int


@dataclass(frozen=True, slots=True)
class _Pending:
    """A sample without a value: which metrics it lacks is known only after the last sample."""

    item: _Item
    status: str
    scorer: str | None  # None: every scorer but those in `scored`
    scored: frozenset[str] = frozenset()


class SampleRows:
    """Collects the rows of a log and puts them into the sink, block by block."""

    def __init__(self, facts: Facts, file: str, sink: Sink) -> None:
        self._facts, self._file, self._sink = facts, file, sink
        self._texts = ItemTexts(facts.run, facts.task, sink)
        self._rows: list[tuple[_Item, str, float | None, str]] = []
        self._metrics: dict[str, dict[str, None]] = {}  # scorer -> metrics with a value somewhere
        self._pending: list[_Pending] = []
        self._graded: set[str] = set()
        self._outside: dict[str, tuple[int, str, float]] = {}
        self._same: Counter[tuple[str | None, str]] = Counter()
        self._samples = self._invalid = 0

    def add(self, name: Any, epoch: Any, sample: SampleFields, line: int) -> None:
        """Add the rows of one sample."""
        doc_id = text(name)
        epoch = 1 if epoch is None else epoch
        if doc_id is None:
            self._fault("id", "the sample has no id that is text or a number: not read", line, "id")
            return
        if isinstance(epoch, bool) or not isinstance(epoch, int) or not 1 <= epoch <= MAX_EPOCH:
            reason = f"the epoch of sample {shown(doc_id)} is no whole number from 1: not read"
            self._fault("epoch", reason, line, "epoch")
            return
        self._samples += 1
        self._invalid += bool(sample.invalidation)
        item = _Item(doc_id, item_hash(sample.input, sample.choices), epoch - 1, line)
        if self._texts.kept:
            self._texts.add(doc_id, item.item_hash, item_texts(sample.input, sample.choices))
        scores = self._scores(sample, item)
        for scorer, score in scores.items():
            self._score(clean(scorer), score, item)
        if sample.error:
            self._pending.append(_Pending(item, "error", None, frozenset(map(clean, scores))))
        elif not scores:
            self._pending.append(_Pending(item, "unscored", None))

    def finish(self) -> None:
        """Add what had to wait for the last sample, put out the last block and say what a reader should know."""
        for pending in self._pending:
            scorers = self._scorers() if pending.scorer is None else [pending.scorer]
            for scorer in scorers:
                if scorer not in pending.scored:
                    for metric in self._metrics.get(scorer) or [scorer]:
                        self._row(pending.item, metric, None, pending.status)
        self._flush()
        self._texts.put()
        self._say()

    def direction(self, metric: str) -> bool | None:
        """Return whether more is better: known by name, or because the scorer gives grades."""
        known = known_direction(metric)
        return True if known is None and metric in self._graded else known

    def _scorers(self) -> list[str]:
        scorers = list(self._metrics) + [pending.scorer for pending in self._pending if pending.scorer is not None]
        return list(dict.fromkeys(scorers)) or list(self._facts.scorers)

    def _scores(self, sample: SampleFields, item: _Item) -> dict[str, Any]:
        scores = sample.scores
        if scores is None and sample.score is not None:
            scores = {self._facts.scorers[0] if self._facts.scorers else "score": sample.score}
        if scores is not None and not isinstance(scores, dict):
            reason = f"the scores of sample {shown(item.doc_id)} are no dictionary of scorers"
            self._fault("scores", reason, item.line, "scores")
            return {}
        return scores or {}

    def _score(self, scorer: str, score: Any, item: _Item) -> None:
        value = score.get("value") if isinstance(score, dict) else score
        if isinstance(value, dict) and value:
            for key, part in value.items():
                self._value(scorer, f"{scorer}.{clean(key)}", part, item)
        elif grade(value)[1] == "unscored" or value == {}:
            refused = isinstance(score, dict) and score.get("reason") == "refusal"
            self._pending.append(_Pending(item, "refused" if refused else "unscored", scorer))
        else:
            self._value(scorer, scorer, value, item)

    def _value(self, scorer: str, metric: str, given: Any, item: _Item) -> None:
        value, status, reason = grade(given)
        self._metrics.setdefault(scorer, {})[metric] = None
        if reason:
            self._fault(metric, f"sample {shown(item.doc_id)}: {reason}", item.line, metric)
        if isinstance(given, str) and given in GRADES:
            self._graded.add(metric)
        if value is not None and not 0 <= value <= 1:
            seen, first, worth = self._outside.get(metric, (0, item.doc_id, value))
            self._outside[metric] = seen + 1, first, worth
        self._row(item, metric, value, status)

    def _row(self, item: _Item, metric: str, value: float | None, status: str) -> None:
        self._rows.append((item, metric, value, status))
        if len(self._rows) >= BLOCK:
            self._flush()

    def _flush(self) -> None:
        if not self._rows:
            return
        rows, self._rows = self._rows, []
        columns = {
            "doc_id": [row[0].doc_id for row in rows],
            "item_hash": [row[0].item_hash for row in rows],
            "repeat": [row[0].repeat for row in rows],
            "line": [row[0].line for row in rows],
            "metric": [row[1] for row in rows],
            "value": [row[2] for row in rows],
            "status": [row[3] for row in rows],
            "higher_is_better": [self.direction(row[1]) for row in rows],
        }
        self._sink.rows(self._facts.run, columns | self._facts.constants(self._file))

    def _fault(self, kind: str, reason: str, line: int, column: str) -> None:
        self._same[kind, column] += 1
        if self._same[kind, column] <= MAX_SAME_FAULTS:
            self._sink.fault(self._file, reason, line=line, column=column)

    def _say(self) -> None:
        for (_, column), times in self._same.items():
            if times > MAX_SAME_FAULTS:
                reason = f"{times - MAX_SAME_FAULTS:,} more samples with the same fault"
                self._sink.fault(self._file, reason, column=column)
        for metric, (times, first, value) in self._outside.items():
            where = f"first sample {shown(first)}: {value:g}"
            self._sink.note(
                f"{self._file}: {times:,} values of {shown(metric)} lie outside [0, 1], kept as they are; {where}"
            )
        lost = (self._facts.promised or 0) - self._samples
        if self._samples == 0:
            promise = f"; its header promises {lost:,}" if lost > 0 else ""
            self._sink.note(f"{self._file}: the log holds no samples that can be read{promise}")
        elif lost > 0:
            all_ = f"{lost:,} of {self._facts.promised:,} samples"
            self._sink.note(f"{self._file}: {all_} that the header promises are missing or cannot be read")
        if self._pending and not self._scorers():
            self._sink.note(f"{self._file}: {len(self._pending):,} samples without a score, and no scorer is named")
        if self._invalid:
            self._sink.note(f"{self._file}: {self._invalid:,} samples are marked as invalidated, kept as they are")
