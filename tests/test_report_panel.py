"""The report of a panel: its figures, tables and findings say what the estimates say, and names stay inert."""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchwright.estimating.quality import AGAINST
from benchwright.estimating.ranking import Ranking
from benchwright.pipeline import audit
from benchwright.report import charts_panel, findings_panel, tables_panel
from benchwright.report.build import write_report
from benchwright.report.contents import AuditReport
from benchwright.report.figures import figures
from benchwright.report.findings import findings
from benchwright.report.html import render_page
from benchwright.report.page_audit import audit_page
from benchwright.report.tables import tables
from benchwright.simulate import simulate_item_tables
from panel_reports import FEW, audited, drawn, eight_models, estimates_of, finding, named, seeds, told, written

PANEL_FIGURES = {"model-scores", "model-ranks", "signal-to-noise", "slope-certainty", "item-rest"}
PANEL_FIGURES |= {"seeds-needed", "variance-components"}
PANEL_TABLES = {"model-ranks", "task-ranks", "variance-components", "signal-to-noise", "seeds-needed", "slopes"}
PANEL_TABLES |= {"quality", "items-against-rest", "redundant-pairs"}
EVIL = ("<script>alert(1)</script>", "=1+1", "\x1b[2J evil \u202e name", "x" * 300, "a\tb")


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> AuditReport:
    """Eight models on two axes."""
    return eight_models(tmp_path_factory.mktemp("wide") / "logs")


def test_everything_a_panel_has_is_there_once_and_in_its_section(report: AuditReport) -> None:
    all_figures, all_tables = figures(report), tables(report)
    assert set(named(all_figures)) >= PANEL_FIGURES
    assert set(named(all_tables)) >= PANEL_TABLES
    for names in ([figure.name for figure in all_figures], [table.name for table in all_tables]):
        assert len(set(names)) == len(names)
        assert all(re.fullmatch(r"[a-z]+(-[a-z]+)*", name) for name in names)
    page = render_page(audit_page(report), all_figures, "")
    sections = re.findall(r'<section id="([a-z]+)">', page)
    assert sections == ["improvability", "noise", "quality", "models", "assumptions", "notes", "provenance"]
    assert page.count("<figure") == len(all_figures)
    assert page.count("<details>") == len(all_tables)
    assert "drawn by benchwright.simulate" not in page
    for figure in all_figures:
        json.loads(figure.for_page())
    for table in all_tables:
        assert len(list(table.rows())) == table.frame.height == len(written(table))
        assert table.latex().count(r"\\") == table.frame.height + 1


def test_rank_tables_and_charts_are_the_estimates(report: AuditReport) -> None:
    estimates = estimates_of(report)
    for name, ranking in (("model-ranks", estimates.models), ("task-ranks", estimates.tasks)):
        assert ranking is not None
        for row, known in zip(written(named(tables(report))[name]), ranking.frame.iter_rows(named=True), strict=True):
            assert row["name"] == known["name"]
            for key in set(row) - {"name"}:
                assert float(row[key]) == known[key], key
    assert estimates.models is not None
    known = estimates.models.frame
    shown = named(figures(report))
    rows = drawn(shown["model-scores"])
    assert [row["label"] for row in rows] == known["name"].to_list()
    for key in ("score", "score_lo", "score_hi"):
        assert [row[key] for row in rows] == known[key].to_list()
    rows = drawn(shown["model-ranks"])
    assert [row["low"] for row in rows] == pytest.approx((known["rank_lo"] - 0.4).to_list())
    assert [row["high"] for row in rows] == pytest.approx((known["rank_hi"] + 0.4).to_list())
    assert "training again with other seeds" in shown["model-scores"].caption


