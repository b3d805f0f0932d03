"""The main job: a source of items in, an audit with weights out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import polars as pl

from benchwright import __version__, built_in
from benchwright.auditing.families import PRESETS
from benchwright.auditing.item_audit import audit_items
from benchwright.auditing.panel_tables import panel_tables
from benchwright.auditing.results import ItemAudit
from benchwright.board.measured import measured_board
from benchwright.board.results import Leaderboard
from benchwright.board.rules import ScoringRules
from benchwright.board.scoring import score_board
from benchwright.board.values import BoardValues
from benchwright.config import Config
from benchwright.datasets import DATASETS, load_dataset
from benchwright.errors import DataError, Fault, NoWeightsError, UsageError
from benchwright.estimating.estimates import PanelEstimates, estimate_panel
from benchwright.game_answers.answer import GameAnswer
from benchwright.game_answers.inputs import GameResult, answer_file
from benchwright.game_answers.opened import options_of
from benchwright.logs.item_layer import layer_path, read_item_layer
from benchwright.logs.item_tables import ITEM, SECTIONS, TABLE_FILES, ItemTables, read_item_tables
from benchwright.logs.source_file import SourceFile, read_source
from benchwright.logs.user_weights import read_user_weights
from benchwright.mechanism.item_groups import FILES
from benchwright.mechanism.item_weights import ItemWeights, weigh_items
from benchwright.mechanism.point_weights import PointWeights, solve_items
from benchwright.mechanism.welfare_sources import read_welfare_sources
from benchwright.panel.ingest import MANIFEST
from benchwright.report.contents import NO_SCORES, AuditReport
from benchwright.report.inputs import AuditInputs
from benchwright.report.weight_files import published_scheme
from benchwright.report.welfare_evidence import WelfareInputs, welfare_evidence

BOARD_DRAWS = 1000
Weights = TypeVar("Weights", bound=PointWeights)


def audit(
    source: str | Path | ItemTables | None = None,
    *,
    config: Config | None = None,
    without: Sequence[str] = (),
    judges: Sequence[str | Path] = (),
    weights: str | Path | None = None,
    welfare: str | Path | None = None,
    loadings: Sequence[str | Path] = (),
    activities: str | Path | None = None,
    runs: str | Path | None = None,
    engine: str = "polars",
    game: GameResult | str | Path | None = None,
    progress: Callable[[str], None] | None = None,
) -> AuditReport:
    """Audit the items of a source and solve for the weights of its score.

    Parameters
    ----------
    source
        A panel, a folder of published item tables, an earlier report (or its items.parquet), the name of a registered
        data set, tables in memory (``simulate_item_tables`` draws some), or None for the built-in example, measured on
        tiny models. A panel is the folder that ``read_logs`` made, or its rows as Parquet (path, pattern or URI).
    config
        Every choice; defaults where None. ``load_config`` reads one from a file. The built-in example has prices and
        a budget of its own, which what is set here goes before.
    without
        Sections to leave out: "welfare", "improvability", "noise".
    judges
        Further judges' loadings, compared in the robustness table.
    weights
        A CSV file of task,doc_id,weight: a scheme to judge beside the built-in ones.
    welfare
        For a panel: a folder with the welfare tables of its items.
    loadings
        Judges' loadings that count in place of the source's own, which are then only compared; the mean of several.
    activities
        A folder that ``benchwright activities`` wrote: values of activities, and draws, in place of the source's own.
    runs
        For a panel: a table that says of its runs what the logs do not (seed, axis, dose, ...).
    engine
        For a panel: what computes, ``polars``, ``duckdb`` or ``spark``.
    game
        The ranking game of the same board: an answer, or a file that ``benchwright game`` reads.
    progress
        Called with a short text at each step.

    Returns
    -------
    AuditReport
        ``print`` it for the findings; ``write_report`` writes the folder.

    Raises
    ------
    UsageError, DataError, FetchError
        A source that does not exist, tables with faults, a data set that cannot be brought.

    Examples
    --------
    >>> from benchwright.simulate import simulate_item_tables
    >>> report = audit(simulate_item_tables())
    >>> report.source.simulated, report.weights.items.height
    (True, 330)
    """
    choices = Config() if config is None else config
    say = (lambda _: None) if progress is None else progress
    named, played = (game, None) if game is None or isinstance(game, str | Path) else (None, game)
    inputs = AuditInputs(
        source=source,
        without=tuple(without),
        judges=tuple(judges),
        weights=weights,
        welfare=welfare,
        loadings=tuple(loadings),
        activities=activities,
        runs=runs,
        engine=engine,
        game=named,
    )
    asked, choices = in_force(inputs, choices)
    files: tuple[SourceFile, ...] = ()
    if played is None and asked.game is not None:  # first: its faults come without a wait
        played = answer_file(asked.game, progress=say, **options_of(choices.game))
        files = _game_files(asked.game, played)
    read = read_inputs(inputs, choices, progress=progress)
    say("audit")
    items = audit_items(read.tables, read.config, estimates=read.estimates)
    report = report_on(read, items, played, files=files, progress=progress)
    told = game is named and not isinstance(source, ItemTables)
    return report if told else replace(report, inputs=None)


def in_force(inputs: AuditInputs, config: Config) -> tuple[AuditInputs, Config]:
    """Return what is read and the choices for it: where no source is named, the built-in example and its own choices
    under those that are set.
    """
    if inputs.source is not None:
        return inputs, config
    welfare = built_in.WELFARE if inputs.welfare is None and "welfare" not in inputs.without else inputs.welfare
    runs = built_in.RUNS if inputs.runs is None else inputs.runs
    game = built_in.GAME if inputs.game is None else inputs.game
    return replace(inputs, source=built_in.PANEL, welfare=welfare, runs=runs, game=game), built_in.over_example(config)


def read_inputs(inputs: AuditInputs, config: Config, *, progress: Callable[[str], None] | None = None) -> AuditSource:
    """Read what an audit rests on, but its game; errors are those of :func:`audit`."""
    say = (lambda _: None) if progress is None else progress
    asked, choices = in_force(inputs, config)
    source, without, welfare, runs, engine = asked.source, asked.without, asked.welfare, asked.runs, asked.engine
    assert source is not None  # noqa: S101  in_force names one
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
        for name, given in (("welfare", welfare), ("runs", runs), ("engine", None if engine == "polars" else engine)):
            if given is not None:
                raise UsageError(f"`{name}` goes with a panel, and SOURCE is none", hint="make one: benchwright ingest")
        tables, folder = _read(source, choices, without, judged)
        tables = _with_price_notes(tables, choices)
    own = None
    if inputs.weights is not None:
        own, file = read_user_weights(inputs.weights)
        tables = _with_file(tables, file)
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


def report_on(
    read: AuditSource,
    items: ItemAudit,
    game: GameResult | None,
    *,
    files: Sequence[SourceFile] = (),
    progress: Callable[[str], None] | None = None,
) -> AuditReport:
    """Return the report on audited items: weights, what welfare rests on, and the board; ``files`` are the game's."""
    say = (lambda _: None) if progress is None else progress
    inputs, choices, estimates = read.inputs, read.config, read.estimates
    tables = read.tables
    for file in files:
        tables = _with_file(tables, file)
    tables = _with_named_files(tables, choices)
    say("weights")
    weighed, why = weigh(read, items, choices)
    say("what welfare rests on")
    beside = WelfareInputs(read.folder, inputs.judges, inputs.loadings, inputs.activities)
    evidence = welfare_evidence(items.welfare, tables, weighed, choices, beside)
    for file in () if evidence is None else evidence.files:
        tables = _with_file(tables, file)
    say("leaderboard")
    board, no_board = board_of(weighed, why, estimates, choices)
    return AuditReport(
        tables, items, weighed, why, choices, __version__, estimates, board, no_board, game, evidence, inputs
    )


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


