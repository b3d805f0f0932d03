"""The levers, at the side of every page; where they stand is in the address."""

from __future__ import annotations

from typing import Any

import streamlit as st

from benchwright.app.desk import Desk
from benchwright.app.levers import GROUPS, Lever, config_under, from_query, levers_of, to_query, value_in
from benchwright.app.words import inert
from benchwright.config import Config
from benchwright.errors import UsageError
from benchwright.logs.item_tables import ITEM

FAULTS, OPENED, STANDING = "faults of the address", "where levers stood at first", "where levers stand"


def sidebar(desk: Desk) -> Config:
    """Show the levers and return the choices that they make; those of the start where they make none."""
    levers = levers_of(desk)
    if OPENED not in st.session_state:
        query = {key: value for key, value in st.query_params.to_dict().items() if key not in ITEM}
        found, st.session_state[FAULTS] = from_query(desk, query)
        st.session_state[OPENED] = st.session_state[STANDING] = {
            lever.key: _shown(lever, found.get(lever.key, value_in(desk.config, lever.key))) for lever in levers
        }
    for lever in levers:
        # A run that a click cuts short before it reaches a widget takes the widget's value with it.
        st.session_state.setdefault(lever.key, st.session_state[STANDING][lever.key])
    for fault in st.session_state[FAULTS]:
        st.warning(f"From the address, not used: {inert(fault)}")
    with st.sidebar:
        st.markdown(f"**{inert(desk.name)}**")
        st.button("Back to the start", on_click=_reset, args=(desk,), key="reset", width="stretch")
        for group in GROUPS:
            mine = [lever for lever in levers if lever.group == group]
            if mine:
                with st.expander(group, expanded=group in GROUPS[:2]):
                    for lever in mine:
                        _widget(lever, st.session_state[OPENED][lever.key])
        if not levers:
            st.caption("This source has no levers: it supports no weights, and no game was named.")
    st.session_state[STANDING] = {lever.key: st.session_state[lever.key] for lever in levers}
    settings = {lever.key: _read(lever) for lever in levers}
    try:
        config = config_under(desk, settings)
    except UsageError as error:
        st.error(f"{inert(error.message)}. The settings at the start are shown.")
        return desk.config
    there = st.query_params.to_dict()
    wanted = to_query(desk, settings) | {key: value for key, value in there.items() if key in ITEM}
    if there != wanted:
        st.query_params.from_dict(wanted)
    return config


def _reset(desk: Desk) -> None:
    for lever in levers_of(desk):
        st.session_state[lever.key] = _shown(lever, value_in(desk.config, lever.key))
    st.session_state[FAULTS] = ()


def _widget(lever: Lever, first: Any) -> None:
    # What stood at first is told the browser with the widget: a value set beside it is lost with a run cut short.
    given: dict[str, Any] = {"key": lever.key, "help": lever.help}
    label = lever.label
    if lever.kind == "slider":
        st.slider(label, lever.low, lever.high, first, step=0.01, **given)
    elif lever.kind == "flag":
        st.toggle(label, first, **given)
    elif lever.kind == "choice":
        st.selectbox(label, lever.options, lever.options.index(first), **given)
    elif lever.kind == "text":
        st.text_input(label, first, placeholder="as the game has it", max_chars=200, **given)
    elif lever.kind == "whole":
        st.number_input(label, min_value=int(lever.low or 0), max_value=int(lever.high or 0), value=first, step=1,
                        placeholder="any number", **given)  # fmt: skip
    else:
        st.number_input(label, min_value=lever.low, max_value=lever.high, value=first,
                        format="%g", placeholder="not set", **given)  # fmt: skip


def _shown(lever: Lever, value: Any) -> Any:
    """Return a value as its widget holds it."""
    if lever.kind == "text":
        return "" if value is None else value
    return float(value) if value is not None and lever.kind in ("slider", "number") else value


def _read(lever: Lever) -> Any:
    value = st.session_state[lever.key]
    return (value.strip() or None) if lever.kind == "text" else value
