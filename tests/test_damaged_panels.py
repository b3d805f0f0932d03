"""What ``audit`` says of a damaged panel, and of exported rows that have other columns: one error and no traceback."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from benchwright.errors import DataError, UsageError
from benchwright.estimating.engines import open_engine
from benchwright.panel.ingest import read_logs
from benchwright.panel.panel import Panel
from benchwright.pipeline import audit
from tables import FAST
from test_cli import Run, cli, refused  # noqa: F401 `cli` is a fixture

ENGINES = ["polars", pytest.param("duckdb", marks=pytest.mark.engines)]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    with (folder / "log.csv").open("w", encoding="utf-8") as log:
        log.write("model,seed,step,task,doc_id,metric,score\n")
        for seed in range(3):
            for step in (1, 2, 3):
                log.writelines(f"a/b,{seed},{step},t,{item},acc,{(seed + step * item) % 2}\n" for item in range(9))
    read_logs(folder / "log.csv", folder / "panel", workers=1)
    return folder / "panel"


@pytest.fixture
def panel(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "panel"))


@pytest.fixture
def exported(whole: Path, tmp_path: Path) -> Path:
    Panel.open(whole).export("rows", tmp_path / "rows.parquet")
    return tmp_path / "rows.parquet"


def manifest(**changed: Any) -> Callable[[Path], None]:
    """Change entries of the manifest; None takes one out."""

    def change(panel: Path) -> None:
        record = json.loads((panel / "manifest.json").read_text(encoding="utf-8")) | changed
        kept = {name: value for name, value in record.items() if value is not None}
        (panel / "manifest.json").write_text(json.dumps(kept), encoding="utf-8")

    return change


def text(content: str) -> Callable[[Path], None]:
    return lambda panel: void((panel / "manifest.json").write_text(content, encoding="utf-8"))


def void(_: object) -> None:
    """Drop a value."""


def rows(panel: Path) -> Path:
    (file,) = panel.glob("parts/*/rows-*.parquet")
    return file


def table(name: str, change: Callable[[pl.DataFrame], pl.DataFrame]) -> Callable[[Path], None]:
    def write(panel: Path) -> None:
        file = rows(panel) if name == "rows" else panel / f"{name}.parquet"
        change(pl.read_parquet(file)).write_parquet(file)

    return write


UNIT = {"part": "x", "rows": 1, "choices": 0, "scores": 0}
DAMAGE = {
    "list": (text("[]"), "manifest.json: not an object"),
    "cut manifest": (text('{"schema": 3, "un'), "manifest.json: "),
    "no counts": (manifest(counts=None), "`counts` is not an object"),
    "counts without rows": (manifest(counts={}), "`counts` has no number of `rows`"),
    "no units": (manifest(units=None), "`units` is not a list"),
    "no notes": (manifest(notes=None), "`notes` is not a list"),
    "unit of another form": (manifest(units=["x"]), "`units` must hold objects"),
    "part elsewhere": (manifest(units=[UNIT | {"part": "../x"}]), "`units` must hold objects"),
    "part that is not there": (manifest(units=[UNIT]), "parts/x/rows-*.parquet: 0 rows are there"),
    "schema as text": (manifest(schema="3"), "`schema` is '3'"),
    "cut rows": (lambda panel: rows(panel).write_bytes(rows(panel).read_bytes()[:300]), "rows-000.parquet: it is no"),
    "empty rows": (lambda panel: rows(panel).write_bytes(b""), "rows-000.parquet: it is no whole Parquet file"),
    "no rows": (lambda panel: rows(panel).unlink(), "rows-*.parquet: 0 rows are there, and manifest.json says 81"),
    "fewer rows": (table("rows", lambda frame: frame.head(5)), "5 rows are there, and manifest.json says 81"),
    "rows of text": (table("rows", lambda frame: frame.cast({"value": str})), "column `value`: it holds String, not"),
    "no doc_id": (table("rows", lambda frame: frame.drop("doc_id")), "column `doc_id`: it is missing"),
    "no active": (table("cells", lambda frame: frame.drop("active")), "cells.parquet, column `active`: it is missing"),
    "no cells": (lambda panel: (panel / "cells.parquet").unlink(), "cells.parquet: it is missing"),
    "no runs": (lambda panel: (panel / "runs.parquet").unlink(), "runs.parquet: it is missing"),
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("damage", "said"), DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_panel_says_what_is_wrong(
    panel: Path, engine: str, damage: Callable[[Path], object], said: str
) -> None:
    damage(panel)
    with pytest.raises(DataError) as raised:
        audit(panel, engine=engine)
    assert raised.value.message.startswith(f"the panel {panel} is damaged\n")
    assert said in raised.value.message
    assert "benchwright ingest" in str(raised.value.hint)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", ["rows", "cells"])
def test_a_file_with_damaged_pages_names_the_panel(panel: Path, engine: str, name: str) -> None:
    file = rows(panel) if name == "rows" else panel / "cells.parquet"
    content = bytearray(file.read_bytes())
    content[4 : len(content) // 4] = bytes([7]) * (len(content) // 4 - 4)
    file.write_bytes(content)
    with pytest.raises(DataError, match=f"^{engine} cannot read {re.escape(str(panel))}: ") as raised:
        audit(panel, engine=engine)
    assert "benchwright ingest" in str(raised.value.hint)


def test_a_panel_that_was_not_finished(panel: Path) -> None:
    (panel / "manifest.json").unlink()
    with pytest.raises(UsageError, match=r"is a panel without its manifest\.json"):
        audit(panel)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("column", "values", "needed"),
    [
        ("value", pl.lit("0.5"), "numbers, not String"),
        ("seed", pl.lit("a"), "whole numbers, not String"),
        ("doc_id", pl.lit(0.5), "text, not Float64"),
        ("higher_is_better", pl.lit("yes"), "truth values, not String"),
    ],
)
def test_exported_rows_of_another_type(exported: Path, engine: str, column: str, values: pl.Expr, needed: str) -> None:
    pl.read_parquet(exported).with_columns(values.alias(column)).write_parquet(exported)
    with open_engine(engine) as opened, pytest.raises(UsageError, match=f"`{column}` must hold {needed}") as raised:
        opened.parquet_rows(exported)
    assert "panel export" in str(raised.value.hint)


@pytest.mark.parametrize("engine", ENGINES)
def test_exported_rows_of_a_like_type_are_read(exported: Path, engine: str) -> None:
    with open_engine(engine) as opened:
        wanted = opened.collect(opened.parquet_rows(exported))
    frame = pl.read_parquet(exported)
    frame = frame.cast({"doc_id": pl.Int32, "value": pl.Int8, "seed": pl.Float64, "task": pl.Categorical})
    frame.write_parquet(exported)
    with open_engine(engine) as opened:
        found = opened.collect(opened.parquet_rows(exported))
    keys = ["seed", "step", "task", "doc_id", "value"]
    assert found.select(keys).sort(keys).equals(wanted.select(keys).sort(keys))


@pytest.mark.parametrize("engine", ENGINES)
def test_a_pattern_without_matches(engine: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"^nothing matches .*nowhere"):
        audit(str(tmp_path / "nowhere" / "*.parquet"), engine=engine)


def test_the_command_line_names_the_panel_and_the_option(cli: Run, panel: Path) -> None:  # noqa: F811
    refused(cli("audit", panel, "--welfare", "nowhere", *FAST), 2, "--welfare nowhere: no such folder")
    (panel / "cells.parquet").unlink()
    refused(cli("audit", panel, *FAST), 1, str(panel), "cells.parquet: it is missing", "Hint: ")


WITH_REGION_WARNING = """
import warnings
from benchwright import cli, pipeline
def audit(*_, **__):
    warnings.warn("'(default_)region' not set; polars will try to get it from bucket", UserWarning)
    raise KeyboardInterrupt
pipeline.audit = audit
cli.main()
"""


def test_ctrl_c_says_so_and_warnings_of_regions_are_not_shown(tmp_path: Path) -> None:
    command = [sys.executable, "-c", WITH_REGION_WARNING, "audit"]
    ran = subprocess.run(command, capture_output=True, cwd=tmp_path, timeout=60, check=False, text=True)
    assert (ran.returncode, ran.stdout) == (128 + signal.SIGINT, "")
    assert ran.stderr == "interrupted; nothing half-written is left\n"
