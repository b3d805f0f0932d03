"""The page of a ranking game, and what an audit's page takes from it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchwright import __version__
from benchwright._check import FloatArray
from benchwright._words import count
from benchwright.config import Assumption
from benchwright.game_answers.answer import GameAnswer
from benchwright.game_answers.curve_game import CurveGame
from benchwright.game_answers.files import DELTA_MAX
from benchwright.game_answers.inputs import GameResult
from benchwright.logs.source_file import SourceFile
from benchwright.ranking_game.costs import Costs, PowerCosts
from benchwright.ranking_game.equilibrium import GameSolution
from benchwright.ranking_game.forms import Curves, PowerLawCurves, TranslationCurves
from benchwright.ranking_game.private_variants import VariantReport
from benchwright.ranking_game.protocols import ProtocolComparison
from benchwright.report.findings import game_findings
from benchwright.report.page import Page, Section
from benchwright.report.tables import game_tables

LISTED = 10  # rewards that are printed one by one
INTRO = (
    "A board that rewards ranks invites effort that lifts a model's score on the benchmark and nothing else. A ranking "
    "is stable where no developer gains by overtaking another, after the cost of the effort. Tuning all models alike "
    "on the benchmark's own training data before the test (tune-before-test) can make overtaking dearer. "
)
OF_GAME = "What follows holds for the rewards, costs and curves listed under the assumptions."
OF_PROTOCOLS = (
    "What follows compares two rankings of the same models: by the scores of the models as they come, and after all "
    "were tuned alike."
)
OF_VARIANTS = (
    "What follows looks at another way to game: of many submissions show the best. The more are tried in private, the "
    "more luck the best of them carries."
)
OF_CURVES = {  # field of a game on curves -> unit, why
    "rewards": ("effort that a rank is worth", "what ranks are worth is not in the data"),
    "cost": ("reward per unit of effort", "what effort beyond the protocol's costs"),
    "tune_before_test": ("effort", "the level in force"),
    "capability": ("", "by what developers are ordered: fitted limit, fitted score after tuning, or as given"),
    "lower": ("score", "L of the curves: own, shared or given; not set: as the law has it"),
    "upper": ("score", "U of the curves, likewise"),
    "beta": ("", "slope of the curves, likewise"),
    "delta_max": ("effort", "range of the threshold; not set: the largest effort measured"),
    "price": ("reward a unit of effort and model", "what tuning costs the designer; not set: not known"),
    "replicates": ("draws", "bootstrap draws behind intervals"),
    "seed": ("", "of the draws"),
}
CHOICES = "What the game takes as given, with its default and where its value came from."
METHOD = (
    "Method: Chen, Zhang and Hardt, “Leaderboard Incentives: Model Rankings under Strategic Post-Training” (arXiv "
    "2603.08371), with the corrections that benchwright's documentation of the ranking game proves. The same figures "
    "stand in summary.json, the tables in tables/."
)


def game_page(game: GameResult, *, files: tuple[SourceFile, ...] = ()) -> Page:
    """Return what the page of a ranking game shows."""
    of = f" of {files[0].name}" if files else ""
    return Page(
        title=f"Ranking game{of}",
        heading="Is this ranking worth gaming?",
        subtitle=f"{subtitle(game)}{f', from {files[0].name}' if files else ''}.",
        banners=(),
        findings=game_findings(game),
        sections=(game_section(game),),
        tables=game_tables(game),
        choices=CHOICES,
        assumptions=game_assumptions(game),
        notes=game_notes(game),
        files=files,
        provenance=(METHOD,),
        version=__version__,
    )


def subtitle(game: GameResult) -> str:
    """Return what a game is of."""
    if isinstance(game, ProtocolComparison):
        return f"{count(len(game.models), 'model')} on {count(len(game.tasks), 'task')}, before and after common tuning"
    if isinstance(game, VariantReport):
        return f"Submissions of {count(len(game.developers), 'developer')}"
    return f"A game of {count(game.solution.game.n, 'developer')} who are rewarded by rank"


def game_section(game: GameResult) -> Section:
    """Return the section of a ranking game, with what this one looks at."""
    about = OF_PROTOCOLS if isinstance(game, ProtocolComparison) else OF_GAME
    about = OF_VARIANTS if isinstance(game, VariantReport) else about
    return Section("game", "Ranking game", "Ranking game: is the ranking worth gaming?", INTRO + about)


def game_assumptions(game: GameResult) -> tuple[Assumption, ...]:
    """Return what a game takes as given."""
    return tuple(_assumptions(game)) if isinstance(game, GameAnswer) else ()


def game_notes(game: GameResult) -> tuple[str, ...]:
    """Return what a reader should know before trusting a game's figures."""
    if isinstance(game, VariantReport):
        return game.notes
    if isinstance(game, ProtocolComparison):
        left = ", ".join(game.dropped_tasks)
        return (f"Not every model has a score on {left}: left out here.",) if left else ()
    found = [*getattr(game.solution, "notes", ()), *(() if game.fits is None else game.fits.notes), *game.notes]
    return tuple(dict.fromkeys(note if _starts_with_file(note) else f"{note[0].upper()}{note[1:]}" for note in found))


