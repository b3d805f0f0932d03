"""Kernels of the aggregation game: arrays in, arrays or small frozen dataclasses out.

With U = [A, F] (m, k), K = blockdiag(C^-1, r I) = R R' and B = U R (square roots of reward units)

    H = M + r Sigma = r diag(d) + B B',      M w = B h,      h = R' [A'w; 0]

so H v = M w says r d_i v_i = b_i'q with k unknowns q = h - B'v. Split the items into P, where r d_i stands
above the rank tolerance, and Z, where it counts as zero:

    on Z   B_Z q = 0, hence q = N t with N an orthonormal basis of the null space of B_Z
    on P   v_P = B_P q / (r d),    N'(I + B_P' diag(1 / r d) B_P) N t = N'h
    on Z   v_Z = pinv(B_Z') (h - q - B_P'v_P), the shortest solution

which is pinv(H) M w, the shortest maximiser of the surplus. Items are read in row blocks that stay in cache
and no m x m array is formed: O(m k^2) time, O(m k) memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import inf, nan, sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr, solve_triangular

from benchwright._check import FloatArray

BLOCK_ROWS = 32_768
RANK_TOLERANCE = 1e-12
GRAM_CONDITION = 1e5  # beyond it the normal equations give way to an orthogonal factorisation
FREE_LEVERAGE = 1e-8  # 1 - leverage above it: the item takes part in the null space of H
IDLE_LEVERAGE = 1e-20  # below it the item's row of B is rounding error
NOISE_RULES = 1e-6  # |met|^2 below this part of |h|^2: the difference h - q has lost digits
NEGATIVE_EIGENVALUE = 1e-10  # relative to the greatest: above it a negative one is no rounding error
ROUNDING = float(np.finfo(np.float64).eps)

IntArray = NDArray[np.intp]


@dataclass(frozen=True, slots=True, eq=False)
class Factors:
    """The game in factor form: A (m, n), F (m, q), d (m,), w (m,), and half (n, n): C^-1 = half half'."""

    A: FloatArray
    F: FloatArray
    d: FloatArray
    w: FloatArray
    half: FloatArray

    def rows(self, items: slice | IntArray) -> FloatArray:
        """U = [A, F] at ``items``."""
        return np.hstack([self.A[items], self.F[items]]) if self.F.shape[1] else self.A[items]

    def blocks(self) -> Iterator[slice]:
        """Slices that cover the items in order."""
        return (slice(i, i + BLOCK_ROWS) for i in range(0, self.w.size, BLOCK_ROWS))

    def root(self, r: float) -> FloatArray:
        """R (k, k) with K = R R'."""
        n, q = self.A.shape[1], self.F.shape[1]
        root = np.zeros((n + q, n + q))
        root[:n, :n] = self.half
        root[n:, n:] = sqrt(r) * np.eye(q)
        return root


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """What one pass over the items leaves; nothing in it depends on r.

    gram (k, k) is U'U, precision (k, k) is U' diag(1/d) U over the items with d > floor, target (n,) is
    A'w; smallest and largest are the least d above the floor (inf if none) and the greatest d.
    """

    gram: FloatArray
    precision: FloatArray
    target: FloatArray
    smallest: float
    largest: float


@dataclass(frozen=True, slots=True, eq=False)
class Dual:
    """The k unknowns q (k,) at one r, and what the step back to the items needs.

    quiet (z,) are the items of Z, null (k, k - rank) is N, lift (k, rank) has B_Z @ lift orthonormal;
    loud (m - z,) holds v_P where the orthogonal factorisation gave it, else None.
    """

    r: float
    root: FloatArray
    h: FloatArray
    q: FloatArray
    moments: Moments
    floor: float
    quiet: IntArray
    lift: FloatArray
    null: FloatArray
    loud: FloatArray | None


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """The shortest maximiser v (m,), the items it leaves undetermined, their leverage in B_Z, A'w (n,)."""

    weights: FloatArray
    undetermined: IntArray
    leverage: FloatArray
    target: FloatArray
    condition_bound: float
    method: str


