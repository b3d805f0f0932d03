"""Carry out runs, each in a process of its own: here, or as jobs of Slurm. A run that fails leaves the others alone."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchwright.errors import UsageError
from benchwright.tuning.failures import RunError
from benchwright.tuning.folder import DONE, FAILED, RUN, fingerprint, read_json, write_json
from benchwright.tuning.libraries import check_installed, load
from benchwright.tuning.plan import Job, resolved
from benchwright.tuning.settings import LaunchSettings
from benchwright.tuning.worker import PARENT, PROGRESS, SLOT, THREADS

Progress = Callable[[str], None]
LOOK_SECONDS = 0.1
SLURM_LOOK_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class RunEnd:
    """How a run ended: ``done`` is its record, ``failure`` why there is none."""

    job: Job
    folder: Path
    done: dict[str, Any] | None = None
    failure: RunError | None = None


def carry_out(jobs: Sequence[Job], runs: Path, launch: LaunchSettings, *, progress: Progress) -> list[RunEnd]:
    """Carry out what is not done yet, and say how each run ended.

    Raises
    ------
    UsageError
        A library is not installed, or a run's folder holds another run.
    """
    waiting = []
    for job in jobs:
        folder = runs / job.name
        record = _record(job)
        before = read_json(folder / RUN)
        if before is not None and before["identity"] != record["identity"]:
            # nothing is lost; or what an adversary is to pass has moved, with models or seeds that are new
            if job.chase is not None or not any(folder.glob("eval-*.json")):
                shutil.rmtree(folder)
                waiting.append((job, record))
                continue
            changed = [key for key, value in record["identity"].items() if before["identity"].get(key) != value]
            raise UsageError(
                f"{folder} holds another run: {', '.join(changed)} changed",
                hint="choose another folder with -o, or start anew with --overwrite",
            )
        done = read_json(folder / DONE)
        if done is None or done["asked"] != job.asked:
            waiting.append((job, record))
    if waiting:
        check_installed("torch", "transformers")
        if any(job.settings.method == "lora" for job, _ in waiting):
            check_installed("peft")
        if any(job.benchmark.task is not None for job, _ in waiting):
            check_installed("lm_eval")
    for job, record in waiting:
        folder = runs / job.name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / DONE).unlink(missing_ok=True)
        (folder / FAILED).unlink(missing_ok=True)
        write_json(folder / RUN, record)
    start = _Slurm if launch.launcher == "slurm" else _Local
    if waiting:
        start(launch, runs, len(jobs), progress).run([job for job, _ in waiting])
    return [_end(job, runs / job.name) for job in jobs]


def _record(job: Job) -> dict[str, Any]:
    """What run.json holds; checksums are part of what makes a run."""
    files = resolved(job.benchmark, Path(job.folder))
    sums = {name: None if path is None else fingerprint(path) for name, path in files.items()}
    # through JSON, so that it compares with what is read back
    return _as_json(
        {"job": job.to_dict(), "identity": job.identity | {"files": sums, "weights": fingerprint(job.model.path)}}
    )


def _as_json(record: dict[str, Any]) -> dict[str, Any]:
    import json

    found: dict[str, Any] = json.loads(json.dumps(record))
    return found


def _end(job: Job, folder: Path) -> RunEnd:
    done, failed = read_json(folder / DONE), read_json(folder / FAILED)
    if done is not None:
        return RunEnd(job, folder, done=done)
    if failed is None:
        failed = {"kind": "other", "message": "ended without a word", "hint": f"see the logs in {folder.parent}"}
    return RunEnd(job, folder, failure=RunError(failed["kind"], failed["message"], hint=failed["hint"]))


@dataclass(slots=True)
class _Local:
    """Processes here, ``workers`` at once; each carries out runs one by one, and is replaced when one fails."""

    launch: LaunchSettings
    runs: Path
    total: int
    progress: Progress
    _processes: dict[int, subprocess.Popen[bytes]] = field(default_factory=dict)
    _at_work: dict[int, Job] = field(default_factory=dict)

    def run(self, jobs: Sequence[Job]) -> None:
        waiting = list(jobs)
        try:
            while waiting or self._at_work:
                for slot in range(self.launch.workers):
                    if waiting and slot not in self._at_work:
                        self._start(waiting.pop(0), slot)
                time.sleep(LOOK_SECONDS)
                for slot in [*self._at_work]:
                    self._look(slot)
                self._tell(len(waiting))
        finally:
            for process in self._processes.values():
                process.terminate()
            for process in self._processes.values():
                process.communicate()

    def _start(self, job: Job, slot: int) -> None:
        process = self._processes.get(slot)
        if process is None or process.poll() is not None:
            process = self._processes[slot] = self._process(slot)
        self._at_work[slot] = job
        try:
            if process.stdin is not None:
                process.stdin.write(f"{self.runs / job.name}\n".encode())
                process.stdin.flush()
        except BrokenPipeError:  # it has just ended: what it ended with is seen at the next look
            return

    def _process(self, slot: int) -> subprocess.Popen[bytes]:
        cores = os.cpu_count() or 1
        threads = str(self.launch.threads or max(1, cores // self.launch.workers))
        own = {THREADS: threads, SLOT: str(slot), PARENT: str(os.getpid()), "OMP_NUM_THREADS": threads}
        with (self.runs / f"worker-{slot}.log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "benchwright.tuning.worker"],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                env=os.environ | own,
            )

    def _look(self, slot: int) -> None:
        """Free a slot whose run has ended; write down what a process that was killed could not."""
        job, process = self._at_work[slot], self._processes[slot]
        code = process.poll()  # before the files: one that ends writes them first
        folder = self.runs / job.name
        if (folder / DONE).is_file():
            del self._at_work[slot]
        elif (folder / FAILED).is_file():  # its process ends, and another takes the next run
            del self._at_work[slot], self._processes[slot]
            process.communicate()
        elif code is not None:
            del self._at_work[slot]
            if code < 0:
                name = signal.Signals(-code).name
                perhaps = ": memory may have been short" if name == "SIGKILL" else ""
                failure = RunError("memory" if perhaps else "other", f"its process was killed by {name}{perhaps}")
            else:
                log = self.runs / f"worker-{slot}.log"
                failure = RunError("other", f"its process ended with code {code}", hint=f"see {log}")
            write_json(folder / FAILED, failure.to_dict())

    def _tell(self, waiting: int) -> None:
        shown = []
        for job in self._at_work.values():
            found = read_json(self.runs / job.name / PROGRESS)
            shown.append(f"{job.name} {'starting' if found is None else '{step:,}/{of:,}'.format(**found)}")
        done = self.total - waiting - len(self._at_work)
        self.progress(f"{done} of {self.total} runs done; {', '.join(shown)}")


@dataclass(slots=True)
class _Slurm:
    """Jobs of Slurm through submitit, ``workers`` of them at once."""

    launch: LaunchSettings
    runs: Path
    total: int
    progress: Progress

    def run(self, jobs: Sequence[Job]) -> None:
        from benchwright.tuning.worker import work

        check_submitit()
        executor = load("submitit").AutoExecutor(folder=str(self.runs.parent / "slurm"), cluster="slurm")
        launch = self.launch
        given = {"slurm_partition": launch.partition, "slurm_account": launch.account}
        executor.update_parameters(
            timeout_min=max(1, round(60 * launch.hours)),
            gpus_per_node=launch.gpus,
            cpus_per_task=launch.cpus,
            mem_gb=launch.memory_gb,
            slurm_array_parallelism=launch.workers,
            **{name: value for name, value in given.items() if value is not None},
        )
        submitted = executor.map_array(work, [str((self.runs / job.name).resolve()) for job in jobs])
        while not all(one.done() for one in submitted):
            ended = sum(one.done() for one in submitted)
            self.progress(f"{self.total - len(jobs) + ended} of {self.total} runs done; Slurm has the others")
            time.sleep(SLURM_LOOK_SECONDS)
        for job, one in zip(jobs, submitted, strict=True):
            folder = self.runs / job.name
            error = one.exception()
            if error is not None and not (folder / DONE).is_file() and not (folder / FAILED).is_file():
                said = " ".join(str(error).split())[:300]
                write_json(folder / FAILED, RunError("other", f"its Slurm job failed: {said}").to_dict())


def check_submitit() -> None:
    """Raise where submitit is not installed."""
    from importlib.util import find_spec

    if find_spec("submitit") is None:
        raise UsageError('[launch] launcher = "slurm" needs submitit', hint="pip install submitit")
