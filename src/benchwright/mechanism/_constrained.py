"""Numbers behind constrained weights: the surplus maximised over a cone of shares, in factor form.

With B (m, k) and h (k,) as in ``_weights`` and D = r diag(d), the surplus is S(v) = h'B'v - |B'v|^2 / 2 - v'Dv / 2.
It is maximised over the cone

    K = {v : t = 1'v >= 0, lower_i t <= v_i <= upper_i t}

where lower is 0, -inf or a fixed share, upper a cap, inf or the same fixed share; t matters only where one is finite.

Dual. |B'v - h|^2 / 2 = max_p p'(h - B'v) - |p|^2 / 2, so the greatest surplus is the least value over p (k,) of

    |p - h|^2 / 2 + sup {(Bp)'v - v'Dv / 2 : v in K}

The inner maximiser v(p), the projection of D^-1 B p on K in the metric D, is unique and Lipschitz where D > 0. So the
dual is strongly convex with gradient p - h + B'v(p), piecewise linear: k unknowns however many items. Semismooth Newton
steps with a line search on it converge from every start and end after finitely many.

Projection of D^-1 c. With theta the multiplier of t = 1'v, v_i = clip((c_i - theta) / D_i, lower_i t, upper_i t); the
best t has theta + sum of s_i (c_i - theta - D_i s_i t) = 0 over the items at a bound s_i t. On one pattern of free and
bound items both are linear, with P = sum_f 1 / D, g = 1 - sum s, Q = sum D s^2:

    P theta + g t = sum_f c / D,    g theta - Q t = -sum s c

repeated until the pattern stands, or else bracketed: given t, the sum of v falls in theta; given theta(t), so does the
derivative in t. v = 0 exactly where no share vector s in the bounds has c's > 0: one sort decides. The derivative of
v(p) is D_f^-1 plus a correction of rank two: with a = B_f'D_f^-1 1 and b = B's the Newton matrix is

    I + B_f'D_f^-1 B_f + (P bb' - Q aa' + g (ab' + ba')) / (P Q + g^2)

Little or no noise. Where D_i < epsilon |b_i|^2, D_i is raised to it by a proximal term around a center, solved exactly
as above, and the center moves to the solution until the optimality conditions without the term hold: its fixed points
are the solutions, and the way there is linear at a rate that falls with epsilon. Small epsilon loses digits, so it goes
down and up again. In differences from the center, theta included, no digits are lost where c - theta cancels.
O(m k^2) time a Newton step, O(m k) memory.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from benchwright._check import FloatArray
from benchwright.mechanism import _weights as kernel
from benchwright.mechanism._weights import RANK_TOLERANCE, ROUNDING, Factors

BLOCK_ROWS = 4_096
PROXIMAL = 10.0 ** -np.array([2, 4, 6, 8, 10, 12, 10, 8, 6, 4])  # epsilon over |row of B|^2, in turn
CENTERS, NEWTON_STEPS, SHORTENINGS, PATTERNS, NESTED = 40, 200, 60, 15, 200
SAFETY = 1e-2  # the solver aims at this part of the tolerance, which an independent residual then checks
PINNED = 1e-12  # bounds whose sum is this close to 1 leave one share vector
AT_BOUND = 1e-9  # relative to the greatest weight

IntArray = NDArray[np.intp]
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
class Program:
    """Rows U = [A, F] of B = U root, D = r d, h = root'[A'w; 0], the cone."""

    A: FloatArray
    F: FloatArray
    D: FloatArray
    root: FloatArray
    h: FloatArray
    cone: Cone

    def push(self, p: FloatArray) -> FloatArray:
        """B p (m,)."""
        z, n = self.root @ p, self.A.shape[1]
        return self.A @ z[:n] + self.F @ z[n:]

    def pull(self, v: FloatArray) -> FloatArray:
        """B'v (k,)."""
        pulled: FloatArray = self.root.T @ np.concatenate([v @ self.A, v @ self.F])
        return pulled

    def gram(self, weights: FloatArray) -> FloatArray:
        """B' diag(weights) B (k, k) over the rows with a positive weight."""
        total = np.zeros_like(self.root)
        for start in range(0, weights.size, BLOCK_ROWS):
            scale = np.sqrt(weights[start : start + BLOCK_ROWS])[:, None]
            kept = slice(None) if scale.all() else np.flatnonzero(scale)
            A, F = self.A[start : start + BLOCK_ROWS][kept], self.F[start : start + BLOCK_ROWS][kept]
            rows = np.concatenate([A * scale[kept], F * scale[kept]], axis=1)
            total += rows.T @ rows
        product: FloatArray = self.root.T @ total @ self.root
        return product

    def row_squares(self) -> FloatArray:
        """Sum of squares of each row of B (m,), not below RANK_TOLERANCE of the size of M + r Sigma."""
        n, root = self.A.shape[1], self.root
        squares: FloatArray = np.square(self.A @ root[:n, :n]).sum(axis=1)
        squares += root[-1, -1] ** 2 * np.einsum("ij,ij->i", self.F, self.F)
        return np.maximum(squares, RANK_TOLERANCE * (float(squares.sum()) + float(self.D.max())))


