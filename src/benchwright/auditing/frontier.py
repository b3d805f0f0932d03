"""The Pareto frontier of (w_auto, w_aug) and which family's items are dominated by another's."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

import numpy as np
import polars as pl

from benchwright.auditing import _kernels as kernels


@dataclass(frozen=True, slots=True)
class FrontierSummary:
    """Frontier and dominance between two families, both ways. Shares are of a family's items.

    ``median_second_dominators`` is the median over the first family's items, rounded down to a count.
    """

    n_items: int
    size: int
    first_on_frontier: int
    second_on_frontier: int
    first_dominated: float
    second_dominated: float
    median_second_dominators: int


def mark_frontier(items: pl.DataFrame) -> pl.DataFrame:
    """Add ``on_frontier``: no other item is at least as good on both framings and better on one."""
    known = items["w_auto"].is_not_null() & items["w_aug"].is_not_null()
    mark = pl.Series("on_frontier", [None] * items.height, dtype=pl.Boolean)
    positions = known.arg_true()
    if len(positions):
        x, y = (items[name].gather(positions).to_numpy() for name in ("w_auto", "w_aug"))
        mark = mark.scatter(positions, pl.Series(kernels.pareto_frontier(x, y)))
    return items.with_columns(mark)


def mark_dominators(items: pl.DataFrame) -> pl.DataFrame:
    """Add ``n_dominators``: how many items of the other side (column ``side``) dominate this one."""
    x, y = items["w_auto"].to_numpy(), items["w_aug"].to_numpy()
    counts = np.zeros(items.height, dtype=np.int64)
    for side in items["side"].unique().to_list():
        mine = (items["side"] == side).to_numpy()
        counts[mine] = kernels.dominator_counts(x[mine], y[mine], x[~mine], y[~mine])
    return items.with_columns(n_dominators=counts)


def summarise_frontier(items: pl.DataFrame, first: str) -> FrontierSummary:
    """Summarise items that carry ``side``, ``on_frontier`` and ``n_dominators``."""
    mine, other = items.filter(pl.col("side") == first), items.filter(pl.col("side") != first)
    return FrontierSummary(
        n_items=items.height,
        size=int(items["on_frontier"].sum()),
        first_on_frontier=int(mine["on_frontier"].sum()),
        second_on_frontier=int(other["on_frontier"].sum()),
        first_dominated=float(np.mean(mine["n_dominators"].to_numpy() > 0)),
        second_dominated=float(np.mean(other["n_dominators"].to_numpy() > 0)),
        median_second_dominators=int(statistics.median(mine["n_dominators"].to_list())),
    )
