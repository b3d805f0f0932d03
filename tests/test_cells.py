"""Statistics over cells against exact arithmetic on random unbalanced panels."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchwright.estimating.cells import (
    CELL,
    ITEM,
    KEYS,
    cell_values,
    match,
    noise_statistics,
    offered,
    slope_statistics,
    trial_statistics,
)

Row = dict[str, Any]
SCHEMA: dict[str, Any] = dict.fromkeys(KEYS, pl.String) | {
    "seed": pl.Int64,
    "step": pl.Int64,
    "dose": pl.Float64,
    "doc_id": pl.String,
    "value": pl.Float64,
    "trials": pl.Int64,
    "status": pl.String,
    "higher_is_better": pl.Boolean,
}
SELECTION = {name: SCHEMA[name] for name in KEYS} | {"run_no": pl.Int64}
SUMMARY = ("mean_score", "sigma2", "df", "n_values", "n_checkpoints")
LINE = ("n", "n_doses", "slope", "intercept", "residual_variance", "sxx")


def mean(values: Sequence[Fraction]) -> Fraction:
    return sum(values, Fraction(0)) / len(values)


def squares(values: Sequence[Fraction]) -> Fraction:
    return sum(((value - mean(values)) ** 2 for value in values), Fraction(0))


def grouped(rows: Iterable[Row], *names: str) -> dict[tuple[Any, ...], list[Row]]:
    groups = defaultdict(list)
    for row in rows:
        groups[tuple(row[name] for name in names)].append(row)
    return groups


def exact_cells(rows: Iterable[Row], selection: Sequence[Row]) -> list[Row]:
    """The cells, each mean of several trials taken apart into the right and wrong ones that it must come from."""
    run_of = {tuple(row[name] for name in KEYS): row["run_no"] for row in selection}
    used = []
    for row in rows:
        run_no = run_of.get(tuple(row[name] for name in KEYS))
        if run_no is not None and row["status"] == "scored" and row["value"] is not None and np.isfinite(row["value"]):
            used.append(row | {"run_no": run_no})
    cells = []
    for key, mine in grouped(used, *CELL).items():
        singles: list[Fraction] | None = []
        n = sum(row["trials"] for row in mine)
        total = sum((row["trials"] * Fraction(row["value"]) for row in mine), Fraction(0))
        for row in mine:
            right = round(row["trials"] * row["value"])
            if row["trials"] == 1:
                trials = [Fraction(row["value"])]
            elif abs(right - row["trials"] * row["value"]) < 1e-6 and 0 <= row["value"] <= 1:
                trials = [Fraction(1)] * right + [Fraction(0)] * (row["trials"] - right)
            else:
                singles = None
            if singles is not None:
                singles += trials
        variance = squares(singles) / (n - 1) if singles is not None and n > 1 else None
        cells.append(dict(zip(CELL, key, strict=True)) | {"value": total / n, "trials": n, "trial_variance": variance})
    return cells


def exact_noise(cells: Iterable[Row], runs: Sequence[Row]) -> list[Row]:
    checkpoint = {run["run_no"]: run["checkpoint"] for run in runs}
    table = []
    for key, mine in grouped((cell for cell in cells if cell["run_no"] in checkpoint), *ITEM).items():
        groups = defaultdict(list)
        for cell in mine:
            groups[checkpoint[cell["run_no"]]].append(Fraction(cell["value"]))
        df = sum(len(values) - 1 for values in groups.values())
        total = sum((squares(values) for values in groups.values()), Fraction(0))
        numbers = (
            mean([Fraction(cell["value"]) for cell in mine]),
            total / df if df else None,
            df,
            len(mine),
            sum(len(values) > 1 for values in groups.values()),
        )
        table.append(dict(zip((*ITEM, *SUMMARY), (*key, *numbers), strict=True)))
    return table


def exact_trials(cells: Iterable[Row], runs: Sequence[Row]) -> list[Row]:
    checkpoint = {run["run_no"]: run["checkpoint"] for run in runs}
    known = [cell for cell in cells if cell["run_no"] in checkpoint and cell["trial_variance"] is not None]
    table = []
    for key, mine in grouped(known, *ITEM).items():
        n = sum(cell["trials"] for cell in mine)
        df = n - len(mine)
        numbers = (
            sum((cell["trials"] * Fraction(cell["value"]) for cell in mine), Fraction(0)) / n,
            sum(((cell["trials"] - 1) * Fraction(cell["trial_variance"]) for cell in mine), Fraction(0)) / df,
            df,
            len(mine),
            len({checkpoint[cell["run_no"]] for cell in mine}),
        )
        table.append(dict(zip((*ITEM, *SUMMARY), (*key, *numbers), strict=True)))
    return table


def exact_slopes(cells: Sequence[Row], grid: Iterable[Row]) -> list[Row]:
    points = [
        cell | point
        for point in grid
        if point["x"] is not None and np.isfinite(point["x"])
        for cell in cells
        if cell["run_no"] == point["run_no"]
    ]
    table = []
    for key, mine in grouped(points, *ITEM, "axis").items():
        x, y = ([Fraction(point[name]) for point in mine] for name in ("x", "value"))
        n, sxx = len(mine), squares(x)
        slope = intercept = residual = None
        if sxx > 0:
            slope = sum(((a - mean(x)) * b for a, b in zip(x, y, strict=True)), Fraction(0)) / sxx
            intercept = mean(y) - slope * mean(x)
            rest = [b - intercept - slope * a for a, b in zip(x, y, strict=True)]
            residual = sum((r**2 for r in rest), Fraction(0)) / (n - 2) if n > 2 else None
        numbers = (n, len(set(x)), slope, intercept, residual, sxx)
        table.append(dict(zip((*ITEM, "axis", *LINE), (*key, *numbers), strict=True)))
    return table


def agree(
    frame: pl.DataFrame, expected: Iterable[Row], key: Sequence[str], slack: float = 1e-13, rel: float = 1e-9
) -> None:
    """Same keys, nulls in the same places, numbers to ``rel`` (or to ``slack`` where they are next to nothing)."""

    def keyed(rows: Iterable[Row]) -> dict[Hashable, Row]:
        return {tuple(row[name] for name in key): row for row in rows}

    found, wanted = keyed(frame.iter_rows(named=True)), keyed(expected)
    assert frame.height == len(found)
    assert set(found) == set(wanted)
    for place, row in wanted.items():
        for name, value in row.items():
            got = found[place][name]
            if value is None or isinstance(value, (str, bool)):
                assert got == value, (place, name)
            else:
                assert got == pytest.approx(float(value), rel=rel, abs=slack), (place, name)


def collected(frame: nw.LazyFrame[Any]) -> pl.DataFrame:
    table: pl.DataFrame = frame.to_native().collect()
    return table


def on_polars(rows: Sequence[Row], schema: Mapping[str, Any] | None = None) -> nw.LazyFrame[Any]:
    frame: nw.LazyFrame[Any] = nw.from_native(pl.LazyFrame(rows, schema=schema, orient="row"))
    return frame


def chosen(rows: Iterable[Row]) -> list[Row]:
    """A selection of all that rows hold, each kind of row a run of its own."""
    return [dict(zip((*KEYS, "run_no"), (*key, place), strict=True)) for place, key in enumerate(grouped(rows, *KEYS))]


def random_rows(rng: np.random.Generator, scale: float) -> list[Row]:
    """Rows with holes, repeats, means of several trials, unknown seeds, and values that do not count."""
    rows = []
    for model in ("a", "b"):
        for seed in (0, 1, 2, None):
            for step in rng.choice([1, 2, 3], size=rng.integers(0, 4), replace=False):
                for item in rng.choice(5, size=rng.integers(0, 6), replace=False):
                    for _ in range(rng.integers(1, 4)):
                        trials = int(rng.choice([1, 1, 1, 3, 10]))
                        right = rng.integers(0, trials + 1) / trials
                        value = right if rng.random() < 0.7 else scale + rng.random()
                        value = float(rng.choice([value, value, value, value, np.nan, np.inf]))
                        rows.append(
                            dict.fromkeys(SCHEMA)
                            | {"model": model, "seed": seed, "step": int(step), "task": "t", "metric": "acc"}
                            | {"axis": "size", "dose": None if step == 3 else float(step), "doc_id": str(item)}
                            | {"status": str(rng.choice(["scored", "scored", "scored", "error"]))}
                            | {"value": value, "trials": trials, "filter": [None, "strict"][rng.integers(2)]}
                        )
    return rows


@settings(max_examples=80, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), scale=st.sampled_from([0.0, 1e3]), start=st.sampled_from([0.0, 1e12]))
def test_statistics_are_those_of_exact_arithmetic(seed: int, scale: float, start: float) -> None:
    rng = np.random.default_rng(seed)
    rows = random_rows(rng, scale)
    slack = 1e-13 * max(1.0, scale)
    selection = chosen(row for row in rows if row["filter"] is None)
    cells = cell_values(on_polars(rows, SCHEMA), on_polars(selection, SELECTION))
    agree(collected(cells), exact_cells(rows, selection), CELL, slack)
    # What follows is compared on the same cells, in numbers as they are stored.
    cells = nw.from_native(collected(cells).lazy())
    given_cells = collected(cells).to_dicts()
    runs = [{"run_no": n, "checkpoint": int(rng.integers(3))} for n in range(len(selection)) if rng.random() < 0.9]
    on_runs = on_polars(runs, {"run_no": pl.UInt32, "checkpoint": pl.Int64})
    agree(collected(noise_statistics(cells, on_runs)), exact_noise(given_cells, runs), ITEM, slack)
    agree(collected(trial_statistics(cells, on_runs)), exact_trials(given_cells, runs), ITEM, slack)
    doses = [start, start + 1, start + 7, None, np.nan]
    grid = [
        {"run_no": n, "axis": axis, "x": doses[rng.choice(5, p=[0.3, 0.3, 0.3, 0.05, 0.05])]}
        for n in range(len(selection))
        for axis in ("size", "age")
        if rng.random() < 0.8
    ]
    on_grid = on_polars(grid, {"run_no": pl.Int32, "axis": pl.String, "x": pl.Float64})
    found = collected(slope_statistics(cells, on_grid))
    far = found.select((pl.col("slope") * start).abs().max().fill_null(0.0)).item()
    key = (*ITEM, "axis")
    wanted = exact_slopes(given_cells, grid)
    agree(found.drop("intercept"), [{n: v for n, v in row.items() if n != "intercept"} for row in wanted], key, slack)
    agree(found, wanted, key, max(slack, 1e-14 * far))  # an intercept far off has no more digits than slope times dose


def test_offered_counts_what_is_scored_and_takes_a_direction_only_if_all_agree() -> None:
    base = dict.fromkeys(SCHEMA) | {"model": "m", "task": "t", "metric": "acc", "status": "scored", "value": 1.0}
    rows = [
        base | {"higher_is_better": True},
        base | {"status": "error", "value": None},
        base | {"value": float("nan")},
        base | {"seed": 1, "higher_is_better": True},
        base | {"seed": 1, "higher_is_better": False},
        base | {"filter": "strict", "dose": 2.5, "status": None},
    ]
    table = collected(offered(on_polars(rows, SCHEMA))).sort("seed", "filter", nulls_last=False)
    assert table.columns == [*KEYS, "n_rows", "n_scored", "higher_is_better"]
    assert table.select("seed", "filter", "n_rows", "n_scored", "higher_is_better").rows() == [
        (None, None, 3, 1, True),
        (None, "strict", 1, 0, None),
        (1, None, 2, 2, None),
    ]


def test_equal_values_have_no_spread_exactly() -> None:
    cells = [{"run_no": n, "task": "t", "doc_id": "1", "value": 0.1, "trials": 1} for n in range(7)]
    runs = on_polars([{"run_no": n, "checkpoint": 0} for n in range(7)])
    assert collected(noise_statistics(on_polars(cells), runs))["sigma2"].to_list() == [0.0]
    grid = on_polars([{"run_no": n, "axis": "size", "x": 0.1 * n} for n in range(7)])
    line = collected(slope_statistics(on_polars(cells), grid))
    assert line.select("slope", "residual_variance").rows() == [(0.0, 0.0)]
    one_dose = on_polars([{"run_no": n, "axis": "size", "x": 0.1} for n in range(7)])
    line = collected(slope_statistics(on_polars(cells), one_dose))
    assert line.select("n", "n_doses", "sxx", "slope", "intercept", "residual_variance").rows() == [
        (7, 1, 0.0, None, None, None)
    ]
    row = dict.fromkeys(SCHEMA) | {"task": "t", "doc_id": "1", "value": 0.1, "trials": 1, "status": "scored"}
    assert collected(cell_values(on_polars([row] * 3, SCHEMA), on_polars(chosen([row]), SELECTION)))[
        "trial_variance"
    ].to_list() == [0.0]


@pytest.mark.parametrize(
    ("value", "trials", "variance"),
    [
        (1 / 3, 3, 1 / 3),
        (0.3333333, 3, 1 / 3),  # written to seven digits: a whole number of right trials to 1e-6
        (0.33, 3, None),
        (2.0, 3, None),  # whole, but no share of right trials
        (-1.0, 3, None),
        (0.5, 1, None),
    ],
)
def test_a_mean_of_several_trials_tells_their_variance_only_if_each_was_right_or_wrong(
    value: float, trials: int, variance: float | None
) -> None:
    row = dict.fromkeys(SCHEMA) | {"task": "t", "doc_id": "1", "value": value, "trials": trials, "status": "scored"}
    cell = collected(cell_values(on_polars([row], SCHEMA), on_polars(chosen([row]), SELECTION))).row(0, named=True)
    assert cell["trial_variance"] == (variance if variance is None else pytest.approx(variance, rel=1e-5))
    assert (cell["value"], cell["trials"]) == (value, trials)


def test_null_is_matched_with_null_only() -> None:
    schema = {"seed": pl.Int64, "dose": pl.Float64, "filter": pl.String}
    rows = [
        {"seed": seed, "dose": dose, "filter": word}
        for seed in (None, 0, -1)
        for dose in (None, 0.0)
        for word in (None, "", "null")
    ]
    left = on_polars(rows, schema)
    right = on_polars([row | {"place": place} for place, row in enumerate(rows)], schema | {"place": pl.Int32})
    assert collected(match(left, right, list(schema))).sort("place")["place"].to_list() == list(range(len(rows)))
