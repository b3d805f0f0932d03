"""What a tuning experiment found."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from benchwright._json import json_safe
from benchwright._shown import Headline, Shown, ShownPart
from benchwright._words import count, percent
from benchwright.tuning.protocol import Protocol

if TYPE_CHECKING:
    from benchwright.game_answers.answer import GameAnswer


@dataclass(frozen=True, slots=True, eq=False)
class TuningRun(Shown):
    """A tuning experiment that has ended, perhaps with runs that failed.

    Attributes
    ----------
    protocol : Protocol
    out : Path
        Its folder.
    runs : int
        Of the protocol, adversaries not counted.
    failed : dict
        Run -> why it could not be carried out.
    points : DataFrame
        Scores of single runs, one row a run and point.
    scores : DataFrame
        Means over seeds with standard errors, one row a task, model and point.
    adversaries, overtaking : DataFrame
        Efforts that were really needed, seed by seed, and their medians beside the fitted ones.
    answers : dict
        Task -> ranking game.
    facts : dict
        Tokens and seconds, in all and a second.
    notes : tuple of str
    """

    protocol: Protocol
    out: Path
    runs: int
    failed: dict[str, str]
    points: pl.DataFrame
    scores: pl.DataFrame
    adversaries: pl.DataFrame
    overtaking: pl.DataFrame
    answers: Mapping[str, GameAnswer]
    facts: dict[str, float]
    notes: tuple[str, ...]

    def _told(self) -> Iterable[ShownPart]:
        yield Headline(f"{count(self.runs, 'run')}, {self.runs - len(self.failed)} of them done")
        yield from (f"  failed: {name}: {why}" for name, why in self.failed.items())
        yield from self._tuned()
        for row in self.overtaking.iter_rows(named=True):
            yield overtaking_sentence(row, self.protocol.tuning.effort)
        for task, answer in self.answers.items():
            yield Headline(f"{task}:")
            yield answer.solution
            if answer.threshold is not None:
                yield answer.threshold
        yield from self.notes

    def _tuned(self) -> list[str]:
        """Scores untuned and at the end, by task and model."""
        if not self.scores.height:
            return []
        lines = []
        unit = self.protocol.tuning.effort
        for (task,), group in self.scores.group_by(("task",), maintain_order=True):
            end = float(group["dose"].max())  # type: ignore[arg-type]
            lines.append(f"{task} {group['metric'][0]}, untuned and after {end:g} {unit}:")
            for (model,), rows in group.group_by(("model",), maintain_order=True):
                last = rows.row(-1, named=True)
                ends = "   ".join(
                    f"{row['score']:.3f} ± {row['stderr']:.3f}" for row in (rows.row(0, named=True), last)
                )
                lines.append(
                    f"  {model:<28} {ends}   ({count(last['seeds'], 'seed')}, {count(last['item_count'], 'item')})"
                )
        return lines

    def to_dict(self) -> dict[str, Any]:
        """Everything but the items, in types that JSON knows."""
        record = {
            "protocol": self.protocol.to_dict(),
            "runs": self.runs,
            "failed": self.failed,
            "scores": self.scores.to_dicts(),
            "adversaries": self.adversaries.to_dicts(),
            "overtaking": self.overtaking.to_dicts(),
            "games": {task: answer.to_dict() for task, answer in self.answers.items()},
            "facts": self.facts,
            "notes": list(self.notes),
        }
        safe: dict[str, Any] = json_safe(record)
        return safe


def overtaking_sentence(row: Mapping[str, Any], unit: str) -> str:
    """Say what it took to overtake a neighbour, and what the curves say.

    >>> row = {"task": "t", "delta": 10.0, "developer": "b", "over": "a", "seeds": 3, "censored": 0, "needed": 40.0}
    >>> row |= {"needed_above": None, "fitted": 35.0, "fitted_low": 20.0, "fitted_high": 60.0, "within": True}
    >>> overtaking_sentence(row, "steps")
    't: tuned by 10 steps, b needed 40 more to pass a (median of 3 seeds); fitted 35, 95 % interval 20 to 60: inside'
    """
    developer, over = row["developer"], row["over"]
    if row["needed"] is not None:
        took = f"{developer} needed {row['needed']:g} more to pass {over}"
    else:
        took = f"{developer} had not passed {over} after {row['needed_above']:g} more"
    missed = f", {row['censored']} not passed" if row["censored"] else ""
    text = f"{row['task']}: tuned by {row['delta']:g} {unit}, {took}"
    text += f" (median of {count(row['seeds'], 'seed')}{missed})"
    if row["fitted"] is None:
        return f"{text}; the fitted curves never do, or there are none"
    text += f"; fitted {row['fitted']:.4g}"
    if row["fitted_low"] is None:
        return text
    high = "out of reach" if row["fitted_high"] is None else f"{row['fitted_high']:.4g}"
    verdict = {True: ": inside", False: ": outside", None: ""}[row["within"]]
    return f"{text}, {percent(0.95)} interval {row['fitted_low']:.4g} to {high}{verdict}"
