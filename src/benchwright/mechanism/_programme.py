"""Numbers behind bounds on the shares of groups: the surplus as a quadratic programme for a library.

With the cone, B, D and h of ``_constrained`` and rows W (g, m) that sum the weights of g groups,

    maximise h'z - |z|^2 / 2 - v'Dv / 2   over v, z = B'v, t = 1'v >= 0
    lower_i t <= v_i <= upper_i t,        low t <= Wv <= high t

so that no m x m array is formed. ``residual`` judges weights and multipliers by themselves, whoever found them.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import linprog

from benchwright._check import FloatArray
from benchwright.mechanism._cone import AT_BOUND, Cone
from benchwright.mechanism._constrained import Program


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """Rows W (g, m) that sum weights, and bounds (g,) on the shares of the sums."""

    W: sparse.csr_array
    low: FloatArray
    high: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Multipliers:
    """Surplus per unit of weight: of lower and upper bounds (m,), fixed shares of either sign, low and high (g,), t."""

    lower: FloatArray
    upper: FloatArray
    low: FloatArray
    high: FloatArray
    total: float

    def slope(self, cone: Cone, groups: Groups) -> FloatArray:
        """What they add to the gradient of S (m,)."""
        lower, upper = _finite(cone.lower), _finite(cone.upper)
        constant = float(self.upper @ upper - self.lower @ lower) + self.total
        constant += float(self.high @ _finite(groups.high) - self.low @ _finite(groups.low))
        added: FloatArray = self.lower - self.upper + groups.W.T @ (self.low - self.high) + constant
        return added


def _finite(bounds: FloatArray) -> FloatArray:
    """``bounds`` with 0 where there is none: no multiplier stands there."""
    return np.where(np.isfinite(bounds), bounds, 0.0)


def greatest(c: FloatArray, cone: Cone, groups: Groups) -> float:
    """max c's over the share vectors that meet all bounds; inf where unbounded, NaN where there is none."""
    sides, rows = [], []
    for bounds, sign in ((groups.high, 1.0), (groups.low, -1.0)):
        kept = np.isfinite(bounds)
        rows.append(sign * groups.W[kept])
        sides.append(sign * bounds[kept])
    limits = np.column_stack([cone.lower, cone.upper])
    size = float(np.abs(c).max()) or 1.0
    answer = linprog(
        -c / size,
        A_ub=sparse.vstack(rows) if sum(side.size for side in sides) else None,
        b_ub=np.concatenate(sides) if sum(side.size for side in sides) else None,
        A_eq=np.ones((1, c.size)),
        b_eq=[1.0],
        bounds=limits,
    )
    return {0: -size * float(answer.fun or 0.0), 3: inf}.get(answer.status, np.nan)


@dataclass(frozen=True, slots=True, eq=False)
class Statement:
    """Minimise y'Py / 2 + c'y over y with ``rows`` y = 0 in the first ``ties`` rows and <= 0 in the others.

    y = [v / scale, z / unit, t / scale]; ``kinds`` (5,) of (m,) or (g,) bools say whose the rows after z and t are.
    """

    P: sparse.csc_array
    c: FloatArray
    rows: sparse.csc_array
    ties: int
    kinds: tuple[NDArray[np.bool_], ...]
    scale: float
    unit: float


