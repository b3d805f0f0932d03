"""What an answer must be, and the rule by which a faulty one is repaired or refused.

An answer is one JSON object (a code fence around it is taken off) whose ``ranked_activities`` is a list. Then

* an entry that is no id of the activity set is left out, and lower ranks move up;
* an id that comes again is left out, its first place counts;
* of more ids than were asked for the first count;
* fewer than asked for stay as they are;
* without one known id the answer is refused: the judge is asked again, and at last the item is recorded as failed.

So whatever an item's text makes a model write, a row holds known ids, none twice, at most as many as asked for.
"""

from __future__ import annotations

import json
import re
from collections.abc import Set
from dataclasses import dataclass

_FENCE = re.compile(r"\A```(?:json)?\s*\n(.*)\n\s*```\Z", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Answer:
    """The ranked ids of an answer, what was repaired, and why it is refused (None where it is not)."""

    activities: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    refused: str | None = None


def read_answer(text: str, *, known: Set[str], ranked: int) -> Answer:
    """Read a judge's answer by the rule above; never raises.

    >>> read_answer('{"ranked_activities": ["b", "x", "b", "a"]}', known={"a", "b"}, ranked=5)
    Answer(activities=('b', 'a'), notes=('1 unknown id left out', '1 repeated id left out'), refused=None)
    >>> read_answer('{"ranked_activities": ["x"]}', known={"a", "b"}, ranked=5).refused
    'it names no activity of the list'
    """
    body = text.strip()
    fenced = _FENCE.match(body)
    try:
        answer = json.loads(fenced[1] if fenced else body)
    except (ValueError, RecursionError):
        return Answer(refused="it is not one JSON object")
    if not isinstance(answer, dict):
        return Answer(refused="it is not one JSON object")
    listed = answer.get("ranked_activities")
    if not isinstance(listed, list):
        return Answer(refused="it has no list ranked_activities")
    named = [entry.strip() for entry in listed if isinstance(entry, str) and entry.strip() in known]
    once = list(dict.fromkeys(named))
    counts = {
        "unknown id left out": len(listed) - len(named),
        "repeated id left out": len(named) - len(once),
        "id beyond the last rank left out": max(len(once) - ranked, 0),
    }
    notes = tuple(f"{count} {what}" for what, count in counts.items() if count)
    return Answer(tuple(once[:ranked]), notes, None if once else "it names no activity of the list")
