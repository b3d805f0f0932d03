"""Tables of the aggregation game: schemes, effort, the model as solved, the heaviest and lightest items."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import polars as pl

from benchwright._words import SCHEME_NAMES, percent
from benchwright.mechanism.item_weights import ItemWeights
from benchwright.mechanism.sensitivity import weight_sensitivity
from benchwright.mechanism.uncertainty import WeightUncertainty
from benchwright.report.contents import AuditReport

Row = tuple[str, str, str, Sequence[tuple[Any, ...]], pl.DataFrame]
HEAVIEST = 12
STEP = 0.1
LEVERS = {"neutral": "neutral point of welfare", "risk": "risk aversion, or all noise"}
SHARES = ("published_share", "published_lo", "published_hi")
CONSTRAINTS = {
    "non_negative": "no weight below 0",
    "max_share": "largest share of one item",
    "equal_within": "one weight within a group",
    "fixed_shares": "shares that are settled",
    "at_most": "number of items with a weight",
}


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
    yield _ends(report, weights)
    yield from _published(weights)
    yield _levers(weights)


def _ends(report: AuditReport, weights: ItemWeights) -> Row:
    """The items that gain and lose most under the published weights, and what moves them."""
    items = weights.items.with_columns(
        pl.Series("standing", weights.path.standing),
        *((pl.col(name) / pl.col("uniform_share")).alias(name.replace("published_", "times_")) for name in SHARES
          if name in weights.items.columns),
    )  # fmt: skip
    order = items.sort("times_share", "weight_share", "task", "doc_id", descending=[True, True, False, False])
    ends = pl.concat([order.head(HEAVIEST), order.tail(HEAVIEST)]).unique(["task", "doc_id"], maintain_order=True)
    columns: list[tuple[Any, ...]] = [
        ("task", "task"),
        ("doc_id", "item"),
        ("times_share", "published weight, x uniform", "number"),
        ("times_lo", "from", "number"),
        ("times_hi", "to", "number"),
        ("published_kept", "draws with a weight", "percent"),
        ("welfare", "welfare - neutral", "number"),
        ("cost_usd", "USD per unit of score", "dollars"),
        ("cheapest_axis", "cheapest axis"),
        ("sigma", "seed noise" if report.estimates is None else "noise", "number"),
        ("standing", "over all ways of valuing"),
    ]
    shown = [column for column in columns if column[0] in ends.columns]
    return "weights-ends", "weights", f"The {HEAVIEST} heaviest and the {HEAVIEST} lightest items", shown, ends


def _published(weights: ItemWeights) -> Iterator[Row]:
    """What constraints cost, how sure schemes are, weights of tasks and families, other values of items."""
    best = weights.optimum.surplus
    if best > 0:
        rows = [(CONSTRAINTS[name], price, price / best) for name, price in weights.prices.items()]
        rows.append(("all of them", best - weights.published.surplus, 1 - weights.published.efficiency))
        schema = {"constraint": pl.String, "price": pl.Float64, "share": pl.Float64}
        frame = pl.DataFrame(rows, schema=schema, orient="row").with_columns(pl.col("price", "share").fill_nan(None))
        columns: Sequence[tuple[Any, ...]] = (
            ("constraint", "constraint"),
            ("price", "surplus gained if it alone is dropped", "price"),
            ("share", "of the best surplus", "percent"),
        )
        yield "constraint-prices", "weights", "What the constraints of a board cost", columns, frame
    if weights.uncertainty is not None:
        yield _certainty(weights, weights.uncertainty)
    for name, table in (("task", weights.by_task), ("family", weights.by_family)):
        columns = (
            ("name", name),
            ("items", "items", "integer"),
            ("share", "share of the weight", "percent"),
            ("lo", "from", "percent"),
            ("hi", "to", "percent"),
            ("kept", "draws with a weight", "percent"),
            ("uniform_share", "share under the plain average", "percent"),
        )
        order = table.sort("share", "name", descending=[True, False], nulls_last=True)
        if table.height > 1:
            yield f"{name}-weights", "weights", f"One weight a {name}: what each would carry", columns, order
    path = weights.path.to_frame().pivot("scheme", index="point", values="efficiency", maintain_order=True)
    columns = (
        ("point", "value of an item"),
        *((name, f"kept by {SCHEME_NAMES[name]}", "percent") for name in weights.schemes),
    )
    yield "welfare-mixture", "weights", "What schemes keep as the value of items moves", columns, path


def _levers(weights: ItemWeights) -> Row:
    """How far a small step of each choice moves the weights without constraints, to first order."""
    found = weight_sensitivity(weights.model, optimum=weights.optimum)
    names = weights.items.select(pl.format("{} {}", "task", "doc_id")).to_series()
    rows: list[tuple[str, str, float | None, str, str]] = []
    for lever, moved in found.of_shares.items():
        if lever in ("own_welfare", "own_noise") or not np.isfinite(moved).all():
            continue
        step = STEP * moved
        up, down = names[int(step.argmax())], names[int(step.argmin())]
        what = "0.1 of welfare" if lever == "neutral" else "10 %"
        rows.append((LEVERS.get(lever, lever), what, float(np.abs(step).sum()) / 2, up, down))
    schema = ["lever", "step", "moved", "up", "down"]
    frame = pl.DataFrame(rows, schema=dict.fromkeys(schema[:2], pl.String) | {"moved": pl.Float64} | dict.fromkeys(
        schema[3:], pl.String), orient="row")  # fmt: skip
    columns = (
        ("lever", "choice"),
        ("step", "raised by"),
        ("moved", "share of the weight that moves", "percent"),
        ("up", "gains most"),
        ("down", "loses most"),
    )
    return "levers", "weights", "What the weights without constraints answer to", columns, frame


def _certainty(weights: ItemWeights, uncertainty: WeightUncertainty) -> Row:
    """How sure each scheme's worth is at the risk aversion in force."""
    frame = uncertainty.to_frame().filter(pl.col("risk_aversion") == uncertainty.risk_aversion)
    frame = frame.with_columns(pl.col("name").replace(SCHEME_NAMES))
    columns = (
        ("name", "scheme"),
        ("efficiency", "keeps", "percent"),
        ("efficiency_lo", "from", "percent"),
        ("efficiency_hi", "to", "percent"),
        ("aligned", "draws in which it helps", "percent"),
        ("as_good", "draws in which it is as good as the published weights", "percent"),
        ("verdict", "verdict"),
    )
    level = percent(uncertainty.level, 0)
    title = (
        f"How sure that is: {level} intervals over {uncertainty.replicates:,} draws, r = {uncertainty.risk_aversion:g}"
    )
    return "scheme-certainty", "weights", title, columns, frame


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