def accumulate(x: Factors, floor: float | None = None) -> Moments:
    """One pass over the items; those with d <= ``floor`` (by default surely in Z) stay out of precision."""
    k, n, largest = x.A.shape[1] + x.F.shape[1], x.A.shape[1], float(x.d.max())
    gram, precision, target = np.zeros((k, k)), np.zeros((k, k)), np.zeros(n)
    if floor is None:
        floor = RANK_TOLERANCE * largest
    smallest = inf
    for block in x.blocks():
        noise, columns = x.d[block], np.ascontiguousarray(x.rows(block).T)
        above = noise > floor
        gram += columns @ columns.T
        precision += (columns * np.divide(1.0, noise, out=np.zeros(noise.size), where=above)) @ columns.T
        target += columns[:n] @ x.w[block]
        smallest = min(smallest, float(noise.min(where=above, initial=inf)))
    target = beyond_rounding(target, np.sqrt(gram.diagonal()[:n]), x.w)
    return Moments(gram, precision, target, smallest, largest)


def beyond_rounding(product: FloatArray, column_norms: FloatArray, u: FloatArray) -> FloatArray:
    """U'u with the entries set to 0 that rounding alone could have made."""
    return np.where(np.abs(product) > rounding(u.size) * column_norms * np.linalg.norm(u), product, 0.0)


def rounding(m: int) -> float:
    """Relative rounding error to expect of a sum of m products."""
    return (8 + sqrt(m)) * ROUNDING


def solve_dual(x: Factors, r: float, tolerance: float, moments: Moments) -> Dual:
    """Solve for q; reads items only where ``moments`` or the normal equations do not serve this r."""
    root = x.root(r)
    scale = _scale(r, root, moments)
    floor = tolerance * scale / r if r > 0 else inf
    if moments.smallest <= floor:
        moments = replace(accumulate(x, floor), target=moments.target)
    h = np.zeros(root.shape[0])
    h[: x.half.shape[0]] = x.half.T @ moments.target
    quiet = np.flatnonzero(x.d <= floor)
    lift, null = _split(x.rows(quiet) @ root, tolerance * scale)
    gram = root.T @ moments.precision @ root / r if r > 0 else np.zeros_like(root)
    system = np.eye(null.shape[1]) + null.T @ gram @ null
    size = np.sqrt(system.diagonal())
    values, axes = np.linalg.eigh(system / np.outer(size, size))
    loud = None
    if quiet.size == x.d.size or values.size == 0 or values[-1] < GRAM_CONDITION * values[0]:
        t = axes @ (axes.T @ (null.T @ h / size) / values) / size
    else:
        items = np.flatnonzero(x.d > floor)
        deviation = np.sqrt(r * x.d[items])
        t, loud = _orthogonal(x.rows(items) @ (root @ null) / deviation[:, None], null.T @ h)
        loud /= deviation
    return Dual(r, root, h, null @ t, moments, floor, quiet, lift, null, loud)


def _scale(r: float, root: FloatArray, moments: Moments) -> float:
    """max r d + ||B||^2, between one and two times the greatest eigenvalue of H."""
    return r * moments.largest + float(np.linalg.eigvalsh(root.T @ moments.gram @ root)[-1])


def _split(B: FloatArray, threshold: float) -> tuple[FloatArray, FloatArray]:
    """``lift`` with B @ lift an orthonormal basis of B's range, and B's null space; s^2 is cut there."""
    if B.shape[0] == 0:
        return np.zeros((B.shape[1], 0)), np.eye(B.shape[1])
    _, s, axes = np.linalg.svd(np.linalg.qr(B, mode="r"))
    rank = int(np.count_nonzero(s * s > threshold))
    return axes[:rank].T / s[:rank], axes[rank:].T


