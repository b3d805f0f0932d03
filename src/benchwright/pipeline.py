"""The main job: a source of items in, an audit with weights out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import polars as pl

from benchwright import __version__
from benchwright.audit_inputs import AuditSource, in_force, read_inputs, with_file, with_named_files
from benchwright.auditing.item_audit import audit_items
from benchwright.auditing.results import ItemAudit
from benchwright.board.measured import measured_board
from benchwright.board.results import Leaderboard
from benchwright.board.rules import ScoringRules
from benchwright.board.scoring import score_board
from benchwright.board.values import BoardValues
from benchwright.config import Config
from benchwright.errors import DataError, NoWeightsError, UsageError
from benchwright.estimating.estimates import PanelEstimates
from benchwright.game_answers.answer import GameAnswer
from benchwright.game_answers.inputs import GameResult, answer_file
from benchwright.game_answers.opened import options_of
from benchwright.logs.item_tables import ITEM, ItemTables
from benchwright.logs.source_file import SourceFile, read_source
from benchwright.mechanism.item_weights import ItemWeights, weigh_items
from benchwright.mechanism.point_weights import PointWeights, solve_items
from benchwright.mechanism.welfare_sources import read_welfare_sources
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
        tables = with_file(tables, file)
    tables = with_named_files(tables, choices)
    say("weights")
    weighed, why = weigh(read, items, choices)
    say("what welfare rests on")
    beside = WelfareInputs(read.folder, inputs.judges, inputs.loadings, inputs.activities)
    evidence = welfare_evidence(items.welfare, tables, weighed, choices, beside)
    for file in () if evidence is None else evidence.files:
        tables = with_file(tables, file)
    say("leaderboard")
    board, no_board = board_of(weighed, why, estimates, choices)
    return AuditReport(
        tables, items, weighed, why, choices, __version__, estimates, board, no_board, game, evidence, inputs
    )


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
