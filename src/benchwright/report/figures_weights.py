"""The figures of the aggregation game with their captions."""

from __future__ import annotations

from collections.abc import Iterator

from benchwright._words import first_of, percent
from benchwright.board.results import Leaderboard
from benchwright.config import Config
from benchwright.mechanism.item_weights import ItemWeights
from benchwright.mechanism.point_weights import PointWeights
from benchwright.report import charts_published as published
from benchwright.report import charts_weights as charts
from benchwright.report.style import Chart

Row = tuple[str, str, str, str, Chart | None]


def weight_figures(weights: PointWeights, config: Config) -> Iterator[Row]:
    """Yield the figures of weights; those that rest on draws or other values of items only of ``ItemWeights``."""
    drawn = weights if isinstance(weights, ItemWeights) else None
    yield (
        "weights-against-uniform",
        "weights",
        "Optimal weights against uniform",
        "The dashed line is a weight equal to everybody's. A model that solves an item below zero loses score.",
        charts.weights_against_uniform(weights),
    )
    yield (
        "value-over-risk",
        "weights",
        "What weights keep of the first-best value, over risk aversion",
        "Each scheme at its own best scale, from developers who ignore noise (left) to developers who fear it (right); "
        "a scheme at 0 % lowers welfare if rewarded. The cost of effort stays as calibrated at the r in force. At the "
        "dashed line the risk of first-best weights costs as much as they earn.",
        charts.value_over_risk(weights),
    )
    yield (
        "loss-decomposition",
        "weights",
        "Where the value goes",
        "First-best value split into what a scheme keeps, what the developer's risk takes and what misdirected "
        f"effort loses, at risk aversion {config.lab.risk_aversion:g}.",
        charts.loss_decomposition(weights),
    )
    if drawn is not None:
        yield (
            "efficiency-over-neutral",
            "weights",
            "How much hangs on the neutral point",
            "What the plain average keeps as the neutral point of welfare moves, the cost of effort calibrated anew at "
            "each; 0 % means that rewarding it lowers welfare. The dashed line is the neutral point in force.",
            charts.efficiency_over_neutral(drawn, config.welfare.neutral),
        )
    level = percent(config.resampling.level, 0)
    sure = "published_lo" in weights.items.columns
    bars = f"Bars are {level} intervals over draws of what weights rest on; the" if sure else "The"
    yield (
        "published-shares",
        "weights",
        "The heaviest items of a board that publishes these weights",
        f"Under the constraints in force. {bars} dashed "
        f"line is a weight equal to everybody's.{first_of(published.MAX_ITEMS, weights.items.height, 'item')}",
        published.published_shares(weights),
    )
    yield (
        "task-weights",
        "weights",
        "One weight a task",
        f"For a board that has only task means: what each task would carry in all"
        f"{', with its interval' if weights.by_task['lo'].count() else ''}; orange is its "
        f"share under the plain average.{first_of(published.MAX_GROUPS, weights.by_task.height, 'task')}",
        published.group_weights(weights.by_task),
    )
    if drawn is None:
        return
    yield (
        "efficiency-over-risk",
        "weights",
        "How sure it is what weights keep",
        f"What each scheme keeps of the best weights of a draw, over the developer's risk aversion; bands are {level} "
        "intervals over draws, lines the estimates themselves. The weights under constraints are those found here: in "
        "another draw they are no longer the best, so they lose too.",
        published.efficiency_bands(drawn),
    )
    yield (
        "welfare-mixture",
        "weights",
        "How weights move with what items are valued for",
        f"Published weight of each task as the value of an item moves from {drawn.path.first} to "
        f"{drawn.path.second}, each against the same neutral point.",
        published.mixture_shares(drawn),
    )


def board_figures(board: Leaderboard) -> Iterator[Row]:
    """Yield the leaderboard before and after."""
    yield (
        "rescored-ranks",
        "models",
        "The leaderboard under the published weights",
        "Diamonds are ranks under the published weights, bars the ranks that the data allow, all at once; circles are "
        "ranks on the same items under the plain average."
        + first_of(published.MAX_MODELS, board.frame.height, "model"),
        published.rescored_ranks(board),
    )
