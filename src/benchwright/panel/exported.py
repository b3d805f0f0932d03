"""Rows that ``benchwright panel export`` wrote, or another program in their form: the columns that an audit needs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import narwhals.stable.v2 as nw
import polars as pl

from benchwright.errors import UsageError
from benchwright.logs.record import ROW_SCHEMA
from benchwright.panel.panel import IDENTITY
from benchwright.panel.store import RUN_SCHEMA

SCHEMA = {name: (RUN_SCHEMA | ROW_SCHEMA).get(name, pl.String) for name in IDENTITY} | {
    name: ROW_SCHEMA[name]
    for name in ("task", "metric", "filter", "doc_id", "value", "status", "trials", "higher_is_better")
}
HINT = "write it with `benchwright panel export PANEL -o FILE.parquet --table rows`"
# Type -> what it is called, and the type in the frame
_TYPES: dict[Any, tuple[str, Any]] = {
    pl.String: ("text", nw.String()),
    pl.Boolean: ("truth values", nw.Boolean()),
    pl.Float64: ("numbers", nw.Float64()),
    pl.Int64: ("whole numbers", nw.Int64()),
}


def checked_rows(frame: nw.LazyFrame[Any], source: object) -> nw.LazyFrame[Any]:
    """Return rows with each column of the type that a panel has; whole numbers can be ids.

    Raises
    ------
    UsageError
        A column is missing, or cannot be of that type; or the source is a panel that was not finished.
    """
    if any(Path(str(source)).glob("parts/*/unit.json")):
        hint = f"finish it with `benchwright ingest LOG... -o {source}`"
        raise UsageError(f"{source} is a panel without its manifest.json", hint=hint)
    found = dict(frame.collect_schema())
    if lacking := [name for name in SCHEMA if name not in found]:
        raise UsageError(f"{source} lacks the columns {', '.join(lacking)}", hint=HINT)
    wrong = [
        f"`{name}` must hold {_TYPES[kind][0]}, not {found[name]}"
        for name, kind in SCHEMA.items()
        if not _can_be(found[name], kind)
    ]
    if wrong:
        raise UsageError(f"{source} has columns of the wrong type: {'; '.join(wrong)}", hint=HINT)
    casts = {name: to for name, kind in SCHEMA.items() if found[name] != (to := _TYPES[kind][1])}
    return frame.with_columns(nw.col(name).cast(to) for name, to in casts.items())


def _can_be(found: Any, kind: Any) -> bool:
    if found == nw.Unknown:  # all null
        return True
    if kind == pl.String:
        return found.is_integer() or found in (nw.String, nw.Categorical, nw.Enum)
    return bool(found == nw.Boolean if kind == pl.Boolean else found.is_numeric())
