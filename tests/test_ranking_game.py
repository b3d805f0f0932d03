"""The ranking game against its golden cases, brute force on effort grids, and its invariances."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchwright._check import FloatArray
from benchwright.errors import UsageError
from benchwright.ranking_game.costs import FunctionCosts, PowerCosts
from benchwright.ranking_game.equilibrium import GameSolution, solve
from benchwright.ranking_game.forms import FunctionCurves, PowerLawCurves, TranslationCurves
from benchwright.ranking_game.game import RankingGame
from benchwright.ranking_game.regret import max_regret

EXPONENTIAL = TranslationCurves([1.0, 0.5], "exponential")
FREE = PowerCosts(1.0, 2.0, 1.0)
relaxed = settings(derandomize=True, deadline=None, max_examples=60)


def plain_payoff(game: RankingGame, efforts: FloatArray, i: int) -> float:
    """A developer's payoff from the definition, one developer at a time; ties to the more capable."""
    who = np.arange(game.n)
    scores, ability = game.curves.score(who, game.tune_before_test + efforts), game.curves.capability
    ahead = sum(
        scores[k] > scores[i] or (scores[k] == scores[i] and ability[k] > ability[i]) for k in range(game.n) if k != i
    )
    return float(game.rewards[ahead] - game.costs.cost(np.array([i]), efforts[[i]])[0])


def grid_regret(game: RankingGame, efforts: FloatArray, grid: FloatArray) -> float:
    """Largest gain from a deviation to an effort of the grid."""
    best = 0.0
    for i in range(game.n):
        now = plain_payoff(game, efforts, i)
        for effort in grid:
            moved = efforts.copy()
            moved[i] = effort
            best = max(best, plain_payoff(game, moved, i) - now)
    return best


def test_a_tie_on_a_plateau_that_the_more_capable_wins_is_worth_a_move() -> None:
    # with b at 0, a ties at effort 1.2, cost 0.2, and stays level with it up to effort 5
    curves = FunctionCurves(
        [lambda e: np.interp(e, [1, 1.2, 5, 9], [0.25, 0.3, 0.3, 0.9]), lambda e: np.interp(e, [0, 1], [0.3, 0.6])],
        [2.0, 1.0],
    )
    game = RankingGame(curves, [1.0, 0.0], costs=PowerCosts(1.0, 1.0, 1.0))
    found = solve(game, profiles=[[1.0, 0.0]])
    assert found.pure_equilibrium == "exists"
    assert [1.0, 0.0] not in found.profiles.tolist()
    assert max_regret(game, [1.0, 0.0]) == pytest.approx(0.8)
    assert grid_regret(game, np.array([1.0, 0.0]), np.linspace(0, 6, 601)) == pytest.approx(0.8)


@pytest.mark.parametrize("delta", [0.0, 1.0, 5.0, 20.0])
@pytest.mark.parametrize("function", [False, True])
def test_g1_has_no_equilibrium_and_shows_the_jump(delta: float, function: bool) -> None:
    curves = FunctionCurves(lambda theta, e: 1 - np.exp(-(theta + e)), [1.0, 0.5]) if function else EXPONENTIAL
    found = solve(RankingGame(curves, [1.0, 0.0], tune_before_test=delta))
    assert (found.pure_equilibrium, found.unique, found.profiles.shape) == ("none", None, (0, 2))
    assert found.jump is not None
    assert (found.jump.developer, found.jump.over, found.jump.reward_gap) == (1, 0, 1.0)
    assert found.jump.required_effort == pytest.approx(0.5, abs=1e-5)
    assert 0.5 < found.jump_effort < 1
    assert found.jump_gain == pytest.approx(1 - found.jump_effort)
    assert found.max_regret == pytest.approx(0.5, abs=1e-5)


@pytest.mark.parametrize("delta", [36.0, 100.0])
def test_g1_scores_that_doubles_cannot_tell_apart(delta: float) -> None:
    found = solve(RankingGame(EXPONENTIAL, [1.0, 0.0], tune_before_test=delta))
    assert found.pure_equilibrium == "none"  # by the form
    assert any("double precision cannot tell the published scores" in note for note in found.notes)
    curves = FunctionCurves(lambda theta, e: 1 - np.exp(-(theta + e)), [1.0, 0.5])
    blind = solve(RankingGame(curves, [1.0, 0.0], tune_before_test=delta))
    assert blind.pure_equilibrium == "undecided"
    assert "too close for double precision" in blind.reason
    assert np.isnan(blind.max_regret)
    assert blind.to_dict()["just_overtake"][0]["required_effort"] is None


