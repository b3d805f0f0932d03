"""What gaming costs, and how often the board is wrong, by tune-before-test level.

At a level with a pure equilibrium nobody pays, and the board shows the order of scores at free effort; elsewhere play
is mixed (``arms_race``). The order is wrong where it differs from that of capability: with curves that cross, tuning
that stops all spending can publish a wrong order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from benchwright._check import FloatArray, finite_array
from benchwright._json import json_safe
from benchwright._shown import Headline, Shown, ShownPart, ShownTable
from benchwright.errors import UsageError
from benchwright.ranking_game.arms_race import TARGET, arms_race
from benchwright.ranking_game.equilibrium import GameSolution, Verdict, solve
from benchwright.ranking_game.game import RankingGame

if TYPE_CHECKING:
    import polars as pl

REST = "pure equilibrium"
OPEN = "undecided"


@dataclass(frozen=True, slots=True, eq=False)
class RaceOverTuning(Shown):
    """One entry a level; NaN where undecided.

    Attributes
    ----------
    deltas : (D,) effort
    verdict : tuple of "exists", "none" or "undecided"
        Whether there is a pure equilibrium.
    method : tuple of str
        "pure equilibrium", "undecided", or the method of ``ArmsRace``.
    spend : (D, n) reward
        Expected cost of each developer, as given.
    wrong_order, wrong_top, kendall_tau : (D,)
        Probability that the published order is not that of capability, and that its first is not the most capable;
        expected Kendall tau of both orders.
    exploitability, off_grid : (D,) reward
        As in ``ArmsRace``; 0 at a pure equilibrium.
    reasons : tuple of str
        What decides, or why nothing does.
    """

    game: RankingGame
    deltas: FloatArray
    verdict: tuple[Verdict, ...]
    method: tuple[str, ...]
    spend: FloatArray
    wrong_order: FloatArray
    wrong_top: FloatArray
    kendall_tau: FloatArray
    exploitability: FloatArray
    off_grid: FloatArray
    reasons: tuple[str, ...]

    def _told(self) -> Iterable[ShownPart]:
        yield Headline(f"Arms race of {self.game.n} developers over tuning")
        rows = [
            (f"{delta:.6g}", f"{spend:.4g}", f"{order:.4g}", f"{top:.4g}", f"{tau:.4g}", f"{gain:.2g}", method)
            for delta, spend, order, top, tau, gain, method in zip(
                self.deltas,
                self.spend.sum(axis=1),
                self.wrong_order,
                self.wrong_top,
                self.kendall_tau,
                self.exploitability,
                self.method,
                strict=True,
            )
        ]
        heads = ("level", "spend", "wrong order", "wrong first", "Kendall tau", "exploitable", "method")
        yield ShownTable(heads, rows)
        yield from (f"  ! at {self.deltas[k]:g}: {self.reasons[k]}" for k, m in enumerate(self.method) if m == OPEN)

    def to_frame(self) -> pl.DataFrame:
        """One row a level: delta, verdict, method, spend of all, then the other fields."""
        import polars as pl

        numbers = ("wrong_order", "wrong_top", "kendall_tau", "exploitability", "off_grid")
        columns = {
            "delta": self.deltas,
            "verdict": self.verdict,
            "method": self.method,
            "spend": self.spend.sum(axis=1),
        }
        columns |= {name: getattr(self, name) for name in numbers} | {"reason": self.reasons}
        return pl.DataFrame(columns, nan_to_null=True)

    def to_dict(self) -> dict[str, Any]:
        """One record a level, with the spend of each developer, in types that JSON knows."""
        names = [self.game.name(i) for i in range(self.game.n)]
        levels: list[dict[str, Any]] = self.to_frame().to_dicts()
        for record, row in zip(levels, self.spend, strict=True):
            record["spend_by_developer"] = dict(zip(names, json_safe(row), strict=True))
        return {"levels": levels}


def race_over_tuning(
    game: RankingGame,
    deltas: Sequence[float] | FloatArray,
    *,
    cells: int = 200,
    target: float = TARGET,
    progress: Callable[[str], None] | None = None,
) -> RaceOverTuning:
    """Solve a game at several levels of tuning, and find its mixed play where no pure equilibrium exists.

    Parameters
    ----------
    game : RankingGame
    deltas : (D,) effort >= 0
    cells, target
        Of ``arms_race``.
    progress : callable, optional
        Told at each level.

    Examples
    --------
    >>> from benchwright.ranking_game.forms import PowerLawCurves
    >>> game = RankingGame(PowerLawCurves([0.6931471805599453, 0.0]), [2.0, 0.0])
    >>> print(race_over_tuning(game, [0.0, 0.5, 1.5]))
    Arms race of 2 developers over tuning
           level      spend  wrong order  wrong first  Kendall tau  exploitable  method
               0        0.5       0.1875       0.1875        0.625            0  closed form
             0.5       0.25       0.1094       0.1094       0.7812            0  closed form
             1.5          0            0            0            1            0  pure equilibrium
    """
    levels = finite_array("deltas", deltas, ndim=1)
    if not levels.size or levels.min() < 0:
        raise UsageError(f"`deltas` must hold levels >= 0, at least one, got {levels.tolist()}")
    if game.rewards[0] == game.rewards[-1]:
        raise UsageError("an arms race needs rewards that differ")
    verdicts, methods, reasons = [], [], []
    spend, shown = np.full((levels.size, game.n), np.nan), np.full((levels.size, 5), np.nan)
    for k, delta in enumerate(levels):
        if progress is not None:
            progress(f"arms race at level {delta:g} ({k + 1} of {levels.size})")
        here = game.at(delta)
        solution = solve(here)
        method, reason = OPEN, solution.reason
        if solution.pure_equilibrium == "exists":
            if faced := _at_rest(solution):
                method, spend[k], shown[k] = REST, 0.0, [*faced, 0.0, 0.0]
            else:
                reason = "equilibria may publish different orders"
        elif solution.pure_equilibrium == "none":
            try:
                race = arms_race(here, cells=cells, target=target)
            except UsageError as error:  # scores too close to order: no reason to lose the other levels
                reason = str(error)
            else:
                method, spend[k] = race.method, race.spend
                shown[k] = race.wrong_order, race.wrong_top, race.kendall_tau, race.exploitability, race.off_grid
        verdicts.append(solution.pure_equilibrium)
        methods.append(method)
        reasons.append(reason)
    return RaceOverTuning(
        game=game,
        deltas=levels,
        verdict=tuple(verdicts),
        method=tuple(methods),
        spend=spend,
        wrong_order=shown[:, 0],
        wrong_top=shown[:, 1],
        kendall_tau=shown[:, 2],
        exploitability=shown[:, 3],
        off_grid=shown[:, 4],
        reasons=tuple(reasons),
    )


def _at_rest(solution: GameSolution) -> tuple[float, float, float] | None:
    """Wrong order, wrong first and Kendall tau with nobody paying; None where equilibria may publish several orders."""
    game = solution.game
    crossed = not np.array_equal(solution.published_order, game.order)
    # outside the criterion other equilibria are not ruled out
    open_ended = not game.curves.strict and (crossed or np.ptp(game.costs.free) > 0)
    if open_ended or (not solution.unique and (np.diff(game.rewards) == 0).any()):
        return None
    place = np.argsort(game.order)[list(solution.published_order)]  # place in capability, by published rank
    pairs = np.sign(place - place[:, None])[np.triu_indices(game.n, 1)]
    return float((np.diff(place) < 0).any()), float(place[0] != 0), float(pairs.mean())
