"""How the leaderboard moves under the published weights, with the ranks that the data allow."""

from __future__ import annotations

import polars as pl
import streamlit as st

from benchwright.app.desk import Desk, View
from benchwright.app.pages import shown
from benchwright.app.words import board_lines, inert
from benchwright.report.figures import figures_at_once

HOW = (
    "A leaderboard needs scores per model, and weights: benchwright ingest LOGS -o panel/, then "
    "benchwright serve panel/ --welfare FOLDER."
)


def show(desk: Desk, view: View) -> None:
    """Show the page."""
    board = view.board
    if board is None:
        shown.missing(view.no_board, HOW)
        return
    shown.say(board_lines(view, desk.start))
    made = desk.kept("board figures", view.config, lambda: figures_at_once(None, board, view.config))
    shown.figures(made, place="board")
    frame = board.frame
    if desk.start.board is not None and not desk.at_start(view.config):
        frame = frame.join(
            desk.start.board.frame.select("model", rank_at_start="rank"), on="model", how="left", maintain_order="left"
        )
    first = ["model", "score", "score_lo", "score_hi", "rank", "rank_lo", "rank_hi"]
    later = [name for name in ("rank_at_start", "uniform_rank", "rank_change") if name in frame.columns]
    rest = [name for name in frame.columns if name not in {*first, *later}]
    shown.table(frame.select(*first, *later, *rest), "leaderboard", title="Models under the published weights")
    models = None if desk.source.estimates is None else desk.source.estimates.models
    if models is not None:
        with st.expander("The board as it stands, before any weights"):
            shown.table(models.frame.select(pl.all()), "plain-leaderboard", title="Models by mean score")
    for note in board.notes:
        st.caption(inert(note))
