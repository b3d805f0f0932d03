"""Two protocols compared: do benchmarks agree more on the order of models once all were tuned alike?

Direct scores and scores after common tuning of the same models on the same tasks. Agreement is the mean of Kendall's
tau-b over pairs of tasks. Gaps are dropped pair by pair and counted; a task on which all models tie has no tau.
Intervals resample models; copies of one model count as tied in both tasks, and so drop out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import false_discovery_control, norm, rankdata

from benchwright._check import FloatArray
from benchwright._json import json_safe
from benchwright._shown import Headline, Shown, ShownPart, ShownTable
from benchwright.errors import DataError, UsageError
from benchwright.ranking_game import _agreement as numbers

if TYPE_CHECKING:
    import polars as pl

PROTOCOLS = ("direct", "train_before_test")
COMPONENTS = 3
MOVES_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Tau:
    """Kendall's tau-b of two lists of scores: None where undefined, models used, models dropped for a gap."""

    value: float | None
    used: int
    dropped: int


def kendall_tau(first: Any, second: Any) -> Tau:
    """Return tau-b of two lists of scores (not ranks), higher better; NaN is a gap.

    >>> kendall_tau([0.5, 0.6, 0.7, 0.8], [0.6, 0.5, 0.8, 0.7]).value.__round__(6)
    0.333333
    >>> kendall_tau([0.5, 0.5, 0.5], [0.6, 0.7, float("nan")])
    Tau(value=None, used=2, dropped=1)
    """
    both = _table("scores", [first, second])
    seen = np.isfinite(both).all(axis=0)
    signs, there = numbers.pair_signs(both)
    value = float(numbers.tau_matrix(signs, there, np.ones(signs.shape[1]))[0, 1]) if seen.sum() > 1 else np.nan
    return Tau(value if np.isfinite(value) else None, int(seen.sum()), int((~seen).sum()))


LARGEST = 1e100  # of a score: squares of larger ones overflow


@dataclass(frozen=True, slots=True, eq=False)
class ScoreTables:
    """Scores of n models on T tasks under both protocols, higher better; NaN where missing.

    ``direct``, ``tuned`` and their standard errors are (T, n); tasks on which lower was better have their sign turned.
    ``notes`` say what was left out.
    """

    models: tuple[str, ...]
    tasks: tuple[str, ...]
    direct: FloatArray
    tuned: FloatArray
    direct_stderr: FloatArray
    tuned_stderr: FloatArray
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        shape = len(self.tasks), len(self.models)
        for name in ("direct", "tuned", "direct_stderr", "tuned_stderr"):
            table = _table(name, getattr(self, name))
            if table.shape != shape:
                raise UsageError(f"`{name}` must have shape {shape}, tasks by models, got {table.shape}")
            if (huge := table[np.abs(table) > LARGEST]).size:
                raise DataError(f"`{name}` must be at most {LARGEST:g} in size, got {huge[0]:g}", hint="is it a score?")
            object.__setattr__(self, name, table)

    def complete(self) -> ScoreTables:
        """The tasks for which every model has a score under both protocols."""
        kept = np.flatnonzero(np.isfinite(self.direct).all(axis=1) & np.isfinite(self.tuned).all(axis=1))
        return replace(
            self,
            tasks=tuple(self.tasks[int(k)] for k in kept),
            direct=self.direct[kept],
            tuned=self.tuned[kept],
            direct_stderr=self.direct_stderr[kept],
            tuned_stderr=self.tuned_stderr[kept],
        )