@pytest.mark.parametrize("delta", [0.0, 5.0, 20.0])
def test_g1b_nobody_moves(delta: float) -> None:
    found = solve(RankingGame(EXPONENTIAL, [0.25, 0.0], tune_before_test=delta))
    assert (found.pure_equilibrium, found.unique, found.profiles.tolist()) == ("exists", True, [[0.0, 0.0]])
    assert found.max_regret == 0
    assert found.published_order == (0, 1)


def test_g2_order_may_be_inverted_between_equal_rewards() -> None:
    game = RankingGame(EXPONENTIAL, [1.0, 1.0], costs=FREE)
    found = solve(game, profiles=[[0.0, 0.75], [0.0, 3.0]])
    assert (found.pure_equilibrium, found.unique) == ("exists", False)
    assert [0.0, 0.75] in found.profiles.tolist()
    assert game.published_order([0.0, 0.75]).tolist() == [1, 0]
    assert game.payoffs([0.0, 0.75]).tolist() == [1.0, 1.0]
    assert any(note.startswith("[0.0, 3.0] is no equilibrium: one developer gains 4 ") for note in found.notes)


def test_g3_zero_effort_is_none_although_neighbours_at_zero_effort_say_so() -> None:
    game = RankingGame(EXPONENTIAL, [0.1, 0.0], costs=FREE)
    found = solve(game, profiles=[[0.0, 0.0]])
    assert found.profiles.tolist() == [[1.0, 1.0], [1.0, 0.0]]
    row = found.just_overtake[0]
    assert (row.cost, row.pays, row.zero_effort_cost, row.zero_effort_pays) == (0.25, False, 0.0, True)
    assert max_regret(game, [0.0, 0.0]) == pytest.approx(0.1)


@pytest.mark.parametrize("delta", [0.0, 10.0, 1e5])
@pytest.mark.parametrize(
    "curves",
    [
        TranslationCurves([1.0, 0.0], "hyperbolic"),
        PowerLawCurves([-np.log(2), 0.0], 1.0, [0.5, 0.0], 1.0),
        FunctionCurves(lambda theta, e: 1 - 1 / (2 + e + theta), [1.0, 0.0]),
    ],
    ids=["hyperbolic", "power law", "callable"],
)
def test_g4_no_level_helps(curves: Any, delta: float) -> None:
    found = solve(RankingGame(curves, [2.0, 0.0], tune_before_test=delta))
    assert found.pure_equilibrium == "none"
    assert found.just_overtake[0].required_effort == pytest.approx(1.0, rel=1e-3)
    assert found.binding.margin == pytest.approx(-1.0, rel=1e-3)


@pytest.mark.parametrize(("delta", "verdict"), [(0.0, "none"), (0.999, "none"), (1.001, "exists"), (1e4, "exists")])
def test_g5_required_effort_grows_with_the_level(delta: float, verdict: str) -> None:
    found = solve(RankingGame(PowerLawCurves([np.log(2), 0.0]), [2.0, 0.0], tune_before_test=delta))
    assert found.pure_equilibrium == verdict
    assert found.just_overtake[0].required_effort == pytest.approx(1 + delta)


def test_a_margin_of_zero_is_judged_in_fractions_or_not_at_all() -> None:
    curves = TranslationCurves([0.3, 0.2], "exponential")
    tight = solve(RankingGame(curves, [0.3, 0.0], costs=PowerCosts(3.0)))  # 0.3 - 3 * 0.1 is -5.6e-17 in doubles
    assert (tight.pure_equilibrium, tight.just_overtake[0].pays) == ("exists", False)
    knife = solve(RankingGame(PowerLawCurves([np.log(2), 0.0]), [2.0, 0.0], tune_before_test=1.0))
    assert (knife.pure_equilibrium, knife.certificate["undecided_pairs"]) == ("undecided", 1)


def test_a_plateau_makes_a_far_jump_pay_where_no_near_one_does() -> None:
    """With a plateau the test of neighbours alone says stable: rank 3 passes 1 and 2 at one price."""

    def score(theta: FloatArray, e: FloatArray) -> FloatArray:
        start = np.select([theta == 3, theta == 2], [0.52, 0.51], 0.10)
        return np.where(theta == 1, np.where(e < 1, 0.10 + 0.4 * e, np.minimum(0.5 + 0.5 * (e - 1), 0.9)), start)

    found = solve(RankingGame(FunctionCurves(score, [3.0, 2.0, 1.0]), [2.0, 1.0, 0.0]))
    assert found.pure_equilibrium == "none"
    assert [row.pays for row in found.just_overtake] == [False, False]
    assert found.jump is not None
    assert (found.jump.rank, found.jump.rank_over) == (3, 1)
    assert any("not between neighbours" in note for note in found.notes)


