"""Public fault reports, from the log to the panel's scores: the values of each case's expected.txt."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from benchwright.errors import DataError
from benchwright.panel.ingest import Ingested, read_logs
from benchwright.panel.panel import Panel
from benchwright.panel.scores import score_table


@pytest.fixture
def cases(shared: Path) -> Path:
    return shared / "cases"


def panel_of(source: Path | list[Path], tmp_path: Path, **options: Any) -> tuple[Panel, Ingested]:
    done = read_logs(source, tmp_path / "panel", **options)  # type: ignore[arg-type]
    return Panel.open(done.panel), done


def means(panel: Panel, **options: Any) -> dict[str, float | None]:
    return dict(score_table(panel, **options).frame.select("entry", "micro").iter_rows())


def test_c01_filters_are_two_metrics_of_the_same_items(cases: Path, tmp_path: Path) -> None:
    panel, _ = panel_of(cases / "C01", tmp_path)
    assert panel.cells()["n_items"].max() == 3
    for name, expected in (("strict-match", 0.333333), ("flexible-extract", 0.666667)):
        (value,) = means(panel, metric=f"exact_match[{name}]").values()
        assert value == pytest.approx(expected, abs=1e-6)


def test_c02_the_order_flips_with_the_metric_and_the_metric_is_told(cases: Path, tmp_path: Path) -> None:
    panel, _ = panel_of(cases / "C02", tmp_path)
    acc, norm = means(panel, metric="acc"), means(panel, metric="acc_norm")
    a, b = sorted(acc)
    assert (acc[a], acc[b], norm[a], norm[b]) == (0.25, 0.5, 0.75, 0.5)
    assert set(score_table(panel).metrics.values()) == {"acc"}


def test_c03_a_log_likelihood_is_not_a_perplexity(cases: Path, tmp_path: Path) -> None:
    panel, _ = panel_of(cases / "C03", tmp_path)
    stated = panel.scores().filter(pl.col("metric") == "perplexity").collect()
    assert stated["value"].to_list() == pytest.approx([7.389056], abs=1e-6)
    assert stated["higher_is_better"].to_list() == [False]
    rows = panel.rows().filter(pl.col("metric") == "loglikelihood", pl.col("task") == "toylambada").collect()
    assert rows["value"].mean() == pytest.approx(-2.0)
    assert rows["higher_is_better"].to_list() == [True] * 3


def test_c04_shapes_of_two_versions_and_a_log_of_the_future(cases: Path, tmp_path: Path) -> None:
    panel, done = panel_of(cases / "C04", tmp_path)
    assert any("99" in fault.reason and fault.file == "inspect_future.json" for fault in done.faults)
    stated = panel.scores().collect()
    assert not stated["metric"].str.contains("stderr").any()
    assert "toy_group" not in stated["task"].to_list()
    found = {(row["task"], row["metric"], row["value"]): row["stderr"] for row in stated.iter_rows(named=True)}
    assert found["toy", "acc_norm", 0.5] == pytest.approx(0.28867513)
    assert found["toy2", "acc", 0.5] is None


def test_c07_revisions_stay_apart_and_the_payload_names_the_model(cases: Path, tmp_path: Path) -> None:
    logs = [cases / "C07" / "ckpt", cases / "C07" / "demo-lab__Alpha-7B"]
    panel, done = panel_of(logs, tmp_path)
    named = {f"{row['model']}@{row['revision']}" for row in panel.runs().iter_rows(named=True)}
    assert {"demo-lab/Alpha-7b-instruct@step2000", "demo-lab/Alpha-7b-instruct@step4000"} < named
    assert len(named) == 3
    assert any("Alpha-7B" in note for note in done.notes)


def test_c20_items_that_share_a_passage_stand_or_fall_together(cases: Path, tmp_path: Path) -> None:
    panel, _ = panel_of(cases / "C20" / "scores.csv", tmp_path)
    table = score_table(panel)
    (row,) = table.frame.iter_rows(named=True)
    assert (row["micro"], row["micro_se"]) == pytest.approx((0.5, 0.288675), abs=1e-6)
    assert row["macro_se"] == row["micro_se"]
    assert table.policy["standard errors"] == "clustered"
    assert any("20 items in 4 clusters; too few" in note for note in table.notes)

    text = (cases / "C20" / "scores.csv").read_text(encoding="utf-8")
    plain, alone = tmp_path / "scores.csv", tmp_path / "one" / "scores.csv"
    plain.write_text(text.replace("passage", "remark"), encoding="utf-8")
    (row,) = score_table(panel_of(plain, tmp_path / "plain")[0]).frame.iter_rows(named=True)
    assert row["micro_se"] == pytest.approx(0.114708, abs=1e-6)
    alone.parent.mkdir()
    alone.write_text("passage,item,score\na,1,1\na,2,0\na,3,1\n", encoding="utf-8")
    with pytest.raises(DataError, match="all 3 items are in one cluster"):
        score_table(panel_of(alone, tmp_path / "one")[0])


def test_c07_names_that_differ_in_form_or_case(cases: Path, tmp_path: Path) -> None:
    names = json.loads((cases / "C07" / "names.json").read_text(encoding="utf-8"))
    every = [name for group in names.values() for name in group]
    logs = tmp_path / "logs"
    logs.mkdir()
    for place, name in enumerate(every):
        row = {"model": name, "task": "t", "item_id": "1", "score": place % 2}
        (logs / f"{place}.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    panel, done = panel_of(logs, tmp_path)
    assert panel.cells()["model"].n_unique() == len(every) - 1  # one pair is one name in two Unicode forms
    assert any("Unicode" in note for note in done.notes)
    assert any("only in case" in note for note in done.notes)
    for path in panel.path.rglob("*"):
        assert len(path.name.encode()) <= 255
        assert not set('<>:"/\\|?*') & set(path.name)


def test_c09_ids_are_unique_only_inside_a_task(cases: Path, tmp_path: Path) -> None:
    panel, _ = panel_of(cases / "C09", tmp_path)
    found = means(panel)
    assert found == {"m1": 0.5, "NA": 1.0}
    assert score_table(panel).frame["n_items"].to_list() == [6, 6]


def test_c10_the_same_judgement_twice(cases: Path, tmp_path: Path) -> None:
    panel, done = panel_of(cases / "C10", tmp_path)
    for policy, expected in (("latest", 2 / 3), ("first", 1.0), ("mean", 5 / 6)):
        assert means(panel, repeated=policy)["m1"] == pytest.approx(expected)
    with pytest.raises(DataError):
        score_table(panel, repeated="error")
    assert any("1" in note and "conflict" in note for note in done.notes)


def test_c11_null_is_unscored_and_letters_are_grades(cases: Path, tmp_path: Path) -> None:
    panel, done = panel_of(cases / "C11", tmp_path)
    rows = panel.rows().filter(pl.col("metric") == "s", pl.col("doc_id").is_in(list("12345"))).collect()
    assert rows["value"].mean() == pytest.approx(0.375)
    assert rows["status"].to_list().count("unscored") == 1
    assert any("2" in note for note in done.notes)


def test_c12_errors_change_the_order_and_one_policy_holds_for_all(cases: Path, tmp_path: Path) -> None:
    panel, _ = panel_of(cases / "C12", tmp_path)
    own = {"missing": "renormalise"}
    assert means(panel, **own) == pytest.approx({"demo/A": 0.75, "demo/B": 0.7})
    assert means(panel, errors="wrong", **own) == pytest.approx({"demo/A": 0.6, "demo/B": 0.7})
    assert means(panel) == pytest.approx({"demo/A": 0.75, "demo/B": 0.875})
    table = score_table(panel, **own)
    assert table.policy["errors"] == "drop"
    assert dict(table.frame.select("entry", "coverage").iter_rows()) == pytest.approx({"demo/A": 0.8, "demo/B": 1.0})


def test_c14_the_finished_log_counts(cases: Path, tmp_path: Path) -> None:
    panel, _ = panel_of(cases / "C14", tmp_path)
    table = score_table(panel).frame
    assert table.select("n_items", "micro").row(0) == (10, pytest.approx(0.6))
    assert (panel.cells().filter(~pl.col("active") & (pl.col("kind") == "rows"))["n_items"] == 5).all()


def test_c16_a_cut_off_last_line_is_a_fault_with_its_number(cases: Path, tmp_path: Path) -> None:
    lines = [
        json.dumps({"doc_id": i, "doc": {"q": "x" * 500}, "resps": [["x"]], "filtered_resps": ["x"], "filter": "none"}
                   | {"metrics": ["acc"], "acc": int((i * 7919) % 10 < 3)})
        for i in range(200)
    ]  # fmt: skip
    log = tmp_path / "samples_toy_2025-01-02T03-04-05.000001.jsonl"
    log.write_text("\n".join(lines) + '\n{"doc_id": 200, "doc": {"q"', encoding="utf-8")
    panel, done = panel_of(log, tmp_path)
    assert list(means(panel).values()) == pytest.approx([0.3])
    assert [fault.line for fault in done.faults] == [201]


def test_c17_a_partial_run_and_two_versions_are_not_compared_in_silence(cases: Path, tmp_path: Path) -> None:
    panel, _ = panel_of(cases / "C17", tmp_path)
    assert panel.runs()["limit"].sum() == 1
    with pytest.raises(DataError, match="version"):
        score_table(panel)
    pooled = means(panel, pool_versions=True)
    assert sorted(pooled.values()) == pytest.approx([0.75, 1.0])  # on the 4 common items
    refused = means(panel, pool_versions=True, missing="refuse")
    assert sorted(refused.values(), key=str) == [0.6, None]


def test_c18_no_group_score_is_invented(cases: Path, tmp_path: Path) -> None:
    panel, _ = panel_of(cases / "C18", tmp_path)
    assert set(panel.scores().collect()["task"]) == {"toy_big", "toy_small"}


def test_c22_and_c25_are_told_apart(cases: Path, tmp_path: Path) -> None:
    tasks, _ = panel_of(cases / "C22" / "scores.csv", tmp_path / "a")
    stated = tasks.scores().collect()
    assert stated.filter(pl.col("model") == "partial").height == 2  # empty cells are missing, not 0
    items, _ = panel_of(cases / "C25" / "scores.csv", tmp_path / "b")
    assert means(items) == pytest.approx({"A": 0.65, "B": 0.516667}, abs=1e-6)
