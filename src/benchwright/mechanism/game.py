"""The model of the aggregation game: an item's value, what moves it, what shakes it. See ``aggregation``."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from math import sqrt
from typing import Any, Self, cast

import numpy as np

from benchwright._check import FloatArray, finite_array, non_negative, positive_definite, symmetric
from benchwright._shown import Shown
from benchwright.errors import UsageError
from benchwright.mechanism import _weights as kernel
from benchwright.mechanism.results import item_name


@dataclass(frozen=True, slots=True, eq=False)
class ItemAggregation(Shown):
    """One aggregation game.

    Parameters
    ----------
    technology : (m, n) score per dollar
        Gain in each item's score per dollar on each axis.
    welfare : (m,) welfare per score
        Social value of a unit of each item's score.
    risk_aversion : float >= 0, 1 / reward
    noise_variance : (m,) score^2, optional
        Diagonal part d of Sigma = diag(d) + F F'; zeros by default.
    noise_factor : (m, q) score, optional
        F; no columns by default. ``seed_factor`` makes one from repeated training.
    curvature : (n, n) positive definite or float > 0, reward per dollar^2
        C, or c0 for C = c0 I; see ``calibration.calibrate_curvature``.
    names : sequence of m str, optional
        Item names for messages; ``item 0``, ``item 1``, ... by default.
    axes : sequence of n str, optional
        Axis names for messages; ``0``, ``1``, ... by default.

    Raises
    ------
    UsageError
        For shapes that disagree, entries not finite, a negative variance or r, C not positive definite.

    Examples
    --------
    >>> from benchwright.mechanism.aggregation import optimal_weights
    >>> model = ItemAggregation([[1.0]], [1.0], risk_aversion=2.0, noise_variance=[0.5])
    >>> optimal_weights(model).weights
    array([0.5])
    """

    technology: FloatArray
    welfare: FloatArray
    _: KW_ONLY
    risk_aversion: float
    noise_variance: FloatArray | None = None
    noise_factor: FloatArray | None = None
    curvature: FloatArray | float = 1.0
    names: tuple[str, ...] | None = None
    axes: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        technology = finite_array("technology", self.technology, ndim=2)
        m, n = technology.shape
        if m == 0 or n == 0:
            raise UsageError(f"`technology` must have an item and an axis, got shape {technology.shape}")
        d = np.zeros(m) if self.noise_variance is None else self.noise_variance
        F = np.zeros((m, 0)) if self.noise_factor is None else self.noise_factor
        d = finite_array("noise_variance", d, ndim=1, length=m)
        names = None if self.names is None else tuple(map(str, self.names))
        if names is not None and len(names) != m:
            raise UsageError(f"`names` must hold {m} names, one an item, got {len(names)}")
        axes = None if self.axes is None else tuple(map(str, self.axes))
        if axes is not None and len(axes) != n:
            raise UsageError(f"`axes` must hold {n} names, one an axis, got {len(axes)}")
        if d[worst := int(d.argmin())] < 0:
            raise UsageError(f"`noise_variance` must be >= 0, got {d[worst]:g} at {item_name(names, worst)}")
        clean = {
            "technology": technology,
            "welfare": finite_array("welfare", self.welfare, ndim=1, length=m),
            "risk_aversion": non_negative("risk_aversion", self.risk_aversion),
            "noise_variance": d,
            "noise_factor": finite_array("noise_factor", F, ndim=2, length=m),
            "curvature": _clean_curvature(self.curvature, n),
            "names": names,
            "axes": axes,
        }
        for field, value in clean.items():
            object.__setattr__(self, field, value)

    @classmethod
    def from_matrices(
        cls,
        improvability: Any,
        noise_covariance: Any,
        welfare: Any,
        *,
        risk_aversion: float,
        names: Sequence[str] | None = None,
    ) -> Self:
        """Build the game from small dense M and Sigma, split into factors by eigendecomposition.

        The axes are then the eigenvectors of M with C = I: ``effort`` is in their units, not in dollars.

        Parameters
        ----------
        improvability : (m, m) positive semidefinite M
        noise_covariance : (m, m) positive semidefinite Sigma
        welfare : (m,)

        Raises
        ------
        UsageError
            Where a matrix is not symmetric or has a negative eigenvalue, which is named.

        Examples
        --------
        >>> from benchwright.mechanism.aggregation import optimal_weights
        >>> M, Sigma = [[1, 0], [0, 0]], [[0.1, 0], [0, 0]]
        >>> model = ItemAggregation.from_matrices(M, Sigma, [0.5, 0.5], risk_aversion=1)
        >>> optimal_weights(model).weights.round(6)
        array([0.454545, 0.      ])
        """
        w = finite_array("welfare", welfare, ndim=1)
        noise = symmetric("noise_covariance", noise_covariance, w.size)
        halves = {}
        for name, matrix in {"improvability": improvability, "noise_covariance": noise}.items():
            halves[name], smallest = kernel.semidefinite_half(symmetric(name, matrix, w.size))
            if smallest < 0:
                raise UsageError(
                    f"`{name}` must be positive semidefinite, its smallest eigenvalue is {smallest:.3g}",
                    hint="a covariance, and A C^-1 A', has none below 0: see how it was estimated",
                )
        diagonal = np.array_equal(noise, np.diag(noise.diagonal()))
        return cls(
            halves["improvability"],
            w,
            risk_aversion=risk_aversion,
            noise_variance=noise.diagonal().clip(min=0.0) if diagonal else None,
            noise_factor=None if diagonal else halves["noise_covariance"],
            names=None if names is None else tuple(names),
        )

    def with_risk_aversion(self, r: float) -> Self:
        """The same game at another risk aversion; the arrays are shared, not copied."""
        twin = copy.copy(self)
        object.__setattr__(twin, "risk_aversion", non_negative("risk_aversion", r))
        return twin


def _clean_curvature(curvature: Any, n: int) -> FloatArray | float:
    if np.ndim(curvature) != 0:
        return positive_definite("curvature", curvature, n)
    c0 = non_negative("curvature", curvature)
    if c0 == 0:
        raise UsageError("`curvature` must be > 0, got 0", hint="calibrate_curvature finds c0 from a budget")
    return c0


def factors(model: ItemAggregation) -> kernel.Factors:
    half = kernel.inverse_root(model.curvature, model.technology.shape[1])
    F, d = cast("FloatArray", model.noise_factor), cast("FloatArray", model.noise_variance)
    return kernel.Factors(model.technology, F, d, model.welfare, half)


def seed_factor(seed_scores: Any) -> FloatArray:
    """F (m, S) with F F' the sample covariance (divisor S - 1) of ``seed_scores`` (S, m), S >= 2 trainings.

    Its rank is at most S - 1: with fewer seeds than items add a ``noise_variance``.

    Examples
    --------
    >>> F = seed_factor([[0.1, 0.5], [0.3, 0.5]])
    >>> (F @ F.T).round(3)
    array([[0.02, 0.  ],
           [0.  , 0.  ]])
    """
    scores = finite_array("seed_scores", seed_scores, ndim=2)
    if scores.shape[0] < 2:
        raise UsageError(
            f"`seed_scores` must hold 2 seeds at least, got {scores.shape[0]}",
            hint="one training says nothing about noise; pass `noise_variance` instead",
        )
    return np.ascontiguousarray((scores - scores.mean(axis=0)).T / sqrt(scores.shape[0] - 1))
