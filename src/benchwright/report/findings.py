"""What a report opens with: findings in plain sentences, with numbers, and no stronger than the evidence."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl

from benchwright.auditing.contrast import Contrast
from benchwright.auditing.results import FamilyContrast, ImprovabilityAudit, NoiseAudit, WelfareAudit
from benchwright.mechanism.item_weights import ItemWeights
from benchwright.report.contents import AuditReport
from benchwright.report.words import count, dollars, p_value, percent

NEAR_BREAK_EVEN = 0.25
AS_GOOD = 0.99


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding: the section it belongs to, a short title, and one to three sentences."""

    section: Literal["welfare", "improvability", "noise", "weights"]
    title: str
    text: str


def findings(report: AuditReport) -> tuple[Finding, ...]:
    """Return the findings that this report supports, most consequential first."""
    found: list[Finding] = []
    if report.weights is not None:
        found += _weights(report.weights, report.config.welfare.neutral)
    audit = report.audit
    if audit.welfare is not None:
        found += _welfare(audit.welfare, report.config.welfare.quadrant_threshold)
    if audit.improvability is not None:
        found += _improvability(audit.improvability)
    if audit.noise is not None:
        found += _noise(audit.noise)
    return tuple(found)


def _weights(weights: ItemWeights, neutral: float) -> Iterator[Finding]:
    n = count(weights.items.height, "item")
    uniform = weights.schemes["uniform"]
    moves = [f"{point:.2f} under {framing}" for framing, point in weights.break_even.items() if np.isfinite(point)]
    flips = f"The sign turns at a neutral point of {' and '.join(moves)}" if moves else ""
    near = min((abs(point - neutral) for point in weights.break_even.values()), default=np.inf)
    caution = " — close to the one in force, so this rests on that choice." if near < NEAR_BREAK_EVEN else "."
    flips = f" {flips} (in force: {neutral:g}){caution}" if flips else ""
    if np.isnan(uniform.efficiency):
        yield Finding(
            "weights",
            "No incentive has value",
            f"On these {n} no effort axis moves welfare, so no weights can help.",
        )
        return
    if uniform.lowers_welfare:
        yield Finding(
            "weights",
            "The plain average points the wrong way",
            f"On the {n} with welfare, cost and noise, rewarding the plain average lowers welfare at any "
            f"strength: effort goes where items' welfare is below the neutral point.{flips}",
        )
    else:
        table = weights.tabulated
        kept = ", ".join(
            f"{percent(float(e))} at r = {r:g}"
            for r, e in zip(table.risk_aversions, table.efficiency["uniform"], strict=True)
        )
        good = min(float(e) for e in table.efficiency["uniform"]) >= AS_GOOD
        title = "The plain average is about as good as any weights" if good else "What the plain average keeps"
        yield Finding(
            "weights",
            title,
            f"On the {n} with welfare, cost and noise, the plain average keeps {kept} of what the best weights "
            f"would bring (r: how much developers fear noise).{flips}",
        )
    optimum = weights.optimum
    text = (
        f"{percent(optimum.negative_share)} of the optimal weights are negative: they hedge, and a model that "
        "solves such an item loses score. A board that cannot publish negative weights needs constrained ones."
    )
    if optimum.undetermined:
        text += f" {count(len(optimum.undetermined), 'weight')} cannot be determined from the data."
    if optimum.negative_share > 0 or optimum.undetermined:
        yield Finding("weights", "The best weights are not all positive", text)


def _welfare(welfare: WelfareAudit, threshold: float) -> Iterator[Finding]:
    if welfare.contrast is not None:
        yield _family_gap(welfare.contrast)
        yield _frontier(welfare.contrast)
    if welfare.quadrants.height:
        at = welfare.quadrants.filter(pl.col("threshold") == threshold)
        share = {(unit, name): value for unit, name, value in at.select("unit", "quadrant", "share").iter_rows()}
        total = dict(at.select("unit", "total").unique().iter_rows())
        slots = "; ".join(
            f"asked as {unit.removesuffix(' slots')}, {percent(share[unit, 'green'])} of {total[unit]:,} activity "
            f"slots are work that people want both automated and helped with, {percent(share[unit, 'red'])} work "
            "that they want neither way"
            for unit in ("automation slots", "augmentation slots")
        )
        little = share["items", "green"] < share["items", "red"]
        yield Finding(
            "welfare",
            f"{'Little' if little else 'Much'} of the benchmark stands for work that people want touched",
            f"At threshold {threshold:g}: {slots}. Counted by items, {percent(share['items', 'green'])} of "
            f"{total['items']:,} pass on both counts and {percent(share['items', 'red'])} on neither.",
        )


