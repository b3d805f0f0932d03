"""Tuning tiny models for real: a killed run goes on to the same curve, scores are what the model gives, adversaries."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from benchwright.panel.ingest import read_logs
from benchwright.panel.panel import Panel
from benchwright.tuning.folder import write_json
from benchwright.tuning.jobs import _record
from benchwright.tuning.plan import Job, jobs_of
from benchwright.tuning.protocol import read_protocol
from benchwright.tuning.run import run_tuning
from tiny_models import PROTOCOL, write_family

pytestmark = [pytest.mark.tuning, pytest.mark.filterwarnings("ignore")]  # of the libraries
ONE = [("seeds = [0, 1]", "seeds = [0]")]


@pytest.fixture(scope="module")
def family(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import torch

    torch.set_num_threads(1)
    os.environ["OMP_NUM_THREADS"] = "1"
    folder = tmp_path_factory.mktemp("family")
    write_family(folder)
    return folder


def job_of(family: Path, *changes: tuple[str, str]) -> Job:
    """The first run of a protocol."""
    text = PROTOCOL
    for before, after in changes:
        assert before in text
        text = text.replace(before, after)
    (family / "changed.toml").write_text(text, encoding="utf-8")
    return jobs_of(read_protocol(family / "changed.toml"))[0]


def prepared(job: Job, folder: Path) -> Path:
    """The folder of a run that has not begun."""
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "run.json", _record(job))
    return folder


def curve(folder: Path) -> list[Any]:
    """Everything that a run measured, but for its seconds."""
    found: list[Any] = []
    for path in sorted(folder.glob("eval-*.json")):
        record = json.loads(path.read_text())
        found.append({key: value for key, value in record.items() if not key.endswith("_seconds")})
        found.append(pl.read_parquet(path.with_suffix(".parquet")).to_dicts())
    return found


def work(folder: Path) -> bool:
    from benchwright.tuning.worker import work as carry_out

    return carry_out(str(folder))


@pytest.mark.slow
@pytest.mark.parametrize("method", ["full", "lora"])
def test_a_kill_at_any_step_goes_on_to_the_same_curve(
    family: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    """The process ends within steps, in scoring and in saving; every time it starts anew."""
    from benchwright.tuning import runner, worker

    job = job_of(family, ('method = "full"', f'method = "{method}"\ndropout = 0.1'), ("every = 8", "every = 4"))
    whole = prepared(job, tmp_path / "whole")
    assert work(whole)

    torn, calls = prepared(job, tmp_path / "torn"), {"left": 0}

    class KilledError(BaseException):
        pass

    def sometimes(real: Any) -> Any:
        def call(*arguments: Any, **named: Any) -> Any:
            calls["left"] -= 1
            if calls["left"] < 0:
                raise KilledError
            return real(*arguments, **named)

        return call

    monkeypatch.setattr(runner.Tuner, "_one", sometimes(runner.Tuner._one))
    monkeypatch.setattr(runner, "write_state", sometimes(runner.write_state))
    monkeypatch.setattr(worker._Run, "_look", sometimes(worker._Run._look))
    for tries in range(40):
        calls["left"] = 5 + tries % 4
        try:
            assert work(torn)
            break
        except KilledError:
            continue
    assert tries > 3
    assert curve(torn) == curve(whole)
    assert not list(torn.glob(".*.partial"))


@pytest.mark.slow
def test_a_killed_command_goes_on_and_costs_at_most_one_interval(family: Path, tmp_path: Path) -> None:
    """kill -9 of the command alone: its process at work ends by itself, and the next command goes on."""
    job = job_of(family, *ONE, ("amount = 24", "amount = 120"), ("every = 8", "every = 20"))
    spec = family / "long.toml"
    text = (family / "changed.toml").read_text().split("[[models]]")
    spec.write_text("[[models]]".join([text[0], text[2]]) + "\n[launch]\nthreads = 1\n", encoding="utf-8")
    out = tmp_path / "out"
    command = [sys.executable, "-m", "benchwright.cli", "tune", str(spec), "-o", str(out), "--no-report"]
    started = subprocess.Popen(command, start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    run = out / "runs" / job.name.replace("tiny", "small")
    while not (run / "eval-000000020.json").is_file() and started.poll() is None:
        time.sleep(0.02)
    os.kill(started.pid, signal.SIGKILL)
    started.wait()
    before = len(list(run.glob("eval-*.json")))
    assert not (run / "done.json").is_file(), "the run ended before it could be killed"
    assert subprocess.run(command, check=False, capture_output=True).returncode == 0
    assert before >= 2
    done = prepared(jobs_of(read_protocol(spec))[0], tmp_path / "whole")
    assert work(done)
    assert curve(run) == curve(done)


@pytest.mark.slow
def test_an_experiment_ends_with_a_panel_scores_and_a_game(family: Path, tmp_path: Path) -> None:
    """Rows are read by `ingest`; means of rows are the scores; more models and a later end are added to the folder."""
    spec, out = family / "tune.toml", tmp_path / "out"
    spec.write_text(PROTOCOL + "\n[adversary]\nevery = 2\nmaximum = 6\nlevels = [8]\n[launch]\nthreads = 1\n")
    done = run_tuning(spec, out)
    assert not done.failed
    assert done.points.height == 2 * 2 * 4
    assert set(done.answers) == {"colours"}
    read_logs(out / "rows.parquet", tmp_path / "panel")
    rows = Panel.open(tmp_path / "panel").rows().filter(pl.col("metric") == "acc").collect()
    means = rows.group_by("model", "step", "seed").agg(pl.col("value").mean(), pl.col("cluster").n_unique())
    joined = done.points.join(means, left_on=["model", "steps", "seed"], right_on=["model", "step", "seed"])
    assert joined.height == done.points.height
    assert np.allclose(joined["score"], joined["value"], atol=1e-9)
    assert (joined["cluster"] == 24).all()
    over_seeds = done.points.group_by("model", "steps").agg(pl.col("score").mean())
    both = done.scores.join(over_seeds, left_on=["model", "step"], right_on=["model", "steps"])
    assert np.allclose(both["score"], both["score_right"])
    assert (done.scores["seeds"] == 2).all()

    table = done.adversaries
    assert table.height == 2
    assert table["target"].n_unique() == 1
    for row in table.iter_rows(named=True):
        assert row["censored"] == (row["needed"] is None)
        assert row["needed_above"] <= 6
    assert done.overtaking.height == 1
    assert json.loads((out / "summary.json").read_text())["overtaking"][0]["seeds"] == 2
    used = json.loads((out / "protocol.json").read_text())["used"]["colours-tiny-seed0"]
    assert len(used["weights"]) == len(used["files"]["train"]) == 64
    assert "torch" in used["versions"]

    written = {path: path.stat().st_mtime_ns for path in out.rglob("eval-*.parquet")}
    spec.write_text(spec.read_text().replace("amount = 24", "amount = 32"))
    again = run_tuning(spec, out)
    assert again.points["steps"].max() == 32
    assert {path for path in written if path.stat().st_mtime_ns != written[path]} == set()


def test_an_adversary_stops_where_it_has_passed(family: Path, tmp_path: Path) -> None:
    """A target below its score is passed at the first look, one above 1 never; it goes on exactly from its state."""
    from benchwright.tuning.plan import Chase

    job = replace(job_of(family), kept=(8.0,))
    start = prepared(job, tmp_path / "run")
    assert work(start)
    state = str(start / "level-000000008.pt")
    ends = {}
    for name, target in (("low", -1.0), ("high", 2.0)):
        chase = Chase(state, 8.0, "other", target, every=2, maximum=5, confirm=2)
        folder = prepared(replace(job, name=name, kept=(), chase=chase), tmp_path / name)
        assert work(folder)
        ends[name] = json.loads((folder / "done.json").read_text())
    assert (ends["low"]["start"], ends["low"]["passed"], ends["low"]["last"]) == (8, 10, 12)
    assert (ends["high"]["passed"], ends["high"]["last"]) == (None, 13)


def test_an_annealed_run_ends_at_its_level_with_a_rate_of_nothing(family: Path, tmp_path: Path) -> None:
    """Its curve is not that of the longer run: levels are runs of their own."""
    from benchwright.tuning.runner import Tuner

    changes = (("every = 8", 'schedule = "annealed"'), ('method = "full"', 'method = "full"\nwarmup = 4'))
    job_of(family, *changes)
    runs = [job for job in jobs_of(read_protocol(family / "changed.toml")) if job.name.startswith("colours-tiny-seed0")]
    ends = []
    for job in runs:
        folder = prepared(job, tmp_path / job.name)
        assert work(folder)
        ends.append([record["steps"] for record in curve(folder)[::2]])
    assert ends == [[0, 8], [24]]
    tuner = Tuner.__new__(Tuner)
    tuner._settings, tuner.total = runs[1].settings, 24
    rates = [tuner.rate(step) / 0.003 for step in range(25)]
    assert rates[24] == 0
    assert rates[0] == 0.25
    assert rates[4:] == sorted(rates[4:], reverse=True)


def test_effort_in_tokens_is_counted_as_tokens(family: Path, tmp_path: Path) -> None:
    job = job_of(
        family, ("amount = 24\nevery = 8\nlevels = [0, 8, 24]", 'effort = "tokens"\namount = 900\nevery = 300')
    )
    folder = prepared(job, tmp_path / "run")
    assert work(folder)
    records = curve(folder)[::2]
    asked = [0, 300, 600, 900]
    assert len(records) == 4
    most = 8 * 64
    for record, effort in zip(records, asked, strict=True):
        assert effort <= record["effort"] < effort + most
        assert record["effort"] == record["tokens"]


def test_a_later_point_between_earlier_ones_makes_the_run_again(family: Path, tmp_path: Path) -> None:
    folder = prepared(job_of(family), tmp_path / "run")
    assert work(folder)
    finer = job_of(family, ("every = 8", "every = 4"))
    (folder / "done.json").unlink()
    assert work(prepared(finer, folder))
    whole = prepared(finer, tmp_path / "whole")
    assert work(whole)
    assert curve(folder) == curve(whole)


@pytest.mark.parametrize("method", ["full", "lora"])
def test_bfloat16_tunes_and_scores_about_the_same(family: Path, tmp_path: Path, method: str) -> None:
    losses = []
    for precision in ("float32", "bfloat16"):
        job = job_of(family, ('method = "full"', f'method = "{method}"\nprecision = "{precision}"'))
        folder = prepared(job, tmp_path / precision)
        assert work(folder)
        losses.append([record["loss"] for record in curve(folder)[2::2]])
    assert losses[0] != losses[1]
    assert losses[0] == pytest.approx(losses[1], rel=0.05)


def test_a_killed_adversary_goes_on_to_the_same_end(
    family: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from benchwright.tuning import worker
    from benchwright.tuning.plan import Chase

    job = replace(job_of(family), kept=(8.0,))
    start = prepared(job, tmp_path / "run")
    assert work(start)
    chase = Chase(str(start / "level-000000008.pt"), 8.0, "other", 2.0, every=2, maximum=8, confirm=2)
    job = replace(job, name="chase", kept=(), chase=chase)
    whole, torn = prepared(job, tmp_path / "whole"), prepared(job, tmp_path / "torn")
    assert work(whole)
    real, looks = worker._Run._look, {"left": 0}

    def look(run: Any, *arguments: Any) -> Any:
        looks["left"] -= 1
        if looks["left"] < 0:
            raise KeyboardInterrupt
        return real(run, *arguments)

    monkeypatch.setattr(worker._Run, "_look", look)
    for _ in range(3):
        looks["left"] = 1
        with pytest.raises(KeyboardInterrupt):
            work(torn)
    looks["left"] = 1
    assert work(torn)
    assert curve(torn) == curve(whole)


def test_parts_of_a_batch_make_the_same_step(family: Path, tmp_path: Path) -> None:
    """The gradient of a batch is that of its parts, whatever their answers' lengths."""
    curves = []
    for parts in (1, 3):
        job = job_of(family, ("batch = 8", f"batch = 8\nparts = {parts}"), ("amount = 24", "amount = 8"), ("24]", "8]"))
        folder = prepared(job, tmp_path / str(parts))
        assert work(folder)
        curves.append([record["loss"] for record in curve(folder)[2::2]])
    assert curves[0] == pytest.approx(curves[1], rel=1e-4)


