"""Bounds on the shares of groups of items: the greatest surplus by a quadratic-programming library.

How it is stated and judged: ``_programme``.
"""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np
from scipy import sparse

from benchwright._check import FloatArray
from benchwright.errors import UsageError
from benchwright.mechanism import _constrained as numbers
from benchwright.mechanism import _programme as library
from benchwright.mechanism import _weights as kernel
from benchwright.mechanism._cone import AT_BOUND
from benchwright.mechanism._programme import Groups, Multipliers
from benchwright.mechanism.constrained import Found, idle
from benchwright.mechanism.constraints import BoolArray, Constraints, GroupShares, Rules, rules_for
from benchwright.mechanism.results import NOT_CONVERGED, OPTIMAL

MOST_ITEMS = 20_000
TIGHT = 1e-12  # asked of the library, which stops earlier where it can do no better


def solve_group_shares(
    x: kernel.Factors,
    r: float,
    asked: Constraints,
    names: tuple[str, ...] | None,
    *,
    goal: FloatArray,
    best: FloatArray,
    tolerance: float,
) -> Found:
    """Return the best weights under ``asked`` with its bounds on groups; arguments as for ``constrained.solve``."""
    m = x.w.size
    if m > MOST_ITEMS:
        raise UsageError(f"`share_within` serves at most {MOST_ITEMS:,} items, got {m:,}")
    clarabel = _library()
    rules, groups = rules_for(asked, m, names), groups_for(asked, m)
    game = x if rules.codes is None else numbers.grouped(x, rules.codes, rules.sizes)
    problem = numbers.program(game, r, rules.cone, goal)
    totals = problem.push(problem.h)
    gain = library.greatest(totals, rules.cone, groups)
    if np.isnan(gain):
        raise _clash(asked, m, names)
    status = idle(x, problem, gain)
    y, at, iterations = np.zeros(rules.sizes.size), _none(rules, groups), 0
    if not status:
        y, at, iterations = _solved(clarabel, problem, groups, float(np.abs(best).max()))
    weights = rules.spread(y)
    rest = numbers.lacking(x, r, weights, goal, kernel.pull(x, weights))
    residual = max(gain, 0.0) / float(np.abs(totals).max()) if totals.any() else 0.0
    if not status:
        residual = library.residual(rules.means(rest), totals, y, rules.cone, groups, at)
    found = Found(
        weights=weights,
        status=status if status else OPTIMAL if residual <= tolerance else NOT_CONVERGED,
        method="none" if status else "clarabel",
        residual=residual,
        iterations=iterations,
    )
    found = _priced(found, rules, groups, asked, rest, y, at)
    if status:
        return found
    tied = sparse.csr_array(groups.W[_held(groups, y)].T)
    loose = numbers.undetermined(problem, y, at.upper - at.lower, theta=0.0, tied=tied)
    return replace(found, undetermined=rules.members(loose))


def _library() -> Any:
    try:
        return import_module("clarabel")
    except ImportError as error:
        hint = "pip install 'benchwright[qp]'"
        raise UsageError(f"`share_within` needs the library clarabel: {error}", hint=hint) from None


def _solved(
    clarabel: Any, problem: numbers.Program, groups: Groups, scale: float
) -> tuple[FloatArray, Multipliers, int]:
    """Weights, multipliers and iterations of the library; how good they are the residual says, not its status."""
    asked = library.statement(problem, groups, scale)
    settings, zeros = clarabel.DefaultSettings(), np.zeros(asked.rows.shape[0])
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = TIGHT
    cones = [clarabel.ZeroConeT(asked.ties), clarabel.NonnegativeConeT(zeros.size - asked.ties)]
    P, rows = sparse.csc_matrix(asked.P), sparse.csc_matrix(asked.rows)
    found = clarabel.DefaultSolver(P, asked.c, rows, zeros, cones, settings).solve()
    y, dual = np.asarray(found.x, dtype=np.float64), np.asarray(found.z, dtype=np.float64)
    return *library.answer(asked, problem.cone, y, dual), int(found.iterations)


def _bounds(asked: Constraints) -> GroupShares:
    if asked.share_within is None:
        raise UsageError("`share_within` must be given: there are no bounds on groups")
    return asked.share_within


