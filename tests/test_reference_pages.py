"""Pages of the reference say what the program says: written by it, or naming all that is public."""

from __future__ import annotations

import re

import pytest

import benchwright
from by_path import ROOT, loaded

REFERENCE = ROOT / "docs" / "reference"
make_reference = loaded("scripts", "make_reference")


@pytest.mark.parametrize("name", make_reference.PAGES)
def test_a_page_is_what_the_program_would_write(name: str) -> None:
    written = (REFERENCE / name).read_text(encoding="utf-8")
    assert written == make_reference.PAGES[name](), "run `python scripts/make_reference.py`"


def test_every_public_name_has_its_place() -> None:
    pages = [page.read_text(encoding="utf-8") for page in (REFERENCE / "python").glob("*.md")]
    named = [name for page in pages for name in re.findall(r"^::: benchwright\.(\w+)$", page, re.MULTILINE)]
    assert sorted(named) == sorted(benchwright.__all__)


def test_every_page_is_in_the_navigation() -> None:
    listed = set(re.findall(r"[\w/-]+\.md", (ROOT / "mkdocs.yml").read_text(encoding="utf-8")))
    docs = ROOT / "docs"
    assert listed == {page.relative_to(docs).as_posix() for page in docs.rglob("*.md")}


def test_the_site_loads_nothing_from_elsewhere() -> None:
    settings = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert re.search(r"^ +font: false$", settings, re.MULTILINE)
    assert "analytics" not in settings
    assert not re.search(r"https?://", settings)
