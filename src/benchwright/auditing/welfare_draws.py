"""How sure item welfare is: values of activities drawn again, and judges drawn again where several count.

An item's welfare is sum_g L_ig p_g, L_ig the weight that the judges' ranks give to activity g (``welfare``), so items
that share an activity move together. What is drawn:

Values p. From draws of workers and tasks where the source has them (``activity_draws.parquet``), both framings of one
replicate together. Else from counts: a share of k of n tasks as k / n + (X - E X), X of Jeffreys' posterior
Beta(k + 1/2, n - k + 1/2), framings apart. Either way the draws' mean is the estimate. The line from shares to [1, 5]
stays, so that the neutral point stays the same share of tasks; drawn values may leave [1, 5], which a linear welfare
does not mind.

Judges. Of J judges J are drawn with replacement, the same for all items, and deviations from the mean are scaled by
sqrt(J / (J - 1)), so that the variance of an item's mean is s^2 / J, s^2 the variance between its judges. One judge
says nothing of what another would have ranked, and then it is not drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import sparse

from benchwright._check import FloatArray
from benchwright._words import count
from benchwright.auditing.welfare import VALUES, item_welfare, rank_weights, ranked_codes
from benchwright.choices import WelfareChoices
from benchwright.logs.item_tables import ITEM, PERSPECTIVES, ItemTables

OFF_LINE = 1e-3  # welfare on [1, 5] beyond which values are not a line of the shares, or draws not of the values
BLOCK = 4096  # items at a time


@dataclass(frozen=True, slots=True, eq=False)
class ActivityDraws:
    """Values of n activities about their estimates: covariance by framing (n, n), and draws of a size, (b, n) each."""

    covariance: Mapping[str, FloatArray]
    draw: Callable[[tuple[str, ...], int, np.random.Generator], Mapping[str, FloatArray]]
    note: str


@dataclass(frozen=True, slots=True, eq=False)
class WelfareDraws:
    """Welfare of m items about its estimate, on [1, 5].

    ``loads`` (m, n) by framing weigh activities; ``between`` (J, m) by framing are deviations of the judges from their
    mean, scaled so that drawing J of them again gives the variance of the mean; None for one judge.
    """

    activities: ActivityDraws | None
    loads: Mapping[str, sparse.csr_array]
    between: Mapping[str, FloatArray] | None
    notes: tuple[str, ...]

    @property
    def drawn(self) -> bool:
        """Whether anything is drawn."""
        return self.activities is not None or self.between is not None

    def draw(self, mixture: Mapping[str, float], size: int, rng: np.random.Generator) -> FloatArray:
        """Return deviations of the mixture of framings, (size, m)."""
        out = np.zeros((size, next(iter(self.loads.values())).shape[0]))
        if self.activities is not None:
            values = self.activities.draw(tuple(mixture), size, rng)
            for framing, part in mixture.items():
                out += part * (self.loads[framing] @ values[framing].T).T
        if self.between is not None:
            judges = len(next(iter(self.between.values())))
            times = rng.multinomial(judges, np.full(judges, 1 / judges), size=size) / judges
            for framing, part in mixture.items():
                out += part * (times @ self.between[framing])
        return out

    def error(self, framing: str) -> FloatArray:
        """Return the standard error of each item's welfare under one framing, (m,); NaN where nothing is known."""
        known = self.activities is None or framing in self.activities.covariance
        if not self.drawn or not known:
            return np.full(self.loads[framing].shape[0], np.nan)
        loads = self.loads[framing]
        variance = np.zeros(loads.shape[0])
        if self.activities is not None:
            covariance = self.activities.covariance[framing]
            for start in range(0, len(variance), BLOCK):
                block = loads[start : start + BLOCK].toarray()
                variance[start : start + BLOCK] = np.einsum("in,nk,ik->i", block, covariance, block, optimize=True)
        if self.between is not None:
            variance += np.square(self.between[framing] / len(self.between[framing])).sum(axis=0)
        return np.sqrt(variance)


