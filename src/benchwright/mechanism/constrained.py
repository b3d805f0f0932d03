"""Weights a leaderboard can publish: the greatest surplus under bounds on shares and equal weights.

The designer maximises the surplus S(v) of ``aggregation`` over a cone, the weights v with total t = 1'v >= 0 and

    non_negative   v_i >= 0
    max_share      v_i <= b_i t
    equal_within   v_i = v_j for items of one group
    fixed_shares   v_i = f_i t

The conditions are homogeneous, so the best weights take their own best scale, their shares v / t meet the bounds, and
neither depends on the unit of reward. t >= 0 is asked for where a share is bounded or fixed: a share is a part of a
positive total. How the optimum is found: ``_constrained``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchwright._check import FloatArray, finite_array
from benchwright._json import json_safe
from benchwright.errors import UsageError
from benchwright.mechanism import _constrained as numbers
from benchwright.mechanism import _weights as kernel
from benchwright.mechanism.aggregation import ItemAggregation, factors, optimal_weights
from benchwright.mechanism.results import ROUNDING, OptimalWeights, item_name, shares_of

BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.intp]
SUM_SLACK = 1e-9  # by how much bounds may miss a sum of 1 and count as meeting it


@dataclass(frozen=True, slots=True, eq=False)
class ConstrainedWeights:
    """The weights with the greatest surplus that meet the constraints, and what each constraint costs.

    Attributes
    ----------
    weights : (m,) reward per score
        The maximiser at its best scale. Where several exist, one of them: see ``undetermined``.
    surplus, first_best, misdirection, risk : float, reward
        As in ``OptimalWeights``, at ``weights``.
    best_surplus : float, reward
        S(v*) without constraints.
    effort : (n,) dollars
        The lab's response.
    prices : dict of (m,) arrays, reward per share
        One array a constraint, 0 where it does not bind: the first-order gain in ``surplus`` per unit of share by
        which the item's bound moves, so 0.01 times it for a percentage point. non_negative: v_i >= -x t in place of
        0. max_share: b_i + x. fixed_shares: f_i + x, of either sign. equal_within: the item alone may hold x more
        than the others of its group; they sum to 0 in a group. Where items of a group share a bound they move
        together: the gain is the sum of their prices. NaN where all weights are 0.
    binding : dict of (m,) bool arrays
        Which items stand at the bound; for equal_within, which share their weight.
    undetermined : tuple of int
        Items without noise whose weights may move together without a loss of surplus.
    status : str
        "optimal"; "no positive score helps": no weights that meet the constraints have w'Mv > 0, all weights are 0;
        "no incentive has value": A'w = 0, all weights are 0; "not converged": ``residual`` is above the tolerance.
    residual : float
        Largest relative residual of the optimality conditions, recomputed from the definitions of M and Sigma.
    iterations : int
        Newton steps.
    method : str
        "unconstrained" where v* meets the constraints, "dual Newton", "dual Newton, proximal" where items with
        little or no noise took part, "none" where all weights are 0.
    """

    weights: FloatArray
    item_names: tuple[str, ...] | None
    surplus: float
    best_surplus: float
    first_best: float
    misdirection: float
    risk: float
    effort: FloatArray
    prices: dict[str, FloatArray]
    binding: dict[str, BoolArray]
    undetermined: tuple[int, ...]
    status: str
    residual: float
    tolerance: float
    iterations: int
    risk_aversion: float
    method: str

    @property
    def shares(self) -> FloatArray:
        """v / sum v where that sum is positive, else v / sum |v|; NaN where all weights are 0."""
        return shares_of(self.weights)

    @property
    def efficiency(self) -> float:
        """Surplus over S(v*) without constraints, in [0, 1]; NaN where no incentive has value."""
        return min(self.surplus / self.best_surplus, 1.0) if self.best_surplus > 0 else np.nan

    def __str__(self) -> str:
        at = ", ".join(f"{name} on {int(held.sum())}" for name, held in self.binding.items())
        lines = [
            f"Constrained weights of {self.weights.size} items: {self.status}",
            f"  surplus {self.surplus:.6g} of {self.best_surplus:.6g}, efficiency {self.efficiency:.4f}, binding: {at}",
            f"  residual {self.residual:.1e} after {self.iterations} steps ({self.method})",
        ]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """All fields, the shares, the names and the efficiency, in types that JSON knows."""
        record = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "item_names"}
        record["names"] = tuple(item_name(self.item_names, i) for i in range(self.weights.size))
        record |= {"shares": self.shares, "efficiency": self.efficiency}
        return {key: json_safe(value) for key, value in record.items()}


def constrained_weights(
    model: ItemAggregation,
    *,
    non_negative: bool = True,
    max_share: Any = None,
    equal_within: Any = None,
    fixed_shares: Mapping[int | str, float] | None = None,
    tolerance: float = 1e-9,
    optimum: OptimalWeights | None = None,
) -> ConstrainedWeights:
    """Weights with the greatest surplus under constraints on shares, in O(m (n + q)^2) time a Newton step.

    Parameters
    ----------
    model : ItemAggregation
    non_negative : bool
        v_i >= 0.
    max_share : float or (m,), optional
        Caps b >= 0 on the shares. Beside ``non_negative`` a cap >= 1 changes nothing.
    equal_within : (m,) group codes, optional
        Items with one code carry one weight.
    fixed_shares : mapping from item position or name to share, optional
        In a group of ``equal_within`` one item's share fixes those of all. Needs ``non_negative`` or ``max_share``.
    tolerance : float in (0, 1)
        Relative residual of the optimality conditions up to which the status is "optimal".
    optimum : OptimalWeights, optional
        Saves the unconstrained solve where it is known already.

    Raises
    ------
    UsageError
        For arguments that are not as above, and for constraints that only v = 0 meets: two that clash are named.

    Examples
    --------
    >>> model = ItemAggregation([[1.0], [1.0]], [1.0, 1.0], risk_aversion=1, noise_variance=[1.0, 3.0])
    >>> constrained_weights(model).shares
    array([0.75, 0.25])
    >>> capped = constrained_weights(model, max_share=0.6)
    >>> capped.shares.round(6), round(capped.efficiency, 6)
    (array([0.6, 0.4]), 0.951087)
    """
    if not 0 < tolerance < 1:
        raise UsageError(f"`tolerance` must lie between 0 and 1, got {tolerance}")
    x, r, m = factors(model), model.risk_aversion, model.welfare.size
    if optimum is not None and (optimum.risk_aversion != r or optimum.weights.size != m):
        raise UsageError(f"`optimum` must belong to `model` ({m} items, r = {r:g})")
    rules = _rules(model, non_negative, max_share, equal_within, fixed_shares)
    goal = numbers.goal(x)
    best = numbers.unconstrained(x, r, goal, tolerance) if optimum is None else optimum.weights
    best_pulled = kernel.pull(x, best)
    game = x if rules.codes is None else numbers.grouped(x, rules.codes, rules.sizes)
    problem = numbers.program(game, r, rules.cone, goal)
    weights, status, method, iterations = np.zeros(m), _idle(x, problem), "none", 0
    if not status and rules.allow(best):
        method, weights = "unconstrained", np.maximum(best, 0.0) if non_negative else best
    elif not status:
        start = problem.h - problem.root.T @ best_pulled[: problem.h.size]
        found, iterations, proximal = numbers.solve(problem, start, tolerance)
        method, weights = "dual Newton, proximal" if proximal else "dual Newton", rules.spread(found)
    pulled = kernel.pull(x, weights)
    rest, totals = numbers.lacking(x, r, weights, goal, pulled), rules.totals(weights)
    slope = rules.means(rest)
    residual = numbers.optimality_residual(slope, problem.push(problem.h), totals, rules.cone)
    prices, binding = _prices(rules, rest, slope, totals)
    met, risk, surplus = _parts(x, r, weights, goal, pulled)
    return ConstrainedWeights(
        weights=weights,
        item_names=model.names,
        surplus=surplus,
        best_surplus=_parts(x, r, best, goal, best_pulled)[2],
        first_best=float(goal @ goal) / 2,
        misdirection=float(np.square(goal - met).sum()) / 2,
        risk=risk,
        effort=x.half @ met,
        prices=prices,
        binding=binding,
        undetermined=rules.members(numbers.undetermined(problem, totals, slope)) if not status else (),
        status=status if status else "optimal" if residual <= tolerance else "not converged",
        residual=residual,
        tolerance=tolerance,
        iterations=iterations,
        risk_aversion=r,
        method=method,
    )


def price_of(
    model: ItemAggregation,
    *,
    non_negative: bool = True,
    max_share: Any = None,
    equal_within: Any = None,
    fixed_shares: Mapping[int | str, float] | None = None,
    tolerance: float = 1e-9,
    optimum: OptimalWeights | None = None,
) -> dict[str, float]:
    """Surplus that each constraint costs: what is gained, in reward, where it alone is dropped and the others stay.

    Arguments are those of ``constrained_weights``; one entry a constraint that is asked for. NaN where fixed shares
    would be left with nothing that keeps the weights from summing to 0.

    Examples
    --------
    >>> model = ItemAggregation([[1.0], [1.0]], [1.0, 1.0], risk_aversion=1, noise_variance=[1.0, 3.0])
    >>> {name: round(cost, 6) for name, cost in price_of(model, max_share=0.6).items()}
    {'non_negative': 0.0, 'max_share': 0.055901}
    """
    asked: dict[str, Any] = {"non_negative": non_negative, "max_share": max_share}
    asked |= {"equal_within": equal_within, "fixed_shares": fixed_shares}
    best = optimal_weights(model) if optimum is None else optimum

    def surplus(rules: dict[str, Any]) -> float:
        if rules["fixed_shares"] and not rules["non_negative"] and rules["max_share"] is None:
            return np.nan
        return constrained_weights(model, **rules, tolerance=tolerance, optimum=best).surplus

    bound = surplus(asked)
    off: dict[str, Any] = {name: False if name == "non_negative" else None for name in asked}
    names = [name for name, value in asked.items() if value is not None and value is not False]
    return {name: float(np.maximum(surplus(asked | {name: off[name]}) - bound, 0.0)) for name in names}


def _idle(x: kernel.Factors, problem: numbers.Program) -> str:
    """Why all weights are 0, or an empty string: no share vector earns more than rounding could have made."""
    if not problem.h.any():
        return "no incentive has value"
    totals, rows = problem.push(problem.h), np.abs(x.A).max(axis=0) @ np.abs(x.half)
    floor = kernel.rounding(x.w.size) * float(np.linalg.norm(problem.h) * np.linalg.norm(rows))
    gain = float(np.abs(totals).max()) if problem.cone.linear else numbers.best_value(totals, problem.cone)[0]
    return "no positive score helps" if gain <= floor else ""


def _parts(x: kernel.Factors, r: float, v: FloatArray, goal: FloatArray, pulled: FloatArray) -> tuple[Any, ...]:
    """half'A'v (n,), the risk r v'Sigma v / 2 and S(v), from ``pulled`` = [A'v; F'v]."""
    noise = pulled[goal.size :]
    met, risk = x.half.T @ pulled[: goal.size], r * float((x.d * v) @ v + noise @ noise) / 2
    return met, risk, float(goal @ met) - float(met @ met) / 2 - risk


