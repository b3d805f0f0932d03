"""Published figures: the 149 items of olmes-audit, and the degenerate cases of C32."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from benchwright.mechanism.aggregation import (
    ItemAggregation,
    evaluate_scheme,
    optimal_weights,
    risk_sweep,
    seed_factor,
)
from benchwright.mechanism.calibration import calibrate_curvature
from benchwright.mechanism.constraints import Constraints

PRICES = {"beta_pt": 82.0, "beta_sft": 0.20, "beta_rl": 0.50}  # dollars a unit of effort
TOP_FIVE = sum(1 / rank for rank in range(1, 6))  # w_auto adds up ratings discounted by rank
BUDGET = 100_000.0


@pytest.fixture(scope="module")
def items(shared: Path) -> pl.DataFrame:
    audit = shared / "data" / "olmes-audit"
    keys = ["task", "doc_id"]
    tables = [pl.read_csv(audit / f"{name}.csv") for name in ("welfare", "cost", "noise")]
    joined = tables[0].join(tables[1], on=keys).join(tables[2], on=keys)
    return joined.drop_nulls(list(PRICES)).sort(keys)


@pytest.fixture(scope="module")
def golden(shared: Path) -> dict[str, Any]:
    return dict(json.loads((shared / "golden" / "weights-149.json").read_text()))


@pytest.fixture(scope="module")
def cases(shared: Path) -> Path:
    return shared / "cases" / "C32"


def published(items: pl.DataFrame, neutral: float) -> dict[str, np.ndarray]:
    slopes = items.select(PRICES.keys()).to_numpy()
    return {
        "technology": slopes / np.array(list(PRICES.values())),
        "welfare": items["w_auto"].to_numpy() / TOP_FIVE - neutral,
        "noise_variance": items["noise_sigma2"].to_numpy(),
    }


@pytest.mark.parametrize("neutral", [0, 3])
def test_published_items_reach_the_golden_figures(items: pl.DataFrame, golden: dict[str, Any], neutral: int) -> None:
    expected = golden[f"w_auto neutral {neutral}"]
    assert items.height == 149
    assert items.select("task", "doc_id").head(5).rows() == [tuple(row) for row in golden["first_items"]]
    data = published(items, neutral)
    calibration = calibrate_curvature(**data, risk_aversion=1, budget=BUDGET, rule="first-best")
    assert calibration.c0 == pytest.approx(expected["c0"], rel=1e-9)
    model = ItemAggregation(**data, risk_aversion=1, curvature=calibration.c0)
    uniform = np.ones(149)
    for r, figures in expected["by_r"].items():
        optimum = optimal_weights(model.with_risk_aversion(float(r)))
        scheme = evaluate_scheme(model.with_risk_aversion(float(r)), uniform, optimum=optimum)
        assert optimum.surplus == pytest.approx(figures["surplus_optimum"], rel=1e-9)
        assert optimum.first_best == pytest.approx(figures["first_best"], rel=1e-9)
        assert optimum.negative_share == pytest.approx(figures["negative_share"], abs=1e-12)
        np.testing.assert_allclose(optimum.weights[:5], figures["v_first5"], rtol=1e-7)
        assert scheme.efficiency == pytest.approx(figures["uniform_efficiency"], rel=1e-8)
        assert scheme.alignment == figures["uniform_alignment_sign"]
        assert scheme.lowers_welfare == (figures["uniform_alignment_sign"] < 0)
        assert optimum.residual < 1e-10
        assert optimum.efficiency == 1
        assert optimum.status == "optimal"
        published_weights = optimal_weights(model.with_risk_aversion(float(r)), Constraints(), optimum=optimum)
        assert published_weights.surplus == pytest.approx(figures["nonnegative_surplus"], rel=1e-5)
        assert np.count_nonzero(published_weights.weights) == figures["nonnegative_support"]
        assert published_weights.weights.min() == 0
        assert published_weights.status == "optimal"
        assert published_weights.residual <= 1e-8
    sweep = risk_sweep(model, [float(r) for r in expected["by_r"]], {"uniform": uniform})
    surpluses = [figures["surplus_optimum"] for figures in expected["by_r"].values()]
    np.testing.assert_allclose(sweep.surplus, surpluses, rtol=1e-9)


def test_uniform_calibration_falls_back_where_uniform_points_the_wrong_way(items: pl.DataFrame) -> None:
    calibration = calibrate_curvature(**published(items, 3), risk_aversion=1, budget=BUDGET)
    assert calibration.rule == "first-best"
    assert "uniform" in calibration.why


def load(cases: Path, name: str) -> dict[str, Any]:
    return dict(json.loads((cases / f"{name}.json").read_text()))


def from_case(case: dict[str, Any]) -> ItemAggregation:
    return ItemAggregation.from_matrices(case["M"], case["Sigma"], case["w"], risk_aversion=case["r"])


def test_duplicate_items_fix_only_their_sum(cases: Path) -> None:
    result = optimal_weights(from_case(load(cases, "duplicate_items")))
    np.testing.assert_allclose(result.weights, [1 / 3, 1 / 3], rtol=1e-10)
    assert result.singular
    assert result.undetermined == (0, 1)
    assert "item 0, item 1 is not determined: only their sum, 0.666667, is fixed" in result.warnings[0]


def test_dead_item_gets_zero_and_is_named(cases: Path) -> None:
    result = optimal_weights(from_case(load(cases, "dead_item")))
    assert result.weights[0] == pytest.approx(0.454545, abs=5e-7)
    assert result.weights[1] == 0
    assert result.undetermined == (1,)
    assert "the weight of item 1 is not determined" in result.warnings[0]


@pytest.mark.parametrize("build", ["factor", "matrices"])
def test_few_seeds_solve_and_warn_about_the_rank(cases: Path, build: str) -> None:
    case = load(cases, "few_seeds")
    F = seed_factor(case["seed_scores"])
    model = (
        ItemAggregation(np.eye(5), case["w"], risk_aversion=case["r"], noise_factor=F)
        if build == "factor"
        else ItemAggregation.from_matrices(case["M"], F @ F.T, case["w"], risk_aversion=case["r"])
    )
    result = optimal_weights(model)
    np.testing.assert_allclose(result.weights, [0.196226, 0.2, 0.203774, 0.196226, 0.2], atol=5e-7)
    assert result.noise_rank == 1
    assert not result.singular
    assert result.condition_bound == pytest.approx(1.06, rel=1e-9)
    assert any("rank(Sigma) = 1 < 5" in text and "shrinkage" in text for text in result.warnings)
