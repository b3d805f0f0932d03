"""Findings of the ranking game; :mod:`benchwright.report.findings` says what holds for all of them."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite, isinf

from benchwright._words import count, percent
from benchwright.ranking_game.answer import GameAnswer
from benchwright.ranking_game.arms_race import ArmsRace
from benchwright.ranking_game.equilibrium import GameSolution
from benchwright.ranking_game.finite import FiniteSolution
from benchwright.ranking_game.inputs import GameResult
from benchwright.ranking_game.jumps import Jump
from benchwright.ranking_game.private_variants import VariantReport
from benchwright.ranking_game.protocols import ProtocolComparison
from benchwright.ranking_game.threshold import Threshold
from benchwright.report.findings_curves import of_assumptions, of_capability, of_fits, plain
from benchwright.report.findings_panel import Row
from benchwright.report.findings_protocols import of_protocols, of_variants
from benchwright.report.tables_panel import LONGEST_NAME, plain_names

SPANS_NAMED = 3


def of_game(game: GameResult) -> Iterator[Row]:
    """Yield what a ranking game, two protocols or undisclosed submissions say."""
    if isinstance(game, ProtocolComparison):
        return of_protocols(game)
    if isinstance(game, VariantReport):
        return of_variants(game)
    return of_answer(game)


def of_answer(answer: GameAnswer) -> Iterator[Row]:
    """Yield what an answer says, most consequential first."""
    if isinstance(answer.solution, FiniteSolution):
        yield _finite(answer.solution)
        return
    say = _Words(answer.solution)
    yield _verdict(answer.solution, say)
    yield _cheapest(answer.solution, say)
    if answer.threshold is not None:
        yield _threshold(answer.threshold, say)
    if answer.assumptions is not None:
        yield of_assumptions(answer.assumptions)
    if answer.arms_race is not None:
        yield _arms_race(answer.arms_race)
    if answer.capability is not None:
        yield of_capability(answer.capability)
    if answer.fits is not None:
        yield from of_fits(answer.fits)


class _Words:
    """How sentences name the developers of a game."""

    def __init__(self, solution: GameSolution) -> None:
        game = solution.game
        self.names = plain_names([game.name(i) for i in range(game.n)], LONGEST_NAME)

    def pair(self, developer: int, over: int) -> str:
        return f"{self.names[developer]} over {self.names[over]}"

    def jump(self, jump: Jump) -> str:
        return f"{self.pair(jump.developer, jump.over)}, {_reach(jump.required_effort, jump.cost)}"


def _reach(effort: float, cost: float) -> str:
    if isinf(effort):
        return "is out of reach at any effort"
    if not isfinite(effort):
        return "is not known to double precision"
    return f"needs effort {_number(effort)}, which costs {_number(cost)}"


def _verdict(solution: GameSolution, say: _Words) -> Row:
    game, binding = solution.game, solution.binding
    at = f"at tune-before-test level {_number(game.tune_before_test)}"
    if solution.pure_equilibrium == "exists":
        only = ", the only one" if solution.unique else ""
        nothing = "spends nothing" if game.costs.free.max() == 0 else "spends at most its free effort"
        text = (
            f"There is a pure equilibrium{only}, in which every developer {nothing}. No jump over a better-placed "
            f"rival pays, of {count(solution.pairs, 'pair')} in all; the tightest, {say.jump(binding)}, for a reward "
            f"gap of {_number(binding.reward_gap)}."
        )
        return "game", f"Gaming this ranking does not pay {at}", text
    jump = solution.jump
    if solution.pure_equilibrium == "none" and jump is not None:
        text = (
            f"No pure equilibrium exists: {say.names[jump.developer]} overtakes {say.names[jump.over]} with any effort "
            f"above {_number(jump.required_effort)}, which costs {_number(jump.cost)}, for a reward gap of "
            f"{_number(jump.reward_gap)}."
        )
        return "game", f"This ranking is worth gaming {at}", text
    return "game", f"Whether this ranking is worth gaming {at} is not decided", f"{plain(solution.reason)}."


def _cheapest(solution: GameSolution, say: _Words) -> Row:
    order, rows = solution.published_order, solution.just_overtake
    reachable = [row for row in rows if isfinite(row.cost)]
    paying, beyond = sum(row.pays is True for row in rows), sum(isinf(row.required_effort) for row in rows)
    unknown = sum(row.pays is None for row in rows)
    counted = f"Overtaking the neighbour above pays for {paying or 'none'} of {count(len(rows), 'developer')}"
    counted += f"; for {beyond} it is out of reach at any effort" if beyond else ""
    counted += f"; for {unknown} that cannot be told." if unknown else "."
    if not reachable:
        return "game", "No neighbour can be overtaken", counted
    least = min(reachable, key=lambda row: (row.cost, row.rank))
    who, over = order[least.rank - 1], order[least.rank - 2]
    text = (
        f"{say.pair(who, over)} (rank {least.rank}) needs effort {_number(least.required_effort)}; the better rank "
        f"earns {_number(least.reward_gap)} more. {counted}"
    )
    return "game", f"The cheapest overtake of a neighbour costs {_number(least.cost)}", text


def _threshold(found: Threshold, say: _Words) -> Row:
    top, status = _number(found.delta_max), found.status
    pair = "" if found.binding_pair is None else say.pair(*found.binding_pair)
    spans = [f"{_number(low)} to {_number(high)}" for low, high in found.stable_intervals]
    shown = ", ".join(spans[:SPANS_NAMED])
    shown += f" and {len(spans) - SPANS_NAMED} more" if len(spans) > SPANS_NAMED else ""
    crossed = (
        " At some levels scores do not follow capability; those are not counted as stable."
        if found.crossed_intervals
        else ""
    )
    if status == "stable_everywhere":
        return (
            "game",
            f"No level of common tuning up to {top} makes gaming pay",
            f"All levels from 0 to {top} are stable.{crossed}",
        )
    if status == "found":
        text = (
            f"From {_number(found.delta)} to {top}, the largest level searched, no jump pays; just below, {pair} pays."
        )
        text += f" Stable levels: {shown}." if len(spans) > 1 else ""
        return "game", f"Common tuning of {_number(found.delta)} stops it", text + crossed
    if status == "none_proved":
        text = f"Tuning moves all developers alike here: {pair} pays at every level."
        return "game", "No common tuning stops it, however much", text
    if status == "none_up_to_max":
        text = f"At {top}, the largest level searched, {pair} pays; larger levels were not looked at."
        text += f" Stable in between: {shown}." if spans else " No level is stable."
        return "game", f"Common tuning up to {top} does not stop it for good", text + crossed
    return "game", "How much common tuning stops it is not decided", f"{plain(found.reason)}.{crossed}"


def _arms_race(race: ArmsRace) -> Row:
    spend, rewards = float(race.spend.sum()), float(race.game.rewards.sum())
    of_rewards = f" ({percent(spend / rewards)} of the rewards)" if rewards > 0 else ""
    how = (
        "By the closed form for two developers."
        if race.exploitability == 0
        else f"Scores are cut into {race.cells} cells: no developer gains more than {race.exploitability:.2g} by "
        f"another cell, or {race.off_grid:.2g} by another place in one. Other equilibria may exist."
    )
    text = (
        f"In mixed play developers spend {_number(spend)} in all{of_rewards}, and the board publishes a wrong order "
        f"with probability {percent(race.wrong_order)}, a wrong first with {percent(race.wrong_top)} (expected Kendall "
        f"tau {race.kendall_tau:.2f}). {how}"
    )
    return "game", f"The arms race costs {_number(spend)}", text


def _finite(solution: FiniteSolution) -> Row:
    game = solution.game
    profiles = f"{solution.profiles:,} profiles, compared in exact arithmetic"
    if not solution.pure:
        round_ = count(len(solution.cycle), "profile")
        text = f"Each of {profiles}, has a profitable deviation; best replies go round {round_}."
        return "game", "This ranking has no pure equilibrium: it is worth gaming", text
    found, strict = len(solution.pure), sum(one.strict for one in solution.pure)
    text = (
        f"Of {profiles}, {found} {'is an equilibrium' if found == 1 else 'are equilibria'}, {strict or 'none'} strict."
    )
    paid = [any(game.costs[i][level] for i, level in enumerate(one.levels)) for one in solution.pure]
    if not any(paid):
        return "game", "In every pure equilibrium nobody pays for effort", text
    if all(paid):
        return "game", "In every pure equilibrium somebody pays for effort", text
    return "game", "In some pure equilibria somebody pays for effort, in others nobody does", text


def _number(value: float) -> str:
    """Return a number as sentences show it: four digits, thousands apart."""
    return f"{value:.4g}" if abs(value) < 10_000 else f"{float(f'{value:.4g}'):,.0f}"
