"""Commands in README and docs are typed as printed; files that documents name exist."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import sys
from pathlib import Path

import pytest

from benchwright import read_logs
from benchwright.cli import main
from benchwright.config import Config, load_config

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = sorted(
    [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("benchmarks/*.md")]
)
CONSOLE = re.compile(r"^```console\n(.*?)^```", re.DOTALL | re.MULTILINE)
FILES = re.compile(r"`((?:benchmarks|docs|examples|scripts|studies|tests)/[\w./*-]+)`")
LINK = re.compile(r"\[[^\]]*\]\(([^)#:]+)\)")


def blocks() -> list[list[str]]:
    """The commands ``benchwright ...`` of each console block of the README, without its set-up."""
    found = []
    for block in CONSOLE.findall((ROOT / "README.md").read_text(encoding="utf-8")):
        lines = [line.rsplit("&&", 1)[-1].strip() for line in block.strip().splitlines()]
        found.append([line for line in lines if Path(line.split()[0]).name == "benchwright"])
    return found


def commands() -> list[str]:
    """Those that stand for themselves: not of a block that goes on with what its first command made."""
    return [line for block in blocks() if not is_chain(block) for line in block]


def is_chain(block: list[str]) -> bool:
    return any("board/" in line for line in block)


def a_log_and_its_panel(folder: Path, *, ingested: bool) -> None:
    """Write ``runs/`` with one small log and, if wanted, read it into ``panel/``."""
    (folder / "runs").mkdir()
    write_log(folder / "runs" / "scores.jsonl", "org/a", "org/b")
    if ingested:
        read_logs(folder / "runs", folder / "panel")


def write_log(path: Path, *models: str) -> None:
    rows = [
        {"model": model, "task": "sums", "item_id": item, "score": (item + len(model) + place) % 3 % 2}
        for place, model in enumerate(models)
        for item in range(6)
    ]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")


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
    if "examples/" in command:
        shutil.copytree(ROOT / "examples", tmp_path / "examples")
    line, _, into = command.partition(" > ")
    monkeypatch.setattr(sys, "argv", ["benchwright", *shlex.split(line)[1:]])
    with pytest.raises(SystemExit) as left:
        main()
    printed = capfd.readouterr()
    assert left.value.code in (0, None), printed.err
    assert printed.out.strip()
    if into:  # a shell would write it there
        (tmp_path / into.strip()).write_text(printed.out, encoding="utf-8")
        assert load_config(into.strip()) == Config(), "benchwright does not read what it printed"
        return
    if command.split()[1] != "audit":
        return
    folders = [path for path in tmp_path.iterdir() if path.is_dir() and path.name not in ("runs", "panel")]
    assert folders, f"{command} made nothing"
    for folder in folders:
        board = "leaderboard.csv" if "panel/" in command else "weights.csv"
        for name in ("report.html", "items.parquet", board, "summary.json", "tables", "figures"):
            assert (folder / name).exists()


def test_a_block_that_goes_on_with_what_it_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (block,) = [block for block in blocks() if is_chain(block)]
    monkeypatch.chdir(tmp_path)
    a_log_and_its_panel(tmp_path, ingested=True)
    (tmp_path / "new-model-logs").mkdir()
    write_log(tmp_path / "new-model-logs" / "scores.jsonl", "org/new")
    for command in block:
        monkeypatch.setattr(sys, "argv", shlex.split(command))
        with pytest.raises(SystemExit) as left:
            main()
        printed = capfd.readouterr()
        assert left.value.code in (0, None), printed.err
        assert printed.out.strip()
    boards = [(tmp_path / name / "leaderboard.csv").read_text(encoding="utf-8") for name in ("board", "grown")]
    assert ["org/new" in text for text in boards] == [False, True]


def test_the_readme_has_its_two_commands() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "bash scripts/check.sh" in text
    assert "scripts/check.sh" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert commands()


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_between_documents_resolve(document: Path) -> None:
    for target in LINK.findall(document.read_text(encoding="utf-8")):
        drawn = "img/charts/" in target  # while the site is built, which checks them
        assert drawn or (document.parent / target).exists(), f"{document.name} links to {target}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_files_that_documents_name_exist(document: Path) -> None:
    for named in FILES.findall(document.read_text(encoding="utf-8")):
        assert list(ROOT.glob(named)), f"{document.name} names {named}"
