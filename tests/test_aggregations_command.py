"""`benchwright aggregate`: what it reads, and that its own rule is that of `rescore`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from benchwright.board.aggregate import aggregate
from benchwright.board.folder import write_board
from benchwright.board.rescore import rescore
from benchwright.cli import main
from benchwright.errors import DataError, UsageError
from tables import write_rows

RULES = ["median", "borda_all"]


def scores(path: Path, models: dict[str, list[float | None]]) -> Path:
    """Write scores of models on items, four a task."""
    rows: list[list[Any]] = [["model", "task", "doc_id", "score"]]
    for model, values in models.items():
        rows += [[model, f"t{place // 4}", place, value] for place, value in enumerate(values) if value is not None]
    write_rows(path, rows)
    return path


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return scores(
        tmp_path / "s.csv",
        {"a": [1, 0, 1, 0, 1, 1, 0, 0], "b": [1, 1, 1, 0, 0, 1, 1, 1], "c": [0, 0, 0, 1, 1, 0, 0, 1]},
    )


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    write_rows(tmp_path / "w.csv", [["task", "doc_id", "weight"], *([f"t{i // 4}", i, 1 + i % 3] for i in range(6))])
    return tmp_path / "w.csv"


def test_the_own_rule_is_that_of_rescore(source: Path, weights: Path, tmp_path: Path) -> None:
    board = rescore(source, weights=weights)
    expected = board.frame.select("model", "score", "rank").sort("model").rows()
    write_board(board, tmp_path / "board")
    for found in (
        aggregate(source, weights=weights, rules=RULES),
        aggregate(tmp_path / "board", rules=RULES),  # its values with its own weights, and no column of its table
    ):
        assert found.frame.select("model", "own", "own_rank").sort("model").rows() == expected
    with pytest.raises(UsageError, match="is a leaderboard"):
        aggregate(tmp_path / "board" / "leaderboard.csv")
    assert "policy: missing intersect, scale none, level item, unit task, errors drop" in str(
        aggregate(source, rules=RULES)
    )


def test_a_rank_is_withheld_as_by_rescore(tmp_path: Path) -> None:
    gaps = scores(tmp_path / "s.csv", {"a": [1, 0, 1, 0, 1], "b": [1, 1, 0, 0, 0], "c": [1, 1, 1, None, None]})
    found = aggregate(gaps, rules=RULES, missing="renormalise")
    assert dict(found.frame.select("model", "own_rank").iter_rows()) == {"a": 1, "b": 2, "c": None}
    assert any("a score but no rank" in note for note in found.notes)
    common = aggregate(gaps, rules=RULES)
    assert any(note.startswith("2 of 5 items not common to all, left out") for note in common.notes)


def test_a_model_without_items_is_left_out_and_named(tmp_path: Path) -> None:
    ghost = scores(tmp_path / "s.csv", {"a": [1, 0], "b": [0, 0]})
    with ghost.open("a", encoding="utf-8") as file:
        file.write("ghost,t0,0,\nghost,t0,1,\n")
    found = aggregate(ghost, rules=["common_mean"])
    assert dict(found.frame.select("model", "common_mean").iter_rows()) == {"a": 0.5, "b": 0.0}
    assert "no item with weight, and so no score: ghost" in found.notes


def test_scales_are_those_of_rescore(tmp_path: Path) -> None:
    write_rows(tmp_path / "s.csv", [["model", "t1", "t2"], ["a", 0.5, 60], ["b", 0.7, 10], ["c", 0.6, 80]])
    with pytest.raises(DataError, match="1 task does not fit") as caught:
        aggregate(tmp_path / "s.csv")
    assert "--scale minmax" in str(caught.value)
    found = aggregate(tmp_path / "s.csv", rules=RULES, scale="minmax")
    expected = rescore(tmp_path / "s.csv", scale="minmax").frame.select("model", "score").sort("model").rows()
    assert found.frame.select("model", "own").sort("model").rows() == expected


def test_weights_are_checked_and_told(source: Path, tmp_path: Path) -> None:
    rows = [["task", "doc_id", "weight"], *([f"t{i // 4}", i, 1 if i % 2 else -1] for i in range(8))]
    write_rows(tmp_path / "w.csv", rows)
    with pytest.raises(DataError, match="sum to almost nothing"):
        aggregate(source, weights=tmp_path / "w.csv")
    write_rows(tmp_path / "w.csv", [*rows[:1], ["t0", 0, -1], ["t0", 1, 5], ["zz", 1, 0.1]])
    notes = aggregate(source, weights=tmp_path / "w.csv", rules=RULES).notes
    for part in ("1 negative weight", "not on the board: 1 item", "6 of the board's 8 items"):
        assert any(part in note for note in notes)


def test_the_command_picks_what_counts(
    source: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    given = ["--models", "!c", "--task", "t0", "--metric", "score", "--errors", "wrong", "--pool-versions"]
    monkeypatch.setattr(sys, "argv", ["benchwright", "aggregate", str(source), "--rule", "median", *given, "--json"])
    with pytest.raises(SystemExit) as left:
        main()
    assert not left.value.code
    record = json.loads(capfd.readouterr().out)
    assert [row["model"] for row in record["models"]] == ["b", "a"]
    assert record["policy"]["errors"] == "wrong"
    assert record["policy"]["tasks"] == ["t0"]


def test_a_leader_of_task_scores_has_tasks(tmp_path: Path) -> None:
    write_rows(tmp_path / "s.csv", [["model", "t1", "t2", "t3"], ["a", 0.5, 0.5, 0.5], ["b", 0.9, "", 0.9]])
    assert any(
        "b leads with 2 of 3 tasks" in note for note in aggregate(tmp_path / "s.csv", rules=["present_mean"]).notes
    )
