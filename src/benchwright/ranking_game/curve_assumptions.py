"""C1, C2 and C3 on the score curves of a game: who violates them, on which range, by how much.

Order the developers by capability; a is more capable than b. For efforts in [0, M]:

C1  v_a(x) > v_b(x): curves do not cross. Size: the largest lead of b, in score.
C2  v_i is concave (that it does not fall the forms see to, and scores of at most 1 saturate). Size: the largest gap to
    the least concave function above it, in score. For v = L + (U - L) sigmoid(z), z = alpha + beta log(1 + x), the
    second derivative is a positive factor times beta (1 - 2 sigmoid(z)) - 1: a power law is convex exactly where beta >
    1 and z < log((beta - 1)/(beta + 1)), that is on the first stretch of effort, and concave beyond.
C3  inf{y : v_b(y) > t} - inf{x : v_a(x) > t}, what b needs beyond a to exceed a score t, does not fall as t rises.
    That is k(x) - x with k(x) = inf{e : v_b(e) > v_a(x)}, x the far end where v_a has a plateau. Size: the largest
    fall, in effort. Ranges are of the target score v_a(x), and targets out of b's reach are no violation. With
    common L and U, k'(x) = (beta_a/beta_b) exp((alpha_a - alpha_b)/beta_b) (1 + x)^(beta_a/beta_b - 1) is monotone, so
    both ends of the range decide whether it is at least 1.

Where no closed form decides, curves are looked at on a grid of efforts, evenly spaced in log(1 + x), and the ends of
ranges are found by halving.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from benchwright._check import FloatArray
from benchwright._json import json_safe
from benchwright.ranking_game import _assumptions as numbers
from benchwright.ranking_game._curves import EPS, ROUNDINGS
from benchwright.ranking_game.forms import Curves, IntArray, PowerLawCurves, TranslationCurves
from benchwright.ranking_game.game import RankingGame

Verdict = Literal["holds", "violated", "undecided"]
Proof = Literal["closed form", "cells", "grid"]
KEPT = 1000  # violations of one assumption that are kept, the largest
POINTS = 257  # of the grid
POINTS_OF_DRAWS = 65
CALLABLES_STEP = 4  # callables are inverted by halving, on so many points fewer
ENTRIES_AT_ONCE = 1 << 21
CELLS_AT_MOST = 1 << 17
CELL_HALVINGS = 16
TURN = 1e-4  # part of a cell over which the slope at the end of a range is looked at


@dataclass(frozen=True, slots=True)
class Violation:
    """Where an assumption fails.

    ``developers`` holds positions, one, or the less capable and the more capable. ``ranges`` are of effort, for C3 of
    the target score; ``at`` is the place of the largest ``size``. ``share`` is the share of draws in which the same
    developers violate the assumption, NaN without draws.
    """

    developers: tuple[int, ...]
    ranges: tuple[tuple[float, float], ...]
    at: float
    size: float
    share: float = np.nan

    def to_dict(self, game: RankingGame) -> dict[str, Any]:
        """All fields, names in place of positions, in types that JSON knows."""
        record: dict[str, Any] = {"developers": [game.name(i) for i in self.developers], "ranges": self.ranges}
        safe: dict[str, Any] = json_safe(record | {"at": self.at, "size": self.size, "share_of_draws": self.share})
        return safe


@dataclass(frozen=True, slots=True)
class Check:
    """One assumption on one game.

    Attributes
    ----------
    assumption : str
    verdict : "holds", "violated" or "undecided"
    proof : "closed form", "cells" or "grid"
        What "holds" rests on: the form's mathematics; monotone curves that stay apart on every cell of the range; or
        a grid only, between whose points a short violation can hide. A violation that is listed is one.
    count : int
        Number of violations; ``violations`` holds the largest of them.
    cases : int
        Number of pairs or developers that were looked at.
    share : float, share of draws
        In which anybody violates the assumption; NaN without draws.
    reason : str
    """

    assumption: str
    verdict: Verdict
    proof: Proof
    count: int
    cases: int
    violations: tuple[Violation, ...]
    reason: str
    share: float = np.nan

    @property
    def holds(self) -> bool:
        return self.verdict == "holds"


def check_crossings(game: RankingGame, grid: FloatArray) -> Check:
    """C1 on the efforts ``grid`` (G,)."""
    curves, order = game.curves, game.order
    key, slack = _keys(curves, order, grid)
    found: list[Violation] = []
    tied = False
    for a, b in _pairs(game.n, grid.size):
        lead = key[b] - key[a]
        loose = slack[a] + slack[b]
        tied |= bool((np.abs(lead) <= loose).any())
        bad = np.flatnonzero((lead > loose).any(axis=1))
        found += _crossings(game, grid, order[a[bad]], order[b[bad]], lead[bad] > loose[bad])
    cases = game.n * (game.n - 1) // 2
    if isinstance(curves, TranslationCurves) or (isinstance(curves, PowerLawCurves) and _alike(curves)):
        proof: Proof = "closed form"
    else:
        proof = "cells" if not found and _stay_apart(curves, order, grid) else "grid"
    if tied and not found:
        return Check("C1", "undecided", proof, 0, cases, (), "double precision cannot tell some scores apart")
    return judged("C1", found, cases, proof, "the more capable scores higher at every effort", "pairs of curves cross")


def crossing_pairs(game: RankingGame, grid: FloatArray) -> IntArray:
    """Positions (k, 2) of the pairs that violate C1 on the grid."""
    order = game.order
    key, slack = _keys(game.curves, order, grid)
    hits = [np.empty((0, 2), dtype=np.intp)]
    for a, b in _pairs(game.n, grid.size):
        bad = (key[b] - key[a] > slack[a] + slack[b]).any(axis=1)
        hits.append(np.stack([order[b[bad]], order[a[bad]]], axis=1))
    return np.concatenate(hits)


def _keys(curves: Curves, order: IntArray, grid: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Keys (n, G) that rank like the scores, most capable first, and their rounding."""
    key = curves.key(order[:, None], grid)
    return key, ROUNDINGS * EPS * np.maximum(np.abs(key), 1.0)


