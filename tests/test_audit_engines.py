"""``audit --engine``: the whole audit of one panel gives the same numbers on polars, DuckDB and Spark."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchwright.panel.panel import Panel
from test_audit_panel import grids, ingested, seeds
from test_engines import FULL


def same(one: Any, other: Any, where: str = "") -> None:
    """Assert that two JSON values agree, numbers to 1e-9."""
    if isinstance(one, dict):
        assert one.keys() == other.keys(), where
        for key in one:
            same(one[key], other[key], f"{where}.{key}")
    elif isinstance(one, list):
        assert len(one) == len(other), where
        for place, (left, right) in enumerate(zip(one, other, strict=True)):
            same(left, right, f"{where}[{place}]")
    elif isinstance(one, float):
        assert math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12), f"{where}: {one} {other}"
    else:
        assert one == other, where


def summary(*command: object) -> dict[str, Any]:
    """Run in a process of its own, so that no session of Spark stays behind."""
    line = [sys.executable, "-m", "benchwright.cli", *map(str, command), "--no-report", "--no-figures", "--json"]
    quick = os.environ | {"SPARK_SUBMIT_OPTS": "-XX:TieredStopAtLevel=1"}  # little runs long enough to compile
    done = subprocess.run(line, capture_output=True, text=True, check=False, env=quick)
    assert done.returncode == 0, done.stderr
    record: dict[str, Any] = json.loads(done.stdout)
    return record


@pytest.fixture(scope="module")
def panel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    gaps = seeds(2).gather_every(7, offset=3)  # cells left out
    whole = seeds(2).join(gaps, on=["model", "seed", "step", "task", "doc_id"], how="anti")
    return ingested(tmp_path_factory.mktemp("engines"), grids(), whole)


@pytest.mark.parametrize("engine", FULL)
def test_the_whole_audit_on_every_engine(engine: str, panel: Path, tmp_path: Path) -> None:
    expected = summary("audit", panel, "-o", tmp_path / "polars")
    found = summary("audit", panel, "-o", tmp_path / engine, "--engine", engine)
    for part in ("audit", "panel", "notes"):
        left, right = expected[part], found[part]
        if part == "panel":
            assert (left.pop("engine"), right.pop("engine")) == ("polars", engine)
        same(left, right, part)
    Panel.open(panel).export("rows", tmp_path / "rows.parquet")
    again = summary(
        "audit", (tmp_path / "rows.parquet").as_uri(), "-o", tmp_path / f"{engine}-rows", "--engine", engine
    )
    same(expected["audit"], again["audit"], "rows")
