"""At most k items: the set of items with the greatest surplus, or one that is proved to be near it.

How the set is found and what bounds it: ``_at_most``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchwright._check import FloatArray
from benchwright.mechanism import _at_most as sets
from benchwright.mechanism import _constrained as numbers
from benchwright.mechanism import _weights as kernel
from benchwright.mechanism.constrained import Found, solve
from benchwright.mechanism.constraints import Constraints, rules_for
from benchwright.mechanism.results import OPTIMAL, WITHIN

EXACT_ITEMS = 2_000  # above it the relaxation is not branched
NODES, WORK = 20_000, 4e9  # nodes at most, and nodes times the multiplications of a Newton step
LEAST_NOISE = 1e-8  # r d_i over |row of B|^2: below it the relaxation has no bound to give
EXACT = 1e-9  # relative gap up to which a set counts as the best


def solve_at_most(
    x: kernel.Factors, r: float, asked: Constraints, *, goal: FloatArray, best: FloatArray, tolerance: float
) -> Found:
    """Return the best weights on at most ``asked.at_most`` items; arguments as for ``constrained.solve``."""
    m, k, loose = x.w.size, asked.at_most or x.w.size, replace(asked, at_most=None)
    rules = rules_for(loose, m, None)
    whole = solve(x, r, rules, goal=goal, best=best, tolerance=tolerance)
    if np.count_nonzero(whole.weights) <= k:
        return replace(whole, binding=whole.binding | {"at_most": np.zeros(m, dtype=bool)})
    problem = numbers.program(x, r, rules.cone, goal)
    floor = LEAST_NOISE * problem.row_squares()
    noisy = bool((floor <= problem.D).all())
    D = np.maximum(problem.D, floor)
    rows = np.hstack([problem.A, problem.F]) @ problem.root / np.sqrt(D)[:, None]
    nodes = int(min(NODES, max(1.0, WORK / (m * rows.shape[1] ** 2)))) if noisy and m <= EXACT_ITEMS else 1
    choice = sets.choose(sets.Search(rows, problem.h, not asked.non_negative), k, nodes=nodes)
    found = _on(x, r, loose, choice.items, goal, tolerance)
    surplus = _surplus(problem, found.weights)
    bound = choice.bound
    if not noisy:  # without the limit on their number no weights have more
        bound = _surplus(problem, whole.weights) if whole.status == OPTIMAL else float(goal @ goal) / 2
    gap = max(bound - surplus, 0.0)
    exact = gap <= EXACT * surplus
    return replace(
        found,
        status=found.status if found.status != OPTIMAL or exact else WITHIN,
        method="branch and bound" if choice.nodes > 1 else "relaxation and swaps",
        iterations=choice.nodes,
        gap_bound=gap,
    )


def _on(
    x: kernel.Factors, r: float, loose: Constraints, items: sets.IntArray, goal: FloatArray, tolerance: float
) -> Found:
    """The best weights on ``items`` alone, in the places of all."""
    part = kernel.Factors(x.A[items], x.F[items], x.d[items], x.w[items], x.half)
    best = numbers.unconstrained(part, r, goal, tolerance)
    found = solve(part, r, rules_for(loose, items.size, None), goal=goal, best=best, tolerance=tolerance)
    left_out = np.ones(x.w.size, dtype=bool)
    left_out[items] = False

    def spread(values: NDArray[Any]) -> NDArray[Any]:
        whole = np.zeros(x.w.size, dtype=values.dtype)
        whole[items] = values
        return whole

    return replace(
        found,
        weights=spread(found.weights),
        prices={name: spread(prices) for name, prices in found.prices.items()},
        binding={name: spread(held) for name, held in found.binding.items()} | {"at_most": left_out},
        undetermined=tuple(items[list(found.undetermined)].tolist()),
    )


def _surplus(problem: numbers.Program, v: FloatArray) -> float:
    """S(v)."""
    pulled = problem.pull(v)
    return float(problem.h @ pulled) - float(pulled @ pulled + (problem.D * v) @ v) / 2
