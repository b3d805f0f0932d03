"""Weights under constraints against the same programmes stated in cvxpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from benchwright._check import FloatArray
from constrained_games import bounds, constraints, game, matrices, model_of, solved

pytestmark = pytest.mark.libraries
MIXTURES: dict[str, tuple[str, ...]] = {
    "non-negative": (),
    "caps": ("max_share",),
    "equal within groups": ("equal_within",),
    "fixed shares": ("fixed_shares",),
    "all": ("max_share", "equal_within", "fixed_shares"),
}


def stated(data: dict[str, Any], r: float, asked: dict[str, Any]) -> tuple[float, FloatArray]:
    """The greatest surplus and its weights, by cvxpy."""
    import cvxpy as cp

    goal, H = matrices(data, r)
    m = goal.size
    size, (lower, upper, codes) = float(np.abs(goal).max()), bounds(m, asked)
    v = cp.Variable(m)
    t = cp.sum(v)
    conditions = [v[i] == v[int(np.flatnonzero(codes == codes[i])[0])] for i in range(m)]
    if np.isfinite(upper).any():
        conditions.append(t >= 0)
    for i in range(m):
        conditions += [v[i] >= lower[i] * t] if np.isfinite(lower[i]) else []
        conditions += [v[i] <= upper[i] * t] if np.isfinite(upper[i]) else []
    value = cp.Problem(cp.Maximize((goal / size) @ v - cp.quad_form(v, cp.psd_wrap(H)) / 2), conditions).solve(
        solver=cp.CLARABEL, tol_gap_abs=1e-13, tol_gap_rel=1e-13, tol_feas=1e-13
    )
    return float(value) * size**2, np.asarray(v.value) * size


@pytest.mark.parametrize("seed", range(200))
def test_an_independent_modelling_tool_agrees(seed: int) -> None:
    kept = list(MIXTURES.values())[seed % len(MIXTURES)]
    rng = np.random.default_rng(seed)
    m, n, q = int(rng.integers(6, 25)), int(rng.integers(1, 5)), int(rng.integers(0, 5))
    data, r = game(seed, "random", m, n, q), (0.1, 1.0, 5.0)[seed % 3]
    asked = mixture(seed, m, kept)
    result = solved(model_of(data, r), **asked)
    best, v = stated(data, r, asked)
    assert result.surplus == pytest.approx(best, rel=1e-6, abs=1e-6 * result.first_best)
    np.testing.assert_allclose(result.weights, v, atol=1e-6 * max(float(np.abs(v).max()), 1.0), rtol=1e-6)


def mixture(seed: int, m: int, kept: tuple[str, ...]) -> dict[str, Any]:
    """A random feasible set of constraints of the kinds ``kept``; caps may stand without non-negativity."""
    tries = (constraints(1000 * seed + attempt, m) for attempt in range(1000))
    return next(
        asked
        for asked in tries
        if set(kept) == set(asked) - {"non_negative"} and (asked["non_negative"] or "max_share" in kept)
    )