def test_predictions_are_those_of_whole_sequences_one_by_one(family: Path) -> None:
    """Padding, the window of logits and the order of a batch change nothing."""
    import torch

    from benchwright.tuning.evaluate import ItemScorer
    from benchwright.tuning.items import read_items
    from benchwright.tuning.models import open_model
    from benchwright.tuning.protocol import Benchmark
    from benchwright.tuning.settings import TuningSettings

    benchmark = Benchmark(train="train.jsonl", test="test.jsonl", template="Question: {question} Answer:")
    items = read_items(family / "test.jsonl", benchmark)
    opened = open_model(str(family / "small"), None, TuningSettings(amount=1, device="cpu"), seed=0)
    scored = ItemScorer(opened, items, max_length=64, batch=7).score()
    for row, item in zip(scored.iter_rows(named=True), items, strict=True):
        for place, (prompt, answer) in enumerate(item.pairs):
            start = len(opened.tokenizer(prompt)["input_ids"])
            ids = torch.tensor([opened.tokenizer(prompt + answer)["input_ids"]])
            with torch.no_grad():
                logits = torch.log_softmax(opened.model(input_ids=ids).logits[0].double(), dim=-1)
            alone = sum(float(logits[k - 1, ids[0, k]]) for k in range(start, ids.shape[1]))
            assert row["logprob"][place] == pytest.approx(alone, abs=1e-3)


