"""Scores from the log-likelihoods of choices, against a plain loop."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchwright.errors import UsageError
from benchwright.logs.derive import chance_corrected, choice_scores, per_length


def plain_scores(logprob: list[float], gold: int | None, chars: list[int], sizes: list[int]) -> dict[str, float]:
    """The formulas for one item, one choice after the other, as ``math`` and ``max`` do them."""
    names = (
        "acc",
        "acc_norm",
        "acc_bytes",
        "acc_chance",
        "p_gold",
        "p_gold_char",
        "margin",
        "margin_char",
        "ratio_char",
    )
    if gold is None or not 0 <= gold < len(logprob) or len(logprob) < 2:
        return dict.fromkeys(names, math.nan)

    def right(values: list[float]) -> float:
        return float(max(range(len(values)), key=values.__getitem__) == gold)  # max keeps the first of ties

    def share(values: list[float]) -> float:
        return 1 / sum(math.exp(min(value - values[gold], 700.0)) for value in values)

    def runner_up(values: list[float]) -> float:
        return max(value for place, value in enumerate(values) if place != gold)

    by_char = [value / length for value, length in zip(logprob, chars, strict=True)]
    by_byte = [value / length for value, length in zip(logprob, sizes, strict=True)]
    acc, k = right(logprob), len(logprob)
    return {
        "acc": acc,
        "acc_norm": right(by_char),
        "acc_bytes": right(by_byte),
        "p_gold": share(logprob),
        "p_gold_char": share(by_char),
        "margin": logprob[gold] - runner_up(logprob),
        "margin_char": by_char[gold] - runner_up(by_char),
        "ratio_char": by_char[gold] / runner_up(by_char) if runner_up(by_char) else math.nan,
        "acc_chance": (acc - 1 / k) / (1 - 1 / k),
    }


choice = st.tuples(st.sampled_from([-0.5, -1.0, -3.0, -3.25, -40.0, -700.0]), st.integers(1, 9), st.integers(1, 20))
item = st.tuples(st.lists(choice, max_size=6), st.one_of(st.none(), st.integers(-1, 6)))


@given(st.lists(item, max_size=8))
def test_a_ragged_block_equals_the_plain_loop(items: list[tuple[list[tuple[float, int, int]], int | None]]) -> None:
    flat = [entry for choices, _ in items for entry in choices]
    logprob, chars, sizes = (np.array([entry[i] for entry in flat], dtype=float) for i in range(3))
    counts = np.array([len(choices) for choices, _ in items], dtype=int)
    gold = np.array([np.nan if place is None else place for _, place in items], dtype=float)
    found = choice_scores(logprob, counts, gold, chars=chars, bytes_=sizes)
    for place, (choices, right) in enumerate(items):
        expected = plain_scores([c[0] for c in choices], right, [c[1] for c in choices], [c[2] for c in choices])
        for name, value in expected.items():
            np.testing.assert_allclose(found[name][place], value, rtol=1e-9, atol=1e-300, err_msg=name)
        assert np.isnan(found["p_gold_token"][place])


def test_case_c02_characters_and_bytes_disagree(shared: Path) -> None:
    case = json.loads((shared / "cases" / "C02" / "char_vs_byte.json").read_text(encoding="utf-8"))
    chars = [len(text) for text in case["choices"]]
    sizes = [len(text.encode()) for text in case["choices"]]
    found = choice_scores(case["loglikelihoods"], [2], [case["gold"]], chars=chars, bytes_=sizes)
    assert (found["acc"][0], found["acc_norm"][0], found["acc_bytes"][0]) == (1.0, 0.0, 1.0)


def test_ties_fall_to_the_first_choice_as_argmax_does() -> None:
    found = choice_scores([-1.0, -1.0, -1.0, -1.0], [2, 2], [0, 1])
    assert found["acc"].tolist() == [1.0, 0.0]
    assert found["p_gold"].tolist() == [0.5, 0.5]
    assert found["margin"].tolist() == [0.0, 0.0]


def test_what_is_unknown_is_nan_and_touches_no_other_item() -> None:
    logprob = [-1.0, np.nan, -1.0, -2.0, -np.inf, -np.inf, -1.0, -np.inf]
    found = choice_scores(logprob, [2, 2, 2, 2], [0, 0, 0, 0], chars=[1, 1, 0, 1, 1, 1, 1, 1])
    np.testing.assert_array_equal(found["acc"], [np.nan, 1.0, np.nan, 1.0])
    np.testing.assert_array_equal(found["acc_norm"], [np.nan, np.nan, np.nan, 1.0])
    np.testing.assert_allclose(found["p_gold"], [np.nan, 1 / (1 + math.exp(-1)), np.nan, 1.0])
    np.testing.assert_array_equal(found["margin"], [np.nan, 1.0, np.nan, np.nan])


def test_chance_correction_of_case_c21() -> None:
    corrected = 100 * chance_corrected([0.45, 0.60, 1 / 3, 0.12], [2, 5, 3, 0])
    np.testing.assert_allclose(corrected, [-10.0, 50.0, 0.0, 12.0], atol=1e-12)
    assert corrected[2] == 0.0
    assert 100 * np.mean(corrected[:3].clip(0)) / 100 == pytest.approx(16.666667, abs=1e-6)
    assert np.mean(corrected[:3]) == pytest.approx(13.333333, abs=1e-6)
    assert 100 * chance_corrected(0.3297, 4) == pytest.approx(10.626667, abs=1e-6)
    assert np.isnan(chance_corrected(1.0, 1))


def test_shapes_are_checked() -> None:
    with pytest.raises(UsageError, match="`count` must give the choices of each item"):
        choice_scores([-1.0, -2.0], [3], [0])
    with pytest.raises(UsageError, match="`chars` must have 2 entries"):
        choice_scores([-1.0, -2.0], [2], [0], chars=[1])
    with pytest.raises(UsageError, match="`logprob` must have 1 dimension"):
        choice_scores([[-1.0]], [1], [0])
    assert choice_scores([], [], [])["acc"].size == 0
    assert np.isnan(per_length([-1.0], [0])).all()
