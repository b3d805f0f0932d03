"""The figures of the ranking game with their captions."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from benchwright._words import first_of, percent
from benchwright.game_answers.answer import GameAnswer
from benchwright.game_answers.inputs import GameResult
from benchwright.ranking_game.equilibrium import GameSolution
from benchwright.ranking_game.game import RankingGame
from benchwright.ranking_game.private_variants import VariantReport
from benchwright.ranking_game.protocols import ProtocolComparison
from benchwright.report import charts_game as charts
from benchwright.report.figures_curves import assumption_figures, capability_figure, fitted_curves, overtaking_intervals
from benchwright.report.figures_protocols import protocol_figures, variant_figures
from benchwright.report.figures_race import mixed_play, race_figures
from benchwright.report.figures_tuning import tuning_figures
from benchwright.report.style import Chart
from benchwright.report.tables_curves import LEVEL
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
    yield _overtaking(answer, solution, names)
    yield from tuning_figures(answer, game, names, unit)
    if answer.assumptions is not None:
        yield from assumption_figures(answer.assumptions, names, unit)
    if answer.capability is not None and answer.capability.draws:
        yield capability_figure(answer.capability, names)
    if answer.arms_race is not None:
        yield mixed_play(answer.arms_race, names)
    if answer.race_over_tuning is not None:
        yield from race_figures(answer.race_over_tuning, unit)


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


def _overtaking(answer: GameAnswer, solution: GameSolution, names: list[str]) -> Row:
    game, order = solution.game, solution.published_order
    ends = overtaking_intervals(answer, game, order)
    rows = overtaking(solution).with_columns(
        label=pl.Series([names[i] for i in order[1:]]),
        over=pl.Series([names[i] for i in order[:-1]]),
        gap=pl.col("reward_gap"),
        low=pl.Series(ends[:, 0]),
        high=pl.Series(ends[:, 1]),
    )
    rows = rows.with_columns(pl.when(pl.col("low").is_finite()).then("low"), pl.col("high").fill_nan(None))
    tightest = (pl.col("cost") - pl.col("gap")).fill_null(np.inf)
    shown = rows.sort(tightest, "rank").head(charts.MAX_DEVELOPERS).sort("rank")
    caption = (
        "One row a developer, in the published order from rank 2 on: the dot is what overtaking the neighbour above "
        "costs, the tick what the better rank earns more. It pays where the dot lies left of the tick; a triangle at "
        "the right edge is out of reach at any effort."
    )
    if answer.draws is not None:
        caption += f" Bars are {percent(LEVEL, 0)} intervals of that cost over draws, 0 where the developer is ahead."
    caption += f" The {shown.height} tightest of {rows.height:,}." if rows.height > shown.height else ""
    title = "Overtaking costs against reward gaps"
    return "overtaking-costs", "game", title, caption, charts.overtake_costs(shown)
