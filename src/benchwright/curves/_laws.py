"""Rising shapes s(x) in [0, 1] of the laws, with their derivatives; x is effort on the law's own scale.

A score curve is L + (U - L) s(x). Every shape takes ``x`` (..., K) and parameters (..., S) and returns s (..., K) and
ds/dparameter (..., K, S).
"""

from __future__ import annotations

import numpy as np
from scipy import special

from benchwright._check import FloatArray

Shape = tuple[FloatArray, FloatArray]


def power_law(x: FloatArray, p: FloatArray) -> Shape:
    """Return sigmoid(alpha + beta x) for x = log(1 + effort); p is (alpha, beta)."""
    s = special.expit(p[..., 0, None] + p[..., 1, None] * x)
    slope = s * (1.0 - s)
    return s, np.stack([slope, slope * x], axis=-1)


def saturating_exponential(x: FloatArray, p: FloatArray) -> Shape:
    """Return 1 - exp(-rate x) for x = effort; p is (log rate,)."""
    u = np.exp(p[..., 0, None]) * x
    left = np.exp(-u)
    return -np.expm1(-u), (left * u)[..., None]


def shifted_power_law(x: FloatArray, p: FloatArray) -> Shape:
    """Return 1 - (1 + x / scale)^-exponent for x = effort; p is (log scale, log exponent)."""
    ratio, exponent = x * np.exp(-p[..., 0, None]), np.exp(p[..., 1, None])
    falling = exponent * np.log1p(ratio)
    left = np.exp(-falling)
    return -np.expm1(-falling), np.stack([-left * exponent * ratio / (1.0 + ratio), left * falling], axis=-1)
