"""Scores by effort out of whatever ``benchwright ingest`` reads: tables, trajectories, logs of checkpoints, panels.

Effort is the step of a run, or its dose on a training axis. A row is one score that a log states; where none is stated,
the mean over the items of a run. One task, metric and filter is read at a time: what cannot be a score of a curve
(lower is better, outside [0, 1], or there at one effort only) is no candidate, and where more than one candidate is
left the user chooses.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

import numpy as np
import polars as pl

from benchwright._words import count
from benchwright.curves.scores import EffortScores
from benchwright.errors import DataError, UsageError
from benchwright.logs.table_columns import higher_is_better
from benchwright.panel.ingest import MANIFEST, read_logs
from benchwright.panel.names import listed, matching, shown
from benchwright.panel.panel import Panel

EffortKind = Literal["step", "dose"]
EFFORTS: tuple[EffortKind, ...] = ("step", "dose")
CHOSEN_BY = ("task", "metric", "filter")
OF_RUN = ("model", "revision", "step", "axis", "dose", "dose_unit", "setting", "part", "run")
NO_FILTER = "none"  # as lm-eval writes it
REFUSED_SHOWN = 3
ITEMS_AT_MOST = 10**12


def read_effort_scores(
    path: str | Path | Panel,
    *,
    models: str | Sequence[str] | None = None,
    task: str | None = None,
    metric: str | None = None,
    filter: str | None = None,  # noqa: A002  the logs' word
    effort: EffortKind | None = None,
    items: int | None = None,
) -> EffortScores:
    """Read the scores of models by effort, of one task, metric and filter.

    Parameters
    ----------
    path
        A file or folder as ``ingest`` reads it, a panel, or its folder.
    models
        Names to keep, with ``*`` for any text, or after a ``!`` to leave out.
    task, metric, filter
        Which scores; names as in the logs, patterns alike. Needed only where several are left.
    effort
        "step" or "dose"; by default the step, and the dose where no run has a step.
    items
        Number of items behind a score, for scores that state neither it nor a standard error.

    Raises
    ------
    UsageError
        There is no such path or name, no effort, or several tasks, metrics or filters are left: all are listed.
    DataError
        No score is left that a curve can be fitted to; says why of each.
    """
    if effort is not None and effort not in EFFORTS:
        raise UsageError(f"`effort` must be one of {', '.join(EFFORTS)}, got {effort!r}")
    table, notes = _stated(path)
    if models is not None:
        names = matching("model", table["model"].unique(maintain_order=True).to_list(), models)
        table = table.filter(pl.col("model").is_in(names))
    table, unit, said = _with_effort(table, effort)
    notes += said
    for name, pattern in zip(CHOSEN_BY, (task, metric, filter), strict=True):
        if pattern is not None:
            there = table[name].unique(maintain_order=True).to_list()
            table = table.filter(pl.col(name).is_in(matching(name, there, pattern)))
    table, title, said = _one(table)
    notes += said
    if items is not None:
        table, said = _with_items(table, items)
        notes += said
    return _scores(table, unit, title, notes)


def _stated(path: str | Path | Panel) -> tuple[pl.DataFrame, list[str]]:
    """Return all scores of a source, one row a run, task, metric and filter, and what its reader notes."""
    if isinstance(path, Panel):
        return _named(_all_scores(path)), list(path.manifest["notes"])
    if (Path(path) / MANIFEST).is_file():
        return _stated(Panel.open(path))
    with TemporaryDirectory(prefix="benchwright-") as folder:
        done = read_logs(path, Path(folder) / "panel")
        notes = list(done.notes)
        if done.faults:
            notes.append(f"{count(len(done.faults), 'fault')} in the source: {listed(done.faults)}")
        return _named(_all_scores(Panel.open(done.panel))), notes


def _all_scores(panel: Panel) -> pl.DataFrame:
    """Return the scores that logs state, and the means over items of runs whose scores are not stated."""
    columns = [*OF_RUN, *CHOSEN_BY, "version", "value", "stderr", "n", "higher_is_better"]
    stated = panel.scores().select(columns).collect()
    if not panel.manifest["counts"]["rows"]:
        return stated
    key = [*OF_RUN, *CHOSEN_BY, "version"]
    items = (
        panel.rows()
        .filter(pl.col("status") == "scored")
        .group_by([*key, "doc_id"], maintain_order=True)
        .agg(pl.col("value").mean(), pl.col("higher_is_better").first())
    )
    means = items.group_by(key, maintain_order=True).agg(
        pl.col("value").mean(),
        stderr=pl.when(pl.len() > 1).then(pl.col("value").std() / pl.len().sqrt()),
        n=pl.when(pl.col("value").is_in([0.0, 1.0]).all()).then(pl.len().cast(pl.Int64)),
        higher_is_better=pl.col("higher_is_better").first(),
    )
    fresh = means.collect().join(stated, on=["part", "run", *CHOSEN_BY], how="anti", nulls_equal=True)
    return pl.concat([stated, fresh.select(columns)])


def _named(table: pl.DataFrame) -> pl.DataFrame:
    """Put into the model's name what tells two of its curves apart: setting, training axis, revision."""
    same = ["model", "setting", "axis", "step", "dose", *CHOSEN_BY]
    mixed = table.filter(pl.col("revision").n_unique().over(same) > 1)["model"].unique()
    name = pl.col("model")
    for column in ("setting", "axis"):
        several = pl.col(column).n_unique() > 1
        name = pl.when(several & pl.col(column).is_not_null()).then(pl.format("{} [{}]", name, column)).otherwise(name)
    revision = pl.col("model").is_in(mixed.implode()) & pl.col("revision").is_not_null()
    model = pl.when(revision).then(pl.format("{}@{}", name, "revision")).otherwise(name)
    return table.with_columns(pl.col("filter").fill_null(NO_FILTER), model=model)


