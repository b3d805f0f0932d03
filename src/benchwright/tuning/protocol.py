"""The protocol of a tuning experiment as one TOML file.

::

    seeds = [0, 1, 2]               # of the tuning: order of the examples, adapters
    models = ["Qwen/Qwen2.5-0.5B"]  # hub names or folders (relative to this file); or, with a name of their own:

    [[models]]
    name = "h64"
    path = "models/h64-seed{seed}"  # a model a seed, where the name of the folder says so
    revision = "main"               # of a hub

    [[benchmarks]]                  # items with choices: lines of JSON with doc_id, question, choices, answer
    name = "facts"                  # (its place from 0, or the right choice itself), perhaps cluster
    train = "train.jsonl"
    test = "test.jsonl"
    validation = "validation.jsonl" # or validation_share = 0.1 of the train split; only for select = "best"
    template = "{question}"         # of the prompt; any key of an item in braces
    delimiter = " "                 # between prompt and choice

    [[benchmarks]]                  # or a multiple-choice task of lm-eval that has a train split
    task = "winogrande"
    include = "tasks"               # folder of task files of your own
    limit = 1000                    # only so many test items

    [tuning]                        # benchwright.tuning.settings has every key with its unit and reason
    amount = 300
    every = 50
    levels = [0, 100, 300]

    [adversary]                     # left out: no adversaries
    every = 5
    maximum = 500

    [launch]
    workers = 2

    [game]                          # rewards and costs, and how curves are fitted: the keys of a game file that has
    rewards = { form = "per-rank", gap = 1000 }     # [curves], those of its [curves] too, without `file`
    lower = 0.25

A model's own seeds (pre-training) and those of the tuning are one list: run s of model m starts from its path with s in
place of ``{seed}``.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar

from benchwright._choice import Checked, choice
from benchwright._shown import Shown
from benchwright.errors import UsageError
from benchwright.game_answers.curve_game import KEYS as OF_CURVES
from benchwright.game_answers.toml_parts import Table, inside, known, section, tables, text, whole
from benchwright.tuning.settings import AdversarySettings, LaunchSettings, TuningSettings

Section = TypeVar("Section", bound=Checked)

KEYS = ("seeds", "models", "benchmarks", "tuning", "adversary", "launch", "game")
OF_GAME = ("rewards", "tune_before_test", "cost", "developers", "threshold", "designer", "race")
NOT_OF_GAME = ("file", "task", "metric", "filter", "models", "effort", "items")  # the experiment says them
PLACEHOLDER = "{seed}"


@dataclass(frozen=True, slots=True)
class TunedModel:
    """A model: its name on the board, where it is, and its revision on a hub."""

    name: str
    path: str
    revision: str | None = None

    def at(self, seed: int) -> str:
        """Where the model of a seed is."""
        return self.path.replace(PLACEHOLDER, str(seed))


@dataclass(frozen=True, slots=True)
class Benchmark(Checked):
    """Items to tune on and items to be tested on: files of JSON lines, or a task of lm-eval."""

    name: str = choice("", unit="name", why="of the task in rows and tables")
    train: str | None = choice(None, unit="path", why="examples to tune on")
    test: str | None = choice(None, unit="path", why="items that are scored")
    validation: str | None = choice(None, unit="path", why="items that select the best checkpoint")
    validation_share: float | None = choice(
        None, unit="share", low=0, high=0.9, why="of the train split, in place of it"
    )
    template: str = choice("{question}", unit="text", why="the prompt, with keys of an item in braces")
    delimiter: str = choice(" ", unit="text", why="between prompt and choice")
    task: str | None = choice(None, unit="name", why="of lm-eval")
    include: str | None = choice(None, unit="path", why="folder of task files of your own")
    limit: int | None = choice(None, unit="items", low=1, high=10**9, why="of the test split, the first ones")

    def __post_init__(self) -> None:
        Checked.__post_init__(self)
        name = self.name.strip() or self.task or (Path(self.test).stem if self.test else "")
        object.__setattr__(self, "name", name)
        if (self.task is None) == (self.test is None):
            raise UsageError(f"benchmark {name or '?'} needs `test` (a file) or `task` (of lm-eval), one of them")
        if self.task is None and self.train is None:
            raise UsageError(
                f"benchmark {name} has no train split: `train` is missing",
                hint="tune-before-test needs examples that are not among the test items",
            )
        if self.task is not None and (self.train is not None or self.validation is not None):
            raise UsageError(f"benchmark {name}: an lm-eval task has its own splits, leave `train`, `validation` out")


@dataclass(frozen=True, slots=True)
class Protocol(Shown):
    """A tuning experiment, as its file states it.

    Attributes
    ----------
    models, benchmarks, seeds
        Every model is tuned on every benchmark, once a seed.
    tuning, adversary, launch
        ``adversary`` is None where there are none.
    game : mapping
        Rewards, costs and the fit of curves, by the keys of a game file.
    folder : Path
        What relative paths are relative to.
    """

    models: tuple[TunedModel, ...]
    benchmarks: tuple[Benchmark, ...]
    tuning: TuningSettings
    seeds: tuple[int, ...] = (0,)
    adversary: AdversarySettings | None = None
    launch: LaunchSettings = field(default_factory=LaunchSettings)
    game: Mapping[str, Any] = field(default_factory=dict)
    folder: Path = Path()

    def __post_init__(self) -> None:
        for what, names in (
            ("models", [model.name for model in self.models]),
            ("benchmarks", [benchmark.name for benchmark in self.benchmarks]),
            ("seeds", [*map(str, self.seeds)]),
        ):
            if not names:
                raise UsageError(f"`{what}` is empty: the experiment needs at least one")
            if twice := next((name for name in names if names.count(name) > 1), None):
                raise UsageError(f"`{what}`: {twice} is there twice")
        needs = [one.name for one in self.benchmarks if one.validation is None and not one.validation_share]
        needs = [name for name in needs if next(b for b in self.benchmarks if b.name == name).task is None]
        if self.tuning.select == "best" and needs:
            raise UsageError(
                f'[tuning] select = "best": {needs[0]} has no validation items',
                hint="give its benchmark `validation` or `validation_share`",
            )
        if self.adversary is not None and self.tuning.schedule == "annealed":
            raise UsageError(
                "[adversary] goes on from checkpoints, and an annealed run has none that is a level but its last",
                hint='[tuning] schedule = "constant"',
            )
        if self.adversary is not None and len(self.models) < 2:
            raise UsageError("[adversary] needs two models, one to overtake the other")

    @property
    def adversary_levels(self) -> tuple[float, ...]:
        """Levels that adversaries start from; those of the tuning, else 0."""
        if self.adversary is None:
            return ()
        given = self.adversary.levels if self.adversary.levels is not None else self.tuning.levels
        return (0.0,) if given is None else tuple(sorted(set(given)))

    def place(self, path: str) -> str:
        """A path relative to the protocol's file as an absolute one; a hub's name as it is."""
        found = self.folder / Path(path).expanduser()
        return str(found.resolve()) if found.exists() or looks_local(path) else path

    def to_dict(self) -> dict[str, Any]:
        """What the file states, defaults filled in, in types that JSON knows."""
        return {
            "seeds": list(self.seeds),
            "models": [asdict(model) for model in self.models],
            "benchmarks": [asdict(benchmark) for benchmark in self.benchmarks],
            "tuning": asdict(self.tuning),
            "adversary": None if self.adversary is None else asdict(self.adversary),
            "launch": asdict(self.launch),
            "game": dict(self.game),
        }


def looks_local(path: str) -> bool:
    """Whether a model's path can only be a folder, and not a name on a hub.

    >>> looks_local("Qwen/Qwen2.5-0.5B"), looks_local("./tiny"), looks_local("models/a/b")
    (False, True, True)
    """
    return path.startswith((".", "/", "~")) or path.count("/") > 1 or "\\" in path


def read_protocol(path: str | Path) -> Protocol:
    """Read a protocol's file; the module's text gives its layout.

    Raises
    ------
    UsageError
        The file is missing or no TOML, or says something that makes no experiment; names the file and the key.
    """
    file = Path(path)
    try:
        data = tomllib.loads(file.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise UsageError(f"{file}: cannot be read: {error.strerror}", hint="give the path of a protocol") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{file}: not a TOML file: {error}") from None
    with inside(file.name):
        known(data, KEYS, "a key of a protocol")
        game = section(data, "game", needed=False)
        known(game, (*OF_GAME, *(key for key in OF_CURVES if key not in NOT_OF_GAME)), "a key of [game]")
        adversary = made(AdversarySettings, section(data, "adversary"), "[adversary]") if "adversary" in data else None
        return Protocol(
            models=_models(data),
            benchmarks=tuple(made(Benchmark, table, "[[benchmarks]]") for table in tables(data, "benchmarks")),
            tuning=made(TuningSettings, section(data, "tuning"), "[tuning]"),
            seeds=_seeds(data.get("seeds", [0])),
            adversary=adversary,
            launch=made(LaunchSettings, section(data, "launch", needed=False), "[launch]"),
            game=dict(game),
            folder=file.parent.resolve(),
        )


def made(kind: type[Section], table: Table, where: str) -> Section:
    """Return a section of settings from its table."""
    entries: Any = fields(kind)  # type: ignore[arg-type]
    known(table, [entry.name for entry in entries], f"a key of {where}")
    missing = [e.name for e in entries if e.default is MISSING and e.name not in table]
    if missing:
        raise UsageError(f"{where}: `{missing[0]}` is missing")
    return kind(**table)


def _seeds(value: Any) -> tuple[int, ...]:
    if not isinstance(value, list):
        raise UsageError(f"`seeds` must be a list of whole numbers, got {value!r}")
    return tuple(whole(seed, "`seeds`") for seed in value)


def _models(data: Table) -> tuple[TunedModel, ...]:
    given = data.get("models", [])
    if not isinstance(given, list):
        raise UsageError("`models` must be a list of hub names or folders, or tables [[models]]")
    found = []
    for k, entry in enumerate(given, start=1):
        if not isinstance(entry, Mapping):
            entry = {"path": entry}
        known(entry, ("name", "path", "revision"), f"a key of model {k}")
        path = text(entry.get("path"), f"model {k}: `path`")
        name = text(
            entry.get("name", path.rstrip("/").replace(PLACEHOLDER, "").rsplit("/", 1)[-1]), f"model {k}: `name`"
        )
        revision = text(entry["revision"], f"model {k}: `revision`") if "revision" in entry else None
        found.append(TunedModel(name, path, revision))
    return tuple(found)
