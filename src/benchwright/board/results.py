"""A leaderboard with everything that it rests on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from benchwright import __version__
from benchwright._json import json_safe
from benchwright._shown import Shown, ShownPart, frame_table
from benchwright.board.rules import ScoringRules
from benchwright.board.scales import Scale
from benchwright.board.scheme import WeightScheme
from benchwright.board.values import BoardValues
from benchwright.panel.names import listed, shown

SHOWN = 50  # models that are printed
PRINTED = ("model", "score", "standard_error", "rank", "rank_lo", "rank_hi", "tie_group", "uniform_rank", "rank_change")


@dataclass(frozen=True, slots=True, eq=False)
class Leaderboard(Shown):
    """Models with their scores under a weighting scheme, best first.

    Attributes
    ----------
    frame
        model, score, standard_error, score_lo, score_hi, rank, rank_lo, rank_hi, tie_group, uniform_score,
        uniform_rank (both over all items of the board), rank_change (places gained against the plain average, among
        the models ranked by both), coverage (share of the items with weight that the model has), missing_weight (share
        of the sum of |weight| of those that it lacks). Null where there is none. ``score_unclipped`` where scores are
        clipped at chance; ``score_with_flagged`` and ``rank_with_flagged`` where items were flagged; ``added`` where
        models were added to a frozen board.
    scheme, given
        The weights of the items that count, and those that they were taken from.
    values
        The values of these items, and of those without weight that count in the plain average, as the logs have them;
        NaN where a model lacks one.
    scale
        What was done to values before they were averaged.
    rules
        How the board was scored.
    policy, numbers, notes
        The same in words, counts and critical value, and what a reader should know.
    with_flagged
        The board with the flagged items left in; None where none were flagged.
    """

    frame: pl.DataFrame
    scheme: WeightScheme
    given: WeightScheme
    values: BoardValues
    scale: Scale
    rules: ScoringRules
    policy: Mapping[str, Any]
    numbers: Mapping[str, Any]
    notes: tuple[str, ...]
    with_flagged: pl.DataFrame | None = None

    def _told(self) -> Iterable[ShownPart]:
        extra = [name for name in ("score_unclipped", "score_with_flagged", "added") if name in self.frame.columns]
        partial = ["coverage", "missing_weight"] if (self.frame["coverage"] < 1).any() else []
        yield frame_table(self.frame.select(*PRINTED, *extra, *partial), rows=SHOWN)
        yield f"weights: {self.scheme.rule} (sha256 {self.scheme.sha256[:12]})"
        of = self.values.metrics or {}
        metrics = sorted({of[task] for task in self.values.tasks if task in of})
        if metrics:
            yield f"metric: {listed(metrics, SHOWN)}"
        yield policy_text(self.policy)
        yield from self.notes

    def to_frame(self) -> pl.DataFrame:
        """Return the table."""
        return self.frame

    def to_dict(self) -> dict[str, Any]:
        """Return the table and what it rests on, without the values and the weights, as JSON-safe values."""
        record: dict[str, Any] = json_safe(
            {
                "benchwright": __version__,
                "leaderboard": self.frame.to_dicts(),
                "leaderboard_with_flagged": None if self.with_flagged is None else self.with_flagged.to_dicts(),
                "scheme": {
                    "rule": self.scheme.rule,
                    "level": self.scheme.level,
                    "items_sha256": self.scheme.items_sha256,
                    "sha256": self.scheme.sha256,
                    "assumptions": self.scheme.assumptions,
                },
                "scale": self.scale.to_dict(),
                "metrics": self.values.metrics,
                "policy": dict(self.policy),
                "numbers": {**self.numbers, "given_sha256": self.given.sha256},
                "notes": list(self.notes),
            }
        )
        return record


def policy_text(policy: Mapping[str, Any]) -> str:
    """Return a policy as one line."""
    words = {name: " ".join(value) if isinstance(value, list | tuple) else value for name, value in policy.items()}
    return "policy: " + ", ".join(f"{name} {shown(str(value))}" for name, value in words.items())
