"""Tables of the aggregation game: schemes, effort, the model as solved, the heaviest and lightest items."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import polars as pl

from benchwright._words import SCHEME_NAMES
from benchwright.mechanism.item_weights import ItemWeights
from benchwright.report.contents import AuditReport

Row = tuple[str, str, str, Sequence[tuple[Any, ...]], pl.DataFrame]
HEAVIEST = 12


def weight_tables(report: AuditReport) -> Iterator[Row]:
    """Yield the tables of the weights; none where the source supports none."""
    weights = report.weights
    if weights is None:
        return
    table = weights.tabulated
    rows = [
        {"scheme": SCHEME_NAMES[name], "sign": f"{table.alignment[name]:+d}"}
        | {f"r{place}": float(value) for place, value in enumerate(values)}
        for name, values in table.efficiency.items()
    ]
    columns: Sequence[tuple[Any, ...]] = (
        ("scheme", "scheme"),
        ("sign", "direction"),
        *((f"r{place}", f"kept at r = {r:g}", "percent") for place, r in enumerate(table.risk_aversions)),
    )
    frame = pl.DataFrame(rows).with_columns(pl.col(pl.Float64).fill_nan(None))
    yield "schemes", "weights", "What each scheme keeps of the best surplus", columns, frame
    spent = weights.effort.pivot("scheme", index="axis", values="usd")
    columns = (
        ("axis", "effort axis"),
        ("optimum", "under the best weights", "dollars"),
        *((name, f"under {SCHEME_NAMES[name]}", "dollars") for name in weights.schemes),
    )
    yield "effort", "weights", "What developers would spend on each axis", columns, spent
    yield _settings(report, weights)
    order = weights.items.sort("weight_share", "task", "doc_id", descending=[True, False, False])
    ends = pl.concat([order.head(HEAVIEST), order.tail(HEAVIEST)]).unique(["task", "doc_id"], maintain_order=True)
    ends = ends.with_columns(multiple=pl.col("weight_share") / pl.col("uniform_share"))
    columns = (
        ("task", "task"),
        ("doc_id", "item"),
        ("multiple", "weight, x uniform", "number"),
        ("welfare", "welfare - neutral", "number"),
        ("cost_usd", "USD per unit of score", "dollars"),
        ("cheapest_axis", "cheapest axis"),
        ("sigma", "seed noise" if report.estimates is None else "noise", "number"),
    )
    yield "weights-ends", "weights", f"The {HEAVIEST} heaviest and the {HEAVIEST} lightest items", columns, ends


def _settings(report: AuditReport, weights: ItemWeights) -> Row:
    """The model behind the weights as it came out, beside what was asked for in the assumptions."""
    rows = [
        ("cost of effort c0, reward / USD^2", f"{weights.calibration.c0:.4g}"),
        ("rule that fixed it", weights.calibration.rule),
        ("why", weights.calibration.why),
        ("risk aversion of the weights", f"{weights.optimum.risk_aversion:g}"),
        ("r at which risk costs what first-best weights earn", f"{weights.balanced_risk:.4g}"),
        ("neutral point", f"{report.config.welfare.neutral:g}"),
        *(
            (f"break-even neutral point, {name}", f"{one.point:.3f} ({one.interval[0]:.3f} to {one.interval[1]:.3f})")
            for name, one in weights.break_even.items()
        ),
        ("rank tolerance", f"{weights.optimum.rank_tolerance:g}"),
        ("condition number of M + r Sigma, at most", f"{weights.optimum.condition_bound:.3g}"),
        ("relative residual of the solution", f"{weights.optimum.residual:.1e}"),
    ]
    frame = pl.DataFrame(rows, schema=["setting", "value"], orient="row")
    return "model", "weights", "The model as it was solved", (("setting", "setting"), ("value", "value")), frame
