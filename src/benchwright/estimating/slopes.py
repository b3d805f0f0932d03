"""Improvability of items: the slope of the score on the dose of each training axis, with its error.

For item i and axis k, over the runs on the axis' grid, p_ij = a_i + beta_ik x_j + e_ij by least squares; x is the
dose in slope units (10^9 tokens, say), so beta is score per slope unit and price / beta dollars per 1.0 of score.

Standard errors. ``ols``: equal variances, n - 2 degrees of freedom. ``hc3`` (MacKinnon and White 1985): unequal ones.
``seed``: the runs of one seed share what that seed does at all doses, so sums of scores by seed are squared, with
S / (S - 1) and S - 1 degrees of freedom; where all seeds have the same doses that is the t interval of the seeds' own
slopes, exact for normal ones. ``auto`` takes seed where two seeds or more have two doses each, else ols. Intervals are
t intervals.

Beside: the mean slope of a logistic curve, which stays inside [0, 1]; slopes scaled so that their sum of squares is
free of noise; and empirical-Bayes slopes, shrunk towards the mean of their task.

Cost ranks. Residuals of each axis' fit are drawn again (whole seeds, where seeds repeat the grid), all items are
priced and ranked again (Haupt et al., arXiv 2605.30916); by ``residual_draws`` the draw of models is one for all
items, which keeps their dependence, or one for each.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from benchwright._check import FloatArray
from benchwright._shown import Shown
from benchwright._words import count
from benchwright.choices import EligibilityChoices, EstimateChoices, Price
from benchwright.errors import UsageError
from benchwright.estimating import _resampling as resampling
from benchwright.estimating import _slopes as kernel
from benchwright.estimating._noise import known_mean, t_ends
from benchwright.estimating.eligibility import cost_eligible
from benchwright.estimating.measure import ITEM, Measurements
from benchwright.estimating.noise import check_replicates

FEW_ITEMS = 10  # a task with fewer is shrunk together with the other small ones
IntArray = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class AxisFit:
    """The fits of one axis: ``columns`` are the runs of its grid, ``x`` their doses in slope units.

    ``seeds``: the seed of each run where two seeds have two doses each and all are stated, else None.
    """

    axis: str
    columns: IntArray
    x: FloatArray
    fits: kernel.Fits
    errors: str
    seeds: IntArray | None


@dataclass(frozen=True, slots=True, eq=False)
class SlopeEstimate(Shown):
    """Slopes of the items of a panel.

    Attributes
    ----------
    items
        task, doc_id, anchor, per axis (lower case): slope_<axis>, _se, _lo, _hi, _n, _logit, _corrected, _eb, _eb_sd;
        null where not estimable, then <axis>_why says why; rank, rank_lo, rank_hi, cheapest_probability among
        eligible items.
    axes
        The axes with a slope for some item, as the panel names them.
    fits
        What belongs to each axis.
    top
        How many items ``cheapest_probability`` counts as the cheapest.
    """

    items: pl.DataFrame
    axes: tuple[str, ...]
    fits: Mapping[str, AxisFit]
    top: int
    notes: tuple[str, ...] = ()


def estimate_slopes(
    measured: Measurements,
    *,
    prices: Mapping[str, Price],
    choices: EstimateChoices,
    limits: EligibilityChoices,
    level: float,
    rng: np.random.Generator,
) -> SlopeEstimate | None:
    """Fit every item on every axis; None where no axis has two doses.

    Raises
    ------
    UsageError
        ``choices.replicates`` is too small for the level.
    """
    check_replicates(choices.replicates, level)
    notes: list[str] = []
    fits = {}
    for (name,), grid in measured.grid.group_by("axis", maintain_order=True):
        axis = str(name)
        if grid["x"].n_unique() < 2:
            notes.append(f"Axis {axis}: a single dose, so no slope is estimable.")
            continue
        fits[axis] = _fit_axis(measured, axis, grid, choices.slope_errors)
        notes += _axis_notes(measured, fits[axis])
    if not fits:
        return None
    items = measured.items.with_columns(anchor=_anchor(measured, fits, notes))
    for fit in fits.values():
        items = items.with_columns(_columns(measured, fit, level))
    unpriced = [axis for axis in fits if axis not in prices]
    for axis in unpriced:
        example = f'add {axis} = {{ usd = 1.0, per = "one unit" }} to [prices] in benchwright.toml'
        alike = [other for other in prices if other.lower() == axis.lower()]
        what = f"the price is that of {alike[0]}; call the axis so in a table of runs (--runs)" if alike else example
        notes.append(f"Axis {axis} has slopes but no price, so no costs: {what}.")
    ranks, top = _ranks(measured, items, fits, prices, choices, limits, level, rng)
    return SlopeEstimate(items.with_columns(ranks), tuple(fits), fits, top, tuple(notes))


def _fit_axis(measured: Measurements, axis: str, grid: pl.DataFrame, errors: str) -> AxisFit:
    columns, x = grid["run"].to_numpy(), grid["x"].to_numpy()
    seeds = _seeds(measured, columns, x)
    if errors == "auto":
        errors = "ols" if seeds is None else "seed"
    if errors == "seed" and seeds is None:
        raise UsageError(
            f"estimates.slope_errors = seed: no two seeds of axis {axis} have two doses, or runs state no seed",
            hint="name seeds in a table of runs (--runs), or use ols or hc3",
        )
    fits = kernel.fit_lines(measured.value[:, columns], x, errors=errors, cluster=seeds)
    engine = measured.slopes.filter(pl.col("axis") == axis)
    joined = measured.items.join(engine, on=ITEM, how="left", maintain_order="left")
    slope, intercept = (joined[name].fill_null(np.nan).to_numpy() for name in ("slope", "intercept"))
    slope = np.where(fits.slope == 0, 0.0, slope)  # engines round 0 each in their own way, and 1e-17 would have a price
    return AxisFit(axis, columns, x, replace(fits, slope=slope, intercept=intercept), errors, seeds)


def _seeds(measured: Measurements, columns: IntArray, x: FloatArray) -> IntArray | None:
    """Return the number of each run's seed if two or more of them have two doses each, else None.

    One seed of two models is two; but where each model has one dose, the names are of doses, and seeds go through.
    """
    frame = measured.runs.frame.select("name", "seed")[columns.tolist()].with_columns(x=pl.Series(x))
    if frame["seed"].null_count():
        return None
    for key in (["name", "seed"], ["seed"]):
        numbered = frame.select("x", number=pl.struct(key).rank("dense") - 1)
        doses = numbered.group_by("number").agg(n=pl.col("x").n_unique())
        if doses.filter(pl.col("n") > 1).height > 1:
            seeds: IntArray = numbered["number"].to_numpy().astype(np.int64)
            return seeds
    return None


def _axis_notes(measured: Measurements, fit: AxisFit) -> list[str]:
    notes = []
    frame = measured.runs.frame[fit.columns.tolist()]
    if frame["name"].n_unique() > 1:
        notes.append(
            f"Axis {fit.axis}: {frame['name'].n_unique()} models share one line per item, whatever their own level; "
            "estimates.models names those to use."
        )
    if fit.errors == "seed" and fit.seeds is not None:
        doses = {tuple(np.unique(fit.x[fit.seeds == seed])) for seed in np.unique(fit.seeds)}
        if len(doses) > 1:
            notes.append(
                f"Axis {fit.axis}: seeds have different doses, so errors by seed are rough, and rather too small."
            )
    if fit.errors == "ols" and 0 < frame["seed"].null_count() < frame.height:
        notes.append(f"Axis {fit.axis}: some runs state no seed, so errors take runs for independent of each other.")
    single = int((fit.fits.n_doses == 1).sum())
    if single:
        notes.append(f"Axis {fit.axis}: no slope for {count(single, 'item')} with a single dose.")
    return notes


def _anchor(measured: Measurements, fits: Mapping[str, AxisFit], notes: list[str]) -> pl.Series:
    """Return each item's mean score over the anchor's runs: those marked, else the smallest dose of each axis."""
    at = np.flatnonzero(measured.runs.frame["is_anchor"].to_numpy())
    if not len(at):
        at = np.unique(np.concatenate([fit.columns[fit.x == fit.x.min()] for fit in fits.values()]))
        notes.append(
            f"The anchor of costs is the smallest dose of each axis ({count(len(at), 'run')}); "
            "estimates.anchor names another."
        )
    mean = known_mean(measured.value[:, at])
    return pl.Series("anchor", mean).fill_nan(None)


def _columns(measured: Measurements, fit: AxisFit, level: float) -> list[pl.Series]:
    """Return the columns of one axis."""
    fits = fit.fits
    seen = (fits.residual_variance > 0) & (fits.standard_error > 0)
    spread = np.where(seen, fits.standard_error, np.nan)  # no spread seen: no interval
    low, high = t_ends(fits.slope, spread, fits.df, level)
    logit = kernel.logit_slopes(measured.value[:, fit.columns], fit.x)
    best, deviation = kernel.shrunk_slopes(fits.slope, spread, task_groups(measured.items["task"]))
    scale = kernel.corrected_scale(fits.slope, spread)
    values = {
        "": fits.slope,
        "_se": spread,
        "_lo": low,
        "_hi": high,
        "_logit": np.where(np.isfinite(fits.slope) & measured.bounded, logit, np.nan),
        "_corrected": fits.slope * scale,
        "_eb": best,
        "_eb_sd": deviation,
    }
    name = f"slope_{fit.axis.lower()}"
    columns = [pl.Series(name + suffix, value).fill_nan(None) for suffix, value in values.items()]
    why = np.select(
        [fits.n == 0, fits.n_doses < 2, ~np.isfinite(fits.standard_error), np.isnan(spread)],
        ["no run", "a single dose", "too few runs for an error", "no spread about its line, so no error"],
        "",
    )
    reason = pl.Series(f"{fit.axis.lower()}_why", why)
    return [*columns, pl.Series(name + "_n", fits.n), reason.set(reason == "", None)]


def task_groups(tasks: pl.Series) -> IntArray:
    """Return a code for each task, one for all small tasks together."""
    table = tasks.to_frame().with_columns(n=pl.len().over("task"))
    named = table.select(pl.when(pl.col("n") >= FEW_ITEMS).then("task").rank("dense").fill_null(0)).to_series()
    return named.cast(pl.Int64).to_numpy()


def slope_draws(
    measured: Measurements, fit: AxisFit, rows: IntArray, *, shared: bool, rng: np.random.Generator
) -> resampling.Draw:
    """Return the bootstrap of some items' slopes on one axis: of seeds where they share the grid, else of residuals."""
    fits = kernel.Fits(**{name: getattr(fit.fits, name)[rows] for name in kernel.Fits.__dataclass_fields__})
    y = measured.value[np.ix_(rows, fit.columns)]
    if shared and fit.errors == "seed" and fit.seeds is not None:
        scores = kernel.seed_scores(y, fit.x, fits, fit.seeds)
        return resampling.SeedSlopeReplicates(fits.slope, np.where(np.isnan(scores), 0.0, scores), rng)
    return resampling.SlopeReplicates(fits.slope, kernel.fitted_residuals(y, fit.x, fits), fit.x, rng, shared=shared)


