"""What each rater's loadings alone would say: slot shares, the gap of families, the frontier, who is dominated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from benchwright.auditing.families import FamilyMap
from benchwright.auditing.frontier import mark_dominators, mark_frontier, summarise_frontier
from benchwright.auditing.welfare import QUADRANTS, VALUES, item_welfare, quadrant_shares
from benchwright.logs.item_tables import PERSPECTIVES

OF_ITEMS = FamilyMap("task", "the task of each item")


def rater_table(
    raters: Mapping[str, pl.DataFrame],
    activities: pl.DataFrame,
    *,
    families: FamilyMap = OF_ITEMS,
    first: str = "math",
    threshold: float = 3.0,
    top_k: int = 5,
) -> pl.DataFrame:
    """Return one row per rater.

    Parameters
    ----------
    raters
        Per rater: task, doc_id, perspective, activities (ranked ids).
    activities
        activity, dropped, auto, aug: values on [1, 5].
    families
        The family of each task; by default the task itself, as ``read_raters`` has it.
    first
        The family that is compared with all others.
    threshold, top_k
        Of the quadrants, ranks that count.

    Returns
    -------
    pl.DataFrame
        rater, n_items (with both framings), per framing <perspective>_slots (kept) and <perspective>_green, _automate,
        _augment, _red (shares of them), gap_auto, gap_aug (mean of the other families less that of ``first``, on
        [1, 5]), frontier_size, frontier_first (of ``first``), first_dominated, other_dominated
        (shares of items that some item of the other side dominates). Null where a side has no item.
    """
    rows = []
    for name, loadings in raters.items():
        items = item_welfare(loadings, activities, top_k=top_k)
        shares = quadrant_shares(loadings, activities, items, top_k=top_k, thresholds=[threshold])
        row: dict[str, Any] = {"rater": name}
        known = mark_frontier(items.drop_nulls(["w_auto", "w_aug"]))
        side = pl.when(families.assign(known["task"]) == first).then(pl.lit(first)).otherwise(pl.lit("other"))
        known = mark_dominators(known.with_columns(side=side))
        row["n_items"] = known.height
        for perspective in PERSPECTIVES:
            mine = shares.filter(pl.col("unit") == f"{perspective} slots")
            row[f"{perspective}_slots"] = mine["total"][0]
            found = dict(mine.select("quadrant", "share").iter_rows())
            row |= {f"{perspective}_{quadrant}": found[quadrant] for quadrant in QUADRANTS}
        if known["side"].n_unique() == 2:
            for value in VALUES.values():
                mean = dict(known.group_by("side").agg(pl.col(f"w_{value}").mean()).iter_rows())
                row[f"gap_{value}"] = mean["other"] - mean[first]
            summary = summarise_frontier(known, first)
            row |= {"frontier_size": summary.size, "frontier_first": summary.first_on_frontier}
            row |= {"first_dominated": summary.first_dominated, "other_dominated": summary.second_dominated}
        rows.append(row)
    return pl.DataFrame(rows, infer_schema_length=None)
