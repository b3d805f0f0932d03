"""Which runs are the same: re-runs, retries, copies, partial runs, and the policy that decides.

A *cell* is one task of one run. Cells of the same model, revision, seed, step, axis, dose, setting, task and
task version answer the same question. Of several,

* those that a table names as different runs are repeats, and all count;
* one with exactly the rows of another is a copy and never counts;
* else the policy decides: ``latest`` keeps the one that finished (before one that did not), then the one made
  later (file name where no time is given), ``all`` keeps every one as a repeat, ``error`` stops.

Samples without their results file go under a stand-in name. Where another run gives the same rows and the same choice
log-likelihoods with its version, they are its copy whatever the name. Two named models with the same log-likelihoods
both count, and a note says so.

Nothing is removed from the parts; the table of cells says what counts and why.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from benchwright.errors import DataError, Fault

Duplicates = Literal["latest", "all", "error"]
SAME = ("model", "revision", "seed", "step", "axis", "dose", "setting", "task", "version")
CELL = ("run", "task", "version")
CELL_SCHEMA: dict[str, Any] = {
    "part": pl.String,
    "run": pl.Int32,
    "kind": pl.String,
    "task": pl.String,
    "version": pl.String,
    "n_rows": pl.Int64,
    "n_items": pl.Int64,
    "n_scored": pl.Int64,
    "n_error": pl.Int64,
    "n_repeated": pl.Int64,
    "digest": pl.UInt64,
    "choices_digest": pl.UInt64,
}
TWIN = ("kind", "task", "digest", "choices_digest", "n_rows")


def row_cells(files: list[Path]) -> pl.DataFrame:
    """Summarise item rows per run and task; ``n_repeated`` counts rows beyond the first of one item and metric.

    Files are read one after the other, and of one kind of hash at a time: memory hardly grows with the log.
    """
    key = ["doc_id", "metric", "filter", "repeat"]
    content = pl.struct(*key, "value", "status").hash(seed=0)
    counted = pl.concat(
        pl.scan_parquet(file, glob=False)
        .group_by(CELL)
        .agg(n_rows=pl.len().cast(pl.Int64), digest=content.sum(), failed=(pl.col("status") == "error").any())
        .collect()
        for file in files
    )
    table = counted.group_by(CELL).agg(pl.col("n_rows", "digest").sum(), pl.col("failed").any())
    item = pl.col("doc_id")
    different = {
        "n_items": (item, None),
        "n_scored": (item, pl.col("status") == "scored"),
        "n_error": (item, pl.col("status") == "error"),
        "n_repeated": (pl.struct(key), None),
    }
    if not table["failed"].any():
        del different["n_error"]
    columns = {name: _distinct(files, table, *what) for name, what in different.items()}
    table = table.with_columns(n_error=pl.lit(0, dtype=pl.Int64)).with_columns(**columns).drop("failed")
    return table.with_columns(n_repeated=pl.col("n_rows") - pl.col("n_repeated"))


def _distinct(files: list[Path], cells: pl.DataFrame, key: pl.Expr, where: pl.Expr | None) -> pl.Series:
    """Count different keys in each cell."""
    hashes: dict[Any, list[NDArray[np.uint64]]] = {cell: [] for cell in cells.select(CELL).iter_rows()}
    for file in files:
        rows = pl.scan_parquet(file, glob=False) if where is None else pl.scan_parquet(file, glob=False).filter(where)
        block = rows.group_by(CELL).agg(key=key.hash(seed=0).unique()).collect()
        for cell, found in zip(block.select(CELL).iter_rows(), block["key"], strict=True):
            hashes[cell].append(found.to_numpy())
    counts = []
    for found in hashes.values():
        together = np.concatenate([np.empty(0, dtype=np.uint64), *found])
        together.sort()
        counts.append(int(together.size > 0) + int(np.count_nonzero(together[1:] != together[:-1])))
        found.clear()
    return pl.Series(counts, dtype=pl.Int64)


def choice_digests(files: list[Path]) -> pl.DataFrame:
    """Return one digest per run and task of the choices' log-likelihoods, whatever their order."""
    content = pl.struct("doc_id", "repeat", "logprob").hash(seed=0)
    return pl.scan_parquet(files, glob=False).group_by("run", "task").agg(choices_digest=content.sum()).collect()


