"""Findings on common tuning: the threshold, the effort that overtaking takes, the designer's bill, the safe gap."""

from __future__ import annotations

from math import isfinite, isinf, isnan

from benchwright._words import percent
from benchwright.ranking_game.safe_gap import SafeGap
from benchwright.ranking_game.threshold import Threshold
from benchwright.ranking_game.threshold_draws import ThresholdDraws
from benchwright.ranking_game.tuning import DesignerCost, RequiredEffort
from benchwright.report.findings_panel import Row
from benchwright.report.game_words import Developers, number, plain, span

SPANS_NAMED = 3
LEVELS_NAMED = 6
CAUTION = (
    "Shares of draws are no confidence interval: noise moves thresholds up, and where a curve was taken for flat, "
    "no rise seen does not mean that it cannot rise."
)
SETTLED = {  # status -> those of draws that say the same of the threshold
    "stable_everywhere": ("stable_everywhere",),
    "found": ("found", "stable_everywhere"),
    "none_proved": ("none_proved",),
    "none_up_to_max": ("none_up_to_max", "none_proved"),
}


def of_threshold(found: Threshold, draws: ThresholdDraws | None, measured: float, say: Developers) -> Row:
    """Say how much common tuning stops gaming, and how sure that is; ``measured`` is the largest effort measured."""
    title, text = _of_fit(found, say)
    if found.delta_max > measured:
        text += f" Levels above {number(measured)}, the largest effort measured, rest on the law of the curves."
    if draws is None:
        return "game", title, text
    low, high = draws.interval
    often = percent(draws.upper_share)
    ends = [f"none up to {number(draws.delta_max)}" if isinf(end) else number(float(end)) for end in (low, high)]
    same = sum(draws.shares.get(status, 0.0) for status in SETTLED.get(found.status, ()))
    if same < draws.level:
        title = "How much common tuning stops it is not settled"
    elif found.status == "found" and isfinite(high):
        title = f"Common tuning of {number(found.delta)} stops it (at most {ends[1]} in {often} of draws)"
    best = int(draws.stable.argmax())
    none = draws.shares.get("none_up_to_max", 0.0) + draws.shares.get("none_proved", 0.0)
    drawn = f"In {often} of {draws.draws:,} draws the threshold is at most {ends[1]}"
    if isinf(high):
        drawn = f"In the middle {percent(draws.level)} of {draws.draws:,} draws the threshold is {ends[0]} to {ends[1]}"
    if isinf(low):
        drawn = f"Of {draws.draws:,} draws {percent(none)} have no threshold up to {number(draws.delta_max)}"
    elif none > 0:
        drawn += f"; {percent(none)} have none"
    undecided = draws.shares.get("undecided", 0.0)
    drawn += f"; in {percent(undecided)} it is not decided" if undecided > 0 else ""
    often_stable = float(draws.stable[best])
    surest = f"Surest is level {number(float(draws.deltas[best]))}, stable in {percent(often_stable)} of draws."
    surest = surest if often_stable > 0 else "No level is stable in any draw."
    return "game", title, f"{text} {drawn}. {surest} {CAUTION}"


def _of_fit(found: Threshold, say: Developers) -> tuple[str, str]:
    """Say what the game's own curves give: title and text."""
    top, status = number(found.delta_max), found.status
    who, over = ("", "") if found.binding_pair is None else (say.names[i] for i in found.binding_pair)
    pays = f"{who} overtakes {over} with profit"
    spans = [f"{number(low)} to {number(high)}" for low, high in found.stable_intervals]
    shown = ", ".join(spans[:SPANS_NAMED])
    shown += f" and {len(spans) - SPANS_NAMED} more" if len(spans) > SPANS_NAMED else ""
    crossed = (
        " At some levels scores do not follow capability; those are not counted as stable."
        if found.crossed_intervals
        else ""
    )
    if status == "stable_everywhere":
        text = f"All levels of common tuning from 0 to {top}, the largest searched, are stable."
        return "Gaming does not pay at any level searched", text + crossed
    if status == "found":
        text = f"From {number(found.delta)} to {top}, the largest level searched, no jump pays; just below, {pays}."
        text += f" Stable levels: {shown}." if len(spans) > 1 else ""
        return f"Common tuning of {number(found.delta)} stops it", text + crossed
    if status == "none_proved":
        text = f"Tuning moves all developers alike here: {pays} at every level."
        return "No common tuning stops it, however much", text
    if status == "none_up_to_max":
        text = f"At {top}, the largest level searched, {pays}; larger levels were not looked at."
        text += f" Stable in between: {shown}." if spans else " No level is stable."
        return f"Common tuning up to {top} does not stop it for good", text + crossed
    return "How much common tuning stops it is not decided", f"{plain(found.reason)}.{crossed}"