def _family_gap(contrast: FamilyContrast) -> Finding:
    parts = [
        _gap(contrast.w_aug, "if models help"),
        _gap(contrast.w_auto, "if models take over"),
    ]
    return Finding(
        "welfare",
        f"Items of family {contrast.first} against {contrast.second}",
        f"On the scale from 1 to 5, {contrast.second} items are worth {parts[0]}, and {parts[1]}. Intervals and "
        "p-values resample whole tasks; p is two-sided.",
    )


def _gap(contrast: Contrast, framing: str) -> str:
    low, high = contrast.interval
    size = f"{abs(contrast.difference):.2f} {'more' if contrast.difference >= 0 else 'less'}"
    if not np.isfinite(low):
        return f"{size} {framing} (no interval: a family has one task)"
    interval = f"{percent(contrast.level, 0)} interval {low:.2f} to {high:.2f}"
    p = contrast.permutation_p
    text = f"{size} {framing} ({interval}; {p_value(p, contrast.replicates)}"
    outside = low > 0 or high < 0
    if outside and p > 1 - contrast.level:
        text += "; interval and test disagree: not settled"
    elif not outside:
        text += "; not distinguishable from none"
    return text + ")"


def _frontier(contrast: FamilyContrast) -> Finding:
    frontier, first, second = contrast.frontier, contrast.first, contrast.second
    sides = (contrast.w_auto.dominance, contrast.w_aug.dominance)
    if all(side.holds_in_sample for side in sides):
        tail = f"In the sample, {second} items lead at every welfare level on both counts."
    else:
        behind = percent(max(side.violation for side in sides))
        tail = (
            f"But {second} items do not lead at every welfare level: somewhere their distribution falls behind "
            f"by {behind} of items."
        )
    return Finding(
        "welfare",
        "Who is on the frontier",
        f"{frontier.size} of {count(frontier.n_items, 'item')} lie on the Pareto frontier, "
        f"{frontier.first_on_frontier or 'none'} of them {first}. {percent(frontier.first_dominated)} of {first} "
        f"items are beaten on both counts by some {second} item, and {percent(frontier.second_dominated)} of "
        f"{second} items by some {first} item. {tail}",
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
    ends = dict(centre.select("quantile", "value").iter_rows())
    text = (
        f"The cheapest way to lift an item's score is {', '.join(parts)}; dollars are for a full unit of score, "
        f"a tenth of that buys 0.10. From the cheapest 1 % to the dearest 1 % prices run from "
        f"{dollars(ends[0.01])} to {dollars(ends[0.99])}: a plain average pays the same for both."
    )
    yield Finding("improvability", "Some items are far cheaper to inflate than others", text)


def _noise(noise: NoiseAudit) -> Iterator[Finding]:
    table = noise.by_family.drop_nulls("median_z").sort("median_z", descending=True)
    if table.height == 0:
        return
    top, low = table.row(0, named=True), table.row(-1, named=True)
    text = (
        f"Relative to a coin flip at the same score, {top['family']} moves most between training seeds "
        f"(median Z {top['median_z']:.2f}, {count(top['n'], 'item')})"
    )
    if table.height > 1:
        text += f", {low['family']} least ({low['median_z']:.2f}, {count(low['n'], 'item')})"
    below = percent(noise.share_below_reference, 0)
    text += (
        f". {below} of all eligible items lie below the reference line {noise.reference_z:.3f}, which is "
        "therefore no lower bound."
    )
    if top["median_ratio"] is not None:
        text += (
            f" On {top['family']} items that models get right the best wrong answer comes within "
            f"{percent(abs(1 - top['median_ratio']))} of the right one."
        )
    yield Finding("noise", "Where the noise is", text)
