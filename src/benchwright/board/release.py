"""One side of a comparison, recognised by what it holds: a report, weights, or a board.

A report is a folder with summary.json, as `benchwright audit` writes it. Weights are a table with the columns task,
doc_id and weight, or a JSON scheme. A board is a table with model (or name) and score, a folder that holds one as
leaderboard.csv, as `benchwright rescore` writes it, a panel, or any table of scores that `benchwright ingest` reads.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl

from benchwright._check import FloatArray
from benchwright.board._aggregations import present_mean
from benchwright.board.folder import VALUES, FrozenBoard, read_board
from benchwright.board.scheme import WeightScheme, matched_weights, read_scheme
from benchwright.board.sources import source_values
from benchwright.board.values import BoardValues
from benchwright.errors import DataError, Fault, UsageError
from benchwright.logs.source_file import read_source
from benchwright.logs.tabular import Column, Table, header, parse_table
from benchwright.mechanism.results import shares_of
from benchwright.panel.ingest import MANIFEST
from benchwright.panel.names import listed

Kind = Literal["report", "weights", "board"]
SUMMARY, WEIGHTS, SCHEME = "summary.json", "weights.csv", "scheme.json"
BOARDS = ("rescored.csv", "leaderboard.csv")  # of a folder; the first that both sides have is compared
# columns of weights with the ends of their intervals; the first that both sides have is compared
ENDS: dict[str, tuple[str, ...]] = {
    "published_share": ("published_lo", "published_hi"),
    "published_weight": (),
    "weight": ("weight_lo", "weight_hi"),
}
MADE = ("standard errors", "board")  # of a board's policy: what followed from choices
BOARD_NUMBERS = ("standard_error", "rank", "rank_lo", "rank_hi")
SCORED = "score both with `benchwright rescore`, where options say what to take, and compare the boards"
HINT = "give a report folder, a weights file (task,doc_id,weight or a JSON scheme), a leaderboard.csv, or a panel"


@dataclass(frozen=True, slots=True, eq=False)
class ItemScores:
    """The item scores behind a board.

    ``values``: models on items, on the board's scale, more is better; NaN where a model lacks an item and it does not
    count. ``weights``: (m,). ``clip``: a task score below 0 counts as 0.
    """

    values: BoardValues
    weights: FloatArray
    clip: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Release:
    """What one side holds.

    ``weights``, by column: task, doc_id (null for weights of tasks), weight, share, and the ends of the share's
    interval, share_lo and share_hi, null where there are none. ``boards``, by file: model, score, standard_error, rank,
    rank_lo, rank_hi. ``scores``: what is behind the board, where it is there. ``choices``: what the maker chose, by
    name. ``summary``: summary.json of a report.
    """

    name: str
    kind: Kind
    weights: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    boards: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    scores: ItemScores | None = None
    choices: Mapping[str, Any] = field(default_factory=dict)
    summary: Mapping[str, Any] = field(default_factory=dict)


def read_release(path: str | Path) -> Release:
    """Return what a folder or file holds.

    Raises
    ------
    UsageError
        There is no such path, or nothing in it is known.
    DataError
        A file in it is damaged; its faults are listed.
    """
    place = Path(path)
    if place.is_dir():
        return _folder(place)
    if not place.is_file():
        raise UsageError(f"{path} does not exist" if not place.exists() else f"{path} is no regular file", hint=HINT)
    if place.suffix.lower() == ".json" and _is_scheme(place):
        return Release(str(path), "weights", **_scheme(place))
    names = _header(place)
    if "task" in names and names & {*ENDS}:
        return Release(str(path), "weights", _weights(place, names))
    if "score" in names and names & {"model", "name"} and "task" not in names:
        return Release(str(path), "board", boards={BOARDS[-1]: _board(place, names)})
    return _of_values(str(path), read_values(place))


def read_values(path: str | Path) -> BoardValues:
    """Return the scores of a panel's folder, or of any log or table that `benchwright ingest` reads.

    Hints and notes name no option of `benchwright rescore`, where it is not known what is run.
    """
    try:
        values = source_values(path)[0]
    except DataError as error:
        hint = SCORED if error.hint is not None and "--" in error.hint else error.hint
        raise DataError(error.message, faults=error.faults, hint=hint) from None
    return replace(values, notes=tuple(note.split("; --")[0] for note in values.notes))


def _folder(folder: Path) -> Release:
    boards = {name: _board(folder / name, _header(folder / name)) for name in BOARDS if (folder / name).is_file()}
    parts: dict[str, Any] = _scheme(folder / SCHEME) if (folder / SCHEME).is_file() else {}
    if (folder / WEIGHTS).is_file():
        parts["weights"] = _weights(folder / WEIGHTS, _header(folder / WEIGHTS))
    if (folder / VALUES).is_file():
        return _rescored(folder, boards, parts)
    if (folder / SUMMARY).is_file():
        summary = _summary(folder / SUMMARY)
        parts["choices"] = {row["key"]: row["value"] for row in summary["assumptions"]}
        return Release(str(folder), "report", boards=boards, summary=summary, **parts)
    if boards:
        return Release(str(folder), "board", boards=boards, **parts)
    if parts:
        return Release(str(folder), "weights", **parts)
    if (folder / MANIFEST).is_file():
        return _of_values(str(folder), read_values(folder))
    raise UsageError(f"{folder} holds no {SUMMARY}, {BOARDS[-1]} or {WEIGHTS}, and is no panel", hint=HINT)


def _rescored(folder: Path, boards: dict[str, pl.DataFrame], parts: dict[str, Any]) -> Release:
    """Return what `benchwright rescore` wrote, with the scores behind it."""
    frozen = read_board(folder)
    policy = {name: value for name, value in frozen.policy.items() if name not in MADE}
    bounds = {f"scale of {task}": ends for task, *ends in frozen.scale.bounds.select("task", "low", "high").iter_rows()}
    choices = {**parts.pop("choices"), **policy, **bounds}
    return Release(str(folder), "board", boards=boards, scores=_frozen_scores(frozen), choices=choices, **parts)


def _frozen_scores(frozen: FrozenBoard) -> ItemScores:
    values = frozen.values
    scaled, _ = frozen.scale.scaled(values)
    if frozen.rules.missing == "zero":
        scaled = np.nan_to_num(scaled)
    weights = np.nan_to_num(matched_weights(frozen.scheme, values)[0])
    heavy = weights != 0
    return ItemScores(replace(values, values=scaled, higher=None).select(heavy), weights[heavy], frozen.scale.clip)


def _header(path: Path) -> set[str]:
    """Return the column names of a CSV file; none where it is not one, which its reader then says."""
    try:
        return {*header(path.read_bytes())} if path.suffix.lower() == ".csv" else set()
    except UnicodeDecodeError:
        return set()


def _table(path: Path, columns: Sequence[Column], key: tuple[str, ...]) -> pl.DataFrame:
    faults: list[Fault] = []
    source = read_source(path, faults)
    table = Table((*columns,), key, neutralised=True)
    frame = None if source is None else parse_table(path.name, source[0], table, faults)
    if frame is None:
        raise DataError(f"{path} cannot be used", faults=faults)
    return frame


def _weights(path: Path, names: set[str]) -> dict[str, pl.DataFrame]:
    """Return the weights of each known column that has any."""
    key = [Column("task", "text"), *([Column("doc_id", "id")] if "doc_id" in names else [])]
    found = [name for name in ENDS if name in names]
    numbers = [Column(name, "number", empty=name != "weight") for name in found]
    ends = [Column(end, "number", required=False, empty=True) for name in found for end in ENDS[name]]
    frame = _table(path, [*key, *numbers, *ends], tuple(one.name for one in key))
    tables = {}
    for column in found:
        mine = frame.rename({column: "w"}).drop_nulls("w")
        if not mine["w"].cast(pl.Boolean).any():
            continue
        named = dict(zip(ENDS[column], ("lo", "hi"), strict=False))
        tables[column] = _with_shares(mine.rename(named, strict=False).rename({"w": "value"}))
    if not tables:
        raise DataError(f"{path}: all weights are 0, which is no scheme", hint="give weights of which some are not 0")
    return tables


def _scheme(path: Path) -> dict[str, Any]:
    scheme = read_scheme(path)
    weights = _with_shares(scheme.weights.rename({"weight": "value"}))
    return {"weights": {"weight": weights}, "choices": {"rule": scheme.rule, **scheme.assumptions}}


def _with_shares(frame: pl.DataFrame) -> pl.DataFrame:
    """Add shares of weights (``value``); the ends of an interval are divided by the same sum."""
    weight = frame["value"].to_numpy()
    share = shares_of(weight)
    heaviest = int(np.argmax(np.abs(weight)))
    unit = share[heaviest] / weight[heaviest]
    missing = [pl.lit(None, dtype=pl.Float64).alias(end) for end in ("lo", "hi") if end not in frame.columns]
    if "doc_id" not in frame.columns:
        missing.append(pl.lit(None, dtype=pl.String).alias("doc_id"))
    return frame.with_columns(missing).select(
        pl.col("task", "doc_id").cast(pl.String),
        pl.Series("weight", weight),
        pl.Series("share", share),
        share_lo=pl.col("lo") * unit,
        share_hi=pl.col("hi") * unit,
    )


def _board(path: Path, names: set[str]) -> pl.DataFrame:
    name = "model" if "model" in names else "name"
    optional = [Column(one, "number", required=False, empty=True) for one in BOARD_NUMBERS]
    frame = _table(path, [Column(name, "text"), Column("score", "number", empty=True), *optional], (name,))
    return _with_ranks(frame.rename({name: "model"}))


def _with_ranks(frame: pl.DataFrame) -> pl.DataFrame:
    """Add the columns of a board that it lacks; ranks follow from scores where no column has them."""
    if "rank" not in frame.columns:
        frame = frame.with_columns(rank=ranks(frame["score"]))
    frame = frame.with_columns(
        pl.lit(None, dtype=pl.Float64).alias(one) for one in BOARD_NUMBERS if one not in frame.columns
    )
    return frame.select("model", "score", *BOARD_NUMBERS)


def per_task(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the weights of tasks that weights of items add up to; sums have no interval."""
    summed = WeightScheme(frame, "item").per_task().weights
    return _with_shares(summed.rename({"weight": "value"}))


