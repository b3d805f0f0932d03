"""Welfare alignment: what an item's improvement is worth to the people whose work it resembles.

A judge ranks up to five work activities for an item, once asking what a model could take over
(automation) and once what it could help with (augmentation). With activity values p on [1,5] and rank
weights lambda_k (1/k, or 1/K),

    w(i) = sum_k lambda_k p(g_ik),      shown on [1,5] as w(i) / sum_k lambda_k.

With several judges, or one judge asked several times, an item's welfare is the mean over those that gave it one.
A dropped activity (too few rated tasks) uses up its rank and adds 0; an item with no kept activity has no
value. Dropped or missing ranks can put an item below 1: it is shown as it comes out.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from benchwright._check import FloatArray
from benchwright.auditing import _kernels as kernels
from benchwright.errors import UsageError
from benchwright.logs.item_tables import ITEM, PERSPECTIVES

VALUES = {"automation": "auto", "augmentation": "aug"}
QUADRANTS = ("green", "automate", "augment", "red")


def rank_weights(top_k: int, rule: str) -> FloatArray:
    """Return the weight of each rank, shape (top_k,).

    >>> rank_weights(2, "reciprocal").tolist(), rank_weights(2, "uniform").tolist()
    ([1.0, 0.5], [0.5, 0.5])
    """
    if rule == "reciprocal":
        return 1.0 / np.arange(1, top_k + 1)
    if rule == "uniform":
        return np.full(top_k, 1.0 / top_k)
    raise UsageError(f"`rank_weights` must be reciprocal or uniform, got {rule!r}")


def item_welfare(
    loadings: pl.DataFrame, activities: pl.DataFrame, *, top_k: int = 5, rule: str = "reciprocal"
) -> pl.DataFrame:
    """Return welfare per item from ranked activities and activity values.

    Parameters
    ----------
    loadings
        task, doc_id, perspective, activities (ranked ids), one row per item and framing.
    activities
        activity, dropped, auto, aug: values on [1,5].
    top_k, rule
        Ranks that count and their weights.

    Returns
    -------
    pl.DataFrame
        task, doc_id, w_auto_raw, w_aug_raw (sum over ranks), w_auto, w_aug (on [1,5]); null where an item
        lacks the framing or any kept activity. Items in the order of their first row.
    """
    weights = rank_weights(top_k, rule)
    items = loadings.select(*ITEM).unique(maintain_order=True)
    columns = {}
    for perspective, codes in ranked_codes(loadings, items, activities["activity"], top_k=top_k).items():
        value = activities.select(
            pl.when("dropped").then(None).otherwise(pl.col(VALUES[perspective])).cast(pl.Float64)
        ).to_series()
        raw = kernels.rank_weighted_sum(codes, value.fill_null(np.nan).to_numpy(), weights)
        columns[f"w_{VALUES[perspective]}_raw"] = pl.Series(raw).fill_nan(None)
    scale = float(weights.sum())
    return items.with_columns(**columns).with_columns(
        w_auto=pl.col("w_auto_raw") / scale, w_aug=pl.col("w_aug_raw") / scale
    )


def judges_welfare(
    loadings: Sequence[pl.DataFrame], activities: pl.DataFrame, *, top_k: int = 5, rule: str = "reciprocal"
) -> pl.DataFrame:
    """Return ``item_welfare`` averaged over judges: the mean of those that gave the item a value.

    Items are in the order of their first row, the first judge's first.
    """
    scored = [item_welfare(one, activities, top_k=top_k, rule=rule) for one in loadings]
    if len(scored) == 1:
        return scored[0]
    return pl.concat(scored).group_by(*ITEM, maintain_order=True).mean()


def ranked_codes(
    loadings: pl.DataFrame, items: pl.DataFrame, activities: pl.Series, *, top_k: int
) -> dict[str, NDArray[np.int64]]:
    """Return per framing each item's activities by rank as places in ``activities``, (m, top_k), -1 for none."""
    slots = ranked_slots(loadings, top_k)
    row_of = items.select(*ITEM).with_row_index("row")
    codes = {}
    for perspective in PERSPECTIVES:
        mine = slots.filter(pl.col("perspective") == perspective).join(row_of, on=ITEM)
        codes[perspective] = np.full((items.height, top_k), -1, dtype=np.int64)
        codes[perspective][mine["row"].to_numpy(), mine["rank"].to_numpy() - 1] = mine["activity"].replace_strict(
            activities, pl.int_range(activities.len(), eager=True)
        )
    return codes


