"""From an item audit to weights: the aggregation game on the items that have all three statistics.

Welfare w_i = (share w_auto + (1 - share) w_aug) - neutral, technology A_ik = slope / price (score per
dollar), noise Sigma = diag(sigma2_i) or, from a panel, with the covariance over seeds; curvature C = c0 I from a stated
budget. All of these are choices of the configuration; none is in the data. From a panel, weights come with intervals.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, cast

import numpy as np
import polars as pl

from benchwright._check import FloatArray
from benchwright._words import count
from benchwright.auditing.improvability import slope_name
from benchwright.auditing.results import ItemAudit
from benchwright.choices import LabChoices
from benchwright.config import Config
from benchwright.errors import DataError, Fault, NoWeightsError
from benchwright.estimating.estimates import PanelEstimates
from benchwright.logs.item_tables import ITEM
from benchwright.mechanism.aggregation import ItemAggregation, evaluate_scheme, optimal_weights, risk_sweep
from benchwright.mechanism.break_even import BreakEven, break_even
from benchwright.mechanism.calibration import calibrate_curvature
from benchwright.mechanism.results import Calibration, OptimalWeights, RiskSweep, SchemeResult
from benchwright.mechanism.weight_intervals import full_covariance, weight_intervals

FRAMINGS = {"automation": "w_auto", "augmentation": "w_aug"}
IN_FORCE = "in force"
SLOPE_COLUMNS = {"ols": "", "noise-corrected": "_corrected", "empirical-bayes": "_eb"}
STREAM = 2  # of the seed; 0 and 1 are the welfare contrasts
SWEEP_DECADES = np.linspace(-3, 3, 25)
NEUTRAL_POINTS = np.linspace(1.0, 5.0, 41)


@dataclass(frozen=True, slots=True, eq=False)
class ItemWeights:
    """Optimal weights of audited items and what other schemes lose.

    Attributes
    ----------
    model
        The game that was solved.
    items
        task, doc_id, welfare (centred), weight (reward / score), weight_share, weight_undetermined,
        uniform_share, and the statistics the weight rests on.
    optimum
        v* at the configured risk aversion.
    schemes
        Every scheme at the configured risk aversion, by name.
    tabulated
        Optimum and efficiencies at the configured ``lab.risk_values``.
    sweep
        The same from "noise is irrelevant" to "noise rules": r from 10^-3 to 10^3 times ``balanced_risk``.
    balanced_risk
        The r at which the risk premium of v = w equals what it earns: w'Mw / w'Sigma w.
    break_even
        The neutral point above which the plain average points the wrong way: under each framing, and as
        "in force" under the configured mixture.
    neutral_sweep
        framing, neutral, efficiency, alignment of the plain average over neutral points.
    effort
        axis, scheme, usd: what the optimum and each scheme at its best scale make the developer spend.
    calibration
        c0 and the rule that fixed it; ``axes`` names the effort axes in the order of ``optimum.effort``.
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
    notes: tuple[str, ...]


