"""A process that carries out runs, one after the other: their folders come line by line on its standard input.

A run's folder holds run.json. States and scored items appear there as the run goes; a run that is killed at any moment
goes on from its last state, and what is scored is not scored again.
"""

from __future__ import annotations

import gc
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from benchwright.tuning.encoding import encode
from benchwright.tuning.evaluate import ItemScorer
from benchwright.tuning.failures import RunError, failure_of
from benchwright.tuning.folder import DONE, FAILED, RUN, STATE, Lock, read_json, write_json
from benchwright.tuning.items import Example, Item, hold_out, read_splits
from benchwright.tuning.libraries import load, versions
from benchwright.tuning.lm_eval_task import LmEvalTask
from benchwright.tuning.models import OpenModel, open_model
from benchwright.tuning.plan import Chase, Job, points_of
from benchwright.tuning.runner import Tuner

THREADS, SLOT, PARENT = "BENCHWRIGHT_TUNE_THREADS", "BENCHWRIGHT_TUNE_SLOT", "BENCHWRIGHT_TUNE_PARENT"
PROGRESS = "progress.json"
LOCK_SECONDS = 120.0
VALIDATION_SHARE = 0.1
Score = Callable[[], pl.DataFrame]


def work(folder: str) -> bool:
    """Carry out the run of a folder; return whether it is done. What went wrong stands in failed.json."""
    place = Path(folder)
    lock = _locked(place)
    try:
        (place / FAILED).unlink(missing_ok=True)
        record = read_json(place / RUN)
        if record is None:
            raise SystemExit(f"{place} holds no run")
        job = Job.from_dict(record["job"])
        try:
            try:
                _Run(job, place).carry_out()
            except _AnewError:
                for path in (*place.glob("eval-*"), *place.glob("level-*.pt"), place / STATE):
                    path.unlink()
                _Run(job, place).carry_out()
        except Exception as error:
            write_json(place / FAILED, failure_of(error, "the run").to_dict())
            return False
        return True
    finally:
        lock.release()


def _locked(place: Path) -> Lock:
    """Wait for the lock: the process of a killed experiment ends with its next step."""
    start = time.monotonic()
    while True:
        lock = Lock(place)
        if lock.held:
            return lock
        if time.monotonic() - start > LOCK_SECONDS:
            raise SystemExit(f"{place} is in use by another process")
        time.sleep(0.2)


class _AnewError(Exception):
    """Points lie before the last state: the run has to be made again."""


