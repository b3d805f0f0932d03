"""Words that sentences on the ranking game share: numbers, efforts, pairs of developers."""

from __future__ import annotations

from math import isfinite, isinf

from benchwright.ranking_game.game import RankingGame
from benchwright.ranking_game.jumps import Jump
from benchwright.report.tables_panel import LONGEST_NAME, plain_names

NAMED = 5  # developers that a sentence names


class Developers:
    """How sentences name the developers of a game, by their positions."""

    def __init__(self, game: RankingGame) -> None:
        self.names = plain_names([game.name(i) for i in range(game.n)], LONGEST_NAME)

    def pair(self, developer: int, over: int) -> str:
        """Return ``b over a``."""
        return f"{self.names[developer]} over {self.names[over]}"

    def jump(self, jump: Jump) -> str:
        """Return what a jump needs and costs."""
        return f"{self.pair(jump.developer, jump.over)}, {reach(jump.required_effort, jump.cost)}"


def reach(effort: float, cost: float) -> str:
    """Return what an effort costs, or that there is none."""
    if isinf(effort):
        return "is out of reach at any effort"
    if not isfinite(effort):
        return "is not known to double precision"
    return f"needs effort {number(effort)}, which costs {number(cost)}"


def number(value: float) -> str:
    """Return a number as sentences show it: four digits, thousands apart.

    >>> number(0.25), number(999.9999), number(384668.0), number(float("inf"))
    ('0.25', '1,000', '384,700', 'out of reach')
    """
    if isinf(value):
        return "out of reach"
    rounded = float(f"{value:.4g}")
    return f"{rounded:g}" if abs(rounded) < 1000 else f"{rounded:,.0f}"


def span(low: float, high: float) -> str:
    """Return an interval in words."""
    return f"{number(low)} to {number(high)}"


def some(names: list[str]) -> str:
    """Return the first few of several names."""
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more


def plain(text: str) -> str:
    """Return text in which names of developers may stand, printable, on one line, without its full stop."""
    return " ".join("".join(char if char.isprintable() else " " for char in text).split()).rstrip(".")


def leaving(exploitability: float, off_grid: float) -> str:
    """Return what a developer gains at most by leaving mixed play, found on cells of score.

    >>> leaving(0.0, 0.0), leaving(0.023, 63.7)
    ('nobody gains by leaving it', 'nobody gains more than 0.023 by another cell of scores, or 64 within one')
    """
    if exploitability == 0 and off_grid == 0:
        return "nobody gains by leaving it"
    return f"nobody gains more than {exploitability:.2g} by another cell of scores, or {off_grid:.2g} within one"
