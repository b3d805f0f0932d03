"""What a game might have been: slopes, noise and welfare drawn again together, from what the source says of each.

From a panel, slopes by their bootstrap and variances, or the covariance at its shrinkage, by the seed bootstrap, all
items in one draw, so that what moves together does; axes and noise are drawn apart from each other. Noise-corrected
slopes are drawn at their scale, empirical-Bayes slopes around the posterior mean with the posterior standard deviation
(``moved_slopes``).

Published tables have rank intervals alone. An interval of ranks becomes one of costs through the sorted costs: the
costs that stand at its two ends. The item's cost is then drawn from a log-normal law on either side of the cost it has,
with those ends as its quantiles at the level of the intervals (2.5 and 97.5 % in published tables), and all slopes of
the item are divided by the same factor; a variance is drawn likewise from the sorted standard deviations. What this
cannot tell: the interval is of the cost on the cheapest axis, and says nothing of the others apart; no slope changes
its sign; items are drawn apart from each other, though the models behind them are the same; and an interval around a
rank that was itself selected inherits the selection.

Welfare: values of activities, and judges where several count, as ``auditing.welfare_draws`` draws them. Not drawn: what
a judge who was not asked would have ranked.

Noise in slopes inflates M, and drawing it twice inflates it more: intervals tell how far weights move with the data at
hand; they are no promise to cover the best weights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import stats

from benchwright._check import FloatArray
from benchwright._words import count
from benchwright.auditing.results import ImprovabilityAudit, NoiseAudit
from benchwright.auditing.welfare_draws import welfare_draws
from benchwright.config import Config
from benchwright.estimating import _resampling as resampling
from benchwright.estimating.estimates import WEIGHTS, PanelEstimates
from benchwright.estimating.noise import seed_covariance, variance_draws
from benchwright.estimating.slopes import slope_draws, task_groups
from benchwright.logs.item_tables import ITEM, PERSPECTIVES, PUBLISHED_LEVEL, ItemTables
from benchwright.mechanism.aggregation import ItemAggregation
from benchwright.mechanism.moved_slopes import behind_draws

CHUNK = resampling.CHUNK
Draw = Callable[[], FloatArray]  # the next CHUNK draws, the first dimension


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class GameDraws:
    """Draws of a game's parts; what is None stays as the model has it.

    ``technology`` (CHUNK, m, n) score per dollar, ``variance`` (CHUNK, m) score^2 (NaN keeps the model's own),
    ``welfare`` (CHUNK, m). ``covariance`` returns one draw of diagonal (m,) and factor (m, q) in place of ``variance``.
    ``notes`` say what is drawn and what is not.
    """

    technology: Draw | None = None
    variance: Draw | None = None
    welfare: Draw | None = None
    covariance: Callable[[], tuple[FloatArray, FloatArray]] | None = None
    notes: tuple[str, ...] = ()

    @property
    def parts(self) -> tuple[str, ...]:
        """What is drawn."""
        noise = self.covariance is not None or self.variance is not None
        named = {"slopes": self.technology is not None, "noise": noise, "welfare": self.welfare is not None}
        return tuple(name for name, drawn in named.items() if drawn)

    def of(self, model: ItemAggregation) -> Iterator[ItemAggregation]:
        """Yield games without end: ``model`` with its parts drawn again.

        Examples
        --------
        >>> rng = np.random.default_rng(1)
        >>> model = ItemAggregation([[1.0], [2.0]], [1.0, 1.0], risk_aversion=1, noise_variance=[0.1, 0.2])
        >>> draws = GameDraws(welfare=lambda: rng.normal(1, 0.1, (CHUNK, 2)))
        >>> next(draws.of(model)).welfare.round(2)
        array([1.03, 1.08])
        """
        while True:
            A, d, w = (None if draw is None else draw() for draw in (self.technology, self.variance, self.welfare))
            stated = np.asarray(model.noise_variance)
            for b in range(CHUNK):
                variance = stated if d is None else np.where(d[b] >= 0, d[b], stated)
                drawn = (variance, model.noise_factor) if self.covariance is None else self.covariance()
                yield ItemAggregation(
                    model.technology if A is None else A[b],
                    model.welfare if w is None else w[b],
                    risk_aversion=model.risk_aversion,
                    noise_variance=drawn[0],
                    noise_factor=drawn[1],
                    curvature=model.curvature,
                )


def draw_game(
    model: ItemAggregation,
    items: pl.DataFrame,
    prices: FloatArray,
    config: Config,
    *,
    estimates: PanelEstimates | None = None,
    tables: ItemTables | None = None,
    improvability: ImprovabilityAudit | None = None,
    noise: NoiseAudit | None = None,
) -> GameDraws:
    """Return draws of the game on ``items``, from a panel where there is one, else from rank intervals.

    Parameters
    ----------
    model, items, prices
        The game, its items (task, doc_id and the columns its parts were made of), US dollars per slope unit by axis.
    estimates
        What a panel says.
    tables
        The source, for the ranked activities and their counts behind welfare, and the level of its rank intervals.
    improvability, noise
        Sections with the rank intervals of published tables.
    """
    seed = config.resampling.seed
    if estimates is not None:
        parts = _panel_draws(estimates, items, prices, config, np.random.default_rng([seed, WEIGHTS]))
    else:
        level = PUBLISHED_LEVEL if tables is None else tables.rank_level
        parts = _table_draws(model, items, improvability, noise, level, np.random.default_rng([seed, WEIGHTS]))
    welfare, notes = _welfare_draws(model, items, tables, config, np.random.default_rng([seed, WEIGHTS, 1]))
    return replace(parts, welfare=welfare, notes=(*parts.notes, *notes))


def rows_of(estimates: PanelEstimates, items: pl.DataFrame) -> NDArray[np.int64]:
    """Return the places of items among those of the panel."""
    placed = estimates.measured.items.with_row_index("place")
    joined = items.select(*ITEM).join(placed, on=ITEM, how="left", maintain_order="left")
    return joined["place"].to_numpy().astype(np.int64)


def full_covariance(estimates: PanelEstimates, items: pl.DataFrame, notes: list[str]) -> tuple[FloatArray, FloatArray]:
    """Return diagonal and factor of the covariance over seeds, a factor of no columns where a cell is missing."""
    found = None
    if estimates.noise is not None:
        found = seed_covariance(estimates.noise, estimates.measured, rows_of(estimates, items))
    if found is None:
        notes.append(
            "The covariance over seeds needs runs with every item, so the weights rest on each item's own noise."
        )
        return items["sigma2"].to_numpy(), np.zeros((items.height, 0))
    notes.append(f"The covariance over seeds is shrunk towards its diagonal by {found.shrinkage:.3f}.")
    return found.variance, found.factor


def _panel_draws(
    estimates: PanelEstimates, items: pl.DataFrame, prices: FloatArray, config: Config, rng: np.random.Generator
) -> GameDraws:
    """Return slopes by their bootstrap and variances by that of seeds."""
    slopes, rows = estimates.slopes, rows_of(estimates, items)
    axes = [] if slopes is None else [axis for axis in slopes.axes if axis in config.prices]
    if slopes is None or not axes:
        return GameDraws()
    shared = config.estimates.residual_draws == "shared"
    kind, groups = config.estimates.slopes, task_groups(estimates.measured.items["task"])[rows]
    fits = []
    for axis in axes:
        draw = slope_draws(estimates.measured, slopes.fits[axis], rows, shared=shared, rng=rng)
        fits.append(behind_draws(draw, items, axis, kind, groups))

    def technology() -> FloatArray:
        return np.stack([draw() for draw in fits], axis=-1).transpose(1, 0, 2) / prices

    if estimates.noise is None:
        return GameDraws(technology=technology)
    whole = config.estimates.seed_draws == "auto"
    of_noise = variance_draws(estimates.noise, estimates.measured, rows, whole=whole, rng=rng)
    empty = of_noise.empty_share if isinstance(of_noise, resampling.SeedVariances) else 0.0
    if empty > (1 - config.resampling.level) / 2:
        return GameDraws(technology=technology)  # too many draws would have no noise at all
    found = None
    if config.estimates.covariance == "full":
        found = seed_covariance(estimates.noise, estimates.measured, rows)
    if found is None or not isinstance(of_noise, resampling.SeedVariances):
        return GameDraws(technology=technology, variance=lambda: of_noise().T)
    return GameDraws(technology=technology, covariance=covariance_draws(of_noise, found.shrinkage))


def covariance_draws(
    of_noise: resampling.SeedVariances, shrinkage: float
) -> Callable[[], tuple[FloatArray, FloatArray]]:
    """Return draws of the covariance over seeds, at its shrinkage: seeds drawn again, the same for all items.

    The replicate of ``SeedVariances`` with products of items in place of squares. Every item has the same runs; a seed
    without one at a checkpoint is left out there, and a draw in which no checkpoint keeps two is made again. Factors
    have a column for each run that is drawn, so their number varies from draw to draw.
    """
    rng, residual, groups = of_noise.rng, of_noise.residual, of_noise.groups
    alike = list(of_noise.alike or range(len(groups)))
    sizes = dict(zip(alike, map(len, groups), strict=True))
    present = [np.flatnonzero(~np.isnan(residual[0, at])) for at in groups]
    parts = [
        residual[:, at[on]] * np.sqrt(len(on) / max(len(on) - 1, 1)) for at, on in zip(groups, present, strict=True)
    ]

    def draw() -> tuple[FloatArray, FloatArray]:
        df = 0.0
        while df == 0:
            made = {number: np.bincount(rng.integers(n, size=n), minlength=n) for number, n in sizes.items()}
            drawn = [made[number][on] for number, on in zip(alike, present, strict=True)]
            df = float(sum(max(counts.sum() - 1, 0) for counts in drawn))
        columns = []
        for part, counts in zip(parts, drawn, strict=True):
            about_mean = np.eye(len(counts)) - counts[:, None] / max(counts.sum(), 1)
            columns.append(part @ (about_mean * np.sqrt(counts / df))[:, counts > 0])
        factor = np.hstack(columns)
        squares = np.einsum("ij,ij->i", factor, factor)
        factor *= np.sqrt(1 - shrinkage)
        return shrinkage * squares, factor

    return draw


def _table_draws(
    model: ItemAggregation,
    items: pl.DataFrame,
    improvability: ImprovabilityAudit | None,
    noise: NoiseAudit | None,
    level: float,
    rng: np.random.Generator,
) -> GameDraws:
    """Return slopes and variances from rank intervals of a level."""
    stated = np.asarray(model.noise_variance)
    cost = None if improvability is None else log_spread(improvability.items, items, "cost_usd", "cost_rank", level)
    sigma = None if noise is None else log_spread(noise.items, items, "sigma", "noise_rank", level)
    said = {"cost": "one factor for all slopes of an item, whose signs stay", "noise": "a factor for each variance"}
    notes = []
    for (name, how), spread in zip(said.items(), (cost, sigma), strict=True):
        if spread is None:
            notes.append(f"The source has no intervals of ranks by {name}, so {name} is not drawn.")
            continue
        left = int(np.isnan(spread).any(axis=0).sum())
        rest = f"; {count(left, 'item')} without one keep theirs" if left else ""
        notes.append(
            f"Draws of {name}: intervals of ranks (level {level:g}), read as intervals of {name} through the sorted "
            f"column; {how}; items apart from each other{rest}."
        )
    of_cost, of_sigma = (None if spread is None else two_sided(np.nan_to_num(spread), rng) for spread in (cost, sigma))
    return GameDraws(
        technology=None if of_cost is None else lambda: model.technology / of_cost()[:, :, None],
        variance=None if of_sigma is None else lambda: stated * np.square(of_sigma()),
        notes=tuple(notes),
    )


def log_spread(
    table: pl.DataFrame, items: pl.DataFrame, value: str, rank: str, level: float = PUBLISHED_LEVEL
) -> FloatArray | None:
    """Return log-scale standard deviations below and above an item's value, (2, m); None without any rank interval.

    ``level`` is that of the rank intervals. NaN for an item without one. An end on the wrong side of the value gives 0:
    the value is its own bound.
    """
    ranked = table.drop_nulls(rank).sort(rank)
    ends = items.select(*ITEM).join(ranked, on=ITEM, how="left", maintain_order="left")
    if not ends[f"{rank}_lo"].count():
        return None
    with np.errstate(divide="ignore"):
        ordered = np.log(ranked[value].to_numpy())
        own = np.log(ends[value].cast(pl.Float64).fill_null(np.nan).to_numpy())
    low, high = (ends[f"{rank}_{end}"].cast(pl.Float64).fill_null(np.nan).to_numpy() for end in ("lo", "hi"))
    known = np.isfinite(low) & np.isfinite(high) & np.isfinite(own)
    spread = np.full((2, items.height), np.nan)
    places = [np.clip(end[known].astype(np.int64), 1, ordered.size) - 1 for end in (low, high)]
    gaps = np.stack([own[known] - ordered[places[0]], ordered[places[1]] - own[known]])
    spread[:, known] = np.where(np.isfinite(gaps), np.maximum(gaps, 0.0) / stats.norm.isf((1 - level) / 2), np.nan)
    return spread


def two_sided(spread: FloatArray, rng: np.random.Generator) -> Draw:
    """Return factors exp(z s), z standard normal, with s = spread[0] below and spread[1] above 0: their median is 1."""

    def draw() -> FloatArray:
        z = rng.standard_normal((CHUNK, spread.shape[1]))
        factors: FloatArray = np.exp(z * np.where(z < 0, spread[0], spread[1]))
        return factors

    return draw


def _welfare_draws(
    model: ItemAggregation, items: pl.DataFrame, tables: ItemTables | None, config: Config, rng: np.random.Generator
) -> tuple[Draw | None, tuple[str, ...]]:
    """Return draws of welfare, or None, and notes."""
    found = "the source has no judge's rankings." if tables is None else welfare_draws(items, tables, config.welfare)
    if isinstance(found, str):
        return None, (f"Welfare is not drawn: {found}",)
    share = config.welfare.automation_share
    mixture = {framing: part for framing, part in zip(PERSPECTIVES, (share, 1 - share), strict=True) if part}
    return lambda: model.welfare + found.draw(mixture, CHUNK, rng), found.notes
