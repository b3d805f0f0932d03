"""Best replies: they gain what they say, end in equilibrium where there is one, and go round where there is none."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from benchwright.errors import UsageError
from benchwright.ranking_game.best_replies import best_replies
from benchwright.ranking_game.costs import PowerCosts
from benchwright.ranking_game.equilibrium import solve
from benchwright.ranking_game.forms import PowerLawCurves, TranslationCurves
from benchwright.ranking_game.game import RankingGame
from benchwright.ranking_game.regret import max_regret
from tables import run

RISING = RankingGame(TranslationCurves([1.0, 0.5], "exponential"), [1.0, 0.0])
CALM = RankingGame(TranslationCurves([0.4, 0.0, 0.8], "exponential"), [0.3, 0.2, 0.1])


@pytest.mark.parametrize("step", [0.5, 0.1, 0.01])
def test_a_game_without_equilibrium_goes_round(step: float) -> None:
    found = best_replies(RISING, step=step)
    assert found.ended == "cycle"
    efforts = np.zeros(2)
    for move in found.moves:
        before = RISING.payoffs(efforts)[move.developer]
        regret = max_regret(RISING, efforts)
        efforts[move.developer] = move.effort
        gain = RISING.payoffs(efforts)[move.developer] - before
        assert 0 < gain <= regret + 1e-9
        assert gain == pytest.approx(move.gain)
        assert RISING.published_order(efforts)[move.rank - 1] == move.developer
    assert efforts.tolist() == [0.0, 0.0]  # back where the cycle began


@pytest.mark.parametrize("seed", [None, 0, 1])
def test_a_game_with_an_equilibrium_comes_to_rest(seed: int | None) -> None:
    rng = None if seed is None else np.random.default_rng(seed)
    found = best_replies(CALM, start=[0.3, 0.9, 0.1], rng=rng)
    assert found.ended == "rest"
    assert found.profile.tolist() == [0.0, 0.0, 0.0]
    assert best_replies(CALM).moves == ()


def test_fitted_curves_that_cross_go_round_or_rest() -> None:
    curves = PowerLawCurves([0.5, 0.0, 0.2], [0.6, 0.5, 0.3], 0.1, [0.9, 0.85, 0.8], [3.0, 2.0, 1.0])
    game = RankingGame(curves, [3.0, 1.0, 0.0], costs=PowerCosts(0.5))
    found = best_replies(game)
    assert found.ended == "cycle"
    assert {move.developer for move in found.cycle} == {0, 1, 2}
    assert all(0 <= move.score <= 1 and move.gain > 0 for move in found.cycle)
    efforts = found.profile.copy()  # the cycle closes
    for move in found.cycle:
        efforts[move.developer] = move.effort
    assert efforts.tolist() == found.profile.tolist()
    assert best_replies(game.at(10_000.0)).ended == "rest"


def test_the_order_of_moves_is_seeded_and_capped() -> None:
    first, again = (best_replies(RISING, rng=np.random.default_rng(3), max_moves=9) for _ in range(2))
    assert first.moves == again.moves
    assert (first.ended, len(first.moves)) == ("cap", 9)
    assert first.to_frame().height == 9
    assert "stopped after 9 moves" in str(first)
    with pytest.raises(UsageError, match="`step` must lie"):
        best_replies(RISING, step=0.0)


def test_the_command_prints_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    games = Path(__file__).resolve().parents[1] / "examples" / "games"
    monkeypatch.chdir(tmp_path)
    answer = json.loads(run(monkeypatch, capsys, "game", games / "g1.toml", "--race", "--json").out)
    assert answer["arms_race"]["wrong_order"] == pytest.approx(0.375)
    assert answer["best_replies"]["ended"] == "cycle"
    assert "Arms race of 2 developers" in run(monkeypatch, capsys, "game", games / "g1.toml", "--race").out
    assert run(monkeypatch, capsys, "game", games / "three-levels.toml", "--race").code == 2


@pytest.mark.parametrize("step", [0.01, 0.1, 0.5, 0.9])
def test_replies_come_to_rest_only_at_equilibria(step: float) -> None:
    rng = np.random.default_rng(6)
    for _ in range(25):
        n = int(rng.integers(2, 5))
        curves = PowerLawCurves(rng.normal(0, 0.5, n), rng.uniform(0.4, 1.4, n), 0.0, rng.uniform(0.8, 1.0, n))
        rewards = np.sort(rng.uniform(0, 3, n))[::-1]
        game = RankingGame(curves, rewards, costs=PowerCosts(rng.uniform(0.2, 2, n)))
        found = best_replies(game, step=step, max_moves=60)
        assert (found.ended == "rest") == (solve(game).pure_equilibrium == "exists")
        if found.ended == "rest":
            assert max_regret(game, found.profile) == 0
