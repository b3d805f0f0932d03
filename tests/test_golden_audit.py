"""Every figure of golden/olmes-audit.json, walked against summary.json's ``audit``.

The golden file holds what the authors' own scripts print from the published tables. Figures are compared at
the digits they are given with; only resampled ones (named below) have the tolerance of specification
``audit.md``: 0.006 on a p-value and 0.012 on the end of an interval, since their draws are not ours.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from benchwright.report.contents import AuditReport
from benchwright.report.summary import summary

RESAMPLED = {"cluster_bootstrap_95": 0.012, "cluster_permutation_p_one_sided": 0.006}
PROSE = {"math_definition", "note"}  # texts about the figures, not figures


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Every leaf of nested JSON with its path."""
    if isinstance(value, dict):
        for key, entry in value.items():
            yield from leaves(entry, (*path, key))
    elif isinstance(value, list):
        for place, entry in enumerate(value):
            yield from leaves(entry, (*path, place))
    else:
        yield path, value


def at(record: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        record = record[key]
    return record


def half_last_digit(number: Decimal) -> float:
    """Half a unit of the last digit a golden figure is written with."""
    exponent = number.as_tuple().exponent
    assert isinstance(exponent, int)
    return 0.5 * 10.0**exponent * (1 + 1e-9)


@pytest.fixture(scope="module")
def golden(shared: Path) -> Any:
    text = (shared / "golden" / "olmes-audit.json").read_text(encoding="utf-8")
    return json.loads(text, parse_float=Decimal)


@pytest.fixture(scope="module")
def ours(olmes: AuditReport) -> Any:
    return summary(olmes)["audit"]


def test_every_golden_figure_comes_out(golden: Any, ours: Any) -> None:
    checked, wrong = 0, []
    for path, expected in leaves(golden):
        if path[-1] in PROSE:
            continue
        checked += 1
        got = at(ours, path)
        if isinstance(expected, str):
            good = got == expected
        else:
            resampled = next((RESAMPLED[key] for key in path if key in RESAMPLED), None)
            tolerance = resampled if resampled is not None else 0.0
            if resampled is None and isinstance(expected, Decimal):
                tolerance = half_last_digit(expected)
            good = got is not None and abs(float(got) - float(expected)) <= tolerance
        if not good:
            wrong.append((path, expected, got))
    assert not wrong
    assert checked > 250  # the walk reached the figures


def test_two_sided_tests_say_what_the_specification_says(ours: Any) -> None:
    assert ours["pareto"]["w_auto"]["cluster_permutation_p_two_sided"] == pytest.approx(0.21, abs=0.012)
    assert ours["pareto"]["w_aug"]["cluster_permutation_p_two_sided"] == pytest.approx(0.0001, abs=0.001)


def test_welfare_agrees_with_the_published_file(ours: Any) -> None:
    assert ours["largest_gap_to_published_welfare"] < 1e-6


def test_slots_and_items_are_not_confused(ours: Any) -> None:
    slots, items = ours["slot_mass_percent"]["threshold 3.0"], ours["item_mass_percent"]["threshold 3.0"]
    assert slots["automation"]["green"] == pytest.approx(6.0, abs=0.05)
    assert items["green"] == pytest.approx(100 * 6 / 317)


def test_most_items_lie_below_the_reference_line(ours: Any) -> None:
    assert ours["noise"]["share_below_reference_Z"] == pytest.approx(0.81, abs=0.005)
