"""The figures of the aggregation game in ``summary.json``."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from benchwright.mechanism.item_weights import ItemWeights
from benchwright.mechanism.uncertainty import WeightUncertainty


def weight_summary(weights: ItemWeights) -> dict[str, Any]:
    """Return the record under ``weights``."""
    optimum, table = weights.optimum, weights.tabulated
    items, published = weights.items, weights.published
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
        "published": {
            "status": published.status,
            "surplus": published.surplus,
            "efficiency": published.efficiency,
            "gap_bound": published.gap_bound,
            "residual": published.residual,
            "without_weight": int((published.weights == 0).sum()),
            "prices": dict(weights.prices),
        },
        "by_task": weights.by_task.to_dicts(),
        "by_family": weights.by_family.to_dicts(),
        "uncertainty": None if weights.uncertainty is None else _uncertainty(weights.uncertainty),
        "welfare_path": weights.path.to_frame().to_dicts(),
        "standing": {kind: weights.path.standing.count(kind) for kind in ("heavy", "light", "depends")},
        "condition_bound": optimum.condition_bound,
        "residual": optimum.residual,
    }


def _uncertainty(uncertainty: WeightUncertainty) -> dict[str, Any]:
    """What draws say of schemes and of whole sets of weights; single items stand in weights.csv."""
    spreads = {
        name: {field: getattr(spread, field) for field in ("top", "top_overlap", "dropped_overlap", "idle")}
        for name, spread in uncertainty.spreads.items()
    }
    return {
        "replicates": uncertainty.replicates,
        "level": uncertainty.level,
        "margin": uncertainty.margin,
        "reference": uncertainty.reference,
        "weights": spreads,
        "schemes": [one.to_dict() for one in uncertainty.schemes],
        "not_converged": dict(uncertainty.not_converged),
    }
