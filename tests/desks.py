"""Small desks to test: item tables with a game, and a panel with welfare, scores and a game."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from benchwright.config import Config
from benchwright.report.inputs import AuditInputs
from tables import write_tables
from test_audit_panel import grids, ingested, seeds

ROOT = Path(__file__).resolve().parents[1]
GAME = ROOT / "examples" / "games" / "curves.toml"
PLAIN_GAME = ROOT / "examples" / "games" / "g2.toml"
FEW = {"resampling.replicates": 100, "published.draws": 39, "estimates.replicates": 100}


def few() -> Config:
    """Fewer draws."""
    return Config().replace(FEW, source="a test")


def of_tables(folder: Path, *, game: Path | None = PLAIN_GAME) -> AuditInputs:
    """A folder of item tables; no scores of models."""
    return AuditInputs(write_tables(folder / "tables"), game=game)


def of_panel(folder: Path, *, hostile: str = "") -> AuditInputs:
    """A panel of three models and a grid on three axes, with welfare; one model has a hostile name if wanted."""
    drawn = seeds(3)
    if hostile:
        drawn = drawn.with_columns(model=pl.col("model").replace({"model-1": hostile}))
    panel = ingested(folder / "logs", grids(), drawn)
    welfare = folder / "welfare"
    welfare.mkdir()
    items = grids().select("task", "doc_id").unique().sort("task", "doc_id")
    rng = np.random.default_rng(6)
    values = {name: rng.uniform(2.5, 11.0, items.height) for name in ("w_auto", "w_aug")}
    items.with_columns(**values).write_csv(welfare / "welfare.csv")
    return AuditInputs(panel, welfare=welfare, game=PLAIN_GAME)