@dataclass(frozen=True, slots=True, eq=False)
class _Rules:
    """The constraints on group totals y_g = size_g v_i; without groups each item is its own, and ``codes`` is None."""

    codes: IntArray | None
    sizes: FloatArray
    cone: numbers.Cone
    non_negative: bool
    caps: FloatArray | None
    fixed: BoolArray

    def totals(self, v: FloatArray) -> FloatArray:
        return v if self.codes is None else np.bincount(self.codes, v, self.sizes.size).astype(np.float64, copy=False)

    def means(self, v: FloatArray) -> FloatArray:
        return v if self.codes is None else self.totals(v) / self.sizes

    def spread(self, y: FloatArray) -> FloatArray:
        return y if self.codes is None else (y / self.sizes)[self.codes]

    def members(self, groups: BoolArray) -> tuple[int, ...]:
        return tuple(np.flatnonzero(groups if self.codes is None else groups[self.codes]).tolist())

    def allow(self, v: FloatArray) -> bool:
        """Whether ``v`` meets all constraints up to rounding."""
        y, slack, t = self.totals(v), ROUNDING * float(np.abs(v).max()), float(v.sum())
        if self.codes is not None and float(np.abs(v - self.spread(y)).max()) > slack:
            return False
        if not self.cone.coupled:
            return self.cone.linear or float(v.min()) >= -slack
        slack *= float(self.sizes.max())
        return t > 0 and bool((y >= self.cone.lower * t - slack).all() and (y <= self.cone.upper * t + slack).all())


