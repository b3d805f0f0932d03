"""Every choice behind the figures; the settings as a file; the report with them."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import streamlit as st

from benchwright._json import json_safe
from benchwright.app.building import build_report, command_of
from benchwright.app.desk import Desk, View
from benchwright.app.pages import shown
from benchwright.app.settings_file import Plan, plan_settings, write_settings
from benchwright.app.words import inert
from benchwright.errors import BenchwrightError


def show(desk: Desk, view: View) -> None:
    """Show the page."""
    rows = view.config.assumptions()
    start = {row.key: row.value for row in desk.config.assumptions()}
    frame = pl.DataFrame(
        [
            (
                row.key,
                _text(row.value),
                row.unit,
                _text(row.default),
                row.source,
                row.value != start.get(row.key),
                row.why,
            )
            for row in rows
        ],
        schema=["choice", "value", "unit", "default", "set by", "moved here", "why"],
        orient="row",
    )
    _settings(desk, view)
    shown.table(frame, "assumptions", title="Every choice", height=420)
    files = desk.source.tables.files
    if files:
        table = pl.DataFrame(
            [(one.name, one.size, one.sha256) for one in files], schema=["file", "bytes", "sha256"], orient="row"
        )
        shown.table(table, "files", title="Files that were read")
    notes = desk.source.tables.notes + (() if view.weights is None else view.weights.notes)
    with st.expander("What to know before trusting a figure"):
        shown.say(dict.fromkeys(notes))


def _settings(desk: Desk, view: View) -> None:
    """Write the settings where they are not written, and build the report with them where they are."""
    st.markdown("##### Keep these settings")
    try:
        plan = plan_settings(desk.settings_file, view.config)
    except BenchwrightError as error:
        st.error(inert(error))
        return
    shown.download(f"Settings as {plan.path.name}", plan.new, plan.path.name, key="settings", mime="application/toml")
    if plan.changes:
        _write(plan)
    else:
        st.success(f"{inert(plan.path.name)} says what is set here, or need not: all are defaults.")
    _build(desk, plan)


def _write(plan: Plan) -> None:
    frame = pl.DataFrame(
        [(one.key, _text(one.old), _text(one.new)) for one in plan.changes],
        schema=["choice", "in the file or default", "here"],
        orient="row",
    )
    shown.table(frame, "changes", title=f"What would change in {plan.path.name}")
    if plan.anew:
        st.warning(f"The file is laid out so that it must be written anew; the old one stays as {plan.backup.name}.")
    sure = True
    if plan.old is not None:
        sure = st.checkbox(f"Change the {plan.path.name} that is there", key="settings-sure")
    if st.button("Write these settings to benchwright.toml", key="settings-write", disabled=not sure):
        try:
            write_settings(plan)
        except BenchwrightError as error:
            st.error(inert(error))
            return
        st.session_state["settings-written"] = True
        st.rerun()


def _build(desk: Desk, plan: Plan) -> None:
    if st.session_state.pop("settings-written", False):
        st.success(f"Wrote {inert(plan.path.name)}.")
    st.markdown("##### Build the report with them")
    out = st.text_input("Folder of the report", "out-desk", key="build-out", max_chars=200)
    over = st.checkbox("Replace an earlier report there", key="build-over")
    st.caption("The same as this on the command line, in the folder where the desk was started:")
<<<<<<< HEAD
    st.code(
        command_of(desk.inputs, Path(out), settings_file=desk.settings_file, overwrite=over),
        language=None,
        wrap_lines=True,
    )
=======
    command = command_of(desk.inputs, Path(out), settings_file=desk.settings_file, overwrite=over)
    st.code(command, language=None, wrap_lines=True)
>>>>>>> 690f733d8d422c8eebf1400f822513b9b85e0151
    if plan.changes:
        st.caption("Write the settings first: the report is built with what the file says.")
    if st.button("Build the report", key="build", disabled=bool(plan.changes) or not out.strip()):
        with st.status("Building the report", expanded=True) as status:
            try:
                build_report(desk, Path(out), overwrite=over, progress=lambda step: status.update(label=inert(step)))
            except BenchwrightError as error:
                status.update(label="Not built", state="error")
                st.error(inert(error))
                return
            status.update(label=f"Wrote {inert(out)}: open {inert(Path(out) / 'report.html')}", state="complete")


def _text(value: object) -> str:
    if value is None:
        return "not set"
    safe = json_safe(value)
    return (
        ", ".join(map(str, safe)) if isinstance(safe, list) else f"{safe:g}" if isinstance(safe, float) else str(safe)
    )
