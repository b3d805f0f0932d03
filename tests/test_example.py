"""The built-in example: what ships, that its files are what the lab writes, and the story of its page."""

from __future__ import annotations

import importlib
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from scipy.stats import kendalltau

import benchwright as bw
from benchwright import built_in
from benchwright.built_in import FOLDER, MEASURED, PANEL
from benchwright.cli import main
from benchwright.config import Config
from benchwright.errors import UsageError
from benchwright.game_answers.answer import GameAnswer
from benchwright.panel.exported import SCHEMA
from benchwright.report.figures import figures
from benchwright.report.findings import findings
from benchwright.report.html import render_page
from benchwright.report.page_audit import audit_page
from benchwright.report.summary import summary_text
from benchwright.report.tables import tables

if TYPE_CHECKING:
    from benchwright.report.contents import AuditReport

LAB = Path(__file__).parents[1] / "examples" / "lab"
FEW = {"resampling.replicates": 100, "estimates.replicates": 100, "published.draws": 40}
MEGABYTE = 1_000_000
RISE = 3.0  # standard errors


def few(**choices: Any) -> Config:
    named = {key.replace("__", "."): value for key, value in choices.items()}
    return Config().replace(FEW | named, source="benchwright.toml")


@pytest.fixture(scope="module")
def report() -> AuditReport:
    return bw.audit(config=few())


@pytest.fixture(scope="module")
def page(report: AuditReport) -> str:
    return render_page(audit_page(report), figures(report), "")


@pytest.fixture(scope="module")
def scores() -> pl.DataFrame:
    size = pl.col("model").str.extract(r"(\d+)$").cast(pl.Int64)
    return pl.read_csv(FOLDER / "scores.csv").with_columns(size=size).sort("step", "size")


def game_of(report: AuditReport) -> GameAnswer:
    assert isinstance(report.game, GameAnswer)
    return report.game


def files() -> list[Path]:
    return sorted(path for path in FOLDER.rglob("*") if path.is_file())


def test_it_is_small() -> None:
    parquet = sorted(FOLDER.rglob("*.parquet"))
    assert [path.name for path in parquet] == ["acc.parquet", "margin.parquet", "p_gold.parquet"]
    assert max(path.stat().st_size for path in parquet) < MEGABYTE
    assert sum(path.stat().st_size for path in files()) < 3 * MEGABYTE


def test_its_readme_names_every_file() -> None:
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    for path in files():
        assert path.name == "README.md" or f"`{path.relative_to(FOLDER).as_posix()}`" in text


def test_its_panel_is_whole() -> None:
    panel = pl.read_parquet(PANEL / "*.parquet")
    assert set(SCHEMA) < set(panel.columns)
    assert sorted(panel["metric"].unique()) == ["acc", "margin", "p_gold"]
    assert panel["value"].is_finite().all()
    key = ["model", "seed", "axis", "step", "task", "doc_id", "metric"]
    assert not panel.select(key).is_duplicated().any()
    runs = panel.select("run_name").n_unique()
    items = panel.select("task", "doc_id").n_unique()
    assert items >= 1_200
    assert panel.height == 3 * runs * items
    assert panel.group_by("model").agg(pl.col("seed").n_unique())["seed"].min() >= 3  # type: ignore[operator]


@pytest.fixture
def lab_modules() -> Iterator[Any]:
    sys.path.append(str(LAB))
    yield importlib.import_module("make_lab"), importlib.import_module("pack"), importlib.import_module("ship")
    sys.path.remove(str(LAB))


