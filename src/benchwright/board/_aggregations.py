"""Numbers of the aggregation rules: scores of models from a table of units, with missing cells and weights.

``values`` is (units, models), larger is better, NaN where a model has no value; ``weights`` is (units,), >= 0.
A unit is an item or a task. NaN comes out where a rule gives a model no score.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.sparse.csgraph import connected_components

from benchwright._check import FloatArray

ROWS = 1024  # units at a time: a block of 500 models stays in the cache
LEVELS = 16  # distinct values up to which pairs are counted by matrix products
ROUNDING = 1e-12  # of the largest number: differences up to it are ties


def present_mean(values: FloatArray, weights: FloatArray, divisors: FloatArray | None = None) -> FloatArray:
    """Return (models,) weighted means over the units that each model has.

    ``divisors`` are summed in place of the weights; a model has no mean where their sum is not positive.
    """
    known = ~np.isnan(values)
    total = (weights if divisors is None else divisors) @ known
    mean: FloatArray = weights @ np.where(known, values, 0.0) / np.where(total > 0, total, np.nan)
    return mean


def group_means(values: FloatArray, weights: FloatArray, codes: NDArray[np.int64]) -> FloatArray:
    """Return (groups, models) weighted means over the units that a model has of each group; codes are (units,)."""
    order = np.argsort(codes, kind="stable")
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    known = ~np.isnan(values[order])
    sums = np.add.reduceat(np.where(known, values[order], 0.0) * weights[order, None], starts)
    total = np.add.reduceat(known * weights[order, None], starts)
    means: FloatArray = sums / np.where(total > 0, total, np.nan)
    return means


def median(values: FloatArray) -> FloatArray:
    """Return (models,) medians over the units that each model has, every unit once."""
    result = np.full(values.shape[1], np.nan)
    some = ~np.isnan(values).all(axis=0)
    result[some] = np.nanmedian(values[:, some], axis=0)
    return result


def rank_sums(values: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the weighted mean rank and Borda's two counts, (models,) each.

    Ranks in a unit are among the models that have it, 1 the best, ties their average. A model of rank R gets n - R
    points, n all models (first count) or those that have the unit (second count); a model without the unit gets 0.
    Points are weighted by weight / mean weight, so that equal weights give the plain counts.
    """
    n_units, n_models = values.shape
    ranks, n_all, n_present, weight_of = (np.zeros(n_models) for _ in range(4))
    scale = weights * (n_units / weights.sum())
    for start in range(0, n_units, ROWS):
        block = values[start : start + ROWS]
        share = scale[start : start + ROWS]
        known = ~np.isnan(block)
        # the missing tie at the end, behind all that are there
        rank = np.where(known, stats.rankdata(np.where(known, -block, np.inf), axis=1), 0.0)
        held = share @ known
        sums = share @ rank
        ranks += sums
        weight_of += held
        n_all += n_models * held - sums
        n_present += (share * known.sum(axis=1)) @ known - sums
    mean_rank = ranks / np.where(weight_of > 0, weight_of, np.nan)
    nothing = ~(weight_of > 0)
    n_all[nothing] = n_present[nothing] = np.nan
    return mean_rank, n_all, n_present


