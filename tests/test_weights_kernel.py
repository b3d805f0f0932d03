"""The kernels of the aggregation game against their dense twin, the hermitian pseudo-inverse."""

from __future__ import annotations

from math import isnan

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchwright._check import FloatArray
from benchwright.mechanism import _weights as kernel

TOLERANCE = kernel.RANK_TOLERANCE
KINDS = ("random", "low rank", "duplicates", "dead items", "graded noise", "no noise")


def dense(x: kernel.Factors, r: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """M, Sigma and pinv(M + r Sigma) M w, all m x m."""
    M = x.A @ x.half @ x.half.T @ x.A.T
    Sigma = np.diag(x.d) + x.F @ x.F.T
    return M, Sigma, np.linalg.pinv(M + r * Sigma, rcond=TOLERANCE, hermitian=True) @ (M @ x.w)


def spectrum(H: FloatArray) -> FloatArray:
    """The eigenvalues that count as non-zero."""
    values = np.linalg.eigvalsh(H)
    return values[values > TOLERANCE * values[-1]]


def instance(rng: np.random.Generator, kind: str, m: int, n: int, q: int) -> kernel.Factors:
    """A random game; ``kind`` says what is wrong with it."""
    A, F = rng.normal(size=(m, n)), rng.normal(size=(m, q))
    d, w = rng.uniform(0.1, 1, m), rng.normal(size=m)
    if kind == "low rank":
        A[:, -1] = A[:, 0]
        d[rng.random(m) < 0.5] = 0
    elif kind == "duplicates":
        A[m // 2 :], F[m // 2 :] = A[: m - m // 2], F[: m - m // 2]
        d[rng.random(m) < 0.7] = 0
    elif kind == "dead items":
        dead = rng.random(m) < 0.4
        A[dead], F[dead], d[dead] = 0, 0, 0
    elif kind == "graded noise":
        d = 10.0 ** rng.uniform(-9, 0, m)
    elif kind == "no noise":
        d[:] = 0
    dollars = 10.0 ** rng.integers(-8, 1)  # slopes are as small as 1e-9 and curvatures follow their square
    root = rng.normal(size=(n, n))
    C = (root @ root.T + 0.1 * np.eye(n)) * dollars**2
    return kernel.Factors(A * dollars, F, d, w, kernel.inverse_root(C, n))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("r", [0.0, 0.01, 1.0, 100.0])
def test_weights_equal_the_dense_pseudo_inverse(kind: str, r: float) -> None:
    rng = np.random.default_rng(KINDS.index(kind))
    compared = 0
    for m in (1, 2, 3, 7, 20, 60, 300):
        for n, q in ((1, 0), (1, 2), (3, 0), (3, 4), (6, 1)):
            x = instance(rng, kind, m, n, q)
            M, Sigma, v = dense(x, r)
            values = spectrum(M + r * Sigma)
            if values.size and values[-1] > 1e6 * values[0]:
                continue
            compared += 1
            got = kernel.solve(x, r)
            assert np.linalg.norm(got.weights - v) <= 1e-8 * np.linalg.norm(v) + 1e-13
    assert compared >= 10


@settings(deadline=None, max_examples=150)
@given(
    seed=st.integers(0, 2**32 - 1),
    kind=st.sampled_from(KINDS),
    m=st.integers(1, 25),
    n=st.integers(1, 5),
    q=st.integers(0, 4),
    r=st.sampled_from([0.0, 0.1, 3.0]),
)
def test_bound_null_space_and_split_agree_with_dense(seed: int, kind: str, m: int, n: int, q: int, r: float) -> None:
    x = instance(np.random.default_rng(seed), kind, m, n, q)
    M, Sigma, v = dense(x, r)
    H = M + r * Sigma
    values = spectrum(H)
    got = kernel.solve(x, r)
    if values.size == 0:
        assert isnan(got.condition_bound) or got.condition_bound >= 1
        assert not got.weights.any()
        return
    if values[-1] > 1e6 * values[0]:
        return
    assert got.condition_bound >= values[-1] / values[0] * (1 - 1e-8)
    _, axes = np.linalg.eigh(H)
    null = axes[:, : m - values.size]
    in_null = np.square(null).sum(axis=1)
    assert set(np.flatnonzero(in_null > 1e-6)) <= set(got.undetermined.tolist())
    assert set(got.undetermined.tolist()) <= set(np.flatnonzero(in_null > 1e-10))
    surplus, misdirection, risk = kernel.split_surplus(x, r, kernel.accumulate(x))
    best = float(x.w @ M @ v) / 2
    scale = float(x.w @ x.w * np.linalg.norm(M))
    assert surplus == pytest.approx(best, rel=1e-7, abs=1e-9 * scale)
    assert misdirection == pytest.approx(float((x.w - v) @ M @ (x.w - v)) / 2, rel=1e-7, abs=1e-9 * scale)
    assert risk == pytest.approx(r * float(v @ Sigma @ v) / 2, rel=1e-7, abs=1e-9 * scale)


def test_blocks_do_not_change_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    x = instance(np.random.default_rng(5), "random", 101, 3, 2)
    whole = kernel.solve(x, 1.0).weights
    monkeypatch.setattr(kernel, "BLOCK_ROWS", 7)
    np.testing.assert_allclose(kernel.solve(x, 1.0).weights, whole, rtol=1e-11)


def test_orthogonal_path_takes_over_where_normal_equations_lose_digits() -> None:
    rng = np.random.default_rng(8)
    A = rng.normal(size=(6, 4))
    x = kernel.Factors(A, np.zeros((6, 0)), np.array([1e-9, 1e-5, 1e-2, 1, 1, 1]), A[:, 0], np.eye(4))
    got = kernel.solve(x, 1.0)
    assert got.method == "orthogonal"
    np.testing.assert_allclose(got.weights, dense(x, 1.0)[2], rtol=1e-9)


def test_residual_is_that_of_the_definition() -> None:
    x = instance(np.random.default_rng(9), "random", 30, 3, 2)
    M, Sigma, v = dense(x, 2.0)
    moved = v + 0.01
    residual = (M + 2.0 * Sigma) @ moved - M @ x.w
    expected = np.linalg.norm(residual) / np.linalg.norm(M @ x.w)
    assert kernel.relative_residual(x, 2.0, moved) == pytest.approx(expected, rel=1e-10)
    assert kernel.relative_residual(x, 2.0, v) < 1e-12


@pytest.mark.parametrize(("d", "q", "rank"), [([1, 1, 1, 1], 0, 4), ([0, 0, 0, 1], 2, 3), ([0, 0, 0, 0], 0, 0)])
def test_noise_rank_counts_variances_and_factors(d: list[float], q: int, rank: int) -> None:
    rng = np.random.default_rng(2)
    F = rng.normal(size=(4, q))
    x = kernel.Factors(np.ones((4, 1)), F, np.array(d, dtype=float), np.ones(4), np.eye(1))
    assert kernel.noise_rank(x, TOLERANCE) == rank


def test_rounding_noise_in_a_zero_product_counts_as_zero() -> None:
    A = np.full((3, 1), 0.1)
    x = kernel.Factors(A, np.zeros((3, 0)), np.ones(3), np.array([0.1, 0.2, -0.3]), np.eye(1))
    assert not kernel.accumulate(x).target.any()
    assert not kernel.solve(x, 1.0).weights.any()


def test_inverse_root_is_one_for_a_full_matrix_and_a_number() -> None:
    C = np.array([[2.0, 0.5], [0.5, 1.0]])
    half = kernel.inverse_root(C, 2)
    np.testing.assert_allclose(half @ half.T @ C, np.eye(2), atol=1e-14)
    np.testing.assert_allclose(kernel.inverse_root(4.0, 2), np.eye(2) / 2)
