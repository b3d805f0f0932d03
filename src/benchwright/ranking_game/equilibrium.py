"""Whether a ranking game has a pure equilibrium, with the certificate that shows it.

Let e0 be the effort that is free for every developer. In a pure equilibrium nobody pays for effort and developer i
earns R_i; one exists exactly if no jump pays, over all pairs j < i in the order of scores at Delta + e0:

    c_i(ereq_ij) >= R_j - R_i,   ereq_ij = inf{e : v_i(Delta + e) > v_j(Delta + e0)}.

Proof and conditions: docs/explanation/ranking-game.md. Where a condition fails, the verdict is "undecided",
unless the profile at which everybody spends its own free effort can be shown to be an equilibrium.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from benchwright._check import FloatArray
from benchwright._json import json_safe
from benchwright._shown import Headline, Shown, ShownPart, ShownTable
from benchwright._words import count
from benchwright.ranking_game.costs import FunctionCosts
from benchwright.ranking_game.forms import FunctionCurves, IntArray
from benchwright.ranking_game.game import RankingGame
from benchwright.ranking_game.jumps import Jump, PairScan, decided, jump_of, jumps, scan
from benchwright.ranking_game.regret import TOLERANCE, max_regret

if TYPE_CHECKING:
    import polars as pl

Verdict = Literal["exists", "none", "undecided"]
NAMES_SHOWN = 3
RANKS_SHOWN = 20
JUMP_STEP = 1e-3  # part of the way from the required effort to the one that costs the whole gap
CALLABLES = "callables are continuous and monotone, as given: checked at some efforts only"


@dataclass(frozen=True, slots=True)
class Overtake:
    """What the developer of a rank would pay to overtake its neighbour above.

    ``developer`` and ``over`` are positions. The required effort is inf where out of reach, NaN where double precision
    cannot tell. ``zero_effort_cost`` and
    ``zero_effort_pays`` take the neighbour's score at zero effort, as the paper does; no verdict rests on them.
    """

    rank: int
    developer: int
    over: int
    required_effort: float
    cost: float
    reward_gap: float
    pays: bool | None
    zero_effort_cost: float
    zero_effort_pays: bool | None

    def to_dict(self, game: RankingGame) -> dict[str, Any]:
        """All fields, with the developers' names, in types that JSON knows; null where out of reach."""
        record = {name: json_safe(getattr(self, name)) for name in self.__dataclass_fields__}
        return record | {"developer": game.name(self.developer), "over": game.name(self.over)}


