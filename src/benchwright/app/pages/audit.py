"""What was measured: welfare, improvability, noise, quality and ranks, with the findings and figures of the report."""

from __future__ import annotations

import streamlit as st

from benchwright.app.desk import Desk, View
from benchwright.app.pages import shown
from benchwright.report.figures import figures
from benchwright.report.findings import findings

SECTIONS = {
    "welfare": ("Welfare", "give welfare tables: --welfare FOLDER for a panel"),
    "improvability": (
        "Improvability",
        "give runs at two doses of an axis, named in the logs or by --runs, and its price",
    ),
    "noise": ("Noise", "give two seeds of one model, or several samples of an answer"),
    "quality": ("Quality", "give a panel: quality needs scores per model"),
    "models": ("Models", "give a panel: ranks need scores per model"),
}


def show(desk: Desk, view: View) -> None:
    """Show the page."""
    said = "Levers do not change what was measured; prices change dollars."
    if view.audit is not desk.start.audit and desk.source.estimates is not None:
        said += " At moved prices ranks by cost have no intervals: the report built with these settings has them."
    st.caption(said)
    with st.spinner("Drawing the figures"):
        found, made, notes = desk.audited(
            view.config, lambda report: (findings(report), figures(report), report.audit.notes)
        )
    tabs = st.tabs([label for label, _ in SECTIONS.values()])
    for tab, (name, (label, how)) in zip(tabs, SECTIONS.items(), strict=True):
        with tab:
            mine = [one for one in found if one.section == name]
            drawn = [one for one in made if one.section == name]
            if not mine and not drawn:
                shown.missing(_why(desk, name, label), f"To have it, {how}.")
                continue
            shown.findings(mine)
            shown.figures(drawn, place=f"audit-{name}")
    with st.expander("What to know before trusting a figure"):
        shown.say(notes)


def _why(desk: Desk, name: str, label: str) -> str:
    estimates = desk.source.estimates
    reason = None if estimates is None else estimates.reasons.get(name)
    return reason or f"{label} is not in this source"
