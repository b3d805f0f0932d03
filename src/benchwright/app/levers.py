"""The levers of the desk: which choices a committee moves, how they are written in an address, what they make.

To add a lever, add a row to :func:`levers_of`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from benchwright.app.desk import Desk
from benchwright.config import CONFIG_NAME, Config, toml_value
from benchwright.errors import ConfigError, UsageError
from benchwright.game_answers.rewards import rewards_of_text

Kind = Literal["slider", "number", "whole", "flag", "choice", "text"]
UNSET = "unset"
LONGEST = 200  # characters of a value in an address
Settings = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Lever:
    """One choice: its key in ``benchwright.toml``, its label and group, how it is moved, and what it says.

    ``optional``: it may be left unset.
    """

    key: str
    label: str
    group: str
    kind: Kind
    help: str
    low: float | None = None
    high: float | None = None
    optional: bool = False
    options: tuple[str, ...] = ()


WELFARE, LAB, PRICES = "What an item is worth", "The developer", "Prices"
BOARD, GAME = "What a board can publish", "Ranking game"
GROUPS = (WELFARE, LAB, PRICES, BOARD, GAME)


def levers_of(desk: Desk) -> tuple[Lever, ...]:
    """Return the levers that a source has a use for."""
    return tuple(_levers(desk))


def _levers(desk: Desk) -> Iterator[Lever]:
    if desk.start.weights is not None:
        yield Lever(
            "welfare.automation_share",
            "Share of automation",
            WELFARE,
            "slider",
            "1: an item is worth what workers would have taken over; 0: what they want help with.",
            0.0,
            1.0,
        )
        yield Lever(
            "welfare.neutral",
            "Neutral point",
            WELFARE,
            "slider",
            "Below it an item's improvement does harm.",
            1.0,
            5.0,
        )
        yield Lever(
            "lab.risk_aversion",
            "Risk aversion",
            LAB,
            "number",
            "How much developers fear that noise decides their score (1 / reward).",
            0.0,
            1e60,
        )
        yield Lever(
            "lab.budget",
            "Budget (US dollars)",
            LAB,
            "number",
            "What the developer would spend under the plain average; fixes the cost of effort.",
            1e-9,
            1e15,
        )
        for axis in desk.axes:
            per = desk.config.prices[axis].per
            yield Lever(f"prices.{axis}", f"Price of {axis} (US dollars)", PRICES, "number", f"For {per}.", 1e-15, 1e15)
        yield Lever(
            "published.non_negative",
            "No weight below 0",
            BOARD,
            "flag",
            "With one, a model that solves the item loses score.",
        )
        yield Lever(
            "published.max_share",
            "Largest share of one item",
            BOARD,
            "number",
            "So that no item rules the score, e.g. 0.05.",
            0.0,
            1.0,
            optional=True,
        )
        start = desk.config.published.equal_within
        yield Lever(
            "published.equal_within",
            "One weight within each",
            BOARD,
            "choice",
            "As boards of task means do.",
            options=tuple(dict.fromkeys(("none", "task", "family", start))),
        )
        yield Lever(
            "published.at_most",
            "Items with a weight, at most",
            BOARD,
            "whole",
            "The search for the best few may take seconds.",
            1,
            1_000_000_000,
            optional=True,
        )
    if desk.opened is not None and desk.opened.movable:
        yield Lever(
            "game.rewards",
            "Rewards of ranks",
            GAME,
            "text",
            "per-rank:GAP, linear:TOP:BOTTOM, geometric:TOP:RATIO, or a list such as 3,1,0. Empty: as the game has it.",
            optional=True,
        )
        yield Lever(
            "game.kappa",
            "Cost of a unit of effort",
            GAME,
            "number",
            "For every developer, in units of reward. Empty: as the game has it.",
            1e-15,
            1e15,
            optional=True,
        )
        yield Lever(
            "game.tune_before_test",
            "Tuning before the test",
            GAME,
            "number",
            "Common to all models, in the unit of effort. Empty: as the game has it.",
            0.0,
            1e15,
            optional=True,
        )


def value_in(config: Config, key: str) -> Any:
    """Return the value of a lever in a configuration.

    >>> value_in(Config(), "prices.SFT"), value_in(Config(), "welfare.neutral")
    (0.2, 3.0)
    """
    section, _, name = key.partition(".")
    if section == "prices":
        return config.prices[name].usd
    return getattr(getattr(config, section), name)


def config_under(desk: Desk, settings: Settings) -> Config:
    """Return the desk's choices with levers moved; a lever where it stood keeps what set it.

    Raises
    ------
    ConfigError, UsageError
        A value that the choice does not allow.
    """
    moved = {key: value for key, value in settings.items() if value != value_in(desk.config, key)}
    if isinstance(moved.get("game.rewards"), str):
        rewards_of_text(moved["game.rewards"])
    return desk.config.replace(moved, source=CONFIG_NAME)


def to_query(desk: Desk, settings: Settings) -> dict[str, str]:
    """Return what an address says of levers: those that do not stand where the desk starts."""
    moved = {key: value for key, value in settings.items() if value != value_in(desk.config, key)}
    return {key: UNSET if value is None else _text(value) for key, value in moved.items()}


def from_query(desk: Desk, query: Mapping[str, str]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the levers that an address sets, and what of it cannot be used and why."""
    levers = {lever.key: lever for lever in levers_of(desk)}
    found: dict[str, Any] = {}
    faults: list[str] = []
    for key, text in query.items():
        lever = levers.get(key)
        if lever is None:
            faults.append(f"{_short(key)} is no lever of this desk")
            continue
        try:
            value = _value(lever, text)
            config_under(desk, {key: value})
            bounds = (lever.low, lever.high)
            if value is not None and None not in bounds and not lever.low <= value <= lever.high:
                raise ConfigError(f"{key} must lie in {lever.low:g} .. {lever.high:g} on this desk")
            found[key] = value
        except UsageError as error:
            faults.append(_short(error.message))
    return found, tuple(faults)


def _value(lever: Lever, text: str) -> Any:
    if lever.optional and text == UNSET:
        return None
    if len(text) > LONGEST:
        raise ConfigError(f"{lever.key} is longer than {LONGEST} characters")
    if lever.kind == "text":
        return text
    if lever.kind == "choice":
        if text not in lever.options:
            raise ConfigError(f"{lever.key} must be one of {', '.join(lever.options)}, got {text!r}")
        return text
    try:
        value = tomllib.loads(f"value = {text}")
        one = value.pop("value")
    except (tomllib.TOMLDecodeError, KeyError):
        raise ConfigError(f"{lever.key}: {text!r} is no value") from None
    wanted = bool if lever.kind == "flag" else int if lever.kind == "whole" else (int, float)
    if value or not isinstance(one, wanted) or (isinstance(one, bool) and lever.kind != "flag"):
        raise ConfigError(f"{lever.key} must be {_what(lever.kind)}, got {text!r}")
    return float(one) if lever.kind in ("slider", "number") else one


def _what(kind: Kind) -> str:
    return {"flag": "true or false", "whole": "a whole number"}.get(kind, "a number")


def _text(value: Any) -> str:
    return value if isinstance(value, str) else toml_value(value)


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."
