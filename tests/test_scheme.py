"""Weighting schemes: files, hashes, and what of them fits a board."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchwright.board.scheme import WeightScheme, matched_weights, read_scheme, task_scheme, uniform_scheme
from benchwright.board.values import BoardValues
from benchwright.errors import DataError, UsageError

NAMES = st.text(min_size=1, max_size=5).filter(lambda name: name == name.strip() and "\ud800" not in name)
WEIGHTS = st.floats(-1e6, 1e6).filter(lambda weight: weight != 0)


def scheme(*rows: tuple[str, Any, float], **options: Any) -> WeightScheme:
    table = pl.DataFrame(rows, schema={"task": pl.String, "doc_id": pl.String, "weight": pl.Float64}, orient="row")
    return WeightScheme(table, **options)


def board(*items: tuple[str, str], level: str = "item", models: int = 2, **options: Any) -> BoardValues:
    table = pl.DataFrame(items, schema={"task": pl.String, "doc_id": pl.String}, orient="row")
    names = tuple(f"m{place}" for place in range(models))
    return BoardValues(names, table, np.ones((len(items), models)), level=level, **options)  # type: ignore[arg-type]


@settings(max_examples=50, deadline=None, derandomize=True)
@given(rows=st.dictionaries(st.tuples(NAMES, NAMES), WEIGHTS, min_size=1, max_size=8), data=st.data())
def test_a_scheme_comes_back_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, rows: dict[tuple[str, str], float], data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("scheme") / "scheme.json"
    made = scheme(*((*key, weight) for key, weight in rows.items()), rule="=drawn", assumptions={"r": 1.5, "é": [1]})
    path.write_text(made.to_json(), encoding="utf-8")
    back = read_scheme(path)
    assert back.weights.equals(made.weights)
    assert (back.sha256, back.items_sha256, back.assumptions) == (made.sha256, made.items_sha256, made.assumptions)
    # the order of rows and the layout of the file do not matter
    shuffled = data.draw(st.permutations(list(rows.items())))
    assert scheme(*((*key, weight) for key, weight in shuffled), rule="=drawn").items_sha256 == made.items_sha256
    path.write_text(json.dumps(json.loads(made.to_json())), encoding="utf-8")
    assert read_scheme(path).sha256 == made.sha256


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        ("0.25", "0.35", "`sha256`"),
        ('"rule": "by hand"', '"rule": "by foot"', "`sha256`"),
        ('"a", "1"', '"a", "9"', "`items_sha256`"),
        ('"benchwright_scheme": 1', '"benchwright_scheme": 2', "format 2"),
        ('"benchwright_scheme"', '"scheme"', "is no scheme"),
        ('"level": "item"', '"level": "task"', "entry 1"),
        ("0.25", "NaN", "no JSON"),
        ("0.25", "true", "entry 1"),
        ("0.25", "1e999", "finite"),
        ('"a", "1"', '"a", "2"', "once"),
    ],
)
def test_a_changed_file_is_refused(tmp_path: Path, old: str, new: str, where: str) -> None:
    path = tmp_path / "scheme.json"
    text = scheme(("a", "1", 0.25), ("a", "2", 0.75), rule="by hand").to_json()
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(DataError, match=where) as caught:
        read_scheme(path)
    assert str(path) in caught.value.message


@pytest.mark.parametrize("content", [b"", b"[]", b"3", b"\xff\xfe", b"[" * 100_000, b'{"benchwright_scheme": true}'])
def test_what_is_no_scheme_is_said(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "w.json").write_bytes(content)
    with pytest.raises(DataError, match="cannot be used"):
        read_scheme(tmp_path / "w.json")


def test_tables_of_weights(tmp_path: Path) -> None:
    path = tmp_path / "w.csv"
    path.write_text("task,doc_id,weight\na,7,1\nb,x7,2\n", encoding="utf-8")
    found = read_scheme(path)
    assert found.weights.rows() == [("a", "7", 1.0), ("b", "x7", 2.0)]  # ids of one task may be numbers
    assert found.rule == "w.csv, column `weight`"
    path.write_text("task,weight\na,1\nb,2\n", encoding="utf-8")
    assert read_scheme(path).level == "task"
    path.write_text("task,doc_id,weight,published_weight,other\na,1,1,5,9\n", encoding="utf-8")
    assert read_scheme(path).weights["weight"].to_list() == [5.0]
    assert read_scheme(path, column="other").weights["weight"].to_list() == [9.0]
    assert read_scheme(tmp_path / "w.csv", column="weight").weights["weight"].to_list() == [1.0]
    pl.DataFrame({"task": ["a"], "doc_id": [7], "weight": [1.0]}).write_parquet(tmp_path / "w.parquet")
    assert read_scheme(tmp_path / "w.parquet").weights.rows() == [("a", "7", 1.0)]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("task,doc_id,weight\na,1,x\n", "finite number"),
        ("task,doc_id,weight\na,1,inf\n", "finite number"),
        ("task,doc_id,weight\na,1,1\na,1,2\n", "appears 2 times"),
        ("task,doc_id,weight\na,1,0\n", "not 0"),
        ("task,doc_id\na,1\n", "column `weight`"),
        ("", "empty"),
    ],
)
def test_faulty_tables_are_told(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / "w.csv").write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=reason):
        read_scheme(tmp_path / "w.csv")


def test_a_folder_gives_its_scheme(tmp_path: Path) -> None:
    (tmp_path / "weights.csv").write_text("task,doc_id,weight\na,1,1\n", encoding="utf-8")
    assert read_scheme(tmp_path).weights["weight"].to_list() == [1.0]
    (tmp_path / "scheme.json").write_text(scheme(("a", "1", 3.0)).to_json(), encoding="utf-8")
    assert read_scheme(tmp_path).weights["weight"].to_list() == [3.0]
    with pytest.raises(UsageError, match="does not exist"):
        read_scheme(tmp_path / "none.csv")


def test_weights_find_their_items() -> None:
    values = board(("a", "1"), ("a", "2"), ("b", "1"))
    weights, notes = matched_weights(scheme(("b", "1", 3.0), ("a", "1", 1.0)), values)
    assert weights[[0, 2]].tolist() == [1.0, 3.0]
    assert np.isnan(weights[1])
    assert notes == ("without weight, and only in the plain average: 1 of the board's 3 items",)
    shared_out, _ = matched_weights(WeightScheme(pl.DataFrame({"task": ["a"], "weight": [3.0]}), "task"), values)
    assert shared_out[:2].tolist() == [1.5, 1.5]
    tasks = board(("a", None), ("b", None), level="task")  # type: ignore[arg-type]
    summed, notes = matched_weights(scheme(("a", "1", 1.0), ("a", "2", 0.5), ("b", "1", -2.0)), tasks)
    assert summed.tolist() == [1.5, -2.0]
    assert "summed per task" in notes[0]


def test_weights_of_other_items_are_refused() -> None:
    values = board(("a", "1"), ("a", "2"))
    with pytest.raises(DataError, match="no item with a weight is on the board, of 1") as caught:
        matched_weights(scheme(("z", "1", 1.0)), values)
    assert "(z, 1)" in str(caught.value)
    with pytest.raises(DataError, match="every item on the board has weight 0"):
        matched_weights(scheme(("a", "1", 0.0), ("z", "1", 1.0)), values, partial=True)
    mixed = scheme(("a", "1", 1.0), ("z", "1", 1.0))
    with pytest.raises(DataError, match=r"not on the board: 1 item with 50 % of the weight, e.g. z, 1"):
        matched_weights(mixed, values)
    _, notes = matched_weights(mixed, values, partial=True)
    assert notes[0] == "not on the board: 1 item with 50 % of the weight"
    _, notes = matched_weights(scheme(("a", "1", 1.0), ("z", "1", 0.01)), values)
    assert notes[0] == "not on the board: 1 item with 1 % of the weight"


def test_schemes_of_a_board() -> None:
    values = board(("a", "1"), ("a", "2"), ("b", "1"))
    assert uniform_scheme(values).weights["weight"].to_list() == [1.0, 1.0, 1.0]
    assert matched_weights(task_scheme(values), values)[0].tolist() == [0.5, 0.5, 1.0]
    sized = board(("b", None), ("a", None), level="task", sizes=np.array([25.0, 100.0]))  # type: ignore[arg-type]
    assert uniform_scheme(sized).weights.rows() == [("a", 100.0), ("b", 25.0)]
    unknown = board(("b", None), ("a", None), level="task", sizes=np.array([25.0, np.nan]))  # type: ignore[arg-type]
    assert uniform_scheme(unknown).weights["weight"].to_list() == [1.0, 1.0]


def test_bad_schemes() -> None:
    with pytest.raises(UsageError, match="doc_id is missing"):
        WeightScheme(pl.DataFrame({"task": ["a"], "weight": [1.0]}))
    with pytest.raises(UsageError, match="finite weight"):
        scheme(("a", None, 1.0))
    with pytest.raises(UsageError, match="`level`"):
        scheme(("a", "1", 1.0), level="group")
    assert scheme(("a", "1", -0.0), ("a", "2", 1.0)).sha256 == scheme(("a", "1", 0.0), ("a", "2", 1.0)).sha256
