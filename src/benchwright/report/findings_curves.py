"""Findings of fitted curves: which assumptions fail, how sure the order of capability is, how well curves fit."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite

import numpy as np

from benchwright._words import count, percent
from benchwright.curves.results import CurveFits
from benchwright.ranking_game.assumptions import TITLES, Assumptions
from benchwright.ranking_game.capability import CapabilityOrder
from benchwright.report.findings_panel import NAMED, Row
from benchwright.report.tables_panel import LONGEST_NAME, plain_names

POOR = 1e-3  # p-value below which curves are said not to fit


def plain(text: str) -> str:
    """Return text in which names of developers may stand, printable, on one line, without its full stop."""
    return " ".join("".join(char if char.isprintable() else " " for char in text).split()).rstrip(".")


def of_assumptions(checked: Assumptions) -> Row:
    """Say which assumptions fail, where and by how much, and what cannot be relied on for it."""
    broken = [check for check in checked.checks if check.verdict == "violated"]
    open_ = [check for check in checked.checks if check.verdict == "undecided"]
    at = f"for efforts up to {checked.effort_max:,.4g}"
    if not broken:
        undecided = f"; not decided: {', '.join(check.assumption for check in open_)}" if open_ else ""
        grid = [check.assumption for check in checked.checks if check.holds and check.proof == "grid"]
        looked = f" Looked at on a grid of efforts only: {', '.join(grid)}." if grid else ""
        title = "No assumption is seen to fail" if open_ or grid else "The assumptions hold"
        return "game", title, f"All {len(checked.checks)} were checked {at}{undecided}.{looked}"
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
    return "game", f"The order of capability is the same in {percent(order.whole, 0)} of draws", text


def of_fits(fits: CurveFits) -> Iterator[Row]:
    """Say where curves do not fit, and which models have none."""
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
    if fits.left_out:
        names = plain_names(fits.left_out, LONGEST_NAME)
        more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        text = f"Left out of the game: {', '.join(names[:NAMED])}{more}. {plain(next(iter(fits.left_out.values())))}."
        if len(names) > 1:
            text = f"Left out of the game, each for a reason that its table gives: {', '.join(names[:NAMED])}{more}."
        yield "game", f"{count(len(names), 'model')} cannot have a curve", text
