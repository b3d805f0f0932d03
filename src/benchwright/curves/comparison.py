"""Laws compared on scores they did not see.

``predict="last"`` fits every form to all but the last efforts of each model and predicts those: what a threshold beyond
the efforts measured rests on. ``predict="between"`` leaves out one effort between the first and the last of each model
at a time. The log score is the log-likelihood of a held-out score under the fitted curve and the noise stated; a law is
worse than the best beyond doubt where the difference is several of its standard errors, models being the sample.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from benchwright._check import FloatArray
from benchwright._json import json_safe
from benchwright._shown import Headline, Shown, ShownPart, ShownTable
from benchwright.curves import _fit
from benchwright.curves.fit import kernel_data, maximise, saturated, starts, usable, without_rise
from benchwright.curves.form import CurveForm
from benchwright.curves.laws import LAWS
from benchwright.curves.monotone import monotone_of
from benchwright.curves.observations import Observations, observe
from benchwright.curves.scores import EffortScores
from benchwright.errors import DataError, UsageError

if TYPE_CHECKING:
    import polars as pl

PREDICTED = ("last", "between")
FEWEST = 2  # distinct efforts that a curve without a law needs


@dataclass(frozen=True, slots=True, eq=False)
class LawComparison(Shown):
    """Forms by how well they predict held-out scores, best first.

    Attributes
    ----------
    predict : str
        "last" or "between".
    names : (c,) names of the forms
    models : (n,) names
    n_scores : int
        Held-out scores.
    log_score : (c,)
        Mean over held-out scores.
    behind, behind_stderr : (c,)
        Difference of the mean log score to the best, and its standard error over models; 0 for the best.
    error : (c,)
        Root mean squared error; score.
    standardised_error : (c,)
        The same in standard errors of the scores.
    left_out : dict
        Model -> why it took no part.
    """

    predict: str
    names: tuple[str, ...]
    models: tuple[str, ...]
    n_scores: int
    log_score: FloatArray
    behind: FloatArray
    behind_stderr: FloatArray
    error: FloatArray
    standardised_error: FloatArray
    left_out: dict[str, str]

    def _told(self) -> Iterable[ShownPart]:
        yield Headline(f"{self.n_scores} held-out scores ({self.predict}) of {len(self.models)} models")
        rows = [
            (
                name,
                f"{self.log_score[i]:.3f}",
                f"{self.behind[i]:.3f} ({self.behind_stderr[i]:.3f})",
                f"{self.error[i]:.4f}",
                f"{self.standardised_error[i]:.2f}",
            )
            for i, name in enumerate(self.names)
        ]
        yield ShownTable(("form", "log score", "behind (s.e.)", "error", "error in s.e."), rows)
        yield from (f"left out: {name}: {why}" for name, why in self.left_out.items())

    def to_frame(self) -> pl.DataFrame:
        """One row a form."""
        import polars as pl

        columns = ("log_score", "behind", "behind_stderr", "error", "standardised_error")
        return pl.DataFrame({"form": self.names} | {name: getattr(self, name) for name in columns})

    def to_dict(self) -> dict[str, Any]:
        """Everything, in types that JSON knows."""
        whole = {name: json_safe(getattr(self, name)) for name in ("predict", "models", "n_scores", "left_out")}
        return whole | {"forms": json_safe(self.to_frame().to_dicts())}


def compare_laws(
    scores: EffortScores,
    *,
    forms: Mapping[str, CurveForm | None] | None = None,
    predict: str = "last",
    held_out: int = 2,
    likelihood: str = "auto",
) -> LawComparison:
    """Compare forms of curves on held-out scores.

    Parameters
    ----------
    scores : EffortScores
    forms : mapping of name to CurveForm, optional
        None stands for non-decreasing curves without a law. By default all laws, with L, U and the shape each model's
        own, and ``monotone``.
    predict : "last" or "between"
    held_out : int >= 1
        Efforts of each model held out at its end, for ``predict="last"``.
    likelihood : str
        As in `fit_curves`.

    Raises
    ------
    UsageError
        No form, an unknown ``predict``, or ``held_out`` below 1.
    DataError
        No model has enough efforts.

    Examples
    --------
    >>> effort = np.array([0.0, 3, 10, 30, 100, 300, 1000, 3000, 10_000])
    >>> score = 0.1 + 0.6 / (1 + np.exp(4 - 0.8 * np.log1p(effort)))
    >>> table = EffortScores(("a", "b"), np.repeat([0, 1], 9), np.tile(effort, 2), np.tile(score, 2), items=[4000] * 18)
    >>> compare_laws(table).names[0]
    'generalised-power-law'
    """
    chosen = {**{law: CurveForm(law) for law in LAWS}, "monotone": None} if forms is None else dict(forms)
    if not chosen:
        raise UsageError("`forms` must name at least one form")
    if predict not in PREDICTED:
        raise UsageError(f"`predict` must be one of {', '.join(PREDICTED)}, got {predict!r}")
    if held_out < 1:
        raise UsageError(f"`held_out` must be at least 1, got {held_out}")
    seen, left_out = _enough(observe(scores, likelihood=likelihood), chosen, held_out if predict == "last" else 1)
    place = _places(seen)
    last = place.max(axis=1, keepdims=True)
    if predict == "last":
        folds = [place > last - held_out]
    else:
        folds = [(place == j) & (j < last) for j in range(1, int(last.max()))]
    held = np.logical_or.reduce(folds) & seen.present
    if not held.any():
        raise DataError("no score can be held out: no model has an effort between its first and its last")
    found = {name: _predictions(form, seen, folds) for name, form in chosen.items()}
    return _table(predict, seen, held, found, left_out)


def _enough(
    seen: Observations, forms: Mapping[str, CurveForm | None], held_out: int
) -> tuple[Observations, dict[str, str]]:
    """Models that every form can be fitted to after holding out; those that fall take part in no comparison."""
    greedy = max((form for form in forms.values() if form is not None), key=lambda form: form.own, default=None)
    needed = max(FEWEST, greedy.own if greedy is not None else 0) + held_out
    short = {
        name: f"{count} distinct effort(s), {needed} needed"
        for name, count in zip(seen.models, seen.distinct, strict=True)
        if count < needed
    }
    rows = np.array([i for i, name in enumerate(seen.models) if name not in short], dtype=np.intp)
    if not rows.size:
        raise DataError(f"no model has {needed} distinct efforts", hint="hold out fewer, or share parameters")
    kept, falling = usable(seen.take(rows), CurveForm(), falling="leave-out")
    return kept, short | falling


def _places(seen: Observations) -> NDArray[np.int64]:
    """Position of each effort among the model's distinct ones, -1 in gaps."""
    place = np.full(seen.effort.shape, -1)
    for i, has in enumerate(seen.present):
        place[i, has] = np.unique(seen.effort[i, has], return_inverse=True)[1]
    return place


