"""Draws of fitted effort curves: coverage, seeds, over-dispersion, bad input."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import special

from benchwright._check import FloatArray
from benchwright.curves import bootstrap
from benchwright.curves.bootstrap import bootstrap_curves
from benchwright.curves.fit import fit_curves
from benchwright.curves.form import SHARED
from benchwright.curves.results import CurveFits
from benchwright.curves.scores import EffortScores
from benchwright.errors import UsageError

STEPS = np.array([0.0, 10, 30, 100, 250, 500, 1000, 2500, 5000, 10_000, 15_000, 25_000])
TRUTH = {"alpha": -6.0, "beta": 1.0, "lower": 0.1, "upper": 0.6}
CURVE = 0.1 + 0.5 * special.expit(-6.0 + np.log1p(STEPS))
ITEMS, MODELS = 1000, 150


def replicas(scores: FloatArray, **columns: float) -> EffortScores:
    """Every row of ``scores`` as a model of its own: so many experiments with one truth."""
    n, k = scores.shape
    return EffortScores(
        tuple(f"m{i}" for i in range(n)),
        np.repeat(np.arange(n), k),
        np.tile(STEPS, n),
        scores.ravel(),
        **{name: np.full(n * k, value) for name, value in columns.items()},
    )


def counted(seed: int, dispersion: float = 1.0) -> CurveFits:
    """Fits to binomial scores, whose chances vary enough to multiply their variance by ``dispersion``."""
    rng = np.random.default_rng(seed)
    mass = (ITEMS - dispersion) / (dispersion - 1) if dispersion > 1 else np.inf
    chance = rng.beta(mass * CURVE, mass * (1 - CURVE), (MODELS, STEPS.size)) if dispersion > 1 else CURVE
    return fit_curves(replicas(rng.binomial(ITEMS, chance, (MODELS, STEPS.size)) / ITEMS, items=ITEMS))


def coverage(fits: CurveFits, dispersion: str) -> dict[str, float]:
    """Share of 90 % intervals that hold the truth, per parameter."""
    draws = bootstrap_curves(fits, rng=np.random.default_rng(3), replicates=100, dispersion=dispersion)
    return {
        name: float(np.mean((low <= TRUTH[name]) & (TRUTH[name] <= high)))
        for name, (low, high) in ((name, ends.T) for name, ends in draws.interval(0.9).items())
    }


def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    for share in coverage(counted(1), "stated").values():
        assert 0.82 <= share <= 0.97


def test_scaled_intervals_allow_for_scatter_beyond_the_noise_stated() -> None:
    fits = counted(2, dispersion=4.0)
    stated, scaled = coverage(fits, "stated"), coverage(fits, "scaled")
    for name in TRUTH:
        assert stated[name] < 0.75
        assert 0.80 <= scaled[name] <= 0.98


def test_intervals_from_standard_errors() -> None:
    rng = np.random.default_rng(4)
    scores = np.clip(CURVE + rng.normal(0, 0.012, (MODELS, STEPS.size)), 0, 1)
    for share in coverage(fit_curves(replicas(scores, stderr=0.012)), "stated").values():
        assert 0.82 <= share <= 0.97


def test_bands_hold_the_curve() -> None:
    fits = counted(5)
    draws = bootstrap_curves(fits, rng=np.random.default_rng(6), replicates=100)
    low, high = np.moveaxis(draws.score_interval(np.arange(MODELS)[:, None], STEPS, level=0.9), -1, 0)
    assert 0.85 <= np.mean((low <= CURVE) & (high >= CURVE)) <= 0.97


def test_batches_and_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    fits = fit_curves(counted(7).scores.select(["m0", "m1", "m2"]), lower=SHARED)
    said: list[str] = []
    whole = bootstrap_curves(fits, rng=np.random.default_rng(1), replicates=60, progress=said.append)
    assert said == ["curves fitted to 50 of 60 draws", "curves fitted to 60 of 60 draws"]
    monkeypatch.setattr(bootstrap, "AT_ONCE", 7)
    parts = bootstrap_curves(fits, rng=np.random.default_rng(1), replicates=60)
    for name, values in whole.parameters.items():
        assert parts.parameters[name] == pytest.approx(values, rel=1e-9)
    assert np.ptp(whole.parameters["lower"], axis=1) == pytest.approx(0, abs=1e-12)
    assert np.ptp(whole.parameters["lower"]) > 0


def test_draws_keep_the_bounds_of_a_score() -> None:
    scores = np.round(np.vstack([0.98 * special.expit(-5 + np.log1p(STEPS)), np.full(12, 0.2)]) * 50) / 50
    draws = bootstrap_curves(fit_curves(replicas(scores, items=50)), rng=np.random.default_rng(2), replicates=50)
    low, high = draws.parameters["lower"], draws.parameters["upper"]
    assert ((low >= 0) & (low < high) & (high <= 1)).all()
    assert (draws.parameters["beta"] > 0).all()
    level = draws.score(1, 100.0)
    assert level.shape == (50,)
    assert level.mean() == pytest.approx(0.2, abs=0.01)
    assert level.std() == pytest.approx(np.sqrt(0.16 / 600), rel=0.4)


def test_the_result_can_be_shown_and_stored() -> None:
    fits = fit_curves(counted(8).scores.select(["m0", "m1"]))
    draws = bootstrap_curves(fits, rng=np.random.default_rng(1), replicates=20)
    assert len(draws) == 20
    assert draws.to_frame().height == 8
    assert json.loads(json.dumps(draws.to_dict()))["replicates"] == 20
    assert "20 draws of 2 curves" in str(draws)


def test_wrong_use_is_refused() -> None:
    fits = fit_curves(counted(8).scores.select(["m0"]))
    rng = np.random.default_rng(1)
    with pytest.raises(UsageError, match="`replicates` must be at least 1"):
        bootstrap_curves(fits, rng=rng, replicates=0)
    with pytest.raises(UsageError, match="`dispersion` must be one of"):
        bootstrap_curves(fits, rng=rng, dispersion="wide")
    with pytest.raises(UsageError, match="`level` must lie between 0 and 1"):
        bootstrap_curves(fits, rng=rng, replicates=2).interval(95)
