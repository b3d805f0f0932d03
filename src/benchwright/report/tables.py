"""The tables of a report: one registry for the page, the CSV files and the LaTeX files.

CSV files hold full precision. A text cell that a spreadsheet would run as a formula gets a leading
apostrophe; LaTeX and HTML text is escaped. To add a table, add a row to :func:`tables`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import polars as pl

from benchwright._csv import inert
from benchwright._words import dollars, percent, plain_digits
from benchwright.auditing.results import FamilyContrast
from benchwright.game_answers.inputs import GameResult
from benchwright.report.contents import AuditReport
from benchwright.report.tables_game import tables_of_game
from benchwright.report.tables_panel import panel_tables
from benchwright.report.tables_weights import weight_tables
from benchwright.report.tables_welfare import evidence_tables

Kind = Literal["text", "integer", "number", "digits", "percent", "dollars", "price", "p"]


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column as shown: field of the frame, heading, how to write a value."""

    field: str
    heading: str
    kind: Kind = "text"

    def text(self, value: Any) -> str:
        """Return a cell as a reader sees it; an unknown value is a dash."""
        if value is None:
            return "–"
        if self.kind == "integer":
            return f"{value:,.0f}"
        if self.kind == "number":
            return f"{value:.3f}" if abs(value) < 1000 else f"{value:,.0f}"
        if self.kind == "percent":
            return percent(value)
        if self.kind == "dollars":
            return dollars(value)
        if self.kind == "price":
            return plain_digits(value, 4)
        if self.kind == "digits" and abs(value) < 1000:
            return f"{value:.4g}"
        if self.kind == "digits":
            return f"{value:,.0f}"
        if self.kind == "p":
            return f"{value:.2g}" if value < 0.001 else f"{value:.4f}"
        return str(value)


@dataclass(frozen=True, slots=True, eq=False)
class ReportTable:
    """One table: file name, section of the report, title, columns and rows."""

    name: str
    section: str
    title: str
    columns: tuple[TableColumn, ...]
    frame: pl.DataFrame

    def rows(self) -> Iterator[tuple[str, ...]]:
        """Yield the cells as text, row by row."""
        for row in self.frame.select([column.field for column in self.columns]).iter_rows():
            yield tuple(column.text(value) for column, value in zip(self.columns, row, strict=True))

    def csv(self) -> str:
        """Return the rows at full precision as CSV."""
        return csv_text(self.frame.select([column.field for column in self.columns]))

    def latex(self) -> str:
        """Return a tabular environment for booktabs."""
        align = "".join("l" if column.kind == "text" else "r" for column in self.columns)
        lines = [f"% {_latex(self.title)}", rf"\begin{{tabular}}{{{align}}}", r"\toprule"]
        lines.append(" & ".join(_latex(column.heading) for column in self.columns) + r" \\")
        lines.append(r"\midrule")
        lines += [" & ".join(_latex(cell) for cell in row) + r" \\" for row in self.rows()]
        return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])


def csv_text(frame: pl.DataFrame) -> str:
    """Return a frame as CSV whose text cells no spreadsheet takes for a formula."""
    return frame.with_columns(inert(frame.schema)).write_csv()


_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "–": "--",
    "[": "{[}",
    "*": "{*}",
    **{char: "\\" + char for char in "&%$#_{}"},
}


def _latex(text: str) -> str:
    return "".join(_LATEX.get(char, char) for char in " ".join(text.split()))


def tables(report: AuditReport) -> tuple[ReportTable, ...]:
    """Return the tables that this report has the data for, in reading order."""
    return _tables_of(_tables(report))


def game_tables(game: GameResult) -> tuple[ReportTable, ...]:
    """Return the tables of a ranking game."""
    return _tables_of(tables_of_game(game))


_Row = tuple[str, str, str, Sequence[tuple[Any, ...]], pl.DataFrame]


def _tables_of(rows: Iterator[_Row]) -> tuple[ReportTable, ...]:
    return tuple(
        ReportTable(name, section, title, tuple(TableColumn(*column) for column in columns), frame)
        for name, section, title, columns, frame in rows
    )


def _tables(report: AuditReport) -> Iterator[_Row]:
    yield from _welfare(report)
    yield from evidence_tables(report)
    improvability, noise = report.audit.improvability, report.audit.noise
    if improvability is not None:
        columns: Sequence[tuple[Any, ...]] = (
            ("axis", "effort axis"),
            ("share_cheapest", "cheapest for", "percent"),
            ("n_cheapest", "items", "integer"),
            ("median_usd_per_unit", "median for 1.0 of score", "dollars"),
            ("median_usd_per_tenth", "median for 0.10", "dollars"),
            ("price_usd", "price of a slope unit (USD)", "price"),
            ("per", "slope unit"),
            ("implied_price_usd", "price in the source's own column", "price"),
        )
        by_axis = improvability.by_axis.with_columns(median_usd_per_tenth=pl.col("median_usd_per_unit") / 10)
        yield "cost-axes", "improvability", "Cheapest axis of each item", columns, by_axis
        quantiles = improvability.quantiles
        yield "cost-quantiles", "improvability", "Items at the quantiles of cost", _quantiles("dollars"), quantiles
    if noise is not None:
        columns = (
            ("family", "family"),
            ("n", "items", "integer"),
            ("median_p", "median score", "number"),
            ("median_sigma", "median sigma", "number"),
            ("median_z", "median Z", "number"),
            ("z_lo", "from", "number"),
            ("z_hi", "to", "number"),
            ("n_p_over_half", "items got right", "integer"),
            ("median_ratio", "their median margin ratio", "number"),
            ("r_ratio_z", "r(|ratio - 1|, Z), all items", "number"),
        )
        yield "noise-families", "noise", f"Noise by family (map {noise.families})", columns, noise.by_family
        yield "noise-quantiles", "noise", "Items at the quantiles of noise", _quantiles("number"), noise.quantiles
    yield from panel_tables(report)
    yield from weight_tables(report)
    if report.game is not None:
        yield from tables_of_game(report.game)


