"""The sections of a configuration: every normative or economic choice with its default, unit and reason.

To add a choice, add a field with :func:`~benchwright._choice.choice` to the section it belongs to: reading, checking,
printing and ``benchwright config`` follow from that row.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from benchwright._choice import Checked, choice


@dataclass(frozen=True, slots=True)
class Price(Checked):
    """US dollars for one slope unit of an effort axis, and what that unit is.

    A panel's doses are in native units: ``unit`` names one (token, example), ``units`` of them make a slope unit.
    """

    usd: float = field(metadata={"low": 1e-15, "high": 1e15})
    per: str
    unit: str | None = field(default=None, metadata={})
    units: float = field(default=1.0, metadata={"low": 1e-15, "high": 1e15})


@dataclass(frozen=True, slots=True)
class WelfareChoices(Checked):
    """What an item's improvement is worth."""

    prefix: ClassVar[str] = "welfare."
    automation_share: float = choice(
        1.0,
        unit="share",
        low=0,
        high=1,
        why="an item's welfare is this share of w_auto plus the rest of w_aug; a normative choice",
    )
    neutral: float = choice(
        3.0,
        unit="welfare on [1,5]",
        low=-10,
        high=10,
        why="below it an item's improvement does harm; 3 is the middle of the scale",
    )
    top_k: int = choice(5, unit="ranks", low=1, high=10, why="activities per item that count; the paper's five")
    rank_weights: str = choice(
        "reciprocal",
        unit="rule",
        options=("reciprocal", "uniform"),
        why="weight of rank k: 1/k (the paper), or 1/top_k",
    )
    activity_score: str = choice(
        "share",
        unit="rule",
        options=("share", "mean"),
        why="an activity's value: share of its tasks rated >= 3.5 (the paper), or the mean rating",
    )
    thresholds: tuple[float, ...] = choice(
        (3.0, 3.5),
        unit="welfare on [1,5]",
        low=-10,
        high=10,
        why="quadrants are reported at each; the paper's slot shares use 3.0, its activity map 3.5",
    )
    quadrant_threshold: float = choice(
        3.0,
        unit="welfare on [1,5]",
        low=-10,
        high=10,
        why="the threshold of items.parquet's quadrants and the report's headline",
    )


@dataclass(frozen=True, slots=True)
class FamilyChoices(Checked):
    """Which tasks are compared with which. A value is a preset's name or a CSV file of task,family."""

    prefix: ClassVar[str] = "families."
    welfare: str = choice(
        "auto",
        unit="preset or file",
        why="of the welfare contrast; auto: the source's families.csv if it has one, else figure-3",
    )
    robustness: str = choice(
        "auto",
        unit="preset or file",
        why="of the robustness table; auto: the source's families.csv if it has one, else robustness",
    )
    noise: str = choice(
        "benchmark",
        unit="preset or file",
        why="of the noise decomposition; benchmark: the benchmark a task belongs to",
    )


@dataclass(frozen=True, slots=True)
class EligibilityChoices(Checked):
    """Which items enter the published tables of costs and noise."""

    prefix: ClassVar[str] = "eligibility."
    anchor_low: float = choice(
        0.05, unit="score", low=0, high=1, at_most="anchor_high", why="cost: lowest anchor score (paper)"
    )
    anchor_high: float = choice(0.95, unit="score", low=0, high=1, why="cost: highest anchor score (paper)")
    noise_low: float = choice(
        0.10, unit="score", low=0, high=1, at_most="noise_high", why="noise: lowest mean score (paper)"
    )
    noise_high: float = choice(0.90, unit="score", low=0, high=1, why="noise: highest mean score (paper)")
    min_sigma2: float = choice(1e-6, unit="score^2", low=0, why="noise: smallest seed variance (paper)")
    checkpoints: int = choice(
        10,
        unit="checkpoints",
        low=1,
        why="K of the published tables, for the reference line Z = 1/sqrt(K); a raw panel has its own K",
    )


