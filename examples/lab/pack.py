"""From a lab's scores to what ships: a panel in Parquet, runs, items with texts and welfare, prices.

=====================  =================================================================================
panel/METRIC.parquet   one row per run and item, as ``benchwright panel export --table rows`` writes them
runs.csv               final pre-trained models are dose 0 of tuning and reward too; the anchor of costs
benchmark/             train.jsonl and test.jsonl: task, doc_id, cluster, question, choices, answer
welfare/               what the offline baseline judge says of the test items
benchwright.toml       prices of doses, from the processor time that they took
tuning/                what ``benchwright tune`` wrote: curves, game, adversaries
example/               of all this what ships as the built-in example (``ship.py``)
=====================  =================================================================================
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
from ship import VALUES, ship

if TYPE_CHECKING:
    from make_lab import Lab
    from world import Item

DIGITS = {"p_gold": 3, "margin": 2, "acc": 0}
UNITS = {"PT": "token", "SFT": "example", "RL": "prompt"}
PER = {"PT": 1_000_000, "SFT": 1_000, "RL": 1_000}  # native units of dose to a slope unit
AGREE = 2e-3  # of two scorers, in probability
PUBLISHED = Path(__file__).parents[2] / "src" / "benchwright" / "example" / "welfare" / VALUES
CORE_HOUR = 0.04  # US dollars: about what a rented core costs


@dataclass(frozen=True, slots=True)
class Scored:
    """One run: a model's state, and the scores of all items by metric."""

    model: str
    seed: int
    axis: str
    step: int
    dose: int
    values: dict[str, NDArray[np.float64]]


def pack(lab: Lab, work: Path, folder: Path, *, activities: Path) -> None:
    """Write everything that an audit of the lab needs, and the folder that ships in the package."""
    items = lab.world.items("test")
    runs = [*own_runs(lab, work), *tuned_runs(lab, folder / "tuning" / "rows.parquet")]
    check(lab, runs, folder / "tuning" / "rows.parquet")
    (folder / "panel").mkdir(exist_ok=True)
    for name in DIGITS:
        write(rows(runs, items, name), folder / "panel" / f"{name}.parquet")
    run_facts(lab).write_csv(folder / "runs.csv")
    (folder / "benchwright.toml").write_text(settings(lab, work, folder / "tuning" / "runs.csv"), encoding="utf-8")
    judge(folder, activities)
    ship(lab, folder, activities)


def own_runs(lab: Lab, work: Path) -> Iterator[Scored]:
    """Yield the checkpoints of pre-training, and what came of training by reward."""
    for size in lab.sizes:
        for seed in lab.seeds:
            own = work / f"{size.name}-seed{seed}"
            for step in lab.pretraining.checkpoints:
                dose = step * lab.pretraining.tokens
                yield Scored(size.name, seed, "PT", step, dose, kept(own / f"scores-PT-{step}.npz"))
            for step in lab.rewarded.doses:
                dose = step * lab.rewarded.batch
                yield Scored(size.name, seed, "RL", step, dose, kept(own / f"scores-RL-{step}.npz"))


def kept(path: Path) -> dict[str, NDArray[np.float64]]:
    """Return the scores of all items in one state."""
    with np.load(path) as saved:
        values = {name: np.asarray(saved[name], dtype=np.float64) for name in ("p_gold", "margin")}
    return values | {"acc": (values["margin"] > 0).astype(np.float64)}


def tuned_runs(lab: Lab, path: Path) -> Iterator[Scored]:
    """Yield what came of tuning; step 0 is the final checkpoint of pre-training, which is there already."""
    table = pl.read_parquet(path).filter(pl.col("step") > 0, pl.col("metric").is_in(list(DIGITS)))
    table = table.with_columns(pl.col("doc_id").cast(pl.Int64)).sort("doc_id")
    for (model, seed, step), group in sorted(table.group_by("model", "seed", "step"), key=lambda one: str(one[0])):
        values = {name: group.filter(pl.col("metric") == name)["score"].to_numpy() for name in DIGITS}
        yield Scored(str(model), int(str(seed)), "SFT", int(str(step)), int(str(step)) * lab.supervised.batch, values)


