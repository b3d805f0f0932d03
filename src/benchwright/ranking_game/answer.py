"""The answer to a ranking game: verdict, threshold and, of measured curves, how sure they are and what tuning costs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any

from benchwright.errors import UsageError
from benchwright.ranking_game.arms_race import ArmsRace, arms_race
from benchwright.ranking_game.best_replies import BestReplies, best_replies
from benchwright.ranking_game.equilibrium import GameSolution, solve
from benchwright.ranking_game.files import GameFile
from benchwright.ranking_game.finite import FiniteGame, FiniteSolution, solve_finite
from benchwright.ranking_game.safe_gap import SafeGap, safe_gap
from benchwright.ranking_game.threshold import Threshold, threshold

Progress = Callable[[str], None]
PARTS = {
    "threshold": "threshold",
    "safe_gap": "safe_gap",
    "arms_race": "arms_race",
    "best_replies": "replies",
}


@dataclass(frozen=True, slots=True, eq=False)
class GameAnswer:
    """What a game has for an answer; what was not asked for, or this game has not, is None."""

    solution: GameSolution | FiniteSolution
    threshold: Threshold | None
    arms_race: ArmsRace | None = None
    replies: BestReplies | None = None
    _: KW_ONLY
    safe_gap: SafeGap | None = None

    @property
    def decided(self) -> bool:
        """Whether a pure equilibrium was shown to exist, or not to."""
        return not isinstance(self.solution, GameSolution) or self.solution.pure_equilibrium != "undecided"

    def __str__(self) -> str:
        parts = (self.solution, self.threshold, self.safe_gap, self.arms_race, self.replies)
        return "\n".join(str(part) for part in parts if part is not None)

    def to_dict(self) -> dict[str, Any]:
        """The solution's record, with those of the other parts, in types that JSON knows."""
        record = self.solution.to_dict() | {"threshold": None}
        for key, name in PARTS.items():
            if (part := getattr(self, name)) is not None:
                record[key] = part.to_dict()
        return record


def answer_game(file: GameFile, *, race: bool = False, progress: Progress | None = None) -> GameAnswer:
    """Solve the game of a file and search its threshold; with ``race`` also mixed play and best replies."""
    say, game = progress or (lambda _: None), file.game
    if isinstance(game, FiniteGame):
        if race:
            raise UsageError("a finite game's mixed equilibria are listed; it has no arms race to search")
        return GameAnswer(solve_finite(game), None)
    say("solving")
    solution = solve(game, profiles=file.profiles)
    say("searching the threshold")
    found = threshold(game, delta_max=file.delta_max)
    if not race:
        return GameAnswer(solution, found, safe_gap=safe_gap(game))
    say("mixed play")
    return GameAnswer(solution, found, arms_race(game), best_replies(game), safe_gap=safe_gap(game))
