"""A board with its weights: what counts where items are missing, on one scale, and who has a score and a rank.

An item without weight counts 0 in the weighted score and 1 in the plain average, which goes over all items of the
board under the same rules. Only items with weight say how sure a score is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from benchwright._check import FloatArray
from benchwright._words import count, percent
from benchwright.board import _board as kernel
from benchwright.board.rules import ScoringRules
from benchwright.board.scales import Scale, board_scale
from benchwright.board.scheme import WeightScheme, matched_weights, plain_weights, uniform_scheme
from benchwright.board.uncertainty import Trust, trust_sampled, trust_stated
from benchwright.board.values import BoardValues
from benchwright.errors import DataError, UsageError
from benchwright.panel.names import listed, shown

Flags = NDArray[np.bool_]
NEARLY_CANCEL = 0.1  # of the sum of |weight|: below it scores are far from the scale of the values
MAX_MISSING = 0.2  # of the weight, under "renormalise": who lacks more has a score but no rank


@dataclass(frozen=True, slots=True, eq=False)
class Weighed:
    """A board ready to be scored.

    Attributes
    ----------
    given, scale
        The scheme as it came, and the scale in use.
    board, weights
        The rows that count, (m,), and their weights, NaN where the scheme names none.
    sheet, plain
        The rows with weight, and all rows, on the scale; ``weight`` and ``equal`` are what these are weighed with.
    scored, ranked, alike, comparable
        Which models, (n,), have a score, a rank, a plain average, and a rank by it.
    coverage, missing_weight
        Share of the items with weight that a model has, and share of the weight of those that it lacks, (n,).
    """

    given: WeightScheme
    scale: Scale
    board: BoardValues
    weights: FloatArray
    sheet: Sheet
    plain: Sheet
    weight: FloatArray
    equal: FloatArray
    scored: Flags
    ranked: Flags
    alike: Flags
    comparable: Flags
    coverage: FloatArray
    missing_weight: FloatArray
    notes: tuple[str, ...]


def weigh(
    values: BoardValues,
    scheme: WeightScheme | None,
    *,
    rules: ScoringRules,
    scale: Scale | None = None,
    table: pl.DataFrame | None = None,
    partial: bool = False,
) -> Weighed:
    """Return a board with its weights; see :func:`benchwright.board.scoring.score_board`."""
    given = uniform_scheme(values) if scheme is None else scheme
    weights, said = matched_weights(given, values, partial=partial)
    notes, board = [*values.notes, *said], values
    heavy = np.nan_to_num(weights) != 0
    coverage = np.isfinite(board.values[heavy]).mean(axis=0)
    missing_weight = missing_share(board, weights)
    known = coverage > 0
    if nothing := named(board.models, ~known):
        notes.append(f"no item with weight, and so no score: {nothing}")
    if rules.missing == "intersect":
        common = _common(board, heavy, known, coverage)
        if not common.all():
            notes.append(_lost(board, ~common, coverage))
            whole, board, weights = board, board.select(common), weights[common]
            if given.level == "task" and board.level == "item":  # a task's weight falls to the items that are left
                weights, _ = matched_weights(given, board, partial=True)
                if gone := sorted({*whole.items.filter(heavy)["task"]} - {*board.tasks}):
                    notes.append(f"tasks without a common item, whose weight is lost: {listed(gone)}")
    elif rules.missing == "renormalise" and (coverage[known] < 1).any():
        notes.append("models are scored on different items: who lacks hard ones gains; intersect compares alike")
    notes += _weight_notes(np.nan_to_num(weights))
    scale, fits, more = _fitted(board, weights, scale, rules, table)
    notes += more
    if not fits.all():
        board, weights = board.select(fits), weights[fits]
    plain = Sheet.of(board, scale, rules)
    heavy = np.nan_to_num(weights) != 0
    sheet, weight = plain.rows(heavy), weights[heavy]
    notes += _stated_notes(sheet.board)
    scored = sheet.scored(weight) & known
    if lost := named(board.models, ~scored & known):
        why = "lacks items with weight" if rules.missing == "refuse" else "its items' weights sum to almost nothing"
        notes.append(f"no score where a model {why}: {lost}")
    if not scored.any():
        raise DataError("no model has a score", hint="choose --missing renormalise, or fewer models or tasks")
    equal = plain_weights(board)
    alike = plain.scored(equal) & known
    ranked, comparable = scored, scored & alike
    if rules.missing == "renormalise":
        ranked = scored & (missing_weight <= MAX_MISSING)
        comparable = ranked & alike & (missing_share(board, equal) <= MAX_MISSING)
        if unranked := named(board.models, scored & ~ranked):
            notes.append(f"a score but no rank, as over {percent(MAX_MISSING, 0)} of the weight is missing: {unranked}")
    if apart := named(board.models, ranked & ~comparable):
        notes.append(f"no rank by the plain average, for the items that are missing there, and no change: {apart}")
    return Weighed(
        given=given,
        scale=scale,
        board=board,
        weights=weights,
        sheet=sheet,
        plain=plain,
        weight=weight,
        equal=equal,
        scored=scored,
        ranked=ranked,
        alike=alike,
        comparable=comparable,
        coverage=coverage,
        missing_weight=missing_weight,
        notes=tuple(notes),
    )


@dataclass(frozen=True, slots=True, eq=False)
class Sheet:
    """A board on its scale, ready to be weighted.

    ``filled``: values, 0 where a model lacks an item; ``known``: 1 where it has it or it counts 0, else 0, (m, n), or
    (m, 1) where all models have all items.
    """

    board: BoardValues
    filled: FloatArray
    known: FloatArray
    errors: FloatArray | None
    design: kernel.Design
    clip: bool
    rules: ScoringRules

    @classmethod
    def of(cls, board: BoardValues, scale: Scale, rules: ScoringRules) -> Sheet:
        x, errors = scale.scaled(board)
        missing = np.isnan(x)
        x[missing] = 0.0
        known = np.ones((len(x), 1))
        if errors is not None:
            errors = np.where(errors >= 0, errors, np.nan)
        if rules.missing == "zero":
            errors = None if errors is None else np.where(missing, 0.0, errors)
        elif missing.any():
            known = (~missing).astype(np.float64)
        return cls(board, x, known, errors, _design(board), scale.clip, rules)

    def rows(self, which: Flags) -> Sheet:
        """Return some rows."""
        if which.all():
            return self
        board = self.board.select(which)
        errors = None if self.errors is None else self.errors[which]
        return replace(
            self,
            board=board,
            filled=self.filled[which],
            known=self.known[which],
            errors=errors,
            design=_design(board),
        )

    def scored(self, weights: FloatArray) -> Flags:
        """Return which models have a score."""
        if self.rules.missing == "refuse":
            enough = (self.known > 0).all(axis=0)
        else:
            enough = _divisors(weights) @ self.known > kernel.TINY * (np.abs(weights) @ self.known)
        return np.broadcast_to(enough, self.filled.shape[1:])

    def sums(self, weights: FloatArray, scored: Flags) -> kernel.Sums:
        """Return the sums that the scores of the scored models are made of."""
        divisors = _divisors(weights)
        filled, known = _columns(self.filled, scored), _columns(self.known, scored)
        return kernel.unit_sums(filled, known, weights, divisors, self.design, self.board.codes, clip=self.clip)

    def trust(self, sums: kernel.Sums, weights: FloatArray, scored: Flags) -> Trust:
        """Return standard errors and rank sets of the scored models."""
        if self.clip:
            _check_clip(self.board, weights)
        rng = np.random.default_rng(self.rules.seed)
        confidence, replicates = self.rules.confidence, self.rules.replicates
        stated = self._stated(sums, weights, scored)
        if stated is not None:
            tasks = self.board.items.height
            return trust_stated(sums.scores, stated, rng=rng, confidence=confidence, replicates=replicates, tasks=tasks)
        level = self.board.level
        return trust_sampled(sums, self.design, level, rng=rng, confidence=confidence, replicates=replicates)

    def _stated(self, sums: kernel.Sums, weights: FloatArray, scored: Flags) -> FloatArray | None:
        """Return the standard errors that follow from stated ones; None where some are not stated, or a model's 0."""
        if self.errors is None:
            return None
        errors = self.errors[:, scored]
        counted = np.broadcast_to(_columns(self.known, scored) > 0, errors.shape)
        if np.isnan(errors[counted]).any():
            return None
        if self.clip:
            counted = counted & (self.filled[:, scored] > 0)
        part = np.where(counted, weights[:, None] * errors, 0.0)
        error: FloatArray = np.sqrt(np.square(part).sum(axis=0)) / sums.total
        return error if (error > 0).all() else None


