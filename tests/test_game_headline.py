"""The first lines of a printed answer: the three questions, and what they rest on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchwright.game_answers.answer import GameAnswer
from benchwright.game_answers.headline import headline
from benchwright.game_answers.inputs import answer_file

GAMES = Path(__file__).parents[1] / "examples" / "games"


def first_lines(file: Path, **options: Any) -> list[str]:
    answer = answer_file(file, **options)
    assert isinstance(answer, GameAnswer)
    lines = headline(answer)
    assert str(answer).startswith("\n".join(lines))
    return lines


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        (
            "g1",
            [
                "Worth gaming: yes, b over a costs 0.5 for a reward gap of 1: no pure equilibrium",
                "Cheapest overtake: b over a, effort 0.5, cost 0.5",
                "Tuning that stops it: none, at no level is it stable",
            ],
        ),
        (
            "g1b",
            [
                "Worth gaming: no, no overtake pays; closest, b over a costs 0.5 for a reward gap of 0.25",
                "Cheapest overtake: b over a, effort 0.5, cost 0.5",
                "Tuning that stops it: none is needed, no overtake pays at any level up to 100,000",
            ],
        ),
        (
            "g5",
            [
                "Worth gaming: yes, b over a costs 1 for a reward gap of 2: no pure equilibrium",
                "Cheapest overtake: b over a, effort 1, cost 1",
                "Tuning that stops it: 1 and more, looked at up to 100,000",
            ],
        ),
    ],
)
def test_golden_games_in_three_lines(name: str, lines: list[str]) -> None:
    assert first_lines(GAMES / f"{name}.toml") == [*lines, ""]


def test_a_finite_game_says_it_itself() -> None:
    assert first_lines(GAMES / "three-levels.toml") == []


def test_measured_curves_say_how_sure_they_are_and_what_is_assumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    worth, cheapest, tuning, _ = first_lines(GAMES / "curves.toml", replicates=40)
    assert worth.startswith("Worth gaming: yes, ")
    assert worth.endswith("; a pure equilibrium in 0 % of 40 draws")
    assert "steps, cost" in cheapest
    monkeypatch.setattr("benchwright.game_answers.curve_game.PAIRS_OF_DRAWS", 0)
    told = "With 6 models, to save time, only 20 of 40 draws are used beyond the curves: shares and intervals are rough"
    assert told in first_lines(GAMES / "curves.toml", replicates=40)
    assert "(95 % interval)" in cheapest
    assert "; such a level in 100 % of 40 draws, at most " in tuning
    assert tuning.endswith(" in 97.5 %")
    bare = first_lines(GAMES / "curves.csv", replicates=0, delta=300.0)
    assert bare[0].startswith("Worth gaming after tuning by 300: ")
    assert bare[3].startswith(
        "Rewards are assumed: each rank earns 1,000 more than the next; no overtake pays up to a gap"
    )


def test_a_model_that_falls_is_named_at_once(tmp_path: Path) -> None:
    rows = ["model,task,step,score,n"]
    for name, start, slope in (("top", 0.7, -0.03), ("a", 0.4, 0.03), ("b", 0.3, 0.02)):
        rows += [f"{name},t,{10**k},{start + slope * k},1000" for k in range(7)]
    file = tmp_path / "c.csv"
    file.write_text("\n".join(rows), encoding="utf-8")
    assert "Not in the game: 1 of 3 models, top" in first_lines(file, replicates=0)


def test_curves_taken_for_flat_are_named(tmp_path: Path) -> None:
    rows = ["model,task,step,score,n"]
    for name, base, rise in (("a", 0.7, 0.0), ("b", 0.3, 0.1)):
        rows += [f"{name},t,{step},{base + rise * k},50" for k, step in enumerate((0, 10, 30, 100, 300))]
    file = tmp_path / "c.csv"
    file.write_text("\n".join(rows), encoding="utf-8")
    named = "Taken for flat, where no rise shows above the noise: a; a small rise may be missed"
    assert named in first_lines(file, replicates=0)


def test_a_verdict_that_draws_contradict_is_not_settled(tmp_path: Path) -> None:
    rows = ["model,task,step,score,n"]
    for name, base in (("a", 0.32), ("b", 0.30)):
        rows += [f"{name},t,{step},{base + 0.05 * k},60" for k, step in enumerate((0, 10, 30, 100, 300, 1000))]
    file = tmp_path / "c.csv"
    file.write_text("\n".join(rows), encoding="utf-8")
    lines = first_lines(file, replicates=60, rewards="per-rank:2", lower=0.0, upper=1.0, beta="shared")
    assert "NOT SETTLED: a pure equilibrium in " in lines[0]