def _rules(model: ItemAggregation, non_negative: bool, max_share: Any, equal_within: Any, fixed_shares: Any) -> _Rules:
    """Clean the constraints; raise where two of them clash."""
    m = model.welfare.size
    codes = None if equal_within is None else _codes(equal_within, m)
    sizes = np.ones(m) if codes is None else np.bincount(codes).astype(np.float64)
    groups = np.arange(m) if codes is None else codes
    caps, upper = None, np.full(sizes.size, np.inf)
    if max_share is not None:
        value = np.full(m, max_share, dtype=np.float64) if np.ndim(max_share) == 0 else max_share
        caps = finite_array("max_share", value, ndim=1, length=m)
        if caps[worst := int(caps.argmin())] < 0:
            raise UsageError(f"`max_share` must be >= 0, got {caps[worst]:g} at {item_name(model.names, worst)}")
        np.minimum.at(upper, groups, caps)
    if fixed_shares and not non_negative and max_share is None:
        raise UsageError("`fixed_shares` beside `non_negative=False` needs `max_share`: nothing else bounds the shares")
    share, source = _fixed(model, fixed_shares, groups, sizes.size)
    fixed = np.isfinite(share)
    for g in np.flatnonzero(fixed):
        name = item_name(model.names, int(source[g]))
        if non_negative and share[g] < 0:
            raise UsageError(f"`fixed_shares` and `non_negative` clash: {name} has the share {share[g]:g} < 0")
        if share[g] > upper[g]:
            raise UsageError(f"`fixed_shares` and `max_share` clash at {name}: {share[g]:g} is above {upper[g]:g}")
    total = float(share[fixed] @ sizes[fixed])
    if non_negative and total > 1 + SUM_SLACK:
        raise UsageError(f"`fixed_shares` and `non_negative` clash: the fixed shares sum to {total:g}, above 1")
    if fixed.all() and abs(total - 1) > SUM_SLACK:
        raise UsageError(f"`fixed_shares` must sum to 1 where all items are fixed, got {total:g}")
    room = total + float(upper[~fixed] @ sizes[~fixed])
    if room < 1 - SUM_SLACK:
        other = "`fixed_shares`" if fixed.any() else "`equal_within`" if codes is not None else "shares that sum to 1"
        raise UsageError(
            f"`max_share` and {other} clash: caps and fixed shares leave room for {room:g} of 1", hint="raise the caps"
        )
    if non_negative:
        upper[upper * sizes >= 1] = np.inf
    lower = np.where(fixed, share, 0.0 if non_negative else -np.inf) * sizes
    cone = numbers.Cone.of(lower, np.where(fixed, share, upper) * sizes)
    return _Rules(codes, sizes, cone, non_negative, caps, fixed)


