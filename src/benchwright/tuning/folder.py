"""The folder of an experiment, and of each of its runs: every file appears whole or not at all.

::

    protocol.json            what was asked for, with versions and checksums
    runs/NAME/run.json       one run: model, benchmark, seed, settings, points
              eval-STEP.parquet, eval-STEP.json   items at a point, and what was reached
              checkpoint.pt                       the last state; level-STEP.pt: where adversaries start
              done.json or failed.json            how it ended
    rows.parquet             one row a model, seed, step, item and metric: what `ingest` reads
    runs.csv, scores.csv     scores of single runs; means over seeds with standard errors, to which curves are fitted
    adversaries.csv          efforts that were really needed
    game-TASK.toml           the ranking game of scores.csv
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchwright._json import json_safe
from benchwright._staging import Output, write_whole
from benchwright.errors import UsageError

PROTOCOL = "protocol.json"
FOLDER = Output("tuning experiment", (PROTOCOL,))
RUN, DONE, FAILED, STATE = "run.json", "done.json", "failed.json", "checkpoint.pt"
WHOLE_BYTES = 1 << 26  # larger files are told by size, beginning and end
END_BYTES = 1 << 20


def write_text(path: Path, text: str) -> None:
    """Put a file in place whole."""
    write_bytes(path, text.encode())


def write_bytes(path: Path, content: bytes) -> None:
    """Put a file in place whole."""
    write_whole(path, content, hint="make room and run the same command again: it goes on")


def write_json(path: Path, record: Mapping[str, Any]) -> None:
    """Put a record in place whole."""
    write_text(path, json.dumps(json_safe(dict(record)), indent=1, ensure_ascii=False) + "\n")


def read_json(path: Path) -> dict[str, Any] | None:
    """Return a record, None where there is none."""
    try:
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise UsageError(f"{path} is damaged: {error}", hint="remove it, or start anew with --overwrite") from None
    return found


def checksum(path: Path) -> str:
    """Return a file's sha256; of a large one that of its size, beginning and end."""
    size = path.stat().st_size
    found = hashlib.sha256()
    with path.open("rb") as file:
        if size <= WHOLE_BYTES:
            found.update(file.read())
        else:
            found.update(f"{size}:".encode() + file.read(END_BYTES))
            file.seek(-END_BYTES, os.SEEK_END)
            found.update(file.read())
    return found.hexdigest()


def fingerprint(path: str) -> str | None:
    """Return a checksum of a model's folder or a file; None for what is not on this machine."""
    place = Path(path)
    if place.is_file():
        return checksum(place)
    if not place.is_dir():
        return None
    found = hashlib.sha256()
    for file in sorted(place.iterdir()):
        if file.is_file() and not file.name.startswith("."):
            found.update(f"{file.name}:{checksum(file)}\n".encode())
    return found.hexdigest()


class Lock:
    """A lock on a folder, held until the process ends; ``held`` is False where another process has it."""

    def __init__(self, folder: Path) -> None:
        self.held = True
        self._file = None
        if sys.platform == "win32":
            return
        import fcntl

        self._file = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.held = False
            self.release()
        except OSError:  # no such locks on this disk: trust the user
            pass

    def release(self) -> None:
        """Let go of it."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def __enter__(self) -> Lock:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()
