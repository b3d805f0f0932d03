"""How sure the weights are, from a panel: slopes and noise are drawn again, and the game is solved for each draw.

Slopes by their bootstrap (scaled or shrunk as the slopes behind the weights are), variances by the seed bootstrap,
all items in one draw, so that what moves together does; axes and noise are drawn apart from each other. A covariance
over seeds, welfare, prices and curvature stay as they are. Noise in slopes inflates M, and drawing it twice inflates
it more: the interval tells how far weights move with the data at hand; it is no promise to cover the best weights.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from benchwright._check import FloatArray
from benchwright._words import count
from benchwright.config import Config
from benchwright.estimating import _resampling as resampling
from benchwright.estimating.estimates import WEIGHTS, PanelEstimates
from benchwright.estimating.noise import seed_covariance, variance_draws
from benchwright.estimating.slopes import slope_draws
from benchwright.logs.item_tables import ITEM
from benchwright.mechanism.aggregation import ItemAggregation, optimal_weights

MAX_DRAWS = 400
MAX_CELLS = 20_000_000  # of draws times items held at once: 160 MB


def rows_of(estimates: PanelEstimates, items: pl.DataFrame) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return the places of items among those of the panel."""
    placed = estimates.measured.items.with_row_index("place")
    joined = items.select(*ITEM).join(placed, on=ITEM, how="left", maintain_order="left")
    return joined["place"].to_numpy().astype(np.int64)


def full_covariance(
    estimates: PanelEstimates, items: pl.DataFrame, notes: list[str]
) -> tuple[FloatArray, FloatArray | None]:
    """Return diagonal and factor of the covariance over seeds, the diagonal alone where a cell is missing."""
    found = None
    if estimates.noise is not None:
        found = seed_covariance(estimates.noise, estimates.measured, rows_of(estimates, items))
    if found is None:
        notes.append(
            "The covariance over seeds needs runs with every item, so the weights rest on each item's own noise."
        )
        return items["sigma2"].to_numpy(), None
    notes.append(f"The covariance over seeds is shrunk towards its diagonal by {found.shrinkage:.3f}.")
    return found.variance, found.factor


def _line(items: pl.DataFrame, axis: str, slopes: str) -> tuple[FloatArray, FloatArray]:
    """Return a and c (m, 1) with a + c (b - a) the slope behind the weights where b is the one that is estimated."""
    name = f"slope_{axis.lower()}"
    b = items[name].to_numpy()[:, None]
    if slopes == "noise-corrected":
        scale = np.divide(items[f"{name}_corrected"].to_numpy()[:, None], b, out=np.ones_like(b), where=b != 0)
        return np.zeros_like(b), scale
    if slopes == "empirical-bayes":
        share = np.square(items[f"{name}_eb_sd"].to_numpy() / items[f"{name}_se"].to_numpy())[:, None]
        apart = np.where(share < 1, 1 - share, 1.0)
        mean = np.where(share < 1, (items[f"{name}_eb"].to_numpy()[:, None] - share * b) / apart, b)
        return mean, share
    return np.zeros_like(b), np.ones_like(b)


def weight_intervals(
    model: ItemAggregation,
    estimates: PanelEstimates,
    items: pl.DataFrame,
    prices: FloatArray,
    config: Config,
    notes: list[str],
) -> dict[str, pl.Series] | None:
    """Return weight_lo, weight_hi and weight_positive (share of draws above 0), or None where nothing can be drawn."""
    slopes, level = estimates.slopes, config.resampling.level
    axes = [] if slopes is None else [axis for axis in slopes.axes if axis in config.prices]
    draws = min(MAX_DRAWS, MAX_CELLS // max(1, items.height), config.estimates.replicates)
    k = resampling.tail_count(draws, level)
    if slopes is None or not axes or k < 1:
        why = f"{count(draws, 'draw')} of {items.height:,} items are too few for the level {level:g}"
        notes.append(f"Weights have no intervals: {why} (estimates.replicates, at most {MAX_CELLS:,} cells).")
        return None
    rows = rows_of(estimates, items)
    rng = np.random.default_rng([config.resampling.seed, WEIGHTS])
    shared = config.estimates.residual_draws == "shared"
    of_slopes = [slope_draws(estimates.measured, slopes.fits[axis], rows, shared=shared, rng=rng) for axis in axes]
    lines = [_line(items, axis, config.estimates.slopes) for axis in axes]
    of_noise = None
    if estimates.noise is not None and config.estimates.covariance == "diagonal":
        whole = config.estimates.seed_draws == "auto"
        of_noise = variance_draws(estimates.noise, estimates.measured, rows, whole=whole, rng=rng)
        if isinstance(of_noise, resampling.SeedVariances) and of_noise.empty_share > (1 - level) / 2:
            of_noise = None  # too many draws would have no noise at all
    weights = np.empty((draws, items.height))
    done = 0
    while done < draws:
        slope = [start + share * (draw() - start) for draw, (start, share) in zip(of_slopes, lines, strict=True)]
        variance = None if of_noise is None else of_noise()
        for b in range(min(resampling.CHUNK, draws - done)):
            stated = np.asarray(model.noise_variance)
            again = ItemAggregation(
                np.stack([one[:, b] for one in slope], axis=1) / prices,
                model.welfare,
                risk_aversion=model.risk_aversion,
                noise_variance=stated if variance is None else np.where(variance[:, b] >= 0, variance[:, b], stated),
                noise_factor=model.noise_factor,
                curvature=model.curvature,
            )
            weights[done] = optimal_weights(again).weights
            done += 1
    weights.sort(axis=0)
    seen, kept = ("slopes", "noise, welfare") if of_noise is None else ("slopes and noise", "welfare")
    notes.append(f"Intervals of weights: {count(draws, 'draw')} of {seen}; {kept} and curvature as they are.")
    return {
        "weight_lo": pl.Series(weights[k - 1]),
        "weight_hi": pl.Series(weights[draws - k]),
        "weight_positive": pl.Series((weights > 0).mean(axis=0)),
    }
