"""Statistics over the cells of a panel, written once for every engine.

A cell is the answer of one run to one item: its value y is the mean over the N trials that the rows of the cell
hold, a row with k trials being a mean of k of them. All statistics are sums over cells:

* between trials of one cell: SS = sum_rows [k (v - y)^2 + w], w the sum of squares within a row. One trial has
  w = 0; k trials that were right or wrong, so that kv is whole, have w = k v (1 - v); any other w is unknown.
  The variance of one trial is SS / (N - 1);
* between replicates t of one checkpoint c, pooled: sigma2 = sum_c SS_c / sum_c (n_c - 1);
* over the doses of a training axis, per item: slope = S_xy / S_xx, with the residuals' variance over n - 2.

Sums of squares are taken about the mean, never as differences of large sums, so that digits survive large means (a
dose of 1e12); values that are all equal have no spread, exactly. What does not exist is null.

The functions take and give lazy frames of narwhals and know no engine: polars, DuckDB and Spark run the same
expressions (:mod:`benchwright.estimating.engines`). The order of rows is not defined.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals.stable.v2 as nw
import polars as pl

from benchwright.panel.panel import IDENTITY

Frame = nw.LazyFrame[Any]
KEYS = (*IDENTITY, "task", "metric", "filter")  # what rows are chosen by
CELL = ("run_no", "task", "doc_id")
ITEM = ("task", "doc_id")
WHOLE = 1e-6  # how far from a whole number a count of right trials may be

# What stands for null where two tables are matched: a Unicode noncharacter, and numbers that no run has.
_STAND_INS: dict[str, tuple[Any, Any]] = {
    "run": (nw.Int64, -(2**62)),
    "seed": (nw.Int64, -(2**62)),
    "step": (nw.Int64, -(2**62)),
    "dose": (nw.Float64, -1.7e308),
}
_TEXT = (nw.String, "\uffff")


def match(left: Frame, right: Frame, on: Sequence[str]) -> Frame:
    """Join the rows of two frames that agree on columns of a panel, null with null.

    Parameters
    ----------
    left, right
        Frames of one engine; beyond ``on`` they share no column.
    on
        Names of columns: identity, ``task``, ``metric``, ``filter``, ``part``, ``run``.

    Returns
    -------
    All columns of ``left`` and those of ``right`` that are not in ``on``.

    Examples
    --------
    >>> import polars as pl
    >>> one = nw.from_native(pl.LazyFrame({"model": ["a", "a"], "seed": [None, 1], "value": [0.5, 1.0]}))
    >>> two = nw.from_native(pl.LazyFrame({"model": ["a"], "seed": [None], "run_no": [7]}))
    >>> match(one, two, ["model", "seed"]).to_native().collect().rows()
    [('a', None, 0.5, 7)]
    """
    keys = {f"_{name}": _filled(name) for name in on}
    other = right.with_columns(**keys).drop(*on)
    return left.with_columns(**keys).join(other, on=list(keys), how="inner").drop(*keys)


def offered(rows: Frame) -> Frame:
    """Count the rows of each run (identity), task, metric and filter.

    Returns
    -------
    ``KEYS``, ``n_rows``, ``n_scored`` (rows with a finite value) and ``higher_is_better``: null where the rows do
    not say, or do not agree.

    Examples
    --------
    >>> import polars as pl
    >>> rows = pl.LazyFrame({name: ["a", "a"] for name in KEYS}).with_columns(
    ...     status=pl.Series(["scored", "error"]), value=pl.Series([0.5, None]), higher_is_better=pl.lit(True)
    ... )
    >>> offered(nw.from_native(rows)).to_native().collect().select("n_rows", "n_scored", "higher_is_better").rows()
    [(2, 1, True)]
    """
    better = nw.col("higher_is_better").cast(nw.Int64)
    counted = rows.with_columns(_scored=_is_scored().fill_null(False).cast(nw.Int64), _better=better)
    table = counted.group_by(*KEYS).agg(
        n_rows=nw.len().cast(nw.Int64),
        n_scored=nw.col("_scored").sum().cast(nw.Int64),
        most=nw.col("_better").max(),
        least=nw.col("_better").min(),
    )
    agreed = nw.when(nw.col("most") == nw.col("least")).then(nw.col("most") == 1)
    return table.with_columns(higher_is_better=agreed).drop("most", "least")


def cell_values(rows: Frame, selection: Frame) -> Frame:
    """Return the cells of the rows that are chosen: one row per run, task and item.

    Parameters
    ----------
    rows
        Rows of a panel with the run's identity. Those that are scored, with a finite value of one trial or more,
        count.
    selection
        ``KEYS`` and ``run_no``: which rows are used, and the number of the run that they belong to.

    Returns
    -------
    ``run_no``, ``task``, ``doc_id``, ``value``, ``trials`` and ``trial_variance``, the unbiased variance of one
    trial; null where there is one trial, or where a row is a mean of several that were not plainly right or wrong.

    Examples
    --------
    >>> import polars as pl
    >>> rows = pl.LazyFrame({name: ["a"] for name in KEYS}).with_columns(
    ...     doc_id=pl.lit("1"), status=pl.lit("scored"), value=pl.lit(0.75), trials=pl.lit(4)
    ... ).cast({"seed": pl.String})
    >>> rows = rows.with_columns(seed=1, step=2, dose=None)
    >>> chosen = rows.select(*KEYS, run_no=pl.lit(0))
    >>> cell_values(nw.from_native(rows), nw.from_native(chosen)).to_native().collect().rows()
    [(0, 'a', '1', 0.75, 4, 0.25)]
    """
    value, trials = nw.col("value"), nw.col("trials")
    used = rows.filter(_is_scored(), trials >= 1).select(*KEYS, "doc_id", "value", "trials")
    used = match(used, selection.select(*KEYS, "run_no"), KEYS).select(
        nw.col("run_no").cast(nw.Int64), *ITEM, "value", trials.cast(nw.Float64)
    )
    right = trials * value
    rest = right % 1
    is_whole = ((rest <= WHOLE) | (rest >= 1 - WHOLE)) & (value >= 0) & (value <= 1)
    known = nw.when(trials == 1).then(0.0).otherwise(nw.when(is_whole).then(right * (1 - value)))
    used = _in_order(used, *CELL, "value", "trials")
    used = used.with_columns(mean=(right.sum() / trials.sum()).over(*CELL), within=known)
    sums = used.group_by(*CELL).agg(
        value=nw.col("mean").max(),
        trials=trials.sum().cast(nw.Float64),
        between=(trials * (value - nw.col("mean")) ** 2).sum(),
        within=nw.col("within").sum(),
        unknown=nw.col("within").is_null().cast(nw.Int64).max(),
        spread=value.max() - value.min(),
    )
    squares = nw.when(nw.col("spread") > 0).then(nw.col("between")).otherwise(0.0) + nw.col("within")
    variance = nw.when(nw.col("unknown") == 0).then(_ratio(squares, trials - 1))
    return sums.select(*CELL, "value", trials.cast(nw.Int64), trial_variance=variance)


def noise_statistics(cells: Frame, runs: Frame) -> Frame:
    """Return each item's variance between replicates of one checkpoint, pooled over checkpoints.

    Parameters
    ----------
    cells
        As :func:`cell_values` gives them.
    runs
        ``run_no`` and ``checkpoint``; runs of one checkpoint are replicates. Cells of other runs are left out.

    Returns
    -------
    ``task``, ``doc_id``, ``mean_score`` (over all values), ``sigma2`` (null without degrees of freedom), ``df``,
    ``n_values`` and ``n_checkpoints`` (those with two values or more, the only ones that add to ``df``).

    Examples
    --------
    >>> import polars as pl
    >>> cells = pl.LazyFrame({"run_no": [0, 1, 2], "task": "t", "doc_id": "1", "value": [0.0, 1.0, 1.0]})
    >>> runs = pl.LazyFrame({"run_no": [0, 1, 2], "checkpoint": [1, 1, 2]})
    >>> table = noise_statistics(nw.from_native(cells), nw.from_native(runs)).to_native().collect()
    >>> table.select("sigma2", "df", "n_values", "n_checkpoints").rows()
    [(0.5, 1, 3, 1)]
    """
    value, away, group = nw.col("value"), nw.col("away"), (*ITEM, "checkpoint")
    # The mean of what is above the least is exact where all values are equal.
    table = _of_runs(cells, runs, "checkpoint").with_columns(away=value - value.min().over(*group))
    table = table.with_columns(away=away - away.mean().over(*group))
    groups = table.group_by(*group).agg(n=nw.len().cast(nw.Int64), total=value.sum(), squares=(away**2).sum())
    n = nw.col("n")
    sums = (
        _in_order(groups, *group)
        .with_columns(several=(n >= 2).cast(nw.Int64))
        .group_by(*ITEM)
        .agg(
            total=nw.col("total").sum(),
            squares=nw.col("squares").sum(),
            df=(n - 1).sum().cast(nw.Int64),
            n_values=n.sum().cast(nw.Int64),
            n_checkpoints=nw.col("several").sum().cast(nw.Int64),
        )
    )
    return _summary(sums, "n_values")


def trial_statistics(cells: Frame, runs: Frame) -> Frame:
    """Return each item's variance between single trials of one cell, pooled over cells.

    Parameters
    ----------
    cells, runs
        As for :func:`noise_statistics`. Cells without ``trial_variance`` are left out, and with them items that
        have no other.

    Returns
    -------
    The columns of :func:`noise_statistics`: ``mean_score`` weighs cells by their trials, ``n_values`` counts cells,
    ``n_checkpoints`` the checkpoints that they come from.

    Examples
    --------
    >>> import polars as pl
    >>> cells = pl.LazyFrame(
    ...     {"run_no": [0], "task": "t", "doc_id": "1", "value": [0.75], "trials": [4], "trial_variance": [0.25]}
    ... )
    >>> runs = pl.LazyFrame({"run_no": [0], "checkpoint": [1]})
    >>> trial_statistics(nw.from_native(cells), nw.from_native(runs)).to_native().collect().rows()
    [('t', '1', 0.75, 0.25, 3, 1, 1)]
    """
    trials = nw.col("trials")
    known = cells.filter(~nw.col("trial_variance").is_null())
    sums = (
        _of_runs(known, runs, "checkpoint")
        .group_by(*ITEM)
        .agg(
            total=(trials * nw.col("value")).sum(),
            squares=((trials - 1) * nw.col("trial_variance")).sum(),
            n_trials=trials.sum().cast(nw.Int64),
            df=(trials - 1).sum().cast(nw.Int64),
            n_values=nw.len().cast(nw.Int64),
            n_checkpoints=nw.col("checkpoint").n_unique().cast(nw.Int64),
        )
    )
    return _summary(sums, "n_trials")


def slope_statistics(cells: Frame, grid: Frame) -> Frame:
    """Fit each item's value against the dose of each training axis, by least squares.

    Parameters
    ----------
    cells
        As :func:`cell_values` gives them.
    grid
        ``run_no``, ``axis`` and ``x``, the dose in the slope's unit; a run may stand on several axes. Entries
        without a finite ``x`` are left out.

    Returns
    -------
    ``task``, ``doc_id``, ``axis``, ``n``, ``n_doses``, ``slope`` and ``intercept`` (null for a single dose),
    ``residual_variance`` (divisor n - 2; null for n < 3 or a single dose) and ``sxx``, the sum of squares of x.

    Examples
    --------
    >>> import polars as pl
    >>> cells = pl.LazyFrame({"run_no": [0, 1, 2], "task": "t", "doc_id": "1", "value": [0.0, 0.5, 1.0]})
    >>> grid = pl.LazyFrame({"run_no": [0, 1, 2], "axis": "size", "x": [1e12, 1e12 + 1, 1e12 + 2]})
    >>> table = slope_statistics(nw.from_native(cells), nw.from_native(grid)).to_native().collect()
    >>> table.select("n", "n_doses", "slope", "residual_variance", "sxx").rows()
    [(3, 3, 0.5, 0.0, 2.0)]
    """
    key = (*ITEM, "axis")
    x, y, dx, dy, slope = (nw.col(name) for name in ("x", "value", "dx", "dy", "slope"))
    grid = grid.with_columns(x=x.cast(nw.Float64)).filter(x.is_finite())
    table = _of_runs(cells, grid, "axis", "x").select(*key, "value", "x")
    # The mean of what is above the least has all its digits where doses are large and close.
    table = table.with_columns(dx=x - x.min().over(*key), dy=y - y.min().over(*key))
    table = table.with_columns(dx=dx - dx.mean().over(*key), dy=dy - dy.mean().over(*key))
    table = table.with_columns(slope=_ratio((dx * dy).sum().over(*key), (dx**2).sum().over(*key)))
    sums = table.group_by(*key).agg(
        n=nw.len().cast(nw.Int64),
        n_doses=x.n_unique().cast(nw.Int64),
        slope=slope.max(),
        mean_x=x.mean(),
        mean_y=y.mean(),
        squares=((dy - slope * dx) ** 2).sum(),
        sxx=(dx**2).sum(),
    )
    spread = nw.when(~slope.is_null()).then(_ratio(nw.col("squares"), nw.col("n") - 2))
    return sums.select(
        *key,
        "n",
        "n_doses",
        "slope",
        intercept=nw.col("mean_y") - slope * nw.col("mean_x"),
        residual_variance=spread,
        sxx=nw.col("sxx"),
    )


def _filled(name: str) -> nw.Expr:
    kind, stand_in = _STAND_INS.get(name, _TEXT)
    return nw.col(name).cast(kind).fill_null(stand_in)


def _is_scored() -> nw.Expr:
    return (nw.col("status") == "scored") & nw.col("value").is_finite()


def _of_runs(cells: Frame, runs: Frame, *columns: str) -> Frame:
    """Add columns of the cells' runs; a run may have several rows or none."""
    facts = runs.select(nw.col("run_no").cast(nw.Int64), *columns)
    joined = cells.with_columns(nw.col("run_no").cast(nw.Int64)).join(facts, on="run_no", how="inner")
    return _in_order(joined, *ITEM, "run_no", *columns)