def test_unlike_free_efforts_are_not_decided_by_the_criterion() -> None:
    unlike = PowerCosts(1.0, 1.0, [0.0, 2.0])
    paying = solve(RankingGame(EXPONENTIAL, [2.0, 0.0], costs=unlike))
    assert paying.pure_equilibrium == "undecided"
    assert "free effort differs between developers (0 to 2)" in paying.reason
    calm = solve(RankingGame(EXPONENTIAL, [0.25, 0.0], costs=unlike))  # 1 must spend 1.5 to pass 2 at effort 2
    assert (calm.pure_equilibrium, calm.profiles.tolist()[0]) == ("exists", [0.0, 2.0])
    assert calm.published_order == (1, 0)


def test_where_curves_cross_the_order_of_scores_counts_if_they_strictly_increase() -> None:
    curves = PowerLawCurves([0.0, 0.5], capability=[2.0, 1.0])
    found = solve(RankingGame(curves, [5.0, 0.0]))
    assert (found.pure_equilibrium, found.published_order) == ("none", (1, 0))
    assert found.jump is not None
    assert found.jump.required_effort == pytest.approx(np.exp(0.5) - 1)
    assert any("not the order of capability" in note for note in found.notes)
    calm = solve(RankingGame(curves, [0.5, 0.0]))
    assert (calm.pure_equilibrium, calm.unique, calm.published_order) == ("exists", True, (1, 0))
    called = FunctionCurves(lambda t, e: 1 / (1 + np.exp(t) / (1 + e)), [2.0, 1.0])
    assert solve(RankingGame(called, [5.0, 0.0])).pure_equilibrium == "undecided"
    assert "against C1" in solve(RankingGame(called, [5.0, 0.0])).reason


def random_game(rng: np.random.Generator) -> RankingGame:
    n = int(rng.integers(2, 5))
    theta = rng.permutation(n) * rng.choice([0.2, 0.5]) + rng.choice([0.0, 0.1]) * rng.random(n)
    kind = rng.integers(3)
    if kind < 2:
        curves: Any = TranslationCurves(theta, ("exponential", "hyperbolic")[kind])
    else:
        capability = theta if rng.random() < 0.5 else rng.permutation(n)
        curves = PowerLawCurves(theta, rng.uniform(0.5, 2.0), 0.1, 0.9, capability)
    rewards = np.sort(rng.integers(0, 5, n))[::-1] * float(rng.choice([0.1, 0.3, 1.0]))
    costs = PowerCosts(rng.uniform(0.3, 2.0, n), rng.choice([1.0, 2.0]), rng.choice([0.0, 0.5]))
    return RankingGame(curves, rewards, costs=costs, tune_before_test=float(rng.choice([0.0, 1.0])))


@pytest.mark.slow
def test_a_thousand_random_games_agree_with_a_grid_of_efforts() -> None:
    """The grid's best deviation is at most the regret, and misses it by no more than a step costs."""
    rng, seen = np.random.default_rng(20261130), {"exists": 0, "none": 0, "undecided": 0}
    for _ in range(1000):
        game = random_game(rng)
        found = solve(game)
        seen[found.pure_equilibrium] += 1
        step = 0.25
        grid = np.arange(0, 8, step)
        free = game.costs.free
        seen_gain = grid_regret(game, free, grid)
        missed = max(
            float(np.diff(game.costs.cost(np.full(grid.size, i), grid))[: int(5 / step)].max()) for i in range(game.n)
        )
        if found.pure_equilibrium == "exists":
            assert seen_gain <= 1e-9
            for profile in found.profiles:
                assert grid_regret(game, profile, grid) <= 1e-9
        elif found.pure_equilibrium == "none":
            assert seen_gain <= found.max_regret + 1e-9
            assert found.max_regret > 0
            if found.max_regret > missed:
                assert seen_gain > 0
        random_profile = rng.choice(grid, game.n)
        assert grid_regret(game, random_profile, grid) <= max_regret(game, random_profile) + 1e-9
    assert seen["exists"] > 100
    assert seen["none"] > 100


