"""How sure the weights are, from a panel: slopes and noise are drawn again, and the game is solved for each draw.

Slopes by their residual bootstrap, variances by the seed bootstrap, all items in one draw, so that what moves together
does. Welfare, prices and curvature stay as they are. Noise in slopes inflates M, and drawing it twice inflates it more:
the interval tells how far weights move with the data at hand; it is no promise to cover the best weights.
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
    found = None if estimates.noise is None else seed_covariance(estimates.noise, rows_of(estimates, items))
    if found is None:
        notes.append(
            "The covariance over seeds needs runs with every item, so the weights rest on each item's own noise."
        )
        return items["sigma2"].to_numpy(), None
    notes.append(f"The covariance over seeds is shrunk towards its diagonal by {found.shrinkage:.3f}.")
    return found.variance, found.factor


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
        notes.append("Weights have no intervals: too many items or too few replicates to draw them again.")
        return None
    rows = rows_of(estimates, items)
    rng = np.random.default_rng([config.resampling.seed, WEIGHTS])
    shared = config.estimates.residual_draws == "shared"
    of_slopes = [slope_draws(estimates.measured, slopes.fits[axis], rows, shared=shared, rng=rng) for axis in axes]
    whole = config.estimates.seed_draws == "auto"
    of_noise = None
    if estimates.noise is not None:
        of_noise = variance_draws(estimates.noise, estimates.measured, rows, whole=whole, rng=rng)
    stated, weights = items["sigma2"].to_numpy(), np.empty((draws, items.height))
    done = 0
    while done < draws:
        slope = [draw() for draw in of_slopes]
        variance = None if of_noise is None else of_noise()
        for b in range(min(resampling.CHUNK, draws - done)):
            again = ItemAggregation(
                np.stack([one[:, b] for one in slope], axis=1) / prices,
                model.welfare,
                risk_aversion=model.risk_aversion,
                noise_variance=stated if variance is None else np.where(variance[:, b] >= 0, variance[:, b], stated),
                curvature=model.curvature,
            )
            weights[done] = optimal_weights(again).weights
            done += 1
    weights.sort(axis=0)
    seen = "slopes" if of_noise is None else "slopes and noise"
    notes.append(f"Intervals of weights: {count(draws, 'draw')} of {seen}, welfare and curvature as they are.")
    return {
        "weight_lo": pl.Series(weights[k - 1]),
        "weight_hi": pl.Series(weights[draws - k]),
        "weight_positive": pl.Series((weights > 0).mean(axis=0)),
    }
