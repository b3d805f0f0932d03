"""The reference page of ``summary.json`` names the keys that summaries have, and no others."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import pytest

import benchwright as bw
from benchwright.built_in import GAME
from benchwright.config import Config
from benchwright.game_answers.inputs import GameResult, answer_file
from benchwright.report.summary import summary
from game_reports import example, protocols, variants

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "summary.md"
FEW = {"resampling.replicates": 100, "estimates.replicates": 100, "published.draws": 40}
Key: TypeAlias = tuple[str, ...]
BELOW, ANY = "\x1f", "[^\x1f]+"


def keys(value: Any, above: Key = ()) -> Iterator[Key]:
    """Every key with those above it; the keys of the records of a list stand below the list."""
    for entry in value if isinstance(value, list) else [value]:
        if isinstance(entry, dict):
            for name, inner in entry.items():
                yield (*above, name)
                yield from keys(inner, (*above, name))


def named_on(page: str) -> list[Key]:
    """The keys in the first cells of the page's tables, below the section that their heading names."""
    found: list[Key] = []
    section: Key = ()
    for line in page.splitlines():
        if line.startswith("## "):
            section = () if line == "## Top level" else (line.removeprefix("## "),)
        elif line.startswith("| `"):
            for name in re.findall(r"`([^`]+)`", line.split(" | ")[0]):
                beside = name.startswith(".")  # the name before it
                found.append((*found[-1][:-1], name[1:]) if beside else (*section, *name.split(".")))
    return found


def pattern(names: Iterable[Key]) -> re.Pattern[str]:
    """What keys joined by ``BELOW`` are called on the page, where ``<...>`` is any text."""
    parts = (re.split(r"(<\w+>)", BELOW.join(name)) for name in names)
    return re.compile("|".join("".join(ANY if part[:1] == "<" else re.escape(part) for part in one) for one in parts))


@pytest.fixture(scope="module")
def summaries() -> dict[str, dict[str, Any]]:
    """Summaries with everything that one can have: a panel, item tables, no welfare, each kind of game."""
    few = Config().replace(FEW, source="a test")
    drawn = bw.audit(bw.simulate_item_tables(), config=few)
    games: dict[str, GameResult] = {
        "a finite game": example("three-levels"),
        "two protocols": protocols(),
        "submissions": variants(),
    }
    return {
        "the built-in example": summary(bw.audit(config=few, game=answer_file(GAME, replicates=20))),
        "simulated tables": summary(drawn),
        "no welfare": summary(bw.audit(bw.simulate_item_tables(), config=few, without=["welfare"])),
        **{name: summary(replace(drawn, game=game)) for name, game in games.items()},
    }


@pytest.fixture(scope="module")
def page() -> list[Key]:
    return named_on(PAGE.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def there(summaries: dict[str, dict[str, Any]]) -> set[Key]:
    return {key for record in summaries.values() for key in keys(record)}


def test_every_key_is_named(there: set[Key], page: list[Key]) -> None:
    # at the top, one level below, and wherever the page names any key of a record
    told = {name[:depth] for name in page for depth in range(1, len(name) + 1)}
    named, opened = pattern(told), pattern({name[:-1] for name in told} - {()})
    asked = [BELOW.join(key) for key in there if len(key) <= 2 or opened.fullmatch(BELOW.join(key[:-1]))]
    assert sorted(key.replace(BELOW, ".") for key in asked if not named.fullmatch(key)) == []


def test_every_name_is_that_of_a_key(there: set[Key], page: list[Key]) -> None:
    keys_there = [BELOW.join(key) for key in there]
    assert len(page) > 100
    for name in page:
        assert any(map(pattern([name]).fullmatch, keys_there)), f"no summary has {'.'.join(name)}"


def test_summaries_have_one_top_level(summaries: dict[str, dict[str, Any]]) -> None:
    assert len({tuple(record) for record in summaries.values()}) == 1
