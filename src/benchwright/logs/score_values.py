"""Values as logs write them, told into number and status, and the directions of well-known metrics."""

from __future__ import annotations

import math
import re
from typing import Any

_NO_VALUE = {"", "nan", "+nan", "-nan", "inf", "+inf", "-inf", "infinity", "-infinity", "none", "null", "n/a", "na"}
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_LOWER = re.compile(
    r"(^|[_.-])(perplexity|ppl|bits_per_byte|bpb|brier|brier_score|loss|ece|wer|cer|ter|mse|rmse|mae|nll|error_rate"
    r"|no_answer|toxic_frac)([_.-]|$)"
)
_HIGHER = re.compile(
    r"^(quasi_|prefix_|quasi_prefix_|final_number_)?(exact_match|em)(_simple|_flex)?(@\d+)?$"
    r"|(^|_)(acc|accuracy|f1|mcc|recall|precision|pass_at_\d+)($|_)|(^|_)f1_score$|^pass@\d+$|^primary_score"
    r"|^(rouge|bleu|bertscore|ndcg|map|mrr|recall|chrf)($|[-_@]?[a-z0-9]+$)|^(maj@\d+|main_score|qem|pem|resolved)$"
)


def score_of(raw: Any) -> tuple[float | None, str]:
    """Return (number, "scored"), or None with why there is none: "unscored" or "unreadable".

    >>> score_of("0.5"), score_of(True), score_of("NaN"), score_of([1])
    ((0.5, 'scored'), (1.0, 'scored'), (None, 'unscored'), (None, 'unreadable'))
    """
    if isinstance(raw, (int, float)):
        try:
            value = float(raw)
        except OverflowError:
            return None, "unreadable"
        return (value, "scored") if math.isfinite(value) else (None, "unscored")
    if raw is None:
        return None, "unscored"
    if isinstance(raw, str):
        text = raw.strip()
        if text.lower() in _NO_VALUE:
            return None, "unscored"
        if len(text) < 400 and _NUMBER.fullmatch(text):
            return score_of(float(text))
    return None, "unreadable"


def direction(metric: str) -> bool | None:
    """Return whether more is better for a well-known metric, None where that is not certain.

    >>> direction("acc_per_char"), direction("bits_per_byte"), direction("summac")
    (True, False, None)
    """
    name = metric.lower()
    if _LOWER.search(name):
        return False
    return True if _HIGHER.search(name) else None


def text_or_none(raw: Any) -> str | None:
    """Return a text or a number as text, None for anything else; bytes that are no UTF-8 are replaced.

    >>> text_or_none(3), text_or_none(""), text_or_none({})
    ('3', None, None)
    """
    if isinstance(raw, bool) or not isinstance(raw, (str, int, float)):
        return None
    if isinstance(raw, int) and raw.bit_length() > 512:
        return None
    return str(raw).encode("utf-8", "replace").decode("utf-8") or None


def whole_or_none(raw: Any) -> int | None:
    """Return a whole number of at most 63 bits, None for anything else.

    >>> whole_or_none(3.0), whole_or_none("3"), whole_or_none(0.5)
    (3, 3, None)
    """
    value, _ = score_of(raw)
    if value is None or isinstance(raw, bool) or value != int(value) or abs(value) >= 2**53:
        return None
    return int(value)


def excerpt(raw: Any) -> str:
    """Return the start of a value for a message.

    >>> excerpt("a" * 100)
    "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa..."
    """
    try:
        shown = ascii(raw)
    except (RecursionError, ValueError):
        return "a value too deep or too long"
    return shown if len(shown) <= 40 else f"{shown[:40]}..."
