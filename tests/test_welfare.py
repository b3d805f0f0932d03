"""Welfare, activity map, quadrants and frontier of random judgements against plain loops."""

from __future__ import annotations

from math import isnan, nan
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchwright.auditing.frontier import mark_dominators, mark_frontier, summarise_frontier
from benchwright.auditing.item_audit import audit_items
from benchwright.auditing.welfare import activity_map, item_welfare, quadrant_shares, threshold_name
from benchwright.config import Config
from benchwright.errors import DataError, UsageError
from benchwright.logs.item_tables import ItemTables

relaxed = settings(deadline=None, max_examples=60)
NAMES = tuple("abcdefg")
FRAMINGS = {"automation": "auto", "augmentation": "aug"}


class World:
    """Random activities and judgements; some activities dropped, some lists short or empty, some missing."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.value = {name: dict(zip(("auto", "aug"), rng.integers(2, 11, 2) / 2, strict=True)) for name in NAMES}
        self.dropped = {name for name in NAMES if rng.random() < 0.3} - {NAMES[0]}
        self.lists: dict[tuple[str, int, str], list[str]] = {}
        for item in range(int(rng.integers(1, 9))):
            for framing in FRAMINGS:
                if rng.random() < 0.9:
                    ranked = rng.permutation(NAMES)[: rng.integers(0, 6)].tolist()
                    self.lists[f"task{item % 3}", item, framing] = ranked
        self.lists.setdefault(("task0", 0, "automation"), [NAMES[0]])

    def activities(self) -> pl.DataFrame:
        rows = [
            (name, name in self.dropped, *(None if name in self.dropped else v[x] for x in ("auto", "aug")))
            for name, v in self.value.items()
        ]
        schema = {"activity": pl.String, "dropped": pl.Boolean, "auto": pl.Float64, "aug": pl.Float64}
        return pl.DataFrame(rows, schema=schema, orient="row")

    def loadings(self) -> pl.DataFrame:
        rows = [(task, doc_id, framing, ranked) for (task, doc_id, framing), ranked in self.lists.items()]
        schema: dict[str, Any] = {
            "task": pl.String,
            "doc_id": pl.Int64,
            "perspective": pl.String,
            "activities": pl.List(pl.String),
        }
        return pl.DataFrame(rows, schema=schema, orient="row")

    def welfare(self, key: tuple[str, int], framing: str, top_k: int, rule: str) -> float:
        """The definition, in a loop; NaN where no ranked activity is kept."""
        total, kept = 0.0, 0
        for rank, name in enumerate(self.lists.get((*key, framing), [])[:top_k], start=1):
            if name not in self.dropped:
                total += self.value[name][FRAMINGS[framing]] * (1 / rank if rule == "reciprocal" else 1 / top_k)
                kept += 1
        return total if kept else nan

    def slots(self, framing: str, top_k: int) -> list[str]:
        """All kept activities at ranks that count."""
        lists = [ranked[:top_k] for (*_, mine), ranked in self.lists.items() if mine == framing]
        return [name for ranked in lists for name in ranked if name not in self.dropped]


def corner(auto: float, aug: float, threshold: float) -> str:
    names = {(True, True): "green", (True, False): "automate", (False, True): "augment", (False, False): "red"}
    return names[auto >= threshold, aug >= threshold]


def same(got: float | None, expected: float) -> bool:
    return got is None if isnan(expected) else got == pytest.approx(expected, rel=1e-13)


worlds = given(seed=st.integers(0, 2**32 - 1), top_k=st.integers(1, 6), rule=st.sampled_from(["reciprocal", "uniform"]))


@relaxed
@worlds
def test_welfare_in_a_plain_loop(seed: int, top_k: int, rule: str) -> None:
    world = World(seed)
    frame = item_welfare(world.loadings(), world.activities(), top_k=top_k, rule=rule)
    assert frame.select("task", "doc_id").rows() == list(dict.fromkeys((task, item) for task, item, _ in world.lists))
    total = sum(1 / k for k in range(1, top_k + 1)) if rule == "reciprocal" else 1.0
    for row in frame.iter_rows(named=True):
        for framing, name in FRAMINGS.items():
            expected = world.welfare((row["task"], row["doc_id"]), framing, top_k, rule)
            assert same(row[f"w_{name}_raw"], expected)
            assert same(row[f"w_{name}"], expected / total)


@relaxed
@worlds
def test_quadrant_shares_of_slots_and_items(seed: int, top_k: int, rule: str) -> None:
    world, thresholds = World(seed), (3.0, 3.5)
    items = item_welfare(world.loadings(), world.activities(), top_k=top_k, rule=rule)
    shares = quadrant_shares(world.loadings(), world.activities(), items, top_k=top_k, thresholds=thresholds)
    units = {
        f"{framing} slots": [tuple(world.value[name].values()) for name in world.slots(framing, top_k)]
        for framing in FRAMINGS
    }
    units["items"] = [pair for pair in items.select("w_auto", "w_aug").rows() if None not in pair]
    assert shares.height == len(thresholds) * len(units) * 4
    for row in shares.iter_rows(named=True):
        corners = [corner(*pair, row["threshold"]) for pair in units[row["unit"]]]
        assert (row["n"], row["total"]) == (corners.count(row["quadrant"]), len(corners))
        assert same(row["share"], row["n"] / len(corners) if corners else nan)


@relaxed
@worlds
def test_the_activity_map_counts_items(seed: int, top_k: int, rule: str) -> None:
    world = World(seed)
    table = activity_map(world.loadings(), world.activities(), top_k=top_k, thresholds=(3.0, 3.5))
    assert set(table["activity"]) == set(NAMES) - world.dropped, "dropped activities are not on the map"
    for row in table.iter_rows(named=True):
        for framing in FRAMINGS:
            lists = [ranked for (*_, mine), ranked in world.lists.items() if mine == framing]
            expected = sum(row["activity"] in ranked[:top_k] for ranked in lists) / len(lists) if lists else 0.0
            assert row[framing] == pytest.approx(expected)
        for threshold in (3.0, 3.5):
            assert row[threshold_name(threshold)] == corner(row["auto"], row["aug"], threshold)
    order = [(-a, -b, name) for a, b, name in table.select("automation", "augmentation", "activity").rows()]
    assert order == sorted(order)


def test_lists_that_are_short_dropped_or_empty() -> None:
    activities = pl.DataFrame(
        {
            "activity": ["a", "b", "x"],
            "dropped": [False, False, True],
            "auto": [4.0, 2.0, None],
            "aug": [1.0, 5.0, None],
        }
    )
    lists = {"full": ["a", "b"], "short": ["b"], "dropped first": ["x", "a"], "all dropped": ["x"], "empty": []}
    loadings = pl.DataFrame(
        [("t", name, "automation", ranked) for name, ranked in lists.items()],
        schema=["task", "doc_id", "perspective", "activities"],
        orient="row",
    )
    frame = item_welfare(loadings, activities, top_k=2)
    assert dict(frame.select("doc_id", "w_auto_raw").rows()) == {
        "full": 5.0,
        "short": 2.0,
        "dropped first": 2.0,  # the dropped activity uses up rank 1, so 4 counts half
        "all dropped": None,
        "empty": None,
    }
    assert frame["w_aug"].null_count() == len(lists), "no item was judged under the augmentation framing"
    assert frame.filter(pl.col("doc_id") == "short")["w_auto"].item() == pytest.approx(2 / 1.5)
    with pytest.raises(UsageError, match="reciprocal or uniform"):
        item_welfare(loadings, activities, rule="linear")


def test_order_of_rows_and_names_of_tasks_change_no_welfare() -> None:
    world = World(11)
    frame = item_welfare(world.loadings(), world.activities())
    renamed = pl.col("task").replace({"task0": "zebra", "task1": "aardvark"})
    loadings = world.loadings().sample(fraction=1, shuffle=True, seed=1).with_columns(renamed)
    mixed = item_welfare(loadings, world.activities().reverse())
    assert mixed.sort("doc_id").drop("task").equals(frame.sort("doc_id").drop("task"))


@relaxed
@given(seed=st.integers(0, 2**32 - 1))
def test_frontier_and_dominance_between_two_sides(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = [(float(a), float(b), str(s)) for a, b, s in zip(*rng.integers(0, 4, (2, 12)), "ab" * 6, strict=True)]
    items = pl.DataFrame(rows, schema=["w_auto", "w_aug", "side"], orient="row")
    marked = mark_dominators(mark_frontier(items))
    summary = summarise_frontier(marked, "a")

    def beaten_by(p: tuple[float, float, str], side: str) -> int:
        return sum(q[2] == side and q[0] >= p[0] and q[1] >= p[1] and q[:2] != p[:2] for q in rows)

    frontier = [beaten_by(p, "a") + beaten_by(p, "b") == 0 for p in rows]
    across = {side: [beaten_by(p, "ba"["ab".index(side)]) for p in rows if p[2] == side] for side in "ab"}
    assert marked["on_frontier"].to_list() == frontier
    assert (summary.n_items, summary.size) == (12, sum(frontier))
    assert summary.first_on_frontier + summary.second_on_frontier == summary.size
    assert summary.first_dominated == pytest.approx(np.mean([n > 0 for n in across["a"]]))
    assert summary.second_dominated == pytest.approx(np.mean([n > 0 for n in across["b"]]))
    assert summary.median_second_dominators == int(np.median(across["a"]))


def test_an_item_without_both_values_is_neither_on_nor_off_the_frontier() -> None:
    items = pl.DataFrame({"w_auto": [1.0, None, 2.0, 9.0], "w_aug": [1.0, 5.0, 2.0, None]})
    assert mark_frontier(items)["on_frontier"].to_list() == [False, None, True, None]
    assert mark_frontier(items.head(0))["on_frontier"].to_list() == []


def stated_tables(rows: list[tuple[str, int, float | None, float | None]], **other: Any) -> ItemTables:
    """A source that has no more than its own welfare.csv."""
    schema = {"task": pl.String, "doc_id": pl.Int64, "w_auto": pl.Float64, "w_aug": pl.Float64}
    return ItemTables(name="stated", welfare=pl.DataFrame(rows, schema=schema, orient="row"), **other)


def test_stated_welfare_is_scaled_and_items_without_it_are_left_out() -> None:
    families = pl.DataFrame({"task": ["s", "t"], "family": ["first", "second"]})
    rows = [("s", 0, 2.0, 4.0), ("s", 1, 6.0, 2.0), ("t", 0, 8.0, 6.0), ("t", 1, None, 9.0)]
    audit = audit_items(stated_tables(rows, families=families), Config()).welfare
    assert audit is not None
    assert audit.contrast is not None
    scale = 1 + 1 / 2 + 1 / 3 + 1 / 4 + 1 / 5
    assert audit.items["w_auto"].to_list() == pytest.approx([2 / scale, 6 / scale, 8 / scale, None])
    assert audit.items["quadrant"].to_list() == ["red", "red", "automate", None]
    assert audit.contrast.w_auto.difference == pytest.approx(4 / scale)
    assert audit.contrast.frontier.first_dominated == 1.0
    assert audit.items["n_dominators"].to_list() == [1, 1, 0, None]
    assert audit.activities.is_empty()
    assert any("1 item lacks a welfare value" in note for note in audit.notes)
    assert any("2 items below 1" in note for note in audit.notes)
    assert any("only 1 task: there is no interval" in note for note in audit.notes)


def test_welfare_that_no_item_has_is_an_error() -> None:
    with pytest.raises(DataError, match="no item has a welfare value in both framings"):
        audit_items(stated_tables([("s", 0, 2.0, None)]), Config())


def test_one_family_is_contrasted_with_nothing() -> None:
    audit = audit_items(stated_tables([("s", 0, 2.5, 3.0)]), Config()).welfare
    assert audit is not None
    assert not any("below 1" in note for note in audit.notes)
    assert audit.contrast is None
    assert any("all items are of one family" in note for note in audit.notes)


@pytest.mark.parametrize(("own", "gap"), [([5.0, 2.0], 0.0), ([5.5, 2.0], 0.5), ([None, None], None)])
def test_welfare_is_compared_with_the_sources_own(own: list[float | None], gap: float | None) -> None:
    activities = pl.DataFrame(
        {"activity": ["a", "b"], "label": "x", "n_tasks": 9, "dropped": False, "auto": [4.0, 2.0], "aug": [4.0, 2.0]}
    )
    lists = [("t", item, framing, ranked) for item, ranked in enumerate((["a", "b"], ["b"])) for framing in FRAMINGS]
    loadings = pl.DataFrame(lists, schema=["task", "doc_id", "perspective", "activities"], orient="row")
    tables = stated_tables(
        [("t", 0, own[0], own[0]), ("t", 1, own[1], own[1])],
        activities={"share": activities},
        loadings={"default": loadings},
    )
    audit = audit_items(tables, Config()).welfare
    assert audit is not None
    assert audit.published_gap == (None if gap is None else pytest.approx(gap))
    assert any("differs from welfare.csv by up to 0.5" in note for note in audit.notes) == (gap == 0.5)
    other_rule = Config().replace({"welfare.top_k": 3}, source="test")
    unlike = audit_items(tables, other_rule).welfare
    assert unlike is not None
    assert unlike.published_gap is None, "another rule is no fault of the source"
