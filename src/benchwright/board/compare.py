"""Two reports, two sets of weights, or two releases of a board: what changed, and what of it is beyond doubt."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from benchwright._csv import inert
from benchwright._json import json_safe
from benchwright._shown import Headline, Shown, ShownPart, frame_table
from benchwright._staging import Output
from benchwright.board.board_changes import BoardChanges, board_changes
from benchwright.board.release import ItemScores, Kind, Release, per_task, read_release
from benchwright.board.weight_changes import WeightChanges, weight_changes
from benchwright.errors import UsageError
from benchwright.panel.names import listed, shown

WORDS: dict[Kind, str] = {"report": "a report", "weights": "weights", "board": "a board"}
SHOWN = ("weights.efficiency.", "weights.alignment_sign.")  # figures that the printed text shows; the tables have all
ROWS = 50  # of a table that the printed text shows
MARKER = "changes.json"
CHANGES = Output("comparison", (MARKER,))
PARTS = ("weights", "audit", "panel")  # of a summary, whose numbers are compared
LEFT_OUT = ("weights.risk_sweep", "weights.schemes")  # said a second time elsewhere in a summary, or curves


@dataclass(frozen=True, slots=True, eq=False)
class Changes(Shown):
    """What changed from OLD to NEW; a part that both lack is None.

    Attributes
    ----------
    kind
        What the two are: report, weights or board.
    weights, board
        Changes of weights and of models.
    choices
        Choices that differ: choice, old, new (as JSON text; null where a side does not name it).
    figures
        Numbers of the two summaries that differ: figure, old, new, change.
    findings
        Findings of one report only: side (old or new), section, title.
    files
        Source files that differ: file, change (added, removed, content).
    """

    old: str
    new: str
    kind: Kind
    weights: WeightChanges | None
    board: BoardChanges | None
    choices: pl.DataFrame
    figures: pl.DataFrame
    findings: pl.DataFrame
    files: pl.DataFrame
    notes: tuple[str, ...]

    def _told(self) -> Iterable[ShownPart]:
        yield Headline(f"{shown(self.old)} -> {shown(self.new)} ({WORDS[self.kind]})")
        figures = self.figures.filter(pl.any_horizontal(pl.col("figure").str.starts_with(start) for start in SHOWN))
        tables = (
            ("source files that differ", self.files),
            ("choices that differ", self.choices),
            ("figures that differ (the folder of -o has all)", figures),
            ("findings that only one has", self.findings),
        )
        for title, table in tables:
            if table.height:
                yield title
                yield frame_table(table, rows=ROWS)
        if self.kind == "report" and not self.choices.height:
            yield "no choice differs"
        yield from (part for part in (self.weights, self.board) if part is not None)
        yield from self.notes

    def to_frame(self) -> pl.DataFrame:
        """Return the table of items where there are weights, else of models."""
        part = self.board if self.weights is None else self.weights
        return pl.DataFrame() if part is None else part.frame

    def to_dict(self) -> dict[str, Any]:
        """Return all as JSON-safe values."""
        record: dict[str, Any] = json_safe(
            {
                "old": self.old,
                "new": self.new,
                "kind": self.kind,
                "choices": self.choices.to_dicts(),
                "figures": self.figures.to_dicts(),
                "findings": self.findings.to_dicts(),
                "files": self.files.to_dicts(),
                "weights": None if self.weights is None else self.weights.to_dict(),
                "board": None if self.board is None else self.board.to_dict(),
                "notes": list(self.notes),
            }
        )
        return record


def compare(old: str | Path, new: str | Path, *, column: str | None = None) -> Changes:
    """Compare two reports, two sets of weights, or two releases of a board.

    Parameters
    ----------
    old, new
        Two folders of reports; two tables of weights (task,doc_id,weight or task,weight) or JSON schemes; or two
        boards: a table with model and score, a folder that holds leaderboard.csv, a panel, or a table of scores.
    column
        The weights to compare: published_share, published_weight or weight; by default the first that both have.

    Raises
    ------
    UsageError
        A path does not exist or holds none of these, or the two are of different kinds.
    DataError
        A file is damaged or its hash does not fit, or the two have no item, or no model, in common.
    """
    before, after = read_release(old), read_release(new)
    if before.kind != after.kind:
        raise UsageError(
            f"{old} is {WORDS[before.kind]} and {new} is {WORDS[after.kind]}",
            hint="compare two of one kind; a report's folder holds its weights.csv and leaderboard.csv",
        )
    names = (before.name, after.name)
    notes: list[str] = []
    weights, board = None, None
    columns = _same_part("weights", before, after, notes) if column is None else _asked(column, before, after)
    if columns is not None:
        pair = [before.weights[columns[0]], after.weights[columns[1]]]
        of_tasks = [side["doc_id"].null_count() > 0 for side in pair]
        if of_tasks[0] != of_tasks[1]:
            pair[of_tasks.index(False)] = per_task(pair[of_tasks.index(False)])
            notes.append(f"weights of items in {names[of_tasks.index(False)]} are summed per task")
        weights = weight_changes(pair[0], pair[1], names=names, columns=columns)
    files = _same_part("boards", before, after, notes)
    if files is not None:
        scores = _item_scores(before, after, notes)
        board = board_changes(before.boards[files[0]], after.boards[files[1]], names=names, scores=scores)
    for side in (before, after):
        notes += [f"{side.name}: {note}" for note in (() if side.scores is None else side.scores.values.notes)]
    if weights is None and board is None:
        notes.append("there are no weights and no board on both sides")
    return Changes(
        *names,
        kind=before.kind,
        weights=weights,
        board=board,
        choices=_choices(before.choices, after.choices),
        figures=_figures(before.summary, after.summary),
        findings=_findings(before, after),
        files=_files(before.summary, after.summary),
        notes=tuple(notes),
    )


def write_changes(changes: Changes, out: str | Path, *, overwrite: bool = False) -> Path:
    """Write changes.json, weights_changes.csv and board_changes.csv, whole or not at all.

    ``out`` is a new or empty folder, or an earlier comparison with ``overwrite=True``.

    Raises
    ------
    UsageError
        The folder is not empty or cannot be written.
    """
    target = Path(out)
    with CHANGES.whole(target, overwrite=overwrite) as stage:
        text = json.dumps(changes.to_dict(), indent=1, ensure_ascii=False, allow_nan=False)
        (stage / MARKER).write_text(text + "\n", encoding="utf-8", newline="\n")
        for part, name in ((changes.weights, "weights_changes.csv"), (changes.board, "board_changes.csv")):
            if part is not None:
                part.frame.with_columns(inert(part.frame.schema)).write_csv(stage / name)
    return target


def _same_part(part: str, before: Release, after: Release, notes: list[str]) -> tuple[str, str] | None:
    """Return what is compared: the first that both have, else the first of each; None where one side has none."""
    old, new = getattr(before, part), getattr(after, part)
    for name, mine, other in ((before.name, old, new), (after.name, new, old)):
        if mine and not other:
            notes.append(f"only {name} has {'weights' if part == 'weights' else 'a board'}")
        if extra := [one for one in mine if other and one not in other]:
            notes.append(f"only {name} has {listed(extra)}")
    if not old or not new:
        return None
    both = next((one for one in old if one in new), None)
    return (next(iter(old)), next(iter(new))) if both is None else (both, both)


def _asked(column: str, before: Release, after: Release) -> tuple[str, str]:
    for side in (before, after):
        if column not in side.weights:
            has = ", ".join(side.weights) or "no weights"
            raise UsageError(f"{side.name} has no weights in a column {column}", hint=f"it has {has}")
    return column, column


def _item_scores(before: Release, after: Release, notes: list[str]) -> tuple[ItemScores, ItemScores] | None:
    """Return the scores behind both boards where items pair; say what was taken for the same, and what is not."""
    old, new = before.scores, after.scores
    if old is None or new is None or not old.values.level == new.values.level == "item":
        return None
    first, second = old.values, new.values
    if len(first.tasks) == len(second.tasks) == 1 and first.tasks != second.tasks:  # a matrix is named by its file
        notes.append(
            f"the one task of each side is taken for the same: {shown(first.tasks[0])} and {shown(second.tasks[0])}"
        )
        metrics = None if second.metrics is None else dict.fromkeys(first.tasks, next(iter(second.metrics.values())))
        second = replace(second, items=second.items.with_columns(task=pl.lit(first.tasks[0])), metrics=metrics)
    changed = {
        task: (metric, second.metrics[task])
        for task, metric in (first.metrics or {}).items()
        if second.metrics is not None and second.metrics.get(task, metric) != metric
    }
    notes += [shown(f"task {task}: the metric was {was} and is {now}") for task, (was, now) in changed.items()]
    if first.items.join(second.items, on=["task", "doc_id"]).height == 0:
        notes.append("no item has one name on both sides, so score changes are not paired")
        return None
    return old, replace(new, values=second)


def _choices(old: Mapping[str, Any], new: Mapping[str, Any]) -> pl.DataFrame:
    rows = [
        {"choice": name, **{word: _text(side, name) for word, side in (("old", old), ("new", new))}}
        for name in dict.fromkeys([*old, *new])
        if name not in old or name not in new or old[name] != new[name]
    ]
    return pl.DataFrame(rows, schema=dict.fromkeys(("choice", "old", "new"), pl.String))


def _text(side: Mapping[str, Any], name: str) -> str | None:
    return json.dumps(side[name], ensure_ascii=False, default=list) if name in side else None


def _figures(old: Mapping[str, Any], new: Mapping[str, Any]) -> pl.DataFrame:
    before, after = (
        {name: number for part in PARTS for name, number in _each_number(part, side.get(part))} for side in (old, new)
    )
    rows = [
        {"figure": name, "old": before.get(name), "new": after.get(name)}
        for name in dict.fromkeys([*before, *after])
        if before.get(name) != after.get(name)
    ]
    schema = {"figure": pl.String, "old": pl.Float64, "new": pl.Float64}
    return pl.DataFrame(rows, schema=schema).with_columns(change=pl.col("new") - pl.col("old"))


def _each_number(name: str, value: Any) -> Iterator[tuple[str, float]]:
    """Yield every number of a record under its dotted name, without lists."""
    if name in LEFT_OUT:
        return
    if isinstance(value, dict):
        for key, entry in value.items():
            yield from _each_number(f"{name}.{key}", entry)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield name, float(value)


def _findings(old: Release, new: Release) -> pl.DataFrame:
    titles = [
        {(str(one["section"]), str(one["title"])): None for one in side.summary.get("findings", [])}
        for side in (old, new)
    ]
    rows = [
        {"side": word, "section": section, "title": title}
        for word, mine, other in (("old", *titles), ("new", *titles[::-1]))
        for section, title in mine
        if (section, title) not in other
    ]
    return pl.DataFrame(rows, schema=dict.fromkeys(("side", "section", "title"), pl.String))


def _files(old: Mapping[str, Any], new: Mapping[str, Any]) -> pl.DataFrame:
    before, after = (
        {one["name"]: one["sha256"] for one in side.get("source", {}).get("files", [])} for side in (old, new)
    )
    rows = [
        {"file": name, "change": "added" if name not in before else "removed" if name not in after else "content"}
        for name in dict.fromkeys([*before, *after])
        if before.get(name) != after.get(name)
    ]
    return pl.DataFrame(rows, schema=dict.fromkeys(("file", "change"), pl.String))
