"""Several sources of welfare: reading them, the path between two, and which items are heavy under all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchwright.auditing.item_audit import audit_items
from benchwright.config import Config
from benchwright.errors import ConfigError, DataError, UsageError
from benchwright.mechanism.aggregation import ItemAggregation, evaluate_scheme, optimal_weights
from benchwright.mechanism.constraints import Constraints
from benchwright.mechanism.item_weights import weigh_items
from benchwright.mechanism.uncertainty import weight_uncertainty
from benchwright.mechanism.welfare_sources import (
    WelfarePath,
    WelfareSource,
    read_welfare_sources,
    robust_items,
    welfare_path,
)
from benchwright.simulate import Simulation, simulate_item_tables

ITEMS = pl.DataFrame({"task": ["a", "a", "b"], "doc_id": [0, 1, 0]})
relaxed = settings(deadline=None, max_examples=20)


def game(seed: int, m: int = 6) -> tuple[ItemAggregation, dict[str, np.ndarray]]:
    rng = np.random.default_rng(seed)
    model = ItemAggregation(
        rng.normal(1, 0.5, (m, 2)), np.zeros(m), risk_aversion=1.0, noise_variance=rng.uniform(0.5, 3, m)
    )
    return model, {name: rng.normal(0.5, 1, m) for name in ("first", "second", "third")}


def with_welfare(model: ItemAggregation, welfare: np.ndarray) -> ItemAggregation:
    return ItemAggregation(model.technology, welfare, risk_aversion=1.0, noise_variance=model.noise_variance)


@relaxed
@given(seed=st.integers(0, 2**32 - 1), bound=st.booleans())
def test_each_point_of_the_path_is_the_game_under_its_mixture(seed: int, bound: bool) -> None:
    model, welfare = game(seed)
    rule = Constraints() if bound else None
    uniform = np.ones(6)
    path = welfare_path(
        model,
        welfare["first"],
        welfare["second"],
        steps=5,
        others={"third": welfare["third"]},
        constraints=rule,
        schemes={"uniform": uniform},
    )
    assert path.points[::4] == ("0 second", "1 second")
    assert path.points[-1] == "third"
    assert path.mixture.tolist()[:-1] == [0, 0.25, 0.5, 0.75, 1]
    points = [(1 - t) * welfare["first"] + t * welfare["second"] for t in path.mixture[:-1]] + [welfare["third"]]
    for p, value in enumerate(points):
        one = with_welfare(model, value)
        np.testing.assert_allclose(path.shares[p], optimal_weights(one, rule).shares, rtol=1e-6, atol=1e-9)
        judged = evaluate_scheme(one, uniform)
        assert path.efficiency["uniform"][p] == pytest.approx(judged.efficiency)
        assert path.alignment["uniform"][p] == judged.alignment
    if not bound:  # v* is linear in w
        first, second = (optimal_weights(with_welfare(model, welfare[name])).weights for name in ("first", "second"))
        half = optimal_weights(with_welfare(model, points[2])).weights
        np.testing.assert_allclose(half, (first + second) / 2, rtol=1e-8, atol=1e-12)
    known = path.shares[~np.isnan(path.shares).all(axis=1)]
    for i, standing in enumerate(path.standing):
        kinds = {"heavy": (known[:, i] > 1 / 6 + 1e-9).all(), "light": (known[:, i] < 1 / 6 - 1e-9).all()}
        assert standing == ("depends" if not len(known) else next((k for k, v in kinds.items() if v), "depends"))


def test_robust_items_say_what_draws_say() -> None:
    model, welfare = game(4)
    path = welfare_path(model, welfare["first"], welfare["second"], names=("now", "then"), steps=3)
    plain = robust_items(path)
    assert plain.columns == ["item", "standing", "share_min", "share_max", "heavy_in_draws"]
    assert plain["heavy_in_draws"].null_count() == 6
    assert plain["item"].to_list() == [f"item {i}" for i in range(6)]
    np.testing.assert_allclose(plain["share_min"], path.shares.min(axis=0))
    one = with_welfare(model, welfare["first"])
    found = weight_uncertainty(one, iter([one] * 39), replicates=39)
    spread = found.spreads["optimum"]
    assert robust_items(path, spread=spread)["heavy_in_draws"].to_list() == spread.heavy.tolist()
    assert "from now to then" in str(path)
    assert json.loads(json.dumps(path.to_dict(), allow_nan=False))["points"] == ["0 then", "0.5 then", "1 then"]
    small = welfare_path(game(1, m=2)[0], [1, 1], [1, 0])
    with pytest.raises(UsageError, match="must be of the 2 items"):
        robust_items(small, spread=spread)


def test_points_of_a_long_path_have_names_of_their_own() -> None:
    model, welfare = game(1)
    path = welfare_path(model, welfare["first"], welfare["second"], steps=2001)
    assert len(set(path.points)) == 2001
    assert path.to_frame().height == 0
    assert path.points[1] == "0.0005 second"


def test_points_where_nothing_helps_are_left_out_and_counted() -> None:
    model = ItemAggregation([[1.0], [2.0], [1.5]], np.zeros(3), risk_aversion=1, noise_variance=np.ones(3))
    path = welfare_path(model, [1, 1, 0.5], [-1, -1, -1], steps=3, constraints=Constraints())
    assert path.helped.tolist() == [True, False, False]
    assert str(path).startswith("Weights from first to second, at the 1 of 3 points where some help: 1 items heavier")


def test_items_that_are_alike_have_no_standing() -> None:
    for m in (3, 7, 49):
        model = ItemAggregation(np.full((m, 1), 0.37), np.zeros(m), risk_aversion=1, noise_variance=np.full(m, 0.7))
        path = welfare_path(model, np.full(m, 1.3), np.full(m, 0.7), steps=5, constraints=Constraints())
        assert set(path.standing) == {"depends"}


def test_where_nothing_helps_no_item_is_robust() -> None:
    model, _ = game(1)
    path = welfare_path(model, np.full(6, -1.0), np.full(6, -2.0), steps=2, constraints=Constraints())
    assert np.isnan(path.shares).all()
    assert set(path.standing) == {"depends"}
    assert robust_items(path)["share_min"].null_count() == 6
    assert path.to_frame().height == 0


def test_a_source_is_read_with_its_sign_and_neutral_point() -> None:
    frame = pl.DataFrame({"task": ["b", "a", "a", "c"], "doc_id": [0, 1, 0, 9], "value": [5, 1, 3, 7]})
    assert WelfareSource(frame, -1, 2.0).welfare(ITEMS).tolist() == [-1.0, 1.0, -3.0]
    assert WelfareSource(frame).welfare(ITEMS).tolist() == [3.0, 1.0, 5.0]
    holes = frame.with_columns(value=pl.when(pl.col("task") != "b").then(pl.col("value").cast(pl.Float64)))
    with pytest.raises(DataError, match="welfare source survey lacks 1 of the 3 items") as caught:
        WelfareSource(holes).welfare(ITEMS, name="survey")
    assert [fault.reason for fault in caught.value.faults] == ["no value for ('b', 0)"]
    with pytest.raises(DataError, match="does not share item ids"):
        WelfareSource(frame).welfare(ITEMS.with_columns(pl.col("doc_id").cast(pl.String)))


@pytest.mark.parametrize(
    ("frame", "options", "message"),
    [
        (ITEMS, {}, "it lacks value"),
        (ITEMS.with_columns(value=pl.lit("x")), {}, "must hold numbers in value"),
        (ITEMS.with_columns(value=1.0), {"sign": 2}, "`sign` must be 1 or -1, got 2"),
        (ITEMS.with_columns(value=1.0), {"neutral": float("nan")}, "`neutral` must be finite"),
        (pl.concat([ITEMS, ITEMS]).with_columns(value=1.0), {}, r"has the item \('a', 0\) twice"),
    ],
)
def test_a_source_that_cannot_be_used_is_an_error(frame: pl.DataFrame, options: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        WelfareSource(frame, **options)


def test_bad_paths_are_errors() -> None:
    model, welfare = game(1)
    ends = welfare["first"], welfare["second"]
    for options, message in (
        ({"steps": 1}, "`steps` must be at least 2"),
        ({"others": {"1 second": welfare["third"]}}, "must not use the name '1 second'"),
        ({"others": {"third": [1.0]}}, "third"),
        ({"constraints": Constraints(max_share=0.1)}, "clash"),
    ):
        with pytest.raises(UsageError, match=message):
            welfare_path(model, *ends, **options)  # type: ignore[arg-type]


def configured(**entry: Any) -> Config:
    return Config().replace({"welfare_sources.survey": entry}, source="test")


def test_a_configuration_names_files(tmp_path: Path) -> None:
    csv, parquet = tmp_path / "values.csv", tmp_path / "values.parquet"
    csv.write_text("task,doc_id,value\na,0,1.5\na,1,2\n", encoding="utf-8")
    pl.DataFrame({"task": ["a"], "doc_id": [0], "worth": [4.0]}).write_parquet(parquet)
    chosen = configured(file=str(csv), sign=-1, neutral=1).replace(
        {"welfare_sources.other": {"file": str(parquet), "column": "worth"}}, source="--set"
    )
    found = read_welfare_sources(chosen.welfare_sources)
    assert found["survey"].welfare(ITEMS.head(2)).tolist() == [-0.5, -1.0]
    assert found["other"].frame["value"].to_list() == [4.0]
    rows = {row.key: row for row in chosen.assumptions()}
    assert rows["welfare_sources.survey"].value == f"-1 * (value of {csv} - 1)"
    assert rows["welfare_sources.other"].source == "--set"
    csv.write_text("task,doc_id,value\na,0,much\n", encoding="utf-8")
    gone = configured(file=str(csv)).replace({"welfare_sources.lost": {"file": "nowhere.csv"}}, source="test")
    with pytest.raises(DataError) as caught:
        read_welfare_sources(gone.welfare_sources)
    assert len(caught.value.faults) == 2


@pytest.mark.parametrize(
    ("name", "entry", "message"),
    [
        ("survey", 3, "must be { file = TEXT"),
        ("survey", {"sign": 1}, "must be { file = TEXT"),
        ("survey", {"file": "x.csv", "sign": 2}, "sign must be one of 1, -1, got 2"),
        ("survey", {"file": "x.csv", "neutrl": 2}, "unknown key in welfare_sources.survey: `neutrl`"),
        ("automation", {"file": "x.csv"}, "the name 'automation'"),
        ("<b>", {"file": "x.csv"}, "the name '<b>'"),
    ],
)
def test_a_configured_source_that_is_wrong_is_named(name: str, entry: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Config().replace({f"welfare_sources.{name}": entry}, source="test")


def test_weights_come_with_the_path_from_automation_to_augmentation() -> None:
    config = Config().replace({"resampling.replicates": 100, "published.draws": 39}, source="test")
    tables = simulate_item_tables(Simulation(items_per_task=5, replicates=5, seed=2))
    audit = audit_items(tables, config)
    plain = weigh_items(audit, config)
    extra = plain.items.select("task", "doc_id", value=pl.col("w_aug") - pl.col("w_auto"))
    result = weigh_items(audit, config, sources={"gap": WelfareSource(extra)})
    path = result.path
    assert isinstance(path, WelfarePath)
    assert path.points[-1] == "gap"
    assert len(path.points) == len(plain.path.points) + 1
    np.testing.assert_allclose(path.shares[0], result.published.shares, rtol=1e-6, atol=1e-9)
    with pytest.raises(DataError, match="welfare source gap lacks 1 of"):
        weigh_items(audit, config, sources={"gap": WelfareSource(extra.head(-1))})
