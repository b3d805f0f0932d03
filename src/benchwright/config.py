"""Every normative or economic choice of a run: default, unit, reason, and where its value came from.

One optional ``benchwright.toml`` sets them; the command line may override some. A report prints all of
them, so that a reader sees what was assumed and not only what was computed. The choices themselves are the fields of
:mod:`benchwright.choices`; a section checks its values whenever one is made.
"""

from __future__ import annotations

import dataclasses
import difflib
import json
import re
import tomllib
import typing
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchwright._shown import Shown, ShownPart, ShownTable, brief
from benchwright.choices import (
    DEFAULT_PRICES,
    PRICES_WHY,
    SOURCES_WHY,
    EligibilityChoices,
    EstimateChoices,
    FamilyChoices,
    GameChoices,
    LabChoices,
    Price,
    PublishedChoices,
    ResamplingChoices,
    WelfareChoices,
    WelfareSourceChoice,
)
from benchwright.errors import ConfigError

CONFIG_NAME = "benchwright.toml"
HOURLY = frozenset(("gpu_hours", "usd_per_gpu_hour"))  # of one slope unit, in place of its price
PRICED = frozenset(("usd", "per")), frozenset(("usd", "per", "unit", "units")) | HOURLY
BUILT_IN_SOURCES = ("automation", "augmentation")  # the two framings of the judged welfare
AXIS = re.compile(r"[A-Za-z][A-Za-z0-9_]*", re.ASCII)


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
class Config(Shown):
    """All choices of a run. ``sources`` maps a dotted key to the place that set it."""

    welfare: WelfareChoices = field(default_factory=WelfareChoices)
    families: FamilyChoices = field(default_factory=FamilyChoices)
    prices: Mapping[str, Price] = field(default_factory=lambda: dict(DEFAULT_PRICES))
    eligibility: EligibilityChoices = field(default_factory=EligibilityChoices)
    estimates: EstimateChoices = field(default_factory=EstimateChoices)
    lab: LabChoices = field(default_factory=LabChoices)
    published: PublishedChoices = field(default_factory=PublishedChoices)
    game: GameChoices = field(default_factory=GameChoices)
    resampling: ResamplingChoices = field(default_factory=ResamplingChoices)
    welfare_sources: Mapping[str, WelfareSourceChoice] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)

    def _told(self) -> Iterable[ShownPart]:
        rows = [(one.key, brief(one.value), one.unit, one.source) for one in self.assumptions()]
        yield ShownTable(("choice", "value", "unit", "set by"), rows)

    def __post_init__(self) -> None:
        _check_axes(self.prices)
        _check_source_names(self.welfare_sources)

    def assumptions(self) -> tuple[Assumption, ...]:
        """List every choice with its value, unit, default, source and reason; of ``[game]`` those that are set."""
        rows = []
        for section in SECTIONS:
            chosen = getattr(self, section)
            for spec in dataclasses.fields(chosen):
                key = f"{section}.{spec.name}"
                value = getattr(chosen, spec.name)
                if section == "game" and value is None:  # the game says it
                    continue
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
        for name, one in self.welfare_sources.items():
            key = f"welfare_sources.{name}"
            value = f"{one.sign:+d} * ({one.column} of {one.file} - {one.neutral:g})"
            rows.append(Assumption(key, value, "welfare", None, self.sources.get(key, "default"), SOURCES_WHY))
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

    def over(self, base: Config) -> Config:
        """Return ``base`` with what is set here, by a file or an option or otherwise than by default, in its place.

        >>> low = Config().replace({"lab.budget": 5.0, "welfare.neutral": 2.0}, source="low")
        >>> both = Config().replace({"welfare.neutral": 2.5}, source="--set").over(low)
        >>> both.lab.budget, both.welfare.neutral, both.sources["lab.budget"]
        (5.0, 2.5, 'low')
        """
        default = Config()
        new: dict[str, Any] = {}
        for name in SECTIONS:
            mine, without = getattr(self, name), getattr(default, name)
            keys = [spec.name for spec in dataclasses.fields(mine)]
            own = {
                key: getattr(mine, key)
                for key in keys
                if f"{name}.{key}" in self.sources or getattr(mine, key) != getattr(without, key)
            }
            new[name] = dataclasses.replace(getattr(base, name), **own)
        for name in TABLES:
            mine, without = getattr(self, name), getattr(default, name)
            own = {key: entry for key, entry in mine.items() if entry != without.get(key)}
            own |= {key: mine[key] for key in mine if f"{name}.{key}" in self.sources}
            new[name] = dict(getattr(base, name)) | own
        return Config(**new, sources={**base.sources, **self.sources})


SECTIONS = ("welfare", "families", "eligibility", "estimates", "lab", "published", "game", "resampling")
TABLES = ("prices", "welfare_sources")  # entries are named by the user


