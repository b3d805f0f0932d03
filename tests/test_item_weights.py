"""From an audit to weights: what enters, which schemes are judged, and figures against a dense twin."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.optimize import brentq

from benchwright._check import FloatArray
from benchwright.auditing.item_audit import audit_items
from benchwright.config import Config
from benchwright.errors import DataError
from benchwright.logs.item_tables import ITEM, ItemTables
from benchwright.mechanism.aggregation import ItemAggregation, evaluate_scheme
from benchwright.mechanism.break_even import break_even
from benchwright.mechanism.item_weights import FRAMINGS, IN_FORCE, ItemWeights, weigh_items
from benchwright.simulate import Simulation, simulate_item_tables

SEEDS = range(4)
RULES = ("auto", "uniform", "first-best")
BOUNDS = (("low", 0.0), ("high", 1.0))


def tables(seed: int = 0, items_per_task: int = 5) -> ItemTables:
    return simulate_item_tables(Simulation(items_per_task=items_per_task, replicates=5, seed=seed))


def config(**choices: Any) -> Config:
    """Few replicates (they do not matter here) and the given choices; ``__`` stands for the dot."""
    values = {"resampling.replicates": 100, "published.draws": 39} | {
        name.replace("__", "."): value for name, value in choices.items()
    }
    return Config().replace(values, source="test")


def weigh(source: ItemTables, user: pl.DataFrame | None = None, **choices: Any) -> ItemWeights:
    chosen = config(**choices)
    return weigh_items(audit_items(source, chosen), chosen, user_weights=user)


def game(result: ItemWeights, choices: Config) -> tuple[FloatArray, FloatArray, FloatArray]:
    """A, w, d from the items' statistics, cell by cell."""
    rows = list(result.items.iter_rows(named=True))
    A = [[row[f"slope_{axis.lower()}"] / choices.prices[axis].usd for axis in result.axes] for row in rows]
    share, neutral = choices.welfare.automation_share, choices.welfare.neutral
    w = [share * row["w_auto"] + (1 - share) * row["w_aug"] - neutral for row in rows]
    return np.array(A), np.array(w), np.array([row["sigma2"] for row in rows])


def best_scale(A: FloatArray, w: FloatArray, d: FloatArray, c0: float, r: float, u: FloatArray) -> float:
    M = A @ A.T / c0
    return max(0.0, float(u @ M @ w)) / float(u @ M @ u + r * u @ (d * u))


def efficiency(A: FloatArray, w: FloatArray, d: FloatArray, c0: float, r: float, u: FloatArray) -> float:
    """S(s u) / S(v*), both from matrices of size m x m."""
    M, Sigma = A @ A.T / c0, np.diag(d)

    def surplus(v: FloatArray) -> float:
        return float(w @ M @ v - v @ M @ v / 2 - r * v @ Sigma @ v / 2)

    return surplus(best_scale(A, w, d, c0, r, u) * u) / surplus(np.linalg.solve(M + r * Sigma, M @ w))


def plain_schemes(result: ItemWeights, everywhere: dict[str, int]) -> dict[str, FloatArray]:
    """The directions, one item at a time; ``everywhere`` has the number of a task's items in all tables."""
    tasks = result.items["task"].to_list()
    return {
        "uniform": np.ones(len(tasks)),
        "task_means": np.array([1 / tasks.count(task) for task in tasks]),
        "size_weighted": np.array([everywhere[task] / tasks.count(task) for task in tasks]),
    }


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("share", "neutral"), [(1.0, 3.0), (0.3, 2.2)])
def test_weights_and_efficiencies_equal_the_dense_ones(seed: int, share: float, neutral: float) -> None:
    choices: dict[str, Any] = {"welfare__automation_share": share, "welfare__neutral": neutral}
    result = weigh(tables(seed), **choices)
    A, w, d = game(result, config(**choices))
    c0 = result.calibration.c0
    M = A @ A.T / c0
    assert result.items["welfare"].to_numpy() == pytest.approx(w)
    v = np.linalg.solve(M + np.diag(d), M @ w)
    np.testing.assert_allclose(result.items["weight"].to_numpy(), v, rtol=1e-7, atol=1e-9 * np.abs(v).max())
    assert result.items["weight_share"].sum() == pytest.approx(1.0 if v.sum() > 0 else v.sum() / np.abs(v).sum())
    for name, u in plain_schemes(result, dict.fromkeys(result.items["task"], 5)).items():
        assert result.schemes[name].efficiency == pytest.approx(efficiency(A, w, d, c0, 1.0, u), abs=1e-9)
        for r, value in zip((1.0, 10.0, 100.0), result.tabulated.efficiency[name], strict=True):
            assert value == pytest.approx(efficiency(A, w, d, c0, r, u), abs=1e-9)
    balanced = float(w @ M @ w / (w @ (d * w)))
    assert result.balanced_risk == pytest.approx(balanced)
    assert result.sweep.risk_aversions == pytest.approx(balanced * np.logspace(-3, 3, 25))


