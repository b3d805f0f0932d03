"""Charts of the weights that a board can publish: how sure they are, by task, over risk, over ways of valuing items."""

from __future__ import annotations

import altair as alt
import numpy as np
import polars as pl

from benchwright._words import SCHEME_NAMES
from benchwright.board.results import Leaderboard
from benchwright.mechanism.item_weights import ItemWeights
from benchwright.mechanism.point_weights import PointWeights
from benchwright.report.style import BLUE, GREEN, INK, MUTED, ORANGE, PURPLE, SKY, Chart, rule_at, themed
from benchwright.report.tables_panel import LONGEST_NAME, plain_names

MAX_ITEMS, MAX_GROUPS, MAX_MODELS = 20, 30, 40
STACKED = 7  # tasks that the mixture names; the others are one
LABEL = 240  # pixels for names beside their bars
BANDS = {"published": BLUE, "averaged": SKY, "by_task": GREEN, "uniform": ORANGE, "user": PURPLE}
Tips = list[str | alt.Tooltip]


def published_shares(weights: PointWeights) -> Chart | None:
    """Published weight of the heaviest items as a multiple of uniform, with intervals where there are draws."""
    items = weights.items
    if not weights.published.weights.any():
        return None
    if "published_lo" not in items.columns:
        items = items.with_columns(
            pl.lit(None, dtype=pl.Float64).alias(f"published_{end}") for end in ("lo", "hi", "kept")
        )
    data = items.sort("published_share", "task", "doc_id", descending=[True, False, False]).head(MAX_ITEMS)
    data = data.with_columns(
        name=pl.format("{} {}", "task", "doc_id"),
        **{end: pl.col(f"published_{end}") / pl.col("uniform_share") for end in ("share", "lo", "hi")},
    )
    tips: Tips = [
        "label:N",
        *(alt.Tooltip(f"{field}:Q", title=title, format=".2f") for field, title in
          (("share", "x uniform"), ("lo", "from"), ("hi", "to"))),
        alt.Tooltip("published_kept:Q", title="draws with a weight", format=".0%"),
        alt.Tooltip("welfare:Q", format="+.2f"),
        alt.Tooltip("cost_usd:Q", title="USD per unit", format=",.3~r"),
        alt.Tooltip("sigma:Q", title="seed noise", format=".3f"),
    ]  # fmt: skip
    return _intervals(data, tips, "published weight, as a multiple of uniform", 1.0)


def group_weights(table: pl.DataFrame) -> Chart | None:
    """Weight of each group where its items carry one weight, against its share under the plain average."""
    data = table.drop_nulls("share").sort("share", "name", descending=[True, False]).head(MAX_GROUPS)
    if data.height < 2:
        return None
    data = _labelled(data)
    tips: Tips = [
        "label:N",
        alt.Tooltip("items:Q"),
        *(alt.Tooltip(f"{field}:Q", title=title, format=".1%") for field, title in
          (("share", "weight"), ("lo", "from"), ("hi", "to"), ("uniform_share", "under the plain average"))),
    ]  # fmt: skip
    base = alt.Chart(data).encode(y=_names(data), tooltip=tips)
    x = alt.X("share:Q", title="share of the weight", axis=alt.Axis(format=".0%"))
    layers = [
        base.mark_bar(color=SKY, height={"band": 0.65}).encode(x=x),
        base.mark_rule(color=INK, strokeWidth=2).encode(x="lo:Q", x2="hi:Q"),
        base.mark_tick(color=ORANGE, thickness=3, height=14).encode(x="uniform_share:Q"),
    ]
    return themed(alt.layer(*(layers if data["lo"].count() else [layers[0], layers[2]])), height=_height(data.height))


def efficiency_bands(weights: ItemWeights) -> Chart | None:
    """What schemes keep over the developer's risk aversion, with intervals over the draws."""
    if weights.uncertainty is None:
        return None
    data = weights.uncertainty.to_frame().filter(
        pl.col("risk_aversion") > 0, pl.col("name").is_in([*BANDS]), pl.col("efficiency_lo").is_not_null()
    )
    names = [name for name in BANDS if name in data["name"].unique()]
    if data["risk_aversion"].n_unique() < 2 or not names:
        return None
    data = data.sort("risk_aversion").with_columns(scheme=pl.col("name").replace(SCHEME_NAMES))
    shown = [SCHEME_NAMES[name] for name in names]
    color = alt.Color(
        "scheme:N",
        title=None,
        sort=shown,
        scale=alt.Scale(domain=shown, range=[BANDS[name] for name in names]),
        legend=alt.Legend(columns=2, symbolOpacity=1),
    )
    x = alt.X("risk_aversion:Q", scale=alt.Scale(type="log", nice=False), title="risk aversion r (log scale)",
              axis=alt.Axis(format="~g"))  # fmt: skip
    y = alt.Y("efficiency_lo:Q", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(format=".0%"),
              title="kept of what the best weights would bring")  # fmt: skip
    tips: Tips = ["scheme:N", alt.Tooltip("risk_aversion:Q", title="r", format=".3~g")]
    tips += [alt.Tooltip(f"efficiency{end}:Q", format=".1%") for end in ("", "_lo", "_median", "_hi")]
    base = alt.Chart(data).encode(x=x, color=color)
    bands = base.mark_area(opacity=0.16).encode(y=y, y2="efficiency_hi:Q")
    lines = base.mark_line(strokeWidth=2.5, point=True).encode(y="efficiency:Q", tooltip=tips)
    return themed(alt.layer(bands, lines), height=320)


