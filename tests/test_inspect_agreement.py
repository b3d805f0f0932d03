"""Our reader of Inspect logs and the library's own agree on every log, public ones and new ones."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections import Counter
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from benchwright.logs import inspect_ai
from benchwright.logs.log_file import LogFile
from benchwright.logs.record import MemorySink, Unit

pytestmark = [pytest.mark.inspect_library, pytest.mark.slow]

Row = tuple[float | None, str]
Reading = dict[str, Any]
MEANS = ("accuracy", "mean")
UNSCORED: Row = (None, "unscored")
ABSENT: Row = (None, "absent")  # a scorer that returned None: the log holds the sample's other scores only


@pytest.fixture(scope="module")
def readings(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[Path, Reading]:
    """What the library reads, by log: every public log, and some that it writes itself."""
    if find_spec("inspect_ai") is None:
        pytest.fail("needs the library: pip install -e '.[inspect-test]', or leave out: -m 'not inspect_library'")
    folder = tmp_path_factory.mktemp("inspect")
    logs = sorted(p for p in (shared / "data/logs/inspect").rglob("*") if p.suffix in (".eval", ".json"))
    helper = Path(__file__).with_name("inspect_library.py")
    command = [sys.executable, helper, folder / "new", folder / "readings.json", *logs]
    own = {"HOME": str(folder), "XDG_DATA_HOME": str(folder), "XDG_CACHE_HOME": str(folder), "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=os.environ | own, timeout=300)
    assert done.returncode == 0, done.stderr[-4000:]
    found = json.loads((folder / "readings.json").read_text())
    return {Path(path): reading for path, reading in found.items()}


def read(path: Path) -> MemorySink:
    sink = MemorySink()
    inspect_ai.read(Unit("inspect", (LogFile(path, path.name),)), sink)
    return sink


def scored(value: float | None, reason: str | None) -> Row:
    if value is None or math.isnan(value):
        return None, "refused" if reason == "refusal" else "unscored"
    return value, "scored"


def metrics_of(reading: Reading) -> dict[str, list[str]]:
    """Return the metrics of each scorer: its own name, or one per key where its value is a dictionary somewhere."""
    found: dict[str, dict[str, None]] = {}
    for sample in reading["samples"]:
        for scorer, score in sample["scores"].items():
            value = score["value"]
            names = [f"{scorer}.{key}" for key in value] if isinstance(value, dict) else []
            found.setdefault(scorer, {}).update(dict.fromkeys(names))
    metrics = {scorer: list(names) or [scorer] for scorer, names in found.items()}
    return metrics or {scorer: [scorer] for scorer in reading["scorers"]}


def rows_of(reading: Reading) -> dict[tuple[str, int, str], Row]:
    """Return the rows that a reading asks for, by sample, epoch (from 0) and metric."""
    metrics = metrics_of(reading)
    rows: dict[tuple[str, int, str], Row] = {}
    for sample in reading["samples"]:
        key = sample["id"], sample["epoch"] - 1
        for scorer, names in metrics.items():
            score = sample["scores"].get(scorer)
            for name in names:
                if score is None and sample["scores"] and not sample["error"]:
                    rows[*key, name] = ABSENT
                elif score is None:
                    rows[*key, name] = (None, "error" if sample["error"] else "unscored")
                elif isinstance(score["value"], dict):
                    rows[*key, name] = scored(score["value"][name.removeprefix(f"{scorer}.")], score["reason"])
                else:
                    rows[*key, name] = scored(score["value"], score["reason"])
    return rows


def stated_of(reading: Reading) -> dict[str, tuple[float | None, float | None]]:
    """Return the value and standard error of each aggregate that a reading states."""
    stated: dict[str, tuple[float | None, float | None]] = {}
    for score in reading["stated"]:
        name, metrics = score["name"], score["metrics"]
        if score["scorer"] != name:
            name = f"{score['scorer']}.{name}"
        mean = next((metric for metric in MEANS if metric in metrics), None)
        plain = score["reducer"] in (None, "mean")
        for metric, value in metrics.items():
            called = name if plain and metric == mean else f"{name}/{metric}" + (f"[{score['reducer']}]" * (not plain))
            if metric != "stderr" or mean is None:
                stated[called] = value, metrics.get("stderr") if metric in MEANS else None
    return stated


def test_both_readers_agree_on_every_log(readings: dict[Path, Reading]) -> None:
    seen: Counter[str] = Counter()
    for path, reading in readings.items():
        sink = read(path)
        assert sink.faults == [], path
        table, scores = sink.table("rows"), sink.table("scores")

        ours = {row[:3]: row[3:] for row in table.select("doc_id", "repeat", "metric", "value", "status").rows()}
        assert len(ours) == len(table), path
        asked = rows_of(reading)
        for key in [key for key, row in asked.items() if row == ABSENT]:
            assert ours.pop(key, UNSCORED) == UNSCORED, path
            del asked[key]
            seen["absent"] += 1
        assert ours == asked, path
        seen.update(status for _, status in ours.values())

        stated = {row[0]: row[1:] for row in scores.select("metric", "value", "stderr").rows()}
        assert len(stated) == len(scores), path
        assert stated == stated_of(reading), path
        seen["stated"] += len(stated)

        assert set(table["task"]) | set(scores["task"]) <= {reading["task"]}, path
        for run in sink.runs:
            assert (run.model, run.finished) == (reading["model"], reading["status"] == "success"), path
            assert datetime.fromisoformat(run.created or "") == datetime.fromisoformat(reading["created"]), path
        assert len(sink.runs) == bool(len(table) + len(scores)), path
    assert len(readings) == 46 + 6
    assert min(seen[kind] for kind in ("scored", "unscored", "refused", "error", "absent", "stated")) > 0
