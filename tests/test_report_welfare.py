"""What a report says welfare rests on: other choices, judges, raters, values drawn again, the offline baseline."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from benchwright import audit
from benchwright.auditing.activity_alternatives import activity_alternatives
from benchwright.config import Config
from benchwright.errors import DataError
from benchwright.judge.activity_folder import write_activities
from benchwright.judge.activity_scores import activity_scores
from benchwright.mechanism.item_weights import IN_FORCE
from benchwright.report import judges as judging
from benchwright.report.build import write_report
from benchwright.report.charts_welfare import agreement_chart
from benchwright.report.contents import AuditReport
from benchwright.report.welfare_changes import SCHEMA
from benchwright.report.welfare_evidence import WelfareEvidence
from tables import ACTIVITIES, JUDGE, write_rows, write_tables
from workbank_files import write_raw

FEW = Config().replace({"resampling.replicates": 100, "published.draws": 39}, source="test")
RANKED = ["getting_information", "analyzing_data"]


def evidence_of(report: AuditReport) -> WelfareEvidence:
    assert report.evidence is not None
    return report.evidence


def row_of(report: AuditReport, choice: str) -> dict[str, Any]:
    return evidence_of(report).changes.filter(choice=choice).row(0, named=True)


def lines_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / JUDGE).read_text().splitlines()]


def write_judge(path: Path, lines: list[dict[str, Any]], **more: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line | more) + "\n" for line in lines))
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Tables whose values are shares of counted tasks."""
    made = write_tables(tmp_path / "tables")
    rows: list[list[object]] = [
        ["concept_id", "gwa", "n_tasks_wb", "p_auto", "p_aug", "dropped", "p_auto_15", "p_aug_15"]
    ]
    for name, label, n, dropped, auto, aug in ACTIVITIES:
        shares = ["", ""] if dropped == "True" else [round((one - 1) / 5, 4) for one in (auto, aug)]  # type: ignore[operator]
        rows.append([name, label, n, *shares, dropped, auto, aug])
    write_rows(made / "gwa_welfare_scores.csv", rows)
    return made


@pytest.fixture
def other(folder: Path, tmp_path: Path) -> Path:
    """Loadings of another judge: each list begins elsewhere."""
    names = [row[0] for row in ACTIVITIES]
    lines = lines_of(folder)
    for line in lines:
        line["ranked_gwa_ids"] = [names[(names.index(one) + 1) % 5] for one in line["ranked_gwa_ids"]]
    return write_judge(tmp_path / "b" / "judge_loadings_b.jsonl", lines)


def test_a_row_is_what_an_audit_with_that_choice_gives(folder: Path, other: Path) -> None:
    report = audit(folder, config=FEW, judges=[other])
    assert report.audit.welfare is not None
    assert report.weights is not None
    here, way = report.audit.welfare.items, report.weights.schemes["uniform"].alignment
    ways = {
        "all ranks weigh the same": audit(folder, config=FEW.replace({"welfare.rank_weights": "uniform"}, source="t")),
        "judge b instead": audit(folder, config=FEW, loadings=[other]),
    }
    for choice, there in ways.items():
        assert there.audit.welfare is not None
        assert there.weights is not None
        both = here.join(there.audit.welfare.items, on=["task", "doc_id"], suffix="_there")
        row = row_of(report, choice)
        assert row["n_items"] == both.drop_nulls(["quadrant", "quadrant_there"]).height
        assert row["quadrant_moved"] == both.select((pl.col("quadrant") != pl.col("quadrant_there")).mean()).item()
        turns = there.weights.schemes["uniform"].alignment != way
        assert row["verdict_changes"] == float(turns), choice
    robust = report.audit.welfare.robustness.filter(variant="judge b, k=5, recip").row(0, named=True)
    assert row["spearman_auto"] == pytest.approx(robust["spearman_auto"])
    assert row["spearman_aug"] == pytest.approx(robust["spearman_aug"])


