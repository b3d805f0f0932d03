"""What depends on the rule: one board's scores under other rules of aggregation, beside the board's own.

With x_um the score of model m on unit u (an item, or a task by its mean), larger is better, and weights v_u:

    own            weighted mean, sum_u v_u x_um / sum_u v_u, missing items as the board treats them
    Borda          sum_u v_u (n_u - R_um), R_um the rank among the models that have u; n_u all models, or only those
    Bradley-Terry  P(i beats j) = p_i / (p_i + p_j) by maximum likelihood over all pairs on common items

Ties count as ties: average ranks, half a win each. An item of negative weight counts reversed, with its absolute
weight, since a model that solves it loses. To add a rule, add a row to ``RULES``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from benchwright._check import FloatArray
from benchwright.board import _aggregations as kernels
from benchwright.panel.names import listed

Unit = Literal["task", "item"]
ELO_BATTLES = 100_000
ELO_STEP = 4.0  # points that a sure loss turned win would move
ELO_ORDERS = 5  # further random orders that tell how far ranks move
POINTS = 400 / np.log(10)  # Elo points per unit of log odds
CONVERGED = 1e-6  # relative gap of the likelihood equations
NAMED = 3


@dataclass
class Cells:
    """What the rules compute from, and what several of them share.

    ``own`` (models,): the board's own scores. ``values`` (items, models): items of negative weight reversed;
    ``weights`` (items,): absolute; ``divisors`` (items,): the weights as given, or absolute where they do not sum to
    more than 0.
    """

    values: FloatArray
    weights: FloatArray
    tasks: NDArray[np.int64]
    models: tuple[str, ...]
    divisors: FloatArray
    own: FloatArray
    unit: Unit
    rng: np.random.Generator
    remarks: list[str] = field(default_factory=list)

    def weighted_mean(self, items: Any = slice(None)) -> FloatArray:
        """Return (models,) means of the scores that each has among these items."""
        return kernels.present_mean(self.values[items], self.weights[items], self.divisors[items])

    @cached_property
    def common(self) -> NDArray[np.bool_]:
        """(items,) whether every model has the item."""
        return np.asarray(~np.isnan(self.values).any(axis=1))

    @cached_property
    def plain_task_means(self) -> FloatArray:
        """(tasks, models), the items of a task alike."""
        return kernels.group_means(self.values, np.ones(len(self.values)), self.tasks)

    @cached_property
    def units(self) -> tuple[FloatArray, FloatArray]:
        """Scores (units, models) and weights of the units that rules over units use."""
        if self.unit == "item":
            return self.values, self.weights
        means = kernels.group_means(self.values, self.weights, self.tasks)
        return means, np.bincount(self.tasks, self.weights).astype(float)

    @cached_property
    def rank_sums(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Mean rank and Borda's two counts."""
        return kernels.rank_sums(*self.units)

    @cached_property
    def pairs(self) -> tuple[FloatArray, FloatArray]:
        """(models, models) wins and ties, in items of mean weight."""
        return kernels.pair_counts(self.values, self.weights / self.weights.mean())


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: what it computes, how it treats items that a model lacks, whether it uses the board's weights.

    ``scores`` returns (models,) numbers, NaN for a model without one, or says why there are none.
    """

    name: str
    title: str
    definition: str
    coverage: str
    weighted: bool
    scores: Callable[[Cells], FloatArray | str]
    larger_is_better: bool = True
    library: str | None = None


def _common_mean(cells: Cells) -> FloatArray | str:
    if not cells.common.any():
        return "no item has a score of every model"
    return cells.weighted_mean(cells.common)


def _bradley_terry(cells: Cells) -> FloatArray | str:
    wins, ties = cells.pairs
    if len(cells.models) == 1:
        return "one model has nobody to meet"
    unbeaten, met = kernels.unbeaten_groups(wins, ties)
    if not met:
        return "the models fall into groups that share no item"
    if len(unbeaten[0]) < len(cells.models):
        names = listed((cells.models[place] for place in unbeaten[0]), NAMED)
        return f"no finite estimate exists: {names} never lose to, or tie with, any other model that they met"
    import evalica

    i, j = np.triu_indices(len(wins), 1)
    size = len(i)
    result = evalica.bradley_terry(
        np.tile(i, 3).tolist(),
        np.tile(j, 3).tolist(),
        [evalica.Winner.X] * size + [evalica.Winner.Y] * size + [evalica.Winner.Draw] * size,
        weights=np.concatenate([wins[i, j], wins[j, i], ties[i, j]]).tolist(),
        tolerance=1e-12,
        limit=10_000,
    )
    strengths = _in_order(result.scores, len(wins))
    if not kernels.strength_residual(wins, ties, strengths) <= CONVERGED:
        return "the search for the maximum of the likelihood did not converge"
    logs = np.log(strengths)
    points: FloatArray = 1000 + POINTS * (logs - logs.mean())
    return points


def _elo(cells: Cells) -> FloatArray | str:
    scores = [_one_elo(cells) for _ in range(1 + ELO_ORDERS)]
    if scores[0] is None:
        return "no two models share an item"
    first, *others = (kernels.ranks_of(mine) for mine in scores if mine is not None)
    moved = max(int(np.nanmax(np.abs(other - first))) for other in others)
    moves = f"ranks move by up to {moved}" if moved else "ranks are the same"
    cells.remarks.append(f"Elo depends on the order of battles: in {ELO_ORDERS} other random orders {moves}")
    return scores[0]


def _one_elo(cells: Cells) -> FloatArray | None:
    """Return the ratings after battles in one random order; None where no two models share an item."""
    drawn = kernels.draw_battles(cells.values, cells.weights, ELO_BATTLES, cells.rng)
    if drawn is None:
        return None
    import evalica

    first, second, lead = drawn
    winners = np.array([evalica.Winner.Draw, evalica.Winner.X, evalica.Winner.Y], dtype=object)  # by sign 0, 1, -1
    won = winners[np.sign(lead).astype(int)].tolist()
    result = evalica.elo(first.tolist(), second.tolist(), won, k=ELO_STEP)
    return _in_order(result.scores, len(cells.models))


def _in_order(scores: Any, size: int) -> FloatArray:
    """Return what evalica found (a pandas Series by place) as an array, NaN for a model that met nobody."""
    array: FloatArray = scores.reindex(range(size)).to_numpy(dtype=float)
    return array


_RANKED = "a rank is among the models that have the unit"
_PRESENT = "each model on the items that it has"
RULES: dict[str, Rule] = {
    rule.name: rule
    for rule in (
        Rule(
            "own",
            "weighted mean (own)",
            "the board's weighted mean of items",
            "the board's own",
            True,
            lambda cells: cells.own,
        ),
        Rule(
            "present_mean",
            "mean of present items",
            "weighted mean of the items that the model has",
            f"{_PRESENT}, weights renormalised",
            True,
            lambda cells: cells.weighted_mean(),
        ),
        Rule(
            "common_mean",
            "mean of common items",
            "weighted mean of the items that every model has",
            "items that a model lacks count for nobody",
            True,
            _common_mean,
        ),
        Rule(
            "task_means",
            "mean of task means",
            "plain mean over tasks of the plain mean over items",
            "each model on the tasks and items that it has",
            False,
            lambda cells: kernels.present_mean(cells.plain_task_means, np.ones(len(cells.plain_task_means))),
        ),
        Rule(
            "median",
            "median",
            "median over units",
            "each model on the units that it has",
            False,
            lambda cells: kernels.median(cells.units[0]),
        ),
        Rule(
            "mean_rank",
            "mean rank",
            "weighted mean over units of the model's rank, 1 the best",
            f"{_RANKED}; units that it lacks are left out",
            True,
            lambda cells: cells.rank_sums[0],
            larger_is_better=False,
        ),
        Rule(
            "borda_all",
            "Borda, n = all models",
            "weighted sum over units of n - rank, n all models",
            f"{_RANKED}; a unit that it lacks gives 0",
            True,
            lambda cells: cells.rank_sums[1],
        ),
        Rule(
            "borda_present",
            "Borda, n = models that ran the unit",
            "weighted sum over units of n - rank, n the models that have the unit",
            f"{_RANKED}; a unit that it lacks gives 0",
            True,
            lambda cells: cells.rank_sums[2],
        ),
        Rule(
            "win_rate",
            "win rate",
            "mean over opponents of the weighted share of common items won, ties half",
            "each pair on the items that both have; opponents that share none are left out",
            True,
            lambda cells: kernels.win_rate(*cells.pairs),
        ),
        Rule(
            "bradley_terry",
            "Bradley-Terry",
            "maximum likelihood over weighted pairs on items, ties half; 400 points are odds of 10, mean 1000",
            "each pair on the items that both have",
            True,
            _bradley_terry,
            library="evalica",
        ),
        Rule(
            "elo",
            "Elo",
            f"from 1000, steps of {ELO_STEP:g}, after {ELO_BATTLES:,} pairs on items drawn by weight, in one order",
            "each pair on the items that both have",
            True,
            _elo,
            library="evalica",
        ),
    )
}
