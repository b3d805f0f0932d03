"""Logs in, panel out: in parallel, one part per unit, resumable at any moment.

Parts that are there are reused, so that a killed run goes on where it was and a repeated one reads only what is
new or changed. The manifest is written last; without it a folder is no panel yet.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import polars as pl

from benchwright import __version__
from benchwright._json import json_safe
from benchwright._shown import Headline, Shown, ShownPart
from benchwright._words import count
from benchwright.errors import DataError, Fault, UsageError
from benchwright.logs.discover import Found, discover
from benchwright.logs.record import ReadOptions
from benchwright.panel.identity import (
    CELL_SCHEMA,
    Duplicates,
    choice_digests,
    name_notes,
    resolve,
    row_cells,
    score_cells,
    twin_notes,
)
from benchwright.panel.names import counted
from benchwright.panel.reading import Progress, read_missing
from benchwright.panel.store import SCHEMA_VERSION, Part, fault_table, load_part, run_table, unit_key

MANIFEST = "manifest.json"
FAULTS_SHOWN = 10


@dataclass(frozen=True, slots=True)
class Ingested(Shown):
    """What an ingest did: counts, faults and notes, for the summary on a screen."""

    panel: Path
    counts: dict[str, int]
    faults: tuple[Fault, ...]
    notes: tuple[str, ...]

    def _told(self) -> Iterable[ShownPart]:
        yield Headline(f"Panel {self.panel.name}: {counted(self.counts)}")
        yield from (str(fault) for fault in self.faults[:FAULTS_SHOWN])
        if len(self.faults) > FAULTS_SHOWN:
            yield f"and {count(len(self.faults) - FAULTS_SHOWN, 'more fault')}"
        yield from self.notes

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON-safe values."""
        record: dict[str, Any] = json_safe(
            {
                "panel": str(self.panel),
                "counts": self.counts,
                "faults": [asdict(fault) for fault in self.faults],
                "notes": list(self.notes),
            }
        )
        return record


