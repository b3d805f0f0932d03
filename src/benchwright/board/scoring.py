"""Models scored with a weighting scheme: scores, standard errors, ranks with intervals.

What counts is in :mod:`.weighing`, the formulas in :mod:`._board`, what is made of them in :mod:`.uncertainty`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from benchwright._check import FloatArray
from benchwright.board.results import Leaderboard
from benchwright.board.rules import ScoringRules
from benchwright.board.scales import Scale
from benchwright.board.scheme import WeightScheme
from benchwright.board.uncertainty import Trust
from benchwright.board.values import BoardValues
from benchwright.board.weighing import Flags, Weighed, weigh
from benchwright.panel.item_values import IntArray

DEFAULTS = ScoringRules()
TIE = 1e-12
COLUMNS = (
    "model", "score", "standard_error", "score_lo", "score_hi", "rank", "rank_lo", "rank_hi", "tie_group",
    "uniform_score", "uniform_rank", "rank_change", "coverage", "missing_weight",
)  # fmt: skip


def score_board(
    values: BoardValues,
    scheme: WeightScheme | None = None,
    *,
    rules: ScoringRules = DEFAULTS,
    scale: Scale | None = None,
    table: pl.DataFrame | None = None,
    partial: bool = False,
) -> Leaderboard:
    """Score the models of a board.

    Parameters
    ----------
    values
        Models on items, as the logs have them.
    scheme
        Weights; items that it does not name count in the plain average only. None: the plain average of items.
    scale
        A scale that is fixed, as of a frozen board; by default the one that ``rules.scale`` makes.
    table
        What the rules "bounds" and "chance" need, see :func:`benchwright.board.scales.board_scale`.
    partial
        Accept a scheme of which much fits no item of the board.

    Raises
    ------
    DataError
        Nothing matches the scheme; no item is common to all; weights that sum to almost nothing; values that do not
        fit the scale; all items in one cluster.

    Examples
    --------
    >>> import polars as pl
    >>> rows = [("x", "1", 1.0), ("x", "2", 0.0), ("y", "1", 0.0), ("y", "2", 1.0)]
    >>> table = pl.DataFrame(rows, schema=["model", "doc_id", "value"], orient="row").with_columns(task=pl.lit("a"))
    >>> weights = pl.DataFrame({"task": ["a", "a"], "doc_id": ["1", "2"], "weight": [3.0, 1.0]})
    >>> board = score_board(BoardValues.from_frame(table), WeightScheme(weights))
    >>> board.frame.select("model", "score", "uniform_score").rows()
    [('x', 0.75, 0.5), ('y', 0.25, 0.5)]
    """
    w = weigh(values, scheme, rules=rules, scale=scale, table=table, partial=partial)
    sums = w.sheet.sums(w.weight, w.scored)
    trust = w.sheet.trust(sums, w.weight, w.scored)
    ranking: Trust | None = trust
    if (w.scored & ~w.ranked).any():
        ranking = w.sheet.trust(w.sheet.sums(w.weight, w.ranked), w.weight, w.ranked) if w.ranked.any() else None
    columns = {
        "score": _spread(sums.scores, w.scored),
        "uniform_score": _spread(w.plain.sums(w.equal, w.alike).scores, w.alike),
        "coverage": w.coverage,
        "missing_weight": w.missing_weight,
    }
    if w.scale.clip:
        columns["score_unclipped"] = _spread(replace(sums, clip=False).scores, w.scored)
    policy = {
        "missing": rules.missing,
        "scale": w.scale.rule + (", clipped" if w.scale.clip else ""),
        "level": w.board.level,
        "standard errors": trust.how,
        "confidence": rules.confidence,
        "replicates": rules.replicates,
        "seed": rules.seed,
    }
    numbers = {
        "models": len(w.board.models),
        "items": len(w.weight),
        "items_of_plain_average": w.board.items.height,
        "tasks": len(w.sheet.board.tasks),
        "units": trust.units,
        "critical": trust.sets.critical,
        "rank_sets": trust.sets.method,
    }
    named = np.isfinite(w.weights)
    rows = w.board.items.with_columns(weight=w.weights).filter(named)
    used = WeightScheme(rows, w.board.level, w.given.rule, w.given.assumptions)
    notes = tuple(dict.fromkeys([*w.notes, *trust.notes]))
    frame = _frame(w, columns, trust, ranking)
    return Leaderboard(frame, used, w.given, w.board, w.scale, rules, policy, numbers, notes)


def _spread(values: FloatArray | IntArray, which: Flags) -> FloatArray:
    """Return values of some models as one of all, NaN for the others."""
    full = np.full(len(which), np.nan)
    full[which] = values
    return full


def _frame(w: Weighed, columns: dict[str, FloatArray], trust: Trust, ranking: Trust | None) -> pl.DataFrame:
    """Return the table: what holds of the models that are scored, and of those that are ranked."""
    score, plain = columns["score"], columns["uniform_score"]
    ranked, both = np.where(w.ranked, score, np.nan), np.where(w.comparable, score, np.nan)
    whole = {"rank": ranks_of(ranked), "uniform_rank": ranks_of(np.where(w.comparable, plain, np.nan))}
    whole["rank_change"] = whole["uniform_rank"] - ranks_of(both)
    ends: dict[str, Any] = dict.fromkeys(("rank_lo", "rank_hi", "tie_group"), np.empty(0))
    if ranking is not None:
        groups = ranking.tie_groups(ranked[w.ranked])
        ends = {"rank_lo": ranking.sets.lo, "rank_hi": ranking.sets.hi, "tie_group": groups}
    whole |= {name: _spread(values, w.ranked) for name, values in ends.items()}
    parts = {"standard_error": trust.error, "score_lo": trust.low, "score_hi": trust.high}
    parts = {name: _spread(values, w.scored) for name, values in parts.items()}
    table = pl.DataFrame({"model": pl.Series(w.board.models, dtype=pl.String), **columns, **parts, **whole})
    table = table.with_columns(pl.col(pl.Float64).fill_nan(None)).with_columns(pl.col(*whole).cast(pl.Int64))
    more = [name for name in columns if name not in COLUMNS]
    return table.select(*COLUMNS, *more).sort("rank", "model", nulls_last=True)


def ranks_of(score: FloatArray) -> FloatArray:
    """Return 1 + the number of greater scores, NaN where there is none."""
    known = np.sort(score[np.isfinite(score)])
    higher = len(known) - np.searchsorted(known, score + TIE, side="right")
    return np.where(np.isfinite(score), 1.0 + higher, np.nan)
