"""The choices of multiple-choice items in samples of lm-evaluation-harness v0.4."""

from __future__ import annotations

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
MEASURED_TOGETHER = 20_000  # texts
SPACES = "".join(chr(code) for code in range(0x3001) if chr(code).isspace())  # those that ``str.strip`` takes off


class ChoiceBlock:
    """Collects choices until they are taken.

    ``target`` may hold the position of the right choice or its text. Where both readings are possible and differ, the
    one is taken that contradicts the logged ``acc`` less often in the block. Where ``target`` says neither and there
    are two choices, ``acc`` decides.
    """

    def __init__(self, delimiter: str) -> None:
        self.disagreements = 0
        half_pair = any("\ud800" <= character <= "\udfff" for character in delimiter)  # never in a decoded text
        self._delimiter = "" if half_pair else delimiter
        self._doc_ids: list[str] = []
        self._measured: list[pl.DataFrame] = []
        self._start()

    def _start(self) -> None:
        self._counts: list[int] = []
        self._texts: list[str] = []
        self._logprob: list[float | None] = []
        self._targets: list[int | str | None] = []
        self._acc: list[float | None] = []

    def add(self, doc_id: str, record: Any, acc: float | None) -> bool:
        """Add the choices of a record and return True; do nothing where it is no multiple-choice item."""
        answers, arguments, target = record.filtered_resps, record.arguments, record.target
        if answers is msgspec.UNSET:
            answers = record.resps
        if answers is msgspec.UNSET or arguments is msgspec.UNSET:
            return False
        try:
            texts, logprob = _usual(arguments, answers) if arguments.__class__ is dict else _other(arguments, answers)
            if target.__class__ is msgspec.Raw:
                target = _ANY.decode(target)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            return False
        count = len(texts)
        if count < 2 or len(logprob) != count:
            return False
        half = count // 2
        if half >= 2 and texts[0] == texts[half] and texts[:half] == texts[half:] and texts.count(texts[0]) < count:
            texts, logprob, count = texts[:half], logprob[:half], half  # the second half is unconditional
        self._doc_ids.append(doc_id)
        self._counts.append(count)
        self._texts += texts
        self._logprob += logprob
        self._targets.append(target if target.__class__ is str or target.__class__ is int else None)
        self._acc.append(acc)
        if len(self._texts) >= MEASURED_TOGETHER:
            self._measure()
        return True

    def _measure(self) -> None:
        """Put lengths, right and most likely choices of the items since the last call; forget their texts."""
        counts = np.array(self._counts)
        starts = np.cumsum(counts) - counts
        item = np.repeat(np.arange(len(counts)), counts)
        nth = np.arange(len(item)) - starts[item]

        def the_one(flags: Any) -> Any:
            """Return the only choice of each item that has the flag; -1 where none or several have it."""
            return np.where(np.add.reduceat(flags, starts, dtype=int) == 1, np.add.reduceat(flags * nth, starts), -1)

        text = pl.Series(self._texts, dtype=pl.String)
        again = (text == text.shift(1)).fill_null(value=False).to_numpy()
        alike = np.logical_and.reduceat(again | (nth == 0), starts)
        delimited = np.logical_and.reduceat(text.str.starts_with(self._delimiter).to_numpy(), starts)
        if delimited.all():
            text = text.str.strip_prefix(self._delimiter)
        elif delimited.any():
            text = text.str.strip_prefix(self._delimiter).zip_with(pl.Series(delimited[item]), text)

        places = {target: _place(target) for target in set(self._targets)}
        place = np.array([places[target] for target in self._targets])
        words = [target if target.__class__ is str else None for target in self._targets]
        target = pl.Series(words, dtype=pl.String).gather(item)
        exact = (text == target).fill_null(value=False).to_numpy()
        named = ~alike & ((place < 0) | np.logical_or.reduceat(exact, starts))
        if named.any():
            same = (text.str.strip_chars(SPACES) == target.str.strip_chars(SPACES)).fill_null(value=False)
            by_text = np.where(named, the_one(same.to_numpy()), -1)
        else:
            by_text = np.full(len(counts), -1)
        logprob = np.array(self._logprob, dtype=float)
        logprob[~np.isfinite(logprob)] = np.nan

        flat = {"item": item, "logprob": logprob, "chars": text.str.len_chars(), "bytes": text.str.len_bytes()}
        lists = (
            pl.DataFrame(flat, schema_overrides={"chars": pl.Int64, "bytes": pl.Int64}, nan_to_null=True)
            .with_columns(pl.col("item").set_sorted())
            .group_by("item", maintain_order=True)
            .agg("logprob", "chars", "bytes")
        )
        known = pl.when(pl.Series(~alike)).then(pl.col("chars", "bytes"))
        of_item = {
            "place": np.where(place < counts, place, -1),
            "text": by_text,
            "pick": the_one(logprob == np.maximum.reduceat(logprob, starts)[item]),
            "acc": np.array(self._acc, dtype=float),
            "count": counts,
        }
        self._measured.append(pl.DataFrame(of_item).with_columns(lists.select("logprob", known)))
        self._start()

    def take(self) -> dict[str, Any] | None:
        """Return the collected choices as columns and start again; None where there are none."""
        if not self._doc_ids:
            return None
        if self._counts:
            self._measure()
        items = pl.concat(self._measured)
        place, text, pick, acc, count = (items[name].to_numpy() for name in ("place", "text", "pick", "acc", "count"))
        judged = (pick >= 0) & ((acc == 0) | (acc == 1))

        def contradicts(gold: Any) -> Any:
            return judged & (gold >= 0) & ((pick == gold) != (acc == 1))

        differ = (place >= 0) & (text >= 0) & (place != text)
        by_text = np.sum(differ & contradicts(text)) < np.sum(differ & contradicts(place))
        gold = np.where((place < 0) | (differ & by_text), text, place)
        wrong = contradicts(gold)
        self.disagreements += int(np.sum(wrong))
        gold = np.where(judged & (gold < 0) & (count == 2), np.where(acc == 1, pick, 1 - pick), gold)
        golds = pl.Series(np.where(wrong, -1, gold))
        taken = {
            "doc_id": self._doc_ids,
            "gold": golds.set(golds < 0, None),
            **items["logprob", "chars", "bytes"].to_dict(),
        }
        self._doc_ids, self._measured = [], []
        return taken


def _usual(arguments: dict[str, Argument], answers: list[Answer]) -> tuple[list[str], list[float | None]]:
    if len(arguments) > 10:  # a sorted file has gen_args_10 before gen_args_2
        arguments = {name: arguments[name] for name in sorted(arguments, key=_argument_number)}
    return [argument.arg_1 for argument in arguments.values()], [answer.logprob for answer in answers]


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


def _place(target: Any) -> int:
    """Return ``target`` read as a position; -1 where it is none."""
    if isinstance(target, str):
        return int(target) if len(target) < 5 and target.isdecimal() else -1
    return target if isinstance(target, int) and 0 <= target < 2**31 else -1
