"""HELM run folders: entries of an instance put together, perturbations and splits kept apart, broken files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchwright.logs import helm, json_array
from benchwright.logs.log_file import Head, LogFile
from benchwright.logs.record import MemorySink, Unit

SPEC: dict[str, Any] = {
    "name": "mmlu:subject=law,method=multiple_choice_joint,model=demo_alpha:7b,model_deployment=x_y",
    "scenario_spec": {"class_name": "S", "args": {"subject": "law"}},
    "adapter_spec": {"model": "demo/alpha:7b", "model_deployment": "x/y", "method": "m", "max_eval_instances": 2},
    "groups": ["mmlu", "law"],
}


def stat(name: str, mean: Any, count: Any = 1, split: str = "test", **more: Any) -> dict[str, Any]:
    total = mean * count if isinstance(mean, (int, float)) and isinstance(count, int) else mean
    body = {"name": {"name": name, "split": split, **more}, "count": count, "sum": total, "sum_squared": 0.0}
    return body | ({"mean": mean} if count else {})


def entry(doc_id: str, *stats: dict[str, Any], trial: int = 0, **more: Any) -> dict[str, Any]:
    return {"instance_id": doc_id, "train_trial_index": trial, "stats": list(stats), **more}


def read(folder: Path, root: Path | None = None) -> MemorySink:
    root = folder.parent if root is None else root
    files = tuple(LogFile(path, path.relative_to(root).as_posix()) for path in sorted(folder.iterdir()))
    sink = MemorySink()
    helm.FORMAT.read(Unit(helm.FORMAT.name, files), sink)
    return sink


def write(folder: Path, entries: Any, stats: Any = (), spec: Any = SPEC) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    documents = {"per_instance_stats.json": entries, "stats.json": stats, "run_spec.json": spec}
    for name, document in documents.items():
        if document != ():
            (folder / name).write_text(json.dumps(document), encoding="utf-8")
    return folder


def rows(sink: MemorySink, *columns: str) -> list[tuple[Any, ...]]:
    return sink.table("rows").select(columns).rows()


def test_public_runs_state_the_means_of_their_own_rows(shared: Path) -> None:
    root = shared / "data" / "logs" / "helm" / "medsum"
    folders = sorted(path for path in root.iterdir() if path.is_dir())
    assert len(folders) == 10
    counts: dict[tuple[str, str], int] = {}
    for folder in folders:
        assert all(helm.FORMAT.sniff(Head(path.name, LogFile(path, path.name).head())) for path in folder.iterdir())
        sink = read(folder, root)
        assert sink.faults == []
        (run,) = sink.runs
        table, scores = sink.table("rows"), sink.table("scores")
        counts[run.model, table["task"][0]] = table["doc_id"].n_unique()
        keys = ["task", "metric", "filter"]
        means = table.group_by(keys).agg(mean=pl.col("value").mean(), rows=pl.col("value").count())
        joined = means.join(scores, on=keys, nulls_equal=True)
        assert joined.height == means.height == 13
        assert joined.filter((pl.col("mean") - pl.col("value")).abs() > 1e-12).height == 0
        assert joined.filter(pl.col("rows") != pl.col("n")).height == 0
        assert set(scores["filter"].unique()) == {None, "robustness (worst)", "fairness (worst)"}
        assert not table["metric"].str.contains("^num_|runtime|tokens|finish_reason").any()
        assert any("inference_runtime" in note and "num_prompt_tokens" in note for note in sink.notes)
        assert (run.setting == "num_output_tokens=4000") == ("deepseek" in run.model)
    assert len({model for model, _ in counts}) == 9
    assert counts["meta/llama-3.2-1b-instruct", "aci_bench"] == 10
    assert counts["openai/gpt-4.1-nano-2025-04-14", "mtsamples_replicate"] == 10
    assert counts["openai/gpt-4.1-nano-2025-04-14", "aci_bench"] == 120
    assert sum(counts.values()) == 8 * 120 + 2 * 10


def test_entries_of_one_instance_are_put_together(tmp_path: Path) -> None:
    entries = [
        entry("a", stat("exact_match", 1.0), stat("f1_score", 0.5)),
        entry("b", stat("exact_match", 0.0)),
        entry("a", stat("bits_per_byte", 2.0), stat("exact_match", 1.0), stat("inference_runtime", 9.0)),
        entry("a", stat("exact_match", 0.0), trial=1),
    ]
    sink = read(write(tmp_path / "r", entries))
    assert rows(sink, "doc_id", "metric", "value", "repeat", "filter", "higher_is_better") == [
        ("a", "exact_match", 1.0, 0, None, True),
        ("a", "f1_score", 0.5, 0, None, True),
        ("b", "exact_match", 0.0, 0, None, True),
        ("a", "bits_per_byte", 2.0, 0, None, False),
        ("a", "exact_match", 0.0, 1, None, True),
    ]
    assert sink.faults == []
    assert sink.table("rows")["task"].unique().to_list() == ["mmlu:subject=law"]
    assert sink.table("rows")["benchmark"].unique().to_list() == ["mmlu"]
    (run,) = sink.runs
    assert (run.model, run.setting) == ("demo/alpha:7b", "method=multiple_choice_joint")
    assert any("2 instances, the most it was allowed" in note for note in sink.notes)


def test_two_values_of_one_statistic_are_a_fault(tmp_path: Path) -> None:
    sink = read(write(tmp_path / "r", [entry("a", stat("em", 1.0)), entry("a", stat("em", 0.0))]))
    assert rows(sink, "doc_id", "value", "status") == [("a", None, "unreadable")]
    (fault,) = sink.faults
    assert (fault.file, fault.line, fault.column) == ("r/per_instance_stats.json", 2, "em")


def test_perturbations_and_splits_are_kept_apart(tmp_path: Path) -> None:
    typos = {"name": "typos", "robustness": True, "computed_on": "perturbed", "prob": 0.1}
    entries = [
        entry("a", stat("em", 1.0), stat("em", 0.0, split="valid")),
        entry("a", stat("em", 0.0, perturbation=typos), perturbation=typos),
    ]
    stats = [stat("em", 1.0), stat("em", 0.0, perturbation=typos), stat("num_instances", 1.0)]
    sink = read(write(tmp_path / "r", entries, stats))
    found = rows(sink, "filter", "value")
    assert found == [("test", 1.0), ("valid", 0.0), ("test, typos (prob=0.1)", 0.0)]
    scores = sink.table("scores").select("filter", "value", "n").rows()
    assert scores == [("test", 1.0, 1), ("test, typos (prob=0.1)", 0.0, 1)]


def test_counts_and_odd_values(tmp_path: Path) -> None:
    entries = [
        entry("a", stat("em", 0.25, count=4), stat("x", None, count=0), stat("y", "0.5"), stat("z", "good")),
        entry("b", {"name": {"name": "em", "split": "test"}, "count": 2, "sum": 1.0}, stat("w", "NaN")),
    ]
    sink = read(write(tmp_path / "r", entries))
    assert rows(sink, "doc_id", "metric", "value", "status", "trials") == [
        ("a", "em", 0.25, "scored", 4),
        ("a", "x", None, "unscored", 1),
        ("a", "y", 0.5, "scored", 1),
        ("a", "z", None, "unreadable", 1),
        ("b", "em", 0.5, "scored", 2),
        ("b", "w", None, "unscored", 1),
    ]
    assert [(fault.line, fault.column) for fault in sink.faults] == [(1, "z")]


@pytest.mark.parametrize("cut", [0, 1, 40, 200])
def test_cut_off_files_are_faults_and_stats_remain(tmp_path: Path, cut: int) -> None:
    folder = write(tmp_path / "r", [entry("a", stat("em", 1.0))], [stat("em", 1.0)])
    path = folder / "per_instance_stats.json"
    content = path.read_bytes()
    path.write_bytes(content[: len(content) - 1 - cut])
    sink = read(folder)
    assert sink.table("scores")["value"].to_list() == [1.0]
    if len(content) - 1 - cut > 60:
        assert [fault.file for fault in sink.faults] == ["r/per_instance_stats.json"]


def test_without_a_run_spec_the_folder_names_the_model_with_a_fault(tmp_path: Path) -> None:
    folder = write(tmp_path / "boolq:model=demo_a,b", [entry("a", stat("em", 1.0))], spec=())
    sink = read(folder)
    assert sink.runs[0].model == "demo_a,b"
    assert rows(sink, "task") == [("boolq",)]
    assert len(sink.faults) == 1


@pytest.mark.parametrize("chunk", [1, 2, 7, 64, 2**20])
@pytest.mark.parametrize("value", [[], [1], [12, 345.5], [{"a": [1, {"b": "]},["}]}, "é\u2028", None, [[]], True]])
def test_array_items_however_the_file_is_cut_into_chunks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int, value: list[Any]
) -> None:
    monkeypatch.setattr(json_array, "CHUNK", chunk)
    path = tmp_path / "a.json"
    for indent in (None, 2):
        text = json.dumps(value, indent=indent, ensure_ascii=False)
        path.write_text(f"\ufeff{text}\n", encoding="utf-8")
        assert list(json_array.array_items(LogFile(path, "a"))) == value
        path.write_text(text[:-1], encoding="utf-8")
        with pytest.raises(ValueError, match=r"cut off|no JSON"):
            list(json_array.array_items(LogFile(path, "a")))
    for broken in (b"", b"{}", b"[1,]", b"[1 2]", b"[" * 9000, b'["\xff"]', b"[,1]"):
        path.write_bytes(broken)
        with pytest.raises(ValueError, match=r"is |cannot"):
            list(json_array.array_items(LogFile(path, "a")))


JUNK = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.just("\ud800"), st.just(10**400),
    st.lists(st.integers(), max_size=2), st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)  # fmt: skip


def mutate(value: Any, data: st.DataObject) -> Any:
    """Replace one random part of a JSON value by junk."""
    if isinstance(value, dict) and value and data.draw(st.integers(0, 5)):
        key = data.draw(st.sampled_from(sorted(value)))
        return value | {key: mutate(value[key], data)}
    if isinstance(value, list) and value and data.draw(st.integers(0, 5)):
        at = data.draw(st.integers(0, min(len(value), 20) - 1))
        return [*value[:at], mutate(value[at], data), *value[at + 1 :]]
    return data.draw(JUNK)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_no_mutation_of_a_real_folder_raises(tmp_path: Path, shared: Path, data: st.DataObject) -> None:
    root = shared / "data" / "logs" / "helm" / "medsum"
    source = next(path for path in sorted(root.iterdir()) if "llama-3.2-1b" in path.name)
    folder = tmp_path / "run"
    folder.mkdir(exist_ok=True)
    changed = data.draw(st.sampled_from(["run_spec.json", "per_instance_stats.json", "stats.json"]))
    for name in ("run_spec.json", "per_instance_stats.json", "stats.json"):
        document = json.loads((source / name).read_text(encoding="utf-8"))
        document = document[:6] if isinstance(document, list) else document
        if name == changed:
            document = mutate(document, data)
        (folder / name).write_text(json.dumps(document), encoding="utf-8")
    sink = read(folder)
    table = sink.table("rows")
    assert table.filter((pl.col("status") == "scored") != pl.col("value").is_not_null()).height == 0
