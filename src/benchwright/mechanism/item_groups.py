"""What constraints on published weights refer to: groups of items that carry one weight, shares that are fixed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import polars as pl

from benchwright.auditing.results import ItemAudit
from benchwright.errors import DataError, Fault, UsageError
from benchwright.logs.item_tables import ITEM, ItemTables
from benchwright.logs.tabular import Column
from benchwright.logs.user_weights import read_side_table

FILES = (".csv", ".parquet")


def item_groups(items: pl.DataFrame, audit: ItemAudit, tables: ItemTables | None, name: str) -> pl.Series:
    """Return the group of each item, as text; an item without one is a group of its own.

    Parameters
    ----------
    items
        task, doc_id of the m items that carry a weight.
    name
        ``task``, ``family`` (of the welfare contrast), another column of the item layer, or a file of task, doc_id,
        group.

    Raises
    ------
    UsageError
        There is no such column or file.
    DataError
        The file names an item twice, that is, in two groups, or none of the items.
    """
    key = items.select(*ITEM)
    if name == "task":
        return items["task"]
    if Path(name).suffix.lower() in FILES:
        table = read_side_table(name, "groups", (*_key(items), Column("group", "text")))
        found = _matched(key, table, "group", name, "groups")
    else:
        columns = _columns(audit, tables)
        if name not in columns:
            raise UsageError(
                f"published.equal_within = {name}: the items have no such column",
                hint=f"there are {', '.join(['none', 'task', *columns])}; or name a CSV file of task,doc_id,group",
            )
        found = key.join(columns[name], on=ITEM, how="left", maintain_order="left")[name].cast(pl.String)
    alone = pl.format("{} {}", "task", "doc_id")
    return key.with_columns(group=found).select(pl.coalesce("group", alone)).to_series()


def fixed_shares(items: pl.DataFrame, path: str) -> dict[int, float]:
    """Return the shares that a file of task, doc_id, share fixes, by place of the item.

    Raises
    ------
    UsageError
        There is no such file.
    DataError
        It names an item twice, or one that carries no weight here.
    """
    table = read_side_table(path, "shares", (*_key(items), Column("share", "number")))
    shares = _matched(items.select(*ITEM), table, "share", path, "shares", every=True)
    return {place: share for place, share in enumerate(shares) if share is not None}


def _key(items: pl.DataFrame) -> tuple[Column, Column]:
    return Column("task", "text"), Column("doc_id", "text" if items["doc_id"].dtype == pl.String else "integer")


def _columns(audit: ItemAudit, tables: ItemTables | None) -> Mapping[str, pl.DataFrame]:
    """Return the columns of the layer that hold text or marks, by name."""
    frames = [section.items for section in audit.sections.values()]
    frames += [] if tables is None or tables.topics is None else [tables.topics]
    return {
        name: frame.select(*ITEM, name)
        for frame in frames
        for name, kind in frame.schema.items()
        if kind in (pl.String, pl.Boolean) and name not in ITEM
    }


def _matched(
    key: pl.DataFrame, table: pl.DataFrame, column: str, path: str, what: str, *, every: bool = False
) -> pl.Series:
    """Return a column of a file in the order of the items; null where the file does not name one."""
    twice = table.filter(table.select(*ITEM).is_duplicated()).unique(ITEM, maintain_order=True)
    faults = [Fault(Path(path).name, f"({task}, {doc_id}) stands twice") for task, doc_id, *_ in twice.iter_rows()]
    lost = table.join(key, on=ITEM, how="anti")
    if every:
        faults += [Fault(Path(path).name, f"({task}, {doc_id}) carries no weight here") for task, doc_id, *_ in
                   lost.iter_rows()]  # fmt: skip
    elif lost.height == table.height:
        faults.append(Fault(Path(path).name, f"none of its {table.height} items carries a weight here"))
    if faults:
        raise DataError(f"{path}: the {what} cannot be used", faults=faults)
    return key.join(table, on=ITEM, how="left", maintain_order="left")[column]
