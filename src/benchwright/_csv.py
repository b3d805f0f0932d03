"""Text that a spreadsheet does not run: a cell that looks like a formula gets a leading apostrophe."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

FORMULA = r"^[\s]*[=+\-@\t\r]"


def inert(schema: Mapping[str, Any]) -> list[pl.Expr]:
    """Return the text columns of a table in the form that its CSV file gets."""
    names = [name for name, kind in schema.items() if kind == pl.String]
    risky = {name: pl.col(name).str.contains(FORMULA) for name in names}
    return [pl.when(risky[name]).then("'" + pl.col(name)).otherwise(name).alias(name) for name in names]
