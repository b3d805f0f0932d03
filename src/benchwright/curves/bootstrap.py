"""How sure fitted curves are: scores drawn from them, and curves fitted to the draws.

The parametric bootstrap draws every score from its fitted curve: counts from a binomial, scores with a standard error
from a normal distribution cut to [0, 1]. Where the scores scatter about a curve by more than that noise (training runs
do), such draws are too narrow. ``dispersion="scaled"`` widens them to the scatter seen: the variance times the model's
deviance over its degrees of freedom where that is above 1, counts by drawing fewer items.

Scores of different efforts are drawn independently. Those of one table usually share their items, which moves all of
them together; the draws leave that out, and what depends on differences between curves hardly feels it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from benchwright._check import FloatArray
from benchwright._json import json_safe
from benchwright._shown import ROWS, Headline, Shown, ShownPart, frame_table
from benchwright.curves import _fit
from benchwright.curves.fit import maximise
from benchwright.curves.results import CurveFits
from benchwright.errors import UsageError

if TYPE_CHECKING:
    import polars as pl

DISPERSIONS = ("scaled", "stated")
AT_ONCE = 50  # replicates fitted together: a few MB a temporary


@dataclass(frozen=True, slots=True, eq=False)
class CurveDraws(Shown):
    """Curves fitted to B tables drawn from fitted curves.

    Attributes
    ----------
    fits : CurveFits
        What the tables were drawn from.
    parameters : dict of (B, n) arrays
    dispersion : (n,) >= 1
        Factor on the variance of each model's scores.
    converged : (B, n) bool
    """

    fits: CurveFits
    parameters: dict[str, FloatArray]
    dispersion: FloatArray
    converged: NDArray[np.bool_]

    @property
    def models(self) -> tuple[str, ...]:
        return self.fits.models

    def __len__(self) -> int:
        return len(self.converged)

    def score(self, who: Any, effort: Any) -> FloatArray:
        """Scores (B, ...) of models at positions ``who`` after ``effort``; the two broadcast."""
        return self.fits.form.score(self.parameters, who, effort)

    def interval(self, level: float = 0.95) -> dict[str, FloatArray]:
        """Percentile interval (n, 2) of every parameter."""
        ends = _ends(level)
        return {name: np.quantile(values, ends, axis=0).T for name, values in self.parameters.items()}

    def score_interval(self, who: Any, effort: Any, *, level: float = 0.95) -> FloatArray:
        """Percentile interval (..., 2) of scores: a band at each effort, not for the whole curve at once."""
        return np.moveaxis(np.quantile(self.score(who, effort), _ends(level), axis=0), 0, -1)

    def _told(self) -> Iterable[ShownPart]:
        yield Headline(
            f"{len(self)} draws of {len(self.models)} curves; variance times {self.dispersion.min():.2g} to "
            f"{self.dispersion.max():.2g}; {self.converged.mean():.1%} of fits converged"
        )
        yield frame_table(self.to_frame(), rows=ROWS)

    def to_frame(self, *, level: float = 0.95) -> pl.DataFrame:
        """One row a model and parameter: estimate and interval."""
        import polars as pl

        intervals = self.interval(level)
        return pl.DataFrame(
            [
                {"model": name, "parameter": key, "estimate": float(self.fits.parameters[key][i])}
                | {"low": float(intervals[key][i, 0]), "high": float(intervals[key][i, 1])}
                for i, name in enumerate(self.models)
                for key in self.parameters
            ]
        )

    def to_dict(self, *, level: float = 0.95) -> dict[str, Any]:
        """Number of draws, level, dispersion, and an interval of each parameter, in types that JSON knows."""
        return {
            "replicates": len(self),
            "level": level,
            "dispersion": json_safe(dict(zip(self.models, self.dispersion, strict=True))),
            "converged": float(self.converged.mean()),
            "intervals": json_safe(self.to_frame(level=level).to_dicts()),
        }


def bootstrap_curves(
    fits: CurveFits,
    *,
    rng: np.random.Generator,
    replicates: int = 200,
    dispersion: str = "scaled",
    progress: Callable[[str], None] | None = None,
) -> CurveDraws:
    """Draw tables from fitted curves and fit each again, starting from the curves it was drawn from.

    Parameters
    ----------
    fits : CurveFits
    rng : source of randomness
    replicates : int >= 1
    dispersion : "scaled" or "stated"
        Scatter of the scores: that seen about each curve, at least the noise stated; or the noise stated alone, which
        gives intervals too narrow where fits are poor.
    progress : callable, optional
        Told after every batch how many are done.

    Returns
    -------
    CurveDraws
        A curve found flat stays flat: only its level varies.

    Raises
    ------
    UsageError
        Fewer than one replicate, or an unknown ``dispersion``.

    Examples
    --------
    >>> from benchwright.curves.fit import fit_curves
    >>> from benchwright.curves.scores import EffortScores
    >>> effort = np.array([0.0, 3, 10, 30, 100, 300, 1000, 3000, 10_000])
    >>> score = 0.1 + 0.6 / (1 + np.exp(4 - 0.8 * np.log1p(effort)))
    >>> fits = fit_curves(EffortScores(("a",), [0] * 9, effort, score, items=[1000] * 9))
    >>> draws = bootstrap_curves(fits, rng=np.random.default_rng(1), replicates=100)
    >>> low, high = draws.interval(0.9)["beta"][0]
    >>> bool(low < 0.8 < high)
    True
    """
    if replicates < 1:
        raise UsageError(f"`replicates` must be at least 1, got {replicates}")
    if dispersion not in DISPERSIONS:
        raise UsageError(f"`dispersion` must be one of {', '.join(DISPERSIONS)}, got {dispersion!r}")
    seen, form, n = fits.observations, fits.form, len(fits.models)
    factor = fits.dispersion if dispersion == "scaled" else np.ones(n)
    curve = form.score(fits.parameters, np.arange(n)[:, None], seen.effort)
    drawn = _draw(rng, replicates, curve, seen.trials, seen.precision, factor[:, None])
    x, begin = form.rule.scale(seen.effort)[None], form.pack(fits.parameters)
    found, converged = [], []
    for first in range(0, replicates, AT_ONCE):
        y = drawn[first : first + AT_ONCE]
        data = _fit.Data(x, y, seen.trials[None], seen.precision[None])
        best = maximise(form, data, fits.flat, np.broadcast_to(begin, (1, len(y), *begin.shape)))
        found.append(best.q)
        converged.append(best.converged)
        if progress is not None:
            progress(f"curves fitted to {first + len(y):,} of {replicates:,} draws")
    return CurveDraws(fits, form.unpack(np.concatenate(found)), factor, np.concatenate(converged))


def _draw(
    rng: np.random.Generator,
    replicates: int,
    curve: FloatArray,
    trials: FloatArray,
    precision: FloatArray,
    factor: FloatArray,
) -> FloatArray:
    """Scores (B, n, K) drawn from curves; gaps hold a number that has no weight."""
    items = np.maximum(np.round(trials / factor), 1.0).astype(np.int64)
    shape = (replicates, *curve.shape)
    counted = rng.binomial(items, np.clip(curve, 0.0, 1.0), shape) / items
    deviation = np.sqrt(factor / np.where(precision > 0, precision, 1.0))
    normal = np.clip(curve + deviation * rng.standard_normal(shape), 0.0, 1.0)
    return np.where(trials > 0, counted, normal)


def _ends(level: float) -> tuple[float, float]:
    """Quantiles at the ends of a central interval."""
    if not 0 < level < 1:
        raise UsageError(f"`level` must lie between 0 and 1, got {level}")
    return (1 - level) / 2, (1 + level) / 2
