"""Print a lab's story as Markdown tables: orders untuned and tuned, what overtaking took, tasks, doses.

python examples/lab/story.py lab/
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from itertools import combinations
from pathlib import Path
from typing import Any

import polars as pl


def table(frame: pl.DataFrame) -> str:
    """Return a frame as a Markdown table."""
    lines = ["| " + " | ".join(frame.columns) + " |", "|" + "---|" * frame.width]
    return "\n".join([*lines, *("| " + " | ".join(map(shown, row)) + " |" for row in frame.iter_rows())])


def shown(value: Any) -> str:
    """Return a cell as text."""
    if value is None:
        return ""
    return f"{value:.3f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


def size_of(model: str) -> int:
    """Return the hidden size that a name ends in."""
    return int(model.rsplit("-", 1)[1])


def agreement(models: Iterable[str], scores: Iterable[float]) -> float:
    """Return Kendall's tau of size and score; no two models have one size."""
    pairs = list(combinations(zip(map(size_of, models), scores, strict=True), 2))
    signs = [(a[0] - b[0]) * (a[1] - b[1]) for a, b in pairs]
    return sum((sign > 0) - (sign < 0) for sign in signs) / len(pairs)


def story(folder: Path) -> str:
    """Return all tables of a lab."""
    scores = pl.read_csv(folder / "tuning" / "scores.csv").sort("step", "model")
    wide = scores.with_columns(
        cell=pl.format("{} ± {}", pl.col("score").round(3), pl.col("stderr").round(3)),
        size=pl.col("model").map_elements(size_of, pl.Int64),
    ).pivot("step", index=["model", "size"], values="cell")
    parts = ["Accuracy by step of tuning (mean over seeds, standard error):", table(wide.sort("size").drop("size"))]
    taus = [
        {
            "step": step,
            "tau of size and score": agreement(rows["model"], rows["score"]),
            "order": ", ".join(rows.sort("score", descending=True)["model"]),
        }
        for (step,), rows in scores.group_by("step", maintain_order=True)
    ]
    parts += ["Order of the board, best first:", table(pl.DataFrame(taus))]
    runs = pl.read_csv(folder / "tuning" / "runs.csv")
    single = runs.group_by("seed", "steps", maintain_order=True).agg("model", "score").sort("seed", "steps")
    wrong = [
        {"seed": row["seed"], "step": row["steps"], "tau": agreement(row["model"], row["score"])}
        for row in single.iter_rows(named=True)
    ]
    parts += ["Kendall's tau by seed:", table(pl.DataFrame(wrong).pivot("step", index="seed", values="tau"))]
    found = folder / "tuning" / "overtaking.csv"
    if found.is_file() and found.stat().st_size > 1:
        parts += ["What overtaking took:", table(pl.read_csv(found))]
    panel = pl.read_parquet(folder / "panel" / "acc.parquet")
    last = panel.group_by("axis").agg(pl.col("step").max())
    ends = panel.join(last, on=["axis", "step"]).group_by("task", "axis").agg(pl.col("value").mean())
    parts += [
        "Accuracy by task at the largest dose (all models):",
        table(ends.pivot("axis", index="task", values="value").sort("task")),
    ]
    doses = panel.group_by("model", "axis", "step", "dose").agg(pl.col("value").mean()).sort("axis", "step")
    for axis in ("PT", "RL"):
        rows = doses.filter(pl.col("axis") == axis).pivot("step", index="model", values="value").sort("model")
        parts += [f"Accuracy by step on axis {axis}:", table(rows)]
    return "\n\n".join(parts)


if __name__ == "__main__":
    print(story(Path(sys.argv[1] if len(sys.argv) > 1 else "lab")))
