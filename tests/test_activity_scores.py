"""Activity values from raw ratings: the published tables, plain twins, intervals, choices, bad files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchwright._check import FloatArray
from benchwright.auditing.welfare import item_welfare
from benchwright.judge.activities import COGNITIVE
from benchwright.judge.activity_scores import ActivityScores, activity_scores
from benchwright.judge.workbank import WorkBank, read_workbank
from benchwright.logs.judge_loadings import read_loadings

relaxed = settings(deadline=None, max_examples=25)


@pytest.fixture(scope="module")
def raw(shared: Path) -> WorkBank:
    """The public ratings of WORKBank."""
    return read_workbank(shared / "data" / "workbank")


@pytest.mark.parametrize(("value", "suffix"), [("share", ""), ("mean", "_mean")])
def test_every_column_of_the_published_tables_follows_from_the_raw_files(
    raw: WorkBank, shared: Path, value: str, suffix: str
) -> None:
    published = pl.read_csv(shared / "data" / "olmes-audit" / f"gwa_welfare_scores{suffix}.csv").sort("concept_id")
    found = activity_scores(raw, value=value).to_frame().sort("concept_id")  # type: ignore[arg-type]
    assert found.columns == published.columns
    assert found.height == 27
    for name in published.columns:
        assert found[name].eq_missing(published[name]).all(), name


def test_published_welfare_follows_from_raw_ratings_and_published_loadings(raw: WorkBank, shared: Path) -> None:
    folder = shared / "data" / "olmes-audit"
    values = activity_scores(raw).to_frame()
    activities = values.select("dropped", activity="concept_id", auto="p_auto_15", aug="p_aug_15")
    found = item_welfare(read_loadings(folder), activities)
    both = found.join(pl.read_csv(folder / "welfare.csv"), on=["task", "doc_id"], suffix="_published")
    assert both.height == 317
    for name in ("auto", "aug"):
        assert (both[f"w_{name}_raw"] - both[f"w_{name}_published"]).abs().max() < 1e-6  # type: ignore[operator]


def twin(bank: WorkBank, *, count: str, weights: dict[str, float], threshold: float) -> dict[str, list[float]]:
    """Shares of tasks by plain loops: per activity automation and augmentation, and the number of tasks."""
    means: dict[str, list[float]] = {}
    for row in bank.tasks.iter_rows(named=True):
        rated = bank.ratings.filter(pl.col("task") == row["task"]).to_dicts()
        mine = []
        for name in ("auto", "aug"):
            pairs = [(weights[one["expertise"]], one[name]) for one in rated if one[name] is not None]
            total = sum(weight for weight, _ in pairs)
            mine.append(sum(weight * value for weight, value in pairs) / total if total else np.nan)
        means[row["task"]] = mine
    found = {}
    for activity in COGNITIVE:
        tasks = [
            row["task"]
            for row in bank.tasks.iter_rows(named=True)
            if activity.element in (row["activities"] if count == "all" else row["activities"][:1])
        ]
        shares = []
        for f in range(2):
            known = [means[task][f] for task in tasks if not np.isnan(means[task][f])]
            shares.append(sum(one >= threshold for one in known) / len(known) if known else np.nan)
        found[activity.id] = shares
    return found


def random_bank(seed: int, *, tasks: int = 30, workers: int = 12, ratings: int = 4) -> WorkBank:
    """Return ratings of tasks by workers, some missing, some tasks without activities or ratings."""
    rng = np.random.default_rng(seed)
    elements = [one.element for one in COGNITIVE[:4]] + ["4.A.3.a.3"]
    rows = []
    for task in range(tasks - 2):
        for worker in rng.choice(workers, size=ratings, replace=False):
            auto, aug = (None if rng.random() < 0.1 else float(rng.integers(1, 6)) for _ in range(2))
            rows.append((f"t{task}", f"w{worker}", ("Expert", "Average", "Novice")[worker % 3], auto, aug))
    names = ["task", "worker", "expertise", "auto", "aug"]
    listed = [list(rng.choice(elements, size=rng.integers(0, 4), replace=False)) for _ in range(tasks)]
    return WorkBank(
        pl.DataFrame(rows, schema=dict(zip(names, [pl.String] * 3 + [pl.Float64] * 2, strict=True)), orient="row"),
        pl.DataFrame(
            {
                "task": [f"t{task}" for task in range(tasks)],
                "occupation": [f"o{task % 4}" for task in range(tasks)],
                "importance": rng.uniform(1, 5, tasks),
                "employment": [None if task % 4 == 0 else 100.0 * (task % 4) for task in range(tasks)],
                "activities": pl.Series(listed, dtype=pl.List(pl.String)),
            }
        ),
        {one.element: one.label for one in COGNITIVE},
    )


@relaxed
@given(seed=st.integers(0, 2**32 - 1), count=st.sampled_from(["first", "all"]), heavy=st.booleans())
def test_shares_are_those_of_plain_loops(seed: int, count: str, heavy: bool) -> None:
    bank = random_bank(seed)
    weights = (
        {"Expert": 2.0, "Average": 1.0, "Novice": 0.0} if heavy else dict.fromkeys(("Expert", "Average", "Novice"), 1.0)
    )
    expected = twin(bank, count=count, weights=weights, threshold=3.5)
    found = activity_scores(bank, count=count, workers=weights if heavy else None, least_tasks=1)  # type: ignore[arg-type]
    for row in found.table.iter_rows(named=True):
        for name, share in zip(("auto", "aug"), expected[row["activity"]], strict=True):
            assert row[f"share_{name}"] == (None if np.isnan(share) else pytest.approx(share))


@relaxed
@given(seed=st.integers(0, 2**32 - 1))
def test_order_of_rows_and_names_of_workers_do_not_matter(seed: int) -> None:
    bank = random_bank(seed)
    rng = np.random.default_rng(seed)
    other = WorkBank(
        bank.ratings[rng.permutation(bank.ratings.height)].with_columns("x" + pl.col("worker")),
        bank.tasks[rng.permutation(bank.tasks.height)],
        bank.names,
    )
    first, second = (activity_scores(one, least_tasks=1).to_frame() for one in (bank, other))
    assert first.equals(second)


def fixed_workers(k: int, n: int) -> WorkBank:
    """Return n tasks of one activity, k of which every one of their raters wants automated, and some of another."""
    rows = [(f"a{i}", f"w{j}", "Expert", 5.0 if i < k else 1.0, 1.0) for i in range(n) for j in range(3)]
    rows += [(f"b{i}", f"w{j}", "Expert", 5.0 if i else 1.0, 1.0 + 4 * i) for i in range(2) for j in range(3)]
    tasks = [f"a{i}" for i in range(n)] + ["b0", "b1"]
    return WorkBank(
        pl.DataFrame(rows, schema=["task", "worker", "expertise", "auto", "aug"], orient="row"),
        pl.DataFrame(
            {
                "task": tasks,
                "occupation": ["o"] * len(tasks),
                "importance": [1.0] * len(tasks),
                "employment": [1.0] * len(tasks),
                "activities": [[COGNITIVE[0].element]] * n + [[COGNITIVE[1].element]] * 2,
            }
        ),
        {},
    )


@pytest.mark.parametrize(("k", "n"), [(0, 5), (2, 9), (7, 20)])
def test_draws_of_a_share_whose_raters_agree_are_jeffreys(k: int, n: int) -> None:
    found = activity_scores(fixed_workers(k, n), least_tasks=2, rng=np.random.default_rng(1), replicates=4000)
    row = found.table.filter(pl.col("activity") == COGNITIVE[0].id).row(0, named=True)
    # workers drawn again leave a task without a rating in few draws; a share's variance is then Beta's
    a, b = k + 0.5, n - k + 0.5
    slope = 4 / (found.table["share_auto"].max() - found.table["share_auto"].min())  # type: ignore[operator]
    assert row["auto_se"] == pytest.approx(slope * np.sqrt(a * b / ((a + b) ** 2 * (a + b + 1))), rel=0.1)
    assert row["auto_lo"] <= row["auto"] <= row["auto_hi"]


def test_draws_have_the_estimate_as_their_mean_and_are_those_of_the_seed(raw: WorkBank) -> None:
    found = activity_scores(raw, rng=np.random.default_rng(3), replicates=200)
    again = activity_scores(raw, rng=np.random.default_rng(3), replicates=200)
    assert found.draws is not None
    assert found.draws.equals(again.draws)
    assert found.table.equals(again.table)
    mean = found.draws.group_by("activity").agg(pl.col("auto", "aug").mean())
    both = found.table.filter(~pl.col("dropped")).join(mean, on="activity", suffix="_mean")
    assert both.height == 24
    for name in ("auto", "aug"):
        assert (both[name] - both[f"{name}_mean"]).abs().max() < 1e-9  # type: ignore[operator]
        assert ((both[f"{name}_lo"] <= both[name]) & (both[name] <= both[f"{name}_hi"])).all()
        assert (both[f"{name}_se"] > 0.3).all()  # 0 of 5 tasks is no certainty


def test_two_framings_of_a_task_are_drawn_together() -> None:
    """Where both framings' ratings are the same, their draws are close to the same but for the half tasks."""
    bank = random_bank(5, tasks=200, workers=60)
    bank = WorkBank(bank.ratings.with_columns(aug="auto"), bank.tasks, bank.names)
    found = activity_scores(bank, rng=np.random.default_rng(0), replicates=500)
    assert found.draws is not None
    for (_,), part in found.draws.group_by("activity"):
        assert np.corrcoef(part["auto"], part["aug"])[0, 1] > 0.9


