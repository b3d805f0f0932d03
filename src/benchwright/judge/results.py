"""What a judge's run gives: a ranked list per item and framing, what failed and why, and what it used."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from benchwright._json import json_safe
from benchwright._shown import Headline, Shown, ShownPart
from benchwright._words import count, percent
from benchwright.judge.budget import Tokens

SCHEMA: Mapping[str, Any] = {
    "task": pl.String,
    "doc_id": pl.String,
    "perspective": pl.String,
    "ok": pl.Boolean,
    "activities": pl.List(pl.String),
    "reason": pl.String,
    "notes": pl.List(pl.String),
    "answers": pl.Int64,
    "text_sha256": pl.String,
}


@dataclass(frozen=True, slots=True)
class JudgeRun(Shown):
    """A judge's lists.

    Attributes
    ----------
    model, baseline
        Who judged, and whether that is a baseline and no judge.
    lists
        One row per item and framing that was reached: task, doc_id, perspective, ok, activities (ranked ids),
        reason (why not ok), notes (what was repaired), answers (used for it), text_sha256. Last come those that earlier
        runs left in the folder.
    kept
        How many those are.
    not_reached
        Items and framings that the run was asked for and stopped before.
    stopped
        Why it stopped early; None where it did not.
    detail
        That in the server's words, which may quote an item: printed, and in no file.
    answers, new_answers, unreported
        Answers in the folder, those of this run, and those whose tokens are the most they can be.
    tokens, usd
        Of all answers in the folder; usd is None without prices.
    notes
        What a reader should know.
    provenance
        Settings, checksums and versions.
    """

    model: str
    baseline: bool
    lists: pl.DataFrame
    kept: int
    not_reached: int
    stopped: str | None
    detail: str
    answers: int
    new_answers: int
    unreported: int
    tokens: Tokens
    usd: float | None
    notes: tuple[str, ...]
    provenance: Mapping[str, Any]

    @property
    def own(self) -> pl.DataFrame:
        """The lists that this run was asked for."""
        return self.lists.head(self.lists.height - self.kept)

    @property
    def failures(self) -> pl.DataFrame:
        """The lists that failed, with the reason."""
        return self.lists.filter(~pl.col("ok")).select("task", "doc_id", "perspective", "reason")

    def variety(self) -> dict[str, float | None]:
        """Return per framing the share of distinct lists among those judged; None where there is none."""
        judged = self.lists.filter("ok").with_columns(joined=pl.col("activities").list.join(" "))
        shares: dict[str, float | None] = {}
        for perspective in self.provenance["perspectives"]:
            joined = judged.filter(pl.col("perspective") == perspective)["joined"]
            shares[perspective] = joined.n_unique() / len(joined) if len(joined) else None
        return shares

    def _told(self) -> Iterable[ShownPart]:
        good = int(self.lists["ok"].sum())
        reasons = Counter(self.failures["reason"]).most_common()
        yield Headline(f"{'baseline' if self.baseline else 'judge'} {self.model}: {count(self.items, 'item')}")
        yield f"  lists        {good:,} judged, {len(self.lists) - good:,} failed, {self.not_reached:,} not reached"
        if self.kept:
            yield f"  kept         {self.kept:,} of these lists, of earlier runs on the folder"
        yield from (f"  failed       {number:,}: {reason}" for reason, number in reasons)
        for perspective, share in self.variety().items():
            yield f"  {perspective:<12} {percent(share)} of its lists are distinct"
        if not self.baseline:
            cost = "price not given" if self.usd is None else f"${self.usd:,.4f}"
            yield f"  answers      {self.answers:,}, of them {self.new_answers:,} new"
            yield f"  used         {self.tokens.sent:,} tokens in, {self.tokens.received:,} out, {cost}"
        if self.stopped is not None:
            yield f"stopped early: {self.stopped}{self.detail}"
        yield from (f"note: {note}" for note in self.notes)

    @property
    def items(self) -> int:
        """Items that have a list, or a reason why not."""
        return self.lists.select("task", "doc_id").n_unique()

    def to_frame(self) -> pl.DataFrame:
        """Return the lists, one row per item and framing."""
        return self.lists

    def to_dict(self) -> dict[str, Any]:
        """Return what run.json holds: everything but the lists and ``detail``; of the lists the failures."""
        good = int(self.lists["ok"].sum())
        whole: dict[str, Any] = json_safe(
            {
                "model": self.model,
                "baseline": self.baseline,
                **self.provenance,
                "items": self.items,
                "lists": {"judged": good, "failed": len(self.lists) - good, "not_reached": self.not_reached},
                "kept_lists": self.kept,
                "distinct_lists": self.variety(),
                "stopped": self.stopped,
                "usage": {
                    "answers": self.answers,
                    "answers_without_reported_tokens": self.unreported,
                    "input_tokens": self.tokens.sent,
                    "output_tokens": self.tokens.received,
                    "usd": self.usd,
                },
                "notes": list(self.notes),
                "failures": self.failures.to_dicts(),
            }
        )
        return whole