def missing_share(board: BoardValues, weights: FloatArray) -> FloatArray:
    """Return the share of the sum of |weight| of the items that each model lacks, (n,)."""
    size = np.abs(np.nan_to_num(weights))
    share: FloatArray = (size @ np.isnan(board.values)) / size.sum()
    return share


def named(models: tuple[str, ...], which: Flags) -> str:
    """Return the names of some models, "" for none."""
    return listed(model for model, flag in zip(models, which, strict=True) if flag)


def _design(board: BoardValues) -> kernel.Design:
    """Return how items are drawn: within tasks; tasks all together."""
    tasks = board.codes if board.level == "item" else np.zeros_like(board.codes)
    return kernel.sampling_design(board.clusters, tasks)


def _fitted(
    board: BoardValues, weights: FloatArray, scale: Scale | None, rules: ScoringRules, table: pl.DataFrame | None
) -> tuple[Scale, Flags, list[str]]:
    """Return the scale, the rows that have one, and what to know; only tasks without weight may have none."""
    codes, tasks = board.codes, board.tasks
    fits = np.bincount(codes, np.nan_to_num(weights) != 0) > 0

    def scale_of(which: Flags) -> Scale:
        return board_scale(board.select(which), rules.scale, table=table, clip=rules.clip)

    for code in np.flatnonzero(~fits):
        try:
            (scale_of(codes == code) if scale is None else scale).ends((tasks[code],))
        except DataError:
            continue
        fits[code] = True
    notes = []
    if bare := named(tasks, ~fits):
        notes.append(f"tasks without weight do not fit the scale and count nowhere, not in the plain average: {bare}")
    rows: Flags = fits[codes]
    if scale is None:
        scale = scale_of(rows)
        notes += scale.notes
    return scale, rows, notes


