"""What the page of any report shows, apart from its figures: words, tables, choices and where it all comes from."""

from __future__ import annotations

from dataclasses import dataclass

from benchwright.config import Assumption
from benchwright.logs.source_file import SourceFile
from benchwright.report.findings import Finding
from benchwright.report.tables import ReportTable


@dataclass(frozen=True, slots=True)
class Section:
    """A section: name (of its figures and tables), label in the list of sections, heading, what it is about."""

    name: str
    label: str
    heading: str
    intro: str


@dataclass(frozen=True, slots=True, eq=False)
class Page:
    """A report in reading order.

    ``banners`` are warnings above all else, each a few words and a sentence; ``choices`` introduces the assumptions,
    ``provenance`` are the paragraphs under the files that were read.
    """

    title: str
    heading: str
    subtitle: str
    banners: tuple[tuple[str, str], ...]
    findings: tuple[Finding, ...]
    sections: tuple[Section, ...]
    tables: tuple[ReportTable, ...]
    choices: str
    assumptions: tuple[Assumption, ...]
    notes: tuple[str, ...]
    files: tuple[SourceFile, ...]
    provenance: tuple[str, ...]
    version: str
