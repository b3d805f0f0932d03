"""Item panels with known answers: levels, slopes and noise are stated, so that estimates can be held against them.

Score of item i, model j, seed s, checkpoint t with dose x_t::

    y_ijst = mu_i + theta_j + beta_i x_t + a_ijs + e_ijst

* mu_i ~ N(level, level_sd^2), beta_i ~ N(slope_mean, slope_sd^2), theta_j ~ N(0, model_sd^2) or as stated;
* a is persistent: one draw for all checkpoints of a seed; e is a new draw at each of them. Both have mean 0 and are
  independent over seeds and models. With R = (1 - common) diag(sigma^2) + common sigma sigma' and
  sigma_i = noise_sd exp(noise_spread z_i), z_i ~ N(0, 1), their covariances over items are
  Sigma_a = persistent R and Sigma_e = (1 - persistent) R: a diagonal plus one factor that all items share;
* the own and the shared part of a and of e each come from ``distribution``, scaled to its variance: normal, Student's
  t with 5 degrees of freedom, or an exponential less its mean (skewness 2);
* so the variance across seeds within a checkpoint is sigma2_i = sigma_i^2, and scores may leave [0, 1].

With ``trials`` = k the score is a mean of k right-or-wrong draws, whose chance replaces e::

    k y_ijst ~ Binomial(k, p_ijst),    logit p_ijst = mu_i + theta_j + beta_i x_t + a_ijs

Levels, slopes and noise are then log-odds, a is normal, and the variance across seeds is E p (1 - p) / k + Var p, which
is E p (1 - E p) at k = 1. It differs between checkpoints and models: ``sigma2``, ``covariance`` and
``persistent_covariance`` are averages over them, ``slope`` is the least-squares slope of the expected score on the
dose, averaged over models. Moments of p are integrals over a by Gauss-Hermite quadrature.

Items and models follow from ``seed`` alone, noise from ``rng``: all draws from one ``PanelSimulation`` have one truth.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.special import expit

from benchwright._check import FloatArray
from benchwright._shown import Shown
from benchwright.errors import UsageError
from benchwright.simulate import _draws as kernels
from benchwright.simulate.parameters import PanelSimulation, SimulatedAxis, whole_number

IntArray = NDArray[np.int64]

_ITEMS, _NOISE, _AXES = range(3)  # streams of one seed


@dataclass(frozen=True, slots=True, eq=False)
class SimulatedPanel(Shown):
    """Scores of m items, J models, S seeds and K checkpoints, and the truth behind them.

    Attributes
    ----------
    values
        Scores, shape (m, J, S, K), or (P, m, J, S, K) for P panels; missing ones are NaN.
    expected
        Expected score at each checkpoint, shape (m, J, K).
    mean, benchmark_mean
        Its mean over checkpoints, shape (m, J), and of that over items, shape (J,).
    rank
        Rank of the models by that, 1 the best; equal ones share the better rank. Shape (J,).
    slope
        Change of the expected score per unit of dose, shape (m,); with ``trials`` NaN for one checkpoint.
    sigma2
        Variance across seeds within a checkpoint, shape (m,).
    """

    simulation: PanelSimulation
    values: FloatArray
    expected: FloatArray
    mean: FloatArray
    benchmark_mean: FloatArray
    rank: IntArray
    slope: FloatArray
    sigma2: FloatArray

    @property
    def covariance(self) -> FloatArray:
        """Covariance over items across seeds within a checkpoint, shape (m, m); its diagonal is ``sigma2``."""
        return _covariances(self.simulation)[0]

    @property
    def persistent_covariance(self) -> FloatArray:
        """Covariance over items across seeds between two checkpoints, shape (m, m): Sigma_a.

        The mean over K checkpoints then has covariance (C + (K - 1) A) / K, where C is ``covariance`` and A this.
        With ``trials`` NaN for one checkpoint.
        """
        return _covariances(self.simulation)[1]


@dataclass(frozen=True, slots=True, eq=False)
class SimulatedGrid(Shown):
    """Scores of m items and R runs, one a dose of an axis and seed, and the truth behind them.

    Attributes
    ----------
    values
        Scores, shape (m, R), or (P, m, R) for P grids; missing ones are NaN.
    axis, dose, seed
        Axis of a run as its place in ``axes``, dose on it and seed, each shape (R,).
    expected
        Expected score, shape (m, R).
    slopes
        Change of the expected score per unit of dose, shape (m, len(axes)), NaN as ``SimulatedPanel.slope``.
    sigma2
        Variance across seeds, shape (m,).
    """

    simulation: PanelSimulation
    axes: tuple[SimulatedAxis, ...]
    values: FloatArray
    axis: IntArray
    dose: FloatArray
    seed: IntArray
    expected: FloatArray
    slopes: FloatArray
    sigma2: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class _World:
    """What the seed decides: item levels, slopes and noise, each shape (m,), and model levels, shape (J,)."""

    level: FloatArray
    slope: FloatArray
    sigma: FloatArray
    theta: FloatArray

    def latent(self, slope: FloatArray, dose: FloatArray) -> FloatArray:
        """Return the score, or log-odds, without noise, shape (m, J, K)."""
        return self.level[:, None, None] + self.theta[:, None] + slope[:, None, None] * dose


def draw_panel(
    simulation: PanelSimulation | None = None, *, rng: np.random.Generator | None = None, panels: int | None = None
) -> SimulatedPanel:
    """Draw one panel, or ``panels`` independent ones at once, from one truth.

    Parameters
    ----------
    simulation
        Parameters; by default :class:`PanelSimulation` as it comes.
    rng
        Source of the noise; by default a stream of the simulation's seed, the same at each call.
    panels
        Number P of panels in ``values``, which then has one more dimension, the first.

    Examples
    --------
    >>> panel = draw_panel(PanelSimulation(n_items=5, n_seeds=3, doses=(0, 1), model_levels=(0, 0.1, 0)))
    >>> panel.values.shape, panel.rank.tolist()
    ((5, 3, 3, 2), [2, 1, 2])
    """
    given = PanelSimulation() if simulation is None else simulation
    world = _world(given)
    latent = world.latent(world.slope, given.dose)
    expected, variance = _truth(given, latent, world.sigma)
    values = _draw(given, latent, world.sigma, _generator(given, rng), panels)
    mean = expected.mean(axis=2)
    return SimulatedPanel(
        simulation=given,
        values=values if panels is not None else values[0],
        expected=expected,
        mean=mean,
        benchmark_mean=mean.mean(axis=0),
        rank=1 + len(world.theta) - np.searchsorted(np.sort(world.theta), world.theta, side="right"),
        slope=world.slope if given.trials is None else kernels.mean_slopes(expected, given.dose),
        sigma2=variance.mean(axis=(1, 2)),
    )


def draw_grid(
    simulation: PanelSimulation,
    axes: Sequence[SimulatedAxis],
    *,
    rng: np.random.Generator | None = None,
    panels: int | None = None,
) -> SimulatedGrid:
    """Draw runs of models that were trained along several axes, each from the same base.

    Per axis the scores are a panel of one model: the doses and slopes are the axis' own, the persistent noise of a
    seed is new, and ``simulation`` gives all else; its own doses, slopes and axis are not used.

    Parameters
    ----------
    simulation
        Items, seeds and noise, of one model.
    axes
        Axes with different names.
    rng, panels
        As for :func:`draw_panel`.

    Examples
    --------
    >>> axes = SimulatedAxis("PT", (0, 1, 2)), SimulatedAxis("SFT", (0, 5), slope_mean=0.02)
    >>> grid = draw_grid(PanelSimulation(n_items=4, n_seeds=1), axes)
    >>> grid.values.shape, grid.axis.tolist(), grid.dose.tolist(), grid.slopes.shape
    ((4, 5), [0, 0, 0, 1, 1], [0.0, 1.0, 2.0, 0.0, 5.0], (4, 2))
    """
    names = [axis.name for axis in axes]
    if not names or len(set(names)) < len(names):
        raise UsageError(f"`axes` must hold axes with different names, got {', '.join(names) or 'none'}")
    world = _world(simulation)
    if len(world.theta) != 1:
        raise UsageError(f"`simulation` must have one model, got {len(world.theta)}", hint="draw a panel for several")
    noise = _generator(simulation, rng)
    m, n_seeds = simulation.n_items, simulation.n_seeds
    drawn = np.random.default_rng([simulation.seed, _AXES]).standard_normal((len(axes), m))
    values, expected, variances, slopes, runs = [], [], [], [], []
    for code, axis in enumerate(axes):
        dose = np.array(axis.doses)
        slope = axis.slope_mean + axis.slope_sd * drawn[code]
        latent = world.latent(slope, dose)
        truth, variance = _truth(simulation, latent, world.sigma)
        values.append(_draw(simulation, latent, world.sigma, noise, panels).reshape(-1, m, n_seeds * len(dose)))
        expected.append(np.tile(truth[:, 0], (1, n_seeds)))
        variances.append(np.tile(variance[:, 0], (1, n_seeds)))
        slopes.append(slope if simulation.trials is None else kernels.mean_slopes(truth, dose))
        runs.append([(code, x, seed) for seed in range(n_seeds) for x in axis.doses])
    codes, doses, seeds = zip(*(run for block in runs for run in block), strict=True)
    together = np.concatenate(values, axis=2)
    return SimulatedGrid(
        simulation=simulation,
        axes=tuple(axes),
        values=together if panels is not None else together[0],
        axis=np.array(codes, dtype=np.int64),
        dose=np.array(doses),
        seed=np.array(seeds, dtype=np.int64),
        expected=np.hstack(expected),
        slopes=np.stack(slopes, axis=1),
        sigma2=np.hstack(variances).mean(axis=1),
    )


def to_frame(drawn: SimulatedPanel | SimulatedGrid) -> pl.DataFrame:
    """Return one row per run and item, in the layout that ``read_logs`` reads from CSV or Parquet.

    Columns: model, seed, step, axis, dose, task, doc_id, score. A grid has one model for each axis and dose, and no
    steps. Missing scores have no row.

    Raises
    ------
    UsageError
        There are several panels in ``drawn``.

    Examples
    --------
    >>> to_frame(draw_panel(PanelSimulation(n_items=2, n_seeds=1, n_checkpoints=1))).drop("score").rows()
    [('model-1', 0, 1, 'PT', 0.0, 'task-1', '0'), ('model-1', 0, 1, 'PT', 0.0, 'task-1', '1')]
    """
    given, values = drawn.simulation, drawn.values
    if values.ndim != (4 if isinstance(drawn, SimulatedPanel) else 2):
        hint = "take one: dataclasses.replace(drawn, values=drawn.values[0])"
        raise UsageError(f"`drawn` must be one panel or grid, got {len(values)}", hint=hint)
    if isinstance(drawn, SimulatedPanel):
        model, seed, step = (codes.ravel() for codes in np.indices(values.shape[1:]))
        runs = pl.DataFrame(
            {
                "model": [f"model-{place + 1}" for place in model],
                "seed": seed,
                "step": step + 1,
                "axis": [given.axis] * len(model),
                "dose": given.dose[step],
            }
        )
    else:
        axis = [drawn.axes[code].name for code in drawn.axis]
        places = [drawn.axes[code].doses.index(dose) for code, dose in zip(drawn.axis, drawn.dose, strict=True)]
        runs = pl.DataFrame(
            {
                "model": [f"{name}-{place + 1}" for name, place in zip(axis, places, strict=True)],
                "seed": drawn.seed,
                "step": pl.Series([None] * len(axis), dtype=pl.Int64),
                "axis": axis,
                "dose": drawn.dose,
            }
        )
    items = pl.DataFrame(
        {"task": [f"task-{code + 1}" for code in given.tasks], "doc_id": [str(i) for i in range(given.n_items)]}
    )
    m, n_runs = given.n_items, len(runs)
    frame = pl.concat([runs[np.repeat(np.arange(n_runs), m)], items[np.tile(np.arange(m), n_runs)]], how="horizontal")
    scores = pl.Series("score", np.ascontiguousarray(values.reshape(m, n_runs).T).ravel())
    return frame.with_columns(scores).filter(pl.col("score").is_not_nan())


def _world(given: PanelSimulation) -> _World:
    rng = np.random.default_rng([given.seed, _ITEMS])
    level, slope, noise = rng.standard_normal((3, given.n_items))
    if given.model_levels is None:
        theta = given.model_sd * rng.standard_normal(1 if given.n_models is None else given.n_models)
    else:
        theta = np.array(given.model_levels)
    return _World(
        level=given.level + given.level_sd * level,
        slope=given.slope_mean + given.slope_sd * slope,
        sigma=given.noise_sd * np.exp(given.noise_spread * noise),
        theta=theta,
    )


def _draw(
    given: PanelSimulation, latent: FloatArray, sigma: FloatArray, rng: np.random.Generator, panels: int | None
) -> FloatArray:
    """Return P panels of scores around ``latent`` (m, J, K), shape (P, m, J, S, K)."""
    m, models, checkpoints = latent.shape
    shape = (1 if panels is None else whole_number("panels", panels, 1), m, models, given.n_seeds)

    def noise(share: float, *more: int) -> FloatArray:
        return kernels.noise_draws(math.sqrt(share) * sigma, given.common, given.distribution, (*shape, *more), rng)

    persistent = noise(given.persistent)[..., None]
    if given.trials is None:
        values = noise(1 - given.persistent, checkpoints)
        values += persistent
        values += latent[:, :, None, :]
    else:
        values = rng.binomial(given.trials, expit(latent[:, :, None, :] + persistent)) / given.trials
    if given.missing > 0:
        values[rng.random(values.shape) < given.missing] = np.nan
    return values


def _truth(given: PanelSimulation, latent: FloatArray, sigma: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return expectation and variance of the scores across seeds, each shape (m, J, K)."""
    if given.trials is None:
        return latent, np.broadcast_to((sigma**2)[:, None, None], latent.shape)
    return kernels.binomial_moments(latent, math.sqrt(given.persistent) * sigma, given.common, given.trials)


def _covariances(given: PanelSimulation) -> tuple[FloatArray, FloatArray]:
    """Return covariances over items within a checkpoint and between two, each shape (m, m)."""
    world = _world(given)
    if given.trials is None:
        within = kernels.noise_covariance(world.sigma, given.common)
        return within, given.persistent * within
    latent = world.latent(world.slope, given.dose)
    scale = math.sqrt(given.persistent) * world.sigma
    return kernels.binomial_covariances(latent, scale, given.common, given.trials)


def _generator(given: PanelSimulation, rng: np.random.Generator | None) -> np.random.Generator:
    return np.random.default_rng([given.seed, _NOISE]) if rng is None else rng
