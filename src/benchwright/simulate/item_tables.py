"""Item tables with known answers: material for tests, and to try things on.

Everything is drawn from the parameters below and one seed; nothing is measured, and reports say so.

* A task has a taste for activities; a judge's ranking is a draw from the Plackett-Luce model with that
  taste (Gumbel noise on log-tastes, the five largest ranked).
* The true slope of an item on an axis is normal around its task's mean; the stated slope adds a normal
  estimation error, and rank intervals redraw that error.
* The mean score is beta; sigma is Z sqrt(p (1 - p)) with log-normal Z around its task's level, its estimate
  has ``degrees`` chi-square degrees of freedom; items with a narrow margin are noisier.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from benchwright._shown import Shown
from benchwright.errors import UsageError
from benchwright.logs.item_tables import PERSPECTIVES, ItemTables

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class SimulatedTask:
    """One task: its family, the activities its items resemble most, its slope and noise levels.

    ``slopes`` are means in score per slope unit (10^9 tokens, 10^3 examples, 10^3 prompts).
    """

    name: str
    family: str
    activities: tuple[str, ...]
    slopes: tuple[float, float, float]
    noise_level: float


# Invented activities: id, label, tasks rated, value on [1,5] under automation and augmentation.
ACTIVITIES: tuple[tuple[str, str, int, float | None, float | None], ...] = (
    ("checking_figures", "Checking figures", 24, 4.2, 1.9),
    ("filing_records", "Filing records", 31, 5.0, 1.0),
    ("summarising_documents", "Summarising documents", 40, 4.1, 3.2),
    ("drafting_messages", "Drafting messages", 52, 3.6, 4.0),
    ("planning_schedules", "Planning schedules", 18, 3.9, 3.4),
    ("calculating_quantities", "Calculating quantities", 33, 2.6, 1.6),
    ("solving_puzzles", "Solving puzzles", 12, 1.4, 2.0),
    ("diagnosing_faults", "Diagnosing faults", 21, 3.2, 4.2),
    ("advising_clients", "Advising clients", 27, 1.6, 4.6),
    ("teaching_colleagues", "Teaching colleagues", 16, 1.0, 3.9),
    ("judging_quality", "Judging quality", 22, 3.3, 3.1),
    ("explaining_findings", "Explaining findings", 19, 2.0, 5.0),
    ("looking_up_facts", "Looking up facts", 45, 4.3, 2.8),
    ("making_decisions", "Making decisions", 38, 1.8, 3.5),
    ("handling_hazards", "Handling hazards", 3, None, None),
)

TASKS = (
    SimulatedTask(
        "sim_arithmetic", "math", ("calculating_quantities", "checking_figures", "solving_puzzles"),
        (5.0e-04, 1.2e-05, 2.3e-05), 0.22,
    ),
    SimulatedTask(
        "sim_algebra", "math", ("solving_puzzles", "calculating_quantities", "making_decisions"),
        (3.0e-04, 7.7e-06, 2.0e-05), 0.2,
    ),
    SimulatedTask(
        "sim_word_problems", "math", ("calculating_quantities", "making_decisions", "looking_up_facts"),
        (4.0e-04, 8.4e-06, 1.7e-05), 0.25,
    ),
    SimulatedTask(
        "sim_office_mail", "general", ("drafting_messages", "filing_records", "summarising_documents"),
        (6.5e-04, 1.0e-05, 5.0e-06), 0.32,
    ),
    SimulatedTask(
        "sim_scheduling", "general", ("planning_schedules", "filing_records", "checking_figures"),
        (5.5e-04, 9.1e-06, 7.5e-06), 0.38,
    ),
    SimulatedTask(
        "sim_reading", "general", ("summarising_documents", "explaining_findings", "looking_up_facts"),
        (8.5e-04, 7.7e-06, 2.5e-06), 0.3,
    ),
    SimulatedTask(
        "sim_troubleshooting", "general", ("diagnosing_faults", "making_decisions", "explaining_findings"),
        (3.5e-04, 4.2e-06, 6.3e-06), 0.45,
    ),
    SimulatedTask(
        "sim_advice", "general", ("advising_clients", "teaching_colleagues", "judging_quality"),
        (2.5e-04, 2.8e-06, 3.8e-06), 0.5,
    ),
    SimulatedTask(
        "sim_plausible_endings", "general", ("looking_up_facts", "drafting_messages", "judging_quality"),
        (5.5e-04, 8.4e-06, 1.2e-06), 0.62,
    ),
)  # fmt: skip
AXES = ("PT", "SFT", "RL")


@dataclass(frozen=True, slots=True)
class Simulation(Shown):
    """Parameters of the simulated item tables."""

    tasks: tuple[SimulatedTask, ...] = TASKS
    items_per_task: int = 40
    taste: float = 2.5
    slope_spread: float = 0.8
    slope_error: float = 0.3
    degrees: int = 70
    replicates: int = 400
    seed: int = 20261129

    def __post_init__(self) -> None:
        known = {row[0] for row in ACTIVITIES}
        unknown = sorted({name for task in self.tasks for name in task.activities} - known)
        if unknown:
            raise UsageError(f"`tasks` must name activities of ACTIVITIES, got {', '.join(unknown)}")
        for name, value in (
            ("tasks", len(self.tasks)),
            ("items_per_task", self.items_per_task),
            ("degrees", self.degrees),
            ("replicates", self.replicates),
        ):
            if value < 1:
                raise UsageError(f"`{name}` must be at least 1, got {value}")


def simulate_item_tables(simulation: Simulation | None = None) -> ItemTables:
    """Draw item tables from stated parameters.

    Examples
    --------
    >>> tables = simulate_item_tables(Simulation(items_per_task=5))
    >>> tables.simulated, tables.cost.height, sorted(tables.loadings)
    (True, 45, ['default'])
    """
    given = Simulation() if simulation is None else simulation
    rng = np.random.default_rng(given.seed)
    n = given.items_per_task
    keys = pl.DataFrame(
        {
            "task": [task.name for task in given.tasks for _ in range(n)],
            "doc_id": [doc_id for _ in given.tasks for doc_id in range(n)],
        }
    )
    loadings = _loadings(given, keys, rng)
    cost = _cost(given, keys, rng)
    noise, margins = _noise(given, keys, rng)
    activities = pl.DataFrame(
        [(name, label, rated, auto is None, auto, aug) for name, label, rated, auto, aug in ACTIVITIES],
        schema={
            "activity": pl.String,
            "label": pl.String,
            "n_tasks": pl.Int64,
            "dropped": pl.Boolean,
            "auto": pl.Float64,
            "aug": pl.Float64,
        },
        orient="row",
    )
    return ItemTables(
        name="simulated tables",
        simulated=True,
        activities={"share": activities},
        loadings={"default": loadings},
        cost=cost,
        noise=noise,
        margins=margins,
        families=pl.DataFrame(
            [(task.name, task.family) for task in given.tasks], schema=["task", "family"], orient="row"
        ),
        axes=AXES,
        notes=(
            f"Simulated, not measured: {keys.height} items of {len(given.tasks)} invented tasks, drawn by "
            f"benchwright.simulate with seed {given.seed}.",
        ),
    )


def _loadings(given: Simulation, keys: pl.DataFrame, rng: np.random.Generator) -> pl.DataFrame:
    names = [row[0] for row in ACTIVITIES]
    # What a model could take over and what it could help with draw attention to different activities.
    tilt = {
        "automation": np.array([2.0 if row[3] is None else row[3] for row in ACTIVITIES]),
        "augmentation": np.array([2.0 if row[4] is None else row[4] for row in ACTIVITIES]),
    }
    frames = []
    for perspective in PERSPECTIVES:
        taste = np.stack([_taste(task, names, given.taste) for task in given.tasks])
        taste = np.repeat(taste + 0.25 * tilt[perspective], given.items_per_task, axis=0)
        ranked = np.argsort(-(taste + rng.gumbel(size=taste.shape)), axis=1)[:, :5]
        lists = [[names[code] for code in row] for row in ranked]
        frames.append(keys.with_columns(perspective=pl.lit(perspective), activities=pl.Series(lists)))
    return pl.concat(frames)


def _taste(task: SimulatedTask, names: list[str], strength: float) -> FloatArray:
    taste = np.zeros(len(names))
    for place, name in enumerate(task.activities):
        taste[names.index(name)] = strength * (1 - 0.2 * place)
    return taste


def _cost(given: Simulation, keys: pl.DataFrame, rng: np.random.Generator) -> pl.DataFrame:
    mean = np.repeat(np.array([task.slopes for task in given.tasks]), given.items_per_task, axis=0)
    true = mean * (1 + given.slope_spread * rng.standard_normal(mean.shape))
    error = given.slope_error * mean
    stated = true + error * rng.standard_normal(mean.shape)
    price = np.array([82.0, 0.20, 0.50])
    anchor = np.clip(rng.beta(2, 2.2, keys.height), 0.02, 0.98)
    redrawn = stated + error * rng.standard_normal((given.replicates, *mean.shape))
    columns = {f"beta_{axis.lower()}": stated[:, k] for k, axis in enumerate(AXES)}
    eligible = (anchor >= 0.05) & (anchor <= 0.95) & (stated > 0).any(axis=1)
    frame = keys.with_columns(anchor_phat=anchor, **columns)
    return frame.with_columns(**_ranks(_cheapest(stated, price), _cheapest(redrawn, price), eligible))


def _cheapest(slopes: FloatArray, price: FloatArray) -> FloatArray:
    """Return the cheapest dollars per unit of score; infinite only inside this ranking."""
    with np.errstate(divide="ignore"):
        dollars: FloatArray = np.where(slopes > 0, price / slopes, np.inf).min(axis=-1)
    return dollars


def _noise(given: Simulation, keys: pl.DataFrame, rng: np.random.Generator) -> tuple[pl.DataFrame, pl.DataFrame]:
    level = np.repeat(np.array([task.noise_level for task in given.tasks]), given.items_per_task)
    score = np.clip(rng.beta(2.2, 2.0, keys.height), 0.03, 0.97)
    margin = rng.beta(2, 5, keys.height) * (0.9 - level)
    z = level * np.exp(0.25 * rng.standard_normal(keys.height) - 1.2 * margin)
    variance = z**2 * score * (1 - score)
    stated = variance * rng.chisquare(given.degrees, keys.height) / given.degrees
    redrawn = stated * rng.chisquare(given.degrees, (given.replicates, keys.height)) / given.degrees
    eligible = (score >= 0.10) & (score <= 0.90)
    noise = keys.with_columns(noise_sigma2=stated, noise_mean_phat=score)
    noise = noise.with_columns(**_ranks(stated, redrawn, eligible))
    ratio = 1 - np.where(score > 0.5, margin, -margin)
    return noise, keys.with_columns(log_ratio_med=ratio)


def _ranks(values: FloatArray, redrawn: FloatArray, eligible: NDArray[np.bool_]) -> dict[str, pl.Series]:
    """Return ranks among eligible items and their 95 % intervals over the redrawn values."""
    places = np.argsort(np.argsort(values[eligible])) + 1.0
    drawn = np.argsort(np.argsort(redrawn[:, eligible], axis=1), axis=1) + 1.0
    low, high = np.quantile(drawn, [0.025, 0.975], axis=0)
    columns = {}
    for name, ranks in (("rank_headline", places), ("rank_lo", np.floor(low)), ("rank_hi", np.ceil(high))):
        full = np.full(len(values), np.nan)
        full[eligible] = ranks
        columns[name] = pl.Series(full).fill_nan(None)
    return columns
