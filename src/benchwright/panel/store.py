"""The panel on disk: one folder of Parquet parts per unit of logs, and the tables that tell what is in them.

::

    panel/
      manifest.json        schema version, options, policies, units with their files and counts
      runs.parquet         one row per run: who was evaluated, when, how
      cells.parquet        one row per run and task: coverage, and whether the policy keeps it
      faults.parquet       everything that could not be used, with file, line, column, reason
      parts/<key>/         rows-000.parquet, choices-000.parquet, scores-000.parquet, unit.json;
                           items-000.parquet with --keep-text

A part appears whole or not at all and is keyed by what it was made from, so that an interrupted or repeated run
reuses it.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import polars as pl

from benchwright._json import json_safe
from benchwright._staging import move_in, staging
from benchwright.errors import Fault
from benchwright.logs.formats import BY_NAME
from benchwright.logs.record import KINDS, Columns, ReadOptions, Run, Unit, frame
from benchwright.logs.source_file import utf8

SCHEMA_VERSION = 3
FLUSH_ROWS = 50_000
FLUSH_TEXT_BYTES = 64 * 2**20  # item texts are written earlier: they may be long
RUN_SCHEMA: dict[str, Any] = {
    "model": pl.String,
    "run": pl.String,
    "revision": pl.String,
    "seed": pl.Int64,
    "step": pl.Int64,
    "axis": pl.String,
    "dose": pl.Float64,
    "created": pl.String,
    "finished": pl.Boolean,
    "limit": pl.Boolean,
    "setting": pl.String,
    "dose_unit": pl.String,
    "replicate": pl.Boolean,
}


@dataclass(frozen=True, slots=True)
class Part:
    """What unit.json says of one finished part."""

    key: str
    format: str
    files: tuple[tuple[str, int], ...]
    runs: tuple[Run, ...]
    counts: dict[str, int]
    faults: tuple[Fault, ...]
    notes: tuple[str, ...]


def unit_key(unit: Unit, options: ReadOptions, version: str) -> str:
    """Return a name for what a unit gives: changes with its files, the options and the program."""
    states = [(file.name, *_state(file.path)) for file in unit.files]
    if BY_NAME[unit.format].looks_around:
        folder = unit.files[0].path.parent
        around = sorted(path for place in (folder, folder.parent) for path in place.iterdir() if path.is_file())
        states += [(utf8(path.name), *_state(path)) for path in around]
    text = json.dumps([SCHEMA_VERSION, version, unit.format, states, asdict(options)])
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:24]


def _state(path: Path) -> tuple[int, int]:
    state = path.stat()
    return state.st_size, state.st_mtime_ns


def read_unit(unit: Unit, folder: Path, options: ReadOptions) -> None:
    """Read one unit into ``folder``, which appears whole or not at all."""
    with staging(folder) as stage:
        sink = PartSink(stage, options)
        try:
            BY_NAME[unit.format].read(unit, sink)
        except (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError, RecursionError) as error:
            # A reader met what its author did not foresee: the unit is a fault, the others go on.
            sink.fault(unit.files[0].name, f"{unit.format}: cannot be read: {type(error).__name__}: {error}")
        sink.close(unit)
        move_in(stage, folder)


def load_part(folder: Path) -> Part:
    """Return what a finished part says of itself."""
    record = json.loads((folder / "unit.json").read_text(encoding="utf-8"))
    return Part(
        key=folder.name,
        format=record["format"],
        files=tuple((name, size) for name, size in record["files"]),
        runs=tuple(Run(**run) for run in record["runs"]),
        counts=record["counts"],
        faults=tuple(Fault(**fault) for fault in record["faults"]),
        notes=tuple(record["notes"]),
    )


class PartSink:
    """A sink that writes blocks of rows as it gets them; memory does not grow with the log."""

    def __init__(self, folder: Path, options: ReadOptions) -> None:
        self.options = options
        self._folder = folder
        self._runs: dict[Run, int] = {}
        self._faults: list[Fault] = []
        self._notes: dict[str, None] = {}
        self._blocks: dict[str, list[pl.DataFrame]] = {kind: [] for kind in KINDS}
        self._counts = dict.fromkeys(KINDS, 0)
        self._written = dict.fromkeys(KINDS, 0)

    def rows(self, run: Run, columns: Columns) -> None:
        """Add item rows."""
        self._add("rows", run, columns)

    def choices(self, run: Run, columns: Columns) -> None:
        """Add choice log-likelihoods."""
        self._add("choices", run, columns)

    def scores(self, run: Run, columns: Columns) -> None:
        """Add task scores."""
        self._add("scores", run, columns)

    def items(self, run: Run, columns: Columns) -> None:
        """Add item texts; without ``keep_text`` they are not looked at."""
        if self.options.keep_text:
            self._add("items", run, columns)

    def fault(self, file: str, reason: str, *, line: int | None = None, column: str | None = None) -> None:
        """Report something that cannot be used."""
        self._faults.append(Fault(file, reason, line=line, column=column))

    def note(self, text: str) -> None:
        """Say something that a reader of the panel should know, once."""
        self._notes[text] = None

    def close(self, unit: Unit) -> None:
        """Write what is left, and unit.json."""
        for kind in KINDS:
            self._flush(kind)
        record = {
            "format": unit.format,
            "files": [(file.name, file.path.stat().st_size) for file in unit.files],
            "runs": [asdict(run) for run in self._runs],
            "counts": self._counts,
            "faults": [asdict(fault) for fault in self._faults],
            "notes": list(self._notes),
        }
        text = json.dumps(json_safe(record), ensure_ascii=True, indent=1)
        (self._folder / "unit.json").write_text(text + "\n", encoding="utf-8")

    def _add(self, kind: str, run: Run, columns: Columns) -> None:
        number = self._runs.setdefault(run, len(self._runs))
        block = frame(columns, *KINDS[kind]).with_columns(run=pl.lit(number, dtype=pl.Int32))
        self._blocks[kind].append(block)
        self._counts[kind] += block.height
        blocks = self._blocks[kind]
        is_long = kind == "items" and sum(part.estimated_size() for part in blocks) >= FLUSH_TEXT_BYTES
        if is_long or sum(part.height for part in blocks) >= FLUSH_ROWS:
            self._flush(kind)

    def _flush(self, kind: str) -> None:
        if not self._blocks[kind]:
            return
        path = self._folder / f"{kind}-{self._written[kind]:03d}.parquet"
        pl.concat(self._blocks[kind]).write_parquet(path, compression="zstd")
        self._written[kind] += 1
        self._blocks[kind].clear()


def run_table(parts: list[Part]) -> pl.DataFrame:
    """Return one row per run of all parts: part, number in it, format, files, and the run's facts."""
    rows = [
        {"part": part.key, "number": number, "format": part.format, "file": part.files[0][0], **asdict(run)}
        for part in parts
        for number, run in enumerate(part.runs)
    ]
    schema = {"part": pl.String, "number": pl.Int32, "format": pl.String, "file": pl.String, **RUN_SCHEMA}
    return pl.DataFrame(rows, schema=schema, orient="row")


def fault_table(faults: list[Fault]) -> pl.DataFrame:
    """Return faults as a table."""
    schema: dict[str, Any] = {"file": pl.String, "line": pl.Int64, "column": pl.String, "reason": pl.String}
    return pl.DataFrame([asdict(fault) for fault in faults], schema=schema)
