"""Inspect logs: public logs against their own results, archives from anyone, the public cases, broken input."""

from __future__ import annotations

import gzip
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from backports import zstd
from backports.zstd import zipfile as zstd_zipfile

from benchwright.logs import inspect_ai
from benchwright.logs.log_file import Head, LogFile
from benchwright.logs.record import MemorySink, Unit

HEADER = {
    "version": 2,
    "status": "success",
    "eval": {
        "task": "toy",
        "task_id": "T",
        "model": "org/m",
        "created": "2025-01-02T03:04:05+00:00",
        "dataset": {"name": "toys", "samples": 3, "sample_ids": ["a", "b", "c"]},
        "config": {"epochs": 1},
    },
    "results": {
        "total_samples": 3,
        "completed_samples": 3,
        "scores": [
            {
                "name": "match",
                "scorer": "match",
                "metrics": {"accuracy": {"value": 0.5}, "stderr": {"value": 0.25}, "f1": {"value": 0.4}},
            }
        ],
    },
}


def sample(name: Any, value: Any, **fields: Any) -> dict[str, Any]:
    """A sample with one score."""
    return {"id": name, "epoch": 1, "input": f"question {name}", "scores": {"match": {"value": value}}} | fields


SAMPLES = [sample("a", "C"), sample("b", "I"), sample("c", "P")]


def members(header: Any = HEADER, samples: list[dict[str, Any]] = SAMPLES, **more: Any) -> dict[str, bytes]:
    """The members of an archive, as Inspect names them."""
    content = {"_journal/start.json": {name: HEADER[name] for name in ("version", "eval")}}
    content |= {f"samples/{s['id']}_epoch_{s['epoch']}.json": s for s in samples}
    content |= {"summaries.json": samples, "header.json": header} | more
    return {name: json.dumps(part).encode() for name, part in content.items() if part is not None}


