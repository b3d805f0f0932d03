"""Simulated item tables: parameters respected, reproducible, labelled, and fit for an audit."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np
import polars as pl
import pytest

from benchwright.auditing.item_audit import audit_items
from benchwright.config import Config
from benchwright.errors import UsageError
from benchwright.logs.item_tables import ItemTables
from benchwright.pipeline import audit
from benchwright.simulate import ACTIVITIES, TASKS, Simulation, simulate_item_tables


@pytest.fixture(scope="module")
def large() -> ItemTables:
    return simulate_item_tables(Simulation(items_per_task=400, replicates=50))


def frames(source: ItemTables) -> dict[str, pl.DataFrame]:
    """All tables of a source by name."""
    found: dict[str, pl.DataFrame] = {}
    for field in fields(source):
        value = getattr(source, field.name)
        if isinstance(value, pl.DataFrame):
            found[field.name] = value
        elif isinstance(value, dict):
            found |= {f"{field.name} {name}": frame for name, frame in value.items()}
    return found


@pytest.mark.parametrize(("tasks", "items"), [(1, 1), (2, 7), (9, 3)])
def test_as_many_items_of_each_task_as_asked_for(tasks: int, items: int) -> None:
    source = simulate_item_tables(Simulation(tasks=TASKS[:tasks], items_per_task=items, replicates=3))
    keys = [(task.name, doc_id) for task in TASKS[:tasks] for doc_id in range(items)]
    for table in (source.cost, source.noise, source.margins):
        assert table is not None
        assert table.select("task", "doc_id").rows() == keys
    for framing in ("automation", "augmentation"):
        judged = source.loadings["default"].filter(pl.col("perspective") == framing)
        assert judged.select("task", "doc_id").rows() == keys
    assert source.families is not None
    assert source.families.rows() == [(task.name, task.family) for task in TASKS[:tasks]]


def test_same_seed_same_tables_and_another_seed_others() -> None:
    given = Simulation(items_per_task=6, replicates=5, seed=3)
    one, two, other = (frames(simulate_item_tables(given)) for given in (given, given, replace(given, seed=4)))
    assert set(one) == {"activities share", "loadings default", "cost", "noise", "margins", "families"}
    assert all(two[name].equals(one[name]) for name in one)
    drawn = {"loadings default", "cost", "noise", "margins"}
    assert {name for name in one if not other[name].equals(one[name])} == drawn


def test_simulated_tables_say_so() -> None:
    source = simulate_item_tables(Simulation(items_per_task=2, replicates=3, seed=77))
    assert source.simulated
    assert "Simulated, not measured" in source.notes[0]
    assert "seed 77" in source.notes[0]
    assert source.name == "simulated tables"


def test_rankings_hold_five_different_activities_and_a_dropped_one_has_no_value(large: ItemTables) -> None:
    activities = large.activities["share"]
    dropped = activities.filter("dropped")
    assert dropped["activity"].to_list() == [row[0] for row in ACTIVITIES if row[3] is None]
    assert dropped["auto"].is_null().all()
    assert activities.filter(~pl.col("dropped")).null_count().sum_horizontal().item() == 0
    lists = large.loadings["default"]["activities"].to_list()
    assert all(len(ranked) == len(set(ranked)) == 5 for ranked in lists)
    assert {name for ranked in lists for name in ranked} == set(activities["activity"])


def test_values_lie_where_they_can(large: ItemTables) -> None:
    assert large.cost is not None
    assert large.noise is not None
    assert large.cost["anchor_phat"].is_between(0, 1).all()
    assert large.noise["noise_mean_phat"].is_between(0, 1, closed="none").all()
    assert (large.noise["noise_sigma2"] > 0).all()
    for frame in frames(large).values():
        numbers = frame.select(pl.selectors.float()).drop_nulls()
        assert np.isfinite(numbers.to_numpy()).all()


def test_slopes_and_noise_follow_their_parameters(large: ItemTables) -> None:
    given = Simulation()
    assert large.cost is not None
    assert large.noise is not None
    assert large.margins is not None
    scaled = []
    for task in TASKS:
        cost = large.cost.filter(task=task.name)
        for axis, mean in zip(large.axes, task.slopes, strict=True):
            slopes = cost[f"beta_{axis.lower()}"].to_numpy()
            spread = mean * np.hypot(given.slope_spread, given.slope_error)
            assert slopes.mean() == pytest.approx(mean, abs=5 * spread / np.sqrt(400))
            scaled.append(slopes / mean)
        noise = large.noise.filter(task=task.name).join(large.margins, on=["task", "doc_id"])
        p = noise["noise_mean_phat"].to_numpy()
        z = np.sqrt(noise["noise_sigma2"].to_numpy() / (p * (1 - p)))
        margin = np.abs(noise["log_ratio_med"].to_numpy() - 1)
        level = np.log(z) + 1.2 * margin  # what is left is the task's level, a spread of 0.25 and the estimate's
        assert np.exp(level.mean()) == pytest.approx(task.noise_level, rel=0.08)
        assert level.std() == pytest.approx(np.hypot(0.25, np.sqrt(0.5 / given.degrees)), rel=0.2)
        assert np.array_equal(noise["log_ratio_med"].to_numpy() < 1, p > 0.5), "an item that is won has a ratio below 1"
    # Between items and from estimation, in shares of the task's mean; 10,800 slopes.
    assert np.std(scaled) == pytest.approx(np.hypot(given.slope_spread, given.slope_error), rel=0.04)


def test_more_degrees_mean_a_better_estimate_and_narrower_ranks() -> None:
    def width(degrees: int) -> float:
        noise = simulate_item_tables(Simulation(items_per_task=40, degrees=degrees, replicates=200)).noise
        assert noise is not None
        return float((noise["rank_hi"] - noise["rank_lo"]).mean())  # type: ignore[arg-type]

    assert width(7) > 2 * width(700)


def test_taste_decides_which_activities_are_ranked() -> None:
    task = TASKS[0]
    shares = []
    for taste in (0.0, 2.5, 20.0):
        source = simulate_item_tables(Simulation(tasks=(task,), items_per_task=300, taste=taste, replicates=2))
        lists = source.loadings["default"]["activities"].to_list()
        shares.append(np.mean([len(set(ranked) & set(task.activities)) for ranked in lists]))
    assert shares[0] < 2 < shares[1] < shares[2]
    assert shares[2] == pytest.approx(3.0, abs=0.01)


def test_an_audit_takes_the_example_as_it_is() -> None:
    source = simulate_item_tables()
    audit = audit_items(source, Config().replace({"resampling.replicates": 100}, source="test"))
    assert set(audit.sections) == {"welfare", "improvability", "noise"}
    assert audit.improvability is not None
    assert audit.noise is not None
    assert audit.improvability.notes == audit.noise.notes == (), "its ranks are the audit's, so intervals are kept"
    for items, name in ((audit.improvability.items, "cost"), (audit.noise.items, "noise")):
        ranked = items.drop_nulls(f"{name}_rank")
        assert ranked.height > 0.8 * items.height
        rank, low, high = (ranked[f"{name}_rank{end}"] for end in ("", "_lo", "_hi"))
        assert ((low >= 1) & (high <= ranked.height) & (low <= high)).all()
        assert ((low <= rank) & (rank <= high)).mean() > 0.9  # type: ignore[operator]
        assert (low < high).mean() > 0.9  # type: ignore[operator]


@pytest.mark.parametrize("left", ["welfare", "improvability", "noise"])
def test_sections_of_tables_in_memory_can_be_left_out(left: str) -> None:
    source = simulate_item_tables(Simulation(items_per_task=3, replicates=5))
    config = Config().replace({"resampling.replicates": 100}, source="test")
    report = audit(source, config=config, without=[left])
    assert set(report.audit.sections) == {"welfare", "improvability", "noise"} - {left}
    with pytest.raises(UsageError, match="`without` must name sections"):
        audit(source, without=["luck"])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"items_per_task": 0}, "`items_per_task` must be at least 1, got 0"),
        ({"tasks": ()}, "`tasks` must be at least 1, got 0"),
        ({"degrees": 0}, "`degrees` must be at least 1, got 0"),
        ({"replicates": 0}, "`replicates` must be at least 1, got 0"),
        ({"tasks": (replace(TASKS[0], activities=("juggling",)),)}, "must name activities of ACTIVITIES, got juggling"),
    ],
)
def test_parameters_that_cannot_be_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Simulation(**changes)