def check(lab: Lab, runs: Sequence[Scored], path: Path) -> None:
    """Raise unless the lab and ``benchwright tune`` give untuned models the same scores, item by item."""
    table = pl.read_parquet(path).filter(pl.col("step") == 0, pl.col("metric") == "p_gold")
    table = table.with_columns(pl.col("doc_id").cast(pl.Int64)).sort("doc_id")
    for run in runs:
        if run.axis == "PT" and run.step == lab.pretraining.steps:
            theirs = table.filter(pl.col("model") == run.model, pl.col("seed") == run.seed)["score"].to_numpy()
            if np.abs(theirs - run.values["p_gold"]).max() > AGREE:
                raise SystemExit(f"{run.model} seed {run.seed}: the lab and benchwright tune score it differently")


def rows(runs: Sequence[Scored], items: Sequence[Item], metric: str) -> pl.DataFrame:
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
        value=pl.Series(np.concatenate([np.round(run.values[metric], DIGITS[metric]) for run in runs]) + 0.0),
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
    middle = lab.middle
    lines = []
    for size in lab.sizes:
        for seed in lab.seeds:
            run = f"{size.name}-seed{seed}-PT-{last}"
            for axis, dose in (("PT", tokens), ("SFT", 0), ("RL", 0)):
                anchor = "true" if size.name == middle else "false"
                lines.append((run, axis, float(dose), UNITS[axis], anchor))
    return pl.DataFrame(lines, schema=["run", "axis", "dose", "unit", "anchor"], orient="row")


def settings(lab: Lab, work: Path, tuned: Path) -> str:
    """Return the prices: seconds of one core that the middle size's doses took, at the price of a core."""
    middle, last = lab.middle, lab.pretraining.steps
    folders = [work / f"{middle}-seed{seed}" for seed in lab.seeds]
    points = tuning_points(tuned).filter(pl.col("model") == middle)
    seconds = {
        "PT": np.mean([read(own / f"step-{last}" / "done.json")["cpu_seconds"] for own in folders]) / last,
        "SFT": points["cpu_seconds"].sum() / len(folders) / lab.supervised.points[-1],
        "RL": np.mean([read(own / "seconds-RL.json") for own in folders]) / lab.rewarded.doses[-1],
    }
    batch = {"PT": lab.pretraining.tokens, "SFT": lab.supervised.batch, "RL": lab.rewarded.batch}
    lines = [
        f"# Seconds of a core where the lab was made, at {CORE_HOUR} US dollars an hour: what doses of {middle} cost,",
        "# and the budget, which is what all training of the lab came to.",
        "[prices]",
    ]
    for axis, units in PER.items():
        usd = float(seconds[axis]) / batch[axis] * units / 3600 * CORE_HOUR
        said = f'per = "{units:,} {UNITS[axis]}s", unit = "{UNITS[axis]}", units = {units}'
        lines.append(f"{axis} = {{ usd = {usd:.3g}, {said} }}")
    lines += ["", "[lab]", f"budget = {all_seconds(lab, work, tuned) / 3600 * CORE_HOUR:.2g}"]
    lines += ["", "[estimates]", 'metric = "p_gold"', 'ranked_axis = "PT"  # the board is that of untuned models']
    why = "chosen with the results in view: at 3, the default, no weights by task help, and there is less to see"
    lines += ["", "[welfare]", f"neutral = 2.5  # {why}"]
    return "\n".join([*lines, ""])


def all_seconds(lab: Lab, work: Path, tuned: Path) -> float:
    """Return the core seconds of all training: pre-training, reward and tuning; scoring is not counted."""
    own = [work / f"{size.name}-seed{seed}" for size in lab.sizes for seed in lab.seeds]
    last = lab.pretraining.steps
    spent = [read(one / f"step-{last}" / "done.json")["cpu_seconds"] + read(one / "seconds-RL.json") for one in own]
    return float(sum(spent) + tuning_points(tuned)["cpu_seconds"].sum())


def tuning_points(path: Path) -> pl.DataFrame:
    """Return the scores of single runs; the clock's seconds will not do, as a busy machine stretches them."""
    points = pl.read_csv(path)
    if "cpu_seconds" not in points.columns or points["cpu_seconds"].null_count():
        raise SystemExit(f"{path} does not say what seconds of the processor tuning took\nHint: remove its folder")
    return points


def read(path: Path) -> Any:
    """Return what a JSON file holds."""
    return json.loads(path.read_text(encoding="utf-8"))


def write_lines(path: Path, lines: Sequence[dict[str, Any]]) -> None:
    """Write JSON lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


def judge(folder: Path, activities: Path) -> None:
    """Let the offline baseline judge the items."""
    from benchwright.judge.run import judge_items

    source, out = folder / "benchmark" / "test.jsonl", folder / "welfare"
    judge_items(source, model="baseline/tfidf", out=out, activity_scores=activities, overwrite=True)
