"""The aggregation game: which weight should each item of a benchmark carry?

A designer publishes weights v on m item scores, a lab spends effort a on n axes. With

    A (m, n)      technology, score per dollar      C (n, n)   curvature of effort cost, reward per dollar^2
    Sigma (m, m)  noise covariance, score^2         r >= 0     the lab's risk aversion, 1 / reward
    w (m,)        welfare per score                 v (m,)     weights, reward per score

the lab earns v'y on scores y = A a + noise and pays a'Ca/2, so that

    the lab's response     a*(v) = C^-1 A'v
    improvability          M = A C^-1 A'
    designer's surplus     S(v) = w'Mv - v'Mv/2 - r v'Sigma v/2
                                = w'Mw/2 - (w - v)'M(w - v)/2 - r v'Sigma v/2
                                = first-best - misdirection - risk
    optimum                v* = (M + r Sigma)^-1 M w, the shortest maximiser where M + r Sigma is singular

Welfare and reward are one unit. A leaderboard fixes only the direction u of v, so schemes are compared at
their own best scale s:

    efficiency(u) = S(s u) / S(v*) = max(u'Mw, 0)^2 / (u'(M + r Sigma)u w'Mv*),    s = u'Mw / u'(M + r Sigma)u

Weights under ``Constraints`` maximise the same S. Both ways the answer is an ``OptimalWeights``, whose ``status``,
``residual`` and ``gap_bound`` say what is proved.

Noise comes in factor form, Sigma = diag(d) + F F', and nothing of size m x m is formed.

References
----------
Haupt, Hartenstein, Reuel, Kochenderfer, Koyejo, "Welfare, Improvability, and Variance", arXiv 2605.30916.
Holmstrom and Milgrom (1991), "Multitask Principal-Agent Analyses".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from benchwright._check import FloatArray, finite_array, non_negative
from benchwright.errors import UsageError
from benchwright.mechanism import _constrained as numbers
from benchwright.mechanism import _weights as kernel
from benchwright.mechanism import constrained
from benchwright.mechanism.at_most import solve_at_most
from benchwright.mechanism.constrained import Found
from benchwright.mechanism.constraints import Constraints, rules_for
from benchwright.mechanism.game import ItemAggregation, factors, seed_factor
from benchwright.mechanism.group_shares import solve_group_shares
from benchwright.mechanism.results import (
    NO_VALUE,
    NOT_CONVERGED,
    OPTIMAL,
    OptimalWeights,
    RiskSweep,
    SchemeResult,
    constrained_warnings,
    weight_warnings,
)

TOLERANCE = 1e-9

__all__ = ["ItemAggregation", "evaluate_scheme", "factors", "optimal_weights", "risk_sweep", "seed_factor"]


def optimal_weights(
    model: ItemAggregation,
    constraints: Constraints | None = None,
    *,
    rank_tolerance: float = kernel.RANK_TOLERANCE,
    tolerance: float = TOLERANCE,
    optimum: OptimalWeights | None = None,
) -> OptimalWeights:
    """Weights that maximise the designer's surplus, in O(m (n + q)^2) time: v*, or the best under constraints.

    Without constraints they are v* = (M + r Sigma)^-1 M w; each Newton step under constraints costs about as much.

    Parameters
    ----------
    model : ItemAggregation
    constraints : Constraints, optional
    rank_tolerance : float in (0, 1)
        Parts of M + r Sigma below this fraction of its size count as zero. There the shortest maximiser is
        returned and ``undetermined`` and ``warnings`` name the items it concerns. Plays no role under constraints.
    tolerance : float in (0, 1)
        ``residual`` up to which the status is "optimal".
    optimum : OptimalWeights, optional
        v* of ``model``: saves the unconstrained solve where it is known already.

    Raises
    ------
    UsageError
        For arguments that are not as above, and for constraints that only v = 0 meets: two that clash are named.

    Examples
    --------
    >>> twins = ItemAggregation([[1.0], [1.0]], [0.5, 0.5], risk_aversion=1, noise_factor=[[0.5**0.5]] * 2)
    >>> result = optimal_weights(twins)
    >>> result.weights.round(6), result.undetermined
    (array([0.333333, 0.333333]), (0, 1))
    >>> print(result.warnings[0])
    the weight of item 0, item 1 is not determined: only their sum, 0.666667, is fixed; ...

    >>> model = ItemAggregation([[1.0], [1.0]], [1.0, 1.0], risk_aversion=1, noise_variance=[1.0, 3.0])
    >>> optimal_weights(model).shares
    array([0.75, 0.25])
    >>> capped = optimal_weights(model, Constraints(max_share=0.6))
    >>> capped.shares.round(6), round(capped.efficiency, 6)
    (array([0.6, 0.4]), 0.951087)
    """
    for name, value in {"rank_tolerance": rank_tolerance, "tolerance": tolerance}.items():
        if not 0 < value < 1:
            raise UsageError(f"`{name}` must lie between 0 and 1, got {value}")
    x, r = factors(model), model.risk_aversion
    if constraints is not None:
        return _constrained_weights(model, x, constraints, tolerance, optimum)
    solution = kernel.solve(x, r, rank_tolerance)
    v, goal = solution.weights, x.half.T @ solution.target
    residual = kernel.relative_residual(x, r, v)
    status = OPTIMAL if residual <= tolerance else NOT_CONVERGED
    found = Found(
        weights=v,
        status=status if goal.any() else NO_VALUE,
        method=solution.method,
        residual=residual,
        undetermined=tuple(solution.undetermined.tolist()),
    )
    result = replace(
        _result(model, x, found, goal, tolerance),
        condition_bound=solution.condition_bound,
        rank_tolerance=rank_tolerance,
        noise_rank=kernel.noise_rank(x, rank_tolerance),
    )
    return replace(result, warnings=tuple(weight_warnings(result, x, solution)))


def _constrained_weights(
    model: ItemAggregation,
    x: kernel.Factors,
    constraints: Constraints,
    tolerance: float,
    optimum: OptimalWeights | None,
) -> OptimalWeights:
    """The weights under ``constraints``, beside what ``optimum`` or a plain solve says of those without."""
    r, m = model.risk_aversion, x.w.size
    _check_optimum(optimum, m, r)
    goal = numbers.goal(x)
    best = numbers.unconstrained(x, r, goal, tolerance) if optimum is None else optimum.weights
    if constraints.at_most is not None:
        found = solve_at_most(x, r, constraints, goal=goal, best=best, tolerance=tolerance)
    elif constraints.share_within is not None:
        found = solve_group_shares(x, r, constraints, model.names, goal=goal, best=best, tolerance=tolerance)
    else:
        rules = rules_for(constraints, m, model.names)
        found = constrained.solve(x, r, rules, goal=goal, best=best, tolerance=tolerance)
    result = _result(model, x, found, goal, tolerance)
    if optimum is not None:
        known: dict[str, Any] = {"condition_bound": optimum.condition_bound, "noise_rank": optimum.noise_rank}
        result = replace(result, **known, rank_tolerance=optimum.rank_tolerance)
    result = replace(result, best_surplus=_parts(x, r, best, goal)[3])
    return replace(result, warnings=tuple(constrained_warnings(result)))


def weights_alone(model: ItemAggregation, asked: Mapping[str, Constraints]) -> dict[str, tuple[FloatArray, bool]]:
    """Weights (m,) without constraints, as "", and under each of ``asked``, and whether each met its tolerance.

    What ``optimal_weights`` gives without diagnostics and prices, for many draws of a model.
    """
    x, r = factors(model), model.risk_aversion
    best, goal = kernel.solve(x, r).weights, numbers.goal(x)
    found = {"": (best, kernel.relative_residual(x, r, best) <= TOLERANCE)}
    for name, rule in asked.items():
        if rule.at_most is not None or rule.share_within is not None:
            one = optimal_weights(model, rule)
            found[name] = one.weights, one.status != NOT_CONVERGED
            continue
        rules = rules_for(rule, x.w.size, model.names)
        solved = constrained.solve(x, r, rules, goal=goal, best=best, tolerance=TOLERANCE, priced=False)
        found[name] = solved.weights, solved.status != NOT_CONVERGED
    return found


def _check_optimum(optimum: OptimalWeights | None, m: int, r: float) -> None:
    """Raise where ``optimum`` is not v* of a model of ``m`` items at ``r``."""
    if optimum is None or (optimum.risk_aversion == r and optimum.weights.size == m and not optimum.binding):
        return
    if optimum.binding:
        raise UsageError(
            f"`optimum` must belong to the model without constraints, got one with {list(optimum.binding)}"
        )
    raise UsageError(
        f"`optimum` must belong to `model` ({m} items, r = {r:g}),"
        f" got {optimum.weights.size} items, r = {optimum.risk_aversion:g}"
    )


def _parts(x: kernel.Factors, r: float, v: FloatArray, goal: FloatArray) -> tuple[FloatArray, float, float, float]:
    """half'A'v (n,), misdirection, risk and surplus of weights ``v``, from ``goal`` = half'A'w."""
    n, pulled = goal.size, kernel.pull(x, v)
    met = x.half.T @ pulled[:n]
    risk = r * float((x.d * v) @ v + pulled[n:] @ pulled[n:]) / 2
    surplus = float(goal @ met) - float(met @ met) / 2 - risk
    return met, float(np.square(goal - met).sum()) / 2, risk, surplus


def _result(
    model: ItemAggregation, x: kernel.Factors, found: Found, goal: FloatArray, tolerance: float
) -> OptimalWeights:
    """What ``found`` is worth; nothing is said yet of the conditioning, nor warned of."""
    met, misdirection, risk, surplus = _parts(x, model.risk_aversion, found.weights, goal)
    return OptimalWeights(
        weights=found.weights,
        item_names=model.names,
        axis_names=model.axes,
        surplus=surplus,
        best_surplus=surplus,
        first_best=float(goal @ goal) / 2,
        misdirection=misdirection,
        risk=risk,
        effort=x.half @ met,
        undetermined=found.undetermined,
        condition_bound=np.nan,
        rank_tolerance=kernel.RANK_TOLERANCE,
        residual=found.residual,
        noise_rank=None,
        warnings=(),
        risk_aversion=model.risk_aversion,
        method=found.method,
        status=found.status,
        tolerance=tolerance,
        iterations=found.iterations,
        prices=found.prices,
        binding=found.binding,
        gap_bound=found.gap_bound,
    )


def evaluate_scheme(
    model: ItemAggregation, scheme: Any, *, name: str = "", optimum: OptimalWeights | None = None
) -> SchemeResult:
    """What the direction ``scheme`` (m,) is worth at its own best scale.

    Efficiency is 0 where u'Mw <= 0 and NaN where A'w = 0: then no incentive has value.
    ``optimum`` saves the solve where it is known already.

    Examples
    --------
    >>> model = ItemAggregation([[1.0], [1.0]], [1.0, 0.0], risk_aversion=1, noise_variance=[1.0, 3.0])
    >>> evaluate_scheme(model, [1.0, 1.0], name="uniform").efficiency
    0.875
    """
    x, r = factors(model), model.risk_aversion
    u = finite_array("scheme", scheme, ndim=1, length=x.w.size)
    _check_optimum(optimum, x.w.size, r)
    moments = kernel.accumulate(x)
    goal = x.half.T @ moments.target
    sums = kernel.scheme_sums(x, u, moments)
    scale = sums.best_scale(r)
    best = kernel.split_surplus(x, r, moments)[0] if optimum is None else optimum.surplus
    return SchemeResult(
        name=name,
        efficiency=sums.efficiency(r, best if goal.any() else 0.0),
        alignment=int(np.sign(sums.aligned)),
        best_scale=scale,
        surplus=sums.surplus(r),
        first_best=float(goal @ goal) / 2,
        misdirection=float(np.square(goal - scale * sums.axes).sum()) / 2,
        risk=r * scale * scale * sums.noise / 2,
        risk_aversion=r,
    )


def risk_sweep(model: ItemAggregation, risk_aversions: Any, schemes: Mapping[str, Any]) -> RiskSweep:
    """The optimum and each scheme's efficiency at every r of ``risk_aversions`` (R,).

    The items are read once, and once a scheme; each r then costs O((n + q)^3) where all noise stands above
    the rank tolerance. ``model.risk_aversion`` plays no role.

    Examples
    --------
    >>> model = ItemAggregation([[1.0], [1.0]], [1.0, 0.0], risk_aversion=1, noise_variance=[1.0, 3.0])
    >>> risk_sweep(model, [0, 1], {"uniform": [1, 1]}).efficiency["uniform"]
    array([1.   , 0.875])
    """
    levels = finite_array("risk_aversions", risk_aversions, ndim=1)
    grid = [non_negative("risk_aversions", r) for r in levels]
    x = factors(model)
    moments = kernel.accumulate(x)
    goal = x.half.T @ moments.target
    optima = np.array([kernel.split_surplus(x, r, moments) for r in grid]).reshape(-1, 3)
    efficiency, surplus, alignment = {}, {}, {}
    for name, scheme in schemes.items():
        u = finite_array(f"schemes[{name!r}]", scheme, ndim=1, length=x.w.size)
        sums = kernel.scheme_sums(x, u, moments)
        efficiency[name] = np.array([sums.efficiency(r, s) for r, s in zip(grid, optima[:, 0], strict=True)])
        surplus[name] = np.array([sums.surplus(r) for r in grid])
        alignment[name] = int(np.sign(sums.aligned))
    return RiskSweep(
        risk_aversions=levels,
        surplus=optima[:, 0],
        misdirection=optima[:, 1],
        risk=optima[:, 2],
        first_best=float(goal @ goal) / 2,
        efficiency=efficiency,
        scheme_surplus=surplus,
        alignment=alignment,
    )
