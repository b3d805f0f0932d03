"""What every log reader produces: runs with item rows, choice log-likelihoods and task scores.

A reader gets a :class:`Unit`, the files of one format that belong together, and a :class:`Sink`, and puts
columns into it, block by block, so that memory stays flat however long a log is. It never drops anything in
silence: what it cannot use is a fault.

Statuses of a row: ``scored`` (has a value), ``unscored`` (the log gives no value), ``refused`` (the model
declined), ``error`` (the sample failed), ``unreadable`` (a value that is no number). Only ``scored`` rows have
a value; none of the others is 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, Protocol

import polars as pl

from benchwright.errors import Fault
from benchwright.logs.log_file import LogFile

STATUSES = ("scored", "unscored", "refused", "error", "unreadable")

# One row per (run, task, doc_id, filter, metric, repeat).
ROW_SCHEMA: dict[str, Any] = {
    "task": pl.String,  # the smallest thing with a mean of its own
    "benchmark": pl.String,  # what the task belongs to, where the log says so
    "version": pl.String,  # version of the task
    "doc_id": pl.String,  # id of the item inside its task, as text
    "item_hash": pl.String,  # sha256 of the item's text, where the log has it
    "cluster": pl.String,  # sha256 of what the item shares with others of its task (a passage), where it is named
    "metric": pl.String,
    "filter": pl.String,  # answer extractor; null where there is only one
    "value": pl.Float64,
    "higher_is_better": pl.Boolean,  # direction of the item's value; null if unknown
    "status": pl.String,
    "trials": pl.Int64,  # how many samples the value is a mean of
    "repeat": pl.Int64,  # epoch or sample number where one item was run several times, from 0
    "line": pl.Int64,  # line (or record) in the file
    "file": pl.String,
}
ROW_DEFAULTS: dict[str, Any] = {"status": "scored", "trials": 1, "repeat": 0}

# One row per (run, task, doc_id, repeat) of a multiple-choice item.
CHOICE_SCHEMA: dict[str, Any] = {
    "task": pl.String,
    "doc_id": pl.String,
    "repeat": pl.Int64,
    "gold": pl.Int64,  # position of the right choice
    "logprob": pl.List(pl.Float64),  # log-likelihood of each choice
    "chars": pl.List(pl.Int64),  # length of each choice in characters, bytes, tokens; null where unknown
    "bytes": pl.List(pl.Int64),
    "tokens": pl.List(pl.Int64),
}
CHOICE_DEFAULTS: dict[str, Any] = {"repeat": 0}

# One row per (run, task, filter, metric): what a results file states.
SCORE_SCHEMA: dict[str, Any] = {
    "task": pl.String,
    "benchmark": pl.String,
    "version": pl.String,
    "metric": pl.String,
    "filter": pl.String,
    "value": pl.Float64,
    "stderr": pl.Float64,
    "n": pl.Int64,  # items behind it
    "of": pl.Int64,  # items of the whole task, where the log says so
    "higher_is_better": pl.Boolean,
    "is_group": pl.Boolean,  # an aggregate over other tasks
    "line": pl.Int64,
    "file": pl.String,
}
SCORE_DEFAULTS: dict[str, Any] = {"is_group": False}

# One row per (task, doc_id): the item's text, kept only where the user asks for it.
ITEM_SCHEMA: dict[str, Any] = {
    "task": pl.String,
    "doc_id": pl.String,
    "item_hash": pl.String,
    "text": pl.String,
}
ITEM_DEFAULTS: dict[str, Any] = {}

# Kind of table -> its schema and what a column is where a reader does not give it.
KINDS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "rows": (ROW_SCHEMA, ROW_DEFAULTS),
    "choices": (CHOICE_SCHEMA, CHOICE_DEFAULTS),
    "scores": (SCORE_SCHEMA, SCORE_DEFAULTS),
    "items": (ITEM_SCHEMA, ITEM_DEFAULTS),
}

Columns = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Run:
    """Facts of one evaluation run, the same for all its rows.

    Attributes
    ----------
    model
        Name from the payload (organisation/name, or a path); never cut out of a file name if the payload has it.
    run
        What tells this run from others of the same model: a run id, folder or time stamp.
    revision
        Revision of the model; model @ revision is the identity.
    seed, step, axis, dose
        Training or evaluation seed, checkpoint, training axis and dose in its native unit, where stated.
    created
        When the run was made, ISO 8601; the later of two re-runs counts.
    finished
        False where the log says that the run failed, was cut off or has only started.
    limit
        True where the run took only part of the items on purpose.
    setting
        What was varied on purpose and makes two runs different and not repeats: shots, prompt, temperature,
        direct or tuned; None where there is one way only.
    dose_unit
        What the dose counts (token, example, prompt, step), where stated.
    replicate
        True where the log itself tells this run from others that answer the same question: none of them replaces
        another.
    """

    model: str
    run: str
    revision: str | None = None
    seed: int | None = None
    step: int | None = None
    axis: str | None = None
    dose: float | None = None
    created: str | None = None
    finished: bool = True
    limit: bool = False
    setting: str | None = None
    dose_unit: str | None = None
    replicate: bool = False


@dataclass(frozen=True, slots=True)
class Unit:
    """Files of one format that are read together: one file, or those of one folder."""

    format: str
    files: tuple[LogFile, ...]

    @property
    def folder(self) -> str:
        """The folder of the files, relative to what was given, '' for its root."""
        parent = PurePosixPath(self.files[0].name).parent.as_posix()
        return "" if parent == "." else parent


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What a user may choose about reading."""

    max_line: int = 64 * 2**20
    keep_text: bool = False  # keep the items' texts and not only their hashes


