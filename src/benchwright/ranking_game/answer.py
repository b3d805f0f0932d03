"""The answer to a ranking game: verdict, threshold and, of measured curves, how sure they are and what tuning costs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from benchwright._words import count
from benchwright.curves.bootstrap import CurveDraws, bootstrap_curves
from benchwright.curves.comparison import LawComparison, compare_laws
from benchwright.curves.fit import fit_curves
from benchwright.curves.reading import read_effort_scores
from benchwright.curves.results import CurveFits
from benchwright.curves.scores import EffortScores
from benchwright.errors import DataError, UsageError
from benchwright.panel.names import listed
from benchwright.ranking_game.arms_race import ArmsRace, arms_race
from benchwright.ranking_game.assumptions import Assumptions, check_assumptions
from benchwright.ranking_game.best_replies import BestReplies, best_replies
from benchwright.ranking_game.capability import CapabilityOrder
from benchwright.ranking_game.curve_game import CurveGame
from benchwright.ranking_game.equilibrium import GameSolution, solve
from benchwright.ranking_game.files import GameFile
from benchwright.ranking_game.finite import FiniteGame, FiniteSolution, solve_finite
from benchwright.ranking_game.fitted import FittedGame, fitted_game
from benchwright.ranking_game.margins import MarginOverTuning, margin_over_tuning
from benchwright.ranking_game.safe_gap import SafeGap, safe_gap
from benchwright.ranking_game.threshold import Threshold, threshold
from benchwright.ranking_game.threshold_draws import ThresholdDraws, threshold_draws
from benchwright.ranking_game.tuning import DesignerCost, RequiredEffort, designer_cost, required_effort

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
    "best_replies": "replies",
}
MARGIN_LEVELS = 60
NOT_PRINTED = ("fits", "laws", "margins")


@dataclass(frozen=True, slots=True, eq=False)
class GameAnswer:
    """What a game has for an answer; what was not asked for, or this game has not, is None.

    Attributes
    ----------
    solution, threshold, safe_gap
        Of the game as it stands, or with the curves as fitted.
    arms_race, replies
        Mixed play and best replies.
    fits, draws, laws, capability
        Fitted curves, their bootstrap draws, other laws compared on held-out scores, and the order of capability.
    assumptions
        What results rest on, looked at on the curves and costs.
    required_effort, margins, threshold_draws
        Over levels of tuning, with bands; the threshold in each draw (None without draws).
    designer
        The designer's bill at the threshold, or at the level in force where there is none, against the cheapest
        overtake.
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
    stated: CurveGame | None = None
    notes: tuple[str, ...] = ()

    @property
    def decided(self) -> bool:
        """Whether a pure equilibrium was shown to exist, or not to."""
        return not isinstance(self.solution, GameSolution) or self.solution.pure_equilibrium != "undecided"

    def __str__(self) -> str:
        parts = [self.solution, *(getattr(self, name) for name in PARTS.values() if name not in NOT_PRINTED)]
        assumed = () if self.stated is None else self.stated.assumptions
        return "\n".join([*(str(part) for part in parts if part is not None), *assumed, *self.notes])

    def to_dict(self) -> dict[str, Any]:
        """The solution's record, with those of the other parts, in types that JSON knows."""
        record = self.solution.to_dict() | {"threshold": None}
        for key, name in PARTS.items():
            if (part := getattr(self, name)) is not None:
                record[key] = part.to_dict()
        if self.stated is not None:
            record |= {"assumed": list(self.stated.assumptions), "seed": self.stated.seed, "left_out": list(self.notes)}
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


def answer_curves(stated: CurveGame, *, race: bool = False, progress: Progress | None = None) -> GameAnswer:
    """Read and fit measured curves, and answer the game that they make.

    Parameters
    ----------
    stated : CurveGame
    race : bool
        Mixed play at each level of ``deltas`` too: takes minutes for many models.

    Raises
    ------
    UsageError, DataError
        See ``read_effort_scores``, ``fit_curves`` and ``fitted_game``; and fewer than two models with a curve.
    """
    say = progress or (lambda _: None)
    say("reading scores by effort")
    wanted = {name: getattr(stated, name) for name in ("models", "task", "metric", "filter", "effort", "items")}
    scores = read_effort_scores(stated.file, **wanted)
    say(f"fitting {count(len(scores.models), 'curve')}")
    fits = fit_curves(scores, **stated.fit_settings)
    if len(fits.models) < 2:
        raise DataError(
            f"a ranking needs at least two models with a curve, {listed(fits.models) or 'none'} is left",
            hint="; ".join(f"{name} left out: {reason}" for name, reason in [*fits.left_out.items()][:3]) or None,
        )
    draws = None
    if stated.replicates:
        rng = np.random.default_rng(stated.seed)
        draws = bootstrap_curves(fits, rng=rng, replicates=stated.replicates, progress=progress)
    say("comparing laws")
    laws = _laws(fits)
    made = _game(stated, fits, draws)
    game, top = made.game, _range(stated, scores)
    say("solving")
    solution = solve(game)
    say("searching the threshold")
    found = threshold(game, delta_max=top)
    say("checking assumptions")
    assumptions = check_assumptions(game, effort_max=top, draws=made.draws)
    say("effort and margins over tuning")
    levels = stated.levels(scores.effort)
    required = required_effort(game, levels, draws=made.draws)
    drawn = threshold_draws(made.draws, delta_max=top, progress=progress) if made.draws else None
    grid = np.expm1(np.linspace(0.0, np.log1p(top), MARGIN_LEVELS))
    margins = margin_over_tuning(game, grid, draws=made.draws) if np.ptp(game.rewards) else None
    at = found.delta if np.isfinite(found.delta) else game.tune_before_test
    return GameAnswer(
        solution,
        found,
        safe_gap=safe_gap(game),
        fits=fits,
        draws=draws,
        laws=laws,
        capability=made.capability,
        assumptions=assumptions,
        required_effort=required,
        margins=margins,
        threshold_draws=drawn,
        designer=designer_cost(game, at, price=stated.price),
        stated=stated,
        notes=(*fits.notes, *(f"{name} left out: {reason}" for name, reason in fits.left_out.items()), *made.notes),
    )


def _game(stated: CurveGame, fits: CurveFits, draws: CurveDraws | None) -> FittedGame:
    """The game of the fitted curves and of each draw."""
    return fitted_game(
        fits.parameters,
        stated.rewards.of(len(fits.models)),
        names=fits.models,
        effort=_common(fits.scores.select(fits.models)),
        costs=stated.costs_of(fits.models),
        capability=stated.capability,
        tune_before_test=stated.tune_before_test,
        draws=None if draws is None else draws.parameters,
    )


def _laws(fits: CurveFits) -> LawComparison | None:
    """The laws compared on the fitted models' last scores; None where too few were measured."""
    try:
        return compare_laws(fits.scores.select(fits.models))
    except DataError:
        return None


def _common(scores: EffortScores) -> float:
    """The largest effort up to which every model was measured."""
    return min(float(scores.of(i).effort.max()) for i in range(len(scores.models)))


def _range(stated: CurveGame, scores: EffortScores) -> float:
    return float(scores.effort.max()) if stated.delta_max is None else stated.delta_max
