"""The figures of the aggregation game in ``summary.json``."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from benchwright.mechanism.item_weights import ItemWeights


def weight_summary(weights: ItemWeights) -> dict[str, Any]:
    """Return the record under ``weights``."""
    optimum, table = weights.optimum, weights.tabulated
    items = weights.items
    return {
        "n_items": items.height,
        "risk_aversion": optimum.risk_aversion,
        "calibration": weights.calibration.to_dict(),
        "surplus_optimum": optimum.surplus,
        "first_best": optimum.first_best,
        "misdirection": optimum.misdirection,
        "risk": optimum.risk,
        "efficiency": {
            f"{r:g}": {name: values[place] for name, values in table.efficiency.items()}
            for place, r in enumerate(table.risk_aversions)
        },
        "alignment_sign": {name: scheme.alignment for name, scheme in weights.schemes.items()},
        "schemes": {name: scheme.to_dict() for name, scheme in weights.schemes.items()},
        "risk_sweep": weights.sweep.to_dict() | {"balanced_risk": weights.balanced_risk},
        "break_even_neutral": {name: asdict(turning) for name, turning in weights.break_even.items()},
        "negative_share": optimum.negative_share,
        "undetermined": [
            {"task": items["task"][place], "doc_id": items["doc_id"][place]} for place in optimum.undetermined
        ],
        "effort_usd": {
            scheme: dict(mine.select("axis", "usd").iter_rows())
            for (scheme,), mine in weights.effort.group_by("scheme", maintain_order=True)
        },
        "negative_effort_axes": [weights.axes[axis] for axis in optimum.negative_effort_axes],
        "condition_bound": optimum.condition_bound,
        "residual": optimum.residual,
    }