def test_rows_are_sorted_by_effect(folder: Path, other: Path) -> None:
    changes = evidence_of(audit(folder, config=FEW, judges=[other])).changes
    assert changes.schema == pl.Schema(SCHEMA)
    least = changes.select(pl.min_horizontal("spearman_auto", "spearman_aug")).to_series().drop_nulls()
    assert least.to_list() == sorted(least)
    assert changes["choice"].is_unique().all()


def test_the_neutral_point_moves_the_verdict_alone(folder: Path) -> None:
    report = audit(folder, config=FEW)
    row = row_of(report, "another neutral point, from 1 to 5")
    assert (row["spearman_auto"], row["quadrant_moved"]) == (1.0, 0.0)
    assert report.weights is not None
    point = report.weights.break_even[IN_FORCE].point
    assert row["verdict_changes"] == float(1 <= point <= 5)
    assert f"{point:.2f}" in row["verdict"] or row["verdict_changes"] == 0


def test_draws_of_counted_tasks_say_how_often_the_verdict_changes(folder: Path) -> None:
    choice = "tasks behind the values drawn again"
    rows = [row_of(audit(folder, config=FEW), choice) for _ in range(2)]
    assert rows[0] == rows[1]
    assert 0 <= rows[0]["verdict_changes"] <= 1
    assert 0 < rows[0]["spearman_auto"] < 1
    certain = pl.read_csv(folder / "gwa_welfare_scores.csv").with_columns(n_tasks_wb=10**8)
    certain.write_csv(folder / "gwa_welfare_scores.csv")
    row = row_of(audit(folder, config=FEW), choice)
    assert row["quadrant_moved"] < rows[0]["quadrant_moved"]
    assert (row["verdict_changes"], row["verdict"]) == (0.0, "the same in all 100 draws")


def test_several_judges_have_rows_of_their_own_and_are_drawn(folder: Path, other: Path) -> None:
    report = audit(folder, config=FEW, loadings=[folder / JUDGE, other])
    choices = set(evidence_of(report).changes["choice"])
    assert {"judge tables alone", "judge b alone", "judges drawn again"} <= choices
    found = evidence_of(report).agreement
    assert found is not None
    assert set(found.table["first"]) | set(found.table["second"]) == {"tables", "b", "source"} | {"all"}


def test_without_weights_there_is_no_verdict(folder: Path) -> None:
    report = audit(folder, config=FEW, without=["noise"])
    changes = evidence_of(report).changes
    assert changes.height
    assert changes["verdict"].null_count() == changes.height
    assert "plain average" not in next(text for text in str(report).splitlines() if "change the ranking" in text)


def test_without_a_judge_there_is_nothing_to_say(tmp_path: Path) -> None:
    folder = write_tables(tmp_path / "tables")
    (folder / JUDGE).unlink()
    write_rows(folder / "welfare.csv", [["task", "doc_id", "value"], ["alpha", 0, 4.0], ["beta", 1, 2.0]])
    assert audit(folder, config=FEW).evidence is None


@pytest.mark.slow
def test_the_baseline_is_named_on_the_page(folder: Path, tmp_path: Path) -> None:
    made = write_judge(tmp_path / "base" / JUDGE, lines_of(folder), model="baseline/tfidf", baseline=True)
    report = audit(folder, config=FEW, loadings=[made])
    assert evidence_of(report).baseline
    assert str(report).startswith("- The lists of activities come from no model: The lists of base were made by")
    page = write_report(report, tmp_path / "out", figures=False) / "report.html"
    text = page.read_text(encoding="utf-8")
    assert "<strong>Baseline, no judge.</strong> The lists of base were made by the offline baseline, not by a" in text
    assert "Judge base: made by the offline baseline, not by a model (baseline/tfidf)." in text
    unnamed = evidence_of(audit(folder, config=FEW, judges=[made])).judges
    assert [(judge.name, judge.baseline) for judge in unnamed] == [("default", False), ("base", True)]
    compared = audit(folder, config=FEW, judges=[made.rename(made.with_name("judge_loadings_base.jsonl"))])
    assert not evidence_of(compared).baseline
    assert [judge.baseline for judge in evidence_of(compared).judges] == [False, True]
    said = next(text for text in str(compared).splitlines() if text.startswith("- How far judges agree"))
    assert said.endswith("The lists of base were made by the offline baseline, not by a model.")