def mixture_shares(weights: ItemWeights) -> Chart | None:
    """Published weight of each task as the value of items moves from the first source to the second."""
    path = weights.path
    known = np.isfinite(path.mixture) & np.isfinite(path.shares).all(axis=1)
    if known.sum() < 2 or weights.items["task"].n_unique() < 2:
        return None
    points = pl.DataFrame(path.shares[known].T, schema=[f"{t:.6g}" for t in path.mixture[known]])
    totals = points.with_columns(weights.items["task"]).group_by("task", maintain_order=True).sum()
    order = totals.sort(pl.sum_horizontal(pl.exclude("task")), descending=True)["task"].to_list()
    labels = dict(zip(order[:STACKED], plain_names(order[:STACKED], LONGEST_NAME), strict=True))
    long = totals.unpivot(index="task", variable_name="mixture", value_name="share").with_columns(
        pl.col("mixture").cast(pl.Float64), label=pl.col("task").replace_strict(labels, default="all other tasks")
    )
    long = long.group_by("mixture", "label", maintain_order=True).agg(pl.col("share").sum())
    names = [*labels.values(), "all other tasks"]
    long = long.with_columns(place=pl.col("label").replace_strict({name: i for i, name in enumerate(names)}))
    chart = (
        alt.Chart(long)
        .mark_area(line={"strokeWidth": 0.5, "color": "white"})
        .encode(
            x=alt.X("mixture:Q", title=f"part of {path.second} in the value of an item, the rest {path.first}",
                    axis=alt.Axis(format=".0%")),
            y=alt.Y("share:Q", stack="zero", title="share of the published weight", axis=alt.Axis(format=".0%"),
                    scale=alt.Scale(domain=[0, 1])),
            color=alt.Color("label:N", title=None, sort=names, legend=alt.Legend(columns=3, labelLimit=190)),
            order=alt.Order("place:Q"),
            tooltip=["label:N", alt.Tooltip("mixture:Q", format=".0%"), alt.Tooltip("share:Q", format=".1%")],
        )
    )  # fmt: skip
    return themed(chart, height=320)


def rescored_ranks(board: Leaderboard) -> Chart | None:
    """Rank of each model under the published weights with its interval, and its rank under the plain average."""
    data = board.frame.drop_nulls("rank").head(MAX_MODELS)
    if data.height < 2:
        return None
    data = _labelled(data.rename({"model": "name"})).with_columns(
        low=pl.col("rank_lo") - 0.4, high=pl.col("rank_hi") + 0.4
    )
    last = max([*data["rank_hi"], *data["uniform_rank"].drop_nulls()])
    x = alt.X(
        "low:Q",
        title="rank (1 is the best)",
        scale=alt.Scale(domain=[0.5, last + 0.5], nice=False),
        axis=alt.Axis(format="d", tickMinStep=1),
    )
    tips: Tips = ["label:N", alt.Tooltip("score:Q", format=".4~g"), alt.Tooltip("standard_error:Q", format=".2~g")]
    ranks = {"rank": "rank", "rank_lo": "from", "rank_hi": "to", "uniform_rank": "under the plain average"}
    tips += [alt.Tooltip(f"{field}:Q", title=title) for field, title in ranks.items()]
    base = alt.Chart(data).encode(y=_names(data), tooltip=tips)
    layers = [
        base.mark_bar(color=SKY, height={"band": 0.6}, opacity=0.8).encode(x=x, x2="high:Q"),
        base.mark_rule(color=MUTED, strokeWidth=1.5).encode(x="uniform_rank:Q", x2="rank:Q"),
        base.mark_point(shape="circle", size=80, color=ORANGE, strokeWidth=2, opacity=1).encode(x="uniform_rank:Q"),
        base.mark_point(shape="diamond", filled=True, size=90, color=INK, opacity=1).encode(x="rank:Q"),
    ]
    return themed(alt.layer(*layers), height=_height(data.height))


def _intervals(data: pl.DataFrame, tips: Tips, title: str, reference: float) -> Chart:
    """Points with intervals, a row each, beside a line of reference."""
    data = _labelled(data)
    base = alt.Chart(data).encode(y=_names(data), tooltip=tips)
    bars = base.mark_rule(color=INK, strokeWidth=2).encode(x=alt.X("lo:Q", title=title), x2="hi:Q")
    dots = base.mark_circle(size=80, color=BLUE, opacity=1).encode(x=alt.X("share:Q", title=title))
    layers = [rule_at(reference, "x"), bars, dots] if data["lo"].count() else [rule_at(reference, "x"), dots]
    return themed(alt.layer(*layers), height=_height(data.height))


def _labelled(data: pl.DataFrame) -> pl.DataFrame:
    """Add short, printable, different labels of ``name`` in their order."""
    labels = plain_names(data["name"].cast(pl.String).fill_null("no name").to_list(), LONGEST_NAME)
    return data.with_columns(label=pl.Series(labels, dtype=pl.String))


def _names(data: pl.DataFrame) -> alt.Y:
    return alt.Y("label:N", title=None, sort=data["label"].to_list(), axis=alt.Axis(labelLimit=LABEL))


def _height(rows: int) -> int:
    return 22 * rows + 20
