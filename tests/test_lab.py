"""The lab: what is asked, how it is scored, that a killed training goes on, and the scaled-down lab as a whole."""

from __future__ import annotations

import sys
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest

LAB = Path(__file__).parents[1] / "examples" / "lab"
sys.path.append(str(LAB))

from world import ASKED, KNOWN, TASKS, World  # noqa: E402

if TYPE_CHECKING:
    from models import Pretraining

SMALL = World(train_firms=12, test_firms=10)


def test_a_seed_makes_one_world() -> None:
    again, other = World(12, 10), World(12, 10, seed=9)
    assert again.items("test") == SMALL.items("test")
    assert other.items("test") != SMALL.items("test")
    texts = [list(islice(world.sentences(np.random.default_rng(3)), 50)) for world in (SMALL, again)]
    assert texts[0] == texts[1]


def test_splits_share_no_firm() -> None:
    firms = {split: {item.firm for item in SMALL.items(split)} for split in ("train", "test")}
    assert len(firms["train"]) == 12
    assert len(firms["test"]) == 10
    assert not firms["train"] & firms["test"]


@pytest.mark.parametrize("split", ["train", "test"])
def test_every_item_has_one_right_answer(split: str) -> None:
    items = SMALL.items(split)
    assert len({item.doc_id for item in items}) == len(items)
    for item in items:
        assert len(set(item.choices)) == len(item.choices) >= 2
        numbers = [int(word) for word in "".join(c if c.isdigit() else " " for c in item.question).split()]
        gold = item.choices[item.answer]
        if item.task in KNOWN:
            assert gold == SMALL.facts[item.firm][item.task]
        elif item.task == "sums":
            assert int(gold) == sum(numbers)
        elif item.task == "visits":
            assert int(gold) == min(numbers)
        else:
            limit, given = numbers
            assert gold == ("Yes" if given > limit else "No")


def test_the_benchmark_is_never_in_the_pretraining_text() -> None:
    text = " ".join(islice(SMALL.sentences(np.random.default_rng(0)), 3_000))
    beginnings = {wording.split("{")[0].strip() for wordings in ASKED.values() for wording in wordings}
    assert all(beginning not in text for beginning in beginnings if beginning)
    assert all(item.question not in text for item in SMALL.items("test"))
    assert all(firm in text for firm in SMALL.firms)  # the facts are there in other words


def test_the_lab_is_large_enough() -> None:
    items = World().items("test")
    assert len(items) >= 1_200
    assert {item.task for item in items} == set(TASKS)
    assert 0.5 / np.sqrt(len(items)) <= 0.015


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Any:
    from models import make_tokenizer

    return make_tokenizer(SMALL, tmp_path_factory.mktemp("tokenizer"))


