"""Our reader of Inspect logs against the library's own: ``python benchmarks/bench_inspect.py [FOLDER]``.

Reads every ``.eval`` and ``.json`` log of FOLDER; without one, a log that the library writes itself with its mock
model (needs ``inspect-test``). Target: at least three times faster in all than loading each log whole. Exit status 1
where it is missed.
"""

from __future__ import annotations

import logging
import sys
import tempfile
from functools import partial
from pathlib import Path
from statistics import median

from benchwright.logs import inspect_ai
from benchwright.logs.log_file import LogFile
from benchwright.logs.record import MemorySink, Unit
from stopwatch import seconds

LIMIT = 3.0
SAMPLES = 500
INPUT = "A question of some length about nothing in particular. " * 60


def write_log(folder: Path) -> None:
    """Let the library evaluate its mock model, with no network."""
    from inspect_ai import Task
    from inspect_ai import eval as evaluate
    from inspect_ai.dataset import Sample
    from inspect_ai.model import ModelOutput, ModelUsage, get_model
    from inspect_ai.scorer import match
    from inspect_ai.solver import generate

    output = ModelOutput.from_content("mockllm/model", "yes")
    output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)  # else it fetches a table
    model = get_model("mockllm/model", custom_outputs=[output] * SAMPLES, memoize=False)
    samples = [Sample(id=i, input=f"{INPUT}{i}", target="no" if i % 3 else "yes") for i in range(SAMPLES)]
    task = Task(name="mock", dataset=samples, solver=[generate()], scorer=match())
    evaluate(task, model=model, log_dir=str(folder), log_format="eval", display="none")


def ours(path: Path) -> None:
    """Read a log into memory."""
    sink = MemorySink()
    inspect_ai.read(Unit("inspect", (LogFile(path, path.name),)), sink)
    sink.table("rows")


def library(path: Path) -> None:
    """Load a log whole."""
    from inspect_ai.log import read_eval_log

    read_eval_log(str(path))


def main() -> int:
    """Print seconds and ratios, and say whether the target is met."""
    logging.disable(logging.WARNING)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(temporary)
        if len(sys.argv) <= 1:
            write_log(folder)
        total = [0.0, 0.0]
        ratios = []
        for path in sorted(file for file in folder.rglob("*") if file.suffix in (".eval", ".json")):
            mine, theirs = seconds(partial(ours, path)), seconds(partial(library, path))
            total[0] += mine
            total[1] += theirs
            ratios.append(theirs / mine)
    met = total[1] >= LIMIT * total[0]
    print(f"{len(ratios)} logs: ours {total[0]:.3f} s, the library {total[1]:.3f} s, a ratio of ", end="")
    print(f"{total[1] / total[0]:.1f} (at least {LIMIT:g}){'' if met else '  MISSED'}")
    print(f"single logs: ratios of {min(ratios):.1f} to {max(ratios):.1f}, median {median(ratios):.1f}")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