@dataclass(frozen=True, slots=True, eq=False)
class ProtocolComparison(Shown):
    """How two protocols rank models; pairs are (direct, train-before-test).

    Attributes
    ----------
    tau, tau_interval : mean pairwise tau-b of each protocol, and its interval
    gain, gain_interval : tau of train-before-test less that of direct
    tau_all_tasks : the same tau over all tasks, with gaps dropped pairwise; ``dropped_tasks`` are not complete
    undefined_pairs : pairs of tasks without a tau, of each protocol
    task_agreement : (T, 2) mean tau-b of a task with the other tasks
    same_task : (T,) tau-b of a task's direct with its tuned scores
    shares : (2, 3) shares of the first principal components of standardised scores
    rank : (n, 2) rank of a model by its mean rank over tasks, 1 best
    move, move_interval : (n,), (n, 2) places gained by tuning; interval over resampled tasks
    reversals, testable : pairs of models whose order on a task turns beyond noise, of how many with standard errors
    """

    models: tuple[str, ...]
    tasks: tuple[str, ...]
    dropped_tasks: tuple[str, ...]
    tau: tuple[float, float]
    tau_interval: tuple[tuple[float, float], tuple[float, float]]
    gain: float
    gain_interval: tuple[float, float]
    tau_all_tasks: tuple[float, float]
    undefined_pairs: tuple[int, int]
    task_agreement: FloatArray
    same_task: FloatArray
    shares: FloatArray
    rank: FloatArray
    move: FloatArray
    move_interval: FloatArray
    reversals: int
    testable: int
    level: float
    replicates: int
    notes: tuple[str, ...]

    def _told(self) -> Iterable[ShownPart]:
        low, high = self.gain_interval
        moves = np.argsort(-np.abs(self.move), kind="stable")[:MOVES_SHOWN]
        yield Headline(f"{len(self.models)} models on {len(self.tasks)} tasks, direct and after common tuning")
        yield (
            f"  mean pairwise Kendall tau-b {self.tau[0]:.4f} -> {self.tau[1]:.4f}, "
            f"gain {self.gain:.4f} [{low:.4f}, {high:.4f}]"
        )
        yield f"  first component {self.shares[0, 0]:.4f} -> {self.shares[1, 0]:.4f} of the variance"
        yield f"  order turned beyond noise: {self.reversals:,} of {self.testable:,} pairs of models and tasks"
        rows = [
            (
                self.models[int(i)],
                f"{self.rank[i, 0]:g} -> {self.rank[i, 1]:g}",
                f"{self.move[i]:+g} [{self.move_interval[i, 0]:g}, {self.move_interval[i, 1]:g}]",
            )
            for i in moves
        ]
        yield ShownTable(("model", "rank", "move"), rows)
        if self.dropped_tasks:
            yield f"  not every model has a score on {', '.join(self.dropped_tasks)}: left out here"
        yield from (f"  {note}" for note in self.notes)

    def to_frame(self) -> pl.DataFrame:
        """One row a model: ranks, move, interval."""
        import polars as pl

        columns = {"model": self.models, "rank_direct": self.rank[:, 0], "rank_tuned": self.rank[:, 1]}
        ends = {"move_low": self.move_interval[:, 0], "move_high": self.move_interval[:, 1]}
        return pl.DataFrame(columns | {"move": self.move} | ends)

    def to_dict(self) -> dict[str, Any]:
        """All figures, by protocol, in types that JSON knows; null where undefined."""

        def each(values: Any) -> dict[str, Any]:
            return dict(zip(PROTOCOLS, values, strict=True))

        record = {
            "mean_pairwise_kendall_tau_b": each(self.tau),
            "mean_pairwise_kendall_tau_b_interval": each(self.tau_interval),
            "gain": self.gain,
            "gain_interval": self.gain_interval,
            "mean_pairwise_kendall_tau_b_all_tasks": each(self.tau_all_tasks),
            "undefined_pairs_of_tasks": each(self.undefined_pairs),
            "first_principal_component_share_standardised_scores": each(self.shares[:, 0]),
            "first_three_shares": each(self.shares),
            "tasks": {
                task: each(self.task_agreement[k]) | {"direct_with_tuned": self.same_task[k]}
                for k, task in enumerate(self.tasks)
            },
            "dropped_tasks": self.dropped_tasks,
            "rank_moves": {
                model: {"ranks": each(self.rank[i]), "move": self.move[i], "interval": self.move_interval[i]}
                for i, model in enumerate(self.models)
            },
            "significant_reversals": self.reversals,
            "reversals_tested": self.testable,
            "level": self.level,
            "replicates": self.replicates,
            "notes": self.notes,
        }
        return {key: json_safe(value) for key, value in record.items()}


def compare_protocols(
    tables: ScoreTables, *, rng: np.random.Generator, replicates: int = 1000, level: float = 0.95
) -> ProtocolComparison:
    """Compare the ranking of models under two protocols, on the tasks for which every model has a score.

    Parameters
    ----------
    tables : ScoreTables
    rng : source of randomness
    replicates : int >= 1
        Resamples of models for taus, of tasks for rank moves.
    level : float in (0, 1)
        Of the intervals; reversals control false discoveries at 1 - level (Benjamini and Hochberg).

    Raises
    ------
    DataError
        Fewer than two models, or fewer than two complete tasks.
    """
    if replicates < 1 or not 0 < level < 1:
        raise UsageError(f"`replicates` must be >= 1 and `level` in (0, 1), got {replicates} and {level}")
    full, n = tables.complete(), len(tables.models)
    if n < 2 or len(full.tasks) < 2:
        raise DataError(
            f"{n} model(s) and {len(full.tasks)} task(s) with a score of every model under both protocols are too few",
            hint="two of each are needed",
        )
    pairs = [numbers.pair_signs(scores) for scores in (full.direct, full.tuned)]
    i, j = np.triu_indices(n, 1)
    whole = [numbers.tau_matrix(*pair, np.ones(i.size)) for pair in pairs]
    drawn = np.empty((replicates, 2))
    for b in range(replicates):
        counts = np.bincount(rng.integers(n, size=n), minlength=n).astype(np.float64)
        drawn[b] = [numbers.mean_off_diagonal(numbers.tau_matrix(*pair, counts[i] * counts[j])) for pair in pairs]
    tau = [numbers.mean_off_diagonal(matrix) for matrix in whole]
    ends = np.array([(1 - level) / 2, (1 + level) / 2])
    low, high = _quantiles(drawn, ends)
    gain = _quantiles(drawn[:, 1] - drawn[:, 0], ends)
    every = [
        numbers.mean_off_diagonal(numbers.tau_matrix(*numbers.pair_signs(scores), np.ones(i.size)))
        for scores in (tables.direct, tables.tuned)
    ]
    rank, move, interval = _moves(full, rng, replicates, ends)
    reversals, testable = _reversals(full, 1 - level)
    shares = np.full((2, COMPONENTS), np.nan)
    for k, scores in enumerate((full.direct, full.tuned)):
        found = numbers.component_shares(scores)[:COMPONENTS]
        shares[k, : found.size] = found
    same = [kendall_tau(a, b).value for a, b in zip(full.direct, full.tuned, strict=True)]
    return ProtocolComparison(
        models=tables.models,
        tasks=full.tasks,
        dropped_tasks=tuple(task for task in tables.tasks if task not in full.tasks),
        tau=(tau[0], tau[1]),
        tau_interval=((float(low[0]), float(high[0])), (float(low[1]), float(high[1]))),
        gain=tau[1] - tau[0],
        gain_interval=(float(gain[0]), float(gain[1])),
        tau_all_tasks=(every[0], every[1]),
        undefined_pairs=(_undefined(whole[0]), _undefined(whole[1])),
        task_agreement=np.stack([_with_others(matrix) for matrix in whole], axis=1),
        same_task=np.array([np.nan if value is None else value for value in same]),
        shares=shares,
        rank=rank,
        move=move,
        move_interval=interval,
        reversals=reversals,
        testable=testable,
        level=level,
        replicates=replicates,
        notes=tables.notes,
    )


