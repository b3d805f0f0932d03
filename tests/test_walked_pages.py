"""Every command of the documentation site is run as printed, and what a page shows is what the command prints.

The tutorial starts in an empty folder; other pages start in what it leaves, with files of the names that they use.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from walked_pages import blocks_of, run, walk

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
TUTORIAL = DOCS / "tutorial" / "index.md"
PAGES = sorted(page for page in DOCS.rglob("*.md") if any(block.commands for block in blocks_of(page)))
# Not run here, and why. A command is named by how it begins.
NOT_RUN = {
    "pip install": "brings libraries, as scripts/check.sh does",
    "benchwright audit -o out/": "the built-in example, for a folder without choices; tests/test_example.py types it",
    "jupyter lab": "opens a browser; tests/test_notebooks.py runs the notebooks",
    "benchwright judge items.jsonl --model openai/": "asks a provider; tests/test_judge*.py ask a server here",
    "benchwright activities RAW": "needs the raw ratings, which are not ours to ship; tests/test_activity*.py",
    "benchwright audit panel/ --welfare loadings/": "needs what the two above make",
    "python make_models.py": "needs torch; a test marked `tuning` below runs it, and the commands after it",
    "benchwright tune protocol.toml": "likewise",
    "benchwright game tuned/": "needs what the one above makes",
    "benchwright ingest tuned/": "likewise",
    "python examples/lab/": "needs torch, and most of an hour",
    "cd lab/": "needs what the one above makes",
    "benchwright game trajectories_with_step0.csv": "tests/test_tuned_trajectories.py reads that table",
}


@pytest.fixture(scope="module")
def after_the_tutorial(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tutorial")
    assert walk(TUTORIAL, folder) > 4
    return folder


def lay_out(folder: Path) -> None:
    """Put beside the tutorial's files what other pages call theirs."""
    shutil.copytree(ROOT / "examples", folder / "examples")
    for old, new in (
        ("logs", "runs"),
        ("report", "out"),
        ("report", "report-2025"),
        ("report", "report-2026"),
        ("weights", "old"),
        ("weights", "new"),
        ("welfare", "tables"),
        ("board/leaderboard.csv", "leaderboard-may.csv"),
        ("board/leaderboard.csv", "leaderboard-june.csv"),
    ):
        copy = shutil.copytree if (folder / old).is_dir() else shutil.copy
        copy(folder / old, folder / new)
    (folder / "more").mkdir()
    (folder / "more" / "cut-off.eval").write_bytes(b"PK")  # a fault, and no reason to stop
    for old in (folder / "logs" / "tiny__small-seed0").glob("*T00-01-20*"):
        new = folder / "new-model-logs" / old.name
        new.parent.mkdir(exist_ok=True)
        new.write_text(old.read_text(encoding="utf-8").replace("tiny/small-seed0", "tiny/new"), encoding="utf-8")
    scores = "".join(
        f"org/{m},{t},{s}\n" for m, t, s in (("a", "x", 0.3), ("a", "y", 0.6), ("b", "x", 0.4), ("b", "y", 0.5))
    )
    (folder / "scores.csv").write_text(f"model,task,score\n{scores}", encoding="utf-8")
    rows = ({"task": "t", "doc_id": i, "question": f"Write letter {i} to a customer"} for i in range(3))
    (folder / "items.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(DOCS).as_posix())
def test_commands_are_typed_as_printed(
    page: Path,
    after_the_tutorial: Path,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if page == TUTORIAL:
        return  # the fixture has walked it
    if "olmes-audit" in "".join(command for block in blocks_of(page) for command in block.commands):
        monkeypatch.setenv("BENCHWRIGHT_DATA", str(request.getfixturevalue("shared") / "data"))
    folder = tmp_path / "here"
    shutil.copytree(after_the_tutorial, folder)
    lay_out(folder)
    walk(page, folder, tuple(NOT_RUN))


@pytest.mark.tuning
@pytest.mark.slow
def test_the_small_tuning_experiment_is_typed_as_printed(tmp_path: Path) -> None:
    printed, shown = {}, []
    for block in blocks_of(DOCS / "how-to" / "tuning.md"):
        if block.title is not None:
            (tmp_path / block.title).write_text(block.text, encoding="utf-8")
        for command in block.commands:
            if "examples/" not in command:
                printed[command] = run(command, tmp_path, warnings="default")
        shown += block.text.splitlines() if block.language == "text" else []
    told = printed["benchwright tune protocol.toml -o tuned/"]
    assert shown[0] in told
    untuned = shown[1].split("±")[0].rstrip()  # what is tuned may have other digits on another processor
    assert untuned in told
    assert "a pure equilibrium does not exist: tiny overtakes small" in told
    assert "36 runs, 2 models, 1 task" in printed["benchwright ingest tuned/rows.parquet -o tuned-panel/"]


def test_what_is_not_run_is_still_printed() -> None:
    printed = [command for page in PAGES for block in blocks_of(page) for command in block.commands]
    assert [start for start in NOT_RUN if not any(command.startswith(start) for command in printed)] == []
