"""The report that the desk builds: what the command line makes of the same file of settings, byte for byte."""

from __future__ import annotations

import dataclasses
import shlex
from pathlib import Path

from benchwright import pipeline
from benchwright.app.desk import Desk, Progress
from benchwright.config import CONFIG_NAME, load_config
from benchwright.report.build import REPORT, write_report
from benchwright.report.inputs import AuditInputs

OPTIONS = {
    "without": "--without",
    "judges": "--judge",
    "weights": "--weights",
    "welfare": "--welfare",
    "loadings": "--loadings",
    "activities": "--activities",
    "runs": "--runs",
    "game": "--game",
    "engine": "--engine",
}


def build_report(desk: Desk, out: Path, *, overwrite: bool = False, progress: Progress | None = None) -> Path:
    """Audit the source of a desk again with the choices of its settings file, and write the report.

    Raises
    ------
    UsageError, DataError
        As for ``benchwright audit``.
    """
    REPORT.check(out, overwrite=overwrite)
    path = desk.settings_file
    given = {spec.name: getattr(desk.inputs, spec.name) for spec in dataclasses.fields(AuditInputs)}
    config = load_config(path if path.is_file() or path.name != CONFIG_NAME else None)
    report = pipeline.audit(**given, config=config, progress=progress)
    return write_report(report, out, overwrite=overwrite, progress=progress)


def command_of(inputs: AuditInputs, out: Path, *, settings_file: Path, overwrite: bool = False) -> str:
    """Return the command that writes the same report.

    Examples
    --------
    >>> command_of(AuditInputs("panel", welfare="my welfare"), Path("out"), settings_file=Path("benchwright.toml"))
    "benchwright audit panel --welfare 'my welfare' -o out"
    """
    words = ["benchwright", "audit", *([] if inputs.source is None else [str(inputs.source)])]
    for name, option in OPTIONS.items():
        value = getattr(inputs, name)
        if name == "engine" and value == "polars":
            continue
        for one in value if isinstance(value, tuple) else () if value is None else (value,):
            words += [option, str(one)]
    if settings_file != Path(CONFIG_NAME):
        words += ["--config", str(settings_file)]
    return shlex.join([*words, "-o", str(out), *(["--overwrite"] if overwrite else [])])
