"""What a report opens with: findings in plain sentences, with numbers and intervals, no stronger than the evidence.

A title states only what its own numbers show. To add a finding, yield it from the function of its section.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import isfinite
from typing import Any

import polars as pl

from benchwright._words import count, dollars, p_value, percent
from benchwright.auditing.contrast import Contrast
from benchwright.auditing.results import FamilyContrast, ImprovabilityAudit, NoiseAudit, WelfareAudit
from benchwright.estimating.estimates import PanelEstimates
from benchwright.game_answers.inputs import GameResult
from benchwright.report import findings_panel as panel
from benchwright.report.contents import AuditReport
from benchwright.report.findings_game import of_game
from benchwright.report.findings_weights import of_board, of_weights
from benchwright.report.findings_welfare import of_baseline, of_evidence

FAR_APART = 10.0


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding: the section it belongs to, a short title, and a few sentences."""

    section: panel.Section
    title: str
    text: str


def findings(report: AuditReport) -> tuple[Finding, ...]:
    """Return the findings that this report supports, most consequential first."""
    found = [Finding(*row) for row in (*of_baseline(report), *of_weights(report))]
    found += [Finding(*row) for row in (*panel.of_models(report), *of_board(report))]
    audit = report.audit
    if audit.welfare is not None:
        found += _welfare(audit.welfare, report.config.welfare.quadrant_threshold)
        found += [Finding(*row) for row in of_evidence(report)]
    if audit.improvability is not None:
        found += _improvability(audit.improvability)
    if audit.noise is not None:
        found += _noise(audit.noise, report.estimates)
    found += [Finding(*row) for row in panel.of_items(report)]
    if report.game is not None:
        found += game_findings(report.game)
    return tuple(found)


def game_findings(game: GameResult) -> tuple[Finding, ...]:
    """Return the findings of a ranking game, most consequential first."""
    return tuple(Finding(*row) for row in of_game(game))


def _welfare(welfare: WelfareAudit, threshold: float) -> Iterator[Finding]:
    if welfare.contrast is not None:
        yield _family_gap(welfare.contrast)
        yield _frontier(welfare.contrast)
    if welfare.quadrants.height:
        at = welfare.quadrants.filter(pl.col("threshold") == threshold)
        share = {(unit, name): value for unit, name, value in at.select("unit", "quadrant", "share").iter_rows()}
        total = dict(at.select("unit", "total").unique().iter_rows())
        high, low = (
            ("work that people want both automated and helped with", "work that they want neither way")
            if welfare.says_workers
            else ("activities that are valued high under both framings", "activities valued low under both")
        )
        slots = "; ".join(
            f"asked as {unit.removesuffix(' slots')}, {percent(share[unit, 'green'])} of {total[unit]:,} activity "
            f"slots go to {high}, {percent(share[unit, 'red'])} to {low}"
            for unit in ("automation slots", "augmentation slots")
        )
        one = (share["items", "automate"] or 0.0) + (share["items", "augment"] or 0.0)
        yield Finding(
            "welfare",
            "What work the items stand for",
            f"At threshold {threshold:g}: {slots}. Of {count(total['items'], 'item')}, "
            f"{percent(share['items', 'green'])} reach it on both counts, {percent(one)} on one and "
            f"{percent(share['items', 'red'])} on neither.",
        )


def _family_gap(contrast: FamilyContrast) -> Finding:
    return Finding(
        "welfare",
        f"Items of family {contrast.first} against {contrast.second}",
        f"On the scale from 1 to 5, {contrast.second} items are worth {_gap(contrast.w_aug, 'if models help')}, and "
        f"{_gap(contrast.w_auto, 'if models take over')}. Whole tasks are resampled; p is two-sided.",
    )


def _gap(contrast: Contrast, framing: str) -> str:
    low, high = contrast.interval
    size = f"{abs(contrast.difference):.2f} {'more' if contrast.difference >= 0 else 'less'}"
    p = p_value(contrast.permutation_p, contrast.replicates)
    if not isfinite(low):
        return f"{size} {framing} (no interval, a family has one task; {p})"
    text = f"{size} {framing} ({percent(contrast.level, 0)} interval {low:.2f} to {high:.2f}; {p}"
    outside = low > 0 or high < 0
    if outside and contrast.permutation_p > 1 - contrast.level:
        text += "; interval and test disagree: not settled"
    elif not outside:
        text += "; not distinguishable from none"
    return text + ")"


