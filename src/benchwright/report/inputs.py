"""What an audit was asked to read, and ``inputs.json``, which says it beside the report, relative to its folder.

A report and its source that are moved together stay readable; no path of a machine is in the file, unless the two lie
on different drives.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchwright import __version__
from benchwright._json import json_safe
from benchwright.config import SECTIONS, TABLES, Config
from benchwright.errors import DataError, Fault
from benchwright.logs.item_tables import ItemTables

RECORD = "inputs.json"
PATHS = ("source", "weights", "welfare", "activities", "runs", "game")
LISTS_OF_PATHS = ("judges", "loadings")


@dataclass(frozen=True, slots=True)
class AuditInputs:
    """The arguments of :func:`benchwright.audit` that name what is read; see there."""

    source: str | Path | ItemTables | None = None
    without: tuple[str, ...] = ()
    judges: tuple[str | Path, ...] = ()
    weights: str | Path | None = None
    welfare: str | Path | None = None
    loadings: tuple[str | Path, ...] = ()
    activities: str | Path | None = None
    runs: str | Path | None = None
    engine: str = "polars"
    game: str | Path | None = None


def record_text(inputs: AuditInputs, config: Config, folder: Path) -> str:
    """Return the record of a report in ``folder``: what was read, and every choice that is not the default."""
    said: dict[str, Any] = {name: _told(getattr(inputs, name), folder) for name in PATHS}
    said |= {name: [_told(one, folder) for one in getattr(inputs, name)] for name in LISTS_OF_PATHS}
    said |= {"without": list(inputs.without), "engine": inputs.engine}
    record = {"benchwright": __version__, "inputs": said, "choices": chosen(config)}
    return json.dumps(json_safe(record), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def read_record(folder: Path) -> tuple[AuditInputs, Config]:
    """Return what the report in ``folder`` was made from, its paths as seen from here, and its choices.

    Raises
    ------
    DataError
        The record is damaged.
    ConfigError
        A choice is unknown to this version.
    """
    path = folder / RECORD
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        said = record["inputs"]
        given: dict[str, Any] = {name: _seen(said[name], folder) for name in PATHS}
        given |= {name: tuple(_seen(one, folder) for one in said[name]) for name in LISTS_OF_PATHS}
        inputs = AuditInputs(**given, without=tuple(map(str, said["without"])), engine=str(said["engine"]))
        choices = [(str(key), one["value"], str(one["set_by"])) for key, one in record["choices"].items()]
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise DataError(
            f"{path} is damaged",
            faults=[Fault(RECORD, reason)],
            hint="name the source itself: benchwright serve SOURCE, or make the report again",
        ) from None
    config = Config()
    for key, value, source in choices:
        config = config.replace({key: value}, source=source)
    return inputs, config


def chosen(config: Config) -> dict[str, dict[str, Any]]:
    """Return the choices that were set, or differ from the default: value, and what set it, by dotted key."""
    default, found = Config(), {}
    for section in (*SECTIONS, *TABLES):
        mine, plain = _entries(getattr(config, section)), _entries(getattr(default, section))
        for name, value in mine.items():
            key = f"{section}.{name}"
            if key in config.sources or value != plain.get(name):
                found[key] = {"value": _plain(value), "set_by": config.sources.get(key, "the caller")}
    return found


def _entries(section: Any) -> Mapping[str, Any]:
    if isinstance(section, Mapping):
        return section
    return {spec.name: getattr(section, spec.name) for spec in dataclasses.fields(section)}


def _plain(value: Any) -> Any:
    """Return a price or a source of welfare as the table that a benchwright.toml would hold."""
    if not dataclasses.is_dataclass(value):
        return list(value) if isinstance(value, tuple) else value
    return {name: one for name, one in _entries(value).items() if one is not None}


def _told(value: str | Path | None, folder: Path) -> dict[str, str] | None:
    """Return a path relative to the report, or what is no path (a data set, a URI) as it is."""
    if value is None:
        return None
    text = str(value)
    if "://" in text or not (Path(text).exists() or "*" in text):
        return {"name": text}
    try:
        relative = os.path.relpath(text, folder)
    except ValueError:  # on another drive
        return {"path": str(Path(text).resolve())}
    return {"path": Path(relative).as_posix()}


def _seen(said: Mapping[str, str] | None, folder: Path) -> str | None:
    if said is None:
        return None
    return str(said["name"]) if "name" in said else os.path.normpath(folder / said["path"])
