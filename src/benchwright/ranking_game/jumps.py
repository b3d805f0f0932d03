"""Jumps: what it costs one developer to overtake another, for all pairs of a profile at once, and whether it pays."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchwright._check import FloatArray
from benchwright._json import json_safe
from benchwright.ranking_game._curves import EPS, LONGEST, ROUNDINGS
from benchwright.ranking_game.costs import PowerCosts
from benchwright.ranking_game.finite import written
from benchwright.ranking_game.forms import IntArray, TranslationCurves
from benchwright.ranking_game.game import RankingGame

PAIRS_AT_ONCE = 1 << 18
EXACT_AT_MOST = 20_000  # pairs that double precision cannot tell and that are looked at in exact arithmetic


@dataclass(frozen=True, slots=True)
class Jump:
    """One developer overtaking another who stays where it is.

    ``required_effort`` is the infimum of the effort that overtakes, inf where no effort does, NaN where double
    precision cannot tell; ``cost`` is its cost, ``reward_gap`` what the better rank earns more. ``pays`` is None where
    that cannot be told.
    """

    developer: int
    over: int
    rank: int
    rank_over: int
    required_effort: float
    cost: float
    reward_gap: float
    pays: bool | None

    @property
    def margin(self) -> float:
        """Cost less the reward gap."""
        return self.cost - self.reward_gap

    def to_dict(self, game: RankingGame) -> dict[str, Any]:
        """All fields, with the developers' names, in types that JSON knows; null where out of reach."""
        return {
            "developer": game.name(self.developer),
            "over": game.name(self.over),
            "rank": self.rank,
            "rank_over": self.rank_over,
            "required_effort": json_safe(self.required_effort),
            "cost": json_safe(self.cost),
            "reward_gap": self.reward_gap,
            "margin": json_safe(self.margin),
            "pays": self.pays,
        }


@dataclass(frozen=True, slots=True, eq=False)
class PairScan:
    """All jumps from a profile.

    ``binding`` has the least margin, ``paying`` surely pays most, ``unsure`` is one of the ``n_unsure`` that double
    precision cannot judge.
    """

    pairs: int
    binding: Jump
    paying: Jump | None
    unsure: Jump | None
    n_unsure: int


@dataclass(frozen=True, slots=True, eq=False)
class Jumps:
    """Brackets of several jumps, in arrays (k,); ranks count from 0."""

    low: FloatArray
    high: FloatArray
    cost_low: FloatArray
    cost_high: FloatArray
    gap: FloatArray

    @property
    def required(self) -> FloatArray:
        """One value in the bracket."""
        return _middle(self.low, self.high)

    @property
    def cost(self) -> FloatArray:
        return _middle(self.cost_low, self.cost_high)

    @property
    def slack(self) -> FloatArray:
        """Rounding of the margin, 0 where the cost is out of bounds."""
        size = np.where(np.isfinite(self.cost_high), self.cost_high, 0.0) + self.gap
        return ROUNDINGS * EPS * size

    @property
    def pays(self) -> NDArray[np.bool_]:
        """Whether the jump surely pays."""
        return self.cost_high - self.gap < -self.slack

    @property
    def safe(self) -> NDArray[np.bool_]:
        """Whether the jump surely does not pay."""
        safe: NDArray[np.bool_] = (self.gap == 0) | (self.cost_low - self.gap > self.slack)
        return safe


def _middle(low: FloatArray, high: FloatArray) -> FloatArray:
    """The middle of brackets: inf where even the low end is out of reach, NaN where only the high end is."""
    with np.errstate(invalid="ignore"):
        middle = np.where(np.isfinite(high), low + (high - low) / 2, np.where(low < LONGEST / 16, np.nan, np.inf))
    return np.where(low == high, low, middle)


def jumps(game: RankingGame, order: IntArray, efforts: FloatArray, lower: IntArray, upper: IntArray) -> Jumps:
    """Return the jumps of the developers ranked ``lower`` over those ranked ``upper`` (k,), counted from 0.

    ``order`` (n,) is the published order at ``efforts`` (n,).
    """
    who, other = order[lower], order[upper]
    low, high = game.curves.overtake(who, other, efforts[other], game.tune_before_test)
    gap = game.rewards[upper] - game.rewards[lower]
    return Jumps(low, high, game.costs.cost(who, low), game.costs.cost(who, high), gap)


