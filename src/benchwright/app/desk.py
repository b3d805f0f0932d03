"""The desk without its page: one source that was read once, and what follows from it under other choices.

Stages are those of :mod:`benchwright.pipeline` and the main job calls the same functions; here each is kept by the
choices that it depends on:

==========  =====================================================================  =================================
stage       depends on                                                             function
==========  =====================================================================  =================================
source      nothing that a lever moves; read once                                  ``read_inputs``
audit       prices (dollars only; a panel's cost ranks have no intervals then)     ``audit_items``
weights     welfare, prices, lab, published                                        ``weigh_at_estimates``
board       the same                                                               ``board_of``
game        game                                                                   ``open_game(...).answer``
report      all of them; only on demand, as it draws                               ``report_on``
==========  =====================================================================  =================================
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from pathlib import Path
from threading import RLock
from typing import Any, Generic, TypeVar, cast

import polars as pl

from benchwright import __version__, audit_inputs, pipeline
from benchwright.auditing.improvability import audit_improvability
from benchwright.auditing.item_audit import audit_items
from benchwright.auditing.items import item_layer
from benchwright.auditing.results import ItemAudit
from benchwright.board.measured import measured_board
from benchwright.board.results import Leaderboard
from benchwright.config import CONFIG_NAME, Config
from benchwright.errors import BenchwrightError
from benchwright.estimating.measure import ITEM
from benchwright.game_answers.inputs import GameResult
from benchwright.game_answers.opened import OpenedGame, open_game
from benchwright.mechanism.point_weights import PointWeights
from benchwright.panel.ingest import MANIFEST
from benchwright.panel.panel import Panel
from benchwright.report.contents import OF_WEIGHTS, AuditReport
from benchwright.report.inputs import AuditInputs

Progress = Callable[[str], None]
Value = TypeVar("Value")
RANKS = ("rank_headline", "rank_lo", "rank_hi", "cheapest_probability")
KEPT = 16  # settings whose answers are kept


class Kept(Generic[Value]):
    """The latest answers of a stage by what they depend on; two who ask for the same wait for one computation."""

    def __init__(self, size: int = KEPT) -> None:
        self._size, self._lock = size, RLock()
        self._values: OrderedDict[Hashable, Value] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """Return the answer for ``key``, made where it is not there."""
        with self._lock:
            if key not in self._values:
                self._values[key] = make()
                if len(self._values) > self._size:
                    self._values.popitem(last=False)
            self._values.move_to_end(key)
            return self._values[key]

    def __contains__(self, key: Hashable) -> bool:
        with self._lock:
            return key in self._values


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """Weights and board under some choices, at the estimates; ``no_...`` says why one is missing."""

    desk: Desk
    config: Config
    audit: ItemAudit
    weights: PointWeights | None
    no_weights: str | None

    @property
    def board(self) -> Leaderboard | None:
        """The board under the published weights, scored when it is first asked for."""
        return self.desk.board(self)[0]

    @property
    def no_board(self) -> str | None:
        """Why there is no board."""
        return self.desk.board(self)[1]


class Desk:
    """One source and its answers under other choices; several browsers may ask at once.

    Parameters
    ----------
    inputs, config
        What an audit reads, and the choices that the desk starts from.
    notes
        What to say of the source above all else.
    settings_file
        Where settings are written.
    progress
        Called with a short text at each step of reading.

    Raises
    ------
    UsageError, DataError, FetchError
        As for :func:`benchwright.audit`.
    """

    def __init__(
        self,
        inputs: AuditInputs,
        config: Config | None = None,
        *,
        notes: tuple[str, ...] = (),
        settings_file: str | Path = CONFIG_NAME,
        progress: Progress | None = None,
    ) -> None:
        say = (lambda _: None) if progress is None else progress
        start = Config() if config is None else config
        game = audit_inputs.in_force(inputs, start)[0].game
        self.opened: OpenedGame | None = None if game is None else open_game(game, progress=progress)
        self.source = audit_inputs.read_inputs(inputs, start, progress=progress)
        self.inputs, self.config, self.notes = self.source.inputs, self.source.config, notes
        self.settings_file = Path(settings_file)
        estimates = self.source.estimates
        self._values = None if estimates is None else measured_board(estimates.measured)
        say("audit")
        self._audit = audit_items(self.source.tables, self.config, estimates=self.source.estimates)
        self._audits: Kept[ItemAudit] = Kept()
        self._views: Kept[View] = Kept()
        self._boards: Kept[tuple[Leaderboard | None, str | None]] = Kept()
        self._games: Kept[GameResult] = Kept()
        self._reports: Kept[AuditReport] = Kept(2)
        self._shown: Kept[Any] = Kept(4 * KEPT)
        say("weights")
        self.start = self.view(self.config)

    @property
    def name(self) -> str:
        """How the source is called."""
        return self.source.tables.name

    def audit(self, config: Config) -> ItemAudit:
        """Return the audit at these prices."""
        tables = self.source.tables
        if config.prices == self.config.prices or tables.cost is None:
            return self._audit
        cost = tables.cost if self.source.estimates is None else tables.cost.drop(RANKS, strict=False)

        def priced() -> ItemAudit:
            made = audit_improvability(cost, tables.axes, prices=config.prices, limits=config.eligibility)
            return replace(self._audit, improvability=made)

        return self._audits.get(_prices(config), priced)

    def view(self, config: Config) -> View:
        """Return weights at the estimates and the board under them.

        Raises
        ------
        UsageError, DataError
            Choices that clash.
        """
        return self._views.get(_of_weights(config), lambda: self._view(config))

    def _view(self, config: Config) -> View:
        audit = self.audit(config)
        weights, why = pipeline.weigh_at_estimates(self.source, audit, config)
        return View(self, config, audit, weights, why)

    def board(self, view: View) -> tuple[Leaderboard | None, str | None]:
        """Return the board under the weights of a view, or why there is none."""

        def scored() -> tuple[Leaderboard | None, str | None]:
            estimates = self.source.estimates
            return pipeline.board_of(view.weights, view.no_weights, estimates, view.config, values=self._values)

        return self._boards.get(_of_weights(view.config), scored)

    def game(self, config: Config, *, intervals: bool = True) -> GameResult | None:
        """Return what the ranking game says under these choices, None where there is no game."""
        opened = self.opened
        if opened is None:
            return None
        choices = config.game if opened.movable else type(config.game)()
        return self._games.get((choices, intervals), lambda: opened.answer(choices, intervals=intervals))

    def report(self, config: Config, *, progress: Progress | None = None) -> AuditReport:
        """Return the whole report under these choices, draws and all; may take a while."""
        source = replace(self.source, config=config)

        def whole() -> AuditReport:
            return pipeline.report_on(source, self.audit(config), None, progress=progress)

        return self._reports.get(_of_weights(config), whole)

    def has_report(self, config: Config) -> bool:
        """Whether the whole report under these choices is there already."""
        return _of_weights(config) in self._reports

    def items(self, config: Config) -> pl.DataFrame:
        """Return the item layer under these choices, with weights at the estimates."""
        view = self.view(config)

        def layer() -> pl.DataFrame:
            weights = None
            if view.weights is not None:
                names = [name for name in view.weights.items.columns if name.startswith(OF_WEIGHTS)]
                weights = view.weights.items.select(*ITEM, *names)
            return item_layer(view.audit, topics=self.source.tables.topics, weights=weights)

        return self.kept("items", config, layer)

    def at_start(self, config: Config) -> bool:
        """Whether no lever of the weights is moved."""
        return _of_weights(config) == _of_weights(self.config)

    def kept(self, what: str, config: Config, make: Callable[[], Value]) -> Value:
        """Return something that is made of the weights' choices, the game's, or of a report, and kept beside them."""
        key = (what, _of_weights(config), config.game, self.has_report(config))
        return cast("Value", self._shown.get(key, make))

    def text(self, task: str, doc_id: object) -> tuple[str | None, str]:
        """Return the text of an item, or None and why there is none."""
        folder = Path(str(self.inputs.source)) if self.inputs.source is not None else None
        if folder is None or not (folder / MANIFEST).is_file():
            return None, "the source is no panel, so it keeps no item texts"
        try:
            rows = Panel.open(folder).items().filter(task=task, doc_id=str(doc_id)).select("text").head(1).collect()
        except BenchwrightError as error:
            return None, error.message
        if rows.height:
            return str(rows["text"][0]), ""
        return None, "the panel was read without item texts: benchwright ingest LOG... -o PANEL --keep-text"

    @property
    def axes(self) -> tuple[str, ...]:
        """Effort axes that have slopes and a price."""
        return tuple(axis for axis in self.source.tables.axes if axis in self.config.prices)

    def bare(self, config: Config) -> AuditReport:
        """Return the audit at these prices alone, as a report without weights, board or game."""
        source = self.source
        return AuditReport(source.tables, self.audit(config), None, None, config, __version__, source.estimates)

    def audited(self, config: Config, make: Callable[[AuditReport], Value]) -> Value:
        """Return something that is made of the audit alone, and kept by its prices."""
        return cast("Value", self._shown.get(("audit", _prices(config)), lambda: make(self.bare(config))))


def _prices(config: Config) -> Hashable:
    return tuple(config.prices.items())


def _of_weights(config: Config) -> Hashable:
    return config.welfare, config.lab, config.published, _prices(config)
