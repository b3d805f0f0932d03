"""Asks a judge about many items at once: a fixed number of workers, each with one call in flight.

A worker takes the next item and framing, asks until an answer can be used or the tries are used up, and puts every
answer into the journal before it goes on. An answer that the journal has is never asked for again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, Protocol, TypeVar

import msgspec

from benchwright.judge.budget import Budget, BudgetSpentError, Tokens
from benchwright.judge.items import JudgeItem
from benchwright.judge.journal import Journal, Record
from benchwright.judge.prompting import Prompts, fingerprint
from benchwright.judge.repair import read_answer
from benchwright.judge.settings import JudgeSettings

MOST_UNANSWERED = 10  # calls in a row without an answer, after which the server is taken to be gone
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model wrote, whether it was cut off, and the tokens that its provider reported (None: not reported)."""

    text: str
    cut_off: bool = False
    used: Tokens | None = None


class NoAnswerError(Exception):
    """A call came to no answer. ``reason`` holds no text of the server, ``detail`` does: it may quote an item.

    ``fatal``: no other call will do better.
    """

    def __init__(self, reason: str, *, fatal: bool = False, detail: str = "") -> None:
        self.reason, self.fatal, self.detail = reason, fatal, detail
        super().__init__(reason)


class Asked(Protocol):
    """A model that can be asked; ``versions`` names the libraries that it is asked through."""

    @property
    def versions(self) -> Mapping[str, str]: ...

    async def ask(self, system: str, user: str) -> Reply:
        """Return the model's reply, or raise :class:`NoAnswerError`."""

    async def close(self) -> None:
        """Close its connections."""


@dataclass(frozen=True, slots=True)
class Call:
    """One item under one framing."""

    item: JudgeItem
    perspective: str

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What its answers are found by."""
        return self.item.task, self.item.doc_id, self.perspective, fingerprint(self.item.text)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a call: ranked ids, what was repaired, answers used, and why it failed (None where it did not)."""

    activities: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    answers: int = 0
    failed: str | None = None


class Asking:
    """One run over calls: ``outcomes`` fills as answers come.

    ``stopped`` says why it ended early, if it did, and ``detail`` in the server's words.
    """

    def __init__(
        self,
        judge: Asked,
        prompts: Prompts,
        *,
        known: frozenset[str],
        settings: JudgeSettings,
        journal: Journal,
        progress: Callable[[str], None],
    ) -> None:
        self.judge, self.prompts, self.known, self.settings = judge, prompts, known, settings
        self.journal, self.progress = journal, progress
        spent = (Tokens(record.input_tokens, record.output_tokens) for record in journal.records.values())
        self.budget = Budget(settings, sum(spent, Tokens()))
        self.outcomes: dict[Call, Outcome] = {}
        self.asked = 0
        self.stopped: str | None = None
        self.detail = ""
        self._unanswered = 0

    async def run(self, calls: Sequence[Call]) -> None:
        """Take what the journal has, then ask until every call has its outcome or no further call may be made."""
        recorded = {call: self._outcome(self._answers(call)) for call in calls}
        self.outcomes = {call: outcome for call, outcome in recorded.items() if outcome is not None}
        waiting = iter([call for call in calls if call not in self.outcomes])
        try:
            await asyncio.gather(*(self._work(waiting, len(calls)) for _ in range(self.settings.connections)))
        finally:
            await self.judge.close()

    async def _work(self, waiting: Iterator[Call], of: int) -> None:
        for call in waiting:
            outcome = await self._asked_for(call)
            if outcome is None:
                return
            self.outcomes[call] = outcome
            self.progress(f"judged {len(self.outcomes):,} of {of:,}")

    def _answers(self, call: Call) -> list[Record]:
        """Return a call's recorded answers, in the order of the tries."""
        keys = ((*call.key, number) for number in range(self.settings.tries))
        records = self.journal.records
        return [records[key] for key in takewhile(records.__contains__, keys)]

    def _outcome(self, answers: list[Record]) -> Outcome | None:
        """Return what answers come to; None where another one is needed."""
        if answers and answers[-1].refused is None:
            return Outcome(answers[-1].activities, answers[-1].notes, len(answers))
        if len(answers) == self.settings.tries:
            return Outcome(answers=len(answers), failed=f"no usable answer: {answers[-1].refused}")
        return None

    async def _asked_for(self, call: Call) -> Outcome | None:
        """Ask until there is an outcome; None where the run stops before."""
        answers = self._answers(call)
        while (outcome := self._outcome(answers)) is None:
            if self.stopped:
                return None
            blank = Record(*call.key, len(answers), activities=())
            reason = answers[-1].refused if answers else None
            try:
                answers.append(await self._ask(blank, self.prompts.user(call.item.text, reason=reason)))
            except BudgetSpentError:
                self.stopped = f"the next call might exceed the budget: {self.budget}"
            except NoAnswerError as error:
                return self._without_answer(error, len(answers))
        return outcome

    async def _ask(self, blank: Record, user: str) -> Record:
        system = self.prompts.system[blank.perspective]
        most = self.budget.most(len(system.encode()) + len(user.encode()) + self.prompts.schema_bytes)
        await self.budget.reserve(most)
        used = Tokens()
        try:
            reply = await self.judge.ask(system, user)
            self._unanswered = 0
            self.asked += 1
            used = most if reply.used is None else reply.used
            record = self._read(blank, reply, used)
            self.journal.add(record)
        finally:
            await self.budget.settle(most, used)
        return record

    def _read(self, blank: Record, reply: Reply, used: Tokens) -> Record:
        answer = read_answer(reply.text, known=self.known, ranked=self.settings.ranked)
        refused = answer.refused
        if refused is not None and reply.cut_off:
            refused = f"it is cut off after {self.settings.max_output_tokens:,} tokens (max_output_tokens)"
        return msgspec.structs.replace(
            blank,
            activities=answer.activities,
            notes=answer.notes,
            refused=refused,
            input_tokens=used.sent,
            output_tokens=used.received,
            reported=reply.used is not None,
        )

    def _without_answer(self, error: NoAnswerError, answers: int) -> Outcome | None:
        """Return a failed outcome, or None and the reason to stop where no other call will do better."""
        self._unanswered += 1
        if error.fatal:
            self.stopped, self.detail = f"the provider refuses every call: {error.reason}", error.detail
            return None
        if self._unanswered >= MOST_UNANSWERED:
            self.stopped = f"{MOST_UNANSWERED} calls in a row came to no answer, the last with {error.reason}"
            self.detail = error.detail
            return None
        return Outcome(answers=answers, failed=f"no answer: {error.reason}")


def run_to_end(work: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine to its end, also where an event loop is at work already, as in a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1) as other:
        return other.submit(asyncio.run, work).result()
