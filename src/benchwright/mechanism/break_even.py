"""The neutral point at which rewarding the plain average turns from help to harm, and how sure it is.

With M = A A' / c0 and uniform u, u'M(w - t 1) is linear in the neutral point t, so it turns sign at

    t* = u'Mw / u'M1 = (1'A)(A'w) / |A'1|^2,

whatever the curvature and the risk aversion. Below t* the plain average helps, above it harms. Its interval
resamples whole tasks; the slopes' own sampling error is not in it and would widen it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, cast

import numpy as np
import polars as pl

from benchwright._check import FloatArray
from benchwright.auditing import _kernels as kernels
from benchwright.auditing._kernels import IntArray
from benchwright.choices import LabChoices
from benchwright.config import Config
from benchwright.errors import DataError
from benchwright.mechanism.aggregation import ItemAggregation, evaluate_scheme
from benchwright.mechanism.calibration import calibrate_curvature
from benchwright.mechanism.results import Calibration

FRAMINGS = {"automation": "w_auto", "augmentation": "w_aug"}
IN_FORCE = "in force"
STREAM = 2  # of the seed; 0 and 1 are the welfare contrasts
NEUTRAL_POINTS = np.linspace(1.0, 5.0, 41)


@dataclass(frozen=True, slots=True)
class BreakEven:
    """One framing's break-even neutral point on [1,5], with a percentile interval over resampled tasks.

    NaN where the plain average moves nothing; the interval is NaN with fewer than two tasks.
    """

    point: float
    interval: tuple[float, float]
    level: float

    def settles(self, neutral: float) -> bool:
        """Whether the interval leaves no doubt on which side of the break-even ``neutral`` lies."""
        low, high = self.interval
        return neutral < low or neutral > high


def break_even(
    technology: FloatArray,
    welfare: FloatArray,
    tasks: IntArray,
    *,
    replicates: int,
    level: float,
    rng: np.random.Generator,
) -> BreakEven:
    """Return the break-even neutral point of the plain average.

    Parameters
    ----------
    technology
        A (m, n), score per dollar.
    welfare
        Welfare on [1,5] before the neutral point is taken off, shape (m,).
    tasks
        Task of each item as codes 0..c-1, shape (m,).
    replicates, level, rng
        Task bootstraps, level of the interval, source of randomness.
    """
    n_tasks, n = int(tasks.max()) + 1, technology.shape[1]
    sums = kernels.cluster_sums(np.hstack([technology, technology * welfare[:, None]]), tasks, n_tasks)
    point = float(_turning(sums.sum(axis=0)[None], n)[0])
    if n_tasks < 2 or not np.isfinite(point):
        return BreakEven(point, (np.nan, np.nan), level)
    drawn = np.concatenate(
        [
            _turning(kernels.bootstrap_counts(n_tasks, size, rng) @ sums, n)
            for size in kernels.blocks(replicates, n_tasks)
        ]
    )
    tail = (1 - level) / 2
    low, high = np.nanquantile(drawn, [tail, 1 - tail])
    return BreakEven(point, (float(low), float(high)), level)


def _turning(totals: FloatArray, n: int) -> FloatArray:
    """Return (1'A)(A'w) / |A'1|^2 from rows of [A'1, A'w], shape (b, 2 n)."""
    pull = totals[:, :n]
    size = np.einsum("ij,ij->i", pull, pull)
    turning: FloatArray = np.full(len(totals), np.nan)
    np.divide(np.einsum("ij,ij->i", pull, totals[:, n:]), size, out=turning, where=size > 0)
    return turning


def framings_of(items: pl.DataFrame, config: Config) -> dict[str, FloatArray]:
    """Return welfare on [1,5] under each framing, and under the mixture that is in force."""
    framings = {name: items[column].to_numpy() for name, column in FRAMINGS.items()}
    return framings | {IN_FORCE: items["welfare"].to_numpy() + config.welfare.neutral}


def break_evens(
    technology: FloatArray, items: pl.DataFrame, framings: Mapping[str, FloatArray], config: Config
) -> dict[str, BreakEven]:
    tasks = items["task"].rank("dense").to_numpy().astype(np.int64) - 1
    draws = config.resampling
    return {
        framing: break_even(
            technology,
            welfare,
            tasks,
            replicates=draws.replicates,
            level=draws.level,
            rng=np.random.default_rng([draws.seed, STREAM]),
        )
        for framing, welfare in framings.items()
    }


def neutral_sweep(
    technology: FloatArray,
    framings: Mapping[str, FloatArray],
    variance: FloatArray,
    factor: FloatArray,
    lab: LabChoices,
) -> pl.DataFrame:
    """Return the plain average's efficiency over neutral points, under noise diag(``variance``) + F F'.

    The curvature is calibrated anew at each point, by the rule auto, unless ``lab.curvature`` is set.
    """
    rows = []
    uniform = np.full(len(variance), 1.0 / len(variance))
    for framing, stated in framings.items():
        for neutral in NEUTRAL_POINTS:
            welfare = stated - neutral
            try:
                c0 = calibrated(technology, welfare, variance, factor, replace(lab, calibration="auto")).c0
            except DataError:  # no effort has value at this neutral point
                rows.append((framing, float(neutral), np.nan, 0))
                continue
            model = ItemAggregation(
                technology,
                welfare,
                risk_aversion=lab.risk_aversion,
                noise_variance=variance,
                noise_factor=factor,
                curvature=c0,
            )
            result = evaluate_scheme(model, uniform)
            rows.append((framing, float(neutral), result.efficiency, result.alignment))
    schema = ["framing", "neutral", "efficiency", "alignment"]
    return pl.DataFrame(rows, schema=schema, orient="row").with_columns(pl.col("efficiency").fill_nan(None))


def calibrated(
    technology: FloatArray, welfare: FloatArray, variance: FloatArray, factor: FloatArray, lab: LabChoices
) -> Calibration:
    """Return the curvature that the configuration sets or calibrates, noise being diag(``variance``) + F F'."""
    if lab.curvature is not None:
        return Calibration(lab.curvature, "given", "lab.curvature is set")
    return calibrate_curvature(
        technology,
        welfare,
        noise_variance=variance,
        noise_factor=factor,
        risk_aversion=lab.risk_aversion,
        budget=lab.budget,
        rule=cast(Literal["auto", "uniform", "first-best"], lab.calibration),
    )