def _with_effort(table: pl.DataFrame, effort: EffortKind | None) -> tuple[pl.DataFrame, str, list[str]]:
    """Return the rows with their ``effort``, what it counts, and what is left out for want of one."""
    known = {kind: table[kind].is_not_null() for kind in EFFORTS}
    kind = effort if effort is not None else next((one for one in EFFORTS if known[one].any()), None)
    if kind is None or not known[kind].any():
        raise UsageError(
            f"no score says after how much effort it was measured: no {'step or dose' if kind is None else kind}",
            hint="a table needs a column `step` of whole numbers (or `dose` of any) beside model, task and score",
        )
    without = table.filter(~known[kind])
    kept = table.filter(known[kind]).with_columns(effort=pl.col(kind).cast(pl.Float64))
    notes = []
    if without.height:
        notes.append(f"{count(without.height, 'score')} without a {kind} left out: {listed(without['model'].unique())}")
    if kind == "step":
        if known["dose"].any():
            counted = listed(f"{unit}s" for unit in table["dose_unit"].drop_nulls().unique().sort())
            notes.append(f"effort is the step; --effort dose counts {counted or 'the dose'}")
        return kept, "steps", notes
    units = kept["dose_unit"].drop_nulls().unique().sort().to_list()
    if len(units) > 1:
        raise DataError(f"doses are in different units: {listed(units)}", hint="keep models of one unit with --models")
    return kept, f"{units[0]}s" if units else "units of dose", notes


def _with_items(table: pl.DataFrame, items: int) -> tuple[pl.DataFrame, list[str]]:
    """Return the rows with a number of items where they state neither one nor a standard error."""
    if items < 1:
        raise UsageError(f"`items` must be at least 1, got {items}")
    if items > ITEMS_AT_MOST:
        raise UsageError(f"`items` must be at most {ITEMS_AT_MOST:,}, got {items:,}")
    unstated = pl.col("n").is_null() & pl.col("stderr").is_null()
    lacking = table.select(unstated.sum()).item()
    filled = table.with_columns(n=pl.when(unstated).then(pl.lit(items, dtype=pl.Int64)).otherwise("n"))
    return filled, [f"{items} items behind {count(lacking, 'score')}, as was said: not stated"] if lacking else []


def _one(table: pl.DataFrame) -> tuple[pl.DataFrame, str, list[str]]:
    """Return the rows of the only task, metric and filter that curves can be fitted to, its title, and notes."""
    every = dict(table.group_by(CHOSEN_BY, maintain_order=True))
    refused = {key: reason for key, rows in every.items() if (reason := _refusal(rows, str(key[1])))}
    kept = [key for key in every if key not in refused]
    if not kept:
        raise DataError(
            f"there are no scores that a curve can be fitted to: {_reasons(refused)}",
            hint="scores in [0, 1], higher better, at two or more efforts are needed",
        )
    if len(kept) > 1:
        by = [f"--{name}" for k, name in enumerate(CHOSEN_BY) if len({key[k] for key in kept}) > 1]
        raise UsageError(
            f"{len(kept)} kinds of scores by effort are there: {listed(map(_title, kept), 10)}",
            hint=f"choose one with {', '.join(by)}",
        )
    said = f"left out: {_reasons(refused)}"
    return every[kept[0]], _title(kept[0]), [said] if refused else []