def test_a_run_beside_the_lists_says_what_it_used(folder: Path, other: Path) -> None:
    lines = [json.loads(line) for line in other.read_text().splitlines()]
    write_judge(other, lines, model="maker/judge<b>")
    usage = {"answers": 36, "input_tokens": 9000, "output_tokens": 700, "usd": 0.125}
    run = {"model": "maker/judge<b>", "prompt_sha256": "ab12", "usage": usage}
    (other.parent / "run.json").write_text(json.dumps(run))
    judge = next(one for one in evidence_of(audit(folder, config=FEW, judges=[other])).judges if one.name == "b")
    assert str(judge) == (
        "Judge b: made by maker/judge<b>; 36 answers, 9,000 tokens in, 700 out, $0.12; prompt sha256 ab12."
    )
    assert judge.distinct == {"automation": 5 / 18, "augmentation": 5 / 18}
    for text in (json.dumps(run | {"model": "another"}), "[1, 2]", "{", json.dumps(run | {"usage": 3})):
        (other.parent / "run.json").write_text(text)
        judge = next(one for one in evidence_of(audit(folder, config=FEW, judges=[other])).judges if one.name == "b")
        assert str(judge) == "Judge b: made by maker/judge<b>."


def test_judges_of_different_items_have_no_agreement(folder: Path, tmp_path: Path) -> None:
    lines = [line | {"doc_id": line["doc_id"] + 100} for line in lines_of(folder)]
    report = audit(folder, config=FEW, judges=[write_judge(tmp_path / "judge_loadings_c.jsonl", lines)])
    assert evidence_of(report).agreement is None
    assert any(note.startswith("Agreement of judges is not known: no item is judged by two") for note in report.notes)


def test_many_items_are_sampled_and_that_is_said(folder: Path, other: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judging, "MOST_ITEMS", 7)
    report = audit(folder, config=FEW, judges=[other])
    found = evidence_of(report).agreement
    assert found is not None
    assert found.table["n_items"].to_list() == [7, 7]
    assert "Agreement of judges: 7 of 18 items, drawn at random." in report.notes
    # so few items have no interval, and no bar is drawn for it
    assert found.table["rbo_lo"].null_count() == 2
    chart = agreement_chart(evidence_of(report), "rbo")
    assert chart is not None
    bars = next(layer for layer in chart.to_dict()["layer"] if layer["mark"]["type"] == "rule")
    assert chart.to_dict()["datasets"][bars["data"]["name"]] == []


def write_raters(folder: Path, *, activities: tuple[str, ...] = ("filing", "advising", "checking")) -> None:
    raters = folder / "heldout_raters"
    raters.mkdir()
    families = {f"m{item}": "math" for item in range(4)} | {f"g{item}": "general" for item in range(4)}
    (raters / "family_map.json").write_text(json.dumps(families))
    rng = np.random.default_rng(0)
    for rater in ("ann", "bob"):
        rows = [
            {"task_id": item, "perspective": framing, "ranked_gwa_ids": list(rng.permutation(activities)[:2])}
            for item in families
            for framing in ("automation", "augmentation")
        ]
        text = "".join(json.dumps(row | {"rater": rater}) + "\n" for row in rows)
        (raters / f"{rater}.jsonl").write_text(text)


def test_the_sources_raters_are_compared(folder: Path, tmp_path: Path) -> None:
    write_raters(folder)
    report = audit(folder, config=FEW)
    raters = evidence_of(report).raters
    assert raters is not None
    assert raters.agreement is not None
    assert raters.table["rater"].to_list() == ["ann", "bob"]
    assert raters.first == "math"
    assert "gap_auto" in raters.table.columns
    out = write_report(report, tmp_path / "out", page=False)
    assert {"rater-agreement.csv", "raters.csv", "welfare-changes.csv", "judges.csv"} <= {
        path.name for path in (out / "tables").iterdir()
    }
    assert {"judge-overlap.svg", "judge-alpha.svg", "welfare-changes.svg"} <= {
        path.name for path in (out / "figures").iterdir()
    }
    record = json.loads((out / "summary.json").read_text())
    named = {file["name"] for file in record["source"]["files"]}
    assert {"ann.jsonl", "bob.jsonl", "family_map.json"} <= named
    assert record["audit"]["welfare_rests_on"]["raters"]["first"] == "math"


