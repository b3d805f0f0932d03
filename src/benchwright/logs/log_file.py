"""Log files as readers see them: opened through their compression, line by line with numbers, or whole.

The compression is told from the first bytes, not from the name. A line longer than the limit is reported and
passed over without ever being held whole.
"""

from __future__ import annotations

import gzip
import io
import json
import re
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from backports import zstd

HEAD_BYTES = 64 * 1024
BUFFER = 2**20
GZIP, ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
MAX_DOCUMENT = 2**30  # a JSON document that is read whole may have so many bytes, decompressed
_KEY = re.compile(rb'"((?:[^"\\]|\\.){1,200})"\s*:')


@dataclass(frozen=True, slots=True)
class LogFile:
    """One file of a log: where it is, and its name relative to what was given (posix, for messages)."""

    path: Path
    name: str

    def open(self) -> io.BufferedReader:
        """Open the decompressed bytes."""
        raw: io.BufferedReader = io.BufferedReader(io.FileIO(self.path), BUFFER)
        magic = raw.read(4)
        raw.seek(0)
        if magic[:2] == GZIP:
            return io.BufferedReader(_Closing(gzip.GzipFile(fileobj=raw), raw), BUFFER)
        if magic == ZSTD:
            return io.BufferedReader(_Closing(zstd.ZstdFile(raw), raw), BUFFER)
        return raw

    def head(self) -> bytes:
        """Return the first bytes, decompressed, without a byte order mark; b"" where they cannot be read."""
        content = b""
        try:
            with self.open() as file:
                while len(content) < HEAD_BYTES and (more := file.read1(HEAD_BYTES - len(content))):
                    content += more
        except (OSError, EOFError, zlib.error, zstd.ZstdError):
            pass  # what could be read tells the format; the reader reports the rest
        return content.removeprefix(b"\xef\xbb\xbf")

    def lines(self, max_line: int, on_fault: Callable[[int, str], None]) -> Iterator[tuple[int, bytes]]:
        """Yield (number from 1, line without its end); report a line that is too long, or where reading stops.

        Lines end at ``\\n`` alone (a carriage return before it is taken off), never at U+2028 inside a string.
        Blank lines are passed over.
        """
        number = 0
        try:
            with self.open() as file:
                while line := file.readline(max_line + 2):
                    number += 1
                    if not line.endswith(b"\n") and len(line) > max_line:
                        while line and not line.endswith(b"\n"):
                            line = file.readline(BUFFER)
                        on_fault(number, f"is longer than {max_line:,} bytes; raise --max-line to read it")
                        continue
                    line = line.rstrip(b"\r\n")
                    if number == 1:
                        line = line.removeprefix(b"\xef\xbb\xbf")
                    if line.strip():
                        yield number, line
        except (OSError, EOFError, zlib.error, zstd.ZstdError) as error:
            on_fault(number + 1, f"cannot be read from here on: {error}")

    def document(self) -> Any:
        """Return the whole file as JSON; NaN and Infinity tokens become None.

        Raises
        ------
        ValueError
            It is no JSON, is cut off, is not UTF-8, is nested too deeply, or is larger than 1 GiB.
        """
        try:
            with self.open() as file:
                content = file.read(MAX_DOCUMENT + 1)
        except (OSError, EOFError, zlib.error, zstd.ZstdError) as error:
            raise ValueError(f"cannot be read: {error}") from None
        if len(content) > MAX_DOCUMENT:
            raise ValueError(f"is larger than {MAX_DOCUMENT:,} bytes")
        return parse_json(content)


def parse_json(content: bytes) -> Any:
    """Parse JSON bytes; NaN and Infinity become None; every failure is a ValueError that says where."""
    try:
        return json.loads(content.removeprefix(b"\xef\xbb\xbf").decode("utf-8"), parse_constant=lambda _: None)
    except UnicodeDecodeError as error:
        raise ValueError(f"byte {error.start} is not UTF-8 text") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"is no JSON from line {error.lineno}, character {error.colno} on: {error.msg}") from None
    except RecursionError:
        raise ValueError("is nested too deeply") from None


@dataclass(frozen=True, slots=True)
class Head:
    """What a format is told from: the file's name and its first bytes."""

    name: str
    content: bytes

    @property
    def is_object(self) -> bool:
        """Whether the file starts like a JSON object."""
        return self.content.lstrip()[:1] == b"{"

    @property
    def is_array(self) -> bool:
        """Whether the file starts like a JSON array."""
        return self.content.lstrip()[:1] == b"["

    def first_record(self) -> dict[str, Any] | None:
        """Return the first line as a JSON object, None where it is none (or too long for the head)."""
        line = self.content.lstrip().split(b"\n", 1)[0]
        try:
            record = parse_json(line)
        except ValueError:
            return None
        return record if isinstance(record, dict) else None

    def keys(self) -> set[str]:
        """Return the keys, at any depth, that the first bytes show."""
        return {key.decode("utf-8", "replace") for key in _KEY.findall(self.content)}


class _Closing(io.RawIOBase):
    """A decompressing stream that closes the file below it too."""

    def __init__(self, stream: Any, below: IO[bytes]) -> None:
        super().__init__()
        self._stream, self._below = stream, below

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        content = self._stream.read1(len(buffer))  # what there is before a cut comes out first
        buffer[: len(content)] = content
        return len(content)

    def close(self) -> None:
        if not self.closed:
            self._stream.close()
            self._below.close()
        super().close()
