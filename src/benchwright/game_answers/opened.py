"""A ranking game that is read and fitted once and answered again and again, as its rewards and costs change."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

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
class OpenedGame:
    """A game as read: on curves that are ``fitted``, of a ``file`` without curves, or a ``result`` without levers."""

    stated: CurveGame | None = None
    fitted: FittedCurves | None = None
    file: GameFile | None = None
    result: GameResult | None = None

    @property
    def movable(self) -> bool:
        """Whether rewards, costs and the level of tuning can be changed."""
        return self.result is None

    @property
    def n(self) -> int:
        """Number of developers; 0 of a result."""
        if self.fitted is not None:
            return len(self.fitted.fits.models)
        return 0 if self.file is None else self.file.game.n

    def answer(self, choices: GameChoices, *, intervals: bool = True) -> GameResult:
        """Return what :func:`~benchwright.game_answers.inputs.answer_file` says under these choices.

        Without ``intervals`` a game on curves looks at no draws, and no game runs an arms race.
        """
        given = options_of(choices)
        if self.result is not None:
            if given:
                raise UsageError("this game has no rewards, costs or level of tuning to change")
            return self.result
        if self.file is not None:
            return answer_game(changed_game(self.file, given), race=intervals and self.file.race)
        assert self.stated is not None  # noqa: S101  one of the three is there
        assert self.fitted is not None  # noqa: S101
        stated = changed_curves(self.stated, given)
        if not intervals:
            stated = replace(stated, race=False)
        return answer_fitted(stated, self.fitted, intervals=intervals)


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
                return OpenedGame(result=answer_game(read, progress=progress))
            return OpenedGame(file=read)
        return OpenedGame(stated=read, fitted=fit_stated(read, progress=progress))
    if kind is BY_EFFORT:
        stated = CurveGame(file)
        return OpenedGame(stated=stated, fitted=fit_stated(stated, progress=progress))
    return OpenedGame(result=answer_file(file, progress=progress))
