"""Which items gain weight, what the weights keep, and, on demand, how sure that is."""

from __future__ import annotations

from math import isfinite

import streamlit as st

from benchwright._words import percent
from benchwright.app.desk import Desk, View
from benchwright.app.pages import shown
from benchwright.app.words import movers, scheme_table, weights_lines
from benchwright.mechanism.item_weights import IN_FORCE
from benchwright.report.figures import figures_at_once
from benchwright.report.findings import findings

SHOWN = 12
HOW = (
    "Weights need welfare, slopes on a priced axis and noise of the same items: give a panel with --welfare FOLDER and "
    "runs that differ in seed and dose, or tables with all three."
)


def show(desk: Desk, view: View) -> None:
    """Show the page."""
    weights = view.weights
    if weights is None:
        shown.missing(view.no_weights, HOW)
        return
    plain, published = weights.schemes["uniform"], weights.published
    columns = st.columns(4)
    columns[0].metric("Plain average keeps", percent(plain.efficiency), border=True)
    columns[1].metric("Published weights keep", percent(published.efficiency), border=True)
    columns[2].metric("Items with a weight", f"{int((published.weights != 0).sum()):,}", border=True)
    turning = weights.break_even[IN_FORCE].point
    columns[3].metric("Helps below neutral point", f"{turning:.2f}" if isfinite(turning) else "none", border=True)
    shown.say(weights_lines(view))
    _certainty(desk, view)
    table = movers(view, desk.start)
    if not desk.at_start(view.config) and table.height and (table["gain"].abs() > 1e-9).any():
        gain, lose = st.columns(2)
        with gain:
            shown.table(
                table.head(SHOWN), "gaining-items", title="Items that gain weight, in multiples of an equal one"
            )
        with lose:
            shown.table(table.tail(SHOWN).reverse(), "losing-items", title="Items that lose weight")
    shown.table(scheme_table(weights), "schemes", title="What each scheme keeps of the best surplus")
    drawn = desk.report(view.config).weights if desk.has_report(view.config) else weights
    made = desk.kept("weight figures", view.config, lambda: figures_at_once(drawn, None, view.config))
    shown.figures(made, place="weights")


def _certainty(desk: Desk, view: View) -> None:
    """Offer draws, or show what they say."""
    if not desk.has_report(view.config):
        st.caption("These are the weights at the estimates, without intervals: draws take too long for a lever.")
        if st.button("Compute intervals of weights", key="intervals"):
            with st.spinner("Drawing slopes, noise and welfare again"):
                desk.report(view.config)
            st.rerun()
        return
    report = desk.report(view.config)
    with st.expander("How sure that is: findings with intervals", expanded=True):
        shown.findings(one for one in findings(report) if one.section == "weights")
