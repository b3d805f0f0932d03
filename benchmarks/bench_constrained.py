"""Constrained weights on one BLAS thread: ``python benchmarks/bench_constrained.py``.

Targets: at m = 1e6, n = 10, q = 70 non-negative weights take at most 8 s with a relative residual of the optimality
conditions of at most 1e-8, and weights equal within 64 groups at most 1 s; the unconstrained solve is part of both. At
m = 2,000, n = 10, q = 5 non-negative weights come at least 500 times faster than from the dense quadratic programme
with the same optimum: the surplus to 1e-6, and the weights where the reference is exact. The reference is scipy's nnls
on the Cholesky factor of M + r Sigma and, where it is installed, clarabel, an interior-point method; the work on the
m x m matrix is part of both. Exit status 1 where one is missed. Caps, at most 20 items, bounds on groups, and seconds
of CPU beside those of the clock, are timed without a target.
"""

# ruff: noqa: E402  (the threads are set before numpy loads)
from __future__ import annotations

import os

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"):
    os.environ[variable] = "1"

import sys
from importlib.util import find_spec
from time import perf_counter, process_time

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import nnls

from benchwright.mechanism.aggregation import ItemAggregation, optimal_weights
from benchwright.mechanism.constraints import Constraints, GroupShares
from stopwatch import seconds

NON_NEGATIVE_LIMIT = 8.0
GROUPS_LIMIT = 1.0
RESIDUAL_LIMIT = 1e-8
FASTER = 500.0
AGREEMENT = 1e-6
ITEMS, DENSE_ITEMS, AXES, GROUPS, FEW = 1_000_000, 2_000, 10, 64, 20


def game(m: int, q: int, rng: np.random.Generator) -> ItemAggregation:
    """A random game in which about a sixth of the items have no place in a non-negative score."""
    A, F = rng.normal(0.3, 1.0, (m, AXES)), rng.normal(0.0, 0.1, (m, q))
    d, w = rng.uniform(0.005, 0.25, m), rng.normal(1.0, 2.0, m)
    return ItemAggregation(A, w, risk_aversion=1.0, noise_variance=d, noise_factor=F)


def matrices(model: ItemAggregation) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """M w and M + r Sigma."""
    A, F = model.technology, model.noise_factor
    M = A @ A.T
    return M @ model.welfare, M + np.diag(model.noise_variance) + F @ F.T


def by_nnls(model: ItemAggregation) -> NDArray[np.float64]:
    """Non-negative weights from the m x m matrix M + r Sigma = L L': min |L'v - L^-1 M w|, v >= 0."""
    goal, H = matrices(model)
    L = cholesky(H, lower=True)
    return nnls(L.T, solve_triangular(L, goal, lower=True), maxiter=10 * len(L))[0]


def by_clarabel(model: ItemAggregation) -> NDArray[np.float64]:
    """Non-negative weights from the m x m matrix M + r Sigma by an interior-point method."""
    import clarabel

    goal, H = matrices(model)
    settings, m = clarabel.DefaultSettings(), goal.size
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-12
    size = float(np.abs(goal).max())
    cones, bounds = [clarabel.NonnegativeConeT(m)], sparse.csc_matrix(-sparse.eye_array(m))
    upper = sparse.csc_matrix(np.triu(H))
    found = clarabel.DefaultSolver(upper, -goal / size, bounds, np.zeros(m), cones, settings).solve()
    return np.asarray(found.x) * size


def main() -> int:
    """Print times and say which targets are met."""
    rng = np.random.default_rng(20260731)
    model, codes = game(ITEMS, 70, rng), rng.integers(0, GROUPS, ITEMS)
    results, times = {}, {}
    for name, asked in {
        "non-negative": {},
        f"{GROUPS} groups": {"equal_within": codes},
        "capped at 2 / m": {"max_share": 2 / ITEMS},
    }.items():
        clock = process_time()
        results[name] = optimal_weights(model, Constraints(**asked))
        clock = process_time() - clock
        times[name] = seconds(lambda asked=asked: optimal_weights(model, Constraints(**asked)))
        idle = float((results[name].weights == 0).mean())
        print(
            f"m = {ITEMS}, {name:<16} {times[name]:>8.2f} s, CPU {clock:>6.2f} s, residual"
            f" {results[name].residual:.1e}, {results[name].iterations} steps, {idle:.1%} of the items at 0"
        )
    small = game(DENSE_ITEMS, 5, rng)
    ours = seconds(lambda: optimal_weights(small, Constraints()))
    result = optimal_weights(small, Constraints())
    goal, H = matrices(small)
    ratios, apart = [], []
    for dense in [by_nnls] if find_spec("clarabel") is None else [by_nnls, by_clarabel]:
        start = perf_counter()
        v = dense(small)
        ratios.append((perf_counter() - start) / ours)
        weights = float(np.linalg.norm(result.weights - v) / np.linalg.norm(v))
        surplus = abs(float(goal @ v - v @ H @ v / 2) / result.surplus - 1)
        apart += [surplus, weights] if dense is by_nnls else [surplus]
        print(f"{dense.__name__} over ours: {ratios[-1]:.0f}, surplus {surplus:.1e} apart, weights {weights:.1e}")
    few = optimal_weights(small, Constraints(at_most=FEW))
    time = seconds(lambda: optimal_weights(small, Constraints(at_most=FEW)))
    gap = few.gap_bound / few.surplus
    proved = f"{few.status}, relative gap {gap:.1e}, {few.iterations} nodes"
    print(f"at most {FEW} items, m = {DENSE_ITEMS}: {time:.2f} s, {proved}")
    if find_spec("clarabel") is not None:
        wide, of = game(20_000, 70, rng), rng.integers(0, 20, 20_000)
        asked = Constraints(share_within=GroupShares(of, low={0: 0.08}, high={1: 0.02}))
        start = perf_counter()
        bounded = optimal_weights(wide, asked)
        took = perf_counter() - start
        print(f"bounds on groups, m = 20000: {took:.1f} s, {bounded.status}, residual {bounded.residual:.1e}")
    print(f"non-negative, m = {ITEMS}: {times['non-negative']:.2f} s (at most {NON_NEGATIVE_LIMIT:g})")
    print(f"{GROUPS} groups, m = {ITEMS}: {times[f'{GROUPS} groups']:.2f} s (at most {GROUPS_LIMIT:g})")
    print(f"residual: {results['non-negative'].residual:.1e} (at most {RESIDUAL_LIMIT:g})")
    print(f"dense over ours: {min(ratios):.0f}, {1e3 * ours:.2f} ms (at least {FASTER:g}), apart {max(apart):.1e}")
    met = (
        times["non-negative"] <= NON_NEGATIVE_LIMIT,
        times[f"{GROUPS} groups"] <= GROUPS_LIMIT,
        results["non-negative"].residual <= RESIDUAL_LIMIT,
        min(ratios) >= FASTER,
        max(apart) <= AGREEMENT,
    )
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
