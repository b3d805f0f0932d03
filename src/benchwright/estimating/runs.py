"""Which runs are replicates of one checkpoint, and which stand on the grid of a training axis.

A *checkpoint* is one model (name, revision, setting) at one step and dose; its runs differ by seed, or are repeats
that a log tells apart. A *grid* is what an axis' slopes are fitted to: runs with a dose of that axis. Logs seldom say
all of this, so a table of runs may:

=========================  =================================================================================
model, revision, setting,  which runs of the panel a row speaks of: those that agree with every cell that is not
run                        empty; a row must match one at least
name                       what the model is called; runs of one name differ only in seed, step and dose
seed, step                 training seed and checkpoint
axis, dose, unit           training axis, dose and what it counts; a run that stands on two axes has two rows
anchor                     true: the model whose score is the anchor of costs
=========================  =================================================================================
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import polars as pl

from benchwright._words import count
from benchwright.choices import EstimateChoices
from benchwright.config import AXIS
from benchwright.errors import DataError, Fault, UsageError
from benchwright.logs.tabular import Column, Table, read_table
from benchwright.panel.names import matching
from benchwright.panel.panel import IDENTITY

KEYS = ("model", "revision", "setting", "run")
RUN_FACTS = Table(
    (
        *(Column(name, "text", required=False, empty=True) for name in KEYS),
        Column("name", "text", required=False, empty=True),
        Column("seed", "integer", required=False, empty=True),
        Column("step", "integer", required=False, empty=True),
        Column("axis", "text", required=False, empty=True),
        Column("dose", "number", required=False, empty=True),
        Column("unit", "text", required=False, empty=True),
        Column("anchor", "flag", required=False, empty=True),
    ),
    key=(),
)
SEED_IN_NAME = re.compile(r"(.+?)[-_/ ]seed[-_ ]?(\d{1,9})", re.IGNORECASE)
CHECKPOINT = ("name", "revision", "setting", "step", "axis", "dose", "others")
LINEAGE = ("name", "revision", "setting", "axis")
RUN = (*(name for name in IDENTITY if name != "run_name"), "place")  # what tells the runs of an audit apart


@dataclass(frozen=True, slots=True, eq=False)
class Runs:
    """The runs of an audit.

    ``frame``: run_no, model, revision, seed, step, axis, dose, setting, run_names, name, lineage and checkpoint
    (numbers; checkpoints of one lineage differ in step or dose), replicate (seed, or a number below 0 without one),
    is_anchor, is_ranked (of the axis that models are ranked on). ``grid``: run_no, axis, dose, unit. ``identity``:
    run_no and ``RUN`` as the panel has them, before names and tables of runs were looked at.
    """

    frame: pl.DataFrame
    identity: pl.DataFrame
    grid: pl.DataFrame
    notes: tuple[str, ...]


def read_run_facts(path: str | Path) -> pl.DataFrame:
    """Read a table of runs (CSV or Parquet), with the line of each row as ``line``.

    Raises
    ------
    DataError
        The file cannot be read, a cell has the wrong kind, or no column says which runs are meant.
    """
    faults: list[Fault] = []
    file = Path(path)
    table = read_table(file, RUN_FACTS, faults)
    if table is not None and not set(KEYS) & set(table.columns):
        faults.append(Fault(file.name, f"no column says which runs are meant; add one of {', '.join(KEYS)}"))
    if table is not None and "dose" in table.columns and "axis" not in table.columns:
        faults.append(Fault(file.name, "a dose needs its axis: add a column `axis`", column="dose"))
    if table is None or faults:
        raise DataError(f"the table of runs {file.name} cannot be used", faults=faults)
    known: dict[str, Any] = {column.name: pl.String for column in RUN_FACTS.columns}
    known |= {"seed": pl.Int64, "step": pl.Int64, "dose": pl.Float64, "anchor": pl.Boolean}
    lacking = [pl.lit(None, dtype=kind).alias(name) for name, kind in known.items() if name not in table.columns]
    return table.with_columns(lacking).select(*known).with_row_index("line", offset=2)


def number_repeats(used: pl.DataFrame) -> pl.DataFrame:
    """Add ``place``: of the runs of a task that differ in their name only, the place of the name; 0 for a single one.

    Logs may keep each task of a model in a run of its own; such runs are one here. So are runs that state one seed:
    they are trials of one training.
    """
    others = [name for name in IDENTITY if name != "run_name"]
    place = pl.col("run_name").rank("dense").over(*others, "task").cast(pl.Int64) - 1
    return used.with_columns(place=pl.when(pl.col("seed").is_null()).then(place).otherwise(0))


def describe_runs(
    identities: pl.DataFrame,
    *,
    facts: pl.DataFrame | None = None,
    choices: EstimateChoices,
) -> Runs:
    """Find checkpoints, replicates and grids among runs.

    Parameters
    ----------
    identities
        Rows with the panel's identity and ``place``, of any number per run.
    facts
        As :func:`read_run_facts` returns them.
    choices
        Patterns of the models that count and of the anchor; whether steps are doses.

    Raises
    ------
    DataError
        A row of ``facts`` matches no run or contradicts another, or an axis has doses in different units.
    UsageError
        No run is of these models, or none is the anchor.
    """
    notes: list[str] = []
    frame = identities.group_by(RUN).agg(run_names=pl.col("run_name").unique().sort()).sort(RUN, nulls_last=False)
    frame = frame.with_row_index("run_no").cast({"run_no": pl.Int64})
    identity = frame.select("run_no", *RUN)
    again = identities.filter(pl.col("seed").is_not_null()).group_by(*RUN, "task").agg(n=pl.col("run_name").n_unique())
    if (again["n"] > 1).any():
        notes.append("Several runs of one model state the same seed: they count as trials of one training.")
    frame = _named(frame, notes).with_columns(is_anchor=pl.lit(False), others=pl.lit(None, dtype=pl.String))
    if choices.step_axis is not None:
        bare = pl.col("dose").is_null() & pl.col("axis").is_null() & pl.col("step").is_not_null()
        frame = frame.with_columns(
            axis=pl.when(bare).then(pl.lit(choices.step_axis)).otherwise("axis"),
            dose=pl.when(bare).then(pl.col("step") * choices.step_dose).otherwise("dose"),
        )
    grid = frame.filter(pl.col("axis").is_not_null() & pl.col("dose").is_not_null())
    grid = grid.select("run_no", "axis", "dose", unit="dose_unit")
    if facts is not None:
        frame, grid = _with_facts(frame, grid, facts)
    frame = frame.filter(
        pl.col("name").is_in(matching("model", frame["name"].unique().sort().to_list(), choices.models))
    )
    anchor = choices.anchor
    if anchor is not None:
        at = [
            fnmatchcase(name, anchor) or fnmatchcase(model, anchor)
            for name, model in frame["name", "model"].iter_rows()
        ]
        frame = frame.with_columns(is_anchor=pl.Series(at, dtype=pl.Boolean))
        if not any(at):
            raise UsageError(f"no run is of the anchor {anchor}", hint="set estimates.anchor to a model's name")
    frame = frame.with_columns(is_ranked=_ranked(frame, choices.ranked_axis))
    grid = grid.join(frame.select("run_no"), on="run_no")
    units = grid.with_columns(unit=pl.col("unit").str.strip_chars().str.to_lowercase().str.strip_suffix("s"))
    _one_unit(units)
    revision = pl.when(pl.col("step").is_null()).then("revision")  # where it names the step, the step is enough
    frame = frame.with_columns(
        **{
            column: pl.struct([revision if name == "revision" else pl.col(name) for name in key]).rank("dense") - 1
            for column, key in (("lineage", LINEAGE), ("checkpoint", CHECKPOINT))
        }
    ).cast({"lineage": pl.Int64, "checkpoint": pl.Int64})
    place = pl.int_range(pl.len()).over("checkpoint")
    frame = frame.with_columns(replicate=pl.coalesce("seed", -1 - place))
    unknown = frame.filter(pl.col("seed").is_null(), pl.len().over("checkpoint") > 1)
    if unknown.height:
        notes.append(
            f"{count(unknown.height, 'run')} of checkpoints with several name no seed: taken for replicates with "
            "unknown seeds. If they differ in anything else, say so in a table of runs (--runs)."
        )
    return Runs(
        frame.drop("dose_unit", "place", "others"),
        identity.join(frame.select("run_no"), on="run_no"),
        units.sort("axis", "dose", "run_no"),
        tuple(notes),
    )


def _ranked(frame: pl.DataFrame, axis: str | None) -> pl.Series:
    """Return which runs are of the axis that models are ranked on, all where none is named."""
    if axis is None:
        return pl.repeat(True, frame.height, dtype=pl.Boolean, eager=True)
    found = (frame["axis"] == axis).fill_null(False)
    if not found.any():
        there = ", ".join(frame["axis"].drop_nulls().unique().sort()) or "none"
        raise UsageError(f"no run is on the axis {axis}", hint=f"set estimates.ranked_axis to one of {there}")
    return found


def _named(frame: pl.DataFrame, notes: list[str]) -> pl.DataFrame:
    """Give every run its model's name; seeds that stand in the name of several models are taken out of it."""
    found = {model: SEED_IN_NAME.fullmatch(model) for model in frame["model"].unique()}
    bases = [hit[1] for hit in found.values() if hit is not None]
    split = {
        model: hit for model, hit in found.items() if hit is not None and (bases.count(hit[1]) > 1 or hit[1] in found)
    }
    if split:
        bases = sorted({hit[1] for hit in split.values()})
        notes.append(f"Seeds were taken from the names of models: runs of {', '.join(bases[:5])} differ by seed.")
    name = frame["model"].replace({model: hit[1] for model, hit in split.items()})
    stated = frame["model"].replace_strict(
        {model: int(hit[2]) for model, hit in split.items()}, default=None, return_dtype=pl.Int64
    )
    return frame.with_columns(name=name, seed=pl.coalesce("seed", stated))