def _crossings(game: RankingGame, grid: FloatArray, a: IntArray, b: IntArray, marked: Any) -> list[Violation]:
    """The violations of pairs (P,) that cross where ``marked`` (P, G)."""
    curves = game.curves
    lead = np.where(marked, curves.score(b[:, None], grid) - curves.score(a[:, None], grid), -np.inf)
    at = lead.argmax(axis=1)
    row, first, last = numbers.runs(marked)
    ends = []
    for inner, outer in ((first, np.maximum(first - 1, 0)), (last, np.minimum(last + 1, grid.size - 1))):
        ends.append(numbers.boundary(grid[inner], grid[outer], lambda x: curves.key(b[row], x) > curves.key(a[row], x)))
    sizes = np.maximum(lead[np.arange(a.size), at], 0.0)
    return _violations(np.stack([b, a], axis=1), row, ends[0], ends[1], grid[at], sizes)


def _stay_apart(curves: Curves, order: IntArray, grid: FloatArray) -> bool:
    """Whether neighbours in capability surely keep their order on the whole range, from the curves' monotony alone."""
    which = np.repeat(np.arange(order.size - 1), grid.size - 1)
    low, high = np.tile(grid[:-1], order.size - 1), np.tile(grid[1:], order.size - 1)
    for _ in range(CELL_HALVINGS):
        least, _ = curves.lead(order[which], low, order[which + 1], high, 0.0)
        still = least <= 0
        if not still.any():
            return True
        if 2 * still.sum() > CELLS_AT_MOST:
            return False
        which, a, b = which[still], low[still], high[still]
        middle = (a + b) / 2
        which, low, high = np.tile(which, 2), np.concatenate([a, middle]), np.concatenate([middle, b])
    return False


