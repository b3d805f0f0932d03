"""Tables that only a panel has: ranks, seeds, components of variance, signal to noise, slopes, quality of items."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from typing import Any

import polars as pl

from benchwright.auditing.results import QualityAudit
from benchwright.estimating.aggregate import AggregateEstimate
from benchwright.estimating.quality import AGAINST
from benchwright.estimating.ranking import Ranking
from benchwright.estimating.slopes import SlopeEstimate
from benchwright.report.contents import AuditReport

Row = tuple[str, str, str, Sequence[tuple[Any, ...]], pl.DataFrame]
MAX_ROWS = 1000
WORST = 20
LONGEST_NAME = 32
SIDES = ("above", "includes", "below", "none")
WHAT_COUNTS = {
    "items": "items",
    "dead: all right": "dead: every model is right",
    "dead: all wrong": "dead: every model is wrong",
    "dead: constant": "dead: one other score for every model",
    "dead: cannot tell": "fewer than two models have it",
    "rest: runs against the rest": "runs against the rest",
    "rest: no sign of it": "no sign of running against the rest",
    "rest: cannot tell": "cannot tell whether it runs against the rest",
    "pairs: redundant": "has a redundant partner",
    "pairs: cannot tell": "cannot tell whether it has one",
}


def panel_tables(report: AuditReport) -> Iterator[Row]:
    """Yield the tables of a panel's estimates; none where the source is item tables."""
    estimates = report.estimates
    if estimates is None:
        return
    if estimates.slopes is not None and report.audit.improvability is not None:
        yield _slopes(estimates.slopes)
    if report.audit.noise is not None:
        yield from _noise(estimates.aggregate)
    if report.audit.quality is not None:
        yield from _quality(report.audit.quality)
    for name, what, ranking in (("model", "Models", estimates.models), ("task", "Tasks", estimates.tasks)):
        if ranking is not None:
            yield _ranks(f"{name}-ranks", what, name, ranking)
    if estimates.aggregate.snr.height:
        columns = (
            ("scope", "task"),
            ("n_items", "items", "integer"),
            ("n_models", "models", "integer"),
            ("signal", "signal", "digits"),
            ("noise", "noise", "digits"),
            ("snr", "signal / noise", "digits"),
            ("noise_over", "noise over"),
        )
        yield _cut("signal-to-noise", "models", "Signal to noise by task", columns, estimates.aggregate.snr)


def slope_verdicts(slopes: SlopeEstimate) -> pl.DataFrame:
    """Return per axis: axis, runs, doses, errors, n (items with a slope), median_slope, median_se, and of those items
    how many have an interval ``above`` 0, one that ``includes`` it, one ``below`` it, or ``none``.
    """
    rows = []
    for axis, fit in slopes.fits.items():
        name = f"slope_{axis.lower()}"
        known = slopes.items.drop_nulls(name)
        low, high = known[f"{name}_lo"], known[f"{name}_hi"]
        above, below, none = int((low > 0).sum()), int((high < 0).sum()), low.null_count()
        rows.append(
            {
                "axis": axis,
                "runs": len(fit.columns),
                "doses": len(set(fit.x.tolist())),
                "errors": fit.errors,
                "n": known.height,
                "median_slope": known[name].median(),
                "median_se": known[f"{name}_se"].median(),
                "above": above,
                "includes": known.height - above - below - none,
                "below": below,
                "none": none,
            }
        )
    return pl.DataFrame(rows, schema_overrides={"median_slope": pl.Float64, "median_se": pl.Float64})


def plain_names(names: Iterable[str], longest: int = LONGEST_NAME) -> list[str]:
    """Return names as a chart or a sentence can show them: printable, cut in the middle, no two alike.

    >>> plain_names(["a\\nb", "a b", "org/a-very-long-name-of-a-model-at-step-143000"], 20)
    ['a b', 'a b (2)', 'org/a-very…ep-143000']
    """
    shown: dict[str, None] = {}
    for name in names:
        text = " ".join("".join(char if char.isprintable() else " " for char in name).split())
        if len(text) > longest:
            tail = (longest - 1) // 2
            text = f"{text[: longest - 1 - tail].rstrip()}…{text[-tail:].lstrip()}"
        numbered = (text if turn == 1 else f"{text} ({turn})" for turn in count(1))
        shown[next(free for free in numbered if free not in shown)] = None
    return list(shown)


def _slopes(slopes: SlopeEstimate) -> Row:
    table = slope_verdicts(slopes).with_columns(pl.col("above", "below") / pl.col("n"))
    columns = (
        ("axis", "effort axis"),
        ("runs", "runs", "integer"),
        ("doses", "doses", "integer"),
        ("errors", "standard errors"),
        ("n", "items with a slope", "integer"),
        ("median_slope", "median slope", "digits"),
        ("median_se", "median standard error", "digits"),
        ("above", "interval above 0", "percent"),
        ("below", "interval below 0", "percent"),
    )
    return "slopes", "improvability", "Slopes by axis, in score per slope unit", columns, _defined(table)


