"""Fitted curves, and how well they fit."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from benchwright._check import FloatArray
from benchwright._json import json_safe
from benchwright._shown import Headline, Shown, ShownPart, ShownTable
from benchwright.curves.form import CurveForm
from benchwright.curves.observations import Observations
from benchwright.curves.scores import EffortScores

if TYPE_CHECKING:
    import polars as pl

FEW_DOF = 4.0  # a model with fewer degrees of freedom borrows the over-dispersion of all


@dataclass(frozen=True, slots=True, eq=False)
class CurveFits(Shown):
    """Fitted curves of n models.

    Attributes
    ----------
    scores : EffortScores
        What they were fitted to, with the models left out.
    form : CurveForm
        The law and the scope of its parameters.
    observations : Observations
        The scores of the fitted models, with the noise of each.
    parameters : dict of (n,) arrays
        By name; a shared or given one is repeated.
    log_likelihood : float
    n_points, n_parameters : int
    deviance, dof : (n,)
        Twice the log-likelihood lost against curves through every point; points less parameters, shared ones split
        evenly.
    p_value : (n,)
        Of the deviance as chi-square; NaN without degrees of freedom.
    worst, worst_effort : (n,)
        Largest standardised residual in size, and its effort.
    flat : (n,) bool
        The scores show no rise beyond their noise (p >= 0.01). Where L and U are each model's own, such a curve is
        held at the mean score, rising by 2e-6; otherwise it is the form's best.
    at_bound : dict
        Model -> parameters that lie at the end of their range.
    converged : (n,) bool
    left_out : dict
        Model -> why it has no curve.
    notes : tuple of str
    """

    scores: EffortScores
    form: CurveForm
    observations: Observations
    parameters: dict[str, FloatArray]
    log_likelihood: float
    n_points: int
    n_parameters: int
    deviance: FloatArray
    dof: FloatArray
    p_value: FloatArray
    worst: FloatArray
    worst_effort: FloatArray
    flat: NDArray[np.bool_]
    at_bound: dict[str, tuple[str, ...]]
    converged: NDArray[np.bool_]
    left_out: dict[str, str]
    notes: tuple[str, ...]

    @property
    def models(self) -> tuple[str, ...]:
        return self.observations.models

    @property
    def law(self) -> str:
        return self.form.law

    @property
    def aic(self) -> float:
        """2 parameters - 2 log-likelihood."""
        return 2.0 * self.n_parameters - 2.0 * self.log_likelihood

    @property
    def bic(self) -> float:
        """Parameters times log(number of scores) - 2 log-likelihood."""
        return self.n_parameters * float(np.log(self.n_points)) - 2.0 * self.log_likelihood

    @property
    def overall(self) -> tuple[float, float, float]:
        """Deviance, degrees of freedom and chi-square p-value of the whole table."""
        deviance, dof = float(self.deviance.sum()), float(self.n_points - self.n_parameters)
        return deviance, dof, float(stats.chi2.sf(deviance, dof)) if dof > 0 else np.nan

    @property
    def dispersion(self) -> FloatArray:
        """Per model how many times the variance of its scores about the curve exceeds the noise stated, at least 1.

        Its deviance over its degrees of freedom; that of the whole table where it has fewer than four.
        """
        deviance, dof, _ = self.overall
        pooled = deviance / dof if dof > 0 else 1.0
        own = self.deviance / np.where(self.dof >= FEW_DOF, self.dof, np.inf)
        return np.maximum(np.where(self.dof >= FEW_DOF, own, pooled), 1.0)

    def score(self, who: Any, effort: Any) -> FloatArray:
        """Scores of models at positions ``who`` after ``effort``; the two broadcast."""
        return self.form.score(self.parameters, who, effort)

    def _told(self) -> Iterable[ShownPart]:
        deviance, dof, p = self.overall
        yield Headline(str(self.form))
        rows = [
            (
                name,
                *(f"{column[i]:.4g}" for column in self.parameters.values()),
                f"{self.deviance[i]:.1f}/{self.dof[i]:.3g}",
                f"{self.worst[i]:+.1f} at {self.worst_effort[i]:g}",
            )
            for i, name in enumerate(self.models)
        ]
        yield ShownTable(("model", *self.parameters, "deviance/dof", "largest residual"), rows)
        yield (
            f"log-likelihood {self.log_likelihood:.2f}, {self.n_parameters} parameters, {self.n_points} scores, "
            f"AIC {self.aic:.1f}, BIC {self.bic:.1f}, deviance {deviance:.1f}/{dof:g} (p = {p:.2g})"
        )
        yield from (f"left out: {name}: {why}" for name, why in self.left_out.items())
        yield from self.notes

    def to_frame(self) -> pl.DataFrame:
        """One row a model: parameters, goodness of fit, parameters at a bound."""
        import polars as pl

        columns = ("deviance", "dof", "p_value", "worst", "worst_effort", "flat", "converged")
        return pl.DataFrame(
            {"model": self.models, "likelihood": self.observations.likelihood}
            | self.parameters
            | {name: getattr(self, name) for name in columns}
            | {"at_bound": [", ".join(self.at_bound.get(name, ())) for name in self.models]}
        ).with_columns(pl.col("p_value").fill_nan(None))

    def to_dict(self) -> dict[str, Any]:
        """Everything but the scores, in types that JSON knows."""
        form = {field.name: getattr(self.form, field.name) for field in fields(self.form)}
        shown = ("log_likelihood", "n_points", "n_parameters", "aic", "bic", "left_out", "notes")
        deviance, dof, p = self.overall
        whole = {"deviance": deviance, "dof": dof, "p_value": p}
        record = form | {name: getattr(self, name) for name in shown} | whole
        return {key: json_safe(value) for key, value in record.items()} | {"models": self.to_frame().to_dicts()}
