"""Findings of two protocols compared, and of submissions that were not disclosed."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchwright._words import count, percent
from benchwright.ranking_game.private_variants import VariantReport
from benchwright.ranking_game.protocols import ProtocolComparison
from benchwright.report.findings_panel import NAMED, Row
from benchwright.report.tables_panel import LONGEST_NAME, plain_names


def of_protocols(found: ProtocolComparison) -> Iterator[Row]:
    """Yield whether benchmarks agree more after common tuning, who moves, and what turns beyond noise."""
    level = percent(found.level, 0)
    low, high = found.gain_interval
    title = (
        f"Benchmarks agree more after common tuning: Kendall tau {found.tau[0]:.2f} to {found.tau[1]:.2f}"
        if low > 0
        else f"Benchmarks agree less after common tuning: Kendall tau {found.tau[0]:.2f} to {found.tau[1]:.2f}"
        if high < 0
        else "Whether benchmarks agree more after common tuning is not settled"
    )
    ends = [f"{a:.2f} to {b:.2f}" for a, b in found.tau_interval]
    text = (
        f"{count(len(found.models), 'model')} on {count(len(found.tasks), 'task')}: the mean tau-b of two tasks is "
        f"{found.tau[0]:.3f} ({ends[0]}) on direct scores and {found.tau[1]:.3f} ({ends[1]}) after tuning, a gain of "
        f"{found.gain:.3f} ({low:.3f} to {high:.3f}; {level} intervals, models resampled). The first component holds "
        f"{percent(found.shares[0, 0])} of the variance, then {percent(found.shares[1, 0])}."
    )
    yield "game", title, text
    moved = (found.move_interval[:, 0] > 0) | (found.move_interval[:, 1] < 0)
    largest = [int(i) for i in np.argsort(-np.abs(found.move), kind="stable") if moved[i]]
    text = (
        f"For {count(int(moved.sum()), 'model')} of {len(found.models)} the interval of places gained or lost lies on "
        f"one side of 0 ({level}, tasks resampled, each model for itself)"
    )
    if largest:
        i = largest[0]
        name = plain_names([found.models[i]], LONGEST_NAME)[0]
        text += (
            f"; the largest such move is that of {name}, rank {found.rank[i, 0]:g} to {found.rank[i, 1]:g} "
            f"({found.move_interval[i, 0]:+g} to {found.move_interval[i, 1]:+g} places)"
        )
    n = int(moved.sum())
    title = (
        f"{n or 'None'} of {count(len(found.models), 'model')} {'changes' if n < 2 else 'change'} places beyond doubt"
    )
    yield "game", title, f"{text}."
    if found.testable:
        text = (
            f"Two models stand the other way round on a task, both differences beyond noise, in {found.reversals:,} of "
            f"{found.testable:,} pairs of models and tasks with standard errors (false discoveries held at "
            f"{percent(1 - found.level)})."
        )
        yield "game", f"Order turned beyond noise: {percent(found.reversals / found.testable)} of pairs", text


def of_variants(found: VariantReport) -> Iterator[Row]:
    """Yield whether the order changes with the mean, and what luck explains."""
    names = plain_names(found.developers, LONGEST_NAME)
    same = found.by_mean == found.developers
    by_mean = plain_names(found.by_mean, LONGEST_NAME)
    text = (
        f"By the best public submission: {_order(names)}. By the mean of all submissions: {_order(by_mean)}. Best and "
        "mean are compared as they stand: neither has an interval here."
    )
    title = "Best and mean submission give one order" if same else "Best and mean submission give different orders"
    yield "game", title, text
    if len(names) > 1:
        n, needed, lead = int(found.variants[0]), found.explained_by[0], float(found.lead[0])
        explained = needed is not None and needed <= n
        text = (
            f"{names[0]} leads {names[1]} by {lead:.4f} with {count(n, 'submission')}. "
            + (
                "No number of equally good variants up to a billion is expected to show such a lead by luck alone."
                if needed is None
                else f"The best of {count(needed, 'equally good variant')} is expected to show such a lead by luck."
            )
            + f" The best of its {count(n, 'submission')} is expected to show {float(found.lift[0]):.4f} of luck."
        )
        yield "game", "Luck explains the lead" if explained else "Luck alone does not explain the lead", text


def _order(names: list[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more