def write(path: Path, content: Mapping[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> Path:
    with zstd_zipfile.ZipFile(path, "w", method) as archive:
        for name, part in content.items():
            archive.writestr(name, part)
    return path


def read(*paths: Path) -> MemorySink:
    sink = MemorySink()
    for path in paths:
        inspect_ai.read(Unit("inspect", (LogFile(path, path.name),)), sink)
    return sink


def read_json(tmp_path: Path, log: Any) -> MemorySink:
    path = tmp_path / "log.json"
    path.write_text(log if isinstance(log, str) else json.dumps(log))
    return read(path)


def reasons(sink: MemorySink) -> str:
    return "\n".join(str(fault) for fault in sink.faults)


def by_status(sink: MemorySink) -> dict[str, int]:
    return dict(sink.table("rows").group_by("status").len().rows())


def sniffed(path: Path) -> bool:
    file = LogFile(path, path.name)
    return inspect_ai.sniff(Head(file.name, file.head()))


def public_logs(shared: Path) -> list[Path]:
    folder = shared / "data" / "logs" / "inspect"
    return sorted(path for path in folder.rglob("*") if path.suffix in (".eval", ".json"))


def test_every_public_log_is_read_and_its_own_accuracy_is_found_again(shared: Path) -> None:
    paths = public_logs(shared)
    assert len(paths) == 46
    compared = rows = empty = 0
    for path in paths:
        assert sniffed(path)
        sink = read(path)
        assert sink.faults == [], path.name
        table, scores = sink.table("rows"), sink.table("scores")
        rows, empty = rows + len(table), empty + (len(table) == 0)
        means = table.filter(status="scored").group_by("metric").agg(pl.col("value").mean())
        for metric, mean in means.rows():
            names = [metric, f"{metric}/win_rate"] if len(scores) else []  # monty-hall states its own win rate
            for value in scores.filter(pl.col("metric").is_in(names))["value"]:
                assert value == pytest.approx(mean, abs=1e-12)
                compared += 1
    assert (rows, empty) == (1345, 3)
    assert compared == 37


def test_public_logs_in_numbers(shared: Path) -> None:
    logs = shared / "data" / "logs" / "inspect"
    sink = read(*sorted((logs / "monty-hall").rglob("*.eval")))
    assert {run.model for run in sink.runs} == {"openrouter/openai/gpt-5.4", "openrouter/anthropic/claude-opus-4-6"}
    assert len(sink.runs) == 18
    assert len({run.run for run in sink.runs}) == 16  # two logs are retries of a task id
    assert [run.finished for run in sink.runs].count(False) == 2
    assert by_status(sink) == {"scored": 777, "error": 21}
    assert sum("4 of 50 samples" in note for note in sink.notes) == 1
    versions = sink.table("rows").filter(task="generalized_monty")["version"]
    assert versions.n_unique() == 8  # its arguments make another task of it
    mmlu = read(*(logs / "demo-mmlu").rglob("*.eval"))
    table = mmlu.table("rows")
    assert (len(table), table["value"].sum(), table["item_hash"].n_unique()) == (285, 223.0, 284)
    assert table["doc_id"][0] == "1"
    stated = mmlu.table("scores").row(0, named=True)
    assert (stated["metric"], stated["n"], stated["of"], stated["benchmark"]) == ("choice", 285, 285, "cais/mmlu")
    assert stated["stderr"] == pytest.approx(0.024481850763866792)


def test_epochs_are_repeats(shared: Path) -> None:
    path = shared / "data/logs/inspect/ai-tests/tests/log/test_eval_log/log_streaming.eval"
    rows = read(path).table("rows")
    assert sorted(rows.select("doc_id", "repeat").rows()) == [("1", 0), ("1", 1), ("2", 0), ("2", 1)]


def test_case_c04_newer_format(shared: Path) -> None:
    path = shared / "cases" / "C04" / "inspect_future.json"
    assert sniffed(path)
    sink = read(path)
    assert len(sink.faults) == 1
    assert "log format (99) is newer than supported" in reasons(sink)
    assert sink.runs == []


def test_case_c11_letters_nulls_and_numbers(shared: Path) -> None:
    sink = read(shared / "cases" / "C11" / "inspect_log.json")
    rows = sink.table("rows")
    plain = rows.filter(pl.col("metric") == "s", pl.col("doc_id").is_in(["1", "2", "3", "4", "5"]))
    assert plain["value"].drop_nulls().to_list() == [1.0, 0.0, 0.5, 0.0]
    assert plain["value"].mean() == 0.375
    assert plain.filter(status="unscored")["doc_id"].to_list() == ["5"]
    assert rows.filter(doc_id="6")["value"].to_list() == [0.75]
    parts = rows.filter(doc_id="7").sort("metric").select("metric", "value", "status").rows()
    assert parts == [("s.a", None, "unscored"), ("s.b", 1.0, "scored")]
    assert rows.filter(doc_id="8")["value"].to_list() == [2.0]
    assert any("outside [0, 1]" in note and "`s`" in note and "`8`" in note for note in sink.notes)
    assert sink.faults == []


def test_case_c12_failed_samples(shared: Path) -> None:
    a, b = (read(shared / "cases" / "C12" / name) for name in ("a.json", "b.json"))
    assert by_status(a) == {"scored": 8, "error": 2}
    assert a.table("rows")["value"].mean() == 0.75
    assert a.table("rows").filter(status="error")["metric"].to_list() == ["s", "s"]
    assert by_status(b) == {"scored": 10}
    assert b.table("rows")["value"].mean() == pytest.approx(0.7)
    assert a.table("scores").select("metric", "value", "n").rows() == [("s", 0.75, 8)]


def test_case_c14_retries_of_one_task(shared: Path) -> None:
    sink = read(*sorted((shared / "cases" / "C14").glob("*.json")))
    counts = sink.table("rows").group_by("run_id").agg(pl.len(), pl.col("value").mean()).sort("run_id").rows()
    assert counts == [(0, 5, 1.0), (1, 10, 0.6)]
    assert {run.run for run in sink.runs} == {"T1"}
    assert [run.finished for run in sink.runs] == [False, True]
    assert [run.created for run in sink.runs] == ["2025-01-01T10:00:00+00:00", "2025-01-01T11:00:00+00:00"]
    assert any("status started" in note for note in sink.notes)


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zstd_zipfile.ZIP_ZSTANDARD])
def test_archive_and_document_give_the_same(tmp_path: Path, method: int) -> None:
    archive = read(write(tmp_path / "log.eval", members(), method))
    document = read_json(tmp_path, HEADER | {"samples": SAMPLES})
    assert archive.faults == document.faults == []
    assert archive.runs == document.runs
    for kind in ("rows", "scores"):
        assert archive.table(kind).drop("file").equals(document.table(kind).drop("file"))
    assert document.table("rows")["value"].to_list() == [1.0, 0.0, 0.5]
    assert document.table("rows")["higher_is_better"].to_list() == [True] * 3
    scores = document.table("scores").select("metric", "value", "stderr", "n", "of").rows()
    assert scores == [("match", 0.5, 0.25, 3, 3), ("match/f1", 0.4, None, 3, 3)]


def test_compressed_as_a_whole(tmp_path: Path) -> None:
    plain = write(tmp_path / "log.eval", members()).read_bytes()
    (tmp_path / "a.eval.gz").write_bytes(gzip.compress(plain))
    (tmp_path / "b.eval.zst").write_bytes(zstd.compress(plain))
    (tmp_path / "c.json.gz").write_bytes(gzip.compress(json.dumps(HEADER | {"samples": SAMPLES}).encode()))
    for path in (tmp_path / "a.eval.gz", tmp_path / "b.eval.zst", tmp_path / "c.json.gz"):
        assert sniffed(path)
        sink = read(path)
        assert sink.faults == []
        assert len(sink.table("rows")) == 3
    cut = tmp_path / "cut.eval.gz"
    cut.write_bytes(gzip.compress(plain)[:-30])
    assert "cannot be read" in reasons(read(cut))


