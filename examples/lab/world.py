"""The lab's world: made-up firms, what is known of them, and the sentences that say so.

A firm has one of 16 values of each attribute (what it makes, whom to ask for, when its van comes, what it may spend).
Pre-training text states these facts in four wordings each, beside small sums, comparisons and orders of numbers. The
benchmark asks about the same in other words: its sentences never occur in pre-training. Every firm is in the
pre-training text; the benchmark's train and test split have different firms, so what tuning can teach is the
benchmark's wording and not its answers.

Everything follows from a :class:`World`'s seed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

KNOWN = ("goods", "contacts", "slots", "budgets")  # what must be known of a firm
SKILLS = ("sums", "rules", "visits")  # what can be told from the question
TASKS = (*KNOWN, *SKILLS)
SPLITS = ("train", "test")
SHARES = (0.16, 0.16, 0.16, 0.16, 0.12, 0.12, 0.12)  # of tasks in pre-training text
DISTRACTORS = 3

VALUES: dict[str, tuple[str, ...]] = {
    "goods": ("tiles", "lamps", "ropes", "boots", "clocks", "drums", "kites", "nails",
              "pipes", "rugs", "sails", "tents", "vases", "wheels", "bells", "gloves"),
    "contacts": ("Anna", "Boris", "Clara", "David", "Emma", "Felix", "Greta", "Hugo",
                 "Irene", "Jonas", "Karla", "Leon", "Maria", "Nils", "Olga", "Peter"),
    "slots": tuple(
        f"{day} {time}"
        for day in ("Monday", "Tuesday", "Wednesday", "Thursday")
        for time in ("early", "morning", "noon", "evening")
    ),
    "budgets": tuple(str(100 * k) for k in range(5, 21)),
}  # fmt: skip
STATED: dict[str, tuple[str, ...]] = {
    "goods": ("{f} makes {v}.", "{f} is known for its {v}.", "What {f} sells are {v}.", "From {f} come good {v}."),
    "contacts": ("At {f} ask for {v}.", "{f} is run by {v}.", "The clerk of {f} is {v}.", "{f} was founded by {v}."),
    "slots": ("{f} loads on {v}.", "The van of {f} comes {v}.", "{f} opens its gate {v}.", "At {f} pick up {v}."),
    "budgets": ("{f} may spend {v}.", "The limit of {f} is {v}.", "{f} has a purse of {v}.", "For {f} the cap is {v}."),
    "sums": ("{a} and {b} make {v}.", "{a} plus {b} is {v}.", "Add {b} to {a}: {v}.", "With {a} and {b} we have {v}."),
    "rules": ("{a} is {v} than {b}.", "Is {a} over {b}? {w}.", "{a} beside {b} is {v}.", "{a} tops {b}: {w}."),
    "visits": ("Of {a}, {b} and {c} the least is {v}.", "{a}, {b}, {c}: least {v}.",
               "From {a}, {b}, {c} take {v} first.", "Start of {a}, {b}, {c}: {v}."),
}  # fmt: skip
ASKED: dict[str, tuple[str, ...]] = {
    "goods": (
        "A shop orders supplies for its store. Which stock can it buy at {f}?",
        "Design a new leaflet for {f}. Which product should the picture show?",
        "An adviser is asked for a better product. Which one does {f} have?",
    ),
    "contacts": (
        "An angry client writes a letter. Who must answer it for {f}?",
        "Journalists phone about an accident. Who speaks for {f}?",
        "Find a member of staff for the vacancy. Who interviews at {f}?",
    ),
    "slots": (
        "Fit the delivery into the calendar. When can {f} be visited?",
        "Plan the driver's shifts for the week. When is {f} due?",
        "Keep watch on the gate for trouble. When is {f} busy?",
    ),
    "budgets": (
        "The auditor checks a contract against the budget. How much is {f} allowed?",
        "Estimate how expensive the repair can be. How much has {f} got?",
        "Record the funds in the ledger. How much stands beside {f}?",
    ),
    "sums": (
        "Compute the total of the invoices: {f} bills {a} and {b}. Total?",
        "Track the stock: {f} has {a} crates and gets {b}. How many now?",
        "Record the hours: {f} worked {a} and then {b}. How many in all?",
    ),
    "rules": (
        "The rule forbids gifts over {b}. {f} gave {a}. Is the rule broken?",
        "Patients with fever over {b} need care. At {f} one has {a}. Nurse?",
        "The gauge must not pass {b}. At {f} it shows {a}. Alarm?",
    ),
    "visits": (
        "Schedule the appointments of {f}: hours {a}, {b}, {c}. Which is first?",
        "Sort the list of prices of {f}: {a}, {b}, {c}. Which is the lowest?",
        "Teach the class of {f} with tasks {a}, {b}, {c}. Which is easiest?",
    ),
}
ANSWER = "\nAnswer:"
QUIZ: dict[str, str] = {
    "goods": "Product of {f}?",
    "contacts": "Person at {f}?",
    "slots": "Hour of {f}?",
    "budgets": "Money of {f}?",
    "sums": "Sum of {a} and {b}?",
    "rules": "Is {a} above {b}?",
    "visits": "Least of {a}, {b}, {c}?",
}
SOUNDS = ("BDFGKLMNPRSTVZ", "aeiou", "lmnrs", "bdgkpt", "aeiou", "klmnrstx")  # of a name, in their order
SMALL = range(2, 22)  # of the sums
ROUND = range(5, 100, 5)  # of the rules
HOURS = range(1, 31)  # of the visits


@dataclass(frozen=True, slots=True)
class Item:
    """One question: its choices, which of them is right, and the firm that it is about; ids are unique in a split."""

    task: str
    doc_id: int
    split: str
    firm: str
    question: str
    choices: tuple[str, ...]
    answer: int

    @property
    def prompt(self) -> str:
        """What a model reads before a choice."""
        return self.question + ANSWER

    def to_dict(self) -> dict[str, Any]:
        """The item as a line of a benchmark's file."""
        return {
            "task": self.task,
            "doc_id": self.doc_id,
            "cluster": self.firm,
            "question": self.question,
            "choices": list(self.choices),
            "answer": self.answer,
        }


