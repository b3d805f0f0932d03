"""The folder of activity values, whole or not at all; ``benchwright audit`` and ``weights`` take it by --activities.

gwa_welfare_scores.csv        values from shares of tasks, in the published columns
gwa_welfare_scores_mean.csv   values from mean ratings
activity_draws.parquet        rule (share | mean), replicate, activity, auto, aug: values drawn again, on [1, 5]
activities.csv                both rules with standard errors and intervals
alternatives.csv              what other choices would change, where a table of them is given
summary.json                  choices, seed, notes, files read
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from benchwright._csv import inert
from benchwright._json import json_safe
from benchwright._staging import Output
from benchwright.errors import DataError, UsageError
from benchwright.judge.activity_scores import ActivityScores
from benchwright.judge.workbank import FRAMINGS
from benchwright.logs.welfare_tables import DRAWS_FILE, VALUES

MARKER = "summary.json"
TABLE, ALTERNATIVES = "activities.csv", "alternatives.csv"
ACTIVITIES = Output("set of activity values", (MARKER, VALUES["share"]))


def write_activities(
    scores: Sequence[ActivityScores],
    out: str | Path,
    *,
    alternatives: pl.DataFrame | None = None,
    seed: int | None = None,
    overwrite: bool = False,
) -> Path:
    """Write the folder of activity values.

    Parameters
    ----------
    scores
        By ``share``, and by ``mean`` if wanted.
    out
        Target folder: new or empty, or an earlier one with ``overwrite=True``.
    alternatives
        What ``activity_alternatives`` returned.
    seed
        Of the draws, for the record.

    Raises
    ------
    UsageError
        None of ``scores`` is by share, two are alike, or the folder cannot be written.
    DataError
        Kept activities have no value on [1, 5], since their shares do not differ.
    """
    by_rule = {one.rule.value: one for one in scores}
    if "share" not in by_rule or len(by_rule) < len(scores):
        raise UsageError(f"`scores` must hold one by share, and at most one by mean, got {len(scores)}")
    for one in scores:
        kept = one.table.filter(~pl.col("dropped"))
        if flat := [name for name in FRAMINGS if kept[name].null_count()]:
            raise DataError(
                f"all kept activities have the same share of tasks, so {flat[0]} has no value on [1, 5]",
                hint="choose another `threshold` (--threshold; 3.5 by default)",
            )
    target = Path(out)
    with ACTIVITIES.whole(target, overwrite=overwrite) as stage:
        tables = {VALUES[rule]: one.to_frame() for rule, one in by_rule.items()}
        tables[TABLE] = pl.concat(
            one.table.select(pl.lit(rule).alias("rule"), pl.all()) for rule, one in by_rule.items()
        )
        if alternatives is not None:
            tables[ALTERNATIVES] = alternatives
        for name, frame in tables.items():
            frame.with_columns(inert(frame.schema)).write_csv(stage / name)
        drawn = [
            one.draws.select(pl.lit(rule).alias("rule"), pl.all())
            for rule, one in by_rule.items()
            if one.draws is not None
        ]
        if drawn:
            pl.concat(drawn).write_parquet(stage / DRAWS_FILE)
        record: dict[str, Any] = {rule: one.to_dict() for rule, one in by_rule.items()}
        text = json.dumps(json_safe(record | {"seed": seed}), ensure_ascii=False, indent=1, allow_nan=False)
        (stage / MARKER).write_text(text + "\n", encoding="utf-8")
    return target