def test_the_best_checkpoint_is_that_of_the_validation_items(family: Path, tmp_path: Path) -> None:
    from benchwright.tuning.scores import before_after

    job = job_of(
        family,
        *ONE,
        ("amount = 24\nevery = 8\nlevels = [0, 8, 24]", 'epochs = 2\nselect = "best"'),
        ('test = "test.jsonl"', 'test = "test.jsonl"\nvalidation_share = 0.25'),
    )
    folder = prepared(job, tmp_path / "run")
    assert work(folder)
    records = curve(folder)[::2]
    assert [record["steps"] for record in records] == [0, 5, 9]
    assert all(record["validation"] is not None for record in records)
    points = pl.DataFrame(
        {
            "task": "t",
            "model": "m",
            "seed": 0,
            "place": [0, 1, 2],
            "score": [0.1, 0.5, 0.4],
            "validation": [0.2, 0.9, 0.9],
        }
    )
    assert before_after(points, best=True).row(0) == ("m", 0.1, 0.5)
    assert before_after(points, best=False).row(0) == ("m", 0.1, 0.4)


@pytest.mark.gpu
def test_a_gpu_gives_the_curve_of_the_cpu(family: Path, tmp_path: Path) -> None:
    """Up to rounding, in the first steps."""
    losses = []
    for device in ("cpu", "cuda"):
        job = job_of(family, ('device = "cpu"', f'device = "{device}"'))
        folder = prepared(job, tmp_path / device)
        assert work(folder)
        losses.append([record["loss"] for record in curve(folder)[2::2]])
    assert losses[0] == pytest.approx(losses[1], rel=1e-2)
