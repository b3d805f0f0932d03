"""Bradley-Terry and Elo through evalica: against a likelihood maximised here, and where there is no estimate."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy import optimize

from benchwright._check import FloatArray
from benchwright.board import _aggregations as kernels
from benchwright.board.aggregations import POINTS
from benchwright.board.rule_table import other_rules
from benchwright.board.scheme import WeightScheme
from benchwright.board.values import BoardValues

pytestmark = pytest.mark.libraries


def drawn_board(seed: int, n_items: int = 60, n_models: int = 5) -> BoardValues:
    rng = np.random.default_rng(seed)
    values = (rng.random((n_items, n_models)) < np.linspace(0.3, 0.7, n_models)).astype(float)
    values[rng.random(values.shape) < 0.2] = np.nan
    items = pl.DataFrame({"task": ["t"] * n_items, "doc_id": [str(i) for i in range(n_items)]})
    return BoardValues(tuple("abcdefgh"[:n_models]), items, values)


def maximised(wins: FloatArray, ties: FloatArray) -> FloatArray:
    """Strengths by a general minimiser, in Elo points about 1000."""
    n = len(wins)
    half = wins + ties / 2

    def loss(free: FloatArray) -> float:
        b = np.append(free, -free.sum())
        return float((half * np.logaddexp(0, b[None, :] - b[:, None])).sum())

    found = optimize.minimize(loss, np.zeros(n - 1), method="BFGS", options={"gtol": 1e-9})
    result: FloatArray = 1000 + POINTS * np.append(found.x, -found.x.sum())
    return result


@pytest.mark.parametrize("seed", range(4))
def test_bradley_terry_is_the_maximum_of_its_likelihood(seed: int) -> None:
    values = drawn_board(seed)
    v = np.random.default_rng(seed).integers(1, 4, size=values.items.height).astype(float)
    scheme = WeightScheme(values.items.with_columns(weight=pl.Series(v)))
    found = other_rules(values, scheme, rules=["bradley_terry"]).frame.sort("model")["bradley_terry"].to_numpy()
    np.testing.assert_allclose(found, maximised(*kernels.pair_counts(values.values, v)), atol=1e-3)


def why(values: BoardValues) -> str:
    table = other_rules(values, rules=["bradley_terry"], missing="renormalise")
    assert table.frame["bradley_terry"].null_count() == table.frame.height
    return str(table.rules.filter(pl.col("rule") == "bradley_terry")["why_not"].item())


def test_a_model_that_always_wins_has_no_estimate() -> None:
    values = drawn_board(0)
    sure = values.values / 2
    sure[:, 2] = 1.0
    reason = why(BoardValues(values.models, values.items, sure))
    assert "no finite estimate exists: c never" in reason


def test_models_that_never_met_have_no_estimate() -> None:
    values = drawn_board(0, n_models=4)
    apart = values.values.copy()
    apart[:30, :2] = np.nan
    apart[30:, 2:] = np.nan
    assert "share no item" in why(BoardValues(values.models, values.items, apart))


def test_one_model_has_nobody_to_meet() -> None:
    assert "nobody" in why(drawn_board(0).select(models=[0]))


def test_elo_is_the_same_for_the_same_seed_and_says_how_it_moves() -> None:
    values = drawn_board(1)
    one, same, other = (other_rules(values, rules=["elo"], rng=np.random.default_rng(seed)) for seed in (0, 0, 1))
    assert one.frame["elo"].to_list() == same.frame["elo"].to_list()
    assert one.frame.sort("model")["elo"].to_list() != other.frame.sort("model")["elo"].to_list()
    assert other_rules(values, rules=["elo"]).frame["elo"].to_list() == one.frame["elo"].to_list()  # seed 0
    assert any("Elo depends on the order" in note for note in one.notes)
    assert one.frame["elo"].mean() == pytest.approx(1000)  # what one wins, another loses


def test_elo_ends_near_bradley_terry() -> None:
    table = other_rules(drawn_board(2), rules=["elo", "bradley_terry"]).frame
    np.testing.assert_allclose(table["elo"], table["bradley_terry"], atol=60)


def test_elo_of_a_model_that_met_nobody_is_unknown() -> None:
    values = drawn_board(0, n_models=3)
    alone = values.values.copy()
    alone[:, 2] = np.nan
    alone[0] = [np.nan, np.nan, 1.0]
    table = other_rules(BoardValues(values.models, values.items, alone), rules=["elo"], missing="renormalise")
    assert dict(table.frame.select("model", "elo").iter_rows())["c"] is None
    assert dict(table.frame.select("model", "elo_rank").iter_rows())["c"] is None
