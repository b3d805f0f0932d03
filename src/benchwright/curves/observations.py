"""The scores that curves are fitted to, with their noise: counts where they are known, standard errors otherwise."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from benchwright._check import FloatArray
from benchwright.curves import _fit
from benchwright.curves.scores import EffortScores
from benchwright.errors import DataError, UsageError

LIKELIHOODS = ("auto", "binomial", "stderr")
WHOLE = 0.01  # how near to a whole number an implied count must be
LEAST_IMPLYING = 3  # scores that must agree on the number of items before it is believed
Z_BEYOND_NOISE = 3.0  # standard errors


@dataclass(frozen=True, slots=True, eq=False)
class Observations:
    """Scores of n models as arrays (n, K), padded with gaps.

    Attributes
    ----------
    models : (n,) names
    effort, score : (n, K)
    trials : (n, K) number of items, 0 where the standard error is used
    precision : (n, K) 1 / stderr^2, 0 where the number of items is used
    present : (n, K) bool
    notes : tuple of str
        What was assumed about the noise.
    """

    models: tuple[str, ...]
    effort: FloatArray
    score: FloatArray
    trials: FloatArray
    precision: FloatArray
    present: NDArray[np.bool_]
    notes: tuple[str, ...] = ()

    @property
    def likelihood(self) -> tuple[str, ...]:
        """Per model "binomial" or "stderr"."""
        return tuple("binomial" if row.any() else "stderr" for row in self.trials > 0)

    def take(self, rows: NDArray[np.intp]) -> Observations:
        """Some models."""
        parts = {name: getattr(self, name)[rows] for name in ("effort", "score", "trials", "precision", "present")}
        return replace(self, models=tuple(self.models[i] for i in rows), **parts)

    def only(self, used: NDArray[np.bool_]) -> Observations:
        """The scores marked in ``used`` (n, K); the others become gaps."""
        kept = self.present & used
        return replace(
            self,
            present=kept,
            trials=np.where(kept, self.trials, 0.0),
            precision=np.where(kept, self.precision, 0.0),
        )

    def stderr(self, at: FloatArray) -> FloatArray:
        """Standard error of each score were its expectation ``at`` (n, K); NaN in gaps."""
        inside = np.clip(at, _fit.EDGE, 1.0 - _fit.EDGE)
        information = self.trials / (inside * (1.0 - inside)) + self.precision
        return np.where(self.present, 1.0 / np.sqrt(np.where(self.present, information, 1.0)), np.nan)

    @property
    def noise(self) -> FloatArray:
        """Standard error (n, K) of each score by itself; a count of none or all has that of half an item."""
        half = 0.5 / np.maximum(self.trials, 1.0)
        return self.stderr(np.clip(self.score, half, 1.0 - half))

    @property
    def distinct(self) -> NDArray[np.int64]:
        """Number of distinct efforts of each model."""
        return np.array([np.unique(row[has]).size for row, has in zip(self.effort, self.present, strict=True)])

    def ends(self) -> tuple[FloatArray, ...]:
        """Least and greatest effort (n,) of each model, and the precision-weighted mean score and its error at each."""
        weight = np.where(self.present, 1.0 / self.noise**2, 0.0)
        low = np.where(self.present, self.effort, np.inf).min(axis=1)
        high = np.where(self.present, self.effort, -np.inf).max(axis=1)
        found = [low, high]
        for end in (low, high):
            w = weight * (self.effort == end[:, None])
            total = w.sum(axis=1)
            found += [(w * self.score).sum(axis=1) / total, 1.0 / np.sqrt(total)]
        return tuple(found)


def observe(scores: EffortScores, *, likelihood: str = "auto") -> Observations:
    """Decide the noise of every score and set the scores out as arrays.

    Raises
    ------
    UsageError
        An unknown ``likelihood``.
    DataError
        A score whose noise is neither stated nor implied.
    """
    if likelihood not in LIKELIHOODS:
        raise UsageError(f"`likelihood` must be one of {', '.join(LIKELIHOODS)}, got {likelihood!r}")
    items, notes = scores.items, []
    if likelihood != "stderr" and np.isnan(items).all() and (implied := implied_items(scores)) is not None:
        items = np.full(items.shape, float(implied))
        notes.append(
            f"the stated standard errors are those of {implied:,} items scored right or wrong: fitted as counts"
        )
    known = np.array([not np.isnan(items[scores.model == i]).any() for i in range(len(scores.models))])
    counted = known[scores.model] & (likelihood != "stderr")
    sure = scores.stderr > 0
    if likelihood == "binomial" and not counted.all():
        raise DataError(
            f"the number of items is unknown for {_place(scores, np.isnan(items))}",
            hint='state it in a column `items`, or use likelihood="stderr"',
        )
    if (bad := ~counted & ~sure).any():
        stated = scores.stderr[np.flatnonzero(bad)[0]]
        raise DataError(
            f"no noise is known for {_place(scores, bad)}: its standard error is "
            + ("not stated" if np.isnan(stated) else f"{stated:g}")
            + " and its number of items is not known",
            hint="state `items` or a standard error above 0 for every score of the model; a score without noise would"
            " outweigh all others",
        )
    n, width = len(scores.models), int(np.bincount(scores.model).max())
    column = np.arange(len(scores)) - np.searchsorted(scores.model, scores.model)
    table = {name: np.zeros((n, width)) for name in ("effort", "score", "trials", "precision", "present")}
    columns = {
        "effort": scores.effort,
        "score": scores.score,
        "trials": np.where(counted, items, 0.0),
        "precision": np.where(counted, 0.0, 1.0 / np.where(sure, scores.stderr, 1.0) ** 2),
        "present": np.ones(len(scores)),
    }
    for name, values in columns.items():
        table[name][scores.model, column] = values
    return Observations(scores.models, **(table | {"present": table["present"] > 0}), notes=tuple(notes))  # type: ignore[arg-type]


def implied_items(scores: EffortScores) -> int | None:
    """The number of items n that all stated standard errors imply, None where they imply none.

    A mean p of n items scored 0 or 1, with stderr = sqrt(p (1 - p) / (n - 1)), gives n = 1 + p (1 - p) / stderr^2.
    Every score between 0 and 1 must imply the same whole n, and n p must be whole. A score of 0 or 1 implies nothing.

    >>> p = np.array([0.0, 0.25, 0.5, 0.75])
    >>> table = EffortScores(("a",), [0] * 4, [0, 1, 2, 3], p, np.sqrt(p * (1 - p) / 199))
    >>> implied_items(table)
    200
    """
    p, stderr = scores.score, scores.stderr
    inside = (p > 0) & (p < 1)
    if inside.sum() < LEAST_IMPLYING or not (stderr[inside] > 0).all() or np.nan_to_num(stderr[~inside]).any():
        return None
    n = 1.0 + p[inside] * (1.0 - p[inside]) / stderr[inside] ** 2
    whole = float(np.round(np.median(n)))
    off = max(np.abs(n - whole).max(), np.abs(p * whole - np.round(p * whole)).max())
    return int(whole) if off <= WHOLE else None


def _place(scores: EffortScores, bad: NDArray[np.bool_]) -> str:
    """The first of some scores by model and effort."""
    k = int(np.flatnonzero(bad)[0])
    more = f" (and {int(bad.sum()) - 1} more scores)" if bad.sum() > 1 else ""
    return f"{scores.models[scores.model[k]]} at effort {scores.effort[k]:g}{more}"
