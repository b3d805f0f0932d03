"""Intervals of a model's mean over items that share passages: ``python studies/few_clusters.py [--draws 20000]``.

Scores are 0 or 1; the chance of a passage is beta-distributed, so that items of one passage agree (intra-class
correlation 0.3). The interval is the product's: clustered standard error with G / (G - 1), Student's t with G - 1
degrees of freedom. Beside it: the same with the normal quantile, and items taken for independent. Prints a Markdown
table.
"""

from __future__ import annotations

import argparse

import numpy as np
from scipy import stats

from benchwright.estimating.ranking import item_errors

LEVEL, ICC, MEAN = 0.95, 0.3, 0.6
SHAPES = ((4, 5), (10, 5), (30, 5), (100, 5), (10, 50))
Array = np.ndarray


def draw(clusters: int, size: int, draws: int, rng: np.random.Generator) -> Array:
    """Scores (items, draws) of ``clusters`` passages with ``size`` items each."""
    scale = 1 / ICC - 1
    chance = rng.beta(MEAN * scale, (1 - MEAN) * scale, size=(clusters, 1, draws))
    right: Array = (rng.random((clusters, size, draws)) < chance).astype(np.float64)
    return right.reshape(clusters * size, draws)


def coverage(clusters: int, size: int, draws: int, rng: np.random.Generator) -> tuple[float, float, float]:
    """Share of draws whose interval holds the mean: clustered with t, clustered with normal, independent items."""
    scores = draw(clusters, size, draws, rng)
    away = np.abs(scores.mean(axis=0) - MEAN)
    clustered = item_errors(scores, np.repeat(np.arange(clusters), size))
    t, z = stats.t.isf((1 - LEVEL) / 2, clusters - 1), stats.norm.isf((1 - LEVEL) / 2)
    naive = item_errors(scores, None)
    by_t, by_z, as_independent = (float((away <= half).mean()) for half in (t * clustered, z * clustered, z * naive))
    return by_t, by_z, as_independent


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Coverage of clustered intervals with few clusters.")
    parser.add_argument("--draws", type=int, default=20_000)
    given = parser.parse_args()
    rng = np.random.default_rng(1)
    print(
        "| clusters | items each | clustered, t | clustered, normal | items as if independent |\n|---|---|---|---|---|"
    )
    for clusters, size in SHAPES:
        shares = " | ".join(f"{100 * share:.1f}" for share in coverage(clusters, size, given.draws, rng))
        print(f"| {clusters} | {size} | {shares} |")


if __name__ == "__main__":
    main()
