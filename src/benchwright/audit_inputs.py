"""What an audit reads: the built-in example, a panel, item tables, an earlier report, or a registered data set."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from benchwright import built_in
from benchwright.auditing.families import PRESETS
from benchwright.auditing.panel_tables import panel_tables
from benchwright.config import Config
from benchwright.datasets import DATASETS, load_dataset
from benchwright.errors import DataError, Fault, UsageError
from benchwright.estimating.estimates import PanelEstimates, estimate_panel
from benchwright.logs.item_layer import layer_path, read_item_layer
from benchwright.logs.item_tables import SECTIONS, TABLE_FILES, ItemTables, read_item_tables
from benchwright.logs.source_file import SourceFile, read_source
from benchwright.logs.user_weights import read_user_weights
from benchwright.mechanism.item_groups import FILES
from benchwright.panel.ingest import MANIFEST
from benchwright.report.inputs import AuditInputs


def in_force(inputs: AuditInputs, config: Config) -> tuple[AuditInputs, Config]:
    """Return what is read beside the source, and the choices: where no source is named, those of the built-in example
    under what is given.
    """
    if inputs.source is not None:
        return inputs, config
    welfare = built_in.WELFARE if inputs.welfare is None and "welfare" not in inputs.without else inputs.welfare
    runs = built_in.RUNS if inputs.runs is None else inputs.runs
    game = built_in.GAME if inputs.game is None else inputs.game
    return replace(inputs, welfare=welfare, runs=runs, game=game), built_in.over_example(config)


def read_inputs(inputs: AuditInputs, config: Config, *, progress: Callable[[str], None] | None = None) -> AuditSource:
    """Read what an audit rests on, but its game; errors are those of :func:`audit`."""
    say = (lambda _: None) if progress is None else progress
    asked, choices = in_force(inputs, config)
    source = built_in.PANEL if asked.source is None else asked.source
    without, welfare, runs, engine = asked.without, asked.welfare, asked.runs, asked.engine
    say("reading")
    estimates = folder = None
    judged = _Judged(inputs.judges, inputs.loadings, inputs.activities)
    if not isinstance(source, ItemTables) and is_panel(source):
        beside = None if welfare is None else _welfare_tables(welfare, choices, without, judged)
        if beside is None and judged.given:
            raise UsageError(
                f"`{judged.given}` needs the welfare tables of the panel's items", hint="add --welfare FOLDER"
            )
        folder = None if beside is None else welfare
        estimates = estimate_panel(source, config=choices, runs=runs, engine=engine, progress=progress)
        tables = _without(panel_tables(estimates, beside), without)
        if inputs.source is None:
            files = (*built_in.example_files(), *tables.files)
            tables = replace(tables, name=built_in.NAME, about=built_in.MEASURED, files=files)
        else:
            tables = replace(tables, files=(*_panel_files(source, runs), *tables.files))
    else:
        for name, given in (("welfare", welfare), ("runs", runs), ("engine", None if engine == "polars" else engine)):
            if given is not None:
                raise UsageError(f"`{name}` goes with a panel, and SOURCE is none", hint="make one: benchwright ingest")
        tables, folder = _read(source, choices, without, judged)
        tables = _with_price_notes(tables, choices)
    own = None
    if inputs.weights is not None:
        own, file = read_user_weights(inputs.weights)
        tables = with_file(tables, file)
    return AuditSource(inputs, choices, tables, estimates, own, None if folder is None else Path(folder))


@dataclass(frozen=True, slots=True, eq=False)
class AuditSource:
    """What an audit rests on, as read: ``config`` is in force, ``own`` are weights of the user, ``folder`` holds the
    welfare tables.
    """

    inputs: AuditInputs
    config: Config
    tables: ItemTables
    estimates: PanelEstimates | None
    own: pl.DataFrame | None
    folder: Path | None


def is_panel(source: str | Path) -> bool:
    """Return whether a source is a panel's folder, or Parquet files of rows, here or at a URI."""
    if layer_path(source) is not None:
        return False
    text = str(source)
    if (Path(source) / MANIFEST).is_file() or "://" in text or text.startswith("file:"):
        return True
    if "*" in text or Path(source).suffix == ".parquet":
        return True
    folder = Path(source)
    tables = folder.is_dir() and any(True for pattern in TABLE_FILES for _ in folder.glob(pattern))
    return folder.is_dir() and not tables and any(True for _ in folder.rglob("*.parquet"))


