"""What an audit returns: one frozen record per section, tables as polars frames."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from benchwright._shown import Shown
from benchwright.auditing.contrast import Contrast
from benchwright.auditing.frontier import FrontierSummary
from benchwright.judge.activities import COGNITIVE


@dataclass(frozen=True, slots=True)
class FamilyContrast(Shown):
    """Two families of items on both welfare framings, and their frontier.

    ``first`` and ``second`` are the families' names under the map ``families``; differences are second
    minus first.
    """

    first: str
    second: str
    families: str
    definition: str
    w_auto: Contrast
    w_aug: Contrast
    frontier: FrontierSummary


@dataclass(frozen=True, slots=True)
class WelfareAudit(Shown):
    """Welfare per item, the activity map, quadrant shares, the family contrast, robustness.

    ``items``: task, doc_id, w_auto_raw, w_aug_raw, w_auto, w_aug (on [1,5]), quadrant, on_frontier, and
    where two families are contrasted side and n_dominators. ``activities``, ``quadrants`` and
    ``robustness`` are empty frames where the source has no judge's loadings. ``robustness_first`` is the
    family whose dominated share the robustness table follows. ``published_gap`` is the largest difference to
    the source's own welfare.csv, None where there is nothing to compare.
    """

    items: pl.DataFrame
    activities: pl.DataFrame
    quadrants: pl.DataFrame
    robustness: pl.DataFrame
    robustness_first: str | None
    contrast: FamilyContrast | None
    published_gap: float | None
    notes: tuple[str, ...] = ()

    @property
    def says_workers(self) -> bool:
        """Whether values are what workers say: each activity is one of the 27, or of so many rated tasks."""
        known = [activity.id for activity in COGNITIVE]
        table = self.activities
        return not table.height or bool(
            table.select((pl.col("activity").is_in(known) | pl.col("n_tasks").is_not_null()).all()).item()
        )


@dataclass(frozen=True, slots=True)
class ImprovabilityAudit(Shown):
    """Dollars per unit of score, per item and axis, the cheapest axis, the quantile table."""

    items: pl.DataFrame
    by_axis: pl.DataFrame
    quantiles: pl.DataFrame
    axes: tuple[str, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NoiseAudit(Shown):
    """Seed noise per item, normalised, by family, the quantile table."""

    items: pl.DataFrame
    by_family: pl.DataFrame
    quantiles: pl.DataFrame
    reference_z: float
    share_below_reference: float
    families: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class QualityAudit(Shown):
    """Dead items, items that run against the rest, redundant pairs.

    ``items``: task, doc_id, margin_ratio (only where no noise is estimable, and choices are there), n_models, dead,
    item_rest_r, reversed_p, reversed_q, quality_verdict, n_redundant, redundant_group. ``pairs``: the redundant pairs
    by task and doc_id, with their correlation. ``counts``: items by verdict.
    """

    items: pl.DataFrame
    pairs: pl.DataFrame
    counts: Mapping[str, int]
    notes: tuple[str, ...] = ()


Section = WelfareAudit | ImprovabilityAudit | NoiseAudit | QualityAudit


@dataclass(frozen=True, slots=True)
class ItemAudit(Shown):
    """All sections of one audit; a section that the source cannot support is None."""

    welfare: WelfareAudit | None
    improvability: ImprovabilityAudit | None
    noise: NoiseAudit | None
    notes: tuple[str, ...] = ()
    quality: QualityAudit | None = None

    @property
    def sections(self) -> Mapping[str, Section]:
        """The sections that were audited, by name."""
        named: dict[str, Section | None] = {"welfare": self.welfare, "improvability": self.improvability}
        named |= {"noise": self.noise, "quality": self.quality}
        return {name: section for name, section in named.items() if section is not None}
