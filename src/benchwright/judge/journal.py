"""The record of a run: one JSON line per answer, on the disk before the next call of its worker starts.

The first line says what was asked (model, server, checksum of the prompts, temperature). An answer is keyed by item,
framing, checksum of the item's text and number of the try, so that a broken answer is not asked for again and its
repeat is.
A process killed at any moment leaves whole lines and perhaps one torn line at the end, which is cut off when
the journal is opened again. Answers are kept as the ranked ids they gave, not as text: they may quote items.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from benchwright.errors import DataError, UsageError

FILE = "journal.jsonl"
Key = tuple[str, str, str, str, int]
WORDS = {
    "prompt_sha256": "the prompts (activities, number of ranks)",
    "schema": "structured output",
    "base_url": "the server (base_url; a model of the same name there is another judge)",
}


class Record(msgspec.Struct, frozen=True):
    """One answer: its key, what it gave, and its tokens; ``reported`` is False where they are the most it can be."""

    task: str
    doc_id: str
    perspective: str
    text_sha256: str
    number: int
    activities: tuple[str, ...]
    notes: tuple[str, ...] = ()
    refused: str | None = None
    input_tokens: int = 0
    output_tokens: int = 0
    reported: bool = True

    @property
    def key(self) -> Key:
        """What the answer is found by."""
        return self.task, self.doc_id, self.perspective, self.text_sha256, self.number


def read_journal(folder: Path, identity: Mapping[str, Any]) -> dict[Key, Record]:
    """Return the answers that a folder holds; none where there is no journal. Changes nothing.

    Raises
    ------
    UsageError
        The answers belong to another model, server, prompt or temperature.
    DataError
        A line other than a torn last one cannot be read.
    """
    return _read(folder / FILE, identity)[0]


def _read(path: Path, identity: Mapping[str, Any]) -> tuple[dict[Key, Record], int]:
    """Return the answers, and how many bytes hold whole lines."""
    content = path.read_bytes() if path.is_file() else b""
    whole = content.rfind(b"\n") + 1
    lines = content[:whole].splitlines()
    if not lines:
        return {}, 0
    decode = msgspec.json.Decoder(Record).decode
    records: dict[Key, Record] = {}
    number = 1
    try:
        found = json.loads(lines[0])
        for line in lines[1:]:
            number += 1
            record = decode(line)
            records[record.key] = record
    except (ValueError, msgspec.MsgspecError) as error:
        raise DataError(
            f"{path}, line {number}: cannot be read: {error}", hint="choose another folder with -o, or --overwrite"
        ) from None
    changed = [name for name in identity if not isinstance(found, dict) or found.get(name) != identity[name]]
    if changed:
        raise UsageError(
            f"{path.parent} holds the answers of another run: {', '.join(WORDS.get(name, name) for name in changed)} "
            "changed",
            hint="choose another folder with -o, or start anew with --overwrite",
        )
    return records, whole


class Journal:
    """The journal of a folder, open for one process; ``records`` holds its answers by key, none if begun ``anew``."""

    def __init__(self, folder: Path, identity: Mapping[str, Any], *, anew: bool = False) -> None:
        self.path = folder / FILE
        self._file = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            _lock(self._file, folder)
            self.records, self._end = ({}, 0) if anew else _read(self.path, identity)
            os.ftruncate(self._file, self._end)
            os.lseek(self._file, self._end, os.SEEK_SET)
            if self._end == 0:
                self._append(json.dumps(dict(identity), sort_keys=True).encode())
        except BaseException:
            os.close(self._file)
            raise

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._file)

    def add(self, record: Record) -> None:
        """Put an answer on the disk.

        Raises
        ------
        UsageError
            The disk is full or failed; the journal ends with the answer before.
        """
        self._append(msgspec.json.encode(record))
        self.records[record.key] = record

    def _append(self, line: bytes) -> None:
        rest = line + b"\n"
        try:
            while rest:
                rest = rest[os.write(self._file, rest) :]
            os.fsync(self._file)
        except OSError as error:
            os.ftruncate(self._file, self._end)
            os.lseek(self._file, self._end, os.SEEK_SET)
            raise UsageError(
                f"cannot write {self.path}: {error.strerror}",
                hint=f"make room and run the same command again: {len(self.records):,} answers are kept",
            ) from None
        self._end += len(line) + 1


def _lock(file: int, folder: Path) -> None:
    """Hold the journal for this process; where there are no such locks (Windows), trust the user."""
    if sys.platform == "win32":
        return
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise UsageError(
            f"{folder} is in use by another run", hint="wait for it, or choose another folder with -o"
        ) from None
    except OSError:
        pass
