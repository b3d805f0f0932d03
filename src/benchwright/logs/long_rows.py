"""The rows of a long table, record by record: runs, tasks, items, values and their statuses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from benchwright.logs.long_plan import COUNTED, LongPlan
from benchwright.logs.record import Run, Sink, text_hash
from benchwright.logs.table_cells import MISSING, as_number, as_text, number_or
from benchwright.logs.table_columns import higher_is_better, plain
from benchwright.logs.table_file import TableFile
from benchwright.logs.table_rows import (
    Duplicates,
    Faults,
    dose_of_tokens,
    seconds_of,
    stamp_of,
    step_of,
    whole,
)
from benchwright.logs.tabular import shown

BLOCK = 20_000  # rows of one run that are pushed together
HELD = 100_000  # rows of all runs that are held
HELD_IN_TIME = 300_000  # the same where rows must be ordered by time
STATUSES = {
    **dict.fromkeys(("error", "failed", "crashed", "timeout", "exception", "cancelled"), "error"),
    **dict.fromkeys(("refused", "refusal"), "refused"),
    "unscored": "unscored",
}
UNREADABLE = "unreadable"
DIRECTIONS = {"true": True, "1": True, "false": False, "0": False}
ITEM_NAMES = ("task", "doc_id", "item_hash", "text")
CHOICE_NAMES = ("task", "doc_id", "repeat", "gold", "logprob")
ROW_NAMES = (
    *("task", "benchmark", "version", "doc_id", "item_hash", "cluster", "metric", "filter"),
    *("value", "higher_is_better"),
    *("status", "trials", "repeat", "line"),
)
SCORE_NAMES = (
    *("task", "benchmark", "version", "metric", "filter", "value", "stderr", "n", "higher_is_better", "line"),
)


@dataclass(slots=True)
class _Held:
    """Rows of one run that are not yet in the sink; ``facts`` are a run's without its time."""

    facts: dict[str, Any]
    rows: list[tuple[Any, ...]] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    choices: list[tuple[Any, ...]] = field(default_factory=list)
    texts: list[tuple[Any, ...]] = field(default_factory=list)
    seen: int = 0  # records so far


