"""Write a report folder: whole or not at all.

Everything is written into a hidden folder beside the target and moved into place at the end. A run that fails
or is interrupted leaves the target as it was; after one that was killed, the next run does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from benchwright._staging import Output
from benchwright.auditing.items import column_metadata
from benchwright.errors import DataError, Fault, NoWeightsError
from benchwright.game_answers.inputs import GameResult
from benchwright.logs.source_file import SourceFile, read_source
from benchwright.report.contents import AuditReport
from benchwright.report.inputs import RECORD, record_text
from benchwright.report.page import Page
from benchwright.report.page_audit import audit_page
from benchwright.report.page_game import game_page
from benchwright.report.summary import game_summary_text, summary_text
from benchwright.report.tables import ReportTable, csv_text, game_tables, tables
from benchwright.report.weight_files import (
    averaged_scheme,
    published_scheme,
    sensitivity_table,
    task_scheme,
    weight_table,
)

if TYPE_CHECKING:
    from benchwright.report.figures import Figure

MARKER = "summary.json"
REPORT = Output("report", (MARKER,))
SCHEMES = {"scheme": published_scheme, "averaged_scheme": averaged_scheme, "task_scheme": task_scheme}
Progress = Callable[[str], None]


def write_report(
    report: AuditReport,
    out: str | Path,
    *,
    page: bool = True,
    figures: bool = True,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Path:
    """Write items.parquet, weights.csv, scheme.json, leaderboard.csv, rescored.csv, summary.json and more.

    The page and the figures can be left out; weights and boards are there where the source supports them.

    Parameters
    ----------
    report
        What :func:`benchwright.audit` returned.
    out
        Target folder: new or empty, or an earlier report with ``overwrite=True``.
    page, figures
        Whether to write report.html, and figures/ as SVG and PNG, beside tables/.
    progress
        Called with a short text at each step.

    Raises
    ------
    UsageError
        The folder is not empty, not a folder, or cannot be written.
    """
    say = (lambda _: None) if progress is None else progress
    target = Path(out)
    with REPORT.whole(target, overwrite=overwrite) as stage:
        say("tables")
        _write_numbers(report, stage)
        _write_inputs(report, stage, target)
        if page or figures:
            from benchwright.report.figures import figures as figures_of

            _write_pictures(lambda: figures_of(report), audit_page(report), stage, page=page, figures=figures, say=say)
    return target


def write_game_report(
    game: GameResult,
    out: str | Path,
    *,
    source: str | Path | None = None,
    page: bool = True,
    figures: bool = True,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Path:
    """Write report.html, summary.json, figures/ and tables/ of a ranking game alone; ``out`` as for a report.

    Parameters
    ----------
    game
        An answer, two protocols compared, or a report of undisclosed submissions.
    source
        The file that it was read from: the page names it with its checksum.

    Raises
    ------
    UsageError
        As for :func:`write_report`.
    DataError
        ``source`` cannot be read.
    """
    say = (lambda _: None) if progress is None else progress
    files = () if source is None else (_source_file(Path(source)),)
    target = Path(out)
    with REPORT.whole(target, overwrite=overwrite) as stage:
        say("tables")
        _write_tables(stage, game_tables(game))
        _write(stage / MARKER, game_summary_text(game, files))
        if page or figures:
            from benchwright.report.figures import game_figures

            shown = game_page(game, files=files)
            _write_pictures(lambda: game_figures(game), shown, stage, page=page, figures=figures, say=say)
    return target


def write_weights(report: AuditReport, out: str | Path, *, overwrite: bool = False) -> Path:
    """Write weights.csv, scheme.json, sensitivity.csv, tables/ and summary.json; ``out`` as for a report.

    Raises
    ------
    NoWeightsError
        The source supports no weights; the error says why.
    UsageError
        As for :func:`write_report`.
    """
    if report.weights is None:
        raise NoWeightsError(report.no_weights or "the source supports no weights")
    target = Path(out)
    with REPORT.whole(target, overwrite=overwrite) as stage:
        _write_weights(report, stage)
        _write(stage / "sensitivity.csv", csv_text(sensitivity_table(report.weights)))
        _write_tables(stage, (table for table in tables(report) if table.section == "weights"))
        _write(stage / MARKER, summary_text(report))
        _write_inputs(report, stage, target)
    return target


def _write_inputs(report: AuditReport, stage: Path, target: Path) -> None:
    if report.inputs is not None:
        _write(stage / RECORD, record_text(report.inputs, report.config, target))


def _write_numbers(report: AuditReport, stage: Path) -> None:
    items = report.items
    axes = report.audit.improvability.axes if report.audit.improvability is not None else ()
    level = report.source.rank_level if report.estimates is None else report.config.resampling.level
    items.write_parquet(stage / "items.parquet", metadata=column_metadata(items, axes, rank_level=level))
    _write_weights(report, stage)
    if report.estimates is not None and report.estimates.models is not None:
        _write(stage / "leaderboard.csv", csv_text(report.estimates.models.frame))
    if report.board is not None:
        _write(stage / "rescored.csv", csv_text(report.board.frame))
    _write_tables(stage, tables(report))
    _write(stage / MARKER, summary_text(report))


def _write_weights(report: AuditReport, stage: Path) -> None:
    weights = report.weights
    if weights is None:
        return
    _write(stage / "weights.csv", csv_text(weight_table(weights)))
    for name, scheme_of in SCHEMES.items():
        found = scheme_of(weights, report.config)
        if found is not None:
            _write(stage / f"{name}.json", found.to_json())


def _write_tables(stage: Path, shown: Iterable[ReportTable]) -> None:
    folder = stage / "tables"
    folder.mkdir()
    for table in shown:
        _write(folder / f"{table.name}.csv", table.csv())
        _write(folder / f"{table.name}.tex", table.latex())


def _write_pictures(
    draw: Callable[[], tuple[Figure, ...]], shown: Page, stage: Path, *, page: bool, figures: bool, say: Progress
) -> None:
    # Charts and the page's libraries load only where a picture is wanted; the chart library's bundle is
    # put together on another thread while the charts are drawn.
    from benchwright.report.figures import svg_to_png
    from benchwright.report.html import chart_library, render_page

    with ThreadPoolExecutor(max_workers=2) as pool:
        library = pool.submit(chart_library) if page else None
        drawn = draw()
        if figures:
            folder = stage / "figures"
            folder.mkdir()
            pictures = []
            for place, figure in enumerate(drawn, start=1):
                say(f"figure {place} of {len(drawn)}")
                svg = figure.svg()
                _write(folder / f"{figure.name}.svg", svg)
                pictures.append((folder / f"{figure.name}.png", pool.submit(svg_to_png, svg)))
            for path, picture in pictures:
                path.write_bytes(picture.result())
        if library is not None:
            say("report.html")
            _write(stage / "report.html", render_page(shown, drawn, library.result()))


def _source_file(path: Path) -> SourceFile:
    faults: list[Fault] = []
    read = read_source(path, faults)
    if read is None:
        raise DataError(f"{path} cannot be read", faults=faults)
    return read[1]


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", newline="\n")
