"""A contest of two developers as a JSON record: a prize, a share of it for a tie, and a cost a level of effort."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

from benchwright.errors import UsageError
from benchwright.game_answers.files import DELTA_MAX, GameFile
from benchwright.ranking_game.finite import FiniteGame

KEYS = ("effort_levels", "prize", "cost_per_level")
OTHERS = ("players", "tie_share", "payoff_row")


def is_contest(head: bytes) -> bool:
    """Return whether a file begins like such a record."""
    return head.lstrip().startswith(b"{") and all(f'"{key}"'.encode() in head for key in KEYS)


def read_contest(path: Path) -> GameFile:
    """Read a contest: cost of a level = cost_per_level times the level, exact.

    Raises
    ------
    UsageError
        A key is missing, or what is stated is no such contest: other than two players, a tie share that is not half
        the prize, or a table of payoffs that these costs and rewards do not give.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8-sig"), parse_float=Fraction, parse_int=Fraction)
    except (OSError, ValueError) as error:
        raise UsageError(f"{path.name}: not a JSON file: {error}") from None
    if unknown := [key for key in data if key not in KEYS + OTHERS]:
        raise UsageError(f"{path.name}: `{unknown[0]}` is not a key of a contest: {', '.join(KEYS + OTHERS)}")
    if missing := [key for key in KEYS if key not in data]:
        raise UsageError(f"{path.name}: `{missing[0]}` is missing")
    prize, each, levels = (_exact(data[key], key) for key in ("prize", "cost_per_level", "effort_levels"))
    if not isinstance(levels, list):
        raise UsageError(f"{path.name}: `effort_levels` must be a list of numbers")
    if data.get("players", 2) != 2:
        raise UsageError(f"{path.name}: `players` must be 2, got {data['players']}")
    if data.get("tie_share", prize / 2) != prize / 2:
        raise UsageError(f"{path.name}: `tie_share` must be half the prize, got {data['tie_share']}")
    stated: dict[str, Any] = {"efforts": levels, "costs": [each * level for level in levels]}
    game = FiniteGame((prize, Fraction(0)), **stated)
    places = range(len(levels))
    if data.get("payoff_row", table := [[game.payoff((i, j), 0) for j in places] for i in places]) != table:
        raise UsageError(f"{path.name}: `payoff_row` is not what prize, ties and costs give")
    return GameFile(game, (), DELTA_MAX)


def _exact(value: Any, name: str) -> Any:
    """Return a number, or a list of numbers, as read."""
    for one in value if isinstance(value, list) else [value]:
        if not isinstance(one, Fraction):
            raise UsageError(f"`{name}` must be a number, or a list of them for the levels, got {one!r}")
    return value
