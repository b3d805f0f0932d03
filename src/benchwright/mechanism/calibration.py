"""How strongly developers answer: the curvature of their cost of effort, fixed by a stated budget.

The curvature is in no data set. With C = c0 I it is the one number that says how many dollars a unit of
reward moves; a budget that the lab would spend under known weights pins it down.
"""

from __future__ import annotations

from math import sqrt
from typing import Any, Literal

import numpy as np

from benchwright._check import non_negative
from benchwright.errors import DataError, NoWeightsError, UsageError
from benchwright.mechanism import _weights as kernel
from benchwright.mechanism.aggregation import ItemAggregation, factors
from benchwright.mechanism.results import Calibration


def calibrate_curvature(
    technology: Any,
    welfare: Any,
    *,
    noise_variance: Any = None,
    noise_factor: Any = None,
    risk_aversion: float,
    budget: float,
    rule: Literal["auto", "uniform", "first-best"] = "auto",
) -> Calibration:
    """Curvature C = c0 I at which the lab spends ``budget`` dollars.

    Parameters
    ----------
    technology, welfare, noise_variance, noise_factor, risk_aversion
        As in ``ItemAggregation``.
    budget : float > 0, dollars
    rule : {"auto", "uniform", "first-best"}
        "uniform": sum a_k = budget under the uniform mean u at its best scale, the positive root of
        r (u'Sigma u) c0^2 + (u'AA'u) c0 = (1'A'u)(u'AA'w) / budget. Needs 1'A'u > 0 and u'AA'w > 0.
        "first-best": sum |a_k| = budget under v = w, c0 = sum |A'w| / budget.
        "auto": uniform where it exists, else first-best.

    Raises
    ------
    DataError
        Where the rule has no positive c0; ``NoWeightsError`` where no rule can have one, A'w = 0.

    Examples
    --------
    >>> calibrate_curvature([[2.0]], [3.0], risk_aversion=0, budget=1.5).c0
    4.0
    """
    if rule not in ("auto", "uniform", "first-best"):
        raise UsageError(f'`rule` must be "auto", "uniform" or "first-best", got {rule!r}')
    if non_negative("budget", budget) == 0:
        raise UsageError("`budget` must be > 0 dollars, got 0")
    noise = {"noise_variance": noise_variance, "noise_factor": noise_factor}
    model = ItemAggregation(technology, welfare, risk_aversion=risk_aversion, **noise)
    x, r = factors(model), model.risk_aversion
    moments = kernel.accumulate(x)
    sums = kernel.scheme_sums(x, np.full(x.w.size, 1 / x.w.size), moments)
    spend = float(sums.axes.sum())
    feasible = spend > 0 and sums.aligned > 0
    if feasible and rule != "first-best":
        goal = spend * sums.aligned / budget
        c0 = 2 * goal / (sums.response + sqrt(sums.response**2 + 4 * r * sums.noise * goal))
        why = f"the lab spends {budget:g} dollars under the uniform mean at its best scale"
        return Calibration(c0, "uniform", why)
    if rule == "uniform":
        raise DataError(
            f"the uniform mean cannot calibrate: 1'A'u = {spend:.3g}, u'AA'w = {sums.aligned:.3g}; need > 0",
            hint='use rule="first-best", or choose c0 yourself',
        )
    c0 = float(np.abs(moments.target).sum()) / budget
    if c0 == 0:
        raise NoWeightsError("A'w = 0: no effort has value, so no curvature makes the lab spend a budget")
    why = f"the lab spends {budget:g} dollars (sum of |a_k|) at first-best weights v = w"
    if not feasible:
        why += "; under the uniform mean it would spend nothing of value"
    return Calibration(c0, "first-best", why)