def _orthogonal(W: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
    """t = (I + W'W)^-1 b and W t, accurate row by row however unequal the rows of W (sorted, pivoted QR)."""
    stack = np.vstack([np.eye(b.size), W])
    order = np.argsort(-np.abs(stack).max(axis=1), kind="stable")
    Q, R, pivots = qr(stack[order], mode="economic", pivoting=True)
    y = np.empty(order.size)
    y[order] = Q @ solve_triangular(R, b[pivots], trans="T")
    return y[: b.size], y[b.size :]


def solve(x: Factors, r: float, tolerance: float = RANK_TOLERANCE, target: FloatArray | None = None) -> Solution:
    """v* = pinv(M + r Sigma) M w, reward per score, with its undetermined items and condition bound.

    ``target`` (n,) stands in for A'w where the items are some of those that carry value.
    """
    moments = accumulate(x, tolerance * float(x.d.max()))
    dual = solve_dual(x, r, tolerance, moments if target is None else replace(moments, target=target))
    v = _loud_weights(x, dual)
    quiet = dual.quiet
    undetermined, leverage = quiet, np.zeros(0)
    if quiet.size:
        basis = x.rows(quiet) @ (dual.root @ dual.lift)
        missing = dual.h - dual.q - dual.root.T @ pull(x, v)
        v[quiet] = basis @ (dual.lift.T @ missing)
        leverage = np.einsum("ij,ij->i", basis, basis)
        undetermined = quiet[1 - leverage > FREE_LEVERAGE]
        leverage = leverage[1 - leverage > FREE_LEVERAGE]
    method = "woodbury" if dual.loud is None else "orthogonal"
    if quiet.size:
        method = "null space" if quiet.size == v.size else f"{method} and null space"
    return Solution(v, undetermined, leverage, dual.moments.target, _condition_bound(x, dual), method)


def _loud_weights(x: Factors, dual: Dual) -> FloatArray:
    """v_P in place, zeros on Z."""
    v = np.zeros(x.d.size)
    if dual.loud is not None:
        v[x.d > dual.floor] = dual.loud
    elif dual.quiet.size < v.size:
        p = dual.root @ dual.q / dual.r
        for block in x.blocks():
            noise = x.d[block]
            np.divide(x.rows(block) @ p, noise, out=v[block], where=noise > dual.floor)
    return v


def pull(x: Factors, u: FloatArray) -> FloatArray:
    """U'u = [A'u; F'u] (k,)."""
    return np.concatenate([u @ x.A, u @ x.F])


def inverse_root(curvature: FloatArray | float, n: int) -> FloatArray:
    """half (n, n) with C^-1 = half half', from C or from c0 with C = c0 I."""
    if isinstance(curvature, float):
        return np.eye(n) / sqrt(curvature)
    lower = np.linalg.cholesky(curvature)
    half: FloatArray = solve_triangular(lower, np.eye(n), lower=True).T
    return half


def semidefinite_half(matrix: FloatArray) -> tuple[FloatArray, float]:
    """X (m, rank) with X X' = matrix, at least one column; the smallest eigenvalue where negative, else 0."""
    values, axes = np.linalg.eigh(matrix)
    greatest = float(np.abs(values).max())
    kept = values > values.size * ROUNDING * greatest
    half = axes[:, kept] * np.sqrt(values[kept]) if kept.any() else np.zeros((values.size, 1))
    return half, float(values[0]) if values[0] < -NEGATIVE_EIGENVALUE * greatest else 0.0


def split_surplus(x: Factors, r: float, moments: Moments) -> tuple[float, float, float]:
    """Surplus h'met/2, misdirection |q_A|^2/2 and risk (q'met + |q_F|^2)/2 at v*, without v*.

    met = B'v* = h - q. Where noise rules, q is h up to rounding; then met is put together from (I - N N')h
    and N N'G q, with G = B_P' diag(1 / r d) B_P.
    """
    dual = solve_dual(x, r, RANK_TOLERANCE, moments)
    q, n, null = dual.q, x.A.shape[1], dual.null
    met = dual.h - q
    if r > 0 and met @ met < NOISE_RULES * (dual.h @ dual.h):
        gram = dual.root.T @ dual.moments.precision @ dual.root / r
        met = (dual.h - null @ (null.T @ dual.h)) + null @ (null.T @ (gram @ q))
    return float(dual.h @ met) / 2, float(q[:n] @ q[:n]) / 2, max(float(q @ met + q[n:] @ q[n:]), 0.0) / 2


@dataclass(frozen=True, slots=True, eq=False)
class SchemeSums:
    """Of a direction u: axes (n,) = half'A'u, aligned = u'Mw, response = u'Mu, noise = u'Sigma u."""

    axes: FloatArray
    aligned: float
    response: float
    noise: float

    def best_scale(self, r: float) -> float:
        """s = u'Mw / u'(M + r Sigma)u where that is positive, else 0."""
        load = self.response + r * self.noise
        return self.aligned / load if self.aligned > 0 and load > 0 else 0.0

    def surplus(self, r: float) -> float:
        """S(s u) at the best scale."""
        return self.best_scale(r) * self.aligned / 2

    def efficiency(self, r: float, best: float) -> float:
        """S(s u) / S(v*) given ``best`` = S(v*); NaN where no incentive has value."""
        return max(0.0, min(self.surplus(r) / best, 1.0)) if best > 0 else nan


def scheme_sums(x: Factors, u: FloatArray, moments: Moments) -> SchemeSums:
    """One pass over the items; what rounding alone could have made counts as 0."""
    n, norms = x.A.shape[1], np.sqrt(moments.gram.diagonal())
    pulled = beyond_rounding(pull(x, u), norms, u)
    axes = x.half.T @ pulled[:n]
    aligned = float(axes @ (x.half.T @ moments.target))
    bound = norms[:n] @ np.abs(x.half @ x.half.T) @ norms[:n] * np.linalg.norm(u) * np.linalg.norm(x.w)
    if abs(aligned) <= rounding(u.size) * float(bound):
        aligned = 0.0
    return SchemeSums(axes, aligned, float(axes @ axes), float((x.d * u) @ u + pulled[n:] @ pulled[n:]))


def _condition_bound(x: Factors, dual: Dual) -> float:
    """Upper bound on the ratio of the extreme non-zero eigenvalues of H; NaN where H = 0.

    On the range of H, x'Hx >= delta |x_P|^2 + max(0, s |x_Z| - beta |x_P|)^2 with delta = min r d on P,
    beta = ||B_P|| and s the least singular value of B_Z: the minimum is the smaller eigenvalue of
    [[delta + beta^2, -beta s], [-beta s, s^2]].
    """
    moments, rows = dual.moments, x.rows(dual.quiet)
    ceiling = _scale(dual.r, dual.root, moments)
    s2 = 1 / float(np.square(dual.lift).sum(axis=0).max()) if dual.lift.shape[1] else inf
    if dual.quiet.size == x.d.size:
        return ceiling / s2 if s2 < inf else nan
    delta = dual.r * moments.smallest
    if s2 == inf:
        return ceiling / delta
    loud = dual.root.T @ (moments.gram - rows.T @ rows) @ dual.root
    beta2 = max(float(np.linalg.eigvalsh(loud)[-1]), 0.0)
    top = (delta + beta2 + s2 + sqrt((delta + beta2 - s2) ** 2 + 4 * beta2 * s2)) / 2
    return ceiling / (delta / top * s2)


def relative_residual(x: Factors, r: float, v: FloatArray) -> float:
    """||H v - M w|| / ||M w||, from the definition of H and none of the solver's quantities."""
    inverse = x.half @ x.half.T
    effort_gap = inverse @ ((v - x.w) @ x.A)
    risk_load = r * (v @ x.F)
    target = inverse @ (x.w @ x.A)
    gap2 = size2 = 0.0
    for block in x.blocks():
        gap = x.A[block] @ effort_gap + x.F[block] @ risk_load + r * x.d[block] * v[block]
        size = x.A[block] @ target
        gap2, size2 = gap2 + float(gap @ gap), size2 + float(size @ size)
    return sqrt(gap2 / size2) if size2 > 0 else sqrt(gap2)


def noise_rank(x: Factors, tolerance: float) -> int:
    """Rank of Sigma = diag(d) + F F' at the relative ``tolerance``."""
    spread = float(np.linalg.eigvalsh(x.F.T @ x.F)[-1]) if x.F.shape[1] else 0.0
    floor = tolerance * (float(x.d.max()) + spread)
    lift, _ = _split(x.F[x.d <= floor], floor)
    return int(np.count_nonzero(x.d > floor)) + int(lift.shape[1])
