"""Numbers behind item quality: arrays in, arrays or small frozen dataclasses out.

The mathematics stands in ``quality``. Items are read in row blocks and no m x m array is formed: time O(m R)
for the tests against the rest, O(m^2 R) in tiles for the pairs; memory O(R) beyond what is returned.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from math import ceil, comb, log

import numpy as np
from numpy.typing import NDArray
from scipy import special
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from benchwright._check import FloatArray

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

BLOCK_CELLS = 1 << 18  # scores looked at at once: 2 MB a temporary, which stays in cache
TILE = (512, 2048)  # pairs looked at at once: 4 MB of single precision
MAX_ARRANGEMENTS = 5040  # 7!: every item with 7 models or fewer is enumerated
MAX_ENUMERATED_MODELS = 1000
STRATUM = 10  # at most this many models of like level form a stratum
ROUNDING = 1e-12  # relative to the largest sum: differences up to it are rounding, so ties
SCREEN_SLACK = 1e-5  # single precision finds candidates, double precision decides


@dataclass(frozen=True, slots=True, eq=False)
class Overview:
    """Per item the number of models that have it, and the least, greatest and mean score among them."""

    n_models: IntArray
    low: FloatArray
    high: FloatArray
    mean: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Level:
    """Per model the sum of centred scores over its live items, and their number; ``scale`` bounds the sums."""

    total: FloatArray
    n_items: IntArray
    scale: float

    @property
    def slack(self) -> float:
        """Differences of rest means up to this are rounding."""
        return ROUNDING * self.scale / max(1, int(self.n_items.max(initial=0)) - 1)


@dataclass(frozen=True, slots=True, eq=False)
class RestTest:
    """Items against the rest, one entry an item.

    ``n_models`` counts the models used, ``r`` is the correlation, ``p`` the one-sided p-value of a negative
    one, ``smallest_p`` the least that p can be given the ties, ``exact`` whether p counts arrangements rather
    than trusting Student's t. NaN where the item or the rest is constant.
    """

    n_models: IntArray
    r: FloatArray
    p: FloatArray
    smallest_p: FloatArray
    exact: BoolArray


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Redundant pairs as row positions with their r, common models and whether all common scores agree.

    At most ``limit`` pairs are listed; ``partners`` (m,) and ``group`` (m,) count all of them, ``n_pairs`` too.
    """

    first: IntArray
    second: IntArray
    r: FloatArray
    n_models: IntArray
    identical: BoolArray
    partners: IntArray
    group: IntArray
    n_pairs: int


