"""Which audited items can carry a weight: those with welfare, slopes on every priced axis and noise, within limits."""

from __future__ import annotations

import numpy as np
import polars as pl

from benchwright._words import count
from benchwright.auditing.improvability import slope_name
from benchwright.auditing.results import ItemAudit
from benchwright.config import Config
from benchwright.errors import DataError, NoWeightsError
from benchwright.logs.item_tables import ITEM

SLOPE_COLUMNS = {"ols": "", "noise-corrected": "_corrected", "empirical-bayes": "_eb"}


def priced_axes(audit: ItemAudit, config: Config) -> tuple[str, ...]:
    """Return the axes that have slopes and a price."""
    axes = () if audit.improvability is None else audit.improvability.axes
    return tuple(axis for axis in axes if axis in config.prices)


def slopes_used(items: pl.DataFrame, axes: tuple[str, ...], config: Config) -> list[str]:
    """Return the columns of the slopes that the configuration names."""
    names = [slope_name(axis) + SLOPE_COLUMNS[config.estimates.slopes] for axis in axes]
    if not set(names) <= set(items.columns):
        raise DataError(
            f"estimates.slopes = {config.estimates.slopes} needs standard errors of slopes, which item tables lack",
            hint="audit a panel, or leave estimates.slopes at ols",
        )
    return names


def joined_items(audit: ItemAudit, config: Config) -> tuple[pl.DataFrame, list[str]]:
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
        with_errors = complete.drop_nulls(slopes_used(complete, axes, config))
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
