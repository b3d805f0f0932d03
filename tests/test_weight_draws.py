"""Draws of slopes, noise and welfare: from rank intervals, from counts of tasks, and how far they reach."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats

from benchwright._check import FloatArray
from benchwright.auditing.item_audit import audit_items
from benchwright.config import Config
from benchwright.logs.item_tables import ItemTables, read_item_tables
from benchwright.mechanism.aggregation import ItemAggregation
from benchwright.mechanism.draws import CHUNK, GameDraws, draw_game, log_spread, two_sided
from benchwright.mechanism.item_weights import ItemWeights, weigh_items
from benchwright.simulate import Simulation, simulate_item_tables
from tables import AXES, drop_column, set_cell, write_tables

CHUNKS = 60  # of 32 draws
CHOICES = Config().replace({"resampling.replicates": 100, "published.draws": 39}, source="test")


@pytest.fixture(scope="module")
def source() -> ItemTables:
    return simulate_item_tables(Simulation(items_per_task=8, replicates=200, seed=3))


def drawn(source: ItemTables, config: Config = CHOICES) -> tuple[ItemWeights, GameDraws]:
    """The weights of a source, and the draws behind their intervals."""
    audit = audit_items(source, config)
    result = weigh_items(audit, config, tables=source)
    prices = np.array([config.prices[axis].usd for axis in result.axes])
    found = draw_game(
        result.model,
        result.items,
        prices,
        config,
        tables=source,
        improvability=audit.improvability,
        noise=audit.noise,
    )
    return result, found


def many(draw: Any) -> FloatArray:
    return np.concatenate([draw() for _ in range(CHUNKS)])


def test_rank_intervals_become_intervals_of_costs(source: ItemTables) -> None:
    result, found = drawn(source)
    assert found.technology is not None
    assert found.variance is not None
    factor = many(found.technology) / result.model.technology
    assert np.ptp(factor, axis=2).max() < 1e-12  # one factor a row
    low, middle, high = np.quantile(1 / factor[:, :, 0], [0.025, 0.5, 0.975], axis=0)
    audit = audit_items(source, CHOICES)
    assert audit.improvability is not None
    table = audit.improvability.items.drop_nulls("cost_rank").sort("cost_rank")
    ordered = table["cost_usd"].to_numpy()
    place = {key: row for row, key in enumerate(table.select("task", "doc_id").iter_rows())}
    checked = 0
    for i, key in enumerate(result.items.select("task", "doc_id").iter_rows()):
        row = place[key]
        ends = [ordered[table[f"cost_rank_{end}"][row] - 1] / ordered[row] for end in ("lo", "hi")]
        if ends[0] <= 1 <= ends[1]:
            checked += 1
            assert np.log(low[i]) == pytest.approx(np.log(ends[0]), abs=0.05 + 0.15 * abs(np.log(ends[0])))
            assert np.log(high[i]) == pytest.approx(np.log(ends[1]), abs=0.05 + 0.15 * abs(np.log(ends[1])))
            assert np.log(middle[i]) == pytest.approx(0, abs=0.12)
    assert checked > 0.8 * result.items.height
    ratio = many(found.variance) / np.asarray(result.model.noise_variance)
    assert np.abs(np.log(np.median(ratio, axis=0))).max() < 0.2
    assert ratio.std(axis=0).min() > 0


def test_draws_are_independent_between_items_and_parts(source: ItemTables) -> None:
    result, found = drawn(source)
    assert found.technology is not None
    assert found.variance is not None
    of_cost = np.log(many(found.technology)[:, :, 0] / result.model.technology[:, 0])
    of_noise = np.log(many(found.variance))
    r = np.corrcoef(np.hstack([of_cost, of_noise]).T)
    np.fill_diagonal(r, 0)
    assert np.abs(r).max() < 6 / np.sqrt(len(of_cost))


def test_an_end_on_the_wrong_side_and_a_missing_interval_do_not_move_an_item() -> None:
    table = pl.DataFrame(
        {
            "task": ["t"] * 4,
            "doc_id": [0, 1, 2, 3],
            "cost": [1.0, 2.0, 4.0, 8.0],
            "rank": [1, 2, 3, 4],
            "rank_lo": [1, 3, None, 2],
            "rank_hi": [2, 4, None, 9],
        }
    )
    spread = log_spread(table, table, "cost", "rank")
    assert spread is not None
    z = stats.norm.ppf(0.975)
    expected = np.array([[0, 0, np.nan, np.log(4) / z], [np.log(2) / z, np.log(4) / z, np.nan, 0]])
    np.testing.assert_allclose(spread, expected)
    assert log_spread(table.with_columns(rank_lo=None), table, "cost", "rank") is None
    draw = two_sided(np.nan_to_num(spread), np.random.default_rng(0))
    factors = np.concatenate([draw() for _ in range(20)])
    assert (factors[:, 2] == 1).all()
    assert factors[:, 0].min() == 1
    assert factors[:, 3].max() == 1


def test_without_rank_intervals_only_welfare_can_be_drawn(source: ItemTables) -> None:
    assert source.cost is not None
    assert source.noise is not None
    ranks = ["rank_headline", "rank_lo", "rank_hi"]
    bare = replace(source, cost=source.cost.drop(ranks), noise=source.noise.drop(ranks))
    result, found = drawn(bare)
    assert found.parts == ()
    assert result.uncertainty is None
    assert "weight_lo" not in result.items.columns
    assert "Weights have no intervals: nothing that they rest on can be drawn." in result.notes
    assert "The source has no intervals of ranks by cost, so cost is not drawn." in result.notes


def with_counts(source: ItemTables) -> ItemTables:
    """The same activities with the shares that their values are a line of."""
    activities = source.activities["share"].with_columns(
        share_auto=(pl.col("auto") - 1) / 5, share_aug=(5.5 - pl.col("aug")) / 5
    )
    return replace(source, activities={"share": activities})


@pytest.mark.parametrize("part", [1.0, 0.4])
def test_welfare_is_drawn_from_counts_of_tasks(source: ItemTables, part: float) -> None:
    told = with_counts(source)
    result, found = drawn(told, CHOICES.replace({"welfare.automation_share": part}, source="test"))
    assert found.welfare is not None
    values = np.concatenate([found.welfare() for _ in range(4 * CHUNKS)])
    activities = told.activities["share"].filter(~pl.col("dropped"))
    scale = 1 / np.arange(1, 6) / (1 / np.arange(1, 6)).sum()
    moments = {}
    for framing, name in {"automation": "auto", "augmentation": "aug"}.items():
        moments[framing] = {}
        for activity, n, share in activities.select("activity", "n_tasks", f"share_{name}").iter_rows():
            beta = stats.beta(share * n + 0.5, (1 - share) * n + 0.5)
            moments[framing][activity] = 25 * beta.var()
    lists = {row[:3]: row[3] for row in told.loadings["default"].iter_rows()}
    for i, (task, doc_id) in enumerate(result.items.select("task", "doc_id").iter_rows()):
        variance = 0.0
        for framing, weight in (("automation", part), ("augmentation", 1 - part)):
            for k, activity in enumerate(lists[task, doc_id, framing]):
                variance += (weight * scale[k]) ** 2 * moments[framing].get(activity, 0.0)
        error = np.sqrt(variance / len(values))
        assert values[:, i].mean() == pytest.approx(result.model.welfare[i], abs=5 * error)
        assert values[:, i].var() == pytest.approx(variance, rel=0.1)
    first = np.corrcoef(values.T)
    assert first[np.triu_indices(len(first), 1)].max() > 0.5  # items that share activities move together


def test_welfare_is_drawn_the_same_whatever_the_order_of_activities(source: ItemTables) -> None:
    told = with_counts(source)
    activities = told.activities["share"]
    turned = replace(told, activities={"share": activities.sample(fraction=1.0, shuffle=True, seed=1)})
    assert not turned.activities["share"].equals(activities)
    one, other = (drawn(each)[1].welfare for each in (told, turned))
    assert one is not None
    assert other is not None
    np.testing.assert_array_equal(one(), other())


def test_a_framing_that_plays_no_part_needs_no_line(source: ItemTables) -> None:
    told = with_counts(source)
    bent = replace(told, activities={"share": told.activities["share"].with_columns(aug=pl.col("aug").sqrt())})
    automation = CHOICES.replace({"welfare.automation_share": 1.0}, source="test")
    assert drawn(bent, automation)[1].welfare is not None
    assert drawn(bent, CHOICES.replace({"welfare.automation_share": 0.5}, source="test"))[1].welfare is None


def test_the_level_of_rank_intervals_is_read_with_them(source: ItemTables) -> None:
    assert source.cost is not None
    audit = audit_items(source, CHOICES)
    assert audit.improvability is not None
    table = audit.improvability.items
    usual, narrow = (log_spread(table, table, "cost_usd", "cost_rank", level) for level in (0.95, 0.6))
    np.testing.assert_allclose(narrow, usual * (stats.norm.ppf(0.975) / stats.norm.ppf(0.8)))
    wide, told = drawn(replace(source, rank_level=0.6))[1], drawn(source)[1]
    assert wide.technology is not None
    assert told.technology is not None
    spreads = [np.log(np.abs(many(each.technology)[:, :, 0])).std(axis=0).mean() for each in (wide, told)]
    assert spreads[0] / spreads[1] == pytest.approx(1.96 / 0.8416, rel=0.05)
    assert any("intervals of ranks (level 0.6)" in note for note in wide.notes)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"n_tasks": pl.lit(None, dtype=pl.Int64)}, "of how many tasks each activity's value is a share"),
        ({"n_tasks": pl.lit(0, dtype=pl.Int64)}, "of how many tasks each activity's value is a share"),
        ({"share_auto": pl.lit(1.5)}, "of how many tasks each activity's value is a share"),
        ({"share_auto": pl.lit(0.5)}, "do not follow from shares"),
        ({"auto": pl.col("auto").sqrt()}, "do not follow from shares"),
    ],
)
def test_welfare_stays_where_its_counts_are_not_told(source: ItemTables, change: dict[str, pl.Expr], why: str) -> None:
    told = with_counts(source)
    broken = replace(told, activities={"share": told.activities["share"].with_columns(**change)})
    _, found = drawn(broken)
    assert found.parts == ("slopes", "noise")
    assert why in found.notes[-1]
    assert found.notes[-1].startswith("Welfare is not drawn: ")


def test_files_bring_the_shares_of_tasks(tmp_path: Path) -> None:
    folder = write_tables(tmp_path / "tables")
    file = folder / "gwa_welfare_scores.csv"
    text = file.read_text(encoding="utf-8").replace("n_tasks_wb,dropped", "n_tasks_wb,p_auto,p_aug,dropped")
    text = text.replace(",30,", ",30,0.9,0.1,").replace(",25,", ",25,0.125,0.925,").replace(",20,", ",20,0.75,0.65,")
    file.write_text(text.replace(",12,", ",12,0.05,0.2,").replace(",2,True", ",2,,,True"), encoding="utf-8")
    activities = read_item_tables(folder, axes=AXES).activities["share"]
    assert activities["share_auto"].to_list() == [0.9, 0.125, 0.75, 0.05, None]
    set_cell(file, 2, "p_aug", "")
    assert read_item_tables(folder, axes=AXES).activities["share"]["share_aug"][0] is None
    drop_column(file, "p_auto")
    assert read_item_tables(folder, axes=AXES).activities["share"]["share_auto"].null_count() == 5


def test_draws_keep_what_they_do_not_draw() -> None:
    model = ItemAggregation(
        [[1.0], [2.0]],
        [1.0, 2.0],
        risk_aversion=2,
        noise_variance=[0.1, 0.2],
        noise_factor=[[0.3], [0.1]],
        curvature=4.0,
    )
    rng = np.random.default_rng(0)
    variance = rng.lognormal(size=(CHUNK, 2))
    variance[:, 1] = np.nan
    games = list(islice(GameDraws(variance=lambda: variance).of(model), CHUNK + 3))
    assert [float(np.asarray(one.noise_variance)[0]) for one in games[:CHUNK]] == variance[:, 0].tolist()
    for one in games:
        assert np.asarray(one.noise_variance)[1] == 0.2
        assert one.technology.tolist() == [[1.0], [2.0]]
        assert one.welfare.tolist() == [1.0, 2.0]
        assert (one.risk_aversion, one.curvature) == (2.0, 4.0)
        assert np.asarray(one.noise_factor).tolist() == [[0.3], [0.1]]


def test_the_149_published_items_have_intervals(shared: Path) -> None:
    config = Config().replace({"published.draws": 79}, source="test")
    tables = read_item_tables(shared / "data" / "olmes-audit", axes=tuple(config.prices))
    result = weigh_items(audit_items(tables, config), config, tables=tables)
    assert result.uncertainty is not None
    names = [f"{kind}_{end}" for kind in ("weight", "published") for end in ("lo", "hi")]
    ends = result.items.select(*names, "weight_positive", "published_kept", "published_share")
    assert ends.height == 149
    assert sum(ends.null_count().row(0)) == 0
    assert (ends["weight_lo"] < ends["weight_hi"]).all()
    assert (ends["published_lo"] <= ends["published_hi"]).all()
    assert (ends["published_lo"] >= 0).all()
    assert ends["published_share"].sum() == pytest.approx(1)
    assert result.uncertainty.scheme("uniform").sign == "sign not settled"
    note = next(note for note in result.notes if note.startswith("Intervals of weights"))
    assert note == "Intervals of weights: 79 draws of slopes, noise and welfare; prices and curvature as they are."
    assert result.by_task["items"].sum() == 149
    assert result.by_task["share"].sum() == pytest.approx(1)
    assert result.by_task.select("lo", "hi").null_count().row(0) == (0, 0)
