"""What changed between two boards: models, ranks, scores, and which changes are beyond doubt.

With item scores on both sides the change of a model's score is paired: with z_g and z'_g what the unit g of items adds
to the deviation of the old and of the new score (:mod:`._board`), its standard error is sqrt(sum_g (z'_g - z_g)^2), be
it that scores, weights or items changed. Else it is sqrt(se^2 + se'^2), as of independent samples. A rank change is
settled where the two rank intervals do not overlap.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import stats

from benchwright._check import FloatArray
from benchwright._json import json_safe
from benchwright._shown import Headline, Shown, ShownPart, frame_table
from benchwright._words import count
from benchwright.board import _board as kernel
from benchwright.board._aggregations import tau_b
from benchwright.board.release import ItemScores, ranks
from benchwright.board.values import BoardValues
from benchwright.errors import DataError
from benchwright.panel.names import listed

SHOWN = 10
ALPHA = 0.05
ROUNDING = 1e-12  # a standard error up to it is rounding, and tests nothing
RULE = "settled: the two rank intervals do not overlap, which is conservative; of boards with the same models only"
PAIRED = "standard errors of score changes are those of drawing other items like these, paired"
INDEPENDENT = (
    "standard errors of score changes take the two boards for independent samples; of scores on the same items they are"
    " rather too large, and two tables do not tell how items pair"
)


@dataclass(frozen=True, slots=True, eq=False)
class BoardChanges(Shown):
    """Boards old and new.

    Attributes
    ----------
    frame
        One row a model in the new order: model, status (common, added, removed), old_score, new_score, score_change,
        standard_error (of the change), p (of no change: z, but exact McNemar where a model's paired scores are 0 or 1
        and items and weights the same), p_corrected (Bonferroni over the models with one), old_rank, new_rank as
        published, rank_change (positive is up) among the models alone that have a rank on both, n_items (common items
        that it has, where changes are paired), settled (of the rank; null where an interval is missing or the models
        differ).
    tau_b
        Kendall's, between the ranks of the models that have one on both.
    paired
        Whether standard errors of changes are paired.
    """

    frame: pl.DataFrame
    tau_b: float
    paired: bool
    notes: tuple[str, ...]

    @property
    def counts(self) -> dict[str, int | None]:
        """Return how many models are common, added, removed, moved, and changed beyond doubt (None: not known)."""
        status, p = self.frame["status"], self.frame["p_corrected"].drop_nulls()
        settled = self.frame["settled"].drop_nulls()
        return {
            **{word: int((status == word).sum()) for word in ("common", "added", "removed")},
            "rank_changes": int((self.frame["rank_change"] != 0).sum()),
            "rank_changes_settled": int(settled.sum()) if len(settled) else None,
            "scores_compared": len(p),
            "score_changes": int((p < ALPHA).sum()) if len(p) else None,
        }

    def _told(self) -> Iterable[ShownPart]:
        n = self.counts
        yield Headline(
            f"board: {n['common']:,} common, {n['added']:,} added, {n['removed']:,} removed;"
            f" {count(n['rank_changes'] or 0, 'rank change')}"
            f" among common models, tau-b {'not defined' if np.isnan(self.tau_b) else f'{self.tau_b:.3f}'}"
        )
        told = ["model", "status", "old_score", "new_score", "score_change", "standard_error", "p_corrected"]
        yield frame_table(self.frame.select(*told, "old_rank", "new_rank", "rank_change", "settled"), rows=SHOWN)
        if n["score_changes"] is not None:
            yield (
                f"score changes that differ from 0 at {ALPHA:.0%}: {n['score_changes']:,} of {n['scores_compared']:,}"
                " (Bonferroni over these)"
            )
        if n["rank_changes_settled"] is not None:
            yield f"{count(n['rank_changes_settled'], 'rank change')} settled ({RULE})"
        yield from self.notes

    def to_frame(self) -> pl.DataFrame:
        """Return the table of models."""
        return self.frame

    def to_dict(self) -> dict[str, Any]:
        """Return all as JSON-safe values."""
        record: dict[str, Any] = json_safe(
            {
                "tau_b": self.tau_b,
                "paired": self.paired,
                **self.counts,
                "settled_rule": RULE,
                "models": self.frame.to_dicts(),
                "notes": list(self.notes),
            }
        )
        return record


def board_changes(
    old: pl.DataFrame,
    new: pl.DataFrame,
    *,
    names: tuple[str, str] = ("old", "new"),
    scores: tuple[ItemScores, ItemScores] | None = None,
) -> BoardChanges:
    """Return what changed between two boards, as ``Release.board`` has them.

    ``names`` is what messages call the two. ``scores``: the item scores behind both, which pair the changes.

    Raises
    ------
    DataError
        No model is on both.
    """
    sides = [
        frame.select("model", pl.all().exclude("model").name.prefix(f"{word}_"), **{word: pl.lit(True)})
        for frame, word in ((old, "old"), (new, "new"))
    ]
    both = sides[0].join(sides[1], on="model", how="full", coalesce=True)
    status = pl.when("old", "new").then(pl.lit("common")).when("new").then(pl.lit("added")).otherwise(pl.lit("removed"))
    both = both.with_columns(status=status)
    common = both.filter(pl.col("status") == "common")
    if common.height == 0:
        raise DataError(
            f"{names[0]} and {names[1]} have no model in common",
            hint=f"old: {listed(old['model'][:1])}, new: {listed(new['model'][:1])}; compare releases of one board",
        )
    scored = common.filter(pl.col("old_score").is_not_null(), pl.col("new_score").is_not_null())
    ranked = common.filter(pl.col("old_rank").is_not_null(), pl.col("new_rank").is_not_null())
    among = [ranks(-ranked[f"{word}_rank"]) for word in ("old", "new")]
    moved = ranked.select("model", rank_change=among[0] - among[1])
    error = _independent(scored) if scores is None else _paired(*scores, scored)
    same = common.height == both.height
    disjoint = (pl.col("old_rank_hi") < pl.col("new_rank_lo")) | (pl.col("new_rank_hi") < pl.col("old_rank_lo"))
    frame = (
        both.join(moved, on="model", how="left")
        .join(error, on="model", how="left")
        .with_columns(settled=disjoint if same else pl.lit(None, dtype=pl.Boolean))
        .sort("new_rank", "old_rank", "model", nulls_last=True)
    )
    tested = pl.col("p").count()
    frame = frame.with_columns(p_corrected=pl.min_horizontal(pl.col("p") * tested, 1.0 + 0 * pl.col("p")))
    notes = []
    if frame["standard_error"].count():
        notes.append(INDEPENDENT if scores is None else PAIRED)
    else:
        notes.append("no standard error on both sides, so no score change is tested")
    if withheld := common.height - ranked.height:
        apart = common.join(ranked, on="model", how="anti")["model"]
        notes.append(f"without a rank on one side, so no rank change ({withheld:,}): {listed(apart)}")
    if not same:
        notes.append("the models differ: rank changes are among common models, and no rank change is called settled")
    return BoardChanges(
        frame=frame.select(_ORDER).with_columns(pl.col("old_rank", "new_rank", "rank_change").cast(pl.Int64)),
        tau_b=tau_b(among[0].to_numpy(), among[1].to_numpy()),
        paired=scores is not None,
        notes=tuple(notes),
    )


_ORDER = ["model", "status", "old_score", "new_score", "score_change", "standard_error", "p", "p_corrected"]
_ORDER += ["old_rank", "new_rank", "rank_change", "n_items", "settled"]


def _independent(scored: pl.DataFrame) -> pl.DataFrame:
    """Return changes as of two independent samples."""
    errors = (scored[f"{word}_standard_error"].fill_null(np.nan).to_numpy() for word in ("old", "new"))
    return _tested(scored, np.hypot(*errors)).with_columns(n_items=pl.lit(None, dtype=pl.Int64))


def _tested(scored: pl.DataFrame, error: FloatArray) -> pl.DataFrame:
    """Return model, score_change, standard_error and p."""
    change = (scored["new_score"] - scored["old_score"]).to_numpy()
    p = 2 * stats.norm.sf(np.abs(change) / np.where(error > ROUNDING, error, np.nan))
    frame = scored.select("model", score_change=change, standard_error=error, p=p)
    return frame.with_columns(pl.col("standard_error", "p").fill_nan(None))


def _paired(old: ItemScores, new: ItemScores, scored: pl.DataFrame) -> pl.DataFrame:
    """Return paired changes, on the items of either side; those of one alone have no weight on the other."""
    tables = [side.values.items.with_row_index(word) for side, word in ((old, "old"), (new, "new"))]
    items = tables[0].join(tables[1], on=["task", "doc_id"], how="full", coalesce=True, nulls_equal=True)
    items = items.sort("task", "doc_id")
    tasks = items["task"].rank("dense").to_numpy().astype(np.int64) - 1
    design = kernel.sampling_design(_clusters(items, old.values, new.values), tasks)
    models = scored["model"].to_list()
    xs, vs, z = [], [], []
    for side, word in ((old, "old"), (new, "new")):
        row = items[word].fill_null(0).to_numpy().astype(np.int64)
        there = items[word].is_not_null().to_numpy()
        x = side.values.values[row][:, [side.values.models.index(model) for model in models]]
        has = ~np.isnan(x) & there[:, None]
        v = np.where(there, side.weights[row], 0.0)
        d = v if v.sum() > 0 else np.abs(v)
        sums = kernel.unit_sums(np.where(has, x, 0.0), has.astype(float), v, d, design, tasks, clip=side.clip)
        xs.append(np.where(has, x, np.nan))
        vs.append(v)
        z.append(kernel.deviations(sums, design))
    frame = _tested(scored, np.sqrt(np.square(z[1] - z[0]).sum(axis=0)))
    n_items = pl.Series((~np.isnan(xs[0] + xs[1])).sum(axis=0), dtype=pl.Int64)
    alone = len(design.stratum) == items.height
    if alone and all(np.ptp(v) <= ROUNDING * np.abs(v).max() for v in vs):
        exact = pl.Series([_mcnemar(one, other) for one, other in zip(xs[0].T, xs[1].T, strict=True)], dtype=pl.Float64)
        frame = frame.with_columns(p=exact.fill_nan(None).fill_null(frame["p"]))
    return frame.with_columns(n_items=n_items)


def _mcnemar(old: FloatArray, new: FloatArray) -> float:
    """Return the exact p of no change of scores of 0 and 1; NaN where others are there, or one is missing."""
    if not np.isin([old, new], (0.0, 1.0)).all():
        return np.nan
    changed = int((old != new).sum())
    return float(stats.binomtest(int((new > old).sum()), changed).pvalue) if changed else 1.0


def _clusters(items: pl.DataFrame, old: BoardValues, new: BoardValues) -> NDArray[np.int64] | None:
    """Return the clusters of items: the new board's, those of the old one for items that it alone has."""
    if old.clusters is None and new.clusters is None:
        return None
    found = np.arange(items.height) + sum(
        int(side.max()) + 1 for side in (old.clusters, new.clusters) if side is not None
    )
    shift = 0
    for side, word in ((old.clusters, "old"), (new.clusters, "new")):
        if side is not None:
            there = items[word].is_not_null().to_numpy()
            found[there] = side[items[word].drop_nulls().to_numpy().astype(np.int64)] + shift
            shift += int(side.max()) + 1
    return found.astype(np.int64)