def test_it_has_the_form_that_the_lab_writes(lab_modules: Any, tmp_path: Path) -> None:
    """A small lab with made-up scores, packed as the lab packs its own."""
    make_lab, pack, ship = lab_modules
    lab = make_lab.Lab(world=make_lab.World(12, 10), seeds=(0,))
    items, rng = lab.world.items("test"), np.random.default_rng(0)
    values = {name: rng.uniform(size=len(items)) for name in pack.DIGITS}
    scored = [pack.Scored(lab.middle, 0, axis, 10, 10, values) for axis in pack.UNITS]
    (tmp_path / "panel").mkdir()
    for name in pack.DIGITS:
        pack.write(pack.rows(scored, items, name), tmp_path / "panel" / f"{name}.parquet")
    pack.run_facts(lab).write_csv(tmp_path / "runs.csv")
    (tmp_path / "benchwright.toml").write_bytes((FOLDER / "benchwright.toml").read_bytes())
    lists = [
        {"task": item.task, "doc_id": item.doc_id, "perspective": framing, "model": "m", "baseline": True}
        | {"ranked_gwa_ids": ["analyzing_data"], "text_sha256": "x"}
        for item in items
        for framing in ("automation", "augmentation")
    ]
    pack.write_lines(tmp_path / "welfare" / "judge_loadings.jsonl", lists)
    (tmp_path / "tuning").mkdir()
    (tmp_path / "tuning" / "scores.csv").write_bytes((FOLDER / "scores.csv").read_bytes())
    (tmp_path / "tuning" / "game-lab.toml").write_text("race = true\n", encoding="utf-8")
    for size in lab.sizes:
        done = tmp_path / "work" / f"{size.name}-seed0" / f"step-{lab.pretraining.steps}" / "done.json"
        done.parent.mkdir(parents=True)
        done.write_text(json.dumps({"parameters": size.hidden}), encoding="utf-8")
    made = ship.ship(lab, tmp_path, pack.PUBLISHED)
    names = [path.relative_to(made) for path in sorted(made.rglob("*")) if path.is_file()]
    assert names == [path.relative_to(FOLDER) for path in files()]
    for name in names:
        if name.suffix == ".parquet":
            assert pl.read_parquet_schema(made / name) == pl.read_parquet_schema(FOLDER / name)
        elif name.suffix == ".csv":
            assert pl.read_csv(made / name, n_rows=0).columns == pl.read_csv(FOLDER / name, n_rows=0).columns
        elif name.suffix == ".jsonl":
            lines = [(folder / name).read_text(encoding="utf-8").splitlines()[0] for folder in (made, FOLDER)]
            assert list(json.loads(lines[0])) == list(json.loads(lines[1]))
    assert (made / "welfare" / ship.VALUES).read_bytes() == (FOLDER / "welfare" / ship.VALUES).read_bytes()
    assert (made / "welfare" / "families.csv").read_bytes() == (FOLDER / "welfare" / "families.csv").read_bytes()


def test_judges_whose_framings_differ_do_not_fit_on_a_line(lab_modules: Any) -> None:
    line = {"task": "t", "doc_id": 1, "model": "m", "baseline": True}
    lists = [line | {"ranked_gwa_ids": [name]} for name in ("a", "b")]
    with pytest.raises(SystemExit, match="framings differ"):
        lab_modules[2].compact(lists)


def test_tuning_lifts_the_largest_and_orders_the_sizes(scores: pl.DataFrame) -> None:
    untuned, tuned = (scores.filter(step=step) for step in (0, scores["step"].max()))
    first, last = untuned.row(-1, named=True), tuned.row(-1, named=True)
    assert first["model"] == last["model"]
    assert last["score"] - first["score"] >= RISE * np.hypot(first["stderr"], last["stderr"])
    before, after = (kendalltau(frame["size"], frame["score"]).statistic for frame in (untuned, tuned))
    assert after >= max(0.6, before)


def test_every_part_of_the_product_has_an_answer(report: AuditReport) -> None:
    assert set(report.audit.sections) >= {"welfare", "improvability", "noise"}
    assert report.weights is not None
    assert report.weights.uncertainty is not None
    assert report.weights.axes == ("PT", "RL", "SFT")
    assert report.board is not None
    assert report.no_leaderboard is None
    assert report.evidence is not None
    assert report.evidence.baseline
    assert {finding.section for finding in findings(report)} == {
        *("weights", "models", "welfare", "improvability", "noise", "quality", "game")
    }


def test_the_board_is_that_of_untuned_models(report: AuditReport, scores: pl.DataFrame) -> None:
    assert report.estimates is not None
    assert report.estimates.models is not None
    assert report.board is not None
    names = set(scores["model"])
    assert set(report.estimates.models.frame["name"]) == set(report.board.frame["model"]) == names
    panel = pl.read_parquet(PANEL / "p_gold.parquet").filter(axis="PT")
    last = panel.filter(pl.col("step") == pl.col("step").max()).group_by("model").agg(pl.col("value").mean())
    found = dict(report.estimates.models.frame.select("name", "score").iter_rows())
    assert found == pytest.approx(dict(last.iter_rows()))


