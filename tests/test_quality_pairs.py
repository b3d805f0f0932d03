"""Redundant pairs of items: what the scores share beyond the level of the models, and how sure that is."""

from __future__ import annotations

from itertools import combinations
from math import log, nan, sqrt

import numpy as np
import polars as pl
import pytest
from scipy import stats

from benchwright.estimating import _quality as kernels
from benchwright.estimating import quality as module
from benchwright.estimating.quality import VERDICTS, item_quality
from test_quality import answers, plain_rest, with_gaps

AGAINST, NO_SIGN, CANNOT_TELL = VERDICTS


def plain_q3(scores: np.ndarray, stratum: np.ndarray) -> np.ndarray:
    """Residuals by least squares on an intercept and a rest slope per stratum, correlated at common models."""
    rest = np.array(plain_rest(scores))
    left = np.full(scores.shape, nan)
    for i, row in enumerate(scores):
        for part in np.unique(stratum):
            at = (stratum == part) & ~np.isnan(row + rest[i])
            design = np.column_stack([np.ones(at.sum()), rest[i][at]])
            left[i, at] = row[at] - design @ np.linalg.lstsq(design, row[at], rcond=1e-9)[0]
    q3 = np.full((len(scores), len(scores)), nan)
    for i, j in combinations(range(len(scores)), 2):
        both = ~np.isnan(left[i] + left[j])
        a, b = left[i][both], left[j][both]
        q3[i, j] = (a @ b) / sqrt((a @ a) * (b @ b))
    return q3


