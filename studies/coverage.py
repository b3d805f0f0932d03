"""How often intervals hold the truth, on simulated panels whose truth is known.

    python studies/coverage.py [--panels 2000] [--only sigma2 slope mean rank items] [-o FILE]

Prints Markdown tables, a row for each way of drawing panels, a column for each interval, first the one that benchwright
prints. All are computed by the kernels that benchwright calls, at level 0.95.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import stats

from benchwright.estimating import _noise, _resampling, _slopes, noise, ranking
from benchwright.estimating.rank_sets import RankSets, from_standard_errors
from benchwright.simulate import PanelSimulation, draw_panel

Array = NDArray[Any]
Ends = tuple[Array, Array]
Judged = dict[str, "Covered"]  # by the name of the interval

LEVEL = 0.95
REPLICATES = 399  # of bootstraps that stand beside a default
RANK_REPLICATES = 1000  # of items' ranks, as benchwright takes by default
BATCH = 100  # panels that share one set of bootstrap draws


@dataclass(frozen=True, slots=True)
class Covered:
    """Share of the intervals there are that hold the truth, its standard error over panels, and their median width.

    ``none``: the share of intervals that are not there. Of ranks the width is the mean number of ranks.
    """

    share: float
    error: float
    width: float
    none: float


def covered(ends: Ends, truth: Array, worst: Array | None = None, *, at_once: bool = False) -> Covered:
    """Judge intervals (P, m) by the truth (m,) or (P, 1), or by true ranks from ``truth`` to ``worst``.

    ``at_once``: a panel counts where all its intervals hold.
    """
    low, high = ends
    there: Array = np.isfinite(high - low)
    held = there & (low <= truth) & (high >= (truth if worst is None else worst))
    size = (high - low)[there]
    if at_once:
        there, held = (np.logical_and.reduce(both, axis=1, keepdims=True) for both in (there, held))
    total = int(there.sum())
    if not total:
        return Covered(np.nan, np.nan, np.nan, 1.0)
    share = held.sum() / total
    of_panel = held.sum(axis=1) - share * there.sum(axis=1)
    width = np.median(size) if worst is None else 1 + size.mean()
    return Covered(float(share), float(np.linalg.norm(of_panel)) / total, float(width), 1 - total / there.size)


def tails(drawn: Array) -> Ends:
    """Return the k-th smallest and the k-th largest of the last axis, as benchwright reads off intervals of ranks."""
    k = _resampling.tail_count(drawn.shape[-1], LEVEL)
    placed = np.partition(drawn, [k - 1, drawn.shape[-1] - k], axis=-1)
    return placed[..., k - 1], placed[..., -k]


def percentiles(make: Callable[[slice], _resampling.Draw], panels: int, m: int) -> Ends:
    """Return percentile intervals of P m rows, of ``BATCH`` panels at a time."""
    parts = []
    for start in range(0, panels, BATCH):
        draw = make(slice(start * m, (start + BATCH) * m))
        chunks = [draw() for _ in range(-(-REPLICATES // _resampling.CHUNK))]
        parts.append(tails(np.concatenate(chunks, axis=1)[:, :REPLICATES]))
    return _joined(parts)


def _joined(parts: Sequence[Ends]) -> Ends:
    return np.concatenate([low for low, _ in parts]), np.concatenate([high for _, high in parts])


def resampled(values: Array, rng: np.random.Generator) -> Array:
    """Return means (..., B) of entries drawn with replacement from the last axis of ``values`` (..., S)."""
    *outer, seeds = values.shape
    drawn = rng.integers(seeds, size=(*outer, REPLICATES * seeds))
    means: Array = np.take_along_axis(values, drawn, axis=-1).reshape(*outer, REPLICATES, seeds).mean(axis=-1)
    return means


def as_rows(values: Array) -> tuple[Array, Array, Array]:
    """Return values (..., S, K) of one model as rows (n, S K), with checkpoint and seed of each column."""
    seeds, length = values.shape[-2:]
    checkpoint, seed = np.tile(np.arange(length), seeds), np.repeat(np.arange(seeds), length)
    return values.reshape(-1, seeds * length), checkpoint, seed


def _shaped(found: dict[str, Ends], m: int) -> dict[str, Ends]:
    return {name: (low.reshape(-1, m), high.reshape(-1, m)) for name, (low, high) in found.items()}


def variance_intervals(values: Array, rng: np.random.Generator | None = None) -> dict[str, Ends]:
    """Return intervals of sigma2 from values (P, m, S, K), each (P, m); bootstraps only with ``rng``."""
    panels, m, seeds, length = values.shape
    rows, checkpoint, _ = as_rows(values)
    residual = _noise.residuals(rows, checkpoint)
    sigma2, df = _noise.pooled_variance(residual, checkpoint)
    grids = [_noise.SeedGrid(np.arange(seeds * length).reshape(seeds, length))]
    share = np.array([_noise.effective_share(panel, grids) for panel in residual.reshape(panels, m, -1)])
    share = np.repeat(np.where(np.isnan(share), 1.0, share), m)
    several = (~np.isnan(residual)).reshape(-1, seeds, length).any(axis=1).sum(axis=1)
    measured: Any = SimpleNamespace(value=rows, noise=pl.DataFrame({"n_checkpoints": several}))
    of_kurtosis = noise._kurtosis_share(measured, sigma2, df, by_seeds=True)
    spread = np.where(sigma2 > 0, sigma2, np.nan)
    found = {
        "effective df": _noise.variance_interval(spread, df * share * of_kurtosis, LEVEL),
        "nominal df": _noise.variance_interval(spread, df, LEVEL),
    }
    if rng is not None:
        groups = [np.flatnonzero(checkpoint == t) for t in range(length)]
        make = partial(_resampling.SeedVariances, groups=groups, rng=rng)
        found["seed bootstrap"] = percentiles(lambda at: make(residual[at]), panels, m)
    return _shaped(found, m)


def slope_intervals(values: Array, dose: Array, rng: np.random.Generator | None = None) -> dict[str, Ends]:
    """Return intervals of slopes from values (P, m, S, K), each (P, m); bootstraps only with ``rng``."""
    panels, m, seeds, _ = values.shape
    rows, checkpoint, seed = as_rows(values)
    x = dose[checkpoint]
    found = {}
    for errors in ("seed", "ols", "hc3") if seeds > 1 else ("ols", "hc3"):
        fits = _slopes.fit_lines(rows, x, errors=errors, cluster=seed)
        spread = np.where(fits.residual_variance > 0, fits.standard_error, np.nan)
        found[errors] = _noise.t_ends(fits.slope, spread, fits.df, LEVEL)
    if rng is not None:
        residual = _slopes.fitted_residuals(rows, x, fits)
        if not np.isnan(rows).any():  # a set of draws for each pattern of gaps takes too long here
            found["residual bootstrap"] = percentiles(
                lambda at: _resampling.SlopeReplicates(fits.slope[at], residual[at], x, rng), panels, m
            )
        if seeds > 1:
            scores = _slopes.seed_scores(rows, x, fits, seed)
            found["seed bootstrap"] = percentiles(
                lambda at: _resampling.SeedSlopeReplicates(fits.slope[at], scores[at], rng), panels, m
            )
    return _shaped(found, m)


def mean_intervals(values: Array, rng: np.random.Generator | None = None) -> tuple[dict[str, Ends], Array]:
    """Return intervals of the mean at one checkpoint from values (P, m, S), each (P, 1), and which items count."""
    common: Array = np.isfinite(values.sum(axis=2))
    n: Array = common.sum(axis=1)
    whole = np.where(common[:, :, None], values, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        of_seed = whole.sum(axis=1) / n[:, None]
        mean = of_seed.mean(axis=1)
        error = np.sqrt((common * np.square(whole.mean(axis=2) - mean[:, None])).sum(axis=1) / (n - 1) / n)
    found = {"t over seeds": _noise.t_ends(mean, stats.sem(of_seed, axis=1), np.array(values.shape[2] - 1), LEVEL)}
    if rng is not None:
        starts = range(0, len(values), BATCH)
        found["seed bootstrap"] = _joined([tails(resampled(of_seed[at : at + BATCH], rng)) for at in starts])
    found["normal over items"] = _noise.t_ends(mean, error, np.array(np.inf), LEVEL)
    return _shaped(found, 1), common


def rank_set(of_seed: Array, rng: np.random.Generator, *, simultaneous: bool = True) -> RankSets:
    """Return the rank sets of models from the means of their seeds (J, S)."""
    sets = partial(from_standard_errors, level=LEVEL, replicates=ranking.DRAWS, simultaneous=simultaneous)
    return sets(of_seed.mean(axis=1), stats.sem(of_seed, axis=1), df=of_seed.shape[1] - 1, rng=rng)


def noise_ranks(values: Array, rng: np.random.Generator) -> Ends:
    """Return percentile intervals of the ranks by noise of items from values (m, S, K), NaN with too few seeds."""
    rows, checkpoint, _ = as_rows(values)
    groups = [np.flatnonzero(checkpoint == t) for t in range(values.shape[2])]
    alike = [0] * len(groups)  # whole seeds
    draw = _resampling.SeedVariances(_noise.residuals(rows, checkpoint), groups, rng, alike)
    none = np.full(len(rows), np.nan)
    return (none, none) if draw.empty_share > (1 - LEVEL) / 2 else _item_ranks(draw, len(rows))


def cost_ranks(values: Array, dose: Array, rng: np.random.Generator) -> Ends:
    """Return percentile intervals of the ranks by cost, one axis, of items from values (m, S, K)."""
    rows, checkpoint, seed = as_rows(values)
    x = dose[checkpoint]
    fits = _slopes.fit_lines(rows, x, errors="seed", cluster=seed)
    slopes = _resampling.SeedSlopeReplicates(fits.slope, _slopes.seed_scores(rows, x, fits, seed), rng)
    return _item_ranks(lambda: _resampling.cheapest([slopes()], [1.0]), len(rows))


def _item_ranks(draw: _resampling.Draw, m: int) -> Ends:
    ranks = _resampling.rank_replicates(draw, m, replicates=RANK_REPLICATES, level=LEVEL, top=1)
    return ranks.low, ranks.high


def variance_coverage(given: PanelSimulation, panels: int, rng: np.random.Generator, *, others: bool = True) -> Judged:
    """Judge the intervals of sigma2; ``others``: the bootstraps too."""
    drawn = draw_panel(given, panels=panels, rng=rng)
    found = variance_intervals(drawn.values[:, :, 0], rng if others else None)
    return {name: covered(ends, drawn.sigma2) for name, ends in found.items()}


def slope_coverage(
    given: PanelSimulation, panels: int, rng: np.random.Generator, *, others: bool = True, own: float = 0.0
) -> Judged:
    """Judge the intervals of slopes; with ``own`` each seed's slope differs from the item's by that much (sd)."""
    drawn = draw_panel(given, panels=panels, rng=rng)
    values = drawn.values[:, :, 0]
    if own > 0:
        values = values + own * rng.standard_normal((*values.shape[:3], 1)) * given.dose
    found = slope_intervals(values, given.dose, rng if others else None)
    return {name: covered(ends, drawn.slope) for name, ends in found.items()}


def mean_coverage(given: PanelSimulation, panels: int, rng: np.random.Generator, *, others: bool = True) -> Judged:
    """Judge the intervals of a model's mean at its last checkpoint, over the items that all its runs have."""
    drawn = draw_panel(given, panels=panels, rng=rng)
    found, common = mean_intervals(drawn.values[:, :, 0, :, -1], rng if others else None)
    with np.errstate(invalid="ignore"):
        truth = (common @ drawn.expected[:, 0, -1] / common.sum(axis=1))[:, None]
    return {name: covered(ends, truth) for name, ends in found.items()}


