"""Long tables: one row per (model, task, item, metric), or per (model, task, metric), with the columns users have.

Columns are recognised by the synonyms of :mod:`benchwright.logs.table_columns`. A table with item ids gives item
rows; one without gives task scores; one with replicates (``sample``, ``replicate``) but no items gives rows of one
item called ``replicates``. Where no column names the model or the task, the file's name stands for it, with a note.
Rows of a table with a time column are put in order of time; a run's ``created`` is its latest time.
"""

from __future__ import annotations

from benchwright.logs.format import Format
from benchwright.logs.log_file import Head
from benchwright.logs.long_rows import LongReader
from benchwright.logs.matrix import read_matrix
from benchwright.logs.record import Sink, Unit
from benchwright.logs.table_columns import SAMPLE_LOG_KEYS, Layout, layout, recognise
from benchwright.logs.table_file import TableFile, open_table, sniff_table
from benchwright.logs.table_rows import REFUSALS, Faults
from benchwright.logs.tabular import shown


def sniff_long(head: Head) -> bool:
    """Whether a head shows a long table, or one that needs a word from its user."""
    found = sniff_table(head)
    if found is None:
        return False
    kind, names, sample = found
    if kind == "parquet":
        return True
    if kind != "delimited":
        return layout(names, sample) == "long" and not SAMPLE_LOG_KEYS & set(names)
    return layout(names, sample) in ("long", "unclear")


def read_long(unit: Unit, sink: Sink) -> None:
    """Read tables; a Parquet table may also be wide."""
    for file in unit.files:
        faults = Faults(sink, file.name)
        table = open_table(file, sink.options.max_line, faults.line)
        if table is None:
            continue
        kind = layout(table.names, table.sample)
        if kind == "long":
            LongReader(table, sink, faults).read()
        elif kind in ("models", "runs", "items", "bare"):
            read_matrix(table, kind, sink, faults)
        else:
            _refuse(kind, table, faults)
        faults.close()


def _refuse(kind: Layout | None, table: TableFile, faults: Faults) -> None:
    listed = ", ".join(shown(name) for name in table.names[:12])
    if kind in REFUSALS:
        faults.add(None, None, REFUSALS[kind])
    elif {"item", "task"} <= recognise(table.names).keys():
        reason = f"has items and no scores; the columns are {listed}: name the one of the scores `score`, or put "
        faults.add(1, None, reason + "`item` first where each other column is a model")
    else:
        reason = f"cannot tell models from items; the columns are {listed}: name the first column `model` where each "
        reason += "row is a model and each column a task, or `item` where each row is an item and each column a model"
        faults.add(1, None, reason)


FORMAT = Format("long table", sniff_long, read_long)
