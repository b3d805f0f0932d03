"""What is fitted: a law, and which of its parameters are each model's own, shared by all, or given."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchwright._check import FloatArray
from benchwright.curves import _fit
from benchwright.curves.laws import Law, law_named
from benchwright.errors import UsageError

OWN, SHARED = "per-model", "shared"
LEAST_RISE = 1e-6  # of U over L, as a share of what L leaves
Scope = str | float


@dataclass(frozen=True, slots=True)
class CurveForm:
    """A law and the scope of its parameters.

    Parameters
    ----------
    law : str
        A name in `benchwright.curves.laws.LAWS`.
    lower, upper, beta : "per-model", "shared" or a number
        Scope of L, U and beta; ``lower`` by default that of the law. Only the generalised power law has a beta. Its
        alpha, and the parameters of the other laws, are each model's own.

    Raises
    ------
    UsageError
        An unknown law or scope, numbers that break 0 <= L < U <= 1 or beta > 0, a scope of beta for a law without it.

    Examples
    --------
    >>> print(CurveForm(upper="shared", lower=0.25))
    generalised-power-law, lower 0.25, upper shared, beta per-model
    """

    law: str = "generalised-power-law"
    lower: Scope | None = None
    upper: Scope = OWN
    beta: Scope = OWN

    def __post_init__(self) -> None:
        rule = self.rule
        if self.lower is None:
            object.__setattr__(self, "lower", rule.lower)
        for name in ("lower", "upper", "beta"):
            object.__setattr__(self, name, _scope(name, getattr(self, name)))
        if "beta" not in rule.parameters and self.beta != OWN:
            raise UsageError(f"`beta` belongs to the generalised power law; {self.law} has none, got {self.beta!r}")
        low, high = (value if isinstance(value, float) else None for value in (self.lower, self.upper))
        if (low is not None and not 0 <= low < 1) or (high is not None and not 0 < high <= 1):
            raise UsageError(f"scores need 0 <= L < U <= 1, got lower = {self.lower}, upper = {self.upper}")
        if low is not None and high is not None and low >= high:
            raise UsageError(f"`lower` must be below `upper`, got {low:g} and {high:g}")
        j = rule.parameters.index("beta") if "beta" in rule.parameters else None
        if j is not None and isinstance(self.beta, float) and not rule.low[j] <= self.beta <= rule.high[j]:
            raise UsageError(f"`beta` must lie in [{rule.low[j]:g}, {rule.high[j]:g}], got {self.beta:g}")

    def __str__(self) -> str:
        beta = f", beta {self.beta}" if "beta" in self.rule.parameters else ""
        return f"{self.law}, lower {self.lower}, upper {self.upper}{beta}"

    @property
    def rule(self) -> Law:
        """The law itself."""
        return law_named(self.law)

    @property
    def names(self) -> tuple[str, ...]:
        """All parameters: those of the shape, then lower and upper."""
        return (*self.rule.parameters, "lower", "upper")

    @property
    def scopes(self) -> tuple[Scope, ...]:
        """Scope of each of ``names``."""
        shape = [self.beta if name == "beta" else OWN for name in self.rule.parameters]
        return (*shape, self.lower or 0.0, self.upper)

    @property
    def own(self) -> int:
        """Number of parameters that each model has for itself."""
        return sum(scope == OWN for scope in self.scopes)

    @property
    def common(self) -> int:
        """Number of shared parameters."""
        return sum(scope == SHARED for scope in self.scopes)

    @property
    def may_be_flat(self) -> bool:
        """Whether L and U are both each model's own, so that a curve can be flat at any level."""
        return self.lower == OWN and self.upper == OWN

    @property
    def model(self) -> _fit.Model:
        """The curve as the kernel knows it; what is shared or given nests what is not."""
        breadth = {OWN: 0, SHARED: 1}
        low, high = (breadth.get(scope, 2) if isinstance(scope, str) else 2 for scope in self.scopes[-2:])
        nested = "bottom" if high > low else "top"
        ends = ((0.0, LEAST_RISE), (1.0 - LEAST_RISE, 1.0))
        return _fit.Model(
            shape=self.rule.shape,
            nested=nested,
            low=np.array([*self.rule.low, *ends[0]]),
            high=np.array([*self.rule.high, *ends[1]]),
            shared=np.array([scope == SHARED for scope in self.scopes]),
            held=np.array([isinstance(scope, float) for scope in self.scopes]),
        )

    def pack(self, parameters: dict[str, FloatArray]) -> FloatArray:
        """The kernel's (..., P) coordinates of parameters by name."""
        shape = self.rule.box(np.stack([parameters[name] for name in self.rule.parameters], axis=-1))
        low, high = parameters["lower"], parameters["upper"]
        if self.model.nested == "top":
            a, b = low, (high - low) / np.maximum(1.0 - low, LEAST_RISE)
        else:
            a, b = low / np.maximum(high, LEAST_RISE), high
        return np.concatenate([shape, a[..., None], b[..., None]], axis=-1)

    def unpack(self, q: FloatArray) -> dict[str, FloatArray]:
        """Parameters by name of the kernel's coordinates (..., P)."""
        low, high = self.model.bounds(q)
        return self.rule.natural(q[..., :-2]) | {"lower": low, "upper": high}

    def score(self, parameters: dict[str, FloatArray], who: NDArray[np.intp], effort: FloatArray) -> FloatArray:
        """Scores of models ``who`` after ``effort``, which broadcast, from parameters (..., n); shape (..., theirs)."""
        who, effort = np.broadcast_arrays(np.asarray(who, dtype=np.intp), np.asarray(effort, dtype=np.float64))
        p = np.stack([parameters[name][..., who] for name in self.rule.parameters], axis=-1)
        s, _ = self.rule.shape(self.rule.scale(effort)[..., None], self.rule.box(p))
        low, high = parameters["lower"][..., who], parameters["upper"][..., who]
        return np.asarray(low + (high - low) * s[..., 0])


def _scope(name: str, value: Any) -> Scope:
    """A scope, or a given number as a float."""
    if isinstance(value, str) and value in (OWN, SHARED):
        return value
    if isinstance(value, Real) and not isinstance(value, bool) and np.isfinite(float(value)):
        return float(value)
    raise UsageError(f"`{name}` must be {OWN!r}, {SHARED!r} or a number, got {value!r}")
