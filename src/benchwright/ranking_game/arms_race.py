"""What a ranking costs where no pure equilibrium exists: mixed play, spend, and how often the board is wrong.

Two developers have a closed form. Let G be the reward gap, k(x) the effort with which the weaker just overtakes the
stronger at effort x, c_W and c_S their costs, and xbar the effort with c_W(k(xbar)) = G. Where costs strictly increase
from 0, curves strictly increase, c_W(k(0)) < G and c_S(xbar) <= G,

    stronger:  F(x) = c_W(k(x)) / G on [0, xbar], with an atom at 0
    weaker:    0 with probability 1 - c_S(xbar)/G, else F(k(x)) = 1 - (c_S(xbar) - c_S(x)) / G.

For more developers, and other games, scores are cut into cells, in which they are uniform (``_arms_race``), and the
equilibrium found there comes with its exploitability: the largest gain that any developer has from another cell.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from benchwright._check import FloatArray
from benchwright._json import json_safe
from benchwright.errors import UsageError
from benchwright.ranking_game import _arms_race as numbers
from benchwright.ranking_game._curves import first_above
from benchwright.ranking_game.forms import IntArray
from benchwright.ranking_game.game import RankingGame

if TYPE_CHECKING:
    import polars as pl

QUADRATURE = 200
PLACES = np.linspace(0.0, 1.0, 5)
TARGET = 1e-3  # exploitability, part of the top reward gap, at which the search stops
STEPS = 60_000


@dataclass(frozen=True, slots=True, eq=False)
class ArmsRace:
    """Mixed play of a ranking game; developers as given.

    Attributes
    ----------
    method : "closed form", "linear programme" or "regret matching"
    exploitability : float, reward
        Largest gain of one developer from playing another cell; 0 for the closed form.
    off_grid : float, reward
        Largest gain from five positions within each cell: how coarse the cells are.
    spend, payoff : (n,) reward
        Expected cost and expected payoff of each developer.
    stays : (n,)
        Probability of staying at free effort.
    wrong_order, wrong_top : float
        Probability that the published order is not that of capability, and that its first is not the most capable.
    kendall_tau : float
        Expected Kendall tau of the published order with that of capability.
    cells, steps : int
        Cells of score, and steps of the search; 0 where none were needed.
    """

    game: RankingGame
    method: str
    exploitability: float
    off_grid: float
    spend: FloatArray
    payoff: FloatArray
    stays: FloatArray
    wrong_order: float
    wrong_top: float
    kendall_tau: float
    cells: int
    steps: int

    def __str__(self) -> str:
        game = self.game
        lines = [
            f"Arms race of {game.n} developers at tune-before-test level {game.tune_before_test:g} ({self.method}): "
            f"exploitability {self.exploitability:.2g}",
            f"  expected spend {self.spend.sum():.4g}, wrong order {self.wrong_order:.4g}, wrong first "
            f"{self.wrong_top:.4g}, Kendall tau {self.kendall_tau:.4g}",
        ]
        lines += [
            f"  {game.name(int(i)):<24} spend {self.spend[i]:>10.4g}  payoff {self.payoff[i]:>10.4g}  stays "
            f"{self.stays[i]:>7.4f}"
            for i in game.order
        ]
        return "\n".join(lines)

    def to_frame(self) -> pl.DataFrame:
        """One row a developer: developer, spend, payoff, stays."""
        import polars as pl

        names = [self.game.name(i) for i in range(self.game.n)]
        return pl.DataFrame({"developer": names, "spend": self.spend, "payoff": self.payoff, "stays": self.stays})

    def to_dict(self) -> dict[str, Any]:
        """All fields but the game, with names, in types that JSON knows."""
        record = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "game"}
        record["developers"] = [self.game.name(i) for i in range(self.game.n)]
        return {key: json_safe(value) for key, value in record.items()}


def arms_race(
    game: RankingGame, *, cells: int = 200, steps: int = STEPS, target: float = TARGET, closed_form: bool = True
) -> ArmsRace:
    """Return mixed play of a ranking game, and what it costs.

    Parameters
    ----------
    game : RankingGame
        Ties by capability; curves strictly increasing in effort (the named forms).
    cells : int >= n + 1
        Cells of score.
    steps : int
        At most so many steps of the search for more than two developers.
    target : float
        Exploitability, as a part of R_1 - R_n, at which the search stops.
    closed_form : bool
        Take it where two developers meet its conditions.

    Examples
    --------
    >>> from benchwright.ranking_game.forms import TranslationCurves
    >>> game = RankingGame(TranslationCurves([1.0, 0.5], "exponential"), [1.0, 0.0], names=("a", "b"))
    >>> print(arms_race(game))
    Arms race of 2 developers at tune-before-test level 0 (closed form): exploitability 0
      expected spend 0.5, wrong order 0.375, wrong first 0.375, Kendall tau 0.25
      a                        spend      0.125  payoff        0.5  stays  0.5000
      b                        spend      0.375  payoff          0  stays  0.5000
    """
    if not game.curves.strict:
        raise UsageError("an arms race needs curves that strictly increase with effort", hint="use a named form")
    if cells < game.n + 1:
        raise UsageError(f"`cells` must be at least {game.n + 1}, got {cells}")
    if game.rewards[0] == game.rewards[-1]:
        raise UsageError("an arms race needs rewards that differ")
    if game.n == 2 and closed_form:
        found = _two(game)
        if found is not None:
            return found
    return _discretised(game, cells, steps, target)


def _two(game: RankingGame) -> ArmsRace | None:
    """The closed form, or None where its conditions do not hold."""
    order, costs, delta = game.order, game.costs, game.tune_before_test
    s, w, gap = order[:1], order[1:], float(game.rewards[0] - game.rewards[1])

    def overtaking(x: FloatArray) -> FloatArray:
        low, high = game.curves.overtake(w, s, x, delta)
        return costs.cost(w, (low + high) / 2)

    zero = np.zeros(1)
    if costs.free.any() or overtaking(zero)[0] >= gap or game.curves.lead(s, zero, w, zero, delta)[0][0] <= 0:
        return None
    limit = costs.budget(w, np.array([gap]))
    low, high = game.curves.overtake(s, w, limit, delta)
    reach = float(costs.cost(s, (low + high) / 2)[0])
    if not reach <= gap:
        return None
    x, weight = np.polynomial.legendre.leggauss(QUADRATURE)
    spent, weight = reach * (x + 1) / 2, reach * weight / 2  # over what the stronger spends
    price = overtaking(costs.budget(s, spent))
    wins = float(price @ weight) / gap**2  # P(the weaker is first)
    spend, payoff, stays = np.empty(2), np.empty(2), np.empty(2)
    spend[order] = float((1 - price / gap) @ weight), gap * wins
    payoff[order] = game.rewards[0] - reach, game.rewards[1]
    stays[order] = overtaking(zero)[0] / gap, 1 - reach / gap
    return ArmsRace(game, "closed form", 0.0, 0.0, spend, payoff, stays, wins, wins, 1 - 2 * wins, 0, 0)


def _discretised(game: RankingGame, cells: int, steps: int, target: float) -> ArmsRace:
    n, order = game.n, game.order
    slots = _slots(game, order, cells)
    scale = float(game.rewards[0] - game.rewards[-1])
    rewards = (game.rewards - game.rewards[-1]) / scale
    unit = numbers.Slots(slots.allowed, slots.cost / scale, slots.is_cell, slots.places, slots.cost_at / scale)
    if n == 2:
        strategy, done, method = numbers.two_players(unit, 1.0), 0, "linear programme"
    else:
        strategy, done = numbers.iterate(unit, rewards, steps=steps, target=target)
        method = "regret matching"
    x, w = numbers.nodes(n)
    spend, payoff, stays = np.empty(n), np.empty(n), np.empty(n)
    spend[order] = scale * np.where(unit.allowed, unit.cost * strategy, 0.0).sum(axis=1)
    payoff[order] = scale * (numbers.payoffs(strategy, unit, rewards, x, w) * strategy).sum(axis=1) + game.rewards[-1]
    stays[order] = strategy[:, ~unit.is_cell].sum(axis=1)
    gain, inside = numbers.exploitability(strategy, unit, rewards)
    above = numbers.pairwise_above(strategy, unit)
    upper = np.triu_indices(n, 1)
    return ArmsRace(
        game=game,
        method=method,
        exploitability=scale * gain,
        off_grid=scale * inside,
        spend=spend,
        payoff=payoff,
        stays=stays,
        wrong_order=1 - numbers.order_chance(strategy),
        wrong_top=1 - numbers.top_chance(strategy, unit),
        kendall_tau=float((above[upper] - above.T[upper]).mean()),
        cells=int(unit.is_cell.sum()),
        steps=done,
    )


def _slots(game: RankingGame, order: IntArray, cells: int) -> numbers.Slots:
    """Cells between scores that effort worth its cost can reach, as many from each developer, and the starts."""
    n, delta, costs, curves = game.n, game.tune_before_test, game.costs, game.curves
    start = curves.key(order, delta + costs.free[order])
    if np.unique(start).size < n:
        raise UsageError("scores at free effort are too close for double precision to order")
    amounts = np.linspace(0.0, float(game.rewards[0] - game.rewards[-1]), cells + 1)
    who = np.repeat(order, cells + 1)
    reach = curves.key(who, delta + costs.budget(who, np.tile(amounts, n))).reshape(n, -1)
    limit = np.sort(reach[:, -1])[-2]  # above the second highest nobody needs to go
    pooled = np.sort(reach[reach <= limit])
    inner = np.quantile(pooled, np.linspace(0, 1, max(cells - n, 1) + 1))
    edges = np.unique(np.concatenate([inner, start[start <= limit], [limit]]))
    kinds = [(edge, i) for i, edge in enumerate(start)] + [(edge, n) for edge in edges[:-1]]
    kinds.sort(key=lambda entry: (entry[0], entry[1] == n))
    is_cell = np.array([kind == n for _, kind in kinds])
    owner = np.array([kind for _, kind in kinds])
    low = np.array([edge for edge, _ in kinds])
    high = low.copy()
    high[is_cell] = edges[1:]
    places = np.concatenate([numbers.nodes(n)[0], PLACES])
    at = low[:, None] + (high - low)[:, None] * places
    cost = np.stack([_cost_of(game, int(i), at.ravel()).reshape(at.shape) for i in order])
    allowed = np.where(is_cell, (low >= start[:, None]) & np.isfinite(cost[:, :, -1]), owner == np.arange(n)[:, None])
    k = places.size - PLACES.size
    inside = allowed & is_cell
    mean = np.where(inside, np.where(inside[:, :, None], cost[:, :, :k], 0.0) @ numbers.nodes(n)[1], 0.0)
    tried = np.where(allowed[:, :, None], np.where(is_cell[:, None], cost[:, :, k:], 0.0), np.inf)
    return numbers.Slots(allowed, mean, is_cell, PLACES, tried)


def _cost_of(game: RankingGame, developer: int, keys: FloatArray) -> FloatArray:
    """Cost of the effort that brings a developer to the scores ``keys``; 0 where free effort does, inf out of reach."""

    def curve(effort: FloatArray, which: IntArray) -> FloatArray:
        return game.curves.key(np.full(effort.size, developer), game.tune_before_test + effort)

    low, high = first_above(curve, keys)
    effort = np.where(np.isfinite(high), (low + high) / 2, np.inf)
    return game.costs.cost(np.full(keys.size, developer), effort)
