"""Units read into parts by several processes, this one among them."""

from __future__ import annotations

import multiprocessing
import os
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from queue import SimpleQueue

from benchwright.errors import DataError
from benchwright.logs.record import ReadOptions, Unit
from benchwright.panel.store import load_part, read_unit

SMALL_BYTES = 20 * 2**20  # below this, starting other processes costs more than it saves
Progress = Callable[[str], None]


def read_missing(
    units: dict[str, Unit], folder: Path, options: ReadOptions, workers: int | None, strict: bool, say: Progress
) -> None:
    """Read the units whose part is not there yet into ``folder``/key, large ones first.

    Raises
    ------
    DataError
        ``strict`` met a fault, or a reading process died. What was read stays.
    """
    missing = {key: unit for key, unit in units.items() if not (folder / key / "unit.json").is_file()}
    sizes = {key: sum(file.path.stat().st_size for file in unit.files) for key, unit in missing.items()}
    done = 0

    def finished(key: str) -> None:
        nonlocal done
        done += 1
        say(f"read {done} of {len(missing)}: {missing[key].files[0].name}")
        if strict and (part := load_part(folder / key)).faults:
            raise DataError("--strict met a fault", faults=part.faults)

    def read(key: str) -> None:
        read_unit(missing[key], folder / key, options)
        finished(key)

    count = min(workers if workers is not None else os.cpu_count() or 1, len(missing))
    if count <= 1 or (workers is None and sum(sizes.values()) < SMALL_BYTES):
        for key in missing:
            read(key)
        return
    left = deque(sorted(missing, key=lambda key: -sizes[key]))
    ended: SimpleQueue[tuple[str, Future[None]]] = SimpleQueue()
    with ProcessPoolExecutor(count - 1, mp_context=multiprocessing.get_context("spawn")) as pool:

        def hand_out() -> None:
            """Give the next unit to a process that is free, and again when that one is read."""
            try:
                key = left.popleft()
            except IndexError:
                return
            try:
                task = pool.submit(read_unit, missing[key], folder / key, options)
            except RuntimeError:  # the pool is broken or closing
                left.append(key)
                return

            def over(task: Future[None]) -> None:
                if not task.cancelled() and task.exception() is None:  # a broken pool holds the lock that submit takes
                    hand_out()
                ended.put((key, task))

            task.add_done_callback(over)

        def tell() -> None:
            key, task = ended.get()
            task.result()
            finished(key)

        try:
            first = left.popleft()
            for _ in range(count - 1):
                hand_out()
            read(first)  # while the others start
            while done < len(missing):
                try:
                    key = left.pop()
                except IndexError:
                    tell()
                else:
                    read(key)
                while not ended.empty():
                    tell()
        except BrokenProcessPool:
            unread = [unit.files[0].name for key, unit in missing.items() if not (folder / key / "unit.json").is_file()]
            raise DataError(
                f"a reading process was ended from outside, often for want of memory; unread: {', '.join(unread[:5])}",
                hint="run the same command again: what was read is kept; with --workers 1 less memory is needed",
            ) from None
        finally:
            left.clear()
