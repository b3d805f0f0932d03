"""Tables of the ranking game: the verdict with its certificate, overtaking, the threshold, mixed play, finite games."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isinf
from typing import Any

import polars as pl

from benchwright.game_answers.answer import GameAnswer
from benchwright.game_answers.inputs import GameResult
from benchwright.ranking_game.arms_race import ArmsRace
from benchwright.ranking_game.equilibrium import GameSolution
from benchwright.ranking_game.finite import FiniteSolution
from benchwright.ranking_game.private_variants import VariantReport
from benchwright.ranking_game.protocols import ProtocolComparison
from benchwright.ranking_game.race_over_tuning import RaceOverTuning
from benchwright.ranking_game.threshold import Threshold
from benchwright.report.game_words import leaving
from benchwright.report.tables_curves import curve_tables
from benchwright.report.tables_protocols import protocol_tables, variant_tables
from benchwright.report.tables_tuning import tuning_tables

YES_NO = {True: "yes", False: "no", None: "cannot tell"}
VERDICTS = {"exists": "exists", "none": "does not exist", "undecided": "is not decided"}
Row = tuple[str, str, str, Sequence[tuple[Any, ...]], pl.DataFrame]


def tables_of_game(game: GameResult) -> Iterator[Row]:
    """Yield the tables of a ranking game, of two protocols or of undisclosed submissions."""
    if isinstance(game, ProtocolComparison):
        return protocol_tables(game)
    if isinstance(game, VariantReport):
        return variant_tables(game)
    return answer_tables(game)


def answer_tables(answer: GameAnswer) -> Iterator[Row]:
    """Yield the tables that an answer has the numbers for, in reading order."""
    if isinstance(answer.solution, FiniteSolution):
        yield from _finite(answer.solution)
        return
    yield _verdict(answer.solution)
    yield (
        "overtaking",
        "game",
        "What overtaking the neighbour above costs, and what it earns",
        (
            ("rank", "rank", "integer"),
            ("developer", "developer"),
            ("over", "overtakes"),
            ("required_effort", "required effort", "digits"),
            ("cost", "cost", "digits"),
            ("reward_gap", "reward gap", "digits"),
            ("pays", "pays"),
            ("zero_effort_cost", "cost over a neighbour at zero effort", "digits"),
            ("zero_effort_pays", "pays there"),
        ),
        overtaking(answer.solution),
    )
    if answer.threshold is not None:
        yield _threshold(answer.threshold)
    if answer.arms_race is not None:
        yield _arms_race(answer.arms_race)
    if answer.race_over_tuning is not None:
        yield _race_over_tuning(answer.race_over_tuning)
    if answer.replies is not None and answer.replies.moves:
        columns = (
            ("developer", "who moves"),
            ("effort", "to effort", "digits"),
            ("score", "score", "number"),
            ("rank", "rank", "integer"),
            ("gain", "gains", "digits"),
            ("in_cycle", "in the cycle that repeats"),
        )
        moves = answer.replies.to_frame().with_columns(pl.col("in_cycle").replace_strict({True: "yes", False: "no"}))
        yield "best-replies", "game", "Best replies, move by move, from free effort on", columns, moves
    yield from tuning_tables(answer)
    yield from curve_tables(answer.fits, answer.draws, answer.capability, answer.assumptions)


def overtaking(solution: GameSolution) -> pl.DataFrame:
    """Return one row a rank from 2 on; efforts and costs are null where out of reach, and ``pays`` says so."""
    game, order = solution.game, solution.published_order
    rows = [
        {
            "rank": row.rank,
            "developer": game.name(order[row.rank - 1]),
            "over": game.name(order[row.rank - 2]),
            "required_effort": row.required_effort,
            "cost": row.cost,
            "reward_gap": row.reward_gap,
            "pays": "out of reach" if isinf(row.required_effort) else YES_NO[row.pays],
            "zero_effort_cost": row.zero_effort_cost,
            "zero_effort_pays": YES_NO[row.zero_effort_pays],
        }
        for row in solution.just_overtake
    ]
    numbers = pl.col("required_effort", "cost", "zero_effort_cost")
    return pl.DataFrame(rows).with_columns(pl.when(numbers.is_finite()).then(numbers))


def _verdict(solution: GameSolution) -> Row:
    game, binding = solution.game, solution.binding
    rows: list[tuple[str, str]] = [
        ("tune-before-test level", f"{game.tune_before_test:g}"),
        ("a pure equilibrium", VERDICTS[solution.pure_equilibrium]),
        ("it is the only one", "not known" if solution.unique is None else YES_NO[solution.unique]),
        ("why", solution.reason),
        *(("rests on", condition) for condition in solution.conditions),
        ("jumps examined", f"{solution.pairs:,}"),
        ("jumps that double precision cannot judge", f"{solution.undecided_pairs:,}"),
        (
            "tightest jump",
            f"{game.name(binding.developer)} over {game.name(binding.over)}: cost {binding.cost:g}, "
            f"reward gap {binding.reward_gap:g}",
        ),
    ]
    if solution.jump is not None:
        rows.append(("shown by an effort of", f"{solution.jump_effort:g}, which gains {solution.jump_gain:g}"))
    at = "at the profile found" if solution.pure_equilibrium == "exists" else "where everybody stays at free effort"
    regret = "not known" if solution.max_regret != solution.max_regret else f"{solution.max_regret:g}"
    rows.append((f"largest gain by deviating {at} (checked by other code)", regret))
    frame = pl.DataFrame(rows, schema=["figure", "value"], orient="row")
    return "verdict", "game", "The verdict and its certificate", (("figure", "what"), ("value", "found")), frame


def _threshold(found: Threshold) -> Row:
    ends = {at: f"{found.game.name(i)} over {found.game.name(j)}" for at, i, j in found.interval_ends}
    kinds = (
        ("stable: no jump pays", found.stable_intervals),
        ("not decided", found.undecided_intervals),
        ("scores do not follow capability (C1)", found.crossed_intervals),
    )
    rows: list[tuple[Any, ...]] = [
        (kind, low, high, ends.get(low), ends.get(high)) for kind, spans in kinds for low, high in spans
    ]
    if not found.stable_intervals:
        rows.insert(0, ("stable: none", None, None, None, None))
    schema = {"kind": pl.String, "low": pl.Float64, "high": pl.Float64, "starts": pl.String, "ends": pl.String}
    columns = (
        ("kind", "levels"),
        ("low", "from", "digits"),
        ("high", "to", "digits"),
        ("starts", "below it pays"),
        ("ends", "above it pays"),
    )
    title = f"Tune-before-test levels on [0, {found.delta_max:g}]"
    return "stable-levels", "game", title, columns, pl.DataFrame(rows, schema=schema, orient="row")


def _arms_race(race: ArmsRace) -> Row:
    columns = (
        ("developer", "developer"),
        ("spend", "expected spend", "digits"),
        ("payoff", "expected payoff", "digits"),
        ("stays", "stays at free effort", "percent"),
    )
    title = f"Mixed play ({race.method}; {leaving(race.exploitability, race.off_grid)})"
    return "mixed-play", "game", title, columns, race.to_frame()


def _race_over_tuning(race: RaceOverTuning) -> Row:
    columns = (
        ("delta", "level", "digits"),
        ("verdict", "a pure equilibrium"),
        ("spend", "expected spend of all", "digits"),
        ("wrong_order", "wrong order", "percent"),
        ("wrong_top", "wrong first", "percent"),
        ("kendall_tau", "expected Kendall tau", "number"),
        ("exploitability", "largest gain by another cell", "price"),
        ("off_grid", "within a cell", "price"),
        ("method", "by"),
    )
    frame = race.to_frame().with_columns(pl.col("verdict").replace(VERDICTS))
    return "race-over-tuning", "game", "The arms race, by level of common tuning", columns, frame


def _finite(solution: FiniteSolution) -> Iterator[Row]:
    game = solution.game
    rows = [
        (k, game.name(i), str(e.efforts[i]), str(e.payoffs[i]), "strict" if e.strict else "weak")
        for k, e in enumerate(solution.pure, start=1)
        for i in range(game.n)
    ]
    columns: Sequence[tuple[Any, ...]] = (
        ("equilibrium", "equilibrium", "integer"),
        ("developer", "developer"),
        ("effort", "effort"),
        ("payoff", "payoff"),
        ("kind", "kind"),
    )
    schema = {"equilibrium": pl.Int64} | dict.fromkeys(("developer", "effort", "payoff", "kind"), pl.String)
    if rows:
        title = f"Pure equilibria of {solution.profiles:,} profiles, in exact arithmetic"
        yield "pure-equilibria", "game", title, columns, pl.DataFrame(rows, schema=schema, orient="row")
    else:
        names = [game.name(i) for i in range(game.n)]
        steps = [
            (k, part, *(str(game.efforts[i][level]) for i, level in enumerate(levels)))
            for k, (part, levels) in enumerate(
                [*(("before", p) for p in solution.path), *(("cycle", p) for p in solution.cycle)], start=1
            )
        ]
        fields = [f"effort_{i}" for i in range(game.n)]
        frame = pl.DataFrame(steps, schema=["step", "part", *fields], orient="row")
        columns = (("step", "step", "integer"), ("part", "part"), *zip(fields, names, strict=True))
        yield "best-reply-cycle", "game", "Best replies go round: efforts of each developer", columns, frame
    mixed = [
        (k, game.name(i), str(game.efforts[i][level]), str(share), float(share), str(e.payoffs[i]))
        for k, e in enumerate(solution.mixed or (), start=1)
        for i, row in enumerate(e.strategies)
        for level, share in enumerate(row)
        if share
    ]
    if mixed:
        columns = (
            ("equilibrium", "equilibrium", "integer"),
            ("developer", "developer"),
            ("effort", "effort"),
            ("exact", "probability"),
            ("share", "as a share", "percent"),
            ("payoff", "expected payoff"),
        )
        frame = pl.DataFrame(mixed, schema=[column[0] for column in columns], orient="row")
        yield "mixed-equilibria", "game", "Extreme mixed equilibria, pure ones among them", columns, frame
