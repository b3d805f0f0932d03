"""A score table of ten million panel rows: ``python benchmarks/bench_panel.py [--models N --items N --tasks N]``.

The panel (100 models, 5 tasks of 20,000 items, one part a model) is written to a temporary folder through the same sink
as the readers use. Each measurement is a child process with BLAS on one thread and polars on as many as there are
cores (``POLARS_MAX_THREADS`` overrides). Targets: ``score_table`` with standard errors and rank intervals takes at most
5 s and the process 1.5 GB. Beside it: a mean a model in polars
alone, which knows no standard error, no missing items and no ranks. Exit status 1 where a target is missed.
"""

# ruff: noqa: E402  (the threads are set before numpy loads)
from __future__ import annotations

import os

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"):
    os.environ[variable] = "1"

import argparse
import hashlib
import sys
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np
import polars as pl

from benchwright.logs.discover import Found
from benchwright.logs.log_file import LogFile
from benchwright.logs.record import ReadOptions, Run, Unit
from benchwright.panel.ingest import _finish
from benchwright.panel.panel import Panel
from benchwright.panel.scores import score_table
from benchwright.panel.store import PartSink, load_part
from child_process import measure, report

REPEATS = 5
SECONDS_LIMIT = 5.0
MEMORY_LIMIT = 1.5e9


def make_panel(folder: Path, models: int, items: int, tasks: int) -> float:
    """Write a panel of binary scores and return how long the summary of its cells took."""
    rng = np.random.default_rng(20260730)
    doc_ids = pl.Series([str(place) for place in range(items)] * tasks)
    names = pl.Series([f"task_{place}" for place in range(tasks) for _ in range(items)])
    hashes = pl.Series([hashlib.sha256(b"%d" % place).hexdigest() for place in range(items * tasks)])
    lines = np.tile(np.arange(1, items + 1), tasks)
    difficulty = rng.normal(0, 1.5, items * tasks)
    source = folder / "log.jsonl"
    source.write_bytes(b"{}\n")
    panel = folder / "panel"
    for place in range(models):
        part = panel / "parts" / f"{place:024x}"
        part.mkdir(parents=True)
        sink = PartSink(part, ReadOptions())
        skill = rng.normal(0, 1)
        right = (rng.logistic(size=items * tasks) < skill - difficulty).astype(float)
        run = Run(model=f"organisation/model-{place:03d}", run=f"run-{place}", created="2026-01-01T00:00:00Z")
        columns = {"task": names, "doc_id": doc_ids, "item_hash": hashes, "metric": "acc", "filter": None}
        columns |= {"value": right, "higher_is_better": True, "line": lines, "file": source.name}
        sink.rows(run, columns)
        sink.close(Unit("lm-eval samples and results", (LogFile(source, source.name),)))
    parts = [load_part(path) for path in sorted((panel / "parts").iterdir())]
    start = perf_counter()
    _finish(panel, parts, Found((), (), 0), ReadOptions(), "latest")
    return perf_counter() - start


def table(panel: Path) -> None:
    """Make the score table."""
    made = score_table(Panel.open(panel))
    if made.frame["rank_lo"].null_count() or made.frame["micro_se"].null_count():
        raise RuntimeError("the table is not complete")


def plain_means(panel: Path) -> None:
    """A mean a model, nothing else."""
    rows = Panel.open(panel).rows()
    rows.group_by("model").agg(pl.col("value").mean()).collect()


TASKS = {"score table": table, "plain means": plain_means}


def medians(name: str, panel: Path) -> tuple[float, float]:
    """Return the median seconds and the largest peak of child processes."""
    results = [measure(__file__, name, str(panel)) for _ in range(REPEATS)]
    return median(seconds for seconds, _ in results), max(peak for _, peak in results)


def main() -> int:
    """Print seconds and peak memory, and say which targets are met."""
    parser = argparse.ArgumentParser(description="Time a score table of many rows.")
    parser.add_argument("--models", type=int, default=100)
    parser.add_argument("--items", type=int, default=20_000, help="items a task")
    parser.add_argument("--tasks", type=int, default=5)
    parser.add_argument("--child", nargs=2, metavar=("TASK", "PANEL"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        report(lambda: TASKS[given.child[0]](Path(given.child[1])))
        return 0
    with tempfile.TemporaryDirectory() as temporary:
        cells = make_panel(Path(temporary), given.models, given.items, given.tasks)
        print(f"{given.models * given.items * given.tasks:,} rows, polars on {pl.thread_pool_size()} threads")
        print(f"{'summary of cells':>16}{cells:9.2f} s")
        found = {name: medians(name, Path(temporary) / "panel") for name in TASKS}
    for name, (seconds, peak) in found.items():
        print(f"{name:>16}{seconds:9.2f} s{peak / 1e9:8.2f} GB")
    seconds, peak = found["score table"]
    print(f"score table: at most {SECONDS_LIMIT:g} s and {MEMORY_LIMIT / 1e9:g} GB")
    return 0 if seconds <= SECONDS_LIMIT and peak <= MEMORY_LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
