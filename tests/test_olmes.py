"""OLMES output folders: written after the documented format, since no real prediction files are public."""

from __future__ import annotations

import gzip
import json
import math
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchwright.logs import olmes
from benchwright.logs.log_file import Head, LogFile
from benchwright.logs.record import MemorySink, ReadOptions, Unit
from test_helm import mutate


def metrics(task: str = "arc_challenge", **more: Any) -> dict[str, Any]:
    return {
        "task_name": task,
        "task_hash": f"hash-{task}",
        "model_hash": "m1",
        "model_config": {"model": "demo-lab/alpha", "revision": "step4000", "model_type": "hf"},
        "task_config": {"primary_metric": "acc_per_char", "split": "test", "version": 0, "task_core": task},
        "current_date": "2024-07-23 18:34:07 UTC",
        "num_instances": 4,
        "metrics": {"acc_raw": 0.5, "acc_per_char": 0.75, "primary_score": 0.75},
        **more,
    }


def prediction(doc_id: int, raw: int, per_char: int, task: str = "arc_challenge", **more: Any) -> dict[str, Any]:
    outputs = [
        {"sum_logits": -2.0 - choice, "num_tokens": 2, "num_chars": 5 + choice, "num_bytes": 6 + choice}
        for choice in range(4)
    ]
    return {
        "doc_id": doc_id,
        "native_id": f"n{doc_id}",
        "metrics": {"predicted_index_raw": 1, "correct_choice": 2, "acc_raw": raw, "acc_per_char": per_char},
        "model_output": outputs,
        "label": 2,
        "task_hash": f"hash-{task}",
        "model_hash": "m1",
        **more,
    }


def request(doc_id: int, choice: int = 0, **more: Any) -> dict[str, Any]:
    doc = {"query": f"Question {doc_id % 1_000_000}?", "choices": ["a", "b", "c", "d"], "gold": 2}
    return {
        "request_type": "loglikelihood", "doc": doc, "request": {"context": "c", "continuation": " a"}, "idx": choice,
        "task_name": "arc_challenge", "doc_id": doc_id, "native_id": "n", "label": 2, **more,
    }  # fmt: skip


PREDICTIONS = [prediction(0, 1, 1), prediction(1, 0, 1), prediction(2, 1, 1), prediction(3, 0, 0)]


