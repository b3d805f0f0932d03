"""What the aggregation game answers: frozen results that print, tabulate and serialise themselves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from benchwright._check import FloatArray
from benchwright._json import json_safe
from benchwright._shown import Headline, Shown, ShownPart, ShownTable
from benchwright.mechanism._weights import IDLE_LEVERAGE, Factors, Solution

if TYPE_CHECKING:
    import polars as pl

ITEMS_SHOWN = 5
CONDITION_LIMIT = 1e10
GROUPED_AT_MOST = 200  # more undetermined items than this are not searched for identical copies
SAME_ROW = 1e-9
OPTIMAL, WITHIN, NOT_CONVERGED = "optimal", "within bound", "not converged"
NO_VALUE, NO_HELP = "no incentive has value", "no positive score helps"
ROUNDING = 1e-14  # relative to the greatest entry: below it a weight or effort has no sign


def item_name(names: Sequence[str] | None, position: int) -> str:
    """The user's name of an item, or ``item 7``."""
    return f"item {position}" if names is None else names[position]


def shares_of(weights: FloatArray) -> FloatArray:
    """Return v / sum v where that sum is positive, else v / sum |v|; NaN where all weights are 0."""
    total, absolute = float(weights.sum()), float(np.abs(weights).sum())
    if absolute == 0:
        return np.full(weights.size, np.nan)
    return weights / (total if total > ROUNDING * absolute else absolute)