def check_concave(game: RankingGame, grid: FloatArray) -> Check:
    """C2 on the efforts ``grid`` (G,)."""
    curves = game.curves
    who, n = np.arange(game.n), game.n
    good, bad = "curves are concave, and scores of at most 1 saturate", "curves are convex on a stretch"
    if isinstance(curves, TranslationCurves):
        return judged("C2", [], n, "closed form", good, bad)
    proof: Proof = "grid"
    if isinstance(curves, PowerLawCurves):
        proof, end = "closed form", np.minimum(convex_until(curves), grid[-1])
        row = np.flatnonzero(end > 0)
        start, stop = np.zeros(row.size), end[row]
    else:
        rounding = np.float64(2 * ROUNDINGS * EPS)
        row, first, last = numbers.runs(numbers.convex_steps(grid, curves.score(who[:, None], grid), rounding))
        start, stop = grid[first], grid[last + 2]
    some = np.unique(row)
    found: list[Violation] = []
    if some.size:
        x = np.unique(np.concatenate([grid, stop]))
        gap = np.stack([numbers.concave_gap(x, y) for y in curves.score(some[:, None], x)])
        at = gap.argmax(axis=1)
        place = np.searchsorted(some, row)
        found = _violations(some[:, None], place, start, stop, x[at], gap[np.arange(some.size), at])
    return judged("C2", found, n, proof, good, bad)


def convex_until(curves: PowerLawCurves) -> FloatArray:
    """The effort (n,) up to which each power law is convex, 0 where it is concave throughout."""
    beta = np.maximum(curves.beta, 1.0)
    with np.errstate(divide="ignore", over="ignore"):
        end: FloatArray = np.expm1((np.log((beta - 1) / (beta + 1)) - curves.alpha) / beta)
    return np.maximum(end, 0.0)


def convex_curves(game: RankingGame, grid: FloatArray) -> IntArray:
    """Positions (k, 1) of the developers that violate C2."""
    curves = game.curves
    if isinstance(curves, PowerLawCurves):
        who: IntArray = np.flatnonzero(convex_until(curves) > 0)
    else:
        who = np.array([violation.developers[0] for violation in check_concave(game, grid).violations], dtype=np.intp)
    return who.reshape(-1, 1)


def check_advantage(game: RankingGame, grid: FloatArray) -> Check:
    """C3 for scores that the more capable reaches with the efforts ``grid`` (G,)."""
    curves, order = game.curves, game.order
    cases = game.n * (game.n - 1) // 2
    good = "the lead in effort of the more capable does not shrink as the score grows"
    bad = "pairs in which that lead shrinks"
    if isinstance(curves, TranslationCurves):
        return judged("C3", [], cases, "closed form", good, bad)
    if not curves.strict:
        grid = grid[::CALLABLES_STEP]
    found: list[Violation] = []
    hidden = False
    alike = isinstance(curves, PowerLawCurves) and _alike(curves)
    for a, b in _pairs(game.n, grid.size):
        low, high = _beyond(curves, order[a], order[b], grid)
        size, at = numbers.falls(low, high)
        rows = np.flatnonzero(size > 0)
        found += _falls(game, grid, order[a[rows]], order[b[rows]], low[rows], high[rows], size[rows], at[rows])
        if isinstance(curves, PowerLawCurves) and alike:
            hidden |= bool((_falls_at_an_end(curves, order[a], order[b], grid[-1]) & (size <= 0)).any())
    if hidden and not found:
        reason = "some pair's advantage falls on a stretch shorter than the grid or within rounding"
        return Check("C3", "undecided", "closed form", 0, cases, (), reason)
    return judged("C3", found, cases, "closed form" if alike else "grid", good, bad)


def falling_pairs(game: RankingGame, grid: FloatArray) -> IntArray:
    """Positions (k, 2) of the pairs that violate C3 on the grid."""
    order = game.order
    nobody: IntArray = np.empty((0, 2), dtype=np.intp)
    if isinstance(game.curves, TranslationCurves):
        return nobody
    hits = [nobody]
    for a, b in _pairs(game.n, grid.size):
        bad = numbers.falls(*_beyond(game.curves, order[a], order[b], grid))[0] > 0
        hits.append(np.stack([order[b[bad]], order[a[bad]]], axis=1))
    return np.concatenate(hits)


