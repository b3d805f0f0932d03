"""Reading lm-eval samples against a bare msgspec loop: ``python benchmarks/bench_ingest.py [--megabytes N] [--big]``.

Synthetic samples of lm-eval 0.4 (four choices, ``acc`` and ``acc_norm``, lines of about 3 and 8 kB, 100 MB a file) are
written to a temporary folder. Each measurement is a process of its own, bound to one core where the system can, with
BLAS and polars on one thread; medians of five. ``read_logs`` includes hashes, choices and Parquet; the bare loop
decodes the same fields of the same file into typed Structs and keeps nothing. Targets:

* one core: at most 4 times the bare loop; four files on two cores: at most 2.5 times the bare loop on one;
* at least three times faster than ``pandas.read_json(lines=True)`` alone (only where pandas can be imported);
* peak memory at most 300 MB, and at most 1.1 times as much for a file four times as large (``--big``: of 2 GB);
* ``.gz`` and ``.zst`` within 1.6 times of the plain file.

Exit status 1 where one is missed.
"""

from __future__ import annotations

import argparse
import gzip
import importlib.util
import json
import os
import random
import shutil
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

import msgspec

from child_process import measure, report

REPEATS = 5
ONE_CORE_LIMIT, TWO_CORE_LIMIT, PANDAS_LIMIT = 4.0, 2.5, 3.0
MEMORY_LIMIT, GROWTH_LIMIT, PACKED_LIMIT = 300e6, 1.1, 1.6
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "POLARS_MAX_THREADS")
SAMPLES = "samples_task_2026-01-01T00-00-00.000000.jsonl"
WORDS = ("the", "of", "energy", "water", "which", "light", "plant", "students", "because", "surface", "likely", "é”")


def write_samples(path: Path, line_bytes: int, size: int) -> None:
    """Write samples until the file has ``size`` bytes; the texts of the lines differ."""
    rng = random.Random(20260730)  # noqa: S311 (no secret)
    text = " ".join(rng.choices(WORDS, k=20_000))
    width = max(100, (line_bytes - 1000) // 6)
    written = doc_id = 0
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="\n") as file:
        while written < size:
            at = rng.randrange(len(text) - width)
            question = f"{doc_id}: {text[at : at + width]}"
            written += file.write(json.dumps(_sample(doc_id, question, rng), ensure_ascii=False) + "\n")
            doc_id += 1


def _sample(doc_id: int, question: str, rng: random.Random) -> dict[str, Any]:
    choices = [" ".join(rng.choices(WORDS, k=5)) for _ in range(4)]
    answers = [[-rng.expovariate(0.1), rng.choice(["True", "False"])] for _ in choices]
    gold = rng.randrange(4)
    likely = [answer[0] for answer in answers]
    scaled = [value / len(choice) for value, choice in zip(likely, choices, strict=True)]
    asked = {f"gen_args_{place}": {"arg_0": question, "arg_1": f" {choice}"} for place, choice in enumerate(choices)}
    return {
        "doc_id": doc_id,
        "doc": {"id": f"item-{doc_id}", "question": question, "choices": choices, "answer": gold},
        "target": str(gold),
        "arguments": asked,
        "resps": [[answer] for answer in answers],
        "filtered_resps": answers,
        "filter": "none",
        "metrics": ["acc", "acc_norm"],
        "doc_hash": f"{rng.getrandbits(256):064x}",
        "prompt_hash": f"{rng.getrandbits(256):064x}",
        "target_hash": f"{rng.getrandbits(256):064x}",
        "acc": float(likely.index(max(likely)) == gold),
        "acc_norm": float(scaled.index(max(scaled)) == gold),
    }


def ingest(folder: Path, workers: int) -> None:
    """Read a folder of logs into a panel, as ``benchwright ingest`` does."""
    from benchwright.panel.ingest import read_logs

    with tempfile.TemporaryDirectory() as out:
        report(lambda: read_logs(folder, Path(out) / "panel", workers=workers))


class Argument(msgspec.Struct, gc=False):
    """What the reader takes of one request."""

    arg_1: str


class Answer(msgspec.Struct, array_like=True, gc=False):
    """What the reader takes of one answer."""

    logprob: float


class Sample(msgspec.Struct, gc=False):
    """What the reader takes of one record."""

    doc_id: int
    doc: dict[str, Any]
    target: str
    arguments: dict[str, Argument]
    filtered_resps: list[Answer]
    filter: str
    metrics: list[str]
    acc: float
    acc_norm: float


def bare(folder: Path) -> None:
    """Decode the fields that the reader uses, and nothing else."""
    decoder = msgspec.json.Decoder(Sample)

    def loop() -> None:
        for path in sorted(folder.rglob("*.jsonl")):
            with path.open("rb") as file:
                for line in file:
                    decoder.decode(line)

    report(loop)


def with_pandas(folder: Path) -> None:
    """Read the files with pandas alone."""
    import pandas as pd

    report(lambda: [pd.read_json(path, lines=True) for path in sorted(folder.rglob("*.jsonl"))])


def make(folder: Path, line_bytes: int, size: int, copies: int) -> None:
    """Write a folder with one log for each of ``copies`` models."""
    for model in range(copies):
        path = folder / f"organisation__model-{model}" / SAMPLES
        if model == 0:
            write_samples(path, line_bytes, size)
        else:
            path.parent.mkdir()
            shutil.copyfile(folder / "organisation__model-0" / SAMPLES, path)