@dataclass(frozen=True, slots=True, eq=False)
class OptimalWeights(Shown):
    """The weights that maximise the designer's surplus, and what to know before using them.

    Attributes
    ----------
    weights : (m,) reward per score
        The maximiser at its best scale; where several exist the shortest one, under constraints any of them.
    item_names : tuple of str, or None
        Names the user gave; ``names`` fills in ``item 0``, ``item 1``, ... where there are none.
    axis_names : tuple of str, or None
        Names of the effort axes, in the order of ``effort``.
    surplus, first_best, misdirection, risk : float, reward
        S(v), w'Mw/2, (w - v)'M(w - v)/2 and r v'Sigma v/2; surplus = first_best - misdirection - risk.
    best_surplus : float, reward
        S(v*) without constraints.
    effort : (n,) dollars
        The lab's response a*(v); negative entries are what the closed form allows, see
        ``negative_effort_axes``.
    undetermined : tuple of int
        Positions of items whose weight is not fixed by the optimum; under constraints, items without noise whose
        weights may move together without a loss of surplus.
    condition_bound : float
        Upper bound on the ratio of the extreme non-zero eigenvalues of M + r Sigma. Under constraints that of the
        ``optimum`` passed, else NaN.
    residual : float
        ||H v - M w|| / ||M w|| recomputed from the definition; under constraints the largest relative residual of
        the optimality conditions.
    noise_rank : int, or None
        Rank of Sigma. Under constraints that of the ``optimum`` passed, else None.
    status : str
        "optimal"; "no positive score helps": no weights that meet the constraints have w'Mv > 0, all weights are 0;
        "no incentive has value": A'w = 0, all weights are 0; "not converged": ``residual`` is above ``tolerance``;
        "within bound": of weights on at most k items, not proved the best, but within ``gap_bound`` of it.
    method : str
        How the closed form was computed. Under constraints "unconstrained" where v* meets them, "dual Newton", "dual
        Newton, proximal" where items with little or no noise took part, "none" where all weights are 0;
        "clarabel" for share_within; for at_most "branch and bound", or "relaxation and swaps" without a branch.
    iterations : int
        Newton steps under constraints; for share_within the library's, for at_most the nodes of the search.
    prices : mapping of (m,) arrays, reward per share
        One array a constraint, 0 where it does not bind: the first-order gain in ``surplus`` per unit of share by
        which the item's bound moves, so 0.01 times it for a percentage point. non_negative: v_i >= -x t in place of
        0. max_share: b_i + x. fixed_shares: f_i + x, of either sign. equal_within: the item alone may hold x more
        than the others of its group; they sum to 0 in a group. share_within: both bounds of the item's group move by
        x, stated at each of its items; of either sign. Where items of a group share a bound they move
        together: the gain is the sum of their prices. NaN where all weights are 0.
    binding : mapping of (m,) bool arrays
        Which items stand at the bound; for equal_within, which share their weight; for at_most, which are left out.
        Beside at_most all else, ``residual`` too, is said of the items that are not.
    gap_bound : float, reward
        No weights that meet the constraints have more than ``surplus`` + ``gap_bound``; 0 where ``residual`` says it
        all, at most 1e-9 of the surplus where the status is "optimal".
    """

    weights: FloatArray
    item_names: tuple[str, ...] | None
    axis_names: tuple[str, ...] | None
    surplus: float
    best_surplus: float
    first_best: float
    misdirection: float
    risk: float
    effort: FloatArray
    undetermined: tuple[int, ...]
    condition_bound: float
    rank_tolerance: float
    residual: float
    noise_rank: int | None
    warnings: tuple[str, ...]
    risk_aversion: float
    method: str
    status: str
    tolerance: float
    iterations: int
    prices: Mapping[str, FloatArray]
    binding: Mapping[str, NDArray[np.bool_]]
    gap_bound: float

    @property
    def names(self) -> tuple[str, ...]:
        """One name an item."""
        return tuple(item_name(self.item_names, i) for i in range(self.weights.size))

    @property
    def singular(self) -> bool:
        """Whether some items' weights are not determined."""
        return len(self.undetermined) > 0

    @property
    def shares(self) -> FloatArray:
        """v / sum v where that sum is positive, else v / sum |v|; NaN where all weights are 0."""
        return shares_of(self.weights)

    @property
    def efficiency(self) -> float:
        """Surplus over S(v*) without constraints, in [0, 1]; NaN where no incentive has value."""
        return max(0.0, min(self.surplus / self.best_surplus, 1.0)) if self.best_surplus > 0 else np.nan

    @property
    def negative(self) -> NDArray[np.bool_]:
        """Which items (m,) bool carry a negative weight, beyond rounding."""
        return self.weights < -ROUNDING * float(np.abs(self.weights).max())

    @property
    def negative_share(self) -> float:
        """Share of the items with a negative weight: a model that solves one loses score."""
        return float(self.negative.mean())

    @property
    def negative_effort_axes(self) -> tuple[int, ...]:
        """Axes on which v* asks for negative effort."""
        return tuple(int(k) for k in np.flatnonzero(self.effort < -ROUNDING * np.abs(self.effort).max()))

    def _told(self) -> Iterable[ShownPart]:
        largest = np.argsort(-np.abs(self.weights), kind="stable")[:ITEMS_SHOWN]
        shares = self.shares
        state = f"  negative weights {self.negative_share:.1%}, condition at most {self.condition_bound:.3g},"
        if self.binding:
            at = ", ".join(f"{name} on {int(held.sum())}" for name, held in self.binding.items())
            state = f"  efficiency {self.efficiency:.4f}, {self.status}, binding: {at},"
        gap = f", at most {self.gap_bound:.3g} below the best" if self.gap_bound else ""
        yield Headline(f"Optimal weights of {self.weights.size} items at risk aversion {self.risk_aversion:g}")
        yield (
            f"  surplus {self.surplus:.6g} = first-best {self.first_best:.6g}"
            f" - misdirection {self.misdirection:.6g} - risk {self.risk:.6g}{gap}"
        )
        yield f"{state} residual {self.residual:.1e} ({self.method})"
        rows = [(item_name(self.item_names, int(i)), f"{shares[i]:.4%}") for i in largest]
        yield ShownTable(("item", "share"), rows, self.weights.size - ITEMS_SHOWN)
        yield from (f"  ! {warning}" for warning in self.warnings)

    def to_frame(self) -> pl.DataFrame:
        """One row an item: item, weight, share, negative, undetermined."""
        import polars as pl

        undetermined = np.zeros(self.weights.size, dtype=bool)
        undetermined[list(self.undetermined)] = True
        return pl.DataFrame(
            {
                "item": self.names,
                "weight": self.weights,
                "share": self.shares,
                "negative": self.negative,
                "undetermined": undetermined,
            }
        )

    def to_dict(self) -> dict[str, Any]:
        """All fields, the shares and the names, in types that JSON knows."""
        record = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "item_names"}
        record |= {
            "names": self.names,
            "shares": self.shares,
            "efficiency": self.efficiency,
            "negative_share": self.negative_share,
            "singular": self.singular,
            "negative_effort_axes": self.negative_effort_axes,
        }
        return {key: json_safe(value) for key, value in record.items()}


