"""Rank intervals where models have different items, and the plain average beside weights that name few items."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

from benchwright._check import FloatArray
from benchwright.board import _board as kernel
from benchwright.board.rules import ScoringRules
from benchwright.board.scheme import WeightScheme
from benchwright.board.scoring import score_board
from benchwright.board.uncertainty import trust_sampled
from benchwright.board.values import BoardValues
from benchwright.errors import DataError

NAN = float("nan")
OWN = ScoringRules("renormalise", replicates=300)


def board(values: FloatArray, tasks: str, **more: Any) -> BoardValues:
    items = pl.DataFrame({"task": [*tasks], "doc_id": [f"{place:03d}" for place in range(len(tasks))]})
    return BoardValues(tuple("xyzuvw"[: values.shape[1]]), items, values, **more)


def column(frame: pl.DataFrame, name: str) -> dict[str, Any]:
    return dict(frame.select("model", name).iter_rows())


def test_a_lead_of_ten_standard_errors_is_seen_where_the_leader_has_more_items() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        values = rng.normal(np.array([0.85, 0.83, 0.81]), 0.015, (130, 3))
        values[120:, 1:] = np.nan
        frame = score_board(board(np.clip(values, 0, 1), "a" * 120 + "b" * 10), rules=OWN).frame
        assert frame["rank_hi"].to_list() == frame["rank_lo"].to_list() == frame["tie_group"].to_list() == [1, 2, 3]


def test_the_level_of_scores_does_not_widen_rank_intervals() -> None:
    rng = np.random.default_rng(1)
    noise = rng.normal(np.array([0.002, 0.0]), 0.02, (80, 2))
    noise[60:, 1] = np.nan
    weights = np.random.default_rng(2).exponential(size=80)
    pairs = []
    for level in (0.1, 0.9):
        values = board(level + noise, "a" * 80)
        design = kernel.sampling_design(None, values.codes)
        known = (~np.isnan(values.values)).astype(float)
        sums = kernel.unit_sums(np.nan_to_num(values.values), known, weights, weights, design, values.codes, clip=False)
        trust = trust_sampled(sums, design, "item", rng=rng, confidence=0.95, replicates=200)
        pairs.append(trust.pair[0, 1])
        z = kernel.deviations(sums, design)
        rows = kernel.unit_rows(sums, design, z)
        np.testing.assert_allclose(rows.mean(axis=0), sums.scores)
        # what the difference of the two levels adds is of the order of its square
        assert trust.pair[0, 1] == pytest.approx(np.sqrt(np.square(z[:, 0] - z[:, 1]).sum()), rel=0.05)
    assert pairs[0] == pytest.approx(pairs[1], rel=1e-9)


@pytest.mark.parametrize("case", ["block", "weights"])
def test_intervals_of_tied_models_with_different_items_hold_all_ranks(case: str) -> None:
    rng = np.random.default_rng(3)
    rules = ScoringRules("renormalise", replicates=200, confidence=0.9)
    held = 0
    for _ in range(200):
        values = 0.8 + rng.normal(0, 0.03, (60, 3)) + rng.normal(0, 0.02, (60, 1))
        scheme = None
        if case == "block":
            values[50:, 1:] = np.nan
        else:
            values[rng.random(values.shape) < 0.05] = np.nan
        made = board(np.clip(values, 0, 1), "a" * 50 + "b" * 10)
        if case == "weights":
            scheme = WeightScheme(made.items.with_columns(weight=rng.lognormal(size=60)))
        frame = score_board(made, scheme, rules=rules).frame.filter(pl.col("rank").is_not_null())
        held += bool((frame["rank_lo"] == 1).all() and (frame["rank_hi"] == frame.height).all())
    assert held >= 168  # 0.9 of 200 less three standard errors of a share


def test_the_plain_average_goes_over_all_items() -> None:
    values = board(np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0], [0.0, 1.0]]), "aabb")
    named = WeightScheme(values.items.head(1).with_columns(weight=pl.lit(2.0)))
    zeros = WeightScheme(values.items.with_columns(weight=pl.Series([2.0, 0.0, 0.0, 0.0])))
    for scheme in (named, zeros):  # no weight is weight 0
        found = score_board(values, scheme)
        assert column(found.frame, "score") == {"x": 1.0, "y": 0.0}
        assert column(found.frame, "uniform_score") == {"x": 0.25, "y": 0.75}
        assert column(found.frame, "rank_change") == {"x": 1, "y": -1}
        assert found.numbers["items"] == found.numbers["units"] == 1
        assert found.numbers["items_of_plain_average"] == 4
    assert score_board(values, named).scheme.weights.height == 1


def test_a_task_without_weight_may_have_no_scale() -> None:
    values = board(np.array([[1.0, 0.0], [0.5, 0.5], [40.0, 90.0]]), "abc")
    scheme = WeightScheme(values.items.head(1).with_columns(weight=pl.lit(1.0)))
    found = score_board(values, scheme)
    assert column(found.frame, "uniform_score") == {"x": 0.75, "y": 0.25}
    assert any(note.endswith("not in the plain average: c") for note in found.notes)
    assert found.values.tasks == ("a", "b")
    heavy = WeightScheme(values.items.with_columns(weight=pl.lit(1.0)))
    with pytest.raises(DataError, match="1 task does not fit"):
        score_board(values, heavy)


def test_a_rank_by_the_plain_average_is_withheld_as_one_by_weights_is() -> None:
    values = board(np.array([[1.0, 0.5, 0.0], [1.0, NAN, 1.0], [0.0, NAN, 1.0]]), "aaa")
    scheme = WeightScheme(values.items.head(1).with_columns(weight=pl.lit(1.0)))
    found = score_board(values, scheme, rules=OWN)
    assert column(found.frame, "rank") == {"x": 1, "y": 2, "z": 3}
    assert column(found.frame, "uniform_rank") == {"x": 1, "y": None, "z": 1}
    assert column(found.frame, "rank_change") == {"x": 0, "y": None, "z": -1}  # among x and z
    assert any("no rank by the plain average" in note and note.endswith(": y") for note in found.notes)


def test_no_spread_is_no_standard_error() -> None:
    found = score_board(board(np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 0.0]]), "aaa"))
    for name in ("standard_error", "score_lo", "score_hi"):
        assert column(found.frame, name)["x"] is None
        assert column(found.frame, name)["y"] is not None
    assert "1 model without any spread between items: no standard error, no score interval" in found.notes


def test_stated_errors_of_0_alone_are_not_stated() -> None:
    items = pl.DataFrame({"task": ["a", "b"], "doc_id": pl.Series([None, None], dtype=pl.String)})

    def scored(errors: list[list[float]]) -> Any:
        stated = np.array(errors)
        return score_board(
            BoardValues(("x", "y"), items, np.array([[0.9, 0.5], [0.4, 0.6]]), level="task", standard_errors=stated)
        )

    some, alone, below = scored([[0.0, 0.1], [0.1, 0.1]]), scored([[0.0, 0.1], [0.0, 0.1]]), scored([[-0.1, 1], [1, 1]])
    assert column(some.frame, "standard_error")["x"] == pytest.approx(0.05)
    assert any(note.startswith("1 stated standard error of 0: nothing added") for note in some.notes)
    for one in (alone, below):
        assert one.policy["standard errors"] == "2 tasks drawn anew"
    assert "1 stated standard error below 0: not taken for stated" in below.notes


def test_values_too_large_to_average_are_refused() -> None:
    with pytest.raises(DataError, match="too large") as caught:
        score_board(board(np.array([[1e308, 1.0], [1e308, 2.0]]), "aa"), rules=ScoringRules(scale="minmax"))
    assert [fault.file for fault in caught.value.faults] == ["a"]
