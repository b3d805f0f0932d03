"""`benchwright rescore`: from files to a folder, new models on a frozen board, and what is refused."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from benchwright.board.folder import read_board, write_board
from benchwright.board.rescore import add_models, rescore
from benchwright.board.scheme import read_scheme
from benchwright.errors import DataError, UsageError
from tables import Ran, run, write_rows

Command = Callable[..., Ran]
FILES = {"leaderboard.csv", "scheme.json", "summary.json", "values.parquet"}


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """The command in the test's folder, each time into a folder of its own unless one is named."""
    monkeypatch.chdir(tmp_path)
    fresh = count()

    def ran(*arguments: object) -> Ran:
        out = () if "-o" in arguments else ("-o", f"board-{next(fresh)}")
        return run(monkeypatch, capsys, "rescore", *arguments, *out)

    return ran


def scores(folder: Path, *, models: tuple[str, ...] = ("x", "y", "z"), seed: int = 1, missing: int = 0) -> Path:
    """Write answers of models on 30 items of two tasks as one long table; the first model lacks some."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(seed)
    rows: list[list[Any]] = [["model", "task", "doc_id", "score"]]
    for number, model in enumerate(models):
        right = rng.random(30) < 0.4 + 0.15 * number
        for place in range(missing if number == 0 else 0, 30):
            rows.append([model, "add" if place < 20 else "subtract", place, int(right[place])])
    write_rows(folder / "scores.csv", rows)
    return folder / "scores.csv"


def weights(path: Path, *, column: str = "weight") -> Path:
    rows: list[list[Any]] = [["task", "doc_id", column]]
    rows += [["add" if place < 20 else "subtract", place, 0.1 * (1 + place % 5)] for place in range(30)]
    write_rows(path, rows)
    return path


def test_from_files_to_a_folder(command: Command, tmp_path: Path) -> None:
    out = tmp_path / "deep" / "board"
    ran = command(scores(tmp_path), "--weights", weights(tmp_path / "w.csv"), "-o", out)
    assert ran.code == 0, ran.err
    assert "w.csv, column `weight`" in ran.out
    assert f"wrote {out}" in ran.err
    assert {path.name for path in out.iterdir()} == FILES
    table = list(csv.DictReader((out / "leaderboard.csv").read_text(encoding="utf-8").splitlines()))
    assert [row["model"] for row in table] == ["z", "y", "x"]
    assert set(table[0]) >= {"score", "standard_error", "rank_lo", "rank_hi", "tie_group", "uniform_rank", "coverage"}
    summary = json.loads((out / "summary.json").read_text(encoding="utf-8"))
    assert summary["scheme"]["sha256"] == read_scheme(out / "scheme.json").sha256
    assert summary["policy"]["missing"] == "intersect"
    again = command(tmp_path / "scores.csv", "--weights", out / "scheme.json", "-o", tmp_path / "again")
    assert again.code == 0
    for name in ("leaderboard.csv", "values.parquet"):
        assert (tmp_path / "again" / name).read_bytes() == (out / name).read_bytes()


def test_json_is_json_alone(command: Command, tmp_path: Path) -> None:
    ran = command(scores(tmp_path), "--weights", "uniform", "--json")
    record = json.loads(ran.out)
    assert [row["model"] for row in record["leaderboard"]] == ["z", "y", "x"]
    assert record["policy"]["seed"] == 0


def test_a_report_s_published_weights_come_first(command: Command, tmp_path: Path) -> None:
    table = pl.read_csv(weights(tmp_path / "weights.csv")).with_columns(published_weight=pl.lit(1.0))
    table.write_csv(tmp_path / "weights.csv")
    source = scores(tmp_path / "logs")
    assert "column `published_weight`" in command(source, "--weights", tmp_path).out
    assert "column `weight`" in command(source, "--weights", tmp_path, "--column", "weight").out


def test_a_folder_that_is_there_is_left_alone(command: Command, tmp_path: Path) -> None:
    source, out = scores(tmp_path / "logs"), tmp_path / "out"
    out.mkdir()
    (out / "notes.txt").write_text("mine", encoding="utf-8")
    assert command(source, "--weights", "uniform", "-o", out).code == 2
    assert (out / "notes.txt").read_text(encoding="utf-8") == "mine"
    (out / "notes.txt").unlink()
    assert command(source, "--weights", "uniform", "-o", out).code == 0
    refused = command(source, "--weights", "uniform", "-o", out)
    assert "add --overwrite" in refused.err
    assert command(source, "--weights", "tasks", "-o", out, "--overwrite").code == 0
    assert "mean of task means" in (out / "scheme.json").read_text(encoding="utf-8")


def test_a_run_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    board = rescore(scores(tmp_path / "logs"))
    monkeypatch.setattr(pl.DataFrame, "write_csv", lambda *_, **__: (_ for _ in ()).throw(OSError(28, "no space")))
    with pytest.raises(UsageError, match="cannot write"):
        write_board(board, tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["logs"]


def test_names_from_data_stay_inert(command: Command, tmp_path: Path) -> None:
    names = ("=cmd|'/c calc'!A1", "../../up", "v0")
    out = tmp_path / "board"
    ran = command(scores(tmp_path / "logs", models=names), "--weights", "uniform", "-o", out)
    assert ran.code == 0, ran.err
    text = (out / "leaderboard.csv").read_text(encoding="utf-8")
    assert "'=cmd" in text
    assert "\n=cmd" not in text
    assert {path.name for path in out.iterdir()} == FILES
    assert {*read_board(out).values.models} == set(names)


def test_new_models_on_a_frozen_board(command: Command, tmp_path: Path) -> None:
    out = tmp_path / "board"
    old = rescore(scores(tmp_path / "old"), weights=weights(tmp_path / "w.csv"))
    write_board(old, out)
    new = scores(tmp_path / "new", models=("x", "new"), seed=7)
    both = add_models(out, new)
    assert both.frame.filter("added")["model"].to_list() == ["new"]
    assert any("already on the board, left as it is: x" in note for note in both.notes)
    before = old.frame.sort("model").select("model", "score", "standard_error", "uniform_score", "coverage")
    after = both.frame.filter(~pl.col("added")).sort("model").select(before.columns)
    assert after.equals(before)
    assert both.frame.filter("added").select("score", "rank_lo", "rank_hi").null_count().sum_horizontal().item() == 0
    together = pl.concat([pl.read_csv(tmp_path / one / "scores.csv") for one in ("old", "new")])
    (tmp_path / "all").mkdir()
    together.unique(["model", "task", "doc_id"], keep="first", maintain_order=True).write_csv(
        tmp_path / "all/scores.csv"
    )
    at_once = rescore(tmp_path / "all" / "scores.csv", weights=tmp_path / "w.csv")
    assert at_once.frame.equals(both.frame.drop("added"))  # frozen or not, the same board
    ran = command(new, "--board", out, "-o", tmp_path / "grown", "--json")
    assert {row["model"]: row["added"] for row in json.loads(ran.out)["leaderboard"]}["new"] is True
    assert read_board(tmp_path / "grown").values.models == ("x", "y", "z", "new")


def test_a_new_model_that_lacks_items_does_not_shrink_the_board(tmp_path: Path) -> None:
    write_board(rescore(scores(tmp_path / "old")), tmp_path / "board")
    new = scores(tmp_path / "new", models=("new",), missing=3)
    strict = add_models(tmp_path / "board", new)
    assert strict.numbers["items"] == 30
    row = strict.frame.filter("added").row(0, named=True)
    assert (row["score"], row["rank"], row["coverage"]) == (None, None, 0.9)
    own = add_models(tmp_path / "board", new, missing="renormalise")
    assert own.frame.filter("added")["score"].null_count() == 0
    with pytest.raises(UsageError, match="--missing intersect"):
        add_models(tmp_path / "board", new, missing="intersect")
    with pytest.raises(DataError, match="no model is new"):
        add_models(tmp_path / "board", tmp_path / "old" / "scores.csv")
    write_rows(tmp_path / "other.csv", [["model", "task", "doc_id", "score"], ["new", "other", "1", "1"]])
    with pytest.raises(DataError, match="no item rows of the board's tasks"):
        add_models(tmp_path / "board", tmp_path / "other.csv")


def test_a_frozen_scale_stays(tmp_path: Path) -> None:
    write_rows(tmp_path / "old.csv", [["model", "t1", "t2"], ["a", 0.2, 0.3], ["b", 0.6, 0.7], ["c", 0.4, 0.6]])
    write_rows(tmp_path / "new.csv", [["model", "t1", "t2"], ["d", 1.0, 0.7], ["e", 0.2, 0.3]])
    write_board(rescore(tmp_path / "old.csv", weights="tasks", scale="minmax"), tmp_path / "board")
    both = dict(add_models(tmp_path / "board", tmp_path / "new.csv").frame.select("model", "score").iter_rows())
    assert both == pytest.approx({"a": 0.0, "b": 1.0, "c": 0.625, "d": 1.5, "e": 0.0})


def test_a_frozen_board_keeps_each_task_s_metric(tmp_path: Path) -> None:
    rows = [["model", "task", "doc_id", "metric", "score"]]
    for model in ("a", "b"):
        rows += [
            [model, task, str(i), metric, str(i % 2)] for task, metric in (("t", "acc"), ("u", "f1")) for i in range(6)
        ]
    write_rows(tmp_path / "old.csv", rows)
    write_board(rescore(tmp_path / "old.csv"), tmp_path / "board")
    new = [
        ["c", task, str(i), metric, "1" if metric == wanted else "0"]
        for task, wanted in (("t", "acc"), ("u", "f1"))
        for metric in ("acc", "f1")
        for i in range(6)
    ]
    write_rows(tmp_path / "new.csv", [rows[0], *new, *([["d", *row[1:]] for row in new if row[1] == "t"])])
    both = add_models(tmp_path / "board", tmp_path / "new.csv", models=["c", "d"])
    assert dict(both.frame.select("model", "score").iter_rows()) == {"a": 0.5, "b": 0.5, "c": 1.0, "d": None}
    assert both.values.metrics == {"t": "acc", "u": "f1"}


@pytest.mark.parametrize("file", ["values.parquet", "scheme.json", "summary.json"])
def test_a_board_that_was_changed_is_refused(tmp_path: Path, file: str) -> None:
    out = tmp_path / "board"
    write_board(rescore(scores(tmp_path / "old")), out)
    new = scores(tmp_path / "new", models=("new",))
    if file == "scheme.json":
        other = rescore(tmp_path / "old" / "scores.csv", weights="tasks").scheme.to_json()
        (out / file).write_text(other, encoding="utf-8")
    elif file == "summary.json":
        (out / file).write_text("{}", encoding="utf-8")
    else:
        (out / file).write_bytes((out / file).read_bytes()[:-1])
    with pytest.raises(DataError, match="cannot be used"):
        add_models(out, new)
    (out / file).unlink()
    with pytest.raises((UsageError, DataError)):
        add_models(out, new)


def test_flags_need_items(command: Command, tmp_path: Path) -> None:
    source, flags = scores(tmp_path / "logs"), tmp_path / "flags.csv"
    for text, reason in (
        ("task,doc_id\nadd,99\n", "no item add, 99 on the board"),
        ("task,doc_id\n" + "".join(f"{'add' if i < 20 else 'subtract'},{i}\n" for i in range(30)), "every item"),
        ("task\nadd\n", "needs the columns"),
        ("model\nx\n", "needs the columns"),
    ):
        flags.write_text(text, encoding="utf-8")
        ran = command(source, "--weights", "uniform", "--flags", flags)
        assert (ran.code, reason in ran.err) == (1, True), ran.err
    flags.write_text("task,doc_id,model\nadd,3,x\nadd,4,\n", encoding="utf-8")
    out = tmp_path / "board"
    ran = command(source, "--weights", weights(tmp_path / "w.csv"), "--flags", flags, "-o", out)
    assert ran.code == 0, ran.err
    assert "2 flagged items taken from all models" in ran.out
    assert {path.name for path in out.iterdir()} == FILES | {"leaderboard_with_flagged.csv"}
    whole = rescore(source, weights=tmp_path / "w.csv").frame
    assert pl.read_csv(out / "leaderboard_with_flagged.csv")["score"].to_list() == pytest.approx(
        whole["score"].to_list()
    )


def test_clusters_of_tasks_and_of_a_file(command: Command, tmp_path: Path) -> None:
    source, names = scores(tmp_path / "logs"), tmp_path / "clusters.csv"
    assert (
        "2 clusters of 30 items drawn all together" in command(source, "--weights", "uniform", "--cluster", "task").out
    )
    names.write_text("task,doc_id,cluster\nadd,0,p\nadd,1,p\nsubtract,20,q\nsubtract,21,q\n", encoding="utf-8")
    ran = command(source, "--weights", "uniform", "--cluster", names)
    assert "28 clusters of 30 items drawn within tasks" in ran.out
    assert "26 items in no cluster: each is drawn on its own" in ran.out
    names.write_text("task,doc_id,cluster\nadd,99,p\n", encoding="utf-8")
    assert "no item of the board has a cluster" in command(source, "--weights", "uniform", "--cluster", names).err


@pytest.mark.parametrize(
    ("arguments", "code", "reason"),
    [
        ((), 2, "--weights is missing"),
        (("--weights", "none.csv"), 2, "does not exist"),
        (("--weights", "uniform", "--models", "nobody"), 2, "no entry is named `nobody`"),
        (("--weights", "uniform", "--models", "!*"), 2, "every entry is left out"),
        (("--weights", "uniform", "--task", "nothing"), 2, "no task is named"),
        (("--weights", "uniform", "--metric", "bleu"), 2, "no task has the metric"),
        (("--weights", "uniform", "--level", "task"), 1, "no task scores"),
        (("--weights", "uniform", "--level", "group"), 2, "--level must be one of"),
        (("--weights", "uniform", "--missing", "guess"), 2, "--missing must be one of"),
        (("--weights", "uniform", "--replicates", "10"), 2, "at least 10"),
        (("--weights", "uniform", "--scale", "minmax", "--bounds", "b.csv"), 2, "exclude each other"),
        (("--weights", "uniform", "--setting", "5-shot"), 2, "no entry has the setting"),
        (("--weights", "uniform", "--board", "board"), 2, "--board has settled --weights\n"),
        (("--board", "board"), 2, "holds no board"),
        (("--weights", "uniform", "--flags", "none.csv"), 2, "flags file none.csv does not exist"),
    ],
)
def test_wrong_use_is_told(
    command: Command, tmp_path: Path, arguments: tuple[str, ...], code: int, reason: str
) -> None:
    ran = command(scores(tmp_path), *arguments)
    assert (ran.code, ran.out) == (code, "")
    assert reason in ran.err
    assert "Traceback" not in ran.err


def test_a_report_is_no_source_of_scores(command: Command, tmp_path: Path) -> None:
    layer = pl.DataFrame({"task": ["a"], "doc_id": [1], "weight": [1.0]})
    (tmp_path / "report").mkdir()
    layer.write_parquet(tmp_path / "report" / "items.parquet", metadata={"benchwright.columns": "{}"})
    (tmp_path / "report" / "summary.json").write_text("{}", encoding="utf-8")
    for source in ("report", "report/items.parquet"):
        ran = command(source, "--weights", "uniform")
        assert (ran.code, ran.out) == (2, "")
        assert "is a report: it holds statistics of items" in ran.err
