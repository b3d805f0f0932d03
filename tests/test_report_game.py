"""The ranking game in a report: words no stronger than the evidence, charts that do not mislead, safe files."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from benchwright.cli import app
from benchwright.config import Config
from benchwright.errors import UsageError
from benchwright.game_answers.answer import GameAnswer
from benchwright.game_answers.inputs import GameResult, answer_file
from benchwright.pipeline import audit
from benchwright.ranking_game.equilibrium import GameSolution
from benchwright.ranking_game.forms import PowerLawCurves, TranslationCurves
from benchwright.ranking_game.game import RankingGame
from benchwright.ranking_game.race_over_tuning import race_over_tuning
from benchwright.report.build import write_game_report, write_report
from benchwright.report.figures import figures, game_figures
from benchwright.report.figures_curves import overtaking_intervals
from benchwright.report.findings import game_findings
from benchwright.report.html import render_page
from benchwright.report.page_audit import audit_page
from benchwright.report.page_game import game_assumptions, game_notes, game_page
from benchwright.report.tables import game_tables
from benchwright.simulate import simulate_item_tables
from game_reports import EVIL, GAMES, answer_of, example, hostile, protocols, variants
from panel_reports import drawn, named
from tables import write_tables


@pytest.fixture(scope="module")
def curves() -> GameAnswer:
    """The example of measured curves, with few draws."""
    answer = answer_file(GAMES / "curves.toml", replicates=40)
    assert isinstance(answer, GameAnswer)
    return answer


def told(result: GameResult) -> dict[str, str]:
    """Findings by title; every number in them is a number."""
    found = {finding.title: finding.text for finding in game_findings(result)}
    for text in (*found, *found.values()):
        assert not {"nan", "inf"} & set(re.sub(r"[(),;:]", " ", text).lower().split()), text
        assert "None" not in text.removeprefix("None of")
        assert "  " not in text
        assert "_" not in text.replace("pythia_", "")
    return found


KINDS: dict[str, Callable[[], GameResult]] = {
    "verdict none": lambda: example("g1", race=True),
    "verdict exists": lambda: example("g1b"),
    "free effort": lambda: example("g3"),
    "no threshold": lambda: example("g4"),
    "threshold": lambda: example("g5", race=True),
    "finite": lambda: example("three-levels"),
    "protocols": protocols,
    "variants": variants,
}


@pytest.mark.parametrize("kind", KINDS)
def test_everything_of_every_kind_can_be_shown(kind: str) -> None:
    result = KINDS[kind]()
    check_shown(result)


def test_everything_of_curves_can_be_shown(curves: GameAnswer) -> None:
    check_shown(curves)
    names = {figure.name for figure in game_figures(curves)}
    assert names >= {"score-curves", "overtaking-costs", "margin-over-tuning", "effort-over-tuning"}
    assert names >= {"stable-over-tuning", "capability-order"}
    tables = {table.name for table in game_tables(curves)}
    assert tables >= {"verdict", "overtaking", "stable-levels", "required-effort", "threshold-draws", "curve-fits"}
    assert tables >= {"assumptions", "results-at-risk", "capability", "laws", "designer", "margins"}


def check_shown(result: GameResult) -> None:
    drawings, tables = game_figures(result), game_tables(result)
    for things in (drawings, tables):
        assert {thing.section for thing in things} <= {"game"}
        assert len({thing.name for thing in things}) == len(things)
        assert all(re.fullmatch(r"[a-z]+(-[a-z]+)*", thing.name) for thing in things)
    for figure in drawings:
        json.loads(figure.for_page())
        assert figure.svg().startswith("<svg")
    for table in tables:
        assert len(list(table.rows())) == table.frame.height
        assert table.latex().count(r"\\") == table.frame.height + 1
    assert told(result)
    page = render_page(game_page(result), drawings, "")
    assert page.count("<figure") == len(drawings)
    assert page.count("<details>") == len(tables)
    assert ('id="notes"' in page) == bool(game_notes(result))


@pytest.mark.slow
def test_the_folder_holds_the_answer_and_is_the_same_twice(tmp_path: Path) -> None:
    def written(out: Path) -> dict[str, bytes]:
        write_game_report(example("g5", race=True), out, source=GAMES / "g5.toml")
        return {str(path.relative_to(out)): path.read_bytes() for path in sorted(out.rglob("*")) if path.is_file()}

    one, two = written(tmp_path / "one"), written(tmp_path / "two")
    assert one == two
    assert {"report.html", "summary.json", "figures/margin-over-tuning.svg", "tables/verdict.csv"} <= set(one)
    summary = json.loads(one["summary.json"])
    assert summary["game"] == json.loads(json.dumps(example("g5", race=True).to_dict()))
    assert summary["game"]["threshold"]["delta"] == pytest.approx(1.0)
    assert [file["name"] for file in summary["source"]["files"]] == ["g5.toml"]
    with pytest.raises(UsageError, match="already holds a report"):
        write_game_report(example("g1"), tmp_path / "one")
    write_game_report(example("g1"), tmp_path / "one", overwrite=True, page=False, figures=False)
    assert not (tmp_path / "one" / "report.html").exists()


def test_verdicts_are_told_as_they_are() -> None:
    assert "This ranking is worth gaming at tune-before-test level 0" in told(example("g1"))
    found = told(example("g1b"))
    assert "the only one" in found["Gaming this ranking does not pay at tune-before-test level 0"]
    assert (
        "at most its free effort" in told(example("g3"))["Gaming this ranking does not pay at tune-before-test level 0"]
    )
    close = RankingGame(TranslationCurves([1.0, 1.0 - 1e-16 * 2], "exponential"), [1.0, 0.0])
    tied = replace(answer_of(close), solution=replace(answer_of(close).solution, pure_equilibrium="undecided"))  # type: ignore[type-var]
    (title,) = [title for title in told(tied) if title.startswith("Whether this ranking")]
    assert title.endswith("is not decided")


def test_thresholds_are_told_as_they_are() -> None:
    found = told(example("g5"))
    assert "just below, b overtakes a with profit" in found["Common tuning of 1 stops it"]
    assert "No common tuning stops it, however much" in told(example("g4"))
    steep = RankingGame(PowerLawCurves([0.5, 0.0], [0.5, 1.0]), [2.0, 0.0], names=("a", "b"))
    found = told(answer_of(steep))
    assert "larger levels were not looked at" in found["Common tuning up to 100 does not stop it for good"]


def test_a_verdict_that_draws_contradict_is_not_settled(curves: GameAnswer) -> None:
    margins = curves.margins
    assert margins is not None
    for share, settled in ((0.5, False), (0.0, True)):
        answer = replace(curves, margins=replace(margins, share_exists=np.full(margins.deltas.shape, share)))
        titles = list(told(answer))
        assert ("not settled" not in titles[0]) == settled
        assert "In 50 % of draws" in told(answer)[titles[0]] or settled


def test_a_threshold_that_draws_contradict_is_not_settled(curves: GameAnswer) -> None:
    drawn, found = curves.threshold_draws, curves.threshold
    assert drawn is not None
    assert found is not None
    shares = dict.fromkeys(drawn.shares, 0.0)
    mixed = replace(drawn, shares=shares | {"found": 0.6, "none_up_to_max": 0.4}, interval=np.array([5.0, np.inf]))
    answer = replace(curves, threshold_draws=mixed, threshold=replace(found, status="found", delta=7.0))
    text = told(answer)["How much common tuning stops it is not settled"]
    assert "the threshold is 5 to none up to" in text
    assert "40 % have none" in text
    never = replace(mixed, interval=np.array([np.inf, np.inf]), shares=shares | {"none_up_to_max": 0.99, "found": 0.01})
    text = told(replace(answer, threshold_draws=never))["How much common tuning stops it is not settled"]
    assert "99 % have no threshold up to" in text
    figure = named(game_figures(answer))["margin-over-tuning"]
    assert "open to the right" in figure.caption


def test_what_is_out_of_reach_is_drawn_as_such_and_never_as_a_cost() -> None:
    game = RankingGame(PowerLawCurves([1.0, 0.0, -1.0], upper=[1.0, 0.5, 0.9]), [3.0, 1.0, 0.0], names=("a", "b", "c"))
    answer = answer_of(game)
    figure = named(game_figures(answer))["overtaking-costs"]
    rows = {row["label"]: row for row in drawn(figure) if "label" in row}
    assert rows["b"]["pays"] == "out of reach"
    assert rows["b"]["cost"] is None
    assert "out of reach" in json.dumps(figure.spec)
    table = named(game_tables(answer))["overtaking"]
    assert table.frame.filter(pl.col("developer") == "b")["required_effort"].to_list() == [None]
    assert "for 1 it is out of reach" in json.dumps(told(answer))


def test_only_some_of_many_developers_are_drawn_and_it_is_said() -> None:
    theta = np.linspace(3.0, 1.0, 45)
    rewards = np.linspace(1.0, 0.0, 45)
    shown = named(game_figures(answer_of(RankingGame(TranslationCurves(theta, "exponential"), rewards))))
    assert "The first 30 of 45 developers" in shown["score-curves"].caption
    assert "The 30 tightest of 44" in shown["overtaking-costs"].caption
    assert len({row["developer"] for row in drawn(shown["score-curves"]) if "developer" in row}) == 30


def test_hostile_names_are_inert(tmp_path: Path) -> None:
    out = write_game_report(hostile(race=True), tmp_path / "out")
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    for path in out.rglob("*.csv"):
        assert not re.search(r"(^|,)\"?[=+@]", path.read_text(encoding="utf-8"), flags=re.MULTILINE), path.name
    for path in (out / "tables").glob("*.tex"):
        assert not re.search(r"(?<!\\)[$#_^~]", path.read_text(encoding="utf-8")), path.name
    summary = json.loads((out / "summary.json").read_text(encoding="utf-8"))
    assert set(summary["game"]["developers"]) == set(EVIL)


def test_assumptions_say_what_was_stated_and_what_was_not(curves: GameAnswer) -> None:
    given = {row.key: row for row in game_assumptions(example("g5"))}
    assert given["game.rewards"].value == (2.0, 0.0)
    assert given["game.rewards"].source == "the game"
    assert given["game.tune_before_test"].source == "default"
    of_curves = {row.key: row for row in game_assumptions(curves)}
    assert of_curves["game.replicates"].value == 40
    assert of_curves["game.replicates"].source == "the game"
    assert of_curves["game.capability"].value is not None
    assert game_assumptions(variants()) == ()


def test_bands_and_points_are_those_of_the_fits(curves: GameAnswer) -> None:
    fits, draws = curves.fits, curves.draws
    assert fits is not None
    assert draws is not None
    rows = drawn(named(game_figures(curves))["score-curves"])
    points = [row for row in rows if "noise" in row]
    assert len(points) == int(fits.observations.present.sum())
    assert all(row["low"] <= row["score"] <= row["high"] for row in points)
    lines: list[dict[str, Any]] = [row for row in rows if "noise" not in row and row.get("effort") == 0]
    for row in lines:
        i = fits.models.index(row["developer"])
        assert row["score"] == pytest.approx(float(fits.score(i, 0.0)))
        low, high = draws.score_interval(i, 0.0)
        assert (row["low"], row["high"]) == pytest.approx((float(low), float(high)))


def test_protocols_and_variants_in_words() -> None:
    found = told(protocols())
    assert any(title.startswith("Benchmarks agree more after common tuning") for title in found)
    found = told(variants())
    assert "Best and mean submission give different orders" in found
    assert "Luck explains the lead" in found


def test_a_margin_beyond_the_chart_leaves_at_its_edge() -> None:
    figure = named(game_figures(example("g5")))["margin-over-tuning"]
    margins = [row["margin"] for row in drawn(figure) if "margin" in row]
    seen = [value for value in margins if value is not None]
    assert max(seen) == 20.0  # ten times the reward of 2
    assert seen == sorted(seen)
    assert margins[len(seen) :] == [None] * (len(margins) - len(seen))
    assert "leaves the chart at 10 times" in figure.caption


@pytest.mark.slow
def test_an_audit_takes_a_game_as_a_section(tmp_path: Path) -> None:
    few = Config().replace({"resampling.replicates": 100}, source="a test")
    tables = simulate_item_tables()
    without = audit(tables, config=few)
    report = audit(tables, config=few, game=GAMES / "g5.toml")
    assert without.game is None
    assert without.to_dict()["game"] is None
    assert report.to_dict()["game"] == example("g5").to_dict()
    assert report.to_dict()["weights"] == without.to_dict()["weights"]
    page = render_page(audit_page(report), figures(report), "")
    sections = re.findall(r'<section id="([a-z]+)">', page)
    assert sections[-4:] == ["game", "assumptions", "notes", "provenance"]
    assert "Ranking game: is the ranking worth gaming?" in page
    assert "game.rewards" in page
    assert "g5.toml" in page
    out = write_report(report, tmp_path / "out", page=False, figures=False)
    assert (out / "tables" / "overtaking.csv").is_file()
    assert audit(tables, config=few, game=example("g1")).to_dict()["game"]["pure_equilibrium"] == "none"


def test_commands_write_reports_with_the_game(tmp_path: Path) -> None:
    ran = CliRunner().invoke(app, ["game", str(GAMES / "g5.toml"), "-o", str(tmp_path / "game"), "--no-figures"])
    assert ran.exit_code == 0, ran.output
    assert (tmp_path / "game" / "report.html").is_file()
    assert json.loads((tmp_path / "game" / "summary.json").read_text())["game"]["pure_equilibrium"] == "none"
    few = ["--set", "resampling.replicates=100", "--no-figures", "--no-report"]
    source = str(write_tables(tmp_path / "tables"))
    ran = CliRunner().invoke(
        app, ["audit", source, "--game", str(GAMES / "g5.toml"), "-o", str(tmp_path / "audit"), *few]
    )
    assert ran.exit_code == 0, ran.output
    assert json.loads((tmp_path / "audit" / "summary.json").read_text())["game"]["threshold"]["status"] == "found"
    ran = CliRunner().invoke(
        app, ["audit", source, "--game", str(tmp_path / "no.toml"), "-o", str(tmp_path / "none"), *few]
    )
    assert isinstance(ran.exception, UsageError)
    assert not (tmp_path / "none").exists()


def test_mixed_play_over_tuning_says_how_good_it_is(curves: GameAnswer) -> None:
    game = curves.solution.game
    assert isinstance(game, RankingGame)
    race = race_over_tuning(game.at(0), [0.0, 100.0, 2000.0], cells=60)
    blank = replace(
        race, wrong_order=np.array([0.4, np.nan, 1.0]), spend=race.spend * np.array([[1.0], [np.nan], [1.0]])
    )
    blank = replace(
        blank, method=("interior point", "undecided", "pure equilibrium"), verdict=("none", "none", "exists")
    )
    answer = replace(curves, race_over_tuning=blank)
    text = told(answer)["What common tuning does to the arms race"]
    assert f"or {race.off_grid[[0, 2]].max():.2g} within one" in text
    assert "wrong order from 40 % to 100 %" in text
    assert "At 1 level nobody pays and the board is wrong" in text
    assert "1 level is not decided" in text
    figures_of = named(game_figures(answer))
    assert {"race-spend", "race-wrong-order"} <= set(figures_of)
    assert "Levels without a mark are not decided" in figures_of["race-spend"].caption
    assert len([row for row in drawn(figures_of["race-spend"]) if "spend" in row]) == 2
    assert named(game_tables(answer))["race-over-tuning"].frame["spend"].null_count() == 1


def test_costs_of_overtaking_have_the_intervals_of_that_pair(curves: GameAnswer) -> None:
    solution = curves.solution
    assert isinstance(solution, GameSolution)
    assert curves.draws is not None
    ends = overtaking_intervals(curves, solution.game, solution.published_order)
    above, below = solution.published_order[:2]
    costs = []
    for b in range(len(curves.draws)):
        own = PowerLawCurves(**{name: values[b] for name, values in curves.draws.parameters.items()})
        costs.append(np.mean(own.overtake(np.array([below]), np.array([above]), np.zeros(1), 0.0)))
    expected = np.quantile(costs, [0.025, 0.975], method="inverted_cdf")
    assert ends[0] == pytest.approx(expected, rel=1e-9, abs=1e-9)
    rows = [row for row in drawn(named(game_figures(curves))["overtaking-costs"]) if "label" in row]
    assert rows[0]["low"] == pytest.approx(ends[0, 0])
    bare = overtaking_intervals(replace(curves, draws=None), solution.game, solution.published_order)
    assert np.isnan(bare).all()


def test_levels_beyond_the_scores_are_said_to_rest_on_the_law(curves: GameAnswer) -> None:
    assert curves.threshold is not None
    far = replace(curves, threshold=replace(curves.threshold, delta_max=1e6))
    said = "Levels above 10,000, the largest effort measured, rest on the law of the curves"
    assert any(said in text for text in told(far).values())
    assert not any("rest on the law" in text for text in told(curves).values())
