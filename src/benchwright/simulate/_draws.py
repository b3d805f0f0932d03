"""Numbers behind simulated panels: noise, and moments of scores that are means of right-or-wrong draws.

Axes of an array are m items, J models, S seeds, K checkpoints; Q are nodes of Gauss-Hermite quadrature. Noise has the
covariance (1 - common) diag(scale^2) + common scale scale' over items. Against adaptive integration of E p and E p^2
the quadrature was off by less than 1e-9 for noise of standard deviation 1 and 2, by up to 3e-5 for 4, 3e-3 for 8.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import expit

from benchwright._check import FloatArray

QUADRATURE_NODES = 64


def unit_draws(distribution: str, shape: tuple[int, ...], rng: np.random.Generator) -> FloatArray:
    """Return draws of mean 0 and variance 1: "normal", "t5" (Student's), or "skewed" (exponential)."""
    if distribution == "normal":
        return rng.standard_normal(shape)
    if distribution == "t5":
        return rng.standard_t(5, shape) * math.sqrt(3 / 5)
    return rng.standard_exponential(shape) - 1


def noise_draws(
    scale: FloatArray, common: float, distribution: str, shape: tuple[int, ...], rng: np.random.Generator
) -> FloatArray:
    """Return noise of ``shape``, whose second axis are the items of ``scale`` (m,)."""
    column = scale.reshape(-1, *[1] * (len(shape) - 2))
    noise = unit_draws(distribution, shape, rng)
    noise *= math.sqrt(1 - common) * column
    noise += math.sqrt(common) * column * unit_draws(distribution, (shape[0], 1, *shape[2:]), rng)
    return noise


def noise_covariance(scale: FloatArray, common: float) -> FloatArray:
    """Return the covariance of the noise over items, shape (m, m)."""
    covariance = common * np.outer(scale, scale)
    np.fill_diagonal(covariance, scale**2)
    return covariance


def chances(
    latent: FloatArray, scale: FloatArray, common: float
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Integrate p, logit p = latent + normal noise, over the noise, one draw for all checkpoints.

    Returns
    -------
    given_common
        E(p | common part of the noise) at each node, shape (m, J, K, Q).
    square
        E p^2, shape (m, J, K).
    square_of_mean
        E (mean of p over checkpoints)^2, shape (m, J).
    weights
        Weights of the nodes, shape (Q,).
    """
    nodes, weights = np.polynomial.hermite_e.hermegauss(QUADRATURE_NODES)
    weights = weights / weights.sum()
    column = scale[:, None, None, None]
    shared = latent[..., None] + math.sqrt(common) * column * nodes
    given_common, square, square_of_mean = np.zeros(shared.shape), np.zeros(latent.shape), np.zeros(latent.shape[:2])
    for node, weight in zip(nodes, weights, strict=True):
        p = expit(shared + math.sqrt(1 - common) * column * node)
        given_common += weight * p
        square += weight * (p**2 @ weights)
        square_of_mean += weight * (p.mean(axis=2) ** 2 @ weights)
    return given_common, square, square_of_mean, weights


def binomial_moments(
    latent: FloatArray, scale: FloatArray, common: float, trials: int
) -> tuple[FloatArray, FloatArray]:
    """Return expectation and variance across seeds of scores Binomial(trials, p) / trials, each shape (m, J, K)."""
    given_common, square, _, weights = chances(latent, scale, common)
    expected: FloatArray = given_common @ weights
    return expected, (expected - square) / trials + square - expected**2


def binomial_covariances(
    latent: FloatArray, scale: FloatArray, common: float, trials: int
) -> tuple[FloatArray, FloatArray]:
    """Return covariances over items across seeds of the same scores, each shape (m, m).

    The first is within a checkpoint, averaged over models and checkpoints; the second between two of a model,
    averaged over models and pairs, NaN for one checkpoint.
    """
    m, models, checkpoints = latent.shape
    given_common, square, square_of_mean, weights = chances(latent, scale, common)
    expected = given_common @ weights
    centred = (given_common - expected[..., None]) * np.sqrt(weights)
    flat, mean = centred.reshape(m, -1), centred.mean(axis=2).reshape(m, -1)
    within, of_mean = flat @ flat.T / (models * checkpoints), mean @ mean.T / models
    np.fill_diagonal(within, (square - expected**2).mean(axis=(1, 2)))
    np.fill_diagonal(of_mean, (square_of_mean - expected.mean(axis=2) ** 2).mean(axis=1))
    # K^2 pairs of checkpoints make up the covariance of their mean, K of them with itself.
    between = (checkpoints * of_mean - within) / (checkpoints - 1) if checkpoints > 1 else np.full((m, m), np.nan)
    np.fill_diagonal(within, within.diagonal() + (expected - square).mean(axis=(1, 2)) / trials)
    return within, between


def mean_slopes(expected: FloatArray, dose: FloatArray) -> FloatArray:
    """Return least-squares slopes of (m, J, K) on the dose (K,), averaged over J, shape (m,); NaN for one dose."""
    centred = dose - dose.mean()
    if len(dose) < 2:
        return np.full(len(expected), np.nan)
    slopes: FloatArray = expected.mean(axis=1) @ centred / (centred @ centred)
    return slopes
