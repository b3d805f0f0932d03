"""The figures of common tuning with their captions: margin, required effort, how surely a level is stable."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isfinite, isinf

import numpy as np
import polars as pl

from benchwright._words import percent
from benchwright.game_answers.answer import GameAnswer
from benchwright.ranking_game.game import RankingGame
from benchwright.ranking_game.margins import MarginOverTuning, margin_over_tuning
from benchwright.ranking_game.threshold import Threshold
from benchwright.ranking_game.threshold_draws import ThresholdDraws
from benchwright.ranking_game.tuning import RequiredEffort
from benchwright.report import charts_game as charts
from benchwright.report.style import Chart

Row = tuple[str, str, str, str, Chart | None]
MARGINS_AT_MOST = 200  # developers up to whom margins are looked at here: each level takes all pairs
LEVELS = 120


def tuning_figures(answer: GameAnswer, game: RankingGame, names: Sequence[str], unit: str) -> Iterator[Row]:
    """Yield the figures of what there is."""
    found, margins = answer.threshold, answer.margins
    worth = float(game.rewards[0] - game.rewards[-1])
    if found is not None and worth > 0 and (margins is not None or game.n <= MARGINS_AT_MOST):
        if margins is None:
            margins = margin_over_tuning(game, charts.levels(found.delta_max, LEVELS))
        yield _margin(found, margins, answer.threshold_draws, names, unit)
    if answer.required_effort is not None:
        yield _effort(answer.required_effort, names, unit)
    if answer.threshold_draws is not None:
        yield _stable(answer.threshold_draws, unit)


def _margin(
    found: Threshold, margins: MarginOverTuning, draws: ThresholdDraws | None, names: Sequence[str], unit: str
) -> Row:
    game = found.game
    worth = float(game.rewards[0] - game.rewards[-1])
    line = margins.to_frame().select("delta", "margin", "low", "high").with_columns(pair=_pairs(margins, names))
    caption = (
        "Least cost less reward gap over all jumps, on a grid of levels: below 0 a jump pays. Green levels are stable, "
        "found exactly and not on the grid; the solid purple line is the threshold, the dashed orange line the level "
        "in force."
    )
    if found.crossed_intervals:
        caption += " Where the line is above 0 and not green, the order that is published is not that of capability."
    interval = (np.nan, np.nan)
    if draws is not None:
        interval = (float(draws.interval[0]), float(draws.interval[1]))
        level = percent(draws.level, 0)
        caption += f" The blue band is the range of the margin in {level} of {draws.draws:,} draws"
        if isfinite(interval[0]):
            caption += f", the purple one that of the threshold{_open_end(interval[1])}"
        caption += "."
    if line["margin"].null_count():
        caption += " Where the line breaks off, no rival is within reach."
    if (line["margin"] > charts.LONG * worth).any():
        caption += f" It leaves the chart at {charts.LONG:g} times what the first rank earns more than the last."
    chart = charts.margin_over_tuning(
        line, found.stable_intervals, found.delta, interval, game.tune_before_test, worth, unit
    )
    return "margin-over-tuning", "game", "Does gaming pay, over the level of common tuning?", caption, chart


def _open_end(high: float) -> str:
    return ", which is open to the right: some draws have none" if isinf(high) else ""


def _effort(found: RequiredEffort, names: Sequence[str], unit: str) -> Row:
    table = (
        found.to_frame()
        .select("delta", "low", "high", "pair_low", "pair_high", effort="required_effort")
        .with_columns(pair=_pairs(found, names))
    )
    caption = (
        "The least effort with which a developer overtakes its neighbour above; the dashed line is an effort as large "
        "as the level."
    )
    if found.draws:
        caption += (
            f" The band is the {percent(found.level, 0)} interval of the least effort in truth, whichever pair attains "
            f"it, bars are those of the pair that attains it here, from {found.draws:,} draws."
        )
    if table["effort"].null_count():
        caption += " Levels without a point: no neighbour is within reach, or double precision cannot tell."
    chart = charts.effort_over_tuning(table, unit)
    return (
        "effort-over-tuning",
        "game",
        "How much effort overtakes a neighbour, by level of common tuning",
        caption,
        chart,
    )


def _stable(draws: ThresholdDraws, unit: str) -> Row:
    undecided = " Draws in which a level is not decided count as not stable." if draws.undecided.any() else ""
    caption = (
        f"Share of {draws.draws:,} draws in which no jump pays at a level and the order of capability is published; "
        f"the dashed line is {percent(draws.level, 0)}.{undecided}"
    )
    table = pl.DataFrame({"delta": draws.deltas, "share": draws.stable})
    chart = charts.share_over_tuning(table, "share of draws in which it is stable", unit, sure=draws.level)
    return "stable-over-tuning", "game", "How surely is a level of common tuning stable?", caption, chart


def _pairs(found: MarginOverTuning | RequiredEffort, names: Sequence[str]) -> pl.Series:
    pairs = zip(found.developer, found.over, strict=True)
    return pl.Series([f"{names[int(i)]} over {names[int(j)]}" for i, j in pairs], dtype=pl.String)
