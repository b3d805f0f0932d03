"""Costs of effort in the ranking game: named forms, one row of a table each, and callables.

A cost gives what effort e beyond the protocol's costs developer i: continuous, non-decreasing, 0 at 0 and strictly
increasing beyond the free effort. Methods take arrays of developers' positions and efforts, which broadcast.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from benchwright._check import FloatArray
from benchwright.errors import UsageError
from benchwright.ranking_game import _curves as numbers
from benchwright.ranking_game.forms import PROBES, Form, IntArray, per_developer, values_of


class Costs(Protocol):
    """The developers' costs; ``free`` (n,) is the greatest effort that costs nothing."""

    @property
    def free(self) -> FloatArray: ...

    def for_developers(self, n: int) -> Costs:
        """The same with one entry a developer, checked."""
        ...

    def cost(self, who: IntArray, effort: FloatArray) -> FloatArray:
        """Cost of effort >= 0; inf at inf."""
        ...

    def budget(self, who: IntArray, amount: FloatArray) -> FloatArray:
        """The greatest effort that costs at most ``amount``; NaN where the amount is negative."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class PowerCosts:
    """c_i(e) = kappa_i max(e - free_i, 0)^exponent_i, each one number for all or one a developer.

    ``kappa`` > 0, ``exponent`` > 0 (convex from 1 on), ``free`` >= 0.
    """

    kappa: Any = 1.0
    exponent: Any = 1.0
    free: Any = 0.0

    def __post_init__(self) -> None:
        sizes = [np.size(value) for value in (self.kappa, self.exponent, self.free) if np.ndim(value)]
        n = max(sizes, default=1)
        for name, strictly in (("kappa", True), ("exponent", True), ("free", False)):
            value = per_developer(name, getattr(self, name), n)
            if value.min() < 0 or (strictly and value.min() == 0):
                what = "free_effort" if name == "free" else name
                raise UsageError(f"`{what}` must be {'> 0' if strictly else '>= 0'}, got {value.min():g}")
            object.__setattr__(self, name, value)

    def for_developers(self, n: int) -> PowerCosts:
        """The same with one entry a developer."""
        if self.kappa.size not in (1, n):
            raise UsageError(f"costs must be one for all or one a developer ({n}), got {self.kappa.size}")
        return PowerCosts(*(np.broadcast_to(part, n) for part in (self.kappa, self.exponent, self.free)))

    def cost(self, who: IntArray, effort: FloatArray) -> FloatArray:
        paid = np.maximum(effort - self.free[who], 0.0)
        with np.errstate(over="ignore"):
            value: FloatArray = self.kappa[who] * (paid if (self.exponent == 1).all() else paid ** self.exponent[who])
        return value

    def budget(self, who: IntArray, amount: FloatArray) -> FloatArray:
        with np.errstate(invalid="ignore"):
            paid = np.where(amount >= 0, amount, np.nan) / self.kappa[who]
        value: FloatArray = self.free[who] + paid ** (1.0 / self.exponent[who])
        return value


@dataclass(frozen=True, slots=True, eq=False)
class FunctionCosts:
    """c_i(e) from one callable of an array of efforts for all, or a sequence of n callables.

    ``free`` is the effort up to which the cost is 0, one number or one a developer; beyond it the callable must be
    strictly increasing, continuous and unbounded, which is checked at some efforts only.
    """

    function: Callable[[FloatArray], Any] | Sequence[Callable[[FloatArray], Any]]
    free: Any = 0.0
    size: int = 1

    def for_developers(self, n: int) -> FunctionCosts:
        """The same with one entry a developer, checked."""
        made = FunctionCosts(self.function, per_developer("free_effort", self.free, n), n)
        if not callable(made.function):
            functions = tuple(made.function)
            if len(functions) != n or not all(map(callable, functions)):
                raise UsageError(f"`cost` must be one callable, or {n} callables, one a developer")
            object.__setattr__(made, "function", functions)
        if made.free.min() < 0:
            raise UsageError(f"`free_effort` must be >= 0, got {made.free.min():g}")
        for i in range(1 if callable(made.function) and np.ptp(made.free) == 0 else n):
            free = made.free[i]
            at = np.concatenate([np.linspace(0.0, free, 9), free + PROBES[1:]])
            values = made.cost(np.full(at.size, i), at)
            if np.isnan(values).any() or values.min() < 0:
                raise UsageError(f"cost of developer {i + 1} must be >= 0, got {values.min():g}")
            if values[:9].any():
                raise UsageError(f"cost of developer {i + 1} must be 0 up to its free effort {free:g}")
            if (stuck := np.flatnonzero(np.diff(values[8:]) <= 0)).size:
                raise UsageError(
                    f"cost of developer {i + 1} must strictly increase beyond its free effort {free:g}, but does not"
                    f" from {at[8 + stuck[0]]:g} to {at[9 + stuck[0]]:g}",
                    hint="say up to where effort is free with `free_effort`",
                )
        return made

    def cost(self, who: IntArray, effort: FloatArray) -> FloatArray:
        who, effort = np.broadcast_arrays(who, np.asarray(effort, dtype=np.float64))
        result, known = np.full(effort.shape, np.inf), np.isfinite(effort)
        with np.errstate(over="ignore"):
            if callable(self.function):
                result[known] = values_of("cost", self.function(effort[known]), (int(known.sum()),))
                return result
            for i in np.unique(who):
                mine = known & (who == i)
                result[mine] = values_of("cost", self.function[i](effort[mine]), (int(mine.sum()),))
        return result

    def budget(self, who: IntArray, amount: FloatArray) -> FloatArray:
        who, amount = np.broadcast_arrays(who, np.asarray(amount, dtype=np.float64))
        mine, wanted = who.ravel(), np.where(amount >= 0, amount, -1.0).ravel()
        low, high = numbers.first_above(lambda effort, which: self.cost(mine[which], effort), wanted)
        value = np.where(np.isfinite(high), low, np.inf)
        result: FloatArray = np.where(wanted >= 0, value, np.nan).reshape(amount.shape)
        return result


COST_FORMS = {
    "linear": Form("kappa e", {"kappa": 1.0}, lambda kappa: PowerCosts(kappa)),
    "power": Form(
        "kappa max(e - free_effort, 0)^exponent",
        {"kappa": 1.0, "exponent": 1.0, "free_effort": 0.0},
        lambda kappa, exponent, free_effort: PowerCosts(kappa, exponent, free_effort),
    ),
}
