"""What a result shows of itself: one list of sentences and tables, as text on a screen and as HTML in a notebook.

A result inherits :class:`Shown` and says in ``_told`` what there is to show. Text from data is inert in both: one line
stays one line, and HTML is escaped and kept from a notebook's LaTeX. The HTML names no colour, so that it can be read
in light and dark notebooks, and asks nothing of the network.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from html import escape
from math import isnan
from typing import Any, TypeAlias

from benchwright._words import count, shown

ROWS = 50  # of a table in a notebook
LONGEST = 60  # characters of a text from data in a cell of a table
LISTED = 5  # entries of a list or mapping in one cell
NUMBER = re.compile(r"[-+<>]?\s?(\$?[\d.]|nan|inf|–|\?|$)", re.IGNORECASE)
NO_MATHS = "tex2jax_ignore mathjax_ignore"  # a dollar sign begins no formula

ShownPart: TypeAlias = "str | Headline | ShownTable | Folded | Shown"


@dataclass(frozen=True, slots=True)
class Headline:
    """A line that a reader should see first, or the head of a longer text."""

    head: str
    text: str = ""

    def __str__(self) -> str:
        return f"- {self.head}: {self.text}" if self.text else self.head


@dataclass(frozen=True, slots=True)
class ShownTable:
    """Headings and rows of finished cells; columns of numbers are set to the right.

    ``more`` is how many further rows there are.
    """

    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    more: int = 0

    def lines(self) -> Iterator[str]:
        """Yield the table as lines of text."""
        rows = [[shown(cell) for cell in row] for row in (self.heads, *self.rows)]
        right = self._right()
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        for row in rows:
            cells = [
                cell.rjust(width) if last else cell.ljust(width)
                for cell, width, last in zip(row, widths, right, strict=True)
            ]
            yield f"  {'  '.join(cells)}".rstrip()
        if self.more > 0:
            yield f"  {_and(self.more)}"

    def html(self) -> str:
        """Return the table as HTML, a long one cut."""
        right = self._right()
        more = max(self.more, 0) + max(len(self.rows) - ROWS, 0)
        head = _row("th", self.heads, right)
        body = "".join(_row("td", row, right) for row in self.rows[:ROWS])
        table = f"<table><thead>{head}</thead><tbody>{body}</tbody></table>"
        return f'<div style="overflow-x: auto; margin: 0.3em 0">{table}</div>' + (_line(_and(more)) if more else "")

    def _right(self) -> list[bool]:
        columns = zip(*self.rows, strict=True) if self.rows else ([""] for _ in self.heads)
        return [all(NUMBER.match(cell) for cell in column) for column in columns]


@dataclass(frozen=True, slots=True)
class Folded:
    """What a notebook shows on a click, and a screen does not."""

    title: str
    parts: Iterable[ShownPart]


class Shown:
    """A result that shows itself; without a ``_told`` of its own it shows its fields."""

    __slots__ = ()

    def _told(self) -> Iterable[ShownPart]:
        """Return what there is to show, in reading order."""
        yield Headline(type(self).__name__)
        if is_dataclass(self):
            told = [(field.name, getattr(self, field.name)) for field in fields(self) if field.repr]
            yield ShownTable(("field", "value"), [(name, brief(value)) for name, value in told if value is not None])

    def __str__(self) -> str:
        return "\n".join(_text(self._told()))

    def _repr_html_(self) -> str:
        return f'<div class="{NO_MATHS}">{"".join(_html(self._told()))}</div>'


def frame_table(frame: Any, *, rows: int | None = None) -> ShownTable:
    """Return the first rows of a polars frame as a table, without columns that say nothing."""
    told = frame.select([name for name in frame.columns if frame[name].null_count() < frame.height])
    first = told if rows is None else told.head(rows)
    cells = [[cell_text(value) for value in row] for row in first.iter_rows()]
    return ShownTable(told.columns, cells, told.height - first.height)


def cell_text(value: Any) -> str:
    """Return a value of a frame as a cell shows it.

    >>> [cell_text(value) for value in (None, float("nan"), 0.5, 2.5e-7, 12, True, ["a", 1.0])]
    ['–', 'NaN', '0.5000', '2.5e-07', '12', 'yes', 'a, 1.0000']
    """
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        if isnan(value):
            return "NaN"
        return f"{value:.4f}" if value == 0 or 1e-4 <= abs(value) < 1e6 else f"{value:.4g}"
    if isinstance(value, list | tuple):
        return ", ".join(map(cell_text, value))
    return _cut(str(value))


def brief(value: Any) -> str:
    """Return the value of a field in a few words."""
    if getattr(value, "shape", ()):
        return f"{type(value).__name__} of {' x '.join(f'{n:,}' for n in value.shape)}"
    if isinstance(value, Mapping):
        return _few([f"{_cut(str(key))}: {brief(entry)}" for key, entry in value.items()])
    if isinstance(value, tuple | list | set | frozenset):
        return _few(
            [brief(entry) for entry in (sorted(value, key=str) if isinstance(value, set | frozenset) else value)]
        )
    if is_dataclass(value) and not isinstance(value, type):
        return type(value).__name__
    if isinstance(value, float):
        return "NaN" if isnan(value) else f"{value:.6g}"
    return cell_text(value)


def _few(told: list[str]) -> str:
    more = [f"and {len(told) - LISTED:,} more"] if len(told) > LISTED else []
    return ", ".join([*told[:LISTED], *more]) or "none"


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _text(parts: Iterable[ShownPart]) -> Iterator[str]:
    for part in parts:
        if isinstance(part, Shown):
            yield from _text(part._told())
        elif isinstance(part, ShownTable):
            yield from part.lines()
        elif not isinstance(part, Folded):
            yield shown(str(part))


def _html(parts: Iterable[ShownPart]) -> Iterator[str]:
    for part in parts:
        if isinstance(part, Shown):
            yield f'<div style="margin-top: 0.6em">{"".join(_html(part._told()))}</div>'
        elif isinstance(part, ShownTable):
            yield part.html()
        elif isinstance(part, Folded):
            yield f"<details><summary>{_inert(part.title)}</summary>{''.join(_html(part.parts))}</details>"
        elif isinstance(part, Headline):
            told = f": {_inert(part.text)}" if part.text else ""
            yield f'<div style="margin: 0.3em 0"><strong>{_inert(part.head)}</strong>{told}</div>'
        elif part:
            yield _line(part)


def _and(more: int) -> str:
    return f"and {count(more, 'more row')}"


def _row(tag: str, cells: Sequence[str], right: Sequence[bool]) -> str:
    told = []
    for cell, is_number in zip(cells, right, strict=True):
        wrap = "nowrap" if len(cell) <= LONGEST else "normal"
        style = f"text-align: {'right' if is_number else 'left'}; white-space: {wrap}"
        told.append(f'<{tag} style="{style}">{_inert(cell)}</{tag}>')
    return f"<tr>{''.join(told)}</tr>"


def _line(text: str) -> str:
    indent = len(text) - len(text.lstrip())
    return f'<div style="padding-left: {indent / 2:g}em">{_inert(text.strip())}</div>'


def _inert(text: str) -> str:
    return escape(shown(text))
