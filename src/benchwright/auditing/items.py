"""The item metadata layer: one row per item, keyed by (task, doc_id), every column with unit and meaning."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import polars as pl

from benchwright.auditing.results import ItemAudit
from benchwright.logs.item_layer import LEVEL_KEY, METADATA_KEY
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
    ItemColumn(
        "w_auto_se", "welfare on [1,5]", "standard error of w_auto: tasks behind activities, and judges if several"
    ),
    ItemColumn("w_aug_se", "welfare on [1,5]", "standard error of w_aug, likewise"),
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
    ItemColumn("cost_rank_lo", "rank", "lower end of that rank's interval, of the source or the residual bootstrap"),
    ItemColumn("cost_rank_hi", "rank", "upper end of that interval"),
    ItemColumn("cheapest_probability", "share", "replicates in which the item is among the cheapest (top share)"),
    ItemColumn("mean_score", "score", "mean over seeds and checkpoints"),
    ItemColumn("sigma2", "score^2", "variance over seeds within checkpoints, pooled"),
    ItemColumn("sigma2_lo", "score^2", "lower end of its interval"),
    ItemColumn("sigma2_hi", "score^2", "upper end of its interval"),
    ItemColumn("sigma2_df", "1", "effective degrees of freedom of the variance"),
    ItemColumn("sigma", "score", "standard deviation over seeds"),
    ItemColumn("z", "1", "sigma / sqrt(p (1 - p)), p the mean score"),
    ItemColumn("margin_ratio", "1", "median log-likelihood ratio gold / runner-up; 1 a tie, below 1 gold wins"),
    ItemColumn("noise_eligible", "", "mean score and variance within limits"),
    ItemColumn("noise_rank", "rank", "place among eligible items, quietest first"),
    ItemColumn("noise_rank_lo", "rank", "lower end of that rank's interval, of the source or the seed bootstrap"),
    ItemColumn("noise_rank_hi", "rank", "upper end of that interval"),
    ItemColumn("noisiest_probability", "share", "replicates in which the item is among the noisiest (top share)"),
    ItemColumn("noise_why", "", "why the item has no variance"),
    ItemColumn("n_models", "models", "models, or trainings of a single model, that its quality is judged by"),
    ItemColumn("dead", "", "all right, all wrong, constant, not dead, or cannot tell"),
    ItemColumn("item_rest_r", "1", "correlation with the mean of the other items over models"),
    ItemColumn("reversed_p", "probability", "one-sided p-value of a negative correlation with the rest"),
    ItemColumn("reversed_q", "probability", "the same after control of false discoveries"),
    ItemColumn("quality_verdict", "", "runs against the rest, no sign of it, or cannot tell"),
    ItemColumn("n_redundant", "items", "items that say the same beyond what the models' level explains"),
    ItemColumn("redundant_group", "", "group of items tied by such pairs"),
    ItemColumn("weight", "reward / score", "optimal weight v* at the configured risk aversion"),
    ItemColumn("weight_share", "share", "v* divided by its sum, or by the sum of |v*| where that is not positive"),
    ItemColumn("weight_lo", "reward / score", "lower end of its interval, slopes and noise drawn again"),
    ItemColumn("weight_hi", "reward / score", "upper end of that interval"),
    ItemColumn("weight_positive", "share", "draws in which the weight is positive"),
    ItemColumn("published_weight", "reward / score", "best weight under the constraints of [published]"),
    ItemColumn("published_share", "share", "the same as a share of their sum"),
    ItemColumn("published_lo", "share", "lower end of that share's interval, over the same draws"),
    ItemColumn("published_hi", "share", "upper end of that interval"),
    ItemColumn("published_kept", "share", "draws in which the item carries a weight under the constraints"),
    ItemColumn("averaged_share", "share", "share under the same constraints that is best on average over draws"),
    ItemColumn("weight_undetermined", "", "the data do not determine this weight; the smallest-norm one is shown"),
)
SLOPE_DETAILS = (
    ("_se", "score per slope unit", "standard error of the slope"),
    ("_lo", "score per slope unit", "lower end of the slope's interval"),
    ("_hi", "score per slope unit", "upper end of the slope's interval"),
    ("_n", "runs", "runs that the slope is fitted to"),
    ("_logit", "score per slope unit", "mean slope of a logistic curve"),
    ("_corrected", "score per slope unit", "slope scaled so that noise does not inflate the sum of squares"),
    ("_eb", "score per slope unit", "empirical-Bayes slope, shrunk towards its task's mean"),
    ("_eb_sd", "score per slope unit", "posterior standard deviation of that slope"),
)


def axis_columns(axes: Iterable[str]) -> tuple[ItemColumn, ...]:
    """Return the columns of the effort axes: slopes in the source's units, then dollars."""
    slopes = tuple(
        ItemColumn(f"slope_{axis.lower()}", "score per slope unit", f"slope of the score on the {axis} axis")
        for axis in axes
    )
    details = tuple(
        ItemColumn(f"slope_{axis.lower()}{end}", unit, f"{axis} axis: {what}")
        for axis in axes
        for end, unit, what in SLOPE_DETAILS
    )
    why = tuple(
        ItemColumn(f"{axis.lower()}_why", "", f"why there is no slope on the {axis} axis, or no error") for axis in axes
    )
    costs = tuple(
        ItemColumn(
            f"cost_{axis.lower()}_usd",
            "US dollars per 1.0 of score",
            f"{axis} price / slope; empty if slope <= 0",
        )
        for axis in axes
    )
    return slopes + details + why + costs


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
    order = [column.name for column in described_columns(axes) if column.name in layer.columns]
    return layer.select(order).sort(*ITEM)


def column_metadata(layer: pl.DataFrame, axes: Sequence[str], *, rank_level: float) -> dict[str, str]:
    """Return the Parquet metadata: unit and description of each column, and the level of intervals of ranks."""
    known = {column.name: column for column in described_columns(axes)}
    described = {name: {"unit": known[name].unit, "description": known[name].description} for name in layer.columns}
    return {METADATA_KEY: json.dumps(described, ensure_ascii=False), LEVEL_KEY: repr(rank_level)}


def described_columns(axes: Iterable[str]) -> tuple[ItemColumn, ...]:
    """Return every column of a layer with these axes, in its order."""
    place = next(i for i, column in enumerate(COLUMNS) if column.name == "cost_usd")
    return COLUMNS[:place] + axis_columns(axes) + COLUMNS[place:]
