"""Log-likelihoods of choices, fast: all choices of an item stand in one row behind their prompt.

A row is prompt, choice 1, choice 2, ...; a token of a choice sees the prompt and its own choice only, and its position
counts from the prompt's end. So the prompt is read once, and the numbers are those of one row a choice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from world import Item

PAD_POSITION = 0


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Items as rows: ``ids``, ``positions`` (n, L), ``mask`` (n, 1, L, L), and where each choice's tokens are.

    ``reads`` (t,) and ``targets`` (t,) are flat places of logits and the tokens that they must give, ``which`` (t,) the
    choice, n_choices * item + place.
    """

    ids: Any
    positions: Any
    mask: Any
    reads: Any
    targets: Any
    which: Any
    n_choices: int


def to_rows(items: Sequence[Item], tokenizer: Any) -> Rows:
    """Lay items out as rows."""
    import torch

    prompts = tokenizer([item.prompt for item in items])["input_ids"]
    choices = [tokenizer([f" {choice}" for choice in item.choices])["input_ids"] for item in items]
    width = max(len(prompt) + sum(map(len, own)) for prompt, own in zip(prompts, choices, strict=True))
    n, most = len(items), max(len(own) for own in choices)
    ids = np.full((n, width), tokenizer.pad_token_id)
    positions = np.full((n, width), PAD_POSITION)
    mask = np.zeros((n, width, width), dtype=bool)
    mask[:, np.arange(width), np.arange(width)] = True  # padding sees itself, so that no row is empty
    reads, targets, which = [], [], []
    for k, (prompt, own) in enumerate(zip(prompts, choices, strict=True)):
        end = len(prompt)
        ids[k, :end], positions[k, :end] = prompt, np.arange(end)
        mask[k, :end, :end] = np.tri(end, dtype=bool)
        at = end
        for place, choice in enumerate(own):
            stop = at + len(choice)
            ids[k, at:stop], positions[k, at:stop] = choice, end + np.arange(len(choice))
            mask[k, at:stop, :end] = True
            mask[k, at:stop, at:stop] = np.tri(len(choice), dtype=bool)
            reads += [k * width + end - 1, *(k * width + np.arange(at, stop - 1))]
            targets += choice
            which += [k * most + place] * len(choice)
            at = stop
    return Rows(
        torch.from_numpy(ids),
        torch.from_numpy(positions),
        torch.from_numpy(mask)[:, None],
        torch.tensor(np.array(reads)),
        torch.tensor(targets),
        torch.tensor(which),
        most,
    )


def log_likelihoods(model: Any, rows: Rows) -> Any:
    """Return the log-likelihood of each choice, shape (n, n_choices); -inf where an item has fewer."""
    import torch

    hidden = _decoder(model)(input_ids=rows.ids, position_ids=rows.positions, attention_mask=rows.mask)[0]
    logits = _head(model)(hidden.flatten(0, 1)[rows.reads])
    token = torch.log_softmax(logits, -1).gather(1, rows.targets[:, None])[:, 0]
    n = len(rows.ids) * rows.n_choices
    total = torch.zeros(n).index_add(0, rows.which, token)
    there = torch.zeros(n, dtype=torch.bool).index_fill(0, rows.which, True)
    return total.masked_fill(~there, -torch.inf).view(len(rows.ids), rows.n_choices)


def _decoder(model: Any) -> Any:
    return _base(model).model


def _head(model: Any) -> Any:
    return _base(model).lm_head


def _base(model: Any) -> Any:
    """Return the causal model itself, with its adapters inside, where it is wrapped."""
    return model.get_base_model() if hasattr(model, "get_base_model") else model


class Scorer:
    """Scores models on items; the rows are made once."""

    def __init__(self, items: Sequence[Item], tokenizer: Any, *, batch: int = 100) -> None:
        length = [len(ids) for ids in tokenizer([item.prompt for item in items])["input_ids"]]
        self._order = np.argsort(length, kind="stable")
        self._parts = [
            to_rows([items[k] for k in self._order[at : at + batch]], tokenizer) for at in range(0, len(items), batch)
        ]
        self._gold = np.array([item.answer for item in items])

    def __call__(self, model: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return per item the gold choice's probability, and its log-likelihood less that of the next best."""
        import torch

        model.eval()
        with torch.inference_mode():
            parts = [log_likelihoods(model, part).numpy() for part in self._parts]
        model.train()
        most = max(part.shape[1] for part in parts)
        values = np.full((len(self._order), most), -np.inf)
        values[self._order] = np.concatenate(
            [np.pad(part, ((0, 0), (0, most - part.shape[1])), constant_values=-np.inf) for part in parts]
        )
        at = np.arange(len(values))
        gold = values[at, self._gold]
        values[at, self._gold] = -np.inf
        best = values.max(axis=1)
        others = best + np.log(np.exp(values - best[:, None]).sum(axis=1))
        return 1 / (1 + np.exp(np.clip(others - gold, -700, 700))), gold - best