def statement(problem: Program, groups: Groups, scale: float) -> Statement:
    """The programme in numbers near 1; ``scale`` is the size of a weight."""
    cone, unit = problem.cone, float(np.linalg.norm(problem.h))
    m, k, fixed = problem.D.size, problem.h.size, cone.lower == cone.upper
    B = np.hstack([problem.A, problem.F]) @ problem.root * (scale / unit)
    floored, capped = np.isfinite(cone.lower) & ~fixed, np.isfinite(cone.upper) & ~fixed
    least, most = np.isfinite(groups.low), np.isfinite(groups.high)
    item, array = sparse.eye_array(m, format="csr"), sparse.csr_array

    def block(weights: sparse.csr_array, share: FloatArray) -> sparse.csr_array:
        """Rows weights'v - share t."""
        return sparse.hstack([weights, array((share.size, k)), array(-share[:, None])])

    rows = [
        sparse.hstack([array(-B.T), sparse.eye_array(k), array((k, 1))]),
        block(array(np.ones((1, m))), np.ones(1)),
        block(item[fixed], cone.lower[fixed]),
        block(-item[floored], -cone.lower[floored]),
        block(item[capped], cone.upper[capped]),
        block(-groups.W[least], -groups.low[least]),
        block(groups.W[most], groups.high[most]),
        block(array((1, m)), np.ones(1)),
    ]
    return Statement(
        P=sparse.csc_array(sparse.diags_array(np.r_[problem.D * (scale / unit) ** 2, np.ones(k), 0.0])),
        c=np.r_[np.zeros(m), -problem.h / unit, 0.0],
        rows=sparse.csc_array(sparse.vstack(rows)),
        ties=k + 1 + int(fixed.sum()),
        kinds=(fixed, floored, capped, least, most),
        scale=scale,
        unit=unit,
    )


def answer(asked: Statement, cone: Cone, y: FloatArray, dual: FloatArray) -> tuple[FloatArray, Multipliers]:
    """Weights and multipliers from a solution ``y`` of ``asked`` and the multipliers of its rows."""
    m, k = cone.lower.size, y.size - cone.lower.size - 1
    v, dual = y[:m] * asked.scale, dual[k + 1 :] * (asked.unit**2 / asked.scale)
    parts = np.split(dual, np.cumsum([int(kind.sum()) for kind in asked.kinds]))
    placed = []
    for kind, part in zip(asked.kinds, parts, strict=False):
        placed.append(np.zeros(kind.size))
        placed[-1][kind] = part
    fixed, lower, upper, low, high = placed[0], *(np.maximum(part, 0.0) for part in placed[1:])
    at_zero = (cone.lower == 0) & (np.abs(v) <= AT_BOUND * float(np.abs(v).max()))
    return np.where(at_zero, 0.0, v), Multipliers(lower, upper + fixed, low, high, max(float(parts[-1][0]), 0.0))


def residual(
    lacking: FloatArray, goal: FloatArray, v: FloatArray, cone: Cone, groups: Groups, at: Multipliers
) -> float:
    """The largest of four relative residuals of ``v`` and its multipliers, from Mw - Hv and ``goal`` = Mw.

    Stationarity |Mw - Hv + multipliers| / |Mw|; the largest violation of a bound over the largest weight; sum
    |multiplier x slack| / (w'Mv); scale, |v'(Mw - Hv)| / (w'Mv). Multipliers of inequalities are >= 0 by construction.
    """
    t, top, reward = float(v.sum()), float(np.abs(v).max()), abs(float(goal @ v))
    sums = groups.W @ v
    slacks, held = [t], abs(at.total * t)
    fixed = cone.lower == cone.upper
    for bounds, values, multiplier, sign in (
        (cone.lower, v, at.lower, 1.0),
        (cone.upper, v, at.upper, -1.0),
        (groups.low, sums, at.low, 1.0),
        (groups.high, sums, at.high, -1.0),
    ):
        kept = np.isfinite(bounds)
        slack = sign * (values[kept] - bounds[kept] * t)
        slacks.append(float(slack.min(initial=inf)))
        held += float(np.abs(multiplier[kept] * slack).sum())
    gap = float(np.abs(v[fixed] - cone.lower[fixed] * t).max(initial=0.0))
    stationary = float(np.linalg.norm(lacking + at.slope(cone, groups)) / np.linalg.norm(goal))
    return max(stationary, max(-min(slacks), gap, 0.0) / top, held / reward, abs(float(lacking @ v)) / reward)
