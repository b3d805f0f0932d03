"""Laws of score by effort, one row of a table each.

A law is v(e) = L + (U - L) s(e), with a shape s that rises from 0 (or more) towards 1, and 0 <= L < U <= 1:

========================  ======================================================  ======================
law                       s(e)                                                    parameters of its own
========================  ======================================================  ======================
generalised-power-law     sigmoid(alpha + beta log(1 + e))                        alpha, beta > 0
saturating-exponential    1 - exp(-rate e)                                        rate > 0
shifted-power-law         1 - (1 + e / scale)^-exponent                           scale > 0, exponent > 0
========================  ======================================================  ======================

so that the second is v = U - (U - L) exp(-rate e) and the third v = U - a (e + scale)^-exponent, with L the score at
effort 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from benchwright._check import FloatArray
from benchwright.curves import _laws
from benchwright.errors import UsageError

LEVEL_BOUND = 150.0  # of alpha: a curve as steep as allowed can turn at any effort up to e^15


@dataclass(frozen=True, slots=True)
class Law:
    """One law.

    Attributes
    ----------
    name : str
    parameters : tuple of str
        Those of the shape; L and U come after them.
    scale : callable
        Effort to the shape's x.
    shape : callable
        Shape and derivatives; takes logarithms of the ``logged`` parameters.
    logged : tuple of bool
    low, high : tuples of float
        Box of the parameters, logarithms of the logged ones.
    lower : "shared" or "per-model"
        Scope of L where none is asked for.
    start : callable
        Parameters of a curve that is half-way at an effort, with a slope in log effort.
    """

    name: str
    parameters: tuple[str, ...]
    scale: Callable[[FloatArray], FloatArray]
    shape: Callable[[FloatArray, FloatArray], _laws.Shape]
    logged: tuple[bool, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    lower: str
    start: Callable[[FloatArray, float], tuple[FloatArray, ...]]

    def natural(self, p: FloatArray) -> dict[str, FloatArray]:
        """Parameters by name, logarithms undone."""
        pairs = zip(self.parameters, self.logged, strict=True)
        return {name: np.exp(p[..., j]) if logged else p[..., j] for j, (name, logged) in enumerate(pairs)}

    def box(self, p: FloatArray) -> FloatArray:
        """Inverse of ``natural`` for (..., S) parameters in their order."""
        return np.where(np.array(self.logged), np.log(np.where(self.logged, p, 1.0)), p)


def _power_start(half: FloatArray, slope: float) -> tuple[FloatArray, ...]:
    return -slope * np.log1p(half), np.full(half.shape, slope)


def _exponential_start(half: FloatArray, slope: float) -> tuple[FloatArray, ...]:
    return (np.log(2.0) * slope / half,)


def _shifted_start(half: FloatArray, slope: float) -> tuple[FloatArray, ...]:
    return half / (2 ** (1.0 / slope) - 1.0), np.full(half.shape, slope)


LAWS = {
    law.name: law
    for law in (
        Law(
            "generalised-power-law",
            ("alpha", "beta"),
            np.log1p,
            _laws.power_law,
            (False, False),
            (-LEVEL_BOUND, 1e-4),
            (LEVEL_BOUND, 10.0),
            "per-model",
            _power_start,
        ),
        Law(
            "saturating-exponential",
            ("rate",),
            np.asarray,
            _laws.saturating_exponential,
            (True,),
            (-30.0,),
            (10.0,),
            "per-model",
            _exponential_start,
        ),
        Law(
            "shifted-power-law",
            ("scale", "exponent"),
            np.asarray,
            _laws.shifted_power_law,
            (True, True),
            (-7.0, -7.0),
            (30.0, 5.0),
            "per-model",
            _shifted_start,
        ),
    )
}


def law_named(name: str) -> Law:
    """The law of that name.

    Raises
    ------
    UsageError
        A name that is none.
    """
    if name not in LAWS:
        raise UsageError(f"`law` must be one of {', '.join(LAWS)}, got {name!r}")
    return LAWS[name]
