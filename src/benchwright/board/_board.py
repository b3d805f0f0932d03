"""Scores, their standard errors and bootstrap draws: weighted means over the items that each model has.

Model j has the items P_j. With weights v and divisors d (d = v, or |v| where the weights sum to less than 0)

    score_j = sum_{i in P_j} v_i x_ij / sum_{i in P_j} d_i

Items are drawn in units (an item, or a cluster of items that all models share), units within strata (tasks, or one
stratum for all). A score depends on the items through sums over the items of a unit only, so these are made once.
With z_gj = (sum_{i in g} v_i x_ij - score_j sum_{i in g} d_i) / sum d, what unit g adds to the deviation of score j,

    standard error^2 = sum_h G_h / (G_h - 1) sum_{g in h} (z_gj - mean_h z_j)^2

over strata h of G_h units: sum (x - mean)^2 / (n (n - 1)) for a plain mean. A bootstrap draw takes G_h - 1 units of
each stratum with replacement, the same for all models, weighs them by G_h / (G_h - 1), and divides anew (Rao and Wu
1988: so the variance over draws is the one above, and not (G_h - 1) / G_h of it).

Clipped at chance, score_j = sum_t max(sum_{i in t} v_i x_ij, 0) / sum d, x with chance at 0: a task adds nothing
below chance, and nothing to z.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from benchwright._check import FloatArray
from benchwright.estimating._resampling import times_drawn

IntArray = NDArray[np.int64]
DRAWS = 128  # replicates at a time: with fewer, products of matrices spend their time on packing
ROUNDING = 1e-12  # of the weights of a task: a sum within it of 0 is 0
TINY = 1e-6  # of the sum of |v|: a sum of weights below it gives no scale


@dataclass(frozen=True, slots=True, eq=False)
class Design:
    """How items are drawn: the unit of each item, (m,), and the stratum of each unit, (G,), rising.

    ``pooled``: how many tasks of one unit were put into one stratum, for one unit alone has no variance.
    """

    unit: IntArray
    stratum: IntArray
    pooled: int

    @property
    def sizes(self) -> IntArray:
        """Return the number of units of each stratum."""
        sizes: IntArray = np.bincount(self.stratum)
        return sizes


def sampling_design(clusters: IntArray | None, tasks: IntArray) -> Design:
    """Return units and strata: units are drawn within their task, or all together where one holds items of several.

    Parameters
    ----------
    clusters
        Shape (m,): items of one number are one unit; None: each item is one.
    tasks
        Shape (m,), codes from 0.
    """
    labels = np.arange(len(tasks)) if clusters is None else clusters
    first, unit = np.unique(labels, return_index=True, return_inverse=True)[1:]
    stratum = tasks[first]
    pooled = 0
    if (tasks != stratum[unit]).any():
        stratum = np.zeros_like(stratum)
    else:
        sizes = np.bincount(stratum)
        alone = sizes[stratum] == 1
        pooled = int(alone.sum())
        if pooled == 1 and len(stratum) > 1:  # it joins the smallest of the others
            alone |= stratum == np.argmin(np.where(sizes > 1, sizes, sizes.sum() + 1))
        stratum = np.unique(np.where(alone, -1, stratum), return_inverse=True)[1]
    order = np.argsort(stratum, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return Design(place[unit], stratum[order].astype(np.int64), pooled)


@dataclass(frozen=True, eq=False)
class Sums:
    """Sums over the items that a unit has of a task: rows by task, then unit.

    ``top`` (K, n): sum of v x over the items that the model has; ``bottom``: of d, (K, n), or (K, 1) where all
    models have all items. ``unit``, ``task``: (K,). ``clip``: tasks below chance add nothing.
    """

    top: FloatArray
    bottom: FloatArray
    unit: IntArray
    task: IntArray
    clip: bool

    @cached_property
    def total(self) -> FloatArray:
        """Return sum d of each model, (n,) or (1,)."""
        total: FloatArray = self.bottom.sum(axis=0)
        return total

    @cached_property
    def task_tops(self) -> FloatArray:
        """Return sum v x of each task and model, (T, n); rounding about 0 is 0."""
        gather = _gather(self.task, np.ones(len(self.task)))
        tops, size = gather @ self.top, gather @ np.abs(self.top)
        rounded: FloatArray = np.where(np.abs(tops) > ROUNDING * size, tops, 0.0)
        return rounded

    @cached_property
    def scores(self) -> FloatArray:
        """Return the scores, (n,); NaN where a model has no item with weight."""
        tops = self.task_tops
        total = np.broadcast_to(self.total, tops.shape[1:])
        if self.clip:
            tops = np.maximum(tops, 0.0)
        scores: FloatArray = np.divide(tops.sum(axis=0), total, out=np.full(total.shape, np.nan), where=total > 0)
        return scores


def unit_sums(
    filled: FloatArray,
    known: FloatArray,
    weights: FloatArray,
    divisors: FloatArray,
    design: Design,
    tasks: IntArray,
    *,
    clip: bool,
) -> Sums:
    """Return the sums that scores are made of.

    ``filled``: values (m, n), 0 where a model lacks an item; ``known``: 1 where it has it, else 0, (m, n), or (m, 1)
    where all have the same.
    """
    key, row = np.unique(tasks * len(design.stratum) + design.unit, return_inverse=True)
    size = len(design.stratum)
    return Sums(_gather(row, weights) @ filled, _gather(row, divisors) @ known, key % size, key // size, clip)


def deviations(sums: Sums, design: Design) -> FloatArray:
    """Return z, centred within strata and times sqrt(G_h / (G_h - 1)), shape (G, n): standard error^2 is sum_g z^2.

    NaN where a stratum, and so the whole design, has one unit.
    """
    top, tops = sums.top, sums.task_tops
    if sums.clip:
        top = np.where((tops > 0)[sums.task], top, 0.0)
    z = _per_unit(sums, design, (top - sums.scores * sums.bottom) / sums.total)
    size = design.sizes.astype(np.float64)
    mean = (_gather(design.stratum, np.ones(len(design.stratum))) @ z) / size[:, None]
    with np.errstate(invalid="ignore", divide="ignore"):
        grown = np.sqrt(size / np.where(size > 1, size - 1, np.nan))
    z -= mean[design.stratum]
    z *= grown[design.stratum, None]
    return z


def unit_rows(sums: Sums, design: Design, z: FloatArray) -> FloatArray:
    """Return rows, (G, n), of which the mean is the score and the deviations are ``z``, for tests by signs.

    G s_g score_j + sqrt(G (G - 1)) z_gj with s_g the mean over models of unit g's share, sum_{i in g} d_i / sum d: one
    share for all, so that a difference of two columns holds z_gj - z_gk and of the level only score_j - score_k,
    whatever items the two have. Where all have all items and there is one stratum, it is G sum_{i in g} v_i x_ij / sum
    v, which is symmetric between models that are equal; with 1 in place of G s_g, heavy units would count too little.
    """
    size = len(design.stratum)
    share = _per_unit(sums, design, (sums.bottom / sums.total).mean(axis=1, keepdims=True))
    rows: FloatArray = size * share * sums.scores + np.sqrt(size * (size - 1)) * z
    return rows


def bootstrap(sums: Sums, design: Design, replicates: int, rng: np.random.Generator) -> FloatArray:
    """Return scores in each of B draws of units, (B, n); NaN where a draw leaves a model no weight.

    Time O(B K n), in products of matrices; memory O(B n + 128 K).
    """
    out = np.empty((replicates, sums.top.shape[1]))
    edges = [0, len(sums.task)]
    if sums.clip:
        edges = np.searchsorted(sums.task, np.arange(int(sums.task.max()) + 2)).tolist()
    size = design.sizes[design.stratum[sums.unit]]
    factor = (size / np.maximum(size - 1, 1))[:, None]
    tops, bottoms = factor * sums.top, factor * sums.bottom
    least = TINY * np.abs(sums.bottom).sum(axis=0)
    start = 0
    for counts in _counts(design, replicates, rng):
        mine = counts if len(sums.unit) == counts.shape[1] and (np.diff(sums.unit) == 1).all() else counts[:, sums.unit]
        top = np.zeros((len(mine), out.shape[1]))
        for low, high in pairwise(edges):
            part = mine[:, low:high] @ tops[low:high]
            top += np.maximum(part, 0.0) if sums.clip else part
        bottom = np.broadcast_to(mine @ bottoms, top.shape)
        stop = start + len(mine)
        out[start:stop] = np.divide(top, bottom, out=np.full(top.shape, np.nan), where=bottom > least)
        start = stop
    return out


def _per_unit(sums: Sums, design: Design, cells: FloatArray) -> FloatArray:
    """Return the sums over the tasks of each unit."""
    if len(sums.unit) == len(design.stratum) and (np.diff(sums.unit) == 1).all():
        return cells
    table: FloatArray = _gather(sums.unit, np.ones(len(sums.unit))) @ cells
    return table


def _counts(design: Design, replicates: int, rng: np.random.Generator) -> Iterator[FloatArray]:
    """Yield how often each unit is among the G_h - 1 drawn of its stratum in each draw, (b, G)."""
    ends = np.cumsum([0, *design.sizes])
    for start in range(0, replicates, DRAWS):
        counts = np.empty((min(DRAWS, replicates - start), ends[-1]))
        for low, high in pairwise(ends):
            size = int(high - low)
            drawn = rng.integers(size, size=(len(counts), max(size - 1, 1)), dtype=np.min_scalar_type(size))
            counts[:, low:high] = times_drawn(drawn, size)
        yield counts


def _gather(row: NDArray[np.integer], factor: FloatArray) -> csr_array:
    """Return the matrix that sums rows of one number, each times its factor."""
    return csr_array((factor, (row, np.arange(len(row)))), shape=(int(row.max()) + 1, len(row)))
