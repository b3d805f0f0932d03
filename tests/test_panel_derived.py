"""Scores derived from a panel's choices: against plain loops, the logs' own scores, and through every way out."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from benchwright.choices import EstimateChoices
from benchwright.cli import app
from benchwright.errors import DataError, UsageError
from benchwright.estimating.measure import measure
from benchwright.panel import derived as module
from benchwright.panel.derived import METRICS, row_schema, score_block
from benchwright.panel.ingest import read_logs
from benchwright.panel.panel import Panel
from benchwright.panel.scores import compare_models, score_table
from test_olmes import metrics, prediction

CHOICES: list[dict[str, Any]] = [
    {"gold": 1, "logprob": [-3.0, -2.5, -9.0], "chars": [3, 2, 9], "bytes": [6, 2, 9], "tokens": [1, 1, 3]},
    {"gold": 0, "logprob": [-1.0, -1.0], "chars": [4, 4], "bytes": [4, 4], "tokens": None},  # a tie: the first counts
    {"gold": 2, "logprob": [-1.0, -4.0], "chars": [4, 4], "bytes": [4, 4], "tokens": [1, 1]},  # no such choice
    {"gold": None, "logprob": [-1.0, -4.0], "chars": [4, 4], "bytes": [4, 4], "tokens": [1, 1]},
    {"gold": 0, "logprob": [-2.0], "chars": [3], "bytes": [3], "tokens": [1]},  # one choice
    {"gold": 0, "logprob": [], "chars": [], "bytes": [], "tokens": []},
    {"gold": 0, "logprob": None, "chars": None, "bytes": None, "tokens": None},
    {"gold": 1, "logprob": [-5.0, -7.0], "chars": [2, None], "bytes": [2, 4], "tokens": [1, 2, 3]},
    {"gold": 1, "logprob": [-5.0, None], "chars": [2, 3], "bytes": [2, 4], "tokens": [1, 2]},
    {"gold": 0, "logprob": [-2.0, -8.0, -6.0], "chars": [1, 8, 3], "bytes": [1, 9, 3], "tokens": [1, 4, 1]},
]  # fmt: skip


def plain(item: dict[str, Any]) -> dict[str, float]:
    """Every derived score of one item, by a loop over its choices."""
    nothing = dict.fromkeys(METRICS, math.nan)
    total, gold = item["logprob"], item["gold"]
    if not total or len(total) < 2 or gold is None or gold >= len(total):
        return nothing
    scores = dict(nothing)
    names = {None: ("acc", "p_gold", "margin"), "chars": ("acc_norm", "p_gold_char", "margin_char")}
    names |= {"bytes": ("acc_bytes", "p_gold_byte", ""), "tokens": ("acc_tokens", "p_gold_token", "")}
    for length, (acc, probability, margin) in names.items():
        units = [1] * len(total) if length is None else item[length]
        if units is None or len(units) != len(total):
            continue
        value = [math.nan if a is None or b is None else a / b for a, b in zip(total, units, strict=True)]
        if any(math.isnan(one) for one in value):
            continue
        others = [one for place, one in enumerate(value) if place != gold]
        scores[f"choice:{acc}"] = float(value.index(max(value)) == gold)
        scores[f"choice:{probability}"] = math.exp(value[gold]) / sum(math.exp(one) for one in value)
        if margin:
            scores[f"choice:{margin}"] = value[gold] - max(others)
        if length == "chars":
            scores["choice:ratio_char"] = value[gold] / max(others)
        if length is None:
            right = scores["choice:acc"]
            scores["choice:acc_chance"] = (len(total) * right - 1) / (len(total) - 1)
    return scores


def test_every_derived_score_equals_a_plain_loop() -> None:
    lists = {"logprob": pl.List(pl.Float64)} | dict.fromkeys(("chars", "bytes", "tokens"), pl.List(pl.Int64))
    block = pl.DataFrame(CHOICES, schema={"gold": pl.Int64, **lists}).with_columns(
        doc_id=pl.int_range(pl.len()).cast(pl.String), task=pl.lit("t"), repeat=pl.lit(0, dtype=pl.Int64)
    )
    rows = score_block(block, METRICS, row_schema(pl.DataFrame(schema={"model": pl.String})))
    found = {(row["doc_id"], row["metric"]): row for row in rows.iter_rows(named=True)}
    assert len(found) == rows.height == len(CHOICES) * len(METRICS)
    for place, item in enumerate(CHOICES):
        for metric, expected in plain(item).items():
            row = found[str(place), metric]
            if math.isnan(expected):
                assert (row["value"], row["status"]) == (None, "unscored"), (place, metric)
            else:
                assert row["value"] == pytest.approx(expected, abs=1e-12), (place, metric)
                assert row["status"] == "scored"
            assert row["higher_is_better"] is (metric != "choice:ratio_char")


def olmes_panel(tmp_path: Path, models: tuple[str, ...] = ("org/a", "org/b")) -> Panel:
    """A panel of two models with choices; `prediction` gives -2, -3, -4, -5, the label differs from item to item."""
    for model in models:
        folder = tmp_path / "logs" / model.replace("/", "_")
        folder.mkdir(parents=True)
        config = {"model": model, "revision": None, "model_type": "hf"}
        named = metrics(model_config=config, model_hash=model)
        (folder / "task-000-arc_challenge-metrics.json").write_text(json.dumps(named))
        shift = models.index(model)
        lines = [prediction(i, 1, 0, model_hash=model, label=(i + shift) % 4 if i % 3 else 0) for i in range(9)]
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (folder / "task-000-arc_challenge-predictions.jsonl").write_text(text)
    read_logs(tmp_path / "logs", tmp_path / "panel")
    return Panel.open(tmp_path / "panel")


def test_derived_rows_have_the_columns_of_rows_and_stay_apart(tmp_path: Path) -> None:
    panel = olmes_panel(tmp_path)
    derived = panel.derived()
    assert derived.collect_schema() == panel.rows().collect_schema()
    table = derived.collect()
    assert table.height == 2 * 9 * len(METRICS)
    assert set(table["metric"]) == set(METRICS) == set(panel.derivable())
    assert not panel.rows().collect()["metric"].str.starts_with("choice:").any()
    assert sorted(set(table["model"])) == ["org/a", "org/b"]
    assert set(table["version"]) == set(panel.rows().collect()["version"]) == {"0"}
    assert set(panel.derived(["p_gold", "choice:acc"]).collect()["metric"]) == {"choice:p_gold", "choice:acc"}


def test_filters_columns_and_limits_give_what_the_whole_table_gives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    panel = olmes_panel(tmp_path)
    whole = panel.derived().collect()
    monkeypatch.setattr(module, "BLOCK_ITEMS", 4)
    key = ["model", "doc_id", "metric"]
    lazy = panel.derived()
    assert lazy.collect().sort(key).equals(whole.sort(key))
    assert lazy.collect(engine="streaming").sort(key).equals(whole.sort(key))
    some = (pl.col("value") > 0.2) & (pl.col("model") == "org/b")
    assert lazy.filter(some).select("doc_id", "metric").collect().height == whole.filter(some).height
    assert lazy.select("model", "task").collect().height == whole.height
    assert lazy.head(7).collect().height == 7
    assert lazy.select(pl.len()).collect().item() == whole.height


def test_scores_and_comparisons_use_derived_metrics(tmp_path: Path) -> None:
    panel = olmes_panel(tmp_path)
    table = panel.derived(["choice:p_gold"]).collect()
    mean = dict(table.group_by("model").agg(pl.col("value").mean()).iter_rows())
    scores = score_table(panel, metric="choice:p_gold")
    assert {row["entry"]: row["micro"] for row in scores.frame.iter_rows(named=True)} == pytest.approx(mean)
    assert scores.metrics == {"arc_challenge": "choice:p_gold"}
    comparison = compare_models(panel, "org/a", "org/b", metric="choice:p_gold")
    assert comparison.difference == pytest.approx(mean["org/a"] - mean["org/b"])
    default = score_table(panel)
    assert not any(metric.startswith("choice:") for metric in default.metrics.values())


def test_what_cannot_be_derived_is_refused(tmp_path: Path) -> None:
    panel = olmes_panel(tmp_path)
    with pytest.raises(UsageError, match="no derived metric `choice:f1`"):
        score_table(panel, metric="choice:f1")
    (tmp_path / "plain").mkdir()
    row = {"model": "m", "task": "t", "item_id": "1", "score": 1.0}
    (tmp_path / "plain" / "t.jsonl").write_text(json.dumps(row) + "\n")
    read_logs(tmp_path / "plain", tmp_path / "panel2")
    without = Panel.open(tmp_path / "panel2")
    assert without.derivable() == ()
    assert without.derived().collect().height == 0
    with pytest.raises(DataError, match="no choice log-likelihoods"):
        score_table(without, metric="choice:acc")


def test_an_audit_reads_exported_scores_as_it_does_the_panel(tmp_path: Path) -> None:
    panel, choices = olmes_panel(tmp_path), EstimateChoices(metric="choice:p_gold")
    panel.export("derived", tmp_path / "derived.parquet")
    panel.export("rows", tmp_path / "rows.parquet")
    whole = measure(panel.path, choices=choices, prices={})
    again = measure(tmp_path / "derived.parquet", choices=choices, prices={})
    assert again.metrics == whole.metrics == {"arc_challenge": "choice:p_gold"}
    assert np.isfinite(whole.value).all()
    assert np.array_equal(again.value, whole.value)
    with pytest.raises(UsageError, match="hold no choice:p_gold") as refused:
        measure(tmp_path / "rows.parquet", choices=choices, prices={})
    assert "--table derived" in str(refused.value.hint)


def test_the_command_line_shows_names_and_exports_them(tmp_path: Path) -> None:
    panel = olmes_panel(tmp_path)
    run = CliRunner().invoke
    shown = run(app, ["panel", "show", str(panel.path), "--metric", "choice:p_gold_char", "--json"])
    assert shown.exit_code == 0, shown.output
    assert json.loads(shown.output)["metrics"] == {"arc_challenge": "choice:p_gold_char"}
    assert "choice:p_gold_char" in run(app, ["panel", "describe", str(panel.path)]).output
    described = json.loads(run(app, ["panel", "describe", str(panel.path), "--json"]).output)
    assert described["derived"] == list(METRICS)
    for name in ("d.parquet", "d.csv"):
        out = tmp_path / name
        done = run(app, ["panel", "export", str(panel.path), "-o", str(out), "--table", "derived"])
        assert done.exit_code == 0, done.output
        table = pl.read_parquet(out) if out.suffix == ".parquet" else pl.read_csv(out)
        assert table.height == 2 * 9 * len(METRICS)


def test_derived_accuracy_is_the_accuracy_that_the_harness_logged(shared: Path, tmp_path: Path) -> None:
    read_logs(shared / "data" / "logs" / "lm-eval" / "flipeval-qwen15b", tmp_path / "panel")
    panel = Panel.open(tmp_path / "panel")
    key = ["part", "run", "task", "doc_id", "repeat"]
    mine = panel.derived(["choice:acc"]).select(*key, derived="value").collect()
    logged = panel.rows().filter(pl.col("metric").is_in(["acc", "correct"]), pl.col("task") != "gsm8k")
    both = mine.join(logged.select(*key, "value").collect(), on=key, how="full")
    assert both.height == mine.height == 6 * 400  # the seventh folder is a copy of another
    assert both["derived"].equals(both["value"])
