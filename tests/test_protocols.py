"""Two protocols compared: the published tables, the public fault report, scipy's tau with gaps and ties."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.stats import kendalltau

from benchwright._check import FloatArray
from benchwright.errors import DataError, UsageError
from benchwright.game_answers.protocol_tables import read_protocols
from benchwright.ranking_game import _agreement as numbers
from benchwright.ranking_game.protocols import ScoreTables, compare_protocols, kendall_tau
from tables import run


def test_published_tables(
    shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = run(monkeypatch, capsys, "game", shared / "data" / "lm-harmony" / "all_results.json", "--json")
    assert (ran.code, ran.err) == (0, "")
    answer = json.loads(ran.out)
    golden = json.loads((shared / "golden" / "train-before-test.json").read_text())
    assert set(answer["tasks"]) == set(golden["tasks"])
    for key in ("mean_pairwise_kendall_tau_b", "first_principal_component_share_standardised_scores"):
        assert answer[key] == pytest.approx(golden[key], abs=5.1e-5)
    for protocol, shares in golden["first_three_shares"].items():
        assert answer["first_three_shares"][protocol] == pytest.approx(shares, abs=5.1e-5)
    assert answer["dropped_tasks"] == ["arxiv_2025", "wiki_2025", "stackexchange_2025"]  # no value for 8 models: no 0
    low, high = answer["gain_interval"]
    assert 0 < low < answer["gain"] < high
    assert 0 < answer["significant_reversals"] < answer["reversals_tested"] == 24 * 61 * 60 // 2 - 11
    assert run(monkeypatch, capsys, "game", "x.json", "--delta", "1").code == 2
    assert run(monkeypatch, capsys, "game", "x.json").code == 2


def test_before_and_after(shared: Path) -> None:
    table = pl.read_csv(shared / "cases" / "C39" / "before_after.csv")
    before = kendall_tau(table["bench1_before"], table["bench2_before"])
    assert before.value == pytest.approx(1 / 3)
    assert kendall_tau(table["bench1_after"], table["bench2_after"]).value == pytest.approx(1.0)


def test_constant_and_missing_scores(shared: Path) -> None:
    table = pl.read_csv(shared / "cases" / "C39" / "constant_and_nan.csv")
    found = kendall_tau(table["b1"], table["b2"].cast(float).fill_null(float("nan")))
    assert (found.value, found.used, found.dropped) == (None, 3, 1)


def random_tables(seed: int, *, gaps: float = 0.0) -> FloatArray:
    rng = np.random.default_rng(seed)
    scores = np.round(rng.random((6, 12)) + np.linspace(0, 1, 12), 1)  # ties
    scores[rng.random(scores.shape) < gaps] = np.nan
    return scores


@pytest.mark.parametrize("gaps", [0.0, 0.3])
def test_taus_agree_with_scipy(gaps: float) -> None:
    scores = random_tables(1, gaps=gaps)
    signs, seen = numbers.pair_signs(scores)
    found = numbers.tau_matrix(signs, seen, np.ones(signs.shape[1]))
    for a in range(6):
        for b in range(6):
            both = np.isfinite(scores[a]) & np.isfinite(scores[b])
            assert found[a, b] == pytest.approx(kendalltau(scores[a, both], scores[b, both]).statistic)


def test_weights_are_copies_of_models() -> None:
    scores, counts = random_tables(2), np.array([2, 0, 1, 3, 1, 1, 0, 0, 1, 2, 1, 1])
    i, j = np.triu_indices(12, 1)
    signs, seen = numbers.pair_signs(scores)
    found = numbers.tau_matrix(signs, seen, (counts[i] * counts[j]).astype(float))
    copies = np.repeat(scores, counts, axis=1)
    for a in range(6):
        for b in range(6):
            assert found[a, b] == pytest.approx(kendalltau(copies[a], copies[b]).statistic)


def tables(direct: FloatArray, tuned: FloatArray, stderr: float = 0.01) -> ScoreTables:
    t, n = direct.shape
    models, tasks = tuple(f"m{k}" for k in range(n)), tuple(f"t{k}" for k in range(t))
    return ScoreTables(models, tasks, direct, tuned, np.full((t, n), stderr), np.full((t, n), stderr))


def test_only_turns_beyond_noise_count() -> None:
    direct, tuned = np.array([[0.5, 0.6, 0.9], [0.1, 0.2, 0.3]]), np.array([[0.9, 0.6, 0.5], [0.1, 0.205, 0.195]])
    found = compare_protocols(tables(direct, tuned), rng=np.random.default_rng(0), replicates=50)
    assert (found.reversals, found.testable) == (3, 6)  # 0.205 over 0.195 is noise
    assert compare_protocols(tables(direct, tuned, 1.0), rng=np.random.default_rng(0), replicates=50).reversals == 0
    untold = tables(direct, tuned, np.nan)
    assert compare_protocols(untold, rng=np.random.default_rng(0), replicates=50).testable == 0
    assert found.rank[:, 0].tolist() == [3, 2, 1]
    assert found.move.tolist() == (found.rank[:, 0] - found.rank[:, 1]).tolist()


def test_gaps_and_constant_tasks_are_stated() -> None:
    direct, tuned = random_tables(3), random_tables(4)
    direct[0, 0], direct[1] = np.nan, 0.5
    found = compare_protocols(tables(direct, tuned), rng=np.random.default_rng(0), replicates=50)
    assert (found.dropped_tasks, found.undefined_pairs) == (("t0",), (4, 0))
    record = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert record["tasks"]["t1"]["direct"] is None
    assert found.to_frame().height == 12
    assert "not every model has a score on t0" in str(found)
    again = compare_protocols(tables(direct, tuned), rng=np.random.default_rng(0), replicates=50)
    assert again.to_dict() == found.to_dict()


def test_lower_is_better_is_turned_first(tmp_path: Path) -> None:
    file = tmp_path / "scores.json"
    corpora = {"wiki_2025": {"o/a": 0.7, "o/b": 0.8}, "arc": {"o/a": 0.6, "o/b": 0.5}}
    file.write_text(json.dumps({"direct_eval": corpora, "train_before_test": corpora}))
    read = read_protocols(file)
    assert read.direct.tolist() == [[-0.7, -0.8], [0.6, 0.5]]
    assert compare_protocols(read, rng=np.random.default_rng(0), replicates=20).tau == (1.0, 1.0)


@pytest.mark.parametrize(
    ("content", "error", "text"),
    [
        ({"direct_eval": {"t": {"o/a": 0.5}}}, DataError, "holds no `train_before_test`"),
        ({"results": {"t": 1}}, UsageError, "holds no score tables"),
        (
            {"direct_eval": {"t": {"o/a": "bad"}}, "train_before_test": {"t": {"o/a": 0.5}}},
            (DataError, UsageError),
            "x.json",
        ),
    ],
)
def test_files_without_both_protocols(tmp_path: Path, content: Any, error: Any, text: str) -> None:
    file = tmp_path / "x.json"
    file.write_text(json.dumps(content))
    with pytest.raises(error, match=text):
        read_protocols(file)


def test_too_little_to_compare() -> None:
    with pytest.raises(DataError, match=r"2 model\(s\) and 1 task\(s\)"):
        compare_protocols(tables(np.ones((1, 2)), np.ones((1, 2))), rng=np.random.default_rng(0))
    with pytest.raises(UsageError, match="must have shape"):
        ScoreTables(("a",), ("t",), np.ones((1, 2)), np.ones((1, 1)), np.ones((1, 1)), np.ones((1, 1)))
    with pytest.raises(UsageError, match="finite numbers, NaN where missing"):
        kendall_tau([1.0, np.inf], [1.0, 2.0])
    with pytest.raises(UsageError, match="`replicates` must be >= 1"):
        compare_protocols(tables(np.ones((2, 2)), np.ones((2, 2))), rng=np.random.default_rng(0), replicates=0)


def test_scores_too_large_to_square_are_refused() -> None:
    one = np.ones((1, 1))
    with pytest.raises(DataError, match=r"`tuned` must be at most 1e\+100 in size, got -1e\+308"):
        ScoreTables(("a",), ("t",), one, -1e308 * one, one, one)
