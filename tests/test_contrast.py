"""Contrast of two families: exact enumeration, plain resampling loops, invariances, coverage."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import combinations, product
from math import isnan

import numpy as np
import pytest
from scipy import stats

from benchwright.auditing.contrast import Contrast, contrast_families

Family = tuple[np.ndarray, np.ndarray, np.ndarray]  # values, tasks, whether of the second family
DRAWS = 20_000
MONTE_CARLO = 4 * np.sqrt(0.25 / DRAWS)  # four standard errors of a share at worst


def contrast(items: Family, *, replicates: int = 500, level: float = 0.95, seed: int = 1) -> Contrast:
    values, tasks, second = items
    return contrast_families(
        values,
        tasks,
        second,
        names=("first", "second"),
        replicates=replicates,
        level=level,
        rng=np.random.default_rng(seed),
    )


def draw(rng: np.random.Generator, n_first: int, n_second: int, *, shift: float = 0.0, digits: int = 1) -> Family:
    """Tasks of 3 to 12 items; half of the variance lies between tasks, so items of a task are alike."""
    sizes = rng.integers(3, 13, n_first + n_second)
    tasks = np.repeat(np.arange(sizes.size), sizes)
    second = tasks >= n_first
    values = rng.normal(size=sizes.size)[tasks] + rng.normal(size=tasks.size) + shift * second
    return values.round(digits), tasks, second


def groups(items: Family) -> tuple[list[list[float]], list[bool]]:
    """One list of values a task, and whether the task is of the second family."""
    values, tasks, second = items
    names = sorted(set(tasks.tolist()))
    return [values[tasks == t].tolist() for t in names], [bool(second[tasks == t][0]) for t in names]


def share(values: list[float], at: float) -> float:
    return sum(value <= at for value in values) / len(values)


def mean_gap(first: list[float], second: list[float]) -> float:
    return sum(second) / len(second) - sum(first) / len(first)


def lead(first: list[float], second: list[float]) -> float:
    """sup (F_first - F_second)+ in a plain loop."""
    return max(share(first, at) - share(second, at) for at in first + second)


def pooled(tasks: list[list[float]]) -> list[float]:
    return [value for task in tasks for value in task]


def relabelled(items: Family, statistic: Callable[[list[float], list[float]], float]) -> np.ndarray:
    """The statistic under every assignment of the family labels to tasks."""
    tasks, second = groups(items)
    everything = range(len(tasks))
    return np.array(
        [
            statistic(pooled([tasks[t] for t in everything if t not in chosen]), pooled([tasks[t] for t in chosen]))
            for chosen in combinations(everything, sum(second))
        ]
    )


def redrawn(items: Family) -> list[tuple[list[float], list[float]]]:
    """Both families' items under every way to draw tasks with replacement within each family, equally likely."""
    tasks, second = groups(items)
    sides = [[task for task, mine in zip(tasks, second, strict=True) if mine is side] for side in (False, True)]
    first, other = ([pooled(list(pick)) for pick in product(side, repeat=len(side))] for side in sides)
    return [(a, b) for a in first for b in other]


@pytest.mark.parametrize(("n_first", "n_second", "seed"), [(2, 3, 0), (3, 3, 1), (2, 5, 2), (4, 3, 3), (1, 4, 4)])
def test_permutation_p_equals_the_enumerated_one(n_first: int, n_second: int, seed: int) -> None:
    items = draw(np.random.default_rng(seed), n_first, n_second, shift=seed / 3)
    result = contrast(items, replicates=DRAWS)
    gaps, leads = relabelled(items, mean_gap), relabelled(items, lead)
    observed = mean_gap(items[0][~items[2]].tolist(), items[0][items[2]].tolist())
    assert result.difference == pytest.approx(observed, rel=1e-12)
    two_sided = np.mean(np.abs(gaps) >= abs(observed) - 1e-9)
    one_sided = np.mean(np.sign(observed) * gaps >= abs(observed) - 1e-9)
    assert result.permutation_p == pytest.approx(two_sided, abs=MONTE_CARLO)
    assert result.permutation_p_one_sided == pytest.approx(one_sided, abs=MONTE_CARLO)
    assert result.dominance.advantage_p == pytest.approx(
        np.mean(leads >= result.dominance.advantage - 1e-9), abs=MONTE_CARLO
    )


@pytest.mark.parametrize("seed", range(4))
def test_bootstrap_interval_equals_the_enumerated_one(seed: int) -> None:
    items = draw(np.random.default_rng(seed), 3, 4, digits=9)  # 27 x 256 equally likely draws
    exact = np.sort([mean_gap(first, second) for first, second in redrawn(items)])
    low, high = contrast(items, replicates=DRAWS).interval
    assert np.mean(exact <= low) == pytest.approx(0.025, abs=0.008)
    assert np.mean(exact <= high) == pytest.approx(0.975, abs=0.008)


