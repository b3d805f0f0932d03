"""Ranking games whose score curves were fitted: one from the fit, and one from each bootstrap draw.

A draw of the parameters is a possible world: it has its own curves and its own order of capability, by the same rule.
What is said "in 90 % of draws" is said of these games.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from benchwright._check import FloatArray, finite_array
from benchwright.errors import UsageError
from benchwright.ranking_game.capability import CapabilityOrder, capability_of, capability_order, draw_orders
from benchwright.ranking_game.costs import Costs, PowerCosts
from benchwright.ranking_game.forms import PowerLawCurves
from benchwright.ranking_game.game import RankingGame

PARAMETERS = ("alpha", "beta", "lower", "upper")


@dataclass(frozen=True, slots=True, eq=False)
class FittedGame:
    """A game from fitted curves.

    Attributes
    ----------
    game : RankingGame
    capability : CapabilityOrder
    draws : tuple of RankingGame
        The same game in each bootstrap draw that makes one.
    left_out : dict
        Reason -> number of draws that make no game.
    """

    game: RankingGame
    capability: CapabilityOrder
    draws: tuple[RankingGame, ...]
    left_out: dict[str, int]

    @property
    def notes(self) -> tuple[str, ...]:
        """What was left out, one sentence a reason."""
        total = len(self.draws) + sum(self.left_out.values())
        return tuple(f"{n} of {total} draws make no game and are left out: {why}" for why, n in self.left_out.items())


def curves_of(parameters: Mapping[str, Any], capability: FloatArray | None = None) -> PowerLawCurves:
    """Power-law curves from ``alpha``, ``beta``, ``lower`` and ``upper``, each (n,)."""
    return PowerLawCurves(**{name: parameters[name] for name in PARAMETERS}, capability=capability)


def fitted_game(
    parameters: Mapping[str, Any],
    rewards: Any,
    *,
    names: Sequence[str],
    effort: float,
    costs: Costs | None = None,
    capability: Literal["limit", "tuned"] | Sequence[str] = "limit",
    tune_before_test: float = 0.0,
    draws: Mapping[str, Any] | None = None,
) -> FittedGame:
    """Make the ranking game of fitted power-law curves, and that of each draw.

    Parameters
    ----------
    parameters : mapping of (n,) arrays
        ``alpha``, ``beta``, ``lower``, ``upper``.
    rewards : (n,) reward of rank 1..n
    names : sequence of n str
    effort : float
        The largest effort that all models were measured at; see ``capability_order``.
    costs : Costs, optional
        c(e) = e by default; where they differ, in the order of ``names``.
    capability : "limit", "tuned" or names, best first
    draws : mapping of (B, n) arrays, optional
        A draw with parameters outside the form (beta at 0, L not below U) makes no game: ``left_out`` counts them.
        Developers whose capabilities tie in a draw stand there as in the fit.

    Examples
    --------
    >>> fitted = {"alpha": [-1.0, 0.0], "beta": [1.0, 1.0], "lower": [0.0, 0.0], "upper": [1.0, 1.0]}
    >>> made = fitted_game(fitted, [1.0, 0.0], names=["small", "large"], effort=100.0)
    >>> made.game.name(made.game.order[0]), made.capability.rule
    ('large', 'tuned')
    """
    for name in PARAMETERS:
        if name not in parameters or (draws is not None and name not in draws):
            raise UsageError(f"`parameters` must hold {', '.join(PARAMETERS)}; {name} is missing")
    values = {name: finite_array(name, parameters[name], ndim=1) for name in PARAMETERS}
    made = PowerCosts() if costs is None else costs
    order = capability_order(values, names=names, rule=capability, effort=effort)

    def game(own: Mapping[str, Any], power: FloatArray) -> RankingGame:
        curves = curves_of(own, power)
        return RankingGame(curves, rewards, costs=made, tune_before_test=tune_before_test, names=tuple(names))

    if draws is None:
        return FittedGame(game(values, order.capability), order, (), {})
    kept, left_out = _usable(draws, len(order.names))
    power = capability_of(draw_orders(kept, order)[0])
    worlds = tuple(game({name: kept[name][b] for name in PARAMETERS}, power[b]) for b in range(power.shape[0]))
    return FittedGame(game(values, order.capability), order.over(kept), worlds, left_out)


def _usable(draws: Mapping[str, Any], n: int) -> tuple[dict[str, FloatArray], dict[str, int]]:
    """Draws that make a game (B', n), and how many do not, by the first reason of each."""
    values = {name: np.asarray(draws[name], dtype=np.float64) for name in PARAMETERS}
    shape = values["alpha"].shape
    for name, value in values.items():
        if value.shape != shape or value.ndim != 2 or shape[1] != n:
            raise UsageError(f"`draws` must hold arrays (B, {n}), one row a draw, got {value.shape} for {name}")
    lower, upper = values["lower"], values["upper"]
    faults: dict[str, Any] = {
        "a parameter is not finite": ~np.isfinite(np.stack(list(values.values()))).all(axis=(0, 2)),
        "beta is not above 0": (values["beta"] <= 0).any(axis=1),
        "bounds are not 0 <= L < U <= 1": ((lower < 0) | (lower >= upper) | (upper > 1)).any(axis=1),
    }
    good, told = np.ones(shape[0], dtype=bool), {}
    for reason, bad in faults.items():
        if count := int((good & bad).sum()):
            told[reason] = count
        good &= ~bad
    return {name: value[good] for name, value in values.items()}, told