@dataclass(frozen=True, slots=True)
class EstimateChoices(Checked):
    """How a raw panel becomes item statistics."""

    prefix: ClassVar[str] = "estimates."
    metric: str | None = choice(
        None, unit="metric", why="the item's score; unless set, per task the one that most runs have"
    )
    level_of: str = choice(
        "auto",
        unit="rule",
        options=("auto", "item", "task"),
        why="what is audited: items, or tasks by their stated scores; auto: items where the panel has any",
    )
    models: tuple[str, ...] = choice(
        ("*",), unit="patterns", why="names of the models that are used, * for any text, ! in front leaves out"
    )
    noise_from: str = choice(
        "auto",
        unit="rule",
        options=("auto", "seeds", "trials"),
        why="noise between runs that differ in seed, or between samples of one run; auto: seeds where there are two",
    )
    anchor: str | None = choice(
        None, unit="pattern", why="model whose score is the anchor; unless set, the smallest dose of each axis"
    )
    step_axis: str | None = choice(
        None, unit="axis", why="axis whose dose is the step, for runs that state no dose; unless set, steps are no dose"
    )
    step_dose: float = choice(
        1.0, unit="native units", low=1e-15, high=1e15, why="dose of one step on that axis (tokens in a batch, say)"
    )
    ranked_axis: str | None = choice(
        None, unit="axis", why="axis whose last checkpoints are the models that are ranked; unless set, every axis"
    )
    slope_errors: str = choice(
        "auto",
        unit="rule",
        options=("auto", "ols", "hc3", "seed"),
        why="standard errors of slopes; auto: clustered by seed where seeds repeat the grid, else ols",
    )
    seed_draws: str = choice(
        "auto",
        unit="rule",
        options=("auto", "checkpoint"),
        why="seed bootstrap of noise ranks; auto: whole seeds where checkpoints share them; else anew in each (paper)",
    )
    residual_draws: str = choice(
        "shared",
        unit="rule",
        options=("shared", "independent"),
        why="residual bootstrap of cost ranks: one draw of runs for all items, or one for each",
    )
    slopes: str = choice(
        "ols",
        unit="rule",
        options=("ols", "noise-corrected", "empirical-bayes"),
        why="slopes behind the weights: as estimated, scaled so that noise does not inflate M, or shrunk",
    )
    covariance: str = choice(
        "diagonal",
        unit="rule",
        options=("diagonal", "full"),
        why="noise behind the weights: each item's own, or with what seeds move together",
    )
    replicates: int = choice(1000, unit="draws", low=1, high=1_000_000, why="bootstraps of whole rankings (paper)")
    top_share: float = choice(0.10, unit="share", low=0, high=1, why="top of a ranking whose membership is rated")
    false_discovery: float = choice(
        0.05, unit="rate", low=1e-6, high=0.5, why="of items said to run against the rest (Benjamini and Hochberg)"
    )
    score_step: float = choice(
        0.01, unit="score", low=1e-6, high=1, why="difference of two models that seeds should be enough to show"
    )


@dataclass(frozen=True, slots=True)
class LabChoices(Checked):
    """The developer who answers the weights: none of this is in any data set."""

    prefix: ClassVar[str] = "lab."
    budget: float = choice(
        100_000.0,
        unit="US dollars",
        low=1e-9,
        high=1e15,
        why="what the developer would spend; fixes the curvature of its cost of effort",
    )
    calibration: str = choice(
        "auto",
        unit="rule",
        options=("auto", "uniform", "first-best"),
        why="weights under which it spends it; auto: uniform, or first-best where uniform lowers welfare",
    )
    curvature: float | None = choice(
        None, unit="reward / US dollar^2", low=1e-60, high=1e60, why="c0 of the cost of effort, instead of a budget"
    )
    risk_aversion: float = choice(
        1.0, unit="1 / reward", low=0, high=1e60, why="r of the weights that are written; see the sweep for others"
    )
    noise_prior: float | None = choice(
        None,
        unit="score^2",
        low=0,
        high=1e6,
        why="variance over seeds of every item where a panel cannot tell it; unless set, no weights then",
    )
    risk_values: tuple[float, ...] = choice(
        (1.0, 10.0, 100.0), unit="1 / reward", low=0, high=1e60, why="r at which efficiencies are tabulated"
    )


