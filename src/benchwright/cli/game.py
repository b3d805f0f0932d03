"""The command that answers whether a ranking is worth gaming."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from benchwright.cli.options import Json, app, print_json, prose
from benchwright.errors import DataError, UsageError


@app.command(epilog="Example: benchwright game examples/games/g5.toml --json")
def game(
    spec: Annotated[
        Path, typer.Argument(help="Game file (TOML), or score tables (JSON) before and after common tuning.")
    ],
    delta: Annotated[
        float | None, typer.Option(help="Tune-before-test level, in place of the file's (unit of effort).")
    ] = None,
    delta_max: Annotated[float | None, typer.Option(help="Search the threshold up to this level.")] = None,
    race: Annotated[bool, typer.Option("--race", help="Mixed play and best replies too: spend, wrong orders.")] = False,
    seed: Annotated[int, typer.Option(help="Seed of the intervals of score tables.")] = 0,
    as_json: Json = False,
) -> None:
    """Say whether a ranking is worth gaming: equilibrium with certificate, overtaking costs, tuning that stops it."""
    if spec.suffix == ".json":
        if delta is not None or delta_max is not None or race:
            raise UsageError("score tables have no --delta, no --delta-max and no --race")
        tables(spec, seed, as_json)
        return
    from benchwright.ranking_game.answer import answer_game
    from benchwright.ranking_game.files import read_game

    read = read_game(spec)
    assert isinstance(read, GameFile)  # noqa: S101
    answer = answer_game(read.changed(delta=delta, delta_max=delta_max), race=race)
    if as_json:
        print_json(answer.to_dict())
    else:
        prose(str(answer))
    if not answer.decided:
        raise typer.Exit(DataError.exit_code)


def tables(path: Path, seed: int, as_json: bool) -> None:
    """Compare how score tables rank models before and after common tuning."""
    import numpy as np

    from benchwright.ranking_game.protocols import compare_protocols, read_protocols

    found = compare_protocols(read_protocols(path), rng=np.random.default_rng(seed))
    if as_json:
        print_json(found.to_dict() | {"seed": seed})
    else:
        prose(str(found))