class LongReader:
    """Reads one long table."""

    def __init__(self, table: TableFile, sink: Sink, faults: Faults) -> None:
        self._table, self._sink, self._faults = table, sink, faults
        self._file = table.file
        self._plan = plan = LongPlan(table)
        self._roles, self._places, self._rows, self._optional = plan.roles, plan.places, plan.rows, plan.optional
        self._cells: Any = ()
        self._held: dict[Any, _Held] = {}
        self._tasks: dict[Any, tuple[str, str | None, str | None, str | None]] = {}
        self._count = 0
        self._left_out = 0
        self._duplicates = Duplicates()
        self._timed = "time" in self._roles

    def read(self) -> None:
        """Put the whole table into the sink."""
        for text in self._plan.notes():
            self._sink.note(text)
        for name in self._plan.used:
            if self._table.names.count(name) > 1:
                self._faults.add(1, name, "appears twice in the header; the first is read")
        for line, cells in self._table.records(self._plan.used, self._faults.line):
            self._record(line, cells)
            if self._count >= (HELD_IN_TIME if self._timed else HELD):
                if self._timed:
                    self._sink.note(f"{self._file.name}: too long to be put in order of time")
                    self._timed = False
                self._flush()
        self._flush()
        if self._left_out:
            self._sink.note(f"{self._file.name}: {self._left_out:,} empty scores are missing, not 0")
        if again := self._duplicates.text():
            self._sink.note(f"{self._file.name}: {again}")

    def _record(self, line: int, cells: Any) -> None:
        self._cells = cells
        held = self._run_of(line)
        if held is None:
            return
        item = self._text("item") if self._plan.items else None
        if self._plan.items and not item:
            self._faults.add(line, self._roles["item"], "names no item")
            return
        named = self._task_of(line)
        if named is None:
            return
        task, benchmark, version, sieve = named
        if self._plan.by_text:
            item, held.seen = str(held.seen), held.seen + 1
        elif self._plan.replicates:
            item = "replicates"
        repeat, hashed, cluster, time = 0, None, None, None
        if self._optional:
            hashed = self._text("hash")
            if shared := self._text("cluster"):
                cluster = text_hash(shared)
            if "repeat" in self._places:
                repeat = whole(self._get("repeat"), line, self._roles["repeat"], self._faults) or 0
            if self._timed:
                time = seconds_of(self._get("time"), line, self._roles["time"], self._faults)
        if self._plan.text_places and hashed is None:
            texts = [as_text(cells[place]) for place in self._plan.text_places]
            hashed = text_hash(*texts)
            if self._sink.options.keep_text:
                held.texts.append((task, item, hashed, "\n".join(filter(None, texts))))
        for metric, column, value, trials, status, direction in self._measured(line, cells):
            if self._rows:
                held.rows.append(
                    (
                        *(task, benchmark, version, item, hashed, cluster, metric, sieve),
                        *(value, direction, status, trials, repeat, line),
                    )
                )
                key = (id(held), task, item, sieve, metric, repeat)
                if before := self._duplicates.see(key, value, line):
                    self._duplicates.tell(before, (held.facts["model"], task, item), value, line)
            else:
                if status != "scored":
                    self._left_out += status == "unscored"
                    continue
                spread = self._plan.spread.get(column)
                error = None if spread is None else number_or(cells[spread], None)
                n = trials if self._plan.is_n else None
                held.rows.append((task, benchmark, version, metric, sieve, value, error, n, direction, line))
                if before := self._duplicates.see((id(held), task, sieve, metric), value, line):
                    self._duplicates.tell(before, (held.facts["model"], task, metric), value, line)
        self._count += self._plan.width
        if self._timed:
            held.times += [float("-inf") if time is None else time] * (len(held.rows) - len(held.times))
        if self._rows and "choices" in self._places:
            self._choices(held, task, item or "", repeat)
        if len(held.rows) >= BLOCK and not self._timed:
            self._push(held)

    def _task_of(self, line: int) -> tuple[str, str | None, str | None, str | None] | None:
        """Return task, benchmark, version and filter of the record at hand, None where it names no task."""
        key = self._plan.task_key(self._cells)
        try:
            found = self._tasks.get(key)
        except TypeError:  # a list or dictionary as a name
            key, found = None, None
        if found is not None:
            return found
        task, benchmark = self._text("task"), None
        if self._plan.benchmark is not None:
            benchmark = as_text(self._cells[self._plan.at[self._plan.benchmark]]) or None
        if subject := self._text("subject"):
            benchmark = benchmark or task
            task = f"{task}_{subject}" if task and not subject.startswith(task) else subject
        elif task is None and ("task" in self._places or "subject" in self._places):
            self._faults.add(line, self._roles.get("task") or self._roles["subject"], "names no task")
            return None
        found = (task or self._plan.task, benchmark, self._text("version"), self._text("filter"))
        if key is not None and len(self._tasks) < HELD:
            self._tasks[key] = found
        return found

    def _measured(self, line: int, cells: Any) -> Iterator[tuple[Any, ...]]:
        """Yield (metric, column, value, trials, status, direction) of each value that a record holds."""
        stated, direction, state, trials = None, None, None, 1
        if self._optional:
            stated, state = self._text("metric"), self._status()
            better = self._get("direction")
            direction = better if isinstance(better, bool) else DIRECTIONS.get(str(better).strip().lower())
            if "trials" in self._roles:
                count = whole(self._get("trials"), line, self._roles["trials"], self._faults)
                trials = 1 if count is None or count < 0 else count
        for column, place, metric, better, of in self._plan.plans:
            number = self._number(line, column, cells[place])
            total: Any = of
            if total == COUNTED:
                total = self._number(line, self._roles["trials"], self._get("trials"))
            status, value = "scored", number
            if number == UNREADABLE or total == UNREADABLE:
                status = UNREADABLE
            elif number is None or (of is not None and not total):
                status = "unscored"
            elif of is not None:
                value = number / total
                if not 0 <= value <= 1:
                    self._faults.add(line, column, f"counts {number:g} right answers of {total:g}")
                    status = UNREADABLE
            status = state or status
            if stated is not None:
                metric, better = stated, higher_is_better(stated)
            better = better if direction is None else direction
            count = of if isinstance(of, int) and of != COUNTED else trials
            yield metric, column, value if status == "scored" else None, count, status, better

    def _number(self, line: int, column: str, cell: Any) -> float | str | None:
        try:
            return as_number(cell)
        except ValueError:
            self._faults.add(line, column, f"`{shown(as_text(cell))}` is no number")
            return "unreadable"

    def _get(self, role: str) -> Any:
        """Return the cell of a role in the record at hand, None where the table has no such column."""
        place = self._places.get(role)
        return None if place is None else self._cells[place]

    def _text(self, role: str) -> str | None:
        return as_text(self._get(role)) or None

    def _status(self) -> str | None:
        """Return the status that a record states, None where its value decides."""
        stated = self._get("status")
        if isinstance(stated, str) and (known := STATUSES.get(stated.strip().lower())):
            return known
        error = self._get("error")
        if error is None or error is False:
            return None
        word = as_text(error).strip().lower()
        if error is True or word in ("true", "yes"):
            return "error"
        return None if word in MISSING or number_or(word, None) is not None else "error"

    def _run_of(self, line: int) -> _Held | None:
        """Return the run of the record at hand, None where it names no model."""
        key = self._plan.run_key(self._cells)
        try:
            held = self._held.get(key)
        except TypeError:  # a list or dictionary as a name
            key = as_text(key)
            held = self._held.get(key)
        if held is not None:
            return held
        faults, roles, get, text = self._faults, self._roles, self._get, self._text
        model = (text("model") or "").strip()
        if not model and "model" in self._places:
            faults.add(line, roles["model"], "names no model")
            return None
        settings = [(name.split(".")[-1], as_text(self._cells[self._plan.at[name]])) for name in self._plan.settings]
        said = [f"{name}={cell}" for name, cell in settings if cell.strip()]
        seed = whole(get("seed"), line, roles["seed"], faults) if "seed" in roles else None
        step = None
        if (cell := as_text(get("step"))) and (step := step_of(cell)) is None:
            if (number_or(cell, None) or 0) < 0:
                faults.add(line, roles["step"], f"`{cell}` is a negative step")
                return None
            said.append(f"{plain(roles['step'])}={cell}")
        axis, dose, unit = text("axis"), number_or(get("dose"), None), text("dose_unit")
        if dose is None and (tokens := dose_of_tokens(as_text(get("tokens")))) is not None:
            axis, dose, unit = axis or "PT", tokens, "token"
        named = text("run")
        facts = {
            "model": model or self._plan.path,
            "run": named or self._plan.stem,
            "revision": text("revision"),
            "seed": seed,
            "step": step,
        }
        facts |= {"axis": axis, "dose": dose, "dose_unit": unit, "setting": " ".join(said) or None}
        facts["replicate"] = bool(named)
        held = self._held[key] = _Held(facts)
        return held

    def _choices(self, held: _Held, task: str, item: str, repeat: int) -> None:
        """Pass on log-likelihoods of named choices: a dictionary of numbers that are none above 0."""
        stated, gold = self._get("choices"), as_text(self._get("gold"))
        if not isinstance(stated, dict) or gold not in stated:
            return
        found = [number_or(value, None) for value in stated.values()]
        if len(found) < 2 or any(value is None or value > 0 for value in found):
            return
        place = list(stated).index(gold)
        held.choices.append((task, item, repeat, place, found))

    def _flush(self) -> None:
        for held in self._held.values():
            self._push(held)
        self._count = 0

    def _push(self, held: _Held) -> None:
        if not held.rows:
            return
        rows = held.rows
        if held.times:
            order = sorted(range(len(rows)), key=held.times.__getitem__)
            rows = [rows[place] for place in order]
            held.facts["created"] = stamp_of(max(held.times))
        names = ROW_NAMES if self._rows else SCORE_NAMES
        columns: dict[str, Any] = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
        columns["file"] = self._file.name
        run = Run(**held.facts)
        (self._sink.rows if self._rows else self._sink.scores)(run, columns)
        if held.choices:
            stated = zip(*held.choices, strict=True)
            self._sink.choices(run, dict(zip(CHOICE_NAMES, map(list, stated), strict=True)))
        if held.texts:
            kept = zip(*held.texts, strict=True)
            self._sink.items(run, dict(zip(ITEM_NAMES, map(list, kept), strict=True)))
        held.rows, held.times, held.choices, held.texts = [], [], [], []