def score_cells(files: list[Path]) -> pl.DataFrame:
    """Summarise stated task scores per run and task."""
    scores = pl.scan_parquet(files, glob=False)
    content = pl.struct("metric", "filter", "value", "stderr").hash(seed=0)
    cells = scores.group_by(CELL).agg(
        n_rows=pl.len().cast(pl.Int64),
        n_items=pl.col("n").max().cast(pl.Int64),
        n_scored=pl.col("n").max().cast(pl.Int64),
        n_error=pl.lit(None, dtype=pl.Int64),
        n_repeated=(pl.len() - pl.struct("metric", "filter").n_unique()).cast(pl.Int64),
        digest=content.sum(),
        choices_digest=pl.lit(None, dtype=pl.UInt64),
    )
    return cells.collect()


def normal_name(name: str) -> str:
    """Return a model's name in one Unicode form, so that two spellings of one name are one model."""
    return unicodedata.normalize("NFC", name)


def name_notes(models: Iterable[str]) -> list[str]:
    """Say which model names are one name in two Unicode forms (merged), and which differ only in case (kept)."""
    spelt: dict[str, set[str]] = {}
    folded: dict[str, set[str]] = {}
    for name in models:
        spelt.setdefault(normal_name(name), set()).add(name)
        folded.setdefault(normal_name(name).casefold(), set()).add(normal_name(name))
    notes = [
        f"{name}: {len(forms)} Unicode forms of one name, taken for one model"
        for name, forms in sorted(spelt.items())
        if len(forms) > 1
    ]
    return notes + [
        f"{', '.join(sorted(names))}: names that differ only in case, kept apart"
        for _, names in sorted(folded.items())
        if len(names) > 1
    ]


def twin_notes(cells: pl.DataFrame) -> list[str]:
    """Say which models that count have the same log-likelihoods, on how many tasks."""
    known = cells.filter("active", pl.col("choices_digest").is_not_null())
    twins = known.group_by(TWIN).agg(pl.col("model").unique().sort()).filter(pl.col("model").list.len() > 1)
    return [
        f"{' and '.join(names)}: the same rows and choice log-likelihoods on {tasks} task{'' if tasks == 1 else 's'}; "
        "two names of one model or a copied log, both count"
        for names, tasks in twins.group_by("model").len().sort("model").iter_rows()
    ]


def resolve(cells: pl.DataFrame, runs: pl.DataFrame, duplicates: Duplicates) -> pl.DataFrame:
    """Mark which cells count: adds the run's facts, ``active`` and ``why``.

    Raises
    ------
    DataError
        The policy is ``error`` and two cells that are no copies answer the same question.
    """
    facts = runs.rename({"run": "run_name", "number": "run"}).with_columns(
        pl.col("model").map_elements(normal_name, return_dtype=pl.String)
    )
    table = cells.join(facts, on=["part", "run"], how="left", maintain_order="left")
    table = table.sort(
        "kind", *SAME, "finished", "created", "n_scored", "file", "part", "run",
        descending=[False] * (1 + len(SAME)) + [True, True, True, True, False, False],
        nulls_last=True,
    )  # fmt: skip
    same = ["kind", *SAME, "apart"]
    table = table.with_columns(apart=pl.when("replicate").then("run_name"))
    stand_in = pl.all_horizontal(pl.col("version", "revision", "setting").is_null())
    unnamed = pl.col("choices_digest").is_not_null() & stand_in & (~stand_in).any().over(TWIN)
    table = table.with_columns(
        copy=unnamed | pl.struct("digest", "n_rows").is_first_distinct().over(same).not_(),
        several=pl.struct("digest", "n_rows").n_unique().over(same) > 1,
    )
    table = table.with_columns(rank=pl.when(~pl.col("copy")).then(1).cum_sum().over(same))
    clash = table.filter(~pl.col("copy") & pl.col("several"))
    if duplicates == "error" and clash.height:
        faults = [
            Fault(row["file"], f"{row['model']}, task {row['task']}: another run answers the same question")
            for row in clash.iter_rows(named=True)
        ]
        raise DataError(
            f"{clash.height} runs of the same model and task differ",
            faults=faults,
            hint="use --duplicates latest, or all to keep them as repeats",
        )
    keeps_all = pl.lit(duplicates == "all")
    active = ~pl.col("copy") & (keeps_all | (pl.col("rank") == 1))
    why = (
        pl.when("copy")
        .then(pl.lit("a copy of another run's rows"))
        .when(active & pl.col("several") & ~keeps_all)
        .then(pl.lit("finished or made last of several"))
        .when(active & pl.col("several"))
        .then(pl.lit("one of several, kept as a repeat"))
        .when(active)
        .then(pl.lit("the only one"))
        .when(~pl.col("finished"))
        .then(pl.lit("did not finish, another did"))
        .otherwise(pl.lit("re-run, a later one counts"))
    )
    return table.with_columns(active=active, why=why).drop("copy", "several", "rank", "apart")
