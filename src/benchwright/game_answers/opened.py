"""A ranking game that is read and fitted once and answered again and again, as its rewards and costs change."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from benchwright.choices import GameChoices
from benchwright.errors import UsageError
from benchwright.game_answers.answer import Progress, answer_game
from benchwright.game_answers.curve_answer import FittedCurves, answer_fitted, fit_stated
from benchwright.game_answers.curve_game import CurveGame
from benchwright.game_answers.files import GameFile, read_game
from benchwright.game_answers.inputs import (
    BY_EFFORT,
    GAME_FILE,
    GameResult,
    answer_file,
    changed_curves,
    changed_game,
    kind_of,
)
from benchwright.ranking_game.finite import FiniteGame


@dataclass(frozen=True, slots=True, eq=False)
class OpenedCurves:
    """A game on measured scores, with its curves fitted; ``n`` developers, and levers that move."""

    stated: CurveGame
    fitted: FittedCurves
    movable = True

    @property
    def n(self) -> int:
        """Number of developers."""
        return len(self.fitted.fits.models)

    def answer(self, choices: GameChoices, *, intervals: bool = True) -> GameResult:
        """Return what :func:`~benchwright.game_answers.inputs.answer_file` says under these choices.

        Without ``intervals`` no draws are looked at, and no arms race is run.
        """
        stated = changed_curves(self.stated, options_of(choices))
        if not intervals:
            stated = replace(stated, race=False)
        return answer_fitted(stated, self.fitted, intervals=intervals)


@dataclass(frozen=True, slots=True, eq=False)
class OpenedFile:
    """A game file without curves."""

    file: GameFile
    movable = True

    @property
    def n(self) -> int:
        """Number of developers."""
        return self.file.game.n

    def answer(self, choices: GameChoices, *, intervals: bool = True) -> GameResult:
        """Return the answer under these choices; without ``intervals`` no arms race is run."""
        return answer_game(changed_game(self.file, options_of(choices)), race=intervals and self.file.race)


@dataclass(frozen=True, slots=True, eq=False)
class OpenedResult:
    """An answer whose rewards, costs and level of tuning cannot be changed; it counts no developers."""

    result: GameResult
    movable = False
    n = 0

    def answer(self, choices: GameChoices, *, intervals: bool = True) -> GameResult:
        """Return the answer; choices are an error."""
        if options_of(choices):
            raise UsageError("this game has no rewards, costs or level of tuning to change")
        return self.result


OpenedGame: TypeAlias = OpenedCurves | OpenedFile | OpenedResult


def options_of(choices: GameChoices) -> dict[str, Any]:
    """Return choices as the options of a game; what is unset is left out."""
    named = {"rewards": choices.rewards, "kappa": choices.kappa, "delta": choices.tune_before_test}
    return {name: value for name, value in named.items() if value is not None}


def open_game(path: str | Path, *, progress: Progress | None = None) -> OpenedGame:
    """Read a game, and fit the curves of one on measured scores; errors are those of ``answer_file``."""
    file = Path(path)
    kind = kind_of(file)
    if kind is GAME_FILE:
        read = read_game(file)
        if isinstance(read, GameFile):
            if isinstance(read.game, FiniteGame):
                return OpenedResult(answer_game(read, progress=progress))
            return OpenedFile(read)
        return OpenedCurves(read, fit_stated(read, progress=progress))
    if kind is BY_EFFORT:
        stated = CurveGame(file)
        return OpenedCurves(stated, fit_stated(stated, progress=progress))
    return OpenedResult(answer_file(file, progress=progress))
