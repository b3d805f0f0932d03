"""Two developers on effort levels against Nashpy and pygambit: ``python benchmarks/bench_two_player.py``.

Needs ``nashpy``; ``pygambit`` is measured where installed. The games are contests on as many levels for both, random
scores and costs, ties to the first. Each other solver gets the payoff matrices, ready made, and is asked for one
equilibrium; where it finds one, ours must have the same payoffs to 1e-6, and the same strategies where the supports are
equal. A solver that fails, or takes more than ``PATIENCE`` seconds at one size, is left out at larger ones, and said
so. Larger games are solved by ours alone: beyond 16 levels Nashpy's Lemke-Howson may pivot without end. Target: at each
size at least 20 times faster than the fastest way of each package. Exit status 1 where missed.
"""

# ruff: noqa: E402  (the threads are set before numpy loads)
from __future__ import annotations

import os

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"):
    os.environ[variable] = "1"

import sys
import warnings
from collections.abc import Callable, Iterator
from statistics import median
from time import perf_counter

import nashpy
import numpy as np

from benchwright._check import FloatArray
from benchwright.ranking_game._mixed import contest_equilibrium

try:
    import pygambit
except ImportError:
    pygambit = None

SIZES, ALONE = (6, 8, 12, 16), (40, 200)
GAMES, PATIENCE, FACTOR, SAME = 5, 0.3, 20.0, 1e-6
Pair = tuple[FloatArray, FloatArray]
Levels = list[list[float]]


def contests(levels: int) -> Iterator[tuple[Levels, Levels, FloatArray, FloatArray]]:
    """Scores and costs of both developers, and their payoff matrices, for a prize of 1."""
    rng = np.random.default_rng(levels)
    for _ in range(GAMES):
        costs = np.sort(rng.uniform(0, 1.1, (2, levels)))
        costs[:, 0] = 0.0
        scores = np.sort(rng.uniform(0, 1, (2, levels)))
        first = scores[0][:, None] >= scores[1]
        yield scores.tolist(), costs.tolist(), first - costs[0][:, None], ~first - costs[1]


def ways(A: FloatArray, B: FloatArray) -> dict[str, Callable[[], Pair | None]]:
    """One equilibrium from each algorithm of each package; None where it finds none."""
    game = nashpy.Game(A, B)
    found: dict[str, Callable[[], Pair | None]] = {
        "Nashpy, support enumeration": lambda: next(game.support_enumeration(), None),
        "Nashpy, vertex enumeration": lambda: next(game.vertex_enumeration(), None),
        "Nashpy, Lemke-Howson": lambda: game.lemke_howson(initial_dropped_label=0),
    }
    if pygambit is not None:
        table = pygambit.Game.from_arrays(A, B)

        def of(result: object) -> Pair | None:
            for profile in result.equilibria:  # type: ignore[attr-defined]
                x, y = (np.array([float(share) for _, share in profile[player]]) for player in table.players)
                return x, y
            return None

        found["pygambit, LCP in floats"] = lambda: of(pygambit.nash.lcp_solve(table, rational=False, stop_after=1))
        found["pygambit, LCP in fractions"] = lambda: of(pygambit.nash.lcp_solve(table, rational=True, stop_after=1))
    return found


def regret(A: FloatArray, B: FloatArray, pair: Pair) -> float:
    """Largest gain of one developer."""
    x, y = pair
    return float(max((A @ y).max() - x @ A @ y, (x @ B).max() - x @ B @ y))


def differs(A: FloatArray, B: FloatArray, ours: Pair, theirs: Pair) -> bool:
    """Whether payoffs differ, or strategies on the same supports."""
    payoffs = [np.array([x @ A @ y, x @ B @ y]) for x, y in (ours, theirs)]
    if np.abs(payoffs[0] - payoffs[1]).max() > SAME:
        return True
    alike = all(((a > SAME) == (b > SAME)).all() for a, b in zip(ours, theirs, strict=True))
    return alike and max(np.abs(a - b).max() for a, b in zip(ours, theirs, strict=True)) > SAME


def main() -> int:
    """Print times by size, and say whether answers agree and the target is met."""
    warnings.simplefilter("ignore")  # Nashpy warns of degenerate games and of failed pivots
    missed, slow = 0, set()
    for levels in SIZES + ALONE:
        own: list[float] = []
        times: dict[str, list[float]] = {}
        wrong, worst = 0, 0.0
        for scores, costs, A, B in contests(levels):
            for _ in range(5):
                start = perf_counter()
                x, y = contest_equilibrium(1.0, scores, costs)
                own.append(perf_counter() - start)
            ours = np.array(x), np.array(y)
            worst = max(worst, regret(A, B, ours))
            for name, way in (ways(A, B) if levels in SIZES else {}).items():
                if name in slow:
                    continue
                start = perf_counter()
                try:
                    theirs = way()
                except Exception:  # whatever it is, it found no equilibrium
                    theirs = None
                took = perf_counter() - start
                if took > PATIENCE:
                    slow.add(name)
                if theirs is not None and tuple(map(len, theirs)) == A.shape and regret(A, B, theirs) < SAME:
                    times.setdefault(name, []).append(took)
                    wrong += differs(A, B, ours, theirs)
        mine = median(own)
        print(f"{levels} levels: {1e6 * mine:.0f} microseconds, regret {worst:.0e}, {wrong} answers differ")
        missed += wrong + (worst > SAME)
        for name, taken in times.items():
            print(
                f"  {name:<30} {1e3 * median(taken):9.3f} ms, {median(taken) / mine:8.0f} times ours, found "
                f"{len(taken)} of {GAMES}"
            )
        for package in ("Nashpy", "pygambit"):
            fastest = min((median(taken) for name, taken in times.items() if name.startswith(package)), default=None)
            if fastest is not None:
                met = fastest >= FACTOR * mine
                missed += not met
                print(f"  {package}: fastest {fastest / mine:.0f} times ours: {'met' if met else 'MISSED'}")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