@dataclass(frozen=True, slots=True)
class SchemeResult(Shown):
    """What a direction of weights is worth at its own best scale.

    ``efficiency`` is S(s u) / S(v*) in [0, 1], NaN where A'w = 0; ``alignment`` is the sign of u'Mw beyond
    rounding; ``best_scale`` s >= 0; ``surplus`` = ``first_best`` - ``misdirection`` - ``risk``, in reward.
    """

    name: str
    efficiency: float
    alignment: int
    best_scale: float
    surplus: float
    first_best: float
    misdirection: float
    risk: float
    risk_aversion: float

    @property
    def lowers_welfare(self) -> bool:
        """Whether rewarding this score at any positive scale lowers welfare."""
        return self.alignment < 0

    def _told(self) -> Iterable[ShownPart]:
        note = "; rewarding this score lowers welfare" if self.lowers_welfare else ""
        yield f"{self.name or 'scheme'}: efficiency {self.efficiency:.4f} at scale {self.best_scale:.4g}{note}"

    def to_dict(self) -> dict[str, Any]:
        """All fields and ``lowers_welfare``, in types that JSON knows."""
        record = {field.name: json_safe(getattr(self, field.name)) for field in fields(self)}
        return record | {"lowers_welfare": self.lowers_welfare}


@dataclass(frozen=True, slots=True)
class Calibration(Shown):
    """The curvature C = c0 I that makes the lab spend the stated budget.

    ``c0`` in reward per dollar^2, the ``rule`` that fixed it, and ``why`` in one sentence.
    """

    c0: float
    rule: str
    why: str

    def to_dict(self) -> dict[str, Any]:
        """All fields."""
        return {"c0": self.c0, "rule": self.rule, "why": self.why}


@dataclass(frozen=True, slots=True, eq=False)
class RiskSweep(Shown):
    """The optimum and each scheme's efficiency over a range of risk aversions.

    Arrays are (R,), one entry a risk aversion; ``efficiency``, ``scheme_surplus`` and ``alignment`` have one
    entry a scheme. Surpluses in reward units; alignment does not depend on r.
    """

    risk_aversions: FloatArray
    surplus: FloatArray
    misdirection: FloatArray
    risk: FloatArray
    first_best: float
    efficiency: dict[str, FloatArray]
    scheme_surplus: dict[str, FloatArray]
    alignment: dict[str, int]

    def _told(self) -> Iterable[ShownPart]:
        rows = [
            (f"{r:.4g}", f"{self.surplus[i]:.6g}", *(f"{column[i]:.4f}" for column in self.efficiency.values()))
            for i, r in enumerate(self.risk_aversions)
        ]
        yield ShownTable(("r", "S(v*)", *self.efficiency), rows)

    def to_frame(self) -> pl.DataFrame:
        """One row a risk aversion and scheme: r, scheme, efficiency, surplus, optimum_surplus, alignment."""
        import polars as pl

        schema = {
            "r": pl.Float64,
            "scheme": pl.String,
            "efficiency": pl.Float64,
            "surplus": pl.Float64,
            "optimum_surplus": pl.Float64,
            "alignment": pl.Int64,
        }
        rows = [
            (r, name, values[i], self.scheme_surplus[name][i], self.surplus[i], self.alignment[name])
            for name, values in self.efficiency.items()
            for i, r in enumerate(self.risk_aversions)
        ]
        return pl.DataFrame(rows, schema=schema, orient="row")

    def to_dict(self) -> dict[str, Any]:
        """All fields, in types that JSON knows."""
        return {field.name: json_safe(getattr(self, field.name)) for field in fields(self)}


