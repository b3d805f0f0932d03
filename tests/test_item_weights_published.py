"""Weights that a board can publish, out of an audit: constraints, their prices, one weight a task and a family."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest

from benchwright.auditing.item_audit import audit_items
from benchwright.config import Config, load_config
from benchwright.errors import ConfigError, UsageError
from benchwright.logs.item_tables import ItemTables
from benchwright.mechanism.aggregation import optimal_weights
from benchwright.mechanism.constraints import Constraints
from benchwright.mechanism.item_weights import EVERY, ItemWeights, weigh_items
from benchwright.mechanism.uncertainty import ITSELF
from benchwright.simulate import Simulation, simulate_item_tables


@pytest.fixture(scope="module")
def source() -> ItemTables:
    return simulate_item_tables(Simulation(items_per_task=5, replicates=50, seed=1))


def weigh(source: ItemTables, **choices: Any) -> ItemWeights:
    values = {"resampling.replicates": 100, "published.draws": 39}
    values |= {name.replace("__", "."): value for name, value in choices.items()}
    config = Config().replace(values, source="test")
    return weigh_items(audit_items(source, config), config, tables=source)


def test_published_weights_are_the_constrained_optimum_and_have_prices(source: ItemTables) -> None:
    result = weigh(source, published__max_share=0.06)
    items, optimum = result.items, result.optimum
    assert (items["published_weight"] >= 0).all()
    assert items["published_share"].sum() == pytest.approx(1)
    assert items["published_share"].max() <= 0.06 + 1e-9
    direct = optimal_weights(result.model, Constraints(max_share=0.06))
    np.testing.assert_allclose(items["published_weight"], direct.weights, rtol=1e-6, atol=1e-12)
    free = optimal_weights(result.model, Constraints())
    assert result.prices["max_share"] == pytest.approx(free.surplus - direct.surplus, rel=1e-6)
    assert set(result.prices) == {"non_negative", "max_share"}
    assert result.published.surplus <= optimum.surplus
    assert result.uncertainty is not None
    assert result.uncertainty.reference == "published"
    assert result.uncertainty.scheme("published").standing == ITSELF


def test_the_columns_are_those_of_the_spreads(source: ItemTables) -> None:
    result = weigh(source)
    assert result.uncertainty is not None
    free, bound = (result.uncertainty.spreads[name] for name in ("optimum", "published"))
    columns = {
        "weight_lo": free.lo,
        "weight_hi": free.hi,
        "weight_positive": free.positive,
        "published_lo": bound.share_lo,
        "published_hi": bound.share_hi,
        "published_kept": bound.kept,
    }
    for name, values in columns.items():
        np.testing.assert_array_equal(result.items[name], values)
    assert result.uncertainty.names == (
        "optimum",
        "published",
        "by_task",
        "by_family",
        "uniform",
        "task_means",
        "size_weighted",
        "averaged",
    )
    np.testing.assert_allclose(result.items["averaged_share"].sum(), 1.0)
    risks = {one.risk_aversion for one in result.uncertainty.schemes}
    assert {1.0, 10.0, 100.0} < risks
    assert set(result.sweep.risk_aversions[::EVERY]) < risks


def test_groups_carry_one_weight_an_item(source: ItemTables) -> None:
    result = weigh(source)
    for frame, of in ((result.by_task, "task"), (result.by_family, "family")):
        assert frame["items"].sum() == result.items.height
        assert frame["uniform_share"].sum() == pytest.approx(1)
        if frame["share"].null_count() == 0:
            assert frame["share"].sum() == pytest.approx(1)
            assert (frame["efficiency"] <= result.published.efficiency + 1e-9).all()
        assert (frame["lo"] <= frame["hi"]).all()
        assert frame["efficiency"].n_unique() == 1
        assert frame["name"].is_unique().all(), of
    codes = result.items["task"].rank("dense").to_numpy().astype(int)
    direct = optimal_weights(result.model, Constraints(equal_within=codes))
    shares = result.items.select("task", share=pl.Series(direct.shares)).group_by("task").sum()
    both = result.by_task.join(shares, left_on="name", right_on="task")
    np.testing.assert_allclose(both["share"], both["share_right"], rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("kind", ["task", "family"])
def test_published_weights_may_be_equal_within_groups(source: ItemTables, kind: str) -> None:
    result = weigh(source, published__equal_within=kind)
    frame = {"task": result.by_task, "family": result.by_family}[kind]
    assert "equal_within" in result.prices
    if kind == "task":
        per_task = result.items.group_by("task").agg(pl.col("published_weight").n_unique(), pl.len())
        assert (per_task["published_weight"] == 1).all()
    total = result.items["published_share"].sum()
    assert (frame["share"].null_count() > 0) == (result.items["published_share"].null_count() > 0)
    assert total in (pytest.approx(1), 0)


def test_weights_below_zero_may_be_asked_for(source: ItemTables) -> None:
    result = weigh(source, published__non_negative=False)
    np.testing.assert_allclose(result.published.weights, result.optimum.weights, rtol=1e-8)
    assert result.prices == {}


def test_a_number_of_items_does_not_go_with_weights_below_zero(source: ItemTables) -> None:
    with pytest.raises(UsageError, match=r"published.at_most = 4 does not go with published.non_negative = false"):
        weigh(source, published__at_most=4, published__non_negative=False)


def test_where_no_item_helps_none_is_said_to_be_chosen(source: ItemTables) -> None:
    assert source.cost is not None
    rising = replace(source, cost=source.cost.with_columns(pl.col("^beta_.*$").abs()))
    result = weigh(rising, published__at_most=4, welfare__neutral=4.9)
    assert not result.published.weights.any()
    assert any("no item helps here, so none is chosen" in note for note in result.notes)
    assert not any("stay chosen" in note for note in result.notes)


def test_draws_in_which_no_weights_help_are_told(source: ItemTables) -> None:
    result = weigh(source, welfare__neutral=3.9, published__draws=99)
    assert result.uncertainty is not None
    told = [note for note in result.notes if note.startswith("Shares of weights ")]
    idle = {name: round(one.idle * 99) for name, one in result.uncertainty.spreads.items() if one.idle}
    assert [note.split(":")[0].removeprefix("Shares of weights ") for note in told] == list(idle)
    assert idle
    for note, n in zip(told, idle.values(), strict=True):
        assert f"over the {99 - n} draw" in note


def test_a_number_of_items_may_be_asked_for(source: ItemTables) -> None:
    result = weigh(source, published__at_most=4)
    kept = (result.items["published_weight"] != 0).to_numpy()
    assert kept.sum() == 4
    assert result.prices["at_most"] > 0
    assert result.uncertainty is not None
    spread = result.uncertainty.spreads["published"]
    np.testing.assert_allclose(spread.weights, result.published.weights, rtol=1e-6, atol=1e-9)
    assert spread.kept[~kept].max() == 0
    assert any("the items chosen here stay chosen" in note for note in result.notes)
    assert (result.path.shares > 0).sum(axis=1).max() > 4  # the path does without


def test_too_few_draws_are_said(source: ItemTables) -> None:
    result = weigh(source, published__draws=38)
    assert result.uncertainty is None
    assert "weight_lo" not in result.items.columns
    assert any("38 draws of" in note and "too few for the level 0.95" in note for note in result.notes)
    assert result.by_task["lo"].null_count() == result.by_task.height
    assert result.by_task["share"].sum() == pytest.approx(1)


def test_a_cap_that_leaves_no_room_is_an_error(source: ItemTables) -> None:
    with pytest.raises(UsageError, match="`max_share`"):
        weigh(source, published__max_share=0.001)


def test_the_section_is_read_and_checked(tmp_path: Any) -> None:
    file = tmp_path / "benchwright.toml"
    file.write_text('[published]\nnon_negative = false\nmax_share = 0.1\nequal_within = "task"\n', encoding="utf-8")
    chosen = load_config(file).published
    assert (chosen.non_negative, chosen.max_share, chosen.equal_within, chosen.draws) == (False, 0.1, "task", 200)
    for text, message in (
        ("non_negative = 1", "published.non_negative must be true or false, got 1"),
        ("max_share = 2", "published.max_share must lie in"),
        ("at_most = 0", "published.at_most must lie in"),
        ("draws = true", "published.draws must be a whole number, got True"),
    ):
        file.write_text(f"[published]\n{text}\n", encoding="utf-8")
        with pytest.raises(ConfigError, match=message):
            load_config(file)


def test_the_same_seed_gives_the_same_intervals(source: ItemTables) -> None:
    one, other, third = weigh(source), weigh(source), weigh(source, resampling__seed=2)
    assert one.items.equals(other.items)
    assert not one.items["weight_lo"].equals(third.items["weight_lo"])
    assert one.items["weight"].equals(third.items["weight"])