def _frontier(contrast: FamilyContrast) -> Finding:
    frontier, first, second = contrast.frontier, contrast.first, contrast.second
    parts = []
    for name, side in (("if models take over", contrast.w_auto), ("if they help", contrast.w_aug)):
        if side.dominance.holds_in_sample:
            parts.append(f"{name}, {second} items are at no level behind")
        else:
            p = p_value(side.dominance.violation_p, side.replicates)
            parts.append(
                f"{name}, {second} items fall behind by {percent(side.dominance.violation)} of items somewhere ({p} "
                "for being behind nowhere)"
            )
    return Finding(
        "welfare",
        "Who is on the frontier",
        f"{frontier.size} of {count(frontier.n_items, 'item')} lie on the Pareto frontier, "
        f"{frontier.first_on_frontier or 'none'} of them {first}. Matched or beaten on both counts, and beaten on "
        f"one: {percent(frontier.first_dominated)} of {first} items by some {second} item, and "
        f"{percent(frontier.second_dominated)} of {second} items by some {first} item. Level by level: "
        f"{'; '.join(parts)}.",
    )


def _improvability(improvability: ImprovabilityAudit) -> Iterator[Finding]:
    axes = improvability.by_axis.sort("share_cheapest", descending=True)
    parts = [
        f"{axis} for {percent(share)} of items (median {dollars(median)})"
        for axis, share, median in axes.select("axis", "share_cheapest", "median_usd_per_unit").iter_rows()
        if share
    ]
    if not parts:
        return
    centre = improvability.quantiles.filter(pl.col("offset") == 0)
    at = {row["quantile"]: row for row in centre.iter_rows(named=True)}
    low, high = at[0.01], at[0.99]
    apart = high["value"] / low["value"]
    text = f"The cheapest way to lift an item's score is {', '.join(parts)}; dollars are for a full unit of score."
    title = "What a unit of score costs"
    if apart >= FAR_APART:
        title = "Some items are far cheaper to inflate than others"
        text += (
            f" The item at the 1st percentile costs {_priced(low)}, the one at the 99th {_priced(high)}: a plain "
            "average pays the same for both."
        )
    text += " Slopes are estimates, and the cheapest of several noisy ones comes out too cheap."
    yield Finding("improvability", title, text)


def _priced(row: dict[str, float | None]) -> str:
    rank = (
        ""
        if row["rank_lo"] is None
        else f" (rank {row['position']:,}, interval {row['rank_lo']:,} to {row['rank_hi']:,})"
    )
    return f"{dollars(row['value'])}{rank}"


def _noise(noise: NoiseAudit, estimates: PanelEstimates | None) -> Iterator[Finding]:
    table = noise.by_family.drop_nulls("median_z").sort("median_z", descending=True)
    if table.height == 0:
        if estimates is not None:
            yield from (Finding(*row) for row in panel.of_noise(noise, estimates))
        return
    of_trials = estimates is not None and estimates.noise is not None and estimates.noise.source == "trials"
    noun = "item" if estimates is None else panel.noun(estimates)
    top, low = table.row(0, named=True), table.row(-1, named=True)
    text = f"Next to a coin flip at the same score (Z = 1), {top['family']} has a median Z of {_median_z(top, noun)}"
    if table.height > 1:
        text += f", the most of {table.height} families; {low['family']} the least, {_median_z(low, noun)}"
    text += "."
    if of_trials:
        text += (
            " This is the luck of sampling an answer, not of training. An answer that is right or wrong is a coin flip "
            "at its own model's score: Z is near 1 where models agree and falls below as they differ."
        )
    elif noise.share_below_reference > 0:
        text += (
            f" {percent(noise.share_below_reference, 0)} of all eligible {noun}s lie below the paper's reference line "
            f"{noise.reference_z:.3f}, which is therefore no lower bound."
        )
    if top["median_ratio"] is not None and top["median_ratio"] <= 1:
        text += (
            f" Where models are right on {top['family']}, the best wrong answer's log-likelihood per character is "
            f"within {percent(1 - top['median_ratio'])} of the right one's (median)."
        )
    what = "luck of one answer" if of_trials else "training seed"
    yield Finding("noise", f"How much of a score is the {what}", text)


def _median_z(row: dict[str, Any], noun: str) -> str:
    interval = "" if row["z_lo"] is None else f", interval {row['z_lo']:.2f} to {row['z_hi']:.2f}"
    return f"{row['median_z']:.2f} ({count(row['n'], noun)}{interval})"
