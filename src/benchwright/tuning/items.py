"""Items and examples from files of JSON lines: prompts, choices and the right one."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Formatter
from typing import Any

import numpy as np

from benchwright._words import count
from benchwright.errors import DataError, Fault, UsageError
from benchwright.tuning.protocol import Benchmark

MIN_CHOICES = 2


@dataclass(frozen=True, slots=True)
class Example:
    """A prompt and the answer to learn; ``answer`` begins with what stands between the two."""

    prompt: str
    answer: str


@dataclass(frozen=True, slots=True)
class Item:
    """An item with choices, each a prompt and its continuation; ``gold`` is the place of the right one."""

    doc_id: str
    pairs: tuple[tuple[str, str], ...]
    gold: int
    cluster: str | None = None

    @property
    def example(self) -> Example:
        """The right choice as an example to learn."""
        return Example(*self.pairs[self.gold])


@dataclass(frozen=True, slots=True)
class Splits:
    """What a benchmark has: examples to tune on, test items, and items that select a checkpoint (perhaps none)."""

    train: tuple[Example, ...]
    test: tuple[Item, ...]
    validation: tuple[Item, ...] = ()
    notes: tuple[str, ...] = ()


def read_splits(benchmark: Benchmark, folder: Path, *, select: bool = False) -> Splits:
    """Read the files of a benchmark; ``select`` asks for items that select a checkpoint.

    Raises
    ------
    UsageError
        A file is missing.
    DataError
        A line cannot be used; all of them are listed.
    """
    if benchmark.train is None or benchmark.test is None:
        raise UsageError(f"benchmark {benchmark.name} has no files of its own")
    train = folder / benchmark.train
    test = read_items(folder / benchmark.test, benchmark)[: benchmark.limit]
    if not select:
        return _checked(Splits(read_examples(train, benchmark), test))
    if benchmark.validation is not None:
        held = read_items(folder / benchmark.validation, benchmark)
        return _checked(Splits(read_examples(train, benchmark), test, held))
    whole = read_items(train, benchmark)
    share = 0.0 if benchmark.validation_share is None else benchmark.validation_share
    kept, held = hold_out(whole, share)
    return _checked(Splits(tuple(item.example for item in kept), test, held))


def hold_out(items: Sequence[Item], share: float) -> tuple[tuple[Item, ...], tuple[Item, ...]]:
    """Part items in two, the second a share of them by a fixed shuffle; whole clusters go one way."""
    clusters = list(dict.fromkeys(item.cluster or item.doc_id for item in items))
    shuffled = np.random.default_rng(0).permutation(len(clusters))
    out = {clusters[place] for place in shuffled[: max(1, round(share * len(clusters)))]}
    held = tuple(item for item in items if (item.cluster or item.doc_id) in out)
    return tuple(item for item in items if (item.cluster or item.doc_id) not in out), held


def _checked(splits: Splits) -> Splits:
    """Say how many test items are examples of the train split too."""
    learned = {(example.prompt, example.answer) for example in splits.train}
    seen = sum(item.pairs[item.gold] in learned for item in splits.test)
    note = f"{count(seen, 'test item')} of {len(splits.test):,} are in the train split too: tuned scores are of memory"
    return Splits(splits.train, splits.test, splits.validation, (note,) if seen else ())


def read_items(path: Path, benchmark: Benchmark) -> tuple[Item, ...]:
    """Read items with choices."""
    faults: list[Fault] = []
    found: list[Item] = []
    seen: set[str] = set()
    for line, record in _records(path, faults):
        try:
            item = _item(record, benchmark, str(len(found)))
        except ValueError as error:
            faults.append(Fault(path.name, str(error), line=line))
            continue
        if item.doc_id in seen:
            faults.append(Fault(path.name, f"item {item.doc_id} is there twice", line=line, column="doc_id"))
        seen.add(item.doc_id)
        found.append(item)
    _refuse(path, found, faults)
    return tuple(found)


def read_examples(path: Path, benchmark: Benchmark) -> tuple[Example, ...]:
    """Read examples to tune on: items, or prompts with the answer as text and no choices."""
    faults: list[Fault] = []
    found = []
    for line, record in _records(path, faults):
        try:
            if "choices" in record:
                found.append(_item(record, benchmark, "").example)
                continue
            answer = record.get("answer")
            if not isinstance(answer, str) or not answer:
                raise ValueError("`answer` must be text where there are no `choices`")
            found.append(Example(_prompt(record, benchmark), benchmark.delimiter + answer))
        except ValueError as error:
            faults.append(Fault(path.name, str(error), line=line))
    _refuse(path, found, faults)
    return tuple(found)


def _records(path: Path, faults: list[Fault]) -> Iterator[tuple[int, dict[str, Any]]]:
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}", hint="a path relative to the protocol") from None
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not UTF-8: {error.reason} at byte {error.start}") from None
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except ValueError as error:
            faults.append(Fault(path.name, f"no JSON: {error}", line=number))
            continue
        if isinstance(record, dict):
            yield number, record
        else:
            faults.append(Fault(path.name, "not an object {...}", line=number))


def _item(record: dict[str, Any], benchmark: Benchmark, default: str) -> Item:
    choices = record.get("choices")
    if (
        not isinstance(choices, list)
        or len(choices) < MIN_CHOICES
        or not all(isinstance(c, str) and c for c in choices)
    ):
        raise ValueError("`choices` must be a list of two or more texts")
    if len(set(choices)) < len(choices):
        raise ValueError("`choices` must be different")
    prompt = _prompt(record, benchmark)
    doc_id, cluster = record.get("doc_id", default), record.get("cluster")
    pairs = tuple((prompt, benchmark.delimiter + choice) for choice in choices)
    return Item(str(doc_id), pairs, _gold(record.get("answer"), choices), None if cluster is None else str(cluster))


def _gold(answer: Any, choices: list[str]) -> int:
    """The place of the right choice: that number, or the choice with that text."""
    if isinstance(answer, str) and answer in choices:
        return choices.index(answer)
    if isinstance(answer, int) and not isinstance(answer, bool) and 0 <= answer < len(choices):
        return answer
    raise ValueError(f"`answer` must be one of the choices or its place from 0, got {answer!r}")


def _prompt(record: dict[str, Any], benchmark: Benchmark) -> str:
    """The template filled; without a key ``question`` the default one takes ``prompt``."""
    values = {"question": record.get("prompt"), **record}
    parts = []
    for literal, key, spec, conversion in Formatter().parse(benchmark.template):
        parts.append(literal)
        if key is None:
            continue
        if spec or conversion or not isinstance(values.get(key), str | int | float):
            raise ValueError(f"`{key}` of the template is missing or no text")
        parts.append(str(values[key]))
    prompt = "".join(parts)
    if not prompt:
        raise ValueError("the prompt is empty")
    return prompt


def _refuse(path: Path, found: Sequence[object], faults: list[Fault]) -> None:
    if faults:
        raise DataError(f"{path}: {count(len(faults), 'line')} cannot be used", faults=faults)
    if not found:
        raise DataError(f"{path} holds no items")
