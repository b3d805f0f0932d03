"""Which examples a step takes, as a function of seed and step alone, and where a run is looked at."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]


class Order:
    """The examples (of n) that each step takes, ``batch`` a step: a new shuffle every pass, nothing left out.

    Steps count from 0. ``stream`` tells apart orders of one seed: that of a run and that of its adversary.

    >>> order = Order(4, 3, seed=1)
    >>> first = np.concatenate([order.of(step) for step in range(4)])
    >>> sorted(first[:4].tolist()), sorted(first[4:8].tolist())
    ([0, 1, 2, 3], [0, 1, 2, 3])
    """

    def __init__(self, n: int, batch: int, *, seed: int, stream: int = 0) -> None:
        self.n, self.batch, self._key = n, batch, (seed, stream)
        self._passes: dict[int, IntArray] = {}

    def of(self, step: int) -> IntArray:
        """Examples of a step, (batch,)."""
        places = np.arange(step * self.batch, (step + 1) * self.batch)
        return np.array([self._pass(int(place) // self.n)[place % self.n] for place in places], dtype=np.int64)

    def _pass(self, number: int) -> IntArray:
        if number not in self._passes:
            if len(self._passes) > 2:
                self._passes.clear()
            shuffled = np.random.default_rng((*self._key, number)).permutation(self.n)
            self._passes[number] = shuffled.astype(np.int64)
        return self._passes[number]


def step_seed(seed: int, stream: int, step: int) -> int:
    """The seed of what is random in one step (dropout), 63 bits."""
    return int(np.random.SeedSequence((seed, stream, step)).generate_state(1, np.uint64)[0] >> 1)


def steps_at(efforts: list[float], unit: str, batch: int, tokens: Callable[[int], int]) -> list[int]:
    """The least numbers of steps (ascending, all different) with which efforts are reached.

    ``tokens`` gives the tokens of a step; it is asked in order, only where tokens are the unit.

    >>> steps_at([0, 10, 17], "examples", 8, lambda step: 0)
    [0, 2, 3]
    >>> steps_at([0, 10, 17], "tokens", 8, lambda step: 6)
    [0, 2, 3]
    """
    if unit != "tokens":
        size = batch if unit == "examples" else 1
        return sorted({int(np.ceil(effort / size)) for effort in efforts})
    found, step, seen = set(), 0, 0
    for effort in sorted(efforts):
        while seen < effort:
            seen += tokens(step)
            step += 1
        found.add(step)
    return sorted(found)
