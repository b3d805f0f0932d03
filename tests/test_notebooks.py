"""The example notebooks run from top to bottom; results and charts show themselves in Jupyter and marimo."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchwright._shown import NO_MATHS

pytestmark = pytest.mark.notebooks

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
NOTEBOOKS = sorted((EXAMPLES / "notebooks").glob("*.ipynb"))


def outputs(cell: Any, kind: str) -> list[str]:
    return [output["data"][kind] for output in cell.outputs if kind in output.get("data", {})]


@pytest.mark.slow
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
@pytest.mark.filterwarnings("ignore::DeprecationWarning:zmq", "ignore::DeprecationWarning:jupyter_client")
def test_notebooks_run(notebook: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import nbformat
    from nbclient import NotebookClient

    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    shutil.copytree(EXAMPLES / "games", tmp_path / "games")
    (tmp_path / "notebooks").mkdir()
    book = nbformat.read(notebook, as_version=4)
    nbformat.validate(book)
    where = {"metadata": {"path": str(tmp_path / "notebooks")}}
    NotebookClient(book, timeout=300, kernel_name="python3", resources=where).execute()
    cells = [cell for cell in book.cells if cell.cell_type == "code"]
    shown = [text for cell in cells for text in outputs(cell, "text/html")]
    drawn = [text for cell in cells for text in outputs(cell, "image/svg+xml")]
    assert sum(NO_MATHS in text for text in shown) >= 5, "results do not show themselves"
    assert len(drawn) == sum(cell.source.startswith("charts[") for cell in cells) >= 2
    assert all("<svg" in text for text in drawn)
    assert not any("<script" in text for text in shown)
    assert all(cell.outputs for cell in cells), "a cell has nothing to show"


def test_there_are_two_notebooks_and_they_hold_no_outputs() -> None:
    import nbformat

    assert len(NOTEBOOKS) == 2
    for path in NOTEBOOKS:
        book = nbformat.read(path, as_version=4)
        code = [cell for cell in book.cells if cell.cell_type == "code"]
        assert code
        assert all(not cell.outputs and cell.execution_count is None for cell in code)


SHOWN_IN_MARIMO = """
import sys

import marimo

import benchwright as bw

answer = bw.answer_file(sys.argv[1])
assert marimo.as_html(answer).text == answer._repr_html_()
chart = marimo.as_html(next(iter(bw.charts(answer).values()))).text
assert "vegalite" in chart
assert "cdn" not in chart
"""


def test_marimo_shows_results_and_charts(tmp_path: Path) -> None:
    script = (
        tmp_path / "shown.py"
    )  # as a program of its own: with Spark in a process, marimo imports more than Spark bears
    script.write_text(SHOWN_IN_MARIMO, encoding="utf-8")
    game = EXAMPLES / "games" / "g1.toml"
    ran = subprocess.run([sys.executable, script, game], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
