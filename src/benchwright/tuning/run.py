"""The tuning experiment from its protocol to its answer."""

from __future__ import annotations

import io
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from benchwright import __version__
from benchwright._csv import inert
from benchwright.errors import DataError, UsageError
from benchwright.tuning.adversary import chase_table, chases, compare
from benchwright.tuning.folder import (
    DONE,
    FOLDER,
    PROTOCOL,
    RUN,
    Lock,
    read_json,
    write_bytes,
    write_json,
    write_text,
)
from benchwright.tuning.games import SCORES, game_path, play
from benchwright.tuning.jobs import RunEnd, carry_out, check_submitit
from benchwright.tuning.libraries import versions
from benchwright.tuning.plan import Job, jobs_of, plan_tuning
from benchwright.tuning.protocol import Protocol, read_protocol
from benchwright.tuning.results import TuningRun
from benchwright.tuning.scores import before_after, item_rows, mean_scores, points_table

Progress = Callable[[str], None]


def run_tuning(
    protocol: Protocol | str | Path,
    out: str | Path,
    *,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> TuningRun:
    """Tune every model, score it along the way, fit curves, solve the ranking game and let adversaries try.

    The same call on the same folder goes on where a killed one ended, retries runs that failed, and carries out only
    what is missing: models, seeds, benchmarks, points and later ends may be added.

    Parameters
    ----------
    protocol
        Or its file, see :mod:`benchwright.tuning.protocol`.
    out
        Folder to write: new, empty, or of an earlier experiment.
    overwrite
        Start anew, without what the folder holds.
    progress
        Called with what is going on.

    Returns
    -------
    TuningRun
        With the runs that failed and why; those that are done stand.

    Raises
    ------
    UsageError
        A wrong protocol, a library that is not installed, a folder that holds something else.
    DataError
        Items that cannot be used, or no run that could be carried out.
    """
    stated = protocol if isinstance(protocol, Protocol) else read_protocol(protocol)
    say, target = progress or (lambda _: None), Path(out)
    say("reading items")
    plan = plan_tuning(stated)
    if stated.launch.launcher == "slurm":
        check_submitit()
    FOLDER.check(target, overwrite=True)
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot write {target}: {error.strerror}", hint="choose another folder with -o") from None
    record = stated.to_dict() | {"benchwright": __version__, "libraries": versions(), "plan": str(plan)}
    if not (target / PROTOCOL).is_file():
        write_json(target / PROTOCOL, record)
    with Lock(target) as lock:
        if not lock.held:
            raise UsageError(f"{target} is in use by another run", hint="wait for it, or choose another folder with -o")
        if overwrite:
            shutil.rmtree(target / "runs", ignore_errors=True)
        done = _carried_out(stated, target, say)
        write_json(target / PROTOCOL, record | {"used": _used(target, plan.jobs)})
        return done


def _carried_out(protocol: Protocol, out: Path, say: Progress) -> TuningRun:
    ends = carry_out(jobs_of(protocol), out / "runs", protocol.launch, progress=say)
    done = [end for end in ends if end.done is not None]
    if not done:
        raise DataError(
            "no run could be carried out:\n" + "\n".join(f"  {line}" for line in _grouped(ends)),
            hint=next((end.failure.hint for end in ends if end.failure is not None and end.failure.hint), None),
        )
    say("scores")
    points = points_table(done)
    scores = mean_scores(done, points, protocol.tuning.score)
    rows = item_rows(done, protocol.tuning.effort)
    buffer = io.BytesIO()
    rows.write_parquet(buffer, compression="zstd", compression_level=12)
    write_bytes(out / "rows.parquet", buffer.getvalue())
    write_csv(out / "runs.csv", points)
    write_csv(out / SCORES, scores)
    write_csv(out / "before_after.csv", before_after(points, best=protocol.tuning.select == "best"))
    answers, notes = play(protocol, out, [benchmark.name for benchmark in protocol.benchmarks], say)
    tried: list[RunEnd] = []
    if protocol.adversary is not None:
        say("adversaries")
        tried = carry_out(chases(protocol, done, scores), out / "runs", protocol.launch, progress=say)
    table = chase_table(tried, done)
    found = compare(table, answers)
    if protocol.adversary is not None:
        write_csv(out / "adversaries.csv", table)
        write_csv(out / "overtaking.csv", found)
    failed = {end.job.name: str(end.failure) for end in [*ends, *tried] if end.failure is not None}
    facts = _facts(points)
    said = dict.fromkeys(f"{end.job.benchmark.name}: {note}" for end in done for note in end.done["notes"])  # type: ignore[index]
    result = TuningRun(
        protocol=protocol,
        out=out,
        runs=len(ends),
        failed=failed,
        points=points,
        scores=scores,
        adversaries=table,
        overtaking=found,
        answers=answers,
        facts=facts,
        notes=(*said, *notes),
    )
    write_json(out / "summary.json", result.to_dict())
    return result


def _used(out: Path, jobs: Sequence[Job]) -> dict[str, Any]:
    """What runs were made from: checksums of models and items, the hub's commits, versions of libraries, by run."""
    found = {}
    for job in jobs:
        record, done = (read_json(out / "runs" / job.name / name) for name in (RUN, DONE))
        if record is not None:
            facts = {} if done is None else done["facts"]
            said = {name: facts.get(name) for name in ("commit", "architecture", "parameters", "device", "versions")}
            found[job.name] = {name: record["identity"][name] for name in ("weights", "files")} | said
    return found


def write_csv(path: Path, table: pl.DataFrame) -> None:
    """Write a table as CSV whose texts no spreadsheet runs."""
    shown = table.with_columns(inert(table.schema)) if table.width else table
    write_text(path, shown.write_csv() if table.width else "")


def _facts(points: pl.DataFrame) -> dict[str, float]:
    """Tokens and seconds of all runs: those of a run's last point and the sums over its points."""
    last = float(points.group_by("run").agg(pl.col("tokens").max())["tokens"].sum())
    tuning, scoring = float(points["tuning_seconds"].sum()), float(points["scoring_seconds"].sum())
    facts: dict[str, float] = {"tokens": last, "tuning_seconds": tuning, "scoring_seconds": scoring}
    if tuning > 0:
        facts["tokens_per_second"] = last / tuning
    return facts


def _grouped(ends: Sequence[RunEnd]) -> list[str]:
    """Why runs failed, one line a reason."""
    why: dict[str, list[str]] = {}
    for end in ends:
        if end.failure is not None:
            why.setdefault(end.failure.message, []).append(end.job.name)
    shown: list[Any] = []
    for reason, names in why.items():
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        shown.append(f"{', '.join(names[:3])}{more}: {reason}")
    return shown


def report_folder(out: Path, task: str) -> Path:
    """Where the report of a task's game is."""
    return out / f"report-{game_path(out, task).stem.removeprefix('game-')}"