def weight_warnings(result: OptimalWeights, x: Factors, solution: Solution) -> Iterator[str]:
    """One sentence for each thing to know before ``result`` is used."""
    m = x.w.size
    if not solution.target.any():
        yield "A'w = 0: no incentive has value, all weights are 0 and no scheme has an efficiency"
    yield from _undetermined(result, x, solution)
    if result.condition_bound > CONDITION_LIMIT:
        yield f"M + r Sigma may be ill-conditioned: condition number up to {result.condition_bound:.3g}"
    if (
        result.risk_aversion > 0
        and result.noise_rank is not None
        and result.noise_rank < m
        and (x.F.shape[1] or x.d.any())
    ):
        yield (
            f"rank(Sigma) = {result.noise_rank} < {m} items: some directions carry no measured noise, as with"
            " fewer seeds than items; consider shrinkage towards a diagonal (`noise_variance` > 0)"
        )
    yield from _signs(result)


def constrained_warnings(result: OptimalWeights) -> Iterator[str]:
    """The same for weights under constraints."""
    if result.status == NO_VALUE:
        yield "A'w = 0: no incentive has value, all weights are 0 and no scheme has an efficiency"
    elif result.status == NO_HELP:
        yield "no positive reward on a score that meets the constraints helps: all weights are 0"
    elif result.residual > result.tolerance:
        yield f"not proved optimal: residual {result.residual:.1e}, above the tolerance {result.tolerance:.1e}"
    if result.status == WITHIN:
        part = result.gap_bound / result.surplus
        yield f"other items may do better, by at most {result.gap_bound:.3g} in reward, {part:.2g} of the surplus"
    if result.undetermined:
        items = _listed(result.item_names, result.undetermined)
        yield f"the weight of {items} is not determined: they may move together without a loss of surplus"
    yield from _signs(result)


def _signs(result: OptimalWeights) -> Iterator[str]:
    if hedges := np.flatnonzero(result.negative).tolist():
        yield f"negative weight on {_listed(result.item_names, hedges)}: a model that solves one loses score"
    if axes := result.negative_effort_axes:
        called = [str(axis) if result.axis_names is None else result.axis_names[axis] for axis in axes]
        yield f"negative effort on axes {', '.join(called)}: the closed form allows it, a lab may not"


def _undetermined(result: OptimalWeights, x: Factors, solution: Solution) -> Iterator[str]:
    choice, names = "the smallest-norm choice is used", result.item_names
    idle = solution.leverage <= IDLE_LEVERAGE
    if idle.any():
        items = _listed(names, solution.undetermined[idle].tolist())
        yield f"the weight of {items} is not determined: no axis moves it, no seed shakes it; {choice}, 0"
    mixed, leverage = solution.undetermined[~idle], solution.leverage[~idle]
    rows = x.rows(mixed) if result.risk_aversion > 0 else x.A[mixed]
    while 0 < mixed.size <= GROUPED_AT_MOST:
        same = (np.abs(rows - rows[0]) <= SAME_ROW * np.abs(rows).max(axis=0)).all(axis=1)
        if abs(same.sum() * leverage[0] - 1) > SAME_ROW:  # their sum is fixed only if it lies in the range of H
            break
        items, total = _listed(names, mixed[same].tolist()), float(solution.weights[mixed[same]].sum())
        yield f"the weight of {items} is not determined: only their sum, {total:.6g}, is fixed; {choice}"
        mixed, leverage, rows = mixed[~same], leverage[~same], rows[~same]
    if mixed.size:
        items = _listed(names, mixed.tolist())
        yield f"the weight of {items} is not determined: only combinations of them are fixed; {choice}"


def _listed(names: Sequence[str] | None, items: Sequence[int]) -> str:
    shown = ", ".join(item_name(names, i) for i in items[:ITEMS_SHOWN])
    return shown if len(items) <= ITEMS_SHOWN else f"{shown} and {len(items) - ITEMS_SHOWN} more"
