"""Intervals of weights and efficiencies hold the truth about as often as the study says, with fewer panels."""

from __future__ import annotations

import numpy as np
import pytest

from by_path import loaded

study = loaded("studies", "weight_coverage")
PANELS = 25
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def shares() -> dict[str, dict[str, float]]:
    return {row.name: study.judge(row, PANELS, np.random.default_rng(2)) for row in study.ROWS}


def test_weights_from_panels_are_held(shares: dict[str, dict[str, float]]) -> None:
    for name in ("12 models an axis, small errors", "12 models, large errors", "30 models, large errors"):
        assert 0.88 <= shares[name]["weights"] <= 0.98
        assert shares[name]["uniform"] >= 0.75
        assert shares[name]["own"] >= 0.75


def test_verdicts_are_seldom_wrong(shares: dict[str, dict[str, float]]) -> None:
    for name, share in shares.items():
        assert share["sign wrong"] <= 0.12, name
        assert share["wrong"] <= 0.2, name


def test_a_sign_is_settled_where_it_is_clear_and_only_there(shares: dict[str, dict[str, float]]) -> None:
    assert shares["12 models an axis, small errors"]["sign settled"] == 1
    for name in study.BARELY:
        assert shares[name]["sign settled"] <= 0.3


def test_rank_intervals_hold_less_than_panels_where_errors_are_large(shares: dict[str, dict[str, float]]) -> None:
    """The limit that the draws' documentation states: signs stay, and one factor stands for a whole row."""
    assert shares["ranks, 12 models, small errors"]["weights"] >= 0.85
    assert shares["ranks, 12 models, large errors"]["weights"] < shares["12 models, large errors"]["weights"]


def test_shrunk_slopes_are_drawn_as_wide_as_they_are_unsure(shares: dict[str, dict[str, float]]) -> None:
    for name in ("the same, empirical-Bayes", study.SHRUNK, "the same, noise-corrected"):
        assert shares[name]["weights"] >= 0.84
    assert shares[study.SHRUNK]["sign settled"] <= 0.4