def _codes(equal_within: Any, m: int) -> IntArray:
    """Groups numbered from 0, in the order of their codes."""
    given = np.asarray(equal_within)
    if given.shape != (m,):
        raise UsageError(f"`equal_within` must hold {m} group codes, one an item, got shape {given.shape}")
    if given.dtype.kind == "f" and not np.isfinite(given).all():
        raise UsageError("`equal_within` must be finite", hint="give an item without a group a code of its own")
    if given.dtype.kind in "iu" and int(given.min()) >= 0 and int(given.max()) < 4 * m:  # counted, not sorted
        return np.asarray((np.cumsum(np.bincount(given) > 0) - 1)[given], dtype=np.intp)
    try:
        return np.asarray(np.unique(given, return_inverse=True)[1], dtype=np.intp)
    except TypeError:
        raise UsageError("`equal_within` must hold codes of one kind, numbers or text") from None


def _fixed(model: ItemAggregation, fixed_shares: Any, groups: IntArray, size: int) -> tuple[FloatArray, IntArray]:
    """The fixed share of an item of each group, NaN where free, and the item that fixed it."""
    share, source = np.full(size, np.nan), np.zeros(size, dtype=np.intp)
    places = {} if model.names is None else {name: i for i, name in enumerate(model.names)}
    for key, value in ({} if fixed_shares is None else dict(fixed_shares)).items():
        item = places.get(key, -1) if isinstance(key, str) else int(key)
        if not 0 <= item < groups.size:
            raise UsageError(f"`fixed_shares` names {key!r}, which is no item")
        if not np.isfinite(value):
            raise UsageError(f"`fixed_shares` must be finite, got {value} for {item_name(model.names, item)}")
        g = groups[item]
        if np.isfinite(share[g]) and share[g] != value:
            two = " and ".join(item_name(model.names, int(i)) for i in (source[g], item))
            raise UsageError(f"`fixed_shares` and `equal_within` clash: {two} share a group, not {share[g]:g}")
        share[g], source[g] = value, item
    return share, source


