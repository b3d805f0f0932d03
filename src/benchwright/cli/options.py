"""The program, the options that several commands share, and how they print."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from benchwright.errors import UsageError

if TYPE_CHECKING:
    from benchwright.board.rules import Missing
    from benchwright.config import Config

Word = TypeVar("Word", bound=str)

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
Loadings = Annotated[
    list[Path] | None,
    typer.Option(help="A judge's loadings that count in place of the source's. Repeated: the mean of several judges."),
]
Activities = Annotated[
    Path | None,
    typer.Option(help="Folder of `activities`, or a CSV of activity,value: counts in place of the source's."),
]
Weights = Annotated[Path | None, typer.Option(help="CSV of task,doc_id,weight to judge beside the plain average.")]
Metric = Annotated[str | None, typer.Option(help="Panel: the item's score, e.g. acc or choice:p_gold_char.")]
Runs = Annotated[Path | None, typer.Option(help="Panel: a table of runs (name, seed, axis, dose, unit, ...).")]
Welfare = Annotated[Path | None, typer.Option(help="Panel: folder with the welfare tables of its items.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace an earlier report in OUT.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")]

# of the commands that score models
Scores = Annotated[list[str], typer.Argument(help="Panel, logs and score tables as `ingest` reads them, or a board.")]
Column = Annotated[str | None, typer.Option(help="Column of the weights; published_weight, else weight.")]
Partial = Annotated[bool, typer.Option("--partial", help="Accept weights that fit the board only in part.")]
Level = Annotated[str, typer.Option(help="Score by item rows or by stated task scores: auto, item, task.")]
ScoreMetric = Annotated[
    str | None, typer.Option("--metric", help="Metric for all tasks; else the one most models have.")
]
Models = Annotated[list[str] | None, typer.Option("--models", help="Only these; * is any text, ! leaves out.")]
Tasks = Annotated[list[str] | None, typer.Option("--task", help="Only these tasks, likewise.")]
Setting = Annotated[str | None, typer.Option(help="Only entries of this setting, e.g. direct_eval.")]
ErrorPolicy = Annotated[str, typer.Option("--errors", help="Failed samples: wrong, drop or missing.")]
RepeatPolicy = Annotated[
    str, typer.Option("--repeated", help="An item twice in one run: latest, first, mean or error.")
]
PoolVersions = Annotated[bool, typer.Option("--pool-versions", help="Versions of a task are one task.")]
ScaleOption = Annotated[str, typer.Option("--scale", help="One scale for all tasks: none, minmax or zscore.")]
BoundsFile = Annotated[Path | None, typer.Option("--bounds", help="CSV of task,low,high: scores that count 0 and 1.")]
MissingPolicy = Annotated[
    str | None, typer.Option("--missing", help="Items some lack: intersect (default), renormalise, refuse or zero.")
]


def one_source(source: list[str]) -> str | list[str]:
    """Return the one path, or all."""
    return source[0] if len(source) == 1 else source


def source_policy(
    models: list[str] | None, setting: str | None, errors: str, repeated: str, pool_versions: bool
) -> dict[str, Any]:
    """Return what of a source is scored, as arguments."""
    return {
        "models": models,
        "setting": setting,
        "errors": one_of("--errors", errors, ("wrong", "drop", "missing")),
        "repeated": one_of("--repeated", repeated, ("latest", "first", "mean", "error")),
        "pool_versions": pool_versions,
    }


def missing_policy(missing: str | None) -> Missing | None:
    """Return the rule for missing items, None where none is given."""
    if missing is None:
        return None
    kept: Missing = one_of("--missing", missing, ("intersect", "renormalise", "refuse", "zero"))
    return kept


def one_of(option: str, value: str, allowed: tuple[Word, ...]) -> Word:
    """Return the allowed word that an option's value is."""
    for word in allowed:
        if word == value:
            return word
    raise UsageError(f"{option} must be one of {', '.join(allowed)}, got {value}")


def settings(pairs: Sequence[str]) -> dict[str, Any]:
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


def configured(config: Path | None, pairs: Sequence[str] | None, options: Mapping[str, tuple[str, Any]]) -> Config:
    """Return the choices of a file, then of --set, then of options: option -> (key, value), None where not given."""
    from benchwright.config import load_config

    choices = load_config(config).replace(settings(() if pairs is None else pairs), source="--set")
    for option, (key, value) in options.items():
        if value is not None:
            choices = choices.replace({key: value}, source=option)
    return choices


def check_welfare(folder: Path | None) -> None:
    """Raise where --welfare names no folder."""
    if folder is not None and not folder.is_dir():
        raise UsageError(
            f"--welfare {folder}: no such folder", hint="name the folder with the welfare tables of the items"
        )


def progress() -> Callable[[str], None]:
    """Return a function that shows the step at work on stderr, where stderr is a terminal."""
    if not sys.stderr.isatty():
        return lambda _: None
    return lambda step: print(f"\r\033[K{step}", end="", file=sys.stderr, flush=True)


def emit(text: str) -> None:
    typer.echo(text.encode(), nl=False)  # UTF-8 whatever the locale, so that --json is JSON everywhere


def prose(text: str) -> None:
    emit(safe(text) + "\n")


def print_json(value: object) -> None:
    emit(json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def note(text: str) -> None:
    """Print on stderr, where a program that reads stdout does not meet it."""
    print(safe(text), file=sys.stderr)


def safe(text: str) -> str:
    """Show characters of file names and data that would act on the terminal instead of sending them."""
    return "".join(char if char.isprintable() or char == "\n" else ascii(char)[1:-1] for char in text)
