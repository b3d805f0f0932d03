"""Score curves of the ranking game: named forms, one row of a table each, and callables.

A curve gives developer i the score v_i(x) after total effort x, non-decreasing and continuous in x. Methods take arrays
of developers' positions and efforts, which broadcast.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from benchwright._check import FloatArray, finite_array
from benchwright.errors import UsageError
from benchwright.ranking_game import _curves as numbers
from benchwright.ranking_game._curves import EPS, ROUNDINGS

IntArray = NDArray[np.intp]
Bracket = tuple[FloatArray, FloatArray]
Delta = float | FloatArray
PROBES = np.concatenate([[0.0], np.geomspace(1e-3, 1e6, 46)])  # efforts at which a callable is checked
SCORE_SLACK = 4 * EPS  # roundings that a callable's score, at most 1, is allowed


class Curves(Protocol):
    """The developers' score curves; ``capability`` (n,) orders them, ``strict`` says v_i is strictly increasing."""

    @property
    def capability(self) -> FloatArray: ...

    @property
    def strict(self) -> bool: ...

    def score(self, who: IntArray, effort: FloatArray) -> FloatArray:
        """Score in [0, 1] after total effort."""
        ...

    def key(self, who: IntArray, effort: FloatArray) -> FloatArray:
        """A quantity that ranks like the score and does not saturate where the form allows it."""
        ...

    def lead(self, who: IntArray, effort: FloatArray, other: IntArray, its_effort: FloatArray, delta: Delta) -> Bracket:
        """Bracket of a quantity with the sign of v_who(delta + effort) - v_other(delta + its_effort)."""
        ...

    def overtake(self, who: IntArray, other: IntArray, its_effort: FloatArray, delta: Delta) -> Bracket:
        """Bracket of inf{e >= 0 : v_who(delta + e) > v_other(delta + its_effort)}, inf where out of reach."""
        ...

    def drift(
        self,
        who: IntArray,
        effort: FloatArray,
        other: IntArray,
        its_effort: FloatArray,
        low: FloatArray,
        high: FloatArray,
    ) -> IntArray:
        """Sign of the change of the lead of ``other`` over ``who`` as delta goes from ``low`` to ``high``.

        1 where the lead, on some scale, nowhere falls, -1 where it nowhere rises, 0 where neither is known.
        """
        ...


@dataclass(frozen=True, slots=True, eq=False)
class TranslationCurves:
    """v_i(x) = g(theta_i + x): effort moves a developer along one curve that all share.

    ``form`` is "exponential", g(z) = 1 - exp(-z) for z >= 0, or "hyperbolic", g(z) = 1 - 1/(2 + z) for z >= -1.
    """

    theta: FloatArray
    form: str

    def __post_init__(self) -> None:
        theta = finite_array("theta", self.theta, ndim=1)
        lowest = {"exponential": 0.0, "hyperbolic": -1.0}.get(self.form)
        if lowest is None:
            raise UsageError(f"`form` must be exponential or hyperbolic, got {self.form!r}")
        if theta.size and theta.min() < lowest:
            raise UsageError(
                f"`theta` must be >= {lowest:g} for the {self.form} form, got {theta.min():g}: its score leaves [0, 1]"
            )
        object.__setattr__(self, "theta", theta)

    @property
    def capability(self) -> FloatArray:
        return self.theta

    @property
    def strict(self) -> bool:
        return True

    def score(self, who: IntArray, effort: FloatArray) -> FloatArray:
        z = self.theta[who] + effort
        value: FloatArray = -np.expm1(-z) if self.form == "exponential" else 1.0 - 1.0 / (2.0 + z)
        return value

    def key(self, who: IntArray, effort: FloatArray) -> FloatArray:
        return self.theta[who] + effort

    def lead(self, who: IntArray, effort: FloatArray, other: IntArray, its_effort: FloatArray, delta: Delta) -> Bracket:
        """Bracket of z_who - z_other, in which delta cancels."""
        with np.errstate(invalid="ignore"):
            value = (self.theta[who] - self.theta[other]) + (effort - its_effort)
        size = np.abs(self.theta[who]) + np.abs(self.theta[other]) + np.abs(effort) + np.abs(its_effort)
        slack = EPS * np.where(np.isfinite(size), size, 0.0)
        return value - slack, value + slack

    def overtake(self, who: IntArray, other: IntArray, its_effort: FloatArray, delta: Delta) -> Bracket:
        value = (self.theta[other] - self.theta[who]) + its_effort
        slack = EPS * (np.abs(self.theta[who]) + np.abs(self.theta[other]) + its_effort)
        return np.maximum(value - slack, 0.0), np.maximum(value + slack, 0.0)

    def drift(
        self,
        who: IntArray,
        effort: FloatArray,
        other: IntArray,
        its_effort: FloatArray,
        low: FloatArray,
        high: FloatArray,
    ) -> IntArray:
        """1: the lead does not depend on delta."""
        return np.ones(low.shape, dtype=np.intp)


