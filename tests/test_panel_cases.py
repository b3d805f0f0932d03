"""Public fault reports about noise, dead items, thin evidence and seeds, from the log to the audit."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from benchwright.config import Config
from benchwright.estimating import _noise as kernel
from benchwright.estimating.estimates import PanelEstimates, estimate_panel
from benchwright.estimating.quality import item_rest_test, reversal_verdicts
from benchwright.mechanism.aggregation import ItemAggregation, optimal_weights
from benchwright.panel.ingest import read_logs
from benchwright.pipeline import audit


@pytest.fixture
def cases(shared: Path) -> Path:
    return shared / "cases"


def table(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))


def estimated(source: Path, tmp_path: Path) -> PanelEstimates:
    read_logs(source, tmp_path / "panel", workers=1)
    return estimate_panel(tmp_path / "panel")


def test_c20_four_passages_are_four_units(cases: Path, tmp_path: Path) -> None:
    found = estimated(cases / "C20", tmp_path)
    assert found.models is not None
    row = found.models.frame.row(0, named=True)
    assert (row["score"], row["standard_error"]) == (0.5, pytest.approx(0.288675, abs=1e-6))
    half = (row["score_hi"] - row["score_lo"]) / 2
    assert half / row["standard_error"] == pytest.approx(3.182446, abs=1e-6)
    assert "20 items are in 4 clusters; few, which the t intervals allow for" in found.models.notes[0]


def test_c20_one_passage_is_no_evidence(cases: Path, tmp_path: Path) -> None:
    lines = (cases / "C20" / "scores.csv").read_text(encoding="utf-8").splitlines()
    (tmp_path / "one.csv").write_text("\n".join(line for line in lines if line[:2] in ("pa", "a,")), encoding="utf-8")
    found = estimated(tmp_path / "one.csv", tmp_path)
    assert found.models is None
    assert found.reasons["models"].endswith("all 5 items share one cluster, which leaves no standard error")


def test_c27_items_that_nobody_or_everybody_solves_are_dead(cases: Path, tmp_path: Path) -> None:
    found = estimated(cases / "C27", tmp_path)
    dead = dict(zip(found.measured.items["doc_id"], found.quality.dead.to_list(), strict=True))
    assert dead == {"i1": "all right", "i2": "not dead", "i3": "not dead", "i4": "not dead", "i5": "all wrong"}
    assert found.models is not None
    assert found.models.frame["score"].to_list() == pytest.approx([0.6, 0.4, 0.4, 0.2])
    assert found.models.frame["rank"].to_list() == [1, 2, 2, 4]
    assert set(found.quality.verdict) == {"cannot tell"}


def test_c28_an_item_is_left_out_of_its_rest(cases: Path, tmp_path: Path) -> None:
    found = estimated(cases / "C28" / "matrix.csv", tmp_path)
    by_item = dict(zip(found.measured.items["task"], found.quality.item_rest_r.tolist(), strict=True))
    assert by_item["i0"] == pytest.approx(-0.166667, abs=1e-6)
    assert np.isnan([by_item["i2"], by_item["i4"]]).all()
    assert not (found.quality.verdict == "runs against the rest").any()
    assert "NaN" not in str(found.quality.to_frame().to_dicts())


def test_c28_three_models_accuse_nobody(cases: Path) -> None:
    rows = table(cases / "C28" / "three_models.csv")
    test = item_rest_test([[float(row["item"]) for row in rows]], [[float(row["total"]) for row in rows]])
    assert test.r[0] < -0.8
    assert test.smallest_p[0] == pytest.approx(1 / 3)
    _, codes = reversal_verdicts(test.p, test.smallest_p)
    assert codes.tolist() == [2]  # cannot tell


def test_c30_identical_seeds_have_no_noise_and_it_is_said(cases: Path, tmp_path: Path) -> None:
    found = estimated(cases / "C30" / "identical", tmp_path)
    assert found.noise is not None
    assert found.noise.items["sigma2"].to_list() == [0.0, 0.0, 0.0]
    assert found.noise.items["sigma2_lo"].null_count() == 3
    assert "identical (greedy decoding of one model, or copies?)" in found.noise.notes[0]
    welfare = np.array([0.3, 0.5, 0.7])
    game = ItemAggregation(np.eye(3), welfare, risk_aversion=1.0, noise_variance=found.noise.items["sigma2"].to_numpy())
    np.testing.assert_array_equal(optimal_weights(game).weights, welfare)


def test_c30_one_run_asks_for_a_prior_or_no_risk(cases: Path, tmp_path: Path) -> None:
    found = estimated(cases / "C30" / "single", tmp_path)
    assert found.noise is None
    assert "lab.noise_prior" in found.reasons["noise"]
    assert "lab.risk_aversion = 0" in found.reasons["noise"]
    report = audit(tmp_path / "panel", config=Config())
    assert report.weights is None
    assert "sigma2" not in report.items.columns


def test_c30_runs_without_seeds_are_replicates(cases: Path, tmp_path: Path) -> None:
    found = estimated(cases / "C30" / "no_seed_recorded.jsonl", tmp_path)
    assert found.noise is not None
    items = found.noise.items.sort("doc_id")
    assert items["mean_score"].to_list() == [1.0, 0.5, 1.0]
    assert items["sigma2"].to_list() == [0.0, 0.5, 0.0]
    assert any("unknown seeds" in note for note in found.notes)


def test_c30_unequal_repeats_keep_the_variance_of_one_run(cases: Path) -> None:
    """Runs are drawn with the stated variance: what is pooled is that of one run, whatever their number."""
    for row in table(cases / "C30" / "unequal_repeats.csv"):
        n, variance = int(row["runs"]), float(row["var_per_run"])
        values = np.random.default_rng(1).normal(size=(1, n))
        values = (values - values.mean()) / values.std(ddof=1) * np.sqrt(variance)
        residual = kernel.residuals(values, np.zeros(n, dtype=np.int64))
        sigma2, df = kernel.pooled_variance(residual, np.zeros(n, dtype=np.int64))
        assert (sigma2[0], df[0]) == (pytest.approx(0.25), n - 1)
        low, high = kernel.variance_interval(sigma2, df, 0.95)
        ends = stats.chi2.ppf([0.975, 0.025], n - 1)
        assert (df[0] * 0.25 / low[0], df[0] * 0.25 / high[0]) == pytest.approx(ends)
