"""Where a board's values come from: a panel, logs and score tables, or the folder of another board."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchwright._words import count
from benchwright.board.folder import TABLE, VALUES, read_board
from benchwright.board.values import BoardValues, LevelChoice, board_values, picked_models, picked_tasks
from benchwright.errors import UsageError
from benchwright.logs.item_layer import layer_path
from benchwright.logs.tabular import header
from benchwright.panel.ingest import MANIFEST, read_logs
from benchwright.panel.item_values import Errors
from benchwright.panel.names import shown
from benchwright.panel.panel import Panel, Repeated

Source = str | Path | Panel | BoardValues | Sequence[str | Path]
Progress = Callable[[str], None]
MAX_FAULTS = 3
OF_A_BOARD = {"model", "score", "standard_error", "rank_lo", "rank_hi"}  # columns of leaderboard.csv


def source_values(
    source: Source,
    *,
    level: LevelChoice = "auto",
    metric: str | None = None,
    models: Sequence[str] | None = None,
    tasks: Sequence[str] | None = None,
    setting: str | None = None,
    errors: Errors = "drop",
    repeated: Repeated = "latest",
    pool_versions: bool = False,
    progress: Progress | None = None,
) -> tuple[BoardValues, dict[str, Any]]:
    """Return what of a source was asked for, see :func:`board_values`, and the policy in words.

    Values that are there already (:class:`BoardValues`, or a board's folder) have their metrics; only models, tasks and
    setting pick from them.
    """
    say = progress or (lambda _: None)
    picked = {"models": models, "tasks": tasks, "setting": setting}
    policy: dict[str, Any] = {name: value for name, value in picked.items() if value is not None}
    with opened_source(source, say) as (opened, said):
        if isinstance(opened, BoardValues):
            if metric is not None or level not in ("auto", opened.level):
                raise UsageError(f"the values of a board have their metrics and are of {opened.level}s: choose nothing")
            values = opened if tasks is None else picked_tasks(opened, tasks)
            values = picked_models(values, models=models, setting=setting)
        else:
            say("values")
            values = board_values(
                opened,
                level=level,
                metric=metric,
                models=models,
                tasks=tasks,
                setting=setting,
                errors=errors,
                repeated=repeated,
                pool_versions=pool_versions,
            )
            if values.level == "item":
                policy |= {"errors": errors, "repeated": repeated}
            policy["versions"] = "pooled" if pool_versions else "one a task"
    return replace(values, notes=(*said, *values.notes)), policy


@contextmanager
def opened_source(source: Source, say: Progress) -> Iterator[tuple[Panel | BoardValues, list[str]]]:
    """Yield the panel, made in a folder that vanishes where the source is logs, and what reading them found.

    Of a board's folder: the values of its items.

    Raises
    ------
    UsageError
        A source is a report or a leaderboard.csv, which hold no scores of models on tasks or items.
    """
    if isinstance(source, Panel | BoardValues):
        yield source, []
        return
    if isinstance(source, str | Path) and (Path(source) / MANIFEST).is_file():
        yield Panel.open(source), []
    elif isinstance(source, str | Path) and (Path(source) / VALUES).is_file():
        values = read_board(source).values
        yield values, [f"the values of a board, on the {count(values.items.height, values.level)} that it kept"]
    else:
        for path in [source] if isinstance(source, str | Path) else source:
            _refuse_outputs(Path(path))
        with TemporaryDirectory(prefix="benchwright-") as folder:
            done = read_logs(source, Path(folder) / "panel", progress=say)
            notes = list(done.notes)
            if done.faults:
                some = "; ".join(shown(str(fault)) for fault in done.faults[:MAX_FAULTS])
                more = f" and {len(done.faults) - MAX_FAULTS:,} more" if len(done.faults) > MAX_FAULTS else ""
                notes.append(f"{count(len(done.faults), 'fault')} in the source: {some}{more}")
            yield Panel.open(done.panel), notes


def _refuse_outputs(path: Path) -> None:
    """Raise where a path is what benchwright wrote of scores: its tables would be taken for scores themselves."""
    if layer_path(path) is not None:
        raise UsageError(
            f"{path} is a report: it holds statistics of items, not the scores of models",
            hint="give the panel or the logs that it was made of; a report serves as --weights",
        )
    path = path / TABLE if path.is_dir() else path
    if path.suffix.lower() != ".csv" or not path.is_file():
        return
    try:
        names = {*header(path.read_bytes())}
    except UnicodeDecodeError:
        return  # its reader says so
    if names >= OF_A_BOARD:
        raise UsageError(
            f"{path} is a leaderboard: it holds the scores of models, not those on tasks or items",
            hint="give the folder of the board alone, or the scores that it was made of",
        )