def trained(steps: int = 6) -> Pretraining:
    from models import Pretraining

    return Pretraining(steps=steps, checkpoints=(steps // 2, steps), batch=4, length=32, rate=0.1)


@pytest.mark.tuning
@pytest.mark.filterwarnings("ignore")  # of the libraries
def test_a_checkpoint_keeps_its_tokenizer(tokenizer: Any, tmp_path: Path) -> None:
    """With some model types transformers puts another tokenizer in place of the one that was saved."""
    from models import Size, checkpoint, pretrain
    from transformers import AutoTokenizer

    pretrain(Size("t", 32), SMALL, tokenizer, tmp_path, how=trained(), seed=0)
    found = AutoTokenizer.from_pretrained(checkpoint(tmp_path, 6))
    text = SMALL.items("test")[-1].prompt + " 1500"
    assert found(text)["input_ids"] == tokenizer(text)["input_ids"]


@pytest.mark.tuning
@pytest.mark.filterwarnings("ignore")  # of the libraries
def test_rows_score_as_one_sequence_a_choice(tokenizer: Any, tmp_path: Path) -> None:
    import torch
    from models import Size, checkpoint, load, pretrain
    from scoring import Scorer

    pretrain(Size("t", 32), SMALL, tokenizer, tmp_path, how=trained(), seed=0)
    model = load(checkpoint(tmp_path, 6))
    items = SMALL.items("test")
    probability, margin = Scorer(items, tokenizer, batch=7)(model)
    for item, p, lead in zip(items, probability, margin, strict=True):
        prompt, total = tokenizer(item.prompt)["input_ids"], []
        for choice in item.choices:
            ids = tokenizer(f" {choice}")["input_ids"]
            with torch.inference_mode():
                logits = model(input_ids=torch.tensor([prompt + ids])).logits[0, len(prompt) - 1 : -1]
            total.append(torch.log_softmax(logits, -1)[np.arange(len(ids)), ids].sum().item())
        others = np.delete(total, item.answer)
        assert p == pytest.approx(np.exp(total[item.answer]) / np.exp(total).sum(), abs=1e-4)
        assert lead == pytest.approx(total[item.answer] - others.max(), abs=1e-3)


@pytest.mark.tuning
@pytest.mark.filterwarnings("ignore")  # of the libraries
def test_a_killed_training_goes_on_to_the_same_weights(tokenizer: Any, tmp_path: Path) -> None:
    from models import Size, checkpoint, load, pretrain

    def killed(_: str) -> None:
        raise KeyboardInterrupt

    size, how = Size("t", 32), trained()
    pretrain(size, SMALL, tokenizer, tmp_path / "whole", how=how, seed=1)
    with pytest.raises(KeyboardInterrupt):
        pretrain(size, SMALL, tokenizer, tmp_path / "killed", how=how, seed=1, say=killed)
    assert not checkpoint(tmp_path / "killed", 6).exists()
    pretrain(size, SMALL, tokenizer, tmp_path / "killed", how=how, seed=1)
    one, two = (load(checkpoint(tmp_path / name, 6)).state_dict() for name in ("whole", "killed"))
    assert all(one[key].equal(two[key]) for key in one)
    assert list((tmp_path / "killed").rglob("optimizer.pt")) == []


@pytest.mark.tuning
@pytest.mark.filterwarnings("ignore")  # of the libraries
def test_reward_alone_teaches(tokenizer: Any, tmp_path: Path) -> None:
    from models import Size, checkpoint, load, pretrain
    from reward import Rewarded, train_by_reward
    from scoring import Scorer

    pretrain(Size("t", 32), SMALL, tokenizer, tmp_path, how=trained(), seed=0)
    model, items, found = load(checkpoint(tmp_path, 6)), SMALL.items("train")[-12:], {}
    scorer = Scorer(items, tokenizer)
    before = float(scorer(model)[0].mean())

    def at_dose(step: int, model: Any) -> None:
        found[step] = float(scorer(model)[0].mean())

    how = Rewarded(doses=(40, 80), batch=12, rate=1e-2)
    train_by_reward(model, items, tokenizer, how=how, seed=0, at_dose=at_dose)
    assert sorted(found) == [40, 80]
    assert found[80] > before + 0.1


@pytest.mark.slow
@pytest.mark.tuning
@pytest.mark.filterwarnings("ignore")  # of the libraries
def test_from_nothing_to_a_panel(tmp_path: Path) -> None:
    """The scaled-down lab, killed once on its way: tuning lifts the largest size and puts the sizes in order."""
    import os
    import signal
    import subprocess
    import time

    from scipy.stats import kendalltau

    from benchwright.audit_inputs import is_panel

    out = tmp_path / "lab"
    command = [sys.executable, str(LAB / "make_lab.py"), "-o", str(out), "--scale", "ci"]
    first = subprocess.Popen(command, stderr=subprocess.PIPE, start_new_session=True)
    while first.poll() is None and not list(out.rglob("done.json")):
        time.sleep(0.2)
    assert first.poll() is None
    os.killpg(first.pid, signal.SIGKILL)
    first.communicate()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert is_panel(out / "panel" / "acc.parquet")

    scores = pl.read_csv(out / "tuning" / "scores.csv").sort("step")
    size = pl.col("model").str.extract(r"(\d+)$").cast(pl.Int64)
    tuned = scores.filter(pl.col("step") == scores["step"].max()).with_columns(size=size).sort("size")
    assert kendalltau(tuned["size"], tuned["score"]).statistic >= 0.6
    largest = scores.filter(pl.col("model") == tuned["model"][-1])
    rise = largest["score"][-1] - largest["score"][0]
    assert rise >= 3 * np.hypot(largest["stderr"][-1], largest["stderr"][0])
