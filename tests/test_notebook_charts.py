"""Charts for notebooks: the report's figures as Altair objects."""

from __future__ import annotations

import json
from pathlib import Path

import altair as alt
import pytest

import benchwright as bw
from benchwright.errors import UsageError
from benchwright.report.figures import figures, game_figures

GAMES = Path(__file__).resolve().parents[1] / "examples" / "games"
CHARTS = (alt.Chart, alt.LayerChart, alt.FacetChart)


def without_words(spec: dict[str, object]) -> dict[str, object]:
    return {key: value for key, value in spec.items() if key not in ("$schema", "title", "description")}


def test_charts_of_a_game_hold_what_the_report_draws() -> None:
    answer = bw.answer_file(GAMES / "g1.toml")
    charts = bw.charts(answer)
    drawn = game_figures(answer)
    assert list(charts) == [figure.name for figure in drawn]
    assert charts
    for figure in drawn:
        spec = charts[figure.name].to_dict()
        assert isinstance(charts[figure.name], CHARTS)
        assert without_words(spec) == json.loads(json.dumps(figure.spec))
        assert spec["title"]["text"] == figure.title
        assert " ".join(spec["title"]["subtitle"]) == figure.caption


@pytest.mark.slow
def test_charts_of_a_report() -> None:
    report = bw.audit()
    charts = bw.charts(report)
    assert list(charts) == [figure.name for figure in figures(report)]
    assert all(isinstance(chart, CHARTS) for chart in charts.values())


def test_a_finite_game_has_no_charts() -> None:
    assert bw.charts(bw.answer_file(GAMES / "three-levels.toml")) == {}


def test_what_has_no_figures_is_refused() -> None:
    with pytest.raises(UsageError, match="`result` has no figures: Config"):
        bw.charts(bw.Config())  # type: ignore[arg-type]
