"""Write the pages of the reference that the program itself states: ``python scripts/make_reference.py``.

A test holds the pages against what this would write, so that they cannot go stale.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

from typer.main import get_command

from benchwright import Config
from benchwright.auditing.items import COLUMNS, axis_columns
from benchwright.cli import app
from benchwright.config import PRICES_WHY, SOURCES_WHY
from benchwright.game_answers import files
from benchwright.game_answers.rewards import REWARD_FORMS
from benchwright.ranking_game.costs import COST_FORMS
from benchwright.ranking_game.forms import SCORE_FORMS
from benchwright.tuning import protocol
from benchwright.tuning.settings import AdversarySettings, LaunchSettings, TuningSettings

REFERENCE = Path(__file__).resolve().parents[1] / "docs" / "reference"
MADE = "<!-- Made by scripts/make_reference.py from the program itself: change the source named there. -->\n"
WIDTH = 88


def table(head: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """Return a Markdown table; a bar within a cell does not end it."""
    names = list(head)
    lines = [names, ["---"] * len(names), *([str(cell).replace("|", "\\|") for cell in row] for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def toml(value: Any) -> str:
    """Return a default as it stands in a configuration; nothing for none."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, tuple):
        return f"`[{', '.join(str(one) for one in value)}]`"
    return f'`"{value}"`' if isinstance(value, str) else f"`{value:g}`" if isinstance(value, float) else f"`{value}`"


def limits(rule: dict[str, Any]) -> str:
    """Return which values a choice takes."""
    if rule.get("options"):
        return ", ".join(f"`{one}`" for one in rule["options"])
    low, high = rule.get("low"), rule.get("high")
    return f"{low:g} to {high:g}" if low is not None and high is not None else ""


def helps(command: Any, path: str, parent: Any = None) -> Iterator[tuple[str, str, str]]:
    """Yield each command's path, its first sentence and its help, those of a group after it."""
    name = path.split()[-1]
    context = command.context_class(command, info_name=name, parent=parent, terminal_width=WIDTH, color=False)
    yield path, command.get_short_help_str(200), command.get_help(context)
    for name in getattr(command, "commands", ()):
        yield from helps(command.commands[name], f"{path} {name}", context)


def commands() -> str:
    """Return the page of commands."""
    every = list(helps(get_command(app), "benchwright"))
    links = [(f"[`{path}`](#{path.replace(' ', '-')})", short) for path, short, _ in every[1:]]
    parts = [
        f"# Commands\n\n{MADE}\n"
        "Every command prints its help with `--help`, and most print JSON with `--json`.\n"
        "Results go to standard output, progress and notes to standard error. Exit codes: 0 done (a finding such as\n"
        "“no equilibrium” is a result), 1 the data cannot support an answer, or a run failed, 2 wrong use.\n\n",
        table(("command", "what it does"), links),
    ]
    parts += [f"\n## {path}\n\n```text\n{text.rstrip()}\n```\n" for path, _, text in every[1:]]
    return "".join(parts)


def choices() -> str:
    """Return the page of choices, section by section."""
    config = Config()
    parts = [
        f"# Choices: what `benchwright.toml` may say\n\n{MADE}\n"
        "Every normative or economic choice has a key. A `benchwright.toml` in the working folder sets it, or\n"
        "`--config FILE`; `--set section.key=value` sets one. A report prints all of them with their sources.\n"
        "`benchwright config` prints a file with all defaults as comments, to start from. An unknown key, a\n"
        "wrong type or a value outside its range is an error.\n"
    ]
    sections: dict[str, list[tuple[str, ...]]] = {}
    for row in config.assumptions():
        section, _, name = row.key.partition(".")
        rule: dict[str, Any] = {}
        if section != "prices":
            rule = {one.name: dict(one.metadata) for one in fields(getattr(config, section))}[name]
        sections.setdefault(section, []).append((f"`{name}`", toml(row.default), row.unit, limits(rule), row.why))
    for section, rows in sections.items():
        if section != "prices":
            parts.append(f"\n## [{section}]\n\n{table(('key', 'default', 'unit', 'values', 'why'), rows)}")
    prices = [(row[0], row[1], row[2]) for row in sections["prices"]]
    parts.append(
        f"\n## [prices]\n\nOne entry an effort axis: {PRICES_WHY}. For panels an entry also says what a dose counts:\n"
        '`PT = { usd = 82.0, per = "10^9 tokens", unit = "token", units = 1e9 }`.\n\n'
        f"{table(('axis', 'default', 'unit'), prices)}"
        f"\n## [welfare_sources]\n\nOne entry a table of yours, none by default: {SOURCES_WHY}.\n"
        '`NAME = { file = "worth.csv", column = "value", sign = 1, neutral = 20.0 }`.\n'
    )
    return "".join(parts)