@pytest.mark.slow
@pytest.mark.parametrize("value", ["share", "mean"])
def test_intervals_hold_what_the_estimate_is_about(value: str) -> None:
    """Coverage of the expected estimate, over fresh workers and tasks: five activities of ten tasks, seven raters each.

    Measured over 300 samples: 0.95 to 0.99 for shares, 0.94 to 0.97 for means.
    """
    rng = np.random.default_rng(11)

    def sample() -> WorkBank:
        n, workers = 50, 70
        want, level = rng.normal(3.2, 0.7, n) + np.arange(n) % 5 / 4 - 0.5, rng.normal(0, 0.4, workers)
        rows = []
        for task in range(n):
            for worker in rng.choice(workers, size=7, replace=False):
                rated = np.clip(np.round(want[task] + level[worker] + rng.normal(0, 0.8, 2)), 1, 5)
                rows.append((f"t{task}", f"w{worker}", "Expert", *rated))
        return WorkBank(
            pl.DataFrame(rows, schema=["task", "worker", "expertise", "auto", "aug"], orient="row"),
            pl.DataFrame(
                {
                    "task": [f"t{task}" for task in range(n)],
                    "occupation": ["o"] * n,
                    "importance": [1.0] * n,
                    "employment": [1.0] * n,
                    "activities": [[COGNITIVE[task % 5].element] for task in range(n)],
                }
            ),
            {},
        )

    def figures(found: ActivityScores) -> FloatArray:
        """The estimates of the kept activities on their native scale, and their intervals, by undoing the line."""
        table = found.table.filter(~pl.col("dropped"))
        own = table[f"{value}_auto"].to_numpy()
        slope = 4 / np.ptp(own) if value == "share" else 1.0
        start = 1 - slope * own.min() if value == "share" else 0.0
        return np.stack([own, *((table[f"auto_{end}"].to_numpy() - start) / slope for end in ("lo", "hi"))])

    rows = [
        figures(activity_scores(sample(), value=value, rng=np.random.default_rng(i), replicates=199))  # type: ignore[arg-type]
        for i in range(300)
    ]
    estimates, low, high = np.stack(rows, axis=1)
    target = estimates.mean(axis=0)
    covered = ((low <= target + 1e-9) & (target - 1e-9 <= high)).mean(axis=0)
    assert covered.min() > 0.92
