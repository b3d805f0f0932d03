"""What a judge is sent: the instructions of a framing, and one item that is data and not instruction.

An item stands between tags whose number is a checksum of its text, so that no text can hold its own closing tag.
The instructions are the same for all items of a framing: providers that keep the start of a prompt charge it once.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from string import Template
from typing import Any

from benchwright.judge.definitions import PROMPTS, Activity
from benchwright.logs.judge_loadings import PERSPECTIVES

AGAIN = "An earlier answer could not be used: $reason. Answer again, in the form that was asked for."


@dataclass(frozen=True, slots=True)
class Prompts:
    """The filled instructions per framing, the schema of an answer, and the checksum of all that may be sent.

    The checksum is over both framings, so that one may be asked for after the other in the same folder.
    """

    system: Mapping[str, str]
    schema: Mapping[str, Any]
    sha256: str

    @property
    def schema_bytes(self) -> int:
        """Size of the schema, which is sent with every call."""
        return len(json.dumps(self.schema))

    @classmethod
    def of(cls, activities: Sequence[Activity], *, perspectives: Sequence[str], ranked: int) -> Prompts:
        """Fill the instructions with the activities and the number of ranks that is asked for."""
        listed = "\n".join(f"- {activity.id}: {activity.name}. {activity.definition}" for activity in activities)
        ids = [activity.id for activity in activities]
        system = {
            perspective: Template(_read("system.txt")).substitute(
                framing=_read(f"{perspective}.txt").strip(),
                ranked=ranked,
                activities=listed,
                examples=_examples(perspective, frozenset(ids), ranked),
                tag="item-NUMBER",
            )
            for perspective in PERSPECTIVES
        }
        texts = {"type": "array", "items": {"type": "string"}}
        schema = {
            "type": "object",
            "properties": {
                "sub_steps": texts,
                "ranked_activities": {"type": "array", "items": {"type": "string", "enum": ids}},
            },
            "required": ["sub_steps", "ranked_activities"],
            "additionalProperties": False,
        }
        whole = json.dumps([system, schema, _read("item.txt"), AGAIN], sort_keys=True)
        chosen = {perspective: system[perspective] for perspective in perspectives}
        return cls(chosen, schema, hashlib.sha256(whole.encode()).hexdigest())

    def user(self, text: str, *, reason: str | None = None) -> str:
        """Return the message that holds one item; ``reason`` says why an earlier answer was not usable."""
        again = "" if reason is None else Template(AGAIN).substitute(reason=reason)
        tag = f"item-{fingerprint(text)[:20]}"
        return Template(_read("item.txt")).substitute(tag=tag, item=text, again=again).strip()


def fingerprint(text: str) -> str:
    """Return the checksum that stands for an item's text where the text itself is not kept."""
    return hashlib.sha256(text.encode()).hexdigest()


def _examples(perspective: str, known: frozenset[str], ranked: int) -> str:
    """Return the worked examples; none for a set of activities that lacks their ids."""
    examples = json.loads(_read("examples.json"))
    if not all(known.issuperset(example[perspective]) for example in examples):
        return ""
    lines = ["", "Examples"]
    for example in examples:
        answer = {"sub_steps": example["sub_steps"], "ranked_activities": example[perspective][:ranked]}
        lines += [f"Item: {example['item']}", f"Answer: {json.dumps(answer)}", ""]
    return "\n".join(lines)


@cache
def _read(name: str) -> str:
    return (PROMPTS / name).read_text(encoding="utf-8")
