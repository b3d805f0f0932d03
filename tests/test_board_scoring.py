"""A board scored: missing items, weights of both signs, clipping, and who has no score."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchwright.board.rules import ScoringRules
from benchwright.board.scheme import WeightScheme, task_scheme
from benchwright.board.scoring import COLUMNS, score_board
from benchwright.board.values import BoardValues
from benchwright.errors import DataError, UsageError

NAN = float("nan")


def board(rows: list[list[float]], *, tasks: str | None = None, **options: Any) -> BoardValues:
    values = np.array(rows, dtype=float)
    names = list("a" * len(rows) if tasks is None else tasks)
    items = pl.DataFrame({"task": names, "doc_id": [f"{place:03d}" for place in range(len(rows))]})
    models = tuple("xyzuvw"[: values.shape[1]])
    return BoardValues(models, items, values, **options)


def weighted(values: BoardValues, weights: list[float]) -> WeightScheme:
    return WeightScheme(values.items.with_columns(weight=pl.Series(weights, dtype=pl.Float64)))


def column(frame: pl.DataFrame, name: str) -> dict[str, Any]:
    return dict(frame.select("model", name).iter_rows())


def random_board(seed: int, *, missing: float = 0.0, models: int = 4) -> tuple[BoardValues, WeightScheme]:
    rng = np.random.default_rng(seed)
    m = int(rng.integers(8, 30))
    values = rng.random((m, models))
    values[rng.random(values.shape) < missing] = np.nan
    tasks = "".join(sorted(rng.choice(list("abc"), m)))
    made = board(values.tolist(), tasks=tasks)
    return made, weighted(made, rng.exponential(size=m).tolist())


def test_columns_and_changes() -> None:
    values = board([[1, 0], [0, 1], [0, 1], [1, 1]])
    frame = score_board(values, weighted(values, [4.0, 1.0, 1.0, 0.0])).frame
    assert tuple(frame.columns) == COLUMNS
    assert column(frame, "score") == pytest.approx({"x": 4 / 6, "y": 2 / 6})
    assert column(frame, "uniform_score") == {"x": 0.5, "y": 0.75}
    assert column(frame, "rank_change") == {"x": 1, "y": -1}  # x rises from 2 to 1
    assert column(frame, "coverage") == {"x": 1.0, "y": 1.0}


@pytest.mark.parametrize("missing", ["intersect", "renormalise", "refuse"])
@settings(max_examples=15, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10_000), scale=st.floats(1e-6, 1e6))
def test_the_scale_of_weights_does_not_matter(missing: Any, seed: int, scale: float) -> None:
    values, scheme = random_board(seed, missing=0.02)
    rules = ScoringRules(missing, replicates=200)
    try:
        first = score_board(values, scheme, rules=rules).frame
    except DataError:
        return  # no model has all items, nothing to compare
    grown = WeightScheme(scheme.weights.with_columns(pl.col("weight") * scale))
    second = score_board(values, grown, rules=rules).frame
    for name in ("score", "standard_error", "score_lo", "score_hi"):
        np.testing.assert_allclose(
            second[name].to_numpy(), first[name].to_numpy(), rtol=1e-9, atol=1e-12, equal_nan=True
        )
    assert second.select("model", "rank", "tie_group").equals(first.select("model", "rank", "tie_group"))


@settings(max_examples=20, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10_000))
def test_the_order_of_items_and_models_does_not_matter(seed: int) -> None:
    values, scheme = random_board(seed, missing=0.1)
    rng = np.random.default_rng(seed)
    moved = values.select(rng.permutation(len(values.values)), rng.permutation(4).tolist())
    rules = ScoringRules("renormalise", replicates=200)
    first, second = (score_board(one, scheme, rules=rules).frame for one in (values, moved))
    keep = ["model", "score", "standard_error", "uniform_score", "coverage", "missing_weight"]
    left, right = (frame.sort("model").select(keep) for frame in (first, second))
    for name in keep[1:]:
        np.testing.assert_allclose(left[name].to_numpy(), right[name].to_numpy(), rtol=1e-9)


def test_equal_weights_are_the_plain_average_and_change_nothing() -> None:
    values, _ = random_board(3)
    found = score_board(values, weighted(values, [0.2] * len(values.values)))
    frame = found.frame
    np.testing.assert_allclose(frame["score"].to_numpy(), np.sort(values.values.mean(axis=0))[::-1])
    assert frame["rank_change"].to_list() == [0] * 4
    assert found.frame.equals(score_board(values, weighted(values, [0.2] * len(values.values))).frame)  # seeded


def test_missing_items_by_each_rule() -> None:
    values = board([[1, 1, NAN], [1, 0, NAN], [0, NAN, NAN], [0, NAN, NAN]])
    scheme = weighted(values, [1.0, 1.0, 2.0, 4.0])
    found = {rule: score_board(values, scheme, rules=ScoringRules(rule)) for rule in ("intersect", "renormalise")}
    assert column(found["intersect"].frame, "score") == {"x": 1.0, "y": 0.5, "z": None}
    assert column(found["renormalise"].frame, "score") == {"x": 0.25, "y": 0.5, "z": None}
    assert column(found["renormalise"].frame, "missing_weight") == {"x": 0.0, "y": 0.75, "z": 1.0}
    assert column(found["renormalise"].frame, "coverage") == {"x": 1.0, "y": 0.5, "z": 0.0}
    assert any("no item with weight, and so no score: z" in note for note in found["intersect"].notes)
    zero = score_board(values, scheme, rules=ScoringRules("zero")).frame
    assert column(zero, "score") == {"x": 0.25, "y": 0.125, "z": None}  # no item is not 0 on all items
    refused = score_board(values, scheme, rules=ScoringRules("refuse"))
    assert column(refused.frame, "score") == {"x": 0.25, "y": None, "z": None}
    assert column(refused.frame, "rank") == {"x": 1, "y": None, "z": None}
    assert any("lacks items with weight: y" in note for note in refused.notes)


def test_a_task_keeps_its_weight_where_some_of_its_items_are_not_common() -> None:
    values = board([[1, 0], [1, NAN], [1, NAN], [0, 1], [0, 1]], tasks="aaabb")
    assert column(score_board(values, task_scheme(values)).frame, "score") == {"x": 0.5, "y": 0.5}
    gone = board([[1, NAN], [0, 1], [0, 1]], tasks="abb")
    found = score_board(gone, task_scheme(gone))
    assert column(found.frame, "score") == {"x": 0.0, "y": 1.0}
    assert "tasks without a common item, whose weight is lost: a" in found.notes


def test_an_item_without_weight_may_be_missing_unless_only_common_ones_count() -> None:
    values = board([[1, 0], [1, 1], [1, NAN]])
    scheme = weighted(values, [1.0, 1.0, 0.0])
    assert column(score_board(values, scheme, rules=ScoringRules("refuse")).frame, "score") == {"x": 1.0, "y": 0.5}
    assert column(score_board(values, scheme).frame, "coverage") == {"x": 1.0, "y": 1.0}


def test_nothing_in_common_is_an_error_that_names_a_model() -> None:
    values = board([[1, NAN], [0, NAN], [NAN, 1]])
    with pytest.raises(DataError, match=r"no item with weight is common to all models; y has only 33.3 %"):
        score_board(values)
    with pytest.raises(DataError, match="no model has an item with weight"):
        score_board(board([[NAN, NAN], [1, 1]]), weighted(board([[0], [0]]), [1.0, 0.0]))


def test_weights_that_cancel_are_refused_and_negative_ones_flagged() -> None:
    values = board([[1, 0], [0, 1], [1, 1]])
    with pytest.raises(DataError, match="sum to almost nothing") as caught:
        score_board(values, weighted(values, [1.0, -1.0, 1e-9]))
    assert caught.value.hint
    found = score_board(values, weighted(values, [3.0, -1.0, 1.0]))
    assert column(found.frame, "score") == pytest.approx({"x": 4 / 3, "y": 0.0})
    assert any(note.startswith("1 negative weight (20 % of the weight)") for note in found.notes)
    # less than 0 in all: divided by the sum of sizes, signs kept, so that who solves loses
    found = score_board(values, weighted(values, [-3.0, 1.0, -1.0]))
    assert column(found.frame, "score") == pytest.approx({"x": -0.8, "y": 0.0})
    assert column(found.frame, "rank") == {"x": 2, "y": 1}


def test_a_model_whose_own_weights_cancel_has_no_score() -> None:
    values = board([[1, 0], [0, 1], [NAN, 1]])
    found = score_board(values, weighted(values, [1.0, -1.0, 5.0]), rules=ScoringRules("renormalise"))
    assert column(found.frame, "score") == {"x": None, "y": pytest.approx(0.8)}
    assert any("weights sum to almost nothing: x" in note for note in found.notes)


def test_scores_clipped_at_chance_per_task() -> None:
    rows = [[1, 0], [1, 0], [0, 0], [0, 0], [1, 1], [1, 1], [0, 0], [0, 1]]
    values = board(rows, tasks="aaaabbbb")
    table = pl.DataFrame({"task": ["a", "b"], "chance": [0.5, 0.25]})
    rules = ScoringRules(scale="chance")
    found = score_board(values, task_scheme(values), rules=rules, table=table)
    # a: x 0, y -1; b: x (0.5 - 0.25) / 0.75, y (0.75 - 0.25) / 0.75
    assert column(found.frame, "score") == pytest.approx({"x": 1 / 6, "y": 1 / 3})
    assert column(found.frame, "score_unclipped") == pytest.approx({"x": 1 / 6, "y": -1 / 6})
    assert any("getting better earns nothing" in note for note in found.notes)
    open_ = score_board(values, task_scheme(values), rules=ScoringRules(scale="chance", clip=False), table=table)
    assert column(open_.frame, "score") == column(found.frame, "score_unclipped")
    with pytest.raises(UsageError, match="only where weights are >= 0; a has others"):
        score_board(values, weighted(values, [-1.0, *[1.0] * 7]), rules=rules, table=table)


def test_one_unit_alone_tells_nothing() -> None:
    found = score_board(board([[1, 0]]))
    row = found.frame.row(0, named=True)
    assert (row["standard_error"], row["rank_lo"], row["rank_hi"], row["tie_group"]) == (None, 1, 2, 1)
    assert any("no standard error" in note for note in found.notes)
    with pytest.raises(DataError, match="all 2 items are in one cluster"):
        score_board(board([[1, 0], [0, 1]], clusters=np.zeros(2, int)))


def test_few_units_are_told() -> None:
    rng = np.random.default_rng(1)
    values = board(rng.random((40, 2)).tolist(), clusters=np.repeat(np.arange(5), 8))
    found = score_board(values)
    assert any(note.startswith("5 units are few") for note in found.notes)
    assert any(note == "5 units are too few to tell any two models apart" for note in found.notes)
    assert found.policy["standard errors"] == "5 clusters of 40 items drawn all together"


def test_stated_errors_and_drawn_tasks_are_different_questions() -> None:
    items = pl.DataFrame({"task": ["a", "b"], "doc_id": pl.Series([None, None], dtype=pl.String)})
    values = BoardValues(("x", "y"), items, np.array([[0.9, 0.5], [0.4, 0.5]]), level="task")
    stated = BoardValues(
        values.models, items, values.values, level="task", standard_errors=np.array([[0.03, 0.04], [0.1, 0.1]])
    )
    assert column(score_board(stated).frame, "standard_error") == pytest.approx(
        {"x": np.hypot(0.03, 0.1) / 2, "y": np.hypot(0.04, 0.1) / 2}
    )
    drawn = score_board(values)
    assert column(drawn.frame, "standard_error") == {"x": pytest.approx(0.25), "y": None}
    assert any("tasks are drawn anew" in note for note in drawn.notes)


def test_rules_are_checked() -> None:
    for options, reason in (
        ({"missing": "guess"}, "`missing` must be one of"),
        ({"confidence": 1.0}, "`confidence` must lie between"),
        ({"replicates": 100}, "at least 10"),
        ({"seed": -1}, "`seed`"),
    ):
        with pytest.raises(UsageError, match=reason):
            ScoringRules(**options)  # type: ignore[arg-type]


def test_board_values_are_checked() -> None:
    with pytest.raises(UsageError, match="`models` must differ, got `x` twice"):
        BoardValues(("x", "x"), board([[1, 0]]).items, np.ones((1, 2)))
    with pytest.raises(UsageError, match="`values` must have shape"):
        BoardValues(("x",), board([[1, 0]]).items, np.ones((2, 1)))
    with pytest.raises(UsageError, match="finite"):
        board([[np.inf, 0]])
    table = pl.DataFrame({"model": ["x", "x"], "task": "a", "doc_id": [1, 1], "value": [0.0, 1.0]})
    with pytest.raises(UsageError, match=r"\(x, a, 1\) twice"):
        BoardValues.from_frame(table)
    clustered = BoardValues.from_frame(
        pl.DataFrame({"model": "x", "task": "a", "doc_id": [1, 2, 3], "value": 1.0, "cluster": ["p", None, "p"]})
    )
    assert clustered.clusters is not None
    assert clustered.clusters[0] == clustered.clusters[2] != clustered.clusters[1]