@relaxed
@given(seed=st.integers(0, 2**32 - 1))
def test_permuting_developers_permutes_the_answer(seed: int) -> None:
    game = random_game(np.random.default_rng(seed))
    found = solve(game)
    for order in list(permutations(range(game.n)))[:6]:
        o = list(order)
        curves: Any
        if isinstance(game.curves, TranslationCurves):
            curves = TranslationCurves(game.curves.theta[o], game.curves.form)
        else:
            assert isinstance(game.curves, PowerLawCurves)
            curves = PowerLawCurves(game.curves.alpha[o], game.curves.beta[o], 0.1, 0.9, game.curves.capability[o])
        assert isinstance(game.costs, PowerCosts)
        costs = PowerCosts(game.costs.kappa[o], game.costs.exponent[o], game.costs.free[o])
        other = solve(RankingGame(curves, game.rewards, costs=costs, tune_before_test=game.tune_before_test))
        assert other.pure_equilibrium == found.pure_equilibrium
        assert [o[i] for i in other.published_order] == list(found.published_order)
        assert other.max_regret == pytest.approx(found.max_regret, rel=1e-9)
        assert [row.cost for row in other.just_overtake] == pytest.approx([row.cost for row in found.just_overtake])


@relaxed
@given(seed=st.integers(0, 2**32 - 1), scale=st.sampled_from([1e-6, 0.5, 3.0, 1e6]), shift=st.sampled_from([-7.0, 2.0]))
def test_units_of_reward_and_a_constant_change_no_verdict(seed: int, scale: float, shift: float) -> None:
    game = random_game(np.random.default_rng(seed))
    assert isinstance(game.costs, PowerCosts)
    costs = PowerCosts(game.costs.kappa * scale, game.costs.exponent, game.costs.free)
    found = solve(game)
    other = solve(
        RankingGame(game.curves, game.rewards * scale + shift, costs=costs, tune_before_test=game.tune_before_test)
    )
    if found.pure_equilibrium != "undecided" and abs(found.binding.margin) > 1e-9:
        assert other.pure_equilibrium == found.pure_equilibrium
        assert other.max_regret == pytest.approx(found.max_regret * scale, rel=1e-6, abs=1e-9 * scale)


@pytest.mark.slow
@relaxed
@given(seed=st.integers(0, 2**32 - 1))
def test_a_callable_agrees_with_the_form_it_states(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 6))
    theta, beta = rng.permutation(n) * 0.3, float(rng.uniform(0.5, 1.5))
    rewards = np.sort(rng.integers(0, 5, n))[::-1] * 0.31
    named = solve(RankingGame(PowerLawCurves(theta, beta, 0.1, 0.9, theta), rewards, costs=PowerCosts(0.37, 2.0)))
    curves = FunctionCurves(lambda t, e: 0.1 + 0.8 / (1 + np.exp(-t) * (1 + e) ** -beta), theta)
    called = solve(RankingGame(curves, rewards, costs=FunctionCosts(lambda e: 0.37 * e**2)))
    assert called.pure_equilibrium == named.pure_equilibrium
    assert [r.cost for r in called.just_overtake] == pytest.approx([r.cost for r in named.just_overtake], rel=1e-9)
    assert called.max_regret == pytest.approx(named.max_regret, rel=1e-6, abs=1e-12)


def test_costs_and_curves_of_their_own_for_each_developer() -> None:
    curves = FunctionCurves([lambda e: 1 - np.exp(-(1 + e)), lambda e: 1 - np.exp(-(0.5 + e))], [1.0, 0.5])
    costs = FunctionCosts([lambda e: e, lambda e: 3 * e])
    calm = solve(RankingGame(curves, [1.0, 0.0], costs=costs))
    assert (calm.pure_equilibrium, calm.just_overtake[0].cost) == ("exists", pytest.approx(1.5))
    assert any("callables" in condition for condition in calm.conditions)


def test_shared_ties_follow_the_criterion_for_named_forms_only() -> None:
    assert solve(RankingGame(EXPONENTIAL, [1.0, 0.0], ties="shared")).pure_equilibrium == "none"
    assert solve(RankingGame(EXPONENTIAL, [0.25, 0.0], ties="shared")).pure_equilibrium == "exists"
    curves = FunctionCurves(lambda theta, e: 1 - np.exp(-(theta + e)), [1.0, 0.5])
    assert solve(RankingGame(curves, [0.25, 0.0], ties="shared")).pure_equilibrium == "undecided"
    game = RankingGame(TranslationCurves([1.0, 0.5], "exponential"), [1.0, 0.0], ties="shared")
    assert game.payoffs([0.0, 0.5]).tolist() == [0.5, 0.0]