def _with_file(tables: ItemTables, file: SourceFile) -> ItemTables:
    return tables if file in tables.files else replace(tables, files=(*tables.files, file))


def _with_named_files(tables: ItemTables, config: Config) -> ItemTables:
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
        tables = _with_file(tables, source[1])
    return tables


def _game_files(path: str | Path, answer: GameResult) -> tuple[SourceFile, ...]:
    """Return the files that a ranking game was read from; a folder is none."""
    paths = [Path(path)]
    if isinstance(answer, GameAnswer) and answer.stated is not None and answer.stated.file != paths[0]:
        paths.append(answer.stated.file)
    read = [read_source(path, []) for path in paths if path.is_file()]
    return tuple(one[1] for one in read if one is not None)


def weigh(read: AuditSource, audit: ItemAudit, config: Config) -> tuple[ItemWeights | None, str | None]:
    """Return the weights, or why the source supports none; who gave weights of their own wants them judged."""
    sources = read_welfare_sources(config.welfare_sources)
    given: dict[str, Any] = {"user_weights": read.own, "estimates": read.estimates, "tables": read.tables}
    return _weighed(lambda: weigh_items(audit, config, sources=sources, **given), read.own)


def weigh_at_estimates(read: AuditSource, audit: ItemAudit, config: Config) -> tuple[PointWeights | None, str | None]:
    """Return the same weights without what draws say of them."""
    given: dict[str, Any] = {"user_weights": read.own, "estimates": read.estimates, "tables": read.tables}
    return _weighed(lambda: solve_items(audit, config, **given).weights, read.own)


def _weighed(solve: Callable[[], Weights], own: pl.DataFrame | None) -> tuple[Weights | None, str | None]:
    try:
        weighed = solve()
    except NoWeightsError as error:
        if own is not None:
            raise
        return None, error.message.rstrip(".")
    if own is not None and not weighed.items.select(*ITEM).join(own, on=ITEM)["weight"].cast(pl.Boolean).any():
        raise DataError(
            "the user's weights: all weights are 0 on the items with welfare, cost and noise, which is no score",
            hint="give at least one of the items in weights.csv of a run without --weights another weight",
        )
    return weighed, None


def board_of(
    weights: PointWeights | None,
    why: str | None,
    estimates: PanelEstimates | None,
    config: Config,
    *,
    values: BoardValues | None = None,
) -> tuple[Leaderboard | None, str | None]:
    """Return a panel's models under the published weights, or why there is no such board.

    ``values`` are those of ``measured_board``, where they are there already.
    """
    if estimates is None:
        return None, NO_SCORES
    if estimates.models is None:
        return None, estimates.reasons.get("models")
    scheme = None if weights is None else published_scheme(weights, config)
    if scheme is None:
        return None, why if weights is None else f"{weights.published.status}, so all published weights are 0"
    draws = config.resampling
    rules = ScoringRules(replicates=BOARD_DRAWS, confidence=draws.level, seed=draws.seed)
    try:
        board = measured_board(estimates.measured) if values is None else values
        return score_board(board, scheme, rules=rules), None
    except (DataError, UsageError) as error:
        return None, error.message
