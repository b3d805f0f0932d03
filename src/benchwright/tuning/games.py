"""The ranking game of an experiment: a game file beside the scores, to be played again with other rewards too."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchwright.errors import BenchwrightError
from benchwright.game_answers.curve_game import KEYS as OF_CURVES
from benchwright.game_answers.inputs import answer_file
from benchwright.tuning.folder import write_text
from benchwright.tuning.plan import plain_name
from benchwright.tuning.protocol import Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchwright.game_answers.answer import GameAnswer

SCORES = "scores.csv"


def game_path(out: Path, task: str) -> Path:
    """Where the game of a task is."""
    return out / f"game-{plain_name(task)}.toml"


def game_text(protocol: Protocol, task: str) -> str:
    """The game file of a task: what the protocol's ``[game]`` says, on the measured curves."""
    stated = dict(protocol.game)
    curves: dict[str, Any] = {"file": SCORES, "task": task}
    curves["effort"] = "step" if protocol.tuning.effort == "steps" else "dose"
    if protocol.tuning.levels is not None:
        curves["deltas"] = sorted(set(protocol.tuning.levels))
    curves |= {key: stated.pop(key) for key in OF_CURVES if key in stated}
    lines = [f"{key} = {toml_value(value)}" for key, value in stated.items()]
    return "\n".join([*lines, "", "[curves]", *(f"{key} = {toml_value(value)}" for key, value in curves.items()), ""])


def play(
    protocol: Protocol, out: Path, tasks: Sequence[str], progress: Callable[[str], None]
) -> tuple[dict[str, GameAnswer], tuple[str, ...]]:
    """Write the games and answer them; where there is no answer, a note says why."""
    answers: dict[str, Any] = {}
    notes = []
    for task in tasks:
        path = game_path(out, task)
        write_text(path, game_text(protocol, task))
        try:
            answers[task] = answer_file(path, progress=progress)
        except BenchwrightError as error:
            notes.append(f"{task}: no ranking game: {error.message}")
    return answers, tuple(notes)


def toml_value(value: Any) -> str:
    """A value as TOML; tables stand on one line.

    >>> toml_value({"form": "per-rank", "gap": 1000.0, "of": [1, True]})
    '{ form = "per-rank", gap = 1000.0, of = [1, true] }'
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=True).replace("\\u007f", "\\u007F")
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {toml_value(one)}" for key, one in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(toml_value, value)) + "]"
    return repr(value)