@dataclass(frozen=True, slots=True, eq=False)
class Point:
    """Weights v (m,), their theta and t; s (m,) is the share of an item at a bound, NaN where it is free."""

    v: FloatArray
    theta: float
    t: float
    s: FloatArray


def program(x: Factors, r: float, cone: Cone, h: FloatArray) -> Program:
    """The programme of a game, or of its groups; F plays no role at r = 0."""
    F = x.F if r > 0 else x.F[:, :0]
    n, k = x.A.shape[1], x.A.shape[1] + F.shape[1]
    return Program(x.A, F, r * x.d, x.root(r)[:k, :k], np.concatenate([h[:n], np.zeros(k - n)]), cone)


def unconstrained(x: Factors, r: float, h: FloatArray, tolerance: float) -> FloatArray:
    """v* = pinv(M + r Sigma) M w: without bounds the dual is quadratic; ``_weights.solve`` where that loses digits."""
    if r * float(x.d.min()) > RANK_TOLERANCE * r * float(x.d.max()) and h.any():
        game = program(x, r, Cone(x.d, x.d, False), h)  # its cone plays no role
        gram = game.gram(1 / game.D)
        p = _scaled_solve(np.eye(game.h.size) + gram, game.h)
        v = game.push(p) / game.D
        off = game.h - game.pull(v) - p  # |B off|^2 <= max D off'gram off, |Bh|^2 >= min D h'gram h
        allowed = (SAFETY * tolerance) ** 2 * float(game.h @ gram @ game.h)
        if float(game.D.max() / game.D.min() * (off @ gram @ off)) <= allowed:
            return v
    return kernel.solve(x, r).weights


def lacking(x: Factors, r: float, v: FloatArray, goal: FloatArray, pulled: FloatArray) -> FloatArray:
    """Mw - (M + r Sigma) v (m,) from ``goal`` = half'A'w and ``pulled`` = [A'v; F'v]."""
    axes, noise = goal - x.half.T @ pulled[: goal.size], pulled[goal.size :]
    return x.A @ (x.half @ axes) - r * (x.d * v + x.F @ noise)


def goal(x: Factors) -> FloatArray:
    """half'A'w (n,), zero where rounding alone could have made A'w."""
    return x.half.T @ kernel.beyond_rounding(x.w @ x.A, np.sqrt(np.einsum("ij,ij->j", x.A, x.A)), x.w)


def grouped(x: Factors, codes: IntArray, sizes: FloatArray) -> Factors:
    """The game over group totals y_g = size_g v_i: means of the rows, d summed over size^2; w is left out."""
    members = sparse.csr_array((1 / sizes[codes], codes, np.arange(codes.size + 1))).T
    return Factors(members @ x.A, members @ x.F, (members @ x.d) / sizes, np.zeros(sizes.size), x.half)


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
        inverse, held, P, g, Q = _coefficients(self.D, s)
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
            rate, previous = _coefficients(self.D, s)[2], s
            new = theta + excess / rate if rate > 0 else np.nan
            if not low < new < high:
                new, previous = (low + high) / 2, NONE
            if not np.isfinite(new):
                new, step = theta + float(np.copysign(step, excess)), 2 * step
            if new in (low, high):
                break
            theta = new
        return theta


def _coefficients(D: FloatArray, s: FloatArray) -> tuple[FloatArray, FloatArray, float, float, float]:
    """1 / D of the free items, s of the others (0 elsewhere), P, g and Q."""
    free = np.isnan(s)
    inverse, held = np.where(free, 1 / D, 0.0), np.where(free, 0.0, s)
    return inverse, held, float(inverse.sum()), 1 - float(held.sum()), float(D @ (held * held))


def solve(problem: Program, start: FloatArray, tolerance: float) -> tuple[FloatArray, int, bool]:
    """The maximiser over the cone, the Newton steps to it, whether proximal terms helped; ``start`` guesses p."""
    D, squares, target = problem.D, problem.row_squares(), problem.push(problem.h)
    turn = 0 if problem.cone.coupled else 2
    proximal = bool((PROXIMAL[turn] * squares > D).any())
    center, rest = Point(np.zeros(D.size), 0.0, 0.0, np.zeros(D.size)), target
    move, best, least, steps, stalled = start - problem.h, center.v, inf, 0, 0
    for _ in range(CENTERS):
        raised = np.maximum(D, PROXIMAL[turn % len(PROXIMAL)] * squares)
        center, used = _center(problem, raised, center, rest, move)
        rest = problem.push(problem.h - problem.pull(center.v)) - D * center.v
        gap = _gap(center, rest, target, problem.cone)
        stalled = 0 if gap < least / 2 else stalled + 1
        if gap < least:
            best, least = center.v, gap
        move, steps, turn = np.zeros_like(start), steps + used, turn + 1
        if least <= SAFETY * tolerance or stalled == len(PROXIMAL):
            break
    return best, steps, proximal


