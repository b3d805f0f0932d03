"""A ranking game on measured scores by effort: what is read, how curves are fitted, and what is assumed.

The ``[curves]`` table of a game file and the options of ``benchwright game CURVES`` say the same things.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from benchwright._check import FloatArray, non_negative
from benchwright._shown import Shown
from benchwright.errors import UsageError
from benchwright.game_answers.rewards import Rewards, rewards_of_file
from benchwright.game_answers.toml_parts import Table, flag, inside, known, number, numbers, section, text, whole
from benchwright.ranking_game.costs import PowerCosts

Setting = Literal["per-model", "shared"] | float
SETTINGS = ("per-model", "shared")
CAPABILITY = ("tuned", "limit")
GAP = 1000.0
UNIT_COST = PowerCosts()
DECADES_AT_MOST = 6
REPLICATES_AT_MOST = 10_000
PAIRS_OF_DRAWS = 1_000_000  # pairs of developers looked at over all draws: 200 draws of 100 models, about a minute
DRAWS_AT_LEAST = 20


def draws_at_most(n: int) -> int:
    """Return in how many draws all pairs of n developers are looked at.

    >>> [draws_at_most(n) for n in (10, 100, 200, 300)]
    [22222, 202, 50, 22]
    """
    return max(DRAWS_AT_LEAST, 2 * PAIRS_OF_DRAWS // (n * (n - 1)))


@dataclass(frozen=True, slots=True, eq=False)
class CurveGame(Shown):
    """A ranking game on measured scores by effort.

    Attributes
    ----------
    file : Path
        Scores by effort: whatever ``read_effort_scores`` reads.
    task, metric, filter, models, effort, items
        Which scores, see ``read_effort_scores``.
    rewards : Rewards
        By default each rank is worth 1,000 units of effort more than the next.
    cost : PowerCosts of one developer
        Of those without one of their ``own_costs``; by default 1 a unit of effort.
    own_costs : mapping of model to PowerCosts
    tune_before_test : float >= 0, effort
    capability : "tuned", "limit" or names, the most capable first
    lower, upper, beta : "per-model", "shared" or a number
        None: as ``fit_curves`` has it.
    deltas : tuple of float, effort
        Levels to show; None: 0, the level in force and the powers of ten among the measured efforts.
    delta_max : float, effort
        Range of the threshold; None: the largest effort measured.
    replicates, seed : int
        Of the bootstrap; no intervals where ``replicates`` is 0.
    price : float, reward a unit of effort and model
        Of the designer's tuning; None: not known.
    race : bool
        Whether mixed play and best replies are looked at too.
    stated : frozenset of str
        The fields that a file or an option states; the others are assumptions.
    """

    file: Path
    task: str | None = None
    metric: str | None = None
    filter: str | None = None
    models: tuple[str, ...] | None = None
    effort: Literal["step", "dose"] | None = None
    items: int | None = None
    rewards: Rewards = field(default_factory=lambda: Rewards("per-rank", {"gap": GAP}))
    cost: PowerCosts = UNIT_COST
    own_costs: Mapping[str, PowerCosts] = field(default_factory=dict)
    tune_before_test: float = 0.0
    capability: str | tuple[str, ...] = "tuned"
    lower: Setting | None = None
    upper: Setting | None = None
    beta: Setting | None = None
    deltas: tuple[float, ...] | None = None
    delta_max: float | None = None
    replicates: int = 200
    seed: int = 0
    price: float | None = None
    race: bool = False
    stated: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        for name in ("tune_before_test", "delta_max", "price"):
            if getattr(self, name) is not None:
                non_negative(name, getattr(self, name))
        for delta in self.deltas or ():
            non_negative("deltas", delta)
        for name in ("replicates", "seed"):
            whole(getattr(self, name), f"`{name}`")
        if isinstance(self.capability, str) and self.capability not in CAPABILITY:
            raise UsageError(
                f"`capability` must be {', '.join(CAPABILITY)} or names, got {self.capability!r}",
                hint="names: all models, the most capable first, e.g. --capability a,b,c",
            )
        if self.replicates > REPLICATES_AT_MOST:
            raise UsageError(f"`replicates` must be at most {REPLICATES_AT_MOST:,}, got {self.replicates:,}")

    def with_options(self, **given: Any) -> CurveGame:
        """The same with other values of some fields; None keeps what is."""
        new = {name: value for name, value in given.items() if value is not None}
        return replace(self, **new, stated=self.stated | new.keys())

    @property
    def fit_settings(self) -> dict[str, Any]:
        """What is said of the curves' parameters, as arguments of ``fit_curves``."""
        return {name: value for name in ("lower", "upper", "beta") if (value := getattr(self, name)) is not None}

    def costs_of(self, models: tuple[str, ...]) -> PowerCosts:
        """The costs of these models.

        Raises
        ------
        UsageError
            A cost of its own is given for a model that is none of them.
        """
        if unknown := [name for name in self.own_costs if name not in models]:
            raise UsageError(f"a cost is given for {unknown[0]}, which is no model of the game")
        return one_a_developer([self.own_costs.get(name, self.cost) for name in models])

    def levels(self, efforts: FloatArray) -> FloatArray:
        """The levels Delta to show, ascending: those stated; else the level in force, 0 and powers of ten."""
        if self.deltas is not None:
            return np.unique(self.deltas)
        positive = efforts[efforts > 0]
        first, last = (np.log10(positive.min()), np.log10(positive.max())) if positive.size else (1.0, 0.0)
        powers = 10.0 ** np.arange(np.ceil(first - 1e-9), np.floor(last + 1e-9) + 1)
        return np.unique([0.0, self.tune_before_test, *powers[-DECADES_AT_MOST:]])

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What was not stated, in words."""
        words = {
            "rewards": f"{self.rewards}, in units of effort",
            "cost": "a unit of effort costs 1 for every developer",
            "capability": "the more capable has the higher fitted score at the effort up to which all were measured",
            "tune_before_test": "nobody is tuned before the test (level 0)",
            "delta_max": "the threshold is searched up to the largest effort measured",
        }
        return tuple(f"assumed: {said} (`{name}`)" for name, said in words.items() if name not in self.stated)


KEYS = (
    *("file", "task", "metric", "filter", "models", "effort", "capability", "lower", "upper", "beta", "deltas"),
    *("items", "replicates", "seed"),
)
SECTIONS = ("rewards", "tune_before_test", "curves", "cost", "developers", "threshold", "designer", "race")


def curve_game(
    data: Table, folder: Path, cost: PowerCosts | None, own_costs: Mapping[str, PowerCosts], delta_max: float | None
) -> CurveGame:
    """Return the game of a file with a ``[curves]`` table; its ``file`` is looked for in ``folder``."""
    table = section(data, "curves")
    known(table, KEYS, "a key of [curves]")
    designer = section(data, "designer", needed=False)
    known(designer, ("price",), "a key of [designer]")
    if "file" not in table:
        raise UsageError("[curves]: `file` is missing: the scores by effort", hint="a path relative to the game file")
    with inside("[curves]"):
        given: dict[str, Any] = {
            name: text(table[name], f"`{name}`") for name in ("task", "metric", "filter", "effort") if name in table
        }
        given |= {name: setting(table[name], f"`{name}`") for name in ("lower", "upper", "beta") if name in table}
        given |= {name: whole(table[name], f"`{name}`") for name in ("items", "replicates", "seed") if name in table}
        if "models" in table:
            given["models"] = _names(table["models"], "`models`")
        if "capability" in table:
            value = table["capability"]
            given["capability"] = value if isinstance(value, str) else _names(value, "`capability`")
        if "deltas" in table:
            given["deltas"] = tuple(numbers(table["deltas"], "`deltas`"))
        file = folder / text(table["file"], "`file`")
        if not file.exists():
            raise UsageError(f"`file` {file} does not exist", hint="a path relative to the game file")
    if "rewards" in data:
        given["rewards"] = rewards_of_file(data["rewards"])
    if "tune_before_test" in data:
        given["tune_before_test"] = number(data["tune_before_test"], "`tune_before_test`")
    if "race" in data:
        given["race"] = flag(data["race"], "`race`")
    if "price" in designer:
        given["price"] = number(designer["price"], "[designer]: `price`")
    given |= {"cost": cost, "delta_max": delta_max, "own_costs": own_costs or None}
    return CurveGame(file).with_options(**given)


def one_a_developer(costs: Sequence[PowerCosts]) -> PowerCosts:
    """Return the costs of single developers as one, with a parameter each."""
    return PowerCosts(*(np.array([getattr(one, part)[0] for one in costs]) for part in ("kappa", "exponent", "free")))


def setting(value: Any, where: str) -> Setting:
    """Return what is said of a parameter: "per-model", "shared", or the number that it is."""
    if isinstance(value, str):
        if value in ("per-model", "shared"):
            return value  # type: ignore[return-value]
        try:
            return float(value)
        except ValueError:
            raise UsageError(f"{where} must be {', '.join(SETTINGS)} or a number, got {value!r}") from None
    return number(value, where)


def _names(value: Any, where: str) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, list) or not value:
        raise UsageError(f"{where} must be a list of names, got {value!r}")
    return tuple(text(name, where) for name in value)
