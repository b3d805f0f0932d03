"""Who judged the items, and how far judges agree: those of an audit, and raters that a source brings along."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from benchwright._words import count
from benchwright.auditing.raters import rater_table
from benchwright.config import Config
from benchwright.errors import DataError
from benchwright.estimating._resampling import tail_count
from benchwright.judge.agreement import Agreement, judge_agreement
from benchwright.judge.baseline import MODEL as BASELINE
from benchwright.logs.item_tables import DEFAULT_JUDGE, ITEM, OWN_JUDGE, PERSPECTIVES, ItemTables, judge_name
from benchwright.logs.judge_loadings import PATTERN, loadings_files
from benchwright.logs.rater_loadings import read_raters

RATERS = "heldout_raters"  # folder beside the tables of Haupt et al.
RUN = "run.json"
DRAWS = 1000
MOST_ITEMS = 5000  # that agreement is computed on; more would move nothing but the third digit
STREAMS = {"judges": 7, "raters": 8}  # of the seed
BASELINE_SAYS = "made by the offline baseline, not by a model"


@dataclass(frozen=True, slots=True)
class JudgeRecord:
    """Who made a judge's lists, as far as the files say; None where they do not.

    ``counts`` says whether welfare rests on the judge; ``distinct`` is the share of different lists per framing,
    ``usd`` what its answers cost. The last five come from the ``run.json`` of ``benchwright judge``.
    """

    name: str
    counts: bool
    distinct: Mapping[str, float | None]
    model: str | None = None
    baseline: bool = False
    prompt_sha256: str | None = None
    answers: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    usd: float | None = None

    def __str__(self) -> str:
        made = BASELINE_SAYS if self.baseline else f"made by {self.model}" if self.model else "made by an unnamed judge"
        parts = [f"Judge {self.name}: {made}{f' ({self.model})' if self.baseline and self.model else ''}"]
        if not self.baseline and self.answers is not None:
            cost = "price not given" if self.usd is None else f"${self.usd:,.2f}"
            parts.append(f"{self.answers:,} answers, {_tokens(self.input_tokens, self.output_tokens)}, {cost}")
        if self.prompt_sha256 is not None:
            parts.append(f"prompt sha256 {self.prompt_sha256}")
        return "; ".join(parts) + "."


def judge_records(
    tables: ItemTables, folder: Path | None, judges: Sequence[str | Path], loadings: Sequence[str | Path]
) -> tuple[JudgeRecord, ...]:
    """Return who made each judge's lists, in the order of ``tables.loadings``.

    Parameters
    ----------
    tables
        What was read.
    folder
        The source's folder; None where it has none.
    judges, loadings
        The files that were named beside it: judges to compare, and those that count.
    """
    files = _files(tables, folder, judges, loadings)
    return tuple(
        JudgeRecord(name, name in tables.main, _distinct(frame), **(_made(files[name]) if name in files else {}))
        for name, frame in tables.loadings.items()
    )


def agreement_of(
    lists: Mapping[str, pl.DataFrame], activities: pl.Series, config: Config, *, kind: str
) -> tuple[Agreement | None, tuple[str, ...]]:
    """Return how far ``judges`` or ``raters`` agree, None for fewer than two, and what is left out of it."""
    if len(lists) < 2:
        return None, ()
    draws = config.resampling
    rng = np.random.default_rng([draws.seed, STREAMS[kind]])
    named = {name: _judged(frame) for name, frame in lists.items() if frame.height}
    notes = []
    try:
        items = pl.concat([frame.select(*ITEM) for frame in named.values()]).unique().sort(*ITEM)
        if items.height > MOST_ITEMS:
            picked = items[np.sort(rng.permutation(items.height)[:MOST_ITEMS])]
            named = {name: frame.join(picked, on=ITEM, how="semi") for name, frame in named.items()}
            notes.append(f"Agreement of {kind}: {MOST_ITEMS:,} of {items.height:,} items, drawn at random.")
        found = judge_agreement(
            named,
            activities=activities,
            ranks=config.welfare.top_k,
            rng=rng,
            replicates=DRAWS if tail_count(DRAWS, draws.level) else draws.replicates,
            confidence=draws.level,
        )
    except DataError as error:
        return None, (f"Agreement of {kind} is not known: {error.message}.",)
    return found, tuple(notes)


@dataclass(frozen=True, slots=True, eq=False)
class Raters:
    """Raters of items outside the audit: how far they agree, and what each alone would say.

    ``table`` is that of ``auditing.raters.rater_table``, ``first`` the family that it compares with all others.
    """

    agreement: Agreement | None
    table: pl.DataFrame
    first: str


def raters_of(
    folder: Path | None, activities: pl.DataFrame, config: Config, *, first: str | None
) -> tuple[Raters | None, tuple[Path, ...], tuple[str, ...]]:
    """Return the raters that a source brings along, their files, and notes; nothing where there are none.

    Parameters
    ----------
    folder
        The source's folder, with ``heldout_raters`` in it.
    activities
        Values of activities: activity, dropped, auto, aug.
    config
        Ranks, threshold, seed, level.
    first
        Family to compare with the others, where the raters' items have it; else their first family.

    Raises
    ------
    DataError
        The raters' files have faults.
    """
    place = None if folder is None else folder / RATERS
    if place is None or not any(place.glob("*.jsonl")):
        return None, (), ()
    lists, notes = read_raters(place, cut=config.welfare.top_k)
    named = {name for frame in lists.values() for name in frame["activities"].explode().drop_nulls()}
    if not named <= set(activities["activity"]):
        return None, (), (f"{RATERS} of the source name other activities than these, and are not compared.",)
    tasks = sorted({task for frame in lists.values() for task in frame["task"].unique()})
    side = str(first if first in tasks else tasks[0])
    table = rater_table(
        lists, activities, first=side, threshold=config.welfare.quadrant_threshold, top_k=config.welfare.top_k
    )
    agreement, more = agreement_of(lists, activities["activity"], config, kind="raters")
    files = (*sorted(place.glob("*.jsonl")), *place.glob("family_map.json"))
    return Raters(agreement, table, side), files, tuple(f"{RATERS}: {note}" for note in (*notes, *more))


def _files(
    tables: ItemTables, folder: Path | None, judges: Sequence[str | Path], loadings: Sequence[str | Path]
) -> dict[str, Path]:
    """Return the file of each judge, as the reader of item tables names judges."""
    main = [file for path in loadings for file in loadings_files(path)]
    found = dict(zip(tables.main, main, strict=True)) if main else {}
    own = [] if folder is None else sorted(folder.glob(PATTERN))
    for path in own:
        name = judge_name(path, source=folder)
        found.setdefault(OWN_JUDGE if main and name == DEFAULT_JUDGE else name, path)
    for path in map(Path, judges):
        found.setdefault(judge_name(path, source=folder), path)
    return found


def _made(path: Path) -> dict[str, Any]:
    """Return what a judge's lines, and the run beside them if it is theirs, say of who made them."""
    records = [record for line in path.read_bytes().split(b"\n") if (record := _object(line))]
    models = sorted({model for record in records if isinstance(model := record.get("model"), str)})
    baseline = BASELINE in models or any(record.get("baseline") is True for record in records)
    made: dict[str, Any] = {"model": ", ".join(models) or None, "baseline": baseline}
    run = run_file(path)
    said = {} if run is None else _object(run.read_bytes())
    usage = said.get("usage")
    if models != [said.get("model")] or not isinstance(usage, dict):
        return made
    return made | {
        "prompt_sha256": said.get("prompt_sha256"),
        **{name: usage.get(name) for name in ("answers", "input_tokens", "output_tokens", "usd")},
    }


def run_file(loadings: Path) -> Path | None:
    """Return the record of the run beside a judge's loadings, None where there is none."""
    path = loadings.parent / RUN
    return path if path.is_file() else None


def _object(content: bytes) -> dict[str, Any]:
    """Return the JSON object that some bytes hold, {} where they hold none."""
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _distinct(lists: pl.DataFrame) -> dict[str, float | None]:
    """Return per framing the share of lists that differ from all others counted before."""
    shares: dict[str, float | None] = {}
    for perspective in PERSPECTIVES:
        joined = lists.filter(pl.col("perspective") == perspective)["activities"].list.join(" ")
        shares[perspective] = joined.n_unique() / len(joined) if len(joined) else None
    return shares


def _judged(lists: pl.DataFrame) -> pl.DataFrame:
    return lists.select(*ITEM, "perspective", "activities")


def _tokens(sent: int | None, received: int | None) -> str:
    if sent is None or received is None:
        return "tokens not known"
    return f"{count(sent, 'token')} in, {received:,} out"
