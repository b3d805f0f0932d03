"""The figures of the explanation that a script draws are as it would draw them: their numbers come from the program."""

from __future__ import annotations

import pytest

from by_path import ROOT, loaded

make_figures = loaded("scripts", "make_figures")


@pytest.mark.parametrize("name", make_figures.FIGURES)
def test_a_figure_is_what_the_script_would_draw(name: str) -> None:
    drawn = (ROOT / "docs" / "img" / name).read_text(encoding="utf-8")
    assert drawn == make_figures.FIGURES[name](), "run `python scripts/make_figures.py`"
    users = [page for page in (ROOT / "docs").rglob("*.md") if name in page.read_text(encoding="utf-8")]
    assert users, "no page shows it"