def _table(name: str, value: Any) -> FloatArray:
    """A table of numbers in which NaN is a gap."""
    try:
        table = np.array(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise UsageError(f"`{name}` must be a table of numbers: {error}") from None
    if table.ndim != 2 or np.isinf(table).any():
        raise UsageError(f"`{name}` must be a table of finite numbers, NaN where missing, got shape {table.shape}")
    return table


def _quantiles(drawn: FloatArray, ends: FloatArray) -> FloatArray:
    """Quantiles over the first axis, of what is defined."""
    defined = np.isfinite(drawn).all(axis=tuple(range(1, drawn.ndim)))
    if not defined.any():
        return np.full((ends.size, *drawn.shape[1:]), np.nan)
    return np.quantile(drawn[defined], ends, axis=0)


def _undefined(tau: FloatArray) -> int:
    """Pairs of tasks without a tau."""
    return int(np.isnan(tau[np.triu_indices(tau.shape[0], 1)]).sum())


def _with_others(tau: FloatArray) -> FloatArray:
    """Mean tau of each task with the others; NaN where none is defined."""
    others = np.where(np.eye(tau.shape[0], dtype=bool), np.nan, tau)
    defined = np.isfinite(others)
    total = np.where(defined, others, 0.0).sum(axis=1)
    return np.where(defined.any(axis=1), total / np.maximum(defined.sum(axis=1), 1), np.nan)


def _moves(
    tables: ScoreTables, rng: np.random.Generator, replicates: int, ends: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Ranks (n, 2) by mean rank over tasks, places gained (n,), their intervals (n, 2) over resampled tasks."""
    ranks = [rankdata(-scores, axis=1) for scores in (tables.direct, tables.tuned)]
    size = len(tables.tasks)

    def placed(weights: FloatArray) -> FloatArray:
        return np.stack([rankdata((weights @ part).round(9), axis=-1, method="min") for part in ranks], axis=-1)

    rank = placed(np.full(size, 1 / size))
    drawn = placed(rng.multinomial(size, np.full(size, 1 / size), size=replicates) / size)
    interval = np.quantile(drawn[..., 0] - drawn[..., 1], ends, axis=0).T
    return rank, rank[:, 0] - rank[:, 1], interval


def _reversals(tables: ScoreTables, rate: float) -> tuple[int, int]:
    """Pairs of models and tasks whose order turns, both differences beyond noise, and how many could be tested.

    A turn is real only if both differences are, so its p-value is the larger of the two.
    """
    i, j = np.triu_indices(len(tables.models), 1)
    values, errors = (tables.direct, tables.tuned), (tables.direct_stderr, tables.tuned_stderr)
    z = []
    for score, error in zip(values, errors, strict=True):
        spread = np.hypot(error[:, i], error[:, j])
        gap = score[:, i] - score[:, j]
        z.append(np.divide(gap, spread, out=np.full(gap.shape, np.nan), where=spread > 0))
    tested = np.isfinite(z[0]) & np.isfinite(z[1])
    if not tested.any():
        return 0, 0
    turned = (np.sign(z[0]) * np.sign(z[1]) < 0)[tested]
    weaker = np.minimum(np.abs(z[0]), np.abs(z[1]))[tested]
    p = np.where(turned, 2 * norm.sf(weaker), 1.0)
    return int((false_discovery_control(p) <= rate).sum()), int(tested.sum())
