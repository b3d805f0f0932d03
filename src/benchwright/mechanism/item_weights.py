"""From an item audit to weights: the aggregation game on the items that have all three statistics.

Welfare w_i = (share w_auto + (1 - share) w_aug) - neutral, technology A_ik = slope / price (score per
dollar), noise Sigma = diag(sigma2_i) or, from a panel, with the covariance over seeds; curvature C = c0 I from a stated
budget. All of these are choices of the configuration; none is in the data. Beside v* stand the weights that a board can
publish. Both are first found at the estimates (:mod:`.point_weights`); here draws say how sure they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import polars as pl

from benchwright._check import FloatArray
from benchwright.auditing.results import ItemAudit
from benchwright.config import BUILT_IN_SOURCES, Config
from benchwright.estimating.estimates import PanelEstimates
from benchwright.logs.item_tables import ItemTables
from benchwright.mechanism import published as boards
from benchwright.mechanism.aggregation import evaluate_scheme, risk_sweep
from benchwright.mechanism.break_even import FRAMINGS as FRAMINGS
from benchwright.mechanism.break_even import IN_FORCE as IN_FORCE
from benchwright.mechanism.break_even import neutral_sweep
from benchwright.mechanism.draws import draw_game
from benchwright.mechanism.point_weights import PointWeights, risk_grid, solve_items, tabulated_risks
from benchwright.mechanism.results import shares_of
from benchwright.mechanism.schemes import effort_of
from benchwright.mechanism.uncertainty import OPTIMUM, WeightUncertainty
from benchwright.mechanism.welfare_sources import WelfarePath, WelfareSource, welfare_path

AVERAGED = "averaged"
EVERY = 6  # of the risk aversions of the sweep, one in one and a half decades, have intervals


@dataclass(frozen=True, slots=True, eq=False)
class ItemWeights(PointWeights):
    """Optimal weights of audited items, what other schemes lose, and how sure both are.

    Attributes beyond those of ``PointWeights``
    -------------------------------------------
    items
        Where something can be drawn, also: weight_lo, weight_hi, weight_positive, published_lo, published_hi (of the
        share) and published_kept (part of the draws in which the item carries a published weight). Where slopes can:
        averaged_share, of the weights under the same constraints that are best on average over draws; other draws
        judge them as the scheme "averaged".
    neutral_sweep
        framing, neutral, efficiency, alignment of the plain average over neutral points.
    uncertainty
        Weights and schemes over draws of slopes, noise and welfare; None where nothing can be drawn.
    path
        Weights from automation to augmentation and under further sources of welfare, under the same constraints but
        ``at_most``.
    """

    neutral_sweep: pl.DataFrame
    uncertainty: WeightUncertainty | None
    path: WelfarePath


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
    game = solve_items(audit, config, user_weights=user_weights, estimates=estimates, tables=tables)
    point, rules, directions = game.weights, game.rules, dict(game.directions)
    model, items, notes = point.model, game.items, list(point.notes)
    draws = draw_game(
        model,
        items,
        np.array([config.prices[axis].usd for axis in point.axes]),
        config,
        estimates=estimates,
        tables=tables,
        improvability=audit.improvability,
        noise=audit.noise,
    )
    schemes = dict(point.schemes)
    averaged = boards.averaged_weights(model, draws, rules, config)
    if averaged is not None:
        directions[AVERAGED] = averaged
        schemes[AVERAGED] = evaluate_scheme(model, averaged, name=AVERAGED, optimum=point.optimum)
    grid = risk_grid(point.balanced_risk)
    told: list[str] = []
    uncertainty = boards.uncertainty_of(
        model,
        draws,
        boards.held(rules, game.solved, config),
        directions,
        risk_aversions=np.array([*tabulated_risks(config.lab), *grid[::EVERY]]),
        config=config,
        limit=config.published.draws if estimates is None else config.estimates.replicates,
        notes=told,
    )
    by_group = {
        name: boards.group_weights(game.groups[of], game.solved[name], uncertainty, name=name)
        for name, of in boards.GROUPS.items()
    }
    others = {} if sources is None else {name: one.welfare(items, name=name) for name, one in sources.items()}
    drawn: dict[str, Any] = {
        "items": point.items.with_columns(**_columns(averaged, uncertainty)),
        "schemes": schemes,
        "tabulated": risk_sweep(model, tabulated_risks(config.lab), directions),
        "sweep": risk_sweep(model, grid, directions),
        "effort": effort_of(model, point.optimum, schemes, directions, point.axes),
        "by_task": by_group[boards.BY_TASK],
        "by_family": by_group[boards.BY_FAMILY],
        "notes": (*notes[: game.n_notes], *told, *notes[game.n_notes :]),
    }
    kept = {spec.name: getattr(point, spec.name) for spec in fields(PointWeights)}
    return ItemWeights(
        **kept | drawn,
        neutral_sweep=neutral_sweep(
            model.technology,
            game.framings,
            np.asarray(model.noise_variance),
            np.asarray(model.noise_factor),
            config.lab,
        ),
        uncertainty=uncertainty,
        path=welfare_path(
            model,
            *(game.framings[name] - config.welfare.neutral for name in BUILT_IN_SOURCES),
            names=BUILT_IN_SOURCES,
            others=others,
            constraints=boards.unlimited(rules),
            schemes=directions,
        ),
    )


def _columns(averaged: FloatArray | None, uncertainty: WeightUncertainty | None) -> dict[str, Any]:
    """Return the columns of weights that the items gain by draws."""
    columns: dict[str, Any] = {} if averaged is None else {"averaged_share": shares_of(averaged)}
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
