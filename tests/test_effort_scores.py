"""Scores by effort: the table, and what it is read from, on our own files and on public ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from benchwright.curves.reading import read_effort_scores
from benchwright.curves.scores import EffortScores
from benchwright.errors import DataError, UsageError
from benchwright.panel.ingest import read_logs

TABLE = """model,task,metric,filter,step,value,stderr
b,gsm8k,exact_match,strict,100,0.3,0.01
a,gsm8k,exact_match,strict,0,0.1,0.02
a,gsm8k,exact_match,strict,100,0.2,0.02
b,gsm8k,exact_match,strict,0,0.2,0.01
a,gsm8k,exact_match,flexible,0,0.15,0.02
a,gsm8k,exact_match,flexible,100,0.25,0.02
a,mmlu,acc,none,0,0.5,0.1
a,mmlu,acc,none,10,0.6,0.1
a,mmlu,brier_score,none,0,0.5,0.1
a,mmlu,brier_score,none,10,0.4,0.1
a,cola,mcc,none,0,-0.1,0.1
a,cola,mcc,none,10,0.4,0.1
"""


@pytest.fixture
def table(tmp_path: Path) -> Path:
    file = tmp_path / "scores.csv"
    file.write_text(TABLE, encoding="utf-8")
    return file


def test_rows_are_sorted_by_model_and_effort(table: Path) -> None:
    scores = read_effort_scores(table, task="gsm8k", filter="strict")
    assert scores.models == ("b", "a")
    assert (scores.task, scores.effort_unit) == ("gsm8k exact_match (strict)", "steps")
    assert scores.model.tolist() == [0, 0, 1, 1]
    assert scores.effort.tolist() == [0.0, 100.0, 0.0, 100.0]
    assert scores.score.tolist() == [0.2, 0.3, 0.1, 0.2]
    assert scores.stderr.tolist() == [0.01, 0.01, 0.02, 0.02]
    assert np.isnan(scores.items).all()
    assert scores.of(1).score.tolist() == [0.1, 0.2]
    assert scores.select(["a", "b"]).models == ("a", "b")
    assert scores.to_frame().columns == ["model", "effort", "score", "stderr", "items"]
    assert scores.to_frame()["items"].null_count() == len(scores) == 4


def test_what_is_no_score_of_a_curve_is_no_candidate(table: Path) -> None:
    scores = read_effort_scores(table, task="mmlu")
    assert scores.task == "mmlu acc"
    assert scores.notes == ("left out: mmlu brier_score is better where lower",)
    with pytest.raises(DataError, match=r"cola mcc leaves \[0, 1\]: -0\.1"):
        read_effort_scores(table, task="cola")
    with pytest.raises(DataError, match="mmlu brier_score is better where lower"):
        read_effort_scores(table, metric="brier_score")


def test_several_kinds_of_scores_are_listed_with_the_options_that_tell_them_apart(table: Path) -> None:
    with pytest.raises(
        UsageError, match=r"gsm8k exact_match \(strict\), gsm8k exact_match \(flexible\), mmlu acc"
    ) as bad:
        read_effort_scores(table)
    assert bad.value.hint == "choose one with --task, --metric, --filter"
    with pytest.raises(UsageError) as bad:
        read_effort_scores(table, task="gsm8k")
    assert bad.value.hint == "choose one with --filter"
    assert read_effort_scores(table, task="gsm*", filter="!strict").models == ("a",)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"task": "gsm"}, "no task is named `gsm`"),
        ({"models": "llama-*"}, r"no model is named `llama-\*`"),
        ({"models": ["!a", "!b"]}, "every model is left out by !a, !b"),
        ({"metric": "acc_norm"}, "no metric is named `acc_norm`"),
        ({"effort": "dose"}, "no score says after how much effort it was measured: no dose"),
        ({"effort": "epoch"}, "`effort` must be one of step, dose, got 'epoch'"),
    ],
)
def test_names_that_are_not_there(table: Path, options: dict[str, Any], text: str) -> None:
    with pytest.raises(UsageError, match=text):
        read_effort_scores(table, **options)


def test_models_without_any_score_are_named(tmp_path: Path) -> None:
    file = tmp_path / "t.jsonl"
    rows = [
        {"model": m, "task": "t", "step": s, "acc": None if m == "b" else 0.1 + s / 100} for m in "ab" for s in (0, 9)
    ]
    file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    scores = read_effort_scores(file, items=10)
    assert scores.models == ("a",)
    assert "2 empty scores are missing, not 0" in "\n".join(scores.notes)
    assert "10 items behind 2 scores, as was said: not stated" in scores.notes
    with pytest.raises(UsageError, match="`items` must be at least 1, got 0"):
        read_effort_scores(file, items=0)


def test_models_are_picked_by_pattern(table: Path) -> None:
    assert read_effort_scores(table, task="gsm8k", filter="strict", models="!b").models == ("a",)


def test_gaps_repeats_and_rows_without_a_step_are_named(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text(
        "model,task,metric,step,value,n_items,seed\n"
        "a,t,acc,0,0.1,100,1\na,t,acc,10,,100,1\na,t,acc,20,0.3,100,1\na,t,acc,20,0.34,100,2\na,t,acc,,0.9,100,1\n"
        "b,t,acc,0,0.1,100,1\nb,t,acc,10,0.2,100,1\nb,t,acc,20,0.3,100,1\nb,t,acc,20,0.3,100,1\n"
        "c,t,acc,0,0.1,100,1\nc,t,acc,10,0.2,100,1\n",
        encoding="utf-8",
    )
    scores = read_effort_scores(file)
    assert scores.items.tolist() == [100.0] * len(scores)
    notes = "\n".join(scores.notes)
    assert "1 empty scores are missing, not 0" in notes
    assert "1 score without a step left out: a" in notes
    assert "no score, where most models have one: a at 10" in notes
    assert "1 row left out: the same as another of the run" in notes
    assert "1 score of a model at an effort that has one already" in notes
    assert scores.of(0).effort.tolist() == [0.0, 20.0, 20.0]


def test_item_rows_of_checkpoints_are_averaged(tmp_path: Path) -> None:
    """A run whose logs state no score: the mean over its items, counts where items are right or wrong."""
    rows = [
        {"model": "m", "step": step, "task": "t", "doc_id": k, "metric": "acc", "value": float(k < right)}
        for step, right in ((0, 1), (5, 3))
        for k in range(4)
    ]
    file = tmp_path / "items.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    scores = read_effort_scores(file)
    assert (scores.score.tolist(), scores.items.tolist()) == ([0.25, 0.75], [4.0, 4.0])
    assert scores.stderr.tolist() == pytest.approx([0.25, 0.25])
    panel = read_logs(file, tmp_path / "panel").panel
    assert read_effort_scores(panel).score.tolist() == [0.25, 0.75]
    for row in rows:
        row["value"] *= 0.9
    file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    assert np.isnan(read_effort_scores(file).items).all()


def test_settings_and_revisions_are_models_of_their_own(tmp_path: Path) -> None:
    head = "model,revision,task,metric,step,value,temperature\n"
    rows = [f"m,{rev},t,acc,{step},0.{step + 1},{t}" for rev in "uv" for t in ("hot", "cold") for step in (0, 4)]
    file = tmp_path / "t.csv"
    file.write_text(head + "\n".join(rows), encoding="utf-8")
    scores = read_effort_scores(file)
    models = scores.models
    assert "models under 2 settings are compared: temperature=cold, temperature=hot" in scores.notes
    assert len(models) == 4
    assert all("@u" in name or "@v" in name for name in models)
    assert sum("hot" in name for name in models) == 2


def test_public_trajectories(shared: Path) -> None:
    file = shared / "data" / "trajectories" / "ttt-emergence" / "trajectories_with_step0.csv"
    gsm8k = read_effort_scores(file, task="gsm8k", filter="flexible-extract")
    assert (len(gsm8k), len(gsm8k.models), gsm8k.effort.max()) == (627, 47, 25_000.0)
    mmlu = read_effort_scores(file, task="mmlu", metric="acc")
    assert (len(mmlu), len(mmlu.models)) == (548, 55)
    assert len(read_effort_scores(file, task="mmlu", models="pythia-*").models) == 8
    frame = pl.read_csv(file)
    own = frame.filter(pl.col("task") == "mmlu", pl.col("metric") == "acc", pl.col("model") == "pythia-1b").sort("step")
    read = mmlu.select(["pythia-1b"])
    assert read.effort.tolist() == own["step"].to_list()
    assert read.score.tolist() == own["value"].to_list()


@pytest.mark.slow
def test_validation_is_not_mixed_with_test_accuracy(shared: Path) -> None:
    folder = shared / "data" / "trajectories" / "peft-metamathqa" / "results"
    scores = read_effort_scores(folder)
    assert (scores.task, len(scores), len(scores.models)) == ("gsm8k valid accuracy", 63 * 20, 63)
    assert np.unique(scores.model, return_counts=True)[1].tolist() == [20] * 63
    assert any("test accuracy is there at one effort only" in note for note in scores.notes)
    assert np.isnan(scores.items).all()
    assert (read_effort_scores(folder, items=50).items == 50).all()
    by_example = read_effort_scores(folder, effort="dose")
    assert (by_example.effort_unit, by_example.effort.max()) == ("examples", 20_000.0)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"score": [0.1, 1.2]}, r"`score` must lie in \[0, 1\], got 1\.2 for b at effort 3"),
        ({"score": [0.1, np.nan]}, "`score` must be finite"),
        ({"effort": [1.0, -3.0]}, "`effort` must not be negative"),
        ({"stderr": [0.1, -1.0]}, "`stderr` must be finite and >= 0"),
        ({"items": [0.5, 3.0]}, "`items` must be at least 1, got 0.5 for a"),
        ({"items": [3.0]}, "`items` must hold 2 values"),
        ({"model": [0, 2]}, "`model` must hold 2 positions"),
        ({"model": [0, 0]}, "models without a score: b"),
        ({"models": ("a", "a")}, "`models` must be different"),
        ({"models": (), "model": [], "effort": [], "score": []}, "no scores by effort"),
    ],
)
def test_tables_that_are_none(change: dict[str, Any], text: str) -> None:
    given = {"models": ("a", "b"), "model": [0, 1], "effort": [1.0, 3.0], "score": [0.1, 0.2]} | change
    with pytest.raises(UsageError, match=text):
        EffortScores(**given)
    scores = EffortScores(("a",), np.array([0]), np.array([1.0]), np.array([0.5]))
    with pytest.raises(UsageError, match="no scores of x"):
        scores.select(["x"])
    with pytest.raises(UsageError, match="must name at least one"):
        scores.select([])
