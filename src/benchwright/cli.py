"""The command line: parses, calls one public function, prints. Libraries load inside the commands."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import typer

from benchwright import __version__
from benchwright.errors import MAX_FAULTS_SHOWN, BenchwrightError, UsageError

Word = TypeVar("Word", bound=str)
INTERRUPTED = 130
INTERRUPTION = "interrupted; nothing half-written is left"

app = typer.Typer(
    name="benchwright",
    help="Design LLM benchmarks and leaderboards as incentives.",
    epilog="Example: benchwright audit -o out/   (the built-in example; then open out/report.html)",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Source = Annotated[
    str | None,
    typer.Argument(help="Panel, folder of item tables or name of a data set; nothing: the built-in example."),
]
Out = Annotated[Path, typer.Option("-o", "--out", help="Folder to write: new, empty, or --overwrite.")]
ConfigFile = Annotated[
    Path | None, typer.Option("--config", help="Choices to use instead of ./benchwright.toml (see `config`).")
]
Set = Annotated[list[str] | None, typer.Option("--set", help="One choice, e.g. welfare.neutral=2.5. May be repeated.")]
Without = Annotated[
    list[str] | None, typer.Option(help="Section to leave out: welfare, improvability or noise. May be repeated.")
]
Judge = Annotated[list[Path] | None, typer.Option(help="Another judge's loadings to compare. May be repeated.")]
Weights = Annotated[Path | None, typer.Option(help="CSV of task,doc_id,weight to judge beside the plain average.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")]


@app.callback(invoke_without_command=True)
def main_options(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    """Options of the program itself; its help is the app's."""
    if version:
        typer.echo(f"benchwright {__version__}")
        raise typer.Exit


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
    metric: Annotated[str | None, typer.Option(help="Panel: the item's score, e.g. acc or choice:p_gold_char.")] = None,
    runs: Annotated[
        Path | None, typer.Option(help="Panel: a table of runs (name, seed, axis, dose, unit, ...).")
    ] = None,
    welfare: Annotated[Path | None, typer.Option(help="Panel: folder with the welfare tables of its items.")] = None,
    engine: Annotated[str, typer.Option(help="Panel: what computes: polars, duckdb or spark.")] = "polars",
    no_report: Annotated[bool, typer.Option("--no-report", help="Leave report.html out.")] = False,
    no_figures: Annotated[bool, typer.Option("--no-figures", help="Leave figures/ out.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an earlier report in OUT.")] = False,
    as_json: Json = False,
) -> None:
    """The main job: audit items, find weights, write a report folder.

    Writes report.html, items.parquet, weights.csv, leaderboard.csv, summary.json, figures/ and tables/ into OUT, as far
    as SOURCE supports them.
    """
    from benchwright import pipeline
    from benchwright.config import load_config
    from benchwright.report.build import check_target, write_report
    from benchwright.report.summary import summary_text

    check_target(out, overwrite=overwrite)
    if welfare is not None and not welfare.is_dir():
        raise UsageError(
            f"--welfare {welfare}: no such folder", hint="name the folder with the welfare tables of the items"
        )
    choices = load_config(config).replace(_settings(() if set_ is None else set_), source="--set")
    if families is not None:
        choices = choices.replace({"families.welfare": families, "families.robustness": families}, source="--families")
    if metric is not None:
        choices = choices.replace({"estimates.metric": metric}, source="--metric")
    say = _progress()
    report = pipeline.audit(
        source,
        config=choices,
        without=() if without is None else without,
        judges=() if judge is None else judge,
        weights=weights,
        welfare=welfare,
        runs=runs,
        engine=engine,
        progress=say,
    )
    write_report(report, out, page=not no_report, figures=not no_figures, overwrite=overwrite, progress=say)
    say("")
    if as_json:
        _print(summary_text(report))
        return
    _print(_safe(f"{report}\n"))
    _note(f"wrote {out}{'' if no_report else ': open ' + str(out / 'report.html')}")


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

    say = _progress()
    done = read_logs(
        list(logs),
        out,
        max_line=max_line,
        keep_text=keep_text,
        duplicates=_one_of("--duplicates", duplicates, ("latest", "all", "error")),
        strict=strict,
        workers=workers,
        progress=say,
    )
    say("")
    for fault in done.faults[:MAX_FAULTS_SHOWN]:
        _note(f"fault: {fault}")
    if len(done.faults) > MAX_FAULTS_SHOWN:
        _note(f"... and {len(done.faults) - MAX_FAULTS_SHOWN} more in {out / 'faults.parquet'}")
    for text in done.notes[:MAX_FAULTS_SHOWN]:
        _note(f"note: {text}")
    if as_json:
        _print_json(done.to_dict())
        return
    counts = ", ".join(f"{value:,} {name.replace('_', ' ')}" for name, value in done.counts.items())
    _prose(f"{counts}\n{Panel.open(out).coverage()}")


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
        _print_json(opened.describe())
    else:
        derived = ", ".join(opened.derivable()) or "none, no log has choice log-likelihoods"
        _prose(f"{opened.coverage()}\n{opened.left_out()}\nmetrics that follow from choices: {derived}")


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
        errors=_one_of("--errors", errors, ("wrong", "drop", "missing")),
        missing=_one_of("--missing", missing, ("intersect", "renormalise", "refuse")),
        repeated=_one_of("--repeated", repeated, ("latest", "first", "mean", "error")),
        pool_versions=pool_versions,
        by=_one_of("--by", by, ("micro", "macro")),
    )
    if as_json:
        _print_json(table.to_dict())
    else:
        _prose(str(table))


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

    policy: Literal["wrong", "drop", "missing"] = _one_of("--errors", errors, ("wrong", "drop", "missing"))
    result = compare_models(Panel.open(panel), first, second, metric=metric, errors=policy).to_dict()
    if as_json:
        _print_json(result)
    else:
        _prose("\n".join(f"{name}: {value}" for name, value in result.items()))