class Sink(Protocol):
    """Where a reader puts what it finds. Columns are sequences of one length, or one value for all rows."""

    options: ReadOptions

    def rows(self, run: Run, columns: Columns) -> None:
        """Add item rows: columns of ``ROW_SCHEMA``."""

    def choices(self, run: Run, columns: Columns) -> None:
        """Add choice log-likelihoods: columns of ``CHOICE_SCHEMA``."""

    def scores(self, run: Run, columns: Columns) -> None:
        """Add task scores that a file states: columns of ``SCORE_SCHEMA``."""

    def items(self, run: Run, columns: Columns) -> None:
        """Add item texts: columns of ``ITEM_SCHEMA``; they go nowhere unless ``options.keep_text``."""

    def fault(self, file: str, reason: str, *, line: int | None = None, column: str | None = None) -> None:
        """Report something that cannot be used; reading goes on."""

    def note(self, text: str) -> None:
        """Say something that a reader of the panel should know."""


def frame(columns: Columns, schema: Mapping[str, Any], defaults: Mapping[str, Any]) -> pl.DataFrame:
    """Return a block as a frame of the whole schema: single values repeated, what is not given filled in.

    >>> frame({"task": "t", "doc_id": ["1", "2"], "value": [0.0, None]}, ROW_SCHEMA, ROW_DEFAULTS)["trials"].to_list()
    [1, 1]
    """
    unknown = set(columns) - set(schema)
    if unknown:
        raise KeyError(f"no such columns: {', '.join(sorted(unknown))}")
    lengths = {len(value) for value in columns.values() if _is_column(value)}
    if len(lengths) > 1:
        raise ValueError(f"columns of different lengths: {sorted(lengths)}")
    height = lengths.pop() if lengths else 1
    series = []
    for name, kind in schema.items():
        value = columns.get(name, defaults.get(name))
        if _is_column(value):
            series.append(pl.Series(name, value, dtype=kind, strict=False))
        else:
            series.append(pl.Series(name, [value], dtype=kind).new_from_index(0, height))
    return pl.DataFrame(series)


def _is_column(value: Any) -> bool:
    return isinstance(value, pl.Series) or (isinstance(value, Iterable) and not isinstance(value, (str, bytes)))


@dataclass(slots=True)
class MemorySink:
    """A sink that keeps everything: for small logs and tests."""

    options: ReadOptions = field(default_factory=ReadOptions)
    runs: list[Run] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    _blocks: dict[str, list[pl.DataFrame]] = field(default_factory=lambda: {kind: [] for kind in KINDS})

    def rows(self, run: Run, columns: Columns) -> None:
        self._add("rows", run, columns)

    def choices(self, run: Run, columns: Columns) -> None:
        self._add("choices", run, columns)

    def scores(self, run: Run, columns: Columns) -> None:
        self._add("scores", run, columns)

    def items(self, run: Run, columns: Columns) -> None:
        if self.options.keep_text:
            self._add("items", run, columns)

    def fault(self, file: str, reason: str, *, line: int | None = None, column: str | None = None) -> None:
        self.faults.append(Fault(file, reason, line=line, column=column))

    def note(self, text: str) -> None:
        self.notes.append(text)

    def table(self, kind: str) -> pl.DataFrame:
        """Return all blocks of one of ``KINDS``; ``run_id`` is the run's position in ``runs``."""
        blocks = self._blocks[kind]
        return pl.concat(blocks) if blocks else pl.DataFrame(schema=KINDS[kind][0] | {"run_id": pl.Int64})

    def _add(self, kind: str, run: Run, columns: Columns) -> None:
        block = frame(columns, *KINDS[kind])
        if run not in self.runs:
            self.runs.append(run)
        self._blocks[kind].append(block.with_columns(run_id=pl.lit(self.runs.index(run), dtype=pl.Int64)))


def text_hash(*texts: str) -> str:
    """Return the sha256 of an item's texts, so that items can be compared without being stored."""
    import hashlib

    digest = hashlib.sha256()
    for text in texts:
        digest.update(text.encode("utf-8", "surrogatepass"))
        digest.update(b"\x00")
    return digest.hexdigest()


def columns_of(records: Sequence[Mapping[str, Any]], names: Iterable[str]) -> dict[str, list[Any]]:
    """Turn records into columns, None where a record lacks a name."""
    return {name: [record.get(name) for record in records] for name in names}
