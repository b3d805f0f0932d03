"""A table with names from data as text for a screen."""

from __future__ import annotations

import polars as pl

from benchwright.panel.names import shown
from benchwright.panel.panel import printed


def table_text(table: pl.DataFrame, rows: int = 200) -> str:
    """Return a table as text for a screen, its texts as :func:`benchwright.panel.names.shown`."""
    texts = [
        pl.Series(name, [None if text is None else shown(text) for text in table[name]], dtype=pl.String)
        for name, kind in table.schema.items()
        if kind == pl.String
    ]
    return printed(table.with_columns(texts), rows=rows)
