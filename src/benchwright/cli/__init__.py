"""The command line: parses, calls one public function, prints. Libraries load inside the commands.

To add a command, write its file and import it here.
"""

from __future__ import annotations

import sys
import warnings
from typing import Annotated

import typer

from benchwright import __version__
from benchwright.cli import (
    activities,
    agreement,
    audit,
    compare,
    game,
    judge,
    panel,
    rescore,
    serve,
    tune,
    weights,
)  # commands
from benchwright.cli.options import app, note
from benchwright.errors import BenchwrightError, UsageError

__all__ = [
    "activities",
    "agreement",
    "app",
    "audit",
    "compare",
    "game",
    "judge",
    "main",
    "panel",
    "rescore",
    "serve",
    "tune",
    "weights",
]

# of the help
ORDER = [
    "ingest",
    "activities",
    "judge",
    "agreement",
    "audit",
    "weights",
    "rescore",
    "aggregate",
    "compare",
    "game",
    "tune",
    "serve",
    "fetch",
    "config",
]
app.registered_commands.sort(key=lambda command: ORDER.index(getattr(command.callback, "__name__", "")))
INTERRUPTED = 130
INTERRUPTION = "interrupted; nothing half-written is left"


@app.callback(invoke_without_command=True)
def main_options(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    """Options of the program itself; its help is the app's."""
    if version:
        typer.echo(f"benchwright {__version__}")
        raise typer.Exit


def main() -> None:
    """Run the command line; turn errors raised on purpose into one message and an exit code."""
    # said where an s3:// source names no region, beside the error or the rows
    warnings.filterwarnings("ignore", r"'\(default_\)region' not set", UserWarning)
    try:
        app()
    except SystemExit as done:
        if done.code == INTERRUPTED:  # what typer makes of Ctrl-C
            note(INTERRUPTION)
        raise
    except BenchwrightError as error:
        note(f"error: {error}")
        sys.exit(error.exit_code)
    except OSError as error:  # a path that the system refuses
        where = "" if error.filename is None else f"{error.filename}: "
        note(f"error: {where}{error.strerror or error}\nHint: give another path")
        sys.exit(UsageError.exit_code)
    except KeyboardInterrupt:
        note(INTERRUPTION)
        sys.exit(INTERRUPTED)
