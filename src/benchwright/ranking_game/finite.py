"""The ranking game on a few effort levels, in exact arithmetic: pure equilibria, best-reply cycles, mixed equilibria.

Numbers are read as written, so that 0.3 - 3 * 0.1 is 0: a float is the shortest decimal that prints as it. There is no
tolerance. An equilibrium is strict where every other reply of every developer earns less.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from math import comb, lcm, prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from benchwright._shown import Headline, Shown, ShownPart
from benchwright.errors import UsageError
from benchwright.ranking_game._mixed import contest_equilibrium, extreme_equilibria
from benchwright.ranking_game.game import TIE_RULES, TieRule, developer_name

if TYPE_CHECKING:
    import polars as pl

PROFILES_AT_MOST = 2_000_000
ELIMINATIONS_AT_MOST = 4_000  # C(K1 + K2, K1) up to which mixed equilibria are enumerated: 7 levels each
Row = tuple[Fraction, ...]


@dataclass(frozen=True, eq=False)
class FiniteGame(Shown):
    """Developers who choose among a few effort levels each; the higher score ranks first.

    Parameters
    ----------
    rewards : (n,) reward of rank 1..n
        Must not increase with the rank.
    efforts : levels for all, or one sequence of levels a developer
    costs : cost of each level, in the same layout; at least 0
    scores : score of each level, in the same layout, optional
        By default the effort: all developers are equally capable.
    ties : "shared" or "capability"
        Tied developers share the rewards of their ranks evenly, or the one listed first ranks first.
    names : sequence of n str, optional

    Examples
    --------
    >>> game = FiniteGame([0.6, 0.0], efforts=[0, 1, 2, 3], costs=[0, 0.1, 0.2, 0.3])
    >>> print(solve_finite(game))
    Finite ranking game of 2 developers, 16 profiles, exact arithmetic (tolerance 0)
      (3, 3): a pure equilibrium, weak; payoffs 0, 0
      mixed: developer 1 (1/3, 0, 0, 2/3), developer 2 (1/3, 0, 0, 2/3); payoffs 1/10, 1/10
      mixed: developer 1 (1/3, 0, 0, 2/3), developer 2 (0, 0, 0, 1); payoffs 0, 1/10
      mixed: developer 1 (0, 0, 0, 1), developer 2 (1/3, 0, 0, 2/3); payoffs 1/10, 0
    """

    rewards: Row
    _: KW_ONLY
    efforts: tuple[Row, ...]
    costs: tuple[Row, ...]
    scores: tuple[Row, ...] | None = None
    ties: TieRule = "shared"
    names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        rewards = _row("rewards", self.rewards)
        n = len(rewards)
        if n < 2:
            raise UsageError(f"a ranking needs at least two developers, got {n}")
        for r in range(n - 1):
            if rewards[r] < rewards[r + 1]:
                raise UsageError(
                    f"`rewards` must not increase with the rank, got {float(rewards[r + 1]):g} for {r + 2}"
                )
        efforts = _table("efforts", self.efforts, n)
        costs = _table("costs", self.costs, n)
        scores = efforts if self.scores is None else _table("scores", self.scores, n)
        for name, table in {"costs": costs, "scores": scores}.items():
            for i, row in enumerate(table):
                if len(row) != len(efforts[i]):
                    raise UsageError(
                        f"`{name}` must hold one entry a level, {len(efforts[i])} for developer {i + 1}, got {len(row)}"
                    )
        if (least := min(map(min, costs))) < 0:
            raise UsageError(f"`costs` must be >= 0, got {float(least):g}")
        if self.ties not in TIE_RULES:
            raise UsageError(f"`ties` must be one of {', '.join(TIE_RULES)}, got {self.ties!r}")
        names = None if self.names is None else tuple(map(str, self.names))
        if names is not None and (len(names) != n or len(set(names)) < n):
            raise UsageError(f"`names` must hold {n} different names, one a developer")
        if (profiles := prod(map(len, efforts))) > PROFILES_AT_MOST:
            raise UsageError(f"{profiles:,} profiles are too many to enumerate", hint="take fewer levels")
        clean = {"rewards": rewards, "efforts": efforts, "costs": costs, "scores": scores, "names": names}
        for name, value in clean.items():
            object.__setattr__(self, name, value)

    @property
    def n(self) -> int:
        """Number of developers."""
        return len(self.rewards)

    def name(self, position: int) -> str:
        return developer_name(self.names, position)

    def payoff(self, levels: Sequence[int], i: int) -> Fraction:
        """Payoff of developer i, from the definition."""
        scores = self.scores
        assert scores is not None  # noqa: S101  filled in when the game was made
        mine = scores[i][levels[i]]
        others = [(scores[k][levels[k]], k) for k in range(self.n) if k != i]
        if self.ties == "shared":
            ahead = sum(score > mine for score, _ in others)
            tied = sum(score == mine for score, _ in others) + 1
            reward = sum(self.rewards[ahead : ahead + tied], Fraction(0)) / tied
        else:
            reward = self.rewards[sum(score > mine or (score == mine and k < i) for score, k in others)]
        return reward - self.costs[i][levels[i]]

    def regret(self, levels: Sequence[int]) -> Fraction:
        """Largest gain of one developer from another level, from the definition."""
        best = Fraction(0)
        for i in range(self.n):
            now = self.payoff(levels, i)
            for level in range(len(self.efforts[i])):
                best = max(best, self.payoff([*levels[:i], level, *levels[i + 1 :]], i) - now)
        return best


@dataclass(frozen=True, slots=True)
class PureEquilibrium:
    """A pure equilibrium: level of each developer, whether strict, payoffs."""

    levels: tuple[int, ...]
    efforts: Row
    strict: bool
    payoffs: Row


@dataclass(frozen=True, slots=True)
class MixedEquilibrium:
    """An extreme mixed equilibrium of two developers: probability of each level, payoffs."""

    strategies: tuple[Row, Row]
    payoffs: Row


@dataclass(frozen=True, slots=True, eq=False)
class FiniteSolution(Shown):
    """What ``solve_finite`` found; every profile was checked again from the definition.

    Where there is no pure equilibrium ``cycle`` holds the profiles that best replies go round in, and ``path`` those
    before. ``mixed`` is None where no mixed equilibria were sought; where they are too many to enumerate and ties go by
    capability it holds one, and ``all_mixed`` is False.
    """

    game: FiniteGame
    pure: tuple[PureEquilibrium, ...]
    mixed: tuple[MixedEquilibrium, ...] | None
    path: tuple[tuple[int, ...], ...]
    cycle: tuple[tuple[int, ...], ...]
    profiles: int
    all_mixed: bool

    def _efforts(self, levels: Sequence[int]) -> list[float]:
        return [float(self.game.efforts[i][level]) for i, level in enumerate(levels)]

    def _told(self) -> Iterable[ShownPart]:
        game = self.game
        yield Headline(
            f"Finite ranking game of {game.n} developers, {self.profiles:,} profiles, exact arithmetic (tolerance 0)"
        )
        for e in self.pure:
            yield (
                f"  ({', '.join(map(str, e.efforts))}): a pure equilibrium, {'strict' if e.strict else 'weak'};"
                f" payoffs {', '.join(map(str, e.payoffs))}"
            )
        if not self.pure:
            steps = " -> ".join(f"({', '.join(f'{x:g}' for x in self._efforts(p))})" for p in self.cycle)
            yield f"  no pure equilibrium: best replies go round {steps}"
        for found in self.mixed or ():
            if any(0 < share < 1 for row in found.strategies for share in row):
                told = ", ".join(
                    f"{game.name(i)} ({', '.join(map(str, row))})" for i, row in enumerate(found.strategies)
                )
                yield f"  mixed: {told}; payoffs {', '.join(map(str, found.payoffs))}"
        if self.mixed is None:
            yield "  mixed equilibria are enumerated for two developers with few levels only"
        elif not self.all_mixed:
            yield "  there may be more mixed equilibria: with so many levels they are not enumerated"

    def to_frame(self) -> pl.DataFrame:
        """One row a pure equilibrium and developer: equilibrium, developer, effort, payoff, strict."""
        import polars as pl

        rows = [
            (k, self.game.name(i), float(e.efforts[i]), float(e.payoffs[i]), e.strict)
            for k, e in enumerate(self.pure)
            for i in range(self.game.n)
        ]
        schema = {"equilibrium": pl.Int64, "developer": pl.String, "effort": pl.Float64, "payoff": pl.Float64}
        return pl.DataFrame(rows, schema=schema | {"strict": pl.Boolean}, orient="row")

    def to_dict(self) -> dict[str, Any]:
        """The keys of ``GameSolution.to_dict``, and exact numbers as text, in types that JSON knows."""
        first = [0] * self.game.n
        reason = (
            f"all {self.profiles} profiles were compared in exact arithmetic (tolerance 0)"
            if self.pure
            else f"each of all {self.profiles} profiles has a profitable deviation, in exact arithmetic (tolerance 0)"
        )
        return {
            "pure_equilibrium": "exists" if self.pure else "none",
            "unique": len(self.pure) == 1 if self.pure else None,
            "profiles": [[float(x) for x in e.efforts] for e in self.pure],
            "certificate": {
                "reason": reason,
                "strict": [e.strict for e in self.pure],
                "payoffs": [[str(x) for x in e.payoffs] for e in self.pure],
                "path": [self._efforts(p) for p in self.path],
                "cycle": [self._efforts(p) for p in self.cycle],
            },
            "max_regret": 0.0 if self.pure else float(self.game.regret(first)),
            "just_overtake": [],
            "threshold": None,
            "all_mixed": self.all_mixed,
            "mixed": None
            if self.mixed is None
            else [
                {
                    "strategies": [[float(x) for x in row] for row in m.strategies],
                    "exact": [[str(x) for x in row] for row in m.strategies],
                    "payoffs": [float(x) for x in m.payoffs],
                }
                for m in self.mixed
            ],
            "developers": [self.game.name(i) for i in range(self.game.n)],
            "ties": self.game.ties,
        }


def solve_finite(game: FiniteGame) -> FiniteSolution:
    """Enumerate pure equilibria, or show the best-reply cycle; for two developers also the extreme mixed equilibria.

    Best replies start at everyone's first level; developers move in turn, and stay where they cannot gain.
    """
    payoffs = _payoffs(game)
    best = [values == values.max(axis=i, keepdims=True) for i, values in enumerate(payoffs)]
    alone = [mask.sum(axis=i, keepdims=True) == 1 for i, mask in enumerate(best)]
    held = np.logical_and.reduce(best)
    firm = np.logical_and.reduce([held, *(np.broadcast_to(part, held.shape) for part in alone)])
    pure = []
    for place in np.argwhere(held):
        levels = tuple(int(level) for level in place)
        if game.regret(levels) != 0:
            raise AssertionError(f"profile {levels} fails the check of its regret")
        efforts = tuple(game.efforts[i][level] for i, level in enumerate(levels))
        earned = tuple(game.payoff(levels, i) for i in range(game.n))
        pure.append(PureEquilibrium(levels, efforts, bool(firm[levels]), earned))
    path, cycle = ((), ()) if pure else _cycle(payoffs)
    mixed, everything = None, False
    if game.n == 2:
        sizes = [len(row) for row in game.efforts]
        everything = comb(sum(sizes), sizes[0]) <= ELIMINATIONS_AT_MOST
        if everything or (game.ties == "capability" and game.rewards[0] > game.rewards[1]):
            mixed = _mixed(game, everything)
    return FiniteSolution(game, tuple(pure), mixed, path, cycle, int(held.size), everything)


def _payoffs(game: FiniteGame) -> list[NDArray[Any]]:
    """Payoffs of each developer over all profiles, as whole numbers of one small unit, (K_1, ..., K_n) each."""
    n, rewards = game.n, game.rewards
    scores, costs = game.scores, game.costs
    assert scores is not None  # noqa: S101
    worth = [[sum(rewards[a : a + t], Fraction(0)) / t for t in range(1, n - a + 1)] for a in range(n)]
    parts = [value for row in worth for value in row] + [value for row in costs for value in row]
    unit = lcm(*(value.denominator for value in parts))
    kind: Any = np.int64 if max(abs(value * unit) for value in parts) < 2**61 else object
    table = np.zeros((n, n), dtype=kind)
    for a, row in enumerate(worth):
        table[a, : len(row)] = [int(value * unit) for value in row]
    place = {value: k for k, value in enumerate(sorted({value for row in scores for value in row}))}
    axes = [
        np.array([place[value] for value in row]).reshape([-1 if k == i else 1 for k in range(n)])
        for i, row in enumerate(scores)
    ]
    result = []
    for i in range(n):
        ahead: Any = 0
        tied: Any = 0
        for k in range(n):
            if k == i:
                continue
            level = axes[k] == axes[i]
            ahead = ahead + (axes[k] > axes[i]) + (level if game.ties == "capability" and k < i else 0)
            tied = tied + (level if game.ties == "shared" else 0)
        shape = [len(row) for row in scores]
        paid = np.array([int(value * unit) for value in costs[i]], dtype=kind).reshape(axes[i].shape)
        result.append(np.broadcast_to(table[ahead, tied] - paid, shape))
    return result


def _cycle(payoffs: Sequence[NDArray[Any]]) -> tuple[tuple[tuple[int, ...], ...], tuple[tuple[int, ...], ...]]:
    """Profiles before, and in, the cycle of best replies from everyone's first level; developers move in turn."""
    n, levels, mover, idle = len(payoffs), [0] * len(payoffs), 0, 0
    seen: dict[tuple[tuple[int, ...], int], int] = {}
    walk: list[tuple[int, ...]] = [tuple(levels)]
    while idle < n and (tuple(levels), mover) not in seen:
        seen[tuple(levels), mover] = len(walk) - 1
        line = payoffs[mover][tuple(slice(None) if k == mover else level for k, level in enumerate(levels))]
        reply = int(line.argmax())
        if line[reply] > line[levels[mover]]:
            levels[mover], idle = reply, 0
            walk.append(tuple(levels))
        else:
            idle += 1
        mover = (mover + 1) % n
    start = seen[tuple(levels), mover]
    return tuple(walk[:start]), tuple(walk[start:-1])


