"""Tokens and dollars: an estimate before, a bound per call while asking, the sum after.

A call is made only if the budget covers the most that it and the calls in flight can use: one token a byte sent, more
than a tokeniser over bytes makes, and the longest answer allowed. So a budget is never exceeded by what the
provider reports; requests that a server took and never answered are not known to it.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from benchwright.judge.settings import JudgeSettings

BYTES_PER_TOKEN = 4  # usual for English; other scripts and formulas have fewer
ANSWER_TOKENS = 250  # assumed of an answer before any is known
FRAME_TOKENS = 200  # of the messages' frame, at most


@dataclass(frozen=True, slots=True)
class Tokens:
    """Tokens sent and received."""

    sent: int = 0
    received: int = 0

    def __add__(self, other: Tokens) -> Tokens:
        return Tokens(self.sent + other.sent, self.received + other.received)

    def __sub__(self, other: Tokens) -> Tokens:
        return Tokens(self.sent - other.sent, self.received - other.received)


def estimate(sent_bytes: int) -> Tokens:
    """Return about what a call uses that sends so many bytes."""
    return Tokens(sent_bytes // BYTES_PER_TOKEN, ANSWER_TOKENS)


class BudgetSpentError(Exception):
    """The next call might exceed the budget."""


class Budget:
    """Lets calls start while the budget covers the most that they can use. ``spent`` grows with every answer."""

    def __init__(self, settings: JudgeSettings, spent: Tokens) -> None:
        self.settings = settings
        self.spent = spent
        self._reserved = Tokens()
        self._in_flight = 0
        self._changed = asyncio.Condition()

    def most(self, sent_bytes: int) -> Tokens:
        """Return the most that a call can use that sends so many bytes."""
        return Tokens(sent_bytes + FRAME_TOKENS, self.settings.max_output_tokens)

    def __str__(self) -> str:
        used = f"{self.spent.sent + self.spent.received:,} tokens"
        usd = self.settings.usd(self.spent.sent, self.spent.received)
        limits = {"max_tokens": self.settings.max_tokens, "max_usd": self.settings.max_usd}
        given = ", ".join(f"{name} = {value:,}" for name, value in limits.items() if value is not None)
        return f"{used}{'' if usd is None else f' (${usd:,.4f})'} of {given} used"

    async def reserve(self, call: Tokens) -> None:
        """Wait until the call is covered; raise where it is not though no other call is in flight."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._covers(call) or not self._in_flight)
            if not self._covers(call):
                raise BudgetSpentError
            self._reserved += call
            self._in_flight += 1

    async def settle(self, call: Tokens, used: Tokens) -> None:
        """Replace what was reserved for a call by what it used."""
        async with self._changed:
            self._reserved -= call
            self._in_flight -= 1
            self.spent += used
            self._changed.notify_all()

    def _covers(self, call: Tokens) -> bool:
        whole = self.spent + self._reserved + call
        limit = self.settings.max_tokens
        usd = self.settings.usd(whole.sent, whole.received)
        over_usd = self.settings.max_usd is not None and usd is not None and usd > self.settings.max_usd
        return not over_usd and (limit is None or whole.sent + whole.received <= limit)
