"""How models are tuned and runs are started: every setting with its default, unit and reason."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from benchwright._choice import Checked, choice
from benchwright.errors import UsageError

EFFORTS = ("steps", "examples", "tokens")
SCORES = ("acc", "acc_norm", "p_gold")


@dataclass(frozen=True, slots=True)
class TuningSettings(Checked):
    """The common tuning, the same for every model; amounts are in units of ``effort``."""

    prefix: ClassVar[str] = "[tuning] "
    method: str = choice("lora", unit="method", options=("lora", "full"), why="adapters on all linear layers, or all")
    rank: int = choice(8, unit="dimensions", low=1, high=1024, why="of the adapters")
    alpha: float = choice(16.0, unit="factor", low=0, high=1e4, why="adapters are scaled by alpha / rank")
    dropout: float = choice(0.0, unit="share", low=0, high=0.9, why="of the adapters' inputs")
    effort: str = choice("steps", unit="unit", options=EFFORTS, why="what is counted as effort")
    amount: float | None = choice(None, unit="effort", low=1, high=1e15, why="where the longest run ends")
    epochs: float | None = choice(
        None, unit="epochs", low=0, high=1e4, why="in place of `amount`: passes over the train split"
    )
    every: float | None = choice(
        None, unit="effort", low=1, high=1e15, why="evaluate every so much; a tenth of the whole"
    )
    at: tuple[float, ...] | None = choice(
        None, unit="effort", low=0, high=1e15, why="evaluate there, in place of `every`"
    )
    levels: tuple[float, ...] | None = choice(
        None, unit="effort", low=0, high=1e15, why="tune-before-test levels to show and to start adversaries from"
    )
    batch: int = choice(8, unit="examples", low=1, high=65536, why="in one step")
    parts: int = choice(
        1, unit="parts", low=1, high=65536, at_most="batch", why="a batch is worked on in so many, to save memory"
    )
    learning_rate: float = choice(1e-4, unit="rate", low=0, high=10, why="of AdamW")
    schedule: str = choice(
        "constant",
        unit="schedule",
        options=("constant", "annealed"),
        why="constant: every checkpoint is what tuning to that effort gives; annealed: falls to 0, one run a level",
    )
    warmup: int = choice(0, unit="steps", low=0, high=10**9, why="in which the rate rises from 0")
    weight_decay: float = choice(0.0, unit="rate", low=0, high=10, why="of AdamW")
    clip: float | None = choice(1.0, unit="norm", low=1e-9, high=1e9, why="largest norm of the gradient")
    precision: str = choice("float32", unit="type", options=("float32", "bfloat16"), why="of the arithmetic")
    device: str = choice("auto", unit="device", why="auto, cpu, cuda, cuda:1, mps")
    max_length: int = choice(1024, unit="tokens", low=2, high=10**7, why="longer prompts lose their beginning")
    eval_batch: int = choice(32, unit="sequences", low=1, high=65536, why="scored at once")
    select: str = choice(
        "all",
        unit="rule",
        options=("all", "best"),
        why="best: report the checkpoint that is best on validation items too",
    )
    score: str = choice("acc", unit="score", options=SCORES, why="of an item, for curves and the game")
    axis: str = choice("SFT", unit="axis", why="training axis that the rows name")
    save_minutes: float = choice(10.0, unit="minutes", low=0, high=1e5, why="a killed run loses no more than that")

    def __post_init__(self) -> None:
        Checked.__post_init__(self)
        if (self.amount is None) == (self.epochs is None):
            raise UsageError(
                "[tuning] needs `amount` or `epochs`, one of them", hint="e.g. amount = 300, in units of `effort`"
            )
        if self.every is not None and self.at is not None:
            raise UsageError("[tuning] takes `every` or `at`, not both")
        end = self.amount
        for name in ("every", "at", "levels"):
            given = getattr(self, name)
            top = None if given is None else max(given) if isinstance(given, tuple) else given
            if end is not None and top is not None and top > end:
                raise UsageError(f"[tuning] {name} = {top:g} lies beyond `amount` = {end:g}")
        if self.schedule == "annealed" and (self.levels is None or self.select == "best"):
            raise UsageError(
                "[tuning] annealed needs `levels`, and no `select`: each level is a run of its own",
                hint="with a constant rate one run gives all levels",
            )


@dataclass(frozen=True, slots=True)
class AdversarySettings(Checked):
    """How long a weaker model is tuned on until it passes its neighbour."""

    prefix: ClassVar[str] = "[adversary] "
    levels: tuple[float, ...] | None = choice(None, unit="effort", low=0, high=1e15, why="start there; [tuning] levels")
    every: int = choice(5, unit="steps", low=1, high=10**9, why="evaluate so often: finer than the curve's points")
    maximum: int = choice(1000, unit="steps", low=1, high=10**9, why="give up after so many: the effort is censored")
    confirm: int = choice(2, unit="evaluations", low=1, high=100, why="above the neighbour so often running, to count")


@dataclass(frozen=True, slots=True)
class LaunchSettings(Checked):
    """How runs are started; one process a run."""

    prefix: ClassVar[str] = "[launch] "
    launcher: str = choice(
        "local", unit="launcher", options=("local", "slurm"), why="processes here, or jobs by submitit"
    )
    workers: int = choice(1, unit="runs", low=1, high=10_000, why="at once")
    threads: int | None = choice(
        None, unit="threads", low=1, high=1024, why="of a run on the CPU; the cores shared out"
    )
    partition: str | None = choice(None, unit="name", why="of Slurm")
    account: str | None = choice(None, unit="name", why="of Slurm")
    gpus: int = choice(1, unit="GPUs", low=0, high=64, why="of a Slurm job")
    cpus: int = choice(4, unit="cores", low=1, high=1024, why="of a Slurm job")
    memory_gb: int = choice(32, unit="GB", low=1, high=100_000, why="of a Slurm job")
    hours: float = choice(24.0, unit="hours", low=0.01, high=10_000, why="that a Slurm job may take")