def _refusal(rows: pl.DataFrame, metric: str) -> str:
    """Return why rows of one metric are no scores for a curve, "" where they are."""
    higher = rows["higher_is_better"].drop_nulls()
    if (not higher.all()) if len(higher) else higher_is_better(metric) is False:
        return "is better where lower"
    values = rows["value"].drop_nulls().drop_nans()
    outside = values.filter((values < 0) | (values > 1))
    if len(outside):
        percent = " (per cent? divide by 100)" if 1 < outside[0] <= 100 and values.min() >= 0 else ""  # type: ignore[operator]
        return f"leaves [0, 1]: {outside[0]:g}{percent}"
    if rows.filter(pl.col("value").is_not_null())["effort"].n_unique() < 2:
        return "is there at one effort only"
    return ""


def _scores(table: pl.DataFrame, unit: str, title: str, notes: list[str]) -> EffortScores:
    """Return the rows as scores by effort; what has no value, or is there twice, is left out and named."""
    there = table.filter(pl.col("value").is_finite())  # null is not
    rows = there.unique(("model", "effort", "part", "run", "value", "stderr"), maintain_order=True)
    models = rows["model"].unique(maintain_order=True).to_list()
    place = {name: k for k, name in enumerate(models)}
    stderr = rows["stderr"].cast(pl.Float64).fill_null(np.nan).to_numpy()
    items = rows["n"].cast(pl.Float64).fill_null(np.nan).to_numpy()
    if again := there.height - rows.height:
        notes = [*notes, f"{count(again, 'row')} left out: the same as another of the run"]
    return EffortScores(
        tuple(models),
        np.array([place[name] for name in rows["model"]]),
        rows["effort"].to_numpy(),
        rows["value"].to_numpy(),
        np.where((stderr >= 0) & np.isfinite(stderr), stderr, np.nan),
        np.where(items >= 1, items, np.nan),
        effort_unit=unit,
        task=title,
        notes=tuple(map(shown, [*notes, *_lacking(table), *_remarks(rows)])),
    )


def _lacking(table: pl.DataFrame) -> Iterator[str]:
    """Yield what is said of rows and models without a score."""
    finite = pl.col("value").is_finite().fill_null(value=False)
    if (without := table.filter(~finite)).height:
        where = (f"{row['model']} at {row['effort']:g}" for row in without.iter_rows(named=True))
        yield f"{count(without.height, 'row')} without a score left out: {listed(where)}"
    if gone := table.filter(~finite.any().over("model"))["model"].unique(maintain_order=True).to_list():
        yield f"no scores at all of {listed(gone)}"


def _remarks(rows: pl.DataFrame) -> Iterator[str]:
    """Yield what a reader of the scores should know: repeats, versions, settings, gaps, errors that are none."""
    if repeats := rows.height - rows.select("model", "effort").n_unique():
        yield f"{count(repeats, 'score')} of a model at an effort that has one already: repeats, all are used"
    if len(versions := rows["version"].drop_nulls().unique().sort()) > 1:
        yield f"versions taken for one task: {listed(versions)}"
    if len(settings := rows["setting"].drop_nulls().unique().sort()) > 1:
        yield f"models under {len(settings)} settings are compared: {listed(settings)}"
    if gaps := _gaps(rows):
        yield f"no score, where most models have one: {listed(gaps)}"
    if below := int((rows["stderr"] < 0).sum()):
        yield f"{count(below, 'stated standard error')} below 0: not taken for stated"


def _gaps(rows: pl.DataFrame) -> list[str]:
    """Return model and effort where a model has no score between its first and last, and most models have one."""
    by_model = rows.group_by("model", maintain_order=True).agg(pl.col("effort").unique().sort())
    having = by_model.explode("effort").group_by("effort").len()
    common = having.filter(2 * pl.col("len") > by_model.height)["effort"].sort().to_list()
    return [
        f"{name} at {effort:g}"
        for name, mine in by_model.iter_rows()
        for effort in common
        if mine[0] < effort < mine[-1] and effort not in mine
    ]


def _reasons(refused: dict[tuple[object, ...], str]) -> str:
    return listed((f"{_title(key)} {reason}" for key, reason in refused.items()), REFUSED_SHOWN)


def _title(key: Sequence[object]) -> str:
    """Return task, metric and filter in words."""
    task, metric, sieve = (None if part is None else shown(str(part)) for part in key)
    return f"{task} {metric}" + ("" if sieve in (None, NO_FILTER) else f" ({sieve})")
