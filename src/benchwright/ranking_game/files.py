"""Game files: a ranking game, its profiles to try and the range of its threshold, in one TOML file.

::

    rewards = [1.0, 0.0]            # of rank 1, 2, ...; must not increase
    tune_before_test = 0.0          # Delta, in the unit of effort; 0 by default
    ties = "capability"             # or "shared"

    [score]                         # a form by name, and parameters that all developers share
    form = "exponential"            # exponential, hyperbolic, generalised-power-law

    [cost]                          # cost of effort, for developers without one of their own; linear by default
    form = "power"                  # linear (kappa), power (kappa, exponent, free_effort)
    kappa = 1.0

    [[developers]]                  # one a developer
    name = "a"
    theta = 1.0                     # parameters of the form: theta, or alpha, beta, L, U
    capability = 2.0                # for power laws; by default the first developer is the most capable
    cost = { form = "linear", kappa = 2.0 }

    [threshold]
    delta_max = 1e5                 # the range of tuning that is searched

    [[profiles]]                    # efforts to try as an equilibrium, one a developer
    efforts = [0.0, 0.75]

A game on a few effort levels, solved in exact arithmetic, has [finite] in place of [score] and [cost]::

    rewards = [1, 0]
    ties = "shared"                 # the default there

    [finite]
    efforts = [0, 1, 2]             # for all, or one list a developer
    costs = [0, 0.3, 0.6]
    scores = [0, 1, 2]              # by default the efforts

Developers of a finite game need a name only, and none at all where ``[[developers]]`` is left out.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np

from benchwright.errors import UsageError
from benchwright.ranking_game.arms_race import ArmsRace, arms_race
from benchwright.ranking_game.best_replies import BestReplies, best_replies
from benchwright.ranking_game.costs import COST_FORMS, Costs, PowerCosts
from benchwright.ranking_game.equilibrium import GameSolution, solve
from benchwright.ranking_game.finite import FiniteGame, FiniteSolution, solve_finite
from benchwright.ranking_game.forms import SCORE_FORMS, Form
from benchwright.ranking_game.game import RankingGame
from benchwright.ranking_game.threshold import Threshold, threshold

DELTA_MAX = 1e5
SECTIONS = ("rewards", "tune_before_test", "ties", "score", "cost", "developers", "threshold", "profiles", "finite")
OF_FINITE = ("rewards", "ties", "developers", "finite")


@dataclass(frozen=True, slots=True, eq=False)
class GameFile:
    """A game as a file states it."""

    game: RankingGame | FiniteGame
    profiles: tuple[tuple[float, ...], ...]
    delta_max: float

    def changed(self, *, delta: float | None = None, delta_max: float | None = None) -> GameFile:
        """The same at another tune-before-test level, or with another range of the threshold."""
        game = self.game
        if isinstance(game, FiniteGame):
            if delta is not None or delta_max is not None:
                raise UsageError("a finite game has no tune-before-test level")
            return self
        game = game if delta is None else game.at(delta)
        return replace(self, game=game, delta_max=self.delta_max if delta_max is None else delta_max)


@dataclass(frozen=True, slots=True, eq=False)
class GameAnswer:
    """What a game file's game has for an answer; what was not asked for, or a finite game has not, is None."""

    solution: GameSolution | FiniteSolution
    threshold: Threshold | None
    arms_race: ArmsRace | None = None
    replies: BestReplies | None = None

    @property
    def decided(self) -> bool:
        """Whether a pure equilibrium was shown to exist, or not to."""
        return not isinstance(self.solution, GameSolution) or self.solution.pure_equilibrium != "undecided"

    def __str__(self) -> str:
        parts = (self.solution, self.threshold, self.arms_race, self.replies)
        return "\n".join(str(part) for part in parts if part is not None)

    def to_dict(self) -> dict[str, Any]:
        """The solution's record, with those of the other parts, in types that JSON knows."""
        record = self.solution.to_dict() | {"threshold": None if self.threshold is None else self.threshold.to_dict()}
        if self.arms_race is not None and self.replies is not None:
            record |= {"arms_race": self.arms_race.to_dict(), "best_replies": self.replies.to_dict()}
        return record