def pair_counts(values: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return (models, models) weights of the units on which the row beats the column, and of those they tie on.

    Few distinct values are counted level by level with matrix products, others by comparing model with model.
    """
    known = ~np.isnan(values)
    n_models = values.shape[1]
    wins, common = np.zeros((2, n_models, n_models))
    levels = _few_levels(values)
    for start in range(0, len(values), ROWS):
        block, held = values[start : start + ROWS], known[start : start + ROWS].astype(float)
        share = weights[start : start + ROWS]
        common += (held * share[:, None]).T @ held
        if levels is not None:
            for level in levels[1:]:
                wins += ((block == level) * share[:, None]).T @ (block < level).astype(float)
            continue
        by_model = np.ascontiguousarray(block.T)
        for one in range(n_models):
            wins[one] += (by_model < by_model[one]) @ share
    ties = common - wins - wins.T
    ties[ties <= ROUNDING * common.max(initial=0.0)] = 0.0
    np.fill_diagonal(ties, 0.0)
    return wins, ties


def _few_levels(values: FloatArray) -> FloatArray | None:
    """Return the distinct values where they are few."""
    levels = np.empty(0)
    for start in range(0, len(values), ROWS):
        block = values[start : start + ROWS]
        levels = np.union1d(levels, block[~np.isnan(block)])
        if levels.size > LEVELS:
            return None
    return levels


def win_rate(wins: FloatArray, ties: FloatArray) -> FloatArray:
    """Return (models,) the mean over opponents met of the share of common units won, ties as half."""
    met = wins + wins.T + ties
    with np.errstate(invalid="ignore"):
        share = np.where(met > 0, (wins + ties / 2) / np.where(met > 0, met, 1.0), np.nan)
    opponents = (met > 0).sum(axis=1)
    rate: FloatArray = np.nansum(share, axis=1) / np.where(opponents > 0, opponents, np.nan)
    return rate


def unbeaten_groups(wins: FloatArray, ties: FloatArray) -> tuple[list[NDArray[np.int64]], bool]:
    """Return the groups of models that lose to and tie with nobody outside, and whether all models are connected.

    Two models are in one group if each can be reached from the other along wins and ties. The maximum likelihood of
    the Bradley-Terry model exists exactly where all models are in one group (Ford 1957).
    """
    beats = (wins > 0) | (ties > 0)
    n_groups, groups = connected_components(beats, directed=True, connection="strong")
    n_apart, _ = connected_components(beats, directed=False)
    unbeaten = []
    for group in range(n_groups):
        inside = groups == group
        if not beats[np.ix_(~inside, inside)].any():
            unbeaten.append(np.flatnonzero(inside))
    return unbeaten, n_apart == 1


def strength_residual(wins: FloatArray, ties: FloatArray, strengths: FloatArray) -> float:
    """Return the largest relative gap of the Bradley-Terry likelihood equations, ties as half a win each way.

    At the maximum every model's wins equal those expected: sum_j n_ij p_i / (p_i + p_j).
    """
    won = (wins + ties / 2).sum(axis=1)
    expected = ((wins + wins.T + ties) / (1 + strengths / strengths[:, None])).sum(axis=1)
    return float((np.abs(won - expected) / won).max(initial=0.0))


def draw_battles(
    values: FloatArray, weights: FloatArray, n: int, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64], FloatArray] | None:
    """Return two models and the first's lead (> 0, 0, < 0) of ``n`` battles drawn with replacement.

    A battle is two models on a unit that both have, drawn in proportion to the unit's weight. None where no two
    models share a unit.
    """
    known = ~np.isnan(values)
    size = known.sum(axis=1)
    chance = weights * size * (size - 1)
    if not chance.any():
        return None
    models = np.nonzero(known)[1]
    starts = np.cumsum(size) - size
    unit = rng.choice(len(values), size=n, p=chance / chance.sum())
    one = rng.integers(0, size[unit])
    other = rng.integers(0, size[unit] - 1)
    other += other >= one
    first, second = models[starts[unit] + one], models[starts[unit] + other]
    return first, second, values[unit, first] - values[unit, second]


def ranks_of(scores: FloatArray) -> FloatArray:
    """Return (models,) ranks of scores, larger first: 1 + the number that are better; NaN without a score."""
    known = ~np.isnan(scores)
    ranks = np.full(scores.shape, np.nan)
    mine = scores[known]
    tolerance = ROUNDING * np.abs(mine).max(initial=0.0)
    ranks[known] = 1 + mine.size - np.searchsorted(np.sort(mine), mine + tolerance, side="right")
    return ranks


def tau_b(first: FloatArray, second: FloatArray) -> float:
    """Return Kendall's tau-b over the models that have both ranks; NaN where one of them ties all."""
    both = ~(np.isnan(first) | np.isnan(second))
    if np.unique(first[both]).size < 2 or np.unique(second[both]).size < 2:
        return np.nan
    return float(stats.kendalltau(first[both], second[both]).statistic)


def paired_difference(
    first: FloatArray,
    second: FloatArray,
    weights: FloatArray,
    divisors: FloatArray,
    clusters: NDArray[np.int64] | None,
) -> tuple[int, float, float, float]:
    """Return common units, difference of weighted means, its standard error, and p of no difference.

    The standard error is that of drawing other units, or clusters of them: sqrt(G / (G - 1) sum_g z_g^2) with z_g the
    sum over the cluster of (weight * difference - mean * divisor) / sum of divisors. p is McNemar's exact one where all
    scores are 0 or 1, weights are equal and no two units share a cluster, else that of z. NaN where the common units
    have no weight, or fewer than two of them, or of their clusters, are there.
    """
    both = ~(np.isnan(first) | np.isnan(second))
    n, gap, weight, divisor = int(both.sum()), (first - second)[both], weights[both], divisors[both]
    total = float(divisor.sum())
    if total <= 0:
        return n, np.nan, np.nan, np.nan
    mean = float(weight @ gap) / total
    z = (weight * gap - mean * divisor) / total
    if clusters is not None:
        z = np.bincount(np.unique(clusters[both], return_inverse=True)[1], z).astype(float)
    g = z.size
    if g < 2:
        return n, mean, np.nan, np.nan
    error = float(np.sqrt(g / (g - 1) * np.square(z).sum()))
    equal = bool(np.ptp(weight) <= ROUNDING * weight.max())
    if equal and g == n and np.isin([first[both], second[both]], (0.0, 1.0)).all():
        apart = int(np.count_nonzero(gap))
        return n, mean, error, float(stats.binomtest(int((gap > 0).sum()), apart).pvalue) if apart else 1.0
    seen = error > ROUNDING * float(np.abs(weight * gap).sum() / total)
    return n, mean, error, float(2 * stats.norm.sf(abs(mean) / error)) if seen else np.nan
