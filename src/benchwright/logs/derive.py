r"""Scores that follow from the log-likelihoods of an item's choices.

For choices :math:`c` of one item with log-likelihood :math:`\ell_c`, gold choice :math:`g`, and length
:math:`n_c` in characters, bytes or tokens:

* ``acc`` is 1 if :math:`\arg\max_c \ell_c = g`, else 0; of tied choices the first counts, as ``numpy.argmax`` does;
* ``acc_norm``, ``acc_bytes`` and ``acc_tokens`` are the same for :math:`\ell_c / n_c` in characters, bytes, tokens;
* ``p_gold`` is :math:`e^{\ell_g} / \sum_c e^{\ell_c}`; ``p_gold_char``, ``p_gold_byte`` and ``p_gold_token`` are the
  same for :math:`\ell_c / n_c`;
* ``margin`` is the log-odds of gold to the runner-up, :math:`\ell_g - \max_{c \ne g} \ell_c`; ``margin_char`` the
  same for :math:`\ell_c / n_c` in characters;
* ``ratio_char`` is :math:`(\ell_g / n_g) / \max_{c \ne g} (\ell_c / n_c)`: 1 is a tie, below 1 gold wins;
* ``acc_chance`` is ``acc`` corrected for chance, :math:`(k a - 1) / (k - 1)` with :math:`k` choices.

A score that is undefined is NaN, never 0: no gold choice, one choice only, a log-likelihood or length that is unknown.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from benchwright.errors import UsageError

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
LENGTHS = (
    ("chars", "acc_norm", "p_gold_char"),
    ("bytes", "acc_bytes", "p_gold_byte"),
    ("tokens", "acc_tokens", "p_gold_token"),
)


def choice_scores(
    logprob: ArrayLike,
    count: ArrayLike,
    gold: ArrayLike,
    *,
    chars: ArrayLike | None = None,
    bytes_: ArrayLike | None = None,
    tokens: ArrayLike | None = None,
) -> dict[str, FloatArray]:
    """Return every score of the module for a block of items with their choices one after the other.

    Parameters
    ----------
    logprob
        Log-likelihoods in nats, shape (choices,): those of the first item, then of the second, and so on.
    count
        How many choices each item has, shape (items,).
    gold
        Position of the right choice inside its item, from 0, shape (items,); NaN or out of range where unknown.
    chars, bytes_, tokens
        Lengths of the choices, shape (choices,), NaN where unknown; the scores that need them are NaN without.

    Returns
    -------
    dict
        An array of shape (items,) by score name.

    Raises
    ------
    UsageError
        The shapes do not fit together.

    Examples
    --------
    >>> scores = choice_scores([-3.6, -4.4], [2], [0], chars=[3, 4], bytes_=[6, 4])
    >>> [float(scores[name][0]) for name in ("acc", "acc_norm", "acc_bytes", "acc_chance")]
    [1.0, 0.0, 1.0, 1.0]
    """
    total = _floats("logprob", logprob)
    counts = _floats("count", count).astype(np.int64)
    golds = _floats("gold", gold)
    if counts.shape != golds.shape or (counts < 0).any() or counts.sum() != total.size:
        raise UsageError(
            f"`count` must give the choices of each item, adding up to {total.size}, one `gold` each; "
            f"got {counts.size} counts adding up to {counts.sum()}, and {golds.size} golds"
        )
    known = np.isfinite(golds) & (golds >= 0) & (golds < counts) & (counts > 1)
    gold_at = np.where(known, golds, 0).astype(np.int64)
    block = _Block(counts, gold_at, known)
    scores = {
        "acc": block.right(total),
        "p_gold": block.probability(total),
        "margin": block.margin(total),
    }
    for (name, acc, probability), given in zip(LENGTHS, (chars, bytes_, tokens), strict=True):
        if given is None:
            scores[acc] = scores[probability] = np.full(counts.size, np.nan)
            continue
        length = _floats(name, given)
        if length.shape != total.shape:
            raise UsageError(f"`{name}` must have {total.size} entries, one a choice, got {length.size}")
        scaled = per_length(total, length)
        scores[acc] = block.right(scaled)
        scores[probability] = block.probability(scaled)
        if name == "chars":
            scores["margin_char"] = block.margin(scaled)
            scores["ratio_char"] = block.ratio(scaled)
    for name in ("margin_char", "ratio_char"):
        scores.setdefault(name, np.full(counts.size, np.nan))
    scores["acc_chance"] = chance_corrected(scores["acc"], counts)
    return scores


def per_length(logprob: ArrayLike, length: ArrayLike) -> FloatArray:
    """Return log-likelihoods per unit of length, NaN where the length is unknown or 0."""
    total, units = np.asarray(logprob, dtype=np.float64), np.asarray(length, dtype=np.float64)
    scaled: FloatArray = np.divide(total, units, out=np.full(total.shape, np.nan), where=units > 0)
    return scaled


def chance_corrected(score: ArrayLike, choices: ArrayLike) -> FloatArray:
    """Return (k s - 1) / (k - 1) for scores s of items or tasks with k choices: 0 is guessing, 1 is all right.

    0 choices (free answers) leave the score as it is; with one choice nothing is left to correct: NaN.

    >>> chance_corrected([0.45, 1 / 3, 0.12], [2, 3, 0]).round(6).tolist()
    [-0.1, 0.0, 0.12]
    """
    s, k = np.broadcast_arrays(np.asarray(score, dtype=np.float64), np.asarray(choices, dtype=np.float64))
    corrected = np.divide(k * s - 1.0, k - 1.0, out=np.full(s.shape, np.nan), where=k > 1)
    return np.where(k == 0, s, corrected)


class _Block:
    """Items with their choices one after the other; scores that are undefined come out as NaN."""

    def __init__(self, counts: IntArray, gold: IntArray, known: NDArray[np.bool_]) -> None:
        self._items, self._known = counts.size, known
        self._filled = np.flatnonzero(counts)  # reduceat needs items with a choice
        self._counts = counts[self._filled]
        self._starts = np.concatenate(([0], np.cumsum(self._counts)[:-1])).astype(np.int64)
        self._gold = self._starts + gold[self._filled]

    def right(self, value: FloatArray) -> FloatArray:
        """1 where the first of the largest values is the gold choice's."""
        if not self._filled.size:
            return np.full(self._items, np.nan)
        top = self._top(value)
        places = np.where(value == np.repeat(top, self._counts), np.arange(value.size), value.size)
        first = np.minimum.reduceat(places, self._starts)
        return self._whole((first == self._gold).astype(np.float64), defined=~np.isnan(top) & (top > -np.inf))

    def probability(self, value: FloatArray) -> FloatArray:
        """Softmax over the choices of an item, at its gold choice."""
        if not self._filled.size:
            return np.full(self._items, np.nan)
        top = self._top(value)
        shift = np.where(np.isfinite(top), top, 0.0)
        with np.errstate(over="ignore"):
            weight = np.exp(value - np.repeat(shift, self._counts))
        share = weight[self._gold] / np.where(np.isfinite(top), np.add.reduceat(weight, self._starts), 1.0)
        return self._whole(share, defined=np.isfinite(top))

    def margin(self, value: FloatArray) -> FloatArray:
        """Value of the gold choice less that of the runner-up."""
        gold, other, defined = self._pair(value)
        return self._whole(np.subtract(gold, other, out=np.full(gold.shape, np.nan), where=defined), defined=defined)

    def ratio(self, value: FloatArray) -> FloatArray:
        """Value of the gold choice over that of the runner-up."""
        gold, other, defined = self._pair(value)
        defined = defined & (other != 0)
        return self._whole(np.divide(gold, other, out=np.full(gold.shape, np.nan), where=defined), defined=defined)

    def _pair(self, value: FloatArray) -> tuple[FloatArray, FloatArray, NDArray[np.bool_]]:
        if not self._filled.size:
            return np.empty(0), np.empty(0), np.empty(0, dtype=np.bool_)
        rest = value.copy()
        rest[self._gold] = -np.inf
        gold, other = value[self._gold], np.maximum.reduceat(rest, self._starts)
        return gold, other, np.isfinite(gold) & np.isfinite(other)

    def _top(self, value: FloatArray) -> Any:
        return np.maximum.reduceat(value, self._starts)  # NaN where a choice of the item is

    def _whole(self, score: FloatArray, *, defined: NDArray[np.bool_]) -> FloatArray:
        whole = np.full(self._items, np.nan)
        whole[self._filled] = np.where(defined, score, np.nan)
        return np.where(self._known, whole, np.nan)


def _floats(name: str, value: ArrayLike) -> FloatArray:
    array = np.asarray(value, dtype=np.float64)
    if array.ndim != 1:
        raise UsageError(f"`{name}` must have 1 dimension, got {array.ndim}")
    return array