def write(folder: Path, files: dict[str, Any]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        if isinstance(content, bytes):
            (folder / name).write_bytes(content)
        elif name.endswith(".jsonl"):
            (folder / name).write_text("".join(json.dumps(one) + "\n" for one in content), encoding="utf-8")
        else:
            (folder / name).write_text(json.dumps(content, indent=1), encoding="utf-8")
    return folder


def read(folder: Path, **options: Any) -> MemorySink:
    files = tuple(LogFile(path, path.relative_to(folder.parent).as_posix()) for path in sorted(folder.iterdir()))
    files = tuple(file for file in files if olmes.FORMAT.sniff(Head(file.name, file.head())))
    sink = MemorySink(ReadOptions(**options))
    olmes.FORMAT.read(Unit(olmes.FORMAT.name, files), sink)
    return sink


def whole(folder: Path, **changed: Any) -> MemorySink:
    files = {
        "task-000-arc_challenge-metrics.json": metrics(),
        "task-000-arc_challenge-predictions.jsonl": PREDICTIONS,
        "task-000-arc_challenge-requests.jsonl": [
            request(doc + raised, choice) for raised in (0, 1_000_000) for doc in range(4) for choice in range(4)
        ],
        "metrics.json": {"all_primary_scores": ["arc_challenge: 0.75"], "tasks": []},
    }
    return read(write(folder, files | changed))


def test_a_folder_gives_rows_choices_and_scores_that_agree(tmp_path: Path) -> None:
    sink = whole(tmp_path / "out")
    assert sink.faults == []
    (run,) = sink.runs
    assert (run.model, run.revision, run.created) == ("demo-lab/alpha", "step4000", "2024-07-23T18:34:07Z")
    table, scores = sink.table("rows"), sink.table("scores")
    assert table.height == 8
    assert table["item_hash"].n_unique() == 4
    means = dict(table.group_by("metric").agg(pl.col("value").mean()).rows())
    stated = dict(scores.select("metric", "value").rows())
    assert means == {"acc_raw": 0.5, "acc_per_char": 0.75}
    assert all(stated[metric] == mean for metric, mean in means.items())
    assert scores["n"].to_list() == [4, 4, 4]
    assert scores["higher_is_better"].to_list() == [True, True, True]
    choices = sink.table("choices")
    assert choices.select("doc_id", "gold").rows() == [(str(doc), 2) for doc in range(4)]
    assert choices["logprob"][0].to_list() == [-2.0, -3.0, -4.0, -5.0]
    assert choices["chars"][0].to_list() == [5, 6, 7, 8]
    assert choices["bytes"][0].to_list() == [6, 7, 8, 9]
    assert choices["tokens"][0].to_list() == [2, 2, 2, 2]
    assert any("predicted_index_raw" in note for note in sink.notes)


def test_public_requests_are_item_lists_and_no_results(shared: Path) -> None:
    items = {}
    for folder in sorted((shared / "data" / "logs" / "olmes" / "requests").glob("*/*")):
        sink = read(folder)
        assert (sink.faults, sink.runs, sink.table("rows").height) == ([], [], 0)
        (note,) = sink.notes
        assert note.endswith("items, no model outputs")
        items[folder.parent.name] = int(note.split(" of ")[1].split(" items")[0].replace(",", ""))
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        assert items[folder.parent.name] == config["num_instances"]
    assert sum(items.values()) == 12_647
    assert len(items) == 9


def test_the_documented_examples_are_read(shared: Path, tmp_path: Path) -> None:
    text = (shared / "data" / "logs" / "olmes" / "output-format" / "OUTPUT_FORMATS.md").read_text(encoding="utf-8")
    blocks = [block.split("```")[0] for block in text.split("```json\n")[1:]]
    stripped = []
    for block in blocks:
        lines = [line.split("  // ")[0].split(" // ")[0].split("} //")[0] for line in block.splitlines()]
        stripped.append(json.loads("\n".join(lines)))
    names = ("metrics.json", "predictions.jsonl", "requests.jsonl", "recorded-inputs.jsonl")
    files = {f"task-000-arc_challenge-{name}": one for name, one in zip(names, stripped, strict=True)}
    sink = read(write(tmp_path / "o", {k: [v] if k.endswith("l") else v for k, v in files.items()}))
    assert sink.faults == []
    assert dict(sink.table("rows").select("metric", "value").rows()) == {
        "acc_raw": 1.0, "acc_per_token": 1.0, "acc_per_char": 1.0, "acc_uncond": 1.0,
    }  # fmt: skip
    assert sink.table("scores").filter(pl.col("metric") == "primary_score")["value"].to_list() == [0.5733788395904454]
    assert sink.table("choices")["chars"][0].to_list() == [33, 36, 36, 40]
    assert sink.table("rows")["item_hash"].null_count() == 0


def test_generative_task_and_bits_per_byte(tmp_path: Path) -> None:
    made = {"doc_id": 0, "native_id": None, "label": "18", "task_hash": "hash-gsm8k", "model_hash": "m1"}
    made |= {"metrics": {"exact_match": 1.0, "bits_per_byte": 0.7}, "model_output": [{"continuation": "18"}]}
    sink = read(
        write(tmp_path / "o", {"task-0-gsm8k-metrics.json": metrics("gsm8k"), "task-0-x-predictions.jsonl": [made]})
    )
    assert sink.faults == []
    found = sink.table("rows").select("task", "metric", "value", "higher_is_better").rows()
    assert found == [("gsm8k", "exact_match", 1.0, True), ("gsm8k", "bits_per_byte", 0.7, False)]
    assert sink.table("choices").height == 0


def test_repeated_generations_are_no_choices(tmp_path: Path) -> None:
    made = {"doc_id": 0, "label": 1, "metrics": {"exact_match": 1.0}, "task_hash": "hash-gsm8k", "model_hash": "m1"}
    made |= {"model_output": [{"continuation": "1", "sum_logits": -1.0}, {"continuation": "2", "sum_logits": -2.0}]}
    files = {"task-0-gsm8k-metrics.json": metrics("gsm8k"), "task-0-gsm8k-predictions.jsonl": [made]}
    sink = read(write(tmp_path / "o", files))
    assert (sink.table("choices").height, sink.table("rows").height, sink.faults) == (0, 1, [])


def test_nan_null_and_text_values(tmp_path: Path) -> None:
    odd = [prediction(0, 1, 1), prediction(1, 0, 1), prediction(2, 0, 0), prediction(3, 0, 0)]
    odd[0]["metrics"] = {"acc_raw": math.nan, "acc_per_char": "0.5"}
    odd[1]["metrics"] = {"acc_raw": None, "acc_per_char": "good"}
    odd[2]["model_output"] = "none"
    odd[3]["model_output"][1]["sum_logits"] = math.inf
    sink = whole(tmp_path / "o", **{"task-000-arc_challenge-predictions.jsonl": odd})
    found = sink.table("rows").filter(pl.col("doc_id").is_in(["0", "1"])).select("value", "status").rows()
    assert found == [(None, "unscored"), (0.5, "scored"), (None, "unscored"), (None, "unreadable")]
    assert [(fault.line, fault.column) for fault in sink.faults] == [(2, "acc_per_char"), (4, "sum_logits")]
    assert sink.table("choices")["doc_id"].to_list() == ["0", "1"]


def test_broken_lines_are_faults_and_the_rest_is_read(tmp_path: Path) -> None:
    lines = [json.dumps(one).encode() for one in PREDICTIONS]
    content = (
        b"\xef\xbb\xbf" + lines[0] + b"\r\n" + lines[1][:50] + b"\n[1]\n" + b"[" * 9000 + b"\n\xff\xfe\n" + lines[3]
    )
    sink = whole(tmp_path / "o", **{"task-000-arc_challenge-predictions.jsonl": content})
    assert sink.table("rows")["doc_id"].unique(maintain_order=True).to_list() == ["0", "3"]
    assert [fault.line for fault in sink.faults] == [2, 3, 4, 5]
    assert sink.table("rows")["line"].unique().sort().to_list() == [1, 6]


def test_predictions_alone_have_no_model_name(tmp_path: Path) -> None:
    sink = read(write(tmp_path / "alpha", {"task-000-arc_challenge-predictions.jsonl": PREDICTIONS}))
    assert sink.runs[0].model == "alpha"
    assert [fault.column for fault in sink.faults] == ["model_config"]
    assert sink.table("rows")["task"].unique().to_list() == ["arc_challenge"]


def test_one_task_in_two_configurations_goes_by_its_aliases(tmp_path: Path) -> None:
    files: dict[str, Any] = {}
    for number, kind in enumerate(("rc", "mc")):
        config = {"metadata": {"alias": f"arc_challenge:{kind}::olmes"}, "task_core": "arc_challenge"}
        files[f"task-00{number}-arc_challenge-metrics.json"] = metrics(task_hash=kind, task_config=config)
        lines = [prediction(0, number, number, task_hash=kind)]
        files[f"task-00{number}-arc_challenge-predictions.jsonl"] = lines
    sink = read(write(tmp_path / "o", files))
    found = sink.table("rows").filter(pl.col("metric") == "acc_raw").select("task", "benchmark", "value").rows()
    assert found == [
        ("arc_challenge:rc::olmes", "arc_challenge", 0.0),
        ("arc_challenge:mc::olmes", "arc_challenge", 1.0),
    ]


def test_all_metrics_in_one_file_are_read_where_the_single_ones_are_not(tmp_path: Path) -> None:
    both = [metrics("arc_challenge"), metrics("csqa")]
    files = {"metrics-all.jsonl": both, "task-000-arc_challenge-metrics.json": metrics("arc_challenge")}
    scores = read(write(tmp_path / "o", files)).table("scores")
    assert scores.filter(pl.col("metric") == "acc_raw")["task"].to_list() == ["arc_challenge", "csqa"]


def test_compressed_and_limited(tmp_path: Path) -> None:
    content = gzip.compress(b"".join(json.dumps(one).encode() + b"\n" for one in PREDICTIONS))
    files = {"task-000-arc_challenge-metrics.json": metrics(), "task-000-arc_challenge-predictions.jsonl.gz": content}
    files["task-000-arc_challenge-metrics.json"]["task_config"]["limit"] = 4
    sink = read(write(tmp_path / "o", files), max_line=400)
    assert sink.runs[0].limit
    assert sink.table("rows").height == 0
    assert len(sink.faults) == 4
    assert read(tmp_path / "o").table("rows").height == 8


@pytest.mark.parametrize("name", ["metrics.json", "predictions.jsonl", "requests.jsonl"])
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_no_mutation_raises(tmp_path: Path, name: str, data: st.DataObject) -> None:
    record = {"metrics.json": metrics(), "predictions.jsonl": prediction(0, 1, 1), "requests.jsonl": request(0)}[name]
    changed = mutate(record, data)
    content = json.dumps(changed).encode()
    content = content[: data.draw(st.integers(0, len(content)))] if data.draw(st.booleans()) else content
    sink = whole(tmp_path / "o", **{f"task-000-arc_challenge-{name}": content})
    table = sink.table("rows")
    assert table.filter((pl.col("status") == "scored") != pl.col("value").is_not_null()).height == 0
