"""Intervals hold the truth as often as they say on simulated panels, and what was not chosen does worse."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchwright.config import Config
from benchwright.estimating.estimates import MODELS, NOISE, SLOPES, PanelEstimates, estimate_panel
from benchwright.panel.ingest import read_logs
from benchwright.simulate import PanelSimulation, SimulatedPanel, draw_panel, to_frame
from by_path import loaded

PANELS = 2000


study, few_clusters = loaded("studies", "coverage"), loaded("studies", "few_clusters")
MAIN = {share: replace(study.MAIN, persistent=share) for share in (0.0, 0.3, 0.8)}
EQUAL = {share: study.ranked(0.0, persistent=share) for share in MAIN}
JUDGES = {"variance": study.variance_coverage, "slope": study.slope_coverage, "mean": study.mean_coverage}
persistent = pytest.mark.parametrize("share", MAIN)


def rng() -> np.random.Generator:
    return np.random.default_rng(20)


def default(found: dict[str, Any]) -> Any:
    return next(iter(found.values()))


def as_stated(one: Any) -> bool:
    assert one.none == 0
    return bool(0.93 <= one.share <= 0.97)


@persistent
@pytest.mark.parametrize("quantity", JUDGES)
def test_defaults_hold_at_8_seeds_and_10_checkpoints(quantity: str, share: float) -> None:
    assert as_stated(default(JUDGES[quantity](MAIN[share], PANELS, rng(), others=False)))


@persistent
@pytest.mark.slow
def test_rank_sets_of_equal_models_hold_at_8_seeds_and_10_checkpoints(share: float) -> None:
    assert as_stated(default(study.rank_coverage(EQUAL[share], PANELS, rng(), others=False)))


@pytest.mark.parametrize("seeds", [3, 5, 20])
@pytest.mark.parametrize("quantity", JUDGES)
def test_defaults_hold_with_few_and_many_seeds(quantity: str, seeds: int) -> None:
    assert as_stated(default(JUDGES[quantity](replace(study.MAIN, n_seeds=seeds), PANELS, rng(), others=False)))


@pytest.mark.parametrize("quantity", JUDGES)
def test_defaults_hold_with_two_checkpoints(quantity: str) -> None:
    assert as_stated(default(JUDGES[quantity](replace(study.MAIN, n_checkpoints=2), PANELS, rng(), others=False)))


@pytest.mark.parametrize("quantity", ["slope", "mean"])
def test_t_intervals_hold_where_cells_are_missing_and_tails_heavy(quantity: str) -> None:
    for changes in ({"missing": 0.1}, {"distribution": "t5"}):
        found = JUDGES[quantity](replace(study.MAIN, **changes), PANELS, rng(), others=False)
        assert as_stated(default(found)), changes


@pytest.mark.slow
def test_variances_need_effective_degrees_of_freedom_and_no_bootstrap() -> None:
    nominal, bootstrap = {}, {}
    for share, given in MAIN.items():
        found = study.variance_coverage(given, PANELS, rng())
        nominal[share], bootstrap[share] = found["nominal df"].share, found["seed bootstrap"].share
    assert 0.93 <= nominal[0.0] <= 0.97, "right where nothing stays with a seed"
    assert nominal[0.3] < 0.90
    assert nominal[0.8] < 0.60
    assert all(bootstrap[share] < nominal[share] - 0.015 for share in MAIN), "seeds drawn anew do not help"
    assert bootstrap[0.3] < 0.84
    assert bootstrap[0.8] < 0.55
    few = study.variance_coverage(replace(study.MAIN, n_seeds=3), PANELS, rng())
    assert few["seed bootstrap"].share < 0.82


@pytest.mark.slow
def test_slopes_need_errors_by_seed_and_no_bootstrap() -> None:
    level = study.slope_coverage(MAIN[0.8], PANELS, rng())
    assert level["ols"].share > 0.99, "what a seed keeps counts as noise of slopes"
    assert level["ols"].width > 1.7 * level["seed"].width
    own = study.slope_coverage(MAIN[0.3], PANELS, rng(), own=0.05)
    assert as_stated(own["seed"])
    assert max(own[name].share for name in ("ols", "hc3", "residual bootstrap")) < 0.93
    few = study.slope_coverage(replace(MAIN[0.3], n_seeds=3), PANELS, rng(), own=0.05)
    assert as_stated(few["seed"])
    assert max(few[name].share for name in ("ols", "hc3", "residual bootstrap")) < 0.93


def test_slopes_of_single_runs_are_for_plain_least_squares() -> None:
    found = study.slope_coverage(study.SINGLE, PANELS, rng())
    assert as_stated(found["ols"])
    assert found["residual bootstrap"].share < 0.91
    assert found["hc3"].width > 1.1 * found["ols"].width


def test_means_are_for_t_over_seeds() -> None:
    for seeds, most in ((3, 0.80), (8, 0.915)):
        found = study.mean_coverage(replace(study.MAIN, n_seeds=seeds), PANELS, rng())
        assert as_stated(found["t over seeds"])
        assert found["seed bootstrap"].share < most
    assert found["normal over items"].share > 0.99, "how items differ is no noise of these items"
    assert found["normal over items"].width > 1.5 * found["t over seeds"].width
    many = study.mean_coverage(PanelSimulation(n_items=500, n_checkpoints=1, level_sd=0.05), PANELS, rng())
    assert as_stated(many["t over seeds"])
    assert many["normal over items"].share < 0.70, "more items do nothing against noise that they share"


@pytest.mark.slow
def test_ranks_are_for_simultaneous_sets() -> None:
    equal = study.rank_coverage(EQUAL[0.3], PANELS // 4, rng())
    assert equal["marginal, each"].share >= 0.93
    assert equal["marginal, all"].share < 0.90
    assert equal["seed bootstrap, all"].share < 0.01
    assert equal["seed bootstrap, each"].share < 0.30
    close = study.rank_coverage(study.RANKED["means 0.5 standard errors apart"], PANELS // 4, rng())
    assert close["simultaneous, all"].share >= 0.95
    assert close["seed bootstrap, all"].share < 0.80
    apart = study.rank_coverage(study.ranked(12.0), PANELS // 4, rng())
    assert apart["simultaneous, all"].share >= 0.95
    assert apart["simultaneous, all"].width < 1.01, "and they tell models apart"


def product(drawn: SimulatedPanel, folder: Path) -> PanelEstimates:
    to_frame(drawn).write_csv(folder / "scores.csv")
    read_logs(folder / "scores.csv", folder / "panel", workers=1)
    return estimate_panel(folder / "panel")


def stream(number: int) -> np.random.Generator:
    return np.random.default_rng([Config().resampling.seed, number])


@pytest.mark.parametrize(
    "given",
    [
        PanelSimulation(n_items=12, n_seeds=4, n_checkpoints=5, slope_mean=0.3, slope_sd=0.03, seed=3),
        PanelSimulation(n_items=12, n_seeds=4, n_checkpoints=5, slope_mean=0.3, slope_sd=0.03, missing=0.05, seed=3),
        PanelSimulation(n_items=12, n_checkpoints=5, level=0.0, slope_mean=1.0, noise_sd=1.0, trials=1, seed=3),
    ],
    ids=["whole", "with gaps", "0 or 1"],
)
def test_the_product_prints_the_intervals_of_items_that_the_study_judges(
    given: PanelSimulation, tmp_path: Path
) -> None:
    drawn = draw_panel(given)
    values, m = drawn.values[:, 0], given.n_items
    dose = given.dose / Config().prices["PT"].units
    estimates = product(drawn, tmp_path)
    assert estimates.noise is not None
    assert estimates.slopes is not None
    variances = study.variance_intervals(values[None])["effective df"]
    slopes = study.slope_intervals(values[None], dose)["seed"]
    for table, name, ends in (
        (estimates.noise.items, "sigma2", variances),
        (estimates.slopes.items, "slope_pt", slopes),
    ):
        assert table["doc_id"].to_list() == list(range(m))
        for side, end in zip(("lo", "hi"), ends, strict=True):
            printed = table[f"{name}_{side}"].cast(float).to_numpy()
            assert printed == pytest.approx(end[0], rel=1e-9, nan_ok=True), (name, side)
    ranks = {"noise": estimates.noise.items, "cost": estimates.slopes.items}
    ends = {
        "noise": study.noise_ranks(values, stream(NOISE)),
        "cost": study.cost_ranks(values, dose, stream(SLOPES)),
    }
    for name, table in ranks.items():
        if table["rank"].null_count() == 0:  # the study ranks all items
            assert table["rank_lo"].to_list() == ends[name][0].tolist(), name
            assert table["rank_hi"].to_list() == ends[name][1].tolist(), name
    assert given.trials is not None or not any(table["rank"].null_count() for table in ranks.values())


def test_three_seeds_rank_items_by_noise_without_intervals(tmp_path: Path) -> None:
    given = PanelSimulation(n_items=12, n_seeds=3, n_checkpoints=5, slope_mean=0.3, slope_sd=0.03, seed=3)
    drawn = draw_panel(given)
    estimates = product(drawn, tmp_path)
    assert estimates.noise is not None
    assert estimates.slopes is not None
    noise, slopes = estimates.noise.items, estimates.slopes.items
    assert sorted(noise["rank"]) == sorted(slopes["rank"]) == list(range(1, 13))
    for name in ("rank_lo", "rank_hi", "noisiest_probability"):
        assert noise[name].null_count() == 12, name
    assert any("no intervals" in note for note in estimates.noise.notes)
    assert noise["sigma2_lo"].null_count() == slopes["rank_lo"].null_count() == 0, "the rest is there"
    assert np.isnan(study.noise_ranks(drawn.values[:, 0], stream(NOISE))).all()
    section = replace(study.SECTIONS["items"][0], rows={"few": replace(study.APART, n_seeds=3)}, part=1.0)
    row = study.table(section, 2, (0,)).splitlines()[-1].split(" | ")
    assert (row[1], row[3]) == ("NaN", "100.0 % |")
    assert "(" in row[2]


def test_the_product_prints_the_intervals_of_models_that_the_study_judges(tmp_path: Path) -> None:
    drawn = draw_panel(PanelSimulation(n_items=30, n_seeds=4, n_checkpoints=2, n_models=5, missing=0.02, seed=4))
    ranking = product(drawn, tmp_path).models
    assert ranking is not None
    table = ranking.frame.sort("name")
    last = drawn.values[..., -1]
    common = ~np.isnan(last).any(axis=(1, 2))
    assert 0 < common.sum() < 30
    for model, (low, high) in enumerate(table.select("score_lo", "score_hi").rows()):
        found, counted = study.mean_intervals(last[None, common, model])
        assert counted.all()
        assert [end[0, 0] for end in default(found)] == pytest.approx([low, high], rel=1e-9)
    sets = study.rank_set(last[common].mean(axis=0), stream(MODELS))
    assert table["rank_lo"].to_list() == sets.lo.tolist()
    assert table["rank_hi"].to_list() == sets.hi.tolist()


def test_shares_are_counted_as_a_plain_loop_does() -> None:
    draw = rng()
    low = draw.normal(size=(50, 4)) - 1
    high = low + draw.exponential(size=(50, 4)) * 2
    low[draw.random((50, 4)) < 0.2] = np.nan
    truth = np.array([-0.5, 0.0, 0.0, 0.5])
    held = [
        [a <= t <= b for a, b, t in zip(*row, truth, strict=True) if not np.isnan(a)]
        for row in zip(low, high, strict=True)
    ]
    flat = [one for row in held for one in row]
    found = study.covered((low, high), truth)
    assert found.share == pytest.approx(sum(flat) / len(flat))
    assert found.none == pytest.approx(1 - len(flat) / 200)
    assert found.width == pytest.approx(float(np.nanmedian(high - low)))
    each = study.covered((np.array([[1, 1], [2, 1]]), np.array([[2, 1], [2, 2]])), np.array([1, 2]), np.array([2, 2]))
    assert (each.share, each.width) == (0.5, 1.5)
    both = study.covered(
        (np.ones((4, 2)), np.array([[2, 2], [2, 1], [2, 2], [1, 2]])), np.ones(2), 2 * np.ones(2), at_once=True
    )
    assert both.share == 0.5


def test_standard_errors_are_those_of_panels() -> None:
    of_panel = np.repeat([1.0, -1.0], [900, 100])[:, None] * np.ones(5)
    found = study.covered((of_panel - 1, of_panel + 1), np.ones(5))
    assert found.share == 0.9
    assert found.error == pytest.approx(np.sqrt(0.9 * 0.1 / 1000))


def test_the_script_prints_a_table_and_writes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "coverage.md"
    monkeypatch.setattr(sys, "argv", ["coverage.py", "--panels", "3", "--only", "mean", "-o", str(out)])
    assert study.main() == 0
    printed = capsys.readouterr()
    assert out.read_text(encoding="utf-8") == printed.out
    rows = [line for line in printed.out.splitlines() if line.startswith("|")]
    assert len(rows) == 2 + len(study.SETTINGS | study.FOR_MEANS)
    assert len({row.count("|") for row in rows}) == 1
    assert "persistent 0.3" in printed.err


def test_means_over_few_clusters_need_t_and_clusters() -> None:
    for clusters in (4, 10, 30):
        default, normal, independent = few_clusters.coverage(clusters, 5, 10_000, rng())
        assert 0.93 <= default <= 0.97
        assert normal < default
        assert independent < 0.85
