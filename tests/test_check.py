"""Validators: what is no number is refused under the name of its argument."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest

from benchwright._check import finite_array, non_negative
from benchwright.errors import UsageError


@pytest.mark.parametrize("value", ["x", "1", b"1", None, [], {}, 1j, np.nan, -1, pytest.param(10**400, id="huge")])
def test_what_is_no_number_of_at_least_zero(value: object) -> None:
    with pytest.raises(UsageError, match="`risk_aversion` must be a finite number >= 0, got "):
        non_negative("risk_aversion", value)


@pytest.mark.parametrize("value", [0, 2, 0.5, np.float32(1), np.int64(3), np.array(2.0), Decimal(1)])
def test_numbers_of_at_least_zero(value: object) -> None:
    assert non_negative("risk_aversion", value) == float(value)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "value",
    [["1"], [b"1"], np.array(["1"]), [None], [1.0, "x"], [[1.0], [1.0, 2.0]], [1j], [{}], np.array([1], "m8[s]")],
)
def test_what_is_no_array_of_numbers(value: object) -> None:
    with pytest.raises(UsageError, match="`welfare` must hold numbers, got "):
        finite_array("welfare", value, ndim=1)


@pytest.mark.parametrize(
    "value", [[1, 2], (1.0, 2.0), np.array([1, 2], np.float32), [True, 2], np.array([1, 9, 2])[::2]]
)
def test_arrays_of_numbers(value: object) -> None:
    array = finite_array("welfare", value, ndim=1, length=2)
    assert array.dtype == np.float64
    assert array.flags.c_contiguous
    assert array.tolist() == [1.0, 2.0]


def test_numbers_of_dimensions_are_counted_as_given() -> None:
    for value, ndim in ((1.0, 1), ([1.0], 0), ([[1.0]], 1), ([1.0], 2)):
        with pytest.raises(UsageError, match=f"must have {ndim} dimension"):
            finite_array("welfare", value, ndim=ndim)