@dataclass(frozen=True, slots=True, eq=False)
class PowerLawCurves:
    """v_i(x) = L_i + (U_i - L_i) sigmoid(alpha_i + beta_i log(1 + x)), 0 <= L_i < U_i <= 1, beta_i > 0.

    ``lower`` (L), ``upper`` (U) and ``beta`` are one number for all or one a developer. ``capability`` defaults to the
    given order: the first developer is the most capable.
    """

    alpha: FloatArray
    beta: Any = 1.0
    lower: Any = 0.0
    upper: Any = 1.0
    capability: Any = None

    def __post_init__(self) -> None:
        alpha = finite_array("alpha", self.alpha, ndim=1)
        n = alpha.size
        clean = {"alpha": alpha} | {name: per_developer(name, getattr(self, name), n) for name in _SHARED}
        order = np.arange(n, 0, -1, dtype=np.float64) if self.capability is None else self.capability
        clean["capability"] = per_developer("capability", order, n)
        if (bad := np.flatnonzero(clean["beta"] <= 0)).size:
            raise UsageError(f"`beta` must be > 0, got {clean['beta'][bad[0]]:g} for developer {bad[0] + 1}")
        wrong = (clean["lower"] < 0) | (clean["lower"] >= clean["upper"]) | (clean["upper"] > 1)
        if (bad := np.flatnonzero(wrong)).size:
            i = bad[0]
            raise UsageError(
                f"scores need 0 <= L < U <= 1, got L = {clean['lower'][i]:g}, U = {clean['upper'][i]:g}"
                f" for developer {i + 1}"
            )
        for name, value in clean.items():
            object.__setattr__(self, name, value)

    @property
    def strict(self) -> bool:
        return True

    def level(self, who: IntArray, effort: FloatArray) -> FloatArray:
        """alpha + beta log(1 + effort)."""
        z: FloatArray = self.alpha[who] + self.beta[who] * np.log1p(effort)
        return z

    def score(self, who: IntArray, effort: FloatArray) -> FloatArray:
        return numbers.power_law(self.level(who, effort), self.lower[who], self.upper[who])

    def key(self, who: IntArray, effort: FloatArray) -> FloatArray:
        alike = np.ptp(self.lower) == 0 and np.ptp(self.upper) == 0
        return self.level(who, effort) if alike else self.score(who, effort)

    def _wanted(
        self, who: IntArray, other: IntArray, its_effort: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Bracket of the level at which ``who`` has the score of ``other``, and the size of its rounding."""
        z = self.level(other, its_effort)
        low, high = numbers.power_law_level(z, self.lower[other], self.upper[other], self.lower[who], self.upper[who])
        return low, high, ROUNDINGS * EPS * (np.abs(self.alpha[other]) + np.abs(z) + np.abs(self.alpha[who]))

    def lead(self, who: IntArray, effort: FloatArray, other: IntArray, its_effort: FloatArray, delta: Delta) -> Bracket:
        """Bracket of z_who less the level at which it would have the other's score."""
        z = self.level(who, delta + effort)
        low, high, slack = self._wanted(who, other, delta + its_effort)
        with np.errstate(invalid="ignore"):
            own = slack + ROUNDINGS * EPS * np.where(np.isfinite(z), np.abs(z), 0.0)
            least, most = z - high - own, z - low + own
        unlimited = np.isposinf(z)  # at unlimited effort the score is U_i, which is above s iff s < U_i
        least = np.where(unlimited, np.where(np.isposinf(high), -np.inf, np.inf), least)
        return least, np.where(unlimited, np.where(np.isposinf(low), -np.inf, np.inf), most)

    def overtake(self, who: IntArray, other: IntArray, its_effort: FloatArray, delta: Delta) -> Bracket:
        low, high, slack = self._wanted(who, other, delta + its_effort)
        start, lost = 1.0 + delta, 2 * EPS * (1.0 + delta)
        with np.errstate(over="ignore"):
            least = np.exp((low - self.alpha[who] - slack) / self.beta[who]) * (1 - 4 * EPS) - start - lost
            most = np.exp((high - self.alpha[who] + slack) / self.beta[who]) * (1 + 4 * EPS) - start + lost
        return np.maximum(least, 0.0), np.maximum(most, 0.0)

    def drift(
        self,
        who: IntArray,
        effort: FloatArray,
        other: IntArray,
        its_effort: FloatArray,
        low: FloatArray,
        high: FloatArray,
    ) -> IntArray:
        """From the levels where both curves have the same bounds, else from bounds on slopes.

        The slopes are those of the scores, or of 1 / (U - score) where U is the same.
        """
        mine, theirs = (1.0 + effort + low, 1.0 + effort + high), (1.0 + its_effort + low, 1.0 + its_effort + high)
        alike = (self.lower[who] == self.lower[other]) & (self.upper[who] == self.upper[other])
        ends = [self.beta[other] * mine[k] - self.beta[who] * theirs[k] for k in (0, 1)]  # linear in delta
        own = numbers.power_law_slope(self.alpha[who], self.beta[who], self.upper[who] - self.lower[who], *mine)
        its = numbers.power_law_slope(
            self.alpha[other], self.beta[other], self.upper[other] - self.lower[other], *theirs
        )
        rises = np.where(alike, np.minimum(*ends) >= 0, its[0] >= own[1])
        falls = np.where(alike, np.maximum(*ends) <= 0, its[1] <= own[0])
        short = [self._log_slopes(who, mine), self._log_slopes(other, theirs)]
        one_top, slack = self.upper[who] == self.upper[other], ROUNDINGS * EPS * (1.0 + np.abs(short[0][0]))
        rises |= one_top & ~alike & (np.minimum(*short[1]) >= np.maximum(*short[0]) - slack)
        falls |= one_top & ~alike & (np.maximum(*short[1]) <= np.minimum(*short[0]) + slack)
        return np.where(rises, 1, np.where(falls, -1, 0))

    def _log_slopes(self, who: IntArray, ends: tuple[FloatArray, FloatArray]) -> list[FloatArray]:
        """Logarithms of the slope of 1 / (U - score) at both ends; it is monotone in between."""
        scale = self.alpha[who] + np.log(self.beta[who] / (self.upper[who] - self.lower[who]))
        return [scale + (self.beta[who] - 1.0) * np.log(end) for end in ends]


_SHARED = ("beta", "lower", "upper")


@dataclass(frozen=True, slots=True, eq=False)
class FunctionCurves:
    """v_i(x) = function(theta_i, x), a callable of two arrays; or a sequence of n callables of x, with ``theta``.

    What is proved with it rests on the callable's being non-decreasing and continuous, which is checked at some efforts
    only, and on scores that are right to a few roundings.
    """

    function: Callable[[FloatArray, FloatArray], Any] | Sequence[Callable[[FloatArray], Any]]
    theta: FloatArray

    def __post_init__(self) -> None:
        theta = finite_array("theta", self.theta, ndim=1)
        object.__setattr__(self, "theta", theta)
        if not callable(self.function):
            functions = tuple(self.function)
            if len(functions) != theta.size or not all(map(callable, functions)):
                raise UsageError(f"`function` must be one callable, or {theta.size} callables, one a developer")
            object.__setattr__(self, "function", functions)
        who = np.arange(theta.size)
        values = np.stack([self.score(who, np.full(theta.size, effort)) for effort in PROBES])
        for wrong, reason in (
            (~np.isfinite(values), "must be a finite number"),
            ((values < -SCORE_SLACK) | (values > 1 + SCORE_SLACK), "must lie in [0, 1]"),
            (np.diff(values, axis=0, prepend=values[:1]) < -SCORE_SLACK, "must not fall with effort"),
        ):
            if wrong.any():
                step, i = (int(k) for k in np.argwhere(wrong)[0])
                raise UsageError(
                    f"score of developer {i + 1} {reason}, got {values[step, i]:g} at effort {PROBES[step]:g}"
                )

    @property
    def capability(self) -> FloatArray:
        return self.theta

    @property
    def strict(self) -> bool:
        return False

    def score(self, who: IntArray, effort: FloatArray) -> FloatArray:
        who, effort = np.broadcast_arrays(who, np.asarray(effort, dtype=np.float64))
        with np.errstate(over="ignore"):
            if callable(self.function):
                return values_of("score", self.function(self.theta[who], effort), effort.shape)
            result = np.empty(effort.shape)
            for i in np.unique(who):
                mine = who == i
                result[mine] = values_of("score", self.function[i](effort[mine]), effort[mine].shape)
        return result

    def key(self, who: IntArray, effort: FloatArray) -> FloatArray:
        return self.score(who, effort)

    def lead(self, who: IntArray, effort: FloatArray, other: IntArray, its_effort: FloatArray, delta: Delta) -> Bracket:
        """Bracket of the difference of scores."""
        value = self.score(who, delta + effort) - self.score(other, delta + its_effort)
        return value - 2 * SCORE_SLACK, value + 2 * SCORE_SLACK

    def overtake(self, who: IntArray, other: IntArray, its_effort: FloatArray, delta: Delta) -> Bracket:
        who, other, its_effort, start = np.broadcast_arrays(
            who, other, np.asarray(its_effort, dtype=np.float64), np.asarray(delta, dtype=np.float64)
        )
        target, mine, tuned = self.score(other, start + its_effort).ravel(), who.ravel(), start.ravel()

        def curve(effort: FloatArray, which: IntArray) -> FloatArray:
            return self.score(mine[which], tuned[which] + effort)

        low, high = (numbers.first_above(curve, target + sign * 2 * SCORE_SLACK)[k] for k, sign in enumerate((-1, 1)))
        return low.reshape(who.shape), high.reshape(who.shape)

    def drift(
        self,
        who: IntArray,
        effort: FloatArray,
        other: IntArray,
        its_effort: FloatArray,
        low: FloatArray,
        high: FloatArray,
    ) -> IntArray:
        """0: a callable's slope is not known."""
        return np.zeros(low.shape, dtype=np.intp)


def per_developer(name: str, value: Any, n: int) -> FloatArray:
    """One finite number a developer."""
    if np.ndim(value) == 0:
        value = np.full(n, value)
    array = finite_array(name, value, ndim=1)
    if array.size != n:
        raise UsageError(f"`{name}` must be one number, or {n}, one a developer, got {array.size}")
    return array


def values_of(name: str, value: Any, shape: tuple[int, ...]) -> FloatArray:
    """What a callable returned, as an array of ``shape``."""
    array = np.asarray(value, dtype=np.float64)
    if array.shape != shape and array.ndim:
        raise UsageError(f"the {name} callable must return shape {shape} for efforts of that shape, got {array.shape}")
    return np.broadcast_to(array, shape)


@dataclass(frozen=True, slots=True)
class Form:
    """A form that game files name: its parameters, with the value that a file may leave out (None: none)."""

    formula: str
    parameters: Mapping[str, float | None]
    make: Callable[..., Any]


SCORE_FORMS = {
    "exponential": Form(
        "1 - exp(-(theta + e))", {"theta": None}, lambda theta: TranslationCurves(theta, "exponential")
    ),
    "hyperbolic": Form("1 - 1/(2 + e + theta)", {"theta": None}, lambda theta: TranslationCurves(theta, "hyperbolic")),
    "generalised-power-law": Form(
        "L + (U - L) sigmoid(alpha + beta log(1 + e))",
        {"alpha": None, "beta": 1.0, "L": 0.0, "U": 1.0},
        lambda alpha, beta, L, U, capability=None: PowerLawCurves(alpha, beta, L, U, capability),
    ),
}
