"""How much activity values, and the welfare of items, hang on each choice behind them.

Each row changes one choice of the rule in force and compares the values with those of the rule: of the activities that
both keep, or at a finer level of every finer activity with the generalized one that holds it. Given a judge's loadings,
the welfare of items is compared too; not at a finer level, where a judge would have to rank the finer activities.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from scipy import stats

from benchwright._check import FloatArray
from benchwright.auditing.welfare import item_welfare
from benchwright.errors import DataError
from benchwright.judge.activity_scores import ActivityRule, ActivityScores, activity_scores
from benchwright.judge.workbank import FRAMINGS, LEVELS, read_workbank
from benchwright.logs.item_tables import ITEM

CHOICES: Mapping[str, dict[str, Any]] = {
    "every listed activity": {"count": "all"},
    "first listed activity": {"count": "first"},
    "experts only": {"workers": {"Expert": 1, "Average": 0, "Novice": 0}},
    "experts 3, average 2, novices 1": {"workers": {"Expert": 3, "Average": 2, "Novice": 1}},
    "threshold 3": {"threshold": 3.0},
    "threshold 4": {"threshold": 4.0},
    "mean rating": {"value": "mean"},
    "share of tasks": {"value": "share"},
    "at least 10 tasks": {"least_tasks": 10},
    "level iwa": {"level": "iwa"},
    "level dwa": {"level": "dwa"},
}
SCHEMA = {
    "alternative": pl.String(),
    "framing": pl.String(),
    "n_kept": pl.Int64(),
    "n_compared": pl.Int64(),
    "spearman": pl.Float64(),
    "kendall": pl.Float64(),
    "largest_change": pl.Float64(),
    "changed_most": pl.String(),
    "n_items": pl.Int64(),
    "item_spearman": pl.Float64(),
    "item_largest_change": pl.Float64(),
    "why": pl.String(),
}


def activity_alternatives(
    folder: str | Path, rule: ActivityRule | None = None, *, loadings: pl.DataFrame | None = None
) -> pl.DataFrame:
    """Return what each alternative choice changes.

    Parameters
    ----------
    folder
        Folder with the raw ratings.
    rule
        The choices in force; the paper's where None.
    loadings
        task, doc_id, perspective, activities (ranked ids of generalized activities): a judge's, to follow the change
        into items.

    Returns
    -------
    pl.DataFrame
        alternative, framing, n_kept (activities), n_compared, spearman, kendall (null below two, or where all values
        are the same), largest_change (on [1, 5], with its sign), changed_most (activity), n_items, item_spearman,
        item_largest_change (without sign). An alternative that the data do not allow has a row with ``why`` alone.

    Raises
    ------
    UsageError, DataError
        As ``activity_scores`` for the rule in force.
    """
    rule = ActivityRule() if rule is None else rule
    banks = {rule.level: read_workbank(folder, level=rule.level)}
    base = activity_scores(banks[rule.level], **asdict(rule))
    finer = LEVELS[LEVELS.index(rule.level) + 1 :]
    rows = []
    for name, change in CHOICES.items():
        chosen = asdict(rule) | change
        if chosen == asdict(rule) or chosen["level"] not in (rule.level, *finer):
            continue
        try:
            level = chosen["level"]
            if level not in banks:
                banks[level] = read_workbank(folder, level=level)
            other = activity_scores(banks[level], **chosen)
        except (DataError, ValueError) as error:
            rows.append({"alternative": name, "why": str(error).splitlines()[0]})
            continue
        rows += [{"alternative": name, **row} for row in _compared(base, other, loadings)]
    return pl.DataFrame(rows, schema=SCHEMA)


def _compared(base: ActivityScores, other: ActivityScores, loadings: pl.DataFrame | None) -> list[dict[str, Any]]:
    """Return a row for each framing."""
    mine = base.table.filter(~pl.col("dropped")).select("element", *FRAMINGS)
    theirs = other.table.filter(~pl.col("dropped")).select("activity", "element", *FRAMINGS)
    same_level = base.rule.level == other.rule.level
    if not same_level:
        parent = {"gwa": r"\.I\d+(\.D\d+)?$", "iwa": r"\.D\d+$"}[base.rule.level]
        theirs = theirs.with_columns(pl.col("element").str.replace(parent, ""))
    both = theirs.join(mine, on="element", suffix="_base", maintain_order="left")
    welfare = None
    if loadings is not None and same_level:
        scored = [item_welfare(loadings, one.table.select("activity", "dropped", *FRAMINGS)) for one in (base, other)]
        welfare = scored[0].join(scored[1], on=ITEM, suffix="_other")
    rows = []
    for name in FRAMINGS:
        pair = both.drop_nulls([name, f"{name}_base"])
        change = (pair[name] - pair[f"{name}_base"]).to_numpy()
        most = int(np.abs(change).argmax()) if change.size else None
        row: dict[str, Any] = {"framing": name, "n_kept": theirs.height, "n_compared": pair.height}
        row |= _ranked(pair[name].to_numpy(), pair[f"{name}_base"].to_numpy())
        if most is not None:
            row |= {"largest_change": float(change[most]), "changed_most": pair["activity"][most]}
        if welfare is not None:
            items = welfare.drop_nulls([f"w_{name}", f"w_{name}_other"])
            x, y = items[f"w_{name}"].to_numpy(), items[f"w_{name}_other"].to_numpy()
            row |= {"n_items": items.height, "item_spearman": _ranked(x, y).get("spearman")}
            row["item_largest_change"] = float(np.abs(y - x).max()) if x.size else None
        rows.append(row)
    return rows


def _ranked(x: FloatArray, y: FloatArray) -> dict[str, float]:
    """Return Spearman's and Kendall's correlation, nothing where one is not defined."""
    if x.size < 2 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return {}
    return {"spearman": float(stats.spearmanr(x, y).statistic), "kendall": float(stats.kendalltau(x, y).statistic)}
