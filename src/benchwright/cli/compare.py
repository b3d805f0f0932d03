"""The commands that compare: two releases with each other, and a board with itself under other rules."""

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

Side = "Report folder, weights file (CSV or JSON scheme), leaderboard.csv or its folder, panel, or table of scores."


@app.command(epilog="Example: benchwright compare out-2025/ out-2026/ -o changes/")
def compare(
    old: Annotated[Path, typer.Argument(help=Side)],
    new: Annotated[Path, typer.Argument(help="The same kind of thing, later.")],
    out: Annotated[Path | None, typer.Option("-o", "--out", help="Folder to write as well: new or empty.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an earlier comparison in OUT.")] = False,
    column: Annotated[
        str | None, typer.Option(help="Weights to compare: published_share, published_weight or weight.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Say what changed between two reports, weights files or releases of a board, and what of it is beyond doubt.

    With -o, changes.json, weights_changes.csv and board_changes.csv are written, as far as there are such parts.
    """
    from benchwright.board import compare as comparing

    if out is not None:
        comparing.CHANGES.check(out, overwrite=overwrite)
    changes = comparing.compare(old, new, column=column)
    if out is not None:
        comparing.write_changes(changes, out, overwrite=overwrite)
    if as_json:
        print_json(changes.to_dict())
    else:
        prose(str(changes))
    if out is not None:
        note(f"wrote {out}")


@app.command(epilog="Example: benchwright aggregate panel/ --weights out/weights.csv --unit item")
def aggregate(
    source: Scores,
    weights: Annotated[
        Path | None, typer.Option(help="Weights (CSV or JSON scheme); by default all items alike, or the board's.")
    ] = None,
    column: Column = None,
    partial: Partial = False,
    rule: Annotated[list[str] | None, typer.Option(help="Only this rule beside the own one. May be repeated.")] = None,
    unit: Annotated[str, typer.Option(help="What median, mean rank and Borda go over: task or item.")] = "task",
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
    as_json: Json = False,
) -> None:
    """Rank the models of a board under other rules (Borda, mean rank, median, Elo, ...): what depends on the rule."""
    from benchwright.board.aggregate import aggregate as aggregated

    say = progress()
    table = aggregated(
        one_source(source),
        weights=weights,
        column=column,
        partial=partial,
        rules=rule,
        unit=one_of("--unit", unit, ("task", "item")),
        level=one_of("--level", level, ("auto", "item", "task")),
        metric=metric,
        tasks=task,
        missing=missing_policy(missing),
        scale=one_of("--scale", scale, ("none", "minmax", "zscore")),
        bounds=bounds,
        progress=say,
        **source_policy(models, setting, errors, repeated, pool_versions),
    )
    say("")
    if as_json:
        print_json(table.to_dict())
    else:
        prose(str(table))