@dataclass(frozen=True, slots=True, eq=False)
class GameSolution(Shown):
    """What ``solve`` found.

    Attributes
    ----------
    pure_equilibrium : "exists", "none" or "undecided"
    unique : bool or None
        None where not known, or where no equilibrium was shown to exist.
    profiles : (k, n) effort
        Pure equilibria, developers as given; all of them only where ``unique``.
    published_order : tuple of int
        Positions of the developers, best first, at the first profile; at free effort where there is none.
    reason : str
        The certificate in words.
    conditions : tuple of str
        What the verdict rests on.
    jump : Jump or None
        The profitable jump that shows that no pure equilibrium exists, and ``jump_effort``, an effort at which it pays.
    binding : Jump
        The jump with the least margin over all pairs.
    undecided_pairs : int
        Pairs whose jump double precision cannot judge.
    max_regret : float, reward
        Largest gain of one developer at ``profiles``; where there is none, at the profile of free efforts. By other
        code than the search, see ``max_regret``.
    just_overtake : tuple of Overtake
        One entry for rank 2..n.
    notes : tuple of str
    """

    game: RankingGame
    pure_equilibrium: Verdict
    unique: bool | None
    profiles: FloatArray
    published_order: tuple[int, ...]
    reason: str
    conditions: tuple[str, ...]
    jump: Jump | None
    jump_effort: float
    jump_gain: float
    binding: Jump
    pairs: int
    undecided_pairs: int
    max_regret: float
    just_overtake: tuple[Overtake, ...]
    notes: tuple[str, ...]

    @property
    def certificate(self) -> dict[str, Any]:
        """What shows the verdict, in types that JSON knows."""
        record: dict[str, Any] = {"reason": self.reason, "conditions": list(self.conditions)}
        record |= {"pairs": self.pairs, "undecided_pairs": self.undecided_pairs}
        record["binding_pair"] = self.binding.to_dict(self.game)
        record["jump"] = None if self.jump is None else self.jump.to_dict(self.game)
        if record["jump"] is not None:
            record["jump"] |= {"effort": json_safe(self.jump_effort), "gain": json_safe(self.jump_gain)}
        return record

    def _told(self) -> Iterable[ShownPart]:
        game = self.game
        verdict = {"exists": "exists", "none": "does not exist", "undecided": "is not decided"}[self.pure_equilibrium]
        unique = {True: ", unique", False: ", not unique", None: ""}[self.unique]
        order = _listed(game, self.published_order)
        yield Headline(f"Ranking game of {game.n} developers at tune-before-test level {game.tune_before_test:g}")
        yield f"  a pure equilibrium {verdict}{unique}: {self.reason}"
        yield f"  published order: {order}; largest gain by deviating {self.max_regret:.3g}"
        rows = [
            (
                str(row.rank),
                f"{row.required_effort:.6g}",
                f"{row.cost:.6g}",
                f"{row.reward_gap:.6g}",
                {True: "yes", False: "no", None: "?"}[row.pays],
                game.name(row.developer),
            )
            for row in self.just_overtake[:RANKS_SHOWN]
        ]
        heads = ("rank", "required effort", "cost", "reward gap", "pays", "developer")
        yield ShownTable(heads, rows, len(self.just_overtake) - RANKS_SHOWN)
        yield from (f"  ! {note}" for note in self.notes)

    def to_frame(self) -> pl.DataFrame:
        """One row a rank from 2 on: the fields of ``Overtake``, with names."""
        import polars as pl

        rows = [row.to_dict(self.game) for row in self.just_overtake]
        kinds: dict[str, Any] = {"rank": pl.Int64} | dict.fromkeys(("developer", "over"), pl.String)
        kinds |= dict.fromkeys(("pays", "zero_effort_pays"), pl.Boolean)
        return pl.DataFrame(rows, schema={name: kinds.get(name, pl.Float64) for name in rows[0]})

    def to_dict(self) -> dict[str, Any]:
        """Verdict, profiles, certificate and just-overtake costs, in types that JSON knows."""
        return {
            "pure_equilibrium": self.pure_equilibrium,
            "unique": self.unique,
            "profiles": self.profiles.tolist(),
            "certificate": self.certificate,
            "max_regret": json_safe(self.max_regret),
            "just_overtake": [row.to_dict(self.game) for row in self.just_overtake],
            "developers": [self.game.name(i) for i in range(self.game.n)],
            "published_order": [self.game.name(i) for i in self.published_order],
            "tune_before_test": self.game.tune_before_test,
            "ties": self.game.ties,
            "notes": list(self.notes),
        }


def solve(game: RankingGame, *, profiles: Iterable[Any] = ()) -> GameSolution:
    """Say whether a pure equilibrium exists, and show it; O(n^2).

    Parameters
    ----------
    game : RankingGame
    profiles : iterable of (n,) efforts
        Profiles to try as equilibria beside those that the criterion gives; those that are go into the result, the
        others into its notes.

    Examples
    --------
    >>> from benchwright.ranking_game.forms import TranslationCurves
    >>> curves = TranslationCurves([1.0, 0.5], "exponential")
    >>> print(solve(RankingGame(curves, [1.0, 0.0], names=("a", "b"))))
    Ranking game of 2 developers at tune-before-test level 0
      a pure equilibrium does not exist: b overtakes a at any effort above 0.5, which costs 0.5, for a reward gap of 1
      published order: a, b; largest gain by deviating 0.5
        rank  required effort         cost   reward gap  pays  developer
           2              0.5          0.5            1  yes   b
    >>> solve(RankingGame(curves, [0.25, 0.0])).profiles
    array([[0., 0.]])
    """
    free, order = game.costs.free, game.order
    conditions, faults = _conditions(game, order)
    published = game.published_order(free) if faults or _crossed(game, order) else order
    found = scan(game, published, free)
    given = [game.profile(efforts) for efforts in profiles]
    common: dict[str, Any] = {
        "game": game,
        "unique": None,
        "profiles": np.empty((0, game.n)),
        "published_order": tuple(int(i) for i in published),
        "conditions": conditions,
        "jump": None,
        "jump_effort": np.nan,
        "jump_gain": np.nan,
        "binding": found.binding,
        "pairs": found.pairs,
        "undecided_pairs": found.n_unsure,
        "max_regret": max_regret(game, free) if found.paying is not None or not found.n_unsure else np.nan,
        "just_overtake": _neighbours(game, published),
        "notes": _notes(game, published, found),
    }
    by_capability = game.ties == "capability" and not faults and published is order
    tied = not by_capability and bool((_leads(game, published, free)[0] <= 0).any())
    searchable = game.ties == "capability" or game.curves.strict  # else a tie on a plateau may be cheaper than a lead
    if found.paying is None and not found.n_unsure and not tied and searchable:
        reason = f"no jump pays, of {count(found.pairs, 'pair')} in all; the tightest is {_told(game, found.binding)}"
        result = GameSolution(pure_equilibrium="exists", reason=reason, **common)
        return _with_profiles(result, decided=not faults, given=given)
    if faults:
        return _undecided(common, "not decided by the criterion: " + "; ".join(faults), given)
    if found.paying is not None and not tied:
        jump = found.paying
        effort, gain = _pay_off(game, free, jump)
        if not gain > 0:
            return _undecided(common, f"double precision cannot show that {_told(game, jump)} pays", given)
        reason = (
            f"{game.name(jump.developer)} overtakes {game.name(jump.over)} at any effort above "
            f"{jump.required_effort:g}, which costs {jump.cost:g}, for a reward gap of {jump.reward_gap:g}"
        )
        shown = common | {"jump": jump, "jump_effort": effort, "jump_gain": gain}
        result = GameSolution(pure_equilibrium="none", reason=reason, **shown)
        return _refused(result, given)
    if tied or found.unsure is None:
        return _undecided(common, "scores at free effort are too close for double precision to order", given)
    tight = f"{_told(game, found.unsure)}: margin and scores are too close for double precision"
    return _undecided(common, tight, given)


