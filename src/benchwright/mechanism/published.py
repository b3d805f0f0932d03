"""Weights that a board can publish, from the configuration: constraints, weights by task and by family, intervals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from benchwright._check import FloatArray
from benchwright._words import count
from benchwright.config import Config
from benchwright.errors import UsageError
from benchwright.estimating._resampling import tail_count
from benchwright.mechanism.aggregation import ItemAggregation, optimal_weights
from benchwright.mechanism.averaged import averaged_game
from benchwright.mechanism.constraints import Constraints
from benchwright.mechanism.draws import GameDraws
from benchwright.mechanism.results import OptimalWeights
from benchwright.mechanism.uncertainty import WeightUncertainty, weight_uncertainty

PUBLISHED, BY_TASK, BY_FAMILY = "published", "by_task", "by_family"
GROUPS = {BY_TASK: "task", BY_FAMILY: "family"}
MAX_CELLS = 20_000_000  # of draws times items: 20,000 items have 1,000 draws


def constraints_of(
    groups: Mapping[str, pl.Series], config: Config, fixed: Mapping[int, float] | None = None
) -> dict[str, Constraints]:
    """Return the constraints of the published weights, and those of one weight a task and a family.

    ``groups`` has the task and the family of each item, and what ``published.equal_within`` names; ``fixed`` the shares
    that are settled, by place. The latter two keep ``non_negative`` and drop the rest.

    Raises
    ------
    UsageError
        ``published.at_most`` without ``published.non_negative``: which items to choose would then rest on hedges, and
        draws could not keep the choice.
    """
    chosen = config.published
    if chosen.at_most is not None and not chosen.non_negative:
        raise UsageError(
            f"published.at_most = {chosen.at_most} does not go with published.non_negative = false",
            hint="drop published.at_most, or leave published.non_negative at true",
        )
    codes = {name: series.rank("dense").to_numpy().astype(np.int64) - 1 for name, series in groups.items()}
    asked: dict[str, Any] = {"non_negative": chosen.non_negative, "max_share": chosen.max_share}
    asked["equal_within"] = None if chosen.equal_within == "none" else codes[chosen.equal_within]
    asked |= {"at_most": chosen.at_most, "fixed_shares": fixed}
    rules = {PUBLISHED: Constraints(**asked)}
    alike = {name: Constraints(non_negative=chosen.non_negative, equal_within=codes[of]) for name, of in GROUPS.items()}
    return rules | alike


def unlimited(rules: Mapping[str, Constraints]) -> Constraints:
    """Return the constraints of the published weights without ``at_most``, whose search may take seconds."""
    return replace(rules[PUBLISHED], at_most=None)


def held(
    rules: Mapping[str, Constraints], solved: Mapping[str, OptimalWeights], config: Config
) -> dict[str, Constraints]:
    """Return the constraints for draws: with ``at_most``, the items chosen at the point estimate stay chosen.

    The draws then tell how sure the weights of these items are, not how sure the choice is. Where no item helps, none
    is chosen, and the draws are without ``at_most``.
    """
    weights, rule = solved[PUBLISHED].weights, unlimited(rules)
    if config.published.at_most is not None and weights.any():
        left_out: dict[int | str, float] = dict.fromkeys(np.flatnonzero(weights == 0).tolist(), 0.0)
        rule = replace(rule, fixed_shares=left_out)
    return dict(rules) | {PUBLISHED: rule}


def averaged_weights(
    model: ItemAggregation, draws: GameDraws, rules: Mapping[str, Constraints], config: Config
) -> FloatArray | None:
    """Return the weights (m,) under the constraints that are best on average over draws of slopes.

    None where slopes cannot be drawn or there is no room for enough draws, where no weights help, and with ``at_most``.
    """
    if "slopes" not in draws.parts or config.published.at_most is not None:
        return None
    game = averaged_game(model, draws.of(model))
    found = None if game is None else optimal_weights(game, rules[PUBLISHED]).weights
    return found if found is not None and found.any() else None


def uncertainty_of(
    model: ItemAggregation,
    draws: GameDraws,
    rules: Mapping[str, Constraints],
    schemes: Mapping[str, FloatArray],
    *,
    risk_aversions: FloatArray,
    config: Config,
    limit: int,
    notes: list[str],
) -> WeightUncertainty | None:
    """Return weights and schemes over draws, None where nothing can be drawn; ``notes`` gain why, or what was drawn.

    ``limit`` bounds the draws beside the configuration and the room there is.
    """
    level, m = config.resampling.level, model.welfare.size
    replicates = min(config.published.draws, MAX_CELLS // m, limit)
    if not draws.parts:
        notes.extend((*draws.notes, "Weights have no intervals: nothing that they rest on can be drawn."))
        return None
    if tail_count(replicates, level) < 1:
        why = f"{count(replicates, 'draw')} of {m:,} items are too few for the level {level:g}"
        notes.append(
            f"Weights have no intervals: {why} (published.draws, estimates.replicates, at most {MAX_CELLS:,} cells)."
        )
        return None
    found = weight_uncertainty(
        model,
        draws.of(model),
        constraints=rules,
        schemes=schemes,
        risk_aversions=risk_aversions,
        reference=PUBLISHED,
        replicates=replicates,
        level=level,
        top=config.published.top,
    )
    drawn = " and ".join([", ".join(draws.parts[:-1]), draws.parts[-1]] if draws.parts[1:] else draws.parts)
    kept = [name for name in ("slopes", "noise", "welfare") if name not in draws.parts]
    notes.append(
        f"Intervals of weights: {count(replicates, 'draw')} of {drawn}; {', '.join([*kept, 'prices'])} and curvature "
        "as they are."
    )
    notes.extend(draws.notes)
    if config.published.at_most is not None:
        notes.append(
            "Published weights: in every draw the items chosen here stay chosen; how sure the choice is, is open."
            if found.spreads[PUBLISHED].weights.any()
            else "Published weights: no item helps here, so none is chosen; the draws are without published.at_most."
        )
    for name, spread in found.spreads.items():
        if spread.idle > 0:
            helped = replicates - round(spread.idle * replicates)
            few = ", too few for intervals" if tail_count(helped, level) < 1 else ""
            notes.append(
                f"Shares of weights {name}: intervals are over the {count(helped, 'draw')} of {replicates:,} in which "
                f"some such weights help{few}."
            )
    for name, missed in found.not_converged.items():
        notes.append(f"Weights {name}: {count(missed, 'draw')} without a converged optimum; as far as they came.")
    return found


def group_weights(
    groups: pl.Series, weights: OptimalWeights, uncertainty: WeightUncertainty | None, *, name: str
) -> pl.DataFrame:
    """Return one row a group of items that carry one weight.

    Columns: name, items, share (of the group's items together; null where no weights help), uniform_share (under the
    plain average), lo, hi (interval of share), kept (part of the draws with a weight), efficiency (of these weights,
    the same in every row), efficiency_lo, efficiency_hi.
    """
    spread = None if uncertainty is None else uncertainty.spreads[name]
    judged = None if uncertainty is None or name not in uncertainty.names else uncertainty.scheme(name)
    unknown = np.full(weights.weights.size, np.nan)
    per_item = pl.DataFrame(
        {
            "name": groups,
            "share": weights.shares,
            "lo": unknown if spread is None else spread.share_lo,
            "hi": unknown if spread is None else spread.share_hi,
            "kept": unknown if spread is None else spread.kept,
        }
    )
    table = per_item.group_by("name", maintain_order=True).agg(
        pl.len().cast(pl.Int64).alias("items"), pl.col("share", "lo", "hi").sum(), pl.col("kept").first()
    )
    ends = (None, None) if judged is None else (judged.efficiency_lo, judged.efficiency_hi)
    return table.select(
        "name",
        "items",
        "share",
        (pl.col("items") / groups.len()).alias("uniform_share"),
        "lo",
        "hi",
        "kept",
        pl.lit(weights.efficiency).alias("efficiency"),
        *(
            pl.lit(end, dtype=pl.Float64).alias(f"efficiency_{way}")
            for way, end in zip(("lo", "hi"), ends, strict=True)
        ),
    ).with_columns(pl.col(pl.Float64).fill_nan(None))
