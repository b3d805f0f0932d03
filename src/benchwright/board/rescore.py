"""A leaderboard from logs or a panel, scored with given weights; and new models on a frozen one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import polars as pl

from benchwright._check import FloatArray
from benchwright._words import count
from benchwright.board.folder import read_board
from benchwright.board.results import Leaderboard
from benchwright.board.rules import Missing, ScoringRules
from benchwright.board.scales import Scale, ScaleRule, read_bounds, read_chance, within_unit
from benchwright.board.scheme import WeightScheme, read_scheme, task_scheme, uniform_scheme
from benchwright.board.scoring import score_board
from benchwright.board.sources import Progress, Source, opened_source, source_values
from benchwright.board.values import BoardValues, Level, LevelChoice, board_values, picked_models
from benchwright.board.weighing import Flags
from benchwright.errors import DataError, Fault, UsageError
from benchwright.logs.tabular import Column
from benchwright.logs.user_weights import read_side_table
from benchwright.panel.item_values import Errors
from benchwright.panel.names import listed, shown
from benchwright.panel.panel import Panel, Repeated

FLAGS = (
    Column("task", "text", required=False),
    Column("doc_id", "text", required=False),
    Column("item", "text", required=False),
    Column("model", "text", required=False, empty=True),
)
DIFFERENT = 1e-12
SPREAD = ("minmax", "zscore")  # scales that the models on the board make
CLUSTERS = (Column("task", "text"), Column("doc_id", "text"), Column("cluster", "text"))


def rescore(
    source: Source,
    *,
    weights: str | Path | WeightScheme = "uniform",
    column: str | None = None,
    partial: bool = False,
    level: LevelChoice = "auto",
    metric: str | None = None,
    models: Sequence[str] | None = None,
    tasks: Sequence[str] | None = None,
    setting: str | None = None,
    errors: Errors = "drop",
    repeated: Repeated = "latest",
    pool_versions: bool = False,
    missing: Missing = "intersect",
    scale: Literal["none", "minmax", "zscore"] = "none",
    bounds: str | Path | None = None,
    chance: str | Path | None = None,
    clip: bool = True,
    cluster: str | Path = "logs",
    flags: str | Path | None = None,
    replicates: int = 1000,
    confidence: float = 0.95,
    seed: int = 0,
    progress: Progress | None = None,
) -> Leaderboard:
    """Score the models of a panel, of logs or of a score table with given weights.

    Parameters
    ----------
    source
        A panel, logs or score tables of any format that ``benchwright ingest`` reads, or :class:`BoardValues`.
    weights
        "uniform" (by item), "tasks" (the mean of task means), a :class:`WeightScheme`, or what :func:`read_scheme`
        reads: a table of task,doc_id,weight or task,weight, a scheme.json, the folder of a report or board.
    column, partial
        The column of a table to take; whether a scheme that fits the board only in part is accepted.
    level, metric, models, tasks, setting, errors, repeated, pool_versions
        What of the source, see :func:`benchwright.board.values.board_values`.
    missing, clip, replicates, confidence, seed
        See :class:`ScoringRules`.
    scale, bounds, chance
        One scale for all tasks, see :mod:`benchwright.board.scales`: a rule, or a file of task,low,high, or one of
        task,chance or task,n_choices.
    cluster
        Items drawn together: as the logs name them ("logs"), none ("item"), whole tasks ("task"), or a file of
        task,doc_id,cluster.
    flags
        A file of items (task,doc_id, or item; optionally model): each row takes its item from all models. The board
        with them stands beside.
    progress
        Called with a short text at each step.

    Raises
    ------
    UsageError
        A wrong argument or path.
    DataError
        What the data cannot support, or a damaged file.
    """
    rule, table = scale_rule(scale, bounds, chance)
    rules = ScoringRules(missing, rule, clip, replicates, confidence, seed)
    given = None if weights in ("uniform", "tasks") else weights
    if isinstance(given, str | Path):
        given = read_scheme(given, column=column)
    say = progress or (lambda _: None)
    values, policy = source_values(
        source,
        level=level,
        metric=metric,
        models=models,
        tasks=tasks,
        setting=setting,
        errors=errors,
        repeated=repeated,
        pool_versions=pool_versions,
        progress=say,
    )
    values = _clustered(values, cluster)
    if values.level == "item":
        policy["clusters"] = Path(cluster).name
    if flags is not None:
        policy["flags"] = Path(flags).name
    flagged = None if flags is None else _flagged(flags, values)
    say("scores")

    def scored(board: BoardValues, scheme: WeightScheme | None) -> Leaderboard:
        if scheme is None:
            scheme = task_scheme(board) if weights == "tasks" else uniform_scheme(board)
        done = score_board(board, scheme, rules=rules, table=table, partial=partial)
        return replace(done, policy={**done.policy, **policy})

    whole = scored(values, given)
    if flagged is None:
        return whole
    clean, left = values.select(~flagged), given
    if bare := sorted({*values.tasks} - {*clean.tasks}):
        clean = replace(clean, notes=(*clean.notes, f"flags take all of {listed(bare)}"))
    if given is not None:
        left = _without(given, values.items.filter(flagged), bare, values.level)
    return _beside(scored(clean, left), whole, int(flagged.sum()))


def scale_rule(
    scale: Literal["none", "minmax", "zscore"], bounds: str | Path | None, chance: str | Path | None
) -> tuple[ScaleRule, pl.DataFrame | None]:
    """Return the rule of the scale and what it needs of a file; at most one of the three may be given."""
    if bounds is not None and chance is not None:
        raise UsageError("`bounds` and `chance` exclude each other", hint="chance is a low: put it into the bounds")
    if scale != "none" and (bounds is not None or chance is not None):
        raise UsageError(f"`scale` {scale!r} and {'`bounds`' if chance is None else '`chance`'} exclude each other")
    if bounds is not None:
        return "bounds", read_bounds(bounds)
    return (scale, None) if chance is None else ("chance", read_chance(chance))


def add_models(
    board: str | Path,
    source: Source,
    *,
    models: Sequence[str] | None = None,
    setting: str | None = None,
    errors: Errors = "drop",
    repeated: Repeated = "latest",
    pool_versions: bool = False,
    missing: Missing | None = None,
    progress: Progress | None = None,
) -> Leaderboard:
    """Score new models on a frozen board: its items, weights, metrics and scale, as :func:`write_board` wrote them.

    Scores of the models that are there do not change; ranks and rank intervals are those among all. Where the board
    took only items that all its models have, a new model that lacks one has no score, unless ``missing`` says
    "renormalise" or "zero"; then that is the rule of the grown board.

    Raises
    ------
    UsageError
        The folder holds no board; another rule for missing items than the one that made the old scores.
    DataError
        The board is damaged, the source holds no new model with its items, or values that do not fit its scale.
    """
    frozen = read_board(board)
    kept = frozen.missing
    if missing is not None and missing != kept:
        if frozen.rules.missing != "intersect" or missing == "intersect":
            raise UsageError(
                f"--missing {missing}: the board was made with {frozen.rules.missing}, and its scores stay",
                hint="leave --missing out, or score all models anew without --board",
            )
        kept = missing
    say = progress or (lambda _: None)
    old = frozen.values
    with opened_source(source, say) as (opened, said):
        say("values")
        new = opened if isinstance(opened, BoardValues) else _same_metrics(opened, old, errors, repeated, pool_versions)
    new = picked_models(new, models=models, setting=setting)
    fresh = [place for place, name in enumerate(new.models) if name not in old.models]
    notes = [*said, *new.notes]
    if again := [place for place, name in enumerate(new.models) if name in old.models]:
        notes += _again(old, new.select(models=again))
    if not fresh:
        raise DataError("no model is new to the board", hint="name new logs, or write a new board without --board")
    new = new.select(models=fresh)
    values, stated = _aligned(old, new)
    if not np.isfinite(values).any():
        raise DataError("the new models have no item of the board", hint="give logs of the same tasks and metrics")
    notes += _fitting(frozen.scale, replace(old, models=new.models, values=values, standard_errors=None))
    together = replace(
        old,
        models=(*old.models, *new.models),
        values=np.hstack([old.values, values]),
        standard_errors=None if old.standard_errors is None else np.hstack([old.standard_errors, stated]),
        notes=tuple(notes),
    )
    rules = replace(frozen.rules, missing=kept)
    done = score_board(together, frozen.scheme, rules=rules, scale=frozen.scale)
    added = pl.col("model").is_in(list(new.models))
    policy = {**frozen.policy, **done.policy, "board": "frozen"}
    if missing is None and kept != frozen.rules.missing:  # what was made by common items stays so when it grows again
        policy |= {"missing": frozen.rules.missing, "board": "frozen, no score for an added model that lacks items"}
        rules = frozen.rules
    return replace(done, frame=done.frame.with_columns(added=added), rules=rules, policy=policy)


def _again(old: BoardValues, new: BoardValues) -> list[str]:
    """Say which models of a source are on the board already, and where their values are not those of the board."""
    values, _ = _aligned(old, new)
    before = old.values[:, [old.models.index(name) for name in new.models]]
    differ = np.any(np.abs(values - before) > DIFFERENT, axis=0).tolist()
    notes = [f"already on the board, left as it is: {listed(new.models)}"]
    if any(differ):
        some = listed(name for name, other in zip(new.models, differ, strict=True) if other)
        notes.append(f"the source has other values than the board, which do not count, of {some}")
    return notes


def _fitting(scale: Scale, new: BoardValues) -> list[str]:
    """Refuse values that a new board would refuse, too; say where a frozen scale may be left."""
    if scale.rule in ("none", "chance"):
        within_unit(new)
    if scale.rule in SPREAD:
        return [f"the scale ({scale.rule}) is frozen: added models may lie outside the range of those that made it"]
    return []


def _clustered(values: BoardValues, cluster: str | Path) -> BoardValues:
    """Return the board with other clusters than the logs name."""
    if cluster == "logs":
        return values
    if values.level == "task":
        raise UsageError("--cluster needs item rows, the board is of task scores", hint="leave it out")
    if cluster == "item":
        return replace(values, clusters=None)
    if cluster == "task":
        return replace(values, clusters=values.codes)
    path = Path(cluster)
    table = read_side_table(path, "clusters", CLUSTERS)
    if (twice := table.filter(table.select("task", "doc_id").is_duplicated())).height:
        item = listed(twice.row(0)[:2])
        raise DataError(f"{path}: item ({item}) is in more than one row", hint="an item has one cluster")
    named = values.items.join(table, on=["task", "doc_id"], how="left", maintain_order="left")["cluster"]
    if named.null_count() == len(named):
        raise DataError(
            f"{path}: no item of the board has a cluster", hint="give task and doc_id as the board has them"
        )
    numbers = named.rank("dense").cast(pl.Int64)
    alone = pl.Series(np.arange(len(named))) + len(named) + 1
    notes = list(values.notes)
    if named.null_count():
        notes.append(f"{count(named.null_count(), 'item')} in no cluster: each is drawn on its own")
    tasks = values.items.select("task", cluster=named).drop_nulls().group_by("cluster").agg(pl.col("task").n_unique())
    if several := int((tasks["task"] > 1).sum()):
        notes.append(
            f"cluster labels in more than one task, each one cluster: {several:,}; write the task into the label where"
            " it names another cluster in each"
        )
    return replace(values, clusters=numbers.fill_null(alone).to_numpy(), notes=tuple(notes))


def _flagged(path: str | Path, values: BoardValues) -> Flags:
    """Return which rows of the board a file of flags names, (m,)."""
    path = Path(path)
    table = read_side_table(path, "flags", FLAGS, optional=True)
    if "item" in table.columns and "doc_id" not in table.columns:
        table = table.rename({"item": "doc_id"})
    key = [name for name in ("task", "doc_id") if name in table.columns]
    needed = "doc_id" if values.level == "item" else "task"
    if needed not in key:
        columns = "the columns task,doc_id, or item" if values.level == "item" else "a column task: it has task scores"
        raise DataError(f"{path}: the board needs {columns}", hint="see the columns with `head -1`")
    if values.level == "task":
        key = ["task"]
    lines = table.with_row_index("line", offset=2)
    found = lines.join(values.items.select(key).with_row_index("row"), on=key, how="left", maintain_order="left")
    lost = found.filter(pl.col("row").is_null())
    several = found.filter(pl.col("row").is_not_null()).filter(pl.col("line").is_duplicated())
    faults = [
        Fault(path.name, f"no {values.level} {listed(names)} on the board", line=line)
        for line, *names in lost.select("line", *key).iter_rows()
    ]
    if values.level == "item" and "task" not in key:
        faults += [
            Fault(path.name, f"item {shown(name)} is in several tasks: name its task", line=line)
            for line, name in several.select("line", "doc_id").unique().sort("line").iter_rows()
        ]
    if faults:
        raise DataError(f"{path}: the flags cannot be used", faults=faults, hint="flags name items as the board does")
    flagged = np.zeros(values.items.height, dtype=bool)
    flagged[found["row"].to_numpy()] = True
    if flagged.all():
        raise DataError(f"{path}: every item of the board is flagged", hint="a board needs items")
    return flagged


def _without(scheme: WeightScheme, items: pl.DataFrame, tasks: list[str], level: Level) -> WeightScheme:
    """Return a scheme without flagged items, and ``tasks``, of which all are; what else a task weighs stays with it."""
    left = scheme.weights.filter(~pl.col("task").is_in(tasks))
    if level == scheme.level == "item":
        left = left.join(items, on=["task", "doc_id"], how="anti", maintain_order="left")
    if not left["weight"].cast(pl.Boolean).any():
        raise DataError("all items with weight are flagged", hint="a board needs items")
    if left.height == scheme.weights.height:
        return scheme
    return WeightScheme(left, scheme.level, f"{scheme.rule}, without flagged items", scheme.assumptions)


def _beside(clean: Leaderboard, whole: Leaderboard, flagged: int) -> Leaderboard:
    """Return the board without flagged items, with what it was with them."""
    what = "item" if clean.values.level == "item" else "task"
    notes = (*clean.notes, f"{count(flagged, f'flagged {what}')} taken from all models, whichever model a flag names")
    other = whole.frame.select("model", score_with_flagged="score", rank_with_flagged="rank")
    frame = clean.frame.join(other, on="model", how="left", maintain_order="left")
    return replace(clean, frame=frame, notes=notes, with_flagged=whole.frame)


def _same_metrics(
    panel: Panel, old: BoardValues, errors: Errors, repeated: Repeated, pool_versions: bool
) -> BoardValues:
    """Return a panel's values on the tasks and metrics that a board has."""
    cells = panel.cells().filter("active", pl.col("kind") == ("rows" if old.level == "item" else "scores"))
    there = {*cells["task"]}
    of: dict[str | None, list[str]] = {}
    for task in old.tasks:
        if task in there:
            of.setdefault((old.metrics or {}).get(task), []).append(task)
    if not of:
        what = "item rows" if old.level == "item" else "task scores"
        raise DataError(f"the source has no {what} of the board's tasks", hint=f"tasks: {listed(old.tasks)}")
    parts = [
        board_values(
            panel,
            level=old.level,
            metric=metric,
            tasks=tasks,
            errors=errors,
            repeated=repeated,
            pool_versions=pool_versions,
        )
        for metric, tasks in of.items()
    ]
    names = sorted({name for part in parts for name in part.models})
    items = pl.concat([part.items for part in parts])
    values, stated = (np.full((items.height, len(names)), np.nan) for _ in range(2))
    start = 0
    for part in parts:
        at = np.ix_(range(start, start + part.items.height), [names.index(name) for name in part.models])
        values[at] = part.values
        if part.standard_errors is not None:
            stated[at] = part.standard_errors
        start += part.items.height
    notes = tuple(dict.fromkeys(note for part in parts for note in part.notes))
    return BoardValues(tuple(names), items, values, level=old.level, standard_errors=stated, notes=notes)


def _aligned(old: BoardValues, new: BoardValues) -> tuple[FloatArray, FloatArray]:
    """Return the new models' values and stated standard errors on the old rows."""
    if old.level != new.level:
        raise DataError(f"the board is of {old.level}s, the new models are on {new.level}s")
    row = old.items.join(
        new.items.with_row_index("row"), on=["task", "doc_id"], how="left", maintain_order="left", nulls_equal=True
    )["row"]
    have = row.is_not_null().to_numpy()
    values, stated = (np.full((old.items.height, len(new.models)), np.nan) for _ in range(2))
    values[have] = new.values[row.drop_nulls().to_numpy()]
    if new.standard_errors is not None:
        stated[have] = new.standard_errors[row.drop_nulls().to_numpy()]
    return values, stated
