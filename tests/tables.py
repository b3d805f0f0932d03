"""A small, valid folder of item tables to mutate, and the command line to run on it.

Three tasks of six items, two judged framings, three effort axes; every number follows from the item's place.
"""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from benchwright import cli
from benchwright.errors import DataError, Fault
from benchwright.logs.item_tables import ItemTables, read_item_tables

TASKS = ("alpha", "beta", "gamma")
ITEMS = 6
AXES = ("PT", "SFT", "RL")
JUDGE = "judge_loadings.jsonl"
ACTIVITIES = (
    ("filing", "Filing records", 30, "False", 4.6, 1.4),
    ("advising", "Advising, with care", 25, "False", 1.5, 4.7),
    ("checking", "Checking figures", 20, "False", 4.0, 3.6),
    ("solving", "Solving puzzles", 12, "False", 1.2, 1.8),
    ("rare", "Rare work", 2, "True", "", ""),
)
FAST = ("--set", "resampling.replicates=100", "--no-report", "--no-figures")


def write_tables(
    folder: Path, *, tasks: Sequence[str] = TASKS, item_id: Callable[[int], object] = int, families: bool = True
) -> Path:
    """Write a valid folder and return it."""
    folder.mkdir(parents=True, exist_ok=True)
    keys = [(task, item_id(item)) for task in tasks for item in range(ITEMS)]
    activities = [["concept_id", "gwa", "n_tasks_wb", "dropped", "p_auto_15", "p_aug_15"], *map(list, ACTIVITIES)]
    write_rows(folder / "gwa_welfare_scores.csv", activities)
    lines = []
    for place, (task, doc_id) in enumerate(keys):
        for framing, perspective in enumerate(("automation", "augmentation")):
            ranked = [ACTIVITIES[(place + framing + step) % 5][0] for step in range(3)]
            lines.append({"lm_eval_task": task, "doc_id": doc_id, "perspective": perspective, "ranked_gwa_ids": ranked})
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (folder / "judge_loadings.jsonl").write_text(text, encoding="utf-8")
    cost: list[list[Any]] = [["task", "doc_id", "anchor_phat", "beta_pt", "beta_sft", "beta_rl"]]
    noise: list[list[Any]] = [["task", "doc_id", "noise_sigma2", "noise_mean_phat"]]
    for place, key in enumerate(keys):
        cost.append([*key, 0.2 + 0.03 * place, 1e-4 * (1 + place % 4), 2e-5 * (1 + place % 3), 1e-6 * (place % 5 - 1)])
        noise.append([*key, 0.004 + 0.001 * (place % 7), 0.25 + 0.02 * place])
    write_rows(folder / "cost.csv", cost)
    write_rows(folder / "noise.csv", noise)
    margins = pl.DataFrame(
        {
            "task": [task for task, _ in keys],
            "doc_id": [doc_id for _, doc_id in keys],
            "log_ratio_med": [0.8 + 0.02 * place for place in range(len(keys))],
        }
    )
    margins.write_parquet(folder / "item_margins.parquet")
    if families:
        named = [["task", "family"], *([task, "math" if place == 0 else "general"] for place, task in enumerate(tasks))]
        write_rows(folder / "families.csv", named)
    return folder


def write_rows(path: Path, rows: Sequence[Sequence[object]], *, quote_all: bool = False) -> None:
    """Write rows as CSV with unix line ends; a lone carriage return in a cell needs ``quote_all``."""
    buffer = io.StringIO()
    quoting = csv.QUOTE_ALL if quote_all else csv.QUOTE_MINIMAL
    csv.writer(buffer, lineterminator="\n", quoting=quoting).writerows(rows)
    path.write_text(buffer.getvalue(), encoding="utf-8", newline="")


def read_rows(path: Path) -> list[list[str]]:
    """Return the rows of a CSV file, the header first."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


def set_cell(path: Path, line: int, column: str, value: str) -> None:
    """Change one cell of a CSV file; the header is line 1."""
    rows = read_rows(path)
    rows[line - 1][rows[0].index(column)] = value
    write_rows(path, rows)


def set_field(path: Path, line: int, **values: object) -> None:
    """Change fields of one line of a JSONL file."""
    lines = path.read_text(encoding="utf-8").splitlines()
    lines[line - 1] = json.dumps(json.loads(lines[line - 1]) | values)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def drop_column(path: Path, column: str) -> None:
    """Remove one column of a CSV file."""
    rows = read_rows(path)
    place = rows[0].index(column)
    write_rows(path, [row[:place] + row[place + 1 :] for row in rows])


def edit(path: Path, old: bytes, new: bytes) -> None:
    """Replace bytes that must be there."""
    content = path.read_bytes()
    assert old in content
    path.write_bytes(content.replace(old, new))


def read(folder: Path, **options: Any) -> ItemTables:
    """Read a folder with the default axes."""
    return read_item_tables(folder, axes=options.pop("axes", AXES), **options)


def faults(folder: Path, **options: Any) -> tuple[Fault, ...]:
    """Return the faults that reading a folder raises, in the one error that it must raise."""
    with pytest.raises(DataError) as caught:
        read(folder, **options)
    assert str(folder) in caught.value.message
    assert caught.value.hint
    return caught.value.faults


@dataclass(frozen=True, slots=True)
class Ran:
    """What a command returned and printed."""

    code: int
    out: str
    err: str


def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: object) -> Ran:
    """Run the command line in this process, as ``main`` and not as the test runner of the parser."""
    monkeypatch.setattr(sys, "argv", ["benchwright", *map(str, arguments)])
    with pytest.raises(SystemExit) as left:
        cli.main()
    printed = capsys.readouterr()
    code = left.value.code
    return Ran(code if isinstance(code, int) else 0, printed.out, printed.err)
