"""Names from data: in prose on one line each, a few of many, and picked by patterns."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from benchwright._words import shown as shown
from benchwright.errors import UsageError


def listed(names: Iterable[object], most: int = 5) -> str:
    """Return the first names as one text, "" for none.

    >>> listed(["a", "b"]), listed("abcde", 3)
    ('a, b', 'a, b, c and 2 more')
    """
    every = [shown(str(name)) for name in names]
    return ", ".join(every[:most]) + (f" and {len(every) - most:,} more" if len(every) > most else "")


def counted(counts: Mapping[str, int]) -> str:
    """Return the counts of a panel in words, without those that are 0.

    >>> counted({"runs": 2000, "cells_left_out": 3, "faults": 0})
    'runs 2,000, cells left out 3'
    """
    return ", ".join(f"{name.replace('_', ' ')} {n:,}" for name, n in counts.items() if n)


def matching(what: str, names: Sequence[str], patterns: str | Sequence[str]) -> list[str]:
    """Return the names that match any of the patterns and none of those after a ``!``, in their order.

    ``*`` stands for any text.

    Raises
    ------
    UsageError
        A pattern matches no name, or every name is left out.

    Examples
    --------
    >>> matching("model", ["pythia-70m", "pythia-1b", "llama-7b"], ["pythia-*", "!*-1b"])
    ['pythia-70m']
    """
    given = [patterns] if isinstance(patterns, str) else list(patterns)
    wanted = [pattern for pattern in given if not pattern.startswith("!")] or ["*"]
    kept = set().union(*(_matches(what, names, pattern) for pattern in wanted))
    for pattern in given:
        if pattern.startswith("!"):
            kept -= _matches(what, names, pattern[1:])
    if not kept:
        raise UsageError(f"every {what} is left out by {', '.join(given)}", hint="name some to keep")
    return [name for name in names if name in kept]


def _matches(what: str, names: Sequence[str], pattern: str) -> set[str]:
    regex = re.compile(".*".join(map(re.escape, pattern.split("*"))), re.DOTALL)
    found = {name for name in names if regex.fullmatch(name)}
    if not found:
        raise UsageError(f"no {what} is named `{shown(pattern)}`", hint=f"there are: {listed(names, 10)}")
    return found
