"""Validators shared by public functions: each returns a clean float64 array or raises ``UsageError``."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchwright.errors import UsageError

FloatArray = NDArray[np.float64]


def finite_array(name: str, value: Any, *, ndim: int, length: int | None = None) -> FloatArray:
    """Return ``value`` as a finite C-ordered float64 array of ``ndim`` dimensions.

    ``length`` fixes the first dimension. Copies only where the input is not such an array already.
    """
    try:
        given = np.asarray(value)
    except (TypeError, ValueError) as error:
        raise UsageError(f"`{name}` must hold numbers, got {type(value).__name__}: {error}") from None
    if given.dtype.kind not in "biuf":
        raise UsageError(f"`{name}` must hold numbers, got {type(value).__name__} of {given.dtype}")
    if given.ndim != ndim:
        raise UsageError(f"`{name}` must have {ndim} dimension(s), got {given.ndim}")
    array = np.ascontiguousarray(given, dtype=np.float64)
    if length is not None and array.shape[0] != length:
        raise UsageError(f"`{name}` must have {length} rows, one an item, got {array.shape[0]}")
    # A sum is finite unless an entry is not, or it overflows: only then look at each entry.
    if not np.isfinite(array.sum()) and not np.isfinite(array).all():
        place = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise UsageError(
            f"`{name}` must be finite, got {array[place]} at {place[0] if ndim == 1 else place}",
            hint="drop the item, or say what the missing value is; benchwright never reads it as 0",
        )
    return array


def positive_definite(name: str, value: Any, size: int) -> FloatArray:
    """Return ``value`` as a symmetric positive definite (size, size) matrix."""
    matrix = symmetric(name, value, size)
    smallest = float(np.linalg.eigvalsh(matrix)[0])
    if smallest <= 0:
        raise UsageError(f"`{name}` must be positive definite, its smallest eigenvalue is {smallest:.3g}")
    return matrix


def symmetric(name: str, value: Any, size: int) -> FloatArray:
    """Return ``value`` as a symmetric (size, size) matrix, rounding noise averaged out."""
    matrix = finite_array(name, value, ndim=2)
    if matrix.shape != (size, size):
        raise UsageError(f"`{name}` must have shape ({size}, {size}), got {matrix.shape}")
    gap = float(np.abs(matrix - matrix.T).max(initial=0.0))
    if gap > 1e-10 * float(np.abs(matrix).max(initial=0.0)):
        row, col = (int(i) for i in np.argwhere(np.abs(matrix - matrix.T) == gap)[0])
        raise UsageError(f"`{name}` must be symmetric, entries ({row}, {col}) and ({col}, {row}) differ")
    symmetrised: FloatArray = (matrix + matrix.T) / 2
    return symmetrised


def non_negative(name: str, value: Any) -> float:
    """Return ``value`` as a finite float >= 0."""
    try:
        number = np.nan if isinstance(value, (str, bytes)) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = np.nan
    if not np.isfinite(number) or number < 0:
        raise UsageError(f"`{name}` must be a finite number >= 0, got {value!r}")
    return number
