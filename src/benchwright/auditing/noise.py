"""Noise: how far an item's score moves when only the training seed changes.

sigma_i is the standard deviation over seeds within a checkpoint, pooled over checkpoints, and p_i the mean
score. An item near p = 1/2 has room to move, so the Bernoulli-normalised

    Z_i = sigma_i / sqrt(p_i (1 - p_i))

compares items at different levels. The reference line 1/sqrt(K) of K checkpoints is the paper's; it is no
lower bound (most published items lie below it). For scores in [0,1], Z <= sqrt(N / (N - K)).
"""

from __future__ import annotations

import numpy as np
import polars as pl
from scipy import stats

from benchwright._words import count
from benchwright.auditing.families import FamilyMap
from benchwright.auditing.ranks import published_ranks, quantile_table, rank_ascending
from benchwright.auditing.results import NoiseAudit
from benchwright.choices import EligibilityChoices
from benchwright.estimating.eligibility import noise_eligible
from benchwright.logs.item_tables import ITEM

MIN_ITEMS_FOR_CORRELATION = 30
SAME_SIGMA = 1e-3  # the stated sigma has more digits than the root of a rounded variance
PANEL_COLUMNS = ("sigma2_lo", "sigma2_hi", "sigma2_df", "noisiest_probability", "noise_why")
WON = 0.5  # an item whose mean score exceeds this is one that the models get right
BY_FAMILY = {
    "family": pl.String,
    "n": pl.Int64,
    "median_p": pl.Float64,
    "median_sigma": pl.Float64,
    "median_z": pl.Float64,
    "z_lo": pl.Float64,
    "z_hi": pl.Float64,
    "n_p_over_half": pl.Int64,
    "median_ratio": pl.Float64,
    "r_ratio_z": pl.Float64,
}


def audit_noise(
    noise: pl.DataFrame,
    margins: pl.DataFrame | None,
    *,
    families: FamilyMap,
    limits: EligibilityChoices,
    level: float = 0.95,
    checkpoints: int | None = None,
) -> NoiseAudit:
    """Normalise, rank and decompose item noise.

    Parameters
    ----------
    noise
        task, doc_id, noise_sigma2 (score^2), noise_mean_phat (score), optionally noise_sigma_hat, ranks.
    margins
        task, doc_id, log_ratio_med: median ratio gold / runner-up of per-character log-likelihoods
        (1 is a tie, below 1 the gold choice wins); None where the source has none.
    families
        Families of the decomposition.
    limits
        Eligible items have ``noise_low <= p <= noise_high`` and ``sigma2 >= min_sigma2``.
    level
        Level of the interval of a family's median Z over its items.
    checkpoints
        K of the reference line; by default that of the limits.

    Further columns of ``noise`` (``PANEL_COLUMNS``) come from a panel and are kept. ``bounded`` false: scores leave
    [0, 1], so there is no Z and no limit on the mean score.
    """
    notes = []
    if "bounded" not in noise.columns:
        noise = noise.with_columns(bounded=pl.lit(True))
    p = pl.col("mean_score")
    items = noise.rename({"noise_sigma2": "sigma2", "noise_mean_phat": "mean_score"})
    root = pl.col("sigma2").sqrt()
    if "noise_sigma_hat" in items.columns:
        agrees = (pl.col("noise_sigma_hat") - root).abs() <= SAME_SIGMA * root
        off = items.filter(~agrees).height
        if off:
            notes.append(f"noise_sigma_hat is not the root of noise_sigma2 in {count(off, 'row')}; the root is used.")
        root = pl.when(agrees).then("noise_sigma_hat").otherwise(root)
    items = items.with_columns(sigma=root).with_columns(
        z=pl.when((p > 0) & (p < 1) & pl.col("bounded")).then(pl.col("sigma") / (p * (1 - p)).sqrt()),
        noise_eligible=noise_eligible(limits).fill_null(False),
    )
    if margins is None:
        items = items.with_columns(margin_ratio=pl.lit(None, dtype=pl.Float64))
        notes.append("The source has no margins (item_margins.parquet), so noise is not split by margin.")
    else:
        items = items.join(
            margins.select(*ITEM, margin_ratio="log_ratio_med"), on=ITEM, how="left", maintain_order="left"
        )
    eligible = items.filter("noise_eligible")
    without = eligible["margin_ratio"].null_count()
    if 0 < without < eligible.height:
        notes.append(f"{count(without, 'eligible item')} without a margin are left out of the table of families.")
    ranked, why = published_ranks(rank_ascending(eligible, "sigma"))
    if why is not None:
        notes.append(f"Noise ranks have no intervals: {why}.")
    ranks = ranked.select(*ITEM, noise_rank="position", noise_rank_lo="rank_lo", noise_rank_hi="rank_hi")
    keep = [*ITEM, "mean_score", "sigma2", "sigma", "z", "margin_ratio", "noise_eligible"]
    keep += [name for name in PANEL_COLUMNS if name in items.columns]
    reference = 1 / np.sqrt(limits.checkpoints if checkpoints is None else checkpoints)
    normalised = eligible["z"].drop_nulls().to_numpy()
    return NoiseAudit(
        items=items.select(keep).join(ranks, on=ITEM, how="left", maintain_order="left"),
        by_family=_by_family(eligible, families, level),
        quantiles=quantile_table(ranked, "sigma"),
        reference_z=float(reference),
        share_below_reference=float(np.mean(normalised < reference)) if len(normalised) else np.nan,
        families=families.name,
        notes=tuple(notes),
    )


def _by_family(eligible: pl.DataFrame, families: FamilyMap, level: float) -> pl.DataFrame:
    """Return per family, over items with a margin where any has one: medians and the margin's correlation.

    Sorted by median sigma, largest first. ``r_ratio_z`` is Pearson's correlation of |ratio - 1| with Z over
    all items of the family (null under 30 items); ``median_ratio`` is over items with mean score > 0.5;
    ``z_lo`` and ``z_hi`` bound the median of Z by order statistics.
    """
    with_margin = eligible.drop_nulls("margin_ratio")
    table = with_margin if with_margin.height else eligible
    rows = []
    for (family,), mine in table.with_columns(families.assign(table["task"])).group_by("family"):
        won = mine.filter(pl.col("mean_score") > WON)
        correlation = None
        if mine.height >= MIN_ITEMS_FOR_CORRELATION and mine["margin_ratio"].null_count() == 0:
            correlation = mine.select(pl.corr((pl.col("margin_ratio") - 1).abs(), "z")).item()
        rows.append(
            {
                "family": family,
                "n": mine.height,
                "median_p": mine["mean_score"].median(),
                "median_sigma": mine["sigma"].median(),
                "median_z": mine["z"].median(),
                **_median_interval(mine["z"].drop_nulls(), level),
                "n_p_over_half": won.height,
                "median_ratio": won["margin_ratio"].median(),
                "r_ratio_z": correlation,
            }
        )
    order = pl.DataFrame(rows, schema=BY_FAMILY).sort("median_sigma", "family", descending=[True, False])
    return order.with_columns(pl.col("r_ratio_z").fill_nan(None))


def _median_interval(values: pl.Series, level: float) -> dict[str, float | None]:
    """Return the distribution-free interval of a median: the order statistics that binomial tails allow.

    Null where there are too few values for the level.
    """
    n = len(values)
    place = int(stats.binom.ppf((1 - level) / 2, n, 0.5)) if n else 0
    if place == 0:
        return {"z_lo": None, "z_hi": None}
    ranked = values.sort()
    return {"z_lo": ranked[place - 1], "z_hi": ranked[n - place]}