def ranked_slots(loadings: pl.DataFrame, top_k: int) -> pl.DataFrame:
    """Return one row per item, framing and rank up to ``top_k``: ..., rank (from 1), activity."""
    return (
        loadings.with_columns(pl.col("activities").list.head(top_k))
        .with_columns(rank=pl.int_ranges(1, pl.col("activities").list.len() + 1))
        .explode("activities", "rank")
        .drop_nulls("activities")
        .rename({"activities": "activity"})
    )


def quadrant(auto: pl.Expr, aug: pl.Expr, threshold: float) -> pl.Expr:
    """Return the quadrant: green (both at least ``threshold``), automate, augment, red; null if unknown."""
    return (
        pl.when(auto.is_null() | aug.is_null())
        .then(None)
        .when((auto >= threshold) & (aug >= threshold))
        .then(pl.lit("green"))
        .when(auto >= threshold)
        .then(pl.lit("automate"))
        .when(aug >= threshold)
        .then(pl.lit("augment"))
        .otherwise(pl.lit("red"))
    )


def activity_map(
    loadings: pl.DataFrame, activities: pl.DataFrame, *, top_k: int, thresholds: Sequence[float]
) -> pl.DataFrame:
    """Return the kept activities with their values, quadrants and loading fractions.

    ``automation`` and ``augmentation`` are the shares of items whose top ``top_k`` include the activity
    under that framing. Columns ``quadrant_at_<threshold>`` hold the quadrants.
    """
    judged = loadings.group_by("perspective").agg(n_judged=pl.len())
    loaded = (
        ranked_slots(loadings, top_k)
        .group_by("perspective", "activity")
        .agg(n_items=pl.len())
        .join(judged, on="perspective")
        .with_columns(share=pl.col("n_items") / pl.col("n_judged"))
    )
    table = activities.filter(~pl.col("dropped")).drop("dropped", "share_auto", "share_aug", strict=False)
    for perspective in PERSPECTIVES:
        share = loaded.filter(pl.col("perspective") == perspective).select(
            "activity", pl.col("share").alias(perspective)
        )
        table = table.join(share, on="activity", how="left").with_columns(pl.col(perspective).fill_null(0.0))
    marks = {threshold_name(tau): quadrant(pl.col("auto"), pl.col("aug"), tau) for tau in thresholds}
    return table.with_columns(**marks).sort("automation", "augmentation", "activity", descending=[True, True, False])


def threshold_name(threshold: float) -> str:
    """Return the column name of a threshold's quadrants: 3.5 -> ``quadrant_at_3_5``."""
    return f"quadrant_at_{threshold}".replace(".", "_")


def quadrant_shares(
    loadings: pl.DataFrame,
    activities: pl.DataFrame,
    items: pl.DataFrame,
    *,
    top_k: int,
    thresholds: Sequence[float],
) -> pl.DataFrame:
    """Return what share lies in each quadrant, by unit: kept slots of each framing, and items.

    Columns: threshold, unit (automation slots | augmentation slots | items), quadrant, n, total, share.
    """
    kept = activities.filter(~pl.col("dropped")).select("activity", "auto", "aug")
    slots = ranked_slots(loadings, top_k).join(kept, on="activity")
    units = {f"{name} slots": slots.filter(pl.col("perspective") == name) for name in PERSPECTIVES}
    units["items"] = items.select(auto="w_auto", aug="w_aug").drop_nulls()
    rows = []
    for threshold in thresholds:
        for unit, frame in units.items():
            marks = frame.select(q=quadrant(pl.col("auto"), pl.col("aug"), threshold)).to_series()
            for name in QUADRANTS:
                n = int((marks == name).sum())
                rows.append((threshold, unit, name, n, len(marks), n / len(marks) if len(marks) else None))
    schema = ["threshold", "unit", "quadrant", "n", "total", "share"]
    return pl.DataFrame(rows, schema=schema, orient="row")
