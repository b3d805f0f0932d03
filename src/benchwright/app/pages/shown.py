"""How the desk shows figures, tables and texts: charts in the page's colours, each with its data; texts inert."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Literal

import polars as pl
import streamlit as st

from benchwright._csv import inert as inert_columns
from benchwright.app.words import inert
from benchwright.report.figures import Figure
from benchwright.report.findings import Finding
from benchwright.report.style import BLUE, GRID, INK, MUTED, PURPLE, RED
from benchwright.report.tables import csv_text

DARK = {INK: "#e6eaee", MUTED: "#aab4be", GRID: "#3a424b", "#ffffff": "#00000000", '"white"': '"#14181d"'}
DARK |= {BLUE: "#4aa3df", RED: "#e8606f", PURPLE: "#a98bd6"}
LIGHT = {"#ffffff": "#00000000"}
NARROW = 400  # pixels: a plot on a phone


def say(lines: Iterable[str]) -> None:
    """Write sentences, each on its own; text from data stays as it is."""
    for line in lines:
        st.markdown(inert(line))


def findings(found: Iterable[Finding]) -> None:
    """Write findings with their titles."""
    for one in found:
        st.markdown(f"**{inert(one.title)}.** {inert(one.text)}")


def figure(one: Figure, *, place: str) -> None:
    """Draw a figure with its title and caption, and offer its data."""
    st.markdown(f"##### {inert(one.title)}")
    st.caption(inert(one.caption))
    st.vega_lite_chart(spec=coloured(one.spec), theme=None, width="stretch", alt=f"{one.title}. {one.caption}")
    download(f"Data of: {one.title}", lambda: csv_text(data_of(one.spec)), f"{one.name}.csv", key=f"{place}-{one.name}")


def figures(shown: Iterable[Figure], *, place: str) -> None:
    """Draw figures one below the other."""
    for one in shown:
        with st.container(border=True):
            figure(one, place=place)


def table(frame: pl.DataFrame, name: str, *, title: str = "", height: int | Literal["auto"] = "auto") -> None:
    """Show a table and offer it as CSV at full precision."""
    if title:
        st.markdown(f"##### {inert(title)}")
    shown = frame.with_columns(inert_columns(frame.schema))
    st.dataframe(shown, hide_index=True, width="stretch", height=height)
    download(f"Table: {title or name}", lambda: csv_text(frame), f"{name}.csv", key=f"table-{name}")


def download(label: str, make: Any, name: str, *, key: str, mime: str = "text/csv") -> None:
    """Offer a file, made when it is asked for."""
    shown = label if len(label) <= 60 else f"{label[:57]}..."
    st.download_button(
        inert(shown), make, file_name=name, mime=mime, key=f"download-{key}", on_click="ignore", type="tertiary",
        icon=":material/download:",
    )  # fmt: skip


def coloured(spec: dict[str, Any]) -> dict[str, Any]:
    """Return a specification as wide as its place, which may be a phone's, in colours that can be read there."""
    dark = st.context.theme.type == "dark"
    text = json.dumps(spec)
    for old, new in (DARK if dark else LIGHT).items():
        text = text.replace(old, new)
    made: dict[str, Any] = json.loads(text)
    made["width"], made["autosize"] = "container", {"type": "fit-x", "contains": "padding"}
    config = made["config"]
    config["legend"] = _narrowing(config["legend"])
    config["axis"] = config["axis"] | {"titleFontSize": {"expr": f"width < {NARROW} ? 9.5 : 13"}}
    _each_legend(made)
    return made


def _each_legend(part: object) -> None:
    """Let the legends of single encodings have fewer columns where there is less room, in place."""
    if isinstance(part, list):
        for one in part:
            _each_legend(one)
    elif isinstance(part, dict):
        for name, one in part.items():
            if name == "legend" and isinstance(one, dict) and isinstance(one.get("columns"), int):
                part[name] = _narrowing(one)
            elif name not in ("config", "datasets", "data"):
                _each_legend(one)


def _narrowing(legend: dict[str, Any]) -> dict[str, Any]:
    columns = f"max(1, min({legend['columns']}, floor(width / 200)))"
    limit = legend.get("labelLimit", 200)
    return legend | {"columns": {"expr": columns}, "labelLimit": {"expr": f"min({limit}, 0.8 * width / {columns})"}}


def data_of(spec: dict[str, Any]) -> pl.DataFrame:
    """Return the rows of a figure; those of single marks (lines of reference) only where there are no others."""
    frames = [
        pl.DataFrame(rows, infer_schema_length=None)
        for rows in sorted(spec.get("datasets", {}).values(), key=len, reverse=True)
        if rows
    ]
    wide = [frame for frame in frames if frame.height > 1] or frames
    if len(wide) < 2:
        return wide[0] if wide else pl.DataFrame()
    return pl.concat(
        [frame.with_columns(layer=pl.lit(place)) for place, frame in enumerate(wide, 1)], how="diagonal_relaxed"
    )


def missing(why: str | None, how: str) -> None:
    """Say what is not there, why, and how to get it."""
    st.info(f"{inert((why or 'It is not there').rstrip('.'))}. {inert(how)}")
