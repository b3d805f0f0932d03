"""Findings of the aggregation game; :mod:`benchwright.report.findings` says what holds for all of them."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite

import polars as pl

from benchwright._words import SCHEME_NAMES, count, dollars, percent
from benchwright.mechanism.break_even import BreakEven
from benchwright.mechanism.item_weights import IN_FORCE, ItemWeights
from benchwright.report.contents import AuditReport
from benchwright.report.findings_panel import Row

AS_GOOD = 0.99


def of_weights(report: AuditReport) -> Iterator[Row]:
    """Yield what the weights say; nothing where the source supports none."""
    weights, neutral = report.weights, report.config.welfare.neutral
    if weights is None:
        return
    n = count(weights.items.height, "item")
    uniform = weights.schemes["uniform"]
    if not isfinite(uniform.efficiency):
        text = f"On these {n} no effort axis moves welfare, so no weights can help."
        yield "weights", "No incentive has value", text
        return
    turning = weights.break_even[IN_FORCE]
    settled = turning.settles(neutral)
    if uniform.lowers_welfare:
        title = "The plain average points the wrong way"
        text = (
            f"On the {n} with welfare, cost and noise, rewarding the plain average lowers welfare at any strength: "
            "the effort it calls for lifts harmful items, or lowers valued ones, by more than it helps."
        )
    else:
        r = weights.optimum.risk_aversion
        others = weights.tabulated
        kept = "; ".join(
            f"{percent(float(value))} at r = {level:g}"
            for level, value in zip(others.risk_aversions, others.efficiency["uniform"], strict=True)
            if level != r
        )
        title = "The plain average is about as good as any weights"
        if uniform.efficiency < AS_GOOD:
            title = f"The plain average keeps {percent(uniform.efficiency, 0)} of what the best weights would bring"
        text = (
            f"On the {n} with welfare, cost and noise, the plain average keeps {percent(uniform.efficiency)} of what "
            f"the best weights would bring at r = {r:g}, the developer's risk aversion in force"
            f"{f' ({kept})' if kept else ''}."
        )
    if not settled and uniform.alignment != 0:
        title = "Whether the plain average helps is not settled"
    yield "weights", title, f"{text} {_turning(turning, neutral, settled)}"
    yield from _other_schemes(weights)
    yield from _optimum(weights)


def _turning(turning: BreakEven, neutral: float, settled: bool) -> str:
    if not isfinite(turning.point):
        return "It moves no item on balance, so no neutral point turns it."
    text = f"It helps where the neutral point of welfare lies below {turning.point:.2f}"
    low, high = turning.interval
    if not isfinite(low):
        return f"{text} (in force: {neutral:g}); with one task there is no interval."
    text += f" ({percent(turning.level, 0)} interval {low:.2f} to {high:.2f}, tasks resampled; in force: {neutral:g})"
    return f"{text}." if settled else f"{text}: another sample of tasks could turn the sign."


def _other_schemes(weights: ItemWeights) -> Iterator[Row]:
    """Schemes that point the other way than the plain average, and always the user's own."""
    sign = weights.schemes["uniform"].alignment
    parts = []
    for name, scheme in weights.schemes.items():
        if name == "uniform" or (scheme.alignment == sign and name != "user"):
            continue
        if scheme.lowers_welfare:
            parts.append(f"rewarding {SCHEME_NAMES[name]} lowers welfare")
        else:
            parts.append(f"{SCHEME_NAMES[name]} would keep {percent(scheme.efficiency)}")
    if parts:
        text = f"On the same items, {', and '.join(parts)}. How tasks are weighted is part of the choice."
        yield "weights", "Other simple schemes do not all agree", text


def _optimum(weights: ItemWeights) -> Iterator[Row]:
    optimum, items = weights.optimum, weights.items
    effort = dict(zip(weights.axes, optimum.effort, strict=True))
    unwanted = [weights.axes[axis] for axis in optimum.negative_effort_axes]
    if unwanted:
        spent = ", ".join(f"{axis} {dollars(float(effort[axis]))}" for axis in unwanted)
        text = (
            f"The optimum asks for less effort than none ({spent}): it would have developers un-train, which none "
            "can do. What simple schemes keep is measured against an ideal out of reach."
        )
        yield "weights", "The best weights are no program that a developer can follow", text
    if optimum.undetermined:
        many = count(len(optimum.undetermined), "weight")
        text = (
            f"{many} of {items.height} are fixed only in combination: noise there is absent or too small to count, at "
            f"r = {optimum.risk_aversion:g} and this budget. The smallest-norm choice is written."
        )
        yield "weights", "Some weights are not determined", text
        return
    negative = items.filter(optimum.negative)
    if negative.height:
        hedges = negative.filter(pl.col("welfare") > 0).height
        text = (
            f"{negative.height} of {items.height} items carry a negative weight, so a model that solves one loses "
            f"score. Of these {negative.height - hedges} count as worth less than the neutral point, and {hedges} as "
            "worth more: hedges. A board that cannot publish such weights needs constrained ones."
        )
        if optimum.weights.sum() <= 0:
            text += " The weights sum to a negative number: weights.csv is no score to publish as it stands."
        yield "weights", "The best weights are not all positive", text
