"""The command that answers whether a ranking is worth gaming."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from benchwright.cli.options import Json, Overwrite, app, note, print_json, progress, prose
from benchwright.errors import DataError, UsageError

if TYPE_CHECKING:
    from benchwright.game_answers.inputs import GameResult


@app.command(epilog="Example: benchwright game examples/games/curves.toml --json")
def game(
    file: Annotated[
        Path,
        typer.Argument(help="Game file (TOML), scores by effort, scores before and after tuning, submissions."),
    ],
    delta: Annotated[
        float | None, typer.Option(help="Tune-before-test level, in place of the file's (unit of effort).")
    ] = None,
    delta_max: Annotated[float | None, typer.Option(help="Search the threshold up to this level.")] = None,
    race: Annotated[bool, typer.Option("--race", help="Mixed play and best replies too: spend, wrong orders.")] = False,
    seed: Annotated[int | None, typer.Option(help="Seed of the intervals; 0 by default.")] = None,
    task: Annotated[
        str | None, typer.Option(help="Scores by effort: of this task; * is any text, ! leaves out.")
    ] = None,
    metric: Annotated[str | None, typer.Option(help="Scores by effort: of this metric.")] = None,
    filter_: Annotated[str | None, typer.Option("--filter", help="Scores by effort: of this answer filter.")] = None,
    models: Annotated[
        list[str] | None, typer.Option(help="Only these models; * is any text, ! leaves out. May be repeated.")
    ] = None,
    effort: Annotated[str | None, typer.Option(help="What effort is: step or dose.")] = None,
    items: Annotated[
        int | None, typer.Option(help="Items behind a score, where the scores state neither them nor an error.")
    ] = None,
    rewards: Annotated[
        str | None, typer.Option(help="per-rank:GAP, linear:TOP:BOTTOM, geometric:TOP:RATIO, or a list 3,1,0.")
    ] = None,
    kappa: Annotated[float | None, typer.Option(help="Cost of a unit of effort; 1 by default.")] = None,
    capability: Annotated[
        str | None, typer.Option(help="Who is more capable, by fitted curves: tuned (score), limit; or names: a,b,c.")
    ] = None,
    lower: Annotated[str | None, typer.Option(help="Lower end of curves: per-model, shared or a number.")] = None,
    upper: Annotated[str | None, typer.Option(help="Upper end of curves: per-model, shared or a number.")] = None,
    beta: Annotated[str | None, typer.Option(help="Slope of curves: per-model, shared or a number.")] = None,
    deltas: Annotated[str | None, typer.Option(help="Levels of tuning to show, e.g. 0,10,100; of --race too.")] = None,
    replicates: Annotated[int | None, typer.Option(help="Bootstrap draws; 200 by default, 0 for none.")] = None,
    price: Annotated[
        float | None, typer.Option(help="Price of tuning one model by one unit of effort, in units of reward.")
    ] = None,
    conditions: Annotated[
        str | None, typer.Option(help="Scores under conditions: the direct and the tuned one, e.g. base,tuned.")
    ] = None,
    out: Annotated[Path | None, typer.Option("-o", "--out", help="Folder for a report: new, or --overwrite.")] = None,
    no_figures: Annotated[bool, typer.Option("--no-figures", help="Leave figures/ out.")] = False,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Say whether a ranking is worth gaming: equilibrium with certificate, overtaking costs, tuning that stops it."""
    options: dict[str, Any] = {
        "delta": delta,
        "delta_max": delta_max,
        "race": race,
        "seed": seed,
        "task": task,
        "metric": metric,
        "filter": filter_,
        "models": models,
        "effort": effort,
        "items": items,
        "rewards": rewards,
        "kappa": kappa,
        "capability": names_of(capability),
        "lower": lower,
        "upper": upper,
        "beta": beta,
        "deltas": None if deltas is None else numbers_of("--deltas", deltas),
        "replicates": replicates,
        "price": price,
        "conditions": None if conditions is None else tuple(name.strip() for name in conditions.split(",")),
    }
    from benchwright.game_answers.answer import GameAnswer

    answer = answered(file, options, out, figures=not no_figures, overwrite=overwrite)
    if as_json:
        record = answer.to_dict()
        print_json(record if isinstance(answer, GameAnswer) else record | {"seed": seed or 0})
    else:
        prose(str(answer))
    if out is not None:
        note(f"wrote {out}: open {out / 'report.html'}")
    if isinstance(answer, GameAnswer) and not answer.decided:
        raise typer.Exit(DataError.exit_code)


def answered(file: Path, options: dict[str, Any], out: Path | None, *, figures: bool, overwrite: bool) -> GameResult:
    """Return the answer to what a file holds, and write its report where one is wanted."""
    from benchwright.game_answers.inputs import answer_file

    say = progress()
    if out is None:
        answer = answer_file(file, progress=say, **options)
    else:
        from benchwright.report.build import REPORT, write_game_report

        REPORT.check(out, overwrite=overwrite)
        answer = answer_file(file, progress=say, **options)
        source = file if file.is_file() else None
        write_game_report(answer, out, source=source, figures=figures, overwrite=overwrite, progress=say)
    say("")
    return answer


def names_of(text: str | None) -> str | tuple[str, ...] | None:
    """Return a rule's name as it is, a list of names as one."""
    return text if text is None or "," not in text else tuple(name.strip() for name in text.split(","))


def numbers_of(option: str, text: str) -> tuple[float, ...]:
    """Return the numbers of a list that an option gives."""
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise UsageError(f"{option} must be numbers with commas between, got {text}") from None
