"""Findings of the aggregation game; :mod:`benchwright.report.findings` says what holds for all of them."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite

import polars as pl

from benchwright._words import SCHEME_NAMES, count, dollars, percent
from benchwright.choices import PublishedChoices
from benchwright.mechanism.break_even import BreakEven
from benchwright.mechanism.item_weights import AVERAGED, IN_FORCE, ItemWeights
from benchwright.mechanism.published import PUBLISHED
from benchwright.mechanism.uncertainty import AS_GOOD as STILL_AS_GOOD
from benchwright.mechanism.uncertainty import UNSETTLED, SchemeUncertainty, WeightUncertainty
from benchwright.report.contents import AuditReport
from benchwright.report.findings_panel import LONGEST_NAME, NAMED, Row, names_of
from benchwright.report.tables_panel import plain_names
from benchwright.report.tables_weights import CONSTRAINTS

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
    drawn = None if weights.uncertainty is None else weights.uncertainty.scheme("uniform")
    settled = turning.settles(neutral) and (drawn is None or drawn.sign != UNSETTLED)
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
        if uniform.efficiency < AS_GOOD or (drawn is not None and drawn.standing != STILL_AS_GOOD):
            title = f"The plain average keeps {percent(uniform.efficiency, 0)} of what the best weights would bring"
        text = (
            f"On the {n} with welfare, cost and noise, the plain average keeps {percent(uniform.efficiency)} of what "
            f"the best weights would bring at r = {r:g}, the developer's risk aversion in force"
            f"{f' ({kept})' if kept else ''}."
        )
    if not settled and uniform.alignment != 0:
        title = "Whether the plain average helps is not settled"
    sure = "" if drawn is None or weights.uncertainty is None else f" {_drawn(drawn, weights.uncertainty)}"
    yield "weights", title, f"{text}{sure} {_turning(turning, neutral, settled=turning.settles(neutral))}"
    yield from _other_schemes(weights)
    yield _published(weights, report.config.published)
    if weights.by_task.height > 1 and weights.by_task["lo"].count():
        yield _tasks(weights)
    yield _valued(weights)
    yield from _optimum(weights)


def _drawn(scheme: SchemeUncertainty, uncertainty: WeightUncertainty) -> str:
    """Say how often a scheme helps over the draws, and what it keeps of the best weights of each."""
    text = (
        f"Over {count(uncertainty.replicates, 'draw')} of what this rests on it helps in {percent(scheme.aligned)} "
        f"and keeps {percent(scheme.efficiency_lo)} to {percent(scheme.efficiency_hi)} of the best weights of a draw "
        f"({percent(uncertainty.level, 0)} interval)"
    )
    if scheme.standing == STILL_AS_GOOD:
        return f"{text}: as good as the weights found here, which were found for one estimate."
    return f"{text}; in {percent(scheme.as_good)} it helps and is as good as the weights found here."


def _published(weights: ItemWeights, chosen: PublishedChoices) -> Row:
    """What a board can publish keeps, what each constraint costs, and how far the weights can be trusted."""
    best, m = weights.published, weights.items.height
    if not best.weights.any():
        text = "Every score that a board could publish under the constraints in force lowers welfare if rewarded."
        return "weights", "No weights that a board can publish help", text
    costs = [
        f"{CONSTRAINTS[name]}, {percent(price / best.best_surplus)}"
        for name, price in weights.prices.items()
        if price > 0 and best.best_surplus > 0
    ]
    idle = int((best.weights == 0).sum())
    text = f"Under the constraints of a board, {idle:,} of {count(m, 'item')} carry no weight."
    text += f" What each costs of the best surplus, if it alone were dropped: {'; '.join(costs)}." if costs else ""
    if best.gap_bound > 0:
        text += f" Other choices of items could add {percent(best.gap_bound / best.best_surplus)} at most."
    if weights.uncertainty is not None:
        spread = weights.uncertainty.spreads[PUBLISHED]
        level = percent(weights.uncertainty.level, 0)
        sure = int((spread.kept >= weights.uncertainty.level).sum())
        text += (
            f" {count(sure, 'item')} {'carries' if sure == 1 else 'carry'} one in at least {level} of the draws; of "
            f"the {spread.top} heaviest, {percent(spread.top_overlap, 0)} are so in a draw as well."
        )
        if spread.idle > 0:
            text += f" In {percent(spread.idle)} of the draws no such score helps."
        judged = weights.uncertainty.scheme(PUBLISHED)
        text += (
            f" These weights, found for one estimate, help in {percent(judged.aligned)} of the draws and keep "
            f"{percent(judged.efficiency_lo)} to {percent(judged.efficiency_hi)} of the best weights of each."
        )
        if AVERAGED in weights.schemes:
            other = weights.uncertainty.scheme(AVERAGED)
            text += (
                " Weights chosen to be best on average over draws (averaged_scheme.json) help in "
                f"{percent(other.aligned)} of other draws and keep {percent(other.efficiency_lo)} to "
                f"{percent(other.efficiency_hi)}."
            )
    kind = "non-negative weights keep" if chosen.non_negative else "constrained weights keep"
    return "weights", f"What a board can publish: {kind} {percent(best.efficiency)} of the best surplus", text


def _tasks(weights: ItemWeights) -> Row:
    """Which tasks carry more, and less, than under the plain average, where each has one weight."""
    if weights.by_task["share"].null_count():
        text = "If rewarded, every score with one weight a task, none below 0, lowers welfare."
        return "weights", "No score with one weight a task helps", text
    table = weights.by_task.with_columns(times=pl.col("share") / pl.col("uniform_share"))
    up = table.filter(pl.col("lo") > pl.col("uniform_share")).sort("times", descending=True)
    down = table.filter(pl.col("hi") < pl.col("uniform_share")).sort("times")
    kept = percent(table["efficiency"][0])
    if up.height + down.height == 0:
        text = (
            f"With one weight a task, which keeps {kept} of the best surplus, the interval of every task's weight "
            f"takes in its share under the plain average: for none of {count(table.height, 'task')} is it settled that "
            "it should carry more or less."
        )
        return "weights", "No task is settled to deserve another weight", text
    parts = [
        f"{words} for {count(frame.height, 'task')}: {_named(frame)}"
        for words, frame in (("more", up), ("less", down))
        if frame.height
    ]
    text = (
        f"With one weight a task, which keeps {kept} of the best surplus, the interval of a task's weight lies apart "
        f"from its share under the plain average: {'; '.join(parts)}."
    )
    words = [f"{word} weight for {count(n, 'task')}" for word, n in (("more", up.height), ("less", down.height)) if n]
    return "weights", f"Settled with one weight a task: {' and '.join(words)}", text


def _named(tasks: pl.DataFrame) -> str:
    shown = tasks.head(NAMED)
    named = ", ".join(
        f"{name} ({times:.2g} x)"
        for name, times in zip(plain_names(shown["name"].to_list(), LONGEST_NAME), shown["times"], strict=True)
    )
    return named + (f" and {tasks.height - NAMED} more" if tasks.height > NAMED else "")


def _valued(weights: ItemWeights) -> Row:
    """Which items are heavy, or light, however items are valued."""
    path, m = weights.path, weights.items.height
    heavy, light = path.standing.count("heavy"), path.standing.count("light")
    others = [name for name, t in zip(path.points, path.mixture, strict=True) if not isfinite(t)]
    beside = f" and under {', '.join(others)}" if others else ""
    helped, points = int(path.helped.sum()), len(path.points)
    every = "under every value of items" if helped == points else f"at all {helped} of {points} values where some help"
    text = (
        f"From {path.first} to {path.second}{beside}, {heavy:,} of {count(m, 'item')} weigh more than uniform {every}, "
        f"{light:,} less, and {m - heavy - light:,} depend on what items are valued for."
    )
    return "weights", "What does not depend on how items are valued", text


def of_board(report: AuditReport) -> Iterator[Row]:
    """Yield how the leaderboard moves under the published weights; nothing where there is none."""
    board = report.board
    if board is None:
        return
    frame = board.frame.drop_nulls("rank")
    if frame.height < 2:
        return
    moved = frame.filter(pl.col("rank_change") != 0)
    outside = frame.filter(~pl.col("uniform_rank").is_between("rank_lo", "rank_hi")).height
    leader = names_of([frame["model"][0]])
    first = frame.filter(pl.col("uniform_rank") == 1)["model"].to_list()
    weighted = int((board.scheme.weights["weight"] != 0).sum())
    text = f"On the {count(weighted, board.values.level)} that carry a published weight, first is {leader}"
    text += (
        ", as under the plain average. "
        if frame["model"][0] in first
        else f"; under the plain average {names_of(first)}. "
    )
    level = percent(report.config.resampling.level, 0)
    text += (
        f"For {count(outside, 'model') if outside else 'no model'} the rank under the plain average lies outside the "
        f"ranks that the data allow under the published weights (all at once, {level}; "
        f"{board.policy['standard errors']})."
    )
    title = f"Under the published weights {moved.height or 'none'} of {count(frame.height, 'model')} change places"
    yield "models", title, text


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
            f"{negative.height:,} of {count(items.height, 'item')} carry a negative weight, so a model that solves one "
            f"loses score. Of these {negative.height - hedges:,} count as worth less than the neutral point, and "
            f"{hedges:,} as worth more: hedges. A board that cannot publish such weights takes constrained ones."
        )
        if optimum.weights.sum() <= 0:
            text += " They sum to a negative number: column weight of weights.csv is no score to publish."
        yield "weights", "The best weights are not all positive", text
