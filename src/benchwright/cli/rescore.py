"""The command that scores a leaderboard with given weights."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from benchwright.cli.options import (
    BoundsFile,
    Column,
    ErrorPolicy,
    Json,
    Level,
    MissingPolicy,
    Models,
    Overwrite,
    Partial,
    PoolVersions,
    RepeatPolicy,
    ScaleOption,
    ScoreMetric,
    Scores,
    Setting,
    Tasks,
    app,
    missing_policy,
    note,
    one_of,
    one_source,
    print_json,
    progress,
    prose,
    source_policy,
)
from benchwright.errors import UsageError

FROZEN = (  # what a board has settled, by parameter
    *("weights", "column", "partial", "level", "metric", "task", "scale", "bounds", "chance", "no_clip", "cluster"),
    *("flags", "replicates", "confidence", "seed"),
)


@app.command(epilog="Example: benchwright rescore panel/ --weights out/weights.csv -o board/")
def rescore(
    context: typer.Context,
    source: Scores,
    weights: Annotated[
        str | None,
        typer.Option(help="CSV of task,doc_id,weight or task,weight; scheme.json; a report; uniform or tasks."),
    ] = None,
    out: Annotated[Path, typer.Option("-o", "--out", help="Folder to write: new, empty, or --overwrite.")] = Path(
        "board"
    ),
    board: Annotated[
        Path | None, typer.Option(help="Frozen board: score the new models of SOURCE on its items, weights and scale.")
    ] = None,
    column: Column = None,
    partial: Partial = False,
    level: Level = "auto",
    metric: ScoreMetric = None,
    models: Models = None,
    task: Tasks = None,
    setting: Setting = None,
    errors: ErrorPolicy = "drop",
    repeated: RepeatPolicy = "latest",
    pool_versions: PoolVersions = False,
    missing: MissingPolicy = None,
    scale: ScaleOption = "none",
    bounds: BoundsFile = None,
    chance: Annotated[Path | None, typer.Option(help="CSV of task,chance or task,n_choices: chance counts 0.")] = None,
    no_clip: Annotated[bool, typer.Option("--no-clip", help="Let task scores below chance count below 0.")] = False,
    cluster: Annotated[
        str, typer.Option(help="Items drawn together: logs, item, task, or a CSV of task,doc_id,cluster.")
    ] = "logs",
    flags: Annotated[
        Path | None, typer.Option(help="CSV of task,doc_id (or item): items taken from all models.")
    ] = None,
    replicates: Annotated[int, typer.Option(help="Draws.")] = 1000,
    confidence: Annotated[float, typer.Option(help="Of score and rank intervals.")] = 0.95,
    seed: Annotated[int, typer.Option(help="Where the draws start.")] = 0,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Score a leaderboard with given weights: ranks with intervals, and what changes against the plain average.

    Writes leaderboard.csv, scheme.json, summary.json and values.parquet into OUT, which `--board` can take.
    """
    from benchwright.board.folder import BOARD, write_board
    from benchwright.board.rescore import add_models
    from benchwright.board.rescore import rescore as scored

    if board is not None:
        _refuse_frozen(context)
    elif weights is None:
        raise UsageError("--weights is missing", hint="--weights uniform, --weights tasks, or a file")
    BOARD.check(out, overwrite=overwrite)
    say = progress()
    policy = source_policy(models, setting, errors, repeated, pool_versions)
    kept = missing_policy(missing)
    given = one_source(source)
    if board is not None:
        done = add_models(board, given, missing=kept, progress=say, **policy)
    else:
        done = scored(
            given,
            weights="uniform" if weights is None else weights,
            column=column,
            partial=partial,
            level=one_of("--level", level, ("auto", "item", "task")),
            metric=metric,
            tasks=task,
            missing="intersect" if kept is None else kept,
            scale=one_of("--scale", scale, ("none", "minmax", "zscore")),
            bounds=bounds,
            chance=chance,
            clip=not no_clip,
            cluster=cluster,
            flags=flags,
            replicates=replicates,
            confidence=confidence,
            seed=seed,
            progress=say,
            **policy,
        )
    write_board(done, out, overwrite=overwrite)
    say("")
    if as_json:
        print_json(done.to_dict())
    else:
        prose(str(done))
    note(f"wrote {out}")


def _refuse_frozen(context: typer.Context) -> None:
    """Raise where an option is given that a frozen board has settled."""
    sources = {name: context.get_parameter_source(name) for name in FROZEN}
    given = [name for name, source in sources.items() if source is not None and source.name == "COMMANDLINE"]
    if given:
        options = ", ".join("--" + name.replace("_", "-") for name in given)
        raise UsageError(
            f"--board has settled {options}", hint="leave these out, or score all models anew without --board"
        )
