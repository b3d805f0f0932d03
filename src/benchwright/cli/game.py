"""The command that answers whether a ranking is worth gaming."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from benchwright.cli.options import Json, app, print_json, prose
from benchwright.errors import DataError


@app.command(epilog="Example: benchwright game examples/games/g5.toml --json")
def game(
    spec: Annotated[Path, typer.Argument(help="Game file: developers, score curves, rewards, costs.")],
    delta: Annotated[
        float | None, typer.Option(help="Tune-before-test level, in place of the file's (unit of effort).")
    ] = None,
    delta_max: Annotated[float | None, typer.Option(help="Search the threshold up to this level.")] = None,
    as_json: Json = False,
) -> None:
    """Say whether a ranking is worth gaming: equilibrium with certificate, overtaking costs, tuning that stops it."""
    from benchwright.mechanism.game_files import answer_game, read_game

    answer = answer_game(read_game(spec).changed(delta=delta, delta_max=delta_max))
    if as_json:
        print_json(answer.to_dict())
    else:
        prose(str(answer))
    if not answer.decided:
        raise typer.Exit(DataError.exit_code)
