"""Item quality: published cases, plain loops, enumeration, false alarms, planted faults, invariances."""

from __future__ import annotations

import csv
import json
from itertools import combinations
from math import exp, factorial, isnan, log, nan, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from benchwright.errors import UsageError
from benchwright.estimating import _quality as kernels
from benchwright.estimating import quality as module
from benchwright.estimating.quality import VERDICTS, ItemQuality, item_quality, item_rest_test, reversal_verdicts
from quality_twins import answers, by_enumeration, plain_r, plain_rest, with_gaps

AGAINST, NO_SIGN, CANNOT_TELL = VERDICTS


def resolved_lists(folder: Path) -> np.ndarray:
    items = json.loads((folder / "instances.json").read_text(encoding="utf-8"))
    solved = [
        set(json.loads(path.read_text(encoding="utf-8"))["resolved"]) for path in sorted(folder.glob("m*/results.json"))
    ]
    return np.array([[float(item in model) for model in solved] for item in items])


def test_case_c27_dead_items_and_those_nobody_solved(shared: Path) -> None:
    quality = item_quality(resolved_lists(shared / "cases" / "C27"), names=["i1", "i2", "i3", "i4", "i5"])
    assert quality.dead.to_list() == ["all right", "not dead", "not dead", "not dead", "all wrong"]
    assert quality.n_models.tolist() == [4] * 5
    assert quality.counts["dead: not dead"] == 3
    frame = quality.to_frame()
    assert frame.filter(pl.col("dead").is_in(["all right", "all wrong"]))["item"].to_list() == ["i1", "i5"]


def test_case_c28_a_total_that_contains_the_item_hides_it(shared: Path) -> None:
    folder = shared / "cases" / "C28"
    scores = pl.read_csv(folder / "matrix.csv").drop("model").to_numpy().T.astype(float)
    quality = item_quality(scores)
    assert quality.item_rest_r[0] == pytest.approx(-0.166667, abs=1e-6)
    with_itself = item_rest_test(scores[0], scores.sum(axis=0))
    assert with_itself.r[0] == pytest.approx(0.645497, abs=1e-6)
    frame = quality.to_frame()
    assert frame["item_rest_r"][2] is None
    assert frame["item_rest_r"][4] is None
    assert frame["verdict"][2] == frame["verdict"][4] == CANNOT_TELL


