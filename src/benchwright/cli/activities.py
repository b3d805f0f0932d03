"""The command that turns raw worker ratings into values of work activities."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from benchwright.cli.options import Json, app, note, one_of, print_json, prose
from benchwright.errors import UsageError


@app.command(epilog="Example: benchwright activities workbank/ -o activities/")
def activities(
    raw: Annotated[Path, typer.Argument(help="Folder with WORKBank's ratings and task statements, at any depth.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="Folder to write: new, empty, or --overwrite.")] = Path(
        "activities"
    ),
    count: Annotated[str, typer.Option(help="A task counts for the first activity it lists, or for all.")] = "first",
    workers: Annotated[
        str | None, typer.Option(help="Weights by expertise, e.g. Expert=1,Average=1,Novice=0; else all alike.")
    ] = None,
    threshold: Annotated[float, typer.Option(help="Mean rating (1 to 5) from which a task counts.")] = 3.5,
    level: Annotated[str, typer.Option(help="Activities: gwa (generalized), iwa or dwa (detailed).")] = "gwa",
    least_tasks: Annotated[int, typer.Option(help="Fewer rated tasks, and an activity is dropped.")] = 5,
    loadings: Annotated[
        Path | None, typer.Option(help="A judge's loadings: what other choices would change in welfare of items.")
    ] = None,
    draws: Annotated[int, typer.Option(help="Draws of workers and tasks behind the intervals.")] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the draws.")] = 0,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an earlier set in OUT.")] = False,
    as_json: Json = False,
) -> None:
    """Score work activities from raw worker ratings, with intervals: what `audit --activities OUT` takes.

    Writes gwa_welfare_scores.csv and gwa_welfare_scores_mean.csv (columns of the published tables), their draws,
    activities.csv (intervals), alternatives.csv (what other choices would change) and summary.json into OUT.
    """
    from dataclasses import asdict, replace

    import numpy as np

    from benchwright.auditing.activity_alternatives import activity_alternatives
    from benchwright.judge.activity_folder import ACTIVITIES, write_activities
    from benchwright.judge.activity_scores import ActivityRule, activity_scores
    from benchwright.judge.workbank import read_workbank
    from benchwright.logs.judge_loadings import read_loadings

    ACTIVITIES.check(out, overwrite=overwrite)
    rule = ActivityRule(
        one_of("--count", count, ("first", "all")),
        None if workers is None else weights_of(workers),
        threshold,
        one_of("--level", level, ("gwa", "iwa", "dwa")),
        least_tasks=least_tasks,
    )
    bank = read_workbank(raw, level=rule.level)
    scores = [
        activity_scores(bank, **asdict(replace(rule, value=value)), rng=np.random.default_rng(seed), replicates=draws)
        for value in ("share", "mean")
    ]
    judged = None if loadings is None else read_loadings(loadings, scores[0].table["activity"])
    table = activity_alternatives(raw, rule, loadings=judged)
    write_activities(scores, out, alternatives=table, seed=seed, overwrite=overwrite)
    if as_json:
        print_json(scores[0].to_dict() | {"alternatives": table.to_dicts(), "seed": seed})
        return
    prose("\n".join([str(scores[0]), *(f"- {text}" for text in scores[0].notes)]))
    note(f"wrote {out}: `benchwright audit SOURCE --activities {out}` takes these values and their uncertainty")


def weights_of(text: str) -> dict[str, float]:
    """Return weights from NAME=NUMBER,NAME=NUMBER."""
    weights: dict[str, float] = {}
    for part in text.split(","):
        name, _, weight = (one.strip() for one in part.partition("="))
        try:
            number = float(weight)
        except ValueError:
            number = None
        if number is None or not name or name in weights:
            why = f"weighs {name} twice" if name in weights else "not NAME=NUMBER,..."
            raise UsageError(f"--workers {text}: {why}", hint="e.g. Expert=1,Average=1,Novice=0")
        weights[name] = number
    return weights
