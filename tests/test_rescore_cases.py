"""Public fault reports about leaderboards, and public scores, from the file to the re-scored board."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from benchwright.board.rescore import rescore
from benchwright.board.results import Leaderboard
from benchwright.errors import DataError


@pytest.fixture
def cases(shared: Path) -> Path:
    return shared / "cases"


def column(board: Leaderboard | pl.DataFrame, name: str) -> dict[str, Any]:
    frame = board.frame if isinstance(board, Leaderboard) else board
    return dict(frame.select("model", name).iter_rows())


def near(**expected: float) -> Any:
    return pytest.approx(expected, abs=1e-6)


def test_c12_failed_samples_count_alike_for_all_models(cases: Path) -> None:
    both = rescore(cases / "C12", weights="uniform")
    assert column(both, "score") == {"demo/A": 0.75, "demo/B": 0.875}
    assert column(both, "coverage") == {"demo/A": 0.8, "demo/B": 1.0}
    wrong = rescore(cases / "C12", weights="uniform", errors="wrong")
    assert column(wrong, "score") == {"demo/A": 0.6, "demo/B": 0.7}
    own = rescore(cases / "C12", weights="uniform", missing="renormalise")
    assert column(own, "score") == {"demo/A": 0.75, "demo/B": 0.7}
    assert column(own, "missing_weight") == {"demo/A": 0.2, "demo/B": 0.0}
    assert "2 failed or refused samples: dropped, for all models alike" in own.notes
    assert any("different items" in note for note in own.notes)


def test_c18_a_mean_and_its_own_standard_error(cases: Path) -> None:
    micro = rescore(cases / "C18" / "results.json", weights="uniform").frame.row(0, named=True)
    macro = rescore(cases / "C18" / "results.json", weights="tasks").frame.row(0, named=True)
    assert (micro["score"], micro["standard_error"]) == (pytest.approx(0.8), pytest.approx(0.031334, abs=1e-6))
    assert (macro["score"], macro["standard_error"]) == (pytest.approx(0.65), pytest.approx(0.052223, abs=1e-6))
    assert macro["standard_error"] / micro["standard_error"] > 1.6


def test_c20_clusters(cases: Path, tmp_path: Path) -> None:
    source = cases / "C20" / "scores.csv"
    clustered, naive = (rescore(source, cluster=how).frame.row(0, named=True) for how in ("logs", "item"))
    assert (clustered["score"], clustered["standard_error"]) == (0.5, pytest.approx(0.288675, abs=1e-6))
    assert naive["standard_error"] == pytest.approx(0.114708, abs=1e-6)
    assert any("4 units are few" in note for note in rescore(source).notes)
    names = tmp_path / "clusters.csv"
    ids = [f"{passage}{number}" for passage in "abcd" for number in range(5)]
    names.write_text("task,doc_id,cluster\n" + "".join(f"scores,{one},{one[0]}\n" for one in ids), encoding="utf-8")
    assert rescore(source, cluster=names).frame["standard_error"].item() == pytest.approx(0.288675, abs=1e-6)
    names.write_text("task,doc_id,cluster\n" + "".join(f"scores,{one},all\n" for one in ids), encoding="utf-8")
    with pytest.raises(DataError, match="all 20 items are in one cluster, which leaves no standard error"):
        rescore(source, cluster=names)


def test_c21_chance_is_taken_off_per_subtask(cases: Path, tmp_path: Path) -> None:
    table = pl.read_csv(cases / "C21" / "scores.csv").rename({"subtask": "task", "num_choices": "n_choices"})
    table.select("task", "n_choices").write_csv(tmp_path / "chance.csv")
    scores = cases / "C21" / "scores.csv"
    board = rescore(scores, weights="tasks", tasks=["sub*"], chance=tmp_path / "chance.csv")
    row = board.frame.row(0, named=True)
    assert 100 * row["score"] == pytest.approx(16.666667, abs=1e-6)
    assert 100 * row["score_unclipped"] == pytest.approx(13.333333, abs=1e-6)
    open_ = rescore(scores, weights="tasks", tasks=["sub*"], chance=tmp_path / "chance.csv", clip=False)
    assert 100 * open_.frame["score"].item() == pytest.approx(13.333333, abs=1e-6)
    assert any("below chance, getting better earns nothing" in note for note in board.notes)
    for task, expected in (("sub3", 0.0), ("gen", 12.0), ("gpqa_like", 10.626667), ("sub2", 0.0)):
        alone = rescore(scores, weights="tasks", tasks=[task], chance=tmp_path / "chance.csv").frame
        assert 100 * alone["score"].item() == pytest.approx(expected, abs=1e-6)
    third = rescore(scores, weights="tasks", tasks=["sub3"], chance=tmp_path / "chance.csv", clip=False).frame
    assert third["score"].item() == 0.0  # exactly: no tiny negative


def test_c22_a_model_that_lacks_tasks(cases: Path) -> None:
    source = cases / "C22" / "scores.csv"
    common = rescore(source, weights="tasks")
    assert column(common, "score") == near(full=0.7, partial=0.65)
    assert column(common, "rank") == {"full": 1, "partial": 2}
    assert column(common, "coverage") == {"full": 1.0, "partial": 0.5}
    strict = rescore(source, weights="tasks", missing="refuse")
    assert column(strict, "score") == {"full": pytest.approx(0.525), "partial": None}
    assert column(strict, "rank") == {"full": 1, "partial": None}
    own = rescore(source, weights="tasks", missing="renormalise")
    assert column(own, "score") == near(full=0.525, partial=0.65)
    assert column(own, "rank") == {"full": 1, "partial": None}
    assert any("a score but no rank" in note and "partial" in note for note in own.notes)
    assert column(rescore(source, weights="tasks", missing="zero"), "score") == near(full=0.525, partial=0.325)


def test_c38_flagged_items_are_taken_from_everybody(cases: Path, tmp_path: Path) -> None:
    source, flags = cases / "C38" / "scores.csv", cases / "C38" / "flags.csv"
    board = rescore(source, flags=flags)
    assert column(board, "score") == near(X=0.5, Y=0.666667)
    assert column(board, "rank") == {"X": 2, "Y": 1}
    assert column(board, "score_with_flagged") == near(X=0.7, Y=0.6)
    assert column(board, "rank_with_flagged") == {"X": 1, "Y": 2}
    assert board.with_flagged is not None
    assert column(board.with_flagged, "score") == near(X=0.7, Y=0.6)
    (tmp_path / "flags.csv").write_text("model,item\nX,q0\nX,q77\n", encoding="utf-8")
    with pytest.raises(DataError, match="no item q77 on the board") as caught:
        rescore(source, flags=tmp_path / "flags.csv")
    assert [fault.line for fault in caught.value.faults] == [3]


def test_public_scores_of_61_models(shared: Path) -> None:
    source = shared / "data" / "lm-harmony" / "all_results.json"
    with pytest.raises(DataError, match="1 task does not fit") as caught:
        rescore(source, weights="tasks", setting="direct_eval")
    assert "cola" in str(caught.value)
    board = rescore(source, weights="tasks", setting="direct_eval", scale="minmax")
    assert board.frame.height == 61
    assert board.frame["score"].is_between(0, 1).all()
    assert board.frame["rank"].to_list() == sorted(board.frame["rank"])
    assert (board.frame["rank_lo"] <= board.frame["rank"]).all()
    assert (board.frame["rank"] <= board.frame["rank_hi"]).all()
    assert {"bits_per_byte", "mcc", "score"} == {*(board.values.metrics or {}).values()}
    assert "as stated for tasks" in board.policy["standard errors"]
    assert any("3 of 27 tasks not common to all, left out: arxiv_2025" in note for note in board.notes)
    few = rescore(source, weights="tasks", setting="direct_eval", tasks=["mnli", "qqp"], models=["*gemma*", "!*-it *"])
    assert few.frame["model"].str.contains("gemma").all()
    assert not few.frame["model"].str.contains("-it ").any()


def test_a_public_panel(shared: Path) -> None:
    source = shared / "data" / "logs" / "helm"
    board = rescore(source, models=["!*llama-3.2-1b*"])
    assert board.frame.height == 8
    assert board.numbers["items"] == 120
    assert board.frame["standard_error"].is_between(0.001, 0.05).all()
    with_all = rescore(source)
    assert with_all.numbers["items"] == 10  # what one model has decides
    assert any("llama-3.2-1b-instruct has the fewest, 7.7 %" in note for note in with_all.notes)