def rank_coverage(given: PanelSimulation, panels: int, rng: np.random.Generator, *, others: bool = True) -> Judged:
    """Judge the rank sets of models at their last checkpoint: all of a panel at once, and each."""
    drawn = draw_panel(given, panels=panels, rng=rng)
    of_seed = drawn.values[..., -1].mean(axis=1)
    truth = drawn.expected[:, :, -1].mean(axis=0)
    best, worst = 1 + (truth > truth[:, None]).sum(axis=1), len(truth) - (truth < truth[:, None]).sum(axis=1)
    found = {}
    for name, simultaneous in (("simultaneous", True), ("marginal", False))[: 1 + others]:
        sets = [rank_set(panel, rng, simultaneous=simultaneous) for panel in of_seed]
        found[name] = np.array([one.lo for one in sets]), np.array([one.hi for one in sets])
    if others:
        again = [1 + (-resampled(panel, rng)).argsort(axis=0).argsort(axis=0) for panel in of_seed]
        found["seed bootstrap"] = tails(np.array(again))
    out = {}
    for name, ends in found.items():
        out[f"{name}, all"] = covered(ends, best, worst, at_once=True)
        out[f"{name}, each"] = covered(ends, best, worst)
    return out


def item_rank_coverage(given: PanelSimulation, panels: int, rng: np.random.Generator) -> Judged:
    """Judge the intervals of items' ranks by noise and by cost."""
    drawn = draw_panel(given, panels=panels, rng=rng)
    by_noise = np.array([noise_ranks(panel, rng) for panel in drawn.values[:, :, 0]])
    by_cost = np.array([cost_ranks(panel, given.dose, rng) for panel in drawn.values[:, :, 0]])
    noisy, dear = (1 + truth.argsort().argsort() for truth in (drawn.sigma2, 1 / drawn.slope))
    return {
        "by noise": covered((by_noise[:, 0], by_noise[:, 1]), noisy, noisy),
        "by cost": covered((by_cost[:, 0], by_cost[:, 1]), dear, dear),
    }


