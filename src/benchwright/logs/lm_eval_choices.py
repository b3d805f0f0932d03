"""The choices of multiple-choice items in samples of lm-evaluation-harness v0.4."""

from __future__ import annotations

from math import isfinite
from typing import Any

import msgspec
import numpy as np
import polars as pl

from benchwright.logs.lm_eval_results import number


class Argument(msgspec.Struct, gc=False):
    """What the model is asked for one choice; the prompt is passed over."""

    arg_1: str


class Answer(msgspec.Struct, array_like=True, gc=False):
    """The log-likelihood of one choice; whether it was the greedy answer is passed over."""

    logprob: float


class _Argument(msgspec.Struct, gc=False):
    arg_1: Any = msgspec.UNSET


# How a record of a multiple-choice item nearly always looks; others are read field by field.
USUAL_ARGUMENTS = dict[str, Argument]
USUAL_ANSWERS = list[Answer]
_ARGUMENTS = msgspec.json.Decoder(dict[str, _Argument] | list[list[Any]])
_ANSWERS = msgspec.json.Decoder(list[Any])
_ANY = msgspec.json.Decoder()


class ChoiceBlock:
    """Collects choices until they are taken.

    ``target`` may hold the position of the right choice or its text. Where both readings are possible and differ, the
    one is taken that contradicts the logged ``acc`` less often in the block. Where ``target`` says neither and there
    are two choices, ``acc`` decides.
    """

    def __init__(self, delimiter: str) -> None:
        self.disagreements = 0
        self._delimiter = delimiter
        self._start()

    def _start(self) -> None:
        self._doc_ids: list[str] = []
        self._gold: list[int | None] = []
        self._counts: list[int] = []
        self._logprob: list[float | None] = []
        self._chars: list[int | None] = []
        self._bytes: list[int | None] = []
        self._unknown_lengths = False
        # place in the block, right choice by (position, text), most likely choice, acc
        self._open: list[tuple[int, tuple[int, int], int | None, float | None]] = []

    def add(self, doc_id: str, record: Any, acc: float | None) -> bool:
        """Add the choices of a record and return True; do nothing where it is no multiple-choice item."""
        answers, arguments, target = record.filtered_resps, record.arguments, record.target
        if answers is msgspec.UNSET:
            answers = record.resps
        if answers is msgspec.UNSET or arguments is msgspec.UNSET:
            return False
        try:
            texts, logprob = _usual(arguments, answers) if arguments.__class__ is dict else _other(arguments, answers)
            if isinstance(target, msgspec.Raw):
                target = _ANY.decode(target)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            return False
        if len(texts) < 2 or len(logprob) != len(texts):
            return False
        alike = texts.count(texts[0]) == len(texts)
        half = len(texts) // 2
        if half >= 2 and texts[0] == texts[half] and not alike and texts[:half] == texts[half:]:
            texts, logprob = texts[:half], logprob[:half]  # the second half is unconditional
        width = len(self._delimiter)
        if width and all([text.startswith(self._delimiter) for text in texts]):  # noqa: C419 (faster)
            texts = [text[width:] for text in texts]
        self._settle(target, texts, alike, _pick(logprob), acc)
        self._doc_ids.append(doc_id)
        self._counts.append(len(texts))
        self._logprob += logprob
        if alike:
            self._unknown_lengths = True
            unknown = [None] * len(texts)
            self._chars += unknown
            self._bytes += unknown
        else:
            chars = [*map(len, texts)]
            self._chars += chars
            if "".join(texts).isascii():
                self._bytes += chars
            else:
                self._bytes += [len(text.encode("utf-8", "surrogatepass")) for text in texts]
        return True

    def _settle(self, target: Any, texts: list[str], alike: bool, pick: int | None, acc: float | None) -> None:
        """Put the position of the right choice, or leave it open until the block is known."""
        by_place, by_text = _candidates(target, texts, alike)
        if by_place is not None and by_text is not None and by_place != by_text:
            self._open.append((len(self._gold), (by_place, by_text), pick, acc))
            self._gold.append(None)
            return
        gold = by_text if by_place is None else by_place
        if gold is None and pick is not None and acc in (0.0, 1.0) and len(texts) == 2:
            gold = pick if acc == 1.0 else 1 - pick
        elif _contradicts(gold, pick, acc):
            self.disagreements += 1
            gold = None
        self._gold.append(gold)

    def take(self) -> dict[str, Any] | None:
        """Return the collected choices as columns and start again; None where there are none."""
        if not self._doc_ids:
            return None
        wrong = [sum(_contradicts(read[way], pick, acc) for _, read, pick, acc in self._open) for way in (0, 1)]
        for place, read, pick, acc in self._open:
            gold = read[0 if wrong[0] <= wrong[1] else 1]
            if _contradicts(gold, pick, acc):
                self.disagreements += 1
            else:
                self._gold[place] = gold
        whole = {"logprob": pl.Float64, "chars": pl.Int64, "bytes": pl.Int64}
        flat: dict[str, Any] = {"logprob": self._logprob, "chars": self._chars, "bytes": self._bytes}
        columns = [pl.Series(name, flat[name], dtype=kind) for name, kind in whole.items()]
        columns.append(pl.Series("item", np.repeat(np.arange(len(self._counts)), self._counts)))
        lists = pl.DataFrame(columns).group_by("item", maintain_order=True).agg(pl.col(*whole))
        if self._unknown_lengths:
            known = pl.col("chars").list.drop_nulls().list.len() > 0
            lists = lists.with_columns(pl.when(known).then(pl.col("chars", "bytes")))
        taken = {"doc_id": self._doc_ids, "gold": self._gold, **{name: lists[name] for name in whole}}
        self._start()
        return taken