def scan(game: RankingGame, order: IntArray, efforts: FloatArray) -> PairScan:
    """Look at the jumps of all n(n-1)/2 pairs from a profile at which nobody pays for effort."""
    binding: tuple[float, Jump] | None = None
    paying: tuple[float, Jump] | None = None
    unsure: list[Jump] = []
    n_unsure = 0
    for lower, upper in _pairs(game.n):
        found = jumps(game, order, efforts, lower, upper)
        margin = np.where(np.isnan(found.cost), found.cost_low, found.cost) - found.gap
        k = int(margin.argmin())
        if binding is None or margin[k] < binding[0]:
            binding = float(margin[k]), decided(game, efforts, jump_of(order, found, lower, upper, k))
        sure = np.where(found.pays, found.cost_high - found.gap, np.inf)
        k = int(sure.argmin())
        if sure[k] < (np.inf if paying is None else paying[0]):
            paying = float(sure[k]), jump_of(order, found, lower, upper, k)
        still_open = np.flatnonzero(~found.pays & ~found.safe)
        for k in still_open[:EXACT_AT_MOST]:
            jump = decided(game, efforts, jump_of(order, found, lower, upper, int(k)))
            if jump.pays is None:
                unsure.append(jump)
                break
            n_unsure -= 1
            if jump.pays and paying is None:
                paying = 0.0, jump
        n_unsure += still_open.size
    assert binding is not None  # noqa: S101  there are at least two developers
    first = unsure[0] if unsure else binding[1] if n_unsure else None
    return PairScan(game.n * (game.n - 1) // 2, binding[1], None if paying is None else paying[1], first, n_unsure)


def jump_of(order: IntArray, found: Jumps, lower: IntArray, upper: IntArray, k: int) -> Jump:
    """One jump of an array of them."""
    return Jump(
        developer=int(order[lower[k]]),
        over=int(order[upper[k]]),
        rank=int(lower[k]) + 1,
        rank_over=int(upper[k]) + 1,
        required_effort=float(found.required[k]),
        cost=float(found.cost[k]),
        reward_gap=float(found.gap[k]),
        pays=True if found.pays[k] else False if found.safe[k] else None,
    )


def decided(game: RankingGame, efforts: FloatArray, jump: Jump) -> Jump:
    """The jump, judged in exact arithmetic where double precision cannot and the forms are rational."""
    return jump if jump.pays is not None else replace(jump, pays=_exactly(game, efforts, jump))


def _pairs(n: int) -> Iterator[tuple[IntArray, IntArray]]:
    """All pairs of ranks (lower, upper), upper < lower, in blocks; neighbours come first within a rank."""
    first = 1
    while first < n:
        last = first + 1
        while last < n and (last + 1) * (last + 2) // 2 - first * (first + 1) // 2 < PAIRS_AT_ONCE:
            last += 1
        rows = np.arange(first, last)
        lower = np.repeat(rows, rows)
        start = np.repeat(np.cumsum(rows) - rows, rows)
        yield lower, lower - 1 - (np.arange(lower.size) - start)
        first = last


def _exactly(game: RankingGame, efforts: FloatArray, jump: Jump) -> bool | None:
    """Whether a jump pays, in fractions of the numbers as written, where the forms are rational; else None."""
    curves, costs, i, j = game.curves, game.costs, jump.developer, jump.over
    if not isinstance(curves, TranslationCurves) or not isinstance(costs, PowerCosts):
        return None
    exponent = float(costs.exponent[i])
    if not exponent.is_integer() or exponent > 64:
        return None
    theta_i, theta_j, its, free, kappa = (
        written("game", x) for x in (curves.theta[i], curves.theta[j], efforts[j], costs.free[i], costs.kappa[i])
    )
    gap = written("rewards", game.rewards[jump.rank_over - 1]) - written("rewards", game.rewards[jump.rank - 1])
    paid = max(theta_j - theta_i + its - free, Fraction(0))
    return bool(kappa * paid ** int(exponent) < gap)
