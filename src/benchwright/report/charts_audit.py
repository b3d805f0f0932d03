"""Charts of the audit: activity map, welfare scatter, distributions, cost, noise."""

from __future__ import annotations

from typing import Literal

import altair as alt
import numpy as np
import polars as pl

from benchwright.auditing._kernels import quantile_position
from benchwright.auditing.results import FamilyContrast, ImprovabilityAudit, NoiseAudit, WelfareAudit
from benchwright.report.style import BLUE, GREEN, GREY, INK, MUTED, ORANGE, PURPLE, RED, SKY, Chart, rule_at, themed

CURVE_POINTS = 400
DOLLARS = "abs(datum.value) < 1000 ? format(datum.value, '$.3~r') : replace(format(datum.value, '$.3~s'), 'G', 'B')"
COMMON = 0.1  # share of items from which an activity shows its interval on the map
LABELLED = 3  # bubbles that carry their name; the others show it on hover
FRAME = (0.8, 5.2)  # of the map, on the scale from 1 to 5
LEFT, RIGHT = 2.0, 4.0  # names near an edge of the map grow inwards
LEFT_ALIGNED: Literal["left"] = "left"
CENTRED: Literal["center"] = "center"
RIGHT_ALIGNED: Literal["right"] = "right"
FAMILY_COLOURS = [PURPLE, SKY, GREEN, GREY]
MAX_ITEMS_DRAWN = 2000
QUADRANT_NAMES = {
    "green": "both wanted",
    "automate": "automation only",
    "augment": "help only",
    "red": "neither",
}


def activity_map(welfare: WelfareAudit, framing: str, threshold: float, intervals: pl.DataFrame | None = None) -> Chart:
    """Bubbles of activities: value under both framings, area = share of items that load on it, intervals of values."""
    slider = alt.param(
        name=f"threshold_{framing}",
        value=threshold,
        bind=alt.binding_range(min=1, max=5, step=0.1, name="threshold "),
    )
    data = welfare.activities.select("label", "auto", "aug", share=pl.col(framing), n_tasks="n_tasks")
    tau = slider.name
    colour = (
        f"datum.auto >= {tau} ? (datum.aug >= {tau} ? '{GREEN}' : '{BLUE}') : "
        f"(datum.aug >= {tau} ? '{ORANGE}' : '{RED}')"
    )
    scale = alt.Scale(domain=list(FRAME), nice=False)
    ticks = alt.Axis(values=[1, 2, 3, 4, 5], format="d")
    titles = (
        ("workers want it automated (1 to 5)", "workers want help with it (1 to 5)")
        if welfare.says_workers
        else ("value under automation (1 to 5)", "value under augmentation (1 to 5)")
    )
    base = alt.Chart(data)
    bubbles = (
        base.transform_calculate(fill=colour)
        .mark_circle(opacity=0.78, stroke=INK, strokeWidth=0.6)
        .encode(
            x=alt.X("auto:Q", scale=scale, axis=ticks, title=titles[0]),
            y=alt.Y("aug:Q", scale=scale, axis=ticks, title=titles[1]),
            size=alt.Size(
                "share:Q",
                title="share of items",
                scale=alt.Scale(domain=[0, 1], range=[25, 1600]),
                legend=alt.Legend(format=".0%", values=[0.1, 0.5, 1.0]),
            ),
            color=alt.Color("fill:N", scale=None),
            order=alt.Order("share:Q", sort="descending"),
            tooltip=[
                alt.Tooltip("label:N", title="activity"),
                alt.Tooltip("share:Q", title="share of items", format=".1%"),
                alt.Tooltip("auto:Q", title="automation value", format=".2f"),
                alt.Tooltip("aug:Q", title="help value", format=".2f"),
                alt.Tooltip("n_tasks:Q", title="rated tasks"),
            ],
        )
    )
    largest = data.sort("share", "label", descending=[True, False]).head(LABELLED)
    names = [
        alt.Chart(part)
        .mark_text(align=align, dy=-19, fontSize=11, color=INK, limit=150)
        .encode(x=alt.X("auto:Q", scale=scale), y=alt.Y("aug:Q", scale=scale), text="label:N")
        for part, align in (
            (largest.filter(pl.col("auto") < LEFT), LEFT_ALIGNED),
            (largest.filter(pl.col("auto").is_between(LEFT, RIGHT)), CENTRED),
            (largest.filter(pl.col("auto") > RIGHT), RIGHT_ALIGNED),
        )
    ]
    cuts = alt.Chart(pl.DataFrame({"one": [1]})).transform_calculate(at=tau)
    cuts = cuts.mark_rule(color=MUTED, strokeDash=[5, 4])
    lines = (
        cuts.encode(x=alt.X("at:Q", scale=scale)),
        cuts.encode(y=alt.Y("at:Q", scale=scale)),
    )
    bars: tuple[alt.Chart, ...] = ()
    if intervals is not None:
        common = welfare.activities.filter(pl.col(framing) >= COMMON)
        bars = _crosses(common.join(intervals, on="activity"), scale)
    return themed(alt.layer(*lines, *bars, bubbles, *names).add_params(slider), height=430)


