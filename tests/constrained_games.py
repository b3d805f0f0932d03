"""Random games under random constraints, and dense references for them."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import null_space
from scipy.optimize import linprog

from benchwright._check import FloatArray
from benchwright.mechanism.aggregation import ItemAggregation, optimal_weights
from benchwright.mechanism.constraints import Constraints
from benchwright.mechanism.results import OptimalWeights

KINDS = ("random", "half noiseless", "noiseless", "graded noise", "copies", "harmful")
RULES = ("non_negative", "max_share", "equal_within", "fixed_shares")

games = given(
    seed=st.integers(0, 2**32 - 1),
    kind=st.sampled_from(KINDS),
    m=st.integers(1, 60),
    n=st.integers(1, 4),
    q=st.integers(0, 5),
    r=st.sampled_from([0.0, 0.1, 1.0, 20.0]),
)
relaxed = settings(derandomize=True, deadline=None, max_examples=60)


def game(seed: int, kind: str, m: int, n: int, q: int) -> dict[str, Any]:
    """A random game; ``kind`` says what is special about it."""
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    A, F = rng.normal(size=(m, n)), 0.5 * rng.normal(size=(m, q))
    d, w = rng.uniform(0.01, 0.5, m), rng.normal(0.5, 1.0, m)
    if kind == "half noiseless":
        d[rng.random(m) < 0.5] = 0
    elif kind == "noiseless":
        d[:] = 0
    elif kind == "graded noise":
        d = 10.0 ** rng.uniform(-8, 0, m)
    elif kind == "copies":
        half = m // 2
        A[m - half :], F[m - half :] = A[:half], F[:half]
        d[rng.random(m) < 0.5] = 0
    elif kind == "harmful":
        A, w = np.abs(A), -np.abs(w) + 0.5
    root = rng.normal(size=(n, n))
    return {
        "technology": A,
        "welfare": w,
        "noise_variance": d,
        "noise_factor": F,
        "curvature": root @ root.T + np.eye(n),
    }


def constraints(seed: int, m: int) -> dict[str, Any]:
    """A random feasible set of constraints."""
    rng = np.random.default_rng([seed, 99])
    which = rng.random(4) < (0.8, 0.5, 0.3, 0.3)
    asked: dict[str, Any] = {"non_negative": bool(which[0])}
    codes = np.arange(m)
    if which[2]:
        asked["equal_within"] = codes = rng.integers(0, max(m // 2, 1), m)
    if which[1]:
        caps = rng.uniform(1.0, 4.0, m) / m
        lowest = np.full(m, np.inf)
        np.minimum.at(lowest, codes, caps)
        asked["max_share"] = 1.0001 * caps / min(float(lowest[codes].sum()), 1.0)
    if which[3] and m > 2 and (which[0] or which[1]):
        item = int(rng.integers(m))
        size = int((codes == codes[item]).sum())
        if size < m:
            asked["fixed_shares"] = {item: 0.3 / size}
            if "max_share" in asked:
                asked["max_share"] = np.maximum(asked["max_share"], max(0.3 / size, 0.9 / (m - size)))
    return asked


def model_of(data: dict[str, Any], r: float) -> ItemAggregation:
    return ItemAggregation(**data, risk_aversion=r)


def matrices(data: dict[str, Any], r: float) -> tuple[FloatArray, FloatArray]:
    """M w and H = M + r Sigma, dense."""
    A, F = data["technology"], data["noise_factor"]
    M = A @ np.linalg.solve(data["curvature"], A.T)
    return M @ data["welfare"], M + r * (np.diag(data["noise_variance"]) + F @ F.T)


def bounds(m: int, asked: dict[str, Any]) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Bounds on the share of each item, and its group."""
    lower = np.zeros(m) if asked.get("non_negative", True) else np.full(m, -np.inf)
    upper = np.broadcast_to(np.asarray(asked.get("max_share", np.inf), dtype=float), m).copy()
    codes = np.unique(asked.get("equal_within", np.arange(m)), return_inverse=True)[1]
    for item, share in asked.get("fixed_shares", {}).items():
        same = codes == codes[item]
        lower[same] = upper[same] = share
    return lower, upper, codes


def best_gain(e: FloatArray, asked: dict[str, Any]) -> float:
    """max e's over share vectors s that meet the constraints, by a linear programme."""
    lower, upper, codes = bounds(e.size, asked)
    G = np.eye(codes.max() + 1)[codes]
    low, high = np.full(G.shape[1], -np.inf), np.full(G.shape[1], np.inf)
    np.maximum.at(low, codes, lower)
    np.minimum.at(high, codes, upper)
    sides = [(None if np.isinf(a) else a, None if np.isinf(b) else b) for a, b in zip(low, high, strict=True)]
    answer = linprog(-G.T @ e, A_eq=G.sum(axis=0)[None], b_eq=[1.0], bounds=sides)
    return -float(answer.fun) if answer.status == 0 else np.inf


def enumerated(data: dict[str, Any], r: float, asked: dict[str, Any]) -> float:
    """The greatest surplus, over all patterns of groups at their bounds, each solved as a dense linear system."""
    goal, H = matrices(data, r)
    lower, upper, codes = bounds(goal.size, asked)
    coupled = bool(np.isfinite(upper).any())
    count, best = codes.max() + 1, 0.0
    G = np.eye(count)[codes]
    sums = G.sum(axis=0)
    low = np.array([lower[codes == g].max() for g in range(count)])
    high = np.array([upper[codes == g].min() for g in range(count)])
    choices = [{np.nan, a, b} - {np.inf, -np.inf} if a < b else {a} for a, b in zip(low, high, strict=True)]
    for pattern in product(*choices):
        rows = [np.eye(count)[g] - s * sums for g, s in enumerate(pattern) if not np.isnan(s)]
        basis = null_space(np.array(rows)) if rows else np.eye(count)
        T = G @ basis
        if T.shape[1] == 0:
            continue
        v = T @ (np.linalg.pinv(T.T @ H @ T, rcond=1e-11, hermitian=True) @ (T.T @ goal))
        t, slack = float(v.sum()), 1e-9 * float(np.abs(v).max(initial=0.0))
        with np.errstate(invalid="ignore"):
            over = np.where(np.isinf(upper), -np.inf, v - upper * t).max()
            under = np.where(np.isinf(lower), -np.inf, lower * t - v).max()
        if max(over, under, -t if coupled else -np.inf) <= slack:
            best = max(best, float(goal @ v - v @ H @ v / 2))
    return best


def solved(model: ItemAggregation, *, optimum: OptimalWeights | None = None, **asked: Any) -> OptimalWeights:
    """The optimum under the constraints ``asked``."""
    return optimal_weights(model, Constraints(**asked), optimum=optimum)
