"""Whether the ranking is worth gaming, what overtaking costs, and what stops it."""

from __future__ import annotations

import streamlit as st

from benchwright.app.desk import Desk, View
from benchwright.app.pages import shown
from benchwright.app.words import inert
from benchwright.game_answers.answer import GameAnswer
from benchwright.game_answers.headline import headline
from benchwright.game_answers.opened import OpenedCurves
from benchwright.report.figures import game_figures
from benchwright.report.findings import game_findings
from benchwright.report.page_game import game_notes
from benchwright.report.tables import game_tables

AT_ONCE = 12  # developers up to whom draws follow a lever
HOW = "Name one: benchwright serve SOURCE --game FILE, where FILE is anything that `benchwright game` reads."


def show(desk: Desk, view: View) -> None:
    """Show the page."""
    opened = desk.opened
    if opened is None:
        shown.missing("No ranking game was named", HOW)
        return
    intervals = True
    if isinstance(opened, OpenedCurves) and opened.n > AT_ONCE:
        intervals = st.toggle("With intervals (slower)", key="game-intervals")
        if not intervals:
            st.caption("At the fitted curves, without draws: no intervals, no share of draws, and no arms race.")
    answer = desk.game(view.config, intervals=intervals)
    if answer is None:
        return
    if not opened.movable:
        st.caption("This input has no rewards, costs or level of tuning to move.")
    if isinstance(answer, GameAnswer):
        lines = [line for line in headline(answer) if line]
        for line in lines[:3]:
            title, _, text = line.partition(": ")
            with st.container(border=True):
                st.markdown(f"**{inert(title)}**  \n{inert(text)}")
        shown.say(lines[3:])
    with st.expander("Findings", expanded=not isinstance(answer, GameAnswer)):
        shown.findings(game_findings(answer))
    made = desk.kept(f"game figures {intervals}", view.config, lambda: game_figures(answer))
    shown.figures(made, place="game")
    with st.expander("Tables"):
        for one in game_tables(answer):
            shown.table(one.frame.select([column.field for column in one.columns]), one.name, title=one.title)
    for note in game_notes(answer):
        st.caption(inert(note))