def test_results_print_and_tabulate() -> None:
    found: GameSolution = solve(RankingGame(EXPONENTIAL, [1.0, 0.0], names=("=a", "b")))
    assert "b overtakes =a at any effort above 0.5" in str(found)
    assert found.to_frame().rows() == [(2, "b", "=a", 0.5, 0.5, 1.0, True, 0.5, True)]
    unreachable = solve(RankingGame(PowerLawCurves([0.0, 0.0], 1.0, 0.0, [0.9, 0.4]), [1.0, 0.0]))
    assert unreachable.pure_equilibrium == "exists"
    assert unreachable.to_dict()["just_overtake"][0]["required_effort"] is None
    assert unreachable.just_overtake[0].required_effort == np.inf


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: RankingGame(EXPONENTIAL, [0.0, 1.0]), "`rewards` must not increase with the rank, got 0 for rank 1"),
        (lambda: RankingGame(EXPONENTIAL, [1.0]), "`rewards` must hold 2 rewards, one a rank, got 1"),
        (lambda: RankingGame(EXPONENTIAL, [1.0, np.nan]), "`rewards` must be finite"),
        (lambda: RankingGame(TranslationCurves([1.0], "exponential"), [1.0]), "at least two developers, got 1"),
        (
            lambda: RankingGame(TranslationCurves([1.0, 1.0], "exponential"), [1.0, 0.0], names=("a", "b")),
            "capabilities must differ, those of a and b are both 1",
        ),
        (lambda: RankingGame(EXPONENTIAL, [1.0, 0.0], tune_before_test=-1.0), "`tune_before_test` must be a finite"),
        (lambda: RankingGame(EXPONENTIAL, [1.0, 0.0], ties="coin"), "`ties` must be one of capability, shared"),  # type: ignore[arg-type]
        (lambda: RankingGame(EXPONENTIAL, [1.0, 0.0], names=("a", "a")), "2 different names"),
        (lambda: RankingGame(EXPONENTIAL, [1.0, 0.0], costs=PowerCosts([1.0, 1.0, 1.0])), "one a developer"),
        (lambda: TranslationCurves([-1.0, 0.0], "exponential"), "must be >= 0 for the exponential form, got -1"),
        (lambda: TranslationCurves([0.0], "logistic"), "exponential or hyperbolic"),
        (lambda: PowerCosts(-1.0), "`kappa` must be > 0, got -1"),
        (lambda: PowerCosts(1.0, 1.0, -1.0), "`free_effort` must be >= 0, got -1"),
        (lambda: PowerLawCurves([0.0], 1.0, 0.5, 0.4), "0 <= L < U <= 1, got L = 0.5, U = 0.4"),
        (lambda: PowerLawCurves([0.0, 1.0], [1.0, 0.0]), "`beta` must be > 0, got 0 for developer 2"),
        (lambda: FunctionCurves(lambda t, e: np.exp(-e) + t, [0.0]), "must not fall with effort"),
        (lambda: FunctionCurves(lambda t, e: t + e, [0.0]), "must lie in [0, 1]"),
        (lambda: FunctionCurves(lambda t, e: np.where(e > 1, np.nan, 0.5), [0.0]), "must be a finite number"),
        (lambda: FunctionCurves(lambda t, e: np.zeros(3), [0.0]), "must return shape"),
        (
            lambda: RankingGame(EXPONENTIAL, [1.0, 0.0], costs=FunctionCosts(lambda e: np.maximum(e - 1, 0))),
            "must strictly increase beyond its free effort 0",
        ),
        (lambda: RankingGame(EXPONENTIAL, [1.0, 0.0], costs=FunctionCosts(lambda e: -e)), "must be >= 0"),
        (lambda: RankingGame(EXPONENTIAL, [1.0, 0.0], costs=FunctionCosts(lambda e: e, 2.0)), "must be 0 up to"),
        (lambda: max_regret(RankingGame(EXPONENTIAL, [1.0, 0.0]), [0.0, -1.0]), "must hold 2 efforts >= 0"),
    ],
)
def test_bad_input(make: Any, text: str) -> None:
    with pytest.raises(UsageError) as caught:
        make()
    assert text in str(caught.value)


def test_neighbours_are_named_in_the_published_order_where_curves_cross() -> None:
    curves = PowerLawCurves([-3.0, 0.0], [2.0, 0.5], capability=[2.0, 1.0])  # the more capable starts lower
    found = solve(RankingGame(curves, [1.0, 0.0], names=("late", "early")))
    row = found.just_overtake[0]
    assert (found.published_order, row.developer, row.over) == ((1, 0), 0, 1)
    assert found.to_frame().select("developer", "over").row(0) == ("late", "early")
