"""The item metadata layer: one row per item, keyed by (task, doc_id), every column with unit and meaning."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import polars as pl

from benchwright.auditing.results import ItemAudit
from benchwright.logs.item_tables import ITEM


@dataclass(frozen=True, slots=True)
class ItemColumn:
    """A column of the layer: name, unit and one line of description."""

    name: str
    unit: str
    description: str


COLUMNS = (
    ItemColumn("task", "", "task that the item belongs to"),
    ItemColumn("doc_id", "", "id of the item within its task"),
    ItemColumn("topic", "", "what the item is about, in a phrase of the source"),
    ItemColumn("family", "", "family under the map of the welfare contrast"),
    ItemColumn("w_auto", "welfare on [1,5]", "welfare under the automation framing"),
    ItemColumn("w_aug", "welfare on [1,5]", "welfare under the augmentation framing"),
    ItemColumn("w_auto_raw", "welfare, sum over ranks", "the same before scaling to [1,5]"),
    ItemColumn("w_aug_raw", "welfare, sum over ranks", "the same before scaling to [1,5]"),
    ItemColumn("quadrant", "", "green, automate, augment or red at the configured threshold"),
    ItemColumn("on_frontier", "", "no other item is as good on both framings and better on one"),
    ItemColumn("n_dominators", "items", "items of the other family that dominate this one"),
    ItemColumn("anchor", "score", "score of the anchor model"),
    ItemColumn("cost_usd", "US dollars per 1.0 of score", "cost on the cheapest improving axis"),
    ItemColumn("cheapest_axis", "", "axis of that cost"),
    ItemColumn("cost_eligible", "", "anchor within limits and some axis improving"),
    ItemColumn("cost_rank", "rank", "place among eligible items, cheapest first"),
    ItemColumn("cost_rank_lo", "rank", "lower end of the source's interval of that rank"),
    ItemColumn("cost_rank_hi", "rank", "upper end of the source's interval of that rank"),
    ItemColumn("mean_score", "score", "mean over seeds and checkpoints"),
    ItemColumn("sigma2", "score^2", "variance over seeds within checkpoints, pooled"),
    ItemColumn("sigma", "score", "standard deviation over seeds"),
    ItemColumn("z", "1", "sigma / sqrt(p (1 - p)), p the mean score"),
    ItemColumn("margin_ratio", "1", "median log-likelihood ratio gold / runner-up; 1 a tie, below 1 gold wins"),
    ItemColumn("noise_eligible", "", "mean score and variance within limits"),
    ItemColumn("noise_rank", "rank", "place among eligible items, quietest first"),
    ItemColumn("noise_rank_lo", "rank", "lower end of the source's interval of that rank"),
    ItemColumn("noise_rank_hi", "rank", "upper end of the source's interval of that rank"),
    ItemColumn("weight", "reward / score", "optimal weight v* at the configured risk aversion"),
    ItemColumn("weight_share", "share", "v* divided by its sum, or by the sum of |v*| where that is not positive"),
    ItemColumn("weight_undetermined", "", "the data do not determine this weight; the smallest-norm one is shown"),
)
METADATA_KEY = "benchwright.columns"


def axis_columns(axes: Iterable[str]) -> tuple[ItemColumn, ...]:
    """Return the columns of the effort axes: slopes in the source's units, then dollars."""
    slopes = tuple(
        ItemColumn(f"slope_{axis.lower()}", "score per slope unit", f"slope of the score on the {axis} axis")
        for axis in axes
    )
    costs = tuple(
        ItemColumn(
            f"cost_{axis.lower()}_usd",
            "US dollars per 1.0 of score",
            f"{axis} price / slope; empty if slope <= 0",
        )
        for axis in axes
    )
    return slopes + costs


def item_layer(
    audit: ItemAudit, *, topics: pl.DataFrame | None = None, weights: pl.DataFrame | None = None
) -> pl.DataFrame:
    """Join all sections into one row per item, sorted by task and doc_id.

    ``weights`` has task, doc_id, weight, weight_share, weight_undetermined; ``topics`` task, doc_id, topic.
    An item that a section does not know has nulls there, never 0.
    """
    frames = [section.items for section in audit.sections.values()]
    frames += [frame for frame in (topics, weights) if frame is not None]
    layer = frames[0]
    for frame in frames[1:]:
        layer = layer.join(frame, on=ITEM, how="full", coalesce=True)
    axes = audit.improvability.axes if audit.improvability is not None else ()
    order = [column.name for column in _ordered(axes) if column.name in layer.columns]
    return layer.select(order).sort(*ITEM)


def column_metadata(layer: pl.DataFrame, axes: Sequence[str]) -> dict[str, str]:
    """Return the Parquet metadata: under ``benchwright.columns``, unit and description of each column."""
    known = {column.name: column for column in _ordered(axes)}
    described = {name: {"unit": known[name].unit, "description": known[name].description} for name in layer.columns}
    return {METADATA_KEY: json.dumps(described, ensure_ascii=False)}


def _ordered(axes: Iterable[str]) -> tuple[ItemColumn, ...]:
    place = next(i for i, column in enumerate(COLUMNS) if column.name == "cost_usd")
    return COLUMNS[:place] + axis_columns(axes) + COLUMNS[place:]
