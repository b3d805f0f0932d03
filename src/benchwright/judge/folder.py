"""A judge's folder: the journal while it runs, and at the end the files that an audit reads.

===========================  =============================================================
judge_loadings[_NAME].jsonl  per item and framing the ranked activities, or why it failed
run.json                     model, settings, checksums, versions, usage, cost, failures
activities.csv               the activities with their definitions
gwa_welfare_scores.csv       their values, where a table was given
journal.jsonl                every answer, to go on from
===========================  =============================================================

Each of the first four appears whole or not at all; run.json comes last. Lists that the folder has and a run is not
asked for (another framing, items beyond a limit) stay.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from benchwright._staging import Output, write_whole
from benchwright.errors import DataError, Fault, UsageError
from benchwright.judge.definitions import Activity
from benchwright.judge.journal import FILE
from benchwright.judge.results import JudgeRun
from benchwright.logs.judge_loadings import PATTERN
from benchwright.logs.welfare_tables import VALUES, parse_activities

FOLDER = Output("judge's answers", (FILE,))
SCORES = VALUES["share"]


def prepare(out: Path) -> None:
    """Make the folder, or check that it is a judge's."""
    FOLDER.check(out, overwrite=True)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot write {out}: {error.strerror}", hint="choose another folder with -o") from None


def clear(out: Path) -> None:
    """Take the results of an earlier run away."""
    for path in (*out.glob(PATTERN), out / "run.json"):
        path.unlink(missing_ok=True)


def kept_lists(out: Path, name: str | None, *, asked: Collection[tuple[str, str, str]]) -> list[tuple[Any, ...]]:
    """Return the lists that earlier runs left in the folder, without those that are ``asked`` for now.

    They are rows of ``results.SCHEMA``; ``asked`` holds task, doc_id and framing.
    """
    path = out / loadings_name(name)
    rows: list[tuple[Any, ...]] = []
    try:
        for line in path.read_bytes().splitlines() if path.is_file() else ():
            found = json.loads(line)
            key = (found["task"], str(found["doc_id"]), found["perspective"])
            if key not in asked:
                extra = (found.get("reason"), found.get("notes", []), found.get("answers"), found.get("text_sha256"))
                rows.append((*key, found["ok"], found["ranked_gwa_ids"], *extra))
    except (OSError, ValueError, KeyError, TypeError):
        raise DataError(
            f"{path} cannot be read, and its lists would be lost",
            hint="choose another folder with -o, or start anew with --overwrite",
        ) from None
    return rows


def activity_scores(path: str | Path, activities: Sequence[Activity]) -> bytes:
    """Return a table of activity values, published or of one's own, as gwa_welfare_scores.csv holds them.

    It is checked, since an audit will look up every activity in it.
    """
    file = Path(path)
    try:
        content = file.read_bytes()
    except OSError as error:
        raise UsageError(f"{file}: cannot be read: {error.strerror}", hint="name a table of activity scores") from None
    faults: list[Fault] = []
    published = b"concept_id" in content.partition(b"\n")[0]
    values = parse_activities(SCORES if published else file.name, content, faults)
    known = frozenset(() if values is None else values["activity"])
    lacking = [activity.id for activity in activities if activity.id not in known]
    if values is not None and lacking:
        faults.append(Fault(file.name, f"has no row for {', '.join(lacking[:5])}"))
    if values is None or faults:
        raise DataError(
            f"{file} does not fit the activities",
            faults=faults,
            hint="give activity,value, or the columns of gwa_welfare_scores.csv (docs/reference/item-tables.md)",
        )
    if published:
        return content
    own = values.select(concept_id="activity", gwa="label", dropped="dropped", p_auto_15="auto", p_aug_15="aug")
    return own.write_csv().encode()


def write_folder(
    run: JudgeRun, out: Path, *, activities: Sequence[Activity], scores: bytes | None, name: str | None
) -> None:
    """Write the files of a run that has ended."""
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(("activity", "name", "definition"))
    writer.writerows((activity.id, activity.name, activity.definition) for activity in activities)
    lines = [json.dumps(_loading(row, run), ensure_ascii=False) + "\n" for row in run.lists.iter_rows(named=True)]
    _write(out / "activities.csv", table.getvalue().encode())
    if scores is not None:
        _write(out / SCORES, scores)
    _write(out / loadings_name(name), "".join(lines).encode())
    _write(out / "run.json", (json.dumps(run.to_dict(), indent=1, ensure_ascii=False) + "\n").encode())


def loadings_name(name: str | None) -> str:
    """Return the file of the lists; ``name`` tells judges apart that are audited together.

    >>> loadings_name(None), loadings_name("second")
    ('judge_loadings.jsonl', 'judge_loadings_second.jsonl')
    """
    if name is not None and not (name.isascii() and name.replace("-", "_").isidentifier()):
        raise UsageError(f"`name` must be letters, digits, - and _, got {name!r}")
    return "judge_loadings.jsonl" if name is None else f"judge_loadings_{name}.jsonl"


def _loading(row: dict[str, object], run: JudgeRun) -> dict[str, object]:
    """Return a list as its line holds it."""
    line = {
        "task": row["task"],
        "doc_id": row["doc_id"],
        "perspective": row["perspective"],
        "model": run.model,
        "baseline": run.baseline,
        "ok": row["ok"],
        "ranked_gwa_ids": row["activities"],
    }
    extra = {key: row[key] for key in ("reason", "notes", "answers", "text_sha256")}
    return line | {key: value for key, value in extra.items() if value not in (None, [])}


def _write(path: Path, content: bytes) -> None:
    write_whole(path, content, hint="make room and run the same command again: no answer is asked for twice")
