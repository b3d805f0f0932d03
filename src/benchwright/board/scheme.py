"""Weighting schemes: which weight each item, or each task, carries in a score, and a file that proves it.

The file is JSON: ``benchwright_scheme`` (the version of its format), ``level``, ``rule`` (how the weights came about),
``assumptions`` (whatever the maker holds to matter), ``weights`` (one list [task, doc_id, weight] an item, or [task,
weight] a task), ``items_sha256`` and ``sha256``. Both hashes are of the content and not of its layout: sha256 of
compact JSON with sorted keys, of the sorted list of items alone and of all but the hash itself.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import polars as pl

from benchwright._check import FloatArray
from benchwright._json import json_safe
from benchwright._shown import Headline, Shown, ShownPart, frame_table
from benchwright._words import count, percent
from benchwright.board.values import BoardValues, Level
from benchwright.errors import DataError, Fault, UsageError
from benchwright.logs.source_file import read_source
from benchwright.logs.user_weights import read_weight_table
from benchwright.panel.names import listed

FORMAT = 1
LOST_LIMIT = 0.05  # share of the sum of |weight| that may fit no item of the board
FOLDER_FILES = ("scheme.json", "weights.csv")  # of a board's or a report's folder
HEAVIEST = 20  # weights that a scheme shows


@dataclass(frozen=True, eq=False)
class WeightScheme(Shown):
    """Weights of items or tasks. Their scale does not matter, their signs do.

    Parameters
    ----------
    weights
        task, doc_id, weight (level "item") or task, weight (level "task"); ids as text or whole numbers. Kept sorted.
    level
        What a weight belongs to.
    rule
        How the weights came about, in words.
    assumptions
        What a reader needs to judge them: any values that JSON can hold.

    Raises
    ------
    UsageError
        A column is missing, an item stands twice, a weight is not finite, or there is none that is not 0.

    Examples
    --------
    >>> import polars as pl
    >>> table = pl.DataFrame({"task": ["a", "a", "b"], "doc_id": [1, 2, 1], "weight": [1.0, 0.5, 2.0]})
    >>> scheme = WeightScheme(table, rule="example")
    >>> scheme.per_task().weights.rows()
    [('a', 1.5), ('b', 2.0)]
    """

    weights: pl.DataFrame
    level: Level = "item"
    rule: str = "given"
    assumptions: Mapping[str, Any] = field(default_factory=dict)

    def _told(self) -> Iterable[ShownPart]:
        yield Headline(f"Weights of {count(self.weights.height, self.level)}: {self.rule} (sha256 {self.sha256[:12]})")
        heaviest = self.weights.sort(pl.col("weight").abs(), descending=True, maintain_order=True)
        yield frame_table(heaviest, rows=HEAVIEST)

    def __post_init__(self) -> None:
        if self.level not in ("item", "task"):
            raise UsageError(f'`level` must be "item" or "task", got {self.level!r}')
        key = self.key
        if missing := [name for name in (*key, "weight") if name not in self.weights.columns]:
            raise UsageError(f"`weights` must have the columns {', '.join((*key, 'weight'))}; {missing[0]} is missing")
        weight = pl.col("weight").cast(pl.Float64)
        weight = pl.when(weight == 0).then(0.0).otherwise(weight).alias("weight")  # -0.0 would have another hash
        table = self.weights.select(pl.col(key).cast(pl.String), weight).sort(key)
        if table.null_count().sum_horizontal().item() or not table["weight"].is_finite().all():
            raise UsageError("`weights` must hold a name and a finite weight in each row")
        if (twice := table.select(key).is_duplicated()).any():
            raise UsageError(f"`weights` must hold an item once, got {table.filter(twice).row(0)[:-1]} twice")
        if not (table["weight"] != 0).any():
            raise UsageError("`weights` must hold a weight that is not 0")
        object.__setattr__(self, "weights", table)
        object.__setattr__(self, "assumptions", json_safe(dict(self.assumptions)))

    @property
    def key(self) -> list[str]:
        """Return the columns that name a weight's owner."""
        return ["task", "doc_id"] if self.level == "item" else ["task"]

    @cached_property
    def items_sha256(self) -> str:
        """Return the hash of the set of items, or tasks."""
        return content_sha256([list(row) for row in self.weights.select(self.key).iter_rows()])

    @cached_property
    def sha256(self) -> str:
        """Return the hash of the whole content."""
        return content_sha256(self._content())

    def per_task(self) -> WeightScheme:
        """Return the weights of tasks, for a board that knows only task means: the sums of their items' weights."""
        if self.level == "task":
            return self
        table = self.weights.group_by("task").agg(pl.col("weight").sum())
        return WeightScheme(table, "task", f"{self.rule}; summed per task", self.assumptions)

    def to_frame(self) -> pl.DataFrame:
        """Return the weights."""
        return self.weights

    def to_dict(self) -> dict[str, Any]:
        """Return what the file holds, as JSON-safe values."""
        return {**self._content(), "sha256": self.sha256}

    def to_json(self) -> str:
        """Return the text of the file, one weight a line."""
        record = self.to_dict()
        rows = [json.dumps(row, ensure_ascii=False) for row in record.pop("weights")]
        head = json.dumps(record, ensure_ascii=False, indent=1).removesuffix("\n}")
        return head + ',\n "weights": [\n  ' + ",\n  ".join(rows) + "\n ]\n}\n"

    def _content(self) -> dict[str, Any]:
        return {
            "benchwright_scheme": FORMAT,
            "level": self.level,
            "rule": self.rule,
            "assumptions": dict(self.assumptions),
            "items_sha256": self.items_sha256,
            "weights": [list(row) for row in self.weights.iter_rows()],
        }


