"""Settings of the desk in ``benchwright.toml``: what would change, then the file in one piece, comments kept.

The file that is written makes ``benchwright audit`` use exactly the choices of the desk: those that differ from what it
says now are changed in their lines, added, or, where one is to be unset, turned into a comment. A file laid out so that
its lines cannot be changed is written anew, and the old one is kept beside it.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchwright._staging import write_whole
from benchwright.config import Config, load_config, toml_value
from benchwright.errors import ConfigError, UsageError
from benchwright.report.inputs import chosen

HEADER = re.compile(r"\s*\[\s*([A-Za-z_][A-Za-z0-9_]*)\s*\]\s*(?:#.*)?$")
HINT = "may this folder be written? choose another file with --config"
FIRST = "# Choices of a benchwright run, as set on the desk; `benchwright config` prints all with their reasons.\n"


@dataclass(frozen=True, slots=True)
class Change:
    """One key that changes: its value in the file, or the default, and the new one; None where unset."""

    key: str
    old: Any
    new: Any


@dataclass(frozen=True, slots=True)
class Plan:
    """What writing would do: ``old`` is the file's text now, None where there is none; ``anew`` loses its layout."""

    path: Path
    old: str | None
    new: str
    changes: tuple[Change, ...]
    anew: bool = False

    @property
    def backup(self) -> Path:
        """Where the old file is kept if it is written anew."""
        return self.path.with_name(f"{self.path.name}.bak")


def plan_settings(path: Path, config: Config) -> Plan:
    """Return what has to change in a file so that it says what ``config`` says.

    Raises
    ------
    ConfigError
        The file that is there is no valid ``benchwright.toml``.
    """
    there = path.is_file()
    old = path.read_text(encoding="utf-8-sig") if there else None
    now = load_config(path) if there else Config()
    before, after, default = _values(now), _values(config), Config()
    changes = []
    for key in dict.fromkeys((*before, *after)):
        was = before.get(key, _default(default, key))
        new = after.get(key, _default(default, key))
        if was != new:
            changes.append(Change(key, was, new))
    text, anew = _edited(old or FIRST, changes), False
    if not _says(text, after):
        text, anew = FIRST + _whole(after), old is not None
    return Plan(path, old, text, tuple(changes), anew)


def write_settings(plan: Plan) -> Path:
    """Put the file of a plan in place.

    Raises
    ------
    UsageError
        The file has changed since the plan was made, or cannot be written; then it stays as it is.
    """
    now = plan.path.read_text(encoding="utf-8-sig") if plan.path.is_file() else None
    if now != plan.old:
        raise UsageError(f"{plan.path} has changed meanwhile", hint="look at the changes again, then write")
    if plan.anew and plan.old is not None:
        write_whole(plan.backup, plan.old.encode(), hint=HINT)
    write_whole(plan.path, plan.new.encode(), hint=HINT)
    return plan.path


def _values(config: Config) -> dict[str, Any]:
    return {key: one["value"] for key, one in chosen(config).items()}


def _default(default: Config, key: str) -> Any:
    """Return the default of a choice, None for an entry of a table that has none."""
    section, _, name = key.partition(".")
    part = getattr(default, section)
    if isinstance(part, Mapping):
        return _plain_price(part[name]) if name in part else None
    value = getattr(part, name)
    return list(value) if isinstance(value, tuple) else value


def _plain_price(price: Any) -> dict[str, Any]:
    fields = {name: getattr(price, name) for name in ("usd", "per", "unit", "units")}
    return {name: value for name, value in fields.items() if value is not None}


def _says(text: str, wanted: Mapping[str, Any]) -> bool:
    """Return whether a text is a file that makes the wanted choices, apart from those that are defaults anyway."""
    try:
        data = tomllib.loads(text)
        read = Config().replace(
            {f"{section}.{name}": value for section, entries in data.items() for name, value in entries.items()},
            source="",
        )
    except (tomllib.TOMLDecodeError, ConfigError, AttributeError):
        return False
    default, said = Config(), _values(read)
    keys = {*said, *wanted}
    return all(said.get(key, _default(default, key)) == wanted.get(key, _default(default, key)) for key in keys)


def _edited(text: str, changes: list[Change]) -> str:
    lines = text.splitlines()
    for change in changes:
        section, _, name = change.key.partition(".")
        start, end = _section(lines, section)
        key = re.compile(rf"\s*(?:{re.escape(name)}|\"{re.escape(name)}\")\s*=")
        at = next((i for i in range(start, end) if key.match(lines[i])), None)
        line = f"{name} = {toml_value(change.new)}"
        if change.new is None:
            if at is not None:
                lines[at] = f"# {lines[at]}"
        elif at is not None:
            lines[at] = line
        elif start:
            last = max(i for i in range(start - 1, end) if i == start - 1 or lines[i].strip())
            lines.insert(last + 1, line)
        else:
            lines += ["", f"[{section}]", line]
    return "\n".join(lines) + "\n"


def _section(lines: list[str], name: str) -> tuple[int, int]:
    """Return the lines of a table after its header; (0, 0) where it is not there."""
    headers = [(i, found[1]) for i, line in enumerate(lines) if (found := HEADER.match(line))]
    for place, (at, called) in enumerate(headers):
        if called == name:
            return at + 1, headers[place + 1][0] if place + 1 < len(headers) else len(lines)
    return 0, 0


def _whole(values: Mapping[str, Any]) -> str:
    sections: dict[str, list[str]] = {}
    for key, value in values.items():
        section, _, name = key.partition(".")
        if value is not None:
            sections.setdefault(section, []).append(f"{name} = {toml_value(value)}")
    return "".join(f"\n[{section}]\n" + "".join(f"{line}\n" for line in lines) for section, lines in sections.items())
