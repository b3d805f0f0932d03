"""What ``benchwright game`` reads: each kind of input in one row of a table, recognised by content.

==========================  ======================================================  ============================
kind                        what it holds                                           answer
==========================  ======================================================  ============================
game file                   TOML, see :mod:`benchwright.game_answers.files`         verdict, threshold
score tables                JSON with direct_eval and train_before_test             two protocols compared
contest of two              JSON: effort_levels, prize, cost_per_level              all equilibria, exact
scores before and after     table: model, TASK_before and TASK_after                two protocols compared
scores under conditions     table: model, task, condition, score                    two protocols compared
submissions                 table: developer, n_items, score, public                what luck explains
submissions by item         table: developer, variant, doc_id, score                what luck explains
scores by effort            what ``ingest`` reads, with a step or a dose            verdict, threshold, intervals
==========================  ======================================================  ============================
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict, Unpack

from benchwright.errors import UsageError
from benchwright.game_answers.answer import Progress, answer_game
from benchwright.game_answers.cell_table import open_cells, read_cells
from benchwright.game_answers.condition_table import has_conditions
from benchwright.game_answers.contest import is_contest, read_contest
from benchwright.game_answers.curve_game import CurveGame, setting
from benchwright.game_answers.files import GameFile, read_game
from benchwright.game_answers.rewards import Rewards, rewards_of_text
from benchwright.game_answers.toml_parts import whole
from benchwright.logs.log_file import Head, LogFile
from benchwright.logs.score_tables import sniff_scores, sniff_trajectory
from benchwright.logs.table_columns import plain, recognise
from benchwright.ranking_game.costs import PowerCosts
from benchwright.ranking_game.input_columns import (
    ITEM_SUBMISSIONS,
    LONG,
    SUBMISSIONS,
    model_column,
    paired_tasks,
)

if TYPE_CHECKING:
    from benchwright.game_answers.answer import GameAnswer
    from benchwright.ranking_game.private_variants import VariantReport
    from benchwright.ranking_game.protocols import ProtocolComparison, ScoreTables

GameResult: TypeAlias = "GameAnswer | ProtocolComparison | VariantReport"


class GameOptions(TypedDict, total=False):
    """What may be said beside the input; None says nothing. An input that has no use for one refuses it."""

    delta: float | None
    delta_max: float | None
    race: bool | None
    seed: int | None
    task: str | None
    metric: str | None
    filter: str | None
    models: list[str] | tuple[str, ...] | None
    effort: str | None
    items: int | None
    rewards: str | Rewards | None
    kappa: float | None
    capability: str | tuple[str, ...] | None
    lower: str | float | None
    upper: str | float | None
    beta: str | float | None
    deltas: tuple[float, ...] | None
    replicates: int | None
    price: float | None
    conditions: tuple[str, ...] | None


OF_GAMES = frozenset(("delta", "delta_max", "race", "deltas", "rewards", "kappa"))
ALL = frozenset(GameOptions.__annotations__)
OF_CURVES = ALL - {"conditions"}
SEED = frozenset(("seed",))
WHICH = frozenset(("models", "task", "metric", "filter", "conditions"))
Given = Mapping[str, Any]


def answer_file(path: str | Path, *, progress: Progress | None = None, **options: Unpack[GameOptions]) -> GameResult:
    """Answer whatever ranking game a file or folder holds.

    Parameters
    ----------
    path
        One of the kinds of input in the module's text.
    progress
        Called with the step at work.
    **options
        See :class:`GameOptions` and, of scores by effort, :class:`~benchwright.game_answers.curve_game.CurveGame`.

    Raises
    ------
    UsageError
        The file is missing, of no kind that is known (all kinds are listed, and what the nearest one lacks), or has no
        use for an option that is given.
    DataError
        The data cannot support an answer.
    """
    file, say = Path(path), progress or (lambda _: None)
    given = {name: value for name, value in options.items() if value is not None and value is not False}
    if unknown := given.keys() - ALL:
        raise UsageError(f"no option is called {', '.join(sorted(unknown))}", hint=f"options: {', '.join(sorted(ALL))}")
    if "seed" in given:
        whole(given["seed"], "`seed`")
    kind = kind_of(file)
    _refuse(kind.name, given, kind.options)
    return kind.answer(file, given, say)


def _refuse(what: str, given: Given, allowed: frozenset[str]) -> None:
    if extra := [name for name in given if name not in allowed]:
        options = ", ".join(f"--{name.replace('_', '-')}" for name in extra)
        raise UsageError(f"{what}: no use for {options}")


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of input: its name, what it needs in words and as columns, which options it takes, and its answer."""

    name: str
    needs: str
    columns: tuple[str, ...]
    options: frozenset[str]
    answer: Callable[[Path, Given, Progress], GameResult]