def answer_game(file: GameFile, *, race: bool = False) -> GameAnswer:
    """Solve the game of a file and search its threshold; with ``race`` also mixed play and best replies."""
    game = file.game
    if isinstance(game, FiniteGame):
        if race:
            raise UsageError("a finite game's mixed equilibria are listed; it has no arms race to search")
        return GameAnswer(solve_finite(game), None)
    found = solve(game, profiles=file.profiles), threshold(game, delta_max=file.delta_max)
    return GameAnswer(*found, arms_race(game), best_replies(game)) if race else GameAnswer(*found)


def read_game(path: str | Path) -> GameFile:
    """Read a game file; the module's text gives its layout.

    Raises
    ------
    UsageError
        The file is missing or no TOML, or says something that makes no game; names the file, the key and, where a name
        is close, the one that was meant.
    """
    file = Path(path)
    try:
        data = tomllib.loads(file.read_text(encoding="utf-8-sig"), parse_float=Decimal)
    except OSError as error:
        raise UsageError(f"{file}: cannot be read: {error.strerror}", hint="give the path of a game file") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{file}: not a TOML file: {error}") from None
    with _in(file.name):
        _known(data, OF_FINITE if "finite" in data else SECTIONS, "a key")
        if "rewards" not in data:
            raise UsageError("`rewards` is missing: the reward of rank 1, 2, ...")
        return _finite(data) if "finite" in data else _continuous(data)


def _continuous(data: Mapping[str, Any]) -> GameFile:
    developers = _tables(data, "developers")
    if not developers:
        raise UsageError("[[developers]] is missing: one table a developer")
    score = _section(data, "score")
    form = _form(score, SCORE_FORMS, "[score]")
    extra = ("capability",) if "L" in form.parameters else ()
    _known(score, ("form", *form.parameters), "a key of [score]")
    shared = {name: value for name, value in score.items() if name != "form"}
    parts: dict[str, list[float]] = {name: [] for name in form.parameters}
    for number, developer in enumerate(developers, start=1):
        _known(developer, ("name", "cost", *form.parameters, *extra), f"a key of developer {number}")
        for name, default in form.parameters.items():
            value = developer.get(name, shared.get(name, default))
            if value is None:
                raise UsageError(f"developer {number}: `{name}` is missing, {form.formula} needs it")
            parts[name].append(_number(value, f"developer {number}: `{name}`"))
    given = [developer.get("capability") for developer in developers]
    if any(value is not None for value in given):
        if any(value is None for value in given):
            raise UsageError("`capability` must be given for all developers, or for none")
        parts["capability"] = [_number(value, "`capability`") for value in given]
    settings = {name: data[name] for name in ("ties",) if name in data}
    game = RankingGame(
        form.make(**parts),
        np.array(_numbers(data["rewards"], "`rewards`")),
        costs=_costs(data, developers),
        tune_before_test=_number(data.get("tune_before_test", 0), "`tune_before_test`"),
        names=_names(developers),
        **settings,
    )
    search = _section(data, "threshold", needed=False)
    _known(search, ("delta_max",), "a key of [threshold]")
    profiles = []
    for number, table in enumerate(_tables(data, "profiles"), start=1):
        _known(table, ("efforts",), f"a key of profile {number}")
        with _in(f"profile {number}"):
            profiles.append(tuple(game.profile(_numbers(table.get("efforts"), "`efforts`")).tolist()))
    return GameFile(game, tuple(profiles), _number(search.get("delta_max", DELTA_MAX), "`delta_max`"))