def test_case_c28_three_models_accuse_nobody(shared: Path) -> None:
    with (shared / "cases" / "C28" / "three_models.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    test = item_rest_test([float(row["item"]) for row in rows], [float(row["total"]) for row in rows])
    assert test.n_models[0] == 3
    assert test.p[0] == test.smallest_p[0] == pytest.approx(1 / 3)
    q, codes = reversal_verdicts(test.p, test.smallest_p)
    assert isnan(q[0])
    assert VERDICTS[codes[0]] == CANNOT_TELL


@pytest.mark.parametrize("share", [0.0, 0.3])
def test_rest_correlation_against_plain_loops(share: float) -> None:
    rng = np.random.default_rng(1)
    for draw in range(30):
        scores = answers(rng, 12, 9) if draw % 2 else rng.normal(size=(12, 9)).round(1)
        scores = with_gaps(rng, scores, share)
        scores[3], scores[4, 1:], scores[5] = 1.0, nan, nan
        quality = item_quality(scores)
        rest = plain_rest(scores)
        want = [plain_r(x, r) for x, r in zip(scores.tolist(), rest, strict=True)]
        np.testing.assert_allclose(quality.item_rest_r, want, rtol=0, atol=1e-12)
        n = [sum(not isnan(value) for value in row) for row in rest]
        assert quality.n_rest_models.tolist() == n


@given(
    st.lists(st.integers(0, 3), min_size=2, max_size=7),
    st.lists(st.integers(0, 3), min_size=7, max_size=7),
    st.sampled_from([1.0, 0.1, 1 / 3]),
)
@settings(max_examples=150, deadline=None)
def test_p_and_its_least_value_against_all_permutations(x: list[int], rest: list[int], unit: float) -> None:
    values, others = [unit * a for a in x], [unit * b for b in rest[: len(x)]]
    test = item_rest_test(values, others)
    if len(set(values)) == 1 or len(set(others)) == 1:
        assert np.isnan([test.r[0], test.p[0], test.smallest_p[0]]).all()
        return
    assert (test.p[0], test.smallest_p[0]) == pytest.approx(by_enumeration(values, others), abs=1e-12)
    assert test.exact[0]


def test_few_solvers_among_many_models_are_enumerated() -> None:
    rng = np.random.default_rng(2)
    for n, k in ((20, 3), (40, 2), (60, 58)):
        rest, x = rng.normal(size=n), np.zeros(n)
        x[rng.choice(n, k, replace=False)] = 1.0
        sums = np.array([rest[list(chosen)].sum() for chosen in combinations(range(n), k)]) if k < 9 else None
        if sums is None:
            sums = np.array([rest.sum() - rest[list(left)].sum() for left in combinations(range(n), n - k)])
        test = item_rest_test(x, rest)
        assert test.exact[0]
        assert test.p[0] == pytest.approx((sums <= x @ rest + 1e-9).mean(), abs=1e-12)
        assert test.smallest_p[0] == pytest.approx(1 / len(sums))


def test_missing_models_and_mixed_patterns_in_one_call() -> None:
    rng = np.random.default_rng(3)
    x = with_gaps(rng, rng.integers(0, 3, size=(200, 9)).astype(float), 0.5)
    rest = with_gaps(rng, rng.integers(0, 4, size=(200, 9)).astype(float), 0.1)
    test = item_rest_test(x, rest)
    for i in range(200):
        used = ~np.isnan(x[i] + rest[i])
        alone = item_rest_test(x[i][used], rest[i][used]) if used.any() else None
        assert test.n_models[i] == used.sum()
        if alone is not None:
            for name in ("r", "p", "smallest_p"):
                np.testing.assert_allclose(getattr(test, name)[i], getattr(alone, name)[0], rtol=1e-12)
        if used.sum() <= 6 and not isnan(test.p[i]):
            assert test.p[i] == pytest.approx(by_enumeration(x[i][used].tolist(), rest[i][used].tolist())[0])


def test_many_models_student_t_with_the_skewness_of_the_arrangements() -> None:
    rng = np.random.default_rng(4)
    corrected = 0
    for _ in range(200):
        n = 30
        x, rest = (rng.random(n) < 0.3).astype(float), -rng.exponential(size=n)
        test = item_rest_test(x, rest)
        a, b = x - x.mean(), rest - rest.mean()
        r = (a @ b) / sqrt((a @ a) * (b @ b))
        want = stats.t.cdf(r * sqrt((n - 2) / (1 - r * r)), n - 2)
        skewness = n * sqrt(n - 1) / (n - 2) * (a**3).sum() * (b**3).sum() / ((a @ a) * (b @ b)) ** 1.5
        if skewness < -1e-3 and r < 0:
            z = r * sqrt(n - 1)
            ratio = max(1.0, stats.pearson3.cdf(z, skewness) / stats.norm.cdf(z))
            corrected += ratio > 1.5
            want = min(1.0, want * ratio)
        assert not test.exact[0]
        assert test.p[0] == pytest.approx(want, rel=1e-9)
    assert corrected > 3


def test_the_skewness_is_that_of_all_permutations_and_the_correction_mends_the_tail() -> None:
    rng = np.random.default_rng(5)
    rest = np.r_[0.3 * rng.normal(size=39), -3.0]
    chosen = np.array(list(combinations(range(40), 4)))
    x = np.zeros((len(chosen), 40))
    np.put_along_axis(x, chosen, 1.0, axis=1)
    test = item_rest_test(x, np.tile(rest, (len(x), 1)))
    assert not test.exact.any()
    t = test.r * np.sqrt(38 / (1 - test.r**2))
    plain = (stats.t.cdf(t, 38) <= 1e-3).mean()
    assert plain > 10e-3  # without the correction more than ten times too many
    assert (test.p <= 1e-3).mean() < 2e-3
    z = test.r * sqrt(39)
    a, b = x[0] - x[0].mean(), rest - rest.mean()
    formula = 40 * sqrt(39) / 38 * (a**3).sum() * (b**3).sum() / ((a @ a) * (b @ b)) ** 1.5
    assert (z**3).mean() == pytest.approx(formula, rel=1e-9)


def test_a_perfect_reversal_is_finite_evidence() -> None:
    test = item_rest_test(np.arange(9.0), -np.arange(9.0))
    assert test.r[0] == pytest.approx(-1)
    assert test.p[0] == test.smallest_p[0] == pytest.approx(1 / factorial(9))


def test_false_discovery_control_and_who_could_have_been_flagged() -> None:
    rng = np.random.default_rng(6)
    for _ in range(60):
        m = int(rng.integers(1, 12))
        smallest = rng.choice([1e-6, 0.001, 0.01, 0.03, 0.05, 0.3, nan], size=m)
        p = np.maximum(smallest, rng.random(m) ** rng.integers(1, 6))
        q, codes = reversal_verdicts(p, smallest)
        testable = smallest <= 0.05
        if testable.any():
            np.testing.assert_allclose(q[testable], stats.false_discovery_control(p[testable]))
        assert np.isnan(q[~testable]).all()
        for i in range(m):
            if not testable[i]:
                assert VERDICTS[codes[i]] == CANNOT_TELL
                continue
            at_best = p.copy()
            at_best[i] = smallest[i]
            best_q = stats.false_discovery_control(at_best[testable])[testable[: i + 1].sum() - 1]
            want = AGAINST if q[i] <= 0.05 else NO_SIGN if best_q <= 0.05 * (1 + 1e-9) else CANNOT_TELL
            assert VERDICTS[codes[i]] == want


def test_healthy_items_are_not_accused_by_the_dozen() -> None:
    flagged, uncorrected = [], []
    for seed in range(20):
        rng = np.random.default_rng([7, seed])
        coins = (rng.random((1000, 20)) < rng.uniform(0.2, 0.8, size=(1000, 1))).astype(float)
        quality = item_quality(coins, max_pair_items=0)  # no ability at all: the hardest healthy items
        flagged.append(quality.counts[f"rest: {AGAINST}"])
        uncorrected.append(int((quality.reversed_p <= 0.05).sum()))
        healthy = item_quality(answers(rng, 1000, 20), max_pair_items=0)
        assert healthy.counts[f"rest: {AGAINST}"] == 0
    assert np.mean(flagged) < 0.2
    assert 30 < np.mean(uncorrected) < 70


def test_a_mislabelled_item_is_found() -> None:
    rng = np.random.default_rng(8)
    scores = answers(rng, 300, 60)
    item = int(np.argsort(np.abs(scores.mean(axis=1) - 0.5))[0])
    scores[item] = 1 - scores[item]
    quality = item_quality(scores)
    assert np.flatnonzero((quality.verdict == AGAINST).to_numpy()).tolist() == [item]
    assert quality.counts[f"rest: {NO_SIGN}"] > 250


@pytest.mark.parametrize("n_models", [1, 2, 3])
def test_very_few_models_cannot_tell(n_models: int) -> None:
    rng = np.random.default_rng(9)
    for scores in (answers(rng, 40, n_models), rng.normal(size=(40, n_models))):
        quality = item_quality(scores)
        assert set(quality.verdict) == {CANNOT_TELL}
        assert (quality.n_redundant == -1).all()
        assert quality.pairs.is_empty()
        assert quality.notes
        assert n_models > 1 or set(quality.dead) == {"cannot tell"}


def test_a_note_counts_what_seven_models_cannot_tell() -> None:
    quality = item_quality(answers(np.random.default_rng(10), 1000, 7))
    assert quality.counts[f"rest: {AGAINST}"] == quality.counts[f"rest: {NO_SIGN}"] == 0
    assert any("Too few models" in note for note in quality.notes)


def test_dead_items_by_value() -> None:
    scores = [[1, 1, nan], [0, 0, 0], [0.5, nan, 0.5], [0.1, 0.1, 0.2], [nan, 1, nan], [nan] * 3, [0, 1, 0]]
    quality = item_quality(scores)
    want = ["all right", "all wrong", "constant", "not dead", "cannot tell", "cannot tell", "not dead"]
    assert quality.dead.to_list() == want
    assert quality.n_models.tolist() == [2, 3, 2, 3, 1, 0, 3]
    counted = sum(quality.counts[f"dead: {word}"] for word in module.DEAD)
    assert counted == quality.counts["items"] == 7


def test_easy_items_make_no_good_model() -> None:
    """Weak models also saw easy items: without centring their rest is high and good items look reversed."""
    rng = np.random.default_rng(11)
    strong = np.arange(60) < 30
    hard = rng.random((60, 60)) < np.where(strong, 0.6, 0.4)
    easy = np.where(strong, nan, (rng.random((100, 60)) < 0.95).astype(float))
    scores = np.vstack([hard.astype(float), easy])
    quality = item_quality(scores, max_pair_items=0)
    assert quality.item_rest_r[:60].mean() > 0.05
    raw_rest = np.nanmean(scores, axis=0)
    assert np.mean([np.corrcoef(row, raw_rest)[0, 1] for row in scores[:60]]) < -0.05
    assert any("different items" in note for note in quality.notes)


def columns(quality: ItemQuality) -> dict[str, np.ndarray]:
    names = ("item_rest_r", "reversed_p", "smallest_p", "reversed_q")
    exact = ("n_models", "n_rest_models", "n_redundant")
    values: dict[str, Any] = {name: getattr(quality, name) for name in (*names, *exact)}
    return values | {"dead": quality.dead.to_physical().to_numpy(), "verdict": quality.verdict.to_physical().to_numpy()}


@given(st.integers(0, 10**6), st.integers(2, 14), st.sampled_from([0.0, 0.2]), st.booleans())
@settings(max_examples=40, deadline=None)
def test_order_of_items_and_models_is_nothing(seed: int, n_models: int, share: float, binary: bool) -> None:
    rng = np.random.default_rng(seed)
    scores = answers(rng, 15, n_models) if binary else rng.normal(size=(15, n_models)).round(1)
    scores[1] = scores[0]
    scores = with_gaps(rng, scores, share)
    items, models = rng.permutation(15), rng.permutation(n_models)
    first, second = item_quality(scores), item_quality(scores[items][:, models])
    moved = columns(second)
    for name, values in columns(first).items():
        np.testing.assert_allclose(moved[name], values[items], rtol=1e-9, atol=1e-12, err_msg=name)
    back = {frozenset((int(items[a]), int(items[b]))) for a, b in second.pairs.select("first", "second").iter_rows()}
    assert back == {frozenset(pair) for pair in first.pairs.select("first", "second").iter_rows()}


@given(st.integers(0, 10**6), st.floats(0.01, 100), st.floats(-5, 5))
@settings(max_examples=25, deadline=None)
def test_unit_and_origin_of_the_scores_are_nothing(seed: int, unit: float, origin: float) -> None:
    scores = with_gaps(np.random.default_rng(seed), answers(np.random.default_rng(seed), 12, 9), 0.1)
    first, second = item_quality(scores), item_quality(unit * scores + origin)
    for name in ("item_rest_r", "reversed_p", "smallest_p"):
        np.testing.assert_allclose(getattr(second, name), getattr(first, name), rtol=1e-7, atol=1e-9)


def test_blocks_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(19)
    scores = with_gaps(rng, np.vstack([answers(rng, 80, 50), rng.normal(size=(40, 50))]), 0.05)
    scores[100:103] = scores[100]
    whole = item_quality(scores)
    monkeypatch.setattr(kernels, "BLOCK_CELLS", 300)
    monkeypatch.setattr(kernels, "TILE", (7, 11))
    parts = item_quality(scores)
    for name, values in columns(whole).items():
        np.testing.assert_allclose(columns(parts)[name], values, rtol=1e-9, atol=1e-12, err_msg=name)
    assert parts.pairs.select("first", "second").rows() == whole.pairs.select("first", "second").rows() != []


def test_frame_has_null_where_there_is_nothing() -> None:
    frame = item_quality([[1, 1, 1], [0, 1, 0], [1, 0, 0]], names=["a", "b", "c"]).to_frame()
    assert frame.columns[:2] == ["item", "n_models"]
    assert frame.row(0, named=True) == {
        "item": "a",
        "n_models": 3,
        "dead": "all right",
        "n_rest_models": 0,
        "item_rest_r": None,
        "reversed_p": None,
        "smallest_p": None,
        "reversed_q": None,
        "verdict": CANNOT_TELL,
        "n_redundant": None,
        "redundant_group": None,
    }
    assert frame["item_rest_r"][1] == pytest.approx(-0.5)
    assert "item" not in item_quality([[0, 1], [1, 0]]).to_frame().columns


def test_the_callers_scores_are_left_alone() -> None:
    scores = with_gaps(np.random.default_rng(20), answers(np.random.default_rng(20), 50, 30), 0.1)
    before = scores.copy()
    scores.setflags(write=False)
    item_quality(scores)
    np.testing.assert_array_equal(scores, before)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"scores": [1.0, 2.0]}, "`scores` must have a row an item"),
        ({"scores": np.empty((0, 3))}, "`scores` must have a row an item"),
        ({"scores": [["a", "b"]]}, "`scores` must hold numbers"),
        ({"scores": [[1.0], [1.0, 2.0]]}, "`scores` must hold numbers"),
        ({"scores": [[np.inf, 1.0]]}, "`scores` must be finite"),
        ({"scores": [[0, 1]], "alpha": 1.0}, "`alpha` must lie between 0 and 1"),
        ({"scores": [[0, 1]], "redundant_r": 0.0}, "`redundant_r` must lie in"),
        ({"scores": [[0, 1]], "max_pair_items": -1}, "`max_pair_items` must be"),
        ({"scores": [[0, 1]], "names": ["a", "b"]}, "`names` must have 1 entries"),
    ],
)
def test_wrong_arguments(arguments: dict[str, Any], message: str) -> None:
    scores = arguments.pop("scores")
    with pytest.raises(UsageError, match=message):
        item_quality(scores, **arguments)


def test_wrong_shapes_of_given_rests() -> None:
    with pytest.raises(UsageError, match="`rest` must have the shape"):
        item_rest_test([0, 1, 1], [0.5, 0.2])


def test_closed_form_of_the_least_p_at_many_models() -> None:
    """60 models, 25 solvers, rests in three tied groups: counted by hand."""
    x = np.r_[np.ones(25), np.zeros(35)]
    rest = np.r_[np.zeros(20), np.ones(20), np.full(20, 2.0)]
    # 20 solvers fill the lowest group, 5 of the 20 of the next are free to choose
    want = log(factorial(20) / factorial(5) / factorial(15)) - log(factorial(60) / factorial(25) / factorial(35))
    test = item_rest_test(x, rest)
    assert test.smallest_p[0] == pytest.approx(exp(want), rel=1e-9)
    assert test.p[0] >= test.smallest_p[0]
