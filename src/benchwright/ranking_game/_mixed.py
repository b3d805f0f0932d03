"""Mixed equilibria of a two-player game in exact arithmetic: vertices of both best-reply polytopes, matched by labels.

Player 1's x (K1) lies in P = {x >= 0, B'x <= 1}, player 2's y (K2) in Q = {Ay <= 1, y >= 0}, payoffs A, B > 0, both
(K1, K2). A vertex carries the labels of its tight constraints: own strategies not used, other's strategies that are
best replies. A pair of vertices other than the origins that carries all K1 + K2 labels is, scaled to sum 1, an
equilibrium, and every equilibrium is a mixture of such pairs (von Stengel, in Nisan et al. 2007, chapter 3).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations

Row = tuple[Fraction, ...]


def extreme_equilibria(A: Sequence[Sequence[Fraction]], B: Sequence[Sequence[Fraction]]) -> list[tuple[Row, Row]]:
    """Return all extreme equilibria (x, y) of the game with payoffs A and B, in lexicographic order, largest first.

    Takes the time of C(K1 + K2, K1) eliminations of K1 x K1 and K2 x K2 systems.
    """
    k1, k2 = len(A), len(A[0])
    lift = 1 - min(min(map(min, A)), min(map(min, B)))  # a constant changes no reply; payoffs become positive
    first = _vertices([[B[i][j] + lift for i in range(k1)] for j in range(k2)])
    second = _vertices([[value + lift for value in row] for row in A])
    # labels 0..k1-1 are player 1's strategies, k1.. are player 2's; a vertex of Q names them the other way round
    found = []
    everything = frozenset(range(k1 + k2))
    for x, at_x in first.items():
        for y, at_y in second.items():
            labels = at_x | frozenset((label + k1) if label < k2 else label - k2 for label in at_y)
            if labels == everything and any(x) and any(y):
                found.append((_share(x), _share(y)))
    return sorted(found, reverse=True)


def _share(x: Row) -> Row:
    total = sum(x)
    return tuple(value / total for value in x)


def _vertices(rows: Sequence[Sequence[Fraction]]) -> dict[Row, frozenset[int]]:
    """Vertices of {z >= 0, rows z <= 1} with labels: k where z_k = 0, and len(z) + j where row j is tight."""
    size = len(rows[0])
    zero, one = Fraction(0), Fraction(1)
    found: dict[Row, frozenset[int]] = {}
    for tight in combinations(range(size + len(rows)), size):
        fixed = {k for k in tight if k < size}
        loose = [k for k in range(size) if k not in fixed]
        chosen = [rows[k - size] for k in tight if k >= size]
        part = _solve([[row[k] for k in loose] + [one] for row in chosen])
        if part is None or min(part, default=zero) < 0:
            continue
        z = [zero] * size
        for k, value in zip(loose, part, strict=True):
            z[k] = value
        sums = [sum((a * b for a, b in zip(row, z, strict=True) if b), zero) for row in rows]
        if max(sums) <= 1:
            labels = {k for k in range(size) if z[k] == 0} | {size + j for j, value in enumerate(sums) if value == 1}
            found[tuple(z)] = frozenset(labels)
    return found


def _solve(system: list[list[Fraction]]) -> list[Fraction] | None:
    """Solve a square system given with its right-hand side as last column; None where it is singular."""
    size = len(system)
    for column in range(size):
        pivot = next((r for r in range(column, size) if system[r][column]), None)
        if pivot is None:
            return None
        system[column], system[pivot] = system[pivot], system[column]
        top = system[column]
        scale = 1 / top[column]
        top[column:] = [value * scale for value in top[column:]]
        for r in range(size):
            factor = system[r][column]
            if r != column and factor:
                row = system[r]
                row[column:] = [value - factor * above for value, above in zip(row[column:], top[column:], strict=True)]
    return [row[-1] for row in system]
