"""From logs to a panel: identity and policies, scores against plain formulas, resuming, public cases."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from benchwright.errors import DataError, UsageError
from benchwright.panel.ingest import read_logs
from benchwright.panel.panel import Panel
from benchwright.panel.scores import compare_models, score_table
from test_lm_eval import sample, write_lines


def long_table(path: Path, rows: list[dict[str, Any]]) -> Path:
    """Write rows as JSONL with columns that the long-table reader knows."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def results(model: str, task: str, values: list[float | None], **more: Any) -> list[dict[str, Any]]:
    return [{"model": model, "task": task, "item_id": str(i), "score": value} | more for i, value in enumerate(values)]


def ingested(tmp_path: Path, *tables: list[dict[str, Any]], **options: Any) -> Panel:
    for place, rows in enumerate(tables):
        long_table(tmp_path / "logs" / f"t{place}.jsonl", rows)
    read_logs(tmp_path / "logs", tmp_path / "panel", **options)
    return Panel.open(tmp_path / "panel")


def scored(panel: Panel, **options: Any) -> dict[str, dict[str, Any]]:
    return {row["entry"]: row for row in score_table(panel, **options).frame.iter_rows(named=True)}


def tree(folder: Path) -> dict[str, str]:
    """Every file below a folder by name, with a digest of its bytes."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_micro_and_macro_means_have_their_own_standard_errors(tmp_path: Path) -> None:
    big = results("m", "big", [1.0] * 90 + [0.0] * 10)
    small = results("m", "small", [1.0] * 10 + [0.0] * 15)
    row = scored(ingested(tmp_path, big, small))["m"]
    assert row["micro"] == pytest.approx(0.8)
    assert row["micro_se"] == pytest.approx(0.031334, abs=1e-6)  # C18
    assert row["macro"] == pytest.approx(0.65)
    assert row["macro_se"] == pytest.approx(0.052223, abs=1e-6)


def test_missing_items_are_treated_alike_for_all(tmp_path: Path) -> None:
    full = results("full", "t", [1.0, 1.0, 0.0, 0.0])
    part = results("part", "t", [1.0, 0.0])
    panel = ingested(tmp_path, full, part)
    common = scored(panel, missing="intersect")
    assert (common["full"]["micro"], common["part"]["micro"]) == (1.0, 0.5)
    own = scored(panel, missing="renormalise")
    assert (own["full"]["micro"], own["part"]["micro"], own["part"]["coverage"]) == (0.5, 0.5, 0.5)
    refused = scored(panel, missing="refuse")
    assert (refused["part"]["micro"], refused["part"]["rank"]) == (None, None)
    assert refused["full"]["rank"] == 1


def test_repeated_rows_follow_the_stated_policy(tmp_path: Path) -> None:
    rows = [
        {"model": "m1", "task": "t", "item_id": item, "score": score, "timestamp": stamp}
        for item, score, stamp in (("q1", 1, 1), ("q1", 0, 9), ("q2", 1, 2), ("q3", 1, 3), ("q3", 1, 3))
    ]
    panel = ingested(tmp_path, rows)
    for policy, expected in (("latest", 2 / 3), ("first", 1.0), ("mean", 5 / 6)):  # C10
        assert scored(panel, repeated=policy)["m1"]["micro"] == pytest.approx(expected)
    with pytest.raises(DataError, match="appear twice"):
        score_table(panel, repeated="error")


def test_a_copied_log_counts_once_and_is_told(tmp_path: Path) -> None:
    rows = results("m", "t", [1.0, 0.0, 1.0])
    panel = ingested(tmp_path, rows, rows)
    assert panel.manifest["counts"]["cells_left_out"] == 1
    assert panel.cells().filter(~pl.col("active"))["why"].to_list() == ["a copy of another run's rows"]
    assert scored(panel)["m"]["n_items"] == 3


def test_samples_without_their_results_file_are_a_copy_of_the_run_that_names_the_model(tmp_path: Path) -> None:
    asked = {f"gen_args_{n}": {"arg_0": "?", "arg_1": f" {word}"} for n, word in enumerate(("no", "yes"))}

    def run(folder: str, model: str | None, gap: float) -> None:
        records = [
            sample(
                item,
                arguments=asked,
                target=1,
                filtered_resps=[["-3.5", "False"], [str(-3.0 - gap * item), "True"]],
                acc=float(gap * item < 0.5),
            )
            for item in range(4)
        ]
        stamp = "2026-01-01T00-00-00.000000"
        write_lines(tmp_path / "logs" / folder / f"samples_t_{stamp}.jsonl", records)
        if model is not None:
            stated = {"results": {"t": {"alias": "t"}}, "versions": {"t": 1.0}, "model_name": model, "config": {}}
            (tmp_path / "logs" / folder / f"results_{stamp}.json").write_text(json.dumps(stated))

    run("zoo", "org/a", 0.2)
    run("org_a_rewritten", None, 0.2)
    run("alone", None, 0.21)
    run("org_b", "org/b", 0.2)
    read = read_logs(tmp_path / "logs", tmp_path / "panel")
    cells = Panel.open(tmp_path / "panel").cells()
    assert cells.filter(~pl.col("active"))["model"].to_list() == ["org_a_rewritten"]
    assert sorted(cells.filter("active")["model"]) == ["alone", "org/a", "org/b"]
    assert [note for note in read.notes if "log-likelihoods" in note] == [
        "org/a and org/b: the same rows and choice log-likelihoods on 1 task; "
        "two names of one model or a copied log, both count"
    ]


def test_who_lacks_the_metric_is_told(tmp_path: Path) -> None:
    other = [row | {"metric": "f1"} for row in results("c", "t", [1.0])]
    panel = ingested(tmp_path, results("a", "t", [1.0]), results("b", "t", [0.0]), other)
    assert list(scored(panel)) == ["a", "b"]
    assert score_table(panel).notes == ("left out for want of this metric: c; --metric names another",)


def test_runs_that_differ_are_resolved_by_policy(tmp_path: Path) -> None:
    old, new = results("m", "t", [1.0, 1.0]), results("m", "t", [0.0, 0.0])
    latest = ingested(tmp_path / "a", old, new)
    assert scored(latest)["m"]["micro"] == 0.0  # no time stated: the later file name
    both = ingested(tmp_path / "b", old, new, duplicates="all")
    assert scored(both)["m"]["micro"] == 0.5
    with pytest.raises(DataError, match="2 runs of the same model and task differ"):
        ingested(tmp_path / "c", old, new, duplicates="error")


def test_a_folder_whose_name_is_a_pattern_is_a_folder(tmp_path: Path) -> None:
    panel = ingested(tmp_path / "runs [1] {x} *", results("m", "t", [1.0, 0.0]))
    assert scored(panel)["m"]["micro"] == 0.5
    assert panel.rows().collect().height == 2


def test_runs_that_a_table_names_apart_are_repeats(tmp_path: Path) -> None:
    rows = [row | {"run": name} for name in ("a", "b") for row in results("m", "t", [1.0, float(name == "b")])]
    panel = ingested(tmp_path, rows, [row | {"run": "b"} for row in results("m", "t", [1.0, 1.0])])
    assert panel.cells().filter("active")["run_name"].sort().to_list() == ["a", "b"], "and a copy of one counts once"
    assert scored(panel)["m"]["micro"] == 0.75


def test_rank_intervals_and_paired_comparison(tmp_path: Path) -> None:
    a = [1.0] * 39 + [0.0] * 21
    b = [1.0] * 30 + [0.0] * 29 + [1.0]
    panel = ingested(tmp_path, results("A", "t", a), results("B", "t", b))
    comparison = compare_models(panel, "A", "B")  # C25
    assert comparison.difference == pytest.approx(0.133333, abs=1e-6)
    assert comparison.mcnemar_p == pytest.approx(0.021484, abs=1e-6)
    assert comparison.standard_error == pytest.approx(0.050235, rel=0.02)
    table = scored(panel)
    assert (table["A"]["rank_lo"], table["A"]["rank_hi"]) == (1, 1)
    assert (table["B"]["tie_group"], table["A"]["tie_group"]) == (2, 1)
    with pytest.raises(UsageError, match="no entry `C`"):
        compare_models(panel, "A", "C")


def test_ranks_of_many_models_cover_the_truth_as_plain_pairs_do(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    matrix = (rng.random((200, 6)) < np.linspace(0.3, 0.8, 6)).astype(float)
    panel = ingested(tmp_path, *(results(f"m{j}", "t", matrix[:, j].tolist()) for j in range(6)))
    table = scored(panel)
    for i, j in pairwise(range(6)):
        gap = matrix[:, j] - matrix[:, i]
        z = gap.mean() / (gap.std(ddof=1) / np.sqrt(200))
        beyond = z > 2.9352  # normal quantile at 1 - 0.05 / 2 / 15
        assert (table[f"m{j}"]["rank_hi"] < table[f"m{i}"]["rank_lo"]) <= beyond
    assert all(row["rank_lo"] <= row["rank"] <= row["rank_hi"] for row in table.values())


def test_parts_with_several_models_metrics_and_tasks_give_the_means_of_their_rows(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    names = ("model", "task", "item_id", "acc", "f1")
    for part, models in enumerate((("a", "b"), ("c",), ("d", "e", "f"))):
        rows = [
            (model, task, f"q{item}", rng.integers(2), rng.random())
            for model in models
            for task in ("t1", "t2")
            for item in range(20)
            if rng.random() < 0.9
        ]
        long_table(tmp_path / "logs" / f"t{part}.jsonl", [dict(zip(names, map(str, row), strict=True)) for row in rows])
    read_logs(tmp_path / "logs", tmp_path / "panel")
    panel = Panel.open(tmp_path / "panel")
    rows = panel.rows().collect()
    for tasks in (["t1"], ["t1", "t2"]):
        for metric in ("acc", "f1"):
            table = scored(panel, metric=metric, tasks=tasks, missing="renormalise")
            mine = rows.filter(
                pl.col("task").is_in(tasks) & (pl.col("metric") == metric) & pl.col("value").is_not_null()
            )
            means = dict(mine.group_by("model").agg(pl.col("value").mean()).iter_rows())
            assert sorted(table) == sorted("abcdef")
            assert {model: row["micro"] for model, row in table.items()} == pytest.approx(means)
            assert table["a"]["n_items"] == mine.filter(pl.col("model") == "a").height


def clustered(model: str, values: list[float], clusters: list[str | None]) -> list[dict[str, Any]]:
    rows = results(model, "t", list(values))
    return [row | {"cluster": name} for row, name in zip(rows, clusters, strict=True)]


def test_clustered_standard_errors_equal_a_plain_loop_and_join_what_two_logs_name_differently(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    x, y = rng.integers(0, 2, (2, 60)).astype(float)
    mine = [f"p{place // 3}" if place < 45 else None for place in range(60)]
    other = [name and f"text {name}" for name in mine]
    other[2] = other[3]  # ties the first cluster to the second
    panel = ingested(tmp_path, clustered("a", list(x), mine), clustered("b", list(y), other))
    groups = [list(range(6)), *[[p, p + 1, p + 2] for p in range(6, 45, 3)], *[[p] for p in range(45, 60)]]

    def error(values: Any) -> float:
        deviations = values - values.mean()
        sums = sum(float(deviations[group].sum()) ** 2 for group in groups)
        return float(np.sqrt(len(groups) / (len(groups) - 1) * sums) / len(values))

    found = scored(panel)
    assert found["a"]["micro_se"] == pytest.approx(error(x), rel=1e-12)
    assert found["b"]["micro_se"] == pytest.approx(error(y), rel=1e-12)
    gap = compare_models(panel, "a", "b")
    assert gap.standard_error == pytest.approx(error(x - y), rel=1e-12)
    assert np.isnan(gap.mcnemar_p)


def test_rank_intervals_know_of_clusters(tmp_path: Path) -> None:
    names = [f"p{place // 50}" for place in range(400)]
    ahead = [1.0] * 100 + [0.0] * 300
    behind = [0.0] * 400
    apart = ingested(tmp_path / "a", results("a", "t", list(ahead)), results("b", "t", list(behind)))
    assert scored(apart)["b"]["rank_lo"] == 2
    together = ingested(tmp_path / "b", clustered("a", ahead, list(names)), clustered("b", behind, list(names)))
    assert scored(together)["b"]["rank_lo"] == 1  # two of eight passages are no proof


def test_a_panel_is_reused_and_grows(tmp_path: Path) -> None:
    panel = ingested(tmp_path, results("a", "t", [1.0, 0.0]))
    before = tree(panel.path)
    read_logs(tmp_path / "logs", panel.path)
    assert tree(panel.path) == before
    parts = {name for name in before if name.startswith("parts/")}
    long_table(tmp_path / "logs" / "later.jsonl", results("b", "t", [0.0, 0.0]))
    read_logs(tmp_path / "logs", panel.path)
    after = tree(panel.path)
    assert parts < set(after)
    assert all(after[name] == before[name] for name in parts)
    assert set(scored(Panel.open(panel.path))) == {"a", "b"}


def test_nothing_readable_is_an_error_and_a_fault_does_not_stop_the_rest(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "noise.bin2").write_bytes(os.urandom(500))
    with pytest.raises(DataError, match="nothing could be read"):
        read_logs(tmp_path / "logs", tmp_path / "panel")
    with pytest.raises(UsageError, match="holds no panel"):
        Panel.open(tmp_path / "panel")
    long_table(tmp_path / "logs" / "good.jsonl", results("a", "t", [1.0]))
    done = read_logs(tmp_path / "logs", tmp_path / "panel")
    assert [fault.file for fault in done.faults] == ["noise.bin2"]
    with pytest.raises(DataError, match="--strict"):
        read_logs(tmp_path / "logs", tmp_path / "panel2", strict=True)
    with pytest.raises(UsageError, match="does not exist"):
        read_logs(tmp_path / "nowhere", tmp_path / "panel3")


def test_a_failed_ingest_leaves_no_empty_folder_and_names_stay_inert_in_csv(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        read_logs(tmp_path / "nowhere", tmp_path / "panel")
    assert not (tmp_path / "panel").exists()
    panel = ingested(tmp_path, results("=cmd()", "t", [1.0]))
    panel.export("rows", tmp_path / "rows.csv")
    assert pl.read_csv(tmp_path / "rows.csv")["model"].to_list() == ["'=cmd()"]
    panel.export("rows", tmp_path / "rows.parquet")
    panel.export("rows", tmp_path / "new" / "folder" / "rows.parquet")
    assert [one.name for one in (tmp_path / "new" / "folder").iterdir()] == ["rows.parquet"]
    with pytest.raises(UsageError, match="cannot be written"):
        panel.export("rows", tmp_path / "rows.csv" / "rows.csv")
    assert pl.read_parquet(tmp_path / "rows.parquet")["model"].to_list() == ["=cmd()"]


def test_a_symlink_loop_and_quiet_files(tmp_path: Path) -> None:
    long_table(tmp_path / "logs" / "a" / "t.jsonl", results("a", "t", [1.0]))
    (tmp_path / "logs" / "a" / "loop").symlink_to(tmp_path / "logs", target_is_directory=True)
    (tmp_path / "logs" / "README.md").write_text("about", encoding="utf-8")
    (tmp_path / "logs" / "LICENSE").write_text("free", encoding="utf-8")
    done = read_logs(tmp_path / "logs", tmp_path / "panel")
    assert (done.counts["rows"], done.faults, done.counts["passed_over"]) == (1, (), 2)


@pytest.mark.slow
def test_a_reading_process_that_dies_is_told_and_what_was_read_is_kept(tmp_path: Path) -> None:
    for place in range(12):
        long_table(tmp_path / "logs" / f"{place}.jsonl", results(f"m{place}", "t", [1.0, 0.0]))

    def kill(_: str) -> None:
        for child in multiprocessing.active_children():
            child.kill()

    with pytest.raises(DataError, match="a reading process was ended from outside") as told:
        read_logs(tmp_path / "logs", tmp_path / "panel", workers=3, progress=kill)
    assert ".jsonl" in str(told.value)
    assert not (tmp_path / "panel" / "manifest.json").exists()
    assert read_logs(tmp_path / "logs", tmp_path / "panel").counts["units"] == 12


def test_killed_at_random_moments_it_ends_with_the_same_panel(tmp_path: Path) -> None:
    rng = random.Random(7)
    for number in range(12):
        long_table(
            tmp_path / "logs" / f"m{number:02d}.jsonl",
            results(f"m{number}", "t", [float(rng.random() < 0.5) for _ in range(4000)]),
        )
    read_logs(tmp_path / "logs", tmp_path / "whole")
    command = [sys.executable, "-m", "benchwright.cli", "ingest", str(tmp_path / "logs"), "-o", str(tmp_path / "panel")]
    killed = 0
    for _ in range(20):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(rng.uniform(0.2, 1.2))
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            killed += 1
        process.wait()
    subprocess.run(command, check=True, capture_output=True)
    assert killed > 0
    assert tree(tmp_path / "panel") == tree(tmp_path / "whole")