def _conditions(game: RankingGame, order: IntArray) -> tuple[tuple[str, ...], list[str]]:
    """What the criterion rests on, and which of it does not hold."""
    free, kept, faults = game.costs.free, [], []
    if np.ptp(free) > 0:
        faults.append(f"free effort differs between developers ({free.min():g} to {free.max():g})")
    else:
        until = f"is 0 up to effort {free[0]:g} and strictly increases beyond it" if free[0] else "strictly increases"
        kept.append(f"every cost {until}")
    if crossed := _crossed(game, order):
        k = crossed[0]
        below, above = game.name(int(order[k])), game.name(int(order[k + 1]))
        crossing = f"{above} scores above the more capable {below} at free effort, against C1"
        if game.curves.strict:
            kept.append(f"{crossing}; curves strictly increase, so the order of scores at free effort takes its place")
        else:
            faults.append(crossing)
    else:
        kept.append("scores at free effort follow the order of capability")
    if game.ties == "shared":
        if not game.curves.strict:
            faults.append("with shared ties the criterion needs curves known to be strictly increasing")
        else:
            kept.append("curves strictly increase with effort, so a shared tie can be broken at any small cost")
    if isinstance(game.curves, FunctionCurves) or isinstance(game.costs, FunctionCosts):
        kept.append(CALLABLES)
    return tuple(kept), faults


def _crossed(game: RankingGame, order: IntArray) -> list[int]:
    """Places in the order of capability whose developer surely scores below the next at free effort."""
    return [int(k) for k in np.flatnonzero(_leads(game, order, game.costs.free)[1] < 0)]


