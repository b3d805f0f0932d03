"""Results files of lm-evaluation-harness v0.3 and v0.4, and write-outs of v0.3."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchwright.logs import lm_eval, lm_eval_v03
from benchwright.logs.format import Format
from benchwright.logs.lm_eval_results import arguments_of, name_parts
from benchwright.logs.log_file import Head, LogFile
from benchwright.logs.record import MemorySink, Unit

(LM_EVAL,) = lm_eval.FORMATS
WRITE_OUT = lm_eval_v03.FORMAT


def read_folder(folder: Path, format_: Format = LM_EVAL) -> MemorySink:
    """Read what the format claims in a folder, folder by folder."""
    sink = MemorySink()
    units: dict[Path, list[LogFile]] = {}
    for path in sorted(folder.rglob("*")):
        file = LogFile(path, path.relative_to(folder).as_posix())
        if path.is_file() and format_.sniff(Head(file.name, file.head())):
            units.setdefault(path.parent if format_.together else path, []).append(file)
    for files in units.values():
        format_.read(Unit(format_.name, tuple(files)), sink)
    return sink


def write(path: Path, content: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def test_case_c04_result_shapes(shared: Path) -> None:
    sink = read_folder(shared / "cases" / "C04")
    scores = sink.table("scores")
    old = scores.filter(file="v03_results.json")
    assert old.select("metric", "value", "stderr", "version").rows() == [
        ("acc", 0.75, 0.25, "0"),
        ("acc_norm", 0.5, 0.28867513459481287, "0"),
    ]
    new = scores.filter(file="v04_results.json")
    assert new.select("task", "metric", "filter", "value", "stderr", "benchmark").rows() == [
        ("toy", "acc", None, 0.75, None, "toy_group"),
        ("toy2", "acc", None, 0.5, None, "toy_group"),
    ]
    samples = sink.table("rows")
    assert samples["doc_id"].to_list() == ["0", "1"]
    assert samples["value"].mean() == 0.5
    assert sink.faults == []
    inspect = shared / "cases" / "C04" / "inspect_future.json"
    assert not LM_EVAL.sniff(Head(inspect.name, inspect.read_bytes()))


def test_case_c06_task_names(shared: Path, tmp_path: Path) -> None:
    for name in (shared / "cases" / "C06" / "names.txt").read_text(encoding="utf-8").split():
        record = {"doc_id": 0, "doc": {}, "resps": [["x"]], "filter": "none", "metrics": ["acc"], "acc": 1}
        write(tmp_path / name, {"results": {}, "versions": {}} if name.startswith("results") else record)
    rows = read_folder(tmp_path).table("rows")
    assert sorted(rows["task"]) == ["toy", "toy_hard", "toy_hard_cot_2024-06"]
    names = {
        "samples_toy_2025-01-02T03-04-05.000001.jsonl": "samples_toy",
        "samples_toy_hard_2025-01-02T03-04-05.000001.jsonl.zst": "samples_toy_hard",
        "samples_toy_hard_cot_2024-06_2025-01-02T03-04-05.jsonl": "samples_toy_hard_cot_2024-06",
        "results_2025-01-02T03-04-05.000001.json": "results",
        "samples_a_2024-01-02T03-04-05_2025-01-02T03-04-05.jsonl": "samples_a_2024-01-02T03-04-05",
    }
    assert {name: name_parts(name)[0] for name in names} == names


def test_case_c07_who_is_this_model(shared: Path) -> None:
    sink = read_folder(shared / "cases" / "C07")
    assert {(run.model, run.revision, run.step) for run in sink.runs} == {
        ("demo-lab/Alpha-7b-instruct", "step2000", 2000),
        ("demo-lab/Alpha-7b-instruct", "step4000", 4000),
        ("/ckpts/run3/step2000", None, 2000),
    }
    assert sum("another model than the folder" in note for note in sink.notes) == 1


def test_case_c17_partial_runs_and_versions(shared: Path) -> None:
    sink = read_folder(shared / "cases" / "C17")
    partial, whole = sorted(sink.runs, key=lambda run: run.model)
    assert (partial.limit, whole.limit) == (True, False)
    assert sink.table("scores").select("value", "n", "of", "version").rows() == [
        (0.75, 4, 10, "1.0"),
        (0.6, 10, 10, "2.0"),
    ]
    rows = sink.table("rows")
    common = rows.filter(pl.col("doc_id").is_in(["0", "1", "2", "3"]))
    assert common.group_by("run_id").agg(pl.col("value").mean()).sort("run_id")["value"].to_list() == [0.75, 1.0]
    assert rows["version"].unique().sort().to_list() == ["1.0", "2.0"]


def test_case_c18_no_group_score_is_invented(shared: Path) -> None:
    scores = read_folder(shared / "cases" / "C18").table("scores")
    assert scores.select("task", "value", "stderr", "n", "of", "is_group").rows() == [
        ("toy_big", 0.9, 0.030151134457776358, 100, 100, False),
        ("toy_small", 0.4, 0.1, 25, 25, False),
    ]


def test_pythia_steps_come_from_the_payload(shared: Path) -> None:
    folder = shared / "data" / "logs" / "lm-eval" / "pythia-v1"
    sink = read_folder(folder)
    scores = sink.table("scores")
    assert len(sink.runs) == 231
    assert len({run.model for run in sink.runs}) == 9
    assert sink.faults == []
    assert not scores["metric"].str.ends_with("_stderr").any()
    assert scores["task"].n_unique() == 87
    assert scores["is_group"].sum() == 0
    assert {run.setting for run in sink.runs} == {"0-shot", "5-shot"}
    assert sum("5shot" in note for note in sink.notes) == len(sink.notes) == 4  # named so, but run without examples
    stated = 0
    for path in sorted(folder.rglob("*_step*.json"))[::20]:  # an independent count of the numbers in the files
        document = json.loads(path.read_text(encoding="utf-8"))
        mine = scores.filter(file=path.relative_to(folder).as_posix())
        run = sink.runs[mine["run_id"][0]]
        assert f"revision=step{run.step}" in document["config"]["model_args"]
        assert path.stem.endswith(f"step{run.step}")
        expected = {
            (task, metric): (value, entry.get(f"{metric}_stderr"))
            for task, entry in document["results"].items()
            for metric, value in entry.items()
            if not metric.endswith("_stderr")
        }
        assert {(t, m): (v, s) for t, m, v, s in mine.select("task", "metric", "value", "stderr").rows()} == expected
        stated += len(expected)
    assert stated > 1500
    directions = dict(scores.select("metric", "higher_is_better").unique().rows())
    assert directions == {"acc": True, "acc_norm": True, "ppl": False} | dict.fromkeys(
        ("pct_stereotype", "likelihood_difference")
    )


def test_groups_counts_and_settings(tmp_path: Path) -> None:
    document = {
        "results": {
            "mmlu": {"alias": "mmlu", "acc,none": "0.5", "acc_stderr,none": 0.1},
            "mmlu_stem": {"acc,none": 0.5},
            "mmlu_anatomy": {"acc,none": 0.5, "acc_stderr,none": float("nan"), "f1,a,b": 1, "bypass,none": 999},
            "odd": {"acc,none": {"a": 1}, "sample_len": 3},
            "list": [1],
        },
        "groups": {"mmlu": {"acc,none": 0.5}, "other": {"acc,none": 0.25}},
        "group_subtasks": {"mmlu": ["mmlu_stem"], "mmlu_stem": ["mmlu_anatomy", "mmlu"], "odd": [], "self": ["self"]},
        "n-samples": {"mmlu_anatomy": {"original": 135, "effective": 135}},
        "n-shot": {"mmlu_anatomy": 5, "odd": 5},
        "higher_is_better": {"mmlu_anatomy": {"f1": False}},
        "chat_template": "{{ x }}",
        "date": 1749508511.2957065,
        "config": {"model_args": "pretrained=org/m,peft=org/lora,max_memory={a,b},revision=main", "limit": 200.0},
    }
    write(tmp_path / "org__m" / "results_2025-06-09T18-36-41.285612.json", document)
    sink = read_folder(tmp_path)
    (run,) = sink.runs
    assert (run.model, run.revision, run.limit) == ("org/m+peft=org/lora", None, False)
    assert run.setting == "5-shot, chat template"
    assert run.created == "2025-06-09T22:35:11.295707+00:00"
    scores = sink.table("scores")
    got = scores.select("task", "metric", "filter", "value", "stderr", "n", "is_group", "benchmark", "higher_is_better")
    assert got.rows() == [
        ("mmlu", "acc", None, 0.5, 0.1, None, True, "mmlu_stem", True),
        ("mmlu_stem", "acc", None, 0.5, None, None, True, "mmlu", True),
        ("mmlu_anatomy", "acc", None, 0.5, None, 135, False, "mmlu", True),
        ("mmlu_anatomy", "f1,a", "b", 1.0, None, 135, False, "mmlu", None),
        ("odd", "acc", None, None, None, 3, False, None, True),
        ("other", "acc", None, 0.25, None, None, True, None, True),
    ]
    assert [(fault.column, fault.reason[:30]) for fault in sink.faults] == [
        ("odd: acc", "a score must be a number, got "),
        ("list", "has no scores for task list bu"),
    ]


def test_model_args_hold_commas_and_mappings() -> None:
    assert arguments_of("pretrained=a/b,stop=x,y,dtype=float16") == {
        "pretrained": "a/b",
        "stop": "x,y",
        "dtype": "float16",
    }
    assert arguments_of({"pretrained": "a/b", "revision": None}) == {"pretrained": "a/b"}
    assert arguments_of(3) == {}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ('{"results": {"toy": {"acc,none": 0.5}}, "versions": {"toy"', "is no JSON from line 1"),
        ('{"results": [1, 2], "versions": {}}', "has no `results` by task"),
        ('{"results": ' + '{"a":' * 100_000, "is nested too deeply"),
    ],
)
def test_a_broken_results_file_is_one_fault(tmp_path: Path, content: str, reason: str) -> None:
    path = write(tmp_path / "results.json", content)
    sink = MemorySink()
    LM_EVAL.read(Unit(LM_EVAL.name, (LogFile(path, path.name),)), sink)
    assert len(sink.faults) == 1
    assert reason in sink.faults[0].reason
    assert sink.table("scores").is_empty()


def test_the_truncated_file_of_a_fine_tuning_study_is_one_fault(shared: Path) -> None:
    folder = shared / "data" / "logs" / "lm-eval" / "malicious-finetune"
    sink = read_folder(folder)
    assert [(fault.file, fault.reason[:42]) for fault in sink.faults] == [
        ("lm_eval_results.json", "is no JSON from line 65958, character 20 o")
    ]
    assert {run.model for run in sink.runs} == {"meta-llama/Llama-2-7b-chat-hf"}
    scores = sink.table("scores")
    assert scores["value"].to_list() == [0.1524390243902439] * 2
    assert sink.table("rows")["value"].mean() == pytest.approx(0.1524390243902439, abs=1e-12)
    assert sink.table("rows")["run_id"].unique().to_list() == [scores["run_id"][1]]


def test_write_outs_of_v03(shared: Path) -> None:
    folder = shared / "data" / "logs" / "lm-eval" / "v03-writeout-CALM"
    sink = read_folder(folder, WRITE_OUT)
    rows = sink.table("rows").with_columns(
        model=pl.col("run_id").replace_strict({i: run.model for i, run in enumerate(sink.runs)})
    )
    items = rows.filter(metric="acc").group_by("model", "task").len().sort("model", "task")
    assert items.rows() == [
        ("CALM", "flare_ccfraud_desc", 2098),
        ("CALM", "flare_german_desc", 200),
        ("chatgpt", "flare_ccfraud_desc", 2098),
        ("chatgpt", "flare_german_desc", 200),
        ("gpt4", "flare_ccfraud_desc", 100),
        ("gpt4", "flare_customs2_desc", 200),
        ("gpt4", "flare_german_desc", 200),
    ]
    path = folder / "src" / "bias" / "CALM" / "flare_german_desc_write_out_info.json"
    expected = [float(entry["acc"]) for entry in json.loads(path.read_text(encoding="utf-8"))]
    mine = rows.filter(model="CALM", task="flare_german_desc", metric="acc")
    assert mine["value"].to_list() == expected
    assert mine["item_hash"].n_unique() == 200
    pairs = rows.filter(pl.col("metric").is_in(["f1", "macro_f1", "mcc"]))
    assert pairs["status"].unique().to_list() == ["unreadable"]
    assert pairs["value"].null_count() == pairs.height
    assert len(sink.faults) == 2 * 2 + 5 * 3  # one a file and metric
    assert all("2,098 record(s)" in f.reason or "00 record(s)" in f.reason for f in sink.faults)


def test_write_outs_with_choices_and_broken_records(tmp_path: Path) -> None:
    records: list[Any] = [
        {
            "doc_id": 0,
            "prompt_0": "Q a",
            "logit_0": "-1.5",
            "prompt_1": "Q b",
            "logit_1": -2,
            "truth": " b",
            "acc": "0",
        },
        {"doc_id": "x", "prompt_0": "Q", "logit_0": "yes", "truth": "no", "acc": ""},
        {"doc_id": None, "acc": "1.0"},
        7,
    ]
    write(tmp_path / "toy" / "toy_write_out_info.json", records)
    sink = read_folder(tmp_path, WRITE_OUT)
    assert sink.table("rows").select("doc_id", "value", "status").rows() == [
        ("0", 0.0, "scored"),
        ("x", None, "unscored"),
    ]
    assert sink.table("choices").select("doc_id", "gold", "logprob").rows() == [("0", 1, [-1.5, -2.0])]
    assert [fault.line for fault in sink.faults] == [3, 4]
    assert sink.runs[0].model == tmp_path.name
    write(tmp_path / "cut_write_out_info.json", json.dumps(records)[:-20])
    assert "is no JSON" in read_folder(tmp_path, WRITE_OUT).faults[0].reason


def test_other_formats_are_not_claimed(shared: Path) -> None:
    logs = shared / "data" / "logs"
    others = [path for name in ("helm", "olmes", "inspect") for path in (logs / name).rglob("*.json*")]
    others += list((logs / "lm-eval" / "flipeval-qwen15b").glob("pilot_outputs_*/**/*.json*"))
    assert len(others) > 20
    for path in others:
        head = Head(path.name, LogFile(path, path.name).head())
        assert not LM_EVAL.sniff(head), path
        assert not WRITE_OUT.sniff(head), path
    with (logs / "lm-eval" / "malicious-finetune" / "lm_eval_experiment_progress.csv").open(encoding="utf-8") as file:
        assert next(csv.reader(file))[0] == "experiment_name"  # a table, for another reader


json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.just("1e999")),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)),
    max_leaves=6,
)
PLACES = (
    ("results",), ("results", "humaneval"), ("results", "humaneval", "pass@1,create_test"), ("group_subtasks",),
    ("configs",), ("configs", "humaneval"), ("versions",), ("versions", "humaneval"), ("n-shot",), ("n-samples",),
    ("n-samples", "humaneval"), ("higher_is_better",), ("config",), ("config", "model_args"), ("config", "limit"),
    ("date",), ("model_name",), ("groups",), ("samples",), ("group_subtasks", "humaneval"), ("config", "num_fewshot"),
)  # fmt: skip


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data())
def test_changed_results_never_raise(shared: Path, tmp_path: Path, data: st.DataObject) -> None:
    folder = shared / "data" / "logs" / "lm-eval" / "malicious-finetune" / "results" / "meta-llama__Llama-2-7b-chat-hf"
    document = json.loads((folder / "results_2025-06-09T18-36-41.285612.json").read_text(encoding="utf-8"))
    for place in data.draw(st.lists(st.sampled_from(PLACES), min_size=1, max_size=3)):
        target = document
        for key in place[:-1]:
            target = target.get(key) if isinstance(target, dict) else None
        if isinstance(target, dict):
            target[place[-1]] = data.draw(json_values)
    path = write(tmp_path / "results_2025-01-01T00-00-00.json", json.dumps(document))
    sink = MemorySink()
    LM_EVAL.read(Unit(LM_EVAL.name, (LogFile(path, path.name),)), sink)
    for frame in ("rows", "scores"):
        assert sink.table(frame)["value"].is_finite().all()
