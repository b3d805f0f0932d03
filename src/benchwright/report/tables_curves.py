"""Tables of fitted curves: parameters and fit, the order of capability, the assumptions that results rest on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import polars as pl

from benchwright._words import percent
from benchwright.curves.bootstrap import CurveDraws
from benchwright.curves.results import CurveFits
from benchwright.ranking_game.assumptions import TITLES, Assumptions
from benchwright.ranking_game.capability import CapabilityOrder

LEVEL = 0.95  # of intervals over draws
Row = tuple[str, str, str, Sequence[tuple[Any, ...]], pl.DataFrame]


def curve_tables(
    fits: CurveFits | None, draws: CurveDraws | None, capability: CapabilityOrder | None, checked: Assumptions | None
) -> Iterator[Row]:
    """Yield the tables of what there is."""
    if checked is not None:
        yield _checks(checked)
        if (violations := checked.to_frame()).height:
            columns: Sequence[tuple[Any, ...]] = (
                ("assumption", "assumption"),
                ("developer", "developer"),
                ("other", "and the more capable"),
                ("low", "from", "digits"),
                ("high", "to", "digits"),
                ("size", "by up to", "price"),
                ("share_of_draws", "share of draws", "percent"),
            )
            title = "Where assumptions fail (C1, C2: total effort and score; C3: target score and effort)"
            yield "violations", "game", title, columns, violations
        columns = (("result", "result"), ("verdict", "what it needs"), ("missing", "not met"))
        rows = [(one.result, one.verdict, ", ".join(one.missing)) for one in checked.results]
        frame = pl.DataFrame(rows, schema=[column[0] for column in columns], orient="row")
        yield "results-at-risk", "game", "Which results can be relied on", columns, frame
    if capability is not None:
        drawn = f", and how sure it is over {capability.draws:,} draws" if capability.draws else ""
        columns = (
            ("place", "place", "integer"),
            ("developer", "developer"),
            ("value", capability.words, "number"),
            ("above_next", "above the next, share of draws", "percent"),
        )
        yield "capability", "game", f"The order of capability{drawn}", columns, capability.to_frame()
    if fits is not None:
        yield _fits(fits, draws)
        if fits.left_out:
            frame = pl.DataFrame({"model": list(fits.left_out), "reason": list(fits.left_out.values())})
            yield "left-out", "game", "Models without a curve", (("model", "model"), ("reason", "why")), frame


def _checks(checked: Assumptions) -> Row:
    columns = (
        ("assumption", "assumption"),
        ("verdict", "verdict"),
        ("proof", "rests on"),
        ("count", "violations", "integer"),
        ("cases", "of", "integer"),
        ("share", "share of draws with one", "percent"),
        ("reason", "what was found"),
    )
    rows = [
        {
            "assumption": TITLES[check.assumption],
            "verdict": check.verdict,
            "proof": check.proof,
            "count": check.count,
            "cases": check.cases,
            "share": check.share,
            "reason": check.reason,
        }
        for check in checked.checks
    ]
    title = f"Assumptions, for efforts from 0 to {checked.effort_max:g}"
    return "assumptions", "game", title, columns, pl.DataFrame(rows).with_columns(pl.col("share").fill_nan(None))


def _fits(fits: CurveFits, draws: CurveDraws | None) -> Row:
    """Parameters with their intervals, and how well each curve fits."""
    frame, ends = fits.to_frame(), {} if draws is None else draws.interval(LEVEL)
    columns: list[tuple[Any, ...]] = [("model", "model")]
    for name in fits.parameters:
        columns.append((name, name, "price"))
        if name in ends:
            frame = frame.with_columns(
                pl.Series(f"{name}_low", ends[name][:, 0]), pl.Series(f"{name}_high", ends[name][:, 1])
            )
            columns += [(f"{name}_low", "from", "price"), (f"{name}_high", "to", "price")]
    frame = frame.with_columns(
        pl.col("flat", "converged").replace_strict({True: "yes", False: "no"}, return_dtype=pl.String)
    )
    columns += [
        ("deviance", "deviance", "number"),
        ("dof", "degrees of freedom", "number"),
        ("p_value", "p", "p"),
        ("worst", "largest residual (s.e.)", "number"),
        ("worst_effort", "at effort", "digits"),
        ("flat", "flat"),
        ("at_bound", "at a bound"),
        ("converged", "converged"),
    ]
    sure = "" if draws is None else f", {percent(LEVEL, 0)} intervals over {len(draws):,} draws"
    return "curve-fits", "game", f"Fitted curves ({fits.form}{sure})", columns, frame
