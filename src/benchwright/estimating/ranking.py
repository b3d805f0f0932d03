"""Models and tasks ranked by mean score, with confidence sets that hold for the whole ranking at once.

A model is a lineage at its last checkpoint. Where every model was trained with two seeds or more, the uncertainty is
that of training again on these items: t intervals over seeds, models independent. Else, where items are many, it is
that of drawing other items: differences between models are paired, items the units. Else it is the standard errors
that the logs state. The result says which. Rank sets follow Mogstad, Romano, Shaikh and Wilhelm (2024),
:mod:`benchwright.estimating.rank_sets`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from benchwright._check import FloatArray
from benchwright._shown import ROWS, Shown, ShownPart, frame_table
from benchwright._words import count
from benchwright.estimating._noise import t_ends
from benchwright.estimating.measure import Measurements
from benchwright.estimating.rank_sets import RankSets, from_replicates, from_standard_errors
from benchwright.panel.scores import FEW_CLUSTERS

MAX_RANKED = 1000
ROUNDING = 1e-12  # of the largest score: an error up to it is rounding
DRAWS = 2000
TABLE = {
    "name": pl.String,
    "n_items": pl.Int64,
    "n_seeds": pl.Int64,
    "score": pl.Float64,
    "standard_error": pl.Float64,
    "score_lo": pl.Float64,
    "score_hi": pl.Float64,
    "rank": pl.Int64,
    "rank_lo": pl.Int64,
    "rank_hi": pl.Int64,
}


@dataclass(frozen=True, slots=True, eq=False)
class Ranking(Shown):
    """Models, or tasks, by mean score.

    ``frame``: name, n_items, n_seeds, score, standard_error, score_lo, score_hi, rank, rank_lo, rank_hi, best first;
    intervals of scores hold one by one, rank sets all at once. ``uncertainty`` says in words of what: training again,
    drawing other items, or the errors that logs state.
    """

    frame: pl.DataFrame
    uncertainty: str
    method: str
    notes: tuple[str, ...] = ()

    def _told(self) -> Iterable[ShownPart]:
        yield frame_table(self.frame, rows=ROWS)
        yield f"uncertainty: {self.uncertainty}"
        yield from self.notes


def rank_models(measured: Measurements, *, level: float, rng: np.random.Generator) -> Ranking | str:
    """Rank the models on the items that all of them have, or say why they cannot be."""
    columns = last_runs(measured)
    if len(columns) > MAX_RANKED:
        return f"there are {len(columns):,} models, more than {MAX_RANKED:,}; estimates.models names those to rank"
    notes: list[str] = []
    names = list(columns)
    every = np.concatenate(list(columns.values()))
    common = ~np.isnan(measured.value[:, every]).any(axis=1)
    if not common.any():
        return "no item has a value for every model; estimates.models names those to rank"
    left = int((~common).sum())
    if left:
        notes.append(f"Models are ranked without {count(left, 'item')} that some run of theirs lacks.")
    per_model = [measured.value[np.ix_(common, at)] for at in columns.values()]
    n_seeds = [block.shape[1] for block in per_model]
    n_items = int(common.sum())
    score = np.array([block.mean() for block in per_model])
    alike = [name for name, block in zip(names, per_model, strict=True) if identical(block)]
    if alike:
        notes.append(
            f"Repeated runs of {count(len(alike), 'model')} are identical, which says nothing of training again."
        )
    elif min(n_seeds) > 1:
        of_seeds = [block.mean(axis=0) for block in per_model]
        error = np.array([float(one.std(ddof=1)) / np.sqrt(len(one)) for one in of_seeds])
        df = np.array(n_seeds, dtype=float) - 1
        sets = from_standard_errors(score, error, df=df, level=level, replicates=DRAWS, rng=rng)
        what = f"training again with other seeds, on these {measured.level}s"
        return _ranking(names, n_items, n_seeds, score, error, df, sets, what, level, notes)
    several = len(names) > 1
    paired = "; differences are paired" if several else ""
    matrix = np.stack([block.mean(axis=1) for block in per_model], axis=1)
    stated = measured.stderr[np.ix_(common, every)]
    if measured.level == "task" and not np.isnan(stated).any():
        error = np.array([float(np.sqrt(np.square(measured.stderr[np.ix_(common, at)]).mean(axis=1).sum())) / n_items
                          for at in columns.values()])  # fmt: skip
        df = np.full(len(names), np.inf)
        sets = from_standard_errors(score, error, level=level, replicates=DRAWS, rng=rng)
        what = "the standard errors that the logs state" + (", as if models were independent" if several else "")
    elif n_items > 1:
        clusters = None if measured.clusters is None else measured.clusters[common]
        units = n_items if clusters is None else len(np.unique(clusters))
        if units < 2:
            return f"all {n_items} items share one cluster, which leaves no standard error"
        error, df = item_errors(matrix, clusters), np.full(len(names), units - 1.0)
        sets = from_replicates(matrix, level=level, replicates=DRAWS, rng=rng, cluster=clusters)
        what = f"drawing other {measured.level}s like these{paired}"
        if units < n_items:
            what = f"drawing other clusters of items like these{paired}"
            few = "; few, which the t intervals allow for" if units < FEW_CLUSTERS else ""
            notes.append(f"{n_items:,} items are in {units:,} clusters{few}.")
    else:
        return "one item, one seed and no stated error leave nothing that tells how sure a score is"
    return _ranking(names, n_items, n_seeds, score, error, df, sets, what, level, notes)


def identical(block: FloatArray) -> bool:
    """Return whether a model has several runs and all give every item the same score."""
    return block.shape[1] > 1 and bool((block == block[:, :1]).all())


def item_errors(matrix: FloatArray, clusters: NDArray[np.int64] | None) -> FloatArray:
    """Return the standard error of each column's mean; clusters are summed, with G / (G - 1)."""
    n = len(matrix)
    centred = matrix - matrix.mean(axis=0)
    if clusters is not None:
        _, at = np.unique(clusters, return_inverse=True)
        sums = np.zeros((int(at.max()) + 1, matrix.shape[1]))
        np.add.at(sums, at, centred)
        centred = sums
    units = len(centred)
    error: FloatArray = np.sqrt(np.square(centred).sum(axis=0) * units / (units - 1)) / n
    return error


