"""Finite ranking games against the public fault reports, brute force, and changes of unit."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchwright.errors import UsageError
from benchwright.ranking_game._mixed import contest_equilibrium
from benchwright.ranking_game.finite import FiniteGame, solve_finite

F = Fraction


def case(shared: Path, name: str, *, scale: Any = 1, shift: Any = 0) -> FiniteGame:
    """A game of the public fault reports; payoffs may be multiplied and a constant be added."""
    spec = json.loads((shared / "cases" / name / "ranking_game.json").read_text(), parse_float=F, parse_int=F)
    rewards = [spec["prize"] * scale + shift, F(shift)]
    assert sum(rewards) / 2 == spec["tie_share"] * scale + shift
    levels = spec["effort_levels"]
    costs = [spec["cost_per_level"] * level * scale for level in levels]
    return FiniteGame(rewards, efforts=levels, costs=costs)


def test_none_is_an_answer_with_its_cycle(shared: Path) -> None:
    game = case(shared, "C34")
    found = solve_finite(game)
    assert found.pure == ()
    assert found.path == ((0, 0),)
    assert found.cycle == ((1, 0), (1, 2), (0, 2), (0, 1), (2, 1), (2, 0))
    assert found.mixed is not None
    (mixed,) = found.mixed
    assert mixed.strategies == ((F(2, 5), F(1, 5), F(2, 5)),) * 2
    assert mixed.payoffs == (F(1, 5), F(1, 5))
    table = json.loads((shared / "cases" / "C34" / "ranking_game.json").read_text(), parse_float=F)["payoff_row"]
    assert [[game.payoff((a, b), 0) for b in range(3)] for a in range(3)] == table
    record = found.to_dict()
    assert (record["pure_equilibrium"], record["profiles"], record["unique"]) == ("none", [], None)
    assert "no pure equilibrium: best replies go round (1, 0) -> (1, 2)" in str(found)


@pytest.mark.parametrize(("scale", "shift"), [(1, 0), (10, 0), (F(1, 7), 0), (1, 5), (10**20, 3)])
def test_a_weak_equilibrium_is_not_lost_to_rounding(shared: Path, scale: Any, shift: Any) -> None:
    found = solve_finite(case(shared, "C35", scale=scale, shift=shift))
    (only,) = found.pure
    assert (only.levels, only.strict) == ((3, 3), False)
    assert only.payoffs == (shift, shift)
    assert found.mixed is not None
    thirds = (F(1, 3), F(0), F(0), F(2, 3))
    assert (thirds, thirds) in [m.strategies for m in found.mixed]
    assert "tolerance 0" in str(found)
    assert found.to_dict()["certificate"]["strict"] == [False]


def test_floats_are_read_as_written() -> None:
    game = FiniteGame([0.6, 0.0], efforts=[0, 1, 2, 3], costs=[0, 0.1, 0.2, 0.3])
    assert [e.levels for e in solve_finite(game).pure] == [(3, 3)]


@pytest.mark.parametrize("ties", ["shared", "capability"])
def test_random_games_agree_with_plain_enumeration(ties: Any) -> None:
    rng, found_some = np.random.default_rng(7), 0
    for _ in range(250):
        n = int(rng.integers(2, 5))
        sizes = rng.integers(1, 4, n)
        rewards = sorted((F(int(k), 10) for k in rng.integers(0, 6, n)), reverse=True)
        costs = [[F(0), *(F(int(k), 10) for k in np.sort(rng.integers(0, 5, size - 1)))] for size in sizes]
        scores = [np.sort(rng.integers(0, 4, size)).tolist() for size in sizes]
        game = FiniteGame(rewards, efforts=[range(size) for size in sizes], costs=costs, scores=scores, ties=ties)
        found = solve_finite(game)
        plain = [p for p in product(*(range(size) for size in sizes)) if game.regret(p) == 0]
        assert [e.levels for e in found.pure] == plain
        found_some += bool(plain)
        for e in found.pure:
            gains = [
                game.payoff([*e.levels[:i], k, *e.levels[i + 1 :]], i) - e.payoffs[i]
                for i in range(n)
                for k in range(sizes[i])
                if k != e.levels[i]
            ]
            assert e.strict == all(gain < 0 for gain in gains)
        if not plain:
            for here, there in zip(found.cycle, (*found.cycle[1:], found.cycle[0]), strict=True):
                (mover,) = [i for i in range(n) if here[i] != there[i]]
                assert game.payoff(there, mover) > game.payoff(here, mover)
        if n == 2:
            assert found.mixed  # Nash: some equilibrium exists
            pure = {
                tuple(row.index(1) for row in m.strategies)
                for m in found.mixed
                if {*m.strategies[0]} <= {0, 1} and {*m.strategies[1]} <= {0, 1}
            }
            assert pure == set(plain)
    assert found_some > 0


def test_large_games_have_no_mixed_equilibria_enumerated() -> None:
    found = solve_finite(FiniteGame([1, 0], efforts=range(9), costs=[F(k, 10) for k in range(9)]))
    assert found.mixed is None
    assert "for two developers with few levels only" in str(found)
    assert found.to_dict()["mixed"] is None
    assert found.to_frame().is_empty() == (not found.pure)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"rewards": [0, 1]}, "must not increase with the rank"),
        ({"rewards": [1]}, "at least two developers, got 1"),
        ({"costs": [0, 1, 2]}, "one entry a level, 2 for developer 1, got 3"),
        ({"costs": [0, -1]}, "`costs` must be >= 0, got -1"),
        ({"costs": [0, float("nan")]}, "must hold finite numbers, got nan"),
        ({"costs": [0, "much"]}, "must hold finite numbers, got 'much'"),
        ({"efforts": [[0, 1]], "costs": [0, 1]}, "one list for all, or 2 lists"),
        ({"ties": "coin"}, "`ties` must be one of"),
        ({"efforts": range(2000), "costs": [0] * 2000}, "4,000,000 profiles are too many"),
        ({"names": ("a", "a")}, "2 different names"),
    ],
)
def test_bad_input(arguments: dict[str, Any], text: str) -> None:
    given: dict[str, Any] = {"rewards": [1, 0], "efforts": [0, 1], "costs": [0, F(1, 2)]} | arguments
    with pytest.raises(UsageError) as caught:
        FiniteGame(given.pop("rewards"), **given)
    assert text in str(caught.value)


@pytest.mark.parametrize("seed", range(60))
def test_one_pass_finds_an_equilibrium_of_a_contest(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores, costs = (
        [[F(int(value), 10) for value in rng.integers(0, 12, size)] for size in sizes]
        for sizes in [rng.integers(1, 5, 2)] * 2
    )
    if seed % 2:
        scores, costs = ([sorted(row) for row in table] for table in (scores, costs))
    game = FiniteGame([1, 0], efforts=scores, costs=costs, ties="capability")
    x, y = (tuple(row) for row in contest_equilibrium(F(1), game.scores or (), game.costs))
    assert sum(x) == sum(y) == 1
    assert min(x + y) >= 0
    for mine, theirs, i in ((x, y, 0), (y, x, 1)):
        earned = [
            sum(q * game.payoff((k, m) if i == 0 else (m, k), i) for m, q in enumerate(theirs))
            for k in range(len(mine))
        ]
        assert sum(p * value for p, value in zip(mine, earned, strict=True)) == max(earned)
    everything = solve_finite(game).mixed
    assert everything is not None
    if len(everything) == 1:
        assert everything[0].strategies == (x, y)


def test_many_levels_have_one_mixed_equilibrium_told() -> None:
    levels = [F(k, 20) for k in range(23)]
    game = FiniteGame(
        [1, 0], efforts=levels, costs=levels, scores=[[F(1, 3) + e for e in levels], levels], ties="capability"
    )
    found = solve_finite(game)
    assert found.pure == ()
    assert found.mixed is not None and len(found.mixed) == 1  # noqa: PT018
    assert not found.all_mixed
    assert "there may be more mixed equilibria" in str(found)
    shared_ties = FiniteGame([1, 0], efforts=levels, costs=levels)
    assert solve_finite(shared_ties).mixed is None
