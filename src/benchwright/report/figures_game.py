"""The figures of the ranking game with their captions."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from benchwright._words import first_of
from benchwright.ranking_game.answer import GameAnswer
from benchwright.ranking_game.equilibrium import GameSolution
from benchwright.ranking_game.game import RankingGame
from benchwright.ranking_game.inputs import GameResult
from benchwright.ranking_game.private_variants import VariantReport
from benchwright.ranking_game.protocols import ProtocolComparison
from benchwright.report import charts_game as charts
from benchwright.report.figures_curves import assumption_figures, capability_figure, fitted_curves
from benchwright.report.figures_protocols import protocol_figures, variant_figures
from benchwright.report.figures_tuning import tuning_figures
from benchwright.report.style import Chart
from benchwright.report.tables_game import overtaking
from benchwright.report.tables_panel import plain_names

Row = tuple[str, str, str, str, Chart | None]
NAME = 34  # characters of a name beside a row
LEVELS = 120
UNIT = "unit of effort"


def figures_of_game(game: GameResult) -> Iterator[Row]:
    """Yield the figures of a ranking game, of two protocols or of undisclosed submissions."""
    if isinstance(game, ProtocolComparison):
        return protocol_figures(game)
    if isinstance(game, VariantReport):
        return variant_figures(game)
    return answer_figures(game)


def answer_figures(answer: GameAnswer) -> Iterator[Row]:
    """Yield the figures of an answer; a finite game has none."""
    solution = answer.solution
    if not isinstance(solution, GameSolution):
        return
    game = solution.game
    names = plain_names([game.name(i) for i in range(game.n)], NAME)
    unit = UNIT if answer.fits is None else answer.fits.scores.effort_unit
    if answer.fits is None:
        yield _curves(answer, solution, names)
    else:
        yield fitted_curves(answer.fits, answer.draws, [int(i) for i in game.order], names)
    yield _overtaking(solution, names)
    yield from tuning_figures(answer, game, names, unit)
    if answer.assumptions is not None:
        yield from assumption_figures(answer.assumptions, names, unit)
    if answer.capability is not None and answer.capability.draws:
        yield capability_figure(answer.capability, names)
    race = answer.arms_race
    if race is not None:
        order = [int(i) for i in game.order][: charts.MAX_DEVELOPERS]
        rows = pl.DataFrame(
            {
                "label": [names[i] for i in order],
                "spend": race.spend[order],
                "payoff": race.payoff[order],
                "stays": race.stays[order],
            }
        )
        yield (
            "mixed-play-spend",
            "game",
            "What each developer spends in mixed play",
            f"Expected cost of effort, most capable first, at tune-before-test level {game.tune_before_test:g}. No "
            f"developer gains more than {race.exploitability:.2g} by leaving this play."
            + first_of(charts.MAX_DEVELOPERS, game.n, "developer"),
            charts.spend_of_developers(rows),
        )


def _curves(answer: GameAnswer, solution: GameSolution, names: list[str]) -> Row:
    game = solution.game
    order = [int(i) for i in game.order][: charts.MAX_DEVELOPERS]
    at = charts.levels(_reach(answer, game), LEVELS)
    lines = pl.concat(
        pl.DataFrame({"developer": names[i], "effort": at, "score": game.curves.score(np.full(at.size, i), at)})
        for i in order
    ).with_columns(low=pl.lit(None, dtype=pl.Float64), high=pl.lit(None, dtype=pl.Float64))
    return (
        "score-curves",
        "game",
        "Scores over effort",
        "The game's score curves, most capable first; effort counts the tuning by the protocol and the developer's own."
        + first_of(charts.MAX_DEVELOPERS, game.n, "developer"),
        charts.score_curves(lines, lines.clear(), [names[i] for i in order], UNIT),
    )


def _reach(answer: GameAnswer, game: RankingGame) -> float:
    """Return an effort up to which curves are worth a look: what rewards can pay for, and the threshold."""
    everybody = np.arange(game.n)
    budget = game.costs.budget(everybody, np.full(game.n, float(game.rewards[0] - game.rewards[-1])))
    reach = [float(value) for value in 1.5 * (game.tune_before_test + budget) if np.isfinite(value)]
    limit = np.inf
    if answer.threshold is not None:
        limit = answer.threshold.delta_max
        reach += [2 * answer.threshold.delta] if np.isfinite(answer.threshold.delta) else []
    return max(min(max(reach, default=1.0), limit), 1e-9)


def _overtaking(solution: GameSolution, names: list[str]) -> Row:
    order = solution.published_order
    rows = overtaking(solution).with_columns(
        label=pl.Series([names[order[row.rank - 1]] for row in solution.just_overtake]),
        over=pl.Series([names[order[row.rank - 2]] for row in solution.just_overtake]),
        gap=pl.col("reward_gap"),
        low=pl.lit(None, dtype=pl.Float64),
        high=pl.lit(None, dtype=pl.Float64),
    )
    tightest = (pl.col("cost") - pl.col("gap")).fill_null(np.inf)
    shown = rows.sort(tightest, "rank").head(charts.MAX_DEVELOPERS).sort("rank")
    many = f" The {shown.height} tightest of {rows.height:,}." if rows.height > shown.height else ""
    return (
        "overtaking-costs",
        "game",
        "Overtaking costs against reward gaps",
        "One row a developer, in the published order from rank 2 on: the dot is what overtaking the neighbour above "
        "costs, the tick what the better rank earns more. It pays where the dot lies left of the tick; a triangle at "
        f"the right edge is out of reach at any effort.{many}",
        charts.overtake_costs(shown),
    )
