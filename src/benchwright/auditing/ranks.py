"""Quantile tables: the items at the 1, 10, 50, 90 and 99 % places of a ranking, with their rank intervals."""

from __future__ import annotations

import numpy as np
import polars as pl

from benchwright.auditing._kernels import quantile_position
from benchwright.logs.item_tables import ITEM

QUANTILES = (0.01, 0.1, 0.5, 0.9, 0.99)
NEIGHBOURS = 3
DIGITS = 12  # values that agree in so many are tied: what differs beyond is the order in which an engine summed


def rank_ascending(items: pl.DataFrame, value: str) -> pl.DataFrame:
    """Return the items that have ``value``, ascending, ties by task and doc_id, with ``position`` from 1."""
    ranked = items.drop_nulls(value).sort(pl.col(value).round_sig_figs(DIGITS), *ITEM)
    return ranked.with_columns(position=pl.int_range(1, ranked.height + 1, dtype=pl.Int64))


def quantile_table(ranked: pl.DataFrame, value: str) -> pl.DataFrame:
    """Return the item at each quantile and its neighbours, three on each side.

    ``ranked`` comes from :func:`rank_ascending`. Columns: quantile, offset (0 is the quantile's own item),
    position, value, task, doc_id, rank_lo, rank_hi (null where the source has no rank intervals).
    """
    places = []
    for quantile in QUANTILES:
        centre = quantile_position(quantile, ranked.height)
        for offset in range(-NEIGHBOURS, NEIGHBOURS + 1):
            if 1 <= centre + offset <= ranked.height:
                places.append((quantile, offset, centre + offset))
    at = pl.DataFrame(places, schema={"quantile": pl.Float64, "offset": pl.Int64, "position": pl.Int64}, orient="row")
    columns = ["position", pl.col(value).alias("value"), *ITEM, "rank_lo", "rank_hi"]
    return at.join(ranked.select(columns), on="position", how="left", maintain_order="left")


def published_ranks(ranked: pl.DataFrame) -> tuple[pl.DataFrame, str | None]:
    """Keep the source's rank intervals only where they belong to this ranking.

    Returns the frame with integer ``rank_lo`` and ``rank_hi`` (null where unknown) and, where intervals
    were left out, why.
    """
    empty = [pl.lit(None, dtype=pl.Int64).alias(name) for name in ("rank_lo", "rank_hi")]
    if not {"rank_headline", "rank_lo", "rank_hi"} <= set(ranked.columns):
        return ranked.with_columns(empty), "the source gives no rank intervals"
    moved = np.abs(ranked["position"].to_numpy() - ranked["rank_headline"].fill_null(-1).to_numpy())
    if np.count_nonzero(moved > 0.01 * ranked.height) > 0.01 * ranked.height:
        return ranked.with_columns(empty), "the source's rank intervals belong to another ranking (prices or limits)"
    return ranked.with_columns(pl.col("rank_lo", "rank_hi").round().cast(pl.Int64)), None
