"""From an item audit to weights: the aggregation game on the items that have all three statistics.

Welfare w_i = (share w_auto + (1 - share) w_aug) - neutral, technology A_ik = slope / price (score per
dollar), noise Sigma = diag(sigma2_i) or, from a panel, with the covariance over seeds; curvature C = c0 I from a stated
budget. All of these are choices of the configuration; none is in the data. Beside v* stand the weights that a board can
publish, and how sure both are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from benchwright._check import FloatArray
from benchwright._shown import Shown
from benchwright.auditing.results import ItemAudit
from benchwright.choices import LabChoices
from benchwright.config import BUILT_IN_SOURCES, Config
from benchwright.estimating.estimates import PanelEstimates
from benchwright.logs.item_tables import ITEM, ItemTables
from benchwright.mechanism import published as boards
from benchwright.mechanism.aggregation import ItemAggregation, evaluate_scheme, optimal_weights, risk_sweep
from benchwright.mechanism.break_even import FRAMINGS as FRAMINGS
from benchwright.mechanism.break_even import IN_FORCE as IN_FORCE
from benchwright.mechanism.break_even import BreakEven, break_evens, calibrated, framings_of, neutral_sweep
from benchwright.mechanism.draws import draw_game, full_covariance
from benchwright.mechanism.item_groups import fixed_shares, item_groups
from benchwright.mechanism.moved_slopes import shrinkage_notes
from benchwright.mechanism.results import Calibration, OptimalWeights, RiskSweep, SchemeResult, shares_of
from benchwright.mechanism.schemes import effort_of, schemes_of
from benchwright.mechanism.sensitivity import price_of
from benchwright.mechanism.uncertainty import OPTIMUM, WeightUncertainty
from benchwright.mechanism.weighed_items import joined_items, priced_axes, slopes_used
from benchwright.mechanism.welfare_sources import WelfarePath, WelfareSource, welfare_path

SWEEP_DECADES = np.linspace(-3, 3, 25)
AVERAGED = "averaged"
EVERY = 6  # of the risk aversions of the sweep, one in one and a half decades, have intervals


@dataclass(frozen=True, slots=True, eq=False)
class ItemWeights(Shown):
    """Optimal weights of audited items and what other schemes lose.

    Attributes
    ----------
    model
        The game that was solved.
    items
        task, doc_id, welfare (centred), weight (reward / score), weight_share, weight_undetermined,
        uniform_share, published_weight, published_share, and the statistics the weight rests on. Where something can
        be drawn: weight_lo, weight_hi, weight_positive, published_lo, published_hi (of the share) and published_kept
        (part of the draws in which the item carries a published weight). Where slopes can: averaged_share, of the
        weights under the same constraints that are best on average over draws; other draws judge them as the scheme
        "averaged".
    optimum
        v* at the configured risk aversion.
    schemes
        Every scheme at the configured risk aversion, by name.
    tabulated
        Optimum and efficiencies at the configured ``lab.risk_values``.
    sweep
        The same from "noise is irrelevant" to "noise rules": r from 10^-3 to 10^3 times ``balanced_risk``.
    balanced_risk
        The r at which the risk premium of v = w equals what it earns: w'Mw / w'Sigma w, Sigma as in ``model``.
    break_even
        The neutral point above which the plain average points the wrong way: under each framing, and as
        "in force" under the configured mixture.
    neutral_sweep
        framing, neutral, efficiency, alignment of the plain average over neutral points.
    effort
        axis, scheme, usd: what the optimum and each scheme at its best scale make the developer spend.
    calibration
        c0 and the rule that fixed it; ``axes`` names the effort axes in the order of ``optimum.effort``.
    published
        Weights under the constraints of ``[published]``.
    prices
        Surplus, in reward, that each of these constraints costs.
    by_task, by_family
        Weights where all items of a task, or of a family, carry the same: see ``published.group_weights``.
    uncertainty
        Weights and schemes over draws of slopes, noise and welfare; None where nothing can be drawn.
    path
        Weights from automation to augmentation and under further sources of welfare, under the same constraints but
        ``at_most``.
    notes
        What to know before using the weights.
    """

    items: pl.DataFrame
    model: ItemAggregation
    optimum: OptimalWeights
    schemes: Mapping[str, SchemeResult]
    tabulated: RiskSweep
    sweep: RiskSweep
    balanced_risk: float
    break_even: Mapping[str, BreakEven]
    neutral_sweep: pl.DataFrame
    effort: pl.DataFrame
    calibration: Calibration
    axes: tuple[str, ...]
    published: OptimalWeights
    prices: Mapping[str, float]
    by_task: pl.DataFrame
    by_family: pl.DataFrame
    uncertainty: WeightUncertainty | None
    path: WelfarePath
    notes: tuple[str, ...]


def weigh_items(
    audit: ItemAudit,
    config: Config,
    *,
    user_weights: pl.DataFrame | None = None,
    estimates: PanelEstimates | None = None,
    tables: ItemTables | None = None,
    sources: Mapping[str, WelfareSource] | None = None,
) -> ItemWeights:
    """Solve the aggregation game on the audited items.

    Parameters
    ----------
    audit
        An audit with all three sections.
    config
        Neutral point, framing, prices, budget, risk aversion.
    user_weights
        task, doc_id, weight: a scheme to judge beside the built-in ones.
    estimates
        What a panel says: draws of slopes and noise for intervals, the covariance over seeds.
    tables
        The source of the audit: activities, their counts and the judge's rankings, for draws of welfare.
    sources
        Further values of the items, for ``path``.

    Raises
    ------
    NoWeightsError
        A section is missing, no item has all three statistics, or no effort has value (A'w = 0).
    DataError
        ``user_weights`` or a source lacks an item, or the calibration asked for does not exist.
    UsageError
        Constraints that clash, or choices of ``[published]`` that do.
    """
    items, notes = joined_items(audit, config)
    axes = priced_axes(audit, config)
    prices = np.array([config.prices[axis].usd for axis in axes])
    technology = items.select(slopes_used(items, axes, config)).to_numpy() / prices
    welfare = items["welfare"].to_numpy()
    notes += shrinkage_notes(items, axes, config.estimates.slopes)
    variance, factor = items["sigma2"].to_numpy(), np.zeros((items.height, 0))
    if estimates is not None and estimates.noise is not None and config.estimates.covariance == "full":
        variance, factor = full_covariance(estimates, items, notes)
    calibration = calibrated(technology, welfare, variance, factor, config.lab)
    model = ItemAggregation(
        technology,
        welfare,
        risk_aversion=config.lab.risk_aversion,
        noise_variance=variance,
        noise_factor=factor,
        curvature=calibration.c0,
        names=tuple(f"{task} {doc_id}" for task, doc_id in items.select(*ITEM).iter_rows()),
        axes=axes,
    )
    optimum = optimal_weights(model)
    gain = float(np.square(welfare @ technology).sum()) / calibration.c0
    risk = float(variance @ np.square(welfare) + np.square(welfare @ factor).sum())
    balanced = gain / risk if risk > 0 else np.nan
    grid = balanced * 10.0**SWEEP_DECADES if np.isfinite(balanced) and balanced > 0 else np.array([0.0])
    framings = framings_of(items, config)
    chosen = config.published
    named = {"task", "family"} | ({chosen.equal_within} - {"none"})
    groups = {name: item_groups(items, audit, tables, name) for name in sorted(named)}
    fixed = None if chosen.fixed_shares is None else fixed_shares(items, chosen.fixed_shares)
    rules = boards.constraints_of(groups, config, fixed)
    solved = {name: optimal_weights(model, rule, optimum=optimum) for name, rule in rules.items()}
    published = solved[boards.PUBLISHED]
    draws = draw_game(
        model,
        items,
        prices,
        config,
        estimates=estimates,
        tables=tables,
        improvability=audit.improvability,
        noise=audit.noise,
    )
    directions = schemes_of(items, audit, user_weights, notes)
    averaged = boards.averaged_weights(model, draws, rules, config)
    if averaged is not None:
        directions[AVERAGED] = averaged
    schemes = {
        name: evaluate_scheme(model, direction, name=name, optimum=optimum) for name, direction in directions.items()
    }
    uncertainty = boards.uncertainty_of(
        model,
        draws,
        boards.held(rules, solved, config),
        directions,
        risk_aversions=np.array([*_tabulated(config.lab), *grid[::EVERY]]),
        config=config,
        limit=config.published.draws if estimates is None else config.estimates.replicates,
        notes=notes,
    )
    by_group = {
        name: boards.group_weights(groups[of], solved[name], uncertainty, name=name)
        for name, of in boards.GROUPS.items()
    }
    others = {} if sources is None else {name: one.welfare(items, name=name) for name, one in sources.items()}
    return ItemWeights(
        model=model,
        items=items.with_columns(**_columns(optimum, published, averaged, uncertainty)),
        optimum=optimum,
        schemes=schemes,
        tabulated=risk_sweep(model, _tabulated(config.lab), directions),
        sweep=risk_sweep(model, grid, directions),
        balanced_risk=float(balanced),
        break_even=break_evens(technology, items, framings, config),
        neutral_sweep=neutral_sweep(technology, framings, variance, factor, config.lab),
        effort=effort_of(model, optimum, schemes, directions, axes),
        calibration=calibration,
        axes=axes,
        published=published,
        prices=price_of(model, rules[boards.PUBLISHED], optimum=optimum),
        by_task=by_group[boards.BY_TASK],
        by_family=by_group[boards.BY_FAMILY],
        uncertainty=uncertainty,
        path=welfare_path(
            model,
            *(framings[name] - config.welfare.neutral for name in BUILT_IN_SOURCES),
            names=BUILT_IN_SOURCES,
            others=others,
            constraints=boards.unlimited(rules),
            schemes=directions,
        ),
        notes=(*notes, *_notes(optimum), *(f"{text[0].upper()}{text[1:]}." for text in optimum.warnings)),
    )


def _columns(
    optimum: OptimalWeights,
    published: OptimalWeights,
    averaged: FloatArray | None,
    uncertainty: WeightUncertainty | None,
) -> dict[str, Any]:
    """Return the columns of weights that the items gain."""
    m = optimum.weights.size
    undetermined = np.zeros(m, dtype=bool)
    undetermined[list(optimum.undetermined)] = True
    columns = {
        "weight": optimum.weights,
        "weight_share": pl.Series(optimum.shares).fill_nan(None),
        "weight_undetermined": undetermined,
        "uniform_share": pl.lit(1.0 / m),
        "published_weight": published.weights,
        "published_share": pl.Series(published.shares).fill_nan(None),
    }
    if averaged is not None:
        columns["averaged_share"] = shares_of(averaged)
    if uncertainty is None:
        return columns
    free, bound = uncertainty.spreads[OPTIMUM], uncertainty.spreads[boards.PUBLISHED]
    return columns | {
        "weight_lo": pl.Series(free.lo),
        "weight_hi": pl.Series(free.hi),
        "weight_positive": pl.Series(free.positive),
        "published_lo": pl.Series(bound.share_lo).fill_nan(None),
        "published_hi": pl.Series(bound.share_hi).fill_nan(None),
        "published_kept": pl.Series(bound.kept),
    }


def _tabulated(lab: LabChoices) -> tuple[float, ...]:
    """Return the r in force and the configured others."""
    return tuple(dict.fromkeys((lab.risk_aversion, *lab.risk_values)))


def _notes(optimum: OptimalWeights) -> list[str]:
    if optimum.weights.sum() > 0 or not optimum.weights.any():
        return []
    return [
        "The optimal weights sum to a negative number, so shares are of the sum of absolute weights and do not add "
        "up to 1; column weight of weights.csv is no score to publish."
    ]
