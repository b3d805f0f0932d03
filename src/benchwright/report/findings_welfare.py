"""Findings of what welfare rests on; :mod:`benchwright.report.findings` says what holds for all of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import polars as pl

from benchwright._words import count, percent
from benchwright.auditing.results import WelfareAudit
from benchwright.judge.agreement import ALL, Agreement
from benchwright.logs.item_tables import DEFAULT_JUDGE
from benchwright.mechanism.item_weights import ItemWeights
from benchwright.report.contents import AuditReport
from benchwright.report.findings_panel import Row, names_of
from benchwright.report.judges import BASELINE_SAYS
from benchwright.report.tables_welfare import HELP
from benchwright.report.welfare_changes import WAYS
from benchwright.report.welfare_evidence import WelfareEvidence

WORDS = {"auto": "automation", "aug": "help"}


def of_baseline(report: AuditReport) -> Iterator[Row]:
    """Yield that lists which count come from no model; nothing where they come from one."""
    if report.evidence is not None and report.evidence.baseline:
        yield "welfare", "The lists of activities come from no model", baseline_text(report.evidence)


def of_evidence(report: AuditReport) -> Iterator[Row]:
    """Yield what would change the ranking, how sure welfare is, and how far judges agree."""
    evidence, welfare = report.evidence, report.audit.welfare
    if evidence is None or welfare is None:
        return
    if evidence.changes["n_items"].count():
        yield "welfare", "What would change the ranking of items", _changes(evidence, report.weights)
    if {"w_auto_se", "w_aug_se"} <= set(welfare.items.columns):
        yield from _errors(welfare)
    if evidence.agreement is not None:
        text = _agreement(evidence.agreement, "judges")
        baselines = [judge.name for judge in evidence.judges if judge.baseline]
        text += f" The lists of {_and(baselines)} were {BASELINE_SAYS}." if baselines else ""
        yield "welfare", "How far judges agree", text
    if evidence.raters is not None and evidence.raters.agreement is not None:
        yield "welfare", "How far the source's raters agree", _agreement(evidence.raters.agreement, "raters")


def baseline_text(evidence: WelfareEvidence) -> str:
    """Say that lists which count were made without a model."""
    names = [judge.name for judge in evidence.judges if judge.baseline and judge.counts]
    whose = "activities" if names == [DEFAULT_JUDGE] else _and(names)
    return (
        f"The lists of {whose} were {BASELINE_SAYS}: it compares the words of an "
        "item with the definitions of activities, and gives both framings one list. Welfare and what follows from it "
        "show how the audit works, not what the items are worth."
    )


def _and(names: Sequence[str]) -> str:
    return names_of(names).replace(" or ", " and ")


def _changes(evidence: WelfareEvidence, weights: ItemWeights | None) -> str:
    ranked = evidence.changes.drop_nulls("n_items").filter(
        pl.any_horizontal(pl.col("spearman_auto", "spearman_aug").is_not_null())
    )
    text = f"{count(ranked.height, 'other choice')} {'was' if ranked.height == 1 else 'were'} followed into the items."
    if ranked.height:
        most = ranked.row(0, named=True)
        moved = most["quadrant_moved"]
        text += f" What moves their order most: {most['choice']} ({count(most['n_items'], 'item')}), "
        text += f"{_correlations(most)} with the welfare in force"
        text += "." if moved is None else f", {percent(moved, 0)} of items in another quadrant."
    judged = evidence.changes.drop_nulls("verdict_changes")
    if weights is None or not judged.height:
        return text
    way = WAYS[weights.schemes["uniform"].alignment]
    whole = judged.filter((pl.col("verdict_changes") == 1) & pl.col("verdict").str.starts_with("now"))
    others = judged.filter((pl.col("verdict_changes") > 0) & ~pl.col("verdict").str.starts_with("now"))
    parts = [f"{choice} (it {verdict})" for choice, verdict in whole.select("choice", "verdict").iter_rows()]
    parts += [f"{choice} ({verdict})" for choice, verdict in others.select("choice", "verdict").iter_rows()]
    of = f"of {count(judged.height, 'choice')} that {'was' if judged.height == 1 else 'were'} followed there"
    text += f" As scored here, rewarding the plain average {way}; "
    return text + (f"{of}, these can change that: {'; '.join(parts)}." if parts else f"{of}, none changes that.")


def _correlations(row: dict[str, Any]) -> str:
    """Return the rank correlations of a row that are known."""
    known = [
        f"{row[f'spearman_{name}']:.2f} ({word})" for name, word in WORDS.items() if row[f"spearman_{name}"] is not None
    ]
    return f"Spearman's correlation {' and '.join(known)}"


def _errors(welfare: WelfareAudit) -> Iterator[Row]:
    parts = []
    for name, word in WORDS.items():
        known = welfare.items.drop_nulls([f"w_{name}", f"w_{name}_se"])
        if known.height > 1:
            error, spread = known.select(pl.col(f"w_{name}_se").median(), pl.col(f"w_{name}").std()).row(0)
            parts.append(f"{error:.2f} as {word}, where items differ by {spread:.2f}")
    if parts:
        yield (
            "welfare",
            "How sure an item's welfare is",
            f"Median standard error of an item's welfare: {'; '.join(parts)} (standard deviation over items). Items "
            "that share activities move together, so this is no standard error of a difference.",
        )


def _agreement(agreement: Agreement, who: str) -> str:
    """Say it of all judges together where they are several, else of the pair."""
    several = agreement.table.filter(pl.col("first") == ALL)
    table = several if several.height else agreement.table
    first = table.row(0, named=True)
    names = sorted({*agreement.table["first"], *agreement.table["second"]} - {ALL})
    text = f"{len(names)} {who} ({', '.join(names[:5])}{', ...' if len(names) > 5 else ''})"
    text += f", {count(first['n_items'], 'item')}"
    text += "." if first["rbo_lo"] is None else f"; {percent(agreement.confidence, 0)} intervals."
    for row in table.iter_rows(named=True):
        text += f" Asked as {HELP[row['perspective']]}: {_figures(row, agreement)}."
    return text


def _figures(row: dict[str, Any], agreement: Agreement) -> str:
    parts = []
    for name, word in (("rbo", "lists overlap by"), ("alpha", "alpha is")):
        if row[name] is None:
            parts.append(f"{word.split()[0]} not known")
            continue
        interval = "" if row[f"{name}_lo"] is None else f" ({row[f'{name}_lo']:.2f} to {row[f'{name}_hi']:.2f})"
        parts.append(f"{word} {row[name]:.2f}{interval}")
    other = row["rbo_other_items"]
    if other is None:
        pairs = agreement.table.filter((pl.col("perspective") == row["perspective"]) & (pl.col("first") != ALL))
        known = sorted(pairs["rbo_other_items"].drop_nulls())
        if known:
            parts[0] += f", those of different items by {known[0]:.2f} to {known[-1]:.2f}"
    else:
        chance = row["rbo_lo"] is not None and row["rbo_lo"] <= other <= row["rbo_hi"]
        same = f", not told apart from lists of different items ({other:.2f})"
        parts[0] += same if chance else f", those of different items by {other:.2f}"
    return ", ".join(parts)
