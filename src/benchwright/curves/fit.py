"""Curves of score by effort, fitted by maximum likelihood.

Model i scores v_i(e) = L_i + (U_i - L_i) s(e; p_i) after effort e (`benchwright.curves.laws`). A score of m items
counts as m trials with chance v of success; a score with a standard error as a normal one with that deviation.

Where L and U are each model's own, nothing tells a slow rise from none, nor where it would end: a model whose scores do
not rise beyond their noise (a test of order, `benchwright.curves._isotonic`) has a flat curve there, at its mean score.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from benchwright._check import FloatArray
from benchwright.curves import _fit, _isotonic
from benchwright.curves.form import LEAST_RISE, OWN, CurveForm, Scope
from benchwright.curves.observations import Z_BEYOND_NOISE, Observations, observe
from benchwright.curves.results import CurveFits
from benchwright.curves.scores import EffortScores
from benchwright.errors import DataError, UsageError

FALLING = ("leave-out", "keep", "error")
HALF_WAY = (0.3, 0.5, 0.7, 0.9)  # of the way to the greatest effort, in log effort: where starts are half-way up
STEEPNESS = (0.4, 1.0, 3.0)  # their slopes in log effort
ROOM = (0.1, 1.0)  # of the way from the best score to 1: their upper limits
RISING = 0.01  # p-value above which scores show no rise
POOR = 1e-3  # p-value below which a fit is called poor
NAMES_SHOWN = 6


def fit_curves(
    scores: EffortScores,
    *,
    law: str = "generalised-power-law",
    lower: Scope | None = None,
    upper: Scope = OWN,
    beta: Scope = OWN,
    likelihood: str = "auto",
    falling: str = "leave-out",
) -> CurveFits:
    """Fit a curve to every model by maximum likelihood.

    Parameters
    ----------
    scores : EffortScores
    law : str
        ``generalised-power-law``, ``saturating-exponential`` or ``shifted-power-law``.
    lower, upper, beta : "per-model", "shared" or a number
        Scope of L, U and beta (see `CurveForm`); ``lower`` by default that of the law.
    likelihood : "auto", "binomial" or "stderr"
        Counts of items right, or standard errors. "auto" uses counts for models whose numbers of items are all known,
        or implied by the standard errors of the whole table.
    falling : "leave-out", "keep" or "error"
        What becomes of a model whose score at the largest effort is more than three standard errors below that at the
        smallest: no curve; the best curve that does not fall; an error.

    Returns
    -------
    CurveFits
        A model with fewer distinct efforts than parameters of its own is left out, with the reason.

    Raises
    ------
    UsageError
        An unknown law, scope or policy, or numbers that break 0 <= L < U <= 1 or beta > 0.
    DataError
        No model is left; a score without noise; a score more than three standard errors above a given U; a falling
        model with ``falling="error"``.

    Examples
    --------
    >>> effort = np.array([0.0, 10, 100, 1000, 10_000])
    >>> score = 0.1 + 0.6 / (1 + np.exp(4 - 0.8 * np.log1p(effort)))
    >>> table = EffortScores(("a",), [0] * 5, effort, score, items=[10_000] * 5)
    >>> fits = fit_curves(table)
    >>> {name: round(float(value[0]), 3) for name, value in fits.parameters.items()}
    {'alpha': -4.0, 'beta': 0.8, 'lower': 0.1, 'upper': 0.7}
    """
    form = CurveForm(law, lower, upper, beta)
    seen, left_out = usable(observe(scores, likelihood=likelihood), form, falling=falling)
    flat = without_rise(seen)
    best = maximise(form, kernel_data(form, seen), flat, starts(form, seen))
    return _results(scores, form, seen, flat, best, left_out)


def usable(seen: Observations, form: CurveForm, *, falling: str) -> tuple[Observations, dict[str, str]]:
    """Models that a form can be fitted to, and why the others cannot."""
    if falling not in FALLING:
        raise UsageError(f"`falling` must be one of {', '.join(FALLING)}, got {falling!r}")
    low, high, first, first_error, last, last_error = seen.ends()
    drop = (first - last) / np.hypot(first_error, last_error)
    left_out = {}
    for i, name in enumerate(seen.models):
        if seen.distinct[i] < max(form.own, 2):
            left_out[name] = f"{seen.distinct[i]} distinct effort(s) for {form.own} parameters of its own"
        elif drop[i] > Z_BEYOND_NOISE and falling != "keep":
            left_out[name] = (
                f"its score falls with effort, from {first[i]:.3f} at {low[i]:g} to {last[i]:.3f} at {high[i]:g}, "
                f"{drop[i]:.1f} standard errors"
            )
            if falling == "error":
                raise DataError(f"{name}: {left_out[name]}", hint='use falling="leave-out" or "keep", or leave it out')
    rows = np.array([i for i, name in enumerate(seen.models) if name not in left_out], dtype=np.intp)
    if not rows.size:
        why = "; ".join(f"{name}: {reason}" for name, reason in list(left_out.items())[:NAMES_SHOWN])
        few = (seen.distinct < form.own).all() and form.own > 1
        raise DataError(
            f"no model can have a curve: {why}",
            hint="measure more efforts, or share or fix parameters: `lower`, `upper`, `beta`" if few else None,
        )
    kept = seen.take(rows)
    if isinstance(form.upper, float):
        above = np.where(kept.present, (kept.score - form.upper) / kept.noise, -np.inf)
        if above.max() > Z_BEYOND_NOISE:
            i, k = divmod(int(above.argmax()), above.shape[1])
            raise DataError(
                f"{kept.models[i]} scores {kept.score[i, k]:.4g} at effort {kept.effort[i, k]:g}, "
                f"{above[i, k]:.1f} standard errors above `upper` = {form.upper:g}",
                hint="raise `upper`, or let it be fitted",
            )
    return kept, left_out


def without_rise(seen: Observations) -> NDArray[np.bool_]:
    """Which models show no rise of scores with effort beyond their noise."""
    rows = zip(seen.effort, seen.score, seen.trials, seen.precision, seen.present, strict=True)
    return np.array([_isotonic.rise_test(e[has], y[has], m[has], w[has]) >= RISING for e, y, m, w, has in rows])


def maximise(form: CurveForm, data: _fit.Data, flat: NDArray[np.bool_], begin: FloatArray) -> _fit.Fit:
    """Maximise the likelihood of F groups from starts (S, F, n, P); flat curves only where the form can hold them."""
    kernel = form.model
    held = flat & form.may_be_flat
    rising, level = np.flatnonzero(~held), np.flatnonzero(held)
    q = begin[0].copy()
    half, converged = np.zeros(q.shape[:2]), np.ones(q.shape[:2], dtype=bool)
    if rising.size:
        fitted = _fit.best_start(kernel, data.of(rising), begin[:, :, rising])
        q[:, rising], half[:, rising], converged[:, rising] = fitted.q, fitted.half_deviance, fitted.converged
    if level.size:
        own = data.of(level)
        weight = own.trials + own.precision
        mean = (weight * own.y).sum(axis=2) / weight.sum(axis=2)
        low = np.clip(mean - LEAST_RISE, 0.0, 1.0 - 2 * LEAST_RISE)
        q[:, level, -2], q[:, level, -1] = low, 2 * LEAST_RISE / (1.0 - low)
        half[:, level] = _fit.half_deviance(own, kernel.value(own.x, q[:, level])[0]).sum(axis=2)
    return _fit.Fit(q, half, converged)


def kernel_data(form: CurveForm, seen: Observations) -> _fit.Data:
    """One group of the kernel's data."""
    x = form.rule.scale(seen.effort)
    return _fit.Data(x[None], seen.score[None], seen.trials[None], seen.precision[None])


