"""The script that Streamlit runs for each browser, from the top at every change; pages are rows of ``PAGES``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import streamlit as st
from PIL import Image

from benchwright.app.desk import Desk, View
from benchwright.app.pages import assumptions, audit, game, items, leaderboard, weights
from benchwright.app.pages.shown import missing
from benchwright.app.pages.sidebar import sidebar
from benchwright.app.serving import current_desk
from benchwright.app.words import inert
from benchwright.errors import BenchwrightError

# title, address, icon, what shows it
PAGES: tuple[tuple[str, str, str, Callable[[Desk, View], None]], ...] = (
    ("Weights", "weights", ":material/balance:", weights.show),
    ("Leaderboard", "leaderboard", ":material/leaderboard:", leaderboard.show),
    ("Ranking game", "game", ":material/swords:", game.show),
    ("Audit", "audit", ":material/search_insights:", audit.show),
    ("Items", "items", ":material/list:", items.show),
    ("Assumptions", "assumptions", ":material/tune:", assumptions.show),
)


def page(title: str, show: Callable[[Desk, View], None], desk: Desk, view: View) -> None:
    """Show a page; what the data cannot support is said in its place."""
    st.title(title)
    for note in desk.notes:
        st.warning(inert(note))
    if desk.source.tables.simulated:
        st.warning("Simulated data: tasks, activities and figures are invented; nothing here was measured.")
    try:
        show(desk, view)
    except BenchwrightError as error:
        missing(error.message, error.hint or "Move the lever back.")


def icon() -> Image.Image:
    """Return the page's icon: three bars. One by name would be fetched from the web."""
    pixels = np.full((32, 32, 3), (0, 114, 178), dtype=np.uint8)
    for left, top in ((6, 18), (13, 12), (20, 6)):
        pixels[top:26, left : left + 5] = 255
    return Image.fromarray(pixels)


def main() -> None:
    """Show the desk."""
    st.set_page_config(page_title="benchwright desk", page_icon=icon(), layout="wide")
    desk = current_desk()
    config = sidebar(desk)
    try:
        view = desk.view(config)
    except BenchwrightError as error:
        st.error(f"{inert(error.message)}. The settings at the start are shown.")
        config, view = desk.config, desk.start
    view = replace(view, config=config)
    pages = [
        st.Page(partial(page, title, show, desk, view), title=title, url_path=path, icon=icon, default=place == 0)
        for place, (title, path, icon, show) in enumerate(PAGES)
    ]
    st.navigation(pages, position="top").run()


if __name__ == "__main__":
    main()
