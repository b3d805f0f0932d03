"""How far judges agree on which activities an item resembles: people, models, or one model asked again.

Per framing and pair of judges, over the items that both judged: rank-biased overlap of their lists (p = 0.9,
extrapolated; 1 where lists are alike, 0 where they share nothing), beside what lists of different items give, since
judges who name the same few activities for everything overlap without looking at the item. And Krippendorff's alpha
(nominal) of whether an activity is on the list, for pairs and for all judges. Intervals resample items.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from benchwright import __version__
from benchwright._check import FloatArray
from benchwright._json import json_safe
from benchwright._shown import Headline, Shown, ShownPart
from benchwright._words import count
from benchwright.errors import DataError, UsageError
from benchwright.estimating._resampling import tail_count
from benchwright.judge import _agreement as kernel
from benchwright.logs.item_tables import ITEM, PERSPECTIVES

PERSISTENCE = 0.9
ALL = "all"
LEAST_ITEMS = 10  # of as many, 95 % intervals held the truth in 90 % of samples; of fewer there is none
OTHER_PAIRS = 5_000  # pairs of different items that are compared
SCHEMA = {
    "perspective": pl.String(),
    "first": pl.String(),
    "second": pl.String(),
    "n_items": pl.Int64(),
    "rbo": pl.Float64(),
    "rbo_lo": pl.Float64(),
    "rbo_hi": pl.Float64(),
    "rbo_other_items": pl.Float64(),
    "alpha": pl.Float64(),
    "alpha_lo": pl.Float64(),
    "alpha_hi": pl.Float64(),
    "n_activities": pl.Int64(),
}


@dataclass(frozen=True, slots=True, eq=False)
class Agreement(Shown):
    """Agreement of judges.

    Attributes
    ----------
    table
        perspective, first, second, n_items, rbo (mean over items), rbo_lo, rbo_hi, rbo_other_items (mean overlap of the
        first's list for one item with the second's for another), alpha, alpha_lo, alpha_hi, n_activities. With three
        judges or more a row of all (``first`` and ``second`` are "all"): rbo is then the mean over an item's pairs.
        Null where not defined, and of fewer than ten items no intervals.
    items
        task, doc_id, perspective, first, second, rbo: null where a list is empty.
    ranks, persistence, replicates, confidence, version
        Entries of a list that count, p, number of resamples, level of intervals, of benchwright.
    """

    table: pl.DataFrame
    items: pl.DataFrame
    ranks: int
    persistence: float
    replicates: int
    confidence: float
    version: str = __version__

    def _told(self) -> Iterable[ShownPart]:
        yield Headline(f"Agreement of judges, intervals of level {self.confidence:g} over items")
        for row in self.table.iter_rows(named=True):
            who = "all judges" if row["first"] == ALL else f"{row['first']} and {row['second']}"
            rbo, alpha = (
                f"{name} not known"
                if row[name] is None
                else f"{name} {row[name]:.2f}{_interval_text(row[f'{name}_lo'], row[f'{name}_hi'])}"
                for name in ("rbo", "alpha")
            )
            other = "" if row["rbo_other_items"] is None else f", of different items {row['rbo_other_items']:.2f}"
            yield f"  {row['perspective']}, {who}: {rbo}{other}; {alpha}; {count(row['n_items'], 'item')}"

    def to_frame(self) -> pl.DataFrame:
        """Return the table."""
        return self.table

    def to_dict(self) -> dict[str, Any]:
        """Return all but the items, in types that JSON knows."""
        record = {name: getattr(self, name) for name in ("ranks", "persistence", "replicates", "confidence", "version")}
        return dict(json_safe({"agreement": self.table.to_dicts(), **record}))


def judge_agreement(
    judges: Mapping[str, pl.DataFrame],
    *,
    activities: Iterable[str] | None = None,
    ranks: int = 5,
    persistence: float = PERSISTENCE,
    rng: np.random.Generator,
    replicates: int = 1000,
    confidence: float = 0.95,
) -> Agreement:
    """Return how far judges agree, per framing, pair and item.

    Parameters
    ----------
    judges
        Per judge: task, doc_id, perspective, activities (ranked ids), as ``read_loadings`` and ``read_raters`` give
        them. At least two.
    activities
        All ids that could have been named: those that nobody names count as agreed on in alpha. None: those that
        somebody names.
    ranks
        Entries of a list that count.
    persistence
        p of rank-biased overlap, between 0 and 1: the weight of depth d falls as p^d.
    rng
        Of the resampled items, and of the pairs of different items.
    replicates, confidence
        Resamples, level of intervals.

    Raises
    ------
    UsageError
        Fewer than two judges, a parameter out of range, ids that are not among ``activities``.
    DataError
        No item is judged by two of them under the same framing.

    Examples
    --------
    >>> def judge(*lists):
    ...     return pl.DataFrame({"task": ["t"] * 2, "doc_id": [1, 2], "perspective": ["automation"] * 2,
    ...                          "activities": [list(one) for one in lists]})
    >>> found = judge_agreement({"a": judge("xy", "z"), "b": judge("xy", "y")}, rng=np.random.default_rng(0))
    >>> found.items["rbo"].round(3).to_list(), round(found.table["alpha"][0], 3)
    ([1.0, 0.0], 0.389)
    """
    if len(judges) < 2:
        raise UsageError(f"`judges` must be at least two, got {len(judges)}")
    if not 0 < persistence < 1:
        raise UsageError(f"`persistence` must lie between 0 and 1, got {persistence!r}")
    if ranks < 1:
        raise UsageError(f"`ranks` must be at least 1, got {ranks!r}")
    k = tail_count(replicates, confidence) if 0 < confidence < 1 else 0
    if k < 1:
        raise UsageError(f"`replicates` must be enough for intervals of level {confidence!r}, got {replicates!r}")
    named = pl.concat([frame["activities"].list.head(ranks).explode() for frame in judges.values()]).drop_nulls()
    known = sorted(set(named) if activities is None else set(activities))
    if strangers := sorted(set(named) - set(known)):
        raise UsageError(f"`activities` must hold all ids that judges name, and lacks {', '.join(strangers[:5])}")
    rows, items = [], []
    for perspective in PERSPECTIVES:
        part = _Framing(judges, perspective, known, ranks)
        pairs = [(one, two) for one, two in combinations(judges, 2) if part.both(one, two).any()]
        overlaps = []
        for one, two in pairs:
            rbo, row = part.pair(one, two, persistence, rng)
            overlaps.append(rbo)
            chosen = [list(judges).index(name) for name in (one, two)]
            row |= part.alpha(chosen, k, replicates, rng) | _interval("rbo", rbo, k, replicates, rng)
            rows.append({"perspective": perspective, "first": one, "second": two, **row})
            at = np.flatnonzero(part.both(one, two))
            table = part.items[at].with_columns(
                perspective=pl.lit(perspective), first=pl.lit(one), second=pl.lit(two), rbo=pl.Series(rbo[at])
            )
            items.append(table.with_columns(pl.col("rbo").fill_nan(None)))
        if len(judges) > 2 and pairs:
            stacked = np.stack(overlaps)
            number = np.isfinite(stacked).sum(axis=0)
            mean = np.where(number > 0, np.nansum(stacked, axis=0) / np.maximum(number, 1), np.nan)
            row = part.alpha(range(len(judges)), k, replicates, rng) | _interval("rbo", mean, k, replicates, rng)
            several = int((part.judged.sum(axis=0) >= 2).sum())
            rows.append({"perspective": perspective, "first": ALL, "second": ALL, "n_items": several, **row})
    if not rows:
        raise DataError("no item is judged by two judges under the same framing", hint="compare task and doc_id")
    filled = [{name: json_safe(value) for name, value in row.items()} | {"n_activities": len(known)} for row in rows]
    return Agreement(pl.DataFrame(filled, schema=SCHEMA), pl.concat(items), ranks, persistence, replicates, confidence)


class _Framing:
    """Lists of all judges under one framing: codes (J, m, K), and who judged what (J, m)."""

    def __init__(self, judges: Mapping[str, pl.DataFrame], perspective: str, known: list[str], ranks: int) -> None:
        frames = [frame.filter(pl.col("perspective") == perspective) for frame in judges.values()]
        for name, frame in zip(judges, frames, strict=True):
            if frame.select(*ITEM).is_duplicated().any():
                raise UsageError(f"`judges` must judge an item once per framing; {name} judges one twice")
        if len({frame["doc_id"].dtype for frame in frames}) > 1:
            raise DataError("judges do not share item ids: some have text, some integers")
        self.names = list(judges)
        self.items = pl.concat([frame.select(*ITEM) for frame in frames]).unique().sort(*ITEM)
        self.codes = np.full((len(frames), self.items.height, ranks), -1, dtype=np.int64)
        self.judged = np.zeros(self.codes.shape[:2], dtype=bool)
        self.activities = len(known)
        place = {name: code for code, name in enumerate(known)}
        row_of = self.items.with_row_index("row")
        for j, frame in enumerate(frames):
            mine = frame.join(row_of, on=ITEM)
            for row, ranked in mine.select("row", "activities").iter_rows():
                self.judged[j, row] = True
                for rank, name in enumerate((ranked or ())[:ranks]):
                    self.codes[j, row, rank] = place[name]

    def both(self, one: str, two: str) -> NDArray[np.bool_]:
        """Return which items both judged, (m,)."""
        both: NDArray[np.bool_] = self.judged[self.names.index(one)] & self.judged[self.names.index(two)]
        return both

    def pair(
        self, one: str, two: str, persistence: float, rng: np.random.Generator
    ) -> tuple[FloatArray, dict[str, Any]]:
        """Return the overlap of two judges on each item (m,), and the row that says so."""
        both = self.both(one, two)
        first, second = (self.codes[self.names.index(name)] for name in (one, two))
        rbo = np.where(both, kernel.rank_biased_overlap(first, second, persistence), np.nan)
        at = np.flatnonzero(np.isfinite(rbo))
        other = np.nan
        if at.size > 1:
            left = np.resize(rng.permutation(at.size), OTHER_PAIRS)
            right = (left + rng.integers(1, at.size, size=left.size)) % at.size
            other = kernel.rank_biased_overlap(first[at[left]], second[at[right]], persistence).mean()
        return rbo, {"n_items": int(both.sum()), "rbo_other_items": float(other)}

    def alpha(self, chosen: Iterable[int], k: int, replicates: int, rng: np.random.Generator) -> dict[str, float]:
        """Return alpha of some judges with its interval."""
        codes, judged = self.codes[list(chosen)], self.judged[list(chosen)]
        members = np.zeros((*codes.shape[:2], self.activities + 1), dtype=bool)
        np.put_along_axis(members, codes, True, axis=2)  # -1 goes to the last column
        sums = kernel.disagreement(members[:, :, :-1], judged)[judged.sum(axis=0) >= 2]
        drawn = kernel.alpha(_times(len(sums), replicates, rng) @ sums)
        return {"alpha": float(kernel.alpha(sums.sum(axis=0))), **_ends("alpha", drawn, k, len(sums))}


def _interval(name: str, values: FloatArray, k: int, replicates: int, rng: np.random.Generator) -> dict[str, float]:
    """Return the mean over the items that have a value, and its interval over resampled items."""
    known = values[np.isfinite(values)]
    if not known.size:
        return dict.fromkeys((name, f"{name}_lo", f"{name}_hi"), np.nan)
    drawn = _times(known.size, replicates, rng) @ known / known.size
    return {name: float(known.mean()), **_ends(name, drawn, k, known.size)}


def _ends(name: str, drawn: FloatArray, k: int, items: int) -> dict[str, float]:
    """Return the ends of an interval, the k-th of the draws from either side; NaN for too few items."""
    ordered = np.sort(drawn) if items >= LEAST_ITEMS else np.full(len(drawn), np.nan)
    return {f"{name}_lo": ordered[k - 1], f"{name}_hi": ordered[-k]}


def _times(m: int, replicates: int, rng: np.random.Generator) -> FloatArray:
    """Return how often each of m items is drawn in each replicate, (B, m)."""
    times: FloatArray = rng.multinomial(m, np.full(m, 1 / m), size=replicates).astype(float)
    return times


def _interval_text(lo: float | None, hi: float | None) -> str:
    return "" if lo is None or hi is None else f" ({lo:.2f} to {hi:.2f})"
