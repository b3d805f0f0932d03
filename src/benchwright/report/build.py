"""Write a report folder: whole or not at all.

Everything is written into a hidden folder beside the target and moved into place at the end. A run that fails
or is interrupted leaves the target as it was; after one that was killed, the next run does.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from benchwright._staging import move_in, recover, staging
from benchwright.auditing.items import column_metadata
from benchwright.errors import UsageError
from benchwright.logs.item_tables import ITEM
from benchwright.report.contents import AuditReport
from benchwright.report.summary import summary_text
from benchwright.report.tables import csv_text, tables

MARKER = "summary.json"  # a folder that holds it is a report, and may be overwritten on request
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
    """Write items.parquet, weights.csv, leaderboard.csv, summary.json, tables/, report.html and figures/.

    The last two can be left out; weights and leaderboard are there where the source supports them.

    Parameters
    ----------
    report
        What :func:`benchwright.audit` returned.
    out
        Target folder: new or empty, or an earlier report with ``overwrite=True``.
    page, figures
        Whether to write report.html, and figures/ as SVG and PNG.
    progress
        Called with a short text at each step.

    Raises
    ------
    UsageError
        The folder is not empty, not a folder, or cannot be written.
    """
    say = (lambda _: None) if progress is None else progress
    target = Path(out)
    with _whole(target, overwrite=overwrite) as stage:
        say("tables")
        _write_numbers(report, stage)
        if page or figures:
            _write_pictures(report, stage, page=page, figures=figures, say=say)
    return target


def _write_numbers(report: AuditReport, stage: Path) -> None:
    items = report.items
    axes = report.audit.improvability.axes if report.audit.improvability is not None else ()
    items.write_parquet(stage / "items.parquet", metadata=column_metadata(items, axes))
    if report.weights is not None:
        columns = [*ITEM, "weight", "weight_share", "uniform_share", "weight_undetermined"]
        columns += [name for name in ("weight_lo", "weight_hi", "weight_positive") if name in report.items.columns]
        _write(stage / "weights.csv", csv_text(report.weights.items.select(columns)))
    if report.estimates is not None and report.estimates.models is not None:
        _write(stage / "leaderboard.csv", csv_text(report.estimates.models.frame))
    folder = stage / "tables"
    folder.mkdir()
    for table in tables(report):
        _write(folder / f"{table.name}.csv", table.csv())
        _write(folder / f"{table.name}.tex", table.latex())
    _write(stage / MARKER, summary_text(report))


def _write_pictures(report: AuditReport, stage: Path, *, page: bool, figures: bool, say: Progress) -> None:
    # Charts and the page's libraries load only where a picture is wanted; the chart library's bundle is
    # put together on another thread while the charts are drawn.
    from benchwright.report.figures import figures as all_figures
    from benchwright.report.figures import svg_to_png
    from benchwright.report.html import chart_library, render_page

    with ThreadPoolExecutor(max_workers=2) as pool:
        library = pool.submit(chart_library) if page else None
        drawn = all_figures(report)
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
            _write(stage / "report.html", render_page(report, drawn, library.result()))


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", newline="\n")


@contextmanager
def _whole(target: Path, *, overwrite: bool) -> Iterator[Path]:
    """Yield a folder that becomes ``target`` when the block ends, and vanishes if it fails."""
    doing = "write beside"
    try:
        check_target(target, overwrite=overwrite)
        target.parent.mkdir(parents=True, exist_ok=True)
        with staging(target) as stage:
            doing = "write"
            yield stage
            check_target(target, overwrite=overwrite)  # another run may have written there meanwhile
            move_in(stage, target)
    except OSError as error:
        raise UsageError(f"cannot {doing} {target}: {error.strerror}", hint="choose another folder with -o") from None


def check_target(target: Path, *, overwrite: bool) -> None:
    """Raise unless ``target`` is new, empty, or an earlier report that may be overwritten.

    A report that a killed run had moved aside is put back first, so that it counts as there.
    """
    if Path.cwd().is_relative_to(target.resolve()):  # it would be moved away under the caller's feet
        raise UsageError(
            f"output {target} is the working directory or holds it",
            hint="name a folder inside it, e.g. -o out/",
        )
    parent = target.parent
    while not parent.exists():
        parent = parent.parent
    if not parent.is_dir() or not os.access(parent, os.W_OK | os.X_OK):
        what = "cannot be written" if parent.is_dir() else "is not a folder"
        raise UsageError(f"output {target}: {parent} {what}", hint="choose another folder with -o")
    if parent == target.parent:
        recover(target)
    if target.is_symlink() or (target.exists() and not target.is_dir()):
        raise UsageError(f"output {target} is not a folder", hint="choose another folder with -o")
    if not target.is_dir() or not any(target.iterdir()):
        return
    if not (target / MARKER).is_file():
        raise UsageError(f"output folder {target} is not empty and holds no report", hint="choose a new folder with -o")
    if not overwrite:
        raise UsageError(
            f"output folder {target} already holds a report", hint="add --overwrite, or choose a new folder with -o"
        )
