"""Costs, noise and their rankings on random tables against plain loops."""

from __future__ import annotations

from dataclasses import replace
from math import sqrt
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchwright.auditing.families import PRESETS, FamilyMap
from benchwright.auditing.improvability import audit_improvability, cost_name, slope_name
from benchwright.auditing.item_audit import audit_items
from benchwright.auditing.noise import audit_noise
from benchwright.auditing.ranks import QUANTILES, quantile_table, rank_ascending
from benchwright.auditing.results import ImprovabilityAudit, NoiseAudit
from benchwright.choices import EligibilityChoices, Price
from benchwright.config import Config
from benchwright.logs.item_tables import ItemTables

relaxed = settings(deadline=None, max_examples=60)
seeds = st.integers(0, 2**32 - 1)
AXES = ("PT", "SFT", "RL")
PRICES = {"PT": Price(82.0, "10^9 tokens"), "SFT": Price(0.2, "10^3 examples"), "RL": Price(0.5, "10^3 prompts")}
LIMITS = EligibilityChoices()
FAMILY = FamilyMap("test", "first letter", prefixes={"a": "A", "b": "B"}, rest="other")


def cost_frame(seed: int, m: int = 30) -> pl.DataFrame:
    """Random slopes: a third negative, some 0, some missing; anchors on and beyond the limits."""
    rng = np.random.default_rng(seed)
    slopes = rng.integers(-4, 9, (m, 3)) / 8
    frame = pl.DataFrame(
        {
            "task": [f"t{i % 4}" for i in range(m)],
            "doc_id": np.arange(m)[::-1],
            "anchor_phat": rng.choice([0.0, 0.05, 0.3, 0.6, 0.95, 1.0], m),
            **{f"beta_{axis.lower()}": slopes[:, k] for k, axis in enumerate(AXES)},
        }
    )
    return frame.with_columns(pl.when(pl.Series(rng.random(m) < 0.9)).then("beta_rl").alias("beta_rl"))


def improvability(frame: pl.DataFrame, **changes: Any) -> ImprovabilityAudit:
    return audit_improvability(frame, AXES, **({"prices": PRICES, "limits": LIMITS} | changes))


@relaxed
@given(seed=seeds)
def test_costs_in_a_plain_loop(seed: int) -> None:
    frame = cost_frame(seed)
    audit = improvability(frame)
    for row, out in zip(frame.iter_rows(named=True), audit.items.iter_rows(named=True), strict=True):
        dollars = {}
        for axis in AXES:
            slope = row[f"beta_{axis.lower()}"]
            if slope is not None and slope > 0:
                dollars[axis] = PRICES[axis].usd / slope
            assert out[slope_name(axis)] == slope
            assert out[cost_name(axis)] == dollars.get(axis), "no cost at a slope that is missing or not positive"
        best = min(dollars.values(), default=None)
        assert out["cost_usd"] == best
        assert out["cheapest_axis"] == next((axis for axis in AXES if dollars.get(axis, -1) == best), None)
        assert out["cost_eligible"] == (bool(dollars) and 0.05 <= row["anchor_phat"] <= 0.95)
        assert (out["cost_rank"] is None) == (not out["cost_eligible"])


@relaxed
@given(seed=seeds)
def test_ranks_and_axis_shares(seed: int) -> None:
    audit = improvability(cost_frame(seed))
    eligible = [row for row in audit.items.iter_rows(named=True) if row["cost_eligible"]]
    ordered = sorted(eligible, key=lambda row: (row["cost_usd"], row["task"], row["doc_id"]))
    assert [row["cost_rank"] for row in ordered] == list(range(1, len(ordered) + 1))
    for row in audit.by_axis.iter_rows(named=True):
        costs = [item["cost_usd"] for item in eligible if item["cheapest_axis"] == row["axis"]]
        slopes = [item[slope_name(row["axis"])] for item in eligible]
        assert row["n_cheapest"] == len(costs)
        assert row["n_improving"] == sum(slope is not None and slope > 0 for slope in slopes)
        assert row["share_cheapest"] == (pytest.approx(len(costs) / len(eligible)) if eligible else None)
        assert row["median_usd_per_unit"] == (pytest.approx(np.median(costs)) if costs else None)
        assert row["price_usd"] == PRICES[row["axis"]].usd


