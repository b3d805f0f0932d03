"""The activities that a judge may name: the 27 Generalized Work Activities in our own words, or a set by file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from benchwright._shown import Shown
from benchwright.errors import DataError, Fault
from benchwright.logs.tabular import Column, Table, read_table

PROMPTS = Path(__file__).parent / "prompts"
LAYOUT = Table((Column("activity", "text"), Column("name", "text"), Column("definition", "text")), ("activity",))


@dataclass(frozen=True, slots=True)
class Activity(Shown):
    """A kind of work: the id that tables join on, its name, and one line that says what it is."""

    id: str
    name: str
    definition: str


def read_activities(path: str | Path | None = None) -> tuple[Activity, ...]:
    """Return the activities of a CSV file ``activity,name,definition``; without one, the built-in set.

    The ids of the built-in set are those of the published activity scores (O*NET's Generalized Work Activities);
    names and definitions are ours.

    Raises
    ------
    DataError
        The file cannot be read, lacks a column, or has an empty cell or an id twice.

    Examples
    --------
    >>> activities = read_activities()
    >>> len(activities), activities[9].id
    (27, 'thinking_creatively')
    """
    faults: list[Fault] = []
    file = PROMPTS / "activities.csv" if path is None else Path(path)
    frame = read_table(file, LAYOUT, faults)
    if frame is None:
        raise DataError(
            f"{file} is no table of activities", faults=faults, hint="a CSV file with activity,name,definition"
        )
    return tuple(Activity(*row) for row in frame.select("activity", "name", "definition").iter_rows())