def _panel_files(source: str | Path, runs: str | Path | None) -> tuple[SourceFile, ...]:
    """Return what tells a panel's content apart: its manifest, which lists its logs; and what says more of its runs."""
    paths = [Path(source) / MANIFEST, *([] if runs is None else [Path(runs)])]
    read = [read_source(path, []) for path in paths if path.is_file()]
    return tuple(one[1] for one in read if one is not None)


@dataclass(frozen=True, slots=True)
class _Judged:
    """What a caller puts beside a source's welfare tables, or in their place."""

    judges: tuple[str | Path, ...]
    loadings: tuple[str | Path, ...]
    activities: str | Path | None

    @property
    def given(self) -> str:
        """Return the name of the first argument that is given, "" where none is."""
        return "judges" if self.judges else "loadings" if self.loadings else "activities" if self.activities else ""

    def read(self, folder: str | Path, config: Config, without: Sequence[str]) -> ItemTables:
        return read_item_tables(
            folder,
            axes=tuple(config.prices),
            without=without,
            judges=self.judges,
            loadings=self.loadings,
            activities=self.activities,
        )


def _welfare_tables(folder: str | Path, config: Config, without: Sequence[str], judged: _Judged) -> ItemTables:
    """Read the welfare tables of a folder and nothing else of it."""
    left = {"improvability", "noise", *without}
    if "welfare" in left:
        raise UsageError("--welfare and --without welfare contradict each other")
    return judged.read(folder, config, tuple(left))


def _without(tables: ItemTables, without: Sequence[str]) -> ItemTables:
    """Leave sections of tables out on request; of a panel's, welfare was not read then."""
    unknown = set(without) - set(SECTIONS)
    if unknown:
        raise UsageError(f"`without` must name sections of {', '.join(SECTIONS)}, got {', '.join(sorted(unknown))}")
    if "improvability" in without:
        tables = replace(tables, cost=None, axes=())
    if "noise" in without:
        tables = replace(tables, noise=None, margins=None)
    if "welfare" in without:
        tables = replace(tables, activities={}, loadings={}, activity_draws={}, welfare=None)
    return tables


def _read(
    source: str | Path | ItemTables, config: Config, without: Sequence[str], judged: _Judged
) -> tuple[ItemTables, str | Path | None]:
    """Return the tables of a source that is no panel, and the folder that they were read from, if there is one."""
    if isinstance(source, ItemTables):
        if judged.given:
            raise UsageError(f"`{judged.given}` goes with a folder, and the source is tables in memory")
        return _without(source, without), None
    layer = layer_path(source)
    if layer is not None:
        if judged.given:
            raise UsageError(f"`{judged.given}` needs the item tables of a source; the item layer keeps no loadings")
        return read_item_layer(layer, axes=tuple(config.prices), without=without), None
    if not Path(source).exists():
        known = set(DATASETS)
        if str(source) not in known:
            raise UsageError(
                f"SOURCE {source} does not exist",
                hint=f"give a panel, a folder of item tables, a data set ({', '.join(sorted(known))}), or nothing",
            )
        source = load_dataset(str(source))
    tables = judged.read(source, config, without)
    if without:
        left_out = ", ".join(section for section in SECTIONS if section in without)
        tables = replace(tables, notes=(*tables.notes, f"Left out on request: {left_out}."))
    return tables, source


def _with_price_notes(tables: ItemTables, config: Config) -> ItemTables:
    """Add a note for each axis that the user priced and the source has no slopes for."""
    if tables.cost is None:
        return tables
    notes = [
        f"{config.sources[key]}: {key} is set, but cost.csv has no column beta_{axis.lower()}, so it is not used."
        for axis in config.prices
        if (key := f"prices.{axis}") in config.sources and axis not in tables.axes
    ]
    return replace(tables, notes=(*tables.notes, *notes))


def with_file(tables: ItemTables, file: SourceFile) -> ItemTables:
    return tables if file in tables.files else replace(tables, files=(*tables.files, file))


def with_named_files(tables: ItemTables, config: Config) -> ItemTables:
    """Add the files that the configuration names to the files of the report."""
    families, published = config.families, config.published
    maps = (families.welfare, families.robustness, families.noise)
    names = [name for name in maps if name != "auto" and name not in PRESETS]
    names += [name for name in (published.equal_within, published.fixed_shares) if name and Path(name).suffix in FILES]
    names += [source.file for source in config.welfare_sources.values()]
    for name in dict.fromkeys(names):
        faults: list[Fault] = []
        source = read_source(Path(name), faults)
        if source is None:
            raise DataError(f"{name} cannot be used", faults=faults)
        tables = with_file(tables, source[1])
    return tables