def test_noise_of_the_benchmark_is_the_estimates(report: AuditReport) -> None:
    aggregate = estimates_of(report).aggregate
    shown, charts = named(tables(report)), named(figures(report))
    for row, known in zip(
        written(shown["variance-components"]), aggregate.components.iter_rows(named=True), strict=True
    ):
        assert row["scope"] == known["scope"]
        for part in ("seed", "checkpoint_seed", "trials", "items"):
            lacks = known[part] is None or known[part] < 0
            assert (row[part] == "") is lacks
            assert lacks or float(row[part]) ** 2 == pytest.approx(known[part], rel=1e-12)
    bars = drawn(charts["variance-components"])
    for place, scope in enumerate(charts_panel.mixed_scopes(aggregate).iter_rows(named=True)):
        mine = {row["variable"]: row["share"] for row in bars if row["place"] == place}
        kept = {part: scope[part] for part in mine}
        assert sum(mine.values()) == pytest.approx(1)
        assert mine == pytest.approx({part: value / sum(kept.values()) for part, value in kept.items()})
    assert written(shown["seeds-needed"]) == list(csv.DictReader(io.StringIO(aggregate.reliability.write_csv())))
    enough = {row["n_seeds"]: row["enough"] for row in drawn(charts["seeds-needed"]) if "enough" in row}
    assert set(enough) == set(aggregate.reliability["n_seeds"]) - {1}
    for row in drawn(charts["seeds-needed"]):
        if row["n_seeds"] in enough and "enough" not in row:
            rule = enough[row["n_seeds"]]
            assert (row["standard_error"] <= rule) == (row["least_difference"] <= aggregate.score_step)
    snr = {row["label"]: row["snr"] for row in drawn(charts["signal-to-noise"])}
    assert snr == dict(aggregate.snr.select("scope", "snr").iter_rows())
    assert "(max - min) / mean" in charts["signal-to-noise"].caption
    assert str(aggregate.snr["noise_over"][0]) in charts["signal-to-noise"].caption


def test_a_variance_estimated_below_zero_has_no_root_and_no_bar(report: AuditReport) -> None:
    estimates = estimates_of(report)
    below = estimates.aggregate.components.with_columns(seed=pl.lit(-1e-4), trials=pl.lit(None, dtype=pl.Float64))
    other = replace(report, estimates=replace(estimates, aggregate=replace(estimates.aggregate, components=below)))
    assert {row["seed"] for row in written(named(tables(other))["variance-components"])} == {""}
    bars = drawn(named(figures(other))["variance-components"])
    assert {row["variable"] for row in bars} == {"checkpoint_seed", "items"}
    assert sum(row["share"] for row in bars if row["place"] == 0) == pytest.approx(1)


def test_slopes_are_counted_by_the_side_of_their_interval(report: AuditReport) -> None:
    slopes = estimates_of(report).slopes
    assert slopes is not None
    rows = {row["axis"]: row for row in written(named(tables(report))["slopes"])}
    assert set(rows) == {"PT", "NEW"}
    bars = drawn(named(figures(report))["slope-certainty"])
    text = finding(report, "improvability", "beyond doubt")
    for axis, row in rows.items():
        low, high = (slopes.items[f"slope_{axis.lower()}{end}"].to_list() for end in ("_lo", "_hi"))
        above, below = sum(value > 0 for value in low), sum(value < 0 for value in high)
        n = len(low)
        assert (row["runs"], row["doses"]) == {"PT": ("12", "4"), "NEW": ("9", "3")}[axis]
        assert [float(row["above"]), float(row["below"])] == pytest.approx([above / n, below / n])
        mine = {bar["variable"]: bar["value"] for bar in bars if bar["label"] == f"{axis} ({n})"}
        assert {"above": 0, "includes": 0, "below": 0} | mine == {
            "above": above, "includes": n - above - below, "below": below
        }  # fmt: skip
        assert f"{100 * above / n:.1f}".rstrip("0").rstrip(".") in text


def test_an_axis_without_a_price_has_slopes_and_no_dollars(report: AuditReport) -> None:
    rows = {row["axis"]: row for row in written(named(tables(report))["cost-axes"])}
    assert [rows[axis]["price_usd"] for axis in ("PT", "NEW")] == ["82.0", ""]
    assert "NEW for" not in str(told(report))


