"""The part of ``summary.json`` that only a panel gives: models, seeds, reliability, quality of items."""

from __future__ import annotations

from typing import Any

from benchwright.estimating.estimates import PanelEstimates
from benchwright.estimating.ranking import Ranking


def panel_summary(estimates: PanelEstimates) -> dict[str, Any]:
    """Return the panel's figures as values that JSON can hold once NaN is made null."""
    measured, noise, slopes, aggregate = estimates.measured, estimates.noise, estimates.slopes, estimates.aggregate
    frame = measured.runs.frame
    return {
        "level": measured.level,
        "engine": measured.engine,
        "metrics": dict(measured.metrics),
        "n_items": measured.items.height,
        "n_runs": frame.height,
        "n_models": frame["lineage"].n_unique(),
        "n_checkpoints": frame["checkpoint"].n_unique(),
        "not_estimable": dict(estimates.reasons),
        "noise": None
        if noise is None
        else {
            "source": noise.source,
            "estimable": int(noise.items["sigma2"].is_not_null().sum()),
            "effective_share_of_degrees_of_freedom": noise.effective_share,
            "median_sigma2": noise.items["sigma2"].median(),
        },
        "slopes": None
        if slopes is None
        else {
            axis: {
                "n_runs": len(fit.columns),
                "n_doses": len(set(fit.x.tolist())),
                "errors": fit.errors,
                "estimable": int(slopes.items[f"slope_{axis.lower()}"].is_not_null().sum()),
                "median_slope": slopes.items[f"slope_{axis.lower()}"].median(),
                "median_standard_error": slopes.items[f"slope_{axis.lower()}_se"].median(),
            }
            for axis, fit in slopes.fits.items()
        },
        "quality": dict(estimates.quality.counts) | {"redundant pairs": estimates.quality.pairs.height},
        "components_of_variance": aggregate.components.to_dicts(),
        "seeds": {
            "mean_variance": aggregate.mean_variance,
            "mean_covariance": aggregate.mean_covariance,
            "score_step": aggregate.score_step,
            "seeds_needed": aggregate.seeds_needed,
            "reliability": aggregate.reliability.to_dicts(),
        },
        "signal_to_noise": aggregate.snr.to_dicts(),
        "models": _ranking(estimates.models),
        "tasks": _ranking(estimates.tasks),
    }


def _ranking(ranking: Ranking | None) -> dict[str, Any] | None:
    if ranking is None:
        return None
    return {"uncertainty": ranking.uncertainty, "method": ranking.method, "ranks": ranking.frame.to_dicts()}
