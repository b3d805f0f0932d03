"""Numbers in prose: short, with their unit, never a bare NaN; text from data on one line."""

from __future__ import annotations

from decimal import Decimal
from math import isfinite

SCHEME_NAMES = {
    "uniform": "the plain average of items",
    "task_means": "the mean of task means",
    "size_weighted": "task means weighted by task size",
    "user": "your weights",
    "averaged": "weights best on average over draws",
    "optimum": "the best weights without constraints",
    "published": "the weights under constraints",
    "by_task": "one weight a task",
    "by_family": "one weight a family",
}
SUFFIXES = ((1e9, "billion"), (1e6, "million"))


def percent(share: float | None, digits: int = 1) -> str:
    """Return a share as per cent.

    >>> percent(0.2933), percent(1.0), percent(0.0001), percent(0.9999), percent(None)
    ('29.3 %', '100 %', '< 0.1 %', '> 99.9 %', 'not known')
    """
    if share is None or not isfinite(share):
        return "not known"
    step = 10.0**-digits
    if 0 < 100 * share < step / 2:
        return f"< {step:g} %"
    if 100 - step / 2 < 100 * share < 100:
        return f"> {100 - step:g} %"
    text = f"{100 * share:.{digits}f}"
    return f"{text.rstrip('0').rstrip('.') if '.' in text else text} %"


def dollars(value: float | None) -> str:
    """Return US dollars to three significant digits.

    >>> dollars(8541.3), dollars(2.6e6), dollars(-18094.2), dollars(None)
    ('$8,540', '$2.6 million', '-$18,100', 'not known')
    >>> dollars(12.34), dollars(0.0004463), dollars(1.85e-5)
    ('$12.3', '$0.000446', '$0.0000185')
    """
    if value is None or not isfinite(value):
        return "not known"
    sign = "-" if value < 0 else ""
    for size, name in SUFFIXES:
        if abs(value) >= size:
            return f"{sign}${abs(value) / size:.3g} {name}"
    if abs(value) < 100:
        return f"{sign}${plain_digits(abs(value))}"
    return f"{sign}${float(f'{abs(value):.3g}'):,.0f}"


def plain_digits(value: float, digits: int = 3) -> str:
    """Return a number to some significant digits, without an exponent.

    >>> plain_digits(1.85e-5), plain_digits(0.25), plain_digits(82.0)
    ('0.0000185', '0.25', '82')
    """
    return format(Decimal(f"{value:.{digits}g}").normalize(), "f")


def p_value(p: float, draws: int) -> str:
    """Return a resampling p-value; the smallest that ``draws`` draws can give is written as a bound.

    >>> p_value(0.207, 10000), p_value(1 / 10001, 10000)
    ('p = 0.21', 'p < 0.0002')
    """
    if p <= 1 / (draws + 1):
        return f"p < {2 / (draws + 1):.1g}"
    return f"p = {p:.2g}"


def count(n: int, noun: str) -> str:
    """Return a number with its noun.

    >>> count(1, "item"), count(20206, "item")
    ('1 item', '20,206 items')
    """
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def first_of(shown: int, n: int, noun: str) -> str:
    """Return a sentence that says that only some are shown, nothing where all are.

    >>> first_of(30, 149, "item"), first_of(30, 12, "item")
    (' The first 30 of 149 items.', '')
    """
    return f" The first {shown} of {count(n, noun)}." if n > shown else ""


def shown(text: str) -> str:
    """Return a text with escapes for what is not printable: a line break in a name begins no line of its own.

    >>> shown("a\\n5 items left out")
    'a\\\\n5 items left out'
    """
    return text if text.isprintable() else "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)
