"""Item scores that follow from a panel's choice log-likelihoods, as rows like those of the logs.

They are named ``choice:acc``, ``choice:p_gold_char`` and so on, the names of :mod:`benchwright.logs.derive` behind
a prefix, so that they are never taken for what a harness logged. They are computed when they are read, one block
of one part at a time: memory does not grow with the panel. A score that is undefined is a row without a value,
status ``unscored``. An item without choices, say a failed sample, has no such row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np
import polars as pl
from polars.io.plugins import register_io_source

from benchwright.errors import UsageError
from benchwright.logs.derive import FloatArray, choice_scores
from benchwright.logs.record import ROW_SCHEMA

PREFIX = "choice:"
# Which lengths of the choices a score needs; None: none.
LENGTH_OF: dict[str, str | None] = {
    "acc": None,
    "acc_norm": "chars",
    "acc_bytes": "bytes",
    "acc_tokens": "tokens",
    "acc_chance": None,
    "p_gold": None,
    "p_gold_char": "chars",
    "p_gold_byte": "bytes",
    "p_gold_token": "tokens",
    "margin": None,
    "margin_char": "chars",
    "ratio_char": "chars",
}
METRICS = tuple(PREFIX + name for name in LENGTH_OF)
LOWER_IS_BETTER = frozenset({"choice:ratio_char"})  # below 1 gold wins
LENGTHS = ("chars", "bytes", "tokens")
BLOCK_ITEMS = 50_000


def is_derived(metric: str | None) -> TypeGuard[str]:
    """Return whether a metric is one of the panel's own and not one that a log names.

    >>> is_derived("choice:acc"), is_derived("acc")
    (True, False)
    """
    return metric is not None and metric.startswith(PREFIX)


def checked(names: Sequence[str] | None) -> tuple[str, ...]:
    """Return metric names with their prefix, all for None.

    Raises
    ------
    UsageError
        There is no such derived metric.
    """
    if names is None:
        return METRICS
    given = [names] if isinstance(names, str) else names
    full = tuple(dict.fromkeys(name if is_derived(name) else PREFIX + name for name in given))
    for name in full:
        if name not in METRICS:
            raise UsageError(f"no derived metric `{name}`", hint=f"derived metrics: {', '.join(METRICS)}")
    return full


def row_schema(keep: pl.DataFrame) -> dict[str, Any]:
    """Return the columns of a panel's rows, given the table of its cells that count."""
    kinds = ROW_SCHEMA | {"run": pl.Int32, "part": pl.String}
    return kinds | {name: kind for name, kind in keep.schema.items() if name not in kinds}


def derived_rows(files: Sequence[tuple[str, Path]], keep: pl.DataFrame, names: Sequence[str]) -> pl.LazyFrame:
    """Return one row per item with choices and metric.

    Parameters
    ----------
    files
        Part and Parquet file of choices.
    keep
        The cells that count, with the run's identity: part, run, task and more.
    names
        Metrics as :func:`checked` returns them.
    """
    schema = row_schema(keep)

    def read(
        columns: list[str] | None, predicate: pl.Expr | None, n_rows: int | None, _: int | None
    ) -> Iterator[pl.DataFrame]:
        asked = set(schema if columns is None else columns)
        asked |= set(() if predicate is None else predicate.meta.root_names())
        left = n_rows
        for part, path in files:
            for block in _item_blocks(part, path, keep, names, valued=not asked.isdisjoint({"value", "status"})):
                rows = score_block(block, names, schema)
                if left is not None:
                    rows = rows.head(left)
                    left -= rows.height
                rows = rows if predicate is None else rows.filter(predicate)
                yield rows if columns is None else rows.select(columns)
                if left == 0:
                    return

    return register_io_source(read, schema=schema)


def score_block(block: pl.DataFrame, names: Sequence[str], schema: dict[str, Any]) -> pl.DataFrame:
    """Return the rows of some items with their choices; without the column ``logprob`` they have no values."""
    values = _scores(block, names) if "logprob" in block.columns else {}
    plain = block.select(name for name in block.columns if name in schema)
    frames = []
    for name in names:
        value = pl.Series("value", values.get(name, np.full(block.height, np.nan)), dtype=pl.Float64).fill_nan(None)
        frames.append(
            plain.with_columns(
                value,
                metric=pl.lit(name),
                status=pl.when(value.is_null()).then(pl.lit("unscored")).otherwise(pl.lit("scored")),
                higher_is_better=pl.lit(name not in LOWER_IS_BETTER),
                trials=pl.lit(1),
            )
        )
    rows = pl.concat(frames)
    missing = [pl.lit(None, dtype=kind).alias(name) for name, kind in schema.items() if name not in rows.columns]
    return rows.with_columns(missing).select(pl.col(name).cast(kind) for name, kind in schema.items())


def possible(files: Sequence[tuple[str, Path]]) -> tuple[str, ...]:
    """Return the derived metrics for which some item has what they need."""
    if not files:
        return ()
    counts = (
        pl.concat([pl.scan_parquet(path, glob=False).select(pl.col(LENGTHS).count()) for _, path in files])
        .sum()
        .collect()
    )
    return tuple(PREFIX + name for name, length in LENGTH_OF.items() if length is None or counts[length].item())


def _item_blocks(
    part: str, path: Path, keep: pl.DataFrame, names: Sequence[str], *, valued: bool
) -> Iterator[pl.DataFrame]:
    """Yield the items of one file that count, with no more of their choices than the metrics need."""
    needed = {LENGTH_OF[name.removeprefix(PREFIX)] for name in names}
    columns = ["run", "task", "doc_id", "repeat"]
    if valued:
        columns += ["gold", "logprob", *(length for length in LENGTHS if length in needed)]
    table = pl.scan_parquet(path, glob=False).select(columns).with_columns(part=pl.lit(part))
    kept = table.join(
        keep.lazy(), on=["part", "run", "task"], how="inner", nulls_equal=True, maintain_order="left"
    ).collect()
    for start in range(0, kept.height, BLOCK_ITEMS):
        yield kept.slice(start, BLOCK_ITEMS)


def _scores(block: pl.DataFrame, names: Sequence[str]) -> dict[str, FloatArray]:
    count = block["logprob"].list.len().fill_null(0).to_numpy().astype(np.int64)
    lengths = {name: _flat(block[name], count) for name in LENGTHS if name in block.columns}
    scores = choice_scores(
        _flat(block["logprob"], count),
        count,
        block["gold"].cast(pl.Float64).fill_null(float("nan")).to_numpy(),
        chars=lengths.get("chars"),
        bytes_=lengths.get("bytes"),
        tokens=lengths.get("tokens"),
    )
    return {name: scores[name.removeprefix(PREFIX)] for name in names}


def _flat(lists: pl.Series, count: np.ndarray[Any, np.dtype[np.int64]]) -> FloatArray:
    """Return lists one after the other, NaN where there is none or one of another length than ``count``."""
    fits = (lists.list.len().fill_null(0).to_numpy() == count) & (count > 0)
    flat = np.full(int(count.sum()), np.nan)
    if fits.any():
        values = lists.filter(pl.Series(fits)).explode().cast(pl.Float64).fill_null(float("nan"))
        flat[np.repeat(fits, count)] = values.to_numpy()
    return flat
