"""A file as it was read: what a report says of it, and the bytes that the readers use."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from benchwright.errors import Fault


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file that was read: its name inside the source, size in bytes, and sha256."""

    name: str
    size: int
    sha256: str


def read_source(path: Path, faults: list[Fault]) -> tuple[bytes, SourceFile] | None:
    """Read a file once, so that its checksum is that of the bytes used; None and a fault where that fails."""
    try:
        content = path.read_bytes()
    except OSError as error:
        faults.append(Fault(path.name, f"cannot be read: {error.strerror}"))
        return None
    return content, SourceFile(utf8(path.name), len(content), hashlib.sha256(content).hexdigest())


def utf8(name: str) -> str:
    """Return a file name as text that can be written; the system may hand over bytes that are none."""
    return os.fsencode(name).decode("utf-8", "replace")
