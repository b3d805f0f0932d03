"""The values that a score table is made of: one per entry and item, collected from a panel's parts.

Text is put together and compared once per part, run, task, metric and filter; rows are handled as numbers, a
million or so at a time, so that ten million of them take seconds and little memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from benchwright._check import FloatArray
from benchwright.errors import DataError, UsageError
from benchwright.panel.derived import is_derived
from benchwright.panel.panel import IDENTITY, Panel, Repeated

Errors = Literal["wrong", "drop", "missing"]
PREFERRED = ("acc", "exact_match", "acc_norm", "resolved", "pass@1", "f1", "score", "mcc")
FAILED = ("error", "refused")
BLOCK_ROWS = 1_000_000  # rows of parts that are collected at once
IntArray = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Values:
    """Values by place of the entry and number of the item; ``items`` are sorted by task and doc_id.

    ``clusters`` numbers the cluster of each item; None where no log names any.
    """

    place: IntArray
    item: IntArray
    value: FloatArray
    items: pl.DataFrame
    clusters: IntArray | None

    @classmethod
    def of(cls, table: pl.DataFrame, named: pl.DataFrame) -> Values:
        """Number the items of a table with place, task, doc_id (both categorical) and value.

        ``named`` has task, doc_id and cluster of the items whose cluster a log names.
        """
        task, doc_id = (pl.col(name).to_physical().cast(pl.UInt64) for name in ("task", "doc_id"))
        keyed = table.select("place", "task", "doc_id", "value", key=task * 2**32 + doc_id)
        items = keyed.select("key", "task", "doc_id").unique("key").cast({"task": pl.String, "doc_id": pl.String})
        items = items.sort("task", "doc_id").with_row_index("item")
        placed = keyed.select("place", "value", "key").join(items.select("key", "item"), on="key")
        place, item, value = (placed[name].to_numpy() for name in ("place", "item", "value"))
        return cls(place, item, value, items.select("task", "doc_id"), cluster_numbers(items, named))

    def matrix(self, places: Sequence[int]) -> tuple[FloatArray, IntArray]:
        """Return items x entries (a value given several times as their mean, NaN where missing) and tasks' codes."""
        width = len(places)
        column = np.full(1 + max(int(self.place.max(initial=0)), *places), -1, dtype=np.int64)
        column[list(places)] = np.arange(width)
        at = column[self.place]
        kept = slice(None) if (at >= 0).all() else at >= 0
        flat = at[kept] * self.items.height + self.item[kept]
        value = self.value[kept]
        matrix = np.full(width * self.items.height, np.nan)
        times = np.bincount(flat, minlength=matrix.size)
        if times.max(initial=0) > 1:
            given = times > 0
            matrix[given] = np.bincount(flat, value, minlength=matrix.size)[given] / times[given]
        else:
            matrix[flat] = value
        codes = self.items["task"].rank("dense").to_numpy().astype(np.int64) - 1
        return matrix.reshape(width, self.items.height).T, codes


def collect_values(
    panel: Panel, metric: str | None, tasks: Sequence[str] | None, errors: Errors, repeated: Repeated
) -> tuple[Values, dict[str, str], pl.DataFrame, list[str]]:
    """Return the values of entries on items, the metric per task, counts per entry, and the entries without values."""
    parts = [panel.derived([metric], repeated=repeated)] if is_derived(metric) else panel.row_parts(repeated=repeated)
    every = _offered(parts)
    offered = every if tasks is None else every.filter(pl.col("task").is_in(list(tasks)))
    if offered.height == 0:
        raise DataError("the panel has no item rows for these tasks", hint="see `benchwright panel describe`")
    chosen = choose_metrics(offered.group_by("task", "measure").agg(entries=pl.col("entry").n_unique()), metric)
    table = pl.DataFrame({"task": list(chosen), "measure": list(chosen.values())}, schema_overrides={"task": pl.String})
    used = offered.join(table, on=["task", "measure"], maintain_order="left")
    counts = used.group_by("entry").agg(pl.col("n_error", "n_unscored").sum()).sort("entry")
    used = used.join(counts.select("entry").with_row_index("place"), on="entry", maintain_order="left")
    heights = dict(every.group_by("number").len().iter_rows())
    blocks = []
    mine: list[pl.LazyFrame] = []
    left = BLOCK_ROWS
    for (number,), group in used.partition_by("number", as_dict=True).items():
        mine.append(_placed(parts[int(number)], group, errors, whole=group.height == heights[number]))
        left -= int(group["n_rows"].sum())
        if left <= 0:
            blocks.append(pl.concat(mine).collect(engine="streaming"))
            mine, left = [], BLOCK_ROWS
    if mine:
        blocks.append(pl.concat(mine).collect(engine="streaming"))
    clustered = used.filter(pl.col("n_clustered") > 0)["number"].unique().sort()
    named = [
        parts[number].select("task", "doc_id", "cluster").filter(pl.col("cluster").is_not_null()).unique()
        for number in clustered
    ]
    known = pl.concat([pl.DataFrame(schema=dict.fromkeys(("task", "doc_id", "cluster"), pl.String)).lazy(), *named])
    lacking = sorted({*offered["entry"]} - {*counts["entry"]})
    return Values.of(pl.concat(blocks), known.collect()), chosen, counts, lacking


