"""benchwright: design LLM benchmarks and leaderboards as incentives.

>>> import benchwright as bw
>>> report = bw.audit()                          # the built-in example, measured on tiny models
>>> report.weights.schemes["uniform"].alignment  # does rewarding the plain average raise welfare?
1

Public names load on first use, so that ``import benchwright`` stays light.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from benchwright.board.aggregate import aggregate
    from benchwright.board.compare import compare, write_changes
    from benchwright.board.folder import write_board
    from benchwright.board.rescore import add_models, rescore
    from benchwright.board.results import Leaderboard
    from benchwright.board.rule_table import other_rules
    from benchwright.board.scheme import WeightScheme, read_scheme
    from benchwright.board.values import BoardValues
    from benchwright.config import Config, load_config
    from benchwright.curves.comparison import compare_laws
    from benchwright.curves.fit import fit_curves
    from benchwright.curves.reading import read_effort_scores
    from benchwright.curves.scores import EffortScores
    from benchwright.datasets import list_datasets, load_dataset
    from benchwright.errors import BenchwrightError, ConfigError, DataError, FetchError, NoWeightsError, UsageError
    from benchwright.estimating.estimates import PanelEstimates, estimate_panel
    from benchwright.game_answers.files import read_game
    from benchwright.game_answers.inputs import answer_file
    from benchwright.judge.activity_scores import ActivityScores, activity_scores
    from benchwright.judge.agreement import Agreement, judge_agreement
    from benchwright.judge.definitions import read_activities
    from benchwright.judge.plan import plan_judging
    from benchwright.judge.results import JudgeRun
    from benchwright.judge.run import judge_items
    from benchwright.judge.settings import JudgeSettings
    from benchwright.logs.item_tables import ItemTables, read_item_tables
    from benchwright.logs.judge_loadings import read_loadings
    from benchwright.logs.rater_loadings import read_raters
    from benchwright.mechanism.aggregation import (
        ItemAggregation,
        evaluate_scheme,
        optimal_weights,
        risk_sweep,
        seed_factor,
    )
    from benchwright.mechanism.calibration import calibrate_curvature
    from benchwright.mechanism.constraints import Constraints, GroupShares
    from benchwright.mechanism.results import OptimalWeights
    from benchwright.mechanism.sensitivity import WeightSensitivity, price_of, weight_sensitivity
    from benchwright.mechanism.uncertainty import weight_uncertainty
    from benchwright.mechanism.welfare_sources import WelfareSource, welfare_path
    from benchwright.panel.ingest import read_logs
    from benchwright.panel.panel import Panel
    from benchwright.panel.scores import compare_models, score_table
    from benchwright.pipeline import audit
    from benchwright.ranking_game.equilibrium import solve
    from benchwright.ranking_game.finite import FiniteGame, solve_finite
    from benchwright.ranking_game.game import RankingGame
    from benchwright.ranking_game.threshold import threshold
    from benchwright.report.build import write_game_report, write_report, write_weights
    from benchwright.report.figures import charts
    from benchwright.simulate import PanelSimulation, Simulation, draw_panel, simulate_item_tables
    from benchwright.tuning.plan import plan_tuning
    from benchwright.tuning.protocol import read_protocol
    from benchwright.tuning.results import TuningRun
    from benchwright.tuning.run import run_tuning

_HOME = {
    "audit": "pipeline",
    "write_report": "report.build",
    "charts": "report.figures",
    "load_dataset": "datasets",
    "list_datasets": "datasets",
    "load_config": "config",
    "Config": "config",
    "read_item_tables": "logs.item_tables",
    "ItemTables": "logs.item_tables",
    "activity_scores": "judge.activity_scores",
    "ActivityScores": "judge.activity_scores",
    "judge_agreement": "judge.agreement",
    "Agreement": "judge.agreement",
    "read_loadings": "logs.judge_loadings",
    "read_raters": "logs.rater_loadings",
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
    "Constraints": "mechanism.constraints",
    "OptimalWeights": "mechanism.results",
    "WeightSensitivity": "mechanism.sensitivity",
    "GroupShares": "mechanism.constraints",
    "price_of": "mechanism.sensitivity",
    "weight_sensitivity": "mechanism.sensitivity",
    "weight_uncertainty": "mechanism.uncertainty",
    "welfare_path": "mechanism.welfare_sources",
    "WelfareSource": "mechanism.welfare_sources",
    "aggregate": "board.aggregate",
    "rescore": "board.rescore",
    "add_models": "board.rescore",
    "write_board": "board.folder",
    "BoardValues": "board.values",
    "Leaderboard": "board.results",
    "WeightScheme": "board.scheme",
    "read_scheme": "board.scheme",
    "other_rules": "board.rule_table",
    "compare": "board.compare",
    "write_changes": "board.compare",
    "write_weights": "report.build",
    "RankingGame": "ranking_game.game",
    "solve": "ranking_game.equilibrium",
    "FiniteGame": "ranking_game.finite",
    "solve_finite": "ranking_game.finite",
    "read_game": "game_answers.files",
    "threshold": "ranking_game.threshold",
    "answer_file": "game_answers.inputs",
    "judge_items": "judge.run",
    "JudgeRun": "judge.results",
    "JudgeSettings": "judge.settings",
    "plan_judging": "judge.plan",
    "read_activities": "judge.definitions",
    "write_game_report": "report.build",
    "EffortScores": "curves.scores",
    "read_effort_scores": "curves.reading",
    "fit_curves": "curves.fit",
    "compare_laws": "curves.comparison",
    "run_tuning": "tuning.run",
    "TuningRun": "tuning.results",
    "plan_tuning": "tuning.plan",
    "read_protocol": "tuning.protocol",
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
    "ActivityScores",
    "Agreement",
    "BenchwrightError",
    "BoardValues",
    "Config",
    "ConfigError",
    "Constraints",
    "DataError",
    "EffortScores",
    "FetchError",
    "FiniteGame",
    "GroupShares",
    "ItemAggregation",
    "ItemTables",
    "JudgeRun",
    "JudgeSettings",
    "Leaderboard",
    "NoWeightsError",
    "OptimalWeights",
    "Panel",
    "PanelEstimates",
    "PanelSimulation",
    "RankingGame",
    "Simulation",
    "TuningRun",
    "UsageError",
    "WeightScheme",
    "WeightSensitivity",
    "WelfareSource",
    "activity_scores",
    "add_models",
    "aggregate",
    "answer_file",
    "audit",
    "calibrate_curvature",
    "charts",
    "compare",
    "compare_laws",
    "compare_models",
    "draw_panel",
    "estimate_panel",
    "evaluate_scheme",
    "fit_curves",
    "judge_agreement",
    "judge_items",
    "list_datasets",
    "load_config",
    "load_dataset",
    "optimal_weights",
    "other_rules",
    "plan_judging",
    "plan_tuning",
    "price_of",
    "read_activities",
    "read_effort_scores",
    "read_game",
    "read_item_tables",
    "read_loadings",
    "read_logs",
    "read_protocol",
    "read_raters",
    "read_scheme",
    "rescore",
    "risk_sweep",
    "run_tuning",
    "score_table",
    "seed_factor",
    "simulate_item_tables",
    "solve",
    "solve_finite",
    "threshold",
    "weight_sensitivity",
    "weight_uncertainty",
    "welfare_path",
    "write_board",
    "write_changes",
    "write_game_report",
    "write_report",
    "write_weights",
]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'benchwright' has no attribute {name!r}")
    value = getattr(import_module(f"benchwright.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
