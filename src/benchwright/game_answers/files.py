"""Game files: a ranking game, its profiles to try and the range of its threshold, in one TOML file.

::

    rewards = [1.0, 0.0]            # of rank 1, 2, ...; must not increase. Or a form that needs no number of ranks:
                                    # { form = "per-rank", gap = 1000 }, { form = "linear", top = 1000, bottom = 0 },
                                    # { form = "geometric", top = 1000, ratio = 0.6 }
    tune_before_test = 0.0          # Delta, in the unit of effort; 0 by default
    ties = "capability"             # or "shared"
    race = true                     # mixed play and best replies too; false by default

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

A game on measured scores by effort has [curves] in place of [score] and [[profiles]]; curves are fitted to the scores::

    [curves]
    file = "scores.csv"             # relative to the game file: whatever `ingest` reads, with a step or a dose
    task = "gsm8k"                  # needed only where several are there, likewise metric and filter
    models = ["pythia-*", "!*-70m"] # * is any text, ! leaves out; all by default
    effort = "step"                 # or "dose"
    items = 500                     # behind a score, where neither it nor a standard error is stated
    lower = "shared"                # of the fitted curves: "per-model", "shared" or a number; likewise upper, beta
    capability = "tuned"            # fitted score at the effort up to which all models were measured; "limit": fitted
                                    # limit of the score; or names, the most capable first
    deltas = [0, 10, 100, 1000]     # levels of tuning to show
    replicates = 200                # bootstrap draws of the intervals; 0: none
    seed = 0

    [designer]
    price = 0.5                     # of tuning one model by one unit of effort, in units of reward

There ``rewards`` are 1,000 a rank by default, ``ties`` go to the more capable, and [[developers]] are needed only for
costs of their own, by the model's name.

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

import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from benchwright._shown import Shown
from benchwright.errors import UsageError
from benchwright.game_answers.curve_game import SECTIONS as OF_CURVES
from benchwright.game_answers.curve_game import CurveGame, curve_game, one_a_developer
from benchwright.game_answers.rewards import Rewards, rewards_of_file
from benchwright.game_answers.toml_parts import (
    Table,
    flag,
    form_of,
    inside,
    known,
    number,
    numbers,
    parameters_of,
    section,
    tables,
    text,
)
from benchwright.ranking_game.costs import COST_FORMS, PowerCosts
from benchwright.ranking_game.finite import FiniteGame
from benchwright.ranking_game.forms import SCORE_FORMS
from benchwright.ranking_game.game import RankingGame

DELTA_MAX = 1e5
SECTIONS = (
    *("rewards", "tune_before_test", "ties", "race", "score", "cost", "developers", "threshold", "profiles", "finite"),
)
OF_FINITE = ("rewards", "ties", "developers", "finite")


@dataclass(frozen=True, slots=True, eq=False)
class GameFile(Shown):
    """A game as a file states it."""

    game: RankingGame | FiniteGame
    profiles: tuple[tuple[float, ...], ...]
    delta_max: float
    race: bool = False

    def changed(
        self,
        *,
        delta: float | None = None,
        delta_max: float | None = None,
        rewards: Rewards | None = None,
        kappa: float | None = None,
    ) -> GameFile:
        """The same at another tune-before-test level, range of the threshold, rewards, or linear cost for all."""
        game = self.game
        if isinstance(game, FiniteGame):
            if any(one is not None for one in (delta, delta_max, rewards, kappa)):
                raise UsageError(
                    "a finite game has no tune-before-test level, and its rewards and costs stand in its file"
                )
            return self
        game = game if delta is None else game.at(delta)
        if rewards is not None:
            game = replace(game, rewards=rewards.of(game.n))
        if kappa is not None:
            game = replace(game, costs=PowerCosts(kappa))
        return replace(self, game=game, delta_max=self.delta_max if delta_max is None else delta_max)


def read_game(path: str | Path) -> GameFile | CurveGame:
    """Read a game file; the module's text gives its layout. A file with ``[curves]`` makes a ``CurveGame``.

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
    with inside(file.name):
        if "curves" in data:
            known(data, OF_CURVES, "a key of a game with [curves]")
            return _curves(data, file.parent)
        known(data, OF_FINITE if "finite" in data else SECTIONS, "a key")
        if "rewards" not in data:
            raise UsageError("`rewards` is missing: the reward of rank 1, 2, ...")
        return _finite(data) if "finite" in data else _continuous(data)


