"""Tables of what common tuning does: required effort, how sure stable levels are, the designer's bill."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import polars as pl

from benchwright._words import percent
from benchwright.curves.comparison import LawComparison
from benchwright.game_answers.answer import GameAnswer
from benchwright.ranking_game.jumps import Jump
from benchwright.ranking_game.threshold_draws import ThresholdDraws
from benchwright.ranking_game.tuning import DesignerCost, RequiredEffort

Row = tuple[str, str, str, Sequence[tuple[Any, ...]], pl.DataFrame]
PAYS = {True: "yes", False: "no", None: "breaks even"}


def tuning_tables(answer: GameAnswer) -> Iterator[Row]:
    """Yield the tables of what there is."""
    if answer.required_effort is not None:
        yield _required(answer.required_effort)
    if answer.threshold_draws is not None:
        yield from _draws(answer.threshold_draws)
    if answer.designer is not None:
        yield _designer(answer.designer)
    if answer.margins is not None:
        level = percent(answer.margins.level, 0)
        columns = (
            ("delta", "level", "digits"),
            ("margin", "least cost less reward gap", "digits"),
            ("low", f"{level} of draws from", "digits"),
            ("high", "to", "digits"),
            ("developer", "developer"),
            ("over", "overtakes"),
            ("cost", "cost", "digits"),
            ("gap", "reward gap", "digits"),
            ("share_exists", "draws with a pure equilibrium", "percent"),
        )
        yield "margins", "game", "The tightest jump, by level of common tuning", columns, answer.margins.to_frame()
    if answer.laws is not None:
        yield _laws(answer.laws)


def _required(found: RequiredEffort) -> Row:
    level = percent(found.level, 0)
    columns = (
        ("delta", "level", "digits"),
        ("required_effort", "least effort over neighbours", "digits"),
        ("developer", "developer"),
        ("over", "overtakes"),
        ("pair_low", f"this pair, {level} interval from", "digits"),
        ("pair_high", "to", "digits"),
        ("low", f"least in truth, {level} interval from", "digits"),
        ("high", "to", "digits"),
        ("share_below", "draws with less", "percent"),
        ("median", "median over neighbours", "digits"),
    )
    title = "Effort that overtakes a neighbour, by level of common tuning (a dash: out of reach, or not known)"
    return "required-effort", "game", title, columns, found.to_frame()


def _draws(found: ThresholdDraws) -> Iterator[Row]:
    rows = [(status.replace("_", " "), share) for status, share in found.shares.items()]
    frame = pl.DataFrame(rows, schema=["status", "share"], orient="row")
    columns: Sequence[tuple[Any, ...]] = (("status", "threshold"), ("share", "share of draws", "percent"))
    yield "threshold-draws", "game", f"The threshold in {found.draws:,} draws", columns, frame
    columns = (
        ("delta", "level", "digits"),
        ("stable", "stable, share of draws", "percent"),
        ("crossed", "scores do not follow capability", "percent"),
        ("undecided", "not decided", "percent"),
    )
    yield "stable-shares", "game", "How surely a level is stable", columns, found.to_frame()


def _designer(bill: DesignerCost) -> Row:
    def row(at: float, jump: Jump) -> dict[str, Any]:
        name = bill.game.name
        effort, cost = (value if abs(value) < float("inf") else None for value in (jump.required_effort, jump.cost))
        paid = bill.game.n * at
        known = {"level": at, "effort": paid, "bill": paid * bill.price, "developer": name(jump.developer)}
        known |= {"over": name(jump.over), "required_effort": effort, "cost": cost}
        return known | {"reward_gap": jump.reward_gap, "pays": PAYS[jump.pays]}

    columns = (
        ("level", "level", "digits"),
        ("effort", "effort of the designer", "digits"),
        ("bill", "what it costs", "digits"),
        ("developer", "cheapest overtake: developer"),
        ("over", "overtakes"),
        ("required_effort", "required effort", "digits"),
        ("cost", "cost", "digits"),
        ("reward_gap", "reward gap", "digits"),
        ("pays", "pays"),
    )
    frame = pl.DataFrame([row(0.0, bill.untuned), row(bill.delta, bill.tuned)]).with_columns(
        pl.col("level", "effort", "bill", "required_effort", "cost").cast(pl.Float64).fill_nan(None)
    )
    return "designer", "game", "The designer's effort beside the cheapest overtake", columns, frame


def _laws(laws: LawComparison) -> Row:
    columns = (
        ("form", "law"),
        ("log_score", "mean log score", "number"),
        ("behind", "behind the best", "number"),
        ("behind_stderr", "its standard error", "number"),
        ("error", "root mean squared error", "number"),
        ("standardised_error", "the same in standard errors", "number"),
    )
    title = f"Laws compared on {laws.n_scores:,} held-out scores of {len(laws.models)} models ({laws.predict})"
    return "laws", "game", title, columns, laws.to_frame()
