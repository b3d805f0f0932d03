"""Resolved lists, MTEB results, lighteval results and details, and the refusal of pairwise preferences."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchwright.logs import lighteval, mteb, preferences, resolved
from benchwright.logs.format import Format
from benchwright.logs.log_file import Head, LogFile
from benchwright.logs.record import MemorySink, Unit
from test_helm import mutate


def read(format_: Format, root: Path) -> MemorySink:
    """Read every folder below a root whose files the format claims, as the engine does."""
    sink = MemorySink()
    folders: dict[Path, list[LogFile]] = {}
    for path in sorted(root.rglob("*")):
        file = LogFile(path, path.relative_to(root).as_posix())
        if path.is_file() and format_.sniff(Head(file.name, file.head())):
            folders.setdefault(path.parent, []).append(file)
    for files in folders.values():
        format_.read(Unit(format_.name, tuple(files)), sink)
    return sink


def write(root: Path, files: dict[str, Any]) -> Path:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            path.write_bytes(content)
        elif isinstance(content, pl.DataFrame):
            content.write_parquet(path)
        else:
            path.write_text(json.dumps(content), encoding="utf-8")
    return root


def means(sink: MemorySink) -> dict[str, float]:
    table = sink.table("rows").group_by("run_id").agg(pl.col("value").mean()).sort("run_id")
    return {sink.runs[run].model: value for run, value in table.rows()}


# --- resolved lists -----------------------------------------------------------------------------------------------


def test_c27_items_that_nobody_solved_count(shared: Path) -> None:
    sink = read(resolved.FORMAT, shared / "cases" / "C27")
    assert sink.faults == []
    assert means(sink) == {"m1": 0.6, "m2": 0.4, "m3": 0.4, "m4": 0.2}
    table = sink.table("rows")
    assert table.height == 4 * 5
    assert table["doc_id"].unique().sort().to_list() == ["i1", "i2", "i3", "i4", "i5"]
    assert table["task"].unique().to_list() == ["C27"]
    by_item = dict(table.group_by("doc_id").agg(pl.col("value").mean()).rows())
    assert sorted(item for item, mean in by_item.items() if mean in (0.0, 1.0)) == ["i1", "i5"]


def test_c27_one_folder_alone_finds_the_list_above(shared: Path) -> None:
    sink = read(resolved.FORMAT, shared / "cases" / "C27" / "m4")
    assert (means(sink), sink.faults) == ({"m4": 0.2}, [])


def test_without_an_item_list_nothing_is_scored(tmp_path: Path) -> None:
    sink = read(
        resolved.FORMAT, write(tmp_path / "a", {"m1/results.json": {"resolved": ["i1"], "no_generation": ["i2"]}})
    )
    assert sink.table("rows").height == 0
    (fault,) = sink.faults
    assert fault.file == "m1/results.json"
    assert "instances.json" in fault.reason


def test_a_report_that_lists_its_whole_total_is_its_own_item_list(tmp_path: Path) -> None:
    report = {
        "total_instances": 6, "submitted_ids": ["a", "b", "c", "d", "e"], "completed_ids": ["a", "b", "c"],
        "resolved_ids": ["a"], "unresolved_ids": ["b", "c"], "error_ids": ["d"], "empty_patch_ids": ["e"],
        "incomplete_ids": ["f"], "schema_version": 2,
    }  # fmt: skip
    root = write(tmp_path / "verified", {"lab__alpha-2.5.run-1.json": report})
    sink = read(resolved.FORMAT, root)
    assert sink.faults == []
    assert (sink.runs[0].model, sink.runs[0].run) == ("lab__alpha-2.5", "run-1")
    assert dict(sink.table("rows").select("doc_id", "value").rows()) == {
        "a": 1.0, "b": 0.0, "c": 0.0, "d": None, "e": 0.0, "f": None,
    }  # fmt: skip
    assert dict(sink.table("rows").select("doc_id", "status").rows()) == {
        "a": "scored", "b": "scored", "c": "scored", "d": "error", "e": "scored", "f": "unscored",
    }  # fmt: skip
    report["total_instances"] = 7
    assert len(read(resolved.FORMAT, write(root, {"lab__alpha-2.5.run-1.json": report})).faults) == 1


def test_submission_folders_with_metadata_and_a_list_of_records(tmp_path: Path) -> None:
    files = {
        "lite/20240402_x/results/results.json": {"resolved": ["a"], "no_logs": ["b"], "generated": ["a", "b"]},
        "lite/20240402_x/metadata.yaml": b'info:\n  name: "Agent + Model"\ntags:\n  model: [m]\n',
        "lite/instances.jsonl": b'{"instance_id":"a","problem_statement":"p"}\n{"instance_id":"b"}\n'
        b'{"instance_id":"c"}\n',
    }
    sink = read(resolved.FORMAT, write(tmp_path, files))
    assert sink.faults == []
    assert sink.runs[0].model == "Agent + Model"
    assert sink.table("rows").select("task", "doc_id", "value", "status").rows() == [
        ("lite", "a", 1.0, "scored"), ("lite", "b", None, "error"), ("lite", "c", 0.0, "scored"),
    ]  # fmt: skip
    assert sink.table("rows")["item_hash"].null_count() == 2


def test_contradictions_unknown_items_and_odd_ids(tmp_path: Path) -> None:
    files = {
        "instances.json": ["a", "b", "a", None, 3],
        "m/results.json": {"resolved": ["a", "x", {}], "no_generation": ["a"], "no_logs": []},
    }
    sink = read(resolved.FORMAT, write(tmp_path, files))
    assert dict(sink.table("rows").select("doc_id", "status").rows()) == {
        "a": "unreadable",
        "b": "scored",
        "3": "scored",
    }
    assert len(sink.faults) == 5
    reasons = " | ".join(fault.reason for fault in sink.faults)
    for part in ("stands there twice", "is no item id", "not in the item list", "both resolved and not"):
        assert part in reasons


# --- MTEB ---------------------------------------------------------------------------------------------------------

MTEB = {
    "dataset_revision": "r1", "task_name": "Mix", "mteb_version": "1.12.0", "evaluation_time": 3.0,
    "scores": {
        "test": [
            {"hf_subset": "en", "languages": ["eng-Latn"], "main_score": 0.5, "accuracy": 0.5, "nauc": None},
            {"hf_subset": "fr", "languages": ["fra-Latn"], "main_score": "0.6", "scores_per_experiment": [1]},
        ],
        "dev": [{"hf_subset": "default", "languages": [], "main_score": 0.7}],
    },
}  # fmt: skip
META = {"name": "lab/embed", "revision": "abc", "loader": None, "n_parameters": 7, "release_date": "2024-01-01"}


def test_mteb_scores_per_split_and_subset(tmp_path: Path) -> None:
    sink = read(
        mteb.FORMAT,
        write(tmp_path, {"other__name/1234567/Mix.json": MTEB, "other__name/1234567/model_meta.json": META}),
    )
    assert sink.faults == []
    assert (sink.runs[0].model, sink.runs[0].revision) == ("lab/embed", "abc")
    assert sink.table("scores").select("task", "version", "filter", "metric", "value").rows() == [
        ("Mix", "r1", "test/en", "main_score", 0.5), ("Mix", "r1", "test/en", "accuracy", 0.5),
        ("Mix", "r1", "test/en", "nauc", None), ("Mix", "r1", "test/fr", "main_score", 0.6),
        ("Mix", "r1", "dev", "main_score", 0.7),
    ]  # fmt: skip


def test_mteb_without_description_goes_by_its_folders_and_says_so(tmp_path: Path) -> None:
    old = {"dataset_revision": "r", "mteb_dataset_name": "STS", "mteb_version": "1.0.2"}
    old |= {"test": {"cos_sim": {"spearman": 0.8}, "evaluation_time": 2.0}, "validation": {"en": {"accuracy": 0.4}}}
    sink = read(mteb.FORMAT, write(tmp_path, {"results/lab__old/no_revision_available/STS.json": old}))
    assert (sink.runs[0].model, sink.runs[0].revision) == ("lab/old", None)
    assert len(sink.notes) == 1
    assert sink.table("scores").select("filter", "metric", "value").rows() == [
        ("test", "cos_sim_spearman", 0.8), ("validation/en", "accuracy", 0.4),
    ]  # fmt: skip


def test_mteb_broken_files(tmp_path: Path) -> None:
    files = {"A.json": json.dumps(MTEB).encode()[:200], "B.json": MTEB | {"scores": {"test": 3, "dev": ["main_score"]}}}
    sink = read(mteb.FORMAT, write(tmp_path, files | {"model_meta.json": META}))
    assert {fault.file for fault in sink.faults} == {"A.json", "B.json"}


# --- lighteval ----------------------------------------------------------------------------------------------------

TIME = "2024-05-01T10-20-30.123456"
RESULTS = {
    "config_general": {"model_name": "lab/alpha", "model_sha": "sha1", "max_samples": None},
    "results": {
        "leaderboard|arc:challenge|25|0": {"acc": 0.5, "acc_stderr": 0.25, "ppl": 3.0},
        "lighteval|gsm8k|0": {"em": 0.75, "em_stderr": 0.1},
        "leaderboard|mmlu:_average|5": {"acc": 0.4},
        "all": {"acc": 0.5, "acc_stderr": 0.25},
    },
    "versions": {"leaderboard|arc:challenge|25|0": 0},
    "config_tasks": {
        "leaderboard|arc:challenge": {
            "metric": [
                {"metric_name": "acc", "higher_is_better": True},
                {"metric_name": "ppl", "higher_is_better": False},
            ],
            "effective_num_docs": 4, "original_num_docs": 1172,
        }
    },
}  # fmt: skip
NEW = pl.DataFrame(
    {
        "doc": [
            {"id": str(doc), "query": f"Q{doc}", "choices": [" yes", " nö"], "gold_index": [doc % 2]}
            for doc in range(4)
        ],
        "metric": [{"acc": float(doc < 2), "corpus": [1, 2]} for doc in range(4)],
        "model_response": [{"logprobs": [-1.0, -2.0], "text": ["a"]} for _ in range(4)],
    }
)
OLD = pl.DataFrame(
    {
        "example": ["Q0", "Q1", "Q2", "Q3", "Q4"],
        "choices": ["[' yes', ' no']"] * 5,
        "gold_index": ["0"] * 5,
        "metrics": ["{'em': 1}", '{"em": 1.0}', "{'em': '1'}", "{'em': 0}", "{'em': nan}"],
        "pred_logits": ["[-1.0, -2.0]"] * 5,
    }
)


def lighteval_folder(root: Path) -> Path:
    return write(
        root,
        {
            f"results/lab/alpha/results_{TIME}.json": RESULTS,
            f"details/lab/alpha/{TIME}/details_leaderboard|arc:challenge|25|0_{TIME}.parquet": NEW,
            f"details/lab/alpha/{TIME}/details_lighteval|gsm8k|0_{TIME}.parquet": OLD,
        },
    )


def test_lighteval_results_and_details_are_one_run_and_agree(tmp_path: Path) -> None:
    sink = read(lighteval.FORMAT, lighteval_folder(tmp_path))
    assert sink.faults == []
    (run,) = sink.runs
    assert (run.model, run.revision, run.created) == ("lab/alpha", "sha1", "2024-05-01T10:20:30.123456")
    scores = sink.table("scores")
    keys = ("task", "benchmark", "metric", "value", "stderr", "n", "of", "higher_is_better", "is_group")
    assert scores.select(keys).rows() == [
        ("arc:challenge", "arc", "acc", 0.5, 0.25, 4, 1172, True, False),
        ("arc:challenge", "arc", "ppl", 3.0, None, 4, 1172, False, False),
        ("gsm8k", None, "em", 0.75, 0.1, None, None, True, False),
        ("mmlu:_average", "mmlu", "acc", 0.4, None, None, None, True, True),
        ("all", None, "acc", 0.5, 0.25, None, None, True, True),
    ]
    table = sink.table("rows")
    assert table.filter(pl.col("metric") == "acc")["value"].mean() == 0.5
    assert table.filter(pl.col("metric") == "em")["value"].mean() == 0.75
    assert table.filter(pl.col("metric") == "em")["status"].to_list() == ["scored"] * 4 + ["unscored"]
    assert table["item_hash"].null_count() == 0
    choices = sink.table("choices")
    assert choices.height == 9
    assert choices.filter(pl.col("task") == "arc:challenge")["bytes"][0].to_list() == [4, 4]
    assert choices.filter(pl.col("task") == "arc:challenge")["chars"][0].to_list() == [4, 3]
    assert any("corpus" in note for note in sink.notes)


def test_lighteval_details_alone_go_by_their_folder(tmp_path: Path) -> None:
    name = f"details_lab__alpha/{TIME}/details_harness|gsm8k|5_{TIME}.parquet"
    sink = read(lighteval.FORMAT, write(tmp_path, {name: OLD}))
    assert sink.runs[0].model == "lab/alpha"
    assert "after its folder" in sink.notes[0]


def test_lighteval_broken_files(tmp_path: Path) -> None:
    root = lighteval_folder(tmp_path)
    path = next(root.rglob("*gsm8k*"))
    path.write_bytes(path.read_bytes()[:300])
    results = next(root.rglob("*.json"))
    results.write_bytes(results.read_bytes()[:-5])
    pl.DataFrame({"x": [1]}).write_parquet(path.with_name(f"details_x_{TIME}.parquet"))
    sink = read(lighteval.FORMAT, root)
    assert len(sink.faults) == 3
    assert sink.table("rows").filter(pl.col("task") == "arc:challenge").height == 4


def test_lighteval_one_task_with_several_shots(tmp_path: Path) -> None:
    results = RESULTS | {"results": {"lighteval|gsm8k|0": {"em": 0.1}, "lighteval|gsm8k|5": {"em": 0.2}}}
    sink = read(lighteval.FORMAT, write(tmp_path, {f"results_{TIME}.json": results}))
    assert [run.setting for run in sink.runs] == ["0-shot", "5-shot"]


# --- preferences --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content",
    [
        b'{"model_a":"a","model_b":"b","winner":"model_a","judge":"j"}\n',
        b'[\n {"model_a": "a", "model_b": "b", "winner": "tie"}\n]',
        b'{"chosen": [{"role": "user"}], "rejected": []}\n',
        b'{"question_id": 1, "model_1": "a", "model_2": "b", "g1_winner": "model_1"}',
        b"id,model_a,model_b,winner_model_a,winner_model_b\n1,a,b,1,0\n",
        b"model_a\tmodel_b\twinner\na\tb\ttie\n",
        b'{"chosen": "' + b"x" * 70_000 + b'", "rejected": ""}',
    ],
)
def test_preferences_are_refused_by_name(content: bytes) -> None:
    is_cut = len(content) > 65_536
    assert preferences.FORMAT.sniff(Head("x", content[:65_536])) != is_cut
    assert "pairwise preferences" in preferences.FORMAT.refused
    assert "rating" in preferences.FORMAT.refused


def test_preferences_in_a_small_parquet_file_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "battles.parquet"
    pl.DataFrame({"model_a": ["a"], "model_b": ["b"], "winner": ["tie"]}).write_parquet(path)
    assert preferences.FORMAT.sniff(Head(path.name, LogFile(path, path.name).head()))


def test_scores_are_no_preferences(shared: Path) -> None:
    for content in (
        b"model,item,score\na,b,1\n",
        b'{"doc_id": 1, "doc": {"chosen": 1, "rejected": 2}}',
        b"",
        b"[",
        b"{",
    ):
        assert not preferences.FORMAT.sniff(Head("x", content))
    path = shared / "data" / "olmes-audit" / "noise.csv"
    assert not preferences.FORMAT.sniff(Head("noise.csv", LogFile(path, "noise.csv").head()))


# --- all ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("format_", "name", "record"),
    [
        (resolved.FORMAT, "m/results.json", {"resolved": ["a"], "no_generation": ["b"], "total_instances": 2}),
        (resolved.FORMAT, "instances.json", ["a", "b"]),
        (mteb.FORMAT, "Mix.json", MTEB),
        (mteb.FORMAT, "model_meta.json", META),
        (lighteval.FORMAT, f"results_{TIME}.json", RESULTS),
    ],
    ids=["resolved", "instances", "mteb", "meta", "lighteval"],
)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_no_mutation_raises(tmp_path: Path, format_: Format, name: str, record: Any, data: st.DataObject) -> None:
    content = json.dumps(mutate(record, data)).encode()
    content = content[: data.draw(st.integers(0, len(content)))] if data.draw(st.booleans()) else content
    files: dict[str, Any] = {"m/results.json": {"resolved": ["a"]}, "Mix.json": MTEB, "model_meta.json": META}
    read(format_, write(tmp_path, files | {name: content}))
    format_.read(Unit(format_.name, (LogFile(tmp_path / name, name),)), MemorySink())  # claimed or not


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_no_mutation_of_details_raises(tmp_path: Path, data: st.DataObject) -> None:
    # Values and length only: a wrong size inside a Parquet page makes polars abort the process.
    root = lighteval_folder(tmp_path)
    path = next(root.rglob("*gsm8k*"))
    column = data.draw(st.sampled_from(OLD.columns))
    texts = st.sampled_from(
        ["{", "[", "{1: 2}", "{'em': [1]}", "{'em': 'x'}", "[" * 500, "[1, 2", "{'em': 9**9}", "", None]
    )
    changed = OLD.with_columns(pl.Series(column, [data.draw(texts) for _ in range(OLD.height)], dtype=pl.String))
    if data.draw(st.booleans()):
        changed = changed.drop(data.draw(st.sampled_from(OLD.columns)))
    changed.write_parquet(path)
    if data.draw(st.booleans()):
        content = path.read_bytes()
        path.write_bytes(content[: data.draw(st.integers(4, len(content)))])
    sink = read(lighteval.FORMAT, root)
    assert sink.table("rows").filter(pl.col("task") == "arc:challenge").height == 4
