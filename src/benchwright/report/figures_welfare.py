"""The figures of what welfare rests on, with their captions."""

from __future__ import annotations

from collections.abc import Iterator

from benchwright._words import first_of, percent
from benchwright.report import charts_welfare as charts
from benchwright.report.contents import AuditReport
from benchwright.report.style import Chart

Row = tuple[str, str, str, str, Chart | None]


def evidence_figures(report: AuditReport) -> Iterator[Row]:
    """Yield the figures; none where no judge has a part in welfare."""
    evidence = report.evidence
    if evidence is None:
        return
    changes = evidence.changes
    shown = changes.drop_nulls("n_items")
    caption = "Each row makes one other choice; at 1 the order of items stays. Rows of draws are means over them. "
    if report.weights is not None:
        caption += "* the plain average no longer points the way it does; (*) in some draws. "
    yield (
        "welfare-changes",
        "welfare",
        "What would change the ranking of items",
        caption + first_of(charts.MAX_CHOICES, shown.height, "choice").strip(),
        charts.changes_chart(changes),
    )
    compared = [evidence.agreement, None if evidence.raters is None else evidence.raters.agreement]
    tables = [found.table for found in compared if found is not None]
    pairs = max((table.select("first", "second").n_unique() for table in tables), default=0)
    level, many = percent(evidence.level, 0), first_of(charts.MAX_PAIRS, pairs, "pair")
    yield (
        "judge-overlap",
        "welfare",
        "How far judges' lists overlap",
        "1: the same activities in the same order; 0: none in common. The upright mark is the overlap of lists for "
        f"different items: beyond it judges look at the item. Bars are {level} intervals over items.{many}",
        charts.agreement_chart(evidence, "rbo"),
    )
    yield (
        "judge-alpha",
        "welfare",
        "Agreement beyond chance on which activities are listed",
        f"Krippendorff's alpha: 1 is full agreement, 0 what chance gives (dashed). Bars are {level} intervals over "
        f"items.{many}",
        charts.agreement_chart(evidence, "alpha"),
    )
