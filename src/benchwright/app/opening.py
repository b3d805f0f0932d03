"""What ``benchwright serve`` is pointed at: a source of an audit, or a report that says what it was made from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from benchwright.config import Config
from benchwright.datasets import DATASETS
from benchwright.errors import BenchwrightError, UsageError
from benchwright.logs.item_layer import LAYER, MARKER
from benchwright.report.inputs import RECORD, AuditInputs, read_record

FROM_LAYER = (
    "What follows rests on the report's item layer: no scores of models, no draws of slopes beyond its ranks, no item "
    "texts."
)


@dataclass(frozen=True, slots=True)
class Served:
    """What to read, the choices to start from (None: the caller's), and what to say of it."""

    inputs: AuditInputs
    config: Config | None = None
    notes: tuple[str, ...] = ()


def served(inputs: AuditInputs) -> Served:
    """Return what a desk reads where ``inputs.source`` may be the folder of a report.

    Raises
    ------
    UsageError
        The folder holds a report without items: one of a game, or of weights of an older version.
    """
    folder = None if inputs.source is None else Path(str(inputs.source))
    if folder is None or not (folder / MARKER).is_file():
        return Served(inputs)
    if not (folder / RECORD).is_file():
        return _from_layer(folder, inputs, "This report was written by an older version and does not say its source.")
    try:
        read, config = read_record(folder)
    except BenchwrightError as error:
        return _from_layer(folder, inputs, f"{error.message}.")
    gone = _missing(read)
    if gone:
        return _from_layer(folder, inputs, f"The report was made from {gone}, which is not there any more.", config)
    given = {name: value for name in GIVEN if (value := getattr(inputs, name))}
    return Served(replace(read, **given), config)


GIVEN = ("without", "judges", "weights", "welfare", "loadings", "activities", "runs", "game")


def _missing(inputs: AuditInputs) -> str:
    """Return a path that is gone, "" where all are there."""
    given = (inputs.source, inputs.welfare, inputs.weights, inputs.activities, inputs.runs, inputs.game)
    for one in (*given, *inputs.judges, *inputs.loadings):
        text = "" if one is None else str(one)
        if text and text not in DATASETS and "://" not in text and "*" not in text and not Path(text).exists():
            return text
    return ""


def _from_layer(folder: Path, inputs: AuditInputs, why: str, config: Config | None = None) -> Served:
    hint = "name the source itself: benchwright serve SOURCE"
    if not (folder / LAYER).is_file():
        raise UsageError(f"{folder} holds a report without an item layer ({LAYER})", hint=hint)
    return Served(inputs, config, (f"{why} {FROM_LAYER} To have all, {hint}.",))
