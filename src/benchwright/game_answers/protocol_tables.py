"""Score tables under two protocols, before and after common tuning: from JSON, and from tables of columns.

A table of columns is wide, ``model`` and a pair ``TASK_before``, ``TASK_after`` (or ``_direct``, ``_tuned``) for each
task; or long, ``model``, ``task``, ``direct``, ``tuned`` and perhaps ``direct_stderr``, ``tuned_stderr``.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchwright._check import FloatArray
from benchwright.errors import DataError, Fault, UsageError
from benchwright.game_answers.cell_table import CellTable
from benchwright.logs.table_columns import higher_is_better, plain
from benchwright.panel.names import listed
from benchwright.ranking_game.input_columns import LONG, model_column, paired_tasks
from benchwright.ranking_game.protocols import ScoreTables


def read_protocols(path: str | Path) -> ScoreTables:
    """Read a JSON file of score tables that holds ``direct_eval`` and ``train_before_test``.

    Raises
    ------
    UsageError
        The file is missing or holds no score tables.
    DataError
        One of the two protocols is missing, or a cell cannot be read.
    """
    from benchwright.logs.log_file import Head, LogFile
    from benchwright.logs.record import MemorySink, Unit
    from benchwright.logs.score_tables import FORMATS

    file = Path(path)
    if not file.is_file():
        raise UsageError(f"{file} is no file", hint="give a game file, or a JSON file of score tables")
    log = LogFile(file, file.name)
    head = Head(file.name, log.head())
    form = next((one for one in FORMATS if one.sniff(head)), None)
    if form is None:
        raise UsageError(f"{file} holds no score tables", hint='write {"direct_eval": {TASK: {MODEL: SCORE}}, ...}')
    sink = MemorySink()
    form.read(Unit(form.name, (log,)), sink)
    if sink.faults:
        raise DataError(f"{len(sink.faults)} fault(s) in {file.name}", faults=sink.faults)
    scores = sink.table("scores")
    conditions = [run.setting for run in sink.runs]
    for name in ("direct_eval", "train_before_test"):
        if name not in conditions:
            raise DataError(
                f"{file.name} holds no `{name}`", hint="both protocols are needed: direct_eval, train_before_test"
            )
    models = tuple(dict.fromkeys(str(run.model) for run in sink.runs))
    tasks = tuple(scores["task"].unique(maintain_order=True).to_list())
    place = {name: k for k, name in enumerate(models)}, {name: k for k, name in enumerate(tasks)}
    filled = {name: np.full((2, len(tasks), len(models)), np.nan) for name in ("direct_eval", "train_before_test")}
    columns = scores.select("run_id", "task", "value", "stderr", "higher_is_better").iter_rows()
    for number, task, value, stderr, higher in columns:
        run = sink.runs[number]
        if run.setting in filled and value is not None:
            cell = filled[run.setting][:, place[1][task], place[0][str(run.model)]]
            cell[:] = (value if higher is not False else -value), np.nan if stderr is None else stderr
    direct, tuned = filled["direct_eval"], filled["train_before_test"]
    return ScoreTables(models, tasks, direct[0], tuned[0], direct[1], tuned[1])


def protocols_of_cells(table: CellTable) -> ScoreTables:
    """Return the score tables that a table of columns holds, wide or long, see the module's text.

    Scores of tasks whose name says that lower is better have their sign turned.

    Raises
    ------
    UsageError
        It has no such columns.
    DataError
        A cell is no number, or a model has two rows (of one task).
    """
    column = model_column(table.names)
    if column is None:
        raise UsageError(f"{table.file}: no column `model`")
    names = table.texts(plain(column))
    if all(table.column(name) for name in LONG):
        return _long(table, names)
    pairs = paired_tasks(table.names)
    if not pairs:
        raise UsageError(f"{table.file}: no task has columns _before and _after, or _direct and _tuned")
    _once(table, [(name,) for name in names])
    before, after = (np.stack([_scores(table, pairs[task][k], task) for task in pairs]) for k in (0, 1))
    unknown = np.full(before.shape, np.nan)
    read = {column, *(name for pair in pairs.values() for name in pair)}
    other = [name for name in table.names if name not in read]
    notes = (f"columns not read: {listed(other)}",) if other else ()
    return ScoreTables(tuple(names), tuple(pairs), before, after, unknown, unknown, notes)


def _long(table: CellTable, names: list[str]) -> ScoreTables:
    of = table.texts("task")
    _once(table, list(zip(names, of, strict=True)))
    models, tasks = tuple(dict.fromkeys(names)), tuple(dict.fromkeys(of))
    at = [tasks.index(task) for task in of], [models.index(name) for name in names]
    sign = np.array([-1.0 if higher_is_better(task) is False else 1.0 for task in of])
    filled: dict[str, FloatArray] = {}
    for name in ("direct", "tuned", "direct_stderr", "tuned_stderr"):
        values = np.full((len(tasks), len(models)), np.nan)
        if table.column(name):
            given = table.numbers(name, gaps=True)
            values[at] = given if name.endswith("stderr") else sign * given
        filled[name] = values
    stderr = filled["direct_stderr"], filled["tuned_stderr"]
    return ScoreTables(models, tasks, filled["direct"], filled["tuned"], *stderr)


def _scores(table: CellTable, column: str, task: str) -> FloatArray:
    values = table.numbers(plain(column), gaps=True)
    return -values if higher_is_better(task) is False else values


def _once(table: CellTable, keys: list[tuple[str, ...]]) -> None:
    """Raise where a model (or a model and task) has two rows."""
    first: dict[tuple[str, ...], int] = {}
    faults = [
        Fault(table.file, f"{listed(key)} is there already, in line {table.lines[first[key]]}", line=table.lines[k])
        for k, key in enumerate(keys)
        if first.setdefault(key, k) != k
    ]
    if faults:
        raise DataError(f"{len(faults)} row(s) of {table.file} name what an earlier one names", faults=faults)
