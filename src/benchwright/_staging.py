"""Folders, and files, that appear whole or not at all: written into a hidden place beside their own, then moved in.

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
from dataclasses import dataclass
from pathlib import Path

from benchwright.errors import UsageError

_RANDOM = re.compile(r"[a-z0-9_]{8}", re.ASCII)  # what mkdtemp appends


@dataclass(frozen=True, slots=True)
class Output:
    """A kind of folder that commands write: what it is called, and the files that tell an earlier one."""

    what: str
    markers: tuple[str, ...]

    def check(self, target: Path, *, overwrite: bool) -> None:
        """Raise unless ``target`` is new, empty, or an earlier folder of this kind that may be overwritten.

        One that a killed run had moved aside is put back first, so that it counts as there.
        """
        elsewhere = "choose another folder with -o"
        if Path.cwd().is_relative_to(target.resolve()):  # it would be moved away under the caller's feet
            raise UsageError(
                f"output {target} is the working directory or holds it", hint="name a folder inside it, e.g. -o out/"
            )
        parent = target.parent
        while not parent.exists():
            parent = parent.parent
        if not parent.is_dir() or not os.access(parent, os.W_OK | os.X_OK):
            why = "cannot be written" if parent.is_dir() else "is not a folder"
            raise UsageError(f"output {target}: {parent} {why}", hint=elsewhere)
        if parent == target.parent:
            recover(target)
        if target.is_symlink() or (target.exists() and not target.is_dir()):
            raise UsageError(f"output {target} is not a folder", hint=elsewhere)
        if not target.is_dir() or not any(target.iterdir()):
            return
        if not all((target / name).is_file() for name in self.markers):
            raise UsageError(
                f"output folder {target} is not empty and holds no {self.what}", hint="choose a new folder with -o"
            )
        if not overwrite:
            raise UsageError(
                f"output folder {target} already holds a {self.what}",
                hint="add --overwrite, or choose a new folder with -o",
            )

    @contextmanager
    def whole(self, target: Path, *, overwrite: bool) -> Iterator[Path]:
        """Yield a folder that becomes ``target`` when the block ends, and vanishes if it fails."""
        doing = "write beside"
        try:
            self.check(target, overwrite=overwrite)
            target.parent.mkdir(parents=True, exist_ok=True)
            with staging(target) as stage:
                doing = "write"
                yield stage
                self.check(target, overwrite=overwrite)  # another run may have written there meanwhile
                move_in(stage, target)
        except OSError as error:
            raise UsageError(
                f"cannot {doing} {target}: {error.strerror}", hint="choose another folder with -o"
            ) from None


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


def write_whole(path: Path, content: bytes, *, hint: str) -> None:
    """Put one file in place whole; ``hint`` says what to do where it cannot be written.

    Raises
    ------
    UsageError
        The file cannot be written; what was there before stays.
    """
    partial = path.with_name(f".{path.name}.partial")
    try:
        with partial.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise UsageError(f"cannot write {path}: {error.strerror}", hint=hint) from None