def test_its_game_has_a_threshold_and_a_race(report: AuditReport) -> None:
    game = game_of(report)
    assert game.threshold is not None
    assert game.threshold.status == "found"
    assert game.solution.pure_equilibrium == "none"  # type: ignore[union-attr]
    assert game.arms_race is not None
    assert game.race_over_tuning is not None
    assert game.designer is not None
    assert np.isfinite(game.designer.bill)


def test_its_prices_are_of_one_size_with_its_budget(report: AuditReport) -> None:
    """A point of score is bought for less than the budget, and not for a millionth of it."""
    assert report.audit.improvability is not None
    median = report.audit.improvability.by_axis["median_usd_per_unit"].drop_nulls()
    budget = report.config.lab.budget
    assert budget < 1.0
    assert ((median < 10 * budget) & (median > budget / 1000)).all()


def test_the_page_says_what_was_measured(page: str, report: AuditReport) -> None:
    assert MEASURED[0] in page
    assert MEASURED[1] in page
    assert "Baseline, no judge." in page
    assert "simulat" not in page.lower()
    assert not report.source.simulated
    assert "not available" not in page
    assert not re.search(r"\$[\d.]+e-", page)
    for table in tables(report):
        assert "e-" not in "".join(cell for row in table.rows() for cell in row if cell.startswith("$"))
    for path in (*PANEL.glob("*.parquet"), built_in.RUNS, FOLDER / "benchwright.toml"):
        assert path.name in page
    assert "the built-in example" in {one.source for one in report.config.assumptions()}
    assert str(FOLDER.parent) not in page


@pytest.mark.slow
def test_the_command_gives_the_same_bytes(
    report: AuditReport, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "benchwright.toml").write_text(
        "\n".join(["[resampling]", "replicates = 100", "[estimates]", "replicates = 100", "[published]", "draws = 40"]),
        encoding="utf-8",
    )
    monkeypatch.setattr(sys, "argv", ["benchwright", "audit", "--json", "--no-report", "--no-figures"])
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code in (0, None)
    printed = capfd.readouterr().out
    assert printed == (tmp_path / "out" / "summary.json").read_text(encoding="utf-8")
    assert printed == summary_text(report)


def test_a_user_goes_before_the_example() -> None:
    chosen = built_in.over_example(few(lab__budget=2.0))
    assert chosen.lab.budget == 2.0
    assert chosen.sources["lab.budget"] == "benchwright.toml"
    assert chosen.estimates.metric == "p_gold"
    assert chosen.sources["estimates.metric"] == built_in.NAME
    assert chosen.prices["SFT"].unit == "example"
    assert chosen.prices["SFT"].usd < 0.001
    dear = built_in.over_example(Config().replace({"prices.SFT": 3.0}, source="--set"))
    assert (dear.prices["SFT"].usd, dear.prices["PT"].usd < 0.001) == (3.0, True)


def test_sections_and_files_of_ones_own(tmp_path: Path) -> None:
    game = tmp_path / "game.toml"
    text = built_in.GAME.read_text(encoding="utf-8").replace('"scores.csv"', json.dumps(str(FOLDER / "scores.csv")))
    game.write_text(text.replace("race = true", "race = false"), encoding="utf-8")
    report = bw.audit(config=few(estimates__metric="acc"), without=["welfare", "noise"], game=game)
    assert report.audit.welfare is None
    assert report.weights is None
    assert report.estimates is not None
    assert set(report.estimates.measured.metrics.values()) == {"acc"}
    assert game_of(report).arms_race is None
    with pytest.raises(UsageError, match="`loadings` needs the welfare tables"):
        bw.audit(without=["welfare"], loadings=[built_in.WELFARE], game=game)


def test_a_metric_of_other_logs_does_not_count_unless_it_is_asked_for() -> None:
    other = {"estimates.metric": "choice:p_gold"}
    chosen = built_in.over_example(Config().replace(other, source="benchwright.toml"))
    assert (chosen.estimates.metric, chosen.sources["estimates.metric"]) == ("p_gold", built_in.NAME)
    assert built_in.over_example(Config().replace(other, source="--metric")).estimates.metric == "choice:p_gold"
    measured = Config().replace({"estimates.metric": "acc"}, source="benchwright.toml")
    assert built_in.over_example(measured).estimates.metric == "acc"