def _gap(point: Point, rest: FloatArray, target: FloatArray, cone: Cone) -> float:
    """What ``rest`` = Mw - Hv leaves against the signs that the bounds allow, and along v, relative to Mw."""
    if (reward := float(target @ point.v)) <= 0:
        return inf
    left = rest - point.theta
    high, low = point.s == cone.upper, point.s == cone.lower
    left = np.where(high & low, 0.0, np.where(high, np.minimum(left, 0), np.where(low, np.maximum(left, 0), left)))
    return max(float(np.linalg.norm(left) / np.linalg.norm(target)), abs(float(rest @ point.v)) / reward)


def _center(problem: Program, D: FloatArray, center: Point, rest: FloatArray, move: FloatArray) -> tuple[Point, int]:
    """The maximiser of S(v) - (v - center)'(D - r d)(v - center) / 2, from a dual step; ``rest`` = Mw - Hv there."""
    rest, near = rest - center.theta, (0.0, center.t)

    def at(image: FloatArray, move: FloatArray) -> tuple[Point, float, FloatArray]:
        """The point of a dual step, with its theta as the difference to the center's, the dual and its gradient."""
        point = Projection(rest + D * center.v + image, D, problem.cone, center.theta).solve(*near)
        shift = point.v - center.v
        height = float(move @ move) / 2 + float((rest + image) @ shift) - float((D * shift) @ shift) / 2
        return point, height + center.theta * (point.t - center.t), move + problem.pull(shift)

    image, size, used = problem.push(move), float(np.linalg.norm(problem.h)), 0
    point, height, slope = at(image, move)
    while used < NEWTON_STEPS:
        used += 1
        direction = _newton(problem, D, point, slope)
        across, fall, length, s = problem.push(direction), float(slope @ direction), 1.0, point.s
        near = (point.theta, point.t) if point.t > 0 else near
        ceiling = height + 100 * ROUNDING * (abs(height) + size * size)
        for _ in range(SHORTENINGS):
            point, height, slope = at(image + length * across, move + length * direction)
            rise = float(slope @ direction)
            if rise <= 0 or height <= ceiling + 1e-4 * length * fall:
                break
            length *= min(max(fall / (fall - rise), 0.1), 0.9)
        move, image = move + length * direction, image + length * across
        settled = length == 1.0 and np.array_equal(s, point.s, equal_nan=True)
        if settled or float(np.linalg.norm(slope)) <= 4 * ROUNDING * (float(np.linalg.norm(move)) + size):
            break
    return replace(point, theta=center.theta + point.theta), used


def _newton(problem: Program, D: FloatArray, point: Point, slope: FloatArray) -> FloatArray:
    """The Newton step of the dual, from the matrix of the module's head."""
    inverse, held, P, g, Q = _coefficients(D, point.s)
    system = np.eye(slope.size) + problem.gram(inverse)
    if problem.cone.coupled and point.t > 0:
        a, b = problem.pull(inverse), problem.pull(held)
        if P == 0 and abs(g) <= PINNED:
            P, g = 1.0, 0.0  # a = 0, bb' / Q is left
        cross = np.outer(a, b)
        system += (P * np.outer(b, b) - Q * np.outer(a, a) + g * (cross + cross.T)) / (P * Q + g * g)
    return _scaled_solve(system, -slope)


def _scaled_solve(system: FloatArray, right: FloatArray) -> FloatArray:
    """x with system x = right, for a symmetric system with no eigenvalue below 1."""
    scale = np.sqrt(np.maximum(system.diagonal(), 1.0))
    values, axes = np.linalg.eigh(system / np.outer(scale, scale))
    values = np.maximum(values, ROUNDING * values[-1])
    return np.asarray(axes @ (axes.T @ (right / scale) / values) / scale, dtype=np.float64)


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


def undetermined(problem: Program, v: FloatArray, rest: FloatArray) -> NDArray[np.bool_]:
    """Rows without noise, free or at a bound without a price, that may move together and leave S as it is."""
    cone = problem.cone
    theta = best_value(rest, cone)[1] if cone.coupled else 0.0
    loose = RANK_TOLERANCE * float(problem.row_squares().sum() + problem.D.max()) >= problem.D
    unit = AT_BOUND * float(np.abs(problem.push(problem.h)).max())
    items = np.flatnonzero(loose := loose & (np.abs(rest - theta) <= unit) & (cone.lower < cone.upper))
    rows = np.hstack([problem.A[items], problem.F[items]]) @ problem.root
    size = float(np.square(rows).sum())
    if cone.coupled and bool(((v != 0) & ~loose).any()):  # others stand at shares of t, so the sum may not move
        rows = np.column_stack([rows, np.full(items.size, np.sqrt(size))])
    basis = rows @ kernel._split(rows, RANK_TOLERANCE * size)[0]
    loose[items] = 1 - np.einsum("ij,ij->i", basis, basis) > kernel.FREE_LEVERAGE
    return loose
