"""The item browser: find an item, read it, see all that is known of it and why it weighs what it weighs."""

from __future__ import annotations

import polars as pl
import streamlit as st

from benchwright.app.desk import Desk, View
from benchwright.app.pages import shown
from benchwright.app.words import inert, item_lines
from benchwright.auditing.items import ItemColumn, described_columns
from benchwright.logs.item_tables import ITEM

LISTED = 500
FIRST = ("topic", "published_share", "weight_share", "w_auto", "w_aug", "cost_usd", "cheapest_axis", "sigma", "z")
ALL = "all tasks"


def show(desk: Desk, view: View) -> None:
    """Show the page."""
    items = desk.items(view.config)
    left, middle, right = st.columns([2, 2, 1])
    tasks = [ALL, *items["task"].unique(maintain_order=True).to_list()]
    task = left.selectbox("Task", tasks, key="items-task")
    text = middle.text_input("Item id or topic contains", key="items-text", max_chars=200)
    sortable = [name for name in FIRST if name in items.columns and items[name].dtype.is_numeric()]
    order = right.selectbox("Sorted by", ["as they come", *sortable], key="items-order")
    found = items if task == ALL else items.filter(task=task)
    if text:
        hit = pl.col("doc_id").cast(pl.String).str.contains(text, literal=True)
        if "topic" in found.columns:
            hit = hit | pl.col("topic").str.contains(text, literal=True).fill_null(False)
        found = found.filter(hit)
    if order in sortable:
        found = found.sort(order, descending=True, nulls_last=True)
    if not found.height:
        st.info("No item fits.")
        return
    if found.height > LISTED:
        st.caption(f"{found.height:,} items fit; the first {LISTED} can be opened, the table and its file have all.")
    names = [name for name in FIRST if name in found.columns]
    shown.table(found.select(*ITEM, *names), "items", height=320)
    keys, address = found.select(*ITEM).head(LISTED).rows(), st.query_params.to_dict()
    shared = found.filter(pl.col(name).cast(pl.String) == address.get(name, "") for name in ITEM).select(*ITEM).rows()
    keys += [one for one in shared if one not in keys]
    start = keys.index(shared[0]) if shared else 0
    picked = st.selectbox("Item", keys, start, format_func=lambda one: " / ".join(map(str, one)), key="items-item")
    st.query_params.update({name: str(part) for name, part in zip(ITEM, picked, strict=True)})
    _one(desk, view, items, *picked)


def _one(desk: Desk, view: View, items: pl.DataFrame, task: str, doc_id: object) -> None:
    row = items.filter(task=task, doc_id=doc_id)
    st.subheader(inert(f"{task} / {doc_id}"))
    why, read = st.columns(2)
    with why:
        st.markdown("##### Why it weighs what it weighs")
        _why(view, task, doc_id)
    with read:
        st.markdown("##### The item")
        text, missing = desk.text(task, doc_id)
        topic = row["topic"][0] if "topic" in row.columns else None
        if text is not None:
            st.text(text)
        elif topic is not None:
            st.text(topic)
            st.caption(inert(f"Its topic; {missing}"))
        else:
            st.caption(inert(missing))
    columns = {column.name: column for column in described_columns(desk.source.tables.axes)}
    known = [(columns.get(name, ItemColumn(name, "", "")), row[name][0]) for name in row.columns if name not in ITEM]
    table = pl.DataFrame(
        [(one.name, _cell(value), one.unit, one.description) for one, value in known],
        schema=["statistic", "value", "unit", "meaning"],
        orient="row",
    )
    shown.table(table, "item", title="All statistics of the item")


def _why(view: View, task: str, doc_id: object) -> None:
    if view.weights is None:
        st.caption(inert(view.no_weights or ""))
        return
    place = view.weights.items.with_row_index("place").filter(task=task, doc_id=doc_id)["place"]
    if not len(place):
        st.caption("It carries no weight: welfare, a slope on every priced axis or noise is not known of it.")
        return
    shown.say(item_lines(view.weights, int(place[0])))


def _cell(value: object) -> str:
    if value is None:
        return "not known"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
