"""The audit of item tables: welfare, improvability and noise, each where the source supports it."""

from __future__ import annotations

import numpy as np
import polars as pl

from benchwright._words import count
from benchwright.auditing.contrast import contrast_families
from benchwright.auditing.families import UNLISTED, FamilyMap, family_map
from benchwright.auditing.frontier import mark_dominators, mark_frontier, summarise_frontier
from benchwright.auditing.improvability import audit_improvability
from benchwright.auditing.noise import audit_noise
from benchwright.auditing.panel_tables import audit_quality, checkpoints_of
from benchwright.auditing.results import FamilyContrast, ItemAudit, WelfareAudit
from benchwright.auditing.robustness import robustness_table
from benchwright.auditing.welfare import activity_map, judges_welfare, quadrant, quadrant_shares, rank_weights
from benchwright.auditing.welfare_draws import welfare_errors
from benchwright.choices import WelfareChoices
from benchwright.config import Config
from benchwright.errors import DataError, Fault
from benchwright.estimating.estimates import PanelEstimates
from benchwright.logs.item_tables import DEFAULT_JUDGE, ITEM, ItemTables

PUBLISHED_TOLERANCE = 1e-6
LEAST = 1  # of an activity's value
FEW_TASKS = 10


def audit_items(tables: ItemTables, config: Config, *, estimates: PanelEstimates | None = None) -> ItemAudit:
    """Audit item tables: published ones, or those that :mod:`benchwright.auditing.panel_tables` makes of a panel.

    Parameters
    ----------
    tables
        What :func:`benchwright.logs.item_tables.read_item_tables` returned.
    config
        Every choice; randomness comes from ``config.resampling.seed`` alone.
    estimates
        What a panel says beyond its tables.

    Raises
    ------
    DataError
        A chosen activity score has no table, or no item has a welfare value.
    """
    improvability = noise = None
    if tables.cost is not None:
        improvability = audit_improvability(tables.cost, tables.axes, prices=config.prices, limits=config.eligibility)
    if tables.noise is not None:
        noise = audit_noise(
            tables.noise,
            tables.margins,
            families=family_map(config.families.noise, of_source=tables.families, default="benchmark"),
            limits=config.eligibility,
            level=config.resampling.level,
            checkpoints=None if estimates is None else checkpoints_of(estimates),
        )
    welfare = None
    if tables.loadings or tables.welfare is not None:
        welfare = _audit_welfare(tables, config)
    quality = None if estimates is None else audit_quality(estimates)
    return ItemAudit(welfare, improvability, noise, notes=tables.notes, quality=quality)


def _audit_welfare(tables: ItemTables, config: Config) -> WelfareAudit:
    choices = config.welfare
    families = family_map(config.families.welfare, of_source=tables.families)
    robust = family_map(config.families.robustness, of_source=tables.families, default="robustness")
    notes: list[str] = []
    judged = tables.main_loadings
    if not judged:
        items = _stated_welfare(tables, choices)
        notes.append("The source has no judge's loadings: no activity map, no robustness table.")
        activities = quadrants = robustness = pl.DataFrame()
    else:
        if choices.activity_score not in tables.activities:
            raise DataError(
                "welfare.activity_score = mean needs gwa_welfare_scores_mean.csv",
                faults=[Fault("gwa_welfare_scores_mean.csv", "no such file in the source")],
            )
        values = tables.activities[choices.activity_score]
        items = judges_welfare(judged, values, top_k=choices.top_k, rule=choices.rank_weights)
        loadings = pl.concat(judged)
        if len(judged) > 1:
            notes.append(
                f"Welfare is the mean over the judges {', '.join(tables.main)}; slots are those of all of them."
            )
        top_k, thresholds = choices.top_k, tuple(sorted({*choices.thresholds, choices.quadrant_threshold}))
        activities = activity_map(loadings, values, top_k=top_k, thresholds=thresholds)
        quadrants = quadrant_shares(loadings, values, items, top_k=top_k, thresholds=thresholds)
        robustness = robustness_table(items, tables.loadings, tables.activities, robust, choices, tables.main)
        items = items.with_columns(welfare_errors(items, tables, choices))
    known = items.drop_nulls(["w_auto", "w_aug"])
    if known.height == 0:
        raise DataError(
            f"{tables.name}: no item has a welfare value in both framings",
            hint="check that judge_loadings.jsonl has both perspectives and names activities that are kept",
        )
    if known.height < items.height:
        left = items.height - known.height
        lack = "lacks" if left == 1 else "lack"
        notes.append(f"{count(left, 'item')} {lack} a welfare value in one framing and count no further.")
    if low := items.filter((pl.col("w_auto") < LEAST) | (pl.col("w_aug") < LEAST)).height:
        notes.append(
            f"{count(low, 'item')} below {LEAST}, the least value of an activity: dropped or missing ranks add 0; shown"
            " as it comes out."
        )
    pair = robust.pair(robust.assign(known["task"]))
    mark = quadrant(pl.col("w_auto"), pl.col("w_aug"), choices.quadrant_threshold)
    items = mark_frontier(items.with_columns(quadrant=mark))
    items, contrast = _contrast(items, families, config, notes)
    return WelfareAudit(
        items=items,
        activities=activities,
        quadrants=quadrants,
        robustness=robustness,
        robustness_first=None if pair is None else pair[0],
        contrast=contrast,
        published_gap=_published_gap(items, tables, choices, notes),
        notes=tuple(notes),
    )