def _beyond(curves: Curves, a: IntArray, b: IntArray, grid: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Brackets (P, G) of what b needs beyond a for the scores that a has at efforts ``grid``, (G,) or (P, G)."""
    low, high = curves.overtake(b[:, None], a[:, None], grid, 0.0)
    if curves.strict:
        return low - grid, high - grid
    mine = curves.overtake(a[:, None], a[:, None], grid, 0.0)  # on a plateau, its far end, as for b
    with np.errstate(invalid="ignore"):  # inf - inf: nothing is known
        least, most = low - mine[1], high - mine[0]
    unknown = np.isnan(least) | np.isnan(most)
    return np.where(unknown, -np.inf, least), np.where(unknown, np.inf, most)


def _falls(
    game: RankingGame,
    grid: FloatArray,
    a: IntArray,
    b: IntArray,
    low: FloatArray,
    high: FloatArray,
    size: FloatArray,
    at: IntArray,
) -> list[Violation]:
    """The violations of pairs (P,) whose brackets (P, G) fall."""
    curves = game.curves
    row, first, last = numbers.runs(high[:, 1:] < low[:, :-1])
    last = last + 1
    middle, ends = (grid[first] + grid[last]) / 2, []
    for inner, outer in (
        (np.minimum(grid[first + 1], middle), grid[np.maximum(first - 1, 0)]),
        (np.maximum(grid[last - 1], middle), grid[np.minimum(last + 1, grid.size - 1)]),
    ):
        step = TURN * np.abs(outer - inner)

        def falling(x: FloatArray, step: FloatArray = step) -> numbers.BoolArray:
            here, there = (_beyond(curves, a[row], b[row], (x + way)[:, None]) for way in (0.0, step))
            return np.asarray((there[1] < here[0])[:, 0])

        ends.append(numbers.boundary(inner, outer, falling))
    start, stop = (_beyond(curves, a[row], b[row], end[:, None]) for end in ends)
    size, target = size.copy(), curves.score(a, grid[at]).copy()
    drop, targets = (start[0] - stop[1])[:, 0], [curves.score(a[row], end) for end in ends]
    for k, pair in enumerate(row):  # from one end of a range to the other it may fall by more than between points
        if drop[k] > size[pair]:
            size[pair], target[pair] = drop[k], targets[1][k]
    return _violations(np.stack([b, a], axis=1), row, targets[0], targets[1], target, size)


def _falls_at_an_end(curves: PowerLawCurves, a: IntArray, b: IntArray, top: float) -> numbers.BoolArray:
    """Whether k' < 1 at 0 or at ``top``, or b is ahead at 0, for curves with common bounds."""
    ratio = curves.beta[a] / curves.beta[b]
    slope = np.log(ratio) + (curves.alpha[a] - curves.alpha[b]) / curves.beta[b]
    end = slope + (ratio - 1) * np.log1p(top)
    return np.asarray((np.minimum(slope, end) < 0) | (curves.alpha[b] > curves.alpha[a]))


def _alike(curves: PowerLawCurves) -> bool:
    return bool(np.ptp(curves.lower) == 0 and np.ptp(curves.upper) == 0)


def _pairs(n: int, points: int) -> Iterator[tuple[IntArray, IntArray]]:
    """All pairs of places (more capable, less capable), in blocks."""
    b, a = np.tril_indices(n, -1)
    size = max(1, ENTRIES_AT_ONCE // points)
    for start in range(0, a.size, size):
        yield a[start : start + size], b[start : start + size]


def _violations(
    developers: IntArray, row: IntArray, low: FloatArray, high: FloatArray, at: FloatArray, size: FloatArray
) -> list[Violation]:
    """One violation for each of (P, d) developers, with the ranges whose ``row`` names it; rows are in order."""
    cuts = np.searchsorted(row, np.arange(len(developers) + 1))
    spans = [(float(x), float(y)) for x, y in zip(low, high, strict=True)]
    return [
        Violation(tuple(map(int, who)), tuple(spans[cuts[k] : cuts[k + 1]]), float(at[k]), float(size[k]))
        for k, who in enumerate(developers)
    ]


def judged(name: str, found: list[Violation], cases: int, proof: Proof, good: str, bad: str) -> Check:
    """The check of an assumption from its violations; the largest are kept."""
    kept = tuple(sorted(found, key=lambda violation: -violation.size)[:KEPT])
    told = f"{len(found)} of {cases} {bad}" if found else good
    return Check(name, "violated" if found else "holds", proof, len(found), cases, kept, told)
