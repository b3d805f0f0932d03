"""benchwright: design LLM benchmarks and leaderboards as incentives.

>>> import benchwright as bw
>>> report = bw.audit()                          # the built-in, simulated example
>>> report.weights.schemes["uniform"].alignment  # does rewarding the plain average raise welfare?
1

Public names load on first use, so that ``import benchwright`` stays light.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from benchwright.config import Config, load_config
    from benchwright.datasets import list_datasets, load_dataset
    from benchwright.errors import BenchwrightError, ConfigError, DataError, FetchError, NoWeightsError, UsageError
    from benchwright.estimating.estimates import PanelEstimates, estimate_panel
    from benchwright.logs.item_tables import ItemTables, read_item_tables
    from benchwright.mechanism.aggregation import (
        ItemAggregation,
        evaluate_scheme,
        optimal_weights,
        risk_sweep,
        seed_factor,
    )
    from benchwright.mechanism.calibration import calibrate_curvature
    from benchwright.mechanism.equilibrium import solve
    from benchwright.mechanism.finite_game import FiniteGame, solve_finite
    from benchwright.mechanism.game_files import read_game
    from benchwright.mechanism.ranking_game import RankingGame
    from benchwright.panel.ingest import read_logs
    from benchwright.panel.panel import Panel
    from benchwright.panel.scores import compare_models, score_table
    from benchwright.pipeline import audit
    from benchwright.report.build import write_report
    from benchwright.simulate import PanelSimulation, Simulation, draw_panel, simulate_item_tables

_HOME = {
    "audit": "pipeline",
    "write_report": "report.build",
    "load_dataset": "datasets",
    "list_datasets": "datasets",
    "load_config": "config",
    "Config": "config",
    "read_item_tables": "logs.item_tables",
    "ItemTables": "logs.item_tables",
    "read_logs": "panel.ingest",
    "Panel": "panel.panel",
    "estimate_panel": "estimating.estimates",
    "PanelEstimates": "estimating.estimates",
    "score_table": "panel.scores",
    "compare_models": "panel.scores",
    "ItemAggregation": "mechanism.aggregation",
    "optimal_weights": "mechanism.aggregation",
    "evaluate_scheme": "mechanism.aggregation",
    "calibrate_curvature": "mechanism.calibration",
    "risk_sweep": "mechanism.aggregation",
    "seed_factor": "mechanism.aggregation",
    "RankingGame": "mechanism.ranking_game",
    "solve": "mechanism.equilibrium",
    "FiniteGame": "mechanism.finite_game",
    "solve_finite": "mechanism.finite_game",
    "read_game": "mechanism.game_files",
    "Simulation": "simulate",
    "simulate_item_tables": "simulate",
    "PanelSimulation": "simulate",
    "draw_panel": "simulate",
    "BenchwrightError": "errors",
    "UsageError": "errors",
    "ConfigError": "errors",
    "DataError": "errors",
    "FetchError": "errors",
    "NoWeightsError": "errors",
}

__all__ = [
    "BenchwrightError",
    "Config",
    "ConfigError",
    "DataError",
    "FetchError",
    "FiniteGame",
    "ItemAggregation",
    "ItemTables",
    "NoWeightsError",
    "Panel",
    "PanelEstimates",
    "PanelSimulation",
    "RankingGame",
    "Simulation",
    "UsageError",
    "audit",
    "calibrate_curvature",
    "compare_models",
    "draw_panel",
    "estimate_panel",
    "evaluate_scheme",
    "list_datasets",
    "load_config",
    "load_dataset",
    "optimal_weights",
    "read_game",
    "read_item_tables",
    "read_logs",
    "risk_sweep",
    "score_table",
    "seed_factor",
    "simulate_item_tables",
    "solve",
    "solve_finite",
    "write_report",
]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'benchwright' has no attribute {name!r}")
    value = getattr(import_module(f"benchwright.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