def _usual(arguments: dict[str, Argument], answers: list[Answer]) -> tuple[list[str], list[float | None]]:
    names = arguments if len(arguments) <= 10 else sorted(arguments, key=_argument_number)
    texts = [arguments[name].arg_1 for name in names]  # a sorted file has gen_args_10 before gen_args_2
    plain = [answer.logprob for answer in answers]
    return texts, [*plain] if isfinite(sum(plain)) else [number(entry)[0] for entry in plain]


def _other(arguments: bytes, answers: bytes) -> tuple[list[str], list[float | None]]:
    """Return texts and log-likelihoods of the choices, none where the item has no choices.

    An answer is (-1.5, false), ("-1.5", "False"), -1.5, or one of these in a list.
    """
    asked = _ARGUMENTS.decode(arguments)
    if isinstance(asked, dict):
        texts = [asked[name].arg_1 for name in sorted(asked, key=_argument_number)]
    else:
        texts = [pair[1] if len(pair) > 1 else None for pair in asked]
    if not all(isinstance(text, str) for text in texts):
        return [], []
    found = [number(_first(answer))[0] for answer in _ANSWERS.decode(answers)]
    return (texts, found) if any(entry is not None for entry in found) else ([], [])


def _argument_number(name: str) -> int:
    number_ = name.removeprefix("gen_args_")
    return int(number_) if number_.isdecimal() and len(number_) < 10 else 0


def _first(answer: Any) -> Any:
    while isinstance(answer, list) and answer:
        answer = answer[0]
    return answer


def _candidates(target: Any, texts: list[str], alike: bool) -> tuple[int | None, int | None]:
    """Return the right choice as ``target`` gives it, read as a position and read as a choice's text."""
    by_place = by_text = None
    if target.__class__ is int:
        by_place = target
    elif isinstance(target, str):
        if len(target) < 5 and target.isdecimal():
            by_place = int(target)
        if not alike and (by_place is None or target in texts):
            text = target.strip()
            same = [place for place, choice in enumerate(texts) if choice.strip() == text]
            by_text = same[0] if len(same) == 1 else None
    return (by_place if by_place is not None and 0 <= by_place < len(texts) else None), by_text


def _pick(logprob: list[Any]) -> int | None:
    """Return the most likely choice; None where it is tied or one is unknown."""
    if None in logprob:
        return None
    top = max(logprob)
    return logprob.index(top) if logprob.count(top) == 1 else None


def _contradicts(gold: int | None, pick: int | None, acc: float | None) -> bool:
    return gold is not None and pick is not None and acc in (0.0, 1.0) and (pick == gold) != (acc == 1.0)
