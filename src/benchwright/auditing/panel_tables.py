"""Item tables that a panel gives, in the columns that published tables have, and its item quality."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from benchwright.auditing.improvability import axis_details, slope_name
from benchwright.auditing.results import QualityAudit
from benchwright.errors import DataError
from benchwright.estimating.estimates import PanelEstimates
from benchwright.logs.item_tables import ITEM, ItemTables


def panel_tables(estimates: PanelEstimates, welfare: ItemTables | None = None) -> ItemTables:
    """Return what a panel says as item tables, with the welfare tables of another source beside it.

    Raises
    ------
    DataError
        The welfare tables name no item as the panel does.
    """
    bounded = pl.Series("bounded", estimates.measured.bounded)
    cost = noise = None
    axes: tuple[str, ...] = ()
    if estimates.slopes is not None:
        axes = estimates.slopes.axes
        names = {slope_name(axis): f"beta_{axis.lower()}" for axis in axes} | {"anchor": "anchor_phat"}
        details = [*axis_details(axes), "cheapest_probability"]
        ranks = {"rank": "rank_headline"}
        keep = [*ITEM, *names, *ranks, "rank_lo", "rank_hi", *details]
        cost = estimates.slopes.items.select(keep).rename(names | ranks).with_columns(bounded)
    if estimates.noise is not None:
        names = {"sigma2": "noise_sigma2", "mean_score": "noise_mean_phat", "rank": "rank_headline"}
        details = ["rank_lo", "rank_hi", "sigma2_lo", "sigma2_hi", "sigma2_df", "noisiest_probability", "noise_why"]
        noise = estimates.noise.items.select(*ITEM, *names, *details).rename(names).with_columns(bounded)
    notes = list(estimates.notes)
    for part in (estimates.noise, estimates.slopes):
        notes += [] if part is None else part.notes
    tables = ItemTables(
        name=estimates.measured.name,
        cost=cost,
        noise=noise,
        margins=estimates.margins if noise is not None else None,
        axes=axes,
        notes=tuple(notes),
    )
    return tables if welfare is None else _with_welfare(tables, welfare, estimates)


def _with_welfare(tables: ItemTables, welfare: ItemTables, estimates: PanelEstimates) -> ItemTables:
    named = next(iter((*welfare.main_loadings, *welfare.loadings.values())), welfare.welfare)
    if named is not None:
        items = estimates.measured.items
        kinds = named["doc_id"].dtype, items["doc_id"].dtype
        if kinds[0] != kinds[1] or named.join(items, on=ITEM, how="semi").height == 0:
            example = ", ".join(f"({task}, {doc_id})" for task, doc_id in items.head(2).iter_rows())
            other = ", ".join(f"({task}, {doc_id})" for task, doc_id in named.select(*ITEM).head(2).iter_rows())
            raise DataError(
                f"{welfare.name} names no item as the panel does: it has {other}, the panel {example}",
                hint="write task and doc_id of the welfare tables as the panel has them; --metric chooses its items",
            )
    return replace(
        tables,
        activities=welfare.activities,
        loadings=welfare.loadings,
        main=welfare.main,
        activity_draws=welfare.activity_draws,
        welfare=welfare.welfare,
        topics=welfare.topics,
        families=welfare.families,
        files=welfare.files,
        notes=(*tables.notes, *welfare.notes),
    )


def checkpoints_of(estimates: PanelEstimates) -> int | None:
    """Return the number of checkpoints of the longest grid of seeds, None where there is none."""
    if estimates.noise is None:
        return None
    return max((grid.checkpoints for grid in estimates.noise.grids), default=None)


def audit_quality(estimates: PanelEstimates) -> QualityAudit:
    """Return the quality of the panel's items, with the items' names."""
    quality, items = estimates.quality, estimates.measured.items
    table = quality.to_frame().rename({"verdict": "quality_verdict"})
    numbered = items.with_row_index("place").cast({"place": pl.Int64})
    pairs = quality.pairs.cast({"first": pl.Int64, "second": pl.Int64})
    for side in ("first", "second"):
        names = numbered.select(pl.col("place").alias(side), *(pl.col(key).alias(f"{side}_{key}") for key in ITEM))
        pairs = pairs.join(names, on=side, how="left", maintain_order="left")
    table = items.with_columns(table.drop("n_rest_models", "smallest_p"))
    if estimates.noise is None and estimates.margins is not None:  # else they stand with the noise
        margins = estimates.margins.rename({"log_ratio_med": "margin_ratio"})
        table = table.join(margins, on=ITEM, how="left", maintain_order="left")
    return QualityAudit(
        items=table,
        pairs=pairs.drop("first", "second"),
        counts=quality.counts,
        notes=quality.notes,
    )