def groups_for(asked: Constraints, m: int) -> Groups:
    """Return the bounds on groups of ``m`` items, over the totals of ``equal_within``."""
    shares = _bounds(asked)
    codes = np.asarray(shares.codes)
    if codes.size != m:
        raise UsageError(f"`share_within` must hold {m} group codes, one an item, got {codes.size}")
    W = sparse.csr_array((np.ones(m), (codes, np.arange(m))), shape=(len(shares.names), m))
    if asked.equal_within is not None:
        same = np.asarray(asked.equal_within)
        sizes = np.bincount(same)
        W = sparse.csr_array(W @ sparse.csr_array((1 / sizes[same], (np.arange(m), same)), shape=(m, sizes.size)))
    low = np.array([shares.low.get(name, -np.inf) for name in shares.names])
    high = np.array([shares.high.get(name, np.inf) for name in shares.names])
    return Groups(W, low, high)


def _none(rules: Rules, groups: Groups) -> Multipliers:
    m, g = rules.sizes.size, groups.low.size
    return Multipliers(np.zeros(m), np.zeros(m), np.zeros(g), np.zeros(g), 0.0)


def _clash(asked: Constraints, m: int, names: tuple[str, ...] | None) -> UsageError:
    """The error that names the constraints that no shares meet: those of which any one less would leave some."""
    blamed = []
    for name in [name for name in asked.asked if name != "share_within"]:
        try:
            less = asked.without(name)
        except UsageError:  # fixed shares would be left with nothing that bounds the others
            continue
        if not np.isnan(_gain(np.zeros(m), less, m, names)):
            blamed.append(f"`{name}`")
    others = ", ".join(blamed) if blamed else "shares that sum to 1"
    return UsageError(f"`share_within` and {others} clash: no shares meet them", hint="widen the bounds of the groups")


def _gain(c: FloatArray, asked: Constraints, m: int, names: tuple[str, ...] | None) -> float:
    rules = rules_for(asked, m, names)
    return library.greatest(rules.totals(c), rules.cone, groups_for(asked, m))


def _held(groups: Groups, y: FloatArray) -> BoolArray:
    """Which groups stand at a bound."""
    if not y.any():
        return np.zeros(groups.low.size, dtype=bool)
    sums, t, slack = groups.W @ y, float(y.sum()), AT_BOUND * float(np.abs(y).max())
    held: BoolArray = (sums <= groups.low * t + slack) | (sums >= groups.high * t - slack)
    return held


def _priced(
    found: Found, rules: Rules, groups: Groups, asked: Constraints, rest: FloatArray, y: FloatArray, at: Multipliers
) -> Found:
    """``found`` with its prices and what binds."""
    m, t = rest.size, float(y.sum())
    codes = np.arange(m) if rules.codes is None else rules.codes
    unit = t if y.any() else np.nan
    slack = AT_BOUND * float(np.abs(y).max())
    member, held = np.asarray(_bounds(asked).codes), _held(groups, y)
    prices = {"share_within": ((at.high - at.low) * unit)[member]}
    binding = {"share_within": held[member]}
    if rules.non_negative:
        prices["non_negative"] = (at.lower * unit)[codes]
        binding["non_negative"] = ((y <= slack) & ~rules.fixed & bool(y.any()))[codes]
    if rules.caps is not None:
        lowest = np.full(y.size, np.inf)
        np.minimum.at(lowest, codes, rules.caps)
        first = rules.caps == lowest[codes]
        part = rules.sizes / np.bincount(codes, first, y.size)
        full = (y >= rules.sizes * lowest * t - slack) & ~rules.fixed & bool(y.any())
        prices["max_share"] = np.where(first & ~rules.fixed[codes], (at.upper * part * unit)[codes], 0.0 * unit)
        binding["max_share"] = full[codes] & first
    if rules.fixed.any():
        prices["fixed_shares"] = np.where(rules.fixed, at.upper * unit, 0.0 * unit)[codes]
        binding["fixed_shares"] = rules.fixed[codes]
    if rules.codes is not None:
        pull = rest + (at.low - at.high)[member]
        prices["equal_within"] = (pull - rules.means(pull)[codes]) * unit
        binding["equal_within"] = (rules.sizes > 1)[codes]
    order = [name for name in asked.asked if name in prices]
    return replace(found, prices={n: prices[n] for n in order}, binding={n: binding[n] for n in order})