def test_task_sizes_come_from_all_tables() -> None:
    whole = tables(1, items_per_task=6)
    assert whole.cost is not None
    first, second, third = whole.cost["task"].unique(maintain_order=True).to_list()[:3]
    # Two tasks have costs for a few items only, one of them a hundred more items with noise alone; a third
    # has noise for few.
    cost = whole.cost.filter((pl.col("task") != first) | (pl.col("doc_id") < 3))
    cost = cost.filter((pl.col("task") != second) | (pl.col("doc_id") < 2))
    assert whole.noise is not None
    more = pl.concat([whole.noise.head(1)] * 100).with_columns(doc_id=pl.int_range(100, 200, dtype=pl.Int64))
    noise = pl.concat([whole.noise, more]).filter((pl.col("task") != third) | (pl.col("doc_id") < 4))
    source = replace(whole, cost=cost, noise=noise)
    limits = {f"eligibility__{name}_{end}": value for name in ("anchor", "noise") for end, value in BOUNDS}
    result = weigh(source, **limits)
    everywhere = dict.fromkeys(result.items["task"], 6) | {whole.noise["task"][0]: 106}
    A, w, d = game(result, config())
    for name, u in plain_schemes(result, everywhere).items():
        expected = efficiency(A, w, d, result.calibration.c0, 1.0, u)
        assert result.schemes[name].efficiency == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_break_even_is_where_the_plain_average_turns(seed: int) -> None:
    result = weigh(tables(seed))
    A, _, d = game(result, config())
    for framing, column in FRAMINGS.items():
        stated = result.items[column].to_numpy()

        def alignment(neutral: float, stated: FloatArray = stated) -> int:
            model = ItemAggregation(A, stated - neutral, risk_aversion=1.0, noise_variance=d)
            return evaluate_scheme(model, np.ones(len(A))).alignment

        low, high = -20.0, 30.0
        assert (alignment(low), alignment(high)) == (1, -1)
        for _ in range(50):
            middle = (low + high) / 2
            low, high = (middle, high) if alignment(middle) > 0 else (low, middle)
        turning = result.break_even[framing]
        assert turning.point == pytest.approx(low, abs=1e-9)
        assert turning.interval[0] < turning.point < turning.interval[1]
    assert result.break_even[IN_FORCE] == result.break_even["automation"]


def test_the_mixture_in_force_has_its_own_break_even() -> None:
    result = weigh(tables(3), welfare__automation_share=0.25)
    A, w, _ = game(result, config(welfare__automation_share=0.25))
    pull = A.sum(axis=0)
    assert result.break_even[IN_FORCE].point == pytest.approx(pull @ A.T @ (w + 3) / (pull @ pull), abs=1e-9)


def test_the_break_even_interval_is_that_of_one_draw_at_a_time() -> None:
    result = weigh(tables(1), resampling__replicates=4000)
    A, w, _ = game(result, config())
    by_task = [np.flatnonzero((result.items["task"] == task).to_numpy()) for task in result.items["task"].unique()]
    rng = np.random.default_rng(5)
    drawn = []
    for _ in range(2000):
        rows = np.concatenate([by_task[i] for i in rng.integers(len(by_task), size=len(by_task))])
        pull = A[rows].sum(axis=0)
        drawn.append(pull @ A[rows].T @ (w[rows] + 3) / (pull @ pull))
    assert result.break_even["automation"].interval == pytest.approx(np.quantile(drawn, [0.025, 0.975]), abs=0.05)


def test_one_task_gives_no_interval() -> None:
    rng = np.random.default_rng(0)
    only = break_even(
        np.ones((3, 1)), np.array([2.0, 3.0, 4.0]), np.zeros(3, dtype=np.int64), replicates=100, level=0.95, rng=rng
    )
    assert only.point == pytest.approx(3.0)
    assert np.isnan(only.interval).all()
    assert not only.settles(1.0)


