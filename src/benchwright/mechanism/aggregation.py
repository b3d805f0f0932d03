"""The aggregation game: which weight should each item of a benchmark carry?

A designer publishes weights v on m item scores, a lab spends effort a on n axes. With

    A (m, n)      technology, score per dollar      C (n, n)   curvature of effort cost, reward per dollar^2
    Sigma (m, m)  noise covariance, score^2         r >= 0     the lab's risk aversion, 1 / reward
    w (m,)        welfare per score                 v (m,)     weights, reward per score

the lab earns v'y on scores y = A a + noise and pays a'Ca/2, so that

    the lab's response     a*(v) = C^-1 A'v
    improvability          M = A C^-1 A'
    designer's surplus     S(v) = w'Mv - v'Mv/2 - r v'Sigma v/2
                                = w'Mw/2 - (w - v)'M(w - v)/2 - r v'Sigma v/2
                                = first-best - misdirection - risk
    optimum                v* = (M + r Sigma)^-1 M w, the shortest maximiser where M + r Sigma is singular

Welfare and reward are one unit. A leaderboard fixes only the direction u of v, so schemes are compared at
their own best scale s:

    efficiency(u) = S(s u) / S(v*) = max(u'Mw, 0)^2 / (u'(M + r Sigma)u w'Mv*),    s = u'Mw / u'(M + r Sigma)u

Weights under constraints maximise the same S: they take the same ``ItemAggregation`` and return the same
``OptimalWeights``, whose ``method`` says how they were found.

Noise comes in factor form, Sigma = diag(d) + F F', and nothing of size m x m is formed.

References
----------
Haupt, Hartenstein, Reuel, Kochenderfer, Koyejo, "Welfare, Improvability, and Variance", arXiv 2605.30916.
Holmstrom and Milgrom (1991), "Multitask Principal-Agent Analyses".
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from math import sqrt
from typing import Any, Self, cast

import numpy as np

from benchwright._check import FloatArray, finite_array, non_negative, positive_definite, symmetric
from benchwright.errors import UsageError
from benchwright.mechanism import _weights as kernel
from benchwright.mechanism.results import (
    OptimalWeights,
    RiskSweep,
    SchemeResult,
    item_name,
    weight_warnings,
)


@dataclass(frozen=True, slots=True, eq=False)
class ItemAggregation:
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


def optimal_weights(model: ItemAggregation, *, rank_tolerance: float = kernel.RANK_TOLERANCE) -> OptimalWeights:
    """Weights v* = (M + r Sigma)^-1 M w that maximise the designer's surplus, in O(m (n + q)^2) time.

    Parameters
    ----------
    model : ItemAggregation
    rank_tolerance : float in (0, 1)
        Parts of M + r Sigma below this fraction of its size count as zero. There the shortest maximiser is
        returned and ``undetermined`` and ``warnings`` name the items it concerns.

    Examples
    --------
    >>> twins = ItemAggregation([[1.0], [1.0]], [0.5, 0.5], risk_aversion=1, noise_factor=[[0.5**0.5]] * 2)
    >>> result = optimal_weights(twins)
    >>> result.weights.round(6), result.undetermined
    (array([0.333333, 0.333333]), (0, 1))
    >>> print(result.warnings[0])
    the weight of item 0, item 1 is not determined: only their sum, 0.666667, is fixed; ...
    """
    if not 0 < rank_tolerance < 1:
        raise UsageError(f"`rank_tolerance` must lie between 0 and 1, got {rank_tolerance}")
    x, r = factors(model), model.risk_aversion
    solution = kernel.solve(x, r, rank_tolerance)
    v, n, pulled = solution.weights, x.half.shape[0], kernel.pull(x, solution.weights)
    goal, met = x.half.T @ solution.target, x.half.T @ pulled[:n]
    risk = r * float((x.d * v) @ v + pulled[n:] @ pulled[n:]) / 2
    result = OptimalWeights(
        weights=v,
        item_names=model.names,
        axis_names=model.axes,
        surplus=float(goal @ met) - float(met @ met) / 2 - risk,
        first_best=float(goal @ goal) / 2,
        misdirection=float(np.square(goal - met).sum()) / 2,
        risk=risk,
        effort=x.half @ met,
        undetermined=tuple(solution.undetermined.tolist()),
        condition_bound=solution.condition_bound,
        rank_tolerance=rank_tolerance,
        residual=kernel.relative_residual(x, r, v),
        noise_rank=kernel.noise_rank(x, rank_tolerance),
        warnings=(),
        risk_aversion=r,
        method=solution.method,
    )
    return replace(result, warnings=tuple(weight_warnings(result, x, solution)))


def evaluate_scheme(
    model: ItemAggregation, scheme: Any, *, name: str = "", optimum: OptimalWeights | None = None
) -> SchemeResult:
    """What the direction ``scheme`` (m,) is worth at its own best scale.

    Efficiency is 0 where u'Mw <= 0 and NaN where A'w = 0: then no incentive has value.
    ``optimum`` saves the solve where it is known already.

    Examples
    --------
    >>> model = ItemAggregation([[1.0], [1.0]], [1.0, 0.0], risk_aversion=1, noise_variance=[1.0, 3.0])
    >>> evaluate_scheme(model, [1.0, 1.0], name="uniform").efficiency
    0.875
    """
    x, r = factors(model), model.risk_aversion
    u = finite_array("scheme", scheme, ndim=1, length=x.w.size)
    if optimum is not None and (optimum.risk_aversion != r or optimum.weights.size != x.w.size):
        raise UsageError(
            f"`optimum` must belong to `model` ({x.w.size} items, r = {r:g}),"
            f" got {optimum.weights.size} items, r = {optimum.risk_aversion:g}"
        )
    moments = kernel.accumulate(x)
    goal = x.half.T @ moments.target
    sums = kernel.scheme_sums(x, u, moments)
    scale = sums.best_scale(r)
    best = kernel.split_surplus(x, r, moments)[0] if optimum is None else optimum.surplus
    return SchemeResult(
        name=name,
        efficiency=sums.efficiency(r, best if goal.any() else 0.0),
        alignment=int(np.sign(sums.aligned)),
        best_scale=scale,
        surplus=sums.surplus(r),
        first_best=float(goal @ goal) / 2,
        misdirection=float(np.square(goal - scale * sums.axes).sum()) / 2,
        risk=r * scale * scale * sums.noise / 2,
        risk_aversion=r,
    )


def risk_sweep(model: ItemAggregation, risk_aversions: Any, schemes: Mapping[str, Any]) -> RiskSweep:
    """The optimum and each scheme's efficiency at every r of ``risk_aversions`` (R,).

    The items are read once, and once a scheme; each r then costs O((n + q)^3) where all noise stands above
    the rank tolerance. ``model.risk_aversion`` plays no role.

    Examples
    --------
    >>> model = ItemAggregation([[1.0], [1.0]], [1.0, 0.0], risk_aversion=1, noise_variance=[1.0, 3.0])
    >>> risk_sweep(model, [0, 1], {"uniform": [1, 1]}).efficiency["uniform"]
    array([1.   , 0.875])
    """
    levels = finite_array("risk_aversions", risk_aversions, ndim=1)
    grid = [non_negative("risk_aversions", r) for r in levels]
    x = factors(model)
    moments = kernel.accumulate(x)
    goal = x.half.T @ moments.target
    optima = np.array([kernel.split_surplus(x, r, moments) for r in grid]).reshape(-1, 3)
    efficiency, surplus, alignment = {}, {}, {}
    for name, scheme in schemes.items():
        u = finite_array(f"schemes[{name!r}]", scheme, ndim=1, length=x.w.size)
        sums = kernel.scheme_sums(x, u, moments)
        efficiency[name] = np.array([sums.efficiency(r, s) for r, s in zip(grid, optima[:, 0], strict=True)])
        surplus[name] = np.array([sums.surplus(r) for r in grid])
        alignment[name] = int(np.sign(sums.aligned))
    return RiskSweep(
        risk_aversions=levels,
        surplus=optima[:, 0],
        misdirection=optima[:, 1],
        risk=optima[:, 2],
        first_best=float(goal @ goal) / 2,
        efficiency=efficiency,
        scheme_surplus=surplus,
        alignment=alignment,
    )


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
