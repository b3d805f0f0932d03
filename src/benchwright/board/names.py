"""Names from data in prose: on one line each, and a few of many."""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from benchwright.panel.panel import printed


def shown(text: str) -> str:
    """Return a text with escapes for what is not printable: a line break in a name begins no line of its own.

    >>> shown("a\\n5 items left out")
    'a\\\\n5 items left out'
    """
    return text if text.isprintable() else "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def listed(names: Iterable[str], most: int = 5) -> str:
    """Return the first names as one text, "" for none.

    >>> listed(["a", "b"]), listed("abcde", 3)
    ('a, b', 'a, b, c and 2 more')
    """
    every = [shown(name) for name in names]
    return ", ".join(every[:most]) + (f" and {len(every) - most:,} more" if len(every) > most else "")


def table_text(table: pl.DataFrame, rows: int = 200) -> str:
    """Return a table as text for a screen, its texts as :func:`shown`."""
    texts = [
        pl.Series(name, [None if text is None else shown(text) for text in table[name]], dtype=pl.String)
        for name, kind in table.schema.items()
        if kind == pl.String
    ]
    return printed(table.with_columns(texts), rows=rows)
