"""A table of scores by effort: one row a measurement of a model after so much tuning."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from benchwright._check import FloatArray, finite_array
from benchwright._shown import Headline, Shown, ShownPart
from benchwright.errors import UsageError

if TYPE_CHECKING:
    import polars as pl

COLUMNS = ("model", "effort", "score", "stderr", "items")


@dataclass(frozen=True, slots=True, eq=False)
class EffortScores(Shown):
    """k scores of n models by effort, sorted by model, then by effort.

    Parameters
    ----------
    models : (n,) names, all different
    model : (k,) position in ``models``
        Every model has a row.
    effort : (k,) >= 0, in ``effort_unit``
        A model may have several rows at one effort: they are repeats.
    score : (k,) in [0, 1]
    stderr : (k,) >= 0, NaN where not stated; score
        By default all NaN.
    items : (k,) >= 1, NaN where unknown
        Number of items that the score is a mean of; by default all NaN.
    effort_unit, task : str
        What effort counts and what is scored, for titles.
    notes : tuple of str
        What a reader of the scores should know, such as rows left out.

    Raises
    ------
    UsageError
        No rows, lengths that disagree, a score outside [0, 1], negative effort or stderr, fewer than one item, a model
        without rows or named twice.

    Examples
    --------
    >>> scores = EffortScores(["a", "b"], [1, 0, 0], [0.0, 10.0, 0.0], [0.3, 0.5, 0.2], effort_unit="steps", task="t")
    >>> print(scores)
    t: 3 scores of 2 models at 0 to 10 steps
    >>> scores.of(0).score
    array([0.2, 0.5])
    """

    models: tuple[str, ...]
    model: NDArray[np.int64]
    effort: FloatArray
    score: FloatArray
    stderr: FloatArray = None  # type: ignore[assignment]
    items: FloatArray = None  # type: ignore[assignment]
    _: KW_ONLY
    effort_unit: str = "steps"
    task: str = ""
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        models = tuple(map(str, self.models))
        if len(set(models)) < len(models):
            raise UsageError(f"`models` must be different, got {', '.join(models)}")
        effort = finite_array("effort", self.effort, ndim=1)
        if not effort.size:
            raise UsageError("there are no scores by effort")
        who = np.asarray(self.model)
        if who.dtype.kind not in "iu" or who.shape != effort.shape or who.min() < 0 or who.max() >= len(models):
            raise UsageError(f"`model` must hold {effort.size} positions in the {len(models)} `models`")
        if missing := [models[i] for i in np.flatnonzero(np.bincount(who, minlength=len(models)) == 0)]:
            raise UsageError(f"models without a score: {', '.join(missing)}")
        score = finite_array("score", self.score, ndim=1)
        unknown = np.full(effort.size, np.nan)
        stderr, items = (
            unknown if given is None else np.asarray(given, dtype=np.float64) for given in (self.stderr, self.items)
        )
        for name, column in {"score": score, "stderr": stderr, "items": items}.items():
            if column.shape != effort.shape:
                raise UsageError(f"`{name}` must hold {effort.size} values, one a row, got shape {column.shape}")
        rules = {
            "effort": (effort, effort >= 0, "must not be negative"),
            "score": (score, (score >= 0) & (score <= 1), "must lie in [0, 1]"),
            "stderr": (stderr, np.isnan(stderr) | ((stderr >= 0) & np.isfinite(stderr)), "must be finite and >= 0"),
            "items": (items, np.isnan(items) | ((items >= 1) & np.isfinite(items)), "must be at least 1"),
        }
        for name, (column, fine, rule) in rules.items():
            if not fine.all():
                k = int(np.flatnonzero(~fine)[0])
                raise UsageError(f"`{name}` {rule}, got {column[k]:g} for {models[who[k]]} at effort {effort[k]:g}")
        order = np.lexsort((effort, who))
        clean = {"models": models, "model": who[order].astype(np.int64), "notes": tuple(self.notes)}
        columns = {"effort": effort, "score": score, "stderr": stderr, "items": items}
        for field, value in (clean | {name: column[order] for name, column in columns.items()}).items():
            object.__setattr__(self, field, value)

    def __len__(self) -> int:
        return int(self.effort.size)

    def _told(self) -> Iterable[ShownPart]:
        low, high = self.effort.min(), self.effort.max()
        counted = f"{len(self)} scores of {len(self.models)} models at {low:g} to {high:g} {self.effort_unit}"
        yield Headline(f"{self.task}: {counted}" if self.task else counted)
        yield from self.notes

    def of(self, position: int) -> EffortScores:
        """The rows of one model."""
        return self.select([self.models[position]])

    def select(self, models: Sequence[str]) -> EffortScores:
        """The rows of these models, in this order.

        Raises
        ------
        UsageError
            A name that is no model of the table, or none.
        """
        if unknown := [name for name in models if name not in self.models]:
            raise UsageError(f"no scores of {', '.join(unknown)}", hint=f"models: {', '.join(self.models)}")
        if not models:
            raise UsageError("`models` must name at least one model")
        place = np.full(len(self.models), -1)
        place[[self.models.index(name) for name in models]] = np.arange(len(models))
        kept = place[self.model] >= 0
        columns = (self.effort[kept], self.score[kept], self.stderr[kept], self.items[kept])
        settings = {name: getattr(self, name) for name in ("effort_unit", "task", "notes")}
        return EffortScores(tuple(models), place[self.model[kept]], *columns, **settings)

    def to_frame(self) -> pl.DataFrame:
        """One row a measurement: model, effort, score, stderr, items; what is unknown is null."""
        import polars as pl

        columns: dict[str, Any] = {"model": [self.models[i] for i in self.model]}
        columns |= {name: getattr(self, name) for name in COLUMNS[1:]}
        return pl.DataFrame(columns).with_columns(pl.col("stderr", "items").fill_nan(None))
