"""The tuning loop: plain steps of AdamW on the answers, which can be stopped anywhere and go on to the same curve.

Everything random in step k (which examples, dropout) is a function of the seed and k, so that a checkpoint needs the
tuned parameters, the optimiser's state and k, and nothing else. On one CPU with as many threads the same numbers come
out bit for bit; on a GPU up to the order in which its kernels add.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchwright.tuning._order import Order, step_seed
from benchwright.tuning.encoding import Encoded, collate
from benchwright.tuning.failures import RunError, failure_of
from benchwright.tuning.libraries import load
from benchwright.tuning.models import OpenModel
from benchwright.tuning.settings import TuningSettings

LOOK_EVERY = 16  # steps between looks at the losses: a look waits for the device


class Tuner:
    """A model, its examples, and how far it is tuned: ``step`` steps, ``tokens`` tokens.

    Parameters
    ----------
    opened : OpenModel
    examples : sequence of Encoded
    settings : TuningSettings
    seed, stream : int
        Of the order of examples, see ``_order.Order``.
    total : int
        Steps of the whole run: an annealed rate ends there.
    """

    def __init__(
        self,
        opened: OpenModel,
        examples: Sequence[Encoded],
        settings: TuningSettings,
        *,
        seed: int,
        stream: int = 0,
        total: int = 0,
    ) -> None:
        torch = load("torch")
        self.step, self.tokens, self.stopped = 0, 0, True
        self._opened, self._examples, self._settings = opened, examples, settings
        self._seed, self._stream, self.total = seed, stream, total
        self._order = Order(len(examples), settings.batch, seed=seed, stream=stream)
        self._tuned = opened.tuned()
        self._optimiser = torch.optim.AdamW(
            self._tuned.values(),
            lr=settings.learning_rate,
            weight_decay=settings.weight_decay,
            fused=opened.device.type in ("cpu", "cuda"),
        )
        self._losses: list[Any] = []  # on the device, since the last look
        self.losses: list[float] = []  # since the last pause

    @property
    def loss(self) -> float:
        """Mean loss since the last time that tuning went on from a place where it had been asked to stop; else NaN."""
        return float(np.mean(self.losses)) if self.losses else math.nan

    def advance(self, to: int, *, between: Callable[[], None] | None = None) -> None:
        """Tune until ``to`` steps are done; ``between`` is called after each step.

        Raises
        ------
        RunError
            A loss that is no number, or memory that does not do.
        """
        if self.step >= to:
            return
        self._opened.model.train()
        if self.stopped:
            self.losses = []
        self.stopped = False
        while self.step < to:
            try:
                self._losses.append(self._one())
            except Exception as error:
                raise failure_of(error, f"step {self.step + 1}") from None
            self.step += 1
            self.stopped = self.step == to
            if len(self._losses) >= LOOK_EVERY or self.stopped:
                self._look()
            if between is not None:
                between()

    def rate(self, step: int) -> float:
        """Learning rate of a step, from 0."""
        rate = self._settings.learning_rate
        if self._settings.schedule == "annealed":
            rate *= 1.0 - step / max(self.total, 1)
        return rate * min(1.0, (step + 1) / max(self._settings.warmup, 1))

    def tokens_of(self, step: int) -> int:
        """Tokens of the examples of a step."""
        return int(sum(self._examples[place].ids.size for place in self._order.of(step)))

    def save(self, path: Path) -> None:
        """Put a checkpoint on the disk, whole or not at all.

        Raises
        ------
        RunError
            A loss since the last look is no number.
        """
        self._look()
        write_state(path, self.state())

    def state(self) -> dict[str, Any]:
        """Everything that a checkpoint holds."""
        return {
            "step": self.step,
            "tokens": self.tokens,
            "losses": self.losses,
            "stopped": self.stopped,
            "tuned": {name: value.detach() for name, value in self._tuned.items()},
            "optimiser": self._optimiser.state_dict(),
        }

    def restore(self, path: Path) -> None:
        """Go back to a checkpoint.

        Raises
        ------
        RunError
            It cannot be read, or is of another model.
        """
        torch = load("torch")
        try:
            state = torch.load(path, map_location=self._opened.device, weights_only=True)
            if state["tuned"].keys() != self._tuned.keys():
                raise RunError("other", f"{path.name} is a checkpoint of another model")
            with torch.no_grad():
                for name, value in self._tuned.items():
                    value.copy_(state["tuned"][name])
            self._optimiser.load_state_dict(state["optimiser"])
            self.step, self.tokens = int(state["step"]), int(state["tokens"])
            self.losses, self.stopped = list(state["losses"]), bool(state["stopped"])
        except RunError:
            raise
        except Exception as error:
            raise failure_of(error, f"reading {path.name}") from None

    def _one(self) -> Any:
        """One step; return its loss on the device."""
        torch = load("torch")
        torch.manual_seed(step_seed(self._seed, self._stream, self.step))
        chosen = [self._examples[place] for place in self._order.of(self.step)]
        answers = sum(one.answer for one in chosen)
        loss: Any = 0.0
        for part in np.array_split(np.arange(len(chosen)), self._settings.parts):
            logits, target = self._opened.predictions(collate([chosen[place] for place in part]))
            share = torch.nn.functional.cross_entropy(logits, target, reduction="sum") / answers
            share.backward()
            loss = loss + share.detach()
        if self._settings.clip is not None:
            torch.nn.utils.clip_grad_norm_(self._tuned.values(), self._settings.clip)
        for group in self._optimiser.param_groups:
            group["lr"] = self.rate(self.step)
        self._optimiser.step()
        self._optimiser.zero_grad(set_to_none=True)
        self.tokens += int(sum(one.ids.size for one in chosen))
        return loss

    def _look(self) -> None:
        """Take the losses since the last look from the device; raise where one is no number."""
        if not self._losses:
            return
        values: list[float] = load("torch").stack(self._losses).tolist()
        first = self.step - len(self._losses) + 1
        self._losses = []
        for place, value in enumerate(values):
            if not math.isfinite(value):
                raise RunError(
                    "loss",
                    f"the loss at step {first + place} is {value}: the tuning has diverged",
                    hint="lower [tuning] learning_rate, or raise warmup",
                )
        self.losses += values


def write_state(path: Path, state: dict[str, Any]) -> None:
    """Write a checkpoint beside its place and move it in."""
    partial = path.with_name(f".{path.name}.partial")
    with partial.open("wb") as file:
        load("torch").save(state, file)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)
