"""What the columns of a long table stand for: found once, before its records are gone through."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from operator import itemgetter
from pathlib import PurePosixPath
from typing import Any

from benchwright.logs.log_file import LogFile
from benchwright.logs.table_cells import as_text, number_or
from benchwright.logs.table_columns import (
    GENERIC,
    ITEM_TEXTS,
    PASS_RATES,
    RATES,
    SETTINGS,
    STATED_TOTAL,
    TEXTS,
    higher_is_better,
    plain,
    recognise,
    value_columns,
)
from benchwright.logs.table_file import TableFile
from benchwright.logs.tabular import shown

COUNTED = -1  # the total of a count stands in a column of its own
OPTIONAL = frozenset(("metric", "direction", "status", "error", "trials", "repeat", "time", "hash", "cluster"))
_OF_RUN = re.compile(r"(?:^|[-_ ])(?:step|checkpoint|ckpt|seed|tokens)[-_]?\d+[kmbt]?(?=[-_ ]|$)", re.I)


class LongPlan:
    """The columns of one long table by what they stand for, and where their cells are in a record."""

    def __init__(self, table: TableFile) -> None:
        self._table = table
        self.file: LogFile = table.file
        names = table.names
        self.roles = recognise(names)
        self.values = value_columns(names, table.sample)
        known = {plain(name): name for name in reversed(names)}
        self.items = "item" in self.roles
        self.texts = [known[word] for word in TEXTS if word in known] if self.items else []
        if not self.items and any(word in known for word in ITEM_TEXTS):
            self.texts = [known[word] for word in (*TEXTS, "passage") if word in known]
        self.by_text = bool(self.texts) and not self.items
        if not self.items and self.texts in ([], [known.get("passage")]):
            self.roles.pop("cluster", None)  # a passage is the item itself
        self.replicates = not self.items and not self.by_text and "repeat" in self.roles
        self.rows = self.items or self.by_text or self.replicates
        settings = [known[word] for word in SETTINGS if word in known and known[word] not in self.roles.values()]
        if self.by_text:  # a condition of the item, not of the run
            settings = [name for name in settings if plain(name) != "condition"]
        self.settings = settings
        self.benchmark = self._coarser(known)
        self.totals = {name: found for name in self.values if (found := _stated_total(name)) is not None}
        self.counted = self._find_counts()
        errors = {f"{plain(v)}_stderr": v for v in self.values}
        self.stderrs = {errors[word]: name for word, name in known.items() if word in errors}
        self.used = self._find_used()
        self.at = {name: place for place, name in enumerate(self.used)}
        self.places = {role: self.at[name] for role, name in self.roles.items()}
        self.text_places = [self.at[name] for name in self.texts]
        self.plans = self._plan()
        self.width = len(self.plans)
        self.spread = self._find_spread()
        passed = any(plain(name) in PASS_RATES for name in self.values)
        self.is_n = "trials" in self.roles and not passed
        self.optional = not OPTIONAL.isdisjoint(self.roles)
        parts: tuple[str, ...] = (*("model", "revision", "run", "seed", "step", "axis", "dose", "dose_unit", "tokens"),)
        self.run_key = self._key([*(self.roles[role] for role in parts if role in self.roles), *settings])
        parts = ("task", "subject", "version", "filter")
        named = [self.roles[role] for role in parts if role in self.roles]
        self.task_key = self._key([*named, *([] if self.benchmark is None else [self.benchmark])])
        self.stem = PurePosixPath(self.file.name).name.split(".")[0]
        self.path = self._model_of_file()
        self.task = self._task_of_file()

    def _key(self, names: list[str]) -> Callable[[Any], Any]:
        """Return what takes the cells of some columns out of a record."""
        places = [self.at[name] for name in names]
        return itemgetter(*places) if places else lambda _: ""

    def _plan(self) -> list[tuple[str, int, str, bool | None, int | None]]:
        """Return (column, its place, metric, direction, total of its counts) of each value of a record."""
        found: list[tuple[str, int, str, bool | None, int | None]] = []
        if self.counted:
            column = self.roles["successes"]
            found.append((column, self.at[column], "correct", True, COUNTED))
        for column in self.values:
            known, total = plain(column), self.totals.get(column)
            metric = "score" if known in GENERIC else known
            metric = "correct" if known == "is_correct" or total is not None else metric
            found.append((column, self.at[column], metric, higher_is_better(metric), total))
        return found

    def _find_spread(self) -> dict[str, int]:
        """Return the place of the standard error of each column; one without a metric is of the first."""
        found = {column: self.at[name] for column, name in self.stderrs.items()}
        if "stderr" in self.roles and self.plans:
            found.setdefault(self.plans[0][0], self.at[self.roles["stderr"]])
        return found

    def _task_of_file(self) -> str:
        """Return the file's name without what tells its run: model, settings, step, seed, tokens."""
        names, name = self._table.names, self.stem
        told = [self.roles[role] for role in ("model", "revision") if role in self.roles] + self.settings
        for row in self._table.sample[:1]:
            for column in told:
                if part := as_text(row[names.index(column)]).rsplit("/", 1)[-1]:
                    name = re.sub(rf"(^|[-_ ]){re.escape(part)}(?=[-_ ]|$)", "", name)
        if "seed" in self.roles or "step" in self.roles:
            name = _OF_RUN.sub("", name)
        return name.strip("-_ ") or self._folder() or self.stem

    def _model_of_file(self) -> str:
        """Return the file's path, without seed and step where columns have them: runs of one model are one model."""
        told = "seed" in self.roles or "step" in self.roles
        stem = _OF_RUN.sub("", self.stem).strip("-_ ") if told else self.stem
        parent = PurePosixPath(self.file.name).parent
        return str(parent / stem) if stem else str(parent) if parent.name else self._folder() or self.stem

    def _folder(self) -> str:
        return self.file.path.resolve().parent.name

    def _coarser(self, known: dict[str, str]) -> str | None:
        """Return the column of the benchmark, where another names the task."""
        words = ("dataset", "dataset_name", "benchmark", "benchmark_name", "benchmark_id")
        found = next((known[word] for word in reversed(words) if word in known), None)
        return None if found == self.roles.get("task") else found

    def _find_counts(self) -> bool:
        """Tell whether ``correct`` counts right answers of ``count``: above 1 somewhere, or what pass1 says."""
        roles, values, names = self.roles, self.values, self._table.names
        if "trials" not in roles:
            return False
        if "successes" in roles:
            self.values = [name for name in values if plain(name) not in RATES]
            return True
        correct = next((name for name in values if plain(name) == "correct"), None)
        if correct is None:
            return False
        place, rate = names.index(correct), next((v for v in values if plain(v) in PASS_RATES), None)
        above = any(number_or(row[place], 0) > 1 for row in self._table.sample)
        if not above and rate is None:
            return False
        self.roles["successes"] = correct
        self.values = [name for name in values if name not in (correct, rate)]
        return True

    def _find_used(self) -> list[str]:
        used = [*self.roles.values(), *self.values, *self.texts, *self.settings, *self.stderrs.values()]
        if self.benchmark is not None:
            used.append(self.benchmark)
        return list(dict.fromkeys(used))

    def notes(self) -> Iterator[str]:
        """Yield what a reader of the panel should know about the columns."""
        name = self.file.name
        unused = [shown(column) for column in self._table.names if column not in self.used and column]
        if unused:
            more = f" and {len(unused) - 20} more" if len(unused) > 20 else ""
            yield f"{name}: columns not read: {', '.join(unused[:20])}{more}"
        if "model" not in self.roles:
            yield f"{name}: no column names the model; it is called `{shown(self.path)}` after the file"
        if "task" not in self.roles and "subject" not in self.roles:
            yield f"{name}: no column names the task; it is called `{shown(self.task)}` after the file"
        if self.replicates:
            column = self.roles["repeat"]
            yield f"{name}: `{column}` counts replicates, not items; name the column `item` if it does name items"
        if self.by_text:
            yield f"{name}: no column names the items; the rows of a run are numbered from 0, their texts hashed"
        for column, total in self.totals.items():
            yield f"{name}: `{shown(column)}` counts right answers of {total}; value = count / {total}"
        if self.counted:
            counts, of = self.roles["successes"], self.roles["trials"]
            yield f"{name}: `{counts}` counts right answers of `{of}`; value = {counts} / {of}"


def _stated_total(name: str) -> int | None:
    found = STATED_TOTAL.search(name)
    return None if found is None else int(found[1] or found[2]) or None
