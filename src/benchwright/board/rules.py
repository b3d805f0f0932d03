"""The rules that a board is scored by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from benchwright.board.scales import ScaleRule
from benchwright.errors import UsageError

Missing = Literal["intersect", "renormalise", "refuse", "zero"]
MAX_REPLICATES = 1_000_000


@dataclass(frozen=True, slots=True)
class ScoringRules:
    """How a board is scored.

    Attributes
    ----------
    missing
        Items that some models lack: only items that all have ("intersect"), each model on its own items and no rank
        for one that lacks more than a fifth of the weight ("renormalise"), no score for a model that lacks one with
        weight ("refuse"), or a missing item counts 0 on the scale ("zero").
    scale, clip
        Rule of :mod:`benchwright.board.scales`; under "chance", whether task scores below it count as 0.
    replicates, seed
        Draws, and where they start.
    confidence
        Of the score intervals, each alone, and of the rank intervals, all at once.
    """

    missing: Missing = "intersect"
    scale: ScaleRule = "none"
    clip: bool = True
    replicates: int = 1000
    confidence: float = 0.95
    seed: int = 0

    def __post_init__(self) -> None:
        for name, kinds in (("missing", Missing), ("scale", ScaleRule)):
            if getattr(self, name) not in get_args(kinds):
                raise UsageError(f"`{name}` must be one of {', '.join(get_args(kinds))}, got {getattr(self, name)!r}")
        if not 0 < self.confidence < 1:
            raise UsageError(f"`confidence` must lie between 0 and 1, got {self.confidence!r}")
        least = int(np.ceil(10 / (1 - self.confidence) - 1e-9))
        if type(self.replicates) is not int or self.replicates < least:
            raise UsageError(f"`replicates` must be at least 10 / (1 - confidence) = {least}, got {self.replicates}")
        if self.replicates > MAX_REPLICATES:
            raise UsageError(f"`replicates` must be at most {MAX_REPLICATES:,}, got {self.replicates:,}")
        if type(self.seed) is not int or self.seed < 0:
            raise UsageError(f"`seed` must be a whole number >= 0, got {self.seed!r}")
        if self.missing == "zero" and self.scale == "zscore":
            raise UsageError("a missing item cannot count 0 under zscore: there 0 is the average model")
