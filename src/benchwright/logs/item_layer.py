"""The item metadata layer of an earlier report as a source: ``items.parquet``, or the folder that holds it.

The layer keeps what item tables say (welfare sums, anchor and slopes, variance and mean score, ranks with intervals and
their level), so that weights can be found again under other choices without the tables or logs behind it. What it does
not keep (a judge's loadings, seeds, runs) cannot be drawn again from it.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Sequence
from pathlib import Path

import polars as pl
from polars.exceptions import ComputeError

from benchwright.errors import DataError, Fault
from benchwright.logs.item_tables import ITEM, PUBLISHED_LEVEL, ItemTables
from benchwright.logs.source_file import SourceFile, read_source, utf8

METADATA_KEY, LEVEL_KEY = "benchwright.columns", "benchwright.rank_level"
LAYER, MARKER = "items.parquet", "summary.json"


def layer_path(source: str | Path) -> Path | None:
    """Return the file of an item layer that a source names: itself, or the one in its folder; else None."""
    path = Path(source)
    if path.is_dir() and (path / MARKER).is_file():
        path = path / LAYER
    if path.suffix != ".parquet" or not path.is_file():
        return None
    try:
        return path if METADATA_KEY in pl.read_parquet_metadata(path) else None
    except (OSError, ComputeError):
        return None


def read_item_layer(path: Path, *, axes: Sequence[str], without: Sequence[str] = ()) -> ItemTables:
    """Return a layer as the item tables that an audit of it starts from.

    Parameters
    ----------
    path
        What :func:`layer_path` returned.
    axes
        Effort axes to look for: column ``slope_<axis>``, lower case.
    without
        Sections to leave out, of "welfare", "improvability", "noise".

    Raises
    ------
    DataError
        The file cannot be read, names an item twice, has none of the three sections, or a level that is none.
    """
    faults: list[Fault] = []
    source = read_source(path, faults)
    if source is None:
        raise DataError(f"{path}: the item layer cannot be read", faults=faults)
    layer = pl.read_parquet(io.BytesIO(source[0]))
    doubled = layer.filter(layer.select(*ITEM).is_duplicated()) if set(ITEM) <= set(layer.columns) else layer.head(0)
    if doubled.height or not set(ITEM) <= set(layer.columns):
        why = f"({', '.join(map(str, doubled.select(*ITEM).row(0)))}) stands twice" if doubled.height else "no item key"
        raise DataError(f"{path}: {why}", hint="make the report again: benchwright audit SOURCE -o OUT")
    found = tuple(axis for axis in axes if f"slope_{axis.lower()}" in layer.columns)
    betas = {f"slope_{axis.lower()}": f"beta_{axis.lower()}" for axis in found}
    cost = _section(layer, {"anchor": "anchor_phat", **betas}, "cost") if found else None
    if cost is not None:
        cost = cost.with_columns(bounded=pl.col("anchor_phat").is_between(0, 1).fill_null(True).all().over("task"))
    welfare = _section(layer, {"w_auto_raw": "w_auto", "w_aug_raw": "w_aug"})
    noise = _section(layer, {"sigma2": "noise_sigma2", "mean_score": "noise_mean_phat"}, "noise")
    tables = ItemTables(
        name=utf8(path.parent.resolve().name if path.name == LAYER else path.name),
        welfare=None if "welfare" in without else welfare,
        cost=None if "improvability" in without else cost,
        noise=None if "noise" in without else noise,
        topics=layer.select(*ITEM, "topic").drop_nulls() if "topic" in layer.columns else None,
        families=_families(layer),
        axes=() if "improvability" in without else found,
        rank_level=_rank_level(path, source[0]),
        files=(SourceFile(path.name, len(source[0]), hashlib.sha256(source[0]).hexdigest()),),
        notes=("The source is the item layer of an earlier report: loadings, seeds and runs are not in it.",),
    )
    if tables.welfare is None and tables.cost is None and tables.noise is None:
        raise DataError(
            f"{path}: none of welfare, slopes on a priced axis and noise is in it",
            hint=f"prices are known of {', '.join(axes)}; add others to [prices] in benchwright.toml",
        )
    return tables


def _section(layer: pl.DataFrame, names: dict[str, str], ranked: str | None = None) -> pl.DataFrame | None:
    """Return the items that have a value in one of the columns ``names``, renamed, with ranks; None without them."""
    if not set(names) <= set(layer.columns):
        return None
    ranks = {} if ranked is None else {f"{ranked}_rank": "rank_headline"}
    ranks |= {} if ranked is None else {f"{ranked}_rank_{end}": f"rank_{end}" for end in ("lo", "hi")}
    names = names | {name: new for name, new in ranks.items() if name in layer.columns}
    frame = layer.select(*ITEM, *names).rename(names)
    known = pl.any_horizontal(pl.col(name).is_not_null() for name in names.values())
    return frame.filter(known)


def _rank_level(path: Path, content: bytes) -> float:
    """Return the level of the intervals of ranks; layers that say none are read as published tables are."""
    stated = pl.read_parquet_metadata(io.BytesIO(content)).get(LEVEL_KEY, repr(PUBLISHED_LEVEL))
    try:
        level = float(stated)
    except ValueError:
        level = 0.0
    if not 0 < level < 1:
        raise DataError(f"{path}: {LEVEL_KEY} = {stated!r} is no level", hint="make the report again")
    return level


def _families(layer: pl.DataFrame) -> pl.DataFrame | None:
    if "family" not in layer.columns:
        return None
    families = layer.select("task", "family").drop_nulls().unique(maintain_order=True)
    return families if families.height and families["task"].is_unique().all() else None