@dataclass(frozen=True, slots=True)
class PublishedChoices(Checked):
    """What weights a board can publish, and how sure they are said to be."""

    prefix: ClassVar[str] = "published."
    non_negative: bool = choice(
        True, unit="flag", why="no published weight below 0: with one, a model that solves the item loses score"
    )
    max_share: float | None = choice(
        None,
        unit="share",
        low=0,
        high=1,
        why="largest share of one item, so that none rules the score; unless set, no cap",
    )
    equal_within: str = choice(
        "none",
        unit="grouping",
        why="items of one group carry one weight, as boards of task means do: none, task, family (of the welfare "
        "contrast), another column of the item layer, or a CSV file of task,doc_id,group",
    )
    fixed_shares: str | None = choice(
        None, unit="file", why="shares that are settled already: a CSV file of task,doc_id,share"
    )
    at_most: int | None = choice(
        None, unit="items", low=1, high=1_000_000_000, why="items that carry a weight; unless set, any number"
    )
    draws: int = choice(
        200, unit="draws", low=1, high=100_000, why="of slopes, noise and welfare behind intervals; 39 at least at 0.95"
    )
    top: int = choice(
        20, unit="items", low=1, high=1_000_000, why="heaviest items whose membership is rated over draws"
    )


@dataclass(frozen=True, slots=True)
class WelfareSourceChoice(Checked):
    """A table of item values that competes with the welfare in force: welfare is sign * (value - neutral)."""

    prefix: ClassVar[str] = "welfare_sources."
    file: str = field(metadata={})
    sign: int = field(default=1, metadata={"options": (1, -1)})
    neutral: float = field(default=0.0, metadata={"low": -1e15, "high": 1e15})
    column: str = field(default="value", metadata={})


@dataclass(frozen=True, slots=True)
class GameChoices(Checked):
    """What the ranking game of an audit takes as given, in place of what its file says."""

    prefix: ClassVar[str] = "game."
    rewards: str | None = choice(
        None,
        unit="reward of a rank",
        why="as `game --rewards`, e.g. per-rank:1000; unless set, as the game has them",
    )
    kappa: float | None = choice(
        None,
        unit="reward per unit of effort",
        low=1e-15,
        high=1e15,
        why="cost of a unit of effort for every developer; unless set, as the game has it",
    )
    tune_before_test: float | None = choice(
        None, unit="effort", low=0, high=1e15, why="common tuning before the test; unless set, as the game has it"
    )


@dataclass(frozen=True, slots=True)
class ResamplingChoices(Checked):
    """Bootstrap and permutation."""

    prefix: ClassVar[str] = "resampling."
    replicates: int = choice(10_000, unit="draws", low=100, high=10_000_000, why="bootstraps and permutations")
    level: float = choice(0.95, unit="probability", low=0.5, high=0.9999, why="level of every interval")
    seed: int = choice(1, unit="seed", low=0, high=2**63, why="same inputs and seed, same figures")


SOURCES_WHY = (
    "another table of item values: CSV or Parquet with task, doc_id and the column; sign and neutral are yours"
)
DEFAULT_PRICES = {
    "PT": Price(82.0, "10^9 pre-training tokens", "token", 1e9),
    "SFT": Price(0.20, "10^3 supervised examples", "example", 1e3),
    "RL": Price(0.50, "10^3 RL prompts", "prompt", 1e3),
}
PRICES_WHY = (
    "price of the unit in which the axis' slopes are given; defaults reproduce the published cost table "
    "(the paper's text has 1.00 for 10^3 RL prompts)"
)
