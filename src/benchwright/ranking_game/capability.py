"""Who is the more capable: the order of developers from fitted curves, and how sure it is.

The ranking game asks for an order of latent capability. Fitted curves offer two: the score that tuning without end
leads to ("limit", U_i), and the fitted score at the largest tuning that all models were measured at ("tuned"). The
first rests on extrapolation, the second on data. Or the order is given.

Two fits may tie: flat curves of few items stop at the same score. Then nobody knows who is the more capable. The game
still asks for an order, so the one listed first stands above, and the pair is named. In a draw where two tie, they
stand as in the fit; a tie counts as half when draws say how sure the order is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from benchwright._check import FloatArray, non_negative
from benchwright._json import json_safe
from benchwright._shown import Headline, Shown, ShownPart
from benchwright._words import percent
from benchwright.errors import UsageError
from benchwright.panel.names import listed
from benchwright.ranking_game._curves import power_law
from benchwright.ranking_game.forms import IntArray

if TYPE_CHECKING:
    import polars as pl

CapabilityRule = Literal["limit", "tuned", "given"]
DECIMALS_OF_LIMITS = 6  # limits that agree to so many decimals count as equal: many fits stop at a bound
NAMES_SHOWN = 3
ORDER_SHOWN = 12


@dataclass(frozen=True, slots=True, eq=False)
class CapabilityOrder(Shown):
    """An order of capability.

    Attributes
    ----------
    names : tuple of n str
    order : (n,) positions, most capable first
    rule : "limit", "tuned" or "given"
        The rule that was used: where all limits agree it is "tuned", though "limit" was asked for.
    value : (n,) score
        What orders the developers: the limit or the tuned score; NaN where given.
    effort : float
        Effort of the tuned score, which also orders equal limits; NaN where given.
    tied : tuple of (name, name)
        Neighbours whose order is not known: the fit has the same capability for both.
    above : (n - 1,) share of draws
        In which the developer of a place stands above that of the next place, a tie counted as half; NaN without draws,
        or where given.
    whole : float, share of draws
        In which the whole order is the same and nobody ties.
    kendall_tau : float
        Mean Kendall tau of the draws' orders to this one.
    draws : int
    notes : tuple of str
    """

    names: tuple[str, ...]
    order: IntArray
    rule: CapabilityRule
    value: FloatArray
    effort: float
    tied: tuple[tuple[str, str], ...]
    above: FloatArray
    whole: float
    kendall_tau: float
    draws: int
    notes: tuple[str, ...]

    @property
    def capability(self) -> FloatArray:
        """A number for each developer (n,) that orders them: n for the most capable, 1 for the least."""
        return capability_of(self.order)

    def over(self, draws: Mapping[str, Any]) -> CapabilityOrder:
        """The same order, with how often draws, parameters (B, n), agree; as it is where it was given."""
        if self.rule == "given" or not len(draws["alpha"]):
            return self
        worlds, ties = draw_orders(draws, self)
        above, whole, tau = _agreement(self.order, worlds, ties)
        size, notes = worlds.shape[0], self.notes
        if some := int(ties.any(axis=1).sum()):
            notes += (f"in {some} of {size} draws capabilities tie: those developers stand there as in the fit",)
        return replace(self, above=above, whole=whole, kendall_tau=tau, draws=size, notes=notes)

    @property
    def words(self) -> str:
        """The rule in words."""
        return {
            "limit": "fitted limit of the score under tuning",
            "tuned": f"fitted score at effort {self.effort:g}",
            "given": "the order that was given",
        }[self.rule]

    def _told(self) -> Iterable[ShownPart]:
        yield Headline(
            f"Order of capability by {self.words}: {listed((self.names[i] for i in self.order), ORDER_SHOWN)}"
        )
        if self.draws:
            weakest = int(np.argmin(self.above))
            pair = [self.names[self.order[weakest + k]] for k in (0, 1)]
            yield (
                f"  same order in {percent(self.whole)} of {self.draws} draws, mean Kendall tau {self.kendall_tau:.3f};"
                f" least sure: {pair[0]} above {pair[1]}, {percent(float(self.above[weakest]))}"
            )
        yield from (f"  {note}" for note in self.notes)

    def to_frame(self) -> pl.DataFrame:
        """One row a place: place (from 1), developer, value, above_next (share of draws; null for the last)."""
        import polars as pl

        columns = {
            "place": np.arange(1, len(self.names) + 1),
            "developer": [self.names[i] for i in self.order],
            "value": self.value[self.order],
            "above_next": np.append(self.above, np.nan),
        }
        return pl.DataFrame(columns).with_columns(pl.col("value", "above_next").fill_nan(None))

    def to_dict(self) -> dict[str, Any]:
        """All fields, names in place of positions, in types that JSON knows; null where there is none."""
        record: dict[str, Any] = {"rule": self.rule, "order": [self.names[i] for i in self.order]}
        record |= {"value": self.value[self.order], "effort": self.effort, "tied": self.tied, "above_next": self.above}
        record |= {"whole_order": self.whole, "kendall_tau": self.kendall_tau, "draws": self.draws}
        safe: dict[str, Any] = json_safe(record | {"notes": self.notes})
        return safe


def capability_order(
    parameters: Mapping[str, Any],
    *,
    names: Sequence[str],
    rule: Literal["limit", "tuned"] | Sequence[str] = "limit",
    effort: float,
    draws: Mapping[str, Any] | None = None,
) -> CapabilityOrder:
    """Order developers by capability.

    Parameters
    ----------
    parameters : mapping of (n,) arrays
        ``alpha``, ``beta``, ``lower`` and ``upper`` of fitted power-law curves.
    names : sequence of n str
    rule : "limit", "tuned" or names
        By U_i, by the score at ``effort``, or as given, best first. Limits that agree to six decimals are ordered by
        the score at ``effort``, and the result says so. Where that is the same too, the order is not known: they stand
        as listed, and ``tied`` names them.
    effort : float >= 0
        The largest effort that all models were measured at.
    draws : mapping of (B, n) arrays, optional
        Parameters of bootstrap draws; each is ordered by the same rule.

    Raises
    ------
    UsageError
        For a rule that is not known, and given names that are not the developers'.

    Examples
    --------
    >>> fitted = {"alpha": [0.0, 1.0], "beta": [0.5, 0.5], "lower": [0.0, 0.0], "upper": [0.9, 0.8]}
    >>> print(capability_order(fitted, names=["a", "b"], effort=10.0))
    Order of capability by fitted limit of the score under tuning: a, b
    >>> print(capability_order(fitted, names=["a", "b"], rule="tuned", effort=10.0))
    Order of capability by fitted score at effort 10: b, a
    """
    labels = tuple(map(str, names))
    n = len(labels)
    nothing = np.full(n - 1, np.nan)
    if not isinstance(rule, str):
        order = _given(labels, rule)
        return CapabilityOrder(labels, order, "given", np.full(n, np.nan), np.nan, (), nothing, np.nan, np.nan, 0, ())
    if rule not in ("limit", "tuned"):
        raise UsageError(
            f"`capability` must be limit, tuned or a list of names, got {rule!r}",
            hint="list the developers, best first, to give the order",
        )
    at = non_negative("effort", effort)
    limit, tuned = _values(parameters, at)
    used: CapabilityRule = "limit" if rule == "limit" else "tuned"
    notes = []
    groups = [np.flatnonzero(limit == value) for value in np.unique(limit)]
    alike = [group for group in groups if group.size > 1]
    if rule == "limit" and len(groups) == 1:
        used = "tuned"
        notes.append(f"all fitted limits are {limit[0]:.4g} and order nobody: the score at effort {at:g} does")
    elif rule == "limit" and alike:
        told = "; ".join(f"{_some(labels, group)} at {limit[group[0]]:.4g}" for group in alike)
        notes.append(f"limits agree of {told}: ordered by the score at effort {at:g}")
    order = ordered(limit, tuned, used)
    tied = tuple(
        (labels[order[k]], labels[order[k + 1]]) for k in np.flatnonzero(_ties(limit, tuned, order, used)).tolist()
    )
    if tied:
        pairs = listed([f"{first} and {second}" for first, second in tied])
        notes.append(f"NOT KNOWN who is more capable of {pairs}: the same score; the one listed first stands above")
    value = limit if used == "limit" else tuned
    found = CapabilityOrder(labels, order, used, value, at, tied, nothing, np.nan, np.nan, 0, tuple(notes))
    return found if draws is None else found.over(draws)


def capability_of(order: IntArray) -> FloatArray:
    """n for the first developer of an order (..., n), 1 for the last."""
    n = order.shape[-1]
    value = np.empty(order.shape)
    np.put_along_axis(value, order, np.broadcast_to(np.arange(n, 0, -1.0), order.shape), axis=-1)
    return value


def draw_orders(draws: Mapping[str, Any], found: CapabilityOrder) -> tuple[IntArray, NDArray[np.bool_]]:
    """The order (B, n) in each draw by the rule of ``found``, and which places (B, n - 1) tie with the next.

    Developers that tie stand as in ``found``.
    """
    if found.rule == "given":
        shape = (len(draws["alpha"]), found.order.size)
        return np.broadcast_to(found.order, shape), np.zeros((shape[0], shape[1] - 1), dtype=bool)
    limit, tuned = (value[:, found.order] for value in _values(draws, found.effort))
    orders = ordered(limit, tuned, found.rule)
    return found.order[orders], _ties(limit, tuned, orders, found.rule)


def ordered(limit: FloatArray, tuned: FloatArray, rule: str) -> IntArray:
    """Positions (..., n), best first; those that tie as they are listed."""
    keys = (-tuned, -limit) if rule == "limit" else (-tuned,)
    return np.lexsort(keys, axis=-1)


def _values(parameters: Mapping[str, Any], effort: float) -> tuple[FloatArray, FloatArray]:
    """Limits, rounded, and scores at ``effort``, both (..., n)."""
    alpha, beta, lower, upper = (
        np.asarray(parameters[k], dtype=np.float64) for k in ("alpha", "beta", "lower", "upper")
    )
    return upper.round(DECIMALS_OF_LIMITS), power_law(alpha + beta * np.log1p(effort), lower, upper)


def _ties(limit: FloatArray, tuned: FloatArray, order: IntArray, rule: str) -> NDArray[np.bool_]:
    """Places (..., n - 1) whose developer ties with the next."""
    same: NDArray[np.bool_] = np.diff(np.take_along_axis(tuned, order, axis=-1), axis=-1) == 0
    if rule == "limit":
        same &= np.diff(np.take_along_axis(limit, order, axis=-1), axis=-1) == 0
    return same


def _given(names: tuple[str, ...], order: Sequence[str]) -> IntArray:
    wanted = [str(name) for name in order]
    place = {name: k for k, name in enumerate(names)}
    if unknown := [name for name in wanted if name not in place]:
        raise UsageError(
            f"`capability` names no developer: {listed(unknown, NAMES_SHOWN)}", hint=f"there are: {listed(names, 10)}"
        )
    if missing := [name for name in names if name not in wanted]:
        raise UsageError(f"`capability` must list all developers, best first; {listed(missing, NAMES_SHOWN)} missing")
    if twice := [name for name, times in Counter(wanted).items() if times > 1]:
        raise UsageError(f"`capability` names {twice[0]} twice")
    return np.array([place[name] for name in wanted], dtype=np.intp)


def _agreement(order: IntArray, worlds: IntArray, ties: NDArray[np.bool_]) -> tuple[FloatArray, float, float]:
    """Shares of draws (n - 1,) with neighbours in the same order, with the whole order, and the mean Kendall tau."""
    rank = np.concatenate([np.zeros((len(worlds), 1)), np.cumsum(~ties, axis=1)], axis=1)  # tied share one
    place = np.empty(worlds.shape)
    np.put_along_axis(place, worlds, rank, axis=1)
    place = place[:, order]
    above = (1 + np.sign(np.diff(place, axis=1)).mean(axis=0)) / 2
    upper, lower = np.triu_indices(order.size, 1)
    tau = np.sign(place[:, lower] - place[:, upper]).mean()
    same = (worlds == order).all(axis=1) & ~ties.any(axis=1)
    return above, float(same.mean()), float(tau)


def _some(names: tuple[str, ...], which: IntArray) -> str:
    shown = ", ".join(names[i] for i in which[:NAMES_SHOWN])
    return shown if which.size <= NAMES_SHOWN else f"{shown} and {which.size - NAMES_SHOWN} more"
