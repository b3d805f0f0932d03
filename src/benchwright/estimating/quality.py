"""Quality of items from a matrix of scores: dead items, items that run against the rest, redundant pairs.

Let x_ij be the score of item i by model j, on one scale for all items, and missing where j did not see i. An
item is *live* if two or more models have it and their scores differ.

* Dead: all models that have the item have the same score: 1 (all right), 0 (all wrong) or another.
* Against the rest: the correlation over models of x_ij with the mean of model j's other live items,

      rest_ij = (sum_k z_kj - z_ij) / (n_j - 1),     z_kj = x_kj - mean of item k over the models that have it.

  The item is left out, since a total that contains it hides a bad one. If all models have all items, the
  centring changes no correlation; if not, it keeps a model with easy items from passing for a good one. The p
  is one-sided, P(correlation <= observed) over all arrangements of the item's scores among its models. It is
  counted where there are at most 7! = 5040 distinct arrangements (always with 7 models or fewer; of more than
  1000 models never). Else it is Student's t with n - 2 degrees of freedom, times the ratio gamma / normal at
  the exact skewness of the arrangements where that and r are negative. With one very poor model among 60
  (rests normal with sd 0.3, its own -3) and an item that 4 solve, t alone puts about 100 times too many of the
  487,635 arrangements at p <= 0.0001; with the ratio it is fewer than 0.0001. The p never lies below the least
  that the ties allow,

      prod_v a_v! prod_g b_g! / (n! prod_vg c_vg!),

  a, b, c the lengths of runs of equal scores, of equal rests and of both in the most negative arrangement.
  False discoveries are controlled over the testable items (Benjamini and Hochberg 1995), which holds for
  independent or positively dependent p-values. Where no score pattern of the item could have led to q <= alpha,
  the p-values of the others as they are, the verdict is "cannot tell".
* Redundant pairs: Yen's (1984) Q3, the correlation of two items' residuals, at least ``redundant_r`` and
  significant with Bonferroni over all pairs of live items, whichever one model is left out. Residuals are from
  a line on the rest score in each of K strata of at most 10 models of like level (K = 1, Yen's own, up to 10
  models), and t has n - 2 K - 1 degrees of freedom: with one line, steep items of like difficulty look
  redundant, because their shared step is no line. A perfect correlation makes t infinite though the evidence is
  finite: an item whose scores have A distinct arrangements within strata cannot give p below 1 / A, and it takes
  part only if that could be significant. Scores that are smooth functions of the level with next to no noise
  can still pass for redundant. The rest of one item holds the other, which pushes Q3 down by about 1 / (m - 1):
  that misses pairs and accuses none.

Yen (1984), "Effects of local item dependence", Applied Psychological Measurement 8. Benjamini and Hochberg
(1995), "Controlling the false discovery rate", Journal of the Royal Statistical Society B 57.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log
from typing import Any

import numpy as np
import polars as pl
from scipy import stats

from benchwright._check import FloatArray
from benchwright._shown import Shown
from benchwright._words import count
from benchwright.errors import UsageError
from benchwright.estimating import _quality as kernels
from benchwright.estimating._quality import BoolArray, IntArray, RestTest

DEAD = ("not dead", "all right", "all wrong", "constant", "cannot tell")
AGAINST, NO_SIGN, CANNOT_TELL = VERDICTS = ("runs against the rest", "no sign of it", "cannot tell")
MAX_LISTED_PAIRS = 1_000_000
EDGE = 1 + 1e-9  # p = 1/20 is not above 0.05 for a rounding error


@dataclass(frozen=True, slots=True, eq=False)
class ItemQuality(Shown):
    """What the scores say of each item; arrays have one entry an item, NaN or -1 where nothing can be said.

    Attributes
    ----------
    names
        Names of the items, where they were given.
    n_models, n_rest_models
        Models that have the item, and those of them that have another live item.
    dead
        One of ``DEAD``.
    item_rest_r, reversed_p, smallest_p, reversed_q
        Correlation with the rest, one-sided p-value that it is negative, least value that this p could take,
        p after control of false discoveries (NaN where the item is not testable).
    verdict
        One of ``VERDICTS``.
    n_redundant, redundant_group
        Number of redundant partners, -1 where the scores cannot tell; group of items linked by redundant
        pairs, numbered by its first item, -1 for none.
    pairs
        ``first``, ``second`` (row positions, first < second), ``r``, ``n_models``, ``identical`` (all scores
        equal at their common models).
    notes
        What was left out and why.
    """

    names: tuple[str, ...] | None
    n_models: IntArray
    dead: pl.Series
    n_rest_models: IntArray
    item_rest_r: FloatArray
    reversed_p: FloatArray
    smallest_p: FloatArray
    reversed_q: FloatArray
    verdict: pl.Series
    n_redundant: IntArray
    redundant_group: IntArray
    pairs: pl.DataFrame
    notes: tuple[str, ...]

    @property
    def counts(self) -> dict[str, int]:
        """How many items have each verdict, and how many are redundant or untold there."""
        dead, verdict = self.dead.to_list(), self.verdict.to_list()
        record = {"items": len(dead)} | {f"dead: {word}": dead.count(word) for word in DEAD}
        record |= {f"rest: {word}": verdict.count(word) for word in VERDICTS}
        redundant = {"redundant": self.n_redundant > 0, "cannot tell": self.n_redundant < 0}
        return record | {f"pairs: {word}": int(mask.sum()) for word, mask in redundant.items()}

    def to_frame(self) -> pl.DataFrame:
        """Return one row an item, null where a value does not exist."""
        columns: dict[str, Any] = {} if self.names is None else {"item": self.names}
        for name in ("n_models", "dead", "n_rest_models", "item_rest_r", "reversed_p", "smallest_p", "reversed_q"):
            columns[name] = getattr(self, name)
        columns |= {"verdict": self.verdict}
        columns |= {name: getattr(self, name) for name in ("n_redundant", "redundant_group")}
        floats, codes = pl.selectors.float(), pl.col("n_redundant", "redundant_group")
        return pl.DataFrame(columns).with_columns(
            floats.fill_nan(None), pl.when(codes >= 0).then(codes).otherwise(None).name.keep()
        )


def item_quality(
    scores: Any,
    *,
    names: Sequence[str] | None = None,
    alpha: float = 0.05,
    redundant_r: float = 0.9,
    max_pair_items: int = 20_000,
) -> ItemQuality:
    """Judge the items of one benchmark by the scores of its models.

    Parameters
    ----------
    scores
        Shape (m items, R models), finite, NaN for a missing cell. An item that nobody solved is a row of zeros.
    names
        Names of the items, one a row.
    alpha
        False-discovery rate of "runs against the rest"; family-wise error rate of the redundant pairs.
    redundant_r
        Least Q3 of a redundant pair. At 0.9 two items share 0.81 of the variance that the level of the models
        leaves: the second adds little. A significant but lower Q3 is common among items of one topic.
    max_pair_items
        With more live items no pairs are looked for, and a note says so: the time grows with their square.

    Raises
    ------
    UsageError
        An argument has the wrong shape, type or range.

    Examples
    --------
    >>> quality = item_quality([[1, 1, 1, 0], [1, 0, 1, 0], [0, 0, 0, 1], [1, 1, 1, 1]])
    >>> quality.dead.to_list()
    ['not dead', 'not dead', 'not dead', 'all right']
    >>> quality.item_rest_r.round(3).tolist(), quality.smallest_p.round(3).tolist()
    ([-0.333, nan, -0.87, nan], [0.75, nan, 0.25, nan])
    >>> quality.verdict.unique().to_list()
    ['cannot tell']
    """
    x = _with_gaps("scores", scores, ndim=2)
    if names is not None and len(names) != len(x):
        raise UsageError(f"`names` must have {len(x)} entries, one an item, got {len(names)}")
    if not 0 < alpha < 1:
        raise UsageError(f"`alpha` must lie between 0 and 1, got {alpha}")
    if not 0 < redundant_r <= 1:
        raise UsageError(f"`redundant_r` must lie in (0, 1], got {redundant_r}")
    if max_pair_items < 0:
        raise UsageError(f"`max_pair_items` must be at least 0, got {max_pair_items}")
    seen = kernels.overview(x)
    live = (seen.n_models > 1) & (seen.low < seen.high)
    level = kernels.level_of(x, seen.mean, live)
    rest = _against_rest(x, seen.mean, live, level)
    q, codes = reversal_verdicts(rest.p, rest.smallest_p, alpha=alpha)
    notes = _rest_notes(seen.n_models, live, level, rest, codes)
    n_live = int(live.sum())
    partners, group = np.full(len(x), -1), np.full(len(x), -1)
    pairs = _no_pairs()
    if n_live > max_pair_items:
        notes.append(
            f"Redundant pairs were not looked for: {count(n_live, 'live item')}, more than {max_pair_items:,} "
            "(`max_pair_items`)."
        )
    else:
        pairs = _redundant(x, seen.mean, live, level, alpha, redundant_r, partners, group, notes)
    return ItemQuality(
        names=None if names is None else tuple(names),
        n_models=seen.n_models,
        dead=_words("dead", DEAD, _dead_codes(seen)),
        n_rest_models=rest.n_models,
        item_rest_r=rest.r,
        reversed_p=rest.p,
        smallest_p=rest.smallest_p,
        reversed_q=q,
        verdict=_words("verdict", VERDICTS, codes),
        n_redundant=partners,
        redundant_group=group,
        pairs=pairs,
        notes=tuple(notes),
    )


def item_rest_test(values: Any, rest: Any) -> RestTest:
    """Test items against given rests: correlation, one-sided p of a negative one, least p that ties allow.

    Parameters
    ----------
    values, rest
        Shape (m items, R models) or (R,); NaN for a missing cell. ``rest`` must not contain the item.

    Examples
    --------
    With three models and one of them right, the worst pattern has p = 1/3: it can never accuse.

    >>> test = item_rest_test([0, 0, 1], [0.9, 0.6, 0.3])
    >>> test.p.round(6).tolist(), test.smallest_p.round(6).tolist()
    ([0.333333], [0.333333])
    >>> reversal_verdicts(test.p, test.smallest_p)[1].tolist() == [VERDICTS.index("cannot tell")]
    True
    """
    x, others = (_with_gaps(name, value) for name, value in (("values", values), ("rest", rest)))
    x, others = np.atleast_2d(x), np.atleast_2d(others)
    if x.shape != others.shape:
        raise UsageError(f"`rest` must have the shape of `values`, {x.shape}, got {others.shape}")
    slack = kernels.ROUNDING * float(np.fmax.reduce(np.abs(others), axis=None, initial=0.0))
    return kernels.against_rest(x, others, slack)


def reversal_verdicts(p: FloatArray, smallest_p: FloatArray, *, alpha: float = 0.05) -> tuple[FloatArray, IntArray]:
    """Return q-values (Benjamini and Hochberg) and positions in ``VERDICTS``, one an item.

    An item is testable if ``smallest_p`` <= alpha. Unless it is flagged, the verdict is "cannot tell" where
    even p = ``smallest_p`` would not have been, the other p-values as they are.
    """
    q, codes = np.full(len(p), np.nan), np.full(len(p), VERDICTS.index(CANNOT_TELL))
    testable = np.flatnonzero(smallest_p <= alpha * EDGE)
    m = len(testable)
    if m == 0:
        return q, codes
    order = testable[np.argsort(p[testable], kind="stable")]
    q[order] = stats.false_discovery_control(p[order])
    # With p_i moved to the front, the t items before it have rank 2..t + 1; the last that passes counts.
    places = np.arange(1, m + 1)
    passed = np.maximum.accumulate(np.where(p[order] <= alpha * EDGE * (places + 1) / m, places, 0))
    reach = 1 + np.append(0, passed[:-1])
    within_reach = smallest_p[order] <= alpha * EDGE * reach / m
    codes[order[within_reach]] = VERDICTS.index(NO_SIGN)
    codes[q <= alpha * EDGE] = VERDICTS.index(AGAINST)
    return q, codes


def _with_gaps(name: str, value: Any, *, ndim: int | None = None) -> FloatArray:
    """Return ``value`` as a float64 array, finite or NaN."""
    try:
        given = np.asarray(value)
    except (TypeError, ValueError) as error:
        raise UsageError(f"`{name}` must hold numbers, got {type(value).__name__}: {error}") from None
    if given.dtype.kind not in "biuf":
        raise UsageError(
            f"`{name}` must hold numbers, got {type(value).__name__} of {given.dtype}", hint="NaN is a missing cell"
        )
    if given.size == 0 or (given.ndim not in (1, 2) if ndim is None else given.ndim != ndim):
        raise UsageError(f"`{name}` must have a row an item and a column a model, got shape {given.shape}")
    array = np.ascontiguousarray(given, dtype=np.float64)
    if np.isinf(array).any():
        raise UsageError(f"`{name}` must be finite, or NaN for a missing cell, got an infinite entry")
    return array


def _words(name: str, words: tuple[str, ...], codes: IntArray) -> pl.Series:
    return pl.Series(words, dtype=pl.Enum(words)).gather(codes).alias(name)


def _dead_codes(seen: kernels.Overview) -> IntArray:
    cases = [seen.n_models < 2, seen.low < seen.high, seen.low == 1, seen.low == 0]
    words = ("cannot tell", "not dead", "all right", "all wrong")
    return np.select(cases, [DEAD.index(word) for word in words], DEAD.index("constant"))


def _against_rest(x: FloatArray, mean: FloatArray, live: BoolArray, level: kernels.Level) -> RestTest:
    m = len(x)
    n, exact = np.zeros(m, np.int64), np.zeros(m, dtype=bool)
    r, p, smallest = np.full(m, np.nan), np.full(m, np.nan), np.full(m, np.nan)
    for block in kernels.row_blocks(x):
        rows = block.start + np.flatnonzero(live[block])
        test = kernels.against_rest(x[rows], kernels.rest_of(x[rows], mean[rows], level), level.slack)
        n[rows], r[rows], p[rows], smallest[rows], exact[rows] = (
            test.n_models,
            test.r,
            test.p,
            test.smallest_p,
            test.exact,
        )
    return RestTest(n, r, p, smallest, exact)


def _rest_notes(
    n_models: IntArray, live: BoolArray, level: kernels.Level, rest: RestTest, codes: IntArray
) -> list[str]:
    notes = []
    few, dead = int((n_models < 2).sum()), int((~live & (n_models > 1)).sum())
    if few:
        notes.append(f"Fewer than 2 models have {count(few, 'item')}: nothing can be told of them.")
    if dead:
        notes.append(f"A constant score correlates with nothing: {count(dead, 'dead item')} left out of the rest.")
    if (level.n_items < live.sum()).any():
        notes.append(
            "Models have different items: scores were centred item by item before the rest was averaged, and each "
            "item is judged by the models that have it."
        )
    students = int((~rest.exact & ~np.isnan(rest.p)).sum())
    if students:
        notes.append(
            f"The p-value is from Student's t for {count(students, 'item')}, from all arrangements for others."
        )
    untold = int((live & (codes == VERDICTS.index(CANNOT_TELL))).sum())
    if untold:
        notes.append(
            f"Too few models, or too few that differ, to tell whether {count(untold, 'live item')} run"
            f"{'s' if untold == 1 else ''} against the rest."
        )
    return notes


def _redundant(
    x: FloatArray,
    mean: FloatArray,
    live: BoolArray,
    level: kernels.Level,
    alpha: float,
    redundant_r: float,
    partners: IntArray,
    group: IntArray,
    notes: list[str],
) -> pl.DataFrame:
    """Fill ``partners`` and ``group``, add notes, and return the pairs."""
    items = np.flatnonzero(live)
    if len(items) < 3:
        notes.append(f"Redundant pairs need 3 live items, for a level beside the pair: there are {len(items)}.")
        return _no_pairs()
    pair_alpha = alpha / (len(items) * (len(items) - 1) / 2)
    x = np.where(level.n_items > 1, x[items], np.nan)
    stratum = kernels.strata(level)
    unit = np.empty_like(x)
    told = np.empty(len(x), dtype=bool)
    for rows in kernels.row_blocks(x):
        unit[rows] = kernels.residuals(
            x[rows], kernels.rest_of(x[rows], mean[items[rows]], level), stratum, level.slack
        )
        told[rows] = kernels.log_arrangements(x[rows], stratum) >= -log(pair_alpha * EDGE)
    told &= ~np.isnan(unit[:, 0])
    if not told.all():
        few = int((~told).sum())
        notes.append(
            f"Too few models of like level differ on {count(few, 'live item')} for a redundant pair to stand out from "
            "chance."
        )
    items, x, unit = items[told], x[told], unit[told]
    if len(items) == 0:
        return _no_pairs()
    critical = kernels.critical_r(x.shape[1], 2 * int(stratum.max()) + 3, pair_alpha)
    found = kernels.redundant_pairs(
        x, unit, stratum, np.maximum(critical, redundant_r), -log(pair_alpha * EDGE), limit=MAX_LISTED_PAIRS
    )
    if found.n_pairs > len(found.first):
        notes.append(
            f"Of {found.n_pairs:,} redundant pairs {len(found.first):,} are listed; counts and groups know all."
        )
    partners[items] = found.partners
    linked = found.partners > 0
    _, first, code = np.unique(found.group[linked], return_index=True, return_inverse=True)
    group[items[linked]] = np.argsort(np.argsort(first))[code]
    columns = {"first": items[found.first], "second": items[found.second], "r": found.r, "n_models": found.n_models}
    return pl.DataFrame(columns | {"identical": found.identical})


def _no_pairs() -> pl.DataFrame:
    kinds = {"first": pl.Int64, "second": pl.Int64, "r": pl.Float64, "n_models": pl.Int64, "identical": pl.Boolean}
    return pl.DataFrame(schema=kinds)
