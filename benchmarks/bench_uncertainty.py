"""Weights and schemes over 1,000 draws of 20,000 items, one BLAS thread: ``python benchmarks/bench_uncertainty.py``.

What a panel's weights take: slopes on three axes drawn from their residuals, the covariance over seeds drawn at its
shrinkage; in every draw the optimum, non-negative weights, one weight a task (100 of them) and one a family (two), and
the efficiency of these and of three further schemes at ten risk aversions. Targets: at most 30 s where the drawn factor
of noise has at most 8 columns, at most 90 s where it has at most 70 (a run that is not drawn has none). Timed over
``DRAWS`` draws and scaled to 1,000, making the draws included, in processor seconds of one core. Beside it, without
constraints, the plain twin: one dense solve of M + r Sigma a draw and dense efficiencies at m = 1,000, which must take
at least ``RATIO`` times as long. Exit status 1 where a target is missed.
"""

# ruff: noqa: E402  (the threads are set before numpy loads)
from __future__ import annotations

import os

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"):
    os.environ[variable] = "1"

import sys
from itertools import islice
from time import process_time

import numpy as np

from benchwright.estimating._resampling import SeedVariances, SlopeReplicates
from benchwright.mechanism.aggregation import ItemAggregation
from benchwright.mechanism.constraints import Constraints
from benchwright.mechanism.draws import GameDraws, covariance_draws
from benchwright.mechanism.uncertainty import weight_uncertainty

DRAWS = 96
LIMITS = {(8, 1): 30.0, (7, 10): 90.0}  # seconds, by seeds and checkpoints
ITEMS, AXES, MODELS, TASKS, DENSE_ITEMS, DENSE_DRAWS = 20_000, 3, 12, 100, 1_000, 40
CURVATURE, SHRINKAGE = 1e-7, 0.3
RATIO = 20.0


def game(m: int, seeds: int, checkpoints: int) -> tuple[ItemAggregation, GameDraws, dict[str, np.ndarray]]:
    """Return a random game, draws of its slopes and covariance, and three schemes."""
    rng = np.random.default_rng(20260801)
    A, w, d = rng.normal(1e-3, 1e-3, (m, AXES)), rng.normal(0.3, 1.0, m), rng.lognormal(-5, 0.5, m)
    x = np.linspace(0, 1, MODELS)
    errors = 3e-4 * rng.normal(size=(AXES, m, MODELS))
    fits = [SlopeReplicates(A[:, k].copy(), errors[k], x, rng) for k in range(AXES)]
    residual = rng.normal(size=(m, checkpoints, seeds)) * np.sqrt(d)[:, None, None]
    residual = (residual - residual.mean(axis=2, keepdims=True)).reshape(m, -1)
    groups = [np.arange(seeds) + seeds * t for t in range(checkpoints)]
    covariance = covariance_draws(SeedVariances(residual, groups, rng), SHRINKAGE)
    variance, factor = covariance()
    model = ItemAggregation(A, w, risk_aversion=1.0, noise_variance=variance, noise_factor=factor, curvature=CURVATURE)
    draws = GameDraws(
        technology=lambda: np.stack([draw() for draw in fits], axis=-1).transpose(1, 0, 2), covariance=covariance
    )
    return model, draws, {f"scheme {i}": rng.uniform(size=m) for i in range(3)}


def risk_aversions(model: ItemAggregation) -> np.ndarray:
    """Return nine r beside that of the model: two others, and seven decades about the r at which risk eats the gain."""
    w, F = model.welfare, np.asarray(model.noise_factor)
    gain = np.square(w @ model.technology).sum() / CURVATURE
    balanced = gain / (np.asarray(model.noise_variance) @ w**2 + np.square(w @ F).sum())
    return np.concatenate([[10.0, 100.0], balanced * 10.0 ** np.arange(-3, 4)])


def a_thousand(m: int, seeds: int, checkpoints: int, *, constrained: bool = True) -> float:
    """Return seconds of 1,000 draws, timed over ``DRAWS``."""
    model, drawn, schemes = game(m, seeds, checkpoints)
    tasks = np.arange(m) * TASKS // m
    rules = {
        "published": Constraints(),
        "by_task": Constraints(equal_within=tasks),
        "by_family": Constraints(equal_within=tasks % 2),
    }
    start = process_time()
    weight_uncertainty(
        model,
        drawn.of(model),
        constraints=rules if constrained else None,
        schemes=schemes,
        risk_aversions=risk_aversions(model),
        replicates=DRAWS,
    )
    return (process_time() - start) * 1000 / DRAWS


def dense(m: int, seeds: int, checkpoints: int) -> float:
    """Return seconds of 1,000 draws of the plain twin, timed over ``DENSE_DRAWS``."""
    model, drawn, schemes = game(m, seeds, checkpoints)
    u = np.stack(list(schemes.values()))
    start = process_time()
    for one in islice(drawn.of(model), DENSE_DRAWS):
        A, F = one.technology, np.asarray(one.noise_factor)
        M = A @ A.T / CURVATURE
        Sigma = np.diag(np.asarray(one.noise_variance)) + F @ F.T
        goal = M @ one.welfare
        for r in (1.0, *risk_aversions(model)):
            H = M + r * Sigma
            best = goal @ np.linalg.solve(H, goal)
            np.maximum(u @ goal, 0) ** 2 / (np.einsum("ij,jk,ik->i", u, H, u, optimize=True) * best)
    return (process_time() - start) * 1000 / DENSE_DRAWS


def main() -> int:
    """Print seconds of 1,000 draws and say which targets are met."""
    met = True
    print(f"{'':>44} {'seconds of 1,000 draws':>24}  limit")
    for (seeds, checkpoints), limit in LIMITS.items():
        took = a_thousand(ITEMS, seeds, checkpoints)
        met &= took <= limit
        print(f"{f'm = {ITEMS:,}, q = {seeds * checkpoints} runs of {seeds} seeds':>44} {took:>24.1f}  {limit:g}")
    small, plain = a_thousand(DENSE_ITEMS, 8, 1, constrained=False), dense(DENSE_ITEMS, 8, 1)
    met &= plain >= RATIO * small
    print(
        f"m = {DENSE_ITEMS:,}, no constraints: {small:.2f} s, dense twin {plain:.1f} s, "
        f"ratio {plain / small:.0f} (>= {RATIO:g})"
    )
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
