"""The fields of Inspect logs that are used, decoded from JSON; NaN tokens and odd bytes take a slower way."""

from __future__ import annotations

import zlib
from typing import Any, TypeVar

import msgspec
from backports import zstd

from benchwright.logs.log_file import MAX_DOCUMENT, LogFile, parse_json

T = TypeVar("T", bound=msgspec.Struct)
_DAMAGED = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, OverflowError)


class Log(msgspec.Struct):
    """The sections of a log that are used."""

    version: Any = None
    status: Any = None
    eval: Any = None
    results: Any = None
    error: Any = None
    invalidated: Any = None
    samples: Any = None  # as it stands in the document, or a list


class LogDocument(Log):
    """A log whose samples are not decoded yet."""

    samples: msgspec.Raw = msgspec.Raw(b"null")


class Sample(msgspec.Struct):
    """The fields of a sample that are used."""

    id: Any = None
    epoch: Any = None
    input: Any = None
    choices: Any = None
    scores: Any = None
    score: Any = None  # format 1: the only scorer's
    error: Any = None
    invalidation: Any = None


class Summary(msgspec.Struct):
    """The fields of a sample's summary that are compared."""

    id: Any = None
    epoch: Any = None
    scores: Any = None


_LOG = msgspec.json.Decoder(LogDocument)
_RAW_LIST = msgspec.json.Decoder(list[msgspec.Raw])
_SAMPLE = msgspec.json.Decoder(Sample)
_SUMMARIES = msgspec.json.Decoder(list[Summary])


def content_of(file: LogFile) -> bytes:
    """Return a document's bytes without a byte order mark; ValueError where it cannot be read or is too large."""
    try:
        with file.open() as opened:
            content = opened.read(MAX_DOCUMENT + 1)
    except (OSError, EOFError, zlib.error, zstd.ZstdError) as error:
        raise ValueError(f"cannot be read: {error}") from None
    if len(content) > MAX_DOCUMENT:
        raise ValueError(f"is larger than {MAX_DOCUMENT:,} bytes")
    return content.removeprefix(b"\xef\xbb\xbf")


def decode_log(content: bytes) -> Log:
    """Decode a log or the header of one; ValueError says why it is none."""
    try:
        return _LOG.decode(content)
    except _DAMAGED:
        return _from_json(content, Log)


def decode_sample(content: Any) -> Sample:
    """Decode a sample, from bytes or as parsed already; ValueError says why it is none."""
    if not isinstance(content, (bytes, msgspec.Raw)):
        return _from_object(content, Sample)
    try:
        return _SAMPLE.decode(content)
    except _DAMAGED:
        return _from_json(bytes(content), Sample)


def _from_json(content: bytes, kind: type[T]) -> T:
    return _from_object(parse_json(content), kind)


def _from_object(record: Any, kind: type[T]) -> T:
    if not isinstance(record, dict):
        raise ValueError("is no JSON object")
    return kind(**{name: record[name] for name in kind.__struct_fields__ if name in record})


def listed(samples: Any) -> list[Any] | None:
    """Return the samples, undecoded where that is possible; [] where there are none, None where it is no list."""
    if isinstance(samples, msgspec.Raw):
        try:
            return _RAW_LIST.decode(samples)
        except _DAMAGED:
            try:
                samples = parse_json(bytes(samples))
            except ValueError:
                return None
    return [] if samples is None else samples if isinstance(samples, list) else None


def decode_summaries(content: bytes) -> list[Summary]:
    """Decode the summaries of an archive's samples; ValueError where they are none."""
    try:
        return _SUMMARIES.decode(content)
    except _DAMAGED:
        parsed = parse_json(content)
    if not isinstance(parsed, list):
        raise ValueError("is no list")
    return [_from_object(entry, Summary) for entry in parsed]


def is_listing(content: bytes) -> bool:
    """Whether this is a viewer's list of logs: their headers by file name."""
    try:
        parsed = parse_json(content)
    except ValueError:
        return False
    parts = parsed.values() if isinstance(parsed, dict) else ()
    return bool(parts) and all(isinstance(part, dict) and isinstance(part.get("eval"), dict) for part in parts)