def _noise(aggregate: AggregateEstimate) -> Iterator[Row]:
    parts = ("seed", "checkpoint_seed", "trials", "items")
    if aggregate.components.height:
        roots = [pl.when(pl.col(part) >= 0).then(pl.col(part).sqrt()).alias(part) for part in parts]
        columns: Sequence[tuple[Any, ...]] = (
            ("scope", "task"),
            ("n_items", "items", "integer"),
            ("n_models", "models", "integer"),
            ("n_seeds", "seeds", "integer"),
            ("n_checkpoints", "checkpoints", "integer"),
            ("seed", "seed", "digits"),
            ("checkpoint_seed", "checkpoint x seed", "digits"),
            ("trials", "sampling of answers", "digits"),
            ("items", "drawing of items", "digits"),
        )
        title = "What moves one run's score, as standard deviations (–: not estimable, or a variance estimated below 0)"
        yield _cut("variance-components", "noise", title, columns, aggregate.components.with_columns(roots))
    if aggregate.reliability.height:
        columns = (
            ("n_seeds", "seeds a model", "integer"),
            ("n_items", "items", "integer"),
            ("standard_error", "standard error of a model's score", "digits"),
            ("least_difference", "least difference of two models", "digits"),
            ("reliability", "reliability of the ranking", "number"),
        )
        title = "Seeds and items: what tells two models apart (power 0.8 at level 0.05)"
        yield "seeds-needed", "noise", title, columns, aggregate.reliability


def _quality(quality: QualityAudit) -> Iterator[Row]:
    rows = [(words, quality.counts[key]) for key, words in WHAT_COUNTS.items() if key in quality.counts]
    counts = pl.DataFrame(rows, schema={"what": pl.String, "n": pl.Int64}, orient="row")
    yield "quality", "quality", "Items by verdict", (("what", "verdict"), ("n", "items", "integer")), counts
    against = quality.items.filter(pl.col("quality_verdict") == AGAINST).sort("reversed_q", "item_rest_r")
    if against.height:
        columns: Sequence[tuple[Any, ...]] = (
            ("task", "task"),
            ("doc_id", "item"),
            ("n_models", "models", "integer"),
            ("item_rest_r", "correlation with the rest", "number"),
            ("reversed_p", "p, one-sided", "p"),
            ("reversed_q", "q (false discoveries)", "p"),
        )
        title = "Items that run against the rest"
        title += f", the {WORST} clearest of {against.height:,}" if against.height > WORST else ""
        yield "items-against-rest", "quality", title, columns, against.head(WORST)
    if quality.pairs.height:
        columns = (
            ("first_task", "task"),
            ("first_doc_id", "item"),
            ("second_task", "task"),
            ("second_doc_id", "and item"),
            ("r", "correlation", "number"),
            ("n_models", "models", "integer"),
            ("identical", "all scores equal"),
        )
        pairs = quality.pairs.sort("r", descending=True, maintain_order=True).head(WORST)
        pairs = pairs.with_columns(identical=pl.when("identical").then(pl.lit("yes")).otherwise(pl.lit("no")))
        title = "Redundant pairs"
        title += f", the {WORST} closest of {quality.pairs.height:,}" if quality.pairs.height > WORST else ""
        yield "redundant-pairs", "quality", title, columns, pairs


def _ranks(name: str, what: str, heading: str, ranking: Ranking) -> Row:
    columns: list[tuple[Any, ...]] = [("rank", "rank", "integer"), ("rank_lo", "from", "integer")]
    columns += [("rank_hi", "to", "integer"), ("name", heading)]
    columns += [
        (key, title, "integer")
        for key, title in (("n_items", "items"), ("n_seeds", "seeds" if heading == "model" else "runs"))
        if ranking.frame[key].is_not_null().any()
    ]
    columns += [("score", "mean score", "digits"), ("standard_error", "standard error", "digits")]
    columns += [("score_lo", "interval from", "digits"), ("score_hi", "to", "digits")]
    return _cut(name, "models", f"{what} by mean score (uncertain: {ranking.uncertainty})", columns, ranking.frame)


def _cut(name: str, section: str, title: str, columns: Sequence[tuple[Any, ...]], frame: pl.DataFrame) -> Row:
    """Return a table of at most ``MAX_ROWS`` rows whose title says what is left out."""
    if frame.height > MAX_ROWS:
        title = f"{title}, the first {MAX_ROWS:,} of {frame.height:,}"
    return name, section, title, columns, _defined(frame.head(MAX_ROWS))


def _defined(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.with_columns(pl.selectors.float().fill_nan(None))