def _quantiles(kind: Kind) -> Sequence[tuple[Any, ...]]:
    return (
        ("quantile", "quantile", "percent"),
        ("position", "rank", "integer"),
        ("rank_lo", "from", "integer"),
        ("rank_hi", "to", "integer"),
        ("value", "per unit of score" if kind == "dollars" else "sigma", kind),
        ("task", "task"),
        ("doc_id", "item"),
    )


def _welfare(report: AuditReport) -> Iterator[_Row]:
    welfare = report.audit.welfare
    if welfare is None:
        return
    if welfare.contrast is not None:
        yield _contrast_table(welfare.contrast)
    if welfare.quadrants.height:
        shares = welfare.quadrants.pivot("quadrant", index=["threshold", "unit", "total"], values="share")
        columns = (
            ("threshold", "threshold", "number"),
            ("unit", "counted"),
            ("total", "number", "integer"),
            *((name, name, "percent") for name in ("green", "automate", "augment", "red")),
        )
        yield "quadrants", "welfare", "Shares of the quadrants", columns, shares
    if welfare.activities.height:
        marks = [name for name in welfare.activities.columns if name.startswith("quadrant_at_")]
        shown, intervals = welfare.activities, dict[str, Sequence[tuple[Any, ...]]](auto=(), aug=())
        if report.evidence is not None and report.evidence.intervals is not None:
            shown = shown.join(report.evidence.intervals, on="activity", how="left", maintain_order="left")
            for name in intervals:
                intervals[name] = ((f"{name}_lo", "from", "number"), (f"{name}_hi", "to", "number"))
        columns = (
            ("label", "activity"),
            ("n_tasks", "rated tasks", "integer"),
            ("auto", "automation value", "number"),
            *intervals["auto"],
            ("aug", "help value", "number"),
            *intervals["aug"],
            ("automation", "items, automation", "percent"),
            ("augmentation", "items, help", "percent"),
            *((mark, mark.removeprefix("quadrant_at_").replace("_", ".") + " quadrant") for mark in marks),
        )
        yield (
            "activities",
            "welfare",
            "Activities and the share of items that load on them",
            columns,
            shown,
        )
    if welfare.robustness.height:
        columns = (
            ("variant", "scored otherwise"),
            ("n_compared", "items", "integer"),
            ("spearman_auto", "Spearman, w_auto", "number"),
            ("spearman_aug", "Spearman, w_aug", "number"),
            ("kendall_auto", "Kendall, w_auto", "number"),
            ("kendall_aug", "Kendall, w_aug", "number"),
            ("frontier_size_variant", "frontier", "integer"),
            ("frontier_jaccard", "Jaccard of frontiers", "number"),
            ("dominated_variant", f"{welfare.robustness_first or 'first family'} dominated", "percent"),
        )
        yield "robustness", "welfare", "Does it survive another way of scoring?", columns, welfare.robustness


def _contrast_table(contrast: FamilyContrast) -> _Row:
    rows: list[tuple[str, float | None, float | None]] = []
    first, second = contrast.first, contrast.second
    both = (contrast.w_auto, contrast.w_aug)

    def add(name: str, *values: float | None) -> None:
        rows.append((name, *values))  # type: ignore[arg-type]

    add(f"mean, {first}", *(side.first.mean for side in both))
    add(f"mean, {second}", *(side.second.mean for side in both))
    add(f"median, {first}", *(side.first.median for side in both))
    add(f"median, {second}", *(side.second.median for side in both))
    add(f"difference of means, {second} - {first}", *(side.difference for side in both))
    level = percent(both[0].level, 0)
    add(f"{level} interval from (tasks resampled)", *(side.interval[0] for side in both))
    add(f"{level} interval to", *(side.interval[1] for side in both))
    add("p, two-sided (labels permuted over tasks)", *(side.permutation_p for side in both))
    add("p, one-sided in the observed direction", *(side.permutation_p_one_sided for side in both))
    add(f"dominance of {second}: largest violation", *(side.dominance.violation for side in both))
    add("  its p under dominance (tasks resampled)", *(side.dominance.violation_p for side in both))
    add("  p under no difference (tasks permuted)", *(side.dominance.advantage_p for side in both))
    add("KS statistic (items as if independent)", *(side.ks_statistic for side in both))
    add("KS p, two-sided (items as if independent)", *(side.ks_p for side in both))
    add("Mann-Whitney p, two-sided (same)", *(side.mann_whitney_p for side in both))
    add("Mann-Whitney p, one-sided (same)", *(side.mann_whitney_p_one_sided for side in both))
    frame = pl.DataFrame(rows, schema={"figure": pl.String, "w_auto": pl.Float64, "w_aug": pl.Float64}, orient="row")
    columns = (("figure", "figure"), ("w_auto", "w_auto", "p"), ("w_aug", "w_aug", "p"))
    frame = frame.with_columns(pl.col("w_auto", "w_aug").fill_nan(None))
    return (
        "contrast",
        "welfare",
        f"{first} against {second}, welfare on 1 to 5 (family map {contrast.families})",
        columns,
        frame,
    )
