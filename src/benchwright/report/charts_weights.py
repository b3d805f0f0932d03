"""Charts of the aggregation game: weights against uniform, efficiency over risk, neutral point, loss."""

from __future__ import annotations

import altair as alt
import numpy as np
import polars as pl

from benchwright.mechanism.item_weights import ItemWeights
from benchwright.report.style import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, Chart, rule_at, themed

MAX_ITEMS_DRAWN = 1500
SCHEME_NAMES = {
    "uniform": "plain average of items",
    "task_means": "mean of task means",
    "size_weighted": "task means by task size",
    "user": "your weights",
}


def weights_against_uniform(weights: ItemWeights) -> Chart:
    """Optimal weight of each item as a multiple of the uniform weight, against its welfare."""
    items = weights.items.with_columns(multiple=pl.col("weight_share") / pl.col("uniform_share"))
    if items.height > MAX_ITEMS_DRAWN:
        picked = np.linspace(0, items.height - 1, MAX_ITEMS_DRAWN).round().astype(np.int64)
        items = items.sort("multiple")[np.unique(picked)]
    items = items.with_columns(
        sign=pl.when(pl.col("weight") < 0).then(pl.lit("negative (a hedge)")).otherwise(pl.lit("positive"))
    )
    pick = alt.selection_point(fields=["sign"], bind="legend")
    dots = (
        alt.Chart(items.select("task", "doc_id", "welfare", "multiple", "sign", "cost_usd", "sigma", "cheapest_axis"))
        .mark_circle()
        .encode(
            x=alt.X("welfare:Q", title="welfare of the item, above (+) or below (-) the neutral point"),
            y=alt.Y("multiple:Q", title="optimal weight, as a multiple of uniform"),
            color=alt.Color(
                "sign:N",
                title="weight",
                scale=alt.Scale(domain=["positive", "negative (a hedge)"], range=[BLUE, RED]),
            ),
            size=alt.Size(
                "sigma:Q",
                title="seed noise",
                scale=alt.Scale(range=[20, 260]),
                legend=alt.Legend(format=".2f", values=[0.1, 0.3]),
            ),
            opacity=alt.condition(pick, alt.value(0.7), alt.value(0.05)),
            tooltip=[
                "task:N",
                "doc_id:N",
                alt.Tooltip("welfare:Q", format="+.2f"),
                alt.Tooltip("multiple:Q", title="x uniform", format=".2f"),
                alt.Tooltip("cost_usd:Q", title="USD per unit", format="~s"),
                alt.Tooltip("cheapest_axis:N", title="cheapest axis"),
                alt.Tooltip("sigma:Q", title="seed noise", format=".3f"),
            ],
        )
        .add_params(pick)
    )
    return themed(alt.layer(rule_at(0, "y", dash=False), rule_at(1, "y"), dots), height=420)


def efficiency_over_risk(weights: ItemWeights) -> Chart:
    """What each scheme keeps of the best possible surplus, as the developer's risk aversion grows."""
    data = weights.sweep.to_frame().select("r", "efficiency", scheme=pl.col("scheme").replace(SCHEME_NAMES))
    names = [SCHEME_NAMES[name] for name in weights.schemes]
    lines = (
        alt.Chart(data.filter(pl.col("r") > 0))
        .mark_line(point=True, strokeWidth=2.5)
        .encode(
            x=alt.X(
                "r:Q",
                scale=alt.Scale(type="log", nice=False),
                title="risk aversion r (log scale)",
                axis=alt.Axis(format="~g"),
            ),
            y=alt.Y(
                "efficiency:Q",
                scale=alt.Scale(domain=[0, 1]),
                axis=alt.Axis(format=".0%"),
                title="share of the best surplus kept",
            ),
            color=alt.Color("scheme:N", title=None, sort=names, legend=alt.Legend(columns=2)),
            strokeDash=alt.StrokeDash("scheme:N", sort=names, legend=None),
            tooltip=[
                "scheme:N",
                alt.Tooltip("r:Q", format=".3~g"),
                alt.Tooltip("efficiency:Q", format=".1%"),
            ],
        )
    )
    return themed(alt.layer(rule_at(weights.balanced_risk, "x"), lines), height=320)


def efficiency_over_neutral(weights: ItemWeights, neutral: float) -> Chart:
    """What the plain average keeps as the neutral point of welfare moves."""
    chart = (
        alt.Chart(weights.neutral_sweep)
        .mark_line(strokeWidth=2.5)
        .encode(
            x=alt.X("neutral:Q", title="neutral point: welfare below it does harm", scale=alt.Scale(domain=[1, 5])),
            y=alt.Y(
                "efficiency:Q",
                scale=alt.Scale(domain=[0, 1]),
                axis=alt.Axis(format=".0%"),
                title="kept by the plain average",
            ),
            color=alt.Color("framing:N", title="welfare framing", scale=alt.Scale(range=[PURPLE, GREEN])),
            tooltip=[
                "framing:N",
                alt.Tooltip("neutral:Q", format=".1f"),
                alt.Tooltip("efficiency:Q", format=".1%"),
            ],
        )
    )
    return themed(alt.layer(rule_at(neutral, "x"), chart), height=300)


def loss_decomposition(weights: ItemWeights) -> Chart:
    """First-best value of each scheme, split into what is kept, what risk takes and what is misdirected."""
    optimum = weights.optimum
    rows = [("optimal weights", optimum.surplus, optimum.risk, optimum.misdirection)]
    rows += [
        (SCHEME_NAMES[name], scheme.surplus, scheme.risk, scheme.misdirection)
        for name, scheme in weights.schemes.items()
    ]
    parts = ("kept", "lost to risk", "not pursued or misdirected")
    total = optimum.first_best
    data = pl.DataFrame(
        [
            (name, part, value / total, place)
            for name, *values in rows
            for place, (part, value) in enumerate(zip(parts, values, strict=True))
        ],
        schema=["scheme", "part", "share", "place"],
        orient="row",
    )
    chart = (
        alt.Chart(data)
        .mark_bar(stroke="white")
        .encode(
            y=alt.Y("scheme:N", sort=[row[0] for row in rows], title=None),
            x=alt.X(
                "share:Q",
                stack="zero",
                scale=alt.Scale(domain=[0, 1]),
                axis=alt.Axis(format=".0%"),
                title="share of the first-best value",
            ),
            color=alt.Color(
                "part:N",
                title=None,
                sort=list(parts),
                scale=alt.Scale(domain=list(parts), range=[GREEN, ORANGE, GREY]),
            ),
            order=alt.Order("place:Q"),
            tooltip=["scheme:N", "part:N", alt.Tooltip("share:Q", format=".2%")],
        )
    )
    return themed(chart, height=44 * len(rows) + 20)
