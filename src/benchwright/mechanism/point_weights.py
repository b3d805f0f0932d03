"""The aggregation game at the estimates: the weights that solve it and what other schemes keep, without draws.

This is the part of :mod:`.item_weights` that answers a change of a choice at once.
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
from benchwright.config import Config
from benchwright.estimating.estimates import PanelEstimates
from benchwright.logs.item_tables import ITEM, ItemTables
from benchwright.mechanism import published as boards
from benchwright.mechanism.aggregation import ItemAggregation, evaluate_scheme, optimal_weights, risk_sweep
from benchwright.mechanism.break_even import BreakEven, break_evens, calibrated, framings_of
from benchwright.mechanism.constraints import Constraints
from benchwright.mechanism.draws import full_covariance
from benchwright.mechanism.item_groups import fixed_shares, item_groups
from benchwright.mechanism.moved_slopes import shrinkage_notes
from benchwright.mechanism.results import Calibration, OptimalWeights, RiskSweep, SchemeResult
from benchwright.mechanism.schemes import effort_of, schemes_of
from benchwright.mechanism.sensitivity import price_of
from benchwright.mechanism.weighed_items import joined_items, priced_axes, slopes_used

SWEEP_DECADES = np.linspace(-3, 3, 25)


@dataclass(frozen=True, slots=True, eq=False)
class PointWeights(Shown):
    """Optimal weights of audited items at the estimates, and what other schemes lose.

    Attributes
    ----------
    items
        task, doc_id, welfare (centred), weight (reward / score), weight_share, weight_undetermined,
        uniform_share, published_weight, published_share, and the statistics the weight rests on.
    model
        The game that was solved.
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
    effort: pl.DataFrame
    calibration: Calibration
    axes: tuple[str, ...]
    published: OptimalWeights
    prices: Mapping[str, float]
    by_task: pl.DataFrame
    by_family: pl.DataFrame
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class SolvedGame:
    """The weights with what was asked of them: ``items`` before they gain columns, groups and constraints by name, the
    weights under each, the schemes' directions, and welfare on [1,5] under each framing.

    The first ``n_notes`` notes of the weights are of the items, the others of the weights.
    """

    weights: PointWeights
    items: pl.DataFrame
    groups: Mapping[str, pl.Series]
    rules: Mapping[str, Constraints]
    solved: Mapping[str, OptimalWeights]
    directions: Mapping[str, FloatArray]
    framings: Mapping[str, FloatArray]
    n_notes: int


def solve_items(
    audit: ItemAudit,
    config: Config,
    *,
    user_weights: pl.DataFrame | None = None,
    estimates: PanelEstimates | None = None,
    tables: ItemTables | None = None,
) -> SolvedGame:
    """Solve the aggregation game at the estimates; parameters and errors are those of ``item_weights.weigh_items``."""
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
        names=tuple(items.select(pl.format("{} {}", *ITEM)).to_series()),
        axes=axes,
    )
    optimum = optimal_weights(model)
    gain = float(np.square(welfare @ technology).sum()) / calibration.c0
    risk = float(variance @ np.square(welfare) + np.square(welfare @ factor).sum())
    balanced = gain / risk if risk > 0 else np.nan
    framings = framings_of(items, config)
    chosen = config.published
    named = {"task", "family"} | ({chosen.equal_within} - {"none"})
    groups = {name: item_groups(items, audit, tables, name) for name in sorted(named)}
    fixed = None if chosen.fixed_shares is None else fixed_shares(items, chosen.fixed_shares)
    rules = boards.constraints_of(groups, config, fixed)
    solved = {name: optimal_weights(model, rule, optimum=optimum) for name, rule in rules.items()}
    published = solved[boards.PUBLISHED]
    directions = schemes_of(items, audit, user_weights, notes)
    schemes = {
        name: evaluate_scheme(model, direction, name=name, optimum=optimum) for name, direction in directions.items()
    }
    by_group = {
        name: boards.group_weights(groups[of], solved[name], None, name=name) for name, of in boards.GROUPS.items()
    }
    weights = PointWeights(
        model=model,
        items=items.with_columns(**_columns(optimum, published)),
        optimum=optimum,
        schemes=schemes,
        tabulated=risk_sweep(model, tabulated_risks(config.lab), directions),
        sweep=risk_sweep(model, risk_grid(balanced), directions),
        balanced_risk=float(balanced),
        break_even=break_evens(technology, items, framings, config),
        effort=effort_of(model, optimum, schemes, directions, axes),
        calibration=calibration,
        axes=axes,
        published=published,
        prices=price_of(model, rules[boards.PUBLISHED], optimum=optimum, under=published),
        by_task=by_group[boards.BY_TASK],
        by_family=by_group[boards.BY_FAMILY],
        notes=(*notes, *_notes(optimum), *(f"{text[0].upper()}{text[1:]}." for text in optimum.warnings)),
    )
    return SolvedGame(weights, items, groups, rules, solved, directions, framings, len(notes))


def risk_grid(balanced: float) -> FloatArray:
    """Return the risk aversions of the sweep around the balanced one; 0 alone where there is none."""
    return balanced * 10.0**SWEEP_DECADES if np.isfinite(balanced) and balanced > 0 else np.array([0.0])


def tabulated_risks(lab: LabChoices) -> tuple[float, ...]:
    """Return the r in force and the configured others."""
    return tuple(dict.fromkeys((lab.risk_aversion, *lab.risk_values)))


def _columns(optimum: OptimalWeights, published: OptimalWeights) -> dict[str, Any]:
    """Return the columns of weights that the items gain."""
    m = optimum.weights.size
    undetermined = np.zeros(m, dtype=bool)
    undetermined[list(optimum.undetermined)] = True
    return {
        "weight": optimum.weights,
        "weight_share": pl.Series(optimum.shares).fill_nan(None),
        "weight_undetermined": undetermined,
        "uniform_share": pl.lit(1.0 / m),
        "published_weight": published.weights,
        "published_share": pl.Series(published.shares).fill_nan(None),
    }


def _notes(optimum: OptimalWeights) -> list[str]:
    if optimum.weights.sum() > 0 or not optimum.weights.any():
        return []
    return [
        "The optimal weights sum to a negative number, so shares are of the sum of absolute weights and do not add "
        "up to 1; column weight of weights.csv is no score to publish."
    ]
