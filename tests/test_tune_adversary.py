"""What adversaries needed beside what the curves say: medians, censoring, intervals. No model is tuned."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

from benchwright.game_answers.answer import GameAnswer
from benchwright.game_answers.inputs import answer_file
from benchwright.tuning.adversary import SCHEMA, compare
from benchwright.tuning.results import overtaking_sentence

AT = (0, 5, 10, 20, 40, 80, 160, 320)
DELTA = 10.0


@pytest.fixture(scope="module")
def answer(tmp_path_factory: pytest.TempPathFactory) -> GameAnswer:
    """The game of two known curves: b overtakes a with 2 (1 + Delta) - (1 + Delta)."""
    rng = np.random.default_rng(0)
    lines = ["model,task,step,score,stderr"]
    for name, alpha in (("a", np.log(2) - 2), ("b", -2.0)):
        for effort in AT:
            true = 1 / (1 + np.exp(-(alpha + np.log1p(effort))))
            lines.append(f"{name},t,{effort},{np.clip(true + 0.004 * rng.standard_normal(), 0, 1):.5f},0.004")
    folder = tmp_path_factory.mktemp("known")
    (folder / "scores.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    found = answer_file(folder / "scores.csv", lower=0.0, upper=1.0, replicates=100, deltas=(DELTA,))
    assert isinstance(found, GameAnswer)
    return found


def table(*needed: float | None, above: float = 200.0, every: float = 2.0, developer: str = "b") -> pl.DataFrame:
    """Adversaries at one level, one a seed; None: not passed."""
    rows: list[dict[str, Any]] = []
    for seed, effort in enumerate(needed):
        row = {
            "task": "t",
            "delta": DELTA,
            "developer": developer,
            "over": "a",
            "seed": seed,
            "score": 0.1,
            "target": 0.2,
        }
        below = above if effort is None else effort - every
        rows.append(row | {"needed": effort, "needed_above": below, "censored": effort is None})
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def test_the_fitted_effort_is_that_of_the_game(answer: GameAnswer) -> None:
    found = compare(table(11.0, 12.0, 13.0), {"t": answer}).row(0, named=True)
    assert answer.required_effort is not None
    assert found["fitted"] == pytest.approx(float(answer.required_effort.effort[0]), rel=1e-9)
    assert found["fitted"] == pytest.approx(1 + DELTA, rel=0.1)
    band = [found["fitted_low"], found["fitted_high"]]
    assert band == pytest.approx(answer.required_effort.pair_band[0], rel=0.02)
    assert found["needed"] == 12.0
    assert (found["least"], found["most"]) == (11.0, 13.0)


@pytest.mark.parametrize(
    ("needed", "median", "above", "within"),
    [
        ((11.0, 12.0, 13.0), 12.0, None, True),
        ((11.5, 12.5), 12.0, None, True),
        ((100.0, 101.0, None), 101.0, None, False),
        ((1.0, 1.0, 1.0), 1.0, None, False),
        ((12.0, None, None), None, 200.0, False),
        ((12.0, None), None, 106.0, False),
        ((None,), None, 200.0, False),
    ],
)
def test_medians_know_what_was_not_passed(
    answer: GameAnswer, needed: tuple[float | None, ...], median: float | None, above: float | None, within: bool
) -> None:
    found = compare(table(*needed), {"t": answer}).row(0, named=True)
    assert (found["needed"], found["needed_above"], found["within"]) == (median, above, within)
    assert found["censored"] == sum(one is None for one in needed)


def test_a_search_given_up_early_says_nothing(answer: GameAnswer) -> None:
    found = compare(table(None, None, above=3.0), {"t": answer}).row(0, named=True)
    assert (found["needed_above"], found["within"]) == (3.0, None)
    assert "b had not passed a after 3 more (median of 2 seeds, 2 not passed)" in overtaking_sentence(found, "steps")


def test_without_a_game_there_is_nothing_to_compare_with() -> None:
    found = compare(table(5.0), {}).row(0, named=True)
    assert (found["needed"], found["fitted"], found["within"]) == (5.0, None, None)
    assert "or there are none" in overtaking_sentence(found, "steps")
    assert compare(table(), {}).height == 0


def test_the_sentence_says_whether_the_interval_held(answer: GameAnswer) -> None:
    row = compare(table(11.0, 12.0, 13.0), {"t": answer}).row(0, named=True)
    text = overtaking_sentence(row, "steps")
    assert text.startswith("t: tuned by 10 steps, b needed 12 more to pass a (median of 3 seeds); fitted ")
    assert text.endswith(": inside")
