"""Whole-process times of the main job against the targets of the project.

    python benchmarks/bench_audit.py [FOLDER]

FOLDER holds the published OLMES item tables (default: data set ``olmes-audit``). Each figure is the median
of five processes with BLAS on one thread. Exits 1 if a target is missed. The authors' own seven scripts make
the same artefacts in 13.7 s on a machine of two cores; the ratio to that is printed.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

RUNS = 5
AUTHORS_SECONDS = 13.7
ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def median_seconds(command: list[str], *, fresh_folder: bool) -> float:
    """Median wall time of whole processes after one warm-up."""
    times = []
    for _ in range(RUNS + 1):
        with tempfile.TemporaryDirectory() as parent:
            out = ["-o", str(Path(parent) / "out")] if fresh_folder else []
            start = time.perf_counter()
            subprocess.run([*command, *out], check=True, capture_output=True, env={**os.environ, **ONE_THREAD})
            times.append(time.perf_counter() - start)
    return statistics.median(times[1:])


def main() -> int:
    source = sys.argv[1] if len(sys.argv) > 1 else "olmes-audit"
    run = [sys.executable, "-m", "benchwright.cli"]
    cases = (
        ("import benchwright", [sys.executable, "-c", "import benchwright"], False, 0.25),
        ("--help", [*run, "--help"], False, 0.35),
        ("audit, numbers only", [*run, "audit", source, "--no-report", "--no-figures"], True, 2.5),
        ("audit, whole", [*run, "audit", source], True, 7.0),
        ("audit, built-in example", [*run, "audit"], True, 20.0),
    )
    missed = 0
    for name, command, fresh, target in cases:
        seconds = median_seconds(command, fresh_folder=fresh)
        missed += seconds > target
        print(f"{name:<26} {seconds:6.2f} s   target {target:5.2f} s   {'ok' if seconds <= target else 'MISSED'}")
        if name == "audit, whole":
            print(
                f"{'':<26} {AUTHORS_SECONDS / seconds:6.1f} x the speed of the authors' scripts ({AUTHORS_SECONDS} s)"
            )
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