MAIN = PanelSimulation(n_items=20, n_seeds=8, n_checkpoints=10)
CHANCE = replace(MAIN, level=0.0, level_sd=0.8, slope_mean=0.5, slope_sd=0.5, noise_sd=1.0)  # in log-odds
SETTINGS = {
    **{f"persistent {share:g}": replace(MAIN, persistent=share) for share in (0.0, 0.3, 0.8)},
    **{f"{seeds} seeds": replace(MAIN, n_seeds=seeds) for seeds in (3, 5, 20)},
    "2 checkpoints": replace(MAIN, n_checkpoints=2),
    "t5 noise": replace(MAIN, distribution="t5"),
    "skewed noise": replace(MAIN, distribution="skewed"),
    "10 % of cells missing": replace(MAIN, missing=0.1),
    "means of 20 trials": replace(CHANCE, trials=20),
    "scores 0 or 1": replace(CHANCE, trials=1),
    "scores 0 or 1, chance about 0.96": replace(CHANCE, trials=1, level=3.0, level_sd=0.3),
}
FOR_VARIANCES = {
    "2 seeds": replace(MAIN, n_seeds=2),
    "1 item, persistent 0.8": replace(MAIN, n_items=1, persistent=0.8),
    "10 % missing, persistent 0.8": replace(MAIN, missing=0.1, persistent=0.8),
    "scores 0 or 1, persistent 0": replace(CHANCE, trials=1, persistent=0.0),
    "scores 0 or 1, persistent 0.8": replace(CHANCE, trials=1, persistent=0.8),
}
OWN_SLOPES = {name: SETTINGS[name] for name in ("persistent 0", "persistent 0.3", "3 seeds")}
SINGLE = replace(MAIN, n_seeds=1, n_checkpoints=7, persistent=0.0)
SINGLE_RUNS = {
    "7 even doses": SINGLE,
    "7 doubling doses": replace(SINGLE, doses=tuple(2.0**k for k in range(-6, 1))),
    "3 even doses": replace(SINGLE, n_checkpoints=3),
    "7 even doses, t5 noise": replace(SINGLE, distribution="t5"),
    "7 even doses, skewed noise": replace(SINGLE, distribution="skewed"),
    "7 even doses, scores 0 or 1": replace(CHANCE, n_seeds=1, n_checkpoints=7, trials=1),
}
FOR_MEANS = {
    "200 items, 2 checkpoints": replace(MAIN, n_items=200, n_checkpoints=2),
    "20 items, all noise in common": replace(MAIN, common=1.0),
}


