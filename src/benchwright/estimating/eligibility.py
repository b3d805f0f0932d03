"""Which items enter the rankings of cost and noise: one rule for published tables and for panels."""

from __future__ import annotations

import polars as pl

from benchwright.choices import EligibilityChoices


def noise_eligible(limits: EligibilityChoices) -> pl.Expr:
    """Return whether mean score and variance lie within the limits; null where they are unknown.

    Needs the columns mean_score, sigma2 and bounded: scores that leave [0, 1] have no limits on their mean.
    """
    inside = pl.col("mean_score").is_between(limits.noise_low, limits.noise_high) | ~pl.col("bounded")
    return inside & (pl.col("sigma2") >= limits.min_sigma2)


def cost_eligible(limits: EligibilityChoices) -> pl.Expr:
    """Return whether the anchor lies within the limits and some axis improves the item.

    Needs the columns anchor, cost_usd and bounded.
    """
    inside = pl.col("anchor").is_between(limits.anchor_low, limits.anchor_high) | ~pl.col("bounded")
    return inside & pl.col("cost_usd").is_not_null()
