"""The figures of a report: a registry of charts, their captions, and their files.

To add a figure, write its chart in ``charts_*.py`` and add a row to :func:`figures`.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import altair as alt

from benchwright.report import charts_audit as audit_charts
from benchwright.report import charts_weights as weight_charts
from benchwright.report.contents import AuditReport
from benchwright.report.style import WIDTH, Chart

PNG_SCALE = 2.0
WIDE = ("welfare-scatter", "cost-quantiles", "noise-quantiles")


@dataclass(frozen=True, slots=True)
class Figure:
    """One chart: file name, section of the report, title, what it shows, and its Vega-Lite specification."""

    name: str
    section: str
    title: str
    caption: str
    spec: dict[str, Any]

    @property
    def wide(self) -> bool:
        """Whether the page gives the figure a row of its own."""
        return self.name in WIDE

    def for_page(self) -> str:
        """Return the specification as JSON that fills its container and is safe inside a script element."""
        spec = copy.deepcopy(self.spec)
        spec["width"] = "container"
        spec["autosize"] = {"type": "fit", "contains": "padding"}
        text = json.dumps(spec, ensure_ascii=True, sort_keys=True, separators=(",", ":"))
        return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")

    def svg(self) -> str:
        """Return the chart as a static SVG."""
        import vl_convert

        return str(vl_convert.vegalite_to_svg(self.spec))


def svg_to_png(svg: str) -> bytes:
    """Return a rendered SVG as PNG."""
    import vl_convert

    return bytes(vl_convert.svg_to_png(svg, scale=PNG_SCALE))


def figures(report: AuditReport) -> tuple[Figure, ...]:
    """Return the figures that this report has the data for, in reading order."""
    return tuple(
        Figure(name, section, title, caption, _specification(chart))
        for name, section, title, caption, chart in _charts(report)
        if chart is not None
    )


def _specification(chart: Chart) -> dict[str, Any]:
    with alt.data_transformers.enable("default", max_rows=None):
        spec: dict[str, Any] = chart.to_dict()
    spec.pop("$schema", None)  # names a public address; nothing needs it
    spec["width"] = WIDTH
    return spec


_Row = tuple[str, str, str, str, Chart | None]


def _charts(report: AuditReport) -> Iterator[_Row]:
    yield from _welfare(report)
    improvability, noise = report.audit.improvability, report.audit.noise
    if improvability is not None:
        yield (
            "cost-quantiles",
            "improvability",
            "What a full unit of score costs, cheapest item first",
            "Each dot is an item at the price of its cheapest axis; diamonds mark the 1, 10, 50, 90 and "
            "99 % items, bars the interval of their rank. Click a name in the legend to single it out.",
            audit_charts.cost_curve(improvability),
        )
    if noise is not None:
        yield (
            "noise-quantiles",
            "noise",
            "How far a score moves with the training seed, quietest item first",
            "Standard deviation over seeds at the same checkpoint; diamonds and bars as above.",
            audit_charts.noise_curve(noise),
        )
        yield (
            "noise-families",
            "noise",
            "Which families are noisy beyond a coin flip",
            "Median Z per family: seed noise divided by the noise of a coin with the same mean score. The "
            "dashed line is the paper's reference 1/sqrt(K); items may lie below it.",
            audit_charts.family_noise(noise),
        )
        yield (
            "noise-margins",
            "noise",
            "Narrow margins go with noise",
            "Items that models get right: how close the best wrong answer comes to the right one, per family.",
            audit_charts.family_margins(noise),
        )
    if report.weights is not None:
        yield from _weights(report)


def _welfare(report: AuditReport) -> Iterator[_Row]:
    welfare = report.audit.welfare
    if welfare is None:
        return
    if welfare.activities.height:
        threshold = report.config.welfare.quadrant_threshold
        for framing, verb in (("automation", "could take over"), ("augmentation", "could help with")):
            yield (
                f"activity-map-{framing}",
                "welfare",
                f"What the items stand for, asked as: work that a model {verb}",
                "Each bubble is a kind of work; its area is the share of items whose top activities include it. "
                "Green: workers want it automated and want help; blue: automation only; orange: help only; red: "
                "neither. Move the threshold to see how much hangs on it.",
                audit_charts.activity_map(welfare, framing, threshold),
            )
    yield (
        "welfare-scatter",
        "welfare",
        "Welfare of every item, both ways of asking",
        "Up and right is better. The line is the Pareto frontier: no other item beats those on both counts.",
        audit_charts.welfare_scatter(welfare),
    )
    if welfare.contrast is not None:
        for column, title in (("w_auto", "welfare if automated"), ("w_aug", "welfare if it helps")):
            yield (
                f"welfare-ecdf-{column.removeprefix('w_')}",
                "welfare",
                f"Distribution of {title}",
                "A curve further right means more welfare throughout.",
                audit_charts.welfare_ecdf(welfare, welfare.contrast, column, f"{title} ({column})"),
            )


def _weights(report: AuditReport) -> Iterator[_Row]:
    weights = report.weights
    if weights is None:
        return
    yield (
        "weights-against-uniform",
        "weights",
        "Optimal weights against uniform",
        "The dashed line is a weight equal to everybody's. Items below zero are hedges: a model that solves one "
        "loses score.",
        weight_charts.weights_against_uniform(weights),
    )
    lost = all(scheme.lowers_welfare for scheme in weights.schemes.values())
    yield (
        "efficiency-over-risk",
        "weights",
        "What simple schemes keep of the best possible surplus",
        "Each scheme at its own best scale, from developers who ignore noise (left) to developers who fear it "
        "(right). At the dashed line the risk of first-best weights costs as much as they earn."
        + (" Here all stay at 0 %: rewarding any of them lowers welfare." if lost else ""),
        weight_charts.efficiency_over_risk(weights),
    )
    yield (
        "loss-decomposition",
        "weights",
        "Where the value goes",
        "First-best value split into what a scheme keeps, what the developer's risk takes and what misdirected "
        f"effort loses, at risk aversion {report.config.lab.risk_aversion:g}.",
        weight_charts.loss_decomposition(weights),
    )
    yield (
        "efficiency-over-neutral",
        "weights",
        "The neutral point decides the sign",
        "What the plain average keeps as the neutral point of welfare moves; 0 % means that rewarding it lowers "
        "welfare. The dashed line is the neutral point in force.",
        weight_charts.efficiency_over_neutral(weights, report.config.welfare.neutral),
    )
