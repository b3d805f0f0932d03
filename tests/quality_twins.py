"""Answers to judge, and plain loops that the tests hold the quality of items against."""

from __future__ import annotations

from itertools import permutations
from math import isnan, nan, sqrt

import numpy as np
from scipy import special


def answers(rng: np.random.Generator, m: int, n_models: int, *, slope: float = 1.5) -> np.ndarray:
    """0/1 scores of a Rasch-like model with items of many difficulties."""
    level, difficulty = rng.normal(size=n_models), rng.normal(size=m)
    return (rng.random((m, n_models)) < special.expit(slope * (level - difficulty[:, None]))).astype(float)


def with_gaps(rng: np.random.Generator, scores: np.ndarray, share: float) -> np.ndarray:
    return np.where(rng.random(scores.shape) < share, nan, scores)


def plain_rest(scores: np.ndarray) -> list[list[float]]:
    """Rest means in loops over cells; NaN where the model lacks the item or has no other live item."""
    rows = [[value for value in row if not isnan(value)] for row in scores.tolist()]
    live = [len(row) > 1 and min(row) < max(row) for row in rows]
    centre = [sum(row) / len(row) if row else nan for row in rows]
    m, n_models = scores.shape
    rest = [[nan] * n_models for _ in range(m)]
    for i in range(m):
        for j in range(n_models):
            others = [k for k in range(m) if k != i and live[k] and not isnan(scores[k, j])]
            if live[i] and others and not isnan(scores[i, j]):
                rest[i][j] = sum(scores[k, j] - centre[k] for k in others) / len(others)
    return rest


def plain_r(x: list[float], rest: list[float]) -> float:
    pairs = [(a, b) for a, b in zip(x, rest, strict=True) if not isnan(a + b)]
    if len(pairs) < 2:
        return nan
    mean_a, mean_b = (sum(column) / len(pairs) for column in zip(*pairs, strict=True))
    ab = sum((a - mean_a) * (b - mean_b) for a, b in pairs)
    aa, bb = sum((a - mean_a) ** 2 for a, _ in pairs), sum((b - mean_b) ** 2 for _, b in pairs)
    return nan if min(aa, bb) < 1e-20 else ab / sqrt(aa * bb)


def by_enumeration(x: list[float], rest: list[float]) -> tuple[float, float]:
    """p of the observed order and the least p of any, over all permutations."""
    sums = [sum(a * b for a, b in zip(order, rest, strict=True)) for order in permutations(x)]
    share = [sum(other <= value + 1e-9 for other in sums) / len(sums) for value in (sums[0], min(sums))]
    return share[0], share[1]