def _ranks(
    measured: Measurements,
    items: pl.DataFrame,
    fits: Mapping[str, AxisFit],
    prices: Mapping[str, Price],
    choices: EstimateChoices,
    limits: EligibilityChoices,
    level: float,
    rng: np.random.Generator,
) -> tuple[list[pl.Series], int]:
    """Rank the eligible items by dollars per unit of score, cheapest first, with intervals."""
    priced = {axis: fit for axis, fit in fits.items() if axis in prices}
    columns = {name: np.full(items.height, np.nan) for name in ("rank", "rank_lo", "rank_hi", "cheapest_probability")}
    top = 0
    if priced:
        dollars = [prices[axis].usd for axis in priced]
        cost = resampling.cheapest([fit.fits.slope for fit in priced.values()], dollars)
        cost = np.where(np.isfinite(cost), cost, np.nan)
        marked = items.with_columns(cost_usd=pl.Series(cost).fill_nan(None), bounded=pl.Series(measured.bounded))
        at = np.flatnonzero(marked.select(cost_eligible(limits).fill_null(False)).to_series().to_numpy())
        m, top = len(at), max(1, round(choices.top_share * len(at)))
        if m:
            shared = choices.residual_draws == "shared"
            draws = [slope_draws(measured, fit, at, shared=shared, rng=rng) for fit in priced.values()]
            drawn = resampling.rank_replicates(
                lambda: resampling.cheapest([draw() for draw in draws], dollars),
                m,
                replicates=choices.replicates,
                level=level,
                top=top,
            )
            varies = np.any([fit.fits.standard_error[at] > 0 for fit in priced.values()], axis=0)
            columns["rank"][at[np.lexsort((np.arange(m), cost[at]))]] = np.arange(1, m + 1)
            columns["rank_lo"][at] = np.where(varies, drawn.low, np.nan)
            columns["rank_hi"][at] = np.where(varies, drawn.high, np.nan)
            columns["cheapest_probability"][at] = np.where(varies, drawn.first, np.nan)
    series = [pl.Series(name, values).fill_nan(None) for name, values in columns.items()]
    return [one.cast(pl.Int64) if one.name.startswith("rank") else one for one in series], top
