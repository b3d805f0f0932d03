"""One scale for all tasks: what fits, what is turned round, what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from benchwright.board.rules import ScoringRules
from benchwright.board.scales import Scale, board_scale, read_bounds, read_chance
from benchwright.board.scoring import score_board
from benchwright.board.values import BoardValues
from benchwright.errors import DataError, UsageError

TASKS = {"acc": [0.9, 0.5, 0.1], "loss": [0.2, 0.3, 0.7]}
HIGHER: dict[str, bool | None] = {"acc": True, "loss": False}


def board(table: dict[str, list[float]], **options: Any) -> BoardValues:
    items = pl.DataFrame({"task": list(table), "doc_id": pl.Series([None] * len(table), dtype=pl.String)})
    names = tuple(f"m{place}" for place in range(len(next(iter(table.values())))))
    return BoardValues(names, items, np.array(list(table.values())), level="task", **options)


def scaled(values: BoardValues, scale: Scale) -> list[list[float]]:
    return [row.tolist() for row in np.round(scale.scaled(values)[0], 12)]


def test_less_is_better_counts_as_one_minus() -> None:
    values = board(TASKS, higher=HIGHER)
    scale = board_scale(values)
    assert scaled(values, scale) == [[0.9, 0.5, 0.1], [0.8, 0.7, 0.3]]
    assert scale.notes == ("less is better in loss: x counts as 1 - x",)


def test_values_outside_the_unit_interval_are_listed() -> None:
    values = board({"acc": [0.5, 0.6], "ppl": [7.4, 12.0], "mcc": [-0.1, 0.3]}, metrics={"ppl": "perplexity"})
    with pytest.raises(DataError, match="2 tasks do not fit") as caught:
        board_scale(values)
    assert [fault.file for fault in caught.value.faults] == ["mcc", "ppl"]
    assert "perplexity: outside [0, 1], 7.4 to 12" in str(caught.value)
    assert "--bounds FILE" in str(caught.value)


def test_minmax_and_zscore() -> None:
    values = board({"acc": [0.9, 0.5, 0.1], "ppl": [2.0, 6.0, 10.0]}, higher={"acc": True, "ppl": False})
    scale = board_scale(values, "minmax")
    assert scaled(values, scale) == [[1.0, 0.5, 0.0], [1.0, 0.5, 0.0]]
    assert "scores depend on who is on the board" in scale.notes
    assert scaled(values, board_scale(values, "zscore")) == [[1.0, 0.0, -1.0], [1.0, 0.0, -1.0]]
    for rule in ("minmax", "zscore"):
        with pytest.raises(DataError, match="models that differ; they do not in b"):
            board_scale(board({"a": [0.1, 0.2], "b": [0.3, 0.3]}), rule)  # type: ignore[arg-type]


def test_standard_errors_are_scaled_too() -> None:
    values = board({"ppl": [2.0, 10.0]}, higher={"ppl": False}, standard_errors=np.array([[0.4, 0.8]]))
    _, errors = board_scale(values, "minmax").scaled(values)
    assert errors is not None
    assert errors.tolist() == [[0.05, 0.1]]


def test_bounds_may_turn_a_task_round(tmp_path: Path) -> None:
    path = tmp_path / "bounds.csv"
    path.write_text("task,low,high\nacc,0.25,1\nloss,1,0\n", encoding="utf-8")
    values = board(TASKS, higher={"acc": True, "loss": True})
    scale = board_scale(values, "bounds", table=read_bounds(path))
    np.testing.assert_allclose(scale.scaled(values)[0][1], [0.8, 0.7, 0.3])
    assert scale.notes == ("bounds turn loss round against what its metric says",)
    path.write_text("task,low,high\nacc,0.25,1\n", encoding="utf-8")
    bare = board_scale(board(TASKS, higher={"acc": True, "loss": False}), "bounds", table=read_bounds(path))
    assert bare.bounds.rows() == [("acc", 0.25, 1.0), ("loss", 1.0, 0.0)]
    assert bare.notes == ("1 task without bounds: 0 and 1, as their values lie within them",)
    with pytest.raises(DataError, match="no entry for other"):
        bare.ends(("acc", "other"))


def test_chance_levels(tmp_path: Path) -> None:
    path = tmp_path / "chance.csv"
    path.write_text("task,n_choices\na,4\nb,0\nc,3\n", encoding="utf-8")
    assert read_chance(path)["chance"].to_list() == [0.25, 0.0, 1 / 3]
    path.write_text("task,chance\na,0.1\n", encoding="utf-8")
    assert read_chance(path)["chance"].to_list() == [0.1]
    for text, reason in (
        ("task,n_choices\na,1\n", "always right"),
        ("task,n_choices\na,2.5\n", "whole number"),
        ("task,chance\na,1.5\n", "must lie in"),
        ("task,guess\na,1\n", "neither"),
        ("task,chance\na,0\na,0\n", "more than once"),
    ):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(DataError, match=reason):
            read_chance(path)


def test_chance_needs_more_to_be_better() -> None:
    table = pl.DataFrame({"task": ["acc", "loss"], "chance": [0.5, 0.5]})
    with pytest.raises(DataError, match="less is better"):
        board_scale(board(TASKS, higher=HIGHER), "chance", table=table)


def test_an_unknown_direction_is_said() -> None:
    values = board({"a": [0.1, 0.2]}, metrics={"a": "summac"})
    assert board_scale(values).notes == ("more of `summac` is taken to be better: no log says",)


def test_orientation_keeps_the_order_of_scores() -> None:
    values = board(TASKS, higher=HIGHER)
    turned = board({"acc": TASKS["acc"], "loss": [1 - x for x in TASKS["loss"]]}, higher={"acc": True, "loss": True})
    first, second = (score_board(one).frame["score"].to_list() for one in (values, turned))
    assert first == pytest.approx(second)


def test_a_missing_item_has_no_zscore_of_0() -> None:
    with pytest.raises(UsageError, match="average model"):
        ScoringRules(missing="zero", scale="zscore")


def test_an_unknown_rule_is_refused() -> None:
    with pytest.raises(UsageError, match="`rule` must be one of"):
        board_scale(board(TASKS, higher=HIGHER), "log")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="`table` must be given"):
        board_scale(board(TASKS, higher=HIGHER), "bounds")
