"""Findings of mixed play: what gaming costs and how often the board is wrong, at one level of tuning and over many."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchwright._check import FloatArray
from benchwright._words import count, percent
from benchwright.ranking_game.arms_race import ArmsRace
from benchwright.ranking_game.race_over_tuning import OPEN, RaceOverTuning
from benchwright.report.findings_panel import Row
from benchwright.report.game_words import leaving, number

EXACT = "closed form"


def of_arms_race(race: ArmsRace) -> Row:
    """Say what mixed play costs at the level in force."""
    spend, rewards = float(race.spend.sum()), float(race.game.rewards.sum())
    of_rewards = f" ({percent(spend / rewards)} of the rewards)" if rewards > 0 else ""
    how = "By the closed form for two developers."
    if race.method != EXACT:
        kept = leaving(race.exploitability, race.off_grid)
        how = f"Scores are cut into {race.cells} cells: {kept}. Other equilibria may exist."
    text = (
        f"In mixed play developers spend {number(spend)} in all{of_rewards}, and the board publishes a wrong order "
        f"with probability {percent(race.wrong_order)}, a wrong first with {percent(race.wrong_top)} (expected Kendall "
        f"tau {race.kendall_tau:.2f}). {how}"
    )
    return "game", f"The arms race costs {number(spend)}", text


def of_race_over_tuning(race: RaceOverTuning) -> Row | None:
    """Say how spend and wrong orders change with tuning; None where no two levels are known."""
    known = np.flatnonzero(np.isfinite(race.wrong_order))
    if known.size < 2:
        return None
    first, last = int(known[0]), int(known[-1])
    spend = race.spend.sum(axis=1)
    at_rest = np.array([verdict == "exists" for verdict in race.verdict])

    def moves(values: FloatArray, show: Callable[[float], str]) -> str:
        return f"from {show(float(values[first]))} to {show(float(values[last]))}"

    kept = leaving(float(race.exploitability[known].max()), float(race.off_grid[known].max()))
    text = (
        f"Going from level {number(float(race.deltas[first]))} to {number(float(race.deltas[last]))}, expected spend "
        f"goes {moves(spend, number)}, the probability of a wrong order {moves(race.wrong_order, percent)}, that of a "
        f"wrong first {moves(race.wrong_top, percent)}. Of the play found, {kept}; other equilibria may exist."
    )
    if wrong := int((at_rest & (race.wrong_order == 1)).sum()):
        text += (
            f" At {count(wrong, 'level')} nobody pays and the board is wrong: scores there do not follow capability."
        )
    if undecided := race.method.count(OPEN):
        text += f" {count(undecided, 'level')} {'is' if undecided == 1 else 'are'} not decided."
    return "game", "What common tuning does to the arms race", text
