"""The answer to a ranking game: verdict, threshold and, of measured curves, how sure they are and what tuning costs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

from benchwright._shown import Folded, Headline, Shown, ShownPart
from benchwright.errors import UsageError
from benchwright.game_answers.files import GameFile
from benchwright.game_answers.headline import headline
from benchwright.ranking_game.equilibrium import GameSolution, solve
from benchwright.ranking_game.finite import FiniteGame, FiniteSolution, solve_finite
from benchwright.ranking_game.game import RankingGame
from benchwright.ranking_game.safe_gap import SafeGap, safe_gap
from benchwright.ranking_game.threshold import Threshold, threshold

if TYPE_CHECKING:
    from benchwright.curves.bootstrap import CurveDraws
    from benchwright.curves.comparison import LawComparison
    from benchwright.curves.results import CurveFits
    from benchwright.game_answers.curve_game import CurveGame
    from benchwright.ranking_game.arms_race import ArmsRace
    from benchwright.ranking_game.assumptions import Assumptions
    from benchwright.ranking_game.best_replies import BestReplies
    from benchwright.ranking_game.capability import CapabilityOrder
    from benchwright.ranking_game.margins import MarginOverTuning
    from benchwright.ranking_game.race_over_tuning import RaceOverTuning
    from benchwright.ranking_game.threshold_draws import ThresholdDraws
    from benchwright.ranking_game.tuning import DesignerCost, RequiredEffort

Progress = Callable[[str], None]
# Key of the record -> field.
PARTS = {
    "threshold": "threshold",
    "threshold_interval": "threshold_draws",
    "required_effort": "required_effort",
    "safe_gap": "safe_gap",
    "designer": "designer",
    "capability": "capability",
    "assumptions": "assumptions",
    "margins": "margins",
    "curves": "fits",
    "laws": "laws",
    "arms_race": "arms_race",
    "race_over_tuning": "race_over_tuning",
    "best_replies": "replies",
}
NOT_PRINTED = {"fits": "Fitted curves", "laws": "Other laws", "margins": "Margins over tuning"}


@dataclass(frozen=True, slots=True, eq=False)
class GameAnswer(Shown):
    """What a game has for an answer; what was not asked for, or this game has not, is None.

    Attributes
    ----------
    solution, threshold, safe_gap
        Of the game as it stands, or with the curves as fitted.
    arms_race, replies, race_over_tuning
        Mixed play and best replies at the level in force, and mixed play at other levels of tuning.
    fits, draws, laws, capability
        Fitted curves, their bootstrap draws, other laws compared on held-out scores, and the order of capability.
    assumptions
        What results rest on, looked at on the curves and costs.
    required_effort, margins, threshold_draws
        Over levels of tuning, with bands; the threshold in each draw (None without draws).
    designer
        The designer's bill at the threshold, or at the level in force where there is none, against the cheapest
        overtake; None where that level is 0.
    stated : CurveGame or None
        What was asked of measured curves, and what was assumed.
    notes : tuple of str
        What was left out.
    """

    solution: GameSolution | FiniteSolution
    threshold: Threshold | None
    arms_race: ArmsRace | None = None
    replies: BestReplies | None = None
    _: KW_ONLY
    safe_gap: SafeGap | None = None
    fits: CurveFits | None = None
    draws: CurveDraws | None = None
    laws: LawComparison | None = None
    capability: CapabilityOrder | None = None
    assumptions: Assumptions | None = None
    required_effort: RequiredEffort | None = None
    margins: MarginOverTuning | None = None
    threshold_draws: ThresholdDraws | None = None
    designer: DesignerCost | None = None
    race_over_tuning: RaceOverTuning | None = None
    stated: CurveGame | None = None
    notes: tuple[str, ...] = ()

    @property
    def decided(self) -> bool:
        """Whether a pure equilibrium was shown to exist, or not to."""
        return not isinstance(self.solution, GameSolution) or self.solution.pure_equilibrium != "undecided"

    def _told(self) -> Iterable[ShownPart]:
        for place, line in enumerate(headline(self)):
            yield line if place else Headline(line)
        yield self.solution
        for name in PARTS.values():
            part = getattr(self, name)
            if part is not None:
                yield Folded(NOT_PRINTED[name], [part]) if name in NOT_PRINTED else part
        yield from () if self.stated is None else self.stated.assumptions
        if self.notes:
            yield "Of the scores:"
            yield from (f"  {note}" for note in self.notes)

    def to_dict(self) -> dict[str, Any]:
        """The solution's record, with those of the other parts, in types that JSON knows."""
        parts = {key: getattr(self, name) for key, name in PARTS.items()}
        record = self.solution.to_dict() | {
            key: None if part is None else part.to_dict() for key, part in parts.items()
        }
        if self.stated is not None:
            record |= {"assumed": list(self.stated.assumptions), "seed": self.stated.seed, "left_out": list(self.notes)}
        return record


def answer_game(
    file: GameFile, *, race: bool = False, deltas: Sequence[float] = (), progress: Progress | None = None
) -> GameAnswer:
    """Solve the game of a file and search its threshold; with ``race`` also mixed play and best replies.

    ``deltas`` are levels of tuning at which mixed play is found too.
    """
    say, game = progress or (lambda _: None), file.game
    if isinstance(game, FiniteGame):
        if race:
            raise UsageError("a finite game's mixed equilibria are listed; it has no arms race to search")
        return GameAnswer(solve_finite(game), None)
    say("solving")
    solution = solve(game, profiles=file.profiles)
    say("searching the threshold")
    found = threshold(game, delta_max=file.delta_max)
    played = mixed_play(game, deltas, say) if race else {}
    return GameAnswer(solution, found, safe_gap=safe_gap(game), **played)


def mixed_play(game: RankingGame, deltas: Sequence[float], say: Progress) -> dict[str, Any]:
    """Return fields of an answer: mixed play and best replies at the level in force, and mixed play at ``deltas``."""
    from benchwright.ranking_game.arms_race import arms_race
    from benchwright.ranking_game.best_replies import best_replies
    from benchwright.ranking_game.race_over_tuning import race_over_tuning

    say("mixed play")
    return {
        "arms_race": arms_race(game),
        "replies": best_replies(game),
        "race_over_tuning": race_over_tuning(game, deltas, progress=say) if len(deltas) else None,
    }