def of_designer(bill: DesignerCost, say: Developers) -> Row:
    """Say what tuning all models takes beside the cheapest overtake."""
    n, takes = bill.game.n, number(bill.game.n * bill.delta)
    told = "; no price is given" if isnan(bill.bill) else f", which costs {number(bill.bill)}"
    before, after = (say.jump(jump) for jump in (bill.untuned, bill.tuned))
    text = (
        f"Tuning {n} models by {number(bill.delta)} takes an effort of {takes} in all{told}. The cheapest overtake "
        f"without tuning, {before}; after it, {after}."
    )
    title = f"Common tuning takes the designer an effort of {takes}"
    if not isnan(bill.bill):
        title = f"Common tuning costs the designer {number(bill.bill)}"
    return "game", title, text


def of_safe_gap(found: SafeGap, say: Developers) -> Row:
    """Say how much a rank may be worth before gaming pays, whatever the rewards in force."""
    at = f"at tune-before-test level {number(found.game.tune_before_test)}"
    if isnan(found.gap):
        return (
            "game",
            "How much a rank may be worth is not decided",
            f"{plain(found.reason)[0].upper()}{plain(found.reason)[1:]}.",
        )
    if isinf(found.gap) or found.developer is None or found.over is None:
        return "game", "No reward makes overtaking pay", f"Nobody can be overtaken {at}, however much a rank is worth."
    ranks = f"{found.ranks} rank{'s' if found.ranks > 1 else ''}"
    text = (
        f"Were every rank worth the same more than the next, gaming would not pay {at} up to {number(found.gap)} a "
        f"rank, and would above. The pair that sets it, {say.pair(found.developer, found.over)}, gains {ranks} for "
        f"{number(found.cost)}."
    )
    return "game", f"Safe reward: up to {number(found.gap)} a rank", text


def of_required_effort(found: RequiredEffort, say: Developers) -> Row:
    """Say how the least effort that overtakes a neighbour grows with tuning."""
    each = []
    for k, delta in enumerate(found.deltas[:LEVELS_NAMED]):
        effort, ends = float(found.effort[k]), found.band[k]
        told = "out of reach" if isinf(effort) else "not known" if isnan(effort) else number(effort)
        band = f" ({span(float(ends[0]), float(ends[1]))})" if found.draws else ""
        each.append(f"{told} at {number(float(delta))}{band}")
    more = f" and {found.deltas.size - LEVELS_NAMED} more levels" if found.deltas.size > LEVELS_NAMED else ""
    text = f"The least effort that overtakes a neighbour is {'; '.join(each)}{more}."
    low, high = map(float, found.growth_band)
    if found.draws:
        text += (
            f" In brackets {percent(found.level, 0)} intervals of the least effort in truth, whichever pair attains "
            f"it, from {found.draws:,} draws."
        )
        text += f" In draws the power is {span(low, high)}." if isfinite(low) and isfinite(found.growth) else ""
    if not isfinite(found.growth):
        return "game", "What overtaking takes, by level of common tuning", text
    law = f"like (1 + tuning) to the power {found.growth:.2g}"
    if low <= 0 <= high:
        return "game", "Whether tuning makes overtaking dearer is not settled", f"{text} As fitted it goes {law}."
    return "game", f"Overtaking effort {'grows' if found.growth > 0 else 'falls'} {law}", text
