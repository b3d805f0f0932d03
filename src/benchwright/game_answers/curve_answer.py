"""The answer to a ranking game on measured scores by effort: read, fit, draw, solve, and look along the tuning."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchwright._words import count
from benchwright.curves.bootstrap import CurveDraws, bootstrap_curves
from benchwright.curves.comparison import LawComparison, compare_laws
from benchwright.curves.fit import fit_curves
from benchwright.curves.reading import read_effort_scores
from benchwright.curves.results import CurveFits
from benchwright.curves.scores import EffortScores
from benchwright.errors import DataError
from benchwright.game_answers.answer import GameAnswer, Progress, mixed_play
from benchwright.game_answers.curve_game import CurveGame, draws_at_most
from benchwright.panel.names import listed
from benchwright.ranking_game.assumptions import check_assumptions
from benchwright.ranking_game.equilibrium import solve
from benchwright.ranking_game.fitted import FittedGame, fitted_game
from benchwright.ranking_game.margins import margin_over_tuning
from benchwright.ranking_game.safe_gap import safe_gap
from benchwright.ranking_game.threshold import threshold
from benchwright.ranking_game.threshold_draws import threshold_draws
from benchwright.ranking_game.tuning import designer_cost, required_effort

MARGIN_LEVELS = 60
BOUND_UP_TO = 100  # models; the bound of the least margin takes minutes with more


@dataclass(frozen=True, slots=True, eq=False)
class FittedCurves:
    """Measured scores with their curves: what rewards, costs and the level of tuning do not change."""

    scores: EffortScores
    fits: CurveFits
    draws: CurveDraws | None
    laws: LawComparison | None


def answer_curves(stated: CurveGame, *, progress: Progress | None = None) -> GameAnswer:
    """Read and fit measured curves, and answer the game that they make.

    Parameters
    ----------
    stated : CurveGame
        Its ``race`` is run at the level in force and at ``deltas``.

    Raises
    ------
    UsageError, DataError
        See ``read_effort_scores``, ``fit_curves`` and ``fitted_game``; and fewer than two models with a curve.
    """
    return answer_fitted(stated, fit_stated(stated, progress=progress), progress=progress)


def fit_stated(stated: CurveGame, *, progress: Progress | None = None) -> FittedCurves:
    """Read the scores of a game on curves and fit them; errors are those of ``answer_curves``."""
    say = progress or (lambda _: None)
    say("reading scores by effort")
    wanted = {name: getattr(stated, name) for name in ("models", "task", "metric", "filter", "effort", "items")}
    scores = read_effort_scores(stated.file, **wanted)
    say(f"fitting {count(len(scores.models), 'curve')}")
    fits = fit_curves(scores, **stated.fit_settings)
    if len(fits.models) < 2:
        raise DataError(
            f"a ranking needs at least two models with a curve, {listed(fits.models) or 'none'} is left",
            hint="; ".join(f"{name} left out: {reason}" for name, reason in [*fits.left_out.items()][:3])
            or "keep more with --models",
        )
    draws = None
    if stated.replicates:
        rng = np.random.default_rng(stated.seed)
        draws = bootstrap_curves(fits, rng=rng, replicates=stated.replicates, progress=progress)
    say("comparing laws")
    return FittedCurves(scores, fits, draws, _laws(fits))


def answer_fitted(
    stated: CurveGame,
    fitted: FittedCurves,
    *,
    intervals: bool = True,
    progress: Progress | None = None,
) -> GameAnswer:
    """Answer the game that fitted curves make; without ``intervals`` no draws are looked at."""
    say = progress or (lambda _: None)
    scores, fits, laws = fitted.scores, fitted.fits, fitted.laws
    draws = fitted.draws if intervals else None
    made = _game(stated, fits, draws)
    game, top = made.game, _range(stated, scores)
    worlds = made.draws[: draws_at_most(game.n)]
    say("solving")
    solution = solve(game)
    say("searching the threshold")
    found = threshold(game, delta_max=top, bound=game.n <= BOUND_UP_TO)
    say("checking assumptions")
    assumptions = check_assumptions(game, effort_max=top, draws=worlds)
    say("effort over tuning")
    levels = stated.levels(scores.effort)
    required = required_effort(game, levels, draws=worlds)
    drawn = threshold_draws(worlds, delta_max=top, progress=progress) if worlds else None
    say("margins over tuning")
    grid = np.union1d(np.expm1(np.linspace(0.0, np.log1p(top), MARGIN_LEVELS)), game.tune_before_test)
    margins = margin_over_tuning(game, grid, draws=worlds) if np.ptp(game.rewards) else None
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
        designer=designer_cost(game, at, price=stated.price) if at > 0 else None,
        stated=stated,
        **(mixed_play(game, levels.tolist(), say) if stated.race else {}),
        notes=(
            *(f"{name} left out: {reason}" for name, reason in fits.left_out.items()),
            *fits.notes,
            *made.notes,
            *_beyond(max(top, game.tune_before_test, *levels), scores),
        ),
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


def _beyond(level: float, scores: EffortScores) -> tuple[str, ...]:
    """Say that levels are extrapolated, where they are."""
    measured = float(scores.effort.max())
    if level <= measured:
        return ()
    return (f"nothing was measured above {measured:g} {scores.effort_unit}: levels up to {level:g} are extrapolated",)


def _range(stated: CurveGame, scores: EffortScores) -> float:
    return float(scores.effort.max()) if stated.delta_max is None else stated.delta_max
