"""The assumptions that results of the ranking game rest on, looked at one by one on a game's curves and costs.

``curve_assumptions`` states C1 (curves do not cross), C2 (diminishing returns) and C3 (effort advantage). Of costs it
is asked whether they strictly increase, are convex, are no lower for the less capable, grow without bound and are at
least linear. Which results lose their ground with a violated assumption is listed in ``Assumptions.results``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from benchwright._check import FloatArray, non_negative
from benchwright._json import json_safe
from benchwright._shown import Headline, Shown, ShownPart
from benchwright._words import percent
from benchwright.errors import UsageError
from benchwright.ranking_game import _assumptions as numbers
from benchwright.ranking_game.cost_assumptions import check_costs
from benchwright.ranking_game.curve_assumptions import (
    POINTS,
    POINTS_OF_DRAWS,
    Check,
    Verdict,
    Violation,
    check_advantage,
    check_concave,
    check_crossings,
    convex_curves,
    crossing_pairs,
    falling_pairs,
)
from benchwright.ranking_game.forms import IntArray, PowerLawCurves
from benchwright.ranking_game.game import RankingGame

if TYPE_CHECKING:
    import polars as pl

UNITS = {"C1": "score", "C2": "score", "C3": "effort"}
SHOWN = 3
TITLES = {
    "C1": "C1, curves do not cross",
    "C2": "C2, diminishing returns",
    "C3": "C3, effort advantage of the more capable",
    "cost increasing": "cost strictly increasing",
    "cost unbounded": "cost unbounded",
    "cost convex": "cost convex",
    "cost order": "cost no lower for the less capable",
    "cost linear": "cost at least linear",
}
ONE_FREE = "one free effort for all"
STRICT = "curves known to increase strictly"
SLOPES = "slopes that do not fall with capability"
_IN_DRAWS: dict[str, Callable[[RankingGame, FloatArray], IntArray]] = {
    "C1": crossing_pairs,
    "C2": convex_curves,
    "C3": falling_pairs,
}


@dataclass(frozen=True, slots=True)
class Result:
    """A result and the assumptions it needs; ``verdict`` is "violated" where one of them is."""

    result: str
    needs: tuple[str, ...]
    verdict: Verdict
    missing: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Assumptions(Shown):
    """What ``check_assumptions`` found, on efforts [0, effort_max].

    ``checks`` holds one entry an assumption, ``results`` one a result that needs some of them, ``draws`` the number of
    draws behind the shares.
    """

    game: RankingGame
    effort_max: float
    checks: tuple[Check, ...]
    results: tuple[Result, ...]
    draws: int

    def check(self, assumption: str) -> Check:
        """The check of ``C1``, ``C2``, ``C3`` or of one of the costs' assumptions."""
        return next(check for check in self.checks if check.assumption == assumption)

    def _told(self) -> Iterable[ShownPart]:
        yield Headline(f"Assumptions for efforts from 0 to {self.effort_max:g}")
        for check in self.checks:
            sure = "" if check.verdict == "violated" else f" ({check.proof})"
            drawn = f"; violated in {percent(check.share)} of {self.draws} draws" if np.isfinite(check.share) else ""
            yield f"  {TITLES[check.assumption]}: {check.verdict}{sure}: {check.reason}{drawn}"
            yield from (f"    {self.words(check.assumption, violation)}" for violation in check.violations[:SHOWN])
            if check.count > SHOWN:
                yield f"    and {check.count - SHOWN:,} smaller ones"
        for one in self.results:
            if one.verdict != "holds":
                yield f"  not to be relied on: {one.result}, without {', '.join(one.missing)}"

    def words(self, assumption: str, violation: Violation) -> str:
        """One violation in words."""
        who = " and ".join(self.game.name(i) for i in violation.developers)
        spans = ", ".join(f"{low:.4g} to {high:.4g}" for low, high in violation.ranges[:SHOWN]) or "too close to tell"
        what = "target scores" if assumption == "C3" else "efforts"
        drawn = f", {percent(violation.share)} of draws" if np.isfinite(violation.share) else ""
        unit = UNITS.get(assumption, "")
        size = f", by up to {violation.size:.3g} of {unit}" if unit else ""
        return f"{who}: {what} {spans}{size}{drawn}"

    def to_frame(self) -> pl.DataFrame:
        """One row a range of a violation: assumption, developer, other (the more capable), low, high, size, share."""
        import polars as pl

        rows = [
            (check.assumption, *self._pair(violation), low, high, violation.size, violation.share)
            for check in self.checks
            for violation in check.violations
            for low, high in violation.ranges
        ]
        text = ("assumption", "developer", "other")
        schema: dict[str, Any] = dict.fromkeys(text, pl.String)
        schema |= dict.fromkeys(("low", "high", "size", "share_of_draws"), pl.Float64)
        return pl.DataFrame(rows, schema=schema, orient="row").with_columns(pl.col("share_of_draws").fill_nan(None))

    def _pair(self, violation: Violation) -> tuple[str, str | None]:
        names = [self.game.name(i) for i in violation.developers]
        return names[0], names[1] if len(names) > 1 else None

    def to_dict(self) -> dict[str, Any]:
        """All fields, in types that JSON knows; violations by size."""
        checks = [
            {
                "assumption": check.assumption,
                "title": TITLES[check.assumption],
                "verdict": check.verdict,
                "proof": check.proof,
                "reason": check.reason,
                "violations": check.count,
                "cases": check.cases,
                "share_of_draws": json_safe(check.share),
                "largest": [violation.to_dict(self.game) for violation in check.violations],
            }
            for check in self.checks
        ]
        results = [{name: json_safe(getattr(one, name)) for name in one.__dataclass_fields__} for one in self.results]
        return {"effort_max": self.effort_max, "draws": self.draws, "checks": checks, "results": results}