def _columns(table: FloatArray, which: Flags) -> FloatArray:
    """Return some columns, of a table of one column that stands for all the same table."""
    return table if which.all() or table.shape[1] == 1 else table[:, which]


def _common(board: BoardValues, heavy: Flags, known: Flags, coverage: FloatArray) -> Flags:
    """Return the rows that all models have but those without any."""
    if not known.any():
        raise DataError("no model has an item with weight", hint="see `benchwright panel describe`")
    common: Flags = np.asarray(np.isfinite(board.values[:, known]).all(axis=1))
    if not common[heavy].any():
        least = shown(board.models[_least(coverage)])
        raise DataError(
            f"no item with weight is common to all models; {least} has only {percent(coverage[_least(coverage)])} of"
            " them",
            hint=f"leave it out (--models '!{least}'), or choose --missing renormalise",
        )
    return common


def _lost(board: BoardValues, lost: Flags, coverage: FloatArray) -> str:
    text = f"{int(lost.sum()):,} of {count(len(lost), board.level)} not common to all, left out"
    if board.level == "task":
        text += f": {named(tuple(board.items['task']), lost)}"
    least = _least(coverage)
    return f"{text}; {shown(board.models[least])} has the fewest, {percent(float(coverage[least]))}"


def _least(coverage: FloatArray) -> int:
    """Return the place of the model that has least, of those that have something."""
    return int(np.where(coverage > 0, coverage, np.inf).argmin())


def _divisors(weights: FloatArray) -> FloatArray:
    """Return what sums of weighted values are divided by: weights, or their sizes where they sum to less than 0."""
    return weights if weights.sum() > 0 else np.abs(weights)


def _weight_notes(weights: FloatArray) -> list[str]:
    """Refuse weights that give no scale; say which ones do harm."""
    total, size = float(weights.sum()), float(np.abs(weights).sum())
    if abs(total) <= kernel.TINY * size:
        raise DataError(
            f"the weights sum to almost nothing: {total:.3g}, their sizes to {size:.3g}; a score needs a scale",
            hint="add a constant to all weights, or take non-negative ones",
        )
    notes = []
    negative = int((weights < 0).sum())
    if negative:
        share = percent(float(-weights[weights < 0].sum() / size))
        notes.append(
            f"{count(negative, 'negative weight')} ({share} of the weight): a model that does well there loses score"
        )
    if total < 0:
        notes.append("the weights sum to less than 0: divided by the sum of their sizes, signs kept")
    elif total < NEARLY_CANCEL * size:
        notes.append("weights of both signs nearly cancel: scores are far from the scale of the values")
    return notes


def _stated_notes(board: BoardValues) -> list[str]:
    if board.standard_errors is None:
        return []
    nothing, below = (int((board.standard_errors == 0).sum()), int((board.standard_errors < 0).sum()))
    notes = [f"{count(below, 'stated standard error')} below 0: not taken for stated"] if below else []
    if nothing:
        zeros = f"{count(nothing, 'stated standard error')} of 0"
        notes.append(f"{zeros}: nothing added; a model that has no others counts as one without stated errors")
    return notes


def _check_clip(board: BoardValues, weights: FloatArray) -> None:
    mixed = sorted({*board.items.filter(weights < 0)["task"]})
    if mixed:
        raise UsageError(
            f"task scores can be clipped at chance only where weights are >= 0; {listed(mixed)} has others",
            hint="add --no-clip",
        )
