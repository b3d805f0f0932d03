"""The aggregation game: theorems and invariances on random games, undefined cases, bad input."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchwright._check import FloatArray
from benchwright.errors import DataError, UsageError
from benchwright.mechanism.aggregation import (
    ItemAggregation,
    evaluate_scheme,
    optimal_weights,
    risk_sweep,
    seed_factor,
)
from benchwright.mechanism.calibration import calibrate_curvature

games = given(
    seed=st.integers(0, 2**32 - 1),
    m=st.integers(1, 12),
    n=st.integers(1, 4),
    q=st.integers(0, 3),
    r=st.sampled_from([0.0, 0.3, 5.0]),
)
relaxed = settings(deadline=None, max_examples=60)


def arrays(seed: int, m: int, n: int, q: int) -> dict[str, Any]:
    """A random regular game; half of the larger ones have items without own noise."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(n, n))
    d = rng.uniform(0.2, 1, m)
    if seed % 2 and m > 2:
        d[: m // 2] = 0
    return {
        "technology": rng.normal(size=(m, n)),
        "welfare": rng.normal(size=m),
        "noise_variance": d,
        "noise_factor": rng.normal(size=(m, q)),
        "curvature": root @ root.T + np.eye(n),
    }


def matrices(data: dict[str, Any]) -> tuple[FloatArray, FloatArray]:
    """M and Sigma."""
    A, F = data["technology"], data["noise_factor"]
    return A @ np.linalg.solve(data["curvature"], A.T), np.diag(data["noise_variance"]) + F @ F.T


def surplus(data: dict[str, Any], r: float, v: FloatArray) -> float:
    """S(v) from its definition."""
    M, Sigma = matrices(data)
    return float(data["welfare"] @ M @ v - v @ M @ v / 2 - r * v @ Sigma @ v / 2)


@relaxed
@games
def test_no_other_weights_have_more_surplus(seed: int, m: int, n: int, q: int, r: float) -> None:
    data = arrays(seed, m, n, q)
    result = optimal_weights(ItemAggregation(**data, risk_aversion=r))
    best, slack = surplus(data, r, result.weights), 1e-9 * (1 + result.first_best)
    assert result.surplus == pytest.approx(best, abs=slack)
    rng = np.random.default_rng(seed)
    for size in (1e-3, 0.1, 10.0):
        moved = result.weights + size * rng.normal(size=m)
        assert surplus(data, r, moved) <= best + slack * (1 + size**2)


@relaxed
@games
def test_surplus_decomposes_and_residual_proves_the_solve(seed: int, m: int, n: int, q: int, r: float) -> None:
    result = optimal_weights(ItemAggregation(**arrays(seed, m, n, q), risk_aversion=r))
    parts = result.first_best - result.misdirection - result.risk
    assert result.surplus == pytest.approx(parts, abs=1e-12 * (1 + result.first_best))
    assert min(result.misdirection, result.risk) >= 0
    assert result.residual < 1e-7
    assert result.condition_bound >= 1 - 1e-12


@relaxed
@games
def test_effort_is_the_labs_response(seed: int, m: int, n: int, q: int, r: float) -> None:
    data = arrays(seed, m, n, q)
    result = optimal_weights(ItemAggregation(**data, risk_aversion=r))
    effort = np.linalg.solve(data["curvature"], data["technology"].T @ result.weights)
    np.testing.assert_allclose(result.effort, effort, rtol=1e-9, atol=1e-11)


@relaxed
@games
def test_efficiency_is_the_ratio_of_surpluses(seed: int, m: int, n: int, q: int, r: float) -> None:
    data = arrays(seed, m, n, q)
    model = ItemAggregation(**data, risk_aversion=r)
    optimum = optimal_weights(model)
    u = np.random.default_rng(seed + 1).normal(size=m)
    result = evaluate_scheme(model, u, name="random")
    assert 0 <= result.efficiency <= 1
    assert result.surplus == pytest.approx(surplus(data, r, result.best_scale * u), abs=1e-9 * (1 + optimum.first_best))
    assert result.efficiency == pytest.approx(result.surplus / optimum.surplus, abs=1e-8)
    assert result.surplus == pytest.approx(result.first_best - result.misdirection - result.risk, abs=1e-9)
    assert result.lowers_welfare == (data["welfare"] @ matrices(data)[0] @ u < 0)
    assert evaluate_scheme(model, optimum.weights).efficiency == pytest.approx(1, abs=1e-8)
    assert evaluate_scheme(model, 7 * u, optimum=optimum).efficiency == pytest.approx(result.efficiency, abs=1e-8)


@relaxed
@games
def test_sweep_agrees_with_one_solve_at_a_time(seed: int, m: int, n: int, q: int, r: float) -> None:
    model = ItemAggregation(**arrays(seed, m, n, q), risk_aversion=r)
    levels = [0.0, 1e-14, 0.1, 1.0, 1e4]
    sweep = risk_sweep(model, levels, {"uniform": np.ones(m)})
    for i, level in enumerate(levels):
        there = model.with_risk_aversion(level)
        optimum = optimal_weights(there)
        scheme = evaluate_scheme(there, np.ones(m), optimum=optimum)
        close = {"rel": 1e-6, "abs": 1e-8 * (1 + optimum.first_best)}
        assert sweep.surplus[i] == pytest.approx(optimum.surplus, **close)
        assert sweep.misdirection[i] == pytest.approx(optimum.misdirection, **close)
        assert sweep.risk[i] == pytest.approx(optimum.risk, **close)
        assert sweep.efficiency["uniform"][i] == pytest.approx(scheme.efficiency, **close)


def test_no_incentive_has_value_where_no_axis_moves_welfare() -> None:
    model = ItemAggregation([[1.0], [1.0]], [1.0, -1.0], risk_aversion=1, noise_variance=[1, 1])
    result = optimal_weights(model)
    assert not result.weights.any()
    assert np.isnan(result.shares).all()
    assert "no incentive has value" in result.warnings[0]
    assert np.isnan(evaluate_scheme(model, [1, 0]).efficiency)
    assert np.isnan(risk_sweep(model, [0, 1], {"first": [1, 0]}).efficiency["first"]).all()


def test_a_direction_that_nothing_moves_has_efficiency_zero() -> None:
    model = ItemAggregation([[0.1], [0.1]], [1, 1], risk_aversion=1, noise_factor=[[0.3], [0.3]])
    result = evaluate_scheme(model, [0.7, -0.7])
    assert (result.efficiency, result.alignment, result.best_scale) == (0.0, 0, 0.0)


def test_shares_divide_by_the_sum_only_where_it_is_positive() -> None:
    positive = optimal_weights(ItemAggregation(np.eye(2), [3, -1], risk_aversion=0))
    np.testing.assert_allclose(positive.shares, [1.5, -0.5])
    negative = optimal_weights(ItemAggregation(np.eye(2), [1, -3], risk_aversion=0))
    np.testing.assert_allclose(negative.shares, [0.25, -0.75])


def test_hedges_and_negative_effort_are_reported() -> None:
    result = optimal_weights(ItemAggregation(np.eye(2), [1, -3], risk_aversion=0, names=("good", "bad")))
    assert result.negative_share == 0.5
    assert result.negative_effort_axes == (1,)
    assert any("negative weight on bad" in text for text in result.warnings)


def test_ill_conditioning_is_reported() -> None:
    data = {"technology": [[1.0], [1.0]], "welfare": [1, 1], "noise_variance": [1e-11, 1.0]}
    result = optimal_weights(ItemAggregation(**data, risk_aversion=1))
    assert result.condition_bound > 1e10
    assert any("ill-conditioned" in text for text in result.warnings)


def test_dependent_items_without_a_fixed_sum_are_named_together() -> None:
    model = ItemAggregation([[1.0], [2.0], [3.0]], [1, 1, 1], risk_aversion=0)
    result = optimal_weights(model)
    assert result.undetermined == (0, 1, 2)
    assert any("only combinations" in text for text in result.warnings)


def test_results_print_tabulate_and_serialise() -> None:
    model = ItemAggregation(np.eye(3), [1, 2, 0], risk_aversion=1, noise_variance=[1, 1, 0], names=("a", "b", "c"))
    optimum = optimal_weights(model)
    sweep = risk_sweep(model, [0, 1], {"uniform": [1, 1, 1], "first": [1, 0, 0]})
    assert optimum.to_frame().columns == ["item", "weight", "share", "negative", "undetermined"]
    assert sweep.to_frame().shape == (4, 6)
    for result in (optimum, sweep, evaluate_scheme(model, [1, 1, 1], name="uniform")):
        assert json.loads(json.dumps(result.to_dict(), allow_nan=False))
        assert str(result)
    assert optimum.names == ("a", "b", "c")
    undefined = evaluate_scheme(ItemAggregation([[1.0]], [0.0], risk_aversion=1), [1.0])
    assert undefined.to_dict()["efficiency"] is None


def test_the_callers_arrays_are_left_alone_and_shared() -> None:
    data = arrays(1, 5, 2, 1)
    kept = {key: value.copy() for key, value in data.items()}
    model = ItemAggregation(**data, risk_aversion=1)
    optimal_weights(model)
    assert model.with_risk_aversion(2).technology is model.technology is data["technology"]
    assert all(np.array_equal(data[key], kept[key]) for key in kept)


def test_from_matrices_gives_the_same_weights_as_factors() -> None:
    data = arrays(4, 8, 3, 2)
    factors = optimal_weights(ItemAggregation(**data, risk_aversion=2))
    dense = optimal_weights(ItemAggregation.from_matrices(*matrices(data), data["welfare"], risk_aversion=2))
    np.testing.assert_allclose(dense.weights, factors.weights, rtol=1e-8)
    assert dense.noise_rank == factors.noise_rank == 8


def test_uniform_calibration_spends_the_budget() -> None:
    A, w, d = np.array([[1.0, 0.2], [0.4, 2.0]]), np.array([1.0, 2.0]), np.array([0.5, 0.1])
    found = calibrate_curvature(A, w, noise_variance=d, risk_aversion=3, budget=5)
    assert found.rule == "uniform"
    model = ItemAggregation(A, w, risk_aversion=3, noise_variance=d, curvature=found.c0)
    scale = evaluate_scheme(model, [0.5, 0.5]).best_scale
    assert (A.T @ np.full(2, 0.5 * scale) / found.c0).sum() == pytest.approx(5)
    first_best = calibrate_curvature(A, w, risk_aversion=3, budget=5, rule="first-best")
    assert first_best.c0 == pytest.approx((A.T @ w).sum() / 5)


def test_calibration_without_an_answer_is_a_data_error() -> None:
    with pytest.raises(DataError, match="uniform mean cannot calibrate"):
        calibrate_curvature([[1.0]], [-1.0], risk_aversion=1, budget=1, rule="uniform")
    with pytest.raises(DataError, match="no effort has value"):
        calibrate_curvature([[1.0]], [0.0], risk_aversion=1, budget=1)


def test_seed_factor_is_half_the_sample_covariance() -> None:
    scores = np.random.default_rng(0).normal(size=(4, 6))
    F = seed_factor(scores)
    np.testing.assert_allclose(F @ F.T, np.cov(scores, rowvar=False), atol=1e-14)


GOOD: dict[str, Any] = {"technology": np.eye(2), "welfare": [1, 1], "risk_aversion": 1}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"risk_aversion": -1}, "`risk_aversion` must be"),
        ({"risk_aversion": np.nan}, "`risk_aversion` must be"),
        ({"technology": [1, 1]}, "`technology` must have 2 dimension"),
        ({"technology": np.zeros((0, 1)), "welfare": []}, "`technology` must have an item and an axis"),
        ({"technology": [[np.nan, 0], [0, 1]]}, "`technology` must be finite"),
        ({"welfare": [1, 1, 1]}, "`welfare` must have 2 rows"),
        ({"welfare": [1, np.inf]}, "`welfare` must be finite"),
        ({"noise_variance": [1, -1], "names": ("a", "b")}, "`noise_variance` must be >= 0, got -1 at b"),
        ({"noise_variance": [1]}, "`noise_variance` must have 2 rows"),
        ({"noise_factor": np.ones((3, 1))}, "`noise_factor` must have 2 rows"),
        ({"curvature": 0}, "`curvature` must be > 0"),
        ({"curvature": -np.eye(2)}, "`curvature` must be positive definite"),
        ({"curvature": [[1, 0.5], [0, 1]]}, "`curvature` must be symmetric"),
        ({"curvature": np.eye(3)}, "`curvature` must have shape"),
        ({"names": ("only one",)}, "`names` must hold 2"),
    ],
)
def test_bad_input_is_refused_by_name(change: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        ItemAggregation(**(GOOD | change))


def test_bad_matrices_and_arguments_are_refused() -> None:
    model = ItemAggregation(**GOOD)
    with pytest.raises(UsageError, match=r"`improvability` must be positive semidefinite.* -1"):
        ItemAggregation.from_matrices(np.diag([1, -1]), np.eye(2), [1, 1], risk_aversion=1)
    with pytest.raises(UsageError, match="`noise_covariance` must be positive semidefinite"):
        ItemAggregation.from_matrices(np.eye(2), [[1, 2], [2, 1]], [1, 1], risk_aversion=1)
    with pytest.raises(UsageError, match="`noise_covariance` must be symmetric"):
        ItemAggregation.from_matrices(np.eye(2), [[1, 0.5], [0, 1]], [1, 1], risk_aversion=1)
    with pytest.raises(UsageError, match="`rank_tolerance`"):
        optimal_weights(model, rank_tolerance=0)
    with pytest.raises(UsageError, match="`scheme` must have 2 rows"):
        evaluate_scheme(model, [1, 1, 1])
    with pytest.raises(UsageError, match="`optimum` must belong"):
        evaluate_scheme(model, [1, 1], optimum=optimal_weights(model.with_risk_aversion(2)))
    with pytest.raises(UsageError, match="`risk_aversions`"):
        risk_sweep(model, [1, -1], {})
    with pytest.raises(UsageError, match="`budget`"):
        calibrate_curvature([[1.0]], [1.0], risk_aversion=1, budget=0)
    with pytest.raises(UsageError, match="`rule`"):
        calibrate_curvature([[1.0]], [1.0], risk_aversion=1, budget=1, rule="best")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="2 seeds"):
        seed_factor([[1.0, 2.0]])
