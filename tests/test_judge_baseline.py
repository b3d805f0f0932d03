"""The offline baseline: what it is, what it is not, and how far it is from the published judge."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from benchwright.errors import DataError, UsageError
from benchwright.judge.baseline import MODEL, rank_by_words
from benchwright.judge.definitions import read_activities
from benchwright.judge.run import judge_items
from benchwright.logs.item_tables import read_item_tables
from benchwright.logs.judge_loadings import read_loadings

pytestmark = pytest.mark.inspect_library

ACTIVITIES = read_activities()
TEXTS = [
    "A patient is in need of comfort after surgery. How should the nurse look after her?",
    "Which design for a new experiment, story or software is the most unusual?",
    "Convert the units, then compute the sum and check the total.",
]
EXPECTED = ["assisting_caring", "thinking_creatively", "processing_information"]


def test_the_nearest_definition_comes_first() -> None:
    lists = rank_by_words(TEXTS, ACTIVITIES, ranked=5)
    assert [ids[0] for ids in lists] == EXPECTED
    assert all(len(set(ids)) == len(ids) == 5 for ids in lists)


def test_a_list_depends_on_its_item_alone() -> None:
    together = rank_by_words(TEXTS * 3, ACTIVITIES, ranked=3)
    assert together == [rank_by_words([text], ACTIVITIES, ranked=3)[0] for text in TEXTS] * 3


def test_a_text_that_shares_nothing_gets_no_list() -> None:
    assert rank_by_words(["一年有几天？", "1 + 1 = ?"], ACTIVITIES, ranked=5) == [(), ()]


def test_the_folder_says_that_it_is_a_baseline_and_an_audit_reads_it(tmp_path: Path) -> None:
    scores = tmp_path / "scores.csv"
    rows = "".join(f"{activity.id},false,2.0,3.0\n" for activity in ACTIVITIES)
    scores.write_text("concept_id,dropped,p_auto_15,p_aug_15\n" + rows)
    frame = pl.DataFrame({"task": "t", "doc_id": [0, 1, 2, 3], "text": [*TEXTS, "1 + 1 = ?"]})
    run = judge_items(frame, model=MODEL, out=tmp_path / "out", activity_scores=scores)
    assert run.baseline
    assert run.variety() == {"automation": 1.0, "augmentation": 1.0}
    assert run.failures["doc_id"].to_list() == [3, 3]
    assert str(run).startswith("baseline baseline/tfidf")
    record = json.loads((tmp_path / "out" / "run.json").read_text())
    assert record["baseline"]
    assert any("is a baseline, not a judge" in note for note in record["notes"])
    lines = (tmp_path / "out" / "judge_loadings.jsonl").read_text().splitlines()
    assert all(json.loads(line)["baseline"] for line in lines)
    tables = read_item_tables(tmp_path / "out", axes=(), without=("improvability", "noise"))
    assert tables.loadings["default"]["doc_id"].to_list() == [0, 0, 1, 1, 2, 2]
    scores.write_text("concept_id,dropped,p_auto_15,p_aug_15\n" + rows[: rows.rindex("\n", 0, -1) + 1])
    with pytest.raises(Exception, match="has no row for establishing_maintaining_relationships"):
        judge_items(frame, model=MODEL, out=tmp_path / "out", activity_scores=scores)
    scores.write_text(
        "activity,value\n" + "".join(f"{activity.id},{1 + n % 5}\n" for n, activity in enumerate(ACTIVITIES))
    )
    judge_items(frame, model=MODEL, out=tmp_path / "out", activity_scores=scores)
    own = read_item_tables(tmp_path / "out", axes=(), without=("improvability", "noise")).activities["share"]
    assert own["auto"].to_list() == own["aug"].to_list() == [1 + n % 5 for n in range(len(ACTIVITIES))]
    scores.write_text("activity,value\nanalyzing_data,9\n")
    with pytest.raises(DataError, match=r"must lie in 1 \.\. 5"):
        judge_items(frame, model=MODEL, out=tmp_path / "out", activity_scores=scores)


def test_without_the_library_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.feature_extraction.text", None)
    with pytest.raises(UsageError, match=r"pip install 'benchwright\[baseline\]'"):
        rank_by_words(TEXTS, ACTIVITIES, ranked=5)


def test_judging_imports_no_library_before_it_is_asked() -> None:
    code = (
        "import sys, benchwright.judge.run; print([m for m in ('sklearn', 'inspect_ai', 'openai') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_on_real_items_lists_vary_and_are_no_judges(shared: Path, tmp_path: Path) -> None:
    """Overlap with the published judge is reported, not wanted: nothing was fitted to its answers.

    Measured on the 140 MMLU items that both have: 1.25 of 5 activities in common under automation, 0.96 under
    augmentation; 0.93 by chance; 99 % of lists distinct.
    """
    published = read_loadings(shared / "data" / "olmes-audit" / "judge_loadings.jsonl")
    texts = pl.read_ndjson(shared / "data" / "items" / "olmo-hf-datasets" / "mmlu_test.jsonl.gz")
    both = texts.join(published.select("task", "doc_id").unique(), on=("task", "doc_id"), maintain_order="left")
    run = judge_items(both, model=MODEL, out=tmp_path / "out")
    assert run.items == 140
    assert min(share for share in run.variety().values() if share is not None) > 0.9
    ours = run.lists.filter("ok")
    joined = ours.join(published, on=("task", "doc_id", "perspective"), suffix="_published")
    common = joined.select(
        "perspective", n=pl.col("activities").list.set_intersection("activities_published").list.len()
    )
    means = dict(common.group_by("perspective").agg(pl.col("n").mean()).iter_rows())
    assert means["automation"] == pytest.approx(1.25, abs=0.05)
    assert means["augmentation"] == pytest.approx(0.96, abs=0.05)