def welfare_draws(items: pl.DataFrame, tables: ItemTables, choices: WelfareChoices) -> WelfareDraws | str:
    """Return how welfare of ``items`` (task, doc_id) may be drawn, or why it cannot be."""
    judged = tables.main_loadings
    if not judged:
        return "the source has no judge's rankings."
    activities = tables.activities[choices.activity_score].sort("activity")
    kept = activities.filter(~pl.col("dropped"))
    values = _from_draws(tables, kept, choices)
    if values is None:
        values = _from_counts(kept, choices)
    weights = rank_weights(choices.top_k, choices.rank_weights)
    weights = weights / weights.sum()
    scored = [
        items.select(*ITEM).join(
            item_welfare(one, activities, top_k=choices.top_k, rule=choices.rank_weights),
            on=ITEM,
            how="left",
            maintain_order="left",
        )
        for one in judged
    ]
    place = np.append(np.where(activities["dropped"], -1, np.cumsum(~activities["dropped"].to_numpy()) - 1), -1)
    loads, between = {}, {}
    alone = 0
    codes = [
        ranked_codes(one.join(items, on=ITEM, how="semi"), items, activities["activity"], top_k=choices.top_k)
        for one in judged
    ]
    for framing in PERSPECTIVES:
        welfare = np.stack(
            [one[f"w_{VALUES[framing]}"].cast(pl.Float64).fill_null(np.nan).to_numpy() for one in scored]
        )
        known = np.isfinite(welfare)
        n_judges = known.sum(axis=0)
        loads[framing] = _loads([place[one[framing]] for one in codes], weights, known, kept.height)
        mean = np.where(known, welfare, 0.0).sum(axis=0) / np.maximum(n_judges, 1)
        scale = np.sqrt(len(judged) ** 2 / np.maximum(n_judges * (n_judges - 1), 1))
        between[framing] = np.where(known, welfare - mean, 0.0) * scale
        alone = max(alone, int((n_judges == 1).sum()))
    notes = []
    if not isinstance(values, str):
        notes.append(values.note)
    elif len(judged) == 1:
        return values
    else:
        notes.append(f"Values of activities are not drawn: {values}")
    if len(judged) > 1:
        text = (
            f"Draws of judges: {len(judged)} of the {len(judged)} that count, with replacement, the same for all items."
        )
        notes.append(text + (f" {count(alone, 'item')} of one judge alone have no part in it." if alone else ""))
    return WelfareDraws(
        None if isinstance(values, str) else values, loads, between if len(judged) > 1 else None, tuple(notes)
    )


def welfare_errors(items: pl.DataFrame, tables: ItemTables, choices: WelfareChoices) -> list[pl.Series]:
    """Return w_auto_se and w_aug_se of ``items``, null without a value; no columns where nothing is known of them."""
    found = welfare_draws(items, tables, choices)
    if isinstance(found, str):
        return []
    errors = []
    for framing, name in VALUES.items():
        error = np.where(items[f"w_{name}"].is_null(), np.nan, found.error(framing))
        errors.append(pl.Series(f"w_{name}_se", error).fill_nan(None))
    return errors


def _loads(places: list[NDArray[np.int64]], weights: FloatArray, known: NDArray[np.bool_], n: int) -> sparse.csr_array:
    """Return the weight of each of n activities in each item's welfare, the mean over judges that gave it a value."""
    total = sparse.csr_array((len(places[0]), n))
    for place, judged in zip(places, known, strict=True):
        rows, ranks = np.nonzero((place >= 0) & judged[:, None])
        share = weights[ranks] / known.sum(axis=0)[rows]
        total = total + sparse.csr_array((share, (rows, place[rows, ranks])), shape=total.shape)
    return total