def read_logs(
    sources: str | Path | Sequence[str | Path],
    out: str | Path,
    *,
    max_line: int = ReadOptions().max_line,
    keep_text: bool = False,
    duplicates: Duplicates = "latest",
    strict: bool = False,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Ingested:
    """Read evaluation logs of any mixture of formats into one panel.

    Parameters
    ----------
    sources
        Files, folders (searched), or glob patterns.
    out
        Folder of the panel: new, empty, or an earlier panel, whose parts are reused.
    max_line
        A longer line is a fault and is never held whole.
    keep_text
        Keep the items' texts (:meth:`benchwright.panel.panel.Panel.items`) and not only their hashes.
    duplicates
        What to do with several runs that answer the same question, see :mod:`benchwright.panel.identity`.
    strict
        Stop at the first unit with a fault.
    workers
        Processes; by default as many as there are cores, one for small logs.

    Raises
    ------
    UsageError
        A source does not exist, or ``out`` is no panel and not empty.
    DataError
        Nothing could be read, or ``strict`` met a fault, or the policy "error" met duplicates.
    """
    say = progress or (lambda _: None)
    panel = Path(out)
    given = [sources] if isinstance(sources, (str, Path)) else list(sources)
    options = ReadOptions(max_line=max_line, keep_text=keep_text)
    with _open(panel) as parts_folder:
        say("looking")
        found = discover(given)
        keys = {unit_key(unit, options, __version__): unit for unit in found.units}
        if strict and found.faults:
            raise DataError("--strict met a file that cannot be used", faults=found.faults)
        read_missing(keys, parts_folder, options, workers, strict, say)
        parts = [load_part(parts_folder / key) for key in keys]
        for left in parts_folder.iterdir():
            if left.name not in keys and not left.name.startswith("."):
                shutil.rmtree(left, ignore_errors=True)
        say("policies")
        return _finish(panel, parts, found, options, duplicates)


@contextmanager
def _open(panel: Path) -> Iterator[Path]:
    """Yield the folder of parts of a new or earlier panel; one ingest at a time."""
    if panel.exists() and not panel.is_dir():
        raise UsageError(f"output {panel} is not a folder", hint="choose another folder with -o")
    parts = panel / "parts"
    if panel.is_dir() and any(panel.iterdir()) and not parts.is_dir():
        raise UsageError(f"output folder {panel} is not empty and holds no panel", hint="choose a new folder with -o")
    try:
        parts.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot write {panel}: {error.strerror}", hint="choose another folder with -o") from None
    try:
        yield parts
    except BaseException:
        with suppress(OSError):  # a folder that holds nothing yet is no panel to go on with
            parts.rmdir()
            panel.rmdir()
        raise


def _finish(panel: Path, parts: list[Part], found: Found, options: ReadOptions, duplicates: Duplicates) -> Ingested:
    runs = run_table(parts)
    cells = resolve(_cells(panel, parts), runs, duplicates)
    faults = [*found.faults, *(fault for part in parts for fault in part.faults)]
    totals = {kind: sum(part.counts[kind] for part in parts) for kind in ("rows", "choices", "scores")}
    if not totals["rows"] and not totals["scores"]:
        why = "; ".join(dict.fromkeys(note for part in parts for note in part.notes))
        raise DataError(
            f"nothing could be read: no item rows and no scores{f' ({why})' if why else ''}",
            faults=faults,
            hint="the formats that are read are listed in docs/reference/log-formats.md",
        )
    counts = {
        "units": len(parts),
        "runs": runs.height,
        "models": runs.select("model", "revision").n_unique(),
        "tasks": cells["task"].n_unique(),
        **totals,
        **({"texts": sum(part.counts["items"] for part in parts)} if options.keep_text else {}),
        "cells": cells.height,
        "cells_left_out": int((~cells["active"]).sum()),
        "faults": len(faults),
        "passed_over": found.passed_over,
    }
    said = [*name_notes(runs["model"]), *twin_notes(cells), *(note for part in parts for note in part.notes)]
    notes = tuple(dict.fromkeys(said))
    manifest = {
        "benchwright": __version__,
        "schema": SCHEMA_VERSION,
        "options": asdict(options),
        "duplicates": duplicates,
        "counts": counts,
        "units": [{"part": part.key, "format": part.format, "files": part.files, **part.counts} for part in parts],
        "notes": notes,
    }
    _replace(panel / "runs.parquet", runs)
    _replace(panel / "cells.parquet", cells)
    _replace(panel / "faults.parquet", fault_table(faults))
    text = json.dumps(json_safe(manifest), ensure_ascii=False, indent=1) + "\n"
    fresh = panel / f".{MANIFEST}.new"
    fresh.write_text(text, encoding="utf-8", newline="\n")
    fresh.replace(panel / MANIFEST)
    return Ingested(panel, counts, tuple(faults), notes)


def _cells(panel: Path, parts: Iterable[Part]) -> pl.DataFrame:
    """Summarise every part's rows and scores per run and task."""
    frames = [pl.DataFrame(schema=CELL_SCHEMA)]
    for part in parts:
        for kind, summary in (("rows", row_cells), ("scores", score_cells)):
            if part.counts[kind]:
                folder = panel / "parts" / part.key
                table = summary(sorted(folder.glob(f"{kind}-*.parquet")))
                if kind == "rows" and part.counts["choices"]:
                    digests = choice_digests(sorted(folder.glob("choices-*.parquet")))
                    table = table.join(digests, on=["run", "task"], how="left", maintain_order="left")
                elif kind == "rows":
                    table = table.with_columns(choices_digest=None)
                table = table.with_columns(part=pl.lit(part.key), kind=pl.lit(kind))
                frames.append(table.select(pl.col(name).cast(dtype) for name, dtype in CELL_SCHEMA.items()))
    return pl.concat(frames)


def _replace(path: Path, table: pl.DataFrame) -> None:
    fresh = path.with_name(f".{path.name}.new")
    table.write_parquet(fresh)
    fresh.replace(path)
