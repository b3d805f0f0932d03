"""Simulated panels: their moments are the stated ones, they are reproducible, and logs of them read back the same."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import integrate, stats
from scipy.special import expit

from benchwright.errors import UsageError
from benchwright.panel.ingest import read_logs
from benchwright.panel.panel import Panel
from benchwright.simulate import (
    PanelSimulation,
    SimulatedAxis,
    SimulatedGrid,
    SimulatedPanel,
    draw_grid,
    draw_panel,
    to_frame,
)

FloatArray = NDArray[np.float64]

SMALL = PanelSimulation(
    n_items=4, n_seeds=3, doses=(0.0, 1.0, 4.0), n_models=2, slope_mean=0.02, slope_sd=0.05, common=0.4, seed=5
)
ODDS = replace(SMALL, level=0.3, level_sd=0.8, slope_sd=0.4, model_sd=0.5, noise_sd=1.2, trials=1)
SIMULATIONS = {
    "normal": SMALL,
    "t5": replace(SMALL, distribution="t5"),
    "skewed": replace(SMALL, distribution="skewed", persistent=0.6),
    "independent": replace(SMALL, common=0.0, persistent=0.0),
    "shared": replace(SMALL, common=1.0, persistent=1.0),
    "one trial": ODDS,
    "five trials": replace(ODDS, trials=5, persistent=0.8),
}
AXES = (SimulatedAxis("PT", (0, 1, 2, 5), 0.02, 0.03), SimulatedAxis("RL", (0, 10), 0.004, 0.002))
LIMIT = 5.0  # standard errors; some hundred are looked at


def scores_of(draws: FloatArray, truth: FloatArray) -> FloatArray:
    """How many standard errors the means of draws (first axis) lie from the truth."""
    draws = draws.reshape(len(draws), -1)
    gap = draws.mean(axis=0) - np.asarray(truth).ravel()
    error = draws.std(axis=0, ddof=1) / np.sqrt(len(draws))
    still = np.where(np.abs(gap) < 1e-12, 0.0, np.inf)
    scores: FloatArray = np.abs(np.divide(gap, error, out=still, where=error > 1e-12))
    return scores


@pytest.fixture(scope="module", params=SIMULATIONS)
def many(request: pytest.FixtureRequest) -> SimulatedPanel:
    return draw_panel(SIMULATIONS[request.param], rng=np.random.default_rng(11), panels=20_000)


def test_means_are_the_stated_ones(many: SimulatedPanel) -> None:
    assert many.values.shape == (20_000, 4, 2, 3, 3)
    assert scores_of(many.values.mean(axis=3), many.expected).max() < LIMIT
    by_model = many.values.mean(axis=(3, 4))
    assert scores_of(by_model, many.mean).max() < LIMIT
    assert scores_of(by_model.mean(axis=1), many.benchmark_mean).max() < LIMIT


def test_variances_and_covariances_are_the_stated_ones(many: SimulatedPanel) -> None:
    deviations = many.values - many.expected[:, :, None, :]
    within = np.einsum("pijst,pkjst->pik", deviations, deviations) / 18
    assert scores_of(within, many.covariance).max() < LIMIT
    assert np.allclose(many.covariance.diagonal(), many.sigma2, rtol=1e-12)
    total = deviations.sum(axis=4)  # K of its K^2 pairs are of a checkpoint with itself
    between = np.einsum("pijs,pkjs->pik", total, total) / 6
    assert scores_of((between - 3 * within) / 6, many.persistent_covariance).max() < LIMIT
    pooled = many.values.var(axis=3, ddof=1).mean(axis=(2, 3))
    assert scores_of(pooled, many.sigma2).max() < LIMIT, "the usual estimate is unbiased for it"


def test_seeds_models_and_panels_are_independent(many: SimulatedPanel) -> None:
    by_run = many.values.mean(axis=4) - many.mean[..., None]
    assert scores_of(by_run[:, :, None, :, 0] * by_run[:, None, :, :, 1], np.zeros((4, 4, 2))).max() < LIMIT
    assert scores_of(by_run[:, :, None, 0] * by_run[:, None, :, 1], np.zeros((4, 4, 3))).max() < LIMIT
    assert scores_of(by_run[1:] * by_run[:-1], np.zeros((4, 2, 3))).max() < LIMIT


def test_least_squares_slopes_are_unbiased(many: SimulatedPanel) -> None:
    design = np.stack([np.ones(3), many.simulation.dose], axis=1)
    curves = np.moveaxis(many.values.mean(axis=(2, 3)), -1, 0).reshape(3, -1)
    slopes = np.linalg.lstsq(design, curves)[0][1].reshape(20_000, 4)
    assert scores_of(slopes, many.slope).max() < LIMIT


@pytest.mark.parametrize(("distribution", "third", "fourth"), [("normal", 0, 3), ("t5", 0, 9), ("skewed", 2, 9)])
def test_the_noise_has_the_stated_distribution(distribution: Any, third: float, fourth: float) -> None:
    made = PanelSimulation(n_items=1, common=0.0, persistent=0.0, distribution=distribution)
    panel = draw_panel(made, panels=2_000)
    z = ((panel.values - panel.expected[:, :, None, :]) / np.sqrt(panel.sigma2[0])).ravel()
    reference = {"normal": stats.norm(), "t5": stats.t(5, scale=np.sqrt(0.6)), "skewed": stats.expon(-1)}[distribution]
    assert [float(x) for x in reference.stats("sk")] == pytest.approx([third, fourth - 3])
    assert stats.kstest(z, reference.cdf).pvalue > 1e-4
    others = {"normal", "t5", "skewed"} - {distribution}
    assert all(draw_panel(replace(made, distribution=d)).sigma2 == panel.sigma2 for d in others)  # type: ignore[arg-type]


@pytest.mark.parametrize("trials", [1, 2, 7])
def test_scores_of_trials_are_shares_of_them(trials: int) -> None:
    values = draw_panel(replace(ODDS, trials=trials)).values * trials
    assert np.allclose(values, np.rint(values), atol=1e-12)
    assert set(np.rint(values).ravel()) == set(range(trials + 1))


@pytest.mark.parametrize(("noise_sd", "common"), [(1.2, 0.4), (2.0, 0.0), (2.0, 1.0)])
def test_moments_of_trials_agree_with_adaptive_integration(noise_sd: float, common: float) -> None:
    made = replace(ODDS, trials=3, persistent=0.7, n_models=1, noise_sd=noise_sd, noise_spread=0.1, common=common)
    panel = draw_panel(made)
    flat = draw_panel(replace(made, persistent=0.0, trials=1))  # the chances without noise
    odds = np.log(flat.expected / (1 - flat.expected))[:, 0]
    sigma = np.sqrt(draw_panel(replace(made, trials=None)).sigma2)
    assert np.allclose(flat.sigma2, (flat.expected * (1 - flat.expected)).mean(axis=(1, 2)), rtol=1e-12)

    def over(function: Any, scale: float) -> float:
        found = integrate.quad(lambda z: function(scale * z) * stats.norm.pdf(z), -12, 12, epsabs=1e-12, limit=200)
        return float(found[0])

    for item in range(2):
        scale = np.sqrt(0.7) * sigma[item]
        first = np.array([over(lambda a, x=x: expit(x + a), scale) for x in odds[item]])
        second = np.array([over(lambda a, x=x: expit(x + a) ** 2, scale) for x in odds[item]])
        assert np.allclose(panel.expected[item, 0], first, atol=1e-9)
        assert panel.sigma2[item] == pytest.approx(((first - second) / 3 + second - first**2).mean(), abs=1e-9)
        pairs = [
            over(lambda a, x=x, y=y: expit(x + a) * expit(y + a), scale) - first[s] * first[t]
            for s, x in enumerate(odds[item])
            for t, y in enumerate(odds[item])
            if s != t
        ]
        assert panel.persistent_covariance[item, item] == pytest.approx(np.mean(pairs), abs=1e-9)


def test_ranks_follow_the_levels_and_equal_ones_share_one() -> None:
    levels = (0.1, 0.3, -0.2, 0.3)
    for made in (SMALL, ODDS):
        panel = draw_panel(replace(made, n_models=None, model_levels=levels))
        assert panel.rank.tolist() == [3, 1, 4, 1]
        assert panel.benchmark_mean[1] == panel.benchmark_mean[3]
        drawn = draw_panel(replace(made, n_models=30))
        assert np.array_equal(drawn.rank, stats.rankdata(-drawn.benchmark_mean, method="min"))
        assert sorted(drawn.rank) == list(range(1, 31))


def test_parameters_of_items_and_models_come_true() -> None:
    made = PanelSimulation(
        n_items=20_000, n_seeds=1, doses=(0, 2), model_levels=(0.0, 0.25), level=0.4, noise_spread=0.5, slope_mean=-0.1
    )
    panel = draw_panel(made)
    level = panel.expected[:, 0, 0]
    assert scores_of(level, np.array(0.4)).max() < LIMIT
    assert level.std() == pytest.approx(0.1, rel=0.03)
    assert scores_of(panel.slope, np.array(-0.1)).max() < LIMIT
    assert panel.slope.std() == pytest.approx(0.1, rel=0.03)
    assert scores_of(np.log(panel.sigma2), np.array(2 * np.log(0.05))).max() < LIMIT
    assert np.log(panel.sigma2).std() == pytest.approx(2 * 0.5, rel=0.03)
    together = np.corrcoef([level, panel.slope, np.log(panel.sigma2)])
    assert np.abs(together - np.eye(3)).max() < LIMIT / np.sqrt(20_000)
    assert np.allclose(panel.expected[:, 0, 1] - level, 2 * panel.slope, atol=1e-12)
    assert np.allclose(panel.expected[:, 1] - panel.expected[:, 0], 0.25, atol=1e-12), "a model shifts all items alike"
    models = draw_panel(PanelSimulation(n_items=1, n_models=20_000, model_sd=0.2, n_seeds=1, n_checkpoints=1))
    assert models.benchmark_mean.std() == pytest.approx(0.2, rel=0.03)


@pytest.mark.parametrize("made", [SMALL, ODDS, replace(SMALL, distribution="t5", missing=0.2)])
def test_the_same_seed_gives_the_same_bytes_and_rng_changes_noise_alone(made: PanelSimulation) -> None:
    one, two = draw_panel(made), draw_panel(made)
    assert one.values.tobytes() == two.values.tobytes()
    assert draw_panel(made, panels=1).values[0].tobytes() == one.values.tobytes()
    noisy = draw_panel(made, rng=np.random.default_rng(8))
    assert noisy.values.tobytes() == draw_panel(made, rng=np.random.default_rng(8)).values.tobytes()
    assert noisy.values.tobytes() != one.values.tobytes()
    other = draw_panel(replace(made, seed=6))
    for name in ("expected", "mean", "benchmark_mean", "rank", "slope", "sigma2", "covariance"):
        assert np.array_equal(getattr(noisy, name), getattr(one, name)), name
        assert name == "rank" or not np.array_equal(getattr(other, name), getattr(one, name)), name
    grids = [draw_grid(replace(made, n_models=1), AXES) for _ in range(2)]
    assert grids[0].values.tobytes() == grids[1].values.tobytes()


def test_the_missing_share_is_kept_whatever_the_value() -> None:
    full = draw_panel(SMALL, panels=1_000).values
    holed = draw_panel(replace(SMALL, missing=0.15), panels=1_000).values
    gone = np.isnan(holed)
    assert np.array_equal(holed[~gone], full[~gone])
    assert gone.mean() == pytest.approx(0.15, abs=LIMIT * np.sqrt(0.15 * 0.85 / gone.size))
    assert full[gone].mean() == pytest.approx(full.mean(), abs=LIMIT * full.std() / np.sqrt(gone.sum()))
    assert np.isnan(draw_panel(replace(SMALL, missing=1.0)).values).all()
    assert not np.isnan(full).any()


def test_grids_have_the_stated_moments() -> None:
    made = replace(SMALL, n_models=1, n_seeds=2)
    grid = draw_grid(made, AXES, panels=20_000)
    assert grid.values.shape == (20_000, 4, 12)
    assert scores_of(grid.values, grid.expected).max() < LIMIT
    deviations = grid.values - grid.expected
    truth = draw_panel(made)
    within = np.einsum("pir,pkr->pik", deviations, deviations) / 12
    assert scores_of(within, truth.covariance).max() < LIMIT
    assert np.allclose(grid.sigma2, truth.sigma2, rtol=1e-12)
    assert np.allclose(grid.expected[:, grid.dose == 0], truth.expected[:, 0, :1], atol=1e-15), "one base for all axes"
    same = (grid.axis[:, None] == grid.axis) & (grid.seed[:, None] == grid.seed) & ~np.eye(12, dtype=bool)
    pairs = np.einsum("pir,piq->prq", deviations, deviations) / 4
    persistent = np.where(same, np.trace(truth.persistent_covariance) / 4, 0.0)
    off = ~np.eye(12, dtype=bool)
    assert scores_of(pairs[:, off], persistent[off]).max() < LIMIT
    for code, axis in enumerate(AXES):
        mine = grid.axis == code
        assert grid.dose[mine].tolist() == [*axis.doses, *axis.doses]
        assert grid.seed[mine].tolist() == [0] * len(axis.doses) + [1] * len(axis.doses)
        design = np.stack([np.ones(mine.sum()), grid.dose[mine]], axis=1)
        slopes = np.linalg.lstsq(design, grid.values[:, :, mine].reshape(-1, mine.sum()).T)[0][1]
        assert scores_of(slopes.reshape(-1, 4), grid.slopes[:, code]).max() < LIMIT
    longer = draw_grid(made, (*AXES, SimulatedAxis("SFT", (1, 2))))
    assert np.array_equal(longer.slopes[:, :2], grid.slopes), "one more axis leaves the others as they are"


def test_grids_of_trials_have_the_stated_moments() -> None:
    grid = draw_grid(replace(ODDS, n_models=1, trials=2), AXES, panels=20_000)
    assert scores_of(grid.values, grid.expected).max() < LIMIT
    assert scores_of(((grid.values - grid.expected) ** 2).mean(axis=2), grid.sigma2).max() < LIMIT
    mine = grid.axis == 0
    assert np.allclose(grid.slopes[:, 0], np.polyfit(grid.dose[mine], grid.expected[:, mine].T, 1)[0], atol=1e-12)


def test_tasks_are_nearly_equal_blocks() -> None:
    tasks = PanelSimulation(n_items=11, n_tasks=4).tasks
    assert (np.diff(tasks) >= 0).all()
    assert set(np.bincount(tasks)) == {2, 3}


def read_back(drawn: SimulatedPanel | SimulatedGrid, folder: Path) -> pl.DataFrame:
    to_frame(drawn).write_csv(folder / "logs.csv")
    done = read_logs(folder / "logs.csv", folder / "panel", strict=True)
    assert done.faults == ()
    rows = Panel.open(folder / "panel").rows().collect()
    assert set(rows["status"]) == {"scored"}
    assert set(rows["metric"]) == {"score"}
    return rows


@pytest.mark.parametrize("made", [SMALL, ODDS, replace(SMALL, missing=0.3, n_tasks=2, axis="SFT")])
def test_a_panel_reads_back_the_same(made: PanelSimulation, tmp_path: Path) -> None:
    panel = draw_panel(made)
    rows = read_back(panel, tmp_path)
    assert rows.height == np.isfinite(panel.values).sum()
    assert set(rows["axis"]) == {made.axis}
    values = np.full(panel.values.shape, np.nan)
    columns = ("doc_id", "model", "seed", "step", "task", "dose", "value")
    for doc_id, model, seed, step, task, dose, value in rows.select(columns).iter_rows():
        item, place = int(doc_id), int(model.removeprefix("model-")) - 1
        assert task == f"task-{made.tasks[item] + 1}"
        assert dose == made.dose[step - 1]
        values[item, place, seed, step - 1] = value
    assert np.array_equal(values, panel.values, equal_nan=True)


@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_a_grid_reads_back_the_same(missing: float, tmp_path: Path) -> None:
    grid = draw_grid(replace(SMALL, n_models=1, n_tasks=3, missing=missing), AXES)
    rows = read_back(grid, tmp_path)
    assert rows["step"].null_count() == rows.height
    assert rows.height == np.isfinite(grid.values).sum()
    runs = {key: r for r, key in enumerate(zip(grid.axis, grid.dose, grid.seed, strict=True))}
    codes = {axis.name: code for code, axis in enumerate(AXES)}
    values = np.full(grid.values.shape, np.nan)
    for doc_id, model, axis, dose, seed, value in rows.select(
        "doc_id", "model", "axis", "dose", "seed", "value"
    ).iter_rows():
        assert model == f"{axis}-{AXES[codes[axis]].doses.index(dose) + 1}"
        values[int(doc_id), runs[codes[axis], dose, seed]] = value
    assert np.array_equal(values, grid.values, equal_nan=True)


SIZES = st.integers(1, 4)
PARTS = st.floats(0, 1)


@settings(max_examples=60, deadline=None)
@given(
    sizes=st.tuples(SIZES, SIZES, SIZES, SIZES),
    parts=st.tuples(PARTS, PARTS, PARTS),
    trials=st.sampled_from([None, 1, 3]),
    noise=st.floats(0, 3),
    panels=st.sampled_from([None, 2]),
)
def test_every_truth_is_consistent(
    sizes: tuple[int, int, int, int],
    parts: tuple[float, float, float],
    trials: int | None,
    noise: float,
    panels: int | None,
) -> None:
    items, models, seeds, checkpoints = sizes
    common, persistent, missing = parts
    made = PanelSimulation(
        n_items=items, n_models=models, n_seeds=seeds, n_checkpoints=checkpoints, common=common, persistent=persistent,
        missing=missing, trials=trials, noise_sd=noise,
    )  # fmt: skip
    panel = draw_panel(made, panels=panels)
    assert panel.values.shape[-4:] == (items, models, seeds, checkpoints)
    within, between = panel.covariance, panel.persistent_covariance
    assert np.allclose(within.diagonal(), panel.sigma2, atol=1e-12)
    assert np.allclose(panel.benchmark_mean, panel.expected.mean(axis=(0, 2)), atol=1e-12)
    known = [within]
    if trials is None or checkpoints > 1:
        assert (between.diagonal() <= panel.sigma2 + 1e-12).all()
        known += [(within + (checkpoints - 1) * between) / checkpoints]
    else:
        assert np.isnan(between).all()
        assert np.isnan(panel.slope).all()
    for matrix in known:
        assert np.array_equal(matrix, matrix.T)
        assert np.linalg.eigvalsh(matrix)[0] > -1e-12 * max(1.0, float(np.trace(matrix)))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_items": 0}, "`n_items` must be a whole number >= 1, got 0"),
        ({"n_items": None}, "`n_items` must be a whole number >= 1, got None"),
        ({"n_seeds": 2.5}, "`n_seeds` must be a whole number >= 1, got 2.5"),
        ({"n_models": True}, "`n_models` must be a whole number >= 1, got True"),
        ({"trials": 0}, "`trials` must be a whole number >= 1, got 0"),
        ({"seed": -1}, "`seed` must be a whole number >= 0, got -1"),
        ({"n_tasks": 21}, "`n_tasks` must be at most `n_items`, got 21 and 20"),
        ({"n_checkpoints": 3, "doses": (1, 2)}, "`n_checkpoints` must be the length of `doses`, got 3"),
        ({"n_models": 3, "model_levels": (1, 2)}, "`n_models` must be the length of `model_levels`, got 3"),
        ({"doses": ()}, r"`doses` must hold rising numbers, got \(\)"),
        ({"doses": (1, 1)}, r"`doses` must hold rising numbers, got \(1, 1\)"),
        ({"doses": (0, float("nan"))}, "`doses` must be finite, got nan at 1"),
        ({"doses": ("a",)}, "`doses` must hold numbers"),
        ({"level": float("inf")}, "`level` must be a finite number, got inf"),
        ({"slope_mean": "steep"}, "`slope_mean` must be a finite number, got 'steep'"),
        ({"slope_sd": -0.1}, "`slope_sd` must be a finite number >= 0, got -0.1"),
        ({"noise_sd": float("nan")}, "`noise_sd` must be a finite number >= 0, got nan"),
        ({"common": 1.1}, "`common` must be a number in 0 .. 1, got 1.1"),
        ({"persistent": -0.1}, "`persistent` must be a number in 0 .. 1, got -0.1"),
        ({"missing": 2}, "`missing` must be a number in 0 .. 1, got 2"),
        ({"distribution": "cauchy"}, "`distribution` must be one of normal, t5, skewed, got 'cauchy'"),
        ({"distribution": "t5", "trials": 1}, "`distribution` must be normal where `trials` is given, got t5"),
        ({"axis": " "}, "`axis` must be text that is not empty, got ' '"),
    ],
)
def test_parameters_that_cannot_be_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        PanelSimulation(**changes)


def test_what_cannot_be_drawn_or_written_is_refused() -> None:
    with pytest.raises(UsageError, match="`panels` must be a whole number >= 1, got 0"):
        draw_panel(SMALL, panels=0)
    with pytest.raises(UsageError, match="`simulation` must have one model, got 2"):
        draw_grid(SMALL, AXES)
    for axes in ((), (AXES[0], AXES[0])):
        with pytest.raises(UsageError, match="`axes` must hold axes with different names"):
            draw_grid(replace(SMALL, n_models=1), axes)
    with pytest.raises(UsageError, match="`name` must be text that is not empty"):
        SimulatedAxis("", (1,))
    for several in (draw_panel(SMALL, panels=2), draw_grid(replace(SMALL, n_models=1), AXES, panels=2)):
        with pytest.raises(UsageError, match="`drawn` must be one panel or grid, got 2"):
            to_frame(several)
        one = replace(several, values=several.values[0])
        assert to_frame(one).height == one.values.size