def _starts_with_file(note: str) -> bool:
    """Return whether the first word is a file's name, which stays as it is."""
    return "." in note.split(maxsplit=1)[0]


def _assumptions(answer: GameAnswer) -> Iterator[Assumption]:
    if answer.stated is not None:
        yield from _stated(answer.stated)
        return
    game, solution = answer.solution.game, answer.solution
    rewards = _list([float(x) for x in game.rewards])
    yield _given("rewards", rewards, "reward of rank 1, 2, ...", None, "what ranks are worth is not in the data")
    default = "capability" if isinstance(solution, GameSolution) else "shared"
    yield _given("ties", game.ties, "", default, "who ranks first among equal scores")
    if isinstance(solution, GameSolution):
        ranking = solution.game
        yield _given("curves", _curves(ranking.curves), "score in [0, 1]", None, "how a score answers to effort")
        yield _given("cost", _costs(ranking.costs), "reward", None, "what effort beyond the protocol's costs")
        yield _given("tune_before_test", ranking.tune_before_test, "effort", 0.0, "the level in force")
    if answer.threshold is not None:
        top = answer.threshold.delta_max
        yield _given("delta_max", top, "effort", DELTA_MAX, "levels beyond it were not searched")


def _stated(game: CurveGame) -> Iterator[Assumption]:
    """Yield what was asked of measured curves, and what was assumed."""
    defaults = CurveGame(game.file)
    for name, (unit, why) in OF_CURVES.items():
        value, default = (_told(getattr(one, name)) for one in (game, defaults))
        source = "the game" if name in game.stated else "default"
        yield Assumption(f"game.{name}", value, unit, default, source, why)


def _told(value: object) -> object:
    if isinstance(value, PowerCosts):
        return _costs(value)
    return value if value is None or isinstance(value, int | float | tuple) else str(value)


def _given(name: str, value: object, unit: str, default: object, why: str) -> Assumption:
    source = "default" if value == default else "the game"
    return Assumption(f"game.{name}", value, unit, default, source, why)


def _list(values: list[float]) -> tuple[float | str, ...]:
    """Return a list short enough to print."""
    return tuple(values) if len(values) <= LISTED else (*values[:3], "...", values[-1], f"({len(values)} in all)")


def _curves(curves: Curves) -> str:
    if isinstance(curves, TranslationCurves):
        return f"{curves.form}, theta {_span(curves.theta)}"
    if isinstance(curves, PowerLawCurves):
        parts = {"alpha": curves.alpha, "beta": curves.beta, "L": curves.lower, "U": curves.upper}
        return "generalised power law, " + ", ".join(f"{name} {_span(part)}" for name, part in parts.items())
    return "callables"


def _costs(costs: Costs) -> str:
    if not isinstance(costs, PowerCosts):
        return "callables"
    told = [f"kappa {_span(costs.kappa)}"]
    told += [f"exponent {_span(costs.exponent)}"] if (costs.exponent != 1).any() else []
    told += [f"free effort {_span(costs.free)}"] if costs.free.any() else []
    return f"{'linear' if len(told) == 1 else 'power'}, {', '.join(told)}"


def _span(values: FloatArray) -> str:
    low, high = float(np.min(values)), float(np.max(values))
    return f"{low:.4g}" if low == high else f"{low:.4g} to {high:.4g}"
