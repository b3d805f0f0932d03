"""Elements of a JSON array in a file, one at a time, so that the file is never held whole."""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator
from typing import Any

from backports import zstd

from benchwright.logs.log_file import LogFile

CHUNK = 2**20
MAX_ELEMENT = 2**26  # characters of one element
_SPACE = " \t\r\n"


def array_items(file: LogFile) -> Iterator[Any]:
    """Yield the elements of the array that a file is; NaN and Infinity become None.

    Raises
    ------
    ValueError
        The file is no JSON array, is cut off, is not UTF-8 or cannot be read; what came before was yielded.
    """
    try:
        yield from _items(file)
    except UnicodeDecodeError:
        raise ValueError("is not UTF-8 text") from None
    except (OSError, EOFError, zstd.ZstdError) as error:
        raise ValueError(f"cannot be read: {error}") from None
    except RecursionError:
        raise ValueError("is nested too deeply") from None


def _items(file: LogFile) -> Iterator[Any]:
    decode = json.JSONDecoder(parse_constant=lambda _: None).raw_decode
    with file.open() as stream:
        decoder = codecs.getincrementaldecoder("utf-8-sig")()
        text, at, size, is_end = "", 0, CHUNK, False
        done, expected = 0, "["  # what comes next: the start, an element (or the end), a comma
        while True:
            at = _after_space(text, at)
            mark = text[at : at + 1]
            if mark and expected in "[,":
                if mark == "]" and expected == ",":
                    return
                if mark != expected:
                    raise ValueError(f"is no JSON array from element {done + 1} on")
                at, expected = at + 1, "first" if expected == "[" else "element"
                continue
            if mark == "]" and expected == "first":
                return
            if mark:
                try:
                    item, end = decode(text, at)
                except json.JSONDecodeError as error:
                    if is_end or len(text) - at > MAX_ELEMENT:
                        raise ValueError(f"is no JSON or is cut off in element {done + 1}: {error.msg}") from None
                else:
                    follows = text[(after := _after_space(text, end)) : after + 1]
                    if is_end or follows in (",", "]"):  # else a number may go on
                        yield item
                        at, done, expected = end, done + 1, ","
                        continue
                    if len(text) - at > MAX_ELEMENT:
                        raise ValueError(f"is no JSON array after element {done + 1}")
            if is_end:
                raise ValueError(f"is cut off after element {done}")
            more = stream.read(size)
            is_end = len(more) < size
            size = CHUNK if not mark else size * 2  # an element longer than what was read
            text, at = text[at:] + decoder.decode(more, final=is_end), 0


def _after_space(text: str, at: int) -> int:
    while at < len(text) and text[at] in _SPACE:
        at += 1
    return at
