"""JSON that other programs read: no NaN, no numpy types."""

from __future__ import annotations

from math import isfinite
from typing import Any

import numpy as np


def json_safe(value: Any) -> Any:
    """Return ``value`` in types that JSON knows; NaN and infinities become None.

    >>> json_safe({"a": np.float64(0.5), 1: (float("nan"), np.arange(2))})
    {'a': 0.5, '1': [None, [0, 1]]}
    """
    if isinstance(value, np.ndarray):
        return json_safe(value.tolist())
    if isinstance(value, dict):
        return {str(key): json_safe(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [json_safe(entry) for entry in value]
    if isinstance(value, np.generic):
        return json_safe(value.item())
    if isinstance(value, float) and not isfinite(value):
        return None
    return value
