"""Overtaking for real: from a level of common tuning on, how much further effort does a weaker model need?

At level Delta models are ordered by their mean score over seeds. The lower of two neighbours goes on from its own
state at Delta, seed by seed, on another order of the examples than the run that its curve was fitted to, and is scored
every few steps until it has passed the published score of the one above (its mean over seeds at Delta) in several
evaluations running; the effort is that of the first of them. What is not passed by the maximum is censored: more than
that.

The fitted curves say ereq = inf{e : v_i(Delta + e) > v_j(Delta)}. Its interval is that of the curves' bootstrap draws.
A single seed need not lie in it, as the fit is of the mean: the median over seeds is compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from benchwright.errors import DataError, UsageError
from benchwright.ranking_game.fitted import curves_of
from benchwright.tuning.folder import read_json
from benchwright.tuning.jobs import RunEnd
from benchwright.tuning.plan import Chase, Job, plain_name
from benchwright.tuning.protocol import Protocol

if TYPE_CHECKING:
    from benchwright.game_answers.answer import GameAnswer

LEVEL = 0.95
SCHEMA: dict[str, Any] = {
    "task": pl.String,
    "delta": pl.Float64,  # level of common tuning, effort
    "developer": pl.String,
    "over": pl.String,
    "seed": pl.Int64,
    "score": pl.Float64,  # of the developer at the level, this seed
    "target": pl.Float64,  # to pass: the other's published score
    "needed": pl.Float64,  # effort beyond the level; null: not passed
    "needed_above": pl.Float64,  # it is more than that
    "censored": pl.Boolean,
}


def chases(protocol: Protocol, ends: Sequence[RunEnd], scores: pl.DataFrame) -> list[Job]:
    """The adversaries of an experiment whose runs are done: one a task, level, pair of neighbours and seed."""
    settings = protocol.adversary
    if settings is None:
        return []
    found = []
    for task, delta, developer, over, target in _pairs(protocol, ends, scores):
        for end in ends:
            job = end.job
            if end.done is None or (job.benchmark.name, job.model.name) != (task, developer):
                continue
            step = _step(end, delta)
            chase = Chase(
                str(end.folder / f"level-{step:09d}.pt"),
                delta,
                over,
                target,
                settings.every,
                settings.maximum,
                settings.confirm,
            )
            found.append(replace(job, name=f"{job.name}-from{delta:g}-over-{plain_name(over)}", kept=(), chase=chase))
    return found


def chase_table(ends: Sequence[RunEnd], runs: Sequence[RunEnd]) -> pl.DataFrame:
    """One row an adversary that ended, see ``SCHEMA``; efforts in units of the experiment."""
    of = {(end.job.benchmark.name, end.job.model.name, end.job.seed): end for end in runs}
    rows = []
    for end in ends:
        chase, job = end.job.chase, end.job
        if end.done is None or chase is None:
            continue
        start = _record(of[job.benchmark.name, job.model.name, job.seed].folder, end.done["start"])
        passed, unit = end.done["passed"], job.settings.effort
        last = end.done["last"] if passed is None else passed
        reached = _record(end.folder, last)
        below = reached
        if passed is not None:
            before = last - chase.every
            below = start if before <= end.done["start"] else _record(end.folder, before)
        rows.append(
            {
                "task": job.benchmark.name,
                "delta": chase.level,
                "developer": job.model.name,
                "over": chase.over,
                "seed": job.seed,
                "score": start["score"],
                "target": chase.target,
                "needed": None if passed is None else float(reached[unit] - start[unit]),
                "needed_above": float(below[unit] - start[unit]),
                "censored": passed is None,
            }
        )
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def compare(table: pl.DataFrame, answers: Mapping[str, GameAnswer]) -> pl.DataFrame:
    """One row a task, level and pair: the median effort really needed beside the fitted one and its interval.

    ``needed`` is null where half of the seeds or more did not pass; ``within`` says whether the median lies in the
    interval, null where that cannot be told.
    """
    rows = []
    for key, group in table.group_by(("task", "delta", "developer", "over"), maintain_order=True):
        task, delta, developer, over = key
        needed = np.array([np.inf if value is None else value for value in group["needed"]])
        at_least = np.where(np.isinf(needed), group["needed_above"].to_numpy(), needed)
        middle = float(np.quantile(needed, 0.5, method="inverted_cdf")) if needed.size % 2 else _upper_median(needed)
        fitted, low, high = _fitted(answers.get(str(task)), str(developer), str(over), float(delta))
        beyond = None if np.isfinite(middle) else float(np.median(at_least))
        within = None
        if beyond is None and not np.isnan(low):  # somewhere from the last look below the target to the first above
            within = bool(middle >= low and np.median(group["needed_above"].to_numpy()) <= high)
        elif beyond is not None and high <= beyond:
            within = False
        rows.append(
            {
                "task": task,
                "delta": delta,
                "developer": developer,
                "over": over,
                "seeds": needed.size,
                "censored": int(group["censored"].sum()),
                "needed": middle if np.isfinite(middle) else None,
                "needed_above": beyond,
                "least": float(needed.min()) if np.isfinite(needed.min()) else None,
                "most": float(needed.max()) if np.isfinite(needed.max()) else None,
                **{
                    name: value if np.isfinite(value) else None
                    for name, value in (("fitted", fitted), ("fitted_low", low), ("fitted_high", high))
                },
                "within": within,
            }
        )
    numbers = ("needed", "needed_above", "least", "most", "fitted", "fitted_low", "fitted_high")
    kinds = dict.fromkeys(numbers, pl.Float64) | {"within": pl.Boolean}
    return pl.DataFrame(rows, schema_overrides=kinds) if rows else pl.DataFrame()


def _upper_median(values: np.ndarray[Any, Any]) -> float:
    """The mean of the middle two, inf where one of them is."""
    ordered = np.sort(values)
    return float(ordered[values.size // 2 - 1 : values.size // 2 + 1].mean())


def _fitted(answer: GameAnswer | None, developer: str, over: str, delta: float) -> tuple[float, float, float]:
    """The fitted effort with which one overtakes another, and its interval; NaN where there is no curve of both."""
    unknown = (np.nan, np.nan, np.nan)
    if answer is None or answer.fits is None or {developer, over} - set(answer.fits.models):
        return unknown
    pair = [answer.fits.models.index(name) for name in (developer, over)]
    fitted = _overtake({name: values[pair] for name, values in answer.fits.parameters.items()}, delta)
    if answer.draws is None:
        return fitted, np.nan, np.nan
    drawn = []
    for k in range(len(answer.draws.parameters["alpha"])):
        try:
            drawn.append(_overtake({name: values[k][pair] for name, values in answer.draws.parameters.items()}, delta))
        except UsageError:  # a draw outside the form
            continue
    if not drawn:
        return fitted, np.nan, np.nan
    tails = (1 - LEVEL) / 2
    low, high = np.quantile(drawn, [tails, 1 - tails], method="inverted_cdf")
    return fitted, float(low), float(high) if np.isfinite(high) else np.inf


def _overtake(parameters: Mapping[str, Any], delta: float) -> float:
    low, high = curves_of(parameters).overtake(np.array([0]), np.array([1]), np.zeros(1), np.array([delta]))
    return max(float(low[0] + high[0]) / 2, 0.0)


def _pairs(
    protocol: Protocol, ends: Sequence[RunEnd], scores: pl.DataFrame
) -> Iterator[tuple[str, float, str, str, float]]:
    """Task, level, developer, whom it would overtake, and that one's score there."""
    for benchmark in protocol.benchmarks:
        for delta in protocol.adversary_levels:
            found = []
            for model in protocol.models:
                end = next(
                    (
                        end
                        for end in ends
                        if end.done is not None and (end.job.benchmark, end.job.model.name) == (benchmark, model.name)
                    ),
                    None,
                )
                if end is None:
                    continue
                place = end.done["points"].index(_step(end, delta))  # type: ignore[index]
                mine = scores.filter(pl.col("task") == benchmark.name, pl.col("model") == model.name)
                found.append((mine["score"][place], model.name))
            ordered = sorted(found, key=lambda pair: -pair[0])
            for (score, over), (_, developer) in pairwise(ordered):
                yield benchmark.name, delta, developer, over, score


def _step(end: RunEnd, delta: float) -> int:
    """The step at which a run reached a level: its kept states are in the order of its levels."""
    levels = sorted(set(end.job.kept))
    steps: list[int] = [] if end.done is None else end.done["kept"]
    return steps[min(levels.index(delta), len(steps) - 1)]


def _record(folder: Path, step: int) -> dict[str, Any]:
    """What a run recorded at a step."""
    found = read_json(folder / f"eval-{step:09d}.json")
    if found is None:
        raise DataError(f"{folder}: the scores at step {step} are gone", hint="start anew with --overwrite")
    return found