def cluster_numbers(items: pl.DataFrame, named: pl.DataFrame) -> IntArray | None:
    """Return the number of each item's cluster, None where no log names any; an item without one is one of its own.

    ``items`` has item (a row index), task and doc_id; ``named`` task, doc_id and cluster.

    Logs that name clusters differently join them: items are together that any chain of clusters ties.
    """
    pairs = items.join(named, on=["task", "doc_id"]).with_columns(
        place=pl.struct("task", "cluster").rank("dense").cast(pl.Int64) - 1 + items.height
    )
    if pairs.height == 0:
        return None
    ends = pairs["item"].to_numpy(), pairs["place"].to_numpy()
    size = int(ends[1].max()) + 1
    _, label = connected_components(coo_array((np.ones(pairs.height), ends), shape=(size, size)), directed=False)
    return np.asarray(label[: items.height], dtype=np.int64)


def _offered(parts: Sequence[pl.LazyFrame]) -> pl.DataFrame:
    """Return one row per part, run, task, metric and filter: its entry and measure, and how many rows it has.

    There are few of them, and all that needs text to be put together is done on these.
    """
    failed = pl.col("status").is_in(FAILED)
    facts = [name for name in IDENTITY if name != "run_name"]
    summaries = [
        part.group_by("part", "run", "task", "metric", "filter")
        .agg(
            pl.col(facts).first(),
            n_rows=pl.len().cast(pl.Int64),
            n_error=failed.sum().cast(pl.Int64),
            n_unscored=(pl.col("status") == "unscored").sum().cast(pl.Int64),
            n_clustered=pl.col("cluster").is_not_null().sum(),
        )
        .with_columns(number=pl.lit(number, dtype=pl.Int64))
        for number, part in enumerate(parts)
    ]
    table = pl.concat(pl.collect_all(summaries)).sort("number", "run", "task", "metric", "filter", "part")
    return table.with_columns(entry=entry_name(), measure=measure_name())


def _placed(part: pl.LazyFrame, used: pl.DataFrame, errors: Errors, *, whole: bool) -> pl.LazyFrame:
    """Return the rows of a part that are used, as place of the entry, task, doc_id and value."""
    if not whole:
        key = ["task", "metric", "filter"]
        part = part.join(used.select(key).unique().lazy(), on=key, how="semi", nulls_equal=True)
    if used["place"].n_unique() == 1:
        part = part.with_columns(place=pl.lit(used["place"][0], dtype=pl.UInt32))
    else:
        part = part.join(used.select("part", "run", "place").unique().lazy(), on=["part", "run"])
    value = pl.col("value")
    if errors == "wrong":
        value = pl.when(pl.col("status").is_in(FAILED)).then(0.0).otherwise(value)
    placed = part.select("place", pl.col("task", "doc_id").cast(pl.Categorical), value=value)
    return placed.filter(pl.col("value").is_not_null())


def entry_name() -> pl.Expr:
    """model@revision, with whatever else tells two entries of one model apart."""
    parts = [
        pl.col("model"),
        pl.when(pl.col("revision").is_not_null()).then("@" + pl.col("revision")).otherwise(pl.lit("")),
    ]
    for name in ("setting", "axis", "dose", "step"):
        text = pl.col(name).cast(pl.String)
        shown = pl.lit(f" [{name} ") + text + pl.lit("]") if name != "setting" else pl.lit(" [") + text + pl.lit("]")
        parts.append(pl.when(pl.col(name).is_not_null()).then(shown).otherwise(pl.lit("")))
    return pl.concat_str(parts)


def measure_name() -> pl.Expr:
    """Return metric[filter], or the metric alone where there is one filter."""
    plain = pl.col("filter").is_null() | (pl.col("filter") == "none")
    return pl.when(plain).then(pl.col("metric")).otherwise(pl.format("{}[{}]", "metric", "filter"))


def choose_metrics(offered: pl.DataFrame, metric: str | None) -> dict[str, str]:
    """Return the measure of each task: the one named, else what most entries have, then the first of a fixed order.

    ``offered`` has task, measure and entries, the number of entries that have it.

    Raises
    ------
    UsageError
        No task has the metric.
    """
    chosen = {}
    for (task,), mine in offered.group_by("task", maintain_order=True):
        entries = dict(mine.select("measure", "entries").iter_rows())
        if metric is not None:
            if metric in entries:
                chosen[str(task)] = metric
            continue
        order = {name: place for place, name in enumerate(PREFERRED)}
        chosen[str(task)] = min(entries, key=lambda name: (-entries[name], order.get(name.split("[")[0], 99), name))
    if not chosen:
        known = ", ".join(sorted(set(offered["measure"])))
        raise UsageError(f"no task has the metric `{metric}`", hint=f"metrics: {known}")
    return dict(sorted(chosen.items()))
