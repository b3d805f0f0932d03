"""Why an item carries its weight: the condition of the optimum, item by item.

At weights v let g = C^-1 A'(w - v) be the effort on each axis that society wants beyond what v asks for, in dollars.
The derivative of the surplus by v_i is A_i g - r (Sigma v)_i, so where it is 0, with Sigma = diag(d) + F F',

    v_i = (A_i g - r F_i F'v) / (r d_i):    pull over noise.

The item's own welfare is not in it: welfare says, over all items, which effort is wanted, and the item is paid for how
far that effort moves it and how quietly. Where a constraint holds an item, its derivative is not 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchwright._check import FloatArray, finite_array
from benchwright.mechanism.game import ItemAggregation, factors


@dataclass(frozen=True, slots=True, eq=False)
class WeightReasons:
    """Parts of the condition of the optimum, an array (m,) each, in reward per score.

    Attributes
    ----------
    pull
        A_i g: gain of first-best surplus from a little more weight.
    shared_noise
        r F_i F'v: what the seeds that move items together cost.
    own_noise
        r d_i, reward per score and weight: what noise of the item alone costs per unit of weight.
    wanted : (n,) dollars
        g, effort on each axis that is wanted beyond what the weights ask for.
    voice
        Part of w'A C^-1 A'w, the effort that society wants, that is the item's: w_i A_i C^-1 A'w over its sum; NaN
        where no effort has value.
    """

    pull: FloatArray
    shared_noise: FloatArray
    own_noise: FloatArray
    wanted: FloatArray
    voice: FloatArray

    @property
    def gain(self) -> FloatArray:
        """Gain of surplus from the first bit of weight of the item, at the weights of the others."""
        return self.pull - self.shared_noise


def weight_reasons(model: ItemAggregation, weights: FloatArray) -> WeightReasons:
    """Return why weights are what they are.

    Examples
    --------
    >>> from benchwright.mechanism.aggregation import optimal_weights
    >>> model = ItemAggregation([[1.0], [2.0]], [1.0, 0.0], risk_aversion=1, noise_variance=[1.0, 2.0])
    >>> v = optimal_weights(model).weights
    >>> found = weight_reasons(model, v)
    >>> (found.gain / found.own_noise).round(6).tolist() == v.round(6).tolist()
    True
    """
    v = finite_array("weights", weights, ndim=1, length=model.welfare.size)
    x, r = factors(model), model.risk_aversion
    half = x.A @ x.half
    wanted = half.T @ (x.w - v)
    voiced = x.w * (half @ (half.T @ x.w))
    total = float(voiced.sum())
    return WeightReasons(
        pull=half @ wanted,
        shared_noise=r * (x.F @ (x.F.T @ v)),
        own_noise=r * x.d,
        wanted=x.half @ wanted,
        voice=voiced / total if total > 0 else np.full(v.size, np.nan),
    )
