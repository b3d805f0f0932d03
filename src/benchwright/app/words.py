"""What the desk says in words: texts made inert for a page, and why an item weighs what it weighs."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import polars as pl

from benchwright._check import FloatArray
from benchwright._words import SCHEME_NAMES, count, percent
from benchwright.app.desk import View
from benchwright.mechanism.item_weights import IN_FORCE
from benchwright.mechanism.point_weights import PointWeights
from benchwright.mechanism.reasons import weight_reasons

SPECIAL = re.compile(r"([\\`*_{}\[\]()#+\-.!|<>~$:&^=@\"'/%?,;])")
HELD = {
    "non_negative": "it would be below 0 and is held at 0",
    "max_share": "it is held at the largest share that one item may carry",
    "equal_within": "it shares one weight with the items of its group",
    "fixed_shares": "its share is settled by your file",
    "at_most": "it is not among the items that may carry a weight",
}


def inert(text: object) -> str:
    r"""Return text that Markdown shows as it is: no link, formula, emoji, colour or HTML comes of it.

    >>> print(inert("[a](javascript:b) $x$ :fire: <b>"))
    \[a\]\(javascript\:b\) \$x\$ \:fire\: \<b\>
    """
    return SPECIAL.sub(r"\\\1", " ".join(str(text).split()))


def weights_lines(view: View) -> Iterator[str]:
    """Yield what the weights of a view say, at the estimates."""
    weights = view.weights
    if weights is None:
        return
    plain, published = weights.schemes["uniform"], weights.published
    if plain.lowers_welfare:
        yield "Rewarding the plain average lowers welfare under these choices."
    else:
        yield f"The plain average keeps {percent(plain.efficiency)} of what the best weights would bring."
    if published.weights.any():
        carried = int((published.weights != 0).sum())
        yield (
            f"Weights that the board can publish keep {percent(published.efficiency)}; {carried:,} of "
            f"{count(weights.items.height, 'item')} carry one."
        )
    else:
        yield f"There are no weights to publish: {published.status}."
    best = weights.optimum.surplus
    for name, cost in weights.prices.items():
        if best > 0 and cost > 0:
            yield f"{CONSTRAINT[name]} costs {percent(cost / best)} of the best surplus."
    turning = weights.break_even[IN_FORCE].point
    if np.isfinite(turning):
        yield f"Rewarding the plain average helps where the neutral point lies below {turning:.2f}."


CONSTRAINT = {
    "non_negative": "No weight below 0",
    "max_share": "The largest share of one item",
    "equal_within": "One weight within each group",
    "fixed_shares": "Settled shares",
    "at_most": "The number of items with a weight",
}


def board_lines(view: View, start: View) -> Iterator[str]:
    """Yield what moves on the board: against the plain average, and against the settings at the start."""
    board = view.board
    if board is None:
        return
    ranked = board.frame.drop_nulls("rank")
    if not ranked.height:
        return
    moved = ranked.filter(pl.col("rank_change") != 0).height
    outside = ranked.filter(~pl.col("uniform_rank").is_between("rank_lo", "rank_hi")).height
    yield (
        f"First is {ranked['model'][0]}. Against the plain average, {moved or 'none'} of {ranked.height:,} models "
        f"change places; for {outside or 'none'} the old rank lies outside the ranks that the data allow now."
    )
    if start.board is not None and start.board is not board:
        both = ranked.join(start.board.frame.select("model", before="rank"), on="model").drop_nulls("before")
        changed = both.filter(pl.col("rank") != pl.col("before")).height
        yield f"Against the settings at the start {changed or 'none'} change places."


def movers(view: View, start: View) -> pl.DataFrame:
    """Return items by what they gain against the start, most first: task, doc_id, now, before, gain (x uniform).

    Empty where one of the two has no weights, or other items.
    """
    schema = {"task": pl.String, "now": pl.Float64, "before": pl.Float64, "gain": pl.Float64}
    if view.weights is None or start.weights is None:
        return pl.DataFrame(schema=schema)
    now, before = (
        one.items.select(
            "task", "doc_id", (pl.col("published_share") / pl.col("uniform_share")).fill_null(0.0).alias(name)
        )
        for one, name in ((view.weights, "now"), (start.weights, "before"))
    )
    both = now.join(before, on=["task", "doc_id"], how="left", maintain_order="left")
    both = both.with_columns(gain=pl.col("now") - pl.col("before"))
    return both.sort("gain", "task", "doc_id", descending=[True, False, False], nulls_last=True)


def item_lines(weights: PointWeights, place: int) -> Iterator[str]:
    """Yield why the item at a place carries its weight: pull over noise, and what holds it."""
    items, published = weights.items, weights.published
    row = items.row(place, named=True)
    times = None if row["published_share"] is None else row["published_share"] / row["uniform_share"]
    if times is None:
        yield f"No item has a weight to publish here: {published.status}."
    elif times == 0:
        yield "It carries no published weight."
    else:
        yield f"Its published weight is {times:.2f} times an equal one."
    if not published.weights.any():
        return
    found = weight_reasons(weights.model, published.weights)
    pull, noise = found.gain, found.own_noise
    if pull[place] > 0:
        yield (
            f"Slopes: a dollar of the effort that is wanted moves it {_times(pull, place)} the median item, and "
            "that raises its weight."
        )
    else:
        yield "Slopes: the effort that is wanted does not raise its score, or seeds move it with the others."
    if noise[place] > 0:
        yield f"Noise: its variance over seeds is {_times(noise, place)} the median item's; weight falls with it."
    else:
        yield "Noise: none counts here, as risk aversion or its variance is 0."
    voice = found.voice[place]
    side = "above" if row["welfare"] > 0 else "below" if row["welfare"] < 0 else "at"
    yield (
        f"Welfare: it is worth {abs(row['welfare']):.2f} {side} the neutral point, {_share(voice)}. Its weight pays "
        "for effort that is wanted, whichever items made it so."
    )
    held = [name for name, at in published.binding.items() if at[place]]
    for name in held:
        yield f"Constraint: {HELD[name]}."
    if not held and noise[place] > 0:
        yield f"Pull over noise gives {pull[place] / noise[place]:.4g}, its weight in reward per score."


def _times(values: FloatArray, place: int) -> str:
    positive = values[values > 0]
    return f"{values[place] / np.median(positive):.2g} times as much as" if positive.size else "as much as"


def _share(voice: float) -> str:
    """Return what part of the wanted effort is the item's doing."""
    if not np.isfinite(voice):
        return "and no effort is wanted here"
    if voice < 0:
        return f"which takes {percent(-voice)} off the effort that is wanted"
    return f"which makes {percent(voice)} of the effort that is wanted"


def scheme_table(weights: PointWeights) -> pl.DataFrame:
    """Return what each scheme keeps, and whether rewarding it raises welfare."""
    rows = [
        (SCHEME_NAMES[name], one.efficiency, "lowers welfare" if one.lowers_welfare else "raises welfare")
        for name, one in weights.schemes.items()
    ]
    rows.append((SCHEME_NAMES["published"], weights.published.efficiency, ""))
    frame = pl.DataFrame(rows, schema=["scheme", "kept", "if rewarded"], orient="row")
    return frame.with_columns(pl.col("kept").fill_nan(None))
