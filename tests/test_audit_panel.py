"""``audit PANEL``: every column of the item layer, weights, a leaderboard, and what bad panels get instead."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from benchwright.audit_inputs import is_panel
from benchwright.cli import app
from benchwright.config import Config
from benchwright.errors import DataError, UsageError
from benchwright.mechanism.item_weights import weigh_items
from benchwright.mechanism.moved_slopes import behind_the_weights
from benchwright.panel.ingest import read_logs
from benchwright.panel.panel import Panel
from benchwright.pipeline import audit
from benchwright.report.build import write_report
from benchwright.report.contents import AuditReport
from benchwright.simulate import PanelSimulation, SimulatedAxis, draw_grid, draw_panel, simulate_item_tables, to_frame
from test_olmes import metrics, prediction

AXES = (
    SimulatedAxis("PT", (0.0, 20e9, 60e9, 120e9, 200e9), slope_mean=1.5e-12, slope_sd=5e-13),
    SimulatedAxis("SFT", (0.0, 2e3, 6e3, 12e3, 20e3), slope_mean=1.2e-5, slope_sd=5e-6),
    SimulatedAxis("RL", (0.0, 2e3, 6e3, 12e3, 20e3), slope_mean=8e-6, slope_sd=6e-6),
)
N_ITEMS = 24


def grids() -> pl.DataFrame:
    simulation = PanelSimulation(n_items=N_ITEMS, n_tasks=3, n_seeds=2, noise_sd=0.03, seed=5)
    return to_frame(draw_grid(simulation, AXES, rng=np.random.default_rng(3))).with_columns(model=pl.lit("lab/tuned"))


def seeds(n_models: int = 1) -> pl.DataFrame:
    simulation = PanelSimulation(n_items=N_ITEMS, n_tasks=3, n_seeds=4, n_checkpoints=3, n_models=n_models, seed=5)
    drawn = to_frame(draw_panel(simulation, rng=np.random.default_rng(4)))
    return drawn.with_columns(axis=pl.lit(None, dtype=pl.String), dose=pl.lit(None, dtype=pl.Float64))


def ingested(folder: Path, *frames: pl.DataFrame) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for place, frame in enumerate(frames):
        frame.with_columns(pl.col("score").clip(0.0, 1.0)).write_csv(folder / f"log{place}.csv")
    read_logs(sorted(folder.glob("*.csv")), folder / "panel", workers=1)
    return folder / "panel"


@pytest.fixture(scope="module")
def panel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return ingested(tmp_path_factory.mktemp("whole"), grids(), seeds(3))


@pytest.fixture(scope="module")
def welfare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("welfare")
    items = grids().select("task", "doc_id").unique().sort("task", "doc_id")
    rng = np.random.default_rng(6)
    drawn = {name: rng.uniform(2.5, 11.0, items.height) for name in ("w_auto", "w_aug")}
    items.with_columns(**drawn).write_csv(folder / "welfare.csv")
    return folder


@pytest.fixture(scope="module")
def report(panel: Path, welfare: Path) -> AuditReport:
    return audit(panel, welfare=welfare)


def test_the_item_layer_has_every_column_of_the_product(report: AuditReport) -> None:
    items = report.items
    assert items.height == N_ITEMS
    wanted = ["w_auto", "w_aug", "quadrant", "on_frontier", "anchor", "cost_usd", "cheapest_axis", "cost_eligible"]
    wanted += ["cost_rank", "cost_rank_lo", "cost_rank_hi", "mean_score", "sigma2", "sigma2_lo", "sigma2_hi", "z"]
    wanted += ["noise_eligible", "noise_rank", "noise_rank_lo", "noise_rank_hi", "noisiest_probability"]
    wanted += ["dead", "item_rest_r", "quality_verdict", "weight", "weight_lo", "weight_hi", "weight_positive"]
    for axis in ("pt", "sft", "rl"):
        wanted += [f"slope_{axis}{end}" for end in ("", "_se", "_lo", "_hi", "_n", "_logit", "_corrected", "_eb")]
        wanted += [f"cost_{axis}_usd"]
    assert set(wanted) <= set(items.columns)
    filled = items.select(name for name in wanted if name not in ("item_rest_r",))
    lacking = {name: n for name, n in filled.null_count().row(0, named=True).items() if n == N_ITEMS}
    assert lacking == {}
    assert items.filter(pl.col("sigma2_lo") > pl.col("sigma2")).height == 0
    assert items.filter(pl.col("slope_pt_lo") > pl.col("slope_pt")).height == 0
    assert report.weights is not None
    assert report.no_leaderboard is None


def test_slopes_come_in_the_units_of_their_price(report: AuditReport, panel: Path) -> None:
    rows = Panel.open(panel).rows().filter(pl.col("axis") == "SFT").collect()
    first = report.items.row(0, named=True)
    mine = rows.filter(pl.col("task") == first["task"], pl.col("doc_id") == str(first["doc_id"]))
    slope = np.polyfit(mine["dose"].to_numpy() / 1e3, mine["value"].to_numpy(), 1)[0]
    assert first["slope_sft"] == pytest.approx(slope, rel=1e-9)
    assert first["cost_sft_usd"] == pytest.approx(0.2 / slope if slope > 0 else None, rel=1e-9)


def test_a_folder_is_written_whole_and_is_the_same_twice(
    report: AuditReport, panel: Path, welfare: Path, tmp_path: Path
) -> None:
    write_report(report, tmp_path / "one", page=False, figures=False)
    write_report(audit(panel, welfare=welfare), tmp_path / "two", page=False, figures=False)
    texts = [(tmp_path / name / "summary.json").read_bytes() for name in ("one", "two")]
    assert texts[0] == texts[1]
    summary = json.loads(texts[0])
    assert summary["leaderboard"] == {"written": True, "why": None}
    assert summary["panel"]["n_runs"] == len(AXES) * 5 * 2 + 3 * 4 * 3
    board = pl.read_csv(tmp_path / "one" / "leaderboard.csv")
    assert board["rank"].to_list() == sorted(board["rank"])
    assert board.filter((pl.col("rank") < pl.col("rank_lo")) | (pl.col("rank") > pl.col("rank_hi"))).height == 0
    weights = pl.read_csv(tmp_path / "one" / "weights.csv")
    assert {"weight_lo", "weight_hi", "weight_positive"} <= set(weights.columns)


@pytest.mark.slow
def test_what_the_weights_rest_on_is_a_choice(report: AuditReport) -> None:
    assert report.estimates is not None
    shares = {}
    for key, value in (
        ("estimates.slopes", "ols"),
        ("estimates.slopes", "noise-corrected"),
        ("estimates.slopes", "empirical-bayes"),
        ("estimates.covariance", "full"),
    ):
        config = Config().replace({key: value}, source="test")
        weighed = weigh_items(report.audit, config, estimates=report.estimates)
        shares[value] = weighed.items["weight"].to_numpy()
        if value == "full":
            assert weighed.model.noise_factor is not None
            assert weighed.model.noise_factor.shape[1] > 0
    assert report.weights is not None
    assert np.array_equal(shares["ols"], report.weights.items["weight"].to_numpy())
    for name in ("noise-corrected", "empirical-bayes", "full"):
        assert not np.allclose(shares[name], shares["ols"], rtol=1e-3)


@pytest.mark.parametrize("kind", ["ols", "noise-corrected", "empirical-bayes"])
def test_draws_of_weights_treat_slopes_as_the_weights_did(report: AuditReport, kind: str) -> None:
    """What a draw of b becomes is, at the estimate itself, the slope that the weights rest on."""
    assert report.estimates is not None
    assert report.estimates.slopes is not None
    items = report.estimates.slopes.items.drop_nulls("slope_pt_se")
    assert items.height > 10
    b = items["slope_pt"].to_numpy()[:, None]
    start, share = behind_the_weights(items, "PT", kind)
    column = "slope_pt" + {"ols": "", "noise-corrected": "_corrected", "empirical-bayes": "_eb"}[kind]
    np.testing.assert_allclose((start + share * (b - start))[:, 0], items[column], rtol=1e-9)
    assert ((share >= 0) & (share <= 1)).all()


def test_without_seeds_weights_need_a_prior_or_no_risk(welfare: Path, tmp_path: Path) -> None:
    one = ingested(tmp_path, grids().filter(pl.col("seed") == 1))
    plain = audit(one, welfare=welfare)
    assert plain.audit.noise is None
    assert plain.weights is None
    assert plain.no_weights is not None
    assert "noise" in plain.no_weights
    assert any("lab.noise_prior" in note for note in plain.notes)
    for choice in ({"lab.noise_prior": 0.001}, {"lab.risk_aversion": 0}):
        weighed = audit(one, welfare=welfare, config=Config().replace(choice, source="test")).weights
        assert weighed is not None
        assert weighed.items["weight"].is_finite().all()


def test_identical_seeds_have_no_noise_and_no_interval(tmp_path: Path) -> None:
    same = seeds().filter(pl.col("seed") == 1)
    panel = ingested(tmp_path, *(same.with_columns(seed=pl.lit(seed)) for seed in (1, 2, 3)))
    found = audit(panel)
    assert found.audit.noise is not None
    items = found.audit.noise.items
    assert items["sigma2"].to_list() == [0.0] * N_ITEMS
    assert items.select("sigma2_lo", "sigma2_hi", "noise_rank").null_count().row(0) == (N_ITEMS,) * 3
    assert any("identical" in note for note in found.notes)
    assert found.estimates is not None
    assert found.estimates.models is not None
    assert found.estimates.models.uncertainty.startswith("drawing other items")
    assert found.estimates.aggregate.components.height == 0
    assert set(found.estimates.quality.dead) == {"cannot tell"}, (
        "one training of copies tells of no item that it is dead"
    )


def test_one_dose_and_no_price_say_why(tmp_path: Path) -> None:
    frame = grids().filter(pl.col("axis").is_in(["PT", "SFT"]) & ((pl.col("axis") == "PT") | (pl.col("dose") == 0)))
    frame = frame.with_columns(axis=pl.col("axis").replace({"PT": "DISTIL"}))
    found = audit(ingested(tmp_path, frame))
    assert found.audit.improvability is not None
    assert found.audit.improvability.axes == ("DISTIL",)
    items = found.audit.improvability.items
    assert items["slope_distil"].null_count() == 0
    assert items["cost_distil_usd"].null_count() == items.height
    assert any("Axis SFT: a single dose" in note for note in found.notes)
    assert any("Axis DISTIL has slopes but no price" in note for note in found.notes)
    assert found.no_weights is not None


def test_missing_cells_are_told_and_never_zero(tmp_path: Path) -> None:
    whole = seeds()
    gone = whole.filter(~((pl.col("doc_id").cast(pl.Int64) == 0) & (pl.col("seed") > 0)))
    found = audit(ingested(tmp_path, gone))
    assert found.audit.noise is not None
    items = found.audit.noise.items
    alone = items.filter(pl.col("doc_id") == 0)
    assert alone["sigma2"].null_count() == alone.height > 0
    assert alone["noise_why"].unique().to_list() == ["no two runs at one checkpoint"]
    assert any("missing" in note for note in found.notes)
    rest = items.filter(pl.col("doc_id") != 0)
    assert rest["sigma2"].null_count() == 0


def test_too_few_replicates_for_the_level(panel: Path) -> None:
    config = Config().replace({"estimates.replicates": 38}, source="test")
    with pytest.raises(
        UsageError, match=r"`estimates.replicates` must be at least 39 for intervals of level 0.95, got 38"
    ):
        audit(panel, config=config)


def test_welfare_of_other_items_is_refused(panel: Path, tmp_path: Path) -> None:
    (tmp_path / "welfare.csv").write_text("task,doc_id,w_auto,w_aug\nother,1,3,3\n", encoding="utf-8")
    with pytest.raises(DataError, match="names no item as the panel does"):
        audit(panel, welfare=tmp_path)


def test_arguments_of_a_panel_need_one(tmp_path: Path) -> None:
    arguments: list[dict[str, Any]] = [{"welfare": tmp_path}, {"runs": tmp_path}, {"engine": "duckdb"}]
    for given in arguments:
        with pytest.raises(UsageError, match="goes with a panel"):
            audit(simulate_item_tables(), **given)


def test_a_report_says_which_panel_it_read(panel: Path, report: AuditReport) -> None:
    (manifest,) = [one for one in report.source.files if one.name == "manifest.json"]
    assert manifest.sha256 == hashlib.sha256((panel / "manifest.json").read_bytes()).hexdigest()


def test_exported_rows_are_a_panel_too(panel: Path, tmp_path: Path, report: AuditReport) -> None:
    Panel.open(panel).export("rows", tmp_path / "rows.parquet")
    assert is_panel(tmp_path / "rows.parquet")
    assert is_panel(tmp_path)
    assert is_panel("s3://bucket/rows")
    again = audit(tmp_path / "rows.parquet")
    columns = ["task", "doc_id", "sigma2", "slope_pt", "slope_pt_se", "cost_rank_lo", "noise_rank_hi"]
    assert again.items.select(columns).equals(report.items.select(columns))


def test_sections_can_be_left_out(panel: Path) -> None:
    found = audit(panel, without=["noise"])
    assert found.audit.noise is None
    assert "sigma2" not in found.items.columns
    with pytest.raises(UsageError, match="must name sections"):
        audit(panel, without=["luck"])


def test_the_command_line_passes_everything_on(panel: Path, welfare: Path, tmp_path: Path) -> None:
    facts = tmp_path / "runs.csv"
    facts.write_text("model,name\nlab/tuned,mine\n", encoding="utf-8")
    command: list[Any] = ["audit", panel, "-o", tmp_path / "out", "--welfare", welfare, "--runs", facts]
    command += ["--metric", "score", "--set", "estimates.replicates=100", "--no-report", "--no-figures", "--json"]
    done = CliRunner().invoke(app, [str(part) for part in command])
    assert done.exit_code == 0, done.output
    summary = json.loads(done.stdout)
    assert {row["key"]: row["source"] for row in summary["assumptions"]}["estimates.metric"] == "--metric"
    assert "mine" in {row["name"] for row in summary["panel"]["models"]["ranks"]} | {"mine"}


@pytest.mark.parametrize("n_seeds", [1, 3])
def test_margins_come_from_choices_with_noise_and_without(n_seeds: int, tmp_path: Path) -> None:
    rng, ratios = np.random.default_rng(8), []
    for seed in range(n_seeds):
        name = f"seed{seed}"
        config = {"model": f"demo-lab/tiny-{name}", "revision": "main", "model_type": "hf"}
        told = metrics(model_config=config, model_hash=name)
        lines = []
        for item in range(6):
            line = prediction(item, 1, 0, model_hash=name, label=0)
            for output in line["model_output"]:
                output["sum_logits"] = -float(rng.uniform(2, 9))
            per_char = [output["sum_logits"] / output["num_chars"] for output in line["model_output"]]
            ratios.append((item, per_char[0] / max(per_char[1:])))
            lines.append(line)
        folder = tmp_path / "logs" / name
        folder.mkdir(parents=True)
        (folder / "task-000-arc_challenge-metrics.json").write_text(json.dumps(told), encoding="utf-8")
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (folder / "task-000-arc_challenge-predictions.jsonl").write_text(text, encoding="utf-8")
    read_logs(tmp_path / "logs", tmp_path / "panel", workers=1)
    items = audit(
        tmp_path / "panel", config=Config().replace({"estimates.metric": "choice:p_gold_char"}, source="x")
    ).items
    assert ("sigma2" in items.columns) == (n_seeds > 1)
    for item, ratio in items.select("doc_id", "margin_ratio").iter_rows():
        assert ratio == pytest.approx(np.median([value for place, value in ratios if place == item]), rel=1e-12)


def test_noise_of_trials_is_called_by_its_name(tmp_path: Path) -> None:
    drawn = draw_panel(
        PanelSimulation(n_items=12, n_seeds=1, n_checkpoints=2, trials=20, level=0.0, noise_sd=0.2, seed=1)
    )
    frame = to_frame(drawn).with_columns(n=pl.lit(20)).drop("axis", "dose")
    found = audit(ingested(tmp_path, frame))
    assert found.estimates is not None
    assert found.estimates.noise is not None
    assert found.estimates.noise.source == "trials"
    assert any("single trials" in note for note in found.notes)


def test_a_report_of_a_panel_without_estimates_is_not_made(report: AuditReport) -> None:
    tables_only = replace(report, estimates=None)
    assert tables_only.no_leaderboard is not None
