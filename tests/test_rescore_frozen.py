"""Frozen boards that grow, and options and files that a board has settled."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from benchwright.board.folder import read_board, write_board
from benchwright.board.rescore import add_models, rescore
from benchwright.cli import main
from benchwright.errors import DataError, UsageError
from tables import write_rows


def scores(path: Path, models: dict[str, list[float | None]], *, task: str = "t") -> Path:
    rows: list[list[Any]] = [["model", "task", "doc_id", "score"]]
    for model, values in models.items():
        rows += [[model, task, place, value] for place, value in enumerate(values) if value is not None]
    write_rows(path, rows)
    return path


@pytest.fixture
def frozen(tmp_path: Path) -> Path:
    """A board of two models on four items."""
    source = scores(tmp_path / "old.csv", {"a": [1, 0, 1, 0], "b": [1, 1, 1, 0]})
    return write_board(rescore(source), tmp_path / "board")


def test_new_values_must_fit_the_scale(frozen: Path, tmp_path: Path) -> None:
    new = scores(tmp_path / "new.csv", {"c": [95, 90, 80, 70]})
    with pytest.raises(DataError, match=r"within \[0, 1\]") as caught:
        add_models(frozen, new)
    assert [fault.file for fault in caught.value.faults] == ["t"]
    spread = write_board(rescore(tmp_path / "old.csv", scale="minmax"), tmp_path / "spread")
    done = add_models(spread, new)
    assert done.frame.filter("added")["score"].item() > 1
    assert any("the scale (minmax) is frozen" in note for note in done.notes)


def test_a_board_that_grows_twice_keeps_its_policy(frozen: Path, tmp_path: Path) -> None:
    lacking = scores(tmp_path / "c.csv", {"c": [1, 1, None, 1]})
    once = write_board(add_models(frozen, lacking), tmp_path / "once")
    assert read_board(once).rules.missing == "intersect"
    done = add_models(once, scores(tmp_path / "d.csv", {"d": [0, 1, 1, 1]}))
    assert (done.rules.missing, done.policy["missing"], done.numbers["items"]) == ("intersect", "intersect", 4)
    found = dict(done.frame.select("model", "score").iter_rows())
    assert found == {"a": 0.5, "b": 0.75, "c": None, "d": 0.75}
    own = write_board(add_models(frozen, lacking, missing="renormalise"), tmp_path / "own")
    again = add_models(own, tmp_path / "d.csv")  # else the score that c got would vanish
    assert dict(again.frame.select("model", "score").iter_rows())["c"] == 1.0


def test_other_values_of_models_on_the_board_are_told(frozen: Path, tmp_path: Path) -> None:
    new = scores(tmp_path / "new.csv", {"a": [0, 0, 0, 0], "b": [1, 1, 1, 0], "c": [1, 1, 1, 1]})
    notes = add_models(frozen, new).notes
    assert "already on the board, left as it is: a, b" in notes
    assert "the source has other values than the board, which do not count, of a" in notes


@pytest.mark.parametrize("part", ["models", "scale", "rules", "policy", "metrics", "leaderboard.csv"])
def test_what_is_frozen_is_hashed(frozen: Path, tmp_path: Path, part: str) -> None:
    if part == "leaderboard.csv":
        text = (frozen / part).read_text(encoding="utf-8")
        (frozen / part).write_text(text.replace("b,0.75", "b,0.95"), encoding="utf-8")
    else:
        record = json.loads((frozen / "summary.json").read_text(encoding="utf-8"))
        if part == "models":
            record["board"]["models"] = ["b", "a"]
        elif part == "rules":
            record["board"]["rules"]["confidence"] = 0.5
        elif part == "scale":
            record["scale"]["bounds"][0]["high"] = 2.0
        elif part == "policy":
            record["policy"]["errors"] = "wrong"
        else:
            record["metrics"]["t"] = "f1"
        (frozen / "summary.json").write_text(json.dumps(record), encoding="utf-8")
    with pytest.raises(DataError, match="changed"):
        read_board(frozen)


def run(monkeypatch: pytest.MonkeyPatch, *words: object) -> int:
    monkeypatch.setattr(sys, "argv", ["benchwright", *(str(word) for word in words)])
    with pytest.raises(SystemExit) as left:
        main()
    return int(left.value.code or 0)


def test_options_that_a_board_has_settled_are_refused(
    frozen: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    new, out = scores(tmp_path / "new.csv", {"c": [1, 1, 1, 1]}), tmp_path / "grown"
    given = ["--seed", "0", "--scale", "minmax", "--no-clip", "--cluster", "item", "--task", "t", "--partial"]
    assert run(monkeypatch, "rescore", new, "--board", frozen, "-o", out, *given) == 2
    assert "--board has settled --partial, --task, --scale, --no-clip, --cluster, --seed\n" in capfd.readouterr().err
    assert not out.exists()
    assert run(monkeypatch, "rescore", new, "--board", frozen, "-o", out, "--models", "c") == 0


def test_a_leaderboard_is_no_source_but_its_folder_is(frozen: Path) -> None:
    with pytest.raises(UsageError, match="is a leaderboard") as caught:
        rescore(frozen / "leaderboard.csv")
    assert "the folder of the board" in str(caught.value)
    with pytest.raises(UsageError, match="is a leaderboard"):
        rescore([frozen, frozen / "scheme.json"])
    assert dict(rescore(frozen).frame.select("model", "score").iter_rows()) == {"b": 0.75, "a": 0.5}


def test_flags_may_take_a_whole_task(tmp_path: Path) -> None:
    rows: list[list[Any]] = [["model", "task", "doc_id", "score"]]
    rows += [[model, task, i, (i + len(task)) % 2] for model in "ab" for task in ("s", "tt") for i in range(4)]
    write_rows(tmp_path / "s.csv", rows)
    write_rows(tmp_path / "flags.csv", [["task", "doc_id"], *(["tt", i] for i in range(4))])
    write_rows(tmp_path / "w.csv", [["task", "weight"], ["s", 1], ["tt", 3]])
    done = rescore(tmp_path / "s.csv", weights=tmp_path / "w.csv", flags=tmp_path / "flags.csv")
    assert done.scheme.weights["task"].unique().to_list() == ["s"]
    assert "flags take all of tt" in done.notes
    write_rows(tmp_path / "w.csv", [["task", "weight"], ["tt", 3]])
    with pytest.raises(DataError, match="all items with weight are flagged"):
        rescore(tmp_path / "s.csv", weights=tmp_path / "w.csv", flags=tmp_path / "flags.csv")


def test_flags_of_a_board_of_task_scores_name_tasks(tmp_path: Path) -> None:
    write_rows(tmp_path / "s.csv", [["model", "s", "t"], ["a", 0.5, 0.6], ["b", 0.7, 0.1]])
    write_rows(tmp_path / "flags.csv", [["item"], ["s"]])
    with pytest.raises(DataError, match="needs a column task"):
        rescore(tmp_path / "s.csv", flags=tmp_path / "flags.csv")
    write_rows(tmp_path / "flags.csv", [["task"], ["s"]])
    assert rescore(tmp_path / "s.csv", flags=tmp_path / "flags.csv").values.tasks == ("t",)


def test_labels_of_several_tasks_are_told(tmp_path: Path) -> None:
    rows: list[list[Any]] = [["model", "task", "doc_id", "score"]]
    rows += [["a", task, f"{task}{i}", i % 2] for task in "st" for i in range(4)]
    write_rows(tmp_path / "s.csv", rows)
    labels = [[task, f"{task}{i}", f"p{i // 2}"] for task in "st" for i in range(4)]
    write_rows(tmp_path / "clusters.csv", [["task", "doc_id", "cluster"], *labels])
    notes = rescore(tmp_path / "s.csv", cluster=tmp_path / "clusters.csv").notes
    assert any(note.startswith("cluster labels in more than one task, each one cluster: 2;") for note in notes)


def test_policies_of_the_source_are_kept(frozen: Path, tmp_path: Path) -> None:
    policy = rescore(tmp_path / "old.csv", errors="wrong", repeated="mean", pool_versions=True, models=["a"]).policy
    assert {name: policy[name] for name in ("errors", "repeated", "versions", "models")} == {
        "errors": "wrong",
        "repeated": "mean",
        "versions": "pooled",
        "models": ["a"],
    }
    assert read_board(frozen).policy["errors"] == "drop"


def test_a_name_begins_no_line_of_its_own(tmp_path: Path) -> None:
    name = "ghost\npolicy: all fine\x1b[2J\t."
    source = scores(tmp_path / "s.csv", {"a": [1, 0, 1], "b": [0, 0, 1], name: [1, 1, 1]})
    write_rows(tmp_path / "w.csv", [["task", "doc_id", "weight"], *(["t", i, 1] for i in range(3))])
    done = rescore(source, weights=tmp_path / "w.csv")
    assert "ghost\\npolicy: all fine\\x1b[2J\\t." in str(done)
    assert not any(line.startswith("policy: all fine") for line in str(done).splitlines())
    out = write_board(done, tmp_path / "out")
    assert name in pl.read_csv(out / "leaderboard.csv")["model"].to_list()


def test_samples_without_a_finite_score_are_counted(tmp_path: Path) -> None:
    write_rows(tmp_path / "s.csv", [["model", "task", "doc_id", "score"], ["a", "t", 1, "inf"], ["a", "t", 2, 1]])
    assert "1 sample without a finite score: missing" in rescore(tmp_path / "s.csv").notes


def test_stated_errors_below_0_are_told(tmp_path: Path) -> None:
    rows: list[list[Any]] = [["model", "task", "score", "stderr"]]
    rows += [[model, task, 0.5 + 0.1 * (model == "a"), 0.1] for model in "ab" for task in "st"]
    write_rows(tmp_path / "s.csv", rows)
    assert rescore(tmp_path / "s.csv").policy["standard errors"] == "as stated for tasks"
    rows[1][-1] = -0.1
    write_rows(tmp_path / "s.csv", rows)
    done = rescore(tmp_path / "s.csv")
    assert "1 stated standard error below 0: not taken for stated" in done.notes
    assert done.policy["standard errors"] == "2 tasks drawn anew"


def test_replicates_have_an_upper_limit() -> None:
    with pytest.raises(UsageError, match="at most 1,000,000"):
        rescore(Path("none.csv"), replicates=10**9)


def test_a_grown_board_gives_the_same_plain_averages(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    both = {name: (rng.random(12) < 0.5).astype(float).tolist() for name in "abc"}
    scores(tmp_path / "old.csv", {name: both[name] for name in "ab"})
    scores(tmp_path / "new.csv", {"c": both["c"]})
    scores(tmp_path / "all.csv", both)
    write_rows(tmp_path / "w.csv", [["task", "doc_id", "weight"], *(["t", i, 1 + i] for i in range(5))])
    write_board(rescore(tmp_path / "old.csv", weights=tmp_path / "w.csv"), tmp_path / "board")
    grown = add_models(tmp_path / "board", tmp_path / "new.csv").frame.drop("added")
    assert grown.equals(rescore(tmp_path / "all.csv", weights=tmp_path / "w.csv").frame)
    assert dict(grown.select("model", "uniform_score").iter_rows())["c"] == pytest.approx(np.mean(both["c"]))
