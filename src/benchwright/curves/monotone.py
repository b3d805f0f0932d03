"""Curves without a law: the best non-decreasing scores at the efforts measured, joined by lines in log effort."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from benchwright._check import FloatArray
from benchwright.curves import _isotonic
from benchwright.curves.observations import Observations, observe
from benchwright.curves.scores import EffortScores


@dataclass(frozen=True, slots=True, eq=False)
class MonotoneCurves:
    """Non-decreasing curves of n models.

    Attributes
    ----------
    models : (n,) names
    effort, level : tuples of n arrays
        Efforts measured and the fitted score at each. A curve is linear in log(1 + effort) between them and constant
        beyond.
    """

    models: tuple[str, ...]
    effort: tuple[FloatArray, ...]
    level: tuple[FloatArray, ...]

    def score(self, who: Any, effort: Any) -> FloatArray:
        """Scores of models at positions ``who`` after ``effort``; the two broadcast."""
        who, effort = np.broadcast_arrays(np.asarray(who, dtype=np.intp), np.asarray(effort, dtype=np.float64))
        result = np.empty(effort.shape)
        for i in np.unique(who):
            mine = who == i
            result[mine] = np.interp(np.log1p(effort[mine]), np.log1p(self.effort[i]), self.level[i])
        return result


def monotone_curves(scores: EffortScores, *, likelihood: str = "auto") -> MonotoneCurves:
    """Fit a non-decreasing curve to every model by maximum likelihood, with the noise of `fit_curves`.

    Examples
    --------
    >>> table = EffortScores(("a",), [0] * 4, [0, 10, 100, 1000], [0.2, 0.4, 0.3, 0.6], items=[100] * 4)
    >>> monotone_curves(table).level[0]
    array([0.2 , 0.35, 0.35, 0.6 ])
    """
    return monotone_of(observe(scores, likelihood=likelihood))


def monotone_of(seen: Observations) -> MonotoneCurves:
    """The non-decreasing curves of observations."""
    efforts, levels = [], []
    for i, has in enumerate(seen.present):
        columns = (column[i][has] for column in (seen.effort, seen.score, seen.trials, seen.precision))
        effort, mean, weight = _isotonic.pooled(*columns)
        efforts.append(effort)
        levels.append(_isotonic.isotonic(mean, weight))
    return MonotoneCurves(seen.models, tuple(efforts), tuple(levels))
