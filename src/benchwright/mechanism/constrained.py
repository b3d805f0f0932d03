"""The greatest surplus under constraints on shares: what a model and its constraints make of the kernels' numbers.

How the optimum is found: ``_constrained``.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from benchwright._check import FloatArray
from benchwright.mechanism import _constrained as numbers
from benchwright.mechanism import _weights as kernel
from benchwright.mechanism._cone import AT_BOUND, best_value, optimality_residual
from benchwright.mechanism.constraints import BoolArray, Rules
from benchwright.mechanism.results import NO_HELP, NO_VALUE, NOT_CONVERGED, OPTIMAL


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """Weights (m,) under constraints, and what proves them; fields as in ``OptimalWeights``."""

    weights: FloatArray
    status: str
    method: str
    residual: float
    iterations: int = 0
    prices: dict[str, FloatArray] = field(default_factory=dict)
    binding: dict[str, BoolArray] = field(default_factory=dict)
    undetermined: tuple[int, ...] = ()
    gap_bound: float = 0.0


def solve(
    x: kernel.Factors,
    r: float,
    rules: Rules,
    *,
    goal: FloatArray,
    best: FloatArray,
    tolerance: float,
    priced: bool = True,
) -> Found:
    """Return the weights with the greatest surplus over the cone of ``rules``.

    ``goal`` is half'A'w, ``best`` (m,) the optimum without constraints: its dual is the first guess. Not ``priced``:
    weights, status and residual alone.
    """
    game = x if rules.codes is None else numbers.grouped(x, rules.codes, rules.sizes)
    problem = numbers.program(game, r, rules.cone, goal)
    reward = problem.push(problem.h)
    gain = float(np.abs(reward).max()) if rules.cone.linear else best_value(reward, rules.cone)[0]
    weights, nothing, method, iterations = np.zeros(x.w.size), idle(x, problem, gain), "none", 0
    if not nothing and rules.allow(best):
        method, weights = "unconstrained", np.maximum(best, 0.0) if rules.non_negative else best
    elif not nothing:
        guess = problem.h - problem.pull(rules.totals(best))
        found, iterations, proximal = numbers.solve(problem, guess, tolerance)
        method, weights = "dual Newton, proximal" if proximal else "dual Newton", rules.spread(found)
    rest, totals = numbers.lacking(x, r, weights, goal, kernel.pull(x, weights)), rules.totals(weights)
    slope = rules.means(rest)
    residual = optimality_residual(slope, reward, totals, rules.cone)
    status = nothing if nothing else OPTIMAL if residual <= tolerance else NOT_CONVERGED
    if not priced:
        return Found(weights=weights, status=status, method=method, residual=residual, iterations=iterations)
    prices, binding = _prices(rules, rest, slope, totals)
    return Found(
        weights=weights,
        status=status,
        method=method,
        residual=residual,
        iterations=iterations,
        prices=prices,
        binding=binding,
        undetermined=() if nothing else rules.members(numbers.undetermined(problem, totals, slope)),
    )


def idle(x: kernel.Factors, problem: numbers.Program, gain: float) -> str:
    """Why all weights are 0: ``gain``, that of the best share vector, may be rounding alone; else an empty string."""
    if not problem.h.any():
        return NO_VALUE
    rows = np.abs(x.A).max(axis=0) @ np.abs(x.half)
    floor = kernel.rounding(x.w.size) * float(np.linalg.norm(problem.h) * np.linalg.norm(rows))
    return NO_HELP if gain <= floor else ""


def _prices(
    rules: Rules, rest: FloatArray, slope: FloatArray, y: FloatArray
) -> tuple[dict[str, FloatArray], dict[str, BoolArray]]:
    """Prices and which items stand at each bound; ``rest`` is Mw - Hv (m,), ``slope`` its means over groups."""
    cone, t, m = rules.cone, float(y.sum()), rest.size
    codes = np.arange(m) if rules.codes is None else rules.codes
    pinned = cone.coupled and bool((cone.lower == cone.upper).all())
    theta = 0.0
    if cone.coupled:
        theta = float(slope.min()) if pinned and not rules.fixed.any() else best_value(slope, cone)[1]
    worth = (slope - theta) * t if y.any() and not (pinned and rules.fixed.any()) else np.full(y.size, np.nan)
    slack = AT_BOUND * float(np.abs(y).max())
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
