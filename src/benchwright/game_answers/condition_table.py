"""Score tables out of long tables that name the condition of each score, such as base and fine-tuned.

A row is one score: ``model``, ``task``, ``condition`` and ``score``, perhaps ``metric``, ``filter`` and ``stderr``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from benchwright._words import count
from benchwright.errors import DataError, Fault, UsageError
from benchwright.game_answers.cell_table import CellTable
from benchwright.logs.table_columns import GENERIC, ROLES, higher_is_better, plain
from benchwright.panel.names import listed, matching, shown
from benchwright.ranking_game.protocols import ScoreTables

CONDITIONS = ("condition", "protocol", "setting")
DIRECT = ("direct", "base", "before", "baseline", "untuned", "direct_eval", "zero_shot")
NO_FILTER = "none"  # as lm-eval writes it
CHOSEN_BY = ("model", "task", "metric", "filter")


@dataclass(frozen=True, slots=True)
class Score:
    """One score, and the line that states it."""

    model: str
    task: str
    metric: str
    filter: str
    condition: str
    value: float
    stderr: float
    line: int


def has_conditions(names: Iterable[str]) -> bool:
    """Return whether columns are those of a table of scores under conditions.

    >>> has_conditions(["model", "condition", "task", "value"]), has_conditions(["model", "task", "value"])
    (True, False)
    """
    known = {plain(name) for name in names}
    return all(known.intersection(words) for words in (ROLES["model"], ROLES["task"], CONDITIONS, GENERIC))


def protocols_of_conditions(
    table: CellTable,
    *,
    conditions: Sequence[str] = (),
    models: Sequence[str] | None = None,
    task: str | None = None,
    metric: str | None = None,
    filter: str | None = None,  # noqa: A002  the logs' word
) -> ScoreTables:
    """Return the score tables of two conditions, direct and tuned.

    Parameters
    ----------
    table
    conditions : two names, the direct one first
        Needed where there are more than two, or neither of two is called ``base`` or the like.
    models, task, metric, filter
        Which scores; ``*`` is any text, ``!`` leaves out.

    Raises
    ------
    UsageError
        A name is not there, the conditions are not two, or a task is left with several metrics or filters.
    DataError
        A cell cannot be used, or a score is there twice.
    """
    scores = _read(table)
    for name, pattern in zip(CHOSEN_BY, (models, task, metric, filter), strict=True):
        if pattern is not None:
            kept = matching(name, list(dict.fromkeys(getattr(one, name) for one in scores)), pattern)
            scores = [one for one in scores if getattr(one, name) in kept]
    pair = _pair([one.condition for one in scores], conditions)
    scores = [one for one in scores if one.condition in pair]
    _one_kind_a_task(scores)
    _once(table.file, scores)
    missing = sum(not np.isfinite(one.value) for one in scores)
    scores = [one for one in scores if np.isfinite(one.value)]
    both = set.intersection(*({one.model for one in scores if one.condition == name} for name in pair))
    gone = list(dict.fromkeys(one.model for one in scores if one.model not in both))
    scores = [one for one in scores if one.model in both]
    notes = [f"{shown(pair[0])} is compared with {shown(pair[1])}"]
    if gone:
        notes.append(f"without a score under one of them, left out: {listed(gone)}")
    if missing:
        notes.append(f"{count(missing, 'score')} missing or not finite")
    return _tables(scores, pair, tuple(notes))


def _tables(scores: Sequence[Score], pair: tuple[str, str], notes: tuple[str, ...]) -> ScoreTables:
    names = tuple(dict.fromkeys(one.model for one in scores))
    tasks = tuple(dict.fromkeys(one.task for one in scores))
    place = {name: k for k, name in enumerate(names)}, {name: k for k, name in enumerate(tasks)}
    value, stderr = (np.full((2, len(tasks), len(names)), np.nan) for _ in range(2))
    for one in scores:
        lower = higher_is_better(one.metric if one.metric not in GENERIC else one.task) is False
        at = pair.index(one.condition), place[1][one.task], place[0][one.model]
        value[at], stderr[at] = -one.value if lower else one.value, one.stderr
    return ScoreTables(names, tasks, value[0], value[1], stderr[0], stderr[1], notes)


def _read(table: CellTable) -> list[Score]:
    """Return the rows as scores; the metric of a table without that column is its score's name."""
    known = {plain(name) for name in table.names}
    column = {
        what: next((word for word in words if word in known), "")
        for what, words in (
            *((what, ROLES[what]) for what in ("model", "task", "metric", "filter", "stderr")),
            ("condition", CONDITIONS),
            ("score", GENERIC),
        )
    }
    rows, without = len(table.rows), {"metric": column["score"], "filter": NO_FILTER}
    texts = {
        what: table.texts(column[what]) if column[what] else [without[what]] * rows
        for what in ("model", "task", "metric", "filter", "condition")
    }
    numbers = {
        what: table.numbers(column[what], gaps=True) if column[what] else np.full(rows, np.nan)
        for what in ("score", "stderr")
    }
    found = zip(*texts.values(), *(part.tolist() for part in numbers.values()), table.lines, strict=True)
    return [Score(m, t, metric, sieve, c, v, e, line) for m, t, metric, sieve, c, v, e, line in found]


def _pair(there: Collection[str], wanted: Sequence[str]) -> tuple[str, str]:
    """Return the direct condition and the tuned one."""
    names = list(dict.fromkeys(there))
    if not wanted:
        direct = [name for name in names if plain(name) in DIRECT]
        if len(names) == 2 and len(direct) == 1:
            return direct[0], next(name for name in names if name != direct[0])
        raise UsageError(
            f"{count(len(names), 'condition')} are there: {listed(names, 12)}",
            hint="say which two to compare, the direct one first, e.g. --conditions base,tuned",
        )
    if len(wanted) != 2 or wanted[0] == wanted[1]:
        raise UsageError(f"`conditions` must be two different names, the direct one first, got {listed(wanted)}")
    if unknown := [name for name in wanted if name not in names]:
        raise UsageError(f"no condition is named `{shown(unknown[0])}`", hint=f"there are: {listed(names, 12)}")
    return wanted[0], wanted[1]


def _one_kind_a_task(scores: Sequence[Score]) -> None:
    """Raise where a task has scores of several metrics or filters: each would count as a task."""
    kinds: dict[str, set[tuple[str, str]]] = {}
    for one in scores:
        kinds.setdefault(one.task, set()).add((one.metric, one.filter))
    several = {task: of for task, of in kinds.items() if len(of) > 1}
    if several:
        task, of = next(iter(several.items()))
        by = [f"--{name}" for k, name in enumerate(CHOSEN_BY[2:]) if len({kind[k] for kind in of}) > 1]
        raise UsageError(
            f"{count(len(several), 'task')} with several kinds of scores, e.g. {shown(task)}: "
            f"{listed(' '.join(part for part in kind if part != NO_FILTER) for kind in sorted(of))}",
            hint=f"choose one with {', '.join(by)}",
        )


def _once(file: str, scores: Sequence[Score]) -> None:
    """Raise where a model has two scores on a task under a condition."""
    first: dict[tuple[str, str, str], int] = {}
    faults = [
        Fault(file, f"{listed(key)} is there already, in line {first[key]}", line=one.line)
        for one in scores
        if first.setdefault(key := (one.model, one.task, one.condition), one.line) != one.line
    ]
    if faults:
        raise DataError(f"{count(len(faults), 'row')} of {file} name what an earlier one names", faults=faults)
