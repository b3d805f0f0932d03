"""Tuning on a task of lm-eval whose data are on this machine: its train split, its evaluation, its errors."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from benchwright.tuning.folder import write_json
from benchwright.tuning.items import read_items
from benchwright.tuning.jobs import _record
from benchwright.tuning.plan import jobs_of
from benchwright.tuning.protocol import Benchmark, read_protocol
from benchwright.tuning.run import run_tuning
from tiny_models import COLOURS, write_items, write_model

pytestmark = [pytest.mark.tuning, pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
YAML = """
task: tiny_colours
dataset_path: json
dataset_kwargs:
  data_files:
    train: {folder}/train.jsonl
    test: {folder}/test.jsonl
output_type: multiple_choice
training_split: train
test_split: test
doc_to_text: "Question: {{{{question}}}} Answer:"
doc_to_choice: "{{{{choices}}}}"
doc_to_target: answer
metric_list:
  - metric: acc
  - metric: acc_norm
"""
SPEC = """
models = ["./tiny"]
[[benchmarks]]
name = "colours"
task = "tiny_colours"
include = "tasks"
limit = 16
[tuning]
method = "lora"
amount = 6
every = 3
batch = 4
learning_rate = 0.01
device = "cpu"
max_length = 64
[launch]
threads = 1
"""


@pytest.fixture(scope="module")
def family(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lm_eval")
    write_items(folder)
    write_model(folder / "tiny")
    (folder / "tasks").mkdir()
    text = YAML.format(folder=folder)
    (folder / "tasks" / "tiny.yaml").write_text(text, encoding="utf-8")
    no_train = text.replace("training_split: train\n", "").replace("tiny_colours", "tiny_without")
    (folder / "tasks" / "without.yaml").write_text(no_train, encoding="utf-8")
    free = text.replace("multiple_choice", "generate_until").replace("tiny_colours", "tiny_free")
    free = "\n".join(line for line in free.splitlines() if "doc_to_choice" not in line and "acc" not in line)
    free = free.replace("metric_list:", "metric_list:\n  - metric: exact_match")
    (folder / "tasks" / "free.yaml").write_text(free, encoding="utf-8")
    gone = text.replace("test.jsonl", "gone.jsonl").replace("tiny_colours", "tiny_gone")
    (folder / "tasks" / "gone.yaml").write_text(gone, encoding="utf-8")
    (folder / "tune.toml").write_text(SPEC, encoding="utf-8")
    return folder


def test_a_local_task_runs_offline_and_agrees_with_our_scorer(family: Path, tmp_path: Path) -> None:
    """The same prompts and choices give the same log-likelihoods through lm-eval and through our own scorer."""
    import torch

    from benchwright.tuning.evaluate import ItemScorer
    from benchwright.tuning.models import open_model

    torch.set_num_threads(1)
    done = run_tuning(family / "tune.toml", tmp_path / "out")
    assert not done.failed
    assert done.points["steps"].to_list() == [0, 3, 6]
    rows = pl.read_parquet(next((tmp_path / "out" / "runs").glob("*/eval-000000000.parquet")))
    assert rows.height == 16
    protocol = read_protocol(family / "tune.toml")
    benchmark = Benchmark(train="train.jsonl", test="test.jsonl", template="Question: {question} Answer:")
    items = read_items(family / "test.jsonl", benchmark)[:16]
    opened = open_model(str(family / "tiny"), None, protocol.tuning, seed=0)
    own = ItemScorer(opened, items, max_length=64, batch=8).score()
    assert np.allclose(rows["logprob"].to_list(), own["logprob"].to_list(), atol=1e-4)
    assert rows["gold"].to_list() == own["gold"].to_list()
    for name in ("acc", "acc_norm", "p_gold", "margin"):
        assert np.allclose(rows[name], own[name], atol=1e-4), name


def test_its_train_split_is_what_the_evaluation_would_ask(family: Path) -> None:
    from benchwright.tuning.lm_eval_task import LmEvalTask

    task = LmEvalTask(Benchmark(task="tiny_colours", include="tasks"), family)
    items = task.items()
    lines = [json.loads(line) for line in (family / "train.jsonl").read_text().splitlines()]
    assert len(items) == len(lines)
    for item, line in zip(items, lines, strict=True):
        assert item.example.prompt == f"Question: {line['question']} Answer:"
        assert item.example.answer == f" {COLOURS[line['answer']]}"


@pytest.mark.parametrize(
    ("task", "kind", "reason"),
    [
        ("tiny_without", "data", "no train split"),
        ("tiny_free", "data", "has no choices"),
        ("tiny_gone", "data", "cannot load the data of tiny_gone"),
        ("no_such_task", "data", "lm-eval has no task no_such_task"),
    ],
)
def test_a_task_that_cannot_be_tuned_on_is_one_clear_error(
    family: Path, tmp_path: Path, task: str, kind: str, reason: str
) -> None:
    from benchwright.tuning.worker import work

    spec = family / f"{task}.toml"
    spec.write_text(SPEC.replace("tiny_colours", task), encoding="utf-8")
    job = jobs_of(read_protocol(spec))[0]
    write_json(tmp_path / "run.json", _record(job))
    assert not work(str(tmp_path))
    failed = json.loads((tmp_path / "failed.json").read_text())
    assert failed["kind"] == kind
    assert reason in failed["message"]
