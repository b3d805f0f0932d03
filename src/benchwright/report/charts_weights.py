"""Charts of the aggregation game: weights against uniform, efficiency over risk, neutral point, loss."""

from __future__ import annotations

import altair as alt
import numpy as np
import polars as pl

from benchwright._words import SCHEME_NAMES
from benchwright.mechanism.item_weights import IN_FORCE, ItemWeights
from benchwright.mechanism.point_weights import PointWeights
from benchwright.report.style import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, Chart, rule_at, themed

MAX_ITEMS_DRAWN = 1500
BEST = "the best weights"


def weights_against_uniform(weights: PointWeights) -> Chart:
    """Optimal weight of each item as a multiple of the uniform weight, against its welfare."""
    items = weights.items.with_columns(multiple=pl.col("weight_share") / pl.col("uniform_share"))
    if items.height > MAX_ITEMS_DRAWN:
        picked = np.linspace(0, items.height - 1, MAX_ITEMS_DRAWN).round().astype(np.int64)
        items = items.sort("multiple")[np.unique(picked)]
    items = items.with_columns(
        sign=pl.when(pl.col("weight") < 0).then(pl.lit("negative")).otherwise(pl.lit("positive"))
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
                scale=alt.Scale(domain=["positive", "negative"], range=[BLUE, RED]),
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
                alt.Tooltip("cost_usd:Q", title="USD per unit", format=",.3~r"),
                alt.Tooltip("cheapest_axis:N", title="cheapest axis"),
                alt.Tooltip("sigma:Q", title="seed noise", format=".3f"),
            ],
        )
        .add_params(pick)
    )
    return themed(alt.layer(rule_at(0, "y", dash=False), rule_at(1, "y"), dots), height=420)


def value_over_risk(weights: PointWeights) -> Chart | None:
    """What the best weights and each scheme keep of the first-best value, over the developer's risk aversion."""
    total = weights.optimum.first_best
    if not (weights.balanced_risk > 0 and total > 0):
        return None
    sweep = weights.sweep.to_frame()
    best = sweep.unique("r", maintain_order=True).select(
        "r", value=pl.col("optimum_surplus") / total, efficiency=pl.lit(1.0), scheme=pl.lit(BEST)
    )
    others = sweep.select(
        "r", "efficiency", value=pl.col("surplus") / total, scheme=pl.col("scheme").replace(SCHEME_NAMES)
    ).select(best.columns)
    names = [BEST, *(SCHEME_NAMES[name] for name in weights.schemes)]
    # The same for colour and dash, so that they share a legend.
    order, legend = alt.Scale(domain=names), alt.Legend(columns=2)
    lines = (
        alt.Chart(pl.concat([best, others]))
        .mark_line(strokeWidth=2.5)
        .encode(
            x=alt.X(
                "r:Q",
                scale=alt.Scale(type="log", nice=False),
                title="risk aversion r (log scale)",
                axis=alt.Axis(format="~g"),
            ),
            y=alt.Y(
                "value:Q",
                scale=alt.Scale(domain=[0, 1]),
                axis=alt.Axis(format=".0%"),
                title="share of the first-best value",
            ),
            color=alt.Color("scheme:N", title=None, scale=order, legend=legend),
            strokeDash=alt.StrokeDash("scheme:N", title=None, scale=order, legend=legend),
            tooltip=[
                "scheme:N",
                alt.Tooltip("r:Q", format=".3~g"),
                alt.Tooltip("value:Q", title="of first-best", format=".1%"),
                alt.Tooltip("efficiency:Q", title="of the best weights", format=".1%"),
            ],
        )
    )
    return themed(alt.layer(rule_at(weights.balanced_risk, "x", log=True), lines), height=320)


def efficiency_over_neutral(weights: ItemWeights, neutral: float) -> Chart:
    """What the plain average keeps as the neutral point of welfare moves."""
    data = weights.neutral_sweep
    turning = weights.break_even
    if any(turning[IN_FORCE].point == turning[name].point for name in turning if name != IN_FORCE):
        data = data.filter(pl.col("framing") != IN_FORCE)  # one framing is in force, no mixture
    chart = (
        alt.Chart(data)
        .mark_line(strokeWidth=2.5)
        .encode(
            x=alt.X("neutral:Q", title="neutral point: welfare below it does harm", scale=alt.Scale(domain=[1, 5])),
            y=alt.Y(
                "efficiency:Q",
                scale=alt.Scale(domain=[0, 1]),
                axis=alt.Axis(format=".0%"),
                title="kept by the plain average",
            ),
            color=alt.Color("framing:N", title="welfare framing", scale=alt.Scale(range=[PURPLE, GREEN, ORANGE])),
            tooltip=[
                "framing:N",
                alt.Tooltip("neutral:Q", format=".1f"),
                alt.Tooltip("efficiency:Q", format=".1%"),
            ],
        )
    )
    return themed(alt.layer(rule_at(neutral, "x"), chart), height=300)


def loss_decomposition(weights: PointWeights) -> Chart | None:
    """First-best value of each scheme, split into what is kept, what risk takes and what is misdirected."""
    optimum = weights.optimum
    if not optimum.first_best > 0:
        return None
    rows = [(BEST, optimum.surplus, optimum.risk, optimum.misdirection)]
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
            y=alt.Y("scheme:N", sort=[row[0] for row in rows], title=None, axis=alt.Axis(labelLimit=230)),
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