def ranked(step: float, **changes: Any) -> PanelSimulation:
    """Return 10 models, ``step`` standard errors of a model's mean apart."""
    given = replace(MAIN, n_items=5, **changes)
    error = float(np.sqrt(draw_panel(given).covariance.mean() / given.n_seeds))
    return replace(given, model_levels=tuple(step * error * place for place in range(10)))


RANKED = {
    **{f"equal means, persistent {share:g}": ranked(0.0, persistent=share) for share in (0.0, 0.3, 0.8)},
    "means 0.5 standard errors apart": ranked(0.5),
    "means 8 standard errors apart": ranked(8.0),
    **{f"equal means, {seeds} seeds": ranked(0.0, n_seeds=seeds, n_checkpoints=1) for seeds in (3, 5, 20)},
    "equal means, t5 noise": ranked(0.0, distribution="t5"),
    "equal means, skewed noise": ranked(0.0, distribution="skewed"),
    "equal means, scores 0 or 1": replace(CHANCE, trials=1, n_checkpoints=1, model_levels=(0.0,) * 10),
}
APART = replace(MAIN, slope_mean=0.5, noise_spread=1.0)
ALIKE = replace(APART, slope_sd=0.02, noise_spread=0.1)
ITEMS = {
    f"{name}, persistent {share:g}": replace(given, persistent=share)
    for name, given in (("apart", APART), ("alike", ALIKE))
    for share in (0.0, 0.3, 0.8)
} | {"apart, 3 seeds": replace(APART, n_seeds=3), "apart, 10 % missing": replace(APART, missing=0.1)}


