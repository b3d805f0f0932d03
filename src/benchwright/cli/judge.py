"""The command that asks a judge which activities items stand for."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from benchwright.cli.options import Json, app, note, one_of, print_json, progress, prose
from benchwright.errors import UsageError


@app.command(epilog="Example: benchwright judge items.jsonl --model baseline/tfidf -o loadings/")
def judge(
    items: Annotated[str, typer.Argument(help="CSV, JSON or Parquet of task,doc_id,question; panel; lm-eval:TASK.")],
    model: Annotated[str, typer.Option(help="provider/name as Inspect AI knows it, or baseline/tfidf (offline).")],
    out: Annotated[Path, typer.Option("-o", "--out", help="Folder to write; an earlier run of it is continued.")],
    perspective: Annotated[str, typer.Option(help="Framing: both, automation or augmentation.")] = "both",
    activities: Annotated[
        Path | None, typer.Option(help="CSV of activity,name,definition; else the 27 work activities.")
    ] = None,
    activity_scores: Annotated[
        Path | None, typer.Option(help="Values of activities (activity,value) to put beside the lists, for `audit`.")
    ] = None,
    limit: Annotated[int | None, typer.Option(help="Only the first so many items.")] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the estimate and one filled prompt; send nothing.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Send the texts to the model's server without asking.")] = False,
    base_url: Annotated[str | None, typer.Option(help="Server to ask, instead of the provider's own.")] = None,
    ranked: Annotated[int, typer.Option(help="Most activities in a list.")] = 5,
    connections: Annotated[int, typer.Option(help="Calls in flight at once.")] = 10,
    tries: Annotated[int, typer.Option(help="Answers asked for until one can be used.")] = 3,
    retries: Annotated[int, typer.Option(help="Repeats of a request that the server turned down.")] = 5,
    timeout: Annotated[int, typer.Option(help="Seconds that a request may take.")] = 120,
    temperature: Annotated[float, typer.Option(help="0 asks for the likeliest answer.")] = 0.0,
    no_temperature: Annotated[bool, typer.Option("--no-temperature", help="For models that do not take one.")] = False,
    no_schema: Annotated[
        bool, typer.Option("--no-schema", help="For servers without structured output; answers are checked anyway.")
    ] = False,
    max_output_tokens: Annotated[int, typer.Option(help="A longer answer is cut off.")] = 1500,
    max_characters: Annotated[int, typer.Option(help="A longer item is not sent, and recorded as failed.")] = 20_000,
    price_in: Annotated[float | None, typer.Option(help="US dollars per million tokens sent.")] = None,
    price_out: Annotated[float | None, typer.Option(help="US dollars per million tokens of answers.")] = None,
    max_usd: Annotated[float | None, typer.Option(help="Stop before the folder's run costs more.")] = None,
    max_tokens: Annotated[int | None, typer.Option(help="Stop before the folder's run uses more.")] = None,
    name: Annotated[str | None, typer.Option(help="Of this judge: writes judge_loadings_NAME.jsonl.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Start anew, without the answers in OUT.")] = False,
    as_json: Json = False,
) -> None:
    """Ask a model which activities each item stands for; a killed run can be started again and goes on.

    Writes judge_loadings.jsonl (which `audit` reads), run.json and activities.csv into OUT. Stops with exit code 1
    before a budget is exceeded; what is done is kept. Keys come from the environment, e.g. OPENAI_API_KEY.
    """
    from benchwright.judge.plan import plan_judging
    from benchwright.judge.run import carry_out, open_model
    from benchwright.judge.settings import JudgeSettings
    from benchwright.logs.judge_loadings import PERSPECTIVES

    chosen = one_of("--perspective", perspective, ("both", *PERSPECTIVES))
    plan = plan_judging(
        items,
        model=model,
        perspectives=PERSPECTIVES if chosen == "both" else (chosen,),
        activities=activities,
        limit=limit,
        out=None if overwrite else out,
        settings=JudgeSettings(
            ranked=ranked,
            tries=tries,
            connections=connections,
            retries=retries,
            timeout=timeout,
            temperature=None if no_temperature else temperature,
            max_output_tokens=max_output_tokens,
            max_characters=max_characters,
            schema=not no_schema,
            base_url=base_url,
            price_in=price_in,
            price_out=price_out,
            max_usd=max_usd,
            max_tokens=max_tokens,
        ),
    )
    if dry_run:
        prose(f"{plan}\n\nThe first prompt:\n\n{plan.example()}")
        return
    asked = open_model(plan)
    note(str(plan))
    if asked is not None and plan.to_ask:
        _consent(asked.destination, plan.to_ask, yes=yes)
    say = progress()
    try:
        run = carry_out(
            plan, asked, out=out, activity_scores=activity_scores, name=name, overwrite=overwrite, progress=say
        )
    except KeyboardInterrupt:
        say("")
        note(f"the answers in {out} are kept: the same command without --overwrite goes on from them")
        raise
    say("")
    if as_json:
        print_json(run.to_dict())
    else:
        prose(str(run))
    note(f"wrote {out}")
    if run.stopped is not None or not run.own["ok"].any():
        raise typer.Exit(1)


def _consent(destination: str | None, lists: int, *, yes: bool) -> None:
    """Ask before texts leave this machine; raise where nobody can answer."""
    if destination is None:
        note("the model is on this machine: no text leaves it")
        return
    question = f"Send the items' texts to {destination} ({lists:,} lists to ask for)?"
    if yes:
        return
    if not sys.stdin.isatty():
        raise UsageError(f"judging would send the items' texts to {destination}", hint="--yes says that it may")
    if not typer.confirm(question, err=True):
        raise UsageError("nothing was sent", hint="--dry-run shows what would be")
