"""How far scores and ranks can be trusted: standard errors, score intervals, simultaneous rank intervals, tie groups.

Items drawn anew (:mod:`._board`): standard errors by their formula, those of clipped scores from the draws. Score
intervals from a paired bootstrap, between the quantiles Phi(-t) and Phi(t) of its draws, t that of Student's
distribution with units less strata degrees of freedom (Hesterberg 2015: else they are too narrow where units are few).
Rank intervals from random signs of the deviations that standard errors are made of, one row a unit
(:func:`benchwright.estimating.rank_sets.from_replicates`).

Standard errors that logs state for task scores: their weighted sum, and :func:`from_standard_errors`, models taken for
independent.

Down the board, a model joins the group of the one that leads the last group, unless that one is beyond doubt better:
then it leads a new group.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from benchwright._check import FloatArray
from benchwright._words import count
from benchwright.board import _board as kernel
from benchwright.board.values import Level
from benchwright.errors import DataError
from benchwright.estimating.rank_sets import IntArray, RankSets, from_replicates, from_standard_errors

FEW_UNITS = 30
TIE = 1e-12
SLACK = 1 + 1e-6  # of a critical value: where few patterns of signs are possible, one is the data themselves


@dataclass(frozen=True, slots=True, eq=False)
class Trust:
    """Of p scored models: standard errors and score intervals, (p,), NaN without any spread, and their rank sets.

    ``pair``: standard errors of differences, (p, p). ``units``: how many units were drawn. ``how``: in words.
    """

    error: FloatArray
    low: FloatArray
    high: FloatArray
    pair: FloatArray
    sets: RankSets
    units: int
    how: str
    notes: tuple[str, ...]

    def tie_groups(self, score: FloatArray) -> IntArray:
        """Return the group of each model, from 1: a leader and those after it that are not beyond doubt worse."""
        critical = SLACK * self.sets.critical
        groups, leader, group = np.zeros(len(score), dtype=np.int64), -1, 0
        for place in np.argsort(-score, kind="stable"):
            gap = score[leader] - score[place]
            told = np.isfinite(critical) and gap > TIE and gap > critical * self.pair[leader, place]
            if leader < 0 or told:
                leader, group = place, group + 1
            groups[place] = group
        return groups


def trust_stated(
    score: FloatArray, error: FloatArray, *, rng: np.random.Generator, confidence: float, replicates: int, tasks: int
) -> Trust:
    """Return what follows from the standard errors of the scores, which logs state."""
    reach = stats.norm.isf((1 - confidence) / 2) * error
    sets = from_standard_errors(score, error, rng=rng, level=confidence, replicates=replicates)
    notes = ("models are taken for independent: that they met the same items does not show in task scores",)
    pair = np.hypot(error[:, None], error)
    return Trust(error, score - reach, score + reach, pair, sets, tasks, "as stated for tasks", notes)


def trust_sampled(
    sums: kernel.Sums,
    design: kernel.Design,
    level: Level,
    *,
    rng: np.random.Generator,
    confidence: float,
    replicates: int,
) -> Trust:
    """Return what follows from drawing items, or clusters of them, anew.

    Raises
    ------
    DataError
        All of several items are in one cluster.
    """
    units, items = len(design.stratum), len(design.unit)
    score = sums.scores
    if units < 2:
        if items > 1:
            raise DataError(
                f"all {count(items, level)} are in one cluster, which leaves no standard error",
                hint="give --cluster FILE with clusters that tell items apart, or name more tasks",
            )
        return _alone(score, level, rng=rng, confidence=confidence, replicates=replicates)
    z = kernel.deviations(sums, design)
    draws = kernel.bootstrap(sums, design, replicates, rng)
    tail = stats.norm.sf(stats.t.isf((1 - confidence) / 2, units - len(design.sizes)))
    low, high = _quantiles(draws, (tail, 1 - tail))
    error = np.nanstd(draws, axis=0, ddof=1) if sums.clip else np.sqrt(np.square(z).sum(axis=0))
    still = ~(error > kernel.ROUNDING * np.abs(score).max())
    error, low, high = (np.where(still, np.nan, ends) for ends in (error, low, high))
    rows = kernel.unit_rows(sums, design, z)
    sets = from_replicates(rows, rng=rng, level=confidence, replicates=replicates)
    pair = _pair_errors(rows)
    how, notes = _described(design, level)
    if still.any():
        alone = count(int(still.sum()), "model")
        notes = (*notes, f"{alone} without any spread between {level}s: no standard error, no score interval")
    if "too few" in sets.method:
        notes = (*notes, f"{units} units are too few to tell any two models apart")
    return Trust(error, low, high, pair, sets, units, how, notes)


def _pair_errors(rows: FloatArray) -> FloatArray:
    """Return the standard errors of the differences of column means, (p, p)."""
    units = len(rows)
    centred = rows - rows.mean(axis=0)
    product = centred.T @ centred
    square = product.diagonal()
    apart = np.maximum(square[:, None] + square - 2 * product, 0.0)
    errors: FloatArray = np.sqrt(apart / (units * (units - 1)))
    return errors


def _described(design: kernel.Design, level: Level) -> tuple[str, tuple[str, ...]]:
    units, items = len(design.stratum), len(design.unit)
    what = f"{units:,} clusters of {count(items, level)}" if units < items else f"{count(units, level)}"
    how = f"{what} drawn {'within tasks' if len(design.sizes) > 1 else 'all together'}"
    notes = []
    if level == "task":
        how = f"{count(units, 'task')} drawn anew"
        notes.append("not every task score has a stated standard error: tasks are drawn anew, as if from many more")
    if design.pooled:
        notes.append(f"tasks with one unit alone, drawn as one group: {design.pooled:,}")
    if units < FEW_UNITS:
        notes.append(f"{units} units are few: standard errors are uncertain, and rather too small")
    return how, tuple(notes)


def _alone(score: FloatArray, level: Level, *, rng: np.random.Generator, confidence: float, replicates: int) -> Trust:
    """Return what one unit tells: nothing."""
    p = len(score)
    unknown = np.full(p, np.nan)
    sets = from_standard_errors(score, np.zeros(p), rng=rng, level=confidence, replicates=replicates)
    wide = replace(
        sets, lo=np.ones(p, dtype=np.int64), hi=np.full(p, p), critical=np.inf, method="one unit tells nothing apart"
    )
    notes = (f"one {level} alone has no standard error, and tells no models apart",)
    return Trust(unknown, unknown, unknown, np.zeros((p, p)), wide, 1, "none", notes)


def _quantiles(draws: FloatArray, tails: Sequence[float]) -> NDArray[np.float64]:
    """Return quantiles over the draws that have a score, (len(tails), p); NaN where half of them have none."""
    lost = np.isnan(draws)
    if not lost.any():
        return np.quantile(draws, tails, axis=0)
    out = np.full((len(tails), draws.shape[1]), np.nan)
    for place in np.flatnonzero(lost.mean(axis=0) < 0.5):
        out[:, place] = np.quantile(draws[~lost[:, place], place], tails)
    return out
