"""Members of an Inspect ``.eval`` archive, read one by one; an archive from anyone cannot fill memory or disk.

Nothing is extracted. The standard library reads the table of contents; members (stored, deflate, Zstandard) are
decompressed here, because a limit on what comes out must hold inside the decompressor, whatever size is declared.
"""

from __future__ import annotations

import struct
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from backports import zstd

from benchwright.logs.log_file import MAX_DOCUMENT, LogFile

STORED, DEFLATED, ZSTANDARD = 0, 8, 93
MAX_RATIO = 500  # a member or archive that unpacks to more than so many times its size is no log ...
LARGE_MEMBER, LARGE_ARCHIVE = 64 * 2**20, 2**30  # ... unless it is smaller than this
MAX_COMPRESSED_ARCHIVE = 8 * 2**30  # an archive that is itself compressed is unpacked to disk up to this size
_LOCAL = struct.Struct("<4s5H3I2H")
_ENCRYPTED, _UTF8 = 0x1, 0x800


class ArchiveError(ValueError):
    """An archive, or one member, cannot be read; the message says why."""


class Archive:
    """The members of a zip archive by name.

    Attributes
    ----------
    names
        Members that may be read, in the order of the table of contents, folders and bad names left out.
    faults
        What is wrong with single members, in words.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        try:
            with zipfile.ZipFile(file) as archive:
                members = archive.infolist()
            size = file.seek(0, 2)
        except (zipfile.BadZipFile, NotImplementedError, ValueError, struct.error, OSError, EOFError) as error:
            raise ArchiveError(f"is no whole zip archive ({error}); copy the log again") from None
        except (OverflowError, MemoryError, IndexError):
            raise ArchiveError("is no zip archive: its table of contents is damaged") from None
        total = sum(member.file_size for member in members)
        if total > LARGE_ARCHIVE and total > MAX_RATIO * size:
            raise ArchiveError(f"unpacks from {size:,} to {total:,} bytes, more than {MAX_RATIO} times: not read")
        self.faults: list[str] = []
        self._members: dict[str, zipfile.ZipInfo] = {}
        self._ends = _ends(members, size)
        for member in members:
            name = member.filename
            if name.endswith("/"):
                continue
            if _leaves_archive(name):
                self.faults.append(f"member {shown(name)} has a name that leads out of the archive: passed over")
                continue
            if name in self._members:
                self.faults.append(f"member {shown(name)} is there more than once: only the last is read")
                del self._members[name]
            self._members[name] = member
        self.names = list(self._members)

    def __contains__(self, name: str) -> bool:
        return name in self._members

    def read(self, name: str) -> bytes:
        """Return a member's bytes.

        Raises
        ------
        ArchiveError
            The member is encrypted, too large, damaged, cut off, or compressed in an unknown way.
        """
        member = self._members[name]
        size, packed = member.file_size, member.compress_size
        if member.flag_bits & _ENCRYPTED:
            raise ArchiveError("is encrypted: decrypt the archive first")
        if size > MAX_DOCUMENT:
            raise ArchiveError(f"has {size:,} bytes, more than {MAX_DOCUMENT:,}: not read")
        if size > LARGE_MEMBER and size > MAX_RATIO * packed:
            raise ArchiveError(f"unpacks from {packed:,} to {size:,} bytes, more than {MAX_RATIO} times: not read")
        try:
            content = self._unpack(member)
        except (OSError, EOFError, zlib.error, zstd.ZstdError, struct.error, ValueError, OverflowError) as error:
            raise ArchiveError(str(error) if isinstance(error, ArchiveError) else f"is damaged: {error}") from None
        if len(content) != size:
            more = "more than" if len(content) > size else f"{len(content):,} instead of"
            raise ArchiveError(f"is damaged: it holds {more} the {size:,} bytes it declares")
        if zlib.crc32(content) != member.CRC:
            raise ArchiveError("is damaged: its checksum is wrong")
        return content

    def _unpack(self, member: zipfile.ZipInfo) -> bytes:
        self._file.seek(member.header_offset)
        magic, _, flags, *_, name_size, extra_size = _LOCAL.unpack(self._file.read(_LOCAL.size))
        if magic != b"PK\x03\x04":
            raise ArchiveError("is damaged: it does not begin where the table of contents says")
        local = self._file.read(name_size).decode("utf-8" if flags & _UTF8 else "cp437", "replace")
        if local != member.orig_filename:
            raise ArchiveError("has another name in the archive than in its table of contents")
        start = member.header_offset + _LOCAL.size + name_size + extra_size
        if start + member.compress_size > self._ends[member.header_offset]:
            raise ArchiveError("overlaps the next member or the end of the archive")
        self._file.seek(start)
        packed = self._file.read(member.compress_size)
        limit = member.file_size + 1
        if member.compress_type == STORED:
            return packed[:limit]
        if member.compress_type == DEFLATED:
            return zlib.decompressobj(-zlib.MAX_WBITS).decompress(packed, limit)
        if member.compress_type == ZSTANDARD:
            return _unpack_zstandard(packed, limit)
        raise ArchiveError(f"is compressed with method {member.compress_type}; only deflate and Zstandard are read")


def _unpack_zstandard(packed: bytes, limit: int) -> bytes:
    parts: list[bytes] = []
    while packed and limit > 0:  # one frame after another
        frame = zstd.ZstdDecompressor()
        parts.append(frame.decompress(packed, max_length=limit))
        limit -= len(parts[-1])
        packed = frame.unused_data if frame.eof else b""
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _ends(members: list[zipfile.ZipInfo], size: int) -> dict[int, int]:
    """Return, per offset of a member, the offset it must end before: the next member's or the archive's end."""
    starts = sorted({member.header_offset for member in members})
    return dict(zip(starts, [*starts[1:], size], strict=bool(starts)))


def _leaves_archive(name: str) -> bool:
    parts = name.replace("\\", "/").split("/")
    return ".." in parts or parts[0] == "" or (len(parts[0]) == 2 and parts[0][1] == ":")


def shown(name: str) -> str:
    """Return an untrusted name as a message shows it: printable, cut at 120 characters."""
    text = "".join(char if char.isprintable() else "?" for char in name)
    return f"`{text if len(text) <= 120 else text[:117] + '...'}`"


@contextmanager
def open_archive(file: LogFile) -> Iterator[Archive]:
    """Open a log file as an archive; one that is compressed as a whole is unpacked to a temporary file first.

    Raises
    ------
    ArchiveError
        The file is no zip archive, is cut off, or would unpack to far more than its size.
    """
    try:
        opened = file.open()
    except OSError as error:
        raise ArchiveError(f"cannot be read: {error}") from None
    with opened as content:
        if content.seekable():
            yield Archive(content)
            return
        with tempfile.TemporaryFile() as copy:
            try:
                while block := content.read(2**20):
                    if copy.tell() > MAX_COMPRESSED_ARCHIVE:
                        raise ArchiveError(f"unpacks to more than {MAX_COMPRESSED_ARCHIVE:,} bytes")
                    copy.write(block)
            except (OSError, EOFError, zlib.error, zstd.ZstdError) as error:
                raise ArchiveError(f"cannot be read: {error}") from None
            yield Archive(copy)
