"""Parts of a game file: keys that are known, sections, numbers, forms by name. Errors name the key and where it is."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import date, time
from decimal import Decimal
from typing import Any

from benchwright.errors import UsageError
from benchwright.ranking_game.forms import Form

Table = Mapping[str, Any]


def known(table: Iterable[str], names: Iterable[str], what: str) -> None:
    """Raise for a key that is none of ``names``; ``what`` says what it would be a key of."""
    allowed = list(names)
    for name in table:
        if name not in allowed:
            near = difflib.get_close_matches(name, allowed, n=1)
            hint = f"did you mean `{near[0]}`?" if near else f"known: {', '.join(allowed)}"
            raise UsageError(f"`{name}` is not {what}", hint=hint)


def section(data: Table, name: str, *, needed: bool = True) -> Table:
    """Return the table of a name; an empty one where there is none and none is needed."""
    found = data.get(name)
    if found is None and not needed:
        return {}
    if not isinstance(found, Mapping):
        raise UsageError(f"[{name}] is missing" if found is None else f"`{name}` must be a table, write [{name}]")
    return found


def tables(data: Table, name: str) -> list[Table]:
    """Return the tables of a list."""
    found = data.get(name, [])
    if not isinstance(found, list) or not all(isinstance(table, Mapping) for table in found):
        raise UsageError(f"`{name}` must be a list of tables, write [[{name}]]")
    return found


def number(value: Any, where: str) -> float:
    """Return a number of a file."""
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)):
        raise UsageError(f"{where} must be a number, got {_as_written(value)}")
    try:
        found = float(value)
    except OverflowError:
        raise UsageError(f"{where} is too large for a number: it has {len(str(value))} digits") from None
    if not math.isfinite(found):
        raise UsageError(f"{where} must be finite, got {_as_written(value)}")
    return found


def numbers(values: Any, where: str) -> list[float]:
    """Return a list of numbers."""
    if not isinstance(values, list):
        raise UsageError(f"{where} must be a list of numbers, got {_as_written(values)}")
    return [number(value, where) for value in values]


def whole(value: Any, where: str) -> int:
    """Return a whole number >= 0."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise UsageError(f"{where} must be a whole number >= 0, got {_as_written(value)}")
    return value


def flag(value: Any, where: str) -> bool:
    """Return true or false."""
    if not isinstance(value, bool):
        raise UsageError(f"{where} must be true or false, got {_as_written(value)}")
    return value


def text(value: Any, where: str) -> str:
    """Return a text of one line that is not blank."""
    if not isinstance(value, str) or not value.strip():
        raise UsageError(f"{where} must be text, got {_as_written(value)}")
    if not value.isprintable():
        raise UsageError(f"{where} must be printable text on one line, got {value!r}")
    return value


def _as_written(value: Any) -> str:
    """Return a value as a file has it; a missing one by that word."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, (Decimal, date, time)) else repr(value)


def form_of(table: Table, forms: Mapping[str, Form], where: str) -> Form:
    """Return the form that a table names."""
    name = table.get("form")
    if not isinstance(name, str) or name not in forms:
        near = difflib.get_close_matches(str(name), forms, n=1)
        hint = f"did you mean `{near[0]}`?" if near and name is not None else None
        got = "none is given" if name is None else f"got {name!r}"
        raise UsageError(f"{where}: `form` must be one of {', '.join(forms)}, {got}", hint=hint)
    return forms[name]


def parameters_of(table: Table, form: Form, where: str) -> dict[str, float]:
    """Return the parameters of a form, as a table gives them or by default."""
    known(table, ("form", *form.parameters), f"a key of {where}")
    found = {}
    for name, default in form.parameters.items():
        value = table.get(name, default)
        if value is None:
            raise UsageError(f"{where}: `{name}` is missing, {form.formula} needs it")
        found[name] = number(value, f"{where}: `{name}`")
    return found


@contextmanager
def inside(where: str) -> Iterator[None]:
    """Say in an error where the value stands."""
    try:
        yield
    except UsageError as error:
        raise UsageError(f"{where}: {error.message}", hint=error.hint) from None
