"""The ranking game on one BLAS thread: ``python benchmarks/bench_game.py``.

Targets: the verdict for 1,000 developers takes at most 1 s for named forms and 5 s for vectorised callables; the
threshold of 60 power-law curves on a range of 10^5 at most 1 s; mixed play of 10 developers on 200 cells at most 20 s,
with an exploitability of at most 1e-3 of the top reward for linear rewards and 2e-3 for R_r = 0.6^(r-1). Exit status 1
where one is missed.
"""

# ruff: noqa: E402  (the threads are set before numpy loads)
from __future__ import annotations

import os

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"):
    os.environ[variable] = "1"

import sys
from collections.abc import Callable, Iterator
from time import perf_counter

import numpy as np

from benchwright.ranking_game.arms_race import arms_race
from benchwright.ranking_game.costs import FunctionCosts, PowerCosts
from benchwright.ranking_game.equilibrium import solve
from benchwright.ranking_game.forms import FunctionCurves, PowerLawCurves, TranslationCurves
from benchwright.ranking_game.game import RankingGame
from benchwright.ranking_game.threshold import threshold
from stopwatch import seconds

RACE_LIMIT, RACERS, MANY = 20.0, 10, 30
NAMED_LIMIT, CALLABLE_LIMIT, THRESHOLD_LIMIT = 1.0, 5.0, 1.0
DEVELOPERS, FITTED, RANGE = 1_000, 60, 1e5


def tasks() -> dict[str, tuple[Callable[[], object], float]]:
    """What is timed, with its limit: games in which a jump pays and games in which none does."""
    rng = np.random.default_rng(20261130)
    theta = np.sort(rng.uniform(0, 5, DEVELOPERS))[::-1]
    rewards = np.sort(rng.uniform(0, 10, DEVELOPERS))[::-1]
    lower, upper = np.linspace(0.2, 0.1, DEVELOPERS), np.linspace(0.99, 0.9, DEVELOPERS)
    curves = {
        "exponential": TranslationCurves(theta, "exponential"),
        "power law": PowerLawCurves(theta, 1.2),
        "power law, own bounds": PowerLawCurves(theta, 1.2, lower, upper),
        "callables": FunctionCurves(lambda t, e: 1 - np.exp(-(t + e)), theta),
    }
    found: dict[str, tuple[Callable[[], object], float]] = {}
    for name, curve in curves.items():
        called = name == "callables"
        costs = FunctionCosts(lambda e: 2 * e + e**2) if called else PowerCosts(2.0, 1.5)
        for size, told in ((1.0, "a jump pays"), (1e-9, "none pays")):
            game = RankingGame(curve, size * rewards, costs=costs)
            found[f"{name}, {told}"] = (lambda game=game: solve(game)), CALLABLE_LIMIT if called else NAMED_LIMIT
    alpha, prizes = np.sort(rng.normal(0, 1, FITTED))[::-1], np.linspace(600, 0, FITTED)
    fitted = {
        "one slope": PowerLawCurves(alpha, 0.4, 0.25, 1.0),
        "own slopes": PowerLawCurves(alpha, np.sort(rng.uniform(0.3, 0.5, FITTED))[::-1], 0.25, 1.0),
        "own bounds": PowerLawCurves(
            alpha, 0.4, np.sort(rng.uniform(0.2, 0.3, FITTED))[::-1], np.sort(rng.uniform(0.9, 1, FITTED))[::-1]
        ),
        "everything own": PowerLawCurves(
            alpha, rng.uniform(0.3, 0.5, FITTED), 0.25, np.sort(rng.uniform(0.5, 1, FITTED))[::-1]
        ),
    }
    for name, curve in fitted.items():
        game = RankingGame(curve, prizes)
        found[f"threshold, {name}"] = (lambda game=game: threshold(game, delta_max=RANGE)), THRESHOLD_LIMIT
    return found


def race_games() -> Iterator[tuple[str, RankingGame, float]]:
    """Mixed play of 10 developers: name, game, and the exploitability asked for, as a part of the top reward."""
    prizes = {"linear": (np.linspace(1, 0, RACERS), 1e-3), "top-heavy": (0.6 ** np.arange(RACERS), 2e-3)}
    rng = np.random.default_rng(1)
    curves = {
        "even abilities": TranslationCurves(np.linspace(1, 0, RACERS), "exponential"),
        "random abilities": TranslationCurves(rng.uniform(0, 2, RACERS), "exponential"),
        "close abilities": TranslationCurves(rng.uniform(0, 0.2, RACERS), "hyperbolic"),
        "curves that cross": PowerLawCurves(
            np.sort(rng.normal(0, 1, RACERS))[::-1],
            rng.uniform(0.4, 0.8, RACERS),
            0.1,
            np.sort(rng.uniform(0.7, 1, RACERS))[::-1],
        ),
        "callables": FunctionCurves(lambda t, e: 1 - np.exp(-(t + e)), np.linspace(1, 0, RACERS)),
    }
    for ability, curve in curves.items():
        for name, (rewards, limit) in prizes.items():
            for delta in (0.0, 2.0) if ability == "curves that cross" else (0.0,):
                at = f" at level {delta:g}" if delta else ""
                yield f"race, {ability}{at}, {name}", RankingGame(curve, 3 * rewards, tune_before_test=delta), limit


def races() -> int:
    """Time mixed play, once each; return how many targets are missed."""
    missed = 0
    for name, game, limit in race_games():
        start = perf_counter()
        found = arms_race(game)
        took = perf_counter() - start
        gain, inside = found.exploitability / 3, found.off_grid / 3
        met = took <= RACE_LIMIT and gain <= limit
        missed += not met
        print(
            f"{name:<46} {took:7.3f} s   at most {RACE_LIMIT:g} s; exploitability {gain:.1e}, at most {limit:g}: "
            f"{'met' if met else 'MISSED'}; within cells {inside:.1e}"
        )
    theta = np.random.default_rng(2).uniform(0, 2, MANY)
    for name, rewards in {"linear": np.linspace(1, 0, MANY), "top-heavy": 0.6 ** np.arange(MANY)}.items():
        start = perf_counter()
        gain = arms_race(RankingGame(TranslationCurves(theta, "exponential"), 3 * rewards)).exploitability / 3
        print(f"{f'race of {MANY}, {name}':<46} {perf_counter() - start:7.3f} s   exploitability {gain:.1e}")
    return missed


def main() -> int:
    """Print times and say which targets are met."""
    missed = races()
    for name, (task, limit) in tasks().items():
        took = seconds(task)
        missed += took > limit
        print(f"{name:<46} {took:7.3f} s   at most {limit:g} s: {'met' if took <= limit else 'MISSED'}")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
