"""Fields that know their unit, reason and allowed values, and sections that check them whenever one is made."""

from __future__ import annotations

import dataclasses
import sys
import types
import typing
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any, ClassVar

from benchwright._shown import Shown
from benchwright.errors import ConfigError

KINDS: dict[type, tuple[Any, str]] = {
    bool: (bool, "true or false"),
    int: (Integral, "a whole number"),
    float: (Real, "a number"),
    str: (str, "text"),
}


def choice(
    default: Any,
    *,
    unit: str,
    why: str,
    low: float | None = None,
    high: float | None = None,
    options: tuple[str | int, ...] | None = None,
    at_most: str | None = None,
) -> Any:
    """Return a dataclass field that knows its unit, its reason and its allowed values.

    ``at_most`` names a field of the same section that the value may not exceed.
    """
    rule = {"low": low, "high": high, "options": options, "at_most": at_most}
    return dataclasses.field(default=default, metadata={"unit": unit, "why": why, **rule})


class Checked(Shown):
    """Fields checked against their type and metadata whenever one is made; ``prefix`` starts their keys."""

    __slots__ = ()
    prefix: ClassVar[str] = ""

    def __post_init__(self) -> None:
        kinds = typing.get_type_hints(type(self))
        entries = dataclasses.fields(typing.cast(Any, self))
        for entry in entries:
            value = _checked(self.prefix + entry.name, getattr(self, entry.name), kinds[entry.name], entry.metadata)
            object.__setattr__(self, entry.name, value)
        for entry in entries:
            limit = entry.metadata.get("at_most")
            if limit is not None and getattr(self, entry.name) > getattr(self, limit):
                raise ConfigError(
                    f"{self.prefix}{entry.name} must be at most {self.prefix}{limit}, "
                    f"got {getattr(self, entry.name)} and {getattr(self, limit)}"
                )


def _checked(key: str, value: Any, kind: Any, rule: Mapping[str, Any]) -> Any:
    """Return ``value`` as ``kind``, or say what is wrong with it."""
    if typing.get_origin(kind) is types.UnionType:
        if value is None:
            return None
        kind = next(arg for arg in typing.get_args(kind) if arg is not types.NoneType)
    if typing.get_origin(kind) is tuple:
        if not isinstance(value, (list, tuple)) or not value:
            raise ConfigError(f"{key} must be a list with at least one entry, got {value!r}")
        return tuple(_checked(key, part, typing.get_args(kind)[0], rule) for part in value)
    accepted, what = KINDS[kind]
    if not isinstance(value, accepted) or (isinstance(value, bool) and kind is not bool):
        raise ConfigError(f"{key} must be {what}, got {value!r}")
    low, high, options = rule.get("low"), rule.get("high"), rule.get("options")
    if options is not None and value not in options:
        raise ConfigError(f"{key} must be one of {', '.join(map(str, options))}, got {value!r}")
    if kind in (int, float) and not (
        (low is None or value >= low) and (high is None or value <= high) and abs(value) <= sys.float_info.max
    ):
        bounds = f"{'-inf' if low is None else low} .. {'inf' if high is None else high}"
        raise ConfigError(f"{key} must lie in {bounds}, got {value!r}")
    return kind(value)
