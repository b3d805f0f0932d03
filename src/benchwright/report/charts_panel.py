"""Charts that only a panel has: ranks of models, seeds needed, what noise is made of, slopes, quality of items.

A panel may have thousands of models, tasks and items, so every chart says how many rows it draws at most. Numbers are
the estimates' own; nothing is estimated here. A chart is None where there is nothing to compare.
"""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import numpy as np
import polars as pl

from benchwright._words import count
from benchwright.auditing.results import NoiseAudit, QualityAudit
from benchwright.estimating.aggregate import AggregateEstimate
from benchwright.estimating.quality import VERDICTS
from benchwright.estimating.ranking import Ranking
from benchwright.estimating.slopes import SlopeEstimate
from benchwright.report.charts_audit import CURVE_POINTS, curve_sample, ranked_chart
from benchwright.report.style import BLUE, GREEN, GREY, INK, MUTED, ORANGE, RED, SKY, Chart, rule_at, themed
from benchwright.report.tables_panel import LONGEST_NAME, plain_names, slope_verdicts

MAX_MODELS = 40
MAX_SCOPES = 20
MAX_BARS = 30
MAX_FAMILIES = 20
SHORT = 24  # characters of a name with a number behind it
LABEL = 240  # pixels for names beside their bars
PARTS = {
    "seed": ("seed", BLUE),
    "checkpoint_seed": ("checkpoint x seed", SKY),
    "trials": ("sampled answers", ORANGE),
    "items": ("drawn items", GREY),
}
SIDES = {"above": ("rises", GREEN), "includes": ("cannot tell", GREY), "below": ("falls", RED)}
SIDES |= {"none": ("no interval", "#c9d0d6")}
RAMP = ("#a9d3ef", SKY, "#2b8fd0", BLUE, "#004d7a", INK)  # from few items to many
Tips = list[str | alt.Tooltip]
BINS = 20  # of the correlation on each side of 0


def model_scores(ranking: Ranking) -> Chart:
    """Mean score of each model with its interval, best on top."""
    data = _named(ranking.frame.head(MAX_MODELS), "name")
    tips: Tips = [
        "label:N",
        *(alt.Tooltip(f"{name}:Q", format=".4~g") for name in ("score", "standard_error", "score_lo", "score_hi")),
    ]
    base = alt.Chart(data).encode(y=_names(data), tooltip=tips)
    free = alt.Scale(zero=False)
    bars = base.mark_rule(color=INK, strokeWidth=2.5).encode(x=alt.X("score_lo:Q", scale=free), x2="score_hi:Q")
    dots = base.mark_circle(size=80, color=BLUE, opacity=1).encode(x=alt.X("score:Q", title="mean score", scale=free))
    return themed(alt.layer(bars, dots), height=_height(data.height))


def model_ranks(ranking: Ranking) -> Chart:
    """Rank of each model and the set of ranks that it may have, best on top."""
    data = _named(ranking.frame.head(MAX_MODELS), "name").with_columns(
        low=pl.col("rank_lo") - 0.4, high=pl.col("rank_hi") + 0.4
    )
    last = max(data["rank_hi"].to_list())
    x = alt.X(
        "low:Q",
        title="rank (1 is the best)",
        scale=alt.Scale(domain=[0.5, last + 0.5], nice=False),
        axis=alt.Axis(format="d", tickMinStep=1, tickCount=min(last, 12)),
    )
    tips: Tips = ["label:N", "rank:Q", alt.Tooltip("rank_lo:Q", title="from"), alt.Tooltip("rank_hi:Q", title="to")]
    base = alt.Chart(data).encode(y=_names(data), tooltip=tips)
    sets = base.mark_bar(color=SKY, height={"band": 0.6}).encode(x=x, x2="high:Q")
    dots = base.mark_point(shape="diamond", filled=True, size=90, color=INK, opacity=1).encode(x="rank:Q")
    return themed(alt.layer(sets, dots), height=_height(data.height))