def _predictions(form: CurveForm | None, seen: Observations, folds: list[NDArray[np.bool_]]) -> FloatArray:
    """Score (n, K) predicted for what each fold holds out; NaN elsewhere."""
    predicted, who = np.full(seen.effort.shape, np.nan), np.arange(len(seen.models))[:, None]
    for fold in folds:
        train = seen.only(~fold)
        if form is None:
            curve = monotone_of(train).score(who, seen.effort)
        else:
            best = maximise(form, kernel_data(form, train), without_rise(train), starts(form, train))
            curve = form.score(form.unpack(best.q[0]), who, seen.effort)
        predicted[fold] = curve[fold]
    return predicted


def _table(
    predict: str,
    seen: Observations,
    held: NDArray[np.bool_],
    found: dict[str, FloatArray],
    left_out: dict[str, str],
) -> LawComparison:
    """Score predictions and set the forms in order."""
    half = 0.5 / np.maximum(np.where(seen.trials > 0, seen.trials, np.inf), 1.0)
    data = _fit.Data(seen.effort, seen.score, seen.trials, seen.precision)
    best_possible, counts = saturated(seen), held.sum(axis=1)
    logs, errors, standard = [], [], []
    for predicted in found.values():
        curve = np.clip(np.where(held, predicted, 0.5), half, 1.0 - half)
        logs.append(np.where(held, best_possible - _fit.half_deviance(data, curve), 0.0).sum(axis=1))
        miss = np.where(held, seen.score - curve, 0.0)
        errors.append(np.sqrt((miss**2).sum() / counts.sum()))
        spread = np.where(held, seen.stderr(curve), 1.0)
        standard.append(np.sqrt(((miss / spread) ** 2).sum() / counts.sum()))
    total = np.array(logs)
    order = np.argsort(-total.sum(axis=1), kind="stable")
    gap = total[order[0]] - total[order]
    n = len(seen.models)
    stderr = np.sqrt(n) * gap.std(axis=1, ddof=1) / counts.sum() if n > 1 else np.full(len(order), np.nan)
    return LawComparison(
        predict=predict,
        names=tuple(list(found)[i] for i in order),
        models=seen.models,
        n_scores=int(counts.sum()),
        log_score=total[order].sum(axis=1) / counts.sum(),
        behind=gap.sum(axis=1) / counts.sum(),
        behind_stderr=stderr,
        error=np.array(errors)[order],
        standardised_error=np.array(standard)[order],
        left_out=left_out,
    )
