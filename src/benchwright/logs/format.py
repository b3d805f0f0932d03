"""What a log format is: how its files are told from others by content, and how they are read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from benchwright.logs.log_file import Head
from benchwright.logs.record import Sink, Unit


@dataclass(frozen=True, slots=True)
class Format:
    """A log format.

    Attributes
    ----------
    name
        How messages and the panel call it.
    sniff
        Whether a file with this head is of the format; looks at content, at the name only where content cannot tell.
    read
        Puts a unit's runs, rows, choices, scores and faults into the sink; raises only on a bug.
    together
        Whether files of one folder make one unit (they complete each other), instead of one unit each.
    looks_around
        Whether reading also looks at files beside the unit, in its folder and the one above (item lists, names).
    refused
        Where not "": files of the format are recognised and refused with this reason.
    """

    name: str
    sniff: Callable[[Head], bool]
    read: Callable[[Unit, Sink], None]
    together: bool = False
    looks_around: bool = False
    refused: str = ""
