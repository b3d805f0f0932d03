"""What a judge would be asked and about what that costs: a plan sends nothing and needs no provider."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from benchwright._shown import Headline, Shown, ShownPart
from benchwright._words import count, dollars
from benchwright.errors import UsageError
from benchwright.judge import baseline
from benchwright.judge.asking import Call
from benchwright.judge.budget import Tokens, estimate
from benchwright.judge.definitions import Activity, read_activities
from benchwright.judge.items import JudgeItem, read_items
from benchwright.judge.journal import Record, read_journal
from benchwright.judge.prompting import Prompts
from benchwright.judge.settings import JudgeSettings
from benchwright.logs.judge_loadings import PERSPECTIVES


@dataclass(frozen=True, slots=True)
class JudgePlan(Shown):
    """What a run would ask, and about what that costs.

    Attributes
    ----------
    model, source, items, perspectives, activities, settings, prompts
        What is asked of whom. ``items`` includes those that cannot be judged.
    recorded
        Answers that the folder holds already; none of them is asked for again.
    estimated
        Tokens of the lists still to ask for, if every first answer can be used (4 bytes a token, 250 tokens an answer).
    notes
        How the items were read, and what is left out.
    """

    model: str
    source: str
    items: tuple[JudgeItem, ...]
    perspectives: tuple[str, ...]
    activities: tuple[Activity, ...]
    settings: JudgeSettings
    prompts: Prompts
    recorded: int
    to_ask: int
    estimated: Tokens
    notes: tuple[str, ...]

    @property
    def baseline(self) -> bool:
        """Whether the offline baseline is asked and no model."""
        return self.model == baseline.MODEL

    @property
    def identity(self) -> dict[str, Any]:
        """What answers must share to stand in one folder."""
        return {
            "model": self.model,
            "prompt_sha256": self.prompts.sha256,
            "schema": self.settings.schema,
            "temperature": self.settings.temperature,
            "base_url": self.settings.base_url,
        }

    @property
    def keys(self) -> frozenset[tuple[str, str, str]]:
        """Task, doc_id and framing of every list that the run is asked for."""
        return frozenset((item.task, item.doc_id, name) for item in self.items for name in self.perspectives)

    def calls(self) -> list[Call]:
        """Return every item that can be judged under every framing."""
        usable = [item for item in self.items if item.problem is None]
        return [Call(item, perspective) for item in usable for perspective in self.perspectives]

    def example(self) -> str:
        """Return the filled prompt of the first item that can be judged."""
        call = next(iter(self.calls()), None)
        if call is None:
            return "no item can be judged"
        return f"{self.prompts.system[call.perspective]}\n\n{self.prompts.user(call.item.text)}"

    def _told(self) -> Iterable[ShownPart]:
        problems = sum(item.problem is not None for item in self.items)
        yield Headline(
            f"{self.model}: {count(len(self.items), 'item')} of {self.source}, {' and '.join(self.perspectives)}"
        )
        yield f"  to ask for   {self.to_ask:,} lists, {self.recorded:,} answers recorded, {problems:,} items unusable"
        if not self.baseline:
            usd = self.settings.usd(self.estimated.sent, self.estimated.received)
            cost = "price not given (--price-in, --price-out)" if usd is None else f"about {dollars(usd)}"
            tokens = f"about {self.estimated.sent:,} tokens in and {self.estimated.received:,} out"
            yield f"  estimate     {tokens}, {cost}; repeats of unusable answers come on top"
        yield from (f"note: {note}" for note in self.notes)


def plan_judging(
    items: str | Path | pl.DataFrame,
    *,
    model: str,
    perspectives: Sequence[str] = PERSPECTIVES,
    activities: str | Path | None = None,
    limit: int | None = None,
    settings: JudgeSettings | None = None,
    out: str | Path | None = None,
) -> JudgePlan:
    """Read the items and say what asking about them would take; sends nothing.

    Parameters are those of :func:`judge_items`; ``out`` is only read, for answers that it holds already.
    """
    chosen = JudgeSettings() if settings is None else settings
    unknown = [name for name in perspectives if name not in PERSPECTIVES]
    if unknown or not perspectives:
        raise UsageError(f"`perspectives` must name {' or '.join(PERSPECTIVES)}, got {', '.join(unknown) or 'none'}")
    if model.count("/") < 1 or not all(model.split("/")):
        raise UsageError(
            f"`model` must be provider/name, got {model!r}", hint=f"e.g. openai/gpt-4o-mini, or {baseline.MODEL}"
        )
    if limit is not None and limit < 1:
        raise UsageError(f"`limit` must be at least 1, got {limit}")
    known = read_activities(activities)
    read = read_items(items, max_characters=chosen.max_characters)
    kept = read.items[:limit]
    notes = list(read.notes)
    if len(kept) < len(read.items):
        notes.append(f"limit: the first {len(kept):,} of {len(read.items):,} items are judged.")
    named = sum(names_an_activity(item.text, known) for item in kept)
    if named:
        notes.append(f"the text of {count(named, 'item')} holds activity ids; the lists are noted.")
    if model == baseline.MODEL:
        notes.append(baseline.NOTE)
    asked = tuple(dict.fromkeys(perspectives))
    prompts = Prompts.of(known, perspectives=asked, ranked=chosen.ranked)
    plan = JudgePlan(model, read.source, kept, asked, known, chosen, prompts, 0, 0, Tokens(), tuple(notes))
    records = {} if out is None else read_journal(Path(out), plan.identity)
    return _with_estimate(plan, records)


def _with_estimate(plan: JudgePlan, records: Mapping[Any, Record]) -> JudgePlan:
    last = plan.settings.tries - 1
    settled = {key[:4] for key, record in records.items() if record.refused is None or record.number >= last}
    fixed = {name: len(text.encode()) + plan.prompts.schema_bytes for name, text in plan.prompts.system.items()}
    waiting = [call for call in plan.calls() if call.key not in settled]
    each = (estimate(fixed[call.perspective] + len(call.item.text.encode())) for call in waiting)
    return replace(plan, recorded=len(records), to_ask=len(waiting), estimated=sum(each, Tokens()))


def names_an_activity(text: str, activities: Sequence[Activity]) -> bool:
    """Return whether a text holds an id that no prose holds: one with an underscore."""
    return any("_" in activity.id and activity.id in text for activity in activities)