def _finite(data: Mapping[str, Any]) -> GameFile:
    table = _section(data, "finite")
    _known(table, ("efforts", "costs", "scores"), "a key of [finite]")
    for name in ("efforts", "costs"):
        if name not in table:
            raise UsageError(f"[finite]: `{name}` is missing")
    developers = _tables(data, "developers")
    for number, developer in enumerate(developers, start=1):
        _known(developer, ("name",), f"a key of developer {number} of a finite game")
    settings: dict[str, Any] = {name: data[name] for name in ("ties",) if name in data}
    names = _names(developers) if developers else None
    game = FiniteGame(data["rewards"], **table, **settings, names=names)
    return GameFile(game, (), DELTA_MAX)


def _costs(data: Mapping[str, Any], developers: list[Mapping[str, Any]]) -> Costs:
    """The named costs are all powers, so costs of several developers are one power with a parameter each."""
    common = _section(data, "cost", needed=False)
    parts: dict[str, list[float]] = {"kappa": [], "exponent": [], "free": []}
    for number, developer in enumerate(developers, start=1):
        own = developer.get("cost", common)
        where = f"developer {number}: cost" if "cost" in developer else "[cost]"
        if not isinstance(own, Mapping):
            raise UsageError(f'{where} must be a table, e.g. {{ form = "linear", kappa = 1.0 }}')
        form = _form(own, COST_FORMS, where) if own else COST_FORMS["linear"]
        _known(own, ("form", *form.parameters), f"a key of {where}")
        given = {
            name: _number(own.get(name, default), f"{where}: `{name}`") for name, default in form.parameters.items()
        }
        with _in(where):
            made: PowerCosts = form.make(**given)
        for name, values in parts.items():
            values.append(float(getattr(made, name)[0]))
    return PowerCosts(**parts)


def _form(table: Mapping[str, Any], forms: Mapping[str, Form], where: str) -> Form:
    name = table.get("form")
    if not isinstance(name, str) or name not in forms:
        near = difflib.get_close_matches(str(name), forms, n=1)
        hint = f"did you mean `{near[0]}`?" if near and name is not None else None
        got = "none is given" if name is None else f"got {name!r}"
        raise UsageError(f"{where}: `form` must be one of {', '.join(forms)}, {got}", hint=hint)
    return forms[name]


def _names(developers: list[Mapping[str, Any]]) -> tuple[str, ...]:
    names = []
    for number, developer in enumerate(developers, start=1):
        name = developer.get("name", f"developer {number}")
        if not isinstance(name, str) or not name.strip():
            raise UsageError(f"developer {number}: `name` must be text, got {name!r}")
        names.append(name)
    return tuple(names)


def _section(data: Mapping[str, Any], name: str, *, needed: bool = True) -> Mapping[str, Any]:
    section = data.get(name)
    if section is None and not needed:
        return {}
    if not isinstance(section, Mapping):
        raise UsageError(f"[{name}] is missing" if section is None else f"`{name}` must be a table, write [{name}]")
    return section


def _tables(data: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    tables = data.get(name, [])
    if not isinstance(tables, list) or not all(isinstance(table, Mapping) for table in tables):
        raise UsageError(f"`{name}` must be a list of tables, write [[{name}]]")
    return tables


def _number(value: Any, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)):
        raise UsageError(f"{where} must be a number, got {value!r}")
    try:
        return float(value)
    except OverflowError:
        raise UsageError(f"{where} is too large for a number: it has {len(str(value))} digits") from None


def _numbers(values: Any, where: str) -> list[float]:
    if not isinstance(values, list):
        raise UsageError(f"{where} must be a list of numbers, got {values!r}")
    return [_number(value, where) for value in values]


def _known(table: Iterable[str], names: tuple[str, ...], what: str) -> None:
    for name in table:
        if name not in names:
            near = difflib.get_close_matches(name, names, n=1)
            hint = f"did you mean `{near[0]}`?" if near else f"known: {', '.join(names)}"
            raise UsageError(f"`{name}` is not {what}", hint=hint)


@contextmanager
def _in(where: str) -> Iterator[None]:
    """Say in an error where the value stands."""
    try:
        yield
    except UsageError as error:
        raise UsageError(f"{where}: {error.message}", hint=error.hint) from None