def _leads(game: RankingGame, order: IntArray, efforts: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Bracket of the lead of each developer over the next in ``order`` (n - 1,)."""
    above, below = order[:-1], order[1:]
    return game.curves.lead(above, efforts[above], below, efforts[below], game.tune_before_test)


def _told(game: RankingGame, jump: Jump) -> str:
    return (
        f"{game.name(jump.developer)} over {game.name(jump.over)}, cost {jump.cost:g} against a reward gap of "
        f"{jump.reward_gap:g}"
    )


def _pay_off(game: RankingGame, efforts: FloatArray, jump: Jump) -> tuple[float, float]:
    """An effort at which a jump pays and the gain there, by counting who is outscored; NaN where it cannot be shown."""
    i = np.array([jump.developer])
    found = jumps(
        game, game.published_order(efforts), efforts, np.array([jump.rank - 1]), np.array([jump.rank_over - 1])
    )
    least, limit = float(found.high[0]), float(game.costs.budget(i, np.array([jump.reward_gap]))[0])
    if not limit > least:  # closer than double precision: judged in exact arithmetic
        return np.nan, jump.reward_gap - jump.cost
    effort = least + (min(limit, 2 * least + 1) - least) * JUMP_STEP
    others = np.delete(np.arange(game.n), jump.developer)
    lead, _ = game.curves.lead(i, np.array([effort]), others, efforts[others], game.tune_before_test)
    now = game.rewards[jump.rank - 1]
    gain = float(game.rewards[int((lead <= 0).sum())] - game.costs.cost(i, np.array([effort]))[0] - now)
    return effort, gain


def _neighbours(game: RankingGame, order: IntArray) -> tuple[Overtake, ...]:
    lower = np.arange(1, game.n)
    found = jumps(game, order, game.costs.free, lower, lower - 1)
    zero = jumps(game, order, np.zeros(game.n), lower, lower - 1)
    free, nothing = game.costs.free, np.zeros(game.n)
    verdicts = [decided(game, free, jump_of(order, found, lower, lower - 1, k)) for k in range(game.n - 1)]
    paper = [decided(game, nothing, jump_of(order, zero, lower, lower - 1, k)) for k in range(game.n - 1)]
    return tuple(
        Overtake(a.rank, a.developer, a.over, a.required_effort, a.cost, a.reward_gap, a.pays, z.cost, z.pays)
        for a, z in zip(verdicts, paper, strict=True)
    )


def _notes(game: RankingGame, order: IntArray, found: PairScan) -> tuple[str, ...]:
    notes = []
    if not np.array_equal(order, game.order):
        notes.append("the published order is not the order of capability: tuning has not revealed it (C1)")
    scores = game.scores(game.costs.free)[order]
    if (alike := np.flatnonzero(np.diff(scores) == 0)).size:
        k = int(alike[0])
        more = f" (and {alike.size - 1} more pairs of neighbours)" if alike.size > 1 else ""
        notes.append(
            f"double precision cannot tell the published scores of {game.name(int(order[k]))} and "
            f"{game.name(int(order[k + 1]))} apart{more}: a board that prints them shows a tie"
        )
    if found.binding.rank - found.binding.rank_over > 1:
        notes.append(
            f"the tightest jump is not between neighbours: {_told(game, found.binding)}; a test of neighbours alone "
            "would miss it"
        )
    if game.costs.free.max() > 0:
        notes.append("zero_effort_* take the neighbour's score at zero effort, as the paper does; the verdict does not")
    return tuple(notes)


def _with_profiles(result: GameSolution, *, decided: bool, given: Sequence[FloatArray]) -> GameSolution:
    """List equilibria: at free effort, and others that show that it is not the only one."""
    game, free = result.game, result.game.costs.free
    order = np.array(result.published_order)
    candidates = [free]
    if free.max() > 0:
        last = free.copy()
        last[order[-1]] = 0.0
        candidates.append(last)
        for k in np.flatnonzero(np.diff(game.rewards) == 0)[:NAMES_SHOWN]:
            swapped = free.copy()
            swapped[order[k]] = 0.0
            candidates.append(swapped)
    kept: list[FloatArray] = []
    notes = list(result.notes)
    worst = 0.0
    for number, profile in enumerate([*candidates, *given]):
        if any(np.array_equal(profile, known) for known in kept):
            continue
        regret = max_regret(game, profile)
        if regret == 0:
            kept.append(profile)
        elif number == 0:
            reason = f"the search finds no paying jump, the check finds one that gains {regret:g}"
            return replace(result, pure_equilibrium="undecided", reason=reason, max_regret=regret)
        elif number >= len(candidates):
            notes.append(f"{profile.tolist()} is no equilibrium: one developer gains {regret:g} by leaving it")
        worst = max(worst, regret if regret == 0 else worst)
    if len(kept) > 1:
        notes.append("equilibria with free effort differ in effort, not in payoffs; those listed are examples")
    unique = False if len(kept) > 1 else True if decided and free.max() == 0 else None
    return replace(result, profiles=np.stack(kept), unique=unique, max_regret=worst, notes=tuple(notes))


def _refused(result: GameSolution, given: Sequence[FloatArray]) -> GameSolution:
    """Note the regret of the profiles that were to be tried."""
    told = [f"{p.tolist()} is no equilibrium: one developer gains {_regret(result, p)} by leaving it" for p in given]
    return replace(result, notes=(*result.notes, *told))


def _regret(result: GameSolution, profile: FloatArray) -> str:
    regret = max_regret(result.game, profile)
    return f"{regret:g}" if regret else f"less than {TOLERANCE:g}"


def _undecided(common: dict[str, Any], reason: str, given: Sequence[FloatArray]) -> GameSolution:
    game = common["game"]
    sure = "at least " if game.ties == "shared" and not game.curves.strict else ""  # ties on plateaus are left aside
    told = [f"the largest gain from leaving {p.tolist()} is {sure}{max_regret(game, p):g}" for p in given]
    return GameSolution(pure_equilibrium="undecided", reason=reason, **common | {"notes": (*common["notes"], *told)})


def _listed(game: RankingGame, order: Sequence[int]) -> str:
    shown = ", ".join(game.name(i) for i in order[:NAMES_SHOWN])
    return shown if len(order) <= NAMES_SHOWN else f"{shown} and {len(order) - NAMES_SHOWN} more"
