"""The cone of shares: its bounds, the projection on it, and the residual that proves an optimum over it.

    K = {v : t = 1'v >= 0, lower_i t <= v_i <= upper_i t}

Projection of D^-1 c in the metric D > 0. With theta the multiplier of t = 1'v, v_i = clip((c_i - theta) / D_i,
lower_i t, upper_i t); the best t has theta + sum of s_i (c_i - theta - D_i s_i t) = 0 over the items at a bound s_i t.
On one pattern of free and bound items both are linear, with P = sum_f 1 / D, g = 1 - sum s, Q = sum D s^2:

    P theta + g t = sum_f c / D,    g theta - Q t = -sum s c

repeated until the pattern stands, or else bracketed: given t, the sum of v falls in theta; given theta(t), so does the
derivative in t. v = 0 exactly where no share vector s in the bounds has c's > 0: one sort decides.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np

from benchwright._check import FloatArray
from benchwright.mechanism._weights import ROUNDING

PATTERNS, NESTED = 15, 200
PINNED = 1e-12  # bounds whose sum is this close to 1 leave one share vector
AT_BOUND = 1e-9  # relative to the greatest weight

NONE: FloatArray = np.zeros(0)  # no pattern yet


@dataclass(frozen=True, slots=True, eq=False)
class Cone:
    """Bounds (m,) on shares. Not ``coupled``: upper is inf, t plays no role; ``linear``: lower is -inf as well."""

    lower: FloatArray
    upper: FloatArray
    coupled: bool
    linear: bool = False

    @classmethod
    def of(cls, lower: FloatArray, upper: FloatArray) -> Cone:
        """The cone of bounds that some share vector meets; bounds that only one meets become that vector."""
        if upper.sum() <= 1 + PINNED:
            lower = upper = upper / upper.sum()
        elif lower.sum() >= 1 - PINNED:
            lower = upper = lower / lower.sum()
        coupled = bool(np.isfinite(upper).any())
        return cls(lower, upper, coupled, not coupled and bool(np.isneginf(lower).all()))


@dataclass(frozen=True, slots=True, eq=False)
class Point:
    """Weights v (m,), their theta and t; s (m,) is the share of an item at a bound, NaN where it is free."""

    v: FloatArray
    theta: float
    t: float
    s: FloatArray


def best_value(c: FloatArray, cone: Cone) -> tuple[float, float]:
    """max c's over share vectors s in the bounds, and c of the item at the margin, by one sort."""
    open_ = cone.lower < cone.upper
    base, left = float(cone.lower[~open_] @ c[~open_]), 1 - float(cone.lower[~open_].sum())
    if not open_.any():
        return base, base
    order = np.flatnonzero(open_)[np.argsort(-c[open_])]
    values, room = c[order], np.where(np.isinf(cone.upper), 2.0, cone.upper)[order]  # 2: more than is ever left
    taken = values.size - 1  # without floors all stand at their caps, the least takes the rest, of either sign
    if not np.isneginf(cone.lower[open_]).any():
        taken = min(int(np.searchsorted(np.cumsum(room), left * (1 - PINNED))), taken)
    rest = left - float(room[:taken].sum())
    return base + float(room[:taken] @ values[:taken]) + rest * float(values[taken]), float(values[taken])


