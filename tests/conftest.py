"""Fixtures shared by all tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from benchwright.pipeline import audit
from benchwright.report.contents import AuditReport


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
