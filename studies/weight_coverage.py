"""How often intervals of weights and efficiencies hold the truth: ``python studies/weight_coverage.py [--panels 200]``.

A true game of ``ITEMS`` items on two axes is seen through data: scores of models on a grid of doses, whose errors are
in part shared by all items, and scores of repeated seeds. From each set of data slopes and variances are estimated,
drawn again as benchwright draws them, and the game is solved for each draw. Rows "ranks" see the same estimates, but
only the rank intervals of a published table (errors not shared, as such tables take them); rows with a kind of slopes
scale or shrink the estimates, within tasks of 15 items, and draw them so. Judged: intervals of v*, of
the efficiency of the plain average, of the efficiency that the estimated weights have in the true game, and the two
verdicts. Prints a Markdown table; level 0.95.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from benchwright.estimating import _resampling as resampling
from benchwright.estimating._slopes import corrected_scale, shrunk_slopes
from benchwright.mechanism.aggregation import ItemAggregation, evaluate_scheme, optimal_weights
from benchwright.mechanism.draws import GameDraws, log_spread, two_sided
from benchwright.mechanism.moved_slopes import shrunk_draws
from benchwright.mechanism.uncertainty import AS_GOOD, OPEN, RIGHT, UNSETTLED, WORSE, WRONG, weight_uncertainty

Array = NDArray[np.float64]
ITEMS, AXES, SEEDS, CHECKPOINTS, DRAWS, RANK_DRAWS = 60, 2, 8, 5, 199, 199
OTHERS = 440  # items of a published table that carry no weight but have ranks
BARELY = ("12 models, large errors, plain average helps barely", "ranks, large errors, plain average helps barely")
SHRUNK = "the same, helps barely, empirical-Bayes"
TASK = np.arange(ITEMS) // 15


@dataclass(frozen=True, slots=True)
class Row:
    """One way of drawing data: models an axis, standard deviations of the errors, shared and own, and what is seen."""

    name: str
    models: int
    shared: float
    own: float
    ranks: bool = False
    margin: float = 1.0  # by which welfare lies above the point where the plain average turns from help to harm
    noise: float = 3.0  # mean log variance over seeds, score^2
    slopes: str = "ols"
    anew: bool = False  # another true game for each panel: shrinkage is right over many items, not for each set of them


ROWS = (
    Row("12 models an axis, small errors", 12, 0.05, 0.1),
    Row("12 models, large errors", 12, 0.2, 0.4),
    Row("30 models, large errors", 30, 0.2, 0.4),
    Row(BARELY[0], 12, 0.2, 0.4, margin=0.01),
    Row("games anew, 12 models, large errors", 12, 0.2, 0.4, anew=True),
    Row("the same, noise-corrected", 12, 0.2, 0.4, anew=True, slopes="noise-corrected"),
    Row("the same, empirical-Bayes", 12, 0.2, 0.4, anew=True, slopes="empirical-Bayes"),
    Row("games anew, plain average helps barely", 12, 0.2, 0.4, margin=0.01, anew=True),
    Row("the same, helps barely, noise-corrected", 12, 0.2, 0.4, margin=0.01, anew=True, slopes="noise-corrected"),
    Row(SHRUNK, 12, 0.2, 0.4, margin=0.01, anew=True, slopes="empirical-Bayes"),
    Row("12 models, small errors, plain average near the best", 12, 0.05, 0.1, noise=0.0),
    Row("ranks, 12 models, small errors", 12, 0.0, 0.1, ranks=True),
    Row("ranks, 12 models, large errors", 12, 0.0, 0.4, ranks=True),
    Row(BARELY[1], 12, 0.0, 0.4, ranks=True, margin=0.01),
)


def truth(rng: np.random.Generator, margin: float, noise: float) -> ItemAggregation:
    """Return the true game; the items of the table that carry no weight have welfare 0."""
    m = ITEMS + OTHERS
    slopes = rng.lognormal(0, 0.5, (m, 1)) * np.array([1.0, 0.6]) * rng.lognormal(0, 0.3, (m, AXES))
    welfare, pull = rng.normal(0, 1.5, ITEMS), slopes[:ITEMS].sum(axis=0)
    welfare += margin - pull @ slopes[:ITEMS].T @ welfare / (pull @ pull)
    welfare = np.concatenate([welfare, np.zeros(OTHERS)])
    return ItemAggregation(slopes, welfare, risk_aversion=1.0, noise_variance=rng.lognormal(noise, 1, m), curvature=1.0)


def weighed(model: ItemAggregation) -> ItemAggregation:
    """Return the game of the items that carry weight."""
    return ItemAggregation(
        model.technology[:ITEMS],
        model.welfare[:ITEMS],
        risk_aversion=1.0,
        noise_variance=np.asarray(model.noise_variance)[:ITEMS],
        curvature=1.0,
    )


def see(true: ItemAggregation, row: Row, rng: np.random.Generator) -> tuple[ItemAggregation, GameDraws]:
    """Return the estimated game of the weighed items, and its draws."""
    m = len(true.welfare)
    x = np.linspace(0, 1, row.models)
    fits, slopes = [], np.empty((m, AXES))
    centred = x - x.mean()
    for k in range(AXES):
        errors = row.shared * rng.standard_normal(row.models) + row.own * rng.standard_normal((m, row.models))
        y = true.technology[:, [k]] * x + errors
        slopes[:, k] = y @ centred / (centred @ centred)
        residual = y - y.mean(axis=1, keepdims=True) - slopes[:, [k]] * centred
        residual *= np.sqrt(row.models / (row.models - 2))
        fits.append((slopes[:, k].copy(), residual))
    sigma = np.sqrt(np.asarray(true.noise_variance))
    scores = sigma[:, None, None] * rng.standard_normal((m, CHECKPOINTS, SEEDS))
    deviation = (scores - scores.mean(axis=2, keepdims=True)).reshape(m, -1)
    variance = np.square(deviation).sum(axis=1) / (CHECKPOINTS * (SEEDS - 1))
    groups = [np.arange(SEEDS) + SEEDS * t for t in range(CHECKPOINTS)]
    stated = ItemAggregation(slopes, true.welfare, risk_aversion=1.0, noise_variance=variance, curvature=1.0)
    model = weighed(stated)
    at = slice(None) if row.ranks else slice(ITEMS)
    of_slopes: list[resampling.Draw] = [
        resampling.SlopeReplicates(b[at], e[at], x, rng, shared=not row.ranks) for b, e in fits
    ]
    of_noise = resampling.SeedVariances(deviation[at], groups, rng)

    if row.slopes != "ols":
        behind = [_behind(row.slopes, fit, x, draw) for fit, draw in zip(fits, of_slopes, strict=True)]
        technology = np.stack([slope for slope, _ in behind], axis=-1)
        model = ItemAggregation(
            technology, model.welfare, risk_aversion=1.0, noise_variance=model.noise_variance, curvature=1.0
        )
        of_slopes = [draw for _, draw in behind]

    def redrawn() -> Array:
        return np.stack([draw() for draw in of_slopes], axis=-1).transpose(1, 0, 2)

    if not row.ranks:
        return model, GameDraws(technology=redrawn, variance=lambda: of_noise().T)
    chunks = -(-RANK_DRAWS // resampling.CHUNK)
    prices = np.array([1.0, 1.0])
    cost = _ranked(cheapest(slopes, prices), np.concatenate([cheapest(redrawn(), prices) for _ in range(chunks)]))
    noise = _ranked(np.sqrt(variance), np.sqrt(np.concatenate([of_noise().T for _ in range(chunks)])))
    mine = cost.head(ITEMS)
    of_cost = two_sided(np.nan_to_num(log_spread(cost, mine, "value", "rank")), rng)
    of_sigma = two_sided(np.nan_to_num(log_spread(noise, mine, "value", "rank")), rng)
    return model, GameDraws(
        technology=lambda: model.technology / of_cost()[:, :, None],
        variance=lambda: np.asarray(model.noise_variance) * np.square(of_sigma()),
    )


def _behind(kind: str, fit: tuple[Array, Array], x: Array, draw: resampling.Draw) -> tuple[Array, resampling.Draw]:
    """Return the weighed items' slopes of a kind on one axis, and their draws."""
    slope, residual = fit[0][:ITEMS], fit[1][:ITEMS]
    error = np.sqrt(np.square(residual).mean(axis=1) / np.square(x - x.mean()).sum())
    if kind == "noise-corrected":
        scale = corrected_scale(slope, error)
        return scale * slope, lambda: scale * draw()
    best, spread = shrunk_slopes(slope, error, TASK)
    return best, shrunk_draws(draw, slope, best, np.square(spread / error), error, TASK)


