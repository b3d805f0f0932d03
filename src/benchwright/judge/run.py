"""Judge items: plan, ask, write. Asking needs consent to send texts to another machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import polars as pl

from benchwright import __version__
from benchwright._words import count
from benchwright.errors import UsageError
from benchwright.judge import baseline, folder
from benchwright.judge.asking import Asked, Asking, Call, Outcome, run_to_end
from benchwright.judge.budget import Tokens
from benchwright.judge.inspect_model import InspectModel
from benchwright.judge.items import JudgeItem
from benchwright.judge.journal import Journal, Record
from benchwright.judge.plan import JudgePlan, names_an_activity, plan_judging
from benchwright.judge.prompting import fingerprint
from benchwright.judge.results import SCHEMA, JudgeRun
from benchwright.judge.settings import JudgeSettings
from benchwright.logs.judge_loadings import PERSPECTIVES

Progress = Callable[[str], None]


def open_model(plan: JudgePlan) -> InspectModel | None:
    """Make the client of a plan's model; None for the baseline. Sends nothing."""
    return None if plan.baseline else InspectModel.open(plan.model, plan.settings, plan.prompts.schema)


def judge_items(
    items: str | Path | pl.DataFrame,
    *,
    model: str,
    out: str | Path,
    perspectives: Sequence[str] = PERSPECTIVES,
    activities: str | Path | None = None,
    activity_scores: str | Path | None = None,
    limit: int | None = None,
    settings: JudgeSettings | None = None,
    name: str | None = None,
    allow_sending: bool = False,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> JudgeRun:
    """Ask a model which activities each item stands for, and write the ranked lists into a folder.

    Answers are recorded as they come. The same call on the same folder goes on where a killed, stopped or failed run
    ended, and asks only for what is missing. Lists in the folder that a call is not asked for (another framing, items
    beyond the limit) stay.

    Parameters
    ----------
    items
        File, frame, panel with texts or ``lm-eval:TASK``; see :func:`benchwright.judge.items.read_items`.
    model
        ``provider/name`` as Inspect AI knows it, or ``baseline/tfidf``, which needs no network and is no judge.
    out
        Folder to write: new, empty, or of an earlier run of the same model, server and prompts.
    perspectives
        Framings, of "automation" and "augmentation".
    activities
        CSV file ``activity,name,definition``; by default the 27 Generalized Work Activities.
    activity_scores
        Table of activity values (``gwa_welfare_scores.csv``) to put beside the lists, for an audit.
    limit
        Judge only so many items, the first ones.
    settings
        Tries, connections, budget, prices and the like.
    name
        Tells judges apart: the file is ``judge_loadings_NAME.jsonl``.
    allow_sending
        Consent to send the items' texts to a server on another machine.
    overwrite
        Start anew, without the answers that the folder holds.
    progress
        Called with the step at work.

    Returns
    -------
    JudgeRun
        ``stopped`` tells where it ended early, at the budget or because the provider refused.

    Raises
    ------
    UsageError
        A wrong argument; no consent; a library or key is missing; the folder is not a judge's, or another run's, or
        cannot be written.
    DataError
        The items or activities have faults.
    """
    target = Path(out)
    plan = plan_judging(
        items,
        model=model,
        perspectives=perspectives,
        activities=activities,
        limit=limit,
        settings=settings,
        out=None if overwrite else target,
    )
    asked = open_model(plan)
    destination = None if asked is None else asked.destination
    if destination is not None and not allow_sending:
        raise UsageError(
            f"judging sends the texts of {count(len(plan.items), 'item')} to {destination}",
            hint="allow_sending=True says yes",
        )
    return carry_out(
        plan, asked, out=target, activity_scores=activity_scores, name=name, overwrite=overwrite, progress=progress
    )


def carry_out(
    plan: JudgePlan,
    asked: Asked | None,
    *,
    out: Path,
    activity_scores: str | Path | None = None,
    name: str | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> JudgeRun:
    """Ask what a plan holds (``asked`` None: the baseline) and write the folder; consent is the caller's."""
    folder.loadings_name(name)
    scores = None if activity_scores is None else folder.activity_scores(activity_scores, plan.activities)
    folder.prepare(out)
    with Journal(out, plan.identity, anew=overwrite) as journal:
        if overwrite:
            folder.clear(out)
        kept = folder.kept_lists(out, name, asked=plan.keys)
        if asked is None:
            run = _baseline_run(plan, kept)
        else:
            asking = Asking(
                asked,
                plan.prompts,
                known=frozenset(activity.id for activity in plan.activities),
                settings=plan.settings,
                journal=journal,
                progress=(lambda _: None) if progress is None else progress,
            )
            run_to_end(asking.run(plan.calls()))
            run = _run(plan, asking.outcomes, journal.records, asking, asked.versions, kept)
        folder.write_folder(run, out, activities=plan.activities, scores=scores, name=name)
    return run


def _baseline_run(plan: JudgePlan, kept: Sequence[tuple[Any, ...]]) -> JudgeRun:
    calls = plan.calls()
    texts = list(dict.fromkeys(call.item.text for call in calls))
    ranked = baseline.rank_by_words(texts, plan.activities, ranked=plan.settings.ranked)
    lists = dict(zip(texts, ranked, strict=True))
    outcomes = {}
    for call in calls:
        found = lists[call.item.text]
        outcomes[call] = Outcome(found, failed=None if found else "it shares no word with any definition")
    return _run(plan, outcomes, {}, None, baseline.versions(), kept)


def _run(
    plan: JudgePlan,
    outcomes: Mapping[Call, Outcome],
    records: Mapping[Any, Record],
    asking: Asking | None,
    versions: Mapping[str, str],
    kept: Sequence[tuple[Any, ...]],
) -> JudgeRun:
    rows = []
    for item in plan.items:
        for perspective in plan.perspectives:
            outcome = outcomes.get(Call(item, perspective))
            if item.problem is not None:
                outcome = Outcome(failed=item.problem)
            if outcome is not None:
                rows.append(_row(item, perspective, outcome, named=names_an_activity(item.text, plan.activities)))
    tokens = sum((Tokens(record.input_tokens, record.output_tokens) for record in records.values()), Tokens())
    unreported = sum(not record.reported for record in records.values())
    notes = list(plan.notes)
    if unreported:
        notes.append(
            f"the provider did not report the tokens of {unreported:,} answers: the most they can be is counted."
        )
    lists = pl.DataFrame([*rows, *kept], schema=dict(SCHEMA), orient="row")
    numbers = lists["doc_id"].cast(pl.Int64, strict=False)
    if (numbers.cast(pl.String) == lists["doc_id"]).fill_null(False).all():
        lists = lists.with_columns(doc_id=numbers)
    return JudgeRun(
        model=plan.model,
        baseline=plan.baseline,
        lists=lists,
        kept=len(kept),
        not_reached=len(plan.keys) - len(rows),
        stopped=None if asking is None else asking.stopped,
        detail="" if asking is None else asking.detail,
        answers=len(records),
        new_answers=0 if asking is None else asking.asked,
        unreported=unreported,
        tokens=tokens,
        usd=plan.settings.usd(tokens.sent, tokens.received),
        notes=tuple(notes),
        provenance={
            "source": plan.source,
            "perspectives": [name for name in PERSPECTIVES if name in {*plan.perspectives, *lists["perspective"]}],
            "activities": len(plan.activities),
            "prompt_sha256": plan.prompts.sha256,
            "settings": asdict(plan.settings),
            "versions": {"benchwright": __version__, **versions},
        },
    )


def _row(item: JudgeItem, perspective: str, outcome: Outcome, *, named: bool) -> tuple[Any, ...]:
    good = outcome.failed is None
    checksum = None if item.problem is not None else fingerprint(item.text)
    notes = [*outcome.notes, *(("the text holds activity ids",) if named else ())]
    return (
        *(item.task, item.doc_id, perspective, good, list(outcome.activities) if good else []),
        *(outcome.failed, notes, outcome.answers, checksum),
    )
