"""Raw ratings behind activity values: WORKBank's workers and O*NET's tables, read from the files as they come.

==================================  ===================================================================
file                                holds
==================================  ===================================================================
domain_worker_desires.csv           one rating of one task by one worker a row
task_statement_with_metadata.csv    tasks, their generalized work activities, occupation and employment
tasks_to_dwas.csv                   tasks and their detailed work activities (IWA and DWA levels only)
dwa_reference.csv                   names of intermediate and detailed activities (the same)
==================================  ===================================================================

A file may lie anywhere below the folder. Ratings are numbers from 1 to 5: one outside is a fault, for it means another
scale. An empty rating is left out and counted; so are ratings of tasks that the statements do not have, tasks without
ratings, and tasks that list no activity.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import polars as pl

from benchwright._words import count
from benchwright.errors import DataError, Fault, UsageError
from benchwright.logs.source_file import SourceFile, read_source
from benchwright.logs.tabular import Column, Table, parse_table, shown

Level = Literal["gwa", "iwa", "dwa"]
LEVELS: tuple[Level, ...] = ("gwa", "iwa", "dwa")
RATINGS, STATEMENTS = "domain_worker_desires.csv", "task_statement_with_metadata.csv"
DETAILED, REFERENCE = "tasks_to_dwas.csv", "dwa_reference.csv"
FRAMINGS = {"auto": "Automation Desire Rating", "aug": "Human Agency Scale Rating"}
GWA_IDS, GWA_NAMES = "Skill ID (O*NET Generalized Work Activity ID)", "Skill (O*NET Work Activity)"
TABLES = {
    RATINGS: Table(
        (
            Column("Task ID", "text"),
            Column("User ID", "text"),
            Column("Self-reported Expertise", "text", required=False, empty=True),
            *(Column(name, "number", empty=True, low=1, high=5) for name in FRAMINGS.values()),
        ),
        key=("Task ID", "User ID"),
    ),
    STATEMENTS: Table(
        (
            Column("Task ID", "text"),
            Column("O*NET-SOC Code", "text"),
            Column(GWA_IDS, "texts"),
            Column(GWA_NAMES, "texts"),
            Column("Importance", "number", required=False, empty=True, low=0),
            Column("Occupation Employment", "number", required=False, empty=True, low=0),
        ),
        key=("Task ID",),
    ),
    DETAILED: Table((Column("Task ID", "text"), Column("DWA ID", "text")), key=("Task ID", "DWA ID")),
    REFERENCE: Table(
        tuple(Column(name, "text") for name in ("DWA ID", "DWA Title", "IWA ID", "IWA Title")), key=("DWA ID",)
    ),
}


@dataclass(frozen=True, slots=True, eq=False)
class WorkBank:
    """Ratings of tasks by workers, and the activities of each task.

    Attributes
    ----------
    ratings
        task, worker, expertise (text or null), auto, aug (1 to 5, null where missing).
    tasks
        task, occupation, importance, employment, activities (list of O*NET ids in the order of the source, none twice).
    names
        Per O*NET id, its name.
    level
        "gwa", "iwa" or "dwa": what ``activities`` are.
    files, notes
        What was read, what was left out.
    """

    ratings: pl.DataFrame
    tasks: pl.DataFrame
    names: dict[str, str]
    level: Level = "gwa"
    files: tuple[SourceFile, ...] = ()
    notes: tuple[str, ...] = field(default=())


def read_workbank(folder: str | Path, *, level: Level = "gwa") -> WorkBank:
    """Read raw ratings and the activities of tasks.

    Parameters
    ----------
    folder
        Folder with the files of the module's docstring, at any depth.
    level
        Activities to group tasks by: generalized, intermediate or detailed.

    Raises
    ------
    UsageError
        No such folder, or an unknown level.
    DataError
        A file is missing, is there twice, or has faults; all of them are listed.
    """
    if level not in LEVELS:
        raise UsageError(f"`level` must be one of {', '.join(LEVELS)}, got {level!r}")
    root = Path(folder)
    if not root.is_dir():
        raise UsageError(f"RAW {root} is no folder", hint=f"name the folder that holds {RATINGS} and {STATEMENTS}")
    faults: list[Fault] = []
    files: list[SourceFile] = []
    frames = {}
    for name in (RATINGS, STATEMENTS, *((DETAILED, REFERENCE) if level != "gwa" else ())):
        frame = _read(root, name, files, faults)
        if frame is not None:
            frames[name] = frame
    if not faults:
        faults += _uneven_lists(frames[STATEMENTS])
    if faults:
        raise DataError(
            f"{root}: {len(faults)} fault(s) in the raw ratings",
            faults=faults,
            hint="docs/how-to/welfare.md says which files and columns are read",
        )
    ratings, notes = _ratings(frames[RATINGS], frames[STATEMENTS])
    tasks = frames[STATEMENTS].select(
        pl.col("Task ID").alias("task"),
        pl.col("O*NET-SOC Code").alias("occupation"),
        *(
            (pl.col(name) if name in frames[STATEMENTS].columns else pl.lit(None, dtype=pl.Float64)).alias(own)
            for name, own in (("Importance", "importance"), ("Occupation Employment", "employment"))
        ),
        pl.col(GWA_IDS).list.unique(maintain_order=True).alias("activities"),
    )
    listed = frames[STATEMENTS].select(GWA_IDS, GWA_NAMES).explode(GWA_IDS, GWA_NAMES).drop_nulls()
    names = dict(listed.unique(GWA_IDS, keep="first", maintain_order=True).iter_rows())
    if level != "gwa":
        tasks, names = _finer(tasks, frames[DETAILED], frames[REFERENCE], level)
    return WorkBank(ratings, tasks, names, level, tuple(files), tuple(notes))


def _read(root: Path, name: str, files: list[SourceFile], faults: list[Fault]) -> pl.DataFrame | None:
    found = sorted(path for path in root.rglob(name) if path.is_file())
    if len(found) != 1:
        places = ", ".join(shown(path.relative_to(root)) for path in found)
        faults.append(Fault(name, f"there is more than one: {places}" if found else "no such file below the folder"))
        return None
    source = read_source(found[0], faults)
    if source is None:
        return None
    files.append(source[1])
    return parse_table(name, source[0], TABLES[name], faults)


def _uneven_lists(statements: pl.DataFrame) -> list[Fault]:
    """Return a fault for each task whose activities have more ids than names, or fewer."""
    uneven = statements.filter(pl.col(GWA_IDS).list.len() != pl.col(GWA_NAMES).list.len())
    reason = "task {} has {} ids of activities and {} names"
    rows = uneven.select("Task ID", pl.col(GWA_IDS).list.len(), pl.col(GWA_NAMES).list.len()).iter_rows()
    return [Fault(STATEMENTS, reason.format(shown(task), *sizes), column=GWA_IDS) for task, *sizes in rows]


def _ratings(frame: pl.DataFrame, statements: pl.DataFrame) -> tuple[pl.DataFrame, list[str]]:
    """Return the ratings of tasks that have a statement, and what was left out."""
    expertise = "Self-reported Expertise"
    ratings = frame.select(
        pl.col("Task ID").alias("task"),
        pl.col("User ID").alias("worker"),
        (pl.col(expertise) if expertise in frame.columns else pl.lit(None, dtype=pl.String)).alias("expertise"),
        *(pl.col(name).alias(own) for own, name in FRAMINGS.items()),
    )
    known = ratings.join(
        statements.select(pl.col("Task ID").alias("task")), on="task", how="semi", maintain_order="left"
    )
    notes = []
    if strangers := ratings.height - known.height:
        notes.append(f"Left out: {count(strangers, 'rating')} of tasks without a statement.")
    for own, name in FRAMINGS.items():
        if missing := known[own].null_count():
            notes.append(f"Left out of `{name}`: {count(missing, 'empty cell')}.")
    rated = known.drop_nulls(list(FRAMINGS))["task"].n_unique()
    unrated = statements.height - rated
    notes.append(
        f"{count(rated, 'task')} are rated by {count(known['worker'].n_unique(), 'worker')} in "
        f"{count(known.height, 'rating')}; {count(unrated, 'task')} without ratings count for no value."
    )
    return known, notes


def _finer(
    tasks: pl.DataFrame, detailed: pl.DataFrame, reference: pl.DataFrame, level: Level
) -> tuple[pl.DataFrame, dict[str, str]]:
    """Return tasks with their intermediate or detailed activities, and names; the order is that of the source."""
    kind = level.upper()
    named = reference.select("DWA ID", pl.col(f"{kind} ID").alias("id"), pl.col(f"{kind} Title").alias("title"))
    placed = detailed.join(named, on="DWA ID", how="left", maintain_order="left")
    placed = (
        placed.with_columns(pl.col("id").fill_null(pl.col("DWA ID"))) if level == "dwa" else placed.drop_nulls("id")
    )
    lists = placed.group_by(pl.col("Task ID").alias("task"), maintain_order=True).agg(
        activities=pl.col("id").unique(maintain_order=True)
    )
    empty = pl.lit([], dtype=pl.List(pl.String))
    finer = tasks.drop("activities").join(lists, on="task", how="left", maintain_order="left")
    return finer.with_columns(pl.col("activities").fill_null(empty)), dict(named.select("id", "title").iter_rows())
