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

With P, g and Q of ``_cone``, a = B_f'D_f^-1 1 and b = B's the Newton matrix is

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
from benchwright.mechanism._cone import AT_BOUND, PINNED, Cone, Point, Projection, best_value, coefficients
from benchwright.mechanism._weights import RANK_TOLERANCE, ROUNDING, Factors

BLOCK_ROWS = 4_096
PROXIMAL = 10.0 ** -np.array([2, 4, 6, 8, 10, 12, 10, 8, 6, 4])  # epsilon over |row of B|^2, in turn
CENTERS, NEWTON_STEPS, SHORTENINGS = 40, 200, 60
SAFETY = 1e-2  # the solver aims at this part of the tolerance, which an independent residual then checks

IntArray = NDArray[np.intp]


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
        p = scaled_solve(np.eye(game.h.size) + gram, game.h)
        v = game.push(p) / game.D
        off = game.h - game.pull(v) - p  # |B off|^2 <= max D off'gram off, |Bh|^2 >= min D h'gram h
        allowed = (SAFETY * tolerance) ** 2 * float(game.h @ gram @ game.h)
        if float(game.D.max() / game.D.min() * (off @ gram @ off)) <= allowed:
            return v
    target = np.asarray(np.linalg.solve(x.half.T, h), dtype=np.float64)
    return kernel.solve(x, r, target=target).weights


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
    inverse, held, P, g, Q = coefficients(D, point.s)
    system = np.eye(slope.size) + problem.gram(inverse)
    if problem.cone.coupled and point.t > 0:
        a, b = problem.pull(inverse), problem.pull(held)
        if P == 0 and abs(g) <= PINNED:
            P, g = 1.0, 0.0  # a = 0, bb' / Q is left
        cross = np.outer(a, b)
        system += (P * np.outer(b, b) - Q * np.outer(a, a) + g * (cross + cross.T)) / (P * Q + g * g)
    return scaled_solve(system, -slope)


def scaled_solve(system: FloatArray, right: FloatArray) -> FloatArray:
    """x with system x = right (k,) or (k, j), for a symmetric system with no eigenvalue below 1."""
    scale = np.sqrt(np.maximum(system.diagonal(), 1.0))
    values, axes = np.linalg.eigh(system / np.outer(scale, scale))
    values = np.maximum(values, ROUNDING * values.max(initial=0.0))
    solved = axes @ ((axes.T @ (right.T / scale).T).T / values).T
    return np.asarray((solved.T / scale).T, dtype=np.float64)


def undetermined(
    problem: Program,
    v: FloatArray,
    rest: FloatArray,
    *,
    theta: float | None = None,
    tied: sparse.csr_array | None = None,
) -> NDArray[np.bool_]:
    """Rows without noise, free or at a bound without a price, that may move together and leave S as it is.

    Without a price are those with ``rest`` = theta, that of the item at the margin if None. Their sums against the
    columns of ``tied`` (m, j) may not move.
    """
    cone = problem.cone
    if theta is None:
        theta = best_value(rest, cone)[1] if cone.coupled else 0.0
    loose = RANK_TOLERANCE * float(problem.row_squares().sum() + problem.D.max()) >= problem.D
    unit = AT_BOUND * float(np.abs(problem.push(problem.h)).max())
    items = np.flatnonzero(loose := loose & (np.abs(rest - theta) <= unit) & (cone.lower < cone.upper))
    rows = np.hstack([problem.A[items], problem.F[items]]) @ problem.root
    size = float(np.square(rows).sum())
    if tied is not None:
        rows = np.hstack([rows, np.sqrt(size) * tied[items].toarray()])
    fixed_sum = cone.coupled or tied is not None
    if fixed_sum and bool(((v != 0) & ~loose).any()):  # others stand at shares of t
        rows = np.column_stack([rows, np.full(items.size, np.sqrt(size))])
    basis = rows @ kernel._split(rows, RANK_TOLERANCE * size)[0]
    loose[items] = 1 - np.einsum("ij,ij->i", basis, basis) > kernel.FREE_LEVERAGE
    return loose
