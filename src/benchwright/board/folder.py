"""The folder of a leaderboard: whole or not at all, and enough in it to score new models on the same board.

leaderboard.csv    the table; leaderboard_with_flagged.csv beside it where items were flagged
scheme.json        the weights, with hashes
summary.json       table, policy, scale, metrics, notes, numbers; ``board``: what a frozen board needs, and its hash
values.parquet     task, doc_id, cluster, size, then the values of each model (v0, v1, ... in the order of
                   ``board.models``) and, of task scores, standard errors (e0, e1, ...)

Model names are values in these files and never names of columns or files.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from benchwright._csv import inert
from benchwright._json import json_safe
from benchwright._staging import Output
from benchwright.board.results import Leaderboard
from benchwright.board.rules import Missing, ScoringRules
from benchwright.board.scales import Scale
from benchwright.board.scheme import WeightScheme, content_sha256, read_scheme
from benchwright.board.values import BoardValues
from benchwright.errors import DataError, Fault, UsageError

FORMAT = 1
MARKER, SCHEME, VALUES, TABLE = "summary.json", "scheme.json", "values.parquet", "leaderboard.csv"
BOARD = Output("board", (MARKER, SCHEME))
AGAIN = "write the board again with `benchwright rescore SOURCE --weights W -o BOARD`"


@dataclass(frozen=True, slots=True, eq=False)
class FrozenBoard:
    """What a board's folder fixes: models with their values, weights, scale and rules; and its policy in words."""

    values: BoardValues
    scheme: WeightScheme
    scale: Scale
    rules: ScoringRules
    policy: Mapping[str, Any]

    @property
    def missing(self) -> Missing:
        """Return what is done with items that a model lacks, which does not take items from the board."""
        return "refuse" if self.rules.missing == "intersect" else self.rules.missing


def write_board(board: Leaderboard, out: str | Path, *, overwrite: bool = False) -> Path:
    """Write the folder of a leaderboard.

    Parameters
    ----------
    out
        Target folder: new or empty, or an earlier board with ``overwrite=True``.

    Raises
    ------
    UsageError
        The folder is not empty, not a folder, or cannot be written.
    """
    target = Path(out)
    with BOARD.whole(target, overwrite=overwrite) as stage:
        _write_files(board, stage)
    return target


def _write_files(board: Leaderboard, stage: Path) -> None:
    _write(stage / SCHEME, board.scheme.to_json())
    files = {VALUES: _values_file(board.values)}
    for name, frame in ((TABLE, board.frame), ("leaderboard_with_flagged.csv", board.with_flagged)):
        if frame is not None:
            files[name] = frame.with_columns(inert(frame.schema)).write_csv().encode()
    for name, content in files.items():
        (stage / name).write_bytes(content)
    summary = board.to_dict() | {
        "board": json_safe(
            {
                "format": FORMAT,
                "models": board.values.models,
                "level": board.values.level,
                "higher": board.values.higher,
                "rules": asdict(board.rules),
                "files": {name: hashlib.sha256(content).hexdigest() for name, content in files.items()},
            }
        )
    }
    summary["board"]["sha256"] = _frozen_sha256(summary)
    _write(stage / MARKER, json.dumps(summary, ensure_ascii=False, indent=1, allow_nan=False) + "\n")


def _frozen_sha256(summary: dict[str, Any]) -> str:
    """Return the hash of what is frozen of a summary."""
    board = {name: value for name, value in summary["board"].items() if name != "sha256"}
    return content_sha256([board, *(summary[name] for name in ("scheme", "scale", "metrics", "policy"))])


def _values_file(values: BoardValues) -> bytes:
    m = values.items.height
    none = np.full(m, np.nan)
    columns: dict[str, Any] = {
        "cluster": pl.Series([None] * m if values.clusters is None else values.clusters, dtype=pl.Int64),
        "size": pl.Series(none if values.sizes is None else values.sizes),
    }
    columns |= {f"v{place}": column for place, column in enumerate(values.values.T)}
    if values.standard_errors is not None:
        columns |= {f"e{place}": column for place, column in enumerate(values.standard_errors.T)}
    file = io.BytesIO()
    values.items.select("task", "doc_id").with_columns(**columns).write_parquet(file)
    return file.getvalue()


def read_board(folder: str | Path) -> FrozenBoard:
    """Read what a board's folder fixes.

    Raises
    ------
    UsageError
        The folder holds no board.
    DataError
        The board is damaged or was changed.
    """
    folder = Path(folder)
    try:
        summary = json.loads((folder / MARKER).read_text(encoding="utf-8"))
        content = (folder / VALUES).read_bytes()
    except OSError:
        raise UsageError(f"{folder} holds no board", hint=AGAIN) from None
    except ValueError as error:
        raise _damaged(folder, MARKER, str(error)) from None
    scheme = read_scheme(folder / SCHEME)
    facts = summary.get("board") if isinstance(summary, dict) else None
    if not isinstance(facts, dict) or facts.get("format") != FORMAT:
        raise _damaged(folder, MARKER, f"`board` is not of format {FORMAT}")
    try:
        if facts["sha256"] != _frozen_sha256(summary):
            raise ValueError("`board.sha256` is not the hash of what is frozen, which was changed")
        for name in (VALUES, TABLE):
            _check_file(folder, name, facts["files"][name])
        stated, scale = summary["scheme"]["sha256"], summary["scale"]
        bounds = pl.DataFrame(scale["bounds"], schema={"task": pl.String, "low": pl.Float64, "high": pl.Float64})
        frozen = FrozenBoard(
            _values(content, facts, summary["metrics"]),
            scheme,
            Scale(bounds, scale["rule"], scale["clip"], tuple(scale["notes"])),
            ScoringRules(**facts["rules"]),
            summary["policy"],
        )
    except DataError:
        raise
    except (KeyError, TypeError, ValueError, pl.exceptions.PolarsError) as error:
        raise _damaged(folder, MARKER, f"is not what a board has: {error}") from None
    if stated != scheme.sha256:
        raise _damaged(folder, SCHEME, f"its hash is not the one in {MARKER}")
    return frozen


def _check_file(folder: Path, name: str, sha256: str) -> None:
    file = folder / name
    if not file.is_file() or hashlib.sha256(file.read_bytes()).hexdigest() != sha256:
        raise _damaged(folder, name, f"its hash is not the one in {MARKER}: it was changed, or is gone")


def _values(content: bytes, facts: dict[str, Any], metrics: dict[str, str] | None) -> BoardValues:
    table = pl.read_parquet(io.BytesIO(content))
    models = tuple(facts["models"])

    def matrix(letter: str) -> Any:
        return table.select(f"{letter}{place}" for place in range(len(models))).to_numpy().astype(np.float64)

    return BoardValues(
        models,
        table.select("task", "doc_id"),
        matrix("v"),
        level=facts["level"],
        clusters=None if table["cluster"].null_count() else table["cluster"].to_numpy(),
        metrics=metrics,
        higher=facts["higher"],
        sizes=None if table["size"].is_nan().all() else table["size"].to_numpy(),
        standard_errors=matrix("e") if "e0" in table.columns else None,
    )


def _damaged(folder: Path, file: str, reason: str) -> DataError:
    return DataError(f"the board {folder} cannot be used", faults=[Fault(file, reason)], hint=AGAIN)


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", newline="\n")
