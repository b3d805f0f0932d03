"""The benchmark's own score: how noisy it is, what the noise is made of, how many seeds would settle a difference.

Let a lineage be one model over its checkpoints, and y_st the mean of its items under seed s at checkpoint t.

Components. A two-way analysis of y_st (seeds by checkpoints) splits the variance of one run's score at one checkpoint
into *seed* (what a seed keeps at all checkpoints), *checkpoint x seed* with all that is left, and within that *trials*
(sampling answers), sum_i tau2_i / k_i / m^2. *Items* is the variance that drawing other items like these would add,
var(mean_i) / m. Estimates are unbiased, and negative where the truth is near 0.

Seeds needed. With mean variance v and mean covariance c of two items over seeds, the mean of m items varies by v / m
+ (1 - 1/m) c between seeds: more items do nothing against c. Two models trained S times each are told apart by a
difference delta with probability 0.8 at level 0.05 if S >= (t_0.975 + t_0.8)^2 2 (v / m + (1 - 1/m) c) / delta^2, t
with 2 S - 2 degrees of freedom, and S >= 2: one training each leaves no variance to compare with.

Reliability. With T the variance between models and I that of model x item, from a two-way analysis of the models' last
scores, noise taken off, S seeds and m items rank models with reliability T / (T + I / m + (v / m + (1 - 1/m) c) / S):
the squared correlation, over models, of the score with what it would be over all items and seeds.

Signal to noise (Heineman et al. 2025, arXiv 2508.13144). Signal is the relative dispersion of models, (max - min) /
mean of their final scores; noise the standard deviation of a run's score over its last n checkpoints, relative to its
mean (both the mean over a model's seeds; then the mean over models; n = 5, or 3 and 4 where there are no more), or,
where runs have no such checkpoints, over the seeds of the last one; the table says which.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import stats

from benchwright._check import FloatArray
from benchwright._shown import Shown
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
class AggregateEstimate(Shown):
    """Noise of the benchmark's score.

    Attributes
    ----------
    components
        scope (a task, or all), n_items (without a gap), n_models, n_seeds, n_checkpoints; variances (score^2) of one
        run's score: seed, checkpoint_seed (less trials, null without a second checkpoint), trials, items.
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
        v, c = _mean_covariance(noise, measured.checkpoint)
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
    if noise is None or not noise.grids or not np.nan_to_num(noise.residual).any():
        return pl.DataFrame(schema=COMPONENTS)
    rows = []
    for scope, at in scopes.items():
        parts, weights, used = [], [], []
        several = any(grid.checkpoints > 1 for grid in noise.grids)
        for grid in noise.grids:
            if several and grid.checkpoints == 1:
                continue  # a single checkpoint splits nothing
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
            of_seed = block[whole].reshape(-1, grid.seeds, grid.checkpoints).mean(axis=2)
            own = float(of_seed.var(axis=1, ddof=1).mean()) / grid.seeds  # what noise adds to how items differ
            m = len(of_seed)
            items = (float(of_seed.mean(axis=1).var(ddof=1)) - own) / m if m > 1 else np.nan
            if grid.checkpoints == 1:  # all that moves between seeds is under seed
                seed, rest = float(mean[0, grid.runs[:, 0]].var(ddof=1)), np.nan
            else:
                sampled = 0.0 if np.isnan(of_trials) else of_trials
                seed, rest = float(split.seed[0]), float(split.remainder[0]) - sampled
            parts.append((seed, rest, of_trials, items))
            weights.append(grid.seeds - 1)
            used.append((grid, int(whole.sum())))
        if parts:
            table = np.array(parts)
            weight = np.where(np.isnan(table), 0.0, np.array(weights, dtype=float)[:, None])
            total = weight.sum(axis=0)
            mean_of = np.divide(np.nansum(table * weight, axis=0), total, out=np.full(4, np.nan), where=total > 0)
            seeds = sum(grid.seeds for grid, _ in used)
            checkpoints = sum(grid.checkpoints for grid, _ in used)
            rows.append((scope, min(n for _, n in used), len(parts), seeds, checkpoints, *map(float, mean_of)))
    return pl.DataFrame(rows, schema=COMPONENTS, orient="row").with_columns(pl.col(pl.Float64).fill_nan(None))


def _mean_covariance(noise: NoiseEstimate, checkpoint: NDArray[np.int64]) -> tuple[float, float]:
    """Return mean variance and covariance of two items over seeds, from the items that all repeated runs have."""
    repeated = np.flatnonzero(~np.isnan(noise.residual).all(axis=0))
    block = noise.residual[:, repeated]
    block = block[~np.isnan(block).any(axis=1)]
    if not block.any():  # identical runs say nothing of training again
        return np.nan, np.nan
    return kernel.average_covariance(block, float(len(repeated) - len(np.unique(checkpoint[repeated]))))


