"""How sure weights and schemes are: the game is solved for draws of what it rests on.

Each draw is a game of the same items that the data allow (``draws``). In each the optimum is solved anew, and every
scheme, the weights of the point estimate among them, is judged against the optimum of that draw. Intervals run from
the k-th smallest to the k-th largest of B draws, k = (B + 1)(1 - level) / 2. Those of shares are over the draws in
which some weights help, those of efficiencies over the draws in which some incentive has value (A'w is not 0), with k
of their number; there is none where that k is below 1. They cover what the draws vary and nothing else: not what was
chosen (prices, neutral point, curvature), not errors that the source does not state.

What a scheme is told to be, at the level of the intervals:

    sign      "points the right way" or "points the wrong way" where fewer than k draws say otherwise of the sign of
              u'Mw (a draw with u'Mw = 0 says otherwise of both), else "sign not settled"
    standing  against the weights here, by the interval of the difference of efficiencies in one draw: "as good as the
              weights here" where the scheme points the right way and the lower end is above -margin, "worse" where the
              upper end is below 0, else "not settled"; these weights themselves are "the weights here"
Where no incentive has value at the point estimate, or in every draw, neither is judged.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from benchwright._check import FloatArray, finite_array, non_negative
from benchwright._json import json_safe
from benchwright._shown import Headline, Shown, ShownPart
from benchwright.errors import UsageError
from benchwright.estimating._resampling import tail_count
from benchwright.mechanism import _uncertainty as kernel
from benchwright.mechanism.aggregation import ItemAggregation, optimal_weights, risk_sweep, weights_alone
from benchwright.mechanism.constraints import Constraints
from benchwright.mechanism.results import NO_VALUE, OptimalWeights, shares_of

if TYPE_CHECKING:
    import polars as pl

OPTIMUM = "optimum"
MARGIN = 0.01  # of efficiency: a loss that nobody would rebuild a leaderboard for
RIGHT, WRONG, UNSETTLED = "points the right way", "points the wrong way", "sign not settled"
AS_GOOD, WORSE, OPEN = "as good as the weights here", "worse", "not settled"
ITSELF = "the weights here"
UNDEFINED = NO_VALUE
TIED = 1e-9  # of efficiency: below it two schemes differ by rounding


@dataclass(frozen=True, slots=True, eq=False)
class WeightSpread:
    """One kind of weights over the draws, an array (m,) for each statement on items.

    Attributes
    ----------
    weights, shares
        At the point estimate: reward / score, and shares (by the sum of absolute weights where the sum is not
        positive; NaN where all are 0).
    lo, hi, share_lo, share_hi
        Intervals of both, of shares over the draws that have them (1 - ``idle`` of all); NaN where these are too few.
    positive, kept
        Part of the draws in which the weight is above 0, and in which it is not 0.
    heavy, in_top
        Part in which the share exceeds 1 / m, and in which the item is among the ``top`` heaviest positive weights;
        items that tie for the last places share them.
    top
        How many these are: as asked for, or as there are positive weights.
    top_overlap
        Mean over draws of the part of the heaviest items that are so at the point estimate too; NaN without any.
    dropped_overlap
        Mean Jaccard index of the items without weight in a draw and at the point estimate; NaN where none ever lacks
        one.
    idle
        Part of the draws in which all weights are 0: no score helps.
    """

    weights: FloatArray
    shares: FloatArray
    lo: FloatArray
    hi: FloatArray
    share_lo: FloatArray
    share_hi: FloatArray
    positive: FloatArray
    kept: FloatArray
    heavy: FloatArray
    in_top: FloatArray
    top: int
    top_overlap: float
    dropped_overlap: float
    idle: float

    def to_dict(self) -> dict[str, Any]:
        """All fields, in types that JSON knows."""
        return {field.name: json_safe(getattr(self, field.name)) for field in fields(self)}


@dataclass(frozen=True, slots=True)
class SchemeUncertainty(Shown):
    """One scheme at one risk aversion over the draws.

    ``efficiency`` is that of the point estimate, ``efficiency_median`` of the draws. ``aligned`` is the part of the
    draws in which rewarding the score raises welfare (u'Mw > 0), the same at every r. ``difference`` is the efficiency
    less that of the reference in the same draw, ``as_good`` the part of the draws in which the score raises welfare and
    that is not negative.
    """

    name: str
    risk_aversion: float
    efficiency: float
    efficiency_lo: float
    efficiency_median: float
    efficiency_hi: float
    aligned: float
    sign: str
    reference: str
    difference_lo: float
    difference_hi: float
    as_good: float
    standing: str

    @property
    def verdict(self) -> str:
        """Sign and standing in one phrase; see the module for the rules."""
        return f"{self.sign}; {self.standing}" if self.sign != UNDEFINED else UNDEFINED

    def _told(self) -> Iterable[ShownPart]:
        yield (
            f"{self.name}: efficiency {self.efficiency:.4f} [{self.efficiency_lo:.4f}, {self.efficiency_hi:.4f}] "
            f"at r = {self.risk_aversion:g}; {self.verdict}"
        )

    def to_dict(self) -> dict[str, Any]:
        """All fields and the verdict, in types that JSON knows."""
        return {field.name: json_safe(getattr(self, field.name)) for field in fields(self)} | {"verdict": self.verdict}


@dataclass(frozen=True, slots=True, eq=False)
class WeightUncertainty(Shown):
    """Weights and schemes over draws of the game.

    Attributes
    ----------
    spreads
        By name: ``optimum`` (v* without constraints) and one entry for each set of constraints.
    schemes
        One entry for each scheme and risk aversion; the weights of ``spreads`` are judged as schemes too, unless
        all are 0 at the point estimate.
    replicates, level, margin
        Draws, level of every interval, and the loss of efficiency that counts as none.
    not_converged
        Draws in which a constrained optimum missed its tolerance, by name.
    """

    spreads: Mapping[str, WeightSpread]
    schemes: tuple[SchemeUncertainty, ...]
    replicates: int
    level: float
    margin: float
    reference: str
    risk_aversion: float
    not_converged: Mapping[str, int]

    def scheme(self, name: str, risk_aversion: float | None = None) -> SchemeUncertainty:
        """Return what is said of a scheme, at the risk aversion in force or at another that was asked for."""
        r = self.risk_aversion if risk_aversion is None else risk_aversion
        for one in self.schemes:
            if one.name == name and one.risk_aversion == r:
                return one
        raise UsageError(f"no scheme {name!r} at r = {r:g}", hint=f"there are {', '.join(self.names)}")

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the schemes."""
        return tuple(dict.fromkeys(one.name for one in self.schemes))

    def _told(self) -> Iterable[ShownPart]:
        yield Headline(f"Weights over {self.replicates} draws, intervals of level {self.level:g}")
        for name, spread in self.spreads.items():
            stay = f"{spread.top_overlap:.0%} of the {spread.top} heaviest items stay, " if spread.top else ""
            above, below = int((spread.lo > 0).sum()), int((spread.hi < 0).sum())
            yield f"  {name}: {stay}intervals of {above} weights lie above 0, of {below} below"
        yield from (f"  {self.scheme(name)}" for name in self.names)

    def to_frame(self) -> pl.DataFrame:
        """One row a scheme and risk aversion: the fields of ``SchemeUncertainty`` and ``verdict``."""
        import polars as pl

        return pl.DataFrame([one.to_dict() for one in self.schemes], infer_schema_length=None)

    def to_dict(self) -> dict[str, Any]:
        """All fields, in types that JSON knows."""
        record = {field.name: json_safe(getattr(self, field.name)) for field in fields(self)[2:]}
        record["spreads"] = {name: spread.to_dict() for name, spread in self.spreads.items()}
        return record | {"schemes": [one.to_dict() for one in self.schemes]}


def weight_uncertainty(
    model: ItemAggregation,
    draws: Iterable[ItemAggregation],
    *,
    constraints: Mapping[str, Constraints] | None = None,
    schemes: Mapping[str, Any] | None = None,
    risk_aversions: Any = (),
    reference: str = OPTIMUM,
    replicates: int = 400,
    level: float = 0.95,
    top: int = 20,
    margin: float = MARGIN,
) -> WeightUncertainty:
    """Solve and judge each draw of a game.

    Parameters
    ----------
    model : ItemAggregation
        The point estimate.
    draws : iterable of ItemAggregation
        Games of the same items at the same risk aversion; the first ``replicates`` are taken.
    constraints : mapping of Constraints, optional
        Weights under each are solved and judged in every draw too.
    schemes : mapping of (m,) directions, optional
        Judged beside the weights of the point estimate, which keep their names.
    risk_aversions : sequence of float
        Further r at which schemes are judged, beside ``model.risk_aversion``.
    reference : str
        The scheme that the others are compared with: ``optimum`` or a name of ``constraints``; ``optimum`` where the
        weights so named are all 0.
    replicates, level : int, float
        Draws, and level of every interval: 39 draws at least at 0.95.
    top : int
        Heaviest items whose membership is rated.
    margin : float
        Loss of efficiency that still counts as "as good".

    Raises
    ------
    UsageError
        Too few draws for the level, a draw of other items or another risk aversion, a name that is used twice.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> def game(w):
    ...     return ItemAggregation([[1.0], [1.0]], w, risk_aversion=1, noise_variance=[1.0, 1.0])
    >>> draws = (game([1.0 + rng.normal(0, 0.1), 0.5]) for _ in range(99))
    >>> found = weight_uncertainty(game([1.0, 0.5]), draws, schemes={"uniform": [1, 1]}, replicates=99)
    >>> print(found.scheme("uniform"))
    uniform: efficiency 1.0000 [1.0000, 1.0000] at r = 1; points the right way; as good as the weights here
    """
    asked = {} if constraints is None else dict(constraints)
    given = {} if schemes is None else dict(schemes)
    m, k = model.welfare.size, tail_count(replicates, level) if 0 < level < 1 else 0
    if k < 1:
        raise UsageError(f"`replicates` = {replicates} are too few for intervals of level {level:g}")
    if twice := sorted({OPTIMUM, *asked} & given.keys() | {OPTIMUM} & asked.keys()):
        raise UsageError(f"`schemes` and `constraints` must not use the name {twice[0]!r} twice")
    if reference not in {OPTIMUM, *asked}:
        raise UsageError(f"`reference` must be one of {', '.join([OPTIMUM, *asked])}, got {reference!r}")
    if top < 1:
        raise UsageError(f"`top` must be at least 1, got {top}")
    levels = [non_negative("risk_aversions", r) for r in finite_array("risk_aversions", risk_aversions, ndim=1)]
    grid = list(dict.fromkeys([model.risk_aversion, *levels]))
    point = _solved(model, asked)
    directions = {name: one.weights for name, one in point.items() if name == OPTIMUM or one.weights.any()} | given
    reference = reference if reference in directions else OPTIMUM
    spreads = {name: kernel.Spread(one.weights, k, top) for name, one in point.items()}
    efficiency = {name: np.empty((len(grid), replicates)) for name in directions}
    sign = {name: np.empty(replicates, dtype=int) for name in directions}
    missed = dict.fromkeys(point, 0)
    done = 0
    for game in islice(draws, replicates):
        if game.welfare.size != m or game.risk_aversion != model.risk_aversion:
            raise UsageError(f"draw {done} must have the {m} items and the risk aversion of `model`")
        for name, (weights, converged) in weights_alone(game, asked).items():
            spreads[name if name else OPTIMUM].add(weights, shares_of(weights))
            missed[name if name else OPTIMUM] += not converged
        judged = risk_sweep(game, grid, directions)
        for name in directions:
            efficiency[name][:, done], sign[name][done] = judged.efficiency[name], judged.alignment[name]
        done += 1
    if done < replicates:
        raise UsageError(f"`draws` must yield {replicates} games, got {done}")
    stated = risk_sweep(model, grid, directions)
    return WeightUncertainty(
        spreads={name: _spread(one, spreads[name], level) for name, one in point.items()},
        schemes=tuple(
            _judged(name, r, stated.efficiency[name][i], efficiency, i, sign[name], level, reference, margin)
            for name in directions
            for i, r in enumerate(grid)
        ),
        replicates=replicates,
        level=level,
        margin=margin,
        reference=reference,
        risk_aversion=model.risk_aversion,
        not_converged={name: n for name, n in missed.items() if n},
    )


def _solved(model: ItemAggregation, asked: Mapping[str, Constraints]) -> dict[str, OptimalWeights]:
    """Return v* and the weights under each set of constraints."""
    best = optimal_weights(model)
    return {OPTIMUM: best} | {name: optimal_weights(model, rule, optimum=best) for name, rule in asked.items()}


def _spread(point: OptimalWeights, seen: kernel.Spread, level: float) -> WeightSpread:
    seen.flush()
    n = seen.n
    lo, hi = seen.weight.ends()
    share_lo, share_hi = seen.share.ends(tail_count(n - seen.idle, level))
    return WeightSpread(
        weights=point.weights,
        shares=point.shares,
        lo=lo,
        hi=hi,
        share_lo=share_lo,
        share_hi=share_hi,
        positive=seen.positive / n,
        kept=seen.kept / n,
        heavy=seen.heavy / n,
        in_top=seen.in_top / n,
        top=seen.top,
        top_overlap=float(seen.overlap / n) if seen.top else np.nan,
        dropped_overlap=float(seen.same_dropped / seen.n_dropped) if seen.n_dropped else np.nan,
        idle=seen.idle / n,
    )


def _judged(
    name: str,
    r: float,
    stated: float,
    efficiency: Mapping[str, FloatArray],
    i: int,
    sign: NDArray[np.int64],
    level: float,
    reference: str,
    margin: float,
) -> SchemeUncertainty:
    """Read intervals and verdicts off the draws of one scheme at the i-th risk aversion."""
    mine, other = efficiency[name][i], efficiency[reference][i]
    known = ~np.isnan(mine)
    gap, k = (mine - other)[known], tail_count(int(known.sum()), level)
    low, median, high = kernel.tail_ends(mine[known], k)
    gap_low, _, gap_high = kernel.tail_ends(gap, k)
    right, wrong, enough = int((sign > 0).sum()), int((sign < 0).sum()), tail_count(sign.size, level)
    settled = RIGHT if sign.size - right < enough else WRONG if sign.size - wrong < enough else UNSETTLED
    standing = AS_GOOD if settled == RIGHT and gap_low > -margin else WORSE if gap_high < 0 else OPEN
    standing = ITSELF if name == reference else standing
    defined = bool(known.any()) and not np.isnan(stated)
    return SchemeUncertainty(
        name=name,
        risk_aversion=r,
        efficiency=float(stated),
        efficiency_lo=low,
        efficiency_median=median,
        efficiency_hi=high,
        aligned=right / sign.size,
        sign=settled if defined else UNDEFINED,
        reference=reference,
        difference_lo=gap_low,
        difference_hi=gap_high,
        as_good=float(((gap >= -TIED) & (sign[known] > 0)).sum()) / sign.size if defined else np.nan,
        standing=standing if defined else UNDEFINED,
    )
