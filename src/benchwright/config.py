"""Every normative or economic choice of a run: default, unit, reason, and where its value came from.

One optional ``benchwright.toml`` sets them; the command line may override some. A report prints all of
them, so that a reader sees what was assumed and not only what was computed. To add a choice, add a field
with :func:`~benchwright._choice.choice` to the section it belongs to: reading, checking,
printing and ``benchwright config`` follow from that row. A section checks its values whenever one is made.
"""

from __future__ import annotations

import dataclasses
import difflib
import re
import tomllib
import typing
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from benchwright._choice import Checked, choice
from benchwright.errors import ConfigError

CONFIG_NAME = "benchwright.toml"
AXIS = re.compile(r"[A-Za-z][A-Za-z0-9_]*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Price(Checked):
    """US dollars for one slope unit of an effort axis, and what that unit is."""

    usd: float = field(metadata={"low": 1e-15, "high": 1e15})
    per: str


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
        why="K of the published panel; only draws the reference line Z = 1/sqrt(K)",
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
    risk_values: tuple[float, ...] = choice(
        (1.0, 10.0, 100.0), unit="1 / reward", low=0, high=1e60, why="r at which efficiencies are tabulated"
    )


@dataclass(frozen=True, slots=True)
class ResamplingChoices(Checked):
    """Bootstrap and permutation."""

    prefix: ClassVar[str] = "resampling."
    replicates: int = choice(10_000, unit="draws", low=100, high=10_000_000, why="bootstraps and permutations")
    level: float = choice(0.95, unit="probability", low=0.5, high=0.9999, why="level of every interval")
    seed: int = choice(1, unit="seed", low=0, high=2**63, why="same inputs and seed, same figures")


DEFAULT_PRICES = {
    "PT": Price(82.0, "10^9 pre-training tokens"),
    "SFT": Price(0.20, "10^3 supervised examples"),
    "RL": Price(0.50, "10^3 RL prompts"),
}
PRICES_WHY = (
    "price of the unit in which the axis' slopes are given; defaults reproduce the published cost table "
    "(the paper's text has 1.00 for 10^3 RL prompts)"
)


@dataclass(frozen=True, slots=True)
class Assumption:
    """One choice as a report prints it."""

    key: str
    value: Any
    unit: str
    default: Any
    source: str
    why: str


@dataclass(frozen=True, slots=True)
class Config:
    """All choices of a run. ``sources`` maps a dotted key to the place that set it."""

    welfare: WelfareChoices = field(default_factory=WelfareChoices)
    families: FamilyChoices = field(default_factory=FamilyChoices)
    prices: Mapping[str, Price] = field(default_factory=lambda: dict(DEFAULT_PRICES))
    eligibility: EligibilityChoices = field(default_factory=EligibilityChoices)
    lab: LabChoices = field(default_factory=LabChoices)
    resampling: ResamplingChoices = field(default_factory=ResamplingChoices)
    sources: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _check_axes(self.prices)

    def assumptions(self) -> tuple[Assumption, ...]:
        """List every choice with its value, unit, default, source and reason."""
        rows = []
        for section in SECTIONS:
            chosen = getattr(self, section)
            for spec in dataclasses.fields(chosen):
                key = f"{section}.{spec.name}"
                value = getattr(chosen, spec.name)
                rows.append(
                    Assumption(
                        key,
                        value,
                        spec.metadata["unit"],
                        spec.default,
                        self.sources.get(key, "default"),
                        spec.metadata["why"],
                    )
                )
        for axis, price in self.prices.items():
            key = f"prices.{axis}"
            default = DEFAULT_PRICES[axis].usd if axis in DEFAULT_PRICES else None
            source = self.sources.get(key, "default")
            rows.append(Assumption(key, price.usd, f"US dollars per {price.per}", default, source, PRICES_WHY))
        return tuple(rows)

    def replace(self, values: Mapping[str, Any], *, source: str) -> Config:
        """Return a copy with dotted keys set to new values, checked, and marked as set by ``source``.

        >>> Config().replace({"welfare.neutral": 2.5}, source="--set").welfare.neutral
        2.5
        """
        sections: dict[str, dict[str, Any]] = {}
        for key, value in values.items():
            section, _, name = key.partition(".")
            sections.setdefault(section, {})[name] = value
        return _apply(self, sections, source)


SECTIONS = ("welfare", "families", "eligibility", "lab", "resampling")


def load_config(path: str | Path | None = None) -> Config:
    """Read choices from a TOML file; without ``path``, from ``benchwright.toml`` here if it exists.

    Raises
    ------
    ConfigError
        The file is missing or no TOML, a key is unknown (with the nearest known one), or a value has the
        wrong type or lies outside its range.
    """
    if path is None:
        file = Path(CONFIG_NAME)
        if not file.is_file():
            return Config()
    else:
        file = Path(path)
    try:
        data = tomllib.loads(file.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise ConfigError(
            f"{file}: cannot be read: {error.strerror}", hint=f"`benchwright config > {CONFIG_NAME}` writes one"
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file}: not a TOML file: {error}") from None
    return _apply(Config(), data, file.name)


def default_toml() -> str:
    """Return a ``benchwright.toml`` with every default, its unit and its reason as comments."""
    lines = ["# Every choice of a benchwright run. Remove what you do not change.", ""]
    for section in SECTIONS:
        spec = Config.__dataclass_fields__[section].default_factory
        lines.append(f"[{section}]")
        for entry in dataclasses.fields(typing.cast(Any, spec)):
            lines.append(f"# {entry.metadata['why']} ({entry.metadata['unit']})")
            prefix = "# " if entry.default is None else ""
            value = 1e-9 if entry.default is None else entry.default
            lines.append(f"{prefix}{entry.name} = {_toml(value)}")
        lines.append("")
    lines += [f"# {PRICES_WHY}", "[prices]"]
    lines += [f'{axis} = {{ usd = {price.usd}, per = "{price.per}" }}' for axis, price in DEFAULT_PRICES.items()]
    return "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    if isinstance(value, tuple):
        return "[" + ", ".join(_toml(part) for part in value) + "]"
    return f'"{value}"' if isinstance(value, str) else repr(value)


@contextmanager
def _set_by(source: str) -> Iterator[None]:
    """Say in an error where the value came from."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError(f"{source}: {error.message}", hint=error.hint) from None


def _apply(config: Config, data: Mapping[str, Any], source: str) -> Config:
    changed: dict[str, Any] = {}
    sources = dict(config.sources)
    with _set_by(source):
        for section, entries in data.items():
            _known(section, (*SECTIONS, "prices"), "section")
            if not isinstance(entries, Mapping):
                raise ConfigError(f"`{section}` must be a table, write [{section}]")
            sources |= {f"{section}.{name}": source for name in entries}
            if section == "prices":
                _check_axes([*config.prices, *entries])
                prices = {axis: _price(axis, entry, config.prices) for axis, entry in entries.items()}
                changed["prices"] = dict(config.prices) | prices
                continue
            chosen = getattr(config, section)
            for name in entries:
                _known(name, tuple(entry.name for entry in dataclasses.fields(chosen)), f"key in [{section}]")
            changed[section] = dataclasses.replace(chosen, **entries)
        return dataclasses.replace(config, **changed, sources=sources)


def _known(name: str, names: tuple[str, ...], kind: str) -> None:
    if name not in names:
        near = difflib.get_close_matches(name, names, n=1)
        hint = f"did you mean `{near[0]}`?" if near else f"known: {', '.join(names)}"
        raise ConfigError(f"unknown {kind}: `{name}`", hint=hint)


def _check_axes(axes: Iterable[str]) -> None:
    """Axes become column names (beta_<axis>, lower case), so their names are plain and differ by more than case."""
    spelt: dict[str, str] = {}
    for axis in axes:
        if not AXIS.fullmatch(axis):
            raise ConfigError(
                f"prices: the axis name {axis!r} must be letters, digits and _",
                hint='write NAME = { usd = NUMBER, per = "TEXT" }; the table needs a column beta_name',
            )
        if spelt.setdefault(axis.lower(), axis) != axis:
            raise ConfigError(f"unknown key in [prices]: `{axis}`", hint=f"did you mean `{spelt[axis.lower()]}`?")


def _price(axis: str, entry: Any, known: Mapping[str, Price]) -> Price:
    """Return a price; a bare number keeps the slope unit of an axis that has one."""
    if axis in known and isinstance(entry, (int, float)):
        entry = {"usd": entry, "per": known[axis].per}
    if not isinstance(entry, Mapping) or set(entry) != {"usd", "per"}:
        raise ConfigError(
            f"prices.{axis} must be {{ usd = NUMBER, per = TEXT }}", hint='e.g. { usd = 82.0, per = "10^9 tokens" }'
        )
    try:
        return Price(**entry)
    except ConfigError as error:
        raise ConfigError(f"prices.{axis}.{error.message}") from None
