"""Every error that benchwright raises on purpose.

::

    BenchwrightError            exit code
    |-- UsageError              2   a wrong argument, option, path or output folder
    |   `-- ConfigError         2   benchwright.toml: unknown key, wrong type, value out of range
    |-- DataError               1   the data cannot support an answer; carries its faults
    |   `-- NoWeightsError      1   this source supports no weights, though it may support an audit
    `-- FetchError              1   a public data set could not be brought, or is not what it should be

A message says what is wrong, where (file, line, column, item), and after ``Hint:`` what to do next.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

MAX_FAULTS_SHOWN = 10


class BenchwrightError(Exception):
    """Base of all errors raised on purpose; ``exit_code`` is what the command line returns."""

    exit_code = 1

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        self.message = message
        self.hint = hint
        super().__init__(message if hint is None else f"{message}\nHint: {hint}")


class UsageError(BenchwrightError, ValueError):
    """A wrong argument, option, path or output folder."""

    exit_code = 2


class ConfigError(UsageError):
    """benchwright.toml holds an unknown key, a wrong type or a value out of range."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing wrong with a data file: where it is and why it cannot be used."""

    file: str
    reason: str
    line: int | None = None
    column: str | None = None

    def __str__(self) -> str:
        where = self.file
        if self.line is not None:
            where += f", {'row' if self.file.endswith('.parquet') else 'line'} {self.line}"
        if self.column is not None:
            where += f", column `{self.column}`"
        return f"{where}: {self.reason}"


class DataError(BenchwrightError, ValueError):
    """The data cannot support an answer. ``faults`` lists all that was found, not only the first."""

    def __init__(self, message: str, *, faults: Sequence[Fault] = (), hint: str | None = None) -> None:
        self.faults = tuple(faults)
        shown = [f"  {fault}" for fault in self.faults[:MAX_FAULTS_SHOWN]]
        if len(self.faults) > MAX_FAULTS_SHOWN:
            shown.append(f"  ... and {len(self.faults) - MAX_FAULTS_SHOWN} more")
        super().__init__("\n".join([message, *shown]), hint=hint)


class NoWeightsError(DataError):
    """This source supports no weights: a section is missing, or no item has value and cost and noise."""


class FetchError(BenchwrightError):
    """A public data set could not be brought, or is not what it should be."""
