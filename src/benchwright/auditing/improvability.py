"""Improvability: what a unit of an item's score costs on each effort axis.

With slope beta_ik (score per slope unit of axis k, from a regression over that axis' grid of models) and
price kappa_k (US dollars for one slope unit), a full unit of score costs kappa_k / beta_ik dollars where the
slope is positive; an axis with slope <= 0 offers no improvement at any price, and an item without a positive
slope has no cost, not an infinite one. All dollars here are for 1.0 of score; "per 0.10" is a tenth of that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import polars as pl

from benchwright.auditing.ranks import published_ranks, quantile_table, rank_ascending
from benchwright.auditing.results import ImprovabilityAudit
from benchwright.choices import EligibilityChoices, Price
from benchwright.estimating.eligibility import cost_eligible
from benchwright.logs.item_tables import ITEM

# Published slopes are rounded, so price / slope misses the published dollars by that rounding. Where the
# median of cost x slope says that the same price was used, the published dollars carry more digits.
SAME_PRICE = 1e-3
SAME_ROW = 0.05
PANEL_COLUMNS = ("cheapest_probability",)
DETAILS = ("_se", "_lo", "_hi", "_n", "_logit", "_corrected", "_eb", "_eb_sd")


def slope_name(axis: str) -> str:
    """Return the column of an axis' slopes: PT -> ``slope_pt``."""
    return f"slope_{axis.lower()}"


def cost_name(axis: str) -> str:
    """Return the column of an axis' dollar costs: PT -> ``cost_pt_usd``."""
    return f"cost_{axis.lower()}_usd"


def axis_details(axes: Iterable[str]) -> list[str]:
    """Return the columns that a panel adds to the slope of each axis."""
    return [name for axis in axes for name in (*(slope_name(axis) + end for end in DETAILS), f"{axis.lower()}_why")]


def audit_improvability(
    cost: pl.DataFrame, axes: tuple[str, ...], *, prices: Mapping[str, Price], limits: EligibilityChoices
) -> ImprovabilityAudit:
    """Turn slopes into dollars, name the cheapest axis of each item, and rank the items by cost.

    Parameters
    ----------
    cost
        task, doc_id, anchor_phat, beta_<axis> and optionally cost_<axis>_usd and rank columns.
    axes
        Effort axes present in ``cost``.
    prices
        US dollars per slope unit and axis.
    limits
        Eligible items have ``anchor_low <= anchor <= anchor_high`` and a positive slope on some axis.

    Further columns of ``cost`` (``PANEL_COLUMNS`` and those of an axis) come from a panel and are kept; an axis
    without a price has slopes and no costs. ``bounded`` false: scores leave [0, 1], so the limits do not apply.
    """
    notes = []
    items = cost.rename({"anchor_phat": "anchor"} | {f"beta_{axis.lower()}": slope_name(axis) for axis in axes})
    implied: dict[str, float | None] = {}
    for axis in axes:
        if axis not in prices:
            items = items.with_columns(pl.lit(None, dtype=pl.Float64).alias(cost_name(axis)))
            continue
        dollars = pl.when(pl.col(slope_name(axis)) > 0).then(prices[axis].usd / pl.col(slope_name(axis)))
        items = items.with_columns(_own=pl.when(dollars.is_finite()).then(dollars))
        if cost_name(axis) in items.columns:
            items, implied[axis], note = _published_dollars(items, axis, prices[axis])
            notes += note
        items = items.with_columns(pl.col("_own").alias(cost_name(axis)))
    costs = [cost_name(axis) for axis in axes]
    items = items.with_columns(cost_usd=pl.min_horizontal(costs))
    cheapest = pl.coalesce([pl.when(pl.col(cost_name(axis)) == pl.col("cost_usd")).then(pl.lit(axis)) for axis in axes])
    if "bounded" not in items.columns:
        items = items.with_columns(bounded=pl.lit(True))
    items = items.with_columns(cheapest_axis=cheapest, cost_eligible=cost_eligible(limits).fill_null(False))
    ranked, why = published_ranks(rank_ascending(items.filter("cost_eligible"), "cost_usd"))
    if why is not None:
        notes.append(f"Cost ranks have no intervals: {why}.")
    ranks = ranked.select(*ITEM, cost_rank="position", cost_rank_lo="rank_lo", cost_rank_hi="rank_hi")
    keep = [*ITEM, "anchor", *map(slope_name, axes), *costs, "cost_usd", "cheapest_axis", "cost_eligible"]
    keep += [name for name in (*PANEL_COLUMNS, *axis_details(axes)) if name in items.columns]
    return ImprovabilityAudit(
        items=items.select(keep).join(ranks, on=ITEM, how="left", maintain_order="left"),
        by_axis=_by_axis(ranked, axes, prices, implied),
        quantiles=quantile_table(ranked, "cost_usd"),
        axes=axes,
        notes=tuple(notes),
    )


def _published_dollars(items: pl.DataFrame, axis: str, price: Price) -> tuple[pl.DataFrame, float | None, list[str]]:
    """Put the source's dollars into ``_own`` where they were made with the same price; say where not."""
    product = pl.col(cost_name(axis)) * pl.col(slope_name(axis)) / price.usd
    ratio = items.filter(pl.col(slope_name(axis)) > 0).select(product).to_series().drop_nulls()
    if ratio.is_empty():
        return items, None, []
    stated = float(np.median(ratio.to_numpy())) * price.usd
    if abs(stated / price.usd - 1) >= SAME_PRICE:
        return (
            items,
            stated,
            [
                f"{axis}: the source's dollar column implies {stated:.4g} USD for {price.per}, the price in force is "
                f"{price.usd:.4g}; costs are recomputed from the slopes."
            ],
        )
    agrees = (product - 1).abs() < SAME_ROW
    items = items.with_columns(_own=pl.when(agrees).then(pl.col(cost_name(axis))).otherwise(pl.col("_own")))
    notes = [
        f"{axis}: dollars x slope is {stated:.4g} in the source, so its dollars are for 1.0 of score and its "
        f"slopes are per {price.per}."
    ]
    off = int(((ratio - 1).abs() >= SAME_ROW).sum())
    if off:
        notes.append(f"{axis}: {off} of the source's dollar figures do not follow from their slopes; recomputed.")
    return items, stated, notes


def _by_axis(
    ranked: pl.DataFrame,
    axes: tuple[str, ...],
    prices: Mapping[str, Price],
    implied: Mapping[str, float | None],
) -> pl.DataFrame:
    """Return per axis: price, its unit, implied price, items it is cheapest for, share, median dollars."""
    rows = []
    for axis in axes:
        mine = ranked.filter(pl.col("cheapest_axis") == axis)["cost_usd"]
        price = prices.get(axis)
        rows.append(
            {
                "axis": axis,
                "price_usd": None if price is None else price.usd,
                "per": "dose, as the panel states it" if price is None else price.per,
                "implied_price_usd": implied.get(axis),
                "n_improving": int((ranked[slope_name(axis)] > 0).sum()),
                "n_cheapest": len(mine),
                "share_cheapest": len(mine) / ranked.height if ranked.height else np.nan,
                "median_usd_per_unit": _median(mine),
            }
        )
    return pl.DataFrame(rows, infer_schema_length=None).with_columns(pl.col("share_cheapest").fill_nan(None))


def _median(values: pl.Series) -> float | None:
    """Return the median, None where there are no values."""
    values = values.drop_nulls()
    return float(np.median(values.to_numpy())) if len(values) else None
