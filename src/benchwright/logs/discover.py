"""Find the logs under what a user names: files, folders and patterns, each file told by its content."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from benchwright.errors import Fault, UsageError
from benchwright.logs.formats import recognise
from benchwright.logs.log_file import Head, LogFile
from benchwright.logs.record import Unit
from benchwright.logs.source_file import utf8

# Files that lie beside logs and are no logs: passed over quietly.
QUIET = re.compile(
    r"(^\.)|^(readme|licen[cs]e|copying|notice|provenance|citation|changelog|makefile|manifest)\b"
    r"|\.(md|rst|pdf|png|jpe?g|svg|gif|html?|css|js|py|ipynb|sh|ya?ml|toml|cfg|ini|lock|bib|tex|log|pkl|pt|bin|safetensors)$",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Found:
    """Units in a fixed order, files that no format claims or that are refused, and how many were passed over."""

    units: tuple[Unit, ...]
    faults: tuple[Fault, ...]
    passed_over: int


def discover(sources: Iterable[str | Path]) -> Found:
    """Look through files, folders (all below them) and glob patterns.

    Raises
    ------
    UsageError
        A source does not exist or matches nothing.
    """
    faults: list[Fault] = []
    groups: dict[tuple[str, str], list[LogFile]] = {}
    passed_over = 0
    for file in _files([str(source) for source in sources]):
        if QUIET.search(PurePosixPath(file.name).name):
            passed_over += 1
            continue
        if not file.path.is_file():
            faults.append(Fault(file.name, "is no file that can be read"))
            continue
        head = Head(file.name, file.head())
        format_ = recognise(head)
        if format_ is None:
            reason = "is empty or cannot be opened" if not head.content else "is of no format that benchwright knows"
            faults.append(Fault(file.name, reason))
        elif format_.refused:
            faults.append(Fault(file.name, f"{format_.name}: {format_.refused}"))
        else:
            parent = PurePosixPath(file.name).parent.as_posix() if format_.together else file.name
            groups.setdefault((format_.name, parent), []).append(file)
    units = [Unit(name, tuple(sorted(files, key=_name))) for (name, _), files in groups.items()]
    return Found(tuple(sorted(units, key=lambda unit: (unit.files[0].name, unit.format))), tuple(faults), passed_over)


def _name(file: LogFile) -> str:
    return file.name


def _files(sources: list[str]) -> Iterator[LogFile]:
    """Yield every file once, in a fixed order, named relative to the source it was found under."""
    roots: list[Path] = []
    for source in sources:
        if os.path.lexists(source):
            roots.append(Path(source))
            continue
        pattern = Path(source)
        matched = sorted(Path(pattern.anchor).glob(str(pattern.relative_to(pattern.anchor))))
        if not matched:
            raise UsageError(f"LOG {source} does not exist", hint="give files, folders or a quoted pattern")
        roots += matched
    seen: set[Path] = set()
    for root in roots:
        prefix = "" if len(roots) == 1 else f"{utf8(root.name)}/"
        if not root.is_dir():
            found = [(root, utf8(root.name))]
        else:
            found = [(path, prefix + utf8(path.relative_to(root).as_posix())) for path in _walk(root)]
        for path, name in found:
            real = path.resolve() if path.exists() else path
            if real not in seen:
                seen.add(real)
                yield LogFile(path, name)


def _walk(root: Path) -> Iterator[Path]:
    """Yield the files below a folder in sorted order, following links but never a loop."""
    visited: set[tuple[int, int]] = set()
    stack = [root]
    while stack:
        folder = stack.pop()
        try:
            state = folder.stat()
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError:
            yield folder  # reported as no file that can be read
            continue
        if (state.st_dev, state.st_ino) in visited:
            continue
        visited.add((state.st_dev, state.st_ino))
        folders = []
        for entry in entries:
            path = Path(entry.path)
            if path.is_dir():
                if not entry.name.startswith("."):
                    folders.append(path)
            else:
                yield path
        stack += reversed(folders)
