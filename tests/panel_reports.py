"""Reports of panels, and what of them the tests look at."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from benchwright.config import Config
from benchwright.estimating.estimates import PanelEstimates
from benchwright.panel.ingest import read_logs
from benchwright.pipeline import audit
from benchwright.report.contents import AuditReport
from benchwright.report.figures import Figure
from benchwright.report.findings import findings
from benchwright.report.tables import ReportTable
from benchwright.simulate import PanelSimulation, SimulatedAxis, draw_grid, draw_panel, to_frame

FEW = Config().replace({"resampling.replicates": 100, "estimates.replicates": 100}, source="a test")

AXES = (
    SimulatedAxis("PT", (1e9, 2e9, 4e9, 8e9), slope_mean=4e-11, slope_sd=3e-11),
    SimulatedAxis("NEW", (0.0, 1.0, 2.0), slope_mean=0.02, slope_sd=0.05),
)

NO_GRID = {"axis": pl.lit(None, dtype=pl.String), "dose": pl.lit(None, dtype=pl.Float64)}


def audited(folder: Path, *frames: pl.DataFrame) -> AuditReport:
    folder.mkdir(parents=True)
    for place, frame in enumerate(frames):
        frame.write_csv(folder / f"log{place}.csv")
    read_logs(sorted(folder.glob("*.csv")), folder / "panel", workers=1)
    return audit(folder / "panel", config=FEW)


def seeds(n_models: int = 3, **parameters: Any) -> pl.DataFrame:
    """Models at three checkpoints with four seeds each."""
    given = {"n_items": 18, "n_tasks": 3, "n_seeds": 4, "n_checkpoints": 3, "n_models": n_models, "seed": 5}
    return to_frame(draw_panel(PanelSimulation(**(given | parameters)))).with_columns(**NO_GRID)


def eight_models(folder: Path) -> AuditReport:
    """Eight models, two axes of which one has no price, one item that runs against the rest, one that is copied."""
    models = seeds(8, noise_sd=0.02, model_levels=tuple(np.linspace(-0.2, 0.2, 8)))
    grid = draw_grid(PanelSimulation(n_items=18, n_tasks=3, n_seeds=3, noise_sd=0.03, seed=5), AXES)
    frames = []
    for frame in (models, to_frame(grid).with_columns(model=pl.lit("tuned"))):
        run = ["model", "seed", "step", "axis", "dose"]
        first = frame.filter(pl.col("doc_id") == "0").select(*run, copied="score")
        both = frame.join(first, on=run, nulls_equal=True)
        turned = pl.when(pl.col("doc_id") == "4").then(1 - pl.col("score")).otherwise("score")
        score = pl.when(pl.col("doc_id") == "1").then("copied").otherwise(turned)
        frames.append(both.with_columns(score=score).drop("copied"))
    return audited(folder, *frames)


def estimates_of(report: AuditReport) -> PanelEstimates:
    assert report.estimates is not None
    return report.estimates


def named(things: Iterable[Any]) -> dict[str, Any]:
    return {thing.name: thing for thing in things}


def told(report: AuditReport) -> dict[str, tuple[str, str]]:
    """Findings by title, with section and text; every number in them is a number."""
    found = {finding.title: (finding.section, finding.text) for finding in findings(report)}
    for text in (*found, *(text for _, text in found.values())):
        assert not {"nan", "none.", "inf"} & set(text.lower().split())
        assert "None" not in text
        assert "  " not in text
    return found


def finding(report: AuditReport, section: str, pattern: str) -> str:
    found = [(title, text) for title, (there, text) in told(report).items() if there == section]
    (one,) = [f"{title}: {text}" for title, text in found if re.search(pattern, title)]
    return one


def drawn(figure: Figure) -> list[dict[str, Any]]:
    """All rows of a figure's data."""
    return [row for rows in figure.spec["datasets"].values() for row in rows]


def written(table: ReportTable) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(table.csv())))