def _game_file(path: Path, given: Given, say: Progress) -> GameResult:
    read = read_game(path)
    if isinstance(read, CurveGame):
        return _curves(read, given, say)
    _refuse("a game without [curves]", given, OF_GAMES if read.race or "race" in given else OF_GAMES - {"deltas"})
    race, deltas = given.get("race", read.race), given.get("deltas", ())
    return answer_game(changed_game(read, given), race=race, deltas=deltas, progress=say)


def changed_game(file: GameFile, given: Given) -> GameFile:
    """Return a game with options in place of what its file says."""
    settings = {name: given.get(name) for name in ("delta", "delta_max", "kappa")}
    return file.changed(rewards=_rewards(given.get("rewards")), **settings)


def _rewards(value: str | Rewards | None) -> Rewards | None:
    return rewards_of_text(value) if isinstance(value, str) else value


def _contest(path: Path, given: Given, say: Progress) -> GameResult:
    say("solving")
    return answer_game(read_contest(path), progress=say)


def _score_tables(path: Path, given: Given, say: Progress) -> GameResult:
    from benchwright.game_answers.protocol_tables import read_protocols

    return _compared(read_protocols(path), given, say)


def _before_after(path: Path, given: Given, say: Progress) -> GameResult:
    from benchwright.game_answers.protocol_tables import protocols_of_cells

    return _compared(protocols_of_cells(read_cells(path)), given, say)


def _under_conditions(path: Path, given: Given, say: Progress) -> GameResult:
    from benchwright.game_answers.condition_table import protocols_of_conditions

    which = {name: given[name] for name in WHICH if name in given}
    return _compared(protocols_of_conditions(read_cells(path), **which), given, say)


def _compared(tables: ScoreTables, given: Given, say: Progress) -> ProtocolComparison:
    import numpy as np

    from benchwright.ranking_game.protocols import compare_protocols

    say("comparing protocols")
    return compare_protocols(tables, rng=np.random.default_rng(given.get("seed", 0)))


def _submissions(path: Path, given: Given, say: Progress) -> GameResult:
    import polars as pl

    from benchwright.ranking_game.private_variants import report_variants

    table = read_cells(path)
    numbers = {name: table.numbers(name) for name in ("n_items", "score", "public")}
    return report_variants(pl.DataFrame({"developer": table.texts("developer"), **numbers}))


def _item_submissions(path: Path, given: Given, say: Progress) -> GameResult:
    import numpy as np
    import polars as pl

    from benchwright.ranking_game.private_variants import report_item_variants

    table = read_cells(path)
    columns: dict[str, Any] = {name: table.texts(name) for name in ITEM_SUBMISSIONS[:3]}
    columns |= {name: table.numbers(name) for name in ("score", "public") if table.column(name)}
    say("resampling items")
    return report_item_variants(pl.DataFrame(columns), rng=np.random.default_rng(given.get("seed", 0)))


def _scores_by_effort(path: Path, given: Given, say: Progress) -> GameResult:
    return _curves(CurveGame(path), given, say)


def _curves(game: CurveGame, given: Given, say: Progress) -> GameAnswer:
    """Answer a game on curves, with options in place of what its file says."""
    from benchwright.game_answers.curve_answer import answer_curves

    return answer_curves(changed_curves(game, given), progress=say)


def changed_curves(game: CurveGame, given: Given) -> CurveGame:
    """Return a game on curves with options in place of what its file says."""
    new = dict(given)
    if "delta" in new:
        new["tune_before_test"] = new.pop("delta")
    if "kappa" in new:
        new["cost"] = PowerCosts(new.pop("kappa"))
    if "rewards" in new:
        new["rewards"] = _rewards(new["rewards"])
    for name in ("lower", "upper", "beta"):
        if name in new:
            new[name] = setting(new[name], f"`{name}`")
    for name in ("models", "deltas"):
        if name in new:
            new[name] = tuple(new[name])
    return game.with_options(**new)