@panel_app.command("export", epilog="Example: benchwright panel export panel/ -o rows.parquet")
def panel_export(
    panel: PanelFolder,
    out: Annotated[Path, typer.Option("-o", "--out", help="File to write: .parquet or .csv.")],
    table: Annotated[str, typer.Option(help="rows, derived, choices, scores or items.")] = "rows",
) -> None:
    """Write a panel's rows, scores derived from choices, choice log-likelihoods, stated scores or texts as one file."""
    from benchwright.panel.panel import TABLES, Panel

    _one_of("--table", table, TABLES)
    Panel.open(panel).export(table, out)
    _note(f"wrote {out}")


@app.command(epilog="Example: benchwright fetch olmes-audit")
def fetch(
    name: Annotated[str | None, typer.Argument(help="Name of a data set; nothing lists them.")] = None,
    as_json: Json = False,
) -> None:
    """Bring a public data set into the cache folder (BENCHWRIGHT_DATA overrides it) and print where it is."""
    from benchwright.datasets import list_datasets, load_dataset

    if name is None:
        if as_json:
            _print_json([asdict(one) | {"page": one.page, "bytes": one.size} for one in list_datasets()])
            return
        for one in list_datasets():
            _print(f"{one.name}  {one.size:,} bytes, {len(one.files)} files, {one.licence}\n")
            _print(f"  {one.description}\n  {one.page}\n")
        return
    folder = load_dataset(name, progress=sys.stderr.isatty())
    if as_json:
        _print_json({"name": name, "path": str(folder)})
    else:
        typer.echo(str(folder))


@app.command(epilog="Example: benchwright config > benchwright.toml")
def config(as_json: Json = False) -> None:
    """Print a benchwright.toml with every choice, its default, unit and reason."""
    from benchwright.config import Config, default_toml

    if as_json:
        _print_json([asdict(row) for row in Config().assumptions()])
    else:
        _print(default_toml())


def _one_of(option: str, value: str, allowed: tuple[Word, ...]) -> Word:
    """Return the allowed word that an option's value is."""
    for word in allowed:
        if word == value:
            return word
    raise UsageError(f"{option} must be one of {', '.join(allowed)}, got {value}")


def _settings(pairs: Sequence[str]) -> dict[str, Any]:
    """Parse KEY=VALUE, the value as TOML where it is TOML, else as text."""
    import tomllib

    settings: dict[str, Any] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or "." not in key:
            raise UsageError(f"--set {pair}: not SECTION.KEY=VALUE", hint="e.g. --set welfare.neutral=2.5")
        try:
            settings[key.strip()] = tomllib.loads(f"value = {value}")["value"]
        except tomllib.TOMLDecodeError:
            settings[key.strip()] = value.strip()
    return settings


def _progress() -> Callable[[str], None]:
    """Return a function that shows the step at work on stderr, where stderr is a terminal."""
    if not sys.stderr.isatty():
        return lambda _: None
    return lambda step: print(f"\r\033[K{step}", end="", file=sys.stderr, flush=True)


def _print(text: str) -> None:
    typer.echo(text.encode(), nl=False)  # UTF-8 whatever the locale, so that --json is JSON everywhere


def _prose(text: str) -> None:
    _print(_safe(text) + "\n")


def _print_json(value: object) -> None:
    _print(json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def _note(text: str) -> None:
    """Print on stderr, where a program that reads stdout does not meet it."""
    print(_safe(text), file=sys.stderr)


def _safe(text: str) -> str:
    """Show characters of file names and data that would act on the terminal instead of sending them."""
    return "".join(char if char.isprintable() or char == "\n" else ascii(char)[1:-1] for char in text)


def main() -> None:
    """Run the command line; turn errors raised on purpose into one message and an exit code."""
    # said where an s3:// source names no region, beside the error or the rows
    warnings.filterwarnings("ignore", r"'\(default_\)region' not set", UserWarning)
    try:
        app()
    except SystemExit as done:
        if done.code == INTERRUPTED:  # what typer makes of Ctrl-C
            _note(INTERRUPTION)
        raise
    except BenchwrightError as error:
        _note(f"error: {error}")
        sys.exit(error.exit_code)
    except OSError as error:  # a path that the system refuses
        where = "" if error.filename is None else f"{error.filename}: "
        _note(f"error: {where}{error.strerror or error}\nHint: give another path")
        sys.exit(UsageError.exit_code)
    except KeyboardInterrupt:
        _note(INTERRUPTION)
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()
