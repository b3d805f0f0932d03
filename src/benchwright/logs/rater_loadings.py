"""Loadings by raters, people or models: a folder of JSON-lines files, one object per rater, item and framing.

``{"task_id": ..., "perspective": "automation" | "augmentation", "ranked_gwa_ids": [...], "rater": ...}``, the layout of
the held-out raters of Haupt et al. ``family_map.json`` beside them names the family of each item. Their items join
nothing else: an item's task is its family ("items" without a map), its doc_id the rater's id of it.
"""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl

from benchwright._words import count
from benchwright.errors import DataError, Fault, UsageError
from benchwright.logs.judge_loadings import BOTH, PERSPECTIVES, LoadingError, json_object, loading
from benchwright.logs.source_file import read_source
from benchwright.logs.tabular import shown

FAMILIES = "family_map.json"
NO_FAMILY = "items"


def read_raters(folder: str | Path, *, cut: int = 5) -> tuple[dict[str, pl.DataFrame], tuple[str, ...]]:
    """Read the loadings of each rater of a folder.

    Parameters
    ----------
    folder
        Folder with ``*.jsonl`` and perhaps ``family_map.json``.
    cut
        Ranks that are kept of each list.

    Returns
    -------
    raters, notes
        Per rater: task, doc_id (text), perspective, activities (ranked ids), sorted by name; how many lists were cut.

    Raises
    ------
    UsageError
        No such folder, or no such file in it.
    DataError
        A file has faults; all of them are listed.
    """
    root = Path(folder)
    files = sorted(root.glob("*.jsonl")) if root.is_dir() else []
    if not files:
        raise UsageError(f"raters {root}: no folder with *.jsonl files", hint="one JSON object a line, with `rater`")
    faults: list[Fault] = []
    family = _families(root / FAMILIES, faults)
    rows: dict[str, dict[tuple[str, str, str], list[str]]] = {}
    longer = 0
    for path in files:
        source = read_source(path, faults)
        for number, line in enumerate([] if source is None else source[0].split(b"\n"), start=1):
            if not line.strip():
                continue
            try:
                record = json_object(line)
                rater, item = record.get("rater"), record.get("task_id")
                if not isinstance(rater, str) or not rater.strip():
                    raise LoadingError("rater", f"must be a name, got {shown(repr(rater))}")
                if not isinstance(item, str) or not item.strip():
                    raise LoadingError("task_id", f"must be the item's id, got {shown(repr(item))}")
                if family and item not in family:
                    raise LoadingError("task_id", f"`{shown(item)}` has no family in {FAMILIES}")
                named = record | {"task": family.get(item, NO_FAMILY), "doc_id": item}
                task, doc_id, perspective, ranked = loading(named, None)
                mine = rows.setdefault(rater.strip(), {})
                longer += len(ranked) > cut
                for framing in PERSPECTIVES if perspective == BOTH else (perspective,):
                    if (task, doc_id, framing) in mine:
                        raise LoadingError("task_id", f"`{shown(item)}` was already rated by {shown(rater)}; keep one")
                    mine[task, doc_id, framing] = ranked[:cut]
            except LoadingError as error:
                faults.append(Fault(path.name, str(error), line=number, column=error.column))
            except RecursionError:
                faults.append(Fault(path.name, "is nested too deeply", line=number))
    if faults or not rows:
        raise DataError(f"{root}: {len(faults)} fault(s) in the raters' loadings", faults=faults)
    schema = {"task": pl.String(), "doc_id": pl.String(), "perspective": pl.String(), "activities": pl.List(pl.String)}
    frames = {
        name: pl.DataFrame([(*key, ranked) for key, ranked in mine.items()], schema=schema, orient="row").sort(
            "task", "doc_id", "perspective"
        )
        for name, mine in sorted(rows.items())
    }
    return frames, (f"{count(longer, 'list')} of more than {cut} activities cut there.",) if longer else ()


def _families(path: Path, faults: list[Fault]) -> dict[str, str]:
    """Return the family of each item, {} without a map."""
    source = read_source(path, faults) if path.is_file() else None
    if source is None:
        return {}
    try:
        value = json.loads(source[0])
    except (ValueError, RecursionError) as error:
        faults.append(Fault(path.name, f"is not JSON: {shown(error)}"))
        return {}
    if not isinstance(value, dict) or not all(isinstance(name, str) for name in value.values()):
        faults.append(Fault(path.name, "must map each item's id to the name of its family"))
        return {}
    return value