def test_raters_of_other_activities_are_left_out_and_named(folder: Path) -> None:
    write_raters(folder, activities=("singing", "dancing"))
    report = audit(folder, config=FEW)
    assert evidence_of(report).raters is None
    assert any("heldout_raters of the source name other activities" in note for note in report.notes)


def test_values_drawn_again_have_the_intervals_of_their_folder(folder: Path, tmp_path: Path) -> None:
    raw = write_raw(tmp_path / "raw")
    scores = activity_scores(raw, rng=np.random.default_rng(0), replicates=199)
    table = activity_alternatives(raw)
    place = write_activities([scores], tmp_path / "activities", alternatives=table)
    lines = [line | {"ranked_gwa_ids": RANKED[:: 1 - 2 * (n % 2)]} for n, line in enumerate(lines_of(folder))]
    made = write_judge(tmp_path / "own" / JUDGE, lines)
    report = audit(folder, config=FEW, activities=place, loadings=[made])
    found = evidence_of(report)
    assert found.intervals is not None
    assert report.audit.welfare is not None
    names = ["auto_lo", "auto_hi", "aug_lo", "aug_hi"]
    both = found.intervals.join(scores.table, on="activity", suffix="_own")
    for name in names:
        assert np.allclose(both[name], both[f"{name}_own"], atol=5e-3), (
            name
        )  # shares stand in the table with four digits
    assert {"workers and tasks behind the values drawn again", "ratings of experts only"} <= set(
        found.changes["choice"]
    )
    rows = found.changes.filter(basis="activities folder")
    assert rows["n_items"].count() == 0
    assert rows["activities_auto"].count() > 0
    assert any("with --loadings, `benchwright activities` follows them into items" in note for note in report.notes)
    csv = write_report(report, tmp_path / "out", page=False) / "tables" / "activities.csv"
    assert set(names) <= set(pl.read_csv(csv).columns)


def test_alternatives_that_are_no_table_are_refused(folder: Path, tmp_path: Path) -> None:
    scores = activity_scores(write_raw(tmp_path / "raw"))
    place = write_activities([scores], tmp_path / "activities")
    made = write_judge(tmp_path / "own" / JUDGE, [line | {"ranked_gwa_ids": RANKED} for line in lines_of(folder)])
    for text, what in (("alternative,framing\na,auto\n", "column `n_kept`: missing"), ("", "no table of alternatives")):
        (place / "alternatives.csv").write_text(text)
        with pytest.raises(DataError, match=f"(?s)alternatives.csv.*{what}"):
            audit(folder, config=FEW, activities=place, loadings=[made])


def test_the_published_audit_keeps_its_figures(olmes: AuditReport) -> None:
    found = evidence_of(olmes)
    assert [str(judge) for judge in found.judges] == ["Judge default: made by claude."]
    assert found.raters is not None
    assert found.raters.table["n_items"].to_list() == [28, 28, 28]
    assert olmes.audit.welfare is not None
    robust = {row["variant"]: row for row in olmes.audit.welfare.robustness.iter_rows(named=True)}
    for choice, variant in (
        ("the first 3 ranks count", "k=3, recip"),
        ("all ranks weigh the same", "k=5, uniform, exact ties"),
        ("values are mean ratings", "GWA mean-agg, k=5, recip"),
    ):
        row = row_of(olmes, choice)
        assert row["spearman_auto"] == pytest.approx(robust[variant]["spearman_auto"], abs=1e-9)
        assert row["spearman_aug"] == pytest.approx(robust[variant]["spearman_aug"], abs=1e-9)
