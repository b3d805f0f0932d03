"""What changed between two sets of weights: items, shares, signs, order, and which changes exceed their intervals.

Weights are compared as shares (w / sum w where that sum is positive, else w / sum |w|), for only their direction is
the board's. With shares s and s', 0 for an item that one side lacks,

    share moved = sum_i |s'_i - s_i| / 2

A change is settled where the two intervals of the item's share do not overlap. That rule is conservative: intervals
may overlap although the difference is far from 0. It is applied item by item, not to all items at once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from scipy import stats

from benchwright._check import FloatArray
from benchwright._json import json_safe
from benchwright._shown import Headline, Shown, ShownPart, frame_table
from benchwright._words import count, percent
from benchwright.errors import DataError
from benchwright.panel.names import listed

SHOWN = 5
ROUNDING = 1e-9
FEWEST = 10  # items from which a rank correlation gets an interval
RULE = "settled: the two intervals do not overlap, which is conservative; item by item, not for all at once"


@dataclass(frozen=True, slots=True)
class Correlation:
    """A rank correlation over the common items, with a 95 % interval if these are a sample of possible items.

    The interval is Fisher's z with the variance of Bonett and Wright (2000); null below 10 items and at 1 or -1.
    """

    value: float
    lo: float
    hi: float

    def __str__(self) -> str:
        interval = "" if np.isnan(self.lo) else f" ({self.lo:.3f} to {self.hi:.3f} over items)"
        return ("not defined" if np.isnan(self.value) else f"{self.value:.3f}") + interval


@dataclass(frozen=True, slots=True, eq=False)
class WeightChanges(Shown):
    """Weights old and new.

    Attributes
    ----------
    frame
        One row an item (or task), the largest change of share first: task, doc_id, status (common, added, removed),
        old_weight, new_weight, old_share, new_share, share_change, old_lo, old_hi, new_lo, new_hi (ends of the shares'
        intervals), sign_flip (from positive to negative or back), settled (null where an interval is missing).
    column
        What both sides' weights come from; None where that differs.
    share_moved
        Half the sum of absolute changes of share; more than 1 is possible with negative weights.
    spearman, kendall
        Of the weights of common items; Kendall's tau-b.
    """

    frame: pl.DataFrame
    column: str | None
    share_moved: float
    spearman: Correlation
    kendall: Correlation
    notes: tuple[str, ...]

    @property
    def counts(self) -> dict[str, int | None]:
        """Return how many items came, went, flipped, fell to or rose from 0, and are settled (None: not known)."""
        status = self.frame["status"]
        known = self.frame["settled"].drop_nulls()
        return {
            **{word: int((status == word).sum()) for word in ("common", "added", "removed")},
            "sign_flips": int(self.frame["sign_flip"].sum()),
            "became_0": int(((self.frame["old_weight"] != 0) & (self.frame["new_weight"] == 0)).sum()),
            "were_0": int(((self.frame["old_weight"] == 0) & (self.frame["new_weight"] != 0)).sum()),
            "with_intervals": len(known),
            "settled": int(known.sum()) if len(known) else None,
        }

    def _told(self) -> Iterable[ShownPart]:
        n = self.counts
        what = "weights" if self.column is None else f"weights ({self.column})"
        yield Headline(
            f"{what}: {n['common']:,} common, {n['added']:,} added, {n['removed']:,} removed;"
            f" {percent(self.share_moved)} of the share moved, {count(n['sign_flips'] or 0, 'sign flip')},"
            f" {n['became_0']:,} fell to 0, {n['were_0']:,} rose from 0"
        )
        yield f"order of common weights: Spearman {self.spearman}, Kendall tau-b {self.kendall}"
        told = ["task", "doc_id", "status", "old_share", "new_share", "share_change", "sign_flip", "settled"]
        for word, descending in (("up", True), ("down", False)):
            moved = self.frame.filter(pl.col("share_change") > 0 if descending else pl.col("share_change") < 0)
            if moved.height:
                yield f"furthest {word}"
                moved = moved.sort("share_change", descending=descending, maintain_order=True)
                yield frame_table(moved.select(told), rows=SHOWN)
        if n["settled"] is not None:
            yield f"{n['settled']:,} of {n['with_intervals']:,} changes settled ({RULE})"
        yield from self.notes

    def to_frame(self) -> pl.DataFrame:
        """Return the table of items."""
        return self.frame

    def to_dict(self) -> dict[str, Any]:
        """Return all as JSON-safe values."""
        record: dict[str, Any] = json_safe(
            {
                "column": self.column,
                "share_moved": self.share_moved,
                **{
                    name: {"value": one.value, "lo": one.lo, "hi": one.hi}
                    for name, one in (("spearman", self.spearman), ("kendall", self.kendall))
                },
                **self.counts,
                "settled_rule": RULE,
                "items": self.frame.to_dicts(),
                "notes": list(self.notes),
            }
        )
        return record


def weight_changes(
    old: pl.DataFrame,
    new: pl.DataFrame,
    *,
    names: tuple[str, str] = ("old", "new"),
    columns: tuple[str | None, str | None] = (None, None),
) -> WeightChanges:
    """Return what changed between two tables of weights, as ``Release.weights`` has them.

    ``names`` and ``columns`` are what messages call the two and the columns that the weights come from.

    Raises
    ------
    DataError
        No item has a weight in both.
    """
    sides = [
        frame.select(
            "task", "doc_id", pl.all().exclude("task", "doc_id").name.prefix(f"{word}_"), **{word: pl.lit(True)}
        )
        for frame, word in ((old, "old"), (new, "new"))
    ]
    both = sides[0].join(sides[1], on=["task", "doc_id"], how="full", coalesce=True, nulls_equal=True)
    status = pl.when("old", "new").then(pl.lit("common")).when("new").then(pl.lit("added")).otherwise(pl.lit("removed"))
    both = both.rename(lambda name: name.replace("_share_lo", "_lo").replace("_share_hi", "_hi"))
    change = pl.col("new_share").fill_null(0.0) - pl.col("old_share").fill_null(0.0)
    frame = both.select(
        "task",
        "doc_id",
        "old_weight",
        "new_weight",
        "old_share",
        "new_share",
        "old_lo",
        "old_hi",
        "new_lo",
        "new_hi",
        status=status,
        share_change=change,
        sign_flip=(pl.col("old_weight") * pl.col("new_weight") < 0).fill_null(False),
        settled=(pl.col("old_hi") < pl.col("new_lo")) | (pl.col("new_hi") < pl.col("old_lo")),
    ).sort(pl.col("share_change").abs(), "task", "doc_id", descending=[True, False, False])
    common = frame.filter(pl.col("status") == "common")
    if common.height == 0:
        first = [listed(part for part in side.row(0)[:2] if part) for side in (old, new)]
        raise DataError(
            f"{names[0]} and {names[1]} have no item in common",
            hint=f"the old names ({first[0]}), the new ({first[1]}); compare weights of one benchmark",
        )
    x, y = common["old_weight"].to_numpy(), common["new_weight"].to_numpy()
    return WeightChanges(
        frame=frame.select(_ORDER),
        column=columns[0] if columns[0] == columns[1] else None,
        share_moved=float(frame["share_change"].abs().sum()) / 2,
        spearman=_correlation("spearman", x, y),
        kendall=_correlation("kendall", x, y),
        notes=_notes(old, new, columns, common),
    )


_ORDER = ["task", "doc_id", "status", "old_weight", "new_weight", "old_share", "new_share", "share_change"]
_ORDER += ["old_lo", "old_hi", "new_lo", "new_hi", "sign_flip", "settled"]


def _correlation(kind: str, x: FloatArray, y: FloatArray) -> Correlation:
    if np.unique(x).size < 2 or np.unique(y).size < 2:
        return Correlation(np.nan, np.nan, np.nan)
    n = len(x)
    r = float((stats.spearmanr if kind == "spearman" else stats.kendalltau)(x, y).statistic)
    if n < FEWEST or abs(r) > 1 - ROUNDING:
        return Correlation(r, np.nan, np.nan)
    variance = (1 + r**2 / 2) / (n - 3) if kind == "spearman" else 0.437 / (n - 4)
    reach = float(stats.norm.isf(0.025)) * np.sqrt(variance)
    return Correlation(r, float(np.tanh(np.arctanh(r) - reach)), float(np.tanh(np.arctanh(r) + reach)))


def _notes(
    old: pl.DataFrame, new: pl.DataFrame, columns: tuple[str | None, str | None], common: pl.DataFrame
) -> tuple[str, ...]:
    notes = []
    for word, side in (("old", old), ("new", new)):
        weight = side["weight"]
        if (weight < 0).any():
            positive = weight.sum() > 0
            notes.append(
                f"{count(int((weight < 0).sum()), f'negative {word} weight')}"
                + ("" if positive else f"; {word} weights do not sum to more than 0, so shares are of their sizes")
            )
    if notes:
        notes.append("with negative weights more than all of the share can move")
    if columns[0] != columns[1]:
        notes.append(f"old weights are the column {columns[0]}, new ones {columns[1]}")
    if common["settled"].null_count() == common.height:
        notes.append("no item has an interval on both sides, so no change is called settled")
    return tuple(notes)