def _in_order(frame: Frame, *columns: str) -> Frame:
    """Put the rows of each group in order where rows have one: sums run alike, so the same rows give the same bits.

    polars keeps that promise in its in-memory engine only, and may drop a sort that a group-by follows: so the sorted
    frame is computed here. Text is sorted by code, which is fast; the order of groups does not matter.
    """
    if not frame.implementation.is_polars():
        return frame
    native = frame.to_native()
    kinds = native.collect_schema()
    by = [_code(name) if kinds[name] == pl.String else pl.col(name) for name in columns]
    ordered: Frame = nw.from_native(native.sort(by).collect(engine="in-memory").lazy())
    return ordered


def _code(name: str) -> pl.Expr:
    return pl.col(name).cast(pl.Categorical).to_physical()


def _ratio(top: nw.Expr, bottom: nw.Expr) -> nw.Expr:
    """Top over bottom where that is positive, else null."""
    return nw.when(bottom > 0).then(top / bottom)


def _summary(sums: Frame, count: str) -> Frame:
    """Turn sums per item into the columns of :func:`noise_statistics`."""
    return sums.select(
        *ITEM,
        mean_score=_ratio(nw.col("total"), nw.col(count)),
        sigma2=_ratio(nw.col("squares"), nw.col("df")),
        df=nw.col("df"),
        n_values=nw.col("n_values"),
        n_checkpoints=nw.col("n_checkpoints"),
    )
