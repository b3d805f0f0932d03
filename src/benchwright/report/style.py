"""How charts look: colours that colour-blind readers can tell apart, one theme, short number formats."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

INK, MUTED, GRID = "#1d2733", "#5b6875", "#e3e7eb"
BLUE, ORANGE, GREEN, RED, PURPLE, SKY, YELLOW, GREY = (
    "#0072b2",
    "#d55e00",
    "#009e73",
    "#b2182b",
    "#7b5ea7",
    "#56b4e9",
    "#c79a00",
    "#8a949e",
)
CATEGORY = [BLUE, ORANGE, GREEN, PURPLE, SKY, YELLOW, RED, GREY]
WIDTH, HEIGHT = 640, 380

THEME: dict[str, Any] = {
    "background": "#ffffff",
    "font": "Helvetica, Arial, 'Liberation Sans', sans-serif",
    "view": {"stroke": None},
    "axis": {
        "labelColor": INK,
        "titleColor": INK,
        "labelFontSize": 12,
        "titleFontSize": 13,
        "titleFontWeight": "normal",
        "gridColor": GRID,
        "domainColor": MUTED,
        "tickColor": MUTED,
        "labelLimit": 170,
        "labelSeparation": 8,
    },
    "legend": {
        "labelColor": INK,
        "titleColor": INK,
        "labelFontSize": 12,
        "titleFontSize": 12,
        "orient": "top",
        "titleFontWeight": "normal",
        "labelLimit": 200,
        "columns": 3,
        "symbolBaseFillColor": MUTED,  # of sizes where colour says something else; else black on any page
    },
    "range": {"category": CATEGORY},
}


Chart = alt.Chart | alt.LayerChart | alt.FacetChart


def themed(chart: Chart, *, height: int = HEIGHT) -> Chart:
    """Return the chart at the common size and theme."""
    themed_chart: Chart = chart.properties(width=WIDTH, height=height).configure(**THEME)
    return themed_chart


def rule_at(value: float, axis: str, *, dash: bool = True, log: bool = False) -> alt.Chart:
    """Return a reference line at a value of the x or y axis; it does not pull the axis to zero."""
    free = alt.Scale(type="log") if log else alt.Scale(zero=False)
    mark = alt.Chart(pl.DataFrame({"at": [value]})).mark_rule(color=MUTED, strokeDash=[5, 4] if dash else [1, 0])
    place = {"x": alt.X("at:Q", scale=free)} if axis == "x" else {"y": alt.Y("at:Q", scale=free)}
    line: alt.Chart = mark.encode(**place)
    return line
