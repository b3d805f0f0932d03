"""The board of a panel that has been audited: each model's last runs on the items that were measured."""

from __future__ import annotations

import numpy as np
import polars as pl

from benchwright._words import count
from benchwright.board.values import BoardValues
from benchwright.estimating.measure import Measurements
from benchwright.estimating.ranking import last_runs


def measured_board(measured: Measurements) -> BoardValues:
    """Return the values of an audited panel's models, several seeds of one as their mean over those that have an item.

    Models are named, and larger is better, as in the panel's ranking (:func:`estimating.ranking.rank_models`).
    """
    columns = last_runs(measured)
    values = np.full((measured.items.height, len(columns)), np.nan)
    for place, at in enumerate(columns.values()):
        known = ~np.isnan(measured.value[:, at])
        runs = known.sum(axis=1)
        np.divide(
            measured.value[:, at].sum(axis=1, where=known), runs, out=values[:, place], where=runs > 0
        )  # an item that no run of a model has stays NaN
    several = sum(len(at) > 1 for at in columns.values())
    task_level = measured.level == "task"
    doc_id = pl.lit(None, dtype=pl.String) if task_level else pl.col("doc_id").cast(pl.String)
    return BoardValues(
        tuple(columns),
        measured.items.select("task", doc_id=doc_id),
        values,
        level="task" if task_level else "item",
        clusters=measured.clusters,
        metrics=dict(measured.metrics),
        higher=dict.fromkeys(measured.items["task"].unique(), True),
        notes=(f"{count(several, 'model')} with several runs: the mean of their last ones",) if several else (),
    )
