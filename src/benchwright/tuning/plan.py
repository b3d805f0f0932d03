"""The runs of an experiment: one a model, seed and benchmark; with an annealed rate one a level too."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from benchwright._shown import Headline, Shown, ShownPart
from benchwright._words import count
from benchwright.errors import UsageError
from benchwright.tuning._order import steps_at
from benchwright.tuning.items import read_splits
from benchwright.tuning.protocol import Benchmark, Protocol, TunedModel
from benchwright.tuning.settings import TuningSettings

POINTS = 10  # of a run, where nothing is said
CHARACTERS_A_TOKEN = 4.0
NOT_OF_IDENTITY = ("amount", "epochs", "every", "at", "levels", "save_minutes", "score")
FILES = ("train", "test", "validation")


@dataclass(frozen=True, slots=True)
class Chase:
    """An adversary: from a state of an earlier run on until a score is passed."""

    state: str
    level: float
    over: str
    target: float
    every: int
    maximum: int
    confirm: int


@dataclass(frozen=True, slots=True)
class Job:
    """One run, as its process reads it.

    Attributes
    ----------
    name : str
        Of its folder.
    end : float or None, effort
        Level at which an annealed run ends; None: the run goes through all points.
    first : bool
        Whether it is scored untuned too.
    kept : tuple of float, effort
        Levels whose states are kept for adversaries.
    folder : str
        What the benchmark's paths are relative to.
    """

    name: str
    model: TunedModel
    seed: int
    benchmark: Benchmark
    settings: TuningSettings
    folder: str
    end: float | None = None
    first: bool = True
    kept: tuple[float, ...] = ()
    chase: Chase | None = None

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Job:
        """Back from JSON."""
        parts: dict[str, Any] = {
            "model": TunedModel(**record["model"]),
            "benchmark": Benchmark(**record["benchmark"]),
            "settings": TuningSettings(**record["settings"]),
            "kept": tuple(record["kept"]),
            "chase": None if record["chase"] is None else Chase(**record["chase"]),
        }
        return cls(**(dict(record) | parts))

    @property
    def identity(self) -> dict[str, Any]:
        """What makes its numbers: other points are points of the same run."""
        settings = {key: value for key, value in asdict(self.settings).items() if key not in NOT_OF_IDENTITY}
        chase = (
            None if self.chase is None else {key: value for key, value in asdict(self.chase).items() if key != "state"}
        )
        parts = {"model": asdict(self.model), "seed": self.seed, "benchmark": asdict(self.benchmark)}
        return parts | {"settings": settings, "end": self.end, "chase": chase}

    @property
    def asked(self) -> dict[str, Any]:
        """Where it is looked at: a run that has ended there is done."""
        points = {key: getattr(self.settings, key) for key in ("amount", "epochs", "every", "at", "levels")}
        return {
            "points": {key: list(v) if isinstance(v, tuple) else v for key, v in points.items()},
            "kept": list(self.kept),
        }


def jobs_of(protocol: Protocol) -> tuple[Job, ...]:
    """The runs of a protocol, without adversaries: those start where these have been."""
    found = []
    kept = protocol.adversary_levels
    for benchmark in protocol.benchmarks:
        for model in protocol.models:
            for seed in protocol.seeds:
                at = replace(model, path=protocol.place(model.at(seed)))
                parts = (at, seed, benchmark, protocol.tuning, str(protocol.folder))
                name = "-".join(map(plain_name, (benchmark.name, model.name, f"seed{seed}")))
                if protocol.tuning.schedule == "constant":
                    found.append(Job(name, *parts, kept=kept))
                    continue
                levels = sorted({level for level in protocol.tuning.levels or () if level > 0})
                for level in levels:
                    found.append(Job(f"{name}-to{level:g}", *parts, end=level, first=level == levels[0]))
    names = [job.name for job in found]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise UsageError(f"two runs would be called {twice}", hint="give models and benchmarks names that differ")
    return tuple(found)


def points_of(job: Job, examples: int, tokens: Callable[[int], int]) -> tuple[list[int], list[int]]:
    """Return the steps at which a run is looked at, and those whose states are kept.

    ``tokens`` gives the tokens of a step, see ``_order.steps_at``.
    """
    settings = job.settings

    def steps(efforts: list[float]) -> list[int]:
        return steps_at(efforts, settings.effort, settings.batch, tokens)

    if job.end is not None:
        return [*([0] if job.first else []), *steps([job.end])], []
    levels, kept = list(settings.levels or ()), steps(list(job.kept))
    if settings.epochs is not None:
        whole = max(1, math.ceil(settings.epochs * examples / settings.batch))
        if settings.at is None and settings.every is None:
            passes = [math.ceil(k * examples / settings.batch) for k in range(1, math.ceil(settings.epochs))]
            return sorted({0, *passes, whole, *steps(levels), *kept}), kept
        tokens_too = settings.effort == "tokens"
        end = float(sum(map(tokens, range(whole))) if tokens_too else whole)
        end *= settings.batch if settings.effort == "examples" else 1
    else:
        end = float(settings.amount or 0)
    every = end / POINTS if settings.every is None else settings.every
    grid = (
        list(settings.at) if settings.at is not None else [k * every for k in range(math.floor(end / every + 1e-9) + 1)]
    )
    return sorted({0, *steps([*grid, end, *levels]), *kept}), kept


@dataclass(frozen=True, slots=True)
class TuningPlan(Shown):
    """What an experiment would do; ``tokens`` is None where it cannot be told without the library that has the data."""

    protocol: Protocol
    jobs: tuple[Job, ...]
    lines: tuple[str, ...]
    steps: int | None
    tokens: float | None

    def _told(self) -> Iterable[ShownPart]:
        parts = self.protocol
        runs = f"{count(len(parts.models), 'model')}, {count(len(parts.seeds), 'seed')}, "
        yield Headline(f"{count(len(self.jobs), 'run')}: {runs}{count(len(parts.benchmarks), 'benchmark')}")
        yield from self.lines
        if self.steps is not None:
            total = f"in all {count(self.steps, 'step')}"
            yield total if self.tokens is None else f"{total}, about {self.tokens:.3g} tokens tuned on and scored"
        if parts.adversary is not None:
            found = parts.adversary_levels
            most = len(found) * (len(parts.models) - 1) * len(parts.seeds) * len(parts.benchmarks)
            told = f"then at most {most:,} adversaries" if most != 1 else "then one adversary"
            yield f"{told}, from {', '.join(f'{level:g}' for level in found)} {parts.tuning.effort} on"


def plan_tuning(protocol: Protocol) -> TuningPlan:
    """Say what an experiment would do: runs, steps, and tokens by a rule of thumb. Reads files of items, no model.

    Raises
    ------
    UsageError, DataError
        A file of items is missing or cannot be used.
    """
    jobs = jobs_of(protocol)
    lines, steps, total, known = [], 0, 0.0, True
    for benchmark in protocol.benchmarks:
        of = [job for job in jobs if job.benchmark == benchmark]
        if benchmark.task is not None:
            known = False
            end = protocol.tuning.amount
            unit = protocol.tuning.effort if end is not None else "epochs"
            lines.append(
                f"  {benchmark.name}: lm-eval task, to {end or protocol.tuning.epochs:g} {unit}, {len(of)} runs"
            )
            continue
        splits = read_splits(benchmark, protocol.folder, select=protocol.tuning.select == "best")
        mean = sum(len(e.prompt) + len(e.answer) for e in splits.train) / len(splits.train) / CHARACTERS_A_TOKEN
        scored = sum(len(p) + len(a) for item in splits.test for p, a in item.pairs) / CHARACTERS_A_TOKEN
        batch = protocol.tuning.batch
        a_step = max(1, round(mean * batch))
        for job in of:
            points, _ = points_of(job, len(splits.train), lambda _, a_step=a_step: a_step)  # type: ignore[misc]
            steps += points[-1]
            total += points[-1] * batch * mean + len(points) * scored
        lines.append(
            f"  {benchmark.name}: {count(len(splits.train), 'example')}, {count(len(splits.test), 'test item')}, a run"
            f" of {count(points[-1], 'step')} with {count(len(points), 'point')}"
        )
        lines += [f"  note: {note}" for note in splits.notes]
    return TuningPlan(protocol, jobs, tuple(lines), steps if known else None, total if known else None)


def resolved(benchmark: Benchmark, folder: Path) -> dict[str, str | None]:
    """The files of a benchmark with their places."""
    named = {name: getattr(benchmark, name) for name in FILES}
    return {name: None if value is None else str(folder / value) for name, value in named.items()}


def plain_name(name: str) -> str:
    """A name as a part of a folder's."""
    return re.sub(r"[^A-Za-z0-9._]+", "_", name).strip("._") or "x"