def _from_draws(tables: ItemTables, kept: pl.DataFrame, choices: WelfareChoices) -> ActivityDraws | str | None:
    """Return values as the source's draws have them, None without draws."""
    draws = tables.activity_draws.get(choices.activity_score)
    if draws is None:
        return None
    wide = {}
    for framing, name in VALUES.items():
        table = draws.pivot("activity", index="replicate", values=name, sort_columns=True)
        fixed = [one for one in kept["activity"] if one not in table.columns]
        table = table.with_columns(pl.lit(None, dtype=pl.Float64).alias(one) for one in fixed)
        one = table.select(kept["activity"].to_list()).cast(pl.Float64).to_numpy()
        value = kept[name].to_numpy()
        centre = np.where(np.isnan(one).all(axis=0), value, one.mean(axis=0))
        if not np.abs(centre - value).max() < OFF_LINE:
            return "the draws of activities are not those of the table of values."
        wide[framing] = np.nan_to_num(one - centre)
    b = len(next(iter(wide.values())))

    def draw(framings: tuple[str, ...], size: int, rng: np.random.Generator) -> Mapping[str, FloatArray]:
        rows = rng.integers(b, size=size)
        return {framing: wide[framing][rows] for framing in framings}

    rest = f"; {count(len(fixed), 'activity').replace('activitys', 'activities')} without draws stay" if fixed else ""
    covariance = {framing: np.atleast_2d(np.cov(one, rowvar=False)) for framing, one in wide.items()}
    return ActivityDraws(
        covariance,
        draw,
        f"Draws of welfare: values of activities from {b:,} draws of workers and tasks, both framings together{rest}; "
        "the line from shares to [1,5] is kept, so that the neutral point stays the same share of tasks.",
    )


def _from_counts(kept: pl.DataFrame, choices: WelfareChoices) -> ActivityDraws | str:
    """Return values as shares of counted tasks."""
    if choices.activity_score != "share":
        return "mean ratings come without their spread."
    if not {"n_tasks", "share_auto", "share_aug"} <= set(kept.columns):
        return "the source does not say of how many tasks an activity's value is a share."
    needed = {"automation": choices.automation_share > 0, "augmentation": choices.automation_share < 1}
    n = kept["n_tasks"].cast(pl.Float64).fill_null(np.nan).to_numpy()
    slope, a, b = {}, {}, {}
    for framing, name in VALUES.items():
        share = kept[f"share_{name}"].cast(pl.Float64).fill_null(np.nan).to_numpy()
        counted = bool(((n >= 1) & (share >= 0) & (share <= 1)).all())
        line = _slope(share, kept[name].to_numpy()) if counted else np.nan
        if np.isfinite(line):
            slope[framing], a[framing], b[framing] = line, share * n + 0.5, (1 - share) * n + 0.5
        elif needed[framing] and not counted:
            return "the source does not say of how many tasks each activity's value is a share."
        elif needed[framing]:
            return "values of activities do not follow from shares of tasks."

    def draw(wanted: tuple[str, ...], size: int, rng: np.random.Generator) -> Mapping[str, FloatArray]:
        return {f: slope[f] * (rng.beta(a[f], b[f], size=(size, n.size)) - a[f] / (n + 1)) for f in wanted}

    return ActivityDraws(
        {f: np.diag(slope[f] ** 2 * a[f] * b[f] / ((n + 1) ** 2 * (n + 2))) for f in slope},
        draw,
        f"Draws of welfare: each activity's share of its {int(n.min())} to {int(n.max())} rated tasks "
        "(Jeffreys' posterior about the estimate), the judge's rankings as they are; the line from shares to [1,5] is "
        "kept, so that the neutral point stays the same share of tasks.",
    )


def _slope(share: FloatArray, value: FloatArray) -> float:
    """Return the slope of the line from shares to values, NaN where they do not lie on one."""
    if np.ptp(share) == 0:
        return np.nan
    slope, start = np.polyfit(share, value, 1)
    return float(slope) if np.abs(start + slope * share - value).max() < OFF_LINE else np.nan
