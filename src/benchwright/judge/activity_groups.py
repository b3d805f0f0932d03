"""Which tasks count for which activity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl
from scipy import sparse

from benchwright._words import count as counted
from benchwright.judge.activities import COGNITIVE
from benchwright.judge.workbank import WorkBank


@dataclass(frozen=True, slots=True, eq=False)
class TaskGroups:
    """Activities (activity, label, element; sorted by element) and their tasks, (G, T) with 1 where a task counts."""

    names: pl.DataFrame
    member: sparse.csr_array
    notes: tuple[str, ...]


def group_tasks(bank: WorkBank, count: Literal["first", "all"]) -> TaskGroups:
    """Return the cognitive activities of each task: of the first that it lists, or of all.

    The generalized activities are all there, with tasks or without; of finer ones those that a rated task counts for.
    """
    lists = pl.col("activities").list.head(1) if count == "first" else pl.col("activities")
    rated = bank.tasks["task"].is_in(bank.ratings["task"].unique().to_list())
    placed = bank.tasks.select(pl.int_range(pl.len()).alias("task"), rated.alias("rated"), lists.alias("element"))
    pairs = placed.explode("element").drop_nulls("element")
    parent = pl.col("element").str.replace(r"\.I\d+(\.D\d+)?$", "")
    cognitive = [one.element for one in COGNITIVE]
    mine = pairs.filter(parent.is_in(cognitive))
    notes = []
    if listless := placed.filter(pl.col("rated") & (pl.col("element").list.len() == 0)).height:
        notes.append(f"{counted(listless, 'rated task')} list no activity of level {bank.level} and count for none.")
    others = pairs.filter(pl.col("rated") & ~parent.is_in(cognitive))
    if others.height:
        notes.append(
            f"{counted(others['task'].n_unique(), 'rated task')} count for activities outside the {len(cognitive)} "
            "cognitive ones, which are not in the table."
        )
    if bank.level == "gwa":
        names = pl.DataFrame(
            [(one.id, one.label, one.element) for one in COGNITIVE],
            schema=["activity", "label", "element"],
            orient="row",
        )
    else:
        found = mine.filter("rated")["element"].unique().sort()
        titles = found.replace_strict(bank.names, default=None, return_dtype=pl.String).fill_null("")
        names = pl.DataFrame({"activity": found, "label": titles, "element": found})
    place = {element: row for row, element in enumerate(names["element"])}
    mine = mine.filter(pl.col("element").is_in(list(place)))
    rows = np.array([place[element] for element in mine["element"]], dtype=np.int64)
    member = sparse.csr_array(
        (np.ones(mine.height), (rows, mine["task"].to_numpy())), shape=(names.height, bank.tasks.height)
    )
    return TaskGroups(names, member, tuple(notes))
