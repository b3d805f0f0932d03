"""Boards and weights that are compared: ranks that are withheld, choices that changed, levels that differ."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchwright.board.compare import compare
from benchwright.board.folder import write_board
from benchwright.board.rescore import rescore
from benchwright.errors import DataError
from tables import write_rows


def scores(path: Path, models: dict[str, list[float | None]]) -> Path:
    rows: list[list[Any]] = [["model", "task", "doc_id", "score"]]
    for model, values in models.items():
        rows += [[model, "t", place, value] for place, value in enumerate(values) if value is not None]
    write_rows(path, rows)
    return path


def test_a_withheld_rank_is_no_rank_change(tmp_path: Path) -> None:
    write_rows(tmp_path / "old.csv", [["model", "score", "rank"], ["x", 0.9, ""], ["y", 0.8, 1], ["z", 0.7, 2]])
    write_rows(tmp_path / "new.csv", [["model", "score", "rank"], ["x", 0.7, ""], ["y", 0.8, 1], ["z", 0.9, 2]])
    part = compare(tmp_path / "old.csv", tmp_path / "new.csv").board
    assert part is not None
    assert dict(part.frame.select("model", "rank_change").iter_rows()) == {"x": None, "y": 0, "z": 0}
    assert dict(part.frame.select("model", "score_change").iter_rows())["x"] == pytest.approx(-0.2)
    assert part.tau_b == 1.0
    assert "without a rank on one side, so no rank change (1): x" in part.notes


def test_choices_that_changed_are_listed_apart(tmp_path: Path) -> None:
    source = scores(tmp_path / "s.csv", {"a": [1, 0, 1, 0], "b": [1, 1, 1, 0], "c": [0, 0, 1, 0]})
    write_board(rescore(source), tmp_path / "old")
    write_board(rescore(source, errors="wrong", scale="minmax", models=["a", "b"]), tmp_path / "new")
    found = compare(tmp_path / "old", tmp_path / "new")
    rows = dict(found.choices.select("choice", "new").iter_rows())
    assert rows == {"scale": '"minmax"', "errors": '"wrong"', "models": '["a", "b"]', "scale of t": "[0.5, 0.75]"}
    assert '"minmax"' in str(found)


def test_a_changed_leaderboard_is_refused(tmp_path: Path) -> None:
    board = write_board(rescore(scores(tmp_path / "s.csv", {"a": [1, 0], "b": [0, 0]})), tmp_path / "old")
    table = board / "leaderboard.csv"
    table.write_text(table.read_text("utf-8").replace("a,0.5", "a,0.9"), encoding="utf-8")
    with pytest.raises(DataError, match=r"its hash is not the one in summary\.json"):
        compare(tmp_path / "old", tmp_path / "old")


def test_weights_of_items_are_summed_beside_weights_of_tasks(tmp_path: Path) -> None:
    write_rows(tmp_path / "old.csv", [["task", "doc_id", "weight"], ["a", 1, 1], ["a", 2, 2], ["b", 1, 1]])
    write_rows(tmp_path / "new.csv", [["task", "weight"], ["a", 1], ["b", 3]])
    for names in (("old", "new"), ("new", "old")):
        found = compare(*(tmp_path / f"{name}.csv" for name in names))
        assert found.weights is not None
        assert found.weights.share_moved == pytest.approx(0.5)
        assert f"weights of items in {tmp_path / 'old.csv'} are summed per task" in found.notes


def test_added_and_removed_items_move_furthest(tmp_path: Path) -> None:
    write_rows(tmp_path / "old.csv", [["task", "doc_id", "weight"], ["t", "gone", 5], ["t", "kept", 5]])
    write_rows(tmp_path / "new.csv", [["task", "doc_id", "weight"], ["t", "come", 6], ["t", "kept", 4]])
    text = str(compare(tmp_path / "old.csv", tmp_path / "new.csv"))
    up, down = text.index("furthest up"), text.index("furthest down")
    assert up < text.index("come") < down < text.index("gone")


def test_a_correlation_of_1_but_for_rounding_has_no_interval(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    weight = rng.integers(1, 4, int(rng.integers(10, 60)))  # of these scipy's correlation is 1 less a rounding error
    write_rows(tmp_path / "old.csv", [["task", "doc_id", "weight"], *(["t", i, w] for i, w in enumerate(weight))])
    write_rows(tmp_path / "new.csv", [["task", "doc_id", "weight"], *(["t", i, 2 * w] for i, w in enumerate(weight))])
    weights = compare(tmp_path / "old.csv", tmp_path / "new.csv").weights
    assert weights is not None
    assert weights.spearman.value == pytest.approx(1)
    assert np.isnan(weights.spearman.lo)
    assert np.isnan(weights.kendall.lo)


def test_hints_name_no_option_that_the_command_lacks(tmp_path: Path) -> None:
    for name, versions in (("old", "12"), ("new", "11")):
        rows = [["model", "task", "doc_id", "version", "score"]]
        rows += [["a", "t", str(i), version, "1"] for i in range(4) for version in versions]
        rows += [["b", "t", str(i), versions[1], "0"] for i in range(4)]
        write_rows(tmp_path / f"{name}.csv", rows)
    with pytest.raises(DataError) as caught:
        compare(tmp_path / "old.csv", tmp_path / "new.csv")
    assert "--" not in str(caught.value)
    assert "benchwright rescore" in str(caught.value)
