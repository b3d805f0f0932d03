"""From a lab's scores to what ships: a panel in Parquet, runs, items with texts, welfare, prices and curves.

===========================  =====================================================================================
panel/METRIC.parquet         one row per run and item, as ``benchwright panel export --table rows`` writes them
runs.csv                     the final pre-trained models are dose 0 of tuning too; the anchor of costs
items.jsonl                  task, doc_id, cluster, question, choices, answer of every test item
benchmark/                   train.jsonl and test.jsonl: the same kind of lines, as ``benchwright tune`` reads them
welfare/                     what the offline baseline judge says of the items, and values of activities where given
benchwright.toml             prices of the doses, from the processor time that they took
curves.csv, game.toml        accuracy by step of supervised tuning, per seed, for ``benchwright game``
===========================  =====================================================================================
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

if TYPE_CHECKING:
    from make_lab import Lab
    from world import Item

DIGITS = {"p_gold": 3, "margin": 2, "acc": 0}
UNITS = {"PT": "token", "SFT": "example", "RL": "prompt"}
CORE_HOUR = 0.04  # US dollars: what a rented core costs about
GAME = """# Accuracy of the lab's models by step of supervised tuning, averaged over pre-training seeds.

rewards = {{ form = "per-rank", gap = {gap} }}  # in steps

[cost]
form = "linear"
kappa = 1.0

[curves]
file = "curves.csv"
lower = "shared"
deltas = {deltas}
"""


@dataclass(frozen=True, slots=True)
class Scored:
    """One run: a model's state with the scores of all items."""

    model: str
    seed: int
    axis: str
    step: int
    dose: int
    path: Path