def test_effort_is_what_each_scheme_calls_for() -> None:
    result = weigh(tables(2))
    A, w, d = game(result, config())
    c0 = result.calibration.c0
    table = {(scheme, axis): usd for scheme, axis, usd in result.effort.iter_rows()}
    u = np.full(len(A), 1 / len(A))
    expected = best_scale(A, w, d, c0, 1.0, u) * A.T @ u / c0
    assert [table["uniform", axis] for axis in result.axes] == pytest.approx(expected.tolist())
    optimum = A.T @ result.items["weight"].to_numpy() / c0
    assert [table["optimum", axis] for axis in result.axes] == pytest.approx(optimum.tolist(), rel=1e-6)


def test_the_neutral_sweep_calibrates_afresh_at_each_point() -> None:
    result = weigh(tables(2))
    A, _, d = game(result, config())
    u = np.full(len(A), 1 / len(A))
    assert result.neutral_sweep.height == 3 * 41
    for row in result.neutral_sweep.gather_every(5).iter_rows(named=True):
        w = result.items[FRAMINGS.get(row["framing"], "w_auto")].to_numpy() - row["neutral"]
        below = row["neutral"] < result.break_even[row["framing"]].point
        assert row["alignment"] == (1 if below else -1)
        c0 = uniform_c0(A, w, d, 1.0, 100_000.0) if below else np.abs(A.T @ w).sum() / 100_000.0
        assert row["efficiency"] == pytest.approx(efficiency(A, w, d, c0, 1.0, u), abs=1e-8)


def uniform_c0(A: FloatArray, w: FloatArray, d: FloatArray, r: float, budget: float) -> float:
    """The c0 at which sum_k a_k = budget under the plain average at its best scale, by root finding."""
    u = np.full(len(A), 1 / len(A))

    def log_spend(log_c0: float) -> float:
        c0 = np.exp(log_c0)
        return float(np.log(np.sum(A.T @ u) * best_scale(A, w, d, c0, r, u) / c0 / budget))

    return float(np.exp(brentq(log_spend, -80, 20, xtol=1e-13, rtol=1e-13)))


@pytest.mark.parametrize("seed", SEEDS)
def test_calibration_follows_its_rule(seed: int) -> None:
    source, budget, r = tables(seed), 5_000.0, 3.0
    fixed: dict[str, Any] = {"lab__budget": budget, "lab__risk_aversion": r}
    by_rule = {rule: weigh(source, lab__calibration=rule, welfare__neutral=1.0, **fixed) for rule in RULES}
    A, w, d = game(by_rule["auto"], config(welfare__neutral=1.0))
    expected = {"uniform": uniform_c0(A, w, d, r, budget), "first-best": float(np.abs(A.T @ w).sum()) / budget}
    for rule in ("uniform", "first-best"):
        assert by_rule[rule].calibration.rule == rule
        assert by_rule[rule].calibration.c0 == pytest.approx(expected[rule])
    assert by_rule["auto"].calibration == by_rule["uniform"].calibration
    # Where every item does harm, the plain average lowers welfare and cannot calibrate.
    assert weigh(source, welfare__neutral=9.0, **fixed).calibration.rule == "first-best"
    with pytest.raises(DataError, match="the uniform mean cannot calibrate"):
        weigh(source, welfare__neutral=9.0, lab__calibration="uniform", **fixed)
    given = weigh(source, lab__curvature=2e-9, **fixed)
    assert (given.calibration.c0, given.calibration.rule) == (2e-9, "given")


def test_prices_are_units_and_scale_alone_changes_no_weight() -> None:
    source = tables(3)
    before = weigh(source, lab__curvature=1e-9)
    dollars = {axis: {"usd": price.usd * 4, "per": price.per} for axis, price in Config().prices.items()}
    chosen = config(lab__curvature=1e-9 / 16).replace(
        {f"prices.{axis}": price for axis, price in dollars.items()}, source="test"
    )
    after = weigh_items(audit_items(source, chosen), chosen)
    np.testing.assert_allclose(after.items["weight"], before.items["weight"], rtol=1e-9)


def test_users_weights_are_judged_as_a_direction() -> None:
    source = tables(0)
    result = weigh(source)
    keys = result.items.select(*ITEM)
    weights = np.random.default_rng(1).integers(0, 9, keys.height).astype(float)
    user = keys.with_columns(weight=pl.Series(weights))
    A, w, d = game(result, config())
    expected = efficiency(A, w, d, result.calibration.c0, 1.0, weights)
    shuffled = user.sample(fraction=1, shuffle=True, seed=2).with_columns(weight=pl.col("weight") * 7)
    for frame in (user, shuffled):
        assert weigh(source, frame).schemes["user"].efficiency == pytest.approx(expected, abs=1e-9)
    optimal = keys.with_columns(weight=result.items["weight"] / 3)
    assert weigh(source, optimal).schemes["user"].efficiency == pytest.approx(1.0, abs=1e-9)
    more = pl.concat([user, pl.DataFrame({"task": ["elsewhere"], "doc_id": [0], "weight": [1.0]})])
    assert any("name 1 items beyond those judged" in note for note in weigh(source, more).notes)