def load_config(path: str | Path | None = None, *, source: str | None = None) -> Config:
    """Read choices from a TOML file; without ``path``, from ``benchwright.toml`` here if it exists.

    ``source`` is what a report says that they were set by, the file's name by default.

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
    return _apply(Config(), data, file.name if source is None else source)


def default_toml() -> str:
    """Return a ``benchwright.toml`` that sets nothing: every default as a comment, under its reason and unit."""
    lines = ["# Every choice of a benchwright run, at its default. To change one, take the # off its line.", ""]
    for section in SECTIONS:
        spec = Config.__dataclass_fields__[section].default_factory
        lines.append(f"[{section}]")
        for entry in dataclasses.fields(typing.cast(Any, spec)):
            lines.append(f"# {entry.metadata['why']} ({entry.metadata['unit']})")
            unset = entry.default is None
            value = toml_value(_example(str(entry.type)) if unset else entry.default)
            lines.append(f"#{entry.name} = {value}{'  # by default unset' if unset else ''}")
        lines.append("")
    lines += [f"# {PRICES_WHY}", "[prices]"]
    for axis, price in DEFAULT_PRICES.items():
        lines.append(
            f'#{axis} = {{ usd = {price.usd}, per = "{price.per}", unit = "{price.unit}", units = {price.units:g} }}'
        )
    lines += ["", f"# {SOURCES_WHY}", "[welfare_sources]"]
    lines.append('#reviewers = { file = "values.csv", sign = 1, neutral = 0.0, column = "value" }')
    return "\n".join(lines) + "\n"


def _example(kind: str) -> Any:
    """Return a value to show where a choice is unset by default."""
    return 1e-9 if "float" in kind else 100 if "int" in kind else "name"


def toml_value(value: Any) -> str:
    """Return a value as TOML writes it.

    >>> print(toml_value({"usd": 0.5, "per": 'a "prompt"', "units": (1, 2)}))
    { usd = 0.5, per = "a \\"prompt\\"", units = [1, 2] }
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(toml_value, value)) + "]"
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{name} = {toml_value(part)}" for name, part in value.items()) + " }"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return repr(value)


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
            _known(section, (*SECTIONS, *TABLES), "section")
            if not isinstance(entries, Mapping):
                raise ConfigError(f"`{section}` must be a table, write [{section}]")
            sources |= {f"{section}.{name}": source for name in entries}
            if section == "prices":
                _check_axes([*config.prices, *entries])
                prices = {axis: _price(axis, entry, config.prices) for axis, entry in entries.items()}
                changed["prices"] = dict(config.prices) | prices
                continue
            if section == "welfare_sources":
                named = {name: _welfare_source(name, entry) for name, entry in entries.items()}
                changed[section] = dict(config.welfare_sources) | named
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


def _check_source_names(names: Iterable[str]) -> None:
    for name in names:
        if not AXIS.fullmatch(name) or name in BUILT_IN_SOURCES:
            raise ConfigError(
                f"welfare_sources: the name {name!r} must be letters, digits and _, and not "
                f"{' or '.join(BUILT_IN_SOURCES)}",
                hint='write NAME = { file = "values.csv", sign = 1, neutral = 0.0 }',
            )


def _welfare_source(name: str, entry: Any) -> WelfareSourceChoice:
    known = tuple(spec.name for spec in dataclasses.fields(WelfareSourceChoice))
    if not isinstance(entry, Mapping) or "file" not in entry:
        raise ConfigError(
            f"welfare_sources.{name} must be {{ file = TEXT, sign = 1 or -1, neutral = NUMBER }}",
            hint='e.g. { file = "values.csv", sign = 1, neutral = 0.0, column = "value" }',
        )
    for key in entry:
        _known(key, known, f"key in welfare_sources.{name}")
    return WelfareSourceChoice(**entry)


def _hourly(entry: Mapping[str, Any]) -> set[str]:
    """Return ``usd`` where GPU hours and their price stand for it; neither alone does, nor both beside it."""
    whole = entry.keys() >= HOURLY and "usd" not in entry
    return {"usd"} if whole else {"incomplete"} if HOURLY & entry.keys() else set()


def _price(axis: str, entry: Any, known: Mapping[str, Price]) -> Price:
    """Return a price; a bare number keeps the slope unit of an axis that has one."""
    if axis in known and isinstance(entry, (int, float)):
        kept = dataclasses.asdict(known[axis]) | {"usd": entry}
        entry = {name: value for name, value in kept.items() if value is not None}
    if not isinstance(entry, Mapping) or not PRICED[0] <= set(entry) | _hourly(entry) <= PRICED[1]:
        raise ConfigError(
            f"prices.{axis} must be {{ usd = NUMBER, per = TEXT }}",
            hint='e.g. { usd = 82.0, per = "10^9 tokens", unit = "token", units = 1e9 }; '
            "instead of usd, { gpu_hours = 0.13, usd_per_gpu_hour = 1.5, ... }",
        )
    try:
        given = dict(entry)
        hours = [Price(given.pop(name), name).usd for name in HOURLY if name in entry]
        if hours:
            given["usd"] = hours[0] * hours[1]
        return Price(**given)
    except ConfigError as error:
        raise ConfigError(f"prices.{axis}.{error.message}") from None
