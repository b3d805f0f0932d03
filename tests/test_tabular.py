"""Cells of tables: text comes back as it was, and messages repeat it harmlessly."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchwright.errors import Fault
from benchwright.logs.tabular import Column, Table, read_table, shown
from tables import write_rows


def test_values_in_messages_are_one_short_line() -> None:
    assert shown("a\nb\u202e\x1b" + "x" * 100).startswith(r"a\nb\u202e\x1bxxx")
    assert len(shown("y" * 10_000)) == 60


@given(st.lists(st.lists(st.text(max_size=5), min_size=2, max_size=2), min_size=1, max_size=5))
def test_text_cells_survive_a_round_trip(tmp_path_factory: pytest.TempPathFactory, cells: list[list[str]]) -> None:
    rows = [[cell.strip() or "x" for cell in row] for row in cells]
    path = tmp_path_factory.mktemp("cells") / "t.csv"
    write_rows(path, [["a", "b"], *rows], quote_all=True)
    found: list[Fault] = []
    frame = read_table(path, Table((Column("a", "text"), Column("b", "text")), ()), found)
    assert found == []
    assert frame is not None
    assert [list(row) for row in frame.rows()] == rows
