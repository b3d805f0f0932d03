"""Numbers behind at most k items: branch and bound on which items take part, in factor form.

With B, h and D = r diag(d) > 0 of ``_constrained``, R = D^-1/2 B and phi_i(p) = (R_i p)^2 / 2, or max(R_i p, 0)^2 / 2
where weights are non-negative, the greatest surplus on a set T of items is

    S(T) = min_p |p - h|^2 / 2 + sum over T of phi_i(p),    v_i = R_i p / sqrt(D_i) on T

Exchanging the order, no set of k items has more than f(p) = |p - h|^2 / 2 + sum of the k largest phi_i(p), at any p.
So every p proves a bound, and the least, over n + q unknowns, is that of the perspective relaxation. f is convex;
the sum of the k largest is max {z'phi : 0 <= z <= 1, 1'z = k}, smoothed to max z'phi - mu |z - center|^2 / 2, and
semismooth Newton steps in p alternate with moves of the center to z. A vertex z is a set that attains the bound. At
others a branch takes one item in and one leaves it out. An item whose inclusion, or exclusion, puts the bound below
the best set known is left out, or taken in, for good.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from heapq import heappop, heappush
from itertools import count

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from benchwright._check import FloatArray
from benchwright.mechanism._constrained import scaled_solve
from benchwright.mechanism._weights import ROUNDING

GAP = 5e-10  # relative
CENTERS, NEWTON_STEPS, SHORTENINGS = 60, 50, 40
FLAT = 1e-10  # |gradient| over |h|: the bound is then |gradient|^2 / 2 above the least
SETTLED = 1e-12  # what z may leave of the k largest, relative
ENOUGH = 1e-2  # the same, over what the bound still stands above the best set
SWAPS, CANDIDATES, SWAPPED_AT_MOST = 50, 12, 2_000
LEAST = 1e-300
SAME = 1e-13  # relative gain that rounding could have made

IntArray = NDArray[np.intp]


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """The items, the surplus on them, what no set of k items exceeds, and the nodes looked at."""

    items: IntArray
    surplus: float
    bound: float
    nodes: int


@dataclass(frozen=True, slots=True, eq=False)
class Search:
    """Rows R (m, K), h (K,), whether weights may be negative."""

    R: FloatArray
    h: FloatArray
    signed: bool

    def phi(self, p: FloatArray, items: IntArray) -> FloatArray:
        y = self.R[items] @ p
        return (y if self.signed else np.maximum(y, 0.0)) ** 2 / 2

    def on(self, items: IntArray, p: FloatArray) -> Node:
        """The node of one set, its bound S(T); ``p`` starts the search."""
        return bounded(self, Node(items, items[:0], 0, p, np.zeros(0)), -np.inf)


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """Items taken in, items open, how many of these may follow; p (K,) and z (open,) of the relaxation, its bound."""

    taken: IntArray
    open: IntArray
    left: int
    p: FloatArray
    z: FloatArray
    bound: float = np.inf

    @property
    def decided(self) -> bool:
        return self.left == 0 or self.left >= self.open.size

    def items(self, search: Search) -> IntArray:
        """A set of k items: all where decided, else those with the largest phi."""
        if self.decided:
            return self.taken if self.left == 0 else np.concatenate([self.taken, self.open])
        phi = search.phi(self.p, self.open)
        return np.concatenate([self.taken, self.open[np.argpartition(-phi, self.left - 1)[: self.left]]])


def choose(search: Search, k: int, *, nodes: int) -> Choice:
    """The best set of ``k`` of the m > k items that ``nodes`` nodes can find, and what none exceeds."""
    m = search.R.shape[0]
    root = Node(np.zeros(0, dtype=np.intp), np.arange(m), k, search.h, np.full(m, k / m))
    root = bounded(search, root, -np.inf)
    best, surplus = improved(search, root.items(search), root.p)
    first = root.bound
    order, seen = count(), 1
    heap = [(-root.bound, next(order), root)]
    while heap and -heap[0][0] > surplus * (1 + GAP) and seen < nodes:
        node = pruned(search, heappop(heap)[2], surplus * (1 + GAP))
        for child in [node] if node.decided else branches(search, node):
            seen += 1
            found = bounded(search, child, surplus * (1 + GAP))
            items = found.items(search)
            if (worth := search.on(items, found.p).bound) > surplus:
                best, surplus = items, worth
            if not found.decided and found.bound > surplus * (1 + GAP):
                heappush(heap, (-found.bound, next(order), found))
    left = max(surplus * (1 + GAP), -heap[0][0] if heap else surplus)
    return Choice(np.sort(best), surplus, max(min(first, left), surplus), seen)


def branches(search: Search, node: Node) -> tuple[Node, Node]:
    """``node`` with its most undecided item taken in, and left out."""
    split = np.minimum(node.z, 1 - node.z)
    if split.max() <= 0:  # a vertex, but not one of the relaxation to the last digit
        phi = search.phi(node.p, node.open)
        split = -np.abs(phi - np.partition(phi, -node.left)[-node.left])
    item = int(split.argmax())
    less = replace(node, open=np.delete(node.open, item), z=np.delete(node.z, item))
    return replace(less, taken=np.append(node.taken, node.open[item]), left=node.left - 1), less


def pruned(search: Search, node: Node, cutoff: float) -> Node:
    """``node`` without the open items whose inclusion, or exclusion, puts its bound at most at ``cutoff``."""
    phi = search.phi(node.p, node.open)
    last, first = -np.partition(-phi, [node.left - 1, node.left])[[node.left - 1, node.left]]
    inside = phi >= last
    out = ~inside & (node.bound - last + phi <= cutoff)
    sure = inside & (node.bound - phi + first <= cutoff)
    sure &= np.cumsum(sure) <= node.left
    kept = ~(out | sure)
    taken = np.concatenate([node.taken, node.open[sure]])
    return replace(node, taken=taken, open=node.open[kept], left=node.left - int(sure.sum()), z=node.z[kept])


def improved(search: Search, items: IntArray, p: FloatArray) -> tuple[IntArray, float]:
    """The set after swaps of one item that raise S, the most promising tried; its S."""
    best = search.on(items, p)
    for _ in range(SWAPS if items.size <= SWAPPED_AT_MOST else 0):
        items, outside = best.taken, np.setdiff1d(np.arange(search.R.shape[0]), best.taken)
        enter = outside[np.argsort(-search.phi(best.p, outside))[:CANDIDATES]]
        leave = np.argsort(search.phi(best.p, items))[:CANDIDATES]
        tries = [search.on(np.append(np.delete(items, i), j), best.p) for i in leave for j in enter]
        top = max(tries, key=lambda node: node.bound)
        if not top.bound > best.bound * (1 + SAME):
            break
        best = top
    return best.taken, best.bound


def bounded(search: Search, node: Node, cutoff: float) -> Node:
    """``node`` with p, z and the bound of its relaxation, or those of the first bound at most at ``cutoff``."""
    rows, fixed = np.concatenate([node.taken, node.open]), node.taken.size
    game = Relaxation(search.R[rows], search.h, search.signed, fixed, node.left)
    p, best = node.p, replace(node, bound=np.inf)
    centre = np.concatenate([np.ones(fixed), node.z])
    mu = max(float(game.phi(p).max(initial=0.0)), LEAST)
    for _ in range(CENTERS):
        p, centre = game.settle(p, centre, mu)
        bound, slack = game.bound(p, centre)
        if bound < best.bound:
            best = replace(node, p=p, z=centre[fixed:], bound=bound)
        if best.bound <= cutoff or slack <= max(SETTLED * bound, ENOUGH * (bound - cutoff) if cutoff > 0 else 0.0):
            break
        mu /= 3
    return best


@dataclass(frozen=True, slots=True, eq=False)
class Relaxation:
    """Least of |p - h|^2 / 2 + sum of phi over the first ``fixed`` rows + the ``left`` largest phi of the others."""

    R: FloatArray
    h: FloatArray
    signed: bool
    fixed: int
    left: int

    def along(self, p: FloatArray) -> FloatArray:
        y: FloatArray = self.R @ p
        return y if self.signed else np.maximum(y, 0.0)

    def phi(self, p: FloatArray) -> FloatArray:
        return self.along(p) ** 2 / 2

    def bound(self, p: FloatArray, z: FloatArray) -> tuple[float, float]:
        """f(p), and what z'phi falls short of it."""
        phi = self.phi(p)
        rest = phi[self.fixed :]
        top = -np.partition(-rest, self.left - 1)[: self.left] if 0 < self.left < rest.size else rest[: self.left]
        most = float(phi[: self.fixed].sum()) + float(top.sum())
        return float(np.square(p - self.h).sum()) / 2 + most, most - float(z @ phi)

    def shares(self, phi: FloatArray, centre: FloatArray, mu: float) -> tuple[FloatArray, bool]:
        """The z that maximises z'phi - mu |z - centre|^2 / 2, and whether 1'z = left binds."""
        z = np.ones(phi.size)
        z[self.fixed :], binds = capped(centre[self.fixed :] + phi[self.fixed :] / mu, self.left)
        return z, binds

    def settle(self, p: FloatArray, centre: FloatArray, mu: float) -> tuple[FloatArray, FloatArray]:
        """The minimiser p of the smoothed f around ``centre``, and its z."""

        def at(p: FloatArray) -> tuple[float, FloatArray, FloatArray, FloatArray, bool]:
            y = self.along(p)
            z, binds = self.shares(y * y / 2, centre, mu)
            height = float(np.square(p - self.h).sum() + z @ (y * y) - mu * np.square(z - centre).sum()) / 2
            return height, p - self.h + (z * y) @ self.R, y, z, binds

        height, slope, y, z, binds = at(p)
        for _ in range(NEWTON_STEPS):
            if float(np.linalg.norm(slope)) <= FLAT * float(np.linalg.norm(self.h)):
                break
            active = np.flatnonzero((z > 0) & (y != 0))
            rows = self.R[active] * np.sqrt(z[active])[:, None]
            system = np.eye(p.size) + rows.T @ rows
            loose = np.flatnonzero((z > 0) & (z < 1) & (y != 0))
            loose = loose[loose >= self.fixed]
            if loose.size:
                drift = self.R[loose] * y[loose][:, None]
                drift = drift - drift.mean(axis=0) if binds else drift
                system += drift.T @ drift / mu
            try:
                step = cho_solve(cho_factor(system, check_finite=False), -slope, check_finite=False)
            except LinAlgError:  # mu is small: only rounding keeps the matrix from being positive definite
                step = scaled_solve(system, -slope)
            fall, length = float(slope @ step), 1.0
            for _ in range(SHORTENINGS):
                found = at(p + length * step)
                if found[0] <= height + 1e-4 * length * fall + 100 * ROUNDING * abs(height):
                    break
                length /= 2
            p = p + length * step
            height, slope, y, z, binds = found
        return p, z


def capped(a: FloatArray, total: int) -> tuple[FloatArray, bool]:
    """The point of {0 <= z <= 1, 1'z <= total} nearest to ``a``, and whether its sum binds."""
    z = np.clip(a, 0.0, 1.0)
    if z.sum() <= total:
        return z, False
    kth = -np.partition(-a, max(total, 1) - 1)[max(total, 1) - 1]
    near = a[a > kth - 1]  # z = clip(a - tau, 0, 1) with tau >= kth - 1
    knots = np.sort(np.concatenate([near, near - 1]))
    knots = knots[knots > 0]
    low, high = -1, knots.size - 1  # the sum is above total at low, not at high
    while high - low > 1:
        middle = (low + high) // 2
        above = float(np.clip(near - knots[middle], 0.0, 1.0).sum()) > total
        low, high = (middle, high) if above else (low, middle)
    start = knots[low] if low >= 0 else max(float(kth) - 1, 0.0)
    z = np.clip(a - start, 0.0, 1.0)
    falling = (a - start > 0) & (a - start <= 1)
    shift = (float(z.sum()) - total) / max(int(falling.sum()), 1)
    return np.clip(a - min(start + shift, float(knots[high])), 0.0, 1.0), True