def seeds_needed(aggregate: AggregateEstimate, n_items: int, noun: str) -> Chart | None:
    """Standard error of a model's score over its number of seeds, a line per number of items."""
    data = aggregate.reliability.filter(pl.col("standard_error") > 0)
    if data.height == 0:
        return None
    counts = data["n_items"].unique().sort().to_list()
    words = {n: f"{count(n, noun)}{' (as here)' if n == n_items else ''}" for n in counts}
    data = data.with_columns(line=pl.col("n_items").replace_strict(words, return_dtype=pl.String))
    places = np.linspace(0, len(RAMP) - 1, len(counts)).round().astype(int) if len(counts) > 1 else [3]
    tips: Tips = ["line:N", alt.Tooltip("n_seeds:Q", title="seeds"), alt.Tooltip("standard_error:Q", format=".3~g")]
    tips.append(alt.Tooltip("least_difference:Q", title="least difference", format=".3~g"))
    lines = (
        alt.Chart(data)
        .mark_line(point=True, strokeWidth=2)
        .encode(
            x=alt.X(
                "n_seeds:Q",
                title="seeds a model",
                scale=alt.Scale(type="log", nice=False),
                axis=alt.Axis(values=data["n_seeds"].unique().sort().to_list(), format="d"),
            ),
            y=alt.Y(
                "standard_error:Q",
                title="standard error of a model's score",
                scale=alt.Scale(type="log"),
                axis=alt.Axis(format="~g"),
            ),
            color=alt.Color(
                "line:N",
                title=None,
                sort=list(words.values()),
                scale=alt.Scale(domain=list(words.values()), range=[RAMP[place] for place in places]),
            ),
            tooltip=tips,
        )
    )
    step = aggregate.score_step
    limit = data.drop_nulls("least_difference").unique("n_seeds", keep="first", maintain_order=True)
    limit = limit.select("n_seeds", enough=step * pl.col("standard_error") / pl.col("least_difference"))
    enough = alt.Chart(limit).mark_line(color=MUTED, strokeDash=[5, 4]).encode(x="n_seeds:Q", y="enough:Q")
    return themed(alt.layer(enough, lines), height=320)


def mixed_scopes(aggregate: AggregateEstimate) -> pl.DataFrame:
    """Return the scopes whose variance has two parts or more; parts that are 0 or were estimated below 0 are null.

    With a single checkpoint all movement between seeds, sampling of answers included, stands under seed.
    """
    frame = aggregate.components.with_columns(
        trials=pl.when(pl.col("checkpoint_seed").is_not_null()).then("trials")
    ).with_columns(pl.when(pl.col(part) > 0).then(part).alias(part) for part in PARTS)
    return frame.filter(pl.sum_horizontal(pl.col(part).is_not_null() for part in PARTS) > 1)


def variance_components(aggregate: AggregateEstimate) -> Chart | None:
    """Shares of the variance of one run's score, by scope."""
    frame = mixed_scopes(aggregate).head(MAX_SCOPES)
    if frame.height == 0:
        return None
    run = pl.sum_horizontal(part for part in PARTS if part != "items").sqrt()
    frame = _named(frame.with_columns(run=run), "scope", SHORT)
    shown = [f"{label} ({spread:.2g})" for label, spread in frame.select("label", "run").iter_rows()]
    long = frame.with_columns(label=pl.Series(shown)).unpivot(list(PARTS), index=["label", "place"])
    long = long.drop_nulls("value").with_columns(
        share=pl.col("value") / pl.col("value").sum().over("place"),
        sd=pl.col("value").sqrt(),
        part=pl.col("variable").replace_strict({part: word for part, (word, _) in PARTS.items()}),
        turn=pl.col("variable").replace_strict({part: turn for turn, part in enumerate(PARTS)}),
    )
    tips: Tips = ["label:N", "part:N", alt.Tooltip("share:Q", format=".1%")]
    tips.append(alt.Tooltip("sd:Q", title="standard deviation", format=".3~g"))
    words = [PARTS[part] for part in PARTS if part in long["variable"].to_list()]
    chart = _stacked(long.sort("place", "turn"), words, "share of the variance of one run's score", tips, shown)
    return themed(chart, height=_height(frame.height, 30))


