"""Charts of the ranking game: score curves, what overtaking costs, and what common tuning does to it."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import Any

import altair as alt
import numpy as np
import polars as pl

from benchwright._check import FloatArray
from benchwright.report.style import BLUE, CATEGORY, GREEN, GREY, INK, MUTED, ORANGE, PURPLE, RED, Chart, themed

MAX_DEVELOPERS = 30
NAMED_CURVES = 8  # more are told apart by shades, in the order of capability
LABEL = 240  # pixels for names beside their rows
LONG = 10.0  # ranges beyond this are drawn on a scale of log(1 + value)
PAYS = {"yes": RED, "no": BLUE, "cannot tell": GREY, "out of reach": PURPLE}
Tips = list[str | alt.Tooltip]


def score_curves(lines: pl.DataFrame, points: pl.DataFrame, names: Sequence[str], unit: str) -> Chart | None:
    """Score over effort of each developer, with a band and the measured points where there are any.

    ``lines`` has developer, effort, score, low, high; ``points`` developer, effort, score, low, high; ``names`` is the
    order of capability.
    """
    if lines.height == 0:
        return None
    known = len(names) <= NAMED_CURVES
    color: alt.Color = (
        alt.Color(
            "developer:N",
            title=None,
            scale=alt.Scale(domain=list(names), range=CATEGORY),
            legend=alt.Legend(symbolOpacity=1),
        )
        if known
        else alt.Color(
            "place:Q",
            title="place in the order of capability",
            scale=alt.Scale(scheme="viridis", domain=[1, len(names)]),
            legend=alt.Legend(format="d", tickCount=5, symbolOpacity=1),
        )
    )
    place = {name: k for k, name in enumerate(names, start=1)}
    lines, points = (
        table.with_columns(place=pl.col("developer").replace_strict(place, return_dtype=pl.Int64))
        for table in (lines, points)
    )
    x = _effort("effort:Q", f"total effort ({unit})", _top(lines["effort"], points["effort"]))
    y = alt.Y("score:Q", title="score", scale=alt.Scale(zero=False))
    tips: Tips = ["developer:N", *_numbers(("effort", "effort"), ("score", "score"), ("low", "from"), ("high", "to"))]
    base = alt.Chart(lines).encode(x=x, color=color, detail="developer:N")
    layers = []
    if lines["low"].count() and known:  # many bands hide one another
        layers.append(base.mark_area(opacity=0.15).encode(y=alt.Y("low:Q", title="score"), y2="high:Q"))
    layers.append(base.mark_line(strokeWidth=2).encode(y=y, tooltip=tips))
    if points.height:
        seen = alt.Chart(points).encode(x=x, color=color, tooltip=tips)
        layers.append(seen.mark_circle(size=28, opacity=0.9).encode(y=y))
        if points["low"].count():
            layers.append(seen.mark_rule(opacity=0.55).encode(y="low:Q", y2="high:Q"))
    return themed(alt.layer(*layers), height=420)


def overtake_costs(rows: pl.DataFrame) -> Chart | None:
    """Cost of overtaking the neighbour above beside the reward gap, one row a developer.

    ``rows`` has label, over, cost, gap, pays (in words), required_effort, and low, high of the cost, inf where a
    draw has it out of reach.
    """
    if rows.height == 0:
        return None
    numbers = [value for name in ("cost", "gap", "high") for value in rows[name].drop_nulls() if isfinite(value)]
    top = max([*numbers, 0.0])
    least = min([value for value in numbers if value > 0], default=1.0)
    scale = alt.Scale(type="symlog", constant=least) if top > LONG * least else alt.Scale()
    axis = _axis(_decades(least, top) if top > LONG * least else None)
    x = alt.X("cost:Q", title="cost of overtaking the neighbour above; tick: the reward gap", scale=scale, axis=axis)
    y = alt.Y("label:N", title=None, sort=rows["label"].to_list(), axis=alt.Axis(labelLimit=LABEL))
    edge = top * (1.6 if top > LONG * least else 1.06)
    kinds = [kind for kind in PAYS if kind in set(rows["pays"])]
    color = alt.Color(
        "pays:N", title="overtaking pays", scale=alt.Scale(domain=kinds, range=[PAYS[kind] for kind in kinds])
    )
    tips: Tips = ["label:N", "over:N", "pays:N"]
    tips += _numbers(("required_effort", "required effort"), ("cost", "cost"), ("low", "from"), ("high", "to"))
    tips += _numbers(("gap", "reward gap"))
    reached = pl.when(pl.col("high").is_infinite()).then(edge).otherwise("high")
    base = alt.Chart(rows.with_columns(high=reached, at=pl.lit(edge))).encode(y=y, tooltip=tips)
    layers = [base.mark_tick(color=INK, thickness=2.5, height=15).encode(x=alt.X("gap:Q", scale=scale))]
    if rows["low"].count():
        layers.append(base.mark_rule(strokeWidth=2).encode(x=alt.X("low:Q", scale=scale), x2="high:Q", color=color))
    layers.append(base.transform_filter("datum.cost !== null").mark_circle(size=85, opacity=1).encode(x=x, color=color))
    if "out of reach" in kinds:
        beyond = base.transform_filter("datum.pays === 'out of reach'")
        beyond = beyond.mark_point(shape="triangle-right", size=85, filled=True, opacity=1)
        layers.append(beyond.encode(x=alt.X("at:Q", scale=scale), color=color))
    return themed(alt.layer(*layers), height=_rows(rows.height))


def margin_over_tuning(
    line: pl.DataFrame,
    spans: Sequence[tuple[float, float]],
    delta: float,
    interval: tuple[float, float],
    level: float,
    worth: float,
    unit: str,
) -> Chart | None:
    """Least margin over all jumps over Delta; stable spans shaded, the threshold with its interval, the level in force.

    ``line`` has delta, margin, low, high, pair; ``worth`` is what the first rank earns more than the last, and the
    chart ends at ten times that.
    """
    known = line.drop_nulls("margin")
    if known.height < 2 or not worth > 0:
        return None
    top = float(line["delta"].max())  # type: ignore[arg-type]
    x = _effort("delta:Q", f"tune-before-test level ({unit})", top)
    numbers = [value for name in ("margin", "low") for value in line[name].drop_nulls()]
    roof = max(min(max(known["margin"]), LONG * worth), worth / LONG)
    ends = [min(*numbers, 0.0), roof]
    values = _decades(worth / LONG, max(-ends[0], ends[1]))
    ticks = [-v for v in reversed(values) if -v >= ends[0]] + [v for v in values if v <= ends[1]]
    y = alt.Y(
        "margin:Q",
        title="least cost less reward gap",
        scale=alt.Scale(type="symlog", constant=worth / LONG, domain=ends, nice=False),
        axis=_axis([*dict.fromkeys(ticks)]),
    )
    layers: list[alt.Chart] = []
    if spans:
        shade = pl.DataFrame([(low, min(high, top)) for low, high in spans], schema=["low", "high"], orient="row")
        layers.append(_span(shade, x, GREEN, 0.16))
    if isfinite(interval[0]):
        band = pl.DataFrame({"low": [interval[0]], "high": [min(interval[1], top)]})
        layers.append(_span(band, x, PURPLE, 0.18))
    layers.append(_line_at(0.0, "y", MUTED, dash=False))
    if level <= top:
        layers.append(_line_at(level, "x", ORANGE))
    if isfinite(delta):
        layers.append(_line_at(delta, "x", PURPLE, dash=False))
    tips: Tips = [*_numbers(("delta", "level"), ("margin", "least margin")), "pair:N"]
    if line["low"].count():
        spread = line.drop_nulls("low").with_columns(pl.col("high").fill_null(roof).clip(upper_bound=roof))
        low = y.copy()
        low.shorthand = "low:Q"
        area = alt.Chart(spread.with_columns(pl.col("low").clip(upper_bound=roof)))
        layers.append(area.mark_area(color=BLUE, opacity=0.16).encode(x=x, y=low, y2="high:Q"))
    inside = pl.col("margin") <= roof
    leaves = inside.shift(1, fill_value=False) | inside.shift(-1, fill_value=False)
    drawn = line.with_columns(margin=pl.when(inside).then("margin").when(leaves).then(roof))
    layers.append(alt.Chart(drawn).mark_line(color=BLUE, strokeWidth=2.5).encode(x=x, y=y, tooltip=tips))
    return themed(alt.layer(*layers), height=320)


def effort_over_tuning(table: pl.DataFrame, unit: str) -> Chart | None:
    """Least effort that overtakes a neighbour over Delta, with bands; the dashed line is an effort equal to Delta.

    ``table`` has delta, effort, low and high of the least effort of each draw, pair_low and pair_high of the pair that
    attains it, pair. A band that is open above ends at the top.
    """
    known = table.drop_nulls("effort")
    if known.height < 2:
        return None
    top = float(table["delta"].max())  # type: ignore[arg-type]
    x = _effort("delta:Q", f"tune-before-test level ({unit})", top)
    ends = [value for name in ("effort", "high", "pair_high") for value in table[name].drop_nulls()]
    high = 1.5 * max(ends)
    title = f"least effort that overtakes a neighbour ({unit})"
    y = _effort_y("effort:Q", title, high)
    same = pl.DataFrame({"delta": levels(min(top, high), 200)}).with_columns(effort=pl.col("delta"))
    layers = [alt.Chart(same).mark_line(color=MUTED, strokeDash=[5, 4]).encode(x=x, y=y)]
    if table["low"].count():
        band = alt.Chart(table.drop_nulls("low").with_columns(pl.col("high").fill_null(high)))
        layers.append(
            band.mark_area(color=BLUE, opacity=0.18).encode(x=x, y=_effort_y("low:Q", title, high), y2="high:Q")
        )
    tips: Tips = [*_numbers(("delta", "level"), ("effort", "effort"), ("low", "from"), ("high", "to")), "pair:N"]
    if table["pair_low"].count():
        bars = alt.Chart(table.drop_nulls("pair_low").with_columns(pl.col("pair_high").fill_null(high)))
        low = _effort_y("pair_low:Q", title, high)
        layers.append(bars.mark_rule(color=INK, strokeWidth=1.5).encode(x=x, y=low, y2="pair_high:Q"))
    layers.append(alt.Chart(table).mark_line(color=BLUE, strokeWidth=2.5, point=True).encode(x=x, y=y, tooltip=tips))
    return themed(alt.layer(*layers), height=340)


def share_over_tuning(table: pl.DataFrame, title: str, unit: str, *, sure: float | None = None) -> Chart | None:
    """A share of draws over Delta: ``table`` has delta and share; the dashed line is at ``sure``."""
    if table.drop_nulls("share").height < 2:
        return None
    x = _effort("delta:Q", f"tune-before-test level ({unit})", float(table["delta"].max()))  # type: ignore[arg-type]
    y = alt.Y("share:Q", title=title, scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(format=".0%"))
    tips: Tips = [*_numbers(("delta", "level")), alt.Tooltip("share:Q", format=".1%")]
    line = alt.Chart(table).mark_line(color=BLUE, strokeWidth=2.5, point=True).encode(x=x, y=y, tooltip=tips)
    layers = [line] if sure is None else [_line_at(sure, "y", MUTED), line]
    return themed(alt.layer(*layers), height=280)


def spend_over_tuning(table: pl.DataFrame, unit: str) -> Chart | None:
    """Expected total spend of play over Delta: ``table`` has delta, spend, method, verdict."""
    if table.drop_nulls("spend").height < 2:
        return None
    tips: Tips = [*_numbers(("delta", "level"), ("spend", "spend")), "method:N"]
    y = alt.Y("spend:Q", title="expected spend of all developers (reward)", axis=_axis())
    return themed(_play(table.drop_nulls("spend"), unit, alt.value(ORANGE), y, tips), height=300)


def wrong_over_tuning(table: pl.DataFrame, unit: str) -> Chart | None:
    """Probability of a wrong order and of a wrong first over Delta: ``table`` has them, delta, method and verdict."""
    known = table.drop_nulls(["wrong_order", "wrong_top"])
    if known.height < 2:
        return None
    names = {"wrong_order": "wrong order", "wrong_top": "wrong first"}
    long = known.unpivot(on=list(names), index=["delta", "method", "verdict"], variable_name="what", value_name="share")
    long = long.with_columns(pl.col("what").replace(names))
    scale = alt.Scale(domain=list(names.values()), range=[BLUE, RED])
    y = alt.Y("share:Q", title="probability", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(format=".0%"))
    tips: Tips = ["what:N", *_numbers(("delta", "level")), alt.Tooltip("share:Q", format=".1%"), "method:N"]
    return themed(_play(long, unit, alt.Color("what:N", title=None, scale=scale), y, tips), height=300)


def _play(table: pl.DataFrame, unit: str, color: Any, y: alt.Y, tips: Tips) -> Chart:
    """Return lines over Delta with a mark a level: squares where there is a pure equilibrium, circles elsewhere."""
    x = _effort("delta:Q", f"tune-before-test level ({unit})", float(table["delta"].max()))  # type: ignore[arg-type]
    base = alt.Chart(table).encode(x=x, y=y, color=color, tooltip=tips)
    marks = alt.Shape("verdict:N", legend=None, scale=alt.Scale(domain=["exists", "none"], range=["square", "circle"]))
    return alt.layer(
        base.mark_line(strokeWidth=2.5), base.mark_point(size=70, filled=True, opacity=1).encode(shape=marks)
    )


def spend_of_developers(rows: pl.DataFrame) -> Chart:
    """Expected spend of each developer in mixed play: ``rows`` has label, spend, payoff, stays."""
    tips: Tips = ["label:N", *_numbers(("spend", "spend"), ("payoff", "payoff"))]
    tips.append(alt.Tooltip("stays:Q", title="stays at free effort", format=".1%"))
    y = alt.Y("label:N", title=None, sort=rows["label"].to_list(), axis=alt.Axis(labelLimit=LABEL))
    x = alt.X("spend:Q", title="expected spend (reward)", axis=_axis())
    return themed(alt.Chart(rows).mark_bar(color=ORANGE).encode(x=x, y=y, tooltip=tips), height=_rows(rows.height))


def crossings(rows: pl.DataFrame, top: float, unit: str) -> Chart | None:
    """Where the less capable developer of a pair scores higher: ``rows`` has label, low, high, size, share."""
    if rows.height == 0:
        return None
    x = _effort("low:Q", f"total effort at which the less capable scores higher ({unit})", top)
    y = alt.Y("label:N", title=None, sort=rows["label"].to_list(), axis=alt.Axis(labelLimit=LABEL))
    color = alt.Color(
        "size:Q", title="largest lead", scale=alt.Scale(range=["#fdd9b5", RED]), legend=alt.Legend(format=".3~g")
    )
    tips: Tips = ["label:N", *_numbers(("low", "from"), ("high", "to"), ("size", "largest lead"))]
    tips.append(alt.Tooltip("share:Q", title="share of draws", format=".0%"))
    bars = alt.Chart(rows).mark_bar(height={"band": 0.6}).encode(x=x, x2="high:Q", y=y, color=color, tooltip=tips)
    return themed(bars, height=_rows(rows.height))


def capability_order(rows: pl.DataFrame) -> Chart | None:
    """How sure it is that a developer is more capable than the next: ``rows`` has label, share."""
    if rows.height == 0:
        return None
    y = alt.Y("label:N", title=None, sort=rows["label"].to_list(), axis=alt.Axis(labelLimit=LABEL + 80))
    x = alt.X(
        "share:Q", title="share of draws in this order", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(format=".0%")
    )
    dots = (
        alt.Chart(rows)
        .mark_circle(size=80, color=BLUE, opacity=1)
        .encode(x=x, y=y, tooltip=["label:N", alt.Tooltip("share:Q", format=".1%")])
    )
    return themed(alt.layer(_line_at(0.5, "x", MUTED), dots), height=_rows(rows.height))


def _effort(field: str, title: str, top: float) -> alt.X:
    """Return an x axis of effort: log(1 + effort) where it reaches far."""
    if top <= LONG:
        return alt.X(field, title=title, scale=alt.Scale(domain=[0, top], nice=False))
    scale = alt.Scale(type="symlog", constant=1, domain=[0, top], nice=False)
    return alt.X(field, title=title, scale=scale, axis=_axis(_decades(1.0, top)))


def _effort_y(field: str, title: str, top: float) -> alt.Y:
    """Return a y axis of effort: log(1 + effort) where it reaches far."""
    if top <= LONG:
        return alt.Y(field, title=title, scale=alt.Scale(domain=[0, max(top, 1e-9)]))
    scale = alt.Scale(type="symlog", constant=1, domain=[0, top])
    return alt.Y(field, title=title, scale=scale, axis=_axis(_decades(1.0, top)))


def _axis(values: list[float] | None = None) -> alt.Axis:
    """Return an axis with short numbers: 0.05, 20, 1k."""
    short = "format(datum.value, abs(datum.value) >= 1000 ? '.3~s' : '.3~g')"
    return alt.Axis(labelExpr=short) if values is None else alt.Axis(labelExpr=short, values=values)


def _decades(least: float, top: float) -> list[float]:
    """Return 0 and the powers of ten from about ``least`` to ``top``, at most nine of them."""
    first, last = int(np.floor(np.log10(least))), int(np.floor(np.log10(max(top, least))))
    step = max(1, -(-(last - first + 1) // 9))
    return [0.0, *(10.0**k for k in range(first, last + 1, step))]


def levels(top: float, n: int) -> FloatArray:
    """Return n levels from 0 to ``top``, even on the scale of log(1 + level)."""
    at: FloatArray = np.expm1(np.linspace(0.0, np.log1p(top), n))
    return at


def _span(table: pl.DataFrame, x: alt.X, color: str, opacity: float) -> alt.Chart:
    """Return vertical bands from ``low`` to ``high`` on the scale of ``x``."""
    place = x.copy()
    place.shorthand = "low:Q"
    bands: alt.Chart = alt.Chart(table).mark_rect(color=color, opacity=opacity).encode(x=place, x2="high:Q")
    return bands


def _line_at(value: float, axis: str, color: str, *, dash: bool = True) -> alt.Chart:
    """Return a reference line that shares the scale of the other layers."""
    mark = alt.Chart(pl.DataFrame({"at": [value]})).mark_rule(color=color, strokeDash=[5, 4] if dash else [1, 0])
    line: alt.Chart = mark.encode(**{axis: "at:Q"})
    return line


def _numbers(*fields: tuple[str, str]) -> list[alt.Tooltip]:
    return [alt.Tooltip(f"{field}:Q", title=title, format=".4~g") for field, title in fields]


def _top(*columns: pl.Series) -> float:
    return max(float(value) for column in columns if (value := column.max()) is not None)  # type: ignore[arg-type]


def _rows(n: int) -> int:
    return 26 * n + 20
