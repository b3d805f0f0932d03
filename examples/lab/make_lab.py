"""Make the lab: train tiny models from nothing, dose them three ways, score every item, and pack a panel.

    python examples/lab/make_lab.py -o lab/               # the whole lab
    python examples/lab/make_lab.py -o lab/ --scale ci    # a small one, in three minutes

1. Pre-training (axis PT): a model a size and seed, on text of a made-up world, scored at checkpoints.
2. Reward (axis RL): policy gradient on the benchmark's train split, from the last checkpoint.
3. Tuning (axis SFT): ``benchwright tune`` from the last checkpoint, with curves, game and adversaries.
4. Packing: a panel, items with welfare, prices.

Two processes at a time. What is finished is not done again: a killed run goes on with the same command. Needs
``pip install 'benchwright[tune,baseline]'``; nothing is downloaded.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field
from pathlib import Path

SINGLE = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
OFFLINE = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
if __name__ == "__main__":  # before torch is imported, here or in processes that this one starts
    os.environ.update(dict.fromkeys((*SINGLE, *OFFLINE), "1") | {"TOKENIZERS_PARALLELISM": "false"})

import numpy as np  # noqa: E402
from models import Pretraining, Size, checkpoint, load, make_tokenizer, pretrain  # noqa: E402
from numpy.typing import NDArray  # noqa: E402
from reward import Rewarded, train_by_reward  # noqa: E402
from scoring import Scorer  # noqa: E402
from world import SPLITS, World  # noqa: E402

Scores = tuple[NDArray[np.float64], NDArray[np.float64]]
PROTOCOL = "tune.toml"
QUIZ, PLAIN = 0.1, 0.01  # share of pre-training text that asks and answers, by family


@dataclass(frozen=True, slots=True)
class Supervised:
    """How models are tuned by ``benchwright tune``; ``points`` are steps, ``levels`` those that are common tuning."""

    points: tuple[int, ...] = (0, 10, 25, 50, 100, 200, 400)
    levels: tuple[int, ...] = (0, 25, 100)
    batch: int = 16
    rate: float = 2e-3
    chase_every: int = 10
    chase_most: int = 400
    gap: int = 200  # a rank is worth so many steps


@dataclass(frozen=True, slots=True)
class Lab:
    """What a lab trains."""

    world: World = field(default_factory=World)
    sizes: tuple[Size, ...] = (
        *(Size(f"quiz-{hidden}", hidden, quiz=QUIZ) for hidden in (32, 48, 96)),
        *(Size(f"plain-{hidden}", hidden, quiz=PLAIN) for hidden in (64, 128)),
    )
    seeds: tuple[int, ...] = (0, 1, 2)
    pretraining: Pretraining = field(default_factory=Pretraining)
    supervised: Supervised = field(default_factory=Supervised)
    rewarded: Rewarded = field(default_factory=Rewarded)

    @property
    def runs(self) -> list[tuple[Size, int]]:
        """Size and seed of each model, the longest training first."""
        return [(size, seed) for size in sorted(self.sizes, key=lambda one: -one.hidden) for seed in self.seeds]

    @property
    def middle(self) -> str:
        """Name of the model of middle size, the anchor of costs."""
        return sorted(self.sizes, key=lambda one: one.hidden)[len(self.sizes) // 2].name


LABS = {
    "full": Lab(),
    "ci": Lab(
        world=World(train_firms=60, test_firms=60),
        sizes=(Size("quiz-32", 32, quiz=QUIZ), Size("plain-64", 64, quiz=PLAIN), Size("plain-96", 96, quiz=PLAIN)),
        seeds=(0, 1),
        pretraining=Pretraining(steps=350, checkpoints=(100, 200, 350)),
        supervised=Supervised(points=(0, 10, 25, 50, 100, 200), levels=(50,), chase_every=25, chase_most=100),
        rewarded=Rewarded(doses=(50,)),
    ),
}


def run_one(scale: str, size: Size, seed: int, work: Path, say: Callable[[str], None]) -> None:
    """Pre-train one model, train it by reward and score every checkpoint; writes ``scores-AXIS-STEP.npz`` files."""
    import torch
    from transformers import PreTrainedTokenizerFast

    torch.set_num_threads(1)
    quiet()
    lab, own = LABS[scale], work / f"{size.name}-seed{seed}"
    tokenizer = PreTrainedTokenizerFast.from_pretrained(work / "tokenizer")
    pretrain(size, lab.world, tokenizer, own, how=lab.pretraining, seed=seed, say=say)
    scorer = Scorer(lab.world.items("test"), tokenizer)
    for step in lab.pretraining.checkpoints:
        if not scores_file(own, "PT", step).is_file():
            keep(own, "PT", step, scorer(load(checkpoint(own, step))))
    if all(scores_file(own, "RL", step).is_file() for step in lab.rewarded.doses):
        return
    began, scoring = time.process_time(), 0.0

    def at_dose(step: int, model: object) -> None:
        nonlocal scoring
        since = time.process_time()
        keep(own, "RL", step, scorer(model))
        scoring += time.process_time() - since

    model = load(checkpoint(own, lab.pretraining.steps))
    train_by_reward(model, lab.world.items("train"), tokenizer, how=lab.rewarded, seed=seed, at_dose=at_dose)
    spent = time.process_time() - began - scoring
    (own / "seconds-RL.json").write_text(json.dumps(round(spent, 2)), encoding="utf-8")
    say(f"{size.name} seed {seed} reward: {spent:.1f} s, and {scoring:.1f} s of scoring")


def scores_file(own: Path, axis: str, step: int) -> Path:
    """Return where the scores of one dose are kept."""
    return own / f"scores-{axis}-{step}.npz"


def keep(own: Path, axis: str, step: int, scores: Scores) -> None:
    """Write the scores of one dose, whole or not at all."""
    target = scores_file(own, axis, step)
    fresh = target.with_suffix(".new.npz")
    np.savez(fresh, p_gold=scores[0].astype(np.float32), margin=scores[1].astype(np.float32))
    fresh.replace(target)


def protocol_text(lab: Lab, processes: int) -> str:
    """Return the protocol of the supervised tuning."""
    how = lab.supervised
    lines = [f"seeds = {list(lab.seeds)}", ""]
    for size in lab.sizes:
        path = f"work/{size.name}-seed{{seed}}/step-{lab.pretraining.steps}"
        lines += ["[[models]]", f'name = "{size.name}"', f'path = "{path}"', ""]
    lines += ["[[benchmarks]]", 'name = "lab"', 'train = "benchmark/train.jsonl"', 'test = "benchmark/test.jsonl"']
    lines += [r'template = "{question}\nAnswer:"', "", "[tuning]", f"amount = {how.points[-1]}"]
    lines += [f"at = {list(how.points)}", f"levels = {list(how.levels)}", f"batch = {how.batch}"]
    lines += [f"learning_rate = {how.rate}", 'device = "cpu"', "eval_batch = 256", ""]
    lines += ["[adversary]", f"every = {how.chase_every}", f"maximum = {how.chase_most}", ""]
    lines += ["[launch]", f"workers = {processes}", "threads = 1", ""]
    lines += ["[game]", f'rewards = {{ form = "per-rank", gap = {how.gap} }}  # in steps', "race = true"]
    lines += ["designer = { price = 1.0 }  # a step costs the designer what it costs a developer"]
    lines += [f"deltas = {sorted({*how.levels, how.points[-1]})}", ""]
    return "\n".join(lines)


def quiet() -> None:
    """Silence bars and warnings of the libraries."""
    import warnings

    from transformers.utils import logging

    logging.disable_progress_bar()
    logging.set_verbosity_error()
    warnings.filterwarnings("ignore")


def told(text: str) -> None:
    """Print to stderr at once."""
    print(text, file=sys.stderr, flush=True)


class Often:
    """Prints what is said often, where it is new, at most once in a while."""

    def __init__(self, seconds: float = 15.0) -> None:
        self._seconds, self._last, self._at = seconds, "", -seconds

    def __call__(self, text: str) -> None:
        """Print, or not."""
        if text != self._last and time.monotonic() - self._at >= self._seconds:
            self._last, self._at = text, time.monotonic()
            told(text)


def make(folder: Path, scale: str, processes: int, activities: Path | None = None) -> None:
    """Make the lab in a folder; ``activities`` is a table of values for the welfare."""
    from pack import PUBLISHED, pack, write_lines

    from benchwright.tuning.run import run_tuning

    lab, work = LABS[scale], folder / "work"
    work.mkdir(parents=True, exist_ok=True)
    facts, recipe = json.dumps(asdict(lab), indent=1, sort_keys=True), work / "lab.json"
    if recipe.is_file() and recipe.read_text(encoding="utf-8") != facts:
        sys.exit(f"{folder} holds a lab of another recipe\nHint: choose another folder with -o")
    recipe.write_text(facts, encoding="utf-8")
    if not (work / "tokenizer" / "tokenizer_config.json").is_file():
        make_tokenizer(lab.world, work / "tokenizer")
    for split in SPLITS:
        write_lines(folder / "benchmark" / f"{split}.jsonl", [item.to_dict() for item in lab.world.items(split)])
    (folder / PROTOCOL).write_text(protocol_text(lab, processes), encoding="utf-8")
    began = time.time()
    with ProcessPoolExecutor(processes) as pool:
        runs = {pool.submit(run_one, scale, *run, work, told): run for run in lab.runs}
        for number, run in enumerate(as_completed(runs), 1):
            run.result()
            size, seed = runs[run]
            told(f"[{number}/{len(runs)}] {size.name} seed {seed}, {time.time() - began:.0f} s so far")
    told("tuning")
    tuned = run_tuning(folder / PROTOCOL, folder / "tuning", progress=Often())
    told(str(tuned))
    if tuned.failed:
        sys.exit("runs failed; the same command tries them again")
    pack(lab, work, folder, activities=PUBLISHED if activities is None else activities)
    told(f"{folder}: done after {time.time() - began:.0f} s")


def main() -> None:
    """Read the command line and make the lab."""
    parser = argparse.ArgumentParser(description="Train the lab's models and pack their panel.")
    parser.add_argument("-o", "--out", type=Path, default=Path("lab"), help="folder to write")
    parser.add_argument("--scale", choices=sorted(LABS), default="full")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--activities", type=Path, help="values of activities for the welfare, else the published")
    given = parser.parse_args()
    make(given.out, given.scale, given.processes, given.activities)


if __name__ == "__main__":
    main()