def starts(form: CurveForm, seen: Observations) -> FloatArray:
    """Starts (S, 1, n, P) of the kernel: curves half-way up at several efforts, gentle to steep, low or high limits."""
    bottom = np.where(seen.present, seen.score, np.inf).min(axis=1)
    top = np.where(seen.present, seen.score, -np.inf).max(axis=1)
    reach = np.log1p(np.where(seen.present, seen.effort, 0.0).max(axis=1))
    found = []
    for share in HALF_WAY:
        for slope in STEEPNESS:
            for room in ROOM:
                high = _level(form.upper, top + room * (1.0 - top), top.max() + room * (1.0 - top.max()))
                low = np.minimum(0.95 * bottom, 0.999 * high)
                low = _level(form.lower, low, low.min())
                if not isinstance(form.upper, float):
                    high = np.maximum(high, low + room * (1.0 - low).max())
                shape = form.rule.start(np.expm1(share * reach), slope)
                named = dict(zip(form.rule.parameters, shape, strict=True))
                if "beta" in named:
                    named["beta"] = _level(form.beta, named["beta"], slope)
                found.append(form.pack(named | {"lower": low, "upper": high}))
    return np.stack(found)[:, None]


def _level(scope: Scope | None, own: FloatArray, shared: float) -> FloatArray:
    """Start of a parameter according to its scope."""
    if isinstance(scope, float):
        return np.full(own.shape, scope)
    return own if scope == OWN else np.full(own.shape, shared)


