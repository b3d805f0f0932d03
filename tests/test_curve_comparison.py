"""Laws compared on held-out scores, curves without a law, and the test of a rise."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import isotonic_regression

from benchwright._check import FloatArray
from benchwright.curves import _isotonic
from benchwright.curves.comparison import compare_laws
from benchwright.curves.form import SHARED, CurveForm
from benchwright.curves.laws import LAWS
from benchwright.curves.monotone import monotone_curves
from benchwright.curves.reading import read_effort_scores
from benchwright.curves.scores import EffortScores
from benchwright.errors import DataError, UsageError

STEPS = np.array([0.0, 3, 10, 30, 100, 300, 1000, 3000, 10_000, 30_000])
N = 12


def drawn(law: str, seed: int, items: int = 20_000) -> EffortScores:
    """Scores of twelve models that follow a law."""
    rng = np.random.default_rng(seed)
    own = {
        "generalised-power-law": {"alpha": rng.uniform(-5, -3, N), "beta": rng.uniform(0.4, 0.7, N)},
        "saturating-exponential": {"rate": 10 ** rng.uniform(-3, -2, N)},
        "shifted-power-law": {"scale": rng.uniform(10, 50, N), "exponent": rng.uniform(0.2, 0.5, N)},
    }[law]
    parameters = own | {"lower": rng.uniform(0.1, 0.3, N), "upper": rng.uniform(0.6, 0.9, N)}
    curve = CurveForm(law).score(parameters, np.arange(N)[:, None], STEPS)
    return counts(rng.binomial(items, curve) / items, items)


def counts(scores: FloatArray, items: int) -> EffortScores:
    n, k = scores.shape
    names = tuple(f"m{i}" for i in range(n))
    return EffortScores(
        names, np.repeat(np.arange(n), k), np.tile(STEPS, n), scores.ravel(), items=np.full(n * k, items)
    )


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("predict", ["last", "between"])
def test_the_law_that_made_the_scores_predicts_them_best(law: str, predict: str) -> None:
    compared = compare_laws(drawn(law, 1), predict=predict)
    place = compared.names.index(law)
    assert compared.behind[place] <= 2 * max(compared.behind_stderr[place], 0.01)
    assert compared.standardised_error[place] < (5 if predict == "last" else 1.5)
    assert compared.behind[0] == 0
    assert (np.diff(compared.log_score) <= 0).all()


def test_held_out_scores_are_not_seen() -> None:
    scores = drawn("generalised-power-law", 2)
    spoilt = scores.score.copy()
    last = scores.effort >= 10_000
    spoilt[last] = np.clip(spoilt[last] + 0.05, 0, 1)
    changed = EffortScores(scores.models, scores.model, scores.effort, spoilt, items=scores.items)
    one, other = (compare_laws(table, forms={"law": CurveForm()}) for table in (scores, changed))
    assert other.error[0] == pytest.approx(0.05, abs=0.02)
    assert one.error[0] < 0.02


def test_forms_are_compared_by_name() -> None:
    forms = {"own": CurveForm(), "one lower": CurveForm(lower=SHARED), "none": None}
    compared = compare_laws(drawn("generalised-power-law", 3), forms=forms)
    assert set(compared.names) == set(forms)
    assert compared.n_scores == 2 * N
    assert json.loads(json.dumps(compared.to_dict()))["n_scores"] == 2 * N
    assert "24 held-out scores" in str(compared)


def test_who_takes_no_part_is_named() -> None:
    full = drawn("generalised-power-law", 4)
    few = (full.model != 0) | (full.effort < 100)
    falls = np.where((full.model == 1) & (full.effort > 1000), 0.0, full.score)
    columns = (full.model[few], full.effort[few], falls[few])
    compared = compare_laws(EffortScores(full.models, *columns, items=full.items[few]))
    assert compared.left_out["m0"] == "4 distinct effort(s), 6 needed"
    assert "falls with effort" in compared.left_out["m1"]
    assert len(compared.models) == N - 2


def test_wrong_use_is_refused() -> None:
    scores = drawn("generalised-power-law", 5)
    with pytest.raises(UsageError, match="`predict` must be one of"):
        compare_laws(scores, predict="first")
    with pytest.raises(UsageError, match="`held_out` must be at least 1"):
        compare_laws(scores, held_out=0)
    with pytest.raises(UsageError, match="`forms` must name"):
        compare_laws(scores, forms={})
    with pytest.raises(DataError, match="no model has 14 distinct efforts"):
        compare_laws(scores, held_out=10)


def test_curves_without_a_law() -> None:
    curves = monotone_curves(counts(np.array([[0.1, 0.2, 0.15, 0.3, 0.3, 0.5, 0.4, 0.6, 0.6, 0.7]]), 100))
    assert curves.level[0] == pytest.approx([0.1, 0.175, 0.175, 0.3, 0.3, 0.45, 0.45, 0.6, 0.6, 0.7])
    assert curves.score(0, [0.0, 1e6]) == pytest.approx([0.1, 0.7])
    between = np.expm1((np.log1p(0) + np.log1p(3)) / 2)
    assert float(curves.score(0, between)) == pytest.approx((0.1 + 0.175) / 2)


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0.1, 100)), min_size=1, max_size=20))
def test_monotone_regression_is_scipys(rows: list[tuple[float, float]]) -> None:
    y, weight = np.array(rows).T
    assert _isotonic.isotonic(y, weight) == pytest.approx(isotonic_regression(y, weights=weight).x, abs=1e-9)


@pytest.mark.parametrize("k", [2, 5, 13])
def test_levels_have_the_chances_of_bartholomews_test(k: int) -> None:
    rng = np.random.default_rng(k)
    p = [_isotonic.rise_test(np.arange(k), rng.normal(0.5, 0.01, k), np.zeros(k), np.full(k, 1e4)) for _ in range(2000)]
    assert np.mean(np.array(p) < 0.05) == pytest.approx(0.05, abs=0.02)
    assert _isotonic.rise_p_value(0.0, k) == 1.0


def test_real_trajectories_go_on_as_they_were(shared: Path) -> None:
    source = shared / "data" / "trajectories" / "ttt-emergence" / "trajectories_with_step0.csv"
    scores = read_effort_scores(source, task="gsm8k", metric="exact_match", filter="flexible-extract")
    compared = compare_laws(scores)
    assert compared.names[:2] == ("monotone", "generalised-power-law")
    assert compared.error[:2] == pytest.approx([0.0225, 0.0272], abs=0.001)
