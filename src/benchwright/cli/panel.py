"""The commands that read logs and look into a panel."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from benchwright.cli.options import Json, app, note, one_of, print_json, progress, prose
from benchwright.errors import MAX_FAULTS_SHOWN


@app.command(epilog="Example: benchwright ingest runs/ 'more/**/*.eval' -o panel/")
def ingest(
    logs: Annotated[list[str], typer.Argument(help="Files, folders or quoted patterns, of any mixture of formats.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="Folder of the panel; an earlier one is continued.")],
    duplicates: Annotated[str, typer.Option(help="Several runs of one task: latest, all or error.")] = "latest",
    max_line: Annotated[int, typer.Option(help="A longer line is a fault and never held whole (bytes).")] = 64 * 2**20,
    keep_text: Annotated[
        bool, typer.Option("--keep-text", help="Keep the items' texts, not only their hashes.")
    ] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Stop at the first fault.")] = False,
    workers: Annotated[int | None, typer.Option(help="Processes; by default one a core.")] = None,
    as_json: Json = False,
) -> None:
    """Read evaluation logs into one tidy item panel; a killed run can be started again and goes on."""
    from benchwright.panel.ingest import read_logs
    from benchwright.panel.panel import Panel

    say = progress()
    done = read_logs(
        list(logs),
        out,
        max_line=max_line,
        keep_text=keep_text,
        duplicates=one_of("--duplicates", duplicates, ("latest", "all", "error")),
        strict=strict,
        workers=workers,
        progress=say,
    )
    say("")
    for fault in done.faults[:MAX_FAULTS_SHOWN]:
        note(f"fault: {fault}")
    if len(done.faults) > MAX_FAULTS_SHOWN:
        note(f"... and {len(done.faults) - MAX_FAULTS_SHOWN} more in {out / 'faults.parquet'}")
    for text in done.notes[:MAX_FAULTS_SHOWN]:
        note(f"note: {text}")
    if as_json:
        print_json(done.to_dict())
        return
    prose(f"{', '.join(_counted(name, n) for name, n in done.counts.items())}\n{Panel.open(out).coverage()}")
    note(f"wrote {out}: `benchwright panel describe {out}` says what is in it")


def _counted(name: str, n: int) -> str:
    """Return a count of a panel in words: 2 cells left out, 1 cell left out."""
    noun, _, rest = name.partition("_")
    return f"{n:,} {noun.removesuffix('s') if n == 1 else noun} {rest.replace('_', ' ')}".rstrip()


panel_app = typer.Typer(help="Look into a panel: coverage, scores, comparisons, export.", no_args_is_help=True)
app.add_typer(panel_app, name="panel")
PanelFolder = Annotated[Path, typer.Argument(help="Folder that `benchwright ingest` made.")]
MetricName = Annotated[str | None, typer.Option(help="Metric for all tasks; by default the one most models have.")]
ErrorPolicy = Annotated[str, typer.Option(help="Failed samples: wrong, drop or missing.")]


@panel_app.command("describe", epilog="Example: benchwright panel describe panel/")
def panel_describe(panel: PanelFolder, as_json: Json = False) -> None:
    """Say what is in a panel: runs, tasks, coverage per model and task, what the policy leaves out and why."""
    from benchwright.panel.panel import Panel

    opened = Panel.open(panel)
    if as_json:
        print_json(opened.describe())
    else:
        derived = ", ".join(opened.derivable()) or "none, no log has choice log-likelihoods"
        prose(f"{opened.coverage()}\n{opened.left_out()}\nmetrics that follow from choices: {derived}")


@panel_app.command("show", epilog="Example: benchwright panel show panel/ --metric acc --missing intersect")
def panel_show(
    panel: PanelFolder,
    metric: MetricName = None,
    task: Annotated[list[str] | None, typer.Option(help="Only this task. May be repeated.")] = None,
    errors: ErrorPolicy = "drop",
    missing: Annotated[str, typer.Option(help="Items some lack: intersect, renormalise, refuse.")] = "intersect",
    repeated: Annotated[str, typer.Option(help="An item twice in one run: latest, first, mean or error.")] = "latest",
    pool_versions: Annotated[bool, typer.Option("--pool-versions", help="Versions of a task are one task.")] = False,
    by: Annotated[str, typer.Option(help="Mean that ranks follow: micro (by item) or macro (by task).")] = "micro",
    as_json: Json = False,
) -> None:
    """Score table: micro and macro means with their own standard errors, rank intervals and tie groups."""
    from benchwright.panel.panel import Panel
    from benchwright.panel.scores import score_table

    table = score_table(
        Panel.open(panel),
        metric=metric,
        tasks=task,
        errors=one_of("--errors", errors, ("wrong", "drop", "missing")),
        missing=one_of("--missing", missing, ("intersect", "renormalise", "refuse")),
        repeated=one_of("--repeated", repeated, ("latest", "first", "mean", "error")),
        pool_versions=pool_versions,
        by=one_of("--by", by, ("micro", "macro")),
    )
    if as_json:
        print_json(table.to_dict())
    else:
        prose(str(table))


@panel_app.command("compare", epilog="Example: benchwright panel compare panel/ org/a org/b@main")
def panel_compare(
    panel: PanelFolder,
    first: Annotated[str, typer.Argument(help="Entry as `panel show` names it.")],
    second: Annotated[str, typer.Argument(help="The entry it is compared with.")],
    metric: MetricName = None,
    errors: ErrorPolicy = "drop",
    as_json: Json = False,
) -> None:
    """Compare two models on the items that both have, with the standard error of the difference."""
    from benchwright.panel.panel import Panel
    from benchwright.panel.scores import compare_models

    policy: Literal["wrong", "drop", "missing"] = one_of("--errors", errors, ("wrong", "drop", "missing"))
    result = compare_models(Panel.open(panel), first, second, metric=metric, errors=policy).to_dict()
    if as_json:
        print_json(result)
    else:
        prose("\n".join(f"{name}: {value}" for name, value in result.items()))


@panel_app.command("export", epilog="Example: benchwright panel export panel/ -o rows.parquet")
def panel_export(
    panel: PanelFolder,
    out: Annotated[Path, typer.Option("-o", "--out", help="File to write: .parquet or .csv.")],
    table: Annotated[str, typer.Option(help="rows, derived, choices, scores or items.")] = "rows",
) -> None:
    """Write a panel's rows, scores derived from choices, choice log-likelihoods, stated scores or texts as one file."""
    from benchwright.panel.panel import TABLES, Panel

    one_of("--table", table, TABLES)
    Panel.open(panel).export(table, out)
    note(f"wrote {out}")
