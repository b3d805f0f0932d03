"""Activity values from files to files: levels, what is left out, faults, the command and what takes its folder."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from benchwright import audit, cli
from benchwright.auditing.activity_alternatives import activity_alternatives
from benchwright.auditing.welfare import item_welfare
from benchwright.auditing.welfare_draws import welfare_draws
from benchwright.choices import WelfareChoices
from benchwright.config import Config
from benchwright.errors import DataError, UsageError
from benchwright.judge.activity_folder import write_activities
from benchwright.judge.activity_scores import ActivityRule, activity_scores
from benchwright.judge.workbank import read_workbank
from benchwright.logs.item_tables import read_item_tables
from benchwright.logs.welfare_tables import read_activities
from tables import AXES, write_rows, write_tables
from workbank_files import ANALYSE, DETAILED, GET, RATINGS, REFERENCE, STATEMENTS, Rows, write_raw

FEW = Config().replace({"resampling.replicates": 100, "published.draws": 39}, source="test")


def run(monkeypatch: pytest.MonkeyPatch, *words: object) -> int:
    monkeypatch.setattr(sys, "argv", ["benchwright", *map(str, words)])
    with pytest.raises(SystemExit) as left:
        cli.main()
    code = left.value.code
    return 0 if code is None else int(code)


def test_what_is_left_out_is_counted(tmp_path: Path) -> None:
    def change(files: dict[str, Rows]) -> None:
        files[RATINGS][1][3] = ""  # a rating of automation is missing
        files[RATINGS].append([99, "w0", "Expert", 3, 3])  # of a task without a statement
        files[STATEMENTS].append(["11-0", 50, 3.0, 10, "[]", "[]"])  # never rated

    found = activity_scores(write_raw(tmp_path, change))
    notes = " ".join(found.notes)
    assert "Left out: 1 rating of tasks without a statement" in notes
    assert "Left out of `Automation Desire Rating`: 1 empty cell" in notes
    assert "14 tasks are rated by 4 workers in 56 ratings; 1 task without ratings" in notes
    assert "1 rated task list no activity of level gwa" in notes
    assert "1 rated task count for activities outside the 27 cognitive ones" in notes
    assert found.table.filter(~pl.col("dropped"))["activity"].to_list() == ["getting_information", "analyzing_data"]


def set_cell(file: str, row: int, column: int, value: object) -> Callable[[dict[str, Rows]], None]:
    def change(files: dict[str, Rows]) -> None:
        files[file][row][column] = value

    return change


@pytest.mark.parametrize(
    ("change", "where"),
    [
        (set_cell(RATINGS, 3, 3, 6), r"domain_worker_desires.csv, line 4, column `Automation Desire Rating`.*1 \.\. 5"),
        (set_cell(RATINGS, 3, 4, "often"), r"line 4, column `Human Agency Scale Rating`.*finite number, got `often`"),
        (set_cell(RATINGS, 2, 1, "w0"), r"\(0, w0\) appears 2 times, lines 2, 3"),
        (set_cell(STATEMENTS, 2, 5, "__import__('os').getcwd()"), r"statement.*line 3.*a list of texts"),
        (set_cell(STATEMENTS, 2, 5, "['a'"), r"line 3, column `Skill ID .*a list of texts"),
        (set_cell(STATEMENTS, 2, 5, "[1]"), r"line 3, column `Skill ID .*a list of texts"),
        (set_cell(STATEMENTS, 2, 5, "['4.A.1.a.1']"), r"task 1 has 1 ids of activities and 2 names"),
        (lambda files: files.pop(RATINGS), r"domain_worker_desires.csv: no such file below the folder"),
    ],
)
def test_faults_name_file_line_and_column(
    tmp_path: Path, change: Callable[[dict[str, Rows]], object], where: str
) -> None:
    with pytest.raises(DataError, match=f"(?s){where}"):
        activity_scores(write_raw(tmp_path, change))


def test_a_file_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    folder = write_raw(tmp_path)
    write_rows(folder / RATINGS, [["Task ID"]])
    with pytest.raises(DataError, match=r"there is more than one: domain_worker_desires.csv, ratings"):
        read_workbank(folder)


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"threshold": 6.0}, "`threshold` must lie in 1 .. 5"),
        ({"least_tasks": 0}, "`least_tasks` must be at least 1"),
        ({"count": "second"}, "`count` must be one of first, all"),
        ({"level": "task"}, "`level` must be one of gwa, iwa, dwa"),
        ({"workers": {"Expert": 1.0}}, "`workers` must weigh each expertise .* lacks Average, Novice"),
        ({"workers": {"Expert": 0.0}}, "`workers` must give weights of at least 0"),
        ({"rng": np.random.default_rng(0), "replicates": 10}, "`replicates` must be enough"),
    ],
)
def test_choices_out_of_range_are_refused(tmp_path: Path, choice: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        activity_scores(write_raw(tmp_path), **choice)  # type: ignore[arg-type]


def test_no_activity_with_enough_tasks_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no activity has 50 rated tasks"):
        activity_scores(write_raw(tmp_path), least_tasks=50)


def test_the_same_share_everywhere_is_no_scale(tmp_path: Path) -> None:
    found = activity_scores(write_raw(tmp_path), threshold=1.0)
    assert found.table["auto"].null_count() == 27
    assert any("same share of tasks, so auto has no value" in note for note in found.notes)
    with pytest.raises(DataError, match="same share of tasks, so auto has no value"):
        write_activities([found], tmp_path / "activities")
    assert not (tmp_path / "activities").exists()


@pytest.mark.parametrize(("level", "parts"), [("iwa", 2), ("dwa", 3)])
def test_finer_levels_group_by_their_part_of_the_id(tmp_path: Path, level: str, parts: int) -> None:
    found = activity_scores(write_raw(tmp_path), level=level, count="all", least_tasks=1)  # type: ignore[arg-type]
    ids = found.table["activity"].to_list()
    assert ids == sorted(ids)
    assert {one.rsplit(".", parts - 1)[0] for one in ids} <= {GET, ANALYSE}
    assert found.table["label"].str.len_chars().min() > 0  # type: ignore[operator]
    # of 12 tasks 6 list both activities, half of them with the first part of each
    assert found.table.filter(pl.col("element").str.starts_with(GET))["n_tasks"].sum() == 6
    assert found.table.filter(pl.col("element").str.starts_with(ANALYSE))["n_tasks"].sum() == 12


def test_alternatives_follow_a_change_into_items(shared: Path) -> None:
    raw, published = shared / "data" / "workbank", read_item_tables(shared / "data" / "olmes-audit", axes=AXES)
    table = activity_alternatives(raw, loadings=published.loadings["default"])
    assert table["why"].null_count() == table.height
    rows = {(row["alternative"], row["framing"]): row for row in table.iter_rows(named=True)}
    first = activity_scores(raw).table.filter(~pl.col("dropped")).select("activity", "auto")
    every = activity_scores(raw, count="all").table.select("activity", "auto")
    change = first.join(every, on="activity").select(pl.col("auto_right") - pl.col("auto")).to_series()
    found = rows["every listed activity", "auto"]
    assert found["largest_change"] == pytest.approx(change[change.abs().arg_max()])
    both = [
        item_welfare(published.loadings["default"], activity_scores(raw, count=count).table)  # type: ignore[arg-type]
        for count in ("first", "all")
    ]
    assert found["item_largest_change"] == pytest.approx((both[1]["w_auto"] - both[0]["w_auto"]).abs().max())
    assert rows["level iwa", "auto"]["n_compared"] == 59
    assert rows["level iwa", "auto"]["item_spearman"] is None
    assert ("first listed activity", "auto") not in rows


def test_an_alternative_that_the_data_do_not_allow_says_why(tmp_path: Path) -> None:
    folder = write_raw(tmp_path, lambda files: (files.pop(DETAILED), files.pop(REFERENCE)))
    table = activity_alternatives(folder, ActivityRule(least_tasks=2))
    why = dict(table.drop_nulls("why").select("alternative", "why").iter_rows())
    assert "fault(s) in the raw ratings" in why["level iwa"]
    assert table.filter(alternative="level iwa")["spearman"].to_list() == [None]


def test_the_command_writes_a_folder_that_audit_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    raw, out = write_raw(tmp_path / "raw"), tmp_path / "activities"
    words = ("activities", raw, "-o", out, "--least-tasks", 2, "--draws", 199)
    assert run(monkeypatch, *words, "--workers", "Expert=1,Average=1,Novice=1", "--json") == 0
    printed = json.loads(capfd.readouterr().out)
    assert printed["rule"]["workers"] == {"Expert": 1.0, "Average": 1.0, "Novice": 1.0}
    assert sorted(path.name for path in out.iterdir()) == [
        "activities.csv",
        "activity_draws.parquet",
        "alternatives.csv",
        "gwa_welfare_scores.csv",
        "gwa_welfare_scores_mean.csv",
        "summary.json",
    ]
    values = read_activities(out)
    kept = values.filter(~pl.col("dropped"))["activity"].to_list()
    assert kept == ["getting_information", "analyzing_data"]
    assert run(monkeypatch, *words) == 2  # it is there
    assert "already holds a set of activity values" in capfd.readouterr().err
    assert run(monkeypatch, *words, "--overwrite") == 0
    assert "getting_information: auto" in capfd.readouterr().out

    tables = write_tables(tmp_path / "tables")
    lines = [json.loads(line) for line in (tables / "judge_loadings.jsonl").read_text().splitlines()]
    for number, line in enumerate(lines):
        line["ranked_gwa_ids"] = [kept, kept[::-1], kept[:1], ["scheduling_work", kept[1]]][number % 4]
    loadings = tmp_path / "judge_loadings_mine.jsonl"
    loadings.write_text("".join(json.dumps(line) + "\n" for line in lines))
    report = audit(tables, config=FEW, activities=out, loadings=[loadings], without=[])
    assert report.audit.welfare is not None
    errors = report.audit.welfare.items.drop_nulls("w_auto")["w_auto_se"]
    assert errors.null_count() == 0
    assert errors.min() > 0  # type: ignore[operator]
    assert report.weights is not None
    assert any("judge_loadings.jsonl of the source is not compared" in note for note in report.source.notes)
    assert any("values of activities from 199 draws of workers and tasks" in note for note in report.weights.notes)


def test_a_folder_without_values_and_an_option_that_says_nothing_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(UsageError, match=r"no gwa_welfare_scores.csv there"):
        audit(write_tables(tmp_path / "tables"), activities=tmp_path)
    assert run(monkeypatch, "activities", tmp_path, "--workers", "Expert") == 2
    assert "not NAME=NUMBER" in capfd.readouterr().err
    assert run(monkeypatch, "activities", tmp_path, "--workers", "Expert=1,Expert=2") == 2
    assert "weighs Expert twice" in capfd.readouterr().err
    assert run(monkeypatch, "activities", tmp_path, "--seed", "-1") == 2
    assert "--seed" in capfd.readouterr().err
    assert run(monkeypatch, "activities", tmp_path / "none") == 2
    assert "is no folder" in capfd.readouterr().err
    with pytest.raises(UsageError, match=r"`scores` must hold one by share"):
        write_activities([], tmp_path / "out")


def test_draws_of_other_values_are_not_used(tmp_path: Path) -> None:
    raw = write_raw(tmp_path / "raw")
    scores = activity_scores(raw, least_tasks=2, rng=np.random.default_rng(0), replicates=99)
    out = write_activities([scores], tmp_path / "activities", seed=0)
    draws = pl.read_parquet(out / "activity_draws.parquet")
    draws.with_columns(pl.col("auto") + 0.5).write_parquet(out / "activity_draws.parquet")
    tables = write_tables(tmp_path / "tables")
    text = (tables / "judge_loadings.jsonl").read_text()
    for own, theirs in (
        ("filing", "getting_information"),
        ("advising", "analyzing_data"),
        ("checking", "scheduling_work"),
        ("solving", "thinking_creatively"),
        ("rare", "selling_influencing"),
    ):
        text = text.replace(f'"{own}"', f'"{theirs}"')
    (tables / "judge_loadings.jsonl").write_text(text)
    read = read_item_tables(tables, axes=AXES, activities=out)
    found = welfare_draws(read.loadings["default"].select("task", "doc_id").unique(), read, WelfareChoices())
    assert found == "the draws of activities are not those of the table of values."