@pytest.mark.parametrize("seed", range(3))
def test_dominance_is_tested_by_the_recentred_bootstrap(seed: int) -> None:
    items = draw(np.random.default_rng(seed), 3, 3, digits=0)
    first, second = items[0][~items[2]].tolist(), items[0][items[2]].tolist()
    grid = sorted({*first, *second})
    rise = {at: share(second, at) - share(first, at) for at in grid}
    violation = max(0.0, *rise.values())
    exact = [max(share(b, at) - share(a, at) - rise[at] for at in grid) for a, b in redrawn(items)]
    dominance = contrast(items, replicates=DRAWS).dominance
    assert dominance.violation == pytest.approx(violation, abs=1e-14)
    assert dominance.advantage == pytest.approx(max(0.0, -min(rise.values())), abs=1e-14)
    expected = np.mean(np.array(exact) >= violation - 1e-9) if violation else 1.0
    assert dominance.violation_p == pytest.approx(expected, abs=MONTE_CARLO)
    assert dominance.holds_in_sample == (violation == 0)


def test_resampling_agrees_with_one_replicate_at_a_time() -> None:
    items = draw(np.random.default_rng(5), 10, 14, shift=0.5)
    tasks, second = groups(items)
    sides = [[np.array(t) for t, mine in zip(tasks, second, strict=True) if mine is side] for side in (False, True)]
    everything = [*sides[0], *sides[1]]
    rng, boot, shuffled = np.random.default_rng(6), [], []
    for _ in range(4000):
        means = [np.concatenate([side[t] for t in rng.integers(len(side), size=len(side))]).mean() for side in sides]
        boot.append(means[1] - means[0])
        order = rng.permutation(len(everything))
        halves = [np.concatenate([everything[t] for t in part]).mean() for part in np.split(order, [len(sides[0])])]
        shuffled.append(halves[1] - halves[0])
    result = contrast(items, replicates=DRAWS)
    for level in (0.5, 0.8, 0.95):
        low, high = contrast(items, replicates=DRAWS, level=level).interval
        outside = (1 - level) / 2
        assert np.mean(np.array(boot) < low) == pytest.approx(outside, abs=0.025)
        assert np.mean(np.array(boot) > high) == pytest.approx(outside, abs=0.025)
    two_sided = np.mean(np.abs(shuffled) >= abs(result.difference))
    assert result.permutation_p == pytest.approx(two_sided, abs=0.03)


def test_tests_that_take_items_for_independent_are_scipys() -> None:
    values, tasks, second = draw(np.random.default_rng(7), 8, 9, shift=-0.4, digits=3)
    result = contrast((values, tasks, second))
    ks = stats.kstest(values[~second], values[second])
    assert (result.ks_statistic, result.ks_p) == (ks.statistic, ks.pvalue)
    # More than GRID_POINTS distinct values: the suprema still run over all of them.
    many = contrast(draw(np.random.default_rng(8), 60, 60, digits=9))
    assert max(many.dominance.violation, many.dominance.advantage) == pytest.approx(many.ks_statistic, abs=1e-14)
    assert result.mann_whitney_p == stats.mannwhitneyu(values[second], values[~second]).pvalue
    lower = stats.mannwhitneyu(values[second], values[~second], alternative="less").pvalue
    assert result.difference < 0
    assert result.mann_whitney_p_one_sided == pytest.approx(lower, rel=1e-12)
    upside_down = contrast((-values, tasks, second))
    assert upside_down.mann_whitney_p_one_sided == pytest.approx(lower, rel=1e-12), "in the observed direction"


def test_same_seed_same_figures_and_names_of_tasks_and_order_of_items_change_none() -> None:
    values, tasks, second = draw(np.random.default_rng(9), 6, 7)
    result = contrast((values, tasks, second))
    assert contrast((values, tasks, second)) == result
    # Task codes keep their order within this shuffle of items, so even the draws are the same.
    order = np.random.default_rng(1).permutation(values.size)
    mixed = contrast((values[order], tasks[order], second[order]))
    assert mixed.interval == pytest.approx(result.interval, rel=1e-12)
    assert (mixed.permutation_p, mixed.dominance.violation_p) == (result.permutation_p, result.dominance.violation_p)
    renamed = np.random.default_rng(2).permutation(13)
    exact = contrast((values, tasks, second), replicates=DRAWS)
    other = contrast((values, renamed[tasks], second), replicates=DRAWS)
    assert (other.difference, other.ks_p) == pytest.approx((exact.difference, exact.ks_p), rel=1e-12)
    assert other.interval == pytest.approx(exact.interval, abs=0.05)
    assert other.permutation_p == pytest.approx(exact.permutation_p, abs=2 * MONTE_CARLO)


