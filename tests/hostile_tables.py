"""Item tables whose every name attacks a page, a spreadsheet, a terminal or a file name."""

from __future__ import annotations

from pathlib import Path

from tables import ACTIVITIES, read_rows, write_rows, write_tables

HOSTILE = (
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(1)>",
    "=cmd|'/c calc'!A1",
    "\x1b[2J\x1b]0;x\x07",
    "../../x",
    "a\nb",
    "x" * 300,
    "\u202eevil\u200f",
    "$x^2_\\%&#{}~",
)


def write_hostile(folder: Path) -> Path:
    """Write a folder of them and return it."""
    source = write_tables(folder, tasks=HOSTILE[:3], item_id=lambda i: HOSTILE[i])
    more = write_tables(folder.with_name("more"), tasks=HOSTILE[3:6], item_id=lambda i: HOSTILE[(i + 2) % len(HOSTILE)])
    for name in ("cost.csv", "noise.csv"):
        write_rows(source / name, [*read_rows(source / name), *read_rows(more / name)[1:]])
    (source / "judge_loadings.jsonl").write_text(
        (source / "judge_loadings.jsonl").read_text() + (more / "judge_loadings.jsonl").read_text()
    )
    (source / "item_margins.parquet").unlink()
    tasks = HOSTILE[:6]
    write_rows(
        source / "families.csv", [["task", "family"], *([task, HOSTILE[i % 2 + 1]] for i, task in enumerate(tasks))]
    )
    labels: list[list[object]] = [["concept_id", "gwa", "dropped", "p_auto_15", "p_aug_15"]]
    labels += [[name, HOSTILE[i], dropped, auto, aug] for i, (name, _, _, dropped, auto, aug) in enumerate(ACTIVITIES)]
    write_rows(source / "gwa_welfare_scores.csv", labels)
    topics = [["task", "doc_id", "topic"], [HOSTILE[0], HOSTILE[0], HOSTILE[0]], [HOSTILE[0], HOSTILE[1], HOSTILE[2]]]
    write_rows(source / "item_topics.csv", topics)
    return source
