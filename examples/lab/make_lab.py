"""Make the lab: train tiny models from nothing, dose them three ways, score every item, and pack a panel.

    python examples/lab/make_lab.py -o lab/               # <= 45 minutes on two cores
    python examples/lab/make_lab.py -o lab/ --scale ci    # <= 3 minutes

One process a model (a size and a seed), two at a time. What is finished is not done again: a killed run goes on with
the same command. Needs ``pip install 'benchwright[tune,baseline]'``; nothing is downloaded.
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

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
OFFLINE = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
if __name__ in ("__main__", "__mp_main__"):  # before torch is imported, also in the processes that this one starts
    os.environ.update(dict.fromkeys((*THREADS, *OFFLINE), "1") | {"TOKENIZERS_PARALLELISM": "false"})

import numpy as np  # noqa: E402
from doses import Kind, Tuning, tune  # noqa: E402
from models import Pretraining, Size, checkpoint, load, make_tokenizer, pretrain  # noqa: E402
from scoring import Scorer  # noqa: E402
from world import World  # noqa: E402


@dataclass(frozen=True, slots=True)
class Lab:
    """What a lab trains."""

    world: World = field(default_factory=World)
    sizes: tuple[Size, ...] = tuple(Size(f"tiny-{hidden}", hidden) for hidden in (32, 48, 64, 96, 128))
    seeds: tuple[int, ...] = (0, 1, 2)
    pretraining: Pretraining = field(default_factory=Pretraining)
    supervised: Tuning = field(default_factory=Tuning)
    rewarded: Tuning = field(default_factory=lambda: Tuning(doses=(0, 50, 100, 200, 400)))

    @property
    def runs(self) -> list[tuple[Size, int]]:
        """Size and seed of each model, the longest training first."""
        return [(size, seed) for size in sorted(self.sizes, key=lambda one: -one.hidden) for seed in self.seeds]


LABS = {
    "full": Lab(),
    "ci": Lab(
        world=World(train_firms=60, test_firms=60),
        sizes=tuple(Size(f"tiny-{hidden}", hidden) for hidden in (32, 64, 128)),
        seeds=(0, 1),
        pretraining=Pretraining(steps=300, checkpoints=(100, 200, 300)),
        supervised=Tuning(doses=(0, 50, 100, 200)),
        rewarded=Tuning(doses=(0, 100)),
    ),
}


def run_one(scale: str, size: Size, seed: int, folder: Path, say: Callable[[str], None]) -> None:
    """Train one model, tune it both ways and score every checkpoint; writes ``scores-AXIS-STEP.npz`` files."""
    import torch
    from transformers import PreTrainedTokenizerFast

    torch.set_num_threads(1)
    quiet()
    lab = LABS[scale]
    own = folder / f"{size.name}-seed{seed}"
    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder / "tokenizer")
    pretrain(size, lab.world, tokenizer, own, how=lab.pretraining, seed=seed, say=say)
    scorer = Scorer(lab.world.items("test"), tokenizer)
    for step in lab.pretraining.checkpoints:
        if not scores_file(own, "PT", step).is_file():
            keep(own, "PT", step, scorer(load(checkpoint(own, step))))
    final = checkpoint(own, lab.pretraining.checkpoints[-1])
    train = lab.world.items("train")
    ways: tuple[tuple[Kind, Tuning], ...] = (("SFT", lab.supervised), ("RL", lab.rewarded))
    for kind, how in ways:
        if all(scores_file(own, kind, step).is_file() for step in how.doses):
            continue
        began, scoring = time.process_time(), 0.0

        def at_dose(step: int, model: object, kind: Kind = kind) -> None:
            nonlocal scoring
            since = time.process_time()
            keep(own, kind, step, scorer(model))
            scoring += time.process_time() - since

        tune(load(final), train, tokenizer, kind=kind, how=how, seed=seed, at_dose=at_dose)
        spent = time.process_time() - began - scoring
        (own / f"seconds-{kind}.json").write_text(json.dumps(round(spent, 2)), encoding="utf-8")
        say(f"{size.name} seed {seed} {kind}: {spent:.1f} s, and {scoring:.1f} s of scoring")


def scores_file(own: Path, axis: str, step: int) -> Path:
    """Return where the scores of one dose are kept."""
    return own / f"scores-{axis}-{step}.npz"


def keep(own: Path, axis: str, step: int, scores: tuple[np.ndarray, np.ndarray]) -> None:
    """Write the scores of one dose, whole or not at all."""
    probability, margin = scores
    target = scores_file(own, axis, step)
    fresh = target.with_suffix(".new.npz")
    np.savez(fresh, p_gold=probability.astype(np.float32), margin=margin.astype(np.float32))
    fresh.replace(target)


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


def make(folder: Path, scale: str, processes: int) -> None:
    """Make the lab in a folder."""
    from pack import pack

    lab, work = LABS[scale], folder / "work"
    work.mkdir(parents=True, exist_ok=True)
    facts = json.dumps(asdict(lab), indent=1, sort_keys=True)
    recipe = work / "lab.json"
    if recipe.is_file() and recipe.read_text(encoding="utf-8") != facts:
        sys.exit(f"{folder} holds a lab of another recipe\nHint: choose another folder with -o")
    recipe.write_text(facts, encoding="utf-8")
    if not (work / "tokenizer" / "tokenizer.json").is_file():
        make_tokenizer(lab.world, work / "tokenizer")
    began = time.time()
    with ProcessPoolExecutor(processes) as pool:
        runs = {
            pool.submit(run_one, scale, size, seed, work, told): f"{size.name} seed {seed}" for size, seed in lab.runs
        }
        for number, run in enumerate(as_completed(runs), 1):
            run.result()
            told(f"[{number}/{len(runs)}] {runs[run]}, {time.time() - began:.0f} s so far")
    pack(lab, work, folder)
    told(f"{folder}: done after {time.time() - began:.0f} s")


def main() -> None:
    """Read the command line and make the lab."""
    parser = argparse.ArgumentParser(description="Train the lab's models and pack their panel.")
    parser.add_argument("-o", "--out", type=Path, default=Path("lab"), help="folder to write")
    parser.add_argument("--scale", choices=sorted(LABS), default="full")
    parser.add_argument("--processes", type=int, default=2)
    given = parser.parse_args()
    make(given.out, given.scale, given.processes)


if __name__ == "__main__":
    main()
