"""Parameters of simulated panels and grids, checked whenever one is made; the model is in ``panels``."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from benchwright._check import FloatArray, finite_array
from benchwright._shown import Shown
from benchwright.errors import UsageError

Distribution = Literal["normal", "t5", "skewed"]

LARGEST = sys.float_info.max

_WHOLE = {"n_items": 1, "n_tasks": 1, "n_seeds": 1, "n_models": 1, "n_checkpoints": 1, "trials": 1, "seed": 0}
_OPTIONAL = ("n_models", "n_checkpoints", "trials")
_SPREADS = ("level_sd", "slope_sd", "model_sd", "noise_sd", "noise_spread")
_SHARES = ("common", "persistent", "missing")


@dataclass(frozen=True, slots=True)
class PanelSimulation(Shown):
    """Parameters of simulated panels; scores in points of 1, with ``trials`` log-odds.

    Parameters
    ----------
    n_items, n_tasks
        Items, in tasks of nearly equal size; a task is a label and changes no score.
    n_seeds
        Runs of each model that differ in their seed only.
    n_checkpoints, doses
        The number of checkpoints (10 by default), with doses evenly from 0 to 1, or their rising doses.
    n_models, model_levels
        The number of models (1 by default), with levels theta drawn with spread ``model_sd``, or their levels.
    level, level_sd, slope_mean, slope_sd
        Mean and standard deviation over items of mu and of beta (per unit of dose).
    noise_sd, noise_spread
        Median over items of sigma, and the standard deviation of its logarithm.
    common, persistent
        Share of the noise variance that all items have in common, and share that stays with a seed.
    distribution
        Distribution of the noise; with ``trials`` it must be "normal".
    trials
        Draws whose mean is a score: 1 for scores of 0 and 1; None for scores without such draws.
    missing
        Chance that a score is missing (NaN), whatever its value.
    axis
        Training axis of the doses.
    seed
        Seed of items and models, and of the noise where no ``rng`` is given.

    Raises
    ------
    UsageError
        A parameter is out of its range, or two contradict each other.
    """

    n_items: int = 20
    n_tasks: int = 1
    n_seeds: int = 8
    n_checkpoints: int | None = None
    doses: tuple[float, ...] | None = None
    n_models: int | None = None
    model_levels: tuple[float, ...] | None = None
    level: float = 0.5
    level_sd: float = 0.1
    slope_mean: float = 0.1
    slope_sd: float = 0.1
    model_sd: float = 0.05
    noise_sd: float = 0.05
    noise_spread: float = 0.3
    common: float = 0.3
    persistent: float = 0.3
    distribution: Distribution = "normal"
    trials: int | None = None
    missing: float = 0.0
    axis: str = "PT"
    seed: int = 0

    def __post_init__(self) -> None:
        for name, low in _WHOLE.items():
            value = getattr(self, name)
            if value is not None or name not in _OPTIONAL:
                whole_number(name, value, low)
        for name in ("level", "slope_mean"):
            _real(name, getattr(self, name))
        for name in _SPREADS:
            _real(name, getattr(self, name), low=0.0)
        for name in _SHARES:
            _real(name, getattr(self, name), low=0.0, high=1.0)
        _name("axis", self.axis)
        if self.n_tasks > self.n_items:
            raise UsageError(f"`n_tasks` must be at most `n_items`, got {self.n_tasks} and {self.n_items}")
        for name, count in (("doses", "n_checkpoints"), ("model_levels", "n_models")):
            if getattr(self, name) is not None:
                values = _numbers(name, getattr(self, name), rising=name == "doses")
                if getattr(self, count) not in (None, len(values)):
                    raise UsageError(f"`{count}` must be the length of `{name}`, got {getattr(self, count)}")
                object.__setattr__(self, name, values)
        if self.distribution not in get_args(Distribution):
            known = ", ".join(get_args(Distribution))
            raise UsageError(f"`distribution` must be one of {known}, got {self.distribution!r}")
        if self.trials is not None and self.distribution != "normal":
            raise UsageError(f"`distribution` must be normal where `trials` is given, got {self.distribution}")

    @property
    def dose(self) -> FloatArray:
        """Dose of each checkpoint, shape (K,)."""
        if self.doses is not None:
            return np.array(self.doses)
        return np.linspace(0.0, 1.0, 10 if self.n_checkpoints is None else self.n_checkpoints)

    @property
    def tasks(self) -> NDArray[np.int64]:
        """Task of each item as codes 0..n_tasks-1, shape (m,)."""
        return np.arange(self.n_items, dtype=np.int64) * self.n_tasks // self.n_items


@dataclass(frozen=True, slots=True)
class SimulatedAxis:
    """A training axis: the doses of its models, mean and standard deviation over items of the slope per unit."""

    name: str
    doses: tuple[float, ...]
    slope_mean: float = 0.1
    slope_sd: float = 0.1

    def __post_init__(self) -> None:
        _name("name", self.name)
        object.__setattr__(self, "doses", _numbers("doses", self.doses, rising=True))
        _real("slope_mean", self.slope_mean)
        _real("slope_sd", self.slope_sd, low=0.0)


def whole_number(name: str, value: Any, low: int) -> int:
    """Return ``value`` as a whole number >= ``low``."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < low:
        raise UsageError(f"`{name}` must be a whole number >= {low}, got {value!r}")
    return int(value)


def _real(name: str, value: Any, *, low: float = -LARGEST, high: float = LARGEST) -> None:
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    if not is_number or not low <= value <= high:
        least = "" if low == -LARGEST else f" >= {low:g}"
        bounds = f"a finite number{least}" if high == LARGEST else f"a number in {low:g} .. {high:g}"
        raise UsageError(f"`{name}` must be {bounds}, got {value!r}")


def _numbers(name: str, value: Any, *, rising: bool) -> tuple[float, ...]:
    numbers = finite_array(name, value, ndim=1)
    if not len(numbers) or (rising and (np.diff(numbers) <= 0).any()):
        raise UsageError(f"`{name}` must hold {'rising ' if rising else ''}numbers, got {value!r}")
    return tuple(numbers.tolist())


def _name(name: str, value: Any) -> None:
    if not isinstance(value, str) or not value.strip():
        raise UsageError(f"`{name}` must be text that is not empty, got {value!r}")