def test_items_that_run_against_the_rest_and_copies_are_named(report: AuditReport) -> None:
    assert report.audit.quality is not None
    quality, shown = estimates_of(report).quality, named(tables(report))
    against = report.audit.quality.items.filter(pl.col("quality_verdict") == AGAINST)
    assert against["doc_id"].to_list() == [int(row["doc_id"]) for row in written(shown["items-against-rest"])] == [4]
    pairs = written(shown["redundant-pairs"])
    assert [(row["first_doc_id"], row["second_doc_id"]) for row in pairs][:1] == [("0", "1")]
    assert len(pairs) == min(20, quality.pairs.height)
    counts = {row["what"]: row["n"] for row in written(shown["quality"])}
    assert (counts["items"], counts["runs against the rest"]) == ("18", "1")
    bars = [row for row in drawn(named(figures(report))["item-rest"]) if "n" in row]
    assert sum(row["n"] for row in bars) == int((~np.isnan(quality.item_rest_r)).sum())
    assert sum(row["n"] for row in bars if row["verdict"] == AGAINST) == 1
    text = finding(report, "quality", "^1 item runs against the rest$")
    assert "1 of 18 items" in text
    assert f"({quality.pairs.height} pair" in text


def test_the_ranking_is_told_by_its_rank_sets(report: AuditReport) -> None:
    ranking = estimates_of(report).models
    assert ranking is not None
    sets = list(ranking.frame.select("rank_lo", "rank_hi").iter_rows())
    apart = sum(first[1] < second[0] for first, second in pairwise(sets))
    every = sum(one[1] < other[0] for place, one in enumerate(sets) for other in sets[place + 1 :])
    text = finding(report, "models", "neighbouring models")
    assert f"{apart or 'none'} of {len(sets) - 1} pairs of neighbouring models" in text
    assert f"{every} of all {len(sets) * (len(sets) - 1) // 2} pairs" in text
    firsts = [name for name, (low, _) in zip(ranking.frame["name"], sets, strict=True) if low == 1]
    assert all(name in text for name in firsts[:5])
    assert ranking.uncertainty in text


def test_the_seeds_that_a_difference_needs_are_told(report: AuditReport) -> None:
    aggregate = estimates_of(report).aggregate
    text = finding(report, "noise", "seeds? a model")
    assert f"About {aggregate.seeds_needed:,.0f} seeds" in text
    here = aggregate.reliability.filter((pl.col("n_seeds") == 1) & (pl.col("n_items") == 18))["standard_error"][0]
    assert f"standard error of {here:.2g}" in text
    assert f"{np.sqrt(aggregate.mean_covariance):.2g} and no further" in text


def ranking_of(*rows: tuple[float, float | None, int, int, int]) -> Ranking:
    """Models with score, standard error, rank and rank set."""
    columns = ("score", "standard_error", "rank", "rank_lo", "rank_hi")
    frame = pl.DataFrame(rows, schema=columns, orient="row").with_columns(score_lo="score", score_hi="score")
    names = [chr(97 + place % 26) for place in range(len(rows))]
    return Ranking(frame.with_columns(name=pl.Series(names)), "training again", "made up")


@pytest.mark.parametrize(
    ("rows", "title", "text"),
    [
        ([(0.6, 0.1, 1, 1, 1), (0.5, 0.1, 2, 2, 3), (0.4, 0.1, 3, 2, 3)], "1 of 2 pairs", "First is a."),
        ([(0.6, 0.1, 1, 1, 2), (0.5, 0.1, 2, 1, 3), (0.4, 0.1, 3, 2, 3)], "none of 2 pairs", "First may be a or b."),
        ([(0.6, 0.1, 1, 1, 2), (0.5, 0.1, 2, 2, 3), (0.4, 0.1, 3, 3, 3)], "none of 2 pairs", "First is a."),
        ([(0.6, 0.1, 1, 1, 1), (0.5, 0.1, 2, 2, 2)], "The two models are told apart", "1 of 1 pair of"),
        ([(0.6, 0.1, 1, 1, 2), (0.5, 0.1, 2, 1, 2)], "The two models are not told apart", "0 of 1 pair of"),
        ([(0.6, None, 1, 1, 1), (0.5, 0.1, 2, 2, 2)], "told apart", "No interval for 1 model without any"),
        ([(0.6, None, 1, 1, 2), (0.5, None, 2, 1, 2)], "Nothing tells how sure scores are", "each of 2 models"),
        ([(0.6, 0.1, 1, 1, 1)], "There is one model", "a scores 0.6"),
        ([(0.5, 0.1, 1, 1, 7)] * 7, "none of 6 pairs", "First may be a, b, c, d, e or 2 more."),
    ],
)
def test_how_sure_a_ranking_is(rows: list[tuple[float, float | None, int, int, int]], title: str, text: str) -> None:
    section, told_title, told_text = findings_panel._models(ranking_of(*rows), 0.95)
    assert section == "models"
    assert title in told_title
    assert text in told_text
    assert "that of training again." in told_text