def pack(lab: Lab, work: Path, folder: Path, *, activities: Path | None = None) -> None:
    """Write everything that an audit and a game of the lab need."""
    items = lab.world.items("test")
    runs = list(scored_runs(lab, work))
    panel = folder / "panel"
    panel.mkdir(parents=True, exist_ok=True)
    values = {name: np.stack([column(run.path, name) for run in runs]) for name in DIGITS}
    for name, matrix in values.items():
        write(rows(runs, items, matrix, name), panel / f"{name}.parquet")
    run_facts(lab).write_csv(folder / "runs.csv")
    write_lines(folder / "items.jsonl", [item.to_dict() for item in items])
    for split in ("train", "test"):
        (folder / "benchmark").mkdir(exist_ok=True)
        lines = [item.to_dict() for item in lab.world.items(split)]
        write_lines(folder / "benchmark" / f"{split}.jsonl", lines)
    (folder / "benchwright.toml").write_text(settings(lab, work), encoding="utf-8")
    curves(runs, values["acc"]).write_csv(folder / "curves.csv")
    deltas = [step for step in lab.supervised.doses if step < lab.supervised.doses[-1]]
    game = GAME.format(gap=lab.supervised.doses[-1] // 2, deltas=deltas)
    (folder / "game.toml").write_text(game, encoding="utf-8")
    judge(folder, activities)


def scored_runs(lab: Lab, work: Path) -> Iterator[Scored]:
    """Every run; dose 0 of tuning is the final checkpoint of pre-training and not told again."""
    how = {"SFT": lab.supervised, "RL": lab.rewarded}
    for size in lab.sizes:
        for seed in lab.seeds:
            own = work / f"{size.name}-seed{seed}"
            for step in lab.pretraining.checkpoints:
                dose = step * lab.pretraining.tokens
                yield Scored(size.name, seed, "PT", step, dose, own / f"scores-PT-{step}.npz")
            for axis, tuning in how.items():
                for step in tuning.doses[1:]:
                    yield Scored(size.name, seed, axis, step, step * tuning.batch, own / f"scores-{axis}-{step}.npz")


def column(path: Path, name: str) -> NDArray[np.float64]:
    """Return one score of all items of a run, rounded."""
    with np.load(path) as saved:
        if name == "acc":
            return np.asarray(saved["margin"] > 0, dtype=np.float64)
        exact = np.asarray(saved[name], dtype=np.float64)
        return np.round(exact, DIGITS[name])


def rows(runs: Sequence[Scored], items: Sequence[Item], values: np.ndarray, metric: str) -> pl.DataFrame:
    """Return one row per run and item, as a panel's rows are exported."""
    n = len(items)
    told = pl.DataFrame(
        {
            "model": [run.model for run in runs],
            "seed": [run.seed for run in runs],
            "step": [run.step for run in runs],
            "axis": [run.axis for run in runs],
            "dose": [float(run.dose) for run in runs],
            "dose_unit": [UNITS[run.axis] for run in runs],
            "run_name": [f"{run.model}-seed{run.seed}-{run.axis}-{run.step}" for run in runs],
        }
    )
    known = pl.DataFrame(
        {
            "task": [item.task for item in items],
            "doc_id": [str(item.doc_id) for item in items],
            "cluster": [item.firm for item in items],
        }
    )
    frame = pl.concat(
        [told[np.repeat(np.arange(len(runs)), n)], known[np.tile(np.arange(n), len(runs))]], how="horizontal"
    )
    none = pl.lit(None, dtype=pl.String)
    return frame.with_columns(
        value=pl.Series(values.ravel() + 0.0),
        metric=pl.lit(metric),
        higher_is_better=pl.lit(True),
        status=pl.lit("scored"),
        trials=pl.lit(1, dtype=pl.Int64),
        repeat=pl.lit(0, dtype=pl.Int64),
        revision=none,
        setting=none,
        filter=none,
    )


def write(frame: pl.DataFrame, path: Path) -> None:
    """Write a Parquet file, whole or not at all."""
    fresh = path.with_suffix(".new")
    frame.write_parquet(fresh, compression="zstd", compression_level=19, statistics=False)
    fresh.replace(path)


def run_facts(lab: Lab) -> pl.DataFrame:
    """What rows do not say: untuned models are dose 0 of both ways of tuning; the middle size is the anchor."""
    last = lab.pretraining.checkpoints[-1]
    tokens = last * lab.pretraining.tokens
    middle = lab.sizes[len(lab.sizes) // 2].name
    lines = []
    for size in lab.sizes:
        for seed in lab.seeds:
            run = f"{size.name}-seed{seed}-PT-{last}"
            for axis, dose in (("PT", tokens), ("SFT", 0), ("RL", 0)):
                anchor = "true" if size.name == middle else "false"
                lines.append((run, axis, float(dose), UNITS[axis], anchor))
    return pl.DataFrame(lines, schema=["run", "axis", "dose", "unit", "anchor"], orient="row")


def write_lines(path: Path, lines: Sequence[dict[str, Any]]) -> None:
    """Write JSON lines."""
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


def settings(lab: Lab, work: Path) -> str:
    """Return the prices: processor time of the middle size's doses at the price of a core."""
    middle = lab.sizes[len(lab.sizes) // 2].name
    last = lab.pretraining.checkpoints[-1]
    spent: dict[str, list[float]] = {axis: [] for axis in UNITS}
    for seed in lab.seeds:
        own = work / f"{middle}-seed{seed}"
        spent["PT"].append(json.loads((own / f"step-{last}" / "done.json").read_text(encoding="utf-8"))["cpu_seconds"])
        for axis in ("SFT", "RL"):
            spent[axis].append(json.loads((own / f"seconds-{axis}.json").read_text(encoding="utf-8")))
    doses = {
        "PT": lab.pretraining.checkpoints[-1] * lab.pretraining.tokens,
        "SFT": lab.supervised.doses[-1] * lab.supervised.batch,
        "RL": lab.rewarded.doses[-1] * lab.rewarded.batch,
    }
    per = {"PT": 1_000_000, "SFT": 1_000, "RL": 1_000}
    lines = [
        f"# Processor seconds of {middle} on the machine that made the lab, at {CORE_HOUR} US dollars a core-hour.",
        "[prices]",
    ]
    for axis, units in per.items():
        usd = float(np.mean(spent[axis])) / doses[axis] * units / 3600 * CORE_HOUR
        lines.append(
            f'{axis} = {{ usd = {usd:.3g}, per = "{units:,} {UNITS[axis]}s", unit = "{UNITS[axis]}", units = {units} }}'
        )
    return "\n".join([*lines, "", "[estimates]", 'metric = "p_gold"', ""])


def curves(runs: Sequence[Scored], right: np.ndarray) -> pl.DataFrame:
    """Return the accuracy of each model by step of supervised tuning; step 0 is the final pre-trained model."""
    last = max(run.step for run in runs if run.axis == "PT")
    kept = [(k, run) for k, run in enumerate(runs) if run.axis == "SFT" or (run.axis == "PT" and run.step == last)]
    lines = [
        (
            run.model,
            run.seed,
            "lab",
            "acc",
            run.step if run.axis == "SFT" else 0,
            round(float(right[k].mean()), 4),
            right.shape[1],
        )
        for k, run in kept
    ]
    names = ["model", "seed", "task", "metric", "step", "score", "n_items"]
    return pl.DataFrame(lines, schema=names, orient="row").sort("model", "step", "seed", maintain_order=True)


def judge(folder: Path, activities: Path | None) -> None:
    """Let the offline baseline judge the items."""
    from benchwright.judge.run import judge_items

    judge_items(folder / "items.jsonl", model="baseline/tfidf", out=folder / "welfare", activity_scores=activities)
