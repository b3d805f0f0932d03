"""The built-in example: item scores of tiny models, measured, with their welfare, prices and ranking game.

The files ship in ``example/``, whose README says what each one is and how all were made (``examples/lab/``).
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from benchwright.config import CONFIG_NAME, Config, load_config
from benchwright.errors import DataError, Fault
from benchwright.logs.source_file import SourceFile, read_source

FOLDER = Path(__file__).parent / "example"
PANEL = FOLDER / "panel"
RUNS = FOLDER / "runs.csv"
WELFARE = FOLDER / "welfare"
GAME = FOLDER / "game.toml"
NAME = "the built-in example"
MEASURED = (
    "Measured on tiny models.",
    "This is the built-in example: language models that a laptop trains in minutes, from nothing, on generated text, "
    "asked generated questions. Every figure follows from scores that were measured on them, and says nothing about "
    "models that anybody uses.",
)


def over_example(config: Config) -> Config:
    """Return the example's choices (prices in seconds of a core, a budget that fits) with those of a user over them.

    A metric that a benchwright.toml names for other logs, and the example lacks, does not count.
    """
    own = load_config(FOLDER / CONFIG_NAME, source=NAME)
    both, key = config.over(own), "estimates.metric"
    here = {path.stem for path in PANEL.glob("*.parquet")}
    if both.estimates.metric in here or both.sources[key].startswith("--"):
        return both
    estimates = replace(both.estimates, metric=own.estimates.metric)
    return replace(both, estimates=estimates, sources={**both.sources, key: NAME})


def example_files() -> tuple[SourceFile, ...]:
    """Return the files of the scores that an audit of the example reads, with their checksums."""
    faults: list[Fault] = []
    read = [read_source(path, faults) for path in (*sorted(PANEL.glob("*.parquet")), RUNS, FOLDER / CONFIG_NAME)]
    if faults:
        raise DataError(f"{NAME} is not whole", faults=faults, hint="install benchwright again")
    return tuple(one[1] for one in read if one is not None)
