"""Noise of items: how far a score moves between runs that differ only in the training seed.

With p_ist the score of item i at checkpoint t under seed s,

    sigma2_i = sum_t sum_s (p_ist - mean_it)^2 / sum_t (S_t - 1),

pooled by degrees of freedom, so that checkpoints may have different numbers of seeds; a checkpoint with one seed adds
nothing. Where no seeds are repeated but single cells hold several trials, the variance of one trial takes its place,
and the result says so: that is the noise of sampling answers, not of training.

Interval of sigma2. df sigma2 / chi-square quantiles would be right if all N - K deviations were independent and normal.
A seed that starts high often stays high, so they are not: df is what Satterthwaite's (1946) rule gives for the seeds'
covariance over checkpoints, pooled over items (:func:`~benchwright.estimating._noise.dependence`). Scores that are
only 0 or 1 are far from normal; for them df is corrected by the kurtosis of a Bernoulli variable.

Ranks. Seeds are drawn with replacement, the same for all items, and all items are ranked again. Where a lineage has
the same seeds at all its checkpoints, whole seeds are drawn, which keeps what a seed carries from one checkpoint to
the next; else, or on request, seeds are drawn anew within each checkpoint (Haupt et al., arXiv 2605.30916). The
interval runs from the k-th smallest to the k-th largest rank, k = (B + 1) alpha / 2.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from benchwright._check import FloatArray
from benchwright._shown import Shown
from benchwright._words import count
from benchwright.choices import EligibilityChoices
from benchwright.errors import UsageError
from benchwright.estimating import _noise as kernel
from benchwright.estimating import _resampling as resampling
from benchwright.estimating.eligibility import noise_eligible
from benchwright.estimating.measure import Measurements


@dataclass(frozen=True, slots=True, eq=False)
class NoiseEstimate(Shown):
    """Noise of the items of a panel.

    Attributes
    ----------
    items
        task, doc_id, mean_score, sigma2, sigma2_lo, sigma2_hi (null where undefined), sigma2_df (effective), n_values,
        n_checkpoints, noise_why (why there is no variance), rank, rank_lo, rank_hi, noisiest_probability among eligible
        items.
    source
        ``seeds`` or ``trials``.
    residual : (m, R)
        Scores less their checkpoint's mean; empty for trials.
    effective_share
        Effective over nominal degrees of freedom.
    grids
        Whole grids of seeds by checkpoints, one a lineage.
    top
        How many items ``noisiest_probability`` counts as the noisiest.
    runs
        Seeds by checkpoints of each lineage: columns, -1 where there is no such run.
    training : (R,)
        Number of the training that each run is of.
    """

    items: pl.DataFrame
    source: str
    residual: FloatArray
    effective_share: float
    grids: list[kernel.SeedGrid]
    top: int
    runs: list[NDArray[np.int64]]
    training: NDArray[np.int64]
    notes: tuple[str, ...] = ()


def seed_grids(runs: pl.DataFrame) -> list[kernel.SeedGrid]:
    """Return for each lineage a grid of seeds that have the same checkpoints, (S, K) columns.

    ``runs`` is ``Measurements.runs.frame``. Of the grids of the s seeds with the most checkpoints, the one with the
    most degrees of freedom (S - 1) K. Runs without a stated seed belong to no grid: which of them is which seed at
    another checkpoint is unknown. One checkpoint alone is a grid of any runs.
    """
    grids = []
    for table in _seed_tables(runs):
        known = table >= 0
        order = np.argsort(-known.sum(axis=1), kind="stable")
        best, size = None, 0
        for s in range(2, len(order) + 1):
            common = known[order[:s]].all(axis=0)
            if (s - 1) * int(common.sum()) > size:
                best, size = np.ix_(np.sort(order[:s]), np.flatnonzero(common)), (s - 1) * int(common.sum())
        if best is not None:
            grids.append(kernel.SeedGrid(table[best]))
    return grids


def _seed_tables(runs: pl.DataFrame) -> list[NDArray[np.int64]]:
    """Return for each lineage the column of every seed at every repeated checkpoint, -1 where there is no such run."""
    tables = []
    placed = runs.with_row_index("column")
    for _, lineage in placed.group_by("lineage", maintain_order=True):
        repeated = lineage.filter(pl.col("replicate").n_unique().over("checkpoint") > 1)
        if repeated["checkpoint"].n_unique() != 1:
            repeated = repeated.drop_nulls("seed")
        seeds, checkpoints = repeated["replicate"].unique().sort(), repeated["checkpoint"].unique().sort()
        table = np.full((len(seeds), len(checkpoints)), -1, dtype=np.int64)
        table[seeds.search_sorted(repeated["replicate"]), checkpoints.search_sorted(repeated["checkpoint"])] = repeated[
            "column"
        ]
        if len(seeds) > 1:
            tables.append(table)
    return tables


def estimate_noise(
    measured: Measurements,
    *,
    source: str,
    limits: EligibilityChoices,
    level: float,
    replicates: int,
    top_share: float,
    whole_seeds: bool = True,
    rng: np.random.Generator,
) -> NoiseEstimate | None:
    """Estimate the noise of every item; None where nothing is repeated.

    Parameters
    ----------
    measured
        The panel's values.
    source
        ``seeds``, ``trials``, or ``auto``: seeds where any checkpoint has two runs.
    limits
        Items that are ranked.
    level
        Of all intervals.
    replicates
        Bootstraps of the ranking.
    top_share
        Share of eligible items that counts as the noisiest.
    whole_seeds
        Draw whole seeds where they can be, not seeds anew in each checkpoint.

    Raises
    ------
    UsageError
        ``replicates`` is too small for the level.
    """
    check_replicates(replicates, level)
    has_seeds = bool((measured.noise["df"].fill_null(0) > 0).any())
    by_seeds = source == "seeds" or (source == "auto" and has_seeds)
    table = measured.noise if by_seeds else measured.trial_noise
    if not (table["df"].fill_null(0) > 0).any():
        return None
    residual = np.empty((len(measured.value), 0))
    grids: list[kernel.SeedGrid] = []
    share = 1.0
    notes = []
    if by_seeds:
        residual = kernel.residuals(measured.value, measured.checkpoint)
        grids = seed_grids(measured.runs.frame)
        share = kernel.effective_share(residual, grids)
        notes += _seed_notes(measured, residual, share)
        share = 1.0 if np.isnan(share) else share
    else:
        notes.append("Noise is that of single trials (samples of answers by one model), not of training seeds.")
    nominal = table["df"].fill_null(0).to_numpy().astype(np.float64)
    sigma2 = table["sigma2"].fill_null(np.nan).to_numpy()
    df = nominal * share * _kurtosis_share(measured, sigma2, nominal, by_seeds=by_seeds)
    low, high = kernel.variance_interval(np.where(sigma2 > 0, sigma2, np.nan), df, level)  # no spread seen: no interval
    why = pl.when(pl.col("sigma2").is_null()).then(
        pl.lit("no two runs at one checkpoint" if by_seeds else "no repeats")
    )
    items = measured.items.with_columns(
        table.select("mean_score", "sigma2", "n_values", "n_checkpoints"),
        sigma2_lo=pl.Series(low).fill_nan(None),
        sigma2_hi=pl.Series(high).fill_nan(None),
        sigma2_df=pl.Series(np.where(df > 0, df, np.nan)).fill_nan(None),
    ).with_columns(noise_why=why, bounded=pl.Series(measured.bounded))
    eligible = items.select(noise_eligible(limits).fill_null(False)).to_series().to_numpy()
    lacking = int(items["sigma2"].null_count())
    if lacking:
        notes.append(f"Noise of {count(lacking, 'item')} is not estimable: {items['noise_why'].drop_nulls()[0]}.")
    top = max(1, round(top_share * int(eligible.sum())))
    what = "seeds" if by_seeds else "trials"
    frame = measured.runs.frame
    noise = NoiseEstimate(
        items=items.drop("bounded"),
        source=what,
        residual=residual,
        effective_share=share,
        grids=grids,
        top=top,
        runs=_seed_tables(frame) if by_seeds else [],
        training=frame.select(pl.struct("lineage", "replicate").rank("dense") - 1)
        .to_series()
        .to_numpy()
        .astype(np.int64),
        notes=tuple(notes),
    )
    at = np.flatnonzero(eligible)
    draw = variance_draws(noise, measured, at, whole=whole_seeds, rng=rng)
    ranks = _ranks(draw, np.sqrt(sigma2), at, level, replicates, top)
    if len(at) > 1 and isinstance(draw, resampling.SeedVariances) and draw.empty_share > (1 - level) / 2:
        ranks = [one if one.name == "rank" else one.clear(len(one)) for one in ranks]
        notes.append("Ranks by noise have no intervals: too few seeds, too many draws of them are one seed alone.")
    return replace(noise, items=noise.items.with_columns(ranks), notes=tuple(notes))


def check_replicates(replicates: int, level: float) -> None:
    """Raise unless an interval of this level can be read off so many replicates."""
    if resampling.tail_count(replicates, level) < 1:
        least = int(np.ceil(2 / (1 - level) - 1 - 1e-9))
        raise UsageError(
            f"`estimates.replicates` must be at least {least} for intervals of level {level:g}, got {replicates}",
            hint=f"--set estimates.replicates={max(1000, least)}",
        )


def _seed_notes(measured: Measurements, residual: FloatArray, share: float) -> list[str]:
    notes = []
    if not np.nansum(np.abs(residual)) > 0:
        notes.append(
            "All runs of a checkpoint are identical (greedy decoding of one model, or copies?): their noise is 0, "
            "which says nothing of training again."
        )
    elif np.isnan(share):
        notes.append(
            "No model has the same seeds at all its checkpoints, so intervals of variances take checkpoints for "
            "independent and are rather too narrow."
        )
    names = measured.runs.frame.filter(pl.len().over("checkpoint") > 1)["name"].n_unique()
    if names > 1:
        notes.append(f"Noise is pooled over {names} models; estimates.models names those to use.")
    return notes


def _kurtosis_share(measured: Measurements, sigma2: FloatArray, nominal: FloatArray, *, by_seeds: bool) -> FloatArray:
    """Return what the kurtosis of 0/1 scores does to degrees of freedom, (m,); 1 for other scores.

    With v = p (1 - p), the sample variance of n Bernoulli draws has variance v (1 - 3 v) / n - v^2 (n - 3) / (n (n -
    1)), against 2 v^2 / (n - 1) under normality.
    """
    value = measured.value
    if by_seeds:
        binary = (np.isnan(value) | (value == 0) | (value == 1)).all(axis=1)
    else:
        whole = np.abs(value * measured.trials - np.round(value * measured.trials)) < 1e-6
        binary = (np.isnan(value) | whole).all(axis=1) & measured.bounded
    groups = _group_count(measured, by_seeds=by_seeds)
    with np.errstate(invalid="ignore", divide="ignore"):
        n = nominal / groups + 1
        v = np.minimum(sigma2, 0.25)
        spread = v * (1 - 3 * v) / n - v**2 * (n - 3) / (n * (n - 1))
        share = (2 * v**2 / (n - 1)) / spread
    return np.where(binary & (sigma2 > 0) & np.isfinite(share), share, 1.0)


def _group_count(measured: Measurements, *, by_seeds: bool) -> NDArray[np.int64]:
    """Return how many groups (checkpoints, or cells) the variance of each item is pooled over."""
    if by_seeds:
        groups = measured.noise["n_checkpoints"].fill_null(0).to_numpy().astype(np.int64)
    else:
        groups = (measured.trials > 1).sum(axis=1)
    return np.asarray(np.maximum(groups, 1), dtype=np.int64)


def _ranks(
    draw: resampling.Draw, sigma: FloatArray, at: NDArray[np.int64], level: float, replicates: int, top: int
) -> list[pl.Series]:
    """Rank the eligible items by noise, quietest first, with intervals."""
    m = len(at)
    columns = {name: np.full(len(sigma), np.nan) for name in ("rank", "rank_lo", "rank_hi", "noisiest_probability")}
    if m:
        drawn = resampling.rank_replicates(draw, m, replicates=replicates, level=level, top=top)
        columns["rank"][at[np.lexsort((np.arange(m), sigma[at]))]] = np.arange(1, m + 1)
        columns["rank_lo"][at], columns["rank_hi"][at] = drawn.low, drawn.high
        columns["noisiest_probability"][at] = drawn.last
    series = [pl.Series(name, values).fill_nan(None) for name, values in columns.items()]
    return [one.cast(pl.Int64) if one.name.startswith("rank") else one for one in series]


def variance_draws(
    noise: NoiseEstimate, measured: Measurements, rows: NDArray[np.int64], *, whole: bool, rng: np.random.Generator
) -> resampling.Draw:
    """Return the bootstrap of some items' variances: seeds drawn again, or chi-square draws for trials.

    ``whole``: whole seeds where a lineage has the same at all checkpoints.
    """
    if noise.source == "trials":
        sigma2, df = (noise.items[name].fill_null(np.nan).to_numpy() for name in ("sigma2", "sigma2_df"))
        return resampling.ChiSquareVariances(sigma2[rows], df[rows], rng)
    checkpoint = measured.checkpoint
    residual = np.ascontiguousarray(noise.residual[rows])
    groups, alike, done = [], [], set()
    for number, table in enumerate(noise.runs if whole else ()):
        absent = table < 0
        if absent.any():  # a column without a score stands for runs that are not there
            residual = np.hstack([residual, np.full((len(residual), 1), np.nan)])
        groups += list(np.where(absent, residual.shape[1] - 1, table).T)
        alike += [number] * table.shape[1]
        done |= set(checkpoint[table[~absent]].tolist())
    for number, t in enumerate(np.unique(checkpoint)):
        group = np.flatnonzero(checkpoint == t)
        if t not in done and len(group) > 1:
            groups.append(group)
            alike.append(len(noise.runs) + number)
    return resampling.SeedVariances(residual, groups, rng, alike)


def seed_covariance(noise: NoiseEstimate, measured: Measurements, rows: NDArray[np.int64]) -> kernel.NoiseFactor | None:
    """Return the covariance over seeds of some items, shrunk towards its diagonal; None where a cell is missing.

    ``rows``: places of the items. See :func:`~benchwright.estimating._noise.shrunk_covariance`.
    """
    if noise.source != "seeds":
        return None
    repeated = np.flatnonzero(~np.isnan(noise.residual).all(axis=0))
    block = noise.residual[np.ix_(rows, repeated)]
    if not block.size or np.isnan(block).any() or not block.any():
        return None
    df = len(repeated) - len(np.unique(measured.checkpoint[repeated]))
    return kernel.shrunk_covariance(block, float(df), noise.training[repeated])
