"""Numbers of a board: scores, standard errors and bootstrap draws against plain twins."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchwright._check import FloatArray
from benchwright.board import _board as kernel
from benchwright.board.uncertainty import trust_sampled


def drawn(seed: int, *, missing: float = 0.2, spans: bool = False) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    m, n = int(rng.integers(12, 40)), int(rng.integers(1, 6))
    tasks = np.sort(rng.integers(0, 3, m))
    tasks = np.unique(tasks, return_inverse=True)[1]
    values = rng.normal(0.2, 1.0, (m, n))
    values[rng.random((m, n)) < missing] = np.nan
    clusters = rng.integers(0, 8, m) + (0 if spans else 100 * tasks)
    return {"values": values, "tasks": tasks, "clusters": clusters, "weights": rng.exponential(size=m)}


def sums_of(case: dict[str, np.ndarray], *, clip: bool = False) -> tuple[kernel.Sums, kernel.Design]:
    design = kernel.sampling_design(case["clusters"], case["tasks"])
    known = (~np.isnan(case["values"])).astype(float)
    filled, v = np.nan_to_num(case["values"]), case["weights"]
    return kernel.unit_sums(filled, known, v, v, design, case["tasks"], clip=clip), design


def plain_scores(case: dict[str, np.ndarray], times: FloatArray, *, clip: bool) -> list[float]:
    """One model at a time, one item at a time."""
    scores = []
    for x in case["values"].T:
        tops, bottom = dict.fromkeys(case["tasks"], 0.0), 0.0
        for value, weight, task, count in zip(x, case["weights"], case["tasks"], times, strict=True):
            if not np.isnan(value):
                tops[task] += count * weight * value
                bottom += count * weight
        top = sum(max(t, 0.0) for t in tops.values()) if clip else sum(tops.values())
        scores.append(top / bottom if bottom > 0 else np.nan)
    return scores


@pytest.mark.parametrize("clip", [False, True])
@pytest.mark.parametrize("spans", [False, True])
@settings(max_examples=25, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10_000))
def test_scores_and_draws_equal_a_plain_twin(seed: int, spans: bool, clip: bool) -> None:
    case = drawn(seed, spans=spans)
    sums, design = sums_of(case, clip=clip)
    plain = plain_scores(case, np.ones(len(case["tasks"])), clip=clip)
    np.testing.assert_allclose(sums.scores, plain, rtol=1e-10)
    draws = kernel.bootstrap(sums, design, 70, np.random.default_rng(seed))
    counts = np.vstack(list(kernel._counts(design, 70, np.random.default_rng(seed)))).T
    assert counts.shape == (len(design.stratum), 70)
    size = design.sizes[design.stratum][:, None]
    counts = counts * size / np.maximum(size - 1, 1)
    for b in (0, 63, 64, 69):  # both sides of a block's edge
        twin = plain_scores(case, counts[design.unit, b], clip=clip)
        np.testing.assert_allclose(draws[b], twin, rtol=1e-9, atol=1e-12)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10_000), spans=st.booleans())
def test_units_and_strata(seed: int, spans: bool) -> None:
    case = drawn(seed, spans=spans)
    design = kernel.sampling_design(case["clusters"], case["tasks"])
    same = case["clusters"][:, None] == case["clusters"]
    assert (same == (design.unit[:, None] == design.unit)).all()
    assert (np.diff(design.stratum) >= 0).all()
    assert design.sizes.min() > 1 or len(design.stratum) == 1
    crossing = any(len({*case["tasks"][case["clusters"] == g]}) > 1 for g in case["clusters"])
    if crossing:
        assert design.stratum.max() == 0
    elif not design.pooled:
        assert (design.stratum[design.unit][:, None] == design.stratum[design.unit]).tolist() == (
            case["tasks"][:, None] == case["tasks"]
        ).tolist()


def test_plain_mean_has_the_textbook_standard_error() -> None:
    x = np.random.default_rng(1).normal(size=(30, 1))
    case = {"values": x, "tasks": np.zeros(30, int), "clusters": np.arange(30), "weights": np.ones(30)}
    sums, design = sums_of(case)
    z = kernel.deviations(sums, design)
    assert np.sqrt((z**2).sum()) == pytest.approx(x.std(ddof=1) / np.sqrt(30), rel=1e-12)


def test_strata_add_their_own_variances() -> None:
    rng = np.random.default_rng(2)
    tasks = np.repeat([0, 1], [12, 25])
    x = rng.normal(5.0 * tasks, 1.0)[:, None]
    case = {"values": x, "tasks": tasks, "clusters": np.arange(37), "weights": np.ones(37)}
    z = kernel.deviations(*sums_of(case))
    parts = [(n / 37) ** 2 * x[tasks == t].var(ddof=1) / n for t, n in enumerate((12, 25))]
    assert np.sqrt((z**2).sum()) == pytest.approx(np.sqrt(sum(parts)), rel=1e-12)


@pytest.mark.parametrize("spans", [False, True])
def test_draws_vary_as_the_formula_says(spans: bool) -> None:
    rng = np.random.default_rng(3)
    m = 400
    tasks = np.repeat(np.arange(4), 100)
    clusters = rng.integers(0, 60, m) + (0 if spans else 1000 * tasks)
    values = rng.random((m, 3)) + 0.3 * (clusters % 2)[:, None]
    values[rng.random(values.shape) < 0.2] = np.nan
    case = {"values": values, "tasks": tasks, "clusters": clusters, "weights": rng.exponential(size=m)}
    sums, design = sums_of(case)
    error = np.sqrt((kernel.deviations(sums, design) ** 2).sum(axis=0))
    draws = kernel.bootstrap(sums, design, 4000, rng)
    np.testing.assert_allclose(draws.std(axis=0), error, rtol=0.05)
    np.testing.assert_allclose(draws.mean(axis=0), sums.scores, atol=4 * error.max() / np.sqrt(4000) + 1e-3)


def test_two_halves_of_an_item_are_one_item_if_they_share_a_cluster() -> None:
    case = drawn(5, missing=0.0)
    m = len(case["tasks"])
    case["clusters"] = np.arange(m)
    whole, design = sums_of(case)
    split = {name: np.concatenate([array, array]) for name, array in case.items()}
    split["weights"] = split["weights"] / 2
    halves, other = sums_of(split)
    np.testing.assert_allclose(halves.scores, whole.scores)
    np.testing.assert_allclose(
        (kernel.deviations(halves, other) ** 2).sum(axis=0), (kernel.deviations(whole, design) ** 2).sum(axis=0)
    )


def test_a_third_is_chance_exactly() -> None:
    x = (np.array([[1.0], [0.0], [0.0]] * 7) - 1 / 3) / (1 - 1 / 3)
    case = {"values": x, "tasks": np.zeros(21, int), "clusters": np.arange(21), "weights": np.full(21, 0.1)}
    for clip in (False, True):
        assert sums_of(case, clip=clip)[0].scores[0] == 0.0


def test_tie_groups_agree_with_rank_intervals() -> None:
    rng = np.random.default_rng(6)
    levels = np.array([0.0, 0.0, 0.6, 0.6, 2.0])
    for _ in range(20):
        values = rng.normal(levels, 1.0, (60, 5)) + rng.normal(size=(60, 1))
        case = {
            "values": values,
            "tasks": np.zeros(60, int),
            "clusters": np.arange(60),
            "weights": rng.exponential(size=60),
        }
        sums, design = sums_of(case)
        trust = trust_sampled(sums, design, "item", rng=rng, confidence=0.95, replicates=400)
        score = sums.scores
        better = (score - score[:, None]) > trust.sets.critical * trust.pair
        assert (trust.sets.lo == 1 + better.sum(axis=1)).all()
        assert (trust.sets.hi == 5 - better.sum(axis=0)).all()
        groups = trust.tie_groups(score)
        best = int(score.argmax())
        assert groups[best] == 1
        assert {*np.flatnonzero(groups == 1)} == {*np.flatnonzero(~better[:, best])}


def test_rank_intervals_of_tied_models_in_clusters_hold_all_ranks() -> None:
    rng = np.random.default_rng(7)
    tasks, clusters = np.repeat([0, 1], 40), np.repeat(np.arange(20), 4)
    held = 0
    for _ in range(200):
        values = rng.normal(size=(80, 4)) + rng.normal(size=(20, 4))[clusters]
        values[rng.random(values.shape) < 0.1] = np.nan
        case = {"values": values, "tasks": tasks, "clusters": clusters, "weights": rng.exponential(size=80)}
        sums, design = sums_of(case)
        sets = trust_sampled(sums, design, "item", rng=rng, confidence=0.9, replicates=200).sets
        held += bool((sets.lo == 1).all() and (sets.hi == 4).all())
    assert held >= 168  # 0.9 of 200 less three standard errors of a share
