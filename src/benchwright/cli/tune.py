"""The command that tunes a family of models before the test."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from benchwright.cli.options import Json, app, note, print_json, progress, prose
from benchwright.errors import UsageError

if TYPE_CHECKING:
    from benchwright.tuning.results import TuningRun


@app.command(epilog="Example: benchwright tune examples/tuning/qwen-lora.toml --dry-run")
def tune(
    spec: Annotated[Path, typer.Argument(help="Protocol (TOML): models, benchmarks, tuning.")],
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="Folder to write; an earlier run of it is continued.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the runs, steps and tokens; tune nothing.")] = False,
    workers: Annotated[int | None, typer.Option(help="Runs at once, in place of the protocol's.")] = None,
    device: Annotated[
        str | None, typer.Option(help="cpu, cuda, cuda:1, mps or auto, in place of the protocol's.")
    ] = None,
    no_report: Annotated[bool, typer.Option("--no-report", help="Leave the pages of the ranking games out.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Start anew, without the runs in OUT.")] = False,
    as_json: Json = False,
) -> None:
    """Tune all models alike, score them along the way, and say what the ranking is worth; a killed run goes on.

    Writes rows.parquet (which `ingest` reads), scores.csv and game-TASK.toml (which `game` reads), runs.csv and a
    report for each task into OUT. A run that fails is named, with exit code 1; the others stand.
    """
    from dataclasses import replace

    from benchwright.tuning.plan import plan_tuning
    from benchwright.tuning.protocol import read_protocol
    from benchwright.tuning.run import run_tuning

    protocol = read_protocol(spec)
    if workers is not None:
        protocol = replace(protocol, launch=replace(protocol.launch, workers=workers))
    if device is not None:
        protocol = replace(protocol, tuning=replace(protocol.tuning, device=device))
    if dry_run:
        prose(str(plan_tuning(protocol)))
        return
    if out is None:
        raise UsageError("-o is missing: the folder to write", hint="e.g. -o tuned/; --dry-run needs none")
    say = progress()
    done = run_tuning(protocol, out, overwrite=overwrite, progress=say)
    if not no_report:
        _reports(done, say)
    say("")
    if as_json:
        print_json(done.to_dict())
    else:
        prose(str(done))
    note(f"wrote {out}")
    if done.failed:
        raise typer.Exit(1)


def _reports(done: TuningRun, say: Callable[[str], None]) -> None:
    """Write the page of each ranking game."""
    from benchwright.report.build import write_game_report
    from benchwright.tuning.games import game_path
    from benchwright.tuning.run import report_folder

    for task, answer in done.answers.items():
        write_game_report(
            answer,
            report_folder(done.out, task),
            source=game_path(done.out, task),
            figures=False,
            overwrite=True,
            progress=say,
        )
