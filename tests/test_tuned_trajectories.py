"""The figures of docs/explanation/tuned-trajectories.md, from the table that it is about."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchwright.game_answers.answer import GameAnswer
from benchwright.game_answers.inputs import answer_file

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGE = (DOCS / "explanation" / "tuned-trajectories.md").read_text(encoding="utf-8")
LEVELS = (0.0, 10.0, 100.0, 1000.0, 4000.0)
GSM8K = {"task": "gsm8k", "filter": "flexible-extract"}
MMLU = {"task": "mmlu", "metric": "acc"}
SETTINGS = {
    "default: all per model": {},
    "`--beta shared`": {"beta": "shared"},
    "`--lower shared`": {"lower": "shared"},
    "`--lower shared --upper shared`": {"lower": "shared", "upper": "shared"},
    "`--lower 0 --upper 1`": {"lower": 0, "upper": 1},
}
GROUPS = {
    "Pythia, MMLU": MMLU | {"models": ["pythia-*"]},
    "llama-*, GSM8K": GSM8K | {"models": ["llama-*"]},
    "llama-*, MMLU": MMLU | {"models": ["llama-*"]},
    "all 44 fitted, GSM8K": GSM8K,
    "all 50 fitted, MMLU": MMLU,
}


def cells(first: str) -> list[str]:
    """The cells of the page's table row that begins with a text."""
    row = next(line for line in PAGE.splitlines() if line.startswith(f"| {first} |"))
    return [cell.strip() for cell in row.strip("|").split("|")]


def numbers(text: str) -> list[float]:
    return [float(found.replace(",", "")) for found in re.findall(r"-?[\d,]*\.?\d+", text)]


def same(shown: str, value: float) -> bool:
    """Whether a printed figure is the value, rounded to as many digits."""
    if shown == "out of reach":
        return value == float("inf")
    digits = len(shown.partition(".")[2])
    return abs(float(shown.replace(",", "")) - value) <= 0.501 * 10.0**-digits


def answer(shared: Path, **chosen: object) -> GameAnswer:
    table = shared / "data" / "trajectories" / "ttt-emergence" / "trajectories_with_step0.csv"
    found = answer_file(table, deltas=LEVELS, replicates=0, **chosen)
    assert isinstance(found, GameAnswer)
    return found


@pytest.mark.parametrize("settings", SETTINGS)
def test_pythia_on_gsm8k(shared: Path, settings: str) -> None:
    found = answer(shared, **GSM8K, models=["pythia-*"], **SETTINGS[settings])
    row = cells(settings)
    assert found.required_effort is not None
    assert found.threshold is not None
    assert all(same(shown, value) for shown, value in zip(row[1:6], found.required_effort.effort, strict=True))
    assert same(row[6].split()[0], found.threshold.delta)
    assert found.fits is not None
    assert same(row[7], found.fits.bic)


@pytest.mark.slow
@pytest.mark.parametrize("group", GROUPS)
def test_other_groups(shared: Path, group: str) -> None:
    found, row = answer(shared, **GROUPS[group]), cells(group)
    assert found.required_effort is not None
    assert found.assumptions is not None
    shown = [part.strip() for part in row[2].split("/")]
    assert all(same(text, value) for text, value in zip(shown, found.required_effort.effort, strict=True)), shown
    crossing, pairs = numbers(row[4])
    check = found.assumptions.check("C1")
    assert (check.count, len(found.solution.to_dict()["developers"])) == (
        crossing,
        round((2 * pairs + 0.25) ** 0.5 + 0.5),
    )
    assert found.threshold is not None
    assert found.threshold.status == ("none_up_to_max" if row[3].startswith("none") else "found")