def _prices(
    rules: _Rules, rest: FloatArray, slope: FloatArray, y: FloatArray
) -> tuple[dict[str, FloatArray], dict[str, BoolArray]]:
    """Prices and which items stand at each bound; ``rest`` is Mw - Hv (m,), ``slope`` its means over groups."""
    cone, t, m = rules.cone, float(y.sum()), rest.size
    codes = np.arange(m) if rules.codes is None else rules.codes
    pinned = cone.coupled and bool((cone.lower == cone.upper).all())
    theta = 0.0
    if cone.coupled:
        theta = float(slope.min()) if pinned and not rules.fixed.any() else numbers.best_value(slope, cone)[1]
    worth = (slope - theta) * t if y.any() and not (pinned and rules.fixed.any()) else np.full(y.size, np.nan)
    slack = numbers.AT_BOUND * float(np.abs(y).max())
    prices, binding = {}, {}
    if rules.non_negative:
        held = (y <= slack) & ~rules.fixed & bool(y.any())
        prices["non_negative"] = np.where(held, np.maximum(-worth, 0), worth * 0)[codes]
        binding["non_negative"] = held[codes]
    if rules.caps is not None:
        lowest = np.full(y.size, np.inf)
        np.minimum.at(lowest, codes, rules.caps)
        first = rules.caps == lowest[codes]
        held = (y >= rules.sizes * lowest * t - slack) & ~rules.fixed & (rules.sizes * lowest < 1) & bool(y.any())
        part = rules.sizes / np.bincount(codes, first, y.size)
        prices["max_share"] = np.where(held[codes] & first, (np.maximum(worth, 0) * part)[codes], (worth * 0)[codes])
        binding["max_share"] = held[codes] & first
    if rules.fixed.any():
        prices["fixed_shares"] = np.where(rules.fixed, worth, worth * 0)[codes]
        binding["fixed_shares"] = rules.fixed[codes]
    if rules.codes is not None:
        prices["equal_within"] = (rest - slope[codes]) * t if y.any() else np.full(m, np.nan)
        binding["equal_within"] = (rules.sizes > 1)[codes]
    return prices, binding
