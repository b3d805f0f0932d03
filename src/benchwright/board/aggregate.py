"""A board from logs, a panel, a score table or the folder of a board, under several rules of aggregation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from benchwright.board.aggregations import Unit
from benchwright.board.folder import VALUES, FrozenBoard, read_board
from benchwright.board.rescore import scale_rule
from benchwright.board.rule_table import RuleTable, other_rules
from benchwright.board.rules import Missing
from benchwright.board.scheme import WeightScheme, read_scheme
from benchwright.board.sources import Progress, Source, source_values
from benchwright.board.values import LevelChoice
from benchwright.panel.item_values import Errors
from benchwright.panel.panel import Repeated


def aggregate(
    source: Source,
    *,
    weights: str | Path | WeightScheme | None = None,
    column: str | None = None,
    partial: bool = False,
    rules: Sequence[str] | None = None,
    unit: Unit = "task",
    level: LevelChoice = "auto",
    metric: str | None = None,
    models: Sequence[str] | None = None,
    tasks: Sequence[str] | None = None,
    setting: str | None = None,
    errors: Errors = "drop",
    repeated: Repeated = "latest",
    pool_versions: bool = False,
    missing: Missing | None = None,
    scale: Literal["none", "minmax", "zscore"] = "none",
    bounds: str | Path | None = None,
    progress: Progress | None = None,
) -> RuleTable:
    """Rank the models of a source under several rules, see :func:`other_rules`.

    A board's folder brings its weights, scale and rule for missing items, each unless another is given.

    Parameters
    ----------
    weights, column, partial
        As for :func:`benchwright.rescore`; None: all items alike, or the weights of a board's folder.
    rules, unit
        As for :func:`other_rules`.
    level, metric, models, tasks, setting, errors, repeated, pool_versions
        What of the source, see :func:`benchwright.board.values.board_values`.
    missing
        What the own rule does with items that some lack; None: only items that all have (intersect), or as the board.
    scale, bounds
        One scale for all tasks, as for :func:`benchwright.rescore`.

    Raises
    ------
    UsageError
        A wrong argument or path.
    DataError
        What the data cannot support, or a damaged file.
    """
    rule, table = scale_rule(scale, bounds, None)
    frozen = _frozen(source)
    values, policy = source_values(
        source if frozen is None else frozen.values,
        level=level,
        metric=metric,
        models=models,
        tasks=tasks,
        setting=setting,
        errors=errors,
        repeated=repeated,
        pool_versions=pool_versions,
        progress=progress,
    )
    given = read_scheme(weights, column=column) if isinstance(weights, str | Path) else weights
    kept: Missing = "intersect" if missing is None else missing
    fixed = None
    if frozen is not None:
        given = frozen.scheme if given is None else given
        kept = frozen.missing if missing is None else missing
        fixed = frozen.scale if rule == "none" else None
    done = other_rules(
        values,
        given,
        rules=rules,
        unit=unit,
        missing=kept,
        scale=fixed,
        scale_rule=rule,
        table=table,
        partial=partial,
    )
    return replace(done, policy={**done.policy, **policy})


def _frozen(source: Source) -> FrozenBoard | None:
    """Return the board that a source is the folder of, None for another source."""
    if isinstance(source, str | Path) and (Path(source) / VALUES).is_file():
        return read_board(source)
    return None
