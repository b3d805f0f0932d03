"""Commands in README and docs are typed as printed; files that documents name exist."""

from __future__ import annotations

import json
import re
import shlex
import sys
from pathlib import Path

import pytest

from benchwright import read_logs
from benchwright.cli import main
from benchwright.config import load_config

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = sorted(
    [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/*.md"), *ROOT.glob("benchmarks/*.md")]
)
CONSOLE = re.compile(r"^```console\n(.*?)^```", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\[[^\]]*\]\(([^)#:]+)\)")


def commands() -> list[str]:
    """Every ``benchwright ...`` that a console block of the README holds, without its set-up."""
    found = []
    for block in CONSOLE.findall((ROOT / "README.md").read_text(encoding="utf-8")):
        for line in block.strip().splitlines():
            last = line.rsplit("&&", 1)[-1].strip()
            if Path(last.split()[0]).name == "benchwright":
                found.append(last)
    return found


def a_log_and_its_panel(folder: Path, *, ingested: bool) -> None:
    """Write ``runs/`` with one small log and, if wanted, read it into ``panel/``."""
    (folder / "runs").mkdir()
    rows = [
        {"model": model, "task": "sums", "item_id": item, "score": (item + skill) % 3 % 2}
        for skill, model in enumerate(("org/a", "org/b"))
        for item in range(6)
    ]
    text = "".join(f"{json.dumps(row)}\n" for row in rows)
    (folder / "runs" / "scores.jsonl").write_text(text, encoding="utf-8")
    if ingested:
        read_logs(folder / "runs", folder / "panel")


@pytest.mark.parametrize("command", commands())
def test_commands_of_the_readme_run(
    command: str,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    if "olmes-audit" in command:
        shared: Path = request.getfixturevalue("shared")
        monkeypatch.setenv("BENCHWRIGHT_DATA", str(shared / "data"))
    if "runs/" in command or "panel/" in command:
        a_log_and_its_panel(tmp_path, ingested=" ingest " not in command)
    line, _, into = command.partition(" > ")
    monkeypatch.setattr(sys, "argv", ["benchwright", *shlex.split(line)[1:]])
    with pytest.raises(SystemExit) as left:
        main()
    printed = capfd.readouterr()
    assert left.value.code in (0, None), printed.err
    assert printed.out.strip()
    if into:  # a shell would write it there
        (tmp_path / into.strip()).write_text(printed.out, encoding="utf-8")
        assert load_config(into.strip()).sources, "benchwright does not read what it printed"
        return
    if "audit" not in command:
        return
    folders = [path for path in tmp_path.iterdir() if path.is_dir() and path.name not in ("runs", "panel")]
    assert folders, f"{command} made nothing"
    for folder in folders:
        board = "leaderboard.csv" if "panel/" in command else "weights.csv"
        for name in ("report.html", "items.parquet", board, "summary.json", "tables", "figures"):
            assert (folder / name).exists()


def test_the_readme_has_its_two_commands() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "bash scripts/check.sh" in text
    assert "scripts/check.sh" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert commands()


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_between_documents_resolve(document: Path) -> None:
    for target in LINK.findall(document.read_text(encoding="utf-8")):
        assert (document.parent / target).exists(), f"{document.name} links to {target}"
