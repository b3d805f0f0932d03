"""What a score of an Inspect log is worth: letter grades, numbers, dictionaries, nothing at all."""

from __future__ import annotations

import math
from typing import Any

from benchwright.logs.record import text_hash

GRADES = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}  # correct, incorrect, partial, no answer
_WORDS = {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}
_NOTHING = ("", "null", "none", "nan")
_HIGHER = {"acc", "accuracy", "answer", "choice", "em", "exact", "exact_match", "f1", "includes", "match", "math"}
_HIGHER |= {"model_graded_fact", "model_graded_qa", "pattern"}
_LOWER = {"bits_per_byte", "brier", "brier_score", "cer", "error_rate", "log_loss", "loss", "mae", "mse", "nll"}
_LOWER |= {"perplexity", "rmse", "wer", "word_perplexity"}

Graded = tuple[float | None, str, str]  # value, status, why it is unreadable


def grade(value: Any) -> Graded:
    """Return what a score that is no list or dictionary is worth.

    >>> grade("P"), grade("0.75"), grade(True), grade(None)
    ((0.5, 'scored', ''), (0.75, 'scored', ''), (1.0, 'scored', ''), (None, 'unscored', ''))
    """
    if value is None:
        return None, "unscored", ""
    if isinstance(value, (bool, int, float)):
        try:
            number = float(value)
        except OverflowError:
            return None, "unreadable", "the score is a number too large to hold"
        return (number, "scored", "") if math.isfinite(number) else (None, "unscored", "")
    if isinstance(value, str):
        return _grade_text(value)
    kind = "list" if isinstance(value, list) else "dictionary inside a dictionary"
    return None, "unreadable", f"the score is a {kind}, not a number or a grade"


def _grade_text(value: str) -> Graded:
    if value in GRADES:
        return GRADES[value], "scored", ""
    word = value.strip().lower()
    if word in _WORDS:
        return _WORDS[word], "scored", ""
    if word in _NOTHING:
        return None, "unscored", ""
    try:
        number = float(word) if "_" not in word else None
    except ValueError:
        number = None
    if number is None:
        return None, "unreadable", f"the score {clean(value[:60])!r} is neither a number nor a grade (C, I, P, N)"
    return (number, "scored", "") if math.isfinite(number) else (None, "unscored", "")


def number(value: Any) -> float | None:
    """Return a finite number, None for anything else."""
    return None if isinstance(value, bool) else grade(value)[0] if isinstance(value, (int, float)) else None


def count(value: Any) -> int | None:
    """Return a whole number from 0 that fits 53 bits, None for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53 else None


def clean(value: str) -> str:
    """Return text that can be written as UTF-8: lone surrogates become question marks."""
    return value if value.isascii() else value.encode("utf-8", "replace").decode("utf-8")


def text(value: Any) -> str | None:
    """Return text or a number as text, None for anything else and for blank text."""
    if isinstance(value, str):
        return clean(value) if value.strip() else None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or abs(value) > 1e300:
        return None
    return str(value)


def known_direction(metric: str) -> bool | None:
    """Return whether more is better, where the name of the scorer or of its sub-score makes that certain."""
    name = metric.rsplit("/", 1)[-1].rsplit(".", 1)[-1].lower()
    return True if name in _HIGHER else False if name in _LOWER else None


def item_texts(content: Any, choices: Any) -> list[str]:
    """Return an item's input (text, or the texts of its messages) and choices."""
    texts = [content] if isinstance(content, str) else _message_texts(content)
    if isinstance(choices, list):
        texts += [choice for choice in choices if isinstance(choice, str)]
    return texts


def item_hash(content: Any, choices: Any) -> str | None:
    """Return the hash of an item's texts, None without any."""
    texts = item_texts(content, choices)
    return text_hash(*texts) if texts else None


def _message_texts(messages: Any) -> list[str]:
    texts: list[str] = []
    for message in messages if isinstance(messages, list) else ():
        content = message.get("content") if isinstance(message, dict) else None
        if isinstance(content, str):
            texts.append(content)
        for part in content if isinstance(content, list) else ():
            kind = part.get("type") if isinstance(part, dict) else None
            shown = part.get(kind) if isinstance(kind, str) else None  # text, or an image, sound or document
            if isinstance(shown, str):
                texts.append(shown)
    return texts