def row_blocks(scores: FloatArray) -> Iterator[slice]:
    """Slices that cover the rows in order."""
    size = max(1, BLOCK_CELLS // scores.shape[1])
    return (slice(start, start + size) for start in range(0, len(scores), size))


def overview(scores: FloatArray) -> Overview:
    """Count, range and mean of each row of ``scores`` (m, R), NaN for what is missing."""
    m = len(scores)
    n, low, high, mean = np.empty(m, np.int64), np.empty(m), np.empty(m), np.empty(m)
    for rows in row_blocks(scores):
        x = scores[rows]
        has = ~np.isnan(x)
        n[rows] = has.sum(axis=1)
        low[rows], high[rows] = np.fmin.reduce(x, axis=1), np.fmax.reduce(x, axis=1)
        mean[rows] = np.where(has, x, 0.0).sum(axis=1) / np.maximum(n[rows], 1)
    return Overview(n, low, high, mean)


def level_of(scores: FloatArray, mean: FloatArray, live: BoolArray) -> Level:
    """Sum the centred scores of the live items model by model."""
    n_models = scores.shape[1]
    total, size, count = np.zeros(n_models), np.zeros(n_models), np.zeros(n_models, np.int64)
    for rows in row_blocks(scores):
        z = (scores[rows] - mean[rows, None])[live[rows]]
        gap = np.isnan(z)
        z[gap] = 0.0
        total += z.sum(axis=0)
        size += np.abs(z).sum(axis=0)
        count += len(z) - gap.sum(axis=0)
    return Level(total, count, float(size.max(initial=0.0)))


def rest_of(scores: FloatArray, mean: FloatArray, level: Level) -> FloatArray:
    """Return per item and model the mean of the model's other live items, NaN without score or other item."""
    others = np.where(level.n_items > 1, level.n_items - 1.0, np.nan)
    rest: FloatArray = (level.total - (scores - mean[:, None])) / others
    return rest


def against_rest(x: FloatArray, rest: FloatArray, slack: float) -> RestTest:
    """Correlate the rows of ``x`` with those of ``rest``, both (b, R), and test for a negative correlation."""
    used = ~np.isnan(x + rest)
    n = used.sum(axis=1)
    x, rest = np.where(used, x, np.nan), np.where(used, rest, np.nan)
    falling = -np.sort(-x, axis=1)
    new_x, new_rest = _runs(falling, 0.0), _runs(np.sort(rest, axis=1), slack)
    log_orders, x_ties, rest_ties = special.gammaln(n + 1.0), _log_ties(new_x), _log_ties(new_rest)
    # The most negative arrangement sets the greatest scores against the least rests; ties in either, not in
    # both at once, are ways to reach it.
    smallest = np.exp(x_ties + rest_ties - _log_ties(new_x | new_rest) - log_orders)
    inside = np.arange(1, x.shape[1]) < n[:, None]
    varied = (new_x[:, 1:] & inside).any(axis=1) & (new_rest[:, 1:] & inside).any(axis=1)
    exact = varied & (log_orders - x_ties <= log(MAX_ARRANGEMENTS) + 1e-9) & (n <= MAX_ENUMERATED_MODELS)
    size = np.maximum(n, 1)[:, None]
    dx = np.where(used, x - np.where(used, x, 0.0).sum(axis=1, keepdims=True) / size, 0.0)
    dr = np.where(used, rest - np.where(used, rest, 0.0).sum(axis=1, keepdims=True) / size, 0.0)
    spread = np.sqrt(_dot(dx, dx)) * np.sqrt(_dot(dr, dr))
    r = np.full(len(x), np.nan)
    r[varied] = np.clip(_dot(dx, dr)[varied] / spread[varied], -1.0, 1.0)
    p = np.full(len(x), np.nan)
    students = varied & ~exact
    p[students] = np.maximum(_student_p(r[students], n[students], dx[students], dr[students]), smallest[students])
    _enumerate(p, np.flatnonzero(exact), falling, new_x, dx, dr, used, n, slack)
    smallest[exact] = np.minimum(smallest[exact], p[exact])
    return RestTest(n, r, p, np.where(varied, smallest, np.nan), exact)


def _student_p(r: FloatArray, n: IntArray, dx: FloatArray, dr: FloatArray) -> FloatArray:
    """Return P(correlation <= r) by Student's t, times gamma / normal where the permutation skewness is negative."""
    df = n - 2.0
    cubes = _dot(dx * dx, dx) * _dot(dr * dr, dr)
    skewness = n * np.sqrt(n - 1.0) / df * cubes / (_dot(dx, dx) * _dot(dr, dr)) ** 1.5
    with np.errstate(divide="ignore"):
        p: FloatArray = special.stdtr(df, r * np.sqrt(df / (1.0 - r * r)))
        longer = (skewness < -1e-3) & (r < 0)
        shape, z = 4.0 / skewness[longer] ** 2, (r * np.sqrt(n - 1.0))[longer]
        tail = np.log(special.gammaincc(shape, shape - z * np.sqrt(shape))) - special.log_ndtr(z)
    p[longer] *= np.exp(np.where(np.isfinite(tail), np.maximum(0.0, tail), 0.0))
    return np.minimum(1.0, p)


def _dot(a: FloatArray, b: FloatArray) -> FloatArray:
    product: FloatArray = np.einsum("ij,ij->i", a, b)
    return product


def _runs(ordered: FloatArray, slack: float) -> BoolArray:
    """Mark where a run of equal values starts in each sorted row; each NaN at the end is a run."""
    starts = np.ones(ordered.shape, dtype=bool)
    starts[:, 1:] = ~(np.abs(np.diff(ordered, axis=1)) <= slack)
    return starts


def _log_ties(starts: BoolArray) -> FloatArray:
    """Return the sum of log(length!) over the runs of each row."""
    place = np.arange(starts.shape[1], dtype=np.int32)
    within = place - np.maximum.accumulate(np.where(starts, place, np.int32(0)), axis=1)
    total: FloatArray = np.log(place + 1.0)[within].sum(axis=1)
    return total


def _enumerate(
    p: FloatArray,
    chosen: IntArray,
    falling: FloatArray,
    new_x: BoolArray,
    dx: FloatArray,
    dr: FloatArray,
    used: BoolArray,
    n: IntArray,
    slack: float,
) -> None:
    """Fill ``p`` at the ``chosen`` rows: the share of arrangements with a correlation as low as the observed."""
    if chosen.size == 0:
        return
    for members in _alike(n, new_x, chosen):
        size = int(n[members[0]])
        starts = np.flatnonzero(new_x[members[0], :size])
        table = _arrangements(tuple(np.diff(np.append(starts, size)).tolist()))
        step = max(1, BLOCK_CELLS // 4 // table.shape[1])
        for rows in (members[i : i + step] for i in range(0, len(members), step)):
            drop = falling[rows][:, starts[1:]] - falling[rows, :1]
            rests = dr[rows][used[rows]].reshape(len(rows), size)
            sums = (drop[:, :, None] * rests[:, None, :]).reshape(len(rows), -1) @ table
            limit = _dot(dx[rows], dr[rows]) - slack * size * drop[:, -1]
            p[rows] = (sums <= limit[:, None]).sum(axis=1, dtype=np.uint16) / table.shape[1]


def _alike(n: IntArray, starts: BoolArray, chosen: IntArray) -> list[IntArray]:
    """Split the ``chosen`` rows into groups of equal ``n`` and ``starts``."""
    code = n[chosen]
    for first in range(0, starts.shape[1], 48):
        bits = starts[chosen, first : first + 48] @ (1 << np.arange(min(48, starts.shape[1] - first)))
        word = np.unique(bits, return_inverse=True)[1]
        code = np.unique(code * (word.max() + 1) + word, return_inverse=True)[1]
    return np.split(chosen[np.argsort(code, kind="stable")], np.cumsum(np.bincount(code))[:-1])


@lru_cache(maxsize=32)
def _arrangements(lengths: tuple[int, ...]) -> FloatArray:
    """Return every arrangement of tied values over n = sum(lengths) places as columns, ((L - 1) n, A).

    Entry (l n + j, a) is 1 where arrangement a puts a value of class l + 1 on place j; class 0 takes what is left.
    """
    n = sum(lengths)
    free = np.arange(n)[None]
    placed: list[IntArray] = []
    for length in lengths[1:]:
        width = free.shape[1]
        picks = np.array(list(combinations(range(width), length)))
        left = np.ones((comb(width, length), width), dtype=bool)
        np.put_along_axis(left, picks, False, axis=1)
        kept = np.nonzero(left)[1].reshape(len(picks), width - length)
        placed = [np.repeat(earlier, len(picks), axis=0) for earlier in placed]
        placed.append(free[:, picks].reshape(-1, length))
        free = free[:, kept].reshape(-1, width - length)
    table = np.zeros((len(placed), n, len(free)))
    for row, places in zip(table, placed, strict=True):
        row[places, np.arange(len(free))[:, None]] = 1.0
    table.setflags(write=False)
    return table.reshape(-1, len(free))


def strata(level: Level) -> IntArray:
    """Return the stratum of each model: equal parts of at most ``STRATUM`` by level, equal levels together."""
    known = level.n_items > 1
    mean = level.total / np.maximum(level.n_items, 1)
    parts = max(1, ceil(known.sum() / STRATUM))
    rank = np.searchsorted(np.sort(mean[known]), mean - level.slack)
    return np.unique(rank * parts // max(1, int(known.sum())), return_inverse=True)[1].ravel()


def residuals(x: FloatArray, rest: FloatArray, stratum: IntArray, slack: float) -> FloatArray:
    """Return what a line on rest in each stratum leaves of ``x``: length 1, 0 where missing; NaN if nothing is left."""
    used = ~np.isnan(x + rest)
    members = (stratum[:, None] == np.arange(stratum.max() + 1)).astype(np.float64)
    count = np.maximum(used @ members, 1.0)

    def within(values: FloatArray) -> FloatArray:
        means = (np.where(used, values, 0.0) @ members) / count
        return np.where(used, values - means @ members.T, 0.0)

    dx, dr = within(x), within(rest)
    power = (dr * dr) @ members
    slope = np.where(power > slack * slack * x.shape[1], (dx * dr) @ members, 0.0) / np.where(power > 0, power, 1.0)
    left = dx - (slope @ members.T) * dr
    size = np.sqrt(_dot(left, left))
    spread = np.fmax.reduce(np.where(used, x, np.nan), axis=1) - np.fmin.reduce(np.where(used, x, np.nan), axis=1)
    unit: FloatArray = left / np.where(size > 1e-6 * spread, size, np.nan)[:, None]
    return unit


def log_arrangements(x: FloatArray, stratum: IntArray) -> FloatArray:
    """Return the log of the number of distinct arrangements of each row of ``x`` within strata, NaN left out."""
    total = np.zeros(len(x))
    for part in range(int(stratum.max()) + 1):
        ordered = np.sort(x[:, stratum == part], axis=1)
        total += special.gammaln((~np.isnan(ordered)).sum(axis=1) + 1.0) - _log_ties(_runs(ordered, 0.0))
    return total


def critical_r(n_models: int, used_up: int, alpha: float) -> FloatArray:
    """Return the r that is significant at one-sided ``alpha`` with n - used_up degrees of freedom, n = 0..n_models."""
    df = np.arange(n_models + 1.0) - used_up
    t = -special.stdtrit(np.maximum(df, 1.0), alpha)
    return np.where(df >= 1, t / np.sqrt(df + t * t), np.inf)


def redundant_pairs(
    x: FloatArray,
    unit: FloatArray,
    stratum: IntArray,
    critical: FloatArray,
    log_needed: float,
    *,
    limit: int,
) -> Pairs:
    """Return the pairs of rows whose residuals correlate at least as ``critical`` at their common models.

    So they must with any one model left out. ``unit`` (m, R) are residuals of length 1 with 0 where ``x`` is not
    used; both items must have ``log_needed`` as the log of their arrangements within strata at the common models.
    """
    m = len(x)
    has = ~np.isnan(x)
    complete = bool(has.all())
    partners, group = np.zeros(m, np.int64), np.arange(m)
    listed: list[tuple[IntArray, IntArray, FloatArray, IntArray, BoolArray]] = []
    n_pairs = 0
    for i, j in _candidates(unit, None if complete else has, float(critical.min())):
        step = max(1, BLOCK_CELLS // x.shape[1])
        for a, b in ((i[k : k + step], j[k : k + step]) for k in range(0, len(i), step)):
            both = has[a] & has[b]
            r, without_one = _correlations(unit[a], unit[b], both)
            n = both.sum(axis=1)
            keep = (r >= critical[n] - ROUNDING) & (without_one >= critical[n - 1] - ROUNDING)
            if not complete:
                for item in (a, b):
                    keep &= log_arrangements(np.where(both, x[item], np.nan), stratum) >= log_needed
            a, b, both = a[keep], b[keep], both[keep]
            if a.size == 0:
                continue
            partners += np.bincount(a, minlength=m) + np.bincount(b, minlength=m)
            group = _merged(group, a, b)
            if n_pairs < limit:
                same = ((x[a] == x[b]) | ~both).all(axis=1)
                listed.append((a, b, r[keep], n[keep], same))
            n_pairs += len(a)
    if listed:
        first, second, r, n, same = (np.concatenate(column)[:limit] for column in zip(*listed, strict=True))
    else:
        first, second, n = (np.empty(0, np.int64) for _ in range(3))
        r, same = np.empty(0), np.empty(0, dtype=bool)
    order = np.lexsort((second, first))
    group = np.where(partners > 0, group, -1)
    return Pairs(first[order], second[order], r[order], n[order], same[order], partners, group, n_pairs)


def _correlations(a: FloatArray, b: FloatArray, both: BoolArray) -> tuple[FloatArray, FloatArray]:
    """Return the correlation of residuals at the common models, and the least one with one of them left out."""
    product, first, second = a * b, a * a * both, b * b * both
    total, power, other = (part.sum(axis=1, keepdims=True) for part in (product, first, second))
    left = np.sqrt(np.maximum(power - first, 0.0)) * np.sqrt(np.maximum(other - second, 0.0))
    without = (total - product) / np.where(left > SCREEN_SLACK, left, np.nan)
    whole = np.sqrt(power * other)
    r = total / np.where(whole > SCREEN_SLACK, whole, np.nan)
    return np.minimum(1.0, r[:, 0]), without.min(axis=1)


def _candidates(unit: FloatArray, has: BoolArray | None, threshold: float) -> Iterator[tuple[IntArray, IntArray]]:
    """Yield pairs i < j that may reach ``threshold``, tile by tile in single precision."""
    single = unit.astype(np.float32)
    square, seen = (None, None) if has is None else (single * single, has.astype(np.float32))
    height, width = TILE
    for top in range(0, len(unit), height):
        for left in range(top, len(unit), width):
            rows, columns = slice(top, top + height), slice(left, left + width)
            tile = single[rows] @ single[columns].T
            if square is None or seen is None:
                hit = tile >= threshold - SCREEN_SLACK
            else:
                power = (square[rows] @ seen[columns].T) * (seen[rows] @ square[columns].T)
                hit = (tile >= threshold * np.sqrt(power) - SCREEN_SLACK) & (tile > SCREEN_SLACK)
            flat = np.flatnonzero(hit)
            i, j = top + flat // tile.shape[1], left + flat % tile.shape[1]
            yield i[i < j], j[i < j]


def _merged(group: IntArray, a: IntArray, b: IntArray) -> IntArray:
    """Return group codes after joining a[k] with b[k]."""
    m = len(group)
    links = coo_array((np.ones(len(a), np.int8), (group[a], group[b])), shape=(m, m))
    labels = connected_components(links, directed=False)[1]
    joined: IntArray = labels[group].astype(np.int64)
    return joined
