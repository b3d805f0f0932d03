"""From a packed lab to the built-in example: the folder ``example/``, which ships as ``src/benchwright/example/``.

    cp -r lab/example/. src/benchwright/example/

It holds what ``benchwright audit`` reads and nothing else: the panel, runs, prices, lists of the baseline judge, values
of activities, item texts, and the ranking game with its scores. ``example.md`` is its README, without the numbers.
"""

from __future__ import annotations

import csv
import io
import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from make_lab import Lab

COPIED = ("panel/p_gold.parquet", "panel/margin.parquet", "panel/acc.parquet", "runs.csv", "benchwright.toml")
VALUES = "gwa_welfare_scores.csv"
VALUE_COLUMNS = ("n_tasks_wb", "p_auto", "p_aug", "dropped", "p_auto_15", "p_aug_15")
SCORE_COLUMNS = ("task", "model", "metric", "step", "score", "stderr")
README = Path(__file__).with_name("example.md")


def ship(lab: Lab, folder: Path, activities: Path) -> Path:
    """Write ``example/`` into a packed lab's folder: whole, in place of an earlier one."""
    out = folder / "example"
    shutil.rmtree(out, ignore_errors=True)
    for name in COPIED:
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(folder / name, out / name)
    (out / "welfare").mkdir()
    items = lab.world.items("test")
    judged = (folder / "welfare" / "judge_loadings.jsonl").read_text(encoding="utf-8")
    lists = [json.loads(line) for line in judged.splitlines()]
    write(out / "welfare" / "judge_loadings.jsonl", "".join(json.dumps(one) + "\n" for one in compact(lists)))
    write(out / "welfare" / VALUES, values_of(activities))
    write(out / "welfare" / "families.csv", families(lab))
    topics = [(item.task, item.doc_id, f"{item.question} {item.choices[item.answer]}") for item in items]
    write(out / "welfare" / "item_topics.csv", text_of([("task", "doc_id", "topic"), *topics]))
    pl.read_csv(folder / "tuning" / "scores.csv").select(SCORE_COLUMNS).write_csv(out / "scores.csv")
    write(out / "game.toml", game_text((folder / "tuning" / "game-lab.toml").read_text(encoding="utf-8")))
    write(out / "README.md", readme(lab, folder))
    return out


def compact(lists: list[dict[str, object]]) -> list[dict[str, object]]:
    """Return one line an item; the baseline gives both framings one list, without checksums of texts."""
    kept = {}
    for one in lists:
        key = one["task"], one["doc_id"]
        line = {name: one[name] for name in ("task", "doc_id")} | {"perspective": "both"}
        line |= {name: one[name] for name in ("model", "baseline", "ranked_gwa_ids")}
        if kept.setdefault(key, line) != line:
            raise SystemExit(f"the judge's framings differ on {key}: they cannot share a line")
    return list(kept.values())


def values_of(path: Path) -> str:
    """Return the table of activity values with our names in place of the published ones."""
    from benchwright.judge.definitions import read_activities

    names = {one.id: one.name for one in read_activities()}
    with path.open(encoding="utf-8", newline="") as file:
        rows = [
            (row["concept_id"], names[row["concept_id"]], *(row[name] for name in VALUE_COLUMNS))
            for row in csv.DictReader(file)
        ]
    return text_of([("concept_id", "gwa", *VALUE_COLUMNS), *rows])


def families(lab: Lab) -> str:
    """Return which tasks need facts that only pre-training tells."""
    from world import KNOWN, TASKS

    return text_of([("task", "family"), *((task, "facts" if task in KNOWN else "skills") for task in TASKS)])


def game_text(made: str) -> str:
    """Return the game that ``benchwright tune`` wrote, with a word on what its rewards are."""
    said = (
        "# The ranking game of the lab. Efforts are steps of tuning, which cost 1 each. What a rank is worth, in",
        "# steps, is stated, not measured. Change it and play again: `benchwright game`, or `audit --game`.",
    )
    return "\n".join([*said, made])


def readme(lab: Lab, folder: Path) -> str:
    """Return what the folder holds, in words, with the lab's own counts."""
    from pack import DIGITS, read

    panel = pl.read_parquet(folder / "panel" / "acc.parquet", columns=["run_name", "task", "doc_id"])
    last, seed = lab.pretraining.steps, lab.seeds[0]
    done = [read(folder / "work" / f"{size.name}-seed{seed}" / f"step-{last}" / "done.json") for size in lab.sizes]
    sizes = sorted(one["parameters"] for one in done)
    return README.read_text(encoding="utf-8").format(
        sizes=len(lab.sizes),
        parameters=f"{sizes[0]:,} to {sizes[-1]:,}",
        names=", ".join(size.name for size in lab.sizes),
        seeds=len(lab.seeds),
        runs=panel["run_name"].n_unique(),
        items=panel.select("task", "doc_id").n_unique(),
        p_digits=DIGITS["p_gold"],
        margin_digits=DIGITS["margin"],
        values=VALUES,
    )


def text_of(rows: list[tuple[object, ...]]) -> str:
    """Return rows as CSV."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def write(path: Path, text: str) -> None:
    """Write text, lines ended by LF on any system."""
    path.write_text(text, encoding="utf-8", newline="\n")
