"""The command that says how far judges of items agree."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from benchwright.cli.options import Json, app, print_json, prose
from benchwright.errors import UsageError

if TYPE_CHECKING:
    import polars as pl

FIRST = "math"
MOST_NAMED = 20


@app.command(epilog="Example: benchwright agreement loadings/ other/judge_loadings.jsonl --activities activities/")
def agreement(
    judges: Annotated[
        list[Path], typer.Argument(help="Loadings of judges: files, folders of `judge`, or a folder of raters.")
    ],
    activities: Annotated[
        Path | None, typer.Option(help="Folder with gwa_welfare_scores.csv: what could be named, and its values.")
    ] = None,
    first: Annotated[str | None, typer.Option(help="Family compared with all others, per judge; else math.")] = None,
    families: Annotated[str, typer.Option(help="Family map: a preset's name, a CSV of task,family, or task.")] = "task",
    seed: Annotated[int, typer.Option(min=0, help="Seed of the resampled items.")] = 0,
    as_json: Json = False,
) -> None:
    """Say how far judges agree on the work that items resemble, and what each alone would say of the items' welfare."""
    import numpy as np

    from benchwright.auditing.families import family_map
    from benchwright.auditing.raters import OF_ITEMS, rater_table
    from benchwright.judge.agreement import judge_agreement
    from benchwright.logs.welfare_tables import read_activities

    loadings = read_judges(judges)
    values = None if activities is None else read_activities(activities)
    ids = None if values is None else values["activity"]
    found = judge_agreement(loadings, activities=ids, rng=np.random.default_rng(seed))
    alone = None
    if values is not None:
        of_items = OF_ITEMS if families == OF_ITEMS.name else family_map(families)
        present = sorted({of_items.family(task) for frame in loadings.values() for task in frame["task"].unique()})
        if first is not None and first not in present:
            more = ", ..." if len(present) > MOST_NAMED else ""
            raise UsageError(
                f"--first must be a family of the judged items, got {first}",
                hint=f"families: {', '.join(present[:MOST_NAMED])}{more}; --families groups tasks otherwise",
            )
        alone = rater_table(loadings, values, families=of_items, first=first or FIRST)
    if as_json:
        print_json(found.to_dict() | {"judges": None if alone is None else alone.to_dicts(), "seed": seed})
        return
    lines = [str(found)]
    for row in [] if alone is None else alone.iter_rows(named=True):
        gaps = ", ".join(f"{name} {_number(row.get(f'gap_{name}'))}" for name in ("auto", "aug"))
        lines.append(
            f"{row['rater']} alone: {row['n_items']} items, frontier {_number(row.get('frontier_size'))}; others less "
            f"{first or FIRST}: {gaps}; share of {first or FIRST} dominated {_number(row.get('first_dominated'))}"
        )
    prose("\n".join(lines))


def read_judges(paths: list[Path]) -> dict[str, pl.DataFrame]:
    """Return the loadings of each judge by name; a folder without judge_loadings*.jsonl holds raters.

    A folder with one such file gives the judge its name; of several each has the name in the file's.
    """
    from benchwright.logs.judge_loadings import PATTERN, loadings_files, read_loadings
    from benchwright.logs.rater_loadings import read_raters

    found: dict[str, pl.DataFrame] = {}
    for path in paths:
        if path.is_dir() and not any(path.glob(PATTERN)):
            more = read_raters(path)[0]
        else:
            files = loadings_files(path)
            more = {}
            for file in files:
                stated = file.stem.removeprefix("judge_loadings").lstrip("_")
                alone = path.is_dir() and len(files) == 1
                more[file.resolve().parent.name if alone or not stated else stated] = read_loadings(file)
        if twice := sorted(found.keys() & more.keys()):
            raise UsageError(f"two judges are called {twice[0]}", hint="name the files judge_loadings_NAME.jsonl")
        found |= more
    return found


def _number(value: float | None) -> str:
    return "not known" if value is None else f"{value:.3g}"
