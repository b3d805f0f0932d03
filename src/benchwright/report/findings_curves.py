"""Findings of fitted curves: which assumptions fail, how sure the order of capability is, how well curves fit."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite

import numpy as np

from benchwright._words import count, percent
from benchwright.curves.comparison import LawComparison
from benchwright.curves.results import CurveFits
from benchwright.ranking_game.assumptions import TITLES, Assumptions
from benchwright.ranking_game.capability import CapabilityOrder
from benchwright.report.findings_panel import NAMED, Row
from benchwright.report.game_words import number, plain
from benchwright.report.tables_curves import LEVEL
from benchwright.report.tables_panel import LONGEST_NAME, plain_names

BEYOND_DOUBT = 2.0  # standard errors
POOR = 1e-3  # p-value below which curves are said not to fit


def of_assumptions(checked: Assumptions) -> Row:
    """Say which assumptions fail, where and by how much, and what cannot be relied on for it."""
    broken = [check for check in checked.checks if check.verdict == "violated"]
    open_ = [check for check in checked.checks if check.verdict == "undecided"]
    at = f"for efforts up to {number(checked.effort_max)}"
    if not broken:
        text = f"All {len(checked.checks)} were checked {at}"
        text += f"; not decided: {', '.join(check.assumption for check in open_)}." if open_ else "."
        if grid := [check.assumption for check in checked.checks if check.holds and check.proof == "grid"]:
            text += f" Looked at on a grid of efforts only: {', '.join(grid)}."
        if some := [f"{check.assumption} in {percent(check.share, 0)}" for check in checked.checks if check.share > 0]:
            text += f" Over {checked.draws:,} draws some fail: {', '.join(some)}."
        of_fit = ", for the curves as fitted" if checked.draws else ""
        title = "No assumption is seen to fail" if open_ or grid else "No assumption fails"
        return "game", title + of_fit, text
    parts = []
    for check in broken:
        drawn = f" (in {percent(check.share, 0)} of draws)" if isfinite(check.share) else ""
        parts.append(f"{TITLES[check.assumption]}: {plain(check.reason)}{drawn}")
        if check.violations:
            parts[-1] += f"; the largest: {plain(checked.words(check.assumption, check.violations[0]))}"
    lost = [f"“{one.result}” (needs {', '.join(one.missing)})" for one in checked.results if one.verdict != "holds"]
    text = f"Checked {at}. {'. '.join(parts)}." + (f" Not to be relied on: {'; '.join(lost)}." if lost else "")
    title = f"{len(broken)} of {count(len(checked.checks), 'assumption')} {'fails' if len(broken) == 1 else 'fail'}"
    return "game", f"{title}: {', '.join(check.assumption for check in broken)}", text


def of_capability(order: CapabilityOrder) -> Row:
    """Say who is the most capable by what rule, and how sure the order is."""
    names = plain_names([order.names[i] for i in order.order], LONGEST_NAME)
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    text = f"By the {order.words}: {', '.join(names[:NAMED])}{more}."
    if order.rule == "given":
        return "game", "The order of capability is taken as given", text
    if not order.draws:
        return "game", "The order of capability comes without an interval", text
    least = int(np.argmin(order.above))
    text += (
        f" The whole order is the same in {percent(order.whole)} of {count(order.draws, 'draw')}, with a mean Kendall "
        f"tau of {order.kendall_tau:.3f}; least sure is {names[least]} above {names[least + 1]}, in "
        f"{percent(float(order.above[least]))}."
    )
    settled = "settled" if order.whole >= LEVEL else "not settled"
    return "game", f"The order of capability is {settled}: the same in {percent(order.whole, 0)} of draws", text


def of_fits(fits: CurveFits, laws: LawComparison | None) -> Iterator[Row]:
    """Say where curves do not fit, whether another law predicts better, and which models have no curve."""
    deviance, dof, p = fits.overall
    poor = [name for name, value in zip(fits.models, fits.p_value, strict=True) if value < POOR]
    if isfinite(p) and (p < POOR or poor):
        worst = int(np.argmax(np.abs(fits.worst)))
        name = plain_names([fits.models[worst]], LONGEST_NAME)[0]
        text = (
            f"The variance of scores about the curves is {deviance / dof:.2g} times that of the noise stated (deviance "
            f"{deviance:.4g} on {dof:.4g} degrees of freedom); {count(len(poor), 'model')} of {len(fits.models)} fit "
            f"poorly (p < {POOR:g}). The farthest off is {name} at effort {fits.worst_effort[worst]:g}, by "
            f"{abs(fits.worst[worst]):.1f} standard errors."
        )
        yield "game", "Scores scatter about the curves by more than their noise", text
    if laws is not None and fits.law in laws.names:
        yield from _other_law(laws, fits.law)
    if fits.left_out:
        names = plain_names(fits.left_out, LONGEST_NAME)
        more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        text = f"Left out of the game: {', '.join(names[:NAMED])}{more}. {plain(next(iter(fits.left_out.values())))}."
        if len(names) > 1:
            text = f"Left out of the game, each for a reason that its table gives: {', '.join(names[:NAMED])}{more}."
        yield "game", f"{count(len(names), 'model')} cannot have a curve", text


def _other_law(laws: LawComparison, used: str) -> Iterator[Row]:
    """Say so where held-out scores are predicted better, by two standard errors, than by the law used."""
    k = laws.names.index(used)
    behind, error = float(laws.behind[k]), float(laws.behind_stderr[k])
    if not abs(behind) > BEYOND_DOUBT * error:
        return
    best = "curves without a law predict" if laws.names[0] == "monotone" else f"{laws.names[0]} predicts"
    text = (
        f"On {laws.n_scores:,} scores held out at the end of {count(len(laws.models), 'model')}, {best} better than "
        f"the law used here, {used}: by {abs(behind):.2g} of mean log score (standard error {error:.2g}). What is said "
        "beyond the efforts measured hangs on the law."
    )
    yield "game", "The law used does not predict held-out scores best", text
