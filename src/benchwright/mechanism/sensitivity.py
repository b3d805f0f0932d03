"""What the optimum answers to: its derivatives in closed form, and the price of each constraint."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from benchwright._check import FloatArray
from benchwright._json import json_safe
from benchwright._shown import Headline, Shown, ShownPart, ShownTable
from benchwright.errors import UsageError
from benchwright.mechanism import _sensitivity as numbers
from benchwright.mechanism.aggregation import optimal_weights
from benchwright.mechanism.constraints import Constraints
from benchwright.mechanism.game import ItemAggregation, factors
from benchwright.mechanism.results import ROUNDING, OptimalWeights, item_name

if TYPE_CHECKING:
    import polars as pl

ITEMS_SHOWN = 5


@dataclass(frozen=True, slots=True, eq=False)
class WeightSensitivity(Shown):
    """Derivatives of the weights v* without constraints, and of their shares, each with all else held.

    C is held: in reward per dollar^2 it is not calibrated again. What moves, the name of its derivative, its unit:

    own_welfare    the item's own w_i, per unit of welfare
    neutral        the neutral point: w_i falls by as much at every item, per unit of welfare
    price AXIS     log of the axis's price kappa_k, where A_ik = beta_ik / kappa_k; one entry an axis
    risk           log r, which is also a common log factor on Sigma: only r Sigma enters. 0 at r = 0
    own_noise      log of the item's own variance d_i, with F held. 0 where d_i = 0

    So 0.01 times "price RL" is what a price of RL one percent higher does to each weight.

    Attributes
    ----------
    weights, shares : (m,)
        v* in reward per score, and its shares as in ``OptimalWeights``.
    of_weights : mapping of (m,) arrays
        dv_i, one array a name above.
    of_shares : mapping of (m,) arrays
        The same of the shares; NaN where all weights are 0.
    residual : float
        ||H X - A C^-1/2|| / ||A C^-1/2|| of the X = H^-1 A C^-1/2 that all but own_noise are made of, recomputed
        from the definition of H = M + r Sigma.
    """

    weights: FloatArray
    shares: FloatArray
    of_weights: Mapping[str, FloatArray]
    of_shares: Mapping[str, FloatArray]
    item_names: tuple[str, ...] | None
    residual: float
    risk_aversion: float

    def _told(self) -> Iterable[ShownPart]:
        top = np.argsort(-np.abs(self.weights), kind="stable")[:ITEMS_SHOWN]
        yield Headline(
            f"Sensitivity of {self.weights.size} shares at risk aversion {self.risk_aversion:g},"
            f" residual {self.residual:.1e}"
        )
        rows = [
            (
                item_name(self.item_names, int(i)),
                *(f"{values[i]:.4g}" for values in (self.shares, *self.of_shares.values())),
            )
            for i in top
        ]
        yield ShownTable(("item", "share", *self.of_shares), rows, self.weights.size - ITEMS_SHOWN)

    def to_frame(self) -> pl.DataFrame:
        """One row an item: item, weight, share, and of each name the derivatives weight_NAME and share_NAME."""
        import polars as pl

        columns: dict[str, Any] = {
            "item": [item_name(self.item_names, i) for i in range(self.weights.size)],
            "weight": self.weights,
            "share": self.shares,
        }
        columns |= {f"weight_{name}": moved for name, moved in self.of_weights.items()}
        columns |= {f"share_{name}": moved for name, moved in self.of_shares.items()}
        return pl.DataFrame(columns)

    def to_dict(self) -> dict[str, Any]:
        """All fields, in types that JSON knows."""
        record: dict[str, Any] = {
            "names": [item_name(self.item_names, i) for i in range(self.weights.size)],
            "weights": self.weights,
            "shares": self.shares,
            "of_weights": dict(self.of_weights),
            "of_shares": dict(self.of_shares),
            "residual": self.residual,
            "risk_aversion": self.risk_aversion,
        }
        return {key: json_safe(value) for key, value in record.items()}


def weight_sensitivity(model: ItemAggregation, *, optimum: OptimalWeights | None = None) -> WeightSensitivity:
    """Derivatives of v* and of its shares in closed form, in O(m (n + q)^2) time.

    Where v* is not unique they are those of the shortest maximiser. ``optimum`` saves the solve where it is known.

    Raises
    ------
    UsageError
        For an ``optimum`` of another model, or one under constraints.

    Examples
    --------
    >>> model = ItemAggregation([[1.0]], [1.0], risk_aversion=1.0, noise_variance=[1.0], axes=("RL",))
    >>> answers = weight_sensitivity(model)  # v* = w a^2 / (a^2 + r d), a slope over a price
    >>> {name: moved.tolist() for name, moved in answers.of_weights.items()}
    {'own_welfare': [0.5], 'neutral': [-0.5], 'price RL': [-0.5], 'risk': [-0.25], 'own_noise': [-0.25]}
    """
    x, r = factors(model), model.risk_aversion
    best = optimal_weights(model) if optimum is None else optimum
    if best.binding or best.weights.size != x.w.size or best.risk_aversion != r:
        raise UsageError("`optimum` must be the weights of `model` without constraints")
    v, shares = best.weights, best.shares
    signs = np.ones(v.size) if v.sum() > ROUNDING * np.abs(v).sum() else np.sign(v)  # shares = v / signs'v
    found = numbers.responses(x, r, signs)
    axes = x.A @ x.half
    gap = (x.w - v) @ x.A
    left = x.half.T @ gap
    slopes = np.linalg.inv(x.half) * (x.half @ left) + x.half.T * gap
    moved = {"own_welfare": np.einsum("ij,ij->i", found.moved, axes), "neutral": -found.moved @ axes.sum(axis=0)}
    moved |= {f"price {name}": -found.moved @ slopes[:, k] for k, name in enumerate(_axes(model))}
    moved |= {"risk": -found.moved @ left if r > 0 else np.zeros(v.size), "own_noise": -v * found.own}
    sums = {name: float(signs @ moved[name]) for name in moved}
    own = {"own_welfare": axes @ (found.moved.T @ signs), "own_noise": -v * found.total}
    with np.errstate(invalid="ignore"):
        of_shares = {name: (moved[name] - shares * own.get(name, sums[name])) / (signs @ v) for name in moved}
    return WeightSensitivity(
        weights=v,
        shares=shares,
        of_weights=moved,
        of_shares=of_shares,
        item_names=model.names,
        residual=numbers.residual(x, r, found.moved),
        risk_aversion=r,
    )


def _axes(model: ItemAggregation) -> tuple[str, ...]:
    return tuple(map(str, range(model.technology.shape[1]))) if model.axes is None else model.axes


def price_of(
    model: ItemAggregation,
    constraints: Constraints,
    *,
    tolerance: float = 1e-9,
    optimum: OptimalWeights | None = None,
    under: OptimalWeights | None = None,
) -> dict[str, float]:
    """Surplus that each constraint costs: what is gained, in reward, where it alone is dropped and the others stay.

    One entry a constraint that is asked for, in reward. NaN where fixed shares would be left with nothing that keeps
    the weights from summing to 0. ``tolerance`` and ``optimum`` are those of ``optimal_weights``; ``under`` are its
    weights under all the constraints, which saves the solve where they are known.

    Examples
    --------
    >>> model = ItemAggregation([[1.0], [1.0]], [1.0, 1.0], risk_aversion=1, noise_variance=[1.0, 3.0])
    >>> {name: round(cost, 6) for name, cost in price_of(model, Constraints(max_share=0.6)).items()}
    {'non_negative': 0.0, 'max_share': 0.055901}
    """
    best = optimal_weights(model) if optimum is None else optimum

    def surplus(rules: Constraints) -> float:
        return optimal_weights(model, rules, tolerance=tolerance, optimum=best).surplus

    bound, costs = surplus(constraints) if under is None else under.surplus, {}
    for name in constraints.asked:
        try:
            less = constraints.without(name)
        except UsageError:  # fixed shares would be left with nothing that bounds the others
            costs[name] = np.nan
            continue
        costs[name] = max(surplus(less) - bound, 0.0)
    return costs
