"""The main job: a source of items in, an audit with weights out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl

from benchwright import __version__
from benchwright.auditing.item_audit import audit_items
from benchwright.auditing.results import ItemAudit
from benchwright.config import Config
from benchwright.datasets import DATASETS, load_dataset
from benchwright.errors import DataError, Fault, UsageError
from benchwright.logs.item_tables import ITEM, SECTIONS, ItemTables, read_item_tables
from benchwright.logs.tabular import Column, Table, read_table
from benchwright.mechanism.item_weights import ItemWeights, weigh_items
from benchwright.report.contents import AuditReport
from benchwright.simulate import simulate_item_tables

USER_WEIGHTS = Table((Column("task", "text"), Column("doc_id", "id"), Column("weight", "number")), ITEM)


def audit(
    source: str | Path | None = None,
    *,
    config: Config | None = None,
    without: Sequence[str] = (),
    judges: Sequence[str | Path] = (),
    weights: str | Path | None = None,
    progress: Callable[[str], None] | None = None,
) -> AuditReport:
    """Audit the items of a source and solve for the weights of its score.

    Parameters
    ----------
    source
        A folder of published item tables, the name of a registered data set, or None for the built-in,
        simulated example.
    config
        Every choice; defaults where None. ``load_config`` reads one from a file.
    without
        Sections to leave out: "welfare", "improvability", "noise".
    judges
        Further judges' loadings, compared in the robustness table.
    weights
        A CSV file of task,doc_id,weight: a scheme to judge beside the built-in ones.
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
    >>> report = audit()
    >>> report.source.simulated, report.weights.items.height > 0
    (True, True)
    """
    choices = config or Config()
    say = progress or (lambda _: None)
    say("reading")
    tables = _with_price_notes(_read(source, choices, without, judges), choices)
    say("audit")
    items = audit_items(tables, choices)
    say("weights")
    weighed, why = _weigh(items, choices, weights)
    return AuditReport(tables, items, weighed, why, choices, __version__)


def _read(
    source: str | Path | None, config: Config, without: Sequence[str], judges: Sequence[str | Path]
) -> ItemTables:
    axes = tuple(config.prices)
    if source is None:
        if without or judges:
            raise UsageError("`without` and `judges` need a SOURCE; the built-in example has all sections")
        return simulate_item_tables()
    if not Path(source).exists():
        known = set(DATASETS)
        if str(source) not in known:
            raise UsageError(
                f"SOURCE {source} does not exist",
                hint=f"give a folder of item tables, a data set ({', '.join(sorted(known))}), or nothing",
            )
        source = load_dataset(str(source))
    return read_item_tables(source, axes=axes, without=without, judges=judges)


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


def _weigh(audit: ItemAudit, config: Config, weights: str | Path | None) -> tuple[ItemWeights | None, str | None]:
    """Return the weights, or why there are none; a fault in the user's own weights is an error."""
    own = None if weights is None else _user_weights(Path(weights))
    try:
        weighed = weigh_items(audit, config, user_weights=own)
        if own is not None and not weighed.items.select(*ITEM).join(own, on=ITEM)["weight"].cast(pl.Boolean).any():
            raise DataError(
                f"{weights}: all weights are 0 on the items with welfare, cost and noise, which is no score",
                hint="give at least one of the items in weights.csv of a run without --weights another weight",
            )
        return weighed, None
    except DataError as error:
        if own is not None or (config.lab.calibration == "uniform" and len(audit.sections) == len(SECTIONS)):
            raise
        return None, error.message.rstrip(".")


def _user_weights(path: Path) -> pl.DataFrame:
    if not path.is_file():
        what = "is no regular file" if path.exists() else "does not exist"
        raise UsageError(f"weights file {path} {what}", hint="a CSV file with the columns task,doc_id,weight")
    faults: list[Fault] = []
    frame = read_table(path, USER_WEIGHTS, faults)
    if frame is None:
        raise DataError(f"{path}: the weights cannot be used", faults=faults)
    if not frame["weight"].cast(pl.Boolean).any():
        raise DataError(f"{path}: all weights are 0, which is no score", faults=[Fault(path.name, "all weights are 0")])
    return frame
