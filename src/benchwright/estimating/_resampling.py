"""Bootstraps of whole rankings: all items are re-ranked in every replicate, in chunks of a fixed size.

Replicates come in chunks of ``CHUNK``, and every product of matrices has that many columns, the last chunk included, so
that neither memory nor a last bit depends on how many chunks are held at once. Draws are made once for all items (the
same seeds, the same models), so replicates keep the dependence between items.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchwright._check import FloatArray

IntArray = NDArray[np.int64]
RankArray = NDArray[np.int32]
CHUNK = 32
COUNT_CELLS = 1 << 14  # counts made at once: they stay in the processor's cache
ITEM_BLOCK = 2048  # items at a time, so that a block's replicates stay in the processor's cache

Draw = Callable[[], FloatArray]  # the next chunk of replicates, (m, CHUNK)


def tail_count(replicates: int, level: float) -> int:
    """Return k: the interval runs from the k-th smallest of B replicates to the k-th largest, k = (B + 1) alpha / 2.

    0 where B is too small for the level.
    """
    return int(np.floor((replicates + 1) * (1 - level) / 2 + 1e-9))


def multiplicities(draws: IntArray, size: int) -> FloatArray:
    """Return how often each of ``size`` units is drawn, (size, b), from draws (b, d) of positions."""
    return np.ascontiguousarray(times_drawn(draws, size).T)


def times_drawn(draws: NDArray[np.integer], size: int) -> FloatArray:
    """Return the same a row a draw, (b, size)."""
    counts = np.empty((len(draws), size))
    step = max(1, COUNT_CELLS // size)
    first = np.arange(0, step * size, size)[:, None]
    for start in range(0, len(draws), step):
        drawn = draws[start : start + step]
        cells = (drawn + first[: len(drawn)]).ravel()
        counts[start : start + step] = np.bincount(cells, minlength=len(drawn) * size).reshape(len(drawn), size)
    return counts


@dataclass(slots=True, eq=False)
class SeedVariances:
    """Replicates of pooled variances: seeds drawn with replacement, the same for all items.

    ``groups``: the columns of each checkpoint's runs. Each checkpoint has a draw of its own, or, with ``alike``,
    those with the same number there share one: whole seeds are drawn, and a group's columns are in the order of
    seeds. Replicate b of item i is sum_t (sum_s c_ts r_its^2 - (sum_s c_ts r_its)^2 / n_it) / sum_t (n_it - 1) with
    multiplicities c, residuals r and n_it = sum_s c_ts over the runs that the item has. 0 / 0 is NaN.
    """

    residual: FloatArray
    groups: Sequence[IntArray]
    rng: np.random.Generator
    alike: Sequence[int] | None = None

    @property
    def empty_share(self) -> float:
        """Share of draws that are one seed at each checkpoint: they have no variance, and rank nothing."""
        sizes = dict(zip(self.alike or range(len(self.groups)), map(len, self.groups), strict=True))
        return float(np.prod([float(n) ** (1 - n) for n in sizes.values()]))

    def __call__(self) -> FloatArray:
        made: dict[int, FloatArray] = {}
        for at, number in zip(self.groups, self.alike or range(len(self.groups)), strict=True):
            if number not in made:
                made[number] = multiplicities(self.rng.integers(len(at), size=(CHUNK, len(at))), len(at))
        drawn = [made[number] for number in self.alike or range(len(self.groups))]
        together = np.concatenate(drawn)
        order = np.concatenate([np.asarray(at) for at in self.groups])
        out = np.empty((len(self.residual), CHUNK))
        for start in range(0, len(out), ITEM_BLOCK):
            block = self.residual[start : start + ITEM_BLOCK][:, order]
            known = ~np.isnan(block)
            whole = bool(known.all())
            block = self._scaled(block, known, whole=whole)
            squares = np.square(block) @ together
            df: FloatArray | float = float(sum(max(len(at) - 1, 0) for at in self.groups))
            if not whole:
                df = np.zeros_like(squares)
            first = 0
            for at, counts in zip(self.groups, drawn, strict=True):
                sums = block[:, first : first + len(at)] @ counts
                if whole:
                    squares -= np.square(sums) / len(at)
                else:
                    n = known[:, first : first + len(at)].astype(np.float64) @ counts
                    squares -= np.divide(np.square(sums), n, out=np.zeros_like(sums), where=n > 0)
                    df += np.maximum(n - 1, 0)
                first += len(at)
            with np.errstate(invalid="ignore", divide="ignore"):
                out[start : start + ITEM_BLOCK] = np.where(df > 0, np.maximum(squares, 0.0) / df, np.nan)
        return out

    def _scaled(self, block: FloatArray, known: NDArray[np.bool_], *, whole: bool) -> FloatArray:
        """Return residuals times sqrt(n / (n - 1)) of their group, 0 where missing or alone: draws are then no smaller
        on average than what they are drawn from.
        """
        out, first = np.zeros_like(block), 0
        for at in self.groups:
            part = slice(first, first + len(at))
            n = np.full((len(block), 1), len(at)) if whole else known[:, part].sum(axis=1, keepdims=True)
            scale = np.sqrt(np.divide(n, n - 1, out=np.zeros(n.shape), where=n > 1))
            out[:, part] = block[:, part] * scale if whole else np.where(known[:, part], block[:, part], 0.0) * scale
            first += len(at)
        return out


@dataclass(slots=True, eq=False)
class ChiSquareVariances:
    """Replicates of variances that come without their deviations: sigma2 chi2_df / df, each item on its own."""

    sigma2: FloatArray
    df: FloatArray
    rng: np.random.Generator

    def __call__(self) -> FloatArray:
        drawn = self.rng.chisquare(self.df, size=(CHUNK, len(self.df)))
        return np.ascontiguousarray((self.sigma2 * drawn / self.df).T)


@dataclass(slots=True, eq=False)
class SlopeReplicates:
    """Replicates of slopes: residuals drawn with replacement over the runs of an axis.

    b*_i = b_i + sum_j a_ij e_i,d(j) with a_ij = (x_j - mean) / Sxx of the runs that item i has. ``shared``: one draw of
    runs for all items (position floor(u n_i) among those that the item has, the same u), else a draw of its own for
    each. An item without residuals keeps its slope.
    """

    slope: FloatArray
    residual: FloatArray
    x: FloatArray
    rng: np.random.Generator
    shared: bool = True

    def __call__(self) -> FloatArray:
        if not self.shared:
            return self._independent()
        uniform = self.rng.random((CHUNK, len(self.x)))
        out = self._start()
        for at, columns in self._patterns():
            n = len(columns)
            drawn = np.minimum((uniform[:, columns] * n).astype(np.int64), n - 1)
            out[at] = self._placed(at, columns, drawn)
        return out

    def _placed(self, at: IntArray, columns: IntArray, drawn: IntArray) -> FloatArray:
        """Return replicates of items ``at``, whose models are ``columns``, from draws (CHUNK, n) of positions."""
        x, n = self.x[columns], len(columns)
        deviation = x - x.mean()
        lever = deviation / (deviation @ deviation)
        flat = drawn + np.arange(CHUNK)[:, None] * n
        weight = np.bincount(flat.ravel(), np.broadcast_to(lever, drawn.shape).ravel(), minlength=CHUNK * n)
        table = np.ascontiguousarray(weight.reshape(CHUNK, n).T)
        out = np.empty((len(at), CHUNK))
        for start in range(0, len(at), ITEM_BLOCK):
            rows = at[start : start + ITEM_BLOCK]
            out[start : start + ITEM_BLOCK] = self.slope[rows, None] + self.residual[np.ix_(rows, columns)] @ table
        return out

    def _independent(self) -> FloatArray:
        out = self._start()
        for at, columns in self._patterns():
            x, n = self.x[columns], len(columns)
            deviation = x - x.mean()
            lever = deviation / (deviation @ deviation)
            for start in range(0, len(at), ITEM_BLOCK):
                rows = at[start : start + ITEM_BLOCK]
                drawn = self.rng.integers(n, size=(len(rows), CHUNK * n))
                picked = np.take_along_axis(self.residual[np.ix_(rows, columns)], drawn, axis=1)
                out[rows] = self.slope[rows, None] + picked.reshape(len(rows), CHUNK, n) @ lever
        return out

    def _start(self) -> FloatArray:
        """Return replicates that are all the slope itself, which items without residuals keep."""
        return np.repeat(self.slope[:, None], CHUNK, axis=1)

    def _patterns(self) -> Iterator[tuple[IntArray, IntArray]]:
        """Yield the items that have the same models, with those models; items without residuals are left out."""
        at = np.flatnonzero(np.isfinite(self.slope) & ~np.isnan(self.residual).all(axis=1))
        known = np.packbits(~np.isnan(self.residual[at]), axis=1)
        _, first, inverse = np.unique(known, axis=0, return_index=True, return_inverse=True)
        order = np.argsort(inverse.ravel(), kind="stable")
        ends = np.cumsum(np.bincount(inverse.ravel(), minlength=len(first)))
        for place, stop in enumerate(ends):
            mine = at[order[ends[place - 1] if place else 0 : stop]]
            yield mine, np.flatnonzero(~np.isnan(self.residual[mine[0]]))


@dataclass(slots=True, eq=False)
class SeedSlopeReplicates:
    """Replicates of slopes whose runs share seeds: seeds drawn with replacement, the same for all items.

    b*_i = b_i + sum_s c_s u_is with multiplicities c and ``scores`` u (m, S) from :func:`._slopes.seed_scores`, whose
    sum over seeds is 0. Their variance over draws is the squared standard error by seed.
    """

    slope: FloatArray
    scores: FloatArray
    rng: np.random.Generator

    def __call__(self) -> FloatArray:
        seeds = self.scores.shape[1]
        counts = multiplicities(self.rng.integers(seeds, size=(CHUNK, seeds)), seeds)
        replicates: FloatArray = self.slope[:, None] + self.scores @ counts
        return replicates


def cheapest(slopes: Sequence[FloatArray], prices: Sequence[float]) -> FloatArray:
    """Return min_k price_k / slope_k over positive slopes, infinite where none is: such an item ranks last."""
    best: FloatArray | None = None
    with np.errstate(divide="ignore", invalid="ignore"):
        for slope, price in zip(slopes, prices, strict=True):
            dollars = np.where(slope > 0, price / slope, np.inf)
            best = dollars if best is None else np.minimum(best, dollars)
    if best is None:
        raise ValueError("no axis")
    return best


@dataclass(frozen=True, slots=True, eq=False)
class RankDraws:
    """What stays of B re-rankings: ends of the percentile intervals, and how often an item was among the first or last.

    ``low``, ``high``: (m,) ranks from 1; ``first``, ``last``: shares of replicates with rank <= top, rank > m - top.
    """

    low: RankArray
    high: RankArray
    first: FloatArray
    last: FloatArray


def rank_replicates(draw: Draw, m: int, *, replicates: int, level: float, top: int, held: int = 8) -> RankDraws:
    """Rank m items, smallest first, in each of B replicates; infinite values come last, then NaN.

    Tied items share their places: the interval runs from the least place of a tie to its greatest, and shares count the
    part of a tie that is within. ``held`` chunks are kept before their tails are merged; it changes memory, never a
    result. Time O(B m log m), memory O(m (CHUNK held + B alpha)).
    """
    k = tail_count(replicates, level)
    smallest, largest = (np.full((m, k), m + 1, dtype=np.int32) for _ in range(2))  # the largest from the other end
    first, last = np.zeros(m), np.zeros(m)
    waiting: list[tuple[RankArray, RankArray]] = []
    left = replicates
    while left > 0:
        low, high = (ranks[:left] for ranks in _ranks(draw()))
        left -= len(low)
        first += _share_within(low, high, top)
        last += _share_within(m + 1 - high, m + 1 - low, top)
        waiting.append((low, high))
        if len(waiting) == held or left == 0:
            _merge(smallest, [one for one, _ in waiting])
            _merge(largest, [one for _, one in waiting], backwards=m + 1)
            waiting.clear()
    return RankDraws(
        low=smallest.max(axis=1, initial=0),
        high=m + 1 - largest.max(axis=1, initial=1),
        first=first / replicates,
        last=last / replicates,
    )


def _share_within(low: RankArray, high: RankArray, top: int) -> FloatArray:
    """Return for each item the sum over replicates of the share of its places that are at most ``top``."""
    size = high - low + 1
    share: FloatArray = (np.clip(top - low + 1, 0, size) / size).sum(axis=0)
    return share


def _ranks(values: FloatArray) -> tuple[RankArray, RankArray]:
    """Return the least and the greatest rank of each item in each replicate, (b, m), from values (m, b)."""
    rows = np.ascontiguousarray(values.T)
    low = np.empty(rows.shape, dtype=np.int32)
    high, tied = low, False
    m = rows.shape[1]
    places = np.arange(1, m + 1, dtype=np.int32)
    for b, row in enumerate(rows):
        order = np.argsort(row)  # not stable, which does not show: ties share their places
        placed = row[order]
        new = (placed[1:] > placed[:-1]) | (np.isnan(placed[1:]) & ~np.isnan(placed[:-1]))
        low[b, order] = places
        if not new.all() and not tied:
            high, tied = low.copy(), True
        if tied:
            high[b] = low[b]
        if not new.all():
            starts = np.flatnonzero(np.concatenate([[True], new]))
            group = np.cumsum(np.concatenate([[False], new]))
            ends = np.append(starts[1:], m)
            low[b, order], high[b, order] = starts[group] + 1, ends[group]
    return low, high


def _merge(kept: RankArray, waiting: list[RankArray], *, backwards: int | None = None) -> None:
    """Keep in ``kept`` (m, k) the k smallest of what is there and of further replicates (b, m), in place.

    ``backwards``: keep the k smallest of this number less the rank. A block of items at a time.
    """
    for start in range(0, len(kept), ITEM_BLOCK):
        rows = slice(start, start + ITEM_BLOCK)
        new = [one[:, rows].T if backwards is None else backwards - one[:, rows].T for one in waiting]
        kept[rows] = np.sort(np.concatenate([kept[rows], *new], axis=1), axis=1)[:, : kept.shape[1]]
