"""Reading a file by the first table format that claims it."""

from __future__ import annotations

from pathlib import Path

from benchwright.logs import long_table, matrix, score_tables
from benchwright.logs.log_file import Head, LogFile
from benchwright.logs.record import MemorySink, ReadOptions, Unit

FORMATS = (*score_tables.FORMATS, *matrix.FORMATS, long_table.FORMAT)


def read(path: Path, name: str | None = None, options: ReadOptions | None = None) -> MemorySink:
    """Read a file by the first table format that claims it."""
    file = LogFile(path, name or path.name)
    head = Head(file.name, file.head())
    sink = MemorySink() if options is None else MemorySink(options=options)
    form = next(form for form in FORMATS if form.sniff(head))
    form.read(Unit(form.name, (file,)), sink)
    return sink


def written(path: Path, content: str | bytes) -> MemorySink:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return read(path)


def models(sink: MemorySink) -> set[str]:
    return {run.model for run in sink.runs}