def _stated_welfare(tables: ItemTables, choices: WelfareChoices) -> pl.DataFrame:
    """Return the source's own welfare.csv on [1,5]: sums over ranks, or one value per item as it stands."""
    if tables.welfare is None:
        raise DataError(f"{tables.name}: neither judge_loadings.jsonl nor welfare.csv")
    scale = float(rank_weights(choices.top_k, choices.rank_weights).sum())
    if "value" in tables.welfare.columns:
        value = pl.col("value")
        return tables.welfare.select(
            *ITEM, w_auto_raw=value * scale, w_aug_raw=value * scale, w_auto=value, w_aug=value
        )
    return tables.welfare.select(
        *ITEM,
        w_auto_raw="w_auto",
        w_aug_raw="w_aug",
        w_auto=pl.col("w_auto") / scale,
        w_aug=pl.col("w_aug") / scale,
    )


def _published_gap(items: pl.DataFrame, tables: ItemTables, choices: WelfareChoices, notes: list[str]) -> float | None:
    """Compare with the source's own welfare.csv, where both were made by the same rule."""
    as_published = WelfareChoices()
    same = all(
        getattr(choices, name) == getattr(as_published, name) for name in ("top_k", "rank_weights", "activity_score")
    )
    if not same or not tables.main_loadings or tables.main != (DEFAULT_JUDGE,):
        return None
    if tables.welfare is None or "value" in tables.welfare.columns:
        return None
    both = items.join(tables.welfare, on=ITEM, suffix="_published")
    own, stated = both["w_auto_raw", "w_aug_raw"], both["w_auto_published", "w_aug_published"]
    gaps = np.abs(own.to_numpy().astype(float) - stated.to_numpy().astype(float))
    if np.isnan(gaps).all():
        notes.append("welfare.csv has no item in common with judge_loadings.jsonl.")
        return None
    gap = np.nanmax(gaps)
    if gap > PUBLISHED_TOLERANCE:
        notes.append(
            f"Welfare recomputed from loadings differs from welfare.csv by up to {gap:.3g}; "
            "the recomputed values are used."
        )
    return float(gap)


def _contrast(
    items: pl.DataFrame, families: FamilyMap, config: Config, notes: list[str]
) -> tuple[pl.DataFrame, FamilyContrast | None]:
    items = items.with_columns(families.assign(items["task"]))
    known = items.drop_nulls(["w_auto", "w_aug"])
    pair = families.pair(known["family"])
    if pair is None:
        notes.append(
            f"Under the family map {families.name} all items are of one family, so nothing is contrasted; "
            "set families.welfare to a map of your tasks."
        )
        return items, None
    first, second, side = pair
    known = mark_dominators(known.with_columns(side.alias("side")))
    tasks = known["task"].rank("dense").to_numpy().astype(np.int64) - 1
    draws = config.resampling
    contrasts = [
        contrast_families(
            known[value].to_numpy(),
            tasks,
            (known["side"] == second).to_numpy(),
            names=(first, second),
            replicates=draws.replicates,
            level=draws.level,
            rng=np.random.default_rng([draws.seed, stream]),
        )
        for stream, value in enumerate(("w_auto", "w_aug"))
    ]
    for family in (contrasts[0].first, contrasts[0].second):
        if family.n_tasks < FEW_TASKS:
            notes.append(
                f"Family {family.name} has only {count(family.n_tasks, 'task')}: "
                + (
                    "intervals and tests that resample tasks are rough."
                    if family.n_tasks > 1
                    else "there is no interval, since one task says nothing of how tasks differ."
                )
            )
    pooled = known["family"].n_unique()
    if pooled > 2:
        notes.append(f"{pooled} families: {first} is contrasted with all others, pooled as {second}.")
    unlisted = known.filter(pl.col("family") == UNLISTED)["task"].n_unique()
    if unlisted:
        notes.append(f"The family map {families.name} does not list {count(unlisted, 'task')}: family {UNLISTED}.")
    items = items.join(known.select(*ITEM, "side", "n_dominators"), on=ITEM, how="left", maintain_order="left")
    return items, FamilyContrast(
        first, second, families.name, families.definition, contrasts[0], contrasts[1], summarise_frontier(known, first)
    )
