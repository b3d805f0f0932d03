"""Whether a folder holds a whole panel: the shape of its manifest, the files that it lists, and their columns.

Of a Parquet file only the footer is read, so that a large panel opens as fast as a small one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from benchwright.errors import DataError, Fault, UsageError
from benchwright.logs.record import KINDS
from benchwright.panel.identity import CELL_SCHEMA
from benchwright.panel.ingest import MANIFEST
from benchwright.panel.store import RUN_SCHEMA, SCHEMA_VERSION, fault_table, run_table

AGAIN = "make the panel again, in a new folder (an old one keeps its parts): `benchwright ingest LOG... -o NEW`"
SHAPE = {"counts": dict, "units": list, "notes": list, "duplicates": str}
WORDS = {dict: "an object", list: "a list", str: "a text"}


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return the manifest of a panel whose files are there and have the columns that they should have.

    Raises
    ------
    UsageError
        The folder holds no finished panel, or one of another version.
    DataError
        The panel is damaged.
    """
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except OSError:
        hint = "make one with `benchwright ingest LOG... -o PANEL`"
        raise UsageError(f"{folder} holds no panel", hint=hint) from None
    except ValueError as error:
        raise _damaged(folder, [Fault(MANIFEST, str(error))]) from None
    if not isinstance(manifest, dict):
        raise _damaged(folder, [Fault(MANIFEST, "not an object")])
    version = manifest.get("schema", 0)
    if type(version) is not int:
        raise _damaged(folder, [Fault(MANIFEST, f"`schema` is {version!r} and no whole number")])
    if version > SCHEMA_VERSION:
        raise UsageError(f"{folder} was made by a newer benchwright ({manifest.get('benchwright')})")
    if version < SCHEMA_VERSION:
        raise UsageError(f"{folder} was made by an older benchwright", hint="run `benchwright ingest` again")
    # each is looked at only where what came before is whole
    faults = _shape_faults(manifest) or _table_faults(folder) or _part_faults(folder, manifest)
    if faults:
        raise _damaged(folder, faults)
    return manifest


def _damaged(folder: Path, faults: list[Fault]) -> DataError:
    return DataError(f"the panel {folder} is damaged", faults=faults, hint=AGAIN)


def _shape_faults(manifest: dict[str, Any]) -> list[Fault]:
    wrong = [f"`{name}` is not {WORDS[kind]}" for name, kind in SHAPE.items() if type(manifest.get(name)) is not kind]
    if not wrong and type(manifest["counts"].get("rows")) is not int:
        wrong.append("`counts` has no number of `rows`")
    if not wrong and not all(map(_is_unit, manifest["units"])):
        wrong.append("`units` must hold objects with a `part` and numbers of `rows`, `choices` and `scores`")
    return [Fault(MANIFEST, reason) for reason in wrong]


def _is_unit(unit: Any) -> bool:
    if not isinstance(unit, dict) or not isinstance(unit.get("part"), str):
        return False
    is_name = unit["part"] not in ("", ".", "..") and Path(unit["part"]).name == unit["part"]
    return is_name and all(type(unit.get(kind, 0 if kind == "items" else None)) is int for kind in KINDS)


def _table_faults(folder: Path) -> list[Fault]:
    facts = {"run_name": pl.String, **{name: kind for name, kind in RUN_SCHEMA.items() if name != "run"}}
    tables: dict[str, Mapping[str, Any]] = {
        "runs": run_table([]).schema,
        "cells": CELL_SCHEMA | facts | {"file": pl.String, "active": pl.Boolean, "why": pl.String},
        "faults": fault_table([]).schema,
    }
    return [fault for name, kinds in tables.items() for fault in _faults(folder, folder / f"{name}.parquet", kinds)]


def _part_faults(folder: Path, manifest: dict[str, Any]) -> list[Fault]:
    faults = []
    for unit in manifest["units"]:
        for kind, (kinds, _) in KINDS.items():
            if not unit.get(kind):
                continue
            place = folder / "parts" / unit["part"]
            files = sorted(place.glob(f"{kind}-*.parquet"))
            found = [fault for file in files for fault in _faults(folder, file, kinds | {"run": pl.Int32})]
            if not found and (n := sum(map(_height, files))) != unit[kind]:
                at = f"parts/{unit['part']}/{kind}-*.parquet"
                found = [Fault(at, f"{n:,} rows are there, and {MANIFEST} says {unit[kind]:,}")]
            faults += found
    return faults


def _height(file: Path) -> int:
    return int(pl.scan_parquet(file, glob=False).select(pl.len()).collect().item())


def _faults(folder: Path, file: Path, kinds: Mapping[str, Any]) -> list[Fault]:
    """Return what is wrong with the columns of a file."""
    name = file.relative_to(folder).as_posix()
    try:
        found = pl.scan_parquet(file, glob=False).collect_schema()
    except FileNotFoundError:
        return [Fault(name, "it is missing")]
    except (OSError, pl.exceptions.PolarsError):
        return [Fault(name, "it is no whole Parquet file")]
    return [
        Fault(name, f"it holds {found[column]}, not {kind}" if column in found else "it is missing", column=column)
        for column, kind in kinds.items()
        if found.get(column) != kind
    ]
