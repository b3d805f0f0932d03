"""Count what comes out of each public set of logs, for the test that holds the table of docs/reference/log-formats.md.

``python tests/public_sets.py FOLDER`` prints the table's rows for a folder laid out like the shared data.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from benchwright.errors import DataError
from benchwright.panel.ingest import read_logs
from benchwright.panel.panel import Panel

SETS = (
    "logs/lm-eval/flipeval-qwen15b",
    "logs/lm-eval/malicious-finetune",
    "logs/lm-eval/v03-writeout-CALM",
    "logs/lm-eval/pythia-v1",
    "logs/inspect/demo-mmlu",
    "logs/inspect/ai-tests",
    "logs/inspect/scout",
    "logs/inspect/monty-hall",
    "logs/helm/medsum",
    "logs/olmes/output-format",
    "logs/olmes/requests",
    "matrices/hans-100seeds",
    "matrices/all-the-noises",
    "matrices/polypythia-induction-panel",
    "matrices/psn-irt",
    "trajectories/ttt-emergence",
    "trajectories/peft-metamathqa",
    "trajectories/olmo2-13b-items-by-checkpoint",
    "lm-harmony",
)
COLUMNS = ("models", "tasks", "items", "rows", "choices", "scores", "faults", "passed_over")


def counts(folder: Path) -> dict[str, int]:
    """Ingest one set on its own and count; a set that gives nothing has only faults."""
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch) / "panel"
        try:
            done = read_logs(folder, out, workers=1)
        except DataError as error:
            return dict.fromkeys(COLUMNS, 0) | {"faults": len(error.faults)}
        items = Panel.open(out).rows(all_cells=True).select("task", "doc_id").unique().collect().height
        return {name: done.counts[name] for name in COLUMNS if name != "items"} | {"items": items}


def row(name: str, found: dict[str, int]) -> str:
    """Return a set's row of the table."""
    return f"| `{name}` | " + " | ".join(f"{found[column]:,}" for column in COLUMNS) + " |"


if __name__ == "__main__":
    for set_name in SETS:
        print(row(set_name, counts(Path(sys.argv[1]) / set_name)))
