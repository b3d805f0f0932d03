"""The benchmark's own score: how noisy it is, what the noise is made of, how many seeds would settle a difference.

Let a lineage be one model over its checkpoints, and y_st the mean of its items under seed s at checkpoint t.

Components. A two-way analysis of y_st (seeds by checkpoints) splits the variance of one run's score at one checkpoint
into *seed* (what a seed keeps at all checkpoints), *checkpoint x seed* with all that is left, and within that *trials*
(sampling answers), sum_i tau2_i / k_i / m^2. *Items* is the variance that drawing other items like these would add,
var(mean_i) / m. Estimates are unbiased, and negative where the truth is near 0.

Seeds needed. With mean variance v and mean covariance c of two items over seeds, the mean of m items varies by
v / m + (1 - 1/m) c between seeds: more items do nothing against c. Two models trained S times each are told apart by a
difference delta with probability 0.8 at level 0.05 if S >= 2 (1.96 + 0.84)^2 (v / m + (1 - 1/m) c) / delta^2.

Reliability. With T the variance between models and I that of model x item, from a two-way analysis of the models' last
scores, noise taken off, S seeds and m items rank models with reliability T / (T + I / m + (v / m + (1 - 1/m) c) / S):
the squared correlation, over models, of the score with what it would be over all items and seeds.

Signal to noise (Heineman et al. 2025, arXiv 2508.13144). Signal is the relative dispersion of models,
(max - min) / mean of their final scores; noise the relative standard deviation of one model's score over its last n
checkpoints (here the mean over models), or, where models have no such checkpoints, over its seeds; the table says
which.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import stats

from benchwright._check import FloatArray
from benchwright.estimating import _noise as kernel
from benchwright.estimating.measure import Measurements
from benchwright.estimating.noise import NoiseEstimate
from benchwright.estimating.ranking import last_runs

ALL = "all tasks"
LAST_CHECKPOINTS = 5
FEWEST_CHECKPOINTS = 3
POWER, ALPHA = 0.8, 0.05
SEEDS = (1, 2, 3, 5, 8, 12, 20, 32)
COMPONENTS = {
    "scope": pl.String,
    "n_items": pl.Int64,
    "n_models": pl.Int64,
    "n_seeds": pl.Int64,
    "n_checkpoints": pl.Int64,
    "seed": pl.Float64,
    "checkpoint_seed": pl.Float64,
    "trials": pl.Float64,
    "items": pl.Float64,
}
SNR = {
    "scope": pl.String,
    "n_items": pl.Int64,
    "n_models": pl.Int64,
    "signal": pl.Float64,
    "noise": pl.Float64,
    "snr": pl.Float64,
    "noise_over": pl.String,
}


@dataclass(frozen=True, slots=True, eq=False)
class AggregateEstimate:
    """Noise of the benchmark's score.

    Attributes
    ----------
    components
        scope (a task, or all), n_items, n_models, n_seeds, n_checkpoints; variances (score^2) of one run's score:
        seed, checkpoint_seed (less trials, null without a second checkpoint), trials, items.
    reliability
        n_seeds, n_items, reliability (null with one model, or where models cannot be told apart), standard_error (of
        one model's mean over seeds), least_difference (of two models, told apart
        with power 0.8 at level 0.05).
    mean_variance, mean_covariance
        v and c of the module, score^2; NaN where not estimable.
    seeds_needed
        Seeds a model for ``score_step``; NaN where not estimable.
    snr
        scope, n_items, n_models, signal, noise, snr, noise_over.
    """

    components: pl.DataFrame
    reliability: pl.DataFrame
    mean_variance: float
    mean_covariance: float
    score_step: float
    seeds_needed: float
    snr: pl.DataFrame


def estimate_aggregate(measured: Measurements, noise: NoiseEstimate | None, *, score_step: float) -> AggregateEstimate:
    """Estimate the noise of the mean over all items, and over those of each task.

    ``noise`` is the items' noise, or None where nothing is repeated; signal to noise needs no repeats.
    """
    scopes = _scopes(measured)
    v = c = np.nan
    if noise is not None and noise.source == "seeds":
        v, c = _mean_covariance(noise)
    m = len(measured.value)
    return AggregateEstimate(
        components=_components(measured, noise, scopes),
        reliability=_reliability(v, c, measured),
        mean_variance=v,
        mean_covariance=c,
        score_step=score_step,
        seeds_needed=_seeds_needed(v, c, m, score_step),
        snr=_signal_to_noise(measured, scopes),
    )


def _scopes(measured: Measurements) -> dict[str, NDArray[np.int64]]:
    """Return the rows of each task with several items (or of each task alone), and of all together."""
    tasks = measured.items.with_row_index("row").group_by("task", maintain_order=True).agg("row")
    scopes = {str(task): np.asarray(rows, dtype=np.int64) for task, rows in tasks.iter_rows()}
    return scopes if len(scopes) == 1 else {ALL: np.arange(len(measured.value)), **scopes}


def _components(
    measured: Measurements, noise: NoiseEstimate | None, scopes: dict[str, NDArray[np.int64]]
) -> pl.DataFrame:
    if noise is None or not noise.grids:
        return pl.DataFrame(schema=COMPONENTS)
    rows = []
    for scope, at in scopes.items():
        parts, weights, used = [], [], []
        for grid in noise.grids:
            block = measured.value[np.ix_(at, grid.runs.ravel())]
            whole = ~np.isnan(block).any(axis=1)
            if not whole.any():
                continue
            mean = np.full((1, measured.value.shape[1]), np.nan)
            mean[0, grid.runs.ravel()] = block[whole].mean(axis=0)
            split = kernel.components(mean, grid)
            tau2 = measured.trial_variance[np.ix_(at[whole], grid.runs.ravel())]
            k = np.maximum(measured.trials[np.ix_(at[whole], grid.runs.ravel())], 1)
            of_trials = float((tau2 / k).mean(axis=1).sum()) / int(whole.sum()) ** 2  # NaN where single trials hide it
            per_item = block[whole].mean(axis=1)
            items = float(per_item.var(ddof=1)) / len(per_item) if len(per_item) > 1 else np.nan
            sampled = 0.0 if np.isnan(of_trials) else of_trials
            if grid.checkpoints == 1:  # what a seed keeps cannot be told from what it does once
                seed, rest = float(mean[0, grid.runs[:, 0]].var(ddof=1)) - sampled, np.nan
            else:
                seed, rest = float(split.seed[0]), float(split.remainder[0]) - sampled
            parts.append((seed, rest, of_trials, items))
            weights.append(grid.seeds - 1)
            used.append(grid)
        if parts:
            table = np.array(parts)
            weight = np.where(np.isnan(table), 0.0, np.array(weights, dtype=float)[:, None])
            total = weight.sum(axis=0)
            mean_of = np.divide(np.nansum(table * weight, axis=0), total, out=np.full(4, np.nan), where=total > 0)
            seeds = sum(grid.seeds for grid in used)
            checkpoints = sum(grid.checkpoints for grid in used)
            rows.append((scope, len(at), len(parts), seeds, checkpoints, *map(float, mean_of)))
    return pl.DataFrame(rows, schema=COMPONENTS, orient="row").with_columns(pl.col(pl.Float64).fill_nan(None))


def _mean_covariance(noise: NoiseEstimate) -> tuple[float, float]:
    """Return mean variance and covariance of two items over seeds, from runs and items without a gap."""
    runs = ~np.isnan(noise.residual).all(axis=0)
    block = noise.residual[:, runs]
    whole = ~np.isnan(block).any(axis=1)
    df = noise.items.select(pl.col("n_values") - pl.col("n_checkpoints")).to_series().max()
    if not whole.any() or df is None:
        return np.nan, np.nan
    block = block[whole]
    squares = np.square(block).sum(axis=1)
    sigma2 = noise.items["sigma2"].to_numpy()[whole]
    nominal = np.divide(squares, sigma2, out=np.full_like(squares, np.nan), where=sigma2 > 0)
    if np.isnan(nominal).all():
        return np.nan, np.nan  # identical runs say nothing of training again
    return kernel.average_covariance(block, float(np.nanmedian(nominal)))


def _variance_of_mean(v: float, c: float, m: FloatArray) -> FloatArray:
    with np.errstate(invalid="ignore"):
        variance = v / m + (1 - 1 / m) * np.where(m > 1, c, 0.0)
    return np.maximum(variance, 0.0)


def _reliability(v: float, c: float, measured: Measurements) -> pl.DataFrame:
    schema: dict[str, Any] = dict.fromkeys(("n_seeds", "n_items"), pl.Int64)
    schema |= dict.fromkeys(("standard_error", "least_difference", "reliability"), pl.Float64)
    if np.isnan(v):
        return pl.DataFrame(schema=schema)
    m = len(measured.value)
    counts = sorted({max(1, round(share * m)) for share in (0.1, 0.25, 0.5, 1.0, 2.0, 4.0)})
    factor = np.sqrt(2) * (stats.norm.isf(ALPHA / 2) + stats.norm.isf(1 - POWER))
    between, interaction = _between_models(v, c, measured)
    rows = []
    for seeds in SEEDS:
        for n_items in counts:
            variance = float(_variance_of_mean(v, c, np.array(float(n_items)))) / seeds
            share = between / (between + interaction / n_items + variance)
            rows.append((seeds, n_items, float(np.sqrt(variance)), float(factor * np.sqrt(variance)), share))
    return pl.DataFrame(rows, schema=schema, orient="row").with_columns(pl.col(pl.Float64).fill_nan(None))


def _between_models(v: float, c: float, measured: Measurements) -> tuple[float, float]:
    """Return the variance between models and that of model x item, from each model's last checkpoint; NaN if untold."""
    columns = list(last_runs(measured).values())
    common = ~np.isnan(measured.value[:, np.concatenate(columns)]).any(axis=1)
    m, n_models = int(common.sum()), len(columns)
    if m < 2 or n_models < 2:
        return np.nan, np.nan
    scores = np.stack([measured.value[np.ix_(common, at)].mean(axis=1) for at in columns], axis=1)
    per_seed = float(np.mean([1 / len(at) for at in columns]))
    of_model = scores.mean(axis=0) - scores.mean()
    rest = scores - scores.mean(axis=1, keepdims=True) - of_model
    of_models = m * float(np.square(of_model).sum()) / (n_models - 1)
    of_rest = float(np.square(rest).sum()) / ((m - 1) * (n_models - 1))
    between = (of_models - of_rest) / m - c * per_seed
    return (between if between > 0 else np.nan), max(of_rest - (v - c) * per_seed, 0.0)


