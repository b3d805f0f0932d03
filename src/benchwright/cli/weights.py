"""The command that finds weights a leaderboard can publish."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from benchwright.cli.options import (
    Activities,
    ConfigFile,
    Json,
    Loadings,
    Metric,
    Out,
    Overwrite,
    Runs,
    Set,
    Source,
    Weights,
    Welfare,
    app,
    check_welfare,
    configured,
    emit,
    note,
    progress,
    prose,
)


@app.command(epilog="Example: benchwright weights olmes-audit -o weights/ --max-share 0.05 --set welfare.neutral=2.5")
def weights(
    source: Source = None,
    out: Out = Path("weights"),
    config: ConfigFile = None,
    set_: Set = None,
    allow_negative: Annotated[
        bool,
        typer.Option("--allow-negative", help="Weights below 0 too: who solves such an item loses score."),
    ] = False,
    max_share: Annotated[float | None, typer.Option(help="Largest share of one item, e.g. 0.05.")] = None,
    equal_within: Annotated[
        str | None,
        typer.Option(help="One weight in each task, family, column or CSV group."),
    ] = None,
    fixed_shares: Annotated[str | None, typer.Option(help="CSV of task,doc_id,share: shares that are settled.")] = None,
    at_most: Annotated[int | None, typer.Option(help="How many items may carry a weight.")] = None,
    weights: Weights = None,
    metric: Metric = None,
    runs: Runs = None,
    welfare: Welfare = None,
    loadings: Loadings = None,
    activities: Activities = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Find the weights that make the score the best incentive, under the constraints of a board, with intervals.

    Writes weights.csv (an item a row), scheme.json and task_scheme.json (what `rescore` takes), tables/ (weights of
    tasks and families, what constraints cost, what rises and falls and why), sensitivity.csv and summary.json into OUT.
    """
    from benchwright import pipeline
    from benchwright.report.build import REPORT, write_weights
    from benchwright.report.findings import findings
    from benchwright.report.summary import summary_text

    REPORT.check(out, overwrite=overwrite)
    check_welfare(welfare)
    options = {
        "--allow-negative": ("published.non_negative", False if allow_negative else None),
        "--max-share": ("published.max_share", max_share),
        "--equal-within": ("published.equal_within", equal_within),
        "--fixed-shares": ("published.fixed_shares", fixed_shares),
        "--at-most": ("published.at_most", at_most),
        "--metric": ("estimates.metric", metric),
    }
    say = progress()
    report = pipeline.audit(
        source,
        config=configured(config, set_, options),
        weights=weights,
        welfare=welfare,
        loadings=() if loadings is None else loadings,
        activities=activities,
        runs=runs,
        progress=say,
    )
    write_weights(report, out, overwrite=overwrite)
    say("")
    if as_json:
        emit(summary_text(report))
        return
    prose("\n".join(f"- {one.title}: {one.text}" for one in findings(report) if one.section == "weights"))
    next_step = f"score a board with it by `benchwright rescore SCORES --weights {out}`"
    if not (out / "scheme.json").exists() and report.weights is not None:
        next_step = f"no scheme.json, for {report.weights.published.status}"
    note(f"wrote {out}: {next_step}")
