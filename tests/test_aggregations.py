"""One board under several rules: the cases, what weights and gaps do, what is said where a rule has no answer."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from benchwright.board.aggregations import RULES
from benchwright.board.release import read_values
from benchwright.board.rule_table import RuleTable, other_rules
from benchwright.board.scales import Scale
from benchwright.board.scheme import WeightScheme
from benchwright.board.values import BoardValues
from benchwright.errors import DataError, UsageError

PLAIN = [name for name, rule in RULES.items() if rule.library is None]


def board(table: dict[str, list[float | None]], **more: object) -> BoardValues:
    """A board of models with one value a task (t1, t2, ...)."""
    n = len(next(iter(table.values())))
    items = pl.DataFrame({"task": [f"t{i + 1}" for i in range(n)], "doc_id": ["0"] * n})
    values = np.array([[np.nan if x is None else x for x in row] for row in table.values()], dtype=float).T
    return BoardValues(tuple(table), items, values, **more)  # type: ignore[arg-type]


def scores(table: RuleTable, rule: str) -> dict[str, float]:
    return dict(table.frame.select("model", rule).iter_rows())


def ranks(table: RuleTable, rule: str) -> dict[str, int]:
    return scores(table, f"{rule}_rank")  # type: ignore[return-value]


def leaders(table: RuleTable) -> dict[str, list[str]]:
    return dict(table.rules.select("rule", "leaders").iter_rows())


def test_three_rules_three_leaders(shared: Path) -> None:
    values = read_values(shared / "cases" / "C23" / "scores.csv")
    table = other_rules(values, rules=["task_means", "borda_all", "borda_present"], missing="renormalise")
    assert scores(table, "borda_all") == {"A": 4, "B": 2, "C": 5, "D": 6}
    assert scores(table, "borda_present") == {"A": 1, "B": 2, "C": 4, "D": 3}
    for rule in ("own", "task_means"):
        assert scores(table, rule) == pytest.approx({"A": 0.57, "B": 0.76, "C": 0.68, "D": 2.05 / 3})
    # B and C lack more than a fifth of the weight: a score, but no rank by the own rule
    assert leaders(table) == {"own": ["D"], "task_means": ["B"], "borda_all": ["D"], "borda_present": ["C"]}
    assert scores(table, "coverage") == pytest.approx({"A": 1, "B": 1 / 3, "C": 2 / 3, "D": 1})
    text = str(table)
    for part in (
        "Borda, n = all models: D leads",
        "Borda, n = models that ran the unit: C leads",
        "B leads with 1 of 3",
    ):
        assert part in text
    assert "4 rules, 3 different leaders" in text


def test_a_partial_model_is_above_a_full_one_only_where_its_gaps_are_left_out(shared: Path) -> None:
    values = read_values(shared / "cases" / "C22" / "scores.csv")
    strict = other_rules(values, rules=["present_mean", "common_mean"], missing="refuse")
    assert scores(strict, "own") == {"full": pytest.approx(0.525), "partial": None}
    assert scores(strict, "present_mean")["partial"] == pytest.approx(0.65)
    assert scores(strict, "common_mean") == pytest.approx({"full": 0.7, "partial": 0.65})
    assert "partial leads with 2 of 4 tasks (mean of present items)" in str(strict)
    zero = other_rules(values, rules=[], missing="zero")
    assert scores(zero, "own") == pytest.approx({"full": 0.525, "partial": 0.325})
    nearly = board({"full": [0.9, 0.9, 0.9, 0.9, 0.9, 0.1], "partial": [0.85, 0.85, 0.85, 0.85, 0.85, None]})
    shown = other_rules(nearly, rules=["common_mean"], missing="renormalise")
    neighbours = shown.neighbours.row(0, named=True)
    assert (neighbours["ahead"], neighbours["behind"], neighbours["n_items"]) == ("partial", "full", 5)
    assert neighbours["difference"] == pytest.approx(-0.05)  # on common items it is the other way round
    assert neighbours["swapped_by"] == ["common_mean"]


def test_neighbours_are_tested_in_pairs_and_the_correction_is_stated(shared: Path) -> None:
    table = other_rules(read_values(shared / "cases" / "C25" / "scores.csv"), rules=["mean_rank"], unit="item")
    found = table.neighbours.row(0, named=True)
    assert found["difference"] == pytest.approx(0.133333, abs=1e-6)
    assert found["standard_error"] == pytest.approx(0.050235, abs=1e-6)
    assert found["p"] == found["p_corrected"] == pytest.approx(0.021484, abs=1e-6)
    assert "Bonferroni" in table.correction
    assert table.correction in str(table)
    assert table.to_dict()["correction"] == table.correction


def test_p_is_corrected_for_all_pairs() -> None:
    rng = np.random.default_rng(0)
    items = pl.DataFrame({"task": ["t"] * 200, "doc_id": [str(i) for i in range(200)]})
    values = BoardValues(tuple("abcd"), items, (rng.random((200, 4)) < [0.2, 0.4, 0.6, 0.8]).astype(float))
    found = other_rules(values, rules=[]).neighbours
    np.testing.assert_allclose(found["p_corrected"], np.minimum(1, 6 * found["p"].to_numpy()))


def test_task_scores_have_no_paired_test() -> None:
    rows = [("x", "a", 0.9), ("x", "b", 0.2), ("y", "a", 0.6), ("y", "b", 0.4)]
    values = BoardValues.from_frame(pl.DataFrame(rows, schema=["model", "task", "value"], orient="row"))
    found = other_rules(values, rules=[]).neighbours.row(0, named=True)
    assert found["difference"] == pytest.approx(0.05)
    assert found["standard_error"] is found["p"] is found["p_corrected"] is None


def test_every_rule_has_a_row_and_says_what_it_does() -> None:
    table = other_rules(board({"x": [1.0, 0.0, 0.5], "y": [0.0, 1.0, 0.6], "z": [0.2, 0.3, 0.4]}), rules=PLAIN)
    assert table.rules["rule"].to_list() == PLAIN
    for name in ("title", "definition", "coverage"):
        assert table.rules[name].str.len_chars().min() > 0  # type: ignore[operator]
    assert table.rules["why_not"].null_count() == len(PLAIN)
    by_rank = {row["rule"]: row["larger_is_better"] for row in table.rules.iter_rows(named=True)}
    assert [name for name, larger in by_rank.items() if not larger] == ["mean_rank"]
    assert scores(table, "mean_rank") == pytest.approx({"x": 2.0, "y": 5 / 3, "z": 7 / 3})
    assert ranks(table, "mean_rank") == {"y": 1, "x": 2, "z": 3}


def test_weights_count_in_rank_rules_and_their_scale_does_not() -> None:
    values = board({"x": [1.0, 0.0], "y": [0.0, 1.0]})
    weights = values.items.with_columns(weight=pl.Series([3.0, 1.0]))
    table = other_rules(values, WeightScheme(weights), rules=PLAIN)
    assert scores(table, "borda_all") == {"x": 1.5, "y": 0.5}  # weight / mean weight
    assert scores(table, "mean_rank") == {"x": 1.25, "y": 1.75}
    assert scores(table, "win_rate") == {"x": 0.75, "y": 0.25}
    assert scores(table, "task_means") == {"x": 0.5, "y": 0.5}  # stated as not weighted
    unweighted = table.rules.filter(~pl.col("weighted"))["rule"].to_list()
    assert unweighted == ["task_means", "median"]
    scaled = WeightScheme(weights.with_columns(pl.col("weight") * 1e6))
    assert other_rules(values, scaled, rules=PLAIN).frame.equals(table.frame)


def test_an_item_of_negative_weight_counts_reversed() -> None:
    values = board({"x": [1.0, 0.9, 0.0], "y": [1.0, 0.1, 0.0], "z": [0.0, 0.5, 1.0]})
    signed = WeightScheme(values.items.with_columns(weight=pl.Series([2.0, -1.0, 0.5])))
    table = other_rules(values, signed, rules=PLAIN)
    assert scores(table, "own") == pytest.approx({"x": 1.1 / 1.5, "y": 1.9 / 1.5, "z": 0.0})
    assert ranks(table, "own") == ranks(table, "borda_all") == ranks(table, "win_rate") == {"x": 2, "y": 1, "z": 3}


def test_items_without_weight_do_not_count() -> None:
    values = board({"x": [1.0, 0.0, None], "y": [0.0, 1.0, 1.0]})
    weights = WeightScheme(values.items.with_columns(weight=pl.Series([1.0, 2.0, 0.0])))
    table = other_rules(values, weights, rules=PLAIN)
    assert scores(table, "coverage") == {"x": 1.0, "y": 1.0}
    assert scores(table, "borda_all") == pytest.approx({"x": 2 / 3, "y": 4 / 3})


def test_tasks_weigh_what_their_items_weigh_and_items_can_be_ranked() -> None:
    items = pl.DataFrame({"task": ["a", "a", "a", "b"], "doc_id": list("1231")})
    values = BoardValues(("x", "y"), items, np.array([[1.0, 0.0], [0.0, 0.5], [0.0, 0.0], [0.0, 1.0]]))
    by_task = other_rules(values, rules=["borda_all", "median"])
    assert scores(by_task, "borda_all") == {"x": 1.5, "y": 0.5}  # task a, where x leads, has 3 of 4 items
    by_item = other_rules(values, rules=["borda_all", "median"], unit="item")
    assert scores(by_item, "borda_all") == {"x": 1.5, "y": 2.5}
    assert scores(by_item, "median") == {"x": 0.0, "y": 0.25}


def test_a_board_of_one_task_is_told_about() -> None:
    items = pl.DataFrame({"task": ["a", "a"], "doc_id": ["1", "2"]})
    values = BoardValues(("x", "y"), items, np.array([[1.0, 0.0], [0.0, 0.5]]))
    assert any("one task" in note for note in other_rules(values, rules=["median"]).notes)
    assert not any("one task" in note for note in other_rules(values, rules=["median"], unit="item").notes)


def test_no_common_item_is_a_reason_and_no_number() -> None:
    apart = board({"x": [1.0, None], "y": [None, 1.0]})
    with pytest.raises(DataError, match="no item with weight is common to all models"):
        other_rules(apart)
    table = other_rules(apart, rules=["common_mean", "present_mean", "win_rate"], missing="renormalise")
    assert table.frame["common_mean"].null_count() == table.frame["win_rate"].null_count() == 2
    assert table.frame["own_rank"].null_count() == 2  # each lacks half
    assert table.frame["present_mean"].to_list() == [1.0, 1.0]
    assert "mean of common items: no item has a score of every model" in str(table)


def test_a_monotone_change_of_a_task_leaves_rank_rules_alone() -> None:
    rng = np.random.default_rng(5)
    raw = rng.random((6, 7))
    table = [board({str(m): list(x) for m, x in enumerate(columns.T)}) for columns in (raw, np.exp(raw - 1))]
    one, other = (other_rules(values, rules=PLAIN) for values in table)
    for rule in ("mean_rank", "borda_all", "borda_present", "win_rate"):
        assert scores(one, rule) == pytest.approx(scores(other, rule))


def test_lower_is_better_needs_a_scale() -> None:
    higher = {"t1": True, "t2": False}
    values = board({"x": [0.9, 8.0], "y": [0.5, 2.0]}, higher=higher)
    with pytest.raises(DataError, match="1 task does not fit"):
        other_rules(values)
    scale = Scale(pl.DataFrame({"task": ["t1", "t2"], "low": [0.0, 10.0], "high": [1.0, 0.0]}))
    table = other_rules(values, scale=scale, rules=["borda_all"])
    assert scores(table, "own") == pytest.approx({"x": 0.55, "y": 0.65})
    assert scores(table, "borda_all") == {"x": 1.0, "y": 1.0}


def test_wrong_arguments_are_named() -> None:
    values = board({"x": [1.0], "y": [0.0]})
    with pytest.raises(UsageError, match="`rules` has nonsense"):
        other_rules(values, rules=["nonsense"])
    with pytest.raises(UsageError, match="`unit`"):
        other_rules(values, unit="family")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="`missing`"):
        other_rules(values, missing="guess")  # type: ignore[arg-type]
    other = WeightScheme(pl.DataFrame({"task": ["elsewhere"], "doc_id": ["1"], "weight": [1.0]}))
    with pytest.raises(DataError):
        other_rules(values, other)


def test_a_missing_library_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "evalica", None)
    values = board({"x": [1.0, 0.0], "y": [0.0, 1.0]})
    table = other_rules(values)
    why = dict(table.rules.select("rule", "why_not").iter_rows())
    assert "benchwright[pairwise]" in why["bradley_terry"]
    assert "benchwright[pairwise]" in why["elo"]
    assert why["borda_all"] is None
    with pytest.raises(UsageError, match=r"pip install 'benchwright\[pairwise\]'"):
        other_rules(values, rules=["elo"])