def _results(
    scores: EffortScores,
    form: CurveForm,
    seen: Observations,
    flat: NDArray[np.bool_],
    best: _fit.Fit,
    left_out: dict[str, str],
) -> CurveFits:
    """Wrap the kernel's fit of one group."""
    q, n = best.q[0], len(seen.models)
    parameters = form.unpack(q)
    curve = form.score(parameters, np.arange(n)[:, None], seen.effort)
    held = flat & form.may_be_flat
    counts, used = seen.present.sum(axis=1), np.where(held, 1, form.own)
    common = form.common if not held.all() else 0
    dof = counts - used - np.where(held, 0.0, common / max(int((~held).sum()), 1))
    deviance = 2.0 * best.half_deviance[0]
    p_value = np.where(dof > 0, stats.chi2.sf(deviance, np.maximum(dof, 1e-9)), np.nan)
    residual = np.where(seen.present, (seen.score - curve) / np.where(seen.present, seen.stderr(curve), 1.0), 0.0)
    worst = np.abs(residual).argmax(axis=1)
    notes = (
        *scores.notes,
        *seen.notes,
        _named("no rise with effort beyond noise" + (", so flat curves" if held.any() else ""), seen.models, flat),
        _named(f"poor fits (p < {POOR:g})", seen.models, p_value < POOR),
        _named("not converged", seen.models, ~best.converged[0]),
        _below(form, seen),
    )
    return CurveFits(
        scores=scores,
        form=form,
        observations=seen,
        parameters=parameters,
        log_likelihood=float(saturated(seen).sum() - best.half_deviance.sum()),
        n_points=int(counts.sum()),
        n_parameters=int(used.sum()) + common,
        deviance=deviance,
        dof=dof,
        p_value=p_value,
        worst=residual[np.arange(n), worst],
        worst_effort=seen.effort[np.arange(n), worst],
        flat=flat,
        at_bound=_at_bound(form, seen.models, q, held),
        converged=best.converged[0],
        left_out=left_out,
        notes=tuple(note for note in notes if note),
    )


def saturated(seen: Observations) -> FloatArray:
    """Log-likelihood (n, K) of each score under a curve through it; 0 in gaps."""
    m, y = seen.trials, seen.score
    right = m * y
    counted = special.gammaln(m + 1) - special.gammaln(right + 1) - special.gammaln(m - right + 1)
    counted += special.xlogy(right, y) + special.xlogy(m - right, 1.0 - y)
    normal = 0.5 * np.log(np.where(seen.precision > 0, seen.precision, 1.0) / (2.0 * np.pi))
    return np.where(m > 0, counted, np.where(seen.precision > 0, normal, 0.0))


def _at_bound(
    form: CurveForm, models: Sequence[str], q: FloatArray, flat: NDArray[np.bool_]
) -> dict[str, tuple[str, ...]]:
    """Parameters that lie at the end of their range, by model; those given and those of flat curves are not counted."""
    kernel = form.model
    touching = ((q <= kernel.low) | (q >= kernel.high)) & ~kernel.held & ~flat[:, None]
    return {
        name: tuple(form.names[j] for j in np.flatnonzero(row))
        for name, row in zip(models, touching, strict=True)
        if row.any()
    }


def _named(what: str, models: Sequence[str], which: NDArray[np.bool_]) -> str:
    """A note that names models; empty where there are none."""
    names = [name for name, hit in zip(models, which, strict=True) if hit]
    more = f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
    return f"{what}: {', '.join(names[:NAMES_SHOWN])}{more}" if names else ""


def _below(form: CurveForm, seen: Observations) -> str:
    """A note on scores far below a given L, which no curve can follow."""
    if not isinstance(form.lower, float):
        return ""
    below = np.greater(form.lower - seen.score, Z_BEYOND_NOISE * seen.noise)
    return _named(
        f"scores more than {Z_BEYOND_NOISE:g} standard errors below `lower` = {form.lower:g}, fitted as at it",
        seen.models,
        np.any(below, axis=1),
    )
