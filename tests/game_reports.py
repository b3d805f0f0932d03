"""Answers of ranking games whose reports the tests look at."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from benchwright.game_answers.answer import GameAnswer, answer_game
from benchwright.game_answers.files import GameFile, read_game
from benchwright.game_answers.inputs import GameResult
from benchwright.ranking_game.forms import TranslationCurves
from benchwright.ranking_game.game import RankingGame
from benchwright.ranking_game.private_variants import report_variants
from benchwright.ranking_game.protocols import ScoreTables, compare_protocols

GAMES = Path(__file__).parents[1] / "examples" / "games"
EVIL = ("<script>alert(1)</script>", "=cmd|'/c calc'!A1", "\x1b[2Ja\nb", "$x^2_\\%&#{}~", "\u202eevil")


def example(name: str, *, race: bool = False) -> GameAnswer:
    file = read_game(GAMES / f"{name}.toml")
    assert isinstance(file, GameFile)
    return answer_game(file, race=race)


def answer_of(game: RankingGame, *, race: bool = False, delta_max: float = 100.0) -> GameAnswer:
    return answer_game(GameFile(game, (), delta_max), race=race)


def protocols() -> GameResult:
    rng = np.random.default_rng(3)
    ability = np.linspace(0.3, 0.7, 8)
    direct = np.clip(ability + 0.15 * rng.standard_normal((5, 8)), 0, 1)
    tuned = np.clip(ability + 0.02 * rng.standard_normal((5, 8)), 0, 1)
    noise = np.full((5, 8), 0.01)
    models, tasks = tuple(f"model {i}" for i in range(8)), tuple(f"task {k}" for k in range(5))
    return compare_protocols(ScoreTables(models, tasks, direct, tuned, noise, noise), rng=rng, replicates=50)


def variants() -> GameResult:
    rows = [("a", 100, 0.66, 1), ("a", 100, 0.58, 0), ("a", 100, 0.6, 0), ("b", 100, 0.65, 1)]
    return report_variants(pl.DataFrame(rows, schema=["developer", "n_items", "score", "public"], orient="row"))


def hostile(*, race: bool) -> GameAnswer:
    """A game whose developers' names attack something."""
    curves = TranslationCurves([2.0, 1.5, 1.2, 1.1, 1.0], "exponential")
    return answer_of(RankingGame(curves, [1.0, 0.8, 0.5, 0.2, 0.0], names=EVIL), race=race)