@dataclass(frozen=True, slots=True)
class Section:
    """A table: what judges a row, the rows, whether widths are relative to the first column's, panels a row."""

    title: str
    judge: Callable[..., Judged]
    rows: dict[str, PanelSimulation]
    relative: bool = True
    part: float = 1.0  # of the panels asked for


SECTIONS = {
    "sigma2": [Section("Variance of an item over seeds", variance_coverage, SETTINGS | FOR_VARIANCES)],
    "slope": [
        Section("Slope of an item, all seeds on one grid", slope_coverage, SETTINGS),
        Section("The same, each seed with a slope of its own", partial(slope_coverage, own=0.05), OWN_SLOPES),
        Section("Slope of an item, one run a dose", slope_coverage, SINGLE_RUNS),
    ],
    "mean": [Section("Mean of a model over these items", mean_coverage, SETTINGS | FOR_MEANS)],
    "rank": [Section("Ranks of 10 models", rank_coverage, RANKED, relative=False)],
    "items": [Section("Ranks of 20 items", item_rank_coverage, ITEMS, relative=False, part=0.1)],
}


def table(section: Section, panels: int, stream: Sequence[int]) -> str:
    """Draw, judge and write the rows of a section; each row has a random stream of its own."""
    panels = max(1, round(panels * section.part))
    rows: dict[str, Judged] = {}
    for place, (setting, given) in enumerate(section.rows.items()):
        start = time.perf_counter()
        rows[setting] = section.judge(given, panels, np.random.default_rng([*stream, place]))
        print(f"{section.title}: {setting}, {time.perf_counter() - start:.1f} s", file=sys.stderr)
    names = list(next(iter(rows.values())))
    what = "median width, that of the first column being 1" if section.relative else "mean number of ranks"
    error = 100 * np.nanmax([one.error for found in rows.values() for one in found.values()])
    top = f"{panels:,} panels a row. % that hold the truth ({what}), with a standard error of at most {error:.1f}.\n"
    lines = [f"### {section.title}\n", top, f"| setting | {' | '.join(names)} | none |"]
    lines.append("|---" * (len(names) + 2) + "|")
    for setting, found in rows.items():
        first = found[names[0]]
        unit = first.width if section.relative else 1.0
        there = {name: one for name, one in found.items() if one.none < 1}
        shown = dict.fromkeys(found, "NaN")
        shown |= {name: f"{100 * one.share:.1f} ({one.width / unit:.2f})" for name, one in there.items()}
        none = f"{100 * first.none:.1f} %" if first.none else ""
        lines.append(f"| {setting} | {' | '.join(shown.get(name, '–') for name in names)} | {none} |")
    return "\n".join(lines)


def main() -> int:
    """Print the tables that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--panels", type=int, default=2000, help="panels a row; of ranks of items a tenth (2000)")
    parser.add_argument("--only", nargs="+", choices=SECTIONS, default=list(SECTIONS), help="tables to make (all)")
    parser.add_argument("-o", metavar="FILE", type=Path, help="write the tables to a file too")
    given = parser.parse_args()
    tables = [
        table(section, given.panels, (place, part))
        for place, (name, sections) in enumerate(SECTIONS.items())
        if name in given.only
        for part, section in enumerate(sections)
    ]
    text = "\n\n".join(tables) + "\n"
    print(text, end="")
    if given.o is not None:
        given.o.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
