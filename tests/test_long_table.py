"""Long tables: synonyms, values, duplicates, times, public cases, real data, broken and mutated input."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchwright.logs import long_table
from benchwright.logs.log_file import Head, LogFile
from benchwright.logs.record import MemorySink, ReadOptions, Unit, text_hash
from table_logs import FORMATS, models, read, written


@pytest.mark.parametrize("model", ["model", "Model Name", "system", "model_id"])
@pytest.mark.parametrize("item", ["doc_id", "question-id", "instance_id", "idx", "ID"])
@pytest.mark.parametrize("value", ["score", "acc", "is_correct", "judgement", "exact_match", "Result"])
def test_synonyms(tmp_path: Path, model: str, item: str, value: str) -> None:
    sink = written(tmp_path / "t.csv", f"{model},dataset,{item},{value}\nm,d,7,1\nm,d,08,0\n")
    rows = sink.table("rows")
    assert models(sink) == {"m"}
    assert rows["task"].to_list() == ["d", "d"]
    assert rows["doc_id"].to_list() == ["7", "08"]
    assert rows["value"].to_list() == [1.0, 0.0]
    assert rows["line"].to_list() == [2, 3]
    assert not sink.faults


def test_values_and_statuses(tmp_path: Path) -> None:
    cells = ["1", "0.5", "", "NaN", "-inf", "1e3", "true", "wrong", "A", "1_0"]
    content = "model,task,item,score\n" + "".join(f"m,t,{place},{cell}\n" for place, cell in enumerate(cells))
    sink = written(tmp_path / "t.csv", content)
    rows = sink.table("rows")
    assert rows["value"].to_list() == [1.0, 0.5, None, None, None, 1000.0, 1.0, 0.0, None, None]
    assert rows["status"].to_list() == [
        *("scored", "scored", "unscored", "unscored", "unscored", "scored", "scored", "scored"),
        *("unreadable", "unreadable"),
    ]
    assert [(fault.line, fault.column) for fault in sink.faults] == [(10, "score"), (11, "score")]


def test_errors_and_refusals_keep_no_value(tmp_path: Path) -> None:
    content = "model,task,item,score,status\nm,t,1,0,error\nm,t,2,0,Refused\nm,t,3,0,success\n"
    rows = written(tmp_path / "t.csv", content).table("rows")
    assert rows["status"].to_list() == ["error", "refused", "scored"]
    assert rows["value"].to_list() == [None, None, 0.0]


def test_separators_quotes_and_line_ends(tmp_path: Path) -> None:
    quoted = '\ufeffmodel,task,item,question,score\r\nm,t,1,"a ""b"",\r\nsecond line",1\r\n\r\nm,t,2,c,0\r\n'
    sink = written(tmp_path / "a.csv", quoted)
    assert sink.table("rows")["line"].to_list() == [2, 5]
    assert sink.table("rows")["item_hash"].n_unique() == 2
    rows = written(tmp_path / "b.csv", "model;task;item;score\nm;t;1;0,5\n").table("rows")
    assert rows["value"].to_list() == [0.5]
    rows = written(tmp_path / "c.tsv", 'model\ttask\titem\tquestion\tscore\nm\tt\t1\tan "open quote\t1\n').table("rows")
    assert rows["value"].to_list() == [1.0]
    content = gzip.compress(b"model,task,item,score\nm,t,1,1\n")
    assert written(tmp_path / "d.csv.gz", content).table("rows").height == 1


def test_the_same_table_from_four_formats(tmp_path: Path) -> None:
    records = [
        {"model": "NA", "task": "t", "item": str(place), "score": place / 4, "seed": 3, "step": 10}
        for place in range(5)
    ]
    frame = pl.DataFrame(records)
    frame.write_csv(tmp_path / "x.csv")
    frame.write_parquet(tmp_path / "x.parquet")
    (tmp_path / "x.jsonl").write_text("\n".join(map(json.dumps, records)))
    (tmp_path / "x.json").write_text(json.dumps(records))
    tables = []
    for name in ("x.csv", "x.parquet", "x.jsonl", "x.json"):
        sink = read(tmp_path / name)
        assert [(run.model, run.seed, run.step) for run in sink.runs] == [("NA", 3, 10)], name
        assert not sink.faults
        tables.append(sink.table("rows").drop("file", "line"))
    assert all(table.equals(tables[0]) for table in tables)


def test_wide_parquet(tmp_path: Path) -> None:
    pl.DataFrame({"item": ["a", "b"], "A": [1, 0], "B": [0, 0]}).write_parquet(tmp_path / "w.parquet")
    assert models(read(tmp_path / "w.parquet")) == {"A", "B"}


def test_counts_are_divided_by_their_total(tmp_path: Path) -> None:
    sink = written(tmp_path / "t.csv", "model,task,item,n_correct,n_total\nm,t,1,3,4\nm,t,2,5,4\nm,t,3,0,0\n")
    rows = sink.table("rows")
    assert rows["value"].to_list() == [0.75, None, None]
    assert rows["trials"].to_list() == [4, 4, 0]
    assert rows["status"].to_list() == ["scored", "unreadable", "unscored"]
    assert len(sink.faults) == 1
    rows = written(tmp_path / "u.csv", "model,item,correct (out of 8)\nm,1,2\n").table("rows")
    assert rows.select("value", "trials", "metric").row(0) == (0.25, 8, "correct")


def test_metrics_as_columns_and_directions(tmp_path: Path) -> None:
    content = "model,task,item,acc,brier_score,log_odds\nm,t,1,1,0.2,-3\n"
    rows = written(tmp_path / "t.csv", content).table("rows")
    assert rows.select("metric", "value", "higher_is_better").rows() == [
        *(("acc", 1.0, True), ("brier_score", 0.2, False), ("log_odds", -3.0, None)),
    ]
    content = "model,task,item,metric,value,higher_is_better\nm,t,1,loss,0.2,false\nm,t,1,mine,0.2,true\n"
    rows = written(tmp_path / "u.csv", content).table("rows")
    assert rows["higher_is_better"].to_list() == [False, True]


def test_subject_belongs_to_its_benchmark(tmp_path: Path) -> None:
    sink = written(tmp_path / "t.csv", "model,dataset,subject,item,score\nm,mmlu,law,1,1\nm,mmlu,,2,1\n")
    rows = sink.table("rows")
    assert rows.select("task", "benchmark").rows() == [("mmlu_law", "mmlu"), ("mmlu", None)]


def test_settings_tell_runs_apart(tmp_path: Path) -> None:
    content = "model,task,item,score,temperature,seed\nm,t,1,1,0.7,1\nm,t,1,0,1.0,1\nm,t,1,0,1.0,x\n"
    sink = written(tmp_path / "t.csv", content)
    assert [run.setting for run in sink.runs] == ["temperature=0.7", "temperature=1.0", "temperature=1.0"][
        : len(sink.runs)
    ]
    assert [fault.column for fault in sink.faults] == ["seed"]
    assert not any("again" in note for note in sink.notes[:1])


def test_scores_have_errors_and_sizes(tmp_path: Path) -> None:
    sink = written(tmp_path / "t.csv", "model,task,acc,stderr,n,step\nm,t,0.5,0.1,25,step10\nm,u,,,,step10\n")
    scores = sink.table("scores")
    assert scores.select("task", "metric", "value", "stderr", "n").rows() == [("t", "acc", 0.5, 0.1, 25)]
    assert sink.runs[0].step == 10
    assert any("1 empty scores are missing" in note for note in sink.notes)


def test_open_quotes(tmp_path: Path) -> None:
    rest = "".join(f'm,t,{place},an inch " mark,0\n' for place in range(5000))
    sink = written(tmp_path / "t.csv", "model,task,item,question,score\n" + rest)
    assert sink.table("rows").height == 5000
    sink = written(
        tmp_path / "u.csv", 'model,task,item,score,question\nm,t,a,1,q\nm,t,b,1,"q\n' + rest.replace('"', "")
    )
    assert sink.table("rows")["doc_id"].to_list() == ["a"]
    assert len(sink.faults) == 1
    assert "lines 3 to 5003 are not read" in str(sink.faults[0])
    long = "x" * 300_000
    sink = written(tmp_path / "v.csv", f'model,task,item,score,question\nm,t,a,1,"{long},"\nm,t,b,1,q\n')
    assert sink.table("rows")["doc_id"].to_list() == ["a", "b"]
    assert "UTF-16" in written(tmp_path / "w.csv", "model,task,item,score\nm,t,a,1\n".encode("utf-16")).faults[0].reason


BROKEN = {
    "no separator": ("only text\nmore text\n", None),
    "cells": ("model,task,item,score\nm,t,1\nm,t,2,1\n", "has 3 cells, the header has 4"),
    "utf-8": (b"model,task,item,score\nm\xff,t,1,1\nm,t,2,1\n", "is not UTF-8"),
    "open quote": ('model,task,item,score\nm,t,2,1\nm,t,1,"1\nm,t,3,1\n', "never closed"),
    "no model": ("model,task,item,score\n,t,1,1\nm,t,2,1\n", "names no model"),
    "no item": ("model,task,item,score\nm,t,,1\nm,t,2,1\n", "names no item"),
    "no task": ("model,task,item,score\nm,,1,1\nm,t,2,1\n", "names no task"),
    "json": ('{"model": "m", "task": "t", "item": 2, "score": 1}\n{"model": "m", "ta', "is no JSON"),
    "no object": ('{"model": "m", "task": "t", "item": 2, "score": 1}\n[1]\n', "is no JSON object"),
    "twice": ("model,task,item,score,score\nm,t,2,1,0\n", "appears twice"),
    "no score": ("task,item,weight,price\nt,2,1,3\n", "has items and no scores"),
    "unclear": ("thing,x,y\nt,2,1\n", "name the first column"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_broken_files(tmp_path: Path, kind: str) -> None:
    content, reason = BROKEN[kind]
    path = tmp_path / "broken.csv"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    if reason is None:
        file = LogFile(path, path.name)
        assert not any(form.sniff(Head(file.name, file.head())) for form in FORMATS)
        return
    sink = read(path)
    assert len(sink.faults) == 1
    assert reason in str(sink.faults[0])
    if kind not in ("no score", "unclear"):
        assert sink.table("rows")["doc_id"].to_list() == ["2"]


def test_strange_json(tmp_path: Path) -> None:
    lines = [
        '{"model": "m", "task": "t", "item": 1, "score": 1}',
        '{"model": "m", "task": "t", "item": 2, "score": NaN}',
        '{"model": "m", "task": "t", "item": "3", "score": "0.5"}',
        '{"model": "m", "task": "t", "item": 4, "score": [1]}',
        '{"model": ["x"], "task": {"a": 1}, "item": 5.0, "score": 1e400}',
        '{"model": "\\ud800", "task": "t", "item": 6, "score": true}',
        '{"model": "m", "task": "t", "item": 7, "score": ' + "9" * 5000 + "}",
        '{"model": "m", "task": "t", "item": 8, "score": ' + "[" * 100_000 + "}",
        '{"model": "m", "task": "t", "item": 9}',
    ]
    sink = written(tmp_path / "s.jsonl", "\n".join(lines))
    rows = sink.table("rows").sort("line")
    assert set(rows["line"]) >= {1, 2, 3, 4, 5, 6, 9}
    assert rows.filter(pl.col("line") == 3)["value"].to_list() == [0.5]
    assert rows.filter(pl.col("line").is_in([2, 5, 9]))["status"].to_list() == ["unscored"] * 3
    assert rows.filter(line=4)["status"].to_list() == ["unreadable"]
    assert "nested" in str(next(fault for fault in sink.faults if fault.line == 8))


def test_texts_are_kept_where_asked(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("model,task,item,question,score\nm,t,1,what?,1\n")
    assert read(path).table("items").height == 0
    kept = read(path, options=ReadOptions(keep_text=True)).table("items")
    assert kept.select("task", "doc_id", "text").rows() == [("t", "1", "what?")]
    assert kept["item_hash"].to_list() == [text_hash("what?")]


def test_a_first_line_longer_than_the_head(tmp_path: Path) -> None:
    line = json.dumps({"model": "m", "task": "t", "item": 1, "score": 1, "text": "x" * 100_000})
    assert written(tmp_path / "l.jsonl", f"{line}\n{line}\n").table("rows").height == 2


def test_faults_do_not_flood(tmp_path: Path) -> None:
    content = "model,task,item,score\nm,t,0,1\n" + "".join(f"m,t,{place},bad\n" for place in range(1, 1501))
    path = tmp_path / "t.csv"
    path.write_text(content)
    sink = MemorySink()
    long_table.FORMAT.read(Unit("long table", (LogFile(path, "t.csv"),)), sink)
    assert len(sink.faults) == 1001
    assert "500 more" in sink.faults[-1].reason
    assert sink.table("rows").height == 1501


def test_long_line_and_no_file(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("model,task,item,score\nm,t,1,1\nm,t,2," + " " * 500 + "1\nm,t,3,0\n")
    sink = read(path, options=ReadOptions(max_line=100))
    assert sink.table("rows")["doc_id"].to_list() == ["1", "3"]
    assert "longer than" in sink.faults[0].reason
    sink = MemorySink()
    long_table.FORMAT.read(Unit("long table", (LogFile(tmp_path / "none.csv", "none.csv"),)), sink)
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 and nothing else PAR1")
    long_table.FORMAT.read(Unit("long table", (LogFile(tmp_path / "bad.parquet", "bad.parquet"),)), sink)
    assert len(sink.faults) == 2


CSV = b'model,task,item,question,score,seed,step,date\nm,t,1,"a, b",0.5,1,10,2024-01-01\nm,t,2,c,1,1,10,1700000000\n'
LINES = b'{"model": "m", "task": "t", "item": 1, "correct": true, "scores": {"A": -1.5, "B": -2}, "gold": "A"}\n' * 2


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    original=st.sampled_from([CSV, CSV.replace(b",", b"\t"), LINES, b"[" + LINES.strip().replace(b"\n", b",") + b"]"]),
    place=st.integers(0, 250),
    cut=st.integers(0, 30),
    junk=st.one_of(
        st.binary(max_size=8),
        st.sampled_from(
            [b'"', b"\n", b"\x00", b"NaN", b"1e999", b"{" * 50, b"\xff\xfe", b"\\ud800", b",,,", b"-9" * 40]
        ),
    ),
)
def test_mutated_tables_never_raise(tmp_path: Path, original: bytes, place: int, cut: int, junk: bytes) -> None:
    path = tmp_path / "mutated"
    path.write_bytes(original[:place] + junk + original[place + cut :])
    file = LogFile(path, "mutated")
    for form in FORMATS:
        form.sniff(Head(file.name, file.head()))
        form.read(Unit(form.name, (file,)), MemorySink())


def test_a_negative_step_is_a_fault(tmp_path: Path) -> None:
    sink = written(tmp_path / "t.csv", "model,task,acc,step\nm,t,0.5,-5\nm,t,0.6,step-5\n")
    assert [run.step for run in sink.runs] == [5]
    assert [(fault.line, fault.reason) for fault in sink.faults] == [(2, "`-5` is a negative step")]