def weigh_items(
    audit: ItemAudit,
    config: Config,
    *,
    user_weights: pl.DataFrame | None = None,
    estimates: PanelEstimates | None = None,
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

    Raises
    ------
    NoWeightsError
        A section is missing, no item has all three statistics, or no effort has value (A'w = 0).
    DataError
        ``user_weights`` lacks an item, or the calibration asked for does not exist.
    """
    items, notes = _joined(audit, config)
    axes = priced_axes(audit, config)
    prices = np.array([config.prices[axis].usd for axis in axes])
    technology = items.select(_slopes_used(items, axes, config)).to_numpy() / prices
    welfare, noise = items["welfare"].to_numpy(), items["sigma2"].to_numpy()
    calibration = _calibrate(technology, welfare, noise, config.lab)
    variance, factor = noise, None
    if estimates is not None and estimates.noise is not None and config.estimates.covariance == "full":
        variance, factor = full_covariance(estimates, items, notes)
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
    directions = _schemes(items, audit, user_weights, notes)
    schemes = {
        name: evaluate_scheme(model, direction, name=name, optimum=optimum) for name, direction in directions.items()
    }
    gain, risk = float(np.sum((technology.T @ welfare) ** 2)) / calibration.c0, float(noise @ welfare**2)
    balanced = gain / risk if risk > 0 else np.nan
    grid = balanced * 10.0**SWEEP_DECADES if np.isfinite(balanced) and balanced > 0 else np.array([0.0])
    undetermined = np.zeros(items.height, dtype=bool)
    undetermined[list(optimum.undetermined)] = True
    framings = _framings(items, config)
    intervals = None
    if estimates is not None:
        intervals = weight_intervals(model, estimates, items, prices, config, notes)
    return ItemWeights(
        model=model,
        items=items.with_columns(
            weight=optimum.weights,
            weight_share=pl.Series(optimum.shares).fill_nan(None),
            weight_undetermined=undetermined,
            uniform_share=pl.lit(1.0 / items.height),
            **({} if intervals is None else intervals),
        ),
        optimum=optimum,
        schemes=schemes,
        tabulated=risk_sweep(model, _tabulated(config.lab), directions),
        sweep=risk_sweep(model, grid, directions),
        balanced_risk=float(balanced),
        break_even=_break_even(technology, items, framings, config),
        neutral_sweep=_neutral_sweep(technology, framings, noise, config.lab),
        effort=_effort(model, optimum, schemes, directions, axes),
        calibration=calibration,
        axes=axes,
        notes=(*notes, *_notes(optimum), *(f"{text[0].upper()}{text[1:]}." for text in optimum.warnings)),
    )


def priced_axes(audit: ItemAudit, config: Config) -> tuple[str, ...]:
    """Return the axes that have slopes and a price."""
    axes = () if audit.improvability is None else audit.improvability.axes
    return tuple(axis for axis in axes if axis in config.prices)


def _slopes_used(items: pl.DataFrame, axes: tuple[str, ...], config: Config) -> list[str]:
    """Return the columns of the slopes that the configuration names."""
    names = [slope_name(axis) + SLOPE_COLUMNS[config.estimates.slopes] for axis in axes]
    if not set(names) <= set(items.columns):
        raise DataError(
            f"estimates.slopes = {config.estimates.slopes} needs standard errors of slopes, which item tables lack",
            hint="audit a panel, or leave estimates.slopes at ols",
        )
    return names


def _tabulated(lab: LabChoices) -> tuple[float, ...]:
    """Return the r in force and the configured others."""
    return tuple(dict.fromkeys((lab.risk_aversion, *lab.risk_values)))


def _framings(items: pl.DataFrame, config: Config) -> dict[str, FloatArray]:
    """Return welfare on [1,5] under each framing, and under the mixture that is in force."""
    framings = {name: items[column].to_numpy() for name, column in FRAMINGS.items()}
    return framings | {IN_FORCE: items["welfare"].to_numpy() + config.welfare.neutral}


def _notes(optimum: OptimalWeights) -> list[str]:
    if optimum.weights.sum() > 0 or not optimum.weights.any():
        return []
    return [
        "The optimal weights sum to a negative number, so shares are of the sum of absolute weights and do not add "
        "up to 1; weights.csv is no score to publish as it stands."
    ]


def _effort(
    model: ItemAggregation,
    optimum: OptimalWeights,
    schemes: Mapping[str, SchemeResult],
    directions: Mapping[str, FloatArray],
    axes: tuple[str, ...],
) -> pl.DataFrame:
    """Return what each scheme at its best scale makes the developer spend, in dollars per axis."""
    c0 = float(model.curvature)
    spent = {"optimum": optimum.effort}
    for name, direction in directions.items():
        spent[name] = schemes[name].best_scale * (model.technology.T @ direction) / c0
    rows = [(name, axis, float(usd)) for name, effort in spent.items() for axis, usd in zip(axes, effort, strict=True)]
    return pl.DataFrame(rows, schema=["scheme", "axis", "usd"], orient="row")


def _joined(audit: ItemAudit, config: Config) -> tuple[pl.DataFrame, list[str]]:
    """Return the items with welfare, slopes on every axis and noise, and what was left out."""
    prior = 0.0 if config.lab.risk_aversion == 0 else config.lab.noise_prior
    missing = {"welfare", "improvability", "noise"} - set(audit.sections) - (set() if prior is None else {"noise"})
    axes = priced_axes(audit, config)
    if missing or audit.welfare is None or audit.improvability is None:
        raise NoWeightsError(f"weights need welfare, improvability and noise; missing: {', '.join(sorted(missing))}")
    if not axes:
        raise NoWeightsError("weights need the price of an axis; add one to [prices] in benchwright.toml")
    notes = []
    share = config.welfare.automation_share
    slopes = [slope_name(axis) for axis in axes]
    together = audit.welfare.items.select(*ITEM, "w_auto", "w_aug").join(audit.improvability.items, on=ITEM)
    if audit.noise is not None:
        together = together.join(audit.noise.items, on=ITEM)
    else:
        notes.append(f"Noise is not measured: a variance of {prior:g} over seeds is taken for every item.")
        root = float(np.sqrt(prior or 0.0))
        together = together.with_columns(sigma2=pl.lit(prior), sigma=pl.lit(root), noise_eligible=pl.lit(True))
    complete = together.drop_nulls(["w_auto", "w_aug", "sigma2", *slopes])
    if config.estimates.slopes != "ols":
        with_errors = complete.drop_nulls(_slopes_used(complete, axes, config))
        if with_errors.height < complete.height:
            left = complete.height - with_errors.height
            notes.append(
                f"{count(left, 'item')} without a standard error on every axis: no {config.estimates.slopes} slope."
            )
        complete = with_errors
    items = complete.filter(pl.col("cost_eligible") & pl.col("noise_eligible")).sort(*ITEM)
    if items.height == 0:
        kind = "" if config.estimates.slopes == "ols" else f"{config.estimates.slopes} "
        raise NoWeightsError(
            f"no item has welfare, {kind}slopes and noise, and lies within the eligibility limits",
            hint="check that task and doc_id name the same items in all tables, widen [eligibility], or use "
            "estimates.slopes = ols",
        )
    if complete.height < together.height:
        left = together.height - complete.height
        notes.append(f"{count(left, 'item')} of all three tables without a welfare value or a slope: no weight.")
    if items.height < complete.height:
        left = complete.height - items.height
        notes.append(f"{count(left, 'item')} with all three statistics outside the eligibility limits: no weight.")
    mixture = share * pl.col("w_auto") + (1 - share) * pl.col("w_aug")
    keep = [*ITEM, "w_auto", "w_aug", *slopes, "cost_usd", "cheapest_axis", "sigma2", "sigma"]
    ends = ("_se", "_corrected", "_eb", "_eb_sd")
    keep += [slope + end for slope in slopes for end in ends if slope + end in items.columns]
    return items.select(keep).with_columns(welfare=mixture - config.welfare.neutral), notes


def _calibrate(technology: FloatArray, welfare: FloatArray, noise: FloatArray, lab: LabChoices) -> Calibration:
    if lab.curvature is not None:
        return Calibration(lab.curvature, "given", "lab.curvature is set")
    return calibrate_curvature(
        technology,
        welfare,
        noise_variance=noise,
        risk_aversion=lab.risk_aversion,
        budget=lab.budget,
        rule=cast(Literal["auto", "uniform", "first-best"], lab.calibration),
    )


def _schemes(
    items: pl.DataFrame, audit: ItemAudit, user_weights: pl.DataFrame | None, notes: list[str]
) -> dict[str, FloatArray]:
    """Return the directions to judge; each sums to 1 except the user's, which stay as given."""
    tasks = items.select("task").with_columns(n=pl.len().over("task"))
    n_here = tasks["n"].to_numpy().astype(float)
    everywhere = pl.concat([section.items.select(*ITEM) for section in audit.sections.values()]).unique()
    sizes = everywhere.group_by("task").agg(size=pl.len())
    size = tasks.join(sizes, on="task", how="left", maintain_order="left")["size"].to_numpy().astype(float)
    by_size = size / n_here
    schemes = {
        "uniform": np.full(items.height, 1.0 / items.height),
        "task_means": 1.0 / (n_here * items["task"].n_unique()),
        "size_weighted": by_size / by_size.sum(),
    }
    if user_weights is not None:
        schemes["user"] = _user_scheme(items, user_weights, notes)
    return schemes


def _user_scheme(items: pl.DataFrame, user_weights: pl.DataFrame, notes: list[str]) -> FloatArray:
    if user_weights["doc_id"].dtype != items["doc_id"].dtype:
        raise DataError("the user's weights and the source do not share item ids: one has text, one integers")
    joined = items.select(*ITEM).join(user_weights, on=ITEM, how="left", maintain_order="left")
    missing = joined.filter(pl.col("weight").is_null())
    if missing.height:
        raise DataError(
            f"the user's weights lack {missing.height} of the {items.height} items with all three statistics",
            faults=[
                Fault("weights", f"no weight for ({task}, {doc_id})")
                for task, doc_id in missing.select(*ITEM).iter_rows()
            ],
            hint="write 0 for an item that the score leaves out",
        )
    if user_weights.height > items.height:
        notes.append(f"The user's weights name {user_weights.height - items.height} items beyond those judged here.")
    return joined["weight"].to_numpy()


def _break_even(
    technology: FloatArray, items: pl.DataFrame, framings: Mapping[str, FloatArray], config: Config
) -> dict[str, BreakEven]:
    tasks = items["task"].rank("dense").to_numpy().astype(np.int64) - 1
    draws = config.resampling
    return {
        framing: break_even(
            technology,
            welfare,
            tasks,
            replicates=draws.replicates,
            level=draws.level,
            rng=np.random.default_rng([draws.seed, STREAM]),
        )
        for framing, welfare in framings.items()
    }


def _neutral_sweep(
    technology: FloatArray, framings: Mapping[str, FloatArray], noise: FloatArray, lab: LabChoices
) -> pl.DataFrame:
    """Return the plain average's efficiency over neutral points.

    The curvature is calibrated anew at each point, by the rule auto, unless ``lab.curvature`` is set.
    """
    rows = []
    uniform = np.full(len(noise), 1.0 / len(noise))
    for framing, stated in framings.items():
        for neutral in NEUTRAL_POINTS:
            welfare = stated - neutral
            try:
                c0 = _calibrate(technology, welfare, noise, replace(lab, calibration="auto")).c0
            except DataError:  # no effort has value at this neutral point
                rows.append((framing, float(neutral), np.nan, 0))
                continue
            model = ItemAggregation(
                technology, welfare, risk_aversion=lab.risk_aversion, noise_variance=noise, curvature=c0
            )
            result = evaluate_scheme(model, uniform)
            rows.append((framing, float(neutral), result.efficiency, result.alignment))
    schema = ["framing", "neutral", "efficiency", "alignment"]
    return pl.DataFrame(rows, schema=schema, orient="row").with_columns(pl.col("efficiency").fill_nan(None))
