"""What a leaderboard can publish, as conditions on the shares of its items.

The designer maximises the surplus S(v) of ``aggregation`` over a cone, the weights v with total t = 1'v >= 0 and

    non_negative   v_i >= 0
    max_share      v_i <= b_i t
    equal_within   v_i = v_j for items of one group
    fixed_shares   v_i = f_i t
    share_within   low_g t <= sum of v_i over group g <= high_g t
    at_most        no more than k items have v_i != 0

The conditions are homogeneous, so the best weights take their own best scale, their shares v / t meet the bounds, and
neither depends on the unit of reward. t >= 0 is asked for where a share is bounded or fixed: a share is a part of a
positive total.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchwright._check import FloatArray, finite_array, non_negative
from benchwright._json import json_safe
from benchwright._shown import Shown
from benchwright.errors import UsageError
from benchwright.mechanism._cone import Cone
from benchwright.mechanism.results import ROUNDING, item_name

BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.intp]
SUM_SLACK = 1e-9  # by how much bounds may miss a sum of 1 and count as meeting it


@dataclass(frozen=True, slots=True, eq=False)
class GroupShares(Shown):
    """Bounds on what the items of a group may hold together, as a share of all weight.

    Parameters
    ----------
    codes : (m,) group codes, numbers or text
        The group of each item. Kept as numbers from 0; ``names`` are the codes in their order.
    low, high : mapping from group code to share, optional
        A group that is not named has no such bound.

    Raises
    ------
    UsageError
        For a bound of no group, and where the two bounds of a group, or those of all groups, clash.

    Examples
    --------
    >>> GroupShares(["math", "code", "code"], low={"math": 0.4}).names
    ('code', 'math')
    """

    codes: IntArray | Sequence[Any]
    low: Mapping[Any, float] = field(default_factory=dict)
    high: Mapping[Any, float] = field(default_factory=dict)
    names: tuple[Any, ...] = field(init=False)

    def __post_init__(self) -> None:
        codes, names = group_numbers("share_within", self.codes)
        for side in ("low", "high"):
            bounds = {key: float(value) for key, value in dict(getattr(self, side)).items()}
            for key, value in bounds.items():
                if key not in names:
                    raise UsageError(f"`share_within` bounds the share of {key!r}, which is no group")
                if not isfinite(value):
                    raise UsageError(f"`share_within` must have finite bounds, got {value} for {key!r}")
            object.__setattr__(self, side, bounds)
        for key in self.low.keys() & self.high.keys():
            if self.low[key] > self.high[key]:
                raise UsageError(
                    f"`share_within` clashes at {key!r}: the low bound {self.low[key]:g} is above the high bound"
                    f" {self.high[key]:g}"
                )
        object.__setattr__(self, "codes", codes)
        object.__setattr__(self, "names", names)

    def to_dict(self) -> dict[str, Any]:
        """The bounds, and the group of each item, in types that JSON knows."""
        groups = [self.names[g] for g in np.asarray(self.codes)]
        return {"groups": json_safe(groups), "low": json_safe(dict(self.low)), "high": json_safe(dict(self.high))}


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Constraints(Shown):
    """Conditions on the weights of m items; one object serves every model of the same items.

    Parameters
    ----------
    non_negative : bool
        v_i >= 0.
    max_share : float or (m,), optional
        Caps b >= 0 on the shares. Beside ``non_negative`` a cap >= 1 changes nothing.
    equal_within : (m,) group codes, numbers or text, optional
        Items with one code carry one weight. Kept as numbers from 0, in the order of the codes.
    fixed_shares : mapping from item position or name to share, optional
        In a group of ``equal_within`` one item's share fixes those of all. Needs ``non_negative`` or ``max_share``.
    at_most : int >= 1, optional
        How many items may carry weight. Goes with ``non_negative`` and no other constraint.
    share_within : GroupShares, optional
        Bounds on the shares of groups of items. Solved by the library clarabel, for at most 20,000 items.

    Raises
    ------
    UsageError
        For arguments that are not as above. Constraints that clash are named when they meet the items of a model.

    Examples
    --------
    >>> Constraints(max_share=0.1).asked
    ('non_negative', 'max_share')
    """

    non_negative: bool = True
    max_share: FloatArray | float | None = None
    equal_within: IntArray | Sequence[Any] | None = None
    fixed_shares: Mapping[int | str, float] | None = None
    at_most: int | None = None
    share_within: GroupShares | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.non_negative, bool | np.bool_):
            raise UsageError(f"`non_negative` must be True or False, got {self.non_negative!r}")
        if self.max_share is not None:
            if np.ndim(self.max_share) == 0:
                caps: Any = non_negative("max_share", self.max_share)
            else:
                caps = finite_array("max_share", self.max_share, ndim=1)
                if caps.min(initial=0.0) < 0:
                    raise UsageError(f"`max_share` must be >= 0, got {caps.min():g} at item {int(caps.argmin())}")
            object.__setattr__(self, "max_share", caps)
        if self.equal_within is not None:
            object.__setattr__(self, "equal_within", group_numbers("equal_within", self.equal_within)[0])
        if self.fixed_shares is not None:
            shares = dict(self.fixed_shares)
            for item, share in shares.items():
                if not isfinite(share):
                    raise UsageError(f"`fixed_shares` must be finite, got {share} for {item}")
            object.__setattr__(self, "fixed_shares", shares if shares else None)
        if self.fixed_shares and not self.non_negative and self.max_share is None:
            raise UsageError(
                "`fixed_shares` beside `non_negative=False` needs `max_share`: nothing else bounds the shares"
            )
        if self.share_within is not None and not isinstance(self.share_within, GroupShares):
            raise UsageError(f"`share_within` must be GroupShares, got {type(self.share_within).__name__}")
        if self.at_most is not None:
            if isinstance(self.at_most, bool) or not isinstance(self.at_most, int | np.integer) or self.at_most < 1:
                raise UsageError(f"`at_most` must be a whole number >= 1, got {self.at_most!r}")
            if others := [name for name in self.asked if name not in ("at_most", "non_negative")]:
                raise UsageError(
                    f"`at_most` goes with `non_negative` alone, got `{others[0]}` as well",
                    hint="choose the items with `at_most`, then bound the shares of a model of those items",
                )

    @property
    def asked(self) -> tuple[str, ...]:
        """Names of the constraints that are asked for."""
        held = {one.name: getattr(self, one.name) for one in fields(self)}
        return tuple(name for name, value in held.items() if value is not None and value is not False)

    def without(self, name: str) -> Constraints:
        """The same but for the one called ``name``."""
        kept: dict[str, Any] = {one.name: getattr(self, one.name) for one in fields(self)}
        return Constraints(**kept | {name: False if name == "non_negative" else None})

    def to_dict(self) -> dict[str, Any]:
        """The constraints asked for, in types that JSON knows."""
        record = {name: getattr(self, name) for name in self.asked}
        if self.share_within is not None:
            record["share_within"] = self.share_within.to_dict()
        return {name: json_safe(value) for name, value in record.items()}


def group_numbers(name: str, codes: Any) -> tuple[IntArray, tuple[Any, ...]]:
    """Return groups numbered from 0 in the order of their codes, one an item, and the codes."""
    given = np.asarray(codes)
    if given.ndim != 1 or given.size == 0:
        raise UsageError(f"`{name}` must hold group codes, one an item, got shape {given.shape}")
    if given.dtype.kind == "f" and not np.isfinite(given).all():
        raise UsageError(f"`{name}` must be finite", hint="give an item without a group a code of its own")
    if given.dtype.kind in "iu" and int(given.min()) >= 0 and int(given.max()) < 4 * given.size:  # counted, not sorted
        present = np.bincount(given) > 0
        return np.asarray((np.cumsum(present) - 1)[given], dtype=np.intp), tuple(np.flatnonzero(present).tolist())
    try:
        found, groups = np.unique(given, return_inverse=True)
    except TypeError:
        raise UsageError(f"`{name}` must hold codes of one kind, numbers or text") from None
    return np.asarray(groups, dtype=np.intp), tuple(found.tolist())


@dataclass(frozen=True, slots=True, eq=False)
class Rules:
    """Constraints on the m items of a model, as bounds on group totals y_g = size_g v_i.

    Without groups each item is its own, and ``codes`` is None.
    """

    codes: IntArray | None
    sizes: FloatArray
    cone: Cone
    non_negative: bool
    caps: FloatArray | None
    fixed: BoolArray

    def totals(self, v: FloatArray) -> FloatArray:
        return v if self.codes is None else np.bincount(self.codes, v, self.sizes.size).astype(np.float64, copy=False)

    def means(self, v: FloatArray) -> FloatArray:
        return v if self.codes is None else self.totals(v) / self.sizes

    def spread(self, y: FloatArray) -> FloatArray:
        return y if self.codes is None else (y / self.sizes)[self.codes]

    def members(self, groups: BoolArray) -> tuple[int, ...]:
        return tuple(np.flatnonzero(groups if self.codes is None else groups[self.codes]).tolist())

    def allow(self, v: FloatArray) -> bool:
        """Whether ``v`` meets all constraints up to rounding."""
        y, slack, t = self.totals(v), ROUNDING * float(np.abs(v).max()), float(v.sum())
        if self.codes is not None and float(np.abs(v - self.spread(y)).max()) > slack:
            return False
        if not self.cone.coupled:
            return self.cone.linear or float(v.min()) >= -slack
        slack *= float(self.sizes.max())
        return t > 0 and bool((y >= self.cone.lower * t - slack).all() and (y <= self.cone.upper * t + slack).all())


def rules_for(asked: Constraints, m: int, names: tuple[str, ...] | None) -> Rules:
    """Return the constraints on ``m`` items; raise where two of them clash."""
    codes = None if asked.equal_within is None else np.asarray(asked.equal_within)
    if codes is not None and codes.size != m:
        raise UsageError(f"`equal_within` must hold {m} group codes, one an item, got {codes.size}")
    sizes = np.ones(m) if codes is None else np.bincount(codes).astype(np.float64)
    groups = np.arange(m) if codes is None else codes
    caps, upper = None, np.full(sizes.size, np.inf)
    if asked.max_share is not None:
        caps = np.full(m, asked.max_share) if isinstance(asked.max_share, float) else asked.max_share
        caps = finite_array("max_share", caps, ndim=1, length=m)
        np.minimum.at(upper, groups, caps)
    share, source = _fixed(asked.fixed_shares, names, groups, sizes.size)
    fixed = np.isfinite(share)
    for g in np.flatnonzero(fixed):
        name = item_name(names, int(source[g]))
        if asked.non_negative and share[g] < 0:
            raise UsageError(f"`fixed_shares` and `non_negative` clash: {name} has the share {share[g]:g} < 0")
        if share[g] > upper[g]:
            raise UsageError(f"`fixed_shares` and `max_share` clash at {name}: {share[g]:g} is above {upper[g]:g}")
    total = float(share[fixed] @ sizes[fixed])
    if asked.non_negative and total > 1 + SUM_SLACK:
        raise UsageError(f"`fixed_shares` and `non_negative` clash: the fixed shares sum to {total:g}, above 1")
    if fixed.all() and abs(total - 1) > SUM_SLACK:
        raise UsageError(f"`fixed_shares` must sum to 1 where all items are fixed, got {total:g}")
    room = total + float(upper[~fixed] @ sizes[~fixed])
    if room < 1 - SUM_SLACK:
        other = "`fixed_shares`" if fixed.any() else "`equal_within`" if codes is not None else "shares that sum to 1"
        raise UsageError(
            f"`max_share` and {other} clash: caps and fixed shares leave room for {room:g} of 1", hint="raise the caps"
        )
    if asked.non_negative:
        upper[upper * sizes >= 1] = np.inf
    lower = np.where(fixed, share, 0.0 if asked.non_negative else -np.inf) * sizes
    cone = Cone.of(lower, np.where(fixed, share, upper) * sizes)
    return Rules(codes, sizes, cone, asked.non_negative, caps, fixed)


def _fixed(
    fixed_shares: Mapping[int | str, float] | None, names: tuple[str, ...] | None, groups: IntArray, size: int
) -> tuple[FloatArray, IntArray]:
    """Return the fixed share of an item of each group, NaN where free, and the item that fixed it."""
    share, source = np.full(size, np.nan), np.zeros(size, dtype=np.intp)
    if not fixed_shares:
        return share, source
    places = {} if names is None else {name: i for i, name in enumerate(names)}
    for key, value in fixed_shares.items():
        item = places.get(key, -1) if isinstance(key, str) else int(key)
        if not 0 <= item < groups.size:
            raise UsageError(f"`fixed_shares` names {key!r}, which is no item")
        g = groups[item]
        if np.isfinite(share[g]) and share[g] != value:
            two = " and ".join(item_name(names, int(i)) for i in (source[g], item))
            raise UsageError(f"`fixed_shares` and `equal_within` clash: {two} share a group, not {share[g]:g}")
        share[g], source[g] = value, item
    return share, source
