"""What would change the ranking: each choice behind item welfare, and how much another choice moves it.

Rows are recomputed on the items of the audit where the tables allow it (ranks that count, their weights, mean ratings,
another judge), averaged over draws where values or judges can be drawn, and otherwise taken from the
``alternatives.csv`` of the folder of activity values. A figure that nobody computed is null.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
from scipy import stats

from benchwright._check import FloatArray
from benchwright._words import count, percent
from benchwright.auditing.results import WelfareAudit
from benchwright.auditing.robustness import TIE_DIGITS, VARIANTS
from benchwright.auditing.welfare import VALUES, judges_welfare, quadrant
from benchwright.auditing.welfare_draws import OFF_LINE, WelfareDraws, welfare_draws
from benchwright.choices import WelfareChoices
from benchwright.config import Config
from benchwright.estimating._resampling import tail_count
from benchwright.logs.item_tables import ITEM, PERSPECTIVES, ItemTables
from benchwright.mechanism.item_weights import IN_FORCE, ItemWeights

DRAWS = 100
STREAM = 9  # of the seed
ROUNDING = 1e-12
WAYS = {1: "helps", -1: "harms", 0: "moves nothing"}
WELFARE = tuple(f"w_{name}" for name in VALUES.values())
SCHEMA = {
    "choice": pl.String(),
    "basis": pl.String(),
    "n_items": pl.Int64(),
    "spearman_auto": pl.Float64(),
    "spearman_aug": pl.Float64(),
    "quadrant_moved": pl.Float64(),
    "verdict_changes": pl.Float64(),
    "verdict": pl.String(),
    "activities_auto": pl.Float64(),
    "activities_aug": pl.Float64(),
}
MEAN_RATING = "mean rating"  # an alternative that the tables, too, may hold
WORDS = {
    "every listed activity": "a task counts for every activity that it lists",
    "first listed activity": "a task counts for the first activity that it lists",
    "experts only": "ratings of experts only",
    "experts 3, average 2, novices 1": "experts' ratings weigh 3, average workers' 2, novices' 1",
    "threshold 3": "a task counts from a mean rating of 3",
    "threshold 4": "a task counts from a mean rating of 4",
    MEAN_RATING: "values are mean ratings",
    "share of tasks": "values are shares of tasks",
    "at least 10 tasks": "activities with fewer than 10 rated tasks are dropped",
    "level iwa": "intermediate activities",
    "level dwa": "detailed activities",
}


def welfare_changes(
    welfare: WelfareAudit,
    tables: ItemTables,
    weights: ItemWeights | None,
    config: Config,
    alternatives: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """Return what other choices would change, most first.

    Parameters
    ----------
    welfare, tables
        The audit and what it was made of; without a judge's loadings there is nothing to change.
    weights
        The game of the plain average; None: no verdict.
    config
        The choices in force.
    alternatives
        What ``activity_alternatives`` returned for the values in force.

    Returns
    -------
    pl.DataFrame
        choice, basis (recomputed | draws | activities folder), n_items, spearman_auto, spearman_aug (of item welfare
        with that in force; over draws the mean), quadrant_moved (share of items), verdict_changes (1, 0, or the part of
        draws, in which the plain average no longer points the way it does), verdict (the same in words),
        activities_auto, activities_aug (Spearman of activities' values). Sorted by the lower of the two correlations.
    """
    if not tables.main_loadings:
        return pl.DataFrame(schema=SCHEMA)
    average = None if weights is None else _PlainAverage(weights, config.welfare)
    rows = [*_recomputed(welfare, tables, average, config.welfare), *_drawn(welfare, tables, average, config)]
    if weights is not None:
        rows.append(_neutral(weights, welfare))
    if alternatives is not None:
        done = {MEAN_RATING} if config.welfare.activity_score == "share" and "mean" in tables.activities else set()
        rows += [row for row in _alternatives(alternatives) if row["choice"] not in {WORDS[name] for name in done}]
    frame = pl.DataFrame(rows, schema=SCHEMA)
    return frame.sort(pl.min_horizontal("spearman_auto", "spearman_aug"), nulls_last=True, maintain_order=True)


def activity_intervals(tables: ItemTables, choices: WelfareChoices, level: float) -> pl.DataFrame | None:
    """Return activity, auto_lo, auto_hi, aug_lo, aug_hi of the values in force; None without draws of them.

    Ends stay where a share from 0 to 1 can put them, as in the folder of ``benchwright activities``.
    """
    draws = tables.activity_draws.get(choices.activity_score)
    if draws is None:
        return None
    k = tail_count(draws["replicate"].n_unique(), level)
    values = tables.activities[choices.activity_score].filter(~pl.col("dropped"))
    centre = values.join(
        draws.group_by("activity").agg(pl.col(*VALUES.values()).mean()), on="activity", suffix="_drawn"
    )
    off = [(centre[name] - centre[f"{name}_drawn"]).abs().max() for name in VALUES.values()]
    if k < 1 or not centre.height or any(gap is None or gap > OFF_LINE for gap in off):  # type: ignore[operator]
        return None
    ends = []
    for name in VALUES.values():
        least, most = _reach(values, name, choices)
        ends.append(pl.col(name).sort().get(k - 1).clip(lower_bound=least).alias(f"{name}_lo"))
        ends.append(pl.col(name).sort(descending=True).get(k - 1).clip(upper_bound=most).alias(f"{name}_hi"))
    return draws.group_by("activity").agg(*ends).sort("activity")


def _reach(values: pl.DataFrame, name: str, choices: WelfareChoices) -> tuple[float, float]:
    """Return the least and the greatest value that an activity may have."""
    if choices.activity_score == "mean":
        return 1.0, 5.0
    known = values.drop_nulls(f"share_{name}") if f"share_{name}" in values.columns else values.clear()
    if known.height < 2 or known[f"share_{name}"].n_unique() < 2:
        return -np.inf, np.inf
    slope, start = np.polyfit(known[f"share_{name}"].to_numpy(), known[name].to_numpy(), 1)
    return float(start), float(start + slope)


class _PlainAverage:
    """Which way rewarding the plain average of the weighed items points under other welfare: the sign of u'A A'w."""

    def __init__(self, weights: ItemWeights, choices: WelfareChoices) -> None:
        technology = weights.model.technology
        self.items = weights.items.select(*ITEM)
        self.pull = technology @ technology.sum(axis=0)
        self.shares = {"w_auto": choices.automation_share, "w_aug": 1 - choices.automation_share}
        self.neutral = choices.neutral
        self.way = int(self.signs(weights.items["welfare"].to_numpy()[None])[0])

    def signs(self, welfare: FloatArray) -> FloatArray:
        """Return the sign for each row of centred welfare, (b, m)."""
        value, bound = welfare @ self.pull, np.abs(welfare) @ np.abs(self.pull)
        signs: FloatArray = np.where(np.abs(value) <= ROUNDING * bound, 0.0, np.sign(value))
        return signs

    def verdict(self, items: pl.DataFrame) -> dict[str, Any]:
        """Return the verdict under the welfare of ``items``; nothing where a weighed item has none."""
        needed = [name for name, share in self.shares.items() if share > 0]
        mixture = pl.sum_horizontal(*(self.shares[name] * pl.col(name) for name in needed)) - self.neutral
        known = items.drop_nulls(needed).select(*ITEM, mixture=mixture)
        found = self.items.join(known, on=ITEM, how="left", maintain_order="left")["mixture"]
        if found.null_count():
            return {}
        way = int(self.signs(found.to_numpy()[None])[0])
        return {
            "verdict_changes": float(way != self.way),
            "verdict": f"{'still' if way == self.way else 'now'} {WAYS[way]}",
        }


def _recomputed(
    welfare: WelfareAudit, tables: ItemTables, average: _PlainAverage | None, choices: WelfareChoices
) -> Iterator[dict[str, Any]]:
    """Yield a row for each other way to score the same lists, and for each other judge."""
    chosen = (choices.top_k, choices.rank_weights, choices.activity_score)
    ways: dict[tuple[int, str, str], str] = {}
    for variant in VARIANTS:
        rule = (variant.top_k, variant.rule, variant.activity_score)
        if not variant.exact_ties and rule != chosen and variant.activity_score in tables.activities:
            ways[rule] = _difference(rule, chosen)
    for (top_k, rank_rule, score), name in ways.items():
        scored = judges_welfare(tables.main_loadings, tables.activities[score], top_k=top_k, rule=rank_rule)
        yield _row(name, welfare.items, scored, average, choices)
    for judge, loadings in tables.loadings.items():
        if tables.main == (judge,):
            continue
        values = tables.activities[choices.activity_score]
        scored = judges_welfare([loadings], values, top_k=choices.top_k, rule=choices.rank_weights)
        name = f"judge {judge} alone" if judge in tables.main else f"judge {judge} instead"
        yield _row(name, welfare.items, scored, average, choices)


def _difference(rule: tuple[int, str, str], chosen: tuple[int, str, str]) -> str:
    """Return in words how one way of scoring differs from that in force."""
    (top_k, weights, score), parts = rule, []
    if top_k != chosen[0]:
        parts.append(f"the first {top_k} ranks count")
    if weights != chosen[1]:
        parts.append("all ranks weigh the same" if weights == "uniform" else "rank k weighs 1/k")
    if score != chosen[2]:
        parts.append(WORDS[MEAN_RATING if score == "mean" else "share of tasks"])
    return ", ".join(parts)


def _row(
    name: str, items: pl.DataFrame, other: pl.DataFrame, average: _PlainAverage | None, choices: WelfareChoices
) -> dict[str, Any]:
    """Return what one other scoring of the items changes."""
    here, there = (one.select(*ITEM, pl.col(WELFARE).round(TIE_DIGITS)) for one in (items, other))
    both = here.join(there, on=ITEM, suffix="_other").drop_nulls()
    row: dict[str, Any] = {"choice": name, "basis": "recomputed", "n_items": both.height}
    for value, framing in zip(WELFARE, VALUES.values(), strict=True):
        x, y = both[value].to_numpy(), both[f"{value}_other"].to_numpy()
        if x.size > 1 and np.ptp(x) > 0 and np.ptp(y) > 0:
            row[f"spearman_{framing}"] = float(stats.spearmanr(x, y).statistic)
    cells = both.select(
        here=quadrant(pl.col("w_auto"), pl.col("w_aug"), choices.quadrant_threshold),
        there=quadrant(pl.col("w_auto_other"), pl.col("w_aug_other"), choices.quadrant_threshold),
    )
    row["quadrant_moved"] = cells.select((pl.col("here") != pl.col("there")).mean()).item()
    return row | ({} if average is None else average.verdict(other))


def _drawn(
    welfare: WelfareAudit, tables: ItemTables, average: _PlainAverage | None, config: Config
) -> Iterator[dict[str, Any]]:
    """Yield what drawing activity values again, and judges again, changes on average."""
    items = welfare.items.drop_nulls(WELFARE)
    found = welfare_draws(items, tables, config.welfare)
    if isinstance(found, str):
        return
    if found.activities is not None:
        what = "workers and tasks" if tables.activity_draws.get(config.welfare.activity_score) is not None else "tasks"
        yield _average(f"{what} behind the values drawn again", items, replace(found, between=None), average, config)
    if found.between is not None:
        yield _average("judges drawn again", items, replace(found, activities=None), average, config)


def _average(
    name: str, items: pl.DataFrame, draws: WelfareDraws, average: _PlainAverage | None, config: Config
) -> dict[str, Any]:
    """Return the mean over draws of what they change."""
    framings = PERSPECTIVES if draws.activities is None else tuple(draws.activities.covariance)
    moves = _moves(draws, framings, np.random.default_rng([config.resampling.seed, STREAM]))
    row: dict[str, Any] = {"choice": name, "basis": "draws", "n_items": items.height}
    drawn = {}
    for framing, move in moves.items():
        value = items[f"w_{VALUES[framing]}"].to_numpy()
        drawn[framing] = value + move
        if value.size > 1 and np.ptp(value) > 0:
            row[f"spearman_{VALUES[framing]}"] = _rank_correlation(value, drawn[framing])
    threshold = config.welfare.quadrant_threshold
    if len(drawn) == len(PERSPECTIVES):
        sides = [
            (drawn[framing] >= threshold) != (items[f"w_{VALUES[framing]}"].to_numpy() >= threshold)
            for framing in PERSPECTIVES
        ]
        row["quadrant_moved"] = float((sides[0] | sides[1]).mean())
    if average is None:
        return row
    shares = dict(zip(PERSPECTIVES, average.shares.values(), strict=True))
    at = average.items.join(items.with_row_index("place"), on=ITEM, how="left", maintain_order="left")["place"]
    needed = [framing for framing, share in shares.items() if share > 0]
    if at.null_count() or not set(needed) <= drawn.keys():
        return row
    welfare = sum(shares[framing] * drawn[framing][:, at.to_numpy()] for framing in needed) - average.neutral
    part = float((average.signs(np.asarray(welfare)) != average.way).mean())
    said = f"other in {percent(part, 0)} of draws" if part else f"the same in all {DRAWS} draws"
    return row | {"verdict_changes": part, "verdict": said}


def _moves(draws: WelfareDraws, framings: tuple[str, ...], rng: np.random.Generator) -> Mapping[str, FloatArray]:
    """Return deviations of item welfare by framing, both framings of the same draw, (DRAWS, m)."""
    if draws.activities is not None:
        values = draws.activities.draw(framings, DRAWS, rng)
        return {framing: (draws.loads[framing] @ values[framing].T).T for framing in framings}
    between = {} if draws.between is None else draws.between
    judges = len(next(iter(between.values())))
    times = rng.multinomial(judges, np.full(judges, 1 / judges), size=DRAWS) / judges
    return {framing: times @ between[framing] for framing in framings}


def _rank_correlation(value: FloatArray, drawn: FloatArray) -> float | None:
    """Return the mean Spearman correlation of values (m,) with their draws (b, m)."""
    x = stats.rankdata(value)
    y = stats.rankdata(drawn, axis=1)
    x, y = x - x.mean(), y - y.mean(axis=1, keepdims=True)
    size = np.sqrt(np.square(x).sum() * np.square(y).sum(axis=1))
    return float(np.mean((y @ x)[size > 0] / size[size > 0])) if (size > 0).any() else None


def _neutral(weights: ItemWeights, welfare: WelfareAudit) -> dict[str, Any]:
    """Return the row of the neutral point, which moves all items alike and so only the verdict."""
    n = welfare.items.drop_nulls(WELFARE).height
    row: dict[str, Any] = {"choice": "another neutral point, from 1 to 5", "basis": "recomputed", "n_items": n}
    row |= {"spearman_auto": 1.0, "spearman_aug": 1.0, "quadrant_moved": 0.0}
    turning = weights.break_even[IN_FORCE]
    if not np.isfinite(turning.point):
        return row
    if not 1 <= turning.point <= 5:
        return row | {"verdict_changes": 0.0, "verdict": "the same from 1 to 5"}
    low, high = turning.interval
    interval = f", interval {low:.2f} to {high:.2f}" if np.isfinite(low) else ""
    return row | {"verdict_changes": 1.0, "verdict": f"turns at {turning.point:.2f}{interval}"}


def _alternatives(table: pl.DataFrame) -> Iterator[dict[str, Any]]:
    """Yield a row for each alternative behind the values of activities."""
    for (name,), part in table.group_by("alternative", maintain_order=True):
        row: dict[str, Any] = {"choice": WORDS.get(str(name), str(name)), "basis": "activities folder"}
        for framing, items, of_items, of_activities in part.select(
            "framing", "n_items", "item_spearman", "spearman"
        ).iter_rows():
            if framing is not None:
                row |= {"n_items": items, f"spearman_{framing}": of_items, f"activities_{framing}": of_activities}
        if len(row) > 2:
            yield row


def alternative_notes(table: pl.DataFrame) -> tuple[str, ...]:
    """Return what a reader should know of the rows that a folder of activity values has."""
    notes = [
        f"{WORDS.get(name, name)}: {why}."
        for name, why in table.drop_nulls("why").select("alternative", "why").iter_rows()
    ]
    items = table["n_items"].drop_nulls()
    if items.len():
        notes.append(
            "What would change the ranking: rows of the activities folder follow the lists that `benchwright "
            f"activities` was given ({count(int(items[0]), 'item')}, five ranks weighed 1/k), not those of this audit."
        )
    else:
        notes.append(
            "What would change the ranking: rows of the activities folder compare values of activities; with "
            "--loadings, `benchwright activities` follows them into items."
        )
    return tuple(notes)
