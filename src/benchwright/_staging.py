"""Folders that appear whole or not at all: written into a hidden folder beside their place, then moved in.

The hidden folder ``.<name>.partial-<random>`` holds ``new``, what is being written, and for a moment ``old``,
what was there before. Its writer holds a lock on it until the process ends, however it ends. Whoever gets that
lock later knows that the writer was killed: it puts ``old`` back where nothing took its place, and removes the
rest. Where there are no such locks (Windows, some network disks) what killed runs left stays.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_RANDOM = re.compile(r"[a-z0-9_]{8}", re.ASCII)  # what mkdtemp appends


@contextmanager
def staging(target: Path) -> Iterator[Path]:
    """Yield an empty folder beside ``target`` to write into; what is not moved out of it vanishes at the end."""
    recover(target)
    while True:
        partial = Path(tempfile.mkdtemp(prefix=_prefix(target), dir=target.parent))
        with _lock(partial) as ours:
            if ours is False or not partial.is_dir():
                continue  # another run took it for a leftover before it was locked
            try:
                new = partial / "new"  # mkdtemp's own folder is closed to everyone else
                new.mkdir()
                yield new
            finally:
                _clear(partial, target)
        return


def move_in(new: Path, target: Path) -> None:
    """Move a folder that :func:`staging` gave to ``target``; what was there is put back if that fails."""
    if target.exists():
        target.replace(new.parent / "old")
    new.replace(target)


def recover(target: Path) -> None:
    """Put back or remove what killed runs left beside ``target``; a run that is still at work is not touched."""
    prefix = _prefix(target)
    for left in list(target.parent.iterdir()):
        named_so = left.name.startswith(prefix) and _RANDOM.fullmatch(left.name.removeprefix(prefix))
        if named_so and left.is_dir() and not left.is_symlink():
            with _lock(left) as ours:
                if ours:
                    _clear(left, target)


def _prefix(target: Path) -> str:
    return f".{target.name}.partial-"


def _clear(partial: Path, target: Path) -> None:
    old = partial / "old"
    if old.exists() and not target.exists():
        old.replace(target)
    shutil.rmtree(partial, ignore_errors=True)


@contextmanager
def _lock(folder: Path) -> Iterator[bool | None]:
    """Lock a folder while the block runs. Gives whether the lock is ours; None where that cannot be told."""
    if sys.platform == "win32":
        yield None
        return
    import fcntl

    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:  # gone, or not ours to read
        yield False
        return
    ours: bool | None = True
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            ours = False
        except OSError:
            ours = None
        yield ours
    finally:
        os.close(handle)