def _with_facts(frame: pl.DataFrame, grid: pl.DataFrame, facts: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    faults: list[Fault] = []
    said: dict[tuple[int, str], tuple[object, int]] = {}
    doses: list[tuple[int, str, float, str | None]] = []
    for row in facts.iter_rows(named=True):
        keys = [pl.col(name) == row[name] for name in KEYS if name != "run" and row[name] is not None]
        if row["run"] is not None:
            keys.append(pl.col("run_names").list.contains(row["run"]))
        matched = frame.filter(*keys)["run_no"].to_list() if keys else []
        if not matched:
            named = ", ".join(f"{name} {row[name]}" for name in KEYS if row[name] is not None) or "nothing"
            faults.append(Fault("--runs", f"matches no run of the panel ({named})", line=row["line"]))
        if (row["dose"] is None) != (row["axis"] is None):
            faults.append(Fault("--runs", "axis and dose must stand together", line=row["line"], column="dose"))
        for run in matched:
            for name in ("name", "seed", "step", "anchor"):
                if row[name] is None:
                    continue
                before, line = said.setdefault((run, name), (row[name], row["line"]))
                if before != row[name]:
                    reason = f"line {line} gives the same run {before}, this one {row[name]}"
                    faults.append(Fault("--runs", reason, line=row["line"], column=name))
            if row["axis"] is not None and row["dose"] is not None:
                doses.append((run, row["axis"], row["dose"], row["unit"]))
    if faults:
        raise DataError("the table of runs does not fit the panel", faults=faults)
    for name, column in (("name", "name"), ("seed", "seed"), ("step", "step"), ("anchor", "is_anchor")):
        mine = {run: value for (run, fact), (value, _) in said.items() if fact == name}
        if mine:
            new = frame["run_no"].replace_strict(mine, default=None, return_dtype=frame[column].dtype)
            frame = frame.with_columns(pl.coalesce(new, column).alias(column))
    if doses:
        own = pl.DataFrame(doses, schema=grid.schema, orient="row").unique()
        twice = own.filter(pl.struct("run_no", "axis").is_duplicated())
        if twice.height:
            row = twice.row(0, named=True)
            raise DataError(f"the table of runs gives one run two doses on axis {row['axis']}")
        grid = pl.concat([grid.join(own, on=["run_no", "axis"], how="anti"), own])
        # a run keeps the axis of its log, or else has the first that the table gives; the others tell checkpoints too
        first = own.sort("run_no", "axis").unique("run_no", keep="first").select("run_no", first="axis")
        frame = frame.join(first, on="run_no", how="left", maintain_order="left")
        frame = frame.with_columns(axis=pl.coalesce("axis", "first"))
        frame = frame.join(
            own.select("run_no", "axis", given="dose"), on=["run_no", "axis"], how="left", maintain_order="left"
        )
        beside = own.join(frame.select("run_no", "axis"), on=["run_no", "axis"], how="anti").sort("run_no", "axis")
        more = beside.group_by("run_no").agg(others=pl.concat_str("axis", pl.lit("="), "dose").str.join(";"))
        frame = frame.drop("others").join(more, on="run_no", how="left", maintain_order="left")
        frame = frame.with_columns(dose=pl.coalesce("given", "dose")).drop("first", "given")
    return frame, grid


def _one_unit(grid: pl.DataFrame) -> None:
    """Raise unless the doses of each axis are in one unit, and axes can name columns."""
    axes = grid["axis"].unique().sort().to_list()
    wrong = [axis for axis in axes if not AXIS.fullmatch(axis)]
    folded = [axis.lower() for axis in axes]
    wrong += [axis for axis in axes if folded.count(axis.lower()) > 1]
    if wrong:
        raise DataError(
            f"axes must be letters, digits and _, and differ in more than case, got {', '.join(map(repr, wrong))}",
            hint="name them otherwise in a table of runs (--runs)",
        )
    units = grid.drop_nulls("unit").group_by("axis").agg(pl.col("unit").unique().sort()).sort("axis")
    mixed = units.filter(pl.col("unit").list.len() > 1)
    if mixed.height:
        raise DataError(
            "doses in different units on one axis: "
            + "; ".join(f"{axis}: {', '.join(names)}" for axis, names in mixed.iter_rows()),
            hint="convert them to one unit, or name them as axes of their own, in a table of runs (--runs)",
        )
