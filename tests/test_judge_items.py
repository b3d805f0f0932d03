"""Items for a judge: every source, and what is wrong with texts, rows and files."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import polars as pl
import pytest

from benchwright.errors import DataError, UsageError
from benchwright.judge.items import JudgeItems, item_text, read_items
from benchwright.panel.ingest import read_logs

ROWS = [
    {"task": "t", "doc_id": 0, "question": "Two plus two?", "choices": ["3", "4"], "answer": 1},
    {"task": "t", "doc_id": 1, "question": "¿Cuántos días tiene un año? 一年有几天？", "choices": None, "answer": 0},
]


def read(source: Any, max_characters: int = 1000) -> JudgeItems:
    return read_items(source, max_characters=max_characters)


@pytest.mark.parametrize("kind", ["jsonl", "jsonl.gz", "json", "csv", "parquet", "frame"])
def test_every_kind_of_table_gives_the_same_items(tmp_path: Path, kind: str) -> None:
    file = tmp_path / f"items.{kind}"
    lines = "".join(json.dumps(row) + "\n" for row in ROWS)
    source: Any = file
    match kind:
        case "jsonl":
            file.write_text(lines)
        case "jsonl.gz":
            file.write_bytes(gzip.compress(lines.encode()))
        case "json":
            file.write_text(json.dumps(ROWS))
        case "csv":
            flat = [row | {"choices": json.dumps(row["choices"]) if row["choices"] else None} for row in ROWS]
            pl.DataFrame(flat).write_csv(file)
        case "parquet":
            pl.DataFrame(ROWS).write_parquet(file)
        case _:
            source = pl.DataFrame(ROWS)
    found = read(source)
    assert [(item.task, item.doc_id, item.text, item.problem) for item in found.items] == [
        ("t", "0", "Two plus two?\nA. 3\nB. 4", None),
        ("t", "1", "¿Cuántos días tiene un año? 一年有几天？", None),
    ]
    assert any("not shown to the judge: answer" in note for note in found.notes)
    assert any("1 of 2 items have no choices" in note for note in found.notes)


def test_the_forms_of_choices() -> None:
    lettered = "q\nA. x\nB. y"
    forms = (["x", "y"], '["x", "y"]', {"text": ["x", "y"], "label": ["A", "B"]}, "x\ny", ("x", "y"))
    assert [item_text("q", form) for form in forms] == [(lettered, True)] * len(forms)
    assert item_text("q", []) == item_text("q", None) == ("q", False)
    assert item_text("q", [1.0, 2])[0] == "q\nA. 1\nB. 2"
    assert item_text("q", list(range(27)))[0].endswith("Z. 25\n27. 26")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "the text is empty"),
        (" \n\t", "the text is empty"),
        (None, "the text is empty"),
        ("a\x00b", "the text is binary"),
        ("\x01\x02\x03abc", "the text is binary"),
        ("half a pair \ud800", "the text is binary"),
        (b"\xff\xfe\x00", "the text is binary"),
        ([{"role": "user"}], "the text is a list or an object"),
        ({"text": "a"}, "the text is a list or an object"),
        ("x" * 1001, "the text has 1,001 characters, more than max_characters = 1,000"),
    ],
)
def test_a_text_that_cannot_be_judged_stays_with_its_reason(text: Any, problem: str) -> None:
    from benchwright.judge.items import _items

    faults: list[Any] = []
    rows = [(1, "t", 0, text, None), (2, "t", 1, "fine\x0b", None)]
    broken, fine = _items("rows", rows, 1000, faults, [])
    assert (broken.problem, fine.problem, faults) == (problem, None, [])


def test_faults_of_rows_are_listed_together(tmp_path: Path) -> None:
    file = tmp_path / "items.jsonl"
    lines = [
        '{"task": "t", "doc_id": 0, "question": "q"}',
        '{"task": "", "doc_id": 1, "question": "q"}',
        '{"task": "t", "doc_id": null, "question": "q"}',
        "not json",
        '{"task": "t", "doc_id": 0, "question": "another"}',
        '{"task": "t", "doc_id": 0, "question": "q"}',
    ]
    file.write_text("\n".join(lines))
    with pytest.raises(DataError, match=r"4 fault\(s\)") as caught:
        read(file)
    assert [fault.line for fault in caught.value.faults] == [2, 3, 4, 5]


def test_a_row_that_repeats_an_item_is_read_once_and_said() -> None:
    twice = read(pl.DataFrame([ROWS[0], ROWS[0]]))
    assert len(twice.items) == 1
    assert any("1 rows repeat an item" in note for note in twice.notes)


def test_ids_of_two_kinds_are_a_fault_before_anything_is_paid(tmp_path: Path) -> None:
    frame = pl.DataFrame({"task": "t", "doc_id": ["0", "1", "b"], "text": ["x", "y", "z"]})
    with pytest.raises(DataError, match="`b` is text, but most ids here are integers"):
        read(frame)


def test_files_that_hold_no_items(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="does not exist"):
        read(tmp_path / "none.csv")
    file = tmp_path / "items.csv"
    file.write_text("task,question\nt,q\n")
    with pytest.raises(DataError, match="column `doc_id`: missing; the file has task, question"):
        read(file)
    file.write_bytes(bytes(range(256)) * 20)
    with pytest.raises(DataError, match="no table"):
        read(file)
    with pytest.raises(DataError, match="holds no items"):
        read(pl.DataFrame(schema={"task": pl.String, "doc_id": pl.Int64, "text": pl.String}))


@pytest.mark.parametrize("keep_text", [True, False])
def test_a_panel_gives_its_texts_where_they_were_kept(tmp_path: Path, shared: Path, keep_text: bool) -> None:
    logs = shared / "data" / "logs" / "inspect" / "demo-mmlu"
    read_logs([logs], tmp_path / "panel", keep_text=keep_text, workers=1)
    if not keep_text:
        with pytest.raises(DataError, match="--keep-text"):
            read(tmp_path / "panel")
        return
    found = read(tmp_path / "panel")
    assert found.items
    assert all(item.text for item in found.items)


def test_lm_eval_is_asked_for_by_name_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lm_eval", None)
    monkeypatch.setitem(sys.modules, "lm_eval.tasks", None)
    with pytest.raises(UsageError, match="pip install lm-eval"):
        read("lm-eval:arc_easy")


def test_tasks_of_lm_eval(monkeypatch: pytest.MonkeyPatch) -> None:
    """Against the library's interface; the library itself is several hundred MB."""

    def task(doc_to_choice: Any) -> SimpleNamespace:
        return SimpleNamespace(
            eval_docs=[{"q": "one"}, {"q": "two: x or y?"}],
            config=SimpleNamespace(doc_to_choice=doc_to_choice),
            doc_to_text=lambda document: document["q"],
            doc_to_choice=lambda document: ["x", "y"],
        )

    module: Any = ModuleType("lm_eval.tasks")
    module.TaskManager = lambda: SimpleNamespace(all_tasks=["group", "a", "b"])
    module.get_task_dict = lambda names, manager: {"group": {"a": task("choices"), "b": task(None)}}
    monkeypatch.setitem(sys.modules, "lm_eval", ModuleType("lm_eval"))
    monkeypatch.setitem(sys.modules, "lm_eval.tasks", module)
    found = read("lm-eval:group")
    assert [(item.task, item.doc_id, item.text) for item in found.items] == [
        ("a", "0", "one\nA. x\nB. y"),
        ("a", "1", "two: x or y?"),  # holds its choices already
        ("b", "0", "one"),
        ("b", "1", "two: x or y?"),
    ]
    with pytest.raises(UsageError, match="no task nonsense"):
        read("lm-eval:group,nonsense")
