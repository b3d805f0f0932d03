"""The figures of fitted curves with their captions: scores over effort, crossings, how sure the order is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import polars as pl

from benchwright._check import FloatArray
from benchwright._words import first_of, percent
from benchwright.curves.bootstrap import CurveDraws
from benchwright.curves.results import CurveFits
from benchwright.errors import UsageError
from benchwright.game_answers.answer import GameAnswer
from benchwright.ranking_game.assumptions import Assumptions
from benchwright.ranking_game.capability import CapabilityOrder
from benchwright.ranking_game.fitted import curves_of
from benchwright.ranking_game.game import RankingGame
from benchwright.ranking_game.tuning import jumps_at
from benchwright.report import charts_game as charts
from benchwright.report.style import Chart
from benchwright.report.tables_curves import LEVEL

Row = tuple[str, str, str, str, Chart | None]
STANDARD_ERRORS = 1.96  # of a 95 % interval


def fitted_curves(fits: CurveFits, draws: CurveDraws | None, order: Sequence[int], names: Sequence[str]) -> Row:
    """Return fitted curves with their bands and the scores measured; ``order`` is that of capability."""
    shown = list(order)[: charts.MAX_DEVELOPERS]
    at = charts.levels(float(fits.scores.effort.max()), 120)
    who = np.array(shown)[:, None]
    score = fits.score(who, at)
    band = np.full((*score.shape, 2), np.nan) if draws is None else draws.score_interval(who, at, level=LEVEL)
    labels = [names[i] for i in shown]
    lines = pl.DataFrame(
        {
            "developer": np.repeat(labels, at.size),
            "effort": np.tile(at, len(shown)),
            "score": score.ravel(),
            "low": band[..., 0].ravel(),
            "high": band[..., 1].ravel(),
        }
    ).with_columns(pl.col("low", "high").fill_nan(None))
    seen, noise = fits.observations, fits.observations.noise
    points = pl.concat(
        pl.DataFrame(
            {
                "developer": [names[i]] * int(seen.present[i].sum()),
                "effort": seen.effort[i][seen.present[i]],
                "score": seen.score[i][seen.present[i]],
                "noise": noise[i][seen.present[i]],
            }
        )
        for i in shown
    ).with_columns(
        low=(pl.col("score") - STANDARD_ERRORS * pl.col("noise")).clip(0, 1),
        high=(pl.col("score") + STANDARD_ERRORS * pl.col("noise")).clip(0, 1),
    )
    caption = f"Dots are scores measured, bars their {percent(LEVEL, 0)} intervals, lines the fitted curves"
    if draws is None:
        caption += "."
    elif len(shown) > charts.NAMED_CURVES:
        caption += "; their bands are left out, as so many would hide one another."
    else:
        caption += f", bands their {percent(LEVEL, 0)} intervals at each effort over {len(draws):,} draws."
    caption += " Effort counts the tuning by the protocol and the developer's own."
    caption += first_of(charts.MAX_DEVELOPERS, len(order), "model")
    task = f" on {fits.scores.task}" if fits.scores.task else ""
    chart = charts.score_curves(lines, points, labels, fits.scores.effort_unit)
    return "score-curves", "game", f"Scores over effort{task}", caption, chart


def assumption_figures(checked: Assumptions, names: Sequence[str], unit: str) -> Iterator[Row]:
    """Yield where curves cross."""
    check = checked.check("C1")
    rows = [
        (f"{names[one.developers[0]]} over {names[one.developers[-1]]}", low, high, one.size, one.share)
        for one in check.violations[: charts.MAX_DEVELOPERS]
        for low, high in one.ranges
    ]
    schema = {"label": pl.String} | dict.fromkeys(("low", "high", "size", "share"), pl.Float64)
    frame = pl.DataFrame(rows, schema=schema, orient="row").with_columns(pl.col("share").fill_nan(None))
    pairs = min(check.count, charts.MAX_DEVELOPERS)
    many = f" The {pairs} largest of {check.count:,}." if check.count > pairs else ""
    yield (
        "crossings",
        "game",
        "Where curves cross",
        "Efforts at which the first model of a pair scores above the second, the more capable one, against C1; the "
        f"darker, the larger its lead.{many}",
        charts.crossings(frame, checked.effort_max, unit),
    )


def overtaking_intervals(answer: GameAnswer, game: RankingGame, order: Sequence[int]) -> FloatArray:
    """Return the interval (n - 1, 2) of what overtaking the neighbour above in ``order`` costs, over draws.

    NaN without draws; 0 where a developer is ahead in the draw, inf where its neighbour is out of reach there. Draws
    that make no game are left out, as the answer's notes say.
    """
    who, over, found = np.array(order[1:]), np.array(order[:-1]), []
    for b in range(0 if answer.draws is None else len(answer.draws)):
        own = {name: values[b] for name, values in answer.draws.parameters.items()}  # type: ignore[union-attr]
        try:
            drawn = RankingGame(curves_of(own), game.rewards, costs=game.costs)
        except UsageError:
            continue
        jump = jumps_at(drawn, who, over, game.tune_before_test)
        found.append((jump.cost_low, jump.cost_high))
    if not found:
        return np.full((who.size, 2), np.nan)
    tail = round((1 - LEVEL) / 2, 9)  # so that 5 of 200 draws are 2.5 %
    low = np.quantile([one[0] for one in found], tail, axis=0, method="inverted_cdf")
    high = np.quantile([one[1] for one in found], 1 - tail, axis=0, method="inverted_cdf")
    return np.stack([low, high], axis=1)


def capability_figure(order: CapabilityOrder, names: Sequence[str]) -> Row:
    """Return how sure it is that each developer is more capable than the next."""
    ranked = [names[i] for i in order.order]
    pairs = [f"{above} above {below}" for above, below in pairwise(ranked)]
    frame = pl.DataFrame({"label": pairs, "share": order.above}).with_columns(pl.col("share").fill_nan(None))
    shown = frame.drop_nulls().sort("share", maintain_order=True).head(charts.MAX_DEVELOPERS)
    many = f" The {shown.height} of {frame.height:,} least sure." if frame.height > shown.height else ""
    return (
        "capability-order",
        "game",
        "How sure is the order of capability?",
        f"Share of {order.draws:,} draws in which a model stands above the next by the {order.words}; at the dashed "
        f"line they are as likely the other way round. Least sure first.{many}",
        charts.capability_order(shown),
    )
