"""The figures of the aggregation game with their captions."""

from __future__ import annotations

from collections.abc import Iterator

from benchwright.report import charts_weights as charts
from benchwright.report.contents import AuditReport
from benchwright.report.style import Chart

Row = tuple[str, str, str, str, Chart | None]


def weight_figures(report: AuditReport) -> Iterator[Row]:
    """Yield the figures of the weights; none where the source supports none."""
    weights = report.weights
    if weights is None:
        return
    yield (
        "weights-against-uniform",
        "weights",
        "Optimal weights against uniform",
        "The dashed line is a weight equal to everybody's. A model that solves an item below zero loses score.",
        charts.weights_against_uniform(weights),
    )
    yield (
        "value-over-risk",
        "weights",
        "What weights keep of the first-best value, over risk aversion",
        "Each scheme at its own best scale, from developers who ignore noise (left) to developers who fear it (right); "
        "a scheme at 0 % lowers welfare if rewarded. The cost of effort stays as calibrated at the r in force. At the "
        "dashed line the risk of first-best weights costs as much as they earn.",
        charts.value_over_risk(weights),
    )
    yield (
        "loss-decomposition",
        "weights",
        "Where the value goes",
        "First-best value split into what a scheme keeps, what the developer's risk takes and what misdirected "
        f"effort loses, at risk aversion {report.config.lab.risk_aversion:g}.",
        charts.loss_decomposition(weights),
    )
    yield (
        "efficiency-over-neutral",
        "weights",
        "How much hangs on the neutral point",
        "What the plain average keeps as the neutral point of welfare moves, the cost of effort calibrated anew at "
        "each; 0 % means that rewarding it lowers welfare. The dashed line is the neutral point in force.",
        charts.efficiency_over_neutral(weights, report.config.welfare.neutral),
    )
