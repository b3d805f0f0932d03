"""Data with known answers: item tables and item panels."""

from __future__ import annotations

from benchwright.simulate.item_tables import (
    ACTIVITIES,
    AXES,
    TASKS,
    SimulatedTask,
    Simulation,
    simulate_item_tables,
)
from benchwright.simulate.panels import (
    SimulatedGrid,
    SimulatedPanel,
    draw_grid,
    draw_panel,
    to_frame,
)
from benchwright.simulate.parameters import Distribution, PanelSimulation, SimulatedAxis

__all__ = [
    "ACTIVITIES",
    "AXES",
    "TASKS",
    "Distribution",
    "PanelSimulation",
    "SimulatedAxis",
    "SimulatedGrid",
    "SimulatedPanel",
    "SimulatedTask",
    "Simulation",
    "draw_grid",
    "draw_panel",
    "simulate_item_tables",
    "to_frame",
]
