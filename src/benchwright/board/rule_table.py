"""One board under several rules, side by side: who leads under which, and which neighbours swap."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from benchwright._check import FloatArray
from benchwright._json import json_safe
from benchwright._shown import Headline, Shown, ShownPart, frame_table
from benchwright._words import count
from benchwright.board import _aggregations as kernels
from benchwright.board.aggregations import NAMED, RULES, Cells, Rule, Unit
from benchwright.board.results import policy_text
from benchwright.board.rules import Missing, ScoringRules
from benchwright.board.scales import Scale, ScaleRule, board_scale
from benchwright.board.scheme import WeightScheme, matched_weights
from benchwright.board.values import BoardValues
from benchwright.board.weighing import weigh
from benchwright.errors import UsageError
from benchwright.panel.names import listed, shown

CORRECTION = "Bonferroni over all pairs of ranked models"
ALPHA = 0.05
PARTIAL_SHOWN = 3


@dataclass(frozen=True, slots=True, eq=False)
class RuleTable(Shown):
    """Models under several rules: point values of this sample of items, ranks without intervals.

    Attributes
    ----------
    frame
        One row a model in the order of the board's own rule: model, n_items, coverage (share of the board's items),
        then ``<rule>`` and ``<rule>_rank`` for each rule; null where a rule gives no score.
    rules
        One row a rule: rule, title, definition, coverage, weighted, larger_is_better, leaders, n_ranked, tau_b
        (Kendall, against the own rule), n_swaps (of neighbours), why_not (why there are no scores).
    neighbours
        Each model and the next one of the own ranking, on the items that both have: ahead, behind, n_items, difference
        of weighted means, its standard_error (paired, over items or their clusters; null for task scores), p (exact
        McNemar where scores are 0 or 1 and weights equal, else z), p_corrected by ``correction``, swapped_by (rules
        that put them the other way round).
    policy
        How the own rule treats missing items, the scale, the unit of rules over units, and what of the source counts.
    """

    frame: pl.DataFrame
    rules: pl.DataFrame
    neighbours: pl.DataFrame
    policy: Mapping[str, Any]
    correction: str
    notes: tuple[str, ...]

    def _told(self) -> Iterable[ShownPart]:
        ranks = {name: pl.col(f"{name}_rank") for name in self.rules["rule"]}
        yield Headline("ranks of the models under each rule")
        yield frame_table(self.frame.select("model", "coverage", **ranks))
        for row in self.rules.iter_rows(named=True):
            leads = row["why_not"]
            if leads is None:
                leads = f"{listed(row['leaders'], NAMED)} lead{'s' if len(row['leaders']) == 1 else ''}"
            agrees = "" if row["tau_b"] is None or row["rule"] == "own" else f", tau-b {row['tau_b']:.2f}"
            yield f"{row['title']}: {leads}{agrees}. {row['definition']}; {row['coverage']}"
        yield policy_text(self.policy)
        yield from self.notes

    def to_frame(self) -> pl.DataFrame:
        """Return the table of models."""
        return self.frame

    def to_dict(self) -> dict[str, Any]:
        """Return all tables as JSON-safe values."""
        record: dict[str, Any] = json_safe(
            {
                "policy": dict(self.policy),
                "models": self.frame.to_dicts(),
                "rules": self.rules.to_dicts(),
                "neighbours": self.neighbours.to_dicts(),
                "correction": self.correction,
                "notes": list(self.notes),
            }
        )
        return record


def other_rules(
    values: BoardValues,
    scheme: WeightScheme | None = None,
    *,
    rules: Sequence[str] | None = None,
    unit: Unit = "task",
    missing: Missing = "intersect",
    scale: Scale | None = None,
    scale_rule: ScaleRule = "none",
    table: pl.DataFrame | None = None,
    partial: bool = False,
    rng: np.random.Generator | None = None,
) -> RuleTable:
    """Score the models of a board under other rules beside its own, to see what depends on the rule.

    Parameters
    ----------
    values
        Models on items; NaN where a model lacks one.
    scheme
        The board's weights; None: the plain average of items. Items without weight are left out, and models without
        an item with weight.
    rules
        Names in ``RULES``; the own rule always comes first. By default all that the installed libraries allow.
    unit
        What the median, mean rank and Borda go over: tasks (by their weighted means, weighing what their items weigh
        together) or items.
    missing
        How the own rule treats items that some models lack, as :class:`ScoringRules` says.
    scale, scale_rule, table, partial
        As ``scale``, ``rules.scale``, ``table`` and ``partial`` of :func:`benchwright.board.scoring.score_board`.
    rng
        Draws the battles of Elo; by default seed 0.

    Raises
    ------
    UsageError
        A rule is not known, or its library is not installed.
    DataError
        What :func:`benchwright.board.scoring.score_board` refuses: values that do not fit the scale, weights that
        match nothing or cancel, no item that all models have.

    Notes
    -----
    Bradley-Terry and Elo come from the library evalica. The likelihood of Bradley-Terry has no maximum where some
    models never lose to others that they met, or never met them; the table then says so. Elo depends on the order of
    battles; notes say how far ranks move in other orders.

    Examples
    --------
    >>> import polars as pl
    >>> rows = [("x", "a", 0.9), ("x", "b", 0.2), ("y", "a", 0.6), ("y", "b", 0.6), ("z", "a", 0.8), ("z", "b", 0.0)]
    >>> values = BoardValues.from_frame(pl.DataFrame(rows, schema=["model", "task", "value"], orient="row"))
    >>> table = other_rules(values, rules=["median", "borda_all"])
    >>> table.frame.select("model", "own", "own_rank", "borda_all", "borda_all_rank").rows()
    [('y', 0.6, 1, 2.0, 2), ('x', 0.55, 2, 3.0, 1), ('z', 0.4, 3, 1.0, 3)]
    """
    _check(rules, unit)
    scoring = ScoringRules(missing, scale_rule if scale is None else scale.rule)
    w = weigh(values, scheme, rules=scoring, scale=scale, table=table, partial=partial)
    kept = np.flatnonzero(w.coverage > 0)
    own = np.full(len(values.models), np.nan)
    own[w.scored] = w.sheet.sums(w.weight, w.scored).scores
    weights = np.nan_to_num(matched_weights(w.given, values, partial=True)[0])
    board, v = values.select(weights != 0, kept.tolist()), weights[weights != 0]
    cells = Cells(
        values=_whole_scale(w.scale, board, scoring, table).scaled(board)[0] * np.sign(v)[:, None],
        weights=np.abs(v),
        divisors=v if v.sum() > 0 else np.abs(v),
        tasks=board.codes,
        models=board.models,
        own=own[kept],
        unit=unit,
        rng=np.random.default_rng(0) if rng is None else rng,
    )
    named = [*RULES] if rules is None else ["own", *(name for name in dict.fromkeys(rules) if name != "own")]
    found = {name: _scores(RULES[name], cells, asked=rules is not None) for name in named}
    policy = {"missing": missing, "scale": w.scale.rule, "level": board.level, "unit": unit}
    return _table(replace(board, notes=w.notes), cells, found, w.ranked[kept], policy)


def _whole_scale(scale: Scale, board: BoardValues, rules: ScoringRules, table: pl.DataFrame | None) -> Scale:
    """Return the scale of the own rule, with tasks that it leaves out for want of a common item."""
    there = board.items["task"].is_in(scale.bounds["task"].to_list()).to_numpy()
    if there.all():
        return scale
    rest = board_scale(board.select(~there), rules.scale, table=table, clip=rules.clip)
    return replace(scale, bounds=pl.concat([scale.bounds, rest.bounds]).unique("task", keep="first"))


def _check(rules: Sequence[str] | None, unit: str) -> None:
    unknown = [] if rules is None else [name for name in rules if name not in RULES]
    if unknown:
        raise UsageError(f"`rules` has {', '.join(unknown)}", hint=f"rules: {', '.join(RULES)}")
    if unit not in ("task", "item"):
        raise UsageError(f"`unit` must be task or item, got {unit!r}")


def _scores(rule: Rule, cells: Cells, *, asked: bool) -> FloatArray | str:
    try:
        return rule.scores(cells)
    except ModuleNotFoundError as error:
        if rule.library is None or error.name != rule.library:
            raise
        install = "pip install 'benchwright[pairwise]'"
        if asked:
            raise UsageError(f"rule {rule.name} needs the library {rule.library}", hint=install) from None
        return f"needs the library {rule.library}: {install}"


def _table(
    values: BoardValues,
    cells: Cells,
    found: dict[str, FloatArray | str],
    ranked: NDArray[np.bool_],
    policy: dict[str, Any],
) -> RuleTable:
    nothing = np.full(len(values.models), np.nan)
    scores = {name: nothing if isinstance(mine, str) else mine for name, mine in found.items()}
    ranks = {name: kernels.ranks_of(mine if RULES[name].larger_is_better else -mine) for name, mine in scores.items()}
    ranks["own"] = kernels.ranks_of(np.where(ranked, scores["own"], np.nan))
    n_items = (~np.isnan(cells.values)).sum(axis=0)
    columns: dict[str, Any] = {"model": values.models, "n_items": n_items, "coverage": n_items / len(cells.values)}
    for name, mine in scores.items():
        columns |= {name: mine, f"{name}_rank": pl.Series(ranks[name]).fill_nan(None).cast(pl.Int64)}
    neighbours = _neighbours(values, cells, ranks)
    rows = [
        {
            **{key: getattr(RULES[name], key) for key in ("title", "definition", "coverage", "weighted")},
            "rule": name,
            "larger_is_better": RULES[name].larger_is_better,
            "leaders": [values.models[place] for place in np.flatnonzero(mine == 1)],
            "n_ranked": int((~np.isnan(mine)).sum()),
            "tau_b": kernels.tau_b(ranks["own"], mine),
            "n_swaps": neighbours["swapped_by"].list.contains(name).sum(),
            "why_not": reason if isinstance(reason := found[name], str) else None,
        }
        for name, mine in ranks.items()
    ]
    return RuleTable(
        frame=pl.DataFrame(columns)
        .with_columns(pl.col(pl.Float64).fill_nan(None))
        .sort("own_rank", "model", nulls_last=True),
        rules=pl.DataFrame(rows, schema=_RULES).with_columns(pl.col("tau_b").fill_nan(None)),
        neighbours=neighbours,
        policy=policy,
        correction=CORRECTION,
        notes=_notes(
            values, cells, {name: np.flatnonzero(mine == 1) for name, mine in ranks.items()}, n_items, neighbours
        ),
    )


def _neighbours(values: BoardValues, cells: Cells, ranks: dict[str, FloatArray]) -> pl.DataFrame:
    """Compare each model of the own ranking with the next."""
    own = ranks["own"]
    order = np.argsort(own, kind="stable")[: int((~np.isnan(own)).sum())]
    pairs = max(1, order.size * (order.size - 1) // 2)
    rows = []
    for ahead, behind in pairwise(order):
        n, gap, error, p = kernels.paired_difference(
            cells.values[:, ahead], cells.values[:, behind], cells.weights, cells.divisors, values.clusters
        )
        if values.level == "task":
            error, p = np.nan, np.nan
        rows.append(
            {
                "ahead": values.models[ahead],
                "behind": values.models[behind],
                "n_items": n,
                "difference": gap,
                "standard_error": error,
                "p": p,
                "p_corrected": min(1.0, pairs * p) if p == p else np.nan,
                "swapped_by": [
                    name for name, mine in ranks.items() if own[ahead] < own[behind] and mine[ahead] > mine[behind]
                ],
            }
        )
    return pl.DataFrame(rows, schema=_NEIGHBOURS).with_columns(pl.col(pl.Float64).fill_nan(None))


_RULES: dict[str, Any] = {
    "rule": pl.String,
    "title": pl.String,
    "definition": pl.String,
    "coverage": pl.String,
    "weighted": pl.Boolean,
    "larger_is_better": pl.Boolean,
    "leaders": pl.List(pl.String),
    "n_ranked": pl.Int64,
    "tau_b": pl.Float64,
    "n_swaps": pl.Int64,
    "why_not": pl.String,
}
_NEIGHBOURS: dict[str, Any] = {
    "ahead": pl.String,
    "behind": pl.String,
    "n_items": pl.Int64,
    "difference": pl.Float64,
    "standard_error": pl.Float64,
    "p": pl.Float64,
    "p_corrected": pl.Float64,
    "swapped_by": pl.List(pl.String),
}


def _notes(
    values: BoardValues,
    cells: Cells,
    leaders: dict[str, NDArray[np.int64]],
    n_items: NDArray[np.int64],
    neighbours: pl.DataFrame,
) -> tuple[str, ...]:
    """Say what a reader may overlook: several leaders, leaders that ran little, swaps of models not told apart."""
    notes = []
    sets = {tuple(places) for places in leaders.values() if len(places)}
    if len(sets) > 1:
        rules = sum(len(places) > 0 for places in leaders.values())
        notes.append(f"{rules} rules, {len(sets)} different leaders or ties of leaders: who leads depends on the rule")
    total = len(cells.values)
    partial = sorted({place for places in leaders.values() for place in places if n_items[place] < total})
    for place in partial[:PARTIAL_SHOWN]:
        where = "; ".join(RULES[name].title for name, places in leaders.items() if place in places)
        of = count(total, values.level)
        notes.append(f"{shown(cells.models[place])} leads with {n_items[place]:,} of {of} ({where})")
    if len(partial) > PARTIAL_SHOWN:
        notes.append(f"and {len(partial) - PARTIAL_SHOWN:,} more that lead with a part")
    if cells.unit == "task" and cells.tasks.max() == 0:
        notes.append("one task, so rules over tasks rank by its mean; unit item ranks item by item")
    swapped, tested = pl.col("swapped_by").list.len() > 0, neighbours.filter(pl.col("p_corrected").is_not_null())
    if tested.height:
        apart = tested.filter(pl.col("p_corrected") < ALPHA)
        notes.append(
            f"neighbours in the own ranking told apart at {ALPHA:.0%} (paired on common items, {CORRECTION}):"
            f" {apart.height:,} of {count(tested.height, 'pair')}; some rule swaps {apart.filter(swapped).height:,} of"
            f" these and {tested.filter(swapped).height - apart.filter(swapped).height:,} of the others"
        )
    notes.append("ranks here are those of this sample of items and have no intervals")
    return (*notes, *cells.remarks, *values.notes)
