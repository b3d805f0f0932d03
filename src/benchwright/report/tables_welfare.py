"""Tables of what welfare rests on: who judged, how far judges agree, what raters say, what would change the ranking."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import polars as pl

from benchwright._words import percent
from benchwright.auditing.welfare import QUADRANTS
from benchwright.judge.agreement import ALL, Agreement
from benchwright.logs.item_tables import PERSPECTIVES
from benchwright.report.contents import AuditReport
from benchwright.report.judges import JudgeRecord, Raters
from benchwright.report.welfare_evidence import WelfareEvidence

Row = tuple[str, str, str, Sequence[tuple[Any, ...]], pl.DataFrame]
HELP = {"automation": "automation", "augmentation": "help"}


def evidence_tables(report: AuditReport) -> Iterator[Row]:
    """Yield the tables; none where no judge has a part in welfare."""
    evidence = report.evidence
    if evidence is None:
        return
    if evidence.changes.height:
        yield _changes(evidence)
    if not report.source.simulated:
        yield _judges(evidence.judges)
    if evidence.agreement is not None:
        title = f"How far judges agree, with {percent(evidence.agreement.confidence, 0)} intervals"
        yield _agreement("judge-agreement", title, evidence.agreement)
    if evidence.raters is not None:
        agreement = evidence.raters.agreement
        if agreement is not None:
            title = f"How far the source's raters agree, with {percent(agreement.confidence, 0)} intervals"
            yield _agreement("rater-agreement", title, agreement)
        yield _raters(evidence.raters)


def _changes(evidence: WelfareEvidence) -> Row:
    """Leave out the columns of activities where no row has them."""
    columns: list[tuple[Any, ...]] = [
        ("choice", "other choice"),
        ("n_items", "items", "integer"),
        ("spearman_auto", "Spearman, w_auto", "number"),
        ("spearman_aug", "Spearman, w_aug", "number"),
        ("quadrant_moved", "items in another quadrant", "percent"),
        ("verdict", "plain average"),
    ]
    if evidence.changes["activities_auto"].count() or evidence.changes["activities_aug"].count():
        columns.append(("activities_auto", "Spearman of activities, automation", "number"))
        columns.append(("activities_aug", "of activities, help", "number"))
    columns.append(("basis", "basis"))
    return "welfare-changes", "welfare", "What would change the ranking", columns, evidence.changes


def _judges(judges: Sequence[JudgeRecord]) -> Row:
    rows = [
        (
            judge.name,
            judge.model or "not named",
            "baseline" if judge.baseline else "judge",
            "counts" if judge.counts else "compared",
            *(judge.distinct[perspective] for perspective in PERSPECTIVES),
        )
        for judge in judges
    ]
    schema = {name: pl.String() for name in ("judge", "model", "kind", "part")} | dict.fromkeys(
        PERSPECTIVES, pl.Float64()
    )
    columns = (
        ("judge", "judge"),
        ("model", "made by"),
        ("kind", "kind"),
        ("part", "in welfare"),
        *((name, f"distinct lists, {HELP[name]}", "percent") for name in PERSPECTIVES),
    )
    return "judges", "welfare", "Who judged the items", columns, pl.DataFrame(rows, schema=schema, orient="row")


def _agreement(name: str, title: str, agreement: Agreement) -> Row:
    columns = (
        ("perspective", "asked as"),
        ("pair", "judges"),
        ("n_items", "items", "integer"),
        ("rbo", "overlap of lists", "number"),
        ("rbo_lo", "from", "number"),
        ("rbo_hi", "to", "number"),
        ("rbo_other_items", "overlap, different items", "number"),
        ("alpha", "alpha", "number"),
        ("alpha_lo", "from", "number"),
        ("alpha_hi", "to", "number"),
    )
    return name, "welfare", title, columns, agreement_pairs(agreement)


def agreement_pairs(agreement: Agreement) -> pl.DataFrame:
    """Return the table with the column ``pair``: who is compared, in words."""
    pair = pl.when(pl.col("first") == ALL).then(pl.lit("all together"))
    return agreement.table.with_columns(
        pl.col("perspective").replace(HELP), pair=pair.otherwise(pl.format("{} and {}", "first", "second"))
    )


def _raters(raters: Raters) -> Row:
    """Leave out the contrast of families where the raters' items are of one family."""
    quadrants = [
        (f"{perspective}_{quadrant}", f"{HELP[perspective]} slots, {quadrant}", "percent")
        for perspective in PERSPECTIVES
        for quadrant in QUADRANTS
    ]
    contrast = [
        ("gap_auto", f"others less {raters.first}, w_auto", "number"),
        ("gap_aug", f"others less {raters.first}, w_aug", "number"),
        ("frontier_size", "frontier", "integer"),
        ("frontier_first", f"of them {raters.first}", "integer"),
        ("first_dominated", f"{raters.first} dominated", "percent"),
        ("other_dominated", "others dominated", "percent"),
    ]
    columns = [
        ("rater", "rater"),
        ("n_items", "items", "integer"),
        *(column for column in contrast if column[0] in raters.table.columns),
        *quadrants,
    ]
    return "raters", "welfare", "What each of the source's raters alone would say", columns, raters.table
