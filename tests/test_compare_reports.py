"""Two reports, the command, and the folder that it writes."""

from __future__ import annotations

import csv
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import benchwright.cli.compare  # noqa: F401  (registers the commands)
from benchwright.board.compare import compare, write_changes
from benchwright.cli import main
from benchwright.config import load_config
from benchwright.errors import DataError, UsageError
from benchwright.pipeline import audit
from benchwright.report.build import write_report
from benchwright.simulate import simulate_item_tables


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two reports of simulated tables: at the defaults, and at another neutral point."""
    folder = tmp_path_factory.mktemp("reports")
    config = load_config(None)
    for name, choices in (("old", {}), ("new", {"welfare.neutral": 2.5})):
        report = audit(simulate_item_tables(), config=config.replace(choices, source="--set"))
        write_report(report, folder / name, page=False, figures=False)
    return folder


def test_reports_say_what_choice_made_the_difference(reports: Path) -> None:
    found = compare(reports / "old", reports / "new")
    assert found.kind == "report"
    assert found.choices.rows() == [("welfare.neutral", "3.0", "2.5")]
    assert found.files.height == 0
    old, new = (json.loads((reports / name / "summary.json").read_text("utf-8")) for name in ("old", "new"))
    figures = {row["figure"]: row for row in found.figures.iter_rows(named=True)}
    surplus = figures["weights.surplus_optimum"]
    assert (surplus["old"], surplus["new"]) == tuple(one["weights"]["surplus_optimum"] for one in (old, new))
    assert surplus["change"] == pytest.approx(surplus["new"] - surplus["old"])
    assert found.weights is not None
    tables = [pl.read_csv(reports / name / "weights.csv") for name in ("old", "new")]
    column = next(name for name in ("published_weight", "weight") if name in tables[0].columns)
    both = tables[0].join(tables[1], on=["task", "doc_id"])
    assert found.weights.counts["common"] == both.height == tables[0].height
    assert found.weights.counts["sign_flips"] == int((both[column] * both[f"{column}_right"] < 0).sum())
    titles = {(row["side"], row["title"]) for row in found.findings.iter_rows(named=True)}
    for word, mine, other in (("old", old, new), ("new", new, old)):
        only = {one["title"] for one in mine["findings"]} - {one["title"] for one in other["findings"]}
        assert {title for side, title in titles if side == word} >= only
    text = str(found)
    assert "welfare.neutral" in text
    assert "share moved" in text


def test_a_report_and_itself_do_not_differ(reports: Path) -> None:
    found = compare(reports / "old", reports / "old")
    assert found.weights is not None
    assert found.weights.share_moved == 0
    for table in (found.choices, found.figures, found.findings, found.files):
        assert table.height == 0
    assert "no choice differs" in str(found)


def changed_report(reports: Path, target: Path, change: Any) -> Path:
    target.mkdir()
    record = json.loads((reports / "old" / "summary.json").read_text("utf-8"))
    change(record)
    (target / "summary.json").write_text(json.dumps(record), encoding="utf-8")
    (target / "weights.csv").write_bytes((reports / "old" / "weights.csv").read_bytes())
    return target


def test_source_files_that_differ_are_listed(reports: Path, tmp_path: Path) -> None:
    def change(record: dict[str, Any]) -> None:
        record["source"]["files"] = [{"name": "new.csv", "size": 1, "sha256": "0"}]

    other = changed_report(reports, tmp_path / "other", change)
    files = dict(compare(reports / "old", other).files.iter_rows())
    assert files["new.csv"] == "added"
    assert compare(other, other).files.height == 0


@pytest.mark.parametrize("part", ["assumptions", "findings"])
def test_a_summary_that_is_none_is_refused(reports: Path, tmp_path: Path, part: str) -> None:
    other = changed_report(reports, tmp_path / "other", lambda record: record.update({part: [1]}))
    with pytest.raises(DataError, match=f"`{part}` must be a list of records"):
        compare(reports / "old", other)
    (other / "summary.json").write_text("{", encoding="utf-8")
    with pytest.raises(DataError, match="is no JSON"):
        compare(reports / "old", other)


def test_things_of_two_kinds_are_refused(reports: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"is a report and .* is weights"):
        compare(reports / "old", reports / "old" / "weights.csv")
    with pytest.raises(UsageError, match="does not exist"):
        compare(reports / "old", tmp_path / "nothing")
    with pytest.raises(UsageError, match="is no panel"):
        compare(tmp_path, reports / "old")


def test_a_part_that_one_side_lacks_is_said(reports: Path, tmp_path: Path) -> None:
    other = changed_report(reports, tmp_path / "other", lambda _: None)
    (other / "weights.csv").unlink()
    found = compare(reports / "old", other)
    assert found.weights is None
    assert any("has weights" in note for note in found.notes)


def test_the_folder_is_whole_or_not_there(reports: Path, tmp_path: Path) -> None:
    found = compare(reports / "old", reports / "new")
    out = write_changes(found, tmp_path / "deep" / "out")
    assert sorted(path.name for path in out.iterdir()) == ["changes.json", "weights_changes.csv"]
    record = json.loads((out / "changes.json").read_text("utf-8"))
    assert record == found.to_dict()
    assert found.weights is not None
    assert pl.read_csv(out / "weights_changes.csv").height == found.weights.frame.height
    with pytest.raises(UsageError, match="already holds a comparison"):
        write_changes(found, out)
    broken = replace(found, weights=replace(found.weights, frame=pl.DataFrame({"a": [[1]]})))  # a list is no CSV cell
    with pytest.raises(Exception, match=r".+"):
        write_changes(broken, tmp_path / "broken")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["deep"]


def test_names_are_inert_in_csv(tmp_path: Path) -> None:
    for name in ("old", "new"):
        (tmp_path / f"{name}.csv").write_text("model,score\n=HYPERLINK(1),0.5\ny,0.4\n", encoding="utf-8")
    out = write_changes(compare(tmp_path / "old.csv", tmp_path / "new.csv"), tmp_path / "out")
    with (out / "board_changes.csv").open(encoding="utf-8", newline="") as file:
        assert [row["model"] for row in csv.DictReader(file)] == ["'=HYPERLINK(1)", "y"]


def run(monkeypatch: pytest.MonkeyPatch, *words: object) -> int:
    monkeypatch.setattr(sys, "argv", ["benchwright", *(str(word) for word in words)])
    with pytest.raises(SystemExit) as left:
        main()
    return int(left.value.code or 0)


def test_the_command_prints_and_writes(
    reports: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    pair = (reports / "old", reports / "new")
    assert run(monkeypatch, "compare", *pair, "-o", tmp_path / "out") == 0  # a difference is a result
    printed = capfd.readouterr()
    assert "share moved" in printed.out
    assert "wrote" in printed.err
    assert run(monkeypatch, "compare", *pair, "--json") == 0
    assert json.loads(capfd.readouterr().out) == json.loads((tmp_path / "out" / "changes.json").read_text("utf-8"))
    assert run(monkeypatch, "compare", *pair, "-o", tmp_path / "out") == 2
    assert run(monkeypatch, "compare", reports / "old", tmp_path) == 2


def test_the_command_shows_other_rules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    scores, weights = tmp_path / "scores.csv", tmp_path / "weights.csv"
    scores.write_text("model,t1,t2,t3\nA,0.9,0.2,0.3\nB,0.5,0.6,0.2\nC,0.1,0.7,\n", encoding="utf-8")
    assert run(monkeypatch, "aggregate", scores, "--rule", "borda_all", "--missing", "renormalise", "--json") == 0
    record = json.loads(capfd.readouterr().out)
    assert {row["model"]: row["borda_all"] for row in record["models"]} == {"A": 4.0, "B": 3.0, "C": 2.0}
    weights.write_text("task,weight\nt1,1\nt2,8\nt3,1\n", encoding="utf-8")
    assert run(monkeypatch, "aggregate", scores, "--weights", weights, "--rule", "mean_rank", "--missing", "zero") == 0
    assert "mean rank: C leads" in capfd.readouterr().out
    assert run(monkeypatch, "aggregate", scores, "--rule", "nonsense") == 2
    assert run(monkeypatch, "aggregate", scores, "--unit", "nonsense") == 2
