"""A judge's loadings: every line that cannot be used is named, and only such lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from tables import JUDGE, edit, faults, read, set_field, write_rows, write_tables


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_tables(tmp_path / "source")


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"lm_eval_task": "alpha", "doc', "is not JSON"),
        ("[1, 2]", "must be a JSON object {...}, got [1, 2]"),
        ("7", "must be a JSON object {...}, got 7"),
        ("NaN", "must be a JSON object {...}, got nan"),
        ("null", "must be a JSON object {...}, got None"),
        ("[" * 100_000, "deep"),
        ("9" * 5000, "is not JSON that can be read"),
        ("\udcff", "byte 0xff is not UTF-8 text"),
    ],
)
def test_judge_line_that_is_no_object(folder: Path, line: str, reason: str) -> None:
    path = folder / JUDGE
    lines = path.read_text().splitlines()
    lines[2] = line
    path.write_bytes("\n".join(lines).encode("utf-8", "surrogateescape"))
    (fault,) = faults(folder)
    assert (fault.file, fault.line) == (JUDGE, 3)
    assert reason in fault.reason


@pytest.mark.parametrize(
    ("column", "value", "reason"),
    [
        ("lm_eval_task", None, "must be the task's name"),
        ("task", 3, "must be the task's name"),
        ("lm_eval_task", "\ud800", "lone surrogate"),
        ("doc_id", float("nan"), "must be a whole number or text, got nan"),
        ("doc_id", True, "must be a whole number or text"),
        ("doc_id", " ", "must be a whole number or text"),
        ("doc_id", 10**30, "is beyond 64 bits"),
        ("perspective", "autonomy", "must be one of automation, augmentation, both, got 'autonomy'"),
        ("perspective", [], "must be one of"),
        ("ranked_gwa_ids", ["filing", "flying"], "`flying` is no activity of the table of values"),
        ("ranked_gwa_ids", ["filing", "filing"], "an activity is ranked twice"),
        ("ranked_gwa_ids", "filing", "must be a list of activity ids"),
        ("ranked_gwa_ids", [1], "must be a list of activity ids"),
    ],
)
def test_judge_field(folder: Path, column: str, value: object, reason: str) -> None:
    set_field(folder / JUDGE, 5, **{column: value})
    (fault,) = faults(folder)
    assert (fault.file, fault.line, fault.column) == (JUDGE, 5, column)
    assert reason in fault.reason


def test_judge_value_nested_as_deep_as_json_allows(folder: Path) -> None:
    set_field(folder / JUDGE, 5, ranked_gwa_ids="HERE")
    edit(folder / JUDGE, b'"HERE"', b"[" * 900 + b"]" * 900)
    (fault,) = faults(folder)
    assert fault.line == 5


def test_item_judged_twice(folder: Path) -> None:
    path = folder / JUDGE
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines, lines[1]]))
    (fault,) = faults(folder)
    assert (fault.line, fault.reason) == (37, "(alpha, 0, augmentation) was already judged on line 2; keep one")


def test_rows_that_the_judge_marked_as_failed_become_a_note(folder: Path) -> None:
    set_field(folder / JUDGE, 1, ok=False, ranked_gwa_ids=None)
    assert read(folder).notes == (f"{JUDGE}: 1 rows are marked as failed by the judge and are not used.",)


def test_another_judge(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "judge_loadings_human.jsonl"
    other.write_bytes((folder / JUDGE).read_bytes())
    assert sorted(read(folder, judges=[other]).loadings) == ["default", "human"]
    unnamed = tmp_path / "elsewhere" / JUDGE
    unnamed.parent.mkdir()
    unnamed.write_bytes(other.read_bytes())
    assert sorted(read(folder, judges=[unnamed]).loadings) == ["default", "elsewhere"]
    assert "no such file" in faults(folder, judges=[tmp_path / "none.jsonl"])[0].reason
    assert "already read" in faults(folder, judges=[folder / JUDGE])[0].reason


def test_judge_without_activities_is_not_passed_over(folder: Path) -> None:
    other = (folder / JUDGE).replace(folder.parent / "judge_loadings_human.jsonl")
    (folder / "gwa_welfare_scores.csv").unlink()
    write_rows(folder / "welfare.csv", [["task", "doc_id", "w_auto", "w_aug"], ["alpha", 0, 3.0, 4.0]])
    read(folder)
    assert "a judge's loadings file needs it" in faults(folder, judges=[other])[0].reason
    assert "--activities: benchwright activities RAW" in faults(folder, judges=[other])[0].reason
