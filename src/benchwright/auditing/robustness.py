"""Does the welfare picture survive another judge, another cut of the ranking, another activity value?

Each variant scores the same items again; reported are rank correlations with the chosen scoring (Spearman,
Kendall's tau-b), the overlap of the two frontiers (Jaccard) and the share of the first family's items that
some item of the second dominates. To add a variant, add a row to :data:`VARIANTS`.

Under uniform weights two items with the same activities in another order are tied, but their floating sums
may differ in the last bit, and rank correlations see an order. The published figures for that variant have
such an order in them; the row "exact ties" rounds first and has the figures that the definition means.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from scipy import stats

from benchwright.auditing.families import FamilyMap
from benchwright.auditing.frontier import mark_dominators, mark_frontier
from benchwright.auditing.welfare import judges_welfare
from benchwright.choices import WelfareChoices
from benchwright.logs.item_tables import DEFAULT_JUDGE, ITEM


@dataclass(frozen=True, slots=True)
class Variant:
    """One other way to score the same items; ``judge`` None: those that count."""

    name: str
    top_k: int = 5
    rule: str = "reciprocal"
    activity_score: str = "share"
    judge: str | None = None
    exact_ties: bool = False


TIE_DIGITS = 10
VARIANTS = (
    Variant("k=5, recip"),
    Variant("k=3, recip", top_k=3),
    Variant("k=4, recip", top_k=4),
    Variant("k=5, uniform", rule="uniform"),
    Variant("k=5, uniform, exact ties", rule="uniform", exact_ties=True),
    Variant("GWA mean-agg, k=5, recip", activity_score="mean"),
)


def robustness_table(
    welfare: pl.DataFrame,
    loadings: Mapping[str, pl.DataFrame],
    activities: Mapping[str, pl.DataFrame],
    families: FamilyMap,
    choices: WelfareChoices,
    main: Sequence[str] = (DEFAULT_JUDGE,),
) -> pl.DataFrame:
    """Return one row per variant that the source has the tables for and that is not the chosen scoring.

    ``welfare`` is the chosen scoring (task, doc_id, w_auto, w_aug), made with ``choices`` from the judges ``main``,
    each with a row of its own where they are several. Columns: variant, n_compared, spearman_auto, spearman_aug,
    kendall_auto, kendall_aug, frontier_size_default, frontier_size_variant,
    frontier_overlap, frontier_jaccard, dominated_default, dominated_variant (shares of the first family).
    """
    alone = main if len(main) == 1 else ()
    judges = tuple(Variant(f"judge {name}, k=5, recip", judge=name) for name in loadings if name not in alone)
    rows = []
    chosen = (choices.top_k, choices.rank_weights, choices.activity_score)
    for variant in (*VARIANTS, *judges):
        of = main if variant.judge is None else (variant.judge,)
        if not set(of) <= loadings.keys() or variant.activity_score not in activities:
            continue
        rule = (variant.top_k, variant.rule, variant.activity_score)
        if variant.judge is None and not variant.exact_ties and rule == chosen:
            continue
        scored = judges_welfare(
            [loadings[name] for name in of],
            activities[variant.activity_score],
            top_k=variant.top_k,
            rule=variant.rule,
        )
        default = welfare
        if variant.exact_ties:
            rounded = pl.col("w_auto", "w_aug").round(TIE_DIGITS)
            default, scored = default.with_columns(rounded), scored.with_columns(rounded)
        rows.append({"variant": variant.name, **_compare(default, scored, families)})
    return pl.DataFrame(rows)


def _compare(default: pl.DataFrame, variant: pl.DataFrame, families: FamilyMap) -> dict[str, float | None]:
    values = ("w_auto", "w_aug")
    columns = [*ITEM, *values]
    both = default.select(columns).join(variant.select(columns), on=ITEM, suffix="_variant").drop_nulls()
    row: dict[str, float | None] = {"n_compared": float(both.height)}
    for name, statistic in (("spearman", stats.spearmanr), ("kendall", stats.kendalltau)):
        for value in values:
            left, right = both[value], both[f"{value}_variant"]
            defined = both.height > 1 and left.n_unique() > 1 and right.n_unique() > 1
            key = f"{name}_{value.removeprefix('w_')}"
            row[key] = float(statistic(left.to_numpy(), right.to_numpy()).statistic) if defined else None
    frontiers = [_frontier(frame) for frame in (default, variant)]
    overlap, union = len(frontiers[0] & frontiers[1]), len(frontiers[0] | frontiers[1])
    row |= {
        "frontier_size_default": float(len(frontiers[0])),
        "frontier_size_variant": float(len(frontiers[1])),
        "frontier_overlap": float(overlap),
        "frontier_jaccard": overlap / union if union else None,
        "dominated_default": _dominated(default, families),
        "dominated_variant": _dominated(variant, families),
    }
    return row


def _frontier(items: pl.DataFrame) -> set[tuple[object, ...]]:
    return set(mark_frontier(items).filter("on_frontier").select(*ITEM).iter_rows())


def _dominated(items: pl.DataFrame, families: FamilyMap) -> float | None:
    known = items.drop_nulls(["w_auto", "w_aug"])
    pair = families.pair(families.assign(known["task"]))
    if pair is None:
        return None
    first, _, side = pair
    marked = mark_dominators(known.with_columns(side.alias("side"))).filter(pl.col("side") == first)
    return float(np.mean(marked["n_dominators"].to_numpy() > 0))