def _continuous(data: Table) -> GameFile:
    developers = tables(data, "developers")
    if not developers:
        raise UsageError("[[developers]] is missing: one table a developer")
    score = section(data, "score")
    form = form_of(score, SCORE_FORMS, "[score]")
    extra = ("capability",) if "L" in form.parameters else ()
    known(score, ("form", *form.parameters), "a key of [score]")
    shared = {name: value for name, value in score.items() if name != "form"}
    parts: dict[str, list[float]] = {name: [] for name in form.parameters}
    for k, developer in enumerate(developers, start=1):
        known(developer, ("name", "cost", *form.parameters, *extra), f"a key of developer {k}")
        for name, default in form.parameters.items():
            value = developer.get(name, shared.get(name, default))
            if value is None:
                raise UsageError(f"developer {k}: `{name}` is missing, {form.formula} needs it")
            parts[name].append(number(value, f"developer {k}: `{name}`"))
    given = [developer.get("capability") for developer in developers]
    if any(value is not None for value in given):
        if any(value is None for value in given):
            raise UsageError("`capability` must be given for all developers, or for none")
        parts["capability"] = [number(value, "`capability`") for value in given]
    settings = {name: data[name] for name in ("ties",) if name in data}
    game = RankingGame(
        form.make(**parts),
        rewards_of_file(data["rewards"]).of(len(developers)),
        costs=_costs(data, developers),
        tune_before_test=number(data.get("tune_before_test", 0), "`tune_before_test`"),
        names=_names(developers),
        **settings,
    )
    profiles = []
    for k, table in enumerate(tables(data, "profiles"), start=1):
        known(table, ("efforts",), f"a key of profile {k}")
        with inside(f"profile {k}"):
            profiles.append(tuple(game.profile(numbers(table.get("efforts"), "`efforts`")).tolist()))
    delta_max = _delta_max(data)
    race = flag(data.get("race", False), "`race`")
    return GameFile(game, tuple(profiles), DELTA_MAX if delta_max is None else delta_max, race)


def _finite(data: Table) -> GameFile:
    table = section(data, "finite")
    known(table, ("efforts", "costs", "scores"), "a key of [finite]")
    for name in ("efforts", "costs"):
        if name not in table:
            raise UsageError(f"[finite]: `{name}` is missing")
    developers = tables(data, "developers")
    for k, developer in enumerate(developers, start=1):
        known(developer, ("name",), f"a key of developer {k} of a finite game")
    settings: dict[str, Any] = {name: data[name] for name in ("ties",) if name in data}
    names = _names(developers) if developers else None
    game = FiniteGame(data["rewards"], **table, **settings, names=names)
    return GameFile(game, (), DELTA_MAX)


def _curves(data: Table, folder: Path) -> CurveGame:
    developers = tables(data, "developers")
    names = _names(developers)
    own = {}
    for k, (name, developer) in enumerate(zip(names, developers, strict=True), start=1):
        known(developer, ("name", "cost"), f"a key of developer {k}")
        if "name" not in developer:
            raise UsageError(f"developer {k}: `name` is missing: the model's")
        if "cost" in developer:
            own[name] = _cost(developer["cost"], f"developer {k}: cost")
    if twice := [name for name, times in Counter(names).items() if times > 1]:
        raise UsageError(f"[[developers]] names {twice[0]} twice")
    common = _cost(section(data, "cost"), "[cost]") if "cost" in data else None
    return curve_game(data, folder, common, own, _delta_max(data))


def _delta_max(data: Table) -> float | None:
    search = section(data, "threshold", needed=False)
    known(search, ("delta_max",), "a key of [threshold]")
    return number(search["delta_max"], "`delta_max`") if "delta_max" in search else None


def _costs(data: Table, developers: Sequence[Table]) -> PowerCosts:
    """The named costs are all powers, so costs of several developers are one power with a parameter each."""
    common = section(data, "cost", needed=False)
    each = [
        _cost(developer["cost"], f"developer {k}: cost") if "cost" in developer else _cost(common, "[cost]")
        for k, developer in enumerate(developers, start=1)
    ]
    return one_a_developer(each)


def _cost(table: Any, where: str) -> PowerCosts:
    """The cost of one developer."""
    if not isinstance(table, Mapping):
        raise UsageError(f'{where} must be a table, e.g. {{ form = "linear", kappa = 1.0 }}')
    form = form_of(table, COST_FORMS, where) if table else COST_FORMS["linear"]
    given = parameters_of(table, form, where)
    with inside(where):
        made: PowerCosts = form.make(**given)
    return made


def _names(developers: Sequence[Table]) -> tuple[str, ...]:
    names = []
    for k, developer in enumerate(developers, start=1):
        name = developer.get("name", f"developer {k}")
        names.append(text(name, f"developer {k}: `name`"))
    return tuple(names)
