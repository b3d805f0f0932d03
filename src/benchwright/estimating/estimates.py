"""All statistics of a panel in one record: what ``audit`` computes where the published tables would be read."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from benchwright._check import FloatArray
from benchwright._shown import Headline, Shown, ShownPart
from benchwright._words import count
from benchwright.config import Config
from benchwright.errors import UsageError
from benchwright.estimating._noise import known_mean
from benchwright.estimating.aggregate import AggregateEstimate, estimate_aggregate
from benchwright.estimating.measure import ITEM, Measurements, measure
from benchwright.estimating.noise import NoiseEstimate, estimate_noise
from benchwright.estimating.quality import ItemQuality, item_quality
from benchwright.estimating.ranking import Ranking, identical, last_runs, rank_models, rank_tasks
from benchwright.estimating.runs import RUN, read_run_facts
from benchwright.estimating.slopes import SlopeEstimate, estimate_slopes
from benchwright.panel.ingest import MANIFEST
from benchwright.panel.panel import Panel

RATIO = "choice:ratio_char"
NOISE, SLOPES, MODELS, TASKS, WEIGHTS = range(3, 8)  # streams of the seed; 0 to 2 are the audit's and the weights'


@dataclass(frozen=True, slots=True, eq=False)
class PanelEstimates(Shown):
    """What a panel says of its items, its models and itself.

    ``noise``, ``slopes``, ``models`` and ``tasks`` are None where the panel does not support them; ``reasons`` then
    says why, by name. ``margins``: task, doc_id, log_ratio_med (median over runs of gold over runner-up in
    log-likelihood per character), None without choices.
    """

    measured: Measurements
    noise: NoiseEstimate | None
    slopes: SlopeEstimate | None
    quality: ItemQuality
    aggregate: AggregateEstimate
    models: Ranking | None
    tasks: Ranking | None
    margins: pl.DataFrame | None
    reasons: dict[str, str]
    notes: tuple[str, ...]

    def _told(self) -> Iterable[ShownPart]:
        measured = self.measured
        yield Headline(f"Estimates from {count(measured.items.height, measured.level)}")
        yield from (f"not estimated: {name}: {why}" for name, why in self.reasons.items())
        for name in ("models", "tasks"):
            ranked = getattr(self, name)
            if ranked is not None:
                yield Headline(name)
                yield ranked
        yield from self.notes


def estimate_panel(
    source: str | Path,
    *,
    config: Config | None = None,
    runs: str | Path | None = None,
    engine: str = "polars",
    progress: Callable[[str], None] | None = None,
) -> PanelEstimates:
    """Estimate everything that a panel supports.

    Parameters
    ----------
    source
        A panel's folder or exported rows, see :func:`~benchwright.estimating.measure.measure`.
    config
        Choices; randomness comes from ``config.resampling.seed`` alone.
    runs
        A table of runs, see :mod:`benchwright.estimating.runs`.
    engine
        ``polars``, ``duckdb`` or ``spark``.
    progress
        Called with a short text at each step.

    Raises
    ------
    UsageError, DataError
        The source cannot be read, or a choice does not fit it.
    """
    chosen = Config() if config is None else config
    say = (lambda _: None) if progress is None else progress
    choices, limits, level, seed = chosen.estimates, chosen.eligibility, chosen.resampling.level, chosen.resampling.seed
    facts = None if runs is None else read_run_facts(runs)
    measured = measure(source, choices=choices, prices=chosen.prices, facts=facts, engine=engine, progress=progress)
    reasons: dict[str, str] = {}
    say("noise")
    noise = estimate_noise(
        measured,
        source=choices.noise_from,
        limits=limits,
        level=level,
        replicates=choices.replicates,
        top_share=choices.top_share,
        whole_seeds=choices.seed_draws == "auto",
        rng=np.random.default_rng([seed, NOISE]),
    )
    if noise is None:
        lack = {"seeds": "no checkpoint has two runs", "trials": "no cell has several trials"}
        why = lack.get(choices.noise_from, ", and ".join(lack.values()))
        reasons["noise"] = (
            f"noise is not estimable: {why}; give two seeds of one model, or set lab.noise_prior, or "
            "lab.risk_aversion = 0 for weights that ignore noise"
        )
    say("slopes")
    slopes = estimate_slopes(
        measured,
        prices=chosen.prices,
        choices=choices,
        limits=limits,
        level=level,
        rng=np.random.default_rng([seed, SLOPES]),
    )
    if slopes is None:
        reasons["improvability"] = (
            "improvability is not estimable: no axis has two doses; a table of runs (--runs) can name axes and doses"
        )
    say("item quality")
    quality = item_quality(trainings(measured), alpha=choices.false_discovery)
    say("benchmark")
    aggregate = estimate_aggregate(measured, noise, score_step=choices.score_step)
    say("ranks of models and tasks")
    models = rank_models(measured, level=level, rng=np.random.default_rng([seed, MODELS]))
    tasks = rank_tasks(measured, level=level, rng=np.random.default_rng([seed, TASKS]))
    for name, ranking in (("models", models), ("tasks", tasks)):
        if isinstance(ranking, str):
            reasons[name] = f"{name} are not ranked: {ranking}"
    return PanelEstimates(
        measured=measured,
        noise=noise,
        slopes=slopes,
        quality=quality,
        aggregate=aggregate,
        models=None if isinstance(models, str) else models,
        tasks=None if isinstance(tasks, str) else tasks,
        margins=_margins(source, measured),
        reasons=reasons,
        notes=(
            *measured.notes,
            *(f"{text[0].upper()}{text[1:]}." for text in reasons.values()),
            *(() if isinstance(models, str) else models.notes),
        ),
    )


def trainings(measured: Measurements) -> FloatArray:
    """Return scores of what was trained apart, (m, C): each lineage's last checkpoint, the mean over its seeds; of one
    lineage alone, its seeds, of copies one.
    """
    columns = last_runs(measured, every=True)
    if len(columns) == 1:
        seeds = measured.value[:, next(iter(columns.values()))]
        return seeds[:, :1] if identical(seeds) else seeds
    return np.stack([known_mean(measured.value[:, at]) for at in columns.values()], axis=1)


def _margins(source: str | Path, measured: Measurements) -> pl.DataFrame | None:
    """Return the median over runs of the choices' ratio, for the runs that are audited."""
    folder = Path(source)
    if not (folder / MANIFEST).is_file() or measured.level != "item":
        return None
    panel = Panel.open(folder)
    if RATIO not in panel.derivable():
        return None
    kind = measured.items["doc_id"].dtype
    told = [name for name in RUN if name != "place"]
    audited = measured.runs.identity.select(told).unique().lazy()
    rows = panel.derived([RATIO]).filter(pl.col("value").is_not_null())
    rows = rows.join(audited, on=told, how="semi", nulls_equal=True)
    table = rows.group_by(*ITEM).agg(log_ratio_med=pl.col("value").median()).collect()
    try:
        return table.cast({"doc_id": kind}).join(measured.items, on=ITEM, how="semi").sort(*ITEM)
    except pl.exceptions.InvalidOperationError:
        raise UsageError("choices and rows of the panel name their items differently") from None