def test_shifting_values_moves_the_means_alone_and_scaling_scales() -> None:
    values, tasks, second = draw(np.random.default_rng(10), 6, 7)
    result = contrast((values, tasks, second))
    shifted, scaled = contrast((values + 8, tasks, second)), contrast((values * 4, tasks, second))
    assert shifted.first.mean == pytest.approx(result.first.mean + 8)
    assert shifted.second.median == pytest.approx(result.second.median + 8)
    assert shifted.interval == pytest.approx(result.interval, abs=1e-12)
    assert scaled.difference == pytest.approx(4 * result.difference, rel=1e-12)
    assert scaled.interval == pytest.approx([4 * end for end in result.interval], rel=1e-12)
    for other in (shifted, scaled):
        assert other.permutation_p == result.permutation_p
        assert other.dominance == result.dominance
        assert (other.ks_p, other.mann_whitney_p) == (result.ks_p, result.mann_whitney_p)


def test_swapping_the_families_flips_the_sign() -> None:
    values, tasks, second = draw(np.random.default_rng(11), 6, 7, shift=0.4)
    result = contrast((values, tasks, second), replicates=DRAWS)
    swapped = contrast((values, tasks, ~second), replicates=DRAWS)
    assert swapped.difference == pytest.approx(-result.difference, rel=1e-12)
    assert swapped.interval == pytest.approx((-result.interval[1], -result.interval[0]), abs=0.05)
    assert swapped.permutation_p == pytest.approx(result.permutation_p, abs=2 * MONTE_CARLO)
    assert swapped.dominance.violation == pytest.approx(result.dominance.advantage, abs=1e-14)
    assert (swapped.ks_p, swapped.mann_whitney_p) == pytest.approx((result.ks_p, result.mann_whitney_p))


def test_one_task_has_no_interval_and_no_test_of_dominance() -> None:
    values, tasks, second = draw(np.random.default_rng(12), 1, 4, shift=-1.0)
    result = contrast((values, tasks, second))
    assert all(isnan(end) for end in result.interval)
    assert result.dominance.violation > 0
    assert isnan(result.dominance.violation_p)
    assert result.permutation_p == pytest.approx(1 / 5, abs=0.08), "the lone task is the lowest of five"
    record = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert record["interval"] == [None, None]
    assert record["dominance"]["violation_p"] is None


def test_equal_values_differ_in_nothing() -> None:
    result = contrast((np.full(12, 3.0), np.repeat(np.arange(4), 3), np.repeat([False, True], 6)))
    assert (result.difference, result.interval) == (0.0, (0.0, 0.0))
    assert (result.permutation_p, result.ks_p, result.mann_whitney_p) == (1.0, 1.0, 1.0)
    dominance = result.dominance
    assert (dominance.violation, dominance.violation_p, dominance.advantage_p) == (0.0, 1.0, 1.0)
    assert str(dominance.advantage) == "0.0"
    assert dominance.holds_in_sample


def simulated(n_tasks: int, runs: int) -> list[Contrast]:
    """Contrasts of families that do not differ, ``n_tasks`` tasks each."""
    rng = np.random.default_rng(n_tasks)
    return [contrast(draw(rng, n_tasks, n_tasks), replicates=400, seed=run) for run in range(runs)]


def rejected(p: list[float]) -> float:
    return float(np.mean(np.array(p) <= 0.05))


@pytest.mark.slow
def test_errors_at_five_per_cent_and_coverage_at_ninety_five() -> None:
    """With 2,000 runs: coverage 94.2 %; rejections 4.6 % permuted, 37.8 % KS, 37.4 % Mann-Whitney, 5.9 % dominance."""
    null = simulated(30, 800)
    p = [result.permutation_p for result in null]
    assert stats.kstest(p, "uniform").pvalue > 1e-3, "uniform where tasks are exchangeable"
    assert 0.02 <= rejected(p) <= 0.08
    covered = np.mean([low <= 0 <= high for low, high in (result.interval for result in null)])
    assert 0.91 <= covered <= 0.97
    assert rejected([result.dominance.violation_p for result in null]) <= 0.09
    # Items of a task are alike: tests that take them for independent reject a true null far too often.
    assert rejected([result.ks_p for result in null]) > 0.3
    assert rejected([result.mann_whitney_p for result in null]) > 0.3
    # A one-sided p in the direction that was observed is at most 0.05 about twice as often as it says.
    assert rejected([result.permutation_p_one_sided for result in null]) > 0.06


def test_few_tasks_leave_the_permutation_right_and_the_bootstrap_too_sure() -> None:
    """With 2,000 runs: coverage 87.9 % at 5 tasks a family (91.8 % at 10, 82.2 % at 3), dominance rejected 10.5 %."""
    null = simulated(5, 800)
    assert 0.01 <= rejected([result.permutation_p for result in null]) <= 0.07
    covered = np.mean([low <= 0 <= high for low, high in (result.interval for result in null)])
    assert 0.83 <= covered <= 0.92
    assert 0.05 <= rejected([result.dominance.violation_p for result in null]) <= 0.16