def item_layer() -> str:
    """Return the page of the item layer's columns."""
    every = [*COLUMNS, *axis_columns(["<axis>"])]
    rows = [(f"`{one.name}`", one.unit, one.description) for one in every]
    rows = [(name.replace("<axis>", "AXIS"), unit, words.replace("<axis>", "AXIS")) for name, unit, words in rows]
    return (
        f"# The item layer: columns of `items.parquet`\n\n{MADE}\n"
        "One row per (task, doc_id), to be mounted on any evaluation pipeline. A file has the columns that its source\n"
        "supports; its Parquet metadata holds units and descriptions. Null is “not known”, never 0. AXIS is an effort\n"
        "axis: pt, sft, rl, or one of your own, in lower case in a column's name. A slope unit is what `[prices]` has\n"
        "a price for: 10^9 tokens, 10^3 examples and 10^3 prompts by default.\n\n"
        f"{table(('column', 'unit', 'meaning'), rows)}\n"
        "Read units and meanings from a file:\n\n"
        "```python\n>>> import tempfile\n>>> from pathlib import Path\n>>> import polars as pl\n"
        ">>> import benchwright as bw\n>>> folder = Path(tempfile.mkdtemp()) / 'out'\n"
        ">>> _ = bw.write_report(bw.audit(), folder, figures=False)\n"
        ">>> metadata = pl.read_parquet_metadata(folder / 'items.parquet')\n"
        ">>> import json\n>>> json.loads(metadata['benchwright.columns'])['sigma2']['unit']\n'score^2'\n\n```\n"
    )


def example_of(module: Any) -> str:
    """Return a module's docstring without its first line, its literal blocks fenced as TOML."""
    text = inspect.getdoc(module) or ""
    lines = text.split("\n", 2)[2].splitlines()
    out: list[str] = []
    block: list[str] | None = None
    for line in [*lines, "end"]:
        if block is not None and (line.startswith("    ") or not line):
            block.append(line[4:])
            continue
        if block is not None:
            body = "\n".join(block).strip("\n")
            out += ["", "```toml", body, "```", ""]
            block = None
        if line.endswith("::"):
            if line.strip() != "::":
                out.append(line[:-1])
            block = []
        elif line != "end":
            out.append(line.replace("``", "`"))
    return "\n".join(out).strip("\n") + "\n"


def forms(found: dict[str, Any]) -> str:
    """Return the table of a registry of forms."""
    rows = (
        (
            f"`{name}`",
            f"`{form.formula}`",
            ", ".join(k if v is None else f"{k} = {v:g}" for k, v in form.parameters.items()),
        )
        for name, form in found.items()
    )
    return table(("form", "formula", "parameters, with their defaults"), rows)


def game_files() -> str:
    """Return the page of game files."""
    rewards = ((f"`{name}`", form.formula, ", ".join(form.parameters)) for name, form in REWARD_FORMS.items())
    return (
        f"# Game files\n\n{MADE}\n`benchwright game FILE.toml` reads one TOML file; `examples/games/` has some.\n\n"
        f"{example_of(files)}\n## Scores\n\n{forms(SCORE_FORMS)}\n## Costs\n\n{forms(COST_FORMS)}\n"
        f"## Rewards\n\nBesides a list, on the command line `per-rank:1000`, `linear:1000:0`, `geometric:1000:0.6`.\n\n"
        f"{table(('form', 'means', 'parameters'), rewards)}"
    )


def tuning_protocol() -> str:
    """Return the page of the tuning protocol."""
    parts = [
        f"# Tuning protocols\n\n{MADE}\n`benchwright tune FILE.toml` reads one TOML file; `examples/tuning/` has\n"
        f"some, and [the how-to](../how-to/tuning.md) says what comes out.\n\n{example_of(protocol)}"
    ]
    for section, settings in (("tuning", TuningSettings), ("adversary", AdversarySettings), ("launch", LaunchSettings)):
        rows = (
            (f"`{one.name}`", toml(one.default), one.metadata["unit"], limits(dict(one.metadata)), one.metadata["why"])
            for one in fields(settings)
        )
        parts.append(f"\n## [{section}]\n\n{table(('key', 'default', 'unit', 'values', 'why'), rows)}")
    return "".join(parts)


PAGES: dict[str, Callable[[], str]] = {
    "commands.md": commands,
    "choices.md": choices,
    "item-layer.md": item_layer,
    "game-files.md": game_files,
    "tuning-protocol.md": tuning_protocol,
}


if __name__ == "__main__":
    for name, make in PAGES.items():
        (REFERENCE / name).write_text(make(), encoding="utf-8")
