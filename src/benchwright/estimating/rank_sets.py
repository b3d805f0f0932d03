"""Confidence sets for ranks: which ranks each population may truly have, after Mogstad et al. (2024).

Populations j = 1..p have true values theta_j; rank 1 is the largest. The ranks that j holds are
1 + #{k: theta_k > theta_j} to p - #{k: theta_k < theta_j}: one rank, or all of its places where j is tied.
The set is found by testing, for every ordered pair, H_jk: theta_j <= theta_k with

    T_jk = (estimate_j - estimate_k) / se_jk,    reject where T_jk > c,

    lo_j = 1 + #{k: H_kj rejected},    hi_j = p - #{k: H_jk rejected},

c being the ``level`` quantile of max T*_jk over the pairs of the family, T* a draw in which all true values are
equal. Where no true H_jk is rejected, the set contains all ranks of j: the sets err no more often than the tests.

* Simultaneous: the family is all ordered pairs; all p sets hold their ranks at once with probability ``level``.
* Marginal: one family for each j, the ordered pairs with j in them; each set alone holds with that probability.

Both directions of a pair make c the quantile of max |T*|. Stepdown: rejected H_jk leave the family, c is taken anew,
until nothing more is rejected. H_kj stays when H_jk leaves, for it may be true: only so are ties and directions
both guarded whatever the dependence. c then falls from a two-sided value towards a one-sided one, no lower.

Sorted by estimate, T_jk >= 0 for j before k, so only such pairs are looked at: the forward direction T*_jk while
it is in the family, the reverse -T*_jk always. Work is O(p^2 B) a step at most, memory O(p^2 + p B).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from benchwright._check import FloatArray, finite_array
from benchwright.errors import DataError, UsageError

IntArray = NDArray[np.int64]
Pairs = list[tuple[int, IntArray]]  # j with the k it is compared to, rising; places in falling order of estimate
Score = Callable[[int, IntArray], FloatArray]  # of j minus each of others, in each draw: (len(others), B)

CELLS = 1 << 16  # scores held at once: they stay in the processor's cache
SIGN_CELLS = 1 << 21  # signs held at once: 16 MB, which the allocator gives again without new pages
TIE = 1 + 1e-9  # a score within this of the critical value equals it: one pattern of signs is the data themselves


@dataclass(frozen=True, slots=True, eq=False)
class RankSets:
    """Ranks of p populations, each with its confidence set; arrays have shape (p,), in the order given.

    ``rank`` is 1 + the number of larger estimates, so ties share the smallest; ``lo`` and ``hi`` are the ends of
    the set, lo <= rank <= hi. A set [1, p] says that the data cannot tell. ``critical`` is the last critical value
    of |T| and ``n_steps`` how many were taken, for marginal sets the largest of all populations', NaN and 0 where
    p = 1; ``replicates`` is the number of draws each rests on.
    """

    estimate: FloatArray
    rank: IntArray
    lo: IntArray
    hi: IntArray
    level: float
    replicates: int
    simultaneous: bool
    critical: float
    n_steps: int
    method: str

    def to_frame(self, names: Sequence[str]) -> pl.DataFrame:
        """Return one row a population: name, estimate, rank, lo, hi."""
        if len(names) != len(self.rank):
            raise UsageError(f"`names` must name {len(self.rank)} populations, got {len(names)}")
        columns = {"estimate": self.estimate, "rank": self.rank, "lo": self.lo, "hi": self.hi}
        return pl.DataFrame({"name": pl.Series(names, dtype=pl.String), **columns})


def from_standard_errors(
    estimate: ArrayLike,
    standard_error: ArrayLike,
    *,
    rng: np.random.Generator,
    df: ArrayLike = np.inf,
    level: float = 0.95,
    replicates: int = 2000,
    simultaneous: bool = True,
    stepdown: bool = True,
) -> RankSets:
    """Return confidence sets for the ranks of independent estimates.

    A draw is z_j ~ N(0, se_j^2) with its own variance v_j = se_j^2 chi2(df_j) / df_j, and T*_jk =
    (z_j - z_k) / sqrt(v_j + v_k). Two populations without noise are told apart for certain, unless they are equal.

    Parameters
    ----------
    estimate, standard_error
        Shape (p,), in one unit; larger is better. Standard errors are >= 0.
    rng
        Source of randomness. Draws go to populations in falling order of estimate, so their order does not matter.
    df
        Degrees of freedom of the standard errors, one number or shape (p,): S - 1 for S seeds, inf if known.
    level, simultaneous
        Probability, within 0 to 1, with which all sets hold at once, or each alone.
    replicates
        Draws B, at least 10 / (1 - level).
    stepdown
        Whether critical values are taken anew after rejections; never widens a set.

    Raises
    ------
    UsageError
        A missing value, a negative standard error, shapes that differ, too few replicates.

    References
    ----------
    Mogstad, Romano, Shaikh and Wilhelm (2024), "Inference for Ranks with Applications to Mobility across
    Neighbourhoods and Academic Achievement across Countries", Review of Economic Studies 91(1).

    Examples
    --------
    >>> import numpy as np
    >>> sets = from_standard_errors([0.9, 0.2, 0.8], [0.1, 0.1, 0.1], df=7, rng=np.random.default_rng(1))
    >>> sets.to_frame(["a", "b", "c"]).rows()
    [('a', 0.9, 1, 1, 2), ('b', 0.2, 3, 3, 3), ('c', 0.8, 2, 1, 2)]
    """
    position = _quantile_position(level, replicates)
    theta = finite_array("estimate", estimate, ndim=1)
    se = finite_array("standard_error", standard_error, ndim=1)
    if theta.shape != se.shape:
        raise UsageError(f"`standard_error` must have one entry an estimate, {len(theta)}, got {len(se)}")
    if (se < 0).any():
        raise UsageError(f"`standard_error` must be >= 0, got {se.min():.3g} at {int(se.argmin())}")
    freedom = np.asarray(df)
    if freedom.dtype.kind not in "iuf" or freedom.shape not in ((), theta.shape) or not (freedom > 0).all():
        raise UsageError(f"`df` must be one number > 0 or {len(theta)} of them, got {df!r}")
    freedom = np.broadcast_to(freedom.astype(np.float64), theta.shape)
    order = np.lexsort((freedom, se, -theta))
    se, freedom = se[order], freedom[order]
    root = np.hypot(se[:, None], se)
    gap = np.abs(theta[order][:, None] - theta[order])
    t = np.where(root > 0, _divide(gap, root), np.where(gap > 0, np.inf, 0.0))
    z = rng.standard_normal((len(se), replicates)) * se[:, None]
    known = np.isinf(freedom)
    if known.all():
        tests = _Tests(t, _fixed_scale(z, _divide(1.0, root)), replicates, position)
        how = "normal draws"
    else:
        finite = np.where(known, 1.0, freedom)[:, None]
        spread = np.where(known[:, None], 1.0, rng.chisquare(finite, size=z.shape) / finite)
        # Without noise z is 0: the smallest number under it keeps 0 / 0 away.
        variance = np.maximum(se[:, None] ** 2 * spread, np.finfo(np.float64).tiny)
        tests = _Tests(t**2, _own_variance(z, variance), replicates, position, np.sqrt)
        few, many = freedom.min(), freedom.max()
        how = f"draws studentised with {few:g} {'' if few == many else f'to {many:g} '}degrees of freedom"
    return _rank_sets(theta, order, tests, how, level=level, simultaneous=simultaneous, stepdown=stepdown)


def from_replicates(
    values: ArrayLike,
    *,
    rng: np.random.Generator,
    cluster: ArrayLike | None = None,
    level: float = 0.95,
    replicates: int = 2000,
    simultaneous: bool = True,
    stepdown: bool = True,
) -> RankSets:
    """Return confidence sets for the ranks of column means over units that all populations share.

    Differences are paired. With d_g the sum of x_j - x_k over the n_g rows of unit g, G units and n rows,
    se_jk^2 = G / (G - 1) sum_g (d_g - n_g mean)^2 / n^2, mean = sum_g d_g / n. A draw turns the sign of all d_g of a
    unit at random and studentises anew; where 2^G is at most ``replicates``, all patterns of signs are taken once.
    If units are symmetric about their mean, the level is exact at any G where all populations are tied.

    Parameters
    ----------
    values
        Shape (n, p): n rows (items; seeds that all populations share), p populations; larger is better.
    cluster
        Shape (n,), whole numbers: rows of one number are one unit. Means stay means over rows.
    rng, level, replicates, simultaneous, stepdown
        As in ``from_standard_errors``.

    Raises
    ------
    UsageError
        A missing value (leave out the rows that not all populations have), too few replicates.
    DataError
        Fewer than two units: nothing tells how they vary.

    Notes
    -----
    Where 2^(G - 1) (1 - level) < 1, as with under 6 units at 0.95, nothing can be told apart, not even populations
    that differ by one amount in all units; ``method`` says so. Strongly skewed differences break the level of few
    units, as they break a t test's.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> values = rng.normal(size=(200, 1)) + 0.1 * rng.normal(size=(200, 3)) + [0.0, 0.5, 0.5]
    >>> from_replicates(values, rng=rng).to_frame(["a", "b", "c"]).select("name", "lo", "hi").rows()
    [('a', 3, 3), ('b', 1, 2), ('c', 1, 2)]
    """
    position = _quantile_position(level, replicates)
    x = finite_array("values", values, ndim=2)
    n, p = x.shape
    labels = np.arange(n) if cluster is None else _labels(cluster, n)
    sizes = np.unique(labels, return_counts=True)[1]
    units = len(sizes)
    if units < (2 if p > 1 else 1):
        raise DataError(
            f"ranks need at least two units to see how they vary, got {units}",
            hint="give one row an item or a seed; with clusters, at least two of them",
        )
    theta = x.mean(axis=0)
    # What all populations share of a row cancels in differences: taken out, it costs no digits.
    u = np.subtract(x.T, x.sum(axis=1) / max(p, 1), order="C")
    if units < n:
        u = np.add.reduceat(u[:, np.argsort(labels, kind="stable")], np.cumsum(sizes) - sizes, axis=1)
    order = np.lexsort((np.einsum("jg,jg->j", u, u), -theta))
    u, size = u[order], sizes.astype(np.float64)
    squares = _squared_distances(u, smallest=n * (1e-13 * np.abs(x).max(initial=0.0)) ** 2)
    exact = 2**units <= replicates
    if exact:
        position = 2**units - int(2**units * (1 - level) + 1e-9) - 1
    how = f"{'all' if exact else 'random'} signs of {units} units"
    if 2.0 ** (1 - units) > 1 - level:
        how += ", too few to tell anything apart"
    alike = bool((size == size[0]).all())
    rows = u if alike else np.vstack([u, u * size])
    z = np.hstack([rows @ signs.T for signs in _signs(units, replicates, exact, rng)])
    total = rows.sum(axis=1)[:, None] - rows.sum(axis=1)
    if alike:  # then T is one growing function of sum d / sqrt(sum d^2) for all pairs
        inverse = _divide(1.0, np.sqrt(squares))
        observed, score = total * inverse, _fixed_scale(z, inverse)
    else:
        observed = _cluster_scores(total[:p, :p], total[p:, p:], squares, size)
        score = _clusters(z[:p], z[p:], squares, size)

    def to_t(critical: float) -> float:
        if not alike:
            return float(np.sqrt(critical * (units - 1) / units))
        left = units - critical**2
        return np.inf if left <= 1e-9 * units else float(critical * np.sqrt((units - 1) / left))

    tests = _Tests(np.abs(observed), score, z.shape[1], position, to_t)
    return _rank_sets(theta, order, tests, how, level=level, simultaneous=simultaneous, stepdown=stepdown)


@dataclass(frozen=True, slots=True, eq=False)
class _Tests:
    """Scores, which order as T does, places in falling order of estimate: ``observed`` (p, p) >= 0 and drawn ones."""

    observed: FloatArray
    score: Score
    draws: int
    position: int
    to_t: Callable[[float], float] = float


def _rank_sets(
    theta: FloatArray, order: IntArray, tests: _Tests, how: str, *, level: float, simultaneous: bool, stepdown: bool
) -> RankSets:
    """Step down in each family, and count what was not told apart before and behind each place."""
    places = np.arange(len(theta))
    before, behind = np.zeros_like(places), np.zeros_like(places)
    families: list[Pairs] = [[(j, np.delete(places, j))] for j in range(len(places)) if len(places) > 1]
    if simultaneous:
        families = [[(j, places[j + 1 :]) for j in range(len(places) - 1)]]
    critical, n_steps = np.nan, 0
    for family in families:
        alike, score, steps = _step_down(family, tests, stepdown)
        critical, n_steps = float(np.fmax(critical, score)), max(n_steps, steps)
        for j, others in alike:
            before[j] += (others < j).sum()
            behind[j] += (others > j).sum()
            if simultaneous:
                before[others] += 1
    lo, hi = np.empty_like(places), np.empty_like(places)
    lo[order], hi[order] = places + 1 - before, places + 1 + behind
    return RankSets(
        estimate=theta,
        rank=1 + np.searchsorted(-theta[order], -theta, side="left"),
        lo=lo,
        hi=hi,
        level=level,
        replicates=tests.draws,
        simultaneous=simultaneous,
        critical=float(tests.to_t(critical)),
        n_steps=n_steps,
        method=f"{'simultaneous' if simultaneous else 'marginal'}, {'stepdown' if stepdown else 'single step'}; {how}",
    )


def _step_down(family: Pairs, tests: _Tests, stepdown: bool) -> tuple[Pairs, float, int]:
    """Return the pairs that were not told apart, the last critical score, and how many were taken."""
    reverse = np.full(tests.draws, -np.inf)
    critical, steps, left = np.nan, 0, -1
    while family and left != (left := sum(len(others) for _, others in family)) and (stepdown or not steps):
        forward = np.full(tests.draws, -np.inf)
        for j, others in family:
            step = max(1, CELLS // tests.draws)
            for start in range(0, len(others), step):
                part = others[start : start + step]
                scores = tests.score(j, part)
                scores[: np.searchsorted(part, j)] *= -1.0
                np.maximum(forward, scores.max(axis=0), out=forward)
                if not steps:
                    np.maximum(reverse, 0.0 - scores.min(axis=0), out=reverse)
        critical = float(np.partition(np.maximum(forward, reverse), tests.position)[tests.position])
        steps += 1
        family = [(j, kept) for j, others in family if len(kept := others[tests.observed[j, others] <= TIE * critical])]
    return family, critical, steps


def _fixed_scale(z: FloatArray, inverse: FloatArray) -> Score:
    return lambda j, others: _differences(z, j, others) * inverse[j, others][:, None]


def _own_variance(z: FloatArray, variance: FloatArray) -> Score:
    """Return signed squares, which spare a root each."""

    def score(j: int, others: IntArray) -> FloatArray:
        gap = _differences(z, j, others)
        gap *= np.abs(gap)
        gap /= variance[j] + variance[others]
        return gap

    return score


def _clusters(z: FloatArray, weighted: FloatArray, squares: FloatArray, size: FloatArray) -> Score:
    def score(j: int, others: IntArray) -> FloatArray:
        gaps = _differences(z, j, others), _differences(weighted, j, others)
        return _cluster_scores(*gaps, squares[j, others][:, None], size)

    return score


def _cluster_scores(gap: FloatArray, weighted: FloatArray, squares: FloatArray, size: FloatArray) -> FloatArray:
    """Return signed squares from sums of d, of n_g d and of d^2; the variance is kept off 0, where T means nothing."""
    mean = gap / size.sum()
    variance = squares - mean * (2 * weighted - mean * (size @ size))
    floor = np.where(squares > 0, 1e-7 * squares, np.inf)
    scores: FloatArray = gap * np.abs(gap) / np.maximum(variance, floor)
    return scores


def _differences(rows: FloatArray, j: int, others: IntArray) -> FloatArray:
    gap: FloatArray = rows[j] - rows[others]
    return gap


def _squared_distances(u: FloatArray, *, smallest: float) -> FloatArray:
    """Return sum_g (u_jg - u_kg)^2 of all pairs of rows, shape (p, p); 0 where no more than ``smallest``."""
    product = u @ u.T
    total = np.diagonal(product)[:, None] + np.diagonal(product)
    squares = total - 2 * product
    for j, k in np.argwhere(np.triu(squares <= 1e-8 * total, 1)):  # cancelled: summed anew
        squares[j, k] = squares[k, j] = np.square(u[j] - u[k]).sum()
    np.fill_diagonal(squares, 0.0)
    return np.where(squares > smallest, squares, 0.0)


def _signs(units: int, replicates: int, exact: bool, rng: np.random.Generator) -> Iterator[FloatArray]:
    """Yield blocks of signs -1 and 1, shape (b, units): every pattern once, or ``replicates`` at random."""
    if exact:
        yield np.where(np.arange(2**units)[:, None] >> np.arange(units) & 1, 1.0, -1.0)
        return
    step = max(1, SIGN_CELLS // units)
    for start in range(0, replicates, step):
        b, width = min(step, replicates - start), -(-units // 64) * 8  # whole words: blocks do not change draws
        heads = np.unpackbits(np.frombuffer(rng.bytes(b * width), np.uint8).reshape(b, width), axis=1, count=units)
        yield (2 * heads.view(np.int8) - np.int8(1)).astype(np.float64)


def _divide(top: FloatArray | float, root: FloatArray) -> FloatArray:
    """Return top / root, 0 where root is."""
    return np.divide(top, root, out=np.zeros_like(root), where=root > 0)


def _quantile_position(level: float, replicates: int) -> int:
    """Return the place of the critical value among sorted draws: beyond it (count + 1) / (B + 1) <= 1 - level."""
    if not 0 < level < 1:
        raise UsageError(f"`level` must lie between 0 and 1, got {level!r}")
    least = int(np.ceil(10 / (1 - level) - 1e-9))
    if replicates < least:
        raise UsageError(
            f"`replicates` must be at least 10 / (1 - level) = {least}, got {replicates}",
            hint="take more draws or a lower level: the critical value rests on the few largest draws",
        )
    return int(np.ceil((replicates + 1) * level - 1e-9)) - 1


def _labels(cluster: Any, n: int) -> IntArray:
    labels = np.asarray(cluster)
    if labels.shape != (n,) or labels.dtype.kind not in "iu":
        raise UsageError(f"`cluster` must hold {n} whole numbers, one a row, got {labels.dtype} of {labels.shape}")
    return labels.astype(np.int64)
