"""Wide tables: models by tasks, runs by tasks, items by models, or a bare matrix of numbers.

The name of the first column decides (:mod:`benchwright.logs.table_columns`). Rows of models whose cells are all 0
or 1, in more columns than a table of tasks has (20), are item rows: each column is an item. Without a header the
shorter side is the models, which are called ``model 1``, ``model 2`` ... or by the text in front of their rows.

The coding of the cells is inferred and said in a note: 0 or 1; counts of a stated total (``item (out of 100)`` as
the name of the first column), which are divided by it; scores from 0 to 1; or numbers kept as they are, log-odds
where some are negative and the first column's name does not say otherwise.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from typing import Any

from benchwright.logs.coding import Coding, item_block
from benchwright.logs.format import Format
from benchwright.logs.log_file import Head
from benchwright.logs.record import Run, Sink, Unit
from benchwright.logs.table_cells import as_number, as_text, number_or
from benchwright.logs.table_columns import (
    AGGREGATE,
    METADATA,
    OF_RUN,
    RANK,
    SUMMARY,
    Layout,
    higher_is_better,
    is_numeric,
    is_spread,
    label_place,
    layout,
    plain,
    recognise,
)
from benchwright.logs.table_file import TableFile, open_table, sniff_table
from benchwright.logs.table_rows import Faults, dose_of_tokens, seconds_of, stamp_of, step_of, whole
from benchwright.logs.tabular import shown

BLOCK = 20_000
SIZES = ("n", "count", "n_items", "n_samples", "num_samples")
MANY_COLUMNS = 20  # of 0 and 1: more are items, not tasks
WIDE: tuple[Layout, ...] = ("models", "runs", "items", "bare")
_TOTAL = re.compile(r"out of (\d{1,9})\b", re.I)
_NUMBERED = re.compile(r"(?:run|seed)?[ _-]*(\d{1,9})", re.I)


def sniff_matrix(head: Head) -> bool:
    """Whether a head shows a wide table whose first column, or lack of names, says what it is."""
    found = sniff_table(head)
    return found is not None and found[0] == "delimited" and layout(found[1], found[2]) in WIDE


def read_matrices(unit: Unit, sink: Sink) -> None:
    """Read wide tables."""
    for file in unit.files:
        faults = Faults(sink, file.name)
        table = open_table(file, sink.options.max_line, faults.line)
        kind = None if table is None else layout(table.names, table.sample)
        if table is not None and kind in WIDE:
            read_matrix(table, kind, sink, faults)
        elif table is not None:
            faults.add(1, None, "is no wide table; name the first column `model` or `item`")
        faults.close()


def read_matrix(table: TableFile, kind: Layout, sink: Sink, faults: Faults) -> None:
    """Read one wide table of a layout that :func:`benchwright.logs.table_columns.layout` told."""
    if kind == "bare":
        _read_bare(table, sink, faults)
        return
    columns = _usable(table, sink, faults)
    if kind == "items":
        _read_items(table, columns, sink, faults)
        return
    binary = _survey(table, columns)
    if kind == "models" and binary.binary and len(columns) > MANY_COLUMNS:
        _read_model_rows(table, columns, binary, sink, faults)
    else:
        _read_scores(table, columns, kind, sink, faults)


def _stem(table: TableFile) -> str:
    return PurePosixPath(table.file.name).name.split(".")[0]


def _usable(table: TableFile, sink: Sink, faults: Faults) -> list[int]:
    """Return the places of the columns that hold results; say which do not."""
    names, found, left = table.names, [], []
    label, words = label_place(names), [plain(name) for name in names]
    told = {recognise(names).get(role) for role in (*OF_RUN, "task", "subject")}
    for place, name in enumerate(names):
        if place <= label:
            continue
        if name and name in told:
            continue
        if name and name in names[label + 1 : place]:
            faults.add(1, name, "appears twice in the header; the first is read")
        elif not name:
            if is_numeric([row[place] for row in table.sample]):
                faults.add(1, None, f"column {place + 1} has numbers and no name; name it")
        elif plain(name) in SIZES or RANK.match(plain(name)) or METADATA.match(plain(name)) or is_spread(name, words):
            left.append(shown(name))
        elif is_numeric([row[place] for row in table.sample]) or not any(row[place] for row in table.sample):
            found.append(place)
        else:
            left.append(shown(name))
    if left:
        sink.note(f"{table.file.name}: columns that hold no scores are not read: {', '.join(left[:20])}")
    return found


def _cells(
    table: TableFile, columns: Sequence[int], faults: Faults | None
) -> Iterator[tuple[int, Sequence[Any], str, list[Any]]]:
    """Yield (line, row, name of the row, cells of the columns as numbers): None is missing, "" unreadable.

    Rows of summaries (``Mean``, ``Standard deviation``) are passed over.
    """
    report = faults or Faults(None, table.file.name)
    first = label_place(table.names)
    for line, row in table.rows(report.line):
        label = as_text(row[first]).strip()
        if label.casefold() in SUMMARY:
            continue
        found: list[Any] = []
        for place in columns:
            try:
                found.append(as_number(row[place]))
            except ValueError:
                column = table.names[place] if table.names else None
                report.add(line, column, f"`{shown(as_text(row[place]))}` is no number")
                found.append("")
        yield line, row, label, found


def _survey(table: TableFile, columns: Sequence[int]) -> Coding:
    """Go through a matrix once to see how it is coded."""
    stated = _TOTAL.search(table.names[label_place(table.names)]) if table.names else None
    coding = Coding(total=int(stated[1]) or None if stated else None)
    for _, _, _, cells in _cells(table, columns, None):
        for value in cells:
            if value is not None and value != "":
                coding.see(value)
    return coding


def _read_items(table: TableFile, columns: list[int], sink: Sink, faults: Faults) -> None:
    """Rows are items, columns models."""
    name, task = table.file.name, _stem(table)
    coding = _survey(table, columns)
    column = next((r for role in ("subject", "task") if (r := recognise(table.names).get(role))), None)
    place = None if column is None else table.names.index(column)
    told = f"task `{shown(task)}`" if column is None else f"the tasks of column `{shown(column)}`"
    _say(table, sink, coding, f"rows are items, columns {len(columns):,} models, of {told}")
    runs = [Run(table.names[place], task) for place in columns]
    lines: list[int] = []
    ids: list[str] = []
    tasks: list[str] = []
    values: list[list[Any]] = [[] for _ in columns]
    seen: set[tuple[str, str]] = set()
    again = 0

    def push() -> None:
        for run, held in zip(runs, values, strict=True):
            if ids:
                sink.rows(run, item_block(list(tasks), list(ids), held, list(lines), coding, name))
            held.clear()
        ids.clear()
        tasks.clear()
        lines.clear()

    for line, row, label, cells in _cells(table, columns, faults):
        if not label:
            faults.add(line, table.names[0], "names no item")
            continue
        of = task if place is None else as_text(row[place]).strip()
        if not of:
            faults.add(line, column, "names no task")
            continue
        again += (of, label) in seen
        seen.add((of, label))
        _check_counts(table, columns, cells, line, coding, faults)
        lines.append(line)
        ids.append(label)
        tasks.append(of)
        for held, value in zip(values, cells, strict=True):
            held.append(value)
        if len(ids) * len(columns) >= 10 * BLOCK:
            push()
    push()
    if again:
        sink.note(f"{name}: {again:,} rows name an item of a row before; all are kept")


def _check_counts(
    table: TableFile, columns: Sequence[int], cells: Sequence[Any], line: int, coding: Coding, faults: Faults
) -> None:
    if coding.total is None:
        return
    for place, value in zip(columns, cells, strict=True):
        if value not in (None, "") and not 0 <= value <= coding.total:
            faults.add(line, table.names[place], f"counts {value:g} right answers of {coding.total}")


def _read_model_rows(table: TableFile, columns: list[int], coding: Coding, sink: Sink, faults: Faults) -> None:
    """Rows are models, columns items of 0 and 1."""
    name, task = table.file.name, _stem(table)
    _say(table, sink, coding, f"rows are models, columns {len(columns):,} items, of task `{shown(task)}`")
    ids = [table.names[place] for place in columns]
    for line, _, label, cells in _cells(table, columns, faults):
        if not label:
            faults.add(line, table.names[0], "names no model")
            continue
        _push_row(Run(label, task), task, ids, cells, line, coding, name, sink)


def _push_row(
    run: Run, task: str, ids: list[str], cells: Sequence[Any], line: int, coding: Coding, file: str, sink: Sink
) -> None:
    for start in range(0, len(ids), BLOCK):
        part = slice(start, start + BLOCK)
        sink.rows(run, item_block(task, ids[part], cells[part], line, coding, file))


def _read_scores(table: TableFile, columns: list[int], kind: Layout, sink: Sink, faults: Faults) -> None:
    """Rows are models (or runs of one model), columns tasks; an empty cell is missing."""
    name, stem = table.file.name, _stem(table)
    tasks = [table.names[place] for place in columns]
    aggregate = [AGGREGATE.match(plain(task)) is not None for task in tasks]
    model = str(PurePosixPath(name).parent / stem)
    what = "models" if kind == "models" else f"runs of one model, called `{shown(model)}` after the file"
    sink.note(f"{name}: rows are {what}, columns {len(columns) - sum(aggregate):,} tasks; metric `score`")
    spread = {task: place for task in tasks for place, other in enumerate(table.names) if _is_error(other, task)}
    spreads = [spread.get(task) for task in tasks]
    wanted = [*columns, *(place for place in spreads if place is not None)]
    empty = rows = 0
    seen: dict[Run, int] = {}
    for line, row, label, everything in _cells(table, wanted, faults):
        cells, rest = everything[: len(columns)], iter(everything[len(columns) :])
        errors = [None if place is None else next(rest) for place in spreads]
        if not label:
            faults.add(line, table.names[0], f"names no {'model' if kind == 'models' else 'run'}")
            continue
        run = _run_of(table, row, label if kind == "models" else model, label if kind == "runs" else stem, line, faults)
        if run in seen:
            faults.add(line, table.names[0], f"`{shown(label)}` is named on line {seen[run]} too; both are kept")
        seen.setdefault(run, line)
        rows += 1
        kept = [place for place, value in enumerate(cells) if value not in (None, "")]
        empty += sum(value is None for value in cells)
        columns_of = {
            "task": [tasks[place] for place in kept],
            "metric": "score",
            "value": [cells[place] for place in kept],
            "stderr": [errors[place] or None for place in kept],
            "higher_is_better": [higher_is_better(tasks[place]) for place in kept],
            "is_group": [aggregate[place] for place in kept],
            "line": line,
            "file": name,
        }
        if kept:
            sink.scores(run, columns_of)
    if empty:
        sink.note(f"{name}: {empty:,} of {rows * len(columns):,} cells are empty: missing, not 0")
    _note_summaries(table, sink)


def _run_of(table: TableFile, row: Sequence[Any], model: str, run: str, line: int, faults: Faults) -> Run:
    """Return the run of a row: what columns say of it, or the number in its name (``Run 7``)."""
    roles = {role: name for role, name in recognise(table.names).items() if role in OF_RUN}
    cells = {role: as_text(row[table.names.index(name)]).strip() for role, name in roles.items()}
    number = _NUMBERED.fullmatch(run)
    seed = int(number[1]) if number else None
    if "seed" in roles and seed is None:
        seed = whole(cells["seed"], line, roles["seed"], faults)
    tokens, axis = dose_of_tokens(cells.get("tokens", "")), cells.get("axis") or None
    time = seconds_of(cells["time"], line, roles["time"], faults) if "time" in roles else None
    return Run(
        model,
        run if number else cells.get("run") or run,
        revision=cells.get("revision") or None,
        seed=seed,
        step=step_of(cells.get("step", "")),
        axis=axis or (None if tokens is None else "PT"),
        dose=number_or(cells.get("dose"), tokens),
        dose_unit=cells.get("dose_unit") or (None if tokens is None else "token"),
        created=None if time is None else stamp_of(time),
    )


def _is_error(name: str, task: str) -> bool:
    """Whether a column holds the standard errors of a task."""
    return plain(name) in (f"{plain(task)}_stderr", f"{plain(task)}_se", f"{plain(task)}_std_err")


def _note_summaries(table: TableFile, sink: Sink) -> None:
    first = label_place(table.names)
    labels = (as_text(row[first]).strip() for _, row in table.rows(lambda _line, _reason: None))
    found = [label for label in labels if label.casefold() in SUMMARY]
    if found:
        sink.note(f"{table.file.name}: summary rows are not read: {', '.join(found[:10])}")


def _read_bare(table: TableFile, sink: Sink, faults: Faults) -> None:
    """Numbers without a header, perhaps with a name in front of each row: the shorter side is the models."""
    name, task = table.file.name, _stem(table)
    named = not is_numeric([row[0] for row in table.sample])
    coding, labels, lines = Coding(), [], []
    held: list[array[float]] = []
    bad: dict[tuple[int, int], Any] = {}  # cells that are no numbers
    start = 1 if named else 0
    for line, row in table.rows(faults.line):
        values = array("d")
        for place, cell in enumerate(row[start:]):
            try:
                value: Any = as_number(cell)
            except ValueError:
                faults.add(line, None, f"cell {place + start + 1}, `{shown(as_text(cell))}`, is no number")
                value = ""
            if value is None or value == "":
                bad[len(held), place] = value
                value = 0.0
            else:
                coding.see(value)
            values.append(value)
        held.append(values)
        lines.append(line)
        labels.append(as_text(row[0]).strip() if named else "")
    if not held:
        faults.add(None, None, "holds no rows of numbers")
        return
    height, width = len(held), len(held[0])
    by_row = height <= width
    side = "rows" if by_row else "columns"
    models, items = (height, width) if by_row else (width, height)
    called = "by the text in front of their rows" if named and by_row else "`model 1`, `model 2`, ..."
    ids = [str(number) for number in range(1, items + 1)] if by_row or not named else labels
    _say(table, sink, coding, f"no header; {models:,} models are the {side} (the shorter side), called {called}")
    sink.note(f"{name}: {items:,} items of task `{shown(task)}`{'' if ids is labels else ' are numbered from 1'}")
    for model in range(models):
        label = labels[model] if named and by_row else ""
        run = Run(label or f"model {model + 1}", task)
        for first in range(0, items, BLOCK):
            part = range(first, min(items, first + BLOCK))
            if by_row:
                values_of = [bad.get((model, item), held[model][item]) for item in part]
            else:
                values_of = [bad.get((item, model), held[item][model]) for item in part]
            line_of: Any = lines[model] if by_row else [lines[item] for item in part]
            sink.rows(run, item_block(task, [ids[item] for item in part], values_of, line_of, coding, name))


def _say(table: TableFile, sink: Sink, coding: Coding, what: str) -> None:
    sink.note(f"{table.file.name}: {what}; coding: {coding.text()}")


FORMATS = (Format("wide table", sniff_matrix, read_matrices),)
