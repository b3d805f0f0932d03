"""Every public set of logs is read or refused with a reason: the table of docs/reference/log-formats.md holds."""

from __future__ import annotations

from pathlib import Path

import pytest

from public_sets import SETS, counts, row

DOCUMENT = Path(__file__).resolve().parents[1] / "docs" / "reference" / "log-formats.md"


@pytest.mark.parametrize("name", SETS)
def test_the_table_of_public_sets_holds(name: str, shared: Path) -> None:
    found = counts(shared / "data" / name)
    lines = [line for line in DOCUMENT.read_text(encoding="utf-8").splitlines() if line.startswith(f"| `{name}` ")]
    assert lines == [row(name, found)]
