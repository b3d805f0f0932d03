"""What the welfare of items rests on: who judged, how far judges agree, how sure values are, what would change it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import polars as pl

from benchwright._json import json_safe
from benchwright.auditing.activity_alternatives import SCHEMA as ALTERNATIVES_SCHEMA
from benchwright.auditing.results import WelfareAudit
from benchwright.config import Config
from benchwright.errors import DataError, Fault
from benchwright.judge.activity_folder import ALTERNATIVES
from benchwright.judge.agreement import Agreement
from benchwright.logs.item_tables import ItemTables
from benchwright.logs.source_file import SourceFile, read_source
from benchwright.mechanism.item_weights import ItemWeights
from benchwright.report.judges import JudgeRecord, Raters, agreement_of, judge_records, raters_of
from benchwright.report.welfare_changes import activity_intervals, alternative_notes, welfare_changes


@dataclass(frozen=True, slots=True)
class WelfareInputs:
    """Where the welfare of an audit came from: the source's folder, and what was named beside it."""

    folder: Path | None = None
    judges: tuple[str | Path, ...] = ()
    loadings: tuple[str | Path, ...] = ()
    activities: str | Path | None = None


@dataclass(frozen=True, slots=True, eq=False)
class WelfareEvidence:
    """What the welfare of items rests on.

    Attributes
    ----------
    judges
        Who made each judge's lists.
    agreement
        Of these judges; None for fewer than two.
    raters
        What a source's own raters say; None where it has none.
    intervals
        Of the values of activities (``welfare_changes.activity_intervals``); None without draws.
    level
        Of these intervals.
    changes
        What other choices would change (``welfare_changes.welfare_changes``).
    files, notes
        What was read for it, and what a reader should know.
    """

    judges: tuple[JudgeRecord, ...]
    agreement: Agreement | None
    raters: Raters | None
    intervals: pl.DataFrame | None
    level: float
    changes: pl.DataFrame
    files: tuple[SourceFile, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def baseline(self) -> bool:
        """Whether lists of the offline baseline are part of the welfare of items."""
        return any(judge.baseline and judge.counts for judge in self.judges)

    def to_frame(self) -> pl.DataFrame:
        """Return what other choices would change."""
        return self.changes

    def to_dict(self) -> dict[str, Any]:
        """Return all figures in types that JSON knows."""
        return dict(
            json_safe(
                {
                    "judges": [asdict(judge) for judge in self.judges],
                    "agreement": None if self.agreement is None else self.agreement.to_dict(),
                    "raters": None
                    if self.raters is None
                    else {
                        "agreement": None if self.raters.agreement is None else self.raters.agreement.to_dict(),
                        "first": self.raters.first,
                        "alone": self.raters.table.to_dicts(),
                    },
                    "activity_intervals": None if self.intervals is None else self.intervals.to_dicts(),
                    "level": self.level,
                    "what_would_change_the_ranking": self.changes.to_dicts(),
                }
            )
        )


def welfare_evidence(
    welfare: WelfareAudit | None,
    tables: ItemTables,
    weights: ItemWeights | None,
    config: Config,
    inputs: WelfareInputs,
) -> WelfareEvidence | None:
    """Return what the welfare of an audit rests on; None where no judge has a part in it.

    Raises
    ------
    DataError
        The source's raters, or the alternatives of the folder of activity values, have faults.
    """
    if welfare is None or not tables.main_loadings:
        return None
    choices = config.welfare
    values = tables.activities[choices.activity_score]
    agreement, notes = agreement_of(tables.loadings, values["activity"], config, kind="judges")
    first = None if welfare.contrast is None else welfare.contrast.first
    raters, rater_files, rater_notes = raters_of(inputs.folder, values, config, first=first)
    given = inputs.activities
    alternatives, file = (None, None) if given is None else _alternatives(Path(given) / ALTERNATIVES)
    return WelfareEvidence(
        judges=judge_records(tables, inputs.folder, inputs.judges, inputs.loadings),
        agreement=agreement,
        raters=raters,
        intervals=activity_intervals(tables, choices, config.resampling.level),
        level=config.resampling.level,
        changes=welfare_changes(welfare, tables, weights, config, alternatives),
        files=(*(() if file is None else (file,)), *_sources(rater_files)),
        notes=(*notes, *rater_notes, *(() if alternatives is None else alternative_notes(alternatives))),
    )


def _alternatives(path: Path) -> tuple[pl.DataFrame | None, SourceFile | None]:
    """Return the alternatives that a folder of activity values holds, and their file."""
    if not path.is_file():
        return None, None
    faults: list[Fault] = []
    read = read_source(path, faults)
    try:
        frame = None if read is None else pl.read_csv(read[0], schema_overrides=ALTERNATIVES_SCHEMA)
    except pl.exceptions.PolarsError as error:
        faults.append(Fault(path.name, f"is no table of alternatives: {str(error).splitlines()[0]}"))
        frame = None
    if frame is not None and (lacking := [name for name in ALTERNATIVES_SCHEMA if name not in frame.columns]):
        faults.append(Fault(path.name, "missing", column=lacking[0]))
    if faults or read is None:
        raise DataError(f"{path} cannot be used", faults=faults, hint="make it anew: benchwright activities RAW")
    return frame, read[1]


def _sources(paths: Sequence[Path]) -> list[SourceFile]:
    """Return the checksums of files."""
    faults: list[Fault] = []
    read = [read_source(path, faults) for path in paths]
    if faults:
        raise DataError(f"{faults[0].file} cannot be read", faults=faults)
    return [one[1] for one in read if one is not None]
