"""The figures of the explanation that a script draws are as it would draw them: their numbers come from the program."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SPEC = importlib.util.spec_from_file_location("make_figures", ROOT / "scripts" / "make_figures.py")
assert SPEC is not None
assert SPEC.loader is not None
make_figures = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(make_figures)


@pytest.mark.parametrize("name", make_figures.FIGURES)
def test_a_figure_is_what_the_script_would_draw(name: str) -> None:
    drawn = (ROOT / "docs" / "img" / name).read_text(encoding="utf-8")
    assert drawn == make_figures.FIGURES[name](), "run `python scripts/make_figures.py`"
    users = [page for page in (ROOT / "docs").rglob("*.md") if name in page.read_text(encoding="utf-8")]
    assert users, "no page shows it"