def check_assumptions(game: RankingGame, *, effort_max: float, draws: Sequence[RankingGame] = ()) -> Assumptions:
    """Look at C1, C2, C3 and the costs' assumptions for efforts in [0, effort_max].

    Parameters
    ----------
    game : RankingGame
        ``tune_before_test`` is not used: efforts are total efforts.
    effort_max : float > 0
        The end of the range, say the largest effort that was measured.
    draws : sequence of RankingGame
        The game in bootstrap draws of its curves; each violation is told with the share of draws in which the same
        developers violate the assumption, in that draw's order of capability, on a coarser grid.

    Examples
    --------
    >>> from benchwright.ranking_game.forms import PowerLawCurves
    >>> curves = PowerLawCurves([0.6931471805599453, 0.0], [0.9, 1.0])
    >>> game = RankingGame(curves, [1.0, 0.0], names=("a", "b"))
    >>> print(check_assumptions(game, effort_max=5000.0))
    Assumptions for efforts from 0 to 5000
      C1, curves do not cross: violated: 1 of 1 pairs of curves cross
        b and a: efforts 1023 to 5000, by up to 3.78e-05 of score
      C2, diminishing returns: holds (closed form): curves are concave, and scores of at most 1 saturate
      C3, effort advantage of the more capable: violated: 1 of 1 pairs in which that lead shrinks
        b and a: target scores 0.9975 to 0.9998, by up to 773 of effort
      cost strictly increasing: holds (closed form): from zero effort on
      cost unbounded: holds (closed form): a power of effort
      cost convex: holds (closed form): exponents of at least 1
      cost no lower for the less capable: holds (closed form): one cost for all
      cost at least linear: holds (closed form): c(e) >= 1 e
      not to be relied on: a level that is stable stays stable under more tuning, without C3
      not to be relied on: neighbours decide for all pairs, without C3
      not to be relied on: the published order is that of capability, without C1
      not to be relied on: the growth law's sufficient level, without C1, slopes that do not fall with capability
    """
    top = non_negative("effort_max", effort_max)
    if top == 0:
        raise UsageError("`effort_max` must be > 0, got 0")
    grid = numbers.log_grid(top, POINTS)
    checks = [check_crossings(game, grid), check_concave(game, grid), check_advantage(game, grid)]
    if draws:
        coarse = numbers.log_grid(top, POINTS_OF_DRAWS)
        checks = [_in_draws(check, draws, coarse) for check in checks]
    checks += check_costs(game, grid)
    results = _results(game, {check.assumption: check for check in checks})
    return Assumptions(game, top, tuple(checks), results, len(draws))


def _in_draws(check: Check, draws: Sequence[RankingGame], grid: FloatArray) -> Check:
    """The check with shares of draws."""
    n, some = draws[0].n, 0
    times: dict[int, int] = {}
    for game in draws:
        hits = np.sort(_IN_DRAWS[check.assumption](game, grid), axis=1)
        some += bool(hits.size)
        codes = hits[:, 0] * n + hits[:, -1]
        for code in codes.tolist():
            times[code] = times.get(code, 0) + 1
    shared = [
        replace(one, share=times.get(min(one.developers) * n + max(one.developers), 0) / len(draws))
        for one in check.violations
    ]
    return replace(check, violations=tuple(shared), share=some / len(draws))


def _results(game: RankingGame, checks: dict[str, Check]) -> tuple[Result, ...]:
    """Results and whether what they need holds."""
    curves, order = game.curves, game.order
    also = {
        ONE_FREE: bool(np.ptp(game.costs.free) == 0),
        STRICT: curves.strict,
        SLOPES: isinstance(curves, PowerLawCurves) and bool((np.diff(curves.beta[order]) <= 0).all()),
    }
    always: tuple[str, ...] = (ONE_FREE,) if curves.strict else ("C1", ONE_FREE)  # strict: the order of scores serves
    criterion = (*always, STRICT) if game.ties == "shared" else always
    apart = () if (np.diff(game.rewards) < 0).all() else ("cost increasing",)  # else free effort inverts equal ranks
    table: list[tuple[str, tuple[str, ...]]] = [
        ("a pure equilibrium exists exactly if no jump pays", criterion),
        ("a pure equilibrium is unique", (*criterion, "cost increasing")),
        ("a level that is stable stays stable under more tuning", ("C2", "C3", *criterion)),
        ("neighbours decide for all pairs", ("C2", "C3", "cost convex", "cost order", *criterion)),
        ("the published order is that of capability", tuple(dict.fromkeys(("C1", *criterion, *apart)))),
    ]
    if isinstance(curves, PowerLawCurves) and np.ptp(curves.lower) == 0 and np.ptp(curves.upper) == 0:
        table.append(("the growth law's sufficient level", ("C1", SLOPES, "cost increasing", "cost linear")))
    results = []
    for what, needs in table:
        missing = tuple(name for name in needs if not (also[name] if name in also else checks[name].holds))
        broken = any(name in also or checks[name].verdict == "violated" for name in missing)
        verdict: Verdict = "violated" if broken else "undecided" if missing else "holds"
        results.append(Result(what, needs, verdict, missing))
    return tuple(results)