@relaxed
@given(seed=seeds, n=st.integers(1, 60))
def test_quantile_tables_show_the_item_at_the_place_and_its_neighbours(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    frame = pl.DataFrame({"task": "t", "doc_id": rng.permutation(n), "cost": rng.integers(0, 9, n) / 2})
    ranked = rank_ascending(frame, "cost").with_columns(rank_lo=pl.lit(1), rank_hi=pl.lit(2))
    ordered = sorted(frame.rows(), key=lambda row: (row[2], row[1]))
    rows = list(quantile_table(ranked, "cost").iter_rows(named=True))
    expected = []
    for q in QUANTILES:
        centre = round(q * (n - 1)) + 1
        expected += [(q, k, centre + k) for k in range(-3, 4) if 1 <= centre + k <= n]
    assert [(row["quantile"], row["offset"], row["position"]) for row in rows] == expected
    for row in rows:
        assert (row["task"], row["doc_id"], row["value"]) == ordered[row["position"] - 1]


def with_ranks(frame: pl.DataFrame) -> pl.DataFrame:
    """The frame as a source would state it: its own dollars, ranks and intervals."""
    audit = improvability(frame)
    ranks = audit.items.select("task", "doc_id", *(cost_name(axis) for axis in AXES), rank_headline="cost_rank")
    ends = {"rank_lo": pl.col("rank_headline") - 2.0, "rank_hi": pl.col("rank_headline") + 2.0}
    return frame.join(ranks, on=["task", "doc_id"], maintain_order="left").with_columns(**ends)


def test_the_sources_intervals_are_kept_at_its_own_prices_and_dropped_at_others() -> None:
    frame = with_ranks(cost_frame(1, m=60))
    same = improvability(frame)
    eligible = same.items.filter("cost_eligible")
    assert [note.partition(":")[0] for note in same.notes] == ["PT", "SFT", "RL"]
    assert same.notes[0] == (
        "PT: dollars x slope is 82 in the source, so its dollars are for 1.0 of score and its slopes are per "
        f"{PRICES['PT'].per}."
    )
    assert eligible["cost_rank_lo"].to_list() == (eligible["cost_rank"] - 2).to_list()
    assert same.quantiles["rank_hi"].to_list() == (same.quantiles["position"] + 2).to_list()
    assert same.by_axis["implied_price_usd"].to_list() == pytest.approx([82.0, 0.2, 0.5])
    dear = improvability(frame, prices=PRICES | {"SFT": Price(500.0, "10^3 examples")})
    assert dear.items["cost_sft_usd"].to_list() == [
        500 / slope if slope > 0 else None for slope in frame["beta_sft"].to_list()
    ]
    assert dear.items["cost_pt_usd"].equals(same.items["cost_pt_usd"])
    assert dear.items["cost_rank_lo"].is_null().all()
    assert dear.quantiles["rank_lo"].is_null().all()
    assert dear.notes[1::2] == (
        "SFT: the source's dollar column implies 0.2 USD for 10^3 examples, the price in force is 500; "
        "costs are recomputed from the slopes.",
        "Cost ranks have no intervals: the source's rank intervals belong to another ranking (prices or limits).",
    )
    unranked = improvability(cost_frame(1))
    assert unranked.notes == ("Cost ranks have no intervals: the source gives no rank intervals.",)


def test_published_dollars_stand_where_slopes_are_rounded() -> None:
    frame = with_ranks(cost_frame(2)).with_columns(cost_pt_usd=pl.col("cost_pt_usd") * 1.0004)
    audit = improvability(frame)
    improving = audit.items.filter(pl.col("slope_pt") > 0)
    assert improving["cost_pt_usd"].to_list() == frame.filter(pl.col("beta_pt") > 0)["cost_pt_usd"].to_list()
    assert not any("implies" in note for note in audit.notes)


def test_a_dollar_figure_that_does_not_follow_from_its_slope_is_recomputed() -> None:
    frame = with_ranks(cost_frame(2))
    row = frame.with_row_index().filter(pl.col("beta_pt") > 0)["index"][0]
    wrong = frame.with_columns(
        cost_pt_usd=pl.when(pl.int_range(pl.len()) == row).then(pl.col("cost_pt_usd") * 3).otherwise("cost_pt_usd")
    )
    audit = improvability(wrong)
    assert audit.items["cost_pt_usd"][row] == pytest.approx(82 / frame["beta_pt"][row])
    assert any("1 of the source's dollar figures" in note for note in audit.notes)


@pytest.mark.parametrize("factor", [4.0, 1 / 128])  # powers of two keep ties
def test_one_price_level_scales_all_dollars_and_moves_no_rank(factor: float) -> None:
    frame = cost_frame(3)
    dearer = {axis: replace(price, usd=price.usd * factor) for axis, price in PRICES.items()}
    before, after = improvability(frame), improvability(frame, prices=dearer)
    assert after.items["cost_usd"].to_list() == pytest.approx((before.items["cost_usd"] * factor).to_list())
    assert after.items.select("cheapest_axis", "cost_rank").equals(before.items.select("cheapest_axis", "cost_rank"))


def noise_frame(seed: int, m: int = 60) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Random noise, with mean scores at and beyond the limits, and margins of most of the items."""
    rng = np.random.default_rng(seed)
    frame = pl.DataFrame(
        {
            "task": [f"{'aabc'[i % 4]}{i % 8}" for i in range(m)],
            "doc_id": np.arange(m),
            "noise_sigma2": rng.choice([0.0, 1e-7, 1e-6, 0.01, 0.04], m) * rng.choice([1.0, 1.5, 2.0], m),
            "noise_mean_phat": rng.choice([0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0], m),
        }
    )
    margins = frame.select("task", "doc_id", log_ratio_med=pl.Series(rng.uniform(0.5, 1.5, m))).gather(
        np.flatnonzero(rng.random(m) < 0.8).tolist()
    )
    return frame, margins


def noise(frame: pl.DataFrame, margins: pl.DataFrame | None, limits: EligibilityChoices = LIMITS) -> NoiseAudit:
    return audit_noise(frame, margins, families=FAMILY, limits=limits)


@relaxed
@given(seed=seeds)
def test_noise_in_a_plain_loop(seed: int) -> None:
    frame, margins = noise_frame(seed)
    audit = noise(frame, margins)
    ratio = {(task, doc_id): value for task, doc_id, value in margins.rows()}
    z_values = []
    for row, out in zip(frame.iter_rows(named=True), audit.items.iter_rows(named=True), strict=True):
        p, sigma2 = row["noise_mean_phat"], row["noise_sigma2"]
        assert out["sigma"] == pytest.approx(sqrt(sigma2))
        assert out["z"] == (pytest.approx(sqrt(sigma2 / (p * (1 - p)))) if 0 < p < 1 else None)
        assert out["noise_eligible"] == (0.1 <= p <= 0.9 and sigma2 >= 1e-6)
        assert out["margin_ratio"] == ratio.get((row["task"], row["doc_id"]))
        if out["noise_eligible"]:
            z_values.append(out["z"])
    assert audit.reference_z == pytest.approx(1 / sqrt(10))
    assert audit.share_below_reference == pytest.approx(np.mean([z < 1 / sqrt(10) for z in z_values]))
    ordered = audit.items.filter("noise_eligible").sort("sigma", "task", "doc_id")
    assert ordered["noise_rank"].to_list() == list(range(1, ordered.height + 1))
    assert audit.items.filter(~pl.col("noise_eligible"))["noise_rank"].is_null().all()


@relaxed
@given(seed=seeds, with_margins=st.booleans())
def test_families_in_a_plain_loop(seed: int, with_margins: bool) -> None:
    frame, margins = noise_frame(seed, m=160)
    audit = noise(frame, margins if with_margins else None)
    rows = [row for row in audit.items.iter_rows(named=True) if row["noise_eligible"]]
    if with_margins:
        rows = [row for row in rows if row["margin_ratio"] is not None]
    families = {name: [row for row in rows if FAMILY.family(row["task"]) == name] for name in ("A", "B", "other")}
    assert audit.by_family["family"].sort().to_list() == [name for name, mine in families.items() if mine]
    for out in audit.by_family.iter_rows(named=True):
        mine = families[out["family"]]
        won = [row["margin_ratio"] for row in mine if row["mean_score"] > 0.5]
        assert (out["n"], out["n_p_over_half"]) == (len(mine), len(won))
        for column, value in (("median_p", "mean_score"), ("median_sigma", "sigma"), ("median_z", "z")):
            assert out[column] == pytest.approx(np.median([row[value] for row in mine]))
        if not with_margins:
            assert (out["median_ratio"], out["r_ratio_z"]) == (None, None)
            continue
        assert out["median_ratio"] == (pytest.approx(np.median(won)) if won else None)
        expected = None
        if len(mine) >= 30:
            expected = np.corrcoef([abs(row["margin_ratio"] - 1) for row in mine], [row["z"] for row in mine])[0, 1]
        assert out["r_ratio_z"] == (None if expected is None else pytest.approx(expected, abs=1e-10))
    sigmas = audit.by_family["median_sigma"].to_list()
    assert sigmas == sorted(sigmas, reverse=True)


def test_a_correlation_needs_thirty_items() -> None:
    rng = np.random.default_rng(5)
    for n, defined in ((29, False), (30, True)):
        frame = pl.DataFrame(
            {"task": "a", "doc_id": np.arange(n), "noise_sigma2": rng.uniform(0.01, 0.1, n), "noise_mean_phat": 0.5}
        )
        margins = frame.select("task", "doc_id", log_ratio_med=pl.Series(rng.uniform(0.5, 1.5, n)))
        value = noise(frame, margins).by_family["r_ratio_z"].item()
        assert (value is not None) == defined
    flat = margins.with_columns(log_ratio_med=pl.lit(1.0))
    assert noise(frame, flat).by_family["r_ratio_z"].item() is None, "a constant margin has no correlation"


def test_without_margins_noise_is_not_split_by_them() -> None:
    audit = noise(noise_frame(6)[0], None)
    assert audit.items["margin_ratio"].is_null().all()
    assert "noise is not split by margin" in audit.notes[0]


def test_the_sources_own_sigma_is_used_where_it_states_one() -> None:
    frame, margins = noise_frame(7)
    stated = frame.with_columns(noise_sigma_hat=pl.col("noise_sigma2").sqrt() * 1.0005)
    audit = noise(stated, margins)
    assert audit.items["sigma"].to_list() == stated["noise_sigma_hat"].to_list()


def test_a_stated_sigma_that_is_not_the_root_of_its_variance_is_not_used() -> None:
    frame, margins = noise_frame(7)
    wrong = pl.when(pl.int_range(pl.len()) == 0).then(2.0).otherwise(1.0)
    audit = noise(frame.with_columns(noise_sigma_hat=pl.col("noise_sigma2").sqrt() * wrong), margins)
    assert audit.items["sigma"].to_list() == pytest.approx(frame["noise_sigma2"].sqrt().to_list())
    assert any("in 1 row; the root is used" in note for note in audit.notes)


def test_rank_intervals_of_noise_go_with_its_limits() -> None:
    frame, margins = noise_frame(8, m=200)
    ranks = noise(frame, margins).items.select("noise_rank").to_series()
    stated = frame.with_columns(rank_headline=ranks, rank_lo=ranks - 1.4, rank_hi=ranks + 1.4)
    kept = noise(stated, margins).items.filter("noise_eligible")
    assert kept["noise_rank_hi"].to_list() == (kept["noise_rank"] + 1).to_list()
    narrow = noise(stated, margins, replace(LIMITS, noise_low=0.4))
    assert narrow.items["noise_rank_lo"].is_null().all()
    assert "(prices or limits)" in narrow.notes[-1]


def test_an_item_at_the_edge_has_no_z_and_does_not_count_below_the_line() -> None:
    frame = pl.DataFrame({"task": "a", "doc_id": [0, 1], "noise_sigma2": [0.01, 0.01], "noise_mean_phat": [0.0, 0.5]})
    audit = noise(frame, None, replace(LIMITS, noise_low=0.0))
    assert audit.items["z"].to_list() == [None, pytest.approx(0.2)]
    assert audit.items["noise_eligible"].all()
    assert audit.share_below_reference == 1.0


def test_no_item_within_the_limits_leaves_empty_tables() -> None:
    frame, margins = noise_frame(9)
    tables = ItemTables(name="x", cost=cost_frame(9), noise=frame, margins=margins, axes=AXES)
    limits = {f"eligibility.{key}": 0.999 for key in ("anchor_low", "anchor_high", "noise_low", "noise_high")}
    audit = audit_items(tables, Config().replace(limits, source="test"))
    assert audit.improvability is not None
    assert audit.noise is not None
    assert not audit.improvability.items["cost_eligible"].any()
    assert audit.improvability.by_axis["share_cheapest"].is_null().all()
    assert audit.improvability.quantiles.is_empty()
    assert audit.noise.by_family.is_empty()
    assert np.isnan(audit.noise.share_below_reference)


def test_more_families_than_polars_looks_at_before_it_settles_a_type() -> None:
    sizes = np.r_[np.ones(120, dtype=int), 40]
    tasks = [f"task{k:03d}" for k, size in enumerate(sizes) for _ in range(size)]
    rng = np.random.default_rng(10)
    frame = pl.DataFrame(
        {
            "task": tasks,
            "doc_id": np.arange(len(tasks)),
            "noise_sigma2": rng.uniform(0.001, 0.01, len(tasks)),
            "noise_mean_phat": rng.uniform(0.2, 0.8, len(tasks)),
        }
    )
    margins = frame.select("task", "doc_id", log_ratio_med="noise_mean_phat")
    audit = audit_noise(frame, margins, families=PRESETS["benchmark"], limits=LIMITS)
    assert audit.by_family.height == len(sizes)
    assert audit.by_family.filter(pl.col("r_ratio_z").is_not_null())["family"].to_list() == ["task120"]


def test_values_that_differ_by_rounding_are_tied() -> None:
    values = [0.1 + 0.2, 0.3, np.nextafter(0.3, 1.0), 0.2, 0.0, np.inf, 0.31]
    items = pl.DataFrame({"task": ["t"] * 7, "doc_id": [6, 5, 4, 3, 2, 1, 0], "value": values})
    ranked = rank_ascending(items, "value")
    assert ranked["doc_id"].to_list() == [2, 3, 4, 5, 6, 0, 1]
    assert ranked["value"].to_list() == [0.0, 0.2, values[2], values[1], values[0], 0.31, np.inf]