def pack(folder: Path, target: Path) -> None:
    """Compress the log of a folder in both ways, each into a folder of its own, as the harness's users do."""
    from backports import zstd

    plain = folder / "organisation__model-0" / SAMPLES
    for name, opened in ((".gz", gzip.open), (".zst", zstd.open)):
        path = target / name[1:] / plain.parent.name / (SAMPLES + name)
        path.parent.mkdir(parents=True)
        with plain.open("rb") as file, opened(path, "wb") as packed:
            shutil.copyfileobj(file, packed, 2**20)


def child(arguments: list[str]) -> None:
    """Measure one thing in this process."""
    task, folder, cores = arguments[0], Path(arguments[1]), int(arguments[2])
    if hasattr(os, "sched_setaffinity") and cores == 1:
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    if task == "ingest":
        ingest(folder, cores)
    else:
        {"bare": bare, "pandas": with_pandas}[task](folder)


def medians(folder: Path, *tasks: tuple[str, int]) -> list[tuple[float, float]]:
    """Return median seconds and largest peak of (task, cores), taken in turn so that all meet the same noise."""
    environment = dict.fromkeys(THREADS, "1")
    found: list[list[tuple[float, float]]] = [[] for _ in tasks]
    for _ in range(REPEATS):
        for place, (task, cores) in enumerate(tasks):
            found[place].append(measure(__file__, task, str(folder), str(cores), **environment))
    return [(median(one[0] for one in each), max(one[1] for one in each)) for each in found]


class Verdict:
    """Prints figures beside their targets and remembers whether all are met."""

    def __init__(self) -> None:
        self.missed = 0

    def say(self, name: str, value: float, limit: float, unit: str = "", *, least: bool = False) -> None:
        """Print a figure and its limit."""
        good = value >= limit if least else value <= limit
        self.missed += not good
        word = "at least" if least else "at most"
        print(f"  {name}: {value:.2f}{unit} ({word} {limit:g}{unit}){'' if good else '  MISSED'}")


def main() -> int:
    """Print seconds, ratios and peak memory, and say which targets are met."""
    parser = argparse.ArgumentParser(description="Time the reading of lm-eval samples.")
    parser.add_argument("--megabytes", type=int, default=100, help="size of each file")
    parser.add_argument("--big", action="store_true", help="compare the peak memory with that of a file of 2 GB")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        child(given.child)
        return 0
    size = given.megabytes * 10**6
    verdict = Verdict()
    for line_bytes in (3000, 8000):
        with tempfile.TemporaryDirectory() as temporary:
            compare(Path(temporary), line_bytes, size, verdict)
    with tempfile.TemporaryDirectory() as temporary:
        flat(Path(temporary), size, 2 * 10**9 if given.big else 4 * size, verdict)
    return 1 if verdict.missed else 0


def compare(temporary: Path, line_bytes: int, size: int, verdict: Verdict) -> None:
    """Time one and two cores, pandas and compressed files on lines of one length."""
    one = temporary / "one"
    make(one, line_bytes, size, 1)
    pack(one, temporary)
    tasks = [("bare", 1), ("ingest", 1)] + ([("pandas", 1)] if importlib.util.find_spec("pandas") else [])
    (loop, _), (read, peak), *pandas = medians(one, *tasks)
    print(f"lines of {line_bytes} bytes, {size / 1e6:g} MB: bare loop {loop:.2f} s, ingest {read:.2f} s")
    verdict.say("one core, ingest / bare loop", read / loop, ONE_CORE_LIMIT)
    verdict.say("peak memory", peak / 1e6, MEMORY_LIMIT / 1e6, " MB")
    if pandas:
        verdict.say(f"pandas alone ({pandas[0][0]:.2f} s) / ingest", pandas[0][0] / read, PANDAS_LIMIT, least=True)
    else:
        print("  pandas is not here: not compared")
    for name in ("gz", "zst"):
        ((packed, _),) = medians(temporary / name, ("ingest", 1))
        verdict.say(f".{name} ({packed:.2f} s) / plain", packed / read, PACKED_LIMIT)
    for files in (2, 4):
        folder = temporary / f"files-{files}"
        make(folder, line_bytes, size, files)
        (loop, _), (read, _) = medians(folder, ("bare", 1), ("ingest", 2))
        name = f"two cores, {files} files: ingest ({read:.2f} s) / bare loop on one ({loop:.2f} s)"
        if files == 2:
            print(f"  {name}: {read / loop:.2f} (no target: starting a process counts for much)")
        else:
            verdict.say(name, read / loop, TWO_CORE_LIMIT)


def flat(temporary: Path, small: int, large: int, verdict: Verdict) -> None:
    """Compare the peak memory of a small and a large file."""
    environment = dict.fromkeys(THREADS, "1")
    peaks = []
    for size in (small, large):
        folder = temporary / str(size)
        make(folder, 3000, size, 1)
        seconds, peak = measure(__file__, "ingest", str(folder), "1", **environment)
        peaks.append(peak)
        print(f"{size / 1e6:g} MB: {seconds:.1f} s, {peak / 1e6:.0f} MB peak")
    verdict.say("peak memory", peaks[1] / 1e6, MEMORY_LIMIT / 1e6, " MB")
    verdict.say("its growth", peaks[1] / peaks[0], GROWTH_LIMIT)


if __name__ == "__main__":
    sys.exit(main())
