"""What a ranking costs where no pure equilibrium exists: mixed play, spend, and how often the board is wrong.

Two developers have a closed form (``race_of_two``). For more, and other games, scores are cut into cells, in which they
are uniform (``race_cells``), and the equilibrium found there (``_central_path``) comes with its exploitability: the
largest gain that any developer has from another cell. Orders are wrong where they differ from that of capability, also
where curves cross and less capable developers score higher with nobody spending.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from benchwright._check import FloatArray
from benchwright._json import json_safe
from benchwright._shown import Headline, Shown, ShownPart, ShownTable
from benchwright.errors import UsageError
from benchwright.ranking_game import _arms_race as numbers
from benchwright.ranking_game import _central_path as search
from benchwright.ranking_game.game import RankingGame
from benchwright.ranking_game.race_cells import slots_of
from benchwright.ranking_game.race_of_two import RaceOfTwo, race_of_two

if TYPE_CHECKING:
    import polars as pl

ROUGH = 0.1  # gain within a cell, part of the top reward gap, that callables are refused for
TARGET = 1e-5  # exploitability, part of the top reward gap, at which the search stops


@dataclass(frozen=True, slots=True, eq=False)
class ArmsRace(Shown):
    """Mixed play of a ranking game; developers as given.

    Attributes
    ----------
    method : "closed form" or "interior point"
    exploitability : float, reward
        Largest gain of one developer from playing another cell; 0 for the closed form.
    off_grid : float, reward
        Largest gain from five positions within each cell: how coarse the cells are.
    spend, payoff : (n,) reward
        Expected cost and expected payoff of each developer.
    stays : (n,)
        Probability of staying at free effort; with cells, some of it may lie in the first ones instead.
    wrong_order, wrong_top : float
        Probability that the published order is not that of capability, and that its first is not the most capable.
    kendall_tau : float
        Expected Kendall tau of the published order with that of capability.
    cells, steps : int
        Cells of score, and steps of the search; 0 where none were needed.
    notes : tuple of str
        What the closed form rests on, or why two developers did without.
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
    notes: tuple[str, ...] = ()

    def _told(self) -> Iterable[ShownPart]:
        game = self.game
        yield Headline(
            f"Arms race of {game.n} developers at tune-before-test level {game.tune_before_test:g} ({self.method}): "
            f"exploitability {self.exploitability:.2g}" + (f", {self.off_grid:.2g} within cells" if self.cells else "")
        )
        yield (
            f"  expected spend {self.spend.sum():.4g}, wrong order {self.wrong_order:.4g}, wrong first "
            f"{self.wrong_top:.4g}, Kendall tau {self.kendall_tau:.4g}"
        )
        rows = [
            (game.name(int(i)), f"{self.spend[i]:.4g}", f"{self.payoff[i]:.4g}", f"{self.stays[i]:.4f}")
            for i in game.order
        ]
        yield ShownTable(("developer", "spend", "payoff", "stays"), rows)
        yield from (f"  {note}" for note in self.notes)

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


def arms_race(game: RankingGame, *, cells: int = 200, target: float = TARGET, closed_form: bool = True) -> ArmsRace:
    """Return mixed play of a ranking game, and what it costs.

    Parameters
    ----------
    game : RankingGame
        Callables are trusted to be continuous and non-decreasing. In mixed play ties have no chance, whoever wins them,
        but where curves share a plateau.
    cells : int >= n + 1
        Cells of score.
    target : float > 0
        Exploitability, as a part of R_1 - R_n, at which the search stops.
    closed_form : bool
        Take it where two developers meet its conditions.

    Raises
    ------
    UsageError
        For rewards that do not differ, scores at free effort that double precision cannot tell apart, and, without a
        closed form, callables with which a developer gains much within a cell, as where they share a plateau.

    Examples
    --------
    >>> from benchwright.ranking_game.forms import TranslationCurves
    >>> game = RankingGame(TranslationCurves([1.0, 0.5], "exponential"), [1.0, 0.0], names=("a", "b"))
    >>> print(arms_race(game))
    Arms race of 2 developers at tune-before-test level 0 (closed form): exploitability 0
      expected spend 0.5, wrong order 0.375, wrong first 0.375, Kendall tau 0.25
      developer  spend  payoff   stays
      a          0.125     0.5  0.5000
      b          0.375       0  0.5000
      costs strictly increase from 0
      curves strictly increase
    """
    if cells < game.n + 1:
        raise UsageError(f"`cells` must be at least {game.n + 1}, got {cells}")
    if not target > 0:
        raise UsageError(f"`target` must be > 0, got {target:g}")
    if game.rewards[0] == game.rewards[-1]:
        raise UsageError("an arms race needs rewards that differ")
    notes: tuple[str, ...] = ()
    if game.n == 2 and closed_form:
        found = race_of_two(game)
        if isinstance(found, RaceOfTwo):
            return _closed(game, found)
        notes = (f"no closed form: {found}",)
    return _discretised(game, cells, target, notes)


def _closed(game: RankingGame, found: RaceOfTwo) -> ArmsRace:
    order = list(found.order)
    spend, payoff, stays = np.empty(2), np.empty(2), np.empty(2)
    spend[order], payoff[order], stays[order] = found.spend, found.payoff, found.stays
    wrong = found.overtaken if order[0] == game.order[0] else 1 - found.overtaken
    return ArmsRace(
        game, "closed form", 0.0, 0.0, spend, payoff, stays, wrong, wrong, 1 - 2 * wrong, 0, 0, found.conditions
    )


def _discretised(game: RankingGame, cells: int, target: float, notes: tuple[str, ...]) -> ArmsRace:
    n, order = game.n, game.order
    scale = float(game.rewards[0] - game.rewards[-1])
    rewards = (game.rewards - game.rewards[-1]) / scale

    raw = slots_of(game, cells)
    unit = numbers.Slots(raw.allowed, raw.cost / scale, raw.is_cell, raw.places, raw.cost_at / scale)
    strategy, steps = search.equilibrium(unit, rewards, target=target)
    x, w = numbers.nodes(n)
    spend, payoff, stays = np.empty(n), np.empty(n), np.empty(n)
    spend[order] = scale * np.where(unit.allowed, unit.cost * strategy, 0.0).sum(axis=1)
    payoff[order] = scale * (numbers.payoffs(strategy, unit, rewards, x, w) * strategy).sum(axis=1) + game.rewards[-1]
    stays[order] = strategy[:, ~unit.is_cell].sum(axis=1)
    gain, inside = numbers.exploitability(strategy, unit, rewards)
    if not game.curves.strict and inside > ROUGH:
        raise UsageError(
            f"no mixed play found on {cells} cells: a developer gains {scale * inside:.3g} within one of them",
            hint="where curves share a plateau ties decide, which cells do not hold; else take more `cells`",
        )
    above = numbers.pairwise_above(strategy, unit)
    upper = np.triu_indices(n, 1)
    return ArmsRace(
        game=game,
        method="interior point",
        exploitability=scale * gain,
        off_grid=scale * inside,
        spend=spend,
        payoff=payoff,
        stays=stays,
        wrong_order=1 - numbers.order_chance(strategy),
        wrong_top=1 - numbers.top_chance(strategy, unit),
        kendall_tau=float((above[upper] - above.T[upper]).mean()),
        cells=int(unit.is_cell.sum()),
        steps=steps,
        notes=notes,
    )
