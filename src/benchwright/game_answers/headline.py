"""The first lines of an answer: is the ranking worth gaming, what does overtaking cost, how much tuning stops it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from benchwright._words import percent
from benchwright.game_answers.curve_game import draws_at_most
from benchwright.panel.names import listed, shown
from benchwright.ranking_game.equilibrium import GameSolution
from benchwright.ranking_game.safe_gap import SafeGap
from benchwright.ranking_game.threshold import Threshold
from benchwright.ranking_game.threshold_draws import ThresholdDraws

if TYPE_CHECKING:
    from benchwright.game_answers.answer import GameAnswer

SURE = 0.95  # share of draws from which on a verdict is not called unsettled


def headline(answer: GameAnswer) -> list[str]:
    """Return the lines that answer the three questions, what rewards were assumed and who is left out.

    None for a finite game, whose own first lines say it.
    """
    solution = answer.solution
    if not isinstance(solution, GameSolution):
        return []
    unit = "" if answer.fits is None else f" {answer.fits.scores.effort_unit}"
    lines = [_worth(answer, solution), _cheapest(answer, solution, unit)]
    if answer.threshold is not None:
        lines.append(_tuning(answer.threshold, answer.threshold_draws, unit))
    lines += _draws(answer, solution.game.n)
    if answer.capability is not None and answer.capability.tied:
        pairs = listed([f"{first} and {second}" for first, second in answer.capability.tied])
        lines.append(f"Not known who is more capable, equal scores: {pairs}; taken in the order of the file")
    if answer.fits is not None and answer.fits.flat.any():
        flat = [name for name, hit in zip(answer.fits.models, answer.fits.flat, strict=True) if hit]
        lines.append(f"Taken for flat, where no rise shows above the noise: {listed(flat)}; a small rise may be missed")
    if answer.stated is not None and "rewards" not in answer.stated.stated:
        lines.append(f"Rewards are assumed: {answer.stated.rewards}{_safe(answer.safe_gap)}")
    if answer.fits is not None and answer.fits.left_out:
        gone = answer.fits.left_out
        lines.append(f"Not in the game: {len(gone)} of {len(gone) + solution.game.n} models, {listed(gone)}")
    return [*lines, ""]


def _draws(answer: GameAnswer, n: int) -> Iterator[str]:
    """Yield what the draws behind shares and intervals are, where they are not all."""
    wanted, used = answer.stated, answer.threshold_draws
    if wanted is None or used is None or used.draws >= wanted.replicates:
        return
    told = f"{used.draws} of {wanted.replicates} draws"
    if used.draws == draws_at_most(n):
        yield f"With {n} models, to save time, only {told} are used beyond the curves: shares and intervals are rough"
    else:
        yield f"Only {told} make a game: shares and intervals rest on those"


def amount(value: float) -> str:
    """Return a number to four digits, thousands apart.

    >>> amount(0.25), amount(1490.42), amount(384668.0), amount(float("inf"))
    ('0.25', '1,490', '384,700', 'out of reach')
    """
    if np.isnan(value):
        return "not known"
    if np.isinf(value):
        return "out of reach"
    rounded = float(f"{value:.4g}")
    return f"{rounded:,.0f}" if 1000 <= abs(rounded) < 1e15 else f"{rounded:g}"


def _worth(answer: GameAnswer, solution: GameSolution) -> str:
    game, jump = solution.game, solution.jump or solution.binding
    told = f"{shown(game.name(jump.developer))} over {shown(game.name(jump.over))}"
    told += " is out of reach" if np.isinf(jump.cost) else f" costs {amount(jump.cost)}"
    told += f" for a reward gap of {amount(jump.reward_gap)}"
    verdict = {
        "none": f"yes, {told}: no pure equilibrium",
        "exists": f"no, no overtake pays; closest, {told}",
        "undecided": f"not decided, {shown(solution.reason)}",
    }[solution.pure_equilibrium]
    at = game.tune_before_test
    line = f"Worth gaming{f' after tuning by {amount(at)}' if at else ''}: {verdict}"
    return line + "".join(f"; {said}" for said in _doubts(answer, solution))


def _doubts(answer: GameAnswer, solution: GameSolution) -> Iterator[str]:
    """Yield what stands against a verdict: draws that disagree, an order that is not that of capability."""
    if solution.pure_equilibrium == "exists" and solution.published_order != tuple(solution.game.order.tolist()):
        yield "but the published order is not that of capability"
    margins = answer.margins
    if margins is None or not margins.draws or solution.pure_equilibrium == "undecided":
        return
    here = np.flatnonzero(margins.deltas == solution.game.tune_before_test)
    if here.size:
        exists = float(margins.share_exists[here[0]])
        agree = exists if solution.pure_equilibrium == "exists" else 1.0 - exists
        words = f"a pure equilibrium in {percent(exists)} of {margins.draws} draws"
        yield words if agree >= SURE else f"NOT SETTLED: {words}"


def _cheapest(answer: GameAnswer, solution: GameSolution, unit: str) -> str:
    name, order = solution.game.name, solution.published_order
    rows = [row for row in solution.just_overtake if np.isfinite(row.cost)]
    if not rows:
        return "Cheapest overtake: nobody is known to be in reach of the neighbour above"
    least = min(rows, key=lambda row: row.cost)
    pair = f"{shown(name(order[least.rank - 1]))} over {shown(name(order[least.rank - 2]))}"
    line = f"Cheapest overtake: {pair}, effort {amount(least.required_effort)}{unit}, cost {amount(least.cost)}"
    required = answer.required_effort
    if required is not None and required.draws:
        for low, high in required.band[required.deltas == solution.game.tune_before_test][:1].tolist():
            line += f"; least of all pairs {amount(low)} to {amount(high)} ({percent(required.level)} interval)"
    return line


def _safe(safe: SafeGap | None) -> str:
    if safe is None or np.isnan(safe.gap):
        return ""
    return f"; no overtake pays up to {'any gap' if np.isinf(safe.gap) else f'a gap of {amount(safe.gap)}'} a rank"


def _tuning(found: Threshold, draws: ThresholdDraws | None, unit: str) -> str:
    top = f"{amount(found.delta_max)}{unit}"
    said = {
        "stable_everywhere": f"none is needed, no overtake pays at any level up to {top}",
        "found": f"{amount(found.delta)}{unit} and more, looked at up to {top}",
        "none_proved": "none, at no level is it stable",
        "none_up_to_max": f"none up to {top}",
        "undecided": f"not decided, {shown(found.reason)}",
    }[found.status]
    if draws is not None:
        exists, high = draws.shares["found"] + draws.shares["stable_everywhere"], float(draws.interval[1])
        said += f"; such a level in {percent(exists)} of {draws.draws} draws"
        if np.isfinite(high):
            said += f", at most {amount(high)} in {percent((1 + draws.level) / 2)}"
    return f"Tuning that stops it: {said}"
