"""Prompts with their answers as tokens, and batches of them; only the answers are predicted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchwright.tuning.failures import RunError

IntArray = NDArray[np.int64]
AT_ONCE = 4096  # texts


@dataclass(frozen=True, slots=True, eq=False)
class Encoded:
    """Tokens of a prompt and its answer; the last ``answer`` of them are the answer's."""

    ids: IntArray
    answer: int


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """B inputs padded on the right, so that no prediction sees the padding.

    Attributes
    ----------
    ids : (B, T)
    window : (first, last) places of the inputs whose predictions are needed
    row, column : (k,) input and place in the window of each prediction
    target : (k,) token that is predicted
    """

    ids: IntArray
    window: tuple[int, int]
    row: IntArray
    column: IntArray
    target: IntArray


def encode(
    tokenizer: Any, pairs: Sequence[tuple[str, str]], max_length: int, *, vocabulary: int | None = None
) -> tuple[list[Encoded], int]:
    """Return the tokens of prompts and answers, and how many prompts lost their beginning to ``max_length``.

    Spaces at the end of a prompt go to the answer, and the answer's tokens are those that the prompt alone does not
    have, as lm-eval does it.

    Raises
    ------
    RunError
        An answer has no tokens of its own, or more than fit; a token is none of the model's ``vocabulary``.
    """
    moved = []
    for prompt, answer in pairs:
        kept = prompt.rstrip()
        moved.append((kept, prompt[len(kept) :] + answer))
    wholes = _tokens(tokenizer, [prompt + answer for prompt, answer in moved])
    prompts = list(dict.fromkeys(prompt for prompt, _ in moved))
    known = dict(zip(prompts, map(len, _tokens(tokenizer, prompts)), strict=True))
    found, cut = [], 0
    for (prompt, answer), whole in zip(moved, wholes, strict=True):
        ids, start = whole, known[prompt] if prompt else 0
        if start == 0:
            ids, start = [_first(tokenizer), *whole], 1
        length = len(ids) - start
        if length < 1:
            raise RunError("data", f"the answer {answer!r} has no tokens of its own after its prompt")
        if length >= max_length:
            raise RunError(
                "data", f"an answer has {length} tokens, max_length is {max_length}", hint="raise [tuning] max_length"
            )
        if vocabulary is not None and max(ids) >= vocabulary:
            raise RunError(
                "model",
                f"the tokenizer gives token {max(ids)}, and the model has {vocabulary}: they do not go together",
            )
        cut += len(ids) > max_length
        found.append(Encoded(np.array(ids[-max_length:], dtype=np.int64), length))
    return found, cut


def collate(sequences: Sequence[Encoded]) -> Batch:
    """Return some sequences as a batch; what is alike but for the last token, which is no input, is one row.

    >>> batch = collate([Encoded(np.array([5, 6, 7, 8]), 1), Encoded(np.array([5, 9, 8]), 2)])
    >>> batch.ids.tolist(), batch.window, batch.target.tolist(), batch.column.tolist()
    ([[5, 6, 7], [5, 9, 0]], (0, 2), [8, 9, 8], [2, 0, 1])
    >>> collate([Encoded(np.array([5, 6, 7]), 1), Encoded(np.array([5, 6, 8]), 1)]).row.tolist()
    [0, 0]
    """
    places: dict[bytes, int] = {}
    which = np.array([places.setdefault(key_of(one), len(places)) for one in sequences])
    lengths = np.array([one.ids.size for one in sequences])
    answers = np.array([one.answer for one in sequences])
    ids = np.zeros((len(places), int(lengths.max()) - 1), dtype=np.int64)
    for place, one in zip(which, sequences, strict=True):
        ids[place, : one.ids.size - 1] = one.ids[:-1]
    inside = np.arange(answers.sum()) - np.repeat(np.cumsum(answers) - answers, answers)
    at = np.repeat(lengths - answers - 1, answers) + inside  # the place before a token predicts it
    first, last = int(at.min()), int(at.max())
    target = np.concatenate([one.ids[-one.answer :] for one in sequences])
    return Batch(ids, (first, last), np.repeat(which, answers), at - first, target)


def key_of(sequence: Encoded) -> bytes:
    """What tells the input of a sequence: all but its last token."""
    return sequence.ids[:-1].tobytes()


def _tokens(tokenizer: Any, texts: list[str]) -> list[list[int]]:
    """Tokens of many texts, with the special ones that the tokenizer puts in front."""
    found: list[list[int]] = []
    for start in range(0, len(texts), AT_ONCE):
        some = [text or " " for text in texts[start : start + AT_ONCE]]
        found += tokenizer(some, return_attention_mask=False)["input_ids"]
    return found


def _first(tokenizer: Any) -> int:
    """The token that stands for an empty prompt."""
    for name in ("bos_token_id", "eos_token_id"):
        if (token := getattr(tokenizer, name, None)) is not None:
            return int(token)
    raise RunError("model", "an empty prompt needs a tokenizer with a first or last token, and this one has neither")
