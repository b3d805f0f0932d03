"""Weights that are best on average over what is not known, beside those that are best for one estimate.

Let slopes be drawn again as A_1 ... A_D, apart from welfare, whose draws have the mean w. The mean surplus of weights v
is then that of one game with more axes:

    mean S_d(v) = w'Mv - v'Mv / 2 - r v'Sigma v / 2,    M = mean A_d C^-1 A_d' = B C^-1 B',  B = [A_1 ... A_D] / sqrt(D)

with C repeated along the axes and noise as estimated. Weights that fit one estimate of A use its small differences
between items, which another draw does not have; the mean of A_d C^-1 A_d' is the estimate's own M and the covariance of
the slopes, N, which adds (w - v)'N(w - v) / 2 to what is lost: it draws weights towards w where slopes are unsure.
Draws stand for what the slopes may be, given the data; this is not the correction of M for its noise, which asks what M
is.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import numpy as np

from benchwright.errors import UsageError
from benchwright.mechanism.game import ItemAggregation

DRAWS, COLUMNS, CELLS = 64, 256, 20_000_000  # draws, axes of all of them, items times axes: at most
FEWEST = 16  # draws


def averaged_game(model: ItemAggregation, draws: Iterator[ItemAggregation]) -> ItemAggregation | None:
    """Return the game whose surplus is the mean one over draws; None where there is no room for enough of them.

    Parameters
    ----------
    model
        The estimate: its welfare, noise and curvature, a number c0, are kept.
    draws
        Games of the same items; 64 are taken, or as many as 256 axes in all leave room for.

    Examples
    --------
    >>> from benchwright.mechanism.aggregation import optimal_weights
    >>> def game(*slopes):
    ...     return ItemAggregation([[a] for a in slopes], [1.0, -0.5], risk_aversion=1, noise_variance=[0.1, 0.1])
    >>> optimal_weights(game(1.0, 1.0)).weights.round(2)
    array([0.24, 0.24])
    >>> unsure = averaged_game(game(1.0, 1.0), iter([game(1.0, 2.0), game(1.0, 0.0)] * 32))
    >>> optimal_weights(unsure).weights.round(2)
    array([ 0.8 , -0.38])
    """
    (m, n), c0 = model.technology.shape, model.curvature
    if not isinstance(c0, float):
        raise UsageError("`model` must have one number for its curvature")
    count = min(DRAWS, COLUMNS // n, CELLS // (m * n))
    if count < FEWEST:
        return None
    taken = [game.technology for game in islice(draws, count)]
    return ItemAggregation(
        np.hstack(taken) / np.sqrt(count),
        model.welfare,
        risk_aversion=model.risk_aversion,
        noise_variance=model.noise_variance,
        noise_factor=model.noise_factor,
        curvature=c0,
        names=model.names,
    )
