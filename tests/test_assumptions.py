"""The assumptions on curves and costs: closed forms against brute force, plateaus, costs, shares of draws."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq

from benchwright.errors import UsageError
from benchwright.ranking_game.assumptions import Assumptions, check_assumptions
from benchwright.ranking_game.costs import FunctionCosts, PowerCosts
from benchwright.ranking_game.curve_assumptions import convex_until
from benchwright.ranking_game.forms import FunctionCurves, PowerLawCurves, TranslationCurves
from benchwright.ranking_game.game import RankingGame
from benchwright.ranking_game.threshold import threshold

TOP = 500.0
relaxed = settings(derandomize=True, deadline=None, max_examples=25)


def checked(curves: Any, *, top: float = TOP, **settings: Any) -> Assumptions:
    n = curves.capability.size
    return check_assumptions(RankingGame(curves, np.arange(n, 0, -1.0), **settings), effort_max=top)


def random_curves(rng: np.random.Generator, *, shared: bool) -> PowerLawCurves:
    n = int(rng.integers(2, 6))
    lower: Any = 0.1 if shared else rng.uniform(0, 0.2, n)
    upper: Any = 0.9 if shared else rng.uniform(0.6, 1.0, n)
    return PowerLawCurves(rng.normal(-1, 1, n), rng.uniform(0.3, 1.6, n), lower, upper)


@relaxed
@given(seed=st.integers(0, 2**32 - 1), shared=st.booleans())
def test_against_brute_force(seed: int, shared: bool) -> None:
    curves = random_curves(np.random.default_rng(seed), shared=shared)
    found = checked(curves)
    fine = np.expm1(np.linspace(0, np.log1p(TOP), 4001))
    score = curves.score(np.arange(curves.alpha.size)[:, None], fine)
    crossing = {violation.developers: violation for violation in found.check("C1").violations}
    falling = {violation.developers: violation for violation in found.check("C3").violations}
    for b in range(curves.alpha.size):
        for a in range(b):
            lead = score[b] - score[a]
            if lead.max() > 1e-6:
                assert crossing[b, a].size == pytest.approx(lead.max(), rel=1e-2)
                inside = np.any([(low < fine) & (fine < high) for low, high in crossing[b, a].ranges], axis=0)
                assert (inside != (lead > 0)).sum() <= 4
            elif lead.max() < 0:
                assert (b, a) not in crossing
            share = np.clip((score[a] - curves.lower[b]) / (curves.upper[b] - curves.lower[b]), 1e-300, None)
            within = share < 1
            z = np.log(share[within] / (1 - share[within]))
            needs = np.maximum(np.expm1((z - curves.alpha[b]) / curves.beta[b]), 0) - fine[within]
            fall = np.max(np.maximum.accumulate(needs) - needs, initial=0.0)
            if fall > 1e-3:
                assert falling[b, a].size == pytest.approx(fall, rel=2e-2)
                steps = np.diff(needs) < 0
                first, last = score[a][within][:-1][steps][[0, -1]]
                assert falling[b, a].ranges[0][0] == pytest.approx(first, abs=2e-3)
                assert falling[b, a].ranges[-1][1] == pytest.approx(last, abs=2e-3)
            elif fall == 0:
                assert (b, a) not in falling


@relaxed
@given(seed=st.integers(0, 2**32 - 1))
def test_where_a_power_law_is_convex(seed: int) -> None:
    curves = random_curves(np.random.default_rng(seed), shared=False)
    ends, found = convex_until(curves), checked(curves).check("C2")
    assert found.proof == "closed form"
    assert {violation.developers[0] for violation in found.violations} == set(np.flatnonzero(ends > 0))
    for i, end in enumerate(ends):

        def bend(x: float, i: int = i) -> float:
            step = 1e-3 * (1 + x)
            v = curves.score(np.full(3, i), np.array([x - step, x, x + step]))
            return float(v[0] - 2 * v[1] + v[2])

        if end > 0.1:
            assert bend(end * 0.9) > 0 > bend(end * 1.1 + 0.01)
            assert brentq(bend, end * 0.8, end * 1.2 + 0.01) == pytest.approx(end, rel=1e-3)
        elif end == 0:
            assert all(bend(x) < 0 for x in (0.01, 1.0, 30.0))


def test_ordered_power_laws_satisfy_all_and_so_do_forms_that_translate() -> None:
    rng = np.random.default_rng(3)
    for _ in range(20):
        alpha, beta = np.sort(rng.normal(0, 1, 5))[::-1], np.sort(rng.uniform(0.2, 1.0, 5))[::-1]
        found = checked(PowerLawCurves(alpha, beta, 0.1, 0.8))
        assert [(check.verdict, check.proof) for check in found.checks[:3]] == [("holds", "closed form")] * 3
        assert all(result.verdict == "holds" for result in found.results)
    found = checked(TranslationCurves([1.0, 0.5, 0.1], "hyperbolic"))
    assert {check.verdict for check in found.checks} == {"holds"}
    assert len(found.results) == 5
    assert found.to_frame().is_empty()


def test_curves_with_own_bounds_that_stay_apart_are_proved_so_on_cells() -> None:
    apart = checked(PowerLawCurves([0.0, 0.0], [0.6, 0.5], [0.1, 0.05], [0.9, 0.85])).check("C1")
    assert (apart.verdict, apart.proof) == ("holds", "cells")
    touching = checked(PowerLawCurves([0.0, 0.0], 0.5, 0.1, [0.9, 0.9 - 1e-9])).check("C1")
    assert (touching.verdict, touching.proof) == ("holds", "grid")


def test_plateaus_keep_c3_and_break_c2_and_what_neighbours_decide() -> None:
    """A common curve flat on [1, 2]: what the less capable needs beyond the more capable stays the same."""

    def score(theta: Any, e: Any) -> Any:
        z = theta + e
        return 1 - 1 / (2 + np.minimum(z, 1) + np.maximum(z - 2, 0))

    found = checked(FunctionCurves(score, [0.6, 0.2]), top=20.0)
    assert found.check("C3").verdict == "holds"
    assert {violation.developers for violation in found.check("C2").violations} == {(0,), (1,)}
    assert found.check("C1").verdict == "undecided"  # equal on the plateau
    broken = {result.result: result.verdict for result in found.results}
    assert broken["neighbours decide for all pairs"] == "violated"
    assert broken["a pure equilibrium exists exactly if no jump pays"] == "undecided"


def test_callables_find_what_the_form_finds() -> None:
    form = PowerLawCurves([0.7, -3.0], [0.5, 1.4], 0.1, 0.9)

    def score(who: Any, e: Any) -> Any:
        k = (1 - who).astype(int)
        return form.score(k, e)

    called, named = checked(FunctionCurves(score, [1.0, 0.0])), checked(form)
    for name, loose in (("C1", 1e-9), ("C2", 1e-4), ("C3", 2e-2)):
        (one,), (other,) = called.check(name).violations, named.check(name).violations
        assert one.developers == other.developers
        assert one.size == pytest.approx(other.size, rel=loose)
        assert called.check(name).proof == "grid"
    (low, _), (_, high) = called.check("C3").violations[0].ranges[0], named.check("C3").violations[0].ranges[0]
    assert low == pytest.approx(named.check("C3").violations[0].ranges[0][0], abs=1e-3)
    assert high == pytest.approx(called.check("C3").violations[0].ranges[0][1], abs=1e-3)


@pytest.mark.parametrize(
    ("costs", "broken"),
    [
        (PowerCosts(2.0), set()),
        (PowerCosts(1.0, 2.0), {"cost linear"}),
        (PowerCosts(1.0, 0.5), {"cost convex"}),
        (PowerCosts(1.0, 1.0, 0.5), {"cost increasing", "cost linear"}),
        (PowerCosts([2.0, 1.0]), {"cost order"}),
        (PowerCosts([1.0, 2.0]), set()),
        (FunctionCosts(lambda e: e + e**2), {"cost unbounded"}),
        (FunctionCosts(lambda e: np.log1p(e)), {"cost unbounded", "cost convex"}),
        (FunctionCosts([lambda e: 2 * e, lambda e: e]), {"cost unbounded", "cost order"}),
    ],
)
def test_costs(costs: Any, broken: set[str]) -> None:
    found = checked(PowerLawCurves([1.0, 0.0]), costs=costs)
    assert {
        check.assumption for check in found.checks if check.assumption.startswith("cost") and not check.holds
    } == broken


def test_a_linear_floor_is_told() -> None:
    assert (
        checked(PowerLawCurves([1.0, 0.0]), costs=PowerCosts([3.0, 2.0])).check("cost linear").reason == "c(e) >= 2 e"
    )
    root = checked(PowerLawCurves([1.0, 0.0]), top=100.0, costs=PowerCosts(3.0, 0.5)).check("cost linear")
    assert root.reason == "c(e) >= 0.3 e on [0, 100]"
    below = checked(PowerLawCurves([1.0, 0.0]), costs=PowerCosts([2.0, 1.0])).check("cost order").violations[0]
    assert (below.developers, below.size, below.at) == ((1, 0), TOP, TOP)


def test_shares_of_draws_tell_noise_from_a_crossing() -> None:
    rng = np.random.default_rng(0)

    def game(shift: Any) -> RankingGame:
        alpha = np.array([3.0, 0.1, 0.0]) + shift
        return RankingGame(PowerLawCurves(alpha, [0.5, 0.5, 0.502]), [2.0, 1.0, 0.0], names=("a", "b", "c"))

    worlds = [game(rng.normal(0, 0.05, 3)) for _ in range(200)]
    found = check_assumptions(game(0.0), effort_max=TOP, draws=worlds)
    alphas = np.array([world.curves.alpha for world in worlds])
    crossing = alphas[:, 2] + 0.002 * np.log1p(TOP) > alphas[:, 1]
    assert (found.check("C1").verdict, found.draws) == ("holds", 200)
    assert found.check("C1").share == pytest.approx(crossing.mean())
    assert 0 < crossing.mean() < 1
    one = checked(PowerLawCurves([0.5, 0.0], [0.3, 0.9], 0.1, 0.9))
    worlds = [
        RankingGame(PowerLawCurves([0.5, 0.0], [0.3, beta], 0.1, 0.9), [2.0, 1.0]) for beta in (0.9, 0.2, 0.8, 0.7)
    ]
    found = check_assumptions(worlds[0], effort_max=TOP, draws=worlds)
    for name in ("C1", "C3"):
        (violation,) = found.check(name).violations
        assert (violation.share, found.check(name).share) == (0.75, 0.75)
        assert violation.ranges == one.check(name).violations[0].ranges
    assert "; violated in 75 % of 4 draws" in str(found)
    assert found.to_frame()["share_of_draws"].to_list() == [0.75, 0.75]
    record = found.to_dict()
    assert [check["assumption"] for check in record["checks"][:3]] == ["C1", "C2", "C3"]
    assert record["checks"][2]["largest"][0]["developers"] == ["developer 2", "developer 1"]


def test_scores_that_doubles_cannot_tell_apart_are_not_called_crossed() -> None:
    saturating = FunctionCurves(lambda theta, e: -np.expm1(-(theta + e)), [1.0, 0.5])
    assert checked(saturating, top=100.0).check("C1").verdict == "undecided"
    assert checked(saturating, top=10.0).check("C1").verdict == "holds"


def test_bad_input() -> None:
    with pytest.raises(UsageError, match="`effort_max` must be > 0"):
        checked(PowerLawCurves([1.0, 0.0]), top=0.0)


def lost(found: Assumptions) -> dict[str, tuple[str, ...]]:
    return {one.result: one.missing for one in found.results if one.verdict != "holds"}


def test_results_that_free_effort_costs_their_ground() -> None:
    curves, free = TranslationCurves([1.0, 0.5], "exponential"), PowerCosts(1.0, 2.0, 1.0)
    tied = check_assumptions(RankingGame(curves, [1.0, 1.0], costs=free), effort_max=5.0)
    assert "the published order is that of capability" in lost(tied)  # G2 publishes the inverted one
    apart = check_assumptions(RankingGame(curves, [1.0, 0.0], costs=free), effort_max=5.0)
    assert lost(apart) == {"a pure equilibrium is unique": ("cost increasing",)}
    unlike = PowerCosts(1.0, 2.0, [1.0, 0.0])
    assert len(lost(check_assumptions(RankingGame(curves, [1.0, 0.0], costs=unlike), effort_max=5.0))) == 5


def test_a_plateau_at_the_top_needs_c1_for_stability_to_last() -> None:
    curves = FunctionCurves(
        [lambda x: np.minimum(0.5, 0.3 + 0.2 * x), lambda x: np.minimum(0.6, 0.1 + 0.1 * x)], [2, 1]
    )
    game = RankingGame(curves, [1.9, 0.0])
    found = check_assumptions(game, effort_max=6.0)
    assert (found.check("C2").verdict, found.check("C3").verdict) == ("holds", "holds")
    assert threshold(game, delta_max=6.0).stable_intervals == ((0.0, pytest.approx(2.1)),)
    assert "C1" in lost(found)["a level that is stable stays stable under more tuning"]


def test_the_growth_law_needs_slopes_in_order() -> None:
    game = RankingGame(PowerLawCurves([np.log(2), 0.0], [0.9, 1.0]), [20.0, 0.0])
    found = check_assumptions(game, effort_max=100.0)
    assert found.check("C1").holds
    assert found.check("C3").holds
    assert threshold(game).status == "none_up_to_max"  # no level suffices for all above it
    assert set(lost(found)) == {"the growth law's sufficient level"}


def test_shared_ties_need_curves_known_to_increase() -> None:
    curves = FunctionCurves(lambda theta, e: 1 - np.exp(-(theta + e)), [1.0, 0.5])
    found = check_assumptions(RankingGame(curves, [1.0, 0.0], ties="shared"), effort_max=5.0)
    assert "curves known to increase strictly" in lost(found)["a pure equilibrium exists exactly if no jump pays"]
