"""Findings of the ranking game; :mod:`benchwright.report.findings` says what holds for all of them."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite, isinf

import numpy as np

from benchwright._words import count, percent
from benchwright.game_answers.answer import GameAnswer
from benchwright.game_answers.inputs import GameResult
from benchwright.ranking_game.equilibrium import GameSolution
from benchwright.ranking_game.finite import FiniteSolution
from benchwright.ranking_game.game import RankingGame
from benchwright.ranking_game.margins import MarginOverTuning
from benchwright.ranking_game.private_variants import VariantReport
from benchwright.ranking_game.protocols import ProtocolComparison
from benchwright.ranking_game.tuning import RequiredEffort
from benchwright.report.findings_curves import of_assumptions, of_capability, of_fits
from benchwright.report.findings_panel import Row
from benchwright.report.findings_protocols import of_protocols, of_variants
from benchwright.report.findings_race import of_arms_race, of_race_over_tuning
from benchwright.report.findings_tuning import of_designer, of_required_effort, of_safe_gap, of_threshold
from benchwright.report.game_words import Developers, number, plain, span
from benchwright.report.tables_curves import LEVEL


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
    say = Developers(answer.solution.game)
    section, title, text = _verdict(answer.solution, say, answer.margins)
    yield section, title, text + _counted(answer)
    yield _cheapest(answer.solution, say, answer.required_effort)
    if answer.threshold is not None:
        measured = np.inf if answer.fits is None else float(answer.fits.scores.effort.max())
        yield of_threshold(answer.threshold, answer.threshold_draws, measured, say)
    if answer.assumptions is not None:
        yield of_assumptions(answer.assumptions)
    if answer.designer is not None and answer.designer.delta > 0:
        yield of_designer(answer.designer, say)
    if answer.safe_gap is not None:
        yield of_safe_gap(answer.safe_gap, say)
    if answer.required_effort is not None:
        yield of_required_effort(answer.required_effort, say)
    if answer.arms_race is not None:
        yield of_arms_race(answer.arms_race)
    if answer.race_over_tuning is not None and (row := of_race_over_tuning(answer.race_over_tuning)) is not None:
        yield row
    if answer.capability is not None:
        yield of_capability(answer.capability)
    if answer.fits is not None:
        yield from of_fits(answer.fits, answer.laws)


def _verdict(solution: GameSolution, say: Developers, margins: MarginOverTuning | None) -> Row:
    game, binding = solution.game, solution.binding
    at, verdict = f"at tune-before-test level {number(game.tune_before_test)}", solution.pure_equilibrium
    if verdict == "undecided":
        return "game", f"Whether this ranking is worth gaming {at} is not decided", f"{plain(solution.reason)}."
    if verdict == "exists":
        title = f"Gaming this ranking does not pay {at}"
        only = ", the only one" if solution.unique else ""
        nothing = "spends nothing" if game.costs.free.max() == 0 else "spends at most its free effort"
        text = (
            f"There is a pure equilibrium{only}, in which every developer {nothing}. No jump over a better-placed "
            f"rival pays, of {count(solution.pairs, 'pair')} in all; the tightest, {say.jump(binding)}, for a reward "
            f"gap of {number(binding.reward_gap)}."
        )
    else:
        title = f"This ranking is worth gaming {at}"
        jump = binding if solution.jump is None else solution.jump
        text = (
            f"No pure equilibrium exists: {say.names[jump.developer]} overtakes {say.names[jump.over]} with any effort "
            f"above {number(jump.required_effort)}, which costs {number(jump.cost)}, for a reward gap of "
            f"{number(jump.reward_gap)}."
        )
    share = _share_exists(margins, game.tune_before_test)
    if share is None:
        return "game", title, text
    text = f"With the curves as fitted: {text[0].lower()}{text[1:]}"
    text += f" In {percent(share)} of draws a pure equilibrium exists."
    if (share if verdict == "exists" else 1 - share) < LEVEL:
        title = f"Whether this ranking is worth gaming {at} is not settled"
    return "game", title, text


def _counted(answer: GameAnswer) -> str:
    """Say in what effort of measured curves is counted, and what it costs where it costs what it is."""
    if answer.fits is None or answer.stated is None:
        return ""
    plainly = not {"cost", "own_costs"} & answer.stated.stated
    return f" Effort is in {answer.fits.scores.effort_unit}{', each of which costs 1' if plainly else ''}."


def _share_exists(margins: MarginOverTuning | None, delta: float) -> float | None:
    """Return the share of draws with a pure equilibrium at a level, where it was looked at."""
    if margins is None or not margins.draws:
        return None
    here = np.flatnonzero(margins.deltas == delta)
    return float(margins.share_exists[here[0]]) if here.size else None


def _cheapest(solution: GameSolution, say: Developers, required: RequiredEffort | None) -> Row:
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
        f"{say.pair(who, over)} (rank {least.rank}) needs effort {number(least.required_effort)}; the better rank "
        f"earns {number(least.reward_gap)} more.{_pair_band(required, who, over, solution.game)} {counted}"
    )
    return "game", f"The cheapest overtake of a neighbour costs {number(least.cost)}", text


def _pair_band(required: RequiredEffort | None, developer: int, over: int, game: RankingGame) -> str:
    """Return the interval of a pair's required effort at the level in force, where it was looked at."""
    if required is None or not required.draws:
        return ""
    for k in np.flatnonzero(required.deltas == game.tune_before_test):
        if (int(required.developer[k]), int(required.over[k])) == (developer, over):
            ends = span(*map(float, required.pair_band[k]))
            return f" That effort is {ends} over {required.draws:,} draws ({percent(required.level, 0)} interval)."
    return ""


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
