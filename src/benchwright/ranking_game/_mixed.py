"""Mixed equilibria of two players: all extreme ones of any game, and one of a contest on effort levels.

All: player 1's x (K1) lies in P = {x >= 0, B'x <= 1}, player 2's y (K2) in Q = {Ay <= 1, y >= 0}, payoffs A, B > 0,
both (K1, K2). A vertex carries the labels of its tight constraints: own strategies not used, other's strategies that
are best replies. A pair of vertices other than the origins that carries all K1 + K2 labels is, scaled to sum 1, an
equilibrium, and every equilibrium is a mixture of such pairs (von Stengel, in Nisan et al. 2007, chapter 3).

One of a contest: let the developers answer each other with the cheapest level that wins, from their cheapest levels on,
as long as it costs less than the reward gap. Against a rival who plays only these levels any other costs more than the
one below it that wins as often, so that an equilibrium on them is one of the game. On them each level wins against one
more level of the rival than the one before, so that the costs of one developer give the chances of the other.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations, pairwise
from typing import Any

Row = tuple[Fraction, ...]
Levels = Sequence[Sequence[Any]]  # fractions or floats, one sequence a developer


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


def contest_equilibrium(gap: Any, scores: Levels, costs: Levels) -> list[list[Any]]:
    """Return one equilibrium of a contest of two: chances of each developer's levels, in the arithmetic of the input.

    The higher score wins the reward ``gap`` > 0, ties go to the first developer. Levels may come in any order; K of
    them take O(K log K).
    """
    kept = [_undominated(*row) for row in zip(scores, costs, strict=True)]
    value = [[row[k] for k in keep] for row, keep in zip(scores, kept, strict=True)]
    extra = [[row[k] - row[keep[0]] for k in keep] for row, keep in zip(costs, kept, strict=True)]
    ahead = 0 if value[0][0] >= value[1][0] else 1
    reach = bisect_left, bisect_right  # to win, the first developer must reach a score, the second exceed it
    chain = [0], [0]
    mover, top = 1 - ahead, value[ahead][0]
    while (k := reach[mover](value[mover], top)) < len(value[mover]) and extra[mover][k] < gap:
        chain[mover].append(k)
        mover, top = 1 - mover, value[mover][k]
    first, second = ([extra[who][k] / gap for k in chain[who]] for who in (ahead, 1 - ahead))
    none, one = gap - gap, gap / gap
    # chances to play at most a level: the rival's cost of the next one, which beats it, and its payoff, by gap
    if mover == ahead:  # who was behind ends on top
        up_to = [[one - second[-1] + cost for cost in second[1:]], [*first, one]]
    else:
        up_to = [[*second[1:], one], [one - first[-1] + cost for cost in first]]
    result = [[none] * len(row) for row in costs]
    for who, below in zip((ahead, 1 - ahead), up_to, strict=True):
        shares = [below[0], *(b - a for a, b in pairwise(below))]
        for k, share in zip(chain[who], shares, strict=True):
            result[who][kept[who][k]] = share
    return result


def _undominated(scores: Sequence[Any], costs: Sequence[Any]) -> list[int]:
    """Return the levels that score more than all cheaper ones, cheapest first."""
    kept: list[int] = []
    for k in sorted(range(len(costs)), key=lambda k: (costs[k], -scores[k])):
        if not kept or scores[k] > scores[kept[-1]]:
            kept.append(k)
    return kept


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
