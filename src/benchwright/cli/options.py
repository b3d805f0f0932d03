"""The program, the options that several commands share, and how they print."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from benchwright.errors import UsageError

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
Weights = Annotated[Path | None, typer.Option(help="CSV of task,doc_id,weight to judge beside the plain average.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")]


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
