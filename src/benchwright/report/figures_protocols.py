"""The figures of two protocols compared, and of undisclosed submissions, with their captions."""

from __future__ import annotations

from collections.abc import Iterator

import altair as alt
import numpy as np
import polars as pl

from benchwright._words import first_of, percent
from benchwright.ranking_game.private_variants import VariantReport
from benchwright.ranking_game.protocols import ProtocolComparison
from benchwright.report.style import BLUE, INK, ORANGE, SKY, Chart, rule_at, themed
from benchwright.report.tables_panel import LONGEST_NAME, plain_names

Row = tuple[str, str, str, str, Chart | None]
MAX_ROWS = 30
LABEL = 260


def protocol_figures(found: ProtocolComparison) -> Iterator[Row]:
    """Yield the places that models gain by common tuning."""
    yield (
        "rank-moves",
        "game",
        "Places that models gain by common tuning",
        f"Rank by mean rank over tasks, direct less tuned; bars are {percent(found.level, 0)} intervals over resampled "
        "tasks, each model for itself. Right of the dashed line a model gains places. Largest moves first."
        + first_of(MAX_ROWS, len(found.models), "model"),
        _moves(found),
    )


def variant_figures(found: VariantReport) -> Iterator[Row]:
    """Yield best and mean submission of each developer with the luck of the best."""
    yield (
        "best-against-mean",
        "game",
        "Best public submission against the mean of all",
        "Diamonds are best public submissions, circles the mean of all that are known. The bar is what the best of "
        "equally good submissions is expected to show above their worth by luck alone, from the mean on."
        + first_of(MAX_ROWS, len(found.developers), "developer"),
        _best(found),
    )


def _moves(found: ProtocolComparison) -> Chart:
    order = np.argsort(-np.abs(found.move), kind="stable")[:MAX_ROWS]
    labels = plain_names([found.models[int(i)] for i in order], LONGEST_NAME)
    data = pl.DataFrame(
        {
            "label": labels,
            "move": found.move[order],
            "low": found.move_interval[order, 0],
            "high": found.move_interval[order, 1],
            "direct": found.rank[order, 0],
            "tuned": found.rank[order, 1],
        }
    )
    tips: list[str | alt.Tooltip] = ["label:N", alt.Tooltip("direct:Q", title="rank, direct")]
    tips += [alt.Tooltip("tuned:Q", title="rank after tuning"), alt.Tooltip("move:Q", title="places gained")]
    tips += [alt.Tooltip("low:Q", title="from"), alt.Tooltip("high:Q", title="to")]
    base = alt.Chart(data).encode(y=_names(labels), tooltip=tips)
    bars = base.mark_rule(color=INK, strokeWidth=2).encode(x=alt.X("low:Q", title="places gained"), x2="high:Q")
    dots = base.mark_circle(size=80, color=BLUE, opacity=1).encode(x="move:Q")
    return themed(alt.layer(rule_at(0, "x"), bars, dots), height=24 * data.height + 24)


def _best(found: VariantReport) -> Chart:
    k = min(len(found.developers), MAX_ROWS)
    labels = plain_names(found.developers[:k], LONGEST_NAME)
    data = pl.DataFrame(
        {
            "label": labels,
            "best": found.best[:k],
            "mean": found.mean[:k],
            "luck": found.mean[:k] + found.lift[:k],
            "variants": found.variants[:k],
        }
    )
    tips: list[str | alt.Tooltip] = ["label:N", "variants:Q"]
    tips += [alt.Tooltip(f"{name}:Q", format=".4f") for name in ("best", "mean")]
    tips.append(alt.Tooltip("luck:Q", title="mean and luck of the best", format=".4f"))
    base = alt.Chart(data).encode(y=_names(labels), tooltip=tips)
    x = alt.X("mean:Q", title="score", scale=alt.Scale(zero=False))
    layers = (
        base.mark_bar(color=SKY, opacity=0.6, height={"band": 0.5}).encode(x=x, x2="luck:Q"),
        base.mark_circle(size=80, color=BLUE, opacity=1).encode(x=x),
        base.mark_point(shape="diamond", size=90, filled=True, color=ORANGE, opacity=1).encode(
            x=alt.X("best:Q", scale=alt.Scale(zero=False))
        ),
    )
    return themed(alt.layer(*layers), height=30 * k + 24)


def _names(labels: list[str]) -> alt.Y:
    return alt.Y("label:N", title=None, sort=labels, axis=alt.Axis(labelLimit=LABEL))