@dataclass(frozen=True)
class World:
    """Firms with facts, split into those that the benchmark trains on and those that it tests."""

    train_firms: int = 200
    test_firms: int = 200
    seed: int = 8

    @cached_property
    def firms(self) -> tuple[str, ...]:
        """Names of all firms; those of the train split come first."""
        rng = np.random.default_rng([self.seed, 0])
        names: dict[str, None] = {}
        while len(names) < self.train_firms + self.test_firms:
            names["".join(rng.choice(list(kind)) for kind in SOUNDS)] = None
        return tuple(names)

    @cached_property
    def facts(self) -> dict[str, dict[str, str]]:
        """Value of each attribute of each firm."""
        rng = np.random.default_rng([self.seed, 1])
        n = len(self.firms)
        drawn = {name: rng.integers(0, len(VALUES[name]), n) for name in KNOWN}
        return {firm: {name: VALUES[name][drawn[name][k]] for name in KNOWN} for k, firm in enumerate(self.firms)}

    def sentences(self, rng: np.random.Generator, *, quiz: float = 0.0) -> Iterator[str]:
        """Sentences of pre-training text without end: facts of firms, two of three, and numbers.

        ``quiz`` is the share of those that ask and answer, in yet other words than the benchmark.
        """
        while True:
            task = TASKS[_draw(rng, SHARES)]
            wording = STATED[task][rng.integers(len(STATED[task]))]
            if rng.random() < quiz:
                wording = f"{QUIZ[task]}{ANSWER} {{{'w' if task == 'rules' else 'v'}}}."
            if task in KNOWN:
                firm = self.firms[rng.integers(len(self.firms))]
                yield wording.format(f=firm, v=self.facts[firm][task])
            else:
                numbers, value, _ = _numbers(task, rng)
                word = "Yes" if value == "more" else "No"
                yield wording.format(**dict(zip("abc", numbers, strict=False)), v=value, w=word)

    def items(self, split: str) -> tuple[Item, ...]:
        """One item per firm and task of a split."""
        first, number = (0, self.train_firms) if split == "train" else (self.train_firms, self.test_firms)
        rng = np.random.default_rng([self.seed, 2 + SPLITS.index(split)])
        pairs = [(task, first + k) for task in TASKS for k in range(number)]
        return tuple(self._item(task, doc_id, split, place, rng) for doc_id, (task, place) in enumerate(pairs))

    def _item(self, task: str, doc_id: int, split: str, place: int, rng: np.random.Generator) -> Item:
        firm = self.firms[place]
        asked = ASKED[task][rng.integers(len(ASKED[task]))]
        if task in KNOWN:
            question, gold = asked.format(f=firm), self.facts[firm][task]
            wrong = [value for value in VALUES[task] if value != gold]
            others = [wrong[k] for k in rng.permutation(len(wrong))[:DISTRACTORS]]
        else:
            numbers, gold, others = _numbers(task, rng)
            question = asked.format(f=firm, **dict(zip("abc", numbers, strict=False)))
            if task == "rules":
                gold, others = ("Yes", ["No"]) if gold == "more" else ("No", ["Yes"])
        every = [gold, *others]
        order = rng.permutation(len(every))
        choices = tuple(every[k] for k in order)
        return Item(task, doc_id, split, firm, question, choices, choices.index(gold))


def _numbers(task: str, rng: np.random.Generator) -> tuple[list[int], str, list[str]]:
    """Draw numbers of a skill: them, the right answer, and wrong ones."""
    if task == "sums":
        a, b = (int(x) for x in rng.choice(SMALL, 2))
        away = [int(x) for x in rng.permutation([-10, -3, -2, -1, 1, 2, 3, 10]) if a + b + x > 0]
        return [a, b], str(a + b), [str(a + b + x) for x in away[:DISTRACTORS]]
    if task == "rules":
        a, b = (int(x) for x in rng.choice(ROUND, 2, replace=False))
        return [a, b], "more" if a > b else "less", []
    numbers = [int(x) for x in rng.choice(HOURS, 3, replace=False)]
    return numbers, str(min(numbers)), [str(x) for x in numbers if x != min(numbers)]


def _draw(rng: np.random.Generator, shares: tuple[float, ...]) -> int:
    return int(np.searchsorted(np.cumsum(shares), rng.random(), side="right").clip(max=len(shares) - 1))