def test_format_1_with_one_score_and_one_scorer(tmp_path: Path) -> None:
    log = {
        "version": 1,
        "status": "success",
        "eval": {"task": "old", "model": "m", "run_id": "r"},
        "results": {"scorer": {"name": "includes"}, "metrics": {"accuracy": {"value": 1.0}}},
        "samples": [{"id": 1, "epoch": 1, "input": "q", "score": {"value": "C"}}],
    }
    sink = read_json(tmp_path, log)
    assert sink.table("rows").select("metric", "value").rows() == [("includes", 1.0)]
    assert sink.table("scores").select("metric", "value").rows() == [("includes", 1.0)]
    assert sink.runs[0].run == "r"


def test_keys_in_any_order(tmp_path: Path) -> None:
    long = [sample(i, "C", target="t", messages=[{"content": "x" * 3000}]) for i in range(40)]
    path = tmp_path / "log.json"
    path.write_text(json.dumps({"samples": long} | HEADER))
    assert sniffed(path)
    assert len(read(path).table("rows")) == 40


@pytest.mark.parametrize(
    "content",
    [
        '{"results": {"t": {"acc,none": 1}}, "config": {"model": "x"}}',
        "[1, 2]",
        '{"eval": 3, "status": "x"}',
        "doc,v\n",
    ],
)
def test_other_files_are_not_claimed(tmp_path: Path, content: str) -> None:
    path = tmp_path / "other.json"
    path.write_text(content)
    assert not sniffed(path)
    other = write(tmp_path / "other.zip", {"readme.txt": b"x"})
    assert not sniffed(other)


def test_number_tokens_and_texts(tmp_path: Path) -> None:
    values = ["NaN", "Infinity", "-Infinity", '"nan"', '""', '"yes"', "false", '"1e-2"', '"A"', "[1]", "1e999", '"1_0"']
    entries = ",".join(f'{{"id": {i}, "epoch": 1, "scores": {{"s": {{"value": {v}}}}}}}' for i, v in enumerate(values))
    sink = read_json(
        tmp_path,
        f'{{"version": 2, "status": "success", "eval": {{"task": "t", "model": "m"}}, "samples": [{entries}]}}',
    )
    rows = sink.table("rows").sort(pl.col("doc_id").cast(pl.Int64))
    assert rows["status"].to_list() == ["unscored"] * 5 + ["scored"] * 3 + ["unreadable"] * 2 + [
        "unscored",
        "unreadable",
    ]
    assert rows["value"].drop_nulls().to_list() == [1.0, 0.0, 0.01]
    assert [(fault.line, fault.column) for fault in sink.faults] == [(9, "s"), (10, "s"), (12, "s")]
    assert "neither a number nor a grade" in reasons(sink)


def test_a_wholly_unscored_sample_lacks_every_part_of_a_dictionary(tmp_path: Path) -> None:
    samples = [sample(1, {"x": 1, "y": 0}), sample(2, None), sample(3, None, error={"message": "e"}, scores={})]
    refused = {"match": {"value": None, "reason": "refusal"}}
    sink = read_json(tmp_path, HEADER | {"samples": [*samples, sample(4, None, scores=refused)]})
    rows = sink.table("rows").sort("doc_id", "metric").select("doc_id", "metric", "status").rows()
    parts = [("1", "scored"), ("2", "unscored"), ("3", "error"), ("4", "refused")]
    assert rows == [(name, f"match.{key}", status) for name, status in parts for key in "xy"]


def test_many_like_faults_are_counted(tmp_path: Path) -> None:
    sink = read_json(tmp_path, HEADER | {"samples": [sample(i, "GREEN") for i in range(50)]})
    assert len(sink.faults) == 21
    assert "30 more samples" in sink.faults[-1].reason
    assert by_status(sink) == {"unreadable": 50}


def test_samples_that_are_promised_and_missing(tmp_path: Path) -> None:
    sink = read_json(tmp_path, HEADER | {"samples": SAMPLES[:1], "status": "cancelled"})
    assert any("2 of 3 samples that the header promises are missing" in note for note in sink.notes)
    assert len(sink.table("rows")) == 1
    assert not sink.runs[0].finished
    only_header = read_json(tmp_path, HEADER)
    assert any("holds no samples" in note for note in only_header.notes)
    assert len(only_header.table("scores")) == 2


def test_a_started_run_has_no_header_yet(tmp_path: Path) -> None:
    content = members()
    del content["header.json"]
    sink = read(write(tmp_path / "log.eval", content))
    assert sink.faults == []
    assert not sink.runs[0].finished
    assert len(sink.table("rows")) == 3


def test_summaries_that_disagree(tmp_path: Path) -> None:
    told = [sample("a", "I"), sample("b", "I"), sample("d", "C")]
    sink = read(write(tmp_path / "log.eval", members(**{"summaries.json": told})))
    assert sink.table("rows")["value"].to_list() == [1.0, 0.0, 0.5]
    assert "other scores than 1 samples, whose own scores count: first sample `a`" in reasons(sink)
    assert "lists 1 samples that could not be read: first sample `d`" in reasons(sink)
    assert any("1 samples are read that summaries.json does not list" in note for note in sink.notes)
