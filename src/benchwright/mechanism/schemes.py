"""Schemes to judge on audited items: the plain average, task means, task means by size, the user's own."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl

from benchwright._check import FloatArray
from benchwright.auditing.results import ItemAudit
from benchwright.errors import DataError, Fault
from benchwright.logs.item_tables import ITEM
from benchwright.mechanism.aggregation import ItemAggregation
from benchwright.mechanism.results import OptimalWeights, SchemeResult


def schemes_of(
    items: pl.DataFrame, audit: ItemAudit, user_weights: pl.DataFrame | None, notes: list[str]
) -> dict[str, FloatArray]:
    """Return the directions to judge; each sums to 1 except the user's, which stay as given."""
    tasks = items.select("task").with_columns(n=pl.len().over("task"))
    n_here = tasks["n"].to_numpy().astype(float)
    everywhere = pl.concat([section.items.select(*ITEM) for section in audit.sections.values()]).unique()
    sizes = everywhere.group_by("task").agg(size=pl.len())
    size = tasks.join(sizes, on="task", how="left", maintain_order="left")["size"].to_numpy().astype(float)
    by_size = size / n_here
    schemes = {
        "uniform": np.full(items.height, 1.0 / items.height),
        "task_means": 1.0 / (n_here * items["task"].n_unique()),
        "size_weighted": by_size / by_size.sum(),
    }
    if user_weights is not None:
        schemes["user"] = _user_scheme(items, user_weights, notes)
    return schemes


def _user_scheme(items: pl.DataFrame, user_weights: pl.DataFrame, notes: list[str]) -> FloatArray:
    if user_weights["doc_id"].dtype != items["doc_id"].dtype:
        raise DataError("the user's weights and the source do not share item ids: one has text, one integers")
    joined = items.select(*ITEM).join(user_weights, on=ITEM, how="left", maintain_order="left")
    missing = joined.filter(pl.col("weight").is_null())
    if missing.height:
        raise DataError(
            f"the user's weights lack {missing.height} of the {items.height} items with all three statistics",
            faults=[
                Fault("weights", f"no weight for ({task}, {doc_id})")
                for task, doc_id in missing.select(*ITEM).iter_rows()
            ],
            hint="write 0 for an item that the score leaves out",
        )
    if user_weights.height > items.height:
        notes.append(f"The user's weights name {user_weights.height - items.height} items beyond those judged here.")
    return joined["weight"].to_numpy()


def effort_of(
    model: ItemAggregation,
    optimum: OptimalWeights,
    schemes: Mapping[str, SchemeResult],
    directions: Mapping[str, FloatArray],
    axes: tuple[str, ...],
) -> pl.DataFrame:
    """Return what each scheme at its best scale makes the developer spend, in dollars per axis."""
    c0 = float(model.curvature)
    spent = {"optimum": optimum.effort}
    for name, direction in directions.items():
        spent[name] = schemes[name].best_scale * (model.technology.T @ direction) / c0
    rows = [(name, axis, float(usd)) for name, effort in spent.items() for axis, usd in zip(axes, effort, strict=True)]
    return pl.DataFrame(rows, schema=["scheme", "axis", "usd"], orient="row")