def _seeds_needed(v: float, c: float, m: int, step: float) -> float:
    if np.isnan(v):
        return np.nan
    variance = float(_variance_of_mean(v, c, np.array(float(m))))
    if np.isnan(variance):
        return np.nan
    z = stats.norm.isf(ALPHA / 2) + stats.norm.isf(1 - POWER)
    return float(max(1.0, np.ceil(2 * z**2 * variance / step**2)))


def lineage_means(measured: Measurements, rows: NDArray[np.int64]) -> pl.DataFrame:
    """Return lineage, name, setting, axis, checkpoint (in order of step and dose), n_runs, mean, spread (over runs).

    The mean is over the items that all runs of the lineage have.
    """
    frame = measured.runs.frame.with_row_index("column")
    out = []
    for _, mine in frame.group_by("lineage", maintain_order=True):
        columns = mine["column"].to_numpy().astype(np.int64)
        block = measured.value[np.ix_(rows, columns)]
        there = ~np.isnan(block).all(axis=0)  # runs that were given these items at all
        block, mine = block[:, there], mine.filter(pl.Series(there))
        whole = ~np.isnan(block).any(axis=1)
        if not whole.any():
            continue
        mean = block[whole].mean(axis=0)
        codes = (mine["checkpoint"].rank("dense") - 1).to_numpy()
        n = np.bincount(codes).astype(np.float64)
        center = np.bincount(codes, mean) / n
        squares = np.bincount(codes, np.square(mean - center[codes]))
        spread = np.sqrt(np.divide(squares, n - 1, out=np.full(len(n), np.nan), where=n > 1))
        facts = mine.select("lineage", "name", "setting", "axis", "step", "dose", "checkpoint")
        table = (
            facts.unique("checkpoint", keep="first")
            .sort("checkpoint")
            .with_columns(n_runs=n.astype(np.int64), mean=center, spread=pl.Series(spread).fill_nan(None))
        )
        out.append(
            table.sort("step", "dose", "checkpoint", nulls_last=False).with_columns(n_items=pl.lit(int(whole.sum())))
        )
    return pl.concat(out) if out else pl.DataFrame()