def signal_to_noise(aggregate: AggregateEstimate) -> Chart | None:
    """Signal to noise by task; of many tasks the highest and the lowest."""
    known = aggregate.snr.drop_nulls("snr").sort("snr", "scope", descending=[True, False])
    if known.height < 2:
        return None
    if known.height > MAX_BARS:
        known = pl.concat([known.head(MAX_BARS // 2), known.tail(MAX_BARS // 2)])
    data = _named(known, "scope")
    tips: Tips = [
        "label:N",
        alt.Tooltip("n_models:Q", title="models"),
        *(alt.Tooltip(f"{name}:Q", format=".3~g") for name in ("signal", "noise", "snr")),
        alt.Tooltip("noise_over:N", title="noise over"),
    ]
    kinds = data["noise_over"].unique().sort().to_list()
    colour = alt.Color("noise_over:N", title="noise over", scale=alt.Scale(domain=kinds, range=[BLUE, ORANGE]))
    base = alt.Chart(data).encode(y=_names(data), x=alt.X("snr:Q", title="signal / noise"), tooltip=tips)
    bars = base.mark_bar(color=BLUE, height={"band": 0.7})
    text = base.mark_text(align="left", dx=4, color=INK, fontSize=11).encode(text=alt.Text("snr:Q", format=".3~r"))
    return themed(
        alt.layer(bars.encode(color=colour) if len(kinds) > 1 else bars, text), height=_height(data.height, 22)
    )


def slope_certainty(slopes: SlopeEstimate) -> Chart:
    """Shares of items whose slope's interval lies above 0, includes 0 or lies below it, by axis."""
    data = _named(slope_verdicts(slopes), "axis")
    shown = [f"{label} ({n:,})" for label, n in data.select("label", "n").iter_rows()]
    long = data.with_columns(label=pl.Series(shown)).unpivot(list(SIDES), index=["label", "place", "n"])
    long = long.filter(pl.col("value") > 0).with_columns(
        share=pl.col("value") / pl.col("n"),
        part=pl.col("variable").replace_strict({side: word for side, (word, _) in SIDES.items()}),
        turn=pl.col("variable").replace_strict({side: turn for turn, side in enumerate(SIDES)}),
    )
    tips: Tips = [
        "label:N",
        "part:N",
        alt.Tooltip("value:Q", title="items", format=",d"),
        alt.Tooltip("share:Q", format=".1%"),
    ]
    words = [SIDES[side] for side in SIDES if side in long["variable"].to_list()]
    chart = _stacked(long.sort("place", "turn"), words, "share of items with a slope", tips, shown)
    return themed(chart, height=_height(data.height, 44))


def item_rest(quality: QualityAudit) -> Chart | None:
    """Histogram of the items' correlation with the rest, by verdict; of two models it is -1 or 1 and tells nothing."""
    known = quality.items.filter(pl.col("item_rest_r").is_not_null() & (pl.col("n_models") > 2))
    if known.height == 0:
        return None
    place = (pl.col("item_rest_r") * BINS).floor().clip(-BINS, BINS - 1)
    data = known.group_by(low=place / BINS, verdict=pl.col("quality_verdict").cast(pl.String)).agg(n=pl.len())
    data = data.with_columns(high=pl.col("low") + 1 / BINS).sort("low", "verdict")
    colours = dict(zip(VERDICTS, (RED, BLUE, GREY), strict=True))
    there = [verdict for verdict in VERDICTS if verdict in data["verdict"].to_list()]
    tips = [alt.Tooltip("low:Q", title="from", format=".2f"), alt.Tooltip("high:Q", title="to", format=".2f")]
    bars = (
        alt.Chart(data)
        .mark_bar(stroke="white", strokeWidth=0.5)
        .encode(
            x=alt.X(
                "low:Q",
                bin="binned",
                title="correlation of the item with the rest",
                scale=alt.Scale(domain=[-1, 1]),
                axis=alt.Axis(values=[place / 4 for place in range(-4, 5)], format=".2f"),
            ),
            x2="high:Q",
            y=alt.Y("n:Q", title="items", stack="zero", axis=alt.Axis(tickMinStep=1, format=",d")),
            color=alt.Color(
                "verdict:N",
                title=None,
                sort=there,
                scale=alt.Scale(domain=there, range=[colours[verdict] for verdict in there]),
            ),
            tooltip=["verdict:N", *tips, alt.Tooltip("n:Q", title="items", format=",d")],
        )
    )
    return themed(alt.layer(bars, rule_at(0.0, "x")), height=300)


def noise_curve(noise: NoiseAudit, over: str) -> Chart | None:
    """Standard deviation over seeds, or over trials of one run, quietest item first."""
    ranked = noise.items.drop_nulls("noise_rank").sort("noise_rank")
    if ranked.height < 2:
        return None
    of_seeds = over == "seeds"
    low = pl.when(pl.col("z").is_null()).then(pl.lit("no Z")).when(pl.col("z") < noise.reference_z)
    group = low.then(pl.lit("below")).otherwise(pl.lit("at or above")) if of_seeds else pl.lit(over)
    data = curve_sample(ranked.with_columns(group=group), "noise_rank", {"sigma": "value", "group": "group"},
                  points=3 * CURVE_POINTS)  # fmt: skip
    y = alt.Y("value:Q", title=f"standard deviation over {over} (score)")
    legend = f"Z and the line {noise.reference_z:.3f}" if of_seeds else "noise of"
    return ranked_chart(data, noise.quantiles, ranked.height, y, ".3~g", legend)


def _stacked(
    data: pl.DataFrame, words: Sequence[tuple[str, str]], title: str, tips: Tips, order: list[str]
) -> alt.Chart:
    """Return stacked bars of ``share`` by ``label``, coloured by ``part`` in the order of ``turn``."""
    chart: alt.Chart = (
        alt.Chart(data)
        .mark_bar(stroke="white")
        .encode(
            y=alt.Y("label:N", sort=order, title=None, axis=alt.Axis(labelLimit=LABEL)),
            x=alt.X("share:Q", stack="zero", title=title, scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(format=".0%")),
            color=alt.Color(
                "part:N",
                title=None,
                sort=[word for word, _ in words],
                scale=alt.Scale(domain=[word for word, _ in words], range=[colour for _, colour in words]),
                legend=alt.Legend(columns=2, labelLimit=260),
            ),
            order=alt.Order("turn:Q"),
            tooltip=tips,
        )
    )
    return chart


def named_families(by_family: pl.DataFrame) -> pl.DataFrame:
    """Return the families that a chart shows, noisiest first, under names that fit."""
    shown = by_family.drop_nulls("median_z").sort("median_z", descending=True).head(MAX_FAMILIES)
    return shown.with_columns(family=pl.Series(plain_names(shown["family"].to_list(), SHORT), dtype=pl.String))


def _named(frame: pl.DataFrame, column: str, longest: int = LONGEST_NAME) -> pl.DataFrame:
    """Add ``label``, the name as a chart can show it, and ``place``."""
    labels = pl.Series("label", plain_names(frame[column].to_list(), longest), dtype=pl.String)
    return frame.drop(column).with_columns(labels, place=pl.int_range(frame.height))


def _names(data: pl.DataFrame) -> alt.Y:
    return alt.Y("label:N", sort=data["label"].to_list(), title=None, axis=alt.Axis(labelLimit=LABEL))


def _height(rows: int, each: int = 20) -> int:
    return each * rows + 20
