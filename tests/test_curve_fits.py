"""Fitted effort curves: known answers, theorems, an independent reference, bounds and bad input."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import special, stats
from scipy.optimize import minimize

from benchwright._check import FloatArray
from benchwright.curves import _fit
from benchwright.curves.fit import fit_curves
from benchwright.curves.form import OWN, SHARED, CurveForm
from benchwright.curves.laws import LAWS
from benchwright.curves.reading import read_effort_scores
from benchwright.curves.scores import EffortScores
from benchwright.errors import DataError, UsageError

STEPS = np.array([0.0, 10, 30, 100, 300, 1000, 3000, 10_000, 25_000])
SCOPES = [(low, high, beta) for low in (OWN, SHARED, 0.1) for high in (OWN, SHARED, 0.9) for beta in (OWN, SHARED, 1.0)]
TRUTH = {
    "generalised-power-law": {"alpha": [-5.0, -6.0, -4.0], "beta": [0.8, 1.0, 0.6]},
    "saturating-exponential": {"rate": [1e-2, 3e-3, 1e-3]},
    "shifted-power-law": {"scale": [100.0, 300.0, 30.0], "exponent": [0.7, 1.2, 0.5]},
}


def truth(law: str, lower: Any = (0.05, 0.2, 0.1), upper: Any = (0.5, 0.8, 0.6)) -> dict[str, FloatArray]:
    named = {**TRUTH[law], "lower": lower, "upper": upper}
    return {name: np.array(values) for name, values in named.items()}


def table(scores: FloatArray, *, effort: FloatArray = STEPS, **columns: Any) -> EffortScores:
    """The scores (n, K) as a table."""
    n, k = scores.shape
    columns = {name: np.broadcast_to(value, (n, k)).ravel() for name, value in columns.items()}
    names = tuple(f"m{i}" for i in range(n))
    return EffortScores(names, np.repeat(np.arange(n), k), np.tile(effort, n), scores.ravel(), **columns)


def exact(law: str = "generalised-power-law", **bounds: Any) -> FloatArray:
    """Scores without noise."""
    return CurveForm(law).score(truth(law, **bounds), np.arange(3)[:, None], STEPS)


def noisy(seed: int, items: int = 1000) -> EffortScores:
    return table(np.random.default_rng(seed).binomial(items, exact()) / items, items=items)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("upper", [OWN, 0.9])
def test_derivatives_are_those_of_the_curve(law: str, upper: Any) -> None:
    form = CurveForm(law, lower=OWN, upper=upper)
    model, x, q = form.model, form.rule.scale(STEPS), form.pack(truth(law))
    slope = model.value(x, q)[1]
    for j in range(q.shape[-1]):
        shift = 1e-6 * np.eye(q.shape[-1])[j]
        numeric = (model.value(x, q + shift)[0] - model.value(x, q - shift)[0]) / 2e-6
        assert slope[..., j] == pytest.approx(numeric, abs=1e-7)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("noise", [{"items": 10**6}, {"stderr": 1e-3}])
def test_exact_scores_give_the_parameters_back(law: str, noise: dict[str, float]) -> None:
    fits = fit_curves(table(exact(law), **noise), law=law)
    assert fits.converged.all()
    assert fits.left_out == {}
    for name, value in truth(law).items():
        assert fits.parameters[name] == pytest.approx(value, rel=2e-3)
    assert fits.score(np.arange(3)[:, None], STEPS) == pytest.approx(exact(law), abs=1e-5)
    assert fits.deviance == pytest.approx(0, abs=1e-3)


@pytest.mark.parametrize(("lower", "upper", "beta"), SCOPES)
def test_parameters_keep_their_scope_and_wider_scopes_lose_likelihood(lower: Any, upper: Any, beta: Any) -> None:
    scores = noisy(5)
    fits = fit_curves(scores, lower=lower, upper=upper, beta=beta)
    for name, scope in {"lower": lower, "upper": upper, "beta": beta}.items():
        if scope != OWN:
            assert np.ptp(fits.parameters[name]) == pytest.approx(0, abs=1e-12)
        if isinstance(scope, float):
            assert fits.parameters[name] == pytest.approx(scope)
    assert fits.n_parameters == 3 * (1 + [lower, upper, beta].count(OWN)) + [lower, upper, beta].count(SHARED)
    assert fits.log_likelihood <= fit_curves(scores).log_likelihood + 1e-6


def lost_likelihood(p: FloatArray, scopes: tuple[Any, ...], scores: EffortScores, n: int) -> float:
    """Half the deviance written out on its own: alphas, then beta, lower and upper, one or n of each."""
    alpha, rest = p[:n], list(p[n:])
    value = {}
    for name, scope in zip(("beta", "lower", "upper"), scopes, strict=True):
        size = n if scope == OWN else 1
        value[name] = np.resize([rest.pop(0) for _ in range(size)], n)
    who, m = scores.model, scores.items
    level = special.expit(alpha[who] + value["beta"][who] * np.log1p(scores.effort))
    v = np.clip(value["lower"][who] + (value["upper"] - value["lower"])[who] * level, 1e-9, 1 - 1e-9)
    return float(m @ (special.rel_entr(scores.score, v) + special.rel_entr(1 - scores.score, 1 - v)))


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("scopes", [(OWN, OWN, OWN), (SHARED, OWN, OWN), (SHARED, SHARED, SHARED), (OWN, SHARED, OWN)])
def test_scipy_finds_no_better_likelihood(scopes: tuple[Any, ...], seed: int) -> None:
    scores = noisy(seed)
    beta, lower, upper = scopes
    fits = fit_curves(scores, beta=beta, lower=lower, upper=upper)
    ours = float(fits.deviance.sum()) / 2
    sizes = [3 if scope == OWN else 1 for scope in scopes]
    found = np.inf
    for half in (5.0, 6.5):
        begin = np.concatenate([[-0.8 * half] * 3, [0.8] * sizes[0], [0.1] * sizes[1], [0.7] * sizes[2]])
        box = [(-50, 50)] * 3 + [(1e-4, 10)] * sizes[0] + [(0, 1)] * (sizes[1] + sizes[2])
        done = minimize(
            lost_likelihood, begin, (scopes, scores, 3), "SLSQP", bounds=box, options={"maxiter": 2000, "ftol": 1e-12}
        )
        found = min(found, float(done.fun))
    assert ours <= found + 1e-3
    assert found <= ours + 0.1


def test_the_score_vector_vanishes_at_the_fit() -> None:
    fits = fit_curves(noisy(3), lower=SHARED)
    form, seen = fits.form, fits.observations
    q, model = form.pack(fits.parameters)[None], form.model
    data = _fit.Data(form.rule.scale(seen.effort)[None], seen.score[None], seen.trials[None], seen.precision[None])
    information, score = _fit._normal(data, *model.value(data.x, q))
    size = np.sqrt(np.einsum("gnii->gni", information))
    inside = np.abs(score / size)[..., ~model.shared]
    assert inside.max() < 1e-2
    assert abs(score[..., 2].sum()) / size[..., 2].max() < 1e-2


def test_models_fitted_together_are_those_fitted_alone() -> None:
    scores = noisy(4)
    together = fit_curves(scores)
    for i, name in enumerate(together.models):
        alone = fit_curves(scores.select([name]))
        assert alone.deviance[0] == pytest.approx(together.deviance[i], abs=1e-5)
    backwards = fit_curves(scores.select(scores.models[::-1]), lower=SHARED)
    assert backwards.log_likelihood == pytest.approx(fit_curves(scores, lower=SHARED).log_likelihood, abs=1e-5)


def test_likelihood_is_that_of_the_counts() -> None:
    fits = fit_curves(noisy(6, items=200))
    seen = fits.observations
    curve = fits.score(np.arange(3)[:, None], seen.effort)
    told = stats.binom.logpmf(np.round(200 * seen.score), 200, curve).sum()
    assert fits.log_likelihood == pytest.approx(told, abs=1e-6)
    assert fits.aic == pytest.approx(2 * 12 - 2 * told)
    assert fits.bic == pytest.approx(12 * np.log(27) - 2 * told)


def test_likelihood_is_that_of_the_standard_errors() -> None:
    scores = np.clip(exact() + np.random.default_rng(7).normal(0, 0.01, (3, 9)), 0, 1)
    fits = fit_curves(table(scores, stderr=0.01))
    assert set(fits.observations.likelihood) == {"stderr"}
    curve = fits.score(np.arange(3)[:, None], STEPS)
    assert fits.log_likelihood == pytest.approx(stats.norm.logpdf(scores, curve, 0.01).sum(), abs=1e-6)


def test_goodness_of_fit_names_the_score_that_is_off() -> None:
    scores = exact()
    scores[1, 4] += 0.1
    fits = fit_curves(table(scores, items=1000))
    assert fits.worst_effort[1] == STEPS[4]
    assert fits.p_value[1] < 1e-3 < fits.p_value[0]
    assert any(note.startswith("poor fits") and note.endswith("m1") for note in fits.notes)
    assert fits.dispersion[1] == pytest.approx(fits.deviance[1] / 5)
    assert fits.dispersion[0] == 1


def test_bounds_are_reached_and_said() -> None:
    scores = exact(lower=(0.0, 0.0, 0.0), upper=(1.0, 1.0, 1.0))
    fits = fit_curves(table(scores, items=10**5))
    assert fits.parameters["lower"] == pytest.approx(0, abs=1e-3)
    assert fits.parameters["upper"] == pytest.approx(1, abs=1e-2)
    above = table(np.clip(scores * 1.2, 0, 1), items=10**5)
    assert "upper" in fit_curves(above, lower=0.0, beta=0.8).at_bound["m0"]


def test_flat_scores_have_a_flat_curve_at_their_mean() -> None:
    rng = np.random.default_rng(8)
    scores = np.vstack([exact()[0], rng.binomial(1000, 0.3, 9) / 1000])
    fits = fit_curves(table(scores, items=1000))
    assert fits.flat.tolist() == [False, True]
    assert fits.score(1, STEPS) == pytest.approx(scores[1].mean(), abs=1e-5)
    assert fits.n_parameters == 5
    assert fits.dof.tolist() == [5, 8]
    assert (fits.parameters["upper"] > fits.parameters["lower"]).all()
    assert any("no rise" in note for note in fits.notes)
    shared = fit_curves(table(scores, items=1000), lower=SHARED)
    assert shared.score(1, STEPS) == pytest.approx(scores[1].mean(), abs=0.03)


def test_what_becomes_of_falling_models() -> None:
    falling = table(np.vstack([exact()[0], exact()[0][::-1]]), items=1000)
    fits = fit_curves(falling)
    assert fits.models == ("m0",)
    assert "falls with effort, from 0.4" in fits.left_out["m1"]
    kept = fit_curves(falling, falling="keep")
    assert kept.flat.tolist() == [False, True]
    with pytest.raises(DataError, match="m1: its score falls"):
        fit_curves(falling, falling="error")
    with pytest.raises(DataError, match="no model can have a curve"):
        fit_curves(falling.select(["m1"]))


def test_standard_errors_of_whole_items_are_read_as_counts() -> None:
    scores = np.round(exact() * 1319) / 1319
    scores[0, 0] = 0.0
    stderr = np.sqrt(scores * (1 - scores) / 1318)
    fits = fit_curves(table(scores, stderr=stderr))
    assert set(fits.observations.likelihood) == {"binomial"}
    assert fits.observations.trials.max() == 1319
    assert any("1,319 items" in note for note in fits.notes)
    with pytest.raises(DataError, match="no noise is known for m0 at effort 0: its standard error is 0"):
        fit_curves(table(scores, stderr=stderr), likelihood="stderr")
    stderr[1, 2] *= 1.1
    with pytest.raises(DataError, match="no noise is known for m0 at effort 0"):
        fit_curves(table(scores, stderr=stderr))


def test_repeats_count_as_measurements() -> None:
    once, twice = noisy(9), noisy(9)
    twice = EffortScores(
        once.models,
        np.tile(once.model, 2),
        np.tile(once.effort, 2),
        np.tile(once.score, 2),
        items=np.tile(once.items, 2),
    )
    for name, value in fit_curves(once).parameters.items():
        assert fit_curves(twice).parameters[name] == pytest.approx(value, rel=1e-2)


def test_too_few_efforts_are_left_out_with_the_reason() -> None:
    scores = noisy(10)
    few = (scores.model != 1) | (scores.effort < 50)
    columns = (scores.model[few], scores.effort[few], scores.score[few])
    short = EffortScores(scores.models, *columns, items=scores.items[few])
    fits = fit_curves(short)
    assert fits.models == ("m0", "m2")
    assert fits.left_out == {"m1": "3 distinct effort(s) for 4 parameters of its own"}
    assert fit_curves(short, lower=SHARED).models == scores.models
    with pytest.raises(DataError, match="no model can have a curve"):
        fit_curves(EffortScores(("a",), [0, 0], [5.0, 5.0], [0.1, 0.2], items=[100, 100]))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"law": "logistic"}, "`law` must be one of generalised-power-law"),
        ({"lower": "own"}, "`lower` must be 'per-model', 'shared' or a number"),
        ({"lower": 0.5, "upper": 0.4}, "`lower` must be below `upper`"),
        ({"upper": 1.2}, "0 <= L < U <= 1"),
        ({"beta": -1.0}, "`beta` must lie in"),
        ({"beta": 1.0, "law": "saturating-exponential"}, "`beta` belongs to the generalised power law"),
        ({"likelihood": "poisson"}, "`likelihood` must be one of"),
        ({"falling": "drop"}, "`falling` must be one of"),
    ],
)
def test_wrong_settings_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        fit_curves(noisy(1), **settings)


def test_scores_beyond_given_bounds() -> None:
    with pytest.raises(DataError, match=r"m1 scores .* standard errors above `upper` = 0.6"):
        fit_curves(noisy(1), upper=0.6)
    fits = fit_curves(noisy(1), lower=0.15)
    assert any("below `lower` = 0.15" in note for note in fits.notes)
    high = fit_curves(noisy(1), lower=0.55)
    assert high.parameters["lower"] == pytest.approx(0.55)
    assert (high.parameters["upper"] > 0.55).all()
    with pytest.raises(DataError, match="the number of items is unknown for m0 at effort 0"):
        fit_curves(table(exact(), stderr=0.01), likelihood="binomial")
    with pytest.raises(DataError, match="not stated"):
        fit_curves(table(exact()))


def test_the_result_can_be_shown_and_stored() -> None:
    fits = fit_curves(noisy(1))
    assert fits.to_frame().height == 3
    assert json.loads(json.dumps(fits.to_dict()))["law"] == "generalised-power-law"
    assert "log-likelihood" in str(fits)


def test_real_trajectories(shared: Path) -> None:
    source = shared / "data" / "trajectories" / "ttt-emergence" / "trajectories_with_step0.csv"
    scores = read_effort_scores(source, task="gsm8k", metric="exact_match", filter="flexible-extract")
    fits = fit_curves(scores)
    assert set(fits.left_out) == {"openllama-7b", "qwen-1.5-0.5b", "ziya2-13b-base"}
    assert any("1,319 items" in note for note in fits.notes)
    assert fits.converged.all()
    names = [name for name, flat in zip(fits.models, fits.flat, strict=True) if flat]
    assert names == ["falcon-11b", "pythia-160m", "pythia-70m"]
    assert fits.log_likelihood == pytest.approx(-2572.5, abs=1)
    subjects = fit_curves(read_effort_scores(source, task="mmlu", metric="acc"))
    assert set(subjects.observations.likelihood) == {"stderr"}
    assert set(subjects.left_out) == {"gemma-7b", "internlm-7b", "pythia-410m", "pythia-70m", "stablelm-2-1.6b"}