def _variance_of_mean(v: float, c: float, m: FloatArray) -> FloatArray:
    with np.errstate(invalid="ignore"):
        variance = v / m + (1 - 1 / m) * np.where(m > 1, c, 0.0)
    return np.where(variance > 0, variance, np.nan)  # below 0, the estimate of c is too rough to tell


def _reliability(v: float, c: float, measured: Measurements) -> pl.DataFrame:
    schema: dict[str, Any] = dict.fromkeys(("n_seeds", "n_items"), pl.Int64)
    schema |= dict.fromkeys(("standard_error", "least_difference", "reliability"), pl.Float64)
    if np.isnan(v):
        return pl.DataFrame(schema=schema)
    m = len(measured.value)
    counts = sorted({max(1, round(share * m)) for share in (0.1, 0.25, 0.5, 1.0, 2.0, 4.0)})
    between, interaction = _between_models(v, c, measured)
    rows = []
    for seeds in SEEDS:
        for n_items in counts:
            variance = float(_variance_of_mean(v, c, np.array(float(n_items)))) / seeds
            share = between / (between + interaction / n_items + variance)
            rows.append((seeds, n_items, float(np.sqrt(variance)), float(_reach(seeds) * np.sqrt(2 * variance)), share))
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
    low, high = 2, max(2, int(np.ceil(_reach(2) ** 2 * 2 * variance / step**2)))
    while low < high:  # what is needed falls with the seeds there are
        middle = (low + high) // 2
        low, high = (low, middle) if _reach(middle) ** 2 * 2 * variance / step**2 <= middle else (middle + 1, high)
    return float(low)


def _reach(seeds: int) -> float:
    """Return t_0.975 + t_0.8 with 2 S - 2 degrees of freedom, NaN for one seed."""
    df = 2 * seeds - 2
    return float(stats.t.isf(ALPHA / 2, df) + stats.t.isf(1 - POWER, df)) if df > 0 else np.nan


def _common(measured: Measurements, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the items that all runs have of the lineages that were given every task of these items."""
    known = ~np.isnan(measured.value[rows])
    tasks = (measured.items["task"][rows.tolist()].rank("dense") - 1).to_numpy()
    given = np.stack([known[tasks == task].any(axis=0) for task in np.unique(tasks)]).all(axis=0)
    common: NDArray[np.int64] = rows[known[:, given].all(axis=1)] if given.any() else rows[:0]
    return common


def _signal_to_noise(measured: Measurements, scopes: dict[str, NDArray[np.int64]]) -> pl.DataFrame:
    rows = []
    frame = (
        measured.runs.frame.with_row_index("column")
        .filter("is_ranked")
        .sort("step", "dose", "checkpoint", nulls_last=False)
    )
    for scope, at in scopes.items():
        common = _common(measured, at)
        if not len(common):
            continue
        mean = measured.value[common].mean(axis=0)  # NaN for runs that were not given these items
        runs = frame.with_columns(mean=pl.Series(mean)[frame["column"]]).filter(pl.col("mean").is_not_nan())
        final, over_checkpoints, over_seeds, lengths = [], [], [], []
        for _, mine in runs.group_by("lineage", maintain_order=True):
            last = mine.filter(pl.col("checkpoint") == mine["checkpoint"][-1])["mean"].to_numpy()
            final.append(float(last.mean()))
            if len(last) > 1:
                over_seeds.append(_relative_deviation([last]))
            of_run = [
                one["mean"].to_numpy()[-LAST_CHECKPOINTS:] for _, one in mine.group_by("replicate", maintain_order=True)
            ]
            long = [one for one in of_run if len(one) >= FEWEST_CHECKPOINTS]
            if long:
                over_checkpoints.append(_relative_deviation(long))
                lengths += [len(one) for one in long]
        if len(final) < 2:
            continue
        enough = len(over_checkpoints) == len(final)
        relative = over_checkpoints if enough else over_seeds if len(over_seeds) == len(final) else []
        what = "seeds" if relative else None
        if enough:
            fewest, most = min(lengths), max(lengths)
            what = f"last {most if fewest == most else f'{fewest} to {most}'} checkpoints"
        center = float(np.mean(final))
        signal = (max(final) - min(final)) / abs(center) if center else np.nan
        noise = float(np.mean(relative)) if relative else np.nan
        snr = signal / noise if noise > 0 else np.nan
        rows.append((scope, len(common), len(final), signal, noise, snr, what))
    return pl.DataFrame(rows, schema=SNR, orient="row").with_columns(pl.col(pl.Float64).fill_nan(None))


def _relative_deviation(runs: list[FloatArray]) -> float:
    """Return the standard deviation within runs over the mean score, each the mean over the runs."""
    center = abs(float(np.mean([one.mean() for one in runs])))
    return float(np.mean([one.std(ddof=1) for one in runs])) / center if center else np.nan
