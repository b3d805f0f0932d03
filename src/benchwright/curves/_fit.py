"""Maximum-likelihood fits of many tables of curves at once, by damped Fisher scoring.

A *group* is one table of n models to fit: a start, a bootstrap replicate, a fold, or one model where nothing is shared.
Model i has the scores y_ik at x_ik, k < K, and the curve v = L + (U - L) s(x; p), s a shape with values in [0, 1]. The
parameters are q = (p, a, b) with either

    nested = "top":     L = a,    U = a + (1 - a) b        (v rises from L by a share b of what is left)
    nested = "bottom":  U = b,    L = a b

so that 0 <= L <= U <= 1 is a box. Each entry of q is a model's own, shared by all models of a group, or held fixed.
The objective is half the deviance, sum of m [y log(y/v) + (1-y) log((1-y)/(1-v))] for a
score of m items and of (y - v)^2 / (2 stderr^2) for one with a standard error.

Shared parameters border the blocks of the models, so the scoring equations are solved by their Schur complement. The
damping is Levenberg's with Marquardt's scaling; parameters at a bound that want to leave the box are held there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import special

from benchwright._check import FloatArray
from benchwright.curves._laws import Shape

BoolArray = NDArray[np.bool_]

EDGE = 1e-12  # scores are kept this far from 0 and 1 in logarithms and weights
TOLERANCE = 1e-7  # a step that promises less log-likelihood than this ends a fit
CONVERGED = 1e-3  # log-likelihood that an undamped step may still promise after a fit
FIRST_DAMPING, LEAST_DAMPING, MOST_DAMPING = 1e-2, 1e-8, 1e10
GENTLE = 1.0  # damping above which a small step says little
RIDGE = 1e-12
KEPT = 4  # joint fits that are polished


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """The curve: its shape, how L and U are nested, the box (P,) of q, and which entries are shared or held fixed."""

    shape: Callable[[FloatArray, FloatArray], Shape]
    nested: str
    low: FloatArray
    high: FloatArray
    shared: BoolArray
    held: BoolArray

    def bounds(self, q: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return L and U (...) of parameters (..., P)."""
        a, b = q[..., -2], q[..., -1]
        return (a, a + (1.0 - a) * b) if self.nested == "top" else (a * b, b)

    def value(self, x: FloatArray, q: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return scores (..., K) and their derivatives (..., K, P)."""
        s, ds = self.shape(x, q[..., :-2])
        a, b = q[..., -2, None], q[..., -1, None]
        if self.nested == "top":
            rise = (1.0 - a) * b
            v, da, db = a + rise * s, 1.0 - b * s, (1.0 - a) * s
        else:
            rise, share = b * (1.0 - a), a + (1.0 - a) * s
            v, da, db = b * share, b * (1.0 - s), share
        return v, np.concatenate([rise[..., None] * ds, da[..., None], db[..., None]], axis=-1)


@dataclass(frozen=True, slots=True, eq=False)
class Data:
    """Scores ``y`` (G, n, K) of G groups at ``x``, with ``trials`` m, 0 where unknown, and ``precision`` 1 / stderr^2.

    A score with trials has precision 0; one with neither is a gap. Any may have one group, the same for all.
    """

    x: FloatArray
    y: FloatArray
    trials: FloatArray
    precision: FloatArray

    def take(self, groups: NDArray[np.intp]) -> Data:
        """Return the rows of some groups."""
        return Data(
            *(part if len(part) == 1 else part[groups] for part in (self.x, self.y, self.trials, self.precision))
        )

    def of(self, models: NDArray[np.intp]) -> Data:
        """Return the columns of some models."""
        return Data(*(part[:, models] for part in (self.x, self.y, self.trials, self.precision)))

    def apart(self, groups: int) -> Data:
        """Return every model of ``groups`` groups as a group of its own."""
        _, n, k = self.y.shape
        parts = (np.broadcast_to(part, (groups, n, k)) for part in (self.x, self.y, self.trials, self.precision))
        return Data(*(part.reshape(groups * n, 1, k) for part in parts))


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """Parameters ``q`` (G, n, P), half the deviance (G, n), and whether each model's fit converged (G, n)."""

    q: FloatArray
    half_deviance: FloatArray
    converged: BoolArray


def half_deviance(data: Data, v: FloatArray) -> FloatArray:
    """Return half the deviance of each score (G, n, K)."""
    inside = np.clip(v, EDGE, 1.0 - EDGE)
    counted = data.trials * (special.rel_entr(data.y, inside) + special.rel_entr(1.0 - data.y, 1.0 - inside))
    return np.asarray(counted + 0.5 * data.precision * (data.y - v) ** 2)


def fit(model: Model, data: Data, start: FloatArray, *, iterations: int = 300) -> Fit:
    """Maximise the likelihood of every group from ``start`` (G, n, P)."""
    g, n, size = start.shape
    if n > 1 and not model.shared.any():
        done = _fit_groups(model, data.apart(g), start.reshape(g * n, 1, size), iterations)
        return Fit(done.q.reshape(start.shape), done.half_deviance.reshape(g, n), done.converged.reshape(g, n))
    return _fit_groups(model, data, start, iterations)


def best_start(model: Model, data: Data, starts: FloatArray) -> Fit:
    """Return the best fit to each group of ``data`` (F groups) from several ``starts`` (S, F, n, P).

    Where parameters are shared, their best few values are kept; with each held, every model tries all starts again, and
    the winners start another joint fit.
    """
    count, groups, n, size = starts.shape
    if count == 1:
        return fit(model, data, starts[0])
    repeated = data.take(np.tile(np.arange(groups), count))
    tried = fit(model, repeated, starts.reshape(-1, n, size))
    q, value = tried.q.reshape(starts.shape), tried.half_deviance.reshape(count, groups, n)
    if n == 1 or not model.shared.any():
        return fit(model, data, _each_best(q, value))
    alone = replace(model, shared=np.zeros_like(model.shared), held=model.held | model.shared)
    found = []
    for place in np.argsort(value.sum(axis=2), axis=0)[:KEPT]:
        joint = q[place, np.arange(groups)]
        own = np.concatenate([joint[None], starts])
        own[..., model.shared] = joint[..., model.shared]
        again = fit(alone, data.take(np.tile(np.arange(groups), count + 1)), own.reshape(-1, n, size))
        best = _each_best(again.q.reshape(own.shape), again.half_deviance.reshape(own.shape[:-1]))
        found.append(fit(model, data, best))
    first = np.argmin([each.half_deviance.sum(axis=1) for each in found], axis=0)
    names = ("q", "half_deviance", "converged")
    return Fit(*(np.stack([getattr(each, name) for each in found])[first, np.arange(groups)] for name in names))


def _each_best(q: FloatArray, value: FloatArray) -> FloatArray:
    """Return of (S, F, n, P) parameters those of each model's best start, by ``value`` (S, F, n)."""
    return np.asarray(np.take_along_axis(q, value.argmin(axis=0)[None, ..., None], axis=0)[0])


def _fit_groups(model: Model, data: Data, start: FloatArray, iterations: int) -> Fit:
    """Iterate all groups together and drop those that are done; each model has its damping, the shared part another."""
    q = np.clip(start, model.low, model.high)
    final, total = q.copy(), np.empty(q.shape[:2])
    converged = np.zeros(q.shape[:2], dtype=bool)
    live = np.arange(len(q))
    damping = np.full((len(q), q.shape[1] + 1), FIRST_DAMPING)
    v, slope = model.value(data.x, q)
    objective = half_deviance(data, v).sum(axis=2)
    information, score = _normal(data, v, slope)
    for iteration in range(iterations):
        step = _step(model, information, score, damping, _free(model, q, score))
        trial = np.clip(q + step, model.low, model.high)
        v, slope = model.value(data.x, trial)
        gains = objective - half_deviance(data, v).sum(axis=2)
        hoped = _promise(information, score, step)
        better = gains.sum(axis=1) > 0
        idle = (hoped.sum(axis=1) < TOLERANCE) | (better & (gains.sum(axis=1) < TOLERANCE))
        new_information, new_score = _normal(data, v, slope)
        q[better], objective[better] = trial[better], (objective - gains)[better]
        information[better], score[better] = new_information[better], new_score[better]
        over = idle & (damping.max(axis=1) < GENTLE)
        damping = _redamped(damping, gains, hoped)
        over |= (damping.max(axis=1) >= MOST_DAMPING) | (iteration == iterations - 1)
        if over.any():
            still = _step(model, information, score, np.full_like(damping, LEAST_DAMPING), _free(model, q, score))
            promised = np.abs(_promise(information, score, still))
            final[live[over]], total[live[over]] = q[over], objective[over]
            converged[live[over]] = promised[over] < CONVERGED
            keep = np.flatnonzero(~over)
            if not keep.size:
                break
            data, live, q, objective = data.take(keep), live[keep], q[keep], objective[keep]
            information, score, damping = information[keep], score[keep], damping[keep]
    return Fit(final, total, converged)


def _redamped(damping: FloatArray, gains: FloatArray, hoped: FloatArray) -> FloatArray:
    """Return the next damping: more for models that gained far less than hoped, less for the others after a success."""
    poor = gains - hoped < -0.75 * np.maximum(np.abs(hoped), TOLERANCE)
    nobody = ~poor.any(axis=1, keepdims=True)
    better = gains.sum(axis=1, keepdims=True) > 0
    after_success = np.where(np.column_stack([poor, np.zeros_like(nobody)]), 2.0, 0.2)
    after_failure = np.where(np.column_stack([poor, nobody]), 4.0, 1.0)
    return np.clip(damping * np.where(better, after_success, after_failure), LEAST_DAMPING, MOST_DAMPING)


def _normal(data: Data, v: FloatArray, slope: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return expected information (G, n, P, P) and score vector (G, n, P) of each model."""
    inside = np.clip(v, EDGE, 1.0 - EDGE)
    weight = data.trials / (inside * (1.0 - inside)) + data.precision
    weighted = slope * weight[..., None]
    across = weighted.swapaxes(-1, -2)
    return across @ slope, (across @ (data.y - v)[..., None])[..., 0]


def _free(model: Model, q: FloatArray, score: FloatArray) -> BoolArray:
    """Return which parameters may move: those that are not fixed and not pushed out of their box."""
    push = np.where(model.shared, score.sum(axis=1, keepdims=True), score)
    return ~(model.held | ((q <= model.low) & (push <= 0)) | ((q >= model.high) & (push >= 0)))


def _step(model: Model, information: FloatArray, score: FloatArray, damping: FloatArray, free: BoolArray) -> FloatArray:
    """Return the damped step (G, n, P); ``damping`` (G, n + 1) is that of each model and of the shared part."""
    own, common = np.flatnonzero(~model.shared), np.flatnonzero(model.shared)
    step = np.zeros_like(score)
    matrix = np.where(free[..., :, None] & free[..., None, :], information, 0.0)
    vector = np.where(free, score, 0.0)
    block = _damped(matrix[..., own[:, None], own], free[..., own], damping[:, :-1])
    border, right = matrix[..., own[:, None], common], vector[..., own]
    solved = np.linalg.solve(block, np.concatenate([right[..., None], border], axis=-1))
    step[..., own] = solved[..., 0]
    if common.size:
        corner = _damped(matrix[..., common[:, None], common].sum(axis=1), free[:, 0, common], damping[:, -1])
        across = (border.swapaxes(-1, -2) @ solved).sum(axis=1)
        left = vector[..., common].sum(axis=1) - across[..., 0]
        together = np.linalg.solve(corner - across[..., 1:], left[..., None])
        step[..., common] = together[:, None, :, 0]
        step[..., own] -= (solved[..., 1:] @ together[:, None])[..., 0]
    return step


def _damped(matrix: FloatArray, free: BoolArray, damping: FloatArray) -> FloatArray:
    """Return a matrix with its diagonal raised, and 1 on the diagonal of what does not move."""
    raised = np.einsum("...ii->...i", matrix) * (1.0 + damping[..., None]) + RIDGE
    result = matrix.copy()
    np.einsum("...ii->...i", result)[...] = np.where(free, raised, 1.0)
    return result


def _promise(information: FloatArray, score: FloatArray, step: FloatArray) -> FloatArray:
    """Return the log-likelihood (G, n) that each model gains by a step, were it quadratic."""
    bend = (information @ step[..., None])[..., 0]
    return np.asarray((step * (score - 0.5 * bend)).sum(axis=2))