def test_noise_of_trials_is_not_called_that_of_training(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    chance = rng.uniform(0.3, 0.7, size=(2, 12))
    j, i, k = (codes.ravel() for codes in np.indices((2, 12, 8)))
    score = (rng.random(len(j)) < chance[j, i]).astype(int)
    frame = pl.DataFrame({"model": j, "task": i % 2, "item_id": i, "repeat": k, "score": score})
    named_rows = frame.with_columns(pl.format("m{}", "model").alias("model"), pl.format("t{}", "task").alias("task"))
    report = audited(tmp_path / "logs", named_rows)
    assert estimates_of(report).noise.source == "trials"  # type: ignore[union-attr]
    found = told(report)
    assert [title for title in found if "How much" in title] == ["How much of a score is the luck of one answer"]
    assert "sampling answers, not of training" in found["How many seeds would show a difference is not known"][1]
    lacking = found["What this panel cannot tell"][1]
    assert "no axis has two doses" in lacking
    assert "No weights: weights need welfare, improvability and noise; missing: improvability, welfare." in lacking
    shown = named(figures(report))
    assert "sampled answers" in json.dumps(shown["noise-quantiles"].spec)
    assert "over seeds" not in json.dumps([figure.spec for figure in shown.values() if figure.section == "noise"])
    assert "seeds-needed" not in {*shown, *named(tables(report))}
    page = render_page(audit_page(report), figures(report), "")
    assert "standard deviation over seeds" not in page.split('id="assumptions"')[0].lower()


def test_identical_runs_and_unbounded_scores_are_told_as_such(tmp_path: Path) -> None:
    frame = seeds(2)
    same = frame.with_columns(score=pl.col("score").first().over("model", "step", "task", "doc_id"))
    report = audited(tmp_path / "same", same)
    found = told(report)
    assert "says nothing of training again" in found["Repeats are identical, so noise is not seen"][1]
    assert "runs that are repeated are identical" in found["How many seeds would show a difference is not known"][1]
    assert "Repeated runs of 2 models are identical" in found["The two models are told apart"][1]
    assert "drawing other items like these" in found["The two models are told apart"][1]
    assert not {"seeds-needed", "noise-quantiles", "noise-families"} & set(named(figures(report)))
    wide = audited(tmp_path / "wide", frame.with_columns(pl.col("score") * 100))
    text = finding(wide, "noise", "moves between repeats")
    median = float(np.median(np.sqrt(estimates_of(wide).noise.items["sigma2"].to_numpy())))  # type: ignore[union-attr]
    assert f"{median:.3g} over seeds" in text
    assert '"no Z"' in json.dumps(named(figures(wide))["noise-quantiles"].spec)
    assert "noise-families" not in named(figures(wide))


def test_sections_left_out_leave_their_part_of_the_panel_out(report: AuditReport) -> None:
    none = replace(report, audit=replace(report.audit, noise=None, improvability=None))
    sections = {thing.section for thing in (*figures(none), *tables(none))}
    assert sections == {"quality", "models"}
    assert {section for section, _ in told(none).values()} == {"quality", "models", "panel"}  # no weights, and why
    assert none.inputs is not None
    asked = replace(none, inputs=replace(none.inputs, without=("noise", "improvability")))
    assert {section for section, _ in told(asked).values()} == {"quality", "models"}


def test_published_tables_have_what_they_had() -> None:
    report = audit(simulate_item_tables(), config=FEW)
    assert report.estimates is None
    there = [figure.name for figure in figures(report)], [table.name for table in tables(report)]
    assert " ".join(there[0]) == (
        "activity-map-automation activity-map-augmentation welfare-scatter welfare-ecdf-auto welfare-ecdf-aug "
        "welfare-changes cost-quantiles noise-quantiles noise-families noise-margins weights-against-uniform "
        "value-over-risk loss-decomposition efficiency-over-neutral published-shares task-weights "
        "efficiency-over-risk welfare-mixture"
    )
    assert " ".join(there[1]) == (
        "contrast quadrants activities robustness welfare-changes cost-axes cost-quantiles noise-families "
        "noise-quantiles schemes effort model weights-ends constraint-prices scheme-certainty task-weights "
        "family-weights welfare-mixture levers"
    )
    assert {finding.section for finding in findings(report)} == {"weights", "welfare", "improvability", "noise"}
    page = render_page(audit_page(report), figures(report), "")
    sections = re.findall(r'<section id="([a-z]+)">', page)
    assert sections[:4] == ["weights", "welfare", "improvability", "noise"]
    assert "Estimated from the panel" not in page


def test_hostile_names_of_models_and_tasks_are_inert(tmp_path: Path) -> None:
    names = dict(zip((f"model-{place}" for place in range(1, 6)), EVIL, strict=True))
    tasks = dict(zip((f"task-{place}" for place in range(1, 4)), EVIL, strict=False))
    frame = seeds(5, n_items=9).with_columns(pl.col("model").replace(names), pl.col("task").replace(tasks))
    report = audited(tmp_path / "logs", frame)
    out = write_report(report, tmp_path / "out")
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    for figure in figures(report):
        assert "<" not in figure.for_page()
        assert (out / "figures" / f"{figure.name}.png").stat().st_size > 0
        if figure.name in PANEL_FIGURES:
            labels = [str(value) for row in drawn(figure) for value in row.values()]
            assert all(label.isprintable() and len(label) < 60 for label in labels)
    for name in ("model-ranks", "task-ranks"):
        rows = csv.reader(io.StringIO((out / "tables" / f"{name}.csv").read_text(encoding="utf-8")))
        assert {cell for row in rows for cell in row if "=" in cell} == {"'=1+1"}
    assert all(re.fullmatch(r"[a-z-]+(\.[a-z]+)?", path.name) for path in out.rglob("*"))
    assert max(len(text) for _, text in told(report).values()) < 1200


def test_many_models_and_tasks_are_cut_and_said_to_be(report: AuditReport) -> None:
    estimates = estimates_of(report)
    n = 300
    many = ranking_of(*[(1 - place / n, 0.1, place + 1, place + 1, place + 1) for place in range(n)])
    many = replace(many, frame=many.frame.with_columns(name=pl.Series([f"m{place}" for place in range(n)])))
    snr = pl.DataFrame({"scope": [f"t{place}" for place in range(n)], "snr": np.arange(n) + 1.0})
    snr = snr.with_columns(n_items=1, n_models=2, signal=0.5, noise=0.1, noise_over=pl.lit("seeds"))
    big = replace(estimates, models=many, aggregate=replace(estimates.aggregate, snr=snr))
    shown = named(figures(replace(report, estimates=big)))
    assert [len(drawn(shown[name])) for name in ("model-ranks", "model-scores")] == [40, 40]
    assert "The first 40 of 300 models." in shown["model-ranks"].caption
    assert [row["snr"] for row in drawn(shown["signal-to-noise"])] == [*range(300, 285, -1), *range(15, 0, -1)]
    assert "Of 300 tasks the 15 highest and lowest." in shown["signal-to-noise"].caption


@given(st.lists(st.text(max_size=60), max_size=8), st.integers(8, 40))
def test_plain_names_are_short_printable_and_all_different(names: list[str], longest: int) -> None:
    shown = tables_panel.plain_names(names, longest)
    assert len(shown) == len(names)
    assert len(set(shown)) == len(shown)
    assert all(name.isprintable() and len(name) <= longest + 4 for name in shown)
    for name, text in zip(names, shown, strict=True):
        if name.isprintable() and name == " ".join(name.split()) and len(name) <= longest and names.count(name) == 1:
            assert text.startswith(name)
