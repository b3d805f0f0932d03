"""Several welfare sources: how the optimal weights move from one to another, and which items are heavy under all.

A source gives each item a value; its welfare is sign * (value - neutral), so that below the neutral point (above it,
where less is better) an item's improvement does harm. Between two sources lies the mixture (1 - t) first + t second;
technology, noise, risk aversion and curvature stay, so what moves is the weights' direction.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from benchwright._check import FloatArray, finite_array
from benchwright._json import json_safe
from benchwright._shown import Headline, Shown, ShownPart
from benchwright.choices import WelfareSourceChoice
from benchwright.errors import DataError, Fault, UsageError
from benchwright.logs.item_tables import ITEM
from benchwright.logs.tabular import Column, Table, read_table
from benchwright.mechanism._uncertainty import against_uniform
from benchwright.mechanism.aggregation import ItemAggregation, evaluate_scheme, optimal_weights
from benchwright.mechanism.constraints import Constraints
from benchwright.mechanism.results import item_name

if TYPE_CHECKING:
    import polars as pl

    from benchwright.mechanism.uncertainty import WeightSpread

Standing = Literal["heavy", "light", "depends"]


@dataclass(frozen=True, slots=True, eq=False)
class WelfareSource(Shown):
    """A table of item values and how to read it as welfare.

    Parameters
    ----------
    frame
        task, doc_id, value: one row an item.
    sign
        1 where more is better, -1 where less is.
    neutral
        Value at which improving an item is worth nothing, in the units of ``value``.
    """

    frame: pl.DataFrame
    sign: int = 1
    neutral: float = 0.0

    def __post_init__(self) -> None:
        if missing := [name for name in (*ITEM, "value") if name not in self.frame.columns]:
            raise UsageError(f"`frame` must have the columns task, doc_id and value; it lacks {', '.join(missing)}")
        if not self.frame["value"].dtype.is_numeric():
            raise UsageError(f"`frame` must hold numbers in value, got {self.frame['value'].dtype}")
        if self.sign not in (1, -1):
            raise UsageError(f"`sign` must be 1 or -1, got {self.sign!r}")
        if not np.isfinite(self.neutral):
            raise UsageError(f"`neutral` must be finite, got {self.neutral!r}")
        if self.frame.select(*ITEM).is_duplicated().any():
            row = self.frame.filter(self.frame.select(*ITEM).is_duplicated()).select(*ITEM).row(0)
            raise UsageError(f"`frame` has the item {row} twice")

    def welfare(self, items: pl.DataFrame, *, name: str = "source") -> FloatArray:
        """Return welfare per score of ``items`` (task, doc_id), (m,).

        Raises
        ------
        DataError
            The source lacks an item, or has no number for it; all of them are listed.
        """
        if self.frame["doc_id"].dtype != items["doc_id"].dtype:
            raise DataError(f"welfare source {name} does not share item ids: one has text, the other integers")
        joined = items.select(*ITEM).join(self.frame, on=ITEM, how="left", maintain_order="left")
        value = joined["value"].cast(float).fill_null(np.nan).to_numpy()
        lacking = ~np.isfinite(value)
        if lacking.any():
            raise DataError(
                f"welfare source {name} lacks {int(lacking.sum())} of the {items.height} items that carry a weight",
                faults=[Fault(name, f"no value for {key}") for key in joined.filter(lacking).select(*ITEM).iter_rows()],
                hint="a missing value is not 0: give each item one, or leave the source out",
            )
        return self.sign * (value - self.neutral)


def read_welfare_sources(choices: Mapping[str, WelfareSourceChoice]) -> dict[str, WelfareSource]:
    """Read the tables that a configuration names under ``[welfare_sources]``.

    Raises
    ------
    DataError
        A file is missing or has faults; all of them are listed.
    """
    found, faults = {}, list[Fault]()
    for name, choice in choices.items():
        columns = (Column("task", "text"), Column("doc_id", "id"), Column(choice.column, "number"))
        if not Path(choice.file).is_file():
            faults.append(Fault(choice.file, f"no such file, named as the welfare source {name}"))
            continue
        frame = read_table(Path(choice.file), Table(columns, ITEM), faults)
        if frame is not None:
            found[name] = WelfareSource(frame.rename({choice.column: "value"}), choice.sign, choice.neutral)
    if faults:
        raise DataError("welfare sources cannot be used", faults=faults, hint="mend [welfare_sources] or the files")
    return found


@dataclass(frozen=True, slots=True, eq=False)
class WelfarePath(Shown):
    """The optimal weights under several values of items: along a mixture of two sources, then under each other one.

    Attributes
    ----------
    points
        Names of the P points: the mixtures as "0.3 augmentation", with as many digits as tell them apart, then the
        other sources.
    mixture : (P,)
        Part of the second source, NaN for the others.
    shares : (P, m)
        Shares of the optimal weights under the constraints, NaN where no weights help.
    efficiency, alignment : mapping of (P,)
        Of each scheme: efficiency at its best scale, and the sign of u'Mw.
    first, second
        Names of the two sources.
    """

    points: tuple[str, ...]
    mixture: FloatArray
    shares: FloatArray
    efficiency: Mapping[str, FloatArray]
    alignment: Mapping[str, FloatArray]
    first: str
    second: str
    item_names: tuple[str, ...] | None

    @property
    def helped(self) -> NDArray[np.bool_]:
        """At which points some weights help, (P,)."""
        helped: NDArray[np.bool_] = np.any(np.isfinite(self.shares), axis=1)
        return helped

    @property
    def standing(self) -> tuple[Standing, ...]:
        """Per item: heavy or light where its share lies above or below 1 / m, beyond rounding, at every point where
        some weights help; else depends.
        """
        known = against_uniform(self.shares[self.helped])
        if not len(known):
            return tuple("depends" for _ in self.shares.T)
        heavy, light = np.all(known > 0, axis=0), np.all(known < 0, axis=0)
        found: list[Standing] = ["heavy" if up else "depends" for up in heavy]
        return tuple("light" if down else one for one, down in zip(found, light, strict=True))

    def _told(self) -> Iterable[ShownPart]:
        counts = {kind: self.standing.count(kind) for kind in ("heavy", "light", "depends")}
        yield Headline(
            f"Weights from {self.first} to {self.second}, at the {int(self.helped.sum())} of {len(self.points)} points "
            f"where some help: {counts['heavy']} items heavier than uniform at every one, {counts['light']} lighter, "
            f"{counts['depends']} depend on the source"
        )
        for p, point in enumerate(self.points):
            values = ", ".join(f"{name} {values[p]:.4f}" for name, values in self.efficiency.items())
            yield f"  {point}: {values}" if values else f"  {point}"

    def to_frame(self) -> pl.DataFrame:
        """One row a point and scheme: point, mixture, scheme, efficiency, alignment."""
        import polars as pl

        rows = [
            (point, None if np.isnan(t) else float(t), name, json_safe(values[p]), int(self.alignment[name][p]))
            for p, (point, t) in enumerate(zip(self.points, self.mixture, strict=True))
            for name, values in self.efficiency.items()
        ]
        schema = {"point": pl.String, "mixture": pl.Float64, "scheme": pl.String, "efficiency": pl.Float64}
        return pl.DataFrame(rows, schema=schema | {"alignment": pl.Int64}, orient="row")

    def to_dict(self) -> dict[str, Any]:
        """All fields and ``standing``, in types that JSON knows."""
        record = {field.name: json_safe(getattr(self, field.name)) for field in fields(self)}
        return record | {"standing": list(self.standing)}


def welfare_path(
    model: ItemAggregation,
    first: Any,
    second: Any,
    *,
    names: tuple[str, str] = ("first", "second"),
    steps: int = 11,
    others: Mapping[str, Any] | None = None,
    constraints: Constraints | None = None,
    schemes: Mapping[str, Any] | None = None,
) -> WelfarePath:
    """Solve the game along a mixture of two sources of welfare.

    Parameters
    ----------
    model : ItemAggregation
        Its welfare plays no role; all else does.
    first, second : (m,) welfare per score
        The ends, with their signs and neutral points already in them.
    names
        How the ends are called.
    steps : int >= 2
        Points from one end to the other, both included.
    others : mapping of (m,), optional
        Further sources, a point each.
    constraints : Constraints, optional
    schemes : mapping of (m,) directions, optional

    Examples
    --------
    >>> model = ItemAggregation([[1.0], [1.0]], [0, 0], risk_aversion=1, noise_variance=[1.0, 3.0])
    >>> path = welfare_path(model, [1.0, 1.0], [1.0, 0.0], steps=3, schemes={"uniform": [1, 1]})
    >>> path.shares.round(3).tolist(), path.standing
    ([[0.75, 0.25], [0.75, 0.25], [0.75, 0.25]], ('heavy', 'light'))
    """
    if steps < 2:
        raise UsageError(f"`steps` must be at least 2, got {steps}")
    m = model.welfare.size
    ends = [finite_array(name, one, ndim=1, length=m) for name, one in (("first", first), ("second", second))]
    given = {} if others is None else dict(others)
    grid = np.linspace(0.0, 1.0, steps)
    digits = max(3, len(str(steps)))
    welfare = {f"{t:.{digits}g} {names[1]}": (1 - t) * ends[0] + t * ends[1] for t in grid}
    if twice := sorted(welfare.keys() & given.keys()):
        raise UsageError(f"`others` must not use the name {twice[0]!r}")
    welfare |= {name: finite_array(f"others[{name!r}]", one, ndim=1, length=m) for name, one in given.items()}
    directions = {} if schemes is None else dict(schemes)
    shares = np.empty((len(welfare), m))
    efficiency = {name: np.empty(len(welfare)) for name in directions}
    alignment = {name: np.empty(len(welfare)) for name in directions}
    for p, value in enumerate(welfare.values()):
        game = ItemAggregation(
            model.technology,
            value,
            risk_aversion=model.risk_aversion,
            noise_variance=model.noise_variance,
            noise_factor=model.noise_factor,
            curvature=model.curvature,
            names=model.names,
        )
        best = optimal_weights(game)
        shares[p] = (best if constraints is None else optimal_weights(game, constraints, optimum=best)).shares
        for name, direction in directions.items():
            judged = evaluate_scheme(game, direction, optimum=best)
            efficiency[name][p], alignment[name][p] = judged.efficiency, judged.alignment
    return WelfarePath(
        points=tuple(welfare),
        mixture=np.append(grid, np.full(len(given), np.nan)),
        shares=shares,
        efficiency=efficiency,
        alignment=alignment,
        first=names[0],
        second=names[1],
        item_names=model.names,
    )


def robust_items(path: WelfarePath, *, spread: WeightSpread | None = None) -> pl.DataFrame:
    """Return per item whether it is heavier or lighter than uniform at every point where some weights help.

    Parameters
    ----------
    path
        What ``welfare_path`` returned.
    spread
        Weights over draws of the game in force, for the part of the draws in which the item is heavier than uniform.

    Returns
    -------
    pl.DataFrame
        item, standing (heavy, light, depends), share_min, share_max over the points with shares (null without any),
        heavy_in_draws (null without ``spread``).
    """
    import polars as pl

    known = path.shares[path.helped]
    m = path.shares.shape[1]
    if spread is not None and spread.heavy.size != m:
        raise UsageError(f"`spread` must be of the {m} items of `path`, got {spread.heavy.size}")
    ends = (known.min(axis=0), known.max(axis=0)) if len(known) else (np.full(m, np.nan),) * 2
    drawn = pl.Series([None] * m, dtype=pl.Float64) if spread is None else pl.Series(spread.heavy)
    return pl.DataFrame(
        {
            "item": [item_name(path.item_names, i) for i in range(m)],
            "standing": list(path.standing),
            "share_min": pl.Series(ends[0]).fill_nan(None),
            "share_max": pl.Series(ends[1]).fill_nan(None),
            "heavy_in_draws": drawn,
        }
    )