def rank_tasks(measured: Measurements, *, level: float, rng: np.random.Generator) -> Ranking | str:
    """Rank the tasks by their mean over the runs that have them all, easiest first, or say why they cannot be.

    Tasks of items: items are the units, or the clusters that logs name. Stated task scores: models are the units, each
    the mean over its runs, or of one model the seeds of its last checkpoint, and differences are paired.
    """
    tasks = measured.items["task"]
    names = tasks.unique(maintain_order=True).to_list()
    if not 2 <= len(names) <= MAX_RANKED:
        return f"there {'is one task' if len(names) == 1 else f'are {len(names):,} tasks'}"
    runs = ~np.isnan(measured.value).any(axis=0)
    if not runs.any():
        return "no run has every item of every task"
    notes = [] if runs.all() else [f"Tasks are ranked by the {count(int(runs.sum()), 'run')} that have all of them."]
    values = measured.value[:, runs]
    if measured.level == "task":
        lineage = measured.runs.frame["lineage"].to_numpy()[runs]
        units, what = np.stack([values[:, lineage == one].mean(axis=1) for one in np.unique(lineage)]), "other models"
        if len(units) == 1:
            units, what = measured.value[:, next(iter(last_runs(measured).values()))].T, "other seeds"
            units = units[~np.isnan(units).any(axis=1)]
        if len(units) < 2:
            return "stated scores of one training leave nothing that tells how trainings differ"
        error, df = item_errors(units, None), np.full(len(names), len(units) - 1.0)
        sets = from_replicates(units, level=level, replicates=DRAWS, rng=rng)
        what = f"training {what} like these; differences are paired"
        return _ranking(names, None, None, units.mean(axis=0), error, df, sets, what, level, notes)
    per_item = values.mean(axis=1)[:, None]
    clusters = np.arange(len(per_item)) if measured.clusters is None else measured.clusters
    of_task = [np.flatnonzero(at) for at in (tasks.to_numpy()[:, None] == np.array(names, dtype=object)).T]
    n_units = np.array([len(np.unique(clusters[at])) for at in of_task])
    if (n_units < 2).any():
        return "a task has one item, or one cluster of items, which leaves nothing that tells how items differ"
    score = np.array([float(per_item[at].mean()) for at in of_task])
    error = np.array([float(item_errors(per_item[at], clusters[at])[0]) for at in of_task])
    sets = from_standard_errors(score, error, df=n_units - 1, level=level, replicates=DRAWS, rng=rng)
    what = (
        "drawing other items like these" if measured.clusters is None else "drawing other clusters of items like these"
    )
    return _ranking(names, [len(at) for at in of_task], None, score, error, n_units - 1.0, sets, what, level, notes)


def last_runs(measured: Measurements, *, every: bool = False) -> dict[str, NDArray[np.int64]]:
    """Return the columns of each lineage's last checkpoint, by what tells the lineages apart.

    Of the axis that models are ranked on, where the configuration names one, or of ``every`` axis.
    """
    frame = measured.runs.frame.with_row_index("column")
    frame = (frame if every else frame.filter("is_ranked")).with_columns(
        late=pl.struct("step", "dose", "checkpoint").rank("dense").over("lineage")
    )
    last = frame.filter(pl.col("late") == pl.col("late").max().over("lineage"))
    shown = {}
    told = [
        name
        for name in ("revision", "setting", "axis")
        if last.group_by("name").agg(pl.col(name).n_unique())[name].max() != 1
    ]
    for _, mine in last.group_by("lineage", maintain_order=True):
        first = mine.row(0, named=True)
        extra = ", ".join(str(first[name]) for name in told if first[name] is not None)
        name = f"{first['name']} [{extra}]" if extra else first["name"]
        if name in shown:
            name = f"{name} #{first['lineage']}"
        shown[name] = mine["column"].to_numpy().astype(np.int64)
    return shown


def _ranking(
    names: list[str],
    n_items: int | list[int] | None,
    n_seeds: list[int] | None,
    score: FloatArray,
    error: FloatArray,
    df: FloatArray,
    sets: RankSets,
    uncertainty: str,
    level: float,
    notes: list[str],
) -> Ranking:
    m = len(names)
    shown = np.where(error > ROUNDING * np.abs(score).max(initial=0.0), error, np.nan)  # no spread seen: no interval
    low, high = t_ends(score, shown, df, level)
    lowest, highest = (np.ones(m), np.full(m, m)) if np.isnan(shown).all() else (sets.lo, sets.hi)
    frame = pl.DataFrame(
        {
            "name": names,
            "n_items": [n_items] * m if n_items is None or isinstance(n_items, int) else n_items,
            "n_seeds": [None] * m if n_seeds is None else n_seeds,
            "score": score,
            "standard_error": pl.Series(shown).fill_nan(None),
            "score_lo": pl.Series(low).fill_nan(None),
            "score_hi": pl.Series(high).fill_nan(None),
            "rank": sets.rank,
            "rank_lo": lowest.astype(np.int64),
            "rank_hi": highest.astype(np.int64),
        },
        schema=TABLE,
    )
    return Ranking(frame.sort("rank", "name"), uncertainty, sets.method, tuple(notes))