def read_scheme(path: str | Path, *, column: str | None = None) -> WeightScheme:
    """Read a scheme: JSON as :meth:`WeightScheme.to_json` writes it, or a table of weights.

    Parameters
    ----------
    path
        A JSON file, a CSV or Parquet file with task,doc_id,weight or task,weight, or the folder of a report or of a
        board that holds one.
    column
        Of a table: the column to take; by default ``published_weight`` where there is one, else ``weight``.

    Raises
    ------
    UsageError
        There is no such file.
    DataError
        It is damaged, or its hash is not that of its content.
    """
    path = Path(path)
    if path.is_dir():
        names = FOLDER_FILES if column is None else FOLDER_FILES[1:]
        path = next((path / name for name in names if (path / name).is_file()), path / FOLDER_FILES[1])
    if path.suffix.lower() == ".json" and path.is_file():
        return _read_json(path)
    table = read_weight_table(path, column=column)
    level: Level = "item" if "doc_id" in table.frame.columns else "task"
    try:
        return WeightScheme(table.frame, level, f"{table.source.name}, column `{table.column}`")
    except UsageError as error:
        raise DataError(f"{path}: {error.message}") from None


def _read_json(path: Path) -> WeightScheme:
    def fail(reason: str, hint: str | None = None) -> NoReturn:
        raise DataError(f"{path}: the weights cannot be used", faults=[Fault(path.name, reason)], hint=hint)

    def refuse(word: str) -> NoReturn:
        raise ValueError(f"{word} is no number")

    faults: list[Fault] = []
    source = read_source(path, faults)
    if source is None:
        raise DataError(f"{path}: the weights cannot be used", faults=faults)
    try:
        content = json.loads(source[0], parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        fail(f"is no JSON: {error}")
    version = content.get("benchwright_scheme") if isinstance(content, dict) else None
    if type(version) is not int:
        fail("is no scheme: `benchwright_scheme` is missing", "scheme.json of a board, or a CSV file of weights")
    if version != FORMAT:
        fail(f"is of format {version}, this benchwright reads {FORMAT}")
    level, rule, rows = content.get("level"), content.get("rule"), content.get("weights")
    assumptions = content.get("assumptions", {})
    if level not in ("item", "task") or not isinstance(rule, str) or not isinstance(assumptions, dict):
        fail("must have `level` (item or task), `rule` (a text) and `assumptions` (an object)")
    width = 3 if level == "item" else 2
    for place, row in enumerate(rows if isinstance(rows, list) else [None], start=1):
        named = isinstance(row, list) and len(row) == width and all(isinstance(name, str) for name in row[:-1])
        if not named or type(row[-1]) not in (int, float):
            fail(f"`weights`, entry {place}: must be [task, {'doc_id, ' if width == 3 else ''}number]")
    columns = ["task", "doc_id", "weight"] if width == 3 else ["task", "weight"]
    kinds = {name: pl.Float64 if name == "weight" else pl.String for name in columns}
    try:
        table = pl.DataFrame([[*row[:-1], float(row[-1])] for row in rows], schema=kinds, orient="row")
        scheme = WeightScheme(table, level, rule, assumptions)
    except (UsageError, OverflowError) as error:
        fail(error.message if isinstance(error, UsageError) else "a weight is out of range")
    for name in ("items_sha256", "sha256"):
        if content.get(name) != getattr(scheme, name):
            fail(
                f"`{name}` is not the hash of the content: the file was changed after it was written",
                "take the file from its source again; weights changed on purpose belong into a CSV file",
            )
    return scheme


def uniform_scheme(values: BoardValues) -> WeightScheme:
    """Return the plain average of items: on a board of task scores, tasks weigh as many items as they have where all
    sizes are known, else the same.
    """
    rule = "plain average of items"
    if values.level == "task":
        rule = "task scores by number of items" if _has_sizes(values) else "plain average of tasks"
    return WeightScheme(values.items.with_columns(weight=pl.Series(plain_weights(values))), values.level, rule)


def plain_weights(values: BoardValues) -> FloatArray:
    """Return what each row of the board weighs in :func:`uniform_scheme`, (m,)."""
    if values.sizes is None or not _has_sizes(values):
        return np.ones(values.items.height)
    return np.asarray(values.sizes, dtype=np.float64)


def _has_sizes(values: BoardValues) -> bool:
    return values.sizes is not None and bool(np.isfinite(values.sizes).all())


def task_scheme(values: BoardValues) -> WeightScheme:
    """Return the mean of task means: a task's items share one weight."""
    return WeightScheme(pl.DataFrame({"task": values.tasks, "weight": 1.0}), "task", "mean of task means")


def matched_weights(
    scheme: WeightScheme, values: BoardValues, *, partial: bool = False
) -> tuple[FloatArray, tuple[str, ...]]:
    """Return the weight of each row of the board, (m,), NaN where the scheme names none, and what did not match.

    Weights of tasks are spread equally over their items; on a board of task scores, weights of items are summed per
    task.

    Parameters
    ----------
    partial
        Accept a scheme of which more than ``LOST_LIMIT`` of the weight fits no row.

    Raises
    ------
    DataError
        Nothing matches, or too little.
    """
    notes = []
    items = values.items
    used = scheme
    if values.level == "task" and scheme.level == "item":
        used = scheme.per_task()
        notes.append("weights of items are summed per task, for only task scores are known")
    if used.level == "task":
        size = items.group_by("task").len()
        spread = used.weights.join(size, on="task", how="left").with_columns(pl.col("weight") / pl.col("len"))
        found = items.join(spread.select("task", "weight"), on="task", how="left", maintain_order="left")
        lost = used.weights.join(items, on="task", how="anti")
    else:
        found = items.join(used.weights, on=["task", "doc_id"], how="left", maintain_order="left")
        lost = used.weights.join(items, on=["task", "doc_id"], how="anti")
    what = used.level
    if lost.height == used.weights.height:
        first = listed(used.weights.select(used.key).row(0)), listed(part for part in items.row(0) if part)
        raise DataError(
            f"no {what} with a weight is on the board, of {lost.height:,}",
            hint=f"the weights name ({first[0]}), the board has ({first[1]}); give weights of this benchmark's {what}s",
        )
    if lost.height:
        share = float(np.abs(lost["weight"].to_numpy()).sum() / np.abs(used.weights["weight"].to_numpy()).sum())
        text = f"not on the board: {count(lost.height, what)} with {percent(share)} of the weight"
        if share > LOST_LIMIT and not partial:
            raise DataError(
                f"{text}, e.g. {listed(lost.select(used.key).row(0))}",
                hint="give the scores of these too, or accept the rest of the weights with --partial",
            )
        notes.append(text)
    if not (found["weight"].fill_null(0.0) != 0).any():
        raise DataError(f"every {what} on the board has weight 0", hint="give the scores of those with a weight")
    if bare := found["weight"].null_count():
        of = f"{bare:,} of the board's {count(items.height, values.level)}"
        notes.append(f"without weight, and only in the plain average: {of}")
    return found["weight"].fill_null(np.nan).to_numpy(), tuple(notes)


def content_sha256(value: Any) -> str:
    """Return the hash of a value of JSON, whatever its layout in a file."""
    text = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
