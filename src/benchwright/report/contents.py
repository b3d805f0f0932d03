"""Everything that a report is made of, in one frozen record."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import polars as pl

from benchwright._shown import Folded, Headline, Shown, ShownPart, ShownTable
from benchwright.auditing.items import item_layer
from benchwright.auditing.results import ItemAudit
from benchwright.board.results import Leaderboard
from benchwright.config import Config
from benchwright.estimating.estimates import PanelEstimates
from benchwright.game_answers.inputs import GameResult
from benchwright.logs.item_tables import ITEM, ItemTables
from benchwright.mechanism.item_weights import ItemWeights
from benchwright.report.inputs import AuditInputs
from benchwright.report.welfare_evidence import WelfareEvidence

OF_WEIGHTS = ("weight", "published_", "averaged_")  # how columns of weights begin
NO_SCORES = "the source has item statistics but no scores per model, so there is no leaderboard to score again"


@dataclass(frozen=True, slots=True, eq=False)
class AuditReport(Shown):
    """An audit, its weights, and the assumptions behind both.

    Attributes
    ----------
    source
        The tables as read.
    audit
        Welfare, improvability and noise of the items.
    weights
        The aggregation game, or None; then ``no_weights`` says why.
    config
        Every choice with its value and where it came from.
    version
        Version of benchwright.
    estimates
        What a panel says, None where the source is item tables.
    board
        A panel's models under the published weights, None where there are none; then ``no_board`` says why.
    game
        What the ranking game of the same board says, None where none was given.
    evidence
        Who judged the items, how far judges agree, what would change the ranking; None without a judge.
    inputs
        What was read, for those who make the report again; None where it was not all named.
    """

    source: ItemTables
    audit: ItemAudit
    weights: ItemWeights | None
    no_weights: str | None
    config: Config
    version: str
    estimates: PanelEstimates | None = None
    board: Leaderboard | None = None
    no_board: str | None = NO_SCORES
    game: GameResult | None = None
    evidence: WelfareEvidence | None = None
    inputs: AuditInputs | None = None

    @property
    def items(self) -> pl.DataFrame:
        """The item metadata layer, one row per (task, doc_id)."""
        weights = None
        if self.weights is not None:
            names = [name for name in self.weights.items.columns if name.startswith(OF_WEIGHTS)]
            weights = self.weights.items.select(*ITEM, *names)
        return item_layer(self.audit, topics=self.source.topics, weights=weights)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know before trusting a figure, in the order of the sections."""
        notes = [*self.audit.notes]
        for section in self.audit.sections.values():
            notes += section.notes
        if self.evidence is not None:
            notes += self.evidence.notes
        if self.weights is not None:
            notes += self.weights.notes
        elif self.no_weights is not None:
            notes.append(f"No weights: {self.no_weights}.")
        if self.no_leaderboard is not None:
            notes.append(f"No leaderboard.csv: {self.no_leaderboard}.")
        if self.board is not None:
            notes += [f"Board under the published weights: {note}." for note in self.board.notes]
        elif self.no_board is not None and self.no_board != self.no_leaderboard:
            notes.append(f"No board under the published weights: {self.no_board}.")
        return tuple(dict.fromkeys(notes))

    @property
    def no_leaderboard(self) -> str | None:
        """Why there is no leaderboard, None where there is one."""
        if self.estimates is None:
            return NO_SCORES
        return self.estimates.reasons.get("models")

    def to_frame(self) -> pl.DataFrame:
        """Return the item metadata layer."""
        return self.items

    def to_dict(self) -> dict[str, Any]:
        """Return what summary.json holds."""
        from benchwright.report.summary import summary

        return summary(self)

    def _told(self) -> Iterable[ShownPart]:
        from benchwright.report.findings import findings
        from benchwright.report.tables import tables

        yield from (Headline(finding.title, finding.text) for finding in findings(self))
        for table in tables(self):
            cells = ShownTable([column.heading for column in table.columns], list(table.rows()))
            yield Folded(table.title, [cells])
