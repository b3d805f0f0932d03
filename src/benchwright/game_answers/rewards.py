"""Rewards of ranks: a list, or a form that needs no number of developers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchwright._check import FloatArray, finite_array
from benchwright.errors import UsageError
from benchwright.game_answers.toml_parts import form_of, inside, known, number, numbers, parameters_of
from benchwright.ranking_game.forms import Form


@dataclass(frozen=True, slots=True)
class Rewards:
    """Rewards of ranks 1, 2, ...: ``values`` as listed, or by a form of ``REWARD_FORMS``.

    >>> Rewards("geometric", {"top": 100.0, "ratio": 0.5}).of(3)
    array([100.,  50.,  25.])
    >>> str(Rewards("per-rank", {"gap": 1000.0}))
    'each rank earns 1,000 more than the next'
    """

    form: str
    parameters: Mapping[str, float]
    values: tuple[float, ...] = ()

    def of(self, n: int) -> FloatArray:
        """Rewards (n,) of n ranks.

        Raises
        ------
        UsageError
            The list has another length, or a form gives no rewards.
        """
        if self.form != LISTED:
            rewards: FloatArray = REWARD_FORMS[self.form].make(n, **self.parameters)
            return finite_array("rewards", rewards, ndim=1)
        if len(self.values) != n:
            raise UsageError(
                f"`rewards` must hold {n} rewards, one a rank, got {len(self.values)}",
                hint="a form needs no number of ranks, e.g. per-rank:1000 or geometric:1000:0.6",
            )
        return np.array(self.values)

    def __str__(self) -> str:
        if self.form == LISTED:
            return f"rewards as listed: {', '.join(f'{value:,g}' for value in self.values)}"
        return WORDS[self.form].format(**self.parameters)


def _linear(n: int, top: float, bottom: float) -> FloatArray:
    return np.linspace(top, bottom, n)


def _per_rank(n: int, gap: float) -> FloatArray:
    return gap * np.arange(n - 1, -1, -1.0)


def _geometric(n: int, top: float, ratio: float) -> FloatArray:
    if not 0 <= ratio <= 1:
        raise UsageError(f"`ratio` must lie in [0, 1], got {ratio:g}")
    rewards: FloatArray = top * ratio ** np.arange(n, dtype=np.float64)
    return rewards


LISTED = "list"
REWARD_FORMS = {
    "per-rank": Form("gap (n - rank)", {"gap": None}, _per_rank),
    "linear": Form("evenly from top to bottom", {"top": None, "bottom": 0.0}, _linear),
    "geometric": Form("top ratio^(rank - 1)", {"top": None, "ratio": None}, _geometric),
}
WORDS = {
    "per-rank": "each rank earns {gap:,g} more than the next",
    "linear": "rewards fall evenly from {top:,g} for the first rank to {bottom:,g} for the last",
    "geometric": "the first rank earns {top:,g}, each next one {ratio:g} of the one above",
}


def rewards_of_file(value: Any) -> Rewards:
    """Return the rewards of a game file: a list of numbers, or a table with ``form`` and its parameters."""
    if not isinstance(value, Mapping):
        return Rewards(LISTED, {}, tuple(numbers(value, "`rewards`")))
    form = form_of(value, REWARD_FORMS, "`rewards`")
    return Rewards(str(value["form"]), parameters_of(value, form, "`rewards`"))


def rewards_of_text(text: str) -> Rewards:
    """Return the rewards of an option: ``3,1,0``, or a form and its parameters, ``geometric:1000:0.6``.

    >>> rewards_of_text("linear:1000").of(3)
    array([1000.,  500.,    0.])
    """
    name, *given = (part.strip() for part in text.split(":"))
    with inside(f"--rewards {text}"):
        if not given and "," in name:
            return Rewards(LISTED, {}, tuple(_number(part) for part in name.split(",")))
        known([name], REWARD_FORMS, "a form of rewards")
        names = list(REWARD_FORMS[name].parameters)
        if len(given) > len(names):
            raise UsageError(f"{name} has {len(names)} parameter(s), {':'.join(names)}, got {len(given)}")
        table = {"form": name, **dict(zip(names, map(_number, given), strict=False))}
        return Rewards(name, parameters_of(table, REWARD_FORMS[name], name))


def _number(text: str) -> float:
    try:
        return number(float(text), text)
    except ValueError:
        raise UsageError(f"`{text}` is no number") from None