def cheapest(slopes: Array, prices: Array) -> Array:
    """Return price over slope on the cheapest axis; infinite only inside a ranking."""
    with np.errstate(divide="ignore"):
        cost: Array = np.where(slopes > 0, prices / slopes, np.inf).min(axis=-1)
    return cost


def _ranked(value: Array, redrawn: Array) -> pl.DataFrame:
    """Return a published table: value, rank and its interval; items without a value have no rank."""
    order = np.argsort(np.argsort(value)) + 1.0
    places = np.argsort(np.argsort(redrawn, axis=1), axis=1) + 1.0
    low, high = np.quantile(places, [0.025, 0.975], axis=0)
    known = np.isfinite(value)
    columns = {"value": value, "rank": order, "rank_lo": np.floor(low), "rank_hi": np.ceil(high)}
    frame = pl.DataFrame({"task": ["t"] * len(value), "doc_id": np.arange(len(value))})
    return frame.with_columns(
        **{name: pl.Series(np.where(known, of, np.nan)).fill_nan(None) for name, of in columns.items()}
    )


def judge(row: Row, panels: int, rng: np.random.Generator) -> dict[str, float]:
    """Return shares of panels, or of items in them, whose interval holds the truth, and of wrong verdicts."""
    uniform = np.ones(ITEMS)
    count = dict.fromkeys(("weights", "uniform", "above", "own", "sign settled", "sign wrong", "settled", "wrong"), 0.0)
    count["efficiency"] = 0.0
    for panel in range(panels):
        if row.anew or panel == 0:
            everything = truth(rng, row.margin, row.noise)
            true = weighed(everything)
            best, plain = optimal_weights(true), evaluate_scheme(true, uniform)
        count["efficiency"] += plain.efficiency
        model, draws = see(everything, row, rng)
        found = weight_uncertainty(model, draws.of(model), schemes={"uniform": uniform}, replicates=DRAWS)
        spread, scheme, own = found.spreads["optimum"], found.scheme("uniform"), found.scheme("optimum")
        reached = evaluate_scheme(true, spread.weights).efficiency
        count["weights"] += float(((spread.lo <= best.weights) & (best.weights <= spread.hi)).mean())
        count["above"] += scheme.efficiency_hi < plain.efficiency
        count["uniform"] += scheme.efficiency_lo <= plain.efficiency <= scheme.efficiency_hi
        count["own"] += own.efficiency_lo <= reached <= own.efficiency_hi
        count["sign settled"] += scheme.sign != UNSETTLED
        count["sign wrong"] += scheme.sign == (WRONG if plain.alignment > 0 else RIGHT)
        count["settled"] += scheme.standing != OPEN
        gap = plain.efficiency - reached
        count["wrong"] += (scheme.standing == AS_GOOD and gap < -found.margin) or (scheme.standing == WORSE and gap > 0)
    return {name: n / panels for name, n in count.items()}


def _verdicts(settled: float, wrong: float) -> str:
    part = f"{wrong / settled:.0%}" if settled else "none"
    return f"{settled:.1%}, {wrong:.1%} ({part})"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Coverage of intervals of weights and efficiencies.")
    parser.add_argument("--panels", type=int, default=200)
    given = parser.parse_args()
    print("| data | weights | efficiency of the plain average, true one above (true) ", end="")
    print("| of the estimated weights | sign settled, wrong (of the settled) ", end="")
    print("| standing settled, wrong (of the settled) |\n|---|---|---|---|---|---|")
    for row in ROWS:
        share = judge(row, given.panels, np.random.default_rng(1))
        cells = [
            f"{share['weights']:.1%}",
            f"{share['uniform']:.1%}, {share['above']:.1%} ({share['efficiency']:.3f})",
            f"{share['own']:.1%}",
            _verdicts(share["sign settled"], share["sign wrong"]),
            _verdicts(share["settled"], share["wrong"]),
        ]
        print(f"| {row.name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
