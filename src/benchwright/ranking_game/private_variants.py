"""What the best of N undisclosed submissions adds by luck alone, and how large N must be to explain a lead.

N equally good variants whose scores have independent normal noise of standard deviation sigma show, as their best,
E max of N standard normals times sigma more than they are worth. For a score p on m items sigma = sqrt(p (1 - p) / m).
Variants tested on the same items are correlated, so their luck is less: with the panel of their item scores it is
resampled.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import norm

from benchwright._check import FloatArray, finite_array, non_negative
from benchwright._json import json_safe
from benchwright._shown import Shown, ShownPart, ShownTable
from benchwright.errors import DataError, UsageError
from benchwright.ranking_game.input_columns import ITEM_SUBMISSIONS, SUBMISSIONS

if TYPE_CHECKING:
    import polars as pl

NODES = 400
REACH = 9.0  # standard deviations beyond which a standard normal is left out
MOST = 10**9
ITEMS_AT_ONCE = 1 << 22


def expected_maximum(n: int) -> float:
    """Return the expected maximum of n independent standard normals, 1 <= n <= 10^9.

    >>> [round(expected_maximum(n), 6) for n in (1, 2, 5)]
    [0.0, 0.56419, 1.162964]
    """
    if not 1 <= n <= MOST:
        raise UsageError(f"`n` must lie in 1 .. {MOST:,}, got {n}")
    x, w = np.polynomial.legendre.leggauss(NODES)
    x, w = REACH * x, REACH * w
    return float((w * x) @ np.exp(np.log(n) + norm.logpdf(x) + (n - 1) * norm.logcdf(x))) if n > 1 else 0.0


def variants_to_explain(lead: float, sigma: float) -> int | None:
    """Return the least N whose best variant is expected to lead by ``lead`` by luck; None above 10^9.

    >>> variants_to_explain(0.01, (0.6 * 0.4 / 100) ** 0.5)
    2
    """
    sigma = non_negative("sigma", sigma)
    if not np.isfinite(lead):
        raise UsageError(f"`lead` must be a finite number, got {lead}")
    if lead <= 0:
        return 1
    if sigma * expected_maximum(MOST) < lead:
        return None
    low, high = 1, 2
    while sigma * expected_maximum(high) < lead:
        low, high = high, min(2 * high, MOST)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if sigma * expected_maximum(middle) >= lead else (middle, high)
    return high


def panel_lift(scores: Any, *, rng: np.random.Generator, replicates: int = 2000) -> float:
    """Return what the best of N variants gains by luck on shared items, by resampling items.

    Parameters
    ----------
    scores : (N, m) item scores of the variants
        All on the same items, without gaps.
    rng : source of randomness
    replicates : int >= 1

    Returns
    -------
    float
        Mean over resampled item sets of the greatest excess of a variant's mean over its own mean: the luck that the
        best of equally good variants would have.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> same = np.tile(rng.random(400) < 0.6, (5, 1)) * 1.0   # five copies of one model: no luck to pick from
    >>> abs(panel_lift(same, rng=rng)) < 0.002
    True
    """
    x = finite_array("scores", scores, ndim=2)
    if x.shape[1] == 0 or x.shape[0] == 0:
        raise UsageError(f"`scores` must hold a variant and an item, got shape {x.shape}")
    if replicates < 1:
        raise UsageError(f"`replicates` must be at least 1, got {replicates}")
    centred, m = x - x.mean(axis=1, keepdims=True), x.shape[1]
    total, done = 0.0, 0
    while done < replicates:
        size = min(max(1, ITEMS_AT_ONCE // m), replicates - done)
        counts = rng.multinomial(m, np.full(m, 1 / m), size=size)
        total += float((counts @ centred.T / m).max(axis=1).sum())
        done += size
    return total / replicates


@dataclass(frozen=True, slots=True, eq=False)
class VariantReport(Shown):
    """Best and mean of each developer's submissions, and what luck explains; developers by their best public score.

    Attributes
    ----------
    developers : tuple of str
    variants : (k,) int
        Known submissions of each, private ones included.
    best, mean : (k,) score
        Best public submission, mean of all.
    sigma : (k,) score
        Standard deviation of one submission's score from its items, at the median submission.
    lift : (k,) score
        Expected lead of the best of equally good variants over their worth.
    lead : (k,) score
        Best over the next developer's best; NaN for the last.
    explained_by : tuple of int or None
        Least number of variants with which luck alone is expected to give that lead; None above 10^9 or for the last.
    notes : tuple of str
        What the luck rests on, and what was left out.
    """

    developers: tuple[str, ...]
    variants: np.ndarray
    best: FloatArray
    mean: FloatArray
    sigma: FloatArray
    lift: FloatArray
    lead: FloatArray
    explained_by: tuple[int | None, ...]
    notes: tuple[str, ...] = ()

    @property
    def by_mean(self) -> tuple[str, ...]:
        """Developers in the order of the mean over their submissions."""
        return tuple(self.developers[int(i)] for i in np.argsort(-self.mean, kind="stable"))

    def _told(self) -> Iterable[ShownPart]:
        rows = []
        for i, name in enumerate(self.developers):
            told = "" if self.explained_by[i] is None else f"{self.explained_by[i]} variants"
            lead = "" if np.isnan(self.lead[i]) else f"{self.lead[i]:.4f}"
            figures = (f"{part[i]:.4f}" for part in (self.best, self.mean, self.lift))
            rows.append((name, str(self.variants[i]), *figures, lead, told))
        yield ShownTable(("developer", "variants", "best", "mean", "luck", "lead", "explained by"), rows)
        yield f"order by mean: {', '.join(self.by_mean)}"
        yield from (f"  {note}" for note in self.notes)

    def to_frame(self) -> pl.DataFrame:
        """One row a developer."""
        import polars as pl

        names = [name for name in self.__dataclass_fields__ if name not in ("developers", "explained_by", "notes")]
        columns: dict[str, Any] = {"developer": self.developers} | {name: getattr(self, name) for name in names}
        return pl.DataFrame(columns | {"explained_by": pl.Series(self.explained_by, dtype=pl.Int64)})

    def to_dict(self) -> dict[str, Any]:
        """All fields and the order by mean, in types that JSON knows."""
        record = {name: getattr(self, name) for name in self.__dataclass_fields__} | {"by_mean": self.by_mean}
        return {key: json_safe(value) for key, value in record.items()}


def report_variants(submissions: pl.DataFrame) -> VariantReport:
    """Compare developers by their best public and by their mean submission, and say what luck explains.

    Parameters
    ----------
    submissions : DataFrame
        One row a submission: developer, n_items, score in [0, 1], public (0 or 1).

    Raises
    ------
    UsageError
        A column is missing.
    DataError
        A score outside [0, 1], fewer than one item, or a developer without a public submission.
    """
    if missing := [name for name in SUBMISSIONS if name not in submissions.columns]:
        raise UsageError(
            f"submissions lack the column(s) {', '.join(missing)}", hint=f"needed: {', '.join(SUBMISSIONS)}"
        )
    found = []
    for (name,), group in submissions.group_by(["developer"], maintain_order=True):
        score, items = (group[column].cast(float).to_numpy() for column in ("score", "n_items"))
        public = group["public"].cast(bool).fill_null(False).to_numpy()
        if not (np.isfinite(score) & (score >= 0) & (score <= 1)).all():
            raise DataError(f"{name}: scores must lie in [0, 1], got {score.tolist()}")
        if not (np.isfinite(items) & (items >= 1) & (items % 1 == 0)).all():
            raise DataError(f"{name}: `n_items` must be whole numbers, at least 1, got {items.tolist()}")
        middle = float(np.median(score))
        sigma = float(np.sqrt(middle * (1 - middle) / np.median(items)))
        found.append(_Developer(str(name), score, public, sigma, sigma * expected_maximum(score.size), sigma))
    return _report(found, ("luck of independent variants, each with the binomial noise of its items",))


def report_item_variants(scores: pl.DataFrame, *, rng: np.random.Generator, replicates: int = 2000) -> VariantReport:
    """Compare developers as ``report_variants`` does, from item scores: variants share items, so luck is resampled.

    Variants that answer the same items go up and down together, and the best of them gains less by luck than the best
    of independent ones. ``explained_by`` takes as noise of one variant that which gives the resampled luck.

    Parameters
    ----------
    scores : DataFrame
        One row a developer, variant and item: developer, variant, doc_id, score in [0, 1], and perhaps public (0 or 1;
        by default every variant is public). Items that a variant lacks are left out for its developer, and named.
    rng : source of randomness
    replicates : int >= 1

    Raises
    ------
    UsageError
        A column is missing.
    DataError
        A score outside [0, 1], an item twice, no items in common, a developer without a public variant.
    """
    if missing := [name for name in ITEM_SUBMISSIONS if name not in scores.columns]:
        raise UsageError(
            f"item scores lack the column(s) {', '.join(missing)}", hint=f"needed: {', '.join(ITEM_SUBMISSIONS)}"
        )
    if (twice := scores.select(ITEM_SUBMISSIONS[:3]).is_duplicated()).any():
        row = scores.filter(twice).row(0, named=True)
        raise DataError(f"{row['developer']}, {row['variant']}: item {row['doc_id']} is there twice")
    found, notes = [], ["luck resampled over the items that a developer's variants share"]
    for (name,), group in scores.group_by(["developer"], maintain_order=True):
        table = group.pivot("variant", index="doc_id", values="score", maintain_order=True)
        common = table.drop_nulls()
        if not common.height:
            raise DataError(f"{name}: its variants have no item in common")
        if common.height < table.height:
            notes.append(f"{name}: {table.height - common.height} of {table.height} items not common to all left out")
        x = common.drop("doc_id").to_numpy().T.astype(np.float64)
        if not (np.isfinite(x) & (x >= 0) & (x <= 1)).all():
            raise DataError(f"{name}: scores must lie in [0, 1]")
        public = np.ones(x.shape[0], dtype=bool)
        if "public" in group.columns:
            public = (
                group.group_by("variant", maintain_order=True).first()["public"].cast(bool).fill_null(False).to_numpy()
            )
        mean = x.mean(axis=1)
        sigma = float(x[int(np.argsort(mean, kind="stable")[mean.size // 2])].std() / np.sqrt(x.shape[1]))
        lift = panel_lift(x, rng=rng, replicates=replicates) if mean.size > 1 else 0.0
        luck = lift / expected_maximum(mean.size) if mean.size > 1 else sigma
        found.append(_Developer(str(name), mean, public, sigma, lift, luck))
    return _report(found, tuple(notes))


@dataclass(frozen=True, slots=True)
class _Developer:
    """One developer's submissions; ``noise`` of one variant, were they independent, gives the ``lift`` of all."""

    name: str
    score: FloatArray
    public: np.ndarray
    sigma: float
    lift: float
    noise: float


