"""Measurements in processes of their own, for the benchmarks beside it."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter


def report(task: Callable[[], object]) -> None:
    """Run a task in this process; print its seconds and the peak memory of the process as JSON."""
    start = perf_counter()
    task()
    print(json.dumps([perf_counter() - start, peak_bytes()]))


def measure(script: str, *arguments: str, **environment: str) -> tuple[float, float]:
    """Run a script that ends in ``report`` and return seconds and bytes."""
    command = [sys.executable, script, "--child", *arguments]
    env = {**os.environ, **environment}
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=env)
    seconds, peak = json.loads(done.stdout.splitlines()[-1])
    return seconds, peak


def peak_bytes() -> float:
    """Return the peak memory of this process; Linux counts that of a large parent in ``ru_maxrss``, not here."""
    status = Path("/proc/self/status")
    if status.is_file():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return 1024.0 * int(line.split()[1])
    return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) * (1 if sys.platform == "darwin" else 1024)
