"""Weights as files: the table of all items, and the scheme that a board scores by."""

from __future__ import annotations

from typing import Any

import polars as pl

from benchwright.board.scheme import WeightScheme
from benchwright.config import Config
from benchwright.logs.item_tables import ITEM
from benchwright.mechanism.point_weights import PointWeights
from benchwright.mechanism.sensitivity import weight_sensitivity
from benchwright.report.contents import OF_WEIGHTS


def weight_table(weights: PointWeights) -> pl.DataFrame:
    """Return one row an item: its weights, shares and their intervals, beside uniform."""
    names = [name for name in weights.items.columns if name.startswith(OF_WEIGHTS)]
    first = ["weight", "weight_share", "uniform_share", "weight_undetermined"]
    return weights.items.select(*ITEM, *first, *(name for name in names if name not in first))


def published_scheme(weights: PointWeights, config: Config) -> WeightScheme | None:
    """Return the published weights with all choices behind them; None where all are 0."""
    if not weights.published.weights.any():
        return None
    asked = [name for name in weights.prices if name != "non_negative"]
    conditions = (["non-negative"] if config.published.non_negative else []) + asked
    rule = f"greatest surplus under {', '.join(conditions)}" if conditions else "greatest surplus"
    return WeightScheme(weights.items.select(*ITEM, weight="published_share"), "item", rule, _choices(config))


def averaged_scheme(weights: PointWeights, config: Config) -> WeightScheme | None:
    """Return the weights that are best on average over draws; None where there are none."""
    if "averaged_share" not in weights.items.columns:
        return None
    table = weights.items.select(*ITEM, weight="averaged_share")
    return WeightScheme(table, "item", "greatest mean surplus over draws, same constraints", _choices(config))


def task_scheme(weights: PointWeights, config: Config) -> WeightScheme | None:
    """Return one weight a task, for a board that has only task means; None where all are 0."""
    table = weights.by_task.select(task="name", weight="share").drop_nulls()
    if not (table["weight"] != 0).any():
        return None
    return WeightScheme(table, "task", "greatest surplus with one weight a task", _choices(config))


def _choices(config: Config) -> dict[str, Any]:
    """Return the choices behind weights: all but those of the ranking game."""
    return {row.key: row.value for row in config.assumptions() if not row.key.startswith("game.")}


def sensitivity_table(weights: PointWeights) -> pl.DataFrame:
    """Return one row an item: what its weight without constraints, and its share, answer to (derivatives)."""
    found = weight_sensitivity(weights.model, optimum=weights.optimum).to_frame()
    return pl.concat([weights.items.select(*ITEM), found.drop("item")], how="horizontal")
