"""Monotone regression by pooling adjacent violators, and the test of a rise that goes with it."""

from __future__ import annotations

import numpy as np
from scipy import special, stats

from benchwright._check import FloatArray


def isotonic(y: FloatArray, weight: FloatArray) -> FloatArray:
    """Return the non-decreasing (k,) vector nearest to ``y`` in squares weighted by ``weight`` > 0.

    It is also the maximum-likelihood non-decreasing fit of proportions ``y`` of ``weight`` trials (Robertson, Wright
    and Dykstra, Order Restricted Statistical Inference, 1988, section 1.5).

    >>> isotonic(np.array([1.0, 3.0, 2.0, 4.0]), np.ones(4))
    array([1. , 2.5, 2.5, 4. ])
    """
    level: list[float] = []
    mass: list[float] = []
    size: list[int] = []
    for value, w in zip(y.tolist(), weight.tolist(), strict=True):
        level.append(value)
        mass.append(w)
        size.append(1)
        while len(level) > 1 and level[-2] >= level[-1]:
            top, top_mass, top_size = level.pop(), mass.pop(), size.pop()
            level[-1] += (top - level[-1]) * top_mass / (mass[-1] + top_mass)
            mass[-1] += top_mass
            size[-1] += top_size
    return np.repeat(level, size)


def rise_p_value(statistic: float, k: int) -> float:
    """Return the chance of this much deviance between a constant and k means in order, were all k the same.

    Bartholomew's test: a mixture of chi-squares with l - 1 degrees of freedom, where l is the number of levels of the
    monotone fit, whose chances for equal weights are the Stirling numbers |s(k, l)| / k! (the same, chapter 2).

    >>> round(rise_p_value(2.706, 2), 4)   # two means: half a chi-square with one degree of freedom
    0.05
    """
    chance = np.zeros(k + 1)
    chance[0] = 1.0
    for j in range(k):  # of l levels among j + 1 means: the product of (j + t) / (j + 1) expanded in t
        chance[1:] = (j * chance[1:] + chance[:-1]) / (j + 1)
        chance[0] *= j / (j + 1)
    if statistic <= 0:
        return 1.0
    return float(chance[2:] @ stats.chi2.sf(statistic, np.arange(1, k)))


def pooled(
    effort: FloatArray, y: FloatArray, trials: FloatArray, precision: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return distinct efforts (k,) in order, and the mean score and the weight of each."""
    weight = trials + precision
    distinct, place = np.unique(effort, return_inverse=True)
    total = np.bincount(place, weight)
    return distinct, np.asarray(np.bincount(place, weight * y) / total), np.asarray(total, dtype=np.float64)


def rise_test(effort: FloatArray, y: FloatArray, trials: FloatArray, precision: FloatArray) -> float:
    """Return the p-value of no rise of scores with effort against a rise of any form.

    Each score has either ``trials`` or a ``precision``, as in `benchwright.curves._fit.Data`. Where the scores scatter
    about their monotone fit by more than their noise, the statistic is divided by that over-dispersion.
    """
    _, level, weight = pooled(effort, y, trials, precision)
    rising, flat = isotonic(level, weight), np.full(level.size, np.average(level, weights=weight))
    counted = bool(trials.any())
    statistic = _deviance(level, flat, weight, counted) - _deviance(level, rising, weight, counted)
    left = level.size - np.unique(rising).size
    dispersion = _deviance(level, rising, weight, counted) / left if left else 1.0
    return rise_p_value(statistic / max(dispersion, 1.0), level.size)


def _deviance(y: FloatArray, v: FloatArray, weight: FloatArray, counted: bool) -> float:
    """Return the deviance of levels v, of counts or of normal scores."""
    if counted:
        return 2.0 * float((weight * (special.rel_entr(y, v) + special.rel_entr(1.0 - y, 1.0 - v))).sum())
    return float((weight * (y - v) ** 2).sum())