def _need(what: str, table: pl.DataFrame, columns: tuple[str, ...]) -> None:
    if missing := [name for name in columns if name not in table.columns]:
        raise UsageError(f"{what} lack the column(s) {', '.join(missing)}", hint=f"needed: {', '.join(columns)}")


def _report(developers: list[_Developer], notes: tuple[str, ...]) -> VariantReport:
    """Put developers in the order of their best public submission."""
    for one in developers:
        if not one.public.any():
            raise DataError(f"{one.name} has no public submission", hint="mark what the board shows with public = 1")
    if not developers:
        raise DataError("there are no submissions")
    rows = sorted(developers, key=lambda one: -float(one.score[one.public].max()))
    best = np.array([float(one.score[one.public].max()) for one in rows])
    lead = np.append(-np.diff(best), np.nan)
    needed = [variants_to_explain(float(gap), one.noise) for gap, one in zip(lead[:-1], rows, strict=False)]
    return VariantReport(
        developers=tuple(one.name for one in rows),
        variants=np.array([one.score.size for one in rows]),
        best=best,
        mean=np.array([float(one.score.mean()) for one in rows]),
        sigma=np.array([one.sigma for one in rows]),
        lift=np.array([one.lift for one in rows]),
        lead=lead,
        explained_by=(*needed, None),
        notes=notes,
    )
