"""The estimators on public panels, from the logs on, against a second implementation written as plain loops.

The figures of ``docs/explanation/estimators.md`` are those that are checked here.
"""

from __future__ import annotations

import csv
import math
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats

from benchwright.config import Config
from benchwright.estimating.estimates import PanelEstimates, estimate_panel
from benchwright.panel.ingest import read_logs
from benchwright.panel.panel import Panel

SETS = {
    "hans": "matrices/hans-100seeds",
    "noises": "matrices/all-the-noises",
    "polypythia": "matrices/polypythia-induction-panel",
    "olmo2": "trajectories/olmo2-13b-items-by-checkpoint",
    "pythia": "logs/lm-eval/pythia-v1",
}
EXACT: dict[str, Any] = {"rel": 1e-9, "abs": 1e-12}


@pytest.fixture(scope="module")
def panels(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("panels")
    for name, path in SETS.items():
        read_logs(shared / "data" / path, folder / name, workers=1)
    return {name: folder / name for name in SETS}


def estimate(panel: Path, **choices: object) -> PanelEstimates:
    config = Config().replace({f"estimates.{key}": value for key, value in choices.items()}, source="test")
    return estimate_panel(panel, config=config)


def pooled(groups: list[list[float]]) -> tuple[float, int]:
    """Return sum of squares about each group's mean over the sum of (n - 1), and that sum."""
    squares, df = 0.0, 0
    for group in groups:
        mean = math.fsum(group) / len(group)
        squares += math.fsum((value - mean) ** 2 for value in group)
        df += len(group) - 1
    return (squares / df if df else math.nan), df


def test_hans_items_have_the_noise_of_a_hundred_trials(panels: dict[str, Path]) -> None:
    found = estimate(panels["hans"])
    assert found.noise is not None
    assert found.noise.source == "trials"
    rows = Panel.open(panels["hans"]).rows().select("doc_id", "value").collect()
    plain = {}
    for doc_id, value in rows.iter_rows():
        right = round(100 * value)
        plain[int(doc_id)] = (right * (1 - value) ** 2 + (100 - right) * value**2) / 99
    table = dict(found.noise.items.select("doc_id", "sigma2").iter_rows())
    assert len(table) == len(plain) == 9815
    assert all(table[item] == pytest.approx(value, **EXACT) for item, value in plain.items())
    assert found.models is not None
    assert found.models.frame["score"][0] == pytest.approx(math.fsum(rows["value"]) / 9815, **EXACT)


def test_hans_tasks_over_a_hundred_seeds(panels: dict[str, Path], shared: Path) -> None:
    """The comma file is read again here, with nothing of benchwright's."""
    found = estimate(panels["hans"], level_of="task")
    path = shared / "data" / SETS["hans"] / "berts_of_a_feather_accuracies_by_run.csv"
    lines = list(csv.reader(path.read_text(encoding="utf-8-sig").splitlines()))
    columns: dict[str, list[float]] = defaultdict(list)
    for line in lines[1:]:
        if line and re.fullmatch(r"Run \d+", line[0]):
            for name, cell in zip(lines[0][1:], line[1:], strict=True):
                if name.strip() and cell.strip():
                    columns[name.strip()].append(float(cell))
    columns = {name: values for name, values in columns.items() if len(values) == 100}
    assert found.noise is not None
    assert found.noise.source == "seeds"
    table = {row["task"]: row for row in found.noise.items.iter_rows(named=True)}
    common = set(table) & set(columns)
    assert len(common) == len(table) == 37
    for task in common:
        values = columns[task]
        sigma2, df = pooled([values])
        row = table[task]
        assert row["mean_score"] == pytest.approx(math.fsum(values) / 100, **EXACT)
        assert row["sigma2"] == pytest.approx(sigma2, rel=1e-9, abs=1e-15)
        if sigma2 > 0:
            low, high = df * sigma2 / stats.chi2.ppf([0.975, 0.025], df)
            assert (row["sigma2_lo"], row["sigma2_hi"]) == pytest.approx((low, high), rel=1e-9)
    assert found.models is not None
    of_seed = np.mean([columns[task] for task in table], axis=0)
    first = found.models.frame.row(0, named=True)
    assert first["score"] == pytest.approx(of_seed.mean(), **EXACT)
    assert first["standard_error"] == pytest.approx(of_seed.std(ddof=1) / 10, **EXACT)
    assert found.tasks is not None
    assert found.tasks.frame["score"].to_list() == pytest.approx(
        sorted((np.mean(columns[t]) for t in table), reverse=True)
    )
    assert (
        found.tasks.frame.filter((pl.col("rank_lo") > pl.col("rank")) | (pl.col("rank_hi") < pl.col("rank"))).height
        == 0
    )


def test_all_the_noises_pools_the_trials_of_all_models(panels: dict[str, Path]) -> None:
    found = estimate(panels["noises"])
    assert found.noise is not None
    assert found.noise.source == "trials"
    rows = Panel.open(panels["noises"]).rows().filter(pl.col("metric") == "correct", pl.col("task") == "gpqa_cot")
    squares: dict[str, float] = defaultdict(float)
    spare: dict[str, int] = defaultdict(int)
    trials: dict[str, float] = defaultdict(float)
    right: dict[str, float] = defaultdict(float)
    for doc_id, value, n in rows.select("doc_id", "value", "trials").collect().iter_rows():
        if n > 1:
            squares[doc_id] += n * value * (1 - value)
            spare[doc_id] += n - 1
            trials[doc_id] += n
            right[doc_id] += n * value
    table = found.noise.items.filter(pl.col("task") == "gpqa_cot").cast({"doc_id": pl.String})
    assert table.height == len(squares) == 448
    for row in table.iter_rows(named=True):
        item = row["doc_id"]
        assert row["sigma2"] == pytest.approx(squares[item] / spare[item], **EXACT)
        assert row["mean_score"] == pytest.approx(right[item] / trials[item], **EXACT)


def test_polypythia_seeds_by_checkpoints(panels: dict[str, Path]) -> None:
    found = estimate(panels["polypythia"], models=["pythia-*"])
    rows = (
        Panel.open(panels["polypythia"])
        .rows()
        .filter(pl.col("metric") == "ar_acc", pl.col("model").str.starts_with("pythia-"))
    )
    cells: dict[tuple[str, int, int], list[float]] = defaultdict(list)
    for model, step, seed, value in rows.select("model", "step", "seed", "value").collect().iter_rows():
        cells[model, step, seed].append(value)
    means = {key: math.fsum(values) / len(values) for key, values in cells.items()}
    groups: dict[tuple[str, int], list[float]] = defaultdict(list)
    for (model, step, _), mean in means.items():
        groups[model, step].append(mean)
    sigma2, df = pooled(list(groups.values()))
    assert found.noise is not None
    row = found.noise.items.row(0, named=True)
    assert (len(means), df) == (531, 472)
    assert (row["n_values"], row["sigma2"]) == (531, pytest.approx(sigma2, **EXACT))
    assert row["mean_score"] == pytest.approx(math.fsum(means.values()) / 531, **EXACT)
    trial, trial_df = pooled(list(cells.values()))
    noise = found.measured.trial_noise.row(0, named=True)
    assert (noise["sigma2"], noise["df"]) == (pytest.approx(trial, **EXACT), trial_df)
    assert found.models is not None
    last = {}
    for model, step in groups:
        last[model] = max(step, last.get(model, -1))
    for name, score, error in found.models.frame.select("name", "score", "standard_error").iter_rows():
        final = groups[name, last[name]]
        mean = math.fsum(final) / len(final)
        spread = math.sqrt(math.fsum((value - mean) ** 2 for value in final) / (len(final) - 1) / len(final))
        assert (score, error) == (pytest.approx(mean, **EXACT), pytest.approx(spread, **EXACT))
    signal = found.aggregate.snr.row(0, named=True)
    final_scores = [np.mean(groups[m, step]) for m, step in last.items()]
    dispersion = (max(final_scores) - min(final_scores)) / np.mean(final_scores)
    of_models = []
    for m in last:
        curves: dict[int, list[float]] = defaultdict(list)
        for (n, _, seed), value in sorted(means.items()):
            if n == m:
                curves[seed].append(value)
        ends = [curve[-5:] for curve in curves.values() if len(curve) >= 3]
        of_models.append(np.mean([np.std(end, ddof=1) for end in ends]) / np.mean([np.mean(end) for end in ends]))
    relative = np.mean(of_models)
    assert (signal["signal"], signal["noise"]) == (pytest.approx(dispersion, **EXACT), pytest.approx(relative, **EXACT))


def test_olmo2_slopes_over_pre_training_tokens(panels: dict[str, Path]) -> None:
    found = estimate(panels["olmo2"])
    rows = Panel.open(panels["olmo2"]).rows().select("doc_id", "dose", "value").collect()
    points: dict[int, list[tuple[float, float]]] = defaultdict(list)
    for doc_id, dose, value in rows.iter_rows():
        points[int(doc_id)].append((dose / 1e9, value))
    assert found.slopes is not None
    assert found.noise is None
    assert found.reasons["noise"].startswith("noise is not estimable")
    table = {row["doc_id"]: row for row in found.slopes.items.iter_rows(named=True)}
    assert len(table) == len(points) == 192
    for item, pairs in points.items():
        x, y = (np.array(side) for side in zip(*pairs, strict=True))
        design = np.stack([np.ones_like(x), x], axis=1)
        (_, slope), residual, *_ = np.linalg.lstsq(design, y, rcond=None)
        error = math.sqrt(residual[0] / (len(x) - 2) * np.linalg.inv(design.T @ design)[1, 1])
        half = stats.t.ppf(0.975, len(x) - 2) * error
        row = table[item]
        assert row["slope_pt"] == pytest.approx(slope, rel=1e-9, abs=1e-13)
        assert row["slope_pt_se"] == pytest.approx(error, rel=1e-9)
        assert row["slope_pt_hi"] - row["slope_pt_lo"] == pytest.approx(2 * half, rel=1e-9)
        assert row["anchor"] == pytest.approx(y[x == 0][0], **EXACT)


def test_pythia_tasks_by_checkpoint(panels: dict[str, Path]) -> None:
    found = estimate(panels["pythia"], metric="acc")
    assert found.measured.level == "task"
    scores = Panel.open(panels["pythia"]).scores().filter(pl.col("metric") == "acc", ~pl.col("is_group"))
    stated = scores.select("model", "setting", "step", "task", "value", "stderr").collect()
    value = {row[:4]: row[4:] for row in stated.iter_rows()}
    assert found.models is not None
    last: dict[tuple[str, str], int] = {}
    for model, setting, step, _ in value:
        last[model, setting] = max(step, last.get((model, setting), -1))
    tasks = sorted({key[3] for key in value})
    common = [t for t in tasks if all((*key, step, t) in value for key, step in last.items())]
    assert found.models.frame["n_items"][0] == len(common)
    expected = {}
    for (model, setting), step in last.items():
        cells = [value[model, setting, step, t] for t in common]
        expected[model, setting] = (
            math.fsum(v for v, _ in cells) / len(common),
            math.sqrt(math.fsum(s**2 for _, s in cells)) / len(common),
        )
    assert found.models.frame["score"].to_list() == pytest.approx(
        sorted((mean for mean, _ in expected.values()), reverse=True), **EXACT
    )
    assert sorted(found.models.frame["standard_error"]) == pytest.approx(
        sorted(e for _, e in expected.values()), **EXACT
    )
    piqa = found.aggregate.snr.filter(pl.col("scope") == "piqa").row(0, named=True)
    curves = {
        key: [value[(*key, s, "piqa")][0] for s in sorted(k[2] for k in value if k[:2] == key and k[3] == "piqa")]
        for key in last
    }
    final = [curve[-1] for curve in curves.values()]
    noise = np.mean([np.std(curve[-5:], ddof=1) / np.mean(curve[-5:]) for curve in curves.values()])
    assert piqa["n_models"] == len(curves)
    assert piqa["snr"] == pytest.approx((max(final) - min(final)) / np.mean(final) / noise, **EXACT)


def test_pythia_slopes_over_tokens(panels: dict[str, Path]) -> None:
    found = estimate(panels["pythia"], metric="acc", step_axis="PT", step_dose=2_097_152.0, models=["*-6.9b"])
    scores = (
        Panel.open(panels["pythia"])
        .scores()
        .filter(pl.col("metric") == "acc", ~pl.col("is_group"), pl.col("model").str.ends_with("-6.9b"))
    )
    assert found.slopes is not None
    table = {row["task"]: row for row in found.slopes.items.iter_rows(named=True)}
    for (task,), mine in scores.select("task", "step", "value").collect().group_by("task"):
        x, y = mine["step"].to_numpy() * 2_097_152 / 1e9, mine["value"].to_numpy()
        (slope, _), ((variance, _), _) = np.polyfit(x, y, 1, cov="unscaled")
        residual = y - np.polyval(np.polyfit(x, y, 1), x)
        error = math.sqrt(variance * (residual @ residual) / (len(x) - 2))
        assert table[str(task)]["slope_pt"] == pytest.approx(slope, rel=1e-9, abs=1e-14)
        assert table[str(task)]["slope_pt_se"] == pytest.approx(error, rel=1e-9)


def row_of_docs(start: str) -> str:
    text = (Path(__file__).parents[1] / "docs" / "explanation" / "estimators.md").read_text(encoding="utf-8")
    (row,) = [line for line in text.splitlines() if line.startswith(f"| {start}")]
    return row


def test_the_figures_of_the_documents(panels: dict[str, Path]) -> None:
    """Every figure of the table of public panels, as the estimators have it (and the loops above)."""
    items = estimate(panels["hans"]).noise
    assert items is not None
    sigma2 = items.items["sigma2"]
    row = row_of_docs("HANS")
    assert f"mean sigma2 {sigma2.mean():.4f}; {int((sigma2 == 0).sum()):,} items never change" in row
    by_task = estimate(panels["hans"], level_of="task").noise
    assert by_task is not None
    table = {one["task"]: one for one in by_task.items.iter_rows(named=True)}
    mnli, lexical = table["MNLI dev acc."], table["Lexical (nonent)"]
    row = row_of_docs("the same, accuracy")
    assert f"MNLI accuracy {mnli['mean_score']:.4f}, sigma {math.sqrt(mnli['sigma2']):.4f}" in row
    assert f"{lexical['mean_score']:.3f}, sigma {math.sqrt(lexical['sigma2']):.3f}" in row
    assert f"(sigma2 {lexical['sigma2']:.4f}, {lexical['sigma2_lo']:.4f} to {lexical['sigma2_hi']:.4f})" in row
    noises = estimate(panels["noises"]).noise
    assert noises is not None
    row = row_of_docs("All the noises")
    assert f"{noises.items['sigma2'].count():,} items with several trials" in row
    for task, name in (("gpqa_cot", "GPQA"), ("gsm8k_cot", "GSM8K"), ("math500_cot", "MATH500")):
        median = noises.items.filter(pl.col("task") == task)["sigma2"].median()
        assert f"{median:.3f} on {name}" in row
    copying = estimate(panels["polypythia"], models=["pythia-*"])
    assert copying.noise is not None
    assert copying.models is not None
    one = copying.noise.items.row(0, named=True)
    row = row_of_docs("PolyPythias")
    assert f"sigma2 {one['sigma2']:.5f} ({one['sigma2_lo']:.5f} to {one['sigma2_hi']:.5f}; 472" in row
    assert f"{one['sigma2_df']:.0f} effective" in row
    assert f"160m first at {copying.models.frame['score'][0]:.3f}" in row
    olmo = estimate(panels["olmo2"]).slopes
    assert olmo is not None
    above, below = (olmo.items["slope_pt_lo"] > 0).sum(), (olmo.items["slope_pt_hi"] < 0).sum()
    assert (above, below) == (3, 0)
    assert f"{above} of 192 slopes above 0 beyond doubt, none below" in row_of_docs("OLMo-2")
    pythia = estimate(panels["pythia"], metric="acc")
    snr = dict(pythia.aggregate.snr.select("scope", "snr").iter_rows())
    row = row_of_docs("Pythia, 65 tasks")
    assert f"{snr['piqa']:.0f} on PIQA, {snr['hendrycksTest-anatomy']:.0f} on MMLU anatomy" in row
    assert pythia.models is not None
    ranks = {
        name: (low, high) for name, low, high in pythia.models.frame.select("name", "rank_lo", "rank_hi").iter_rows()
    }
    for size in ("6.9b", "1.4b"):
        low, high = ranks[f"EleutherAI/pythia-v1.1-{size}"]
        assert re.search(rf"{re.escape(size)} (may rank )?{low} to {high}", row)
    tokens = estimate(panels["pythia"], metric="acc", step_axis="PT", step_dose=2_097_152.0, models=["*-6.9b"]).slopes
    assert tokens is not None
    piqa = tokens.items.filter(pl.col("task") == "piqa").row(0, named=True)
    assert f"{piqa['slope_pt']:.5f} per 10^9 tokens (standard error {piqa['slope_pt_se']:.5f})" in row_of_docs(
        "the same, slopes"
    )
