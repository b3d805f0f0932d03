"""Weights and schemes over draws: against plain loops over all draws, verdicts, invariances, bad input."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchwright._check import FloatArray
from benchwright.errors import UsageError
from benchwright.estimating._resampling import tail_count
from benchwright.mechanism import _uncertainty as kernel
from benchwright.mechanism.aggregation import ItemAggregation, evaluate_scheme, optimal_weights
from benchwright.mechanism.constraints import Constraints
from benchwright.mechanism.results import shares_of
from benchwright.mechanism.uncertainty import (
    AS_GOOD,
    ITSELF,
    OPEN,
    RIGHT,
    UNDEFINED,
    UNSETTLED,
    WORSE,
    WRONG,
    WeightUncertainty,
    weight_uncertainty,
)

relaxed = settings(deadline=None, max_examples=15)
seeds = st.integers(0, 2**32 - 1)
CLOSE: dict[str, Any] = {"rtol": 1e-7, "atol": 1e-10}
DRAWS = 79  # with level 0.9: the 4th from either end


def game(A: FloatArray, w: FloatArray, d: FloatArray, r: float = 1.0) -> ItemAggregation:
    return ItemAggregation(A, w, risk_aversion=r, noise_variance=d)


def random_games(seed: int, m: int = 7, spread: float = 0.5) -> tuple[ItemAggregation, list[ItemAggregation]]:
    """A game and ``DRAWS`` neighbours of it."""
    rng = np.random.default_rng(seed)
    A, w, d = rng.normal(1, 1, (m, 2)), rng.normal(0.5, 1, m), rng.uniform(0.5, 3, m)
    near = [
        game(A + spread * rng.normal(size=A.shape), w + spread * rng.normal(size=m), d * rng.lognormal(0, 0.3, m))
        for _ in range(DRAWS)
    ]
    return game(A, w, d), near


def found(model: ItemAggregation, draws: list[ItemAggregation], **options: Any) -> WeightUncertainty:
    given = {"replicates": len(draws), "level": 0.9, "top": 3} | options
    return weight_uncertainty(model, draws, **given)


@relaxed
@given(seed=seeds)
def test_statements_on_items_are_those_of_a_plain_loop(seed: int) -> None:
    model, draws = random_games(seed)
    rule = Constraints()
    result = found(model, draws, constraints={"published": rule}).spreads
    for name, asked in (("optimum", None), ("published", rule)):
        point = optimal_weights(model, asked).weights
        drawn = np.array([optimal_weights(one, asked).weights for one in draws])
        spread, ordered = result[name], np.sort(drawn, axis=0)
        np.testing.assert_allclose(spread.weights, point, **CLOSE)
        np.testing.assert_allclose((spread.lo, spread.hi), (ordered[3], ordered[-4]), **CLOSE)
        shares = np.array([shares_of(one) for one in drawn])
        helped = ~np.isnan(shares).any(axis=1)
        ordered, k = np.sort(shares[helped], axis=0), tail_count(int(helped.sum()), 0.9)
        if k:
            np.testing.assert_allclose((spread.share_lo, spread.share_hi), (ordered[k - 1], ordered[-k]), **CLOSE)
        assert spread.idle == pytest.approx(1 - helped.mean())
        np.testing.assert_allclose(spread.positive, (drawn > 0).mean(axis=0))
        np.testing.assert_allclose(spread.kept, (drawn != 0).mean(axis=0))
        np.testing.assert_allclose(spread.heavy, (shares > 1 / 7).mean(axis=0))
        top = min(3, int((point > 0).sum()))
        assert spread.top == top
        firsts = [{i for i in np.argsort(-one)[:top] if one[i] > 0} for one in (point, *drawn)]
        if top:
            overlap = np.mean([len(firsts[0] & one) / top for one in firsts[1:]])
            assert spread.top_overlap == pytest.approx(overlap)
            np.testing.assert_allclose(spread.in_top, [np.mean([i in one for one in firsts[1:]]) for i in range(7)])
        gone = [set(np.flatnonzero(one == 0)) for one in (point, *drawn)]
        both = [len(gone[0] & one) / len(gone[0] | one) for one in gone[1:] if gone[0] | one]
        assert spread.dropped_overlap == pytest.approx(np.mean(both) if both else np.nan, nan_ok=True)


@pytest.mark.slow
@relaxed
@given(seed=seeds)
def test_statements_on_schemes_are_those_of_a_plain_loop(seed: int) -> None:
    model, draws = random_games(seed)
    uniform = np.ones(7)
    result = found(model, draws, schemes={"uniform": uniform}, risk_aversions=[0.0, 10.0])
    v = optimal_weights(model).weights
    for r in (1.0, 0.0, 10.0):
        at = [one.with_risk_aversion(r) for one in draws]
        efficiency = {
            name: np.array([evaluate_scheme(one, u).efficiency for one in at])
            for name, u in (("uniform", uniform), ("optimum", v))
        }
        gap = np.sort(efficiency["uniform"] - efficiency["optimum"])
        scheme, ordered = result.scheme("uniform", r), np.sort(efficiency["uniform"])
        assert scheme.efficiency == pytest.approx(
            evaluate_scheme(model.with_risk_aversion(r), uniform).efficiency, abs=1e-9
        )
        close = {"abs": 1e-9, "rel": 1e-9}
        assert (scheme.efficiency_lo, scheme.efficiency_hi) == pytest.approx((ordered[3], ordered[-4]), **close)
        assert scheme.efficiency_median == pytest.approx(np.median(ordered), **close)
        assert (scheme.difference_lo, scheme.difference_hi) == pytest.approx((gap[3], gap[-4]), **close)
        aligned = np.array([evaluate_scheme(one, uniform).alignment > 0 for one in draws])
        assert scheme.as_good == np.mean(aligned & (efficiency["uniform"] - efficiency["optimum"] >= -1e-9))
        assert scheme.aligned == aligned.mean()
        assert scheme.standing != AS_GOOD or scheme.sign == RIGHT
        assert result.scheme("optimum", r).standing == ITSELF


@relaxed
@given(seed=seeds)
def test_a_wider_level_gives_wider_intervals(seed: int) -> None:
    model, draws = random_games(seed)
    schemes = {"uniform": np.ones(7)}
    narrow, wide = (found(model, draws, schemes=schemes, level=level) for level in (0.6, 0.95))
    for name in ("optimum",):
        assert (wide.spreads[name].lo <= narrow.spreads[name].lo).all()
        assert (wide.spreads[name].hi >= narrow.spreads[name].hi).all()
    one, other = narrow.scheme("uniform"), wide.scheme("uniform")
    assert other.efficiency_lo <= one.efficiency_lo <= one.efficiency_hi <= other.efficiency_hi
    if one.sign == UNSETTLED:
        assert other.sign == UNSETTLED


@relaxed
@given(seed=seeds, cents=st.sampled_from([100.0, 1e-3]))
def test_units_of_money_change_no_interval(seed: int, cents: float) -> None:
    model, draws = random_games(seed)

    def priced(one: ItemAggregation) -> ItemAggregation:
        return ItemAggregation(
            one.technology / cents,
            one.welfare,
            risk_aversion=1.0,
            noise_variance=one.noise_variance,
            curvature=1 / cents**2,
        )

    schemes = {"uniform": np.ones(7)}
    before = found(model, draws, schemes=schemes)
    after = found(priced(model), [priced(one) for one in draws], schemes=schemes)
    for name in ("lo", "hi", "share_lo", "share_hi", "positive", "in_top"):
        old, new = (getattr(one.spreads["optimum"], name) for one in (before, after))
        np.testing.assert_allclose(new, old, rtol=1e-7, atol=1e-9)
    assert after.scheme("uniform").verdict == before.scheme("uniform").verdict


def test_the_order_and_chunks_of_draws_play_no_role() -> None:
    model, draws = random_games(3)
    one, other = (found(model, order) for order in (draws, draws[::-1]))
    np.testing.assert_array_equal(one.spreads["optimum"].lo, other.spreads["optimum"].lo)
    np.testing.assert_array_equal(one.spreads["optimum"].share_hi, other.spreads["optimum"].share_hi)
    tails = kernel.Tails(5, 4)
    values = np.random.default_rng(1).normal(size=(5, 97))
    values[2, ::3] = np.nan
    for chunk in np.array_split(values, 13, axis=1):
        tails.add(chunk)
    known = [np.sort(row[~np.isnan(row)]) for row in values]
    np.testing.assert_array_equal(tails.ends()[0], [row[3] for row in known])
    np.testing.assert_array_equal(tails.ends()[1], [row[-4] for row in known])


def helps(by: float) -> Iterator[ItemAggregation]:
    """Twin items of unequal noise; welfare about ``by`` with spread 1."""
    rng = np.random.default_rng(0)
    while True:
        yield game(np.ones((2, 1)), np.full(2, by + rng.normal()), np.array([1.0, 1.0]))


@pytest.mark.parametrize(("by", "sign"), [(9.0, RIGHT), (-9.0, WRONG), (0.3, UNSETTLED)])
def test_the_sign_is_settled_where_draws_agree(by: float, sign: str) -> None:
    model = game(np.ones((2, 1)), np.full(2, by), np.ones(2))
    result = weight_uncertainty(model, helps(by), schemes={"uniform": [1, 1]}, replicates=199)
    scheme = result.scheme("uniform")
    assert scheme.sign == sign
    if sign == UNSETTLED:
        assert 0.025 < scheme.aligned < 0.975
    assert (sign == WRONG) == (scheme.aligned < 0.025)


@pytest.mark.parametrize(
    ("scheme", "standing"), [([1.0, 1.0], AS_GOOD), ([1.0, 0.98], AS_GOOD), ([1.0, 0.0], WORSE), ([1.0, 0.8], WORSE)]
)
def test_a_scheme_is_as_good_or_worse_where_draws_agree(scheme: list[float], standing: str) -> None:
    rng = np.random.default_rng(0)
    model = game(np.ones((2, 1)), np.full(2, 2.0), np.full(2, 9.0))
    draws = (game(np.ones((2, 1)), np.full(2, 2.0 + 0.1 * rng.normal()), np.full(2, 9.0)) for _ in range(99))
    result = weight_uncertainty(model, draws, schemes={"mine": scheme}, replicates=99, margin=0.005)
    assert result.scheme("mine").standing == standing


def test_whether_a_scheme_is_as_good_may_stay_open() -> None:
    rng = np.random.default_rng(0)
    model = game(np.ones((2, 1)), np.ones(2), np.ones(2))
    draws = (game(np.ones((2, 1)), np.ones(2), rng.lognormal(0, 2, 2)) for _ in range(199))
    result = weight_uncertainty(model, draws, schemes={"first": [3.0, 1.0]}, replicates=199)
    assert result.scheme("first").standing == OPEN
    assert 0.1 < result.scheme("first").as_good < 0.9


def test_where_no_incentive_has_value_nothing_is_judged() -> None:
    model = game(np.ones((2, 1)), np.array([1.0, -1.0]), np.ones(2))
    result = weight_uncertainty(model, itertools.repeat(model), schemes={"uniform": [1, 1]}, replicates=39)
    scheme = result.scheme("uniform")
    assert (scheme.verdict, scheme.standing) == (UNDEFINED, UNDEFINED)
    assert np.isnan([scheme.efficiency_lo, scheme.difference_hi, scheme.as_good]).all()
    spread = result.spreads["optimum"]
    assert spread.idle == 1
    assert np.isnan(spread.share_lo).all()
    assert not spread.in_top.any()


def either_way(part: float, n: int = 399) -> list[ItemAggregation]:
    """Games of three items, of which a part makes every score harmful."""
    rng = np.random.default_rng(0)
    A = np.array([[1.0], [2.0], [1.5]])
    signs = rng.permutation(np.where(np.arange(n) < round(part * n), -1.0, 1.0))
    return [game(A, sign * np.abs(rng.normal(1, 0.5, 3)), rng.lognormal(0, 0.5, 3)) for sign in signs]


@pytest.mark.parametrize("part", [0.5, 0.9, 0.97])
def test_share_intervals_are_over_the_draws_that_have_shares(part: float) -> None:
    draws, rule = either_way(part), Constraints()
    model = game(np.array([[1.0], [2.0], [1.5]]), np.ones(3), np.ones(3))
    spread = weight_uncertainty(model, draws, constraints={"board": rule}, replicates=399).spreads["board"]
    shares = np.array([optimal_weights(one, rule).shares for one in draws])
    shares = np.sort(shares[~np.isnan(shares).any(axis=1)], axis=0)
    k = tail_count(len(shares), 0.95)
    assert spread.idle == pytest.approx(1 - len(shares) / 399)
    if k == 0:
        assert np.isnan([spread.share_lo, spread.share_hi]).all()
    else:
        np.testing.assert_allclose((spread.share_lo, spread.share_hi), (shares[k - 1], shares[-k]), **CLOSE)
        assert (spread.share_lo < spread.share_hi).all()


def test_a_draw_without_value_is_left_out_of_intervals_and_counts_against_the_sign() -> None:
    A, one = np.array([[1.0], [2.0], [1.5]]), np.ones(3)
    rng = np.random.default_rng(1)
    draws = [game(A, np.abs(rng.normal(1, 0.2, 3)), one) for _ in range(398)]
    found = weight_uncertainty(
        game(A, one, one), [*draws, game(A, 0 * one, one)], schemes={"uniform": one}, replicates=399
    )
    scheme = found.scheme("uniform")
    efficiency = np.sort([evaluate_scheme(each, one).efficiency for each in draws])
    assert (scheme.efficiency_lo, scheme.efficiency_hi) == pytest.approx((efficiency[8], efficiency[-9]))
    assert scheme.aligned == 398 / 399
    assert scheme.verdict == f"{RIGHT}; {AS_GOOD}"
    for valued, standing in ((385, WORSE), (30, OPEN)):  # of 399: too few for the sign, for an interval as well
        few = [*draws[:valued], *[game(A, 0 * one, one)] * (399 - valued)]
        scheme = weight_uncertainty(game(A, one, one), few, schemes={"uniform": one}, replicates=399).scheme("uniform")
        assert (scheme.sign, scheme.standing) == (UNSETTLED, standing)
        assert np.isnan(scheme.efficiency_lo) == (valued == 30)


def test_a_scheme_that_lowers_welfare_in_every_draw_is_not_as_good() -> None:
    model = game(np.array([[1.0], [2.0], [1.5]]), np.ones(3), np.ones(3))
    found = weight_uncertainty(model, either_way(1.0), schemes={"uniform": np.ones(3)}, replicates=399)
    scheme = found.scheme("uniform")
    assert (scheme.sign, scheme.standing, scheme.as_good) == (WRONG, OPEN, 0.0)


def test_items_that_are_alike_are_neither_heavy_nor_chosen_by_place() -> None:
    rng = np.random.default_rng(0)
    for m in (7, 49, 149):
        A = np.full((m, 1), 0.37)
        draws = [game(A, np.full(m, 1.3 * s), np.full(m, 0.7 * t)) for s, t in rng.lognormal(0, 0.3, (39, 2))]
        model = game(A, np.full(m, 1.3), np.full(m, 0.7))
        found = weight_uncertainty(model, draws, constraints={"board": Constraints()}, replicates=39, top=5)
        for spread in found.spreads.values():
            assert not spread.heavy.any()
            np.testing.assert_allclose(spread.in_top, 5 / m)
            assert spread.top_overlap == pytest.approx(1)


def test_ties_for_the_last_places_share_them() -> None:
    weights = np.array([1.0, 3.0, 1.0 + 1e-13, 0.0, 1.0, -2.0])
    np.testing.assert_allclose(kernel.among_heaviest(weights, 2), [1 / 3, 1, 1 / 3, 0, 1 / 3, 0])
    np.testing.assert_allclose(kernel.among_heaviest(weights, 4), [1, 1, 1, 0, 1, 0])
    np.testing.assert_allclose(kernel.among_heaviest(weights, 6), [1, 1, 1, 0, 1, 0])
    codes = np.repeat(np.arange(6), 10)
    rng = np.random.default_rng(0)

    def stepped() -> ItemAggregation:
        A = (np.arange(6.0, 0, -1) * rng.uniform(0.97, 1.03, 6))[codes][:, None]
        return game(A, np.ones(60), np.ones(60))

    rule = {"board": Constraints(equal_within=codes)}
    spread = weight_uncertainty(
        stepped(), [stepped() for _ in range(39)], constraints=rule, replicates=39, top=25
    ).spreads["board"]
    assert spread.top_overlap == pytest.approx(1)
    np.testing.assert_allclose(spread.in_top, [1] * 20 + [0.5] * 10 + [0] * 30)


def test_weights_that_help_nobody_are_no_reference() -> None:
    model = game(np.ones((2, 1)), np.full(2, -1.0), np.ones(2))
    result = weight_uncertainty(
        model, itertools.repeat(model), constraints={"published": Constraints()}, reference="published", replicates=39
    )
    assert result.reference == "optimum"
    assert result.names == ("optimum",)
    assert result.spreads["published"].idle == 1


def test_results_print_tabulate_and_serialise() -> None:
    model, draws = random_games(1)
    rules = {"published": Constraints()}
    result = found(model, draws, constraints=rules, schemes={"uniform": np.ones(7)}, risk_aversions=[3.0])
    assert "uniform: efficiency" in str(result)
    frame = result.to_frame()
    assert frame.height == 6
    assert frame["verdict"].null_count() == 0
    record = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert set(record["spreads"]) == {"optimum", "published"}
    assert len(record["spreads"]["published"]["share_lo"]) == 7


def test_bad_input_is_named() -> None:
    model, draws = random_games(1)
    cases: list[tuple[dict[str, Any], str]] = [
        ({"replicates": 5}, "too few for intervals"),
        ({"level": 1.0}, "too few for intervals"),
        ({"replicates": DRAWS + 1}, "must yield 80 games, got 79"),
        ({"schemes": {"optimum": np.ones(7)}}, "the name 'optimum' twice"),
        ({"constraints": {"optimum": Constraints()}}, "the name 'optimum' twice"),
        ({"reference": "published"}, "`reference` must be one of optimum"),
        ({"top": 0}, "`top` must be at least 1"),
        ({"risk_aversions": [-1.0]}, "risk_aversions"),
        ({"schemes": {"short": np.ones(3)}}, "short"),
    ]
    for options, message in cases:
        with pytest.raises(UsageError, match=message):
            found(model, draws, **options)
    with pytest.raises(UsageError, match="draw 0 must have the 7 items"):
        found(model, random_games(1, m=6)[1])
    with pytest.raises(UsageError, match="risk aversion"):
        found(model, [one.with_risk_aversion(2.0) for one in draws])
    with pytest.raises(UsageError, match="no scheme 'mine' at r = 1"):
        found(model, draws).scheme("mine")
