"""Charts of what welfare rests on: agreement of judges, and what would change the ranking."""

from __future__ import annotations

import altair as alt
import polars as pl

from benchwright.report.style import BLUE, GREY, INK, ORANGE, Chart, rule_at, themed
from benchwright.report.tables_welfare import agreement_pairs
from benchwright.report.welfare_evidence import WelfareEvidence

FRAMINGS = {"automation": BLUE, "help": ORANGE}
MAX_PAIRS = 15  # per group; tables have them all
MAX_CHOICES = 30
ROW = 44


def changes_chart(changes: pl.DataFrame) -> Chart | None:
    """Rank correlation of item welfare under each other choice with that in force, both framings."""
    shown = changes.drop_nulls("n_items").filter(
        pl.any_horizontal(pl.col("spearman_auto", "spearman_aug").is_not_null())
    )
    if not shown.height:
        return None
    turned = pl.col("verdict_changes").fill_null(0.0)
    mark = pl.when(turned == 1).then(pl.lit(" *")).when(turned > 0).then(pl.lit(" (*)")).otherwise(pl.lit(""))
    shown = shown.head(MAX_CHOICES).with_columns(name=pl.concat_str("choice", mark))
    long = pl.concat(
        shown.select(
            "name", "n_items", "quadrant_moved", "verdict", "basis", framing=pl.lit(word), spearman=f"spearman_{column}"
        )
        for word, column in zip(FRAMINGS, ("auto", "aug"), strict=True)
    ).drop_nulls("spearman")
    y = alt.Y("name:N", sort=shown["name"].to_list(), title=None, axis=alt.Axis(labelLimit=330))
    x = alt.X("spearman:Q", title="Spearman correlation with item welfare in force", scale=alt.Scale(zero=False))
    ends = shown.with_columns(
        low=pl.min_horizontal("spearman_auto", "spearman_aug"), high=pl.max_horizontal("spearman_auto", "spearman_aug")
    )
    stems = alt.Chart(ends.select("name", "low", "high")).mark_rule(color=GREY).encode(y=y, x="low:Q", x2="high:Q")
    dots = (
        alt.Chart(long)
        .mark_point(filled=True, size=90, opacity=0.9)
        .encode(
            y=y,
            x=x,
            color=alt.Color("framing:N", title="welfare as", scale=_colours()),
            shape=alt.Shape("framing:N", legend=None, sort=list(FRAMINGS)),
            tooltip=[
                alt.Tooltip("name:N", title="other choice"),
                alt.Tooltip("framing:N", title="welfare as"),
                alt.Tooltip("spearman:Q", format=".2f"),
                alt.Tooltip("quadrant_moved:Q", title="items in another quadrant", format=".0%"),
                alt.Tooltip("verdict:N", title="plain average"),
                alt.Tooltip("n_items:Q", title="items", format=",d"),
                alt.Tooltip("basis:N"),
            ],
        )
    )
    return themed(alt.layer(rule_at(1.0, "x"), stems, dots), height=max(120, 26 * shown.height + 20))


def agreement_chart(evidence: WelfareEvidence, figure: str) -> Chart | None:
    """Overlap of lists (``rbo``) or ``alpha`` by pair of judges, with intervals, beside what chance gives."""
    raters = None if evidence.raters is None else evidence.raters.agreement
    parts = [
        agreement_pairs(found).with_columns(pair=pl.concat_str(pl.lit(prefix), "pair"))
        for prefix, found in (("", evidence.agreement), ("raters: ", raters))
        if found is not None
    ]
    if not parts:
        return None
    parts = [part.filter(pl.col("pair").is_in(part["pair"].unique(maintain_order=True)[:MAX_PAIRS])) for part in parts]
    data = pl.concat(parts).drop_nulls(figure)
    if not data.height:
        return None
    names = data["pair"].unique(maintain_order=True).to_list()
    y = alt.Y("pair:N", sort=names, title=None, axis=alt.Axis(labelLimit=260))
    offset = alt.YOffset("perspective:N", sort=list(FRAMINGS))
    colour = alt.Color("perspective:N", title="asked as", scale=_colours())
    title = "rank-biased overlap of lists" if figure == "rbo" else "Krippendorff's alpha"
    tips = [
        "pair:N",
        alt.Tooltip("perspective:N", title="asked as"),
        alt.Tooltip(f"{figure}:Q", title=title, format=".2f"),
        alt.Tooltip(f"{figure}_lo:Q", title="from", format=".2f"),
        alt.Tooltip(f"{figure}_hi:Q", title="to", format=".2f"),
        alt.Tooltip("n_items:Q", title="items", format=",d"),
    ]
    scale = alt.Scale(domain=[0, 1]) if figure == "rbo" else alt.Scale(domainMax=1)
    base = alt.Chart(data).encode(y=y, yOffset=offset)
    known = alt.Chart(data.drop_nulls([f"{figure}_lo", f"{figure}_hi"])).encode(y=y, yOffset=offset)
    bars = known.mark_rule(strokeWidth=3).encode(x=f"{figure}_lo:Q", x2=f"{figure}_hi:Q", color=colour, tooltip=tips)
    dots = base.mark_point(filled=True, size=90, opacity=1).encode(
        x=alt.X(f"{figure}:Q", title=title, scale=scale), color=colour, tooltip=tips
    )
    layers: list[alt.Chart] = [bars, dots]
    if figure == "rbo":
        layers.insert(0, base.mark_tick(color=INK, thickness=2, size=14).encode(x="rbo_other_items:Q"))
    else:
        layers.insert(0, rule_at(0.0, "x"))
    return themed(alt.layer(*layers), height=max(110, ROW * len(names) + 20))


def _colours() -> alt.Scale:
    return alt.Scale(domain=list(FRAMINGS), range=list(FRAMINGS.values()))