def _common(measured: Measurements, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the items that all runs have of the lineages that were given every task of these items."""
    known = ~np.isnan(measured.value[rows])
    tasks = (measured.items["task"][rows.tolist()].rank("dense") - 1).to_numpy()
    given = np.stack([known[tasks == task].any(axis=0) for task in np.unique(tasks)]).all(axis=0)
    common: NDArray[np.int64] = rows[known[:, given].all(axis=1)] if given.any() else rows[:0]
    return common


def _signal_to_noise(measured: Measurements, scopes: dict[str, NDArray[np.int64]]) -> pl.DataFrame:
    rows = []
    for scope, at in scopes.items():
        table = lineage_means(measured, _common(measured, at))
        if table.height == 0 or table["lineage"].n_unique() < 2:
            continue
        final, over_checkpoints, over_seeds = [], [], []
        for _, mine in table.group_by("lineage", maintain_order=True):
            scores = mine["mean"].to_numpy()
            last = scores[-LAST_CHECKPOINTS:]
            final.append(scores[-1])
            if len(last) >= FEWEST_CHECKPOINTS:
                over_checkpoints.append(float(last.std(ddof=1)) / abs(float(last.mean())) if last.mean() else np.nan)
            spread = mine["spread"][-1]
            if spread is not None and scores[-1]:
                over_seeds.append(spread / abs(scores[-1]))
        mean = float(np.mean(final))
        signal = (max(final) - min(final)) / abs(mean) if mean else np.nan
        enough = len(over_checkpoints) == len(final)
        relative = over_checkpoints if enough else over_seeds if len(over_seeds) == len(final) else []
        what = f"last {LAST_CHECKPOINTS} checkpoints" if enough else "seeds" if relative else None
        noise = float(np.mean(relative)) if relative else np.nan
        snr = signal / noise if noise > 0 else np.nan
        rows.append((scope, len(at), len(final), signal, noise, snr, what))
    return pl.DataFrame(rows, schema=SNR, orient="row").with_columns(pl.col(pl.Float64).fill_nan(None))
