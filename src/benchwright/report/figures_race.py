"""The figures of mixed play with their captions: spend and wrong orders, over tuning and by developer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import polars as pl

from benchwright._words import first_of
from benchwright.ranking_game.arms_race import ArmsRace
from benchwright.ranking_game.race_over_tuning import RaceOverTuning
from benchwright.report import charts_game as charts
from benchwright.report.game_words import leaving
from benchwright.report.style import Chart

Row = tuple[str, str, str, str, Chart | None]


def race_figures(race: RaceOverTuning, unit: str) -> Iterator[Row]:
    """Yield what gaming costs and how often the board is wrong, by level of common tuning."""
    frame = race.to_frame()
    kept = leaving(*(float(frame[name].max() or 0.0) for name in ("exploitability", "off_grid")))  # type: ignore[arg-type]
    caption = f"At levels with a pure equilibrium (squares) nobody pays; elsewhere (circles) play is mixed: {kept}."
    if frame["spend"].null_count():
        caption += " Levels without a mark are not decided."
    yield (
        "race-spend",
        "game",
        "What developers spend on gaming, by level of common tuning",
        f"Expected cost of all developers' effort. {caption}",
        charts.spend_over_tuning(frame, unit),
    )
    yield (
        "race-wrong-order",
        "game",
        "How often the board is wrong, by level of common tuning",
        "Probability that the published order is not that of capability, and that its first is not the most capable. "
        f"{caption}",
        charts.wrong_over_tuning(frame, unit),
    )


def mixed_play(race: ArmsRace, names: Sequence[str]) -> Row:
    """Return what each developer spends in mixed play."""
    order = [int(i) for i in race.game.order][: charts.MAX_DEVELOPERS]
    rows = pl.DataFrame(
        {"label": [names[i] for i in order]}
        | {name: getattr(race, name)[order] for name in ("spend", "payoff", "stays")}
    )
    caption = (
        f"Expected cost of effort, most capable first, at tune-before-test level {race.game.tune_before_test:g}; "
        f"{leaving(race.exploitability, race.off_grid)}."
    )
    caption += first_of(charts.MAX_DEVELOPERS, race.game.n, "developer")
    title = "What each developer spends in mixed play"
    return "mixed-play-spend", "game", title, caption, charts.spend_of_developers(rows)
