"""The command that opens the designer's desk."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from benchwright.cli.options import (
    Activities,
    ConfigFile,
    Judge,
    Loadings,
    Runs,
    Set,
    Weights,
    Welfare,
    Without,
    app,
    check_welfare,
    configured,
    note,
    progress,
    settings,
)


@app.command(epilog="Example: benchwright serve out/   (a report; or a panel, item tables, nothing: the example)")
def serve(
    source: Annotated[
        str | None,
        typer.Argument(help="Report, or anything that `audit` takes; nothing: the built-in example."),
    ] = None,
    port: Annotated[int | None, typer.Option(help="Port; the first free one from 8501 on.", min=1, max=65535)] = None,
    address: Annotated[str, typer.Option(help="Address to listen on; others reach any but this.")] = "127.0.0.1",
    config: ConfigFile = None,
    set_: Set = None,
    without: Without = None,
    judge: Judge = None,
    weights: Weights = None,
    runs: Runs = None,
    welfare: Welfare = None,
    loadings: Loadings = None,
    activities: Activities = None,
    game: Annotated[Path | None, typer.Option(help="The ranking game, as for `audit`.")] = None,
    engine: Annotated[str, typer.Option(help="Panel: what computes: polars, duckdb or spark.")] = "polars",
) -> None:
    """Open the designer's desk: move the choices behind an audit and see at once what follows.

    Serves a page on this machine until Ctrl-C. Nothing is written but on request.
    """
    from benchwright.app.serving import check_streamlit, free_port, is_loopback

    check_streamlit()
    taken = free_port(address, port)
    check_welfare(welfare)
    from benchwright.app.desk import Desk
    from benchwright.app.opening import served
    from benchwright.app.serving import serve as serve_desk
    from benchwright.config import CONFIG_NAME
    from benchwright.report.inputs import AuditInputs

    asked = AuditInputs(
        source=source,
        without=() if without is None else tuple(without),
        judges=() if judge is None else tuple(judge),
        weights=weights,
        welfare=welfare,
        loadings=() if loadings is None else tuple(loadings),
        activities=activities,
        runs=runs,
        engine=engine,
        game=game,
    )
    found = served(asked)
    choices = found.config
    if choices is None or config is not None:
        choices = configured(config, set_, {})
    elif set_:
        choices = choices.replace(settings(set_), source="--set")
    say = progress()
    desk = Desk(
        found.inputs,
        choices,
        notes=found.notes,
        settings_file=CONFIG_NAME if config is None else config,
        progress=say,
    )
    say("")
    if not is_loopback(address):
        note(f"warning: {address} is no loopback address: whoever reaches it sees the data and can write reports here")
    shown = f"[{address}]" if ":" in address else address
    note(f"the desk is open at http://{shown}:{taken}  (Ctrl-C ends it)")
    serve_desk(desk, address=address, port=taken)
    note("closed")