def _mixed(game: FiniteGame, everything: bool) -> tuple[MixedEquilibrium, ...]:
    """All extreme mixed equilibria of two developers, or one."""
    sizes = [len(row) for row in game.efforts]
    if everything:
        A, B = ([[game.payoff((a, b), i) for b in range(sizes[1])] for a in range(sizes[0])] for i in (0, 1))
        candidates = extreme_equilibria(A, B)
    else:
        assert game.scores is not None  # noqa: S101  filled in when the game was made
        first, second = contest_equilibrium(game.rewards[0] - game.rewards[1], game.scores, game.costs)
        candidates = [(tuple(first), tuple(second))]
    found = []
    for x, y in candidates:
        earned = []
        for i in (0, 1):  # the check: no level earns more against the other's mixture
            mine, theirs = (x, y) if i == 0 else (y, x)
            replies = [
                sum((p * game.payoff((k, m) if i == 0 else (m, k), i) for m, p in enumerate(theirs)), Fraction(0))
                for k in range(sizes[i])
            ]
            earned.append(sum((p * value for p, value in zip(mine, replies, strict=True)), Fraction(0)))
            if max(replies) != earned[i]:
                raise AssertionError(f"mixture {x}, {y} fails the check of its regret")
        found.append(MixedEquilibrium((x, y), tuple(earned)))
    return tuple(found)


def written(name: str, value: Any) -> Fraction:
    """The number as written: a fraction, a whole number, a decimal, or a float as the shortest decimal that prints it.

    >>> written("cost", 0.3) == 3 * written("cost", 0.1)
    True
    """
    try:
        return value if isinstance(value, Fraction) else Fraction(str(value))
    except (ValueError, ZeroDivisionError):
        raise UsageError(f"`{name}` must hold finite numbers, got {value!r}") from None


def _row(name: str, values: Any) -> Row:
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise UsageError(f"`{name}` must be a list of numbers, got {values!r}")
    return tuple(written(name, value) for value in values)


def _table(name: str, values: Any, n: int) -> tuple[Row, ...]:
    """One row a developer; a flat list is every developer's."""
    rows = list(values)
    if rows and not any(isinstance(row, Iterable) and not isinstance(row, str) for row in rows):
        rows = [rows] * n
    if len(rows) != n:
        raise UsageError(f"`{name}` must be one list for all, or {n} lists, one a developer, got {len(rows)}")
    table = tuple(_row(name, row) for row in rows)
    if not all(table):
        raise UsageError(f"`{name}` must hold at least one level for each developer")
    return table
