"""Fixtures shared by all tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from benchwright.pipeline import audit
from benchwright.report.contents import AuditReport
from browsing import PATIENCE, chromium

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of public data, papers and golden files that is not part of the repository."""
    default = Path(__file__).resolve().parents[2] / "shared"
    folder = Path(os.environ.get("BENCHWRIGHT_SHARED", default))
    if not folder.is_dir():
        pytest.skip("needs ../shared (or BENCHWRIGHT_SHARED): not present")
    return folder


@pytest.fixture(scope="session")
def olmes(shared: Path) -> AuditReport:
    """The whole audit of the published OLMES item tables, at the defaults."""
    return audit(shared / "data" / "olmes-audit")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A Chromium. It ends with the module: its event loop must not meet those of other tests."""
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=PATIENCE)

    path = chromium()
    if path is None:
        pytest.fail("no Chromium: install it (on Debian: apt-get install chromium) or name its program in CHROMIUM")
    with sync_playwright() as playwright:
        # As root, in containers, Chromium has no sandbox of its own; the pages are ours.
        options = ["--disable-gpu", "--disable-dev-shm-usage", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
        opened = playwright.chromium.launch(executable_path=path, args=options)
        yield opened
        opened.close()