def ranks(score: pl.Series) -> pl.Series:
    """Return 1 + the number of better scores; null without a score."""
    return score.rank("min", descending=True).cast(pl.Float64)


def _of_values(name: str, values: BoardValues) -> Release:
    """Return the plain means of models over the items, or tasks, that each has."""
    lower = [task for task, more in ({} if values.higher is None else values.higher).items() if more is False]
    if lower:
        raise DataError(f"{name}: less is better on {listed(lower)}", hint=SCORED)
    one = np.ones(len(values.values))
    frame = pl.DataFrame({"model": values.models, "score": present_mean(values.values, one)})
    board = _with_ranks(frame.with_columns(pl.col("score").fill_nan(None)))
    return Release(name, "board", boards={BOARDS[-1]: board}, scores=ItemScores(values, one))


def _summary(path: Path) -> dict[str, Any]:
    """Return summary.json, checked as far as it is compared."""
    summary = _json(path)
    source = summary.get("source")
    lists = {
        "assumptions": (summary.get("assumptions"), ("key",)),
        "findings": (summary.get("findings"), ("section", "title")),
        "source.files": (source.get("files") if isinstance(source, dict) else None, ("name", "sha256")),
    }
    faults = [
        Fault(path.name, f"`{name}` must be a list of records with {' and '.join(keys)}, each a text")
        for name, (rows, keys) in lists.items()
        if not isinstance(rows, list)
        or not all(isinstance(row, dict) and all(isinstance(row.get(key), str) for key in keys) for row in rows)
    ]
    if faults:
        raise DataError(f"{path} is no summary of a report", faults=faults, hint="run `benchwright audit` again")
    return {**summary, "assumptions": [{"value": None, **row} for row in summary["assumptions"]]}


def _is_scheme(path: Path) -> bool:
    try:
        return "benchwright_scheme" in _json(path)
    except DataError:
        return False  # its reader says what is wrong


def _json(path: Path) -> dict[str, Any]:
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise DataError(f"{path} is no JSON: {error}", hint="write it again") from None
    if not isinstance(record, dict):
        raise DataError(f"{path} holds no JSON object")
    return record
