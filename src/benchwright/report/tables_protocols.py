"""Tables of two protocols compared, and of submissions that were not disclosed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import polars as pl

from benchwright._words import percent
from benchwright.ranking_game.private_variants import VariantReport
from benchwright.ranking_game.protocols import ProtocolComparison

Row = tuple[str, str, str, Sequence[tuple[Any, ...]], pl.DataFrame]


def protocol_tables(found: ProtocolComparison) -> Iterator[Row]:
    """Yield the agreement of benchmarks, rank moves, and tasks under both protocols."""
    level = percent(found.level, 0)
    low, high = zip(*found.tau_interval, strict=True)
    rows: list[tuple[Any, ...]] = [
        ("mean pairwise Kendall tau-b of tasks", *found.tau),
        (f"{level} interval from", *low),
        (f"{level} interval to", *high),
        ("the same over all tasks, gaps left out pairwise", *found.tau_all_tasks),
        ("share of the first principal component", found.shares[0, 0], found.shares[1, 0]),
        ("pairs of tasks without a tau", *found.undefined_pairs),
    ]
    agreement = _numbers(rows, ("figure", "direct", "tuned"))
    both = (("direct", "direct", "number"), ("tuned", "after common tuning", "number"))
    yield "agreement", "game", "Do benchmarks agree on the ranking?", (("figure", "figure"), *both), agreement
    columns: Sequence[tuple[Any, ...]] = (
        ("model", "model"),
        ("rank_direct", "rank, direct", "integer"),
        ("rank_tuned", "rank after tuning", "integer"),
        ("move", "places gained", "integer"),
        ("move_low", f"{level} interval from", "digits"),
        ("move_high", "to", "digits"),
    )
    yield "rank-moves", "game", "Ranks before and after common tuning", columns, found.to_frame()
    tasks = _numbers(
        [(task, *found.task_agreement[k], found.same_task[k]) for k, task in enumerate(found.tasks)],
        ("task", "direct", "tuned", "same"),
    )
    columns = (
        ("task", "task"),
        ("direct", "tau-b with the others, direct", "number"),
        ("tuned", "after common tuning", "number"),
        ("same", "its direct with its tuned scores", "number"),
    )
    yield "tasks", "game", "How each task agrees", columns, tasks


def variant_tables(found: VariantReport) -> Iterator[Row]:
    """Yield one row a developer: best, mean, luck, lead and the variants that explain it."""
    columns = (
        ("developer", "developer"),
        ("variants", "submissions", "integer"),
        ("best", "best public", "number"),
        ("mean", "mean of all", "number"),
        ("sigma", "noise of one score", "number"),
        ("lift", "luck of the best", "number"),
        ("lead", "lead over the next", "number"),
        ("explained_by", "variants that explain the lead", "integer"),
    )
    frame = found.to_frame().with_columns(pl.col("lead").fill_nan(None))
    yield "submissions", "game", "Best and mean of each developer's submissions", columns, frame


def _numbers(rows: Sequence[tuple[Any, ...]], names: tuple[str, ...]) -> pl.DataFrame:
    """Return rows whose first cell is text and whose other cells are numbers, null where undefined."""
    schema = {name: pl.String if k == 0 else pl.Float64 for k, name in enumerate(names)}
    frame = pl.DataFrame([(row[0], *map(float, row[1:])) for row in rows], schema=schema, orient="row")
    return frame.with_columns(pl.col(names[1:]).fill_nan(None))
