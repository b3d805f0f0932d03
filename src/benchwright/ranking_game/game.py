"""The ranking game: developers choose effort on a benchmark, a leaderboard ranks scores and rewards ranks.

Developer i has capability theta_i and spends e_i >= 0 on the benchmark after the designer has tuned every model by the
same Delta (tune-before-test, TbT). Its score is v_i(Delta + e_i), its payoff R_rank(i) - c_i(e_i). Ties in the score go
to the more capable developer, or share the rewards of their ranks. Model: Chen, Zhang and Hardt, arXiv 2603.08371, with
the corrections of docs/explanation/ranking-game.md.
"""

from __future__ import annotations

import copy
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Literal, Self

import numpy as np

from benchwright._check import FloatArray, finite_array, non_negative
from benchwright._shown import Shown
from benchwright.errors import UsageError
from benchwright.ranking_game.costs import Costs, PowerCosts
from benchwright.ranking_game.forms import Curves, IntArray

TieRule = Literal["capability", "shared"]
TIE_RULES: tuple[TieRule, ...] = ("capability", "shared")


def developer_name(names: tuple[str, ...] | None, position: int) -> str:
    """The user's name of a developer, or ``developer 1`` and so on."""
    return f"developer {position + 1}" if names is None else names[position]


@dataclass(frozen=True, eq=False)
class RankingGame(Shown):
    """Score curves, rewards and costs of n developers.

    Parameters
    ----------
    curves : Curves of n developers
        ``TranslationCurves``, ``PowerLawCurves`` or ``FunctionCurves``; their capabilities must differ.
    rewards : (n,) reward of rank 1..n
        Must not increase with the rank.
    costs : Costs, reward per effort
        ``PowerCosts`` or ``FunctionCosts``; one for all or one a developer. By default c(e) = e.
    tune_before_test : float >= 0, effort
        Delta.
    ties : "capability" or "shared"
        Who ranks first among equal scores: the more capable, or all alike, with the mean of their ranks' rewards.
    names : sequence of n str, optional

    Raises
    ------
    UsageError
        For fewer than two developers, equal capabilities, rewards that increase, a score above 1 at Delta, and lengths
        that disagree.

    Examples
    --------
    >>> from benchwright.ranking_game.forms import TranslationCurves
    >>> game = RankingGame(TranslationCurves([1.0, 0.5], "exponential"), [1.0, 0.0])
    >>> game.payoffs([0.0, 0.6]), game.published_order([0.0, 0.6])
    (array([0. , 0.4]), array([1, 0]))
    """

    curves: Curves
    rewards: FloatArray
    _: KW_ONLY
    costs: Costs = field(default_factory=PowerCosts)
    tune_before_test: float = 0.0
    ties: TieRule = "capability"
    names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        n = self.curves.capability.size
        if n < 2:
            raise UsageError(f"a ranking needs at least two developers, got {n}")
        names = None if self.names is None else tuple(map(str, self.names))
        if names is not None and (len(names) != n or len(set(names)) < n):
            raise UsageError(f"`names` must hold {n} different names, one a developer, got {len(set(names))}")
        rewards = finite_array("rewards", self.rewards, ndim=1)
        if rewards.size != n:
            raise UsageError(f"`rewards` must hold {n} rewards, one a rank, got {rewards.size}")
        if (rising := np.flatnonzero(np.diff(rewards) > 0)).size:
            r = int(rising[0])
            raise UsageError(
                f"`rewards` must not increase with the rank, got {rewards[r]:g} for rank {r + 1} and "
                f"{rewards[r + 1]:g} for rank {r + 2}",
                hint="list the reward of rank 1 first",
            )
        if self.ties not in TIE_RULES:
            raise UsageError(f"`ties` must be one of {', '.join(TIE_RULES)}, got {self.ties!r}")
        order = np.argsort(-self.curves.capability, kind="stable")
        ability = self.curves.capability[order]
        if (same := np.flatnonzero(np.diff(ability) == 0)).size:
            pair = " and ".join(developer_name(names, int(order[k])) for k in (same[0], same[0] + 1))
            raise UsageError(
                f"capabilities must differ, those of {pair} are both {ability[same[0]]:g}",
                hint="ties go to the more capable developer, so the order must be known",
            )
        clean = {
            "rewards": rewards,
            "costs": self.costs.for_developers(n),
            "tune_before_test": non_negative("tune_before_test", self.tune_before_test),
            "names": names,
        }
        for name, value in clean.items():
            object.__setattr__(self, name, value)
        scores = self.scores(np.zeros(n))
        if (bad := np.flatnonzero(~((scores >= 0) & (scores <= 1)))).size:
            i = int(bad[0])
            raise UsageError(
                f"score of {self.name(i)} must lie in [0, 1], got {scores[i]:g} at effort {self.tune_before_test:g}"
            )

    @property
    def n(self) -> int:
        """Number of developers."""
        return int(self.rewards.size)

    @property
    def order(self) -> IntArray:
        """Positions of the developers (n,), most capable first."""
        return np.argsort(-self.curves.capability, kind="stable")

    def name(self, position: int) -> str:
        return developer_name(self.names, position)

    def at(self, delta: float) -> Self:
        """The same game at another tune-before-test level; the arrays are shared, not copied."""
        twin = copy.copy(self)
        object.__setattr__(twin, "tune_before_test", non_negative("delta", delta))
        return twin

    def profile(self, efforts: Any) -> FloatArray:
        """``efforts`` (n,) >= 0, checked."""
        clean = finite_array("efforts", efforts, ndim=1)
        if clean.size != self.n or clean.min() < 0:
            raise UsageError(f"a profile must hold {self.n} efforts >= 0, one a developer, got {clean.tolist()}")
        return clean

    def scores(self, efforts: Any) -> FloatArray:
        """Published scores (n,) in [0, 1]."""
        return self.curves.score(np.arange(self.n), self.tune_before_test + self.profile(efforts))

    def published_order(self, efforts: Any) -> IntArray:
        """Positions (n,) of the developers as published, best first; among ties the more capable first."""
        key = self.curves.key(np.arange(self.n), self.tune_before_test + self.profile(efforts))
        return np.lexsort((-self.curves.capability, -key))

    def payoffs(self, efforts: Any) -> FloatArray:
        """Reward of the rank less the cost of effort (n,)."""
        clean, who = self.profile(efforts), np.arange(self.n)
        order, earned = self.published_order(clean), np.empty(self.n)
        earned[order] = self.rewards
        if self.ties == "shared":
            key = self.curves.key(who, self.tune_before_test + clean)[order]
            group = np.cumsum(np.diff(key, prepend=key[0]) != 0)
            earned[order] = (np.bincount(group, self.rewards) / np.bincount(group))[group]
        return earned - self.costs.cost(who, clean)
