"""The commands of the main job: audit, the choices behind it, public data."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from benchwright.cli.options import (
    Activities,
    ConfigFile,
    Json,
    Judge,
    Loadings,
    Metric,
    Out,
    Overwrite,
    Runs,
    Set,
    Source,
    Weights,
    Welfare,
    Without,
    app,
    check_welfare,
    configured,
    emit,
    note,
    print_json,
    progress,
    safe,
)


@app.command(
    epilog="Example: benchwright audit panel/ -o out/ --set welfare.neutral=2.5   (or olmes-audit, or tables/)"
)
def audit(
    source: Source = None,
    out: Out = Path("out"),
    config: ConfigFile = None,
    set_: Set = None,
    families: Annotated[str | None, typer.Option(help="Family map: a preset's name or a CSV of task,family.")] = None,
    without: Without = None,
    judge: Judge = None,
    weights: Weights = None,
    metric: Metric = None,
    runs: Runs = None,
    welfare: Welfare = None,
    loadings: Loadings = None,
    activities: Activities = None,
    game: Annotated[
        Path | None, typer.Option(help="Add the ranking game: a game file, scores by effort, or score tables.")
    ] = None,
    engine: Annotated[str, typer.Option(help="Panel: what computes: polars, duckdb or spark.")] = "polars",
    no_report: Annotated[bool, typer.Option("--no-report", help="Leave report.html out.")] = False,
    no_figures: Annotated[bool, typer.Option("--no-figures", help="Leave figures/ out.")] = False,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """The main job: audit items, find weights, write a report folder.

    Writes report.html, items.parquet, weights.csv, leaderboard.csv, summary.json, figures/ and tables/ into OUT, as far
    as SOURCE supports them.
    """
    from benchwright import pipeline
    from benchwright.report.build import REPORT, write_report
    from benchwright.report.summary import summary_text

    REPORT.check(out, overwrite=overwrite)
    check_welfare(welfare)
    choices = configured(config, set_, {"--metric": ("estimates.metric", metric)})
    if families is not None:
        choices = choices.replace({"families.welfare": families, "families.robustness": families}, source="--families")
    say = progress()
    report = pipeline.audit(
        source,
        config=choices,
        without=() if without is None else without,
        judges=() if judge is None else judge,
        weights=weights,
        welfare=welfare,
        loadings=() if loadings is None else loadings,
        activities=activities,
        runs=runs,
        engine=engine,
        game=game,
        progress=say,
    )
    write_report(report, out, page=not no_report, figures=not no_figures, overwrite=overwrite, progress=say)
    say("")
    if as_json:
        emit(summary_text(report))
        return
    emit(safe(f"{report}\n"))
    note(f"wrote {out}{'' if no_report else ': open ' + str(out / 'report.html')}")


@app.command(epilog="Example: benchwright fetch olmes-audit")
def fetch(
    name: Annotated[str | None, typer.Argument(help="Name of a data set; nothing lists them.")] = None,
    as_json: Json = False,
) -> None:
    """Bring a public data set into the cache folder (BENCHWRIGHT_DATA overrides it) and print where it is."""
    from benchwright.datasets import list_datasets, load_dataset

    if name is None:
        if as_json:
            print_json([asdict(one) | {"page": one.page, "bytes": one.size} for one in list_datasets()])
            return
        for one in list_datasets():
            emit(f"{one.name}  {one.size:,} bytes, {len(one.files)} files, {one.licence}\n")
            emit(f"  {one.description}\n  {one.page}\n")
        return
    folder = load_dataset(name, progress=sys.stderr.isatty())
    if as_json:
        print_json({"name": name, "path": str(folder)})
    else:
        typer.echo(str(folder))


@app.command(epilog="Example: benchwright config > benchwright.toml")
def config(as_json: Json = False) -> None:
    """Print a benchwright.toml with every choice, its default, unit and reason."""
    from benchwright.config import Config, default_toml

    if as_json:
        print_json([asdict(row) for row in Config().assumptions()])
    else:
        emit(default_toml())