@pytest.mark.parametrize(("n_models", "share"), [(10, 0.0), (36, 0.0), (36, 0.15)])
def test_q3_against_least_squares(n_models: int, share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(12)
    level = rng.normal(size=n_models)
    scores = with_gaps(rng, level + rng.normal(size=(14, n_models)), share)
    scores[1] = scores[0] + 0.05 * rng.normal(size=n_models)
    scores[3] = scores[2]
    monkeypatch.setattr(kernels, "TILE", (3, 5))
    used_up, critical_r = [], kernels.critical_r
    monkeypatch.setattr(kernels, "critical_r", lambda n, k, alpha: used_up.append(k) or critical_r(n, k, alpha))
    quality = item_quality(scores, alpha=0.999, redundant_r=0.3)
    live = np.ones(14, dtype=bool)
    seen = kernels.overview(scores)
    stratum = kernels.strata(kernels.level_of(scores, seen.mean, live))
    assert stratum.max() + 1 == -(-n_models // 10)
    assert used_up == [2 * (stratum.max() + 1) + 1]
    q3 = plain_q3(scores, stratum)
    found = {(a, b): r for a, b, r in quality.pairs.select("first", "second", "r").iter_rows()}
    assert {(0, 1), (2, 3)} <= set(found)
    for pair, r in found.items():
        assert r == pytest.approx(q3[pair], abs=1e-9)
    identical = quality.pairs.filter(pl.col("identical"))
    assert identical.select("first", "second").rows() == [(2, 3)]


def test_planted_duplicates_are_found_and_nothing_else() -> None:
    rng = np.random.default_rng(13)
    scores = answers(rng, 300, 60, slope=1.0)
    mean = scores.mean(axis=1)
    middle = np.argsort(np.abs(mean - 0.5))[:2]
    scores = np.vstack([scores, scores[middle], scores[middle[:1]]])
    scores[-1, 7] = 1 - scores[-1, 7]  # a near copy
    quality = item_quality(scores)
    a, b = int(middle[0]), int(middle[1])
    exact = quality.pairs.filter("identical")
    assert set(exact.select("first", "second").rows()) == {(a, 300), (b, 301)}
    assert set(quality.pairs.select("first", "second").rows()) == {(a, 300), (a, 302), (b, 301), (300, 302)}
    assert quality.n_redundant[[a, 300, 302, b, 301]].tolist() == [2, 2, 2, 1, 1]
    group = quality.redundant_group
    assert group[a] == group[300] == group[302] != group[b] == group[301]
    assert sorted({int(g) for g in group if g >= 0}) == [0, 1]
    assert group[min(a, b)] == 0
    assert quality.pairs["r"].min() >= 0.9


def test_duplicates_are_found_with_missing_cells() -> None:
    rng = np.random.default_rng(14)
    scores = answers(rng, 100, 120, slope=1.0)
    item = int(np.argsort(np.abs(scores.mean(axis=1) - 0.5))[0])
    scores = with_gaps(rng, np.vstack([scores, scores[item]]), 0.3)
    pairs = item_quality(scores).pairs
    assert pairs.select("first", "second").rows() == [(item, 100)]
    assert pairs["identical"].item()
    assert pairs["n_models"].item() == (~np.isnan(scores[item] + scores[100])).sum()


@pytest.mark.parametrize("slope", [0.0, 1.5, 8.0, 30.0])
def test_independent_items_are_not_redundant(slope: float) -> None:
    """Steep items share a step at like difficulty; that is level, not redundancy."""
    for seed in range(3):
        rng = np.random.default_rng([15, seed])
        assert item_quality(answers(rng, 400, 60, slope=slope)).pairs.is_empty()
    normal = rng.normal(size=60) + rng.normal(size=(400, 60))
    assert item_quality(normal).pairs.is_empty()


def test_one_freak_model_links_no_items() -> None:
    rng = np.random.default_rng(16)
    scores = rng.normal(size=60) + rng.normal(size=(200, 60))
    scores[:3, 5] += 40.0  # the same breakdown on unrelated items
    assert item_quality(scores).pairs.is_empty()


def test_identical_rare_items_are_not_evidence() -> None:
    rng = np.random.default_rng(17)
    scores = answers(rng, 200, 60, slope=1.0)
    scores[:2] = 0.0
    scores[:2, [4, 50]] = 1.0  # two solvers of 60: 1770 arrangements, 19,900 pairs
    quality = item_quality(scores)
    assert quality.n_redundant[:2].tolist() == [-1, -1]
    assert quality.to_frame()["n_redundant"][0] is None
    assert any("stand out" in note for note in quality.notes)


def test_arrangements_within_strata() -> None:
    x = np.array([[1, 0, 0, 1, 1, 0], [1, 2, 3, nan, nan, 5], [0, 0, 0, 2, 2, 2]])
    stratum = np.array([0, 0, 0, 1, 1, 1])
    assert np.exp(kernels.log_arrangements(x, stratum)) == pytest.approx([9, 6, 1])
    assert np.exp(kernels.log_arrangements(x, np.zeros(6, np.int64))) == pytest.approx([20, 24, 20])


def test_evidence_of_a_pair_is_counted_at_its_common_models() -> None:
    """Both items differ often, but on the 40 models that have both they have 3 ones: 9880 arrangements."""
    own = np.arange(40) % 2.0
    common = np.r_[np.ones(3), np.zeros(37)]
    x = np.array([np.r_[own, common, np.full(40, nan)], np.r_[np.full(40, nan), common, own]])
    unit = np.nan_to_num(x - np.nanmean(x, axis=1, keepdims=True))
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    for needed, n_pairs in ((9880 * 0.99, 1), (9880 * 1.01, 0)):
        found = kernels.redundant_pairs(x, unit, np.zeros(120, int), np.full(121, 0.5), log(needed), limit=9)
        assert found.n_pairs == n_pairs


def test_models_of_equal_level_share_a_stratum() -> None:
    total = np.array([0.3, 0.1 + 0.2, 0.1, 0.0] * 5)  # 0.1 + 0.2 is 0.3 but for rounding
    stratum = kernels.strata(kernels.Level(total, np.full(20, 4), 3.0))
    assert stratum.tolist() == [1, 1, 0, 0] * 5
    above = kernels.strata(kernels.Level(np.r_[np.zeros(9), total[:2], np.ones(9)], np.full(20, 4), 3.0))
    assert above[9] == above[10]


def test_critical_r_is_the_t_test() -> None:
    critical = kernels.critical_r(30, 3, 1e-8)
    assert np.isinf(critical[:4]).all()
    for n in (5, 12, 30):
        r = critical[n]
        assert stats.t.sf(r * sqrt((n - 3) / (1 - r * r)), n - 3) == pytest.approx(1e-8, rel=1e-6)


def test_pairs_beyond_the_limits_are_counted_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(18)
    scores = rng.normal(size=40) + rng.normal(size=(60, 40))
    scores[10:20] = scores[10]
    skipped = item_quality(scores, max_pair_items=59)
    assert skipped.pairs.is_empty()
    assert (skipped.n_redundant == -1).all()
    assert any("not looked for" in note for note in skipped.notes)
    whole = item_quality(scores, max_pair_items=60)
    assert whole.pairs.height == 45
    monkeypatch.setattr(module, "MAX_LISTED_PAIRS", 7)
    cut = item_quality(scores)
    assert cut.pairs.height == 7
    assert any("45 redundant pairs 7 are listed" in note for note in cut.notes)
    np.testing.assert_array_equal(cut.n_redundant, whole.n_redundant)
    np.testing.assert_array_equal(cut.redundant_group, whole.redundant_group)
    assert whole.n_redundant[10:20].tolist() == [9] * 10
    assert whole.redundant_group[10:20].tolist() == [0] * 10