@dataclass(frozen=True, slots=True, eq=False)
class Projection:
    """Maximise c'v + offset t - v'Dv / 2 over the cone, D > 0."""

    c: FloatArray
    D: FloatArray
    cone: Cone
    offset: float

    def solve(self, theta: float, t: float) -> Point:
        """The maximiser, from a guess of theta and t; t <= 0 is none."""
        if not self.cone.coupled:
            free = (self.c > 0) | np.isneginf(self.cone.lower)
            return Point(np.where(free, self.c / self.D, 0.0), 0.0, 0.0, np.where(free, np.nan, 0.0))
        s, t = NONE, t if t > 0 else max(float(np.abs(self.c / self.D).sum()), ROUNDING)
        start = t
        for _ in range(PATTERNS):
            previous, s = s, self.pattern(theta, t)
            if np.array_equal(s, previous, equal_nan=True):
                return self.point(theta, t, s)
            theta, t = self.balance(s, theta)
            if not t > 0:
                break
        if best_value(self.c, self.cone)[0] + self.offset <= 0:
            return Point(np.zeros(self.c.size), 0.0, 0.0, np.zeros(self.c.size))
        return self.nested(start)

    def pattern(self, theta: float, t: float) -> FloatArray:
        """The bound of each item that stands at one, NaN where an item is free."""
        z, lower, upper = (self.c - theta) / self.D, self.cone.lower, self.cone.upper
        s = np.where(z < lower * t, lower, np.where(z > upper * t, upper, np.nan))
        return np.where(lower == upper, lower, s)

    def point(self, theta: float, t: float, s: FloatArray) -> Point:
        return Point(np.where(np.isnan(s), (self.c - theta) / self.D, s * t), theta, t, s)

    def balance(self, s: FloatArray, theta: float) -> tuple[float, float]:
        """(theta, t) on one pattern; theta stays where the pattern leaves it open."""
        inverse, held, P, g, Q = coefficients(self.D, s)
        drawn, pulled = float(inverse @ self.c), float(held @ self.c) + self.offset
        if P == 0 and abs(g) <= PINNED:
            return theta, pulled / Q
        determinant = P * Q + g * g
        return (Q * drawn - g * pulled) / determinant, (g * drawn + P * pulled) / determinant

    def nested(self, t: float) -> Point:
        """By a bracketed Newton search for t, with theta(t) inside."""
        low, high, theta, previous = 0.0, inf, 0.0, NONE
        for _ in range(NESTED):
            theta = self.multiplier(t, theta)
            s = self.pattern(theta, t)
            if np.array_equal(s, previous, equal_nan=True):
                break
            held = np.nan_to_num(s)
            slope = self.offset + theta + float(held @ (self.c - theta - self.D * held * t))
            low, high = (t, high) if slope > 0 else (low, t)
            step = self.balance(s, theta)[1]
            if low < step < high:
                t, previous = step, s
            elif slope == 0 or high - low <= 4 * ROUNDING * high:
                break
            else:
                t, previous = 2 * low if high == inf else (low + high) / 2, NONE
        return self.point(theta, t, s)

    def multiplier(self, t: float, theta: float) -> float:
        """theta at which the weights between the bounds at t sum to t, by a bracketed Newton search."""
        low, high, step = -inf, inf, float(np.abs(self.c).max()) + float(self.D.max()) * t
        previous = NONE
        for _ in range(NESTED):
            s = self.pattern(theta, t)
            excess = float(self.point(theta, t, s).v.sum()) - t
            if excess == 0 or np.array_equal(s, previous, equal_nan=True):
                break
            low, high = (theta, high) if excess > 0 else (low, theta)
            rate, previous = coefficients(self.D, s)[2], s
            new = theta + excess / rate if rate > 0 else np.nan
            if not low < new < high:
                new, previous = (low + high) / 2, NONE
            if not np.isfinite(new):
                new, step = theta + float(np.copysign(step, excess)), 2 * step
            if new in (low, high):
                break
            theta = new
        return theta


def coefficients(D: FloatArray, s: FloatArray) -> tuple[FloatArray, FloatArray, float, float, float]:
    """1 / D of the free items, s of the others (0 elsewhere), P, g and Q."""
    free = np.isnan(s)
    inverse, held = np.where(free, 1 / D, 0.0), np.where(free, 0.0, s)
    return inverse, held, float(inverse.sum()), 1 - float(held.sum()), float(D @ (held * held))


def optimality_residual(lacking: FloatArray, goal: FloatArray, v: FloatArray, cone: Cone) -> float:
    """The largest of four relative residuals of weights ``v``, from ``lacking`` = Mw - Hv and ``goal`` = Mw alone.

    Stationarity |Mw - Hv - theta - multipliers| / |Mw|, theta that of the item at the margin of the best share vector
    for Mw - Hv; the largest violation of a bound over the largest weight; sum |multiplier x slack| / (w'Mv); scale,
    |v'(Mw - Hv)| / (w'Mv). At v = 0 it is what the best share vector gains over the largest entry of Mw.
    """
    if not v.any():
        gain = 0.0 if cone.linear else best_value(lacking, cone)[0]
        return gain / float(np.abs(goal).max()) if gain > 0 else 0.0
    theta = best_value(lacking, cone)[1] if cone.coupled else 0.0
    t, top, reward = float(v.sum()) * cone.coupled, float(np.abs(v).max()), abs(float(goal @ v))
    rest, low, high = lacking - theta, np.full(v.size, inf), np.full(v.size, inf)
    floored, capped = np.isfinite(cone.lower), np.isfinite(cone.upper)
    low[floored] = v[floored] - cone.lower[floored] * t
    high[capped] = cone.upper[capped] * t - v[capped]
    up = np.where(high <= AT_BOUND * top, np.maximum(rest, 0), 0)
    down = np.where(low <= AT_BOUND * top, np.minimum(rest, 0), 0)
    slack = np.where(up > 0, high, np.where(down < 0, low, 0.0))
    stationary, along = float(np.linalg.norm(rest - up - down) / np.linalg.norm(goal)), abs(float(lacking @ v)) / reward
    feasible, held = -min(float(low.min()), float(high.min()), t, 0.0) / top, float(np.abs((up + down) * slack).sum())
    return max(stationary, feasible, held / reward, along)