def test_users_weights_that_do_not_fit_are_errors() -> None:
    source = tables(0)
    keys = weigh(source).items.select(*ITEM).with_columns(weight=pl.lit(1.0))
    with pytest.raises(DataError, match=rf"lack 2 of the {keys.height} items") as caught:
        weigh(source, keys.tail(-2))
    assert [fault.reason for fault in caught.value.faults] == [
        f"no weight for ({task}, {doc_id})" for task, doc_id in keys.select(*ITEM).head(2).rows()
    ]
    with pytest.raises(DataError, match="do not share item ids"):
        weigh(source, keys.with_columns(pl.col("doc_id").cast(pl.String)))


def test_items_that_lack_a_statistic_or_lie_beyond_the_limits_carry_no_weight() -> None:
    source = tables(0)
    everyone = weigh(source)
    chosen = everyone.items.select(*ITEM).rows()[:4]
    (no_slope, no_welfare, no_cost, no_noise) = (
        (pl.col("task") == task) & (pl.col("doc_id") == doc_id) for task, doc_id in chosen
    )
    assert source.cost is not None
    assert source.noise is not None
    thinner = replace(
        source,
        cost=source.cost.filter(~no_cost).with_columns(pl.when(~no_slope).then("beta_rl").alias("beta_rl")),
        noise=source.noise.filter(~no_noise),
        loadings={
            "default": source.loadings["default"].filter(~(no_welfare & (pl.col("perspective") == "augmentation")))
        },
    )
    result = weigh(thinner)
    assert result.items.select(*ITEM).rows() == everyone.items.select(*ITEM).rows()[4:]
    assert "2 items of all three tables without a welfare value or a slope: no weight." in result.notes
    beyond = 45 - everyone.items.height
    assert beyond > 0
    note = f"{beyond} items with all three statistics outside the eligibility limits: no weight."
    assert note in everyone.notes
    assert note in result.notes


def test_without_a_section_or_an_item_there_are_no_weights() -> None:
    source = tables(0)
    with pytest.raises(DataError, match="missing: improvability, noise"):
        weigh(replace(source, cost=None, noise=None))
    assert source.noise is not None
    elsewhere = replace(source, noise=source.noise.with_columns(doc_id=pl.col("doc_id") + 1000))
    with pytest.raises(DataError, match="no item has welfare, slopes and noise"):
        weigh(elsewhere)


def test_order_of_rows_changes_nothing() -> None:
    source = tables(1)
    assert source.cost is not None
    assert source.noise is not None
    mixed = replace(
        source,
        cost=source.cost.sample(fraction=1, shuffle=True, seed=1),
        noise=source.noise.reverse(),
        loadings={"default": source.loadings["default"].sample(fraction=1, shuffle=True, seed=2)},
    )
    before, after = weigh(source), weigh(mixed)
    assert after.items.equals(before.items)
    assert after.schemes == before.schemes
    assert after.notes == before.notes


def test_where_no_incentive_has_value_nothing_is_calibrated_and_no_scheme_has_an_efficiency() -> None:
    h5 = 1 + 1 / 2 + 1 / 3 + 1 / 4 + 1 / 5
    keys = {"task": ["t", "t"], "doc_id": [0, 1]}
    stated = pl.DataFrame(keys | {"w_auto": [2 * h5, 4 * h5], "w_aug": [3 * h5, 3 * h5]})
    source = ItemTables(
        name="twins of opposite value",
        welfare=stated,
        cost=pl.DataFrame(keys | {"anchor_phat": 0.5, "beta_pt": 0.25}),
        noise=pl.DataFrame(keys | {"noise_sigma2": 0.01, "noise_mean_phat": 0.5}),
        axes=("PT",),
    )
    with pytest.raises(DataError, match="A'w = 0"):
        weigh(source)
    result = weigh(source, lab__curvature=1e-9)
    assert result.items["weight"].to_list() == [0.0, 0.0]
    assert result.items["weight_share"].to_list() == [None, None]
    assert all(np.isnan(scheme.efficiency) for scheme in result.schemes.values())
    assert any("A'w = 0" in note for note in result.notes)
    assert [turning.point for turning in result.break_even.values()] == pytest.approx([3.0, 3.0, 3.0])
    assert (result.balanced_risk, result.sweep.risk_aversions.tolist()) == (0.0, [0.0])