class _Run:
    """One run at work."""

    def __init__(self, job: Job, folder: Path) -> None:
        self.job, self.folder = job, folder
        self._saved = self._shown = time.monotonic()
        self._parent = os.environ.get(PARENT)

    def carry_out(self) -> None:
        job, settings = self.job, self.job.settings
        torch = load("torch")
        if threads := os.environ.get(THREADS):
            torch.set_num_threads(int(threads))
        opened = open_model(job.model.path, job.model.revision, _placed(job), seed=job.seed)
        examples, self.score, self.validate, notes = _benchmark(job, opened)
        pairs = [(one.prompt, one.answer) for one in examples]
        encoded, cut = encode(opened.tokenizer, pairs, settings.max_length, vocabulary=opened.vocabulary)
        if cut:
            notes = (*notes, f"{cut:,} of {len(encoded):,} examples lost their beginning to max_length")
        self.tuner = Tuner(opened, encoded, settings, seed=job.seed, stream=0 if job.chase is None else 1)
        started = time.monotonic()
        if job.chase is None:
            points, kept = points_of(job, len(encoded), self.tuner.tokens_of)
            self.tuner.total = points[-1]
            ended = self._through(points, kept)
        else:
            ended = self._chase(job.chase)
        facts = opened.facts | {"examples": len(encoded), "seconds": time.monotonic() - started, "versions": versions()}
        write_json(self.folder / DONE, {"asked": job.asked, "facts": facts, "notes": list(notes), **ended})

    def _through(self, points: list[int], kept: list[int]) -> dict[str, Any]:
        """Tune through all points that are not there yet."""
        tuner = self.tuner
        lacking = {step for step in points if self._at(step) is None}
        lacking |= {step for step in kept if not self._level(step).is_file()}
        state = self.folder / STATE
        if lacking and state.is_file():
            tuner.restore(state)
            if min(lacking) < tuner.step:
                raise _AnewError
        for step in sorted({*points, *kept}):
            if step < min(lacking, default=step + 1):
                continue
            seconds = self._to(step, points[-1])
            if step in kept:
                tuner.save(self._level(step))
            if step > 0:
                self._save()
            if step in points:
                self._look(step, seconds)
        return {"points": points, "kept": kept}

    def _chase(self, chase: Chase) -> dict[str, Any]:
        """Tune on from a level until the score has passed the target, as often running as asked."""
        tuner = self.tuner
        tuner.restore(Path(chase.state))
        start, above, step = tuner.step, 0, tuner.step
        if (self.folder / STATE).is_file():
            tuner.restore(self.folder / STATE)
        passed: int | None = None
        while step < start + chase.maximum and above < chase.confirm:
            step = min(step + chase.every, start + chase.maximum)
            there = self._at(step)
            if there is None:
                seconds = self._to(step, start + chase.maximum)
                self._save()
                there = self._look(step, seconds)
            above = above + 1 if there["score"] > chase.target else 0
            passed = step if above == 1 else passed if above else None
        return {"start": start, "last": step, "passed": None if above < chase.confirm else passed}

    def _to(self, step: int, end: int) -> dict[str, float]:
        """Tune up to a step; return the seconds that it took, on the clock and of the processor."""
        start, spent = time.monotonic(), time.process_time()
        self.tuner.advance(step, between=lambda: self._between(end))
        return {"tuning_seconds": time.monotonic() - start, "cpu_seconds": time.process_time() - spent}

    def _between(self, end: int) -> None:
        """After a step: leave when nobody waits any more, save and tell now and then."""
        if self._parent is not None and os.getppid() != int(self._parent):
            raise SystemExit(1)
        now = time.monotonic()
        if now - self._saved > 60 * self.job.settings.save_minutes:
            self._save()
        if now - self._shown > 1.0:
            self._shown = now
            write_json(self.folder / PROGRESS, {"step": self.tuner.step, "of": end})

    def _save(self) -> None:
        self.tuner.save(self.folder / STATE)
        self._saved = time.monotonic()

    def _look(self, step: int, seconds: dict[str, float]) -> dict[str, Any]:
        """Score the items at a step; the record appears after the rows."""
        start = time.monotonic()
        rows = self.score()
        path = self.folder / f"eval-{step:09d}.parquet"
        partial = path.with_name(f".{path.name}.partial")
        rows.write_parquet(partial)
        partial.replace(path)
        settings = self.job.settings
        held = None if self.validate is None else _mean(self.validate(), settings.score)
        effort = {"steps": step, "examples": step * settings.batch, "tokens": self.tuner.tokens}
        record = effort | {
            "effort": effort[settings.effort],
            "score": _mean(rows, settings.score),
            "validation": held,
            "loss": self.tuner.loss,
            **seconds,
            "scoring_seconds": time.monotonic() - start,
        }
        write_json(path.with_suffix(".json"), record)
        return record

    def _at(self, step: int) -> dict[str, Any] | None:
        return read_json(self.folder / f"eval-{step:09d}.json")

    def _level(self, step: int) -> Path:
        return self.folder / f"level-{step:09d}.pt"


def _placed(job: Job) -> Any:
    """The settings with this process' own GPU, where several runs share a machine."""
    from dataclasses import replace

    settings, slot = job.settings, os.environ.get(SLOT)
    if slot is None or settings.device not in ("auto", "cuda"):
        return settings
    there = load("torch").cuda.device_count()
    return replace(settings, device=f"cuda:{int(slot) % there}") if there > 1 else settings


def _benchmark(job: Job, opened: OpenModel) -> tuple[tuple[Example, ...], Score, Score | None, tuple[str, ...]]:
    """Return examples, what scores the test items, what scores validation items (None: not asked for), and notes."""
    settings, benchmark, folder = job.settings, job.benchmark, Path(job.folder)
    select = settings.select == "best"

    def scorer(items: tuple[Item, ...]) -> ItemScorer:
        return ItemScorer(opened, items, max_length=settings.max_length, batch=settings.eval_batch)

    if benchmark.task is None:
        splits = read_splits(benchmark, folder, select=select)
        test = scorer(splits.test)
        notes = splits.notes
        if test.cut:
            notes = (*notes, f"{test.cut:,} prompts of test items lost their beginning to max_length")
        return splits.train, test.score, scorer(splits.validation).score if splits.validation else None, notes
    task = LmEvalTask(benchmark, folder)
    items = task.items()
    held: tuple[Item, ...] = ()
    if select:
        share = VALIDATION_SHARE if benchmark.validation_share is None else benchmark.validation_share
        items, held = hold_out(items, share)

    def score() -> pl.DataFrame:
        return task.score(opened, batch=settings.eval_batch, max_length=settings.max_length)

    return tuple(item.example for item in items), score, scorer(held).score if held else None, ()


def _mean(rows: pl.DataFrame, score: str) -> float:
    values = rows[score].drop_nulls().to_numpy()
    if not values.size:
        raise RunError("data", f"no item has a score `{score}`", hint='[tuning] score = "acc" needs the least')
    return float(np.mean(values))


def main() -> None:
    """Carry out what is asked for; after a failure that may have left its mark, end: a new process takes over."""
    for line in sys.stdin:
        if not work(line.rstrip("\n")):
            break
        gc.collect()  # the model is gone before the next one comes
        torch = load("torch")
        if torch.cuda.is_available():
            torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