GAME_FILE = Kind("a game file", "a TOML file (.toml)", (), OF_CURVES, _game_file)
SCORE_TABLES = Kind(
    "score tables", "JSON: {direct_eval: {TASK: {MODEL: SCORE}}, train_before_test: ...}", (), SEED, _score_tables
)
CONTEST = Kind(
    "a contest of two", "JSON: {players: 2, effort_levels, prize, cost_per_level, tie_share}", (), frozenset(), _contest
)
BEFORE_AFTER = Kind(
    "scores before and after",
    "model, and TASK_before with TASK_after (or _direct, _tuned); or model, task, direct, tuned",
    ("model", *LONG),
    SEED,
    _before_after,
)
UNDER_CONDITIONS = Kind(
    "scores under conditions",
    "model, task, condition (such as base and tuned) and score, perhaps metric, filter, stderr",
    ("model", "task", "condition", "score"),
    SEED | WHICH,
    _under_conditions,
)
BY_ITEM = Kind(
    "submissions by item", f"{', '.join(ITEM_SUBMISSIONS)}, perhaps public", ITEM_SUBMISSIONS, SEED, _item_submissions
)
SUBMITTED = Kind("submissions", f"{', '.join(SUBMISSIONS)}, perhaps variant", SUBMISSIONS, frozenset(), _submissions)
BY_EFFORT = Kind(
    "scores by effort",
    "model, task, step (or dose) and score; or logs of checkpoints as `ingest` reads them",
    ("model", "step", "score"),
    OF_CURVES,
    _scores_by_effort,
)
KINDS = (GAME_FILE, SCORE_TABLES, CONTEST, BEFORE_AFTER, UNDER_CONDITIONS, BY_ITEM, SUBMITTED, BY_EFFORT)


def kind_of(path: Path) -> Kind:
    """Return what kind of input a path is, by its content; raise with all kinds and the nearest miss."""
    if path.is_dir():
        return BY_EFFORT
    if path.suffix == ".toml":
        return GAME_FILE
    if not path.is_file():
        raise UsageError(f"{path} is no file or folder", hint="give a game file, a table, or logs of checkpoints")
    head = Head(path.name, LogFile(path, path.name).head())
    if not head.content and path.stat().st_size:
        raise UsageError(f"{path} cannot be read", hint="may it be read, and is it whole if it is compressed?")
    if not head.content.strip():
        raise UsageError(f"{path} is empty")
    if head.content.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise UsageError(f"{path} is UTF-16 text", hint="save it as UTF-8")
    if sniff_scores(head):
        return SCORE_TABLES
    if sniff_trajectory(head):
        return BY_EFFORT
    if is_contest(head.content):
        return CONTEST
    table = open_cells(path)
    names = [] if table is None else table.names
    known = {plain(name) for name in names}
    for kind in (BY_ITEM, SUBMITTED):
        if known.issuperset(kind.columns):
            return kind
    if model_column(names) and (known.issuperset(LONG) or paired_tasks(names)):
        return BEFORE_AFTER
    roles = recognise(names)
    if roles.keys() & {"step", "dose", "tokens"}:
        return BY_EFFORT
    if has_conditions(names):
        return UNDER_CONDITIONS
    raise _unknown(path, known)


def _unknown(path: Path, names: set[str]) -> UsageError:
    """Return the error for a file of no kind: what each kind needs, and what the nearest one lacks."""
    lines = [f"{path} is nothing that `benchwright game` reads:", *(f"  {kind.name}: {kind.needs}" for kind in KINDS)]
    share = {kind: len(names & {*kind.columns}) / len(kind.columns) for kind in KINDS if kind.columns}
    near = max(share, key=lambda kind: share[kind])
    lacking = ", ".join(f"`{name}`" for name in near.columns if name not in names)
    hint = f"nearest is {near.name}, without {lacking}" if share[near] > 0 else None
    return UsageError("\n".join(lines), hint=hint)