def _crosses(values: pl.DataFrame, scale: alt.Scale) -> tuple[alt.Chart, alt.Chart]:
    """Return the intervals of values under both framings, cut at the frame."""
    low, high = FRAME
    ends = [f"{name}_{end}" for name in ("auto", "aug") for end in ("lo", "hi")]
    base = alt.Chart(values.select("auto", "aug", pl.col(ends).clip(low, high)))
    base = base.mark_rule(color=GREY, strokeWidth=1, opacity=0.8)
    x, y = alt.X("auto_lo:Q", scale=scale), alt.Y("aug_lo:Q", scale=scale)
    return (
        base.encode(x=x, x2="auto_hi:Q", y=alt.Y("aug:Q", scale=scale)),
        base.encode(x=alt.X("auto:Q", scale=scale), y=y, y2="aug_hi:Q"),
    )


def welfare_scatter(welfare: WelfareAudit) -> Chart:
    """Every item's welfare under both framings, by family, with the Pareto frontier."""
    items = welfare.items.drop_nulls(["w_auto", "w_aug"])
    side = "side" if "side" in items.columns else "family"
    data = items.select("task", "doc_id", "w_auto", "w_aug", "quadrant", "on_frontier", group=side)
    data = data.with_columns(pl.col("quadrant").replace(QUADRANT_NAMES))
    front = data.filter("on_frontier").sort("w_auto")
    if data.height > MAX_ITEMS_DRAWN:
        data = pl.concat([data.sort("w_auto", "w_aug", "task", "doc_id")[:: -(-data.height // MAX_ITEMS_DRAWN)], front])
    order = data["group"].unique().sort().to_list()
    if welfare.contrast is not None:
        order = [welfare.contrast.first, welfare.contrast.second]
    pick = alt.selection_point(fields=["group"], bind="legend")
    x = alt.X("w_auto:Q", scale=alt.Scale(zero=False), title="welfare if automated (w_auto)")
    y = alt.Y("w_aug:Q", scale=alt.Scale(zero=False), title="welfare if it helps (w_aug)")
    points = (
        alt.Chart(data)
        .mark_point(filled=True, size=45)
        .encode(
            x=x,
            y=y,
            color=alt.Color("group:N", title="family", sort=order, scale=alt.Scale(range=FAMILY_COLOURS)),
            shape=alt.Shape("group:N", sort=order, legend=None),
            opacity=alt.condition(pick, alt.value(0.65), alt.value(0.06)),
            tooltip=[
                "task:N",
                "doc_id:N",
                alt.Tooltip("group:N", title="family"),
                alt.Tooltip("w_auto:Q", format=".2f"),
                alt.Tooltip("w_aug:Q", format=".2f"),
                "quadrant:N",
            ],
        )
        .add_params(pick)
    )
    line = alt.Chart(front).mark_line(color=INK, interpolate="step-before", strokeWidth=1.5).encode(x=x, y=y)
    rings = alt.Chart(front).mark_point(size=130, color=INK, strokeWidth=1.5).encode(x=x, y=y)
    return themed(alt.layer(points, line, *_errors(items, x, y), rings), height=430)


def _errors(items: pl.DataFrame, x: alt.X, y: alt.Y) -> tuple[alt.Chart, ...]:
    """Return one standard error either way of the items on the frontier; nothing where none is known."""
    if not {"w_auto_se", "w_aug_se"} <= set(items.columns):
        return ()
    front = (
        items.filter("on_frontier")
        .drop_nulls(["w_auto_se", "w_aug_se"])
        .unique(["w_auto", "w_aug"], maintain_order=True)
    )
    ends = {
        f"{name}_{end}": pl.col(name) + sign * pl.col(f"{name}_se")
        for name in ("w_auto", "w_aug")
        for end, sign in (("lo", -1), ("hi", 1))
    }
    base = alt.Chart(front.select("w_auto", "w_aug", **ends).sort("w_auto", "w_aug"))
    base = base.mark_rule(color=INK, strokeWidth=1, opacity=0.5)
    low_x, low_y = x.copy(), y.copy()
    low_x.shorthand, low_y.shorthand = "w_auto_lo:Q", "w_aug_lo:Q"
    return base.encode(x=low_x, x2="w_auto_hi:Q", y=y), base.encode(x=x, y=low_y, y2="w_aug_hi:Q")


def welfare_ecdf(welfare: WelfareAudit, contrast: FamilyContrast, column: str, title: str) -> Chart:
    """Share of each family's items at or below a welfare value."""
    frames = []
    for side in (contrast.first, contrast.second):
        values = np.sort(welfare.items.filter(pl.col("side") == side)[column].to_numpy())
        values, share = _thin(values, np.arange(1, len(values) + 1) / len(values))
        frames.append(pl.DataFrame({"family": side, "value": values, "share": share}))
    colour = alt.Color(
        "family:N",
        title="family",
        sort=[contrast.first, contrast.second],
        scale=alt.Scale(range=FAMILY_COLOURS),
    )
    chart = (
        alt.Chart(pl.concat(frames))
        .mark_line(interpolate="step-after", strokeWidth=2.5)
        .encode(
            x=alt.X("value:Q", title=title, scale=alt.Scale(zero=False)),
            y=alt.Y("share:Q", title="share of items at or below", axis=alt.Axis(format=".0%")),
            color=colour,
            tooltip=["family:N", alt.Tooltip("value:Q", format=".2f"), alt.Tooltip("share:Q", format=".1%")],
        )
    )
    return themed(chart, height=300)


def cost_curve(improvability: ImprovabilityAudit) -> Chart:
    """Cost of a unit of score, cheapest item first, with the quantile items and their rank intervals."""
    ranked = improvability.items.drop_nulls("cost_rank").sort("cost_rank")
    names = {"cost_usd": "cost", "cheapest_axis": "group"}
    data = curve_sample(ranked, "cost_rank", names, points=3 * CURVE_POINTS)
    y = alt.Y(
        "value:Q",
        title="US dollars per full unit of score",
        scale=alt.Scale(type="log"),
        axis=alt.Axis(tickCount=6, labelExpr=DOLLARS),
    )
    return ranked_chart(data, improvability.quantiles, ranked.height, y, "$,.3~r", "cheapest axis")


def noise_curve(noise: NoiseAudit) -> Chart:
    """Standard deviation over seeds, quietest item first, with the quantile items and their intervals."""
    ranked = noise.items.drop_nulls("noise_rank").sort("noise_rank")
    ranked = ranked.with_columns(
        group=pl.when(pl.col("z") < noise.reference_z).then(pl.lit("below")).otherwise(pl.lit("at or above"))
    )
    data = curve_sample(ranked, "noise_rank", {"sigma": "value", "group": "group"}, points=3 * CURVE_POINTS)
    y = alt.Y("value:Q", title="standard deviation over seeds (score)")
    return ranked_chart(data, noise.quantiles, ranked.height, y, ".3f", f"Z and the line {noise.reference_z:.3f}")


def curve_sample(ranked: pl.DataFrame, rank: str, names: dict[str, str], *, points: int) -> pl.DataFrame:
    value, group = names
    picked = np.unique(np.linspace(0, ranked.height - 1, min(points, ranked.height)).round().astype(np.int64))
    return ranked[picked].select("task", "doc_id", place=pl.col(rank) / ranked.height, value=value, group=group)


def ranked_chart(data: pl.DataFrame, quantiles: pl.DataFrame, n: int, y: alt.Y, number: str, group: str) -> Chart:
    x = alt.X("place:Q", title="share of items, lowest first", axis=alt.Axis(format=".0%"))
    pick = alt.selection_point(fields=["group"], bind="legend")
    points = (
        alt.Chart(data)
        .mark_circle(size=18)
        .encode(
            x=x,
            y=y,
            color=alt.Color("group:N", title=group, scale=alt.Scale(range=[BLUE, ORANGE, GREEN, SKY, GREY])),
            opacity=alt.condition(pick, alt.value(0.85), alt.value(0.05)),
            tooltip=["task:N", "doc_id:N", "group:N", alt.Tooltip("value:Q", format=number)],
        )
        .add_params(pick)
    )
    centre = quantiles.filter(pl.col("offset") == 0).unique("position", maintain_order=True)
    marks = centre.select(
        "task",
        "doc_id",
        "value",
        "quantile",
        "rank_lo",
        "rank_hi",
        place=pl.col("position") / n,
        low=pl.col("rank_lo") / n,
        high=pl.col("rank_hi") / n,
    )
    tips = [
        alt.Tooltip("quantile:Q", format=".0%"),
        "task:N",
        "doc_id:N",
        alt.Tooltip("value:Q", format=number),
        alt.Tooltip("rank_lo:Q", title="rank from", format=",d"),
        alt.Tooltip("rank_hi:Q", title="rank to", format=",d"),
    ]
    bars = alt.Chart(marks).mark_rule(color=INK, strokeWidth=2).encode(x="low:Q", x2="high:Q", y=y, tooltip=tips)
    dots = alt.Chart(marks).mark_point(shape="diamond", filled=True, size=110, color=INK).encode(x=x, y=y, tooltip=tips)
    layers = [points, bars, dots] if marks["low"].is_not_null().any() else [points, dots]
    return themed(alt.layer(*layers))


def family_noise(noise: NoiseAudit) -> Chart:
    """Median normalised noise per family, with the reference line."""
    data = noise.by_family.sort("median_z", descending=True)
    data = data.with_columns(
        name=pl.format(
            "{} ({} {})", "family", "n", pl.when(pl.col("n") == 1).then(pl.lit("item")).otherwise(pl.lit("items"))
        )
    )
    base = alt.Chart(data).encode(
        y=alt.Y("name:N", sort=data["name"].to_list(), title=None, axis=alt.Axis(labelLimit=260))
    )
    tips = [
        "family:N",
        alt.Tooltip("n:Q", title="items", format=",d"),
        alt.Tooltip("median_z:Q", title="median Z", format=".3f"),
        alt.Tooltip("median_sigma:Q", title="median sigma", format=".3f"),
        alt.Tooltip("median_p:Q", title="median score", format=".3f"),
    ]
    stems = base.mark_rule(color=GREY).encode(x=alt.X("zero:Q"), x2="median_z:Q").transform_calculate(zero="0")
    dots = base.mark_circle(opacity=1, size=110, color=BLUE).encode(
        x=alt.X("median_z:Q", title="median Z (a coin flip is 1)"),
        tooltip=tips,
    )
    layers = [stems, rule_at(noise.reference_z, "x")]
    if data["z_lo"].is_not_null().any():
        layers.append(base.mark_rule(color=INK, strokeWidth=3).encode(x="z_lo:Q", x2="z_hi:Q", tooltip=tips))
    return themed(alt.layer(*layers, dots), height=max(180, 40 * data.height))


def family_margins(noise: NoiseAudit) -> Chart | None:
    """How close the runner-up comes on items that models get right, against their noise."""
    data = noise.by_family.drop_nulls("median_ratio").sort("median_ratio")
    if data.height == 0:
        return None
    x = alt.X(
        "median_ratio:Q",
        title="gold / runner-up ratio, items got right (1 = tie)",
        scale=alt.Scale(zero=False),
    )
    y = alt.Y("median_z:Q", title="median Z", scale=alt.Scale(zero=False))
    tips = [
        "family:N",
        alt.Tooltip("median_ratio:Q", title="median ratio", format=".3f"),
        alt.Tooltip("median_z:Q", title="median Z", format=".3f"),
        alt.Tooltip("r_ratio_z:Q", title="r(|ratio - 1|, Z)", format=".2f"),
    ]
    base = alt.Chart(data).encode(x=x, y=y)
    dots = base.mark_circle(size=120, color=ORANGE, opacity=0.9).encode(tooltip=tips)
    # Names stand beside their dots, towards the middle of the chart, so that they stay inside it.
    middle = (float(data["median_ratio"].min()) + 1) / 2  # type: ignore[arg-type]
    right = pl.col("median_ratio") > middle
    label = {"x": x, "y": y, "text": "family:N"}
    names = [
        alt.Chart(data.filter(right)).mark_text(align="right", dx=-11, fontSize=12, color=INK).encode(**label),
        *(
            alt.Chart(data.filter(~right)[turn::2])
            .mark_text(align="left", dx=9, dy=dy, fontSize=12, color=INK)
            .encode(**label)
            for turn, dy in ((0, -9), (1, 9))
        ),
    ]
    return themed(alt.layer(rule_at(1.0, "x"), dots, *names), height=300)


def _thin(values: np.ndarray, share: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Keep at most CURVE_POINTS steps of a distribution function, the ends among them."""
    n = len(values)
    if n <= CURVE_POINTS:
        return values, share
    picked = np.array([quantile_position(q, n) - 1 for q in np.linspace(0, 1, CURVE_POINTS)])
    return values[picked], share[picked]
